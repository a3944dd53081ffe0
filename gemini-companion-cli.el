;;; gemini-companion-cli.el --- CLIs in terminals of this Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Start a CLI in a terminal of this Emacs, in the root of a project; one
;; buffer for each project, more on request.  A CLI searches for Emacs
;; once, when it starts, so it is started when the server is ready.
;;
;; Programs that Emacs starts inherit a few variables by which a CLI finds this
;; Emacs among several.  Terminals outside Emacs do not need them: there the
;; discovery file is enough.
;;
;; The output of a terminal is searched for operating system commands (OSC)
;; before the terminal gets it: questions for the colors, the window title, which
;; has the state of the CLI, and text that the CLI copies.  From term they are
;; removed.

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-client)
(require 'gemini-companion-client-settings)
(require 'gemini-companion-edit)
(require 'gemini-companion-idle)
(require 'gemini-companion-install)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-remote)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-terminal)
(require 'gemini-companion-windows-at-once)
(require 'map)

(defvar vterm-kill-buffer-on-exit)
(declare-function evil-emacs-state "ext:evil-states")
(declare-function project-root "project")
(defvar global-hl-line-mode)

;;;; Customization

(defconst gemini-companion-cli--choices
  (mapcar (lambda (client)
            `(const :tag ,(plist-get (cdr client) :title) ,(car client)))
          gemini-companion-client-table)
  "The CLIs as alternatives of a custom type.")

(defcustom gemini-companion-run-commands nil
  "Commands that start the CLIs, an alist of (CLIENT . COMMAND).
CLIENT is \"gemini\", \"qwen\" or \"copilot\".  COMMAND is a program, or a list
\(PROGRAM ARG...).  A CLI that is not in the alist is started by the
program of its name."
  :type `(alist :key-type (choice ,@gemini-companion-cli--choices)
                :value-type (choice (string :tag "Program")
                                    (repeat :tag "Program and arguments"
                                            string)))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-terminal)

(defcustom gemini-companion-run-client nil
  "CLI that `gemini-companion-run' starts: \"gemini\", \"qwen\" or \"copilot\".
Nil means the one that is installed.  If several are, the command
asks, and sets this option."
  :type `(choice (const :tag "The one that is installed" nil)
                 ,@gemini-companion-cli--choices)
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-terminal)

;;;; State

(defvar-local gemini-companion-cli--place nil
  "Temporary directory in which the CLI in this buffer searches for Emacs.
It is nil if that is the one of the server, or if the CLI has ended.")
(put 'gemini-companion-cli--place 'permanent-local t)

(defvar gemini-companion-cli--refused nil
  "Lists (DIRECTORY ROOT): where CLIs search, but in a workspace root.
See `gemini-companion-server-search-in'.")

(defvar-local gemini-companion-cli--failure nil
  "Exit status with which the CLI in this buffer has failed to start, or nil.")

(defvar gemini-companion-cli--waiting nil
  "Buffers in which a CLI is to start when it can connect.")

(defvar gemini-companion-cli--exported nil
  "Entries that are in each environment, a list of strings.")

;;;; Clients

(defun gemini-companion-cli-command (client)
  "Return the command for CLIENT, a list."
  (ensure-list (or (cdr (assoc client gemini-companion-run-commands)) client)))

(defun gemini-companion-cli-installed ()
  "Return the names of the CLIs that are installed."
  (seq-filter (lambda (client)
                (executable-find (car (gemini-companion-cli-command client))))
              (mapcar #'car gemini-companion-client-table)))

(defun gemini-companion-cli--choose-client (another remote)
  "Return the CLI to start; ask if several are installed.
Unless ANOTHER is non-nil, do so once, and set the option
`gemini-companion-run-client' to the answer.  If REMOTE is non-nil, any
may be installed there."
  (let ((installed (if (and another remote)
                       (mapcar #'car gemini-companion-client-table)
                     (gemini-companion-cli-installed))))
    (cond ((and gemini-companion-run-client
                (not (and another (cdr installed))))
           gemini-companion-run-client)
          ((null (cdr installed))
           (or (car installed) (caar gemini-companion-client-table)))
          ((let ((client (gemini-companion-client-read
                          "Start"
                          (mapcar (lambda (name)
                                    (cons (gemini-companion-client-title name)
                                          name))
                                  installed))))
             ;; Nothing is saved before the user agrees to the installation.
             (when (and (not another) (gemini-companion-install-command))
               (with-demoted-errors "Option not saved: %S"
                 (customize-save-variable 'gemini-companion-run-client
                                          client)))
             client)))))

(defun gemini-companion-cli--offer-settings (run)
  "Ask whether to set what the CLI of RUN needs and the user has not set.
Return nil if the user has to edit a settings file first."
  (let ((process-environment (plist-get run :environment)))
    (seq-every-p (pcase-lambda (`(,_ ,problem ,_ . ,actions))
                   (pcase (car actions)
                     (`(,(or "Enable" "Set it") . ,set)
                      (or (not (y-or-n-p (format "%s; change that? " problem)))
                          (funcall set)))
                     (_ t)))
                 (gemini-companion-client-settings-findings
                  (plist-get run :client) (plist-get run :directory)
                  (lambda (client)
                    (cl-find client (gemini-companion-sessions) :test #'equal
                             :key (lambda (cli) (plist-get cli :client))))))))

(defun gemini-companion-cli-program (name command input then)
  "Run COMMAND with INPUT as a process NAME, without waiting for it.
At the end call THEN with its output, and with nil or, if it failed, the
last line of that."
  (let ((process
         (make-process
          :name name :buffer (generate-new-buffer (format " *%s*" name))
          :command command :noquery t :connection-type 'pipe :coding 'utf-8
          :sentinel
          (lambda (process _event)
            (unless (process-live-p process)
              (let ((output (with-current-buffer (process-buffer process)
                              (buffer-string)))
                    (status (process-exit-status process)))
                (kill-buffer (process-buffer process))
                (funcall then output
                         (unless (eql 0 status)
                           (or (car (last (split-string output "[\r\n]+" t)))
                               (format "exit status %s" status))))))))))
    ;; Sending fails if the process has exited.
    (ignore-errors
      (process-send-string process input)
      (process-send-eof process))))

;;;; Problems

(defun gemini-companion-cli-obstacle (cli)
  "Return the finding about why CLI is not connected.
CLI has its `:client', its `:directory' if that is known, and `:searches',
the directory where it searches for Emacs, if there is no discovery file.
For findings, see `gemini-companion-status-checks'; this one has a remedy."
  (pcase-let (((map :client :directory :searches) cli))
    (or (and searches
             (gemini-companion-cli--search-obstacle client searches))
        (seq-find (lambda (finding) (memq (car finding) '(bad note)))
                  (when directory
                    `(,@(gemini-companion-part-findings 'privacy directory)
                      ;; The settings of a CLI on another host are files there.
                      ,@(unless (file-remote-p directory)
                          ;; The first setting is needed to connect.
                          (seq-take (gemini-companion-client-settings-findings
                                     client directory #'always)
                                    1)))))
        `(bad nil ,(gemini-companion-client-get client :connect)))))

(defun gemini-companion-cli--search-obstacle (client directory)
  "Return the finding about CLIENT, whose search for Emacs is in DIRECTORY."
  (let ((variable (gemini-companion-client-get client :home-variable))
        (root (cadr (assoc directory gemini-companion-cli--refused
                           (lambda (a b)
                             (equal (file-truename a) (file-truename b)))))))
    (if root
        `(bad ,(format "it searches %s for Emacs, which is in the workspace root %s"
                       directory root)
              ,(format "Set %s to a directory outside of the workspace roots \
where it is started, and start it again." variable))
      `(note ,(format "it searches %s for editors" directory)
             ,(format "Start it with the same %s as Emacs%s." variable
                      (if (equal variable "TMPDIR")
                          (substitute-command-keys
                           ", or with \\[gemini-companion-run]")
                        ""))))))

(defun gemini-companion-cli--remedy (finding)
  "Return the remedy of FINDING without its details, to follow a semicolon."
  (let ((remedy (car (split-string (nth 2 finding) "[.,]\\(?: \\|\\'\\)"))))
    (concat (downcase (substring remedy 0 1)) (substring remedy 1))))

(defun gemini-companion-cli--check-settings (previous)
  "Report new CLIs whose settings make them write without asking.
PREVIOUS are the CLIs that were connected before."
  (pcase-dolist ((map :remote :client :directory)
                 (seq-difference (gemini-companion-sessions) previous
                                 #'gemini-companion-session-same-p))
    ;; The settings of a CLI on another host are files there.
    (unless remote
      ;; Without the first one it would not connect.
      (dolist (finding (cdr (gemini-companion-client-settings-findings
                             client (or directory "/"))))
        (when (eq 'bad (car finding))
          (message "%s; %s (or use %s)" (nth 1 finding)
                   (gemini-companion-cli--remedy finding)
                   (substitute-command-keys "\\[gemini-companion-status]")))))))

;;;; Parameters

(defun gemini-companion-cli-wanted (number)
  "Return the parameters of the CLI for the current buffer, a plist.
NUMBER, a raw prefix argument, chooses one of several in a directory."
  (let* ((here (or gemini-companion-terminal-parameters
                   (gemini-companion-cli--new)))
         (exec-path (plist-get here :path))
         (another (consp number))
         (live (lambda (client)
                 (gemini-companion-cli-live-buffer
                  `(:client ,client :number 1 ,@here))))
         (clients (cons gemini-companion-run-client
                        (mapcar #'car gemini-companion-client-table)))
         (client (or (and (not another)
                          (or (plist-get here :client) (seq-find live clients)))
                     (gemini-companion-cli--choose-client
                      another (plist-get here :remote))))
         (number (cond (another (gemini-companion-cli-free-number
                                 `(:client ,client ,@here)))
                       (number (prefix-numeric-value number))
                       ((plist-get here :number))
                       (t 1))))
    ;; Only `gemini-companion-resume' resumes one.
    `(:client ,client :number ,number :resume nil ,@here)))

(defun gemini-companion-cli--new ()
  "Return parameters for the current buffer, which is not the terminal of a CLI.
It is the root of a project, or the directory of the buffer.  Until the
workspace root of a remote directory is known, that stands for it."
  `(,@(if (file-remote-p default-directory)
          (pcase-let ((`(,name ,there ,root) (gemini-companion-remote-here)))
            (list :directory (file-name-as-directory
                              (concat name (or root there)))
                  :remote name :there there))
        (let* ((project (project-current))
               (home (expand-file-name "~/"))
               (root (if project (expand-file-name (project-root project)) home))
               ;; A home under version control is no workspace root.
               (directory (if (equal root home)
                              (expand-file-name default-directory)
                            root)))
          (unless (file-accessible-directory-p directory)
            (user-error "Directory %s does not exist; switch to another buffer"
                        (abbreviate-file-name directory)))
          (list :directory (file-name-as-directory directory))))
    :environment ,process-environment :path ,exec-path))

(defun gemini-companion-cli--buffer (run)
  (seq-find
   (lambda (buffer)
     (let ((other (buffer-local-value 'gemini-companion-terminal-parameters buffer)))
       (seq-every-p (lambda (key)
                      (equal (plist-get run key) (plist-get other key)))
                    '(:client :directory :number))))
   (buffer-list)))

(defun gemini-companion-cli-live-buffer (run)
  "Return the buffer of RUN if it has a live process or waits for one."
  (when-let* ((buffer (gemini-companion-cli--buffer run)))
    (and (or (memq buffer gemini-companion-cli--waiting)
             (process-live-p (get-buffer-process buffer)))
         buffer)))

(defun gemini-companion-cli-free-number (run)
  "Return the lowest number that no other CLI like RUN has."
  (cl-loop for number from 1
           unless (gemini-companion-cli-live-buffer `(:number ,number ,@run))
           return number))

(defun gemini-companion-cli-name (run)
  "Return the name of the buffer of RUN, such as \"*gemini: app (2)*\"."
  (pcase-let (((map :client :directory :number :remote) run))
    (format "*%s: %s%s%s*" client
            (if remote (concat (gemini-companion-names-title remote) ":") "")
            (gemini-companion-names-shown
             (file-name-nondirectory (directory-file-name directory)))
            (if (eql number 1) "" (format " (%d)" number)))))

(defun gemini-companion-cli-check (run)
  "Signal an error if there is no program of RUN, or no terminal.
On a remote host, that is a program which connects it."
  (pcase-let* (((map :client :directory :remote :path) run)
               (program (car (gemini-companion-cli-command client)))
               (exec-path path))
    (when remote
      (unless (gemini-companion-client-get client :port-variable)
        (user-error "%s cannot connect from another host"
                    (gemini-companion-session-title run)))
      (gemini-companion-cli--agree remote))
    (unless (gemini-companion-terminal-function)
      (user-error "Emacs has no terminal on Windows; start the CLI in a window \
of its own, in %s" (abbreviate-file-name directory)))
    (unless (or remote (executable-find program))
      (user-error "Cannot find the program %s; install it (npm install -g \
%s, which needs Node.js %s), or customize `gemini-companion-run-commands'%s"
                  program
                  (gemini-companion-client-get client :package)
                  (gemini-companion-client-get client :node)
                  (gemini-companion-install-path-hint)))
    (unless (or remote
                (let ((gemini-companion-roots-last nil))
                  (seq-some (apply-partially #'file-in-directory-p directory)
                            (gemini-companion-roots directory)))
                (y-or-n-p (format "%s is not a workspace root, so no CLI can \
connect; start one? " (abbreviate-file-name directory))))
      (user-error "Switch to a buffer of a project to start the CLI there"))))

;;;; Start

(defun gemini-companion-cli-show-buffer (run)
  "Select and return an empty buffer for RUN; use its previous one, if any."
  (let ((buffer (or (gemini-companion-cli--buffer run)
                    (generate-new-buffer (gemini-companion-cli-name run)))))
    (gemini-companion-terminal-show buffer)
    (set-buffer buffer)
    (when (derived-mode-p 'gemini-companion-resume-mode)
      (rename-buffer (gemini-companion-cli-name run) 'unique))
    ;; By it vterm keeps its mode.
    (kill-local-variable 'change-major-mode-hook)
    (special-mode)                      ; a term in Emacs 28 needs a keymap
    (setq buffer-read-only nil)
    (delete-all-overlays)
    (erase-buffer)
    (setq gemini-companion-terminal-parameters run)
    (gemini-companion-terminal-show-plainly)
    (pcase-let (((map :directory :remote) run))
      ;; The process in the terminal is a local one.
      (setq default-directory (if remote "~/" directory)
            gemini-companion-remote-terminal (and remote directory)))
    buffer))

(defun gemini-companion-cli--start-waiting (&optional problem)
  "Start the CLIs that wait for the server, in their buffers.
If PROBLEM, why none can start, is non-nil, show it there instead."
  (dolist (buffer gemini-companion-cli--waiting)
    (cond ((not (buffer-live-p buffer))
           (cl-callf2 remq buffer gemini-companion-cli--waiting))
          ;; A remote host calls `gemini-companion-cli--start-in' itself.
          ((plist-get (buffer-local-value 'gemini-companion-terminal-parameters buffer)
                      :remote))
          (problem
           (gemini-companion-cli--start-in buffer nil problem))
          (t
           (gemini-companion-cli--start-once-found buffer)))))

(defun gemini-companion-cli--start-once-found (buffer)
  "Start the CLI that waits in BUFFER, when it can find this Emacs.
With another temporary directory than the server, as envrc or direnv may
set it, that is when there is a discovery file, too."
  (with-current-buffer buffer
    (setq gemini-companion-cli--place
          (gemini-companion-cli--other-place gemini-companion-terminal-parameters)))
  (if (buffer-local-value 'gemini-companion-cli--place buffer)
      (gemini-companion-cli--update-places
       (lambda ()
         ;; Emacs may have tried again, with another server.
         (when (memq buffer gemini-companion-cli--waiting)
           (gemini-companion-cli--start-in buffer nil nil))))
    (gemini-companion-cli--start-in buffer nil nil)))

(defun gemini-companion-cli--other-place (run)
  "Return the temporary directory in which the CLI of RUN is to find Emacs.
Return nil if the server has a discovery file there anyway."
  (pcase-let* (((map :client :directory) run)
               (process-environment (gemini-companion-cli-environment run))
               (file (cadr (assoc client
                                  (plist-get (gemini-companion-server-info)
                                             :discovery))))
               (value (seq-find
                       (lambda (value) (not (member value '(nil ""))))
                       ;; As os.tmpdir() of Node.js has it.
                       `(,@(mapcar #'getenv (if (eq system-type 'windows-nt)
                                                '("TEMP" "TMP")
                                              '("TMPDIR" "TMP" "TEMP")))
                         "/tmp")))
               (place (directory-file-name (expand-file-name value directory))))
    (unless (or (not (equal "TMPDIR" (gemini-companion-client-get
                                      client :home-variable)))
                (and file
                     (equal (file-truename (gemini-companion-cli--search-directory
                                            place))
                            (file-truename (directory-file-name
                                            (file-name-directory file))))))
      place)))

(defun gemini-companion-cli--search-directory (place)
  "Return the directory that is searched if the temporary one is PLACE."
  (expand-file-name "gemini/ide" place))

(defun gemini-companion-cli--update-places (&optional then)
  "Have the server write discovery files where the CLIs here search.
Then call THEN, if it is non-nil and there is a server."
  (gemini-companion-server-search-in
   (seq-uniq (delq nil (mapcar (apply-partially #'buffer-local-value
                                                'gemini-companion-cli--place)
                               (buffer-list))))
   (lambda (refused)
     (setq gemini-companion-cli--refused refused)
     (when then
       (funcall then)))))

(defun gemini-companion-cli--leave-place ()
  "Remove the discovery file for the CLI here, which ends, unless others need it."
  (when gemini-companion-cli--place
    (setq gemini-companion-cli--place nil)
    (gemini-companion-cli--update-places)))

(defun gemini-companion-cli--start-in (buffer root problem)
  "Start the CLI that waits in BUFFER, or show PROBLEM if it is non-nil.
ROOT is the workspace root in its remote host, if any."
  (setq gemini-companion-cli--waiting
        (remq buffer gemini-companion-cli--waiting))
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (erase-buffer)
      (when root
        (let* ((run gemini-companion-terminal-parameters)
               (directory (concat (plist-get run :remote) root)))
          (setq run `( :directory ,(file-name-as-directory directory)
                       :root ,root ,@run)
                gemini-companion-terminal-parameters run)
          (rename-buffer (gemini-companion-cli-name run) 'unique)))
      (condition-case err
          (if problem (error "%s" problem) (gemini-companion-cli--in))
        (error
         (insert (error-message-string err) "\n")
         (gemini-companion-cli--end "Not started"))))))

(defun gemini-companion-cli--in ()
  "Start the CLI of the current buffer, in a terminal in that buffer.
Its parameters are in `gemini-companion-terminal-parameters'."
  (pcase-let* ((buffer (current-buffer))
               (run gemini-companion-terminal-parameters)
               ((map :client :remote :resume :root :path) run)
               (own (append (gemini-companion-cli-command client)
                            (and resume (remq t (list "--resume" resume)))))
               (command (if remote (gemini-companion-remote-run-command
                                    remote root own)
                          own))
               (process-environment (gemini-companion-cli-environment run))
               (exec-path path))
    ;; The terminals take their size from the selected window.
    (with-selected-window (or (get-buffer-window buffer t) (selected-window))
      (with-current-buffer buffer
        (gemini-companion-terminal-start
         (cons (or (executable-find (car command)) (car command))
               (cdr command)))))
    (add-hook 'kill-buffer-hook #'gemini-companion-cli--leave-place nil t)
    (when-let* ((process (get-buffer-process buffer)))
      (process-put process 'gemini-companion-started (float-time))
      ;; Before its first start, it had no directory for its discovery file.
      (unless remote
        (gemini-companion-server-call 'cli-started client))
      (gemini-companion-terminal-watch)
      (add-function :around (process-sentinel process)
                    #'gemini-companion-cli--sentinel)
      ;; Until then it may still connect.
      (run-at-time 20 nil #'gemini-companion-cli--hint process))))

(defun gemini-companion-cli--export (entries)
  "Put ENTRIES before the environments, in place of the exported ones.
The first entry for a variable counts.  Environments are the default one
and the ones of buffers, which packages such as envrc and mise make."
  (let ((change (lambda (environment)
                  (append entries
                          (seq-difference environment
                                          gemini-companion-cli--exported
                                          #'eq)))))
    (setq-default process-environment
                  (funcall change (default-value 'process-environment)))
    (dolist (buffer (buffer-list))
      (when (local-variable-p 'process-environment buffer)
        (with-current-buffer buffer
          (setq process-environment (funcall change process-environment)))))
    (setq gemini-companion-cli--exported entries)))

(defun gemini-companion-cli-environment (run)
  "Return the environment of the CLI of RUN."
  ;; The terminal of Emacs itself sets them.  In tmux, Gemini CLI ignores that
  ;; a background is white.
  (append '("TMUX" "TMUX_PANE" "STY")
          gemini-companion-cli--exported
          (plist-get run :environment)))

(defun gemini-companion-cli--hint (process)
  "Show how to connect the CLI of PROCESS, unless it is connected.
Wait until the user pauses and has answered what it asks."
  (when (and (process-live-p process)
             (gemini-companion-server-ready-p)
             (not (memq (process-buffer process)
                        (mapcar #'gemini-companion-session-terminal
                                (gemini-companion-sessions)))))
    (with-current-buffer (process-buffer process)
      (if (or (not (gemini-companion-idle-user-p))
              (gemini-companion-cli--asks-p))
          (run-at-time 1 nil #'gemini-companion-cli--hint process)
        (letrec ((run gemini-companion-terminal-parameters)
                 (withdraw
                  (gemini-companion-idle-announce
                   (format "%s is not connected; %s (%s shows why)"
                           (gemini-companion-session-name run)
                           (gemini-companion-cli--remedy
                            (gemini-companion-cli-obstacle
                             (gemini-companion-cli--with-search run)))
                           (substitute-command-keys
                            "\\[gemini-companion-status]"))))
                 (changed
                  (lambda (&rest _)
                    (remove-hook 'gemini-companion-session-changed-functions
                                 changed)
                    (funcall withdraw))))
          (add-hook 'gemini-companion-session-changed-functions changed))))))

(defun gemini-companion-cli--with-search (run)
  "Return RUN, with the directory where no file is, because of a root, if any.
That is the value of `:searches'."
  (let ((directory (and gemini-companion-cli--place
                        (gemini-companion-cli--search-directory
                         gemini-companion-cli--place))))
    (if (assoc directory gemini-companion-cli--refused)
        `(:searches ,directory ,@run)
      run)))

(defun gemini-companion-cli--asks-p ()
  "Return non-nil if the CLI here asks for trust, a sign-in or the like.
It does if one of about its last 15 lines is a choice, or has such words.
One that has displayed nothing yet may be about to ask."
  (save-excursion
    (goto-char (point-max))
    (skip-chars-backward " \t\n")
    (or (bobp)
        (re-search-backward
         "[●›❯] [0-9]+\\. \\|Waiting for auth\\|Enter .*API Key"
         (line-beginning-position -14) t))))

;;;; End

(defun gemini-companion-cli--sentinel (sentinel process event)
  "Call SENTINEL with PROCESS and EVENT, and end the buffer of a CLI that ended.
This is around the sentinel of the terminal."
  (let ((buffer (process-buffer process)))
    ;; vterm would kill the buffer with the error message.
    (let ((vterm-kill-buffer-on-exit nil))
      (funcall sentinel process event))
    (when (and (buffer-live-p buffer) (not (process-live-p process)))
      (with-current-buffer buffer
        (setq gemini-companion-cli--failure
              (gemini-companion-cli--start-failure process))
        (gemini-companion-cli--end
         (format
          "%s: %s"
          (gemini-companion-session-title gemini-companion-terminal-parameters)
          (string-trim event)))))))

(defun gemini-companion-cli-unload-function ()
  "Make the terminals of CLIs ordinary ones, for `unload-feature'."
  (dolist (process (process-list))
    (remove-function (process-sentinel process)
                     #'gemini-companion-cli--sentinel))
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (remove-hook 'kill-buffer-hook #'gemini-companion-cli--leave-place t)))
  (gemini-companion-terminal-release 'all))

(defun gemini-companion-cli--start-failure (process)
  "Return the exit status of PROCESS, a CLI, if that has failed to start.
A shell and env exit with 126 or 127 if they cannot run a program; a CLI
may do so for the last command in it, but not within seconds."
  (let ((status (process-exit-status process)))
    (and (eq 'exit (process-status process))
         (memq status '(126 127))
         (< (- (float-time) (process-get process 'gemini-companion-started)) 10)
         status)))

(defun gemini-companion-cli--end (reason)
  "Make the current buffer, whose CLI has ended, show REASON and its keys.
REASON is a text such as \"Gemini CLI (app): finished\"."
  (gemini-companion-cli--leave-place)
  (setq-local minor-mode-overriding-map-alist
              (list (cons t gemini-companion-terminal-ended-map)))
  (setq buffer-read-only t)
  ;; Evil has its own meaning for the keys.
  (when (bound-and-true-p evil-local-mode)
    (evil-emacs-state))
  (setq header-line-format
        ;; A % would begin a construct of the mode line.
        (string-replace
         "%" "%%"
         (concat " " reason (substitute-command-keys "; \
\\<gemini-companion-terminal-ended-map>\\[gemini-companion-run] restarts it, \
\\[gemini-companion-resume] resumes a conversation, \
\\[gemini-companion-quit-window] quits")))))

;;;; Life

(cl-defmethod gemini-companion-part-findings ((_part (eql 'cli)) _directory)
  "Return problems of CLIs that have failed to start, with their last lines."
  (mapcan (lambda (buffer)
            (with-current-buffer buffer
              (when gemini-companion-cli--failure
                (list (gemini-companion-cli--failure-finding)))))
          (buffer-list)))

(defun gemini-companion-cli--failure-finding ()
  "Return the finding about the CLI in this buffer, which has failed to start."
  `(bad ,(format "%s did not start (exit status %d)%s"
                 (gemini-companion-session-name gemini-companion-terminal-parameters)
                 gemini-companion-cli--failure
                 (mapconcat (apply-partially #'concat "\n")
                            (gemini-companion-cli--last-lines) ""))
        ,(let ((remote (plist-get gemini-companion-terminal-parameters :remote)))
           (concat (if (eql gemini-companion-cli--failure 126)
                       "Make the program that it names executable"
                     (format "Put the program that it names into the PATH of %s"
                             (if remote
                                 (gemini-companion-names-title remote)
                               "Emacs")))
                   ", and start the CLI again"
                   (if remote "" (gemini-companion-install-path-hint)) "."))
        ("Terminal" . ,(apply-partially #'gemini-companion-terminal-show
                                        (current-buffer)))))

(defun gemini-companion-cli--last-lines ()
  "Return the last lines that the CLI in this buffer has printed, at most four.
What the terminal adds about the end of the process is left out."
  (last (seq-remove (apply-partially #'string-match-p
                                     "\\`Process .* \\(?:exited\\|finished\\)")
                    (split-string (buffer-substring-no-properties
                                   (point-min) (point-max))
                                  "[ \t]*\n" t))
        4))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'cli)))
  "Watch the terminals of the CLIs that connect, and check their settings."
  '((gemini-companion-session-changed-functions gemini-companion-terminal-watch)
    (gemini-companion-session-changed-functions
     gemini-companion-cli--check-settings)))

(cl-defmethod gemini-companion-part-ready ((_part (eql 'cli)) _how)
  "Start the CLIs that waited for the server, and prepare for others."
  (gemini-companion-cli--export
   `(,@(gemini-companion-client-variables
        (plist-get (gemini-companion-server-info) :port) (emacs-pid))
     ;; Without =, a variable is unset.
     ,@(copy-sequence (gemini-companion-client-all :unset))
     ;; In a container the client connects to the host, unless this variable
     ;; indicates that its editor is in the container.
     ,@(when (seq-some #'file-exists-p '("/.dockerenv" "/run/.containerenv"))
         (list "REMOTE_CONTAINERS=1"))))
  (gemini-companion-terminal-watch)
  ;; The mode may have been off.
  (when (seq-some (apply-partially #'buffer-local-value
                                   'gemini-companion-cli--place)
                  (buffer-list))
    (gemini-companion-cli--update-places))
  (gemini-companion-cli--start-waiting))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'cli)))
  "Stop starting CLIs and watching terminals, and restore the environment."
  (gemini-companion-terminal-release)
  (gemini-companion-cli--start-waiting "The server is not running")
  (gemini-companion-cli--export nil)
  (cancel-function-timers #'gemini-companion-cli--hint))

;;;; Commands

;;;###autoload
(defun gemini-companion-run (&optional number)
  "Switch to the CLI of this project, or start it in a terminal.
It starts in the root of the project, when the server is ready; the
mode is turned on for that.  `gemini-companion-run-client' is the
CLI to start.  NUMBER, the prefix argument, is the number of the CLI
if there are several in the project; \\[universal-argument] alone starts
one more, of any kind.  In a buffer on another host, the CLI runs
there.  If that CLI is in a selected side window, the window is hidden."
  (interactive "P")
  (let* ((run (gemini-companion-cli-wanted number))
         (buffer (gemini-companion-cli-live-buffer run)))
    (cond ((null buffer)
           (gemini-companion-cli-check run)
           (gemini-companion-cli-launch run))
          ((and gemini-companion-run-side-window
                (eq buffer (window-buffer)))
           (gemini-companion-quit-window))
          (t
           (gemini-companion-terminal-show buffer)
           ;; A CLI that was suspended has no shell here that continues it.
           (ignore-errors (continue-process buffer))
           (when-let* ((name (plist-get run :remote))
                       ((not (assoc name gemini-companion-names-remotes))))
             (gemini-companion-connect))))))

(defun gemini-companion-cli--agree (name)
  "Ask the user whether to connect the host NAME, the first time.
Signal an error if the answer is no, or if no command connects it."
  (gemini-companion-remote-command name :pipe nil)
  (unless (assoc name gemini-companion-remote-directories)
    (unless (y-or-n-p (format "Connect CLIs on %s, and share your open files \
there with them? " (gemini-companion-names-title name)))
      (user-error "Not connected"))
    (with-demoted-errors "Option not saved: %S"
      (customize-save-variable 'gemini-companion-remote-directories
                               (append gemini-companion-remote-directories `((,name)))))))

(defun gemini-companion-cli-launch (run)
  "Start the CLI of RUN, in an empty buffer, once there is a server.
Turn the mode on, and connect its remote host, if necessary."
  (pcase-let (((map :remote :there) run))
    (when (and (or gemini-companion-mode (gemini-companion-mode 1))
               (or remote (gemini-companion-cli--offer-settings run)))
      (let ((buffer (gemini-companion-cli-show-buffer run)))
        (insert (gemini-companion-session-title run)
                " starts here when the server is ready.\n")
        (push buffer gemini-companion-cli--waiting)
        (if remote
            (gemini-companion-remote-connect
             remote there
             (apply-partially #'gemini-companion-cli--start-in buffer))
          (when (gemini-companion-server-ready-p)
            (gemini-companion-cli--start-waiting)))))))

;;;###autoload
(defun gemini-companion-connect ()
  "Wait for a CLI that you start by hand on another host.
The current buffer is one of a file or a directory there, or in a
directory that is the same here and there; see
`gemini-companion-remote-directories'.
`gemini-companion-run' connects, too, and starts the CLI."
  (interactive)
  (pcase-let* ((`(,name ,directory . ,_)
                (or (gemini-companion-remote-here)
                    (user-error "A local CLI connects by itself; switch to a \
buffer on another host")))
               (title (gemini-companion-names-title name)))
    (gemini-companion-cli--agree name)
    (when (or gemini-companion-mode (gemini-companion-mode 1))
      (message "Connecting to %s..." title)
      (gemini-companion-remote-connect
       name directory
       (lambda (root problem)
         (pcase-let (((map :problems :container)
                      (cdr (assoc name gemini-companion-names-remotes))))
           (cond (problem (message "%s" problem))
                 (problems
                  (message "%s is connected, but the discovery file could not \
be written there (%s); %s shows more"
                           title (string-join problems "; ")
                           (substitute-command-keys
                            "\\[gemini-companion-status]")))
                 ((message "Connected to %s; run %sgemini or qwen in %s there"
                           title (if container "REMOTE_CONTAINERS=1 " "")
                           root)))))))))

;;;###autoload
(defun gemini-companion-disconnect (name)
  "Disconnect the host NAME, by default the one of this buffer.
CLIs there lose their connection, and their reviews are closed."
  (interactive
   (let* ((names (mapcar #'car gemini-companion-names-remotes))
          (here (car (gemini-companion-remote-here)))
          (name (if (cdr names)
                    (completing-read (format-prompt "Disconnect" here)
                                     names nil t nil nil here)
                  (car names))))
     (unless (member name names)
       (user-error (if names
                       "Enter a host that is connected"
                     "No remote host is connected")))
     (list name)))
  (message "Disconnected from %s" (gemini-companion-names-title name))
  (dolist (edit (gemini-companion-edits-open))
    (when (equal name (plist-get (gemini-companion-edit-session edit) :remote))
      (gemini-companion-edit-close edit 'disconnected)))
  (gemini-companion-server-call 'remote-stop name)
  (gemini-companion-remote-drop name))

(provide 'gemini-companion-cli)
;;; gemini-companion-cli.el ends here
