;;; gemini-companion-comment.el --- Comments on what a CLI has written  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The user comments on lines, and sends the comments to a CLI.  The same command
;; comments in the overview, in a review and in a file.
;;
;; A comment is anchored to lines of a text: the proposal while it awaits an answer,
;; then the file; or the plan about which a CLI asks.  In a buffer with that text, an
;; overlay follows the lines and displays the comment.  In other buffers, and after a
;; revert or a command that replaced the lines, they are searched for: the nearest equal
;; lines.  If there are none, the comment is displayed at the top, and sent without a line
;; number.
;;
;; A comment without lines is about its file.

;;; Code:

(require 'gemini-companion-changes)
(require 'gemini-companion-choice)
(require 'gemini-companion-context)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-hunk)
(require 'gemini-companion-lines)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-proposal)
(require 'gemini-companion-revert)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-view)
(require 'gemini-companion-windows-beside)

;;;; Customization

(defface gemini-companion-comment
  '((t :inherit (italic font-lock-variable-name-face)))
  "Face of comments on lines."
  :group 'gemini-companion-reviews)

;; The colors that a text terminal has are more distinct.
(defface gemini-companion-comment-block
  '((((type tty) (class color) (min-colors 256) (background light))
     :background "#ffffd7" :extend t)
    (((type tty) (class color) (min-colors 256) (background dark))
     :background "#303030" :extend t)
    (((class color) (min-colors 256) (background light))
     :background "#fdf6e3" :extend t)
    (((class color) (min-colors 256) (background dark))
     :background "#2f2b1d" :extend t)
    (t :extend t))
  "Face of the background of comments in the overview and in reviews."
  :group 'gemini-companion-reviews)

(defface gemini-companion-comment-sent
  '((t :inherit (italic shadow)))
  "Face of comments on lines that were sent to the CLI."
  :group 'gemini-companion-reviews)

;;;; State

(defvar gemini-companion-comment--count 0
  "Number of comments that were made in this Emacs.")

(cl-defstruct (gemini-companion-comment
               (:noinline t)
               (:constructor gemini-companion-comment--make)
               (:copier nil))
  "A comment of the user on lines of a file, or on a file.
FILE is its true name, and PATH its name as the CLI sent it or Emacs has
it.  SESSION is the CLI to which it is sent, or nil if none is known.  EDIT is
the request on whose text it was made while that awaits an answer, a proposal or
a plan, or nil.  A plan has neither FILE nor PATH.

SIDE is `after' for lines that the file or the proposal has, and `before'
for removed lines.  LINES are these lines, a list of strings without newlines;
it is nil for a comment on the file.  FIRST is the last known number of the
first line, from 1 on, or nil if the lines are gone; then LAST is the number
before that.  OVERLAY is on the lines in a buffer that has the text, or nil.

TEXT is the comment.  GOING is non-nil while a prompt with it is on its way to
the CLI.  SENT is the time when the prompt was submitted, and COPIED the time
when it was added to the kill ring instead, in seconds, or nil."
  file path session edit side lines first last overlay
  text going sent copied
  (number (cl-incf gemini-companion-comment--count)
          :documentation "How many comments were made by then."))

(defvar gemini-companion-comment--all nil
  "The comments on files, the last one first.")

(defvar gemini-companion-comment--times nil
  "Times when comments were sent: a list of (SESSION . SECONDS), the last first.")

(defvar gemini-companion-comment-functions nil
  "Functions called with a comment that was made, edited, removed or sent.
The argument is nil after a change of the opening of a prompt.")

(defun gemini-companion-comments ()
  "Return the comments on files, in the order in which they were made."
  (reverse gemini-companion-comment--all))

(defun gemini-companion-comments-unsent ()
  "Return all unsent comments, in the order in which they were made.
Include the comments on open proposals."
  (seq-sort-by #'gemini-companion-comment-number #'<
               (seq-remove #'gemini-companion-comment-sent
                           (append (seq-mapcat #'gemini-companion-edit-comments
                                               (gemini-companion-edits-open))
                                   gemini-companion-comment--all))))

(defun gemini-companion-comment-waiting-p (comment)
  "Return non-nil if COMMENT is neither sent nor on its way to a CLI."
  (not (or (gemini-companion-comment-sent comment)
           (gemini-companion-comment-going comment))))

(setq gemini-companion-proposal-unsent-function
      (lambda (edit)
        (seq-count #'gemini-companion-comment-waiting-p
                   (gemini-companion-edit-comments edit))))

(defun gemini-companion-comments-of-file (file)
  "Return the comments on FILE, a true name, in the order of lines.
On the same line, comments on removed lines come first, and then the comment
that was made first."
  (let ((comments (seq-filter (lambda (comment)
                                (equal file (gemini-companion-comment-file comment)))
                              (gemini-companion-comments))))
    ;; Sorting is stable.  What is on the file, or on lines that are gone, comes first.
    (seq-sort-by (lambda (comment) (or (gemini-companion-comment--now comment) 0)) #'<
                 (append (seq-filter #'gemini-companion-comment--removed-p comments)
                         (seq-remove #'gemini-companion-comment--removed-p
                                     comments)))))

(defun gemini-companion-comment--file-of-edit (edit)
  "Return the true name of the file that EDIT has written or is to write.
If Emacs has renamed the file since, return the new name."
  (if-let* ((record (gemini-companion-changes-with-edit edit)))
      (gemini-companion-changes-file-name record)
    (gemini-companion-edit-true-name edit)))

(defun gemini-companion-comment--removed-p (comment)
  "Return non-nil if COMMENT is on lines that were removed."
  (eq 'before (gemini-companion-comment-side comment)))

(defun gemini-companion-comment-times (session)
  "Return the times when comments were sent to the CLI of SESSION, the last first.
The value is a list of seconds; the comments may have been removed."
  (cl-loop for (other . time) in gemini-companion-comment--times
           when (gemini-companion-session-same-p session other)
           collect time))

(defun gemini-companion-comment-set-going (comments)
  "Record that a prompt with COMMENTS is on its way."
  (dolist (comment comments)
    (setf (gemini-companion-comment-going comment) t)))

(defun gemini-companion-comment-set-sent (comments session)
  "Record that COMMENTS were sent to the CLI of SESSION now."
  (let ((now (float-time)))
    (when comments
      (push (cons session now) gemini-companion-comment--times))
    (dolist (comment comments)
      (setf (gemini-companion-comment-sent comment) now
            (gemini-companion-comment-going comment) nil
            (gemini-companion-comment-copied comment) nil
            (gemini-companion-comment-session comment) session)
      (gemini-companion-comment--changed comment))))

(defun gemini-companion-comment--changed (comment)
  "Display COMMENT again where it is displayed."
  (gemini-companion-comment--show comment)
  (gemini-companion-comment--report comment))

(defun gemini-companion-comment--report (comment)
  "Report that COMMENT has changed."
  (run-hook-with-args 'gemini-companion-comment-functions comment)
  (when-let* ((request (gemini-companion-comment-edit comment)))
    (gemini-companion-request-commented request)))

(defun gemini-companion-comment--add (comment)
  "Add COMMENT to those of its proposal or plan, or of its file."
  (if-let* ((edit (gemini-companion-comment-edit comment)))
      (cl-pushnew comment (gemini-companion-request-comments edit) :test #'eq)
    (cl-pushnew comment gemini-companion-comment--all :test #'eq))
  (gemini-companion-comment--changed comment))

(defun gemini-companion-comment--remove (comment)
  "Remove COMMENT, and add its text to the kill ring."
  (when (gemini-companion-comment-text comment)
    (kill-new (gemini-companion-comment-text comment)))
  (if-let* ((edit (gemini-companion-comment-edit comment)))
      (cl-callf2 remq comment (gemini-companion-request-comments edit))
    (cl-callf2 remq comment gemini-companion-comment--all))
  (gemini-companion-comment--hide comment)
  (gemini-companion-comment--report comment))

;;;; Anchors

(defun gemini-companion-comment--now (comment)
  "Return the number of the first line of COMMENT, or nil if its lines are gone.
It is that of its live overlay, or else the last one that is known.  Removed
lines are counted in the text before their removal."
  (let ((overlay (gemini-companion-comment-overlay comment)))
    (if (and (gemini-companion-comment-first comment)
             (gemini-companion-comment--live-p comment))
        (gemini-companion-text-line (overlay-buffer overlay) (overlay-start overlay))
      (gemini-companion-comment-first comment))))

(defun gemini-companion-comment--anchored-p (comment)
  "Return non-nil if the buffer of COMMENT has the text with its lines.
The buffer of a file has no lines that were removed."
  (and (gemini-companion-comment-lines comment)
       (or (gemini-companion-comment-edit comment)
           (eq 'after (gemini-companion-comment-side comment)))))

(defun gemini-companion-comment--set-first (comment first)
  "Record that the lines of COMMENT begin at the line FIRST."
  (setf (gemini-companion-comment-first comment) first
        (gemini-companion-comment-last comment) first))

(defun gemini-companion-comment--equal-p (quoted lines start)
  "Return non-nil if LINES have QUOTED from index START on.
QUOTED are lines without newlines."
  (and (<= 0 start)
       (<= (+ start (length quoted)) (length lines))
       (cl-loop for text in quoted
                for i from start
                always (string= text (gemini-companion-comment--bare (aref lines i))))))

(defun gemini-companion-comment--bare (line)
  "Return LINE without a newline at its end."
  (string-remove-suffix "\n" line))

(defun gemini-companion-comment--find (comment lines)
  "Return the number of the first line of COMMENT in LINES, or nil.
LINES is a vector of strings with newlines.  Of several equal lines, return the
nearest ones to the last known position, rather below it than above."
  (let* ((quoted (gemini-companion-comment-lines comment))
         (matches (and quoted
                       (cl-loop for i from 0 to (- (length lines) (length quoted))
                                when (gemini-companion-comment--equal-p quoted lines i)
                                collect (1+ i))))
         (near (or (gemini-companion-comment-first comment)
                   (gemini-companion-comment-last comment)
                   1)))
    (car (seq-sort-by (lambda (number) (abs (- number near))) #'<
                      (nreverse matches)))))

(defun gemini-companion-comment--range (comment lines)
  "Return (FIRST . LAST), where COMMENT is in LINES, from 1 on, or nil.
LINES is a vector of strings with newlines, the text that has the side of
COMMENT.  Return nil if its lines are not there, or for a comment on a file."
  (let* ((quoted (gemini-companion-comment-lines comment))
         (now (gemini-companion-comment--now comment))
         (first (if (and now
                         quoted
                         (gemini-companion-comment--live-p comment)
                         (gemini-companion-comment--equal-p quoted lines (1- now)))
                    now
                  (gemini-companion-comment--find comment lines))))
    (and first (cons first (+ first (length quoted) -1)))))

(defun gemini-companion-comment--live-p (comment)
  "Return non-nil if an overlay follows the lines of COMMENT.
If the lines were deleted, the overlay is empty, even if equal lines follow it."
  (let ((overlay (gemini-companion-comment-overlay comment)))
    (and overlay
         (overlay-buffer overlay)
         (gemini-companion-comment--anchored-p comment)
         (or (< (overlay-start overlay) (overlay-end overlay))
             (equal '("") (gemini-companion-comment-lines comment))))))

(defun gemini-companion-comment-positions (file after before)
  "Return the positions of the comments on FILE, a true name: (KEY . COMMENT)s.
AFTER and BEFORE are the lines with the changes and without them, vectors.
KEY is as for `gemini-companion-comment--key', or nil for a comment whose
lines are in neither text, or that is on FILE as a whole.  Lines that the CLI
had written may have been removed, and removed lines may have been restored."
  (mapcar (lambda (comment)
            (let* ((side (gemini-companion-comment-side comment))
                   (other (if (eq side 'after) 'before 'after))
                   (position (lambda (side)
                               (when-let* ((range (gemini-companion-comment--range
                                                   comment
                                                   (if (eq side 'after) after before))))
                                 (gemini-companion-comment--key
                                  side (car range) (cdr range))))))
              (cons (or (funcall position side) (funcall position other)) comment)))
          (gemini-companion-comments-of-file file)))

(defun gemini-companion-comment-positions-of-edit (edit)
  "Return the positions of the comments on EDIT, a list of (KEY . COMMENT).
EDIT is a proposal, or another request with a text of its own, such as a plan.
They are in the order in which they were made.  For KEY, see
`gemini-companion-comment--key'."
  (mapcar (lambda (comment)
            (let ((first (gemini-companion-comment--now comment)))
              (cons (and first
                         (gemini-companion-comment-lines comment)
                         (gemini-companion-comment--key
                          (gemini-companion-comment-side comment) first
                          (gemini-companion-comment--last comment first)))
                    comment)))
          (reverse (gemini-companion-request-comments edit))))

(defun gemini-companion-comment--last (comment first)
  "Return the number of the last line of COMMENT, whose first line is FIRST.
In a proposal that the user edits, the number of its lines may have changed."
  (let ((overlay (gemini-companion-comment-overlay comment)))
    (if (gemini-companion-comment--live-p comment)
        (max first (gemini-companion-text-line (overlay-buffer overlay)
                                               (overlay-end overlay)))
      (+ first (length (gemini-companion-comment-lines comment)) -1))))

(defun gemini-companion-comment-state (file)
  "Return a value that differs, by `equal', after a change of comments on FILE."
  (gemini-companion-comment--state-of (gemini-companion-comments-of-file file)))

(defun gemini-companion-comment--state-of (comments)
  "Return a value that differs, by `equal', after a change of COMMENTS."
  (mapcar (lambda (comment)
            (list (gemini-companion-comment--now comment)
                  (gemini-companion-comment-text comment)
                  (gemini-companion-comment--mark comment)))
          comments))

(defun gemini-companion-comment-state-of-edit (edit)
  "Return a value that differs, by `equal', after a change of comments on EDIT."
  (gemini-companion-comment--state-of (gemini-companion-edit-comments edit)))

(defun gemini-companion-comment--mark (comment &optional placed)
  "Return what is displayed before the text of COMMENT, or the empty string.
PLACED is non-nil if it is displayed below its lines, even if they are gone."
  (concat (cond ((gemini-companion-comment-sent comment) "(sent) ")
                ((gemini-companion-comment-copied comment) "(copied) ")
                ((gemini-companion-comment-going comment) "(being sent) ")
                (t ""))
          (and (not placed)
               (gemini-companion-comment-lines comment)
               (null (gemini-companion-comment-first comment))
               "(line is gone) ")))

;;;; Below the lines of a diff

(defun gemini-companion-comment-insert (positions)
  "Insert comments below their lines of the diff in the current buffer.
POSITIONS is a list of (KEY . COMMENT) as of
`gemini-companion-comment-positions'.  Comments without a KEY are inserted at
the top.  Return the POSITIONS whose lines the diff does not have."
  (let ((left (seq-filter #'car positions)))
    (goto-char (point-min))
    (dolist (position positions)
      (unless (car position)
        (gemini-companion-comment--insert-one
         position (text-properties-at (point)))))
    (while (not (eobp))
      (let ((here (gemini-companion-comment--at
                   (gemini-companion-comment--key-of-line) left))
            (properties (text-properties-at (point))))
        (forward-line)
        (dolist (position here)
          (setq left (delq position left))
          (gemini-companion-comment--insert-one position properties))))
    left))

(defun gemini-companion-comment--insert-one (position properties)
  "Insert the comment of POSITION at point, with the text PROPERTIES of its line."
  (let ((beg (point)))
    (insert (apply #'propertize
                   (concat "  " (gemini-companion-comment--indented
                                 (gemini-companion-comment--shown position))
                           "\n")
                   properties))
    (add-text-properties beg (point) (gemini-companion-comment--block (cdr position)))
    (put-text-property beg (point) 'gemini-companion-change nil)))

(defun gemini-companion-comment--block (comment)
  "Return text properties that make COMMENT a block with a bar at its left."
  (let* ((face (list (gemini-companion-comment--face comment)
                     'gemini-companion-comment-block))
         (bar (propertize (gemini-companion-text-sign ?\u258E "|") 'face face)))
    (list 'face face
          'line-prefix bar
          'wrap-prefix (concat bar (propertize "     " 'face face)))))

(defun gemini-companion-comment--shown (position)
  "Return the text of POSITION, (KEY . COMMENT), as it is displayed.
The text of a comment on several lines has their numbers."
  (pcase-let ((`(,key . ,comment) position))
    (concat ">> "
            (when (consp (cdr key))
              (concat (gemini-companion-hunk-range (cdr key)) ": "))
            (gemini-companion-comment--mark comment key)
            (gemini-companion-comment-text comment))))

(defun gemini-companion-comment--face (comment)
  "Return the face of COMMENT."
  (if (or (gemini-companion-comment-sent comment)
          (gemini-companion-comment-copied comment))
      'gemini-companion-comment-sent
    'gemini-companion-comment))

(defun gemini-companion-comment--at (key positions)
  "Return those of POSITIONS that are displayed below the line with KEY.
A comment on several lines is below the last one."
  (seq-filter (pcase-lambda (`(,other . ,_))
                (and key other
                     (eq (car key) (car other))
                     (eql (cdr (gemini-companion-comment--ends (cdr key)))
                          (cdr (gemini-companion-comment--ends (cdr other))))))
              positions))

(defun gemini-companion-comment--key-of-line ()
  "Return the key of the line of a diff at point, or nil.
For a removed line, it is a cons of `before' and its number in the file;
for any other line, one of `after' and its number in the proposal."
  (let ((old (get-text-property (point) 'gemini-companion-old))
        (new (get-text-property (point) 'gemini-companion-line)))
    (cond ((null new) nil)
          ((and old (get-text-property (point) 'gemini-companion-hunk))
           (cons 'before old))
          (t (cons 'after new)))))

(defun gemini-companion-comment--line-key ()
  "Return the key of a comment on the line of a diff at point, or nil.
On a removed line with a replacement, return the key of the replacement: the
command that goes to the next change goes to the first line of the change."
  (let ((key (gemini-companion-comment--key-of-line)))
    (if (eq 'before (car key))
        (gemini-companion-comment--hunk-key
         (get-text-property (point) 'gemini-companion-hunk))
      key)))

(defun gemini-companion-comment--region-key (edit-here)
  "Return the key of a comment on the lines of the region in a diff, or nil.
If the region has lines that the CLI has written, removed lines do not count.
EDIT-HERE is a function that returns the edit at point: only lines of the edit
at the end of the region count."
  (pcase-let* ((`(,beg . ,end) (gemini-companion-text-region))
               (edit (save-excursion (goto-char end) (funcall edit-here)))
               (keys nil))
    (save-excursion
      (goto-char beg)
      (while (and (<= (point) end) (not (eobp)))
        (when-let* (((eq edit (funcall edit-here)))
                    (key (gemini-companion-comment--key-of-line)))
          (push key keys))
        (forward-line)))
    (let* ((side (if (assq 'after keys) 'after 'before))
           (lines (cl-loop for (other . line) in keys
                           when (eq side other) collect line)))
      (when lines
        (gemini-companion-comment--key side (apply #'min lines)
                                       (apply #'max lines))))))

(defun gemini-companion-comment--key (side first last)
  "Return the key of a comment on the lines from FIRST to LAST of SIDE.
It is a cons (SIDE . LINES).  LINES is a number, or a cons (FIRST . LAST) for
several lines.  SIDE is `before' for removed lines, which are counted in the
text before, or `after' for other lines, which are counted in the text after."
  (cons side (if (= first last) first (cons first last))))

(defun gemini-companion-comment--ends (lines)
  "Return (FIRST . LAST) for LINES of a key, a number or (FIRST . LAST)."
  (if (consp lines) lines (cons lines lines)))

(defun gemini-companion-comment-insert-with-lines (position lines)
  "Insert POSITION, (KEY . COMMENT), at point, with the lines that it is on.
LINES is the text that has them, a vector of lines with newlines.  If other
lines are there now, or the file is missing, insert no line numbers."
  (pcase-let* ((`(,key . ,comment) position)
               (quoted (gemini-companion-comment-lines comment))
               (first (and key (car (gemini-companion-comment--ends (cdr key)))))
               (there (and first
                           (gemini-companion-comment--equal-p quoted lines (1- first)))))
    (cl-loop for line in quoted
             for number from (or first 1)
             do (insert (propertize
                         (concat line "\n")
                         'line-prefix (and there
                                           (propertize (format "%d " number)
                                                       'face 'line-number))
                         'gemini-companion-line number
                         'gemini-companion-old (and (eq 'before (car key)) number))))
    (insert (apply #'propertize
                   (concat "  " (gemini-companion-comment--indented
                                 (gemini-companion-comment--shown position))
                           "\n")
                   'gemini-companion-line
                   (+ (or first 1) (max 0 (1- (length quoted))))
                   (gemini-companion-comment--block comment)))))

;;;; In a buffer

(cl-defgeneric gemini-companion-comment--buffer-of (request _side)
  "Return the buffer that has the commented text of REQUEST."
  (gemini-companion-request-buffer request))

(cl-defmethod gemini-companion-comment--buffer-of ((edit gemini-companion-edit) side)
  "Return the buffer of the proposal of EDIT; of the original for SIDE `before'."
  (if (eq 'before side)
      (gemini-companion-edit-original-buffer edit)
    (gemini-companion-edit-proposal-buffer edit)))

(defun gemini-companion-comment--buffer (comment)
  "Return the buffer that displays COMMENT, or nil.
It is the buffer of the proposal or plan, or else the one that visits the file."
  (let* ((edit (gemini-companion-comment-edit comment))
         (buffer (if edit
                     (gemini-companion-comment--buffer-of
                      edit (gemini-companion-comment-side comment))
                   (gemini-companion-names-buffer
                    (gemini-companion-comment-path comment)))))
    (and (buffer-live-p buffer) buffer)))

(defun gemini-companion-comment--show (comment)
  "Display COMMENT in its buffer, if there is one."
  (when-let* ((buffer (gemini-companion-comment--buffer comment)))
    (with-current-buffer buffer
      (save-excursion
        (save-restriction
          (widen)
          (unless (and (gemini-companion-comment-overlay comment)
                       (eq buffer (overlay-buffer
                                   (gemini-companion-comment-overlay comment))))
            (setf (gemini-companion-comment-overlay comment)
                  (gemini-companion-comment--make-overlay comment))
            (gemini-companion-comment--move comment (gemini-companion-comment--text))
            (add-hook 'kill-buffer-hook #'gemini-companion-comment--detach nil t)
            (add-hook 'before-revert-hook #'gemini-companion-comment--before-revert
                      nil t))
          (gemini-companion-comment--set-string comment))))))

(defun gemini-companion-comment--make-overlay (comment)
  "Return a new overlay for COMMENT in the current buffer."
  ;; A line that is inserted before or after the lines is not one of them.
  (let ((overlay (make-overlay (point-min) (point-min) nil t nil)))
    (overlay-put overlay 'gemini-companion-comment comment)
    ;; Emacs displays the after-string with the higher priority first.
    (overlay-put overlay 'priority
                 (max 0 (- 10000 (gemini-companion-comment-number comment))))
    (dolist (hook '(modification-hooks insert-in-front-hooks insert-behind-hooks))
      (overlay-put overlay hook '(gemini-companion-comment--follow-text)))
    overlay))

(defun gemini-companion-comment--text ()
  "Return all lines of the current buffer, ignoring narrowing, a vector."
  (gemini-companion-lines-split (gemini-companion-text-of-buffer)))

(defun gemini-companion-comment--move (comment lines &optional in-place)
  "Move the overlay of COMMENT to its lines in LINES, those of the current buffer.
If LINES do not have them, move it to the top.  If IN-PLACE is non-nil, only
lines that differ were replaced, so the overlay stays if it is on its lines."
  (let* ((first (gemini-companion-comment-first comment))
         (now (and in-place (gemini-companion-comment--now comment)))
         (quoted (gemini-companion-comment-lines comment)))
    (cond
     ((null quoted)
      (gemini-companion-comment--cover comment nil nil))
     ((not (gemini-companion-comment--anchored-p comment))
      ;; A comment on removed lines is displayed at the line before them.
      (let ((line (and first (max 1 (1- first)))))
        (gemini-companion-comment--cover comment line line)))
     (t
      (let ((number (if (and now
                             (gemini-companion-comment--equal-p quoted lines (1- now)))
                        now
                      (gemini-companion-comment--find comment lines))))
        (if number
            (gemini-companion-comment--set-first comment number)
          (setf (gemini-companion-comment-first comment) nil))
        (gemini-companion-comment--cover
         comment number (and number (+ number (length quoted) -1))))))))

(defun gemini-companion-comment--cover (comment first last)
  "Let the overlay of COMMENT cover the lines from FIRST to LAST, or none if nil."
  (let ((overlay (gemini-companion-comment-overlay comment)))
    (if (null first)
        (move-overlay overlay (point-min) (point-min))
      (move-overlay overlay
                    (gemini-companion-hunk-position (1- first))
                    (save-excursion
                      (goto-char (gemini-companion-hunk-position (1- last)))
                      (line-end-position))))))

(defun gemini-companion-comment--follow-text (overlay after &rest _)
  "Display the comment of OVERLAY again after its text was changed.
This is a hook of OVERLAY for modifications; AFTER is nil before the change."
  (when after
    (gemini-companion-comment--set-string
     (overlay-get overlay 'gemini-companion-comment)))
  ;; In Emacs 28, undo moves the ends of overlays after that.
  (add-hook 'post-command-hook #'gemini-companion-comment--show-again nil t))

(defun gemini-companion-comment--remember (comment)
  "Record on which line of its buffer COMMENT is, or that its lines are gone."
  (cond ((not (gemini-companion-comment--anchored-p comment)))
        ((not (gemini-companion-comment--live-p comment))
         (setf (gemini-companion-comment-first comment) nil))
        ((gemini-companion-comment-first comment)
         (gemini-companion-comment--set-first
          comment (gemini-companion-comment--now comment)))))

(defun gemini-companion-comment--here ()
  "Return the comments that the current buffer displays."
  (delq nil (mapcar (lambda (overlay)
                      (overlay-get overlay 'gemini-companion-comment))
                    (save-restriction
                      (widen)
                      (overlays-in (point-min) (point-max))))))

(defun gemini-companion-comment--before-revert ()
  "Record the positions of the comments in the current buffer.
Its text will be reverted, or merged with what a CLI has written."
  (mapc #'gemini-companion-comment--remember (gemini-companion-comment--here)))

(defun gemini-companion-comment--after-revert ()
  "Search for the comments in the current buffer after a revert.
Also display the comments on a proposal that the CLI has written now."
  (when-let* ((comments (gemini-companion-comment--here)))
    (save-excursion
      (save-restriction
        (widen)
        (let ((lines (gemini-companion-comment--text)))
          (dolist (comment comments)
            (gemini-companion-comment--move comment lines
                                            gemini-companion-revert-in-place)
            (gemini-companion-comment--set-string comment))))))
  (gemini-companion-comment--attach))

(defun gemini-companion-comment--show-again ()
  "Display the comments in the current buffer again, after its text has changed.
`post-command-hook' calls this once after a command."
  (remove-hook 'post-command-hook #'gemini-companion-comment--show-again t)
  (save-excursion
    (save-restriction
      (widen)
      (dolist (comment (gemini-companion-comment--here))
        (gemini-companion-comment--straighten comment)
        (gemini-companion-comment--set-string comment)))))

(defun gemini-companion-comment--after-merge ()
  "Search for the comments in the current buffer after a merge.
The merge has replaced only lines that differ."
  (let ((gemini-companion-revert-in-place t))
    (gemini-companion-comment--after-revert)))

(defun gemini-companion-comment--straighten (comment)
  "Let the overlay of COMMENT cover whole lines of the current buffer.
If its text was deleted, search for its lines: a command may have replaced them,
and an undo may restore them."
  (let* ((overlay (gemini-companion-comment-overlay comment))
         (beg (overlay-start overlay)))
    (cond
     ((and (gemini-companion-comment--anchored-p comment)
           (or (null (gemini-companion-comment-first comment))
               (not (gemini-companion-comment--live-p comment))))
      (gemini-companion-comment--move comment (gemini-companion-comment--text)))
     ((and (gemini-companion-comment--anchored-p comment)
           (or (< beg (overlay-end overlay))
               (equal '("") (gemini-companion-comment-lines comment))))
      (move-overlay overlay
                    (save-excursion (goto-char beg) (line-beginning-position))
                    (save-excursion (goto-char (overlay-end overlay))
                                    (line-end-position)))))))

(defun gemini-companion-comment--set-string (comment)
  "Display the text of COMMENT at its overlay, in the current buffer."
  (let* ((overlay (gemini-companion-comment-overlay comment))
         (top (null (and (gemini-companion-comment-lines comment)
                         (gemini-companion-comment-first comment))))
         (edit (gemini-companion-comment-edit comment))
         (shown (concat
                 ">> "
                 (when (and edit (not top))
                   (let ((first (gemini-companion-comment--now comment))
                         (last (line-number-at-pos (overlay-end overlay) t)))
                     (when (< first last)
                       (concat (gemini-companion-hunk-range (cons first last)) ": "))))
                 (gemini-companion-comment--mark comment)
                 (and (not (gemini-companion-comment--anchored-p comment))
                      (not top)
                      "(removed here) ")
                 (gemini-companion-comment-text comment)))
         (string (gemini-companion-comment--string
                  shown comment (if top nil (overlay-end overlay)))))
    (overlay-put overlay 'before-string (and top string))
    (overlay-put overlay 'after-string (and (not top) string))))

(defun gemini-companion-comment--string (text comment position)
  "Return TEXT of COMMENT as it is displayed below the line at POSITION.
If POSITION is nil, TEXT is displayed above the first line."
  (let ((shown (propertize (concat "  " (gemini-companion-comment--indented text))
                           'face (list (gemini-companion-comment--face comment)
                                       ;; The color of the text would shine through.
                                       'default)
                           'wrap-prefix "     ")))
    ;; If the lines of a comment were deleted, the next line is at its position.
    (if (or (null position)
            (save-excursion
              (goto-char position)
              (and (bolp) (not (eolp)))))
        (concat shown "\n")
      (concat "\n" shown))))

(defun gemini-companion-comment--indented (text)
  "Return TEXT of a comment as it is displayed: indented after its first line.
Only the beginning of a very long text is displayed."
  (string-replace "\n" "\n     " (truncate-string-to-width text 4000 nil nil t)))

(defun gemini-companion-comment--hide (comment)
  "Delete the overlay of COMMENT, and record on which line it was."
  (when-let* ((overlay (gemini-companion-comment-overlay comment)))
    (when (overlay-buffer overlay)
      (gemini-companion-comment--remember comment))
    (setf (gemini-companion-comment-overlay comment) nil)
    (delete-overlay overlay)))

(defun gemini-companion-comment--detach ()
  "Record the positions of comments in the current buffer, which is being killed."
  (mapc #'gemini-companion-comment--hide (gemini-companion-comment--here)))
(put 'gemini-companion-comment--detach 'permanent-local-hook t)
(put 'gemini-companion-comment--before-revert 'permanent-local-hook t)

(defun gemini-companion-comment--attach ()
  "Display the comments on the file that the current buffer visits."
  (dolist (comment gemini-companion-comment--all)
    (when (gemini-companion-names-visited-here-p
           (gemini-companion-comment-file comment))
      (gemini-companion-comment--show comment))))

(defun gemini-companion-comment--follow-name ()
  "Let the comments in the current buffer follow the new name of its file.
If the file with the old name still exists, they stay with that file, as its
record does."
  (when buffer-file-name
    (let ((path (gemini-companion-names-file)))
      (dolist (comment (gemini-companion-comment--here))
        (cond
         ((gemini-companion-comment-edit comment))
         ((gemini-companion-text-attributes (gemini-companion-comment-path comment))
          (unless (gemini-companion-names-visited-here-p
                   (gemini-companion-comment-file comment))
            (gemini-companion-comment--hide comment)))
         (t
          (setf (gemini-companion-comment-path comment) path
                (gemini-companion-comment-file comment)
                (gemini-companion-text-true-name path))
          (gemini-companion-comment--report comment)))))))

;;;; In the buffers of a review

(defun gemini-companion-comment--follow (request _event)
  "Show the comments on REQUEST, if it is an edit, after an event, in its buffers.
Once it has ended, move them to its file, unless they are the reason for its
rejection."
  (when (gemini-companion-edit-p request)
    (let ((open (gemini-companion-edit-open-p request)))
      (dolist (comment (reverse (gemini-companion-edit-comments request)))
        (cond (open (gemini-companion-comment--show comment))
              ((gemini-companion-comment-waiting-p comment)
               (gemini-companion-comment--adopt request comment))
              ;; The buffers of the review will be killed.
              (t (gemini-companion-comment--hide comment)))))))

(defun gemini-companion-comment--file-text (path)
  "Return the text of the file PATH, of its buffer or else on disk, or nil."
  (let ((buffer (gemini-companion-names-buffer path)))
    (cond (buffer (gemini-companion-text-of-buffer buffer))
          ((gemini-companion-text-unreadable-reason path) nil)
          (t (ignore-error file-error
               (gemini-companion-text-read path))))))

(defun gemini-companion-comment-visit (comments)
  "Go to the first of COMMENTS in the file that was visited least recently.
So each call goes to another file, first to those that are not visited.  Signal
an error if none of the files can be read, such as a pipe."
  (let* ((buffers (buffer-list))
         (why (lambda (comment)
                (gemini-companion-text-unreadable-reason
                 (gemini-companion-comment-path comment))))
         (comment (car (seq-sort-by
                        (lambda (comment)
                          (or (seq-position buffers
                                            (gemini-companion-names-buffer
                                             (gemini-companion-comment-path comment))
                                            #'eq)
                              (length buffers)))
                        #'> (or (seq-remove why comments) comments)))))
    (when (funcall why comment)
      (user-error "%s %s"
                  (gemini-companion-names-absolute (gemini-companion-comment-path comment))
                  (funcall why comment)))
    (gemini-companion-windows-beside-show
     (gemini-companion-revert-visit (gemini-companion-comment-path comment))
     #'pop-to-buffer)
    (when-let* ((overlay (gemini-companion-comment-overlay comment))
                (start (overlay-start overlay)))
      (unless (<= (point-min) start (point-max))
        (widen))
      (goto-char start))))

(defun gemini-companion-comment-show-here ()
  "Display comments in the overview at once, after a command has changed them."
  (when gemini-companion-edits-view
    (gemini-companion-view-follow gemini-companion-edits-view 'changed)))

;;;; What the CLI gets

(defun gemini-companion-comment-for-cli (comment &optional session)
  "Return COMMENT as a text for the CLI of SESSION, by default its own.
It has the name of the file and the numbers of the lines, such as
app/bill.py:26-28, these lines, and the comment.  Lines that are gone have no
number, and lines of a file that is not shared are omitted.  Without a file, as
of a plan, it has the lines and the comment only."
  (let ((path (gemini-companion-comment-path comment)))
    (concat
     (when path
       (let ((range (gemini-companion-comment--range-now comment)))
         (concat
          (gemini-companion-session-name-of-file
           path (or session (gemini-companion-comment-session comment)))
          (and range (concat ":" (gemini-companion-hunk-range range)))
          (and (gemini-companion-comment--removed-p comment)
               " (removed lines)")
          "\n")))
     (when (or (null path)
               (gemini-companion-context-text-shared-p
                path (or session (gemini-companion-comment-session comment))))
       (mapconcat (lambda (line) (concat "> " line "\n"))
                  (gemini-companion-comment--lines-now comment) ""))
     (gemini-companion-comment-text comment))))

(defun gemini-companion-comment--lines-now (comment)
  "Return the lines of COMMENT; in a proposal, as the user has edited them."
  (let ((overlay (gemini-companion-comment-overlay comment)))
    (if (and (gemini-companion-comment-edit comment)
             (gemini-companion-comment--live-p comment))
        (with-current-buffer (overlay-buffer overlay)
          (split-string (save-restriction
                          (widen)
                          (buffer-substring-no-properties (overlay-start overlay)
                                                          (overlay-end overlay)))
                        "\n"))
      (gemini-companion-comment-lines comment))))

(defun gemini-companion-comment--range-now (comment)
  "Return (FIRST . LAST), where the lines of COMMENT are in its text now, or nil."
  (let* ((edit (gemini-companion-comment-edit comment))
         (path (gemini-companion-comment-path comment))
         (first (gemini-companion-comment--now comment)))
    (cond
     ((null (gemini-companion-comment-lines comment)) nil)
     ((or edit (gemini-companion-comment--removed-p comment))
      (and first (cons first (gemini-companion-comment--last comment first))))
     (t
      (when-let* ((text (gemini-companion-comment--file-text path)))
        (gemini-companion-comment--range comment
                                         (gemini-companion-lines-split text)))))))

(defun gemini-companion-comment-texts-of-edit (edit)
  "Return the comments that were made on EDIT as texts for its CLI, a list.
They are in the order of their last lines; for a text, see
`gemini-companion-comment-for-cli'."
  (mapcar (pcase-lambda (`(,_ . ,comment))
            (gemini-companion-comment-for-cli comment))
          (seq-sort-by (pcase-lambda (`(,key . ,_))
                         (if key (cdr (gemini-companion-comment--ends (cdr key))) 0))
                       #'< (gemini-companion-comment-positions-of-edit edit))))

(defun gemini-companion-comment-set-result (comments session result)
  "Record the RESULT of a prompt with COMMENTS for the CLI of SESSION.
RESULT is `sent', `copied' if the prompt is in the kill ring for the user to
paste, or nil if it failed.  Unsent comments on a proposal that has ended are on
its file then."
  (if (eq result 'sent)
      (gemini-companion-comment-set-sent comments session)
    (dolist (comment comments)
      (setf (gemini-companion-comment-going comment) nil
            (gemini-companion-comment-copied comment)
            (and (eq result 'copied) (float-time)))
      (let ((edit (gemini-companion-comment-edit comment)))
        (if (and edit (not (gemini-companion-edit-open-p edit)))
            (gemini-companion-comment--adopt edit comment)
          (gemini-companion-comment--changed comment))))))

;;;; When a proposal has ended

(defun gemini-companion-comment--adopt (edit comment)
  "Make COMMENT, on EDIT, which has ended, a comment on its file.
A comment on an excluded hunk is on the lines that the file keeps instead."
  (let ((accepted (gemini-companion-edit-accepted-p edit))
        (after (eq 'after (gemini-companion-comment-side comment))))
    (when (and after (gemini-companion-comment--live-p comment))
      (setf (gemini-companion-comment-lines comment)
            (gemini-companion-comment--lines-now comment)))
    (gemini-companion-comment--hide comment)
    (cl-callf2 remq comment (gemini-companion-edit-comments edit))
    (setf (gemini-companion-comment-edit comment) nil)
    (when (and accepted after (gemini-companion-comment-first comment))
      (let* ((lines (gemini-companion-lines-split (gemini-companion-edit-after edit)))
             (first (or (gemini-companion-comment--find comment lines)
                        (gemini-companion-comment--on-kept edit comment lines))))
        (if first
            (gemini-companion-comment--set-first comment first)
          (setf (gemini-companion-comment-first comment) nil))))
    (push comment gemini-companion-comment--all)
    ;; What was accepted is not written yet: its lines would be displayed as gone.
    (unless accepted
      (gemini-companion-comment--show comment))
    (gemini-companion-comment--report comment)))

(defun gemini-companion-comment--on-kept (edit comment lines)
  "Put COMMENT, on an excluded hunk of EDIT, on what LINES have in its place.
LINES is a vector, the accepted text.  It is the first line of the file that
stays there, or else the line above.  Return its number, or nil for none."
  (let ((first (1- (gemini-companion-comment-first comment))))
    (when-let* ((proposal (gemini-companion-edit-proposal-buffer edit))
                (excluded (gemini-companion-hunk-excluded proposal))
                (hunk (seq-find (lambda (hunk)
                                  (< (1- (gemini-companion-hunk-new hunk))
                                     first
                                     (gemini-companion-hunk-new-end hunk)))
                                excluded))
                (shift (cl-loop for other in excluded
                                until (eq other hunk)
                                sum (- (gemini-companion-hunk-old-count other)
                                       (gemini-companion-hunk-new-count other))))
                (number (max 1 (+ (gemini-companion-hunk-new hunk) shift
                                  (if (gemini-companion-hunk-lines hunk) 1 0))))
                ((<= number (length lines))))
      (setf (gemini-companion-comment-lines comment)
            (list (gemini-companion-comment--bare (aref lines (1- number)))))
      number)))

(defun gemini-companion-comment--new (edit key lines)
  "Return a new comment without a text on EDIT, at KEY in LINES, a vector.
It is on the file of EDIT unless that is open.  KEY is nil for a comment on
the file as a whole."
  (let* ((range (and key (gemini-companion-comment--ends (cdr key))))
         (record (gemini-companion-changes-with-edit edit))
         (comment (gemini-companion-comment--make
                   :file (gemini-companion-comment--file-of-edit edit)
                   :path (if record
                             (gemini-companion-changes-path record)
                           (gemini-companion-edit-file edit))
                   :session (gemini-companion-edit-session edit)
                   :edit (and (gemini-companion-edit-open-p edit) edit)
                   :side (if key (car key) 'after))))
    (gemini-companion-comment--set-range comment range lines)))

(defun gemini-companion-comment--set-range (comment range lines)
  "Anchor COMMENT to RANGE, (FIRST . LAST) or nil, in LINES, and return it."
  (when range
    (setf (gemini-companion-comment-lines comment)
          (or (mapcar #'gemini-companion-comment--bare
                      (seq-subseq lines (min (1- (car range)) (length lines))
                                  (min (cdr range) (length lines))))
              ;; The empty line after the last newline.
              (list "")))
    (gemini-companion-comment--set-first comment (car range)))
  comment)

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'comment)))
  "Display comments in files."
  '((find-file-hook gemini-companion-comment--attach)
    (after-revert-hook gemini-companion-comment--after-revert)
    (after-set-visited-file-name-hook gemini-companion-comment--follow-name)
    (gemini-companion-revert-merge-hook gemini-companion-comment--before-revert)
    (gemini-companion-revert-merged-hook gemini-companion-comment--after-merge)
    (gemini-companion-request-functions gemini-companion-comment--follow)))

(cl-defmethod gemini-companion-part-start ((_part (eql 'comment)))
  "Display the comments that were made before the mode was turned off."
  (remove-hook 'kill-emacs-query-functions #'gemini-companion-comment--exit-p)
  (mapc #'gemini-companion-comment--show gemini-companion-comment--all))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'comment)))
  "Hide all comments, but do not drop them: they are texts of the user.
The mode may be turned off by itself, as the server cannot run.  The exit of
Emacs still asks about comments that no CLI has received."
  (when (gemini-companion-comments-unsent)
    (add-hook 'kill-emacs-query-functions #'gemini-companion-comment--exit-p))
  (mapc #'gemini-companion-comment--hide gemini-companion-comment--all)
  (setq gemini-companion-comment--times nil))

(cl-defmethod gemini-companion-part-unfinished ((_part (eql 'comment)))
  "Return how many comments no CLI has received."
  (let ((count (length (gemini-companion-comments-unsent))))
    (and (< 0 count)
         (list (format (ngettext "%d comment was not sent"
                                 "%d comments were not sent" count)
                       count)))))

(cl-defmethod gemini-companion-part-saved ((_part (eql 'comment)))
  "Return the unsent comments; a comment on a proposal is one on its file then."
  (mapcar (lambda (comment)
            (cons (gemini-companion-comment-path comment)
                  (list :file (gemini-companion-comment-file comment)
                        :path (gemini-companion-comment-path comment)
                        :session (when-let* ((session (gemini-companion-comment-session
                                                       comment)))
                                   (gemini-companion-session-facts session))
                        :side (gemini-companion-comment-side comment)
                        :lines (gemini-companion-comment-lines comment)
                        :first (gemini-companion-comment--now comment)
                        :last (gemini-companion-comment-last comment)
                        :text (gemini-companion-comment-text comment)
                        :copied (gemini-companion-comment-copied comment))))
          (gemini-companion-comments-unsent)))

(cl-defmethod gemini-companion-part-restore ((_part (eql 'comment)) items)
  "Add the comments of ITEMS that are not there."
  (pcase-dolist (`(,_ . ,slots) items)
    (unless (seq-some (lambda (comment)
                        (and (equal (plist-get slots :file)
                                    (gemini-companion-comment-file comment))
                             (equal (plist-get slots :lines)
                                    (gemini-companion-comment-lines comment))
                             (equal (plist-get slots :text)
                                    (gemini-companion-comment-text comment))))
                      gemini-companion-comment--all)
      (gemini-companion-comment--add
       ;; Earlier versions saved the lines around it.
       (let ((comment (apply #'gemini-companion-comment--make
                             :allow-other-keys t slots)))
         ;; A session does not outlive Emacs: its facts were saved.
         (when-let* ((facts (gemini-companion-comment-session comment)))
           (setf (gemini-companion-comment-session comment)
                 (gemini-companion-session-from-facts facts)))
         comment)))))

(defun gemini-companion-comment--exit-p ()
  "Return non-nil if Emacs may exit, after the mode was turned off.
All comments were sent, or the user agrees."
  (let ((unfinished (gemini-companion-part-unfinished 'comment)))
    (or (null unfinished)
        (gemini-companion-choice-yes-or-no-p
         (format "%s; exit anyway? " (car unfinished))))))

;;;; Commands

(defun gemini-companion-comment ()
  "Comment on the line at point, or on the lines of the region.
This works in a file, in a review, and in the overview.  On a removed line
with a replacement, comment on the replacement; to comment on removed lines,
select only removed lines.  On the row of a file, comment on the file; on the
row of a turn or a CLI, write the text that begins the next prompt with
comments.  An existing comment is edited; an empty text removes it.

A comment on a proposal is sent with a rejection, as its reason; other comments
stay until you send them, by \\[gemini-companion-send-comments]."
  (interactive)
  (cond ((and gemini-companion-edits-view
              (not (use-region-p))
              (gemini-companion-view-comment gemini-companion-edits-view)))
        (gemini-companion-edits-view
         (gemini-companion-comment--in-view gemini-companion-edits-view))
        (gemini-companion-edit-here
         (gemini-companion-comment--in-review gemini-companion-edit-here))
        ((gemini-companion-text-visited (current-buffer))
         (gemini-companion-comment--in-file))
        (t (user-error "No line of a file here")))
  (deactivate-mark))

(defun gemini-companion-remove-comments (&optional all)
  "Remove the comments on files that were sent.
With ALL, a prefix argument, remove all comments on files, after asking.  Add
the text of each to the kill ring."
  (interactive
   (list (and current-prefix-arg
              (gemini-companion-choice-y-or-n-p "Also remove your unsent comments? "))))
  (let ((comments (if all
                      gemini-companion-comment--all
                    (seq-filter #'gemini-companion-comment-sent
                                gemini-companion-comment--all))))
    (mapc #'gemini-companion-comment--remove comments)
    (gemini-companion-comment-show-here)
    (message (if comments
                 (ngettext "Removed %d comment" "Removed %d comments"
                           (length comments))
               (if all "No comments to remove" "No sent comments to remove"))
             (length comments))))

(defun gemini-companion-comment--in-view (view)
  "Comment on the line, the region or the row of a file in VIEW, one of edits."
  (let* ((edit-here (lambda () (gemini-companion-view-edit-here view)))
         (edit (or (and (use-region-p)
                        (save-excursion
                          (goto-char (cdr (gemini-companion-text-region)))
                          (funcall edit-here)))
                   (funcall edit-here)
                   (user-error "No line of a file here")))
         (key (if (use-region-p)
                  (or (gemini-companion-comment--region-key edit-here)
                      (user-error "No line of the file here"))
                (gemini-companion-comment--line-key))))
    ;; The line of the comment is below the region, and stays there.
    (when (use-region-p)
      (goto-char (cdr (gemini-companion-text-region))))
    (if (gemini-companion-edit-open-p edit)
        (gemini-companion-comment--on-proposal edit key)
      (pcase-let ((`(,after . ,before) (gemini-companion-view-texts view)))
        (gemini-companion-comment--read
         (gemini-companion-comment--new
          edit key (if (eq 'before (car key)) before after))
         key (gemini-companion-comment-positions
              (gemini-companion-comment--file-of-edit edit) after before))))))

(defun gemini-companion-comment--in-review (edit)
  "Comment on the line, the region or the hunk at point in a buffer of EDIT."
  (let ((side (cond ((eq (current-buffer) (gemini-companion-edit-proposal-buffer edit))
                     'after)
                    ((eq (current-buffer) (gemini-companion-edit-original-buffer edit))
                     'before))))
    (gemini-companion-comment--on-proposal
     edit
     (or (cond ((eq 'after side) (gemini-companion-comment--buffer-key 'after))
               (side (gemini-companion-comment--original-key edit))
               ((use-region-p)
                (gemini-companion-comment--region-key (lambda () edit)))
               ((gemini-companion-comment--line-key))
               ;; The control panel of Ediff.
               (t (gemini-companion-comment--hunk-key
                   (and (gemini-companion-edit-view edit)
                        (gemini-companion-view-hunk
                         (gemini-companion-edit-view edit))))))
         (user-error "No line of the file here")))))

(defun gemini-companion-comment--buffer-key (side)
  "Return the key of a comment on the line or region of this buffer, of SIDE."
  (pcase-let ((`(,beg . ,end) (if (use-region-p)
                                  (gemini-companion-text-region)
                                (cons (point) (point)))))
    (gemini-companion-comment--key side (line-number-at-pos beg t)
                                   (line-number-at-pos end t))))

(defun gemini-companion-comment--original-key (edit)
  "Return the key of a comment on the line or region of this buffer.
The buffer is the original of EDIT.  A comment on a line that stays, or that
has a replacement, is on the line of the proposal.  The comment is on removed
lines if the region has some, or if they have no replacement."
  (pcase-let* ((`(,_ . ,lines) (gemini-companion-comment--buffer-key 'before))
               (`(,first . ,last) (gemini-companion-comment--ends lines))
               (hunks (gemini-companion-edit-hunks edit))
               (hunk (seq-find (lambda (hunk)
                                 (and (< (gemini-companion-hunk-old hunk) last)
                                      (<= first (gemini-companion-hunk-old-end hunk))))
                               hunks))
               (above (car (last (seq-filter
                                  (lambda (hunk)
                                    (< (gemini-companion-hunk-old-end hunk) first))
                                  hunks))))
               (offset (if above
                           (- (gemini-companion-hunk-new-end above)
                              (gemini-companion-hunk-old-end above))
                         0)))
    (cond ((null hunk)
           (gemini-companion-comment--key 'after (+ first offset) (+ last offset)))
          ((use-region-p)
           (gemini-companion-comment--key 'before first last))
          (t (gemini-companion-comment--hunk-key hunk)))))

(defun gemini-companion-comment--hunk-key (hunk)
  "Return the key of a comment on the lines of HUNK, or nil if that is nil."
  (cond ((null hunk) nil)
        ((< 0 (gemini-companion-hunk-new-count hunk))
         (gemini-companion-comment--key 'after (1+ (gemini-companion-hunk-new hunk))
                                        (gemini-companion-hunk-new-end hunk)))
        (t
         (gemini-companion-comment--key 'before (1+ (gemini-companion-hunk-old hunk))
                                        (gemini-companion-hunk-old-end hunk)))))

(defun gemini-companion-comment--prompt (key)
  "Return the text before the input of a comment on KEY."
  (cond ((null key) "Comment on this file: ")
        ((consp (cdr key))
         (format "Comment on lines %s: " (gemini-companion-hunk-range (cdr key))))
        (t (format "Comment on line %d: " (cdr key)))))

(defun gemini-companion-comment--to-edit (key positions)
  "Return the element of POSITIONS whose unsent comment is below KEY, or nil.
For a region, only a comment on the same lines is edited."
  (let ((positions (seq-filter (pcase-lambda (`(,_ . ,comment))
                                 (gemini-companion-comment-waiting-p comment))
                               positions)))
    (cond ((use-region-p) (assoc key positions))
          (key (car (gemini-companion-comment--at key positions)))
          (t (seq-find (pcase-lambda (`(,_ . ,comment))
                         (null (gemini-companion-comment-lines comment)))
                       positions)))))

(defun gemini-companion-comment--on-proposal (edit key)
  "Read a comment on the lines of KEY of EDIT, which awaits an answer.
If KEY is nil, the comment is on the file."
  (gemini-companion-edit-open-or-error edit)
  (gemini-companion-comment--read
   (gemini-companion-comment--new
    edit key
    (and key
         (gemini-companion-lines-split
          (gemini-companion-text-of-buffer
           (if (eq 'after (car key))
               (gemini-companion-edit-proposal-buffer edit)
             (gemini-companion-edit-texts-original edit))))))
   key (gemini-companion-comment-positions-of-edit edit)))

(defun gemini-companion-comment-on-request (request)
  "Comment on the line or the region of this buffer, with the text of REQUEST.
REQUEST is another one than a proposal, such as a plan."
  (let ((key (gemini-companion-comment--buffer-key 'after)))
    (gemini-companion-comment--read
     (gemini-companion-comment--set-range
      (gemini-companion-comment--make
       :session (gemini-companion-request-session request)
       :edit request :side 'after)
      (gemini-companion-comment--ends (cdr key)) (gemini-companion-comment--text))
     key (gemini-companion-comment-positions-of-edit request)))
  (deactivate-mark))

(defun gemini-companion-comment--in-file ()
  "Comment on the line or region of the file that the current buffer visits."
  (let* ((path (gemini-companion-names-file))
         (file (gemini-companion-text-true-name path))
         (record (gemini-companion-changes-of-file file))
         (edit (if record
                   (gemini-companion-changes-file-edit record)
                 (car (gemini-companion-edits-of-file file))))
         (lines (gemini-companion-lines-split (gemini-companion-text-of-buffer)))
         (key (gemini-companion-comment--buffer-key 'after)))
    (gemini-companion-comment--read
     (gemini-companion-comment--set-range
      (gemini-companion-comment--make
       :file file
       :path (cond (record (gemini-companion-changes-path record))
                   (edit (gemini-companion-edit-file edit))
                   (t path))
       :session (and edit (gemini-companion-edit-session edit))
       :side 'after)
      (gemini-companion-comment--ends (cdr key)) lines)
     key (gemini-companion-comment-positions file lines []))))

(defun gemini-companion-comment--read (new key positions)
  "Read the text of a comment at KEY, and add it, or remove it if it is empty.
NEW is the comment unless one of POSITIONS, (KEY . COMMENT), is there already."
  (let* ((position (gemini-companion-comment--to-edit key positions))
         (comment (if position (cdr position) new))
         (prompt (gemini-companion-comment--prompt (if position (car position) key)))
         (previous (gemini-companion-comment-text comment))
         (edit (gemini-companion-comment-edit comment))
         (text (if edit
                   (gemini-companion-request-read edit prompt previous)
                 (read-string prompt previous))))
    (cond ((null text))
          ((string-blank-p text)
           (when position
             (gemini-companion-comment--remove comment)))
          (t
           (setf (gemini-companion-comment-text comment) text
                 (gemini-companion-comment-copied comment) nil)
           (gemini-companion-comment--add comment)))
    (gemini-companion-comment-show-here)))

(gemini-companion-part-loaded 'comment)

(provide 'gemini-companion-comment)
;;; gemini-companion-comment.el ends here
