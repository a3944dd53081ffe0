;;; gemini-companion-outcome.el --- Outcomes on their way to the CLI  -*- lexical-binding: t; -*-

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

;; The outcome of a review is sent to the server, and kept until the server
;; reports that it was written to the CLI: a server may crash before that.  The
;; next one is sent the outcomes that were not written, and the open reviews.

;;; Code:

(require 'gemini-companion-diff)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'seq)

(defconst gemini-companion-outcome--most 50
  "How many outcomes are kept that no CLI may ever take.")

(defvar gemini-companion-outcome--untold nil
  "Diffs whose outcome has not left for the CLI, the last one first.")

(defun gemini-companion-outcome-tell (diff)
  "Tell the server how DIFF ended.
Keep that until it has left for the CLI, as the server may die."
  (setq gemini-companion-outcome--untold
        (seq-take (cons diff gemini-companion-outcome--untold)
                  gemini-companion-outcome--most))
  (gemini-companion-outcome--send diff))

(defun gemini-companion-outcome--send (diff)
  "Send the server, if there is one, the outcome of DIFF."
  (let ((id (gemini-companion-diff-id diff)))
    (if (eq (gemini-companion-diff-state diff) 'accepted)
        (gemini-companion-server-call
         'diff-accepted id (gemini-companion-diff-accepted-text diff))
      (gemini-companion-server-call 'diff-rejected id))))

(defvar gemini-companion-outcome-told-functions nil
  "Functions called with the ID of a diff whose outcome was written.")

(defun gemini-companion-outcome-ready (how)
  "Hand a server that is ready HOW the diffs of the previous one.
And the outcomes that died with that one; one that retires tells
them itself."
  (let ((untold (and (memq how '(recovered resumed))
                     (reverse gemini-companion-outcome--untold))))
    (mapc #'gemini-companion-outcome--adopt
          (append untold (gemini-companion-diffs)))
    (mapc #'gemini-companion-outcome--send untold))
  (when (and (eq how 'recovered) (gemini-companion-sessions))
    (gemini-companion-outcome--warn-recovered)))

(defun gemini-companion-outcome--warn-recovered ()
  "Warn that the connected CLIs have lost their connection."
  (display-warning
   'gemini-companion
   (concat "Server crashed and was restarted.  "
           (if (gemini-companion-diffs)
               "Answer the open reviews in Emacs; their terminals do not take an answer.  Then run"
             "Run")
           " /ide enable in each Gemini CLI that was connected; it opens no reviews until then.")))

(defun gemini-companion-outcome--adopt (diff)
  "Hand DIFF to the server, which did not open it."
  (gemini-companion-server-call
   'adopt-diff (gemini-companion-diff-id diff)
   (plist-get (gemini-companion-diff-session diff) :id)
   (gemini-companion-diff-file-path diff)
   (gemini-companion-outcome--proposal diff)))

(defun gemini-companion-outcome--proposal (diff)
  "Return what the server is to know as the proposal of DIFF.
Of one that has ended it needs that no more."
  (if (buffer-live-p (gemini-companion-diff-proposal-buffer diff))
      (or (gemini-companion-diff-proposed-text diff)
          (gemini-companion-diff-proposal-text diff))
    (or (gemini-companion-diff-accepted-text diff) "")))

(defun gemini-companion-outcome-told (id)
  "Drop the outcome of the diff ID, which was written to its CLI."
  (gemini-companion-outcome--drop id)
  (run-hook-with-args 'gemini-companion-outcome-told-functions id)
  t)

(defun gemini-companion-outcome--drop (id)
  "Keep the outcome of the diff ID no longer."
  (setq gemini-companion-outcome--untold
        (seq-remove (lambda (diff) (eql id (gemini-companion-diff-id diff)))
                    gemini-companion-outcome--untold)))

(defun gemini-companion-outcome-undelivered (id)
  "Report that the accepted text of the diff ID did not reach its CLI."
  (when-let* ((diff (seq-find
                     (lambda (diff) (eql id (gemini-companion-diff-id diff)))
                     gemini-companion-outcome--untold)))
    (gemini-companion-outcome--drop id)
    (gemini-companion-diff-keep diff (gemini-companion-diff-accepted-text diff))
    (display-warning
     'gemini-companion
     (format
      "%s was not written: %s is not connected any more.  \
M-x gemini-companion-last-proposal shows the text that you accepted"
      (abbreviate-file-name (gemini-companion-diff-file-path diff))
      (gemini-companion-session-name (gemini-companion-diff-session diff)))))
  t)

(defun gemini-companion-outcome-open-late (&rest args)
  "Open a diff with ARGS, and hand it to the new server."
  (apply #'gemini-companion-diff-open args)
  (gemini-companion-outcome--adopt (car (last (gemini-companion-diffs)))))

(defun gemini-companion-outcome-close-late (id reason)
  "Close the diff ID for REASON; the new server, which has it too, forgets it."
  (prog1 (gemini-companion-diff-close id reason)
    (gemini-companion-server-call 'drop-diff id)))

(defun gemini-companion-outcome-forget ()
  "Forget the outcomes that nobody took."
  (setq gemini-companion-outcome--untold nil))

(provide 'gemini-companion-outcome)
;;; gemini-companion-outcome.el ends here
