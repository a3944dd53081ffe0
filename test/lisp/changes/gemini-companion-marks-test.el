;;; gemini-companion-marks-test.el --- Tests of the marks of changes  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-marks)

(ert-deftest gemini-companion-marks-are-at-the-lines-of-changes ()
  (gemini-companion-test-in-changed "one\n2\n3\nmore\nand more\n4\n5\n7\n8\nnine"
    ;; The first line, two new ones, where one was deleted, and the last.
    (should (equal '(1 4 5 8 10) (gemini-companion-test-marked "a")))
    (should (equal '(changed added removed changed)
                   (mapcar (lambda (mark)
                             (gemini-companion-marks--kind
                              (overlay-get mark 'gemini-companion-change)))
                           gemini-companion-marks-here)))
    (should (equal '(nil . 1) (window-margins)))
    (should (eql 4 (gemini-companion-test-left)))
    ;; Lines of the user beside and in a change leave it a change.
    (goto-char (point-min))
    (insert "0\n")
    (search-forward "more")
    (insert "!")
    (should (equal '(2 5 6 9 11) (gemini-companion-test-marked "a")))
    (save-buffer)
    (make-symbolic-link "." "link")
    (let ((directory-abbrev-alist
           `((,(regexp-quote directory) . ,(expand-file-name "link/")))))
      (find-file (prog1 buffer-file-name (kill-buffer)))
      (should (equal '(2 5 6 9 11) (gemini-companion-test-marked (current-buffer))))
      (normal-mode)
      (should (equal '(2 5 6 9 11) (gemini-companion-test-marked (current-buffer))))
      ;; Emacs takes the value of a hook over when a buffer becomes current.
      (with-temp-buffer)
      ;; The user has replaced it with all around it.
      (delete-region (point-min) (point-max))
      (should-not (gemini-companion-test-marked (current-buffer)))
      (should-not (cdr (window-margins)))
      (should (equal 0 right-margin-width)))))

(ert-deftest gemini-companion-marks-stay-where-a-formatter-changes-lines ()
  (gemini-companion-test-in-changed "one\n2\n3\n5\n6\n7\n8\nnine\n"
    (should (equal '(1 4 8) (gemini-companion-test-marked "a")))
    (let ((text (buffer-string))
          (buffer (current-buffer)))
      (with-temp-buffer
        (insert (string-replace "nine" "9.0" text))
        (let ((source (current-buffer)))
          (with-current-buffer buffer
            (replace-buffer-contents source)))))
    (should (equal '(1 4 8) (gemini-companion-test-marked "a")))
    ;; The user brings back a line that was deleted.
    (goto-char (point-min))
    (forward-line 3)
    (insert "4\n")
    (should (equal '(1 9) (gemini-companion-test-marked "a")))
    (should (eql 2 (gemini-companion-test-left)))
    (delete-region (line-beginning-position 0) (point))
    (save-buffer)
    (should (equal '(1 4 8) (gemini-companion-test-marked "a")))))

(ert-deftest gemini-companion-marks-follow-edits-after-a-save-that-changes-none ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    (should (equal '(1 9) (gemini-companion-test-marked "a")))
    ;; The changes are up to date before the marks hear of the save.
    (add-hook 'after-save-hook #'gemini-companion-changes-update-buffer -100 t)
    (goto-char (point-max))
    (insert "mine\n")
    (save-buffer)
    (should (equal '(1 9) (gemini-companion-test-marked "a")))
    (goto-char (point-min))
    (delete-char 3)
    (insert "1")
    (should (equal '(9) (gemini-companion-test-marked "a")))))

(ert-deftest gemini-companion-marks-have-a-margin-without-a-fringe-and-leave-others ()
  (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines))
    (find-file "a")
    ;; The other one is as in a graphical frame.
    (let ((text-window (split-window)))
      (cl-letf (((symbol-function 'window-fringes)
                 (lambda (&optional window)
                   (if (eq window text-window) '(0 0) '(8 8)))))
        (set-window-margins text-window 20 20)
        (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
        (should (equal '(20 . 20) (window-margins text-window)))
        ;; The mode sets variables again.
        (normal-mode)
        (set-window-buffer text-window "*scratch*")
        (set-window-buffer text-window (current-buffer))
        (run-hook-with-args 'window-buffer-change-functions (selected-frame))
        (should (equal '((nil) (nil . 1))
                       (mapcar #'window-margins (list nil text-window))))
        (set-window-margins text-window 20 20)
        (gemini-companion-keep-changes)
        (should (equal '(20 . 20) (window-margins text-window)))))))

;; In a terminal, the Flymake of Emacs 30 and 31 shows its signs in a margin.  It sets a
;; variable and the buffer of each window, which resets both margins: Emacs 30 when the
;; mode is turned on, Emacs 31 at each check.
(ert-deftest gemini-companion-marks-stay-beside-the-signs-of-flymake ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\n5\n6\n7\n8\n9\n"
    (cl-flet ((resize (variable width)
                (set variable width)
                (set-window-buffer nil (current-buffer))
                (run-hook-with-args 'window-size-change-functions (selected-frame))))
      (make-local-variable 'left-margin-width)
      (make-local-variable 'right-margin-width)
      (dotimes (_ 2)
        (resize 'left-margin-width 2)
        (should (equal '(2 . 1) (window-margins))))
      (resize 'left-margin-width 0)
      (should (equal '(nil . 1) (window-margins)))
      ;; In one margin with the marks.
      (resize 'right-margin-width 2)
      (should (equal '(nil . 2) (window-margins)))
      (resize 'right-margin-width 0)
      (should (equal '(nil . 1) (window-margins)))
      ;; For one window only.
      (set-window-margins nil 2 0)
      (run-hook-with-args 'window-size-change-functions (selected-frame))
      (should (equal '(2 . 1) (window-margins)))
      (set-window-margins nil nil nil)
      (gemini-companion-keep-changes)
      (should (equal '(nil) (window-margins))))))

;; As `visual-fill-column-mode' of a narrow window.
(ert-deftest gemini-companion-marks-stay-where-a-mode-removes-margins ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\n5\n6\n7\n8\n9\n"
    (let ((adjust (lambda (&rest _) (set-window-margins nil 0 0)))
          (hooks '( window-size-change-functions window-state-change-functions
                    window-configuration-change-hook)))
      (dolist (hook hooks)
        (add-hook hook adjust 'append 'local))
      ;; The order of Emacs.
      (run-hook-with-args 'window-size-change-functions (selected-frame))
      (run-hook-with-args 'window-state-change-functions (selected-frame))
      (run-hooks 'window-configuration-change-hook 'window-state-change-hook)
      (should (equal '(nil . 1) (window-margins)))
      (gemini-companion-keep-changes)
      (should-not (cdr (window-margins))))))

(defvar flymake-margin-indicator-position)

(ert-deftest gemini-companion-marks-stay-where-flymake-is-turned-on-and-off ()
  (skip-unless (require 'flymake))
  (skip-unless (boundp 'flymake-margin-indicator-position))
  (dolist (flymake-margin-indicator-position '(left-margin right-margin))
    (ert-info ((symbol-name flymake-margin-indicator-position))
      (gemini-companion-test-in-changed "one\n2\n3\n4\n5\n6\n7\n8\n9\n"
        (dolist (state '(1 -1 1 -1))
          (flymake-mode state)
          (run-hook-with-args 'window-size-change-functions (selected-frame))
          (should (<= 1 (cdr (window-margins)))))
        (should (equal '(nil . 1) (window-margins)))
        (gemini-companion-keep-changes)
        (should (equal '(nil) (window-margins)))))))

(ert-deftest gemini-companion-marks-are-not-in-a-clone ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\n5\n6\n7\n8\n9\n"
    ;; Org does the second.
    (dolist (clone (list (clone-indirect-buffer "clone" nil)
                         (make-indirect-buffer (current-buffer) "cloned" t)))
      (set-window-buffer (split-window) clone)
      (run-hook-with-args 'window-buffer-change-functions (selected-frame))
      (with-current-buffer clone
        (should-error (gemini-companion-undo-change) :type 'user-error)
        (should-not (gemini-companion-test-marked clone))
        (should-not (cdr (window-margins (get-buffer-window))))
        (kill-buffer)))
    (should (equal '(1) (gemini-companion-test-marked "a")))))

(ert-deftest gemini-companion-marks-come-with-a-buffer-that-is-visited-without-hooks ()
  (gemini-companion-test-with-changes '(("a" "A\n"))
    (gemini-companion-test-writes "a" "new\n" session)
    ;; As a preview does.
    (let (find-file-hook)
      (find-file "a"))
    (should-not (gemini-companion-test-marked "a"))
    (run-hook-with-args 'window-buffer-change-functions (selected-frame))
    (should (equal '(1) (gemini-companion-test-marked "a")))))

(ert-deftest gemini-companion-marks-leave-nothing-behind ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\n5\n6\n7\n8\n9\n"
    (should (equal '(1) (gemini-companion-test-marked "a")))
    (goto-char (point-min))
    (insert "x")
    (mapc #'gemini-companion-part-stop '(marks changes))
    (should-not (gemini-companion-test-marked "a"))
    (should-not (string-match-p "gemini-companion-\\(?:changes\\|marks\\)"
                                (format "%S" (buffer-local-variables))))
    (should-not (gemini-companion-part-lighter 'changes))
    (should (equal '(nil) (window-margins)))))

;;; gemini-companion-marks-test.el ends here
