;;; gemini-companion-cli-test.el --- Tests of Gemini CLI in a terminal  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'derived)
(require 'desktop)
(require 'display-fill-column-indicator)
(require 'display-line-numbers)
(require 'ert-x)
(require 'gemini-companion-cli)
(require 'gemini-companion-idle)
(require 'gemini-companion-part)
(require 'gemini-companion-resume)
(require 'gemini-companion-server-test-helper)
(require 'gemini-companion-terminal)
(require 'hl-line)
(require 'loadhist)
(require 'project)
(require 'warnings)

(declare-function evil-mode "ext:evil-core")
(declare-function evil-normal-state "ext:evil-states")

(defvar gemini-companion-run-test-started nil
  "Started programs, the last first: command, directory, and variables.")

(defun gemini-companion-run-test-terminal (command)
  "Run COMMAND in the current buffer, and record that."
  (push (list command default-directory
              (mapcar #'getenv
                      '("GEMINI_CLI_IDE_SERVER_PORT" "GC_TEST" "TMUX")))
        gemini-companion-run-test-started)
  (make-process :name "gemini" :buffer (current-buffer) :command command
                :connection-type 'pipe :noquery t))

(defmacro gemini-companion-run-test-with (&rest body)
  "Run BODY in a project whose Gemini CLI is `cat'."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-mode-off '(("a" "text") (".git" ""))
     (let* ((project-find-functions
             (list (lambda (_) (cons 'transient directory))))
            (gemini-companion-run-commands '(("gemini" . "cat")))
            (gemini-companion-run-client "gemini")
            (gemini-companion-terminal #'gemini-companion-run-test-terminal)
            (gemini-companion-run-test-started nil)
            (name (file-name-nondirectory (directory-file-name directory))))
       (ignore name)
       (save-window-excursion
         (unwind-protect
             ;; Do not enable IDE integration.
             (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
               ,@body)
           (dolist (buffer (buffer-list))
             (when (string-match-p "\\`\\*\\(gemini\\|qwen\\|copilot\\): " (buffer-name buffer))
               (let ((kill-buffer-query-functions nil))
                 (kill-buffer buffer)))))))))

(defmacro gemini-companion-run-test-with-mode (&rest body)
  "Run BODY as above, with the mode on and ready."
  (declare (indent 0) (debug t))
  `(gemini-companion-run-test-with
     (gemini-companion-mode 1)
     (gemini-companion-test-eventually (gemini-companion-server-ready-p))
     ,@body))

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
      (should (eq (get-buffer "a") gemini-companion-context-active))
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
    (let* ((place (expand-file-name ".direnv/tmp" directory))
           (buffer (gemini-companion-run-test-in-place place)))
      (find-file "a")
      (gemini-companion-test-eventually gemini-companion-run-test-started)
      (should-not (file-exists-p ".direnv"))
      (with-current-buffer buffer
        (pcase-let ((`(,mark ,text ,remedy)
                     (gemini-companion-cli-obstacle
                      "gemini" directory (concat place "//gemini/ide"))))
          (should (eq 'bad mark))
          (should (string-search (directory-file-name directory) text))
          (should (string-prefix-p "Set TMPDIR to a directory outside" remedy)))
        (let (announced)
          (cl-letf (((symbol-function 'gemini-companion-idle-user-p) #'always)
                    ((symbol-function 'gemini-companion-cli--asks-p) #'ignore)
                    ((symbol-function 'gemini-companion-idle-announce)
                     (lambda (text) (setq announced text) #'ignore)))
            (gemini-companion-cli--hint (get-buffer-process buffer)))
          (should (string-search "not connected; set TMPDIR to" announced)))))))

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
        (pcase-let ((`((,mark ,text ,remedy . ,_))
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

(ert-deftest gemini-companion-run-starts-one-cli-while-its-place-connects ()
  (gemini-companion-run-test-with
    (let ((gemini-companion-remote-directories '(("/ssh:far:")))
          (answers '("" "/ssh:far:"))
          ;; It does not answer.
          (gemini-companion-remote-commands '((("ssh") "sh" "-c" "exec cat"))))
      (dotimes (_ 2)
        (with-temp-buffer
          (setq default-directory "/ssh:far:/srv/p/")
          (gemini-companion-run)))
      (gemini-companion-test-eventually (gemini-companion-server-ready-p))
      (should-not gemini-companion-run-test-started)
      (with-current-buffer "*gemini: ssh:far:p*"
        (term--update-term-menu t)      ; Emacs 28 calls it in each buffer
        (gemini-companion-disconnect "/ssh:far:")
        (should (string-prefix-p "Cannot connect to ssh:far" (buffer-string)))
        (should (string-search "Not started; g restarts it" header-line-format))
        (let ((overriding-local-map '(keymap (?c . gemini-companion-connect))))
          (should (equal '((note "ssh:far, the host of this directory, is not \
connected" "Type c in a buffer of that host."))
                         (gemini-companion-part-findings
                          'privacy "/ssh:far:/"))))
        (gemini-companion-run))
      (gemini-companion-server-receive 'remote-update
        '( :name "/ssh:far:" :state "connected" :port 1 :pid 1
           :roots (("/srv/p" "/srv"))))
      (should (equal 1 (length gemini-companion-run-test-started)))
      (push '("/ssh:near:") gemini-companion-names-remotes)
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (&rest _) (pop answers))))
        (should-error (call-interactively #'gemini-companion-disconnect)
                      :type 'user-error)
        (call-interactively #'gemini-companion-disconnect))
      (should (equal '(("/ssh:near:")) gemini-companion-names-remotes))
      (with-current-buffer "*gemini: ssh:far:srv*" (gemini-companion-run))
      (should (assoc "/ssh:far:" gemini-companion-names-remotes)))))

;;;; Which CLI

(defmacro gemini-companion-run-test-with-clis (programs &rest body)
  "Run BODY in a project where only PROGRAMS are installed, as links to cat.
HOME is the project, and nothing is saved; `asked' collects the
prompts, the last first, and `saved' what would be saved."
  (declare (indent 1) (debug t))
  `(gemini-companion-run-test-with-mode
     (dolist (program ,programs)
       (make-symbolic-link (executable-find "cat") program))
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
      (should (equal (list (expand-file-name "qwen"))
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
                 '(("gemini" t "" "IDE integration is off .*; change that\\? \\'")
                   ("qwen" t "{}" "IDE integration is off" "does not ask about edits")
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
                              "; set ide.enabled to true where that file is made"
                              "Option not saved: (error \"File is write-p"))
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
           ("start the CLI in a window of its own"
            (system-type . windows-nt) (gemini-companion-terminal))
           ("customize `gemini-companion-remote-commands'"
            (default-directory . "/ssh:elsewhere:/tmp/")
            (gemini-companion-remote-commands))
           ("Copilot CLI cannot connect from another host"
            (default-directory . "/ssh:elsewhere:/tmp/")
            (gemini-companion-run-client . "copilot"))
           ("Switch to a buffer of a project"
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
    (let ((gemini-companion-terminal 'term) (shown ""))
      (cl-letf (((symbol-function 'gemini-companion-idle-announce)
                 (lambda (text)
                   (setq shown text)
                   (lambda () (setq shown "")))))
        (pcase-dolist (`(,connected ,home ,text)
                       `((nil "/h" "is not connected; run /ide enable there")
                         (nil ,directory "is not connected; start it in a project")
                         (t "/h" "is not connected")))
          (gemini-companion-run '(4))
          (let* ((process (get-buffer-process (current-buffer)))
                 (session (list :id "one" :pid (process-id process))))
            (when connected
              (gemini-companion-server-receive 'sessions-update (list session)))
            ;; A test that was skipped before counts as a key.
            (gemini-companion-test-eventually (gemini-companion-idle-user-p))
            (with-environment-variables (("HOME" home))
              (setq-local inhibit-read-only t)
              (dolist (question '("" "│ ● 1. Trust folder (p)   │\n  2. No\n─╯"
                                  "│ › 1. Login\n"
                                  "│ Enter Gemini API Key  │\n\n\n─╯"
                                  "⠋ Waiting for authentication..."))
                (goto-char (point-max))
                (save-excursion (insert question))
                (gemini-companion-test-run-timers)
                (should (equal "" shown))
                ;; It may stay where one can scroll to it.
                (save-excursion
                  (goto-char (point-max))
                  (insert (make-string 16 ?\n) " >   Type your message\n")))
              (gemini-companion-test-run-timers))
            (should (eq connected (not (string-search text shown))))
            (set-window-start nil (point-max))
            (gemini-companion-terminal-show (current-buffer))
            (should (= (window-start) (symbol-value 'term-home-marker)))
            (gemini-companion-server-receive 'sessions-update (list session))
            (should (equal "" shown))
            (gemini-companion-server-receive 'sessions-update nil))))
      (gemini-companion-run '(4))
      (gemini-companion-mode -1)
      (should-not (gemini-companion-test-timers)))))

(ert-deftest gemini-companion-resume-lists-the-newest-first-or-shows-why-not ()
  (pcase-dolist
      (`(,client ,output ,status ,expected)
       '(("gemini" "\nAvailable sessions for this project (2):
  1. Fix the login\u202e (2 days ago, now) [4c48ef04-d0ec]
  2. Say \"x\" (now) [1] (Just now) [2be1dce2-9491]\n" 0
          " Just now          Say \"x\" (now) \\[1]
 2 days ago, now   Fix the login\\\\u202E\n")
         ("qwen" "{\"sessionId\":\"c4\",\"mtime\":1795366152296.9111,\
\"prompt\":\"x\",\"customTitle\":\"Fix the thing\"}
{\"sessionId\":\"c5\",\"mtime\":1795279752296.9111,\
\"prompt\":\"Add a test\\nand more\",\"customTitle\":null}
{not JSON}
{\"sessionId\":\"c6\",\"mtime\":1795279752296.9111,\"prompt\":null}\n" 0
          " 2026-11-22 16:49  Fix the thing
 2026-11-21 16:49  Add a test and more
 2026-11-21 16:49 *\n")
         ("gemini" "No previous sessions found for this project.\n" 0
          "Gemini CLI (.*) has no conversation to resume; \
M-x gemini-companion-run begins one\n")
         ("qwen" "Usage\nUnknown command\n" 1
          "Qwen Code (.*) cannot list its conversations: Unknown command\n")
         ("gemini" "" 7
          "Gemini CLI (.*) cannot list its conversations: exit status 7\n")))
    (gemini-companion-test-with-directory `(("output" ,output))
      (let ((gemini-companion-run-commands
             `((,client "sh" "-c" ,(format "cat output; exit %d" status))))
            (gemini-companion-run-client client))
        (set-time-zone-rule "UTC0")
        (save-window-excursion
          (gemini-companion-resume)
          (unwind-protect
              (progn
                (gemini-companion-test-eventually
                  (not (string-prefix-p "Listing" (buffer-string))))
                (should (eq truncate-lines
                            (not (string-search "conversation" (buffer-string)))))
                (should (string-match-p (format "\\`%s\\'" expected)
                                        (buffer-string))))
            (set-time-zone-rule nil)
            (kill-buffer)))))))

(ert-deftest gemini-companion-resume-starts-a-cli-that-asks-itself ()
  (gemini-companion-run-test-with-mode
    (let ((gemini-companion-run-client "copilot")
          (gemini-companion-run-commands '(("copilot" . "cat"))))
      (gemini-companion-resume)
      (should (equal (format "*copilot: %s*" name) (buffer-name)))
      (should (equal '("--resume") (cdaar gemini-companion-run-test-started))))))

(ert-deftest gemini-companion-resume-restores-its-buffers-only-and-no-modes ()
  (let* ((restored nil)
         (desktop-buffer-mode-handlers
          `((term-mode . ,(lambda (&rest arguments) (push arguments restored)))
            ,(assq 'gemini-companion-resume-mode desktop-buffer-mode-handlers))))
    (gemini-companion-part-start 'resume)
    (dlet ((desktop-buffer-ok-count 0) (desktop-buffer-fail-count 0)
           (desktop-first-buffer nil))
      (dolist (mode '(term-mode gemini-companion-resume-mode))
        (desktop-create-buffer 208 "file" "mine" mode nil 1 nil nil "saved"))
      (with-current-buffer
          (desktop-create-buffer 208 nil "*gemini*" 'gemini-companion-resume-mode
                                 '(overwrite-mode) 1 nil nil
                                 '(:client "gemini" :directory "/tmp/"))
        (should-not overwrite-mode)
        (kill-buffer)))
    (gemini-companion-part-stop 'resume)
    (should (equal '(("file" "mine" "saved")) restored))))

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

(ert-deftest gemini-companion-terminal-shows-nothing-beside-the-rows-of-a-cli ()
  (gemini-companion-run-test-with-mode
   (let ((trailing (default-value 'show-trailing-whitespace))
         (modes '(global-display-line-numbers-mode global-hl-line-mode
						   global-display-fill-column-indicator-mode))
         rows)
     (unwind-protect
         (progn
           (dolist (mode modes) (funcall mode 1))
           (setq-default show-trailing-whitespace t)
           (dolist (terminal
                    (list 'term
                          (lambda (_)
                            ;; As eat does it: the program starts after the mode.
                            (text-mode)
                            (setq rows (format "%s" (list display-line-numbers
                                                          hl-line-mode)))
                            (start-process "cat" (current-buffer) "cat"))))
             (let ((gemini-companion-terminal terminal)
                   (gemini-companion-run-commands '(("gemini" "cat"))))
               (gemini-companion-run '(4))
               (should (get-buffer-process (current-buffer)))
               (should-not (or display-line-numbers display-line-numbers-mode
                               hl-line-mode global-hl-line-mode
                               display-fill-column-indicator-mode
                               show-trailing-whitespace))))
           (should (equal "(nil nil)" rows))
           ;; Other buffers stay as they were.
           (with-temp-buffer
             (text-mode)
             (should (and display-line-numbers global-hl-line-mode
                          show-trailing-whitespace))))
       (dolist (mode modes) (funcall mode -1))
       (setq-default show-trailing-whitespace trailing)))))

(ert-deftest gemini-companion-terminal-is-the-best-that-is-whole ()
  (gemini-companion-run-test-with-mode
    (let ((gemini-companion-terminal nil)
          (load-path (list directory))
          (load-suffixes '(".el" ".so"))
          (load-file-rep-suffixes '("")))
      (unwind-protect
          (pcase-dolist
              (`(,mode ,file ,text)
               '((term-mode "none.el" "")
                 (eat-mode "eat.el"
                           "(define-derived-mode eat-mode fundamental-mode \"eat\")
(defun eat-exec (&rest _)) (provide 'eat)")
                 ;; Loading it now would ask whether to compile.
                 (eat-mode "vterm.el"
                           "(define-derived-mode vterm-mode fundamental-mode \"vterm\"
  (process-put (start-process \"vterm\" (current-buffer) \"cat\")
               'adjust-window-size-function #'ignore))
(provide 'vterm)")
                 (vterm-mode "vterm-module.so" "")))
            (gemini-companion-test-write (expand-file-name file directory) text)
            (gemini-companion-run '(4))
            (should (eq mode major-mode)))
        (dolist (feature '(eat vterm))
          (when (featurep feature) (unload-feature feature t)))))))

(defmacro gemini-companion-terminal-test-with (&rest body)
  "Run BODY in the term buffer of a program that records what it is sent.
`process' is the program, and `answers' returns that."
  (declare (indent 0) (debug t))
  `(gemini-companion-run-test-with-mode
     (let ((gemini-companion-terminal 'term)
           (kill-buffer-query-functions nil)
           (inhibit-message t)
           (gemini-companion-run-commands
            '(("gemini" "sh" "-c"
               "stty raw -echo; >answers; echo up; exec cat >answers"))))
       (gemini-companion-run)
       (with-current-buffer (window-buffer)
         (gemini-companion-test-eventually
           (string-search "up" (buffer-string)))
         (let ((process (get-buffer-process (current-buffer)))
               (answers (lambda () (gemini-companion-test-file-text "answers"))))
           (ignore answers process)
           ,@body)))))

(ert-deftest gemini-companion-run-sends-escape-while-the-terminal-takes-keys ()
  (gemini-companion-terminal-test-with
    (pcase-dolist (`(,key . ,command)
                   '(("ESC ESC" . gemini-companion-run-escape)
                     ("C-x C-c" . save-buffers-kill-terminal)
                     ("C-x C-x" . term-send-raw) ("C-c C-c" . term-send-raw)))
      (should (eq command (key-binding (kbd key)))))
    (gemini-companion-run-escape)
    (term-line-mode)
    (ignore-errors (gemini-companion-run-escape))
    (process-send-string nil "x")
    (gemini-companion-test-eventually (equal "\ex" (funcall answers)))))

(defconst gemini-companion-terminal-test-white "\e]11;rgb:ffff/ffff/ffff\e\\"
  "Report of a white background.")

(ert-deftest gemini-companion-terminal-answers-questions-for-colors ()
  (gemini-companion-terminal-test-with
    (cl-letf (((frame-parameter nil 'background-mode) 'light)
              (expected ""))
      (pcase-dolist
          (`(,output . ,answer)
           `((("text \e]11;?\a more") . ,gemini-companion-terminal-test-white)
             (("x\e" "]" "11;" "?\e" "\\\e[c")
              . ,gemini-companion-terminal-test-white)
             (("\e]10;?\a\e]11;?\a")
              . ,(concat "\e]10;rgb:0000/0000/0000\e\\"
                         gemini-companion-terminal-test-white))
             ;; A sequence that another one has ended.
             (("\e]0;title\e[1m\e]11;?\a")
              . ,gemini-companion-terminal-test-white)
             ;; A color that the CLI sets is no question.
             (("\e]11;#ffffff\a" "\e]0;title\a" "\e]110\a") . "")))
        (ert-info ((format "%S" output))
          (dolist (part output)
            (funcall (process-filter process) process part))
          (setq expected (concat expected answer))
          (gemini-companion-test-eventually
            (equal expected (funcall answers))))))
    ;; The terminal would display these.
    (dolist (part '("one\e]0;title\atwo" "\e]8;;http://a\e\\link\e]8;;\e"
                    "\\three" "\e" "]2;title\afour\e" "[1mfive\e[0m"))
      (funcall (process-filter process) process part))
    ;; Eat would answer, too, and display the padding of a title.
    (let ((major-mode 'eat-mode))
      (funcall (process-filter process) process "six\e]11;?\a\e]0;a b  \a7"))
    (should (string-search "onetwolinkthreefourfivesix\e]0;a b7" (buffer-string)))
    ;; The program may still write.
    (kill-buffer)
    (funcall (process-filter process) process "\e]0;title\a")))

(ert-deftest gemini-companion-terminal-adds-what-a-cli-copies-to-the-kill-ring ()
  (gemini-companion-terminal-test-with
    (let* ((kill-ring '("before"))
           (interprogram-cut-function nil)
           (long (make-string 50000 ?x))
           (encoded (base64-encode-string long t)))
      (pcase-dolist
          (`(,output . ,copied)
           `((("\e]52;c;Z3Jvw59lIEvDvGNoZQ==\a") . "große Küche")
             ((,(concat "\e]52;c;" (substring encoded 0 4000))
               ,(substring encoded 4000) "\e\\") . ,long)
             ;; One that does not end.
             (("\e]52;c;" ,@(make-list 10 (make-string 60000 ?A))
               "\e]52;c;Yg==\a") . "b")
             ;; Questions for the clipboard get no answer.
             (("\e]52;c;?\a" "\e]52;c;!\a") . "b")))
        (dolist (part output)
          (gemini-companion-test-in-turkish
            (funcall (process-filter process) process part)))
        (should (equal copied (car kill-ring))))
      (should (equal 4 (length kill-ring)))
      (should (equal "" (funcall answers))))))

(ert-deftest gemini-companion-terminal-is-watched-while-the-mode-is-on ()
  (gemini-companion-terminal-test-with
    (let ((session (list :id "1" :client "gemini" :pid (process-id process)))
          (filter (process-filter process)))
      (funcall filter process "\e]0;✋  Action Required\a")
      (gemini-companion-part-stop 'cli)
      (let ((bare (process-filter process)))
        (should-not (equal filter bare))
        (should-not header-line-format)
        (unwind-protect
            (progn
              (gemini-companion-part-start 'cli)
              (gemini-companion-server-receive 'sessions-update (list session))
              (should (equal filter (process-filter process)))
              (should (eq 'gemini-companion-run-escape
                          (key-binding (kbd "ESC ESC"))))
              ;; Its question may have been answered meanwhile.
              (should (eq 'unknown (gemini-companion-session-state session)))
              ;; Once is enough.
              (gemini-companion-server-receive 'sessions-update (list session))
              (gemini-companion-part-stop 'cli)
              (should (eq bare (process-filter process))))
          (gemini-companion-part-stop 'cli)
          (gemini-companion-server-receive 'sessions-update nil))))))

(ert-deftest gemini-companion-terminal-takes-nothing-from-a-shell ()
  ;; They copy a text, and set a title.
  (gemini-companion-test-with-directory
      '(("sequences" "\e]52;c;Zm9v\a\e]0;◐ Qwen - ~\a"))
    (with-temp-buffer
      (let* ((kill-buffer-query-functions nil)
             (inhibit-message t)
             (kill-ring nil)
             (interprogram-cut-function nil)
             (process-environment (cons "PS1=$ " process-environment))
             (print "cat sequences; echo; echo ")
             ;; Wait until the last word is displayed.
             (type (lambda (line)
                     (process-send-string (get-buffer-process (current-buffer))
                                          (concat line "\n"))
                     (let ((end (car (last (split-string line)))))
                       (gemini-companion-test-eventually
                         (string-match-p (format "^%s *$" end)
                                         (buffer-string))))))
             process session)
        (setq default-directory directory)
        (term-mode)
        (term-exec (current-buffer) "shell" "sh" nil '("-mi"))
        (term-char-mode)
        (setq process (get-buffer-process (current-buffer)))
        ;; A CLI that displays what is typed.
        (process-send-string process "sh -c 'echo $$ >pid; exec cat'\n")
        (gemini-companion-test-eventually
          (setq session
                (ignore-errors
                  (list :id "1" :client "qwen"
                        :pid (string-to-number
                              (gemini-companion-test-file-text "pid"))))))
        (gemini-companion-test-with-parts '(cli state) session
          (funcall type "\e]52;c;Zm9v\a\e]0;me@host: ~\a\ncopied")
          (gemini-companion-test-eventually (equal '("foo") kill-ring))
          (should (eq 'unknown (gemini-companion-session-state session)))
          (funcall type "\e]0;Qwen - p\a\nnamed")
          (gemini-companion-test-eventually
            (eq 'ready (gemini-companion-session-state session)))
          (should (eq process (gemini-companion-terminal-process session)))
          ;; Suspended, it has not the terminal.
          (setq kill-ring nil)
          (signal-process (plist-get session :pid) 'SIGTSTP)
          (gemini-companion-test-eventually
            (string-search "Stopped" (buffer-string)))
          (should-not (gemini-companion-terminal-process session))
          (funcall type (concat print "shell"))
          (should-not kill-ring)
          ;; It has exited, but Emacs does not know yet.
          (funcall type "kill -9 %1; wait; echo killed")
          (funcall type (concat print "again"))
          (should-not kill-ring)
          (should (eq 'ready (gemini-companion-session-state session)))
          (gemini-companion-server-receive 'sessions-update nil)
          (funcall type (concat print "last"))
          (should-not kill-ring)
          (should-not (assq process (gemini-companion-test-traces))))))))

;;; gemini-companion-cli-test.el ends here
