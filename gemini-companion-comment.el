;;; gemini-companion-comment.el --- Comments on what a CLI has written  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Comments on lines, to be sent to a CLI.  They are made with the same command in
;; the list of edits, on the page of a turn, in a review and in a file.
;;
;; A comment on a proposal that awaits an answer is a part of its edit, see
;; `gemini-companion-edit-comments', and goes with the answer: as the reason, or, once
;; the proposal is accepted, as one of the comments here.  These are on a file as it
;; is now, whether it is visited or not.  Each has the lines that it is about, which
;; are looked for in a text near the place where they were last.  In the buffer of
;; the file, an overlay moves with them and displays the comment.

;;; Code:

(require 'gemini-companion-baseline)
(require 'gemini-companion-changes)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-hunk)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-revert)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-view)

;;;; Customization

(defface gemini-companion-comment
  '((t :inherit (italic warning)))
  "Face of comments on lines."
  :group 'gemini-companion-reviews)

(defface gemini-companion-comment-sent
  '((t :inherit (italic shadow)))
  "Face of comments on lines that were sent to the CLI."
  :group 'gemini-companion-reviews)

;;;; State

(defvar gemini-companion-comment--count 0
  "How many comments were made in this Emacs.")

(cl-defstruct (gemini-companion-comment
               (:noinline t)
               (:constructor gemini-companion-comment--make)
               (:copier nil))
  "A comment of the user on lines of a file.
FILE is its true name, and PATH its name as the CLI sent it or Emacs has
it.  SESSION is the CLI to tell, or nil if none is known.

SIDE is `after' for lines that the file has, and `before' for removed
ones.  LINES are these lines, a list of strings without newlines, and FIRST
is the number of the first one when it was seen last, from 1 on.  OVERLAY
is on them in the buffer of the file, or nil.

TEXT is the comment, and SENT the time when it was sent, in seconds, or nil."
  file path session side lines first overlay text sent
  (number (cl-incf gemini-companion-comment--count)
          :documentation "How many comments were made by then."))

(defvar gemini-companion-comment--all nil
  "The comments on files, the last one first.")

(defvar gemini-companion-comment--times nil
  "When comments were sent: a list of (SESSION . SECONDS), the last one first.")

(defvar gemini-companion-comment-functions nil
  "Functions called with a comment that was made, edited, removed or sent.")

(defun gemini-companion-comments ()
  "Return the comments on files, in the order in which they were made."
  (reverse gemini-companion-comment--all))

(defun gemini-companion-comments-of-file (file)
  "Return the comments on FILE, a true name, in the order of lines.
On the same line, removed ones come first, and then the comment that was
made first."
  (let ((comments (seq-filter (lambda (comment)
                                (equal file (gemini-companion-comment-file comment)))
                              (gemini-companion-comments))))
    ;; Sorting is stable.
    (seq-sort-by #'gemini-companion-comment-now #'<
                 (append (seq-filter #'gemini-companion-comment--removed-p comments)
                         (seq-remove #'gemini-companion-comment--removed-p
                                     comments)))))

(defun gemini-companion-comment--removed-p (comment)
  "Return non-nil if COMMENT is on lines that were removed."
  (eq 'before (gemini-companion-comment-side comment)))

(defun gemini-companion-comment-times (session)
  "Return when comments were sent to the CLI of SESSION, the last time first.
The value is a list of seconds; the comments may have been removed."
  (cl-loop for (other . time) in gemini-companion-comment--times
           when (gemini-companion-session-same-p session other)
           collect time))

(defun gemini-companion-comment-set-sent (comment session)
  "Record that COMMENT was sent to the CLI of SESSION now."
  (setf (gemini-companion-comment-sent comment) (float-time)
        (gemini-companion-comment-session comment) session)
  (push (cons session (gemini-companion-comment-sent comment))
        gemini-companion-comment--times)
  (gemini-companion-comment--changed comment))

(defun gemini-companion-comment--changed (comment)
  "Display COMMENT again where it is displayed."
  (gemini-companion-comment--show comment)
  (run-hook-with-args 'gemini-companion-comment-functions comment))

(defun gemini-companion-comment--remove (comment)
  "Remove COMMENT."
  (setq gemini-companion-comment--all (delq comment gemini-companion-comment--all))
  (gemini-companion-comment--hide comment)
  (run-hook-with-args 'gemini-companion-comment-functions comment))

;;;; Places

(defun gemini-companion-comment-now (comment)
  "Return the number of the first line of COMMENT, as far as it is known.
Removed lines are counted as before they were removed."
  (let ((overlay (gemini-companion-comment-overlay comment)))
    (if (and overlay
             (overlay-buffer overlay)
             (eq 'after (gemini-companion-comment-side comment)))
        (gemini-companion-text-line (overlay-buffer overlay) (overlay-start overlay))
      (gemini-companion-comment-first comment))))

(defun gemini-companion-comment-range (comment lines)
  "Return (FIRST . LAST), the place of COMMENT in LINES, from 1 on.
LINES is a vector of strings with newlines, the text that has the side of
COMMENT.  It is where its lines are, next to where they were last, or if
they are not there any more, where they were."
  (let* ((near (gemini-companion-comment-now comment))
         (quoted (gemini-companion-comment-lines comment))
         (count (max 1 (length quoted)))
         (found (gemini-companion-comment--nearest quoted lines near))
         (first (or found (max 1 (min near (length lines))))))
    (cons first (if found
                    (+ first count -1)
                  (max first (min (+ first count -1) (length lines)))))))

(defun gemini-companion-comment--nearest (quoted lines near)
  "Return the number of the line in LINES where QUOTED begins, or nil.
Of several such lines it is the nearest one to the line NEAR."
  (let ((best nil))
    (cl-loop for i from 0 to (- (length lines) (length quoted))
             when (and (or (null best) (< (abs (- (1+ i) near)) (abs (- best near))))
                       (cl-loop for text in quoted
                                for j from i
                                always (string= text (gemini-companion-comment--bare
                                                      (aref lines j)))))
             do (setq best (1+ i)))
    (and quoted best)))

(defun gemini-companion-comment--bare (line)
  "Return LINE without a newline at its end."
  (string-remove-suffix "\n" line))

(defun gemini-companion-comment-places (file after before)
  "Return where the comments on FILE, a true name, are: a list of (KEY . COMMENT).
AFTER and BEFORE are the lines of the text now, and without the changes,
vectors.  KEY is as in the value of `gemini-companion-edit-comments'."
  (mapcar (lambda (comment)
            (pcase-let* ((side (gemini-companion-comment--side-in comment after before))
                         (`(,first . ,last)
                          (gemini-companion-comment-range
                           comment (if (eq side 'after) after before))))
              (cons (gemini-companion-comment--key side first last) comment)))
          (gemini-companion-comments-of-file file)))

(defun gemini-companion-comment--side-in (comment after before)
  "Return the side of COMMENT whose text has its lines, `after' or `before'.
The texts AFTER and BEFORE are vectors of lines.  Lines that the CLI had
written may be removed ones by now, and removed ones may be back."
  (let* ((quoted (gemini-companion-comment-lines comment))
         (near (gemini-companion-comment-now comment))
         (there-p (lambda (side)
                    (gemini-companion-comment--nearest
                     quoted (if (eq side 'after) after before) near)))
         (side (gemini-companion-comment-side comment))
         (other (if (eq side 'after) 'before 'after)))
    (if (or (funcall there-p side) (not (funcall there-p other)))
        side
      other)))

(defun gemini-companion-comment-state (file)
  "Return a value that differs, by `equal', after a change of comments on FILE."
  (mapcar (lambda (comment)
            (list (gemini-companion-comment-now comment)
                  (gemini-companion-comment-text comment)
                  (gemini-companion-comment-sent comment)))
          (gemini-companion-comments-of-file file)))

;;;; Below the lines of a diff

(defun gemini-companion-comment-insert (places)
  "Insert comments below their lines of the diff in the current buffer.
PLACES are a list of (KEY . COMMENT) or, for those on a proposal, of (KEY
. TEXT); see `gemini-companion-comment-places'.  Return those of PLACES
whose lines are not there."
  (let ((left (copy-sequence places)))
    (goto-char (point-min))
    (while (not (eobp))
      (let ((here (gemini-companion-comment--at
                   (gemini-companion-comment--line-key) places))
            (properties (text-properties-at (point))))
        (forward-line)
        (dolist (place here)
          (setq left (delq place left))
          (let ((beg (point)))
            (insert (apply #'propertize
                           (concat "  " (gemini-companion-comment--indented
                                         (gemini-companion-comment--shown place))
                                   "\n")
                           properties))
            (add-text-properties
             beg (point)
             (list 'face (gemini-companion-comment--face (cdr place))
                   'line-prefix nil 'wrap-prefix "     "
                   'gemini-companion-change nil))))))
    left))

(defun gemini-companion-comment--shown (place)
  "Return the text of PLACE, (KEY . COMMENT), as it is displayed.
Of several lines, it has the numbers."
  (pcase-let ((`((,_ . ,lines) . ,comment) place))
    (concat ">> "
            (when (consp lines)
              (concat (gemini-companion-hunk-range lines) ": "))
            (if (stringp comment)
                comment
              (concat (and (gemini-companion-comment-sent comment) "(sent) ")
                      (gemini-companion-comment-text comment))))))

(defun gemini-companion-comment--face (comment)
  "Return the face of COMMENT, a struct, or a text for a proposal."
  (if (and (gemini-companion-comment-p comment)
           (gemini-companion-comment-sent comment))
      'gemini-companion-comment-sent
    'gemini-companion-comment))

(defun gemini-companion-comment--at (key places)
  "Return those of PLACES that are displayed below the line with KEY.
For the value of KEY, see `gemini-companion-comment--line-key'.  A comment
on several lines is below the last one."
  (seq-filter (pcase-lambda (`((,side . ,lines) . ,_))
                (equal key (cons side (cdr (gemini-companion-comment--ends lines)))))
              places))

(defun gemini-companion-comment--line-key ()
  "Return the key of a comment on the line of a diff at point, or nil.
For a removed line, it is a cons of `before' and its number in the file;
for any other line, one of `after' and its number in the proposal."
  (let ((old (get-text-property (point) 'gemini-companion-old))
        (new (get-text-property (point) 'gemini-companion-line)))
    (cond ((null new) nil)
          ((and old (get-text-property (point) 'gemini-companion-hunk))
           (cons 'before old))
          (t (cons 'after new)))))

(defun gemini-companion-comment--region-key (edit-here)
  "Return the key of a comment on the lines of the region in a diff, or nil.
Of removed lines and others, the others count: the CLI has written those.
EDIT-HERE is a function that returns the edit at point: only lines of that
at the end of the region count."
  (pcase-let* ((`(,beg . ,end) (gemini-companion-comment--region))
               (edit (save-excursion (goto-char end) (funcall edit-here)))
               (keys nil))
    (save-excursion
      (goto-char beg)
      (while (and (<= (point) end) (not (eobp)))
        (when-let* (((eq edit (funcall edit-here)))
                    (key (gemini-companion-comment--line-key)))
          (push key keys))
        (forward-line)))
    (let* ((side (if (assq 'after keys) 'after 'before))
           (lines (cl-loop for (other . line) in keys
                           when (eq side other) collect line)))
      (when lines
        (gemini-companion-comment--key side (apply #'min lines)
                                       (apply #'max lines))))))

(defun gemini-companion-comment--region ()
  "Return the beginnings of the first and the last line of the region, a cons.
The line after the region is not meant if the region ends before its
first character; it may be of another edit."
  (let ((beg (region-beginning))
        (end (region-end)))
    (save-excursion
      (goto-char end)
      (when (and (bolp) (< beg end))
        (forward-line -1))
      (cons (save-excursion (goto-char beg) (line-beginning-position))
            (line-beginning-position)))))

(defun gemini-companion-comment--key (side first last)
  "Return the key of a comment on the lines from FIRST to LAST of SIDE."
  (cons side (if (= first last) first (cons first last))))

(defun gemini-companion-comment--ends (lines)
  "Return (FIRST . LAST) for LINES of a key, which are a number or that."
  (if (consp lines) lines (cons lines lines)))

(defun gemini-companion-comment-insert-with-lines (place lines)
  "Insert PLACE, (KEY . COMMENT), at point, with the lines that it is on.
LINES is the text that has them, a vector of lines with newlines.  If it
has others there by now, as the file may be gone, their numbers are left out."
  (pcase-let* ((`((,side . ,range) . ,comment) place)
               (`(,first . ,last) (gemini-companion-comment--ends range))
               (there (mapcar #'gemini-companion-comment--bare
                              (substring lines (min (1- first) (length lines))
                                         (min last (length lines)))))
               (quoted (if (gemini-companion-comment-p comment)
                           (gemini-companion-comment-lines comment)
                         there)))
    (cl-loop for line in quoted
             for number from first
             do (insert (propertize
                         (concat line "\n")
                         'line-prefix (when (equal quoted there)
                                        (propertize (format "%d " number)
                                                    'face 'line-number))
                         'gemini-companion-line number
                         'gemini-companion-old (and (eq side 'before) number))))
    (insert (propertize (concat "  " (gemini-companion-comment--indented
                                      (gemini-companion-comment--shown place))
                                "\n")
                        'face (gemini-companion-comment--face comment)
                        'wrap-prefix "     "
                        'gemini-companion-line last))))

;;;; In the buffer of a file

(defun gemini-companion-comment--show (comment)
  "Display COMMENT in the buffer of its file, if it is visited."
  (when-let* ((buffer (gemini-companion-names-buffer
                       (gemini-companion-comment-path comment))))
    (with-current-buffer buffer
      (save-excursion
        (save-restriction
          (widen)
          (unless (and (gemini-companion-comment-overlay comment)
                       (overlay-buffer (gemini-companion-comment-overlay comment)))
            (setf (gemini-companion-comment-overlay comment)
                  (gemini-companion-comment--overlay comment))
            (add-hook 'kill-buffer-hook #'gemini-companion-comment--detach nil t))
          (gemini-companion-comment--set-string
           (gemini-companion-comment-overlay comment)))))))

(defun gemini-companion-comment--follow-text (overlay after &rest _)
  "Display the comment of OVERLAY again AFTER its lines were changed.
They may be gone, or back.  This is a hook of OVERLAY for modifications."
  (when after
    (gemini-companion-comment--set-string overlay)
    ;; In Emacs 28, undo moves the ends of overlays after that.
    (add-hook 'post-command-hook #'gemini-companion-comment--show-again nil t)))

(defun gemini-companion-comment--show-again ()
  "Display the comments in the current buffer again, as its text has changed.
That is once after a command, and after each revert, in which overlays are not
told of changes."
  (remove-hook 'post-command-hook #'gemini-companion-comment--show-again t)
  (dolist (comment gemini-companion-comment--all)
    (when-let* ((overlay (gemini-companion-comment-overlay comment))
                ((eq (current-buffer) (overlay-buffer overlay))))
      (gemini-companion-comment--set-string overlay))))

(defun gemini-companion-comment--set-string (overlay)
  "Display the comment of OVERLAY, which is in the current buffer, as it is now."
  (let ((comment (overlay-get overlay 'gemini-companion-comment)))
    (overlay-put
     overlay 'after-string
     (gemini-companion-comment--string
      (concat ">> "
              (and (gemini-companion-comment-sent comment) "(sent) ")
              (and (eq 'before (gemini-companion-comment-side comment))
                   "(removed here) ")
              (gemini-companion-comment-text comment))
      comment (overlay-end overlay)))))

(defun gemini-companion-comment--string (text comment position)
  "Return TEXT as it is displayed below the line at POSITION; it is of COMMENT."
  (let ((shown (propertize (concat "  " (gemini-companion-comment--indented text))
                           'face (list (gemini-companion-comment--face comment)
                                       ;; The color of the text would shine through.
                                       'default)
                           'wrap-prefix "     ")))
    ;; Where the lines of a comment were deleted, the next line is at its place.
    (if (save-excursion
          (goto-char position)
          (and (bolp) (not (eolp))))
        (concat shown "\n")
      (concat "\n" shown))))

(defun gemini-companion-comment--indented (text)
  "Return TEXT of a comment as it is displayed: its further lines are indented.
Of a very long one, only the beginning is displayed."
  (string-replace "\n" "\n     " (truncate-string-to-width text 4000 nil nil t)))

(defun gemini-companion-comment--overlay (comment)
  "Return a new overlay on the lines of COMMENT in the current buffer.
Of removed lines, it is at the line before their place."
  (pcase-let* ((text (gemini-companion-text-of-buffer))
               (`(,first . ,last)
                (if (eq 'after (gemini-companion-comment-side comment))
                    (gemini-companion-comment-range
                     comment (gemini-companion-baseline-split text))
                  (let ((line (max 1 (1- (gemini-companion-comment-first comment)))))
                    (cons line line))))
               (beg (gemini-companion-hunk-line first))
               (overlay (make-overlay
                         beg
                         (save-excursion
                           (goto-char (gemini-companion-hunk-line last))
                           (line-end-position))
                         nil nil t)))
    (overlay-put overlay 'gemini-companion-comment comment)
    ;; Of two after-strings, the one of the higher priority is displayed first.
    (overlay-put overlay 'priority
                 (max 0 (- 10000 (gemini-companion-comment-number comment))))
    (dolist (hook '(modification-hooks insert-in-front-hooks insert-behind-hooks))
      (overlay-put overlay hook '(gemini-companion-comment--follow-text)))
    overlay))

(defun gemini-companion-comment--hide (comment)
  "Display COMMENT no longer in the buffer of its file."
  (when-let* ((overlay (gemini-companion-comment-overlay comment)))
    (setf (gemini-companion-comment-first comment)
          (gemini-companion-comment-now comment)
          (gemini-companion-comment-overlay comment) nil)
    (delete-overlay overlay)))

(defun gemini-companion-comment--detach ()
  "Remember where the comments in the current buffer are, which is killed."
  (dolist (comment gemini-companion-comment--all)
    (when-let* ((overlay (gemini-companion-comment-overlay comment))
                ((eq (current-buffer) (overlay-buffer overlay))))
      (gemini-companion-comment--hide comment))))
(put 'gemini-companion-comment--detach 'permanent-local-hook t)

(defun gemini-companion-comment--attach ()
  "Display the comments on the file that the current buffer visits."
  (when gemini-companion-comment--all
    (dolist (comment gemini-companion-comment--all)
      (when (gemini-companion-names-visited-here-p
             (gemini-companion-comment-file comment))
        (gemini-companion-comment--show comment)))))

;;;; In the buffers of a review

(defun gemini-companion-comment--follow (edit event)
  "Show the comments on EDIT in its buffers, after EVENT.
If EDIT is accepted, they are on its file from now on."
  (when (and (eq event 'settled)
             (gemini-companion-edit-accepted-p edit))
    (gemini-companion-comment-adopt edit))
  (when (and (memq event '(shown changed))
             (gemini-companion-edit-open-p edit))
    (let ((comments (gemini-companion-edit-comments edit)))
      (dolist (side '(before after))
        (when-let* ((buffer (if (eq side 'after)
                                (gemini-companion-edit-proposal-buffer edit)
                              (gemini-companion-edit-original-buffer edit))))
          (with-current-buffer buffer
            (save-restriction
              (widen)
              (remove-overlays nil nil 'gemini-companion-comment t)
              (dolist (place comments)
                (when (eq side (caar place))
                  (gemini-companion-comment--show-in-review place))))))))))

(defun gemini-companion-comment--show-in-review (place)
  "Display PLACE, (KEY . TEXT), below its last line in the current buffer."
  (pcase-let* ((`((,_ . ,lines) . ,text) place)
               (last (cdr (gemini-companion-comment--ends lines)))
               (end (save-excursion
                      (goto-char (gemini-companion-hunk-line last))
                      (line-end-position)))
               (overlay (make-overlay end end)))
    (overlay-put overlay 'gemini-companion-comment t)
    (overlay-put overlay 'after-string
                 (gemini-companion-comment--string
                  (gemini-companion-comment--shown place) text end))))

(defun gemini-companion-comment-show-here ()
  "Show at once what a command has changed of comments in the list or the page."
  (when gemini-companion-edits-view
    (gemini-companion-view-follow gemini-companion-edits-view 'changed)))

;;;; What is accepted

(defun gemini-companion-comment-adopt (edit)
  "Make the comments on EDIT, which was accepted, comments on its file.
The buffers of its review still exist."
  (let* ((after (gemini-companion-baseline-split (gemini-companion-edit-after edit)))
         (before (gemini-companion-baseline-split
                  (gemini-companion-text-of-buffer
                   (gemini-companion-edit-texts-original edit))))
         (proposal (gemini-companion-baseline-split
                    (gemini-companion-text-of-buffer
                     (gemini-companion-edit-proposal-buffer edit))))
         (comments (reverse (gemini-companion-edit-comments edit))))
    (pcase-dolist (`(,key . ,text) comments)
      (let ((comment (gemini-companion-comment--of-file
                      edit key (if (eq 'after (car key)) proposal before) text)))
        ;; Without what was excluded, the lines are elsewhere.
        (when (eq 'after (car key))
          (setf (gemini-companion-comment-first comment)
                (car (gemini-companion-comment-range comment after))))
        (push comment gemini-companion-comment--all)
        (gemini-companion-comment--changed comment)))
    (setf (gemini-companion-edit-commented edit) nil)))

(defun gemini-companion-comment--of-file (edit key lines text)
  "Return a new comment TEXT on the file of EDIT, at KEY in LINES, a vector."
  (pcase-let ((`(,first . ,last) (gemini-companion-comment--ends (cdr key))))
    (gemini-companion-comment--make
     :file (gemini-companion-edit-true-name edit)
     :path (gemini-companion-edit-file edit)
     :session (gemini-companion-edit-session edit)
     :side (car key)
     :first first
     :lines (mapcar #'gemini-companion-comment--bare
                    (substring lines (1- first) (min last (length lines))))
     :text text)))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'comment)))
  "Display comments in files, and ask before Emacs exits."
  '((find-file-hook gemini-companion-comment--attach)
    (after-revert-hook gemini-companion-comment--show-again)
    (gemini-companion-revert-merged-hook gemini-companion-comment--show-again)
    (kill-emacs-query-functions gemini-companion-comment--exit-p)
    (gemini-companion-edit-functions gemini-companion-comment--follow)))

(cl-defmethod gemini-companion-part-start ((_part (eql 'comment)))
  "Display the comments that were made before the mode was turned off."
  (mapc #'gemini-companion-comment--show gemini-companion-comment--all))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'comment)))
  "Display no comments, and keep only those that were not sent.
The mode may be turned off by itself, as the server cannot run, and the
user's text must not be lost."
  (mapc #'gemini-companion-comment--hide gemini-companion-comment--all)
  (setq gemini-companion-comment--all
        (seq-remove #'gemini-companion-comment-sent gemini-companion-comment--all)
        gemini-companion-comment--times nil))

(defun gemini-companion-comment--exit-p ()
  "Return non-nil if Emacs may exit: all comments were sent, or the user agrees."
  (let ((count (+ (seq-count (lambda (comment)
                               (null (gemini-companion-comment-sent comment)))
                             gemini-companion-comment--all)
                  (cl-loop for edit in (gemini-companion-edits-open)
                           sum (length (gemini-companion-edit-comments edit))))))
    (or (= 0 count)
        (yes-or-no-p (format (ngettext "%d comment was not sent; exit anyway? "
                                       "%d comments were not sent; exit anyway? "
                                       count)
                             count)))))

;;;; Commands

;;;###autoload
(defun gemini-companion-comment ()
  "Comment on the line at point, or on the lines of the region.
That is in a file, in a review, in the list of edits, or on the page of a
turn.  A comment that is there already is edited; an empty text removes
it.  A comment on a proposal that awaits your answer goes with the answer;
others stay until you send them, by \\[gemini-companion-send-comments]."
  (interactive)
  (cond (gemini-companion-edits-view
         (gemini-companion-comment--in-view gemini-companion-edits-view))
        (gemini-companion-edit-here
         (gemini-companion-comment--on-proposal gemini-companion-edit-here
                                                (gemini-companion-comment--review-key)))
        ((gemini-companion-text-visited (current-buffer))
         (gemini-companion-comment--in-file))
        (t (user-error "No line of a file here")))
  (deactivate-mark))

;;;###autoload
(defun gemini-companion-remove-comments (&optional all)
  "Remove the comments on files that were sent.
With ALL, a prefix argument, remove the others, too, after asking."
  (interactive
   (list (and current-prefix-arg
              (y-or-n-p "Remove your comments that were not sent, too? "))))
  (let ((comments (if all
                      gemini-companion-comment--all
                    (seq-filter #'gemini-companion-comment-sent
                                gemini-companion-comment--all))))
    (mapc #'gemini-companion-comment--remove comments)
    (gemini-companion-comment-show-here)
    (message (if comments
                 (ngettext "Removed %d comment" "Removed %d comments"
                           (length comments))
               "No comment was sent")
             (length comments))))

(defun gemini-companion-comment--in-view (view)
  "Comment on the line or region in VIEW, one of several edits."
  (let* ((edit-here (lambda () (gemini-companion-view-edit-here view)))
         (edit (or (and (use-region-p)
                        (save-excursion
                          (goto-char (cdr (gemini-companion-comment--region)))
                          (funcall edit-here)))
                   (funcall edit-here)
                   (user-error "No line of a file here")))
         (key (or (if (use-region-p)
                      (gemini-companion-comment--region-key edit-here)
                    (gemini-companion-comment--line-key))
                  (user-error "No line of the file here"))))
    ;; The line of the comment is below the region, and stays there.
    (when (use-region-p)
      (goto-char (cdr (gemini-companion-comment--region))))
    (if (gemini-companion-edit-open-p edit)
        (gemini-companion-comment--on-proposal edit key)
      (pcase-let ((`(,after . ,before) (gemini-companion-view-texts view)))
        (gemini-companion-comment--on-file
         (gemini-companion-comment--of-file
          edit key (if (eq 'after (car key)) after before) nil)
         key (gemini-companion-comment-places (gemini-companion-edit-true-name edit)
                                              after before))))))

(defun gemini-companion-comment--review-key ()
  "Return the key of a comment in the current buffer, one of a review."
  (let* ((edit gemini-companion-edit-here)
         (side (cond ((eq (current-buffer) (gemini-companion-edit-proposal-buffer edit))
                      'after)
                     ((eq (current-buffer) (gemini-companion-edit-original-buffer edit))
                      'before))))
    (or (cond (side (gemini-companion-comment--buffer-key side))
              ((use-region-p)
               (gemini-companion-comment--region-key
                (lambda () gemini-companion-edit-here)))
              ((gemini-companion-comment--line-key))
              ;; The control panel of Ediff.
              (t (gemini-companion-comment--hunk-key
                  (and (gemini-companion-edit-view edit)
                       (gemini-companion-view-hunk (gemini-companion-edit-view edit))))))
        (user-error "No line of the file here"))))

(defun gemini-companion-comment--buffer-key (side)
  "Return the key of a comment on the line or region of this buffer, of SIDE."
  (pcase-let ((`(,beg . ,end) (if (use-region-p)
                                  (gemini-companion-comment--region)
                                (cons (point) (point)))))
    (gemini-companion-comment--key side (line-number-at-pos beg t)
                                   (line-number-at-pos end t))))

(defun gemini-companion-comment--hunk-key (hunk)
  "Return the key of a comment on the lines of HUNK, or nil if that is nil."
  (cond ((null hunk) nil)
        ((< 0 (gemini-companion-hunk-new-count hunk))
         (gemini-companion-comment--key 'after (gemini-companion-hunk-new hunk)
                                        (1- (gemini-companion-hunk-new-end hunk))))
        (t
         (gemini-companion-comment--key 'before (gemini-companion-hunk-old hunk)
                                        (1- (gemini-companion-hunk-old-end hunk))))))

(defun gemini-companion-comment--prompt (key)
  "Return the text before the input of a comment on KEY."
  (format (if (consp (cdr key)) "Comment on lines %s: " "Comment on line %s: ")
          (gemini-companion-hunk-range (cdr key))))

(defun gemini-companion-comment--key-to-edit (key places)
  "Return the key in PLACES of the comment that is below KEY, or KEY itself.
For a region, only a comment on the same lines is edited."
  (if (use-region-p)
      key
    (or (caar (gemini-companion-comment--at key places)) key)))

(defun gemini-companion-comment--on-proposal (edit key)
  "Read a comment on the lines of KEY of EDIT, which awaits an answer."
  (gemini-companion-edit-unsettled edit)
  (let* ((comments (gemini-companion-edit-comments edit))
         (key (gemini-companion-comment--key-to-edit key comments))
         (text (gemini-companion-edit-read
                edit (gemini-companion-comment--prompt key)
                (cdr (assoc key comments)))))
    (when text
      (gemini-companion-edit-comment
       edit key (and (not (string-blank-p text)) text)))))

(defun gemini-companion-comment--in-file ()
  "Comment on the line or region of the file that the current buffer visits."
  (let* ((path (gemini-companion-names-file))
         (record (gemini-companion-changes-here))
         (file (if record
                   (gemini-companion-changes-file-name record)
                 (gemini-companion-text-true-name path)))
         (edit (if record
                   (gemini-companion-changes-file-edit record)
                 (car (gemini-companion-edits-of-file file))))
         (lines (gemini-companion-baseline-split (gemini-companion-text-of-buffer)))
         (key (gemini-companion-comment--buffer-key 'after))
         (range (gemini-companion-comment--ends (cdr key))))
    (gemini-companion-comment--on-file
     (gemini-companion-comment--make
      :file file
      :path (if edit (gemini-companion-edit-file edit) path)
      :session (and edit (gemini-companion-edit-session edit))
      :side 'after :first (car range)
      :lines (mapcar #'gemini-companion-comment--bare
                     (substring lines (min (1- (car range)) (length lines))
                                (min (cdr range) (length lines)))))
     key (gemini-companion-comment-places file lines lines))))

(defun gemini-companion-comment--on-file (new key places)
  "Read the text of a comment on a file, at KEY.
NEW is the comment unless one of PLACES, (KEY . COMMENT), is there already
and was not sent."
  (let* ((places (seq-remove (lambda (place)
                               (gemini-companion-comment-sent (cdr place)))
                             places))
         (key (gemini-companion-comment--key-to-edit key places))
         (comment (or (cdr (assoc key places)) new))
         (text (read-string (gemini-companion-comment--prompt key)
                            (gemini-companion-comment-text comment))))
    (setf (gemini-companion-comment-text comment) text)
    (cond ((string-blank-p text)
           (gemini-companion-comment--remove comment))
          (t
           (cl-pushnew comment gemini-companion-comment--all :test #'eq)
           (gemini-companion-comment--changed comment)))
    (gemini-companion-comment-show-here)))

(gemini-companion-part-loaded 'comment)

(provide 'gemini-companion-comment)
;;; gemini-companion-comment.el ends here
