;;; gemini-companion-hunks.el --- Parts of a proposal that are dropped  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software; you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.

;; This program is distributed in the hope that it will be useful,
;; but WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
;; GNU General Public License for more details.

;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.


;;; Commentary:

;; A hunk is dropped from a proposal by putting the lines of the original in
;; its place, and an overlay there keeps what was proposed, so that it can be
;; taken back.  The overlays are in the proposal buffer, so that they are the
;; same for each view.  The full text of a proposal is the one with nothing
;; dropped.  A dropped hunk that the person edits is not dropped any more.

;;; Code:

(require 'seq)
(require 'subr-x)

(defface gemini-companion-dropped
  '((t :inherit shadow :strike-through t))
  "Face of a hunk that is dropped from a proposal."
  :group 'gemini-companion-reviews)

;; Many terminals strike nothing through.
(defconst gemini-companion-hunks-mark (propertize "x " 'face 'warning)
  "What stands before the lines of a hunk that is dropped.")

;;;; State

(defvar-local gemini-companion-hunks-edited-function nil
  "Function called when a dropped hunk of this proposal was edited, or nil.
It is not dropped any more then.")
(put 'gemini-companion-hunks-edited-function 'permanent-local t)

;;;; Looking

(defun gemini-companion-hunks-dropped ()
  "Return the overlays of the dropped hunks of the current buffer, in order."
  (save-restriction
    (widen)
    (sort (seq-filter #'gemini-companion-hunks--intact-p
                      (overlays-in (point-min) (point-max)))
          (lambda (a b) (< (overlay-start a) (overlay-start b))))))

(defun gemini-companion-hunks--intact-p (overlay)
  "Return non-nil if OVERLAY is one of a dropped hunk, as it was dropped."
  (and (overlay-get overlay 'gemini-companion-proposed)
       (string= (overlay-get overlay 'gemini-companion-original)
                (gemini-companion-hunks-text (overlay-start overlay)
                                             (overlay-end overlay)))))

(defun gemini-companion-hunks-text (beg end)
  "Return the text from BEG to END, which need not be visible."
  (save-restriction
    (widen)
    (buffer-substring-no-properties beg end)))

(defun gemini-companion-hunks-at (beg end)
  "Return the overlay of a dropped hunk between BEG and END, or nil."
  (seq-find (lambda (overlay)
              (and (<= beg (overlay-start overlay))
                   (<= (overlay-end overlay) end)))
            (gemini-companion-hunks-dropped)))

(defun gemini-companion-hunks-ranges ()
  "Return where the dropped hunks are, a list in order.
Each element is (OVERLAY FIRST COUNT): COUNT lines from the line
FIRST on, counted in the full text, 1-based."
  (save-restriction
    (widen)
    (let ((shift 0))
      (mapcar
       (lambda (overlay)
         (let* ((proposed (overlay-get overlay 'gemini-companion-proposed))
                (original (overlay-get overlay 'gemini-companion-original))
                (count (gemini-companion-hunks--lines proposed))
                (first (+ shift (line-number-at-pos (overlay-start overlay)))))
           (setq shift (+ shift (- count (gemini-companion-hunks--lines
                                          original))))
           (list overlay first count)))
       (gemini-companion-hunks-dropped)))))

(defun gemini-companion-hunks--lines (text)
  "Return how many lines TEXT has; the last one may be without an end."
  (let ((count 0)
        (position 0)
        next)
    (while (setq next (string-search "\n" text position))
      (setq count (1+ count)
            position (1+ next)))
    (if (= position (length text))
        count
      (1+ count))))

(defun gemini-companion-hunks-position (line)
  "Return where the LINE of the full text begins in the current buffer.
LINE, 1-based, is not in a dropped hunk."
  (let ((shift 0))
    (pcase-dolist (`(,overlay ,first ,count) (gemini-companion-hunks-ranges))
      (when (< first line)
        (setq shift (+ shift
                       (- (gemini-companion-hunks--lines
                           (overlay-get overlay 'gemini-companion-original))
                          count)))))
    (gemini-companion-hunks-line-position (+ line shift))))

(defun gemini-companion-hunks-line-position (line)
  "Return where LINE, 1-based, of the current buffer begins."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (forward-line (1- line))
      (point))))

(defun gemini-companion-hunks-full-text (buffer)
  "Return the text of BUFFER with nothing dropped."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (let ((from (point-min))
            parts)
        (dolist (overlay (gemini-companion-hunks-dropped))
          (push (buffer-substring-no-properties from (overlay-start overlay))
                parts)
          (push (overlay-get overlay 'gemini-companion-proposed) parts)
          (setq from (overlay-end overlay)))
        (push (buffer-substring-no-properties from (point-max)) parts)
        (apply #'concat (nreverse parts))))))

;;;; Changing

(defun gemini-companion-hunks-drop (beg end original)
  "Put ORIGINAL, text of the original, in place of BEG to END.
What was there is kept, to be taken back."
  (let ((overlay (make-overlay beg end nil nil 'rear-advance))
        (proposed (gemini-companion-hunks-text beg end)))
    (overlay-put overlay 'gemini-companion-proposed proposed)
    (overlay-put overlay 'gemini-companion-original original)
    (if (string-empty-p original)
        (overlay-put overlay 'before-string
                     (concat gemini-companion-hunks-mark
                             (propertize "dropped\n" 'face 'warning)))
      (overlay-put overlay 'line-prefix gemini-companion-hunks-mark))
    (gemini-companion-hunks--replace beg end original)
    (dolist (hook '(modification-hooks insert-in-front-hooks
                                       insert-behind-hooks))
      (overlay-put overlay hook '(gemini-companion-hunks--edited)))))

(defun gemini-companion-hunks--edited (overlay after &rest _)
  "Delete OVERLAY, a dropped hunk, if the person has edited it.
AFTER is non-nil after the edit."
  (when (and after
             (overlay-buffer overlay)
             (not (gemini-companion-hunks--intact-p overlay)))
    (delete-overlay overlay)
    (when gemini-companion-hunks-edited-function
      (funcall gemini-companion-hunks-edited-function))))

(defun gemini-companion-hunks-take-back (overlay)
  "Put what was proposed back in place of OVERLAY, a dropped hunk."
  (gemini-companion-hunks--replace
   (overlay-start overlay) (overlay-end overlay)
   (prog1 (overlay-get overlay 'gemini-companion-proposed)
     (overlay-put overlay 'gemini-companion-proposed nil)))
  (delete-overlay overlay))

(defun gemini-companion-hunks--replace (beg end text)
  "Replace BEG to END by TEXT, also in the overlays that end at END."
  (save-excursion
    (save-restriction
      (widen)
      (undo-boundary)
      (goto-char end)
      (insert text)
      (delete-region beg end)
      (undo-boundary))))

(defmacro gemini-companion-hunks-with-full-text (buffer &rest body)
  "Evaluate BODY with nothing dropped from BUFFER, then drop again.
The value is that of BODY.  BODY must not change the text."
  (declare (indent 1) (debug t))
  (let ((proposal (make-symbol "proposal"))
        (lifted (make-symbol "lifted")))
    ;; BODY may change the current buffer, in which BUFFER is evaluated.
    `(let* ((,proposal ,buffer)
            (,lifted (gemini-companion-hunks--lift ,proposal)))
       (unwind-protect (progn ,@body)
         (gemini-companion-hunks--lay ,proposal ,lifted)))))

(defun gemini-companion-hunks--lift (buffer)
  "Take all dropped hunks of BUFFER back, and return what they were.
The value is a list of (POSITION PROPOSED ORIGINAL), the last one first."
  (with-current-buffer buffer
    (gemini-companion-hunks--unrecorded
     (lambda ()
       (let (lifted)
         (dolist (overlay (gemini-companion-hunks-dropped) lifted)
           (push (list (overlay-start overlay)
                       (overlay-get overlay 'gemini-companion-proposed)
                       (overlay-get overlay 'gemini-companion-original))
                 lifted)
           (gemini-companion-hunks-take-back overlay)))))))

(defun gemini-companion-hunks--lay (buffer lifted)
  "Drop again what was LIFTED from BUFFER."
  (with-current-buffer buffer
    (gemini-companion-hunks--unrecorded
     (lambda ()
       (pcase-dolist (`(,position ,proposed ,original) lifted)
         (gemini-companion-hunks-drop
          position (+ position (length proposed)) original))))))

(defun gemini-companion-hunks--unrecorded (function)
  "Return the value of FUNCTION, whose edits undo is not to see.
They cancel each other out."
  (let ((modified (buffer-modified-p))
        (buffer-undo-list t))
    (prog1 (funcall function)
      (restore-buffer-modified-p modified))))

(provide 'gemini-companion-hunks)
;;; gemini-companion-hunks.el ends here
