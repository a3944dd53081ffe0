;;; gemini-companion-reason.el --- Reject a proposal and say why  -*- lexical-binding: t; -*-

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

;; The protocol has no field for why a proposal was rejected.  So the reason
;; becomes the next prompt of that Gemini CLI: it is typed there once the CLI
;; has heard of the rejection and its terminal stands still, because before
;; that the CLI still asks its own question about the edit.

;;; Code:

(require 'gemini-companion-diff)
(require 'gemini-companion-send)
(require 'gemini-companion-session)
(require 'seq)
(require 'subr-x)

;;;; Keys

(define-key gemini-companion-review-mode-map (kbd "C-c C-r")
            #'gemini-companion-diff-reject-with-reason)

;;;; State

(defconst gemini-companion-reason--still-seconds 0.5
  "For how long a terminal must not change before it is typed into.")

(defconst gemini-companion-reason--most-seconds 10
  "For how long it is waited until a reason can be typed.")

(defvar gemini-companion-reason--waiting nil
  "The reasons that are to be typed, a list of plists.
Each has the `:id' of the diff, its `:session', the `:text', the
`:timer' that looks after it, the time `:until' which that tries,
`:told' if the CLI has heard of the rejection, and the `:tick' of
the terminal's text with the time `:since' which it has that.")

(defvar gemini-companion-reason--history nil
  "The reasons that were given before.")

;;;; Asking

(defun gemini-companion-reason--read (diff)
  "Return a sentence about DIFF, or nil if DIFF ended meanwhile.
What was typed until then is in the kill ring."
  (let* ((typed "")
         (reason
          (gemini-companion-diff-ask
           diff
           (lambda ()
             (minibuffer-with-setup-hook
                 (lambda ()
                   (add-hook 'minibuffer-exit-hook
                             (lambda ()
                               (setq typed
                                     (minibuffer-contents-no-properties)))
                             nil t))
               (read-string (format "Reject %s and tell Gemini CLI: "
                                    (gemini-companion-diff-name diff))
                            nil 'gemini-companion-reason--history nil t))))))
    (if (and reason (memq diff (gemini-companion-diffs)))
        reason
      (gemini-companion-reason--keep
       (or reason typed) "This review has ended already: %s"
       (gemini-companion-diff-state diff))
      nil)))

(defun gemini-companion-reason--keep (text format &rest args)
  "Put TEXT into the kill ring and say so after FORMAT with ARGS."
  (if (string-blank-p text)
      (apply #'message format args)
    (kill-new text)
    (message "%s; your sentence is in the kill ring"
             (apply #'format format args))))

;;;; Typing

(defun gemini-companion-reason--send (diff text)
  "Type TEXT as the next prompt of the CLI of DIFF, which was rejected."
  (let ((session (gemini-companion-diff-session diff)))
    (if (not (gemini-companion-session-terminal session))
        (gemini-companion-reason--keep
         text "Rejected; %s runs in no terminal of this Emacs"
         (gemini-companion-session-name session))
      (let ((reason (list :id (gemini-companion-diff-id diff)
                          :session session :text text :timer nil
                          :until (+ (float-time)
                                    gemini-companion-reason--most-seconds)
                          :told nil :tick nil :since nil)))
        (plist-put reason :timer
                   (run-at-time 0.1 0.1 #'gemini-companion-reason--look
                                reason))
        (push reason gemini-companion-reason--waiting)))))

(defun gemini-companion-reason-idle-p ()
  "Return non-nil if no reason waits to be typed."
  (null gemini-companion-reason--waiting))

(defun gemini-companion-reason-start ()
  "Follow which outcomes were written."
  (add-hook 'gemini-companion-outcome-told-functions
            #'gemini-companion-reason--told))

(defun gemini-companion-reason--told (id)
  "Record that the rejection of the diff ID was written to its CLI."
  (when-let* ((reason (seq-find (lambda (reason)
                                  (eql id (plist-get reason :id)))
                                gemini-companion-reason--waiting)))
    (plist-put reason :told t)))

(defun gemini-companion-reason--look (reason)
  "Type REASON if its terminal is ready; give up if that takes too long."
  (let ((terminal (gemini-companion-session-terminal
                   (plist-get reason :session)))
        (now (float-time)))
    (cond ((or (not terminal) (< (plist-get reason :until) now))
           (gemini-companion-reason--drop reason)
           (gemini-companion-reason--keep
            (plist-get reason :text)
            "Rejected; %s is not ready for a prompt"
            (gemini-companion-session-name (plist-get reason :session))))
          ((gemini-companion-reason--still-p reason terminal now)
           (gemini-companion-reason--drop reason)
           (gemini-companion-reason--type reason)))))

(defun gemini-companion-reason--still-p (reason terminal now)
  "Return non-nil if at the time NOW TERMINAL is ready for REASON.
The CLI has heard of the rejection, and has long changed nothing."
  (let ((tick (buffer-chars-modified-tick terminal)))
    (unless (and (plist-get reason :told)
                 (eql tick (plist-get reason :tick)))
      (plist-put reason :tick tick)
      (plist-put reason :since now))
    (and (plist-get reason :told)
         (<= gemini-companion-reason--still-seconds
             (- now (plist-get reason :since))))))

(defun gemini-companion-reason--type (reason)
  "Type REASON and press Enter, or keep it if that cannot be done."
  (let ((text (plist-get reason :text))
        (session (plist-get reason :session)))
    (unless (gemini-companion-send-type session text t)
      (gemini-companion-reason--keep
       text "Rejected; the terminal of %s cannot be typed into now"
       (gemini-companion-session-name session)))))

(defun gemini-companion-reason--drop (reason)
  "Look after REASON no more."
  (cancel-timer (plist-get reason :timer))
  (setq gemini-companion-reason--waiting
        (delq reason gemini-companion-reason--waiting)))

(defun gemini-companion-reason-stop ()
  "Type nothing any more; put what waits into the kill ring."
  (remove-hook 'gemini-companion-outcome-told-functions
               #'gemini-companion-reason--told)
  (dolist (reason (copy-sequence gemini-companion-reason--waiting))
    (gemini-companion-reason--drop reason)
    (gemini-companion-reason--keep (plist-get reason :text)
                                   "Gemini CLI was not told why")))

;;;; Commands

(defun gemini-companion-diff-reject-with-reason (&optional diff)
  "Reject DIFF and tell Gemini CLI why, in a sentence that is asked for.
The sentence is typed and sent as the next prompt of that CLI if
it runs in a terminal of this Emacs, else it goes to the kill
ring.  Without DIFF, take the review of the current buffer, else
the one that is shown."
  (interactive)
  (let ((diff (gemini-companion-diff-unsettled diff)))
    (when-let* ((reason (gemini-companion-reason--read diff)))
      (when (string-blank-p reason)
        (user-error "No reason was given; %s rejects without one"
                    (substitute-command-keys
                     "\\<gemini-companion-review-mode-map>\
\\[gemini-companion-diff-reject]")))
      (gemini-companion-diff-reject diff)
      (gemini-companion-reason--send diff reason))))

(provide 'gemini-companion-reason)
;;; gemini-companion-reason.el ends here
