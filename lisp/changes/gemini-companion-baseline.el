;;; gemini-companion-baseline.el --- What is left of an edit in its file  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What is left of an edit that is undone in the list is computed from three texts of
;; its file: the baseline, which is the text before the edit; the text after it; and
;; the text now.  Whatever else happens to the file (typing, undo, a formatter, git)
;; is what differs between the text after it and now, and belongs into the baseline:
;; that is folding.  What still differs between the folded baseline and the text now
;; is the changes.
;;
;;                 by CLIs                    by others
;;     baseline  ----------->  last write  ---------------->  now
;;        |                                                    |
;;        +----- by others ----->  folded baseline  - changes -+
;;
;; All functions are pure: they take and return vectors of lines (see
;; gemini-companion-lines.el), and never look at a file or a buffer.  The changes of
;; all edits of a file are another matter, see `gemini-companion-weave'.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'gemini-companion-hunk)
(require 'gemini-companion-lines)

;;;; State

(cl-defstruct (gemini-companion-baseline
               (:noinline t)
               (:constructor gemini-companion-baseline--make
                             (text written regions))
               (:copier nil))
  "The texts of a file with changes by CLIs that nobody has reviewed.
TEXT is the text without them, a vector of lines.  WRITTEN is the text
as the last write of a CLI left it.  REGIONS are where the second differs
from the first, a list of `gemini-companion-lines-region's in order.
No slot is ever set."
  text written regions)

(cl-defstruct (gemini-companion-baseline-change
               (:include gemini-companion-lines-change)
               (:noinline t)
               (:constructor gemini-companion-baseline--change
                             (start end lines regions mixed))
               (:copier nil))
  "A change in the text now by an edit of a CLI.
It has the lines now from index START to END, exclusive; without it, LINES,
a list, would be there.  REGIONS are those of the baseline from which it
comes.  If MIXED is non-nil, others have changed or deleted lines there
that a CLI has written, so that what is there now is not the CLI's alone."
  regions mixed)

(defconst gemini-companion-baseline-context 3
  "How many lines around a change are replaced if the change is not there.
Where others have replaced the lines of a CLI and that many before and
after them, as when another branch is checked out, the change is not in
the text now; it is again when the text of before comes back.")

;;;; Where the lines of the last write are now

;; Lines that are alike, such as closing braces, can be taken for one another: then
;; a line of the user would count as one that a CLI has inserted, and the other way
;; round.  So where a CLI and others have changed lines close to one another, a line
;; now counts as one that nobody has to review, if it can be either.

(defun gemini-companion-baseline--written-p (baseline)
  "Return which lines of the last write in BASELINE are those of a CLI.
It is a vector of booleans."
  (let ((own (make-bool-vector (length (gemini-companion-baseline-written baseline))
                               nil)))
    (dolist (region (gemini-companion-baseline-regions baseline) own)
      (cl-loop for i from (gemini-companion-lines-region-new region)
               below (gemini-companion-lines-region-new-end region)
               do (aset own i t)))))

(defun gemini-companion-baseline--slid (region written own)
  "Return REGION, moved to the lines of a CLI if others have deleted these.
WRITTEN are the lines of the last write, and OWN which of them are a CLI's.
A region of deleted lines may be moved by a line if the first line and the
one after the last are alike."
  (let* ((start (gemini-companion-lines-region-old region))
         (end (gemini-companion-lines-region-old-end region))
         (new (gemini-companion-lines-region-new region))
         (count (lambda (i) (if (aref own i) 1 0)))
         (best 0)
         (best-by 0))
    (if (or (= start end)
            (< new (gemini-companion-lines-region-new-end region)))
        region
      ;; Down, and up.
      (cl-loop with more = 0
               for by from 1
               while (and (< (+ end by -1) (length written))
                          (string= (aref written (+ start by -1))
                                   (aref written (+ end by -1))))
               do (cl-incf more (- (funcall count (+ end by -1))
                                   (funcall count (+ start by -1))))
               when (< best more) do (setq best more best-by by))
      (cl-loop with more = 0
               for by downfrom -1
               while (and (<= 0 (+ start by))
                          (string= (aref written (+ start by))
                                   (aref written (+ end by))))
               do (cl-incf more (- (funcall count (+ start by))
                                   (funcall count (+ end by))))
               when (< best more) do (setq best more best-by by))
      (gemini-companion-lines-region (+ start best-by) (+ end best-by)
                                     (+ new best-by) (+ new best-by)))))

(defun gemini-companion-baseline--places (baseline own now)
  "Return where the lines of the last write of BASELINE are in NOW.
It is a vector of indices, with nil for a line that others have deleted.
OWN says which lines are those of a CLI."
  (let* ((written (gemini-companion-baseline-written baseline))
         (places (make-vector (length written) nil))
         (others (mapcar (lambda (region)
                           (gemini-companion-baseline--slid region written own))
                         (gemini-companion-lines-compare written now))))
    (pcase-dolist (`(,i . ,place) (gemini-companion-lines-pairs-between
                                   others (length written)))
      (aset places i place))
    (dolist (window (gemini-companion-baseline--windows baseline others))
      (gemini-companion-baseline--realign places (car window) (cdr window)
                                          baseline own now))
    places))

(defun gemini-companion-baseline--windows (baseline others)
  "Return where a CLI and OTHERS have changed lines close to one another.
It is a list of (START . END), indices of lines of the last write of
BASELINE, in order.  OTHERS are regions between that and the text now."
  (let* ((last (length (gemini-companion-baseline-written baseline)))
         (margin (* 2 gemini-companion-baseline-context))
         (spans (seq-sort-by
                 #'car #'<
                 (append
                  (mapcar (lambda (region)
                            (list (gemini-companion-lines-region-old region)
                                  (gemini-companion-lines-region-old-end region)
                                  'others))
                          others)
                  (mapcar (lambda (region)
                            (list (gemini-companion-lines-region-new region)
                                  (gemini-companion-lines-region-new-end region)
                                  'cli))
                          (gemini-companion-baseline-regions baseline)))))
         (windows nil)
         (kinds nil)
         start end)
    (dolist (span (append spans '((nil nil nil))))
      (pcase-let ((`(,from ,to ,kind) span))
        (if (and start from (<= from (+ end margin)))
            (setq end (max end to)
                  kinds (cl-adjoin kind kinds))
          (when (cdr kinds)
            (push (cons (max 0 (- start margin)) (min last (+ end margin))) windows))
          (setq start from
                end to
                kinds (list kind)))))
    (nreverse windows)))

(defun gemini-companion-baseline--realign (places start end baseline own now)
  "Find again where the lines of the last write from START to END are in NOW.
That write is the one of BASELINE.  Set PLACES, whose other elements are
right.  OWN says which lines are those of a CLI.  If there are too many
lines, do nothing."
  (let* ((from (cl-loop for i downfrom (1- start) to 0
                        thereis (and (aref places i) (1+ (aref places i)))
                        finally return 0))
         (to (cl-loop for i from end below (length places)
                      thereis (aref places i)
                      finally return (length now)))
         ;; Lines that a CLI has removed may be there again.
         (woven (vconcat (gemini-companion-baseline--woven baseline start end)))
         (written (gemini-companion-baseline-written baseline))
         (text (gemini-companion-baseline-text baseline)))
    (when (<= (* (length woven) (- to from)) gemini-companion-lines-most-cells)
      (cl-loop for i from start below end
               do (aset places i nil))
      (pcase-dolist (`(,i . ,j)
                     (gemini-companion-lines-align
                      (vconcat (mapcar (pcase-lambda (`(,new . ,old))
                                         (if new (aref written new) (aref text old)))
                                       woven))
                      (substring now from to)
                      (vconcat (mapcar (pcase-lambda (`(,new . ,_))
                                         (if (and new (not (aref own new))) 1 0))
                                       woven))))
        (when-let* ((new (car (aref woven i))))
          (aset places new (+ from j)))))))

(defun gemini-companion-baseline--woven (baseline start end)
  "Return the lines of both texts of BASELINE, a list.
They are those from START to END of the last write, (INDEX), and each line
that a CLI has removed there, (nil . INDEX), before the one in its place."
  (let ((regions (gemini-companion-baseline-regions baseline))
        (woven nil)
        (i start))
    (while (or (< i end) regions)
      (let ((region (car regions)))
        (cond
         ((and region (< (gemini-companion-lines-region-new region) start))
          (pop regions))
         ((or (null region) (< i (gemini-companion-lines-region-new region)))
          (if (< i end)
              (push (list i) woven)
            (setq regions nil))
          (cl-incf i))
         (t
          (pop regions)
          (let ((old (gemini-companion-lines-region-old region))
                (old-end (gemini-companion-lines-region-old-end region))
                (new-end (gemini-companion-lines-region-new-end region)))
            (while (or (< old old-end) (< i new-end))
              (when (< old old-end)
                (push (cons nil old) woven)
                (cl-incf old))
              (when (< i new-end)
                (push (list i) woven)
                (cl-incf i))))))))
    (nreverse woven)))

;;;; Folding

(cl-defstruct (gemini-companion-baseline--gap
               (:noinline t)
               (:constructor gemini-companion-baseline--gap)
               (:copier nil))
  "What is between two lines now that nobody has to review.
It has the lines now from START to END, exclusive, and REGIONS of a CLI."
  start end regions)

(defun gemini-companion-baseline--gaps (baseline places own count)
  "Return the gaps of BASELINE that have a region of a CLI, a list in order.
PLACES are those of the lines of the last write among the COUNT lines now,
and OWN says which of them are those of a CLI."
  (let ((regions (gemini-companion-baseline-regions baseline))
        (gaps nil)
        (start 0))
    (cl-loop
     for i from 0 to (length places)
     for place = (if (= i (length places)) count
                   (and (not (aref own i)) (aref places i)))
     when place
     do (let ((inside (seq-take-while
                       (lambda (region)
                         (<= (gemini-companion-lines-region-new-end region) i))
                       regions)))
          (when inside
            (setq regions (nthcdr (length inside) regions))
            (push (gemini-companion-baseline--gap
                   :start start :end place :regions inside)
                  gaps))
          (setq start (1+ place))))
    (nreverse gaps)))

(defun gemini-companion-baseline--gone-p (region places own)
  "Return non-nil if the REGION of a CLI is not in the text now.
So it is if others have replaced it with the lines around it.  For
PLACES and OWN, see `gemini-companion-baseline--realign'."
  (let ((from (max 0 (- (gemini-companion-lines-region-new region)
                        gemini-companion-baseline-context)))
        (to (min (length places) (+ (gemini-companion-lines-region-new-end region)
                                    gemini-companion-baseline-context))))
    (and (cl-loop for i from from below to never (aref places i))
         (cl-loop for i from from below to thereis (not (aref own i))))))

(cl-defstruct (gemini-companion-baseline--removed
               (:noinline t)
               (:constructor gemini-companion-baseline--removed (text gone))
               (:copier nil))
  "A line of the baseline that a CLI has removed.
TEXT is the line.  If GONE is non-nil, others have removed it, too, with
the change.  If BACK is non-nil, others have brought it back."
  text gone back)

(defun gemini-companion-baseline--fold-gap (gap baseline places own now)
  "Return the change in GAP of BASELINE, also where there is none left.
For PLACES, OWN and NOW, see `gemini-companion-baseline--realign'."
  (let* ((text (gemini-companion-baseline-text baseline))
         (start (gemini-companion-baseline--gap-start gap))
         (end (gemini-companion-baseline--gap-end gap))
         (regions (gemini-companion-baseline--gap-regions gap))
         ;; For each line now, from where on in the removed lines one of others
         ;; stands that comes after it: for a line of a CLI, after what its region
         ;; has replaced, and for one that was brought back, after that.
         (after (make-vector (- end start) nil))
         (back (make-vector (- end start) nil))
         (deleted nil)
         (removed nil)
         (count 0))
    (dolist (region regions)
      (let ((gone (gemini-companion-baseline--gone-p region places own)))
        (cl-loop for i from (gemini-companion-lines-region-old region)
                 below (gemini-companion-lines-region-old-end region)
                 do (push (gemini-companion-baseline--removed (aref text i) gone)
                          removed)
                 (cl-incf count))
        (cl-loop for i from (gemini-companion-lines-region-new region)
                 below (gemini-companion-lines-region-new-end region)
                 for place = (aref places i)
                 do (cond (place (aset after (- place start) count))
                          ((not gone) (setq deleted t))))))
    (setq removed (vconcat (nreverse removed)))
    (let* ((others (vconcat (cl-loop for i from start below end
                                     unless (aref after (- i start)) collect i)))
           (pairs (gemini-companion-lines-pairs
                   (vconcat (seq-map #'gemini-companion-baseline--removed-text
                                     removed))
                   (vconcat (seq-map (apply-partially #'aref now) others)))))
      (pcase-dolist (`(,i . ,j) pairs)
        (setf (gemini-companion-baseline--removed-back (aref removed i)) t)
        (aset back (- (aref others j) start) i))
      (gemini-companion-baseline--change
       start end
       (gemini-companion-baseline--folded-lines (substring now start end)
                                                removed after back)
       regions
       (and deleted
            (or (< (length pairs) (length others))
                (< (length pairs) (length removed))))))))

(defun gemini-companion-baseline--folded-lines (lines removed after back)
  "Return the lines of the folded baseline in place of LINES, a vector.
REMOVED is a vector of `gemini-companion-baseline--removed' lines of the
baseline there.  For each of LINES, AFTER has an index if it is a line of a
CLI, and BACK has one if it is a removed line that others have brought
back; see `gemini-companion-baseline--fold-gap'.  The others stay where
they are in respect of these: before the first one, they stand before the
removed lines."
  (let ((inserted (make-vector (1+ (length removed)) nil))
        ;; The next line that was brought back, for each line.
        (following (make-vector (length lines) nil))
        (place 0))
    (cl-loop with next = nil
             for i downfrom (1- (length lines)) to 0
             do (aset following i next)
             (setq next (or (aref back i) next)))
    (dotimes (i (length lines))
      (cond
       ((aref back i) (setq place (1+ (aref back i))))
       ((aref after i) (setq place (max place (aref after i))))
       (t (push (aref lines i)
                (aref inserted (min place (or (aref following i) place)))))))
    (cl-loop for lines across inserted
             for i from 0
             for line = (and (< i (length removed)) (aref removed i))
             nconc (reverse lines)
             when (and line (or (not (gemini-companion-baseline--removed-gone line))
                                (gemini-companion-baseline--removed-back line)))
             collect (gemini-companion-baseline--removed-text line))))

(defun gemini-companion-baseline--all (baseline now)
  "Return the changes of BASELINE in the lines NOW, also where none are left."
  (let* ((own (gemini-companion-baseline--written-p baseline))
         (places (gemini-companion-baseline--places baseline own now)))
    (mapcar (lambda (gap)
              (gemini-companion-baseline--fold-gap gap baseline places own now))
            (gemini-companion-baseline--gaps baseline places own (length now)))))

(defun gemini-companion-baseline--shrunk (change now)
  "Return CHANGE without lines of NOW at either end that it does not change.
Return nil if it changes none.  If others have changed lines of the CLI,
theirs belong to it: the user is to see both."
  (let* ((start (gemini-companion-baseline-change-start change))
         (end (gemini-companion-baseline-change-end change))
         (lines (gemini-companion-baseline-change-lines change))
         last)
    (while (and lines (< start end) (string= (car lines) (aref now start)))
      (pop lines)
      (cl-incf start))
    (setq last (reverse lines))
    (while (and last (< start end) (string= (car last) (aref now (1- end))))
      (pop last)
      (cl-decf end))
    (cond ((not (or last (< start end))) nil)
          ((gemini-companion-baseline-change-mixed change) change)
          (t (gemini-companion-baseline--change
              start end (nreverse last)
              (gemini-companion-baseline-change-regions change) nil)))))

;;;; The changes of an edit

(defun gemini-companion-baseline-of-hunks (before after hunks left)
  "Return the baseline of the lines AFTER, which HUNKS have made of BEFORE.
HUNKS are `gemini-companion-hunk's, and only those in LEFT, some of them, are
to be changes: the lines of the others count as reviewed.  A hunk that differs
by a byte order mark only has no lines to review."
  (let* ((region-of (lambda (hunk)
                      (gemini-companion-baseline-region-of-hunk hunk before after)))
         (regions (mapcar region-of hunks))
         (left (mapcar region-of left)))
    (gemini-companion-baseline--keep
     (gemini-companion-baseline--make before after regions)
     (seq-remove (lambda (region)
                   (and (member region left)
                        (not (gemini-companion-baseline-region-same-p
                              region before after))))
                 regions))))

(defun gemini-companion-baseline-region-same-p (region before after)
  "Return non-nil if the lines BEFORE and AFTER do not differ in REGION."
  (equal (substring before (gemini-companion-lines-region-old region)
                    (gemini-companion-lines-region-old-end region))
         (substring after (gemini-companion-lines-region-new region)
                    (gemini-companion-lines-region-new-end region))))

(defun gemini-companion-baseline-region-of-hunk (hunk before after)
  "Return HUNK between the lines BEFORE and AFTER as a region.
In a hunk, a text of a byte order mark only has a line."
  (cl-flet ((index (line lines)
              (min (1- line) (length lines))))
    (gemini-companion-lines-region
     (index (gemini-companion-hunk-old hunk) before)
     (index (gemini-companion-hunk-old-end hunk) before)
     (index (gemini-companion-hunk-new hunk) after)
     (index (gemini-companion-hunk-new-end hunk) after))))

(defun gemini-companion-baseline-changes (baseline now)
  "Return the changes in the lines NOW that BASELINE does not have.
The value is a list of `gemini-companion-baseline-change's in order."
  (delq nil (mapcar (lambda (change)
                      (gemini-companion-baseline--shrunk change now))
                    (gemini-companion-baseline--all baseline now))))

(defun gemini-companion-baseline-change-without-lines (change)
  "Return CHANGE as if nothing had been in its place."
  (gemini-companion-baseline--change
   (gemini-companion-baseline-change-start change)
   (gemini-companion-baseline-change-end change)
   nil
   (gemini-companion-baseline-change-regions change)
   (gemini-companion-baseline-change-mixed change)))

(defun gemini-companion-baseline--keep (baseline kept)
  "Return BASELINE with what the CLI has written in KEPT, some of its regions."
  (let ((text (gemini-companion-baseline-text baseline))
        (written (gemini-companion-baseline-written baseline))
        (parts nil)
        (regions nil)
        (from 0)
        (offset 0))
    (dolist (region (gemini-companion-baseline-regions baseline))
      (pcase-let (((cl-struct gemini-companion-lines-region old old-end new new-end)
                   region))
        (if (member region kept)
            (progn
              (push (substring text from old) parts)
              (push (substring written new new-end) parts)
              (setq from old-end
                    offset (+ offset (- (- new-end new) (- old-end old)))))
          (push (gemini-companion-lines-region
                 (+ old offset) (+ old-end offset) new new-end)
                regions))))
    (gemini-companion-baseline--make
     (apply #'vconcat (nreverse (cons (substring text from) parts)))
     written
     (nreverse regions))))

(provide 'gemini-companion-baseline)
;;; gemini-companion-baseline.el ends here
