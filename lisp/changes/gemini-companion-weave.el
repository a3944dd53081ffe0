;;; gemini-companion-weave.el --- Who wrote which line of a file  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A file that CLIs have written has one record of its lines, the weave: in order, the
;; lines that the file has and the lines that it had.  A line has marks.  A mark says
;; that a hunk, which is what one write of an edit did at one position, has added or
;; removed the line.  The mark is off if others have reverted that, or if the user has
;; undone the hunk.  The last mark that counts says whether the line is there:
;;
;;     marks that count                 text that they describe
;;     marks that are on                the known text
;;     marks on, of reviewed hunks      the text without unreviewed changes
;;     marks on, except of some hunks   the text after undoing these hunks
;;
;; A weave is never modified: writing, undoing and restoring return a new one.  Only
;; writes of CLIs and decisions of the user are recorded.  A look compares the current
;; text with the known text, and returns the weave as it would be if others had written
;; the current text.  Changes, conflicts and states are read from a look.
;;
;; If others remove a line or restore it, as few of its last marks as possible are
;; turned off or on.  What the user has undone stays undone: the mark by which an
;; undone hunk removed a line is turned on again only if a line that the hunk added is
;; restored, or if the user takes the undo back.  If others restore all lines that a
;; hunk removed, and leave none that it added, they have undone it.  If others remove
;; lines together with all lines around them, as a checkout of another branch does, a
;; line that a CLI had removed there gets a mark of others on top: its position is
;; gone, until the lines around it are restored.
;;
;; A look at a weave of 20,000 lines must take less than 100 ms, including garbage
;; collection.  So a line that nobody has touched is a string; only the gaps in which
;; the text differs are computed; and the lines of one hunk share their marks, from
;; which answers are computed once for a run of lines.
;;
;; The line ends, the byte order mark and the coding are not in a weave.  Two cases are
;; known to be wrong.  A hunk that only removed lines counts as undone after a stash
;; and its pop if a CLI has written in between: the text does not show whether the pop
;; or a user has removed these lines again.  And where a CLI writes in another branch
;; on top of lines of other edits, the state of a hunk of these edits can be
;; "superseded" instead of "gone".
;;
;; The model test/model/file_model.py gives the answers that the tests expect.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'gemini-companion-lines)

;;;; Structures

(cl-defstruct (gemini-companion-weave
               (:noinline t)
               (:constructor gemini-companion-weave--make (lines step))
               (:copier nil))
  "The record of a file.
LINES is a vector.  A line that no CLI and no others have touched is a string;
the others are `gemini-companion-weave-line's.  STEP is a number that is greater
after each recorded write."
  lines step
  (there nil :documentation "The value of `gemini-companion-weave--there' once
it was computed."))

(cl-defstruct (gemini-companion-weave-hunk
               (:noinline t)
               (:constructor gemini-companion-weave--hunk (edit number &optional reviewed))
               (:copier nil))
  "What one write of EDIT did at one position.
NUMBER counts the hunks of EDIT from 0.  EDIT is nil for a write of others.
REVIEWED is non-nil once the user has reviewed the hunk, and `kept' if that was
after it was written; it is the only slot that is modified."
  edit number reviewed)

(cl-defstruct (gemini-companion-weave-mark
               (:noinline t)
               (:constructor gemini-companion-weave--mark (hunk adds &optional off))
               (:copier nil))
  "A statement that HUNK has added a line, or has removed it if ADDS is nil.
OFF is nil, `others' if others have reverted that, `undone' if the user has
undone HUNK, or `both' if the user has undone HUNK after others had reverted
that."
  hunk adds off)

(cl-defstruct (gemini-companion-weave-line
               (:noinline t)
               (:constructor gemini-companion-weave--line (text marks when))
               (:copier nil))
  "A line that was written or removed, with TEXT and its MARKS, the last one first.
WHEN are the steps at which it was added, removed, added again, and so on, the
last one first.  Lines of one hunk share their MARKS, so that answers about the
marks are computed once for a run of lines."
  text marks when)

(cl-defstruct (gemini-companion-weave-change
               (:include gemini-companion-lines-change)
               (:noinline t)
               (:constructor gemini-companion-weave-change
                             (start end lines hunks edits mixed))
               (:copier nil))
  "A change in the text now that the user has not reviewed.
HUNKS are kept and undone with it, and EDITS have written or removed its
lines.  If MIXED is non-nil, others have removed lines there that a CLI has
written."
  hunks edits mixed)

(defconst gemini-companion-weave--base
  (list (gemini-companion-weave--mark (gemini-companion-weave--hunk nil 0 t) t))
  "The marks of a line that was there before the first edit, and always since.
It is one object for all such lines.")

(defconst gemini-companion-weave--base-when '(0)
  "Value of WHEN for a line that no CLI has touched.")

;; Lines are vectors with inlined accessors, which run several times for each line of a
;; file: calls of the accessors of a struct would take most of the time.

(defsubst gemini-companion-weave--text (line)
  "Return the text of LINE."
  (if (stringp line) line (aref line 1)))

(defsubst gemini-companion-weave--marks (line)
  "Return the marks of LINE."
  (if (stringp line) gemini-companion-weave--base (aref line 2)))

(defsubst gemini-companion-weave--when (line)
  "Return the slot WHEN of LINE: when it was added, removed, and so on."
  (if (stringp line) gemini-companion-weave--base-when (aref line 3)))

(defsubst gemini-companion-weave--hunk-of (mark)
  "Return the hunk of MARK."
  (aref mark 1))

(defsubst gemini-companion-weave--adds-p (mark)
  "Return non-nil if the hunk of MARK has added the line, not removed it."
  (aref mark 2))

(defsubst gemini-companion-weave--off (mark)
  "Return the slot OFF of MARK."
  (aref mark 3))

(defconst gemini-companion-weave-context 3
  "Number of lines around a removed line that show whether its position exists.")

(defconst gemini-companion-weave--most-moved 500
  "Maximum number of lines restored in another order that are searched for.")

;;;; Marks

(defun gemini-companion-weave--by-run (function)
  "Return a function like FUNCTION, which takes marks, for successive lines.
FUNCTION is called once for a run of lines that share their marks."
  (let ((last nil)
        (value nil))
    (lambda (marks)
      (unless (eq marks last)
        (setq value (funcall function marks)
              last marks))
      value)))

(defun gemini-companion-weave--decider (marks)
  "Return the last one of MARKS that is on, or nil."
  (while (and marks (gemini-companion-weave--off (car marks)))
    (setq marks (cdr marks)))
  (car marks))

(defun gemini-companion-weave--there-p (marks)
  "Return non-nil if the text has a line with MARKS, nil if it was removed."
  (or (eq marks gemini-companion-weave--base)
      (let ((mark (gemini-companion-weave--decider marks)))
        (and mark (gemini-companion-weave--adds-p mark)))))

(defun gemini-companion-weave--reviewed-p (marks)
  "Return non-nil if a line with MARKS is there if only reviewed hunks count."
  (or (eq marks gemini-companion-weave--base)
      (progn
        (while (and marks
                    (or (gemini-companion-weave--off (car marks))
                        (not (gemini-companion-weave-hunk-reviewed
                              (gemini-companion-weave--hunk-of (car marks))))))
          (setq marks (cdr marks)))
        (and marks (gemini-companion-weave--adds-p (car marks))))))

(defun gemini-companion-weave--edit (mark)
  "Return the edit of MARK, or nil if it is a mark of others."
  (gemini-companion-weave-hunk-edit (gemini-companion-weave--hunk-of mark)))

(defun gemini-companion-weave--gone-p (marks)
  "Return non-nil if others have removed a line with MARKS and the lines around it."
  (not (or (gemini-companion-weave--adds-p (car marks))
           (gemini-companion-weave--edit (car marks)))))

(defun gemini-companion-weave--of-edits-p (marks)
  "Return non-nil if one of MARKS is of an edit."
  (and (not (eq marks gemini-companion-weave--base))
       (let ((found nil))
         (while (and marks (not found))
           (setq found (gemini-companion-weave--edit (car marks))
                 marks (cdr marks)))
         found)))

(defun gemini-companion-weave--removed-by (marks)
  "Return the hunk of an edit that has removed a line with MARKS, or nil.
Others may have removed the lines around it since."
  (and (not (eq marks gemini-companion-weave--base))
       (let ((mark (gemini-companion-weave--decider
                    (if (gemini-companion-weave--gone-p marks) (cdr marks) marks))))
         (and mark
              (not (gemini-companion-weave--adds-p mark))
              (gemini-companion-weave--edit mark)
              (gemini-companion-weave--hunk-of mark)))))

(defun gemini-companion-weave--with-off (mark off)
  "Return MARK with OFF in that slot."
  (if (eq off (gemini-companion-weave--off mark))
      mark
    (gemini-companion-weave--mark (gemini-companion-weave--hunk-of mark)
                                  (gemini-companion-weave--adds-p mark)
                                  off)))

(defun gemini-companion-weave--undone-p (mark)
  "Return non-nil if the user has undone the hunk of MARK."
  (memq (gemini-companion-weave--off mark) '(undone both)))

(defun gemini-companion-weave--switched (marks)
  "Return MARKS after others have removed the line, or have restored it.
Turn as few of the last marks as possible.  Turn no mark on by which a hunk has
removed the line."
  (let ((want (not (gemini-companion-weave--there-p marks)))
        (passed nil)
        (done nil))
    (while (and marks (not done))
      (let* ((mark (pop marks))
             (off (gemini-companion-weave--off mark))
             (adds (gemini-companion-weave--adds-p mark)))
        (cond
         ((not (eq (eq (and adds t) want) (and off t)))
          (push mark passed))
         ((and off (not adds))
          (push mark passed))
         ;; The position is restored: drop this mark.
         ((and (not adds) (null (gemini-companion-weave--edit mark))))
         (t
          (push (gemini-companion-weave--with-off mark (if off nil 'others)) passed)))
        (setq done (eq want (and (gemini-companion-weave--there-p
                                  (gemini-companion-weave--joined passed marks))
                                 t)))))
    (gemini-companion-weave--joined passed marks)))

(defun gemini-companion-weave--joined (passed marks)
  "Return MARKS with the elements of PASSED, in reverse, before them."
  (let ((result marks))
    (dolist (mark passed result)
      (push mark result))))

(defun gemini-companion-weave--changed (line marks step)
  "Return LINE with MARKS since STEP."
  (let ((when (gemini-companion-weave--when line)))
    (gemini-companion-weave--line
     (gemini-companion-weave--text line)
     marks
     (if (eq (null (gemini-companion-weave--there-p marks))
             (null (gemini-companion-weave--there-p
                    (gemini-companion-weave--marks line))))
         when
       (cons step when)))))

(defun gemini-companion-weave--met-p (line other)
  "Return non-nil if LINE and OTHER were in the text at the same time.
Only then does the order of these two lines count."
  (let ((a (gemini-companion-weave--when line))
        (b (gemini-companion-weave--when other)))
    (if (or (and (null (cdr a)) (null (cdr b)))
            (equal a b))
        t
      (let ((to (if (= 1 (% (length a) 2)) most-positive-fixnum (pop a)))
            (b-there (= 1 (% (length b) 2)))
            (met nil))
        (while (and a (not met))
          (let* ((from (pop a))
                 (rest b)
                 (other-to (if b-there most-positive-fixnum (pop rest))))
            (while (and rest (not met))
              (setq met (and (< (car rest) to) (< from other-to))
                    rest (cdr rest)
                    other-to (pop rest))))
          (setq to (pop a)))
        met))))

;;;; The text of a weave

(defun gemini-companion-weave--there (lines)
  "Return the texts of the present LINES, and the ranges of the missing lines.
The value is a cons of a vector and a list of (FROM . TO), ranges of indices in
order."
  (let* ((count (length lines))
         (texts (make-vector count nil))
         (n 0)
         (missing nil)
         (there-p (gemini-companion-weave--by-run #'gemini-companion-weave--there-p)))
    (dotimes (i count)
      (let ((line (aref lines i)))
        (cond ((stringp line)
               (aset texts n line)
               (setq n (1+ n)))
              ((funcall there-p (gemini-companion-weave--marks line))
               (aset texts n (gemini-companion-weave--text line))
               (setq n (1+ n)))
              ((eql i (cdar missing))
               (setcdr (car missing) (1+ i)))
              (t
               (push (cons i (1+ i)) missing)))))
    (cons (if (= n count) texts (substring texts 0 n))
          (nreverse missing))))

(defun gemini-companion-weave--there-of (weave)
  "Return the value of `gemini-companion-weave--there' for the lines of WEAVE."
  (or (gemini-companion-weave-there weave)
      (setf (gemini-companion-weave-there weave)
            (gemini-companion-weave--there (gemini-companion-weave-lines weave)))))

(defun gemini-companion-weave--indices (lines)
  "Return the indices of those of LINES that are there, a vector."
  (let ((indices (make-vector (length lines) nil))
        (count 0))
    (dotimes (i (length lines))
      (when (gemini-companion-weave--there-p
             (gemini-companion-weave--marks (aref lines i)))
        (aset indices count i)
        (setq count (1+ count))))
    (substring indices 0 count)))

;;;; Writing

;; Where a text differs from the known one, the lines between two untouched ones are
;; a gap.  Untouched lines were there with all others, so only inside of a gap the
;; order of lines is free.  Only the gaps are computed; what is outside of them is
;; copied.

(cl-defstruct (gemini-companion-weave--write
               (:noinline t)
               (:constructor gemini-companion-weave--make-write)
               (:copier nil))
  "One step from OLD, a vector of lines, to the next.
EDIT, or others if that is nil, have made it at STEP.  RESULT has the lines
after the step; HOW and BEFORE are vectors about the lines from the index START
on.  HOW says of each line whether it is `new', `back', `removed' or nil, and
BEFORE has its previous state if others have removed or restored it.  CHANGED
are the indices of the restored and the removed lines.  STAYS is non-nil if a
line of the text was there before the step, and still is."
  old edit step result how before (start 0) changed stays)

(cl-defstruct (gemini-companion-weave--gap
               (:noinline t)
               (:constructor gemini-companion-weave--make-gap)
               (:copier nil))
  "A part of WRITE: the lines from index FROM to TO become those of TEXT.
OLD are these lines, and TEXT is a vector of strings.  All other indices are
relative to OLD and TEXT.  REGIONS are lists (FROM TO NEW-FROM NEW-TO): ranges
in which the present lines differ from TEXT.

AT has the index in OLD for each line of TEXT that is there already, and IN-TEXT
is the reverse.  NEW has the number of the region for each new line of TEXT, and
REMOVED has it for each line of OLD that is removed.  HUNKS
has a hunk for each region, and LASTS the last line removed there.

RESULT, HOW and BEFORE are vectors as in WRITE, of which the first COUNT
elements are used."
  write from to old text regions at in-text new removed hunks lasts
  result how before (count 0))

(defun gemini-companion-weave--rewrite (weave text step &optional edit first regions)
  "Return the lines of WEAVE after a write of TEXT at STEP, and the new hunks.
The value is a cons.  EDIT is the edit that has written TEXT; its new hunks are
numbered from FIRST, by default 0.  If EDIT is nil, others have written TEXT.
REGIONS are the differences between the old text and TEXT, if they are known."
  (let* ((lines (gemini-companion-weave-lines weave))
         (there (gemini-companion-weave--there-of weave))
         (regions (or regions
                      (gemini-companion-lines-compare (car there) text))))
    (if (null regions)
        (list lines)
      (let* ((write (gemini-companion-weave--make-write
                     :old lines :edit edit :step step))
             (gaps (gemini-companion-weave--gaps write (cdr there) regions text))
             (hunks (gemini-companion-weave--set-hunks
                     gaps (and edit
                               (lambda (number)
                                 (gemini-companion-weave--hunk
                                  edit (+ (or first 0) number))))
                     (gemini-companion-weave--hunk nil step t))))
        (mapc #'gemini-companion-weave--fill gaps)
        (gemini-companion-weave--assemble write gaps)
        (unless edit
          (setf (gemini-companion-weave--write-stays write)
                (< (cl-loop for region in regions
                            sum (- (gemini-companion-lines-region-new-end region)
                                   (gemini-companion-lines-region-new region)))
                   (length text)))
          (gemini-companion-weave--redo-as-a-whole write)
          (gemini-companion-weave--mark-gone write)
          (gemini-companion-weave--undo-as-a-whole write))
        (cons (gemini-companion-weave--write-result write) hunks)))))

(defun gemini-companion-weave--gaps (write missing regions text)
  "Return the gaps of WRITE in order, a list.
MISSING are the ranges of missing lines, and REGIONS are the ranges in which the
present lines differ from TEXT."
  (let* ((lines (gemini-companion-weave--write-old write))
         (count (length lines))
         (shift 0)
         (limit 0)
         (gaps nil)
         ;; The incomplete gap: where it begins in the old and the new text, its
         ;; regions, and the end of its last region in TEXT.
         (from nil)
         (new-from nil)
         (own nil)
         (new-end nil))
    (cl-flet ((index (k)
                (while (and missing (<= (caar missing) (+ k shift)))
                  (setq shift (+ shift (- (cdar missing) (caar missing))))
                  (pop missing))
                (+ k shift))
              (there-p (i)
                (gemini-companion-weave--there-p
                 (gemini-companion-weave--marks (aref lines i))))
              (relative (range)
                (pcase-let ((`(,a ,b ,c ,d) range))
                  (list (- a from) (- b from) (- c new-from) (- d new-from)))))
      (cl-flet ((complete ()
                  (when own
                    (let ((to limit)
                          (new-to new-end))
                      (while (and (< to count) (not (stringp (aref lines to))))
                        (when (there-p to)
                          (setq new-to (1+ new-to)))
                        (setq to (1+ to)))
                      (push (gemini-companion-weave--make-gap
                             :write write :from from :to to
                             :old (substring lines from to)
                             :text (substring text new-from new-to)
                             :regions (mapcar #'relative (nreverse own)))
                            gaps)
                      (setq own nil)))))
        (dolist (region regions)
          (let* ((old (gemini-companion-lines-region-old region))
                 (old-end (gemini-companion-lines-region-old-end region))
                 (new (gemini-companion-lines-region-new region))
                 (start (index old))
                 (end (if (< old old-end) (1+ (index (1- old-end))) start))
                 (p start)
                 (stay 0))
            (while (and (< limit p) (not (stringp (aref lines (1- p)))))
              (setq p (1- p))
              (when (there-p p)
                (setq stay (1+ stay))))
            (unless (and own (= p limit))
              (complete)
              (setq from p
                    new-from (- new stay)))
            (setq limit end
                  new-end (gemini-companion-lines-region-new-end region))
            (push (list start end new new-end) own)))
        (complete)))
    (nreverse gaps)))

(defun gemini-companion-weave--set-hunks (gaps make others)
  "Set the hunks of GAPS, and return them.
MAKE is a function that returns a new hunk with a number.  If MAKE is nil, all
hunks are OTHERS."
  (let ((number 0)
        (all nil))
    (dolist (gap gaps)
      (setf (gemini-companion-weave--gap-hunks gap)
            (vconcat (mapcar (lambda (_)
                               (let ((hunk (if make (funcall make number) others)))
                                 (setq number (1+ number))
                                 (push hunk all)
                                 hunk))
                             (gemini-companion-weave--gap-regions gap)))))
    (nreverse all)))

(defun gemini-companion-weave--fill (gap)
  "Set the slots of GAP that say which lines stay, and the slots of its result."
  (let* ((old (gemini-companion-weave--gap-old gap))
         (text (gemini-companion-weave--gap-text gap))
         (size (+ (length old) (length text)))
         (at (make-vector (length text) nil))
         (in-text (make-vector (length old) nil))
         (new (make-vector (length text) nil))
         (removed (make-vector (length old) nil))
         (lasts nil)
         (number 0)
         (i 0)
         (j 0)
         (marks-there-p (gemini-companion-weave--by-run
                         #'gemini-companion-weave--there-p)))
    (cl-flet* ((there-p (line)
                 (or (stringp line)
                     (funcall marks-there-p (gemini-companion-weave--marks line))))
               (stay-until (end)
                 (while (< i end)
                   (when (there-p (aref old i))
                     (aset at j i)
                     (aset in-text i j)
                     (setq j (1+ j)))
                   (setq i (1+ i)))))
      (pcase-dolist (`(,from ,to ,_ ,new-to) (gemini-companion-weave--gap-regions gap))
        (stay-until from)
        (push (and (< from to) (1- to)) lasts)
        (while (< i to)
          (when (there-p (aref old i))
            (aset removed i number))
          (setq i (1+ i)))
        (while (< j new-to)
          (aset new j number)
          (setq j (1+ j)))
        (setq number (1+ number)))
      (stay-until (length old)))
    (setf (gemini-companion-weave--gap-at gap) at
          (gemini-companion-weave--gap-in-text gap) in-text
          (gemini-companion-weave--gap-new gap) new
          (gemini-companion-weave--gap-removed gap) removed
          (gemini-companion-weave--gap-lasts gap) (vconcat (nreverse lasts))
          (gemini-companion-weave--gap-result gap) (make-vector size nil))
    (unless (gemini-companion-weave--write-edit (gemini-companion-weave--gap-write gap))
      (setf (gemini-companion-weave--gap-how gap) (make-vector size nil)
            (gemini-companion-weave--gap-before gap) (make-vector size nil)))
    (gemini-companion-weave--put-gap gap)))

(defun gemini-companion-weave--assemble (write gaps)
  "Set the result of WRITE from its GAPS, and from the lines between them."
  (let* ((old (gemini-companion-weave--write-old write))
         (edit (gemini-companion-weave--write-edit write))
         (end 0)
         (at 0)
         (result nil)
         (how nil)
         (before nil)
         (changed nil))
    (dolist (gap gaps)
      (let* ((from (gemini-companion-weave--gap-from gap))
             (count (gemini-companion-weave--gap-count gap))
             (own (gemini-companion-weave--gap-how gap)))
        (push (substring old end from) result)
        (setq at (+ at (- from end)))
        (push (substring (gemini-companion-weave--gap-result gap) 0 count) result)
        (unless edit
          (if (null how)
              (setf (gemini-companion-weave--write-start write) from)
            (push (make-vector (- from end) nil) how)
            (push (make-vector (- from end) nil) before))
          (push (substring own 0 count) how)
          (push (substring (gemini-companion-weave--gap-before gap) 0 count) before)
          (dotimes (n count)
            (unless (memq (aref own n) '(nil new))
              (push (+ at n) changed))))
        (setq at (+ at count)
              end (gemini-companion-weave--gap-to gap))))
    (push (substring old end) result)
    (cl-flet ((joined (pieces)
                ;; Copy nothing if there is only one gap, as in a file that was reindented.
                (let ((pieces (remove [] (nreverse pieces))))
                  (if (and pieces (null (cdr pieces)))
                      (car pieces)
                    (apply #'vconcat pieces)))))
      (setf (gemini-companion-weave--write-result write) (joined result)
            (gemini-companion-weave--write-how write) (joined how)
            (gemini-companion-weave--write-before write) (joined before)
            (gemini-companion-weave--write-changed write) changed))))

(defsubst gemini-companion-weave--at (vector start p)
  "Return the element of VECTOR about the index P, or nil if it has none.
VECTOR is about the indices from START on."
  (let ((n (- p start)))
    (and (<= 0 n) (< n (length vector)) (aref vector n))))

(defun gemini-companion-weave--how (write p)
  "Return how the line with the index P got into the result of WRITE."
  (gemini-companion-weave--at (gemini-companion-weave--write-how write)
                              (gemini-companion-weave--write-start write)
                              p))

(defun gemini-companion-weave--before (write p)
  "Return the previous state of the line P in the result of WRITE, or nil.
It is non-nil if others have removed or restored the line."
  (gemini-companion-weave--at (gemini-companion-weave--write-before write)
                              (gemini-companion-weave--write-start write)
                              p))

(defun gemini-companion-weave--put-gap (gap)
  "Put the lines of GAP into its result: its old lines, and the new ones."
  (let* ((text (gemini-companion-weave--gap-text gap))
         (new (gemini-companion-weave--gap-new gap))
         (lasts (gemini-companion-weave--gap-lasts gap))
         (result (gemini-companion-weave--gap-result gap))
         (how (gemini-companion-weave--gap-how gap))
         (step (gemini-companion-weave--write-step
                (gemini-companion-weave--gap-write gap)))
         ;; Lines of one hunk share their marks.
         (marks (vconcat (mapcar (lambda (hunk)
                                   (list (gemini-companion-weave--mark hunk t)))
                                 (gemini-companion-weave--gap-hunks gap))))
         (order (gemini-companion-weave--with-returning
                 gap (gemini-companion-weave--numbers
                      (length (gemini-companion-weave--gap-old gap)))))
         (at (gemini-companion-weave--gap-at gap))
         (positions (gemini-companion-weave--positions order))
         (limits (make-vector (length text) nil))
         (limit (length order))
         (put-old (gemini-companion-weave--put-old gap))
         (done 0)
         (count 0))
    (cl-loop for j downfrom (1- (length text)) to 0
             do (when (aref at j)
                  (setq limit (aref positions (aref at j))))
             (aset limits j limit))
    (cl-flet ((put-until (end)
                (while (< done end)
                  (setq count (funcall put-old (aref order done) count)
                        done (1+ done)))))
      (dotimes (j (length text))
        (let ((limit (aref limits j)))
          (if (aref at j)
              (put-until (1+ limit))
            (let ((last (aref lasts (aref new j))))
              ;; Put the new line after the lines that it replaces.
              (when last
                (put-until (min limit (1+ (aref positions last)))))
              (aset result count
                    (gemini-companion-weave--line
                     (aref text j) (aref marks (aref new j)) (list step)))
              (when how
                (aset how count 'new))
              (setq count (1+ count))))))
      (put-until (length order)))
    (setf (gemini-companion-weave--gap-count gap) count)))

(defun gemini-companion-weave--put-old (gap)
  "Return a function that puts a line of GAP with an index I into its result.
Its other argument is the number of lines in the result, and its value is that
number after putting the line."
  (let* ((old (gemini-companion-weave--gap-old gap))
         (new (gemini-companion-weave--gap-new gap))
         (in-text (gemini-companion-weave--gap-in-text gap))
         (removed (gemini-companion-weave--gap-removed gap))
         (result (gemini-companion-weave--gap-result gap))
         (how (gemini-companion-weave--gap-how gap))
         (before (gemini-companion-weave--gap-before gap))
         (write (gemini-companion-weave--gap-write gap))
         (edit (gemini-companion-weave--write-edit write))
         (step (gemini-companion-weave--write-step write))
         (near (unless edit (gemini-companion-weave--near gap)))
         (last nil)
         (after nil)
         (turned nil)
         (of-edits nil)
         (last-number nil)
         (last-when nil)
         (when-after nil))
    (lambda (i count)
      (let* ((line (aref old i))
             (j (aref in-text i))
             (number (if j (aref new j) (aref removed i)))
             (marks (gemini-companion-weave--marks line)))
        (if (null number)
            (progn
              (aset result count line)
              (1+ count))
          ;; Lines with the same marks share their new marks.
          (unless (and (eq marks last) (eq number last-number))
            (setq last marks
                  last-number number
                  after (if edit
                            (cons (gemini-companion-weave--mark
                                   (aref (gemini-companion-weave--gap-hunks gap) number)
                                   (and j t))
                                  marks)
                          (gemini-companion-weave--switched marks))
                  turned (not (eq (null (gemini-companion-weave--there-p marks))
                                  (null (gemini-companion-weave--there-p after))))
                  of-edits (gemini-companion-weave--of-edits-p after)))
          ;; A missing line that no CLI has touched is dropped, unless it shows the
          ;; position of a line that a CLI has touched.
          (if (not (or j edit of-edits (aref near i)))
              count
            (aset result count
                  (gemini-companion-weave--line
                   (gemini-companion-weave--text line)
                   after
                   (let ((when (gemini-companion-weave--when line)))
                     (cond ((not turned) when)
                           ((eq when last-when) when-after)
                           (t (setq last-when when
                                    when-after (cons step when)))))))
            (unless edit
              (aset how count (if j 'back 'removed))
              (aset before count line))
            (1+ count)))))))

(defun gemini-companion-weave--near (gap)
  "Return which lines of GAP are near a line changed by a CLI, a bool vector.
The changed line may be beside GAP."
  (let* ((lines (gemini-companion-weave--write-old
                 (gemini-companion-weave--gap-write gap)))
         (from (gemini-companion-weave--gap-from gap))
         (count (- (gemini-companion-weave--gap-to gap) from))
         (near (make-bool-vector count nil))
         (of-edits-p (gemini-companion-weave--by-run
                      #'gemini-companion-weave--of-edits-p)))
    (cl-loop
     for i from (max (- gemini-companion-weave-context) (- from))
     below (min (+ count gemini-companion-weave-context) (- (length lines) from))
     for line = (aref lines (+ i from))
     do (when (and (not (stringp line))
                   (funcall of-edits-p (gemini-companion-weave--marks line)))
          (cl-loop for k from (max 0 (- i gemini-companion-weave-context))
                   below (min count (+ i gemini-companion-weave-context 1))
                   do (aset near k t))))
    near))

(defun gemini-companion-weave--numbers (count)
  "Return a vector of the first COUNT numbers, from 0 on."
  (let ((numbers (make-vector count 0)))
    (dotimes (n count)
      (aset numbers n n))
    numbers))

(defun gemini-companion-weave--positions (order)
  "Return the position in ORDER of each line, a vector."
  (let ((positions (make-vector (length order) nil)))
    (dotimes (p (length order))
      (aset positions (aref order p) p))
    positions))

;;;; Lines that come back

(defun gemini-companion-weave--with-returning (gap order)
  "Return ORDER with the restored lines of GAP moved to where its text has them.
Record in GAP which lines of its text the restored lines are."
  (let* ((at (gemini-companion-weave--gap-at gap))
         (in-text (gemini-companion-weave--gap-in-text gap))
         (size (length order))
         (alike (gemini-companion-weave--alike gap order)))
    (when alike
      ;; Most come back in order: these are found in one pass.
      (let ((nexts (make-vector (length at) size))
            (next size)
            (j 0)
            (last -1)
            (pairs nil))
        (cl-loop for k downfrom (1- (length at)) to 0
                 do (when (aref at k)
                      (setq next (aref at k)))
                 (aset nexts k next))
        (gemini-companion-weave--map-pairs
         gap alike
         (lambda (i new)
           (while (< j new)
             (when (aref at j)
               (setq last (aref at j)))
             (setq j (1+ j)))
           (when (< last i (aref nexts new))
             (push i pairs)
             (push new pairs))))
        (while pairs
          (let ((new (pop pairs))
                (i (pop pairs)))
            (aset at new i)
            (aset in-text i new))))
      ;; Lines of different times may be in another order.
      (let ((more t))
        (while more
          (setq more nil
                alike (gemini-companion-weave--alike
                       gap order gemini-companion-weave--most-moved))
          (when alike
            (gemini-companion-weave--map-pairs
             gap alike
             (lambda (i j)
               (let ((moved (gemini-companion-weave--moved gap order i j)))
                 (when moved
                   (setq order moved
                         more t)
                   (aset at j i)
                   (aset in-text i j)))))))))
    order))

(defun gemini-companion-weave--alike (gap order &optional most)
  "Return the lines of GAP that may be restored, and the new lines they may be.
The former are the lines in ORDER that are neither in the text of GAP nor
removed there.  The value is a cons of vectors of indices, or nil if there are
none.  If MOST is non-nil, return only the first MOST lines of each."
  (let* ((in-text (gemini-companion-weave--gap-in-text gap))
         (removed (gemini-companion-weave--gap-removed gap))
         (at (gemini-companion-weave--gap-at gap))
         (most (or most most-positive-fixnum))
         (missing (cl-loop with left = most
                           for i across order
                           unless (or (aref in-text i) (aref removed i))
                           collect i and do (setq left (1- left))
                           until (= 0 left)))
         (fresh (and missing
                     (cl-loop with left = most
                              for j from 0
                              for i across at
                              unless i
                              collect j and do (setq left (1- left))
                              until (= 0 left)))))
    (when fresh
      ;; Comparing many lines takes long: omit lines that are on one side only.
      (if (<= (* (length missing) (length fresh))
              gemini-companion-lines-most-cells)
          (cons (vconcat missing) (vconcat fresh))
        (gemini-companion-weave--in-both gap missing fresh)))))

(defun gemini-companion-weave--in-both (gap missing fresh)
  "Return those lines of MISSING and FRESH that the other vector has as well.
Both are indices of GAP; for the value, see `gemini-companion-weave--alike'."
  (let ((old (gemini-companion-weave--gap-old gap))
        (text (gemini-companion-weave--gap-text gap))
        (texts (make-hash-table :test 'equal :size (length missing)))
        (fresh-in-both nil))
    (dolist (i missing)
      (puthash (gemini-companion-weave--text (aref old i)) 'missing texts))
    (dolist (j fresh)
      (when (gethash (aref text j) texts)
        (puthash (aref text j) 'both texts)
        (push j fresh-in-both)))
    (when fresh-in-both
      (cons (vconcat (seq-filter
                      (lambda (i)
                        (eq 'both
                            (gethash (gemini-companion-weave--text (aref old i))
                                     texts)))
                      missing))
            (vconcat (nreverse fresh-in-both))))))

(defun gemini-companion-weave--map-pairs (gap alike function)
  "Call FUNCTION with the indices of each two equal lines of GAP, in order.
For ALIKE, see `gemini-companion-weave--alike'."
  (let* ((old (gemini-companion-weave--gap-old gap))
         (text (gemini-companion-weave--gap-text gap))
         (missing (car alike))
         (fresh (cdr alike))
         (i 0)
         (j 0))
    (cl-flet ((pair-until (end)
                (while (< i end)
                  (funcall function (aref missing i) (aref fresh j))
                  (setq i (1+ i)
                        j (1+ j)))))
      (dolist (region (gemini-companion-lines-compare
                       (vconcat (mapcar (lambda (k)
                                          (gemini-companion-weave--text (aref old k)))
                                        missing))
                       (vconcat (mapcar (lambda (k) (aref text k)) fresh))))
        (pair-until (gemini-companion-lines-region-old region))
        (setq i (gemini-companion-lines-region-old-end region)
              j (gemini-companion-lines-region-new-end region)))
      (pair-until (length missing)))))

(defun gemini-companion-weave--moved (gap order i j)
  "Return ORDER with the line I of GAP moved to the position of line J of its text.
Line I may pass lines that were never in the text together with it.  Missing
lines that were in the text together with it move with it.  Return nil if that
is impossible."
  (let* ((old (gemini-companion-weave--gap-old gap))
         (at (gemini-companion-weave--gap-at gap))
         (in-text (gemini-companion-weave--gap-in-text gap))
         (before (cl-loop for k downfrom (1- j) to 0 thereis (aref at k)))
         (after (cl-loop for k from (1+ j) below (length at) thereis (aref at k)))
         (position (seq-position order i #'eql))
         (low (if before (seq-position order before #'eql) -1))
         (high (if after (seq-position order after #'eql) (length order)))
         (down (< position low)))
    (if (and (< low position) (< position high))
        order
      (let ((moved (list i))
            (stay nil)
            (span (if down
                      (append (substring order (1+ position) (1+ low)) nil)
                    (nreverse (append (substring order high position) nil)))))
        (while (and span moved)
          (let ((k (pop span)))
            (cond ((not (seq-some (lambda (other)
                                    (gemini-companion-weave--met-p (aref old k)
                                                                   (aref old other)))
                                  moved))
                   (push k stay))
                  ((or (aref in-text k)
                       (= (length moved) gemini-companion-weave--most-moved))
                   (setq moved nil))
                  (t (push k moved)))))
        (when moved
          (if down
              (vconcat (substring order 0 position) (nreverse stay) (nreverse moved)
                       (substring order (1+ low)))
            (vconcat (substring order 0 high) moved stay
                     (substring order (1+ position)))))))))

;;;; What others do to a hunk, or to its place

(defun gemini-companion-weave--turned-hunks (write predicate)
  "Return the hunks of marks that others have turned in WRITE.
PREDICATE is called with a mark before and after."
  (let* ((result (gemini-companion-weave--write-result write))
         (befores (gemini-companion-weave--write-before write))
         (start (gemini-companion-weave--write-start write))
         (last-was nil)
         (last-is nil)
         (hunks nil))
    (dolist (p (gemini-companion-weave--write-changed write))
      (when-let* ((before (gemini-companion-weave--at befores start p)))
        (let ((was (gemini-companion-weave--marks before))
              (is (gemini-companion-weave--marks (aref result p))))
          (unless (and (eq was last-was) (eq is last-is))
            (setq last-was was
                  last-is is)
            (cl-loop for mark-before in (reverse was)
                     for mark-now in (reverse is)
                     when (and (gemini-companion-weave--edit mark-before)
                               (funcall predicate mark-before mark-now))
                     do (cl-pushnew (gemini-companion-weave--hunk-of mark-before) hunks))))))
    hunks))

(defun gemini-companion-weave--redo-as-a-whole (write)
  "Turn hunks on as a whole if WRITE has restored a line that they added."
  (let ((result (gemini-companion-weave--write-result write))
        (back (gemini-companion-weave--turned-hunks
               write
               (lambda (was is)
                 (and (gemini-companion-weave--adds-p was)
                      (gemini-companion-weave--off was)
                      (not (gemini-companion-weave--off is))))))
        (last nil)
        (again nil))
    (when back
      (dolist (p (gemini-companion-weave--write-changed write))
        (when (eq 'removed (gemini-companion-weave--how write p))
          (let* ((line (gemini-companion-weave--before write p))
                 (marks (gemini-companion-weave--marks line)))
            (unless (eq marks last)
              (setq last marks
                    again (cl-loop
                           for mark in marks
                           for turned = (and (gemini-companion-weave--off mark)
                                             (not (gemini-companion-weave--adds-p
                                                   mark))
                                             (memq (gemini-companion-weave--hunk-of
                                                    mark)
                                                   back)
                                             (gemini-companion-weave--replaced
                                              marks mark))
                           when (and turned
                                     (not (gemini-companion-weave--there-p turned)))
                           return turned)))
            (when again
              (aset result p
                    (gemini-companion-weave--changed
                     line again (gemini-companion-weave--write-step write))))))))))

(defun gemini-companion-weave--replaced (marks mark)
  "Return MARKS with MARK on."
  (mapcar (lambda (other)
            (if (eq other mark)
                (gemini-companion-weave--with-off mark nil)
              other))
          marks))

(defun gemini-companion-weave--undo-as-a-whole (write)
  "Turn hunks off as a whole that others have undone in WRITE.
Others have restored the lines that the hunk removed, and left none of its own."
  (let* ((result (gemini-companion-weave--write-result write))
         (undone (gemini-companion-weave--turned-hunks
                  write
                  (lambda (was is)
                    (and (not (gemini-companion-weave--adds-p was))
                         (not (gemini-companion-weave--off was))
                         (gemini-companion-weave--off is)))))
         (decider (gemini-companion-weave--by-run #'gemini-companion-weave--decider)))
    (when undone
      (cl-loop for line across result
               while undone
               do (unless (stringp line)
                    (when-let* ((mark (funcall decider
                                               (gemini-companion-weave--marks
                                                line))))
                      (setq undone (delq (gemini-companion-weave--hunk-of mark)
                                         undone))))))
    (when undone
      (setf (gemini-companion-weave--write-result write)
            (gemini-companion-weave--without
             result undone (gemini-companion-weave--write-step write))))))

(defun gemini-companion-weave--mark-gone (write)
  "Mark removed lines as gone if their position is gone in WRITE of others.
A checkout of another branch does that.  Unmark a line if its position is
restored."
  (when (gemini-companion-weave--write-changed write)
    (let* ((result (gemini-companion-weave--write-result write))
           (count (length result))
           (hows (gemini-companion-weave--write-how write))
           (befores (gemini-companion-weave--write-before write))
           (start (gemini-companion-weave--write-start write))
           (candidates (vector nil nil))
           (known (make-vector 4 nil))
           (any-back (cl-loop for p in (gemini-companion-weave--write-changed write)
                              thereis (eq 'back (gemini-companion-weave--how write p))))
           ;; Non-nil after an untouched line: the place of what follows is there.
           (safe nil)
           ;; The run of lines with the same marks, and what is to be done with them.
           (run-from 0)
           (run-to 0)
           (run-action nil)
           (there-p (gemini-companion-weave--by-run #'gemini-companion-weave--there-p))
           (removed-by (gemini-companion-weave--by-run
                        #'gemini-companion-weave--removed-by))
           (gone-p (gemini-companion-weave--by-run #'gemini-companion-weave--gone-p))
           (with-gone (gemini-companion-weave--by-run
                       (lambda (marks)
                         (cons (gemini-companion-weave--mark
                                (gemini-companion-weave--hunk
                                 nil (gemini-companion-weave--write-step write) t)
                                nil)
                               marks)))))
      (dotimes (p count)
        (let ((line (aref result p))
              (how (gemini-companion-weave--at hows start p)))
          (cond
           ((stringp line)
            (setq safe t))
           ;; A new line was never there with a removed one, so it shows no position.
           ((eq how 'new))
           (t
            (unless (< p run-to)
              (setq run-from p
                    run-to (gemini-companion-weave--run-end write p)
                    run-action nil))
            (let* ((marks (gemini-companion-weave--marks line))
                   (there (funcall there-p marks))
                   (by (funcall removed-by marks))
                   (gone (funcall gone-p marks)))
              (when (and (not there)
                         (or by (gemini-companion-weave--at befores start p))
                         (or gone (not safe)))
                (let ((action
                       (if (and run-action
                                (<= (+ run-from gemini-companion-weave-context) p)
                                (< p (- run-to gemini-companion-weave-context)))
                           run-action
                         (gemini-companion-weave--place-action
                          write candidates known p gone any-back))))
                  (when (<= (+ run-from gemini-companion-weave-context) p)
                    (setq run-action action))
                  (pcase action
                    ('back
                     (aset result p (gemini-companion-weave--line
                                     (gemini-companion-weave--text line)
                                     (cdr marks)
                                     (gemini-companion-weave--when line))))
                    ('gone
                     (gemini-companion-weave--set-gone write p with-gone)))))
              (unless (or by (not (or how there)))
                (setq safe nil))))))))))

(defun gemini-companion-weave--run-end (write p)
  "Return the end of the run of lines from P on in the result of WRITE.
They have the same marks, came at the same steps, and in the same way."
  (let* ((result (gemini-companion-weave--write-result write))
         (line (aref result p))
         (marks (gemini-companion-weave--marks line))
         (when (gemini-companion-weave--when line))
         (hows (gemini-companion-weave--write-how write))
         (start (gemini-companion-weave--write-start write))
         (how (gemini-companion-weave--at hows start p))
         (end (1+ p))
         (other nil))
    (while (and (< end (length result))
                (setq other (aref result end))
                (not (stringp other))
                (eq marks (gemini-companion-weave--marks other))
                (eq how (gemini-companion-weave--at hows start end))
                (equal when (gemini-companion-weave--when other)))
      (setq end (1+ end)))
    end))

(defun gemini-companion-weave--place-action (write candidates known p gone any-back)
  "Return what becomes of the line with the index P in the result of WRITE.
The line is missing.  The value is `back' if it is GONE and its position is
restored, `gone' if its position does not exist any more, or `stays'.  ANY-BACK
is non-nil if some line is restored.  For CANDIDATES and KNOWN, see
`gemini-companion-weave--around'."
  (let* ((slot (if gone 1 0))
         (these (or (aref candidates slot)
                    (aset candidates slot
                          (gemini-companion-weave--candidates write gone)))))
    (if (and (not gone)
             (gemini-companion-weave--amid-removed-p write these p))
        'gone
      (let ((around (append
                     (gemini-companion-weave--around write these known p -1 gone)
                     (gemini-companion-weave--around write these known p 1 gone))))
        (cond (gone (if (if around (memq 'back around) any-back) 'back 'stays))
              ((if around
                   (cl-loop for state in around always (eq state 'removed))
                 (not (gemini-companion-weave--write-stays write)))
               'gone)
              (t 'stays))))))

(defun gemini-companion-weave--amid-removed-p (write candidates p)
  "Return non-nil if others remove line P of WRITE and the lines around it.
All lines that others remove were in the file together, so the next ones on
both sides show the position of the line.  After a reindentation, this test
alone finds that most positions are gone.  For CANDIDATES, see
`gemini-companion-weave--around'."
  (let* ((hows (gemini-companion-weave--write-how write))
         (start (gemini-companion-weave--write-start write))
         (positions (car candidates))
         ;; The line is at RANK itself, as others have removed it.
         (rank (aref (cdr candidates) p))
         (first (- rank gemini-companion-weave-context))
         (last (+ rank gemini-companion-weave-context)))
    (and (<= 0 first)
         (< last (length positions))
         (eql p (aref positions rank))
         (cl-loop for near from first to last
                  always (eq 'removed (gemini-companion-weave--at
                                       hows start (aref positions near)))))))

(defun gemini-companion-weave--set-gone (write p with-gone)
  "Mark the line P in the result of WRITE as gone, together with its position.
WITH-GONE returns its new marks.  From now on, the removal of the position
removes the line, instead of what had removed the line before."
  (let* ((result (gemini-companion-weave--write-result write))
         (before (gemini-companion-weave--before write p))
         (line (or before (aref result p))))
    (when before
      (aset (gemini-companion-weave--write-before write)
            (- p (gemini-companion-weave--write-start write))
            nil))
    (aset result p
          (gemini-companion-weave--changed
           line
           (funcall with-gone (gemini-companion-weave--marks line))
           (gemini-companion-weave--write-step write)))))

(defun gemini-companion-weave--candidates (write gone)
  "Return which lines of the result of WRITE can show the position of another line.
GONE is non-nil if that position is gone.  The value is a cons: a vector of
their positions, and a vector of how many there are before each line."
  (let* ((result (gemini-companion-weave--write-result write))
         (count (length result))
         (positions (make-vector count nil))
         (ranks (make-vector count 0))
         (n 0)
         (hows (gemini-companion-weave--write-how write))
         (start (gemini-companion-weave--write-start write))
         (there-p (gemini-companion-weave--by-run #'gemini-companion-weave--there-p))
         (removed-by (gemini-companion-weave--by-run
                      #'gemini-companion-weave--removed-by)))
    (dotimes (p count)
      (aset ranks p n)
      (let ((line (aref result p)))
        (when (or (stringp line)
                  (let ((marks (gemini-companion-weave--marks line))
                        (how (gemini-companion-weave--at hows start p)))
                    (and (not (eq how 'new))
                         (not (funcall removed-by marks))
                         (or gone how (funcall there-p marks)))))
          (aset positions n p)
          (setq n (1+ n)))))
    (cons (substring positions 0 n) ranks)))

(defun gemini-companion-weave--around (write candidates known p step gone)
  "Return the states of the lines beside the line P of WRITE that locate it.
These are the next lines, by STEP, 1 or -1, which were in the text together with
the line P or have replaced it.  For CANDIDATES, see
`gemini-companion-weave--candidates' with GONE.  KNOWN caches the last answers,
since neighboring lines have the same answer."
  (let* ((positions (car candidates))
         (rank (aref (cdr candidates) p))
         (next (cond ((< step 0) (1- rank))
                     ;; The line P is a candidate itself.
                     ((and (< rank (length positions)) (eql p (aref positions rank)))
                      (1+ rank))
                     (t rank)))
         (result (gemini-companion-weave--write-result write))
         (line (aref result p))
         (marks (gemini-companion-weave--marks line))
         (by (gemini-companion-weave--decider (if gone (cdr marks) marks)))
         (by (and by (gemini-companion-weave--hunk-of by))))
    (when (and (<= 0 next) (< next (length positions)))
      (let* ((slot (+ (if (< step 0) 0 1) (if gone 2 0)))
             (when (gemini-companion-weave--when line)))
        (pcase (aref known slot)
          ((and `(,last-next ,last-by ,last-when . ,states)
                (guard (and (eql last-next next)
                            (eq last-by by)
                            (equal last-when when))))
           states)
          (_
           (let ((states (gemini-companion-weave--around-from
                          write positions next step line by)))
             (aset known slot `(,next ,by ,when . ,states))
             states)))))))

(defun gemini-companion-weave--around-from (write positions k step line by)
  "Return the states of the lines of WRITE that locate LINE.
The lines are at POSITIONS from the index K on, by STEP.  BY is the hunk that
has removed LINE, or nil.  A state is `there', `back' or `removed'."
  (let ((result (gemini-companion-weave--write-result write))
        (hows (gemini-companion-weave--write-how write))
        (start (gemini-companion-weave--write-start write))
        (count 0)
        (states nil)
        ;; The last line that was never there with LINE; equal ones are skipped.
        (last-marks nil)
        (last-when nil)
        (last-how nil))
    (while (and (<= 0 k) (< k (length positions))
                (< count gemini-companion-weave-context))
      (let* ((q (aref positions k))
             (other (aref result q))
             (marks (gemini-companion-weave--marks other))
             (when (gemini-companion-weave--when other))
             (how (gemini-companion-weave--at hows start q)))
        (cond
         ((and (eq marks last-marks) (eq how last-how) (equal when last-when)))
         ((gemini-companion-weave--met-p other line)
          (cl-pushnew (or how 'there) states)
          (setq count (1+ count)))
         (t
          (setq last-marks marks
                last-when when
                last-how how)
          (let ((first (gemini-companion-weave--hunk-of (car (last marks)))))
            (when (or (and by (eq by first))
                      (and (null how) (gemini-companion-weave-hunk-edit first)))
              (cl-pushnew (or how 'there) states)))))
        (setq k (+ k step))))
    states))

;;;; Recording

(defun gemini-companion-weave-start (text)
  "Return the weave of a file with TEXT, a vector of lines, before any edit.
TEXT must not be modified after that."
  (gemini-companion-weave--make text 1))

(defun gemini-companion-weave-look (weave now)
  "Return WEAVE as it is for the text NOW, a vector of lines.
The value must not be recorded.  It is WEAVE itself if NOW is the known text."
  (let ((lines (car (gemini-companion-weave--rewrite
                     weave now (gemini-companion-weave-step weave)))))
    (if (eq lines (gemini-companion-weave-lines weave))
        weave
      (gemini-companion-weave--make lines (gemini-companion-weave-step weave)))))

(defun gemini-companion-weave--touching (lines left)
  "Return the hunks of LINES that touch one of the unreviewed hunks LEFT."
  (let ((left (gemini-companion-weave--set left)))
    (cl-loop for (_ _ . hunks) in (gemini-companion-weave--spans lines)
             when (seq-some (lambda (hunk) (gethash hunk left)) hunks)
             append hunks)))

(cl-defun gemini-companion-weave-write (weave edit before after
                                              &key accepted regions)
  "Return WEAVE after EDIT has changed BEFORE to AFTER, and its hunks, a cons.
Both texts are vectors of lines.  Differences between the known text and BEFORE
are attributed to others.  If the user has accepted ACCEPTED, a vector of lines,
the hunks that made it are reviewed, except hunks that touch unreviewed lines.
REGIONS are the hunks that the user was shown: a list of
`gemini-companion-lines-region's between BEFORE and ACCEPTED, or AFTER."
  (let* ((step (gemini-companion-weave-step weave))
         (look (gemini-companion-weave-look weave before))
         (hunks nil))
    (when accepted
      (let ((left (cl-loop for change in (gemini-companion-weave-changes look)
                           append (gemini-companion-weave-change-hunks change)))
            (made (gemini-companion-weave--rewrite look accepted (1+ step)
                                                   edit 0 regions)))
        (setq step (+ 2 step)
              look (gemini-companion-weave--make (car made) step)
              hunks (cdr made)
              regions nil)
        (let ((touching (gemini-companion-weave--touching (car made) left)))
          (dolist (hunk hunks)
            (setf (gemini-companion-weave-hunk-reviewed hunk)
                  (not (memq hunk touching)))))))
    (let ((made (gemini-companion-weave--rewrite look after (1+ step) edit
                                                 (length hunks) regions)))
      (cons (gemini-companion-weave--make (car made) (+ 2 step))
            (append hunks (cdr made))))))

;; What a save hook does to a line of a CLI, and nobody typed, is the CLI's.
(defun gemini-companion-weave-adopt (weave before after)
  "Return WEAVE after a formatter has changed the lines BEFORE to AFTER.
Both are vectors of lines.  A changed line that a hunk has added, or had removed
before it came back, still belongs to the hunk; other changed lines are
attributed to others.  Return nil if no hunk has a changed line."
  (let* ((look (gemini-companion-weave-look weave before))
         (lines (gemini-companion-weave-lines look))
         (indices (gemini-companion-weave--indices lines))
         ;; For each line, those in its place; `same' where it stays.
         (instead (make-vector (length lines) 'same))
         (adopted nil))
    (cl-flet* ((line-at (i) (aref lines (aref indices i)))
               (own-p (i)
                 (let ((mark (gemini-companion-weave--decider
                              (gemini-companion-weave--marks (line-at i)))))
                   (and (gemini-companion-weave--edit mark) mark)))
               (put (i texts)
                 (setq adopted t)
                 (aset instead (aref indices i)
                       (mapcar (lambda (text)
                                 (gemini-companion-weave--line
                                  text
                                  (gemini-companion-weave--marks (line-at i))
                                  (gemini-companion-weave--when (line-at i))))
                               texts))))
      (dolist (region (gemini-companion-lines-compare before after))
        (let* ((from (gemini-companion-lines-region-old region))
               (to (gemini-companion-lines-region-old-end region))
               (texts (append (substring after
                                         (gemini-companion-lines-region-new region)
                                         (gemini-companion-lines-region-new-end region))
                              nil))
               (hunks (seq-uniq
                       (cl-loop for i from from below to
                                for mark = (own-p i)
                                collect (and mark
                                             (gemini-companion-weave--hunk-of mark)))
                       #'eq)))
          (cond
           ;; The lines correspond one to one, even with untouched lines between them.
           ((= (- to from) (length texts))
            (cl-loop for i from from below to
                     for text in texts
                     when (gemini-companion-weave--of-edits-p
                           (gemini-companion-weave--marks (line-at i)))
                     do (put i (list text))))
           ;; All lines are of one hunk, and were joined or split.
           ((and hunks (null (cdr hunks)) (car hunks))
            (cl-loop for i from from below to
                     do (put i (cond ((= i (1- to)) (prog1 texts (setq texts nil)))
                                     (texts (list (pop texts)))))))))))
    (when adopted
      (gemini-companion-weave--make
       (vconcat (cl-loop for line across lines
                         for new across instead
                         append (if (eq new 'same) (list line) new)))
       (gemini-companion-weave-step look)))))

(defun gemini-companion-weave-undo (weave hunks now)
  "Return WEAVE after the user has undone HUNKS in the text NOW.
`gemini-companion-weave-text' of the value is the text without HUNKS.  What
others have reverted before is not restored with HUNKS."
  (let ((look (gemini-companion-weave-look weave now))
        (step (1+ (gemini-companion-weave-step weave))))
    (gemini-companion-weave--make
     (gemini-companion-weave--marked-again
      (gemini-companion-weave-lines look) hunks step
      (lambda (mark)
        (gemini-companion-weave--with-off
         mark (if (memq (gemini-companion-weave--off mark) '(others both))
                  'both
                'undone))))
     (1+ step))))

(defun gemini-companion-weave-undo-again (weave hunks now)
  "Return WEAVE after Emacs has undone HUNKS again, which has made the text NOW.
Which lines others had removed before is not known then."
  (let ((look (gemini-companion-weave-look weave now))
        (step (1+ (gemini-companion-weave-step weave))))
    (gemini-companion-weave--make
     (gemini-companion-weave--without (gemini-companion-weave-lines look) hunks step)
     (1+ step))))

(defun gemini-companion-weave-restore (weave hunks now)
  "Return WEAVE after the user has taken back the undo of HUNKS.
Restore only the HUNKS that are there in the text NOW, or that later ones have
superseded there."
  (let* ((step (1+ (gemini-companion-weave-step weave)))
         (rewritten (lambda (these)
                      (gemini-companion-weave--make
                       (car (gemini-companion-weave--rewrite
                             (gemini-companion-weave--make
                              (gemini-companion-weave--restored weave these step)
                              step)
                             now step))
                       (1+ step))))
         (states (gemini-companion-weave-states (funcall rewritten hunks))))
    (funcall rewritten
             (seq-filter (lambda (hunk)
                           (memq (gethash hunk states) '(there partly superseded)))
                         hunks))))

(defun gemini-companion-weave--restored (weave hunks step)
  "Return the lines of WEAVE with the marks of HUNKS on since STEP, if undone."
  (gemini-companion-weave--marked-again
   (gemini-companion-weave-lines weave) hunks step
   (lambda (mark)
     (pcase (gemini-companion-weave--off mark)
       ('undone (gemini-companion-weave--with-off mark nil))
       ('both (gemini-companion-weave--with-off mark 'others))
       (_ mark)))))

;;;; Texts

(defun gemini-companion-weave--set (hunks)
  "Return a table with a non-nil value for each of HUNKS."
  (let ((set (make-hash-table :test 'eq)))
    (dolist (hunk hunks set)
      (puthash hunk t set))))

(defun gemini-companion-weave--any-of-p (marks set)
  "Return non-nil if one of MARKS is of a hunk in SET."
  (and (not (eq marks gemini-companion-weave--base))
       (cl-loop for mark in marks
                thereis (gethash (gemini-companion-weave--hunk-of mark) set))))

(defun gemini-companion-weave--marked-again (lines hunks step change)
  "Return LINES with other marks of HUNKS since STEP.
CHANGE is called with each mark of HUNKS, and returns the mark that replaces it.
A line without such a mark is unchanged."
  (let* ((set (gemini-companion-weave--set hunks))
         (again (gemini-companion-weave--by-run
                 (lambda (marks)
                   (if (not (gemini-companion-weave--any-of-p marks set))
                       marks
                     (mapcar (lambda (mark)
                               (if (gethash (gemini-companion-weave--hunk-of mark) set)
                                   (funcall change mark)
                                 mark))
                             marks))))))
    (vconcat
     (mapcar (lambda (line)
               (if (stringp line)
                   line
                 (let* ((marks (gemini-companion-weave--marks line))
                        (after (funcall again marks)))
                   (if (eq marks after)
                       line
                     (gemini-companion-weave--changed line after step)))))
             lines))))

(defun gemini-companion-weave--without (lines hunks step)
  "Return LINES with the marks of HUNKS off since STEP."
  (gemini-companion-weave--marked-again
   lines hunks step
   (lambda (mark) (gemini-companion-weave--with-off mark 'undone))))

(defun gemini-companion-weave--texts (lines reviewed from to)
  "Return the texts of those of LINES from FROM to TO that are there, a list.
If REVIEWED is non-nil, only reviewed hunks count."
  (let ((there-p (gemini-companion-weave--by-run
                  (if reviewed
                      #'gemini-companion-weave--reviewed-p
                    #'gemini-companion-weave--there-p))))
    (cl-loop for p from from below to
             for line = (aref lines p)
             if (stringp line)
             collect line
             else when (funcall there-p (gemini-companion-weave--marks line))
             collect (gemini-companion-weave--text line))))

(defun gemini-companion-weave-text (look &optional reviewed)
  "Return the text of LOOK, a vector of lines, which must not be modified.
If REVIEWED is non-nil, return the text without unreviewed changes."
  (if reviewed
      (let ((lines (gemini-companion-weave-lines look)))
        (vconcat (gemini-companion-weave--texts lines t 0 (length lines))))
    (car (gemini-companion-weave--there-of look))))

(defun gemini-companion-weave-text-without (look hunks)
  "Return the text of LOOK without HUNKS, a vector of lines."
  (let ((lines (gemini-companion-weave--without
                (gemini-companion-weave-lines look) hunks most-positive-fixnum)))
    (vconcat (gemini-companion-weave--texts lines nil 0 (length lines)))))

;;;; Following lines

(defun gemini-companion-weave--identity (line)
  "Return the identity of LINE in this weave and later ones, compared by `eq'.
It is the cons with the step at which the line was added, or for a line from
before the first edit, its string."
  (let ((came (last (gemini-companion-weave--when line))))
    (if (eq came gemini-companion-weave--base-when)
        (gemini-companion-weave--text line)
      came)))

(defun gemini-companion-weave-identities (weave index count)
  "Return the identities of the COUNT lines at INDEX of WEAVE's text, a list.
In later weaves of the file, the same lines have the same identities;
see `gemini-companion-weave-index'."
  (let ((lines (gemini-companion-weave-lines weave)))
    (mapcar (lambda (i) (gemini-companion-weave--identity (aref lines i)))
            (seq-subseq (gemini-companion-weave--indices lines)
                        index (+ index count)))))

(defun gemini-companion-weave-index (weave identities)
  "Return the index in WEAVE's text of the lines with IDENTITIES, or nil.
For IDENTITIES, see `gemini-companion-weave-identities'.  Return nil if one of
the lines is missing, or if other lines are between them."
  (let* ((lines (gemini-companion-weave-lines weave))
         (indices (gemini-companion-weave--indices lines))
         (identity-at (lambda (k)
                        (and (< k (length indices))
                             (gemini-companion-weave--identity
                              (aref lines (aref indices k))))))
         (index (cl-loop for k below (length indices)
                         when (eq (car identities) (funcall identity-at k))
                         return k)))
    (and index
         (cl-loop for identity in identities
                  for k from index
                  always (eq identity (funcall identity-at k)))
         index)))

;;;; Changes

(defun gemini-companion-weave--left (marks)
  "Return the hunks of MARKS that are on and not reviewed."
  (cl-loop for mark in marks
           for hunk = (gemini-companion-weave--hunk-of mark)
           unless (or (gemini-companion-weave--off mark)
                      (gemini-companion-weave-hunk-reviewed hunk))
           collect hunk))

(defun gemini-companion-weave--present-and-reviewed-p (marks)
  "Return non-nil if a line with MARKS is there, and all its hunks are reviewed."
  (or (eq marks gemini-companion-weave--base)
      (and (gemini-companion-weave--there-p marks)
           (gemini-companion-weave--reviewed-p marks)
           (cl-loop for mark in marks
                    always (or (gemini-companion-weave--off mark)
                               (gemini-companion-weave-hunk-reviewed
                                (gemini-companion-weave--hunk-of mark)))))))

(defun gemini-companion-weave--spans (lines)
  "Return the ranges of LINES to review, a list of (START END . HUNKS).
Lines between two lines of a hunk belong to the hunk."
  (let ((spans nil)
        (seen (make-hash-table :test 'eq))
        (p 0)
        (count (length lines))
        (marks-done-p (gemini-companion-weave--by-run
                       #'gemini-companion-weave--present-and-reviewed-p)))
    (cl-flet ((done-p (line)
                (or (stringp line)
                    (funcall marks-done-p (gemini-companion-weave--marks line)))))
      (while (< p count)
        (if (done-p (aref lines p))
            (setq p (1+ p))
          (let ((start p)
                (last nil)
                (hunks nil))
            (while (and (< p count)
                        (not (done-p (aref lines p))))
              (let ((marks (gemini-companion-weave--marks (aref lines p))))
                (unless (or (eq marks last)
                            (gemini-companion-weave--gone-p marks))
                  (dolist (hunk (gemini-companion-weave--left marks))
                    (unless (memq hunk hunks)
                      (push hunk hunks))))
                (setq last marks
                      p (1+ p))))
            (when hunks
              ;; FIRST is the beginning of the first span with one of these hunks.
              (let ((first start))
                (dolist (hunk hunks)
                  (setq first (min first (gethash hunk seen first))))
                (while (and spans (<= first (caar spans)))
                  (pcase-let ((`(,begin ,_ . ,more) (pop spans)))
                    (setq start begin)
                    (dolist (hunk more)
                      (unless (memq hunk hunks)
                        (push hunk hunks))))))
              (dolist (hunk hunks)
                (puthash hunk start seen))
              (push (cons start (cons p hunks)) spans))))))
    (nreverse spans)))

(defun gemini-companion-weave-changes (look)
  "Return the changes of LOOK that the user has not reviewed, in order."
  (gemini-companion-weave--changes (gemini-companion-weave-lines look)))

(defun gemini-companion-weave--changes (lines)
  "Return the changes of LINES that the user has not reviewed, in order."
  (let ((spans (gemini-companion-weave--spans lines))
        (extents (gemini-companion-weave--extents lines))
        (end 0)
        (n 0)
        (changes nil))
    (while spans
      (pcase-let* ((`(,from ,to . ,hunks) (pop spans))
                   (edits (gemini-companion-weave--edits-in lines from to))
                   (here (mapcar (lambda (hunk) (gethash hunk extents)) hunks))
                   (mixed (and (seq-some #'caddr here)
                               (gemini-companion-weave--conflicts
                                lines hunks
                                (apply #'min (mapcar #'car here))
                                (apply #'max (mapcar #'cadr here)))
                               t)))
        (when mixed
          (pcase-setq `(,from . ,to)
                      (gemini-companion-weave--wider
                       lines from to end (or (caar spans) (length lines)))))
        (setq n (+ n (gemini-companion-weave--count lines end from)))
        (let* ((now (gemini-companion-weave--texts lines nil from to))
               (without (gemini-companion-weave--texts lines t from to))
               (count (length now))
               (head (if mixed 0 (gemini-companion-weave--common now without)))
               (tail (if mixed
                         0
                       (gemini-companion-weave--common
                        (reverse (nthcdr head now)) (reverse (nthcdr head without))))))
          (unless (equal now without)
            (push (gemini-companion-weave-change
                   (+ n head) (- (+ n count) tail)
                   (butlast (nthcdr head without) tail) hunks edits mixed)
                  changes))
          (setq end to
                n (+ n count)))))
    (nreverse changes)))

(defun gemini-companion-weave--count (lines from to)
  "Return the number of LINES from FROM to TO that are there."
  (let ((there-p (gemini-companion-weave--by-run #'gemini-companion-weave--there-p)))
    (cl-loop for p from from below to
             for line = (aref lines p)
             count (or (stringp line)
                       (funcall there-p (gemini-companion-weave--marks line))))))

(defun gemini-companion-weave--common (a b)
  "Return the length of the common prefix of A and B, two lists of strings."
  (cl-loop for x in a for y in b while (string= x y) count t))

(defun gemini-companion-weave--edits-in (lines from to)
  "Return the edits of the unreviewed changes in LINES from FROM to TO."
  (let ((edits nil)
        (last nil))
    (cl-loop for p from from below to
             for marks = (gemini-companion-weave--marks (aref lines p))
             unless (or (eq marks last)
                        (eq (null (gemini-companion-weave--there-p marks))
                            (null (gemini-companion-weave--reviewed-p marks))))
             do (cl-pushnew (gemini-companion-weave--edit
                             (gemini-companion-weave--decider marks))
                            edits)
             do (setq last marks))
    edits))

(defun gemini-companion-weave--extents (lines)
  "Return a table from hunks to the extents of their marks in LINES.
An extent is a list (FROM TO LOST).  LOST is non-nil if a line that the hunk
added is not there."
  (let* ((extents (make-hash-table :test 'eq))
         (p 0)
         (extents-of
          (gemini-companion-weave--by-run
           (lambda (marks)
             (let ((there (gemini-companion-weave--there-p marks)))
               (mapcar (lambda (mark)
                         (let* ((hunk (gemini-companion-weave--hunk-of mark))
                                (extent (or (gethash hunk extents)
                                            (puthash hunk (list p p nil) extents))))
                           (unless (or there
                                       (not (gemini-companion-weave--adds-p mark)))
                             (setcar (cddr extent) t))
                           extent))
                       marks))))))
    (while (< p (length lines))
      (let ((line (aref lines p)))
        (unless (stringp line)
          (dolist (extent (funcall extents-of (gemini-companion-weave--marks line)))
            (setcar (cdr extent) (1+ p)))))
      (setq p (1+ p)))
    extents))

(defun gemini-companion-weave--wider (lines from to low high)
  "Return FROM and TO, widened by LINES beside them.
These are lines that others have added, and missing lines that the reviewed text
does not have.  LOW and HIGH limit the range.  The value is a cons."
  (cl-flet ((beside-p (p)
              (let ((marks (gemini-companion-weave--marks (aref lines p))))
                (and (not (eq marks gemini-companion-weave--base))
                     (or (and (null (cdr marks))
                              (not (gemini-companion-weave--off (car marks)))
                              (null (gemini-companion-weave--edit (car marks)))
                              (not (eq (gemini-companion-weave--hunk-of (car marks))
                                       (gemini-companion-weave--hunk-of
                                        (car gemini-companion-weave--base)))))
                         (not (or (gemini-companion-weave--there-p marks)
                                  (gemini-companion-weave--reviewed-p marks))))))))
    (while (and (< low from) (beside-p (1- from)))
      (setq from (1- from)))
    (while (and (< to high) (beside-p to))
      (setq to (1+ to)))
    (cons from to)))

(defun gemini-companion-weave-conflicts (look hunks)
  "Return those of HUNKS that cannot be undone in LOOK without a question.
Others, or other hunks, have removed lines of such a hunk, and after the undo
other lines would be at their position."
  (let ((lines (gemini-companion-weave-lines look)))
    (gemini-companion-weave--conflicts lines hunks 0 (length lines))))

(defun gemini-companion-weave--conflicts (lines hunks from to)
  "Return the conflicts of HUNKS, all of whose LINES are from FROM to TO.
See `gemini-companion-weave-conflicts'."
  (let ((set (gemini-companion-weave--set hunks))
        (conflicts nil)
        (p from)
        (count (length lines)))
    (let ((of-p (gemini-companion-weave--by-run
                 (lambda (marks)
                   (gemini-companion-weave--any-of-p marks set))))
          (near-p (gemini-companion-weave--by-run
                   (lambda (marks)
                     (or (gemini-companion-weave--any-of-p marks set)
                         (not (gemini-companion-weave--there-p marks)))))))
      (while (< p to)
        (if (not (funcall of-p (gemini-companion-weave--marks (aref lines p))))
            (setq p (1+ p))
          (let ((start p))
            (while (and (< p count)
                        (funcall near-p (gemini-companion-weave--marks (aref lines p))))
              (setq p (1+ p)))
            (pcase-let ((`(,from . ,to)
                         (gemini-companion-weave--wider lines start p 0 count)))
              (setq conflicts (seq-union conflicts
                                         (gemini-companion-weave--conflicts-in
                                          lines from to set)
                                         #'eq)))))))
    conflicts))

(defun gemini-companion-weave--conflicts-in (lines from to set)
  "Return the conflicts of the hunks in SET in LINES from FROM to TO."
  (let ((lost nil)
        (works nil)
        (both nil)
        (last nil))
    (cl-loop
     for p from from below to
     for marks = (gemini-companion-weave--marks (aref lines p))
     unless (eq marks last)
     do (let* ((now (gemini-companion-weave--there-p marks))
               (after (gemini-companion-weave--there-p
                       (seq-remove (lambda (mark)
                                     (gethash (gemini-companion-weave--hunk-of mark)
                                              set))
                                   marks)))
               (decider (gemini-companion-weave--decider marks))
               (by (and decider (gemini-companion-weave--hunk-of decider))))
          (unless (or now (gethash by set))
            (dolist (mark marks)
              (when (and (gemini-companion-weave--adds-p mark)
                         (gethash (gemini-companion-weave--hunk-of mark) set))
                (cl-pushnew (gemini-companion-weave--hunk-of mark) lost))))
          (unless (eq (null now) (null after))
            (cl-pushnew by works))
          (when after
            (setq both t)))
     do (setq last marks))
    (and both (seq-intersection lost works #'eq))))

(defun gemini-companion-weave-changes-without (look hunks)
  "Return the changes of the text of LOOK that undo HUNKS, in order.
A change has only those of HUNKS that add or remove a line there.
A change with one of `gemini-companion-weave-conflicts' is mixed."
  (let ((lines (gemini-companion-weave-lines look)))
    (gemini-companion-weave--changes-to
     lines
     (gemini-companion-weave--without lines hunks most-positive-fixnum)
     lines
     (gemini-companion-weave-conflicts look hunks))))

(defun gemini-companion-weave-changes-with (look hunks)
  "Return the changes of the text of LOOK that restore HUNKS, which were undone.
The value is as for `gemini-companion-weave-changes-without'.  A change is mixed
if others have removed lines that the undo had restored."
  (let* ((lines (gemini-companion-weave-lines look))
         (set (gemini-companion-weave--set hunks))
         (with (gemini-companion-weave--restored look hunks most-positive-fixnum)))
    (gemini-companion-weave--changes-to
     lines with with
     (cl-loop for line across lines
              for marks = (gemini-companion-weave--marks line)
              unless (gemini-companion-weave--there-p marks)
              append (cl-loop
                      for mark in marks
                      for hunk = (gemini-companion-weave--hunk-of mark)
                      when (and (gethash hunk set)
                                (gemini-companion-weave--undone-p mark)
                                (not (gemini-companion-weave--adds-p mark)))
                      collect hunk)))))

(defun gemini-companion-weave--changes-to (lines after decided mixed)
  "Return the changes between LINES and AFTER, the same lines with other marks.
DECIDED is LINES or AFTER: its marks have the hunks of a change.  A change with
one of the hunks MIXED is mixed."
  (let ((n 0)
        (start nil)
        (back nil)
        (own nil)
        (changes nil))
    (cl-flet ((end-change ()
                (when start
                  (push (gemini-companion-weave-change
                         start n (nreverse back) (nreverse own)
                         (seq-uniq (mapcar #'gemini-companion-weave-hunk-edit own) #'eq)
                         (and (seq-intersection own mixed #'eq) t))
                        changes)
                  (setq start nil
                        back nil
                        own nil))))
      (cl-loop
       for line across lines
       for other across after
       for by across decided
       for now = (or (stringp line)
                     (gemini-companion-weave--there-p
                      (gemini-companion-weave--marks line)))
       for then = (if (eq line other)
                      now
                    (gemini-companion-weave--there-p
                     (gemini-companion-weave--marks other)))
       do
       (if (eq (null now) (null then))
           (when now
             (end-change))
         (setq start (or start n))
         (cl-pushnew (gemini-companion-weave--hunk-of
                      (gemini-companion-weave--decider
                       (gemini-companion-weave--marks by)))
                     own)
         (when then
           (push (gemini-companion-weave--text line) back)))
       (when now
         (setq n (1+ n))))
      (end-change))
    (nreverse changes)))

;;;; What the user has decided

(cl-defstruct (gemini-companion-weave-decided
               (:include gemini-companion-weave-change)
               (:noinline t)
               (:constructor gemini-companion-weave--decided
                             (start end lines hunks edits state with))
               (:copier nil))
  "What hunks have done at one position, on which the user has decided.
STATE is `kept', if the current text has it, or `undone'; then LINES are the
current lines there, and WITH are the lines that would be there with the hunks."
  state with)

;; A line can be kept as one hunk has it, and a later hunk of it be undone: what is kept
;; and what is undone are found separately.
(defun gemini-companion-weave-decided (look)
  "Return what hunks that were reviewed or undone did to LOOK.
The value is a list of `gemini-companion-weave-decided's: those that are
kept, in order, and those that are undone, in order.  Several hunks at one
position are one element.  Omit what others have changed since."
  (append (gemini-companion-weave--decided-runs look 'kept)
          (gemini-companion-weave--decided-runs look 'undone)))

(defun gemini-companion-weave--decided-runs (look state)
  "Return what hunks with STATE, `kept' or `undone', did to LOOK, in order."
  (let ((run nil)
        (runs nil)
        (n 0))
    (cl-labels
        ((decided-p (mark)
           (and (gemini-companion-weave--edit mark)
                (if (eq state 'undone)
                    (gemini-companion-weave--undone-p mark)
                  (and (not (gemini-companion-weave--off mark))
                       (gemini-companion-weave-hunk-reviewed
                        (gemini-companion-weave--hunk-of mark))))))
         ;; Whether the line would be there if the decision was the other one.
         (otherwise-p (marks)
           (gemini-companion-weave--there-p
            (if (eq state 'undone)
                (mapcar (lambda (mark)
                          (if (decided-p mark)
                              (gemini-companion-weave--with-off mark nil)
                            mark))
                        marks)
              (seq-remove #'decided-p marks))))
         (end-run ()
           (pcase run
             (`(,start ,hunks ,lines ,with)
              (push (gemini-companion-weave--decided
                     start n (nreverse lines) hunks
                     (seq-uniq (mapcar #'gemini-companion-weave-hunk-edit hunks) #'eq)
                     state (nreverse with))
                    runs)))
           (setq run nil)))
      (cl-loop
       for line across (gemini-companion-weave-lines look)
       for marks = (gemini-companion-weave--marks line)
       for now = (gemini-companion-weave--there-p marks)
       do (let* ((touched (and (not (eq marks gemini-companion-weave--base))
                               (not (gemini-companion-weave--gone-p marks))
                               (seq-some #'decided-p marks)))
                 (otherwise (and touched (otherwise-p marks))))
            (cond
             ((and touched (not (eq (null now) (null otherwise))))
              (unless run
                (setq run (list n nil nil nil)))
              (dolist (mark marks)
                (when (decided-p mark)
                  (cl-pushnew (gemini-companion-weave--hunk-of mark) (nth 1 run))))
              (let ((text (gemini-companion-weave--text line)))
                (when (if (eq state 'undone) now otherwise)
                  (push text (nth 2 run)))
                (when (and (eq state 'undone) otherwise)
                  (push text (nth 3 run)))))
             ;; A line that is not there separates nothing.
             (now (end-run)))
            (when now
              (setq n (1+ n)))))
      (end-run))
    (nreverse runs)))

(defun gemini-companion-weave-of-others (look)
  "Return the indices of the lines of LOOK that others have added, in order.
Omit lines that were there before the first edit."
  (let ((base (gemini-companion-weave--hunk-of (car gemini-companion-weave--base)))
        (indices nil)
        (n 0))
    (cl-loop for line across (gemini-companion-weave-lines look)
             for marks = (gemini-companion-weave--marks line)
             do (when (gemini-companion-weave--there-p marks)
                  (unless (eq marks gemini-companion-weave--base)
                    (let ((decider (gemini-companion-weave--decider marks)))
                      (unless (or (gemini-companion-weave--edit decider)
                                  (eq base (gemini-companion-weave--hunk-of decider)))
                        (push n indices))))
                  (setq n (1+ n))))
    (nreverse indices)))

;;;; What is left of hunks

(defun gemini-companion-weave--mark-state (mark marks)
  "Return what is left of the hunk of MARK in a line with MARKS, or nil.
The value is `there', `undone', `gone' or `superseded'; it is nil if the line
says nothing about the hunk."
  (let ((off (gemini-companion-weave--off mark))
        (gone (gemini-companion-weave--gone-p marks))
        (adds (gemini-companion-weave--adds-p mark)))
    (cond
     ((memq off '(undone both)) 'undone)
     ((or off (and gone adds)) 'gone)
     (gone nil)
     ((not (eq mark (gemini-companion-weave--decider marks))) 'superseded)
     ;; Without the mark, the line would be as it is.
     ((eq (null (gemini-companion-weave--there-p (remq mark marks))) (null adds)) nil)
     (t 'there))))

(defun gemini-companion-weave--hunk-state (states)
  "Return what is left of a hunk whose lines have STATES, each state once.
For a state, see `gemini-companion-weave--mark-state'."
  (cond ((memq 'there states)
         (if (or (memq 'undone states) (memq 'gone states))
             'partly
           'there))
        ((equal states '(superseded)) 'superseded)
        ((memq 'undone states) 'undone)
        (t 'gone)))

(defun gemini-companion-weave-states (look)
  "Return a table of what is left of each hunk of an edit in LOOK.
A value is `there', `partly', `undone' by the user, `gone' if others have
removed its lines or restored what it had removed, or `superseded' if later
edits have changed all of it."
  (let ((table (make-hash-table :test 'eq))
        (last gemini-companion-weave--base))
    (cl-loop
     for line across (gemini-companion-weave-lines look)
     for marks = (gemini-companion-weave--marks line)
     unless (eq marks last)
     do (dolist (mark marks)
          (when (gemini-companion-weave--edit mark)
            (let* ((hunk (gemini-companion-weave--hunk-of mark))
                   (state (gemini-companion-weave--mark-state mark marks))
                   (states (gethash hunk table)))
              (puthash hunk (if state (cl-adjoin state states) states) table))))
     do (setq last marks))
    (maphash (lambda (hunk states)
               (puthash hunk (gemini-companion-weave--hunk-state states) table))
             table)
    table))

(defun gemini-companion-weave-as-with-p (look hunk)
  "Return non-nil if the text of LOOK is as with HUNK, no matter who wrote it."
  (let ((occurs nil))
    (and (cl-loop for line across (gemini-companion-weave-lines look)
                  for marks = (gemini-companion-weave--marks line)
                  always (or (eq marks gemini-companion-weave--base)
                             (cl-loop
                              for mark in marks
                              always
                              (or (not (eq hunk (gemini-companion-weave--hunk-of mark)))
                                  (and (setq occurs t)
                                       (eq (null (gemini-companion-weave--adds-p mark))
                                           (null (gemini-companion-weave--there-p
                                                  marks))))))))
         occurs)))

(provide 'gemini-companion-weave)
;;; gemini-companion-weave.el ends here
