;;; gemini-companion-blocks.el --- Blocks of changes in a unified diff  -*- lexical-binding: t; -*-

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

;; Where in the text of a unified diff the hunks are, and which lines of the
;; two files each block of changed lines in them is about.  A hunk of `diff'
;; may hold several blocks that are near each other.  Only reads the buffer.

;;; Code:

(require 'seq)

(defconst gemini-companion-blocks-header-re
  (concat "^@@ -\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?"
          " \\+\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)? @@")
  "What the first line of a hunk looks like.")

(defun gemini-companion-blocks-header ()
  "Return where the hunk at point begins."
  (save-excursion
    (end-of-line)
    (or (re-search-backward gemini-companion-blocks-header-re nil t)
        (user-error "No hunk here"))))

(defun gemini-companion-blocks-sides (header)
  "Return the numbers in the HEADER of a hunk.
A list (OLD OLD-COUNT NEW NEW-COUNT) of lines, from 1 on."
  (save-excursion
    (goto-char header)
    (looking-at gemini-companion-blocks-header-re)
    (pcase-let ((`(,old ,old-count ,new ,new-count)
                 (mapcar (lambda (group)
                           (string-to-number (or (match-string group) "1")))
                         '(1 2 3 4))))
      ;; A side without lines names the line before it.
      (list (if (zerop old-count) (1+ old) old) old-count
            (if (zerop new-count) (1+ new) new) new-count))))

(defun gemini-companion-blocks-under (header)
  "Return the blocks of changed lines in the hunk at HEADER, in order.
Each is a list (OLD OLD-COUNT NEW NEW-COUNT BEG END): lines of the
original, of the proposal with no hunk excluded, and positions here."
  (pcase-let ((`(,old ,old-left ,new ,new-left)
               (gemini-companion-blocks-sides header))
              (blocks nil)
              (block nil))
    (save-excursion
      (goto-char header)
      (forward-line)
      (while (and (or (< 0 old-left) (< 0 new-left)) (not (eobp)))
        (let ((sign (char-after)))
          (cond ((memq sign '(?- ?+))
                 (unless block
                   (setq block (list old 0 new 0 (point) (point)))
                   (push block blocks)))
                ((not (eq sign ?\\))
                 (setq block nil)))
          (unless (memq sign '(?+ ?\\))
            (setq old (1+ old) old-left (1- old-left))
            (when block (setf (nth 1 block) (1+ (nth 1 block)))))
          (unless (memq sign '(?- ?\\))
            (setq new (1+ new) new-left (1- new-left))
            (when block (setf (nth 3 block) (1+ (nth 3 block)))))
          (forward-line)
          (when block (setf (nth 5 block) (point))))))
    (nreverse blocks)))

(defun gemini-companion-blocks-at-point (header)
  "Return the block at point, in a list, or all of the hunk at HEADER."
  (let ((blocks (gemini-companion-blocks-under header)))
    (or (seq-filter (lambda (block)
                      (and (<= (nth 4 block) (point))
                           (< (point) (nth 5 block))))
                    blocks)
        blocks)))

(defun gemini-companion-blocks-count ()
  "Return how many blocks of changed lines the current buffer has."
  (save-excursion
    (goto-char (point-min))
    (how-many "^[ @].*\n[-+]")))

(provide 'gemini-companion-blocks)
;;; gemini-companion-blocks.el ends here
