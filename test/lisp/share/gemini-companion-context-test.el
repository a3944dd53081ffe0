;;; gemini-companion-context-test.el --- Tests of the snapshot  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'dired-aux)
(require 'gemini-companion-log)
(require 'gemini-companion-part)
(require 'gemini-companion-roots)
(require 'gemini-companion-server-test-helper)
(require 'shell)

(defvar evil-state)

(defmacro gemini-companion-context-test-with (files &rest body)
  "Track the context while BODY is run in a directory with FILES."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory ,files
     (let ((gemini-companion-share-outside-projects t))
       (save-window-excursion
         (unwind-protect
             (progn
               (gemini-companion-part-start 'context)
               ,@body)
           (gemini-companion-part-stop 'context))))))

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

(ert-deftest gemini-companion-context-follows-the-names-of-files ()
  (gemini-companion-context-test-with '(("a" "1\n") ("sub/b" "2\n"))
    (mapc #'find-file '("sub/b" "../a"))
    (pcase-dolist
        (`(,names . ,change)
         `((("a" "b"))
           (("a" "c") . ,(lambda ()
                           (dired-rename-file (expand-file-name "sub/b")
                                              (expand-file-name "sub/c") nil)))
           (("a" "c") . ,(lambda ()
                           (dired-rename-file (expand-file-name "sub")
                                              (expand-file-name "below") nil)))
           (("d" "c") . ,(lambda () (write-file "d")))
           ;; No hook runs.
           (("d") . ,(lambda () (delete-file "below/c")))
           (() . ,(lambda () (set-visited-file-name nil)))))
      (when change
        (funcall change))
      (should (equal names (gemini-companion-test-names
                            (gemini-companion-context-snapshot)))))))

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

(ert-deftest gemini-companion-context-has-any-kind-of-selection ()
  (pcase-dolist
      (`(,mode . ,selections)
       '((transient-mark-mode ("C-x h" . "one two\nthree four\nfive six\nseven\n")
                              ("C-g") ("M-< C-x SPC C-n C-n C-f C-f" . "on\nth\nfi")
                              ("C-x SPC" . "one two\nthree four\nfi"))
         (evil-mode ("g g v e" . "one") ("w o" . "one t") ("<escape>")
                    ("g g l V" . "one two\n") ("j" . "one two\nthree four\n")
                    ("C-v" . "n\nh") ("j l" . "ne\nhr\niv")
                    ("v" . "ne two\nthree four\nfiv"))))
    (when (or (fboundp mode) (require 'evil nil t))
      (gemini-companion-context-test-with
          '(("a" "one two\nthree four\nfive six\nseven\n"))
        (funcall mode)
        (unwind-protect
            (progn
              (find-file "a")
              (pcase-dolist (`(,keys . ,selection) selections)
                (ert-info (keys)
                  (ignore-error quit (execute-kbd-macro (kbd keys)))
                  (should (equal selection
                                 (plist-get (car (gemini-companion-context-snapshot))
                                            :selected-text))))))
          (funcall mode -1))))))

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
      (let ((active (car (gemini-companion-context-snapshot))))
        (should (plist-get active :active))
        (should (equal 3 (plist-get active :line)))
        (should (equal "fours\n" (plist-get active :selected-text))))
      (write-region "new\n" nil (concat directory "a") nil 'silent)
      (with-current-buffer "a"
        (revert-buffer t t))
      (should (<= (plist-get (car (gemini-companion-context-snapshot)) :line)
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

(ert-deftest gemini-companion-context-is-right-in-any-text ()
  (gemini-companion-context-test-with '(("a" ""))
    (let ((transient-mark-mode t)
          (limit (make-string 16384 ?a)))
      (find-file "a")
      (pcase-dolist (`(,before ,selected ,line ,character . ,shared)
                     `(("" "" 1 1) ("x\n" "" 2 1) ("x\r" "y" 1 4 "y" 1 3)
                       ;; UTF-16 units are counted.
                       ("\n\U0001F600\u00E9" "\u65E5\n" 3 1 "\u65E5\n" 2 4)
                       ("\n\U0001F600e\u0301\t" "\U00020000" 2 8 "\U00020000" 2 6)
                       ("" ,(concat limit "b") 1 16386 ,limit 1 1)))
        (widen)
        (deactivate-mark)
        (erase-buffer)
        (insert before selected "after")
        (goto-char (1+ (length before)))
        (push-mark (point) t t)
        (forward-char (length selected))
        ;; What is hidden counts, too.
        (narrow-to-region (mark) (point-max))
        (should (equal (append (list :active t :line line :character character)
                               (and shared
                                    (cl-mapcan #'list
                                               '(:selected-text :start-line
                                                 :start-character)
                                               shared)))
                       (cddr (cddr (car (gemini-companion-context-snapshot))))))))))

(ert-deftest gemini-companion-context-survives-its-own-errors ()
  (gemini-companion-context-test-with '(("a" "one two"))
    (let ((hooks (gemini-companion-test-hooks))
          shown)
      (cl-letf (((symbol-function 'message)
                 (lambda (&rest args) (push args shown)))
                ((symbol-function 'evil-visual-range)
                 (lambda () (error "Boom"))))
        (find-file "a")
        (setq-local evil-state 'visual)
        (gemini-companion-test-demoted
          (dotimes (_ 2)
            (run-hooks 'post-command-hook)
            (switch-to-buffer "*scratch*")
            (run-hooks 'post-command-hook 'buffer-list-update-hook)
            (switch-to-buffer "a"))
          (gemini-companion-test-wait
           (lambda () (not (gemini-companion-test-timers)))))
        (should-not (gemini-companion-test-timers))
        ;; The function is void after this, and ERT of Emacs 28 enters the debugger.
        (with-current-buffer "a"
          (kill-local-variable 'evil-state)))
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
      (gemini-companion-test-eventually (not (gemini-companion-test-timers)))
      ;; Of a buffer without a file, nothing is shared.
      (insert "output")
      (run-hooks 'post-command-hook)
      (should-not (gemini-companion-test-timers)))
    (switch-to-buffer "a")
    (dotimes (_ 6)
      (forward-char)
      (run-hooks 'post-command-hook))
    (should (equal 1 (length (gemini-companion-test-timers))))))

(defun gemini-companion-share-test-shares (&rest names)
  "Assert that in the end the files NAMES are shared."
  (gemini-companion-test-eventually
    (equal names (gemini-companion-test-names (gemini-companion-shared)))))

(defun gemini-companion-share-test-has-cli ()
  "Report a CLI as the server does, although none has connected."
  (gemini-companion-test-set-sessions (list (gemini-companion-session-make :id "one"))))

(defun gemini-companion-share-test-hidden-p ()
  "Return non-nil if the mode line has this file as not shared."
  (string-search "hidden" (cadr (gemini-companion-lighter))))

(ert-deftest gemini-companion-share-context-is-sent-to-connected-clis-only ()
  (gemini-companion-test-with-mode '(("a" "text") ("b" "text"))
    (save-window-excursion
      (find-file "a")
      (gemini-companion-test-eventually (gemini-companion-idle-p))
      (should-not (string-search "context-update"
                                 (gemini-companion-test-events)))
      (let ((client (gemini-companion-test-connect)))
        (gemini-companion-share-test-shares "a")
        ;; It has the name that the CLI uses.
        (make-symbolic-link "." "link")
        (find-file "link/b")
        (gemini-companion-test-eventually
          (equal (list (concat directory "b") (concat directory "a"))
                 (mapcar (lambda (entry) (plist-get entry :path))
                         (gemini-companion-shared))))
        (delete-process client)
        (kill-buffer (process-buffer client))
        (gemini-companion-test-eventually (not (gemini-companion-sessions))))
      (should-not (gemini-companion-shared))
      (gemini-companion-test-connect)
      (gemini-companion-share-test-shares "b" "a")
      (should-not (string-search " -> context-update nil\n"
                                 (gemini-companion-test-events))))))

(ert-deftest gemini-companion-share-follows-options-modes-and-names ()
  (gemini-companion-test-with-mode '(("a" "text") ("b" "text"))
    (save-window-excursion
      (find-file "b")
      (find-file "a")
      (gemini-companion-share-test-has-cli)
      (gemini-companion-share-test-shares "a" "b")
      (should-not (gemini-companion-share-test-hidden-p))
      (let ((gemini-companion-excluded '("/[ac]\\'" prog-mode)))
        (gemini-companion-share-test-shares "b")
        (find-file "b")
        (gemini-companion-test-eventually (gemini-companion-idle-p))
        (emacs-lisp-mode)
        (gemini-companion-share-test-shares)
        (should (gemini-companion-share-test-hidden-p))
        (with-current-buffer "a"
          (should-not (gemini-companion-share-test-hidden-p)))
        (fundamental-mode)
        (gemini-companion-share-test-shares "b")
        (write-file "c")
        (gemini-companion-share-test-shares))
      (gemini-companion-share-test-shares "c" "a")
      (gemini-companion-test-write "rules" "")
      (make-symbolic-link "rules" ".geminiignore")
      (pcase-dolist (`(,file ,rule . ,names) '((".geminiignore" "/[bc]" "a")
                                               ("rules" "#" "c" "a")
                                               ("rules" "/[bc]" "a")
                                               (".geminiignore" "#" "c" "a")))
        (with-current-buffer (find-file-noselect file)
          (erase-buffer)
          (insert rule)
          (save-buffer)
          (kill-buffer))
        (apply #'gemini-companion-share-test-shares names))
      (gemini-companion-test-with-directory '(("notes" ""))
        (let ((process-environment (cons (concat "HOME=" directory)
                                         process-environment)))
          (find-file "notes")
          (run-hooks 'post-command-hook)
          (gemini-companion-test-eventually (gemini-companion-idle-p))
          (gemini-companion-share-test-shares "c" "a")
          (let ((gemini-companion-share-outside-projects t))
            (gemini-companion-share-test-shares "notes" "c" "a")))))))

(ert-deftest gemini-companion-share-text-of-files-in-projects-that-are-not-hidden ()
  (gemini-companion-test-with-directory
      '(("p/a" "") ("p/.env" "") ("p/~/b" "") ("out" "") ("p/.geminiignore" "keys/\n")
        ("p/keys/k" ""))
    (make-symbolic-link "../out" "p/to-out")
    (make-symbolic-link ".env" "p/to-env")
    (make-symbolic-link "a" "p/.env2")
    (make-symbolic-link "p/a" "to-a")
    (make-symbolic-link "loop" "p/loop")
    (gemini-companion-privacy-refresh)
    (cl-flet ((shared (&optional session)
                (seq-filter (lambda (name)
                              (gemini-companion-context-text-shared-p
                               (concat directory name) session))
                            '("p" "p/a" "p/.env" "p/keys/k" "p/~/b" "p/none" "p/to-out"
                              "p/to-env" "p/.env2" "p/loop" "out" "none" "to-a"))))
      (let ((gemini-companion-roots-last nil))
        (should-not (shared)))
      (let ((gemini-companion-roots-last (list (concat directory "p")))
            (gemini-companion-context-paused t))
        (should (equal '("p" "p/a" "p/~/b" "p/none" "to-a") (shared)))
        (should-not (gemini-companion-context-name-shared-p (concat directory "p/a"))))
      (let ((gemini-companion-roots-last nil))
        ;; The root of its CLI counts.
        (should (equal '("p" "p/a" "p/~/b" "p/none" "to-a")
                       (shared (gemini-companion-session-make
                                :id "1" :client "gemini"
                                :directory (concat directory "p")))))
        (let ((gemini-companion-share-outside-projects t))
          (should (equal '("p" "p/a" "p/~/b" "p/none" "p/to-out" "out" "none" "to-a")
                         (shared)))))
      (should-not (gemini-companion-context-text-shared-p "/ssh:nowhere.invalid:/a")))))

;;;; Roots

(defmacro gemini-companion-share-test-with-projects (names &rest body)
  "Run BODY with the mode on in a directory with the projects NAMES.
Each has a file f, and `roots' returns the roots below the directory."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-mode
       (mapcar (lambda (name) (list (concat name "/f") "text")) ,names)
     (dolist (name ,names)
       (make-directory (concat name "/.git")))
     (let ((roots (lambda ()
                    (sort (delete "."
                                  (mapcar (lambda (root)
                                            (file-relative-name root directory))
                                          (seq-filter
                                           (lambda (root)
                                             (file-in-directory-p root directory))
                                           gemini-companion-roots-last)))
                          #'string<))))
       (save-window-excursion ,@body))))

(ert-deftest gemini-companion-share-roots-follow-each-change ()
  (gemini-companion-share-test-with-projects '("p" "q" "r" "s" "t")
    (let ((terminal (generate-new-buffer "terminal"))
          (gemini-companion-excluded gemini-companion-excluded))
      (pcase-dolist
          (`(,expected . ,change)
           `((("p") . ,(lambda () (find-file "p/f")))
             (("p" "q") . ,(lambda () (find-file-noselect "../q/f")))
             (("p" "q" "r") . ,(lambda () (find-file-literally "../r/f")))
             ;; Saved under another name, renamed, and moved with its directory.
             (("p" "q" "s") . ,(lambda () (write-file "../s/f2")))
             (("p" "q") . ,(lambda () (set-visited-file-name "../q/f2" t t)))
             (("q" "u") . ,(lambda ()
                             (dired-rename-file (concat directory "p")
                                                (concat directory "u") nil)))
             (("q" "t" "u") . ,(lambda ()
                                 (with-current-buffer terminal
                                   (setq default-directory
                                         (concat directory "t/"))
                                   (shell-mode))))
             ;; In another directory while it is not selected.
             (("q" "s" "u") . ,(lambda ()
                                 (with-current-buffer terminal
                                   (setq default-directory
                                         (concat directory "s/")))
                                 (insert "more")
                                 (run-hooks 'post-command-hook)))
             (("q" "r" "u") . ,(lambda ()
                                 (switch-to-buffer terminal)
                                 (run-hooks 'post-command-hook)
                                 (gemini-companion-test-eventually
                                   (gemini-companion-idle-p))
                                 (setq default-directory (concat directory "r/"))
                                 (run-hooks 'post-command-hook)))
             ;; Nothing that is hidden.
             (("q" "u") . ,(lambda ()
                             (setq gemini-companion-excluded '("/r/\\'"))))
             (("q" "r" "u") . ,(lambda () (setq gemini-companion-excluded nil)))
             (("q" "u") . ,(lambda () (kill-buffer terminal)))
             (("u") . ,(lambda () (setq gemini-companion-excluded '("/q/f"))))
             ;; As Eglot waits until its server has ended.
             (() . ,(lambda ()
                      (set-buffer (get-file-buffer (concat directory "u/f")))
                      (add-hook 'kill-buffer-hook (lambda () (sleep-for 0.3)) nil t)
                      (kill-buffer)))
             (("q") . ,(lambda () (setq gemini-companion-excluded nil)))
             (("q" "u") . ,(lambda ()
                             (with-temp-file (concat directory "q/.dir-locals.el")
                               (insert "((nil . ((gemini-companion-share))))"))
                             (find-file (concat directory "u/f"))))
             ;; An opt-out counts from when it is saved, or a CLI connects.
             (("u") . ,#'gemini-companion-test-connect)
             (("new/src" "u") . ,(lambda ()
                                   (make-directory (concat directory "new/src") t)
                                   (find-file (concat directory "new/src/f"))))
             (("new" "u") . ,(lambda ()
                               (make-directory "../.git")
                               (vc-file-clearprops default-directory)
                               (insert "text")
                               (save-buffer)))))
        (funcall change)
        (ert-info ((format "%S" expected))
          (gemini-companion-test-eventually
            (and (gemini-companion-idle-p)
                 (equal expected (funcall roots)))))))))

(ert-deftest gemini-companion-share-roots-are-computed-after-changes-only ()
  (gemini-companion-share-test-with-projects '("p" "q")
    (find-file "p/f")
    (gemini-companion-share-test-has-cli)
    (gemini-companion-share-test-shares "f")
    (gemini-companion-test-eventually (gemini-companion-idle-p))
    (let ((last gemini-companion-roots-last))
      (dotimes (_ 3)
        (insert "more")
        (run-hooks 'post-command-hook)
        (switch-to-buffer "*scratch*")
        (run-hooks 'post-command-hook)
        (with-temp-buffer
          (emacs-lisp-mode))
        (switch-to-buffer "f")
        (run-hooks 'post-command-hook)
        (gemini-companion-test-eventually (gemini-companion-idle-p)))
      (should (eq last gemini-companion-roots-last))
      (should (equal '("p") (funcall roots)))
      (find-file-noselect "../q/f")
      (gemini-companion-test-eventually (gemini-companion-idle-p))
      (should-not (eq last gemini-companion-roots-last)))))

;;; gemini-companion-context-test.el ends here
