;;; gemini-companion-record.el --- Who wrote which line of a file  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A file that CLIs write has a record, whose lines are a vector, in order: those that
;; the file has, and those that it had.  A line that nobody has touched is a string;
;; others are conses (TEXT . ACTS).  An act, with the last one first, says that a hunk
;; has added the line, or has removed it.  The last act that counts says whether the
;; line is there:
;;
;;     acts that count                           the text
;;     those of hunks that are not undone        the known text
;;     of these, those of reviewed hunks         the text without unreviewed changes
;;     of all, those of hunks other than S       the text without the hunks S
;;
;; Only a CLI's write changes the record: a removed line gets the act (HUNK . nil), a
;; new one (HUNK . t), and a missing line of the same stretch that is there again also
;; gets (HUNK . t).  Keeping, undoing, and taking these back set a flag of hunks,
;; `reviewed' or `undone', and nothing else.  Another flag, `postponed', says only that
;; the user decides later.
;;
;; Others, such as the user and git, have a hunk as well, which is always reviewed.  A
;; look returns the lines as they would be if others had written the current text:
;;
;; - They take back the fewest last acts until a line is there, or is not.  Only if no
;;   act that counts is left, the line gets an act of theirs.
;; - A line in which only white space differs is the same line.
;; - What replaces only unreviewed lines of a CLI belongs to their hunk: a word
;;   corrected by the user, or lines that a formatter has joined.  So does a line in which
;;   a formatter has changed only punctuation, beside lines of others.
;; - Where others remove the lines around a line that a CLI had removed, as a checkout
;;   of another branch does, that line is gone with its position.
;; - Where others restore lines, as the checkout of the first branch does, the text that
;;   they have changed since is the one from before they removed these lines.
;; - A newline that an edit has added to the last line is of others once they have written
;;   lines behind it, which need it.
;;
;; Lines of hunks that are forgotten count as lines from before the first edit.  What is
;; remembered of such a line is its origin, which is in place of t in its first act.
;; While nobody touches the line, it is a cons (TEXT . ORIGIN).
;;
;; The last newline is a part of the last line.  Line ends, byte order mark and coding
;; system are no part of the record.
;;
;; All functions are pure, except those that set a flag.  Computing a look takes linear
;; time in the lines of the record, and diff for the lines that differ.
;;
;; Known issues:
;;
;; - Whose a line is, and which edits a change names, is computed from texts, so it may be
;;   wrong: in everyday use in at most one sequence of 20 steps in 100, or three for the
;;   edits.
;;   Test: `gemini-companion-record-is-right-in-sequences-of-everyday-use'
;; - With lines that others type back by hand, repeat or mix, both are wrong more often,
;;   and in one of 100 the text without unreviewed changes may be wrong.
;;   Test: `gemini-companion-record-is-mostly-right-in-sequences-made-for-harm'
;; - In a line of more than 10,000 characters, white space makes it another line.
;;   Test: `gemini-companion-record-compares-long-lines-only-as-they-are'
;; - A line that others move beyond a line that stays is removed there, and a new one of
;;   theirs here.  No test

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'gemini-companion-hunk)

;;;; Structures

(cl-defstruct (gemini-companion-record-hunk
               (:noinline t)
               (:constructor gemini-companion-record--hunk (edit number &optional reviewed))
               (:copier nil))
  "What one write of EDIT did at one position.
NUMBER counts the hunks of EDIT from 0.  EDIT is nil for a write of others.
REVIEWED is t if the user has accepted the hunk before it was written, `kept' if
the user has kept it after that, or else nil."
  edit number reviewed
  (undone nil :documentation "Non-nil if the user has undone the hunk.")
  (forgotten nil :documentation "Non-nil if lines that the hunk has removed were
forgotten: undoing the hunk does not restore them.")
  (superseded nil :documentation "A later hunk that has removed lines of this one,
which were forgotten, or nil.")
  (postponed nil :documentation "Non-nil if the user has put off the decision."))

(cl-defstruct (gemini-companion-record-change
               (:include gemini-companion-hunk)
               (:noinline t)
               (:constructor gemini-companion-record-change
                             (new new-end lines hunks edits now))
               (:copier nil))
  "A change in the current text, the second one, that the user has not reviewed.
OLD and OLD-END are nil.  HUNKS are kept and undone with it, and EDITS have
written or removed its lines.  NOW are the lines of the text from NEW to
NEW-END, a list."
  hunks edits now)

(defconst gemini-companion-record--base
  (list (cons (gemini-companion-record--hunk nil 0 t) t))
  "The acts of a line that was there before the first edit, and always since.")

(defconst gemini-companion-record--most-versions 10
  "Maximum number of missing lines that a record keeps for each present line.
Above 1,000 lines, it also forgets lines that nobody has reviewed.")

(defconst gemini-companion-record--white-space "[ \t\r\n]+"
  "Regexp for what may differ in a line that is still the same.")

(defconst gemini-companion-record--no-words "[^[:alnum:]]+"
  "Regexp for what a formatter may change in a line.")

(defconst gemini-companion-record--most-similar 4000
  "Maximum number of lines at one position that are compared without white space.")

(defconst gemini-companion-record--longest-similar 10000
  "Maximum length of a line that is compared without white space.
Removing that from a line of 480 kB takes half a second.")

(defsubst gemini-companion-record--line-text (line)
  "Return the text of LINE."
  (if (stringp line) line (car line)))

(defsubst gemini-companion-record--touched-p (line)
  "Return nil if LINE was there before the first edit, and always since."
  (consp (cdr-safe line)))

(defsubst gemini-companion-record--of-base-p (act)
  "Return non-nil if the line of ACT was there before the first edit."
  (eq (caar gemini-companion-record--base) (car act)))

(defun gemini-companion-record--base-of (origin)
  "Return the acts of a line from before the first edit with ORIGIN, or nil."
  (if origin
      (list (cons (caar gemini-companion-record--base) origin))
    gemini-companion-record--base))

(defsubst gemini-companion-record--acts (line)
  "Return the acts of LINE, conses (HUNK . HOW), the last one first.
HOW is t if HUNK has added the line, `others' if others have written what
replaced a line of HUNK, and nil if HUNK has removed the line.  Of a line from
before the first edit, it may be an origin: see
`gemini-companion-record-forget'."
  (if (gemini-companion-record--touched-p line)
      (cdr line)
    (gemini-companion-record--base-of (cdr-safe line))))

(defun gemini-companion-record--line (text acts)
  "Return a line with TEXT and ACTS."
  (pcase acts
    ((pred (eq gemini-companion-record--base)) text)
    (`((,(pred (eq (caar gemini-companion-record--base))) . ,origin))
     (if (eq origin t) text (cons text origin)))
    (_ (cons text acts))))

;;;; Acts

(defun gemini-companion-record--last (acts &optional counts)
  "Return the last one of ACTS that counts, or nil.
COUNTS is a predicate on hunks, by default that the hunk is not undone."
  (while (and acts
              (if counts
                  (not (funcall counts (caar acts)))
                (gemini-companion-record-hunk-undone (caar acts))))
    (setq acts (cdr acts)))
  (car acts))

(defsubst gemini-companion-record--there-p (acts &optional counts)
  "Return non-nil if the text has a line with ACTS.
For COUNTS, see `gemini-companion-record--last'."
  (cdr (gemini-companion-record--last acts counts)))

(defsubst gemini-companion-record--present-p (line)
  "Return non-nil if the text of a record with LINE has that line."
  (or (not (gemini-companion-record--touched-p line))
      (gemini-companion-record--there-p (cdr line))))

(defun gemini-companion-record--settled-hunk-p (hunk)
  "Return non-nil if HUNK is reviewed, and not undone."
  (and (gemini-companion-record-hunk-reviewed hunk)
       (not (gemini-companion-record-hunk-undone hunk))))

(defun gemini-companion-record--reviewed-p (acts)
  "Return non-nil if a line with ACTS is there if only reviewed hunks count."
  (gemini-companion-record--there-p acts #'gemini-companion-record--settled-hunk-p))

(defsubst gemini-companion-record--of-edit-p (act)
  "Return non-nil if ACT is of a hunk of an edit, not of others."
  (and act (gemini-companion-record-hunk-edit (car act))))

(defsubst gemini-companion-record--of-others-p (act)
  "Return non-nil if ACT is of a hunk of others."
  (and act (null (gemini-companion-record-hunk-edit (car act)))))

(defun gemini-companion-record--removed-by-edit-p (acts)
  "Return non-nil if an edit has removed a line with ACTS."
  (let ((last (gemini-companion-record--last acts)))
    (and last (not (cdr last)) (gemini-companion-record--of-edit-p last))))

(defun gemini-companion-record--gone-p (acts)
  "Return non-nil if a line with ACTS, which an edit has removed, has no position.
Then others have also removed the lines around it."
  (and (gemini-companion-record--of-others-p (car acts))
       (not (cdar acts))
       (gemini-companion-record--removed-by-edit-p (cdr acts))))

(defun gemini-companion-record--turned (acts others)
  "Return ACTS after OTHERS, a hunk, have removed the line, or have restored it."
  (let* ((there (gemini-companion-record--there-p acts))
         (rest acts))
    (while (and rest (eq (null there) (null (gemini-companion-record--there-p rest))))
      (setq rest (cdr rest)))
    (if (gemini-companion-record--last rest)
        rest
      (cons (cons others (not there)) acts))))

;;;; Writing

(defun gemini-companion-record--present (lines)
  "Return the texts of the present LINES and their indices, a cons of vectors."
  (let* ((count (length lines))
         (texts (make-vector count nil))
         (indices (make-vector count nil))
         (n 0))
    (dotimes (i count)
      (let ((line (aref lines i)))
        (when (gemini-companion-record--present-p line)
          (aset texts n (gemini-companion-record--line-text line))
          (aset indices n i)
          (setq n (1+ n)))))
    (cons (substring texts 0 n) (substring indices 0 n))))

(defun gemini-companion-record--rewrite (lines text make)
  "Return LINES after a write of TEXT, a vector, and its hunks, a cons.
MAKE is called with a number, and returns the hunk of that region."
  (pcase-let* ((`(,texts . ,indices) (gemini-companion-record--present lines))
               (pieces nil)
               (hunks nil)
               (done 0))
    (dolist (region (gemini-companion-hunk-compare-lines texts text))
      (let* ((from (gemini-companion-hunk-old region))
             (to (gemini-companion-hunk-old-end region))
             (low (if (< 0 from) (1+ (aref indices (1- from))) 0))
             (high (if (< to (length indices)) (aref indices to) (length lines)))
             (hunk (funcall make (length hunks))))
        (push (substring lines done low) pieces)
        (push (gemini-companion-record--gap
               (substring lines low high)
               (substring text (gemini-companion-hunk-new region)
                          (gemini-companion-hunk-new-end region))
               hunk
               (cons (< 0 from) (< to (length indices))))
              pieces)
        (push hunk hunks)
        (setq done high)))
    (if (null hunks)
        (list lines)
      (cons (apply #'vconcat (nreverse (cons (substring lines done) pieces)))
            (nreverse hunks)))))

;; The lines that NEW has are in the order of OLD, so a line that is back ends what is
;; left out.
(defun gemini-companion-record--gap (old new hunk edges)
  "Return the lines OLD after HUNK has made NEW of them, a list.
OLD, a vector of lines, are between two present lines that stay, and NEW is a
vector of strings.  EDGES is a cons: whether there is such a line before and
after OLD."
  (let* ((others (null (gemini-companion-record-hunk-edit hunk)))
         (was (gemini-companion-record--known-lines old new others edges))
         (old (if others (gemini-companion-record--returned old was) old))
         (back (make-bool-vector (length old) nil))
         (place (gemini-companion-record--place old back edges))
         ;; A text with no known line is another one.
         (owners (and others
                      (or (car edges) (cdr edges) (cl-find-if #'identity was))
                      (gemini-companion-record--owners old new was)))
         (last (cl-position-if #'gemini-companion-record--present-p old :from-end t))
         (at 0)
         (result nil))
    (seq-doseq (k was)
      (when k
        (aset back k t)))
    (cl-flet ((leave-out-until (end)
                (while (and (< at end) (not (aref back at)))
                  (when-let* ((acts (gemini-companion-record--left-out
                                     place at last hunk)))
                    (push (gemini-companion-record--line
                           (gemini-companion-record--line-text (aref old at)) acts)
                          result))
                  (setq at (1+ at)))))
      (dotimes (j (length new))
        (if-let* ((k (aref was j)))
            (progn
              (leave-out-until k)
              (push (gemini-companion-record--back (aref old k) (aref new j) hunk)
                    result)
              (setq at (1+ k)))
          ;; A new line comes after the lines that it replaces.
          (when last
            (leave-out-until (1+ last)))
          (let ((owner (and owners (aref owners j))))
            (push (list (aref new j) (if owner (cons owner 'others) (cons hunk t)))
                  result))))
      (leave-out-until (length old)))
    (nreverse result)))

;;;; Known lines

(defun gemini-companion-record--known-lines (old new others edges)
  "Return which line of OLD each line of NEW is, a vector of indices or nil.
It is a missing line that is back; or if OTHERS have written NEW, a line in
which only white space differs.  For EDGES, see `gemini-companion-record--gap'."
  (let ((was (make-vector (length new) nil)))
    (gemini-companion-record--find-missing old new was)
    (when others
      (gemini-companion-record--find-similar old new was
                                             gemini-companion-record--white-space)
      ;; A formatter may have changed all lines of a small file.
      (unless (or (car edges) (cdr edges) (cl-find-if #'identity was))
        (gemini-companion-record--find-similar old new was
                                               gemini-companion-record--no-words)))
    was))

(defun gemini-companion-record--find-missing (old new was)
  "Set in WAS the indices of missing lines of OLD that NEW has again."
  (let ((texts (make-hash-table :test 'equal))
        (missing nil))
    (seq-doseq (text new)
      (puthash text t texts))
    (dotimes (k (length old))
      (let ((line (aref old k)))
        (and (gemini-companion-record--touched-p line)
             (gethash (car line) texts)
             (not (gemini-companion-record--there-p (cdr line)))
             (push k missing))))
    (when missing
      (let ((missing (vconcat (nreverse missing))))
        (pcase-dolist (`(,i . ,j)
                       (gemini-companion-record--pairs
                        (vconcat (mapcar (lambda (k) (car (aref old k))) missing))
                        new))
          (aset was j (aref missing i)))))))

(defun gemini-companion-record--find-similar (old new was without)
  "Set in WAS the indices of lines of OLD that NEW has, but for WITHOUT, a regexp.
A line that was just removed is preferred to one that was missing before."
  (dolist (missing '(nil t))
    (pcase-dolist (`(,removed . ,added)
                   (gemini-companion-record--stretches old new was missing))
      (pcase-dolist (`(,i . ,j) (gemini-companion-record--similar
                                 removed old added new without))
        (aset was j i)))))

(defun gemini-companion-record--similar (removed old added new without)
  "Return pairs of lines that are equal but for WITHOUT, a regexp, in order.
They are conses (I . J).  REMOVED are indices I in OLD, and ADDED are indices J
in NEW, lists.  Return nil if they are too many."
  (when (and removed added
             (<= (+ (length removed) (length added))
                 gemini-companion-record--most-similar))
    (let ((removed (vconcat removed))
          (added (vconcat added)))
      (cl-flet ((texts (indices lines whose)
                  (vconcat
                   (mapcar (lambda (k)
                             (let ((text (gemini-companion-record--rest
                                          (aref lines k) without)))
                               ;; A line of which nothing is left equals no other.
                               (concat (if (string-empty-p text) (concat " " whose) text)
                                       "\n")))
                           indices))))
        (mapcar (pcase-lambda (`(,i . ,j)) (cons (aref removed i) (aref added j)))
                (gemini-companion-record--pairs (texts removed old "old")
                                                (texts added new "new")))))))

(defun gemini-companion-record--rest (line without)
  "Return the text of LINE without what matches WITHOUT, a regexp.
A long line is left as it is."
  (let ((text (gemini-companion-record--line-text line)))
    (if (< gemini-companion-record--longest-similar (length text))
        text
      (replace-regexp-in-string without "" text))))

(defun gemini-companion-record--returned (old was)
  "Return the lines OLD as they were before others removed lines that are back.
WAS is a vector with the indices of these in OLD, and nils.  Such are the lines
of a branch that is checked out again: what was removed with them was not
missing there."
  (let ((writes nil))
    (cl-flet ((missing-by-others (line)
                (pcase-let ((`(,act . ,rest) (gemini-companion-record--acts line)))
                  (and (not (cdr act))
                       (gemini-companion-record--of-others-p act)
                       (gemini-companion-record--there-p rest)
                       (car act)))))
      (seq-doseq (k was)
        (when-let* ((hunk (and k (missing-by-others (aref old k)))))
          (cl-pushnew hunk writes :test #'eq)))
      (if (null writes)
          old
        (vconcat (mapcar (lambda (line)
                           (if (memq (missing-by-others line) writes)
                               (gemini-companion-record--line (car line) (cddr line))
                             line))
                         old))))))

(defun gemini-companion-record--pairs (old new)
  "Return pairs of indices of equal lines in OLD and NEW, vectors, in order."
  (let ((i 0)
        (j 0)
        (pairs nil))
    (dolist (region (append (gemini-companion-hunk-compare-lines old new)
                            (list (gemini-companion-hunk-make
                                   (length old) 0 (length new) 0 nil))))
      (while (< i (gemini-companion-hunk-old region))
        (push (cons i j) pairs)
        (setq i (1+ i)
              j (1+ j)))
      (setq i (gemini-companion-hunk-old-end region)
            j (gemini-companion-hunk-new-end region)))
    (nreverse pairs)))

(defun gemini-companion-record--stretches (old new was &optional missing)
  "Return what is removed and added between two lines of NEW that are in OLD.
For WAS, see `gemini-companion-record--known-lines'.  The value is a list of
conses: the indices in OLD of removed lines, and the indices in NEW of added
ones.  If MISSING is non-nil, the former are those of lines that were missing
before."
  (let ((at 0)
        (from 0)
        (stretches nil))
    (cl-flet ((end-at (k j)
                (let ((removed (cl-loop
                                for i from at below k
                                when (eq missing
                                         (not (gemini-companion-record--there-p
                                               (gemini-companion-record--acts
                                                (aref old i)))))
                                collect i)))
                  (push (cons removed (number-sequence from (1- j))) stretches)
                  (setq at (1+ k)
                        from (1+ j)))))
      (dotimes (j (length new))
        (when (aref was j)
          (end-at (aref was j) j)))
      (end-at (length old) (length new)))
    (nreverse stretches)))

(defun gemini-companion-record--owners (old new was)
  "Return the hunks of the unreviewed lines in whose place lines of NEW are.
The value is a vector with a hunk or nil for each line of NEW.  A line with the
letters and digits of a removed one, as after a formatter, is in its place; so
are other lines, if all that was removed beside them belongs to hunks.  For OLD
and WAS, see `gemini-companion-record--known-lines'."
  (let ((owners (make-vector (length new) nil)))
    (cl-flet* ((owner (k)
                 (let* ((acts (gemini-companion-record--acts (aref old k)))
                        (last (gemini-companion-record--last acts)))
                   ;; The line is there only by an unreviewed hunk.
                   (and (cdr last)
                        (not (gemini-companion-record-hunk-reviewed (car last)))
                        (not (gemini-companion-record--reviewed-p acts))
                        (car last))))
               (replace (removed added)
                 (when (and removed (seq-every-p #'owner removed))
                   (dolist (j added)
                     (aset owners j (owner (car removed)))
                     (setq removed (or (cdr removed) removed))))))
      (pcase-dolist (`(,removed . ,added)
                     (gemini-companion-record--stretches old new was))
        (when (and removed added (cl-find-if #'owner removed))
          (pcase-dolist (`(,i . ,j) (gemini-companion-record--similar
                                     removed old added new
                                     gemini-companion-record--no-words))
            (let ((before (seq-take-while (lambda (k) (< k i)) removed))
                  (above (seq-take-while (lambda (k) (< k j)) added)))
              (replace before above)
              (aset owners j (owner i))
              (setq removed (nthcdr (1+ (length before)) removed)
                    added (nthcdr (1+ (length above)) added))))
          (replace removed added))))
    owners))

(defun gemini-companion-record--back (line text hunk)
  "Return LINE after HUNK has restored it, or has changed its white space to TEXT."
  (let ((acts (gemini-companion-record--acts line)))
    (gemini-companion-record--line
     text
     (cond ((gemini-companion-record--there-p acts) acts)
           ((gemini-companion-record-hunk-edit hunk) (cons (cons hunk t) acts))
           (t (gemini-companion-record--turned acts hunk))))))

(defun gemini-companion-record--left-out (place k removed hunk)
  "Return the acts of the line K of PLACE after HUNK has left it out.
Return nil to forget the line, which only others had written.  REMOVED is
non-nil if HUNK has left out lines that were present."
  (let* ((acts (gemini-companion-record--acts
                (aref (gemini-companion-record--place-old place) k)))
         (there (gemini-companion-record--there-p acts))
         (removed-act (cons hunk nil)))
    (cond ((gemini-companion-record-hunk-edit hunk)
           (if there (cons removed-act acts) acts))
          ((and there
                (not (gemini-companion-record--of-base-p (car (last acts))))
                (seq-every-p #'gemini-companion-record--of-others-p acts))
           nil)
          ((and (gemini-companion-record--gone-p acts)
                (gemini-companion-record--position-back-p place k))
           (cdr acts))
          (t
           (let ((left (if there (gemini-companion-record--turned acts hunk) acts)))
             (if (and removed
                      (gemini-companion-record--removed-by-edit-p left)
                      (gemini-companion-record--position-gone-p
                       place k (car (gemini-companion-record--last left))))
                 (cons removed-act acts)
               left))))))

;;;; Positions of removed lines

(cl-defstruct (gemini-companion-record--place
               (:noinline t)
               (:constructor gemini-companion-record--place (old back edges))
               (:copier nil))
  "The lines OLD, a vector, of which BACK, a bool vector, says which are in the text.
EDGES is a cons: whether a present line that stays is before and after OLD.  The
other slots have the indices of lines beside each line, once they are needed."
  old back edges (present nil) (missing nil))

(defun gemini-companion-record--beside (lines predicate)
  "Return which of LINES satisfy PREDICATE next to each line, before and after it.
The value is a cons of vectors with an index, or nil.  PREDICATE is called with
an index and the acts of the line."
  (let* ((count (length lines))
         (before (make-vector count nil))
         (after (make-vector count nil))
         (matching (make-bool-vector count nil))
         (last nil))
    (dotimes (k count)
      (aset before k last)
      (when (funcall predicate k (gemini-companion-record--acts (aref lines k)))
        (aset matching k t)
        (setq last k)))
    (setq last nil)
    (cl-loop for k downfrom (1- count) to 0
             do (aset after k last)
             when (aref matching k)
             do (setq last k))
    (cons before after)))

(defun gemini-companion-record--position-gone-p (place k by)
  "Return non-nil if others have removed the lines around the line K of PLACE.
BY is the hunk that has removed it, and lines that BY had added do not count.
Three removed lines on one side suffice, or fewer up to an end of the file, if
no line is left nearer on the other side.  If neither side has a line, all lines
of OLD must be removed."
  (let* ((old (gemini-companion-record--place-old place))
         (back (gemini-companion-record--place-back place))
         (edges (gemini-companion-record--place-edges place))
         (present
          (or (gemini-companion-record--place-present place)
              (setf (gemini-companion-record--place-present place)
                    (gemini-companion-record--beside
                     old
                     (lambda (k acts)
                       (or (aref back k)
                           (gemini-companion-record--there-p acts))))))))
    (cl-flet ((side (next edge)
                (cl-loop with removed = 0
                         for i = (aref next k) then (aref next i)
                         while (and i (< removed 3))
                         when (aref back i) return 'stays
                         unless (eq by (caar (last (gemini-companion-record--acts
                                                    (aref old i)))))
                         do (cl-incf removed)
                         finally return (cond ((and edge (< removed 3)) 'stays)
                                              ((< 0 removed) 'removed)))))
      (let ((sides (list (side (car present) (car edges))
                         (side (cdr present) (cdr edges)))))
        (and (not (memq 'stays sides))
             (or (memq 'removed sides)
                 (not (cl-find t back))))))))

(defun gemini-companion-record--position-back-p (place k)
  "Return non-nil if others have restored a line around the line K of PLACE."
  (let* ((old (gemini-companion-record--place-old place))
         (back (gemini-companion-record--place-back place))
         (missing
          (or (gemini-companion-record--place-missing place)
              (setf (gemini-companion-record--place-missing place)
                    (gemini-companion-record--beside
                     old
                     (lambda (k acts)
                       (or (aref back k)
                           ;; Lines of other edits may be those of another branch.
                           (not (or (gemini-companion-record--there-p acts)
                                    (gemini-companion-record--of-edit-p (car (last acts)))
                                    (gemini-companion-record--removed-by-edit-p
                                     (cdr acts)))))))))))
    (cl-flet ((side (next)
                (cl-loop for i = (aref next k) then (aref next i)
                         repeat 3
                         while i
                         thereis (aref back i))))
      (or (side (car missing)) (side (cdr missing))))))

;;;; Looking

(defun gemini-companion-record-look (lines now)
  "Return LINES of a record as they are for the text NOW, a vector of lines.
The value is LINES after a write of NOW by others, which is not recorded."
  (let* ((others (gemini-companion-record--hunk nil 0 t))
         (look (gemini-companion-record--with-newline
                (car (gemini-companion-record--rewrite lines now (lambda (_) others))))))
    (if (and (not (eq look lines))
             (gemini-companion-record--old-text-p look))
        (gemini-companion-record--of-old-text look others)
      look)))

(defun gemini-companion-record--with-newline (look)
  "Return LOOK; a newline that was added to the last line may be of others.
An edit has added it, which is unreviewed, and others have written lines behind
that line, which need it: undoing it would change nothing."
  (let* ((i (seq-position look nil
                          (lambda (line _)
                            (and (gemini-companion-record--touched-p line)
                                 (not (string-suffix-p "\n" (car line)))
                                 (not (gemini-companion-record--there-p (cdr line)))))))
         (acts (and i (cdr (aref look i))))
         (removed (seq-some (lambda (act)
                              (and (null (cdr act))
                                   (gemini-companion-record--of-edit-p act)
                                   (not (gemini-companion-record-hunk-reviewed (car act)))
                                   act))
                            acts))
         (text (and removed (concat (car (aref look i)) "\n")))
         (j (and removed
                 (seq-position look nil
                               (lambda (line _)
                                 (and (gemini-companion-record--touched-p line)
                                      (string= text (car line))
                                      (cdr (assq (car removed) (cdr line)))
                                      (gemini-companion-record--there-p (cdr line))))))))
    (if (and j
             (cl-loop for k from (1+ j) below (length look)
                      for acts = (gemini-companion-record--acts (aref look k))
                      thereis (and (gemini-companion-record--there-p acts)
                                   (gemini-companion-record--reviewed-p acts))))
        (let ((copy (copy-sequence look)))
          (aset copy j (gemini-companion-record--line text (cdr (memq removed acts))))
          (vconcat (substring copy 0 i) (substring copy (1+ i))))
      look)))

(defun gemini-companion-record--old-text-p (look)
  "Return non-nil if LOOK has the lines that were there before the first edit.
For a new file, return nil."
  (cl-flet ((old-p (line)
              (or (not (gemini-companion-record--touched-p line))
                  (gemini-companion-record--of-base-p (car (last line))))))
    (and (cl-some #'old-p look)
         (cl-every (lambda (line)
                     (eq (and (old-p line) t)
                         (and (gemini-companion-record--present-p line) t)))
                   look))))

(defun gemini-companion-record--of-old-text (look others)
  "Return LOOK with an act of OTHERS on lines that are newer than its old text.
Without it, such lines that an edit has removed would be missing there."
  (vconcat
   (mapcar (lambda (line)
             (if (and (gemini-companion-record--touched-p line)
                      (not (gemini-companion-record--of-base-p (car (last line))))
                      (gemini-companion-record--removed-by-edit-p (cdr line)))
                 (cons (car line) (cons (cons others nil) (cdr line)))
               line))
           look)))

(cl-defun gemini-companion-record-write (lines edit before after &key accepted)
  "Return LINES after EDIT has made AFTER of BEFORE, and its hunks, a cons.
BEFORE and AFTER are vectors of lines; a record begins with LINES that are
BEFORE.  If the user has accepted ACCEPTED, a vector, the hunks that made it are
reviewed, except hunks that touch unreviewed changes; the rest of AFTER, such as
what a formatter has changed since, is unreviewed."
  (let* ((look (gemini-companion-record-look lines before))
         (left (and accepted
                    (seq-mapcat #'gemini-companion-record-change-hunks
                                (gemini-companion-record-changes look))))
         (hunks nil))
    (cl-flet ((write (text)
                (pcase-let ((`(,lines . ,made)
                             (gemini-companion-record--rewrite
                              look text
                              (let ((first (length hunks)))
                                (lambda (n)
                                  (gemini-companion-record--hunk edit (+ first n)))))))
                  (setq look lines
                        hunks (append hunks made)))))
      (when accepted
        (write accepted)
        (let ((touching (cl-loop for (_ _ . these) in (gemini-companion-record--spans look)
                                 when (seq-intersection these left #'eq)
                                 append these)))
          (dolist (hunk hunks)
            (setf (gemini-companion-record-hunk-reviewed hunk)
                  (not (memq hunk touching))))))
      (write after))
    (cons look hunks)))

(defun gemini-companion-record-forget (lines named &optional old-p origin)
  "Return LINES without those that reviewed hunks of edits have added and removed.
If they are many, also omit those that unreviewed hunks have added and removed.
Hunks whose lines are forgotten are marked as `forgotten', or as `superseded'.

OLD-P is a predicate on edits: lines that a reviewed hunk of such an edit has
added become lines from before the first edit, and those that it has removed are
forgotten.  NAMED are hunks that an undo history names: their lines stay.

ORIGIN is called with the hunk, the HOW of its act and the text of each such
line, and returns the origin of the line, an object that is no list, or nil."
  (let* ((named (gemini-companion-record--set named))
         (lines (if old-p
                    (gemini-companion-record--without-old
                     lines
                     (lambda (hunk)
                       (and (gemini-companion-record--settled-hunk-p hunk)
                            (not (gethash hunk named))
                            (funcall old-p (gemini-companion-record-hunk-edit hunk))))
                     (or origin #'ignore))
                  lines))
         ;; Lines that others have removed stay, however many they are.
         (many (< (max 1000 (* gemini-companion-record--most-versions
                               (cl-count-if #'gemini-companion-record--present-p
                                            lines)))
                  (cl-count-if
                   (lambda (line)
                     (and (gemini-companion-record--touched-p line)
                          (gemini-companion-record--removed-by-edit-p (cdr line))))
                   lines)))
         (forget-p
          (lambda (line)
            (and (gemini-companion-record--touched-p line)
                 (gemini-companion-record--removed-by-edit-p (cdr line))
                 (gemini-companion-record--of-edit-p (car (last line)))
                 (cl-loop for (hunk) in (cdr line)
                          always (and (not (gemini-companion-record-hunk-undone hunk))
                                      (or many (gemini-companion-record-hunk-reviewed hunk))
                                      (not (gethash hunk named))))
                 (not (gemini-companion-record--reviewed-p (cdr line)))))))
    (if (not (cl-find-if forget-p lines))
        lines
      (vconcat (cl-loop for line across lines
                        if (funcall forget-p line)
                        do (gemini-companion-record--forget-line line)
                        else collect line)))))

(defun gemini-companion-record--without-old (lines old-p origin)
  "Return LINES without the acts of hunks that satisfy OLD-P.
An act stays if an older one of the line stays, but for those of others.  For
ORIGIN, see `gemini-companion-record-forget'."
  (vconcat
   (cl-loop for line across lines
            for old = (and (gemini-companion-record--touched-p line)
                           (gemini-companion-record--last-old (cdr line) old-p))
            for newer = (and old
                             (seq-take-while (lambda (act) (not (eq act old)))
                                             (cdr line)))
            if (null old) collect line
            else if (or (cdr old) (seq-some #'cdr newer))
            collect (gemini-companion-record--line
                     (car line)
                     (append newer
                             (and (cdr old)
                                  (gemini-companion-record--base-of
                                   (funcall origin (car old) (cdr old) (car line)))))))))

(defun gemini-companion-record--last-old (acts old-p)
  "Return the last one of ACTS, of a hunk that satisfies OLD-P, or nil.
All older acts must be of such hunks, or of others."
  (cl-loop with last = nil
           for act in (reverse acts)
           for of-edit = (gemini-companion-record--of-edit-p act)
           while (or (not of-edit) (funcall old-p (car act)))
           when of-edit do (setq last act)
           finally return last))

(defun gemini-companion-record--forget-line (line)
  "Set in the hunks of LINE that it is forgotten."
  (let ((by (caar (cdr line))))
    (pcase-dolist (`(,hunk . ,adds) (cdr line))
      (cond ((null adds)
             (setf (gemini-companion-record-hunk-forgotten hunk) t))
            ((not (gemini-companion-record-hunk-reviewed hunk))
             (setf (gemini-companion-record-hunk-superseded hunk) by)
             (when (gemini-companion-record-hunk-postponed hunk)
               (setf (gemini-companion-record-hunk-postponed by) t)))))))

(defun gemini-companion-record-set-kept (hunks kept)
  "Set that the user has KEPT HUNKS, or not any more.
Hunks that were accepted before they were written stay."
  (dolist (hunk hunks)
    (unless (eq t (gemini-companion-record-hunk-reviewed hunk))
      (setf (gemini-companion-record-hunk-reviewed hunk) (and kept 'kept)))))

(defun gemini-companion-record-set-undone (hunks undone)
  "Set that the user has UNDONE those of HUNKS that are not, or has restored them.
Return the hunks whose flag has changed."
  (let ((changed (seq-filter (lambda (hunk)
                               (not (eq (null undone)
                                        (null (gemini-companion-record-hunk-undone hunk)))))
                             hunks)))
    (dolist (hunk changed changed)
      (setf (gemini-companion-record-hunk-undone hunk) undone))))

(defun gemini-companion-record-set-postponed (hunks postponed)
  "Set that the user has POSTPONED the decision about HUNKS, or not any more."
  (dolist (hunk hunks)
    (setf (gemini-companion-record-hunk-postponed hunk) postponed)))

(defun gemini-companion-record-postponed-p (change)
  "Return non-nil if the user has put off the decision about a hunk of CHANGE.
So it stays if a CLI writes in its lines again."
  (seq-some #'gemini-companion-record-hunk-postponed
            (gemini-companion-record-change-hunks change)))

;;;; Texts

(defun gemini-companion-record-hunks (lines)
  "Return the hunks of edits that the acts of LINES, of a record, name, each once."
  (let ((set (make-hash-table :test 'eq)))
    (seq-doseq (line lines)
      (when (gemini-companion-record--touched-p line)
        (pcase-dolist (`(,hunk . ,_) (cdr line))
          (when (gemini-companion-record-hunk-edit hunk)
            (puthash hunk t set)))))
    (hash-table-keys set)))

(defun gemini-companion-record-text (lines &optional reviewed)
  "Return the text of LINES of a record, a vector of strings.
If REVIEWED is non-nil, return the text without unreviewed changes."
  (vconcat (cl-loop for line across lines
                    when (or (not (gemini-companion-record--touched-p line))
                             (if reviewed
                                 (gemini-companion-record--reviewed-p (cdr line))
                               (gemini-companion-record--there-p (cdr line))))
                    collect (gemini-companion-record--line-text line))))

(defun gemini-companion-record--set (hunks)
  "Return a table with HUNKS as keys."
  (let ((set (make-hash-table :test 'eq)))
    (dolist (hunk hunks set)
      (puthash hunk t set))))

(defun gemini-companion-record-without (look hunks)
  "Return the changes of the text of LOOK that undo HUNKS, in order.
The value is a list of `gemini-companion-record-change's, each with those of
HUNKS that have acts there."
  (let ((set (gemini-companion-record--set hunks)))
    (gemini-companion-record--differences
     look
     (lambda (hunk)
       (not (or (gethash hunk set) (gemini-companion-record-hunk-undone hunk))))
     (lambda (hunk) (gethash hunk set)))))

(defun gemini-companion-record-with (look hunks)
  "Return the changes of the text of LOOK that restore HUNKS, which are undone.
The value is as that of `gemini-companion-record-without'."
  (let ((set (gemini-companion-record--set hunks)))
    (gemini-companion-record--differences
     look
     (lambda (hunk)
       (or (gethash hunk set) (not (gemini-companion-record-hunk-undone hunk))))
     (lambda (hunk) (gethash hunk set)))))

(defun gemini-companion-record--differences (look counts own-p)
  "Return the changes that make another text of that of LOOK, in order.
In the other text, acts of hunks that satisfy COUNTS count.  The hunks of a
change are those that satisfy OWN-P.  Missing lines do not separate changes."
  (let ((n 0)
        (start nil)
        (lines nil)
        (new nil)
        (hunks nil)
        (changes nil))
    (cl-flet ((end-change ()
                (when start
                  (push (gemini-companion-record-change
                         start n (nreverse lines) (reverse hunks)
                         (seq-uniq (mapcar #'gemini-companion-record-hunk-edit hunks)
                                   #'eq)
                         (nreverse new))
                        changes)
                  (setq start nil
                        lines nil
                        new nil
                        hunks nil))))
      (seq-doseq (line look)
        (let* ((acts (and (gemini-companion-record--touched-p line) (cdr line)))
               (now (or (null acts) (gemini-companion-record--there-p acts)))
               (then (or (null acts) (gemini-companion-record--there-p acts counts))))
          (if (eq (null now) (null then))
              (when now
                (end-change))
            (setq start (or start n))
            (pcase-dolist (`(,hunk) acts)
              (when (and (funcall own-p hunk) (not (memq hunk hunks)))
                (push hunk hunks)))
            (when then
              (push (car line) lines))
            (when now
              (push (car line) new)))
          (when now
            (setq n (1+ n)))))
      (end-change))
    (nreverse changes)))

;;;; Changes

(defun gemini-companion-record--left (acts)
  "Return the hunks of ACTS that are left, unless others have removed the line."
  (unless (and (not (cdar acts)) (not (gemini-companion-record--of-edit-p (car acts))))
    (cl-loop for (hunk) in acts
             unless (or (gemini-companion-record-hunk-reviewed hunk)
                        (gemini-companion-record-hunk-undone hunk))
             collect hunk)))

(defun gemini-companion-record--settled-p (acts)
  "Return non-nil if a line with ACTS is there, and all its hunks are decided."
  (and (gemini-companion-record--there-p acts)
       (cl-loop for (hunk) in acts
                always (or (gemini-companion-record-hunk-reviewed hunk)
                           (gemini-companion-record-hunk-undone hunk)))))

(defun gemini-companion-record--spans (lines)
  "Return the ranges of LINES to review, a list of (START END . HUNKS).
Lines between two lines of a hunk belong to the hunk."
  (let ((spans nil)
        (seen (make-hash-table :test 'eq))
        (count (length lines))
        (p 0))
    (while (< p count)
      (let ((start p)
            (first p)
            (last nil)
            (hunks nil))
        (while (and (< p count)
                    (gemini-companion-record--touched-p (aref lines p))
                    (not (gemini-companion-record--settled-p (cdr (aref lines p)))))
          (unless (eq last (cdr (aref lines p)))
            (setq last (cdr (aref lines p)))
            (dolist (hunk (gemini-companion-record--left last))
              (let ((span (gethash hunk seen)))
                (unless (eq start span)
                  (setq first (min first (or span first)))
                  (puthash hunk start seen)
                  (push hunk hunks)))))
          (setq p (1+ p)))
        (cond ((= p start)
               (setq p (1+ p)))
              (hunks
               ;; A hunk is also in an earlier span: all between them is one span.
               (while (and spans (<= first (caar spans)))
                 (pcase-let ((`(,begin ,_ . ,more) (pop spans)))
                   (setq start begin)
                   (dolist (hunk more)
                     (unless (memq hunk hunks)
                       (push hunk hunks)))))
               (dolist (hunk hunks)
                 (puthash hunk start seen))
               (push (cons start (cons p hunks)) spans)))))
    (nreverse spans)))

(defun gemini-companion-record-changes (look)
  "Return the changes of LOOK that the user has not reviewed, in order.
The value is a list of `gemini-companion-record-change's, whose lines are those
of the text without unreviewed changes."
  (let ((end 0)
        (n 0)
        (changes nil))
    (pcase-dolist (`(,from ,to . ,hunks) (gemini-companion-record--spans look))
      (cl-loop for k from end below from
               when (gemini-companion-record--present-p (aref look k))
               do (setq n (1+ n)))
      (let* ((span (substring look from to))
             (now (gemini-companion-record-text span))
             (whole (gemini-companion-hunk-whole (gemini-companion-record-text span t)
                                                 now)))
        (when whole
          (push (gemini-companion-record-change
                 (+ n (gemini-companion-hunk-new whole))
                 (+ n (gemini-companion-hunk-new-end whole))
                 (gemini-companion-hunk-lines whole)
                 hunks
                 (gemini-companion-record--edits-in span)
                 (append (substring now (gemini-companion-hunk-new whole)
                                    (gemini-companion-hunk-new-end whole))
                         nil))
                changes))
        (setq end to
              n (+ n (length now)))))
    (nreverse changes)))

(defun gemini-companion-record--edits-in (span)
  "Return the edits of the unreviewed lines, there or removed, of SPAN."
  (let ((edits nil))
    (seq-doseq (line span)
      (let ((acts (gemini-companion-record--acts line)))
        (unless (eq (null (gemini-companion-record--there-p acts))
                    (null (gemini-companion-record--reviewed-p acts)))
          (cl-pushnew (gemini-companion-record-hunk-edit
                       (car (gemini-companion-record--last acts)))
                      edits :test #'eq))))
    (nreverse edits)))

(defun gemini-companion-record-of-others (look &optional hunks)
  "Return the indices of the lines of the text of LOOK that others have written.
Omit lines that were there before the first edit.  If HUNKS is non-nil, return
only those that belong to HUNKS, as they replaced lines of them."
  (let ((base (caar gemini-companion-record--base))
        (indices nil)
        (n 0))
    (seq-doseq (line look)
      (if (not (gemini-companion-record--touched-p line))
          (setq n (1+ n))
        (let ((last (gemini-companion-record--last (cdr line))))
          (when (cdr last)
            (when (if hunks
                      (and (eq 'others (cdr last)) (memq (car last) hunks))
                    (or (eq 'others (cdr last))
                        (not (or (gemini-companion-record--of-edit-p last)
                                 (eq base (car last))))))
              (push n indices))
            (setq n (1+ n))))))
    (nreverse indices)))

(defun gemini-companion-record-owned (look)
  "Return the lines of others in the text of LOOK that belong to hunks, a list.
They have replaced lines of these hunks."
  (cl-loop for line across look
           for last = (and (gemini-companion-record--touched-p line)
                           (gemini-companion-record--last (cdr line)))
           when (eq 'others (cdr last))
           collect (car line)))

(defun gemini-companion-record-disown (look known)
  "Return LOOK with all lines of others, except KNOWN ones, as lines of theirs.
KNOWN are strings.  Return nil if no other line belongs to a hunk."
  (when (seq-difference (gemini-companion-record-owned look) known)
    (let ((others (gemini-companion-record--hunk nil 0 t)))
      (vconcat
       (mapcar (lambda (line)
                 (if (and (gemini-companion-record--touched-p line)
                          (eq 'others (cdr (gemini-companion-record--last (cdr line))))
                          (not (member (car line) known)))
                     (list (car line) (cons others t))
                   line))
               look)))))

(defun gemini-companion-record-conflict (look hunks &optional restore)
  "Return the index of a line beside which an undo of HUNKS in LOOK puts lines.
Others, or later hunks, have written it in the place of lines that HUNKS had
added; undoing HUNKS restores what these had replaced.  Return nil if there is
no such line.  If RESTORE is non-nil, HUNKS are undone and will be restored;
then others have written it in the place of lines that the undo had restored."
  (let ((set (gemini-companion-record--set hunks))
        (n 0)
        ;; In the lines since the last one that stays and is of nobody in LOST: who has
        ;; removed lines of HUNKS; whether lines come back; and the lines that stay, an
        ;; alist from who has written a line to its index.
        (lost nil)
        (back nil)
        (beside nil))
    (cl-flet* ((counts (hunk)
                 (if (gethash hunk set)
                     restore
                   (not (gemini-companion-record-hunk-undone hunk))))
               (who (act)
                 (cond ((gemini-companion-record--of-edit-p act) (car act))
                       ((gemini-companion-record--of-base-p act) 'base)
                       (t 'others)))
               (of-hunks-p (acts)
                 (cl-loop for (hunk . adds) in acts
                          thereis (and (eq (null adds) (and restore t))
                                       (gethash hunk set))))
               (end ()
                 (prog1 (and back
                             (cl-loop for (who . n) in (nreverse beside)
                                      when (memq who lost) return n))
                   (setq lost nil
                         back nil
                         beside nil))))
      (cl-loop
       for line across look
       for acts = (gemini-companion-record--acts line)
       for last = (gemini-companion-record--last acts)
       for now = (cdr last)
       for then = (gemini-companion-record--there-p acts #'counts)
       thereis (cond ((and now then)
                      (if (memq (who last) (cons 'others lost))
                          (ignore (push (cons (who last) n) beside))
                        (end)))
                     (then (ignore (setq back t)))
                     ((and last (not now) (not (gethash (car last) set))
                           (of-hunks-p acts))
                      (ignore (push (who last) lost))))
       when now do (setq n (1+ n))
       finally return (end)))))

;;;; What a text has that another one has not

(defun gemini-companion-record-edits-since (before after)
  "Return the edits that have written lines of AFTER which BEFORE has not, a list.
These are looks at two texts of a record.  So are edits which have only removed
lines there that BEFORE has; what a later edit has written again is not, nor
lines that others have changed."
  (let ((added (make-hash-table :test 'eq))
        (removed (make-hash-table :test 'eq))
        (adding (make-hash-table :test 'eq)))
    ;; How many more lines than in BEFORE each hunk has last added or removed.
    (cl-loop for (look . sign) in (list (cons before -1) (cons after 1))
             do (seq-doseq (line look)
                  (when (gemini-companion-record--touched-p line)
                    (let ((last (gemini-companion-record--last (cdr line))))
                      (when (gemini-companion-record--of-edit-p last)
                        (cl-incf (gethash (car last) (if (cdr last) added removed) 0)
                                 sign)))
                    (pcase-dolist (`(,hunk . ,adds) (cdr line))
                      (when adds
                        (puthash hunk t adding))))))
    (seq-uniq (cl-loop for hunk in (gemini-companion-record-hunks after)
                       when (or (< 0 (gethash hunk added 0))
                                (and (< 0 (gethash hunk removed 0))
                                     (not (gethash hunk adding))))
                       collect (gemini-companion-record-hunk-edit hunk))
              #'eq)))

;;;; Whose a line is

(defun gemini-companion-record-whose (look n)
  "Return whose the line N of the text of LOOK is, (WHO TEXT . HOW).
TEXT is that of the line.  WHO is a hunk of an edit, or an origin, see
`gemini-companion-record-forget'.  Then HOW is t; `others' if others have
written the line in place of one of WHO; or `formatted' if they have changed
punctuation in a line of WHO.  Otherwise WHO is nil, and HOW is `others', or
`base' if the line was there before the first edit.  Return nil if there is no
such line."
  (when-let* ((k (cl-loop with left = (1+ n)
                          for line across look
                          for k from 0
                          when (gemini-companion-record--present-p line)
                          do (setq left (1- left))
                          when (= 0 left) return k))
              (act (gemini-companion-record--last
                    (gemini-companion-record--acts (aref look k)))))
    (pcase-let ((`(,who . ,how)
                 (or (gemini-companion-record--who act)
                     (if (gemini-companion-record--of-base-p act)
                         '(nil . base)
                       (or (gemini-companion-record--formatted-of look k)
                           '(nil . others))))))
      `(,who ,(gemini-companion-record--line-text (aref look k)) . ,how))))

(defun gemini-companion-record--who (act)
  "Return (WHO . HOW) of ACT, the last one of a line, or nil if it is unknown.
See `gemini-companion-record-whose'."
  (cond ((null (cdr act)) nil)
        ((gemini-companion-record--of-edit-p act) act)
        ((not (memq (cdr act) '(t others))) (cons (cdr act) t))))

(defun gemini-companion-record--formatted-of (look k)
  "Return whose the line was that others have made the line K of LOOK of, or nil.
The value is a cons (WHO . formatted).  It is a missing line between the same
present lines, with the same letters and digits.  If there are several, they
must be of the same."
  (cl-flet ((words (line)
              (gemini-companion-record--rest line gemini-companion-record--no-words))
            (others-p (line)
              (when-let* ((last (and (gemini-companion-record--touched-p line)
                                     (gemini-companion-record--last (cdr line)))))
                (not (or (gemini-companion-record--of-base-p last)
                         (gemini-companion-record--of-edit-p last))))))
    (let ((text (words (aref look k)))
          (from k)
          (to k)
          (owners nil))
      (while (and (< 0 from) (others-p (aref look (1- from))))
        (setq from (1- from)))
      (while (and (< (1+ to) (length look)) (others-p (aref look (1+ to))))
        (setq to (1+ to)))
      (unless (string-empty-p text)
        (cl-loop for i from from to to
                 for acts = (cdr (aref look i))
                 for last = (gemini-companion-record--last acts)
                 when (and (null (cdr last)) (string= text (words (aref look i))))
                 do (cl-pushnew (car (gemini-companion-record--who
                                      (gemini-companion-record--last
                                       (cdr (memq last acts)))))
                                owners)))
      (pcase owners
        (`(,(and who (guard who))) (cons who 'formatted))))))

(defun gemini-companion-record-past (lines origin)
  "Return the text of LINES as lines of which only origins are left.
Return nil if there is none.  ORIGIN is as of `gemini-companion-record-forget',
but called for all lines of edits."
  (let ((past (cl-loop
               for line across lines
               for act = (gemini-companion-record--last
                          (gemini-companion-record--acts line))
               when (cdr act)
               collect (gemini-companion-record--line
                        (gemini-companion-record--line-text line)
                        (if (gemini-companion-record--of-edit-p act)
                            (gemini-companion-record--base-of
                             (funcall origin (car act) (cdr act) (car line)))
                          (list act))))))
    (and (seq-some #'consp past)
         (vconcat past))))

(defun gemini-companion-record-begin (past before)
  "Return the lines PAST, of which only origins are left, for the text BEFORE.
If it has many lines that BEFORE has not, omit these: each look would pass all."
  (if (<= (length past)
          (max 1000 (* gemini-companion-record--most-versions (length before))))
      past
    (vconcat (seq-filter #'gemini-companion-record--present-p
                         (gemini-companion-record-look past before)))))

;;;; Parts of a change

(defun gemini-companion-record-split (look change new-p old-p)
  "Give a part of CHANGE, which is in LOOK, hunks of its own.
NEW-P is a predicate on the indices of the lines of CHANGE in the text, and
OLD-P on the indices of the lines that it has replaced, from 0 on; both say
which lines are in the part; see `gemini-companion-hunk-complete-selection'.

Return a list: LOOK with these hunks, the hunks of the part, and an alist from
hunks to the other ones of their lines.  Return nil if the part has no line, or
all of them."
  (pcase-let* ((`(,from . ,to) (gemini-companion-record--range look change))
               (olds nil)
               (news nil)
               (n (gemini-companion-hunk-new change)))
    (cl-loop for k from from below to
             for acts = (gemini-companion-record--acts (aref look k))
             for now = (gemini-companion-record--there-p acts)
             for then = (gemini-companion-record--reviewed-p acts)
             do (cond ((and now (not then)) (push (cons k (funcall new-p n)) news))
                      ((and then (not now))
                       (push (cons k (funcall old-p (length olds))) olds)))
             when now do (setq n (1+ n)))
    (setq olds (nreverse olds)
          news (nreverse news))
    (gemini-companion-hunk-complete-selection olds news)
    (let ((all (append olds news)))
      (when (and (seq-some #'cdr all) (not (seq-every-p #'cdr all)))
        (gemini-companion-record--with-part
         look from to all
         (and (length= olds (length news))
              (cl-mapcar (pcase-lambda (`(,old . ,_) `(,new . ,_)) (cons old new))
                         olds news)))))))

(defun gemini-companion-record--range (look change)
  "Return the range of LOOK around CHANGE, (FROM . TO): up to lines that stay."
  (let ((n 0)
        (from 0)
        (to (length look)))
    (dotimes (k (length look))
      (when (gemini-companion-record--present-p (aref look k))
        (setq n (1+ n))
        (when (= n (gemini-companion-hunk-new change))
          (setq from (1+ k)))
        (when (and (= (1- n) (gemini-companion-hunk-new-end change))
                   (= to (length look)))
          (setq to k))))
    (cons from to)))

(defun gemini-companion-record--with-part (look from to all pairs)
  "Return LOOK with hunks for a part of its lines from FROM to TO.
ALL is an alist from the indices of lines to whether they are in the part; other
lines are where the one before is.  PAIRS are conses of indices of lines in ALL,
the second of which replaces the first.  For the value, see
`gemini-companion-record-split'.

The unreviewed hunks of the part are new ones, and so are those of each stretch
of lines after lines of the part: no hunk is on two sides of the part."
  (let* ((replaced (mapcar #'car pairs))
         ;; Tables from hunks to new ones.  There is none before the part.
         (part (make-hash-table :test 'eq))
         (tables (list part))
         (table nil)
         (lines nil))
    (cl-flet* ((own (hunk)
                 (cond ((or (null table)
                            (null (gemini-companion-record-hunk-edit hunk))
                            (gemini-companion-record-hunk-reviewed hunk)
                            (gemini-companion-record-hunk-undone hunk))
                        hunk)
                       ((gethash hunk table))
                       (t (puthash hunk (gemini-companion-record--part-of hunk) table))))
               (add (k)
                 (pcase (assq k all)
                   (`(,_) (when (eq part table)
                            (push (setq table (make-hash-table :test 'eq)) tables)))
                   (`(,_ . ,_) (setq table part)))
                 (let ((line (aref look k)))
                   (push (if (gemini-companion-record--touched-p line)
                             (cons (car line)
                                   (mapcar (pcase-lambda (`(,hunk . ,how))
                                             (cons (own hunk) how))
                                           (cdr line)))
                           line)
                         lines))))
      (cl-loop for k from from below to
               unless (memq k replaced)
               do (when-let* ((pair (rassq k pairs)))
                    (add (car pair)))
               (add k)))
    (list (vconcat (substring look 0 from) (nreverse lines) (substring look to))
          (hash-table-values part)
          (cl-loop for table in tables
                   append (cl-loop for hunk being the hash-keys of table
                                   using (hash-values new)
                                   collect (cons hunk new))))))

(defun gemini-companion-record--part-of (hunk)
  "Return a new hunk for some lines of HUNK, which is left."
  (let ((part (gemini-companion-record--hunk (gemini-companion-record-hunk-edit hunk)
                                             (gemini-companion-record-hunk-number hunk))))
    (setf (gemini-companion-record-hunk-postponed part)
          (gemini-companion-record-hunk-postponed hunk))
    part))

;;;; What became of hunks

(defun gemini-companion-record-states (look)
  "Return a table of what became of each hunk of an edit that LOOK has.
A value is `left', `kept', `undone', or `gone' if others have taken away what
the hunk did.  What a later edit has changed again, and others have not, is
still left, or kept."
  (let ((table (make-hash-table :test 'eq))
        ;; From hunks to those whose lines they have changed again.
        (beneath (make-hash-table :test 'eq))
        (before nil)
        (todo nil))
    (cl-flet ((put (hunk)
                (unless (memq (gethash hunk table) '(left kept))
                  (puthash hunk (if (gemini-companion-record-hunk-reviewed hunk)
                                    'kept
                                  'left)
                           table)
                  (push hunk todo))))
      (seq-doseq (line look)
        (unless (or (not (gemini-companion-record--touched-p line))
                    (eq before (cdr line)))
          (setq before (cdr line))
          (pcase-dolist (`(,hunk) before)
            (unless (or (null (gemini-companion-record-hunk-edit hunk))
                        (gethash hunk table))
              (puthash hunk
                       (if (gemini-companion-record-hunk-undone hunk) 'undone 'gone)
                       table)))
          (let ((last (gemini-companion-record--last before)))
            (when (gemini-companion-record--of-edit-p last)
              (put (car last))
              (pcase-dolist (`(,under) (cdr (memq last before)))
                (push under (gethash (car last) beneath)))))))
      (while todo
        (dolist (under (gethash (pop todo) beneath))
          (when (eq 'gone (gethash under table))
            (put under)))))
    table))

(defun gemini-companion-record-state (states hunk)
  "Return what became of HUNK: `left', `kept', `undone' or `gone'.
STATES is the value of `gemini-companion-record-states'."
  (let ((state (gethash hunk states 'gone))
        (by (gemini-companion-record-hunk-superseded hunk)))
    (cond ((gemini-companion-record-hunk-undone hunk) 'undone)
          ((and by (eq state 'gone)) (gemini-companion-record-state states by))
          (t state))))

(defun gemini-companion-record--lines-of (look hunks)
  "Return an alist from HUNKS to what LOOK has of their lines, a list.
An element is (ADDED . LAST): whether the hunk had added the line, and its last
act."
  (let ((table (gemini-companion-record--set hunks))
        (lines (make-hash-table :test 'eq)))
    (seq-doseq (line (and hunks look))
      (when (gemini-companion-record--touched-p line)
        (pcase-dolist (`(,hunk . ,adds) (cdr line))
          (when (gethash hunk table)
            (push (cons (and adds t) (gemini-companion-record--last (cdr line)))
                  (gethash hunk lines))))))
    (mapcar (lambda (hunk) (cons hunk (gethash hunk lines))) hunks)))

(defun gemini-companion-record--as-with-p (added last)
  "Return non-nil if a line is as with a hunk that has ADDED it, or removed it.
LAST is the last act of the line."
  (eq (null added) (null (cdr last))))

(defun gemini-companion-record-back (look hunks)
  "Return those of HUNKS that the text of LOOK has, no matter who wrote it."
  (cl-loop for (hunk . lines) in (gemini-companion-record--lines-of look hunks)
           when (and lines
                     (cl-loop for (added . last) in lines
                              always (gemini-companion-record--as-with-p added last)))
           collect hunk))

(defun gemini-companion-record-back-by-others (look hunks &optional removed)
  "Return those of HUNKS that the text of LOOK has again, made by others.
They have restored a line that the hunk had added, and no edit has written one.
If REMOVED is non-nil, it suffices that they have removed a line that the hunk
had removed."
  (cl-loop for (hunk . lines) in (gemini-companion-record--lines-of look hunks)
           when (and (cl-loop for (added . last) in lines
                              always (and (gemini-companion-record--as-with-p added last)
                                          (not (and added
                                                    (gemini-companion-record--of-edit-p
                                                     last)))))
                     (cl-loop for (added . last) in lines
                              thereis (or added
                                          (and removed
                                               (not (gemini-companion-record--of-edit-p
                                                     last))))))
           collect hunk))

(defun gemini-companion-record-equal-hunks (look other hunks)
  "Return those of HUNKS whose lines are the same in LOOK and OTHER.
These are looks at two texts of a record: both texts have a line of the hunk, or
none of them has it."
  (let ((tables (mapcar
                 (lambda (look)
                   (let ((table (make-hash-table :test 'eq)))
                     (seq-doseq (line look)
                       (when (gemini-companion-record--touched-p line)
                         (let ((there (and (gemini-companion-record--there-p (cdr line))
                                           t)))
                           (pcase-dolist (`(,hunk) (cdr line))
                             (push (cons (car line) there) (gethash hunk table))))))
                     table))
                 (list look other))))
    (seq-filter (lambda (hunk)
                  (let ((lines (gethash hunk (car tables))))
                    (and lines (equal lines (gethash hunk (cadr tables))))))
                hunks)))

(cl-defstruct (gemini-companion-record-decided
               (:include gemini-companion-record-change)
               (:noinline t)
               (:constructor gemini-companion-record--decided
                             (new new-end lines hunks edits now state with))
               (:copier nil))
  "What hunks have done at one position, on which the user has decided.
STATE is `kept', if the current text has it; then LINES are the lines that would
be there without it.  Else STATE is `undone': LINES are the current lines there,
and WITH are those that would be there with the hunks."
  state with)

(defun gemini-companion-record-decided (look)
  "Return what hunks that were reviewed or undone did to LOOK.
The value is a list of `gemini-companion-record-decided's: those that are kept,
in order, and those that are undone, in order.  Several hunks at one position
are one element.  Omit what others have changed since."
  (append
   (mapcar (lambda (change)
             (gemini-companion-record--decide change 'kept
                                              (gemini-companion-hunk-lines change)
                                              nil))
           (gemini-companion-record--differences
            look
            (lambda (hunk)
              (not (or (gemini-companion-record-hunk-undone hunk)
                       (gemini-companion-record--kept-p hunk))))
            #'gemini-companion-record--kept-p))
   (mapcar (lambda (change)
             (gemini-companion-record--decide
              change 'undone
              (gemini-companion-record-change-now change)
              (gemini-companion-hunk-lines change)))
           (gemini-companion-record--differences
            look (lambda (_) t)
            #'gemini-companion-record-hunk-undone))))

(defun gemini-companion-record--kept-p (hunk)
  "Return non-nil if HUNK is of an edit, reviewed, and not undone."
  (and (gemini-companion-record-hunk-edit hunk)
       (gemini-companion-record--settled-hunk-p hunk)))

(defun gemini-companion-record--decide (change state lines with)
  "Return CHANGE as a `gemini-companion-record-decided' with STATE, LINES and WITH."
  (gemini-companion-record--decided
   (gemini-companion-hunk-new change)
   (gemini-companion-hunk-new-end change)
   lines
   (gemini-companion-record-change-hunks change)
   (gemini-companion-record-change-edits change)
   (gemini-companion-record-change-now change)
   state with))

;;;; As data

(defun gemini-companion-record-data (lines hunks edits)
  "Return LINES of a record, and HUNKS, as data that can be printed.
HUNKS are of EDITS, and may have no line.  The value is a cons of data, for
`gemini-companion-record-of-data', and a table from hunks to their numbers."
  (let ((numbers (make-hash-table :test 'eq))
        (seen (make-hash-table :test 'equal))
        (all nil)
        (acts nil)
        (runs nil))
    (cl-labels
        ((number (hunk)
           (and hunk
                (or (gethash hunk numbers)
                    (prog1 (puthash hunk (hash-table-count numbers) numbers)
                      (push hunk all)
                      (number (gemini-companion-record-hunk-superseded hunk)))))))
      (number (caar gemini-companion-record--base))
      (mapc #'number hunks)
      (seq-doseq (line lines)
        (let* ((key (and (consp line)
                         (mapcar (pcase-lambda (`(,hunk . ,how)) (cons (number hunk) how))
                                 (gemini-companion-record--acts line))))
               (index (and key
                           (or (gethash key seen)
                               (prog1 (puthash key (hash-table-count seen) seen)
                                 (push key acts))))))
          (unless (and runs (eql index (caar runs)))
            (push (list index) runs))
          (push (gemini-companion-record--line-text line) (cdar runs))))
      (cons (list (mapcar
                   (lambda (hunk)
                     (list (seq-position edits (gemini-companion-record-hunk-edit hunk)
                                         #'eq)
                           (gemini-companion-record-hunk-number hunk)
                           (gemini-companion-record-hunk-reviewed hunk)
                           (gemini-companion-record-hunk-undone hunk)
                           (gemini-companion-record-hunk-forgotten hunk)
                           (number (gemini-companion-record-hunk-superseded hunk))
                           (gemini-companion-record-hunk-postponed hunk)))
                   (reverse all))
                  (nreverse acts)
                  (nreverse (mapcar (pcase-lambda (`(,index . ,texts))
                                      (cons index (reverse texts)))
                                    runs)))
            numbers))))

(defun gemini-companion-record-of-data (data edits)
  "Return the lines that DATA were made of, and their hunks, a cons of vectors.
EDITS are as in `gemini-companion-record-data'.  Signal an error if DATA are
damaged."
  (pcase-let* ((`(,facts ,acts ,runs) data)
               (edits (vconcat edits))
               ;; The first one is the base.
               (hunks (vconcat
                       (mapcar (pcase-lambda (`(,edit ,number ,reviewed))
                                 (gemini-companion-record--hunk
                                  (and edit (aref edits edit)) number reviewed))
                               facts)))
               (acts (vconcat
                      (mapcar (lambda (acts)
                                (mapcar (pcase-lambda (`(,number . ,how))
                                          (cons (if (eql 0 number)
                                                    (caar gemini-companion-record--base)
                                                  (aref hunks number))
                                                how))
                                        acts))
                              acts))))
    (seq-do-indexed
     (pcase-lambda (`(,_ ,_ ,_ ,undone ,forgotten ,superseded ,postponed) n)
       (let ((hunk (aref hunks n)))
         (setf (gemini-companion-record-hunk-undone hunk) undone
               (gemini-companion-record-hunk-forgotten hunk) forgotten
               (gemini-companion-record-hunk-superseded hunk)
               (and superseded (aref hunks superseded))
               (gemini-companion-record-hunk-postponed hunk) postponed)))
     facts)
    (cons (vconcat
           (cl-loop for (index . texts) in runs
                    for of-run = (and index (aref acts index))
                    append (mapcar (lambda (text)
                                     (cl-check-type text string)
                                     (if index
                                         (gemini-companion-record--line text of-run)
                                       text))
                                   texts)))
          hunks)))

(provide 'gemini-companion-record)
;;; gemini-companion-record.el ends here
