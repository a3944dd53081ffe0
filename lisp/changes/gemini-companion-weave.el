;;; gemini-companion-weave.el --- Who wrote which line of a file  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A file that CLIs have written has one record, its weave: in order, the lines that
;; the file has and those that it had.  A line has marks.  Each says that a hunk, which
;; is what one write of an edit did at one position, has added the line or removed it.
;; A mark is off if others, or the user who undid the hunk, have taken that back.  The
;; last mark that counts says whether the line is there:
;;
;;     marks that count                      the text
;;     those that are on                     as it is known
;;     those on whose hunks were reviewed    without what the user has not reviewed
;;     those on that are not of some hunks   after undoing these hunks
;;
;; A weave is never modified: writing, undoing and restoring return a new one.  Only
;; a write of a CLI and the decisions of the user are recorded.  A look compares the
;; text now with the text as it is known, and returns the weave that a write of that
;; text by others would give.  Changes, conflicts and states are read off a look.
;;
;; Others turn the last marks of a line on or off, as few as possible.  What the user
;; has undone stays undone: the mark by which an undone hunk had removed a line is on
;; again only if a line that the hunk had added is back, or if the undo is undone.
;; Others who bring back all that a hunk had removed, and leave nothing that it had
;; added, have undone it.  If others remove lines with all that is around them, as in
;; another branch, what a CLI had removed there gets a mark of others on top: its
;; place is gone, until that is back.
;;
;; The last newline, line ends and the coding are no part of a weave.  Two cases are
;; known as wrong: a hunk that only removed lines counts as undone after a stash and
;; its pop if a CLI has written in between, as the text does not tell that from a user
;; who removes these lines; and where a CLI writes in another branch on top of lines
;; of other edits, the state of a hunk of these can be "superseded" in place of "gone".
;;
;; The model is test/model/file_model.py, whose answers the tests compare.

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
LINES is a vector of `gemini-companion-weave-line's, and STEP a number
that is greater after each recorded write."
  lines step)

(cl-defstruct (gemini-companion-weave-hunk
               (:noinline t)
               (:constructor gemini-companion-weave--hunk (edit number &optional reviewed))
               (:copier nil))
  "What one write of EDIT did at one position.
NUMBER counts the hunks of EDIT from 0.  EDIT is nil for others.  REVIEWED is
non-nil once the user has reviewed the hunk, and `kept' if that was after it
was written; it is the only slot that is set."
  edit number reviewed)

(defun gemini-companion-weave-hunk-of-edit (edit number reviewed)
  "Return a hunk of EDIT that has no lines, with its NUMBER.
REVIEWED is non-nil if the user has reviewed it."
  (gemini-companion-weave--hunk edit number reviewed))

(defun gemini-companion-weave-hunk-of-others ()
  "Return a hunk of others that has no lines."
  (gemini-companion-weave--hunk nil 0 t))

(cl-defstruct (gemini-companion-weave-mark
               (:noinline t)
               (:constructor gemini-companion-weave--mark (hunk adds &optional off))
               (:copier nil))
  "A statement that HUNK has added a line, or has removed it if ADDS is nil.
OFF is nil, `others' if others have taken that back, or `undone' if the
user has undone HUNK."
  hunk adds off)

(cl-defstruct (gemini-companion-weave-line
               (:noinline t)
               (:constructor gemini-companion-weave--line (text marks when))
               (:copier nil))
  "A line with TEXT, and its MARKS, the last one first.
WHEN are the steps at which it came, went, came again, the last one first."
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
  "When a line was there that no CLI has touched.")

(defconst gemini-companion-weave-context 3
  "How many lines around a removed line tell whether its place is there.")

(defconst gemini-companion-weave--most-moved 500
  "How many lines that come back in another order are searched for.")

;;;; Marks

(defun gemini-companion-weave--decider (marks)
  "Return the last one of MARKS that is on, or nil."
  (while (and marks (gemini-companion-weave-mark-off (car marks)))
    (setq marks (cdr marks)))
  (car marks))

(defun gemini-companion-weave--there-p (marks)
  "Return non-nil if a line with MARKS is there."
  (or (eq marks gemini-companion-weave--base)
      (let ((mark (gemini-companion-weave--decider marks)))
        (and mark (gemini-companion-weave-mark-adds mark)))))

(defun gemini-companion-weave--reviewed-p (marks)
  "Return non-nil if a line with MARKS is there if only reviewed hunks count."
  (or (eq marks gemini-companion-weave--base)
      (progn
        (while (and marks
                    (or (gemini-companion-weave-mark-off (car marks))
                        (not (gemini-companion-weave-hunk-reviewed
                              (gemini-companion-weave-mark-hunk (car marks))))))
          (setq marks (cdr marks)))
        (and marks (gemini-companion-weave-mark-adds (car marks))))))

(defun gemini-companion-weave--edit (mark)
  "Return the edit of MARK, or nil if it is a mark of others."
  (gemini-companion-weave-hunk-edit (gemini-companion-weave-mark-hunk mark)))

(defun gemini-companion-weave--gone-p (marks)
  "Return non-nil if others have removed a line with MARKS and all around it."
  (not (or (gemini-companion-weave-mark-adds (car marks))
           (gemini-companion-weave--edit (car marks)))))

(defun gemini-companion-weave--of-edits-p (marks)
  "Return non-nil if one of MARKS is of an edit."
  (and (not (eq marks gemini-companion-weave--base))
       (seq-some #'gemini-companion-weave--edit marks)))

(defun gemini-companion-weave--removed-by (marks)
  "Return the hunk of an edit that has removed a line with MARKS, or nil.
The place of the line may be gone since."
  (and (not (eq marks gemini-companion-weave--base))
       (let ((mark (gemini-companion-weave--decider
                    (if (gemini-companion-weave--gone-p marks) (cdr marks) marks))))
         (and mark
              (not (gemini-companion-weave-mark-adds mark))
              (gemini-companion-weave--edit mark)
              (gemini-companion-weave-mark-hunk mark)))))

(defun gemini-companion-weave--with-off (mark off)
  "Return MARK with OFF in that slot."
  (if (eq off (gemini-companion-weave-mark-off mark))
      mark
    (gemini-companion-weave--mark (gemini-companion-weave-mark-hunk mark)
                                  (gemini-companion-weave-mark-adds mark)
                                  off)))

(defun gemini-companion-weave--switched (marks)
  "Return MARKS after others have removed the line, or have brought it back.
As few of the last ones as possible are turned.  No mark by which a hunk
has removed the line is on again."
  (let ((want (not (gemini-companion-weave--there-p marks)))
        (passed nil)
        (done nil))
    (while (and marks (not done))
      (let* ((mark (pop marks))
             (off (gemini-companion-weave-mark-off mark))
             (adds (gemini-companion-weave-mark-adds mark)))
        (cond
         ((not (eq (eq (and adds t) want) (and off t)))
          (push mark passed))
         ((and off (not adds))
          (push mark passed))
         ;; The place is back: this mark is dropped.
         ((and (not adds) (null (gemini-companion-weave--edit mark))))
         (t
          (push (gemini-companion-weave--with-off mark (if off nil 'others)) passed)))
        (setq done (eq want (and (gemini-companion-weave--there-p
                                  (gemini-companion-weave--joined passed marks))
                                 t)))))
    (gemini-companion-weave--joined passed marks)))

(defun gemini-companion-weave--joined (passed marks)
  "Return the list of PASSED, in reverse, and MARKS."
  (let ((result marks))
    (dolist (mark passed result)
      (push mark result))))

(defun gemini-companion-weave--changed (line marks step)
  "Return LINE with MARKS since STEP."
  (let ((when (gemini-companion-weave-line-when line)))
    (gemini-companion-weave--line
     (gemini-companion-weave-line-text line)
     marks
     (if (eq (null (gemini-companion-weave--there-p marks))
             (null (gemini-companion-weave--there-p
                    (gemini-companion-weave-line-marks line))))
         when
       (cons step when)))))

(defun gemini-companion-weave--met-p (one other)
  "Return non-nil if ONE and OTHER were there at the same time.
Then the order of these two lines counts."
  (let ((a (gemini-companion-weave-line-when one))
        (b (gemini-companion-weave-line-when other)))
    (if (or (and (null (cdr a)) (null (cdr b)))
            (equal a b))
        t
      (let ((to (if (cl-oddp (length a)) most-positive-fixnum (pop a)))
            (met nil))
        (while (and a (not met))
          (let* ((from (pop a))
                 (rest b)
                 (other-to (if (cl-oddp (length rest)) most-positive-fixnum (pop rest))))
            (while (and rest (not met))
              (setq met (and (< (pop rest) to) (< from other-to))
                    other-to (pop rest))))
          (setq to (pop a)))
        met))))

;;;; Writing

(cl-defstruct (gemini-companion-weave--write
               (:noinline t)
               (:constructor gemini-companion-weave--make-write)
               (:copier nil))
  "One step from OLD, a vector of lines, to the next.
EDIT, or others if that is nil, have made TEXT, a vector of strings.  AT has the
index in OLD for each line of TEXT that is there already, and IN-TEXT is the reverse.
NEW has the number of the region for each line of TEXT that was not there, and
REMOVED that of each line of OLD that is not there any more.  HUNKS has a hunk for
each region, and LASTS the last line removed there.

RESULT has the COUNT lines so far.  HOW says of each whether it is `new', `back',
`removed' or nil, and BEFORE has what it was if others have removed it or brought
it back."
  old text step edit at in-text new removed hunks lasts
  result how before (count 0) changed)

(defun gemini-companion-weave--rewrite (lines text step &optional edit first regions)
  "Return LINES after TEXT was made of them at STEP, and the new hunks.
The value is a cons.  If EDIT is nil, others have done that; else the numbers of
its hunks are from FIRST on.  REGIONS are where both differ, if known."
  (let* ((old (gemini-companion-weave--indices lines))
         (regions (or regions
                      (gemini-companion-lines-compare
                       (gemini-companion-weave--texts-at lines old) text))))
    (if (null regions)
        (list lines)
      (let* ((size (+ (length lines) (length text)))
             (write (gemini-companion-weave--make-write
                     :old lines :text text :step step :edit edit
                     :at (make-vector (length text) nil)
                     :new (make-vector (length text) nil)
                     :in-text (make-vector (length lines) nil)
                     :removed (make-vector (length lines) nil)
                     :result (make-vector size nil)
                     :how (make-vector size nil)
                     :before (make-vector size nil))))
        (gemini-companion-weave--set-regions write old regions (or first 0))
        (gemini-companion-weave--put-all write)
        (unless edit
          (gemini-companion-weave--redo-as-a-whole write)
          (gemini-companion-weave--mark-gone write)
          (gemini-companion-weave--undo-as-a-whole write))
        (cons (substring (gemini-companion-weave--write-result write) 0
                         (gemini-companion-weave--write-count write))
              (append (gemini-companion-weave--write-hunks write) nil))))))

(defun gemini-companion-weave--indices (lines)
  "Return the indices of those of LINES that are there, a vector."
  (let ((indices (make-vector (length lines) nil))
        (count 0))
    (dotimes (i (length lines))
      (when (gemini-companion-weave--there-p
             (gemini-companion-weave-line-marks (aref lines i)))
        (aset indices count i)
        (setq count (1+ count))))
    (substring indices 0 count)))

(defun gemini-companion-weave--texts-at (lines indices)
  "Return the texts of those of LINES at INDICES, both vectors."
  (let ((texts (make-vector (length indices) nil)))
    (dotimes (k (length indices))
      (aset texts k (gemini-companion-weave-line-text (aref lines (aref indices k)))))
    texts))

(defun gemini-companion-weave--set-regions (write old regions first)
  "Set the slots of WRITE that say which lines stay, from REGIONS.
OLD are the indices of the lines that are there, and FIRST is the number of the
first hunk."
  (let* ((edit (gemini-companion-weave--write-edit write))
         (at (gemini-companion-weave--write-at write))
         (in-text (gemini-companion-weave--write-in-text write))
         (new (gemini-companion-weave--write-new write))
         (removed (gemini-companion-weave--write-removed write))
         (others (gemini-companion-weave--hunk
                  nil (gemini-companion-weave--write-step write) t))
         (hunks nil)
         (lasts nil)
         (number 0)
         (i 0)
         (j 0))
    (cl-flet ((stay-until (end)
                (while (< i end)
                  (aset at j (aref old i))
                  (aset in-text (aref old i) j)
                  (setq i (1+ i)
                        j (1+ j)))))
      (dolist (region regions)
        (let ((from (gemini-companion-lines-region-old region))
              (to (gemini-companion-lines-region-old-end region))
              (new-to (gemini-companion-lines-region-new-end region)))
          (stay-until from)
          (push (and (< i to) (aref old (1- to))) lasts)
          (push (if edit
                    (gemini-companion-weave--hunk edit (+ first number))
                  others)
                hunks)
          (while (< i to)
            (aset removed (aref old i) number)
            (setq i (1+ i)))
          (while (< j new-to)
            (aset new j number)
            (setq j (1+ j)))
          (setq number (1+ number))))
      (stay-until (length old)))
    (setf (gemini-companion-weave--write-hunks write) (vconcat (nreverse hunks))
          (gemini-companion-weave--write-lasts write) (vconcat (nreverse lasts)))))

(defun gemini-companion-weave--put (write line &optional how before)
  "Add LINE to the result of WRITE; for HOW and BEFORE, see there."
  (let ((n (gemini-companion-weave--write-count write)))
    (aset (gemini-companion-weave--write-result write) n line)
    (when how
      (aset (gemini-companion-weave--write-how write) n how)
      (when (memq how '(back removed))
        (push n (gemini-companion-weave--write-changed write))))
    (when before
      (aset (gemini-companion-weave--write-before write) n before))
    (setf (gemini-companion-weave--write-count write) (1+ n))))

(defun gemini-companion-weave--put-all (write)
  "Put the lines of WRITE, between two lines that no CLI has touched at a time.
Those were there with all others, so the order is free only between them."
  (let* ((old (gemini-companion-weave--write-old write))
         (at (gemini-companion-weave--write-at write))
         (count (length at))
         (from 0)
         (new-from 0)
         (j 0))
    (while (<= j count)
      (let ((i (if (= j count) (length old) (aref at j))))
        (when (and i
                   (or (= j count)
                       (eq gemini-companion-weave--base
                           (gemini-companion-weave-line-marks (aref old i)))))
          (when (or (< from i) (< new-from j))
            (gemini-companion-weave--put-gap write from i new-from j))
          (when (< j count)
            (gemini-companion-weave--put write (aref old i)))
          (setq from (1+ i)
                new-from (1+ j))))
      (setq j (1+ j)))))

(defun gemini-companion-weave--put-gap (write from to new-from new-to)
  "Put the lines of WRITE with indices from FROM to TO.
The text has those from NEW-FROM to NEW-TO there."
  (let* ((at (gemini-companion-weave--write-at write))
         (text (gemini-companion-weave--write-text write))
         (step (gemini-companion-weave--write-step write))
         (new (gemini-companion-weave--write-new write))
         (hunks (gemini-companion-weave--write-hunks write))
         (lasts (gemini-companion-weave--write-lasts write))
         (order (vconcat (number-sequence from (1- to))))
         (order (if (cl-loop for j from new-from below new-to thereis (aref new j))
                    (gemini-companion-weave--with-returning write order new-from new-to)
                  order))
         (places (gemini-companion-weave--places order from))
         (limits (make-vector (- new-to new-from) nil))
         (limit (length order))
         (done 0))
    (cl-loop for j downfrom (1- new-to) to new-from
             do (when (aref at j)
                  (setq limit (aref places (- (aref at j) from))))
             (aset limits (- j new-from) limit))
    (cl-flet ((put-until (end)
                (while (< done end)
                  (gemini-companion-weave--put-old write (aref order done))
                  (setq done (1+ done)))))
      (cl-loop for j from new-from below new-to
               for limit = (aref limits (- j new-from))
               do (if (aref at j)
                      (put-until (1+ limit))
                    (let ((last (aref lasts (aref new j))))
                      ;; After those in whose place it is.
                      (when last
                        (put-until (min limit (1+ (aref places (- last from))))))
                      (gemini-companion-weave--put
                       write
                       (gemini-companion-weave--line
                        (aref text j)
                        (list (gemini-companion-weave--mark
                               (aref hunks (aref new j)) t))
                        (list step))
                       'new))))
      (put-until (length order)))))

(defun gemini-companion-weave--places (order from)
  "Return the position in ORDER of each line from index FROM on, a vector."
  (let ((places (make-vector (length order) nil)))
    (dotimes (p (length order))
      (aset places (- (aref order p) from) p))
    places))

(defun gemini-companion-weave--put-old (write i)
  "Put the line with the index I of WRITE."
  (let* ((old (gemini-companion-weave--write-old write))
         (edit (gemini-companion-weave--write-edit write))
         (line (aref old i))
         (marks (gemini-companion-weave-line-marks line))
         (j (aref (gemini-companion-weave--write-in-text write) i))
         (number (if j
                     (aref (gemini-companion-weave--write-new write) j)
                   (aref (gemini-companion-weave--write-removed write) i))))
    (if (null number)
        (gemini-companion-weave--put write line)
      (let ((after (if edit
                       (cons (gemini-companion-weave--mark
                              (aref (gemini-companion-weave--write-hunks write) number)
                              (and j t))
                             marks)
                     (gemini-companion-weave--switched marks))))
        ;; A line that no CLI has touched is forgotten, unless it tells the place of
        ;; one that a CLI has.
        (when (or j edit
                  (gemini-companion-weave--of-edits-p after)
                  (gemini-companion-weave--near-p old i))
          (gemini-companion-weave--put
           write
           (gemini-companion-weave--changed line after
                                            (gemini-companion-weave--write-step write))
           (if j 'back 'removed)
           (and (null edit) line)))))))

(defun gemini-companion-weave--near-p (lines i)
  "Return non-nil if a CLI has changed a line of LINES near the index I."
  (cl-loop for k from (max 0 (- i gemini-companion-weave-context))
           to (min (1- (length lines)) (+ i gemini-companion-weave-context))
           thereis (gemini-companion-weave--of-edits-p
                    (gemini-companion-weave-line-marks (aref lines k)))))

;;;; Lines that come back

(defun gemini-companion-weave--with-returning (write order new-from new-to)
  "Return ORDER with the lines that are back moved to where the text has them.
Record in WRITE which of its lines from NEW-FROM to NEW-TO these are."
  (let* ((at (gemini-companion-weave--write-at write))
         (in-text (gemini-companion-weave--write-in-text write))
         (from (if (equal order []) 0 (seq-min order)))
         (dead (gemini-companion-weave--dead write order))
         (fresh (gemini-companion-weave--fresh write new-from new-to)))
    (unless (or (null dead) (null fresh))
      ;; Most come back in order: these are found in one pass.
      (let ((places (gemini-companion-weave--places order from))
            (nexts (make-vector (- new-to new-from) (length order)))
            (next (length order))
            (j new-from)
            (last -1)
            (found nil))
        (cl-loop for k downfrom (1- new-to) to new-from
                 do (when (aref at k)
                      (setq next (aref places (- (aref at k) from))))
                 (aset nexts (- k new-from) next))
        (pcase-dolist (`(,i . ,new) (gemini-companion-weave--pairs write dead fresh))
          (while (< j new)
            (when (aref at j)
              (setq last (aref places (- (aref at j) from))))
            (setq j (1+ j)))
          (when (< last (aref places (- i from)) (aref nexts (- new new-from)))
            (push (cons i new) found)))
        (pcase-dolist (`(,i . ,new) found)
          (aset at new i)
          (aset in-text i new)))
      ;; Lines of different times may be in another order.
      (let ((more t))
        (while more
          (setq more nil
                dead (seq-take (gemini-companion-weave--dead write order)
                               gemini-companion-weave--most-moved)
                fresh (seq-take (gemini-companion-weave--fresh write new-from new-to)
                                gemini-companion-weave--most-moved))
          (when (and dead fresh)
            (pcase-dolist (`(,i . ,j) (gemini-companion-weave--pairs write dead fresh))
              (let ((moved (gemini-companion-weave--moved write order i j
                                                          new-from new-to)))
                (when moved
                  (setq order moved
                        more t)
                  (aset at j i)
                  (aset in-text i j))))))))
    order))

(defun gemini-companion-weave--dead (write order)
  "Return those indices of ORDER, a list, whose lines WRITE has not in its text.
Those that it removes are left out."
  (let ((in-text (gemini-companion-weave--write-in-text write))
        (removed (gemini-companion-weave--write-removed write)))
    (cl-loop for i across order
             unless (or (aref in-text i) (aref removed i))
             collect i)))

(defun gemini-companion-weave--fresh (write new-from new-to)
  "Return which lines of the text of WRITE from NEW-FROM to NEW-TO are new."
  (let ((at (gemini-companion-weave--write-at write))
        (new (gemini-companion-weave--write-new write)))
    (cl-loop for j from new-from below new-to
             when (and (aref new j) (null (aref at j)))
             collect j)))

(defun gemini-companion-weave--pairs (write dead fresh)
  "Return which lines DEAD of WRITE and FRESH of its text are alike.
All are indices.  The value is a list of conses in order."
  (let* ((dead (vconcat dead))
         (fresh (vconcat fresh))
         (text (gemini-companion-weave--write-text write))
         (pairs nil)
         (i 0)
         (j 0))
    (cl-flet ((pair-until (end)
                (while (< i end)
                  (push (cons (aref dead i) (aref fresh j)) pairs)
                  (setq i (1+ i)
                        j (1+ j)))))
      (dolist (region (gemini-companion-lines-compare
                       (gemini-companion-weave--texts-at
                        (gemini-companion-weave--write-old write) dead)
                       (vconcat (mapcar (lambda (k) (aref text k)) fresh))))
        (pair-until (gemini-companion-lines-region-old region))
        (setq i (gemini-companion-lines-region-old-end region)
              j (gemini-companion-lines-region-new-end region)))
      (pair-until (length dead)))
    (nreverse pairs)))

(defun gemini-companion-weave--moved (write order i j new-from new-to)
  "Return ORDER with the line I of WRITE where the line J of the text is.
NEW-FROM and NEW-TO are as in `gemini-companion-weave--with-returning'.  I may
pass lines that were never there with it, and takes those along that were, and
are not now.  Return nil if that is impossible."
  (let* ((old (gemini-companion-weave--write-old write))
         (at (gemini-companion-weave--write-at write))
         (in-text (gemini-companion-weave--write-in-text write))
         (before (cl-loop for k downfrom (1- j) to new-from thereis (aref at k)))
         (after (cl-loop for k from (1+ j) below new-to thereis (aref at k)))
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

(defun gemini-companion-weave--redo-as-a-whole (write)
  "Turn hunks on again as a whole of which WRITE has brought back an added line."
  (let* ((result (gemini-companion-weave--write-result write))
         (how (gemini-companion-weave--write-how write))
         (before (gemini-companion-weave--write-before write))
         (places (gemini-companion-weave--write-changed write))
         (back nil))
    (dolist (p places)
      (when (eq 'back (aref how p))
        (cl-loop for was in (reverse (gemini-companion-weave-line-marks (aref before p)))
                 for is in (reverse (gemini-companion-weave-line-marks (aref result p)))
                 when (and (gemini-companion-weave-mark-adds was)
                           (gemini-companion-weave-mark-off was)
                           (not (gemini-companion-weave-mark-off is))
                           (gemini-companion-weave--edit was))
                 do (cl-pushnew (gemini-companion-weave-mark-hunk was) back))))
    (when back
      (dolist (p places)
        (when (eq 'removed (aref how p))
          (let* ((line (aref before p))
                 (marks (gemini-companion-weave-line-marks line))
                 (again (cl-loop
                         for mark in marks
                         for turned = (and (gemini-companion-weave-mark-off mark)
                                           (not (gemini-companion-weave-mark-adds mark))
                                           (memq (gemini-companion-weave-mark-hunk mark)
                                                 back)
                                           (gemini-companion-weave--replaced marks mark))
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
They have brought back what it had removed, and nothing of it is there."
  (let* ((result (gemini-companion-weave--write-result write))
         (before (gemini-companion-weave--write-before write))
         (count (gemini-companion-weave--write-count write))
         (undone nil))
    (dolist (p (gemini-companion-weave--write-changed write))
      (when (aref before p)
        (cl-loop for was in (reverse (gemini-companion-weave-line-marks (aref before p)))
                 for is in (reverse (gemini-companion-weave-line-marks (aref result p)))
                 when (and (not (gemini-companion-weave-mark-adds was))
                           (not (gemini-companion-weave-mark-off was))
                           (gemini-companion-weave-mark-off is)
                           (gemini-companion-weave--edit was))
                 do (cl-pushnew (gemini-companion-weave-mark-hunk was) undone))))
    (when undone
      (dotimes (p count)
        (let ((marks (gemini-companion-weave-line-marks (aref result p))))
          (unless (eq marks gemini-companion-weave--base)
            (when-let* ((mark (gemini-companion-weave--decider marks)))
              (setq undone (delq (gemini-companion-weave-mark-hunk mark) undone)))))))
    (when undone
      (let ((hunks (gemini-companion-weave--set undone)))
        (dotimes (p count)
          (aset result p
                (gemini-companion-weave--line-without
                 (aref result p) hunks
                 (gemini-companion-weave--write-step write))))))))

(defun gemini-companion-weave--mark-gone (write)
  "Mark what a CLI has removed where its place is not in WRITE of others.
So it is if another branch is checked out.  Unmark it if the place is back."
  (when (gemini-companion-weave--write-changed write)
    (let* ((result (gemini-companion-weave--write-result write))
           (how (gemini-companion-weave--write-how write))
           (before (gemini-companion-weave--write-before write))
           (step (gemini-companion-weave--write-step write))
           (candidates (vector nil nil))
           (known (make-vector 4 nil))
           (any-back (cl-loop for p in (gemini-companion-weave--write-changed write)
                              thereis (eq 'back (aref how p)))))
      (dotimes (p (gemini-companion-weave--write-count write))
        (let* ((line (aref result p))
               (marks (gemini-companion-weave-line-marks line)))
          (when (and (not (eq marks gemini-companion-weave--base))
                     (not (gemini-companion-weave--there-p marks))
                     (or (aref before p) (gemini-companion-weave--removed-by marks)))
            (let* ((gone (and (gemini-companion-weave--gone-p marks) t))
                   (these (or (aref candidates (if gone 1 0))
                              (aset candidates (if gone 1 0)
                                    (gemini-companion-weave--candidates write gone))))
                   (around (append
                            (gemini-companion-weave--around write these known p -1 gone)
                            (gemini-companion-weave--around write these known p 1 gone))))
              (cond
               (gone
                (when (if around (memq 'back around) any-back)
                  (aset result p (gemini-companion-weave--line
                                  (gemini-companion-weave-line-text line)
                                  (cdr marks)
                                  (gemini-companion-weave-line-when line)))))
               ((if around
                    (cl-loop for one in around always (eq one 'removed))
                  (not (gemini-companion-weave--any-stays-p write)))
                ;; What removes the place removes the line, and not what did so before.
                (let ((line (or (aref before p) line)))
                  (aset before p nil)
                  (aset result p
                        (gemini-companion-weave--changed
                         line
                         (cons (gemini-companion-weave--mark
                                (gemini-companion-weave--hunk nil step t) nil)
                               (gemini-companion-weave-line-marks line))
                         step))))))))))))

(defun gemini-companion-weave--any-stays-p (write)
  "Return non-nil if a line of the text of WRITE was there before."
  (let ((at (gemini-companion-weave--write-at write))
        (new (gemini-companion-weave--write-new write)))
    (cl-loop for j below (length at)
             thereis (and (aref at j) (null (aref new j))))))

(defun gemini-companion-weave--candidates (write gone)
  "Return which lines of the result of WRITE can tell the place of another.
GONE is non-nil if that place is gone.  The value is a cons: a vector of their
positions, and a vector of how many there are before each line."
  (let* ((result (gemini-companion-weave--write-result write))
         (how (gemini-companion-weave--write-how write))
         (count (gemini-companion-weave--write-count write))
         (positions (make-vector count nil))
         (ranks (make-vector count 0))
         (n 0))
    (dotimes (p count)
      (aset ranks p n)
      (let ((marks (gemini-companion-weave-line-marks (aref result p)))
            (this (aref how p)))
        (when (or (and (eq marks gemini-companion-weave--base) (not (eq this 'new)))
                  (and (not (eq this 'new))
                       (or gone this (gemini-companion-weave--there-p marks))
                       (not (gemini-companion-weave--removed-by marks))))
          (aset positions n p)
          (setq n (1+ n)))))
    (cons (substring positions 0 n) ranks)))

(defun gemini-companion-weave--around (write candidates known p step gone)
  "Return how the next lines of WRITE from P on are that tell its place.
These were there with it, or came instead of it.  STEP is 1 or -1.
CANDIDATES are as of `gemini-companion-weave--candidates' with GONE.
KNOWN has the last answers, as lines beside one another have the same
around them."
  (let* ((positions (car candidates))
         (rank (aref (cdr candidates) p))
         (k (cond ((< step 0) (1- rank))
                  ((and (< rank (length positions)) (eql p (aref positions rank)))
                   (1+ rank))
                  (t rank)))
         (result (gemini-companion-weave--write-result write))
         (line (aref result p))
         (marks (gemini-companion-weave-line-marks line))
         (by (gemini-companion-weave--decider (if gone (cdr marks) marks)))
         (by (and by (gemini-companion-weave-mark-hunk by))))
    (when (and (<= 0 k) (< k (length positions)))
      (let* ((slot (+ (if (< step 0) 0 1) (if gone 2 0)))
             (when (gemini-companion-weave-line-when line))
             (start k)
             (found nil))
        (if (pcase (aref known slot)
              (`(,last ,last-by ,last-when . ,answer)
               (when (and (eql last k) (eq last-by by) (equal last-when when))
                 (setq found answer)
                 t)))
            found
          (let ((count 0))
            (while (and (<= 0 k) (< k (length positions))
                        (< count gemini-companion-weave-context))
              (let* ((q (aref positions k))
                     (other (aref result q))
                     (how (aref (gemini-companion-weave--write-how write) q))
                     (first (gemini-companion-weave-mark-hunk
                             (car (last (gemini-companion-weave-line-marks other))))))
                (cond ((gemini-companion-weave--met-p other line)
                       (cl-pushnew (or how 'there) found)
                       (setq count (1+ count)))
                      ((or (and by (eq by first))
                           (and (null how) (gemini-companion-weave-hunk-edit first)))
                       (cl-pushnew (or how 'there) found))))
              (setq k (+ k step))))
          (aset known slot (cons start (cons by (cons when found))))
          found)))))

;;;; Recording

(defun gemini-companion-weave-start (text)
  "Return the weave of a file with TEXT, a vector of lines, before any edit."
  (gemini-companion-weave--make
   (vconcat (mapcar (lambda (line)
                      (gemini-companion-weave--line line gemini-companion-weave--base
                                                    gemini-companion-weave--base-when))
                    text))
   1))

(defun gemini-companion-weave-look (weave now)
  "Return WEAVE as it is with the text NOW, a vector of lines.
The value is not to be recorded: it is WEAVE itself if NOW is the text that is
known."
  (let ((lines (car (gemini-companion-weave--rewrite
                     (gemini-companion-weave-lines weave) now
                     (gemini-companion-weave-step weave)))))
    (if (eq lines (gemini-companion-weave-lines weave))
        weave
      (gemini-companion-weave--make lines (gemini-companion-weave-step weave)))))

(cl-defun gemini-companion-weave-write (weave edit before after
                                              &key accepted regions)
  "Return WEAVE after EDIT has made AFTER of BEFORE, and its hunks, a cons.
Both are vectors of lines.  What differs between the text that is known and
BEFORE is by others.  If the user has accepted ACCEPTED, a vector of lines,
the hunks that made it are reviewed, but for those that touch what was not.
REGIONS are the hunks that the user was shown: a list of
`gemini-companion-lines-region's between BEFORE and ACCEPTED, or AFTER."
  (let* ((step (gemini-companion-weave-step weave))
         (lines (gemini-companion-weave-lines (gemini-companion-weave-look weave before)))
         (hunks nil))
    (when accepted
      (let* ((left (gemini-companion-weave--set
                    (cl-loop for change in (gemini-companion-weave--changes lines)
                             append (gemini-companion-weave-change-hunks change))))
             (made (gemini-companion-weave--rewrite lines accepted (1+ step)
                                                    edit 0 regions))
             (touching nil))
        (setq lines (car made)
              hunks (cdr made)
              regions nil
              step (+ 2 step))
        (pcase-dolist (`(,_ ,_ . ,here) (gemini-companion-weave--spans lines))
          (when (seq-some (lambda (hunk) (gethash hunk left)) here)
            (setq touching (append here touching))))
        (dolist (hunk hunks)
          (setf (gemini-companion-weave-hunk-reviewed hunk)
                (not (memq hunk touching))))))
    (let ((made (gemini-companion-weave--rewrite lines after (1+ step) edit
                                                 (length hunks) regions)))
      (cons (gemini-companion-weave--make (car made) (+ 2 step))
            (append hunks (cdr made))))))

;; What a save hook does to a line of a CLI, and nobody typed, is the CLI's.
(defun gemini-companion-weave-adopt (weave before after)
  "Return WEAVE after lines of hunks in BEFORE were formatted to those in AFTER.
Both are vectors of lines.  A changed line of a hunk stays one of it; the lines
of nobody that were changed are by others.  Return nil if no hunk has a changed
line."
  (let* ((look (gemini-companion-weave-look weave before))
         (lines (gemini-companion-weave-lines look))
         (indices (gemini-companion-weave--indices lines))
         ;; For each line, those in its place; `same' where it stays.
         (instead (make-vector (length lines) 'same))
         (adopted nil))
    (cl-flet* ((line-at (i) (aref lines (aref indices i)))
               (own-p (i)
                 (let ((mark (gemini-companion-weave--decider
                              (gemini-companion-weave-line-marks (line-at i)))))
                   (and (gemini-companion-weave--edit mark) mark)))
               (put (i texts)
                 (setq adopted t)
                 (aset instead (aref indices i)
                       (mapcar (lambda (text)
                                 (gemini-companion-weave--line
                                  text
                                  (gemini-companion-weave-line-marks (line-at i))
                                  (gemini-companion-weave-line-when (line-at i))))
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
                                             (gemini-companion-weave-mark-hunk mark)))
                       #'eq)))
          (cond
           ;; Line by line, also where lines of nobody are between them.
           ((= (- to from) (length texts))
            (cl-loop for i from from below to
                     for text in texts
                     when (own-p i) do (put i (list text))))
           ;; One hunk has all lines, which are joined or split.
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
`gemini-companion-weave-text' of the value is the text without them."
  (let ((look (gemini-companion-weave-look weave now))
        (step (1+ (gemini-companion-weave-step weave))))
    (gemini-companion-weave--make
     (gemini-companion-weave--without (gemini-companion-weave-lines look) hunks step)
     (1+ step))))

(defun gemini-companion-weave-restore (weave hunks now)
  "Return WEAVE after the user has undone the undo of HUNKS.
That concerns those of HUNKS only that are there in the text NOW."
  (let* ((step (1+ (gemini-companion-weave-step weave)))
         (rewritten (lambda (these)
                      (gemini-companion-weave--make
                       (car (gemini-companion-weave--rewrite
                             (gemini-companion-weave--restored weave these step)
                             now step))
                       (1+ step))))
         (states (gemini-companion-weave-states (funcall rewritten hunks))))
    (funcall rewritten
             (seq-filter (lambda (hunk) (memq (gethash hunk states) '(there partly)))
                         hunks))))

(defun gemini-companion-weave--restored (weave hunks step)
  "Return the lines of WEAVE with the marks of HUNKS on since STEP, if undone."
  (let ((set (gemini-companion-weave--set hunks)))
    (vconcat
     (mapcar
      (lambda (line)
        (gemini-companion-weave--marked-again
         line set step
         (lambda (mark)
           (if (eq 'undone (gemini-companion-weave-mark-off mark))
               (gemini-companion-weave--with-off mark nil)
             mark))))
      (gemini-companion-weave-lines weave)))))

;;;; Memory

(defun gemini-companion-weave-size (weave)
  "Return about how many bytes of memory WEAVE takes."
  (let ((bytes 0))
    (cl-loop for line across (gemini-companion-weave-lines weave)
             do (setq bytes
                      ;; A string and the line have headers, a mark takes four words.
                      (+ bytes 88 (string-bytes (gemini-companion-weave-line-text line))
                         (if (eq gemini-companion-weave--base
                                 (gemini-companion-weave-line-marks line))
                             0
                           (* 64 (length (gemini-companion-weave-line-marks line)))))))
    bytes))

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
                thereis (gethash (gemini-companion-weave-mark-hunk mark) set))))

(defun gemini-companion-weave--line-without (line set step)
  "Return LINE with the marks of the hunks in SET off since STEP."
  (gemini-companion-weave--marked-again
   line set step
   (lambda (mark) (gemini-companion-weave--with-off mark 'undone))))

(defun gemini-companion-weave--marked-again (line set step change)
  "Return LINE with other marks of the hunks in SET since STEP.
CHANGE is called with each of them, and returns the mark in its place.  A line
without such a mark is returned as it is."
  (let ((marks (gemini-companion-weave-line-marks line)))
    (if (not (gemini-companion-weave--any-of-p marks set))
        line
      (gemini-companion-weave--changed
       line
       (mapcar (lambda (mark)
                 (if (gethash (gemini-companion-weave-mark-hunk mark) set)
                     (funcall change mark)
                   mark))
               marks)
       step))))

(defun gemini-companion-weave--without (lines hunks step)
  "Return LINES with the marks of HUNKS off since STEP."
  (let ((set (gemini-companion-weave--set hunks)))
    (vconcat (mapcar (lambda (line)
                       (gemini-companion-weave--line-without line set step))
                     lines))))

(defun gemini-companion-weave--texts (lines reviewed from to)
  "Return the texts of those of LINES from FROM to TO that are there, a list.
If REVIEWED is non-nil, only reviewed hunks count."
  (cl-loop for p from from below to
           for line = (aref lines p)
           for marks = (gemini-companion-weave-line-marks line)
           when (if reviewed
                    (gemini-companion-weave--reviewed-p marks)
                  (gemini-companion-weave--there-p marks))
           collect (gemini-companion-weave-line-text line)))

(defun gemini-companion-weave-text (look &optional reviewed)
  "Return the text of LOOK, a vector of lines.
If REVIEWED is non-nil, that is the text without what was not reviewed."
  (let ((lines (gemini-companion-weave-lines look)))
    (vconcat (gemini-companion-weave--texts lines reviewed 0 (length lines)))))

(defun gemini-companion-weave-text-without (look hunks)
  "Return the text of LOOK without HUNKS, a vector of lines."
  (let ((lines (gemini-companion-weave--without
                (gemini-companion-weave-lines look) hunks most-positive-fixnum)))
    (vconcat (gemini-companion-weave--texts lines nil 0 (length lines)))))

;;;; Following lines

(defun gemini-companion-weave--identity (line)
  "Return what LINE is known by, compared by `eq', in this weave and later ones.
A line that came later has the time of that in a cons of its own.  One that was
there before the first edit is itself while no CLI and no others touch it."
  (let ((when (gemini-companion-weave-line-when line)))
    (if (eq when gemini-companion-weave--base-when)
        line
      (last when))))

(defun gemini-companion-weave-identities (weave index count)
  "Return what the COUNT lines of WEAVE's text at INDEX are known by, a list.
Later weaves of the file have the same for the same lines, wherever they are;
see `gemini-companion-weave-index'."
  (let ((lines (gemini-companion-weave-lines weave)))
    (mapcar (lambda (i) (gemini-companion-weave--identity (aref lines i)))
            (seq-subseq (gemini-companion-weave--indices lines)
                        index (+ index count)))))

(defun gemini-companion-weave-index (weave identities)
  "Return the index in WEAVE's text of the lines with IDENTITIES, or nil.
For IDENTITIES, see `gemini-companion-weave-identities'.  Return nil if one of
the lines is not there, or if others are between them."
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
           for hunk = (gemini-companion-weave-mark-hunk mark)
           unless (or (gemini-companion-weave-mark-off mark)
                      (gemini-companion-weave-hunk-reviewed hunk))
           collect hunk))

(defun gemini-companion-weave--settled-p (marks)
  "Return non-nil if a line with MARKS is there, and all its hunks are reviewed."
  (or (eq marks gemini-companion-weave--base)
      (and (gemini-companion-weave--there-p marks)
           (gemini-companion-weave--reviewed-p marks)
           (cl-loop for mark in marks
                    always (or (gemini-companion-weave-mark-off mark)
                               (gemini-companion-weave-hunk-reviewed
                                (gemini-companion-weave-mark-hunk mark)))))))

(defun gemini-companion-weave--spans (lines)
  "Return where LINES have something to review: a list of (START END . HUNKS).
What is between two lines of a hunk belongs to it."
  (let ((found nil)
        (seen (make-hash-table :test 'eq))
        (p 0)
        (count (length lines)))
    (cl-flet ((marks-at (q) (gemini-companion-weave-line-marks (aref lines q))))
      (while (< p count)
        (if (gemini-companion-weave--settled-p (marks-at p))
            (setq p (1+ p))
          (let ((start p)
                (hunks nil))
            (while (and (< p count)
                        (not (gemini-companion-weave--settled-p (marks-at p))))
              (unless (gemini-companion-weave--gone-p (marks-at p))
                (dolist (hunk (gemini-companion-weave--left (marks-at p)))
                  (unless (memq hunk hunks)
                    (push hunk hunks))))
              (setq p (1+ p)))
            (when hunks
              ;; Where the first span with one of these hunks begins.
              (let ((first start))
                (dolist (hunk hunks)
                  (setq first (min first (gethash hunk seen first))))
                (while (and found (<= first (caar found)))
                  (pcase-let ((`(,begin ,_ . ,more) (pop found)))
                    (setq start begin)
                    (dolist (hunk more)
                      (unless (memq hunk hunks)
                        (push hunk hunks))))))
              (dolist (hunk hunks)
                (puthash hunk start seen))
              (push (cons start (cons p hunks)) found))))))
    (nreverse found)))

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
  "Return how many of LINES from FROM to TO are there."
  (cl-loop for p from from below to
           count (gemini-companion-weave--there-p
                  (gemini-companion-weave-line-marks (aref lines p)))))

(defun gemini-companion-weave--common (a b)
  "Return how many strings the lists A and B have in common at the beginning."
  (cl-loop for x in a for y in b while (string= x y) count t))

(defun gemini-companion-weave--edits-in (lines from to)
  "Return the edits by which LINES from FROM to TO differ from what was reviewed."
  (let ((edits nil))
    (cl-loop for p from from below to
             for marks = (gemini-companion-weave-line-marks (aref lines p))
             unless (eq (null (gemini-companion-weave--there-p marks))
                        (null (gemini-companion-weave--reviewed-p marks)))
             do (cl-pushnew (gemini-companion-weave--edit
                             (gemini-companion-weave--decider marks))
                            edits))
    edits))

(defun gemini-companion-weave--extents (lines)
  "Return a table of where each hunk has marks in LINES: lists (FROM TO LOST).
LOST is non-nil if a line that the hunk added is not there."
  (let ((extents (make-hash-table :test 'eq)))
    (dotimes (p (length lines))
      (let ((marks (gemini-companion-weave-line-marks (aref lines p))))
        (unless (eq marks gemini-companion-weave--base)
          (let ((there (gemini-companion-weave--there-p marks)))
            (dolist (mark marks)
              (let* ((hunk (gemini-companion-weave-mark-hunk mark))
                     (extent (or (gethash hunk extents)
                                 (puthash hunk (list p p nil) extents))))
                (setcar (cdr extent) (1+ p))
                (unless (or there (not (gemini-companion-weave-mark-adds mark)))
                  (setcar (cddr extent) t))))))))
    extents))

(defun gemini-companion-weave--wider (lines from to low high)
  "Return FROM and TO with what is beside them in LINES and is not of before.
LOW and HIGH are as far as that goes.  The value is a cons."
  (cl-flet ((beside-p (p)
              (let ((marks (gemini-companion-weave-line-marks (aref lines p))))
                (and (not (eq marks gemini-companion-weave--base))
                     (or (and (null (cdr marks))
                              (not (gemini-companion-weave-mark-off (car marks)))
                              (null (gemini-companion-weave--edit (car marks)))
                              (not (eq (gemini-companion-weave-mark-hunk (car marks))
                                       (gemini-companion-weave-mark-hunk
                                        (car gemini-companion-weave--base)))))
                         (not (or (gemini-companion-weave--there-p marks)
                                  (gemini-companion-weave--reviewed-p marks))))))))
    (while (and (< low from) (beside-p (1- from)))
      (setq from (1- from)))
    (while (and (< to high) (beside-p to))
      (setq to (1+ to)))
    (cons from to)))

(defun gemini-companion-weave-left (weave &optional edit)
  "Return the hunks of WEAVE that are on somewhere and were not reviewed.
If EDIT is non-nil, return only its hunks."
  (let ((hunks nil))
    (cl-loop for line across (gemini-companion-weave-lines weave)
             for marks = (gemini-companion-weave-line-marks line)
             unless (eq marks gemini-companion-weave--base)
             do (dolist (hunk (gemini-companion-weave--left marks))
                  (when (or (null edit) (eq edit (gemini-companion-weave-hunk-edit hunk)))
                    (cl-pushnew hunk hunks))))
    hunks))

(defun gemini-companion-weave-hunk-at-end (weave)
  "Return the hunk that wrote the last line of WEAVE, or removed one behind it.
Return nil if that was none of an edit."
  (cl-loop for p downfrom (1- (length (gemini-companion-weave-lines weave))) to 0
           for marks = (gemini-companion-weave-line-marks
                        (aref (gemini-companion-weave-lines weave) p))
           for mark = (gemini-companion-weave--decider marks)
           when (and mark (gemini-companion-weave--edit mark))
           return (gemini-companion-weave-mark-hunk mark)
           until (gemini-companion-weave--there-p marks)))

(defun gemini-companion-weave-conflicts (look hunks)
  "Return those of HUNKS that cannot be undone in LOOK without a question.
Others, or other hunks, have removed lines of them, and something would be in
the place of these."
  (let ((lines (gemini-companion-weave-lines look)))
    (gemini-companion-weave--conflicts lines hunks 0 (length lines))))

(defun gemini-companion-weave--conflicts (lines hunks from to)
  "Return the conflicts of HUNKS, all of whose LINES are from FROM to TO.
See `gemini-companion-weave-conflicts'."
  (let ((set (gemini-companion-weave--set hunks))
        (found nil)
        (p from)
        (count (length lines)))
    (cl-flet* ((marks-at (q) (gemini-companion-weave-line-marks (aref lines q)))
               (of-p (q) (gemini-companion-weave--any-of-p (marks-at q) set)))
      (while (< p to)
        (if (not (of-p p))
            (setq p (1+ p))
          (let ((start p))
            (while (and (< p count)
                        (or (of-p p)
                            (not (gemini-companion-weave--there-p (marks-at p)))))
              (setq p (1+ p)))
            (pcase-let ((`(,from . ,to)
                         (gemini-companion-weave--wider lines start p 0 count)))
              (setq found (seq-union found
                                     (gemini-companion-weave--conflicts-in
                                      lines from to set)
                                     #'eq)))))))
    found))

(defun gemini-companion-weave--conflicts-in (lines from to set)
  "Return the conflicts of the hunks in SET in LINES from FROM to TO."
  (let ((lost nil)
        (works nil)
        (both nil))
    (cl-loop
     for p from from below to
     for marks = (gemini-companion-weave-line-marks (aref lines p))
     for now = (gemini-companion-weave--there-p marks)
     for after = (gemini-companion-weave--there-p
                  (seq-remove (lambda (mark)
                                (gethash (gemini-companion-weave-mark-hunk mark) set))
                              marks))
     for decider = (gemini-companion-weave--decider marks)
     for by = (and decider (gemini-companion-weave-mark-hunk decider))
     do (unless (or now (gethash by set))
          (dolist (mark marks)
            (when (and (gemini-companion-weave-mark-adds mark)
                       (gethash (gemini-companion-weave-mark-hunk mark) set))
              (cl-pushnew (gemini-companion-weave-mark-hunk mark) lost))))
     (unless (eq (null now) (null after))
       (cl-pushnew by works))
     (when after
       (setq both t)))
    (and both (seq-intersection lost works #'eq))))

(defun gemini-companion-weave-changes-without (look hunks)
  "Return what differs in the text of LOOK without HUNKS, changes in order.
Only those of HUNKS are hunks of a change that add or remove a line there.
A change with one of `gemini-companion-weave-conflicts' is mixed."
  (let ((lines (gemini-companion-weave-lines look)))
    (gemini-companion-weave--changes-to
     lines
     (gemini-companion-weave--without lines hunks most-positive-fixnum)
     lines
     (gemini-companion-weave-conflicts look hunks))))

(defun gemini-companion-weave-changes-with (look hunks)
  "Return what differs in the text of LOOK with HUNKS, which the user has undone.
The value is as that of `gemini-companion-weave-changes-without'.  A change is
mixed if others have removed lines since that the undo had brought back."
  (let* ((lines (gemini-companion-weave-lines look))
         (set (gemini-companion-weave--set hunks))
         (with (gemini-companion-weave--restored look hunks most-positive-fixnum)))
    (gemini-companion-weave--changes-to
     lines with with
     (cl-loop for line across lines
              for marks = (gemini-companion-weave-line-marks line)
              unless (gemini-companion-weave--there-p marks)
              append (cl-loop
                      for mark in marks
                      for hunk = (gemini-companion-weave-mark-hunk mark)
                      when (and (gethash hunk set)
                                (eq 'undone (gemini-companion-weave-mark-off mark))
                                (not (gemini-companion-weave-mark-adds mark)))
                      collect hunk)))))

(defun gemini-companion-weave--changes-to (lines after decided mixed)
  "Return the changes between LINES and AFTER, the same lines with other marks.
In DECIDED, one of both, the marks count whose hunks those of a change are.  A
change with one of the hunks MIXED is mixed."
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
       for now = (gemini-companion-weave--there-p
                  (gemini-companion-weave-line-marks line))
       for then = (if (eq line other)
                      now
                    (gemini-companion-weave--there-p
                     (gemini-companion-weave-line-marks other)))
       do
       (if (eq (null now) (null then))
           (when now
             (end-change))
         (setq start (or start n))
         (cl-pushnew (gemini-companion-weave-mark-hunk
                      (gemini-companion-weave--decider
                       (gemini-companion-weave-line-marks by)))
                     own)
         (when then
           (push (gemini-companion-weave-line-text line) back)))
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
STATE is `kept', and the text now has it, or `undone'; then LINES are those that
the text has there now, and WITH are those that it would have with the hunks."
  state with)

(defun gemini-companion-weave-decided (look edits)
  "Return what the hunks of EDITS that were reviewed or undone did to LOOK.
The value is a list of `gemini-companion-weave-decided's, in order.  What was
changed since, by others or by hunks of other edits, is left out."
  (let ((run nil)
        (found nil)
        (n 0))
    (cl-labels
        ((of-edits-p (mark)
           (memq (gemini-companion-weave--edit mark) edits))
         (reviewed-p (mark)
           (and (of-edits-p mark)
                (not (gemini-companion-weave-mark-off mark))
                (gemini-companion-weave-hunk-reviewed
                 (gemini-companion-weave-mark-hunk mark))))
         (undone-p (mark)
           (and (of-edits-p mark)
                (eq 'undone (gemini-companion-weave-mark-off mark))))
         (end-run ()
           (pcase run
             (`(,state ,start ,hunks ,without ,with)
              (push (gemini-companion-weave--decided
                     start n (nreverse without) hunks edits state (nreverse with))
                    found)))
           (setq run nil)))
      (cl-loop
       for line across (gemini-companion-weave-lines look)
       for marks = (gemini-companion-weave-line-marks line)
       for now = (gemini-companion-weave--there-p marks)
       do (let* ((touched (and (not (eq marks gemini-companion-weave--base))
                               (not (gemini-companion-weave--gone-p marks))
                               (seq-some #'of-edits-p marks)))
                 (with (and touched
                            (gemini-companion-weave--there-p
                             (mapcar (lambda (mark)
                                       (if (undone-p mark)
                                           (gemini-companion-weave--with-off mark nil)
                                         mark))
                                     marks))))
                 (without (and touched
                               (gemini-companion-weave--there-p
                                (seq-remove #'reviewed-p marks))))
                 (state (and touched
                             (cond ((not (eq (null now) (null with))) 'undone)
                                   ((not (eq (null now) (null without))) 'kept)))))
            (cond
             (state
              (unless (eq state (car run))
                (end-run)
                (setq run (list state n nil nil nil)))
              (dolist (mark marks)
                (when (if (eq state 'undone) (undone-p mark) (reviewed-p mark))
                  (cl-pushnew (gemini-companion-weave-mark-hunk mark) (nth 2 run))))
              (let ((text (gemini-companion-weave-line-text line)))
                (when (if (eq state 'undone) now without)
                  (push text (nth 3 run)))
                (when (and (eq state 'undone) with)
                  (push text (nth 4 run)))))
             ;; A line that is not there separates nothing.
             (now (end-run)))
            (when now
              (setq n (1+ n)))))
      (end-run))
    (nreverse found)))

(defun gemini-companion-weave-of-others (look)
  "Return the indices of the lines of LOOK that others have added, in order.
Lines that were there before the first edit are none of them."
  (let ((base (gemini-companion-weave-mark-hunk (car gemini-companion-weave--base)))
        (found nil)
        (n 0))
    (cl-loop for line across (gemini-companion-weave-lines look)
             for marks = (gemini-companion-weave-line-marks line)
             do (when (gemini-companion-weave--there-p marks)
                  (unless (eq marks gemini-companion-weave--base)
                    (let ((decider (gemini-companion-weave--decider marks)))
                      (unless (or (gemini-companion-weave--edit decider)
                                  (eq base (gemini-companion-weave-mark-hunk decider)))
                        (push n found))))
                  (setq n (1+ n))))
    (nreverse found)))

;;;; What is left of hunks

(defun gemini-companion-weave-states (look)
  "Return a table of what is left of each hunk of an edit in LOOK.
A value is `there', `partly', `undone' by the user, `gone' if others have
removed its lines or brought back what it had removed, or `superseded' if later
edits have changed all."
  (let ((seen (make-hash-table :test 'eq)))
    (cl-loop
     for line across (gemini-companion-weave-lines look)
     for marks = (gemini-companion-weave-line-marks line)
     unless (eq marks gemini-companion-weave--base)
     do
     (let ((decider (gemini-companion-weave--decider marks))
           (gone (gemini-companion-weave--gone-p marks)))
       (dolist (mark marks)
         (when (gemini-companion-weave--edit mark)
           (let* ((hunk (gemini-companion-weave-mark-hunk mark))
                  (off (gemini-companion-weave-mark-off mark))
                  (how (cond
                        ((eq off 'undone) 'undone)
                        ((or off (and gone (gemini-companion-weave-mark-adds mark)))
                         'gone)
                        (gone nil)
                        ((not (eq mark decider)) 'superseded)
                        ((not (eq (null (gemini-companion-weave--there-p
                                         (remq mark marks)))
                                  (null (gemini-companion-weave-mark-adds mark))))
                         'there)))
                  (old (gethash hunk seen)))
             (puthash hunk (if how (cl-adjoin how old) old) seen))))))
    (maphash (lambda (hunk how)
               (puthash hunk
                        (cond ((memq 'there how)
                               (if (or (memq 'undone how) (memq 'gone how))
                                   'partly
                                 'there))
                              ((equal how '(superseded)) 'superseded)
                              ((memq 'undone how) 'undone)
                              (t 'gone))
                        seen))
             seen)
    seen))

(defun gemini-companion-weave-as-with-p (look hunk)
  "Return non-nil if the text of LOOK is as with HUNK, whoever has written that."
  (let ((found nil))
    (and (cl-loop for line across (gemini-companion-weave-lines look)
                  for marks = (gemini-companion-weave-line-marks line)
                  always (or (eq marks gemini-companion-weave--base)
                             (cl-loop
                              for mark in marks
                              always
                              (or (not (eq hunk (gemini-companion-weave-mark-hunk mark)))
                                  (and (setq found t)
                                       (eq (null (gemini-companion-weave-mark-adds mark))
                                           (null (gemini-companion-weave--there-p
                                                  marks))))))))
         found)))

(provide 'gemini-companion-weave)
;;; gemini-companion-weave.el ends here
