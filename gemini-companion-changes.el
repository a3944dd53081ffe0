;;; gemini-companion-changes.el --- Taking back what a CLI has written  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Revert an edit: restore the text that the file had before it.

;;; Code:

(require 'gemini-companion-edit)
(require 'gemini-companion-names)
(require 'gemini-companion-remote)
(require 'gemini-companion-revert)
(require 'gemini-companion-text)

;;;; Revert

(defun gemini-companion-changes-revert (edit &optional done)
  "Write the text before EDIT to its file, and bring its buffer up to date.
A file that was new is deleted, and its buffer is killed.  Signal an
error if the file has changed since.  Call DONE, if it is non-nil, with
nil after that, or with the problem; for a remote file, that is later."
  (let* ((file (gemini-companion-edit-file edit))
         (new (eq 'new (gemini-companion-edit-before edit)))
         (end (apply-partially #'gemini-companion-changes--end-revert edit done))
         ;; It is read before it is checked, as it may be replaced meanwhile.
         (old (and (gemini-companion-names-of-copy file)
                   (gemini-companion-edit-keepable-p file)
                   (gemini-companion-text-bytes file))))
    (gemini-companion-changes-check edit)
    (let ((bytes (and (not new) (gemini-companion-changes--previous edit))))
      (cond (old (gemini-companion-remote-write file old bytes end))
            (new (delete-file file 'trash))
            (t
             ;; Otherwise Emacs may ask whether to write over a newer text.
             (gemini-companion-revert-now file)
             (gemini-companion-text-write file bytes)
             (gemini-companion-revert-now file)))
      (unless old
        (funcall end nil)))))

(defun gemini-companion-changes--end-revert (edit done problem)
  (let* ((file (gemini-companion-edit-file edit))
         (name (gemini-companion-edit-name edit))
         (buffer (gemini-companion-names-buffer file))
         (new (eq 'new (gemini-companion-edit-before edit))))
    (cond (problem
           (setq problem (format "Cannot revert %s (%s)" name problem))
           (message "%s" problem))
          (new
           (when (and buffer (not (buffer-modified-p buffer)))
             (kill-buffer buffer)))
          ((gemini-companion-names-of-copy file)
           (gemini-companion-revert file)))
    (unless problem
      (gemini-companion-edit-set-reverted edit (if new 'deleted 'reverted))
      (message (if new "Deleted %s" "Reverted %s") name))
    (funcall (or done #'ignore) problem)))

(defun gemini-companion-changes-check (edit)
  "Signal an error if reverting EDIT would lose text or is impossible."
  (let ((file (gemini-companion-edit-file edit)))
    (when-let*
        ((why (cond
               ((gemini-companion-changes-unwritten edit))
               ((eq 'unknown (gemini-companion-edit-before edit))
                "had a previous text that was not kept")
               ((gemini-companion-text-unreadable-reason file))
               ((null (gemini-companion-text-attributes file))
                "was deleted or renamed since")
               ((not (equal (gemini-companion-edit-true-name edit)
                            (gemini-companion-text-true-name file)))
                "has other symbolic links since; revert this edit by hand")
               ((gemini-companion-remote-check file) nil)
               ((not (gemini-companion-edit-keepable-p file)) "is too large")
               ((not (gemini-companion-edit-in-file-p
                      edit (gemini-companion-edit-after edit)))
                "has changed since; revert later edits first, if there are any, \
or this one by hand")
               ((gemini-companion-revert-unsaved-p file)
                "has unsaved changes; undo them first, or revert this edit by \
hand"))))
      (user-error "%s %s" (gemini-companion-edit-name edit) why))))

(defun gemini-companion-changes-unwritten (edit)
  "Return why EDIT has not changed its file, a predicate, or nil."
  (pcase (gemini-companion-edit-status edit)
    ((or 'pending 'shown) "is not written yet; its proposal awaits an answer")
    ('rejected "was not written; its proposal was rejected")
    ((guard (not (or (memq (gemini-companion-edit-before edit) '(new unknown))
                     (condition-case nil
                         (gemini-companion-edit-hunks edit)
                       (error t)))))
     "was not changed by this edit")
    ((guard (gemini-companion-edit-in-file-p
             edit (gemini-companion-edit-after edit)))
     nil)
    ((or 'unwritten 'dismissed) "was not written")
    ('reverted "was reverted already")
    ('deleted "was deleted already")))

(defun gemini-companion-changes--previous (edit)
  (let ((before (gemini-companion-edit-before edit))
        (file (gemini-companion-edit-file edit)))
    (if (not (eq 'unreviewed (gemini-companion-edit-decision edit)))
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

(provide 'gemini-companion-changes)
;;; gemini-companion-changes.el ends here
