;;; gemini-companion-edits.el --- The edits of each turn of a CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A record of each edit that a CLI has proposed or written, with the text of
;; the file before and after it, so that it can be shown and reverted.
;;
;; The turn of an edit is the one of its CLI, see `gemini-companion-session-turn'.
;; Where that is unknown, it is a guess: a turn begins with an edit that arrives
;; when the one before ended at least a minute ago.

;;; Code:

(require 'gemini-companion-diff)
(require 'gemini-companion-hunk)
(require 'gemini-companion-name)
(require 'gemini-companion-place)
(require 'gemini-companion-revert)
(require 'gemini-companion-review)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-text)

;;;; State

(defconst gemini-companion-edits--most-bytes (* 5 1024 1024)
  "Maximum size of the text of a file to keep.")

(cl-defstruct (gemini-companion-edit
               (:constructor gemini-companion-edits--make)
               (:copier nil))
  "An edit of FILE by SESSION.
DIFF is its diff while that is open.  STATE is then nil, and later
`accepted', `automatic' if that was done without review, `unwritten'
if the CLI then did not write it, `rejected', `dismissed', `written'
if there was no review, `reverted' if the user then reverted it, or
`deleted' if the file was new.
BEFORE is the text that the file had, undecoded, `new' if there was
no file, or `unknown'; AFTER is the text that was proposed or written,
or nil while DIFF is open."
  session file diff state before after
  (id (gensym))
  (time (float-time) :documentation "When it arrived or ended, in seconds.")
  (place (gemini-companion-text-true-name file)
         :documentation "True name of the file when it arrived.")
  (turn nil :documentation "Its turn, which is a guess if it is unknown.")
  (reported nil :documentation "Non-nil if the CLI reported its write.")
  (compared nil :documentation "Cons of a state of the texts and their hunks.")
  (drawn nil :documentation "Cons of a state and the diff as displayed then."))

(defvar gemini-companion-edits--edits nil
  "The recorded edits, the last one first.")

(defvar gemini-companion-edits-changed-hook nil
  "Hook run after an edit has arrived, was shown, or has ended.
Its functions display the edits; they must be fast and not fail.")

;;;; Edits

(defun gemini-companion-edits ()
  "Return the recorded edits, oldest first."
  (reverse gemini-companion-edits--edits))

(defun gemini-companion-edit-status (edit)
  "Return the state of EDIT, or the state of its diff while that is open."
  (or (gemini-companion-edit-state edit)
      (gemini-companion-diff-state (gemini-companion-edit-diff edit))))

(defun gemini-companion-edit-written-p (edit)
  "Return non-nil if EDIT has changed its file."
  (memq (gemini-companion-edit-state edit) '(accepted automatic written)))

(defun gemini-companion-edits-name (edit)
  "Return the name of the file of EDIT for the user."
  (gemini-companion-name (gemini-companion-edit-file edit)
                         (gemini-companion-edit-session edit)))

(defun gemini-companion-edits--add (edit)
  "Keep EDIT, in its turn, and the last hundred edits, or 40 MB of texts."
  (let* ((session (gemini-companion-edit-session edit))
         (last (cl-find session gemini-companion-edits--edits
                        :key #'gemini-companion-edit-session
                        :test #'gemini-companion-session-same-p))
         (room 100))
    (setf (gemini-companion-edit-turn edit)
          (cond ((gemini-companion-session-turn session))
                ((and last
                      (or (gemini-companion-edit-diff last)
                          (< (- (float-time) (gemini-companion-edit-time last))
                             60)))
                 (gemini-companion-edit-turn last))
                (t (gemini-companion-state-make-turn))))
    (setq gemini-companion-edits--edits
          (seq-filter
           (lambda (edit)
             (let ((texts (seq-filter #'stringp
                                      (list (gemini-companion-edit-before edit)
                                            (gemini-companion-edit-after edit)))))
               (cl-decf room (max 1 (/ (apply #'+ (mapcar #'string-bytes texts))
                                       400000)))
               (or (gemini-companion-edit-diff edit) (<= 0 room))))
           (cons edit gemini-companion-edits--edits)))))

;;;; Reviews

(defun gemini-companion-edits--read (edit)
  "Read the text of the file of EDIT, which is not written yet."
  (let ((file (gemini-companion-edit-file edit)))
    (setf (gemini-companion-edit-before edit)
          (cond ((null (gemini-companion-text-attributes file)) 'new)
                ((and (gemini-companion-edits--kept-p file)
                      (ignore-error file-error
                        (gemini-companion-text-bytes file))))
                (t 'unknown)))))

(defun gemini-companion-edits--kept-p (file)
  "Return non-nil if FILE exists and its text can be kept."
  (when-let* (((not (gemini-companion-text-unreadable-reason file)))
              (attributes (gemini-companion-text-attributes file)))
    (<= (file-attribute-size attributes) gemini-companion-edits--most-bytes)))

(defun gemini-companion-edits--end (edit diff)
  "Record the outcome of DIFF as the one of EDIT."
  (setf (gemini-companion-edit-after edit)
        (or (gemini-companion-diff-accepted-text diff)
            (gemini-companion-diff-text diff))
        (gemini-companion-edit-diff edit) nil
        (gemini-companion-edit-time edit) (float-time)
        (gemini-companion-edit-state edit)
        (if (eq 'accepted (gemini-companion-diff-auto diff))
            'automatic
          (gemini-companion-diff-state diff)))
  (when (eq 'dismissed (gemini-companion-edit-state edit))
    ;; Qwen Code writes the file before it closes the diff, maybe without the
    ;; edits of the user.
    (if-let* ((written (seq-find
                        (apply-partially
                         #'gemini-companion-edits--as-written-p edit)
                        (list (gemini-companion-edit-after edit)
                              (gemini-companion-diff-proposed-text diff)))))
        (setf (gemini-companion-edit-after edit) written
              (gemini-companion-edit-state edit) 'accepted)
      (gemini-companion-edits--read edit))))

;;;; Writes

(defun gemini-companion-edits--diff-written (diff written)
  "Record whether the file of DIFF was WRITTEN.
A dismissed DIFF that was written was accepted in the terminal."
  (when-let* ((edit (seq-find
                     (lambda (edit)
                       (and (equal (gemini-companion-diff-file-path diff)
                                   (gemini-companion-edit-file edit))
                            (memq (gemini-companion-edit-state edit)
                                  '(accepted automatic dismissed))))
                     gemini-companion-edits--edits)))
    (let ((as-written (gemini-companion-edits--as-written-p edit)))
      (cond ((eq 'dismissed (gemini-companion-edit-state edit))
             (when as-written
               (setf (gemini-companion-edit-state edit) 'accepted)))
            ((not (or written as-written))
             (setf (gemini-companion-edit-state edit) 'unwritten))))))

(defun gemini-companion-edits-written (session file before after)
  "Record that SESSION has written FILE, maybe without a review.
BEFORE is the previous text of FILE, nil if it did not exist, and AFTER
the current one.  An edit that was reviewed is not recorded again."
  (if-let* ((place (gemini-companion-text-true-name file))
            (edit (seq-find
                   (lambda (edit)
                     (and (equal place (gemini-companion-edit-place edit))
                          (not (or (gemini-companion-edit-reported edit)
                                   (eq 'rejected
                                       (gemini-companion-edit-state edit))))
                          (gemini-companion-text-same-written-p
                           after
                           (if-let* ((diff (gemini-companion-edit-diff edit)))
                               (gemini-companion-diff-text diff)
                             (gemini-companion-edit-after edit)))))
                   gemini-companion-edits--edits)))
      (progn
        (setf (gemini-companion-edit-reported edit) t)
        (when (eq 'unwritten (gemini-companion-edit-state edit))
          (setf (gemini-companion-edit-state edit) 'accepted)))
    (gemini-companion-edits--add
     (gemini-companion-edits--make
      :session session :file file :state 'written :reported t
      :before (cond ((null before) 'new)
                    ((or (< gemini-companion-edits--most-bytes (length before))
                         ;; The CLI could not decode it.
                         (string-search "\uFFFD" before))
                     'unknown)
                    (t (encode-coding-string before 'utf-8)))
      :after after)))
  (run-hooks 'gemini-companion-edits-changed-hook))

;;;; Revert

(defun gemini-companion-edits-revert (edit &optional done)
  "Write the text before EDIT to its file, and bring its buffer up to date.
A file that was new is deleted, and its buffer is killed.  Signal an
error if the file has changed since.  Call DONE, if it is non-nil, with
nil after that, or with the problem; for a remote file, that is later."
  (let* ((file (gemini-companion-edit-file edit))
         (new (eq 'new (gemini-companion-edit-before edit)))
         (end (apply-partially #'gemini-companion-edits--end-revert edit done))
         ;; It is read before it is checked, as it may be replaced meanwhile.
         (old (and (gemini-companion-place-of file)
                   (gemini-companion-edits--kept-p file)
                   (gemini-companion-text-bytes file))))
    (gemini-companion-edits-check-revert edit)
    (let ((bytes (and (not new) (gemini-companion-edits--previous edit))))
      (cond (old (gemini-companion-place-write file old bytes end))
            (new (delete-file file 'trash))
            (t
             ;; Otherwise Emacs may ask whether to write over a newer text.
             (gemini-companion-revert-now file)
             (gemini-companion-text-write file bytes)
             (gemini-companion-revert-now file)))
      (unless old
        (funcall end nil)))))

(defun gemini-companion-edits--end-revert (edit done problem)
  "Record that EDIT was reverted unless there was a PROBLEM, and call DONE."
  (let* ((file (gemini-companion-edit-file edit))
         (name (gemini-companion-edits-name edit))
         (buffer (gemini-companion-place-buffer file))
         (new (eq 'new (gemini-companion-edit-before edit))))
    (cond (problem
           (setq problem (format "Cannot revert %s (%s)" name problem))
           (message "%s" problem))
          (new
           (when (and buffer (not (buffer-modified-p buffer)))
             (kill-buffer buffer)))
          ((gemini-companion-place-of file)
           (gemini-companion-revert file)))
    (unless problem
      (setf (gemini-companion-edit-state edit) (if new 'deleted 'reverted))
      (message (if new "Deleted %s" "Reverted %s") name)
      (run-hooks 'gemini-companion-edits-changed-hook))
    (funcall (or done #'ignore) problem)))

(defun gemini-companion-edits-check-revert (edit)
  "Signal an error if reverting EDIT would lose text or is impossible."
  (let ((file (gemini-companion-edit-file edit)))
    (when-let*
        ((why (cond
               ((gemini-companion-edits-unwritten edit))
               ((eq 'unknown (gemini-companion-edit-before edit))
                "had a previous text that was not kept")
               ((gemini-companion-text-unreadable-reason file))
               ((null (gemini-companion-text-attributes file))
                "was deleted or renamed since")
               ((not (equal (gemini-companion-edit-place edit)
                            (gemini-companion-text-true-name file)))
                "has other symbolic links since; revert this edit by hand")
               ((gemini-companion-place-check file) nil)
               ((not (gemini-companion-edits--kept-p file)) "is too large")
               ((not (gemini-companion-edits--as-written-p edit))
                "has changed since; revert later edits first, if there are any, \
or this one by hand")
               ((gemini-companion-revert-unsaved-p file)
                "has unsaved changes; undo them first, or revert this edit by \
hand"))))
      (user-error "%s %s" (gemini-companion-edits-name edit) why))))

(defun gemini-companion-edits-unwritten (edit)
  "Return why EDIT has not changed its file, a predicate, or nil."
  (pcase (gemini-companion-edit-status edit)
    ((or 'pending 'shown) "is not written yet; its proposal awaits an answer")
    ('rejected "was not written; its proposal was rejected")
    ((guard (not (or (eq 'new (gemini-companion-edit-before edit))
                     (gemini-companion-edits-hunks edit))))
     "was not changed by this edit")
    ((guard (gemini-companion-edits--as-written-p edit)) nil)
    ((or 'unwritten 'dismissed) "was not written")
    ('reverted "was reverted already")
    ('deleted "was deleted already")))

(defun gemini-companion-edits--as-written-p (edit &optional text)
  "Return non-nil if the file of EDIT has TEXT, by default that after EDIT."
  (let ((file (gemini-companion-edit-file edit)))
    (and (gemini-companion-edits--kept-p file)
         (gemini-companion-text-same-written-p
          (or text (gemini-companion-edit-after edit))
          (gemini-companion-text-read file)))))

(defun gemini-companion-edits--previous (edit)
  "Return the bytes that the file of EDIT had before."
  (let ((before (gemini-companion-edit-before edit))
        (file (gemini-companion-edit-file edit)))
    (if (not (eq 'written (gemini-companion-edit-state edit)))
        before
      ;; A CLI may report a text with plain line ends and without a byte order
      ;; mark, and keeps both in the file.
      (let ((now (gemini-companion-text-bytes file))
            (mark (encode-coding-string "\uFEFF" 'utf-8)))
        (concat (and (string-prefix-p mark now)
                     (not (string-prefix-p mark before))
                     mark)
                (if (and (string-search "\r\n" now)
                         (not (string-search "\r\n" before)))
                    (string-replace "\n" "\r\n" before)
                  before))))))

(defun gemini-companion-edits-call-with-texts (edit function)
  "Call FUNCTION with buffers of the texts before and after EDIT.
The texts are decoded as the CLI reads them.  Signal an error if they
are unknown."
  (let ((before (gemini-companion-edit-before edit))
        (after (if-let* ((diff (gemini-companion-edit-diff edit)))
                   (gemini-companion-text-of-buffer
                    (gemini-companion-diff-proposal-buffer diff))
                 (gemini-companion-text-plain
                  (gemini-companion-edit-after edit)))))
    (with-temp-buffer
      (unless (eq 'new before)
        (insert (gemini-companion-text-plain
                 (replace-regexp-in-string
                  "[\x3fff80-\x3fffff]" "\uFFFD"
                  (decode-coding-string before 'utf-8-unix)))))
      (let ((old (current-buffer)))
        (with-temp-buffer
          (insert after)
          (funcall function old (current-buffer)))))))

;;;; Comparison

(defun gemini-companion-edits-hunks (edit)
  "Return the hunks of EDIT, or `failed' if its texts cannot be compared.
Its diff has them too while that is open."
  (let* ((diff (gemini-companion-edit-diff edit))
         (tick (if (null diff)
                   'ended
                 (gemini-companion-edits--read edit)
                 (cons (gemini-companion-edit-before edit)
                       (buffer-chars-modified-tick
                        (gemini-companion-diff-proposal-buffer diff))))))
    (unless (equal tick (car (gemini-companion-edit-compared edit)))
      (setf (gemini-companion-edit-compared edit)
            (cons tick
                  (condition-case nil
                      (gemini-companion-edits-call-with-texts
                       edit
                       (lambda (old new)
                         (let ((hunks (gemini-companion-hunk-find old new)))
                           (when diff
                             (gemini-companion-review-set-hunks diff hunks old))
                           hunks)))
                    (error 'failed)))))
    (cdr (gemini-companion-edit-compared edit))))

(defun gemini-companion-edits-total (edits)
  "Return a list of texts, the number of files of EDITS and of their lines.
Only the lines of edits that were written count, if all are known."
  (let ((files (length (seq-uniq (mapcar #'gemini-companion-edit-file edits))))
        (lines (gemini-companion-edits-lines
                (seq-filter #'gemini-companion-edit-written-p edits))))
    (and edits
         (cons (format (ngettext "%d file" "%d files" files) files)
               (and lines (list lines))))))

(defun gemini-companion-edits-lines (edits)
  "Return the numbers of lines that EDITS add and remove, a text.
Return nil if there are none, or the hunks of one are unknown."
  (unless (or (null edits)
              (memq 'failed (mapcar #'gemini-companion-edits-hunks edits)))
    (let ((counts (mapcar
                   (lambda (edit)
                     (gemini-companion-hunk-counts
                      (gemini-companion-edits-hunks edit)
                      (when-let* ((diff (gemini-companion-edit-diff edit)))
                        (gemini-companion-diff-proposal-buffer diff))))
                   edits)))
      (gemini-companion-hunk-lines (apply #'+ (mapcar #'cl-third counts))
                                   (apply #'+ (mapcar #'cl-fourth counts))))))

;;;; Life

(defun gemini-companion-edits--follow (diff event)
  "Record EVENT of DIFF; see `gemini-companion-diff-functions'."
  (let ((edit (seq-find (lambda (edit)
                          (eq diff (gemini-companion-edit-diff edit)))
                        gemini-companion-edits--edits)))
    (pcase event
      ('opened
       (setq edit (gemini-companion-edits--make
                   :session (gemini-companion-diff-session diff)
                   :file (gemini-companion-diff-file-path diff) :diff diff))
       (gemini-companion-edits--read edit)
       (gemini-companion-edits--add edit))
      ;; The CLI is about to write the file.
      ('accepting (gemini-companion-edits--read edit))
      ('settled (gemini-companion-edits--end edit diff))
      ('written (gemini-companion-edits--diff-written diff t))
      ('unwritten (gemini-companion-edits--diff-written diff nil))))
  (run-hooks 'gemini-companion-edits-changed-hook))

(defun gemini-companion-edits-start ()
  "Record the edits of all CLIs."
  (add-hook 'gemini-companion-diff-functions #'gemini-companion-edits--follow))

(defun gemini-companion-edits-stop ()
  "Drop all edits."
  (remove-hook 'gemini-companion-diff-functions
               #'gemini-companion-edits--follow)
  (setq gemini-companion-edits--edits nil))

(provide 'gemini-companion-edits)
;;; gemini-companion-edits.el ends here
