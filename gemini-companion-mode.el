;;; gemini-companion-mode.el --- The mode, and starting its server  -*- lexical-binding: t; -*-

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

;; The mode, and what has to be there when its command returns: menu, mode
;; line and a server that starts.  All else is loaded while that does, with
;; room for keys in between, since to load it all takes Emacs longer than a
;; person should have to wait.  gemini-companion.el then has it all serve.

;;; Code:

(require 'gemini-companion-install)
(require 'gemini-companion-menu)
(require 'gemini-companion-server)

(autoload 'gemini-companion--begin "gemini-companion")
(autoload 'gemini-companion--ended "gemini-companion")
(autoload 'gemini-companion--offer-installation "gemini-companion")
(autoload 'gemini-companion--ready "gemini-companion")
(autoload 'gemini-companion--turn-off "gemini-companion")
(autoload 'gemini-companion-lighter "gemini-companion-lighter")
(autoload 'gemini-companion-sharing-roots "gemini-companion-sharing")
(autoload 'gemini-companion-sharing-set-directory "gemini-companion-sharing")
(autoload 'gemini-companion-view-offered-p "gemini-companion-view")

(defgroup gemini-companion nil
  "Emacs companion of Gemini CLI."
  :group 'tools
  :prefix "gemini-companion-")

;;;; State

(defvar gemini-companion-last-problem nil
  "Why the server did not start or ended last, a string, or nil.")

(defvar gemini-companion-mode--directory nil
  "Folder in which the mode was turned on.")

(defvar gemini-companion-mode--timer nil
  "Timer that loads what is not loaded yet, or nil if all that serves.")

;;;; Wiring

;; These are called when all is loaded.

(defconst gemini-companion-mode--methods
  '((open-diff . gemini-companion-diff-open)
    (close-diff . gemini-companion-diff-close)
    (sessions-update . gemini-companion--sessions-update)
    (outcome-told . gemini-companion--outcome-told)
    (outcome-undelivered . gemini-companion-outcome-undelivered)
    (warn . gemini-companion--warn))
  "What the server may call, an alist of (NAME . FUNCTION).")

(defconst gemini-companion-mode--retired-methods
  '((open-diff . gemini-companion-outcome-open-late)
    (close-diff . gemini-companion-outcome-close-late)
    (outcome-told . gemini-companion--outcome-told)
    (outcome-undelivered . gemini-companion-outcome-undelivered))
  "What a process of the server may call that another one has replaced.")

;;;; Mode

;;;###autoload
(define-minor-mode gemini-companion-mode
  "Let Gemini CLI see what you work on and review its edits here.
Run `gemini' in a project that is open in this Emacs, and type
/ide enable there, once.  The mode line shows Gemini, and the
number of CLIs that are connected; a click opens a menu.  If one
does not connect, \\[gemini-companion-status] says why.

Gemini CLI is told the files that you focused last, the place of
point and the selected text.  Its edits wait until you pause, and
then open for your review.

\\<gemini-companion-review-mode-map>\
In a review \\[gemini-companion-diff-accept] accepts the proposal as you left it, and
\\[gemini-companion-diff-reject] rejects it."
  :global t
  :package-version '(gemini-companion . "0.1.0")
  :lighter (:eval (gemini-companion-mode--lighter))
  :keymap (let ((map (make-sparse-keymap)))
            (define-key map [menu-bar gemini]
              (cons "Gemini" gemini-companion-menu-map))
            map)
  (if gemini-companion-mode
      (gemini-companion-mode--turn-on)
    (gemini-companion--turn-off 'rejected)))

(defun gemini-companion-mode--lighter ()
  "Return the construct for the mode line, simple until all is loaded."
  (if (featurep 'gemini-companion)
      (gemini-companion-lighter)
    " Gemini..."))

(defvar gemini-companion-mode--desktop-restored nil
  "Non-nil once a desktop has turned the mode on, or tried to.")

;; A desktop names the mode with each of its buffers.
(add-to-list 'desktop-minor-mode-handlers
             '(gemini-companion-mode . gemini-companion-mode--desktop-restore))

(defun gemini-companion-mode--desktop-restore (_locals)
  "Turn the mode on once, as it was in the desktop that is being read.
Not if it had to ask: that is for a moment when somebody wants it."
  (unless (or gemini-companion-mode--desktop-restored
              (and (gemini-companion-install-needed-p)
                   (not (gemini-companion-install-agreed-p))))
    (setq gemini-companion-mode--desktop-restored t)
    (with-demoted-errors "gemini-companion-mode: %S"
      (gemini-companion-mode))))

;;;; Start

(defun gemini-companion-mode--turn-on ()
  "Start the server and all that serves it, unless that was done."
  (unless (or (gemini-companion-server-running-p)
              (gemini-companion-install-running-p))
    (setq gemini-companion-last-problem nil
          gemini-companion-mode--directory default-directory)
    (if (gemini-companion-install-needed-p)
        (gemini-companion--offer-installation)
      (gemini-companion-mode-start))))

(defun gemini-companion-mode-start ()
  "Start the server and all that serves it."
  (condition-case problem
      (gemini-companion-server-start
       :command #'gemini-companion-install-command
       :roots #'gemini-companion-mode--roots
       :offer-tools #'gemini-companion-view-offered-p
       :methods gemini-companion-mode--methods
       :retired-methods gemini-companion-mode--retired-methods
       :on-ready #'gemini-companion-mode--ready
       :on-end #'gemini-companion--ended)
    (error
     (setq gemini-companion-mode nil
           gemini-companion-last-problem (error-message-string problem))
     (signal (car problem) (cdr problem))))
  (if (gemini-companion-mode--patient-p)
      (gemini-companion-mode--load '(gemini-companion-epc gemini-companion))
    (gemini-companion--begin)))

(defun gemini-companion-mode--patient-p ()
  "Return non-nil if something is to be loaded, and nobody needs it yet.
The init file does, and so may functions that the person has in the
hook of the mode."
  (and after-init-time
       (null gemini-companion-mode-hook)
       (not (featurep 'gemini-companion))))

(defun gemini-companion-mode--load (rooms)
  "Load ROOMS, features, one at a time when Emacs is free; then begin."
  (setq gemini-companion-mode--timer
        (run-at-time 0 nil
                     (lambda ()
                       (cond ((input-pending-p)
                              (gemini-companion-mode--load rooms))
                             (rooms
                              (require (car rooms))
                              (gemini-companion-mode--load (cdr rooms)))
                             (t
                              (gemini-companion-mode--begin)))))))

(defun gemini-companion-mode--begin ()
  "Have all serve that is not loaded yet, unless it does."
  (when gemini-companion-mode--timer
    (gemini-companion-mode--cancel)
    (gemini-companion--begin)))

(defun gemini-companion-mode--cancel ()
  "Load nothing any more."
  (when gemini-companion-mode--timer
    (cancel-timer gemini-companion-mode--timer)
    (setq gemini-companion-mode--timer nil)))

(defun gemini-companion-mode--roots ()
  "Return the roots that the server begins with."
  (gemini-companion-sharing-set-directory gemini-companion-mode--directory)
  (gemini-companion-sharing-roots))

(defun gemini-companion-mode--ready (how)
  "Use the server, which can be called from now on, and is ready HOW."
  (gemini-companion-mode--begin)
  (gemini-companion--ready how))

(defun gemini-companion-mode-forget ()
  "Forget that the mode was turned on."
  (gemini-companion-mode--cancel)
  (setq gemini-companion-mode--directory nil))

(provide 'gemini-companion-mode)
;;; gemini-companion-mode.el ends here
