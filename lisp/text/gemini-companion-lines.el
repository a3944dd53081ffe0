;;; gemini-companion-lines.el --- Texts as lines  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; All functions are pure: they take and return vectors of lines or texts, and never
;; read a file or a buffer.  A line includes its newline.  The last line may have no
;; newline, and then differs from the same line with one.  CRLF and a byte order
;; mark do not belong to lines, but to the format of a file.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)
(require 'gemini-companion-hunk)
(require 'gemini-companion-text)

;;;; Lines

(defun gemini-companion-lines-split (text)
  "Return the lines of TEXT, a vector of strings with their newlines.
Carriage returns before newlines, and a byte order mark, are removed."
  (gemini-companion-hunk-split (gemini-companion-text-normalized text)))

(defun gemini-companion-lines-join (lines &optional end)
  "Return the text of LINES, a vector, with END in place of each newline.
A line without a newline gets END as well unless it is the last one."
  (let ((last (1- (length lines)))
        (end (or end "\n")))
    (mapconcat #'identity
               (seq-map-indexed
                (lambda (line i)
                  (let ((text (string-remove-suffix "\n" line)))
                    (if (and (= i last) (not (string-suffix-p "\n" line)))
                        text
                      (concat text end))))
                lines)
               "")))

;;;; Texts without changes

(defun gemini-companion-lines-without (changes lines)
  "Return LINES, a vector, with CHANGES undone; the value is a vector.
CHANGES are `gemini-companion-hunk's, in order, of which LINES are the second
text."
  (let ((pieces nil)
        (from 0))
    (dolist (change changes)
      (push (substring lines from (gemini-companion-hunk-new change)) pieces)
      (push (gemini-companion-hunk-lines change) pieces)
      (setq from (gemini-companion-hunk-new-end change)))
    (apply #'vconcat (nreverse (cons (substring lines from) pieces)))))

(defun gemini-companion-lines-undo-in-text (changes text)
  "Return TEXT with CHANGES undone.
CHANGES are `gemini-companion-hunk's, in order, of which it is the second text.
Other lines keep their line ends, and the text its byte order mark.  A restored
line gets the line end of the line that it replaces, or else of the line before
it."
  (let* ((mark (if (string-prefix-p "\uFEFF" text) "\uFEFF" ""))
         (lines (gemini-companion-hunk-split (string-remove-prefix mark text)))
         (end (if (string-search "\r\n" text) "\r\n" "\n"))
         ;; The last piece first.  FROM is the index of the next line to add.
         (pieces nil)
         (from 0))
    (cl-labels ((end-of (line)
                  (cond ((string-suffix-p "\r\n" line) "\r\n")
                        ((string-suffix-p "\n" line) "\n")
                        (t end)))
                (add (line)
                  ;; The last line of the file, without a newline, is not last now.
                  (when (and pieces (not (string-suffix-p "\n" (car pieces))))
                    (push (end-of (or (cadr pieces) "")) pieces))
                  (push line pieces))
                (add-until (index)
                  (while (< from index)
                    (add (aref lines from))
                    (cl-incf from))))
      (dolist (change changes)
        (add-until (gemini-companion-hunk-new change))
        (dolist (line (gemini-companion-hunk-lines change))
          (let ((plain (string-remove-suffix "\n" line))
                (model (cond ((< from (gemini-companion-hunk-new-end change))
                              (aref lines from))
                             ((car pieces))
                             ((< 0 (length lines)) (aref lines 0))
                             (t ""))))
            (add (concat plain
                         (and (string-suffix-p "\n" line) (end-of model))))
            (cl-incf from)))
        (setq from (gemini-companion-hunk-new-end change)))
      (add-until (length lines))
      (apply #'concat mark (nreverse pieces)))))

(defun gemini-companion-lines-fit (text now)
  "Return TEXT with the byte order mark and the line ends of the text NOW.
If these are mixed, each line of NOW that TEXT has keeps its own, and another
line has that of the line that it replaces, or else of the line before it.
Signal `gemini-companion-text-not-compared' if diff fails."
  (let ((crlf (string-search "\r\n" now)))
    (if (and crlf (string-match-p "\\(?:\\`\\|[^\r]\\)\n" now))
        (gemini-companion-lines-undo-in-text
         (gemini-companion-hunk-compare-lines (gemini-companion-lines-split text)
                                              (gemini-companion-lines-split now))
         now)
      (concat (and (string-prefix-p "\uFEFF" now) "\uFEFF")
              (string-replace "\n" (if crlf "\r\n" "\n")
                              (gemini-companion-text-normalized text))))))

(provide 'gemini-companion-lines)
;;; gemini-companion-lines.el ends here
