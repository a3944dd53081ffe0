;;; gemini-companion-link.el --- One Python server and what is said to it  -*- lexical-binding: t; -*-

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

;; A link is one Python process and the wire to it: how the process is started
;; and ended, and the texts that travel in files.  Which link is in use, and
;; what follows when one ends, is the matter of gemini-companion-server.el.
;;
;; Nothing here waits for the process.  Every call is answered by a callback
;; or not at all.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-text)
(require 'seq)
(require 'subr-x)

(declare-function json-encode "json")

;; EPC is loaded when the process has named its port.
(autoload 'gemini-companion-wire-open "gemini-companion-wire")
(autoload 'gemini-companion-wire-close "gemini-companion-wire")
(autoload 'gemini-companion-wire-call "gemini-companion-wire")

;;;; State

(defconst gemini-companion-link--start-seconds 30
  "How long the process may take from its start to its first answer.")

(defconst gemini-companion-link--stop-seconds 8
  "Seconds that the process may take to stop before it is killed.")

(defconst gemini-companion-link--retire-seconds 320
  "Seconds that the process may take to retire before it is killed.
For up to five minutes it waits for the request of a busy CLI that
connected before.")

(defconst gemini-companion-link--log-size 32768
  "How many characters of the log of the process are kept.")

(defconst gemini-companion-link--large-text 262144
  "Texts above this size in bytes travel in a private file.")

(defconst gemini-companion-link--longest-text 8000000
  "No text above this size in bytes travels without a file.
A message is at most 16 MB long, with a backslash before each quote.")

(cl-defstruct (gemini-companion-link
               (:constructor gemini-companion-link--make)
               (:copier nil))
  "One Python process and the wire to it.
STATE is `starting', `ready', `stopping' or `ended'.  INFO is what
the process said of itself, a plist.  COMMAND, METHODS, ON-READY
and ON-END are those of `gemini-companion-link-open'."
  (state 'starting) command version methods on-ready on-end
  process log wire secret info timer
  (output "" :documentation "What the process has printed so far.")
  (waiting nil :documentation "Alist of (METHOD VALUE), what to post next.")
  (unanswered nil :documentation "Methods whose last post has no answer."))

(defun gemini-companion-link-ready-p (link)
  "Return non-nil if the process of LINK can be called."
  (eq (gemini-companion-link-state link) 'ready))

(defun gemini-companion-link--new-secret ()
  "Return a secret that nobody else can guess, as a string of hex digits."
  (if (gnutls-available-p)
      (secure-hash 'sha256 'iv-auto 64)
    (secure-hash 'sha256 (format "%s %s %s %s" (random t) (random)
                                 (emacs-pid) (current-time)))))

;;;; Text

(defconst gemini-companion-link--bad
  (format "[%c-%c%c-%c]" #xD800 #xDFFF #x3FFF80 #x3FFFFF)
  "Matches surrogates and raw bytes, which are no text for Python.
Nor are characters above those of Unicode, which it replaces; a
set of so many takes Emacs milliseconds to compile, each time.")

(defun gemini-companion-link--clean (string)
  "Return STRING without properties, raw bytes and lone surrogates.
Each of them becomes U+FFFD, as Python could not read it."
  (let ((text (if (object-intervals string)
                  (substring-no-properties string)
                string)))
    (unless (multibyte-string-p text)
      (setq text (decode-coding-string text 'utf-8-unix t)))
    ;; All ASCII, mostly.
    (if (= (length text) (string-bytes text))
        text
      (gemini-companion-link--replace-bad text))))

(defun gemini-companion-link--replace-bad (text)
  "Return TEXT with each character that Python could not read as U+FFFD."
  (let ((case-fold-search nil))
    (if (string-match-p gemini-companion-link--bad text)
        (replace-regexp-in-string gemini-companion-link--bad "\uFFFD" text t t)
      text)))

(defun gemini-companion-link--clean-all (value)
  "Return VALUE with each string in it and in its lists clean."
  (cond ((stringp value) (gemini-companion-link--clean value))
        ((consp value) (mapcar #'gemini-companion-link--clean-all value))
        (t value)))

(defun gemini-companion-link--pack (link text)
  "Return TEXT in the form for LINK: a string, or a file with it."
  (or (and (< gemini-companion-link--large-text (string-bytes text))
           ;; Python itself replaces what it cannot read in a file.
           (gemini-companion-link--write link text))
      (gemini-companion-link--clean text)))

(defun gemini-companion-link--fits-p (link value)
  "Return non-nil if VALUE, packed for LINK, can be sent; else say why not."
  (or (not (stringp value))
      (<= (string-bytes value) gemini-companion-link--longest-text)
      (prog1 nil
        (display-warning
         'gemini-companion
         (format "A text of %d MB cannot be handed to Gemini CLI, because no \
file can be written in %s; free some space there, and answer in the terminal \
of Gemini CLI"
                 (/ (string-bytes value) 1000000)
                 (or (plist-get (gemini-companion-link-info link) :folder)
                     "the temporary folder"))))))

(defun gemini-companion-link--write (link text)
  "Write TEXT to a new private file of LINK.
Return what names it on the wire, or nil if it cannot be written."
  (when-let* ((folder (plist-get (gemini-companion-link-info link) :folder)))
    (let ((file (expand-file-name
                 (concat "emacs-" (gemini-companion-link--new-secret)) folder)))
      (condition-case nil
          (progn
            ;; What cleans temporary folders may have removed it.
            (with-file-modes #o700 (make-directory folder t))
            (with-file-modes #o600
              (gemini-companion-text-write file text 'exclusive))
            (list :file file))
        (file-error nil)))))

(defun gemini-companion-link--unpack (value)
  "Return VALUE as a method takes it.
A text in a private file becomes a function that fills an empty
buffer with it, as a string of this size would start a garbage
collection."
  (pcase value
    (`(:file ,file) (apply-partially #'gemini-companion-text-fill file))
    (_ value)))

(defun gemini-companion-link--delete (value)
  "Delete the private file that VALUE stands for, if it does."
  (pcase value
    (`(:file ,file) (delete-file file))))

;;;; Start

(cl-defun gemini-companion-link-open
    (&key command environment directory version keep methods on-ready on-end)
  "Start COMMAND, a list of strings, and return the link to it at once.
It runs in DIRECTORY with ENVIRONMENT, must be of VERSION, and
reads the plist that KEEP returns from its first line of input;
KEEP is called when Emacs has nothing else to do.  METHODS is an
alist of (NAME . FUNCTION), what it may call.

ON-READY is called with the link when it can be called.  ON-END is
called with the link when it has ended, and with what a person
needs to know of that, a string, or nil after
`gemini-companion-link-close'."
  (let ((link (gemini-companion-link--make
               :command command :version version :methods methods
               :secret (gemini-companion-link--new-secret)
               :on-ready on-ready :on-end on-end)))
    (gemini-companion-link--spawn link environment directory)
    (if after-init-time
        (run-at-time 0 nil #'gemini-companion-link--instruct link keep)
      ;; Until the init file is done no timer runs.
      (gemini-companion-link--instruct link keep))
    (setf (gemini-companion-link-timer link)
          (run-at-time gemini-companion-link--start-seconds nil
                       #'gemini-companion-link--fail link
                       (format "It did not answer within %d seconds"
                               gemini-companion-link--start-seconds)))
    link))

(defun gemini-companion-link--spawn (link environment directory)
  "Start the process of LINK with ENVIRONMENT in DIRECTORY."
  (let* ((process-environment environment)
         (exec-path (default-value 'exec-path))
         (default-directory directory)
         (log (generate-new-buffer " *gemini-companion log*" t))
         (errors (make-pipe-process
                  :name "gemini-companion log" :buffer log :noquery t
                  :coding 'utf-8-unix :sentinel #'ignore
                  :filter #'gemini-companion-link--keep-log)))
    (setf (gemini-companion-link-log link) log)
    (condition-case problem
        (setf (gemini-companion-link-process link)
              (make-process
               :name "gemini-companion" :noquery t
               :command (gemini-companion-link-command link)
               :connection-type 'pipe :coding 'utf-8-unix :stderr errors
               :filter (lambda (_process string)
                         (gemini-companion-link--read-port link string))
               :sentinel (lambda (process _event)
                           (unless (process-live-p process)
                             (gemini-companion-link--exited link)))))
      (error
       (delete-process errors)
       (kill-buffer log)
       (signal (car problem) (cdr problem))))))

(defun gemini-companion-link--instruct (link keep)
  "Send the process of LINK its first line, with the plist from KEEP."
  (when (eq (gemini-companion-link-state link) 'starting)
    (condition-case problem
        (gemini-companion-link--send-line
         link (append (list :secret (gemini-companion-link-secret link)
                            :version (gemini-companion-link-version link)
                            :emacsPid (emacs-pid))
                      (funcall keep)))
      (error
       (gemini-companion-link--fail link (error-message-string problem))))))

(defun gemini-companion-link--send-line (link plist)
  "Send the process of LINK the line that stands for PLIST."
  (require 'json)
  (let ((line (concat (json-encode plist) "\n")))
    ;; A program that ends at once makes this fail; its sentinel tells more.
    (ignore-errors
      (process-send-string (gemini-companion-link-process link) line))))

(defun gemini-companion-link--keep-log (process string)
  "Append STRING to the log buffer of PROCESS, and keep its end only."
  (when (buffer-live-p (process-buffer process))
    (with-current-buffer (process-buffer process)
      (goto-char (point-max))
      (insert string)
      (when (> (buffer-size) (* 2 gemini-companion-link--log-size))
        (delete-region (point-min) (- (point-max)
                                      gemini-companion-link--log-size))))))

(defun gemini-companion-link--read-port (link string)
  "Connect LINK when STRING completes the line that names the EPC port."
  (let ((output (concat (gemini-companion-link-output link) string)))
    (setf (gemini-companion-link-output link) output)
    (cond
     ((gemini-companion-link-wire link))
     ((string-match "\\`\\([0-9]+\\)\r?\n" output)
      (gemini-companion-link--connect
       link (string-to-number (match-string 1 output))))
     ((not (string-match-p "\\`[0-9]*\r?\\'" output))
      (gemini-companion-link--fail
       link (format "Instead of its port it printed: %s"
                    (truncate-string-to-width (string-trim output) 200)))))))

(defun gemini-companion-link--connect (link port)
  "Open the wire of LINK to PORT and say hello."
  (condition-case problem
      (progn
        (setf (gemini-companion-link-wire link)
              (gemini-companion-wire-open
               port (gemini-companion-link-command link)
               (mapcar (lambda (method)
                         (cons (car method)
                               (gemini-companion-link--method
                                link (cdr method))))
                       (gemini-companion-link-methods link))))
        (unless (gemini-companion-link--request
                 link 'hello (list (gemini-companion-link-secret link)
                                   (gemini-companion-link-version link))
                 (lambda (info) (gemini-companion-link--greeted link info))
                 (lambda (message) (gemini-companion-link--fail link message)))
          (error "It closed the connection")))
    (error
     (gemini-companion-link--fail
      link (format "Port %d, which it named, cannot be used (%s)" port
                   (car (split-string (error-message-string problem)
                                      ", :name")))))))

(defun gemini-companion-link--method (link function)
  "Return FUNCTION for use by the wire: texts (un)packed.
FUNCTION is called with LINK before its arguments.  One that is a
large text is a function that fills the current, empty buffer
with it, as long as the call lasts.  A string that is returned is
packed for LINK."
  (lambda (&rest args)
    (let ((value (unwind-protect
                     (apply function link
                            (mapcar #'gemini-companion-link--unpack args))
                   (mapc #'gemini-companion-link--delete args))))
      (when (stringp value)
        (setq value (gemini-companion-link--pack link value)))
      (and (gemini-companion-link--fits-p link value) value))))

(defun gemini-companion-link--greeted (link info)
  "Note that the process of LINK answered hello with INFO."
  (when (eq (gemini-companion-link-state link) 'starting)
    (cancel-timer (gemini-companion-link-timer link))
    (setf (gemini-companion-link-info link) info
          (gemini-companion-link-state link) 'ready)
    (funcall (gemini-companion-link-on-ready link) link)))

;;;; End

(defun gemini-companion-link-close (link)
  "Have the process of LINK stop, without waiting for that.
It rejects what is pending, ends its streams and removes its
discovery file; all that takes is the end of its input."
  (gemini-companion-link--end link gemini-companion-link--stop-seconds)
  (let ((process (gemini-companion-link-process link)))
    (when (process-live-p process)
      ;; Nothing can be sent to one that is suspended.
      (ignore-errors
        (process-send-eof process)))))

(defun gemini-companion-link-retire (link)
  "Have the process of LINK end, as another takes its place.
It rejects nothing and leaves the discovery file."
  (gemini-companion-link-call link 'retire)
  (gemini-companion-link--end link gemini-companion-link--retire-seconds))

(defun gemini-companion-link--end (link seconds)
  "Expect the process of LINK to end within SECONDS, else kill it."
  (cancel-timer (gemini-companion-link-timer link))
  (setf (gemini-companion-link-state link) 'stopping
        (gemini-companion-link-timer link)
        (run-at-time seconds nil
                     #'delete-process (gemini-companion-link-process link))))

(defun gemini-companion-link--fail (link reason)
  "End LINK, whose process did not start, because of REASON."
  (when (eq (gemini-companion-link-state link) 'starting)
    (gemini-companion-link--finish link reason)))

(defun gemini-companion-link--exited (link)
  "End LINK, whose process has exited."
  (let ((process (gemini-companion-link-process link)))
    (pcase (gemini-companion-link-state link)
      ((or 'starting 'ready)
       (gemini-companion-link--finish
        link (if (eq (process-status process) 'signal)
                 (format "It was killed by signal %d"
                         (process-exit-status process))
               (format "It exited with status %d"
                       (process-exit-status process)))))
      ('stopping (gemini-companion-link--finish link nil)))))

(defun gemini-companion-link--finish (link problem)
  "Release all resources of LINK, and report PROBLEM, a string or nil."
  (let* ((process (gemini-companion-link-process link))
         (log (gemini-companion-link-log link))
         (errors (get-buffer-process log))
         (wire (gemini-companion-link-wire link)))
    (setf (gemini-companion-link-state link) 'ended)
    (cancel-timer (gemini-companion-link-timer link))
    (set-process-sentinel process #'ignore)
    (delete-process process)
    (when (and problem errors)
      (gemini-companion-link--read-rest errors))
    (when wire
      (gemini-companion-wire-close wire))
    (when problem
      (gemini-companion-link--remove-folder link))
    (let ((report (and problem (gemini-companion-link--report link problem))))
      (when errors (delete-process errors))
      (kill-buffer log)
      (funcall (gemini-companion-link-on-end link) link report))))

(defun gemini-companion-link--remove-folder (link)
  "Remove the private folder that LINK's process left behind, if any."
  (let ((folder (plist-get (gemini-companion-link-info link) :folder)))
    (when (and (stringp folder) (file-directory-p folder))
      (with-demoted-errors "Removing the server's folder: %S"
        (delete-directory folder t)))))

(defun gemini-companion-link--read-rest (errors)
  "Read what is on its way from ERRORS, for a moment only.
A child of the process may go on writing."
  (let ((reads 10))
    (while (and (< 0 (cl-decf reads))
                (accept-process-output errors 0.02)))))

(defun gemini-companion-link--report (link problem)
  "Return PROBLEM with LINK, what was run and what that said last."
  (let ((said (with-current-buffer (gemini-companion-link-log link)
                (goto-char (point-max))
                (forward-line -12)
                (string-trim (buffer-substring (point) (point-max))))))
    (format "%s.\n\nIt was run as:\n  %s\n\n%s"
            problem
            (mapconcat #'shell-quote-argument
                       (gemini-companion-link-command link) " ")
            (if (string-empty-p said)
                "It said nothing."
              (concat "It said last:\n  "
                      (string-replace "\n" "\n  " said))))))

;;;; Calls

(defun gemini-companion-link--request (link method args &optional done failed)
  "Call METHOD of the process of LINK with ARGS.
DONE is called with its value later, or FAILED with a message.
Return nil if the call could not be sent."
  (gemini-companion-wire-call (gemini-companion-link-wire link)
                              method args done failed))

(defun gemini-companion-link-call (link method &rest args)
  "Call METHOD over LINK with ARGS and do not wait for its answer.
Strings among ARGS may be of any length.  Return non-nil if the
call was sent."
  (when (gemini-companion-link-ready-p link)
    (let ((packed (mapcar (lambda (arg)
                            (if (stringp arg)
                                (gemini-companion-link--pack link arg)
                              arg))
                          args)))
      (and (seq-every-p (lambda (arg) (gemini-companion-link--fits-p link arg))
                        packed)
           (gemini-companion-link--request link method packed)))))

(defun gemini-companion-link-post (link method value)
  "Tell over LINK by METHOD that the state is VALUE now.
While an earlier post of METHOD has no answer, only the latest
VALUE waits, so that a process that does not read never blocks Emacs."
  (when (gemini-companion-link-ready-p link)
    (if (memq method (gemini-companion-link-unanswered link))
        (setf (alist-get method (gemini-companion-link-waiting link))
              (list value))
      (push method (gemini-companion-link-unanswered link))
      (let ((answered (lambda (_)
                        (gemini-companion-link--posted link method))))
        (gemini-companion-link--request
         link method (list (gemini-companion-link--clean-all value))
         answered answered)))))

(defun gemini-companion-link--posted (link method)
  "Send what waits for the answer to METHOD of LINK."
  (let ((next (alist-get method (gemini-companion-link-waiting link))))
    (setf (gemini-companion-link-unanswered link)
          (delq method (gemini-companion-link-unanswered link))
          (alist-get method (gemini-companion-link-waiting link) nil t)
          nil)
    (when next
      (gemini-companion-link-post link method (car next)))))

(provide 'gemini-companion-link)
;;; gemini-companion-link.el ends here
