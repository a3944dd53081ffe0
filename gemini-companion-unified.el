;;; gemini-companion-unified.el --- A proposal as a unified diff  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The unified view of a review: one window with the hunks of a proposal in the
;; colors of the file, line numbers and signs before the lines, and unchanged
;; text folded.  The text comes from the buffers of the original and the
;; proposal; numbers and signs are prefixes and not part of the text.  The list
;; of edits shows its diffs with the same code.

;;; Code:

(require 'diff-mode)
(require 'gemini-companion-edit)
(require 'gemini-companion-names)
(require 'gemini-companion-review)
(require 'gemini-companion-text)
(require 'gemini-companion-windows)
(require 'text-property-search)

;;;; Faces

(defface gemini-companion-own
  '((t :inherit warning))
  "Face of the mark before lines that you have changed in a proposal."
  :group 'gemini-companion-reviews)

(defface gemini-companion-fold
  '((t :inherit (shadow italic)))
  "Face of a line that stands for folded lines."
  :group 'gemini-companion-reviews)

;;;; State

(defvar gemini-companion-unified-most-lines 1000
  "Number of lines to display at first; the rest is folded.
Each time that more is shown, it is as much again.")

(defconst gemini-companion-unified--most-characters (* 512 1024)
  "Number of characters above which a text has no colors.
Of the characters in hunks, four times as many are compared word by word.")

(defconst gemini-companion-unified--long-line 400
  "Length of a line above which only a part of it is displayed.")

(defconst gemini-companion-unified--least-lines 8
  "Minimum number of lines of a window for a diff.")

(defconst gemini-companion-unified--least-lines-of-file 12
  "Minimum number of lines of the window of a file that a diff takes.")

(defconst gemini-companion-unified--least-columns 60
  "Minimum width of a window for a diff, beside others.")

(defvar gemini-companion-unified--previous nil
  "Cons of the edit that was reviewed last in one window, and that window.")

(defvar-local gemini-companion-unified-unfolded nil
  "Folds whose lines are shown; see `gemini-companion-unified-insert'.")

;;;; Lines

(cl-defstruct (gemini-companion-unified--data
               (:conc-name gemini-companion-unified--)
               (:constructor gemini-companion-unified--data)
               (:copier nil))
  "Data for the lines of a diff between the buffers OLD and NEW.
LAST is the number of the last line of OLD, NUMBERS the format of two line
numbers.  EXCLUDED has the excluded hunks, EDITS the numbers of the lines
of NEW that the user has edited.  UNFOLDED are the folds whose lines are
shown, ID is the first element of each, CONTEXT the number of lines that
are shown around a hunk, and ROOM that of lines that can still be shown."
  old new last numbers excluded edits unfolded id context room)

(defun gemini-companion-unified--last-line (buffer)
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (count-lines (point-min) (point-max)))))

(defun gemini-companion-unified--lines (data buffer line count)
  "Return COUNT lines of BUFFER from LINE on, a list of strings with colors.
They are at most one more than DATA has room for.  A last line without a
newline has the property `gemini-companion-end'."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (let* (;; For a large text, filling the cache takes twenty times as long.
             (cache-long-scans nil)
             (count (min count (1+ (gemini-companion-unified--room data))))
             (beg (gemini-companion-hunk-line line))
             (end (save-excursion
                    (goto-char beg)
                    ;; With 0, it would go back in a last line without an end.
                    (when (< 0 count)
                      (forward-line count))
                    (point)))
             (text (buffer-substring-no-properties beg end)))
        (when (< (buffer-size) gemini-companion-unified--most-characters)
          (with-demoted-errors "Colors for the review: %S"
            (font-lock-ensure beg end))
          (pcase-dolist (`(,from ,to ,_)
                         (object-intervals (buffer-substring beg end)))
            ;; Some modes set another property, which is an alias of this one.
            (when-let* ((face (get-text-property (+ beg from) 'face)))
              (put-text-property from to 'face face text))))
        (let ((lines (gemini-companion-text-lines text)))
          (unless (or (null lines) (eq ?\n (char-before end)))
            (put-text-property 0 1 'gemini-companion-end t (car (last lines))))
          lines)))))

;;;; Inserting

(defun gemini-companion-unified-insert
    (edit original proposal hunks unfolded &optional context)
  "Insert before point the lines of HUNKS of EDIT.
HUNKS are the differences between the buffers ORIGINAL and PROPOSAL.
Fold what is more than CONTEXT lines away from them, by default 3.
UNFOLDED are the folds whose lines are shown; each is a list of the ID of
EDIT, the first lines and the number of lines, or (ID more N) for the
rest of a diff of which N lines are displayed.

The lines have these text properties:
`gemini-companion-hunk' is the hunk of a changed line;
`gemini-companion-line' is the number of the line in the proposal, and
`gemini-companion-old' the number in the original, except on folds;
`gemini-companion-change' is non-nil where a hunk begins, and at further
changes in a long line;
`gemini-companion-fold', on a fold, and `gemini-companion-unfolded', on
the lines that were in one, have the fold."
  (dolist (text (list original proposal))
    (with-current-buffer text
      (gemini-companion-highlight (gemini-companion-edit-file edit))))
  (let* ((data (gemini-companion-unified--make-data
                edit original proposal unfolded context))
         (room (gemini-companion-unified--room data))
         (last nil))
    (pcase-dolist (`(,hunk . ,lines)
                   (append (gemini-companion-unified--changes data hunks)
                           '(nil)))
      (when (<= 0 (gemini-companion-unified--room data))
        (gemini-companion-unified--insert-between data last hunk)
        (when hunk
          (gemini-companion-unified--insert-hunk data hunk lines))
        (setq last hunk)))
    (when (< (gemini-companion-unified--room data) 0)
      (gemini-companion-unified--insert-fold
       data "... more lines"
       (list (gemini-companion-unified--id data) 'more room)))))

(defun gemini-companion-unified--make-data
    (edit original proposal unfolded context)
  "Return the data of the texts of EDIT in the buffers ORIGINAL and PROPOSAL.
For UNFOLDED and CONTEXT, see `gemini-companion-unified-insert'."
  (let* ((id (gemini-companion-edit-id edit))
         (open (gemini-companion-edit-open-p edit))
         (last (gemini-companion-unified--last-line original))
         (most (max 10 last (gemini-companion-unified--last-line proposal)))
         (width (length (number-to-string most))))
    (gemini-companion-unified--data
     :old original :new proposal :last last
     ;; A new file has only one column.
     :numbers (format (if (zerop last) "%%2$%ds " "%%1$%1$ds %%2$%1$ds ") width)
     :excluded (and open (gemini-companion-hunk-excluded proposal))
     :edits (and open
                 (gemini-companion-edit-edited-p edit)
                 (cl-loop for (_ _ line count)
                          in (gemini-companion-text-diff
                              (list (gemini-companion-edit-proposed edit)
                                    (gemini-companion-text-of-buffer proposal)))
                          nconc (number-sequence line (+ line count -1))))
     :unfolded unfolded :id id :context (or context 3)
     :room (ash gemini-companion-unified-most-lines
                (seq-count (lambda (fold)
                             (equal (list id 'more) (seq-take fold 2)))
                           unfolded)))))

(defun gemini-companion-unified--insert-between (data last next)
  "Insert the unchanged lines of DATA between the hunks LAST and NEXT.
Those that are far from both are folded, unless the user unfolded them."
  (pcase-let* ((`(,old ,old-count ,new ,new-count) (or last '(1 0 1 0)))
               (old (+ old old-count))
               (new (+ new new-count))
               (count (- (if next
                             (car next)
                           (1+ (gemini-companion-unified--last data)))
                         old))
               (context (gemini-companion-unified--context data))
               (before (if last context 0))
               (after (if next context 0))
               (hidden (- count before after))
               (fold (list (gemini-companion-unified--id data)
                           (+ old before) (+ new before) hidden))
               (insert (lambda (first count)
                         (gemini-companion-unified--insert-lines
                          data " " (+ old first) (+ new first)
                          ;; Of a long one, only its beginning.
                          (mapcar (lambda (text) (list text '(0 . 0)))
                                  (gemini-companion-unified--lines
                                   data (gemini-companion-unified--new data)
                                   (+ new first) count))))))
    (if (< hidden 2)
        (funcall insert 0 count)
      (funcall insert 0 before)
      (if (not (member fold (gemini-companion-unified--unfolded data)))
          (gemini-companion-unified--insert-fold
           data (format "... %d unchanged lines" hidden) fold)
        (let ((beg (point)))
          (funcall insert before hidden)
          (put-text-property beg (point) 'gemini-companion-unfolded fold)))
      (funcall insert (+ before hidden) after))))

(defun gemini-companion-unified--insert-fold (data text &optional fold sign)
  "Insert TEXT as a line of DATA that stands for the lines of FOLD.
Without FOLD, it is a remark, with SIGN before it."
  (let ((prefix (gemini-companion-unified--prefix data nil nil (or sign " "))))
    (insert (propertize (concat text "\n")
                        'face 'gemini-companion-fold
                        'gemini-companion-fold fold
                        'help-echo (and fold "TAB: show these lines")
                        'line-prefix prefix
                        'wrap-prefix prefix))))

(defun gemini-companion-unified--insert-hunk (data hunk lines)
  "Insert LINES of HUNK and DATA; see `gemini-companion-unified--changes'."
  (pcase-let ((`(,old ,_ ,new ,_) hunk)
              (`(,removed ,added) lines)
              (beg (point)))
    (gemini-companion-unified--insert-lines data "-" old new removed hunk)
    (gemini-companion-unified--insert-lines data "+" nil new added hunk)
    (put-text-property beg (point) 'gemini-companion-hunk hunk)
    (put-text-property beg (min (1+ beg) (point)) 'gemini-companion-change
                       t)))

(defun gemini-companion-unified--insert-lines
    (data sign old new lines &optional hunk)
  "Insert LINES of DATA, conses (TEXT . RANGES), with SIGN before them.
OLD and NEW are the numbers of the first one, and OLD is nil for added
lines.  HUNK has them, or is nil for unchanged lines."
  (let* ((excluded (member hunk (gemini-companion-unified--excluded data)))
         ;; A new file, or an empty one.
         (plain (and (zerop (gemini-companion-unified--last data))
                     (not excluded)))
         (face (cond (excluded 'shadow)
                     ((not plain) (cdr (assoc sign '(("-" . diff-removed)
                                                     ("+" . diff-added))))))))
    (dolist (line (seq-take lines (1+ (gemini-companion-unified--room data))))
      (let ((beg (point))
            (mark (cond (excluded "x")
                        ((not (equal "+" sign)) nil)
                        ((memq new (gemini-companion-unified--edits data))
                         "*")))
            (shown (if (equal "-" sign) nil new)))
        (insert (gemini-companion-unified--marked line sign excluded) "\n")
        (when face
          (add-face-text-property beg (point) face 'append))
        (add-text-properties
         beg (point)
         (list 'line-prefix (gemini-companion-unified--prefix
                             data old shown (if plain " " sign) face mark)
               'wrap-prefix (gemini-companion-unified--prefix
                             data nil nil " " face)
               'gemini-companion-old old
               'gemini-companion-line new))
        (when (and hunk (get-text-property 0 'gemini-companion-end (car line)))
          (gemini-companion-unified--insert-fold
           data "No newline at end of file" nil "\\"))
        (cl-decf (gemini-companion-unified--room data))
        (setq old (and old (1+ old))
              new (if shown (1+ new) new))))))

(defun gemini-companion-unified--marked (line sign excluded)
  "Return the text of LINE, (TEXT . RANGES), with a face on the ranges.
If it is long, return only what is near them; with the SIGN +, they are
positions to go to.  If EXCLUDED is non-nil, do not use its own colors."
  (pcase-let ((`(,text . ,ranges) line))
    (pcase-dolist (`(,beg . ,end) ranges)
      ;; Bold: red words on a red line are all but invisible to some users.
      ;; Colors of the mode are hard to read on green in a dark theme.
      (put-text-property beg end 'face (list (if (equal "-" sign)
                                                 'diff-refine-removed
                                               'diff-refine-added)
                                             'bold)
                         text))
    (when excluded
      (put-text-property 0 (length text) 'face
                         (if (equal "+" sign)
                             'gemini-companion-excluded-text
                           'shadow)
                         text))
    (if (<= (length text) gemini-companion-unified--long-line)
        text
      (when (equal "+" sign)
        (pcase-dolist (`(,beg . ,_) ranges)
          (put-text-property beg (min (1+ beg) (length text))
                             'gemini-companion-change t text)))
      (gemini-companion-unified--abridged
       text (or ranges (list (cons 0 (length text))))))))

(defun gemini-companion-unified--abridged (text ranges)
  "Return the parts of TEXT, a long line, that are near RANGES.
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

(defun gemini-companion-unified--prefix
    (data old new sign &optional face mark)
  "Return the prefix of a line of DATA.
It consists of the numbers OLD and NEW, MARK and SIGN, with FACE."
  (concat (propertize (format (gemini-companion-unified--numbers data)
                              (or old "") (or new ""))
                      'face 'line-number)
          (propertize (or mark " ") 'face (list 'gemini-companion-own face))
          (propertize sign 'face (list 'bold face))))

;;;; Changed words

(defun gemini-companion-unified--changes (data hunks)
  "Return a list of (HUNK REMOVED ADDED) for HUNKS that DATA has room for.
Each removed or added line is a cons of its text and a list of ranges, in
order, in which its words differ, conses (BEG . END)."
  (let* (;; Collecting garbage takes longer than all else.
         (gc-cons-threshold (max gc-cons-threshold (* 128 1024 1024)))
         (room (gemini-companion-unified--room data))
         (lines (lambda (buffer first count)
                  (cl-decf room count)
                  (mapcar #'list (gemini-companion-unified--lines
                                  data buffer first count))))
         (texts (list (gemini-companion-unified--old data)
                      (gemini-companion-unified--new data)))
         (changes (cl-loop
                   for hunk in hunks
                   for (old old-count new new-count) = hunk
                   while (<= 0 room)
                   collect (cons hunk (cl-mapcar lines texts (list old new)
                                                 (list old-count new-count)))))
         (both (seq-filter (lambda (sides) (and (car sides) (cadr sides)))
                           (mapcar #'cdr changes)))
         (longest 0))
    (dolist (line (apply #'append (apply #'append both)))
      (let ((length (length (car line))))
        (setcdr line (list (cons 0 length)))
        (setq longest (max longest length))))
    ;; The words of a line of a megabyte would take seconds.
    (when (< gemini-companion-unified--long-line longest)
      (gemini-companion-unified--compare both "[^,;>]*[,;>]\\|.+"))
    (when both
      (gemini-companion-unified--compare both "[[:alnum:]_]+\\|."))
    (mapc #'gemini-companion-unified--drop-rewritten both)
    changes))

(defun gemini-companion-unified--compare (both regexp)
  "Compare what matches REGEXP in the ranges of lines, (TEXT . RANGES).
BOTH are lists of the removed and the added lines of a hunk.  Replace their
ranges by those that differ, the last one first."
  (pcase-let* ((`(,old ,new)
                (cl-loop for side in (list #'car #'cadr)
                         collect (gemini-companion-unified--split
                                  (mapcar side both) regexp)))
               (found (gemini-companion-text-diff (list (car old) (car new)))))
    (gemini-companion-unified--add-ranges (cdr old) found)
    (gemini-companion-unified--add-ranges (cdr new) (mapcar #'cddr found))))

(defun gemini-companion-unified--split (hunks regexp)
  "Split the ranges of the lines of HUNKS into what matches REGEXP.
Take them from the lines.  The value is a cons of a text with a line for
each match, and a vector of their positions, lists (LINE BEG END), or nil
before a hunk."
  (let ((room (* 4 gemini-companion-unified--most-characters))
        words positions)
    (dolist (lines hunks)
      ;; No match is that; so hunks are compared with each other.
      (push ",next hunk" words)
      (push nil positions)
      (dolist (line lines)
        (pcase-dolist (`(,beg . ,last) (prog1 (reverse (cdr line))
                                         (setcdr line nil)))
          (cl-decf room (- last beg))
          (while (< beg last)
            (let ((end (if (< room 0)
                           last ; splitting the rest would take too long
                         (string-match regexp (car line) beg)
                         (min last (match-end 0)))))
              (push (substring-no-properties (car line) beg end) words)
              (push (list line beg end) positions)
              (setq beg end)))
          (push "" words)
          (push (list line last last) positions))))
    (cons (mapconcat (lambda (word) (concat word "\n")) (nreverse words) "")
          (vconcat (nreverse positions)))))

(defun gemini-companion-unified--add-ranges (positions hunks)
  "Add to the lines of POSITIONS the ranges of the words of HUNKS.
Each of HUNKS begins with the first of its words and their number."
  (pcase-dolist (`(,first ,count . ,_) hunks)
    (dotimes (n (max 1 count))
      (pcase (and (<= (+ first n) (length positions))
                  (aref positions (+ first n -1)))
        (`(,line ,beg ,end)
         (let ((last (cadr line))
               ;; Where the other text has more words, the range is empty.
               (end (if (zerop count) beg end)))
           ;; Words that touch, or almost, are one.
           (if (and last (<= beg (1+ (cdr last))))
               (setcdr last (max end (cdr last)))
             (push (cons beg end) (cdr line)))))))))

(defun gemini-companion-unified--drop-rewritten (sides)
  "Drop the ranges of the lines of SIDES, (REMOVED ADDED), that mostly differ.
If there are as many removed as added lines, drop those of both lines of
such a pair.  Of other lines, drop those in the indentation, and put the
first one first."
  (dolist (lines (if (apply #'= (mapcar #'length sides))
                     (apply #'cl-mapcar #'list sides)
                   (mapcar #'list (apply #'append sides))))
    (let ((rewritten (seq-some #'gemini-companion-unified--rewritten-p lines)))
      (pcase-dolist ((and line `(,text . ,ranges)) lines)
        (setcdr line (unless rewritten
                       (reverse
                        (cl-remove (gemini-companion-unified--indentation text)
                                   ranges :test #'>= :key #'cdr))))))))

(defun gemini-companion-unified--rewritten-p (line)
  "Return non-nil if most of LINE, (TEXT . RANGES), is in its ranges."
  (pcase-let* ((`(,text . ,ranges) line)
               (indent (gemini-companion-unified--indentation text))
               (amount (cl-loop for (beg . end) in ranges
                                sum (max 0 (- end (max beg indent))))))
    (and (< 0 amount)
         (<= (- (length text) indent) (* 2 amount)))))

(defun gemini-companion-unified--indentation (text)
  (- (length text) (length (string-trim-left text))))

;;;; Folds

(defun gemini-companion-unified-fold-here ()
  "Return the fold at point, shown or not, or nil."
  (or (get-text-property (point) 'gemini-companion-fold)
      (get-text-property (point) 'gemini-companion-unfolded)))

(defun gemini-companion-unified-toggle-fold (&optional fold)
  "Show the lines of FOLD, or fold them again.
By default, FOLD is the one at point."
  (interactive)
  (let ((fold (or fold (gemini-companion-unified-fold-here)
                  (user-error "No folded lines here"))))
    (setq gemini-companion-unified-unfolded
          (if (member fold gemini-companion-unified-unfolded)
              (remove fold gemini-companion-unified-unfolded)
            (cons fold gemini-companion-unified-unfolded)))
    (gemini-companion-page-refresh)))

;;;; Keys

(defvar gemini-companion-unified-mode-map
  ;; In place of those of `special-mode'.
  (make-composed-keymap nil (gemini-companion-review-make-map 'unified))
  "Keys in the unified view of a review, beside the keys of all views.")

(define-derived-mode gemini-companion-unified-mode special-mode "Proposal"
  "Major mode for a proposal of a CLI as a unified diff.
Each line begins with its numbers in the file and in the proposal,
and a sign: `-' for a removed line, `+' for an added one.  Before the
sign, `x' marks a line of an excluded hunk, `*' one that you edited.

\\{gemini-companion-unified-mode-map}"
  ;; A global mode may have turned them on.
  :after-hook (setq display-line-numbers nil)
  (setq buffer-undo-list t
        truncate-lines nil)
  ;; It would hide whether the current line is removed or added.
  (setq-local global-hl-line-mode nil)
  ;; The numbers stay before a line in Hebrew.
  (setq-local bidi-paragraph-direction 'left-to-right
              glyphless-char-display gemini-companion-text-glyphless)
  (gemini-companion-review-letters-are-keys 'gemini-companion-unified-mode))

;;;; View

(cl-defstruct (gemini-companion-unified-view
               (:include gemini-companion-view)
               (:constructor gemini-companion-unified-make)
               (:copier nil))
  "A review as a unified diff.
Its buffers are that of the diff and the proposal.  USER-LINE is the line
of the file where the user was, or nil."
  user-line)

(cl-defmethod gemini-companion-view-open
  ((view gemini-companion-unified-view) keep)
  "Show VIEW as a unified diff; KEEP is as in the generic function."
  (let* ((edit (gemini-companion-view-edit view))
         (original (gemini-companion-edit-original edit))
         (window (gemini-companion-unified--window edit keep))
         (row (gemini-companion-unified--row edit window))
         (buffer (with-current-buffer original ; for its directory
                   (generate-new-buffer
                    (format "*gemini diff: %s*"
                            (gemini-companion-edit-name edit 'plain))))))
    (setf (gemini-companion-view-buffers view)
          (list buffer (gemini-companion-edit-proposal-buffer edit))
          (gemini-companion-unified-view-user-line view)
          (and row (min (car row)
                        (1+ (gemini-companion-unified--last-line original)))))
    (with-current-buffer buffer
      ;; A failing hook of the user must not prevent the review.
      (with-demoted-errors "Mode for the review: %S"
        (gemini-companion-unified-mode))
      (gemini-companion-page-set-up
       (lambda () (gemini-companion-unified--write view)) nil)
      (gemini-companion-edit-adopt edit)
      (gemini-companion-header-set)
      (gemini-companion-page-refresh))
    (gemini-companion-unified--display buffer edit window keep)
    (unless (and row (gemini-companion-unified--restore-row row))
      (gemini-companion-unified--reveal))))

(cl-defmethod gemini-companion-view-hunk ((view gemini-companion-unified-view))
  "Return the hunk at point in VIEW, or nil."
  (if (eq (car (gemini-companion-view-buffers view)) (current-buffer))
      (get-text-property (point) 'gemini-companion-hunk)
    (let ((line (line-number-at-pos nil 'absolute)))
      (seq-find (pcase-lambda (`(,_ ,_ ,new ,count))
                  (<= new line (+ new (max 0 (1- count)))))
                (gemini-companion-view-hunks view)))))

(cl-defmethod gemini-companion-view-compare
  ((view gemini-companion-unified-view))
  "Compare again, and draw VIEW again."
  (with-current-buffer (car (gemini-companion-view-buffers view))
    (gemini-companion-page-refresh)))

(cl-defmethod gemini-companion-view-follow
  ((view gemini-companion-unified-view) (_event (eql 'changed)))
  "Draw VIEW again soon, as the user has edited its proposal."
  (gemini-companion-page-refresh-soon
   (car (gemini-companion-view-buffers view))))

(cl-defmethod gemini-companion-view-close ((view gemini-companion-unified-view))
  "Kill the buffer of the diff of VIEW."
  (gemini-companion-edit-discard (car (gemini-companion-view-buffers view))))

(defun gemini-companion-unified--window (edit &optional keep)
  "Return the window of this frame for a review of EDIT in one window.
It is the window of the edit before in this turn, or one that shows the
file.  Return nil if there is none, if it is low, or if KEEP is non-nil
and the user works there."
  (pcase-let ((`(,last . ,window) gemini-companion-unified--previous)
              (file (gemini-companion-names-buffer
                     (gemini-companion-edit-file edit)))
              (others (list (gemini-companion-windows-terminal edit)
                            (and keep (or (minibuffer-selected-window)
                                          (selected-window))))))
    (seq-find (lambda (window)
                (and (eq (window-frame window) (selected-frame))
                     (<= gemini-companion-unified--least-lines-of-file
                         (window-body-height window))
                     (not (memq window others))))
              (append (and (window-live-p window)
                           (eq (gemini-companion-edit-turn last)
                               (gemini-companion-edit-turn edit))
                           (list window))
                      (and file (get-buffer-window-list file))))))

(defun gemini-companion-unified--row (edit window)
  "Return the line of point in WINDOW and its row, a cons.
Return nil if WINDOW does not show the file of EDIT."
  (when (and window
             (eq (window-buffer window)
                 (gemini-companion-names-buffer (gemini-companion-edit-file edit))))
    (with-selected-window window
      (let ((beg (line-beginning-position)))
        (cons (line-number-at-pos nil 'absolute)
              (+ (nth 1 (window-body-edges))
                 (count-screen-lines (min beg (window-start)) beg)))))))

(defun gemini-companion-unified--restore-row (row)
  "Show the line of ROW, a cons, at its row, and go to a hunk that is visible then.
If none is, return nil, with point where it was."
  (when-let* ((first (point))
              (there (text-property-any (point-min) (point-max)
                                        'gemini-companion-old (car row))))
    (goto-char there)
    (recenter (max 0 (- (cdr row) (nth 1 (window-body-edges)))))
    ;; If all fits, hide no hunk above it.
    (when (<= (count-screen-lines) (window-body-height))
      (set-window-start nil (point-min)))
    (end-of-line)
    (let ((visible (seq-find #'pos-visible-in-window-p
                             (delq nil (list (gemini-companion-unified-change 'back)
                                             (gemini-companion-unified-change))))))
      (goto-char (or visible first))
      visible)))

(defun gemini-companion-unified--display (buffer edit window &optional keep)
  "Show and select BUFFER, the view of EDIT, in WINDOW unless that is nil.
If KEEP is non-nil, the selected window stays visible.  The user's
`display-buffer-alist' comes first."
  (select-window
   (or (display-buffer
        buffer
        (list (list (lambda (buffer _)
                      (when window
                        (set-window-dedicated-p window nil)
                        (set-window-buffer window buffer)
                        window))
                    ;; The terminal may be in the selected window.
                    (lambda (buffer alist)
                      (unless (or (gemini-companion-windows-terminal edit)
                                  (< (window-body-height)
                                     gemini-companion-unified--least-lines))
                        (display-buffer-same-window buffer alist)))
                    (lambda (buffer _)
                      (gemini-companion-windows-make
                       buffer edit
                       gemini-companion-unified--least-lines
                       gemini-companion-unified--least-columns
                       keep))
                    ;; Otherwise Emacs would display the buffer in a new frame.
                    (lambda (&rest _) 'fail))
              '(inhibit-switch-frame . t)
              (cons 'inhibit-same-window keep)))
       (user-error "No window for the review of %s"
                   (gemini-companion-edit-name edit))))
  (setq gemini-companion-unified--previous (cons edit (selected-window))))

;;;; Text

(defun gemini-companion-unified--write (view)
  "Compare again, and draw the diff of VIEW; at first, go to its first hunk."
  (let ((edit (gemini-companion-view-edit view))
        (unfolded gemini-companion-unified-unfolded)
        (first (zerop (buffer-size))))
    ;; One that has ended stays as it was answered.
    (when (gemini-companion-edit-open-p edit)
      (let ((hunks (gemini-companion-edit-hunks edit)))
        (gemini-companion-page-replace
         (with-temp-buffer
           ;; A hook of the user may fail.
           (with-silent-modifications
             (if hunks
                 (gemini-companion-unified-insert
                  edit
                  (gemini-companion-edit-original edit)
                  (gemini-companion-edit-proposal-buffer edit)
                  (gemini-companion-unified--with-user-line
                   hunks (gemini-companion-unified-view-user-line view))
                  unfolded
                  ;; A screen.
                  (or (cdr (gemini-companion-view-size view)) (frame-height)))
               (insert (if (eq 'new (gemini-companion-edit-before edit))
                           "The new file is empty.\n"
                         "No differences left.\n"))))
           (buffer-string)))
        (setf (gemini-companion-view-hunks view) hunks)))
    (when first
      (goto-char (or (text-property-not-all (point-min) (point-max)
                                            'gemini-companion-change nil)
                     (point-min))))
    (force-mode-line-update)))

(defun gemini-companion-unified--with-user-line (hunks line)
  "Return HUNKS with one without lines at LINE of the file, where the user was.
The text near it is not folded, as that near the others."
  (pcase-let* ((before (and line
                            (seq-take-while (lambda (hunk) (<= (car hunk) line))
                                            hunks)))
               (`(,old ,old-count ,new ,new-count)
                (or (car (last before)) '(1 0 1 0)))
               (beyond (and line (- line old old-count))))
    (if (or (null line) (< beyond 0))
        hunks
      (append before
              (list (list line 0 (+ new new-count beyond) 0))
              (nthcdr (length before) hunks)))))

(cl-defmethod gemini-companion-view-line ((_ gemini-companion-unified-view))
  "Return the line of the proposal here, or the next one that is shown."
  (if-let* ((there (text-property-not-all (line-beginning-position) (point-max)
                                          'gemini-companion-line nil)))
      (get-text-property there 'gemini-companion-line)
    most-positive-fixnum))

;;;; Hunks

(cl-defmethod gemini-companion-view-move
  ((view gemini-companion-unified-view) count)
  "Go forward by COUNT hunks in VIEW, or parts of a long line.
In the proposal, go to the lines of the hunk there."
  (pcase-let* ((`(,buffer ,proposal) (gemini-companion-view-buffers view))
               (back (< count 0))
               (check (lambda (there)
                        (or there (user-error "No %s hunk"
                                              (if back "previous" "next"))))))
    (if (eq (current-buffer) proposal)
        (let* ((hunks (gemini-companion-edit-hunks gemini-companion-edit-here))
               (lines (cl-remove (line-number-at-pos nil 'absolute)
                                 (mapcar #'cl-third hunks)
                                 :test (if back #'<= #'>=)))
               (line (nth (1- (abs count)) (if back (reverse lines) lines))))
          (funcall check line)
          (widen)
          (goto-char (gemini-companion-hunk-line line)))
      (with-selected-window (or (get-buffer-window buffer)
                                (user-error "The diff is not shown here"))
        (dotimes (_ (abs count))
          (goto-char (funcall check
                              (or (gemini-companion-unified-change back)
                                  (and (not back)
                                       (gemini-companion-unified--show-more)
                                       (gemini-companion-unified-change))))))
        (gemini-companion-unified--reveal)))))

(cl-defmethod gemini-companion-view-go-to ((view gemini-companion-unified-view)
                                           number)
  "Go to the hunk with NUMBER, from 0 on, in VIEW."
  (when-let* ((window (get-buffer-window
                       (car (gemini-companion-view-buffers view)))))
    (with-selected-window window
      (when-let* ((hunk (nth number (gemini-companion-view-hunks view)))
                  (position (cl-loop
                             thereis (text-property-any (point-min) (point-max)
                                                        'gemini-companion-line
                                                        (nth 2 hunk))
                             while (gemini-companion-unified--show-more))))
        (goto-char position)
        (gemini-companion-unified--reveal)))))

(defun gemini-companion-unified-change (&optional back)
  "Return where the next visible hunk or change begins, or nil.
If BACK is non-nil, return where the previous one begins."
  (let ((positions (cl-loop for beg = (point-min) then (1+ position)
                            for position = (text-property-not-all
                                            beg (point-max)
                                            'gemini-companion-change nil)
                            while position
                            unless (invisible-p position) collect position)))
    (cl-find (point) positions :test (if back #'> #'<) :from-end back)))

(defun gemini-companion-unified--show-more ()
  (let ((fold (get-text-property (1- (point-max)) 'gemini-companion-fold)))
    (when (eq 'more (cadr fold))
      (gemini-companion-unified-toggle-fold fold)
      t)))

(defun gemini-companion-unified--reveal ()
  "Scroll so that the hunk at point is visible with the lines before it."
  (let ((end (next-single-property-change (point) 'gemini-companion-hunk
                                          nil (point-max))))
    (unless (and (pos-visible-in-window-p)
                 (pos-visible-in-window-p (max (point) (1- end))))
      (recenter (min 4 (/ (window-body-height) 3))))))

;;;; Editing

(defun gemini-companion-unified--column ()
  "Return the number of characters before point in the line of the proposal."
  (let ((column (get-text-property (point) 'gemini-companion-column))
        (beg (line-beginning-position)))
    (cond (column
           (+ column (- (point) (previous-single-property-change
                                 (1+ (point)) 'gemini-companion-column nil beg))))
          ((get-text-property (point) 'gemini-companion-line) (- (point) beg))
          (0))))

(cl-defmethod gemini-companion-view-edit-proposal ((view gemini-companion-unified-view))
  "Show the proposal of VIEW in the window of its diff, or the other way round.
Go to the same character of the proposal; back to its line, or to the
fold that it is in."
  (pcase-let* ((`(,buffer ,proposal) (gemini-companion-view-buffers view))
               (back (not (eq (current-buffer) buffer)))
               (line (if back
                         (line-number-at-pos nil 'absolute)
                       (gemini-companion-view-line view)))
               (column (gemini-companion-unified--column)))
    (gemini-companion-windows-at-once
      (set-window-buffer (selected-window) (if back buffer proposal)))
    (with-current-buffer (window-buffer)
      (cond ((not back)
             (gemini-companion-header-set)
             (widen)
             (goto-char (gemini-companion-hunk-line line))
             (goto-char (min (+ (point) column) (line-end-position))))
            (t
             (gemini-companion-page-refresh)
             (goto-char (point-max))
             (let ((last (text-property-search-backward
                          'gemini-companion-line line
                          (lambda (line there) (and there (<= there line))))))
               ;; A fold with the line, or a remark, may follow it.
               (goto-char (if last (prop-match-end last) (point-min)))
               (when (or (eobp) (and last (= line (prop-match-value last))))
                 (forward-line -1)))))
      (set-window-point nil (point)))))

(provide 'gemini-companion-unified)
;;; gemini-companion-unified.el ends here
