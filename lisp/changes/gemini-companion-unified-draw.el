;;; gemini-companion-unified-draw.el --- Drawing a unified diff  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Insert the hunks of an edit as a unified diff, with the colors of the file and
;; marked words; lines without changes are folded.  The overview displays it.  The walk
;; marks the words of a change in the same way.

;;; Code:

(require 'diff-mode)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-garbage)
(require 'gemini-companion-highlight)
(require 'gemini-companion-hunk)
(require 'gemini-companion-log)
(require 'gemini-companion-text)

(defvar gemini-companion-unified-draw-most-lines 1000
  "Number of lines to display at first; the rest is folded.
Each unfolding of the rest doubles the number.")

;; A terminal with 256 colors has no pale red and green: Emacs would display purple
;; and teal for the colors of `diff-mode'.  So these faces use colors of the terminal.
(defface gemini-companion-removed
  '((((type tty) (class color) (min-colors 256) (background light))
     :background "#ffd7d7" :extend t)
    (((type tty) (class color) (min-colors 256) (background dark))
     :background "#5f0000" :extend t)
    (t :inherit diff-removed))
  "Face of lines that a CLI removes, and of the text before a change."
  :group 'gemini-companion-reviews)

(defface gemini-companion-added
  '((((type tty) (class color) (min-colors 256) (background light))
     :background "#d7ffd7" :extend t)
    (((type tty) (class color) (min-colors 256) (background dark))
     :background "#005f00" :extend t)
    (t :inherit diff-added))
  "Face of lines that a CLI adds."
  :group 'gemini-companion-reviews)

(defface gemini-companion-removed-words
  '((((type tty) (class color) (min-colors 256) (background light))
     :background "#ffafaf")
    (((type tty) (class color) (min-colors 256) (background dark))
     :background "#870000")
    (t :inherit diff-refine-removed))
  "Face of the words that differ in a removed line."
  :group 'gemini-companion-reviews)

(defface gemini-companion-added-words
  '((((type tty) (class color) (min-colors 256) (background light))
     :background "#87ff87")
    (((type tty) (class color) (min-colors 256) (background dark))
     :background "#008700")
    (t :inherit diff-refine-added))
  "Face of the words that differ in an added line."
  :group 'gemini-companion-reviews)

(defface gemini-companion-user-edited
  '((t :inherit (bold font-lock-variable-name-face)))
  "Face of the mark before lines that you have changed in a proposal."
  :group 'gemini-companion-reviews)

(defface gemini-companion-fold
  '((t :inherit (shadow italic)))
  "Face of a line that stands for folded lines."
  :group 'gemini-companion-reviews)

(defconst gemini-companion-unified-draw--most-characters (* 512 1024)
  "Maximum number of characters of a text with colors.
Up to four times as many characters in hunks are compared word by word.")

(defconst gemini-companion-unified-draw--context 3
  "Number of unchanged lines that are displayed around a hunk.")

(defconst gemini-companion-unified-draw--long-line 400
  "Maximum length of a line that is displayed whole.")

(cl-defstruct (gemini-companion-unified-draw--data
               (:noinline t)
               (:constructor gemini-companion-unified-draw--data)
               (:copier nil))
  "Data for drawing the diff of one edit, besides its hunks.
OLD and NEW are the buffers of the texts, LAST is the number of the last
line of OLD, or 0 for a new file.  NUMBERS is the format of the two line
numbers before a line, such as \"%1$3s %2$3s \".

EXCLUDED lists the excluded hunks, and EDITS the numbers of the lines of NEW
that the user has edited; both are nil once the edit has ended.  UNFOLDED
lists the folds whose lines are displayed.  ID is the ID of the edit, the
first element of each of its folds.

ROOM is the number of lines that can still be drawn.  Drawing a line
decrements it; below 0, the rest of the diff is folded.

For DECIDED, NUMBER, USER-LINES and POSTPONED, see
`gemini-companion-unified-draw-insert'."
  old new last numbers excluded edits unfolded id room
  decided (number #'identity) user-lines postponed)

(defvar-local gemini-companion-unified-draw-unfolded nil
  "Folds whose lines are displayed.
For a fold, see `gemini-companion-unified-draw-insert'.")

(defun gemini-companion-unified-draw--last-line (buffer)
  "Return the number of the last line of BUFFER."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (count-lines (point-min) (point-max)))))

(defun gemini-companion-unified-draw-lines (buffer from to)
  "Return the lines of BUFFER from the index FROM to TO, exclusive, with colors.
The value is a list of strings without newlines.  A last line without a newline
has the property `gemini-companion-end'."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (let* (;; For a large text, filling the cache takes twenty times as long.
             (cache-long-scans nil)
             (beg (gemini-companion-hunk-position from))
             (end (save-excursion
                    (goto-char beg)
                    ;; In a last line without a newline, (forward-line 0) would move
                    ;; back.
                    (when (< from to)
                      (forward-line (- to from)))
                    (point)))
             (text (buffer-substring-no-properties beg end)))
        (when (< (buffer-size) gemini-companion-unified-draw--most-characters)
          (gemini-companion-log-guarded "Colors for the review"
            (font-lock-ensure beg end))
          (pcase-dolist (`(,from ,to ,_)
                         (object-intervals (buffer-substring beg end)))
            ;; A mode may set a property that is an alias of `face'.
            (when-let* ((face (get-text-property (+ beg from) 'face)))
              (put-text-property from to 'face face text))))
        (let ((lines (gemini-companion-text-lines text)))
          (unless (or (null lines) (eq ?\n (char-before end)))
            (put-text-property 0 1 'gemini-companion-end t (car (last lines))))
          lines)))))

(defun gemini-companion-unified-draw--lines (data buffer from to)
  "Return `gemini-companion-unified-draw-lines' of BUFFER between FROM and TO.
Return at most one more line than DATA has room for."
  (gemini-companion-unified-draw-lines
   buffer from
   (min to (+ 1 from (gemini-companion-unified-draw--data-room data)))))

(cl-defun gemini-companion-unified-draw-insert
    (edit original proposal hunks unfolded
          &key decided number user-lines postponed)
  "Insert the unified diff of EDIT before point.
HUNKS are the differences between the buffers ORIGINAL and PROPOSAL.  Fold
lines that are far from all HUNKS.

DECIDED is an alist of those of HUNKS that the user has decided, with the
values `kept' or `undone'; PROPOSAL has the lines of both.  NUMBER is a
function that maps the number of a line in PROPOSAL to that in the file, by
default the same number.  USER-LINES are the numbers of lines of PROPOSAL that
the user has written.  POSTPONED are those of HUNKS that are marked later.

UNFOLDED lists the folds whose lines are displayed.  A fold is a list
\(ID OLD NEW COUNT): the ID of EDIT, the first line in ORIGINAL and in
PROPOSAL, and the number of lines; or (ID more N) for the rest of a diff of
which N lines are displayed.

The lines have these text properties:
`gemini-companion-hunk' is the hunk of a changed line;
`gemini-companion-line' is the number of the line in the proposal, and
`gemini-companion-old' the number in the original, except on folds;
`gemini-companion-change' is non-nil where a hunk begins, at further changes
in a long line, and, with the value `more', at the fold of the rest;
`gemini-companion-fold', on a fold, and `gemini-companion-unfolded', on
the lines that were in one, have the fold."
  (dolist (text (list original proposal))
    (with-current-buffer text
      (gemini-companion-highlight (gemini-companion-edit-file edit))))
  (let* ((data (gemini-companion-unified-draw--make-data
                edit original proposal unfolded))
         (_ (setf (gemini-companion-unified-draw--data-decided data) decided
                  (gemini-companion-unified-draw--data-number data)
                  (or number #'identity)
                  (gemini-companion-unified-draw--data-user-lines data)
                  user-lines
                  (gemini-companion-unified-draw--data-postponed data)
                  postponed))
         (room (gemini-companion-unified-draw--data-room data))
         (more (apply #'+ (mapcar #'gemini-companion-unified-draw--count hunks)))
         (last nil))
    (pcase-dolist (`(,hunk . ,lines)
                   (append (gemini-companion-unified-draw--changes data hunks)
                           '(nil)))
      (when (<= 0 (gemini-companion-unified-draw--data-room data))
        (gemini-companion-unified-draw--insert-between data last hunk)
        (when hunk
          (let ((before (gemini-companion-unified-draw--data-room data)))
            (gemini-companion-unified-draw--insert-hunk data hunk lines)
            (cl-decf more (- before (gemini-companion-unified-draw--data-room data)))))
        (setq last hunk)))
    (when (< (gemini-companion-unified-draw--data-room data) 0)
      (let ((beg (point)))
        (gemini-companion-unified-draw--insert-fold
         data (format "... %d more changed lines; RET shows them" more)
         (list (gemini-companion-unified-draw--data-id data) 'more room))
        (put-text-property beg (1+ beg) 'gemini-companion-change 'more)))))

(defun gemini-companion-unified-draw--count (hunk)
  "Return the number of lines of the diff of HUNK."
  (+ (gemini-companion-hunk-old-count hunk) (gemini-companion-hunk-new-count hunk)))

(defun gemini-companion-unified-draw--make-data
    (edit original proposal unfolded)
  "Return the data of the texts of EDIT in the buffers ORIGINAL and PROPOSAL.
UNFOLDED is as of `gemini-companion-unified-draw-insert'."
  (let* ((id (gemini-companion-edit-id edit))
         (open (gemini-companion-edit-open-p edit))
         (last (gemini-companion-unified-draw--last-line original))
         (width (max 4 (length (number-to-string
                                (max last (gemini-companion-unified-draw--last-line
                                           proposal)))))))
    (gemini-companion-unified-draw--data
     :old original :new proposal :last last
     ;; A new file has only one column of numbers.
     :numbers (format (if (zerop last) "%%2$%ds " "%%1$%1$ds %%2$%1$ds ") width)
     :excluded (and open (gemini-companion-hunk-excluded proposal))
     :edits (and open
                 (gemini-companion-edit-texts-edited-p edit)
                 (cl-loop for hunk
                          in (gemini-companion-hunk-compare
                              (gemini-companion-edit-proposed edit)
                              (gemini-companion-text-of-buffer proposal))
                          nconc (number-sequence
                                 (1+ (gemini-companion-hunk-new hunk))
                                 (gemini-companion-hunk-new-end hunk))))
     :unfolded unfolded :id id
     :room (ash gemini-companion-unified-draw-most-lines
                (seq-count (lambda (fold)
                             (equal (list id 'more) (seq-take fold 2)))
                           unfolded)))))

(defun gemini-companion-unified-draw--insert-between (data last next)
  "Insert the unchanged lines of DATA between the hunks LAST and NEXT.
Fold lines that are far from both, unless the user has unfolded them."
  (let* ((old (if last (gemini-companion-hunk-old-end last) 0))
         (new (if last (gemini-companion-hunk-new-end last) 0))
         (count (- (if next
                       (gemini-companion-hunk-old next)
                     (gemini-companion-unified-draw--data-last data))
                   old))
         (before (if last gemini-companion-unified-draw--context 0))
         (after (if next gemini-companion-unified-draw--context 0))
         (hidden (- count before after))
         (fold (list (gemini-companion-unified-draw--data-id data)
                     (+ 1 old before) (+ 1 new before) hidden))
         (insert (lambda (first count)
                   (gemini-companion-unified-draw--insert-lines
                    data " " (+ 1 old first) (+ 1 new first)
                    ;; Only the beginning of an unchanged long line is displayed.
                    (mapcar (lambda (text) (list text '(0 . 0)))
                            (gemini-companion-unified-draw--lines
                             data (gemini-companion-unified-draw--data-new data)
                             (+ new first) (+ new first count)))))))
    (if (< hidden 2)
        (funcall insert 0 count)
      (funcall insert 0 before)
      (if (not (member fold (gemini-companion-unified-draw--data-unfolded data)))
          (gemini-companion-unified-draw--insert-fold
           data (format "... %d unchanged lines" hidden) fold)
        (let ((beg (point)))
          (funcall insert before hidden)
          (put-text-property beg (point) 'gemini-companion-unfolded fold)))
      (funcall insert (+ before hidden) after))))

(defun gemini-companion-unified-draw--insert-fold (data text &optional fold sign)
  "Insert TEXT as a line of DATA, in place of the lines of FOLD.
Without FOLD, the line is a remark, with SIGN before it."
  (let ((prefix (gemini-companion-unified-draw--prefix data nil nil (or sign " "))))
    (insert (propertize (concat text "\n")
                        'face 'gemini-companion-fold
                        'gemini-companion-fold fold
                        'help-echo (and fold "TAB: show these lines")
                        'line-prefix prefix
                        'wrap-prefix prefix))))

(defun gemini-companion-unified-draw--insert-hunk (data hunk lines)
  "Insert LINES of HUNK and DATA; see `gemini-companion-unified-draw--changes'."
  (pcase-let ((`(,removed ,added) lines)
              (old (1+ (gemini-companion-hunk-old hunk)))
              (new (1+ (gemini-companion-hunk-new hunk)))
              (beg (point)))
    (gemini-companion-unified-draw--insert-lines data "-" old new removed hunk)
    (gemini-companion-unified-draw--insert-lines data "+" nil new added hunk)
    (put-text-property beg (point) 'gemini-companion-hunk hunk)
    (unless (assq hunk (gemini-companion-unified-draw--data-decided data))
      (put-text-property beg (min (1+ beg) (point)) 'gemini-companion-change t))))

(defun gemini-companion-unified-draw--insert-lines
    (data sign old new lines &optional hunk)
  "Insert LINES of DATA, conses (TEXT . RANGES), with SIGN before them.
OLD and NEW are the numbers of the first line; OLD is nil for added lines.
HUNK is the hunk of the lines, or nil for unchanged lines."
  (let* ((decided (alist-get hunk (gemini-companion-unified-draw--data-decided data)))
         (excluded
          (or (eq decided 'undone)
              (member hunk (gemini-companion-unified-draw--data-excluded data))))
         (room (gemini-companion-unified-draw--data-room data))
         ;; In a new or empty file, all lines are added: colors would say nothing.
         (plain (and (zerop (gemini-companion-unified-draw--data-last data))
                     (not excluded) (not decided)))
         (face (cond (excluded 'shadow)
                     ((not (or plain decided))
                      (cdr (assoc sign '(("-" . gemini-companion-removed)
                                         ("+" . gemini-companion-added))))))))
    (dolist (line (seq-take lines (1+ room)))
      (let ((beg (point))
            (mark (if (memq hunk (gemini-companion-unified-draw--data-postponed data))
                      "l"
                    (gemini-companion-unified-draw--mark data sign new decided
                                                         excluded)))
            (shown (if (equal "-" sign)
                       nil
                     (gemini-companion-unified-draw--number data new hunk sign))))
        (insert (gemini-companion-unified-draw-marked
                 (if decided (list (car line)) line) sign excluded)
                "\n")
        (when face
          (add-face-text-property beg (point) face 'append))
        (add-text-properties
         beg (point)
         (list 'line-prefix (gemini-companion-unified-draw--prefix
                             data old shown (if plain " " sign) face mark)
               'wrap-prefix (gemini-companion-unified-draw--prefix
                             data nil nil " " face)
               'gemini-companion-old old
               'gemini-companion-line (gemini-companion-unified-draw--number
                                       data new hunk sign)))
        (when (and hunk (get-text-property 0 'gemini-companion-end (car line)))
          (gemini-companion-unified-draw--insert-fold
           data "No newline at end of file" nil "\\"))
        (cl-decf (gemini-companion-unified-draw--data-room data))
        (setq old (and old (1+ old))
              new (if (equal "-" sign) new (1+ new)))))))

(defun gemini-companion-unified-draw--mark (data sign new decided excluded)
  "Return the mark before the SIGN of a line of DATA, a string or nil.
NEW is the number of the line in the proposal.  DECIDED is `kept' or `undone'
if the user has decided its hunk, and EXCLUDED is non-nil if the hunk is
excluded."
  (cond ((eq decided 'kept) "k")
        (decided "u")
        (excluded "x")
        ((equal "-" sign) nil)
        ((memql new (gemini-companion-unified-draw--data-user-lines data)) "*")
        ((and (equal "+" sign)
              (memq new (gemini-companion-unified-draw--data-edits data)))
         "*")))

(defun gemini-companion-unified-draw--number (data new hunk sign)
  "Return the number in the file of the line NEW of the proposal of DATA.
Return nil for a line with the SIGN + in a HUNK that is undone, as the file
does not have that line."
  (unless (and hunk
               (equal "+" sign)
               (eq 'undone
                   (alist-get hunk (gemini-companion-unified-draw--data-decided data))))
    (funcall (gemini-companion-unified-draw--data-number data) new)))

(defun gemini-companion-unified-draw-marked (line sign &optional excluded)
  "Return the text of LINE, (TEXT . RANGES), with a face on the ranges.
Of a long line, return only the text near the ranges; with the SIGN +, mark
each range as a change to go to.  If EXCLUDED is non-nil, use the face of
excluded text instead of the colors of the mode."
  (pcase-let ((`(,text . ,ranges) line))
    (pcase-dolist (`(,beg . ,end) ranges)
      ;; Bold, since some users hardly see red words on a red line.  The face
      ;; replaces the colors of the mode, which are hard to read on green in a dark
      ;; theme.
      (put-text-property beg end 'face (list (if (equal "-" sign)
                                                 'gemini-companion-removed-words
                                               'gemini-companion-added-words)
                                             'bold)
                         text))
    (when excluded
      (put-text-property 0 (length text) 'face
                         (if (equal "+" sign)
                             'gemini-companion-excluded-text
                           'shadow)
                         text))
    (if (<= (length text) gemini-companion-unified-draw--long-line)
        text
      (when (equal "+" sign)
        (pcase-dolist (`(,beg . ,_) ranges)
          (put-text-property beg (min (1+ beg) (length text))
                             'gemini-companion-change t text)))
      (gemini-companion-unified-draw--abridged
       text (or ranges (list (cons 0 (length text))))))))

(defun gemini-companion-unified-draw--abridged (text ranges)
  "Return the pieces of TEXT, a long line, that are near RANGES.
RANGES are a list of (BEG . END), in order."
  (let ((length (length text))
        (room 10000) ; more in a line makes Emacs slow
        (near 60) ; on each side of a change
        (position 0)
        (pieces nil))
    (cl-flet ((omit (end &optional remark)
                (when (< position end)
                  (push (propertize (concat "..." remark)
                                    'face 'gemini-companion-fold
                                    'gemini-companion-column position)
                        pieces)
                  (setq position end))))
      (pcase-dolist (`(,beg . ,end) ranges)
        (when (< 0 room)
          (omit (- beg near))
          (let ((end (min length (+ position room) (+ end near))))
            (when (< position end)
              (push (propertize (substring text position end)
                                'gemini-companion-column position)
                    pieces)
              (setq room (- room (- end position))
                    position end)))))
      (omit length (when (< position (cdar (last ranges)))
                     (format " %d more characters" (- length position)))))
    (apply #'concat (nreverse pieces))))

(defun gemini-companion-unified-draw--prefix
    (data old new sign &optional face mark)
  "Return the prefix of a line of DATA.
It consists of the numbers OLD and NEW, MARK and SIGN, with FACE."
  (concat (propertize (format (gemini-companion-unified-draw--data-numbers data)
                              (or old "") (or new ""))
                      'face 'line-number)
          (propertize (or mark " ") 'face (list 'gemini-companion-user-edited face))
          (propertize sign 'face (list 'bold face))))

(defun gemini-companion-unified-draw--changes (data hunks)
  "Return a list of (HUNK REMOVED ADDED) for HUNKS that DATA has room for.
Each removed or added line is a cons of its text and a list of ranges, in
order, in which its words differ, conses (BEG . END)."
  (let ((changes (gemini-companion-unified-draw--texts data hunks)))
    (cl-mapcar #'cons
               (mapcar #'car changes)
               (gemini-companion-unified-draw--find-words (mapcar #'cdr changes)))))

(defun gemini-companion-unified-draw-words (removed added)
  "Compare the words of REMOVED and ADDED, the lines of one change.
Both are lists of strings.  Return a list of two lists of conses: the text of
a line, and the ranges in which its words differ from the words of the other
side, conses (BEG . END) in order."
  (car (gemini-companion-unified-draw--find-words
        (list (list (mapcar #'list removed) (mapcar #'list added))))))

(defun gemini-companion-unified-draw--find-words (changes)
  "Return CHANGES with the ranges of each line in which its words differ.
CHANGES is a list of (REMOVED ADDED), two lists of lines, conses
\(TEXT . RANGES); the ranges of the argument are ignored."
  (gemini-companion-garbage-later
    (let ((compared
           (gemini-companion-unified-draw--compare-words
            (seq-filter #'gemini-companion-unified-draw--two-sided-p changes))))
      (mapcar (lambda (sides)
                (if (gemini-companion-unified-draw--two-sided-p sides)
                    (pop compared)
                  sides))
              changes))))

(defun gemini-companion-unified-draw--two-sided-p (sides)
  "Return non-nil if SIDES, (REMOVED ADDED), has removed and added lines."
  (and (car sides) (cadr sides)))

(defun gemini-companion-unified-draw--compare-words (changes)
  "Return CHANGES, each of which has both sides, with ranges of words.
For CHANGES, see `gemini-companion-unified-draw--find-words'."
  (when changes
    (let* ((texts (mapcar #'car (apply #'append (apply #'append changes))))
           (longest (apply #'max (mapcar #'length texts)))
           (changes (gemini-companion-unified-draw--map-lines
                     (pcase-lambda (`(,text . ,_))
                       (list text (cons 0 (length text))))
                     changes)))
      ;; The words of a line of a megabyte would take seconds.
      (when (< gemini-companion-unified-draw--long-line longest)
        (setq changes (gemini-companion-unified-draw--narrow
                       changes "[^,;>]*[,;>]\\|[^,;>]+")))
      (mapcar #'gemini-companion-unified-draw--drop-rewritten
              (gemini-companion-unified-draw--narrow
               changes "[[:alnum:]_]+\\|.")))))

(defun gemini-companion-unified-draw--map-lines (function changes)
  "Return CHANGES with each line replaced by the value of FUNCTION for it."
  (mapcar (lambda (sides)
            (mapcar (lambda (lines) (mapcar function lines)) sides))
          changes))

(defun gemini-companion-unified-draw--texts (data hunks)
  "Return a list of (HUNK REMOVED ADDED) for HUNKS that DATA has room for.
Each removed or added line is a list of its text alone."
  (let ((room (gemini-companion-unified-draw--data-room data))
        (changes nil))
    (while (and hunks (<= 0 room))
      (let ((hunk (pop hunks)))
        (push (list hunk
                    (mapcar #'list
                            (gemini-companion-unified-draw--lines
                             data (gemini-companion-unified-draw--data-old data)
                             (gemini-companion-hunk-old hunk)
                             (gemini-companion-hunk-old-end hunk)))
                    (mapcar #'list
                            (gemini-companion-unified-draw--lines
                             data (gemini-companion-unified-draw--data-new data)
                             (gemini-companion-hunk-new hunk)
                             (gemini-companion-hunk-new-end hunk))))
              changes)
        (cl-decf room (gemini-companion-unified-draw--count hunk))))
    (nreverse changes)))

(cl-defstruct (gemini-companion-unified-draw--word
               (:noinline t)
               (:constructor gemini-companion-unified-draw--word (line beg end))
               (:copier nil))
  "A word in the range from BEG to END of a line.
LINE is the index of the line among those of its side, in all changes; it is
nil for the separator before a change."
  line beg end)

(defun gemini-companion-unified-draw--narrow (changes regexp)
  "Return CHANGES with narrower ranges: the words that differ.
A word is a match of REGEXP in a range.  Return CHANGES themselves if diff
fails.  For CHANGES, see `gemini-companion-unified-draw--find-words'."
  (pcase-let* ((removed (mapcar #'car changes))
               (added (mapcar #'cadr changes))
               (`(,old-text . ,old-words)
                (gemini-companion-unified-draw--split removed regexp))
               (`(,new-text . ,new-words)
                (gemini-companion-unified-draw--split added regexp))
               (differences (condition-case nil
                                (gemini-companion-hunk-compare old-text new-text)
                              (gemini-companion-text-not-compared 'unknown))))
    (if (eq 'unknown differences)
        changes
      (cl-mapcar
       #'list
       (gemini-companion-unified-draw--with-ranges
        removed old-words
        (mapcar (lambda (hunk)
                  (cons (gemini-companion-hunk-old hunk)
                        (gemini-companion-hunk-old-end hunk)))
                differences))
       (gemini-companion-unified-draw--with-ranges
        added new-words
        (mapcar (lambda (hunk)
                  (cons (gemini-companion-hunk-new hunk)
                        (gemini-companion-hunk-new-end hunk)))
                differences))))))

(defun gemini-companion-unified-draw--split (side regexp)
  "Split the ranges of the lines of SIDE into words, matches of REGEXP.
SIDE has the lines of one side of each change, a list of lists.  Return a cons
of a text with one word per line, and the vector of these words,
`gemini-companion-unified-draw--word's."
  (let ((room (* 4 gemini-companion-unified-draw--most-characters))
        (index 0)
        (texts nil)
        (words nil))
    (cl-flet ((add (text line beg end)
                (push text texts)
                (push (gemini-companion-unified-draw--word line beg end) words)))
      (dolist (lines side)
        ;; No regexp matches this text, so each change is compared with itself.
        (add ",next hunk" nil nil nil)
        (pcase-dolist (`(,text . ,ranges) lines)
          (pcase-dolist (`(,beg . ,last) ranges)
            (cl-decf room (- last beg))
            (while (< beg last)
              (let ((end (if (< room 0)
                             last ; splitting the rest would take too long
                           (string-match regexp text beg)
                           (min last (match-end 0)))))
                (add (substring-no-properties text beg end) index beg end)
                (setq beg end)))
            (add "" index last last))
          (cl-incf index))))
    (cons (mapconcat (lambda (text) (concat text "\n")) (nreverse texts) "")
          (vconcat (nreverse words)))))

(defun gemini-companion-unified-draw--with-ranges (side words differences)
  "Return SIDE with the ranges of the words that differ.
For SIDE and WORDS, see `gemini-companion-unified-draw--split'.  DIFFERENCES
is a list of (FROM . TO): the words from FROM to TO, exclusive, differ.  If both
are equal, the other side has more words before FROM."
  (let ((ranges (make-vector (apply #'+ (mapcar #'length side)) nil))
        (index -1))
    (pcase-dolist (`(,from . ,to) differences)
      (seq-doseq (word (seq-subseq words
                                   (min from (length words))
                                   (min (max (1+ from) to) (length words))))
        (pcase-let (((cl-struct gemini-companion-unified-draw--word line beg end)
                     word))
          (when line
            (let ((last (car (aref ranges line)))
                  (end (if (= from to) beg end)))
              ;; Words that touch, or almost, are one.
              (if (and last (<= beg (1+ (cdr last))))
                  (setcdr last (max end (cdr last)))
                (push (cons beg end) (aref ranges line))))))))
    (mapcar (lambda (lines)
              (mapcar (lambda (line)
                        (cons (car line)
                              (reverse (aref ranges (cl-incf index)))))
                      lines))
            side)))

(defun gemini-companion-unified-draw--drop-rewritten (sides)
  "Return SIDES, (REMOVED ADDED), without the ranges of rewritten lines.
If there are as many removed as added lines, a pair is rewritten if one of its
lines is.  In the other lines, drop the ranges in the indentation."
  (pcase-let ((`(,removed ,added) sides))
    (cl-flet ((clean (line &rest others)
                (pcase-let ((`(,text . ,ranges) line))
                  (cons text
                        (unless (seq-some
                                 #'gemini-companion-unified-draw--rewritten-p
                                 (cons line others))
                          (cl-remove
                           (gemini-companion-unified-draw--indentation text)
                           ranges :test #'>= :key #'cdr))))))
      (if (length= removed (length added))
          (list (cl-mapcar #'clean removed added)
                (cl-mapcar #'clean added removed))
        (list (mapcar #'clean removed)
              (mapcar #'clean added))))))

(defun gemini-companion-unified-draw--rewritten-p (line)
  "Return non-nil if most of LINE, (TEXT . RANGES), is in its ranges."
  (pcase-let* ((`(,text . ,ranges) line)
               (indent (gemini-companion-unified-draw--indentation text))
               (amount (cl-loop for (beg . end) in ranges
                                sum (max 0 (- end (max beg indent))))))
    (and (< 0 amount)
         (<= (- (length text) indent) (* 2 amount)))))

(defun gemini-companion-unified-draw--indentation (text)
  "Return the number of blanks at the beginning of TEXT."
  (- (length text) (length (gemini-companion-text-trim text nil 'left))))

(defun gemini-companion-unified-draw-fold-here ()
  "Return the fold at point, folded or unfolded, or nil."
  (or (get-text-property (point) 'gemini-companion-fold)
      (get-text-property (point) 'gemini-companion-unfolded)))

(defun gemini-companion-unified-draw-toggle-fold ()
  "Show the lines of the fold at point, or fold them again."
  (let ((fold (or (gemini-companion-unified-draw-fold-here)
                  (user-error "No folded lines here"))))
    (setq gemini-companion-unified-draw-unfolded
          (if (member fold gemini-companion-unified-draw-unfolded)
              (remove fold gemini-companion-unified-draw-unfolded)
            (cons fold gemini-companion-unified-draw-unfolded)))
    (revert-buffer)))

(provide 'gemini-companion-unified-draw)
;;; gemini-companion-unified-draw.el ends here
