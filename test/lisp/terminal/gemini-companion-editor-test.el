;;; gemini-companion-editor-test.el --- Tests of the editor key of a CLI  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-cli)
(require 'gemini-companion-clients)
(require 'gemini-companion-editor)
(require 'gemini-companion-terminal)
(require 'gemini-companion-test-helper)
(require 'server)

(defmacro gemini-companion-editor-test-with (&rest body)
  "Run BODY in a directory with a server of Emacs, and the option set.
The programs emacsclient and ed write their arguments to the file `called'."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory nil
     (let* ((gemini-companion-run-editor t)
            (gemini-companion-install-directory (expand-file-name "ours/"))
            (server-process (make-pipe-process :name "server" :noquery t))
            (server-use-tcp nil)
            (server-socket-dir "/run/emacs")
            (server-name "work")
            (called (expand-file-name "called"))
            (exec-path (list (expand-file-name "bin/") "/bin" "/usr/bin"))
            (process-environment
             (append (list "VISUAL" (concat "EDITOR=" (expand-file-name "bin/ed")))
                     process-environment)))
       (dolist (program '("emacsclient" "ed"))
         (gemini-companion-test-write
          (concat "bin/" program)
          (format "#!/bin/sh\necho %s \"$@\" >>%s\n" program called))
         (set-file-modes (concat "bin/" program) #o700))
       (unwind-protect
           (progn ,@body)
         (delete-process server-process)))))

(defun gemini-companion-editor-test-edit (environment called &rest files)
  "Run the editor of ENVIRONMENT with FILES, as CLIs and git do.
Return what CALLED has then, a file, and delete that."
  (let ((process-environment environment))
    (should (equal 0 (apply #'call-process (getenv "VISUAL") nil nil nil files)))
    (prog1 (string-trim (gemini-companion-test-file-text called))
      (delete-file called))))

(ert-deftest gemini-companion-editor-opens-only-the-prompt-of-the-cli-here ()
  (gemini-companion-editor-test-with
    (pcase-dolist (`(,client . ,file)
                   '(("gemini" . "/tmp/gemini-edit-Ab1/buffer.txt")
                     ("qwen" . "/tmp/qwen-edit-Ab1/buffer.txt")))
      (let ((environment (gemini-companion-editor-environment
                          client process-environment)))
        (should (equal (concat "emacsclient --quiet --socket-name=/run/emacs/work "
                               file)
                       (gemini-companion-editor-test-edit environment called file)))
        (dolist (other '("/src/.git/COMMIT_EDITMSG" "/src/buffer.txt"
                         "/tmp/claude-edit-1/buffer.txt" "a b"
                         "/src/tmp/shop/1a/plans/a.md"))
          (should (equal (concat "ed " other)
                         (gemini-companion-editor-test-edit environment called
                                                            other))))))
    ;; So is the plan of a CLI that writes it to a file.
    (let ((process-environment (append '("HOME=/home/me" "GEMINI_CLI_HOME")
                                       process-environment))
          (plan "/home/me/.gemini/tmp/shop/1a/plans/add search.md"))
      (pcase-dolist (`(,client . ,program)
                     '(("gemini" . "emacsclient --quiet --socket-name=/run/emacs/work ")
                       ("qwen" . "ed ")))
        (should (equal (concat program plan)
                       (gemini-companion-editor-test-edit
                        (gemini-companion-editor-environment client
                                                             process-environment)
                        called plan)))))
    ;; An editor may have arguments.
    (let ((process-environment (cons (concat "VISUAL=" (getenv "EDITOR") " -x")
                                     process-environment)))
      (should (equal "ed -x a"
                     (gemini-companion-editor-test-edit
                      (gemini-companion-editor-environment "qwen"
                                                           process-environment)
                      called "a"))))
    (let ((server-use-tcp t)
          (server-auth-dir "/home/.emacs.d/server/"))
      (should (member "GEMINI_COMPANION_EDITOR_SERVER=--server-file=\
/home/.emacs.d/server/work"
                      (gemini-companion-editor-environment "gemini" nil))))))

(ert-deftest gemini-companion-editor-is-changed-only-where-the-user-wants-it ()
  (gemini-companion-editor-test-with
    (let ((unchanged-p (lambda (client)
                         (eq process-environment
                             (gemini-companion-editor-environment
                              client process-environment)))))
      (should-not (funcall unchanged-p "gemini"))
      ;; The file of its key is not known.
      (should (funcall unchanged-p "copilot"))
      (let ((gemini-companion-run-editor nil))
        (should (funcall unchanged-p "gemini")))
      (let ((server-process nil))
        (should (funcall unchanged-p "gemini")))
      (let ((gemini-companion-install-directory (expand-file-name "a b/")))
        (should (funcall unchanged-p "gemini")))
      ;; A CLI elsewhere could not reach this Emacs.
      (pcase-dolist (`(,remote . ,found) '((nil . t) ("/ssh:far:" . nil)))
        (should (eq found
                    (and (member (concat "VISUAL="
                                         (expand-file-name "ours/editor"))
                                 (gemini-companion-cli-environment
                                  (gemini-companion-terminal-cli-make
                                   :client "gemini" :remote remote
                                   :environment process-environment)))
                         t)))))))

;;; gemini-companion-editor-test.el ends here
