;;; gemini-companion-remote.el --- CLIs on other hosts and in containers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Connect remote hosts on which CLIs run.  The server starts a small program on the
;; host, the outpost, by a command such as "ssh host".  This file has the commands that
;; connect and disconnect a host, and the methods by which `gemini-companion-run'
;; starts a CLI on the host in a terminal of this Emacs.

;;; Code:

(require 'format-spec)
(require 'gemini-companion-choice)
(require 'gemini-companion-cli)
(require 'gemini-companion-client-settings)
(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-idle)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-proposal)
(require 'gemini-companion-remote-names)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'map)

(declare-function tramp-compute-multi-hops "tramp-sh")
(declare-function tramp-dissect-file-name "tramp")
(declare-function tramp-file-name-host "tramp")
(declare-function tramp-file-name-method "tramp")
(declare-function tramp-file-name-port "tramp")
(declare-function tramp-file-name-user "tramp")
(declare-function tramp-shell-quote-argument "tramp")

;;;; Customization

(defcustom gemini-companion-remote-commands
  '((("ssh" "sshx" "scp" "scpx" "rsync")
     "ssh" (:pipe "-TC" "-o" "BatchMode=yes" "-o" "ServerAliveInterval=15")
     (:terminal "-t") ("-l" "%u") ("-p" "%p") "%h" :line)
    (("docker" "dockercp")
     "docker" "exec" (:pipe "-i") (:terminal "-it") ("-u" "%u") "%h")
    (("podman" "podmancp")
     "podman" "exec" (:pipe "-i") (:terminal "-it") ("-u" "%u") "%h")
    (("kubernetes")
     "kubectl" "exec" (:pipe "-i") (:terminal "-it") ("-c" "%c") "%n" "--")
    (("sudo") "sudo" (:pipe "-n") "-H" ("-u" "%u"))
    (("doas") "doas" (:pipe "-n") ("-u" "%u"))
    (("su") "su" "-" ("%u") "-c" :line)
    (("toolbox") "toolbox" "run" ("-c" "%h"))
    (("distrobox") "distrobox" "enter" (:pipe "-T") "%h" "--")
    (("flatpak") "flatpak" "enter" "%h")
    (("incus" "lxc") "%m" "exec" (:pipe "-T") (:terminal "-t") "%h" "--")
    (("wsl") "wsl.exe" "-d" "%h" ("-u" "%u") "-e"))
  "Commands that run a program on a remote host, by method of TRAMP.
Each element is (METHODS WORD...).  In a WORD, %h stands for the host,
%u for the user, %p for the port and %m for the method; %c and %n are
the container and the pod of a host called CONTAINER.POD or POD.  A
list of words is omitted if the value of one of them is empty; a list
after `:pipe' is for programs whose input and output are pipes, a list
after `:terminal' for those in a terminal.  `:line' at the end means
that the command takes the program as one line for a shell."
  :type '(alist :key-type (repeat (string :tag "Method"))
                :value-type (repeat sexp))
  :risky t
  :group 'gemini-companion-remote
  :package-version '(gemini-companion . "0.1.0"))

;;;; Facts

(defun gemini-companion-remote--get (name key)
  "Return the value of KEY, such as `:state', for the host NAME, or nil.
For the keys, see `gemini-companion-remote-names-hosts'."
  (plist-get (cdr (assoc name gemini-companion-remote-names-hosts)) key))

(defun gemini-companion-remote--put (name plist)
  "Set the keys in PLIST for the host NAME, which may be new; keep other keys."
  (setf (alist-get name gemini-companion-remote-names-hosts nil nil #'equal)
        (map-merge 'plist (cdr (assoc name gemini-companion-remote-names-hosts)) plist)))

;;;; System commands

(defun gemini-companion-remote--wrap (program hop kind)
  "Return the command for PROGRAM, a list, on HOP.
KIND is `:pipe' or `:terminal'."
  (let* ((method (tramp-file-name-method hop))
         (row (or (seq-find (lambda (row) (member method (car row)))
                            gemini-companion-remote-commands)
                  (user-error "No command for method %s; \
customize `gemini-companion-remote-commands'" method)))
         (host (tramp-file-name-host hop))
         (pod (and host (file-name-extension host)))
         (values (seq-filter #'cdr
                             `((?m . ,method)
                               (?h . ,host)
                               (?c . ,(and pod (file-name-sans-extension host)))
                               (?n . ,(or pod host))
                               (?u . ,(tramp-file-name-user hop))
                               (?p . ,(tramp-file-name-port hop))))))
    (append
     (seq-mapcat
      (lambda (words)
        (pcase (ensure-list words)
          (`(,(or :pipe :terminal) . ,more) (and (eq kind (car words)) more))
          ;; `format-spec' signals an error for a word without a value.
          (words (ignore-errors
                   (mapcar (lambda (word)
                             (substring-no-properties
                              (format-spec word values)))
                           words)))))
      (remq :line (cdr row)))
     (if (memq :line row)
         (list (mapconcat #'tramp-shell-quote-argument program " "))
       program))))

(defun gemini-companion-remote--command (name kind program)
  "Return the command for PROGRAM, a list, on the host NAME.
KIND is `:pipe' or `:terminal'."
  (require 'tramp-sh)
  (seq-reduce
   (lambda (program hop) (gemini-companion-remote--wrap program hop kind))
   (condition-case problem
       ;; Tramp waits for 30 seconds after a message about an unknown method.
       (let ((inhibit-message t)
             (non-essential t))
         (reverse (tramp-compute-multi-hops (tramp-dissect-file-name name))))
     (error
      (when (string-search "|" name)
        (signal (car problem) (cdr problem)))
      ;; If the files of a host are mounted here, the host is only a name, and
      ;; Tramp need not know its method.
      (list (tramp-dissect-file-name name 'nodefault))))
   program))

(defun gemini-companion-remote--in-shell (name kind directory variables program)
  "Return the command for PROGRAM in DIRECTORY of the host NAME.
KIND is `:pipe' or `:terminal', VARIABLES are strings NAME=VALUE, and
PROGRAM is a list, whose first element may be in the path of a login shell
only."
  (gemini-companion-remote--command
   name kind
   ;; A line break in quotes is an error in csh, and its -l takes no other flag.
   (list "sh" "-c" "cd \"$2\" || exit; command -v \"$3\" >/dev/null && eval \"$1\"; \
case $SHELL in *csh) exec $SHELL -c \"$1\"; esac; exec \"${SHELL:-sh}\" -lic \"$1\""
         "sh"
         (mapconcat #'tramp-shell-quote-argument
                    ;; Without env, the shell itself reports a missing program.
                    `("exec" ,@(and variables '("env")) ,@variables ,@program)
                    " ")
         directory (car program))))

(defun gemini-companion-remote--terminal-command (name directory program)
  "Return the command for PROGRAM, a list, in a terminal.
It runs in DIRECTORY of the host NAME."
  (gemini-companion-remote--in-shell
   name :terminal directory
   (append (gemini-companion-clients-variables
            (gemini-companion-remote--get name :port)
            (gemini-companion-remote--get name :pid))
           (gemini-companion-clients-append
            #'gemini-companion-client-container-entries)
           '("TERM=xterm-256color" "COLORTERM=truecolor"))
   program))

;;;; Connecting

(defun gemini-companion-remote--directory-usable-p (directory)
  "Return non-nil if DIRECTORY, a directory or nil, can hold copies of files.
A cleanup of temporary files may have removed the directory.  The server
then makes it again, unless another user has made one of that name."
  (when directory
    (let ((attributes (file-attributes directory 'integer)))
      (or (null attributes)
          (and (eq t (file-attribute-type attributes))
               (or (eq system-type 'windows-nt)
                   (eql (user-uid) (file-attribute-user-id attributes))))))))

(defun gemini-companion-remote--connect (name directory connected)
  "Connect the host NAME for a CLI in DIRECTORY of that host.
Call CONNECTED later with the workspace root and nil, or with nil and a
sentence about why no CLI can connect."
  (letrec ((check (lambda ()
                    (when-let* ((answer (gemini-companion-remote--answer
                                         name directory)))
                      (remove-hook 'gemini-companion-names-hosts-hook check)
                      (gemini-companion-log-guarded
                          "Connecting a remote CLI"
                        (apply connected answer))))))
    (add-hook 'gemini-companion-names-hosts-hook check))
  ;; The edits of the previous connection may need the previous directory of copies.
  (unless (gemini-companion-remote--directory-usable-p
           (cdr (assoc name gemini-companion-remote-names-copies)))
    (push (cons name
                (file-truename
                 (make-temp-file
                  ;; A name with the process ID of this Emacs instead of that of
                  ;; the server: a server removes the directory once this Emacs has
                  ;; exited.
                  (replace-regexp-in-string
                   "-[0-9]+-\\'" (format "-%d-" (emacs-pid))
                   (or (plist-get (gemini-companion-server-info) :files)
                       "gemini-companion-"))
                  'directory)))
          gemini-companion-remote-names-copies))
  (let ((state (gemini-companion-remote--get name :state)))
    (gemini-companion-remote--put
     name
     `( :state ,(if (member state '("connected" "lost")) state "connecting")
        :directories ,(seq-union (gemini-companion-remote--get name :directories)
                                 (list directory)))))
  (gemini-companion-remote--start name))

(defun gemini-companion-remote--answer (name directory)
  "Return (ROOT PROBLEM) for DIRECTORY on the host NAME.
ROOT is the workspace root, and PROBLEM a sentence; one of them is nil.
Return nil while the host is being connected."
  (let ((root (assoc directory (gemini-companion-remote--get name :roots)))
        (title (gemini-companion-names-title name)))
    (pcase (gemini-companion-remote--get name :state)
      ((or 'nil "ended") (list nil (gemini-companion-remote--explain name)))
      ((and "connected" (guard root))
       (list (cadr root)
             (unless (cadr root)
               (format "No CLI can connect from %s on %s: that directory does \
not exist, or is the home directory or /" directory title)))))))

(defun gemini-companion-remote--start (name)
  "Call the server to connect the host NAME, if there is a server."
  (when-let* (((gemini-companion-server-ready-p))
              (directory (cdr (assoc name gemini-companion-remote-names-copies))))
    (gemini-companion-server-call
     'remote-start
     `( :name ,name
        :copies ,directory
        ;; The server puts its program in place of the last word.
        :command ,(gemini-companion-remote--in-shell
                   name :pipe "/" nil
                   '("node" "-e" "eval(Buffer.from(process.argv[1],'base64')+'')"
                     "outpost-base64"))
        ;; The files that decide what is shared, and the settings.  They are in a
        ;; workspace root unless their names begin with a tilde.
        :files (,@gemini-companion-names-dir-locals
                ,@(gemini-companion-clients-append
                   #'gemini-companion-client-ignore-files)
                ,@(remq nil (seq-mapcat #'gemini-companion-client-settings-names
                                        gemini-companion-clients)))
        :shared ,(gemini-companion-remote-names-shared name)
        ;; The facts of a host include the port and the token of a previous server.
        ,@(cdr (assoc name gemini-companion-remote-names-hosts))))))

(cl-defmethod gemini-companion-server-receive ((_method (eql 'remote-update)) facts)
  "Record FACTS, which the server has reported about a host."
  (let* ((name (plist-get facts :name))
         (title (gemini-companion-names-title name))
         (previous (gemini-companion-remote--get name :state))
         (state (plist-get facts :state)))
    (when previous
      (gemini-companion-remote--put name facts)
      (pcase (cons previous state)
        (`("lost" . "connected")
         (message "Reconnected to %s; if a CLI there does not reconnect, \
run %s in it, or restart it if it ignores keys"
                  title
                  (string-join
                   (seq-uniq (delq nil (mapcar
                                        #'gemini-companion-client-reconnect-command
                                        gemini-companion-clients)))
                   " or ")))
        (`("connected" . "lost")
         (message "Connection to %s lost; reconnecting" title))
        (`(,_ . "ended")
         (message "%s" (gemini-companion-remote--explain name))))
      (run-hooks 'gemini-companion-names-hosts-hook)))
  t)

(defvar gemini-companion-remote-write-seconds 30
  "Seconds for which a command waits until a host has written a file.")

(defvar gemini-companion-remote--writing nil
  "The files that the server is writing, an alist of (COPY . LATE).
LATE is non-nil once no command waits for that any more.")

(cl-defmethod gemini-companion-names-unwritable-reason ((file string))
  "Return that FILE is being written, or why its host cannot do that, or nil."
  (pcase (gemini-companion-names-of-copy file)
    ((guard (assoc file gemini-companion-remote--writing))
     (format "%s is being written; wait for that" (gemini-companion-names-visited file)))
    ((and `(,name . ,_)
          (guard (seq-some (pcase-lambda (`(,copy . ,late))
                             (and late
                                  (equal name (car (gemini-companion-names-of-copy copy)))))
                           gemini-companion-remote--writing)))
     (format "No answer from %s yet; try again later" (gemini-companion-names-title name)))
    (`(,name . ,_)
     (and (gemini-companion-names-connected-p name)
          (not (equal "connected" (gemini-companion-remote--get name :state)))
          (gemini-companion-remote--explain name)))))

(cl-defmethod gemini-companion-names-write ((file string) old text done)
  "Call the server to write TEXT to the remote file whose copy is FILE.
The server does so only if the file has the text OLD.  Signal a `user-error'
if the server does not run."
  (pcase (gemini-companion-names-of-copy file)
    (`(,host . ,there)
     (let* ((writing (list file))
            (timer (run-at-time
                    gemini-companion-remote-write-seconds nil
                    (lambda ()
                      (when (memq writing gemini-companion-remote--writing)
                        (setcdr writing t)
                        (gemini-companion-log-guarded "Giving up a host"
                          (funcall done
                                   (format "no answer from %s in %s s; it may be written later"
                                           (gemini-companion-names-title host)
                                           gemini-companion-remote-write-seconds)))))))
            (end (lambda (problem)
                   (cancel-timer timer)
                   (cl-callf2 delq writing gemini-companion-remote--writing)
                   (cond ((null (cdr writing)) (funcall done problem))
                         ((null problem)
                          (funcall done nil)
                          (gemini-companion-idle-announce
                           (format "%s was written after all"
                                   (gemini-companion-names-visited file))))))))
       (unless (gemini-companion-server-ask
                'remote-write
                `( ,host ,there ,(secure-hash 'sha256 old)
                   ,@(and text (list (base64-encode-string text t))))
                (lambda (_) (funcall end nil))
                end)
         (cancel-timer timer)
         (user-error "The server is not running; \
M-x gemini-companion-restart starts it"))
       (push writing gemini-companion-remote--writing)))))

(defun gemini-companion-remote--explain (name)
  "Return a sentence about why the host NAME is not connected."
  (let ((title (gemini-companion-names-title name))
        (problem (or (gemini-companion-remote--get name :problem) "disconnected"))
        (case-fold-search t))
    (format
     (cond ((string-match-p "permission denied\\(?: (\\|, please\\)\\|\
password\\|terminal is required\\|authentication required" problem)
            "%s asks for a password (%s); use a key and its agent, or a rule \
that needs none")
           ((string-match-p "node\\b.*\\(?:not found\\|permission denied\\|\
cannot execute\\|format error\\|not executable\\)\\|\
\\(?:not found\\|permission denied\\|unknown command\\).*node\\|syntaxerror"
                            problem)
            "Node.js was not found on %s, cannot be run or is too old (%s); \
install it, or add it to the path of your login shell there")
           ((string-match-p "copies of its files cannot be made" problem)
            "Connection to %s ended (%s); M-x gemini-companion-connect uses \
another directory")
           (t "Cannot connect to %s (%s); check the connection, then \
M-x gemini-companion-connect"))
     title problem)))

;;;; Findings

(defun gemini-companion-remote--findings (name remote)
  "Return the findings about the connected host NAME, such as \"/ssh:far:\".
REMOTE is a plist, the value of `gemini-companion-remote-names-hosts' for NAME."
  (pcase-let (((map :problems :node :tmp :port :container :versions) remote)
              (title (gemini-companion-names-title name)))
    `(,@(mapcar (lambda (problem)
                  `(bad ,(format "%s: the discovery file could not be written \
(%s)" title problem)
                        ,(substitute-command-keys
                          "Fix that, or set TMPDIR there to a directory \
that belongs to you, then type \\[gemini-companion-connect].")))
                problems)
      ,@(seq-mapcat (pcase-lambda (`(,client ,version))
                      (gemini-companion-remote--client-findings
                       client version name))
                    versions)
      (note ,(format "%s is connected (port %s there, Node.js %s)"
                     title port node)
            ,(format "If a CLI there does not connect: it must trust its \
directory, use the temporary directory %s%s, and reach 127.0.0.1, which a \
firewall may forbid.  The tools of M-x gemini-companion-tools do not reach it."
                     tmp
                     (if container
                         (format ", find %s in its environment"
                                 (string-join
                                  (gemini-companion-clients-append
                                   #'gemini-companion-client-container-entries)
                                  " "))
                       ""))))))

(defun gemini-companion-remote--client-findings (client version name)
  "Return the findings about CLIENT with VERSION on the host NAME.
They are about its version, and the settings that it needs to connect."
  (pcase-let* ((title (gemini-companion-client-title client))
               (oldest (gemini-companion-client-oldest client))
               (host (gemini-companion-names-title name))
               (`(,project ,user) (gemini-companion-client-settings-names client))
               (files
                `(,@(and project
                         (mapcar (lambda (root)
                                   (gemini-companion-names-below root project))
                                 (gemini-companion-names-roots name)))
                  ,@(and user
                         (list (gemini-companion-names-copy
                                (concat name user)))))))
    `(,@(when (and oldest (version< version oldest))
          `((bad ,(format "%s %s on %s cannot find Emacs; %s or later is needed"
                          title version host oldest)
                 ,(format "To update it there: npm install -g %s"
                          (gemini-companion-client-package client)))))
      ,@(seq-mapcat
         (pcase-lambda ((and required `(,_ ,_ ,problem ,command)))
           (unless (gemini-companion-client-settings-meet files required)
             `((bad ,(format "%s on %s" problem host)
                    ,(format "Type %s in %s there." command title)))))
         (gemini-companion-client-required-settings client)))))

;;;; Questions

(defun gemini-companion-remote--here ()
  "Return the remote location of a CLI for this buffer, or nil if it is local.
For the value, see `gemini-companion-names-remote-location'.  In the terminal
of a CLI on another host, use the directory of that CLI."
  (gemini-companion-names-remote-location
   (or gemini-companion-session-remote-directory default-directory)))

(cl-defmethod gemini-companion-cli-host-agree ((host string))
  "Ask the user whether to connect HOST, the first time.
Signal an error if the answer is no, or if no command connects it."
  (gemini-companion-remote--command host :pipe nil)
  (unless (assoc host gemini-companion-remote-directories)
    (unless (gemini-companion-choice-y-or-n-p
             (format "Connect CLIs on %s, and share your open files \
there with them? " (gemini-companion-names-title host)))
      (user-error "Not connected"))
    (gemini-companion-cli-save 'gemini-companion-remote-directories
                               (append gemini-companion-remote-directories
                                       (list (list host))))))

;;;; A CLI in a terminal

(cl-defmethod gemini-companion-cli-host-connect ((host string) directory then)
  "Connect HOST for a CLI in DIRECTORY, and call THEN later."
  (gemini-companion-remote--connect host directory then))

(cl-defmethod gemini-companion-cli-host-rejoin ((_host string))
  "Connect the host of the current buffer, a terminal, again."
  (gemini-companion-connect))

(cl-defmethod gemini-companion-cli-host-command ((host string) root command)
  "Return the local command for COMMAND in ROOT on HOST, in a terminal."
  (gemini-companion-remote--terminal-command host root command))

;;;; A CLI that the user starts

(defun gemini-companion-remote--report (host root problem)
  "Display that HOST is connected, or PROBLEM if it is non-nil.
ROOT is the workspace root there."
  (pcase-let (((map :problems :container)
               (cdr (assoc host gemini-companion-remote-names-hosts)))
              (title (gemini-companion-names-title host)))
    (cond (problem
           (message "%s" problem))
          (problems
           (message "%s is connected, but the discovery file could not \
be written there (%s); %s shows more"
                    title (string-join problems "; ")
                    (substitute-command-keys "\\[gemini-companion-status]")))
          (t
           (message "Connected to %s; run %s%s in %s there"
                    title
                    (if container
                        (mapconcat (lambda (entry) (concat entry " "))
                                   (gemini-companion-clients-append
                                    #'gemini-companion-client-container-entries)
                                   "")
                      "")
                    (string-join (seq-filter
                                  #'gemini-companion-client-port-variable
                                  gemini-companion-clients)
                                 " or ")
                    root)))))

;;;; Life

(cl-defmethod gemini-companion-part-findings ((_part (eql 'remote)) _directory)
  "Return the findings about the remote hosts, connected or lost."
  (mapcar
   (apply-partially #'cons "Remote host")
   (seq-mapcat
    (pcase-lambda (`(,name . ,remote))
      (pcase (plist-get remote :state)
        ("connected"
         (gemini-companion-remote--findings name remote))
        ((or "lost" "ended")
         `((bad ,(gemini-companion-remote--explain name))))
        (_
         `((wait ,(format "%s is being connected"
                          (gemini-companion-names-title name)))))))
    gemini-companion-remote-names-hosts)))

(cl-defmethod gemini-companion-part-ready ((_part (eql 'remote)) _how)
  "Connect the hosts to a server that became ready."
  ;; The previous server does not answer any more.
  (setq gemini-companion-remote--writing nil)
  (mapc #'gemini-companion-remote--start
        (mapcar #'car gemini-companion-remote-names-hosts)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'remote)))
  "Drop all hosts and the copies of their files, as the server stops."
  (setq gemini-companion-remote--writing nil)
  (mapc #'gemini-companion-remote--drop
        (mapcar #'car gemini-companion-remote-names-hosts))
  (while gemini-companion-remote-names-copies
    (let ((directory (cdr (pop gemini-companion-remote-names-copies))))
      (when (gemini-companion-remote--directory-usable-p directory)
        (ignore-error file-error
          (delete-directory directory t))))))

(defun gemini-companion-remote--drop (name)
  "Drop the host NAME; CLIs that wait for it do not start."
  (setq gemini-companion-remote-names-hosts
        (assoc-delete-all name gemini-companion-remote-names-hosts))
  (run-hooks 'gemini-companion-names-hosts-hook))

;;;; Commands

(defun gemini-companion-connect ()
  "Connect a remote host, for a CLI that you start there by hand.
It is the host of the file or directory of the current buffer.  A local
directory that is shared with a host counts as a directory of that host,
see `gemini-companion-remote-directories'.
`gemini-companion-run' connects the host and starts a CLI there."
  (interactive)
  (pcase-let ((`(,host ,directory . ,_)
               (or (gemini-companion-remote--here)
                   (user-error "A local CLI connects by itself; switch to a \
buffer on another host"))))
    (gemini-companion-cli-host-agree host)
    (when (or (bound-and-true-p gemini-companion-mode) (gemini-companion-mode 1))
      (message "Connecting to %s..." (gemini-companion-names-title host))
      (gemini-companion-remote--connect
       host directory
       (apply-partially #'gemini-companion-remote--report host)))))

(defun gemini-companion-disconnect (host)
  "Disconnect HOST, by default the host of the current buffer.
CLIs there lose their connection, and their reviews are closed."
  (interactive
   (let* ((hosts (mapcar #'car gemini-companion-remote-names-hosts))
          (here (car (member (car (gemini-companion-remote--here)) hosts)))
          (host (if (cdr hosts)
                    (gemini-companion-choice-read
                     "Disconnect"
                     (mapcar (lambda (host) (cons host host))
                             (if here (cons here (delete here hosts)) hosts))
                     'gemini-companion-host)
                  (car hosts))))
     (unless (member host hosts)
       (user-error (if hosts
                       "Not connected; enter a connected host"
                     "No remote host is connected")))
     (list host)))
  (message "Disconnected from %s" (gemini-companion-names-title host))
  (dolist (edit (gemini-companion-edits-open))
    (when (equal host (gemini-companion-session-remote
                       (gemini-companion-edit-session edit)))
      (gemini-companion-proposal-close edit 'disconnected)))
  (gemini-companion-server-call 'remote-stop host)
  (gemini-companion-remote--drop host))

(provide 'gemini-companion-remote)
;;; gemini-companion-remote.el ends here
