;;; gemini-companion-server.el --- Start, restart and recover the server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Start, restart, recover and stop the one Python server of this Emacs.  A new
;; process takes over the port and token of the previous one, so that connected
;; CLIs stay connected.  At a restart it listens just before the previous one ends,
;; so that their requests wait meanwhile.  The meaning of the calls is not known
;; here.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-process)
(require 'subr-x)

;;;; Customization

(defgroup gemini-companion-server nil
  "The Python server of gemini-companion."
  :group 'gemini-companion)

(defcustom gemini-companion-server-command nil
  "Command that runs the Python server, a list (PROGRAM ARG...).
Nil means to install the Python packages of the server, after asking,
in `gemini-companion-install-directory'.  To use a Python of your own
that has the packages epc, sexpdata, mcp, hypercorn and psutil, set it
for example to
  (\"/path/to/venv/bin/python\" \"-m\" \"gemini_companion_epc\")
Takes effect when the server starts next."
  :type '(choice (const :tag "Packages installed on request" nil)
                 (repeat :tag "Program and arguments" string))
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-log-file
  (locate-user-emacs-file "gemini-companion/server.log")
  "File in which the server logs events, or nil for none.
It has one line per event, with the sizes of texts but not the
texts, and never the token.  Only its owner can read it.  At 1 MB
it is renamed; three old files are kept.  Takes effect when the
server starts next; see also `gemini-companion-log-level'."
  :type '(choice (const :tag "None" nil) file)
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-log-level 'info
  "Minimum severity of events written to `gemini-companion-log-file'.
`error' stands for failures in the server; `warning' for warnings
to the user, and malformed requests that were refused; `info' for
connections and reviews; `debug' for each message, both ways.
Takes effect when the server starts next."
  :type '(choice (const :tag "Failures of the server" error)
                 (const :tag "Warnings" warning)
                 (const :tag "Connections and reviews" info)
                 (const :tag "Each message" debug))
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-is-trusted nil
  "Workspace trust to report to Gemini CLI (`isTrusted').
Nil, the default, reports nothing, and Gemini CLI decides by itself.
Other values override its decision for each project that is open in
this Emacs.  `trusted' is dangerous: Gemini CLI then uses settings,
commands and MCP servers of the project.  If the value differs from
its own decision, Gemini CLI stops at every start until you press r
to restart it.  Takes effect when the server starts next."
  :type '(choice (const :tag "Gemini CLI decides" nil)
                 (const :tag "Trusted: dangerous" trusted)
                 (const :tag "Not trusted" untrusted))
  :package-version '(gemini-companion . "0.1.0"))

;;;; State

(defconst gemini-companion-server-version "0.1.0"
  "Version that Emacs and the server must have.")

(defconst gemini-companion-server-directory
  (file-name-directory (or load-file-name
                           (bound-and-true-p byte-compile-current-file)
                           buffer-file-name))
  "Directory of this package; its directory `python' has the Python part.")

(defconst gemini-companion-server--delays '(0 1 2 4 8)
  "Seconds before each attempt to restart a crashed server.
The first attempt after a crash is always immediate.")

(defconst gemini-companion-server--unnoticed-seconds 0.9
  "Seconds within which a crashed server must be ready for CLIs to reconnect.
Gemini CLI tries to reconnect after one second, and after 1.5 more,
but it opens no more reviews if the first attempt fails.")

(defvar gemini-companion-server-healthy-seconds 60
  "Seconds after which a server that crashes gets all attempts again.
The soak test crashes it more often, and sets this to 0.")

(cl-defstruct (gemini-companion-server--record
               (:conc-name gemini-companion-server--)
               (:constructor gemini-companion-server--make)
               (:predicate nil)
               (:copier nil))
  "The server, which may use one process after another.
For the slots up to ON-END see `gemini-companion-server-start'."
  command roots offer-tools methods on-ready on-end
  (current nil :documentation "Process in use: ready, at its first start, or
crashed and not replaced yet.")
  (next nil :documentation "Process that will replace the current one.")
  (died 0 :documentation "When the last process crashed.")
  (delays-left gemini-companion-server--delays
               :documentation "Seconds before each of the attempts left.")
  (timer nil :documentation "Timer of the next start of a process."))

(defvar gemini-companion-server--server nil
  "The server, or nil if there is none.")

;;;; Command line

(defun gemini-companion-server--check (command)
  "Signal an error if COMMAND is nil or its program does not exist."
  (unless command
    (user-error "The Python packages of the server are not installed; \
M-x gemini-companion-install-server"))
  ;; Before Emacs 29 a process starts that ends at once.
  (unless (let ((exec-path (default-value 'exec-path)))
            (executable-find (car command)))
    (user-error "Cannot find the program %s; customize \
`gemini-companion-server-command'"
                (car command))))

(defun gemini-companion-server--environment ()
  "Return the environment of the server.
The Python part of this package comes first in its path, so that
Emacs and the server have one version, and no other directory
shadows a module."
  (let ((process-environment
         (append '("PYTHONSAFEPATH=1" "PYTHONUTF8=1"
                   ;; Otherwise the C library of GNU keeps the memory of large
                   ;; texts, 60 MB after a few.
                   "MALLOC_MMAP_THRESHOLD_=1000000")
                 ;; The user's variables are meant for a Python of the user.
                 (unless gemini-companion-server-command
                   '("PYTHONHOME" "PYTHONPATH"))
                 (default-value 'process-environment)))
        (python (expand-file-name "python" gemini-companion-server-directory)))
    (cons (concat "PYTHONPATH="
                  (string-join (remove "" (list python
                                                (or (getenv "PYTHONPATH") "")))
                               path-separator))
          process-environment)))

(defun gemini-companion-server--settings (server)
  "Return the start-up settings of a process of SERVER, a plist."
  (append
   (list :roots (vconcat (funcall (gemini-companion-server--roots server))))
   (when-let* ((file gemini-companion-log-file)
               ;; The server can write on this host only.
               ((not (file-remote-p (expand-file-name file)))))
     (list :logFile (expand-file-name file)
           :logLevel gemini-companion-log-level))
   (unless (funcall (gemini-companion-server--offer-tools server))
     '(:offerTools :json-false))
   (pcase gemini-companion-is-trusted
     ('trusted '(:isTrusted t))
     ('untrusted '(:isTrusted :json-false)))
   ;; What it takes over from the current process, if that has been ready.
   (when-let* ((current (gemini-companion-server--current server))
               (info (gemini-companion-process-info current)))
     (let ((ready (gemini-companion-process-ready-p current)))
       (list :port (plist-get info :port) :token (plist-get info :token)
             :isSuccessor (if ready t :json-false)
             ;; Another user may know the token: a program that had the port
             ;; for a while may have received it.
             :isExposed (if (and ready (not (plist-get info :is-exposed)))
                            :json-false
                          t))))))

;;;; Start and stop

(defun gemini-companion-server-start (&rest properties)
  "Start the server, without waiting for it.
PROPERTIES is a plist.  `:command', `:roots' and `:offer-tools' are
functions without arguments that are called for each process: they
return its command (nil if its packages are missing), the initial
workspace roots, and whether CLIs that connect are offered reviews.
`:methods' is an alist of (NAME . FUNCTION), the methods that the
server may call.

`:on-ready' is called when the server can be called: with `started',
with `restarted' after `gemini-companion-server-restart', with
`resumed' after a crash that no CLI has noticed, or else with
`recovered'.  `:on-end' is called with a report for the user when it
could not start or crashed too often."
  (let ((server (apply #'gemini-companion-server--make properties)))
    (setf (gemini-companion-server--current server)
          (gemini-companion-server--launch server))
    (setq gemini-companion-server--server server)))

(defun gemini-companion-server-restart ()
  "Replace the server's process by a new one.
CLIs stay connected, and open reviews stay open."
  (unless (gemini-companion-server-ready-p)
    (user-error (if (gemini-companion-server-running-p)
                    "The server is starting; try again soon"
                  "The server is not running; M-x gemini-companion-mode \
starts it")))
  (let ((server gemini-companion-server--server))
    (unless (gemini-companion-server--next server)
      (setf (gemini-companion-server--next server)
            (gemini-companion-server--launch server)))))

(defun gemini-companion-server-stop ()
  "Stop the server, if there is one, without waiting for it."
  (when-let* ((server gemini-companion-server--server))
    (unless (gemini-companion-server-ready-p)
      (gemini-companion-server--delete-discovery server))
    (gemini-companion-server--cancel server)
    (setq gemini-companion-server--server nil)
    (mapc #'gemini-companion-process-close
          (delq nil (list (gemini-companion-server--current server)
                          (gemini-companion-server--next server))))))

(defun gemini-companion-server--delete-discovery (server)
  "Delete the discovery files of SERVER, which no process will delete."
  (pcase-dolist (`(,_ ,file)
                 (plist-get (gemini-companion-process-info
                             (gemini-companion-server--current server))
                            :discovery))
    (ignore-error file-error
      (delete-file file))))

(defun gemini-companion-server--cancel (server)
  "Cancel the timer of SERVER."
  (when-let* ((timer (gemini-companion-server--timer server)))
    (cancel-timer timer)
    (setf (gemini-companion-server--timer server) nil)))

;;;; Processes

(defun gemini-companion-server--launch (server)
  "Start a process of SERVER, and return it."
  (let ((command (funcall (gemini-companion-server--command server))))
    (gemini-companion-server--check command)
    (gemini-companion-process-open
     (gemini-companion-server--environment)
     ;; Before Python 3.11 the current directory is searched for modules.
     (expand-file-name "python/" gemini-companion-server-directory)
     :command command
     :version gemini-companion-server-version
     :settings (apply-partially #'gemini-companion-server--settings server)
     :methods (mapcar #'car (gemini-companion-server--methods server))
     :handler (apply-partially #'gemini-companion-server--handle server)
     :on-ready (apply-partially #'gemini-companion-server--ready server)
     :on-end (apply-partially #'gemini-companion-server--ended server))))

(defun gemini-companion-server--handle (server _process method &rest args)
  "Call METHOD with ARGS for a process of SERVER, and return its value."
  (when (eq server gemini-companion-server--server)
    (apply (alist-get method (gemini-companion-server--methods server)) args)))

(defun gemini-companion-server--ready (server process)
  "Use PROCESS of SERVER, which became ready, once the current one has ended.
The current one serves until no CLI waits for an answer.  One may have
connected and be busy for minutes before it sends its request."
  (let ((current (gemini-companion-server--current server)))
    (cond ((eq process current)
           (gemini-companion-server--use server process 'started))
          ((eq 'ready (gemini-companion-process-state current))
           (gemini-companion-process-ask
            current
            (lambda (_) (gemini-companion-server--hand-over server process))
            'quiet))
          ((eq 'ended (gemini-companion-process-state current))
           (gemini-companion-server--use
            server process
            (if (< (- (float-time) (gemini-companion-server--died server))
                   gemini-companion-server--unnoticed-seconds)
                'resumed
              'recovered))))))

(defun gemini-companion-server--hand-over (server next)
  "Replace the current process of SERVER, which is quiet, by NEXT."
  (let ((current (gemini-companion-server--current server)))
    ;; One of them may have ended meanwhile.
    (when (and (eq next (gemini-companion-server--next server))
               (gemini-companion-process-ready-p next))
      (gemini-companion-process-ask
       next (lambda (_) (gemini-companion-process-hand-over current))
       'listen))))

(defun gemini-companion-server--use (server process how)
  "Use PROCESS of SERVER, which became ready HOW, from now on."
  (setf (gemini-companion-server--current server) process
        (gemini-companion-server--next server) nil)
  (funcall (gemini-companion-server--on-ready server) how)
  ;; Clients wait until it knows the diffs.
  (gemini-companion-process-call process 'serve))

(defun gemini-companion-server--ended (server process report)
  "Handle the end of PROCESS of SERVER.
REPORT is the reason, or nil if it was intended."
  (let ((next (gemini-companion-server--next server)))
    (cond ((not (eq server gemini-companion-server--server)))
          ((eq process next)
           (setf (gemini-companion-server--next server) nil)
           (if (eq 'ready (gemini-companion-process-state
                           (gemini-companion-server--current server)))
               (display-warning
                'gemini-companion
                (concat "Restart failed; the previous server is still running.  "
                        report))
             (gemini-companion-server--recover server report)))
          ((and next (gemini-companion-process-ready-p next))
           (gemini-companion-server--use server next
                                         (if report 'resumed 'restarted)))
          ((gemini-companion-process-info process)
           (gemini-companion-server--crashed server process report))
          (t (gemini-companion-server--give-up server report)))))

(defun gemini-companion-server--crashed (server process report)
  "Handle the crash of PROCESS, the current one of SERVER, with REPORT."
  (setf (gemini-companion-server--died server) (float-time))
  (when (< gemini-companion-server-healthy-seconds
           (- (gemini-companion-server--died server)
              (plist-get (gemini-companion-process-info process) :since)))
    (setf (gemini-companion-server--delays-left server)
          gemini-companion-server--delays))
  (unless (gemini-companion-server--next server)
    (gemini-companion-server--recover server report 'now)))

(defun gemini-companion-server--recover (server report &optional now)
  "Start a process for crashed SERVER, or give up with REPORT.
Start it immediately if NOW is non-nil."
  (gemini-companion-server--cancel server)
  (if-let* ((delay (pop (gemini-companion-server--delays-left server))))
      (setf (gemini-companion-server--timer server)
            (run-at-time (if now 0 delay) nil
                         #'gemini-companion-server--try server report))
    (gemini-companion-server--give-up server report)))

(defun gemini-companion-server--try (server report)
  "Try to start a process for SERVER, which ended with REPORT."
  (setf (gemini-companion-server--timer server) nil)
  (condition-case problem
      (setf (gemini-companion-server--next server)
            (gemini-companion-server--launch server))
    (error
     (gemini-companion-server--recover
      server (concat (error-message-string problem) "\n\n" report)))))

(defun gemini-companion-server--give-up (server report)
  "Drop SERVER, whose last process ended with REPORT."
  (gemini-companion-server--delete-discovery server)
  (setq gemini-companion-server--server nil)
  (funcall (gemini-companion-server--on-end server)
           (format "The gemini-companion server is not running.  %s

To find the reason, run the command above in a terminal.  Or
%s.
Then turn on `gemini-companion-mode' again."
                   report
                   (if gemini-companion-server-command
                       "customize \
`gemini-companion-server-command' to a Python (3.10 or later)
that has the packages epc, sexpdata, mcp, hypercorn and psutil"
                     "install the packages of the server again: \
M-x gemini-companion-install-server"))))

;;;; Calls

(defun gemini-companion-server--process ()
  "Return the process that can be called, or nil."
  (when-let* ((server gemini-companion-server--server)
              (process (gemini-companion-server--current server)))
    (and (gemini-companion-process-ready-p process)
         process)))

(defun gemini-companion-server-ready-p ()
  "Return non-nil if the server can be called."
  (and (gemini-companion-server--process) t))

(defun gemini-companion-server-idle-p ()
  "Return non-nil if the server has answered all posts."
  (when-let* ((process (gemini-companion-server--process)))
    (null (gemini-companion-process-posts process))))

(defun gemini-companion-server-running-p ()
  "Return non-nil if there is a server, ready or not."
  (and gemini-companion-server--server t))

(defun gemini-companion-server-info ()
  "Return a description of the server that can be called, or nil.
A plist of the `:pid' and the `:command' of its process; `:since',
when that became ready, in seconds since 1970; and its answer to
hello: `:version', `:port', `:token', `:discovery', lists of a client
and the name of its discovery file, `:directory', its private directory,
and `:is-exposed', which is non-nil if another user may know the token."
  (when-let* ((process (gemini-companion-server--process)))
    (gemini-companion-process-info process)))

(defun gemini-companion-server-call (method &rest args)
  "Call METHOD of the server with ARGS, without waiting for its answer.
Return non-nil if the call was sent."
  (when-let* ((process (gemini-companion-server--process)))
    (apply #'gemini-companion-process-call process method args)))

(defun gemini-companion-server-ask-processes (pids done)
  "Ask for the processes PIDS of the user, and call DONE with them later.
They are plists with `:pid', `:directory', `:environment', a list
like `process-environment', and `:discovery', lists of a client and the
directory that it searches in that environment; processes of others have
only `:pid'.
If the server cannot be asked, call DONE with nil at once."
  (let ((process (gemini-companion-server--process)))
    (unless (and process
                 (gemini-companion-process-ask process done 'processes pids))
      (funcall done nil))))

(defun gemini-companion-server-post (method value)
  "Call METHOD of the server with VALUE, a state.
While an earlier post has no answer, only the latest VALUE is kept."
  (when-let* ((process (gemini-companion-server--process)))
    (gemini-companion-process-post process method value)))

(provide 'gemini-companion-server)
;;; gemini-companion-server.el ends here
