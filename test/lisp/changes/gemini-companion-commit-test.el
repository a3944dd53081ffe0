;;; gemini-companion-commit-test.el --- Tests of commits of the user  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-commit)
(require 'gemini-companion-decision)
(require 'vc)
(require 'vc-git)

(declare-function log-edit-done "log-edit")

(defun gemini-companion-commit-test-git (&rest arguments)
  "Run git with ARGUMENTS in the current directory, and return its output."
  (with-temp-buffer
    (should (equal 0 (apply #'call-process "git" nil t nil
                            "-c" "user.name=a" "-c" "user.email=a@b" arguments)))
    (buffer-string)))

(defmacro gemini-companion-commit-test-with (files &rest body)
  "Run BODY in a repository with FILES, which are committed.
The CLI has changed lines 1 and 9 of the file a, which the current buffer
visits, and the file b."
  (declare (indent 1) (debug t))
  `(progn
     (skip-unless (executable-find "git"))
     (gemini-companion-test-with-changes
         (append ,files `(("a" ,gemini-companion-test-lines) ("b" "B\n")))
       (let ((process-environment
              (append '("GIT_AUTHOR_NAME=a" "GIT_AUTHOR_EMAIL=a@b"
                        "GIT_COMMITTER_NAME=a" "GIT_COMMITTER_EMAIL=a@b")
                      process-environment)))
         (gemini-companion-commit-test-git "init" "-q")
         (gemini-companion-commit-test-git "add" ".")
         (gemini-companion-commit-test-git "commit" "-qm" "first")
         (find-file "a")
         (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
         (gemini-companion-test-writes "b" "C\n" session)
         (should (eql 3 (gemini-companion-test-left)))
         ,@body))))

(defun gemini-companion-commit-test-read ()
  "Wait until no process of git is running."
  (gemini-companion-test-eventually
    (not (seq-some (lambda (process)
                     (string-prefix-p "gemini-companion-git" (process-name process)))
                   (process-list)))))

(ert-deftest gemini-companion-commit-by-vc-keeps-what-it-has ()
  (gemini-companion-commit-test-with nil
    (vc-checkin (list (expand-file-name "a")) 'Git "second")
    (gemini-companion-test-eventually (eql 1 (gemini-companion-test-left)))
    (should-not (gemini-companion-test-marked "a"))
    (should (string-match-p "keep of what you committed in a"
                            (gemini-companion-decision-label
                             (gemini-companion-decision-last))))
    ;; It can be taken back.
    (gemini-companion-decision-take-back)
    (should (eql 3 (gemini-companion-test-left)))
    (should (equal '(1 9) (gemini-companion-test-marked "a")))))

(ert-deftest gemini-companion-commit-is-read-without-other-programs ()
  (gemini-companion-commit-test-with nil
    ;; The output of git would begin with what gpg says.
    (gemini-companion-test-write "gpg" "#!/bin/sh\ntouch ran\n")
    (set-file-modes "gpg" #o755)
    (gemini-companion-commit-test-git "config" "log.showSignature" "true")
    (gemini-companion-commit-test-git "config" "gpg.program" (expand-file-name "gpg"))
    (gemini-companion-commit-test-git "commit" "-qam" "second")
    (let ((commit (string-trim (gemini-companion-commit-test-git
                                "cat-file" "commit" "HEAD"))))
      ;; Git only looks at the signature of a signed commit.
      (gemini-companion-test-write
       "commit" (replace-regexp-in-string
                 "\n\n" "\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n \
-----END PGP SIGNATURE-----\n\n" (concat commit "\n") t t)))
    (let ((signed (string-trim (gemini-companion-commit-test-git
                                "hash-object" "-t" "commit" "-w" "commit"))))
      (gemini-companion-commit-test-git "update-ref" "--create-reflog" "-m"
                                        "commit: second" "HEAD" signed))
    (let ((process-environment (cons "GIT_DIR=/nonexistent" process-environment)))
      (run-hooks 'git-commit-post-finish-hook)
      (gemini-companion-test-eventually (memq (gemini-companion-test-left) '(nil 0))))
    (should-not (file-exists-p "ran"))))

(ert-deftest gemini-companion-commit-of-a-part-leaves-the-rest ()
  (gemini-companion-commit-test-with nil
    (pcase-dolist (`(,staged . ,left)
                   '(("1\n2\n3\n4\n5\n6\n7\n8\nnine\n" . (1))
                     ("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n" . (1))
                     ("one\n2\n3\n4\n5\n6\n7\n8\nnine\n" . ())))
      ;; As by Magit: the index has another text than the file.
      (gemini-companion-test-write "staged" staged)
      (let ((blob (string-trim (gemini-companion-commit-test-git
                                "hash-object" "-w" "staged"))))
        (gemini-companion-commit-test-git
         "update-index" "--cacheinfo" (concat "100644," blob ",a")))
      (delete-file "staged")
      (gemini-companion-commit-test-git "commit" "-qm" "part")
      (run-hooks 'git-commit-post-finish-hook)
      (gemini-companion-commit-test-read)
      (should (equal left (gemini-companion-test-marked "a"))))
    (should (eql 1 (gemini-companion-test-left)))))

(ert-deftest gemini-companion-commit-of-lines-typed-since-is-no-review ()
  (gemini-companion-commit-test-with nil
    (gemini-companion-commit-test-git "commit" "-qam" "second")
    (goto-char (point-min))
    (search-forward "one")
    (insert " and more")
    (run-hooks 'git-commit-post-finish-hook)
    (gemini-companion-commit-test-read)
    (should (equal '(1) (gemini-companion-test-marked "a")))))

(ert-deftest gemini-companion-commit-that-is-none-of-the-user-keeps-nothing ()
  (gemini-companion-commit-test-with nil
    ;; One by another program.
    (gemini-companion-commit-test-git "commit" "-qam" "second")
    (run-hook-with-args 'gemini-companion-watch-turned-functions nil)
    (gemini-companion-commit-test-read)
    (should (eql 3 (gemini-companion-test-left)))
    ;; The last one is not the one that Emacs has made.
    (dolist (arguments '(("commit" "--amend" "-qm" "amended")
                         ("checkout" "-qb" "branch")
                         ("reset" "-q" "HEAD~1")))
      (ert-info ((format "%S" arguments))
        (apply #'gemini-companion-commit-test-git arguments)
        (run-hooks 'git-commit-post-finish-hook)
        (gemini-companion-commit-test-read)
        (should (eql 3 (gemini-companion-test-left)))))))

(ert-deftest gemini-companion-commit-keeps-nothing-without-the-option ()
  (gemini-companion-commit-test-with nil
    (let ((gemini-companion-keep-committed nil))
      (gemini-companion-commit-test-git "commit" "-qam" "second")
      (run-hooks 'git-commit-post-finish-hook)
      (gemini-companion-commit-test-read)
      (should (eql 3 (gemini-companion-test-left))))))

(ert-deftest gemini-companion-commit-keeps-new-and-odd-files ()
  (gemini-companion-commit-test-with '(("crlf" "1\r\n2\r\n"))
    (gemini-companion-test-writes "crlf" "one\r\n2\r\n" session)
    (gemini-companion-test-writes "sp ace é" "new\n" session)
    (dolist (name '("~" "new\nline" "new" "\nline"))
      (gemini-companion-test-writes (concat default-directory name) "new\n" session))
    (should (eql 9 (gemini-companion-test-left)))
    (gemini-companion-commit-test-git "add" ".")
    (gemini-companion-commit-test-git "commit" "-qm" "second")
    (run-hooks 'git-commit-post-finish-hook)
    (gemini-companion-test-eventually (null (gemini-companion-test-left)))))

(ert-deftest gemini-companion-commit-keeps-deletions ()
  (gemini-companion-commit-test-with '(("gone" "1\n2\n"))
    (delete-file "gone")
    (gemini-companion-reported-bytes
     session (expand-file-name "gone") "1\n2\n" nil "rm gone" :modes #o644)
    (should (eql 4 (gemini-companion-test-left)))
    ;; The file a is removed from the index only.
    (gemini-companion-commit-test-git "rm" "-q" "--cached" "gone" "a")
    (gemini-companion-commit-test-git "commit" "-qm" "second")
    (run-hooks 'git-commit-post-finish-hook)
    (gemini-companion-test-eventually (eql 3 (gemini-companion-test-left)))
    (gemini-companion-commit-test-read)
    (should (equal '(1 9) (gemini-companion-test-marked "a")))))

(ert-deftest gemini-companion-commit-outside-of-a-repository-is-nothing ()
  (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (run-hooks 'vc-checkin-hook)
    (gemini-companion-commit-test-read)
    (should (eql 1 (gemini-companion-test-left)))))

(ert-deftest gemini-companion-commit-that-the-server-has-seen-keeps-what-it-has ()
  (gemini-companion-commit-test-with nil
    (let ((head (lambda ()
                  (string-trim (gemini-companion-commit-test-git "rev-parse" "HEAD"))))
          (base nil))
      (setq base (funcall head))
      (gemini-companion-commit-test-git "commit" "-qm" "second" "b")
      (gemini-companion-commit-test-git "commit" "-qm" "third" "a")
      (gemini-companion-commit-seen directory base (funcall head))
      (gemini-companion-test-eventually (null (gemini-companion-test-left)))
      ;; Once it is taken back, it stays so.
      (gemini-companion-decision-take-back)
      (should (eql 3 (gemini-companion-test-left)))
      (gemini-companion-commit-seen directory base (funcall head))
      (gemini-companion-commit-test-read)
      (should (eql 3 (gemini-companion-test-left))))))

(ert-deftest gemini-companion-commit-leaves-what-is-postponed ()
  (gemini-companion-commit-test-with nil
    (should (string-prefix-p "Later" (gemini-companion-test-walk
                                      'gemini-companion-next-change "l")))
    (gemini-companion-commit-test-git "commit" "-qam" "second")
    (run-hooks 'git-commit-post-finish-hook)
    (gemini-companion-test-eventually (eql 1 (gemini-companion-test-left)))
    (should (equal '(1) (gemini-companion-test-marked "a")))))

;;;; Drafts

(defmacro gemini-companion-commit-test-with-turns (&rest body)
  "Run BODY in a repository with the files a and b; `session' is Gemini CLI."
  (declare (indent 0) (debug t))
  `(gemini-companion-commit-test-with nil
     (let ((session (gemini-companion-test-session-like session :client "gemini"
                                                        :version "0.61.0")))
       (gemini-companion-test-set-sessions (list session))
       (gemini-companion-commit-test-git "commit" "-qam" "second")
       ,@body)))

(defun gemini-companion-commit-test-turn (session prompt &rest files)
  "Let SESSION write FILES, names and texts, in a turn with PROMPT."
  (gemini-companion-state-report session 'prompt prompt)
  (cl-loop for (file text) on files by #'cddr
           do (gemini-companion-test-writes file text session))
  (gemini-companion-state-report session 'end nil))

(defun gemini-companion-commit-test-message (function &rest arguments)
  "Call FUNCTION in the buffer in which git commit asks for its message.
Git gets ARGUMENTS.  Return the message of the commit."
  (let* ((directory (make-temp-file "gemini-companion-commit-test-" t))
         (editor (expand-file-name "editor" directory))
         (asked (expand-file-name "asked" directory))
         (process nil))
    (gemini-companion-test-write
     editor "#!/bin/sh
cd \"${0%/*}\"; echo \"$1\" > new; mv new asked; while [ ! -e answered ]; do sleep 0.02; done\n")
    (set-file-modes editor #o755)
    (unwind-protect
        (progn
          (let ((process-environment (cons (concat "GIT_EDITOR=" editor)
                                           process-environment)))
            (setq process (apply #'start-process "gemini-companion-commit-test" nil
                                 "git" "commit" "-q" arguments)))
          (gemini-companion-test-eventually (file-exists-p asked))
          (with-current-buffer (find-file-noselect
                                (string-trim (gemini-companion-test-file-text asked)))
            (unwind-protect
                (progn (goto-char (point-min))
                       (funcall function)
                       (save-buffer))
              (kill-buffer)))
          (gemini-companion-test-write (expand-file-name "answered" directory) "")
          (gemini-companion-test-eventually (not (process-live-p process))))
      (when (process-live-p process)
        (kill-process process))
      (delete-directory directory t))
    (string-trim-right (gemini-companion-commit-test-git "log" "-1" "--format=%B"))))

(ert-deftest gemini-companion-commit-message-of-one-turn-is-its-prompt ()
  (gemini-companion-commit-test-with-turns
    (gemini-companion-commit-test-turn
     session "Use words" "a" "one\ntwo\n3\n4\n5\n6\n7\n8\nnine\n" "b" "D\n")
    ;; Git has an index of its own for the first two.
    (dolist (arguments '(("-a") ("a") nil))
      (ert-info ((format "%S" arguments))
        (unless arguments
          (gemini-companion-commit-test-git "add" "."))
        (should (equal "Use words\n\nAssisted-by: Gemini CLI 0.61.0"
                       (apply #'gemini-companion-commit-test-message
                              #'gemini-companion-commit-message arguments)))
        (gemini-companion-commit-test-git "reset" "-q" "HEAD^")))))

(ert-deftest gemini-companion-commit-message-of-a-part-has-the-turns-of-the-part ()
  (gemini-companion-commit-test-with-turns
    (gemini-companion-commit-test-turn session "First"
                                       "a" "one\ntwo\n3\n4\n5\n6\n7\n8\nnine\n")
    (gemini-companion-commit-test-turn session "Second"
                                       "a" "one\ntwo\n3\n4\n5\n6\nseven\n8\nnine\n")
    (gemini-companion-commit-test-turn session "Third" "sp ace é" "new\n")
    (let ((text (gemini-companion-test-file-text "a")))
      (gemini-companion-test-write "a" "one\n2\n3\n4\n5\n6\nseven\n8\nnine\n")
      (gemini-companion-commit-test-git "add" "a")
      (gemini-companion-test-write "a" text))
    (should (equal "Second\n\nAssisted-by: Gemini CLI 0.61.0"
                   (gemini-companion-commit-test-message
                    #'gemini-companion-commit-message)))
    ;; Amended with another part.
    (gemini-companion-commit-test-git "add" "sp ace é")
    (should (equal "Second\n\n- Third\n\nAssisted-by: Gemini CLI 0.61.0"
                   (gemini-companion-commit-test-message
                    #'gemini-companion-commit-message "--amend")))
    ;; Lines that are only removed.
    (gemini-companion-commit-test-turn session "Fourth"
                                       "a" "one\ntwo\n3\n4\n6\nseven\n8\nnine\n")
    (should (equal "- First\n- Fourth\n\nAssisted-by: Gemini CLI 0.61.0"
                   (gemini-companion-commit-test-message
                    #'gemini-companion-commit-message "-a")))))

(ert-deftest gemini-companion-commit-message-leaves-out-what-is-written-again ()
  (gemini-companion-commit-test-with-turns
    (gemini-companion-commit-test-turn session "First" "b" "D\n")
    (gemini-companion-commit-test-turn session "No, that" "b" "E\n")
    (gemini-companion-commit-test-turn session "Third"
                                       "a" "one\n2\n3\n4\n5\nsix\n7\n8\nnine\n")
    ;; The user takes the line back, and writes another one.
    (gemini-companion-test-write "a" "mine\none\n2\n3\n4\n5\n6\n7\n8\nnine\n")
    (should (equal "No, that\n\nAssisted-by: Gemini CLI 0.61.0"
                   (gemini-companion-commit-test-message
                    #'gemini-companion-commit-message "-a")))))

(ert-deftest gemini-companion-commit-message-keeps-what-is-typed ()
  (gemini-companion-commit-test-with-turns
    (gemini-companion-commit-test-turn session "First" "a" "1\ntwo\n")
    (gemini-companion-commit-test-turn session "Second" "b" "D\n")
    (pcase-dolist
        (`(,typed ,point ,message)
         '(("Subject" 4 "Subject\n\n- First\n- Second\n\nAssisted-by: Gemini CLI 0.61.0")
           ("Subject\n\nWhy.\n\nSigned-off-by: a <a@b>" 11
            "Subject\n\nWhy.\n- First\n- Second\n\nAssisted-by: Gemini CLI 0.61.0
Signed-off-by: a <a@b>")
           ("\n\nSigned-off-by: a <a@b>" 1
            "- First\n- Second\n\nAssisted-by: Gemini CLI 0.61.0\nSigned-off-by: a <a@b>")))
      (ert-info (typed)
        (should (equal message
                       (gemini-companion-commit-test-message
                        (lambda ()
                          (insert typed)
                          (goto-char point)
                          (gemini-companion-commit-message)
                          ;; Nothing is inserted where git cuts it off.
                          (search-forward " >8 -")
                          (dolist (place (list (point) (point-max)))
                            (goto-char place)
                            (should (string-search
                                     "Git removes the line at point"
                                     (gemini-companion-test-refusal
                                       (gemini-companion-commit-message))))))
                        "-a" "-v")))
        (gemini-companion-commit-test-git "reset" "-q" "HEAD^")))))

(ert-deftest gemini-companion-commit-message-has-no-odd-prompt ()
  (gemini-companion-commit-test-with-turns
    (let ((gemini-companion-excluded '("/\\.env\\'" "\\.key\\'"))
          (n 0))
      (pcase-dolist
          (`(,prompt ,subject)
           `(("# 12:\tfix\e[31m it\u202e" "12: fix [31m it")
             (,(apply #'concat (make-list 500 "Long "))
              ,(concat (apply #'concat (make-list 13 "Long ")) "Long…"))
             (,(make-string 60 ?漢) ,(concat (make-string 34 ?漢) "…"))
             ("Read @.env" nil) ("Why is ‘x’ in ~/my.key?" nil) ("See (src/a.key), b" nil)
             (nil nil)))
        (ert-info ((format "%S" prompt))
          (gemini-companion-commit-test-turn session prompt
                                             "b" (format "%d\n" (cl-incf n)))
          (let* ((said nil)
                 (message (gemini-companion-commit-test-message
                           (lambda ()
                             (setq said (ert-with-message-capture said
                                          (gemini-companion-commit-message)
                                          said))
                             (goto-char (point-min))
                             (should (eq (null subject) (looking-at-p "\n\nAssisted"))))
                           "-a")))
            (should (equal (concat subject (and subject "\n\n")
                                   "Assisted-by: Gemini CLI 0.61.0")
                           (string-trim message)))
            (should (string-match-p (cond (subject "check it before you commit\n*\\'")
                                          (prompt "excluded file: 1\n*\\'")
                                          (t "not known: 1\n*\\'"))
                                    said))))))))

(ert-deftest gemini-companion-commit-message-leaves-out-a-commit-that-was-killed ()
  (gemini-companion-commit-test-with-turns
    (gemini-companion-commit-test-turn session "First" "a" "one\n")
    (gemini-companion-commit-test-git "add" "a")
    (copy-file ".git/index" ".git/next-index-1.lock" nil t)
    (gemini-companion-commit-test-git "reset" "-q" "--hard")
    (gemini-companion-commit-test-turn session "Second" "b" "x\n")
    (should (equal "Second\n\nAssisted-by: Gemini CLI 0.61.0"
                   (gemini-companion-commit-test-message
                    #'gemini-companion-commit-message "-a")))))

(ert-deftest gemini-companion-commit-message-says-where-there-is-none ()
  (gemini-companion-commit-test-with-turns
    (should (string-match-p "No commit message here"
                            (gemini-companion-test-refusal
                              (gemini-companion-commit-message))))
    (gemini-companion-commit-test-turn session "First" "b" "D\n")
    (gemini-companion-test-write "a" "mine\n")
    (gemini-companion-commit-test-git "add" "a")
    (should (equal "Mine"
                   (gemini-companion-commit-test-message
                    (lambda ()
                      (insert "Mine")
                      (should (string-match-p
                               "No line of a CLI is known"
                               (gemini-companion-test-refusal
                                 (gemini-companion-commit-message))))))))))

(ert-deftest gemini-companion-commit-message-leaves-out-lines-that-were-committed ()
  (gemini-companion-commit-test-with-turns
    (gemini-companion-commit-test-turn session "First"
                                       "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" "b" "D\n")
    (gemini-companion-commit-test-git "commit" "-qam" "third")
    ;; The user has changed them since.
    (gemini-companion-test-write "a" "  one\n2\n3\n4\n5\n6\n7\n8\nnine words\n")
    (gemini-companion-test-write "b" "Mine\n")
    (gemini-companion-commit-test-turn session "Second" "c" "x\n")
    (gemini-companion-commit-test-git "add" ".")
    (should (equal "Second\n\nAssisted-by: Gemini CLI 0.61.0"
                   (gemini-companion-commit-test-message
                    #'gemini-companion-commit-message)))))

(ert-deftest gemini-companion-commit-message-leaves-out-what-is-only-renamed ()
  (gemini-companion-commit-test-with-turns
    (gemini-companion-commit-test-turn session "First" "a" "1\ntwo\n3\n4\n5\n")
    (gemini-companion-commit-test-git "commit" "-qam" "third")
    (find-file "a")
    (vc-rename-file (expand-file-name "a") (expand-file-name "c"))
    (gemini-companion-commit-test-turn session "Second" "b" "D\n")
    (should (equal "Second\n\nAssisted-by: Gemini CLI 0.61.0"
                   (gemini-companion-commit-test-message
                    #'gemini-companion-commit-message "-a")))))

(ert-deftest gemini-companion-commit-message-is-of-its-work-tree ()
  (gemini-companion-commit-test-with-turns
    (gemini-companion-commit-test-turn session "First" "b" "D\n")
    (gemini-companion-commit-test-git "worktree" "add" "-q" "--detach" "other")
    ;; This one has no commit yet.
    (gemini-companion-commit-test-git "init" "-q" "begun")
    (gemini-companion-commit-test-git "init" "-q" "alone")
    (gemini-companion-test-write "alone/c" "c\n")
    (let ((default-directory (expand-file-name "alone/")))
      (gemini-companion-commit-test-git "add" ".")
      (gemini-companion-commit-test-git "commit" "-qm" "first"))
    (gemini-companion-commit-test-git "-c" "protocol.file.allow=always"
                                      "submodule" "--quiet" "add"
                                      (expand-file-name "alone") "sub")
    (dolist (directory '("other/" "sub/" "alone/" "begun/"))
      (ert-info (directory)
        (let ((default-directory (expand-file-name directory)))
          (gemini-companion-commit-test-turn session (concat "In " directory)
                                             "new" "x\n")
          (gemini-companion-commit-test-git "add" ".")
          (should (equal (format "In %s\n\nAssisted-by: Gemini CLI 0.61.0" directory)
                         (gemini-companion-commit-test-message
                          #'gemini-companion-commit-message))))))))

(ert-deftest gemini-companion-commit-message-of-vc-is-of-the-files-there ()
  (gemini-companion-commit-test-with-turns
    (gemini-companion-commit-test-turn session "First" "a" "1\ntwo\n")
    (gemini-companion-commit-test-turn session "Amend: yes" "b" "D\n")
    (find-file "b")
    (pcase-dolist (`(,files ,message)
                   `((("b") "Amend: yes\n\nAssisted-by: Gemini CLI 0.61.0")
                     (("a" "b")
                      "- First\n- Amend: yes\n\nAssisted-by: Gemini CLI 0.61.0")
                     (("./" "b")
                      "- First\n- Amend: yes\n\nAssisted-by: Gemini CLI 0.61.0")))
      (vc-checkin (mapcar #'expand-file-name files) 'Git)
      (with-current-buffer "*vc-log*"
        (gemini-companion-commit-message)
        (log-edit-done))
      (gemini-companion-test-eventually
        (equal message (string-trim (gemini-companion-commit-test-git
                                     "log" "-1" "--format=%B"))))
      (gemini-companion-commit-test-git "reset" "-q" "HEAD^"))))

(ert-deftest gemini-companion-commit-message-of-vc-keeps-the-subject ()
  (gemini-companion-commit-test-with-turns
    (gemini-companion-commit-test-turn session "First" "a" "1\ntwo\n")
    (find-file "a")
    (dolist (typed '("Subject\n" "Summary: Subject\n\n" "Summary:\n Subject\n\n"))
      (ert-info (typed)
        (vc-checkin (list (expand-file-name "a")) 'Git)
        (with-current-buffer "*vc-log*"
          (erase-buffer)
          (insert typed)
          (goto-char (point-min))
          (gemini-companion-commit-message)
          (log-edit-done))
        (gemini-companion-test-eventually
          (equal "Subject\n\n- First\n\nAssisted-by: Gemini CLI 0.61.0"
                 (string-trim (gemini-companion-commit-test-git
                               "log" "-1" "--format=%B"))))
        (gemini-companion-commit-test-git "reset" "-q" "HEAD^")))))

(ert-deftest gemini-companion-commit-message-of-vc-runs-no-filter ()
  (gemini-companion-commit-test-with-turns
    (gemini-companion-test-write ".git/info/attributes" "* filter=x=y\n")
    (gemini-companion-commit-test-turn session "First" "a" "1\ntwo\n")
    ;; Git compares the contents of what may be renamed.
    (gemini-companion-commit-test-git "mv" "b" "c")
    (gemini-companion-test-write "c" "Other\n")
    (find-file "a")
    (vc-checkin (mapcar #'expand-file-name '("a" "b" "c")) 'Git)
    (dolist (kind '("clean" "process"))
      (gemini-companion-commit-test-git "config" (concat "filter.x=y." kind)
                                        "touch ran; cat"))
    (gemini-companion-commit-test-git "config" "filter.x=y.required" "true")
    (with-current-buffer "*vc-log*"
      (gemini-companion-commit-message)
      (should (string-match-p "First" (buffer-string))))
    (should-not (file-exists-p "ran"))))

(ert-deftest gemini-companion-commit-message-names-each-cli ()
  (gemini-companion-commit-test-with-turns
    (let ((qwen (gemini-companion-session-make
                 :id "two" :client "qwen" :directory default-directory :pid 2)))
      (gemini-companion-test-set-sessions (list session qwen))
      (gemini-companion-commit-test-turn session "First" "a" "1\ntwo\n")
      (gemini-companion-commit-test-turn qwen "Second" "b" "D\n")
      (should (equal "- First\n- Second\n
Assisted-by: Gemini CLI 0.61.0\nAssisted-by: Qwen Code"
                     (gemini-companion-commit-test-message
                      #'gemini-companion-commit-message "-a"))))))

(provide 'gemini-companion-commit-test)
;;; gemini-companion-commit-test.el ends here
