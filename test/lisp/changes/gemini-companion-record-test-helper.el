;;; gemini-companion-record-test-helper.el --- A judge of records  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A world in which each line has an identity, whatever its text: so it is known who has
;; added it and who has removed it.  The record sees only texts.  The world writes, types,
;; keeps, undoes and so on at random, and compares the answers of the record with what is
;; true.  The first wrong answer ends a sequence; it is of one of three kinds:
;;
;; exact  a text that is not the current one, an undo that gives another text than it
;;        showed, or asks where it must not, a change that another decision has changed,
;;        and an unreviewed line that is forgotten
;; whose  a line that is attributed to somebody else, or the text without what is
;;        unreviewed
;; words  the state of a hunk, or the edits of a change
;;
;; In the sequences of everyday use, 20 steps are 6 writes by two CLIs, one of them
;; reviewed; 5 times the user types, 3 saves, 2 decisions to keep and 2 to undo, one C-/,
;; and one formatter, stash or branch.  Those made for harm have as many of each in a
;; small file, and CLIs that write while another branch is checked out.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-lines)
(require 'gemini-companion-record)

(cl-defstruct (gemini-companion-record-test-hunk
               (:constructor gemini-companion-record-test-hunk (edit number)))
  "A hunk as it is in truth."
  edit number reviewed undone)

(cl-defstruct (gemini-companion-record-test-item
               (:constructor gemini-companion-record-test-item (text &optional acts)))
  "A line of the world.
ACTS are as in a record, after the last write; the base is (nil . t), and others
are `others'.  FRESH is non-nil for a line that others have written since."
  text acts (fresh nil))

(cl-defstruct (gemini-companion-record-test-world
               (:constructor gemini-companion-record-test-world))
  "A file and all that has happened to it.
ORDER are all items in order, and HERE is a table of those that the text has.
HEAD is the first text, a vector.  RECORD is the record of the file, and HUNKS is
an alist from its hunks to those of the truth.  HISTORY is for C-/, and VERSIONS
are the texts, lists of items."
  order here record hunks (edits 0) (history nil) (versions nil) (number 0) (step 0)
  (head nil) (harm nil))

(defvar gemini-companion-record-test--world nil
  "The world of the current sequence.")

(defmacro gemini-companion-record-test--get (slot)
  "Return SLOT of the current world, a place."
  `(,(intern (format "gemini-companion-record-test-world-%s" slot))
    gemini-companion-record-test--world))

(defun gemini-companion-record-test--wrong (kind &rest details)
  "End the sequence with a wrong answer of KIND, with DETAILS."
  (throw 'gemini-companion-record-test-wrong (cons kind details)))

;;;; What is true

(defun gemini-companion-record-test--last (acts &optional counts)
  "Return the last of ACTS whose hunk satisfies COUNTS and is not undone."
  (cl-loop for act in acts
           for hunk = (car act)
           when (or (not (gemini-companion-record-test-hunk-p hunk))
                    (and (not (gemini-companion-record-test-hunk-undone hunk))
                         (or (null counts) (funcall counts hunk))))
           return act))

(defun gemini-companion-record-test--here-p (item)
  "Return non-nil if the text has ITEM."
  (gethash item (gemini-companion-record-test--get here)))

(defun gemini-companion-record-test--known-p (item)
  "Return non-nil if the known text has ITEM."
  (and (not (gemini-companion-record-test-item-fresh item))
       (cdr (gemini-companion-record-test--last
             (gemini-companion-record-test-item-acts item)))))

(defun gemini-companion-record-test--seq ()
  "Return the items of the text, in order."
  (seq-filter #'gemini-companion-record-test--here-p
              (gemini-companion-record-test--get order)))

(defun gemini-companion-record-test--texts (items)
  "Return the texts of ITEMS, a vector."
  (vconcat (mapcar #'gemini-companion-record-test-item-text items)))

(defun gemini-companion-record-test--now ()
  "Return the lines of the text, a vector."
  (gemini-companion-record-test--texts (gemini-companion-record-test--seq)))

(defun gemini-companion-record-test--reviewed-p (acts)
  "Return non-nil if a line with ACTS is there if only reviewed hunks count."
  (cdr (gemini-companion-record-test--last
        acts #'gemini-companion-record-test-hunk-reviewed)))

(defun gemini-companion-record-test--turned (acts)
  "Return ACTS after others have removed the line or have restored it."
  (let* ((there (cdr (gemini-companion-record-test--last acts)))
         (rest acts))
    (while (and rest (eq (null there)
                         (null (cdr (gemini-companion-record-test--last rest)))))
      (setq rest (cdr rest)))
    (if (gemini-companion-record-test--last rest)
        rest
      (cons (cons 'others (not there)) acts))))

(defun gemini-companion-record-test--truth ()
  "Return a table from each item to its acts for the current text.
Others have made the text of the known one."
  (let ((table (make-hash-table :test 'eq))
        (removed nil)
        (fresh nil))
    (cl-flet* ((owner (item)
                 (let* ((acts (gemini-companion-record-test-item-acts item))
                        (hunk (car (gemini-companion-record-test--last acts))))
                   (and (gemini-companion-record-test-hunk-p hunk)
                        (not (gemini-companion-record-test-hunk-reviewed hunk))
                        (not (gemini-companion-record-test--reviewed-p acts))
                        hunk)))
               (end-stretch ()
                 (setq removed (nreverse removed))
                 (when (and removed fresh (seq-every-p #'owner removed))
                   (dolist (item (nreverse fresh))
                     (when-let* ((hunk (owner (car removed))))
                       (puthash item (list (cons hunk 'others)) table))
                     (setq removed (or (cdr removed) removed))))
                 (setq removed nil
                       fresh nil)))
      (dolist (item (gemini-companion-record-test--get order))
        (let ((here (gemini-companion-record-test--here-p item))
              (known (gemini-companion-record-test--known-p item))
              (acts (gemini-companion-record-test-item-acts item)))
          (cond ((gemini-companion-record-test-item-fresh item)
                 (puthash item (and here '((others . t))) table)
                 (when here
                   (push item fresh)))
                ((eq (null here) (null known))
                 (puthash item acts table)
                 (when here
                   (end-stretch)))
                (t
                 (puthash item (gemini-companion-record-test--turned acts) table)
                 (if here
                     (end-stretch)
                   (push item removed))))))
      (end-stretch))
    table))

;; Where others have removed three lines on a side of what a CLI has removed, and nothing
;; stays on either side, that is gone with its position, by the rule: any answer is right.
(defun gemini-companion-record-test--vague (truth)
  "Return a table of the items whose position is gone; TRUTH has all acts."
  (let ((order (vconcat (gemini-companion-record-test--get order)))
        (vague (make-hash-table :test 'eq)))
    (cl-flet ((side (k step)
                (let ((count 0)
                      (state nil))
                  (while (and (null state) (< -1 (setq k (+ k step)) (length order)))
                    (let ((item (aref order k)))
                      (cond ((gemini-companion-record-test-item-fresh item))
                            ((gemini-companion-record-test--here-p item)
                             (setq state 'stays))
                            ((and (gemini-companion-record-test--known-p item)
                                  (= 3 (cl-incf count)))
                             (setq state 'removed)))))
                  (or state (and (< 0 count) 'removed)))))
      (dotimes (k (length order))
        (let ((item (aref order k)))
          (unless (or (gemini-companion-record-test--here-p item)
                      (gemini-companion-record-test-item-fresh item))
            (let ((sides (list (side k -1) (side k 1))))
              (when (and (memq 'removed sides)
                         (not (memq 'stays sides))
                         (cdr (gethash item truth)))
                (puthash item t vague)))))))
    vague))

(defun gemini-companion-record-test--hunk (hunk)
  "Return the true hunk of HUNK of the record."
  (or (alist-get hunk (gemini-companion-record-test--get hunks))
      (gemini-companion-record-test--wrong 'exact "A hunk of nobody" hunk)))

(defun gemini-companion-record-test--set-reviewed (hunks reviewed)
  "Set that HUNKS of the record are REVIEWED, also in truth."
  (dolist (hunk hunks)
    (setf (gemini-companion-record-hunk-reviewed hunk) (and reviewed 'kept)
          (gemini-companion-record-test-hunk-reviewed
           (gemini-companion-record-test--hunk hunk))
          reviewed)))

(defun gemini-companion-record-test--set-undone (hunks undone)
  "Set that HUNKS of the record are UNDONE, also in truth; return those changed."
  (let ((changed (gemini-companion-record-set-undone hunks undone)))
    (dolist (hunk changed changed)
      (setf (gemini-companion-record-test-hunk-undone
             (gemini-companion-record-test--hunk hunk))
            undone))))

;;;; What happens

(defun gemini-companion-record-test--item (whose)
  "Return a new item with a text of WHOSE."
  (gemini-companion-record-test-item
   (format "%s%d\n" whose (cl-incf (gemini-companion-record-test--get number)))))

(defun gemini-companion-record-test--note-version ()
  "Remember the order of the current text."
  (push (gemini-companion-record-test--seq) (gemini-companion-record-test--get versions)))

(defun gemini-companion-record-test--start ()
  "Set the text to the one before the first edit."
  (let ((items nil))
    (dotimes (_ (if (gemini-companion-record-test--get harm)
                    (+ 8 (random 18))
                  (+ 30 (random 31))))
      (let ((item (gemini-companion-record-test--item "b")))
        (setf (gemini-companion-record-test-item-acts item) '((nil . t)))
        (puthash item t (gemini-companion-record-test--get here))
        (push item items)))
    (setf (gemini-companion-record-test--get order) (nreverse items)
          (gemini-companion-record-test--get head) (gemini-companion-record-test--now)
          (gemini-companion-record-test--get record) (gemini-companion-record-test--now))
    (gemini-companion-record-test--note-version)))

(defun gemini-companion-record-test--position ()
  "Return the index of a line of the text, often one beside a CLI's line."
  (let* ((seq (gemini-companion-record-test--seq))
         (own (cl-loop for item in seq
                       for k from 0
                       when (gemini-companion-record-test-hunk-p
                             (car (gemini-companion-record-test--last
                                   (gemini-companion-record-test-item-acts item))))
                       collect k)))
    (max 0 (min (1- (length seq))
                (if (and own (< (random 10) 6))
                    (+ (nth (random (length own)) own) -1 (random 3))
                  (random (max 1 (length seq))))))))

(defun gemini-companion-record-test--replace (index count items)
  "Replace COUNT lines from INDEX on in the text by ITEMS.
Return a cons of the removed items, and ITEMS."
  (let* ((seq (gemini-companion-record-test--seq))
         (removed (seq-take (nthcdr index seq) count))
         (after (or (car (last removed))
                    (and (< 0 index) (nth (1- index) seq))))
         (order (gemini-companion-record-test--get order)))
    (dolist (item removed)
      (remhash item (gemini-companion-record-test--get here)))
    (dolist (item items)
      (puthash item t (gemini-companion-record-test--get here)))
    (setf (gemini-companion-record-test--get order)
          (if after
              (let ((tail (cdr (memq after order))))
                (append (butlast order (length tail)) items tail))
            (append items order)))
    (cons removed items)))

(defun gemini-companion-record-test--edit-text (whose places most)
  "Change the text at up to PLACES, with up to MOST lines of WHOSE each."
  (dotimes (_ (1+ (random places)))
    (let ((index (gemini-companion-record-test--position))
          (count (1+ (random most)))
          (kind (random 100))
          (size (length (gemini-companion-record-test--seq))))
      (cl-flet ((fresh (n)
                  (cl-loop repeat n collect (gemini-companion-record-test--item whose))))
        (cond ((or (< kind 35) (= 0 size))
               (gemini-companion-record-test--replace index 0 (fresh count)))
              ((< kind 75)
               (gemini-companion-record-test--replace index count
                                                      (fresh (1+ (random count)))))
              ((< 6 size)
               (gemini-companion-record-test--replace index count nil)))))))

(defun gemini-companion-record-test--save-for-undo (&rest redo)
  "Remember the text for C-/, and the functions REDO to call then."
  (push (cons (gemini-companion-record-test--seq) redo)
        (gemini-companion-record-test--get history)))

(defun gemini-companion-record-test--types ()
  "Let the user type."
  (gemini-companion-record-test--save-for-undo)
  (let ((order (gemini-companion-record-test--get order)))
    (gemini-companion-record-test--edit-text "u" 2 2)
    (dolist (item (gemini-companion-record-test--get order))
      (unless (memq item order)
        (setf (gemini-companion-record-test-item-fresh item) t)))))

(defun gemini-companion-record-test--saves ()
  "Save: the record knows nothing of that.")

(defun gemini-companion-record-test--formats ()
  "Let a formatter indent some lines."
  (gemini-companion-record-test--save-for-undo)
  (let* ((seq (nthcdr (gemini-companion-record-test--position)
                      (gemini-companion-record-test--seq)))
         (items (seq-take seq (1+ (random 8)))))
    (dolist (item items)
      (let ((text (gemini-companion-record-test-item-text item)))
        (setf (gemini-companion-record-test-item-text item)
              (if (string-prefix-p " " text) (substring text 1) (concat "  " text)))))
    (setf (gemini-companion-record-test--get history) nil)))

(defun gemini-companion-record-test--takes-back ()
  "Take back what the user has done last, with C-/."
  (pcase (pop (gemini-companion-record-test--get history))
    (`(,seq . ,redo)
     (clrhash (gemini-companion-record-test--get here))
     (dolist (item seq)
       (puthash item t (gemini-companion-record-test--get here)))
     (mapc #'funcall redo))))

(defun gemini-companion-record-test--writes (&optional accepted)
  "Let a CLI write; ACCEPTED is non-nil if its edits are reviewed."
  (let ((before (gemini-companion-record-test--now))
        (was (gemini-companion-record-test--seq))
        (truth (gemini-companion-record-test--truth))
        (edit (cl-incf (gemini-companion-record-test--get edits))))
    ;; What others have done is recorded first.
    (dolist (item (gemini-companion-record-test--get order))
      (setf (gemini-companion-record-test-item-acts item) (gethash item truth)
            (gemini-companion-record-test-item-fresh item) nil))
    (setf (gemini-companion-record-test--get order)
          (seq-filter #'gemini-companion-record-test-item-acts
                      (gemini-companion-record-test--get order)))
    (gemini-companion-record-test--edit-text "c" 3 4)
    (when (equal before (gemini-companion-record-test--now))
      (gemini-companion-record-test--replace
       0 0 (list (gemini-companion-record-test--item "c"))))
    (let* ((after (gemini-companion-record-test--now))
           (written (gemini-companion-record-write
                     (gemini-companion-record-test--get record) edit before after
                     :accepted (and accepted after))))
      (setf (gemini-companion-record-test--get record) (car written)
            (gemini-companion-record-test--get history) nil)
      (gemini-companion-record-test--act edit was (cdr written))
      (gemini-companion-record-test--note-version)
      (unless (equal after (gemini-companion-record-text (car written)))
        (gemini-companion-record-test--wrong 'exact "Another text is recorded" after)))))

(defun gemini-companion-record-test--act (edit was hunks)
  "Mark what EDIT has written since the text had the items WAS.
HUNKS are those that the record has of EDIT."
  (dolist (hunk hunks)
    (let ((true (gemini-companion-record-test-hunk
                 edit (gemini-companion-record-hunk-number hunk))))
      (setf (gemini-companion-record-test-hunk-reviewed true)
            (gemini-companion-record-hunk-reviewed hunk))
      (push (cons hunk true) (gemini-companion-record-test--get hunks))))
  (let ((open nil))
    (dolist (item (gemini-companion-record-test--get order))
      (let ((here (and (gemini-companion-record-test--here-p item) t)))
        (cond ((not (eq here (and (memq item was) t)))
               (unless open
                 (setq open (or (pop hunks)
                                (gemini-companion-record-test--wrong
                                 'exact "A hunk is missing"))))
               (push (cons (gemini-companion-record-test--hunk open) here)
                     (gemini-companion-record-test-item-acts item)))
              (here (setq open nil)))))
    (when hunks
      (gemini-companion-record-test--wrong 'exact "A hunk too many"))))

(defun gemini-companion-record-test--look ()
  "Return a look of the record at the text."
  (gemini-companion-record-look (gemini-companion-record-test--get record)
                                (gemini-companion-record-test--now)))

(defun gemini-companion-record-test--some-hunks (look)
  "Return hunks of one change of LOOK, or of an edit, or nil."
  (let ((changes (gemini-companion-record-changes look))
        (edits (gemini-companion-record-test--get edits)))
    (cond ((and changes (< (random 10) 6))
           (gemini-companion-record-change-hunks (nth (random (length changes)) changes)))
          ((< 0 edits)
           (let ((edit (1+ (random edits))))
             (cl-loop for (hunk) in (gemini-companion-record-test--get hunks)
                      when (eql edit (gemini-companion-record-hunk-edit hunk))
                      collect hunk))))))

(defun gemini-companion-record-test--check-rest (changes change what)
  "Check that only CHANGE is no longer one of CHANGES, after the user did WHAT.
CHANGE is nil for a decision on an edit, whose hunks share changes with others."
  (when change
    (let ((rest (gemini-companion-record-test--parts (remq change changes)))
          (left (gemini-companion-record-test--parts
                 (gemini-companion-record-changes (gemini-companion-record-test--look)))))
      (unless (equal rest left)
        (gemini-companion-record-test--wrong
         'exact (concat what " a change changes others") change rest left
         (gemini-companion-record-test--now))))))

(defun gemini-companion-record-test--parts (changes)
  "Return the lines and hunks of CHANGES: their positions may be others."
  (mapcar (lambda (change)
            (cons (gemini-companion-hunk-lines change)
                  (gemini-companion-record-change-hunks change)))
          changes))

(defun gemini-companion-record-test--with-hunks (changes hunks)
  "Return the one of CHANGES whose hunks are exactly HUNKS, or nil."
  (seq-find (lambda (change)
              (equal hunks (gemini-companion-record-change-hunks change)))
            changes))

(defun gemini-companion-record-test--keeps ()
  "Keep a change, or an edit."
  (let* ((look (gemini-companion-record-test--look))
         (changes (gemini-companion-record-changes look))
         (hunks (seq-remove #'gemini-companion-record-hunk-reviewed
                            (gemini-companion-record-test--some-hunks look)))
         (change (gemini-companion-record-test--with-hunks changes hunks)))
    (gemini-companion-record-test--set-reviewed hunks t)
    (gemini-companion-record-test--save-for-undo
     (lambda () (gemini-companion-record-test--set-reviewed hunks nil)))
    (gemini-companion-record-test--check-rest changes change "Keeping")))

(defun gemini-companion-record-test--undoes ()
  "Undo a change, or an edit."
  (let* ((look (gemini-companion-record-test--look))
         (now (gemini-companion-record-test--now))
         (changes (gemini-companion-record-changes look))
         (hunks (gemini-companion-record-test--some-hunks look))
         (own (mapcar #'gemini-companion-record-test--hunk hunks))
         (truth (gemini-companion-record-test--truth))
         (parts (gemini-companion-record-without look hunks))
         (change (gemini-companion-record-test--with-hunks changes hunks))
         (shown (gemini-companion-lines-without parts now))
         (expected (make-hash-table :test 'eq)))
    (when change
      (let ((direct (gemini-companion-lines-without (list change) now)))
        (unless (equal shown direct)
          (gemini-companion-record-test--wrong
           'exact "Undoing a change gives another text" direct shown))))
    (when parts
      (dolist (item (gemini-companion-record-test--get order))
        (when (cdr (gemini-companion-record-test--last
                    (gethash item truth) (lambda (hunk) (not (memq hunk own)))))
          (puthash item t expected)))
      (gemini-companion-record-test--check-others look hunks own truth)
      (let ((seq (gemini-companion-record-test--found shown)))
        (gemini-companion-record-test--check-items
         "Undone otherwise" seq (hash-table-keys expected) truth)
        (gemini-companion-record-test--check-order seq)
        (let ((undone nil))
          (gemini-companion-record-test--save-for-undo
           (lambda () (gemini-companion-record-test--set-undone undone nil)))
          (setq undone (gemini-companion-record-test--set-undone hunks t)))
        (gemini-companion-record-test--adopt seq)
        (gemini-companion-record-test--check-rest changes change "Undoing")))))

(defun gemini-companion-record-test--check-others (look hunks own truth)
  "Compare the lines of others in HUNKS of LOOK with TRUTH; OWN are the true HUNKS."
  (let ((indices (gemini-companion-record-of-others look hunks))
        (true (cl-loop for item in (gemini-companion-record-test--seq)
                       for k from 0
                       for (hunk . how) = (gemini-companion-record-test--last
                                           (gethash item truth))
                       when (and (eq how 'others) (memq hunk own))
                       collect k)))
    (unless (equal indices (and hunks true))
      (gemini-companion-record-test--wrong
       'exact "Asks about other lines" indices true (gemini-companion-record-test--now)))))

(defun gemini-companion-record-test--found (lines)
  "Return the items with the texts LINES, a vector."
  (let ((table (make-hash-table :test 'equal)))
    (dolist (item (gemini-companion-record-test--get order))
      (puthash (gemini-companion-record-test-item-text item) item table))
    (mapcar (lambda (line)
              (pcase (gethash line table)
                ('nil (gemini-companion-record-test--wrong
                       'exact "A line of nobody" line))
                ('twice (gemini-companion-record-test--wrong
                         'exact "A line twice" lines))
                (item (puthash line 'twice table)
                      item)))
            lines)))

(defun gemini-companion-record-test--check-order (seq)
  "Signal that SEQ is wrong if an earlier text had its items in another order."
  (let ((at (make-hash-table :test 'eq))
        (n 0))
    (dolist (item seq)
      (puthash item (cl-incf n) at))
    (dolist (version (gemini-companion-record-test--get versions))
      (let ((last 0))
        (dolist (item version)
          (when-let* ((k (gethash item at)))
            (when (< k last)
              (gemini-companion-record-test--wrong
               'exact "In another order" (gemini-companion-record-test--texts seq)
               (gemini-companion-record-test--texts version)))
            (setq last k)))))))

(defun gemini-companion-record-test--adopt (seq)
  "Make the text that of SEQ, a list of items; their order may be new."
  (clrhash (gemini-companion-record-test--get here))
  (dolist (item seq)
    (puthash item t (gemini-companion-record-test--get here)))
  (unless (equal seq (gemini-companion-record-test--seq))
    (let ((rest (gemini-companion-record-test--get order))
          (order nil)
          (todo seq))
      ;; Items that are not in the text stay behind the same item.
      (while (or rest todo)
        (cond ((null todo) (push (pop rest) order))
              ((and rest (not (memq (car rest) seq))) (push (pop rest) order))
              (t (setq rest (remq (car todo) rest))
                 (push (pop todo) order))))
      (setf (gemini-companion-record-test--get order) (nreverse order)))))

(defun gemini-companion-record-test--goes-away ()
  "Stash or check out another branch, and come back."
  (let* ((changes (gemini-companion-record-changes (gemini-companion-record-test--look)))
         (stash (= 0 (random 2)))
         (away (if stash
                   (gemini-companion-record-test--get head)
                 (vconcat (cl-loop repeat (+ 5 (random 20))
                                   collect (gemini-companion-record-test-item-text
                                            (gemini-companion-record-test--item "o")))))))
    (when-let* ((found (gemini-companion-record-changes
                        (gemini-companion-record-look
                         (gemini-companion-record-test--get record) away))))
      (gemini-companion-record-test--wrong 'exact "Changes in another branch" found away))
    (unless (equal away (gemini-companion-record-text
                         (gemini-companion-record-look
                          (gemini-companion-record-test--get record) away)
                         t))
      (gemini-companion-record-test--wrong 'exact "Another branch has unreviewed lines"))
    (if (and (gemini-companion-record-test--get harm) (not stash) (= 0 (random 3)))
        ;; What the user had typed is in the record of the other branch no more.
        (gemini-companion-record-test--writes-away away)
      (unless (equal (gemini-companion-record-test--parts changes)
                     (gemini-companion-record-test--parts
                      (gemini-companion-record-changes (gemini-companion-record-test--look))))
	(gemini-companion-record-test--wrong 'exact "Not back with the branch" changes)))))

(defun gemini-companion-record-test--writes-away (away)
  "Let a CLI write in another branch, whose text is AWAY.
Its lines are not followed."
  (let* ((edit (cl-incf (gemini-companion-record-test--get edits)))
         (after (vconcat away (list (gemini-companion-record-test-item-text
                                     (gemini-companion-record-test--item "c"))))))
    (pcase-let ((`(,record . ,hunks)
                 (gemini-companion-record-write
                  (gemini-companion-record-test--get record) edit away after)))
      (setf (gemini-companion-record-test--get record) record
            (gemini-companion-record-test--get history) nil)
      (dolist (hunk hunks)
        (push (cons hunk (gemini-companion-record-test-hunk edit nil))
              (gemini-companion-record-test--get hunks))))))

;;;; What must hold

(defun gemini-companion-record-test--check ()
  "Compare the answers of the record about the text with what is true."
  (let* ((now (gemini-companion-record-test--now))
         (seq (gemini-companion-record-test--seq))
         (look (gemini-companion-record-test--look))
         (truth (gemini-companion-record-test--truth))
         (changes (gemini-companion-record-changes look))
         (reviewed (gemini-companion-record-text look t))
         (differ nil))
    (unless (equal now (gemini-companion-record-text look))
      (gemini-companion-record-test--wrong 'exact "Another text" now))
    (unless (equal reviewed (gemini-companion-lines-without changes now))
      (gemini-companion-record-test--wrong 'exact "The changes give another text" now))
    (dolist (item (gemini-companion-record-test--get order))
      (unless (eq (null (gemini-companion-record-test--here-p item))
                  (null (gemini-companion-record-test--reviewed-p (gethash item truth))))
        (push item differ)))
    (gemini-companion-record-test--check-changes changes seq now differ truth)
    (gemini-companion-record-test--check-reviewed reviewed truth)
    (gemini-companion-record-test--check-lines look seq truth)
    (gemini-companion-record-test--check-states look truth)))

(defun gemini-companion-record-test--check-changes (changes seq now differ truth)
  "Check that CHANGES have all items that DIFFER from the reviewed text.
SEQ are the items of the text NOW, and TRUTH has their acts."
  (let ((covered nil))
    (dolist (change changes)
      (let* ((start (gemini-companion-hunk-new change))
             (end (gemini-companion-hunk-new-end change))
             (here (append (seq-subseq seq start end)
                           (gemini-companion-record-test--found
                            (vconcat (gemini-companion-hunk-lines change)))))
             (own (seq-intersection here differ #'eq)))
        (setq covered (append own covered))
        (unless (seq-set-equal-p
                 (gemini-companion-record-change-edits change)
                 (seq-uniq
                  (mapcar (lambda (item)
                            (pcase (car (gemini-companion-record-test--last
                                         (gethash item truth)))
                              ((and hunk (pred gemini-companion-record-test-hunk-p))
                               (gemini-companion-record-test-hunk-edit hunk))))
                          own)))
          (gemini-companion-record-test--wrong 'words "The edits of a change" change now))))
    (when-let* ((missing (seq-difference differ covered #'eq))
                (vague (gemini-companion-record-test--vague truth))
                ;; Lines of others are judged below.
                (forgotten (seq-remove (lambda (item)
                                         (or (gethash item vague)
                                             (eq 'others (cdar (gethash item truth)))))
                                       missing)))
      (gemini-companion-record-test--wrong
       'exact "Unreviewed lines are forgotten"
       (gemini-companion-record-test--texts forgotten) now))))

(defun gemini-companion-record-test--check-reviewed (reviewed truth)
  "Compare REVIEWED, the text without unreviewed changes, with TRUTH."
  (let ((items (gemini-companion-record-test--found reviewed))
        (true (seq-filter (lambda (item)
                            (gemini-companion-record-test--reviewed-p
                             (gethash item truth)))
                          (gemini-companion-record-test--get order))))
    (gemini-companion-record-test--check-items "The reviewed text" items true truth)
    (gemini-companion-record-test--check-order items)))

(defun gemini-companion-record-test--check-items (what items true truth)
  "Check that ITEMS, the lines of WHAT, are those that are TRUE.
TRUTH has the acts of all items."
  (let ((more (seq-remove (lambda (item) (memq item true)) items))
        (less (seq-remove (lambda (item) (memq item items)) true)))
    (when (or more less)
      (let ((vague (gemini-companion-record-test--vague truth)))
        (unless (seq-every-p (lambda (item) (gethash item vague)) (append more less))
          (gemini-companion-record-test--wrong
           'whose what (gemini-companion-record-test--texts more)
           (gemini-companion-record-test--texts less)
           (gemini-companion-record-test--now)))))))

(defun gemini-companion-record-test--check-lines (look seq truth)
  "Compare whose each line of LOOK is with TRUTH; SEQ are the items of the text."
  (cl-loop
   for item in seq
   for n from 0
   for (who text . how) = (gemini-companion-record-whose look n)
   ;; Others have written a line that they have formatted.
   unless (equal (and who (not (eq 'formatted how))
                      (gemini-companion-record-hunk-edit who))
                 (pcase (car (gemini-companion-record-test--last (gethash item truth)))
                   ((and hunk (pred gemini-companion-record-test-hunk-p))
                    (gemini-companion-record-test-hunk-edit hunk))))
   do (gemini-companion-record-test--wrong 'whose "A line" text (gethash item truth))))

(defun gemini-companion-record-test--check-states (look truth)
  "Compare the states of the hunks of LOOK with TRUTH."
  (let ((states (gemini-companion-record-states look))
        (works (make-hash-table :test 'eq)))
    (maphash (lambda (_ acts)
               (let ((last (gemini-companion-record-test--last acts)))
                 (when (gemini-companion-record-test-hunk-p (car last))
                   (puthash (car last) t works))))
             truth)
    ;; What a later edit has changed again is still left.
    (let ((more t))
      (while more
        (setq more nil)
        (maphash (lambda (_ acts)
                   (let ((last (gemini-companion-record-test--last acts)))
                     (when (gethash (car last) works)
                       (pcase-dolist (`(,hunk) (cdr (memq last acts)))
                         (when (and (gemini-companion-record-test-hunk-p hunk)
                                    (null (gethash hunk works)))
                           (puthash hunk t works)
                           (setq more t))))))
                 truth)))
    (pcase-dolist (`(,hunk . ,true) (gemini-companion-record-test--get hunks))
      (let ((expected (cond ((gemini-companion-record-test-hunk-undone true) 'undone)
                            ((not (gethash true works)) 'gone)
                            ((gemini-companion-record-test-hunk-reviewed true) 'kept)
                            (t 'left)))
            (state (gemini-companion-record-state states hunk)))
        (unless (or (eq expected state)
                    ;; A hunk of another branch.
                    (null (gemini-companion-record-test-hunk-number true)))
          (gemini-companion-record-test--wrong
           'words "A state" (gemini-companion-record-hunk-edit hunk)
           (gemini-companion-record-hunk-number hunk) expected state
           (gemini-companion-record-test--now)))))))

;;;; Sequences

(defconst gemini-companion-record-test-everyday
  '((6 . writes) (5 . types) (3 . saves) (2 . keeps) (2 . undoes) (1 . takes-back)
    (1 . formats-or-leaves))
  "Weights of the steps of everyday use.")

(defconst gemini-companion-record-test-harm
  '((1 . writes) (1 . types) (1 . keeps) (1 . undoes) (1 . takes-back) (1 . goes-away))
  "Weights of the steps that are made for harm.")

(defun gemini-companion-record-test--step (weights)
  "Do something with the probability of WEIGHTS, and return its name."
  (let* ((n (random (apply #'+ (mapcar #'car weights))))
         (name (cl-loop for (weight . name) in weights
                        do (setq n (- n weight))
                        when (< n 0) return name)))
    (pcase name
      ('writes (gemini-companion-record-test--writes (= 0 (random 2))))
      ('types (gemini-companion-record-test--types))
      ('saves (gemini-companion-record-test--saves))
      ('keeps (gemini-companion-record-test--keeps))
      ('undoes (gemini-companion-record-test--undoes))
      ('takes-back (gemini-companion-record-test--takes-back))
      ('goes-away (gemini-companion-record-test--goes-away))
      ('formats-or-leaves
       (if (= 0 (random 2))
           (gemini-companion-record-test--formats)
         (gemini-companion-record-test--goes-away))))
    name))

(defun gemini-companion-record-test-run (seed &optional harm)
  "Run the sequence SEED; HARM is non-nil for one that is made for harm.
Return nil, or what is wrong: a list of its kind and details, the steps last."
  (random (format "record %d" seed))
  (let* ((gemini-companion-record-test--world
          (gemini-companion-record-test-world
           :here (make-hash-table :test 'eq) :harm harm))
         (steps nil)
         (wrong (catch 'gemini-companion-record-test-wrong
                  (gemini-companion-record-test--start)
                  (gemini-companion-record-test--writes)
                  (dotimes (_ 20)
                    (gemini-companion-record-test--check)
                    (push (gemini-companion-record-test--step
                           (if harm
                               gemini-companion-record-test-harm
                             gemini-companion-record-test-everyday))
                          steps))
                  (gemini-companion-record-test--check)
                  nil)))
    (and wrong (append wrong (list (nreverse steps))))))

(defun gemini-companion-record-test-judge (count &optional harm)
  "Run COUNT sequences, and return the wrong ones as an alist by their kind.
For HARM, see `gemini-companion-record-test-run'.  An element has a list of
conses of a seed and the details."
  (let ((wrong nil))
    (dotimes (seed count)
      (when-let* ((result (gemini-companion-record-test-run seed harm)))
        (push (cons seed (cdr result)) (alist-get (car result) wrong))))
    wrong))

(provide 'gemini-companion-record-test-helper)
;;; gemini-companion-record-test-helper.el ends here
