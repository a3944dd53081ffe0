;;; gemini-companion-unified.el --- A proposal as a unified diff  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The unified view of a review: one window with the hunks of a proposal in the
;; colors of the file, line numbers and signs before the lines, and unchanged
;; text folded.  The text comes from the buffers of the original and the
;; proposal; numbers and signs are prefixes and not part of the text.  The list
;; of edits shows its diffs with the same code.

;;; Code:

(require 'cl-lib)
(require 'diff-mode)
(require 'gemini-companion-diff)
(require 'gemini-companion-header)
(require 'gemini-companion-highlight)
(require 'gemini-companion-hunk)
(require 'gemini-companion-review)
(require 'gemini-companion-text)
(require 'gemini-companion-windows)
(require 'seq)
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

(defconst gemini-companion-unified--context 3
  "Number of unchanged lines to display around a hunk.")

(defconst gemini-companion-unified--most-lines 400
  "Maximum number of consecutive lines to display; the rest are folded.")

(defconst gemini-companion-unified--most-hunks 300
  "Maximum number of hunks to display; the rest are folded.")

(defconst gemini-companion-unified--colored (* 1024 1024)
  "Size of a text above which it is displayed without colors.")

(defconst gemini-companion-unified--long-line 400
  "Length of a line above which only a part of it is displayed.")

(defconst gemini-companion-unified--longest-line 10000
  "Maximum number of characters to display of a line that is new.")

(defconst gemini-companion-unified--near 60
  "Number of characters to display on each side of a change in a long line.")

(defconst gemini-companion-unified--seconds 0.5
  "Maximum processor seconds to spend on the colors of a diff.")

(defconst gemini-companion-unified--least-lines 8
  "Minimum number of lines of a window for a diff.")

(defvar-local gemini-companion-unified--original nil
  "The buffer with the original of this diff.")

(defvar-local gemini-companion-unified--tick nil
  "Tick of the proposal when this view last compared it.")

(defvar-local gemini-companion-unified--timer nil
  "Timer that compares again after an edit of the proposal, or nil.")

;;;; Lines

(cl-defstruct (gemini-companion-unified--view
               (:constructor gemini-companion-unified--view-make)
               (:copier nil))
  "Data for the lines of a diff between the buffers OLD and NEW.
OLD-LAST and NEW-LAST are the numbers of their last lines, WIDTH is the
width of a line number, and EXCLUDED has the excluded hunks.  USER-LINES
is a table of the lines that the user has changed, or nil; see
`gemini-companion-unified--user-lines'.  UNFOLDED has the folds whose
lines are shown.  Colors are used, and words marked, until Emacs has
used UNTIL seconds of processor time."
  old new old-last new-last width excluded user-lines unfolded
  ;; Some modes need a tenth of a second for each hunk, whatever the size.
  (until (+ (float-time (get-internal-run-time))
            gemini-companion-unified--seconds)))

(defun gemini-companion-unified--early-p (view)
  "Return non-nil if there is time left for the colors of VIEW."
  (< (float-time (get-internal-run-time))
     (gemini-companion-unified--view-until view)))

(defun gemini-companion-unified--last (buffer)
  "Return the number of the last line of BUFFER."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (let ((cache-long-scans nil))
        (count-lines (point-min) (point-max))))))

(defun gemini-companion-unified--texts (buffer line count &optional view)
  "Return COUNT lines of BUFFER from LINE on, a list of strings.
If VIEW is non-nil, they have colors, as far as there is time."
  (when (< 0 count)
    (with-current-buffer buffer
      (save-excursion
        (save-restriction
          (widen)
          ;; Filling the cache for a large text would take twenty times as long.
          (let* ((cache-long-scans nil)
                 (beg (goto-char (gemini-companion-hunk-line line))))
            (forward-line count)
            (gemini-companion-text-lines
             (if (and view
                      (< (buffer-size) gemini-companion-unified--colored)
                      (gemini-companion-unified--early-p view))
                 (gemini-companion-unified--colored beg (point))
               (buffer-substring-no-properties beg (point))))))))))

(defun gemini-companion-unified--colored (beg end)
  "Return the text from BEG to END with its faces and no other properties."
  (with-demoted-errors "Colors for the review: %S"
    (font-lock-ensure beg end))
  (let ((text (buffer-substring-no-properties beg end)))
    (pcase-dolist (`(,from ,to ,_)
                   (object-intervals (buffer-substring beg end)))
      ;; Some modes set another property, which is an alias of this one.
      (when-let* ((face (get-text-property (+ beg from) 'face)))
        (put-text-property from to 'face face text)))
    text))

;;;; Inserting

(defun gemini-companion-unified-insert
    (file original proposal hunks excluded model unfolded)
  "Insert before point the lines of HUNKS of FILE.
HUNKS are the differences between the buffers ORIGINAL and PROPOSAL,
EXCLUDED those to show as excluded.  MODEL is the text that the CLI
proposed, or nil if the user has not edited it.  UNFOLDED are folds
whose lines are shown.  If this takes long, the remaining lines have no
colors.

The lines have these text properties:
`gemini-companion-hunk' is the hunk of a changed line;
`gemini-companion-line' is the number of the line in the proposal, and
`gemini-companion-old' the number in the original, except on folds;
`gemini-companion-change' is non-nil where a hunk begins, and at further
changes in a long line;
`gemini-companion-fold', on a fold, and `gemini-companion-unfolded', on
the lines that were in one, are for `gemini-companion-unified--open-fold'."
  (gemini-companion-unified--insert-hunks
   (gemini-companion-unified--view file original proposal excluded model
                                   unfolded)
   hunks))

(defun gemini-companion-unified--here ()
  "Return the view of the diff in this buffer."
  (let* ((diff gemini-companion-diff-here)
         (proposal (gemini-companion-diff-proposal-buffer diff)))
    (gemini-companion-unified--view
     (gemini-companion-diff-file-path diff)
     gemini-companion-unified--original proposal
     (gemini-companion-hunk-excluded proposal)
     (and (gemini-companion-diff-edited-p diff)
          (gemini-companion-diff-proposed-text diff)))))

(defun gemini-companion-unified--view
    (file original proposal excluded model &optional unfolded)
  "Return the view of the texts of FILE in the buffers ORIGINAL and PROPOSAL.
For EXCLUDED, MODEL and UNFOLDED, see `gemini-companion-unified-insert'."
  (dolist (text (list original proposal))
    (with-current-buffer text
      (gemini-companion-highlight file)))
  (let ((last (gemini-companion-unified--last original))
        (new-last (gemini-companion-unified--last proposal)))
    (gemini-companion-unified--view-make
     :old original :new proposal :old-last last :new-last new-last
     :excluded excluded :unfolded unfolded
     :width (length (number-to-string (max 10 last new-last)))
     :user-lines
     (and model
          (< (buffer-size proposal) gemini-companion-unified--colored)
          (gemini-companion-unified--user-lines
           model (gemini-companion-text-of-buffer proposal))))))

(defun gemini-companion-unified--user-lines (model text)
  "Return a table of the lines of MODEL, as the CLI proposed it, and of TEXT.
The value of a line is \"-\" if it is only in MODEL, \"+\" if it is only in
TEXT, or `both'."
  (let ((table (make-hash-table :test #'equal)))
    (dolist (line (split-string model "\n"))
      (puthash line "-" table))
    (dolist (line (split-string text "\n"))
      (puthash line (if (member (gethash line table) '(nil "+")) "+" 'both)
               table))
    table))

(defun gemini-companion-unified--insert-hunks (view hunks &optional last)
  "Insert HUNKS of VIEW, which follow the hunk LAST, or nil."
  (dolist (hunk (seq-take hunks gemini-companion-unified--most-hunks))
    (gemini-companion-unified--insert-between view last hunk)
    (gemini-companion-unified--insert-hunk view hunk)
    (setq last hunk))
  (if-let* ((others (nthcdr gemini-companion-unified--most-hunks hunks)))
      (gemini-companion-unified--insert-fold view (list 'hunks last others))
    (gemini-companion-unified--insert-between view last nil)))

(defun gemini-companion-unified--insert-between (view last next)
  "Insert the unchanged lines of VIEW between the hunks LAST and NEXT."
  (pcase-let* ((`(,old ,old-count ,new ,new-count) (or last '(1 0 1 0)))
               (old (+ old old-count))
               (new (+ new new-count))
               (count (- (if next
                             (car next)
                           (1+ (gemini-companion-unified--view-old-last view)))
                         old))
               (context gemini-companion-unified--context)
               (before (if last context 0))
               (after (if next context 0))
               (hidden (- count before after)))
    (if (< hidden 2)
        (gemini-companion-unified--insert-same view old new count)
      (gemini-companion-unified--insert-same view old new before)
      (gemini-companion-unified--insert-fold
       view (list 'same (+ old before) (+ new before) hidden nil))
      (gemini-companion-unified--insert-same
       view (+ old before hidden) (+ new before hidden) after))))

(defun gemini-companion-unified--insert-same (view old new count)
  "Insert COUNT unchanged lines of VIEW, from the lines OLD and NEW on."
  (dolist (text (gemini-companion-unified--texts
                 (gemini-companion-unified--view-new view) new count view))
    (gemini-companion-unified--insert-line
     view (gemini-companion-unified--abridged text '((0 . 0)))
     old new " " nil (list 'gemini-companion-line new))
    (setq old (1+ old)
          new (1+ new))))

(defun gemini-companion-unified--insert-run (view kind old new count hunk)
  "Insert COUNT lines of KIND of VIEW, from the line OLD or NEW on.
KIND is `removed' or `added' for lines of HUNK, or `same' for unchanged
lines.  Fold lines beyond `gemini-companion-unified--most-lines'."
  (let* ((shown (min count gemini-companion-unified--most-lines))
         (rest (- count shown)))
    (if hunk
        (gemini-companion-unified--insert-changed view kind old new shown hunk)
      (gemini-companion-unified--insert-same view old new shown))
    (when (< 0 rest)
      (gemini-companion-unified--insert-fold
       view (list kind
                  (if (eq kind 'added) old (+ old shown))
                  (if (eq kind 'removed) new (+ new shown))
                  rest hunk)))))

(defun gemini-companion-unified--insert-fold (view fold)
  "Insert a line of VIEW in place of FOLD, or its lines if they are shown.
FOLD is a list of `hunks', the hunk before them and these hunks, or the
arguments of `gemini-companion-unified--insert-run' after VIEW."
  (if (member fold (gemini-companion-unified--view-unfolded view))
      (gemini-companion-unified--unfold view fold)
    (let ((text (pcase-exhaustive fold
                  (`(hunks ,_ ,hunks)
                   (let ((count (length hunks)))
                     (format (ngettext "%d more hunk" "%d more hunks" count)
                             count)))
                  (`(same ,_ ,_ ,count ,_)
                   (format (ngettext "%d unchanged line" "%d unchanged lines"
                                     count)
                           count))
                  (`(,kind ,_ ,_ ,count ,_)
                   (format (ngettext "%d more %s line" "%d more %s lines" count)
                           count kind))))
          (prefix (gemini-companion-unified--prefix view nil nil " " nil nil)))
      (insert (propertize (concat "... " text "\n")
                          'face 'gemini-companion-fold
                          'gemini-companion-fold fold
                          'mouse-face 'highlight
                          'help-echo "TAB: show these lines"
                          'line-prefix prefix
                          'wrap-prefix prefix)))))

(defun gemini-companion-unified--insert-hunk (view hunk)
  "Insert the lines of HUNK in VIEW: the removed ones, then the added ones."
  (pcase-let ((`(,old ,old-count ,new ,new-count) hunk))
    (let ((beg (point)))
      (gemini-companion-unified--insert-run view 'removed old new old-count hunk)
      (gemini-companion-unified--insert-run view 'added old new new-count hunk)
      (put-text-property beg (point) 'gemini-companion-hunk hunk)
      (put-text-property beg (1+ beg) 'gemini-companion-change t))))

(defun gemini-companion-unified--insert-changed (view kind old new count hunk)
  "Insert COUNT changed lines of KIND of VIEW, in HUNK, from OLD or NEW on."
  (pcase-let* ((removed (eq kind 'removed))
               (`(,buffer ,line ,last)
                (if removed
                    (list (gemini-companion-unified--view-old view) old
                          (gemini-companion-unified--view-old-last view))
                  (list (gemini-companion-unified--view-new view) new
                        (gemini-companion-unified--view-new-last view))))
               (words (gemini-companion-unified--words view hunk))
               (excluded (member hunk
                                 (gemini-companion-unified--view-excluded view)))
               (plain (gemini-companion-unified--new-file-p view)))
    (dolist (text (gemini-companion-unified--texts buffer line count view))
      (gemini-companion-unified--insert-line
       view
       (gemini-companion-unified--marked
        text (alist-get (cons kind line) words nil nil #'equal)
        (cond (excluded nil)
              (removed 'diff-refine-removed)
              (t 'diff-refine-added)))
       (and removed line) (and (not removed) line)
       (cond ((and plain (not excluded)) " ") (removed "-") (t "+"))
       (cond (excluded 'shadow)
             (plain nil)
             (removed 'diff-removed)
             (t 'diff-added))
       (list 'gemini-companion-line (if removed new line))
       excluded)
      (setq line (1+ line)))
    (when (< last line)
      (gemini-companion-unified--insert-end view buffer))))

(defun gemini-companion-unified--marked (text ranges face)
  "Return TEXT, a line, with FACE, if non-nil, on RANGES.
If the line is long, return only what is near them; in an added line,
all but the first one are places to go to."
  (when face
    (pcase-dolist (`(,beg . ,end) ranges)
      ;; Bold: red words on a red line are all but invisible to some users.
      ;; Colors of the mode are hard to read on green in a dark theme.
      (put-text-property beg end 'face (list face 'bold) text))
    (when (eq face 'diff-refine-added)
      (pcase-dolist (`(,beg . ,_) (cdr ranges))
        (put-text-property beg (min (length text) (1+ beg))
                           'gemini-companion-change t text))))
  (let ((ranges (or ranges
                    (list (cons 0 gemini-companion-unified--longest-line)))))
    (gemini-companion-unified--abridged text ranges)))

(defun gemini-companion-unified--abridged (text ranges)
  "Return TEXT, a line, without what is far from RANGES if it is long.
RANGES are a list of (BEG . END), in order."
  (let ((length (length text))
        (position 0)
        (pieces nil))
    (if (<= length gemini-companion-unified--long-line)
        text
      (cl-flet ((omit (end)
                  (when (< position end)
                    (push (propertize "..." 'face 'gemini-companion-fold
                                      'help-echo (format "%d more characters"
                                                         (- end position)))
                          pieces)
                    (setq position end))))
        (pcase-dolist (`(,beg . ,end) ranges)
          (omit (- beg gemini-companion-unified--near))
          (let ((end (min length (+ end gemini-companion-unified--near))))
            (push (substring text position (max position end)) pieces)
            (setq position (max position end))))
        (omit length)
        (apply #'concat (nreverse pieces))))))

(defun gemini-companion-unified--new-file-p (view)
  "Return non-nil if the file of VIEW is new or empty."
  (zerop (gemini-companion-unified--view-old-last view)))

(defun gemini-companion-unified--insert-end (view buffer)
  "Insert a remark in VIEW if the text of BUFFER ends without a newline."
  (unless (with-current-buffer buffer
            (save-restriction
              (widen)
              (memq (char-before (point-max)) '(?\n nil))))
    (gemini-companion-unified--insert-line
     view "No newline at end of file" nil nil "\\" 'gemini-companion-fold nil)))

(defun gemini-companion-unified--insert-line
    (view text old new sign face properties &optional excluded)
  "Insert TEXT, a line of VIEW, with FACE below its own and PROPERTIES.
OLD and NEW are its numbers, or nil; SIGN is the sign before it.  If
EXCLUDED is non-nil, do not use its own colors."
  (let ((beg (point))
        (changed (when-let* ((signs
                              (gemini-companion-unified--view-user-lines view)))
                   (equal sign (gethash text signs)))))
    (insert (if excluded (gemini-companion-unified--struck text) text) "\n")
    (when face
      (add-face-text-property beg (point) face 'append))
    (add-text-properties
     beg (point)
     (append (list 'line-prefix (gemini-companion-unified--prefix
                                 view old new sign face
                                 (cond (excluded "x") (changed "*")))
                   'wrap-prefix (gemini-companion-unified--prefix
                                 view nil nil " " face nil)
                   'gemini-companion-old old)
             properties))))

(defun gemini-companion-unified--struck (line)
  "Return LINE, of an excluded hunk, struck through but for its indentation."
  (let ((text (propertize line 'face 'shadow)))
    (add-face-text-property (string-match "[^[:blank:]]\\|\\'" text)
                            (length text)
                            'gemini-companion-excluded-text nil text)
    text))

(defun gemini-companion-unified--prefix (view old new sign face mark)
  "Return the prefix of a line of VIEW.
It consists of the numbers OLD and NEW, MARK and SIGN, with FACE."
  (let* ((width (gemini-companion-unified--view-width view))
         (number (lambda (line)
                   (if line
                       (string-pad (number-to-string line) width nil 'start)
                     (make-string width ?\s))))
         (numbers (concat (unless (gemini-companion-unified--new-file-p view)
                            (concat (funcall number old) " "))
                          (funcall number new) " ")))
    (concat (propertize numbers 'face 'line-number)
            (propertize (or mark " ")
                        'face (list 'gemini-companion-own face))
            (propertize sign 'face (list 'bold face)))))

;;;; Changed words

(defun gemini-companion-unified--words (view hunk)
  "Return which words differ between the removed and added lines of HUNK.
The value is an alist of (KIND . LINE) and lists of (BEG . END).  Only
similar lines of VIEW are compared."
  (pcase-let ((`(,old ,old-count ,new ,new-count) hunk)
              (words nil))
    (when (and (< 0 old-count 40)
               (< 0 new-count 40)
               (gemini-companion-unified--early-p view))
      (let ((added (gemini-companion-unified--texts
                    (gemini-companion-unified--view-new view) new new-count)))
        (dolist (removed (gemini-companion-unified--texts
                          (gemini-companion-unified--view-old view)
                          old old-count))
          (when-let* ((index
                       (seq-position added removed
                                     #'gemini-companion-unified--differing))
                      (ranges (gemini-companion-unified--differing
                               (nth index added) removed)))
            (push (cons (cons 'added (+ new index)) (car ranges)) words)
            (push (cons (cons 'removed old) (cdr ranges)) words)
            (setq added (nthcdr (1+ index) added)
                  new (+ new index 1)))
          (setq old (1+ old)))))
    words))

(defun gemini-companion-unified--differing (one other)
  "Return where the words of ONE and OTHER differ, if most are the same.
The value is a cons of two lists of ranges (BEG . END), or nil.  In
lines that are not long, it is one range, from the first word to the
last one that differ."
  (let* ((beg (gemini-companion-unified--alike one other))
         (end (gemini-companion-unified--alike (reverse (substring one beg))
                                               (reverse (substring other beg))))
         (one-end (- (length one) end))
         (other-end (- (length other) end))
         (ranges
          (if (< (min (length one) (length other))
                 gemini-companion-unified--long-line)
              (cons (list (cons beg one-end)) (list (cons beg other-end)))
            (gemini-companion-unified--refined
             (substring one beg one-end) (substring other beg other-end) beg)))
         (amount (lambda (ranges)
                   (apply #'+ (mapcar (pcase-lambda (`(,beg . ,end))
                                        (- end beg))
                                      ranges)))))
    ;; Indentation does not count.
    (when (< (* 2 (+ (funcall amount (car ranges))
                     (funcall amount (cdr ranges))))
             (+ (length (string-trim-left one))
                (length (string-trim-left other))))
      ranges)))

(defun gemini-companion-unified--alike (one other)
  "Return the number of characters in the words with which ONE and OTHER begin.
It counts only the words that are the same in both."
  (let ((count (gemini-companion-text-alike one other)))
    (while (and (< 0 count)
                (string-match-p "[[:alnum:]_]"
                                (substring one (1- count) count)))
      (setq count (1- count)))
    count))

(defun gemini-companion-unified--refined (one other offset)
  "Return where the words of ONE and OTHER differ, each plus OFFSET.
The value is a cons of two lists of ranges (BEG . END)."
  (let* ((words (mapcar (lambda (text)
                          (replace-regexp-in-string
                           "[[:alnum:]_]+\\|[^[:alnum:]_]" "\\&\n" text t))
                        (list one other)))
         (places (lambda (text)
                   (let ((place offset))
                     (vconcat (list offset)
                              (mapcar (lambda (word)
                                        (setq place (+ place (length word))))
                                      (gemini-companion-text-lines text))))))
         (one-places (funcall places (car words)))
         (other-places (funcall places (cadr words)))
         (range (lambda (places line count)
                  (cons (aref places (1- line))
                        (aref places (+ line count -1)))))
         (hunks (gemini-companion-text-diff words)))
    (cons (mapcar (pcase-lambda (`(,line ,count . ,_))
                    (funcall range one-places line count))
                  hunks)
          (mapcar (pcase-lambda (`(,_ ,_ ,line ,count))
                    (funcall range other-places line count))
                  hunks))))

;;;; Folds

(defun gemini-companion-unified--open-fold ()
  "Show the lines of the fold at point, or fold them again.
Return nil if there is no fold at point."
  (let ((fold (get-text-property (point) 'gemini-companion-fold))
        (unfolded (get-text-property (point) 'gemini-companion-unfolded)))
    (when (or fold unfolded)
      (pcase-let ((`(,beg . ,end)
                   (gemini-companion-unified--around
                    (point) (if fold
                                'gemini-companion-fold
                              'gemini-companion-unfolded))))
        (goto-char beg)
        (with-silent-modifications
          (let ((view (gemini-companion-unified--here)))
            (save-excursion
              (delete-region beg end)
              (if fold
                  (gemini-companion-unified--unfold view fold)
                (gemini-companion-unified--insert-fold view unfolded)))))
        t))))

(defun gemini-companion-unified--unfold (view fold)
  "Insert the lines of VIEW for which FOLD stands."
  (pcase-exhaustive fold
    (`(hunks ,last ,hunks)
     (gemini-companion-unified--insert-hunks view hunks last))
    (`(,_ ,_ ,_ ,count ,hunk)
     (let ((beg (point)))
       (apply #'gemini-companion-unified--insert-run view fold)
       (cond (hunk
              (put-text-property beg (point) 'gemini-companion-hunk hunk))
             ((<= count gemini-companion-unified--most-lines)
              (put-text-property beg (point) 'gemini-companion-unfolded
                                 fold)))))))

(defun gemini-companion-unified--around (position property)
  "Return the range (BEG . END) with the same PROPERTY as at POSITION."
  (cons (previous-single-property-change (1+ position) property nil (point-min))
        (next-single-property-change position property nil (point-max))))

;;;; Keys

(defvar gemini-companion-unified-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map gemini-companion-review-letters-map)
    (define-key map (kbd "RET") #'gemini-companion-review-edit)
    (define-key map (kbd "TAB") #'gemini-companion-unified-toggle-fold)
    (define-key map "g" #'gemini-companion-unified-refresh)
    map)
  "Keys in the unified view of a review, beside the keys of all views.")

(define-derived-mode gemini-companion-unified-mode special-mode "Proposal"
  "Major mode for a proposal of a CLI as a unified diff.
Each line begins with its numbers in the file and in the proposal,
and a sign: `-' for a removed line, `+' for an added one.  Before the
sign, `x' marks a line of an excluded hunk, `*' a line that you edited.

\\{gemini-companion-unified-mode-map}"
  ;; A global mode may have turned them on.
  :after-hook (setq display-line-numbers nil)
  (setq buffer-undo-list t
        truncate-lines nil)
  ;; Lines differ in their colors from their beginning.
  (setq-local line-prefix nil
              nobreak-char-display nil)
  (gemini-companion-review-letters-are-keys 'gemini-companion-unified-mode))

;;;; View

(defun gemini-companion-unified-open (diff original frame &optional keep)
  "Show DIFF, an edit of the text in ORIGINAL, as a unified diff on FRAME.
If KEEP is non-nil, the selected window there stays visible.  The
value is a plist; see `gemini-companion-review--kinds'."
  (let* ((proposal (gemini-companion-diff-proposal-buffer diff))
         (buffer (gemini-companion-unified--buffer diff original)))
    (condition-case problem
        (progn
          (gemini-companion-unified--make buffer)
          (with-selected-frame frame
            (setq frame (window-frame (gemini-companion-unified--display
                                       buffer diff keep)))))
      ((error quit)
       (gemini-companion-unified--close buffer proposal)
       (signal (car problem) (cdr problem))))
    (with-current-buffer proposal
      (add-hook 'after-change-functions #'gemini-companion-unified--changed
                nil t))
    (list :buffers (list buffer proposal)
          :main buffer
          :frame frame
          :hunk #'gemini-companion-unified--hunk
          :line (lambda () (gemini-companion-unified--line (point)))
          :toggled (apply-partially #'gemini-companion-unified--redraw buffer)
          :move (apply-partially #'gemini-companion-unified--move buffer)
          :go-to (apply-partially #'gemini-companion-unified--go-to-hunk buffer)
          :edit (apply-partially #'gemini-companion-unified--edit buffer proposal)
          :select (lambda ()
                    (when-let* ((window (or (get-buffer-window buffer)
                                            (get-buffer-window proposal))))
                      (select-window window)))
          :display (apply-partially #'gemini-companion-unified--display
                                    buffer diff)
          :compare (apply-partially #'gemini-companion-unified--make buffer)
          :close (apply-partially #'gemini-companion-unified--close
                                  buffer proposal))))

(defun gemini-companion-unified--buffer (diff original)
  "Return a new buffer for the unified diff of DIFF, an edit of ORIGINAL."
  (with-current-buffer
      (generate-new-buffer
       (format "*gemini diff: %s*" (gemini-companion-diff-name diff 'plain)))
    ;; A failing hook of the user must not prevent the review.
    (with-demoted-errors "Mode for the review: %S"
      (gemini-companion-unified-mode))
    (setq default-directory (buffer-local-value 'default-directory original)
          gemini-companion-unified--original original)
    (gemini-companion-diff-adopt diff)
    (gemini-companion-header-set)
    (current-buffer)))

(defun gemini-companion-unified--display (buffer diff &optional keep)
  "Show and select BUFFER, the view of DIFF, and return its window.
If KEEP is non-nil, the selected window stays visible.  The user's
`display-buffer-alist' comes first."
  (select-window
   (or (display-buffer
        buffer
        (list (list #'display-buffer-reuse-window
                    (lambda (buffer _)
                      (unless keep
                        (gemini-companion-unified--use-window buffer diff)))
                    (lambda (buffer _)
                      (gemini-companion-windows-make
                       buffer diff
                       (lambda (_) gemini-companion-unified--least-lines)
                       gemini-companion-windows-side-columns
                       keep))
                    ;; Otherwise Emacs would display the buffer in a new frame.
                    (lambda (&rest _) 'fail))
              '(inhibit-switch-frame . t)
              (cons 'inhibit-same-window keep)))
       (user-error "No window for the review of %s"
                   (gemini-companion-diff-name diff)))))

(defun gemini-companion-unified--use-window (buffer diff)
  "Show BUFFER, the view of DIFF, in a window of this frame, and return that.
It is the window of the file, the selected one, or the largest.  Return
nil if each of them is small or dedicated, or if the terminal of the CLI
is visible."
  (let ((file (gemini-companion-place-buffer
               (gemini-companion-diff-file-path diff))))
    (when-let* (((not (gemini-companion-windows-terminal diff)))
                (window (seq-find
                         (lambda (window)
                           (not (or (window-dedicated-p window)
                                    (window-minibuffer-p window)
                                    (window-parameter window 'window-side)
                                    (< (window-body-height window)
                                       gemini-companion-unified--least-lines))))
                         (delq nil (list (and file (get-buffer-window file))
                                         (selected-window)
                                         (get-largest-window))))))
      (set-window-buffer window buffer)
      window)))

(defun gemini-companion-unified--close (buffer proposal)
  "Close the view in BUFFER of PROPOSAL without changing the windows."
  (when (buffer-live-p proposal)
    (with-current-buffer proposal
      (remove-hook 'after-change-functions
                   #'gemini-companion-unified--changed t)))
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (gemini-companion-unified--cancel))
    (gemini-companion-diff-discard buffer)))

(defun gemini-companion-unified--cancel ()
  "Cancel the timer of this view."
  (when gemini-companion-unified--timer
    (cancel-timer gemini-companion-unified--timer)
    (setq gemini-companion-unified--timer nil)))

;;;; Text

(defun gemini-companion-unified--make (buffer)
  "Compare again for the view in BUFFER, and draw it."
  (with-current-buffer buffer
    (gemini-companion-unified--cancel)
    (let* ((diff gemini-companion-diff-here)
           (original gemini-companion-unified--original)
           (proposal (gemini-companion-diff-proposal-buffer diff))
           (hunks (gemini-companion-hunk-find original proposal)))
      (setq gemini-companion-unified--tick (buffer-chars-modified-tick proposal))
      (gemini-companion-review-set-hunks diff hunks original)
      (gemini-companion-unified--fill hunks)
      (force-mode-line-update))))

(defun gemini-companion-unified--current-p ()
  "Return non-nil if the proposal is as it was when it was compared."
  (eql gemini-companion-unified--tick
       (buffer-chars-modified-tick
        (gemini-companion-diff-proposal-buffer gemini-companion-diff-here))))

(defun gemini-companion-unified--fill (hunks)
  "Replace the text of this buffer by the lines of HUNKS.
Windows stay at the same line of the proposal; the first time, go to the
first hunk."
  (let* ((windows (get-buffer-window-list nil nil t))
         (first (zerop (buffer-size)))
         (places (mapcar (lambda (window)
                           (list window
                                 (gemini-companion-unified--line
                                  (window-point window))
                                 (gemini-companion-unified--line
                                  (window-start window))))
                         windows))
         (line (gemini-companion-unified--line (point))))
    (with-silent-modifications
      (erase-buffer)
      (if hunks
          (gemini-companion-unified--insert-hunks
           (gemini-companion-unified--here) hunks)
        (insert "No differences left.\n")))
    (if first
        (goto-char (or (car (gemini-companion-unified--places)) (point-min)))
      (goto-char (gemini-companion-unified--where line))
      (pcase-dolist (`(,window ,point ,start) places)
        (set-window-point window (gemini-companion-unified--where point))
        (set-window-start window (gemini-companion-unified--where start))))))

(defun gemini-companion-unified--line (position)
  "Return the line of the proposal at POSITION, or the next line that has one."
  (if-let* ((there (text-property-not-all position (point-max)
                                          'gemini-companion-line nil)))
      (get-text-property there 'gemini-companion-line)
    most-positive-fixnum))

(defun gemini-companion-unified--where (line)
  "Return the position of LINE of the proposal, or of the next line shown."
  (save-excursion
    (goto-char (point-min))
    (while (not (or (eobp)
                    (<= line (or (get-text-property (point)
                                                    'gemini-companion-line)
                                 0))))
      (forward-line))
    (point)))

(defun gemini-companion-unified--redraw (buffer hunk)
  "Redraw HUNK in BUFFER, as it was excluded or restored.
If HUNK is nil, the proposal was edited, and all will be drawn again."
  (when hunk
    (with-current-buffer buffer
      (let ((line (line-number-at-pos nil t)))
        (when-let* ((match (gemini-companion-unified--lines-of hunk)))
          (with-silent-modifications
            (delete-region (prop-match-beginning match) (prop-match-end match))
            (gemini-companion-unified--insert-hunk
             (gemini-companion-unified--here) (prop-match-value match))))
        (goto-char (gemini-companion-hunk-line line))))))

(defun gemini-companion-unified--changed (&rest _)
  "Update the diff of the current buffer, a proposal that was edited, soon."
  (when-let* ((diff gemini-companion-diff-here)
              (buffer (gemini-companion-review-main diff))
              ;; It may be killed, or belong to another view.
              ((buffer-live-p buffer))
              ((buffer-local-value 'gemini-companion-unified--original buffer)))
    (with-current-buffer buffer
      (unless gemini-companion-unified--timer
        (setq gemini-companion-unified--timer
              (run-with-idle-timer 0.5 nil #'gemini-companion-unified--follow
                                   buffer))))))

(put 'gemini-companion-unified--changed 'permanent-local-hook t)

(defun gemini-companion-unified--follow (buffer)
  "Update the diff in BUFFER if it is visible."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq gemini-companion-unified--timer nil)
      (when (get-buffer-window buffer t)
        (gemini-companion-unified--make buffer)))))

(defun gemini-companion-unified-refresh ()
  "Compare the file and the proposal again."
  (interactive)
  (unless (derived-mode-p 'gemini-companion-unified-mode)
    (user-error "No unified diff in this buffer"))
  (gemini-companion-unified--make (current-buffer)))

(defun gemini-companion-unified-toggle-fold ()
  "Show the lines that are folded here, or fold unchanged lines again.
Elsewhere go to the next fold."
  (interactive)
  (unless (gemini-companion-unified--open-fold)
    (goto-char (or (text-property-not-all (point) (point-max)
                                          'gemini-companion-fold nil)
                   (user-error "No more folded lines")))))

;;;; Hunks

(defun gemini-companion-unified--move (buffer count)
  "Go to the next hunk in BUFFER, or COUNT hunks on."
  (with-selected-window (or (get-buffer-window buffer)
                            (user-error "The diff is not shown here"))
    (dotimes (_ (abs count))
      (goto-char (or (if (< count 0)
                         (gemini-companion-unified--previous)
                       (gemini-companion-unified--next))
                     (user-error "No %s hunk"
                                 (if (< count 0) "previous" "next")))))
    (gemini-companion-unified--reveal)))

(defun gemini-companion-unified--go-to-hunk (buffer hunk)
  "Go to HUNK in BUFFER."
  (when-let* ((window (get-buffer-window buffer)))
    (with-selected-window window
      (let (match)
        (while (not (or (setq match (gemini-companion-unified--lines-of hunk))
                        (not (gemini-companion-unified--show-more)))))
        (when match
          (goto-char (prop-match-beginning match))
          (gemini-companion-unified--reveal))))))

(defun gemini-companion-unified--lines-of (hunk)
  "Return where the lines of HUNK are, a `prop-match', or nil."
  (save-excursion
    (goto-char (point-min))
    (text-property-search-forward 'gemini-companion-hunk hunk
                                  (lambda (one other)
                                    (eql (nth 2 one) (nth 2 other))))))

(defun gemini-companion-unified--places ()
  "Return where each hunk begins, and each further change in a long line."
  (let ((position (point-min))
        places)
    (while (setq position (text-property-not-all
                           position (point-max) 'gemini-companion-change nil))
      (push position places)
      (setq position (1+ position)))
    (nreverse places)))

(defun gemini-companion-unified--next ()
  "Return where the next hunk or change begins, or nil.
If it is folded, show it."
  (or (seq-find (lambda (place) (< (point) place))
                (gemini-companion-unified--places))
      (and (gemini-companion-unified--show-more)
           (gemini-companion-unified--next))))

(defun gemini-companion-unified--show-more ()
  "Show hunks that are folded after all others; return nil if there are none."
  (save-excursion
    (goto-char (point-max))
    (forward-line -1)
    (and (eq 'hunks (car (get-text-property (point) 'gemini-companion-fold)))
         (gemini-companion-unified--open-fold))))

(defun gemini-companion-unified--previous ()
  "Return where the hunk or change before point begins, or nil."
  (car (last (seq-filter (lambda (place) (< place (point)))
                         (gemini-companion-unified--places)))))

(defun gemini-companion-unified--reveal ()
  "Scroll so that the hunk at point is visible with the lines before it."
  (let ((end (cdr (gemini-companion-unified--around
                   (point) 'gemini-companion-hunk))))
    (unless (and (pos-visible-in-window-p)
                 (pos-visible-in-window-p (max (point) (1- end))))
      (recenter (min (1+ gemini-companion-unified--context)
                     (/ (window-body-height) 3))))))

(defun gemini-companion-unified--hunk ()
  "Return the hunk at point, or nil."
  (cond ((not (derived-mode-p 'gemini-companion-unified-mode))
         (user-error "Hunks can be excluded only in the diff"))
        ((gemini-companion-unified--current-p)
         (get-text-property (point) 'gemini-companion-hunk))
        (t
         (gemini-companion-unified--make (current-buffer))
         (user-error "The proposal has changed; the diff was updated"))))

;;;; Editing

(defun gemini-companion-unified--edit (buffer proposal)
  "Show PROPOSAL in the window of its diff, BUFFER, or the other way round."
  (let* ((back (not (eq (current-buffer) buffer)))
         (line (if back
                   (line-number-at-pos nil 'absolute)
                 (gemini-companion-unified--line (line-beginning-position)))))
    (set-window-buffer (selected-window) (if back buffer proposal))
    (with-current-buffer (window-buffer)
      (cond ((not back)
             (gemini-companion-header-set)
             (goto-char (gemini-companion-hunk-line line)))
            (t
             (unless (gemini-companion-unified--current-p)
               (gemini-companion-unified--make buffer))
             (gemini-companion-unified--go-to-line line)))
      (set-window-point nil (point)))))

(defun gemini-companion-unified--go-to-line (line)
  "Go to LINE of the proposal, or to the next line shown."
  (goto-char (gemini-companion-unified--where line))
  ;; Removed lines come before it.
  (while (and (get-text-property (point) 'gemini-companion-hunk)
              (get-text-property (point) 'gemini-companion-old)
              (zerop (forward-line)))))

(provide 'gemini-companion-unified)
;;; gemini-companion-unified.el ends here
