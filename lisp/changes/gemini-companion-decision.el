;;; gemini-companion-decision.el --- Taking back what was kept and undone  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; In the buffer of a file, the undo of Emacs takes back what the user kept and undid
;; there.  A decision is what one command of the overview or the walk has kept, undone,
;; deleted or excluded, in one file or several, visited or not.  This file records
;; decisions, with their hunks and the bytes of the files, so that they can be taken
;; back and redone, the last one first, whether the files are visited or not.  The
;; bytes take at most 16 MB; then the oldest decisions are forgotten.
;;
;; A command calls `gemini-companion-decision-with', and the functions that keep, undo
;; and delete report each step by `gemini-companion-changes-decided'.  A file on another
;; host is written later: its step joins the decision once writing has succeeded.  A
;; decision that makes sense only as a whole, such as the undo of a rename, is made by
;; `gemini-companion-decision-with-all': if one file fails, the previous files get their
;; text back.  The same holds when the decision is taken back or redone.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-changes)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-file-state)
(require 'gemini-companion-hunk)
(require 'gemini-companion-part)
(require 'gemini-companion-record)
(require 'gemini-companion-revert)
(require 'gemini-companion-slices)
(require 'gemini-companion-text)
(require 'gemini-companion-undo)
(require 'map)

;;;; State

(cl-defstruct (gemini-companion-decision
               (:noinline t)
               (:constructor gemini-companion-decision--make (label steps whole))
               (:copier nil))
  "What one command has kept, undone, deleted and excluded.
LABEL is a text about the decision for the user.  STEPS are the arguments of
`gemini-companion-changes-decided', lists, the first one first; it is nil for
an answer, which was sent to a CLI and cannot be taken back.  If WHOLE is
non-nil, either all steps are taken back or redone, or none."
  label steps whole)

(defconst gemini-companion-decision--most-bytes (* 16 1024 1024)
  "Maximum size, in bytes, of the texts of all decisions except the last one.")

(defvar gemini-companion-decision--done nil
  "The decisions that can be taken back, the last one first.")

(defvar gemini-companion-decision--taken-back nil
  "The decisions that were taken back and can be redone, the last one first.")

;;;; Recording

(defmacro gemini-companion-decision-with (label &rest body)
  "Evaluate BODY, and record what was kept and undone by it as one decision.
After that, LABEL is evaluated: a text about the decision for the user, such as
\"keep of 2 changes\".  Return the value of BODY.  After an error, what BODY has
done is recorded as well."
  (declare (indent 1) (debug t))
  `(gemini-companion-decision--call (lambda () ,@body) (lambda () ,label)))

(defmacro gemini-companion-decision-with-all (label &rest body)
  "Evaluate BODY, and record what was undone by it as one decision, or do nothing.
If BODY signals an error, or the user quits, take back what it has done, and
signal the error again.  For LABEL and the value, see
`gemini-companion-decision-with'."
  (declare (indent 1) (debug t))
  `(gemini-companion-decision--call (lambda () ,@body) (lambda () ,label) t))

(defun gemini-companion-decision--call (body label &optional whole)
  "Call BODY, and record what it decides with the value of LABEL, a function.
A step that is reported after BODY has returned joins that decision.  If WHOLE
is non-nil and BODY fails, what it has done is taken back."
  (let* ((decision nil)
         (steps nil)
         (complete nil)
         (ended nil)
         (record (lambda ()
                   (gemini-companion-decision--push
                    (setq decision (gemini-companion-decision--make
                                    (funcall label) (reverse steps)
                                    (and whole complete))))
                   (setq gemini-companion-decision--taken-back nil)))
         (functions
          (cons (lambda (&rest step)
                  (push step steps)
                  (cond ((not ended))
                        ((memq decision gemini-companion-decision--done)
                         (setf (gemini-companion-decision-steps decision)
                               (reverse steps)))
                        ;; The decision was not recorded, or was taken back meanwhile.
                        (t
                         (setq steps (list step))
                         (funcall record))))
                gemini-companion-changes-decided-functions)))
    (unwind-protect
        (let ((gemini-companion-changes-decided-functions functions)
              (inhibit-quit (or whole inhibit-quit)))
          (prog1 (funcall body)
            (setq complete t)))
      (setq ended t)
      (when (and whole (not complete))
        (setq steps (gemini-companion-decision--put-back steps t)))
      (when steps
        (funcall record)))))

(defun gemini-companion-decision--put-back (done back)
  "Take DONE back if BACK is non-nil, else redo it, as a later step has failed.
DONE is a list of steps, in the order in which to do that.  Return the steps for
which that is impossible."
  (let ((inhibit-quit t))
    (seq-filter (lambda (step)
                  (condition-case nil
                      (ignore (apply #'gemini-companion-decision--step back step))
                    ((error quit) t)))
                done)))

(defun gemini-companion-decision-sent (label)
  "Record that an answer was sent, which cannot be taken back.
LABEL is a text about it for the user, such as \"acceptance of notes.md\"."
  (gemini-companion-decision--push (gemini-companion-decision--make label nil nil))
  (setq gemini-companion-decision--taken-back nil))

(defun gemini-companion-decision--push (decision)
  "Record DECISION as the last one; drop the oldest ones if all are too large."
  (push decision gemini-companion-decision--done)
  (let ((bytes 0)
        (kept nil))
    (dolist (each gemini-companion-decision--done)
      (setq bytes (+ bytes (gemini-companion-decision--size each)))
      (if (or (eq each decision)
              (<= bytes gemini-companion-decision--most-bytes))
          (push each kept)
        (gemini-companion-decision--report-forgotten each)))
    (setq gemini-companion-decision--done (nreverse kept))))

(defun gemini-companion-decision--size (decision)
  "Return about how many bytes of memory DECISION takes."
  (cl-loop for step in (gemini-companion-decision-steps decision)
           sum (+ 500 (cl-loop for value in (flatten-tree step)
                               when (stringp value)
                               sum (string-bytes value)))))

(defun gemini-companion-decision--report-forgotten (decision)
  "Report the files that DECISION has deleted, which is forgotten."
  (dolist (step (gemini-companion-decision-steps decision))
    (pcase step
      ((and `(deleted ,_ ,_ . ,details)
            (let file (plist-get details :file))
            (guard (not (gemini-companion-text-attributes file))))
       (message "Deleted file %s can no longer be restored; the texts of all \
keeps and undos take more than %d MB"
                (gemini-companion-label-file file)
                (/ gemini-companion-decision--most-bytes 1024 1024))))))

(defun gemini-companion-decision--hunks-of (record)
  "Return the hunks of RECORD that a decision names."
  (cl-loop for decision in (append gemini-companion-decision--done
                                   gemini-companion-decision--taken-back)
           append (cl-loop for (_ of hunks) in (gemini-companion-decision-steps decision)
                           when (eq of record) append hunks)))

(setq gemini-companion-changes-history-function #'gemini-companion-decision--hunks-of)

;;;; Taking back, and redoing

(defun gemini-companion-decision-last ()
  "Return the last `gemini-companion-decision' that can be taken back, or nil."
  (car gemini-companion-decision--done))

(defun gemini-companion-decision-take-back ()
  "Take back the last decision, as `gemini-companion-decision-undo' does.
Return a cons of a decision, with the steps that were taken back, or nil if
there are none; and of a text about them for the user."
  (let ((decision (or (pop gemini-companion-decision--done)
                      (user-error "No keep or undo to take back")))
        (ended nil))
    ;; Repeating the command takes back the decision before the answer.
    (unless (gemini-companion-decision-steps decision)
      (user-error "The %s was sent and cannot be taken back"
                  (gemini-companion-decision-label decision)))
    (unwind-protect
        (pcase-let ((`(,taken ,left ,text)
                     (gemini-companion-decision--take decision t)))
          (setq ended t)
          (when taken
            (push taken gemini-companion-decision--taken-back))
          (when left
            (push left gemini-companion-decision--done))
          (cons taken text))
      ;; The user has quit.
      (unless ended
        (push decision gemini-companion-decision--done)))))

(defun gemini-companion-decision--take (decision back)
  "Take DECISION back if BACK is non-nil, else redo it.
Return a list of two decisions and a text about them for the user: one with the
steps that were taken back or redone, and one with the steps that are left if
the user has stopped in between.  A decision without steps is nil.  If the user
objects to a step, the other steps are done anyway.  If DECISION is whole,
either all steps are done, or none is, and that is an error, unless a file is
missing."
  (let* ((label (gemini-companion-decision-label decision))
         (whole (gemini-companion-decision-whole decision))
         (steps (gemini-companion-decision-steps decision))
         (in-order (if back (reverse steps) steps))
         (done nil)
         (skipped 0)
         (problems (and whole (gemini-companion-decision--missing decision)))
         (take (lambda (step)
                 (if (apply #'gemini-companion-decision--step back step)
                     (push step done)
                   (cl-incf skipped))))
         (left nil)
         (of (lambda (steps reversed)
               (and steps
                    (gemini-companion-decision--make
                     label (if reversed (reverse steps) steps) whole)))))
    (cond (problems)
          (whole
           (dolist (step in-order)
             (condition-case problem
                 (funcall take step)
               ((error quit)
                (gemini-companion-decision--give-up done back problem)))))
          (t
           (setq left (gemini-companion-slices-do
                       (if back "Taking back" "Redoing") in-order
                       (lambda (step)
                         (condition-case problem
                             (funcall take step)
                           (user-error
                            (push (error-message-string problem) problems))))))))
    ;; The last step that was taken back is the first one to be redone.
    (list (funcall of done (not back))
          (funcall of left back)
          (format "%s: %s%s%s%s"
                  (if back "Taken back" "Redone")
                  (cond ((null done) "nothing")
                        (left (format "%d of %d files of %s" (length done)
                                      (length steps) label))
                        (t label))
                  (if (< 0 skipped)
                      (format (ngettext "; %d was already so" "; %d were already so"
                                        skipped)
                              skipped)
                    "")
                  (mapconcat (apply-partially #'concat "; ") (nreverse problems) "")
                  (if left "; stopped" "")))))

(defun gemini-companion-decision--edit (step)
  "Return the edit of the file of STEP."
  (pcase-let ((`(,_ ,record ,_ . ,(map :edit)) step))
    (if record (gemini-companion-changes-file-edit record) edit)))

(defun gemini-companion-decision--missing (decision)
  "Return problems, texts, about the files of DECISION that are missing.
DECISION has not deleted them."
  (cl-loop for step in (gemini-companion-decision-steps decision)
           for edit = (gemini-companion-decision--edit step)
           unless (gemini-companion-text-attributes
                   (if-let* ((record (nth 1 step)))
                       (gemini-companion-changes-path record)
                     (gemini-companion-edit-file edit)))
           collect (format "%s has been deleted or renamed"
                           (gemini-companion-edit-name edit))))

(defun gemini-companion-decision--give-up (done back problem)
  "Signal a `user-error' about PROBLEM, a condition, of a step of a decision.
Before that, put back DONE, the steps before it, the last one first: if BACK is
non-nil, redo them."
  (let ((left (gemini-companion-decision--put-back done (not back))))
    (user-error "%s: %s"
                (concat (if back "Nothing taken back" "Nothing redone")
                        (and left " but in ")
                        (mapconcat (lambda (step)
                                     (gemini-companion-edit-name
                                      (gemini-companion-decision--edit step)))
                                   left ", "))
                (error-message-string problem))))

(cl-defun gemini-companion-decision--step
    (back kind record hunks &key edit hunk file before after texts modes)
  "Take a step back if BACK, else redo it; return nil if nothing changes.
KIND, RECORD, HUNKS, EDIT, HUNK, FILE, BEFORE, AFTER, TEXTS and MODES are the
arguments of `gemini-companion-changes-decided'."
  (pcase kind
    ((or 'excluded 'restored)
     (gemini-companion-decision--set-excluded edit hunk
                                              (eq (null back) (eq kind 'excluded))))
    ('deleted
     (if back
         (progn
           (gemini-companion-undo-create file before modes record hunks)
           (unless record
             (gemini-companion-file-state-set-reverted edit 'written)))
       (gemini-companion-undo-delete file before record hunks)
       (unless record
         (gemini-companion-file-state-set-reverted edit 'deleted)))
     t)
    ('unmarked
     (gemini-companion-undo-unmarked edit (not back)))
    ('created
     (if back
         (gemini-companion-undo-delete file after record hunks t)
       (gemini-companion-undo-create file after modes record hunks t))
     (unless record
       (gemini-companion-file-state-set-reverted edit (if back 'written 'reverted)))
     t)
    ((or 'kept 'unkept)
     (gemini-companion-decision--set-kept record hunks
                                          (eq (null back) (eq kind 'kept))))
    ((guard (null record))
     (gemini-companion-decision--bytes edit (if back after before)
                                       (if back before after) back))
    (_ (gemini-companion-undo-turn record hunks (not back)
                                   (if back after before)
                                   (if back before after)
                                   (and texts
                                        (if back
                                            (cons (cdr texts) (car texts))
                                          texts))))))

(defun gemini-companion-decision--set-kept (record hunks kept)
  "Record that HUNKS of RECORD are KEPT, or not; return nil if they already are."
  (when-let* ((others (seq-remove
                       (lambda (hunk)
                         (let ((reviewed (gemini-companion-record-hunk-reviewed hunk)))
                           (or (eq t reviewed)
                               (eq (and kept t) (and reviewed t)))))
                       hunks)))
    (gemini-companion-changes-set-kept record others kept)
    (gemini-companion-changes-update record)
    t))

(defun gemini-companion-decision--set-excluded (edit hunk excluded)
  "Exclude HUNK from EDIT, a proposal, if EXCLUDED is non-nil, or restore it.
Return non-nil if that changed anything."
  (let ((name (gemini-companion-edit-name edit)))
    (unless (gemini-companion-edit-open-p edit)
      (user-error "The answer to %s was sent and cannot be taken back" name))
    (unless (member hunk (gemini-companion-edit-hunks edit))
      (user-error "The proposal of %s has changed since" name))
    (unless (eq (and excluded t)
                (and (member hunk (gemini-companion-hunk-excluded
                                   (gemini-companion-edit-proposal-buffer edit)))
                     t))
      (gemini-companion-edit-hunks-toggle edit hunk)
      t)))

(defun gemini-companion-decision--bytes (edit from to back)
  "Write the bytes TO to the file of EDIT, which has no record and the bytes FROM.
If BACK is non-nil, EDIT is in the file after that."
  (let ((file (gemini-companion-edit-file edit)))
    (unless (and (null (gemini-companion-revert-unsaved file))
                 (equal from (gemini-companion-edit-texts-bytes edit)))
      (user-error "%s has changed since" (gemini-companion-edit-name edit)))
    (gemini-companion-undo-write file from to)
    (gemini-companion-file-state-set-reverted edit (if back 'written 'reverted))
    t))

;;;; Life

(cl-defmethod gemini-companion-part-stop ((_part (eql 'decision)))
  "Forget all decisions."
  (setq gemini-companion-decision--done nil
        gemini-companion-decision--taken-back nil))

;;;; Commands

(defun gemini-companion-decision-bind (map)
  "Let the keys of undo and redo take back and redo decisions in MAP; return MAP."
  (pcase-dolist (`(,command . ,instead)
                 '((undo . gemini-companion-decision-undo)
                   (undo-only . gemini-companion-decision-undo)
                   (undo-redo . gemini-companion-decision-redo)
                   (evil-undo . gemini-companion-decision-undo)
                   (evil-redo . gemini-companion-decision-redo)))
    (define-key map (vector 'remap command) instead))
  map)

;;;###autoload
(defun gemini-companion-decision-undo ()
  "Take back the last keep, undo or exclusion of the overview or the walk.
The files may be visited or not; a new file that was deleted is restored.  What
was already taken back in the file is skipped.  If lines have changed since,
both are shown, and you are asked.  \\[keyboard-quit] stops between two files."
  (interactive)
  (message "%s" (cdr (gemini-companion-decision-take-back))))

;;;###autoload
(defun gemini-companion-decision-redo ()
  "Redo the last keep or undo that `gemini-companion-decision-undo' took back.
\\[keyboard-quit] stops between two files."
  (interactive)
  (let ((decision (or (pop gemini-companion-decision--taken-back)
                      (user-error "No keep or undo to redo")))
        (ended nil))
    (unwind-protect
        (pcase-let ((`(,redone ,left ,text)
                     (gemini-companion-decision--take decision nil)))
          (setq ended t)
          (when redone
            (gemini-companion-decision--push redone))
          (when left
            (push left gemini-companion-decision--taken-back))
          (message "%s" text))
      (unless ended
        (push decision gemini-companion-decision--taken-back)))))

(provide 'gemini-companion-decision)
;;; gemini-companion-decision.el ends here
