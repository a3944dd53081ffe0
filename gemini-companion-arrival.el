;;; gemini-companion-arrival.el --- When a review appears  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The way of an edit from its arrival to the screen, and of a settled one from it:
;; one timer offers new edits to auto-accept, closes the views of settled ones and
;; shows the next one when the user is not busy, or else announces it.
;;
;; How an edit is displayed is not known here: that is an argument of
;; `gemini-companion-arrival-start'.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-idle)
(require 'gemini-companion-name)
(require 'gemini-companion-revert)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-text)
(require 'gemini-companion-windows)

;;;; Customization

(defcustom gemini-companion-review-arrival 'when-idle
  "When the review of a proposed edit appears.
`when-idle' waits until nothing was typed for a moment and no
prompt, macro or search is active; `now' shows the review at once;
`notify' only announces it, and \\[gemini-companion-review] shows it.

The selected window stays visible, and `gemini-companion-review-focus'
decides whether it stays selected.  \\[gemini-companion-review] also
selects a review that is shown."
  :type '(choice (const :tag "When Emacs is idle" when-idle)
                 (const :tag "At once" now)
                 (const :tag "On request" notify))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

(defvar gemini-companion-arrival-functions nil
  "Functions called with each new edit before it may be shown.
The first one that returns non-nil has settled the edit.")

;;;; State

(defvar gemini-companion-arrival--show-function #'ignore
  "Function of `gemini-companion-arrival-start' that shows an edit.")

(defvar gemini-companion-arrival--timer nil
  "Timer of `gemini-companion-arrival--tick', or nil.")

(defvar gemini-companion-arrival--answered nil
  "The review that the user answered last from inside it, or nil.
A list of the edit, the turn of its CLI, the time, and the number of
keys until then.")

(defvar gemini-companion-arrival--pause 10
  "Seconds for which a review that was answered awaits the next one.
In that time, no new prompt is expected from a CLI whose turns are not
known, as it runs outside Emacs and is not linked.")

(defvar gemini-companion-arrival--announced nil
  "The edit that was announced last, the text, and what removes it, or nil.")

;;;; Start and end

(defun gemini-companion-arrival-start (show)
  "Show new edits by the function SHOW, and close the views of settled ones.
SHOW is called with an edit, and how it is to be selected, as by
`gemini-companion-review-show'; it returns the view."
  (setq gemini-companion-arrival--show-function show)
  (add-hook 'gemini-companion-edit-functions #'gemini-companion-arrival--follow)
  ;; A daemon may have had no frame.
  (add-hook 'server-after-make-frame-hook
            #'gemini-companion-arrival--schedule))

(defun gemini-companion-arrival-stop ()
  "Show no more edits; views that are not closed yet are."
  (setq gemini-companion-arrival--answered nil)
  (remove-hook 'gemini-companion-edit-functions
               #'gemini-companion-arrival--follow)
  (remove-hook 'server-after-make-frame-hook
               #'gemini-companion-arrival--schedule))

(defun gemini-companion-arrival--follow (edit event)
  "Do what EVENT of EDIT requires, most of it soon."
  (pcase event
    ('answered (gemini-companion-arrival--after-answer edit))
    ('settled (when (eq edit (car gemini-companion-arrival--announced))
                (gemini-companion-arrival--unannounce))))
  (when (memq event '(opened shown hidden settled))
    (gemini-companion-arrival--schedule)))

;;;; Timer

(defun gemini-companion-arrival--schedule (&optional seconds)
  "Call `gemini-companion-arrival--tick' soon, or in SECONDS."
  (when gemini-companion-arrival--timer
    (cancel-timer gemini-companion-arrival--timer))
  (setq gemini-companion-arrival--timer
        (run-at-time (or seconds 0) nil #'gemini-companion-arrival--tick)))

(defun gemini-companion-arrival--tick ()
  "Offer new edits, close the views of settled ones, and show the next.
Try again soon if that has to wait until the user is idle."
  (gemini-companion-arrival-offer)
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
                     (or (not (gemini-companion-idle-between-commands-p))
                         (and (eq edit (buffer-local-value
                                        'gemini-companion-edit-here
                                        (window-buffer)))
                              (gemini-companion-idle-typing-p)))))
      (gemini-companion-edit-finish edit))))

(defun gemini-companion-arrival-offer (&optional again)
  "Run the hook that may settle each new edit without a review.
If AGAIN is non-nil, run it for all edits that wait."
  (dolist (edit (gemini-companion-edits-open))
    (unless (or (gemini-companion-edit-view edit)
                (and (gemini-companion-edit-objection edit) (not again)))
      (gemini-companion-edit-object edit 'offered)
      (with-demoted-errors "Accepting a proposal automatically: %S"
        (run-hook-with-args-until-success
         'gemini-companion-arrival-functions edit)))))

(defun gemini-companion-arrival--show-next ()
  "Show the next edit if none is shown and the user is idle.
Otherwise announce it; return non-nil if it waits for the user."
  (when-let* ((edit (gemini-companion-arrival-waiting))
              ;; The header line of one that is shown counts them.
              ((not (gemini-companion-edit-shown))))
    (let ((room (gemini-companion-arrival--may-show-p))
          (next (gemini-companion-arrival--continues-p edit)))
      (if (and room
               ;; Not if its question was interrupted.
               (not (eq 'ready (gemini-companion-session-state
                                (gemini-companion-edit-session edit))))
               (or (eq gemini-companion-review-arrival 'now)
                   (gemini-companion-idle-user-p)))
          (ignore (gemini-companion-arrival--show edit next))
        ;; It will be shown before that can be read.
        (unless (and room next)
          (gemini-companion-arrival--announce edit "shows"))
        room))))

(defun gemini-companion-arrival--continues-p (edit)
  "Return `next' if EDIT takes the place of the review answered last.
It is of the same CLI and turn, and the user has pressed no key since."
  (pcase gemini-companion-arrival--answered
    (`(,answered ,turn ,time ,(pred (eql num-input-keys)))
     (let ((session (gemini-companion-edit-session answered)))
       (and (or turn
                (< (- (float-time) time) gemini-companion-arrival--pause))
            (gemini-companion-session-same-p
             session (gemini-companion-edit-session edit))
            (eq turn (gemini-companion-session-turn session))
            'next)))))

(defun gemini-companion-arrival-waiting ()
  "Return the oldest edit that waits to be shown, or nil."
  (seq-find (lambda (edit)
              (not (or (gemini-companion-edit-view edit)
                       (gemini-companion-edit-problem edit))))
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

(defun gemini-companion-arrival--announce (edit does)
  "Announce EDIT once in one line, unless the minibuffer is in use.
DOES is the verb for the command that shows or selects EDIT.  That
command is never omitted."
  (let* ((objection (gemini-companion-edit-auto-objection edit))
         (text (gemini-companion-name-fit
                `((1 "Edit of ")
                  (nil ,(gemini-companion-edit-name edit
                                                    (and objection 'plain)))
                  (3 ,(if objection (format " (%s)" objection) ""))
                  (4 ,(concat " by " (gemini-companion-session-title
                                      (gemini-companion-edit-session edit))))
                  (0 ,(format "; %s %s it"
                              (substitute-command-keys
                               "\\[gemini-companion-review]")
                              does)))
                (1- (frame-width)))))
    (unless (or (active-minibuffer-window)
                (equal text (nth 1 gemini-companion-arrival--announced)))
      (gemini-companion-arrival--unannounce)
      (setq gemini-companion-arrival--announced
            (list edit text (gemini-companion-revert-announce text))))))

(defun gemini-companion-arrival--unannounce ()
  "Remove the announcement of an edit if it is still in the echo area."
  (funcall (or (nth 2 gemini-companion-arrival--announced) #'ignore))
  (setq gemini-companion-arrival--announced nil))

;;;; Showing

(defun gemini-companion-arrival--show (edit &optional select)
  "Show EDIT, and select it if SELECT is non-nil.
If that fails, show why; the CLI's own prompt can still answer it."
  (gemini-companion-windows-at-once
    (mapc #'gemini-companion-edit-finish (gemini-companion-edits-ending))
    (gemini-companion-edit-show
     edit (lambda (edit)
            (funcall gemini-companion-arrival--show-function edit select))))
  (cond ((not (gemini-companion-edit-view edit))
         (message "%s; answer in the terminal of %s"
                  (gemini-companion-edit-problem edit)
                  (gemini-companion-edit-title edit)))
        (t
         (gemini-companion-arrival--unannounce)
         (unless (or select
                     (eq edit (buffer-local-value 'gemini-companion-edit-here
                                                  (window-buffer))))
           (gemini-companion-arrival--announce edit "selects")))))

(defun gemini-companion-arrival-view (edit)
  "Show EDIT, which awaits an answer, or select it if it is shown.
If another edit is shown, put it back: it waits again, and keeps the
user's changes of its proposal."
  (gemini-companion-edit-unsettled edit)
  (if (gemini-companion-edit-view edit)
      (funcall gemini-companion-arrival--show-function edit 'select)
    (when-let* ((shown (gemini-companion-edit-shown)))
      (gemini-companion-edit-hide shown))
    (gemini-companion-arrival--show edit 'select)))

;;;; After an answer

(defun gemini-companion-arrival--after-answer (edit)
  "Show the next review in place of EDIT, which was answered from inside.
If none waits, but the CLI may propose more, EDIT stays on the screen
until it does, so that the windows do not jump."
  (let ((session (gemini-companion-edit-session edit)))
    (setq gemini-companion-arrival--answered
          (list edit (gemini-companion-session-turn session) (float-time)
                num-input-keys)))
  (gemini-companion-arrival-offer)
  (let ((next (gemini-companion-arrival-waiting)))
    (cond ((and next (gemini-companion-arrival--may-show-p)
                (not (active-minibuffer-window)))
           (gemini-companion-arrival--show next 'next))
          ((gemini-companion-arrival--next-expected-p edit)
           (gemini-companion-edit-notify edit 'waits))
          (t (gemini-companion-edit-finish edit)))))

(defun gemini-companion-arrival--next-expected-p (edit)
  "Return non-nil if the next edit may soon take the place of settled EDIT."
  (pcase gemini-companion-arrival--answered
    (`(,(pred (eq edit)) ,turn ,time . ,_)
     (let ((session (gemini-companion-edit-session edit)))
       (and (gemini-companion-arrival--continues-p edit)
            (< (- (float-time) time) gemini-companion-arrival--pause)
            (not (eq gemini-companion-review-arrival 'notify))
            (not (and turn (gemini-companion-turn-ended turn)))
            (not (and (eq 'rejected (gemini-companion-edit-decision edit))
                      (gemini-companion-clients-get (plist-get session :client)
                                                    :drops-edits)))
            ;; A question in the terminal, which the review may cover.
            (or (gemini-companion-arrival-waiting)
                (not (eq 'waiting (gemini-companion-session-state session)))
                (< (gemini-companion-session-state-since session) time)))))))

(defun gemini-companion-arrival-wait-on ()
  "Wait on for the next edit, although a key was pressed."
  (setcar (nthcdr 3 gemini-companion-arrival--answered) num-input-keys))

(provide 'gemini-companion-arrival)
;;; gemini-companion-arrival.el ends here
