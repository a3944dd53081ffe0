;;; gemini-companion-step.el --- What a decision changes in a file  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A step sets whether hunks of a file are kept or undone, and changes the file from one
;; text to another.  Whatever the user keeps, undoes, deletes and creates, and takes back,
;; in the overview, in a walk or by the undo of Emacs, is done by `gemini-companion-step-do',
;; which returns the step that takes it back.
;;
;; - If the file has the bytes from before the step, it gets those from after the step,
;;   without the hooks of a save, and the buffer follows.
;; - Otherwise, the text of the buffer is changed.  It is saved if it was the text of the
;;   file; unsaved text stays unsaved.
;; - If others have changed the text since, only the lines of the hunks are changed.  If
;;   others have written in their place, nothing is changed.
;;
;; A file can also be deleted or created, with its modes and directories.  A remote file is
;; written later.  In the buffer, an undo of Emacs takes the step back; then the file is
;; written after the command, if it has the bytes from the step.

;;; Code:

(require 'gemini-companion-attribution)
(require 'gemini-companion-changes)
(require 'gemini-companion-content)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-hunk)
(require 'gemini-companion-idle)
(require 'gemini-companion-label)
(require 'gemini-companion-lines)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-record)
(require 'gemini-companion-replace)
(require 'gemini-companion-revert)
(require 'gemini-companion-text)
(require 'gemini-companion-trash)
(require 'gemini-companion-watch)

;;;; Structure

(cl-defstruct (gemini-companion-step
               (:noinline t)
               (:constructor gemini-companion-step-make)
               (:copier gemini-companion-step--copy))
  "A decision about HUNKS of RECORD, and what it changes in the file.
KIND is `undone', `kept' or `postponed', and ON is non-nil if HUNKS are that after
the step.
RECORD is nil for the whole EDIT of a file without a record; for KIND `several',
when EDIT is of several files, and HUNKS are those of them that change; and for
KIND `excluded', when HUNKS are one `gemini-companion-hunk' of EDIT, a proposal,
or nil for some of its lines.

BEFORE and AFTER are the bytes of the file before and after the step, or `none'
without a file; nil means that they are unknown, or that the step does not write
the file.  TEXTS are the texts of its buffer before and after, a cons, or nil; if
lines are excluded, they are those of the proposal.
MODES are those of a file to create, and DIRECTORIES those that are created or
deleted with the file, the innermost first."
  kind on record hunks edit before after texts modes directories
  (unlisted nil :documentation "Non-nil if the undo of Emacs does not take it back.")
  (lost nil :documentation "The files that may be deleted for good, absolute names,
as the user has agreed to that; or t for all."))

(defvar gemini-companion-step-decided-functions nil
  "Functions called when the user has decided something.
The argument is the step that takes it back.")

(defvar gemini-companion-step-turned-function #'ignore
  "Function called when the undo of Emacs has taken back a step, or redone it.
The arguments are the HUNKS of the step, its KIND, and what ON is now.")

(defun gemini-companion-step-file (step)
  "Return the name of the file of STEP; a remote file has a local copy."
  (let ((record (gemini-companion-step-record step)))
    (if record
        (gemini-companion-changes-path record)
      (gemini-companion-edit-file (gemini-companion-step-edit step)))))

(defun gemini-companion-step-remote-p (step)
  "Return non-nil if STEP writes a file on another host, and so ends later."
  (and (eq 'undone (gemini-companion-step-kind step))
       (gemini-companion-names-of-copy (gemini-companion-step-file step))
       t))

(defun gemini-companion-step--the-edit (step)
  "Return the edit of the file of STEP."
  (let ((record (gemini-companion-step-record step)))
    (if record
        (gemini-companion-changes-file-edit record)
      (gemini-companion-step-edit step))))

(defun gemini-companion-step-name (step &optional plain)
  "Return the name of the file of STEP for the user.
For PLAIN, see `gemini-companion-edit-name'."
  (gemini-companion-edit-name (gemini-companion-step--the-edit step) plain))

(defun gemini-companion-step-back (step)
  "Return the step that takes back STEP, if it changes the file as expected."
  (let ((back (gemini-companion-step--copy step))
        (texts (gemini-companion-step-texts step)))
    (setf (gemini-companion-step-on back) (not (gemini-companion-step-on step))
          (gemini-companion-step-before back) (gemini-companion-step-after step)
          (gemini-companion-step-after back) (gemini-companion-step-before step)
          (gemini-companion-step-texts back) (and texts (cons (cdr texts) (car texts)))
          (gemini-companion-step-lost back) nil)
    back))

;;;; Files of a command, all of one edit

(cl-defgeneric gemini-companion-step-several-problem (edit)
  "Return why the files of EDIT, several, cannot be changed now, or nil.
The value is a verb phrase.")

(cl-defgeneric gemini-companion-step-several-deletes (edit files undone)
  "Return what is moved to the trash when FILES of EDIT, several, are UNDONE.
If UNDONE is nil, they are restored.  For the value, see
`gemini-companion-trash-items'.")

(cl-defgeneric gemini-companion-step-several-except (edit files names)
  "Return those of FILES of EDIT, several, that do not have one of NAMES.
These are absolute.")

(cl-defgeneric gemini-companion-step-several (edit step done)
  "Start to do STEP, by which EDIT, of several files, is undone or restored.
The hunks of STEP are some of its files.  For DONE and the value, see
`gemini-companion-step-do'; what is decided then belongs to the decision made
now.")

;;;; What a step deletes

(defun gemini-companion-step-deletes (step)
  "Return what is moved to the trash by STEP, see `gemini-companion-trash-items'."
  (pcase (gemini-companion-step-kind step)
    ('several
     (gemini-companion-step-several-deletes (gemini-companion-step-edit step)
                                            (gemini-companion-step-hunks step)
                                            (gemini-companion-step-on step)))
    ('undone
     (and (eq 'none (gemini-companion-step-after step))
          (list (list (gemini-companion-step-file step)))))))

(defun gemini-companion-step-except (step names)
  "Return a step like STEP, but without the files with NAMES, absolute ones.
Return nil if nothing else is to be done."
  (when-let* (((eq 'several (gemini-companion-step-kind step)))
              (edit (gemini-companion-step-edit step))
              (rest (gemini-companion-step-several-except
                     edit (gemini-companion-step-hunks step) names)))
    (gemini-companion-step-make :kind 'several :on (gemini-companion-step-on step)
                                :edit edit :hunks rest)))

(defun gemini-companion-step-agree (step files)
  "Let STEP delete FILES for good, absolute names, or t for all.
The user has agreed to that, or they are not the only copies."
  (setf (gemini-companion-step-lost step) files))

(defun gemini-companion-step-may-lose-p (lost &rest files)
  "Return non-nil if all of FILES may be deleted for good.
LOST is as in the slot of a step."
  (or (eq t lost)
      (seq-every-p (lambda (file) (member file lost)) files)))

;;;; Whether a step can be done

(defun gemini-companion-step-problem (step)
  "Return why STEP cannot be done now, a sentence about its file, or nil.
Nothing has been asked, and nothing changed.  Lines that others have changed
since are no problem yet."
  (pcase (gemini-companion-step-kind step)
    ('several
     (let ((edit (gemini-companion-step-edit step)))
       (when-let* ((why (gemini-companion-step-several-problem edit)))
         (format "%s %s" (gemini-companion-edit-name edit) why))))
    ('undone
     (let* ((file (gemini-companion-step-file step))
            (exists (gemini-companion-text-attributes file))
            (unsaved (gemini-companion-revert-unsaved file))
            (before (gemini-companion-step-before step))
            (why (cond
                  ((gemini-companion-step-relinked-reason
                    file (gemini-companion-step--true-name step)))
                  ((eq 'none before)
                   (cond (exists "exists again")
                         ((gemini-companion-names-of-copy file)
                          "is on another host; ask its CLI to write it again")))
                  ((null exists) "has been deleted or renamed")
                  ((gemini-companion-text-unreadable-reason file))
                  ((eq 'none (gemini-companion-step-after step))
                   (unless (and (null unsaved)
                                (equal before (gemini-companion-step--bytes file)))
                     "has changed since; delete it by hand"))
                  (unsaved (gemini-companion-revert-blocked-reason unsaved))
                  (t (gemini-companion-step-unwritable-reason
                      (gemini-companion-edit-true-name
                       (gemini-companion-step--the-edit step)))))))
       (if why
           (format "%s %s" (gemini-companion-step-name step) why)
         (and (null unsaved)
              (gemini-companion-names-unwritable-reason file)))))))

(defun gemini-companion-step--true-name (step)
  "Return the true name of the file of STEP when that was written."
  (let ((record (gemini-companion-step-record step)))
    (if record
        (gemini-companion-changes-file-name record)
      (gemini-companion-edit-true-name (gemini-companion-step-edit step)))))

(defun gemini-companion-step-relinked-reason (file true-name)
  "Return that FILE is another one than that with TRUE-NAME by now, or nil.
A command may have replaced a symbolic link by a directory, whose files are
undone before the link is back.  The value is a verb phrase."
  (unless (equal true-name (gemini-companion-text-true-name file))
    "is reached by other symbolic links now; change it by hand"))

(defun gemini-companion-step-unwritable-reason (true-name)
  "Return why the file with TRUE-NAME cannot be written now, or nil.
The value is a verb phrase about the file."
  (let ((edits (gemini-companion-edits-of-file true-name)))
    (mapc #'gemini-companion-attribution-detect-write edits)
    (cond ((seq-some #'gemini-companion-edit-open-p edits)
           "has a proposal that awaits an answer; answer that first")
          ((seq-some #'gemini-companion-attribution-awaited-p edits)
           "is still to be written by its CLI; wait for that")
          ((not (or (gemini-companion-names-of-copy true-name)
                    (null (gemini-companion-text-attributes true-name))
                    (let ((file-name-handler-alist nil))
                      (file-writable-p true-name))))
           "is read-only"))))

(defun gemini-companion-step--bytes (file)
  "Return the bytes of FILE, or nil if they cannot be kept."
  (and (gemini-companion-edit-texts-keepable-p file)
       (ignore-error file-error
         (gemini-companion-text-bytes file))))

;;;; Steps from changes

(defun gemini-companion-step-of-changes (record changes hunks on &optional in-file)
  "Return the step to make CHANGES in the file of RECORD.
CHANGES are `gemini-companion-hunk's in its present lines, in order, and
the file has the old lines of them after the step.  Then HUNKS are undone if ON
is non-nil, or restored.  Line ends, byte order mark and coding system stay.

If no buffer visits the file, or IN-FILE is non-nil, the lines are those of the
file; it is visited only if Emacs needs a buffer to read or write it, or to ask."
  (let* ((make (apply-partially #'gemini-companion-step-make
                                :kind 'undone :on on :record record :hunks hunks))
         (edit (gemini-companion-changes-file-edit record))
         (buffer (gemini-companion-changes-buffer record))
         (deleted (gemini-companion-changes-deleted-p record))
         (bytes (and (not deleted)
                     (or in-file (null buffer))
                     (gemini-companion-step--bytes-with record changes)))
         (why (gemini-companion-changes-unmarked-reason record)))
    (cond
     (deleted
      (funcall make
               :before 'none
               :after (gemini-companion-step--bytes-of-lines
                       record (gemini-companion-lines-without changes []))
               :modes (gemini-companion-edit-deleted-modes edit)))
     (bytes (funcall make :before (car bytes) :after (cdr bytes)))
     (why (user-error "%s %s; undo it in the file by hand"
                      (gemini-companion-edit-name edit) why))
     (t
      (let ((text (gemini-companion-text-of-buffer
                   (or buffer (gemini-companion-revert-visit
                               (gemini-companion-changes-path record))))))
        (funcall make :texts (cons text (gemini-companion-lines-undo-in-text
                                         changes text))))))))

(defun gemini-companion-step--bytes-of-lines (record lines)
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

(defun gemini-companion-step--bytes-with (record changes)
  "Return the bytes of the file of RECORD, and those with CHANGES, a cons.
Return nil if a buffer is needed."
  (when-let* ((file (gemini-companion-changes-path record))
              (seen (gemini-companion-changes-seen record nil))
              ((or (gemini-companion-names-of-copy file)
                   (gemini-companion-step--writable-p file)))
              ((null (find-file-name-handler file 'insert-file-contents)))
              ((not (stringp (file-locked-p file))))
              (old (gemini-companion-changes-content-with
                    record (gemini-companion-text-bytes file)))
              (text (gemini-companion-content-text old))
              ((equal old (gemini-companion-content-encoded old text)))
              ((equal (gemini-companion-changes-seen-lines seen)
                      (gemini-companion-changes-lines-of-content old)))
              (new (gemini-companion-content-encoded
                    old (gemini-companion-lines-undo-in-text changes text)))
              ((gemini-companion-content-known-p new)))
    (cons (gemini-companion-content-bytes old) (gemini-companion-content-bytes new))))

;;;; Doing a step

(defun gemini-companion-step-renamed (step)
  "Return the edit that has deleted a file of which STEP deletes the only copy.
Its command has renamed the file, or has copied it before, so that it may be the
user's.  Return nil if there is none, or its file is there again."
  (let ((bytes (gemini-companion-step-before step)))
    (when (and (eq 'undone (gemini-companion-step-kind step))
               (gemini-companion-step-on step)
               (eq 'none (gemini-companion-step-after step))
               (stringp bytes)
               (not (equal "" bytes)))
      (let ((makers (seq-filter
                     #'gemini-companion-edit-new-p
                     (gemini-companion-edits-of-file
                      (gemini-companion-edit-true-name
                       (gemini-companion-step--the-edit step))))))
        (seq-find (lambda (edit)
                    (and (gemini-companion-edit-deleted-modes edit)
                         (equal bytes (gemini-companion-edit-bytes-before edit))
                         (seq-some (apply-partially #'gemini-companion-step-same-command-p
                                                    edit)
                                   makers)
                         (not (equal bytes (gemini-companion-step--bytes
                                            (gemini-companion-edit-file edit))))))
                  (gemini-companion-edits))))))

(defun gemini-companion-step-same-command-p (edit other)
  "Return non-nil if EDIT and OTHER are of the same command in the same turn."
  (and (eq (gemini-companion-edit-session edit) (gemini-companion-edit-session other))
       (eq (gemini-companion-edit-turn edit) (gemini-companion-edit-turn other))
       (equal (gemini-companion-edit-command edit) (gemini-companion-edit-command other))))

(defun gemini-companion-step-decide (step &optional done)
  "Do STEP, which the user has decided on, and report that.
DONE is called with nil or the reason why the file cannot be written.  For this
and the value, see `gemini-companion-step-do'."
  (gemini-companion-step-do
   step (lambda (problem back)
          (when back
            (run-hook-with-args 'gemini-companion-step-decided-functions back))
          (when done
            (funcall done problem)))))

(defun gemini-companion-step-do (step &optional done)
  "Do STEP, and return the step that takes it back.
Return nil if that changes nothing.  If STEP is impossible, signal an error and
change nothing.  Otherwise DONE is called with nil, and the value, once the file
is written; a remote file is written later, and if that fails, DONE is called
with the reason, a sentence."
  (when-let* ((problem (gemini-companion-step-problem step)))
    (user-error "%s" problem))
  (when-let* ((edit (gemini-companion-step-renamed step)))
    (user-error "%s was renamed from %s, which must be created again first"
                (gemini-companion-step-name step) (gemini-companion-edit-name edit)))
  (let ((done (or done #'ignore)))
    (gemini-companion-changes-at-once
      (or (pcase (gemini-companion-step-kind step)
            ('kept (gemini-companion-step--keep step done))
            ('postponed (gemini-companion-step--postpone step done))
            ('excluded (gemini-companion-step--exclude step done))
            ('several (gemini-companion-step-several (gemini-companion-step-edit step)
                                                     step done))
            (_ (gemini-companion-step--change step done)))
          ;; Nothing was to be changed.
          (ignore (funcall done nil nil))))))

(defun gemini-companion-step--change (step done)
  "Change the file of STEP.
For DONE and the value, see `gemini-companion-step-do'."
  (let* ((file (gemini-companion-step-file step))
         (buffer (gemini-companion-names-buffer file))
         (before (gemini-companion-step-before step))
         (texts (gemini-companion-step-texts step)))
    ;; With a buffer older than the file, Emacs would ask whether to edit it.
    (when (and buffer (null (gemini-companion-revert-unsaved file)))
      (gemini-companion-revert-now file))
    (cond
     ((eq 'none before)
      (gemini-companion-step--create step)
      (gemini-companion-step--end step (gemini-companion-step-back step) done))
     ((and before
           (null (gemini-companion-revert-unsaved file))
           (equal before (gemini-companion-step--bytes file)))
      (gemini-companion-step--write step done))
     ((and texts buffer (equal (car texts) (gemini-companion-text-of-buffer buffer)))
      (gemini-companion-step--end step (gemini-companion-step--replace step buffer) done))
     ((null (gemini-companion-step-record step))
      (user-error "%s has changed since" (gemini-companion-step-name step)))
     (t (gemini-companion-step--change-lines step done)))))

(defun gemini-companion-step--end (step back done)
  "Record what STEP has decided, and return BACK, which takes it back.
For DONE, see `gemini-companion-step-do'."
  (let ((record (gemini-companion-step-record step))
        (on (gemini-companion-step-on step))
        (edit (gemini-companion-step-edit step)))
    (if record
        (gemini-companion-changes-set-undone
         record (gemini-companion-step-hunks step) on)
      (gemini-companion-attribution-set-undone edit on)))
  (funcall done nil back)
  back)

;;;; Bytes

(defun gemini-companion-step--write (step done)
  "Write the bytes of STEP to its file, or delete it; the buffer follows.
The file has the bytes from before STEP.  For DONE and the value, see
`gemini-companion-step-do'."
  (let* ((file (gemini-companion-step-file step))
         (before (gemini-companion-step-before step))
         (after (gemini-companion-step-after step))
         (deletes (eq 'none after))
         (back (gemini-companion-step-back step))
         (record (gemini-companion-step-record step))
         (end (lambda ()
                (if deletes
                    (gemini-companion-step-kill-buffer file)
                  (gemini-companion-revert-now file)
                  (when-let* ((buffer (and record
                                           (gemini-companion-changes-buffer record))))
                    (with-current-buffer buffer
                      (gemini-companion-step--push-entry step before after)
                      (undo-boundary))))
                (gemini-companion-step--end step back done))))
    (setf (gemini-companion-step-texts back) nil)
    (when deletes
      (setf (gemini-companion-step-modes back) (file-modes file)))
    (cond ((gemini-companion-names-of-copy file)
           (gemini-companion-step--write-there file before (and (not deletes) after)
                                               end done))
          (deletes
           (setf (gemini-companion-step-directories back)
                 (gemini-companion-step--delete
                  file (gemini-companion-step-directories step)
                  (gemini-companion-step-may-lose-p
                   (gemini-companion-step-lost step) file)))
           (funcall end))
          (t
           (gemini-companion-step--write-here step file before after)
           (funcall end)))
    back))

(defun gemini-companion-step-kill-buffer (file)
  "Kill the buffer of FILE, which was deleted, unless that has unsaved text.
If that fails, as by a hook, or the user quits a question of one, the buffer
stays: the caller has to record that FILE is gone."
  (when-let* ((buffer (gemini-companion-names-buffer file))
              ((not (buffer-modified-p buffer))))
    (gemini-companion-log-guarded "Killing the buffer of a deleted file"
      (condition-case nil
          (kill-buffer buffer)
        (quit nil)))))

(defun gemini-companion-step--write-here (step file before after)
  "Write AFTER to the local FILE of STEP, which has BEFORE; both are bytes."
  (condition-case err
      (unwind-protect
          (gemini-companion-watch-writing file
            (gemini-companion-text-rewrite file before after))
        ;; The file has a new time even if the old text was restored.
        (gemini-companion-revert-now file))
    (file-error
     (user-error "%s cannot be written (%s)" (gemini-companion-step-name step)
                 (gemini-companion-text-problem err)))))

(defun gemini-companion-step--write-there (file before after end done)
  "Start to write AFTER to the remote file with the copy FILE, which has BEFORE.
If AFTER is nil, delete it.  END is called once it is written, or else DONE with
nil and the reason.  What is decided then belongs to the decision made now."
  (gemini-companion-watch-detect file)
  (gemini-companion-watch-wrote file after)
  (let ((functions gemini-companion-step-decided-functions))
    (gemini-companion-names-write
     file before after
     (lambda (problem)
       (let ((gemini-companion-step-decided-functions functions))
         (if problem
             (funcall done problem nil)
           (gemini-companion-changes-at-once
             (funcall end))))))))

;;;; Buffers

(defun gemini-companion-step--writable-p (file)
  "Return non-nil if FILE is not remote, and its bytes can be written."
  (and (null (gemini-companion-names-of-copy file))
       (gemini-companion-edit-texts-keepable-p file)
       (let ((file-name-handler-alist nil))
         (file-writable-p file))))

(defun gemini-companion-step--file-here ()
  "Return the file of the current buffer, if a step may write it, or nil.
Return nil for a remote file."
  (let ((file (gemini-companion-names-file)))
    (and file
         (gemini-companion-step--writable-p file)
         file)))

(defun gemini-companion-step--same-bytes ()
  "Return the bytes of the file of the current buffer, if these are its text.
Return nil also if the file is not to be written."
  (when-let* ((file (gemini-companion-step--file-here))
              (bytes (ignore-error file-error
                       (gemini-companion-text-bytes file)))
              ((equal bytes (gemini-companion-revert-encoded))))
    bytes))

(defun gemini-companion-step--save (old)
  "Write the current buffer to its file, whose bytes are OLD, without hooks.
Return the bytes that were written, or nil if that is impossible; the buffer has
unsaved text then."
  (when-let* ((file (gemini-companion-step--file-here))
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

(defun gemini-companion-step--replace (step buffer)
  "Give BUFFER the text after STEP, and return the step that takes that back.
If BUFFER has no unsaved text, write the file."
  (with-current-buffer buffer
    (gemini-companion-revert-lock)
    (undo-boundary)
    (let* ((group (prepare-change-group))
           (old (and (not (buffer-modified-p)) (gemini-companion-step--same-bytes)))
           (text (gemini-companion-text-of-buffer buffer))
           (new (progn
                  (activate-change-group group)
                  (gemini-companion-revert-replace-text
                   (cdr (gemini-companion-step-texts step)))
                  (and old (gemini-companion-step--save old))))
           (back (gemini-companion-step-back step)))
      ;; The text may be that of the file again.
      (when (and (buffer-modified-p)
                 (verify-visited-file-modtime)
                 (gemini-companion-step--same-bytes))
        (set-buffer-modified-p nil))
      (gemini-companion-step--push-entry step old new)
      (accept-change-group group)
      ;; A single undo takes back the text and the decision.
      (undo-amalgamate-change-group group)
      (undo-boundary)
      (setf (gemini-companion-step-texts back)
            (cons (gemini-companion-text-of-buffer buffer) text)
            (gemini-companion-step-before back) new
            (gemini-companion-step-after back) (and new old))
      back)))

;;;; Lines

(defun gemini-companion-step--change-lines (step done)
  "Do STEP in the lines of its hunks: others have changed the file since.
Signal an error if they have written in the place of these lines.  For DONE and
the value, see `gemini-companion-step-do'."
  (let* ((record (gemini-companion-step-record step))
         (hunks (gemini-companion-step-hunks step))
         (on (gemini-companion-step-on step))
         (buffer (gemini-companion-changes-buffer record))
         (seen (or (gemini-companion-changes-seen record buffer)
                   (user-error "%s cannot be read" (gemini-companion-step-name step))))
         (look (gemini-companion-changes-seen-look seen))
         (changes (if on
                      (gemini-companion-record-without look hunks)
                    (gemini-companion-record-with look hunks)))
         (conflict (gemini-companion-record-conflict look hunks (not on)))
         (decided-p (lambda (hunk)
                      (eq (null on) (null (gemini-companion-record-hunk-undone hunk))))))
    (cond
     ((and (gemini-companion-names-of-copy (gemini-companion-changes-path record))
           (null buffer))
      (user-error "%s is on another host and has changed since; visit it first"
                  (gemini-companion-step-name step)))
     ((and (null changes) (seq-every-p decided-p hunks))
      nil)
     (conflict
      (user-error "%s: line %d has changed since; %s"
                  (gemini-companion-step-name step) (1+ conflict)
                  (if on "not undone" "not restored")))
     (t
      (let ((others (and on (gemini-companion-changes-others-in record hunks seen))))
        ;; Before this step, the file has what it has now: its lines are not compared.
        (prog1 (gemini-companion-step--change
                (gemini-companion-step-of-changes record changes hunks on) done)
          (gemini-companion-step-save-lines others)))))))

(defun gemini-companion-step-save-lines (lines)
  "Add LINES of others, a list of strings that were undone, to the kill ring."
  (when lines
    (let ((interprogram-cut-function #'ignore))
      (kill-new (string-join lines)))))

;;;; Files that are deleted and created

(defun gemini-companion-step--create (step)
  "Create the file of STEP with its directories."
  (let* ((file (gemini-companion-step-file step))
         (name (file-truename file)))
    (setf (gemini-companion-step-directories step)
          (seq-union (gemini-companion-edit-directories-to-make name)
                     (gemini-companion-step-directories step)))
    (condition-case problem
        (gemini-companion-watch-writing file
          (make-directory (file-name-directory name) t)
          (gemini-companion-text-create name (gemini-companion-step-after step)
                                        (gemini-companion-step-modes step)))
      (file-error
       (user-error "%s cannot be created (%s)" (gemini-companion-step-name step)
                   (gemini-companion-text-problem problem))))
    (gemini-companion-revert file)))

(defun gemini-companion-step--delete (file directories agreed)
  "Move the local FILE to the trash, and delete empty ones of DIRECTORIES above it.
For AGREED, see `gemini-companion-trash-delete'.  Return the directories that
were deleted."
  (let* ((name (file-truename file))
         (directory (file-name-directory name))
         (deleted nil))
    (gemini-companion-trash-delete name agreed)
    (while (and (member directory directories)
                (directory-empty-p directory)
                (not (gemini-companion-step--used-p directory file))
                (ignore-error file-error
                  (delete-directory directory)
                  t))
      (push directory deleted)
      (let ((parent (file-name-directory (directory-file-name directory))))
        ;; Without its directory, a buffer can start no program.
        (when (gemini-companion-step--below-p directory)
          (setq default-directory parent))
        (setq directory parent)))
    (nreverse deleted)))

(defun gemini-companion-step--used-p (directory file)
  "Return non-nil if a buffer has a directory at or below DIRECTORY.
Buffers of reviews, the buffer of FILE and the current one do not count."
  (let ((others (list (current-buffer) (gemini-companion-names-buffer file))))
    (seq-some (lambda (buffer)
                (unless (memq buffer others)
                  (with-current-buffer buffer
                    (and (null gemini-companion-edit-here)
                         (gemini-companion-step--below-p directory)))))
              (buffer-list))))

(defun gemini-companion-step--below-p (directory)
  "Return non-nil if the directory of the current buffer is at or below DIRECTORY."
  (and default-directory
       (let ((file-name-handler-alist nil))
         (string-prefix-p directory (expand-file-name default-directory)))))

;;;; Keeping, and excluding

(defun gemini-companion-step-unkeep-change (record decided)
  "Make DECIDED, which is kept, a change of RECORD that is left again.
Return nil if it was accepted before it was written: then it stays kept."
  (gemini-companion-step-decide
   (gemini-companion-step-make
    :kind 'kept :on nil :record record
    :hunks (gemini-companion-record-change-hunks decided))))

(defun gemini-companion-step--keep (step done)
  "Set whether the hunks of STEP are kept; return the step that takes it back.
Return nil if they already are.  Hunks that were accepted stay.  For DONE, see
`gemini-companion-step-do'."
  (let* ((record (gemini-companion-step-record step))
         (on (and (gemini-companion-step-on step) t))
         (unlisted (gemini-companion-step-unlisted step))
         (hunks (seq-remove
                 (lambda (hunk)
                   (let ((reviewed (gemini-companion-record-hunk-reviewed hunk)))
                     (or (eq t reviewed) (eq on (and reviewed t)))))
                 (gemini-companion-step-hunks step))))
    (when hunks
      (let ((step (gemini-companion-step-make :kind 'kept :on on :record record
                                              :hunks hunks :unlisted unlisted)))
        (gemini-companion-changes-flag-kept record hunks on)
        (when-let* (((null unlisted))
                    (buffer (gemini-companion-changes-buffer record)))
          (with-current-buffer buffer
            (undo-boundary)
            (gemini-companion-step--push-entry step)
            (undo-boundary)))
        (gemini-companion-changes-update record)
        (let ((back (gemini-companion-step-back step)))
          (funcall done nil back)
          back)))))

(defun gemini-companion-step--postpone (step done)
  "Set whether the hunks of STEP are postponed; return the step that takes it back.
For DONE, see `gemini-companion-step-do'."
  (let ((record (gemini-companion-step-record step))
        (back (gemini-companion-step-back step)))
    (gemini-companion-changes-flag-postponed
     record (gemini-companion-step-hunks step) (gemini-companion-step-on step))
    (gemini-companion-changes-update record)
    (funcall done nil back)
    back))

(defun gemini-companion-step--exclude (step done)
  "Exclude the hunk or the lines of STEP from its proposal, or restore them.
For DONE and the value, see `gemini-companion-step-do'."
  (let* ((edit (gemini-companion-step-edit step))
         (proposal (gemini-companion-edit-proposal-buffer edit))
         (hunk (car (gemini-companion-step-hunks step)))
         (texts (gemini-companion-step-texts step))
         (name (gemini-companion-edit-name edit)))
    (unless (gemini-companion-edit-open-p edit)
      (user-error "The answer to %s was sent and cannot be taken back" name))
    (unless (if hunk
                (member hunk (gemini-companion-edit-hunks edit))
              (equal (car texts) (gemini-companion-text-of-buffer proposal)))
      (user-error "The proposal of %s has changed since" name))
    (unless (and hunk
                 (eq (null (gemini-companion-step-on step))
                     (null (member hunk (gemini-companion-hunk-excluded proposal)))))
      (if hunk
          (gemini-companion-edit-hunks-toggle edit hunk)
        (with-current-buffer proposal
          (gemini-companion-replace-text (cdr texts))))
      (let ((back (gemini-companion-step-back step)))
        (funcall done nil back)
        back))))

;;;; The undo of Emacs

(defvar gemini-companion-step--turned nil
  "What Emacs has undone or redone since the last command, the last step first.
An element is a list of a buffer, and the hashes of the bytes that its file must
have before the step and gets by the step.")

(defun gemini-companion-step--push-entry (step &optional before after)
  "Record STEP, which was done, in the undo list of the current buffer.
An undo of Emacs then takes the decision back, and a redo makes it again.
BEFORE and AFTER are the bytes of the file before and after STEP, or nil if
it has not written the file."
  (when (listp buffer-undo-list)
    (when (eq 'undone (gemini-companion-step-kind step))
      ;; The entry must follow the change of the text without a boundary between them.
      (while (and buffer-undo-list (null (car buffer-undo-list)))
        (pop buffer-undo-list)))
    (let ((written (and before after)))
      (push (list 'apply #'gemini-companion-step-turn
                  (gemini-companion-changes-undo-name
                   (gemini-companion-step-record step)
                   (gemini-companion-step-hunks step)
                   (gemini-companion-step-kind step))
                  (not (gemini-companion-step-on step))
                  (and written (secure-hash 'sha1 after))
                  (and written (secure-hash 'sha1 before)))
            buffer-undo-list))))

(defun gemini-companion-step-turn (name on from to)
  "Record that Emacs has taken back a step, or has redone it.
NAME names hunks of a record and a kind, see `gemini-companion-changes-of-undo':
the hunks are of that kind if ON is non-nil.  FROM and TO are hashes of the
bytes that the file must have before that and gets by it, or nil.  The undo of
Emacs calls this: the file is written after the command.

If NAME is unknown, as the undo list was read from a file, only report that."
  (pcase (gemini-companion-changes-of-undo name)
    ('nil
     ;; After the message of the command.
     (run-at-time 0 nil #'gemini-companion-idle-announce
                  "Keep or undo here is no longer known; only text was undone"))
    (`(,record ,hunks ,kind)
     ;; The text comes next.  If some of it was hidden, Emacs would stop there.
     (widen)
     (push (list 'apply #'gemini-companion-step-turn name (not on) to from)
           buffer-undo-list)
     (if (eq kind 'kept)
         (progn (gemini-companion-changes-flag-kept record hunks on)
                (gemini-companion-changes-update record))
       (gemini-companion-changes-flag-undone record hunks on))
     (funcall gemini-companion-step-turned-function hunks kind on)
     (when from
       (push (list (current-buffer) from to) gemini-companion-step--turned)
       (add-hook 'post-command-hook #'gemini-companion-step--write-turned)))))

(defun gemini-companion-step--write-turned ()
  "Write the files of the buffers in which Emacs has undone or redone a step.
This runs after a command.  Write a file only if the buffer has the text from
before the step, and the file still has the bytes that the step has written."
  (remove-hook 'post-command-hook #'gemini-companion-step--write-turned)
  (let ((all (nreverse gemini-companion-step--turned)))
    (setq gemini-companion-step--turned nil)
    (pcase-dolist (`(,buffer . ,steps) (seq-group-by #'car all))
      (when (buffer-live-p buffer)
        (gemini-companion-log-guarded "Writing an undo"
          (with-current-buffer buffer
            (gemini-companion-step--write-turned-here (nth 1 (car steps))
                                                      (nth 2 (car (last steps))))))))))

(defun gemini-companion-step--write-turned-here (from to)
  "Write the current buffer to its file, if these have the hashes TO and FROM."
  (when-let* ((file (gemini-companion-step--file-here))
              (old (ignore-error file-error
                     (gemini-companion-text-bytes file)))
              (bytes (gemini-companion-revert-encoded)))
    (when (equal to (secure-hash 'sha1 bytes))
      (unless (and (equal from (secure-hash 'sha1 old))
                   (gemini-companion-step--save old))
        (message "%s is not saved; it has changed since"
                 (gemini-companion-label-file file)))
      (gemini-companion-changes-update-buffer))))

;;;; Life

(cl-defmethod gemini-companion-part-stop :after ((_part (eql 'changes)))
  "Stop writing files after an undo of Emacs."
  (setq gemini-companion-step--turned nil)
  (remove-hook 'post-command-hook #'gemini-companion-step--write-turned))

(provide 'gemini-companion-step)
;;; gemini-companion-step.el ends here
