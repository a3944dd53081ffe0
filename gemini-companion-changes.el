;;; gemini-companion-changes.el --- Marking and reverting what a CLI has written  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What a CLI has written can be reverted: a whole edit, or one of its hunks.  A
;; file that is as the CLI wrote it gets the bytes of before.  In one that has
;; changed since, the text before is merged; a conflict changes nothing.
;;
;; In the buffer of the file, each hunk has a mark, an overlay, as long as its
;; lines are as the CLI wrote them, until the user keeps it or the next turn of
;; that CLI changes the file.

;;; Code:

(require 'gemini-companion-commands)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-file-state)
(require 'gemini-companion-hunk)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-remote)
(require 'gemini-companion-revert)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)
(require 'gemini-companion-windows)

(declare-function org-show-context "org")

;;;; Customization

(defface gemini-companion-mark
  '((t :inherit success))
  "Face of the marks at the right of what a CLI has written."
  :group 'gemini-companion-reviews)

;;;; Whether an edit can be reverted

(defun gemini-companion-changes-check (edit &optional hunk)
  "Signal an error if reverting EDIT, or its HUNK, is impossible anyway."
  (let* ((file (gemini-companion-edit-file edit))
         (before (gemini-companion-edit-before edit))
         (unsaved (gemini-companion-revert-unsaved file)))
    (when-let*
        ((why (cond
               ((gemini-companion-changes-unwritten edit))
               ((member hunk (gemini-companion-edit-undone edit))
                "has this hunk undone already")
               ((eq 'unknown before) "had a previous text that was not kept")
               ((gemini-companion-text-unreadable-reason file))
               ((null (gemini-companion-text-attributes file))
                "was deleted or renamed since; nothing to revert")
               ;; Qwen Code writes all files of an answer at its end.
               ((gemini-companion-file-state-awaited-p edit) "is not written yet")
               ((not (equal (gemini-companion-edit-true-name edit)
                            (gemini-companion-text-true-name file)))
                "has other symbolic links since; revert this edit by hand")
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

(defun gemini-companion-changes-unwritten (edit)
  "Return why EDIT has not changed its file, a predicate, or nil."
  (pcase (gemini-companion-edit-status edit)
    ((or 'pending 'shown) "is not written yet; its proposal awaits an answer")
    ('rejected "was not written; its proposal was rejected")
    ('unsaved "was reverted already, and is not saved yet")
    ((guard (not (or (memq (gemini-companion-edit-before edit) '(new unknown))
                     (condition-case nil
                         (gemini-companion-edit-hunks edit)
                       (error t)))))
     "was not changed by this edit")
    ((guard (gemini-companion-edit-texts-in-file-p edit)) nil)
    ((or 'unwritten 'dismissed) "was not written")
    ((and (or 'reverted 'deleted) state) (format "was %s already" state))))

;;;; Reverting

(defun gemini-companion-changes-revert (edit &optional hunk done)
  "Take back what EDIT has changed in its file, or only its HUNK.
A new file is deleted, and its buffer is killed.  If the buffer of the
file has unsaved text, change only the buffer.  If that is impossible,
signal an error and change nothing.  Return a message; or nil if FILE
is remote, and later call DONE with nil, or with the problem.  Without
DONE, offer to resolve a conflict."
  ;; The bytes that a CLI could not decode are in no hunk; the last one has them.
  (when (and (gemini-companion-edit-shown-in edit)
             (equal (list hunk) (gemini-companion-changes--hunks edit)))
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
    (gemini-companion-changes-check edit hunk)
    (setq exact (not (or hunk unsaved
                         (not (gemini-companion-edit-texts-in-file-p edit)))))
    (pcase (cond (new '(nil))
                 ((not exact) (gemini-companion-changes--merged
                               edit (and hunk (list hunk)) now unsaved))
                 ;; A CLI may report plain line ends, and keeps those of the file.
                 ((eq 'unreviewed (gemini-companion-edit-decision edit))
                  (cons nil (gemini-companion-changes--before edit now)))
                 (t (cons nil (gemini-companion-edit-before edit))))
      (`(nil . ,text)
       (gemini-companion-changes--write
        edit unsaved old text
        (apply-partially #'gemini-companion-changes--end edit hunk exact
                         (cond (new 'deleted) (unsaved 'unsaved) (t 'reverted)))
        (or done #'ignore)))
      (`(,line . ,_)
       (gemini-companion-changes--conflict edit hunk line (null done))))))

(defun gemini-companion-changes--write (edit buffer old text end done)
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

(defun gemini-companion-changes--end (edit hunk exact state &optional problem)
  "Record that EDIT, or its HUNK, was reverted, unless there is a PROBLEM.
STATE is the file state.  If EXACT is non-nil, later edits are no longer
in the file, either.  Return a message."
  (let* ((name (gemini-companion-edit-name edit))
         (file (gemini-companion-edit-file edit))
         (buffer (gemini-companion-names-buffer file)))
    (if problem
        (message "%s cannot be reverted (%s)" name problem)
      (pcase state
        ('unsaved (with-current-buffer buffer
                    (when (consp buffer-undo-list) ; begins with a boundary
                      (push (gemini-companion-changes--undo-entry edit)
                            (cdr buffer-undo-list)))))
        ('deleted (when (and buffer (not (buffer-modified-p buffer)))
                    (gemini-companion-windows-at-once
                      (kill-buffer buffer))))
        (_ (gemini-companion-revert file)))
      ;; From A to B, C and B: without the first, none of them is in the file.
      (dolist (other (and exact (gemini-companion-changes--later edit)))
        (gemini-companion-file-state-set-reverted other 'reverted))
      (gemini-companion-changes--set-undone
       edit state (if hunk
                      (seq-sort-by #'gemini-companion-hunk-new #'<
                                   (cons hunk (gemini-companion-edit-undone edit)))
                    (gemini-companion-changes--all-hunks edit)))
      (message (pcase state
                 ('deleted "Deleted %s")
                 ('unsaved "Reverted %s; not saved")
                 (_ "Reverted %s"))
               (if hunk (concat "a hunk of " name) name)))))

(defun gemini-companion-changes--set-undone (edit state undone)
  "Record that the hunks UNDONE of EDIT are reverted.
If these are all, its file state is STATE."
  (if (equal undone (gemini-companion-changes--all-hunks edit))
      (gemini-companion-file-state-set-reverted edit state)
    (gemini-companion-file-state-set-reverted edit 'written undone)))

(defun gemini-companion-changes--undo-entry (edit)
  "Return an undo entry with the state of EDIT, to set it again."
  (list 'apply #'gemini-companion-changes--set-again edit (visited-file-modtime)
        (gemini-companion-edit-file-state edit)
        (gemini-companion-edit-undone edit)))

(defun gemini-companion-changes--set-again (edit time state undone)
  "Set STATE and UNDONE of EDIT again, unless its file is newer than TIME."
  (when (equal time (visited-file-modtime))
    (push (gemini-companion-changes--undo-entry edit) buffer-undo-list)
    (gemini-companion-file-state-set-reverted edit state undone)))

(defun gemini-companion-changes--conflict (edit hunk line offer)
  "Signal that reverting EDIT, or its HUNK, conflicts with LINE of the file.
If OFFER is non-nil, offer first to resolve that in the buffer."
  (let ((problem (format "%s cannot be reverted: line %d has changed since"
                         (gemini-companion-edit-name edit) line)))
    (unless (and offer (y-or-n-p (concat problem "; merge with smerge? ")))
      (user-error "%s" problem))
    (let ((buffer (gemini-companion-changes--visit edit)))
      (gemini-companion-windows-at-once
        (pop-to-buffer buffer)))
    (gemini-companion-revert-replace-text
     (cdr (gemini-companion-changes--merged
           edit (and hunk (list hunk))
           (gemini-companion-revert-text (current-buffer))
           (current-buffer))))
    (widen)
    (smerge-start-session)
    (goto-char (gemini-companion-hunk-line line))
    (message "Merged with conflicts, not saved; see the menu SMerge")))

(defun gemini-companion-changes--visit (edit)
  "Return a buffer that visits the file of EDIT, with its current text."
  (gemini-companion-revert-now (gemini-companion-edit-file edit))
  (find-file-noselect
   (gemini-companion-names-visited (gemini-companion-edit-file edit)) 'nowarn))

(defun gemini-companion-changes--check-file (edit)
  "Check whether what was reverted of EDIT has gone from its file.
If it had gone before a later edit, that one has written it again."
  (when-let* ((now (ignore-error file-error
                     (gemini-companion-edit-texts-decode
                      edit (gemini-companion-text-bytes
                            (gemini-companion-edit-file edit))))))
    (let* ((undone (or (gemini-companion-edit-undone edit)
                       (gemini-companion-changes--all-hunks edit)))
           (back undone))
      (dolist (text (cons now (cl-loop
                               for other in (gemini-companion-changes--later edit t)
                               when (stringp (gemini-companion-edit-before other))
                               collect (gemini-companion-changes--before other now))))
        (setq back (gemini-companion-changes--in-text edit back text)))
      (gemini-companion-changes--set-undone
       edit 'reverted (seq-difference undone back)))))

(defun gemini-companion-changes--in-text (edit hunks text)
  "Return those of HUNKS of EDIT that TEXT has."
  (let ((there (seq-intersection
                hunks (mapcar #'car
                              (and hunks (gemini-companion-changes--lines
                                          edit (gemini-companion-edit-hunks edit)
                                          text))))))
    ;; Where lines are alike, diff may take others for those that have gone.
    (pcase (and there (gemini-companion-changes--merged edit there text))
      (`(nil . ,merged) (and (not (string= text merged)) there)))))

(defun gemini-companion-changes--later (edit &optional unnoticed)
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

(defun gemini-companion-changes--merged (edit hunks now &optional buffer)
  "Take back EDIT, or only HUNKS of it, in the text NOW.
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
        (old (gemini-companion-changes--before edit now buffer)))
    (gemini-companion-text-merged
     now written
     (if hunks (gemini-companion-changes--without hunks old written) old)
     "now" "written" "before")))

(defun gemini-companion-changes--before (edit now &optional buffer)
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

(defun gemini-companion-changes--without (hunks before written)
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

;;;; Marks
(defvar-local gemini-companion-changes-marks nil
  "The overlays of the changes in this buffer, in order.")
(put 'gemini-companion-changes-marks 'permanent-local t)

(defvar gemini-companion-changes--buffers (make-hash-table :weakness 'key)
  "Table from edits to the buffers that have their marks, or t for no marks.
To search among all buffers for each file of a turn would take long.")

(defvar gemini-companion-changes-left nil
  "The changes of the last turn with some that are neither kept nor undone.")

(when (fboundp 'define-fringe-bitmap)
  (define-fringe-bitmap 'gemini-companion-mark [24] nil nil '(center t)))

(defun gemini-companion-changes--edits ()
  "Return the edits that are marked, and whose files exist, oldest first."
  (let ((file-name-handler-alist nil))
    (seq-filter (lambda (edit)
                  (and (gemini-companion-edit-written-p edit)
                       (not (eq t (gethash edit gemini-companion-changes--buffers)))
                       (file-exists-p (gemini-companion-edit-file edit))))
                (gemini-companion-edits))))

(defun gemini-companion-changes--visited-p (edit)
  "Return non-nil if the current buffer visits the file of EDIT."
  (gemini-companion-names-visited-here-p (gemini-companion-edit-true-name edit)))

(defun gemini-companion-changes--keep (edit)
  "Remove EDIT from the edits that are marked."
  (puthash edit t gemini-companion-changes--buffers))

(defun gemini-companion-changes--marked-buffer (edit)
  "Return the buffer where EDIT is marked, or nil."
  (let ((buffer (gethash edit gemini-companion-changes--buffers)))
    (and (buffer-live-p buffer)
         ;; The user may have written the buffer to another file since.
         (with-current-buffer buffer (gemini-companion-changes--visited-p edit))
         buffer)))

(defun gemini-companion-changes--all-hunks (edit)
  "Return the hunks of EDIT, or nil if they are unknown."
  (ignore-errors (gemini-companion-edit-hunks edit)))

(defun gemini-companion-changes--hunks (edit)
  "Return the hunks of EDIT that are not reverted."
  (seq-difference (gemini-companion-changes--all-hunks edit)
                  (gemini-companion-edit-undone edit)))

(defun gemini-companion-changes--change (mark)
  "Return the change of MARK, a cons of an edit and its hunk."
  (overlay-get mark 'gemini-companion-change))

(defun gemini-companion-changes--all ()
  "Return each change of the last turn that has one left.
They are in the order of files and lines.  In a file that is not visited,
that is all hunks that are not reverted."
  (let ((edits (gemini-companion-changes--edits)))
    ;; The user may have edited all changes of a later turn, or its file has
    ;; unsaved text: then those of an earlier turn are still marked.
    (seq-some #'gemini-companion-changes--of-edits
              (mapcar #'cdr
                      (seq-group-by #'gemini-companion-edit-turn
                                    (reverse edits))))))

(defun gemini-companion-changes--of-edits (edits)
  "Return each change of EDITS, those of one turn, the last edit first."
  (cl-loop
   for (_ . edits) in (seq-group-by #'gemini-companion-edit-true-name
                                    (reverse edits))
   for buffer = (gemini-companion-changes--marked-buffer (car edits))
   append
   (if buffer
       (seq-filter (lambda (change) (memq (car change) edits))
                   (mapcar #'gemini-companion-changes--change
                           (buffer-local-value 'gemini-companion-changes-marks
                                               buffer)))
     (cl-loop for edit in edits
              append (mapcar (apply-partially #'cons edit)
                             (gemini-companion-changes--hunks edit))))))

(defun gemini-companion-changes--lines (edit hunks text &optional later written)
  "Return those of HUNKS of EDIT that TEXT still has, lists (HUNK LINE COUNT).
LINE and COUNT are those of its lines in TEXT.  LATER are such lists of
later edits: a hunk of which they have changed some lines is still there.
WRITTEN is the text that EDIT has written, if it is decoded otherwise."
  (let ((changes (gemini-companion-text-diff
                  (mapcar (lambda (text)
                            (concat (string-remove-suffix
                                     "\n" (gemini-companion-text-normalized text))
                                    "\n"))
                          (list (or written (gemini-companion-edit-after edit))
                                text))))
        (theirs-p (lambda (line count)
                    (seq-some (pcase-lambda (`(,_ ,first ,all))
                                (<= first line (+ line count) (+ first all)))
                              later)))
        (moved 0))
    ;; HUNKS and CHANGES are in the order of lines.
    (cl-loop
     for hunk in hunks
     for new = (gemini-companion-hunk-new hunk)
     for count = (gemini-companion-hunk-new-count hunk)
     for changed = nil
     do (cl-loop for (old old-count _ new-count) = (car changes)
                 while (and changes (<= (+ old old-count) new))
                 do (setq changed (and (= 0 count old-count) (= old new)))
                 (cl-incf moved (- new-count old-count))
                 (pop changes))
     for line = (+ new moved)
     for inside = (seq-take-while (lambda (change) (< (car change) (+ new count)))
                                  changes)
     for left = (cl-loop for (old old-count first new-count) in inside
                         always (<= new old (+ old old-count) (+ new count))
                         always (funcall theirs-p first new-count)
                         sum (- new-count old-count) into more
                         finally return (+ count more))
     unless (or changed (null left) (and inside (funcall theirs-p line left)))
     collect (list hunk line left))))

(defun gemini-companion-changes--mark ()
  "Mark each change in the current buffer, and nothing else.
An indirect buffer has no marks, and none of those that were cloned."
  (let (marks later)
    (save-excursion
      (save-restriction
        (widen)
        (remove-overlays nil nil 'gemini-companion-mark t)
        (kill-local-variable 'gemini-companion-changes--edited)
        (remove-hook 'after-change-functions #'gemini-companion-changes--edited t)
        (dolist (edit (reverse (gemini-companion-changes--edits)))
          (when (gemini-companion-changes--visited-p edit)
            (puthash edit (current-buffer) gemini-companion-changes--buffers)
            (add-hook 'after-change-functions #'gemini-companion-changes--edited
                      nil t)
            (let ((lines (gemini-companion-changes--lines
                          edit (gemini-companion-changes--hunks edit)
                          (gemini-companion-revert-text (current-buffer)) later
                          (gemini-companion-edit-texts-as-visited
                           edit (gemini-companion-edit-after edit))))
                  (previous 1))
              (setq later (append lines later))
              (goto-char (point-min))
              (pcase-dolist (`(,hunk ,line ,count) lines)
                ;; To count from the first line for each would take long.
                (forward-line (- line previous))
                (setq previous line)
                (push (gemini-companion-changes--make-mark edit hunk count)
                      marks)))))))
    (when (or marks (local-variable-p 'gemini-companion-changes-marks))
      (setq gemini-companion-changes-marks
            (seq-sort-by #'overlay-start #'< marks))
      (gemini-companion-changes--set-margins))))

(defun gemini-companion-changes--make-mark (edit hunk count)
  "Mark COUNT lines from point on, those of HUNK of EDIT."
  (pcase-let*
      (;; Behind a last line without an end, no line is that line again.
       (end (max (point) (save-excursion (forward-line count) (point))))
       (mark (make-overlay (point) end nil t))
       (`(,bitmap ,char ,ascii) (if (zerop count)
                                    '(horizontal-bar ?_ "_")
                                  '(gemini-companion-mark ?\u2503 "|")))
       (sign (propertize (gemini-companion-text-sign char ascii)
                         'face 'gemini-companion-mark))
       (string (concat
                (propertize "!" 'display `(right-fringe ,bitmap
                                                        gemini-companion-mark))
                (propertize "!" 'display `((margin right-margin) ,sign)))))
    (overlay-put mark 'gemini-companion-change (cons edit hunk))
    (overlay-put mark 'gemini-companion-mark t)
    ;; A string is displayed once only, so each line has an overlay.  A prefix of
    ;; the lines would replace others, such as the indentation by Org.
    (save-excursion
      (dotimes (_ (min (max 1 count) 200) mark)
        (let ((line (make-overlay (point) (point) nil t t)))
          (overlay-put line 'gemini-companion-mark t)
          (overlay-put line 'before-string string))
        (forward-line)))))

(defvar-local gemini-companion-changes--edited nil
  "Non-nil if this buffer was edited and will be marked again.")

(defun gemini-companion-changes--edited (start end _length)
  "Mark the current buffer again when Emacs is idle.
That is needed if START to END is beside a mark, or if undoing may have
brought back what was marked; elsewhere a key costs nothing."
  (when (and (not gemini-companion-changes--edited)
             (or undo-in-progress
                 (seq-some (lambda (overlay)
                             (overlay-get overlay 'gemini-companion-mark))
                           (overlays-in (save-excursion
                                          (goto-char start)
                                          (1- (line-beginning-position)))
                                        (save-excursion
                                          (goto-char end)
                                          (+ 2 (line-end-position)))))))
    (setq gemini-companion-changes--edited t)
    (run-with-idle-timer 0.2 nil #'gemini-companion-changes--update
                         (current-buffer))))
(put 'gemini-companion-changes--edited 'permanent-local-hook t)

(defun gemini-companion-changes--set-margins ()
  "Show a right margin in each window where a mark has no fringe, or hide it."
  (dolist (window (get-buffer-window-list nil nil t))
    (pcase-let ((`(,left . ,right) (window-margins window)))
      ;; A wider one is of a mode that centers the text.
      (unless (< 1 (or right 0))
        (set-window-margins window left
                            (if (and gemini-companion-changes-marks
                                     (= 0 (cadr (window-fringes window))))
                                1
                              right-margin-width))))))

(defun gemini-companion-changes--displayed (frame)
  "Adapt the right margins in FRAME, whose windows have changed."
  (dolist (window (window-list frame 'no-minibuffer))
    (with-current-buffer (window-buffer window)
      (cond ((not (local-variable-p 'gemini-companion-changes-marks)))
            ;; The marks of an indirect buffer were copied with its text.
            ((buffer-base-buffer) (gemini-companion-changes--mark))
            (t (gemini-companion-changes--set-margins))))))

(defun gemini-companion-changes--follow (edit event)
  "Mark each change of EDIT after EVENT.
Those of earlier turns of its CLI in the file have no marks any more."
  (unless (or (eq event 'reverted) (eq gemini-companion-after-write 'marks))
    (gemini-companion-changes--keep edit))
  (when (eq event 'written)
    (dolist (other (gemini-companion-changes--edits))
      (when (and (equal (gemini-companion-edit-true-name edit)
                        (gemini-companion-edit-true-name other))
                 (not (eq (gemini-companion-edit-turn edit)
                          (gemini-companion-edit-turn other)))
                 (gemini-companion-session-same-p
                  (gemini-companion-edit-session edit)
                  (gemini-companion-edit-session other)))
        (gemini-companion-changes--keep other))))
  (when (memq event '(written reverted))
    (gemini-companion-changes--update
     (gemini-companion-names-buffer (gemini-companion-edit-file edit)))))

(defun gemini-companion-changes--update (&rest buffers)
  "Mark each change in those of BUFFERS that are buffers, and count all.
Their files may have been deleted or renamed, in a terminal or by the CLI."
  (dolist (buffer (seq-filter #'buffer-live-p buffers))
    (with-current-buffer buffer
      (gemini-companion-changes--mark)))
  (setq gemini-companion-changes-left (gemini-companion-changes--all))
  (force-mode-line-update t))

(defun gemini-companion-changes--visited ()
  "Mark the current buffer, whose file was visited or saved, or gets no text.
What was reverted in its file may have been undone, or was not saved."
  (dolist (edit (gemini-companion-edits))
    (when (and (or (memq (gemini-companion-edit-file-state edit)
                         '(unsaved reverted))
                   (gemini-companion-edit-undone edit))
               ;; The text before a later edit may be unknown.
               (stringp (gemini-companion-edit-before edit))
               (or (gemini-companion-changes--visited-p edit)
                   ;; Before it was written to another file.
                   (eq (current-buffer)
                       (gethash edit gemini-companion-changes--buffers)))
               (executable-find "diff3"))
      (gemini-companion-changes--check-file edit)))
  (gemini-companion-changes--update (current-buffer)))

;;;; Walking

(defvar gemini-companion-changes-map
  (gemini-companion-commands-bind
   (make-sparse-keymap) 'change
   (lambda (command)
     `(menu-item "" ,command
                 :filter ,(lambda (command) (unless (minibufferp) command)))))
  "Keys after a command that goes to a change, but not in its question.")
;; In a graphical frame, vterm and eat have a binding of their own for it.
(define-key gemini-companion-changes-map [return]
            (lookup-key gemini-companion-changes-map (kbd "RET")))

(defvar gemini-companion-changes--end-keys #'ignore
  "Function that ends the keys of `gemini-companion-changes-map'.")

(defun gemini-companion-changes--report (text &optional end)
  "Show TEXT; the next keys may be those of the map.
For END, see `gemini-companion-changes--take-keys'."
  (message "%s (n p u k RET)" text)
  (gemini-companion-changes--take-keys end))

(defun gemini-companion-changes--take-keys (&optional end)
  "Let the next keys be those of `gemini-companion-changes-map'.
END is called when they are taken again, or at another key.

Each command of the walk begins with this, as it may fail: a key that is
typed after it must not become text of a file, nor answer the question of
a CLI in the terminal that is selected."
  (funcall gemini-companion-changes--end-keys)
  (setq gemini-companion-changes--end-keys
        (set-transient-map
         gemini-companion-changes-map
         (lambda ()
           (or (minibufferp)
               (eq this-command #'universal-argument)
               (cl-find this-command (gemini-companion-commands-in 'change)
                        :key #'cadr)))
         end)))

(defun gemini-companion-changes--here ()
  "Return the mark of the line at point, the one of the last edit."
  (or (seq-find (lambda (mark)
                  (or (<= (line-beginning-position) (overlay-start mark)
                          (line-end-position))
                      (< (1- (overlay-start mark)) (point) (overlay-end mark))))
                (reverse gemini-companion-changes-marks))
      (user-error (substitute-command-keys "No change here; \
\\[gemini-companion-next-change] goes to the next one"))))

(defun gemini-companion-changes--next (back)
  "Return the next change, or the previous one if BACK is non-nil.
After the last one in the current buffer, that is in the next file."
  (let* ((changes (or (gemini-companion-changes--all)
                      (user-error "No changes of a CLI are left")))
         (here (seq-filter (lambda (mark)
                             (memq (gemini-companion-changes--change mark) changes))
                           gemini-companion-changes-marks))
         (passed (seq-count (lambda (mark)
                              (< (overlay-start mark) (+ (point) (if back 0 1))))
                            here))
         ;; Files are in the order of their last edits.
         (later (seq-take-while
                 (lambda (edit) (not (gemini-companion-changes--visited-p edit)))
                 (reverse (gemini-companion-edits))))
         (first (if here
                    (seq-position changes
                                  (gemini-companion-changes--change (car here)))
                  (cl-position-if (lambda (change) (memq (car change) later))
                                  changes))))
    (nth (mod (+ (or first 0) passed (if back -1 0)) (length changes)) changes)))

(defun gemini-companion-changes--find (change)
  "Visit the file of CHANGE, and return its mark, or nil if it is edited.
If the file is none that can be visited, return why, a predicate."
  (let ((edit (car change)))
    (or (gemini-companion-text-unreadable-reason (gemini-companion-edit-file edit))
        (with-current-buffer (gemini-companion-changes--visit edit)
          ;; A file may be visited without hooks, or edited in an indirect buffer.
          (gemini-companion-changes--update (current-buffer))
          (if (gemini-companion-changes--visited-p edit)
              (cl-find change gemini-companion-changes-marks
                       :key #'gemini-companion-changes--change :test #'equal)
            "is another file now")))))

(defun gemini-companion-changes--go (back &optional skipped)
  "Go to the next change, or to the previous one if BACK is non-nil.
SKIPPED is a text about files that were skipped."
  (let* ((change (gemini-companion-changes--next back))
         (edit (car change))
         (name (gemini-companion-edit-name edit 'plain)))
    (pcase (gemini-companion-changes--find change)
      ('nil (gemini-companion-changes--go back skipped))
      ((and (pred stringp) why)
       (gemini-companion-changes--keep edit)
       (gemini-companion-changes--update)
       (gemini-companion-changes--go
        back (concat skipped (format "; %s %s" name why))))
      (mark
       (unless (eq (overlay-buffer mark) (current-buffer))
         (gemini-companion-windows-at-once
           (pop-to-buffer (overlay-buffer mark)
                          (if buffer-file-name
                              '(display-buffer-same-window)
                            '((display-buffer-reuse-window
                               gemini-companion-windows-display-covering))))))
       (unless (<= (point-min) (overlay-start mark) (point-max))
         (widen))
       (goto-char (overlay-start mark))
       (dolist (overlay (overlays-at (point)))
         (when-let* ((open (overlay-get overlay 'isearch-open-invisible)))
           (funcall open overlay)))
       ;; In Org 9.6, no overlays fold text.
       (when (and (invisible-p (point)) (derived-mode-p 'org-mode))
         (org-show-context))
       ;; Before redisplay, Emacs would move point out of text that is still
       ;; invisible.
       (setq disable-point-adjustment t)
       (let ((changes (gemini-companion-changes--all)))
         (gemini-companion-changes--report
          (format "%d of %d, %s%s" (1+ (seq-position changes change))
                  (length changes) name (or skipped ""))))))))

;;;###autoload
(defun gemini-companion-next-change ()
  "Go to the next change that a CLI has written.
After the last one in a file, visit the next file of the turn.  After
this, single keys go on: n and p go to the next and the previous change,
RET shows what was there before, u undoes the change, and k keeps all of
the file."
  (interactive)
  (gemini-companion-changes--take-keys)
  (gemini-companion-changes--go nil))

;;;###autoload
(defun gemini-companion-previous-change ()
  "Go to the previous change that a CLI has written.
See `gemini-companion-next-change'."
  (interactive)
  (gemini-companion-changes--take-keys)
  (gemini-companion-changes--go 'back))

;;;###autoload
(defun gemini-companion-show-change ()
  "Show what was before the change at point, above it, until the next key."
  (interactive)
  (gemini-companion-changes--take-keys)
  (pcase-let* ((mark (gemini-companion-changes--here))
               (`(,edit . ,hunk) (gemini-companion-changes--change mark))
               (shown (make-overlay (overlay-start mark) (overlay-end mark))))
    (overlay-put shown 'face 'gemini-companion-changed)
    (gemini-companion-edit-texts-call
     edit (lambda (old _new)
            (with-current-buffer old
              (goto-char (point-max))
              (unless (bolp)
                (insert "\n"))
              (overlay-put
               shown 'before-string
               (propertize (buffer-substring
                            (gemini-companion-hunk-line
                             (gemini-companion-hunk-old hunk))
                            (gemini-companion-hunk-line
                             (gemini-companion-hunk-old-end hunk)))
                           'face 'diff-removed)))))
    (gemini-companion-changes--report
     (if (zerop (gemini-companion-hunk-old-count hunk)) "Nothing was here" "Before the change")
     (apply-partially #'delete-overlay shown))))

;;;###autoload
(defun gemini-companion-undo-change ()
  "Undo the change at point, and save the file.
If the buffer has other unsaved text, do not save it.  A new file is
deleted."
  (interactive)
  (gemini-companion-changes--take-keys)
  (pcase-let* ((`(,edit . ,hunk) (gemini-companion-changes--change
                                  (gemini-companion-changes--here)))
               (new (eq 'new (gemini-companion-edit-before edit))))
    (gemini-companion-changes-check edit)
    (when (and new
               (not (y-or-n-p (format "%s was new; delete it? "
                                      (gemini-companion-edit-name edit)))))
      (user-error "Not undone"))
    (gemini-companion-changes--report
     (format "%s; %d left"
             (or (gemini-companion-changes-revert edit (and (not new) hunk))
                 "Waiting for the remote host")
             (length gemini-companion-changes-left)))))

;;;###autoload
(defun gemini-companion-keep-changes (&optional all)
  "Keep each change in this buffer: remove its mark.
With ALL, a prefix argument, keep those in all files of the turn."
  (interactive "P")
  (gemini-companion-changes--take-keys)
  (let ((edits (seq-uniq
                (mapcar #'car
                        (or (if all
                                (gemini-companion-changes--all)
                              (mapcar #'gemini-companion-changes--change
                                      gemini-companion-changes-marks))
                            (user-error "No changes to keep"))))))
    (apply #'gemini-companion-changes--update
           (prog1 (mapcar #'gemini-companion-changes--marked-buffer edits)
             (mapc #'gemini-companion-changes--keep edits)))
    (gemini-companion-changes--report
     (format "Kept %s; %d left"
             (string-join (gemini-companion-edit-hunks-total edits) ", ")
             (length gemini-companion-changes-left)))))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'changes)))
  "Mark what CLIs write from now on."
  '((gemini-companion-edit-functions gemini-companion-changes--follow)
    (window-buffer-change-functions gemini-companion-changes--displayed)
    (window-buffer-change-functions gemini-companion-changes--update)
    ;; A window configuration has the margin of its time.
    (window-size-change-functions gemini-companion-changes--displayed)
    (gemini-companion-state-functions gemini-companion-changes--update)
    (find-file-hook gemini-companion-changes--visited)
    (after-revert-hook gemini-companion-changes--visited)
    (after-save-hook gemini-companion-changes--visited)
    (after-set-visited-file-name-hook gemini-companion-changes--visited)
    (kill-buffer-hook gemini-companion-changes--visited)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'changes)))
  "Mark nothing any more."
  (cancel-function-timers #'gemini-companion-changes--update)
  (mapc #'gemini-companion-changes--keep (gemini-companion-edits))
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (gemini-companion-changes--mark)
      (kill-local-variable 'gemini-companion-changes-marks)))
  (gemini-companion-changes--update))

(cl-defmethod gemini-companion-part-lighter ((_part (eql 'changes)))
  "Return a text for the mode line if there is a change left, or nil."
  (when gemini-companion-changes-left
    (cons (format "~%d" (length gemini-companion-changes-left))
          "~: changes of a CLI that you have not kept or undone")))

(provide 'gemini-companion-changes)
;;; gemini-companion-changes.el ends here
