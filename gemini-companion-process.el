;;; gemini-companion-process.el --- One Python process and its large texts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; One Python process of the server: its start and end, the calls to it, and
;; large texts, which are sent in private files.  gemini-companion-server.el
;; decides which process is in use, and what follows when one ends.
;;
;; Nothing here waits for the process, except for its last error output, for
;; 0.2 seconds at most, if it ends unexpectedly.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-text)
(require 'seq)
(require 'subr-x)

(declare-function json-encode "json")

;; EPC is loaded once the process has printed its port.
(autoload 'gemini-companion-epc-open "gemini-companion-epc")
(autoload 'gemini-companion-epc-close "gemini-companion-epc")
(autoload 'gemini-companion-epc-call "gemini-companion-epc")
(autoload 'gemini-companion-epc-later "gemini-companion-epc")

;;;; State

(defconst gemini-companion-process--start-seconds 30
  "Maximum seconds from the start of a process to its first answer.")

(defconst gemini-companion-process--stop-seconds 8
  "Seconds after which a process that should stop is killed.")

(defconst gemini-companion-process--log-size 32768
  "Number of characters to keep of the error output of a process.")

(defconst gemini-companion-process--large-text 262144
  "Size in bytes above which a text is sent in a private file.")

(defun gemini-companion-process--new-secret ()
  "Return a random string of hexadecimal digits."
  (secure-hash 'sha256 'iv-auto 64))

(cl-defstruct (gemini-companion-process
               (:constructor gemini-companion-process--make)
               (:copier nil))
  "One Python process and the connection to it.
STATE is `starting', `ready', `handing-over', `stopping' or `ended'.
For COMMAND to ON-END see `gemini-companion-process-open'.  CHILD is the
process object, and LOG the buffer with its error output.  INFO is a
plist, see `gemini-companion-server-info'."
  (state 'starting) command version settings methods handler on-ready on-end
  child log connection info timer
  (secret (gemini-companion-process--new-secret))
  (output "" :documentation "Standard output so far.")
  (posts nil :documentation "Alist of (METHOD) or (METHOD VALUE): posts
without an answer, and the value to post next, if any."))

(defun gemini-companion-process-ready-p (process)
  "Return non-nil if PROCESS can be called."
  (memq (gemini-companion-process-state process) '(ready handing-over)))

(defun gemini-companion-process--directory (process)
  "Return the private directory of PROCESS, nil before its first answer."
  (plist-get (gemini-companion-process-info process) :directory))

;;;; Texts

(defun gemini-companion-process--clean (value)
  "Return VALUE with only the characters of its strings, also in lists.
Python can read neither properties nor bytes in place of characters."
  (cond ((consp value) (mapcar #'gemini-companion-process--clean value))
        ((not (stringp value)) value)
        ((multibyte-string-p value) (substring-no-properties value))
        (t (decode-coding-string (substring-no-properties value)
                                 'utf-8-unix))))

(defun gemini-companion-process--pack (process value)
  "Return VALUE in the form for PROCESS; a large text becomes a file."
  (if (and (stringp value)
           (< gemini-companion-process--large-text (string-bytes value)))
      (list :file (gemini-companion-process--write process value))
    (gemini-companion-process--clean value)))

(defun gemini-companion-process--write (process text)
  "Write TEXT to a new private file of PROCESS, and return its name."
  (let* ((directory (gemini-companion-process--directory process))
         (file (expand-file-name
                (concat "emacs-" (gemini-companion-process--new-secret))
                directory)))
    ;; A cleanup of temporary files may have deleted it.
    (with-file-modes #o700 (make-directory directory t))
    (with-file-modes #o600
      (gemini-companion-text-write file text 'exclusive))
    file))

(defun gemini-companion-process--text-file (process value)
  "Return the private file of PROCESS that VALUE names, or nil."
  (pcase value
    (`(:file ,(and (pred stringp) file))
     (and (equal (file-name-directory file)
                 (file-name-as-directory
                  (gemini-companion-process--directory process)))
          file))))

(defun gemini-companion-process--unpack (process value)
  "Return VALUE, which PROCESS sent, as a method takes it.
A text in a private file becomes a function that fills an empty
buffer with it, because a string of this size would trigger a garbage
collection."
  (if-let* ((file (gemini-companion-process--text-file process value)))
      (lambda () (gemini-companion-text-fill file))
    value))

(defun gemini-companion-process-later (start)
  "Return a value for the handler of a process that is known later.
Call START with a function, which is to be called with the value."
  (gemini-companion-epc-later
   (lambda (answer)
     (funcall start
              (lambda (value)
                (funcall answer (gemini-companion-process--clean value)))))))

;;;; Start

(defun gemini-companion-process-open (environment directory &rest properties)
  "Start a process, and return it at once.
It runs in DIRECTORY with ENVIRONMENT.  PROPERTIES is a plist of
`:command', a list of strings; `:version', which it must have;
`:settings', a function without arguments that returns a plist for
the process, called when Emacs is idle; `:methods', symbols for what
the process may call; and `:handler', which is then called with the
process, one of these symbols, and the arguments.

`:on-ready' is called with the process when it can be called.
`:on-end' is called with the process when it has ended, and with a
report for the user, or nil after `gemini-companion-process-close'."
  (let ((process (apply #'gemini-companion-process--make properties)))
    (gemini-companion-process--spawn process environment directory)
    (if after-init-time
        (run-at-time 0 nil #'gemini-companion-process--instruct process)
      ;; Timers run only after the init file.
      (gemini-companion-process--instruct process))
    (setf (gemini-companion-process-timer process)
          (run-at-time gemini-companion-process--start-seconds nil
                       #'gemini-companion-process--fail process
                       (format "No answer within %d seconds"
                               gemini-companion-process--start-seconds)))
    process))

(defun gemini-companion-process--spawn (process environment directory)
  "Start PROCESS with ENVIRONMENT in DIRECTORY."
  (let* ((process-environment environment)
         (exec-path (default-value 'exec-path))
         (default-directory directory)
         (log (generate-new-buffer " *gemini-companion log*" t))
         (errors (make-pipe-process
                  :name "gemini-companion log" :buffer log :noquery t
                  :coding 'utf-8-unix :sentinel #'ignore
                  :filter #'gemini-companion-process--keep-log)))
    (setf (gemini-companion-process-log process) log)
    (condition-case problem
        (setf (gemini-companion-process-child process)
              (make-process
               :name "gemini-companion" :noquery t
               :command (gemini-companion-process-command process)
               :connection-type 'pipe :coding 'utf-8-unix :stderr errors
               :filter (lambda (_child string)
                         (gemini-companion-process--read-port process string))
               :sentinel (lambda (child _event)
                           (unless (process-live-p child)
                             (gemini-companion-process--exited process)))))
      (error
       (kill-buffer log)                ; Deletes ERRORS, too.
       (signal (car problem) (cdr problem))))))

(defun gemini-companion-process--instruct (process)
  "Send PROCESS its first line, which has its settings."
  (when (eq (gemini-companion-process-state process) 'starting)
    (require 'json)
    (condition-case problem
        (let ((line (json-encode
                     (append
                      (list :secret (gemini-companion-process-secret process)
                            :emacsPid (emacs-pid))
                      (funcall (gemini-companion-process-settings process))))))
          ;; This fails if the process has exited, which its sentinel reports.
          (ignore-errors
            (process-send-string (gemini-companion-process-child process)
                                 (concat line "\n"))))
      (error
       ;; In the init file, the caller does not know PROCESS yet.
       (run-at-time 0 nil #'gemini-companion-process--fail
                    process (error-message-string problem))))))

(defun gemini-companion-process--keep-log (errors string)
  "Append STRING to the buffer of ERRORS, and keep only its end."
  (with-current-buffer (process-buffer errors)
    (goto-char (point-max))
    (insert string)
    (when (> (buffer-size) (* 2 gemini-companion-process--log-size))
      (delete-region (point-min) (- (point-max)
                                    gemini-companion-process--log-size)))))

(defun gemini-companion-process--read-port (process string)
  "Connect PROCESS once STRING completes the line of its port."
  (let ((output (concat (gemini-companion-process-output process) string)))
    (setf (gemini-companion-process-output process) output)
    (cond
     ((gemini-companion-process-connection process))
     ((string-match "\\`\\([0-9]+\\)\r?\n" output)
      (gemini-companion-process--connect
       process (string-to-number (match-string 1 output))))
     ((not (string-match-p "\\`[0-9]*\r?\\'" output))
      (gemini-companion-process--fail
       process (format "Expected a port number, got: %s"
                       (truncate-string-to-width (string-trim output) 200)))))))

(defun gemini-companion-process--connect (process port)
  "Connect PROCESS to PORT, and call hello."
  (condition-case problem
      (progn
        (setf (gemini-companion-process-connection process)
              (gemini-companion-epc-open
               port (gemini-companion-process-command process)
               (gemini-companion-process-methods process)
               (apply-partially #'gemini-companion-process--handle process)))
        (unless (gemini-companion-epc-call
                 (gemini-companion-process-connection process) 'hello
                 (list (gemini-companion-process-secret process)
                       (gemini-companion-process-version process))
                 (apply-partially #'gemini-companion-process--greeted process)
                 (apply-partially #'gemini-companion-process--fail process))
          (error "Connection closed")))
    (error
     (gemini-companion-process--fail process (error-message-string problem)))))

(defun gemini-companion-process--handle (process method &rest args)
  "Pass METHOD and ARGS to the handler of PROCESS; pack and unpack texts.
A large text is passed as a function that fills the current, empty
buffer with it, and that is valid during the call."
  (gemini-companion-process--pack
   process
   (unwind-protect
       (apply (gemini-companion-process-handler process)
              process method
              (mapcar (apply-partially #'gemini-companion-process--unpack
                                       process)
                      args))
     (dolist (arg args)
       (when-let* ((file (gemini-companion-process--text-file process arg)))
         (delete-file file))))))

(defun gemini-companion-process--greeted (process info)
  "Make PROCESS, which answered hello with INFO, ready."
  (when (eq (gemini-companion-process-state process) 'starting)
    (cancel-timer (gemini-companion-process-timer process))
    (setf (gemini-companion-process-info process)
          (append (list :pid (process-id
                              (gemini-companion-process-child process))
                        :command (gemini-companion-process-command process)
                        :since (float-time))
                  info)
          (gemini-companion-process-state process) 'ready)
    (funcall (gemini-companion-process-on-ready process) process)))

;;;; End

(defun gemini-companion-process-close (process)
  "Stop PROCESS, if it has not ended, without waiting for it.
At the end of its input it rejects open diffs, ends its streams and
deletes its discovery file."
  (gemini-companion-process--end process 'stopping)
  ;; This fails if the process is suspended or has exited.
  (ignore-errors
    (process-send-eof (gemini-companion-process-child process))))

(defun gemini-companion-process-hand-over (process)
  "Stop PROCESS, as another one listens at its port.
It answers the requests in progress, rejects nothing and leaves the
discovery file.  It can be called until it ends."
  (gemini-companion-process-call process 'hand-over)
  (gemini-companion-process--end process 'handing-over))

(defun gemini-companion-process--end (process state)
  "Expect PROCESS to end, unless it has, and kill it after some seconds.
STATE is its state until then."
  (unless (eq (gemini-companion-process-state process) 'ended)
    (cancel-timer (gemini-companion-process-timer process))
    (setf (gemini-companion-process-state process) state
          (gemini-companion-process-timer process)
          (run-at-time gemini-companion-process--stop-seconds nil
                       #'delete-process
                       (gemini-companion-process-child process)))))

(defun gemini-companion-process--fail (process reason)
  "End PROCESS, which did not start, because of REASON."
  (when (eq (gemini-companion-process-state process) 'starting)
    (gemini-companion-process--finish process reason)))

(defun gemini-companion-process--exited (process)
  "End PROCESS, which has exited."
  (let ((child (gemini-companion-process-child process)))
    (gemini-companion-process--finish
     process (unless (memq (gemini-companion-process-state process)
                           '(handing-over stopping))
               (format (if (eq (process-status child) 'signal)
                           "Killed by signal %d"
                         "Exited with status %d")
                       (process-exit-status child))))))

(defun gemini-companion-process--finish (process problem)
  "Release all resources of PROCESS, and report PROBLEM, a string or nil."
  (let* ((child (gemini-companion-process-child process))
         (log (gemini-companion-process-log process))
         (errors (get-buffer-process log))
         (connection (gemini-companion-process-connection process))
         (report nil))
    (setf (gemini-companion-process-state process) 'ended)
    (cancel-timer (gemini-companion-process-timer process))
    (set-process-sentinel child #'ignore)
    (delete-process child)
    (when connection
      (gemini-companion-epc-close connection))
    (gemini-companion-process--delete-directory process)
    (when problem
      ;; Not for long: a child of the process may continue writing.
      (cl-loop repeat 9
               while (and errors (accept-process-output errors 0.02)))
      (setq report (gemini-companion-process--report process problem)))
    (kill-buffer log)                   ; Deletes ERRORS, too.
    (funcall (gemini-companion-process-on-end process) process report)))

(defun gemini-companion-process--delete-directory (process)
  "Delete the private directory that PROCESS left behind, if any."
  (let ((directory (gemini-companion-process--directory process)))
    (when (and directory (file-directory-p directory))
      (with-demoted-errors "Deleting the server's directory: %S"
        (delete-directory directory t)))))

(defun gemini-companion-process--report (process problem)
  "Return PROBLEM with the command and the last output of PROCESS."
  (let ((output (with-current-buffer (gemini-companion-process-log process)
                  (goto-char (point-max))
                  (forward-line -12)
                  (string-trim (buffer-substring (point) (point-max))))))
    (format "%s.\n\nCommand:\n  %s\n\n%s"
            problem
            (mapconcat #'shell-quote-argument
                       (gemini-companion-process-command process) " ")
            (if (string-empty-p output)
                "No output"
              (concat "Last output:\n  "
                      (string-replace "\n" "\n  " output))))))

;;;; Calls

(defun gemini-companion-process-ask (process done method &rest args)
  "Call METHOD of PROCESS, which is ready, with ARGS.
DONE is called with the answer later, or with nil after an error.
Return non-nil if the call was sent."
  (gemini-companion-epc-call
   (gemini-companion-process-connection process) method args
   done (lambda (_problem) (funcall done nil))))

(defun gemini-companion-process-call (process method &rest args)
  "Call METHOD of PROCESS, which is ready, with ARGS.
Do not wait for its answer.  Strings among ARGS, not in lists, may be
of any length.  Return non-nil if the call was sent."
  (gemini-companion-epc-call
   (gemini-companion-process-connection process) method
   (mapcar (apply-partially #'gemini-companion-process--pack process) args)))

(defun gemini-companion-process-post (process method value)
  "Call METHOD of PROCESS with VALUE, a state.
While an earlier post of METHOD has no answer, only the latest VALUE
is kept, so that a process that does not read never blocks Emacs."
  (when (gemini-companion-process-ready-p process)
    (if-let* ((post (assq method (gemini-companion-process-posts process))))
        (setcdr post (list value))
      (push (list method) (gemini-companion-process-posts process))
      (let ((answered (lambda (_)
                        (gemini-companion-process--answered process method))))
        (gemini-companion-epc-call
         (gemini-companion-process-connection process) method
         (list (gemini-companion-process--clean value))
         answered answered)))))

(defun gemini-companion-process--answered (process method)
  "Post the latest value of METHOD, if any, as PROCESS has answered."
  (let ((post (assq method (gemini-companion-process-posts process))))
    (setf (gemini-companion-process-posts process)
          (delq post (gemini-companion-process-posts process)))
    (when (cdr post)
      (gemini-companion-process-post process method (cadr post)))))

(provide 'gemini-companion-process)
;;; gemini-companion-process.el ends here
