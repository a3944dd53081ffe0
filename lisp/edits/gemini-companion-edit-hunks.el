;;; gemini-companion-edit-hunks.el --- The hunks of an edit  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Compare the texts of an edit, count its lines, and exclude hunks.  Everything that
;; displays an edit, or counts its lines, uses the hunks of
;; `gemini-companion-edit-hunks', the only comparison.  While the edit is open, the
;; user may exclude hunks from the proposal, which are marked there; see
;; gemini-companion-hunk.el.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-choice)
(require 'gemini-companion-coding)
(require 'gemini-companion-commands)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-hunk)
(require 'gemini-companion-lines)
(require 'gemini-companion-text)

;; A pattern of `cl-struct' calls what Emacs 28 loads with this function only.
(eval-when-compile (cl-typep nil 'null))

;;;; Comparison

(defun gemini-companion-edit-hunks (edit)
  "Return the hunks of EDIT, a list of `gemini-companion-hunk's.
Compare the texts if they have changed since the last comparison, and restore
excluded hunks that no longer exist.  Signal an error if the texts are unknown
or cannot be compared."
  (let ((state (gemini-companion-edit-texts-state edit)))
    (unless (and state (equal state (gemini-companion-edit-compared edit)))
      (gemini-companion-edit-texts-call
       edit
       (lambda (old new)
         (let ((hunks (gemini-companion-hunk-compare-buffers old new)))
           (setf (gemini-companion-edit-known-hunks edit) hunks
                 (gemini-companion-edit-lost edit)
                 (gemini-companion-edit-hunks--count-lost edit old new)
                 (gemini-companion-edit-compared edit)
                 (gemini-companion-edit-texts-state edit))
           (when (gemini-companion-edit-open-p edit)
             (gemini-companion-edit-hunks--restore edit hunks))))))
    (gemini-companion-edit-known-hunks edit)))

(defun gemini-companion-edit-hunks-update (edit)
  "Compare the texts of EDIT if they are known.
Signal an error only if diff fails: then a stored result would be wrong."
  (condition-case err
      (gemini-companion-edit-hunks edit)
    (gemini-companion-text-not-compared (signal (car err) (cdr err)))
    ;; A file that is no text, or a hook of the user; the view reports it.
    (error nil)))

;;;; Lost characters

;; A CLI may lose characters of a file that is not UTF-8: it could not read them,
;; or cannot write them in the coding system of the file.
(defun gemini-companion-edit-hunks--count-lost (edit old new)
  "Return the number of characters that EDIT loses, from buffer OLD to buffer NEW.
It is 0 for a file in UTF-8."
  (let ((coding (gemini-companion-edit-texts-coding edit)))
    (if (eq 'utf-8-unix coding)
        0
      (unless (gemini-companion-client-keeps-coding-p
               (gemini-companion-edit-client edit))
        (setq coding nil))
      (max 0 (- (gemini-companion-coding-lost
                 (gemini-companion-text-of-buffer new) coding)
                ;; The file may have had the character U+FFFD already.
                (cl-count ?\uFFFD (gemini-companion-text-of-buffer old)))))))

(defun gemini-companion-edit-hunks-loss (edit)
  "Return a phrase about the characters that EDIT loses, or nil for none.
Example: \"not UTF-8: Gemini CLI will replace 12 characters\".  A CLI that keeps
the coding system may read the file otherwise than Emacs, so it \"may\" do so."
  (let ((count (gemini-companion-edit-lost edit)))
    (when (< 0 count)
      (format (ngettext "not UTF-8: %s %s replace %d character"
                        "not UTF-8: %s %s replace %d characters"
                        count)
              (gemini-companion-edit-title edit)
              (if (gemini-companion-client-keeps-coding-p
                   (gemini-companion-edit-client edit))
                  "may"
                "will")
              count))))

;;;; Amount of change

(defun gemini-companion-edit-hunks-counts (edit)
  "Return the `gemini-companion-hunk-counts' of EDIT, or nil if it has no hunks.
The counts are those of the last comparison."
  (when-let* ((hunks (gemini-companion-edit-known-hunks edit)))
    (let ((proposal (gemini-companion-edit-proposal-buffer edit)))
      (gemini-companion-hunk-count
       hunks (and proposal (gemini-companion-hunk-excluded proposal))))))

(defun gemini-companion-edit-hunks-lines (edits)
  "Return the numbers of lines that EDITS add and remove, such as \"+3 -1\".
Compare texts that have changed since the last comparison.  Return nil if there
are no EDITS, or the hunks of one of them are unknown."
  (when edits
    (ignore-errors
      (let ((added 0)
            (removed 0))
        (dolist (edit edits)
          (gemini-companion-edit-hunks edit)
          (when-let* ((counts (gemini-companion-edit-hunks-counts edit)))
            (cl-incf added (gemini-companion-hunk-counts-added counts))
            (cl-incf removed (gemini-companion-hunk-counts-removed counts))))
        (gemini-companion-hunk-amount added removed)))))

(defun gemini-companion-edit-hunks-files (edits)
  "Return the names of the files of EDITS, such as \"notes.md, app/bill.py\".
List three names at most, and then the number of the others."
  (let* ((names (seq-uniq (mapcar (lambda (edit)
                                    (gemini-companion-edit-name edit 'plain))
                                  edits)))
         (more (- (length names) 3)))
    (concat (string-join (seq-take names 3) ", ")
            (and (< 0 more) (format " and %d more" more)))))

(defun gemini-companion-edit-hunks-summary (&optional edit plain)
  "Return the name of the file of EDIT, and its amount of change if known.
EDIT is the current one by default.  For PLAIN, see
`gemini-companion-edit-name'."
  (setq edit (or edit (gemini-companion-edit-current)))
  (concat (gemini-companion-edit-name edit plain)
          (pcase (and (equal (gemini-companion-edit-texts-state edit)
                             (gemini-companion-edit-compared edit))
                      (gemini-companion-edit-hunks-counts edit))
            ((cl-struct gemini-companion-hunk-counts hunks excluded added removed)
             (format ": %s (%s)"
                     (if (zerop excluded)
                         (format (ngettext "%d hunk" "%d hunks" hunks) hunks)
                       (format "%d of %d hunks" (- hunks excluded) hunks))
                     (gemini-companion-hunk-amount added removed))))))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'summary)))
  "Return the file of the review and its amount of change, a text."
  (gemini-companion-edit-hunks-summary))

;;;; Excluded hunks

(defun gemini-companion-edit-hunks--left-p (edit)
  "Return non-nil if EDIT has at least two hunks that are not excluded."
  (when-let* ((counts (gemini-companion-edit-hunks-counts edit)))
    (< (1+ (gemini-companion-hunk-counts-excluded counts))
       (gemini-companion-hunk-counts-hunks counts))))

(defun gemini-companion-edit-hunks--check-utf-8 (edit)
  "Signal a `user-error' if EDIT can only be answered as a whole."
  (unless (gemini-companion-edit-texts-utf-8-p edit)
    (user-error "%s is not text in UTF-8; accept or reject the whole proposal"
                (gemini-companion-edit-name edit))))

(defun gemini-companion-edit-hunks-toggle (edit hunk)
  "Exclude HUNK from the proposal of EDIT, or restore it.
HUNK is one of `gemini-companion-edit-hunks'.  Return non-nil if it is
excluded now.  Ask before excluding the last one; refuse that of a new file."
  (gemini-companion-edit-open-or-error edit)
  (let* ((proposal (gemini-companion-edit-proposal-buffer edit))
         (excluded (member hunk (gemini-companion-hunk-excluded proposal))))
    (gemini-companion-edit-hunks--check-utf-8 edit)
    (let ((sure (or excluded
                    (gemini-companion-edit-hunks--left-p edit)
                    ;; Without it, an empty file would be written.
                    (and (gemini-companion-edit-new-p edit)
                         (user-error "%s is new; %s rejects it"
                                     (gemini-companion-edit-name edit)
                                     (substitute-command-keys
                                      "\\[gemini-companion-edit-reject]")))
                    (gemini-companion-choice-y-or-n-p
                     "This is the only remaining hunk; exclude it? "))))
      ;; The edit may end while the question is asked.
      (gemini-companion-edit-open-or-error edit)
      (unless sure
        (user-error "Hunk not excluded")))
    (prog1 (gemini-companion-hunk-toggle hunk proposal)
      (gemini-companion-edit-notify edit 'toggled))))

(defun gemini-companion-edit-hunks-text-without (edit new-p old-p)
  "Return the text of the proposal of EDIT without the selected lines.
It has those of the file in their place.  For NEW-P and OLD-P, which select
lines of hunks, see `gemini-companion-hunk-selection'.  Hunks that are excluded
stay in the text, and marked.  Signal a `user-error' if no line is selected, or
nothing else is proposed."
  (gemini-companion-edit-open-or-error edit)
  (gemini-companion-edit-hunks--check-utf-8 edit)
  (let* ((proposal (gemini-companion-edit-proposal-buffer edit))
         (lines (gemini-companion-hunk-split
                 (gemini-companion-text-of-buffer proposal)))
         (hunks (seq-difference (gemini-companion-edit-hunks edit)
                                (gemini-companion-hunk-excluded proposal)))
         (parts (delq nil (mapcar (lambda (hunk)
                                    (gemini-companion-hunk-selection hunk lines new-p old-p))
                                  hunks))))
    (cond ((null parts)
           (user-error "No line to exclude in the region"))
          ((equal (mapcar #'gemini-companion-hunk-lines parts)
                  (mapcar #'gemini-companion-hunk-lines hunks))
           (user-error "Nothing else is proposed; reject the proposal instead")))
    (gemini-companion-lines-join (gemini-companion-lines-without parts lines))))

(defun gemini-companion-edit-hunks--restore (edit hunks)
  "Restore the excluded hunks of EDIT that were edited, and report that.
For HUNKS, see `gemini-companion-hunk-prune'."
  (let ((count (gemini-companion-hunk-prune
                (gemini-companion-edit-proposal-buffer edit) hunks)))
    (when (< 0 count)
      (message
       (ngettext "An excluded hunk of %2$s has changed and was restored"
                 "%1$d excluded hunks of %2$s have changed and were restored"
                 count)
       count (gemini-companion-edit-name edit 'plain))
      (gemini-companion-edit-notify edit 'restored))))

(defun gemini-companion-edit-hunks-edited (&rest _)
  "Restore the excluded hunks in the current buffer that were just edited."
  (when-let* ((edit gemini-companion-edit-here))
    (gemini-companion-edit-hunks--restore edit t)
    (gemini-companion-edit-notify edit 'changed)))
(put 'gemini-companion-edit-hunks-edited 'permanent-local-hook t)

(provide 'gemini-companion-edit-hunks)
;;; gemini-companion-edit-hunks.el ends here
