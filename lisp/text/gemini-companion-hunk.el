;;; gemini-companion-hunk.el --- Hunks: the comparison of texts, excluded hunks  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A hunk is a block of lines in which two texts differ: the file and the proposal,
;; or the text before and after a write.  All comparisons of texts return hunks.
;;
;; An overlay marks an excluded hunk in the proposal and leaves its text alone.
;; `gemini-companion-hunk-remaining-text' computes the text to be written from the
;; proposal and these overlays.

;;; Code:

(require 'gemini-companion-text)

;;;; Customization

(defface gemini-companion-excluded-text
  '((t :strike-through t))
  "Face of the text of a hunk that is excluded from a proposal.
The face `shadow' also applies to it."
  :group 'gemini-companion-reviews)

;;;; State

(cl-defstruct (gemini-companion-hunk
               (:noinline t)
               (:constructor gemini-companion-hunk-make
                             (old old-end new new-end lines))
               (:copier nil))
  "Lines in which two texts differ.
The first text has LINES, a list of strings with their newlines, from the index
OLD to OLD-END, exclusive; the second text has in their place the lines from
NEW to NEW-END.  Indices begin at 0: the hunk from \"a\nb\n\" to
\"a\nX\nY\nb\n\" has the indices 1, 1, 1 and 3, and no LINES."
  old old-end new new-end lines)

(cl-defstruct (gemini-companion-hunk-counts
               (:noinline t)
               (:constructor gemini-companion-hunk--make-counts)
               (:copier nil))
  "Size of an edit: the number of its HUNKS, and of those EXCLUDED.
ADDED and REMOVED are numbers of lines, without those of excluded hunks."
  (hunks 0) (excluded 0) (added 0) (removed 0))

;;;; Hunks

(defun gemini-companion-hunk-old-count (hunk)
  "Return the number of lines of HUNK in the first text."
  (- (gemini-companion-hunk-old-end hunk) (gemini-companion-hunk-old hunk)))

(defun gemini-companion-hunk-new-count (hunk)
  "Return the number of lines of HUNK in the second text."
  (- (gemini-companion-hunk-new-end hunk) (gemini-companion-hunk-new hunk)))

(defun gemini-companion-hunk-position (index)
  "Return the position of the line with INDEX, from 0, of the current buffer."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (forward-line index)
      (point))))

(defun gemini-companion-hunk-count (hunks excluded)
  "Return the `gemini-companion-hunk-counts' of HUNKS.
EXCLUDED are the excluded ones of HUNKS.  Both lists are in order of lines."
  (cl-loop with number = (length excluded)
           for hunk in hunks
           if (equal hunk (car excluded))
           do (pop excluded)
           else
           sum (gemini-companion-hunk-new-count hunk) into added and
           sum (gemini-companion-hunk-old-count hunk) into removed
           finally return (gemini-companion-hunk--make-counts
                           :hunks (length hunks) :excluded number
                           :added added :removed removed)))

(defun gemini-companion-hunk-amount (added removed)
  "Return a text for the numbers of ADDED and REMOVED lines: \"+3 -1\"."
  (format "+%d %s%d" added (gemini-companion-text-sign ?\u2212 "-") removed))

(defun gemini-companion-hunk-range (lines)
  "Return a text such as \"3\" or \"3-5\" for LINES.
LINES is a number, or a cons (FIRST . LAST), which may be one line."
  (pcase lines
    ((or (and (pred numberp) line)
         (and `(,line . ,last) (guard (= line last))))
     (number-to-string line))
    (`(,first . ,last)
     (format "%d-%d" first last))))

;;;; Comparison

(defconst gemini-companion-hunk--most-cells 40000
  "Greatest number of pairs of lines that are compared without the program diff.")

(defun gemini-companion-hunk--align (old new)
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

(defun gemini-companion-hunk--between (pairs old-length new-length)
  "Return the ranges between PAIRS of equal lines, a list in order.
OLD-LENGTH and NEW-LENGTH are the numbers of lines of the two texts.  The value
is as for `gemini-companion-text-diff'."
  (let ((i 0)
        (j 0)
        (ranges nil))
    (pcase-dolist (`(,old . ,new)
                   (append pairs (list (cons old-length new-length))))
      (unless (and (= i old) (= j new))
        (push (list i old j new) ranges))
      (setq i (1+ old)
            j (1+ new)))
    (nreverse ranges)))

(defun gemini-companion-hunk--of-ranges (ranges lines from new-from)
  "Return the hunks of RANGES, whose first text has LINES, a vector.
FROM and NEW-FROM lines precede the two texts.  RANGES are as for
`gemini-companion-text-diff'."
  (mapcar (pcase-lambda (`(,old ,old-end ,new ,new-end))
            (gemini-companion-hunk-make
             (+ from old) (+ from old-end) (+ new-from new) (+ new-from new-end)
             (append (substring lines old old-end) nil)))
          ranges))

(defun gemini-companion-hunk-whole (old new)
  "Return one hunk with all differences between OLD and NEW, or nil for none.
OLD and NEW are vectors of lines."
  (let ((from 0)
        (to (length old))
        (new-to (length new)))
    (while (and (< from to) (< from new-to)
                (string= (aref old from) (aref new from)))
      (cl-incf from))
    (while (and (< from to) (< from new-to)
                (string= (aref old (1- to)) (aref new (1- new-to))))
      (cl-decf to)
      (cl-decf new-to))
    (unless (and (= from to) (= from new-to))
      (gemini-companion-hunk-make from to from new-to
                                  (append (substring old from to) nil)))))

(defun gemini-companion-hunk-compare-lines (old new)
  "Return the hunks between OLD and NEW, two vectors of lines, in order.
At least one common line is between two of them.  Signal
`gemini-companion-text-not-compared' if diff fails."
  (when-let* ((whole (gemini-companion-hunk-whole old new)))
    (let ((old (vconcat (gemini-companion-hunk-lines whole)))
          (new (substring new (gemini-companion-hunk-new whole)
                          (gemini-companion-hunk-new-end whole))))
      (gemini-companion-hunk--of-ranges
       (if (<= (* (length old) (length new)) gemini-companion-hunk--most-cells)
           (gemini-companion-hunk--between (gemini-companion-hunk--align old new)
                                           (length old) (length new))
         (gemini-companion-text-diff
          (mapcar (lambda (lines) (mapconcat #'identity lines "")) (list old new))))
       old (gemini-companion-hunk-old whole) (gemini-companion-hunk-new whole)))))

(defun gemini-companion-hunk-split (text)
  "Return the lines of TEXT, a vector of strings with their newlines."
  (let ((lines nil)
        (from 0)
        (to nil))
    (while (setq to (string-search "\n" text from))
      (push (substring text from (1+ to)) lines)
      (setq from (1+ to)))
    (when (< from (length text))
      (push (substring text from) lines))
    (vconcat (nreverse lines))))

(defun gemini-companion-hunk--common (old new)
  "Return the lengths of the common lines at both ends of the buffers OLD and NEW.
The value is a cons (HEAD . TAIL) of numbers of characters.  Both buffers are
widened."
  (let* ((case-fold-search nil)
         (shorter (min (buffer-size old) (buffer-size new)))
         (differs (compare-buffer-substrings old nil nil new nil nil))
         (new-end (1+ (buffer-size new)))
         (size 65536)
         (tail 0))
    (with-current-buffer old
      (save-excursion
        (goto-char (if (zerop differs) (1+ shorter) (abs differs)))
        (forward-line 0)
        (let ((head (1- (point))))
          (while (< 0 size)
            (if (and (<= (+ head tail size) shorter)
                     (zerop (compare-buffer-substrings
                             old (- (point-max) tail size) (- (point-max) tail)
                             new (- new-end tail size) (- new-end tail))))
                (setq tail (+ tail size))
              (setq size (/ size 2))))
          (goto-char (- (point-max) tail))
          (unless (and (bolp)
                       (memq (with-current-buffer new (char-before (- new-end tail)))
                             '(?\n nil)))
            (forward-line 1))
          (cons head (- (point-max) (point))))))))

(defun gemini-companion-hunk-compare-buffers (old new)
  "Return the hunks between the whole texts of the buffers OLD and NEW, in order.
They are those that diff finds.  Signal `gemini-companion-text-not-compared' if
diff fails."
  (with-current-buffer old
    (save-restriction
      (widen)
      (with-current-buffer new
        (save-restriction
          (widen)
          (gemini-companion-hunk--compare-widened old new))))))

(defun gemini-companion-hunk--compare-widened (old new)
  "Return the hunks between the texts of the buffers OLD and NEW, both widened."
  (pcase-let* ((`(,head . ,tail) (gemini-companion-hunk--common old new))
               (texts (mapcar (lambda (buffer)
                                (with-current-buffer buffer
                                  (buffer-substring-no-properties
                                   (1+ head) (- (point-max) tail))))
                              (list old new)))
               (lines (gemini-companion-hunk-split (car texts)))
               (new-lines (gemini-companion-hunk-split (cadr texts)))
               (from (with-current-buffer old
                       (count-lines (point-min) (1+ head)))))
    (gemini-companion-hunk--of-ranges
     ;; Without a common line, diff finds one hunk.
     (if (and (<= (* (length lines) (length new-lines))
                  gemini-companion-hunk--most-cells)
              (null (gemini-companion-hunk--align lines new-lines)))
         (gemini-companion-hunk--between nil (length lines) (length new-lines))
       (gemini-companion-text-diff texts))
     lines from from)))

(defun gemini-companion-hunk-compare (old new)
  "Return the hunks between the texts OLD and NEW, in order.
For an error, see `gemini-companion-hunk-compare-buffers'."
  (let ((inhibit-modification-hooks t))
    (with-temp-buffer
      (insert old)
      (let ((buffer (current-buffer)))
        (with-temp-buffer
          (insert new)
          (gemini-companion-hunk-compare-buffers buffer (current-buffer)))))))

;;;; Selected lines of hunks

(defun gemini-companion-hunk-complete-selection (olds news)
  "Complete the selection of a hunk, the lines that the user has selected.
OLDS are conses (LINE . SELECTED) of the lines that the hunk replaces, and NEWS
of the new ones, in order; SELECTED is changed.  If there are as many of both,
each new line replaces one, and both are selected or none.  Otherwise, the
replaced lines are selected with the first new one, unless some are selected."
  (cond ((length= olds (length news))
         (cl-mapc (lambda (old new)
                    (setcdr old (setcdr new (or (cdr old) (cdr new)))))
                  olds news))
        ((not (seq-some #'cdr olds))
         (dolist (old olds)
           (setcdr old (cdar news))))))

(defun gemini-companion-hunk-selection (hunk lines new-p old-p)
  "Return a hunk that takes back the selection of HUNK, or nil if that is empty.
Its lines are to replace the new ones of HUNK.  LINES, a vector, are those of
the second text.  NEW-P and OLD-P are predicates on the indices of lines in the
second and the first text, and select lines."
  (let ((news (cl-loop for n from (gemini-companion-hunk-new hunk)
                       below (gemini-companion-hunk-new-end hunk)
                       collect (cons (aref lines n) (funcall new-p n))))
        (olds (cl-loop for n from (gemini-companion-hunk-old hunk)
                       for line in (gemini-companion-hunk-lines hunk)
                       collect (cons line (funcall old-p n)))))
    (gemini-companion-hunk-complete-selection olds news)
    (when (seq-some #'cdr (append olds news))
      (gemini-companion-hunk-make
       (gemini-companion-hunk-old hunk) (gemini-companion-hunk-old-end hunk)
       (gemini-companion-hunk-new hunk) (gemini-companion-hunk-new-end hunk)
       (if (length= olds (length news))
           (cl-mapcar (lambda (old new) (car (if (cdr old) old new))) olds news)
         (append (mapcar #'car (seq-filter #'cdr olds))
                 (mapcar #'car (seq-remove #'cdr news))))))))

;;;; Excluded hunks

(defun gemini-companion-hunk--original (exclusion)
  "Return the original text of the hunk that EXCLUSION excludes."
  (apply #'concat (gemini-companion-hunk-lines
                   (overlay-get exclusion 'gemini-companion-hunk))))

(defun gemini-companion-hunk--exclude (hunk proposal)
  "Mark the lines of HUNK in the buffer PROPOSAL as excluded."
  (with-current-buffer proposal
    (let* ((beg (gemini-companion-hunk-position (gemini-companion-hunk-new hunk)))
           (end (gemini-companion-hunk-position (gemini-companion-hunk-new-end hunk)))
           (exclusion (make-overlay beg end nil (< beg end)))
           (removed (gemini-companion-hunk-old-count hunk)))
      (overlay-put exclusion 'gemini-companion-hunk hunk)
      (save-restriction
        (widen)
        (overlay-put exclusion 'gemini-companion-text
                     (buffer-substring-no-properties beg end))
        (overlay-put exclusion 'gemini-companion-beside
                     (gemini-companion-hunk--beside beg end)))
      (overlay-put exclusion 'face '(gemini-companion-excluded-text shadow))
      (overlay-put exclusion 'line-prefix (propertize "x " 'face 'shadow))
      (overlay-put exclusion 'wrap-prefix "  ")
      ;; A hunk without lines in the proposal would be invisible there.
      (when (= beg end)
        (overlay-put exclusion 'before-string
                     (propertize
                      (format (ngettext "x %d removed line stays\n"
                                        "x %d removed lines stay\n"
                                        removed)
                              removed)
                      'face 'shadow))))))

(defun gemini-companion-hunk--beside (beg end)
  "Return the lines before BEG and after END, a cons of strings.
The current buffer is widened."
  (save-excursion
    (cons (progn (goto-char beg)
                 (buffer-substring-no-properties (line-beginning-position 0) beg))
          (progn (goto-char end)
                 (buffer-substring-no-properties end (line-beginning-position 2))))))

(defun gemini-companion-hunk-toggle (hunk proposal)
  "Exclude HUNK from the buffer PROPOSAL, or restore it.
Return non-nil if it is excluded now."
  (if-let* ((exclusion (seq-find
                   (lambda (exclusion)
                     (equal hunk (overlay-get exclusion 'gemini-companion-hunk)))
                   (gemini-companion-hunk-exclusions proposal))))
      (ignore (delete-overlay exclusion))
    (gemini-companion-hunk--exclude hunk proposal)
    t))

(defun gemini-companion-hunk-exclusions (proposal)
  "Return the overlays of the hunks excluded from PROPOSAL, in order."
  (with-current-buffer proposal
    (save-restriction
      (widen)
      (seq-sort-by
       (lambda (exclusion)
         (gemini-companion-hunk-old (overlay-get exclusion 'gemini-companion-hunk)))
       #'<
       (seq-filter #'gemini-companion-hunk--valid-p
                   (gemini-companion-hunk--all-exclusions))))))

(defun gemini-companion-hunk--all-exclusions ()
  "Return the overlays of excluded hunks in the accessible text."
  (seq-filter (lambda (overlay) (overlay-get overlay 'gemini-companion-hunk))
              (overlays-in (point-min) (point-max))))

(defun gemini-companion-hunk--valid-p (exclusion)
  "Return non-nil if EXCLUSION has its lines, these only, and those beside.
A change of a line beside a hunk belongs to that hunk.  The buffer of EXCLUSION
is current, and widened."
  (let ((beg (overlay-start exclusion))
        (end (overlay-end exclusion)))
    (and (string= (buffer-substring-no-properties beg end)
                  (overlay-get exclusion 'gemini-companion-text))
         (memq (char-before beg) '(?\n nil))
         (equal (gemini-companion-hunk--beside beg end)
                (overlay-get exclusion 'gemini-companion-beside))
         (or (= end (point-max))
             (and (memq (char-before end) '(?\n nil))
                  ;; A text without a newline at its end would be joined with the
                  ;; next line.
                  (string-match-p "\\(?:\\`\\|\n\\)\\'"
                                  (gemini-companion-hunk--original exclusion)))))))

(defun gemini-companion-hunk-prune (proposal hunks)
  "Restore the excluded hunks of PROPOSAL that were edited; return their number.
HUNKS are those of a new comparison, and then restore each excluded hunk that is
not one of them as well; or t if the texts were not compared again."
  (with-current-buffer proposal
    (save-restriction
      (widen)
      (let ((restored (seq-remove
                       (lambda (exclusion)
                         (and (gemini-companion-hunk--valid-p exclusion)
                              (or (eq t hunks)
                                  (gemini-companion-hunk--update exclusion hunks))))
                       (gemini-companion-hunk--all-exclusions))))
        (mapc #'delete-overlay restored)
        (length restored)))))

(defun gemini-companion-hunk--update (exclusion hunks)
  "Record the one of HUNKS that EXCLUSION, which is valid, excludes.
Return nil if there is no such hunk."
  (when-let* ((hunk (cl-find (1- (line-number-at-pos (overlay-start exclusion))) hunks
                             :key #'gemini-companion-hunk-new))
              ((= (overlay-end exclusion)
                  (gemini-companion-hunk-position
                   (gemini-companion-hunk-new-end hunk))))
              ((equal (gemini-companion-hunk-lines hunk)
                      (gemini-companion-hunk-lines
                       (overlay-get exclusion 'gemini-companion-hunk)))))
    (overlay-put exclusion 'gemini-companion-hunk hunk)))

(defun gemini-companion-hunk-excluded (proposal)
  "Return the hunks that are excluded from the buffer PROPOSAL.
Their line numbers are those of the last comparison."
  (mapcar (lambda (exclusion) (overlay-get exclusion 'gemini-companion-hunk))
          (gemini-companion-hunk-exclusions proposal)))

(defun gemini-companion-hunk-remaining-text (proposal)
  "Return the text of the buffer PROPOSAL without the excluded hunks.
The original lines replace each of them."
  (let ((text (gemini-companion-text-of-buffer proposal))
        (position 0))
    (concat (mapconcat (lambda (exclusion)
                         (prog1 (concat
                                 (substring text position
                                            (1- (overlay-start exclusion)))
                                 (gemini-companion-hunk--original exclusion))
                           (setq position (1- (overlay-end exclusion)))))
                       (gemini-companion-hunk-exclusions proposal) "")
            (substring text position))))

(provide 'gemini-companion-hunk)
;;; gemini-companion-hunk.el ends here
