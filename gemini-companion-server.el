;;; gemini-companion-server.el --- The Python server: start, keep, stop  -*- lexical-binding: t; -*-

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

;; The one Python server of this Emacs.  It is started, restarted by request
;; without Gemini CLI noticing, started again when it dies, and stopped.  A
;; new server takes the port and token of the one before, so that a connected
;; CLI finds it where it was.  Each server is a link of its own
;; (gemini-companion-link.el).  What is said to it is not known here.

;;; Code:

(require 'gemini-companion-link)

;;;; Customization

(defcustom gemini-companion-server-command nil
  "Program and arguments that run the Python server, exactly as given.
Nil means a Python with packages that are installed for it, after a
question, in `gemini-companion-install-directory'.  Set it to use a
Python of your own that has the packages epc, sexpdata, mcp,
hypercorn and psutil, for example
  (\"/path/to/venv/bin/python\" \"-m\" \"gemini_companion_epc\")
and nothing is ever installed.
Takes effect when the server starts next."
  :type '(choice (const :tag "Packages installed on request" nil)
                 (repeat :tag "Program and arguments" string))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

(defcustom gemini-companion-log-file
  (locate-user-emacs-file "gemini-companion/server.log")
  "File in which the server logs events, or nil for none.
It holds one line an event, with the sizes of texts but not the
texts, and never the token.  It is private, and renamed when it
has grown to 1 MB; three old ones are kept.  Takes effect when
the server starts next; see also `gemini-companion-log-level'."
  :type '(choice (const :tag "None" nil) file)
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

(defcustom gemini-companion-log-level 'info
  "Which events `gemini-companion-log-file' gets, each level more.
`error' what failed in the server; `warning' what the person was
told, and what was refused as malformed; `info' connections and
reviews; `debug' each message, both ways.  Takes effect when the
server starts next."
  :type '(choice (const :tag "Failures of the server" error)
                 (const :tag "Warnings" warning)
                 (const :tag "Connections and reviews" info)
                 (const :tag "Each message" debug))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

(defcustom gemini-companion-is-trusted nil
  "What Gemini CLI is told of whether it may trust its folder.
Nil, the default, tells nothing, and Gemini CLI decides by itself.
Anything else is dangerous: it overrides that decision, for each
folder that is open in this Emacs, and with `trusted' Gemini CLI
runs what the project brings along, such as its settings, commands
and servers.  Where the two differ, Gemini CLI stops at every start
until the person presses r to restart it.  Takes effect when the
server starts next."
  :type '(choice (const :tag "Gemini CLI decides" nil)
                 (const :tag "Trusted: dangerous" trusted)
                 (const :tag "Not trusted" untrusted))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

;;;; State

(defvar gemini-companion-server-python-function #'ignore
  "Function that returns the Python with all that the server needs, or nil.
It counts unless `gemini-companion-server-command' is set.")

(defvar gemini-companion-server-reviews-function #'always
  "Function that tells whether a CLI that connects is offered reviews.")

(defconst gemini-companion-server-version "0.1.0"
  "Version that both ends of the wire must have.")

(defconst gemini-companion-server-directory
  (file-name-directory (or load-file-name
                           (bound-and-true-p byte-compile-current-file)
                           buffer-file-name))
  "Folder of this package, which holds the Python part in `python'.")

(defconst gemini-companion-server--delays '(0 1 2 4 8)
  "Seconds before each try to start a server again that has died.
The first try is at once, however many of them are left.")

(defconst gemini-companion-server--unnoticed-seconds 0.9
  "A server that is back by then was not missed.
Gemini CLI looks for it after one second, and after 1.5 more, but
opens no reviews any more if it finds nothing the first time.")

(defconst gemini-companion-server--healthy-seconds 60
  "A server that dies after so long has all tries again.")

(defconst gemini-companion-server--rest-seconds 2
  "How long a new server is kept before another takes its place.
Gemini CLI re-opens its stream after one second, and only then
gets what waits for it.")

(defvar gemini-companion-server--handed-over 0
  "When the link in use took the place of another, in seconds since 1970.")

(defvar gemini-companion-server--client nil
  "What `gemini-companion-server-start' was given, a plist, or nil.")

(defvar gemini-companion-server--link nil
  "The link in use, ready or at its first start, or nil.")

(defvar gemini-companion-server--next nil
  "The link that will take the place of the one in use, or nil.")

(defvar gemini-companion-server--former nil
  "The links that have made way and have not ended yet.")

(defvar gemini-companion-server--kept nil
  "Port and token that the next server takes over, a plist, or nil.")

(defvar gemini-companion-server--discovery nil
  "Name of the discovery file, or nil.")

(defvar gemini-companion-server--died 0
  "When the link in use died last, in seconds since 1970.")

(defvar gemini-companion-server--since 0
  "When the link in use became ready, in seconds since 1970.")

(defvar gemini-companion-server--delays-left nil
  "Seconds before the tries that are left to start a dead server again.")

(defvar gemini-companion-server--timer nil
  "Timer of the next try to start a dead server again, or nil.")

;;;; Command line

(defun gemini-companion-server--argv ()
  "Return the command for the server, a list of strings, or nil."
  (or gemini-companion-server-command
      (when-let* ((python (funcall gemini-companion-server-python-function)))
        (list python "-m" "gemini_companion_epc"))))

(defun gemini-companion-server--check (command)
  "Signal an error if COMMAND is nil or its program is not there."
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
both ends have one version, and no other folder shadows a module."
  (let* ((process-environment
          (copy-sequence (default-value 'process-environment)))
         (python (expand-file-name "python" gemini-companion-server-directory))
         ;; What the person has set is for a Python of the person's.
         (inherited (and gemini-companion-server-command
                         (getenv "PYTHONPATH"))))
    (unless gemini-companion-server-command
      (setenv "PYTHONHOME" nil)
      (setenv "PYTHONPATH" nil))
    (when (file-directory-p python)
      (setenv "PYTHONPATH" (if (member inherited '(nil ""))
                               python
                             (concat python path-separator inherited))))
    (setenv "PYTHONSAFEPATH" "1")
    (setenv "PYTHONUTF8" "1")
    process-environment))

;;;; Life

(defun gemini-companion-server-start
    (roots methods former-methods on-ready on-end)
  "Start the server, without waiting for it.
ROOTS is a function that returns the roots to begin with; METHODS
an alist of (NAME . FUNCTION), what the server may call, and
FORMER-METHODS what it may while another takes its place.  ON-READY
is called when it can be called: with `started', with `restarted'
after `gemini-companion-server-restart', with `resumed' after it
had died and no CLI has missed it, or else with `recovered'.
ON-END is called with a string when it could not start or died too
often."
  (setq gemini-companion-server--client
        (list :roots roots :methods methods :former-methods former-methods
              :ready on-ready :end on-end)
        gemini-companion-server--kept nil
        gemini-companion-server--delays-left
        gemini-companion-server--delays)
  (condition-case problem
      (setq gemini-companion-server--link
            (gemini-companion-server--launch 'started))
    (error
     (setq gemini-companion-server--client nil)
     (signal (car problem) (cdr problem)))))

(defun gemini-companion-server-restart ()
  "Have a new server take the place of the present one.
Gemini CLI stays connected, and open reviews stay open."
  (unless (gemini-companion-server-ready-p)
    (user-error "The server is not running yet"))
  (unless (or gemini-companion-server--next gemini-companion-server--timer)
    (let ((rest (- (+ gemini-companion-server--handed-over
                      gemini-companion-server--rest-seconds)
                   (float-time))))
      (if (< 0 rest)
          (setq gemini-companion-server--timer
                (run-at-time rest nil #'gemini-companion-server--replace))
        (gemini-companion-server--replace)))))

(defun gemini-companion-server--replace ()
  "Start a server in place of the present one."
  (setq gemini-companion-server--timer nil
        gemini-companion-server--next
        (gemini-companion-server--launch 'restarted)))

(defun gemini-companion-server-stop ()
  "Stop the server, if there is one, without waiting for its end."
  (let ((links (delq nil (append (list gemini-companion-server--link
                                       gemini-companion-server--next)
                                 gemini-companion-server--former))))
    (when gemini-companion-server--timer
      (cancel-timer gemini-companion-server--timer))
    (unless (gemini-companion-server-ready-p)
      (gemini-companion-server--remove-discovery))
    (gemini-companion-server--forget)
    (mapc #'gemini-companion-link-close links)))

(defun gemini-companion-server--remove-discovery ()
  "Remove the discovery file that a dead server left, if there is one."
  (when gemini-companion-server--discovery
    (ignore-error file-error
      (delete-file gemini-companion-server--discovery))))

(defun gemini-companion-server--forget ()
  "Forget that there was a server."
  (setq gemini-companion-server--client nil
        gemini-companion-server--link nil
        gemini-companion-server--next nil
        gemini-companion-server--former nil
        gemini-companion-server--kept nil
        gemini-companion-server--discovery nil
        gemini-companion-server--timer nil))

(defun gemini-companion-server--launch (how)
  "Start a server, which will be ready HOW; return its link."
  (let ((command (gemini-companion-server--argv)))
    (gemini-companion-server--check command)
    (gemini-companion-link-open
     :command command
     :environment (gemini-companion-server--environment)
     ;; Before Python 3.11 the current folder is searched for modules.
     :directory (let ((python (expand-file-name
                               "python/" gemini-companion-server-directory)))
                  (if (file-directory-p python) python "/"))
     :version gemini-companion-server-version
     :keep #'gemini-companion-server--keep
     :methods (mapcar #'gemini-companion-server--method
                      (gemini-companion-server--of :methods))
     :on-ready (lambda (link) (gemini-companion-server--ready link how))
     :on-end (lambda (link report)
               (gemini-companion-server--ended link report how)))))

(defun gemini-companion-server--log ()
  "Return what the server is to know of its log, a plist."
  (when-let* ((file gemini-companion-log-file)
              ;; The server can write to this machine only.
              ((not (file-remote-p (expand-file-name file)))))
    (list :logFile (expand-file-name file)
          :logLevel gemini-companion-log-level)))

(defun gemini-companion-server--keep ()
  "Return what a new server is told at first, a plist."
  ;; The first look for projects takes Emacs 45 ms.
  (append (list :roots (vconcat (funcall (gemini-companion-server--of :roots))))
          (gemini-companion-server--log)
          (unless (funcall gemini-companion-server-reviews-function)
            '(:offerTools :json-false))
          (pcase gemini-companion-is-trusted
            ('trusted '(:isTrusted t))
            ('untrusted '(:isTrusted :json-false)))
          gemini-companion-server--kept))

(defun gemini-companion-server--of (key)
  "Return what `gemini-companion-server-start' was given as KEY."
  (plist-get gemini-companion-server--client key))

(defun gemini-companion-server--method (method)
  "Return METHOD, a (NAME . FUNCTION), for a link."
  (pcase-let ((`(,name . ,function) method))
    (cons name
          (lambda (link &rest args)
            (apply (if (memq link (list gemini-companion-server--link
                                        gemini-companion-server--next))
                       function
                     (alist-get name
                                (gemini-companion-server--of :former-methods)
                                #'ignore))
                   args)))))

(defun gemini-companion-server--ready (link how)
  "Use LINK from now on, which became ready HOW, in place of the one before."
  (let* ((former gemini-companion-server--link)
         (info (gemini-companion-link-info link))
         ;; The one before may have died while this one started.
         (how (cond ((or former (eq how 'started)) how)
                    ((< (- (float-time) gemini-companion-server--died)
                        gemini-companion-server--unnoticed-seconds)
                     'resumed)
                    (t 'recovered))))
    (setq gemini-companion-server--link link
          gemini-companion-server--next nil
          gemini-companion-server--since (float-time)
          gemini-companion-server--handed-over (if (eq how 'started)
                                                   0
                                                 (float-time))
          gemini-companion-server--discovery (plist-get info :discovery)
          gemini-companion-server--kept
          (list :port (plist-get info :port) :token (plist-get info :token)))
    (funcall (gemini-companion-server--of :ready) how)
    (when (and former (not (eq former link)))
      (push former gemini-companion-server--former)
      (gemini-companion-link-retire former))))

(defun gemini-companion-server--ended (link report how)
  "Note that LINK, which was ready or to be so HOW, has ended.
REPORT says why, or is nil if that was wanted."
  (setq gemini-companion-server--former
        (delq link gemini-companion-server--former))
  (cond ((or (null report) (null gemini-companion-server--client)))
        ((eq link gemini-companion-server--next)
         (setq gemini-companion-server--next nil)
         (if (eq how 'restarted)
             (display-warning 'gemini-companion
                              (concat "No new server started; the one before goes on.  " report))
           (gemini-companion-server--recover report)))
        ((not (eq link gemini-companion-server--link)))
        (gemini-companion-server--kept
         (setq gemini-companion-server--link nil
               gemini-companion-server--died (float-time))
         (when (< gemini-companion-server--healthy-seconds
                  (- (float-time) gemini-companion-server--since))
           (setq gemini-companion-server--delays-left
                 gemini-companion-server--delays))
         (unless gemini-companion-server--next
           (gemini-companion-server--recover report 'now)))
        (t (gemini-companion-server--give-up report))))

(defun gemini-companion-server--recover (report &optional now)
  "Start a server again in place of one that died, or give up with REPORT.
Do it at once if NOW is non-nil."
  (let ((delay (pop gemini-companion-server--delays-left)))
    (when gemini-companion-server--timer
      (cancel-timer gemini-companion-server--timer))
    (if (null delay)
        (gemini-companion-server--give-up report)
      (setq gemini-companion-server--timer
            (run-at-time (if now 0 delay) nil
                         #'gemini-companion-server--try report)))))

(defun gemini-companion-server--try (report)
  "Try to start a server in place of one that ended with REPORT."
  (setq gemini-companion-server--timer nil)
  (condition-case problem
      (setq gemini-companion-server--next
            (gemini-companion-server--launch 'recovered))
    (error
     (gemini-companion-server--recover
      (concat (error-message-string problem) "\n\n" report)))))

(defun gemini-companion-server--give-up (report)
  "Tell the client by REPORT that there is no server any more."
  (let ((tell (gemini-companion-server--of :end)))
    (gemini-companion-server--remove-discovery)
    (gemini-companion-server--forget)
    (funcall tell (format "The server of gemini-companion does not run.  %s

If the lines above name no cure: run this command in a terminal, or
%s.
Then turn on `gemini-companion-mode' again."
                          report
                          (if gemini-companion-server-command
                              "customize \
`gemini-companion-server-command' to a Python (3.10 or later)
that has the packages epc, sexpdata, mcp, hypercorn and psutil"
                            "install its packages anew: \
M-x gemini-companion-install-server")))))

;;;; Calls

(defun gemini-companion-server-ready-p ()
  "Return non-nil if the server can be called."
  (and gemini-companion-server--link
       (gemini-companion-link-ready-p gemini-companion-server--link)))

(defun gemini-companion-server-idle-p ()
  "Return non-nil if the server has answered each post of a state."
  (and (gemini-companion-server-ready-p)
       (null (gemini-companion-link-unanswered
              gemini-companion-server--link))))

(defun gemini-companion-server-running-p ()
  "Return non-nil if there is a server, maybe not ready yet."
  (and gemini-companion-server--client t))

(defun gemini-companion-server-info ()
  "Return what the server said of itself, or nil.
A plist of `:version', `:port', `:token' and `:discovery', the
name of the discovery file."
  (and (gemini-companion-server-ready-p)
       (gemini-companion-link-info gemini-companion-server--link)))

(defun gemini-companion-server-pid ()
  "Return the number of the server's process, or nil."
  (and (gemini-companion-server-ready-p)
       (process-id (gemini-companion-link-process
                    gemini-companion-server--link))))

(defun gemini-companion-server-since ()
  "Return when the server became ready, in seconds since 1970, or nil."
  (and (gemini-companion-server-ready-p)
       gemini-companion-server--since))

(defun gemini-companion-server-program ()
  "Return the command of the server, which may not have been started.
Return nil if it needs what is not installed."
  (if gemini-companion-server--link
      (gemini-companion-link-command gemini-companion-server--link)
    (gemini-companion-server--argv)))

(defun gemini-companion-server-call (method &rest args)
  "Call METHOD of the server with ARGS and do not wait for its answer.
Return non-nil if the call was sent."
  (and (gemini-companion-server-ready-p)
       (apply #'gemini-companion-link-call gemini-companion-server--link
              method args)))

(defun gemini-companion-server-post (method value)
  "Tell the server by METHOD that the state is VALUE now.
If it does not read, only the latest VALUE waits."
  (when (gemini-companion-server-ready-p)
    (gemini-companion-link-post gemini-companion-server--link method value)))

(provide 'gemini-companion-server)
;;; gemini-companion-server.el ends here
