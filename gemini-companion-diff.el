;;; gemini-companion-diff.el --- Proposals and their one outcome  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A diff is an edit that a CLI proposes to one file.  It begins with
;; `gemini-companion-diff-open' as `pending', is `shown' when the user is free
;; to see it, and ends once: `accepted', `rejected', or `dismissed' because the
;; CLI closed it or has exited.  One function settles a diff, so that an outcome
;; is sent exactly once.  While a diff is open, its file is watched.
;;
;; When and how a diff is displayed, and how its outcome is sent, is not known
;; here.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-hunk)
(require 'gemini-companion-idle)
(require 'gemini-companion-name)
(require 'gemini-companion-revert)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)

;;;; Customization

(defgroup gemini-companion-reviews nil
  "Reviews of proposed edits."
  :group 'gemini-companion)

(defcustom gemini-companion-diff-opened-functions nil
  "Functions called with each diff when it is shown, also when it is again."
  :type 'hook
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-diff-closed-functions nil
  "Functions called with each diff after it ended.
`gemini-companion-diff-state' returns its outcome."
  :type 'hook
  :package-version '(gemini-companion . "0.1.0"))

;;;; Keys

(define-minor-mode gemini-companion-review-mode
  "Answer a proposal of a CLI.
\\{gemini-companion-review-mode-map}"
  :lighter nil
  :keymap (make-sparse-keymap))
(put 'gemini-companion-review-mode 'permanent-local t)

;;;; State

(cl-defstruct (gemini-companion-diff
               (:constructor gemini-companion-diff--make)
               (:copier nil))
  "An edit that a CLI proposes.
FILE-PATH is the path as the CLI sent it, PROPOSED-TEXT the text that
it proposes, PROPOSAL-BUFFER the live buffer of that text, which the
user may edit.  STATE is `pending', `shown', `accepted', `rejected' or
`dismissed'.  AUTO is nil until the diff was offered to auto-accept,
and then t, `accepted' or a string."
  id session file-path proposed-text proposal-buffer (state 'pending)
  (watch nil :documentation "The watch of its file.")
  (remarks nil :documentation "What is to be known of its file: a list of
`changed' since the proposal, `new' and `not-utf-8' when it was read last.")
  (auto nil :documentation "Why it is not auto-accepted, or a symbol.")
  (view nil :documentation "Its view on the screen, or nil.")
  (acknowledged nil :documentation "Whether the CLI knows that it is open.")
  (problem nil :documentation "Why it cannot be shown, or was closed, a \
string, or nil.")
  (hunks nil :documentation "Its hunks, once they are known; see \
gemini-companion-hunk.el.")
  (commented nil :documentation "Alist of places and comments of the user.")
  (accepted-text nil :documentation "The text that was accepted, or nil."))

(cl-defgeneric gemini-companion-diff-view-select (view)
  "Select VIEW, the view of a diff.")

(cl-defgeneric gemini-companion-diff-view-refresh (view)
  "Update VIEW, the view of a diff whose file has changed.")

(cl-defgeneric gemini-companion-diff-view-wait (view)
  "Display that VIEW, whose diff was answered, awaits the next diff.")

(cl-defgeneric gemini-companion-diff-view-close (view)
  "Close VIEW, the view of a diff, but leave the proposal alone.")

(defvar gemini-companion-diff--open nil
  "The unsettled diffs, oldest first.")

(defvar gemini-companion-diff--send #'ignore
  "Function called with each diff that was accepted or rejected.
If it signals an error, the diff stays open.")

(defvar gemini-companion-diff-functions nil
  "Functions called with a diff and what has happened to it.
That is `opened', `shown', `hidden' or `changed' while it is open;
`accepting' before it is accepted and its file may be written;
`settled' when it has ended, `answered' after that if the user has
settled it from inside, and `closed' when its view is closed; and in
the end `written' or `unwritten'.  These functions must be fast.  An
error in one is only reported.")

(defvar gemini-companion-diff-asking nil
  "The diff about which the user is being asked, or nil.")

(defvar gemini-companion-diff-ending nil
  "The settled diffs whose views are still to be closed.")

(defvar gemini-companion-diff--kept nil
  "The last ten texts that were edited or accepted, and not written.
An alist of files and texts, the last one first.")

(defvar-local gemini-companion-diff-here nil
  "The diff that this buffer belongs to, or nil.")
(put 'gemini-companion-diff-here 'permanent-local t)

;;;; Diffs

(defun gemini-companion-diffs (&optional session)
  "Return the diffs that await an answer, oldest first.
If SESSION is non-nil, return only its diffs."
  (seq-filter (lambda (diff)
                (or (null session)
                    (gemini-companion-session-same-p
                     session (gemini-companion-diff-session diff))))
              gemini-companion-diff--open))

(defun gemini-companion-diff-of-id (id)
  "Return the diff ID if it awaits an answer, or nil."
  (cl-find id gemini-companion-diff--open :key #'gemini-companion-diff-id))

(defun gemini-companion-diff-text (diff)
  "Return the text that accepting DIFF sends.
It is the proposal as the user has edited it, without the excluded
hunks."
  (gemini-companion-hunk-remaining-text
   (gemini-companion-diff-proposal-buffer diff)))

(defun gemini-companion-diff-edited-p (diff)
  "Return non-nil if the user has edited the proposal of DIFF."
  (let ((proposal (gemini-companion-diff-proposal-buffer diff)))
    (and (buffer-modified-p proposal)
         (not (equal (gemini-companion-diff-proposed-text diff)
                     (gemini-companion-text-of-buffer proposal))))))

(defun gemini-companion-diff-emptied-p (diff)
  "Return non-nil if the user has left no text of the proposal of DIFF."
  (let ((proposal (gemini-companion-diff-proposal-buffer diff)))
    (and (or (zerop (buffer-size proposal))
             (gemini-companion-hunk-marks proposal))
         (string-empty-p (gemini-companion-diff-text diff))
         (not (string-empty-p (gemini-companion-diff-proposed-text diff))))))

(defun gemini-companion-diff--own-text-p (diff text)
  "Return non-nil if TEXT is neither empty nor the proposal of DIFF."
  (not (member text (list "" (gemini-companion-diff-proposed-text diff)))))

(defun gemini-companion-diff-objection (diff)
  "Return why DIFF was not accepted automatically, or nil."
  (let ((auto (gemini-companion-diff-auto diff)))
    (and (stringp auto) auto)))

(defun gemini-companion-diff-counts (diff)
  "Return the numbers of DIFF, or nil if its hunks are not known yet.
A list (HUNKS EXCLUDED ADDED REMOVED), the last two in lines."
  (when-let* ((hunks (gemini-companion-diff-hunks diff)))
    (gemini-companion-hunk-counts
     hunks (gemini-companion-diff-proposal-buffer diff))))

(defun gemini-companion-diff-comments (diff)
  "Return the comments on DIFF, an alist of (SIDE . LINE) and texts.
SIDE is `before' for a removed line, whose number in the file is LINE,
or `after' for another one, whose number in the proposal it is now."
  (mapcar (pcase-lambda (`((,side . ,line) . ,text))
            (when (markerp line)
              (setq line (gemini-companion-text-line (marker-buffer line) line)))
            (cons (cons side line) text))
          (gemini-companion-diff-commented diff)))

(defun gemini-companion-diff-comment (diff place text)
  "Make TEXT the comment on PLACE, a cons (SIDE . LINE), of DIFF.
If TEXT is nil, delete that comment.  It follows edits of the proposal."
  (setf (gemini-companion-diff-commented diff)
        (cl-loop for comment in (gemini-companion-diff-commented diff)
                 for (other) in (gemini-companion-diff-comments diff)
                 unless (equal place other) collect comment))
  (when text
    (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
      (push (cons (pcase place
                    (`(after . ,line)
                     ;; A line that is inserted before it is another one.
                     (cons 'after
                           (copy-marker (gemini-companion-hunk-line line) t)))
                    (_ place))
                  text)
            (gemini-companion-diff-commented diff)))))

(defun gemini-companion-diff-name (diff &optional plain)
  "Return the name of the file of DIFF for the user.
With PLAIN non-nil, without warnings; see `gemini-companion-name'."
  (gemini-companion-name (gemini-companion-diff-file-path diff)
                         (gemini-companion-diff-session diff)
                         plain))

(defvar-local gemini-companion-diff-compared nil
  "Tick of this proposal when its hunks were found last.")
(put 'gemini-companion-diff-compared 'permanent-local t)

(defun gemini-companion-diff-summary (diff &optional plain)
  "Return the name of the file of DIFF, and its amount of change if known.
For PLAIN, see `gemini-companion-diff-name'."
  (concat (gemini-companion-diff-name diff plain)
          (pcase (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
                   (and (eql gemini-companion-diff-compared
                             (buffer-chars-modified-tick))
                        (gemini-companion-diff-counts diff)))
            (`(,hunks ,excluded ,added ,removed)
             (format ": %s (%s)"
                     (if (zerop excluded)
                         (format (ngettext "%d hunk" "%d hunks" hunks) hunks)
                       (format "%d of %d hunks" (- hunks excluded) hunks))
                     (gemini-companion-hunk-lines added removed))))))

(defun gemini-companion-diff-open-p (diff)
  "Return non-nil if DIFF awaits an answer."
  (memq (gemini-companion-diff-state diff) '(pending shown)))

(defun gemini-companion-diff-shown ()
  "Return the diff that is shown, or nil."
  (cl-find 'shown gemini-companion-diff--open
           :key #'gemini-companion-diff-state))

(defun gemini-companion-diff-current ()
  "Return the diff of the current buffer, else the one that is shown."
  (or gemini-companion-diff-here
      (gemini-companion-diff-shown)
      (user-error "No review is displayed")))

;;;; Opening

(defun gemini-companion-diff-start (send)
  "Follow frames and files, and call SEND with each diff that is answered."
  (setq gemini-companion-diff--send send)
  (gemini-companion-revert-start)
  (add-hook 'delete-frame-functions #'gemini-companion-diff--frame-deleted)
  (add-hook 'kill-emacs-query-functions #'gemini-companion-diff-drop-edits-p))

(defun gemini-companion-diff-stop (state &optional now)
  "Settle all diffs with STATE, and stop following the frames.
Close their views at once if NOW is non-nil, as Emacs is about to
exit; else between two commands."
  (remove-hook 'delete-frame-functions #'gemini-companion-diff--frame-deleted)
  (remove-hook 'kill-emacs-query-functions #'gemini-companion-diff-drop-edits-p)
  (dolist (diff (gemini-companion-diffs))
    (with-demoted-errors "Ending a review: %S"
      (gemini-companion-diff--keep-edits diff)
      (gemini-companion-diff--settle diff state)
      (when now
        (gemini-companion-diff-finish diff))))
  (gemini-companion-revert-stop))

(defun gemini-companion-diff-drop-edits-p (&optional diff)
  "Return non-nil if the edits of DIFF may be dropped, by default of all diffs.
Ask the user if there are any and a question is possible."
  (let ((edited (seq-filter (lambda (diff)
                              (and (gemini-companion-diff-open-p diff)
                                   (gemini-companion-diff-edited-p diff)))
                            (if diff (list diff) (gemini-companion-diffs)))))
    (or (null edited)
        noninteractive
        inhibit-interaction
        (yes-or-no-p
         (format "Reject the proposal for %s and drop your edits? "
                 (mapconcat (lambda (diff)
                              (gemini-companion-diff-name diff 'plain))
                            edited ", "))))))

(defun gemini-companion-diff--frame-deleted (frame)
  "Reject the diff that FRAME alone displays, as FRAME is being deleted."
  (when-let* ((diff (gemini-companion-diff-shown)))
    (when (equal (list frame)
                 (seq-uniq (cl-loop for window in (window-list-1 nil nil t)
                                    when (eq diff (buffer-local-value
                                                   'gemini-companion-diff-here
                                                   (window-buffer window)))
                                    collect (window-frame window))))
      (gemini-companion-diff--reject-aside diff))))

(defun gemini-companion-diff--reject-aside (diff)
  "Reject DIFF, whose view is going away, and keep its edits."
  (let ((kept (gemini-companion-diff--keep-edits diff)))
    (gemini-companion-diff--settle diff 'rejected)
    (gemini-companion-diff-finish diff)
    (message (if kept "%s; %s shows your edits" "%s")
             (gemini-companion-diff--rejected diff)
             (substitute-command-keys "\\[gemini-companion-last-proposal]"))))

(defun gemini-companion-diff-open (id session file-path proposal)
  "Open a diff that proposes PROPOSAL as the text of FILE-PATH.
PROPOSAL is a string, or a function that fills the current buffer with
the text.  ID is an integer that names the diff; SESSION is a plist with
the `:id' of the CLI.  An open diff of that CLI for that file is
replaced; its edited text is kept."
  (let ((previous
         (cl-find file-path (gemini-companion-diffs session)
                  :key #'gemini-companion-diff-file-path :test #'equal))
        (diff (gemini-companion-diff--make
               :id id :session session :file-path file-path)))
    (when previous
      (gemini-companion-diff--keep-edits
       previous "New proposal for %s; %s shows your edits of the previous one")
      (gemini-companion-diff--settle previous 'dismissed))
    (gemini-companion-diff--make-buffer diff proposal)
    (setf (gemini-companion-diff-watch diff)
          (gemini-companion-watch-start
           file-path
           (lambda (changed now)
             (and changed (gemini-companion-diff--file-changed diff now)))))
    (setq gemini-companion-diff--open
          (append gemini-companion-diff--open (list diff)))
    ;; The rest is done later: the server is waiting for the answer.
    (gemini-companion-diff-notify diff 'opened)
    t))

(defun gemini-companion-diff-notify (diff event)
  "Call `gemini-companion-diff-functions' with DIFF and EVENT.
Call also the functions that the user has for it."
  (force-mode-line-update t)
  (run-hook-wrapped 'gemini-companion-diff-functions
                    (lambda (function)
                      (with-demoted-errors "Following the reviews: %S"
                        (ignore (funcall function diff event)))))
  (with-demoted-errors "A function of the review hooks failed: %S"
    (pcase event
      ('shown (run-hook-with-args 'gemini-companion-diff-opened-functions
                                  diff))
      ('closed (run-hook-with-args 'gemini-companion-diff-closed-functions
                                   diff)))))

(defun gemini-companion-diff--make-buffer (diff proposal)
  "Make the buffer with the PROPOSAL of DIFF.
It visits no file, so that nothing locks, saves or formats it.  If
PROPOSAL cannot be read, no buffer is left."
  (with-current-buffer (generate-new-buffer
                        (format "*gemini proposal: %s*"
                                (gemini-companion-diff-name diff 'plain)))
    ;; The nearest directory that exists.
    (setq default-directory
          (let ((file-name-handler-alist nil))
            (or (locate-dominating-file (gemini-companion-diff-file-path diff)
                                        #'file-directory-p)
                "/")))
    (condition-case problem
        (let ((inhibit-modification-hooks t)
              (buffer-undo-list t))
          (if (stringp proposal)
              (insert proposal)
            (funcall proposal)))
      (error
       (kill-buffer)
       (signal (car problem) (cdr problem))))
    (set-buffer-modified-p nil)
    (goto-char (point-min))
    (gemini-companion-diff-adopt diff)
    (setf (gemini-companion-diff-proposal-buffer diff) (current-buffer)
          (gemini-companion-diff-proposed-text diff)
          (gemini-companion-text-of-buffer))))

(defun gemini-companion-diff-adopt (diff)
  "Make the current buffer one of DIFF's: add its keys and its hook.
Killing the buffer rejects DIFF, and asks before that if it was edited."
  (setq gemini-companion-diff-here diff)
  (with-demoted-errors "Hook of the review: %S"
    (gemini-companion-review-mode))
  (add-hook 'kill-buffer-query-functions #'gemini-companion-diff--kill-p nil t)
  (add-hook 'kill-buffer-hook #'gemini-companion-diff--buffer-killed nil t))
(put 'gemini-companion-diff--kill-p 'permanent-local-hook t)
(put 'gemini-companion-diff--buffer-killed 'permanent-local-hook t)

(defun gemini-companion-diff-discard (buffer)
  "Kill BUFFER if it is live, without settling its diff."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (set-buffer-modified-p nil)
      (setq-local gemini-companion-diff-here nil
                  kill-buffer-query-functions nil)
      (condition-case nil
          (kill-buffer)
        (error
         ;; A hook of the user has failed, perhaps after the buffer was killed.
         (when (buffer-live-p buffer)
           (setq-local kill-buffer-hook nil)
           (kill-buffer)))))))

(defun gemini-companion-diff--ends-here ()
  "Return the open diff that ends if this buffer is killed, or nil.
That is not the diff of an indirect buffer."
  (and gemini-companion-diff-here
       (not (buffer-base-buffer))
       (gemini-companion-diff-open-p gemini-companion-diff-here)
       gemini-companion-diff-here))

(defun gemini-companion-diff--kill-p ()
  "Return non-nil if this buffer of a review may be killed."
  (let ((diff (gemini-companion-diff--ends-here)))
    (or (null diff) (gemini-companion-diff-drop-edits-p diff))))

(defun gemini-companion-diff--buffer-killed ()
  "Reject the diff whose buffer is being killed, if it is still open."
  (when-let* ((diff (gemini-companion-diff--ends-here)))
    (gemini-companion-diff--reject-aside diff)))

;;;; Settling

(defun gemini-companion-diff-close (id reason)
  "Dismiss the diff ID and return the text of its proposal buffer.
If it was settled at the same moment, return nil.  REASON is `closed' if
the CLI closed the diff, `exited' if the process of the CLI has exited,
`disconnected' if the CLI has not reconnected in time, `interrupted' if
it no longer asks about it, and `lost' if the server gave up the diff."
  (when-let* ((diff (gemini-companion-diff-of-id id))
              (text (gemini-companion-diff-text diff)))
    (let ((kept (gemini-companion-diff--keep-edits diff)))
      (when (and (eq reason 'interrupted) (not kept))
        (gemini-companion-diff-keep diff text))
      (when (eq reason 'closed)
        (when (gemini-companion-diff-emptied-p diff)
          (message
           "You emptied the proposal for %s; if you answered yes \
in the terminal, %s writes its own text"
           (gemini-companion-diff-name diff)
           (gemini-companion-session-title
            (gemini-companion-diff-session diff))))
        (gemini-companion-diff--expect diff text))
      (gemini-companion-diff--settle diff 'dismissed)
      (when (memq reason '(interrupted disconnected))
        ;; The CLI may still wait for its outcome.
        (funcall gemini-companion-diff--send diff))
      (unless (memq reason '(closed lost))
        (setf (gemini-companion-diff-problem diff)
              (message (concat "%s %s; review closed, %s not written"
                               (and kept "; %s shows your edits"))
                       (gemini-companion-session-name
                        (gemini-companion-diff-session diff))
                       reason
                       (gemini-companion-diff-name diff)
                       (substitute-command-keys
                        "\\[gemini-companion-last-proposal]")))))
    text))

(defun gemini-companion-diff--expect (diff text)
  "Follow the file of DIFF, whose review ended with TEXT, until it is written.
If the user has edited TEXT, report a file that has the proposed text.
If DIFF is accepted, report a file that is not written."
  (let ((file (gemini-companion-diff-file-path diff)))
    (gemini-companion-revert-expect
     file
     (lambda (written)
       (cond ((not written)
              ;; A user who interrupts Gemini CLI leaves a review that it ignores.
              (when (eq 'accepted (gemini-companion-diff-state diff))
                (gemini-companion-diff-keep
                 diff text "%s was accepted a minute ago but was not written; \
%s shows the text")))
             ((gemini-companion-text-same-written-p
               text (gemini-companion-text-read file))
              (setq gemini-companion-diff--kept
                    (delete (cons file text) gemini-companion-diff--kept)))
             (t (gemini-companion-diff--report-unedited diff text)))
       (gemini-companion-diff-notify diff (if written 'written 'unwritten))
       (gemini-companion-diff--display-file))
     (not (eq 'accepted (gemini-companion-diff-auto diff)))))
  ;; Qwen Code writes before it closes the review.
  (when (gemini-companion-diff-touched-file-p diff)
    (gemini-companion-diff--report-unedited diff text)))

(defun gemini-companion-diff--report-unedited (diff text)
  "Report if the file of DIFF has the proposed text, and the user's is TEXT.
Return non-nil if so."
  (when (and (gemini-companion-diff--own-text-p diff text)
             (gemini-companion-diff--as-proposed-p diff))
    (gemini-companion-diff-keep
     diff text "%s was written without your edits; %s shows them")))

(defun gemini-companion-diff--keep-edits (diff &optional format)
  "Keep the proposal of DIFF if the user has edited it and left some text.
Report that by FORMAT, if it was not kept before, and return non-nil."
  (when (buffer-live-p (gemini-companion-diff-proposal-buffer diff))
    (let ((text (gemini-companion-diff-text diff)))
      (when (and (gemini-companion-diff--own-text-p diff text)
                 ;; A yes in the terminal may have written it.
                 (not (gemini-companion-text-same-written-p
                       text (or (gemini-companion-diff--file-text diff) ""))))
        (gemini-companion-diff-keep
         diff text
         (unless (member (cons (gemini-companion-diff-file-path diff) text)
                         gemini-companion-diff--kept)
           format))
        t))))

(defun gemini-companion-diff-keep (diff text &optional format)
  "Keep TEXT, of DIFF, for `gemini-companion-last-proposal'.
Report that by FORMAT, which has places for the name of the file and a
key, if it is non-nil."
  (let ((new (cons (gemini-companion-diff-file-path diff) text)))
    (setq gemini-companion-diff--kept
          (seq-take (cons new (delete new gemini-companion-diff--kept)) 10))
    (when format
      (message
       format (gemini-companion-diff-name diff 'plain)
       (substitute-command-keys "\\[gemini-companion-last-proposal]")))))

(defun gemini-companion-diff--settle (diff state)
  "Move open DIFF to STATE and send its outcome, unless it is dismissed.
A settled diff is not changed.  Its view is still to be closed."
  (when (gemini-companion-diff-open-p diff)
    (let ((previous (gemini-companion-diff-state diff)))
      (setf (gemini-companion-diff-state diff) state)
      (when (memq state '(accepted rejected))
        (condition-case problem
            (funcall gemini-companion-diff--send diff)
          ((error quit)
           ;; The diff can be answered again.
           (setf (gemini-companion-diff-state diff) previous
                 (gemini-companion-diff-accepted-text diff) nil)
           (signal (car problem) (cdr problem))))))
    (gemini-companion-watch-end (gemini-companion-diff-watch diff))
    (setq gemini-companion-diff--open
          (delq diff gemini-companion-diff--open))
    (gemini-companion-diff-notify diff 'settled)
    (push diff gemini-companion-diff-ending)))

(defun gemini-companion-diff-finish (diff)
  "Close the view and the proposal of settled DIFF."
  (setq gemini-companion-diff-ending
        (delq diff gemini-companion-diff-ending))
  ;; The user may have typed in it since it was dismissed.
  (when (eq 'dismissed (gemini-companion-diff-state diff))
    (gemini-companion-diff--keep-edits
     diff "Review of %s closed; %s shows your edits"))
  (gemini-companion-diff-hide diff)
  (gemini-companion-diff-discard (gemini-companion-diff-proposal-buffer diff))
  (gemini-companion-diff-notify diff 'closed)
  (gemini-companion-diff--display-file))

(defun gemini-companion-diff--display-file ()
  "Display the file that was written last, unless the windows are of reviews."
  (unless (or gemini-companion-diff--open gemini-companion-diff-ending)
    (gemini-companion-revert-display)))

(defun gemini-companion-diff-hide (diff)
  "Close the view of DIFF, if it has one."
  (when-let* ((view (gemini-companion-diff-view diff)))
    (setf (gemini-companion-diff-view diff) nil)
    (gemini-companion-diff-view-close view)))

;;;; Commands

(defun gemini-companion-diff-accept (&optional diff)
  "Accept DIFF with the text in its proposal buffer.
The CLI then writes that text to the file.  Without DIFF, take
the review of the current buffer, else the one that is shown."
  (interactive)
  (let ((diff (gemini-companion-diff-unsettled diff)))
    (when (gemini-companion-diff-emptied-p diff)
      (user-error "An empty text cannot be accepted: the CLI would write \
its own text; reject the proposal, or leave at least one character"))
    (unless (gemini-companion-diff--objection diff)
      (gemini-companion-diff-take diff)
      (gemini-companion-diff--answered
       diff (concat "Accepted "
                    (gemini-companion-diff-summary diff 'plain))))))

(defun gemini-companion-diff--answered (diff text)
  "Close the view of DIFF, which the user has settled, and report TEXT.
If the user is in the review, it may stay until the next one takes its
place."
  (if (and real-this-command (gemini-companion-diff-view diff)
           (eq diff gemini-companion-diff-here))
      (gemini-companion-diff-notify diff 'answered)
    (gemini-companion-diff-finish diff))
  (let ((left (length gemini-companion-diff--open)))
    (message "%s%s" text
             (if (zerop left) "" (format "; %d more waiting" left)))))

(defun gemini-companion-diff-take (diff)
  "Accept DIFF with the text in its proposal buffer, without a question."
  ;; A text of 1 MB would trigger a garbage collection, which takes longer than
  ;; anything else.
  (let ((gc-cons-threshold (max gc-cons-threshold (* 256 1024 1024)))
        (text (gemini-companion-diff-text diff)))
    (gemini-companion-diff-notify diff 'accepting)
    (gemini-companion-diff--expect diff text)
    ;; Until it is written.
    (when (gemini-companion-diff--own-text-p diff text)
      (gemini-companion-diff-keep diff text))
    (setf (gemini-companion-diff-accepted-text diff) text)
    (gemini-companion-diff--settle diff 'accepted)))

(defun gemini-companion-diff-reject (&optional diff)
  "Reject DIFF, so that the CLI does not write the file.
Without DIFF, take the review of the current buffer, else the one
that is shown."
  (interactive)
  (let ((diff (gemini-companion-diff-unsettled diff)))
    (gemini-companion-diff--settle diff 'rejected)
    (gemini-companion-diff--answered diff
                                     (gemini-companion-diff--rejected diff))))

(defun gemini-companion-diff--rejected (diff)
  "Return a report that DIFF was rejected, and what its CLI does then."
  (let ((client (plist-get (gemini-companion-diff-session diff) :client)))
    (concat "Rejected " (gemini-companion-diff-name diff 'plain)
            (and (gemini-companion-clients-get client :drops-edits)
                 (format "; %s drops its other edits of this answer"
                         (gemini-companion-clients-title client))))))

(defun gemini-companion-diff-unsettled (diff)
  "Return DIFF, or the current one if it is nil, if it awaits an answer."
  (let ((diff (or diff (gemini-companion-diff-current))))
    (unless (gemini-companion-diff-open-p diff)
      (user-error "This review has ended already: %s"
                  (gemini-companion-diff-state diff)))
    diff))

(defun gemini-companion-diff-ask (diff ask)
  "Return the user's answer about DIFF, the value of calling ASK.
If DIFF is settled meanwhile, `gemini-companion-arrival--tick' quits the
question; then return nil."
  (let ((answer (let ((gemini-companion-diff-asking diff))
                  (catch 'gemini-companion-diff-asking
                    (funcall ask)))))
    (if (not (eq answer 'ended))
        answer
      ;; In place of the question.
      (message "%s" (or (gemini-companion-diff-problem diff)
                        "This review has ended already"))
      (gemini-companion-diff-finish diff)
      nil)))

(defun gemini-companion-last-proposal-p ()
  "Return non-nil if `gemini-companion-last-proposal' has a text."
  gemini-companion-diff--kept)

(defvar gemini-companion-diff--number 0
  "Number of the kept text that was shown last, from 0 on.")

;;;###autoload
(defun gemini-companion-last-proposal ()
  "Show the last text that you edited or accepted and that was not written.
It is of a review that you answered in the terminal of the CLI, that
another proposal replaced, or that ended in another way than by your
answer.  After an interrupt of the CLI, it need not be edited.  Call
this again there for the text before, up to ten of them."
  (interactive)
  (unless gemini-companion-diff--kept
    (user-error "No unwritten proposal to show"))
  (let ((count (length gemini-companion-diff--kept))
        (buffer (get-buffer-create "*gemini last proposal*")))
    (setq gemini-companion-diff--number
          (if (eq buffer (window-buffer))
              (% (1+ gemini-companion-diff--number) count)
            0))
    (pcase-let ((`(,file . ,text) (nth gemini-companion-diff--number
                                       gemini-companion-diff--kept))
                (inhibit-read-only t))
      (pop-to-buffer buffer)
      (special-mode)
      (erase-buffer)
      (insert text)
      (goto-char (point-min))
      (message "%s, %d of %d" (abbreviate-file-name file)
               (1+ gemini-companion-diff--number) count))))

;;;; Changed files

(defun gemini-companion-diff-set-changed (diff)
  "Record that the text of the file of DIFF has changed, or may have."
  (cl-pushnew 'changed (gemini-companion-diff-remarks diff)))

(defun gemini-companion-diff--file-text (diff)
  "Return the text of the file of DIFF with plain line ends, or nil."
  (ignore-error file-error
    (gemini-companion-text-plain
     (gemini-companion-text-read (gemini-companion-diff-file-path diff)))))

(defun gemini-companion-diff--as-proposed-p (diff)
  "Return non-nil if the file of open DIFF has the proposed text.
CLIs keep the line ends that a file had."
  (equal (gemini-companion-text-plain
          (gemini-companion-diff-proposed-text diff))
         (gemini-companion-diff--file-text diff)))

(defun gemini-companion-diff--objection (diff)
  "Return non-nil if the user objects to accepting DIFF.
Ask only if the CLI would write over a change of the file."
  ;; A large file counts as written if it is as at the previous check.
  (dotimes (_ 2)
    (gemini-companion-watch-check (gemini-companion-diff-watch diff) 'now))
  (or (not (gemini-companion-diff-open-p diff))
      (and (memq 'changed (gemini-companion-diff-remarks diff))
           (not (equal (gemini-companion-diff-text diff)
                       (gemini-companion-diff--file-text diff)))
           (not (gemini-companion-diff-ask
                 diff
                 (lambda ()
                   (yes-or-no-p
                    (format "%s has changed since the edit was proposed; \
accept anyway? "
                            (gemini-companion-diff-name diff)))))))))

(defun gemini-companion-diff-touched-file-p (diff)
  "Return non-nil if the file of DIFF was touched since the proposal."
  (not (equal (gemini-companion-watch-first (gemini-companion-diff-watch diff))
              (gemini-companion-watch-stamp
               (gemini-companion-diff-file-path diff)))))

(defun gemini-companion-diff--file-changed (diff now)
  "Follow a change of the file of DIFF; return nil if that has to wait.
If the file has the proposed text, dismiss DIFF, else compare its view
again, between two commands unless NOW is non-nil."
  (cond ((gemini-companion-diff--as-proposed-p diff)
         (gemini-companion-diff--settle diff 'dismissed)
         (gemini-companion-revert (gemini-companion-diff-file-path diff))
         (unless (gemini-companion-diff--report-unedited
                  diff (gemini-companion-diff-text diff))
           (message "%s already has the proposed text; review closed \
(if %s still prompts, answer there)"
                    (gemini-companion-diff-name diff)
                    (gemini-companion-session-title
                     (gemini-companion-diff-session diff))))
         t)
        ((or now (gemini-companion-idle-between-commands-p))
         (with-demoted-errors "Reading a proposed file again: %S"
           (if-let* ((view (gemini-companion-diff-view diff)))
               (gemini-companion-diff-view-refresh view)
             (gemini-companion-diff-set-changed diff)))
         t)))

(provide 'gemini-companion-diff)
;;; gemini-companion-diff.el ends here
