;;; gemini-companion-unified.el --- A proposal as a unified diff  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Display a review as a unified diff: one window with the hunks of a proposal,
;; highlighted by the mode of the file, with line numbers and signs, and with unchanged
;; lines folded.  The text is computed from the buffers of the original and the
;; proposal; numbers and signs are display prefixes, not text.  The overview displays
;; its diffs by the same functions.

;;; Code:

(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-header)
(require 'gemini-companion-hunk)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-page)
(require 'gemini-companion-review)
(require 'gemini-companion-text)
(require 'gemini-companion-unified-draw)
(require 'gemini-companion-view)
(require 'gemini-companion-windows)
(require 'text-property-search)

;;;; Keys

(defvar gemini-companion-unified-mode-map
  ;; The keys of `special-mode' are not inherited.
  (make-composed-keymap nil (gemini-companion-review-make-map 'unified))
  "Keys in the unified view of a review, beside the keys of all views.")

(define-derived-mode gemini-companion-unified-mode special-mode "Proposal"
  "Major mode for a proposal of a CLI as a unified diff.
Each line begins with its numbers in the file and in the proposal,
and a sign: `-' for a removed line, `+' for an added one.  Before the
sign, `x' marks a line of an excluded hunk, `*' a line that you edited.

\\{gemini-companion-unified-mode-map}"
  :interactive nil
  ;; A global mode may have turned on line numbers.
  :after-hook (setq display-line-numbers nil)
  (setq buffer-undo-list t
        truncate-lines nil)
  ;; Highlighting of the current line would hide whether it is removed or added.
  (setq-local global-hl-line-mode nil)
  ;; A line in Hebrew would have its number at the right.
  (setq-local bidi-paragraph-direction 'left-to-right
              glyphless-char-display gemini-companion-text-glyphless
              imenu-create-index-function #'gemini-companion-unified--index)
  (gemini-companion-commands-letters-are-keys 'gemini-companion-unified-mode))

;;;; State

(cl-defstruct (gemini-companion-unified-view
               (:noinline t)
               (:include gemini-companion-view)
               (:constructor gemini-companion-unified-make)
               (:copier nil))
  "A review as a unified diff.
Its buffers are the diff and the proposal.  USER-LINE is the line of the file
at which point was, or nil."
  user-line)

(cl-defstruct (gemini-companion-unified--user-position
               (:noinline t)
               (:constructor gemini-companion-unified--make-user-position (line row))
               (:copier nil))
  "Position of point in the window of a file.
LINE is the number of the line, from 1 on, and ROW the screen line at which it
begins, counted from the top of the frame."
  line row)

;;;; View

(cl-defmethod gemini-companion-view-open
  ((view gemini-companion-unified-view) keep)
  "Show VIEW as a unified diff; KEEP is as in the generic function."
  (let* ((edit (gemini-companion-view-edit view))
         (original (gemini-companion-edit-texts-original edit))
         (window (gemini-companion-windows-for-diff edit keep))
         (position (gemini-companion-unified--user-position-in window edit))
         (buffer (with-current-buffer original ; for its directory
                   (generate-new-buffer
                    (format "*gemini diff: %s*"
                            (gemini-companion-edit-name edit 'plain))))))
    (setf (gemini-companion-view-buffers view)
          (list buffer (gemini-companion-edit-proposal-buffer edit))
          (gemini-companion-unified-view-user-line view)
          (and position
               (min (gemini-companion-unified--user-position-line position)
                    (1+ (gemini-companion-unified-draw-last-line original)))))
    (with-current-buffer buffer
      ;; A failing hook of the user must not prevent the review.
      (gemini-companion-log-guarded "Mode for the review"
        (gemini-companion-unified-mode))
      (gemini-companion-page-set-up
       (lambda () (gemini-companion-unified--write view)) nil)
      (gemini-companion-edit-adopt edit)
      (gemini-companion-header-set)
      (gemini-companion-page-refresh))
    (gemini-companion-windows-show-diff buffer edit window keep)
    (unless (and position (gemini-companion-unified--return-to position))
      (gemini-companion-unified-reveal))))

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
  "Compare the texts of VIEW again, and redraw it."
  (with-current-buffer (car (gemini-companion-view-buffers view))
    (gemini-companion-page-refresh)))

(cl-defmethod gemini-companion-view-follow
  ((view gemini-companion-unified-view) (_event (eql 'changed)))
  "Redraw VIEW soon, as the user has edited its proposal."
  (gemini-companion-page-refresh-soon
   (car (gemini-companion-view-buffers view))))

(cl-defmethod gemini-companion-view-close ((view gemini-companion-unified-view))
  "Kill the buffer of the diff of VIEW."
  (gemini-companion-edit-discard (car (gemini-companion-view-buffers view))))

;;;; User position

;; A diff in the window of its file displays the line of point at the same row, so
;; that the text does not jump.
(defun gemini-companion-unified--user-position-in (window edit)
  "Return the position of the user in WINDOW, a window or nil.
If WINDOW does not display the file of EDIT, return nil."
  (when (and window
             (eq (window-buffer window)
                 (gemini-companion-names-buffer (gemini-companion-edit-file edit))))
    (with-selected-window window
      (let ((beg (line-beginning-position)))
        (gemini-companion-unified--make-user-position
         (line-number-at-pos nil 'absolute)
         (+ (nth 1 (window-body-edges))
            (count-screen-lines (min beg (window-start)) beg)))))))

(defun gemini-companion-unified--return-to (position)
  "Scroll the line of POSITION to its row, and move point to a visible hunk.
Prefer the previous hunk to the next one.  If neither is visible, or the line
is not drawn, return nil and do not move point."
  (when-let* ((first (point))
              (there (text-property-any
                      (point-min) (point-max) 'gemini-companion-old
                      (gemini-companion-unified--user-position-line position))))
    (goto-char there)
    (recenter (max 0 (- (gemini-companion-unified--user-position-row position)
                        (nth 1 (window-body-edges)))))
    ;; If the whole diff fits, do not scroll.
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
  "Compare the texts, and draw the diff of VIEW.
The first time, move point to the first hunk.  The page of VIEW calls this."
  (let ((edit (gemini-companion-view-edit view))
        (first (zerop (buffer-size))))
    ;; A review that has ended stays as it was answered.
    (when (gemini-companion-edit-open-p edit)
      (let ((hunks (gemini-companion-edit-hunks edit)))
        (gemini-companion-page-replace
         (cond (hunks (gemini-companion-unified--drawn view hunks))
               ((gemini-companion-edit-new-p edit)
                "The new file is empty.\n")
               (t "No differences left.\n")))
        (setf (gemini-companion-view-hunks view) hunks)))
    (when first
      (goto-char (or (text-property-not-all (point-min) (point-max)
                                            'gemini-companion-change nil)
                     (point-min))))
    (force-mode-line-update)))

(defun gemini-companion-unified--drawn (view hunks)
  "Return the text of the diff of VIEW with HUNKS.
The buffer of VIEW must be current.  If the user was in the file, the text near
that line is not folded."
  (let* ((edit (gemini-companion-view-edit view))
         (unfolded gemini-companion-unified-draw-unfolded)
         (line (gemini-companion-unified-view-user-line view))
         (drawn (if line
                    (gemini-companion-unified--with-user-line hunks line)
                  hunks))
         (screen (or (cdr (gemini-companion-view-size view)) (frame-height))))
    (with-temp-buffer
      ;; A hook of the user that runs after each change may fail.
      (with-silent-modifications
        (gemini-companion-unified-draw-insert
         edit
         (gemini-companion-edit-texts-original edit)
         (gemini-companion-edit-proposal-buffer edit)
         drawn unfolded screen)
        (gemini-companion-view-insert-notes edit))
      (buffer-string))))

(defun gemini-companion-unified--with-user-line (hunks line)
  "Return HUNKS with an empty hunk at LINE of the file, which begins at 1.
If LINE is in a hunk, return HUNKS."
  (let* ((before (seq-take-while (lambda (hunk)
                                   (<= (gemini-companion-hunk-old hunk) line))
                                 hunks))
         (last (or (car (last before)) (gemini-companion-hunk-make 1 0 1 0)))
         ;; The number of unchanged lines between the previous hunk and LINE.
         (between (- line (gemini-companion-hunk-old-end last))))
    (if (< between 0)
        hunks
      (append before
              (list (gemini-companion-hunk-make
                     line 0 (+ (gemini-companion-hunk-new-end last) between) 0))
              (nthcdr (length before) hunks)))))

(cl-defmethod gemini-companion-view-edited-label ((_ gemini-companion-unified-view))
  "Return the label of the key to go back to the diff."
  "back to the diff")

(cl-defmethod gemini-companion-view-line ((_ gemini-companion-unified-view))
  "Return the line of the proposal at point, or the next displayed line."
  (if-let* ((there (text-property-not-all (line-beginning-position) (point-max)
                                          'gemini-companion-line nil)))
      (get-text-property there 'gemini-companion-line)
    most-positive-fixnum))

;;;; Hunks

(cl-defmethod gemini-companion-view-move
  ((view gemini-companion-unified-view) count)
  "Go forward by COUNT hunks in VIEW, or by changes in a long line.
If the proposal is the current buffer, move in the proposal."
  (pcase-let ((`(,buffer ,proposal) (gemini-companion-view-buffers view)))
    (if (eq (current-buffer) proposal)
        (gemini-companion-unified--move-in-proposal count)
      (with-selected-window (or (get-buffer-window buffer)
                                (user-error "The diff is not displayed"))
        (gemini-companion-unified--move-in-diff count)
        (gemini-companion-unified-reveal)))))

(defun gemini-companion-unified--move-in-proposal (count)
  "Go forward by COUNT hunks in the current buffer, a proposal."
  (let* ((back (< count 0))
         (here (line-number-at-pos nil 'absolute))
         (lines (mapcar #'gemini-companion-hunk-new
                        (gemini-companion-edit-hunks gemini-companion-edit-here)))
         (further (if back
                      (nreverse (seq-filter (lambda (line) (< line here)) lines))
                    (seq-filter (lambda (line) (< here line)) lines)))
         (line (or (nth (1- (abs count)) further)
                   (gemini-companion-unified--no-hunk back))))
    (widen)
    (goto-char (gemini-companion-hunk-line line))))

(defun gemini-companion-unified--move-in-diff (count)
  "Go forward by COUNT hunks or changes in the current buffer, a diff.
Draw more of a long diff if necessary."
  (let ((back (< count 0)))
    (dotimes (_ (abs count))
      (goto-char (or (gemini-companion-unified-change back)
                     (and (not back)
                          (gemini-companion-unified--show-more)
                          (gemini-companion-unified-change))
                     (gemini-companion-unified--no-hunk back))))))

(defun gemini-companion-unified--no-hunk (back)
  "Signal a `user-error': no next hunk, or if BACK is non-nil, no previous one."
  (user-error "No %s hunk" (if back "previous" "next")))

(cl-defmethod gemini-companion-view-go-to ((view gemini-companion-unified-view)
                                           number)
  "Go to the hunk with NUMBER, from 0 on, in VIEW."
  (when-let* ((window (get-buffer-window
                       (car (gemini-companion-view-buffers view)))))
    (with-selected-window window
      (when-let* ((hunk (nth number (gemini-companion-view-hunks view)))
                  (position (gemini-companion-unified--draw-to
                             (gemini-companion-hunk-new hunk))))
        (goto-char position)
        (gemini-companion-unified-reveal)))))

(defun gemini-companion-unified--draw-to (line)
  "Return the position of LINE of the proposal in the diff, or nil.
Draw more of a long diff until it has LINE."
  (let ((find (lambda ()
                (text-property-any (point-min) (point-max)
                                   'gemini-companion-line line))))
    (while (and (not (funcall find))
                (gemini-companion-unified--show-more)))
    (funcall find)))

(defun gemini-companion-unified-change (&optional back)
  "Return the position of the next visible hunk or change, or nil.
If BACK is non-nil, return the position of the previous one."
  (let ((positions (gemini-companion-unified--changes)))
    (if back
        (car (last (seq-take-while (lambda (position) (< position (point)))
                                   positions)))
      (seq-find (lambda (position) (< (point) position)) positions))))

(defun gemini-companion-unified--changes ()
  "Return the positions of the visible hunks and changes, in order."
  (let* ((next (lambda (position)
                 (text-property-not-all position (point-max)
                                        'gemini-companion-change nil)))
         (position (funcall next (point-min)))
         (positions nil))
    (while position
      (unless (invisible-p position)
        (push position positions))
      (setq position (funcall next (1+ position))))
    (nreverse positions)))

(defun gemini-companion-unified--index ()
  "Return the visible hunks and changes of this diff as an index of Imenu.
The value is a list of (NAME . POSITION), in order.  NAME is the number of
the line in the proposal, or in the file if it was removed, and its text."
  (mapcar (lambda (position)
            (save-excursion
              (goto-char position)
              (cons (format "%s: %s"
                            (or (get-text-property position 'gemini-companion-line)
                                (get-text-property position 'gemini-companion-old)
                                "-")
                            (string-trim (buffer-substring-no-properties
                                          position (line-end-position))))
                    position)))
          (gemini-companion-unified--changes)))

(defun gemini-companion-unified--show-more ()
  "Draw more of a long diff, and return t; return nil if all is drawn."
  (let ((fold (get-text-property (1- (point-max)) 'gemini-companion-fold)))
    (when (eq 'more (cadr fold))
      (gemini-companion-unified-toggle-fold fold)
      t)))

(defun gemini-companion-unified-reveal ()
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
          ((get-text-property (point) 'gemini-companion-line)
           (- (point) beg))
          (t 0))))

(cl-defmethod gemini-companion-view-edit-proposal ((view gemini-companion-unified-view))
  "Replace the diff of VIEW by its proposal in the window, or vice versa.
In the proposal, move point to the same character; in the diff, to its line or
to the fold that contains it."
  (pcase-let ((`(,buffer ,proposal) (gemini-companion-view-buffers view)))
    (if (eq (current-buffer) buffer)
        (let ((line (gemini-companion-view-line view))
              (column (gemini-companion-unified--column)))
          (gemini-companion-windows-exchange proposal)
          (with-current-buffer proposal
            (gemini-companion-header-set)
            (widen)
            (goto-char (gemini-companion-hunk-line line))
            (goto-char (min (+ (point) column) (line-end-position)))
            (set-window-point nil (point))))
      (let ((line (line-number-at-pos nil 'absolute)))
        (gemini-companion-windows-exchange buffer)
        (with-current-buffer buffer
          (gemini-companion-page-refresh)
          (gemini-companion-unified--go-to-line line)
          (set-window-point nil (point)))))))

(defun gemini-companion-unified--go-to-line (line)
  "Go to LINE of the proposal in the diff, or to the fold that has it."
  (goto-char (point-max))
  (let ((last (text-property-search-backward
               'gemini-companion-line line
               (lambda (line there) (and there (<= there line))))))
    ;; A fold with the line, or a remark, may follow it.
    (goto-char (if last (prop-match-end last) (point-min)))
    (when (or (eobp) (and last (= line (prop-match-value last))))
      (forward-line -1))))

(provide 'gemini-companion-unified)
;;; gemini-companion-unified.el ends here
