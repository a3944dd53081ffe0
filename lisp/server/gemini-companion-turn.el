;;; gemini-companion-turn.el --- Turns of the CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A turn is a prompt of a CLI and all that follows it, until the CLI is ready again.
;; This file stores the last turn of each session, has all functions that modify a
;; turn, and assigns each new edit to a turn.  gemini-companion-state.el decides when a
;; turn begins and ends.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-part)
(require 'gemini-companion-session)
(require 'gemini-companion-text)

;;;; State

(cl-defstruct (gemini-companion-turn
               (:noinline t)
               (:constructor gemini-companion-turn-make)
               (:copier nil))
  "A prompt of a CLI and what follows it.
PROMPT is the first line of the prompt, or nil if that is unknown.
BEGAN and ENDED are times in seconds; ENDED is nil until it has ended."
  (prompt nil) (began (float-time)) (ended nil)
  (reported nil :documentation "Non-nil if the CLI reported the prompt.")
  (cut nil :documentation "Non-nil if it has ended, but may continue."))

(defvar gemini-companion-turn--last nil
  "Alist of (SESSION . TURN): the last known turn of each session.")

(defvar gemini-companion-turn-addition-function #'ignore
  "Function that returns a text for the model to add to a prompt, or nil.
It is called with a session whose CLI reports a prompt by its hook, and nil;
and once the CLI has read the text, with the session and t.  In place of the
session, a CLI that is not connected has a list of the IDs of its processes.")

(defvar gemini-companion-turn-addition-hook nil
  "Hook run when the addition to the next prompt of a CLI has changed.")

(defvar gemini-companion-turn-arrival-functions nil
  "Functions called with a session of which an edit arrives.
They begin the turn of the edit if that is to begin now.")

;;;; Turns

(defun gemini-companion-session-turn (session)
  "Return the current or last turn of SESSION, a `gemini-companion-turn', or nil."
  (declare (gv-setter (lambda (turn)
                        `(setf (alist-get ,session
                                          gemini-companion-turn--last nil nil
                                          #'gemini-companion-session-same-p)
                               ,turn))))
  (alist-get session gemini-companion-turn--last nil nil
             #'gemini-companion-session-same-p))

(defun gemini-companion-turn-begin (session prompt reported)
  "Begin a turn of SESSION.
PROMPT is the first line of its prompt, or nil.  REPORTED is non-nil if the CLI
reported the prompt."
  (setf (gemini-companion-session-turn session)
        (gemini-companion-turn-make :prompt prompt :reported (and reported t))))

(defun gemini-companion-turn-of-arrival (session previous)
  "Return the turn of an edit of SESSION that arrives now.
PREVIOUS is the turn of the edit just before, or nil.  For a CLI that reports no
turns, return PREVIOUS, or a new turn if PREVIOUS is nil."
  (run-hook-wrapped 'gemini-companion-turn-arrival-functions
                    #'gemini-companion-text-call session)
  (or (gemini-companion-session-turn session)
      previous
      (gemini-companion-turn-make)))

(defun gemini-companion-turn-report (session prompt)
  "Record that the CLI reported PROMPT for the current turn of SESSION."
  (let ((turn (gemini-companion-session-turn session)))
    (setf (gemini-companion-turn-prompt turn) prompt
          (gemini-companion-turn-reported turn) t)))

(defun gemini-companion-turn-end (session time &optional cut)
  "End the current turn of SESSION, if any, at TIME, in seconds.
CUT is non-nil if the CLI may continue the turn: it has disconnected, or has
not reported the end."
  (let ((turn (gemini-companion-session-turn session)))
    (when (and turn (not (gemini-companion-turn-ended turn)))
      (setf (gemini-companion-turn-ended turn) time
            (gemini-companion-turn-cut turn) cut))))

(defun gemini-companion-turn-continue (session)
  "Continue the last turn of SESSION if the CLI has not reported its end."
  (let ((turn (gemini-companion-session-turn session)))
    (when (and turn (gemini-companion-turn-cut turn))
      (setf (gemini-companion-turn-ended turn) nil
            (gemini-companion-turn-cut turn) nil))))

;;;; Life

(cl-defmethod gemini-companion-part-stop :after ((_part (eql 'session)))
  "Remove the last turn of each session."
  (setq gemini-companion-turn--last nil))

(provide 'gemini-companion-turn)
;;; gemini-companion-turn.el ends here
