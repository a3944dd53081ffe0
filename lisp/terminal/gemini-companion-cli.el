;;; gemini-companion-cli.el --- CLIs in terminals of this Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Start a CLI in a terminal of this Emacs, in the root of a project.  There is one
;; buffer for each project, and more on request.  gemini-companion-terminal.el has the
;; kinds of terminals, and a struct that describes the CLI to start.
;;
;; A CLI searches for Emacs once, when it starts.  So its start is postponed until the
;; server is ready.  If the CLI uses another temporary directory, its start is
;; postponed until the server has written a discovery file there.
;;
;; Programs that Emacs starts inherit a few variables that name this Emacs, in case
;; there are several.  In a terminal outside Emacs, a CLI only uses the discovery
;; file.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-choice)
(require 'gemini-companion-client-settings)
(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-extension)
(require 'gemini-companion-idle)
(require 'gemini-companion-input-file)
(require 'gemini-companion-install)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-proposal)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-terminal)
(require 'gemini-companion-text)

;; A pattern of `cl-struct' calls what Emacs 28 loads with this function only.
(eval-when-compile (cl-typep nil 'null))

(defvar vterm-kill-buffer-on-exit)
(declare-function evil-emacs-state "ext:evil-states")
(declare-function project-root "project")
(defvar global-hl-line-mode)

;;;; Customization

(defconst gemini-companion-cli--choices
  (mapcar (lambda (client)
            `(const :tag ,(gemini-companion-client-title client) ,client))
          gemini-companion-clients)
  "The CLIs as alternatives of a custom type.")

(defcustom gemini-companion-run-commands nil
  "Commands that start the CLIs, an alist of (CLIENT . COMMAND).
CLIENT is the name of its program, such as \"gemini\".  COMMAND is a program,
or a list (PROGRAM ARG...).  A CLI that is not in the alist is started by
the program of its name."
  :type `(alist :key-type (choice ,@gemini-companion-cli--choices)
                :value-type (choice (string :tag "Program")
                                    (repeat :tag "Program and arguments"
                                            string)))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-terminal)

(defcustom gemini-companion-run-client nil
  "CLI that `gemini-companion-run' starts.
It is the name of its program, such as \"gemini\".  Nil means the installed
CLI.  If several are installed, the command asks, and sets this option."
  :type `(choice (const :tag "The installed CLI" nil)
                 ,@gemini-companion-cli--choices)
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-terminal)

;;;; State

(defvar-local gemini-companion-cli--other-temporary nil
  "Temporary directory in which the CLI in this buffer searches for Emacs.
It is nil if the server uses the same one, or if the CLI has ended.")
(put 'gemini-companion-cli--other-temporary 'permanent-local t)

(defvar-local gemini-companion-cli--failure nil
  "Exit status with which the CLI in this buffer has failed to start, or nil.")

(defvar gemini-companion-cli--waiting nil
  "Buffers in which a CLI starts once it can connect.")

(defvar gemini-companion-cli--exported nil
  "Entries that were added to each environment, a list of strings.")

;;;; Clients

(defun gemini-companion-cli-command (client)
  "Return the command for CLIENT, a list."
  (ensure-list (or (cdr (assoc client gemini-companion-run-commands)) client)))

(defun gemini-companion-cli-installed ()
  "Return the names of the CLIs that are installed."
  (seq-filter (lambda (client)
                (executable-find (car (gemini-companion-cli-command client))))
              gemini-companion-clients))

(defun gemini-companion-cli-clients ()
  "Return the names of the connected CLIs, or else of the installed ones.
A CLI that has run counts as installed.  The value has at least one name."
  (let* ((all gemini-companion-clients)
         (connected (mapcar #'gemini-companion-session-client
                            (gemini-companion-sessions))))
    (or (seq-intersection all connected)
        (seq-union (gemini-companion-cli-installed)
                   (seq-filter #'gemini-companion-client-has-run-p all))
        (list (car all)))))

(defun gemini-companion-cli--choose-client (another remote)
  "Return the CLI to start; ask if several are installed.
Unless ANOTHER is non-nil, ask only once, and set the option
`gemini-companion-run-client' to the answer.  If REMOTE is non-nil, offer
all CLIs, since any may be installed on that host."
  (let ((installed (if (and another remote)
                       gemini-companion-clients
                     (gemini-companion-cli-installed))))
    (cond ((and gemini-companion-run-client
                (not (and another (cdr installed))))
           gemini-companion-run-client)
          ((null (cdr installed))
           (or (car installed) (car gemini-companion-clients)))
          (another
           (gemini-companion-cli--read-client installed))
          (t
           (let ((client (gemini-companion-cli--read-client installed)))
             ;; Do not save the answer before the server is installed: the user may
             ;; decline the installation.
             (when (gemini-companion-install-command)
               (gemini-companion-cli-save 'gemini-companion-run-client client))
             client)))))

(defun gemini-companion-cli--read-client (clients)
  "Return one of CLIENTS, names of CLIs, that the user chooses."
  (gemini-companion-choice-read
   "Start" (mapcar (lambda (name)
                     (cons (gemini-companion-client-title name) name))
                   clients)
   'gemini-companion-cli))

(defun gemini-companion-cli-save (option value)
  "Set OPTION to VALUE, and save it if the custom file can be written."
  (gemini-companion-log-guarded "Option not saved"
    (customize-save-variable option value)))

(defun gemini-companion-cli--offer-settings (cli)
  "Offer to change settings that keep CLI from connecting.
Return nil if a settings file must be edited first."
  (let ((process-environment (gemini-companion-terminal-cli-environment cli)))
    (seq-every-p (pcase-lambda (`(,_ ,problem ,_ . ,actions))
                   (pcase (car actions)
                     (`(,(or "Enable" "Set it") . ,set)
                      (or (not (gemini-companion-choice-y-or-n-p
                                (format "%s; change this setting? " problem)))
                          (funcall set)))
                     (_ t)))
                 (gemini-companion-client-settings-findings
                  (gemini-companion-terminal-cli-client cli)
                  (gemini-companion-terminal-cli-directory cli)
                  #'gemini-companion-cli--connected-p))))

(defun gemini-companion-cli--connected-p (client)
  "Return non-nil if a CLI of CLIENT is connected."
  (cl-member client (gemini-companion-sessions)
             :key #'gemini-companion-session-client :test #'equal))

;;;; Problems

(defun gemini-companion-cli-finding (client directory &optional searched)
  "Return the finding about why a CLI of CLIENT is not connected.
DIRECTORY is where it runs, or nil if that is unknown.  SEARCHED is the
directory in which it searches for Emacs, if no discovery file is there.
The finding has a remedy; see `gemini-companion-status-checks'."
  (or (and searched
           (gemini-companion-cli--search-finding client searched))
      (and directory
           (seq-find (lambda (finding) (memq (car finding) '(bad note)))
                     (cons
                      (gemini-companion-roots-finding directory)
                      ;; The settings of a CLI on a remote host are on that host.
                      (unless (file-remote-p directory)
                        ;; Only the first setting is needed to connect.
                        (seq-take (gemini-companion-client-settings-findings
                                   client directory #'always)
                                  1)))))
      `(bad nil ,(gemini-companion-client-connect-remedy client))))

(defun gemini-companion-cli--search-finding (client directory)
  "Return the finding about the search of CLIENT for Emacs in DIRECTORY."
  (let ((file (cadr (assoc client (plist-get (gemini-companion-server-info)
                                             :discovery)))))
    `(note ,(format "it searches %s for editors%s" directory
                    (if file
                        (format ", but the discovery file is in %s"
                                (directory-file-name (file-name-directory file)))
                      ""))
           ,(format "Start it with the same %s as Emacs%s."
                    (gemini-companion-client-home-variable client)
                    (if (gemini-companion-client-temporary-directory client)
                        (substitute-command-keys ", or with \\[gemini-companion-run]")
                      "")))))

(defun gemini-companion-cli--remedy (finding)
  "Return the remedy of FINDING without its details, to follow a semicolon."
  (let ((remedy (car (split-string (nth 2 finding) "[.,]\\(?: \\|\\'\\)"))))
    (concat (downcase (substring remedy 0 1)) (substring remedy 1))))

(defun gemini-companion-cli--check-settings (previous)
  "Report new CLIs whose settings make them write without asking.
PREVIOUS are the CLIs that were connected before."
  (pcase-dolist ((cl-struct gemini-companion-session remote client directory)
                 (seq-difference (gemini-companion-sessions) previous
                                 #'gemini-companion-session-same-p))
    ;; The settings of a CLI on another host are on that host.
    (unless remote
      ;; A CLI without the first setting would not connect.
      (dolist (finding (cdr (gemini-companion-client-settings-findings
                             client (or directory "/"))))
        (when (eq 'bad (car finding))
          (message "%s; %s (or use %s)" (nth 1 finding)
                   (gemini-companion-cli--remedy finding)
                   (substitute-command-keys "\\[gemini-companion-status]")))))))

;;;; CLIs on other hosts

(cl-defgeneric gemini-companion-cli-host-agree (host)
  "Ask the user whether to connect HOST, such as \"/ssh:host:\", the first time.
Signal a `user-error' if the answer is no, or if no command connects it.
The add-on for remote hosts has the methods of these generic functions.")

(cl-defgeneric gemini-companion-cli-host-connect (host directory then)
  "Connect HOST for a CLI in DIRECTORY of that host.
Call THEN later with the workspace root and nil, or with nil and a sentence
about why no CLI can connect.")

(cl-defgeneric gemini-companion-cli-host-rejoin (host)
  "Reconnect HOST, as the user has displayed the terminal of a CLI there.")

(cl-defgeneric gemini-companion-cli-host-command (host root command)
  "Return the local command for COMMAND in ROOT on HOST, in a terminal.
Both commands are lists of strings.")

;;;; CLIs

(defun gemini-companion-cli-wanted (number)
  "Return the CLI of the current buffer, running or not.
In the terminal of a CLI, it is that CLI; elsewhere, the CLI of the project.
NUMBER, a raw prefix argument, chooses one of several CLIs in a directory.  If
NUMBER is a list, return a new CLI, and ask for its client."
  (let* ((here (or gemini-companion-terminal-cli (gemini-companion-cli--new)))
         (exec-path (gemini-companion-terminal-cli-path here)))
    (gemini-companion-terminal-cli-with
     (if (consp number)
         (gemini-companion-cli--another here)
       (gemini-companion-cli--usual here (and number
                                              (prefix-numeric-value number))))
     ;; Only `gemini-companion-resume' resumes a conversation.
     'arguments nil)))

(defun gemini-companion-cli--another (here)
  "Return a new CLI in the directory of the CLI HERE; ask for its client."
  (let ((cli (gemini-companion-terminal-cli-with
              here
              'client (gemini-companion-cli--choose-client
                       t (gemini-companion-terminal-cli-remote here)))))
    (gemini-companion-terminal-cli-with
     cli 'number (gemini-companion-cli-free-number cli))))

(defun gemini-companion-cli--usual (here number)
  "Return the CLI with NUMBER in the directory of the CLI HERE.
NUMBER is by default the number of HERE, or 1.  The client is that of HERE,
or of a CLI that runs in the directory, or else the user chooses it."
  (gemini-companion-terminal-cli-with
   here
   'client (or (gemini-companion-terminal-cli-client here)
               (gemini-companion-cli--running-client here)
               (gemini-companion-cli--choose-client
                nil (gemini-companion-terminal-cli-remote here)))
   'number (or number (gemini-companion-terminal-cli-number here) 1)))

(defun gemini-companion-cli--running-client (here)
  "Return the client of a running CLI in the directory of the CLI HERE, or nil.
Prefer `gemini-companion-run-client', then the order of the clients."
  (seq-find (lambda (client)
              (gemini-companion-cli-live-buffer
               (gemini-companion-terminal-cli-with
                here 'client client 'number 1)))
            (delq nil (cons gemini-companion-run-client
                            gemini-companion-clients))))

(defun gemini-companion-cli--new ()
  "Return a CLI for the current buffer, which is not the terminal of a CLI.
Its directory is the root of the project, or else that of the buffer.  On a
remote host, it is the workspace root, or that of the buffer until the root
is known.  The CLI has neither client nor number."
  (pcase-let ((`(,name ,there ,root)
               (when (file-remote-p default-directory)
                 (unless (gemini-companion-part-load 'remote)
                   (user-error "A CLI on another host needs the file \
gemini-companion-remote.el, which is not installed"))
                 (gemini-companion-names-remote-location default-directory))))
    (gemini-companion-terminal-cli-make
     :directory (file-name-as-directory
                 (if name
                     (concat name (or root there))
                   (gemini-companion-cli--local-directory)))
     :remote name
     :there there
     :environment process-environment
     :path exec-path)))

(defun gemini-companion-cli--local-directory ()
  "Return the directory of a new CLI for this local buffer.
Signal an error if the directory of the buffer does not exist."
  (let* ((project (project-current))
         (home (expand-file-name "~/"))
         (root (and project (expand-file-name (project-root project))))
         ;; A home directory under version control is no workspace root.
         (directory (if (or (null root) (equal root home))
                        (expand-file-name default-directory)
                      root)))
    (unless (file-accessible-directory-p directory)
      (user-error "Directory %s does not exist; switch to another buffer"
                  (gemini-companion-names-absolute directory)))
    directory))

(defun gemini-companion-cli--buffer (cli)
  "Return the buffer of the CLI with the client, directory and number of CLI.
Return nil if there is none."
  (seq-find
   (lambda (buffer)
     (when-let* ((other (buffer-local-value 'gemini-companion-terminal-cli buffer)))
       (and (equal (gemini-companion-terminal-cli-client cli)
                   (gemini-companion-terminal-cli-client other))
            (equal (gemini-companion-terminal-cli-directory cli)
                   (gemini-companion-terminal-cli-directory other))
            (equal (gemini-companion-terminal-cli-number cli)
                   (gemini-companion-terminal-cli-number other)))))
   (buffer-list)))

(defun gemini-companion-cli-live-buffer (cli)
  "Return the buffer of CLI if it has a live process or waits for one."
  (when-let* ((buffer (gemini-companion-cli--buffer cli)))
    (and (or (memq buffer gemini-companion-cli--waiting)
             (process-live-p (get-buffer-process buffer)))
         buffer)))

(defun gemini-companion-cli-free-number (cli)
  "Return the lowest number that no running CLI has.
Only CLIs with the client and the directory of CLI are compared."
  (let ((number 1))
    (while (gemini-companion-cli-live-buffer
            (gemini-companion-terminal-cli-with cli 'number number))
      (cl-incf number))
    number))

(defun gemini-companion-cli-name (cli)
  "Return a name of CLI for the user, such as \"Gemini CLI (shop)\"."
  (pcase-let (((cl-struct gemini-companion-terminal-cli client directory) cli))
    (format "%s (%s)" (gemini-companion-client-title client)
            (gemini-companion-session-directory-name directory nil))))

(defun gemini-companion-cli--buffer-name (cli)
  "Return the name of the buffer of CLI, such as \"*gemini: app (2)*\"."
  (pcase-let (((cl-struct gemini-companion-terminal-cli
                          client directory number remote)
               cli))
    (format "*%s: %s%s%s*" client
            (if remote (concat (gemini-companion-names-title remote) ":") "")
            (gemini-companion-names-shown
             (file-name-nondirectory (directory-file-name directory)))
            (if (eql number 1) "" (format " (%d)" number)))))

(defun gemini-companion-cli-check (cli)
  "Signal an error if the program of CLI, or a terminal, is missing.
For a remote host, the program is the one that connects it.  Ask whether to
start CLI in a directory from which it cannot connect."
  (pcase-let* (((cl-struct gemini-companion-terminal-cli
                           client directory remote path)
                cli)
               (program (car (gemini-companion-cli-command client)))
               (exec-path path))
    (when remote
      (unless (gemini-companion-client-port-variable client)
        (user-error "%s cannot connect from another host"
                    (gemini-companion-client-title client)))
      (gemini-companion-cli-host-agree remote))
    (unless (gemini-companion-terminal-function)
      (user-error "Emacs has no terminal on Windows; start the CLI in another \
window, in %s" (gemini-companion-names-absolute directory)))
    (unless (or remote (executable-find program))
      (user-error "Cannot find the program %s; install it (npm install -g \
%s, which needs Node.js %s), or customize `gemini-companion-run-commands'%s"
                  program
                  (gemini-companion-client-package client)
                  (gemini-companion-client-node client)
                  (gemini-companion-install-path-hint)))
    (unless (or remote
                (gemini-companion-cli--in-root-p directory)
                (gemini-companion-choice-y-or-n-p
                 (format "%s is not a workspace root, so no CLI can \
connect; start one? " (gemini-companion-names-absolute directory))))
      (user-error "Not started; switch to a buffer of a project"))))

(defun gemini-companion-cli--in-root-p (directory)
  "Return non-nil if DIRECTORY is, or would be, in a workspace root."
  (seq-some (apply-partially #'file-in-directory-p directory)
            (gemini-companion-roots directory)))

;;;; Start

(defun gemini-companion-cli--show-buffer (cli)
  "Select and return an empty buffer for CLI; reuse its previous one, if any."
  (let ((buffer (or (gemini-companion-cli--buffer cli)
                    (generate-new-buffer (gemini-companion-cli--buffer-name cli)))))
    (gemini-companion-terminal-show buffer)
    (set-buffer buffer)
    ;; With a function on this hook, vterm prevents a change of the major mode.
    (kill-local-variable 'change-major-mode-hook)
    (special-mode)                      ; a term in Emacs 28 needs a keymap
    (setq buffer-read-only nil)
    (delete-all-overlays)
    (erase-buffer)
    (setq gemini-companion-terminal-cli cli)
    (gemini-companion-terminal-show-plainly)
    (pcase-let (((cl-struct gemini-companion-terminal-cli directory remote) cli))
      ;; The process in the terminal is a local one.
      (setq default-directory (if remote "~/" directory)
            gemini-companion-session-remote-directory (and remote directory)))
    buffer))

(defun gemini-companion-cli--start-waiting (&optional problem)
  "Start the CLIs that wait for the server, in their buffers.
If no CLI can start, PROBLEM is the reason, which the buffers show instead."
  (dolist (buffer gemini-companion-cli--waiting)
    (cond ((not (buffer-live-p buffer))
           (cl-callf2 remq buffer gemini-companion-cli--waiting))
          ;; Connecting the remote host calls `gemini-companion-cli--start-in'.
          ((gemini-companion-terminal-cli-remote
            (buffer-local-value 'gemini-companion-terminal-cli buffer)))
          (problem
           (gemini-companion-cli--start-in buffer nil problem))
          (t
           (gemini-companion-cli--start-once-found buffer)))))

(defun gemini-companion-cli--start-once-found (buffer)
  "Start the CLI that waits in BUFFER once it can find this Emacs.
If its temporary directory differs from that of the server, as with envrc or
direnv, wait until there is a discovery file in it."
  (with-current-buffer buffer
    (setq gemini-companion-cli--other-temporary
          (gemini-companion-cli--find-temporary gemini-companion-terminal-cli)))
  (if (buffer-local-value 'gemini-companion-cli--other-temporary buffer)
      (gemini-companion-cli--update-discovery
       (lambda ()
         ;; A replaced server may call this a second time.
         (when (memq buffer gemini-companion-cli--waiting)
           (gemini-companion-cli--start-in buffer nil nil))))
    (gemini-companion-cli--start-in buffer nil nil)))

(defun gemini-companion-cli--find-temporary (cli)
  "Return the temporary directory of CLI if it differs from that of the server.
Return nil if the server has written the discovery file in it, or if the client
does not search in a temporary directory."
  (pcase-let* (((cl-struct gemini-companion-terminal-cli client directory) cli)
               (file (cadr (assoc client
                                  (plist-get (gemini-companion-server-info)
                                             :discovery))))
               (temporary (gemini-companion-cli--temporary-directory
                           (gemini-companion-cli--environment cli) directory)))
    (when (and (gemini-companion-client-temporary-directory client)
               (not (and file
                         (equal (file-truename
                                 (gemini-companion-cli--search-directory
                                  client temporary))
                                (file-truename
                                 (directory-file-name
                                  (file-name-directory file)))))))
      temporary)))

(defun gemini-companion-cli--temporary-directory (environment directory)
  "Return the temporary directory in ENVIRONMENT, for a CLI in DIRECTORY.
The CLIs find it as os.tmpdir() of Node.js does."
  (let* ((process-environment environment)
         (variables (if (eq system-type 'windows-nt)
                        '("TEMP" "TMP")
                      '("TMPDIR" "TMP" "TEMP")))
         (values (mapcar #'getenv variables))
         (value (seq-find (lambda (value) (not (member value '(nil ""))))
                          (append values '("/tmp")))))
    (directory-file-name (gemini-companion-names-in directory value))))

(defun gemini-companion-cli--search-directory (client temporary)
  "Return the directory of discovery files for CLIENT.
It is in TEMPORARY, a temporary directory."
  (gemini-companion-names-below
   temporary (gemini-companion-client-temporary-directory client)))

(defun gemini-companion-cli--update-discovery (&optional then)
  "Call the server to write the discovery files for all CLIs in this Emacs.
Then call THEN, if it is non-nil and there is a server."
  (gemini-companion-server-search-in
   (seq-uniq
    (delq nil (mapcar (apply-partially #'buffer-local-value
                                       'gemini-companion-cli--other-temporary)
                      (buffer-list))))
   (or then #'ignore)))

(defun gemini-companion-cli--delete-files ()
  "Delete the files for the CLI of this buffer, which ends.
Keep its discovery file if other CLIs need that."
  (gemini-companion-input-file-delete)
  (when gemini-companion-cli--other-temporary
    (setq gemini-companion-cli--other-temporary nil)
    (gemini-companion-cli--update-discovery)))

(defun gemini-companion-cli--start-in (buffer root problem)
  "Start the CLI that waits in BUFFER, or show PROBLEM if it is non-nil.
ROOT is the workspace root on its remote host, if any.  This is called when
the server or the host is ready or has failed."
  (setq gemini-companion-cli--waiting
        (remq buffer gemini-companion-cli--waiting))
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (erase-buffer)
      (when root
        (let ((cli gemini-companion-terminal-cli))
          (setq gemini-companion-terminal-cli
                (gemini-companion-terminal-cli-with
                 cli
                 'root root
                 'directory (file-name-as-directory
                             (concat (gemini-companion-terminal-cli-remote cli)
                                     root))))
          (rename-buffer (gemini-companion-cli--buffer-name
                          gemini-companion-terminal-cli)
                         'unique)))
      (when-let* ((failure (or problem (gemini-companion-cli--start))))
        (insert failure "\n")
        (gemini-companion-cli--end "Not started")))))

(defun gemini-companion-cli--start ()
  "Start the CLI of this buffer in a terminal, and watch its process.
Return nil, or the message of an error: a program may not be executable, and
the terminal function of the user may signal any error."
  (condition-case-unless-debug err
      (let ((cli gemini-companion-terminal-cli))
        (gemini-companion-cli--start-terminal cli)
        (add-hook 'kill-buffer-hook #'gemini-companion-cli--delete-files nil t)
        ;; A terminal outside of Emacs has no process in this buffer.
        (when-let* ((process (get-buffer-process (current-buffer))))
          (gemini-companion-cli--follow process cli))
        nil)
    (error (error-message-string err))))

(defun gemini-companion-cli--start-terminal (cli)
  "Run the command of CLI in this buffer, as a terminal."
  (let* ((buffer (current-buffer))
         (process-environment (gemini-companion-cli--environment cli))
         (exec-path (gemini-companion-terminal-cli-path cli))
         (command (gemini-companion-cli--command-in-terminal cli))
         (program (car command)))
    ;; The terminals take their size from the selected window.
    (with-selected-window (or (get-buffer-window buffer t) (selected-window))
      (with-current-buffer buffer
        (gemini-companion-terminal-start
         (cons (or (executable-find program) program) (cdr command)))))))

(defun gemini-companion-cli--command-in-terminal (cli)
  "Return the command for CLI, a list of strings.
For a CLI on a remote host, it is a local command that runs it there."
  (pcase-let* (((cl-struct gemini-companion-terminal-cli
                           client arguments remote root)
                cli)
               (command (gemini-companion-cli-command client)))
    (if remote
        (gemini-companion-cli-host-command remote root (append command arguments))
      (append command (gemini-companion-input-file-arguments client command) arguments))))

(defun gemini-companion-cli--follow (process cli)
  "Watch PROCESS, in which CLI has started, until it ends."
  (process-put process 'gemini-companion-started (float-time))
  ;; The first start of a CLI creates the directory for its discovery file.
  (unless (gemini-companion-terminal-cli-remote cli)
    (gemini-companion-server-call
     'cli-started (gemini-companion-terminal-cli-client cli)))
  (gemini-companion-terminal-watch)
  (add-function :around (process-sentinel process)
                #'gemini-companion-cli--sentinel)
  ;; A CLI may take 20 seconds to connect.
  (run-at-time 20 nil #'gemini-companion-cli--hint process))

(defun gemini-companion-cli--export (entries)
  "Prepend ENTRIES to each environment, and remove the exported entries.
The first entry for a variable counts.  The environments are the default value
and the buffer-local ones of packages such as envrc and mise."
  (let ((change (lambda (environment)
                  ;; Entries of the user may be equal, and must stay.
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

(defun gemini-companion-cli--environment (cli)
  "Return the environment of CLI, a list of strings as `process-environment'."
  ;; Unset the variables of the terminal in which Emacs runs.  With TMUX, Gemini CLI
  ;; ignores a white background.
  (append '("TMUX" "TMUX_PANE" "STY")
          gemini-companion-cli--exported
          (gemini-companion-terminal-cli-environment cli)))

;;;; Hints

(defun gemini-companion-cli--hint (process)
  "Show in its header line how to connect the CLI of PROCESS, if it is not.
A timer calls this some time after the start of the CLI."
  (when (and (process-live-p process)
             (gemini-companion-server-ready-p))
    (with-current-buffer (process-buffer process)
      (setq gemini-companion-terminal-hint (gemini-companion-cli--hint-text))
      (force-mode-line-update))))

(defun gemini-companion-cli--hint-text ()
  "Return a text about the CLI of this buffer, which is not connected."
  (let ((finding (gemini-companion-cli-finding
                  (gemini-companion-terminal-cli-client gemini-companion-terminal-cli)
                  (gemini-companion-terminal-cli-directory
                   gemini-companion-terminal-cli))))
    (format "Not connected; %s (%s shows why)"
            (gemini-companion-cli--remedy finding)
            (substitute-command-keys "\\[gemini-companion-status]"))))

;;;; End

(defun gemini-companion-cli--sentinel (sentinel process event)
  "Call SENTINEL, and show that the CLI has ended.
SENTINEL is the sentinel of the terminal, and PROCESS and EVENT are its
arguments."
  ;; vterm would kill the buffer, with the error message of the CLI.
  (let ((vterm-kill-buffer-on-exit nil)
        (buffer (process-buffer process)))
    (funcall sentinel process event)
    (when (and (buffer-live-p buffer) (not (process-live-p process)))
      (with-current-buffer buffer
        (setq gemini-companion-cli--failure
              (gemini-companion-cli--start-failure process))
        (gemini-companion-cli--end
         (format "%s: %s"
                 (gemini-companion-client-title
                  (gemini-companion-terminal-cli-client
                   gemini-companion-terminal-cli))
                 (gemini-companion-text-trim event)))))))

(defun gemini-companion-cli--start-failure (process)
  "Return the exit status of PROCESS, a CLI, if it has failed to start.
A shell and env exit with 126 or 127 if they cannot run a program.  A CLI may
exit with the status of the last command in it, but not within ten seconds."
  (let ((status (process-exit-status process)))
    (and (eq 'exit (process-status process))
         (memq status '(126 127))
         (< (- (float-time) (process-get process 'gemini-companion-started)) 10)
         status)))

(defun gemini-companion-cli--end (reason)
  "Mark this buffer as that of a CLI that has ended, for REASON, a string.
The header line shows REASON, and the keys that start the CLI again."
  (gemini-companion-cli--delete-files)
  (setq-local minor-mode-overriding-map-alist
              (list (cons t gemini-companion-terminal-ended-map)))
  (setq buffer-read-only t)
  ;; In other states, Evil binds these keys.
  (when (bound-and-true-p evil-local-mode)
    (evil-emacs-state))
  (setq header-line-format
        ;; A % would begin a construct of the mode line.
        (string-replace
         "%" "%%"
         (concat " " reason (substitute-command-keys "; \
\\<gemini-companion-terminal-ended-map>\\[gemini-companion-run] restarts it, \
\\[gemini-companion-resume] resumes a conversation, \
\\[quit-window] quits")))))

;;;; Life

(cl-defmethod gemini-companion-part-findings ((_part (eql 'cli)) _directory)
  "Return the findings about CLIs that have failed to start."
  (mapcan (lambda (buffer)
            (with-current-buffer buffer
              (when gemini-companion-cli--failure
                (list (cons "Start" (gemini-companion-cli--failure-finding))))))
          (buffer-list)))

(defun gemini-companion-cli--failure-finding ()
  "Return the finding about the CLI in this buffer, which has failed to start."
  (let* ((cli gemini-companion-terminal-cli)
         (remote (gemini-companion-terminal-cli-remote cli)))
    (list 'bad
          (concat (format "%s did not start (exit status %d)"
                          (gemini-companion-cli-name cli)
                          gemini-companion-cli--failure)
                  (mapconcat (apply-partially #'concat "\n")
                             (gemini-companion-cli--last-lines) ""))
          (concat (if (eql gemini-companion-cli--failure 126)
                      "Make the program that it names executable"
                    (format "Put the program that it names into the PATH of %s"
                            (if remote
                                (gemini-companion-names-title remote)
                              "Emacs")))
                  ", and start the CLI again"
                  (if remote "" (gemini-companion-install-path-hint))
                  ".")
          (cons "Terminal" (apply-partially #'gemini-companion-terminal-show
                                            (current-buffer))))))

(defun gemini-companion-cli--last-lines ()
  "Return the last four lines, at most, that the CLI in this buffer has printed.
Omit the line of the terminal about the end of the process."
  (last (seq-remove (apply-partially #'string-match-p
                                     "\\`Process .* \\(?:exited\\|finished\\)")
                    (delete "" (mapcar (lambda (line)
                                         (gemini-companion-text-trim line " \t" 'right))
                                       (split-string (buffer-substring-no-properties
                                                      (point-min) (point-max))
                                                     "\n"))))
        4))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'cli)))
  "Watch the terminals of connected CLIs, and check their settings."
  '((gemini-companion-session-changed-functions gemini-companion-terminal-watch)
    (gemini-companion-session-changed-functions
     gemini-companion-cli--check-settings)))

(cl-defmethod gemini-companion-part-ready ((_part (eql 'cli)) _how)
  "Start the CLIs that waited for the server, and export variables for others."
  (gemini-companion-cli--export
   `(,@(gemini-companion-clients-variables
        (plist-get (gemini-companion-server-info) :port) (emacs-pid))
     ;; Without =, a variable is unset.
     ,@(copy-sequence (gemini-companion-clients-append
                       #'gemini-companion-client-unset-variables))
     ,@(when (seq-some #'file-exists-p '("/.dockerenv" "/run/.containerenv"))
         (gemini-companion-clients-append
          #'gemini-companion-client-container-entries))))
  (gemini-companion-terminal-watch)
  ;; The CLIs may have started before the mode was turned off and on again.
  (when (seq-some (apply-partially #'buffer-local-value
                                   'gemini-companion-cli--other-temporary)
                  (buffer-list))
    (gemini-companion-cli--update-discovery))
  (gemini-companion-cli--start-waiting))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'cli)))
  "Stop starting CLIs and watching terminals, and restore the environment."
  (gemini-companion-terminal-release)
  (gemini-companion-input-file-delete-all)
  (gemini-companion-cli--start-waiting "The server is not running")
  (gemini-companion-cli--export nil)
  (cancel-function-timers #'gemini-companion-cli--hint))

;;;; Commands

(defun gemini-companion-run (&optional number)
  "Switch to the CLI of this project, or start it in a terminal.
It starts in the root of the project, once the server is ready; the mode
is turned on if necessary.  `gemini-companion-run-client' is the CLI to
start.  NUMBER, the prefix argument, chooses a CLI if there are several
in the project; \\[universal-argument] alone starts a new CLI of any kind.
In a buffer on another host, the CLI runs there.  If the CLI is in the
selected window, and that is a side window, the window is hidden."
  (interactive "P")
  (let* ((cli (gemini-companion-cli-wanted number))
         (buffer (gemini-companion-cli-live-buffer cli)))
    (cond ((null buffer)
           (gemini-companion-cli-check cli)
           (gemini-companion-cli-launch cli))
          ((and gemini-companion-run-side-window
                (eq buffer (window-buffer)))
           (quit-window))
          (t
           (gemini-companion-terminal-show buffer)
           ;; No shell would continue a CLI that was suspended.
           (when (process-live-p (get-buffer-process buffer))
             (continue-process buffer))
           (when-let* ((name (gemini-companion-terminal-cli-remote cli))
                       ((not (gemini-companion-names-connected-p name))))
             (gemini-companion-cli-host-rejoin name))))))

(defun gemini-companion-cli-launch (cli)
  "Start CLI in an empty buffer, once the server is ready.
Turn the mode on, and connect the remote host of CLI, if necessary."
  (pcase-let (((cl-struct gemini-companion-terminal-cli client remote there) cli))
    (when (and (or (bound-and-true-p gemini-companion-mode) (gemini-companion-mode 1))
               (or remote (gemini-companion-cli--offer-settings cli)))
      (unless remote
        (let ((process-environment (gemini-companion-terminal-cli-environment cli)))
          (gemini-companion-extension-offer client)))
      (let ((buffer (gemini-companion-cli--show-buffer cli)))
        (insert (gemini-companion-client-title client)
                " starts here when the server is ready.\n")
        (push buffer gemini-companion-cli--waiting)
        (cond (remote
               (gemini-companion-cli-host-connect
                remote there
                (apply-partially #'gemini-companion-cli--start-in buffer)))
              ((gemini-companion-server-ready-p)
               (gemini-companion-cli--start-waiting)))))))

(provide 'gemini-companion-cli)
;;; gemini-companion-cli.el ends here
