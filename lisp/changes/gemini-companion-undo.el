;;; gemini-companion-undo.el --- Planning the undo of edits and changes  -*- lexical-binding: t; -*-

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
;; All is planned here as items of `gemini-companion-decide', and done by their steps.

;;; Code:

(require 'gemini-companion-attribution)
(require 'gemini-companion-changes)
(require 'gemini-companion-content)
(require 'gemini-companion-decide)
(require 'gemini-companion-decision)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-format)
(require 'gemini-companion-garbage)
(require 'gemini-companion-hunk)
(require 'gemini-companion-lines)
(require 'gemini-companion-names)
(require 'gemini-companion-record)
(require 'gemini-companion-revert)
(require 'gemini-companion-step)
(require 'gemini-companion-text)

;;;; Whether an edit can be undone

(defun gemini-companion-undo--check (edit)
  "Signal an error if undoing EDIT is certainly impossible."
  (let ((file (gemini-companion-edit-file edit)))
    (when-let*
        ((why (cond
               ((gemini-companion-changes-several-p edit)
                (if (gemini-companion-edit-undone edit)
                    "already undone"
                  (gemini-companion-step-several-problem edit)))
               ((gemini-companion-edit-deleted-modes edit)
                (and (gemini-companion-text-attributes file)
                     "exists again; nothing to undo"))
               ((gemini-companion-undo-unwritten edit))
               ((not (gemini-companion-edit-known-p edit))
                "cannot be restored: its previous text was not recorded")
               ((gemini-companion-text-unreadable-reason file))
               ((null (gemini-companion-text-attributes file))
                "has been deleted or renamed; nothing to undo")
               ;; Qwen Code writes all files of an answer at its end.
               ((gemini-companion-attribution-awaited-p edit) "is not written yet")
               ((gemini-companion-step-relinked-reason
                 file (gemini-companion-edit-true-name edit)))
               ((not (gemini-companion-edit-texts-keepable-p file)) "is too large")
               ((and (gemini-companion-edit-new-p edit)
                     (or (gemini-companion-revert-unsaved file)
                         (not (gemini-companion-edit-texts-in-file-p edit))))
                "was new and has changed since; delete it by hand"))))
      (user-error "%s %s" (gemini-companion-edit-name edit) why))
    (when-let* (((null (gemini-companion-changes-several-p edit)))
                (problem (gemini-companion-step-problem
                          (gemini-companion-undo--whole edit))))
      (user-error "%s" problem))))

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

(defun gemini-companion-undo--item (record-or-edit changes others said &rest slots)
  "Return the item of a plan to undo CHANGES of RECORD-OR-EDIT, with SLOTS.
For CHANGES, see `gemini-companion-changes-undo-functions'.  OTHERS are the
lines of others that go with them, a list of strings.  SAID is a function that
returns what was done, a text."
  (apply #'gemini-companion-decide-item
         :done (lambda ()
                 (gemini-companion-step-save-lines others)
                 (run-hook-with-args 'gemini-companion-changes-undo-functions
                                     record-or-edit changes)
                 (funcall said))
         slots))

(defun gemini-companion-undo--plan (record changes unit by ask several)
  "Return the item of a plan to undo CHANGES of RECORD.
They are some of those of the last update.  If ASK is non-nil, the lines of
others there are asked about.  Visit the file unless SEVERAL is non-nil and no
buffer visits it.  For UNIT and BY, see `gemini-companion-undo-decide'."
  (let ((name (gemini-companion-edit-name (gemini-companion-changes-file-edit record)))
        (unvisited (and (or several (gemini-companion-changes-deleted-p record))
                        (null (gemini-companion-changes-buffer record)))))
    (gemini-companion-decide-plan name
      (pcase (gemini-companion-changes-visit record unvisited)
        ((and why (pred stringp)) (user-error "%s %s" name why)))
      ;; To visit a file that was written meanwhile reverts its buffer.
      (unless (or (eq unit 'line)
                  (seq-every-p (apply-partially #'gemini-companion-changes-current-p
                                                record)
                               changes))
        (user-error "%s has changed meanwhile; review it again" name))
      (let* ((own (if by (gemini-companion-changes-by record changes by) changes))
             (item (if (gemini-companion-undo--all-new-p record own)
                       (gemini-companion-undo--plan-deletion record changes name)
                     (gemini-companion-undo--plan-lines record changes own unit ask
                                                        name))))
        (setf (gemini-companion-decide-item-current item)
              (gemini-companion-undo--current record changes unvisited))
        item))))

(defun gemini-companion-undo--current (record changes unvisited)
  "Return a function that is non-nil while CHANGES of RECORD show what they do.
Others may have written elsewhere in the file.  For UNVISITED, see
`gemini-companion-changes-visit'."
  (let* ((hunks (seq-mapcat #'gemini-companion-record-change-hunks changes))
         (decided (seq-some #'gemini-companion-record-decided-p changes))
         (shown (lambda ()
                  (let ((known (gemini-companion-changes-visit record unvisited)))
                    (if (stringp known)
                        known
                      (cl-loop
                       for change in (append known
                                             (and decided
                                                  (gemini-companion-changes-kept-and-undone
                                                   record)))
                       when (seq-intersection
                             hunks (gemini-companion-record-change-hunks change) #'eq)
                       collect (gemini-companion-changes-shown change))))))
         (planned (funcall shown)))
    (lambda () (equal planned (funcall shown)))))

(defun gemini-companion-undo--plan-deletion (record changes name)
  "Return the item that deletes the file NAME of RECORD, which has only CHANGES.
Others may have replaced lines there; these are in the kill ring then."
  (let* ((file (gemini-companion-changes-path record))
         (buffer (gemini-companion-names-buffer file))
         (hunks (seq-mapcat #'gemini-companion-record-change-hunks
                            (gemini-companion-changes-file-known record))))
    (cond ((gemini-companion-names-of-copy file)
           (user-error "%s was new; delete it on its host" name))
          ((and buffer (or (buffer-modified-p buffer)
                           (not (gemini-companion-changes-in-file-p record))))
           (user-error "%s was new and has changed since; delete it by hand" name)))
    (gemini-companion-undo--item
     record 'deleted (gemini-companion-changes-others-in record hunks)
     (lambda () (format "Deleted %s" name))
     :name name :count (length changes) :deletes (list (list file))
     :step (gemini-companion-undo--deletion
            :record record :hunks hunks :before (gemini-companion-text-bytes file)))))

(defun gemini-companion-undo--plan-lines (record changes own unit ask name)
  "Return the item to undo OWN, a part of CHANGES of RECORD.
NAME is that of the file; for UNIT and ASK, see `gemini-companion-undo--plan'."
  (let* ((path (gemini-companion-changes-path record))
         (buffer (or (gemini-companion-changes-buffer record)
                     (gemini-companion-revert-unsaved path)))
         (hunks (gemini-companion-changes-not-undone
                 (seq-uniq (seq-mapcat #'gemini-companion-record-change-hunks own)
                           #'eq)))
         (others (gemini-companion-changes-others-in record hunks))
         (count (gemini-companion-undo--count changes unit))
         (undid (if (gemini-companion-changes-deleted-p record)
                    (lambda (name) (format "Created %s again" name))
                  (lambda (name)
                    (format "Undid %s of %s%s%s"
                            (gemini-companion-decide-count count unit) name
                            (if (eq own changes)
                                ""
                              "; changes of other turns there remain")
                            (if (gemini-companion-revert-unsaved path)
                                ", not saved"
                              ""))))))
    (when-let* ((why (or (and buffer (gemini-companion-revert-blocked-reason buffer))
                         (and (not (and buffer (buffer-modified-p buffer)))
                              (gemini-companion-step-unwritable-reason
                               (gemini-companion-changes-file-name record))))))
      (user-error "%s %s" name why))
    (gemini-companion-undo--item
     record own others
     (lambda ()
       (funcall undid (gemini-companion-edit-name
                       (gemini-companion-changes-file-edit record) 'plain)))
     :name name :count count :remote (gemini-companion-names-of-copy path)
     :step (gemini-companion-step-of-changes record own hunks t)
     :others (if ask (length others) 0)
     :concern (and (or (eq unit 'line) (not (eq own changes)))
                   (gemini-companion-changes-conflict record hunks)
                   'changed))))

(defun gemini-companion-undo--all-new-p (record changes)
  "Return non-nil if nothing would be left of RECORD's file without CHANGES.
The file was new.  Lines that others have written, and a CLI has removed, would
be left without its changes as well."
  (and (gemini-companion-changes-file-new record)
       (let ((lines (gemini-companion-lines-split
                     (or (gemini-companion-changes-text record) ""))))
         (seq-every-p (lambda (changes)
                        (= 0 (length (gemini-companion-lines-without changes lines))))
                      (list changes (gemini-companion-changes-file-known record))))))

(defun gemini-companion-undo--count (changes unit)
  "Return the number of CHANGES, or if UNIT is `line', that of their lines.
Removed lines count where there are no others."
  (if (eq unit 'line)
      (cl-loop for part in changes
               sum (max (gemini-companion-hunk-new-count part)
                        (length (gemini-companion-hunk-lines part))))
    (length changes)))

(cl-defun gemini-companion-undo-decide (verb groups &key (unit 'change) by row)
  "Decide about the changes of GROUPS, (RECORD . CHANGES); return what was done.
VERB is `keep' or `undo'.  UNIT is `line' if they are parts of changes.  If BY,
a predicate, is non-nil, undo only what edits that satisfy it did there.  If ROW
is non-nil, the user has chosen a row, which may be folded: then ask about
several files, and about lines of others.

A single file is visited, but not displayed; of several files, those that no
buffer visits are only written."
  (let* ((several (cdr groups))
         (ask (or several row (cddr (car groups)))))
    (gemini-companion-decision-do
     verb unit
     ;; Emacs would collect garbage for most of the time.
     (gemini-companion-garbage-later
       (mapcar (pcase-lambda (`(,record . ,changes))
                 (if (eq verb 'undo)
                     (gemini-companion-undo--plan record changes unit by ask several)
                   (gemini-companion-decide-item
                    :name (gemini-companion-edit-name
                           (gemini-companion-changes-file-edit record))
                    :count (gemini-companion-undo--count changes unit)
                    :step (gemini-companion-step-make
                           :kind 'kept :on t :record record
                           :hunks (seq-mapcat #'gemini-companion-record-change-hunks
                                              changes)))))
               groups))
     :ask (and row several))))

(defun gemini-companion-undo-turns (turns records edits)
  "Undo what is left of TURNS, if the user agrees; return what was done, a text.
RECORDS are those of the files that were written then, and EDITS are edits of
that time without a record, the last one first.  What the user has kept is left
out, and named."
  (let* ((by (lambda (edit) (memq (gemini-companion-edit-turn edit) turns)))
         (items (gemini-companion-garbage-later
                  (append (seq-mapcat (lambda (record)
                                        (gemini-companion-undo--plan-turns record by))
                                      records)
                          (gemini-companion-undo--plan-edits edits nil))))
         (count (length turns)))
    (gemini-companion-decision-do
     'undo 'change items :ask t
     :requests (gemini-companion-decide-requests
                'undo items 'change
                (format (ngettext " of %d turn" " of %d turns" count) count)))))

(defun gemini-companion-undo--plan-turns (record by)
  "Return items of a plan to undo in RECORD what edits that satisfy BY have left.
Those that are kept are an item without a step."
  (let* ((look (gemini-companion-changes-look record))
         (decided (and look (gemini-companion-changes-seen-decided look)))
         (share-p (lambda (change) (gemini-companion-changes-share change by)))
         (left (seq-filter share-p (gemini-companion-changes-file-known record)))
         (kept (seq-count (lambda (change)
                            (and (eq 'kept (gemini-companion-record-decided-state change))
                                 (funcall share-p change)))
                          decided))
         (name (gemini-companion-edit-name (gemini-companion-changes-file-edit record))))
    (append
     (when (or left
               (and (null decided)
                    (gemini-companion-changes-file-new record)
                    (equal "" (gemini-companion-changes-text record))))
       (list (gemini-companion-undo--plan record left 'change by 'ask 'several)))
     (when (< 0 kept)
       (list (gemini-companion-decide-item
              :name name
              :reason (format (ngettext "%s has %d change that you have kept"
                                        "%s has %d changes that you have kept" kept)
                              name kept)))))))

(defun gemini-companion-undo-taken (groups edits)
  "Undo what has removed lines of the user, as one decision; return what was done.
GROUPS are of changes, as in `gemini-companion-undo-decide', and EDITS are those
of files without a record."
  (let ((said nil))
    (gemini-companion-decision-with "undo of what took your lines"
      (when groups
        (push (gemini-companion-undo-decide 'undo groups) said))
      (when edits
        (push (gemini-companion-undo-edits edits) said)))
    (string-join (nreverse said) "; ")))

(defun gemini-companion-undo--deletion (&rest slots)
  "Return the step that deletes a file, with SLOTS, a plist."
  (apply #'gemini-companion-step-make
         :kind 'undone :on t :after 'none
         :directories (seq-mapcat #'gemini-companion-edit-missing-directories
                                  (gemini-companion-edits))
         slots))

(cl-defgeneric gemini-companion-undo-several-left (edit)
  "Return those of the files of EDIT, several, that are not undone, a list.")

;;;; Edits

(cl-defun gemini-companion-undo-edits (edits &key ask what whole visit
                                             (ended #'ignore))
  "Undo EDITS, the last one first, as one decision; return what was done, a text.
A new file is deleted, and its buffer is killed.  If the buffer of a file has
unsaved text, change only the buffer.  Ask if others have replaced lines of an
edit.  If that is impossible, signal an error and change nothing.  A remote file
is written later.

For ASK, WHAT, WHOLE and ENDED, see `gemini-companion-decision-do'.  If VISIT is
non-nil, visit the file of a single edit, so that an undo in its buffer restores
it."
  (let* ((edit (and (null (cdr edits)) (car edits)))
         (name (and edit (gemini-companion-edit-name edit 'plain))))
    (gemini-companion-decision-do
     'undo 'edit (gemini-companion-garbage-later
                   (gemini-companion-undo--plan-edits edits (and visit edit)))
     :ask ask :whole whole :ended ended
     :what (or what name)
     :requests (cond (what (list (concat "undo " what)))
                     ((null edit) nil)
                     ((gemini-companion-edit-deleted-modes edit)
                      (list (format "create %s again" name)))
                     ((gemini-companion-changes-several-p edit)
                      (list (concat "undo " name)))
                     (t (list (concat "undo the edit of " name)))))))

(defun gemini-companion-undo-record (edits label)
  "Record EDITS, which the user has just allowed together, as the decision LABEL.
Taking it back undoes them all, or none."
  (gemini-companion-decision-with-all label
    (dolist (edit edits)
      (run-hook-with-args 'gemini-companion-step-decided-functions
                          (gemini-companion-undo--whole edit)))))

(defun gemini-companion-undo--plan-edits (edits visit)
  "Return the items of a plan to undo EDITS.
The last edit of a file is undone first: the others may be possible then, and
are planned then.  For VISIT, see `gemini-companion-undo-edits'."
  (seq-mapcat
   (pcase-lambda (`(,_ ,last . ,before))
     (let* ((item (gemini-companion-undo--plan-edit last visit))
            (later-p (or (gemini-companion-changes-several-p last)
                         (gemini-companion-names-of-copy
                          (gemini-companion-edit-file last)))))
       (setf (gemini-companion-decide-item-remote item) later-p)
       (cons item
             (unless (gemini-companion-decide-item-reason item)
               (mapcar (lambda (edit)
                         (gemini-companion-decide-item
                          :name (gemini-companion-edit-name edit) :remote later-p
                          :later (apply-partially #'gemini-companion-undo--plan-edit
                                                  edit nil)))
                       before)))))
   (seq-group-by (lambda (edit)
                   (if (gemini-companion-changes-several-p edit)
                       (gemini-companion-edit-id edit)
                     (gemini-companion-edit-true-name edit)))
                 edits)))

(defun gemini-companion-undo--plan-edit (edit visit)
  "Return the item of a plan to undo EDIT.
For VISIT, see `gemini-companion-undo-edits'."
  (let ((name (gemini-companion-edit-name edit)))
    (gemini-companion-decide-plan name
      (gemini-companion-undo--notice edit)
      (gemini-companion-undo--check edit)
      (when visit
        (gemini-companion-undo--visit edit))
      (if (gemini-companion-changes-several-p edit)
          (gemini-companion-undo--item-of-files
           edit (gemini-companion-undo-several-left edit))
        (let* ((record (car (gemini-companion-changes-of edit)))
               (seen (and record
                          (gemini-companion-changes-seen
                           record (gemini-companion-revert-unsaved
                                   (gemini-companion-edit-file edit)))))
               (step (gemini-companion-undo--step edit seen))
               (hunks (gemini-companion-step-hunks step))
               (creates (eq 'none (gemini-companion-step-before step)))
               (deletes (eq 'none (gemini-companion-step-after step)))
               (changes (and seen
                             (not creates)
                             (not deletes)
                             (gemini-companion-record-without
                              (gemini-companion-changes-seen-look seen) hunks)))
               (others (and changes
                            (gemini-companion-changes-others-in record hunks seen)))
               (text (gemini-companion-undo--text edit)))
          (gemini-companion-undo--item
           (or record edit) (if deletes 'deleted changes) others
           (lambda () (gemini-companion-undo--message edit step))
           :name name :step step
           :deletes (gemini-companion-step-deletes step)
           :concern (and (eq 'lines (gemini-companion-content-reported
                                     (gemini-companion-edit-content edit)))
                         'line-ends)
           :others (length others)
           :current (lambda () (equal text (gemini-companion-undo--text edit)))))))))

(defun gemini-companion-undo--item-of-files (edit files)
  "Return the item of a plan to undo EDIT, of several files, in FILES."
  (gemini-companion-undo--item
   ;; The step says what became of its files.
   edit 'files nil #'ignore
   :name (gemini-companion-edit-name edit) :remote t
   :step (gemini-companion-step-make :kind 'several :on t :edit edit :hunks files)
   :deletes (gemini-companion-step-several-deletes edit files 'undone)
   :without (lambda (names)
              (when-let* ((rest (gemini-companion-step-several-except edit files names)))
                (gemini-companion-undo--item-of-files edit rest)))))

(defun gemini-companion-undo--visit (edit)
  "Visit the file of EDIT, unless that may ask for a password, or block Emacs."
  (let ((file (gemini-companion-edit-file edit)))
    (unless (or (gemini-companion-changes-several-p edit)
                (gemini-companion-edit-new-p edit)
                (gemini-companion-edit-deleted-modes edit)
                (find-file-name-handler file 'insert-file-contents)
                (and (gemini-companion-names-of-copy file)
                     (null (gemini-companion-names-buffer file))))
      (gemini-companion-revert-visit file))))

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

(defun gemini-companion-undo--step (edit seen)
  "Return the step to undo EDIT, or signal an error if that is impossible.
SEEN is the `gemini-companion-changes-seen' of its file, or nil if it has no
record.  The file gets its bytes from before EDIT; or if others have written
elsewhere in it since, the lines of EDIT are undone."
  (let* ((whole (gemini-companion-undo--whole edit))
         (bytes (gemini-companion-step-before whole))
         (before (gemini-companion-step-after whole)))
    (cond
     ;; The file is created again, or deleted.
     ((memq 'none (list bytes before)) whole)
     ;; Others may have converted the file, which stays so.
     ((not (and bytes before (gemini-companion-undo--format-kept-p edit bytes)))
      (gemini-companion-undo--step-of-lines edit seen nil))
     ((gemini-companion-edit-texts-in-file-p edit) whole)
     (t (gemini-companion-undo--step-of-lines edit seen whole)))))

(defun gemini-companion-undo--step-of-lines (edit seen whole)
  "Return the step to undo EDIT in the lines of SEEN.
WHOLE is the step for the bytes of the file, and replaces those of the lines if
these are then as before EDIT; or it is nil.  For SEEN, see
`gemini-companion-undo--step'."
  (let* ((name (gemini-companion-edit-name edit))
         (look (if seen
                   (gemini-companion-changes-seen-look seen)
                 (user-error "%s %s; the text before is in %s" name
                             (if (gemini-companion-edit-texts-utf-8-p edit)
                                 "has changed since, and its lines are no longer known"
                               "is not text in UTF-8 and has changed since")
                             (buffer-name (gemini-companion-undo--before edit)))))
         (record (car (gemini-companion-changes-of edit)))
         (file (gemini-companion-edit-file edit))
         (hunks (or (gemini-companion-changes-not-undone
                     (cdr (gemini-companion-changes-of edit)))
                    (user-error "No change of %s by this edit is left" name)))
         (changes (gemini-companion-record-without look hunks)))
    (when-let* ((line (gemini-companion-record-conflict look hunks)))
      (user-error "%s: line %d has changed since; undo its changes one by one"
                  name (1+ line)))
    (if (and whole
             (equal (gemini-companion-changes-lines-of-content
                     (gemini-companion-changes-content-with
                      record (gemini-companion-step-after whole)))
                    (gemini-companion-lines-without
                     changes (gemini-companion-changes-seen-lines seen))))
        (gemini-companion-step-make
         :kind 'undone :on t :record record :hunks hunks
         :before (gemini-companion-step-before whole)
         :after (gemini-companion-step-after whole))
      (gemini-companion-step-of-changes
       record changes hunks t
       (and (null (gemini-companion-revert-unsaved file))
            (gemini-companion-names-of-copy file))))))

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
  "Return non-nil if BYTES have the format in which EDIT has written its file."
  (null (gemini-companion-format-conversion
         (gemini-companion-edit-format edit)
         (gemini-companion-content-format
          (gemini-companion-edit-texts-with edit bytes)))))

(provide 'gemini-companion-undo)
;;; gemini-companion-undo.el ends here
