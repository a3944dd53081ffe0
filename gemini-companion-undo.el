;;; gemini-companion-undo.el --- Reverting an edit of a CLI in its file  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; An edit that a CLI has written can be reverted as a whole, or one of its hunks.
;; A file that is as the CLI wrote it gets the bytes of before.  In one that has
;; changed since, the text before is merged; a conflict changes nothing.
;;
;; The changes that are marked in the buffer of a file are another matter: they
;; are what is left of all edits of that file, see `gemini-companion-changes'.

;;; Code:

(require 'gemini-companion-edit)
(require 'gemini-companion-file-state)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-hunk)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-remote)
(require 'gemini-companion-revert)
(require 'gemini-companion-server)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)
(require 'gemini-companion-windows-at-once)

;;;; State

(defvar gemini-companion-undo--buffers (make-hash-table :test 'eq :weakness 'key)
  "Table from edits that were reverted in a buffer to that buffer.")

;;;; Whether an edit can be reverted

(defun gemini-companion-undo-check (edit &optional hunk)
  "Signal an error if reverting EDIT, or its HUNK, is impossible anyway."
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
                (host (assoc (car (gemini-companion-names-of-copy file))
                             gemini-companion-names-remotes))
                ((not (equal "connected" (plist-get (cdr host) :state)))))
      (user-error "%s" (gemini-companion-remote-explain (car host))))))

(defun gemini-companion-undo-unwritten (edit)
  "Return why EDIT has not changed its file, a predicate, or nil."
  (pcase (gemini-companion-edit-status edit)
    ((or 'pending 'shown) "is not written yet; its proposal awaits an answer")
    ('rejected "was not written; its proposal was rejected")
    ('unsaved "was undone already, and is not saved yet")
    ((guard (not (or (memq (gemini-companion-edit-before edit) '(new unknown))
                     (condition-case nil
                         (gemini-companion-edit-hunks edit)
                       (error t)))))
     "was not changed by this edit")
    ((guard (gemini-companion-edit-texts-in-file-p edit)) nil)
    ((or 'unwritten 'dismissed) "was not written")
    ('reverted "was undone already")
    ('deleted "was deleted already")))

;;;; Reverting

(defun gemini-companion-undo-edit (edit &optional hunk done)
  "Undo what EDIT has changed in its file, or only its HUNK.
A new file is deleted, and its buffer is killed.  If the buffer of the
file has unsaved text, change only the buffer.  If that is impossible,
signal an error and change nothing.  Return a message; or nil if FILE
is remote, and later call DONE with nil, or with the problem.  Without
DONE, offer to resolve a conflict."
  ;; The bytes that a CLI could not decode are in no hunk; the last one has them.
  (when (and (gemini-companion-edit-shown-in edit)
             (equal (list hunk) (gemini-companion-undo--hunks edit)))
    (setq hunk nil))
  (let* ((file (gemini-companion-edit-file edit))
         ;; The bytes are read before the checks: the file may be replaced
         ;; meanwhile.
         (old (and (gemini-companion-edit-texts-keepable-p file)
                   (gemini-companion-text-bytes file)))
         (unsaved (gemini-companion-revert-unsaved file))
         (now (if unsaved
                  (gemini-companion-revert-text unsaved)
                (and old (gemini-companion-edit-texts-decode edit old))))
         (new (eq 'new (gemini-companion-edit-before edit)))
         exact)
    (gemini-companion-undo-check edit hunk)
    (setq exact (not (or hunk unsaved
                         (not (gemini-companion-edit-texts-in-file-p edit)))))
    (pcase (cond (new '(nil))
                 ((not exact) (gemini-companion-undo--merged
                               edit (and hunk (list hunk)) now unsaved))
                 ;; A CLI may report plain line ends, and keeps those of the file.
                 ((eq 'unreviewed (gemini-companion-edit-decision edit))
                  (cons nil (gemini-companion-undo--before edit now)))
                 (t (cons nil (gemini-companion-edit-before edit))))
      (`(nil . ,text)
       (gemini-companion-undo--write
        edit unsaved old text
        (apply-partially #'gemini-companion-undo--end edit hunk exact
                         (cond (new 'deleted) (unsaved 'unsaved) (t 'reverted)))
        (or done #'ignore)))
      (`(,line . ,_)
       (gemini-companion-undo--conflict edit hunk line (null done))))))

(defun gemini-companion-undo--write (edit buffer old text end done)
  "Make TEXT that of BUFFER, or if that is nil, of EDIT's file, now OLD.
OLD is in bytes, and TEXT may be.  If TEXT is nil, delete the file.
Return the value of END, called after that; or if the file is the copy of
a remote one, nil, and call DONE later."
  (when (and (multibyte-string-p text) (not buffer))
    (setq text (encode-coding-string text (gemini-companion-edit-coding edit))))
  (pcase (and (not buffer)
              (gemini-companion-names-of-copy (gemini-companion-edit-file edit)))
    (`(,host . ,there)
     (gemini-companion-watch-look (gemini-companion-edit-file edit))
     (gemini-companion-watch-wrote (gemini-companion-edit-file edit) text)
     (unless (gemini-companion-server-ask
              'remote-write
              `( ,host ,there ,(secure-hash 'sha256 old)
                 ,@(and text (list (base64-encode-string text t))))
              (lambda (_) (funcall end) (funcall done nil))
              (lambda (problem) (funcall done (funcall end problem))))
       (user-error "The server does not run")))
    (_
     (let ((file (gemini-companion-edit-file edit)))
       (cond (buffer (with-current-buffer buffer
                       (gemini-companion-revert-replace-text text)))
             ((null text)
              (gemini-companion-watch-writing file
                (delete-file (file-truename file) 'trash)))
             (t
              ;; With a buffer older than the file, Emacs would ask whether to
              ;; write.
              (gemini-companion-revert-now file)
              (condition-case err
                  (unwind-protect
                      (gemini-companion-watch-writing file
                        (gemini-companion-text-rewrite file old text))
                    ;; The file has a new time also where the old text was put back.
                    (gemini-companion-revert-now file))
                (file-error
                 (user-error "%s" (funcall end (error-message-string err))))))))
     (funcall end))))

(defun gemini-companion-undo--end (edit hunk exact state &optional problem)
  "Record that EDIT, or its HUNK, was reverted, unless there is a PROBLEM.
STATE is the file state.  If EXACT is non-nil, later edits are no longer
in the file, either.  Return a message."
  (let* ((name (gemini-companion-edit-name edit))
         (file (gemini-companion-edit-file edit))
         (buffer (gemini-companion-names-buffer file)))
    (if problem
        (message "%s cannot be undone (%s)" name problem)
      (pcase state
        ('unsaved (puthash edit buffer gemini-companion-undo--buffers)
                  (with-current-buffer buffer
                    (when (consp buffer-undo-list) ; begins with a boundary
                      (push (gemini-companion-undo--undo-entry edit)
                            (cdr buffer-undo-list)))))
        ('deleted (when (and buffer (not (buffer-modified-p buffer)))
                    (gemini-companion-windows-at-once
                      (kill-buffer buffer))))
        (_ (gemini-companion-revert file)))
      ;; From A to B, C and B: without the first, none of them is in the file.
      (dolist (other (and exact (gemini-companion-undo--later edit)))
        (gemini-companion-file-state-set-reverted other 'reverted))
      (gemini-companion-undo--set-undone
       edit state (if hunk
                      (seq-sort-by #'gemini-companion-hunk-new #'<
                                   (cons hunk (gemini-companion-edit-undone edit)))
                    (gemini-companion-undo--all-hunks edit)))
      (message (pcase state
                 ('deleted "Deleted %s")
                 ('unsaved "Undid %s; not saved")
                 (_ "Undid %s"))
               (if hunk (concat "a change of " name) name)))))

(defun gemini-companion-undo--set-undone (edit state undone)
  "Record that the hunks UNDONE of EDIT are reverted.
If these are all, its file state is STATE."
  (if (equal undone (gemini-companion-undo--all-hunks edit))
      (gemini-companion-file-state-set-reverted edit state)
    (gemini-companion-file-state-set-reverted edit 'written undone)))

(defun gemini-companion-undo--undo-entry (edit)
  "Return an undo entry with the state of EDIT, to set it again."
  (list 'apply #'gemini-companion-undo--set-again edit (visited-file-modtime)
        (gemini-companion-edit-file-state edit)
        (gemini-companion-edit-undone edit)))

(defun gemini-companion-undo--set-again (edit time state undone)
  "Set STATE and UNDONE of EDIT again, unless its file is newer than TIME."
  (when (equal time (visited-file-modtime))
    (push (gemini-companion-undo--undo-entry edit) buffer-undo-list)
    (gemini-companion-file-state-set-reverted edit state undone)))

(defun gemini-companion-undo--conflict (edit hunk line offer)
  "Signal that reverting EDIT, or its HUNK, conflicts with LINE of the file.
If OFFER is non-nil, offer first to resolve that in the buffer."
  (let ((problem (format "%s cannot be undone: line %d has changed since"
                         (gemini-companion-edit-name edit) line)))
    (unless (and offer (y-or-n-p (concat problem "; merge with smerge? ")))
      (user-error "%s" problem))
    (let ((buffer (gemini-companion-revert-visit (gemini-companion-edit-file edit))))
      (gemini-companion-windows-at-once
        (pop-to-buffer buffer)))
    (gemini-companion-revert-replace-text
     (cdr (gemini-companion-undo--merged
           edit (and hunk (list hunk))
           (gemini-companion-revert-text (current-buffer))
           (current-buffer))))
    (widen)
    (smerge-start-session)
    (goto-char (gemini-companion-hunk-line line))
    (message "Merged with conflicts, not saved; see the menu SMerge")))

(defun gemini-companion-undo--check-file (edit)
  "Check whether what was reverted of EDIT has gone from its file.
If it had gone before a later edit, that one has written it again."
  (when-let* ((now (ignore-error file-error
                     (gemini-companion-edit-texts-decode
                      edit (gemini-companion-text-bytes
                            (gemini-companion-edit-file edit))))))
    (let* ((undone (or (gemini-companion-edit-undone edit)
                       (gemini-companion-undo--all-hunks edit)))
           (back undone))
      (dolist (text (cons now (cl-loop
                               for other in (gemini-companion-undo--later edit t)
                               when (stringp (gemini-companion-edit-before other))
                               collect (gemini-companion-undo--before other now))))
        (setq back (gemini-companion-undo--in-text edit back text)))
      (gemini-companion-undo--set-undone
       edit 'reverted (seq-difference undone back)))))

(defun gemini-companion-undo--in-text (edit hunks text)
  "Return those of HUNKS of EDIT that TEXT has."
  (let ((there (and hunks
                    (seq-intersection hunks
                                      (gemini-companion-undo--left edit text)))))
    ;; Where lines are alike, diff may take others for those that have gone.
    (pcase (and there (gemini-companion-undo--merged edit there text))
      (`(nil . ,merged) (and (not (string= text merged)) there)))))

(defun gemini-companion-undo--later (edit &optional unnoticed)
  "Return the edits by which the file of EDIT was written later.
With UNNOTICED non-nil, include one of which that is not recorded yet."
  (seq-filter (lambda (other)
                (and (equal (gemini-companion-edit-true-name edit)
                            (gemini-companion-edit-true-name other))
                     (or (gemini-companion-edit-written-p other)
                         (and unnoticed
                              (gemini-companion-edit-texts-in-file-p
                               other (gemini-companion-edit-text other))))))
              (cdr (memq edit (gemini-companion-edits)))))

;;;; Texts

(defun gemini-companion-undo--merged (edit hunks now &optional buffer)
  "Undo EDIT, or only HUNKS of it, in the text NOW.
That is the one of BUFFER, which visits the file, or if that is nil, of the
file.  The value is as that of `gemini-companion-text-merged'."
  (unless (executable-find "diff3")
    (user-error "%s has changed since, and the program diff3 is missing"
                (gemini-companion-edit-name edit)))
  (let ((written (gemini-companion-text-fit
                  (if buffer
                      (with-current-buffer buffer
                        (gemini-companion-edit-texts-as-visited
                         edit (gemini-companion-edit-after edit)))
                    (gemini-companion-edit-after edit))
                  now
                  (gemini-companion-edit-client-get edit :writes-own-text)))
        (old (gemini-companion-undo--before edit now buffer)))
    (gemini-companion-text-merged
     now written
     (if hunks (gemini-companion-undo--without hunks old written) old)
     "now" "written" "before")))

(defun gemini-companion-undo--before (edit now &optional buffer)
  "Return the text before EDIT as a file has it whose text is NOW.
With BUFFER non-nil, which visits the file and has the text NOW, return it as
that has it.  For a file, bytes that a CLI could not read stay bytes."
  (let ((text (if buffer
                  (with-current-buffer buffer
                    (gemini-companion-edit-texts-as-visited
                     edit (gemini-companion-edit-texts-decode-before edit)))
                (gemini-companion-edit-texts-decode
                 edit (gemini-companion-edit-before edit))))
        (marked-p (apply-partially #'string-prefix-p "\uFEFF")))
    (concat
     ;; A CLI may have dropped the mark; a buffer has it in its coding system.
     (and (funcall marked-p text)
          (not (gemini-companion-edit-client-get edit :keeps-coding))
          (not buffer)
          (not (seq-some marked-p (list now (gemini-companion-edit-after edit))))
          "\uFEFF")
     (gemini-companion-text-fit text now 'own))))

(defun gemini-companion-undo--without (hunks before written)
  "Return the text WRITTEN with the lines of BEFORE in HUNKS.
The byte order mark of a file is not a part of its first line here: if
both texts begin with it, so does the value."
  (let* ((mark "\uFEFF")
         (marked (and (string-prefix-p mark before)
                      (string-prefix-p mark written)))
         (lines-of (lambda (text)
                     ;; With a line before or after it, the mark would be lost,
                     ;; or be there twice.
                     (split-string (if marked (string-remove-prefix mark text) text)
                                   "^" t)))
         (old-lines (funcall lines-of before))
         (lines (funcall lines-of written)))
    (dolist (hunk (reverse hunks))
      (setq lines (append (seq-take lines (1- (gemini-companion-hunk-new hunk)))
                          (seq-take (nthcdr (1- (gemini-companion-hunk-old hunk))
                                            old-lines)
                                    (gemini-companion-hunk-old-count hunk))
                          (nthcdr (1- (gemini-companion-hunk-new-end hunk))
                                  lines))))
    (concat (and marked mark) (string-join lines))))

(defun gemini-companion-undo--all-hunks (edit)
  "Return the hunks of EDIT, or nil if they are unknown."
  (ignore-errors (gemini-companion-edit-hunks edit)))

(defun gemini-companion-undo--hunks (edit)
  "Return the hunks of EDIT that are not reverted."
  (seq-difference (gemini-companion-undo--all-hunks edit)
                  (gemini-companion-edit-undone edit)))

(defun gemini-companion-undo--left (edit text)
  "Return the hunks of EDIT whose lines TEXT still has, in order."
  (cl-loop
   with changes = (gemini-companion-text-diff
                   (mapcar (lambda (text)
                             (concat (string-remove-suffix
                                      "\n" (gemini-companion-text-normalized text))
                                     "\n"))
                           (list (gemini-companion-edit-after edit) text)))
   ;; Hunks and changes are in the order of lines.
   for hunk in (gemini-companion-edit-hunks edit)
   for new = (gemini-companion-hunk-new hunk)
   for end = (gemini-companion-hunk-new-end hunk)
   do (setq changes (seq-drop-while (pcase-lambda (`(,old ,count . ,_))
                                      (< (+ old count) new))
                                    changes))
   unless (seq-some (pcase-lambda (`(,old ,count . ,_))
                      (or (and (< old end) (< new (+ old count)))
                          ;; Lines were added where lines were only removed.
                          (and (= new end old) (= 0 count))))
                    (seq-take-while (lambda (change) (<= (car change) end))
                                    changes))
   collect hunk))

;;;; What the user has undone

(defun gemini-companion-undo--visited ()
  "Look at edits that were undone in the file of the current buffer.
It was visited or saved, or gets no text: what was undone may be there
again, or was not saved."
  (dolist (edit (gemini-companion-edits))
    (when (and (or (memq (gemini-companion-edit-file-state edit)
                         '(unsaved reverted))
                   (gemini-companion-edit-undone edit))
               ;; The text before a later edit may be unknown.
               (stringp (gemini-companion-edit-before edit))
               (or (gemini-companion-names-visited-here-p
                    (gemini-companion-edit-true-name edit))
                   ;; The buffer was written to another file.
                   (eq (current-buffer) (gethash edit gemini-companion-undo--buffers)))
               (executable-find "diff3"))
      (gemini-companion-undo--check-file edit))))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'undo)))
  "Notice when what was reverted is in a file again."
  '((find-file-hook gemini-companion-undo--visited)
    (after-revert-hook gemini-companion-undo--visited)
    (after-save-hook gemini-companion-undo--visited)
    (after-set-visited-file-name-hook gemini-companion-undo--visited)
    (kill-buffer-hook gemini-companion-undo--visited)))

(provide 'gemini-companion-undo)
;;; gemini-companion-undo.el ends here
