;;; gemini-companion-auto-test.el --- Tests of auto-accept  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What is accepted without review and what is not, and the way back.
;; The CLI's part, writing the file, is done by the outcome function here.

;;; Code:

(require 'gemini-companion-review-test-helper)

(ert-deftest gemini-companion-auto-accepts-edits-of-one-cli-that-are-not-shown ()
  (gemini-companion-test-with-edits '(("a" "old\n") ("b" "old\n"))
    (let ((shown (gemini-companion-test-arrive "a" "new\n" 1 session))
          (other (gemini-companion-test-open
                  "b" "2\n" 2 (gemini-companion-test-session "two" 2))))
      (gemini-companion-test-open "b" "new\n" 3 session)
      (gemini-companion-auto-accept session)
      (should (equal '((3 . automatic)) outcomes))
      (should (equal "new\n" (gemini-companion-test-file-text "b")))
      (gemini-companion-test-open "c" "new\n" 4 session)
      (gemini-companion-test-eventually
        (equal '((4 . automatic) (3 . automatic)) outcomes))
      (should (equal (list shown other) (gemini-companion-edits-open))))))

(defun gemini-companion-auto-test-reviewed (file session)
  "Propose an edit of FILE by SESSION; return why it is reviewed, or nil."
  (let ((diff (gemini-companion-test-open file "new\n" 1 session)))
    (gemini-companion-test-eventually
      (or (gemini-companion-edit-problem diff)
          (not (eq 'pending (gemini-companion-edit-status diff)))))
    (unless (eq 'automatic (gemini-companion-edit-status diff))
      (gemini-companion-edit-close 1 'closed)
      (gemini-companion-edit-auto-objection diff))))

(ert-deftest gemini-companion-auto-leaves-a-file-that-changed-to-the-user ()
  (pcase-dolist
      (`(,change . ,objection)
       ;; As `git checkout' does it.
       `(((lambda () (rename-file "b" "a" t)) . "file changed since the proposal")
         ((lambda ()
            (with-current-buffer (find-file-noselect (expand-file-name "a"))
              (insert "unsaved")))
          . "unsaved changes here")))
    (gemini-companion-test-with-edits '(("a" "old\n") ("b" "old\n"))
      (let ((diff (gemini-companion-test-open "a" "new\n" 1 session)))
        (funcall change)
        (gemini-companion-auto-accept session)
        (should-not outcomes)
        (should (equal (concat "not auto-accepted: " objection)
                       (gemini-companion-edit-auto-objection diff)))))))

(ert-deftest gemini-companion-auto-accepts-in-the-project-of-the-cli-only ()
  (gemini-companion-test-with-edits '(("outside" "old\n"))
    (mapc #'make-directory '("project" "project/.git" "project/sub"))
    (let* ((default-directory (concat directory "project/"))
           (session (gemini-companion-test-session "one" 1))
           (outside "not auto-accepted: outside the project of the CLI"))
      (make-symbolic-link "../outside" "link")
      (make-symbolic-link ".." "up")
      (make-symbolic-link "a" "inner")
      (make-symbolic-link "loop" "loop")
      (call-process "mkfifo" nil nil nil "pipe")
      (gemini-companion-auto-accept session)
      (dolist (file '("a" "inner" "sub/a" "sub/../b" "new/a"))
        (when (equal file "new/a")
          (make-directory "new"))
        (should-not (gemini-companion-auto-test-reviewed file session)))
      (dolist (file (list "../outside" "../new" "link" "up/outside" "up/new"
                          "/etc/passwd"))
        (should (equal outside
                       (gemini-companion-auto-test-reviewed file session))))
      (should (equal "not auto-accepted: is a loop of symbolic links"
                     (gemini-companion-auto-test-reviewed "loop" session)))
      (should (equal "not auto-accepted: is not a regular file"
                     (gemini-companion-auto-test-reviewed "pipe" session)))
      ;; Where that runs is not known.
      (should (equal outside (gemini-companion-auto-test-reviewed
                              "a" '(:id "one" :pid 1))))
      (should (equal "old\n" (gemini-companion-test-file-text "../outside"))))))

(ert-deftest gemini-companion-auto-leaves-what-may-be-run-automatically-to-the-user ()
  (gemini-companion-test-with-edits '()
    (mapc (lambda (name) (make-directory name t))
          '(".git/hooks" "sub/.git" ".gemini" ".qwen" ".husky" ".vscode"
            "hooks" "githooks" "src/hooks"))
    (make-symbolic-link ".git" "innocent")
    (gemini-companion-auto-accept session)
    (dolist (file '(".git/config" ".git/hooks/pre-commit" "sub/.git/config"
                    ".GIT/config" "innocent/config" ".dir-locals.el"
                    ".dir-locals-2.el" "sub/.dir-locals.el" ".envrc"
                    ".gemini/settings.json" ".qwen/settings.json" ".husky/x"
                    ".vscode/tasks.json" "hooks/pre-commit" "githooks/pre-commit" "hooks/hooks.json"
                    "gemini-extension.json" "mise.toml" "mise.local.toml"
                    "lefthook.yml"))
      (should (equal "not auto-accepted: hidden, or may be run automatically"
                     (gemini-companion-auto-test-reviewed file session))))
    (dolist (file '("git" "src/hooks/use.ts" "promise.toml" "a.el"))
      (should-not (gemini-companion-auto-test-reviewed file session)))))

(ert-deftest gemini-companion-auto-ends-by-command-and-with-the-cli ()
  (gemini-companion-test-with-edits '()
    (gemini-companion-auto-accept session)
    (should (gemini-companion-auto-on-p))
    ;; The server is replaced.
    (gemini-companion-session-update nil)
    (should-not (gemini-companion-auto-on-p))
    ;; A CLI that is started later has its PID.
    (gemini-companion-session-update
     (list (append '(:id "x" :identity 2) session)))
    (should-not (gemini-companion-auto-on-p))
    (gemini-companion-session-update (list session))
    (should (gemini-companion-auto-on-p session))
    (gemini-companion-auto-accept session)
    (should-not (gemini-companion-auto-on-p session))))

;;; gemini-companion-auto-test.el ends here
