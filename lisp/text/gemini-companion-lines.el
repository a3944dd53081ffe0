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

(defun gemini-companion-lines--align (old new weights)
  "Return a longest common subsequence of OLD and NEW, two vectors of lines.
The value is a list of (OLD-INDEX . NEW-INDEX) in order.  WEIGHTS is a vector
with 0 or 1 for each line of OLD: of the longest subsequences, return one with
the greatest sum of weights."
  (let* ((rows (length old))
         (columns (length new))
         (width (1+ columns))
         ;; Cell (I, J) is the value of the best pairs among the lines from I and J.
         (cells (make-vector (* (1+ rows) width) 0))
         (pairs nil)
         (i 0)
         (j 0)
         ;; A pair is worth more than all weights together.
         (pair-value (1+ rows)))
    (cl-loop
     for i downfrom (1- rows) to 0
     for line = (aref old i)
     for value = (+ pair-value (aref weights i))
     do (cl-loop
         for j downfrom (1- columns) to 0
         for cell = (+ (* i width) j)
         do (aset cells cell
                  (max (aref cells (+ cell width))
                       (aref cells (1+ cell))
                       (if (string= line (aref new j))
                           (+ value (aref cells (+ cell width 1)))
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
         (gemini-companion-lines--align old new (make-vector rows 0))
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

;;;; Following

(defun gemini-companion-lines--follower (old new)
  "Return a function that follows lines of OLD to NEW, two versions of a text.
Both are vectors of lines.  Called with an INDEX and a COUNT, the function
returns the index in NEW of the COUNT lines at INDEX of OLD, `none' if NEW does
not have them, or nil if that is not certain.  The nearest lines above and
below that both versions have exactly once, or the ends of the text, bound
these lines.  Between them, both versions must have the COUNT lines as often."
  (let ((in-old (gemini-companion-lines--indices old))
        (in-new (gemini-companion-lines--indices new)))
    (lambda (index count)
      (gemini-companion-lines--follow old new index count
                                      (lambda (k)
                                        (let ((line (aref old k)))
                                          (pcase (gethash line in-old)
                                            (`(,_) (pcase (gethash line in-new)
                                                     (`(,there) there))))))))))

(defun gemini-companion-lines--follow (old new index count pair)
  "Return the index in NEW of the COUNT lines at INDEX of OLD, `none' or nil.
For these, see `gemini-companion-lines--follower'.  PAIR is a function that
returns for an index in OLD the one in NEW if both have the line exactly once,
or else nil."
  (let* ((quoted (seq-subseq old index (+ index count)))
         (from 0)
         (new-from 0)
         (to (length old))
         (new-to (length new)))
    (cl-loop for k downfrom (1- index) to 0
             for there = (funcall pair k)
             when there do (setq from (1+ k)
                                 new-from (1+ there))
             until there)
    (cl-loop for k from (+ index count) below (length old)
             for there = (funcall pair k)
             when there do (setq to k
                                 new-to there)
             until there)
    (let ((was (gemini-companion-lines--occurrences quoted old from to))
          (is (gemini-companion-lines--occurrences quoted new new-from new-to)))
      (cond ((null is) 'none)
            ((length= was (length is)) (nth (seq-position was index) is))))))

(defun gemini-companion-lines--indices (lines)
  "Return a table from the texts of LINES, a vector, to lists of their indices."
  (let ((table (make-hash-table :test 'equal :size (length lines))))
    (dotimes (k (length lines))
      (push k (gethash (aref lines k) table)))
    table))

(defun gemini-companion-lines--occurrences (quoted lines from to)
  "Return the indices in LINES where the lines QUOTED begin; both are vectors.
Search from the index FROM to TO: all lines of a match are before TO."
  (cl-loop for k from from to (- to (length quoted))
           when (cl-loop for line across quoted
                         for i from k
                         always (string= line (aref lines i)))
           collect k))

(provide 'gemini-companion-lines)
;;; gemini-companion-lines.el ends here
