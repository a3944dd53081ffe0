;;; gemini-companion-lines.el --- Texts compared by lines  -*- lexical-binding: t; -*-

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
(require 'gemini-companion-text)

;;;; State

(cl-defstruct (gemini-companion-lines-region
               (:noinline t)
               (:constructor gemini-companion-lines-region
                             (old old-end new new-end))
               (:copier nil))
  "Range of lines in which two vectors differ.
The lines of the first vector from index OLD to OLD-END, exclusive, correspond
to the lines of the second one from NEW to NEW-END."
  old old-end new new-end)

(cl-defstruct (gemini-companion-lines-change
               (:noinline t)
               (:constructor gemini-companion-lines-change (start end lines))
               (:copier nil))
  "A change in a text: the range of lines that it made, and what it replaced.
The change made the lines from index START to END, exclusive; it replaced
LINES, a list of strings."
  start end lines)

(defconst gemini-companion-lines--most-cells 40000
  "Greatest number of pairs of lines that are compared without the program diff.")

;;;; Comparison

(defun gemini-companion-lines-split (text)
  "Return the lines of TEXT, a vector of strings with their newlines.
Carriage returns before newlines, and a byte order mark, are removed."
  (let ((text (gemini-companion-text-normalized text))
        (lines nil)
        (from 0)
        (to nil))
    (while (setq to (string-search "\n" text from))
      (push (substring text from (1+ to)) lines)
      (setq from (1+ to)))
    (when (< from (length text))
      (push (substring text from) lines))
    (vconcat (nreverse lines))))

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

(defun gemini-companion-lines--align (old new)
  "Return a longest common subsequence of OLD and NEW, two vectors of lines.
The value is a list of (OLD-INDEX . NEW-INDEX) in order."
  (let* ((rows (length old))
         (columns (length new))
         (width (1+ columns))
         ;; Cell (I, J) is the number of pairs among the lines from I and J.
         (cells (make-vector (* (1+ rows) width) 0))
         (pairs nil)
         (i 0)
         (j 0))
    (cl-loop
     for i downfrom (1- rows) to 0
     for line = (aref old i)
     do (cl-loop
         for j downfrom (1- columns) to 0
         for cell = (+ (* i width) j)
         do (aset cells cell
                  (max (aref cells (+ cell width))
                       (aref cells (1+ cell))
                       (if (string= line (aref new j))
                           (1+ (aref cells (+ cell width 1)))
                         0)))))
    (while (and (< i rows) (< j columns))
      (let ((cell (+ (* i width) j)))
        (cond ((= (aref cells cell) (aref cells (+ cell width)))
               (cl-incf i))
              ((= (aref cells cell) (aref cells (1+ cell)))
               (cl-incf j))
              (t
               (push (cons i j) pairs)
               (cl-incf i)
               (cl-incf j)))))
    (nreverse pairs)))

(defun gemini-companion-lines--regions-between (pairs old-length new-length)
  "Return the regions between PAIRS of equal lines, a list in order.
OLD-LENGTH and NEW-LENGTH are the numbers of lines of the two texts."
  (let ((i 0)
        (j 0)
        (regions nil))
    (pcase-dolist (`(,old . ,new)
                   (append pairs (list (cons old-length new-length))))
      (unless (and (= i old) (= j new))
        (push (gemini-companion-lines-region i old j new) regions))
      (setq i (1+ old)
            j (1+ new)))
    (nreverse regions)))

(defun gemini-companion-lines--compared (old new)
  "Return the regions in which the vectors of lines OLD and NEW differ.
OLD and NEW must have no common first line and no common last line."
  (let ((rows (length old))
        (columns (length new)))
    (if (<= (* rows columns) gemini-companion-lines--most-cells)
        (gemini-companion-lines--regions-between
         (gemini-companion-lines--align old new)
         rows columns)
      (mapcar (pcase-lambda (`(,line ,count ,new-line ,new-count))
                (gemini-companion-lines-region
                 (1- line) (+ line -1 count)
                 (1- new-line) (+ new-line -1 new-count)))
              (gemini-companion-text-diff
               (mapcar (lambda (lines) (mapconcat #'identity lines ""))
                       (list old new)))))))

(defun gemini-companion-lines-compare (old new)
  "Return the regions in which the vectors of lines OLD and NEW differ, a list.
The regions are in order, with at least one common line between two of them."
  (let* ((shorter (min (length old) (length new)))
         (head (cl-loop for i below shorter
                        while (string= (aref old i) (aref new i))
                        count t))
         (tail (cl-loop for i from 1 to (- shorter head)
                        while (string= (aref old (- (length old) i))
                                       (aref new (- (length new) i)))
                        count t))
         (old-end (- (length old) tail))
         (new-end (- (length new) tail)))
    (cond
     ((and (= head old-end) (= head new-end)) nil)
     ;; Lines were only inserted or only deleted.
     ((or (= head old-end) (= head new-end))
      (list (gemini-companion-lines-region head old-end head new-end)))
     (t
      (mapcar (lambda (region)
                (gemini-companion-lines-region
                 (+ head (gemini-companion-lines-region-old region))
                 (+ head (gemini-companion-lines-region-old-end region))
                 (+ head (gemini-companion-lines-region-new region))
                 (+ head (gemini-companion-lines-region-new-end region))))
              (gemini-companion-lines--compared
               (substring old head old-end) (substring new head new-end)))))))

;;;; Texts without changes

(defun gemini-companion-lines-without (changes lines)
  "Return LINES, a vector, with CHANGES undone; the value is a vector.
CHANGES are some of the `gemini-companion-lines-change's in LINES, in order."
  (let ((pieces nil)
        (from 0))
    (dolist (change changes)
      (push (substring lines from (gemini-companion-lines-change-start change))
            pieces)
      (push (gemini-companion-lines-change-lines change) pieces)
      (setq from (gemini-companion-lines-change-end change)))
    (apply #'vconcat (nreverse (cons (substring lines from) pieces)))))

(defun gemini-companion-lines-undo-in-text (changes text)
  "Return TEXT with CHANGES undone.
CHANGES are some of the `gemini-companion-lines-change's in its lines, in
order.  Other lines keep their line ends, and the text its byte order mark.
A restored line gets the line end of the line that it replaces, or else of
the line before it."
  (let* ((mark (if (string-prefix-p "\uFEFF" text) "\uFEFF" ""))
         (lines (vconcat (split-string (string-remove-prefix mark text) "^" t)))
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
        (add-until (gemini-companion-lines-change-start change))
        (dolist (line (gemini-companion-lines-change-lines change))
          (let ((plain (string-remove-suffix "\n" line))
                (model (cond ((< from (gemini-companion-lines-change-end change))
                              (aref lines from))
                             ((car pieces))
                             ((< 0 (length lines)) (aref lines 0))
                             (t ""))))
            (add (concat plain
                         (and (string-suffix-p "\n" line) (end-of model))))
            (cl-incf from)))
        (setq from (gemini-companion-lines-change-end change)))
      (add-until (length lines))
      (apply #'concat mark (nreverse pieces)))))

(provide 'gemini-companion-lines)
;;; gemini-companion-lines.el ends here
