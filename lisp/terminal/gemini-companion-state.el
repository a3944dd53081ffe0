;;; gemini-companion-state.el --- What each CLI is doing  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Determine the state of each connected CLI, and the beginning and end of its turns.
;;
;; A CLI with an open review, or another open request, is waiting, wherever it runs.
;; A CLI in a terminal of this Emacs reports its state by the Program Status Protocol, or
;; shows it in the window title, and a linked CLI reports the beginning and the end of
;; each turn by hooks.  The state of other
;; CLIs is unknown.  A CLI that is waiting without a request asks a question in its
;; terminal.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-program-status)
(require 'gemini-companion-request)
(require 'gemini-companion-session)
(require 'gemini-companion-turn)

(autoload 'gemini-companion-terminal-show-question "gemini-companion-terminal")

;;;; State

(cl-defstruct (gemini-companion-state-question
               (:noinline t)
               (:include gemini-companion-request (kind 'question))
               (:constructor gemini-companion-state-question-make)
               (:copier nil))
  "A question in the terminal of a CLI.
CAUSE is the reason why the CLI asks, a phrase such as \"by your rule *.el\",
or nil.  ABOUT are what it asks, as far as its hooks have reported that:
requests, which are not open themselves, the oldest first."
  cause about)

(defvar gemini-companion-state-pending-function #'ignore
  "Function that returns how many prompts for a session are queued, or nil.
The session is its argument.  Such a CLI may be ready, but is not done.")

(defvar gemini-companion-turn-end-functions nil
  "Functions called when a CLI has ended a turn.
Each is called with the session, the true names of the files that the CLI
has written in that turn, and the first line of the prompt, or nil if that
is unknown.  A timer calls them.")

(defvar gemini-companion-state-functions nil
  "Functions called after the state of a CLI or its turn has changed.
Each is called with the session and its state, as in
`gemini-companion-session-state'.")

(defvar gemini-companion-state-lasting-hook nil
  "Hook run when the state of a CLI differs from the last that has lasted a while.")

(cl-defstruct (gemini-companion-state--record
               (:noinline t)
               (:constructor gemini-companion-state--make)
               (:conc-name gemini-companion-state--)
               (:copier nil))
  "State of SESSION, a connected CLI.
PROCESS is the process of its terminal in this Emacs, or nil.

STATE is `ready', `working', `waiting' or `unknown', since the time SINCE, in
seconds.  LASTING is the last STATE that has lasted for a while, and LASTED the
time when it began.  REPORTED is
the state that its hooks have reported, or nil.  REQUEST is the first request that is certain to
wait and is not a question, or nil.  QUESTION is the open question in its
terminal, or nil.

SENT is the first line of the last prompt that Emacs has submitted, or nil once
the turn of that prompt has begun.  ASKED are the requests that were open when
the title last showed that the CLI was not ready.  CAUSE is the reason for the next question in its terminal, a
phrase, or nil, and ABOUT are the requests that its hooks have reported of it."
  session process reported request question sent asked cause about
  (state 'unknown)
  (lasting 'unknown)
  (since (float-time))
  (lasted nil)
  (settled nil :documentation "The SINCE of the last state that was reported to last."))

(defvar gemini-companion-state--records nil
  "The records of the connected CLIs.")

(defvar gemini-companion-state-updates-per-second 10
  "Number of updates of states in a second that one terminal may cause.")

;;;; API

(cl-defmethod gemini-companion-session-state
  ((session gemini-companion-session) &optional lasting)
  "Return the state of SESSION, or if LASTING is non-nil, the last lasting one."
  (if-let* ((record (gemini-companion-state--of session)))
      (if lasting
          (gemini-companion-state--lasting record)
        (gemini-companion-state--state record))
    'unknown))

(defun gemini-companion-session-state-since (session &optional lasting)
  "Return the time when the state of SESSION began, in seconds, or nil.
For LASTING, see `gemini-companion-session-state'."
  (when-let* ((record (gemini-companion-state--of session)))
    (if lasting
        (gemini-companion-state--lasted record)
      (gemini-companion-state--since record))))

(defun gemini-companion-state-lasts (session)
  "Record that the state of SESSION has lasted for a while, and return it."
  (let* ((record (gemini-companion-state--of session))
         (state (gemini-companion-state--state record)))
    (unless (eql (gemini-companion-state--since record)
                 (gemini-companion-state--settled record))
      (setf (gemini-companion-state--settled record)
            (gemini-companion-state--since record))
      (when-let* ((question (gemini-companion-state--question record)))
        (gemini-companion-request-notify question 'changed)))
    (unless (eq state (gemini-companion-state--lasting record))
      (setf (gemini-companion-state--lasting record) state
            (gemini-companion-state--lasted record)
            (gemini-companion-state--since record))
      (run-hooks 'gemini-companion-state-lasting-hook))
    state))

(defun gemini-companion-state-titled (session)
  "Return the state of SESSION according to its window title.
It is `ready', `working' or `waiting'; or nil if this Emacs has no title of
SESSION, or one that shows no state.  SESSION need not be connected."
  (if-let* ((record (gemini-companion-state--of session)))
      (gemini-companion-state--titled record)
    (when-let* ((terminal (gemini-companion-session-terminal session))
                (process (get-buffer-process terminal))
                ((zerop (gemini-companion-state--count process))))
      (gemini-companion-state--title-of process session))))

(defun gemini-companion-state-work-count (session)
  "Return how many window titles of SESSION have shown that it works or waits.
A turn may be so short that no timer runs during it."
  (if-let* ((terminal (gemini-companion-session-terminal session))
            (process (get-buffer-process terminal)))
      (or (process-get process 'gemini-companion-work-count) 0)
    0))

(defun gemini-companion-state--questions ()
  "Return the open questions in terminals."
  (delq nil (mapcar #'gemini-companion-state--question
                    gemini-companion-state--records)))

;;;; Exit of Emacs

(cl-defmethod gemini-companion-part-unfinished ((_part (eql 'state)))
  "Return which CLIs are working in terminals of this Emacs."
  (mapcar (lambda (session)
            (format "%s is working" (gemini-companion-session-name session)))
          (seq-filter (lambda (session)
                        (and (eq 'working (gemini-companion-session-state session))
                             (gemini-companion-session-terminal session)))
                      (gemini-companion-sessions))))

;;;; Sources

(defun gemini-companion-state--of (session)
  "Return the record of the CLI of SESSION, or nil if it is not connected."
  (seq-find (lambda (record)
              (gemini-companion-session-same-p
               session (gemini-companion-state--session record)))
            gemini-companion-state--records))

(defun gemini-companion-state-set-title (process title)
  "Record TITLE, the window title that the program of PROCESS has set.
The property `gemini-companion-title' of PROCESS is a cons of TITLE and
whether a title of PROCESS has shown a state; `gemini-companion-work-count' is
the number of titles that have shown that the program works or waits.  A new
title with a state is newer than the reports of the program."
  (let ((previous (process-get process 'gemini-companion-title))
        (meaning (assoc-default title
                                (gemini-companion-clients-append
                                 #'gemini-companion-client-titles)
                                #'string-match-p)))
    (process-put process 'gemini-companion-title
                 (cons title
                       (or (cdr previous)
                           (memq meaning '(ready working waiting)))))
    (when (and (memq meaning '(ready working waiting))
               (not (equal title (car previous))))
      (process-put process 'gemini-companion-title-is-newer t))
    (when (memq meaning '(working waiting))
      (process-put process 'gemini-companion-work-count
                   (1+ (or (process-get process 'gemini-companion-work-count) 0)))))
  (gemini-companion-state--update-soon process))

(defun gemini-companion-state-set-program-status (process report)
  "Record REPORT, which the program of PROCESS has sent.
REPORT is as for `gemini-companion-program-status-read'.  The property
`gemini-companion-program-status' of PROCESS has the records."
  (when-let* ((new (gemini-companion-program-status-read report)))
    (process-put process 'gemini-companion-title-is-newer nil)
    (gemini-companion-state--set-program
     process (gemini-companion-program-status-set
              (process-get process 'gemini-companion-program-status) new))))

(defun gemini-companion-state-at-shell-prompt (process)
  "Record that a shell has its prompt in the terminal of PROCESS."
  (when-let* ((records (process-get process 'gemini-companion-program-status)))
    (gemini-companion-state--set-program
     process (gemini-companion-program-status-at-prompt records))))

(defun gemini-companion-state--set-program (process records)
  "Set the RECORDS of the program of PROCESS, and update the states of CLIs."
  (process-put process 'gemini-companion-program-status records)
  (gemini-companion-state--update-soon process))

(defun gemini-companion-state--update-soon (process)
  "Update the states of CLIs after the terminal of PROCESS has shown one.
That is at once, or, if a program shows too many in a second, at its end: the
last state counts.  The property `gemini-companion-updates' of PROCESS is a
cons of the beginning of that second and the number of updates in it;
`gemini-companion-update-timer' is the timer for its end, or nil."
  (pcase-let ((now (float-time))
              (`(,began . ,count)
               (or (process-get process 'gemini-companion-updates) '(0 . 0))))
    (cond ((<= 1 (abs (- now began)))
           (process-put process 'gemini-companion-updates (cons now 1))
           (gemini-companion-state--update-all process))
          ((< count gemini-companion-state-updates-per-second)
           (process-put process 'gemini-companion-updates (cons began (1+ count)))
           (gemini-companion-state--update-all process))
          ((not (memq (process-get process 'gemini-companion-update-timer) timer-list))
           (process-put process 'gemini-companion-update-timer
                        (run-at-time (- (1+ began) now) nil
                                     #'gemini-companion-state--update-soon
                                     process))))))

(defun gemini-companion-state--update-all (process)
  "Update the states of all CLIs, as the terminal of PROCESS has shown one.
If the program of PROCESS has reported the end of its work, end the turn, even
if a review is open: a report decides nothing about that."
  (let* ((state (gemini-companion-state--program process))
         (ended (and (eq 'ready state)
                     (memq (process-get process 'gemini-companion-program-state)
                           '(working waiting)))))
    (process-put process 'gemini-companion-program-state state)
    (mapc #'gemini-companion-state--update gemini-companion-state--records)
    (when ended
      (dolist (record gemini-companion-state--records)
        (when (and (eq process (gemini-companion-state--process record))
                   (gemini-companion-state--reports-p
                    (gemini-companion-state--session record)))
          (gemini-companion-state--finish record))))))

(defun gemini-companion-state--reports-p (session)
  "Return non-nil if the CLI of SESSION reports its state.
Reports in the terminal of another CLI are those of a command that it runs."
  (gemini-companion-client-reports-state-p (gemini-companion-session-client session)))

(defun gemini-companion-state--program (process)
  "Return the state that the program of PROCESS has reported, or nil."
  (gemini-companion-program-status-state
   (process-get process 'gemini-companion-program-status)))

(defun gemini-companion-state--finish (record)
  "End the turn of RECORD, whose CLI has reported the end; it may not be ready.
If a review is still open, report that."
  (when (and (gemini-companion-state--request record)
             (= 1 (gemini-companion-state--count
                   (gemini-companion-state--process record))))
    (let ((session (gemini-companion-state--session record)))
      (gemini-companion-state--end record)
      (message "%s has finished, but its %s is still open"
               (gemini-companion-session-name session)
               (gemini-companion-request-label
                (gemini-companion-state--request record))))))

(defun gemini-companion-state-set-working (process)
  "Record that the program of PROCESS works for a second, if its title is `ready'.
The property `gemini-companion-working' of PROCESS is the timer for the end."
  (let ((timer (process-get process 'gemini-companion-working)))
    (when timer
      (cancel-timer timer))
    (process-put process 'gemini-companion-working
                 (run-at-time 1 nil #'gemini-companion-state--end-working process))
    (unless timer
      (mapc #'gemini-companion-state--update gemini-companion-state--records))))

(defun gemini-companion-state--end-working (process)
  "Record that the title of PROCESS has its meaning again."
  (process-put process 'gemini-companion-working nil)
  (mapc #'gemini-companion-state--update gemini-companion-state--records))

(defun gemini-companion-state-expect-question (session cause)
  "Record that SESSION is about to ask in its terminal because of CAUSE.
CAUSE is a phrase, such as \"by your rule *.el\"."
  (when-let* ((record (gemini-companion-state--of session)))
    (setf (gemini-companion-state--cause record) cause)))

(defun gemini-companion-state-ask (session request)
  "Record that SESSION asks REQUEST in its terminal.
REQUEST is the text of the question; that has ended when the state has."
  (when-let* ((record (gemini-companion-state--of session)))
    (cl-callf append (gemini-companion-state--about record) (list request))
    (setf (gemini-companion-state--reported record) 'waiting)
    (gemini-companion-state--update record)))

(defun gemini-companion-state-report (session event prompt)
  "Record EVENT of SESSION.
EVENT is `submitted' if Emacs has submitted PROMPT.  Other events are reports of
a hook of the CLI: `prompt', where PROMPT is its first line; `end' of the turn;
`question'; `edit'; or `progress', after which its question has ended."
  (when-let* ((record (gemini-companion-state--of session)))
    (if (eq event 'submitted)
        (setf (gemini-companion-state--sent record)
              (car (split-string prompt "[\r\n]+" t)))
      (setf (gemini-companion-state--reported record)
            (pcase-exhaustive event
              ((or 'prompt 'edit) 'working)
              ('question 'waiting)
              ('end 'ready)
              ('progress (if (eq 'waiting (gemini-companion-state--reported record))
                             'working
                           (gemini-companion-state--reported record)))))
      (unless (eq event 'question)
        (setf (gemini-companion-state--cause record) nil
              (gemini-companion-state--about record) nil))
      (when (eq event 'prompt)
        (gemini-companion-state--begin record prompt)
        ;; Gemini CLI accepts no prompt while it asks about an edit, so the user
        ;; must have interrupted the question.
        (when (gemini-companion-state--hides-interrupts-p record)
          (mapc #'gemini-companion-request-interrupted
                (gemini-companion-state--awaiting session))))
      (gemini-companion-state--update record (eq event 'prompt)))))

(defun gemini-companion-state--hides-interrupts-p (record)
  "Return non-nil if the CLI of RECORD does not report an interrupted question."
  (gemini-companion-client-hides-interrupts-p
   (gemini-companion-session-client (gemini-companion-state--session record))))

(defun gemini-companion-state--awaiting (session)
  "Return the requests of SESSION, except for the question in its terminal."
  (seq-remove #'gemini-companion-state-question-p
              (gemini-companion-requests session)))

(defun gemini-companion-state--sessions-changed (&rest _)
  "Update the list of records to the connected CLIs.
End the turns of CLIs that have disconnected."
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
      (gemini-companion-state--notify record 'unknown)
      (gemini-companion-state--set-question record nil))
    (mapc #'gemini-companion-state--update gemini-companion-state--records)))

(defun gemini-companion-state--request-changed (request _event)
  "Update the record of the CLI of REQUEST after an event.
Ignore questions, which are made from the record.  A member of
`gemini-companion-request-functions'."
  (when-let* (((not (gemini-companion-state-question-p request)))
              (record (gemini-companion-state--of
                       (gemini-companion-request-session request))))
    (when (gemini-companion-edit-p request)
      (gemini-companion-state--reset-report record request))
    (gemini-companion-state--update record)))

(defun gemini-companion-state--begin-for-edit (session)
  "Begin or continue the turn of SESSION, of which an edit arrives.
The window title may show the turn only after its first edit.  A member of
`gemini-companion-turn-arrival-functions'."
  (when-let* ((record (gemini-companion-state--of session)))
    (gemini-companion-turn-continue session)
    (when (if-let* ((turn (gemini-companion-session-turn session)))
              (gemini-companion-turn-ended turn)
            (gemini-companion-state--titled record))
      (gemini-companion-state--begin record nil))))

(defun gemini-companion-state--reset-report (record edit)
  "Reset the reported state of RECORD if the answer to EDIT ends it.
The CLI does not report the end of a turn or a question in this case."
  (pcase (gemini-companion-edit-answer edit)
    ('rejected
     ;; After a rejection, Gemini CLI ends its turn without a report of a hook,
     ;; unless it has run another tool of the same answer.
     (when (and (gemini-companion-state--reported record)
                (gemini-companion-client-drops-edits-p
                 (gemini-companion-edit-client edit)))
       (gemini-companion-state--end record 'cut))
     (setf (gemini-companion-state--reported record) nil
           (gemini-companion-state--about record) nil))
    ('dismissed
     (when (eq 'waiting (gemini-companion-state--reported record))
       (setf (gemini-companion-state--reported record) nil
             (gemini-companion-state--about record) nil)))))

;;;; Updating

(defun gemini-companion-state--titled (record)
  "Return the state of RECORD according to its window title, or nil.
Return nil if there are two CLIs in the terminal: the title may be of either."
  (when-let* ((process (gemini-companion-state--process record))
              ((= 1 (gemini-companion-state--count process))))
    (gemini-companion-state--title-of process
                                      (gemini-companion-state--session record))))

(defun gemini-companion-state--count (process)
  "Return the number of connected CLIs in the terminal of PROCESS."
  (cl-count process gemini-companion-state--records
            :key #'gemini-companion-state--process))

(defun gemini-companion-state--title-of (process session)
  "Return the state of SESSION by the reports or the title of PROCESS, or nil.
A title that has only the name of a session of Qwen Code stands for `ready'
if another title of PROCESS has shown a state."
  (let ((reported (and (gemini-companion-state--reports-p session)
                       (gemini-companion-state--program process)))
        (titled (when-let* ((title (process-get process 'gemini-companion-title)))
                  (pcase (assoc-default (car title)
                                        (gemini-companion-client-titles
                                         (gemini-companion-session-client session))
                                        #'string-match-p)
                    ('named (and (cdr title) 'ready))
                    ((and 'ready (guard (process-get process
                                                     'gemini-companion-working)))
                     'working)
                    (state state)))))
    (if (process-get process 'gemini-companion-title-is-newer)
        (or titled reported)
      (or reported titled))))

(defun gemini-companion-state--follow-question (record)
  "Record the requests about which the CLI of RECORD asks.
If its title shows that it is ready while they are open, the user may have
interrupted the question; end them if that is still so a second later."
  (let ((titled (gemini-companion-state--titled record))
        (asked (gemini-companion-state--asked record)))
    (cond ((not (eq titled 'ready))
           (setf (gemini-companion-state--asked record)
                 (and titled
                      (gemini-companion-state--hides-interrupts-p record)
                      (gemini-companion-state--awaiting
                       (gemini-companion-state--session record)))))
          (asked
           (run-at-time 1 nil #'gemini-companion-state--interrupted
                        record asked)))))

(defun gemini-companion-state--interrupted (record asked)
  "End the requests ASKED of RECORD if its CLI is still ready.
The user has interrupted the question, which the CLI does not report."
  (when (and (eq asked (gemini-companion-state--asked record))
             (eq 'ready (gemini-companion-state--titled record)))
    (setf (gemini-companion-state--asked record) nil)
    (mapc #'gemini-companion-request-interrupted asked)))

(defun gemini-companion-state--compute (record request)
  "Return the state of RECORD, whose first request is REQUEST, or nil.
In order of precedence, it is decided by an open request, the window title,
and the reports of hooks.  If the title shows `ready' after a question about
an edit, the user has interrupted the request."
  (let ((titled (gemini-companion-state--titled record)))
    (cond ((and request
                (not (and (gemini-companion-state--asked record)
                          (eq titled 'ready))))
           'waiting)
          (titled)
          ((gemini-companion-state--reported record))
          (t 'unknown))))

(defun gemini-companion-state--update (record &optional changed)
  "Update the state of RECORD, and run the hook if it has changed.
Also run the hook if CHANGED is non-nil.  Waiting for another request is a
change of the state."
  (gemini-companion-state--follow-question record)
  (let* ((requests (gemini-companion-state--awaiting
                    (gemini-companion-state--session record)))
         (request (seq-find #'gemini-companion-request-certain-p requests))
         (state (gemini-companion-state--compute record request))
         (differs (not (and (eq state (gemini-companion-state--state record))
                            (eq request
                                (gemini-companion-state--request record))))))
    (when differs
      (when (and (eq 'waiting (gemini-companion-state--state record))
                 (not (eq 'waiting state)))
        (setf (gemini-companion-state--about record) nil))
      (setf (gemini-companion-state--state record) state
            (gemini-companion-state--request record) request
            (gemini-companion-state--since record) (float-time))
      (gemini-companion-state--follow-turn record))
    (gemini-companion-state--update-question
     record (and (eq state 'waiting) (null requests)) differs)
    (when (or differs changed)
      (gemini-companion-state--notify record state))))

(defun gemini-companion-state--update-question (record asks differs)
  "Create, keep or end the question of RECORD.
ASKS is non-nil if the CLI asks a question; DIFFERS is non-nil if its state has
changed, so that the question is a new one, as it is if more is known of it."
  (let ((question (gemini-companion-state--question record)))
    (cond ((not asks)
           (gemini-companion-state--set-question record nil))
          ((or differs
               (null question)
               (not (eq (gemini-companion-state--about record)
                        (gemini-companion-state-question-about question))))
           (gemini-companion-state--set-question
            record
            (gemini-companion-state-question-make
             :session (gemini-companion-state--session record)
             :since (gemini-companion-state--since record)
             :cause (gemini-companion-state--cause record)
             :about (gemini-companion-state--about record))))
          (t
           (setf (gemini-companion-state-question-session question)
                 (gemini-companion-state--session record))))
    (when-let* ((question (gemini-companion-state--question record)))
      (setf (gemini-companion-state-question-problem question)
            (unless (gemini-companion-request-buffer question)
              "its terminal is not in this Emacs")))))

(defun gemini-companion-state--set-question (record question)
  "Make QUESTION the open question of RECORD, or nil for none, and report that."
  (let ((previous (gemini-companion-state--question record)))
    (unless (eq question previous)
      (setf (gemini-companion-state--question record) question)
      (when previous
        (gemini-companion-request-notify previous 'closed))
      (when question
        (gemini-companion-request-notify question 'opened)))))

(defun gemini-companion-state--notify (record state)
  "Run `gemini-companion-state-functions' for STATE of RECORD."
  (run-hook-wrapped 'gemini-companion-state-functions #'gemini-companion-text-call
                    (gemini-companion-state--session record) state))

;;;; Turns

(defun gemini-companion-state--follow-turn (record)
  "Continue, begin or end the turn of RECORD after a change of its state."
  (let ((state (gemini-companion-state--state record)))
    (unless (eq state 'unknown)
      (gemini-companion-turn-continue (gemini-companion-state--session record)))
    (pcase state
      ('working (gemini-companion-state--begin record nil))
      ('ready (gemini-companion-state--end record)))))

(defun gemini-companion-state--begin (record prompt)
  "Begin a turn of RECORD unless it has begun.
PROMPT is the prompt that a hook has reported, or nil if the title shows the
turn.  Title and hook may come in either order."
  (let* ((session (gemini-companion-state--session record))
         (turn (gemini-companion-session-turn session)))
    (cond ((or (null turn)
               (gemini-companion-turn-ended turn)
               (and prompt (gemini-companion-turn-reported turn)))
           (gemini-companion-state--end record)
           (gemini-companion-turn-begin
            session (or prompt (gemini-companion-state--sent record)) prompt)
           (setf (gemini-companion-state--sent record) nil))
          (prompt
           (gemini-companion-turn-report session prompt)))))

(defun gemini-companion-state--end (record &optional cut)
  "End the turn of RECORD, if it has not ended.
For CUT, see `gemini-companion-turn-end'.  If the CLI is not working, the turn
ended when the current state began: a CLI may report the end only with the next
prompt."
  (let* ((session (gemini-companion-state--session record))
         (turn (gemini-companion-session-turn session))
         (open (and turn (null (gemini-companion-turn-ended turn)))))
    (gemini-companion-turn-end
     session
     (if (or cut (eq 'working (gemini-companion-state--state record)))
         (float-time)
       (gemini-companion-state--since record))
     cut)
    (when (and open (not cut) gemini-companion-turn-end-functions)
      (run-at-time 0 nil #'gemini-companion-state--report-turn session turn))))

(defun gemini-companion-state--report-turn (session turn)
  "Run `gemini-companion-turn-end-functions' for TURN of SESSION."
  (run-hook-wrapped
   'gemini-companion-turn-end-functions #'gemini-companion-text-call
   session
   (seq-uniq
    (cl-loop for edit in (gemini-companion-edits)
             when (and (eq turn (gemini-companion-edit-turn edit))
                       (gemini-companion-edit-written-p edit))
             collect (gemini-companion-edit-true-name edit)))
   (gemini-companion-turn-prompt turn)))

;;;; A question as a request

(cl-defmethod gemini-companion-request-label
  ((question gemini-companion-state-question))
  "Return what the CLI of QUESTION asks, or else that it asks in its terminal."
  (pcase-let (((cl-struct gemini-companion-state-question cause about) question))
    (cond (about (concat (gemini-companion-request-label (car about))
                         (and (cdr about) (format "  +%d more" (length (cdr about))))))
          (cause (concat "asks in its terminal, " cause))
          (t "asks in its terminal"))))

(cl-defmethod gemini-companion-request-insert
  ((question gemini-companion-state-question))
  "Insert what the CLI of QUESTION asks, as far as that is known."
  (mapc #'gemini-companion-request-insert
        (gemini-companion-state-question-about question)))

(cl-defmethod gemini-companion-request-certain-p
  ((question gemini-companion-state-question))
  "Return non-nil if the CLI of QUESTION has waited for a while, since it is open.
The title may show that only briefly, as until an accepted edit is written."
  (when-let* ((record (gemini-companion-state--of
                       (gemini-companion-state-question-session question))))
    (eql (gemini-companion-state--since record)
         (gemini-companion-state--settled record))))

(cl-defmethod gemini-companion-request-listed-p
  ((question gemini-companion-state-question))
  "Return non-nil if the CLI of QUESTION has waited for a while."
  (gemini-companion-request-certain-p question))

(cl-defmethod gemini-companion-request-buffer ((question gemini-companion-state-question))
  "Return the terminal of the CLI of QUESTION, or nil."
  (gemini-companion-session-terminal (gemini-companion-state-question-session question)))

(cl-defmethod gemini-companion-request-show ((question gemini-companion-state-question))
  "Select the terminal of QUESTION."
  (let* ((session (gemini-companion-state-question-session question))
         (name (gemini-companion-session-name session))
         (terminal (or (gemini-companion-request-buffer question)
                       (user-error
                        "%s asks in its terminal, which is not in this Emacs" name))))
    (gemini-companion-terminal-show-question terminal)))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'state)))
  "Follow the CLIs and their reviews."
  '((gemini-companion-session-changed-functions
     gemini-companion-state--sessions-changed)
    (gemini-companion-turn-arrival-functions gemini-companion-state--begin-for-edit)
    (gemini-companion-request-functions gemini-companion-state--request-changed)
    (gemini-companion-request-list-functions gemini-companion-state--questions)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'state)))
  "Stop following the CLIs."
  (cancel-function-timers #'gemini-companion-state--interrupted)
  (cancel-function-timers #'gemini-companion-state--end-working)
  (cancel-function-timers #'gemini-companion-state--update-soon)
  (setq gemini-companion-state--records nil))

(provide 'gemini-companion-state)
;;; gemini-companion-state.el ends here
