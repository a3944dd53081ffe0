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

(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-header)
(require 'gemini-companion-hunk)
(require 'gemini-companion-names)
(require 'gemini-companion-page)
(require 'gemini-companion-review)
(require 'gemini-companion-server-log)
(require 'gemini-companion-text)
(require 'gemini-companion-unified-draw)
(require 'gemini-companion-view)
(require 'gemini-companion-windows)
(require 'text-property-search)

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
  ;; The face of the current line would hide whether it is removed or added.
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
         (original (gemini-companion-edit-texts-original edit))
         (place (gemini-companion-windows-place-of-diff edit keep))
         (row (gemini-companion-unified--row edit place))
         (buffer (with-current-buffer original ; for its directory
                   (generate-new-buffer
                    (format "*gemini diff: %s*"
                            (gemini-companion-edit-name edit 'plain))))))
    (setf (gemini-companion-view-buffers view)
          (list buffer (gemini-companion-edit-proposal-buffer edit))
          (gemini-companion-unified-view-user-line view)
          (and row (min (car row)
                        (1+ (gemini-companion-unified-draw-last-line original)))))
    (with-current-buffer buffer
      ;; A failing hook of the user must not prevent the review.
      (gemini-companion-server-log-guarded "Mode for the review"
        (gemini-companion-unified-mode))
      (gemini-companion-page-set-up
       (lambda () (gemini-companion-unified--write view)) nil)
      (gemini-companion-edit-adopt edit)
      (gemini-companion-header-set)
      (gemini-companion-page-refresh))
    (gemini-companion-windows-show-diff buffer edit place keep)
    (unless (and row (gemini-companion-unified--restore-row row))
      (gemini-companion-unified--reveal))))

(cl-defmethod gemini-companion-view-hunk ((view gemini-companion-unified-view))
  "Return the hunk at point in VIEW, or nil."
  (if (eq (car (gemini-companion-view-buffers view)) (current-buffer))
      (get-text-property (point) 'gemini-companion-hunk)
    (let ((line (line-number-at-pos nil 'absolute)))
      (seq-find (lambda (hunk)
                  ;; A hunk without lines in the proposal is at the next one.
                  (<= (gemini-companion-hunk-new hunk)
                      line
                      (max (gemini-companion-hunk-new hunk)
                           (1- (gemini-companion-hunk-new-end hunk)))))
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

;;;; Text

(defun gemini-companion-unified--write (view)
  "Compare again, and draw the diff of VIEW; at first, go to its first hunk."
  (let ((edit (gemini-companion-view-edit view))
        (unfolded gemini-companion-unified-draw-unfolded)
        (first (zerop (buffer-size))))
    ;; A review that has ended stays as it was answered.
    (when (gemini-companion-edit-open-p edit)
      (let ((hunks (gemini-companion-edit-hunks edit)))
        (gemini-companion-page-replace
         (with-temp-buffer
           ;; A hook of the user may fail.
           (with-silent-modifications
             (if hunks
                 (gemini-companion-unified-draw-insert
                  edit
                  (gemini-companion-edit-texts-original edit)
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
The text near it is not folded, as that near the others.  If LINE is nil,
or in a hunk, return HUNKS."
  (let* ((before (and line
                      (seq-take-while (lambda (hunk)
                                        (<= (gemini-companion-hunk-old hunk) line))
                                      hunks)))
         (last (or (car (last before)) (gemini-companion-hunk-make 1 0 1 0)))
         (beyond (and line (- line (gemini-companion-hunk-old-end last)))))
    (if (or (null line) (< beyond 0))
        hunks
      (append before
              (list (gemini-companion-hunk-make
                     line 0 (+ (gemini-companion-hunk-new-end last) beyond) 0))
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
                                 (mapcar #'gemini-companion-hunk-new hunks)
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
                                                        (gemini-companion-hunk-new
                                                         hunk))
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
    (gemini-companion-windows-exchange (if back buffer proposal))
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
