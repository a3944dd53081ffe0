;;; gemini-companion-replace.el --- Replacing the text of a buffer in place  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Replace the text of a buffer by another text.  Only lines that differ are replaced,
;; so that point in each window, markers, overlays and the undo list are preserved.

;;; Code:

(require 'gemini-companion-garbage)
(require 'gemini-companion-hunk)
(require 'gemini-companion-text)

;;;; Replacement

(defun gemini-companion-replace-text (text &optional beg end)
  "Replace the text of the current buffer by TEXT, as one undo step.
If BEG and END are non-nil, replace only the whole lines between them.  Only
lines that differ are changed, and in them only the part that differs, so that
point, windows, markers and overlays stay.  A unibyte buffer gets the bytes of
TEXT in UTF-8.

Return the positions of the changed lines, a list of (BEG . END); they are
equal where lines were deleted.  Change hooks run once for all changes.  If
these hooks modify the text, it becomes TEXT nevertheless, but some positions
may be missing."
  (let ((target (current-buffer))
        (end (and end (copy-marker end t)))
        (hooks (not inhibit-modification-hooks))
        (deactivate-mark nil)
        (inhibit-quit t)
        (inhibit-read-only t)
        ;; A hook that runs in the midst of a change could leave half of the text.
        (inhibit-modification-hooks t))
    (gemini-companion-garbage-later
      (with-temp-buffer
        (set-buffer-multibyte (buffer-local-value 'enable-multibyte-characters
                                                  target))
        (insert (if enable-multibyte-characters
                    text
                  (gemini-companion-text-utf-8 text)))
        (let ((source (current-buffer)))
          (with-current-buffer target
            (save-excursion
              (save-restriction
                (undo-boundary)
                (prog1 (cl-flet ((replace (hooks)
                                   (if end (narrow-to-region beg end) (widen))
                                   (gemini-companion-replace--lines source hooks)))
                         (let ((changed (replace hooks)))
                           ;; Only a hook may have changed the new text.
                           (if (and changed hooks)
                               (nconc changed (replace nil))
                             changed)))
                  (undo-boundary))))))))))

(defun gemini-companion-replace--differences (source)
  "Return the hunks between the accessible text and the buffer SOURCE."
  (unless (let ((case-fold-search nil))
            (zerop (compare-buffer-substrings nil nil nil source nil nil)))
    (condition-case nil
        (gemini-companion-hunk-compare
         (buffer-substring-no-properties (point-min) (point-max))
         (gemini-companion-text-of-buffer source))
      ;; Without the comparison, more lines are replaced, by the same text.
      (gemini-companion-text-not-compared
       (list (gemini-companion-hunk-make
              0 (count-lines (point-min) (point-max))
              0 (with-current-buffer source
                  (count-lines (point-min) (point-max)))
              nil))))))

(defun gemini-companion-replace--lines (source hooks)
  "Replace the accessible lines that differ from the buffer SOURCE.
Run the change hooks if HOOKS is non-nil.  Return the positions of the
new lines."
  (when-let* ((hunks (gemini-companion-replace--differences source)))
    (let* ((beginning-of (lambda (line)
                           (goto-char (point-min))
                           (forward-line line)
                           (point)))
           (beg (funcall beginning-of (gemini-companion-hunk-old (car hunks))))
           (end (funcall beginning-of (gemini-companion-hunk-old-end
                                       (car (last hunks)))))
           (run (if hooks #'run-hook-wrapped #'ignore))
           size list-was-empty)
      (funcall run 'before-change-functions #'gemini-companion-text-call
               beg end)
      (setq size (buffer-size))
      ;; Emacs reports that an empty undo list is broken, which would
      ;; clear the echo area.
      (unless buffer-undo-list
        (setq buffer-undo-list (list nil)
              list-was-empty t))
      (prog1 (combine-change-calls beg end
               (gemini-companion-replace--each-hunk hunks source))
        ;; A boundary at the end of the list makes undo-tree loop.
        (when list-was-empty
          (setq buffer-undo-list (nbutlast buffer-undo-list)))
        (funcall run 'after-change-functions #'gemini-companion-text-call
                 beg (+ end (- (buffer-size) size)) (- end beg))))))

(defun gemini-companion-replace--each-hunk (hunks source)
  "Replace the lines of each of HUNKS by the new ones in the buffer SOURCE.
Return their positions."
  (goto-char (point-min))
  (let ((next 0))
    (mapcar (lambda (hunk)
              (forward-line (- (gemini-companion-hunk-old hunk) next))
              (setq next (gemini-companion-hunk-old-end hunk))
              (let ((beg (point))
                    (count (gemini-companion-hunk-old-count hunk))
                    (new-count (gemini-companion-hunk-new-count hunk)))
                ;; Replace line by line until one side has no more.
                (while (and (< 0 count) (< 1 new-count) (not (eobp)))
                  (gemini-companion-replace--edit 1 source 1)
                  (setq count (1- count)
                        new-count (1- new-count)))
                (gemini-companion-replace--edit count source new-count)
                (cons beg (point))))
            hunks)))

(defun gemini-companion-replace--edit (count source new-count)
  "Replace COUNT lines at point by NEW-COUNT lines of the buffer SOURCE.
Keep the common prefix and suffix.  The text before point is the same in both
buffers, so the lines begin at the same position in SOURCE."
  (let* ((beg (point))
         (new-beg (1+ (- beg (point-min))))
         (new (with-current-buffer source
                (goto-char new-beg)
                (forward-line new-count)
                (buffer-substring new-beg (point))))
         (old (progn (forward-line count)
                     (buffer-substring-no-properties beg (point))))
         (head (length (fill-common-string-prefix old new)))
         (tail (length (fill-common-string-prefix
                        (reverse (substring old head))
                        (reverse (substring new head))))))
    (goto-char (+ beg head))
    ;; A marker at the beginning of the tail, or of the next line, stays there.
    (funcall (if (or (< 0 count) (< (buffer-size) (point)))
                 #'insert
               #'insert-before-markers)
             (substring new head (- (length new) tail)))
    (delete-char (- (length old) head tail))
    (forward-char tail)))

(provide 'gemini-companion-replace)
;;; gemini-companion-replace.el ends here
