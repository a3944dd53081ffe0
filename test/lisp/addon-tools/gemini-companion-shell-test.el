;;; gemini-companion-shell-test.el --- Tests of what tools write  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-test-helper)
(require 'gemini-companion-shell)

(defun gemini-companion-shell-test-save (text)
  "Save TEXT in this buffer, which visits a file."
  (erase-buffer)
  (insert text)
  (save-buffer))

(defun gemini-companion-shell-test-write (text)
  "Write TEXT to the file of this buffer as another program does."
  (let ((file buffer-file-name))
    (with-temp-file file
      (insert text))
    (revert-buffer t t t)))

(defmacro gemini-companion-shell-test-with-file (text &rest body)
  "Evaluate BODY in a buffer of a new file with TEXT, while a tool is running."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory (list (list "a.txt" ,text))
     (let ((mode-require-final-newline nil)
           (make-backup-files nil))
       (gemini-companion-part-start 'shell)
       (unwind-protect
           (with-current-buffer (find-file-noselect "a.txt")
             (unwind-protect
                 (progn
                   (gemini-companion-shell-called t)
                   ,@body)
               (set-buffer-modified-p nil)
               (kill-buffer)))
         (gemini-companion-part-stop 'shell)))))

(defun gemini-companion-shell-test-steps (before after)
  "Return what tools have made of the file of this buffer, BEFORE to AFTER."
  (gemini-companion-shell--steps
   (gemini-companion-text-true-name buffer-file-name) before after))

(ert-deftest gemini-companion-shell-saves-are-left-out-of-what-tools-write ()
  (gemini-companion-shell-test-with-file "1"
    (should (equal '(("1" . "2")) (gemini-companion-shell-test-steps "1" "2")))
    (gemini-companion-shell-test-write "12")
    (gemini-companion-shell-test-save "user 12")
    (gemini-companion-shell-test-write "user 123")
    (should (equal '(("1" . "12") ("user 12" . "user 123"))
                   (gemini-companion-shell-test-steps "1" "user 123")))))

(ert-deftest gemini-companion-shell-only-saves-are-no-step ()
  (gemini-companion-shell-test-with-file "1"
    (gemini-companion-shell-test-save "2")
    (gemini-companion-shell-test-save "3")
    (should-not (gemini-companion-shell-test-steps "1" "3"))
    ;; The snapshots may have been taken between the saves.
    (should-not (gemini-companion-shell-test-steps "2" "3"))
    (should-not (gemini-companion-shell-test-steps "1" "2"))
    (should-not (gemini-companion-shell-test-steps "3" "3"))))

(ert-deftest gemini-companion-shell-saves-are-forgotten-when-no-tool-runs ()
  (gemini-companion-shell-test-with-file "1"
    (gemini-companion-shell-test-save "2")
    (gemini-companion-shell-called nil)
    (gemini-companion-shell-test-save "3")
    (should (equal '(("1" . "3")) (gemini-companion-shell-test-steps "1" "3")))))

(ert-deftest gemini-companion-shell-file-that-emacs-deletes-is-no-step ()
  (gemini-companion-shell-test-with-file "1"
    (let ((file buffer-file-name))
      (gemini-companion-watch-writing file
        (delete-file file))
      (should-not (gemini-companion-shell-test-steps "1" nil)))))

(ert-deftest gemini-companion-shell-excluded-files-are-hidden-from-the-server ()
  (gemini-companion-test-with-directory '(("a.txt" "") (".env" ""))
    (let ((answer nil))
      (gemini-companion-shell-shared
       (vector (expand-file-name "a.txt") (expand-file-name ".env"))
       (lambda (value) (setq answer value)))
      (gemini-companion-test-wait (lambda () answer))
      (should (equal '(:shared (0) :hidden (1)) answer)))))

(ert-deftest gemini-companion-shell-what-is-not-recorded-is-said ()
  (cl-flet ((said (&rest facts)
              (gemini-companion-shell--unrecorded
               `(,@facts :root "/p" :problem "" :count 0 :by-git 0) 0 nil))
            (findings ()
              (gemini-companion-part-findings 'shell "/p")))
    (should-not (said))
    (should (equal "what it wrote is not recorded: the project is large"
                   (said :problem "the project is large")))
    ;; It is said once, and stays in the status until a snapshot is taken.
    (should-not (said :problem "the project is large"))
    (should (string-search "in /p is not recorded: the project is large"
                           (nth 2 (car (findings)))))
    (should-not (said))
    (should-not (findings))
    (should (equal "300 files written, too many to record" (said :count 300)))
    (should (equal "20 files changed by git to another commit" (said :by-git 20))))
  (should (equal "not recorded, as not a text or too large: a.png"
                 (gemini-companion-shell--unrecorded
                  '(:problem "" :count 1 :by-git 0) 1 '("a.png")))))

(provide 'gemini-companion-shell-test)
;;; gemini-companion-shell-test.el ends here
