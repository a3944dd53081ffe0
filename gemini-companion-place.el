;;; gemini-companion-place.el --- CLIs on other hosts and in containers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Remote places, where CLIs run that are not on this host.  A place has the name
;; by which its files begin here, such as "/ssh:host:".  The server starts a small
;; program there, the outpost, by a command like "ssh host".
;;
;; A file of a place has a copy here, which the server keeps up to date while a
;; CLI wants to write the file.  All parts that read or watch files use the copy,
;; so none of them calls TRAMP, which would block Emacs.

;;; Code:

(require 'format-spec)
(require 'gemini-companion-clients)
(require 'gemini-companion-server)
(require 'map)

(declare-function tramp-compute-multi-hops "tramp-sh")
(declare-function tramp-dissect-file-name "tramp")
(declare-function tramp-file-name-host "tramp")
(declare-function tramp-file-name-method "tramp")
(declare-function tramp-file-name-port "tramp")
(declare-function tramp-file-name-user "tramp")
(declare-function tramp-shell-quote-argument "tramp")

;;;; Customization

(defgroup gemini-companion-remote nil
  "CLIs on other hosts and in containers."
  :group 'gemini-companion)

(defcustom gemini-companion-places nil
  "Remote places where CLIs may connect, an alist of (NAME . PAIRS).
NAME is the beginning of names of files there, such as \"/ssh:host:\".
The commands that connect one ask, and add it.  Each of PAIRS is a
cons (THERE . HERE) of a directory in the place and the same one on
this host, for example by the mount of a container; its files are then
the local ones."
  :type '(alist :key-type (string :tag "Name, such as /ssh:host:")
                :value-type (alist :key-type (string :tag "There")
                                   :value-type (directory :tag "Here")))
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-place-commands
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
  "Commands that run a program in a remote place, by method of TRAMP.
Each element is (METHODS WORD...).  In a WORD, %h stands for the host,
%u for the user, %p for the port and %m for the method; %c and %n are
the parts of a host that is called CONTAINER.POD or POD.  A list of
words is left out if the value of one is empty; after `:pipe', it is
for programs whose input and output are pipes, and after `:terminal',
for those in a terminal.  `:line' at the end means that the command
takes the program as one line for a shell."
  :type '(alist :key-type (repeat (string :tag "Method"))
                :value-type (repeat sexp))
  :risky t
  :package-version '(gemini-companion . "0.1.0"))

;;;; State

(defvar gemini-companion-place-all nil
  "Alist of (NAME . PLIST), the places that are or will be connected.
PLIST has the `:directories', from which the user wants to connect, the
`:state', \"connecting\", \"connected\", \"lost\" or \"ended\", and what the
server has reported: the `:problem', the `:port', the version of `:node',
the temporary directory `:tmp', and `:roots', lists (DIRECTORY ROOT).")

(defvar gemini-companion-place-mirrors nil
  "Alist of (NAME . DIRECTORY), the directories of copies.
A place that is disconnected keeps its own, for the edits there.")

(defvar-local gemini-companion-place-terminal nil
  "Remote directory from which the CLI in this terminal was started, or nil.")
(put 'gemini-companion-place-terminal 'permanent-local t)

(defvar gemini-companion-place-changed-hook nil
  "Hook run after a place was connected, disconnected or has changed.")

(defun gemini-companion-place--get (name key)
  (plist-get (cdr (assoc name gemini-companion-place-all)) key))

(defun gemini-companion-place--put (name &rest plist)
  (let ((place (cdr (assoc name gemini-companion-place-all))))
    (while plist
      (setq place (plist-put place (pop plist) (pop plist))))
    (setf (alist-get name gemini-companion-place-all nil nil #'equal) place)))

(defun gemini-companion-place-title (name)
  "Return the place NAME for the user."
  (substring name 1 -1))

;;;; Names

(defun gemini-companion-place--moved (file pairs)
  "Return the name of FILE by the first of PAIRS, (FROM TO), that has it."
  (let ((file-name-handler-alist nil))
    (seq-some (pcase-lambda (`(,from ,to))
                (let ((from (file-name-as-directory from)))
                  (and (string-prefix-p from file)
                       (concat (file-name-as-directory to)
                               (substring file (length from))))))
              pairs)))

(defun gemini-companion-place--shared (name)
  (mapcar (pcase-lambda (`(,there . ,here))
            (list there (expand-file-name here)))
          (cdr (assoc name gemini-companion-places))))

(defun gemini-companion-place-copy (file)
  "Return the name of the copy of the remote FILE, or nil.
It is nil if the place of FILE is not connected.  The copy need not exist."
  (when-let* ((name (and gemini-companion-place-all (file-remote-p file)))
              (place (cdr (assoc name gemini-companion-place-all))))
    (gemini-companion-place--moved
     (replace-regexp-in-string "\\`~/" (concat (plist-get place :home) "/")
                               (file-local-name file) t t)
     `(,@(gemini-companion-place--shared name)
       ("/" ,(cdr (assoc name gemini-companion-place-mirrors)))))))

(defun gemini-companion-place-of (file)
  "Return a cons of the place of the copy FILE and its name there, or nil."
  (seq-some (pcase-lambda (`(,name . ,mirror))
              (when-let* ((there (gemini-companion-place--moved
                                  file `((,mirror "/")))))
                (cons name there)))
            gemini-companion-place-mirrors))

(defun gemini-companion-place-file (file)
  "Return the name by which Emacs visits FILE, which may be a copy."
  (pcase (gemini-companion-place-of file)
    (`(,name . ,there) (concat name there))
    (_ file)))

(defun gemini-companion-place-copy-of (buffer)
  "Return the copy of the remote file that BUFFER visits, or nil."
  (when-let* ((file (and gemini-companion-place-all (buffer-file-name buffer)))
              (true-name (or (buffer-local-value 'buffer-file-truename buffer)
                             file)))
    ;; In Emacs 28, the true name lacks the hops.
    (gemini-companion-place-copy
     (concat (file-remote-p file) (file-local-name true-name)))))

(defun gemini-companion-place-buffer (file)
  "Return the buffer that visits FILE, or whose file has the copy FILE."
  (if (gemini-companion-place-of file)
      (cl-find (ignore-errors (file-truename file)) (buffer-list)
               :key #'gemini-companion-place-copy-of :test #'equal)
    (let ((file-name-handler-alist nil))
      ;; The links of FILE may be a loop.
      (ignore-errors (find-buffer-visiting file)))))

(defun gemini-companion-place-roots (&optional name)
  "Return the copies of the workspace roots of the place NAME, or of all."
  (seq-mapcat (pcase-lambda (`(,place . ,(map :roots)))
                (when (member name (list nil place))
                  (delq nil (mapcar (pcase-lambda (`(,_ ,root))
                                      (and root (gemini-companion-place-copy
                                                 (concat place root))))
                                    roots))))
              gemini-companion-place-all))

(defun gemini-companion-place-check (copy)
  "Signal an error if the place of the file whose copy is COPY is lost."
  (when-let* ((name (car (gemini-companion-place-of copy))))
    (unless (equal "connected" (gemini-companion-place--get name :state))
      (user-error "%s" (gemini-companion-place-explain name)))))

(defun gemini-companion-place-write (copy old bytes done)
  "Write BYTES to the remote file whose copy is COPY if it has the bytes OLD.
If BYTES is nil, delete the file.  Call DONE later with nil, or with the
problem."
  (pcase-let ((`(,name . ,there) (gemini-companion-place-of copy)))
    (unless (gemini-companion-server-ask
             'remote-write
             `( ,name ,there ,(secure-hash 'sha256 old)
                ,@(and bytes (list (base64-encode-string bytes t))))
             (lambda (_) (funcall done nil)) done)
      (funcall done "the server does not run"))))

;;;; Commands of the system

(defun gemini-companion-place--wrap (program hop kind)
  "Return the command for PROGRAM, a list, on HOP.
KIND is `:pipe' or `:terminal'."
  (let* ((method (tramp-file-name-method hop))
         (row (or (seq-find (lambda (row) (member method (car row)))
                            gemini-companion-place-commands)
                  (user-error "No command is known for the method %s; \
customize `gemini-companion-place-commands'" method)))
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
          ;; Without a value for one of them, there is an error.
          (words (ignore-errors
                   (mapcar (lambda (word)
                             (substring-no-properties
                              (format-spec word values)))
                           words)))))
      (remq :line (cdr row)))
     (if (memq :line row)
         (list (mapconcat #'tramp-shell-quote-argument program " "))
       program))))

(defun gemini-companion-place-command (name kind program)
  "Return the command for PROGRAM, a list, in the place NAME.
KIND is `:pipe' or `:terminal'."
  (require 'tramp-sh)
  (seq-reduce
   (lambda (program hop) (gemini-companion-place--wrap program hop kind))
   (condition-case problem
       ;; Otherwise Tramp may wait for 30 seconds about an unknown method.
       (let ((inhibit-message t)
             (non-essential t))
         (reverse (tramp-compute-multi-hops (tramp-dissect-file-name name))))
     (error
      (when (string-search "|" name)
        (signal (car problem) (cdr problem)))
      ;; Tramp need not know the method: a place whose files are mounted here
      ;; is only a name.
      (list (tramp-dissect-file-name name 'nodefault))))
   program))

(defun gemini-companion-place--in-shell (name kind directory variables program)
  "Return the command for PROGRAM in DIRECTORY of the place NAME.
KIND is `:pipe' or `:terminal', VARIABLES are those to set, and PROGRAM
is a list; it may be only in the path of a login shell."
  (gemini-companion-place-command
   name kind
   ;; A line break in quotes is an error in csh, and its -l takes no other flag.
   (list "sh" "-c" "cd \"$2\" || exit; command -v \"$3\" >/dev/null && eval \"$1\"; \
case $SHELL in *csh) exec $SHELL -c \"$1\"; esac; exec \"${SHELL:-sh}\" -lic \"$1\""
         "sh"
         (mapconcat #'tramp-shell-quote-argument
                    ;; The message of env about a missing program differs.
                    `("exec" ,@(and variables '("env")) ,@variables ,@program)
                    " ")
         directory (car program))))

(defun gemini-companion-place-run-command (name directory program)
  "Return the command for PROGRAM, a list, in a terminal.
It runs in DIRECTORY of the place NAME."
  (gemini-companion-place--in-shell
   name :terminal directory
   (append (gemini-companion-clients-variables
            (gemini-companion-place--get name :port)
            (gemini-companion-place--get name :pid))
           '("REMOTE_CONTAINERS=1" "TERM=xterm-256color" "COLORTERM=truecolor"))
   program))

;;;; Connecting

(defun gemini-companion-place-there (file)
  "Return a cons of the place of FILE, or of a directory, and its name there.
Return nil if FILE is local and in no directory that is shared."
  (if-let* ((name (file-remote-p file)))
      (cons name (directory-file-name (file-local-name file)))
    (seq-some (pcase-lambda (`(,name . ,_))
                (when-let* ((shared (gemini-companion-place--shared name))
                            (there (gemini-companion-place--moved
                                    (expand-file-name file)
                                    (mapcar #'reverse shared))))
                  (cons name (directory-file-name there))))
              gemini-companion-places)))

(defun gemini-companion-place-here ()
  "Return what `gemini-companion-place-there' has for the current directory."
  (gemini-companion-place-there
   (or gemini-companion-place-terminal default-directory)))

(defun gemini-companion-place-root (name directory)
  "Return the workspace root of DIRECTORY in the place NAME, if it is known."
  (let ((roots (gemini-companion-place--get name :roots)))
    (or (cadr (assoc directory roots))
        (seq-find (lambda (root)
                    (and root (string-prefix-p (file-name-as-directory root)
                                               directory)))
                  (mapcar #'cadr roots)))))

(defun gemini-companion-place-agree (name)
  "Ask the user whether to connect the place NAME, the first time.
Signal an error if the answer is no."
  (unless (assoc name gemini-companion-places)
    (unless (y-or-n-p (format "Connect CLIs on %s, and share your open files \
there with them? " (gemini-companion-place-title name)))
      (user-error "Not connected"))
    (with-demoted-errors "Option not saved: %S"
      (customize-save-variable 'gemini-companion-places
                               (append gemini-companion-places `((,name))))))
  t)

(defun gemini-companion-place-connect (name directory connected)
  "Connect the place NAME for a CLI in DIRECTORY, which is there.
Call CONNECTED later with the workspace root and nil, or with nil and a
sentence if that is not possible."
  (letrec ((check (lambda ()
                    (when-let* ((answer (gemini-companion-place--answer
                                         name directory)))
                      (remove-hook 'gemini-companion-place-changed-hook check)
                      (with-demoted-errors "Connecting a remote CLI: %S"
                        (apply connected answer))))))
    (add-hook 'gemini-companion-place-changed-hook check))
  (unless (assoc name gemini-companion-place-mirrors)
    (push (cons name (file-truename
                      (make-temp-file (gemini-companion-place--prefix)
                                      'directory)))
          gemini-companion-place-mirrors))
  (let ((state (gemini-companion-place--get name :state)))
    (gemini-companion-place--put
     name
     :state (if (member state '("connected" "lost")) state "connecting")
     :directories (seq-union (gemini-companion-place--get name :directories)
                             (list directory))))
  (gemini-companion-place--start name))

(defun gemini-companion-place--prefix ()
  "Return the prefix of the names of mirrors.
It has the number of this Emacs in place of the server's, so that a
server removes them once this Emacs has ended."
  (replace-regexp-in-string
   "-[0-9]+-\\'" (format "-%d-" (emacs-pid))
   (or (plist-get (gemini-companion-server-info) :files)
       "gemini-companion-")))

(defun gemini-companion-place--answer (name directory)
  "Return the workspace root of DIRECTORY in the place NAME, and a problem.
One of them is nil.  Return nil until the place is connected."
  (let ((root (assoc directory (gemini-companion-place--get name :roots)))
        (title (gemini-companion-place-title name)))
    (pcase (gemini-companion-place--get name :state)
      ((or 'nil "ended") (list nil (gemini-companion-place-explain name)))
      ((and "connected" (guard root))
       (list (cadr root)
             (unless (cadr root)
               (format "No CLI can connect from %s on %s: it does not exist, \
or is the home directory or /" directory title)))))))

(defun gemini-companion-place-instruction (name root)
  "Return how to start a CLI in ROOT of the place NAME, which is connected."
  (let ((title (gemini-companion-place-title name))
        (problems (gemini-companion-place--get name :problems)))
    (if problems
        (format "%s is connected, but the discovery file could not be written \
there (%s); M-x gemini-companion-status"
                title (string-join problems "; "))
      (format "Connected to %s; run %sgemini or qwen in %s there"
              title
              (if (gemini-companion-place--get name :container)
                  "REMOTE_CONTAINERS=1 "
                "")
              root))))

(defun gemini-companion-place--start (name)
  (when-let* (((gemini-companion-server-ready-p))
              (mirror (cdr (assoc name gemini-companion-place-mirrors))))
    (gemini-companion-server-call
     'remote-start
     `( :name ,name
        :mirror ,mirror
        ;; The server puts its program in place of the last word.
        :command ,(gemini-companion-place--in-shell
                   name :pipe "/" nil
                   '("node" "-e" "eval(Buffer.from(process.argv[1],'base64')+'')"
                     "outpost-base64"))
        ;; They decide what is shared, or are settings.  They are in a workspace
        ;; root unless they begin with a tilde.
        :files (".dir-locals.el"
                ,@(gemini-companion-clients-all :ignore-files)
                ,@(seq-mapcat #'gemini-companion-place-settings
                              (mapcar #'car gemini-companion-clients)))
        :shared ,(gemini-companion-place--shared name)
        ;; A previous server has reported the port and the token.
        ,@(cdr (assoc name gemini-companion-place-all))))))

(defun gemini-companion-place-settings (client)
  "Return the names of the settings files of CLIENT, of project and user."
  (list (gemini-companion-clients-get client :project-settings)
        (car (last (gemini-companion-clients-get client :user-settings)))))

(defun gemini-companion-place-update (facts)
  "Record FACTS, which the server has reported about a place."
  (let* ((name (plist-get facts :name))
         (title (gemini-companion-place-title name))
         (previous (gemini-companion-place--get name :state))
         (state (plist-get facts :state)))
    (when previous
      (apply #'gemini-companion-place--put name facts)
      (pcase (cons previous state)
        (`("lost" . "connected")
         (message "Connection to %s is back; if a CLI there does not connect \
again, run /ide enable in it, or restart it if it takes no keys"
                  title))
        (`("connected" . "lost")
         (message "Connection to %s was lost; trying again" title))
        (`(,_ . "ended")
         (message "%s" (gemini-companion-place-explain name))))
      (run-hooks 'gemini-companion-place-changed-hook)))
  t)

(defun gemini-companion-place-explain (name)
  "Return a sentence about why the place NAME is not connected."
  (let ((title (gemini-companion-place-title name))
        (problem (or (gemini-companion-place--get name :problem) "disconnected"))
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
           (t "Cannot connect to %s (%s); check the connection, then \
M-x gemini-companion-connect"))
     title problem)))

;;;; Life

(defun gemini-companion-place-ready (_how)
  "Connect the places to a server that became ready."
  (mapc #'gemini-companion-place--start
        (mapcar #'car gemini-companion-place-all)))

(defun gemini-companion-place-stop ()
  "Drop all places and the copies of their files, as the server stops."
  (mapc #'gemini-companion-place-drop
        (mapcar #'car gemini-companion-place-all))
  (while gemini-companion-place-mirrors
    (ignore-error file-error
      (delete-directory (cdr (pop gemini-companion-place-mirrors)) t))))

(defun gemini-companion-place-drop (name)
  "Drop the place NAME; CLIs that wait for it do not start."
  (setq gemini-companion-place-all
        (assoc-delete-all name gemini-companion-place-all))
  (run-hooks 'gemini-companion-place-changed-hook))

(provide 'gemini-companion-place)
;;; gemini-companion-place.el ends here
