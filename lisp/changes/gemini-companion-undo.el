;;; gemini-companion-undo.el --- Undoing an edit of a CLI in its file  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Undo an edit that a CLI has written, or one of its hunks.  If the file is unchanged
;; since the CLI wrote it, it gets its previous bytes back.  If it has changed, its
;; record says which lines belong to the edit, see `gemini-companion-changes': lines of
;; others stay, and the user is asked where others, or a later edit, have changed lines
;; of the edit.  An edit whose record was dropped to save memory can only be undone by
;; its bytes.
;;
;; Undoing acts on the file, as the CLI did.  The bytes are written without the hooks
;; of a save, and the buffer follows.  If the buffer has unsaved text, or its text
;; differs from the file, only the buffer is changed.  The undo of Emacs in that buffer
;; restores the hunks.  After an undo of Emacs, the file is written as well, if the
;; buffer has the text from before the undoing, and the file still has the bytes that
;; the undoing wrote.

;;; Code:

(require 'gemini-companion-changes)
(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-file-state)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-format)
(require 'gemini-companion-hunk)
(require 'gemini-companion-label)
(require 'gemini-companion-lines)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-record)
(require 'gemini-companion-revert)
(require 'gemini-companion-server)
(require 'gemini-companion-log)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)
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
         :text (gemini-companion-text-of-buffer buffer)
         :seen (and record (gemini-companion-changes-seen record buffer)))
      (when-let* ((now (gemini-companion-edit-texts-now edit)))
        (gemini-companion-undo--make-text
         :bytes (gemini-companion-content-bytes now)
         :text (gemini-companion-content-text now)
         :seen (and record
                    (gemini-companion-undo--see
                     record (gemini-companion-content-bytes now))))))))

(defun gemini-companion-undo--see (record bytes)
  "Return what the file of RECORD has of it when it has BYTES.
For the value, see `gemini-companion-changes-see'."
  (gemini-companion-changes-see
   record (gemini-companion-changes-lines-of-content
           (gemini-companion-changes-content-with record bytes))))

;;;; Whether an edit can be undone

(defun gemini-companion-undo-check (edit &optional hunk)
  "Signal an error if undoing EDIT, or its HUNK, is certainly impossible."
  (let* ((file (gemini-companion-edit-file edit))
         (unsaved (gemini-companion-revert-unsaved file)))
    (when-let*
        ((why (cond
               ((gemini-companion-edit-unmarked edit)
                (and (eq 'reverted (gemini-companion-edit-file-state edit))
                     "already undone"))
               ((gemini-companion-edit-deleted-modes edit)
                (and (gemini-companion-text-attributes file)
                     "exists again; nothing to undo"))
               ((gemini-companion-undo-unwritten edit))
               ((member hunk (gemini-companion-edit-undone edit))
                "does not contain this change: it is already undone")
               ((not (gemini-companion-edit-known-p edit))
                "cannot be restored: its previous text was not recorded")
               ((and hunk (not (gemini-companion-edit-texts-utf-8-p edit)))
                "is not text in UTF-8; undo the whole edit")
               ((gemini-companion-text-unreadable-reason file))
               ((null (gemini-companion-text-attributes file))
                "has been deleted or renamed; nothing to undo")
               ;; Qwen Code writes all files of an answer at its end.
               ((gemini-companion-file-state-awaited-p edit) "is not written yet")
               ((and (null unsaved)
                     (gemini-companion-undo-unwritable-reason
                      (gemini-companion-edit-true-name edit))))
               ((not (equal (gemini-companion-edit-true-name edit)
                            (gemini-companion-text-true-name file)))
                "is reached by other symbolic links now; undo this edit by hand")
               ((not (gemini-companion-edit-texts-keepable-p file)) "is too large")
               ((and (gemini-companion-edit-new-p edit)
                     (or unsaved (not (gemini-companion-edit-texts-in-file-p edit))))
                "was new and has changed since; delete it by hand")
               (unsaved (gemini-companion-revert-blocked-reason unsaved)))))
      (user-error "%s %s" (gemini-companion-edit-name edit) why))
    (when-let* (((null (or unsaved (gemini-companion-edit-unmarked edit))))
                (reason (gemini-companion-names-unwritable-reason file)))
      (user-error "%s" reason))))

(defun gemini-companion-undo--notice (edit)
  "Detect at once what CLIs have just written to the file of EDIT.
Otherwise it would be attributed to others."
  (mapc #'gemini-companion-file-state-detect-write
        (gemini-companion-edits-of-file (gemini-companion-edit-true-name edit))))

(defun gemini-companion-undo-unwritten (edit)
  "Check whether the file of EDIT has text of EDIT; return why not, or nil.
The value is a verb phrase."
  (gemini-companion-undo--notice edit)
  (gemini-companion-changes-update-edits (list edit))
  (pcase (gemini-companion-edit-status edit)
    ((or 'pending 'shown) "is not written yet; its proposal awaits an answer")
    ('rejected "was not written; its proposal was rejected")
    ('reverted "is already undone")
    ('deleted "is already deleted")
    ((guard (gemini-companion-edit-texts-in-file-p edit)) nil)
    ((guard (not (or (null (gemini-companion-edit-bytes-before edit))
                     (condition-case nil
                         (gemini-companion-edit-hunks edit)
                       (error t)))))
     (if (gemini-companion-edit-texts-conversion edit)
         "has changed since; this edit has changed no lines, only its format"
       "was not changed by this edit"))
    ((or 'unwritten 'dismissed) "was not written")))

;;;; The file of a buffer

(defvar gemini-companion-undo--taken-back nil
  "What Emacs has undone or redone since the last command, the last step first.
An element is a list of a buffer, and the hashes of the bytes that its file must
have before the step and gets by the step.")

(defun gemini-companion-undo--file ()
  "Return the file of the current buffer, if undoing may write it, or nil.
Return nil for a remote file."
  (let ((file (gemini-companion-names-file)))
    (and file
         (gemini-companion-undo--writable-p file)
         file)))

(defun gemini-companion-undo--writable-p (file)
  "Return non-nil if FILE is not remote, and its bytes can be written."
  (and (null (gemini-companion-names-of-copy file))
       (gemini-companion-edit-texts-keepable-p file)
       (let ((file-name-handler-alist nil))
         (file-writable-p file))))

(defun gemini-companion-undo--same-bytes ()
  "Return the bytes of the file of the current buffer, if these are its text.
Return nil also if the file is not to be written."
  (when-let* ((file (gemini-companion-undo--file))
              (bytes (ignore-error file-error
                       (gemini-companion-text-bytes file)))
              ((equal bytes (gemini-companion-revert-encoded))))
    bytes))

(defun gemini-companion-undo--saved-bytes ()
  "Return the bytes of the file of the current buffer, if these are its text.
Return nil if the buffer has unsaved text, or the file is not to be written."
  (and (not (buffer-modified-p))
       (gemini-companion-undo--same-bytes)))

(defun gemini-companion-undo--save (old)
  "Write the current buffer to its file, whose bytes are OLD, without hooks.
Return the bytes that were written, or nil if that is impossible; the buffer has
unsaved text then."
  (when-let* ((file (gemini-companion-undo--file))
              (bytes (gemini-companion-revert-encoded)))
    (condition-case nil
        (progn
          (gemini-companion-watch-writing file
            (gemini-companion-text-rewrite file old bytes))
          (set-visited-file-modtime)
          (when (car buffer-file-coding-system-explicit)
            (setq buffer-file-coding-system-explicit
                  (cons buffer-file-coding-system
                        (cdr buffer-file-coding-system-explicit))))
          (set-buffer-modified-p nil)
          bytes)
      ;; The disk may be full, or the file has changed meanwhile.
      (file-error nil))))

(defun gemini-companion-undo--mark-saved ()
  "Mark the text of the current buffer as saved if its file has that text."
  (when (and (buffer-modified-p)
             (verify-visited-file-modtime)
             (gemini-companion-undo--same-bytes))
    (set-buffer-modified-p nil)))

(defun gemini-companion-undo--push-entry (record hunks undone
                                                 &optional before after)
  "Record a decision about HUNKS of RECORD in the undo list of the buffer.
An undo of Emacs then takes the decision back, and a redo makes it again.
UNDONE is non-nil if HUNKS were undone, and nil if they were restored.  BEFORE
and AFTER are the bytes of the file before and after the decision, or nil if
it has not written the file."
  (when (listp buffer-undo-list)
    ;; The entry must follow the change of the text without a boundary between them.
    (while (and buffer-undo-list (null (car buffer-undo-list)))
      (pop buffer-undo-list))
    (push (list 'apply #'gemini-companion-undo--take-back record hunks (not undone)
                (and before after (secure-hash 'sha1 after))
                (and before after (secure-hash 'sha1 before)))
          buffer-undo-list)))

(defun gemini-companion-undo--take-back (record hunks undone from to)
  "Record that Emacs has UNDONE HUNKS of RECORD again, or has restored them.
FROM and TO are hashes of the bytes that the file must have before that and
gets by it, or nil.  The undo of Emacs calls this: the file is written after
the command."
  ;; The text comes next.  If some of it was hidden, Emacs would stop there.
  (widen)
  (gemini-companion-changes-flag-undone record hunks undone)
  (push (list 'apply #'gemini-companion-undo--take-back record hunks (not undone)
              to from)
        buffer-undo-list)
  (when from
    (push (list (current-buffer) from to) gemini-companion-undo--taken-back)
    (add-hook 'post-command-hook #'gemini-companion-undo-write-taken-back)))

(defun gemini-companion-undo-write-taken-back ()
  "Write the files of the buffers in which Emacs has undone or redone an undo.
This runs after a command.  Write a file only if the buffer has the text from
before the undo, and the file still has the bytes that the undo has written."
  (remove-hook 'post-command-hook #'gemini-companion-undo-write-taken-back)
  (let ((all (nreverse gemini-companion-undo--taken-back)))
    (setq gemini-companion-undo--taken-back nil)
    (pcase-dolist (`(,buffer . ,steps) (seq-group-by #'car all))
      (when (buffer-live-p buffer)
        (gemini-companion-log-guarded "Writing an undo"
          (with-current-buffer buffer
            (gemini-companion-undo--write-step (nth 1 (car steps))
                                               (nth 2 (car (last steps))))))))))

(defun gemini-companion-undo--write-step (from to)
  "Write the current buffer to its file, if these have the hashes TO and FROM."
  (when-let* ((file (gemini-companion-undo--file))
              (old (ignore-error file-error
                     (gemini-companion-text-bytes file)))
              (bytes (gemini-companion-revert-encoded)))
    (when (equal to (secure-hash 'sha1 bytes))
      (unless (and (equal from (secure-hash 'sha1 old))
                   (gemini-companion-undo--save old))
        (message "%s is not saved; it has changed since"
                 (gemini-companion-label-file file)))
      (gemini-companion-changes-update-buffer))))

;;;; Changes in a buffer

(defun gemini-companion-undo-unwritable-reason (true-name)
  "Return why the file with TRUE-NAME cannot be written now, or nil.
The value is a verb phrase about the file."
  (let ((edits (gemini-companion-edits-of-file true-name)))
    (mapc #'gemini-companion-file-state-detect-write edits)
    (cond ((seq-some #'gemini-companion-edit-open-p edits)
           "has a proposal that awaits an answer; answer that first")
          ((seq-some #'gemini-companion-file-state-awaited-p edits)
           "is still to be written by its CLI; wait for that"))))

(defun gemini-companion-undo-in-buffer (record changes)
  "Undo CHANGES, some of those of RECORD at the last update, in its buffer.
That is the current buffer.  If it had no unsaved text, write its file, and
return non-nil.  Line ends, byte order mark and coding system stay."
  (let ((hunks (gemini-companion-undo--hunks changes))
        (text (gemini-companion-text-of-buffer)))
    (gemini-companion-undo--save-lines record hunks)
    (pcase-let ((`(,texts ,old ,new)
                 (gemini-companion-undo--change
                  record hunks t (gemini-companion-lines-undo-in-text changes text)
                  'save)))
      (run-hook-with-args 'gemini-companion-changes-undo-functions record changes
                          (gemini-companion-lines-split text))
      (gemini-companion-changes-set-undone record hunks t)
      (gemini-companion-changes-decided 'undone record hunks
                                        :before old :after new :texts texts)
      (and new t))))

(defun gemini-companion-undo-question (count)
  "Return a question to ask before an undo of COUNT lines of others."
  (format (ngettext "%d line there is yours or a formatter's; undo it as well? "
                    "%d lines there are yours or a formatter's; undo them as well? "
                    count)
          count))

(defun gemini-companion-undo--hunks (changes)
  "Return the hunks of CHANGES that are to be undone."
  (gemini-companion-changes-not-undone
   (seq-uniq (seq-mapcat #'gemini-companion-record-change-hunks changes) #'eq)))

(defun gemini-companion-undo--save-lines (record hunks &optional seen)
  "Add to the kill ring the lines of others that are undone with HUNKS of RECORD.
For SEEN, see `gemini-companion-changes-others-in'."
  (when-let* ((seen (or seen (gemini-companion-changes-seen
                              record (gemini-companion-changes-buffer record))))
              (others (gemini-companion-changes-others-in record hunks seen))
              (interprogram-cut-function #'ignore))
    (kill-new (mapconcat (lambda (n) (aref (gemini-companion-changes-seen-lines seen) n))
                         others ""))))

(defun gemini-companion-undo-in-file (record changes)
  "Undo CHANGES, some of those of RECORD at the last update, in its file.
No buffer visits it.  Return nil, and change nothing, if a buffer is needed: to
read or write the file by a handler, or to ask."
  (let* ((file (gemini-companion-changes-path record))
         (hunks (gemini-companion-undo--hunks changes))
         (seen (gemini-companion-changes-seen record nil))
         (old (and seen
                   (gemini-companion-undo--writable-p file)
                   (null (find-file-name-handler file 'insert-file-contents))
                   (not (stringp (file-locked-p file)))
                   (gemini-companion-changes-content-with
                    record (gemini-companion-text-bytes file))))
         (text (and old (gemini-companion-content-text old))))
    (when (and text
               (equal old (gemini-companion-content-encoded old text))
               (equal (gemini-companion-changes-seen-lines seen)
                      (gemini-companion-changes-lines-of-content old)))
      (let ((new (gemini-companion-content-encoded
                  old (gemini-companion-lines-undo-in-text changes text))))
        (when (gemini-companion-content-known-p new)
          (let ((before (gemini-companion-content-bytes old))
                (after (gemini-companion-content-bytes new)))
            (gemini-companion-undo--save-lines record hunks seen)
            (gemini-companion-undo-write file before after)
            (run-hook-with-args 'gemini-companion-changes-undo-functions record changes
                                (gemini-companion-lines-split text))
            (gemini-companion-changes-set-undone record hunks t)
            (gemini-companion-changes-decided 'undone record hunks
                                              :before before :after after)
            t))))))

(defun gemini-companion-undo--change (record hunks undone new-text save)
  "Make NEW-TEXT the text of the current buffer, to undo HUNKS of RECORD.
If UNDONE is nil, NEW-TEXT has HUNKS again.  If SAVE is non-nil, and the buffer
has no unsaved text, write the file.  An undo of Emacs takes all of this back.
Return a list: a cons of the texts before and after, and if the file was
written, its bytes before and after."
  (gemini-companion-revert-lock)
  (undo-boundary)
  (let* ((group (prepare-change-group))
         (old (and save (gemini-companion-undo--saved-bytes)))
         (text (gemini-companion-text-of-buffer))
         (new nil))
    (activate-change-group group)
    (gemini-companion-revert-replace-text new-text)
    (setq new (and old (gemini-companion-undo--save old)))
    (gemini-companion-undo--mark-saved)
    (gemini-companion-undo--push-entry record hunks undone old new)
    (accept-change-group group)
    ;; A single undo takes back the text and the decision.
    (undo-amalgamate-change-group group)
    (undo-boundary)
    (cons (cons text (gemini-companion-text-of-buffer))
          (and new (list old new)))))

;;;; Decisions taken back

(defun gemini-companion-undo-turn (record hunks undone from to texts)
  "Undo HUNKS of RECORD in its file if UNDONE is non-nil, or else restore them.
If the file has the bytes FROM, it gets the bytes TO.  If its buffer has the car
of TEXTS, it gets the cdr.  Otherwise, only the lines of HUNKS are changed; if
others have changed some of these lines, ask, and show the lines of both in the
buffer, which is not saved.  FROM and TEXTS may be nil.  Return non-nil if
something was changed."
  (let* ((edit (gemini-companion-changes-file-edit record))
         (name (gemini-companion-edit-name edit))
         (file (gemini-companion-changes-path record))
         (buffer (gemini-companion-changes-buffer record))
         (unsaved (gemini-companion-revert-unsaved file))
         (old (and (null unsaved)
                   (gemini-companion-edit-texts-keepable-p file)
                   (gemini-companion-text-bytes file)))
         (same-text (and texts buffer
                         (equal (car texts) (gemini-companion-text-of-buffer buffer)))))
    (when-let* ((why (cond ((null (gemini-companion-text-attributes file))
                            "has been deleted or renamed")
                           (unsaved (gemini-companion-revert-blocked-reason unsaved))
                           ((and (gemini-companion-names-of-copy file)
                                 (not same-text)
                                 (not (and from (equal from old))))
                            "is on another host and has changed since; \
undo the change in its buffer")
                           ((gemini-companion-undo-unwritable-reason
                             (gemini-companion-changes-file-name record))))))
      (user-error "%s %s" name why))
    (cond ((and from (equal from old))
           (gemini-companion-undo--turn-bytes record hunks undone from to))
          (same-text
           (gemini-companion-undo--turn-text record hunks undone buffer (cdr texts)))
          (t (gemini-companion-undo--turn-lines
              record hunks undone
              (or buffer (gemini-companion-revert-visit file)))))))

(defun gemini-companion-undo-write (file old bytes)
  "Write BYTES to FILE, which has the bytes OLD, and let its buffer follow.
Signal an error if that is impossible."
  (gemini-companion-undo--write-here
   file old bytes
   (lambda (problem)
     (format "%s cannot be written (%s)" (gemini-companion-label-file file) problem))))

(defun gemini-companion-undo--turn-bytes (record hunks undone from to)
  "Write TO to the file of RECORD, which has FROM, and return non-nil.
A remote file is written later.  For HUNKS and UNDONE, see
`gemini-companion-undo-turn'."
  (let* ((edit (gemini-companion-changes-file-edit record))
         (file (gemini-companion-changes-path record))
         (decide
          (lambda ()
            (when-let* ((buffer (gemini-companion-changes-buffer record)))
              (with-current-buffer buffer
                (gemini-companion-undo--push-entry record hunks undone from to)
                (undo-boundary)))
            (gemini-companion-changes-set-undone record hunks undone))))
    (if (gemini-companion-names-of-copy file)
        (gemini-companion-undo--write-there
         file from to
         (lambda (problem)
           (if problem
               (message "%s cannot be written (%s)" (gemini-companion-edit-name edit)
                        problem)
             (funcall decide))))
      (gemini-companion-undo-write file from to)
      (funcall decide))
    t))

(defun gemini-companion-undo--turn-text (record hunks undone buffer text)
  "Replace the text of BUFFER, which visits the file of RECORD, by TEXT.
For HUNKS, UNDONE and the value, see `gemini-companion-undo-turn'."
  (with-current-buffer buffer
    (gemini-companion-undo--change record hunks undone text 'save)
    (gemini-companion-changes-set-undone record hunks undone)
    t))

(defun gemini-companion-undo--turn-lines (record hunks undone buffer)
  "Change the lines of HUNKS of RECORD in BUFFER, which visits its file.
For UNDONE and the value, see `gemini-companion-undo-turn'."
  (with-current-buffer buffer
    (let* ((seen (gemini-companion-changes-seen record buffer))
           (look (gemini-companion-changes-seen-look seen))
           (changes (if undone
                        (gemini-companion-record-without look hunks)
                      (gemini-companion-record-with look hunks)))
           (conflict (gemini-companion-record-conflict look hunks (not undone))))
      (when (or changes
                (seq-some (lambda (hunk)
                            (not (eq (null undone)
                                     (null (gemini-companion-record-hunk-undone hunk)))))
                          hunks))
        (when conflict
          (gemini-companion-undo--show buffer conflict)
          (unless (with-local-quit
                    (y-or-n-p (format "Lines of %s have changed since; %s anyway? "
                                      (gemini-companion-edit-name
                                       (gemini-companion-changes-file-edit record))
                                      (if undone "undo" "restore them"))))
            (user-error "Not changed"))
          (unless (eq seen (gemini-companion-changes-seen record buffer))
            (user-error "%s has changed meanwhile"
                        (gemini-companion-edit-name
                         (gemini-companion-changes-file-edit record)))))
        (gemini-companion-changes-set-visited buffer changes)
        (gemini-companion-undo--change
         record hunks undone
         (gemini-companion-lines-undo-in-text
          changes (gemini-companion-text-of-buffer buffer))
         (null conflict))
        (gemini-companion-changes-set-undone record hunks undone)
        t))))

(defun gemini-companion-undo--show (buffer index)
  "Display BUFFER, and go to the line with INDEX there."
  (gemini-companion-windows-at-once
    (pop-to-buffer buffer '(nil (category . gemini-companion-file))))
  (let ((position (gemini-companion-hunk-line (1+ index))))
    (unless (<= (point-min) position (point-max))
      (widen))
    (goto-char position)))

(defun gemini-companion-undo-in-deleted (record changes)
  "Undo CHANGES of RECORD, whose file a CLI has deleted: create the file."
  (let* ((hunks (gemini-companion-undo--hunks changes))
         (edit (gemini-companion-changes-file-edit record))
         (file (gemini-companion-changes-path record))
         (modes (gemini-companion-edit-deleted-modes edit))
         (bytes (gemini-companion-undo--bytes-of-lines
                 record (gemini-companion-lines-without changes []))))
    (gemini-companion-undo-create file bytes modes record hunks t)
    (run-hook-with-args 'gemini-companion-changes-undo-functions record changes [])
    (gemini-companion-changes-decided 'created record hunks
                                      :file file :after bytes :modes modes)))

(defun gemini-companion-undo--bytes-of-lines (record lines)
  "Return the bytes of LINES, a vector, in the file of RECORD, which is missing.
They are those that an edit has found there, or else in the format that the last
edit has found."
  (or (seq-some
       (lambda (edit)
         (when-let* ((bytes (gemini-companion-edit-bytes-before edit))
                     ((equal lines (gemini-companion-changes-lines-of-content
                                    (gemini-companion-edit-content edit)))))
           bytes))
       (gemini-companion-changes-file-edits record))
      (gemini-companion-content-bytes
       (gemini-companion-content-of-lines
        lines (gemini-companion-content-format
               (gemini-companion-edit-content
                (gemini-companion-changes-file-edit record)))))))

(defun gemini-companion-undo-create (file bytes modes record hunks &optional undone)
  "Create FILE again, which undoing HUNKS of RECORD has deleted.
It gets BYTES and MODES; its directory is created if it is missing.  RECORD may
be nil.  If UNDONE is non-nil, HUNKS have deleted FILE, and are undone.  If FILE
exists again, signal an error."
  (when (gemini-companion-text-attributes file)
    (user-error "%s exists again; not changed" (gemini-companion-label-file file)))
  (when (gemini-companion-names-of-copy file)
    (user-error "%s is on another host; ask its CLI to write it again"
                (gemini-companion-label-file file)))
  ;; If this is taken back, they go as well.
  (when-let* ((directories (gemini-companion-edit-directories-to-make file))
              (edit (car (gemini-companion-edits-of-file
                          (gemini-companion-text-true-name file)))))
    (setf (gemini-companion-edit-missing-directories edit) directories))
  (make-directory (file-name-directory file) t)
  (gemini-companion-watch-writing file
    (gemini-companion-text-write file bytes)
    (set-file-modes file modes))
  (gemini-companion-revert file)
  (when record
    (gemini-companion-changes-set-undone record hunks undone)))

(defun gemini-companion-undo-delete (file bytes record hunks &optional restored)
  "Delete FILE, which has BYTES, as its CLI has made it, and kill its buffer.
HUNKS of RECORD are undone by that; it may be nil.  If RESTORED is non-nil,
they had deleted FILE, and are restored.  If FILE or its buffer has another
text, signal an error."
  (unless (and (gemini-companion-edit-texts-keepable-p file)
               (equal bytes (gemini-companion-text-bytes file))
               (null (gemini-companion-revert-unsaved file)))
    (user-error "%s has changed since; delete it by hand"
                (gemini-companion-label-file file)))
  (let ((modes (file-modes file))
        (buffer (gemini-companion-names-buffer file)))
    (gemini-companion-undo--delete-file file)
    (when buffer
      (gemini-companion-windows-at-once
        (kill-buffer buffer)))
    (when record
      (gemini-companion-changes-set-undone record hunks (not restored)))
    (gemini-companion-changes-decided 'deleted record hunks
                                      :file file :before bytes :modes modes)))

(defun gemini-companion-undo--delete-file (file)
  "Delete the local FILE, and the empty directories that a CLI has made for it."
  (let* ((name (file-truename file))
         (directory (file-name-directory name))
         (made (seq-mapcat #'gemini-companion-edit-missing-directories
                           (gemini-companion-edits))))
    (gemini-companion-watch-writing file
      (delete-file name 'trash))
    (while (and (member directory made)
                (directory-empty-p directory)
                (not (gemini-companion-undo--used-p directory file))
                (ignore-error file-error
                  (delete-directory directory)
                  t))
      (let ((parent (file-name-directory (directory-file-name directory))))
        ;; Without its directory, a buffer can start no program.
        (when (gemini-companion-undo--below-p directory)
          (setq default-directory parent))
        (setq directory parent)))))

(defun gemini-companion-undo--used-p (directory file)
  "Return non-nil if a buffer has a directory at or below DIRECTORY.
Buffers of reviews, the buffer of FILE and the current one do not count."
  (let ((others (list (current-buffer) (gemini-companion-names-buffer file))))
    (seq-some (lambda (buffer)
                (unless (memq buffer others)
                  (with-current-buffer buffer
                    (and (null gemini-companion-edit-here)
                         (gemini-companion-undo--below-p directory)))))
              (buffer-list))))

(defun gemini-companion-undo--below-p (directory)
  "Return non-nil if the directory of the current buffer is at or below DIRECTORY."
  (and default-directory
       (let ((file-name-handler-alist nil))
         (string-prefix-p directory (expand-file-name default-directory)))))

;;;; Edits

(cl-defstruct (gemini-companion-undo--plan
               (:noinline t)
               (:constructor gemini-companion-undo--make-plan)
               (:copier nil))
  "What undoing HUNK of EDIT, or the whole edit if that is nil, will do.
NOW is the `gemini-companion-undo--text' before the undo.  HUNKS are the hunks
of the record of the file to undo, and CHANGES are the changes of NOW.  TEXT is
the text after the undo, a string, or bytes, or nil if the file is to be
deleted.
CONFLICT is the number of the first line that others have changed, or nil."
  edit hunk now hunks changes text conflict
  (others 0 :documentation "The number of lines of others that belong to HUNKS.")
  (modes nil :documentation "The modes of the file before, if it is to be deleted.")
  (texts nil :documentation "The texts of the buffer before and after, a cons, if only
the buffer was changed."))

(defun gemini-companion-undo-edit (edit &optional hunk done)
  "Undo what EDIT has changed in its file, or only its HUNK.
A new file is deleted, and its buffer is killed.  If the buffer of the
file has unsaved text, change only the buffer.  If that is impossible,
signal an error and change nothing.  Return a message; or nil if the file
is remote, and later call DONE with nil, or with the problem.

Ask if others have changed lines of the edit; after a yes, only the buffer
is changed, and displayed.  With DONE non-nil, do not ask: that is an error."
  (cond ((gemini-companion-edit-unmarked edit)
         (gemini-companion-undo-check edit)
         (prog1 (gemini-companion-undo-unmarked edit t)
           (gemini-companion-changes-decided 'unmarked nil nil :edit edit)
           (when done
             (funcall done nil))))
        ((gemini-companion-edit-deleted-modes edit)
         (gemini-companion-undo--deletion edit done))
        (t
         (gemini-companion-undo--lines-or-bytes edit hunk done))))

(defun gemini-companion-undo-unmarked (edit undone)
  "Undo EDIT, of several files without marks, if UNDONE, or restore it.
Return a message.  If no file can be changed, signal an error."
  (pcase-let* ((unmarked (gemini-companion-edit-unmarked edit))
               (`(,count ,problems)
                (gemini-companion-unmarked-set-undone unmarked undone))
               (problems (if (nthcdr 3 problems)
                             (append (seq-take problems 3)
                                     (list (format "and %d more"
                                                   (- (length problems) 3))))
                           problems)))
    (when (= 0 count)
      (user-error "Nothing changed: %s" (string-join problems "; ")))
    (gemini-companion-file-state-set-reverted edit (if undone 'reverted 'written))
    (message (concat (if undone "Undid " "Restored ")
                     (ngettext "%d file" "%d files" count) "%s")
             count (mapconcat (apply-partially #'concat "; ") problems ""))))

(defun gemini-companion-undo--deletion (edit done)
  "Create the file that EDIT has deleted; return a message.
For DONE, see `gemini-companion-undo-edit'."
  (gemini-companion-undo-check edit)
  (pcase-let ((`(,record . ,hunks) (gemini-companion-changes-of edit))
              (file (gemini-companion-edit-file edit))
              (bytes (gemini-companion-edit-bytes-before edit))
              (modes (gemini-companion-edit-deleted-modes edit)))
    (gemini-companion-undo-create file bytes modes record hunks t)
    (unless record
      (gemini-companion-file-state-set-reverted edit 'reverted))
    (gemini-companion-changes-decided 'created record hunks
                                      :edit edit :file file :after bytes :modes modes))
  (when done
    (funcall done nil))
  (format "%s was created again" (gemini-companion-edit-name edit)))

(defun gemini-companion-undo--lines-or-bytes (edit hunk done)
  "Undo what EDIT has changed in its file, which exists, or only its HUNK.
For DONE and the value, see `gemini-companion-undo-edit'."
  (gemini-companion-undo--notice edit)
  (let* ((buffer (gemini-companion-revert-unsaved (gemini-companion-edit-file edit)))
         ;; The text is read before the checks: the file may be replaced meanwhile.
         (now (gemini-companion-undo--now edit buffer)))
    (gemini-companion-undo-check edit hunk)
    (let ((plan (gemini-companion-undo--planned edit hunk now)))
      (gemini-companion-undo--ask plan (null done))
      (when-let* ((seen (gemini-companion-undo--text-seen now)))
        (gemini-companion-undo--save-lines
         nil (gemini-companion-undo--plan-hunks plan) seen))
      (cond ((gemini-companion-undo--plan-conflict plan)
             (gemini-companion-undo--show-conflict plan))
            (buffer (gemini-companion-undo--in-buffer plan))
            (t (gemini-companion-undo--write
                edit (gemini-companion-undo--text-bytes now)
                (gemini-companion-undo--plan-text plan)
                (apply-partially #'gemini-companion-undo--end plan)
                (or done #'ignore)))))))

(defun gemini-companion-undo--planned (edit hunk now)
  "Return the `gemini-companion-undo--plan' to undo EDIT, or its HUNK, in NOW.
Signal an error if that is impossible."
  (let ((bytes (gemini-companion-undo--text-bytes now))
        (new (gemini-companion-edit-new-p edit)))
    (cond
     ((or new
          (and (or (null hunk)
                   (equal (list hunk) (gemini-companion-edit-hunks edit)))
               bytes
               (gemini-companion-edit-bytes-before edit)
               (gemini-companion-undo--format-kept-p edit bytes)
               (gemini-companion-edit-texts-in-file-p edit)))
      ;; If edits change A to B, B to C and C to B, undoing the first undoes all three.
      (let ((hunks (gemini-companion-changes-not-undone
                    (gemini-companion-changes-since edit))))
        (gemini-companion-undo--make-plan
         :edit edit :hunk hunk :now now :hunks hunks
         :changes (gemini-companion-undo--changes now hunks)
         :modes (and new (file-modes (gemini-companion-edit-file edit)))
         :text (and (not new) (gemini-companion-undo--bytes-before edit now)))))
     ((null (gemini-companion-undo--text-seen now))
      (user-error (if (gemini-companion-edit-texts-utf-8-p edit)
                      "%s has changed since, and its lines are no longer known; \
the text before is in %s"
                    "%s is not text in UTF-8 and has changed since; \
the text before is in %s")
                  (gemini-companion-edit-name edit)
                  (buffer-name (gemini-companion-undo--before edit))))
     (t
      (gemini-companion-undo--planned-lines edit hunk now)))))

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

(defun gemini-companion-undo--changes (now hunks)
  "Return the changes that undo HUNKS in the text NOW of their file."
  (when-let* ((seen (gemini-companion-undo--text-seen now))
              (changes (gemini-companion-record-without
                        (gemini-companion-changes-seen-look seen) hunks)))
    (gemini-companion-changes-set-visited (gemini-companion-undo--text-buffer now)
                                          changes)
    changes))

(defun gemini-companion-undo--format-kept-p (edit bytes)
  "Return non-nil if BYTES have the format in which EDIT has written its file.
Otherwise, others have converted the file, which stays so."
  (null (gemini-companion-format-conversion
         (gemini-companion-edit-format edit)
         (gemini-companion-content-format
          (gemini-companion-edit-texts-with edit bytes)))))

(defun gemini-companion-undo--planned-lines (edit hunk now)
  "Return the plan to undo HUNK of EDIT in the lines of the text NOW.
Line ends, byte order mark and coding system stay."
  (let* ((whole (gemini-companion-undo--whole-p edit hunk))
         (hunks (or (gemini-companion-changes-not-undone
                     (cdr (gemini-companion-changes-of edit (and (not whole) hunk))))
                    (user-error "%s was not changed by this"
                                (gemini-companion-edit-name edit))))
         (changes (gemini-companion-undo--changes now hunks))
         (seen (gemini-companion-undo--text-seen now))
         (conflict (gemini-companion-record-conflict
                    (gemini-companion-changes-seen-look seen) hunks)))
    (gemini-companion-undo--make-plan
     :edit edit :hunk hunk :now now :hunks hunks :changes changes
     :conflict (and conflict (1+ conflict))
     :others (length (gemini-companion-changes-others-in nil hunks seen))
     :text
     (if (and whole (gemini-companion-undo--restored-p edit now hunks))
         (gemini-companion-undo--bytes-before edit now)
       (gemini-companion-lines-undo-in-text
        changes (gemini-companion-undo--text-text now))))))

(defun gemini-companion-undo--restored-p (edit now hunks)
  "Return non-nil if the file NOW without HUNKS is as it was before EDIT."
  (when-let* ((now-bytes (gemini-companion-undo--text-bytes now))
              (bytes (gemini-companion-edit-bytes-before edit))
              (record (car (gemini-companion-changes-of edit))))
    (and (gemini-companion-undo--format-kept-p edit now-bytes)
         (let ((seen (gemini-companion-undo--text-seen now)))
           (equal (gemini-companion-changes-lines-of-content
                   (gemini-companion-changes-content-with record bytes))
                  (gemini-companion-lines-without
                   (gemini-companion-record-without
                    (gemini-companion-changes-seen-look seen) hunks)
                   (gemini-companion-changes-seen-lines seen)))))))

(defun gemini-companion-undo--whole-p (edit hunk)
  "Return non-nil if nothing is left of EDIT without HUNK, or HUNK is nil."
  (or (null hunk)
      (equal (list hunk)
             (seq-difference (ignore-errors (gemini-companion-edit-hunks edit))
                             (gemini-companion-edit-undone edit)))))

(defun gemini-companion-undo--bytes-before (edit now)
  "Return the bytes before EDIT, to replace the text NOW of its file."
  (let ((content (gemini-companion-edit-content edit)))
    (if (gemini-companion-content-reported content)
        (gemini-companion-text-fit (gemini-companion-content-text content)
                                   (gemini-companion-undo--text-text now)
                                   'own)
      (gemini-companion-edit-bytes-before edit))))

(defun gemini-companion-undo--ask (plan may-ask)
  "Signal an error if PLAN is in conflict with others, and the user objects.
So if it undoes lines of others.  Without MAY-ASK, the user is not asked, and
objects."
  (let* ((edit (gemini-companion-undo--plan-edit plan))
         (name (gemini-companion-edit-name edit))
         (line (gemini-companion-undo--plan-conflict plan))
         (others (gemini-companion-undo--plan-others plan)))
    (when (or line (< 0 others))
      (unless (and may-ask
                   (y-or-n-p
                    (if line
                        (format "%s: line %d has changed since; undo anyway? "
                                name line)
                      (format "%s: %s" name
                              (gemini-companion-undo-question others)))))
        (if line
            (user-error "%s cannot be undone: line %d has changed since" name line)
          (user-error "%s has lines of others in this; not undone" name)))
      ;; The text may have changed while the question was asked.
      (unless (equal (gemini-companion-undo--text-text
                      (gemini-companion-undo--plan-now plan))
                     (when-let* ((now (gemini-companion-undo--now
                                       edit (gemini-companion-revert-unsaved
                                             (gemini-companion-edit-file edit)))))
                       (gemini-companion-undo--text-text now)))
        (user-error "%s has changed meanwhile; not undone" name)))))

(defun gemini-companion-undo--show-conflict (plan)
  "Carry PLAN out in the buffer of its file, and show the first conflict.
The buffer is not saved: there the user sees the lines of both."
  (let* ((edit (gemini-companion-undo--plan-edit plan))
         (buffer (gemini-companion-revert-visit (gemini-companion-edit-file edit)))
         (plan (gemini-companion-undo--planned
                edit (gemini-companion-undo--plan-hunk plan)
                (gemini-companion-undo--now edit buffer))))
    (prog1 (gemini-companion-undo--in-buffer plan)
      (gemini-companion-undo--show
       buffer (1- (or (gemini-companion-undo--plan-conflict plan) 1))))))

(defun gemini-companion-undo--in-buffer (plan)
  "Carry PLAN out in its buffer, without saving, and return a message."
  (with-current-buffer (gemini-companion-undo--text-buffer
                        (gemini-companion-undo--plan-now plan))
    (setf (gemini-companion-undo--plan-texts plan)
          (car (gemini-companion-undo--change
                (car (gemini-companion-changes-of
                      (gemini-companion-undo--plan-edit plan)))
                (gemini-companion-undo--plan-hunks plan) t
                (gemini-companion-undo--plan-text plan) nil))))
  (gemini-companion-undo--end plan))

(defun gemini-companion-undo--write (edit old text end done)
  "Make TEXT the text of EDIT's file, now OLD.
OLD is in bytes, and TEXT may be.  If TEXT is nil, delete the file.
Return the value of END, called after that; or if the file is the copy of
a remote one, nil, and call DONE later."
  (when (multibyte-string-p text)
    (setq text (encode-coding-string text
                                     (gemini-companion-edit-texts-coding edit))))
  (let ((file (gemini-companion-edit-file edit)))
    (if (not (gemini-companion-names-of-copy file))
        (progn
          (gemini-companion-undo--write-here file old text end)
          (funcall end))
      (gemini-companion-undo--write-there
       file old text
       (lambda (problem)
         (let ((message (if problem (funcall end problem) (funcall end))))
           (funcall done (and problem message)))))
      nil)))

(defun gemini-companion-undo--write-there (file old text done)
  "Start to write TEXT to the remote file with the copy FILE, whose bytes are OLD.
TEXT is in bytes; if it is nil, delete the file.  DONE is called later with nil
or the problem.  What is decided then belongs to the decision made now."
  (gemini-companion-watch-detect file)
  (gemini-companion-watch-wrote file text)
  (let ((functions gemini-companion-changes-decided-functions))
    (gemini-companion-names-write
     file old text
     (lambda (problem)
       (let ((gemini-companion-changes-decided-functions functions))
         (funcall done problem))))))

(defun gemini-companion-undo--write-here (file old text end)
  "Write TEXT, in bytes, to the local FILE, now OLD; if TEXT is nil, delete FILE.
If that fails, signal the value of END, called with the problem."
  (if (null text)
      (gemini-companion-undo--delete-file file)
    ;; With a buffer older than the file, Emacs would ask whether to write.
    (gemini-companion-revert-now file)
    (condition-case err
        (unwind-protect
            (gemini-companion-watch-writing file
              (gemini-companion-text-rewrite file old text))
          ;; The file has a new time even if the old text was restored.
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
         (hunks (gemini-companion-undo--plan-hunks plan))
         (file (gemini-companion-edit-file edit))
         (now (gemini-companion-undo--plan-now plan))
         (before (gemini-companion-undo--text-bytes now))
         (deleted (null (gemini-companion-undo--plan-text plan)))
         (after (and before (not deleted)
                     ;; The copy of a remote file is not updated yet.
                     (if (gemini-companion-names-of-copy file)
                         (gemini-companion-undo--bytes-after plan)
                       (gemini-companion-edit-texts-bytes edit))))
         (record (car (gemini-companion-changes-of edit))))
    (if (null record)
        ;; Without a record, only the bytes are known.
        (gemini-companion-file-state-set-reverted
         edit (if deleted 'deleted 'reverted)
         (ignore-errors (gemini-companion-edit-hunks edit)))
      ;; A change in the buffer has its entry.
      (when-let* (((null (gemini-companion-undo--text-buffer now)))
                  (buffer (gemini-companion-changes-buffer record)))
        (with-current-buffer buffer
          (gemini-companion-undo--push-entry record hunks t before
                                             (gemini-companion-undo--saved-bytes))
          (undo-boundary)))
      (gemini-companion-changes-set-undone record hunks t))
    (gemini-companion-changes-decided
     (if deleted 'deleted 'undone) record
     hunks
     :edit edit :file file :before before :after after
     :texts (gemini-companion-undo--plan-texts plan)
     :modes (gemini-companion-undo--plan-modes plan))))

(defun gemini-companion-undo--bytes-after (plan)
  "Return the bytes of the file after PLAN, which is not to delete it."
  (let ((text (gemini-companion-undo--plan-text plan)))
    (if (multibyte-string-p text)
        (encode-coding-string
         text (gemini-companion-edit-texts-coding
               (gemini-companion-undo--plan-edit plan)))
      text)))

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

;;;; Life

(cl-defmethod gemini-companion-part-stop :after ((_part (eql 'changes)))
  "Stop writing files after an undo of Emacs."
  (setq gemini-companion-undo--taken-back nil)
  (remove-hook 'post-command-hook #'gemini-companion-undo-write-taken-back))

(provide 'gemini-companion-undo)
;;; gemini-companion-undo.el ends here
