;;; gemini-companion-undo.el --- Undoing an edit of a CLI in its file  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Undo an edit that a CLI has written, or changes.  If the file is unchanged since the
;; CLI wrote it, it gets its previous bytes back.  If it has changed, its record says which
;; lines belong to the edit, see `gemini-companion-changes': lines of others stay.  Lines
;; of others that have replaced only lines of the edit go with it, after a question, and are
;; then in the kill ring.  An edit whose lines are not recorded can only be undone by its
;; bytes.
;;
;; All is done by a `gemini-companion-step'.

;;; Code:

(require 'gemini-companion-attribution)
(require 'gemini-companion-changes)
(require 'gemini-companion-content)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-format)
(require 'gemini-companion-lines)
(require 'gemini-companion-names)
(require 'gemini-companion-record)
(require 'gemini-companion-revert)
(require 'gemini-companion-step)
(require 'gemini-companion-text)
(require 'gemini-companion-trash)
(require 'gemini-companion-unmarked)

;;;; Whether an edit can be undone

(defun gemini-companion-undo-check (edit)
  "Signal an error if undoing EDIT is certainly impossible."
  (let ((file (gemini-companion-edit-file edit)))
    (when-let*
        ((why (cond
               ((gemini-companion-edit-unmarked edit)
                (if (gemini-companion-edit-undone edit)
                    "already undone"
                  (gemini-companion-unmarked-problem
                   (gemini-companion-edit-unmarked edit))))
               ((gemini-companion-edit-deleted-modes edit)
                (and (gemini-companion-text-attributes file)
                     "exists again; nothing to undo"))
               ((gemini-companion-undo-unwritten edit))
               ((gemini-companion-edit-texts-removed-p edit)
                (gemini-companion-undo--removed edit))
               ((not (gemini-companion-edit-known-p edit))
                "cannot be restored: its previous text was not recorded")
               ((gemini-companion-text-unreadable-reason file))
               ((null (gemini-companion-text-attributes file))
                "has been deleted or renamed; nothing to undo")
               ;; Qwen Code writes all files of an answer at its end.
               ((gemini-companion-attribution-awaited-p edit) "is not written yet")
               ((not (equal (gemini-companion-edit-true-name edit)
                            (gemini-companion-text-true-name file)))
                "is reached by other symbolic links now; undo this edit by hand")
               ((not (gemini-companion-edit-texts-keepable-p file)) "is too large")
               ((and (gemini-companion-edit-new-p edit)
                     (or (gemini-companion-revert-unsaved file)
                         (not (gemini-companion-edit-texts-in-file-p edit))))
                "was new and has changed since; delete it by hand"))))
      (user-error "%s %s" (gemini-companion-edit-name edit) why))
    (when-let* (((null (gemini-companion-edit-unmarked edit)))
                (problem (gemini-companion-step-problem
                          (gemini-companion-undo--whole edit))))
      (user-error "%s" problem))))

(defun gemini-companion-undo--removed (edit)
  "Return why EDIT, whose file was removed before it, is not undone."
  (concat "was removed before this edit"
          (if-let* ((buffer (gemini-companion-names-buffer
                             (gemini-companion-edit-file edit))))
              (format "; undo in buffer %s restores its text" buffer)
            ", and its text is not known")))

(defun gemini-companion-undo--notice (edit)
  "Detect at once what CLIs have just written to the file of EDIT.
Otherwise it would be attributed to others."
  (mapc #'gemini-companion-attribution-detect-write
        (gemini-companion-edits-of-file (gemini-companion-edit-true-name edit))))

(defun gemini-companion-undo-unwritten (edit)
  "Check whether the file of EDIT has text of EDIT; return why not, or nil.
The value is a verb phrase."
  (gemini-companion-undo--notice edit)
  (pcase (gemini-companion-changes-status edit)
    ((or 'pending 'shown) "is not written yet; its proposal awaits an answer")
    ('rejected "was not written; its proposal was rejected")
    ('undone "is already undone")
    ('gone (if (gemini-companion-text-attributes (gemini-companion-edit-file edit))
               "no longer has this edit"
             "is already deleted"))
    ((guard (gemini-companion-edit-texts-in-file-p edit)) nil)
    ((guard (not (or (null (gemini-companion-edit-bytes-before edit))
                     (condition-case nil
                         (gemini-companion-edit-hunks edit)
                       (error t)))))
     (if (gemini-companion-edit-texts-conversion edit)
         "has changed since; this edit has changed no lines, only its format"
       "was not changed by this edit"))
    ((or 'unwritten 'dismissed) "was not written")))

;;;; Changes

(defun gemini-companion-undo-in-file (record changes)
  "Undo CHANGES, some of those of RECORD at the last update, in its file.
Return non-nil if the file was written; otherwise its buffer has unsaved text."
  (let* ((hunks (gemini-companion-changes-not-undone
                 (seq-uniq (seq-mapcat #'gemini-companion-record-change-hunks changes)
                           #'eq)))
         (others (gemini-companion-changes-others-in record hunks)))
    (gemini-companion-step-decide
     (gemini-companion-step-of-changes record changes hunks t)
     (lambda (problem)
       (unless problem
         (gemini-companion-step-save-lines others)
         (run-hook-with-args 'gemini-companion-changes-undo-functions
                             record changes))))
    (null (gemini-companion-revert-unsaved (gemini-companion-changes-path record)))))

(defun gemini-companion-undo-new-file (record)
  "Delete the file of RECORD, which a CLI has made.
Others may have replaced lines there; these are in the kill ring then."
  (let* ((hunks (seq-mapcat #'gemini-companion-record-change-hunks
                            (gemini-companion-changes-file-known record)))
         (others (gemini-companion-changes-others-in record hunks)))
    (gemini-companion-step-decide
     (gemini-companion-undo--deletion
      :record record :hunks hunks
      :before (gemini-companion-text-bytes (gemini-companion-changes-path record)))
     (lambda (problem)
       (unless problem
         (gemini-companion-step-save-lines others)
         (run-hook-with-args 'gemini-companion-changes-undo-functions
                             record 'deleted))))))

(defun gemini-companion-undo--deletion (&rest slots)
  "Return the step that deletes a file, with SLOTS, a plist."
  (apply #'gemini-companion-step-make
         :kind 'undone :on t :after 'none
         :directories (seq-mapcat #'gemini-companion-edit-missing-directories
                                  (gemini-companion-edits))
         slots))

(defun gemini-companion-undo-note (edits)
  "Return a clause for a question before EDITS are undone, or \"\".
It names the files that this deletes, and does not move to the trash, and those
whose bytes before are not known."
  (concat
   (mapconcat (lambda (edit)
                (if-let* ((unmarked (gemini-companion-edit-unmarked edit)))
                    (gemini-companion-unmarked-note unmarked)
                  ""))
              edits "")
   (gemini-companion-trash-note
    (cl-loop for edit in edits
             when (gemini-companion-edit-new-p edit)
             collect (gemini-companion-edit-file edit)))
   (let ((guessed (seq-filter (lambda (edit)
                                (eq 'lines (gemini-companion-content-reported
                                            (gemini-companion-edit-content edit))))
                              edits)))
     (cond ((null guessed) "")
           ((cdr edits)
            (format "; the line ends before %d of them are not known"
                    (length guessed)))
           (t "; the line ends before it are not known, and stay as they are")))))

(defun gemini-companion-undo-question (count)
  "Return a question to ask before an undo of COUNT lines of others."
  (format (ngettext "%d line there is yours or a formatter's; undo it as well? "
                    "%d lines there are yours or a formatter's; undo them as well? "
                    count)
          count))

;;;; Edits

(defun gemini-companion-undo-edit (edit &optional done)
  "Undo what EDIT has changed in its file.
A new file is deleted, and its buffer is killed.  If the buffer of the file has
unsaved text, change only the buffer.  If others have changed lines of the edit,
or it is impossible, signal an error and change nothing.  Return a message; or
nil if the file is remote, or EDIT is of several files, and later call DONE with
nil, or with the problem.

Ask if others have replaced lines of the edit.  With DONE non-nil, do not ask:
that is an error."
  (if (gemini-companion-edit-unmarked edit)
      (gemini-companion-undo--unmarked edit done)
    (gemini-companion-undo--marked edit done)))

(defun gemini-companion-undo--unmarked (edit done)
  "Undo EDIT, of several files without marks, and display a message later.
For DONE, see `gemini-companion-undo-edit'; return nil, as if EDIT was remote."
  (gemini-companion-undo-check edit)
  (gemini-companion-step-decide
   (gemini-companion-step-make
    :kind 'unmarked :on t :edit edit
    :hunks (gemini-companion-unmarked-left (gemini-companion-edit-unmarked edit)))
   (lambda (problem)
     (unless problem
       (run-hook-with-args 'gemini-companion-changes-undo-functions edit 'files))
     (when done
       (funcall done problem))))
  nil)

(defun gemini-companion-undo--marked (edit done)
  "Undo EDIT, of one file.
For DONE and the value, see `gemini-companion-undo-edit'."
  (gemini-companion-undo--notice edit)
  (gemini-companion-undo-check edit)
  (pcase-let* ((`(,step . ,changes) (gemini-companion-undo--step edit))
               (record (car (gemini-companion-changes-of edit)))
               (text (gemini-companion-undo--text edit))
               (hunks (gemini-companion-step-hunks step))
               (seen (and (consp changes) (gemini-companion-undo--seen edit)))
               (others (and seen (gemini-companion-changes-others-in
                                  record hunks seen)))
               (remote (gemini-companion-names-of-copy
                        (gemini-companion-edit-file edit)))
               (said nil))
    (gemini-companion-undo--ask
     edit (if seen (gemini-companion-changes-count-others record hunks seen) 0)
     (null done))
    (unless (equal text (gemini-companion-undo--text edit))
      (user-error "%s has changed meanwhile; not undone" (gemini-companion-edit-name edit)))
    (gemini-companion-step-decide
     step
     (lambda (problem)
       (setq said (if problem
                      (format "%s cannot be written (%s)"
                              (gemini-companion-edit-name edit) problem)
                    (gemini-companion-step-save-lines others)
                    (run-hook-with-args
                     'gemini-companion-changes-undo-functions
                     (or record edit) changes)
                    (gemini-companion-undo--message edit step)))
       (message "%s" said)
       (when (and remote done)
         (funcall done (and problem said)))))
    (and (not remote) said)))

(defun gemini-companion-undo--message (edit step)
  "Return a message that EDIT was undone by STEP."
  (format (cond ((eq 'none (gemini-companion-step-before step)) "%s was created again")
                ((eq 'none (gemini-companion-step-after step)) "Deleted %s")
                ((gemini-companion-revert-unsaved (gemini-companion-edit-file edit))
                 "Undid %s; not saved")
                (t "Undid %s"))
          (gemini-companion-edit-name edit)))

(defun gemini-companion-undo--text (edit)
  "Return the present text of the file of EDIT, or nil without a file.
It is the unsaved text of its buffer, or else that of the file."
  (if-let* ((buffer (gemini-companion-revert-unsaved (gemini-companion-edit-file edit))))
      (gemini-companion-text-of-buffer buffer)
    (when-let* ((now (gemini-companion-edit-texts-now edit)))
      (gemini-companion-content-text now))))

(defun gemini-companion-undo--seen (edit)
  "Return the `gemini-companion-changes-seen' of the present text of EDIT's file.
Return nil if it has no record."
  (when-let* ((record (car (gemini-companion-changes-of edit))))
    (gemini-companion-changes-seen
     record (gemini-companion-revert-unsaved (gemini-companion-edit-file edit)))))

(defun gemini-companion-undo--whole (edit)
  "Return the step that gives the file of EDIT its bytes from before EDIT.
A file that EDIT has made is deleted, and one that it has deleted is created.
If edits change A to B, B to C and C to B, undoing the first one undoes all
three."
  (let* ((record (car (gemini-companion-changes-of edit)))
         (bytes (and (null (gemini-companion-revert-unsaved
                            (gemini-companion-edit-file edit)))
                     (gemini-companion-edit-texts-bytes edit)))
         (slots (list :record record
                      :edit edit
                      :hunks (gemini-companion-changes-not-undone
                              (gemini-companion-changes-since edit))
                      :before bytes)))
    (cond ((gemini-companion-edit-deleted-modes edit)
           (gemini-companion-step-make
            :kind 'undone :on t :record record :edit edit :before 'none
            :hunks (cdr (gemini-companion-changes-of edit))
            :after (gemini-companion-edit-bytes-before edit)
            :modes (gemini-companion-edit-deleted-modes edit)))
          ((gemini-companion-edit-new-p edit)
           (apply #'gemini-companion-undo--deletion slots))
          (t
           (apply #'gemini-companion-step-make :kind 'undone :on t
                  :after (and bytes (gemini-companion-edit-bytes-before edit))
                  slots)))))

(defun gemini-companion-undo--step (edit)
  "Return a cons of the step to undo EDIT, and of the changes.
For these, see `gemini-companion-changes-undo-functions'.  Signal an
error if that is impossible."
  (let* ((unsaved (gemini-companion-revert-unsaved (gemini-companion-edit-file edit)))
         (bytes (and (null unsaved) (gemini-companion-edit-texts-bytes edit)))
         (seen (gemini-companion-undo--seen edit)))
    (cond
     ((gemini-companion-edit-deleted-modes edit)
      (list (gemini-companion-undo--whole edit)))
     ((gemini-companion-edit-new-p edit)
      (cons (gemini-companion-undo--whole edit) 'deleted))
     ((and bytes
           (gemini-companion-edit-bytes-before edit)
           (gemini-companion-undo--format-kept-p edit bytes)
           (gemini-companion-edit-texts-in-file-p edit))
      (let ((step (gemini-companion-undo--whole edit)))
        (cons step (and seen
                        (gemini-companion-record-without
                         (gemini-companion-changes-seen-look seen)
                         (gemini-companion-step-hunks step))))))
     ((null seen)
      (user-error (if (gemini-companion-edit-texts-utf-8-p edit)
                      "%s has changed since, and its lines are no longer known; \
the text before is in %s"
                    "%s is not text in UTF-8 and has changed since; \
the text before is in %s")
                  (gemini-companion-edit-name edit)
                  (buffer-name (gemini-companion-undo--before edit))))
     (t (gemini-companion-undo--step-of-lines edit seen bytes)))))

(defun gemini-companion-undo--step-of-lines (edit seen bytes)
  "Return the step and changes that undo EDIT in the lines of SEEN.
BYTES are those of the file, or nil if its buffer has unsaved text.  For the
value, see `gemini-companion-undo--step'."
  (pcase-let* ((look (gemini-companion-changes-seen-look seen))
               (name (gemini-companion-edit-name edit))
               (`(,record . ,all) (gemini-companion-changes-of edit))
               (hunks (or (gemini-companion-changes-not-undone all)
                          (user-error "%s was not changed by this" name)))
               (changes (gemini-companion-record-without look hunks)))
    (when-let* ((line (gemini-companion-record-conflict look hunks)))
      (user-error "%s: line %d has changed since; undo its changes one by one"
                  name (1+ line)))
    (cons (if (and bytes
                   (gemini-companion-undo--restored-p edit bytes seen changes))
              (gemini-companion-step-make
               :kind 'undone :on t :record record :hunks hunks
               :before bytes :after (gemini-companion-edit-bytes-before edit))
            (gemini-companion-step-of-changes
             record changes hunks t
             (and bytes (gemini-companion-names-of-copy
                         (gemini-companion-edit-file edit)))))
          changes)))

(defun gemini-companion-undo--before (edit)
  "Return a buffer with the text before EDIT, which is not displayed."
  (with-current-buffer
      (get-buffer-create (format "*gemini before: %s*"
                                 (gemini-companion-edit-name edit 'plain)))
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert (gemini-companion-content-text (gemini-companion-edit-content edit))))
    (goto-char (point-min))
    (special-mode)
    (current-buffer)))

(defun gemini-companion-undo--format-kept-p (edit bytes)
  "Return non-nil if BYTES have the format in which EDIT has written its file.
Otherwise, others have converted the file, which stays so."
  (null (gemini-companion-format-conversion
         (gemini-companion-edit-format edit)
         (gemini-companion-content-format
          (gemini-companion-edit-texts-with edit bytes)))))

(defun gemini-companion-undo--restored-p (edit bytes seen changes)
  "Return non-nil if the file with BYTES and SEEN has the text before EDIT.
That is so once CHANGES are undone there."
  (when-let* ((before (gemini-companion-edit-bytes-before edit))
              (record (car (gemini-companion-changes-of edit))))
    (and (gemini-companion-undo--format-kept-p edit bytes)
         (equal (gemini-companion-changes-lines-of-content
                 (gemini-companion-changes-content-with record before))
                (gemini-companion-lines-without
                 changes (gemini-companion-changes-seen-lines seen))))))

(defun gemini-companion-undo--ask (edit count may-ask)
  "Signal an error if COUNT lines of others in EDIT go, and the user objects.
Without MAY-ASK, the user is not asked, and objects."
  (when (< 0 count)
    (let* ((name (gemini-companion-edit-name edit))
           (question (concat name ": " (gemini-companion-undo-question count))))
      (unless (and may-ask (y-or-n-p question))
        (user-error "%s has lines of others in this; not undone" name)))))

(provide 'gemini-companion-undo)
;;; gemini-companion-undo.el ends here
