;;; gemini-companion-state.el --- What each CLI is doing  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The state of each connected CLI, and its turn: a prompt and what follows it.
;;
;; A CLI in a terminal of this Emacs shows its state in the window title; one that
;; is linked reports its prompts and their end by hooks.  A CLI with an open
;; review waits, wherever it runs.  Otherwise its state is unknown.

;;; Code:

(require 'gemini-companion-client)
(require 'gemini-companion-edit)
(require 'gemini-companion-session)
(require 'gemini-companion-turn)

(defvar gemini-companion-state-pending-function #'ignore
  "Function that returns non-nil if a prompt for a session is about to be sent.
The session is its argument.  Such a CLI is ready, but not done.")

(defvar gemini-companion-state-functions nil
  "Functions called after the state of a CLI or its turn has changed.
Each is called with the session and its state, as in
`gemini-companion-session-state'.")

(cl-defstruct (gemini-companion-state--record
               (:constructor gemini-companion-state--make)
               (:conc-name gemini-companion-state--)
               (:copier nil))
  "State of SESSION, whose terminal is PROCESS, or nil.
REPORTED is the state that its hooks have reported, or nil; SENT the
first line of the last prompt that Emacs has submitted, until its turn
begins; REVIEW the edit that awaits an answer first, or nil; ASKED the
edits that were open when its title showed last that it was not ready;
LASTING the last STATE that has lasted."
  session process reported sent review asked
  (state 'unknown)
  (lasting 'unknown)
  (since (float-time)))

(defvar gemini-companion-state--records nil
  "The records of the connected CLIs.")

;;;; API

(defun gemini-companion-session-state (session &optional lasting)
  "Return what SESSION is doing.
That is `ready' for a prompt, `working', `waiting' for an answer of the
user in its terminal or in a review, or `unknown'.  If LASTING is
non-nil, it is the last state that has lasted for a while."
  (if-let* ((record (gemini-companion-state--of session)))
      (if lasting
          (gemini-companion-state--lasting record)
        (gemini-companion-state--state record))
    'unknown))

(defun gemini-companion-session-state-since (session)
  "Return when the state of SESSION began, in seconds, or nil."
  (when-let* ((record (gemini-companion-state--of session)))
    (gemini-companion-state--since record)))

(defun gemini-companion-state-lasts (session)
  "Record that the state of SESSION has lasted for a while, and return it."
  (let ((record (gemini-companion-state--of session)))
    (setf (gemini-companion-state--lasting record)
          (gemini-companion-state--state record))))

;;;; Sources

(defun gemini-companion-state--of (session)
  (seq-find (lambda (record)
              (gemini-companion-session-same-p
               session (gemini-companion-state--session record)))
            gemini-companion-state--records))

(defun gemini-companion-state-set-title (process title)
  "Record TITLE, the window title that the program of PROCESS has set.
Record also whether one of its titles has shown a state."
  (process-put process 'gemini-companion-title
               (cons title
                     (or (cdr (process-get process 'gemini-companion-title))
                         (memq (assoc-default
                                title (gemini-companion-client-all :titles)
                                #'string-match-p)
                               '(ready working waiting)))))
  (mapc #'gemini-companion-state--update gemini-companion-state--records))

(defun gemini-companion-state-report (session event prompt)
  "Record EVENT of SESSION.
It is `submitted' if Emacs has submitted PROMPT, or what a hook of the
CLI has reported: `prompt', with the first line of PROMPT, `end' of the
turn, `question' or `edit'."
  (when-let* ((record (gemini-companion-state--of session)))
    (if (eq event 'submitted)
        (setf (gemini-companion-state--sent record)
              (car (split-string prompt "[\r\n]+" t)))
      (setf (gemini-companion-state--reported record)
            (pcase-exhaustive event
              ((or 'prompt 'edit) 'working)
              ('question 'waiting)
              ('end 'ready)))
      (when (eq event 'prompt)
        (gemini-companion-state--begin record prompt)
        ;; Gemini CLI takes no prompt while it asks.
        (when (gemini-companion-client-get (plist-get session :client)
                                            :hides-interrupts)
          (dolist (edit (gemini-companion-edits-open session))
            (gemini-companion-edit-close edit 'interrupted))))
      (gemini-companion-state--update record (eq event 'prompt)))))

(defun gemini-companion-state--sessions-changed (&rest _)
  "Make the records those of the connected CLIs.
The turns of those that are gone end."
  (let ((previous gemini-companion-state--records))
    (setq gemini-companion-state--records
          (mapcar
           (lambda (session)
             (let ((record (or (gemini-companion-state--of session)
                               (gemini-companion-state--make)))
                   (terminal (gemini-companion-session-terminal session)))
               (setf (gemini-companion-state--session record) session
                     (gemini-companion-state--process record)
                     (and terminal (get-buffer-process terminal)))
               record))
           (gemini-companion-sessions)))
    (dolist (record (seq-difference previous gemini-companion-state--records
                                    #'eq))
      (gemini-companion-state--end record 'cut)
      (gemini-companion-state--notify record 'unknown))
    (mapc #'gemini-companion-state--update gemini-companion-state--records)))

(defun gemini-companion-state--edit-changed (edit event)
  "Update the record of the CLI of EDIT after EVENT.
A member of `gemini-companion-edit-functions'."
  (when-let* (((memq event '(opened settled)))
              (session (gemini-companion-edit-session edit))
              (record (gemini-companion-state--of session)))
    (pcase (gemini-companion-edit-decision edit)
      ('rejected
       ;; Gemini CLI then ends its turn, which no hook reports, unless it has
       ;; run another tool of the same answer.
       (when (and (gemini-companion-state--reported record)
                  (gemini-companion-edit-client-get edit :drops-edits))
         (gemini-companion-state--end record 'cut))
       (setf (gemini-companion-state--reported record) nil))
      ('dismissed
       (when (eq 'waiting (gemini-companion-state--reported record))
         (setf (gemini-companion-state--reported record) nil))))
    (gemini-companion-state--update record)
    ;; The title that begins a turn may come after its first edit.
    (when (and (eq event 'opened)
               (if-let* ((turn (gemini-companion-session-turn session)))
                   (gemini-companion-turn-ended turn)
                 (gemini-companion-state--titled record)))
      (gemini-companion-state--begin record nil)
      (setf (gemini-companion-edit-turn edit)
            (gemini-companion-session-turn session)))))

;;;; State

(defun gemini-companion-state--titled (record)
  "Return the state of RECORD according to its window title, or nil.
The title of a terminal with two CLIs may be of either."
  (when-let* ((process (gemini-companion-state--process record))
              (title (process-get process 'gemini-companion-title))
              ((= 1 (cl-count process gemini-companion-state--records
                              :key #'gemini-companion-state--process))))
    (pcase (assoc-default
            (car title)
            (gemini-companion-client-get
             (plist-get (gemini-companion-state--session record) :client)
             :titles)
            #'string-match-p)
      ('named (and (cdr title) 'ready))
      (state state))))

(defun gemini-companion-state--interrupted (record asked)
  "Dismiss the edits ASKED of RECORD if its CLI has been ready since.
The user has interrupted its question, which it does not report."
  (when (and (eq asked (gemini-companion-state--asked record))
             (eq 'ready (gemini-companion-state--titled record)))
    (setf (gemini-companion-state--asked record) nil)
    (dolist (edit asked)
      (gemini-companion-edit-close edit 'interrupted))))

(defun gemini-companion-state--update (record &optional changed)
  "Update the state of RECORD; run the hook if it differs, or CHANGED.
A CLI that waits for another answer than before is in another state."
  (let* ((session (gemini-companion-state--session record))
         (titled (gemini-companion-state--titled record))
         (previous (gemini-companion-state--state record))
         (asked (gemini-companion-state--asked record))
         (review (car (gemini-companion-edits-open session)))
         (state (cond ((and review (not (and asked (eq titled 'ready))))
                       'waiting)
                      (titled)
                      ((gemini-companion-state--reported record))
                      (t 'unknown))))
    (cond ((not (eq titled 'ready))
           (setf (gemini-companion-state--asked record)
                 (and titled
                      (gemini-companion-client-get (plist-get session :client)
                                                    :hides-interrupts)
                      (gemini-companion-edits-open session))))
          (asked
           (run-at-time 1 nil #'gemini-companion-state--interrupted
                        record asked)))
    (unless (and (eq state previous)
                 (eq review (gemini-companion-state--review record)))
      (setf (gemini-companion-state--state record) state
            (gemini-companion-state--review record) review
            (gemini-companion-state--since record) (float-time)
            changed t)
      (when-let* ((turn (gemini-companion-session-turn session))
                  ((gemini-companion-turn-cut turn))
                  ((not (eq state 'unknown))))
        (setf (gemini-companion-turn-ended turn) nil
              (gemini-companion-turn-cut turn) nil))
      (pcase state
        ('working (gemini-companion-state--begin record nil))
        ('ready (gemini-companion-state--end record))))
    (when changed
      (gemini-companion-state--notify record state))))

(defun gemini-companion-state--notify (record state)
  (run-hook-wrapped 'gemini-companion-state-functions #'gemini-companion-text-call
                    (gemini-companion-state--session record) state))

;;;; Turns

(defun gemini-companion-state--begin (record prompt)
  "Begin a turn of RECORD; PROMPT is the prompt that a hook reported, or nil.
A turn is seen in the title and reported by a hook, in either order."
  (let* ((session (gemini-companion-state--session record))
         (turn (gemini-companion-session-turn session)))
    (cond ((or (null turn)
               (gemini-companion-turn-ended turn)
               (and prompt (gemini-companion-turn-reported turn)))
           (gemini-companion-state--end record)
           (setf (gemini-companion-session-turn session)
                 (gemini-companion-turn-make
                  :prompt (or prompt (gemini-companion-state--sent record))
                  :reported (and prompt t))
                 (gemini-companion-state--sent record) nil))
          (prompt
           (setf (gemini-companion-turn-prompt turn) prompt
                 (gemini-companion-turn-reported turn) t)))))

(defun gemini-companion-state--end (record &optional cut)
  "End the turn of RECORD.
CUT is non-nil if its CLI may go on, as it has only disconnected or
reported no end."
  (when-let* ((turn (gemini-companion-session-turn
                     (gemini-companion-state--session record))))
    (unless (gemini-companion-turn-ended turn)
      (setf (gemini-companion-turn-ended turn)
            ;; What was refused in its terminal is reported by the next prompt.
            (if (or cut (eq 'working (gemini-companion-state--state record)))
                (float-time)
              (gemini-companion-state--since record))
            (gemini-companion-turn-cut turn) cut))))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'state)))
  "Follow the CLIs and their reviews."
  '((gemini-companion-session-changed-functions
     gemini-companion-state--sessions-changed)
    (gemini-companion-edit-functions gemini-companion-state--edit-changed)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'state)))
  "Stop following the CLIs."
  (cancel-function-timers #'gemini-companion-state--interrupted)
  (setq gemini-companion-state--records nil))

(provide 'gemini-companion-state)
;;; gemini-companion-state.el ends here
