;;; gemini-companion-server.el --- The Python server of this Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Start, restart, recover, call and stop the Python server of this Emacs.  The server
;; is one process after another: a new process takes over the port and token of the
;; previous process, so that connected CLIs stay connected.  At a restart it listens
;; just before the previous process ends, so that requests of CLIs wait meanwhile.
;; This file does not know the meaning of the calls; values are plain strings, numbers
;; and plists.  Each call is recorded in the event log.  EPC is loaded when the first
;; process has printed its port, because loading takes a while.
;;
;; Nothing here waits for a process.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-log)
(require 'gemini-companion-text)

(declare-function json-encode "json")
(declare-function deferred:callback-post "deferred")
(declare-function deferred:error "deferred")
(declare-function deferred:new "deferred")
(declare-function deferred:nextc "deferred")
(declare-function epc:call-deferred "epc")
(declare-function epc:connect "epc")
(declare-function epc:connection-buffer "epc")
(declare-function epc:connection-process "epc")
(declare-function epc:define-method "epc")
(declare-function epc:init-epc-layer "epc")
(declare-function epc:manager-connection "epc")
(declare-function epc:stop-epc "epc")
(declare-function make-epc:manager "epc")
(defvar deferred:tick-time)
(defvar epc:uid)

;;;; Customization

(defgroup gemini-companion-server nil
  "The Python server of gemini-companion."
  :group 'gemini-companion)

(defcustom gemini-companion-server-command nil
  "Command that runs the Python server, a list (PROGRAM ARG...).
Nil means to install the Python packages of the server, after asking,
in `gemini-companion-install-directory'.  To use another Python, with
the packages epc, sexpdata, mcp, hypercorn and psutil, set the option
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
server starts next."
  :type '(choice (const :tag "None" nil) file)
  :package-version '(gemini-companion . "0.1.0"))

;;;; State

(defconst gemini-companion-server-version "0.1.0"
  "Version that Emacs and the server must have.")

(defconst gemini-companion-server-directory
  (let ((file (macroexp-file-name)))
    (expand-file-name (or (locate-dominating-file file "gemini-companion.el")
                          (file-name-directory file))))
  "Directory of this package; its directory `python' has the Python part.")

(defvar gemini-companion-server-start-seconds 30
  "Number of seconds after which a server that is not ready has failed.
Time in which Emacs is busy does not count.")

(defvar gemini-companion-server-delays '(0 1 2 4 8)
  "Seconds before each attempt to restart a crashed server.
The first attempt after a crash is always immediate.
The soak test crashes it more often, and sets this to more.")

(cl-defstruct (gemini-companion-server--callbacks (:noinline t))
  "The functions of the mode that the server calls.
For the slots, see `gemini-companion-server-start'."
  command roots offer-tools on-ready on-end)

(defvar gemini-companion-server--callbacks nil
  "The functions of the mode, or nil without a server.")

(cl-defstruct (gemini-companion-server--post (:noinline t))
  "A call of METHOD with a state, which has no answer yet.
NEXT is a list of the state to post when the answer has come, or nil."
  method next)

(defvar gemini-companion-server--current nil
  "Process in use: ready, at its first start, or crashed and not replaced yet.
Each process has these properties:
`connection', the manager of EPC, or nil before the process has a port;
`info', a plist, see `gemini-companion-server-info', or nil before the
  first answer;
`timer', for what comes next, or if that does not come in time;
`secret', by which Emacs and the process know each other;
`posts', a list of the `gemini-companion-server--post' without an answer;
`reason', why Emacs has killed the process, a string, or nil.")

(defvar gemini-companion-server--next nil
  "Process that will replace the current one, or nil.")

(defvar gemini-companion-server--temporaries nil
  "Temporary directories other than the server's in which CLIs search for it.")

(defvar gemini-companion-server-problem nil
  "Reason why the server did not start or has ended, a string, or nil.
The status shows it; turning on the mode clears it.")

(defvar gemini-companion-server-crash-hook nil
  "Hook run when the process in use has crashed, before it is replaced.")

(defvar gemini-companion-server--died 0
  "Time when the last process crashed.")

(defvar gemini-companion-server--delays-left nil
  "Seconds before each of the attempts left.")

(defun gemini-companion-server--callable-p (process)
  "Return non-nil if PROCESS is alive and has answered hello.
PROCESS may be nil."
  (and process
       (process-get process 'info)
       (process-live-p process)))

(defun gemini-companion-server--used-p (process)
  "Return non-nil if PROCESS is the current one, or will replace it."
  (memq process (list gemini-companion-server--current
                      gemini-companion-server--next)))

(defun gemini-companion-server--environment ()
  "Return the environment of the server.
The Python part of this package comes first in its path, so that
Emacs and the server have one version, and no other directory
shadows a module."
  (let ((process-environment
         (append '("PYTHONSAFEPATH=1" "PYTHONUTF8=1"
                   ;; The C library of GNU would keep the memory of large
                   ;; texts, 60 MB after a few.
                   "MALLOC_MMAP_THRESHOLD_=1000000")
                 ;; The user's variables are meant for a Python of the user.
                 (unless gemini-companion-server-command
                   '("PYTHONHOME" "PYTHONPATH"))
                 (default-value 'process-environment)))
        (python (expand-file-name "python" gemini-companion-server-directory)))
    (cons (concat "PYTHONPATH=" python
                  (when-let* ((path (getenv "PYTHONPATH")))
                    (concat path-separator path)))
          process-environment)))

(defun gemini-companion-server--settings (process)
  "Return the settings of the server PROCESS, a plist.
It is sent as JSON on the first line of its standard input."
  (let ((callbacks gemini-companion-server--callbacks))
    `( :secret ,(process-get process 'secret)
       :emacs_pid ,(emacs-pid)
       :roots ,(vconcat (funcall (gemini-companion-server--callbacks-roots
                                  callbacks)))
       :temporaries ,(vconcat gemini-companion-server--temporaries)
       ,@(when gemini-companion-log-file
           `(:log_file ,(expand-file-name gemini-companion-log-file)))
       ,@(unless (funcall (gemini-companion-server--callbacks-offer-tools
                           callbacks))
           '(:offer_tools :json-false))
       ,@(gemini-companion-server--inheritance))))

(defun gemini-companion-server--inheritance ()
  "Return the settings that a new process takes over, a plist.
It is nil at the first start, and if the current process was never ready."
  (when-let* ((current gemini-companion-server--current)
              (info (process-get current 'info)))
    (let* ((restart-p (gemini-companion-server-ready-p))
           ;; After a crash, another user may know the token: a program that had
           ;; the port for a while may have received it.
           (exposed-p (or (not restart-p) (plist-get info :is-exposed))))
      `( :port ,(plist-get info :port)
         :token ,(plist-get info :token)
         :is_successor ,(if restart-p t :json-false)
         :is_exposed ,(if exposed-p t :json-false)))))

;;;; Start and stop

(cl-defun gemini-companion-server-start
    (&key command roots offer-tools on-ready on-end)
  "Start the server, without waiting for it.
COMMAND, ROOTS and OFFER-TOOLS are functions without arguments that are
called for each process: they return its command (nil if its packages are
missing), the initial workspace roots, a list, and whether CLIs that
connect are offered reviews.

ON-READY is called when the server can be called, with HOW as for
`gemini-companion-part-ready', and ON-END with a report for the user when
it could not start or crashed too often."
  (setq gemini-companion-server--callbacks
        (make-gemini-companion-server--callbacks
         :command command :roots roots :offer-tools offer-tools
         :on-ready on-ready :on-end on-end)
        gemini-companion-server--delays-left gemini-companion-server-delays)
  (condition-case-unless-debug problem
      (setq gemini-companion-server--current (gemini-companion-server--open))
    (error
     (gemini-companion-server--give-up (error-message-string problem)))))

(defun gemini-companion-server-restart ()
  "Replace the server's process by a new one.
CLIs stay connected, and open reviews stay open."
  (unless (gemini-companion-server-ready-p)
    (if (gemini-companion-server-running-p)
        (user-error "The server is starting; try again soon")
      (user-error "The server is not running; %s starts it"
                  (substitute-command-keys "\\[gemini-companion-mode]"))))
  (unless gemini-companion-server--next
    (setq gemini-companion-server--next (gemini-companion-server--open))))

(defun gemini-companion-server-stop ()
  "Stop the server, if there is one, without waiting for it."
  (let ((processes (list gemini-companion-server--current
                         gemini-companion-server--next)))
    (setq gemini-companion-server--callbacks nil
          gemini-companion-server--temporaries nil
          gemini-companion-server--current nil
          gemini-companion-server--next nil)
    (dolist (process (delq nil processes))
      (gemini-companion-server--expect-end process)
      (unless (process-live-p process)
        (gemini-companion-server--undiscover process))
      ;; At the end of its input the server rejects open diffs, ends its streams
      ;; and deletes its discovery files.  A process that has exited has no input.
      (ignore-errors (process-send-eof process)))))

(defun gemini-companion-server--open ()
  "Start a process of the server and return it.
Signal an error if there is no program for it."
  (let ((command (funcall (gemini-companion-server--callbacks-command
                           gemini-companion-server--callbacks)))
        (process-environment (gemini-companion-server--environment))
        (exec-path (default-value 'exec-path))
        ;; Before Python 3.11 the current directory is searched for modules.
        (default-directory
         (expand-file-name "python/" gemini-companion-server-directory)))
    (unless command
      (user-error "Python packages of the server are not installed; \
M-x gemini-companion-install-server installs them"))
    (unless (file-directory-p default-directory)
      (user-error "Cannot find the directory %s of the server" default-directory))
    ;; Before Emacs 29 a process starts that ends at once.
    (unless (executable-find (car command))
      (user-error "Cannot find the program %s of the server" (car command)))
    (let ((process
           (make-process
            :name "gemini-companion" :noquery t :command command
            :buffer (generate-new-buffer " *gemini-companion output*" t)
            :connection-type 'pipe :coding 'utf-8-unix
            :filter #'gemini-companion-server--read
            :sentinel (lambda (process _event)
                        (unless (process-live-p process)
                          (gemini-companion-server--ended process))))))
      (process-put process 'secret (secure-hash 'sha256 'iv-auto 64))
      (process-put process 'timer
                   (run-at-time 0 nil #'gemini-companion-server--instruct
                                process))
      process)))

(defun gemini-companion-server--await (process left)
  "Make the server PROCESS fail unless it is ready in LEFT seconds.
A second counts only if Emacs could read the output of PROCESS in it, since a
long command, such as an init file, may run meanwhile."
  (process-put
   process 'timer
   (if (zerop left)
       (run-at-time 0 nil #'gemini-companion-server--fail process
                    (format "No answer within %d seconds"
                            gemini-companion-server-start-seconds))
     (run-at-time 1 nil #'gemini-companion-server--await process (1- left)))))

(defun gemini-companion-server--instruct (process)
  "Send the server PROCESS its settings, and await its answer."
  (require 'json)
  (gemini-companion-server--await process gemini-companion-server-start-seconds)
  (condition-case-unless-debug problem
      (let ((line (json-encode (gemini-companion-server--settings process))))
        ;; Sending fails if the process has exited, which its sentinel reports.
        ;; If Emacs does not know that yet, Emacs then drops unread output.
        (accept-process-output process 0 nil 1)
        (ignore-errors (process-send-string process (concat line "\n"))))
    ;; A function of the mode, or a value that is no JSON.
    (error (gemini-companion-server--fail
            process (error-message-string problem)))))

(defun gemini-companion-server--read (process string)
  "Append STRING, output of PROCESS, to its buffer; call hello once it has a port.
The port is on a separate line.  This is the filter of PROCESS.  The buffer
keeps at least the last 32 KB for a report."
  (with-current-buffer (process-buffer process)
    (goto-char (point-max))
    (insert string)
    (when (> (buffer-size) 65536)
      (delete-region (point-min) (/ (point-max) 2)))
    (goto-char (point-min))
    (when (and (gemini-companion-server--used-p process)
               (not (process-get process 'connection))
               (re-search-forward "^\\([0-9]+\\)\r?\n" nil t))
      (gemini-companion-server--greet
       process (string-to-number (match-string 1))))))

(defun gemini-companion-server--greet (process port)
  "Connect to PORT of PROCESS, and call hello, its first method."
  (condition-case-unless-debug problem
      (progn
        (gemini-companion-server--epc-open process port)
        (gemini-companion-server-ask
         'hello
         (list (process-get process 'secret)
               gemini-companion-server-version)
         (apply-partially #'gemini-companion-server--ready process)
         (apply-partially #'gemini-companion-server--fail process)
         process))
    ;; EPC may not be installed, and nothing may listen at the port.
    (error (gemini-companion-server--fail
            process (error-message-string problem)))))

(defun gemini-companion-server--handle (process method &rest args)
  "Answer a call of METHOD with ARGS by PROCESS, if it is in use.
EPC calls this.  The value is one for Python, or a deferred object if it
is known later.  Private files among ARGS are deleted."
  ;; Many come while a CLI waits for an answer.
  (unless (eq method 'ping)
    (gemini-companion-log-record 'received method args))
  (let ((files (delq nil (mapcar (apply-partially
                                  #'gemini-companion-server--private-file
                                  process)
                                 args))))
    (unwind-protect
        (when (gemini-companion-server--used-p process)
          (let ((value (apply #'gemini-companion-server-receive method
                              (mapcar (apply-partially
                                       #'gemini-companion-server--unpack process)
                                      args))))
            (if (functionp value)
                (gemini-companion-server--defer value)
              (gemini-companion-server--plain
               (gemini-companion-server--pack process value)))))
      (mapc #'delete-file files))))

(defun gemini-companion-server--private-file (process arg)
  "Return the file that ARG, an argument of a call by PROCESS, names, or nil.
The server sends a large text as (:file FILE), a private file."
  (pcase arg
    ((and `(:file ,(and (pred stringp) file))
          (guard (string-prefix-p
                  (plist-get (process-get process 'info) :files) file)))
     file)))

(defun gemini-companion-server--unpack (process arg)
  "Return ARG, an argument of a call by PROCESS, or its text if that is a file."
  (let ((file (gemini-companion-server--private-file process arg)))
    (if file
        (gemini-companion-text-read file)
      arg)))

(defun gemini-companion-server--defer (function)
  "Return a deferred object for the value that FUNCTION knows later.
FUNCTION is called with a function to call with the value."
  (let ((later (deferred:new #'identity)))
    (funcall function
             (lambda (value)
               (deferred:callback-post
                later (gemini-companion-server--plain value))))
    later))

;;;; Calls of the server

(defconst gemini-companion-server--methods
  '(open-diff diff-opened close-diff outcome-written outcome-undelivered
    file-written sessions-update remote-update ask withdrawn ping warn)
  "The methods of `gemini-companion-server-receive'.")

(cl-defgeneric gemini-companion-server-receive (method &rest args)
  "Answer a call of METHOD, a symbol, with ARGS by the server.
If the value is known later, it is a function, which is called with a
function to call with the value."
  (declare (indent 1)))

(cl-defmethod gemini-companion-server-receive ((_method (eql 'ping)))
  "Return that Emacs lives."
  t)

(cl-defmethod gemini-companion-server-receive ((_method (eql 'warn)) message)
  "Display MESSAGE as a warning."
  (display-warning 'gemini-companion message)
  t)

;;;; From one process to the next

(defun gemini-companion-server--expect-end (process)
  "Expect PROCESS to end, unless it has, and kill it after 12 seconds."
  (cancel-timer (process-get process 'timer))
  (when (process-live-p process)
    (process-put process 'timer
                 (run-at-time 12 nil #'delete-process process))))

(defun gemini-companion-server--undiscover (process)
  "Delete the discovery files of PROCESS, which has exited."
  (pcase-dolist (`(,_ ,file) (plist-get (process-get process 'info) :discovery))
    (ignore-error file-error (delete-file file))))

(defun gemini-companion-server--fail (process reason)
  "Kill PROCESS if it is in use, because of REASON, a sentence for the report.
Its sentinel then gives up, or replaces it."
  (when (and (gemini-companion-server--used-p process)
             (process-live-p process))
    (process-put process 'reason reason)
    (delete-process process)))

(defun gemini-companion-server--report (process)
  "Return why the server PROCESS has ended, with its command and last output."
  (let ((output (with-current-buffer (process-buffer process)
                  (goto-char (point-max))
                  (forward-line -12)
                  (gemini-companion-text-trim
                   (buffer-substring (point) (point-max))))))
    (format "%s.\n\nCommand:\n  %s\n\n%s"
            (or (process-get process 'reason)
                (format (if (eq (process-status process) 'signal)
                            "Killed by signal %d"
                          "Exited with status %d")
                        (process-exit-status process)))
            (mapconcat #'shell-quote-argument (process-command process) " ")
            (if (string-empty-p output)
                "No output"
              (concat "Last output:\n  "
                      (string-replace "\n" "\n  " output))))))

(defun gemini-companion-server--ready (process info)
  "Use PROCESS, which answered hello with INFO, once the current one has ended.
The current one answers the requests in progress, rejects nothing and
leaves the discovery file.  It can be called until it ends."
  (when (gemini-companion-server--used-p process)
    (cancel-timer (process-get process 'timer))
    (process-put process 'info
                 `( :pid ,(process-id process)
                    :command ,(process-command process)
                    :since ,(float-time) ,@info))
    (cond ((eq process gemini-companion-server--current)
           (gemini-companion-server--use process 'started))
          ((gemini-companion-server-ready-p)
           (gemini-companion-server-call 'hand-over)
           (gemini-companion-server--expect-end
            gemini-companion-server--current))
          (t
           (gemini-companion-server--use
            process
            ;; Gemini CLI reconnects after one second, and after 1.5 more, but
            ;; opens no more reviews if it cannot the first time.
            (if (< (- (float-time) gemini-companion-server--died) 0.9)
                'resumed
              'recovered))))))

(defun gemini-companion-server--use (process how)
  "Make PROCESS, which is ready, the current server process.
For HOW, see `gemini-companion-part-ready'."
  (setq gemini-companion-server--current process
        gemini-companion-server--next nil)
  (funcall (gemini-companion-server--callbacks-on-ready
            gemini-companion-server--callbacks)
           how)
  ;; Clients wait until the process knows the diffs.
  (gemini-companion-server-call 'serve))

(defun gemini-companion-server--ended (process)
  "Release all resources of PROCESS, which has exited, and go on without it.
The sentinel calls this."
  (let ((report (gemini-companion-server--report process)))
    (gemini-companion-server--release process)
    (pcase (gemini-companion-server--end-of process)
      ('unused
       (gemini-companion-server--undiscover process))
      ('successor
       (setq gemini-companion-server--next nil)
       (if (gemini-companion-server-ready-p)
           (display-warning
            'gemini-companion
            (concat "Restart failed; the previous server is still running.  "
                    report))
         (gemini-companion-server--recover report)))
      ('replaced
       (gemini-companion-server--use gemini-companion-server--next 'restarted))
      ('start
       (gemini-companion-server--give-up report))
      ('crash
       (gemini-companion-server--crashed process report)))))

(defun gemini-companion-server--release (process)
  "Release the timer, the buffer and the connection of PROCESS.
What it was asked, and has not answered, fails."
  (cancel-timer (process-get process 'timer))
  (kill-buffer (process-buffer process))
  (when-let* ((connection (process-get process 'connection)))
    ;; A process that has crashed may have sent a proposal before.
    (while (accept-process-output (epc:connection-process
                                   (epc:manager-connection connection))
                                  0 nil 1))
    (epc:stop-epc connection))
  (dolist (fail (process-get process 'failing))
    (gemini-companion-log-guarded "Handling the end of the server"
      (funcall fail "the server has ended"))))

(defun gemini-companion-server--end-of (process)
  "Return the kind of end of PROCESS, a symbol.
`unused': the process was stopped.
`successor': it was to replace the current one.
`replaced': it was the current one, and its successor is ready.
`start': it was the current one, and never ready.
`crash': it was the current one, and ended unexpectedly."
  (cond ((not (gemini-companion-server--used-p process)) 'unused)
        ((eq process gemini-companion-server--next) 'successor)
        ((gemini-companion-server--callable-p gemini-companion-server--next)
         'replaced)
        ((process-get process 'info) 'crash)
        (t 'start)))

(defun gemini-companion-server--crashed (process report)
  "Replace PROCESS, the current one, after a crash; REPORT has the reason.
If PROCESS has run for a minute, all attempts to restart are available again."
  (setq gemini-companion-server--died (float-time))
  (gemini-companion-log-guarded 'server
    (run-hooks 'gemini-companion-server-crash-hook))
  (when (< 60 (- gemini-companion-server--died
                 (plist-get (process-get process 'info) :since)))
    (setq gemini-companion-server--delays-left gemini-companion-server-delays))
  ;; A process that was to replace the current one goes on.
  (unless gemini-companion-server--next
    (gemini-companion-server--recover report 'now)))

(defun gemini-companion-server--recover (report &optional now)
  "Start a process for the crashed server, or give up with REPORT.
Wait for the next one of `gemini-companion-server--delays-left', but not
if NOW is non-nil; give up if none is left."
  (if-let* ((delay (pop gemini-companion-server--delays-left)))
      (process-put gemini-companion-server--current 'timer
                   (run-at-time (if now 0 delay) nil
                                #'gemini-companion-server--open-next report))
    (gemini-companion-server--give-up report)))

(defun gemini-companion-server--open-next (report)
  "Start the process that will replace the crashed one.
REPORT is about the crash.  If the process cannot be started, try again later."
  (condition-case-unless-debug problem
      (setq gemini-companion-server--next (gemini-companion-server--open))
    (error
     (gemini-companion-server--recover
      (concat (error-message-string problem) "\n\n" report)))))

(defun gemini-companion-server--give-up (report)
  "Stop the server, and have the mode display REPORT and the remedy."
  (let ((on-end (gemini-companion-server--callbacks-on-end
                 gemini-companion-server--callbacks)))
    (gemini-companion-server-stop)
    (funcall on-end (format "The gemini-companion server is not running.  %s

%s.
Then turn on `gemini-companion-mode' again."
                            report
                            (cond
                             ((not (file-directory-p
                                    gemini-companion-server-directory))
                              (format "The directory of the package, %s,
is missing; load the package from where it is now, or install it again"
                                      gemini-companion-server-directory))
                             (gemini-companion-server-command
                              "Customize \
`gemini-companion-server-command' to a Python (3.10 or later)
that has the packages epc, sexpdata, mcp, hypercorn and psutil")
                             (t "If a package is missing, install all again: \
M-x gemini-companion-install-server"))))))

;;;; Calls

(defun gemini-companion-server-ready-p ()
  "Return non-nil if the server can be called."
  (gemini-companion-server--callable-p gemini-companion-server--current))

(defun gemini-companion-server-idle-p ()
  "Return non-nil if the server has answered all posts."
  (when (gemini-companion-server-ready-p)
    (null (process-get gemini-companion-server--current 'posts))))

(defun gemini-companion-server-running-p ()
  "Return non-nil if there is a server, ready or not."
  (and gemini-companion-server--callbacks t))

(defun gemini-companion-server-info ()
  "Return a description of the server that can be called, or nil.
It is a plist.  Of the process: `:pid' and `:command'; and `:since', the
time when it became ready, in seconds since 1970.  Its answer to hello:
`:version', `:port' and `:token'; `:discovery', lists of a client and the
name of its discovery file, as (\"gemini\" \"/tmp/.../server-1.json\");
`:files', with which the names of its private files begin; and
`:is-exposed', non-nil if another user may know the token."
  (when (gemini-companion-server-ready-p)
    (process-get gemini-companion-server--current 'info)))

(defun gemini-companion-server-call (method &rest args)
  "Call METHOD of the server with ARGS, without waiting for its answer.
Strings among ARGS, but not in lists, may have any length.  Return non-nil if
the call was sent."
  (gemini-companion-server-ask method args #'ignore))

(defun gemini-companion-server-search-in (temporaries done)
  "Write the discovery files in TEMPORARIES, temporary directories.
Remove those in earlier TEMPORARIES.  Call DONE when the files are written, or
after a failure.  Return non-nil if the server was called."
  (setq gemini-companion-server--temporaries temporaries)
  (when-let* ((process gemini-companion-server--current))
    (gemini-companion-server-ask
     'temporaries-update (list temporaries)
     (lambda (files)
       (when files
         (process-put process 'info
                      (plist-put (process-get process 'info) :discovery files)))
       (funcall done)))))

(defun gemini-companion-server-ask (method args done &optional failed process)
  "Call METHOD of the server with ARGS, and then DONE or FAILED.
DONE is called with its value, or FAILED with a message; without FAILED,
DONE is called with nil.  PROCESS is the one to call, by default the
current one if it is ready.  Return non-nil if the call was sent."
  (when-let* ((process (or process
                           (and (gemini-companion-server-ready-p)
                                gemini-companion-server--current)))
              (answer (gemini-companion-server--send process method args)))
    (when failed
      (setq failed (gemini-companion-server--expect process failed)))
    (deferred:error
     (deferred:nextc answer
       (lambda (value)
         (cl-callf2 remq failed (process-get process 'failing))
         ;; An error here is not one of the call.
         (gemini-companion-log-guarded "Handling an answer of the server"
           (funcall done value))))
     (lambda (problem)
       (if failed
           (funcall failed (gemini-companion-server--problem-text problem))
         (funcall done nil))))
    t))

(defun gemini-companion-server--expect (process failed)
  "Return a function to call FAILED once, also if PROCESS ends before that."
  (letrec ((fail (lambda (problem)
                   (when (memq fail (process-get process 'failing))
                     (cl-callf2 remq fail (process-get process 'failing))
                     (funcall failed problem)))))
    (push fail (process-get process 'failing))
    fail))

(defun gemini-companion-server--send (process method args)
  "Send PROCESS a call of METHOD with ARGS, and return the deferred answer.
Return nil if PROCESS has ended.  Signal an error if a large text among
ARGS cannot be written to a file."
  (let ((print-escape-control-characters nil)
        (print-escape-multibyte nil)
        (print-circle nil)
        (print-integers-as-characters nil)
        (args (mapcar (apply-partially #'gemini-companion-server--pack process)
                      args)))
    (gemini-companion-log-record 'sent method args)
    ;; The process may have died, and its sentinel not run.
    (ignore-errors
      (epc:call-deferred (process-get process 'connection) method
                         (gemini-companion-server--plain args)))))

(defun gemini-companion-server--problem-text (problem)
  "Return the message of PROBLEM, with which a call has failed.
An error of the process is a printed string, with quotes; one of Emacs is
the data of the error."
  (gemini-companion-text-trim
   (if (stringp problem) problem (error-message-string problem))
   "\""))

(defun gemini-companion-server-post (method value)
  "Call METHOD of the server with VALUE, a state.
While an earlier post of METHOD has no answer, only the latest VALUE
is kept, so that a process that does not read never blocks Emacs."
  (when (gemini-companion-server-ready-p)
    (let* ((process gemini-companion-server--current)
           (unanswered (cl-find method (process-get process 'posts)
                                :key #'gemini-companion-server--post-method)))
      (if unanswered
          (setf (gemini-companion-server--post-next unanswered) (list value))
        (let ((post (make-gemini-companion-server--post :method method)))
          (push post (process-get process 'posts))
          (gemini-companion-server-ask
           method (list value)
           (lambda (_) (gemini-companion-server--posted process post))))))))

(defun gemini-companion-server--posted (process post)
  "Send the next state after POST, which PROCESS has answered, if there is one."
  (cl-callf2 delq post (process-get process 'posts))
  (when-let* ((next (gemini-companion-server--post-next post))
              ((eq process gemini-companion-server--current)))
    (gemini-companion-server-post (gemini-companion-server--post-method post)
                                  (car next))))

(defun gemini-companion-server--epc-connect (port)
  "Return a connection of EPC to PORT of this machine.
If nothing listens there, signal an error, and leave no buffer."
  (let ((connection nil))
    (unwind-protect
        (setq connection (epc:connect "127.0.0.1" port))
      ;; EPC leaves its buffer if it cannot connect.
      (unless connection
        (kill-buffer (format "*epc con %d*" epc:uid))))))

(defun gemini-companion-server--epc-open (process port)
  "Connect to PORT of PROCESS; signal an error if it cannot connect."
  (require 'epc)
  (let* ((connection (gemini-companion-server--epc-connect port))
         (manager (make-epc:manager :title "gemini-companion" :port port
                                    :connection connection)))
    ;; EPC's own name for the buffer lacks the space that hides it.
    (with-current-buffer (epc:connection-buffer connection)
      (rename-buffer " *gemini-companion connection*" t))
    ;; EPC waits a millisecond before it handles a message, which is most of the
    ;; time that one takes; the user's setting for other deferred tasks stays.
    (add-function :around (process-filter (epc:connection-process connection))
                  (lambda (filter &rest args)
                    (let ((deferred:tick-time 0))
                      (apply filter args))))
    (dolist (method gemini-companion-server--methods)
      (epc:define-method manager method
                         (apply-partially #'gemini-companion-server--handle
                                          process method)))
    (epc:init-epc-layer manager)
    (process-put process 'connection manager)))

(defun gemini-companion-server--pack (process value)
  "Return VALUE in the form for PROCESS; a large text becomes a file."
  (if (and (stringp value) (< 262144 (string-bytes value)))
      (let ((file (make-temp-file
                   (plist-get (process-get process 'info) :files))))
        (gemini-companion-text-write file value)
        (list :file file))
    value))

(defun gemini-companion-server--plain (value)
  "Return VALUE with only the characters of its strings, also in lists.
Python can read neither properties nor bytes in place of characters."
  (cond ((consp value) (mapcar #'gemini-companion-server--plain value))
        ((not (stringp value)) value)
        ((multibyte-string-p value) (substring-no-properties value))
        (t (decode-coding-string (substring-no-properties value)
                                 'utf-8-unix))))

(provide 'gemini-companion-server)
;;; gemini-companion-server.el ends here
