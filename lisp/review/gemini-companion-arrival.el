;;; gemini-companion-arrival.el --- When a review appears  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Display requests after they arrive, and close the views of answered edits.  One
;; timer offers new edits to auto-accept, closes views, and displays the next request
;; when the user is not busy; otherwise it announces an edit.
;;
;; A review begins by itself only where the user waits for it, in the terminal of the
;; CLI; elsewhere, the overview displays the row of the edit.  An answered review stays
;; for a few seconds and ignores keys, until the next edit of its CLI takes its windows.
;; No other kind of request is ever selected by itself: keys that were typed for edits
;; would answer it.

;;; Code:

(require 'gemini-companion-auto)
(require 'gemini-companion-client)
(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-idle)
(require 'gemini-companion-label)
(require 'gemini-companion-proposal)
(require 'gemini-companion-request)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-view)
(require 'gemini-companion-windows)

(defvar gemini-companion-review-view)

;;;; Customization

(defcustom gemini-companion-review-arrival 'when-idle
  "Occasion on which a proposed edit appears.
`when-idle' waits until nothing was typed for a moment, and no prompt,
macro or search is active.  Then the review by Ediff begins if the
terminal of the CLI is selected; otherwise the overview displays the
edit, in another window than the selected one.  `now' does not wait,
except for the end of a prompt, a macro or a search, and always begins
the review.  `notify' only announces the edit until you type
\\[gemini-companion-review].

In a review that began by itself, only \\<gemini-companion-review-mode-map>\
\\[gemini-companion-edit-accept] and \\[gemini-companion-edit-reject] answer;
\\[gemini-companion-review], or a click, enables the letters."
  :type '(choice (const :tag "When Emacs is idle" when-idle)
                 (const :tag "At once" now)
                 (const :tag "On request" notify))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

;;;; State

(defvar gemini-companion-arrival--timer (timer-create)
  "Timer of `gemini-companion-arrival--tick'.")

(defvar gemini-companion-arrival-as-row-function #'ignore
  "Function that returns non-nil if the user sees each request as a row.
What arrives is only announced then, and no window is displayed for it.")

(defvar gemini-companion-arrival--answer nil
  "Last answer of the user in a review, a list (EDIT REQUESTED KEYS), or nil.
REQUESTED is non-nil if the user had asked for that review.  KEYS is the number
of input events until the answer.")

(defvar gemini-companion-arrival-seconds 5
  "Seconds for which an answered review stays, and waits for the next edit.")

(defvar gemini-companion-arrival--announced nil
  "Last announcement, (EDIT TEXT REMOVE), or nil.
REMOVE is a function that removes TEXT from the echo area.")

;;;; Start and end

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'arrival)))
  "Show new requests, and close the views of decided edits."
  '((delete-frame-functions gemini-companion-arrival--frame-deleted)
    (gemini-companion-request-functions gemini-companion-arrival--follow)
    (window-buffer-change-functions gemini-companion-arrival--windows-changed)
    ;; A daemon may have had no frame.
    (server-after-make-frame-hook gemini-companion-arrival--schedule)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'arrival)))
  "Forget the last answer."
  (setq gemini-companion-arrival--answer nil))

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

(defun gemini-companion-arrival--follow (request event)
  "Handle EVENT of REQUEST; see `gemini-companion-request-functions'.
After a view is closed, the next one may be displayed."
  (if (eq event 'answered)
      (gemini-companion-arrival--after-answer request)
    (when (and (eq event 'closed)
               (eq request (car gemini-companion-arrival--announced)))
      (gemini-companion-arrival--unannounce))
    (gemini-companion-arrival--schedule)))

(defun gemini-companion-arrival--windows-changed (_frame)
  "Run the timer soon if a request waits to appear.
The review that was displayed instead may be gone."
  (when (seq-some #'gemini-companion-request-waits-to-appear-p
                  (gemini-companion-requests))
    (gemini-companion-arrival--schedule)))

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
  (gemini-companion-arrival--close-decided)
  (when (or (if-let* ((edit (gemini-companion-arrival--staying)))
                (gemini-companion-arrival--continue edit)
              (gemini-companion-arrival--show-next))
            (gemini-companion-edits-ending))
    (gemini-companion-arrival--schedule 0.2)))

(defun gemini-companion-arrival--close-decided ()
  "Close the views of decided edits, unless the user is busy.
Wait for the end of a command, a prompt, a drag, or typing in the view, since
keys would go to another buffer.  One may stay for the next edit."
  (dolist (edit (remq (gemini-companion-arrival--staying)
                      (gemini-companion-edits-ending)))
    (unless (and (gemini-companion-edit-view edit)
                 (not (if (eq edit (buffer-local-value 'gemini-companion-edit-here
                                                       (window-buffer)))
                          (gemini-companion-idle-user-p)
                        (gemini-companion-idle-between-commands-p))))
      (gemini-companion-proposal-finish edit))))

(defun gemini-companion-arrival--show-next ()
  "Display the next request if no review is displayed and the user is idle.
Otherwise announce the next edit.  Return non-nil if the request waits until
the user is idle."
  (when-let* ((request (seq-find #'gemini-companion-request-waits-to-appear-p
                                 (gemini-companion-requests)))
              ;; The header line of a displayed edit counts the others.
              ((not (gemini-companion-edit-shown))))
    (let* ((row (and (if (gemini-companion-edit-p request)
                         (and gemini-companion-review-view
                              (not (gemini-companion-arrival--begins-p request)))
                       t)
                     (funcall gemini-companion-arrival-as-row-function)))
           (allowed (not (or row
                             (eq gemini-companion-review-arrival 'notify)
                             ;; A daemon without clients has only an invisible frame.
                             (and (daemonp) (null (cdr (frame-list))))))))
      (if (and allowed
               ;; If the CLI is ready, the user has interrupted its question.
               (not (eq 'ready (gemini-companion-session-state
                                (gemini-companion-request-session request))))
               (if (eq gemini-companion-review-arrival 'now)
                   ;; At the end of a prompt, Emacs restores the windows.
                   (and (gemini-companion-idle-between-commands-p)
                        (not executing-kbd-macro)
                        (not defining-kbd-macro))
                 (gemini-companion-idle-user-p))
               (not (with-current-buffer (window-buffer) (use-region-p))))
          (ignore (gemini-companion-request-appear request))
        (when-let* ((edit (gemini-companion-arrival--waiting)))
          (gemini-companion-arrival--announce edit)
          (when row
            (gemini-companion-edit-set-appeared edit)
            (gemini-companion-request-follow edit)))
        allowed))))

(defun gemini-companion-arrival--begins-p (edit)
  "Return non-nil if the review of EDIT begins by itself.
That is if the user waits in the terminal of its CLI, or always wants it; or
has asked for the last review of that CLI, and typed nothing since the answer."
  (and (or (eq gemini-companion-review-arrival 'now)
           (eq (window-buffer)
               (gemini-companion-session-terminal
                (gemini-companion-edit-session edit)))
           (pcase gemini-companion-arrival--answer
             (`(,answered ,requested ,(pred (eql num-nonmacro-input-events)))
              (and requested
                   (gemini-companion-session-same-p
                    (gemini-companion-edit-session edit)
                    (gemini-companion-edit-session answered))))))
       (gemini-companion-arrival--ediff-p edit)))

(defun gemini-companion-arrival--ediff-p (edit)
  "Return non-nil if the review of EDIT is that of Ediff, and not its row."
  (and (eq gemini-companion-review-view 'ediff)
       (not (gemini-companion-arrival-row-reason edit))))

(defun gemini-companion-arrival-row-reason (edit)
  "Return why Ediff cannot show EDIT on the selected frame, a phrase, or nil.
Its row in the overview shows it."
  (cond ((and (< (frame-height) gemini-companion-windows-review-lines)
              ;; It has one text.
              (not (gemini-companion-edit-new-p edit)))
         (format "the frame has less than %d lines"
                 gemini-companion-windows-review-lines))
        ((seq-some (lambda (buffer)
                     (and (buffer-live-p buffer)
                          (< 4000 (nth 1 (buffer-line-statistics buffer)))))
                   ;; The original of a large file is read when the review begins.
                   (list (gemini-companion-edit-original-buffer edit)
                         (gemini-companion-edit-proposal-buffer edit)))
         "a line has more than 4,000 bytes")))

(defun gemini-companion-arrival--waiting ()
  "Return the oldest edit that waits to be shown, or nil."
  (seq-find #'gemini-companion-request-waits-to-appear-p
            (gemini-companion-edits-open)))

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

(defun gemini-companion-arrival-view (edit requested)
  "Display the review of EDIT, which awaits an answer, or select it.
If another review is displayed, hide it: it waits again, and keeps the changes
that the user has made to its proposal.  REQUESTED is nil if the review begins
by itself.  If it cannot be displayed, report the reason; the user can still
answer in the overview or in the terminal."
  (gemini-companion-edit-open-or-error edit)
  (let ((view (gemini-companion-edit-view edit)))
    (if (and view
             (gemini-companion-windows-show-p (gemini-companion-view-windows view)
                                              (gemini-companion-view-buffers view)))
        (gemini-companion-view-follow view 'select)
      ;; At its end, Emacs restores the windows of its beginning, which may be those of
      ;; a review that this closes.
      (when (active-minibuffer-window)
        (user-error "No review begins during a prompt; end that first"))
      (when-let* ((shown (gemini-companion-edit-shown)))
        (gemini-companion-proposal-hide shown))
      (mapc #'gemini-companion-proposal-finish (gemini-companion-edits-ending))
      (gemini-companion-proposal-show edit requested)
      (if (gemini-companion-edit-view edit)
          (gemini-companion-arrival--unannounce)
        (funcall (if requested #'user-error #'message)
                 "%s; answer in %sthe terminal of %s"
                 (gemini-companion-edit-problem edit)
                 (if (fboundp 'gemini-companion-list) "the overview or " "")
                 (gemini-companion-session-title
                  (gemini-companion-edit-session edit)))))))

;;;; An edit as a request

(cl-defmethod gemini-companion-request-show ((edit gemini-companion-edit))
  "Begin or select the review of EDIT, or go to its row, as the user prefers."
  (unless (and (null (gemini-companion-edit-view edit))
               (not (gemini-companion-arrival--ediff-p edit))
               (gemini-companion-request-show-row edit 'select))
    (gemini-companion-arrival-view edit 'requested)))

(cl-defmethod gemini-companion-request-appear ((edit gemini-companion-edit))
  "Begin the review of EDIT if the user waits for it; else display its row.
If there are no reviews, only report that."
  (if (or (null gemini-companion-review-view)
          (gemini-companion-arrival--begins-p edit))
      (gemini-companion-arrival-view edit nil)
    (gemini-companion-edit-set-appeared edit)
    (gemini-companion-request-show-row edit nil)
    (gemini-companion-arrival--announce edit)))

;;;; After an answer

(defun gemini-companion-arrival--after-answer (edit)
  "Begin the next review after EDIT was answered in its review, or wait for it.
Until then the review of EDIT stays, so that no key becomes text.  If the CLI
proposes no more, or reviews begin only on request, restore the windows."
  (let ((view (gemini-companion-edit-view edit)))
    (gemini-companion-auto-offer)
    (setq gemini-companion-arrival--answer
          (list edit (gemini-companion-view-requested view)
                num-nonmacro-input-events))
    (gemini-companion-view-follow view 'stay)
    (cond ((not (gemini-companion-arrival--staying))
           (gemini-companion-proposal-finish edit))
          ((gemini-companion-arrival--next edit)
           (gemini-companion-arrival--begin-next edit))
          (t
           (gemini-companion-arrival--schedule 0.2))))
  (when (and (input-pending-p) (not defining-kbd-macro) (not executing-kbd-macro))
    (discard-input)
    (gemini-companion-idle-announce
     (format "Keys ignored: %s has been answered"
             (gemini-companion-edit-name edit 'plain)))))

(defun gemini-companion-arrival--staying ()
  "Return the answered edit whose review stays for the next one, or nil.
It stays for a few seconds while it is selected, unless the turn has ended, a
CLI asks something else, or the next one is a row."
  (when-let* ((edit (car gemini-companion-arrival--answer))
              (view (gemini-companion-edit-view edit))
              ((eq 'ediff gemini-companion-review-view))
              ((not (eq 'notify gemini-companion-review-arrival)))
              ((eq (car (gemini-companion-view-buffers view))
                   (window-buffer (or (minibuffer-selected-window)
                                      (selected-window)))))
              ((not (gemini-companion-turn-ended (gemini-companion-edit-turn edit))))
              ((let ((next (gemini-companion-arrival--next edit)))
                 (or (null next) (gemini-companion-arrival--ediff-p next))))
              ((not (and (eq 'rejected (gemini-companion-edit-answer edit))
                         (gemini-companion-client-drops-edits-p
                          (gemini-companion-edit-client edit)))))
              (since (gemini-companion-edit-since edit))
              ((gemini-companion-idle-since-p since gemini-companion-arrival-seconds))
              ((not (seq-some (lambda (request)
                                (and (not (gemini-companion-edit-p request))
                                     (< since (gemini-companion-request-since request))))
                              (gemini-companion-requests-certain)))))
    edit))

(defun gemini-companion-arrival--next (edit)
  "Return the edit to review after EDIT, the oldest one of its CLI, or nil."
  (seq-find (lambda (next)
              (and (not (gemini-companion-edit-problem next))
                   (gemini-companion-session-same-p
                    (gemini-companion-edit-session edit)
                    (gemini-companion-edit-session next))))
            (gemini-companion-edits-open)))

(defun gemini-companion-arrival--continue (edit)
  "Begin the next review in place of that of EDIT, which stays, if one waits.
Wait until the user is idle, but not if no key was typed since the answer."
  (when (and (gemini-companion-arrival--next edit)
             (if (eql num-nonmacro-input-events
                      (nth 2 gemini-companion-arrival--answer))
                 (gemini-companion-idle-between-commands-p)
               (gemini-companion-idle-user-p)))
    (gemini-companion-arrival--begin-next edit)))

(defun gemini-companion-arrival--begin-next (edit)
  "Begin the review of the edit after EDIT, in the same windows.
The user has asked for it if that is so of the review of EDIT, and no key was
typed since the answer."
  (let ((next (gemini-companion-arrival--next edit)))
    (pcase-let ((`(,_ ,requested ,keys) gemini-companion-arrival--answer))
      (gemini-companion-arrival-view next nil)
      (when-let* ((requested)
                  ((eql keys num-nonmacro-input-events))
                  (view (gemini-companion-edit-view next)))
        (gemini-companion-view-follow view 'select)))))

(provide 'gemini-companion-arrival)
;;; gemini-companion-arrival.el ends here
