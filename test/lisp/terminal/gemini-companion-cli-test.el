;;; gemini-companion-cli-test.el --- Tests of CLIs in terminals  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-cli)
(require 'gemini-companion-cli-test-helper)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-idle)
(require 'gemini-companion-part)
(require 'gemini-companion-server-test-helper)
(require 'gemini-companion-terminal)
(require 'project)
(require 'warnings)

(declare-function evil-mode "ext:evil-core")
(declare-function evil-normal-state "ext:evil-states")

(ert-deftest gemini-companion-run-turns-the-mode-on-and-waits-for-it ()
  (gemini-companion-run-test-with
    (make-directory "below")
    (find-file "a")
    (with-temp-buffer
      (setq-local default-directory (expand-file-name "below/" directory)
                  process-environment (append '("GC_TEST=x" "TMUX=y")
                                              process-environment))
      (gemini-companion-run))
    (switch-to-buffer (window-buffer))
    (should gemini-companion-mode)
    (should (equal (format "*gemini: %s*" name) (buffer-name)))
    (should (string-match-p "starts here when" (buffer-string)))
    (should-not gemini-companion-run-test-started)
    (let ((buffer (current-buffer)))
      (gemini-companion-run)
      (should (eq buffer (current-buffer)))
      (gemini-companion-test-eventually gemini-companion-run-test-started)
      (should (eq (get-buffer "a") gemini-companion-context--active))
      ;; In the root of the project, with the environment of the buffer, but not
      ;; of the terminal in which Emacs runs.
      (should (equal `(((,(executable-find "cat")) ,directory
                        (,(gemini-companion-run-test-port) "x" nil)))
                     gemini-companion-run-test-started))
      (let ((process (get-buffer-process buffer)))
        (signal-process process 'SIGSTOP)
        (gemini-companion-test-eventually (eq 'stop (process-status process)))
        (switch-to-buffer "*scratch*")
        (with-temp-buffer (gemini-companion-run))
        (gemini-companion-test-eventually (eq 'run (process-status process))))
      (should (eq buffer (window-buffer))))
    (pcase-dolist (`(,prefix . ,number) '(((4) . 2) ((4) . 3) (2 . 2)))
      (gemini-companion-run prefix)
      (should (equal (format "*gemini: %s (%d)*" name number) (buffer-name))))
    (should (equal 3 (length gemini-companion-run-test-started)))
    ;; The home directory may be under version control.
    (with-environment-variables (("HOME" directory))
      (with-temp-buffer
        (setq default-directory (expand-file-name "below/" directory))
        (gemini-companion-run)))
    (should (get-buffer "*gemini: below*"))))

(defun gemini-companion-run-test-end ()
  "End the CLI in this buffer, and wait until that is shown."
  (let ((buffer (current-buffer)))
    (process-send-eof (get-buffer-process buffer))
    (gemini-companion-test-eventually
      (stringp (buffer-local-value 'header-line-format buffer)))))

(defun gemini-companion-run-test-in-place (place &optional number)
  "Start the CLI in a buffer whose environment has the TMPDIR PLACE.
NUMBER is the prefix argument.  Return the buffer of the CLI."
  (with-temp-buffer
    (setq-local process-environment
                (cons (concat "TMPDIR=" place) process-environment))
    (save-window-excursion
      (gemini-companion-run number)
      (window-buffer))))

(ert-deftest gemini-companion-run-is-found-with-another-temporary-directory ()
  "As envrc or direnv set it, or the user by `setenv'."
  (gemini-companion-run-test-with-mode
    (let* ((place (make-temp-file "place" t))
           (file (expand-file-name
                  (concat "gemini/ide/" (file-name-nondirectory
                                         (gemini-companion-test-discovery-file)))
                  place))
           (token (lambda ()
                    (alist-get 'authToken (json-read-file file))))
           (found nil)
           (terminal gemini-companion-terminal)
           (gemini-companion-terminal
            (lambda (command)
              (push (file-exists-p file) found)
              (funcall terminal command)))
           buffers)
      (dotimes (n 2)
        (push (gemini-companion-run-test-in-place (concat place "/") (1+ n))
              buffers)
        (gemini-companion-test-eventually (length= found (1+ n))))
      ;; The CLI searches at its start only.
      (should (equal '(t t) found))
      (should (equal #o600 (file-modes file)))
      ;; Without another directory, nothing is waited for.
      (should (gemini-companion-run-test-in-place temporary 3))
      (should (length= found 3))
      (gemini-companion-test-kill-server)
      (gemini-companion-test-eventually (gemini-companion-server-ready-p))
      (should (equal (plist-get (gemini-companion-server-info) :token)
                     (funcall token)))
      (delete-file file)
      (gemini-companion-test-replacing (gemini-companion-restart))
      (gemini-companion-test-eventually (file-exists-p file))
      ;; The last one that needs it ends.
      (with-current-buffer (pop buffers)
        (gemini-companion-run-test-end))
      (gemini-companion-test-eventually (gemini-companion-server-idle-p))
      (should (file-exists-p file))
      (let ((kill-buffer-query-functions nil))
        (kill-buffer (pop buffers)))
      (gemini-companion-test-eventually (not (file-exists-p file)))
      ;; Without a server, Emacs removes it.
      (cl-flet ((known-p ()
                  (member file (mapcar #'cadr
                                       (plist-get (gemini-companion-server-info)
                                                  :discovery)))))
        ;; The server removes the file before Emacs has its answer.
        (gemini-companion-test-eventually (not (known-p)))
        (gemini-companion-run-test-in-place place)
        (gemini-companion-test-eventually (known-p)))
      (let ((pid (gemini-companion-test-pid)))
        (signal-process pid 'SIGSTOP)
        (gemini-companion-mode -1)
        (signal-process pid 'SIGKILL)
        (gemini-companion-test-eventually (not (file-exists-p file))))
      (delete-directory place t))))

(ert-deftest gemini-companion-run-writes-no-token-into-a-workspace-root ()
  (gemini-companion-run-test-with-mode
    (let ((place (expand-file-name ".direnv/tmp" directory))
          (warnings nil))
      (cl-letf (((symbol-function 'display-warning)
                 (lambda (_type message &rest _) (push message warnings))))
        (gemini-companion-run-test-in-place place)
        (gemini-companion-test-eventually gemini-companion-run-test-started)
        (gemini-companion-test-eventually warnings))
      (should (string-prefix-p (concat place " is in a workspace root; set TMPDIR")
                               (car warnings)))
      (should-not (file-exists-p ".direnv"))
      (pcase-let ((`(note ,text ,remedy)
                   (gemini-companion-cli-finding
                    "gemini" directory (concat place "/gemini/ide"))))
        (should (string-match-p
                 (format "it searches %s.*, but the discovery file is in /"
                         (regexp-quote place))
                 text))
        (should (string-prefix-p "Start it with the same TMPDIR as Emacs" remedy))))))

(ert-deftest gemini-companion-run-reports-a-cli-that-cannot-start ()
  (gemini-companion-run-test-with-mode
    (write-region "#!/usr/bin/env no-such-node\n" nil "cli" nil 'silent)
    (set-file-modes "cli" #o755)
    (let* ((gemini-companion-run-commands
            `(("gemini" . ,(expand-file-name "cli"))))
           (gemini-companion-terminal 'term)
           (buffer (progn (gemini-companion-run) (window-buffer))))
      (with-current-buffer buffer
        (gemini-companion-test-eventually (stringp header-line-format))
        (pcase-let ((`((,_title ,mark ,text ,remedy . ,_))
                     (gemini-companion-part-findings 'cli directory)))
          (should (eq 'bad mark))
          (should (string-match-p
                   "Gemini CLI .*did not start (exit status 127)\n.*no-such-node"
                   text))
          (should-not (string-search "exited abnormally" text))
          (should (string-search "PATH of Emacs" remedy)))
        ;; One that starts is none any more, and neither is one that has run.
        (setq gemini-companion-run-commands '(("gemini" "sh" "-c" "exit 3")))
        (gemini-companion-run)
        (gemini-companion-test-eventually (stringp header-line-format))
        (should-not (gemini-companion-part-findings 'cli directory))))))

(ert-deftest gemini-companion-run-hides-and-starts-again-in-its-window ()
  (gemini-companion-run-test-with-mode
    (let ((gemini-companion-run-side-window 'bottom))
      (dolist (side '(bottom nil bottom))
        (gemini-companion-run)
        (gemini-companion-terminal-show (window-buffer))
        (should (eq side (window-parameter nil 'window-side)))
        (should (equal (if side 2 1) (length (window-list)))))
      (let ((window (selected-window)) (buffer (current-buffer)))
        (pcase-dolist (`(,dedicated . ,evil) `((,(window-dedicated-p)) (t . t)))
          (set-window-dedicated-p nil dedicated)
          (when (and evil (require 'evil nil t))
            (evil-mode)
            (evil-normal-state))
          (gemini-companion-run-test-end)
          (should (string-match-p "Gemini CLI: finished; g restarts it, \
r resumes a conversation, q quits"
                                  header-line-format))
          (should (eq 'gemini-companion-run (key-binding "g")))
          (gemini-companion-run)
          (should (eq window (selected-window)))
          (should (eq buffer (window-buffer)))
          (should (eq dedicated (window-dedicated-p)))
          (should-not (stringp header-line-format))
          (should-not (string-search "finished" (buffer-string))))
        (when (fboundp 'evil-mode) (evil-mode -1)))
      (should (equal 3 (length gemini-companion-run-test-started)))
      (gemini-companion-run-test-end)
      (let ((debug-on-error nil)        ; ERT of Emacs 28 sets it
            (gemini-companion-terminal
             (lambda (_command) (error "No space, 100%% used"))))
        (gemini-companion-run)
        (should (equal "No space, 100% used\n" (buffer-string)))))))

(ert-deftest gemini-companion-run-reports-a-server-that-did-not-start ()
  (gemini-companion-run-test-with
    (let ((gemini-companion-server-command '("sh" "-c" "exit 1")) reported)
      (cl-letf (((symbol-function 'display-warning)
                 (lambda (&rest _) (setq reported t))))
        (gemini-companion-run)
        (gemini-companion-test-eventually reported)
        (should (equal "The server is not running\n" (buffer-string)))
        (should-not gemini-companion-run-test-started)))))

;;;; Which CLI

(defmacro gemini-companion-run-test-with-clis (programs &rest body)
  "Run BODY in a project where only PROGRAMS are installed, which run cat.
HOME is the project, and nothing is saved; `asked' collects the
prompts, the last first, and `saved' what would be saved."
  (declare (indent 1) (debug t))
  `(gemini-companion-run-test-with-mode
     (dolist (program ,programs)
       (write-region (format "#!/bin/sh\nexec %s\n" (executable-find "cat"))
                     nil program nil 'silent)
       (set-file-modes program #o755))
     (let ((process-environment (append (list (concat "HOME=" directory)
                                              "GEMINI_CLI_HOME" "QWEN_HOME")
                                        process-environment))
           (exec-path (list directory))
           ;; Git is not in it.
           (vc-handled-backends nil)
           (gemini-companion-run-commands nil)
           (gemini-companion-run-client nil)
           (asked nil)
           (saved nil))
       (ignore asked saved)
       (cl-letf (((symbol-function 'customize-save-variable)
                  (lambda (variable value)
                    (set variable value)
                    (push (cons variable value) saved))))
         ,@body))))

(defmacro gemini-companion-run-test-answering (answer &rest body)
  "Run BODY with ANSWER to each question, and push its prompt to `asked'."
  (declare (indent 1) (debug t))
  `(cl-letf (((symbol-function 'completing-read)
              (lambda (prompt &rest _) (push prompt asked) ,answer))
             ((symbol-function 'y-or-n-p)
              (lambda (prompt) (push prompt asked) ,answer)))
     ,@body))

(defun gemini-companion-run-test-enable-ide ()
  "Set what the CLIs of this directory need."
  (dolist (directory '(".gemini" ".qwen"))
    (gemini-companion-test-write (concat directory "/settings.json")
                                 "{\"ide\": {\"enabled\": true},
\"tools\": {\"approvalMode\": \"default\"}}")))

(ert-deftest gemini-companion-run-asks-once-which-cli-to-start ()
  (gemini-companion-run-test-with-clis '("qwen")
    (gemini-companion-run-test-enable-ide)
    (gemini-companion-run-test-answering (ert-fail "Asked")
      (gemini-companion-run)
      (should (equal (format "*qwen: %s*" name) (buffer-name)))
      (should (equal (list (expand-file-name "qwen") "--input-file"
                           (buffer-local-value 'gemini-companion-input-file
                                               (current-buffer)))
                     (caar gemini-companion-run-test-started)))))
  (gemini-companion-run-test-with-clis '("gemini" "qwen")
    (gemini-companion-run-test-enable-ide)
    (gemini-companion-run-test-answering "Qwen Code"
      (gemini-companion-run)
      (should (equal '((gemini-companion-run-client . "qwen")) saved))
      (kill-buffer)
      (let ((default-directory directory))
        (gemini-companion-run))
      (should (equal (format "*qwen: %s*" name) (buffer-name)))
      (should (equal 1 (length asked))))
    ;; The CLI of the project counts, whichever would be started.
    (switch-to-buffer "*scratch*")
    (let ((gemini-companion-run-client "gemini")
          (default-directory directory))
      (gemini-companion-run))
    (should (equal (format "*qwen: %s*" name) (buffer-name)))
    (gemini-companion-run-test-answering "Gemini CLI"
      (gemini-companion-run '(4))
      (should (equal (format "*gemini: %s*" name) (buffer-name)))
      (should (equal "qwen" gemini-companion-run-client))
      (should (equal 2 (length asked))))))

(ert-deftest gemini-companion-run-offers-to-set-what-is-not-set ()
  (pcase-dolist (`(,client ,answer ,text . ,questions)
                 '(("gemini" t "" "IDE integration is off .*; change this setting\\? \\'")
                   ("qwen" t "{}" "IDE integration is off" "may write without asking")
                   ("qwen" t "{\"tools\": {\"approvalMode\": \"yolo\"}}"
                    "IDE integration is off")
                   ("gemini" nil "" "IDE integration is off" "IDE integration is")))
    (gemini-companion-run-test-with-clis (list client)
      (let ((file (expand-file-name (format ".%s/settings.json" client))))
        (unless (equal "" text)
          (gemini-companion-test-write file text))
        (gemini-companion-run-test-answering answer
          (gemini-companion-run)
          (gemini-companion-run '(4)))
        (should (equal (length questions) (length asked)))
        (should (seq-every-p #'identity
                             (seq-mapn #'string-match-p questions (reverse asked))))
        (should (equal 2 (length gemini-companion-run-test-started)))
        (should (eq answer
                    (and (file-exists-p file)
                         (string-search "\"enabled\": true"
                                        (gemini-companion-test-file-text file))
                         t)))))))

(ert-deftest gemini-companion-run-starts-although-nothing-can-be-saved ()
  (gemini-companion-run-test-with-clis '("gemini" "qwen")
    (make-directory ".gemini")
    (make-symbolic-link "/dev/null/settings.json" ".gemini/settings.json")
    (cl-letf (((symbol-function 'customize-save-variable)
               (lambda (&rest _) (error "File is write-protected"))))
      (ert-with-message-capture shown
        (gemini-companion-test-demoted
          (gemini-companion-run-test-answering "Gemini CLI"
            (gemini-companion-run)))
        (pcase-dolist (text '("Setting not saved (Opening output file: Not a "
                              "; set ide.enabled to true where that file is created"
                              "Option not saved: File is write-protected"))
          (should (string-search text shown)))))
    (should (equal 1 (length gemini-companion-run-test-started)))))

(ert-deftest gemini-companion-run-saves-nothing-before-the-installation ()
  (gemini-companion-run-test-with-clis '("gemini" "qwen")
    (gemini-companion-mode -1)
    (let ((gemini-companion-server-command nil)
          (gemini-companion-install-directory (expand-file-name "none"))
          (warning-minimum-log-level :emergency))
      (gemini-companion-run-test-answering "Gemini CLI" (gemini-companion-run)))
    (should-not gemini-companion-mode)
    (should-not saved)
    (should-not (file-exists-p ".gemini/settings.json"))
    ;; As if they were installed.
    (gemini-companion-run-test-answering "Gemini CLI" (gemini-companion-run))
    (should (equal '((gemini-companion-run-client . "gemini")) saved))))

(ert-deftest gemini-companion-run-opens-beside-the-file-where-that-fits ()
  (gemini-companion-run-test-with-mode
    (dolist (beside '(nil t))
      (delete-other-windows)
      (switch-to-buffer "*scratch*")
      (let ((split-width-threshold (and beside (frame-width))))
        (gemini-companion-run '(4)))
      (should (eq beside (window-at-side-p nil 'top)))
      (should (equal 2 (length (window-list)))))))

(ert-deftest gemini-companion-run-refuses-with-the-remedy ()
  (gemini-companion-run-test-with
    (pcase-dolist
        (`(,remedy . ,bindings)
         '(("npm install -g @google/gemini-cli"
            (gemini-companion-run-commands ("gemini" . "no-such-gemini")))
           ("no terminal on Windows"
            (system-type . windows-nt) (gemini-companion-terminal))
           ("switch to a buffer of a project"
            (default-directory . "/") (project-find-functions))
           ("does not exist; switch to another buffer"
            (default-directory . "/no/such/directory/") (project-find-functions))))
      (cl-progv (mapcar #'car bindings) (mapcar #'cdr bindings)
        (should (string-match-p remedy (cadr (should-error (gemini-companion-run)
                                                           :type 'user-error)))))
      (should-not gemini-companion-mode)
      (should-not (get-buffer (format "*gemini: %s*" name))))))

;;;; Environment

(defun gemini-companion-run-test-port ()
  "Return the port of the server, a string."
  (number-to-string (plist-get (gemini-companion-server-info) :port)))

(ert-deftest gemini-companion-run-leads-children-to-the-server ()
  (let* ((theirs '("GEMINI_CLI_IDE_SERVER_PORT=7" "GEMINI_CLI_IDE_PID"
                   "GEMINI_CLI_IDE_WORKSPACE_PATH=/elsewhere"
                   "GEMINI_CLI_IDE_AUTH_TOKEN=theirs"
                   "QWEN_CODE_IDE_SERVER_PORT=8"
                   "QWEN_CODE_IDE_WORKSPACE_PATH=/elsewhere"))
         (process-environment
          (append theirs '("REMOTE_CONTAINERS") process-environment)))
    (gemini-companion-test-with-mode '()
      (should (equal (and (file-exists-p "/.dockerenv") "1")
                     (getenv "REMOTE_CONTAINERS")))
      (gemini-companion-mode -1)
      ;; Buffers with an environment of their own, from before and afterwards.
      (let* ((own (lambda (buffer)
                    (with-current-buffer buffer
                      (setq-local process-environment
                                  (cons "MINE=x"
                                        (default-value 'process-environment))))))
             (buffers (mapcar #'get-buffer-create '("earlier" "later" "other")))
             (before (funcall own "earlier")))
        (dolist (on '(t nil t nil))
          (gemini-companion-mode (if on 1 -1))
          (when on
            (gemini-companion-test-eventually (gemini-companion-server-ready-p))
            (funcall own "later"))
          (dolist (buffer buffers)
            (with-current-buffer buffer
              (should (equal (if on
                                 (list (gemini-companion-run-test-port)
                                       (number-to-string (emacs-pid)) nil nil
                                       (gemini-companion-run-test-port) nil)
                               '("7" nil "/elsewhere" "theirs" "8" "/elsewhere"))
                             (mapcar (lambda (entry)
                                       (getenv (car (split-string entry "="))))
                                     theirs)))
              (should (eq (equal "other" (buffer-name)) (null (getenv "MINE")))))))
        (should (equal before (buffer-local-value 'process-environment
                                                  (car buffers))))
        (mapc #'kill-buffer buffers)))))

(ert-deftest gemini-companion-run-hints-at-a-cli-until-it-is-connected ()
  (gemini-companion-run-test-with-mode
    (let ((gemini-companion-terminal 'term)
          (header (lambda () (eval (cadr header-line-format) t))))
      (pcase-dolist (`(,home ,text)
                     `(("/h" "Not connected; run /ide enable there")
                       (,directory "Not connected; start it in a project")))
        (gemini-companion-run '(4))
        (let* ((process (get-buffer-process (current-buffer)))
               (session
                (gemini-companion-session-make :id "one" :pid (process-id process))))
          (should (equal " " (funcall header)))
          (with-environment-variables (("HOME" home))
            (gemini-companion-test-run-timers))
          (should (string-search text (funcall header)))
          (let ((inhibit-read-only t))
            (goto-char (point-max))
            (save-excursion (insert (make-string 16 ?\n) " >   Type\n")))
          (set-window-start nil (point-max))
          (gemini-companion-terminal-show (current-buffer))
          (should (= (window-start) (symbol-value 'term-home-marker)))
          (gemini-companion-test-set-sessions (list session))
          (should (equal " " (funcall header)))
          (gemini-companion-test-set-sessions nil)))
      (gemini-companion-run '(4))
      (gemini-companion-mode -1)
      (should-not (gemini-companion-test-timers)))))

(ert-deftest gemini-companion-run-reports-the-cli-that-it-starts-to-the-server ()
  (gemini-companion-run-test-with-mode
    (let ((call (symbol-function 'gemini-companion-server-call))
          calls)
      (cl-letf (((symbol-function 'gemini-companion-server-call)
                 (lambda (&rest args)
                   (push args calls)
                   (apply call args))))
        (gemini-companion-run)
        (should (member '(cli-started "gemini") calls))))))

(ert-deftest gemini-companion-cli-warns-of-a-cli-that-writes-without-asking ()
  (gemini-companion-test-with-directory
      '((".qwen/settings.json"
         "{\"ide\": {\"enabled\": true}, \"tools\": {\"approvalMode\": \"yolo\"}}"))
    (let* ((process-environment (cons (concat "QWEN_HOME=" directory ".qwen")
                                      (cons (concat "HOME=" directory)
                                            process-environment)))
           (session (gemini-companion-test-session-like
                     (gemini-companion-test-session "one" 1) :client "qwen"))
           (warnings (lambda (sessions)
                       (ert-with-message-capture shown
                                                 (gemini-companion-test-set-sessions sessions)
                         (string-search "Qwen Code may write without asking" shown)))))
      (gemini-companion-test-with-parts '(session cli) nil
        (should (funcall warnings (list session)))
        ;; Once for each CLI.
        (should-not (funcall warnings (list session)))))))

;;; gemini-companion-cli-test.el ends here
