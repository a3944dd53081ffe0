;;; gemini-companion-commit-test.el --- Tests of commits of the user  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-commit)
(require 'gemini-companion-decision)
(require 'vc)
(require 'vc-git)

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
    (gemini-companion-attribution-record-bytes
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

(provide 'gemini-companion-commit-test)
;;; gemini-companion-commit-test.el ends here
