;;; gemini-companion-auto-test.el --- Tests of auto-accept  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-auto)
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
      ;; Its frame was deleted, for example.
      (gemini-companion-proposal-hide shown)
      (gemini-companion-test-eventually (gemini-companion-edit-view shown))
      (should (equal (list shown other) (gemini-companion-edits-open))))))

;; "1 to answer" came and went for each edit, and rows jumped.
(ert-deftest gemini-companion-auto-accepted-edits-never-wait-for-the-user ()
  (require 'gemini-companion-state nil t)
  (gemini-companion-test-with-edits '(("a" "old\n") (".b" "old\n"))
    (gemini-companion-auto-accept session)
    (let* ((waited nil)
           (follow (lambda (&rest _)
                     (push (mapcar #'gemini-companion-edit-name
                                   (append (gemini-companion-requests-certain)
                                           (seq-filter #'gemini-companion-request-listed-p
                                                       (gemini-companion-requests))))
                           waited)))
           (gemini-companion-request-functions
            (append gemini-companion-request-functions (list follow))))
      (gemini-companion-test-open "a" "new\n" 1 session)
      (gemini-companion-test-eventually (equal '((1 . automatic)) outcomes))
      (should waited)
      (should-not (apply #'append waited))
      ;; This one is for the user.
      (setq waited nil)
      (gemini-companion-test-open ".b" "new\n" 2 session)
      (should-not (apply #'append waited))
      (gemini-companion-test-eventually (equal '(".b" ".b") (car waited))))))

(defun gemini-companion-auto-test-reviewed (file session)
  "Propose an edit of FILE by SESSION; return why it is reviewed, or nil."
  (let ((diff (gemini-companion-test-open file "new\n" 1 session)))
    (gemini-companion-test-eventually
      (or (gemini-companion-edit-problem diff)
          (not (eq 'pending (gemini-companion-edit-status diff)))))
    (unless (eq 'automatic (gemini-companion-edit-status diff))
      (gemini-companion-server-receive 'close-diff 1 'closed)
      (gemini-companion-edit-review-reason diff))))

(ert-deftest gemini-companion-auto-leaves-a-file-that-changed-to-the-user ()
  (pcase-dolist
      (`(,change . ,reason)
       ;; As `git checkout' does it.
       `(((lambda () (rename-file "b" "a" t)) . "file changed since the proposal")
         ((lambda ()
            (with-current-buffer (find-file-noselect (expand-file-name "a"))
              (insert "unsaved")))
          . "unsaved changes in Emacs")))
    (gemini-companion-test-with-edits '(("a" "old\n") ("b" "old\n"))
      (let ((diff (gemini-companion-test-open "a" "new\n" 1 session)))
        (funcall change)
        (gemini-companion-auto-accept session)
        (should-not outcomes)
        (should (equal reason (gemini-companion-edit-review-reason diff)))))))

(ert-deftest gemini-companion-auto-leaves-what-cannot-be-sent-to-the-user ()
  (gemini-companion-test-with-edits '()
    (let ((gemini-companion-test-send
           (lambda (_edit)
             (setq gemini-companion-test-send #'ignore)
             ;; Meanwhile, another one arrives.
             (gemini-companion-test-open "b" "new\n" 2 session)
             (error "Disk full"))))
      (gemini-companion-auto-accept session)
      (should (equal "Disk full"
                     (gemini-companion-auto-test-reviewed "a" session)))
      (gemini-companion-test-eventually
        (null (gemini-companion-edits-open))))))

(ert-deftest gemini-companion-auto-leaves-files-that-are-not-utf-8-to-the-user ()
  (pcase-dolist (`(,client ,text ,reason)
                 '(("gemini" "caf\uFFFD\ntwo\n" "not UTF-8")
                   ("qwen" "café crème\n→ 2\n" "characters would be lost")
                   ("qwen" "café crème\ntwo\n" nil)))
    (gemini-companion-test-with-edits '(("a" ""))
      (gemini-companion-test-write "a" "caf\351 cr\350me\n2\n")
      (let ((session (gemini-companion-test-session-like
                      (gemini-companion-test-session "one" 1) :client client)))
        (gemini-companion-auto-accept session)
        (let ((edit (gemini-companion-test-open "a" text 1 session)))
          (gemini-companion-test-eventually
            (or (gemini-companion-edit-review-reason edit)
                (not (gemini-companion-edit-open-p edit))))
          (should (equal reason
                         (gemini-companion-edit-review-reason edit))))))))

;; Another edit of the same answer was made from the text of the CLI.
(ert-deftest gemini-companion-auto-pauses-while-the-cli-does-not-know-a-text ()
  (pcase-dolist (`(,client ,mine ,reviewed)
                 '(("copilot" "mine " t) ("copilot" "" nil) ("gemini" "mine " nil)))
    (gemini-companion-test-with-edits '(("a" "old\n"))
      (let* ((session (gemini-companion-test-session-like
                       (gemini-companion-test-session "one" 1) :client client))
             (diff (gemini-companion-test-open "a" "new\n" 1 session)))
        (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
          (insert mine))
        (gemini-companion-edit-accept diff)
        (gemini-companion-auto-accept session)
        (should (equal (and reviewed
                            "the CLI may not know your edits of this turn")
                       (gemini-companion-auto-test-reviewed "a" session)))))))

(ert-deftest gemini-companion-auto-accepts-only-what-is-safe-in-the-project ()
  (gemini-companion-test-with-edits '(("outside" "old\n") ("project/x" ""))
    (let* ((default-directory (concat directory "project/"))
           (session (gemini-companion-test-session "one" 1))
           (reviewed (lambda (reason file session)
                       (ert-info (file)
                         (should (equal reason (gemini-companion-auto-test-reviewed
                                         file session)))))))
      (dolist (name '(".git/hooks" "sub/.git" ".gemini" ".qwen" ".husky" ".vscode"
                      "hooks" "githooks" "src/hooks"))
        (make-directory name t))
      (pcase-dolist (`(,link . ,target)
                     '(("link" . "../outside") ("up" . "..") ("inner" . "a")
                       ("loop" . "loop") ("innocent" . ".git")))
        (make-symbolic-link target link))
      (call-process "mkfifo" nil nil nil "pipe")
      (gemini-companion-auto-accept session)
      (make-directory "new")
      (pcase-dolist
          (`(,reason . ,files)
           '((nil "a" "inner" "sub/a" "sub/../b" "new/a" "git" "src/hooks/use.ts"
                  "promise.toml" "a.el")
             ("outside the project of the CLI"
              "../outside" "../new" "link" "up/outside" "up/new" "/etc/passwd")
             ("is a loop of symbolic links" "loop")
             ("is not a regular file" "pipe")
             ("hidden, or may be run automatically"
              ".git/config" ".git/hooks/pre-commit" "sub/.git/config" ".GIT/config"
              "innocent/config" ".dir-locals.el" ".dir-locals-2.el"
              "sub/.dir-locals.el" ".envrc" ".gemini/settings.json"
              ".qwen/settings.json" ".husky/x" ".vscode/tasks.json"
              "hooks/pre-commit" "githooks/pre-commit" "hooks/hooks.json"
              "gemini-extension.json" "mise.toml" "mise.local.toml"
              "lefthook.yml")))
        (dolist (file files)
          (funcall reviewed reason file session)))
      ;; Where that runs is not known.
      (funcall reviewed "outside the project of the CLI" "a"
               (gemini-companion-session-make :id "one" :pid 1))
      (should (equal "old\n" (gemini-companion-test-file-text "../outside"))))))

(ert-deftest gemini-companion-auto-obeys-the-rules-of-the-user ()
  (gemini-companion-test-with-edits '(("project/x" ""))
    (let* ((default-directory (concat directory "project/"))
           (session (gemini-companion-test-session "one" 1))
           (gemini-companion-review-rules
            '(("docs/**" . never) ("*.el" . always) (".*" . never)
              ("/etc/**" . never)))
           (status (lambda (file)
                     (let ((edit (gemini-companion-test-open file "new\n" 1 session)))
                       (gemini-companion-test-eventually
                         (or (gemini-companion-edit-answer edit)
                             (gemini-companion-edit-view edit)
                             (gemini-companion-edit-problem edit)))
                       (prog1 (list (gemini-companion-edit-answer edit)
                                    (gemini-companion-edit-review-reason edit)
                                    (gemini-companion-edit-rule edit))
                         (when (gemini-companion-edit-open-p edit)
                           (gemini-companion-server-receive
                               'close-diff 1 'closed)))))))
      (pcase-dolist
          (`(,file ,auto . ,expected)
           '(("docs/a" nil automatic nil "by your rule docs/**")
             ("docs/a.el" nil automatic nil "by your rule docs/**")
             ("a.el" nil nil nil "by your rule *.el")
             ("a.el" t nil nil "by your rule *.el")
             ("a.c" nil nil nil nil)
             ("a.c" t automatic nil nil)
             (".envrc" nil nil
              "hidden, or may be run automatically"
              "by your rule .*")
             ("/etc/x" nil nil
              "outside the project of the CLI"
              "by your rule /etc/**")))
        (when (xor auto (gemini-companion-auto-on-p session))
          (gemini-companion-auto-accept session))
        (ert-info ((format "%s, auto-accept %s" file auto))
          (should (equal expected (funcall status file))))))))

(ert-deftest gemini-companion-auto-ends-by-command-and-with-the-cli ()
  (gemini-companion-test-with-edits '()
    (gemini-companion-auto-accept session)
    (should (gemini-companion-auto-on-p))
    ;; The server is replaced.
    (gemini-companion-test-set-sessions nil)
    (should-not (gemini-companion-auto-on-p))
    ;; A CLI that is started later has its PID.
    (gemini-companion-test-set-sessions
     (list (gemini-companion-test-session-like session :id "x" :identity 2)))
    (should-not (gemini-companion-auto-on-p))
    (gemini-companion-test-set-sessions (list session))
    (should (gemini-companion-auto-on-p session))
    (gemini-companion-auto-accept session)
    (should-not (gemini-companion-auto-on-p session))))

;;; gemini-companion-auto-test.el ends here
