;;; gemini-companion-check-test.el --- Tests of checks of a turn  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-check)
(require 'gemini-companion-overview-test-helper)

(declare-function gemini-companion-send-things "gemini-companion-send")

(defvar gemini-companion-check-test-asked nil
  "The questions that were asked, the last one first.")

(defmacro gemini-companion-check-test-with (files &rest body)
  "Run BODY in the overview, after a turn that has changed the file a.
FILES are those of the project; a command that ran there has made the file ran."
  (declare (indent 1) (debug t))
  `(gemini-companion-overview-test-with (append '(("a" "1\n")) ,files)
     (let ((gemini-companion-check-test-asked nil)
           (kill-buffer-query-functions nil)
           (ask (symbol-function 'read-char-from-minibuffer)))
       (cl-letf (((symbol-function 'read-char-from-minibuffer)
                  (lambda (prompt &rest arguments)
                    (push prompt gemini-companion-check-test-asked)
                    (apply ask prompt arguments))))
         (unwind-protect
             (progn
               (gemini-companion-test-writes "a" "2\n" session)
               (gemini-companion-turn-page)
               ,@body)
           (dolist (buffer (buffer-list))
             (when (string-prefix-p "*gemini check" (buffer-name buffer))
               (kill-buffer buffer))))))))

(defun gemini-companion-check-test-keys (keys)
  "Type KEYS in the overview; return the message of the error, or nil."
  (condition-case problem
      (progn (gemini-companion-overview-test-keys keys)
             nil)
    (user-error (cadr problem))))

(defun gemini-companion-check-test-runs (command)
  "Type COMMAND for a check in the overview, and agree to it."
  (gemini-companion-check-test-keys
   (format "C-u V C-a C-k %s RET y"
           (mapconcat (lambda (char) (if (eq char ?\s) "SPC" (string char)))
                      command " "))))

(defun gemini-companion-check-test-becomes (regexp)
  "Assert that there is a row that matches REGEXP in the end."
  (gemini-companion-test-eventually
    (gemini-companion-overview-test-keys "g")
    (seq-some (apply-partially #'string-match-p regexp)
              (gemini-companion-overview-test-lines))))

(ert-deftest gemini-companion-check-has-its-result-below-the-turn ()
  (gemini-companion-check-test-with '(("make.sh" "echo a:1: error: bad; exit 3\n"))
    (let ((windows (mapcar #'window-buffer (window-list))))
      (gemini-companion-check-test-runs "touch ran")
      (should (string-match-p "\\`Run in .*: touch ran\\? (y, n) "
                              (car gemini-companion-check-test-asked)))
      (gemini-companion-check-test-becomes "\\` *✓ touch ran [0-9]+ s\\_>")
      (should (file-exists-p "ran"))
      (should (equal windows (mapcar #'window-buffer (window-list)))))
    (gemini-companion-check-test-runs "sh make.sh")
    (gemini-companion-check-test-becomes "✗ sh make.sh: 1 error")
    (gemini-companion-check-test-runs "exit 3")
    (gemini-companion-check-test-becomes "✗ exit 3: exit code 3")))

(ert-deftest gemini-companion-check-takes-as-long-as-its-command ()
  (gemini-companion-check-test-with nil
    (let ((late 0)
          (time (symbol-function 'float-time))
          (ask (symbol-function 'read-char-from-minibuffer)))
      (cl-letf (((symbol-function 'float-time)
                 (lambda (&optional of)
                   (if of (funcall time of) (+ late (funcall time)))))
                ;; The user thinks about the question for a quarter of an hour.
                ((symbol-function 'read-char-from-minibuffer)
                 (lambda (&rest arguments)
                   (setq late 1000)
                   (apply ask arguments))))
        (gemini-companion-check-test-runs "touch ran")
        (gemini-companion-test-eventually (file-exists-p "ran"))
        (gemini-companion-check-test-becomes "✓ touch ran ")
        (should-not (seq-some (apply-partially #'string-search " 16 min ")
                              (gemini-companion-overview-test-lines)))))))

(ert-deftest gemini-companion-check-leads-to-its-output-and-errors ()
  (gemini-companion-check-test-with '(("make.sh" "echo a:1: error: bad; exit 3\n"))
    (gemini-companion-check-test-runs "sh make.sh")
    (gemini-companion-check-test-becomes "1 error")
    (gemini-companion-overview-test-go-to "1 error")
    (gemini-companion-overview-test-keys "RET")
    (should (string-match-p "\\`\\*gemini check: " (buffer-name (window-buffer))))
    (next-error)
    (should (equal "a" (file-name-nondirectory
                        (buffer-file-name (window-buffer)))))
    (kill-buffer (seq-find (lambda (buffer)
                             (string-prefix-p "*gemini check" (buffer-name buffer)))
                           (buffer-list)))
    (gemini-companion-list)
    (gemini-companion-overview-test-go-to "1 error")
    (should (string-match-p "Output of this check is gone"
                            (gemini-companion-check-test-keys "RET")))))

(ert-deftest gemini-companion-check-comments-with-the-first-errors-that-are-shared ()
  (gemini-companion-check-test-with
      '(("make.sh" "for i in 1 2 3 4 5 6 7; do echo a:$i: error: bad $i; done
echo .env:1: error: S3CRET; echo a:1: error: no password in .env; exit 1\n"))
    (gemini-companion-check-test-runs "sh make.sh")
    (gemini-companion-check-test-becomes "9 errors")
    (gemini-companion-overview-test-go-to "9 errors")
    (gemini-companion-overview-test-keys "c RET")
    (let ((opening (gemini-companion-comment-opening session)))
      (should (string-prefix-p "`sh make.sh` failed: 9 errors\n> a:1: error: bad 1\n> a:2"
                               opening))
      (should (= 6 (length (split-string opening "\n"))))
      (should-not (string-search ".env" opening)))
    (gemini-companion-comment-opening-set session nil)
    ;; The names come first, and the rest is not shared.
    (gemini-companion-check-test-runs "grep -n . .env")
    (gemini-companion-check-test-becomes "✗ grep -n . .env")
    (gemini-companion-overview-test-go-to "grep -n . .env")
    (gemini-companion-overview-test-keys "c RET")
    (should (string-prefix-p "The check failed: "
                             (gemini-companion-comment-opening session)))
    (gemini-companion-comment-opening-set session nil)))

(ert-deftest gemini-companion-check-leaves-out-errors-of-other-directories-not-shared ()
  "The name of a file is relative to the directory in which it was printed."
  (gemini-companion-check-test-with
      '((".geminiignore" "/sub/key.c\n/my key.c\n")
        ("sub/key.c" "1\n") ("sub/b.c" "1\n") ("my key.c" "1\n")
        ("make.sh" "echo \"make: Entering directory 'sub'\"
echo key.c:1: error: S3CRET
echo b.c:1: error: bad
echo b.c:2: error: no key.c
echo \"make: Leaving directory 'sub'\"
echo my key.c:1: error: S3CRET
echo gone.c:1: error: S3CRET
exit 1\n"))
    (gemini-companion-check-test-runs "sh make.sh")
    (gemini-companion-check-test-becomes "5 errors")
    (gemini-companion-overview-test-go-to "5 errors")
    (gemini-companion-overview-test-keys "c RET")
    (should (equal "`sh make.sh` failed: 5 errors\n> b.c:1: error: bad"
                   (gemini-companion-comment-opening session)))
    (gemini-companion-comment-opening-set session nil)))

(ert-deftest gemini-companion-check-has-an-output-to-send ()
  (gemini-companion-test-needs-add-on 'prompts)
  (require 'gemini-companion-send)
  (gemini-companion-check-test-with
      '(("make.sh" "echo Trace; echo a:1: error: bad; cat .env; exit 1\n")
        (".env" "S3CRET\n"))
    (gemini-companion-check-test-runs "sh make.sh")
    (gemini-companion-check-test-becomes "1 error")
    (gemini-companion-overview-test-go-to "1 error")
    (gemini-companion-overview-test-keys "RET")
    (with-current-buffer (window-buffer)
      (goto-char (point-min))
      (search-forward "Trace")
      (should (equal '("Trace") (gemini-companion-send-things))))))

(ert-deftest gemini-companion-check-that-never-ends-is-killed-with-its-buffer ()
  (gemini-companion-check-test-with nil
    (gemini-companion-check-test-runs "sleep 1000")
    (gemini-companion-check-test-becomes "Running since .*: sleep 1000")
    (let* ((buffer (seq-find (lambda (buffer)
                               (string-prefix-p "*gemini check" (buffer-name buffer)))
                             (buffer-list)))
           (process (get-buffer-process buffer)))
      (kill-buffer buffer)
      (gemini-companion-check-test-becomes "✗ sleep 1000: killed")
      (gemini-companion-test-eventually (not (process-live-p process))))))

(ert-deftest gemini-companion-check-says-that-a-cli-has-worked-meanwhile ()
  (gemini-companion-check-test-with nil
    (gemini-companion-check-test-runs "sleep 0.3")
    (gemini-companion-test-writes "a" "3\n" session)
    (gemini-companion-check-test-becomes "✓ sleep 0.3 .*, maybe of a state in between")))

(ert-deftest gemini-companion-check-says-that-it-does-not-run-on-other-hosts ()
  (gemini-companion-check-test-with nil
    (let ((remote (gemini-companion-test-session-like session :remote "/ssh:far:")))
      (cl-letf (((symbol-function 'gemini-companion-overview-row-session)
                 (lambda (_row) remote)))
        (should (string-match-p "runs on another host"
                                (gemini-companion-check-test-keys "V")))))))

(ert-deftest gemini-companion-check-finds-errors-without-blocking-or-connecting ()
  "Neither a line for which `compile' takes a minute nor a remote name is followed."
  (let ((connected nil))
    (gemini-companion-check-test-with
        `(("odd" ,(concat "make: Entering directory '/far:/x'\na.c:1: error: bad\n"
                          "make: Leaving directory '/far:/x'\n"
                          "/far:/y.c:1: error: bad\n"
                          (apply #'concat (make-list 2000 "a.b:1: ")) "\n")))
      (let ((file-name-handler-alist
             (cons (cons "\\`/far:" (lambda (&rest call)
                                      (push call connected)
                                      (error "No host")))
                   file-name-handler-alist))
            (began (float-time)))
        (gemini-companion-check-test-runs "cat odd; exit 1")
        (gemini-companion-check-test-becomes "✗ cat odd; exit 1: [0-9]+ errors")
        (should (< (- (float-time) began) 30))
        ;; `compile' would go there itself.
        (ignore-errors
          (gemini-companion-check-test-runs "cd /far:/x; true")))
      (should-not connected))))

(ert-deftest gemini-companion-check-kills-a-command-that-prints-without-end ()
  (gemini-companion-check-test-with nil
    (let ((gemini-companion-check-most-output 100000))
      (gemini-companion-check-test-runs "yes")
      (gemini-companion-check-test-becomes "✗ yes: killed"))))

(ert-deftest gemini-companion-check-that-runs-is-killed-for-the-next-one-by-a-yes ()
  (gemini-companion-check-test-with nil
    (gemini-companion-overview-test-turns session
      ("First" ("a" "3\n")) ("Second" ("a" "4\n")))
    (gemini-companion-list)
    (gemini-companion-overview-test-keys "2")
    (gemini-companion-overview-test-go-to "First")
    (gemini-companion-check-test-runs "sleep 1000")
    (gemini-companion-overview-test-go-to "Second")
    (should-error (gemini-companion-overview-test-keys
                   "C-u V C-a C-k t r u e RET y n o RET"))
    (gemini-companion-overview-test-go-to "Second")
    ;; The yes to the command is known.
    (gemini-companion-overview-test-keys "C-u V C-a C-k t r u e RET y e s RET")
    (gemini-companion-overview-test-keys "3")
    (gemini-companion-check-test-becomes "✓ true")
    (gemini-companion-check-test-becomes "✗ sleep 1000: killed")
    (gemini-companion-overview-test-go-to "sleep 1000")
    (should (string-match-p "Output of this check is gone"
                            (gemini-companion-check-test-keys "RET")))))

;;;; What must not run

(defun gemini-companion-check-test-running ()
  "Return the processes of commands that are running."
  (seq-filter #'process-live-p
              (seq-mapcat (lambda (buffer)
                            (and (string-prefix-p "*gemini check" (buffer-name buffer))
                                 (list (get-buffer-process buffer))))
                          (buffer-list))))

(defun gemini-companion-check-test-runs-nothing ()
  "Assert that no command is running, and that none has made a file."
  (should-not (gemini-companion-check-test-running))
  (should-not (file-exists-p "ran")))

(ert-deftest gemini-companion-check-runs-nothing-by-local-variables-of-a-project ()
  "The user types RET, and answers the question by no."
  (dolist (variables
           '(;; A value that Emacs takes for safe.
             ((compile-command . "touch ran"))
             ((compilation-read-command . nil) (compile-command . "touch ran"))
             ;; `compile' would evaluate it.
             ((compile-command . (write-region "" nil "ran")))
             ((eval . (write-region "" nil "ran")))
             ((eval . (shell-command "touch ran")))
             ;; Those that say what is safe.
             ((enable-local-variables . :all) (enable-local-eval . t)
              (eval . (shell-command "touch ran")))
             ((safe-local-variable-values . ((eval . (shell-command "touch ran"))))
              (eval . (shell-command "touch ran")))
             ((safe-local-eval-forms . ((shell-command "touch ran")))
              (eval . (shell-command "touch ran")))
             ((compilation-start-hook . (lambda (_) (shell-command "touch ran"))))
             ((compilation-process-setup-function . (lambda () (shell-command "touch ran")))
              (compile-command . "touch ran"))
             ((gemini-companion-check--agreed . (("ROOT" . "touch ran")))
              (compile-command . "touch ran"))
             ((shell-file-name . "/usr/bin/touch") (shell-command-switch . "ran")
              (compile-command . "ran"))))
    (ert-info ((prin1-to-string variables))
      (gemini-companion-check-test-with nil
        (gemini-companion-test-write
         ".dir-locals.el"
         (string-replace "ROOT" (file-truename default-directory)
                         (prin1-to-string (list (cons nil variables)))))
        (with-current-buffer (find-file-noselect "a")
          ;; Those that Emacs takes for safe.
          (let ((enable-local-variables :safe))
            (hack-local-variables)))
        (should (equal "Command not run"
                       (gemini-companion-check-test-keys "V RET n")))
        (gemini-companion-check-test-runs-nothing)))))

(ert-deftest gemini-companion-check-runs-nothing-by-local-variables-of-a-file ()
  (gemini-companion-check-test-with nil
    (gemini-companion-test-writes
     "a" (concat "/* Local Variables:\ncompile-command: \"touch ran\"\n"
                 (format "gemini-companion-check--agreed: ((%S . \"touch ran\"))\n"
                         (file-truename default-directory))
                 "eval: (shell-command \"touch ran\")\nEnd: */\n")
     session)
    (with-current-buffer (find-file-noselect "a")
      (let ((enable-local-variables :safe))
        (hack-local-variables)))
    (gemini-companion-overview-test-keys "g")
    (should (equal "Command not run"
                   (gemini-companion-check-test-keys "V RET RET SPC n")))
    ;; That of the file is not offered.
    (should-not (string-search "touch" (car gemini-companion-check-test-asked)))
    (gemini-companion-check-test-runs-nothing)))

(ert-deftest gemini-companion-check-agrees-to-exactly-one-text-in-one-directory ()
  (gemini-companion-check-test-with nil
    (gemini-companion-check-test-runs "true")
    (gemini-companion-check-test-becomes "✓ true")
    (setq gemini-companion-check-test-asked nil)
    (gemini-companion-check-test-keys "V")
    (should-not gemini-companion-check-test-asked)
    (gemini-companion-test-eventually (not (gemini-companion-check-test-running)))
    (dolist (text '("true SPC ; touch SPC ran" "True"))
      (should (equal "Command not run"
                     (gemini-companion-check-test-keys
                      (format "C-u V C-a C-k %s RET n"
                              (replace-regexp-in-string "[a-zA-Z]\\{2,\\}"
                                                        (lambda (word)
                                                          (if (equal word "SPC")
                                                              word
                                                            (mapconcat #'string word " ")))
                                                        text t))))))
    (should (= 2 (length gemini-companion-check-test-asked)))
    ;; Another directory.
    (make-directory "sub")
    (let ((other (gemini-companion-test-session-like
                  session :directory (expand-file-name "sub"))))
      (cl-letf (((symbol-function 'gemini-companion-overview-row-session)
                 (lambda (_row) other)))
        (gemini-companion-check-test-keys "V C-a C-k t r u e RET n")))
    (should (= 3 (length gemini-companion-check-test-asked)))
    (gemini-companion-check-test-runs-nothing)))

(ert-deftest gemini-companion-check-asks-each-time-while-what-it-reads-is-unreviewed ()
  "A yes is for the files as they were."
  (gemini-companion-check-test-with '(("Makefile" "all:\n\ttrue\n") ("run" "true\n"))
    (gemini-companion-check-test-runs "make")
    (gemini-companion-check-test-becomes "✓ make")
    (gemini-companion-check-test-runs "sh ./run")
    (gemini-companion-check-test-becomes "✓ sh ./run")
    (pcase-dolist (`(,file ,text)
                   '(("Makefile" "all:\n\ttouch ran\n") ("tests/conftest.py" "x = 1\n")
                     ("package.json" "{}\n") (".dir-locals.el" "()\n") ("lib/x.el" "1\n")
                     ;; The command names it.
                     ("run" "touch ran\n")))
      (ert-info (file)
        (make-directory "tests" t)
        (make-directory "lib" t)
        (gemini-companion-test-writes file text session)
        (gemini-companion-overview-test-keys "g")
        (dotimes (_ 2)
          (setq gemini-companion-check-test-asked nil)
          (should (equal "Command not run" (gemini-companion-check-test-keys "V n")))
          (should (string-prefix-p "Not reviewed: "
                                   (car gemini-companion-check-test-asked)))
          (should (string-search file (car gemini-companion-check-test-asked))))
        (gemini-companion-check-test-runs-nothing)
        ;; Reviewed, the earlier yes holds.
        (gemini-companion-overview-test-go-to (concat "  " (regexp-quote file) "\\_>"))
        (gemini-companion-overview-test-keys "k")
        (should-not (gemini-companion-test-marked (find-file-noselect file)))))))

(ert-deftest gemini-companion-check-names-what-an-earlier-turn-has-written ()
  (gemini-companion-check-test-with '(("Makefile" "all:\n\ttrue\n"))
    (gemini-companion-check-test-runs "make")
    (gemini-companion-check-test-becomes "✓ make")
    (gemini-companion-overview-test-turns session
      ("First" ("Makefile" "all:\n\ttouch ran\n"))
      ("Second" ("a" "4\n")))
    (gemini-companion-list)
    (gemini-companion-overview-test-go-to "Second")
    (should (equal "Command not run" (gemini-companion-check-test-keys "V n")))
    (should (string-prefix-p "Not reviewed: Makefile."
                             (car gemini-companion-check-test-asked)))
    (gemini-companion-check-test-runs-nothing)))

(ert-deftest gemini-companion-check-refuses-what-changes-during-the-question ()
  (gemini-companion-check-test-with '(("Makefile" "all:\n\ttrue\n"))
    (cl-letf (((symbol-function 'gemini-companion-choice-key)
               (lambda (&rest _)
                 (gemini-companion-test-writes "Makefile" "all:\n\ttouch ran\n" session)
                 ?y)))
      (should (string-match-p "changed since the question"
                              (gemini-companion-check-test-keys
                               "V C-a C-k m a k e RET"))))
    (gemini-companion-check-test-runs-nothing)))

(ert-deftest gemini-companion-check-refuses-what-changes-as-the-previous-one-is-killed ()
  (gemini-companion-check-test-with '(("Makefile" "all:\n\ttrue\n"))
    (gemini-companion-check-test-runs "make")
    (gemini-companion-check-test-becomes "✓ make")
    (gemini-companion-check-test-runs "sleep 1000")
    (gemini-companion-check-test-becomes "Running since")
    (cl-letf (((symbol-function 'yes-or-no-p)
               (lambda (&rest _)
                 (gemini-companion-test-writes "Makefile" "all:\n\ttouch ran\n" session)
                 t)))
      (should (string-match-p "changed since the question"
                              (gemini-companion-check-test-keys
                               "C-u V C-a C-k m a k e RET"))))
    (gemini-companion-check-test-becomes "✗ sleep 1000: killed")
    (gemini-companion-check-test-runs-nothing)))

(ert-deftest gemini-companion-check-asks-again-once-the-mode-was-turned-off ()
  "Without the mode, it is unknown what is not reviewed."
  (gemini-companion-check-test-with nil
    (gemini-companion-check-test-runs "true")
    (gemini-companion-check-test-becomes "✓ true")
    (gemini-companion-part-stop 'check)
    (should (equal "Command not run"
                   (gemini-companion-check-test-keys "V C-a C-k t r u e RET n")))))

(ert-deftest gemini-companion-check-refuses-a-command-that-cannot-be-shown ()
  (dolist (command (list "true\ntouch ran" "true \e[8m; touch ran"
                         "true #\u202E; touch ran" "true \u200B; touch ran"
                         "true\r; touch ran"
                         (concat "true " (make-string 3000 ?\s) "; touch ran")
                         (concat "true " (make-string 3000 ?x) "; touch ran")))
    (ert-info ((substring command 0 12))
      (gemini-companion-check-test-with nil
        ;; The project has it, or the user pastes it.
        (gemini-companion-test-write
         ".dir-locals.el"
         (prin1-to-string `((nil . ((compile-command . ,command))))))
        (gemini-companion-check-test-keys "V RET n")
        (kill-new command)
        (should (string-match-p "invisible characters\\|too long to show"
                                (gemini-companion-check-test-keys
                                 "V C-a C-k C-y M-y RET y")))
        (gemini-companion-check-test-runs-nothing)))))

(ert-deftest gemini-companion-check-again-in-its-buffer-asks-as-well ()
  (gemini-companion-check-test-with '(("Makefile" "all:\n\ttrue\n"))
    (gemini-companion-check-test-runs "make")
    (gemini-companion-check-test-becomes "✓ make")
    (gemini-companion-test-writes "Makefile" "all:\n\ttouch ran\n" session)
    (gemini-companion-overview-test-go-to "✓ make")
    (gemini-companion-overview-test-keys "RET")
    (pcase-dolist (`(,keys ,regexp) '(("g n" "\\`Command not run\\'")
                                      ;; That of Emacs does not ask.
                                      ("M-x recompile RET" "asks before it runs")))
      (should (condition-case problem
                  (execute-kbd-macro (kbd keys))
                (user-error (string-match-p regexp (cadr problem))))))
    (gemini-companion-check-test-runs-nothing)))

;;; gemini-companion-check-test.el ends here
