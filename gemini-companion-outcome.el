;;; gemini-companion-outcome.el --- Outcomes on their way to the CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The outcome of a review is sent to the server, and kept until the server
;; reports that it was written to the CLI: a server may crash before that.  The
;; next one is sent the outcomes that were not written, and the open reviews that
;; their CLIs know of.

;;; Code:

(require 'gemini-companion-diff)
(require 'gemini-companion-server)
(require 'gemini-companion-session)

(defvar gemini-companion-outcome--unwritten nil
  "Diffs whose outcome was not written to the CLI, the last one first.")

(defun gemini-companion-outcome-send (diff)
  "Send the outcome of DIFF to the server.
Keep it until it is written to the CLI, as the server may crash."
  ;; After a quit here, the user answers again.
  (gemini-companion-outcome--call diff)
  (push diff gemini-companion-outcome--unwritten))

(defun gemini-companion-outcome--call (diff)
  "Send the outcome of DIFF to the server, if there is one."
  (let ((id (gemini-companion-diff-id diff)))
    (if (eq (gemini-companion-diff-state diff) 'accepted)
        (gemini-companion-server-call
         'diff-accepted id (gemini-companion-diff-accepted-text diff))
      (gemini-companion-server-call 'diff-rejected id))))

(defun gemini-companion-outcome-ready (how)
  "Hand over the diffs to a new server, which became ready HOW.
It gets those whose outcome was not written, with the outcome, and the
open ones.  A CLI without an answer that a review is open asks in
its terminal."
  ;; A text may be too large to send, which must not affect other reviews.
  (dolist (diff (reverse gemini-companion-outcome--unwritten))
    (with-demoted-errors "Sending an outcome: %S"
      (gemini-companion-outcome--adopt diff)
      (gemini-companion-outcome--call diff)))
  (dolist (diff (gemini-companion-diffs))
    (with-demoted-errors "Handing over a review: %S"
      (if (gemini-companion-diff-acknowledged diff)
          (gemini-companion-outcome--adopt diff)
        (gemini-companion-diff-close (gemini-companion-diff-id diff)
                                     'disconnected))))
  (when (and (eq how 'recovered) (gemini-companion-sessions))
    (display-warning
     'gemini-companion
     "Server crashed and was restarted.  Answer open reviews in Emacs, as \
their terminals do not take an answer.  Then run /ide enable in each CLI that \
was connected; it opens no reviews until then.")))

(defun gemini-companion-outcome--adopt (diff)
  "Make the server adopt DIFF, which a previous server has opened."
  (gemini-companion-server-call
   'adopt-diff (gemini-companion-diff-id diff)
   (plist-get (gemini-companion-diff-session diff) :id)
   (gemini-companion-diff-file-path diff)
   (gemini-companion-diff-proposed-text diff)
   (plist-get (gemini-companion-diff-session diff) :place)))

(defun gemini-companion-outcome-opened (id)
  "Record that the CLI has the answer that the diff ID is open."
  (when-let* ((diff (gemini-companion-diff-of-id id)))
    (setf (gemini-companion-diff-acknowledged diff) t))
  t)

(defun gemini-companion-outcome-written (id)
  "Drop the outcome of the diff ID, which was written to its CLI."
  (setq gemini-companion-outcome--unwritten
        (cl-remove id gemini-companion-outcome--unwritten
                   :key #'gemini-companion-diff-id))
  t)

(defun gemini-companion-outcome-undelivered (id)
  "Drop the outcome of the diff ID, which cannot reach its CLI any more.
Report that if an accepted text is lost."
  (when-let* ((diff (cl-find id gemini-companion-outcome--unwritten
                             :key #'gemini-companion-diff-id)))
    (when (eq (gemini-companion-diff-state diff) 'accepted)
      (gemini-companion-diff-keep
       diff (gemini-companion-diff-accepted-text diff))
      (display-warning
       'gemini-companion
       (format
        "%s was not written: %s is no longer connected.  \
M-x gemini-companion-last-proposal shows the text that you accepted"
        (gemini-companion-diff-name diff)
        (gemini-companion-session-name
         (gemini-companion-diff-session diff))))))
  (gemini-companion-outcome-written id))

(defun gemini-companion-outcome-stop ()
  "Drop all outcomes."
  (setq gemini-companion-outcome--unwritten nil))

(provide 'gemini-companion-outcome)
;;; gemini-companion-outcome.el ends here
