;;; gemini-companion-changes.el --- Changes by CLIs that nobody has reviewed  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What a CLI has written without a review is a change, until the user keeps or
;; undoes it, over any number of turns.  Each file with changes has one record,
;; `gemini-companion-changes-file', whose baseline says what nobody has reviewed;
;; see `gemini-companion-baseline'.  The record is set by a write of a CLI, and by
;; the user who keeps a change.  Nothing else is recorded: the changes are computed
;; from the text now, and what was undone, or is gone with another branch, is a
;; change again when its lines are back.  The texts take at most 64 MB.
;;
;; `gemini-companion-marks' displays the changes of a buffer, and
;; `gemini-companion-walk' goes from one to the next.

;;; Code:

(require 'gemini-companion-baseline)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-format)
(require 'gemini-companion-lines)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-revert)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)
(require 'gemini-companion-written)

;;;; State

(cl-defstruct (gemini-companion-changes-file
               (:noinline t)
               (:constructor gemini-companion-changes--make (name edit))
               (:copier nil))
  "A file with changes by CLIs that nobody has reviewed.
NAME is its true name, and EDIT is the last edit that was written there."
  name edit
  (edits nil :documentation "The edits that were written there, last one first.")
  (baseline nil :documentation "The `gemini-companion-baseline' of the file.")
  (new nil :documentation "Non-nil if the file did not exist before.")
  (known nil :documentation "The changes at the last look, in order.")
  (stamp nil :documentation "The stamp of the file at the last look."))

(defvar gemini-companion-changes--files nil
  "The records of files, the one that was written first is the first.")

(defvar gemini-companion-changes--recorded (make-hash-table :test 'eq :weakness 'key)
  "Table from edits to the texts with which they were recorded.
An edit may be reported by its CLI, and found in its file, too.")

(defvar gemini-companion-changes--lines (make-hash-table :test 'eq :weakness 'key)
  "Table from edits to conses of a text that they wrote, and their lines.
The lines are a table; see `gemini-companion-changes--lines-of'.  To compare
the texts again for each change of a file would take seconds.")

(defvar gemini-companion-changes--kept (make-hash-table :test 'eq :weakness 'key)
  "Table whose keys are the edits of which the user has kept all that was left.")

(defconst gemini-companion-changes--most-bytes (* 64 1024 1024)
  "How many bytes of memory the texts of all records may take.")

(defvar gemini-companion-changes-functions nil
  "Functions called with a record of which the changes were computed again.
If there are none, the record may have been dropped.  The other argument is
the buffer that visits the file, or nil.")

(defvar gemini-companion-changes-undo-functions nil
  "Functions called when the user undoes what a CLI has written.
The first argument is the record of the file, or the edit if that is undone as
a whole, or a hunk of it.  The second one is a list of what is undone,
`gemini-companion-baseline-change's, or `deleted' if the file, which was new,
is deleted.  The third one are the lines that had these changes, a vector.")

(defun gemini-companion-changes-files (&optional all)
  "Return the records of the files that had changes at the last look, in order.
If ALL is non-nil, include those whose changes are not in the text now."
  (if all
      (copy-sequence gemini-companion-changes--files)
    (seq-filter #'gemini-companion-changes-file-known
                gemini-companion-changes--files)))

(defun gemini-companion-changes-left ()
  "Return how many changes were left at the last look, or nil if there are none."
  (let ((count (cl-loop for record in gemini-companion-changes--files
                        sum (length (gemini-companion-changes-file-known record)))))
    (and (< 0 count) count)))

(defun gemini-companion-changes-here ()
  "Return the record of the file that the current buffer visits, or nil."
  (seq-find (lambda (record)
              (gemini-companion-names-visited-here-p
               (gemini-companion-changes-file-name record)))
            gemini-companion-changes--files))

(defun gemini-companion-changes-buffer (record)
  "Return the buffer that visits the file of RECORD, or nil."
  (when-let* ((buffer (gemini-companion-names-buffer
                       (gemini-companion-changes-path record))))
    (with-current-buffer buffer
      (and (gemini-companion-names-visited-here-p
            (gemini-companion-changes-file-name record))
           buffer))))

(defun gemini-companion-changes-path (record)
  "Return the name of the file of RECORD, as its CLI sent it."
  (gemini-companion-edit-file (gemini-companion-changes-file-edit record)))

;;;; Writes

(defun gemini-companion-changes--follow (edit event)
  "Record what EDIT has written, if that is the EVENT, and look at its file."
  (when (and (eq event 'written)
             (not (equal (gemini-companion-edit-after edit)
                         (gethash edit gemini-companion-changes--recorded))))
    (puthash edit (gemini-companion-edit-after edit) gemini-companion-changes--recorded)
    (gemini-companion-changes--record edit))
  (when (memq event '(written reverted))
    (when-let* ((record (gemini-companion-changes--find edit)))
      (gemini-companion-changes-look record))))

(defun gemini-companion-changes--find (edit)
  "Return the record of the file of EDIT, or nil."
  (cl-find (gemini-companion-edit-true-name edit) gemini-companion-changes--files
           :key #'gemini-companion-changes-file-name :test #'equal))

(defun gemini-companion-changes--reviewed-p (edit)
  "Return non-nil if EDIT is to be kept at once.
The user has accepted it, in Emacs or in the terminal, or wants no marks."
  (or (eq 'accepted (gemini-companion-edit-status edit))
      (not (eq 'marks gemini-companion-after-write))))

(defun gemini-companion-changes--record (edit)
  "Record what EDIT has written."
  (let* ((record (or (gemini-companion-changes--find edit)
                     (gemini-companion-changes--make
                      (gemini-companion-edit-true-name edit) edit)))
         (previous (gemini-companion-changes-file-baseline record))
         (before (gemini-companion-changes--before edit)))
    (when before
      (let* ((old (gemini-companion-lines-split before))
             (written (gemini-companion-changes--written edit))
             (written-format (gemini-companion-edit-format edit))
             (format (if (eq 'marks gemini-companion-after-write)
                         (gemini-companion-edit-texts-format
                          edit (gemini-companion-edit-before edit))
                       written-format))
             (baseline (funcall (if (gemini-companion-changes--reviewed-p edit)
                                    #'gemini-companion-baseline-after-review
                                  #'gemini-companion-baseline-after-write)
                                previous old (car written) format written-format)))
        (when (cdr written)
          (setq baseline (gemini-companion-baseline-after-write
                          baseline (car written) (cdr written)
                          written-format written-format)))
        (unless previous
          (setf (gemini-companion-changes-file-new record)
                (eq 'new (gemini-companion-edit-before edit))))
        (setf (gemini-companion-changes-file-edit record) edit)
        (cl-pushnew edit (gemini-companion-changes-file-edits record))
        (gemini-companion-changes--set-baseline record baseline)
        (gemini-companion-changes--make-room record)))))

(defun gemini-companion-changes--make-room (record)
  "Drop the oldest records, but not RECORD, if the texts take too much memory.
Report which files have no marks any more."
  (let ((size 0))
    (dolist (other (reverse gemini-companion-changes--files))
      (cl-incf size (gemini-companion-baseline-size
                     (gemini-companion-changes-file-baseline other)))
      (when (and (< gemini-companion-changes--most-bytes size)
                 (not (eq other record)))
        (gemini-companion-changes--drop other)
        (message "Changes of %s are no longer marked, as the texts of all changed \
files take more than %d MB"
                 (gemini-companion-edit-name
                  (gemini-companion-changes-file-edit other))
                 (/ gemini-companion-changes--most-bytes 1024 1024))))))

(defun gemini-companion-changes--before (edit)
  "Return the text that the file of EDIT had, or nil if it was not kept."
  (pcase (gemini-companion-edit-before edit)
    ('new "")
    ('unknown nil)
    (_ (gemini-companion-edit-texts-decode-before edit))))

(defun gemini-companion-changes--written (edit)
  "Return the lines that EDIT has written, as its file has them.
It is a cons of these and nil.  If the user has accepted other lines than the
file has, as those are of the CLI or of a formatter, it is a cons of the
accepted lines and of the lines of the file."
  (let* ((lines (gemini-companion-lines-split (gemini-companion-edit-after edit)))
         (bytes (gemini-companion-edit-texts-bytes edit))
         (now (and bytes (gemini-companion-lines-split
                          (gemini-companion-edit-texts-decode edit bytes)))))
    (cond ((null now) (list lines))
          ;; A CLI leaves the newline at the end of a file as it is.
          ((equal (gemini-companion-changes--without-end lines)
                  (gemini-companion-changes--without-end now))
           (list now))
          ((not (gemini-companion-changes--alone-p edit)) (list lines))
          ;; Qwen Code merges two edits of a file.
          ((gemini-companion-changes--another-accepted-p edit) (list now))
          (t (cons lines now)))))

(defun gemini-companion-changes--without-end (lines)
  "Return the text of LINES without a newline at its end."
  (string-remove-suffix "\n" (gemini-companion-lines-join lines)))

(defun gemini-companion-changes--alone-p (edit)
  "Return non-nil if what the file of EDIT has now was not written by the user.
EDIT was accepted in Emacs, which has not saved the file since."
  (and (gemini-companion-edit-accepted-p edit)
       (not (gemini-companion-edit-reported edit))
       (gemini-companion-edit-awaited edit)
       (gemini-companion-written-alone-p (gemini-companion-edit-awaited edit))))

(defun gemini-companion-changes--another-accepted-p (edit)
  "Return non-nil if another edit of EDIT's file was accepted in its turn."
  (seq-some (lambda (other)
              (and (gemini-companion-edit-accepted-p other)
                   (eq (gemini-companion-edit-turn edit)
                       (gemini-companion-edit-turn other))))
            (gemini-companion-edit-others-of-file edit)))

(defun gemini-companion-changes--set-baseline (record baseline)
  "Make BASELINE that of RECORD, which is dropped if nothing is left to review."
  (setf (gemini-companion-changes-file-baseline record) baseline)
  (if (gemini-companion-baseline-reviewed-p baseline)
      (gemini-companion-changes--drop record)
    (unless (memq record gemini-companion-changes--files)
      (setq gemini-companion-changes--files
            (append gemini-companion-changes--files (list record))))))

(defun gemini-companion-changes--drop (record)
  "Forget RECORD, in whose file nothing is left to review."
  (setq gemini-companion-changes--files (remq record gemini-companion-changes--files))
  (setf (gemini-companion-changes-file-known record) nil)
  (run-hook-with-args 'gemini-companion-changes-functions
                      record (gemini-companion-changes-buffer record)))

;;;; Changes

(defun gemini-companion-changes-look (record)
  "Compute the changes of RECORD again from the text now, and return them.
The value is a list of `gemini-companion-baseline-change's, in order.  If
the file is gone, or cannot be read, it is nil."
  (let ((buffer (gemini-companion-changes-buffer record)))
    (setf (gemini-companion-changes-file-stamp record)
          (gemini-companion-watch-stamp (gemini-companion-changes-path record)))
    (with-current-buffer (or buffer (current-buffer))
      (let ((now (gemini-companion-changes--now record buffer))
            (baseline (gemini-companion-changes-file-baseline record)))
        (setf (gemini-companion-changes-file-known record)
              (and now
                   (memq record gemini-companion-changes--files)
                   (gemini-companion-baseline-changes
                    (if buffer
                        (gemini-companion-changes--as-visited record baseline)
                      baseline)
                    (car now) (cdr now))))))
    (run-hook-with-args 'gemini-companion-changes-functions record buffer)
    (force-mode-line-update t)
    (gemini-companion-changes-file-known record)))

(defun gemini-companion-changes-look-at-buffer (&optional buffer)
  "Compute the changes of the file of BUFFER again, if it has a record.
BUFFER is the current one by default, and may have been killed."
  (when (buffer-live-p (or buffer (current-buffer)))
    (with-current-buffer (or buffer (current-buffer))
      (when-let* ((record (gemini-companion-changes-here)))
        (gemini-companion-changes-look record)))))

(defun gemini-companion-changes-text (record)
  "Return the text now of the file of RECORD, of its buffer or else on disk.
Return nil if it is gone, or cannot be read."
  (if-let* ((buffer (gemini-companion-changes-buffer record)))
      (gemini-companion-revert-text buffer)
    (when-let* ((bytes (gemini-companion-changes--bytes record)))
      (gemini-companion-edit-texts-decode
       (gemini-companion-changes-file-edit record) bytes))))

(defun gemini-companion-changes--bytes (record)
  "Return the bytes of the file of RECORD, or nil if it cannot be read."
  (let ((edit (gemini-companion-changes-file-edit record)))
    (and (equal (gemini-companion-changes-file-name record)
                (gemini-companion-text-true-name (gemini-companion-edit-file edit)))
         (gemini-companion-edit-texts-bytes edit))))

(defun gemini-companion-changes--now (record buffer)
  "Return the lines of the file of RECORD now, and their format, a cons.
BUFFER is the one that visits it, or nil.  Return nil if it cannot be read."
  (if buffer
      (cons (gemini-companion-lines-split (gemini-companion-revert-text buffer))
            (gemini-companion-format-of-buffer buffer))
    (let ((edit (gemini-companion-changes-file-edit record)))
      (when-let* ((bytes (gemini-companion-changes--bytes record)))
        (cons (gemini-companion-lines-split
               (gemini-companion-edit-texts-decode edit bytes))
              (gemini-companion-edit-texts-format edit bytes))))))

(defun gemini-companion-changes--as-visited (record baseline)
  "Return BASELINE of RECORD as the current buffer has its lines.
The CLI may have read the file in another coding system than Emacs."
  (let* ((edit (gemini-companion-changes-file-edit record))
         (probe "é"))
    ;; Most files are in the coding system of the buffer: then no line is mapped.
    (if (eq probe (gemini-companion-edit-texts-as-visited edit probe))
        baseline
      (gemini-companion-baseline-mapped
       baseline (apply-partially #'gemini-companion-edit-texts-as-visited edit)))))

;;;; Keeping and undoing

(defun gemini-companion-changes-keep (record changes)
  "Keep CHANGES of RECORD, some of those of the last look.
Undoing in the buffer of the file makes them changes again."
  (let ((previous (gemini-companion-changes-file-baseline record))
        (buffer (gemini-companion-changes-buffer record))
        (edits (seq-uniq (seq-mapcat
                          (apply-partially #'gemini-companion-changes-edits record)
                          changes)
                         #'eq)))
    (gemini-companion-changes--set-baseline
     record (gemini-companion-baseline-keep previous changes))
    (dolist (edit edits)
      (unless (gemini-companion-changes--left-of-p record edit)
        (puthash edit t gemini-companion-changes--kept)))
    (when buffer
      (with-current-buffer buffer
        (when (listp buffer-undo-list)
          (undo-boundary)
          (push (gemini-companion-changes--undo-entry
                 record (gemini-companion-changes-file-baseline record) previous)
                buffer-undo-list)
          (undo-boundary))))
    (gemini-companion-changes-look record)))

(defun gemini-companion-changes--undo-entry (record now baseline)
  "Return an undo entry to give RECORD the BASELINE again, in place of NOW."
  (list 'apply #'gemini-companion-changes--unkeep record now baseline))

(defun gemini-companion-changes--unkeep (record now baseline)
  "Make BASELINE that of RECORD again, unless another than NOW is by now."
  (when (eq now (gemini-companion-changes-file-baseline record))
    (push (gemini-companion-changes--undo-entry record baseline now)
          buffer-undo-list)
    (gemini-companion-changes--set-baseline record baseline)
    (gemini-companion-changes--unkept record)
    (gemini-companion-changes-look record)))

(defun gemini-companion-changes--unkept (record)
  "Record that edits of which RECORD has changes again are not kept."
  (dolist (edit (gemini-companion-changes-file-edits record))
    (when (and (gethash edit gemini-companion-changes--kept)
               (gemini-companion-changes--left-of-p record edit))
      (remhash edit gemini-companion-changes--kept))))

(defun gemini-companion-changes-kept-p (edit)
  "Return non-nil if the user has kept all that was left to review of EDIT."
  (gethash edit gemini-companion-changes--kept))

(defun gemini-companion-changes-of-edit (edit)
  "Return the record of EDIT's file, and the changes with lines of EDIT, a cons.
They are those of the last look.  Return nil if there are none."
  (when-let* ((record (gemini-companion-changes--find edit))
              (changes (seq-filter
                        (lambda (change)
                          (memq edit (gemini-companion-changes-edits record change)))
                        (gemini-companion-changes-file-known record))))
    (cons record changes)))

(defun gemini-companion-changes-unkeep (edit)
  "Let what is in the file of EDIT, and the user has kept, be changes again.
Return the number of changes of that file."
  (let* ((record (or (gemini-companion-changes--find edit)
                     (gemini-companion-changes--make
                      (gemini-companion-edit-true-name edit) edit)))
         (buffer (gemini-companion-changes-buffer record))
         (now (or (gemini-companion-changes--now record buffer)
                  (user-error "%s cannot be read" (gemini-companion-edit-name edit)))))
    (cl-pushnew edit (gemini-companion-changes-file-edits record))
    (gemini-companion-changes--set-baseline
     record
     (gemini-companion-baseline-unkeep
      (and (memq record gemini-companion-changes--files)
           (gemini-companion-changes-file-baseline record))
      (gemini-companion-baseline-between
       (gemini-companion-lines-split (gemini-companion-changes--before edit))
       (gemini-companion-lines-split (gemini-companion-edit-after edit))
       (gemini-companion-edit-texts-format edit (gemini-companion-edit-before edit))
       (gemini-companion-edit-format edit))
      (car now) (cdr now)))
    (remhash edit gemini-companion-changes--kept)
    (length (gemini-companion-changes-look record))))

(defun gemini-companion-changes--left-of-p (record edit)
  "Return non-nil if RECORD has a line of EDIT that nobody has reviewed.
Lines without a word, such as closing braces, do not count if there are others:
they may be of another edit."
  (let* ((baseline (gemini-companion-changes-file-baseline record))
         (table (gemini-companion-changes--lines-of edit))
         (telling-p (apply-partially #'string-match-p "[[:alnum:]]"))
         (lines (gemini-companion-baseline-lines-of
                 (gemini-companion-baseline-text baseline)
                 (gemini-companion-baseline-written baseline)
                 (gemini-companion-baseline-regions baseline))))
    (and (memq record gemini-companion-changes--files)
         (gemini-companion-changes--any-of-p
          (if (seq-some telling-p (hash-table-keys table))
              (seq-filter telling-p lines)
            lines)
          table))))

(defun gemini-companion-changes-undo (record changes)
  "Undo CHANGES, some of those of RECORD at the last look, in its buffer.
The current buffer is that one.  It is not saved.  Line ends stay, but where a
conversion is undone.  If that is impossible, signal an error after the rest."
  (gemini-companion-revert-lock)
  (run-hook-with-args 'gemini-companion-changes-undo-functions record changes
                      (gemini-companion-lines-split
                       (gemini-companion-revert-text (current-buffer))))
  (undo-boundary)
  (let ((group (prepare-change-group))
        (conversion (seq-some #'gemini-companion-baseline-change-conversion changes))
        (why nil))
    (activate-change-group group)
    (gemini-companion-revert-replace-text
     (gemini-companion-lines-undo-in-text
      changes (gemini-companion-revert-text (current-buffer))))
    (when conversion
      (setq why (gemini-companion-format-convert-buffer (car conversion))))
    (accept-change-group group)
    ;; One undo of the user is to bring back both.
    (undo-amalgamate-change-group group)
    (gemini-companion-changes-look record)
    (when why
      (user-error "%s %s"
                  (gemini-companion-edit-name (gemini-companion-changes-file-edit record))
                  why))))

(defun gemini-companion-changes-edits (record change)
  "Return the edits that have written lines of CHANGE of RECORD, last one first.
If none is known to have done so, return all edits of the file."
  (let ((lines (gemini-companion-baseline-change-lines-of
                (gemini-companion-changes-file-baseline record) change))
        (edits (gemini-companion-changes-file-edits record)))
    (or (seq-filter (lambda (edit)
                      (gemini-companion-changes--any-of-p
                       lines (gemini-companion-changes--lines-of edit)))
                    edits)
        edits)))

(defun gemini-companion-changes--any-of-p (lines table)
  "Return non-nil if one of LINES is a key of TABLE."
  (seq-some (lambda (line) (gethash line table)) lines))

(defun gemini-companion-changes--lines-of (edit)
  "Return a table whose keys are the lines that EDIT has added and removed."
  (pcase (gethash edit gemini-companion-changes--lines)
    ((and `(,text . ,lines) (guard (eq text (gemini-companion-edit-after edit))))
     lines)
    (_
     (let ((lines (make-hash-table :test 'equal)))
       (when-let* ((before (gemini-companion-changes--before edit)))
         (let ((old (gemini-companion-lines-split before))
               (new (gemini-companion-lines-split
                     (gemini-companion-edit-after edit))))
           (dolist (line (gemini-companion-baseline-lines-of
                          old new (gemini-companion-lines-compare old new)))
             (puthash line t lines))))
       (puthash edit (cons (gemini-companion-edit-after edit) lines)
                gemini-companion-changes--lines)
       lines))))

(defun gemini-companion-changes-share (record change predicate)
  "Return `all' if all edits that wrote CHANGE of RECORD satisfy PREDICATE.
Return `some' if some of them do, or else nil."
  (let* ((edits (gemini-companion-changes-edits record change))
         (own (seq-count predicate edits)))
    (cond ((= own (length edits)) 'all)
          ((< 0 own) 'some))))

;;;; Life

(defun gemini-companion-changes--look-at-end (_session state)
  "Look at each file with changes that was written or deleted since.
STATE is that of a CLI: only at the end of its turn, which this may be, is
each file asked for its stamp.  A CLI may have deleted what was for its turn
only.  A file that is visited is looked at when its buffer changes."
  (when (eq state 'ready)
    (dolist (record (gemini-companion-changes-files))
      (unless (equal (gemini-companion-changes-file-stamp record)
                     (gemini-companion-watch-stamp
                      (gemini-companion-changes-path record)))
        (gemini-companion-changes-look record)))))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'changes)))
  "Record what CLIs write from now on."
  '((gemini-companion-edit-functions gemini-companion-changes--follow)
    (gemini-companion-state-functions gemini-companion-changes--look-at-end)
    (find-file-hook gemini-companion-changes-look-at-buffer)
    (after-revert-hook gemini-companion-changes-look-at-buffer)
    (gemini-companion-revert-merged-hook gemini-companion-changes-look-at-buffer)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'changes)))
  "Forget all changes."
  (clrhash gemini-companion-changes--recorded)
  (clrhash gemini-companion-changes--kept)
  (mapc #'gemini-companion-changes--drop gemini-companion-changes--files))

(cl-defmethod gemini-companion-part-lighter ((_part (eql 'changes)))
  "Return a text for the mode line if there is a change left, or nil."
  (when-let* ((count (gemini-companion-changes-left)))
    (cons (format "~%d" count)
          "~: changes of a CLI that you have not kept or undone")))

(provide 'gemini-companion-changes)
;;; gemini-companion-changes.el ends here
