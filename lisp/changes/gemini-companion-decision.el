;;; gemini-companion-decision.el --- Taking back what was kept and undone  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A decision is what one command of the overview or the walk has kept, undone, deleted,
;; created, excluded or put off, in one file or several, visited or not; or a rename that
;; the user has allowed.  This file records it, as the steps that take it back, so that
;; decisions can be taken back and redone, the last one first.  What the undo of Emacs
;; takes back in the buffer of a file is taken back here as well.  The bytes take at most
;; 16 MB; then the oldest decisions are forgotten.
;;
;; A command calls `gemini-companion-decision-with', and each step is reported by
;; `gemini-companion-step-decide'.  A file on another host is written later: its step joins
;; the decision once writing has succeeded.  A decision that makes sense only as a whole,
;; such as a rename and its undo, is made by `gemini-companion-decision-with-all': if one
;; file fails, the previous files get their text back.  The same holds when the decision
;; is taken back or redone.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-changes)
(require 'gemini-companion-decide)
(require 'gemini-companion-label)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-record)
(require 'gemini-companion-step)
(require 'gemini-companion-text)

;;;; State

(cl-defstruct (gemini-companion-decision
               (:noinline t)
               (:constructor gemini-companion-decision--make (label steps whole))
               (:copier nil))
  "What one command has kept, undone, deleted, created, excluded and put off.
LABEL is a text about the decision for the user.  STEPS are the
`gemini-companion-step's that take it back, or redo it if it was taken back, in
the order in which to do them; it is nil for an answer, which was sent to a CLI
and cannot be taken back.  If WHOLE is non-nil, all steps are done, or none."
  label steps whole)

(defconst gemini-companion-decision-most-bytes (* 16 1024 1024)
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
  `(gemini-companion-decision--call (lambda () ,@body) (lambda () ,label) 'whole))

(defun gemini-companion-decision--call (body label &optional whole)
  "Call BODY, and record what it decides as one decision; return its value.
Within the BODY of another decision, it is a part of that, unless it is WHOLE.
LABEL is a function that returns the label.  If WHOLE is non-nil and BODY fails,
what it has done is taken back.

A step may be reported after BODY has returned.  It joins the decision, or is
one of its own if that was not recorded, or was taken back meanwhile."
  (if (and gemini-companion-step-decided-functions (not whole))
      (funcall body)
    (let ((steps nil)
          (decision nil)
          (returned nil)
          (failed t))
      (cl-labels ((record ()
                    (gemini-companion-decision--push
                     (setq decision (gemini-companion-decision--make
                                     (funcall label) steps (and whole (not failed)))))
                    (setq gemini-companion-decision--taken-back nil))
                  (add (step)
                    (push step steps)
                    (cond ((not returned))
                          ((memq decision gemini-companion-decision--done)
                           (setf (gemini-companion-decision-steps decision) steps
                                 (gemini-companion-decision-label decision)
                                 (funcall label)))
                          (t
                           (setq steps (list step))
                           (record)))))
        (unwind-protect
            (let ((gemini-companion-step-decided-functions
                   (cons #'add gemini-companion-step-decided-functions))
                  (inhibit-quit (or whole inhibit-quit)))
              (prog1 (funcall body)
                (setq failed nil)))
          (setq returned t)
          (when (and whole failed)
            (setq steps (gemini-companion-decision--put-back steps)))
          (when steps
            (record)))))))

(cl-defun gemini-companion-decision-do
    (verb unit items &key what requests ask whole (ended #'ignore))
  "Do ITEMS, a plan, as one decision, and return what was done, a text.
VERB is `undo' or `keep', and UNIT is of what, `change', `line' or `edit'.  WHAT
names all of that, and REQUESTS what will be done, such as \"undo 2 edits\", the
longest text first; by default they have its number.  If WHOLE is non-nil, all
is done, or nothing is.

If ASK is non-nil, only some items are possible, or the user has to know of
something, ask once, see `gemini-companion-decide-agreed'.  If the user objects,
or nothing is done, signal a `user-error'.  Files of other hosts are written
later; what was done is displayed then, and ENDED is called, a function."
  (pcase-let* ((`(,agreed . ,left-out)
                (gemini-companion-decide-agreed
                 items verb
                 (or requests (gemini-companion-decide-requests verb items unit))
                 :ask ask :whole whole))
               (texts nil)
               (returned nil)
               (made nil)
               (do (lambda (item end)
                     (push item made)
                     (let ((fails t))
                       (unwind-protect
                           (progn
                             (gemini-companion-decide-do
                              item (lambda (problem &optional text)
                                     (if problem
                                         (cl-callf2 remq item made)
                                       (push text texts))
                                     (funcall end problem)))
                             (setq fails nil))
                         (when fails
                           (cl-callf2 remq item made))))))
               (finish (lambda (done problems left)
                         (let* ((not-done (append left-out problems))
                                (text (gemini-companion-decide-say
                                       verb unit agreed done texts not-done left)))
                           (when returned
                             (funcall ended))
                           (cond ((and returned (equal texts '(nil)) (null not-done)))
                                 (returned (message "%s" text))
                                 ((or done left) text)
                                 (t (user-error "%s" (string-join not-done "; ")))))))
               (run (lambda ()
                      (gemini-companion-decide-run (gemini-companion-decide-word verb 1)
                                                   agreed do finish whole)))
               (label (lambda ()
                        (format "%s of %s" verb
                                (or what (gemini-companion-decide-count made unit))))))
    (prog1 (or (if whole
                   (gemini-companion-decision--call-whole run verb label)
                 (gemini-companion-decision-with (funcall label)
                   (funcall run)))
               (concat (gemini-companion-decide-word verb 1) "..."))
      (setq returned t))))

(defun gemini-companion-decision--call-whole (run verb label)
  "Call RUN, or take back what it has done, and say so; return its value.
LABEL is a function that names the decision.  For VERB, see
`gemini-companion-decision-do'."
  (let ((last (gemini-companion-decision-last)))
    (condition-case problem
        (gemini-companion-decision-with-all (funcall label)
          (funcall run))
      (error
       (user-error "%s %s: %s"
                   (if (eq last (gemini-companion-decision-last))
                       "Nothing"
                     (mapconcat #'gemini-companion-step-name
                                (gemini-companion-decision-steps
                                 (gemini-companion-decision-last))
                                ", "))
                   (gemini-companion-decide-word verb 3)
                   (gemini-companion-text-problem problem))))))

(defun gemini-companion-decision--put-back (steps)
  "Take back what was done before a later step has failed.
Return those of STEPS, which do that, for which it is impossible."
  (let ((inhibit-quit t))
    (seq-filter (lambda (step)
                  ;; What was just written is not the only copy.
                  (gemini-companion-step-agree step t)
                  (condition-case nil
                      (ignore (gemini-companion-step-do step))
                    ((error quit) t)))
                steps)))

(defun gemini-companion-decision-postpone (record change)
  "Put off the decision about CHANGE of RECORD, or take that back.
Return what was done, a text.  Only a command about CHANGE itself keeps it then."
  (let ((later (not (gemini-companion-record-postponed-p change))))
    (gemini-companion-decision-with (if later "mark of 1 change as later"
                                      "mark as later of 1 change, removed")
      (gemini-companion-step-decide
       (gemini-companion-step-make :kind 'postponed :on later :record record
                                   :hunks (gemini-companion-record-change-hunks change))))
    (if later "Later" "Not later any more")))

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
              (<= bytes gemini-companion-decision-most-bytes))
          (push each kept)
        (gemini-companion-decision--report-forgotten each)))
    (setq gemini-companion-decision--done (nreverse kept))))

(defun gemini-companion-decision--size (decision)
  "Return about how many bytes of memory DECISION takes."
  (cl-loop for step in (gemini-companion-decision-steps decision)
           sum (cl-loop for value in (flatten-tree
                                      (list (gemini-companion-step-before step)
                                            (gemini-companion-step-after step)
                                            (gemini-companion-step-texts step)))
                        when (stringp value)
                        sum (string-bytes value)
                        sum 100)))

(defun gemini-companion-decision--report-forgotten (decision)
  "Report the files that DECISION has deleted, which is forgotten."
  (dolist (step (gemini-companion-decision-steps decision))
    (when (and (eq 'none (gemini-companion-step-before step))
               (not (gemini-companion-text-attributes
                     (gemini-companion-step-file step))))
      (message "Deleted file %s can no longer be restored; the texts of all \
keeps and undos take more than %d MB"
               (gemini-companion-label-file (gemini-companion-step-file step))
               (/ gemini-companion-decision-most-bytes 1024 1024)))))

(defun gemini-companion-decision--hunks-of (record)
  "Return the hunks of RECORD that a decision names."
  (cl-loop for decision in (append gemini-companion-decision--done
                                   gemini-companion-decision--taken-back)
           append (cl-loop for step in (gemini-companion-decision-steps decision)
                           when (eq record (gemini-companion-step-record step))
                           append (gemini-companion-step-hunks step))))

(setq gemini-companion-changes-history-function #'gemini-companion-decision--hunks-of)

;;;; Taking back, and redoing

(defun gemini-companion-decision-last ()
  "Return the last `gemini-companion-decision' that can be taken back, or nil."
  (car gemini-companion-decision--done))

(defun gemini-companion-decision-take-back ()
  "Take back the last decision, as `gemini-companion-decision-undo' does.
Return a cons of the decision that redoes this, or nil if nothing was taken
back; and of a text for the user."
  (let ((decision (or (gemini-companion-decision-last)
                      (user-error "No keep or undo to take back"))))
    (unless (gemini-companion-decision-steps decision)
      ;; Repeating the command takes back the decision before the answer.
      (gemini-companion-decision--remove decision)
      (user-error "The %s was sent and cannot be taken back"
                  (gemini-companion-decision-label decision)))
    (gemini-companion-decision--take decision 'take-back)))

(defun gemini-companion-decision--remove (decision)
  "Remove DECISION from those that can be taken back, or redone."
  (cl-callf2 remq decision gemini-companion-decision--done)
  (cl-callf2 remq decision gemini-companion-decision--taken-back))

(defun gemini-companion-decision--take (decision verb)
  "Take DECISION back, or redo it; VERB is `take-back' or `redo'.
Return a cons of the decision that reverses this, or nil if nothing was done,
and of a text for the user; if files of other hosts are still to be written,
what was done is displayed then.

If the user does not agree, nothing changes.  If he stops, or another host has
failed, a decision with the steps that are left is in the place of DECISION.
Steps that are impossible, or fail, are dropped.  If DECISION is whole, all
steps are done, or none is, and that is an error, unless a file is missing."
  (let* ((whole (gemini-companion-decision-whole decision))
         (label (gemini-companion-decision-label decision))
         (items (gemini-companion-decision--items
                 (gemini-companion-decision-steps decision)))
         ;; Reasons why some files were not done, before any was.
         (left-out nil)
         ;; The items that other hosts have not written.
         (unwritten nil)
         ;; The steps that reverse what was done.
         (backs nil)
         ;; Whether this function has returned, and whether `finish' was called.
         (returned nil)
         (finished nil))
    (cl-labels ((did (back)
                  (cond ((null back))
                        ;; The host was no longer waited for.
                        (finished
                         (gemini-companion-decision--put-taken decision (list back) verb))
                        (t (push back backs))))
                (do (item end)
                  (let ((step (gemini-companion-decide-item-step item)))
                    (if (and (gemini-companion-decide-item-remote item) (not whole))
                        (gemini-companion-step-do
                         step (lambda (problem back)
                                (if problem
                                    (push item unwritten)
                                  (did back))
                                (funcall end problem)))
                      (did (gemini-companion-step-do step))
                      (funcall end nil))))
                (finish (done problems stopped)
                  (let* ((later (seq-filter
                                 (lambda (item)
                                   (gemini-companion-decision--later-p
                                    item (memq item unwritten)))
                                 (seq-difference items (append done stopped) #'eq)))
                         (text (gemini-companion-decision--say-taken
                                verb label (length backs) (length items)
                                (append left-out problems) stopped))
                         (taken (and backs
                                     (gemini-companion-decision--put-taken
                                      decision backs verb))))
                    (setq finished t)
                    (gemini-companion-decision--put-left
                     decision (append later stopped) taken verb)
                    (when returned
                      (message "%s" text))
                    (cons taken text))))
      (prog1 (if (gemini-companion-decision--possible-p whole verb items)
                 (pcase-let ((`(,agreed . ,others)
                              (gemini-companion-decision--agreed decision verb items)))
                   (setq left-out others)
                   (gemini-companion-decision--remove decision)
                   (condition-case problem
                       (or (gemini-companion-decide-run
                            (gemini-companion-decide-word verb 1) agreed #'do #'finish
                            whole)
                           (cons nil (concat (gemini-companion-decide-word verb 1)
                                             "...")))
                     ((error quit)
                      (gemini-companion-decision--put-left decision items nil verb)
                      (gemini-companion-decision--give-up backs problem verb))))
               (setq left-out (list (gemini-companion-decide-reasons items)))
               (gemini-companion-decision--remove decision)
               (finish nil nil nil))
        (setq returned t)))))

(defun gemini-companion-decision--agreed (decision verb items)
  "Ask about ITEMS of DECISION if necessary; return what is to be done.
The value is that of `gemini-companion-decide-agreed'.  Signal a `user-error' if
the user objects, or if DECISION has changed during a question.  For VERB, see
`gemini-companion-decision--take'."
  (let ((label (gemini-companion-decision-label decision))
        (steps (gemini-companion-decision-steps decision)))
    (prog1 (gemini-companion-decide-agreed
            items verb
            (list (format "%s %s" (gemini-companion-decide-word verb 0) label))
            :whole (gemini-companion-decision-whole decision))
      (unless (and (eq steps (gemini-companion-decision-steps decision))
                   (memq decision (append gemini-companion-decision--done
                                          gemini-companion-decision--taken-back)))
        (user-error "Not %s: the %s has changed meanwhile"
                    (gemini-companion-decide-word verb 3) label)))))

(defun gemini-companion-decision--items (steps)
  "Return the items that are to be decided, in order.
Each is that of one of STEPS.  Whether the second step of a file is possible is
known after the first one."
  (let ((files nil))
    (mapcar (lambda (step)
              (let ((item (gemini-companion-decide-of-step step))
                    (file (gemini-companion-text-true-name
                           (gemini-companion-step-file step))))
                (cond ((eq 'several (gemini-companion-step-kind step)))
                      ((member file files)
                       (setf (gemini-companion-decide-item-reason item) nil))
                      (t (push file files)))
                item))
            steps)))

(defun gemini-companion-decision--say-taken (verb label count all problems stopped)
  "Return a text that COUNT of ALL files of a decision with LABEL were done.
For VERB, see `gemini-companion-decision--take', and for PROBLEMS and STOPPED,
`gemini-companion-decide-run'."
  (format "%s: %s%s" (gemini-companion-decide-word verb 2)
          (cond ((= 0 count) "nothing")
                ((= count all) label)
                (t (format "%d of %d files of %s" count all label)))
          (gemini-companion-decide-rest problems stopped)))

(defun gemini-companion-decision--put-taken (decision backs verb)
  "Record BACKS, a list that reverses some of DECISION; return their decision.
For VERB, see `gemini-companion-decision--take'."
  (let ((taken (gemini-companion-decision--make
                (gemini-companion-decision-label decision) backs
                (gemini-companion-decision-whole decision))))
    (if (eq 'redo verb)
        (gemini-companion-decision--push taken)
      (push taken gemini-companion-decision--taken-back))
    taken))

(defun gemini-companion-decision--put-left (decision items some verb)
  "Record that ITEMS of DECISION are left, if there are any; SOME was done, or nil.
For VERB, see `gemini-companion-decision--take'."
  (when items
    (let* ((steps (mapcar #'gemini-companion-decide-item-step items))
           (left (if some
                     (gemini-companion-decision--make
                      (gemini-companion-decision-label decision) steps
                      (gemini-companion-decision-whole decision))
                   ;; What is written late joins the decision that it is of.
                   (setf (gemini-companion-decision-steps decision) steps)
                   decision)))
      (if (eq 'redo verb)
          (push left gemini-companion-decision--taken-back)
        (push left gemini-companion-decision--done)))))

(defun gemini-companion-decision--later-p (item unwritten)
  "Return non-nil if ITEM, which was not done, may be once its host answers.
UNWRITTEN is non-nil if the host has not written the file; otherwise, nothing
was sent."
  (and (gemini-companion-decide-item-remote item)
       (let ((file (gemini-companion-step-file (gemini-companion-decide-item-step item))))
         (if unwritten
             (gemini-companion-names-connected-p
              (car (gemini-companion-names-of-copy file)))
           (gemini-companion-names-unwritable-reason file)))))

(defun gemini-companion-decision--possible-p (whole verb items)
  "Return non-nil if ITEMS of a decision can be done, if need be in part.
Return nil if none of them will be possible any more.  Signal a `user-error' if
the decision is WHOLE and may be possible later.  For VERB, see
`gemini-companion-decision--take'."
  (let ((possible (gemini-companion-decide-possible items)))
    (cond
     ((length= possible (length items)))
     ((and whole
           (seq-every-p (lambda (item)
                          (gemini-companion-text-attributes
                           (gemini-companion-step-file
                            (gemini-companion-decide-item-step item))))
                        (seq-difference items possible #'eq)))
      (user-error "Not %s: %s" (gemini-companion-decide-word verb 3)
                  (gemini-companion-decide-reasons items)))
     (whole nil)
     (t possible))))

(defun gemini-companion-decision--give-up (backs problem verb)
  "Signal a `user-error' about PROBLEM, a condition, of a step of a decision.
Before that, do BACKS, which take back the steps before it.  For VERB, see
`gemini-companion-decision--take'."
  (let ((left (gemini-companion-decision--put-back backs)))
    (user-error "Not %s%s: %s" (gemini-companion-decide-word verb 3)
                (if left
                    (concat " but in " (mapconcat #'gemini-companion-step-name left ", "))
                  "")
                (gemini-companion-text-problem problem))))

(defun gemini-companion-decision--follow (hunks kind on)
  "Follow the undo of Emacs, which has taken back a step, or has redone it.
For HUNKS, KIND and ON, see `gemini-companion-step-turned-function'."
  (let* ((find (lambda (decisions)
                 (cl-loop
                  for decision in decisions
                  for step = (seq-find
                              (lambda (step)
                                (and (eq hunks (gemini-companion-step-hunks step))
                                     (eq kind (gemini-companion-step-kind step))
                                     (eq (null on)
                                         (null (gemini-companion-step-on step)))))
                              (gemini-companion-decision-steps decision))
                  when step return (cons decision step))))
         (found (funcall find gemini-companion-decision--done))
         (redone (and (null found)
                      (funcall find gemini-companion-decision--taken-back))))
    (pcase (or found redone)
      (`(,decision . ,step)
       (let ((back (gemini-companion-decision--make
                    (gemini-companion-decision-label decision)
                    (list (gemini-companion-step-back step))
                    nil)))
         (cl-callf2 remq step (gemini-companion-decision-steps decision))
         (unless (gemini-companion-decision-steps decision)
           (gemini-companion-decision--remove decision))
         (if redone
             (push back gemini-companion-decision--done)
           (push back gemini-companion-decision--taken-back)))))))

(setq gemini-companion-step-turned-function #'gemini-companion-decision--follow)

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
  "Take back the last keep, undo, rename, exclusion or mark as later.
The files may be visited or not; a new file that was deleted is restored.  Where
others have changed these lines since, nothing is changed.
\\[keyboard-quit] stops between two files."
  (interactive)
  (message "%s" (cdr (gemini-companion-decision-take-back))))

;;;###autoload
(defun gemini-companion-decision-redo ()
  "Redo the last keep or undo that `gemini-companion-decision-undo' took back.
\\[keyboard-quit] stops between two files."
  (interactive)
  (message "%s"
           (cdr (gemini-companion-decision--take
                 (or (car gemini-companion-decision--taken-back)
                     (user-error "No keep or undo to redo"))
                 'redo))))

(provide 'gemini-companion-decision)
;;; gemini-companion-decision.el ends here
