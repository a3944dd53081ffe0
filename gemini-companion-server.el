;;; gemini-companion-server.el --- The Python process and the EPC wire  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software; you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.

;; This program is distributed in the hope that it will be useful,
;; but WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
;; GNU General Public License for more details.

;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; Start, stop and call the Python server.  The only file that knows EPC:
;; what it hands to others are plain strings, numbers and plists.  It knows
;; neither diffs nor context; the entry passes it the methods that the
;; server may call and two functions that hear of its start and its end.
;;
;; Nothing here waits for the server.  Every call is answered by a callback
;; or not at all.

;;; Code:

(require 'cl-lib)
(require 'epc)
(require 'json)
(require 'subr-x)

;;;; Customization

(defcustom gemini-companion-server-command nil
  "Program and arguments that run the Python server, exactly as given.
Nil means `python3' (or the `.venv' beside this package, if there
is one) with the Python part of this package.  Set it to use a
Python of your own that has the packages epc, sexpdata, mcp,
hypercorn and psutil, for example
  (\"/path/to/venv/bin/python\" \"-m\" \"gemini_companion_epc\")
Takes effect when the server starts next."
  :type '(choice (const :tag "Python found by Emacs" nil)
                 (repeat :tag "Program and arguments" string))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

;;;; State

(defconst gemini-companion-server-version "0.1.0"
  "Version that both ends of the wire must have.")

(defconst gemini-companion-server--directory
  (file-name-directory (or load-file-name
                           (bound-and-true-p byte-compile-current-file)
                           buffer-file-name))
  "Folder of this package, which holds the Python part in `python'.")

(defconst gemini-companion-server--start-seconds 30
  "How long the server may take from its start to its first answer.")

(defconst gemini-companion-server--stop-seconds 5
  "How long the server may take to stop before it is killed.")

(defconst gemini-companion-server--log-size 32768
  "How many characters of the server's log are kept.")

(defconst gemini-companion-server--large-text 262144
  "Texts above this size in bytes travel in a private file.")

(cl-defstruct (gemini-companion-server--link
               (:constructor gemini-companion-server--link-make)
               (:copier nil))
  "One running server and the wire to it.
STATE is `starting', `ready', `stopping' or `ended'."
  (state 'starting) command process log manager secret
  (output "") info timer methods on-ready on-end
  (waiting nil :documentation "Alist of METHOD and the ARGS to send next.")
  (unanswered nil :documentation "Methods whose last post has no answer yet."))

(defvar gemini-companion-server--link nil
  "The link to the server in use, or nil.")

;;;; Command line

(defun gemini-companion-server--python ()
  "Return the Python interpreter for the server, or nil."
  (let ((own (expand-file-name (if (eq system-type 'windows-nt)
                                   ".venv/Scripts/python.exe"
                                 ".venv/bin/python")
                               gemini-companion-server--directory)))
    (if (file-executable-p own)
        own
      (or (executable-find "python3") (executable-find "python")))))

(defun gemini-companion-server--argv ()
  "Return the command for the server, as a list of strings."
  (or gemini-companion-server-command
      (list (or (gemini-companion-server--python)
                (user-error "No Python found; install Python 3.10 or later \
or customize `gemini-companion-server-command'"))
            "-m" "gemini_companion_epc")))

(defun gemini-companion-server--check (command)
  "Signal an error if the program of COMMAND is not there."
  ;; Before Emacs 29 a process starts that ends at once.
  (unless (let ((exec-path (default-value 'exec-path)))
            (executable-find (car command)))
    (user-error "Cannot find the program %s; customize \
`gemini-companion-server-command'"
                (car command))))

(defun gemini-companion-server--environment ()
  "Return the environment of the server.
The Python part of this package comes first in its path, so that
both ends have one version, and no other folder shadows a module."
  (let* ((process-environment
          (copy-sequence (default-value 'process-environment)))
         (python (expand-file-name "python" gemini-companion-server--directory))
         (inherited (getenv "PYTHONPATH")))
    (when (file-directory-p python)
      (setenv "PYTHONPATH" (if (member inherited '(nil ""))
                               python
                             (concat python path-separator inherited))))
    (setenv "PYTHONSAFEPATH" "1")
    (setenv "PYTHONUTF8" "1")
    process-environment))

(defun gemini-companion-server--secret ()
  "Return a secret that nobody else can guess, as a string of hex digits."
  (if (gnutls-available-p)
      (secure-hash 'sha256 'iv-auto 64)
    (secure-hash 'sha256 (format "%s %s %s %s" (random t) (random)
                                 (emacs-pid) (current-time)))))

;;;; Text

(defun gemini-companion-server--clean (string)
  "Return STRING without properties, raw bytes and lone surrogates.
Each of them becomes U+FFFD, as Python could not read it."
  (let ((text (substring-no-properties string)))
    (unless (multibyte-string-p text)
      (setq text (decode-coding-string text 'utf-8-unix t)))
    (replace-regexp-in-string "[^\0-\uD7FF\uE000-\U0010FFFF]" "\uFFFD" text
                              t t)))

(defun gemini-companion-server--clean-all (value)
  "Return VALUE with each string in it and in its lists clean."
  (cond ((stringp value) (gemini-companion-server--clean value))
        ((consp value) (mapcar #'gemini-companion-server--clean-all value))
        (t value)))

(defun gemini-companion-server--pack (link text)
  "Return TEXT in the form for LINK: a string, or a file with it."
  (let ((text (gemini-companion-server--clean text)))
    (if (<= (string-bytes text) gemini-companion-server--large-text)
        text
      (let ((file (expand-file-name
                   (format "emacs-%s" (gemini-companion-server--secret))
                   (plist-get (gemini-companion-server--link-info link)
                              :folder)))
            (coding-system-for-write 'utf-8-unix)
            (write-region-inhibit-fsync t)
            (inhibit-message t))
        (with-file-modes #o600
          (write-region text nil file nil 'silent nil 'excl))
        (list :file file)))))

(defun gemini-companion-server--unpack (text)
  "Return the string that TEXT, a string or a private file, stands for."
  (pcase text
    ((pred stringp) text)
    (`(:file ,file)
     (unwind-protect
         (with-temp-buffer
           (let ((coding-system-for-read 'utf-8-unix)
                 (file-name-handler-alist nil))
             (insert-file-contents file))
           (buffer-string))
       (delete-file file)))))

;;;; Start

(defun gemini-companion-server-start (roots methods on-ready on-end &rest keep)
  "Start the server for the projects in ROOTS, without waiting for it.
METHODS is an alist of (NAME . FUNCTION), what the server may
call.  ON-READY is called without arguments when the server can
be called; ON-END with the reason, a string, when it ended by
itself or could not start, or with nil after
`gemini-companion-server-stop'.  KEEP are plist elements for the
first line that the server reads, such as `:port'."
  (let* ((command (gemini-companion-server--argv))
         (link (gemini-companion-server--link-make
                :command command :methods methods
                :secret (gemini-companion-server--secret)
                :on-ready on-ready :on-end on-end)))
    (gemini-companion-server--check command)
    (gemini-companion-server--spawn link)
    (setq gemini-companion-server--link link)
    (gemini-companion-server--instruct link roots keep)
    (setf (gemini-companion-server--link-timer link)
          (run-at-time gemini-companion-server--start-seconds nil
                       #'gemini-companion-server--fail link
                       (format "It did not answer within %d seconds"
                               gemini-companion-server--start-seconds)))))

(defun gemini-companion-server--spawn (link)
  "Start the process of LINK."
  (let* ((process-environment (gemini-companion-server--environment))
         (exec-path (default-value 'exec-path))
         ;; Before Python 3.11 the current folder is searched for modules.
         (default-directory
          (let ((python (expand-file-name "python/"
                                          gemini-companion-server--directory)))
            (if (file-directory-p python) python "/")))
         (command (gemini-companion-server--link-command link))
         (log (generate-new-buffer " *gemini-companion log*" t))
         (errors (make-pipe-process
                  :name "gemini-companion log" :buffer log :noquery t
                  :coding 'utf-8-unix :sentinel #'ignore
                  :filter #'gemini-companion-server--keep-log)))
    (setf (gemini-companion-server--link-log link) log)
    (condition-case problem
        (setf (gemini-companion-server--link-process link)
              (make-process
               :name "gemini-companion" :command command :noquery t
               :connection-type 'pipe :coding 'utf-8-unix :stderr errors
               :filter (lambda (_process string)
                         (gemini-companion-server--read-port link string))
               :sentinel (lambda (process _event)
                           (unless (process-live-p process)
                             (gemini-companion-server--exited link)))))
      (error
       (delete-process errors)
       (kill-buffer log)
       (user-error "Cannot run %s (%s); customize \
`gemini-companion-server-command'"
                   (car command) (error-message-string problem))))))

(defun gemini-companion-server--instruct (link roots keep)
  "Send LINK's server its first line, with ROOTS and the plist KEEP."
  ;; A program that ends at once makes this fail; its sentinel tells more.
  (ignore-errors
    (process-send-string
     (gemini-companion-server--link-process link)
     (concat (json-encode
              (append (list :secret (gemini-companion-server--link-secret link)
                            :version gemini-companion-server-version
                            :emacsPid (emacs-pid)
                            :roots (vconcat roots))
                      keep))
             "\n"))))

(defun gemini-companion-server--keep-log (process string)
  "Append STRING to the log buffer of PROCESS, and keep its end only."
  (when (buffer-live-p (process-buffer process))
    (with-current-buffer (process-buffer process)
      (goto-char (point-max))
      (insert string)
      (when (> (buffer-size) (* 2 gemini-companion-server--log-size))
        (delete-region (point-min) (- (point-max)
                                      gemini-companion-server--log-size))))))

(defun gemini-companion-server--read-port (link string)
  "Connect LINK when STRING completes the line that names the EPC port."
  (let ((output (concat (gemini-companion-server--link-output link) string)))
    (setf (gemini-companion-server--link-output link) output)
    (cond
     ((gemini-companion-server--link-manager link))
     ((string-match "\\`\\([0-9]+\\)\r?\n" output)
      (gemini-companion-server--connect
       link (string-to-number (match-string 1 output))))
     ((or (string-search "\n" output) (not (string-match-p "\\`[0-9]*\r?\\'" output)))
      (gemini-companion-server--fail
       link (format "Instead of its port it printed: %s"
                    (truncate-string-to-width (string-trim output) 200)))))))

(defun gemini-companion-server--connect (link port)
  "Open the EPC connection of LINK to PORT and say hello."
  (condition-case problem
      (let* ((connection (epc:connect "127.0.0.1" port))
             (manager (make-epc:manager
                       :title "gemini-companion" :port port
                       :commands (gemini-companion-server--link-command link)
                       :connection connection)))
        ;; EPC's own name for the buffer lacks the space that hides it.
        (with-current-buffer (epc:connection-buffer connection)
          (rename-buffer " *gemini-companion wire*" t))
        (setf (gemini-companion-server--link-manager link) manager)
        (pcase-dolist (`(,name . ,function)
                       (gemini-companion-server--link-methods link))
          (epc:define-method manager name
                             (gemini-companion-server--method link function)))
        (epc:init-epc-layer manager)
        (gemini-companion-server--request
         link 'hello (list (gemini-companion-server--link-secret link)
                           gemini-companion-server-version)
         (lambda (info) (gemini-companion-server--greeted link info))
         (lambda (message) (gemini-companion-server--fail link message))))
    (error (gemini-companion-server--fail link
                                          (error-message-string problem)))))

(defun gemini-companion-server--method (link function)
  "Return FUNCTION for use by EPC: texts unpacked and packed.
A string that FUNCTION returns is packed for LINK."
  (lambda (&rest args)
    (let ((value (apply function
                        (mapcar (lambda (arg)
                                  (if (eq (car-safe arg) :file)
                                      (gemini-companion-server--unpack arg)
                                    arg))
                                args))))
      (if (stringp value)
          (gemini-companion-server--pack link value)
        value))))

(defun gemini-companion-server--greeted (link info)
  "Note that the server of LINK answered hello with INFO."
  (when (eq (gemini-companion-server--link-state link) 'starting)
    (cancel-timer (gemini-companion-server--link-timer link))
    (setf (gemini-companion-server--link-info link) info
          (gemini-companion-server--link-state link) 'ready)
    (funcall (gemini-companion-server--link-on-ready link))))

;;;; End

(defun gemini-companion-server-stop ()
  "Stop the server, if there is one, without waiting for its end.
It rejects what is pending, ends its streams and removes its
discovery file; all that takes is the end of its input."
  (when-let* ((link gemini-companion-server--link)
              (process (gemini-companion-server--link-process link)))
    (setq gemini-companion-server--link nil)
    (cancel-timer (gemini-companion-server--link-timer link))
    (setf (gemini-companion-server--link-state link) 'stopping)
    (when (process-live-p process)
      (ignore-error file-error
        (process-send-eof process))
      (setf (gemini-companion-server--link-timer link)
            (run-at-time gemini-companion-server--stop-seconds nil
                         #'delete-process process)))))

(defun gemini-companion-server--fail (link reason)
  "End LINK, whose server did not start, because of REASON."
  (when (eq (gemini-companion-server--link-state link) 'starting)
    (gemini-companion-server--finish link reason)))

(defun gemini-companion-server--exited (link)
  "End LINK, whose process has exited."
  (let ((process (gemini-companion-server--link-process link)))
    (pcase (gemini-companion-server--link-state link)
      ((or 'starting 'ready)
       (gemini-companion-server--finish
        link (if (eq (process-status process) 'signal)
                 (format "It was killed by signal %d"
                         (process-exit-status process))
               (format "It exited with status %d"
                       (process-exit-status process)))))
      ('stopping (gemini-companion-server--finish link nil)))))

(defun gemini-companion-server--finish (link problem)
  "Release all resources of LINK, and report PROBLEM, a string or nil."
  (let* ((process (gemini-companion-server--link-process link))
         (errors (get-buffer-process (gemini-companion-server--link-log link)))
         (manager (gemini-companion-server--link-manager link))
         (discovery (plist-get (gemini-companion-server--link-info link)
                               :discovery)))
    (setf (gemini-companion-server--link-state link) 'ended)
    (when (eq link gemini-companion-server--link)
      (setq gemini-companion-server--link nil))
    (cancel-timer (gemini-companion-server--link-timer link))
    (set-process-sentinel process #'ignore)
    ;; What the server said last may still be on its way.
    (when (and problem errors)
      (while (accept-process-output errors 0.05)))
    (delete-process process)
    (when manager
      (epc:live-connections-delete manager)
      (epc:disconnect (epc:manager-connection manager)))
    (when (and problem (stringp discovery) (file-exists-p discovery))
      (ignore-error file-error (delete-file discovery)))
    (let ((reason (and problem
                       (gemini-companion-server--report link problem))))
      (when errors (delete-process errors))
      (kill-buffer (gemini-companion-server--link-log link))
      (funcall (gemini-companion-server--link-on-end link) reason))))

(defun gemini-companion-server--report (link problem)
  "Return what a person needs to know about PROBLEM with LINK's server."
  (let ((log (with-current-buffer (gemini-companion-server--link-log link)
               (goto-char (point-max))
               (forward-line -12)
               (string-trim (buffer-substring (point) (point-max))))))
    (format "The server of gemini-companion does not run.  %s.

It was run as:
  %s

%s

If the lines above name no cure: run this command in a terminal, or
customize `gemini-companion-server-command' to a Python (3.10 or later)
that has the packages epc, sexpdata, mcp, hypercorn and psutil; then
turn on `gemini-companion-mode' again."
            problem
            (mapconcat #'shell-quote-argument
                       (gemini-companion-server--link-command link) " ")
            (if (string-empty-p log)
                "It said nothing."
              (concat "It said last:\n  "
                      (string-replace "\n" "\n  " log))))))

;;;; Calls

(defun gemini-companion-server--request (link method args &optional done failed)
  "Call METHOD of LINK's server with ARGS.
DONE is called with its value later, or FAILED with a message."
  (let ((print-escape-control-characters nil)
        (print-escape-multibyte nil)
        (print-circle nil)
        (print-integers-as-characters nil))
    (deferred:error
     (deferred:nextc
      (epc:call-deferred (gemini-companion-server--link-manager link)
                         method args)
      (or done #'ignore))
     (lambda (problem)
       (funcall (or failed #'ignore)
                (if (stringp problem) problem (format "%s" problem)))))))

(defun gemini-companion-server-ready-p ()
  "Return non-nil if the server can be called."
  (and gemini-companion-server--link
       (eq (gemini-companion-server--link-state gemini-companion-server--link)
           'ready)))

(defun gemini-companion-server-running-p ()
  "Return non-nil if there is a server, maybe not ready yet."
  (and gemini-companion-server--link t))

(defun gemini-companion-server-info ()
  "Return what the server said of itself, or nil.
A plist of `:version', `:port', `:token' and `:discovery', the
name of the discovery file."
  (and (gemini-companion-server-ready-p)
       (gemini-companion-server--link-info gemini-companion-server--link)))

(defun gemini-companion-server-call (method &rest args)
  "Call METHOD of the server with ARGS and do not wait for its answer.
Strings among ARGS may be of any length.  Return non-nil if the
call was sent."
  (when (gemini-companion-server-ready-p)
    (let ((link gemini-companion-server--link))
      (gemini-companion-server--request
       link method
       (mapcar (lambda (arg)
                 (if (stringp arg)
                     (gemini-companion-server--pack link arg)
                   arg))
               args))
      t)))

(defun gemini-companion-server-post (method value)
  "Tell the server by METHOD that the state is VALUE now.
While an earlier post of METHOD has no answer, only the latest
VALUE waits, so that a server that does not read never blocks Emacs."
  (when (gemini-companion-server-ready-p)
    (let ((link gemini-companion-server--link))
      (if (memq method (gemini-companion-server--link-unanswered link))
          (setf (alist-get method (gemini-companion-server--link-waiting link))
                (list value))
        (push method (gemini-companion-server--link-unanswered link))
        (let ((answered (lambda (_)
                          (gemini-companion-server--posted link method))))
          (gemini-companion-server--request
           link method (list (gemini-companion-server--clean-all value))
           answered answered))))))

(defun gemini-companion-server--posted (link method)
  "Send what waits for the answer to METHOD of LINK."
  (let ((next (alist-get method (gemini-companion-server--link-waiting link))))
    (setf (gemini-companion-server--link-unanswered link)
          (delq method (gemini-companion-server--link-unanswered link))
          (alist-get method (gemini-companion-server--link-waiting link)
                     nil t)
          nil)
    (when (and next (eq link gemini-companion-server--link))
      (gemini-companion-server-post method (car next)))))

(provide 'gemini-companion-server)
;;; gemini-companion-server.el ends here
