;;; gemini-companion-windows-test.el --- Tests of windows around a review  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-ediff)
(require 'gemini-companion-hunk)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-unified-draw)
(require 'gemini-companion-windows)

(ert-deftest gemini-companion-windows-keeps-each-point-of-a-buffer-in-two-windows ()
  (dolist (from-side '(nil t))
    (gemini-companion-test-in-each-view '(("a" "1\n2\n3\n"))
      (find-file (expand-file-name "a" directory))
      (let ((side (display-buffer-in-side-window (get-buffer "*scratch*")
                                                 '((side . left)))))
        (split-window-right)
        (window-make-atom (window-parent))
        (goto-char 3)
        (when from-side
          (select-window side)
          (set-window-dedicated-p side t)))
      (let ((layout (gemini-companion-test-layout)))
        (gemini-companion-test-show "a" "one\n2\n3\n")
        (dotimes (_ 3)
          (gemini-companion-test-call #'gemini-companion-review-switch-view))
        (when-let* ((window (get-buffer-window "*gemini original: a*")))
          (should-not (window-parameter window 'window-side)))
        (gemini-companion-edit-reject)
        (should (equal layout (gemini-companion-test-layout)))
        (select-window (get-buffer-window "a"))
        (let ((ignore-window-parameters t))
          (delete-other-windows)
          (set-window-parameter nil 'window-atom nil))))))

(ert-deftest gemini-companion-windows-layout-has-the-end-of-a-terminal ()
  (save-window-excursion
    (delete-other-windows)
    (with-temp-buffer
      (make-pipe-process :name "terminal" :buffer (current-buffer) :noquery t)
      (insert "output\n")
      (let ((terminal (current-buffer))
            (window (split-window)))
        (set-window-buffer window terminal)
        (should-error
         (with-selected-window window
           (gemini-companion-windows-try
            (lambda (_layout)
              (delete-window window)
              ;; A prompt begins.
              (set-window-buffer (minibuffer-window) terminal)
              (with-current-buffer terminal
                (goto-char (point-max))
                (insert "more output\n"))
              (error "Failed")))))
        (should (eq terminal (window-buffer window)))
        (should (eq terminal (window-buffer (minibuffer-window))))
        (should (= (point-max) (window-point window)))))))

;; Batch Emacs has no redisplay, which scrolls to point.
(ert-deftest gemini-companion-windows-scroll-only-where-the-user-did ()
  (gemini-companion-test-in-each-view
      `(("a" "1\n") ("b" ,(mapconcat #'number-to-string
                                     (number-sequence 1 100) "\n")))
    (find-file (expand-file-name "b" directory))
    (goto-char (point-max))
    (let ((before (window-start)))
      (gemini-companion-test-arrive "a" "2\n")
      (set-window-start nil (point))
      (gemini-companion-edit-reject (car (gemini-companion-edits-open)))
      (gemini-companion-test-eventually (one-window-p))
      (should (= before (window-start))))
    (split-window nil 10)
    (set-window-hscroll nil 1)
    (gemini-companion-test-arrive "a" "3\n")
    (set-window-start nil 50)
    (set-window-margins nil nil 1)
    (goto-char 60)
    (gemini-companion-edit-reject (car (gemini-companion-edits-open)))
    (gemini-companion-test-eventually
      (equal '("b" "b") (gemini-companion-test-window-names)))
    (should (= 50 (window-start)))
    (should (= 60 (window-point)))
    (should (= 1 (window-hscroll)))
    (should (equal '(nil . 1) (window-margins)))
    (delete-other-windows)))

(ert-deftest gemini-companion-windows-come-back-only-around-a-review ()
  (let ((gemini-companion-review-view 'diff)
        (other (get-buffer-create "*other*")))
    (gemini-companion-test-with-reviews '(("a" "1\n"))
      (split-window (split-window nil -12) 6)
      ;; The review took the place of two windows.
      (pcase-dolist (`(,hide . ,left)
                     `((,(lambda (_)
                           (display-buffer
                            other '(gemini-companion-windows-display-covering)))
                        . 3)
                       (delete-window . 1)))
        (let ((diff (gemini-companion-test-arrive "a" "2\n")))
          (should (= 2 (length (window-list))))
          (funcall hide (get-buffer-window
                         (gemini-companion-review-main-buffer diff)))
          (gemini-companion-edit-reject diff)
          (gemini-companion-test-eventually (not (gemini-companion-edits-ending)))
          (should (= left (length (window-list)))))))
    (kill-buffer other)))

;; Where Emacs 31 is not at hand.
(defmacro gemini-companion-windows-test-as-in-emacs-31 (&rest body)
  "Evaluate BODY while windows record what they showed as in Emacs 31.
Of a window that `display-buffer' has made, the parameter `quit-restore'
stays, and `quit-restore-prev' has what it showed last."
  (declare (indent 0) (debug t))
  `(let ((record (lambda (record type window buffer)
                   (let ((first (window-parameter window 'quit-restore)))
                     (funcall record type window buffer)
                     (when (and first (eq type 'reuse))
                       (set-window-parameter
                        window 'quit-restore-prev
                        (window-parameter window 'quit-restore))
                       (set-window-parameter window 'quit-restore first)))))
         (quit (lambda (quit &optional window kill)
                 (let* ((window (or window (selected-window)))
                        (first (window-parameter window 'quit-restore))
                        (last (window-parameter window 'quit-restore-prev)))
                   (if (not (eq (nth 3 last) (window-buffer window)))
                       (funcall quit window kill)
                     (set-window-parameter window 'quit-restore last)
                     (funcall quit window kill)
                     (set-window-parameter window 'quit-restore first)
                     (set-window-parameter window 'quit-restore-prev nil))))))
     (unwind-protect
         (progn
           (when (< emacs-major-version 31)
             (advice-add 'display-buffer-record-window :around record)
             (advice-add 'quit-restore-window :around quit))
           ,@body)
       (advice-remove 'display-buffer-record-window record)
       (advice-remove 'quit-restore-window quit))))

(ert-deftest gemini-companion-windows-of-other-commands-show-a-review-again ()
  (let ((gemini-companion-review-view 'diff)
        (help (get-buffer-create "*other*"))
        (list (get-buffer-create "*list*")))
    (gemini-companion-windows-test-as-in-emacs-31
      (gemini-companion-test-with-reviews '(("a" "1\n"))
        (let* ((window (display-buffer help '(display-buffer-below-selected)))
               (file (selected-window))
               (diff (gemini-companion-test-arrive "a" "2\n"))
               (review (gemini-companion-review-main-buffer diff)))
          (should (eq review (window-buffer window)))
          (should (eq window (display-buffer
                              list '(gemini-companion-windows-display-covering))))
          (gemini-companion-windows-uncover (list review))
          (should (eq review (window-buffer window)))
          ;; The window is that of the other command again.
          (gemini-companion-edit-reject diff)
          (gemini-companion-test-eventually (not (gemini-companion-edits-ending)))
          (should (eq help (window-buffer window)))
          (should (equal `(window window ,file ,help)
                         (window-parameter window 'quit-restore)))
          (delete-window window))
        ;; What covers a review stays there, and so does what quitting it does.
        (let* ((window (display-buffer help '(display-buffer-below-selected)))
               (diff (gemini-companion-test-arrive "a" "3\n")))
          (display-buffer list '(gemini-companion-windows-display-covering))
          (gemini-companion-edit-reject diff)
          (gemini-companion-test-eventually (not (gemini-companion-edits-ending)))
          (should (eq list (window-buffer window)))
          (should (window-parameter window 'quit-restore-prev)))))
    (kill-buffer list)
    (kill-buffer help)))

(ert-deftest gemini-companion-windows-keep-the-buffer-in-use-beside-a-terminal ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (let* ((process (make-process :name "cli" :command '("cat") :noquery t
                                  :buffer (get-buffer-create "cli")))
           (session (gemini-companion-test-session "one" (process-id process))))
      (unwind-protect
          (progn
            (gemini-companion-server-receive 'sessions-update (list session))
            (set-window-buffer (split-window-right) "cli")
            (let ((diff (gemini-companion-test-arrive "a" "2\n" 1 session)))
              ;; In a window that was not there before.
              (select-window (split-window nil 10))
              (switch-to-buffer (get-buffer-create "*other*"))
              (gemini-companion-edit-reject diff)
              (gemini-companion-test-eventually
                (equal '("*other*" "cli") (gemini-companion-test-window-names)))
              (should (equal "*other*" (buffer-name (window-buffer))))))
        (gemini-companion-server-receive 'sessions-update nil)
        (delete-process process)
        (mapc #'kill-buffer '("cli" "*other*"))))))

(ert-deftest gemini-companion-windows-leaves-another-tab-as-it-is ()
  (gemini-companion-test-in-each-view '(("a" "1\n") ("b" "2\n"))
    (find-file (expand-file-name "a" directory))
    (split-window-right)
    (let* ((tab-bar-show nil)
           (diff (gemini-companion-test-show "a" "one\n")))
      (unwind-protect
          (progn
            (tab-bar-new-tab)
            (delete-other-windows)
            (find-file (expand-file-name "b" directory))
            (gemini-companion-arrival-view diff)
            (should-not (member "b" (gemini-companion-test-window-names)))
            (gemini-companion-edit-accept)
            (should (equal '("b") (gemini-companion-test-window-names)))
            (tab-bar-select-tab 1)
            (should (equal '("a" "a") (gemini-companion-test-window-names)))
            (should-not (string-search "*gemini" (string-join
                                                  (gemini-companion-test-buffers)))))
        (tab-bar-close-other-tabs)
        ;; Emacs 30 makes a buffer for each killed one in a tab.
        (kill-matching-buffers "\\` \\*Old buffer" t t)))))

(ert-deftest gemini-companion-windows-in-a-tab-made-for-a-review-go-with-it ()
  (pcase-dolist
      (`(,tabs . ,body)
       '((1)
         (1 (tab-bar-select-tab 1))
         ;; One that the user has split is a tab of the user.
         (2 (split-window) (tab-bar-select-tab 1))
         ;; Its proposal is shown elsewhere, too.
         (2 (nconc (gemini-companion-view-windows
                    (gemini-companion-edit-view (gemini-companion-edit-shown)))
                   (progn (tab-bar-select-tab 1) (list (selected-window)))))
         (2 (select-window (split-window)) (switch-to-buffer "*other*"))))
    (let ((display-buffer-alist '(("gemini diff" display-buffer-in-new-tab)))
          (gemini-companion-review-view 'diff)
          (tab-bar-show nil))
      (gemini-companion-test-with-reviews '(("a" "1\n"))
        (split-window)
        (let ((layout (gemini-companion-test-layout))
              (diff (gemini-companion-test-arrive "a" "2\n")))
          ;; The user stays in the other one.
          (should (equal layout (gemini-companion-test-layout)))
          (gemini-companion-arrival-view diff)
          (should (one-window-p))
          (eval (cons 'progn body))
          (gemini-companion-edit-reject diff)
          (gemini-companion-test-eventually (not (gemini-companion-edits-ending)))
          (should (= tabs (length (funcall tab-bar-tabs-function))))
          (should-not (get-buffer "*gemini diff: a*"))
          (should (or (equal '("*other*") (gemini-companion-test-window-names))
                      (equal layout (gemini-companion-test-layout))))
          (tab-bar-close-other-tabs)
          (kill-matching-buffers "\\`\\*other\\| \\*Old buffer" t t))))))

(ert-deftest gemini-companion-windows-in-a-tab-of-the-user-are-restored ()
  (let ((display-buffer-alist '(("other" display-buffer-in-new-tab)))
        (gemini-companion-review-view 'diff)
        (tab-bar-show nil))
    (gemini-companion-test-with-reviews '(("a" "1\n"))
      (pop-to-buffer (get-buffer-create "*other*"))
      (select-window (split-window))
      (switch-to-buffer "*scratch*")
      (let ((layout (gemini-companion-test-layout)))
        (gemini-companion-edit-reject (gemini-companion-test-arrive "a" "2\n"))
        (gemini-companion-test-eventually (not (gemini-companion-edits-ending)))
        (should (equal layout (gemini-companion-test-layout))))
      (kill-buffer "*other*")
      (tab-bar-close-other-tabs))))

(ert-deftest gemini-companion-windows-quit-returns-after-a-review ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (split-window (split-window) nil 'right)
    (let* ((window (selected-window))
           (gemini-companion-review-view 'diff)
           (diff (gemini-companion-test-arrive "a" "2\n"))
           (other (car (delq window (get-buffer-window-list "*scratch*")))))
      (with-temp-buffer
        (display-buffer-record-window 'reuse other (current-buffer))
        (set-window-buffer other (current-buffer))
        (gemini-companion-edit-reject diff)
        (gemini-companion-test-eventually (not (gemini-companion-edits-ending)))
        (select-window other)
        (quit-window)
        (should (eq window (selected-window)))))))

(ert-deftest gemini-companion-windows-quit-on-its-way-to-another-stays ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (let* ((buffers (gemini-companion-test-buffers))
           (layout (gemini-companion-test-layout))
           (diff (gemini-companion-test-show "a" "2\n")))
      (dolist (function '(gemini-companion-unified-draw-insert
                          ediff-unselect-and-select-difference))
        (with-current-buffer (gemini-companion-review-main-buffer diff)
          (cl-letf* ((first t)
                     (real (symbol-function function))
                     ((symbol-function function)
                      (lambda (&rest args)
                        (if (not first)
                            (apply real args)
                          (setq first nil)
                          (signal 'quit nil)))))
            (should-error (gemini-companion-review-switch-view)
                          :type 'user-error)))
        (should (eq 'shown (gemini-companion-edit-status diff)))
        (should (get-buffer-window (gemini-companion-review-main-buffer diff)))
        (with-current-buffer (gemini-companion-review-main-buffer diff)
          (gemini-companion-review-switch-view)))
      (gemini-companion-edit-reject diff)
      (should (equal layout (gemini-companion-test-layout)))
      (should-not (seq-filter (apply-partially #'string-match-p
                                               "gemini\\|[Ee]diff")
                              (gemini-companion-test-buffers buffers))))))

(ert-deftest gemini-companion-windows-stay-during-a-turn-with-both-views ()
  (gemini-companion-test-with-reviews '(("a" "1\n") ("b" "1\n"))
    (pcase-dolist (`(,columns . ,edges) '((164 0 1 164 18) (250 0 1 90 50)))
      (set-frame-size nil columns 50)
      (dolist (file '("new" "a" "new-2" "b"))
        (let ((last (gemini-companion-edit-shown)))
          (gemini-companion-test-open file "2\n" columns)
          (when last (gemini-companion-test-accept-inside last)))
        (gemini-companion-test-eventually (gemini-companion-edit-shown))
        (should (equal edges (window-edges (get-buffer-window "*scratch*")))))
      (gemini-companion-edit-reject (gemini-companion-edit-shown)))
    (set-frame-size nil 160 45)))

;; (SIDE FIRST SECOND) has FIRST, and SECOND at its SIDE; (NAME) is dedicated, and
;; the first name is selected last.
(defconst gemini-companion-windows-test-layouts
  '(("a" "a")
    ("b" "b")
    ("cli" "cli")
    ("a" (right "a" "cli"))
    ("cli" (right "cli" "a"))
    ("cli" (below "a" "cli"))
    ("a" (below "a" "cli"))
    ("b" (right "b" "a"))
    ("a" (right "b" "a"))
    ("b" (below "a" "b"))
    ("b" (right "a" (below "b" "cli")))
    ("cli" (right "b" (below "a" "cli")))
    ("b" (right (below "a" "b") "cli"))
    ("cli" (right "a" (right "b" "cli")))
    ("a" (right "a" "a"))
    ("cli" (right (right "a" "a") "cli"))
    ("a" (right ("a") "b"))
    ("b" (right ("a") "b"))
    ("cli" (right "a" ("cli")))
    ("cli" (below ("a") ("cli")))
    ("b" (below (right "a" "b") (right "cli" "b"))))
  "Layouts of windows: the selected buffer, and all of them.")

(defun gemini-companion-windows-test-lay-out (layout)
  "Show LAYOUT in the selected window; a is shown from its line 20 on."
  (pcase layout
    (`(,side ,first ,second)
     (let ((other (split-window nil nil side)))
       (gemini-companion-windows-test-lay-out first)
       (with-selected-window other
         (gemini-companion-windows-test-lay-out second))))
    (_
     (switch-to-buffer (car (ensure-list layout)))
     (when (equal "a" (buffer-name))
       (goto-char (gemini-companion-hunk-line 23))
       (recenter 3))
     (set-window-dedicated-p nil (consp layout)))))

(ert-deftest gemini-companion-windows-are-the-same-after-a-review ()
  (let* ((lines (number-sequence 1 100))
         (old (mapconcat #'number-to-string lines "\n"))
         (new (mapconcat #'number-to-string
                         (seq-difference lines '(25 60)) "\n")))
    (gemini-companion-test-in-each-view `(("a" ,old) ("b" "mine\n"))
      (dolist (name '("a" "b"))
        (find-file-noselect (expand-file-name name directory)))
      (let* ((process (make-process :name "cli" :command '("cat") :noquery t
                                    :buffer (get-buffer-create "cli")))
             (session (gemini-companion-test-session "one" (process-id process))))
        (unwind-protect
            (pcase-dolist (`(,columns ,rows)
                           '( (80 24) (120 40) (140 42) (160 45) (200 50)
                              (170 70) (340 70)))
              (set-frame-size nil columns rows)
              (pcase-dolist (`(,selected ,layout)
                             gemini-companion-windows-test-layouts)
                (ert-info ((format "%s, %s in %s" columns selected layout))
                  (delete-other-windows)
                  (gemini-companion-windows-test-lay-out layout)
                  (select-window (get-buffer-window selected))
                  (gemini-companion-windows-test-review session new))))
          (delete-other-windows)
          (set-window-dedicated-p nil nil)
          (set-frame-size nil 160 45)
          (delete-process process)
          (kill-buffer "cli"))))))

(defun gemini-companion-windows-test-review (session text)
  "Review the edit of a to TEXT by SESSION; the windows are the same then."
  (let* ((before (gemini-companion-test-layout))
         (edges (mapcar #'window-edges (window-list nil nil (frame-first-window))))
         (selected (selected-window))
         (last (get-mru-window nil nil t))
         (place (and (eq 'diff gemini-companion-review-view)
                     (seq-find (lambda (window)
                                 (and (not (eq window selected))
                                      (<= 12 (window-body-height window))))
                               (get-buffer-window-list "a"))))
         ;; There is room beside the terminal of the CLI.
         (terminal (and (<= 160 (frame-width)) (<= 2 (count-windows) 3)
                        (get-buffer-window "cli")))
         (there (lambda ()
                  (and terminal
                       (list (window-buffer terminal) (window-edges terminal)))))
         (was-there (funcall there))
         (diff (gemini-companion-test-arrive "a" text 1 session)))
    (should (eq selected (selected-window)))
    ;; That is selected when the selected one is deleted.
    (when (window-live-p last)
      (should (eq last (get-mru-window nil nil t))))
    (should-not (cdr (frame-list)))
    (dotimes (n 2)
      (should (equal was-there (funcall there)))
      (when place
        (should (eq place (get-buffer-window
                           (gemini-companion-review-main-buffer diff))))
        (should (equal edges (mapcar #'window-edges
                                     (window-list nil nil
                                                  (frame-first-window))))))
      (when (zerop n)
        (gemini-companion-arrival-view diff)
        (gemini-companion-test-call #'gemini-companion-review-next-hunk)
        (gemini-companion-test-call #'gemini-companion-review-toggle-hunk)))
    (gemini-companion-test-call #'gemini-companion-edit-reject)
    (gemini-companion-test-eventually (equal before (gemini-companion-test-layout)))
    ;; The file of each rejected edit is watched for a while; with hundreds of
    ;; edits of one file, that would be most of the work.
    (gemini-companion-part-stop 'watch)))

;;; gemini-companion-windows-test.el ends here
