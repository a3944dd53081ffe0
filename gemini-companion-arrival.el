;;; gemini-companion-arrival.el --- When a review appears  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The way of a proposal from its arrival to the screen, and of a settled one from
;; it: one timer offers new diffs to auto-accept, closes the views of settled ones
;; and shows the next one when the user is not busy, or else announces it.
;;
;; How a diff is displayed is not known here: that is an argument of
;; `gemini-companion-arrival-start'.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-diff)
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
  "Functions called with each new diff before it may be shown.
The first one that returns non-nil has settled the diff.")

;;;; State

(defvar gemini-companion-arrival--show-function #'ignore
  "Function of `gemini-companion-arrival-start' that shows a diff.")

(defvar gemini-companion-arrival--timer nil
  "Timer of `gemini-companion-arrival--tick', or nil.")

(defvar gemini-companion-arrival--answered nil
  "The review that the user answered last from inside it, until the next key.
A list of the diff, the turn of its CLI, and the time; or nil.")

(defvar gemini-companion-arrival--pause 10
  "Seconds for which a review that was answered awaits the next one.
In that time, no new prompt is expected from a CLI whose turns are not
known, as it runs outside Emacs and is not linked.")

(defvar gemini-companion-arrival--announced nil
  "The diff that was announced last, the text, and what removes it, or nil.")

;;;; Start and end

(defun gemini-companion-arrival-start (show)
  "Show new diffs by the function SHOW, and close the views of settled ones.
SHOW is called with a diff, and how it is to be selected, as by
`gemini-companion-review-show'; it returns the view."
  (setq gemini-companion-arrival--show-function show)
  (add-hook 'gemini-companion-diff-functions #'gemini-companion-arrival--follow)
  ;; A daemon may have had no frame.
  (add-hook 'server-after-make-frame-hook
            #'gemini-companion-arrival--schedule))

(defun gemini-companion-arrival-stop ()
  "Show no more diffs; views that are not closed yet are."
  (gemini-companion-arrival--stop-waiting)
  (remove-hook 'gemini-companion-diff-functions
               #'gemini-companion-arrival--follow)
  (remove-hook 'server-after-make-frame-hook
               #'gemini-companion-arrival--schedule))

(defun gemini-companion-arrival--follow (diff event)
  "Do what EVENT of DIFF requires, most of it soon."
  (pcase event
    ('answered (gemini-companion-arrival--go-on diff))
    ('settled (when (eq diff (car gemini-companion-arrival--announced))
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
  "Offer new diffs, close the views of settled ones, and show the next.
Try again soon if that has to wait until the user is idle."
  (gemini-companion-arrival-offer)
  (gemini-companion-windows-at-once
    (dolist (diff (copy-sequence gemini-companion-diff-ending))
      ;; Wait for the end of a command, of a prompt, of a drag, or of typing in
      ;; the view: keys would go to another buffer.
      (unless (or (gemini-companion-arrival--awaited-p diff)
                  (eq diff gemini-companion-diff-asking)
                  (and (gemini-companion-diff-view diff)
                       (or (not (gemini-companion-idle-between-commands-p))
                           (and (eq diff (buffer-local-value
                                          'gemini-companion-diff-here
                                          (window-buffer)))
                                (gemini-companion-idle-typing-p)))))
        (gemini-companion-diff-finish diff)))
    (when (or (gemini-companion-arrival--arrive)
              gemini-companion-diff-ending)
      (gemini-companion-arrival--schedule 0.2)))
  ;; Quit a question to the user about a diff that was settled meanwhile.
  (when (memq gemini-companion-diff-asking gemini-companion-diff-ending)
    (throw 'gemini-companion-diff-asking 'ended)))

(defun gemini-companion-arrival-offer (&optional again)
  "Run the hook that may settle each new diff without a review.
If AGAIN is non-nil, run it for all diffs that wait."
  (dolist (diff (gemini-companion-diffs))
    (when (and (eq (gemini-companion-diff-state diff) 'pending)
               (or again (not (gemini-companion-diff-auto diff))))
      (setf (gemini-companion-diff-auto diff) t)
      (with-demoted-errors "Accepting a proposal automatically: %S"
        (run-hook-with-args-until-success
         'gemini-companion-arrival-functions diff)))))

(defun gemini-companion-arrival--arrive ()
  "Show the next diff if none is shown and the user is idle.
Otherwise announce it; return non-nil if it waits for the user."
  (when-let* ((diff (gemini-companion-arrival-waiting))
              ;; The header line of one that is shown counts them.
              ((not (gemini-companion-diff-shown))))
    (let ((room (gemini-companion-arrival--room-p))
          (next (gemini-companion-arrival--goes-on-p diff)))
      (if (and room
               ;; Not if its question was interrupted.
               (not (eq 'ready (gemini-companion-session-state
                                (gemini-companion-diff-session diff))))
               (or (eq gemini-companion-review-arrival 'now)
                   (gemini-companion-idle-user-p)))
          (ignore (gemini-companion-arrival--show diff next))
        ;; It will be shown before that can be read.
        (unless (and room next)
          (gemini-companion-arrival--announce diff "shows"))
        room))))

(defun gemini-companion-arrival--goes-on-p (diff)
  "Return `next' if DIFF takes the place of the review answered last.
It is of the same CLI and turn, and the user has pressed no key since."
  (pcase gemini-companion-arrival--answered
    (`(,answered ,turn ,time)
     (let ((session (gemini-companion-diff-session answered)))
       (and (or turn
                (< (- (float-time) time) gemini-companion-arrival--pause))
            (gemini-companion-session-same-p
             session (gemini-companion-diff-session diff))
            (eq turn (gemini-companion-session-turn session))
            'next)))))

(defun gemini-companion-arrival-waiting ()
  "Return the oldest diff that waits to be shown, or nil."
  (seq-find (lambda (diff)
              (and (eq (gemini-companion-diff-state diff) 'pending)
                   (not (gemini-companion-diff-problem diff))))
            (gemini-companion-diffs)))

(defun gemini-companion-arrival--room-p ()
  "Return non-nil if a diff may be shown that the user has not chosen."
  (not (or (seq-some #'gemini-companion-diff-view
                     (remq (car gemini-companion-arrival--answered)
                           gemini-companion-diff-ending))
           (eq gemini-companion-review-arrival 'notify)
           ;; A daemon itself has an invisible frame.
           (and (daemonp) (null (cdr (frame-list)))))))

;;;; Announcement

(defun gemini-companion-arrival--announce (diff does)
  "Announce DIFF once in one line, unless the minibuffer is in use.
DOES is the verb for the command that shows or selects DIFF.  That
command is never omitted."
  (let* ((objection (gemini-companion-diff-objection diff))
         (text (gemini-companion-name-fit
                `((1 "Edit of ")
                  (nil ,(gemini-companion-diff-name diff
                                                    (and objection 'plain)))
                  (3 ,(if objection (format " (%s)" objection) ""))
                  (4 ,(concat " by " (gemini-companion-session-title
                                      (gemini-companion-diff-session diff))))
                  (0 ,(format "; %s %s it"
                              (substitute-command-keys
                               "\\[gemini-companion-review]")
                              does)))
                (1- (frame-width)))))
    (unless (or (active-minibuffer-window)
                (equal text (nth 1 gemini-companion-arrival--announced)))
      (gemini-companion-arrival--unannounce)
      (setq gemini-companion-arrival--announced
            (list diff text (gemini-companion-revert-announce text))))))

(defun gemini-companion-arrival--unannounce ()
  "Remove the announcement of a diff if it is still in the echo area."
  (funcall (or (nth 2 gemini-companion-arrival--announced) #'ignore))
  (setq gemini-companion-arrival--announced nil))

;;;; Showing

(defun gemini-companion-arrival--show (diff &optional select)
  "Show DIFF, and select it if SELECT is non-nil.
If that fails, show why; the CLI's own prompt can still answer it."
  (condition-case problem
      (gemini-companion-windows-at-once
        (gemini-companion-arrival--finish)
        (when-let* ((problem (gemini-companion-text-unreadable-reason
                              (gemini-companion-diff-file-path diff))))
          (user-error "%s %s" (gemini-companion-diff-name diff) problem))
        ;; The watch may not have noticed a change of the file yet.
        (when (gemini-companion-diff-touched-file-p diff)
          (gemini-companion-diff-set-changed diff))
        (setf (gemini-companion-diff-view diff)
              (funcall gemini-companion-arrival--show-function diff select)
              (gemini-companion-diff-state diff) 'shown
              (gemini-companion-diff-problem diff) nil))
    (error (gemini-companion-arrival--report-problem diff problem)))
  (if (not (eq (gemini-companion-diff-state diff) 'shown))
      (gemini-companion-diff-notify diff 'hidden)
    (gemini-companion-arrival--unannounce)
    (unless (or select
                (eq diff (buffer-local-value 'gemini-companion-diff-here
                                             (window-buffer))))
      (gemini-companion-arrival--announce diff "selects"))
    (gemini-companion-diff-notify diff 'shown)))

(defun gemini-companion-arrival--report-problem (diff problem)
  "Record and report PROBLEM, the error for which DIFF cannot be shown."
  (let ((text (error-message-string problem)))
    (unless (eq 'user-error (car problem))
      ;; An error in a hook of the user, for example.
      (setq text (format "Cannot show the review of %s: %s"
                         (gemini-companion-diff-name diff) text)))
    (setf (gemini-companion-diff-problem diff) text)
    (message
     "%s; answer in the terminal of %s" text
     (gemini-companion-session-title (gemini-companion-diff-session diff)))))

(defun gemini-companion-arrival-view (diff)
  "Show DIFF, which awaits an answer, or select it if it is shown.
If another diff is shown, put it back: it waits again, and keeps the
edits of its proposal."
  (gemini-companion-diff-unsettled diff)
  (gemini-companion-windows-at-once
    (cond ((eq (gemini-companion-diff-state diff) 'shown)
           (gemini-companion-diff-view-select (gemini-companion-diff-view diff)))
          (t
           (when-let* ((shown (gemini-companion-diff-shown)))
             (setf (gemini-companion-diff-state shown) 'pending)
             (gemini-companion-diff-hide shown))
           (gemini-companion-arrival--show diff 'select)))))

;;;; After an answer

(defun gemini-companion-arrival--go-on (diff)
  "Show the next review in place of DIFF, which was answered from inside.
If none waits, but the CLI may propose more, DIFF stays on the screen
until it does, so that the windows do not jump."
  (let ((session (gemini-companion-diff-session diff)))
    (setq gemini-companion-arrival--answered
          (list diff (gemini-companion-session-turn session) (float-time))))
  (add-hook 'pre-command-hook #'gemini-companion-arrival--leave)
  (gemini-companion-arrival-offer)
  (let ((next (gemini-companion-arrival-waiting)))
    (cond ((and next (gemini-companion-arrival--room-p)
                (not (active-minibuffer-window)))
           (gemini-companion-arrival--show next 'next))
          ((gemini-companion-arrival--awaited-p diff)
           (gemini-companion-diff-view-wait (gemini-companion-diff-view diff)))
          (t (gemini-companion-diff-finish diff)))))

(defun gemini-companion-arrival--awaited-p (diff)
  "Return non-nil if the next edit may soon take the place of settled DIFF."
  (pcase gemini-companion-arrival--answered
    (`(,(pred (eq diff)) ,turn ,time)
     (let ((session (gemini-companion-diff-session diff)))
       (and (gemini-companion-arrival--goes-on-p diff)
            (< (- (float-time) time) gemini-companion-arrival--pause)
            (not (eq gemini-companion-review-arrival 'notify))
            (not (and turn (gemini-companion-turn-ended turn)))
            (not (and (eq 'rejected (gemini-companion-diff-state diff))
                      (gemini-companion-clients-get (plist-get session :client)
                                                    :drops-edits)))
            ;; A question in the terminal, which the review may cover.
            (or (gemini-companion-arrival-waiting)
                (not (eq 'waiting (gemini-companion-session-state session)))
                (< (gemini-companion-session-state-since session) time)))))))

(defun gemini-companion-arrival--leave ()
  "Close the review that was answered last; the key does what it does then.
A key of the review does no more.  A click does what it does in the
windows that the user sees, and the review is closed after that, or
after a prompt."
  (let ((awaits (memq (car gemini-companion-arrival--answered)
                      gemini-companion-diff-ending))
        (click (consp (car-safe (cdr-safe last-command-event)))))
    (gemini-companion-arrival--stop-waiting)
    (when (and awaits (not click) (not (active-minibuffer-window)))
      (unless (string-match-p "\\`gemini-companion-\\(?:diff\\|review\\)-"
                              (format "%s" this-command))
        (setq unread-command-events (append (this-command-keys-vector)
                                            unread-command-events)))
      (setq this-command #'ignore)
      (gemini-companion-arrival--finish))))

(defun gemini-companion-arrival--stop-waiting ()
  "Expect no review in place of the one that was answered last."
  (setq gemini-companion-arrival--answered nil)
  (remove-hook 'pre-command-hook #'gemini-companion-arrival--leave))

(defun gemini-companion-arrival--finish ()
  "Close the views of all settled diffs."
  (mapc #'gemini-companion-diff-finish
        (copy-sequence gemini-companion-diff-ending)))

(provide 'gemini-companion-arrival)
;;; gemini-companion-arrival.el ends here
