;;; gemini-companion-undo.el --- Reverting an edit of a CLI in its file  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; An edit that a CLI has written can be undone as a whole, or one of its hunks.  A
;; file that is as the CLI wrote it gets the bytes of before.  In one that has
;; changed since, the lines of the edit are found as those of changes are, see
;; gemini-companion-baseline.el: the lines of others stay, and where others have
;; changed or deleted lines of the CLI, the user is asked.
;;
;; What of an edit is undone is computed from the text before the edit, the one after
;; it, and the text now, at a look: when the list is drawn, and when something is to
;; be undone.  The hunks that the user has undone are recorded for the file as well, as
;; they are no changes any more; see `gemini-companion-changes-undone-since'.

;;; Code:

(require 'gemini-companion-baseline)
(require 'gemini-companion-changes)
(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-file-state)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-format)
(require 'gemini-companion-hunk)
(require 'gemini-companion-lines)
(require 'gemini-companion-names)
(require 'gemini-companion-revert)
(require 'gemini-companion-server)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)
(require 'gemini-companion-windows-at-once)

;;;; State

(cl-defstruct (gemini-companion-undo--text
               (:noinline t)
               (:constructor gemini-companion-undo--make-text)
               (:copier nil))
  "The text of a file at a time.
TEXT is the text, with its line ends, as it is to be written; what the CLI
could not decode is still bytes there.  LINES is a vector of its lines, as
the user sees them.  BUFFER is the buffer that has it, or nil if the file
has it; then BYTES are those of the file."
  buffer bytes text lines)

(cl-defstruct (gemini-companion-undo--look
               (:noinline t)
               (:constructor gemini-companion-undo--make-look)
               (:copier nil))
  "What a look at an edit has found.
KEY differs, by `equal', once the look is to be repeated.  LEFT are the hunks
that were there before each of SEEN, later edits of the same file: what is
not among them was undone, and is of a later edit if it is there again."
  key seen (left 'all))

(defvar gemini-companion-undo--looks (make-hash-table :test 'eq :weakness 'key)
  "Table from edits to the `gemini-companion-undo--look's at them.")

;;;; Texts

(defun gemini-companion-undo--now (edit buffer)
  "Return the `gemini-companion-undo--text' of EDIT's file now, or nil.
It is that of BUFFER, or if that is nil, of the file, which may be missing or
too large."
  (if buffer
      (let ((text (gemini-companion-revert-text buffer)))
        (gemini-companion-undo--make-text
         :buffer buffer :text text :lines (gemini-companion-lines-split text)))
    (when-let* ((bytes (gemini-companion-edit-texts-bytes edit)))
      (gemini-companion-undo--make-text
       :bytes bytes
       :text (gemini-companion-edit-texts-decode edit bytes)
       :lines (gemini-companion-lines-split
               (gemini-companion-edit-texts-decode-shown edit bytes))))))

(defun gemini-companion-undo--sides (edit now)
  "Return the lines before and after EDIT as the text NOW has them, a list.
Both are vectors.  A CLI leaves the newline at the end of a file as it is, so
it counts as the file has it, unless the edit has changed it."
  (pcase-let*
      ((buffer (gemini-companion-undo--text-buffer now))
       (`(,before ,after)
        (mapcar (lambda (text)
                  (gemini-companion-lines-split
                   (if buffer
                       (with-current-buffer buffer
                         (gemini-companion-edit-texts-as-visited edit text))
                     text)))
                (gemini-companion-edit-texts-both edit)))
       (lines (gemini-companion-undo--text-lines now))
       (ends-p (lambda (lines)
                 (or (= 0 (length lines))
                     (string-suffix-p "\n" (aref lines (1- (length lines)))))))
       (there (funcall ends-p lines)))
    (if (eq there (funcall ends-p after))
        (list before after)
      (list (if (eq there (funcall ends-p before))
                before
              (gemini-companion-undo--with-end before there))
            (gemini-companion-undo--with-end after there)))))

(defun gemini-companion-undo--with-end (lines ends)
  "Return LINES, a vector, with a newline at the end if ENDS is non-nil."
  (let ((lines (copy-sequence lines))
        (last (1- (length lines))))
    (when (<= 0 last)
      (let ((plain (string-remove-suffix "\n" (aref lines last))))
        (aset lines last (if ends (concat plain "\n") plain))))
    lines))

(defun gemini-companion-undo--changes (edit hunks now)
  "Return the changes in the text NOW that HUNKS of EDIT have made, a list.
See `gemini-companion-baseline-changes'.  HUNKS are some of
`gemini-companion-edit-hunks'."
  (pcase-let ((`(,before ,after) (gemini-companion-undo--sides edit now)))
    (gemini-companion-baseline-changes
     (gemini-companion-baseline-of-hunks
      before after (gemini-companion-edit-hunks edit) hunks)
     (gemini-companion-undo--text-lines now))))

(defun gemini-companion-undo--changes-in (edit now)
  "Return the changes in the text NOW that EDIT has made, or nil if unknown."
  (when-let* ((hunks (gemini-companion-undo--hunks edit)))
    (gemini-companion-undo--changes edit hunks now)))

(defun gemini-companion-undo-changes-now (edit)
  "Return the changes that EDIT has made and its file has now, and the lines now.
The value is a cons of a list of `gemini-companion-baseline-change's and of a
vector of lines, or nil if the file is gone or cannot be read."
  (when-let* ((now (gemini-companion-undo--now
                    edit (gemini-companion-revert-unsaved
                          (gemini-companion-edit-file edit)))))
    (cons (gemini-companion-undo--changes-in edit now)
          (gemini-companion-undo--text-lines now))))

;;;; What is left of an edit

(defun gemini-companion-undo--hunks (edit)
  "Return the hunks of EDIT, or nil if they are unknown."
  (ignore-errors (gemini-companion-edit-hunks edit)))

(defun gemini-companion-undo--left (edit hunks now)
  "Return those of HUNKS of EDIT that are in the text NOW."
  (when hunks
    (let ((sides (gemini-companion-undo--sides edit now))
          (there (seq-mapcat #'gemini-companion-baseline-change-regions
                             (gemini-companion-undo--changes edit hunks now))))
      (seq-filter (lambda (hunk)
                    (if (gemini-companion-undo--of-mark-p edit hunk)
                        (not (eq (gemini-companion-undo--marked-p now)
                                 (gemini-companion-undo--marked-p
                                  (gemini-companion-undo--before edit))))
                      (member (apply #'gemini-companion-baseline-region-of-hunk
                                     hunk sides)
                              there)))
                  hunks))))

(defun gemini-companion-undo--of-mark-p (edit hunk)
  "Return non-nil if HUNK of EDIT is a byte order mark only."
  (when (= 1 (gemini-companion-hunk-old hunk))
    (let ((sides (mapcar #'gemini-companion-lines-split
                         (gemini-companion-edit-texts-both edit))))
      (apply #'gemini-companion-baseline-region-same-p
             (apply #'gemini-companion-baseline-region-of-hunk hunk sides)
             sides))))

(defun gemini-companion-undo--marked-p (now)
  "Return t if the text NOW has a byte order mark, else nil."
  (pcase (gemini-companion-undo--text-buffer now)
    ('nil (string-prefix-p "\uFEFF" (gemini-companion-undo--text-text now)))
    (buffer (gemini-companion-format-mark
             (gemini-companion-format-of-buffer buffer)))))

(defun gemini-companion-undo--before (edit)
  "Return the `gemini-companion-undo--text' before EDIT, or nil."
  (let ((bytes (gemini-companion-edit-before edit)))
    (when (stringp bytes)
      (gemini-companion-undo--make-text
       :bytes bytes
       :text (gemini-companion-edit-texts-decode edit bytes)
       :lines (gemini-companion-lines-split
               (gemini-companion-edit-texts-decode-shown edit bytes))))))

(defun gemini-companion-undo--later (edit)
  "Return the edits by which the file of EDIT was written later, oldest first."
  (seq-filter (lambda (other)
                (and (equal (gemini-companion-edit-true-name edit)
                            (gemini-companion-edit-true-name other))
                     (or (gemini-companion-edit-written-p other)
                         (memq (gemini-companion-edit-file-state other)
                               '(reverted unsaved deleted)))))
              (cdr (memq edit (gemini-companion-edits)))))

(defun gemini-companion-undo--restored-p (edit lines)
  "Return non-nil if LINES are what EDIT's file had before it or an earlier edit.
LINES is nil if there is no such file.  So it is after all edits since were
undone at once: after edits from A to B, C and B, A is left of none."
  (let ((same-p (lambda (text)
                  (and lines (equal lines
                                    (gemini-companion-undo--text-lines text))))))
    (seq-some (lambda (other)
                (pcase (gemini-companion-edit-before other)
                  ('new (null lines))
                  ((pred stringp)
                   (funcall same-p (gemini-companion-undo--before other)))))
              (memq edit (gemini-companion-edits-of-file
                          (gemini-companion-edit-true-name edit))))))

(defun gemini-companion-undo--key (edit buffer)
  "Return a value that differs, by `equal', once EDIT is to be looked at again.
BUFFER has unsaved text of its file, or is nil."
  (list (gemini-companion-watch-stamp (gemini-companion-edit-file edit))
        buffer
        (and buffer (buffer-chars-modified-tick buffer))
        (length (gemini-companion-undo--later edit))
        (gemini-companion-edit-after edit)
        (gemini-companion-edit-file-state edit)))

(defun gemini-companion-undo-look (edit &optional written)
  "Record what of EDIT is undone in its file now, if it was written.
WRITTEN is non-nil if it was, though that was not noticed."
  (when (and (or written
                 (memq (gemini-companion-edit-file-state edit)
                       '(written reverted unsaved deleted)))
             (not (eq 'unknown (gemini-companion-edit-before edit))))
    (let* ((buffer (gemini-companion-revert-unsaved
                    (gemini-companion-edit-file edit)))
           (look (or (gethash edit gemini-companion-undo--looks)
                     (puthash edit (gemini-companion-undo--make-look)
                              gemini-companion-undo--looks)))
           (key (gemini-companion-undo--key edit buffer)))
      (unless (equal key (gemini-companion-undo--look-key look))
        (pcase (gemini-companion-undo--state edit look buffer)
          (`(,state . ,undone)
           (gemini-companion-file-state-set-reverted edit state undone)))
        (setf (gemini-companion-undo--look-key look)
              (gemini-companion-undo--key edit buffer))))))

(defun gemini-companion-undo--state (edit look buffer)
  "Return the file state of EDIT now, and the hunks that are undone, a cons.
LOOK is the one of EDIT, and BUFFER has unsaved text of its file, or is nil.
Return nil if that cannot be known."
  (let* ((new (eq 'new (gemini-companion-edit-before edit)))
         (exists (gemini-companion-text-attributes (gemini-companion-edit-file edit)))
         (hunks (gemini-companion-undo--hunks edit))
         (now (and exists (gemini-companion-undo--now edit buffer))))
    (cond
     ((not exists)
      (cond (new '(deleted))
            ((gemini-companion-undo--restored-p edit nil)
             (cons 'reverted hunks))))
     (new '(written))
     ((null now) nil)
     (hunks
      (let ((left (gemini-companion-undo--left-now edit look hunks now)))
        (cond (left (cons 'written (seq-difference hunks left)))
              ((and buffer
                    (when-let* ((saved (gemini-companion-undo--now edit nil)))
                      (gemini-companion-undo--left-now edit look hunks saved)))
               (cons 'unsaved hunks))
              (t (cons 'reverted hunks))))))))

(defun gemini-companion-undo--left-now (edit look hunks now)
  "Return those of HUNKS of EDIT that were never undone, and are in the text NOW.
LOOK is the one of EDIT."
  (let ((lines (gemini-companion-undo--text-lines now)))
    (dolist (later (gemini-companion-undo--later edit))
      (unless (memq later (gemini-companion-undo--look-seen look))
        (when-let* ((before (gemini-companion-undo--before later)))
          (push later (gemini-companion-undo--look-seen look))
          (setf (gemini-companion-undo--look-left look)
                (gemini-companion-undo--left
                 edit
                 (gemini-companion-undo--known-left look hunks)
                 before)))))
    (cond
     ((equal lines (cadr (gemini-companion-undo--sides edit now)))
      (gemini-companion-undo--known-left look hunks))
     ((gemini-companion-undo--restored-p edit lines) nil)
     (t (gemini-companion-undo--left
         edit (gemini-companion-undo--known-left look hunks) now)))))

(defun gemini-companion-undo--known-left (look hunks)
  "Return those of HUNKS that were there before all edits that LOOK has seen."
  (pcase (gemini-companion-undo--look-left look)
    ('all hunks)
    (left (seq-intersection hunks left))))

;;;; Whether an edit can be undone

(defun gemini-companion-undo-check (edit &optional hunk)
  "Signal an error if undoing EDIT, or its HUNK, is impossible anyway."
  (let* ((file (gemini-companion-edit-file edit))
         (before (gemini-companion-edit-before edit))
         (unsaved (gemini-companion-revert-unsaved file)))
    (when-let*
        ((why (cond
               ((gemini-companion-undo-unwritten edit))
               ((member hunk (gemini-companion-edit-undone edit))
                "has this change undone already")
               ((eq 'unknown before) "had a previous text that was not kept")
               ((gemini-companion-text-unreadable-reason file))
               ((null (gemini-companion-text-attributes file))
                "was deleted or renamed since; nothing to undo")
               ;; Qwen Code writes all files of an answer at its end.
               ((gemini-companion-file-state-awaited-p edit) "is not written yet")
               ((not (equal (gemini-companion-edit-true-name edit)
                            (gemini-companion-text-true-name file)))
                "has other symbolic links since; undo this edit by hand")
               ((not (gemini-companion-edit-texts-keepable-p file)) "is too large")
               ((and (eq 'new before)
                     (or unsaved (not (gemini-companion-edit-texts-in-file-p edit))))
                "was new and has changed since; delete it by hand")
               (unsaved (gemini-companion-revert-obstacle unsaved)))))
      (user-error "%s %s" (gemini-companion-edit-name edit) why))
    (when-let* (((null unsaved))
                (obstacle (gemini-companion-names-obstacle file)))
      (user-error "%s" obstacle))))

(defun gemini-companion-undo-unwritten (edit)
  "Look at EDIT; return why nothing of it is in its file, a predicate, or nil."
  (gemini-companion-undo-look edit)
  (pcase (gemini-companion-edit-status edit)
    ((or 'pending 'shown) "is not written yet; its proposal awaits an answer")
    ('rejected "was not written; its proposal was rejected")
    ('unsaved "was undone already, and is not saved yet")
    ('reverted "was undone already")
    ('deleted "was deleted already")
    ((guard (not (or (memq (gemini-companion-edit-before edit) '(new unknown))
                     (condition-case nil
                         (gemini-companion-edit-hunks edit)
                       (error t)))))
     "was not changed by this edit")
    ((guard (gemini-companion-edit-texts-in-file-p edit)) nil)
    ((or 'unwritten 'dismissed) "was not written")))

;;;; Undoing

(cl-defstruct (gemini-companion-undo--plan
               (:noinline t)
               (:constructor gemini-companion-undo--make-plan)
               (:copier nil))
  "What undoing HUNK of EDIT, or the whole edit if that is nil, will do.
NOW is the `gemini-companion-undo--text' of before, and CHANGES are those
of NOW that will be undone.  TEXT is the text after, a string, or bytes, or
nil if the file is to be deleted.  CONFLICT is the number of the first line
that others have changed, or nil.  CONVERTED is a text about how others have
converted the file, or nil.  SEEN is the value of
`gemini-companion-changes-seen' just before."
  edit hunk now changes text conflict converted seen)

(defun gemini-companion-undo-edit (edit &optional hunk done)
  "Undo what EDIT has changed in its file, or only its HUNK.
A new file is deleted, and its buffer is killed.  If the buffer of the
file has unsaved text, change only the buffer.  If that is impossible,
signal an error and change nothing.  Return a message; or nil if the file
is remote, and later call DONE with nil, or with the problem.

Ask if others have changed lines of the edit; after a yes, only the buffer
is changed, and displayed.  With DONE non-nil, do not ask: that is an error."
  (let* ((buffer (gemini-companion-revert-unsaved (gemini-companion-edit-file edit)))
         ;; The text is read before the checks: the file may be replaced meanwhile.
         (now (gemini-companion-undo--now edit buffer)))
    (gemini-companion-undo-check edit hunk)
    (let ((plan (gemini-companion-undo--planned edit hunk now)))
      (gemini-companion-undo--ask plan (null done))
      (setf (gemini-companion-undo--plan-seen plan)
            (gemini-companion-changes-seen edit))
      (if (gemini-companion-undo--plan-conflict plan)
          (gemini-companion-undo--in-buffer plan)
        (gemini-companion-undo--write
         edit buffer (gemini-companion-undo--text-bytes now)
         (gemini-companion-undo--plan-text plan)
         (apply-partially #'gemini-companion-undo--end plan)
         (or done #'ignore))))))

(defun gemini-companion-undo--planned (edit hunk now)
  "Return the `gemini-companion-undo--plan' to undo EDIT, or its HUNK, in NOW."
  (let* ((whole (gemini-companion-undo--whole-p edit hunk))
         (bytes (gemini-companion-undo--text-bytes now))
         (converted (and whole bytes (gemini-companion-undo--converted edit bytes))))
    (cond
     ((eq 'new (gemini-companion-edit-before edit))
      (gemini-companion-undo--make-plan :edit edit :now now))
     ((and (or (null hunk)
               (equal (list hunk) (gemini-companion-edit-hunks edit)))
           bytes
           (null converted)
           (gemini-companion-edit-texts-in-file-p edit))
      (gemini-companion-undo--make-plan
       :edit edit :hunk hunk :now now
       :changes (gemini-companion-undo--changes-in edit now)
       :text (gemini-companion-undo--bytes-before edit now)))
     (t
      (gemini-companion-undo--planned-lines
       edit hunk now
       (gemini-companion-undo--changes
        ;; A hunk that was undone may be there again, by a later edit.
        edit (if hunk (list hunk) (gemini-companion-edit-hunks edit)) now)
       whole
       (and (stringp converted) converted))))))

(defun gemini-companion-undo--converted (edit bytes)
  "Return how others have converted the file of EDIT, which has BYTES, or nil.
The value is a text for the user, or t if only the newline at the end differs.
In the format of before the edit, nothing is taken back by undoing."
  (let ((before (gemini-companion-edit-texts-format
                 edit (gemini-companion-edit-before edit)))
        (written (gemini-companion-edit-format edit))
        (now (gemini-companion-edit-texts-format edit bytes)))
    (unless (or (gemini-companion-format-same-p before now)
                (gemini-companion-format-same-p written now))
      (or (and (gemini-companion-format-conversion before now)
               (gemini-companion-format-conversion written now))
          t))))

(defun gemini-companion-undo--planned-lines (edit hunk now changes whole converted)
  "Return the plan to undo CHANGES in the text NOW.
They are those of EDIT if WHOLE is non-nil, else of its HUNK.  CONVERTED is a
text about how others have converted the file, which stays so, or nil."
  (let* ((text (gemini-companion-lines-undo-in-text
                changes (gemini-companion-undo--text-text now)
                (gemini-companion-undo--as-there edit now changes)))
         (mixed (seq-find #'gemini-companion-baseline-change-mixed changes))
         (before (and whole
                      (null (gemini-companion-undo--text-buffer now))
                      (gemini-companion-undo--before edit))))
    (gemini-companion-undo--make-plan
     :edit edit :hunk hunk :now now :changes changes
     :conflict (and mixed (1+ (gemini-companion-baseline-change-start mixed)))
     :converted converted
     :text
     (cond (converted text)
           ((and before
                 (equal (gemini-companion-undo--text-lines before)
                        (gemini-companion-lines-without
                         changes (gemini-companion-undo--text-lines now))))
            (gemini-companion-undo--bytes-before edit now))
           ((and (or whole (gemini-companion-undo--of-mark-p edit hunk))
                 (gemini-companion-undo--mark-dropped-p edit now))
            (concat "\uFEFF" text))
           (t text)))))

(defun gemini-companion-undo--whole-p (edit hunk)
  "Return non-nil if nothing is left of EDIT without HUNK, or HUNK is nil."
  (or (null hunk)
      (equal (list hunk)
             (seq-difference (gemini-companion-undo--hunks edit)
                             (gemini-companion-edit-undone edit)))))

(defun gemini-companion-undo--bytes-before (edit now)
  "Return the bytes that EDIT's file had, in place of the text NOW of the file."
  (let ((before (gemini-companion-edit-before edit)))
    (if (eq 'unreviewed (gemini-companion-edit-decision edit))
        ;; A CLI may report plain line ends, and keeps those of the file.
        (gemini-companion-text-fit (gemini-companion-edit-texts-decode edit before)
                                   (gemini-companion-undo--text-text now)
                                   'own)
      before)))

(defun gemini-companion-undo--mark-dropped-p (edit now)
  "Return non-nil if the CLI of EDIT has dropped a byte order mark.
It is not in the text NOW of the file, either.  A buffer has the mark in its
coding system."
  (let ((marked-p (apply-partially #'string-prefix-p "\uFEFF")))
    (and (null (gemini-companion-undo--text-buffer now))
         (not (gemini-companion-client-codings
               (gemini-companion-edit-client edit)))
         (funcall marked-p (gemini-companion-edit-texts-decode-before edit))
         (not (funcall marked-p (gemini-companion-undo--text-text now)))
         (not (funcall marked-p (gemini-companion-edit-after edit))))))

(defun gemini-companion-undo--as-there (edit now changes)
  "Return a function for lines that come back in the text NOW, or nil.
These are lines of before EDIT that its CLI could not read, which it has
converted to UTF-8.  Beside lines that stay and are in UTF-8, in place of
CHANGES, they have to be in UTF-8, too: Emacs would read neither in a file of
both."
  (let ((coding (gemini-companion-edit-shown-in edit)))
    (when (and coding
               (null (gemini-companion-undo--text-buffer now))
               (not (string-match-p
                     "[\u0080-\x10ffff]"
                     (gemini-companion-lines-undo-in-text
                      (mapcar #'gemini-companion-baseline-change-without-lines
                              changes)
                      (gemini-companion-undo--text-text now)))))
      (lambda (line)
        (decode-coding-string (encode-coding-string line coding) 'utf-8-unix)))))

(defun gemini-companion-undo--ask (plan may-ask)
  "Signal an error if PLAN is in conflict with others, and the user objects.
Without MAY-ASK, the user is not asked, and objects."
  (let* ((edit (gemini-companion-undo--plan-edit plan))
         (name (gemini-companion-edit-name edit))
         (why (cond
               ((gemini-companion-undo--plan-conflict plan)
                (format "line %d has changed since"
                        (gemini-companion-undo--plan-conflict plan)))
               ((gemini-companion-undo--plan-converted plan)
                (format "it was converted since (%s)"
                        (gemini-companion-undo--plan-converted plan))))))
    (when why
      (unless (and may-ask
                   (y-or-n-p (format "%s: %s; undo all the same? " name why)))
        (user-error "%s cannot be undone: %s" name why))
      ;; The text may have changed while the question was asked.
      (unless (equal (gemini-companion-undo--text-text
                      (gemini-companion-undo--plan-now plan))
                     (when-let* ((now (gemini-companion-undo--now
                                       edit (gemini-companion-revert-unsaved
                                             (gemini-companion-edit-file edit)))))
                       (gemini-companion-undo--text-text now)))
        (user-error "%s has changed meanwhile; not undone" name)))))

(defun gemini-companion-undo--in-buffer (plan)
  "Carry PLAN out in the buffer of its file, and show the first conflict.
The buffer is not saved: there the user sees the lines of both."
  (let* ((edit (gemini-companion-undo--plan-edit plan))
         (buffer (gemini-companion-revert-visit (gemini-companion-edit-file edit)))
         (now (gemini-companion-undo--now edit buffer))
         (plan (gemini-companion-undo--planned
                edit (gemini-companion-undo--plan-hunk plan) now)))
    (setf (gemini-companion-undo--plan-seen plan) (gemini-companion-changes-seen edit))
    (gemini-companion-windows-at-once
      (pop-to-buffer buffer '(nil (category . gemini-companion-file))))
    (gemini-companion-revert-lock)
    (gemini-companion-revert-replace-text (gemini-companion-undo--plan-text plan))
    (when-let* ((line (gemini-companion-undo--plan-conflict plan)))
      (let ((position (gemini-companion-hunk-line line)))
        (unless (<= (point-min) position (point-max))
          (widen))
        (goto-char position)))
    (gemini-companion-undo--end plan)))

(defun gemini-companion-undo--write (edit buffer old text end done)
  "Make TEXT that of BUFFER, or if that is nil, of EDIT's file, now OLD.
OLD is in bytes, and TEXT may be.  If TEXT is nil, delete the file.
Return the value of END, called after that; or if the file is the copy of
a remote one, nil, and call DONE later."
  (when (and (multibyte-string-p text) (not buffer))
    (setq text (encode-coding-string text (gemini-companion-edit-coding edit))))
  (let ((file (gemini-companion-edit-file edit)))
    (cond (buffer
           (with-current-buffer buffer
             (gemini-companion-revert-lock)
             (gemini-companion-revert-replace-text text))
           (funcall end))
          ((gemini-companion-names-of-copy file)
           (gemini-companion-watch-look file)
           (gemini-companion-watch-wrote file text)
           (gemini-companion-names-write
            file old text
            (lambda (problem)
              (let ((message (if problem (funcall end problem) (funcall end))))
                (funcall done (and problem message)))))
           nil)
          (t
           (gemini-companion-undo--write-here file old text end)
           (funcall end)))))

(defun gemini-companion-undo--write-here (file old text end)
  "Make TEXT, in bytes, that of the local FILE, now OLD; if nil, delete FILE.
If that fails, signal the value of END, called with the problem."
  (if (null text)
      (gemini-companion-watch-writing file
        (delete-file (file-truename file) 'trash))
    ;; With a buffer older than the file, Emacs would ask whether to write.
    (gemini-companion-revert-now file)
    (condition-case err
        (unwind-protect
            (gemini-companion-watch-writing file
              (gemini-companion-text-rewrite file old text))
          ;; The file has a new time also where the old text was put back.
          (gemini-companion-revert-now file))
      (file-error
       (user-error "%s" (funcall end (error-message-string err)))))))

(defun gemini-companion-undo--end (plan &optional problem)
  "Record what is left after PLAN was done, unless there is a PROBLEM.
Return a message."
  (let* ((edit (gemini-companion-undo--plan-edit plan))
         (name (gemini-companion-edit-name edit))
         (file (gemini-companion-edit-file edit))
         (buffer (gemini-companion-names-buffer file)))
    (if problem
        (message "%s cannot be undone (%s)" name problem)
      (cond ((gemini-companion-undo--text-buffer (gemini-companion-undo--plan-now plan)))
            ((gemini-companion-undo--plan-text plan)
             (gemini-companion-revert file))
            ((and buffer (not (buffer-modified-p buffer)))
             (gemini-companion-windows-at-once
               (kill-buffer buffer))))
      (gemini-companion-changes-undone-since
       edit (gemini-companion-undo--plan-seen plan))
      ;; From A to B, C and B: without the first, none of them is in the file.
      (dolist (other (gemini-companion-edits-of-file
                      (gemini-companion-edit-true-name edit)))
        (gemini-companion-undo-look other
                                    (or (eq other edit)
                                        (gemini-companion-edit-written-p other))))
      (gemini-companion-undo--report plan)
      (message (cond ((null (gemini-companion-undo--plan-text plan)) "Deleted %s")
                     ((gemini-companion-revert-unsaved file) "Undid %s; not saved")
                     (t "Undid %s"))
               (if (gemini-companion-undo--plan-hunk plan)
                   (concat "a change of " name)
                 name)))))

(defun gemini-companion-undo--report (plan)
  "Call `gemini-companion-changes-undo-functions' for PLAN, which was done."
  (run-hook-with-args 'gemini-companion-changes-undo-functions
                      (gemini-companion-undo--plan-edit plan)
                      (if (gemini-companion-undo--plan-text plan)
                          (gemini-companion-undo--plan-changes plan)
                        'deleted)
                      (gemini-companion-undo--text-lines
                       (gemini-companion-undo--plan-now plan))))

(provide 'gemini-companion-undo)
;;; gemini-companion-undo.el ends here
