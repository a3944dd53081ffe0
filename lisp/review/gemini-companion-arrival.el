;;; gemini-companion-arrival.el --- When a review appears  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Display requests after they arrive, and close the views of answered edits.  One
;; timer offers new edits to auto-accept, closes views, and displays the next request
;; when the user is not busy; otherwise it announces an edit.
;;
;; After an answer, the next edit replaces the answered edit, and is selected.  No
;; other kind of request is ever selected by itself: keys that were typed for edits
;; would answer it.

;;; Code:

(require 'gemini-companion-auto)
(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-idle)
(require 'gemini-companion-label)
(require 'gemini-companion-proposal)
(require 'gemini-companion-request)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-turn)
(require 'gemini-companion-view)
(require 'gemini-companion-windows)

;;;; Customization

(defcustom gemini-companion-review-arrival 'when-idle
  "When the review of a proposed edit appears.
`when-idle' waits until nothing was typed for a moment and no
prompt, macro or search is active; `now' shows the review at once, or
after a prompt; `notify' only announces it until you type
\\[gemini-companion-review].

The selected window stays visible, and `gemini-companion-review-focus'
decides whether it stays selected.  \\[gemini-companion-review] also
selects a review that is shown."
  :type '(choice (const :tag "When Emacs is idle" when-idle)
                 (const :tag "At once" now)
                 (const :tag "On request" notify))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

;;;; State

(defvar gemini-companion-arrival--timer (timer-create)
  "Timer of `gemini-companion-arrival--tick'.")

(defvar gemini-companion-arrival--answered nil
  "Last edit that was answered in its review, (EDIT TIME KEYS), or nil.
KEYS is the value of `num-input-keys' at the answer, or at the last key that
continues to wait.  After another key, the user is not waiting for the next
edit.")

(defvar gemini-companion-arrival-pause 10
  "Seconds for which an answered review waits for the next edit.
This applies to a CLI whose turns are unknown, since it runs outside Emacs and
is not linked.  Otherwise the review waits until the turn ends.")

(defvar gemini-companion-arrival-as-row-function #'ignore
  "Function that returns non-nil if the user sees each request as a row.
What arrives is only announced then, and no window is displayed for it.")

(defvar gemini-companion-arrival--announced nil
  "Last announcement, (EDIT TEXT REMOVE), or nil.
REMOVE is a function that removes TEXT from the echo area.")

;;;; Start and end

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'arrival)))
  "Show new requests, and close the views of decided edits."
  '((delete-frame-functions gemini-companion-arrival--frame-deleted)
    (gemini-companion-edit-functions gemini-companion-arrival--follow)
    (gemini-companion-request-functions gemini-companion-arrival--follow-request)
    (window-buffer-change-functions gemini-companion-arrival--windows-changed)
    ;; A daemon may have had no frame.
    (server-after-make-frame-hook gemini-companion-arrival--schedule)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'arrival)))
  "Reset the last answer.
`proposal' closes the views that are still open."
  (setq gemini-companion-arrival--answered nil))

(defun gemini-companion-arrival--frame-deleted (frame)
  "Hide the edit that only FRAME displays, as FRAME is being deleted.
The edit then waits to be displayed again."
  (when-let* ((edit (gemini-companion-edit-shown)))
    ;; After a lost connection, FRAME is already deleted.
    (when (equal (and (frame-live-p frame) (list frame))
                 (seq-uniq (cl-loop for window in (window-list-1 nil nil t)
                                    when (eq edit (buffer-local-value
                                                   'gemini-companion-edit-here
                                                   (window-buffer window)))
                                    collect (window-frame window))))
      (gemini-companion-proposal-hide edit))))

(defun gemini-companion-arrival--follow (edit event)
  "Handle EVENT of EDIT; see `gemini-companion-edit-functions'."
  (pcase event
    ('answered (gemini-companion-arrival--after-answer edit))
    ('decided (when (eq edit (car gemini-companion-arrival--announced))
                (gemini-companion-arrival--unannounce))))
  ;; After a view is closed, the next one may be displayed.
  (when (memq event '(shown hidden decided))
    (gemini-companion-arrival--schedule)))

(defun gemini-companion-arrival--windows-changed (_frame)
  "Run the timer soon if a request waits to appear.
The review that was displayed instead may be gone."
  (when (seq-some #'gemini-companion-request-waits-to-appear-p
                  (gemini-companion-requests))
    (gemini-companion-arrival--schedule)))

(defun gemini-companion-arrival--follow-request (_request _event)
  "Run the timer soon, since a request has changed."
  (gemini-companion-arrival--schedule))

;;;; Timer

(defun gemini-companion-arrival--schedule (&optional seconds)
  "Run the timer in SECONDS, by default at once."
  (cancel-timer gemini-companion-arrival--timer)
  (setq gemini-companion-arrival--timer
        (run-at-time (or seconds 0) nil #'gemini-companion-arrival--tick)))

(defun gemini-companion-arrival--tick ()
  "Offer edits to auto-accept, close views of decided ones, and show the next edit.
Try again soon if the user is not idle."
  (gemini-companion-auto-offer)
  ;; Not in `windows-at-once': while something waits, this runs five times a second,
  ;; and a text terminal would be drawn again each time.
  (gemini-companion-arrival--close-decided)
  (when (or (gemini-companion-arrival--show-next)
            (gemini-companion-edits-ending))
    (gemini-companion-arrival--schedule 0.2)))

(defun gemini-companion-arrival--close-decided ()
  "Close the views of decided edits, unless the user is busy.
Wait for the end of a command, a prompt, a drag, or typing in the view, since
keys would go to another buffer."
  (dolist (edit (gemini-companion-edits-ending))
    (unless (or (gemini-companion-arrival--next-expected-p edit)
                (and (gemini-companion-edit-view edit)
                     (not (if (eq edit (buffer-local-value
                                        'gemini-companion-edit-here
                                        (window-buffer)))
                              (gemini-companion-idle-user-p)
                            (gemini-companion-idle-between-commands-p)))))
      (gemini-companion-proposal-finish edit))))

(defun gemini-companion-arrival--show-next ()
  "Display the next request if no edit is displayed and the user is idle.
Otherwise announce the next edit.  Return non-nil if the request waits until
the user is idle."
  (when-let* ((request (seq-find #'gemini-companion-request-waits-to-appear-p
                                 (gemini-companion-requests)))
              ;; The header line of a displayed edit counts the others.
              ((not (gemini-companion-edit-shown))))
    (let ((allowed (and (not (funcall gemini-companion-arrival-as-row-function))
                        (gemini-companion-arrival--may-show-p)))
          (edit (gemini-companion-arrival--waiting)))
      (if (and allowed
               ;; If the CLI is ready, the user has interrupted its question.
               (not (eq 'ready (gemini-companion-session-state
                                (gemini-companion-request-session request))))
               (or (and (eq gemini-companion-review-arrival 'now)
                        ;; At the end of a prompt, Emacs restores the windows.
                        (not (active-minibuffer-window)))
                   (gemini-companion-idle-user-p)))
          (ignore (gemini-companion-request-appear request))
        ;; An edit that is displayed at once needs no announcement.
        (when (and edit
                   (not (and allowed
                             (gemini-companion-arrival--continues-p edit))))
          (gemini-companion-arrival--announce edit))
        allowed))))

(cl-defmethod gemini-companion-request-appear ((edit gemini-companion-edit))
  "Display EDIT, and select it if it is next after the last answered review."
  (gemini-companion-arrival--show edit (gemini-companion-arrival--continues-p edit)))

(defun gemini-companion-arrival--continues-p (edit)
  "Return `next' if EDIT is next after the last answered review.
EDIT must be of the same CLI and turn, and the user must have typed no key
since."
  (pcase gemini-companion-arrival--answered
    (`(,answered ,time ,(pred (eql num-input-keys)))
     (let* ((session (gemini-companion-edit-session answered))
            (turn (gemini-companion-session-turn session)))
       (and (if turn
                (eq turn (gemini-companion-edit-turn answered))
              (< (- (float-time) time) gemini-companion-arrival-pause))
            (gemini-companion-session-same-p
             session (gemini-companion-edit-session edit))
            'next)))))

(defun gemini-companion-arrival--waiting ()
  "Return the oldest edit that waits to be shown, or nil."
  (seq-find #'gemini-companion-request-waits-to-appear-p
            (gemini-companion-edits-open)))

(defun gemini-companion-arrival--may-show-p ()
  "Return non-nil if an edit may be displayed without a command of the user."
  (not (or (seq-some #'gemini-companion-edit-view
                     (remq (car gemini-companion-arrival--answered)
                           (gemini-companion-edits-ending)))
           (eq gemini-companion-review-arrival 'notify)
           ;; A daemon without clients has only an invisible frame.
           (and (daemonp) (null (cdr (frame-list)))))))

;;;; Announcement

(defun gemini-companion-arrival--announce (edit)
  "Announce EDIT once in one line, unless the minibuffer is in use.
The command that shows or selects EDIT is never omitted."
  (let* ((reason (gemini-companion-edit-review-remark edit))
         (name (gemini-companion-edit-name edit (and reason 'plain)))
         (why (if reason (format " (%s)" reason) ""))
         (by (concat " by " (gemini-companion-session-title
                             (gemini-companion-edit-session edit))))
         (how (format "; %s %s it"
                      (substitute-command-keys "\\[gemini-companion-review]")
                      (if (gemini-companion-edit-view edit) "selects" "shows")))
         ;; A longer line would be wrapped, or truncated before the key.
         (texts (list (concat "Edit of " name why by how)
                      (concat "Edit of " name why how)
                      (concat "Edit of " (file-name-nondirectory name) how)))
         (text (or (seq-find (lambda (text)
                               (< (string-width text) (frame-width)))
                             texts)
                   (car (last texts)))))
    (unless (or (active-minibuffer-window)
                (equal text (nth 1 gemini-companion-arrival--announced)))
      (gemini-companion-arrival--unannounce)
      (setq gemini-companion-arrival--announced
            (list edit text (gemini-companion-idle-announce text))))))

(defun gemini-companion-arrival--unannounce ()
  "Remove the last announcement."
  (funcall (or (nth 2 gemini-companion-arrival--announced) #'ignore))
  (setq gemini-companion-arrival--announced nil))

;;;; Showing

(defun gemini-companion-arrival--show (edit &optional select)
  "Display EDIT, and select it if SELECT is non-nil.
On failure, display the reason; the user can still answer in the terminal."
  (gemini-companion-windows-at-once
    (mapc #'gemini-companion-proposal-finish (gemini-companion-edits-ending))
    (gemini-companion-proposal-show
     edit (lambda (edit) (gemini-companion-view-show edit select))))
  (cond ((not (gemini-companion-edit-view edit))
         (funcall (if (eq select 'select) #'user-error #'message)
                  "%s; answer in the terminal of %s"
                  (gemini-companion-edit-problem edit)
                  (gemini-companion-session-title
                   (gemini-companion-edit-session edit))))
        (t
         (gemini-companion-arrival--unannounce)
         (unless (or select
                     (eq edit (buffer-local-value 'gemini-companion-edit-here
                                                  (window-buffer))))
           (gemini-companion-arrival--announce edit)))))

(defun gemini-companion-arrival-view (edit)
  "Display EDIT, which awaits an answer, or select its review.
If another edit is displayed, hide it: it waits again, and keeps the changes
that the user has made to its proposal."
  (gemini-companion-edit-open-or-error edit)
  (if-let* ((view (gemini-companion-edit-view edit)))
      (gemini-companion-view-follow view 'select)
    (gemini-companion-windows-at-once
      (when-let* ((shown (gemini-companion-edit-shown)))
        (gemini-companion-proposal-hide shown))
      (gemini-companion-arrival--show edit 'select))))

(cl-defmethod gemini-companion-request-show ((edit gemini-companion-edit))
  "Show EDIT, or select it if it is shown."
  (gemini-companion-arrival-view edit))

;;;; After an answer

(defun gemini-companion-arrival--after-answer (edit)
  "Show the next review in place of EDIT, which was answered from inside.
If none waits, but the CLI may propose more, EDIT stays on the screen
until it does, so that the windows do not jump."
  (setq gemini-companion-arrival--answered
        (list edit (float-time) num-input-keys))
  (gemini-companion-auto-offer)
  (let ((next (gemini-companion-arrival--waiting)))
    (cond ((and next (gemini-companion-arrival--may-show-p))
           (gemini-companion-arrival--show next 'next))
          ((gemini-companion-arrival--next-expected-p edit)
           (gemini-companion-view-follow (gemini-companion-edit-view edit) 'waits))
          (t (gemini-companion-proposal-finish edit)))))

(defun gemini-companion-arrival--next-expected-p (edit)
  "Return non-nil if the next edit may soon replace the decided EDIT."
  (pcase gemini-companion-arrival--answered
    (`(,(pred (eq edit)) ,time ,_)
     (let ((session (gemini-companion-edit-session edit)))
       (and (gemini-companion-arrival--continues-p edit)
            (not (eq gemini-companion-review-arrival 'notify))
            (not (gemini-companion-turn-ended (gemini-companion-edit-turn edit)))
            (not (and (eq 'rejected (gemini-companion-edit-decision edit))
                      (gemini-companion-client-drops-edits-p
                       (gemini-companion-edit-client edit))))
            ;; A question in the terminal, which the review may cover.  That of an
            ;; edit may be known before the edit.
            (or (gemini-companion-arrival--waiting)
                (not (eq 'waiting (gemini-companion-session-state session)))
                (not (< time (gemini-companion-session-state-since session)
                        (1- (float-time))))))))))

(defun gemini-companion-arrival-wait-on ()
  "Report that the review has ended, and wait on for the next edit."
  (message "This review has ended: %s; waiting for the next edit"
           (gemini-companion-edit-status (gemini-companion-edit-current)))
  (gemini-companion-arrival-ignore-key))

(defun gemini-companion-arrival-ignore-key ()
  "Wait on for the next edit, although the user has pressed a key."
  ;; The mode may have been turned off by the answer.
  (when gemini-companion-arrival--answered
    (setf (nth 2 gemini-companion-arrival--answered) num-input-keys)))

(provide 'gemini-companion-arrival)
;;; gemini-companion-arrival.el ends here
