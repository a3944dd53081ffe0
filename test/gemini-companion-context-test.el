;;; gemini-companion-context-test.el --- Tests of the snapshot  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-context)
(require 'gemini-companion-events)
(require 'gemini-companion-test-helper)

(defvar evil-state)

(defmacro gemini-companion-context-test-with (files &rest body)
  "Track the context while BODY is run in a directory with FILES.
`reported' holds the snapshots, the last one first."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory ,files
     (let ((reported nil)
           (gemini-companion-share-outside-projects t))
       (save-window-excursion
         (unwind-protect
             (progn
               (gemini-companion-context-start
                (lambda ()
                  (push (gemini-companion-context-snapshot) reported)))
               ,@body)
           (gemini-companion-context-stop))))))

(defun gemini-companion-context-test-active (snapshot)
  "Return the active entry of SNAPSHOT."
  (seq-find (lambda (entry) (plist-get entry :active)) snapshot))

(ert-deftest gemini-companion-context-lists-files-last-focused-first ()
  (let ((names (mapcar (lambda (n) (format "f%02d" n)) (number-sequence 1 12))))
    (gemini-companion-context-test-with (mapcar (lambda (n) (list n n)) names)
      (dolist (name (append names '("f03" "f12" "f03")))
        (find-file name))
      ;; A change of mode leaves the order.
      (emacs-lisp-mode)
      (let ((snapshot (gemini-companion-context-snapshot)))
        (should (equal '("f03" "f12" "f11" "f10" "f09" "f08" "f07" "f06" "f05"
                         "f04")
                       (gemini-companion-test-names snapshot)))
        (should (equal '(t nil nil nil nil nil nil nil nil nil)
                       (mapcar (lambda (entry) (plist-get entry :active))
                               snapshot)))
        (should (apply #'> (mapcar (lambda (entry) (plist-get entry :timestamp))
                                   snapshot)))))))

(ert-deftest gemini-companion-context-cuts-a-selection-at-the-limit ()
  (gemini-companion-context-test-with '(("a" ""))
    (let ((transient-mark-mode t))
      (find-file "a")
      (insert (make-string 16384 ?a) "b")
      (push-mark (point-min) t t)
      (should (equal (make-string 16384 ?a)
                     (plist-get (car (gemini-companion-context-snapshot))
                                :selected-text))))))

(ert-deftest gemini-companion-context-keeps-the-active-file-in-a-terminal ()
  (gemini-companion-context-test-with '(("a" "one two\n"))
    (let ((transient-mark-mode t)
          before)
      (find-file "a")
      (push-mark (point) t t)
      (forward-word)
      (setq before (gemini-companion-context-snapshot))
      (should (equal "one" (plist-get (car before) :selected-text)))
      (should (equal 4 (plist-get (car before) :character)))
      (switch-to-buffer "*scratch*")
      (with-current-buffer "a"
        (deactivate-mark))
      (should (equal before (gemini-companion-context-snapshot)))
      (switch-to-buffer "a")
      (push-mark (point-min) t t)
      (should (equal before (gemini-companion-context-snapshot))))))

(ert-deftest gemini-companion-context-follows-text-that-changes-elsewhere ()
  (gemini-companion-context-test-with '(("a" "1\n2\n3\n4 four\n"))
    (let ((transient-mark-mode t))
      (find-file "a")
      (goto-char (point-max))
      (push-mark (point) t t)
      (backward-word)
      (gemini-companion-context-snapshot)
      (switch-to-buffer "*scratch*")
      (with-current-buffer "a"
        (save-excursion
          (goto-char (point-min))
          (delete-region (point) (1+ (line-end-position)))
          (search-forward "four")
          (replace-match "fours")))
      (let ((active (gemini-companion-context-test-active
                     (gemini-companion-context-snapshot))))
        (should (equal 3 (plist-get active :line)))
        (should (equal "fours\n" (plist-get active :selected-text))))
      (write-region "new\n" nil (concat directory "a") nil 'silent)
      (setq reported nil)
      (with-current-buffer "a"
        (revert-buffer t t))
      (gemini-companion-test-eventually reported)
      (should (<= (plist-get (gemini-companion-context-test-active
                              (car reported))
                             :line)
                  2)))))

(ert-deftest gemini-companion-context-has-each-file-on-this-disk-once ()
  (gemini-companion-context-test-with '(("a" "one\ntwo\n"))
    (find-file "never-saved")
    (find-file "a")
    (switch-to-buffer (make-indirect-buffer (current-buffer) "indirect" t))
    (goto-char (point-max))
    (with-temp-buffer
      (setq buffer-file-name "/ssh:nobody@example.invalid:/etc/passwd")
      (let ((snapshot (gemini-companion-context-snapshot)))
        (should (equal '("a") (gemini-companion-test-names snapshot)))
        (should (equal 3 (plist-get (car snapshot) :line))))
      (setq buffer-file-name nil))))

;;;; Any text

(defconst gemini-companion-context-test-alphabet
  (append "ab \t.é日ß\u0301\u200D\uFEFF\u2028\r\n\n\n\U0001F600\U0001F468\U00020000"
          nil)
  "Characters that text is made of.")

(defun gemini-companion-context-test-text (most)
  "Return a random text of MOST characters at most."
  (let ((alphabet gemini-companion-context-test-alphabet))
    (apply #'string (cl-loop repeat (random (1+ most))
                             collect (nth (random (length alphabet))
                                          alphabet)))))

(defun gemini-companion-context-test-place (text index)
  "Return where INDEX is in TEXT, as the plist of an entry has it."
  (let ((lines (split-string (substring text 0 index) "\n")))
    (list :line (length lines)
          ;; In UTF-16 units.
          :character (1+ (/ (length (encode-coding-string (car (last lines))
                                                          'utf-16le))
                            2)))))

(ert-deftest gemini-companion-context-is-right-in-any-text ()
  (let ((seed (or (getenv "GC_SEED") (format "%d" (random 1000000))))
        (transient-mark-mode t))
    (random seed)
    (gemini-companion-context-test-with '(("a" ""))
      (find-file "a")
      (dotimes (_ 150)
        (let* ((text (gemini-companion-context-test-text 100))
               (point (1+ (random (1+ (length text)))))
               (other (1+ (random (1+ (length text))))))
          (widen)
          (deactivate-mark)
          (erase-buffer)
          (insert text)
          (goto-char point)
          (pcase (random 3)
            (0 (push-mark other t t))
            (1 (narrow-to-region point other)))
          (ert-info ((format "GC_SEED=%s" seed))
            (should
             (equal (append
                     (list :active t)
                     (gemini-companion-context-test-place text (1- point))
                     (when (and mark-active (/= point other))
                       (list :selected-text
                             (substring text (1- (min point other))
                                        (1- (max point other))))))
                    (cddr (cddr (gemini-companion-context-test-active
                                 (gemini-companion-context-snapshot))))))))))))

(ert-deftest gemini-companion-context-survives-its-own-errors ()
  (gemini-companion-context-test-with '(("a" "one two"))
    (let* ((users 0)
           (hook (lambda () (setq users (1+ users))))
           (hooks (gemini-companion-test-hooks))
           shown)
      (add-hook 'post-command-hook hook t)
      (unwind-protect
          (cl-letf (((symbol-function 'message)
                     (lambda (&rest args) (push args shown))))
            (find-file "a")
            ;; Evil is not loaded, so the selection cannot be read.
            (setq-local evil-state 'visual)
            (dotimes (_ 2)
              (run-hooks 'post-command-hook)
              (switch-to-buffer "*scratch*")
              (run-hooks 'post-command-hook 'buffer-list-update-hook)
              (switch-to-buffer "a"))
            (gemini-companion-test-eventually
              (gemini-companion-context-idle-p)))
        (remove-hook 'post-command-hook hook))
      (should (equal 4 users))
      (should-not shown)
      (should (equal hooks (gemini-companion-test-hooks)))
      (let ((events (gemini-companion-events-buffer)))
        (should (string-search " !! context"
                               (gemini-companion-test-text events)))
        (kill-buffer events)))))

(ert-deftest gemini-companion-context-schedules-one-report-of-many-changes ()
  (gemini-companion-context-test-with '(("a" "one two"))
    (find-file "a")
    (with-temp-buffer
      (switch-to-buffer (current-buffer))
      (run-hooks 'post-command-hook)
      (gemini-companion-test-eventually (gemini-companion-context-idle-p))
      ;; Of a buffer without a file, nothing is shared.
      (insert "output")
      (run-hooks 'post-command-hook)
      (should (gemini-companion-context-idle-p)))
    (gemini-companion-test-eventually (not (gemini-companion-test-timers)))
    (switch-to-buffer "a")
    (dotimes (_ 6)
      (forward-char)
      (run-hooks 'post-command-hook))
    (should (equal 1 (length (gemini-companion-test-timers))))))

;;; gemini-companion-context-test.el ends here
