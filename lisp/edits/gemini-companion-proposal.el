;;; gemini-companion-proposal.el --- From a proposal to its outcome  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Open, decide and close a proposal.  A CLI proposes an edit
;; (`gemini-companion-proposal-open').  A view displays it, and the user accepts or
;; rejects it; or the CLI closes it, or the file gets the proposed text.  The answer
;; is set once, by `gemini-companion-proposal--decide', so that the outcome is sent
;; exactly once; then the view is closed (`gemini-companion-proposal-finish').
;;
;; An outcome is kept until the server reports that it was written to the CLI, since
;; the server may crash before that.

;;; Code:

(require 'gemini-companion-attribution)
(require 'gemini-companion-choice)
(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-garbage)
(require 'gemini-companion-hunk)
(require 'gemini-companion-idle)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-view)
(require 'gemini-companion-watch)

;;;; State

(defvar gemini-companion-proposal-reject-function #'ignore
  "Function that may reject an edit, for example with a reason.
It is called with the edit when the user types the key to reject it, and
returns non-nil if it has rejected the edit.")

(defvar gemini-companion-proposal-unsent-function #'ignore
  "Function that returns how many comments on an edit were not sent, or nil.
It is called with the edit before that is accepted.")

;;;; Opening

(cl-defmethod gemini-companion-server-receive
  ((_method (eql 'open-diff)) id facts file proposal)
  "Open the edit ID, by which the CLI of FACTS proposes PROPOSAL for FILE.
For FACTS, see `gemini-companion-session-from-facts'."
  (gemini-companion-proposal-open id (gemini-companion-session-from-facts facts)
                                  file proposal))

(defun gemini-companion-proposal-open (id session file proposal)
  "Open an edit that proposes PROPOSAL as the text of FILE.
ID is an integer that names the edit; SESSION is that of the CLI.  Replace an
open edit of that CLI for that file, and keep its text if the user has edited
it.  If its texts cannot be compared, signal an error, and open nothing: the
server displays it, and the user answers in the terminal of the CLI."
  (let ((previous (cl-find file (gemini-companion-edits-open session)
                           :key #'gemini-companion-edit-file :test #'equal))
        (edit (gemini-companion-edit-make :id id :session session :file file
                                          :proposed proposal)))
    (when previous
      (gemini-companion-proposal--keep-edits
       previous (format "New proposal for %s replaces the one that you edited"
                        (gemini-companion-edit-name previous 'plain)))
      (gemini-companion-proposal--decide previous 'dismissed))
    (with-current-buffer
        (setf (gemini-companion-edit-proposal-buffer edit)
              (gemini-companion-edit-texts-make-buffer edit "*gemini proposal: %s*"
                                                       proposal))
      (add-hook 'after-change-functions #'gemini-companion-edit-hunks-edited nil t))
    (gemini-companion-attribution-end-others edit)
    (gemini-companion-garbage-later
      (when-let* ((text (gemini-companion-edit-texts-read edit)))
        ;; Decoding a large text again would take as long as reading it.
        (gemini-companion-edit-texts-original edit text))
      (gemini-companion-proposal--compare edit))
    (setf (gemini-companion-edit-watch edit)
          (gemini-companion-watch-start
           file
           (lambda (_watch changed occasion)
             (and changed
                  (gemini-companion-proposal--file-changed edit occasion)))
           nil 'lasting))
    (gemini-companion-edit-add edit)
    ;; Views appear later: the server is waiting for the value of this function.
    (gemini-companion-edit-notify edit 'opened)
    t))

(defun gemini-companion-proposal--compare (edit)
  "Compare the texts of EDIT, which is new; if diff fails, discard its buffers.
A file that is too large to keep is read and compared when it is displayed."
  (when (gemini-companion-edit-known-p edit)
    (condition-case err
        (gemini-companion-edit-hunks-update edit)
      (gemini-companion-text-not-compared
       (gemini-companion-edit-discard (gemini-companion-edit-original-buffer edit))
       (gemini-companion-edit-discard (gemini-companion-edit-proposal-buffer edit))
       (signal (car err) (cdr err))))))

(defun gemini-companion-proposal--file-changed (edit occasion)
  "Handle a change of the file of EDIT; return nil to try again later.
If the file has the proposed text, dismiss EDIT.  Otherwise, update its view:
between two commands if OCCASION is nil, see `gemini-companion-watch-check'."
  (cond ((gemini-companion-edit-texts-in-file-p edit
                                                (gemini-companion-edit-proposed edit))
         (gemini-companion-proposal--decide edit 'dismissed)
         (unless (gemini-companion-edit-texts-edited-p edit)
           (message "%s already has the proposed text; review closed \
(if %s still prompts, answer there)"
                    (gemini-companion-edit-name edit)
                    (gemini-companion-edit-title edit)))
         t)
        ((or occasion (gemini-companion-idle-between-commands-p))
         (gemini-companion-edit-texts-read edit)
         (gemini-companion-edit-notify edit 'file-changed)
         t)))

;;;; Display

(defun gemini-companion-proposal-show (edit requested)
  "Display EDIT in a view, and report the result as an event.
For REQUESTED, see `gemini-companion-view-show'; if that signals an error,
record it as the problem of EDIT."
  (setf (gemini-companion-edit-problem edit) nil)
  (condition-case problem
      (progn
        (when-let* ((reason (gemini-companion-text-unreadable-reason
                             (gemini-companion-edit-file edit))))
          (user-error "%s %s" (gemini-companion-edit-name edit) reason))
        ;; The watch may not have noticed a change of the file yet.
        (when (gemini-companion-watch-touched-p
               (gemini-companion-edit-watch edit))
          (gemini-companion-edit-texts-read edit))
        (gemini-companion-view-show edit requested))
    (error
     (gemini-companion-edit-texts-discard-original edit)
     (setf (gemini-companion-edit-problem edit)
           (concat
            ;; Other errors come from elsewhere, for example a hook of the user.
            (unless (eq 'user-error (car problem))
              (format "Cannot show the review of %s: "
                      (gemini-companion-edit-name edit)))
            (gemini-companion-text-problem problem)))))
  (gemini-companion-edit-notify
   edit (if (gemini-companion-edit-view edit) 'shown 'hidden)))

(defun gemini-companion-proposal-hide (edit)
  "Close the view of EDIT, if it has one."
  (when (gemini-companion-edit-view edit)
    (gemini-companion-edit-notify edit 'hide)
    (gemini-companion-edit-notify edit 'hidden)))

(defun gemini-companion-proposal-ask (edit ask)
  "Call ASK, which asks the user about EDIT, and return the answer.
If EDIT ended meanwhile, report that and return nil."
  (let ((answer (funcall ask)))
    (if (gemini-companion-edit-open-p edit)
        answer
      (message "%s" (or (gemini-companion-edit-problem edit)
                        "This review has ended already"))
      nil)))

;;;; Ending

(defun gemini-companion-proposal--decide (edit answer &optional overwrite)
  "Set the ANSWER to EDIT, and send the outcome, unless it is `dismissed'.
Do nothing if EDIT was decided before.  The caller must close the view.
OVERWRITE is nil, or the accepted text, by which Emacs overwrites the text that
the CLI writes."
  (when (gemini-companion-edit-open-p edit)
    (gemini-companion-attribution-end-others edit)
    (gemini-companion-proposal--decide-and-send edit answer overwrite)
    (gemini-companion-watch-stop (gemini-companion-edit-watch edit))
    (when (memq answer '(dismissed rejected))
      (gemini-companion-proposal--read-refused edit))
    (setf (gemini-companion-edit-since edit) (float-time))
    (gemini-companion-edit-notify edit 'decided)))

(defun gemini-companion-proposal--decide-and-send (edit answer overwrite)
  "Set the ANSWER to EDIT, await its write, and send its outcome.
For OVERWRITE, see `gemini-companion-proposal--decide'.  If the outcome cannot
be sent, or the user quits meanwhile, EDIT stays open, and can be answered
again."
  (gemini-companion-attribution-await edit answer overwrite)
  (setf (gemini-companion-edit-answer edit) answer)
  (gemini-companion-edit-texts-set-after edit (gemini-companion-edit-text edit))
  (unless (eq answer 'dismissed)
    (let ((sent nil))
      (unwind-protect
          (progn (gemini-companion-proposal--send edit)
                 (setq sent t))
        (unless sent
          (gemini-companion-attribution-forget edit)
          (setf (gemini-companion-edit-answer edit) nil)
          (gemini-companion-edit-texts-set-after edit nil))))))

(defun gemini-companion-proposal--read-refused (edit)
  "Read the text before EDIT, which was refused, if its file has changed.
But if the CLI has already written the file, only record that."
  ;; Copilot CLI may write the file after the last check.  If its text were read as
  ;; the text before, the edit would have no changes.
  (when (and (gemini-companion-watch-touched-p (gemini-companion-edit-watch edit))
             (not (gemini-companion-attribution-record-early-write edit)))
    (gemini-companion-edit-texts-read edit)))

(cl-defmethod gemini-companion-server-receive ((_method (eql 'close-diff)) id reason)
  "Close the edit ID for REASON; see `gemini-companion-proposal-close'."
  (when-let* ((edit (gemini-companion-edit-of-id id)))
    (gemini-companion-proposal-close edit reason)))

(defun gemini-companion-proposal-close (edit reason)
  "Dismiss EDIT if it is open, and return its text.
REASON is `closed' if the CLI closed the review, `exited' if its process
has exited, `disconnected' if it has not reconnected in time,
`interrupted' if it no longer asks, and `lost' if the server gave up."
  (when-let* (((gemini-companion-edit-open-p edit))
              (text (gemini-companion-edit-text edit)))
    (let* ((problem (unless (memq reason '(closed lost))
                      (format "%s %s; review closed, %s not written"
                              (gemini-companion-session-name
                               (gemini-companion-edit-session edit))
                              reason (gemini-companion-edit-name edit))))
           (kept (gemini-companion-proposal--keep-edits
                  edit (or problem (gemini-companion-proposal--closed edit)))))
      (when (and (eq reason 'closed) (gemini-companion-edit-texts-emptied-p edit))
        (message
         "Empty proposal for %s was not sent; after a yes in the terminal, \
%s writes its original text"
         (gemini-companion-edit-name edit) (gemini-companion-edit-title edit)))
      (gemini-companion-proposal--decide edit 'dismissed)
      (when (memq reason '(interrupted disconnected))
        ;; The CLI may still wait for its outcome.
        (gemini-companion-proposal--send edit))
      (when problem
        (setf (gemini-companion-edit-problem edit) problem)
        (unless kept
          (message "%s" problem))))
    text))

(cl-defmethod gemini-companion-request-interrupted ((edit gemini-companion-edit))
  "Dismiss EDIT."
  (gemini-companion-proposal-close edit 'interrupted))

(defun gemini-companion-proposal--take (edit answer)
  "Accept EDIT with its text; ANSWER is `accepted' or `automatic'."
  ;; A text of 1 MB would trigger a garbage collection, the slowest step of all.
  (gemini-companion-garbage-later
    (let ((text (gemini-companion-edit-text edit)))
      (gemini-companion-edit-texts-read edit)
      (gemini-companion-proposal--decide
       edit answer
       (and (gemini-companion-edit-texts-by-user-p edit text)
            (gemini-companion-client-writes-own-text-p
             (gemini-companion-edit-client edit))
            text)))))

(defun gemini-companion-proposal-offer (edit reason)
  "Accept EDIT without a review, unless REASON is non-nil.
REASON says why EDIT must be reviewed, a string, which is recorded."
  (setf (gemini-companion-edit-review-reason edit) reason)
  (unless reason
    (gemini-companion-proposal--take edit 'automatic)))

(defun gemini-companion-proposal-finish (edit)
  "Close the view and the buffers of EDIT, which has ended."
  ;; The user may have typed in the proposal since EDIT was dismissed.
  (when (eq 'dismissed (gemini-companion-edit-answer edit))
    (gemini-companion-proposal--keep-edits
     edit (gemini-companion-proposal--closed edit)))
  (gemini-companion-proposal-hide edit)
  (gemini-companion-edit-discard (gemini-companion-edit-proposal-buffer edit))
  (setf (gemini-companion-edit-proposal-buffer edit) nil)
  (gemini-companion-edit-texts-discard-original edit)
  (gemini-companion-edit-notify edit 'closed))

(defun gemini-companion-proposal-decide-all (answer &optional now)
  "Set ANSWER for all open edits.
Dismiss the edits that an extension will propose again to the next server.
Close the views between two commands, or at once if NOW is non-nil."
  (mapc #'gemini-companion-attribution-keep-awaited (gemini-companion-edits))
  (dolist (edit (gemini-companion-edits-open))
    (gemini-companion-log-guarded "Ending a review"
      (gemini-companion-proposal--keep-edits
       edit (gemini-companion-proposal--closed edit))
      (gemini-companion-proposal--decide
       edit (if (gemini-companion-client-extended-p
                 (gemini-companion-edit-client edit))
                'dismissed
              answer))
      (when now
        (gemini-companion-proposal-finish edit)))))

;;;; Killing a buffer

(defun gemini-companion-proposal--guard ()
  "Make killing the current buffer, a new buffer of a review, end the review.
If the edit is open, it is rejected, after a question if the user has edited
the proposal.  A member of `gemini-companion-edit-adopt-hook'."
  (add-hook 'kill-buffer-query-functions #'gemini-companion-proposal--kill-p nil t)
  (add-hook 'kill-buffer-hook #'gemini-companion-proposal--buffer-killed nil t))
(put 'gemini-companion-proposal--kill-p 'permanent-local-hook t)
(put 'gemini-companion-proposal--buffer-killed 'permanent-local-hook t)

(defun gemini-companion-proposal--ends-here ()
  "Return the edit whose review ends if this buffer is killed, or nil.
Killing an indirect buffer ends no review."
  (and gemini-companion-edit-here
       (not (buffer-base-buffer))
       (gemini-companion-edit-proposal-buffer gemini-companion-edit-here)
       gemini-companion-edit-here))

(defun gemini-companion-proposal--kill-p ()
  "Return non-nil if the current buffer of a review may be killed.
Ask if the user's text in an open edit would be dropped."
  (let ((edit (gemini-companion-proposal--ends-here)))
    (or (null edit) (gemini-companion-edit-answer edit)
        (gemini-companion-proposal-ask
         edit (lambda () (gemini-companion-proposal-drop-p edit))))))

(defun gemini-companion-proposal--buffer-killed ()
  "Close the review whose buffer is being killed; reject it if it is open."
  (when-let* ((edit (gemini-companion-proposal--ends-here)))
    (let* ((rejected (and (gemini-companion-edit-open-p edit)
                          (gemini-companion-proposal--rejected edit)))
           (kept (and rejected
                      (gemini-companion-proposal--keep-edits edit rejected))))
      (gemini-companion-proposal--decide edit 'rejected)
      (gemini-companion-proposal-finish edit)
      (when (and rejected (not kept))
        (message "%s" rejected)))))

(defun gemini-companion-proposal-drop-p (&optional edit)
  "Return non-nil if the edits by the user in the proposal of EDIT may be dropped.
EDIT is by default each open edit.  If there are edits by the user, ask, unless
Emacs is not interactive."
  (let ((edited (seq-filter #'gemini-companion-edit-texts-edited-p
                            (if edit
                                (list edit)
                              (gemini-companion-edits-open)))))
    (or (null edited)
        noninteractive
        (gemini-companion-choice-yes-or-no-p
         (format "Reject the proposal for %s and discard your edits? "
                 (mapconcat (lambda (edit)
                              (gemini-companion-edit-name edit 'plain))
                            edited ", "))))))

(defun gemini-companion-proposal--closed (edit)
  "Return a message that the review of EDIT was closed."
  (format "Review of %s closed" (gemini-companion-edit-name edit 'plain)))

(defun gemini-companion-proposal--keep-edits (edit problem)
  "Add the proposal of EDIT to the kill ring if the user has edited it.
Display PROBLEM, and return non-nil, if so.  Do nothing if the proposal was
emptied, or if its text is in the kill ring already."
  (when-let* ((proposal (gemini-companion-edit-proposal-buffer edit))
              ((buffer-live-p proposal))
              (text (gemini-companion-hunk-remaining-text proposal))
              ((gemini-companion-edit-texts-by-user-p edit text))
              ;; A yes in the terminal may have written that text.
              ((not (gemini-companion-edit-texts-in-file-p edit text)))
              ((not (member text kill-ring))))
    (gemini-companion-text-keep text problem)
    t))

;;;; Outcomes

(defun gemini-companion-proposal--send (edit)
  "Send the outcome of EDIT, which has ended, to the server, and keep it.
A text is sent only if EDIT was accepted.  Signal an error if the server
cannot be called."
  (pcase-let (((cl-struct gemini-companion-edit id after reason) edit))
    ;; After a quit here, the user answers again.
    (apply #'gemini-companion-server-call
           (if (gemini-companion-edit-accepted-p edit)
               (list 'diff-accepted id after)
             (cons 'diff-rejected (cons id (and reason (list reason)))))))
  (setf (gemini-companion-edit-outcome edit) 'sent))

(cl-defmethod gemini-companion-server-receive ((_method (eql 'diff-opened)) id)
  "Record that the CLI has the answer that the edit ID is open."
  (when-let* ((edit (gemini-companion-edit-of-id id)))
    (setf (gemini-companion-edit-acknowledged edit) t)))

(cl-defmethod gemini-companion-server-receive ((_method (eql 'outcome-written)) id)
  "Drop the outcome of the edit ID, which was written to its CLI."
  (when-let* ((edit (gemini-companion-edit-of-id id)))
    (setf (gemini-companion-edit-outcome edit) nil)))

(cl-defmethod gemini-companion-server-receive
  ((_method (eql 'outcome-undelivered)) id)
  "Warn that the accepted text of the edit ID can no longer reach its CLI."
  (when-let* ((edit (gemini-companion-edit-of-id id))
              ((gemini-companion-edit-outcome edit))
              ((null (gemini-companion-edit-file-state edit)))
              ((gemini-companion-edit-written-p edit)))
    (let ((problem (format "%s was not written: %s %s"
                           (gemini-companion-edit-name edit)
                           (gemini-companion-session-name
                            (gemini-companion-edit-session edit))
                           (if (gemini-companion-session-connected-p
                                (gemini-companion-edit-session edit))
                               "is no longer waiting for the answer"
                             "is no longer connected"))))
      (display-warning 'gemini-companion problem)
      (gemini-companion-attribution-keep-accepted edit problem))
    (gemini-companion-attribution-set-unwritten edit))
  (gemini-companion-server-receive 'outcome-written id))

;;;; Answers

(defun gemini-companion-proposal-check ()
  "Signal a `user-error' unless the user has seen the edits at point; return nil.
Commands that answer call this if they are called interactively: a key, a menu,
`repeat' or \\[execute-extended-command] may have been for what was there before."
  (let ((edits (gemini-companion-edits-to-answer)))
    (gemini-companion-view-check (or gemini-companion-edits-view
                                     (gemini-companion-edit-view (car edits)))))
  nil)

(defun gemini-companion-proposal--answer (edit verb function)
  "Call FUNCTION with EDIT, or by default with each open edit at point.
If there are several edits, ask for confirmation with VERB."
  (let ((edits (gemini-companion-edits-to-answer edit))
        (view gemini-companion-edits-view))
    (when (or (null (cdr edits))
              (gemini-companion-choice-y-or-n-p
               (format "%s %d proposals? " verb (length edits))))
      ;; An edit may end during a question about another edit.
      (dolist (edit edits)
        (when (gemini-companion-edit-open-p edit)
          (funcall function edit)))
      (gemini-companion-view-follow view 'answered))))

(defun gemini-companion-proposal--accept (edit)
  "Accept EDIT by a command, unless the user declines a question about it.
Signal a `user-error' if the text is empty."
  (let ((shown (gemini-companion-edit-text edit)))
    (when (gemini-companion-edit-texts-emptied-p edit shown)
      (user-error "Empty text cannot be accepted, as the CLI would write its \
original text; reject the proposal, or leave at least one character"))
    (unless (or (gemini-companion-proposal--unsent-refused-p edit)
                (gemini-companion-proposal--refused-p edit)
                (gemini-companion-proposal--change-refused-p edit shown))
      (let ((summary (gemini-companion-edit-hunks-summary edit 'plain)))
        (gemini-companion-proposal--take edit 'accepted)
        (gemini-companion-proposal--answered edit (concat "Accepted " summary))))))

(defun gemini-companion-proposal--unsent-refused-p (edit)
  "Return non-nil if EDIT must stay open for comments that were not sent."
  (let ((count (or (funcall gemini-companion-proposal-unsent-function edit) 0)))
    (and (< 0 count)
         (not (gemini-companion-proposal-ask
               edit
               (lambda ()
                 (gemini-companion-choice-y-or-n-p
                  (format (ngettext "Accept %s, although your comment is not sent? "
                                    "Accept %s, although your comments are not sent? "
                                    count)
                          (gemini-companion-edit-name edit)))))))))

(defun gemini-companion-proposal--change-refused-p (edit shown)
  "Return non-nil if EDIT no longer has the text SHOWN, and the user declines it.
A comparison, or what has happened during a question, may have restored excluded
hunks."
  (and (not (equal shown (gemini-companion-edit-text edit)))
       (not (gemini-companion-proposal-ask
             edit
             (lambda ()
               (gemini-companion-choice-yes-or-no-p
                (format "Proposal for %s has changed, and has %s now; accept anyway? "
                        (gemini-companion-edit-name edit)
                        (gemini-companion-edit-hunks-lines (list edit)))))))))

(defun gemini-companion-proposal--refused-p (edit)
  "Return non-nil if the user declines to accept EDIT.
Ask only if the CLI would overwrite a change of the file, or lose characters."
  ;; A large file is complete if its stamp is the same at two checks.
  (dotimes (_ 2)
    (gemini-companion-watch-check (gemini-companion-edit-watch edit) 'command))
  (or (not (gemini-companion-edit-open-p edit))
      (and (memq 'changed (gemini-companion-edit-remarks edit))
           (not (gemini-companion-proposal-ask
                 edit
                 (lambda ()
                   (gemini-companion-choice-yes-or-no-p
                    (format "%s has changed since the edit was proposed; accept anyway? "
                            (gemini-companion-edit-name edit)))))))
      (gemini-companion-proposal--loss-refused-p edit)))

(defun gemini-companion-proposal--loss-refused-p (edit)
  "Return non-nil if the user declines the loss of characters by EDIT."
  (gemini-companion-edit-hunks-update edit)
  (when-let* ((loss (gemini-companion-edit-hunks-loss edit)))
    (not (gemini-companion-proposal-ask
          edit
          (lambda ()
            (gemini-companion-choice-yes-or-no-p
             (format "%s is %s; accept anyway? "
                     (gemini-companion-edit-name edit) loss)))))))

(defun gemini-companion-proposal--answered (edit text)
  "Close the view of EDIT, which the user has decided; report TEXT in one line.
If that was answered by a command in the view, the next one may follow."
  (let ((inside (and real-this-command (gemini-companion-edit-view edit)
                     (eq edit gemini-companion-edit-here)))
        (left (length (gemini-companion-edits-open)))
        ;; At its end, the minibuffer restores the windows of its beginning, and with
        ;; them a view that was closed meanwhile.
        (prompt (active-minibuffer-window)))
    (unless (or prompt inside)
      (gemini-companion-proposal-finish edit))
    (unless (zerop left)
      (setq text (format "%s; %d more waiting" text left)))
    (message "%s" (gemini-companion-names-shown text (1- (frame-width))))
    (when (and inside (not prompt))
      (gemini-companion-edit-notify edit 'answered))))

(defun gemini-companion-proposal--rejected (edit)
  "Return the message that EDIT was rejected."
  (concat "Rejected " (gemini-companion-edit-name edit 'plain)
          (and (gemini-companion-client-drops-edits-p
                (gemini-companion-edit-client edit))
               (format "; %s discards its other edits of this response"
                       (gemini-companion-edit-title edit)))))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'proposal)))
  "End a review whose buffer is killed."
  '((gemini-companion-edit-adopt-hook gemini-companion-proposal--guard)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'proposal)))
  "Drop the outcomes that no CLI has received, as the server ends."
  (dolist (edit (gemini-companion-edits))
    (setf (gemini-companion-edit-outcome edit) nil)))

(cl-defmethod gemini-companion-part-unfinished ((_part (eql 'proposal)))
  "Return which proposals wait for an answer, and which the user has edited."
  (mapcar (lambda (edit)
            (format (if (gemini-companion-edit-texts-edited-p edit)
                        "Your edits of the proposal for %s are not written"
                      "The proposal for %s waits for an answer")
                    (gemini-companion-edit-name edit 'plain)))
          (gemini-companion-edits-open)))

(cl-defmethod gemini-companion-part-ready ((_part (eql 'proposal)) how)
  "Hand over the edits to a new server, which became ready HOW.
Send the open edits, and those whose outcome was not written, with the outcome.
Close an open edit whose CLI does not know that there is a review: that CLI asks
in its terminal."
  (pcase-dolist ((and edit (cl-struct gemini-companion-edit id session file
                                      proposed answer outcome acknowledged))
                 (gemini-companion-edits))
    ;; A text may be too large to send, which must not affect other reviews.
    (gemini-companion-log-guarded "Handing over a review"
      (cond ((or outcome (and acknowledged (null answer)))
             (gemini-companion-server-call
              'adopt-diff id (gemini-companion-session-facts session) file proposed)
             (when outcome
               (gemini-companion-proposal--send edit)))
            ;; Closing an edit that has ended does nothing.
            (t (gemini-companion-proposal-close edit 'disconnected)))))
  (when (and (eq how 'recovered) (gemini-companion-sessions))
    (display-warning
     'gemini-companion
     (concat "Server crashed and was restarted.  Answer open reviews in Emacs, \
as their terminals do not take an answer.  What shell commands wrote meanwhile is \
not marked."
             (when-let* ((remedy (gemini-companion-session-reconnect
                                  "if that does not reconnect")))
               (format "  Then %s; it opens no reviews until then." remedy))))))

;;;; Commands

(defun gemini-companion-edit-accept (&optional edit)
  "Accept EDIT with the text in its proposal buffer.
The CLI then writes that text to the file.  EDIT is by default each edit
at point in the overview; elsewhere that of the review in the current
buffer, or of the displayed review."
  (interactive (gemini-companion-proposal-check))
  (gemini-companion-proposal--answer edit "Accept"
                                     #'gemini-companion-proposal--accept))

(defun gemini-companion-edit-reject (&optional edit)
  "Reject EDIT, so that the CLI does not write the file.
EDIT is by default each edit at point in the overview; elsewhere that of
the review in the current buffer, or of the displayed review.  Comments
are sent as the reason."
  (interactive (gemini-companion-proposal-check))
  (gemini-companion-proposal--answer
   edit "Reject"
   (lambda (rejected)
     (unless (funcall gemini-companion-proposal-reject-function rejected)
       (gemini-companion-proposal--decide rejected 'rejected)
       (gemini-companion-proposal--answered
        rejected (gemini-companion-proposal--rejected rejected))))))

(provide 'gemini-companion-proposal)
;;; gemini-companion-proposal.el ends here
