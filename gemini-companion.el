;;; gemini-companion.el --- Emacs companion of Gemini CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; URL: https://github.com/gemini-companion/gemini-companion
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (epc "0.1.1"))
;; Keywords: tools, convenience, processes
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

;; Gemini CLI, run in a terminal inside or outside of Emacs, finds this Emacs,
;; knows which files are open, where point is and what is selected, and shows
;; each edit that it proposes as an Ediff review here.
;;
;;   M-x gemini-companion-run
;;
;; in a project, or M-x gemini-companion-mode and then `gemini' in any terminal;
;; and type /ide enable there, once.
;;
;; This file wires the others together, and nothing else knows them all:
;; -mode (the mode, which has this file loaded while its server starts),
;; -sharing (what the server is told of the person's work), -diff (proposals
;; and their outcome), -outcome (those not told yet), -list (reviews that
;; wait), -reason (why one was rejected), -auto (edits accepted without review),
;; -stale (reviews that are pointless), -view (how they look), -session (the connected
;; CLIs), -run (starts one here), -hint (what to do for one that does not
;; connect), -terminal (environment of what Emacs starts), -server (the Python
;; process) and -install (the Python packages that it needs).

;;; Code:

(require 'gemini-companion-auto)
(require 'gemini-companion-diff)
(require 'gemini-companion-hint)
(require 'gemini-companion-install)
(require 'gemini-companion-lighter)
(require 'gemini-companion-list)
(require 'gemini-companion-mode)
(require 'gemini-companion-outcome)
(require 'gemini-companion-reason)
(require 'gemini-companion-run)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-sharing)
(require 'gemini-companion-stale)
(require 'gemini-companion-terminal)
(require 'gemini-companion-view)
(require 'gemini-companion-windows)
(require 'seq)

(defcustom gemini-companion-ready-hook nil
  "Hook run when the server is up and Gemini CLI can connect."
  :type 'hook
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

;;;; Wiring

(defun gemini-companion--sessions-update (sessions)
  "Note that SESSIONS are connected now."
  (let ((former (gemini-companion-sessions)))
    (gemini-companion-session-update sessions)
    (cond ((null sessions)
           ;; The next one must not begin with what is old by then.
           (gemini-companion-sharing-withdraw))
          ;; A CLI looks at its folder when it starts, too.
          ((seq-difference sessions former #'gemini-companion-session-same-p)
           (gemini-companion-sharing-look-again))
          (t (gemini-companion-sharing-tell))))
  (gemini-companion-auto-sessions-changed)
  (force-mode-line-update t)
  t)

(defun gemini-companion--warn (message)
  "Tell the person MESSAGE, which comes from the server."
  (display-warning 'gemini-companion message)
  t)

(defun gemini-companion--outcome-told (id)
  "Note that the outcome of the diff ID has left for its CLI."
  (gemini-companion-reason-told id)
  (gemini-companion-outcome-told id)
  t)

;;;; Life

(defun gemini-companion--begin ()
  "Have all rooms serve the server that the mode has started."
  (gemini-companion-diff-start #'gemini-companion-view-show
                               #'gemini-companion-outcome-tell
                               #'gemini-companion-auto-take)
  (gemini-companion-stale-start)
  (gemini-companion-sharing-start)
  (add-hook 'kill-emacs-hook #'gemini-companion--leave))

(defun gemini-companion--leave ()
  "Turn off what was turned on, as Emacs is about to end.
An error must not keep Emacs from that."
  (with-demoted-errors "Ending gemini-companion: %S"
    (gemini-companion--turn-off 'rejected 'now)))

(defun gemini-companion--turn-off (state &optional now)
  "Stop the server and undo what was done for it; diffs move to STATE.
Their views go at once if NOW is non-nil."
  (remove-hook 'kill-emacs-hook #'gemini-companion--leave)
  (remove-hook 'emacs-startup-hook #'gemini-companion-mode--turn-on)
  (gemini-companion-mode-forget)
  (gemini-companion-install-cancel)
  (gemini-companion-run-give-up)
  (gemini-companion-hint-stop)
  (gemini-companion-diff-stop state now)
  (gemini-companion-list-stop)
  (gemini-companion-stale-stop)
  (gemini-companion-reason-stop)
  (gemini-companion-auto-stop)
  (gemini-companion-windows-forget)
  (gemini-companion-outcome-forget)
  (gemini-companion-sharing-stop)
  (gemini-companion-server-stop)
  (gemini-companion-terminal-restore)
  (gemini-companion-session-forget))

(defun gemini-companion--ready (how)
  "Use the server, which can be called from now on.
HOW is `started', `restarted', `resumed' or `recovered'."
  (gemini-companion-terminal-export
   (plist-get (gemini-companion-server-info) :port) (emacs-pid))
  (gemini-companion-outcome-hand-over how)
  (gemini-companion-sharing-begin-anew)
  (when (eq how 'recovered)
    (gemini-companion--say-recovered))
  (gemini-companion-sharing-look-again)
  (pcase how
    ('started (run-hooks 'gemini-companion-ready-hook))
    ('restarted (message "The server of gemini-companion was restarted"))
    ('resumed (message "The server of gemini-companion had died and was \
started again; if a Gemini CLI says that it is disconnected, type /ide enable there")))
  (gemini-companion-run-start)
  (gemini-companion-hint-start #'gemini-companion-sharing-roots)
  (force-mode-line-update t))

(defun gemini-companion--say-recovered ()
  "Tell the person what a server that had died means for the CLIs."
  (when (gemini-companion-sessions)
    (display-warning
     'gemini-companion
     (concat "The server had died and was started again.  "
             (if (gemini-companion-diffs)
                 "Answer the reviews that are open here, in Emacs: their \
terminals do not take an answer any more.  Then type"
               "Type")
             " /ide enable in each Gemini CLI that was connected: it has lost \
the connection and opens no reviews until then.")))
  (gemini-companion-session-update nil))

(defun gemini-companion-restart ()
  "Restart the server; Gemini CLI stays connected, reviews stay open.
After an update of this package, install what the new one needs first."
  (interactive)
  (if (and (gemini-companion-server-ready-p)
           (gemini-companion-install-needed-p))
      (gemini-companion-install-server)
    (gemini-companion-server-restart)))

(defun gemini-companion--ended (reason)
  "Turn the mode off, as there is no server any more, and show REASON."
  (setq gemini-companion-mode nil
        gemini-companion-last-problem reason)
  (gemini-companion--turn-off 'dismissed)
  (force-mode-line-update t)
  (display-warning 'gemini-companion reason :error))

;;;; State

(defun gemini-companion-idle-p ()
  "Return non-nil if the server has the current state of Emacs.
Nothing is scheduled to be sent, and all that was sent is answered."
  (and (gemini-companion-context-idle-p)
       (gemini-companion-server-idle-p)))

;;;; Installation

(defun gemini-companion--offer-installation ()
  "Ask whether to install what the server needs; if so, do it and go on.
Ask once: what was installed before is made anew without a question.
While Emacs starts, all that waits until it has started."
  (cond
   ((and (gemini-companion--nobody-to-ask-p)
         (or noninteractive
             (not (gemini-companion-install-agreed-p))))
    (gemini-companion--ended
     "The Python packages of gemini-companion are not installed.  \
M-x gemini-companion-install-server installs them; then turn on \
`gemini-companion-mode' again."))
   ((null after-init-time)
    (add-hook 'emacs-startup-hook #'gemini-companion-mode--turn-on))
   ((gemini-companion-install-agreed-p)
    (gemini-companion--install))
   ((gemini-companion--installation-wanted-p)
    (gemini-companion--install 'show))
   (t
    (setq gemini-companion-mode nil)
    (gemini-companion--turn-off 'dismissed)
    (message "Nothing installed, Gemini companion is off.  Ask again: \
M-x gemini-companion-mode.  To use a Python of your own: \
gemini-companion-server-command"))))

(defun gemini-companion--nobody-to-ask-p ()
  "Return non-nil if no frame can show a question."
  (or noninteractive
      (and (daemonp)
           (equal "initial_terminal" (terminal-name)))))

(defun gemini-companion--installation-wanted-p ()
  "Ask whether to install what the server needs, and return the answer."
  (condition-case nil
      (y-or-n-p
       (format "Install the Python packages (70 MB) in %s? "
               (abbreviate-file-name gemini-companion-install-directory)))
    (quit nil)))

(defun gemini-companion--install (&optional show)
  "Install what the server needs, without waiting for it.
Display the output if SHOW is non-nil."
  (gemini-companion-install-start #'gemini-companion--installed
                                  #'gemini-companion--not-installed
                                  show)
  (force-mode-line-update t))

;;;###autoload
(defun gemini-companion-install-server ()
  "Install the Python packages of the server, once more if they are there.
The server that runs goes on with the new ones."
  (interactive)
  (cond
   (gemini-companion-server-command
    (user-error "`gemini-companion-server-command' says what runs the server; \
set it to nil to have packages installed"))
   ((gemini-companion-install-beside)
    (user-error "This is a checkout with a `.venv' of its own, which is used")))
  (gemini-companion--install 'show))

(defun gemini-companion--installed ()
  "Use the Python packages that were just installed, if the mode is on."
  (cond ((not gemini-companion-mode)
         (message "The Python packages of gemini-companion are installed.  \
Go on with M-x gemini-companion-mode"))
        ((gemini-companion-server-ready-p)
         (gemini-companion-server-restart))
        ((not (gemini-companion-server-running-p))
         (condition-case problem
             (gemini-companion-mode-start)
           (error
            (gemini-companion--ended (error-message-string problem)))))))

(defun gemini-companion--not-installed (reason)
  "Show the REASON for which nothing was installed.
Turn the mode off unless the server runs nevertheless."
  (if (gemini-companion-server-running-p)
      (display-warning 'gemini-companion reason :error)
    (gemini-companion--ended reason)))

;;;; Gemini CLI here

;;;###autoload
(defun gemini-companion-run (&optional number)
  "Go to the Gemini CLI of this project, in a terminal here; start it first.
It starts in the root of the project, when the server is ready; the
mode is turned on for that.  NUMBER, the prefix argument, goes to
another one of the same project; \\[universal-argument] alone starts one more."
  (interactive "P")
  (let ((place (gemini-companion-run-place number)))
    (unless (gemini-companion-run-visit place)
      (gemini-companion-run-check place)
      (unless gemini-companion-mode
        (gemini-companion-mode 1))
      (when gemini-companion-mode
        (gemini-companion-run-prepare place)
        (when (gemini-companion-server-ready-p)
          (gemini-companion-run-start))))))

(provide 'gemini-companion)
;;; gemini-companion.el ends here
