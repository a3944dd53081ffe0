;;; gemini-companion-undo.el --- Reverting an edit of a CLI in its file  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; An edit that a CLI has written can be undone as a whole, or one of its hunks.  A
;; file that is as the CLI wrote it gets the bytes of before.  In one that has
;; changed since, the record of the file says which lines are those of the edit, see
;; `gemini-companion-changes': the lines of others stay, and where others, or a later
;; edit, have changed lines of the edit, the user is asked.
;;
;; An edit without a record, as that took too much memory, can be undone by its bytes
;; only.

;;; Code:

(require 'gemini-companion-changes)
(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-file-state)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-facts)
(require 'gemini-companion-format)
(require 'gemini-companion-hunk)
(require 'gemini-companion-lines)
(require 'gemini-companion-names)
(require 'gemini-companion-revert)
(require 'gemini-companion-server)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)
(require 'gemini-companion-weave)
(require 'gemini-companion-windows-at-once)

;;;; Texts

(cl-defstruct (gemini-companion-undo--text
               (:noinline t)
               (:constructor gemini-companion-undo--make-text)
               (:copier nil))
  "The text of a file at a time.
TEXT is the text, with its line ends, as it is to be written; what the CLI
could not decode is still bytes there.  BUFFER is the buffer that has it, or
nil if the file has it; then BYTES are those of the file.  SEEN is the
`gemini-companion-changes-seen' of it, or nil if the file has no record."
  buffer bytes text seen)

(defun gemini-companion-undo--now (edit buffer)
  "Return the `gemini-companion-undo--text' of EDIT's file now, or nil.
It is that of BUFFER, or if that is nil, of the file, which may be missing or
too large."
  (let ((record (car (gemini-companion-changes-of edit))))
    (if buffer
        (gemini-companion-undo--make-text
         :buffer buffer
         :text (gemini-companion-revert-text buffer)
         :seen (and record (gemini-companion-changes-seen record buffer)))
      (when-let* ((bytes (gemini-companion-edit-texts-bytes edit)))
        (gemini-companion-undo--make-text
         :bytes bytes
         :text (gemini-companion-edit-texts-decode edit bytes)
         :seen (and record
                    (gemini-companion-changes-see
                     record
                     (gemini-companion-changes-lines-of-bytes record bytes)
                     (gemini-companion-edit-texts-format edit bytes))))))))

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

(defun gemini-companion-undo--notice (edit)
  "Notice at once what CLIs have just written to the file of EDIT.
Otherwise it would count as written by others."
  (mapc #'gemini-companion-file-state-awaited-p
        (gemini-companion-edits-of-file (gemini-companion-edit-true-name edit))))

(defun gemini-companion-undo-unwritten (edit)
  "Look at EDIT; return why nothing of it is in its file, a predicate, or nil."
  (gemini-companion-undo--notice edit)
  (gemini-companion-changes-look-at-edits (list edit))
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
NOW is the `gemini-companion-undo--text' of before.  HUNKS are those of the
record of the file that will be undone, and CHANGES are those of NOW.  TEXT is
the text after, a string, or bytes, or nil if the file is to be deleted.
CONFLICT is the number of the first line that others have changed, or nil.
CONVERTED is a text about how others have converted the file, or nil."
  edit hunk now hunks changes text conflict converted)

(defun gemini-companion-undo-edit (edit &optional hunk done)
  "Undo what EDIT has changed in its file, or only its HUNK.
A new file is deleted, and its buffer is killed.  If the buffer of the
file has unsaved text, change only the buffer.  If that is impossible,
signal an error and change nothing.  Return a message; or nil if the file
is remote, and later call DONE with nil, or with the problem.

Ask if others have changed lines of the edit; after a yes, only the buffer
is changed, and displayed.  With DONE non-nil, do not ask: that is an error."
  (gemini-companion-undo--notice edit)
  (let* ((buffer (gemini-companion-revert-unsaved (gemini-companion-edit-file edit)))
         ;; The text is read before the checks: the file may be replaced meanwhile.
         (now (gemini-companion-undo--now edit buffer)))
    (gemini-companion-undo-check edit hunk)
    (let ((plan (gemini-companion-undo--planned edit hunk now)))
      (gemini-companion-undo--ask plan (null done))
      (if (gemini-companion-undo--plan-conflict plan)
          (gemini-companion-undo--in-buffer plan)
        (gemini-companion-undo--write
         edit buffer (gemini-companion-undo--text-bytes now)
         (gemini-companion-undo--plan-text plan)
         (apply-partially #'gemini-companion-undo--end plan)
         (or done #'ignore))))))

(defun gemini-companion-undo--planned (edit hunk now)
  "Return the `gemini-companion-undo--plan' to undo EDIT, or its HUNK, in NOW.
Signal an error if that is impossible."
  (let* ((whole (gemini-companion-undo--whole-p edit hunk))
         (bytes (gemini-companion-undo--text-bytes now))
         (new (eq 'new (gemini-companion-edit-before edit)))
         (converted (and whole bytes (not new)
                         (gemini-companion-undo--converted edit bytes))))
    (cond
     ((or new
          (and (or (null hunk)
                   (equal (list hunk) (gemini-companion-edit-hunks edit)))
               bytes
               (null converted)
               (gemini-companion-edit-texts-in-file-p edit)))
      ;; From A to B, C and B: without the first edit, none is in the file.
      (let ((hunks (gemini-companion-changes-since edit)))
        (gemini-companion-undo--make-plan
         :edit edit :hunk hunk :now now :hunks hunks
         :changes (gemini-companion-undo--changes edit now hunks)
         :text (and (not new) (gemini-companion-undo--bytes-before edit now)))))
     ((null (gemini-companion-undo--text-seen now))
      (user-error "%s has changed since, and its lines are no longer known; \
undo this edit by hand"
                  (gemini-companion-edit-name edit)))
     (t
      (gemini-companion-undo--planned-lines edit hunk now whole
                                            (and (stringp converted) converted))))))

(defun gemini-companion-undo--changes (edit now hunks)
  "Return what differs without HUNKS in the text NOW of EDIT's file, changes."
  (when-let* ((seen (gemini-companion-undo--text-seen now))
              (changes (gemini-companion-weave-changes-without
                        (gemini-companion-changes-seen-weave seen) hunks)))
    (gemini-companion-changes-set-visited
     (car (gemini-companion-changes-of edit))
     (gemini-companion-undo--text-buffer now) changes)
    changes))

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

(defun gemini-companion-undo--planned-lines (edit hunk now whole converted)
  "Return the plan to undo HUNK of EDIT in the lines of the text NOW.
If WHOLE is non-nil, nothing is left of EDIT then.  CONVERTED is a text about
how others have converted the file, which stays so, or nil."
  (let* ((seen (gemini-companion-undo--text-seen now))
         (hunks (or (cdr (gemini-companion-changes-of edit (and (not whole) hunk)))
                    (user-error "This change of %s is not known by its lines; \
undo the whole edit"
                                (gemini-companion-edit-name edit))))
         (changes (gemini-companion-undo--changes edit now hunks))
         (mixed (seq-find #'gemini-companion-weave-change-mixed changes))
         (format (gemini-companion-facts-format
                  (gemini-companion-facts-set-undone
                   (gemini-companion-changes-seen-facts seen) hunks t)))
         (text (gemini-companion-changes-with-end
                (gemini-companion-lines-undo-in-text
                 changes (gemini-companion-undo--text-text now)
                 (gemini-companion-undo--as-there edit now changes))
                (gemini-companion-undo--text-text now)
                format)))
    (gemini-companion-undo--make-plan
     :edit edit :hunk hunk :now now :hunks hunks :changes changes
     :conflict (and mixed (1+ (gemini-companion-lines-change-start mixed)))
     :converted converted
     :text
     (cond (converted text)
           ((and whole
                 (gemini-companion-undo--text-bytes now)
                 (gemini-companion-undo--restored-p edit seen hunks format))
            (gemini-companion-undo--bytes-before edit now))
           ((and (null (gemini-companion-undo--text-buffer now))
                 (gemini-companion-format-mark format)
                 (null (coding-system-get (gemini-companion-edit-coding edit) :bom))
                 (not (string-prefix-p "\uFEFF" text)))
            (concat "\uFEFF" text))
           (t text)))))

(defun gemini-companion-undo--restored-p (edit seen hunks format)
  "Return non-nil if EDIT's file is as before it in SEEN without HUNKS.
FORMAT is the format of that."
  (when-let* ((before (gemini-companion-edit-before edit))
              ((stringp before))
              (record (car (gemini-companion-changes-of edit))))
    (and (equal (gemini-companion-changes-lines-of-bytes record before)
                (gemini-companion-weave-text-without
                 (gemini-companion-changes-seen-weave seen) hunks))
         (eq (gemini-companion-format-open format)
             (gemini-companion-format-open
              (gemini-companion-edit-texts-format edit before))))))

(defun gemini-companion-undo--whole-p (edit hunk)
  "Return non-nil if nothing is left of EDIT without HUNK, or HUNK is nil."
  (or (null hunk)
      (equal (list hunk)
             (seq-difference (ignore-errors (gemini-companion-edit-hunks edit))
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
                      (mapcar (lambda (change)
                                (gemini-companion-lines-change
                                 (gemini-companion-lines-change-start change)
                                 (gemini-companion-lines-change-end change)
                                 nil))
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
      (gemini-companion-undo--decide plan)
      (gemini-companion-undo--report plan)
      (message (cond ((null (gemini-companion-undo--plan-text plan)) "Deleted %s")
                     ((gemini-companion-revert-unsaved file) "Undid %s; not saved")
                     (t "Undid %s"))
               (if (gemini-companion-undo--plan-hunk plan)
                   (concat "a change of " name)
                 name)))))

(defun gemini-companion-undo--decide (plan)
  "Record as undone the hunks of PLAN."
  (let* ((edit (gemini-companion-undo--plan-edit plan))
         (hunks (gemini-companion-undo--plan-hunks plan)))
    (pcase (gemini-companion-changes-of edit)
      (`(,record . ,_)
       (gemini-companion-changes-set-undone
        record hunks
        (gemini-companion-undo--text-seen (gemini-companion-undo--plan-now plan))))
      ;; Nothing but its bytes is known.
      (_ (gemini-companion-file-state-set-reverted
          edit
          (if (gemini-companion-undo--plan-text plan) 'reverted 'deleted)
          (ignore-errors (gemini-companion-edit-hunks edit)))))))

(defun gemini-companion-undo--report (plan)
  "Call `gemini-companion-changes-undo-functions' for PLAN, which was done."
  (let ((now (gemini-companion-undo--plan-now plan))
        (edit (gemini-companion-undo--plan-edit plan)))
    (run-hook-with-args 'gemini-companion-changes-undo-functions
                        (or (car (gemini-companion-changes-of edit)) edit)
                        (if (gemini-companion-undo--plan-text plan)
                            (gemini-companion-undo--plan-changes plan)
                          'deleted)
                        (gemini-companion-lines-split
                         (gemini-companion-undo--text-text now)))))

(provide 'gemini-companion-undo)
;;; gemini-companion-undo.el ends here
