;;; gemini-companion-changes.el --- Changes by CLIs that nobody has reviewed  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What a CLI has written without a review is a change until the user keeps or undoes
;; it, over any number of turns.  Each file that a CLI has written has one record, a
;; `gemini-companion-changes-file'.  Its lines say which hunk of which edit has written
;; or removed each line; see `gemini-companion-record'.  An edit of a file that was not in
;; UTF-8 has none.
;;
;; Only a write of a CLI changes the lines of a record.  When the user keeps hunks, undoes
;; them, or takes that back, a flag of the hunks is set.  Nothing else is recorded: an
;; update computes the changes from the current text, so a change that disappears when
;; another branch is checked out returns with its lines.  An undone hunk stays undone.  A
;; file that other programs may have written is updated when its window is selected, when
;; Emacs gets the focus, and at the end of a turn.
;;
;; A record forgets what reviewed hunks have added and removed.  What is reviewed of an
;; edit that the list of edits has dropped is forgotten with the edit; so is a record
;; without changes left, once all of its edits are dropped.  Changes left are never
;; forgotten.  Of what is forgotten, the origins of lines stay.
;;
;; `gemini-companion-marks' displays the changes of a buffer, and
;; `gemini-companion-walk' goes from one to the next.

;;; Code:

(require 'gemini-companion-attribution)
(require 'gemini-companion-coding)
(require 'gemini-companion-commands)
(require 'gemini-companion-content)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-garbage)
(require 'gemini-companion-hunk)
(require 'gemini-companion-lines)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-origin)
(require 'gemini-companion-part)
(require 'gemini-companion-record)
(require 'gemini-companion-revert)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)
(require 'gemini-companion-written)

;; The first commit loads the file.
(autoload 'gemini-companion-commit-made "gemini-companion-commit")
(autoload 'gemini-companion-commit-seen "gemini-companion-commit")

;;;; State

(cl-defstruct (gemini-companion-changes-file
               (:noinline t)
               (:constructor gemini-companion-changes--make
                             (name edit &key edits writes lines path new))
               (:copier nil))
  "The record of a file that CLIs have written.
NAME is its true name, and EDIT is the last edit that was written there."
  name edit
  (edits nil :documentation "The edits that were written there, last one first.")
  (writes nil :documentation "The `gemini-companion-changes--write's, the last one
first.")
  (previous nil :documentation "The version after the last write, and the lines
before it, a cons.")
  (lines nil :documentation "The lines that the file has and had, a vector, see
`gemini-companion-record-write'.")
  (path nil :documentation "The name of the file if it was renamed in Emacs.")
  (told nil :documentation "A list that differs, by `equal', if an update has anything
to tell.  It begins with the buffer that visited the file at the last one.")
  (new nil :documentation "Non-nil if the file did not exist before.")
  (version 0 :documentation "A number that is greater after each write and decision.")
  (unreviewed nil :documentation "Non-nil if a hunk was not reviewed.")
  (known nil :documentation "The changes at the last update, in order.")
  (stamp nil :documentation "The stamp of the file at the last update at which its
buffer, if any, was up to date.")
  (turned nil :documentation "Non-nil if Emacs has undone or redone a decision since
the last update.")
  (seen nil :documentation "The last `gemini-companion-changes-seen' of its buffer
and of its file, a list."))

(cl-defstruct (gemini-companion-changes--write
               (:noinline t)
               (:constructor gemini-companion-changes--write
                             (edit after hunks &optional other))
               (:copier nil))
  "The write of EDIT to the file of a record.
AFTER is the text that was recorded, and HUNKS are the hunks of EDIT in the
record.  OTHER is non-nil if the file had other lines than AFTER, which were
recorded as well."
  edit after hunks other)

(cl-defstruct (gemini-companion-changes-seen
               (:noinline t)
               (:constructor gemini-companion-changes--seen
                             (key lines look states))
               (:copier nil))
  "The state of a record for one text of its file.
LINES are the lines of the text, as the CLI reads them.  LOOK is the record for
LINES, and STATES is a table of what became of each hunk, see
`gemini-companion-record-states'.  KEY differs, by `equal', once the text or the
record has changed.  If `gemini-companion-changes-look' has returned it, DECIDED
are the changes that are kept or undone, and OTHERS the indices of the lines
that no CLI has written, without those that the file had before the first edit."
  key lines look states (decided 'unknown) others)

(defvar gemini-companion-changes--files nil
  "The records of files, in the order in which CLIs first wrote the files.")

(defvar gemini-companion-changes--past nil
  "Alist from true names of files to records of which only origins are left.
The last one is first, see `gemini-companion-record-past'.")

(defconst gemini-companion-changes-most-past 200000
  "Maximum number of lines of `gemini-companion-changes--past'.")

(defvar gemini-companion-changes-history-function #'ignore
  "Function that returns the hunks of a record that the decisions name.
It is called with the record.  Lines of these hunks are not forgotten.")

(defvar gemini-companion-changes--unrecorded nil
  "Edits whose writes are not recorded, as their texts could not be compared.
The first one was written first.")

(defvar gemini-companion-changes--undo-names
  (make-hash-table :test 'eq :weakness 'key)
  "Table from symbols in undo lists to what they name.
Undo-fu-session, undo-tree and others print these lists to files: a record there
would be printed with all its texts.  A symbol is uninterned, so that it is
unknown once it was printed and read.")

(defvar gemini-companion-changes-functions nil
  "Functions called with a record once it, or the text of its file, has changed.
If the record has no changes, it may have been dropped.  The other argument is
the buffer that visits the file, or nil.  Both are nil if an edit was not
written, or was written or undone without a record.")

(defvar gemini-companion-changes-undo-functions nil
  "Functions called when the user undoes what a CLI has written.
The first argument is the record of the file, or the edit if its file has no
record.  The second argument is a list of the undone changes,
`gemini-companion-record-change's, `deleted' if the file, which was new, is
deleted, or `files' if the edit is of several files.")

(defvar gemini-companion-changes--later nil
  "Records to update after the current step, in a list after its first element.
It is nil without a step.")

(defun gemini-companion-changes-files (&optional all)
  "Return the records of the files that had changes at the last update, in order.
If ALL is non-nil, include files whose changes are not in the current text."
  (seq-filter (if all
                  #'gemini-companion-changes-file-unreviewed
                #'gemini-companion-changes-file-known)
              gemini-companion-changes--files))

(defun gemini-companion-changes-of-file (file)
  "Return the record of FILE, a true name, or nil if no CLI has written it."
  (cl-find file gemini-companion-changes--files
           :key #'gemini-companion-changes-file-name :test #'equal))

(defun gemini-companion-changes-with-edit (edit)
  "Return the record that EDIT has written, or nil; its file may be renamed."
  (seq-find (lambda (record)
              (memq edit (gemini-companion-changes-file-edits record)))
            gemini-companion-changes--files))

(defun gemini-companion-changes-left ()
  "Return how many changes were left at the last update, or nil if there are none."
  (let ((count (cl-loop for record in gemini-companion-changes--files
                        sum (length (gemini-companion-changes-file-known record)))))
    (and (< 0 count) count)))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'changes)))
  "Return how many changes are left, or nil."
  (gemini-companion-changes-left))

(defun gemini-companion-changes-here ()
  "Return the record of the file that the current buffer visits, or nil.
Return nil also if all of its changes were reviewed."
  (seq-find (lambda (record)
              (and (gemini-companion-changes-file-unreviewed record)
                   (gemini-companion-names-visited-here-p
                    (gemini-companion-changes-file-name record))))
            gemini-companion-changes--files))

(defun gemini-companion-changes-buffer (record)
  "Return the buffer that has the present text of the file of RECORD, or nil.
It visits the file.  If it has unsaved text, and the file was written since,
the present text is that of the file: what the CLI has written is not undone,
but not merged yet.  So it is if the buffer shows other lines, see
`gemini-companion-revert-shown-in'.  A file that a CLI has deleted has no text."
  (when-let* (((not (gemini-companion-changes-deleted-p record)))
              (buffer (gemini-companion-names-buffer
                       (gemini-companion-changes-path record))))
    (with-current-buffer buffer
      (and (gemini-companion-names-visited-here-p
            (gemini-companion-changes-file-name record))
           (not (gemini-companion-revert-unmerged-p buffer))
           (not (gemini-companion-revert-shown-in buffer))
           buffer))))

(defun gemini-companion-changes-unmarked-reason (record)
  "Return why the buffer of the file of RECORD has no marks, a verb phrase, or nil."
  (when-let* ((buffer (gemini-companion-names-buffer
                       (gemini-companion-changes-path record)))
              (coding (gemini-companion-revert-shown-in buffer)))
    (format "is shown in %s, and has no marks" coding)))

(defun gemini-companion-changes-deleted-p (record)
  "Return non-nil if a CLI has deleted the file of RECORD, and it is missing.
Then its present text is empty, even if a buffer still has the text before."
  (and (gemini-companion-edit-deleted-modes
        (gemini-companion-changes-file-edit record))
       (null (gemini-companion-text-attributes
              (gemini-companion-changes-path record)))))

(defun gemini-companion-changes-path (record)
  "Return the name of the file of RECORD: that of its last edit, or the new one."
  (or (gemini-companion-changes-file-path record)
      (gemini-companion-edit-path (gemini-companion-changes-file-edit record))))

;;;; Writes

(defun gemini-companion-changes--follow (edit event)
  "Record what EDIT has written, if that is the EVENT, and update its changes."
  (when (eq event 'written)
    (setq gemini-companion-changes--unrecorded
          (append (remq edit gemini-companion-changes--unrecorded) (list edit)))
    (gemini-companion-changes--record-all))
  (when (or (eq event 'file-state)
            (and (eq event 'written) (null (gemini-companion-changes--find edit))))
    (run-hook-with-args 'gemini-companion-changes-functions nil nil)))

(defun gemini-companion-changes--record-all ()
  "Record the writes that are not recorded yet, in order.
If the texts of one cannot be compared, report that; the next write of a CLI,
focus, or end of a turn tries again."
  (gemini-companion-log-guarded "Recording an edit"
    (gemini-companion-garbage-later
      (while gemini-companion-changes--unrecorded
        (gemini-companion-names-search-once
          (gemini-companion-changes--record-first))))))

(defun gemini-companion-changes--record-first ()
  "Record the first write that is not recorded yet, and update its changes."
  (let ((edit (pop gemini-companion-changes--unrecorded)))
    (condition-case problem
        (gemini-companion-changes--record edit)
      (gemini-companion-text-not-compared
       (push edit gemini-companion-changes--unrecorded)
       (signal (car problem) (cdr problem))))
    (when-let* ((record (gemini-companion-changes--find edit))
                ;; After a revert, a file without changes left is not updated.
                ((not (and (gemini-companion-changes-file-unreviewed record)
                           (gemini-companion-changes--before-revert-p record)))))
      (gemini-companion-changes-update record))))

(defun gemini-companion-changes--before-revert-p (record)
  "Return non-nil if the buffer of RECORD's file will be reverted.
Its text is then compared and marked by `after-revert-hook', and not before:
comparing the previous text would be the most of the time that a write takes."
  (when-let* ((buffer (gemini-companion-changes-buffer record)))
    (not (or (buffer-modified-p buffer)
             (gemini-companion-changes--up-to-date-p buffer)
             (gemini-companion-revert-own-way-p buffer)))))

(defun gemini-companion-changes--find (edit)
  "Return the record of the file of EDIT, or nil."
  (gemini-companion-changes-of-file (gemini-companion-edit-true-name edit)))

(defun gemini-companion-changes--record (edit)
  "Record what EDIT has written, unless that is recorded already.
A CLI may report a write that Emacs has already found in the file."
  (let* ((name (gemini-companion-edit-true-name edit))
         (before (gemini-companion-changes--before edit))
         (record (or (gemini-companion-changes-of-file name)
                     (gemini-companion-changes--begin name edit before)))
         (earlier (gemini-companion-changes--write-of record edit))
         (previous (gemini-companion-changes-file-previous record))
         ;; Nobody has written or decided since.
         (replaced (and earlier
                        (eq earlier (car (gemini-companion-changes-file-writes record)))
                        (eql (car previous)
                             (gemini-companion-changes-file-version record))))
         (lines (if replaced
                    (cdr previous)
                  (gemini-companion-changes-file-lines record))))
    (unless (or (null before)
                (not (gemini-companion-edit-texts-utf-8-p edit))
                (and earlier
                     (equal (gemini-companion-edit-after edit)
                            (gemini-companion-changes--write-after earlier))
                     (not (gemini-companion-changes--in-pieces-p earlier))))
      (if (or replaced (null earlier))
          (gemini-companion-changes--add-write
           record edit lines (gemini-companion-lines-split before) nil)
        (gemini-companion-changes--add-write
         record edit lines (gemini-companion-record-text lines)
         (gemini-companion-changes--write-hunks earlier)))
      (when replaced
        (cl-callf2 delq earlier (gemini-companion-changes-file-writes record)))
      (gemini-companion-changes--forget record)
      (unless (memq record gemini-companion-changes--files)
        (setf (alist-get name gemini-companion-changes--past nil t #'equal) nil)
        (setq gemini-companion-changes--files
              (append gemini-companion-changes--files (list record))))
      (gemini-companion-changes--decided record)
      (setf (gemini-companion-changes-file-previous record)
            (cons (gemini-companion-changes-file-version record) lines))
      (gemini-companion-changes--make-room record))))

(defun gemini-companion-changes--begin (name edit before)
  "Return a new record of the file NAME with the origins that are remembered.
EDIT has written the file, which had the text BEFORE, nil if that is unknown."
  (let ((past (cdr (assoc name gemini-companion-changes--past))))
    (gemini-companion-changes--make
     name edit
     :lines (and past before
                 (gemini-companion-record-begin
                  past (gemini-companion-lines-split before))))))

(defun gemini-companion-changes--add-write (record edit known before earlier)
  "Add a write of EDIT, whose file had the lines BEFORE, to RECORD.
KNOWN are the lines of RECORD, or nil.  EARLIER are the hunks of an earlier
write of EDIT there."
  (pcase-let* ((`(,accepted . ,in-file) (gemini-companion-changes--written edit))
               (after (or in-file accepted))
               ;; The user has accepted it, in Emacs or in the terminal, or wants no
               ;; marks.
               (reviewed (or (eq 'accepted (gemini-companion-edit-final-answer edit))
                             (not (eq 'marks gemini-companion-after-write))))
               (`(,lines . ,hunks)
                (gemini-companion-changes--lines-after
                 known edit before after (and reviewed accepted))))
    ;; A CLI may have deleted the file, and makes it again.
    (when (or (null known) (gemini-companion-edit-new-p edit))
      (setf (gemini-companion-changes-file-new record)
            (gemini-companion-edit-new-p edit)))
    (setf (gemini-companion-changes-file-edit record) edit
          (gemini-companion-changes-file-lines record) lines)
    (cl-pushnew edit (gemini-companion-changes-file-edits record))
    (push (gemini-companion-changes--write
           edit (gemini-companion-edit-after edit) (append hunks earlier)
           (and in-file t))
          (gemini-companion-changes-file-writes record))))

(defun gemini-companion-changes--in-pieces-p (write)
  "Return non-nil if the file has got the text of WRITE after it was recorded.
A CLI may empty a file before it writes it, or write it in pieces: what was
recorded then is neither its text nor that of a formatter."
  (when-let* (((gemini-companion-changes--write-other write))
              (now (gemini-companion-edit-texts-now
                    (gemini-companion-changes--write-edit write))))
    (equal (gemini-companion-changes-lines-of-content now)
           (gemini-companion-lines-split
            (gemini-companion-changes--write-after write)))))

(defun gemini-companion-changes--write-of (record edit)
  "Return the last write of EDIT in RECORD, or nil."
  (cl-find edit (gemini-companion-changes-file-writes record)
           :key #'gemini-companion-changes--write-edit))

(defun gemini-companion-changes--lines-after (lines edit before after accepted)
  "Return LINES of a record after EDIT has made AFTER of BEFORE, and its hunks.
The value is a cons.  LINES is nil for a file without a record.  For ACCEPTED,
see `gemini-companion-record-write'.  A wrong mark would stay: if the text is
not the one that was written, record an error, and begin again."
  (cl-flet ((write (lines)
              (gemini-companion-record-write lines edit before after
                                             :accepted accepted)))
    (or (and lines
             (let ((made (write lines)))
               (if (equal after (gemini-companion-record-text (car made)))
                   made
                 (ignore (gemini-companion-log-record
                          'failed "Recording an edit")))))
        (write before))))

(defun gemini-companion-changes--decided (record)
  "Record that a write, or a decision of the user, has changed RECORD."
  (cl-incf (gemini-companion-changes-file-version record))
  (setf (gemini-companion-changes-file-unreviewed record)
        (not (seq-every-p #'gemini-companion-record-hunk-reviewed
                          (gemini-companion-changes-hunks record)))))

(defun gemini-companion-changes-undo-name (record hunks kind)
  "Return a symbol for an undo list that names HUNKS of RECORD and KIND.
See `gemini-companion-changes--undo-names'."
  (let ((name (make-symbol "gemini-companion-decision")))
    (puthash name (list record hunks kind) gemini-companion-changes--undo-names)
    name))

(defun gemini-companion-changes-of-undo (name)
  "Return what NAME in an undo list names, a list (RECORD HUNKS KIND), or nil.
It is unknown if the undo list was read from a file."
  (gethash name gemini-companion-changes--undo-names))

(defun gemini-companion-changes--hunks-to-remember (record)
  "Return the hunks of RECORD whose lines must not be forgotten.
An undo history names them, that of the buffer of its file or of decisions; or
they are of the last writes, whose texts the undo of Emacs may bring back."
  (append
   (seq-mapcat #'gemini-companion-changes--write-hunks
               (seq-take (gemini-companion-changes-file-writes record) 5))
   (when-let* ((buffer (gemini-companion-changes-buffer record))
               (entries (buffer-local-value 'buffer-undo-list buffer))
               ((listp entries)))
     (seq-mapcat (lambda (entry)
                   (pcase entry
                     (`(apply ,_ ,name . ,_)
                      (pcase (gemini-companion-changes-of-undo name)
                        (`(,(pred (eq record)) ,hunks . ,_) hunks)))))
                 entries))
   (funcall gemini-companion-changes-history-function record)))

(defun gemini-companion-changes--forget (record)
  "Forget in RECORD what is reviewed and can no longer be undone.
So are edits of which nothing else is recorded."
  (let* ((named (gemini-companion-changes--hunks-to-remember record))
         (old-p (lambda (edit) (not (gemini-companion-edit-listed-p edit))))
         (lines (gemini-companion-record-forget
                 (gemini-companion-changes-file-lines record) named old-p
                 (gemini-companion-origin-function)))
         (needed (make-hash-table :test 'eq)))
    ;; An act stays if an older act of the line stays.
    (dolist (hunk (append named (gemini-companion-record-hunks lines)))
      (puthash hunk t needed))
    (cl-callf2 seq-remove
        (lambda (write)
          (and (funcall old-p (gemini-companion-changes--write-edit write))
               (seq-every-p (lambda (hunk)
                              (and (gemini-companion-record-hunk-reviewed hunk)
                                   (not (gemini-companion-record-hunk-undone hunk))
                                   (not (gethash hunk needed))))
                            (gemini-companion-changes--write-hunks write))))
        (gemini-companion-changes-file-writes record))
    (setf (gemini-companion-changes-file-lines record) lines
          (gemini-companion-changes-file-edits record)
          (seq-intersection (gemini-companion-changes-file-edits record)
                            (mapcar #'gemini-companion-changes--write-edit
                                    (gemini-companion-changes-file-writes record))
                            #'eq))))

(defun gemini-companion-changes--make-room (record)
  "Drop the records without changes left of old edits, but not RECORD."
  (dolist (other (remq record gemini-companion-changes--files))
    (unless (or (gemini-companion-changes-file-unreviewed other)
                (seq-some #'gemini-companion-edit-listed-p
                          (gemini-companion-changes-file-edits other))
                (funcall gemini-companion-changes-history-function other))
      (gemini-companion-changes--remember other)
      (gemini-companion-changes--drop other))))

(defun gemini-companion-changes--remember (record)
  "Remember the origins of the lines of RECORD, which is forgotten."
  (when-let* ((past (gemini-companion-record-past
                     (gemini-companion-changes-file-lines record)
                     (gemini-companion-origin-function))))
    (let ((room gemini-companion-changes-most-past)
          (name (gemini-companion-changes-file-name record)))
      (setq gemini-companion-changes--past
            (seq-filter (pcase-lambda (`(,_ . ,lines))
                          (when (<= (length lines) room)
                            (cl-decf room (length lines))
                            t))
                        (cons (cons name past)
                              (cl-remove name gemini-companion-changes--past
                                         :key #'car :test #'equal)))))))

(defun gemini-companion-changes--before (edit)
  "Return the text that the file of EDIT had, or nil if it was not recorded."
  (cond ((gemini-companion-edit-new-p edit) "")
        ((gemini-companion-edit-known-p edit)
         (gemini-companion-content-text (gemini-companion-edit-content edit)))))

(defun gemini-companion-changes--written (edit)
  "Return the lines that EDIT has written, as its file has them.
The value is a cons (ACCEPTED . IN-FILE).  IN-FILE is nil unless the user has
accepted other lines than the file has, since the CLI or a formatter has changed
them."
  (let* ((lines (gemini-companion-lines-split (gemini-companion-edit-after edit)))
         (awaited (gemini-companion-edit-awaited edit))
         (content (and (gemini-companion-edit-accepted-p edit)
                       (not (gemini-companion-edit-reported edit))
                       awaited
                       ;; If Emacs has saved the file since, it has the user's text.
                       (gemini-companion-written-alone-p awaited)
                       (gemini-companion-edit-texts-now edit)))
         (now (and content (gemini-companion-changes-lines-of-content content))))
    (cond ((or (null now) (equal lines now)) (list lines))
          ((memq 'one-of (gemini-companion-edit-remarks edit)) (list now))
          (t (cons lines now)))))

(defun gemini-companion-changes--drop (record)
  "Forget RECORD."
  (setq gemini-companion-changes--files (remq record gemini-companion-changes--files))
  (setf (gemini-companion-changes-file-known record) nil
        (gemini-companion-changes-file-told record) nil
        (gemini-companion-changes-file-unreviewed record) nil)
  (run-hook-with-args 'gemini-companion-changes-functions record
                      (gemini-companion-changes-buffer record)))

;;;; Changes

(defun gemini-companion-changes-update (record)
  "Compute the changes of RECORD again from the current text, and return them.
The value is a list of `gemini-companion-record-change's, in order, whose edits
begin with the last one.  If the file is missing or unreadable, it is nil.  If
the text cannot be compared, signal an error; then the changes stay, but their
lines may have moved."
  (gemini-companion-garbage-later
    (condition-case err
        (gemini-companion-changes--update record)
      (gemini-companion-text-not-compared
       ;; Compare the file again later, even if nobody writes it.
       (setf (gemini-companion-changes-file-stamp record) nil)
       (signal (car err) (cdr err))))))

(defun gemini-companion-changes--update (record)
  "Compute the changes of RECORD, as `gemini-companion-changes-update' does.
If nothing differs from what was told at the last update, do nothing.  Otherwise
also call `gemini-companion-changes-functions'."
  (let* ((buffer (gemini-companion-changes-buffer record))
         (current (gemini-companion-changes--up-to-date-p buffer))
         (wanted (and (memq record gemini-companion-changes--files)
                      (or (gemini-companion-changes-file-unreviewed record)
                          (gemini-companion-changes-file-turned record))))
         (path (gemini-companion-changes-path record))
         (stamp (gemini-companion-watch-stamp path))
         (seen (and wanted
                    ;; A text from before a write says nothing about an undo.
                    (funcall (if current
                                 #'gemini-companion-changes--current
                               #'gemini-companion-changes-seen)
                             record buffer)))
         (told (list buffer path stamp current
                     (gemini-companion-changes-file-version record)
                     (and seen (gemini-companion-changes-seen-key seen)))))
    (setf (gemini-companion-changes-file-turned record) nil)
    (when current
      (setf (gemini-companion-changes-file-stamp record) stamp))
    (unless (equal told (gemini-companion-changes-file-told record))
      (let ((changes (and seen
                          (gemini-companion-record-changes
                           (gemini-companion-changes-seen-look seen)))))
        (dolist (change changes)
          (gemini-companion-changes--sort-edits record change))
        (setf (gemini-companion-changes-file-known record) changes
              (gemini-companion-changes-file-told record) told))
      (run-hook-with-args 'gemini-companion-changes-functions record buffer)
      (gemini-companion-part-update-lighter))
    (gemini-companion-changes-file-known record)))

(defmacro gemini-companion-changes-at-once (&rest body)
  "Evaluate BODY, which decides; the changes are updated once, at its end.
Return the value of BODY."
  (declare (indent 0) (debug t))
  `(gemini-companion-changes--call-at-once (lambda () ,@body)))

(defun gemini-companion-changes--call-at-once (body)
  "Call BODY, then update the records whose update was postponed by it.
Return the value of BODY."
  (if gemini-companion-changes--later
      (funcall body)
    (let* ((later (list nil))
           (gemini-companion-changes--later later))
      (unwind-protect
          (funcall body)
        (setq gemini-companion-changes--later nil)
        (dolist (record (cdr later))
          (gemini-companion-log-guarded "Updating changes"
            (gemini-companion-changes-update record)))))))

(defun gemini-companion-changes--update-later (record)
  "Update the changes of RECORD after the current step, if there is one."
  (if gemini-companion-changes--later
      (cl-pushnew record (cdr gemini-companion-changes--later))
    (gemini-companion-changes-update record)))

(defun gemini-companion-changes--current (record buffer)
  "Return the current `gemini-companion-changes-seen' of RECORD in BUFFER, or nil.
Hunks that the user has undone, and whose lines that text has again, are not
undone any more: a buffer with the undo was not saved, or others have restored
the lines."
  (when-let* ((seen (gemini-companion-changes-seen record buffer)))
    (let ((back (gemini-companion-record-back-by-others
                 (gemini-companion-changes-seen-look seen)
                 (seq-filter #'gemini-companion-record-hunk-undone
                             (gemini-companion-changes-hunks record)))))
      (if (null back)
          seen
        (gemini-companion-changes-flag-undone record back nil)
        (gemini-companion-changes-seen record buffer)))))

(defun gemini-companion-changes-seen (record buffer)
  "Return the current `gemini-companion-changes-seen' of RECORD, or nil.
It is about the text of BUFFER, which visits the file, or about the file if
BUFFER is nil.  Return nil if that text cannot be read."
  (let ((key (gemini-companion-changes-version record buffer)))
    (or (cl-find key (gemini-companion-changes-file-seen record)
                 :key #'gemini-companion-changes-seen-key :test #'equal)
        (when-let* ((lines (gemini-companion-changes--now record buffer))
                    (look (gemini-companion-record-look
                           (gemini-companion-changes-file-lines record) lines))
                    (seen (gemini-companion-changes--seen
                           key lines look (gemini-companion-record-states look))))
          (setf (gemini-companion-changes-file-seen record)
                (cons seen
                      (cl-remove-if
                       (lambda (other)
                         (let ((there (car (gemini-companion-changes-seen-key other))))
                           (or (eq buffer there)
                               (and there (not (buffer-live-p there))))))
                       (gemini-companion-changes-file-seen record))))
          seen))))

(defun gemini-companion-changes-look (record)
  "Update RECORD, and return its `gemini-companion-changes-seen', or nil.
All of its slots are set; the changes left are those of the update.  If nothing
has changed since the last update, only its version is computed."
  (let* ((buffer (gemini-companion-changes-buffer record))
         (key (gemini-companion-changes-version record buffer))
         (last (and (equal key (car (last (gemini-companion-changes-file-told record))))
                    (cl-find key (gemini-companion-changes-file-seen record)
                             :key #'gemini-companion-changes-seen-key :test #'equal))))
    (if (and last (not (eq 'unknown (gemini-companion-changes-seen-decided last))))
        last
      (gemini-companion-changes-update record)
      (when-let* ((seen (gemini-companion-changes-seen
                         record (gemini-companion-changes-buffer record))))
        (when (eq 'unknown (gemini-companion-changes-seen-decided seen))
          (setf (gemini-companion-changes-seen-decided seen)
                (gemini-companion-changes-kept-and-undone record seen)
                (gemini-companion-changes-seen-others seen)
                (gemini-companion-record-of-others
                 (gemini-companion-changes-seen-look seen))))
        seen))))

(defun gemini-companion-changes-version (record buffer)
  "Return a value that differs, by `equal', after a change of RECORD or its text.
BUFFER has that text, or is nil if the file has it."
  (list buffer
        (gemini-companion-changes-file-version record)
        (if buffer
            (with-current-buffer buffer
              (list (buffer-chars-modified-tick) (buffer-modified-p)
                    buffer-file-coding-system))
          (gemini-companion-watch-stamp (gemini-companion-changes-path record)))))

(defun gemini-companion-changes-read-version (record)
  "Return a value that differs, by `equal', once RECORD's file is written or read."
  (let* ((path (gemini-companion-changes-path record))
         (buffer (gemini-companion-names-buffer path)))
    (list (gemini-companion-watch-stamp path)
          (and buffer (with-current-buffer buffer (visited-file-modtime))))))

(defun gemini-companion-changes-update-buffer (&optional buffer)
  "Compute the changes of the file of BUFFER again, if it has a record.
BUFFER is the current one by default, and may have been killed.  Report an
error."
  (gemini-companion-log-guarded "Updating changes"
    (when (buffer-live-p (or buffer (current-buffer)))
      (with-current-buffer (or buffer (current-buffer))
        (when-let* ((record (gemini-companion-changes-here)))
          (gemini-companion-changes--update-later record))))))

(defun gemini-companion-changes-visit (record &optional unvisited)
  "Visit the file of RECORD, update its changes, and return them.
If UNVISITED is non-nil, do not visit it.  If the file cannot be visited, or
updated, return the reason, a verb phrase."
  (let ((file (gemini-companion-changes-path record))
        (name (gemini-companion-changes-file-name record)))
    (cond ((gemini-companion-text-unreadable-reason file))
          ((gemini-companion-changes-deleted-p record)
           (if unvisited
               (gemini-companion-changes-update record)
             (substitute-command-keys
              "was deleted; \\[gemini-companion-turn-page] shows its text")))
          ((null (gemini-companion-text-attributes file)) "was deleted or renamed")
          (unvisited
           (if (equal name (gemini-companion-text-true-name file))
               (gemini-companion-changes-update record)
             "is another file now"))
          (t
           (with-current-buffer (gemini-companion-revert-visit file)
             (cond ((not (gemini-companion-names-visited-here-p name))
                    "is another file now")
                   ((gemini-companion-revert-unmerged-p (current-buffer))
                    (gemini-companion-revert-blocked-reason (current-buffer)))
                   ((gemini-companion-changes-unmarked-reason record))
                   (t (gemini-companion-changes-update record))))))))

(defun gemini-companion-changes-in-file-p (record)
  "Return non-nil if the file of RECORD has the lines of its buffer, if any."
  (let ((lines (lambda (buffer)
                 (when-let* ((seen (gemini-companion-changes-seen record buffer)))
                   (gemini-companion-changes-seen-lines seen)))))
    (equal (funcall lines (gemini-companion-changes-buffer record))
           (funcall lines nil))))

(defun gemini-companion-changes-text (record)
  "Return the current text of the file of RECORD: of its buffer, or else on disk.
Return nil if the file is missing or unreadable."
  (if-let* ((buffer (gemini-companion-changes-buffer record)))
      (gemini-companion-text-of-buffer buffer)
    (when-let* ((content (gemini-companion-changes--content record)))
      (gemini-companion-content-text content))))

(defun gemini-companion-changes--content (record)
  "Return the content that the file of RECORD has, or nil if it cannot be read.
See `gemini-companion-changes-content-with'."
  (let ((path (gemini-companion-changes-path record)))
    (cond ((gemini-companion-changes-deleted-p record)
           (gemini-companion-content-read "" nil))
          ((and (equal (gemini-companion-changes-file-name record)
                       (gemini-companion-text-true-name path))
                (gemini-companion-edit-texts-keepable-p path))
           (ignore-error file-error
             (gemini-companion-changes-content-with
              record (gemini-companion-text-bytes path)))))))

(defun gemini-companion-changes-content-with (record bytes)
  "Return the content of the file of RECORD when it has BYTES.
If these are not UTF-8, as after a conversion by others, it is read as by Emacs."
  (gemini-companion-edit-texts-content
   (gemini-companion-changes-file-edit record) bytes))

(defun gemini-companion-changes--now (record buffer)
  "Return the current lines of the file of RECORD, decoded as by the CLI.
They are from BUFFER, which visits the file, or from the file if BUFFER is nil.
Return nil if the file cannot be read."
  (if buffer
      (gemini-companion-lines-split (gemini-companion-text-of-buffer buffer))
    (when-let* ((content (gemini-companion-changes--content record)))
      (gemini-companion-changes-lines-of-content content))))

(defun gemini-companion-changes-lines-of-content (content)
  "Return the lines of CONTENT, as they are displayed, a vector."
  (gemini-companion-lines-split (gemini-companion-content-text content)))

;;;; Edits of several files

;; A command may write many files, which are one edit, without marks and records.

(cl-defgeneric gemini-companion-changes-several-p (_edit)
  "Return non-nil if an edit is of several files; its file is their root then."
  nil)

(cl-defgeneric gemini-companion-changes-names (edit &optional _files)
  "Return the true names of the files of EDIT, by default one.
If it is of several files, and the second argument is some of them, as the hunks
of a step, return only their names."
  (list (gemini-companion-edit-true-name edit)))

(cl-defgeneric gemini-companion-changes-several-undone (_edit)
  "Return how many files of an edit of several files are undone.
The value is a cons of that number and of the number of all its files, or nil
for an edit of one file."
  nil)

(cl-defgeneric gemini-companion-changes-several-text (edit)
  "Return a text with the names of the files of EDIT, several, in lines.")

(cl-defgeneric gemini-companion-changes-several-show (edit)
  "Display what EDIT, of several files, has changed, in another window.")

;;;; What is left of edits

(defun gemini-companion-changes-outcome (edit)
  "Return what became of what EDIT has written: `written', `undone' or `gone'.
Return nil if EDIT is not known to be written.  The value is computed from the
record of the file and its present text, and never stored."
  (when (eq 'written (gemini-companion-edit-file-state edit))
    (let* ((record (gemini-companion-changes--find edit))
           (write (and record (gemini-companion-changes--write-of record edit)))
           (hunks (and write (gemini-companion-changes--write-hunks write))))
      (pcase (if write
                 (gemini-companion-changes--has record edit hunks)
               'unknown)
        ('unknown (if (gemini-companion-edit-undone edit) 'undone 'written))
        ('nil (if (or (null hunks)
                      (seq-some #'gemini-companion-record-hunk-undone hunks))
                  'undone
                'gone))
        (_ 'written)))))

(defun gemini-companion-changes--has (record edit hunks)
  "Return whether the file of RECORD has what EDIT did, t, nil or `unknown'.
HUNKS are its hunks in RECORD."
  (let ((exists (gemini-companion-text-attributes
                 (gemini-companion-changes-path record))))
    (cond
     ((gemini-companion-edit-deleted-modes edit)
      (or (not exists)
          ;; The file may have been empty.
          (and hunks (gemini-companion-changes--has-hunk-p record hunks))))
     ((not exists)
      ;; It is as before the edit that had made it.
      (if (seq-some #'gemini-companion-edit-new-p
                    (memq edit (gemini-companion-changes-file-edits record)))
          nil
        'unknown))
     ((gemini-companion-edit-new-p edit))
     (hunks (gemini-companion-changes--has-hunk-p record hunks))
     ;; The edit has changed nothing, or only line ends, a byte order mark or the coding
     ;; system.
     ((and (gemini-companion-edit-texts-conversion edit)
           (when-let* ((bytes (gemini-companion-edit-texts-bytes edit)))
             (equal bytes (gemini-companion-edit-bytes-before edit))))
      nil)
     (t 'unknown))))

(defun gemini-companion-changes--has-hunk-p (record hunks)
  "Return t if the text of the file of RECORD has one of HUNKS, or is unknown."
  (let* ((buffer (gemini-companion-changes-buffer record))
         (seen (gemini-companion-changes--current
                record
                ;; Unsaved text from before a write says nothing about it.
                (and buffer
                     (gemini-companion-changes--up-to-date-p buffer)
                     buffer))))
    (or (null seen)
        (and (seq-some (lambda (hunk)
                         (memq (gemini-companion-record-state
                                (gemini-companion-changes-seen-states seen) hunk)
                               '(left kept)))
                       hunks)
             t))))

(defun gemini-companion-changes-status (edit)
  "Return `gemini-companion-edit-status' of EDIT, or what became of it since.
That is `undone' if the user has undone it, maybe in a buffer that is not saved,
and `gone' if others have."
  (pcase (gemini-companion-changes-outcome edit)
    ((and state (or 'undone 'gone)) state)
    (_ (gemini-companion-edit-status edit))))

(defun gemini-companion-changes-there-p (edit)
  "Return non-nil if EDIT has changed its file, which still has that.
While it is unknown if it was written, assume it for an accepted edit."
  (and (gemini-companion-edit-written-p edit)
       (not (memq (gemini-companion-changes-outcome edit) '(undone gone)))))

;;;; What is recorded of edits

(defun gemini-companion-changes-hunks-in (record lines)
  "Return the hunks of the changes left of RECORD that LINES have, a vector.
LINES have all lines that such a hunk has added and the current text still has,
and none that it has removed.  Omit changes that are postponed."
  (when-let* ((look (gemini-companion-changes--current-look record)))
    (gemini-companion-record-equal-hunks
     look
     (gemini-companion-record-look (gemini-companion-changes-file-lines record) lines)
     (seq-uniq (seq-mapcat #'gemini-companion-record-change-hunks
                           (seq-remove #'gemini-companion-record-postponed-p
                                       (gemini-companion-changes-file-known record)))
               #'eq))))

(defun gemini-companion-changes-hunks (record)
  "Return the hunks of all writes of RECORD."
  (seq-mapcat #'gemini-companion-changes--write-hunks
              (gemini-companion-changes-file-writes record)))

(defun gemini-companion-changes-share (change predicate)
  "Return `all' if all edits that wrote CHANGE satisfy PREDICATE.
Return `some' if some of them do, or else nil."
  (let* ((edits (gemini-companion-record-change-edits change))
         (own (seq-count predicate edits)))
    (cond ((= own (length edits)) 'all)
          ((< 0 own) 'some))))

;;;; What some edits did

(defun gemini-companion-changes-by (record changes predicate)
  "Return what edits that satisfy PREDICATE did in CHANGES of RECORD.
CHANGES are some of the last update, in order, left or decided; what other edits
did there is omitted.  The value is CHANGES if nothing is omitted, or else a
list of new changes, which have the hunks of these edits."
  (let* ((own-p (lambda (hunk)
                  (funcall predicate (gemini-companion-record-hunk-edit hunk))))
         (hunks (seq-mapcat #'gemini-companion-record-change-hunks changes))
         (own (seq-filter own-p hunks))
         (buffer (gemini-companion-changes-buffer record))
         (seen (and (length< own (length hunks))
                    (gemini-companion-changes-seen record buffer))))
    (if (null seen)
        changes
      (let ((parts (gemini-companion-record-without
                    (gemini-companion-changes-seen-look seen) own)))
        (dolist (part parts)
          ;; A hunk that a later hunk has overwritten has no line of its own there.
          (setf (gemini-companion-record-change-hunks part) own)
          (gemini-companion-changes--sort-edits record part))
        parts))))

;;;; Whose a line is

(defun gemini-companion-changes-whose (line)
  "Return whose the line with the index LINE of this buffer is, (ORIGIN . HOW).
For HOW, see `gemini-companion-record-whose'; ORIGIN is nil if HOW is `others'
or `base', or else a `gemini-companion-origin'.  Return nil without such a line,
or if nothing is recorded of the file."
  (let* ((record (cl-find-if #'gemini-companion-names-visited-here-p
                             gemini-companion-changes--files
                             :key #'gemini-companion-changes-file-name))
         (look (if record
                   (progn
                     (gemini-companion-changes-update record)
                     (gemini-companion-changes-seen-look
                      (gemini-companion-changes-seen record (current-buffer))))
                 (gemini-companion-changes--past-here))))
    (pcase (and look (gemini-companion-record-whose look line))
      (`(,who ,text . ,how)
       (cons (if (gemini-companion-record-hunk-p who)
                 (funcall (gemini-companion-origin-function) who how text)
               who)
             how)))))

(defun gemini-companion-changes--past-here ()
  "Return the record of this buffer's text of which only origins are left, or nil."
  (when-let* ((past (cl-find-if #'gemini-companion-names-visited-here-p
                                gemini-companion-changes--past :key #'car)))
    (gemini-companion-record-look
     (cdr past) (gemini-companion-lines-split (gemini-companion-text-of-buffer)))))

;;;; Selected lines of changes

(defun gemini-companion-changes-selection (record change new-p old-p)
  "Return the selection of CHANGE, one of RECORD at the last update, as changes.
The value is a list of changes that can be kept and undone by themselves.  If
all lines of CHANGE are selected, it is a list of CHANGE; if none is, nil.
For NEW-P and OLD-P, see `gemini-companion-record-split'."
  (let* ((seen (gemini-companion-changes-seen
                record (gemini-companion-changes-buffer record)))
         (look (gemini-companion-changes-seen-look seen)))
    ;; Of two hunks, only one may be marked, and its lines may be selected alone.
    (when (gemini-companion-record-postponed-p change)
      (gemini-companion-record-set-postponed
       (gemini-companion-record-change-hunks change) t))
    (pcase (gemini-companion-record-split look change new-p old-p)
      ('nil (and (or (cl-loop for n from (gemini-companion-hunk-new change)
                              below (gemini-companion-hunk-new-end change)
                              thereis (funcall new-p n))
                     (cl-loop for n below (length (gemini-companion-hunk-lines
                                                   change))
                              thereis (funcall old-p n)))
                 (list change)))
      (`(,lines ,hunks ,others)
       (setf (gemini-companion-changes-file-lines record) lines)
       (dolist (write (gemini-companion-changes-file-writes record))
         (cl-flet ((with-others (known)
                     (append known
                             (cl-loop for (hunk . other) in others
                                      when (memq hunk known) collect other))))
           (cl-callf with-others (gemini-companion-changes--write-hunks write))))
       (gemini-companion-changes--decided record)
       (gemini-companion-changes-update record)
       (gemini-companion-record-without
        (gemini-companion-changes--current-look record) hunks)))))

;;;; For the next Emacs

(defun gemini-companion-changes-writes (record)
  "Return the writes of RECORD, the last one first.
A write is a list (EDIT AFTER HUNKS): the text that was recorded, and the hunks
of EDIT."
  (mapcar (lambda (write)
            (list (gemini-companion-changes--write-edit write)
                  (gemini-companion-changes--write-after write)
                  (gemini-companion-changes--write-hunks write)))
          (gemini-companion-changes-file-writes record)))

(defun gemini-companion-changes-unreviewed-p (edit)
  "Return non-nil if a hunk of EDIT, of which a record exists, is not reviewed."
  (seq-some (lambda (hunk)
              (not (gemini-companion-record-hunk-reviewed hunk)))
            (cdr (gemini-companion-changes-of edit))))

(defun gemini-companion-changes-unsaved (record)
  "Return the hunks of RECORD that are undone in its buffer, and not in its file."
  (when-let* (((gemini-companion-revert-unsaved
                (gemini-companion-changes-path record)))
              (seen (gemini-companion-changes-seen record nil)))
    (gemini-companion-changes--not-undone-in
     (gemini-companion-changes-seen-look seen)
     (gemini-companion-changes-hunks record))))

(defun gemini-companion-changes--not-undone-in (look hunks)
  "Return those of HUNKS that are undone, but not in the text of LOOK."
  (gemini-companion-record-back-by-others
   look (seq-filter #'gemini-companion-record-hunk-undone hunks) 'removed))

(defun gemini-companion-changes-restore (name lines writes known unsaved &rest slots)
  "Add a record of the file NAME, a true name, and return it.
Another Emacs has had LINES, the WRITES, see `gemini-companion-changes-writes',
and SLOTS, a plist of `:path', `:new' and `:edits'.  KNOWN are the lines of
others in the file that belonged to hunks; all other lines are theirs.  UNSAVED
are the hunks that were undone only in a buffer; they are not undone any more."
  (let ((record (apply #'gemini-companion-changes--make
                       name (car (plist-get slots :edits))
                       :lines lines
                       :writes (mapcar (apply-partially
                                        #'apply #'gemini-companion-changes--write)
                                       writes)
                       slots)))
    (when-let* ((now (gemini-companion-changes--now record nil)))
      (gemini-companion-record-set-undone
       (gemini-companion-changes--not-undone-in
        (gemini-companion-record-look lines now) unsaved)
       nil)
      (when-let* ((theirs (gemini-companion-record-disown
                           (gemini-companion-record-look lines now) known)))
        (setf (gemini-companion-changes-file-lines record) theirs)))
    (cl-callf append gemini-companion-changes--files (list record))
    (gemini-companion-changes--decided record)
    (gemini-companion-changes-update record)
    record))

;;;; Two CLIs in one file

(defun gemini-companion-changes--also (edit)
  "Return what another CLI has done to the file of EDIT, which is open, or nil.
Example: \"also changed by Qwen Code (api)\".  What counts awaits an answer, or
was a change left at the last update: no text is compared."
  (when-let* ((other
               (seq-find
                (lambda (other)
                  (not (gemini-companion-session-same-p
                        (gemini-companion-edit-session edit)
                        (gemini-companion-edit-session other))))
                (append
                 (seq-filter #'gemini-companion-edit-open-p
                             (gemini-companion-edit-others-of-file edit))
                 (when-let* ((record (gemini-companion-changes--find edit)))
                   (seq-mapcat #'gemini-companion-record-change-edits
                               (gemini-companion-changes-file-known record)))))))
    (format "also %s by %s"
            (if (gemini-companion-edit-open-p other) "proposed" "changed")
            (gemini-companion-session-name (gemini-companion-edit-session other)))))

(setq gemini-companion-edit-also-function #'gemini-companion-changes--also)

;;;; What was decided

(defun gemini-companion-changes--current-look (record)
  "Return the lines of RECORD as they are for the current text, or nil."
  (when-let* ((seen (gemini-companion-changes-seen
                     record (gemini-companion-changes-buffer record))))
    (gemini-companion-changes-seen-look seen)))

(defun gemini-companion-changes-kept-and-undone (record &optional seen)
  "Return the kept and the undone changes of CLIs in RECORD's file.
The value is a list of `gemini-companion-record-decided's, in order; the edits
of each begin with the last one.  Elements of one turn do not overlap.  Lines in
or beside a change that is left are omitted.  SEEN is the
`gemini-companion-changes-seen' of the text, by default of the current one."
  (when-let* ((look (if seen
                        (gemini-companion-changes-seen-look seen)
                      (gemini-companion-changes--current-look record))))
    (let* ((left (gemini-companion-changes-file-known record))
           (all (seq-remove
                 (lambda (change)
                   (seq-some (apply-partially #'gemini-companion-changes--overlap-p change)
                             left))
                 (gemini-companion-record-decided look))))
      (dolist (change all)
        (gemini-companion-changes--sort-edits record change))
      (gemini-companion-changes--apart all))))

(defun gemini-companion-changes--sort-edits (record change)
  "Sort the edits of CHANGE of RECORD, the last one first."
  (setf (gemini-companion-record-change-edits change)
        (seq-filter (lambda (written)
                      (memq written (gemini-companion-record-change-edits change)))
                    (gemini-companion-changes-file-edits record))))

(defun gemini-companion-changes--overlap-p (change other)
  "Return non-nil if CHANGE and OTHER have a line of the text in common."
  (and (< (gemini-companion-hunk-new change)
          (gemini-companion-hunk-new-end other))
       (< (gemini-companion-hunk-new other)
          (gemini-companion-hunk-new-end change))))

(defun gemini-companion-changes--apart (decided)
  "Return DECIDED in order, so that elements of one turn do not overlap.
A turn may have written lines twice, of which the second edit is undone: then
cut the kept element where it overlaps with the undone one."
  (let ((undone (seq-filter (lambda (change)
                              (eq 'undone (gemini-companion-record-decided-state change)))
                            decided)))
    (dolist (change decided)
      (unless (memq change undone)
        (dolist (other undone)
          (when (and (gemini-companion-changes--overlap-p change other)
                     (eq (gemini-companion-changes-turn change)
                         (gemini-companion-changes-turn other)))
            (if (< (gemini-companion-hunk-new change)
                   (gemini-companion-hunk-new other))
                (setf (gemini-companion-hunk-new-end change)
                      (gemini-companion-hunk-new other))
              (setf (gemini-companion-hunk-new change)
                    (min (gemini-companion-hunk-new-end change)
                         (gemini-companion-hunk-new-end other))))))))
    (seq-sort-by #'gemini-companion-hunk-new #'<
                 (seq-remove
                  (lambda (change)
                    (and (null (gemini-companion-hunk-lines change))
                         (null (gemini-companion-record-decided-with change))
                         (= (gemini-companion-hunk-new change)
                            (gemini-companion-hunk-new-end change))))
                  decided))))

(defun gemini-companion-changes-turn (change)
  "Return the newest turn that has written a line of CHANGE, or nil.
CHANGE is counted in this turn."
  (when-let* ((edit (car (gemini-companion-record-change-edits change))))
    (gemini-companion-edit-turn edit)))

(defun gemini-companion-changes-shown (change)
  "Return what the user sees of CHANGE, wherever it is in a text.
Two values are compared by `equal': the user has seen the change if they are."
  (list (gemini-companion-record-change-hunks change)
        (gemini-companion-hunk-lines change)
        (gemini-companion-record-change-now change)))

(defun gemini-companion-changes-taken (change)
  "Return those removed lines of CHANGE that are in no commit, and the user's.
For these, see `gemini-companion-edit'."
  (when-let* ((tables (delq nil (mapcar (lambda (edit)
                                          (cdr (gemini-companion-edit-taken edit)))
                                        (gemini-companion-record-change-edits change)))))
    (seq-filter (lambda (line)
                  (let ((line (string-remove-suffix "\n" line)))
                    (seq-some (apply-partially #'gethash line) tables)))
                (gemini-companion-hunk-lines change))))

(defun gemini-companion-changes-current-p (record change)
  "Return non-nil if RECORD had CHANGE, left or decided, at the last update.
It had the same lines, before and now, at the same position."
  (member change
          (if (gemini-companion-record-decided-p change)
              (gemini-companion-changes-kept-and-undone record)
            (gemini-companion-changes-file-known record))))

;;;; Decisions

(defun gemini-companion-changes-back-p (record hunks)
  "Return non-nil if one of HUNKS, which were undone, is in RECORD's file again.
This happens if its CLI has written the same text again."
  (when (memq record gemini-companion-changes--files)
    (when (gemini-companion-changes-file-turned record)
      (gemini-companion-changes-update record))
    (when-let* ((seen (gemini-companion-changes-seen
                       record (gemini-companion-changes-buffer record))))
      (or (gemini-companion-record-back (gemini-companion-changes-seen-look seen) hunks)
          (seq-some (lambda (hunk)
                      (memq (gemini-companion-record-state
                             (gemini-companion-changes-seen-states seen) hunk)
                            '(left kept)))
                    hunks)))))

(defun gemini-companion-changes-of (edit)
  "Return the record of EDIT's file and the hunks of EDIT there, a cons, or nil."
  (when-let* ((record (gemini-companion-changes--find edit))
              (write (gemini-companion-changes--write-of record edit)))
    (cons record (gemini-companion-changes--write-hunks write))))

(defun gemini-companion-changes-since (edit)
  "Return the hunks of EDIT and of all edits by which its file was written later."
  (when-let* ((record (gemini-companion-changes--find edit))
              (write (gemini-companion-changes--write-of record edit))
              (writes (gemini-companion-changes-file-writes record)))
    (seq-mapcat #'gemini-companion-changes--write-hunks
                (seq-take writes (1+ (seq-position writes write #'eq))))))

(defun gemini-companion-changes-not-undone (hunks)
  "Return those of HUNKS that the user has not undone."
  (seq-remove #'gemini-companion-record-hunk-undone hunks))

(defun gemini-companion-changes-set-undone (record hunks undone)
  "Record that the user has UNDONE HUNKS of RECORD, or not any more.
Update its changes."
  (gemini-companion-changes-flag-undone record hunks undone)
  (gemini-companion-changes--update-later record))

(defun gemini-companion-changes-flag-kept (record hunks kept)
  "Record that HUNKS of RECORD are KEPT, or not any more."
  (gemini-companion-record-set-kept hunks kept)
  (gemini-companion-changes--decided record))

(defun gemini-companion-changes-flag-postponed (record hunks postponed)
  "Record that the decision about HUNKS of RECORD is POSTPONED, or not any more.
So is that about the other hunks of their changes: of a hunk that was split
since, HUNKS have only a part."
  (dolist (these (cons hunks (mapcar #'gemini-companion-record-change-hunks
                                     (gemini-companion-changes-file-known record))))
    (when (seq-intersection these hunks #'eq)
      (gemini-companion-record-set-postponed these postponed)))
  (gemini-companion-changes--decided record))

(defun gemini-companion-changes-not-postponed (groups)
  "Return GROUPS, (RECORD . CHANGES), without postponed changes.
Signal a `user-error' if all are postponed."
  (or (cl-loop for (record . changes) in groups
               for now = (seq-remove #'gemini-companion-record-postponed-p changes)
               when now collect (cons record now))
      (user-error "All changes here are to be decided later; k on each keeps it")))

(defun gemini-companion-changes-to-keep (changes)
  "Return those of the selected CHANGES that are to be kept.
Omit the postponed ones, unless all are postponed."
  (or (seq-remove #'gemini-companion-record-postponed-p changes)
      changes))

(defun gemini-companion-changes-flag-undone (record hunks undone)
  "Record that HUNKS of RECORD are UNDONE, or not any more.
Do not update its changes: the text may be incomplete.  The next update does."
  (gemini-companion-record-set-undone hunks undone)
  (setf (gemini-companion-changes-file-turned record) t)
  (gemini-companion-changes--decided record))

(defun gemini-companion-changes-conflict (record hunks)
  "Return the index of a line beside which undoing HUNKS of RECORD puts lines.
For the value, see `gemini-companion-record-conflict'."
  (when-let* ((look (gemini-companion-changes--current-look record)))
    (gemini-companion-record-conflict look hunks)))

(defun gemini-companion-changes-others-in (record hunks &optional seen)
  "Return the lines of others that are undone with HUNKS, a list of strings.
They have replaced lines of HUNKS in the file of RECORD.  SEEN is the
`gemini-companion-changes-seen' of the text, by default of the current one."
  (when-let* ((seen (or seen
                        (gemini-companion-changes-seen
                         record (gemini-companion-changes-buffer record)))))
    (and hunks
         (mapcar (lambda (n) (aref (gemini-companion-changes-seen-lines seen) n))
                 (gemini-companion-record-of-others
                  (gemini-companion-changes-seen-look seen) hunks)))))

;;;; Other names

(defun gemini-companion-changes--follow-name ()
  "Let the record of the file of the current buffer follow its new name.
So do the edits that are recorded there.  If the file with the old name still
exists, the record stays with that file."
  (when-let* ((file (and buffer-file-name (gemini-companion-names-file)))
              (true-name (gemini-companion-text-true-name file))
              (record (seq-find
                       (lambda (record)
                         (eq (current-buffer)
                             (car (gemini-companion-changes-file-told record))))
                       gemini-companion-changes--files))
              ((not (equal true-name (gemini-companion-changes-file-name record))))
              ((not (gemini-companion-text-attributes
                     (gemini-companion-changes-path record)))))
    (setq gemini-companion-changes--files
          (cl-remove true-name gemini-companion-changes--files
                     :key #'gemini-companion-changes-file-name :test #'equal))
    (setf (gemini-companion-changes-file-name record) true-name
          (gemini-companion-changes-file-path record) file)
    (dolist (edit (gemini-companion-changes-file-edits record))
      (setf (gemini-companion-edit-true-name edit) true-name))
    (gemini-companion-changes-update record)))

;;;; Life

(defun gemini-companion-changes--up-to-date-p (buffer)
  "Return non-nil if BUFFER has read what its file has now, or is nil."
  (or (null buffer)
      (gemini-companion-revert-current-p buffer)))

(defun gemini-companion-changes--compare (record)
  "Update RECORD if others have written or deleted its file.
Revert its buffer; if the buffer has unsaved text, report once how to merge it."
  (let ((stamp (gemini-companion-watch-stamp (gemini-companion-changes-path record))))
    (unless (equal stamp (gemini-companion-changes-file-stamp record))
      (setf (gemini-companion-changes-file-stamp record) stamp)
      (gemini-companion-revert (gemini-companion-changes-path record))
      (gemini-companion-changes-update record))))

(defun gemini-companion-changes--compare-all ()
  "Compare each file that a buffer visits, or that has changes to review."
  (when gemini-companion-changes--unrecorded
    (gemini-companion-changes--record-all))
  (dolist (record (gemini-companion-names-search-once
                    (seq-filter (lambda (record)
                                  (or (gemini-companion-changes-file-unreviewed record)
                                      (gemini-companion-changes-buffer record)))
                                gemini-companion-changes--files)))
    (gemini-companion-log-guarded "Comparing a file"
      (gemini-companion-changes--compare record))))

(defun gemini-companion-changes--compare-turned (buffer)
  "Compare the file of BUFFER, which the user has selected, or all files if nil.
BUFFER may have been killed."
  (cond ((null buffer)
         (gemini-companion-changes--compare-all))
        ((buffer-live-p buffer)
         (with-current-buffer buffer
           (when-let* ((record (seq-find
                                (lambda (record)
                                  (gemini-companion-names-visited-here-p
                                   (gemini-companion-changes-file-name record)))
                                gemini-companion-changes--files)))
             (gemini-companion-changes--compare record))))))

(defun gemini-companion-changes--compare-at-end (_session state)
  "Compare all files at the end of a turn: STATE is the state of a CLI.
A CLI may have deleted its temporary files, and its background agents and the
programs that it has run may have written other files."
  (when (eq state 'ready)
    (gemini-companion-changes--compare-all)))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'changes)))
  "Record what CLIs write from now on."
  '((gemini-companion-edit-file-functions gemini-companion-changes--follow)
    (gemini-companion-state-functions gemini-companion-changes--compare-at-end)
    (gemini-companion-watch-turned-functions gemini-companion-changes--compare-turned)
    (after-set-visited-file-name-hook gemini-companion-changes--follow-name -100)
    (find-file-hook gemini-companion-changes-update-buffer)
    (after-revert-hook gemini-companion-changes-update-buffer)
    (gemini-companion-revert-remote-hook gemini-companion-changes-update-buffer)
    (vc-checkin-hook gemini-companion-commit-made)
    (git-commit-post-finish-hook gemini-companion-commit-made)
    (gemini-companion-revert-merged-hook gemini-companion-changes-update-buffer)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'changes)))
  "Forget all changes."
  (setq gemini-companion-changes--unrecorded nil
        gemini-companion-changes--past nil)
  (mapc #'gemini-companion-changes--drop gemini-companion-changes--files))

(cl-defmethod gemini-companion-part-lighter ((_part (eql 'changes)))
  "Return the number of changes left for the mode line, or nil without any."
  (when-let* ((count (gemini-companion-changes-left)))
    (cons (format "~%d" count)
          "~: changes of a CLI that you have not kept or undone")))

(provide 'gemini-companion-changes)
;;; gemini-companion-changes.el ends here
