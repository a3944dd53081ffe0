;;; gemini-companion-arrival.el --- When a review appears, and auto-accept  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Display requests after they arrive, and close the views of answered edits.  One
;; timer offers new edits to auto-accept, closes views, and displays the next request
;; when the user is not busy; otherwise it announces an edit.
;;
;; After an answer, the next edit replaces the answered one, and is selected.  No other
;; kind of request is ever selected by itself: keys that were typed for edits would
;; answer it.

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
  "List of the edit answered last from inside its review, when, and a number.
That is the number of keys until then, or until the last one that waits on.
With another key, the user is no longer waiting for the next edit.")

(defvar gemini-companion-arrival-pause 10
  "Seconds for which a review that was answered awaits the next one.
That is for a CLI whose turns are not known, as it runs outside Emacs and
is not linked.  Otherwise the review waits until the turn ends.")

(defvar gemini-companion-arrival-as-row-function #'ignore
  "Function that returns non-nil if the user sees each request as a row.
What arrives is only announced then, and no window is displayed for it.")

(defvar gemini-companion-arrival--announced nil
  "The edit that was announced last, the text, and what removes it, or nil.")

;;;; Start and end

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'arrival)))
  "Show new requests, and close the views of settled edits."
  '((delete-frame-functions gemini-companion-arrival--frame-deleted)
    (gemini-companion-edit-functions gemini-companion-arrival--follow)
    (gemini-companion-request-functions gemini-companion-arrival--follow-request)
    (window-buffer-change-functions gemini-companion-arrival--windows-changed)
    ;; A daemon may have had no frame.
    (server-after-make-frame-hook gemini-companion-arrival--schedule)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'arrival)))
  "Show no more edits.
Views that are not closed yet are."
  (setq gemini-companion-arrival--answered nil))

(defun gemini-companion-arrival--frame-deleted (frame)
  "Hide the edit that FRAME alone displays, as FRAME is being deleted.
It waits again, also if a connection was lost."
  (when-let* ((edit (gemini-companion-edit-shown)))
    ;; Where a connection was lost, it is deleted already.
    (when (equal (and (frame-live-p frame) (list frame))
                 (seq-uniq (cl-loop for window in (window-list-1 nil nil t)
                                    when (eq edit (buffer-local-value
                                                   'gemini-companion-edit-here
                                                   (window-buffer window)))
                                    collect (window-frame window))))
      (gemini-companion-proposal-hide edit))))

(defun gemini-companion-arrival--follow (edit event)
  (pcase event
    ('answered (gemini-companion-arrival--after-answer edit))
    ('settled (when (eq edit (car gemini-companion-arrival--announced))
                (gemini-companion-arrival--unannounce))))
  ;; A view that is closed leaves room for the next one.
  (when (memq event '(shown hidden settled))
    (gemini-companion-arrival--schedule)))

(defun gemini-companion-arrival--windows-changed (_frame)
  "Look soon for what is to be shown, if a request waits to appear.
What was displayed before it may be gone."
  (when (seq-some #'gemini-companion-request-waits-to-appear-p
                  (gemini-companion-requests))
    (gemini-companion-arrival--schedule)))

(defun gemini-companion-arrival--follow-request (_request _event)
  "Look soon for what is to be shown and closed, as a request has changed."
  (gemini-companion-arrival--schedule))

;;;; Timer

(defun gemini-companion-arrival--schedule (&optional seconds)
  (cancel-timer gemini-companion-arrival--timer)
  (setq gemini-companion-arrival--timer
        (run-at-time (or seconds 0) nil #'gemini-companion-arrival--tick)))

(defun gemini-companion-arrival--tick ()
  "Offer new edits, close the views of settled ones, and show the next.
Try again soon if that has to wait until the user is idle."
  (gemini-companion-auto-offer)
  (gemini-companion-windows-at-once
    (gemini-companion-arrival--close-settled)
    (when (or (gemini-companion-arrival--show-next)
              (gemini-companion-edits-ending))
      (gemini-companion-arrival--schedule 0.2))))

(defun gemini-companion-arrival--close-settled ()
  "Close the views of settled edits, unless that has to wait.
That is for the end of a command, of a prompt, of a drag, or of typing in
the view: keys would go to another buffer."
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
  "Show the next request if no edit is shown and the user is idle.
Otherwise announce the next edit; return non-nil if the request waits for
the user."
  (when-let* ((request (seq-find #'gemini-companion-request-waits-to-appear-p
                                 (gemini-companion-requests)))
              ;; The header line of one that is shown counts them.
              ((not (gemini-companion-edit-shown))))
    (let ((room (and (not (funcall gemini-companion-arrival-as-row-function))
                     (gemini-companion-arrival--may-show-p)))
          (edit (gemini-companion-arrival-waiting)))
      (if (and room
               ;; A CLI that is ready was interrupted: its question is gone.
               (not (eq 'ready (gemini-companion-session-state
                                (gemini-companion-request-session request))))
               (or (and (eq gemini-companion-review-arrival 'now)
                        ;; At the end of a prompt, Emacs restores the windows.
                        (not (active-minibuffer-window)))
                   (gemini-companion-idle-user-p)))
          (ignore (gemini-companion-request-appear request))
        ;; An edit that is shown at once needs no announcement.
        (when (and edit
                   (not (and room (gemini-companion-arrival--continues-p edit))))
          (gemini-companion-arrival--announce edit))
        room))))

(cl-defmethod gemini-companion-request-appear ((edit gemini-companion-edit))
  "Show EDIT; if it takes the place of the review answered last, select it."
  (gemini-companion-arrival--show edit (gemini-companion-arrival--continues-p edit)))

(defun gemini-companion-arrival--continues-p (edit)
  "Return `next' if EDIT takes the place of the review answered last.
It is of the same CLI and turn, and the user has pressed no key since."
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

(defun gemini-companion-arrival-waiting ()
  "Return the oldest edit that waits to be shown, or nil."
  (seq-find #'gemini-companion-request-waits-to-appear-p
            (gemini-companion-edits-open)))

(defun gemini-companion-arrival--may-show-p ()
  "Return non-nil if an edit may be shown that the user has not chosen."
  (not (or (seq-some #'gemini-companion-edit-view
                     (remq (car gemini-companion-arrival--answered)
                           (gemini-companion-edits-ending)))
           (eq gemini-companion-review-arrival 'notify)
           ;; A daemon itself has an invisible frame.
           (and (daemonp) (null (cdr (frame-list)))))))

;;;; Announcement

(defun gemini-companion-arrival--announce (edit)
  "Announce EDIT once in one line, unless the minibuffer is in use.
The command that shows or selects EDIT is never omitted."
  (let* ((objection (gemini-companion-edit-objection edit))
         (name (gemini-companion-edit-name edit (and objection 'plain)))
         (why (if objection (format " (%s)" objection) ""))
         (by (concat " by " (gemini-companion-session-title
                             (gemini-companion-edit-session edit))))
         (how (format "; %s %s it"
                      (substitute-command-keys "\\[gemini-companion-review]")
                      (if (gemini-companion-edit-view edit) "selects" "shows")))
         ;; A line that does not fit would be folded, or cut before the key.
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
  (funcall (or (nth 2 gemini-companion-arrival--announced) #'ignore))
  (setq gemini-companion-arrival--announced nil))

;;;; Showing

(defun gemini-companion-arrival--show (edit &optional select)
  "Show EDIT, and select it if SELECT is non-nil.
If that fails, show why; the CLI's own prompt can still answer it."
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
  "Show EDIT, which awaits an answer, or select it if it is shown.
If another edit is shown, put it back: it waits again, and keeps the
user's changes of its proposal."
  (gemini-companion-edit-unsettled edit)
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
  (let ((next (gemini-companion-arrival-waiting)))
    (cond ((and next (gemini-companion-arrival--may-show-p))
           (gemini-companion-arrival--show next 'next))
          ((gemini-companion-arrival--next-expected-p edit)
           (gemini-companion-view-follow (gemini-companion-edit-view edit) 'waits))
          (t (gemini-companion-proposal-finish edit)))))

(defun gemini-companion-arrival--next-expected-p (edit)
  "Return non-nil if the next edit may soon take the place of settled EDIT."
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
            (or (gemini-companion-arrival-waiting)
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
