;;; gemini-companion-turn-page.el --- The changes of a turn as one page  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; All that a turn, or a CLI, has changed in its files and that is neither kept nor
;; undone, one file after the other as a unified diff, and the proposals among it
;; that await an answer.  What a turn has written and the user has reviewed is
;; named below, and can be unfolded.
;;
;; The buffer is a page, see `gemini-companion-page'.  It consists of parts, one for
;; each file, whose diffs are drawn by the code of the unified view, and again only
;; if what they are computed from has changed.  A change is one of
;; `gemini-companion-changes', and keeping or undoing it here is the same as in the
;; buffer of its file.

;;; Code:

(require 'gemini-companion-changes)
(require 'gemini-companion-commands)
(require 'gemini-companion-comment)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-format)
(require 'gemini-companion-header)
(require 'gemini-companion-hunk)
(require 'gemini-companion-label)
(require 'gemini-companion-lines)
(require 'gemini-companion-page)
(require 'gemini-companion-part)
(require 'gemini-companion-review)
(require 'gemini-companion-revert)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-unified)
(require 'gemini-companion-unified-draw)
(require 'gemini-companion-view)
(require 'gemini-companion-walk)
(require 'gemini-companion-watch)
(require 'gemini-companion-windows)
(require 'gemini-companion-windows-at-once)

;;;; Customization

(defface gemini-companion-file
  '((t :inherit diff-file-header :extend t))
  "Face of the line of a file on the page of a turn."
  :group 'gemini-companion-reviews)

;; Colors such as that of `warning' are hard to read on the gray of that line.
(defface gemini-companion-file-remark
  '((t :underline t))
  "Face of what needs attention in the line of a file on the page of a turn."
  :group 'gemini-companion-reviews)

;;;; Keys

(defvar gemini-companion-turn-page-mode-map
  (gemini-companion-commands-bind (make-sparse-keymap) 'page)
  "Keys on the page of a turn.")

;;;; State

(defconst gemini-companion-turn-page--buffer "*gemini changes*"
  "Name of the buffer with the page.")

(cl-defstruct (gemini-companion-turn-page--subject
               (:noinline t)
               (:constructor gemini-companion-turn-page--make-subject (session turn))
               (:copier nil))
  "What the page shows: the changes of TURN by SESSION.
If TURN is nil, those of all turns."
  session turn
  (unfolded nil :documentation "Non-nil if what was reviewed is not folded."))

(cl-defstruct (gemini-companion-turn-page--part
               (:noinline t)
               (:constructor gemini-companion-turn-page--make-part)
               (:copier nil))
  "What the page shows of one file.
KEY identifies it, PATH is the name of the file, and KIND is `changes',
`proposal', `reviewed' or, where the user has only comments, `comments'.
RECORD is that of the file, with its CHANGES, in the lines NOW, a vector;
or EDIT is the proposal, or the last edit that was reviewed, or nil.

TEXT is drawn from what STATE has, compared by `equal'.  All its lines have
the part as the text property `gemini-companion-turn-page-part'."
  key path kind record changes now edit state text)

(defvar-local gemini-companion-turn-page--subject nil
  "What this page shows.")

(defvar-local gemini-companion-turn-page--parts nil
  "The parts of this page as it was drawn last, in order.")

(defvar-local gemini-companion-turn-page--toggled nil
  "Keys of the parts that the user has folded, or unfolded if they were.")

;;;; What belongs to the page

(defun gemini-companion-turn-page--times (subject)
  "Return when comments on what is in SUBJECT were sent, the last time first.
What its CLI has written later is an answer to them."
  (let ((turn (gemini-companion-turn-page--subject-turn subject)))
    (seq-filter (lambda (time)
                  (or (null turn) (< (gemini-companion-turn-began turn) time)))
                (gemini-companion-comment-times
                 (gemini-companion-turn-page--subject-session subject)))))

(defun gemini-companion-turn-page--new-p (subject edit)
  "Return non-nil if EDIT was written after the last comments on SUBJECT."
  (when-let* ((last (car (gemini-companion-turn-page--times subject))))
    (< last (gemini-companion-edit-since edit))))

(defun gemini-companion-turn-page--own-p (subject edit)
  "Return non-nil if EDIT is one of those of SUBJECT.
Of a turn, so are those that were written after the first comments on it."
  (let ((turn (gemini-companion-turn-page--subject-turn subject)))
    (and (gemini-companion-session-same-p
          (gemini-companion-turn-page--subject-session subject)
          (gemini-companion-edit-session edit))
         (or (null turn)
             (eq turn (gemini-companion-edit-turn edit))
             (when-let* ((first (car (last (gemini-companion-turn-page--times
                                            subject)))))
               (< first (gemini-companion-edit-since edit)))))))

(defun gemini-companion-turn-page--edits (subject)
  "Return the edits of SUBJECT, oldest first."
  (seq-filter (apply-partially #'gemini-companion-turn-page--own-p subject)
              (gemini-companion-edits)))

(defun gemini-companion-turn-page--version (record)
  "Return a value that differs, by `equal', after a change of RECORD or its file."
  (let ((buffer (gemini-companion-changes-buffer record)))
    (list (gemini-companion-changes-file-version record)
          (if buffer
              (list buffer (buffer-chars-modified-tick buffer)
                    (buffer-modified-p buffer))
            (gemini-companion-watch-stamp (gemini-companion-changes-path record))))))

(defun gemini-companion-turn-page--same (key state)
  "Return the part of KEY that is displayed if it was drawn from STATE, or nil."
  (seq-find (lambda (part)
              (and (equal key (gemini-companion-turn-page--part-key part))
                   (equal state (gemini-companion-turn-page--part-state part))))
            gemini-companion-turn-page--parts))

(defun gemini-companion-turn-page--changes-part (subject record)
  "Return the part with the changes of RECORD that are of SUBJECT, or nil.
The one that is displayed stays if nothing that it depends on has changed."
  (let* ((key (list 'changes (gemini-companion-changes-file-name record)))
         (state (list (gemini-companion-turn-page--version record)
                      (gemini-companion-changes-file-edits record)
                      (gemini-companion-comment-state
                       (gemini-companion-changes-file-name record))
                      (gemini-companion-turn-page--times subject)
                      (gemini-companion-turn-page--draw-state key))))
    (or (gemini-companion-turn-page--same key state)
        (let* ((own-p (apply-partially #'gemini-companion-turn-page--own-p subject))
               (changes (seq-filter
                         (lambda (change)
                           (gemini-companion-changes-share change own-p))
                         (gemini-companion-changes-look record))))
          (when changes
            (gemini-companion-turn-page--drawn
             (gemini-companion-turn-page--make-part
              :key key :kind 'changes :state state :record record :changes changes
              :edit (gemini-companion-changes-file-edit record)
              :path (gemini-companion-changes-path record)
              :now (gemini-companion-lines-split
                    (gemini-companion-changes-text record)))
             subject))))))

(defun gemini-companion-turn-page--edit-part (subject kind edit)
  "Return the part of KIND for EDIT, one of SUBJECT."
  (let* ((key (list kind (gemini-companion-edit-id edit)
                    (gemini-companion-edit-true-name edit)))
         (hunks (condition-case nil
                    (gemini-companion-edit-hunks edit)
                  ;; The text before was not kept, or the program diff fails.
                  (error 'failed)))
         (state (list edit (gemini-companion-edit-compared edit)
                      (gemini-companion-edit-status edit)
                      (and (gemini-companion-edit-open-p edit)
                           (gemini-companion-hunk-excluded
                            (gemini-companion-edit-proposal-buffer edit)))
                      (gemini-companion-comment-state-of-edit edit)
                      (gemini-companion-turn-page--draw-state key))))
    (or (gemini-companion-turn-page--same key state)
        (gemini-companion-turn-page--drawn
         (gemini-companion-turn-page--make-part
          :key key :kind kind :state state :edit edit :changes hunks
          :path (gemini-companion-edit-file edit))
         subject))))

(defun gemini-companion-turn-page--comments-part (subject file)
  "Return the part with the comments for the CLI of SUBJECT on FILE, a true name.
No change of FILE is left."
  (let* ((comment (car (gemini-companion-comments-of-file file)))
         (path (gemini-companion-comment-path comment))
         (buffer (gemini-companion-names-buffer path))
         (key (list 'comments file))
         (state (list (gemini-companion-comment-state file)
                      (if buffer
                          (buffer-chars-modified-tick buffer)
                        (gemini-companion-watch-stamp path))
                      (gemini-companion-turn-page--draw-state key))))
    (or (gemini-companion-turn-page--same key state)
        (gemini-companion-turn-page--drawn
         (gemini-companion-turn-page--make-part
          :key key :path path :kind 'comments :state state
          :edit (car (gemini-companion-edits-of-file file))
          :now (gemini-companion-lines-split
                (cond (buffer (gemini-companion-revert-text buffer))
                      ((gemini-companion-text-unreadable-reason path) "")
                      (t (or (ignore-error file-error
                               (gemini-companion-text-read path))
                             "")))))
         subject))))

(defun gemini-companion-turn-page--files (changes-parts)
  "Return the true names of the files of CHANGES-PARTS."
  (mapcar (lambda (part)
            (gemini-companion-changes-file-name
             (gemini-companion-turn-page--part-record part)))
          changes-parts))

(defun gemini-companion-turn-page--commented (subject shown)
  "Return the files with comments for the CLI of SUBJECT, true names.
Those of SHOWN, a list of true names, have parts that display theirs."
  (seq-difference
   (seq-uniq
    (cl-loop for comment in (gemini-companion-comments)
             when (gemini-companion-turn-page--comment-p subject comment)
             collect (gemini-companion-comment-file comment)))
   shown))

(defun gemini-companion-turn-page--comment-p (subject comment)
  "Return non-nil if COMMENT is for the CLI of SUBJECT.
One for no known CLI is, if its file is in the directory of that."
  (let* ((session (gemini-companion-turn-page--subject-session subject))
         (other (gemini-companion-comment-session comment))
         (directory (plist-get session :directory)))
    (if other
        (gemini-companion-session-same-p session other)
      (and directory
           (gemini-companion-text-in-directory-p
            (gemini-companion-comment-file comment)
            (file-name-as-directory
             (gemini-companion-text-true-name directory)))))))

(defun gemini-companion-turn-page--draw-state (key)
  "Return a list of all but texts and comments that the part KEY is drawn from."
  (list (and (member key gemini-companion-turn-page--toggled) t)
        gemini-companion-unified-draw-unfolded
        (window-width (get-buffer-window nil t))))

(defun gemini-companion-turn-page--reviewed (subject changes-parts)
  "Return the edits of the turn of SUBJECT of which no change is left.
These are the last ones of each file that has none of CHANGES-PARTS.  What
was rejected, and not written, is none of them."
  (when (gemini-companion-turn-page--subject-turn subject)
    (let ((left (gemini-companion-turn-page--files changes-parts))
          (edits (seq-filter
                  (lambda (edit)
                    (memq (gemini-companion-edit-status edit)
                          '( accepted automatic unreviewed reverted unsaved
                             deleted)))
                  (gemini-companion-turn-page--edits subject))))
      (seq-remove (lambda (edit)
                    (member (gemini-companion-edit-true-name edit) left))
                  edits))))

(defun gemini-companion-turn-page--compute (subject)
  "Return the parts of SUBJECT as they are now."
  (let* ((changes (delq nil
                        (mapcar (apply-partially
                                 #'gemini-companion-turn-page--changes-part subject)
                                (gemini-companion-changes-files 'all))))
         (reviewed (gemini-companion-turn-page--reviewed subject changes))
         (commented (gemini-companion-turn-page--commented
                     subject
                     (append (gemini-companion-turn-page--files changes)
                             (mapcar #'gemini-companion-edit-true-name
                                     (seq-filter
                                      #'gemini-companion-turn-page--with-comments-p
                                      reviewed))))))
    (append changes
            (mapcar (apply-partially #'gemini-companion-turn-page--comments-part
                                     subject)
                    commented)
            (mapcar (apply-partially #'gemini-companion-turn-page--edit-part
                                     subject 'proposal)
                    (seq-filter #'gemini-companion-edit-open-p
                                (gemini-companion-turn-page--edits subject)))
            (mapcar (apply-partially #'gemini-companion-turn-page--edit-part
                                     subject 'reviewed)
                    reviewed))))

;;;; Drawing

(defun gemini-companion-turn-page--with-comments-p (edit)
  "Return non-nil if the diff of EDIT, which has ended, displays comments.
Those on its file are below the last edit of that only."
  (let ((file (gemini-companion-edit-true-name edit)))
    (and (gemini-companion-comments-of-file file)
         (eq edit (car (gemini-companion-edits-of-file file))))))

(defun gemini-companion-turn-page--folded-p (part subject)
  "Return non-nil if only the first line of PART of SUBJECT is displayed."
  (let ((folded (and (eq 'reviewed (gemini-companion-turn-page--part-kind part))
                     (not (gemini-companion-turn-page--subject-unfolded subject))
                     (not (gemini-companion-turn-page--with-comments-p
                           (gemini-companion-turn-page--part-edit part))))))
    (if (member (gemini-companion-turn-page--part-key part)
                gemini-companion-turn-page--toggled)
        (not folded)
      folded)))

(defun gemini-companion-turn-page--drawn (part subject)
  "Return PART of SUBJECT with its text."
  (let* ((folded (gemini-companion-turn-page--folded-p part subject))
         (diff (unless folded (gemini-companion-turn-page--diff part)))
         (heading (concat (gemini-companion-turn-page--heading part subject)
                          (and folded " ...") "\n")))
    (add-face-text-property 0 (length heading) 'gemini-companion-file 'append heading)
    ;; With nothing else to go to, its first line is a stop.
    (unless (and diff (text-property-not-all 0 (length diff)
                                             'gemini-companion-change nil diff))
      (put-text-property 0 1 'gemini-companion-change t heading))
    (setf (gemini-companion-turn-page--part-text part)
          (propertize (concat heading diff)
                      'gemini-companion-turn-page-part part))
    part))

(defun gemini-companion-turn-page--heading (part subject)
  "Return the first line of PART of SUBJECT: file, lines, and remarks."
  (let* ((edit (gemini-companion-turn-page--part-edit part))
         (place (gemini-companion-label-place
                 (gemini-companion-turn-page--part-path part)
                 (gemini-companion-turn-page--subject-session subject)))
         (warnings (gemini-companion-label-place-warnings place))
         (remarks (delq nil
                        (append
                         (list (gemini-companion-turn-page--lines part))
                         (pcase (gemini-companion-turn-page--part-kind part)
                           ('changes
                            (gemini-companion-turn-page--remarks part subject))
                           ('comments
                            (list (gemini-companion-turn-page--ended
                                   (gemini-companion-turn-page--part-path part))))
                           ('proposal
                            (list (propertize "proposal, awaits your answer"
                                              'face 'gemini-companion-file-remark)))
                           (_ (list (gemini-companion-turn-page--outcome edit))))
                         warnings)))
         (end (mapconcat (apply-partially #'concat "  ") remarks ""))
         (room (- (window-width (get-buffer-window nil t)) 6 (string-width end))))
    (concat (gemini-companion-names-shown
             (gemini-companion-label-place-text place 'plain) (max 16 room))
            end)))

(defun gemini-companion-turn-page--lines (part)
  "Return a text for the numbers of lines in PART, such as \"+3 -1\", or nil."
  (let ((changes (gemini-companion-turn-page--part-changes part)))
    (if (gemini-companion-turn-page--part-record part)
        (gemini-companion-hunk-lines
         (cl-loop for change in changes
                  sum (- (gemini-companion-lines-change-end change)
                         (gemini-companion-lines-change-start change)))
         (cl-loop for change in changes
                  sum (length (gemini-companion-lines-change-lines change))))
      (unless (eq 'comments (gemini-companion-turn-page--part-kind part))
        (gemini-companion-edit-hunks-lines
         (list (gemini-companion-turn-page--part-edit part)))))))

(defun gemini-companion-turn-page--remarks (part subject)
  "Return remarks on the changes of PART of SUBJECT, a list of texts."
  (let* ((record (gemini-companion-turn-page--part-record part))
         (changes (gemini-companion-turn-page--part-changes part))
         (own-p (apply-partially #'gemini-companion-turn-page--own-p subject))
         (shared (seq-count
                  (lambda (change)
                    (eq 'some (gemini-companion-changes-share change own-p)))
                  changes))
         (count (length changes))
         (new (seq-count
               (lambda (change)
                 (gemini-companion-changes-share
                  change
                  (apply-partially #'gemini-companion-turn-page--new-p subject)))
               changes)))
    (list (format (ngettext "%d change" "%d changes" count) count)
          (and (< 0 new)
               (propertize (format "%d since your comments" new)
                           'face 'gemini-companion-file-remark))
          (and (gemini-companion-changes-file-new record) "new file")
          ;; No line of a diff shows that.
          (seq-some #'gemini-companion-changes-conversion-text changes)
          (and (< 0 shared)
               (format (if (gemini-companion-turn-page--subject-turn subject)
                           "%d of another turn, too"
                         "%d of another CLI, too")
                       shared))
          (and (gemini-companion-revert-unsaved (gemini-companion-changes-path record))
               (propertize "not saved" 'face 'gemini-companion-file-remark)))))

(defun gemini-companion-turn-page--outcome (edit)
  "Return what has become of EDIT, of which no change is left, a text."
  (pcase (gemini-companion-edit-status edit)
    ((or 'reverted 'unsaved) "undone")
    ('deleted "deleted")
    (_ (gemini-companion-turn-page--ended (gemini-companion-edit-file edit)))))

(defun gemini-companion-turn-page--ended (path)
  "Return why no change is left of the file PATH, a text."
  (if (gemini-companion-text-attributes path)
      "nothing left to review"
    "deleted or renamed since"))

(defun gemini-companion-turn-page--diff (part)
  "Return the diff of PART."
  (let ((edit (gemini-companion-turn-page--part-edit part))
        (changes (gemini-companion-turn-page--part-changes part))
        ;; In a temporary buffer, its local value would be nil.
        (unfolded gemini-companion-unified-draw-unfolded))
    (cond ((gemini-companion-turn-page--part-record part)
           (gemini-companion-turn-page--diff-of-changes part unfolded))
          ((eq 'comments (gemini-companion-turn-page--part-kind part))
           (gemini-companion-turn-page--comments-alone part))
          ((eq 'failed changes) "The text before was not kept\n")
          (changes
           (gemini-companion-edit-texts-call
            edit
            (lambda (old new)
              (with-temp-buffer
                (gemini-companion-unified-draw-insert edit old new changes unfolded)
                (gemini-companion-turn-page--insert-comments
                 part (gemini-companion-text-of-buffer new)
                 (gemini-companion-text-of-buffer old))
                (buffer-string)))))
          (t "No lines\n"))))

(defun gemini-companion-turn-page--diff-of-changes (part unfolded)
  "Return the diff of the changes of PART.
UNFOLDED are the folds whose lines are shown."
  (let ((changes (gemini-companion-turn-page--part-changes part))
        (now (gemini-companion-turn-page--part-now part)))
    (with-temp-buffer
      (insert (gemini-companion-lines-join
               (gemini-companion-changes-without
                (gemini-companion-turn-page--part-record part) changes now)))
      (let ((old (current-buffer)))
        (with-temp-buffer
          (insert (gemini-companion-lines-join now))
          (let ((new (current-buffer)))
            (with-temp-buffer
              (gemini-companion-unified-draw-insert
               (gemini-companion-turn-page--part-edit part) old new
               (gemini-companion-turn-page--hunks changes) unfolded)
              (gemini-companion-turn-page--insert-conversion changes)
              (gemini-companion-turn-page--insert-comments
               part (gemini-companion-text-of-buffer new)
               (gemini-companion-text-of-buffer old))
              (buffer-string))))))))

(defun gemini-companion-turn-page--insert-comments (part after before)
  "Insert the comments on PART into its diff, in the current buffer.
AFTER and BEFORE are the two texts.  What is on lines that the diff does not
have is at its end."
  (let* ((edit (gemini-companion-turn-page--part-edit part))
         (left (gemini-companion-comment-insert
                (cond ((gemini-companion-edit-open-p edit)
                       (gemini-companion-comment-places-of-edit edit))
                      ((or (gemini-companion-turn-page--part-record part)
                           (gemini-companion-turn-page--with-comments-p edit))
                       (gemini-companion-comment-places
                        (gemini-companion-comment-file-of-edit edit)
                        (gemini-companion-lines-split after)
                        (gemini-companion-lines-split before)))))))
    (goto-char (point-max))
    (dolist (place left)
      (gemini-companion-comment-insert-with-lines
       place (gemini-companion-lines-split
              (if (eq 'before (caar place)) before after))))))

(defun gemini-companion-turn-page--comments-alone (part)
  "Return the comments on the file of PART with their lines, as a text."
  (let ((now (gemini-companion-turn-page--part-now part)))
    (with-temp-buffer
      (dolist (place (gemini-companion-comment-places
                      (cadr (gemini-companion-turn-page--part-key part)) now now))
        (gemini-companion-comment-insert-with-lines place now))
      (buffer-string))))

(defun gemini-companion-turn-page--insert-conversion (changes)
  "Insert a line at the beginning for the conversion of the file in CHANGES."
  (pcase (seq-some #'gemini-companion-changes-conversion-text changes)
    ((and text (pred stringp))
     (goto-char (point-min))
     (insert (propertize (format "Converted: %s\n"
                                 text)
                         'face 'gemini-companion-fold
                         'gemini-companion-turn-page-conversion t))
     (put-text-property (point-min) (1+ (point-min)) 'gemini-companion-change t))))

(defun gemini-companion-turn-page--hunks (changes)
  "Return CHANGES, `gemini-companion-weave-change's in order, as hunks.
They are between the text without CHANGES, and the one with them.  A
conversion is none."
  (let ((offset 0))
    (mapcar (lambda (change)
              (let* ((start (gemini-companion-lines-change-start change))
                     (count (- (gemini-companion-lines-change-end change) start))
                     (old-count (length (gemini-companion-lines-change-lines
                                         change))))
                (prog1 (gemini-companion-hunk-make (+ 1 start offset) old-count
                                                   (1+ start) count)
                  (setq offset (+ offset (- old-count count))))))
            (seq-remove #'gemini-companion-changes-conversion changes))))

(defun gemini-companion-turn-page--title (subject)
  "Return the lines above the parts: what SUBJECT is, and how much is left."
  (let* ((session (gemini-companion-turn-page--subject-session subject))
         (turn (gemini-companion-turn-page--subject-turn subject))
         (edits (gemini-companion-turn-page--edits subject))
         (changes (apply #'+ (mapcar (lambda (part)
                                       (if (gemini-companion-turn-page--part-record part)
                                           (length (gemini-companion-turn-page--part-changes
                                                    part))
                                         0))
                                     gemini-companion-turn-page--parts)))
         (proposals (seq-count #'gemini-companion-edit-open-p edits)))
    (concat
     (propertize (gemini-companion-session-name session)
                 'face 'font-lock-keyword-face)
     (when turn
       (concat "  " (format-time-string "%H:%M" (gemini-companion-turn-began turn))
               "  " (if-let* ((prompt (gemini-companion-turn-prompt turn)))
                        (gemini-companion-text-escaped prompt 'composed)
                      (gemini-companion-edit-hunks-files edits))))
     "\n"
     (propertize
      (concat
       (if (= 0 changes)
           "No change is left"
         (format (ngettext "%d change left" "%d changes left" changes) changes))
       (when (< 0 proposals)
         (format (ngettext ", %d proposal awaits your answer"
                           ", %d proposals await your answer" proposals)
                 proposals)))
      'face 'shadow)
     "\n")))

(defun gemini-companion-turn-page--write ()
  "Write the page: compute its parts again, and replace those that differ."
  (let (;; Drawing 400 changes, Emacs would collect garbage for three quarters of
        ;; the time.
        (gc-cons-threshold (max gc-cons-threshold (* 256 1024 1024)))
        (subject gemini-companion-turn-page--subject))
    (setq gemini-companion-turn-page--parts
          (gemini-companion-turn-page--compute subject))
    (gemini-companion-page-replace-sections
     (cons (cons 'title (gemini-companion-turn-page--title subject))
           (mapcar (lambda (part)
                     (cons (gemini-companion-turn-page--part-key part)
                           (gemini-companion-turn-page--part-text part)))
                   gemini-companion-turn-page--parts)))
    (force-mode-line-update)))

;;;; Mode

(defun gemini-companion-turn-page--keys ()
  "Return the keys for the header line that do something at point, texts."
  (gemini-companion-header-keys-with-unsent
   (gemini-companion-turn-page--subject-session gemini-companion-turn-page--subject)
   'page
   (mapcar #'list
           (if (gemini-companion-turn-page--proposal-here)
               '( gemini-companion-turn-page-keep gemini-companion-turn-page-undo
                  gemini-companion-turn-page-keep-file
                  gemini-companion-turn-page-undo-file)
             '( gemini-companion-edit-accept gemini-companion-edit-reject
                gemini-companion-review-toggle-hunk gemini-companion-review-edit
                gemini-companion-review-switch-view)))))

(define-derived-mode gemini-companion-turn-page-mode special-mode "Gemini-Changes"
  "Major mode for the changes of a turn, or of a CLI, on one page.
Each line begins with its numbers before and now, and a sign: `-' for a
removed line, `+' for an added one.

\\{gemini-companion-turn-page-mode-map}"
  :interactive nil
  ;; A global mode may have turned them on.
  :after-hook (setq display-line-numbers nil)
  (buffer-disable-undo)
  (setq truncate-lines nil
        header-line-format '(:eval (gemini-companion-label-fit
                                    (gemini-companion-turn-page--keys)
                                    (window-width)))
        gemini-companion-edits-view (gemini-companion-turn-page--make-view))
  ;; The face of the current line would hide whether it is removed or added.
  (setq-local global-hl-line-mode nil
              bidi-paragraph-direction 'left-to-right
              glyphless-char-display gemini-companion-text-glyphless)
  (gemini-companion-page-set-up #'gemini-companion-turn-page--write
                                '(gemini-companion-changes-functions
                                  gemini-companion-comment-functions
                                  gemini-companion-edit-functions
                                  gemini-companion-session-changed-functions))
  (gemini-companion-commands-letters-are-keys 'gemini-companion-turn-page-mode))

;;;; Point

(cl-defstruct (gemini-companion-turn-page-view
               (:noinline t)
               (:include gemini-companion-view)
               (:constructor gemini-companion-turn-page--make-view)
               (:copier nil))
  "The view of the page, of no one edit.")

(defun gemini-companion-turn-page--part-here ()
  "Return the part at point, or nil."
  (get-text-property (point) 'gemini-companion-turn-page-part))

(defun gemini-companion-turn-page--proposal-here ()
  "Return the edit at point if it awaits an answer, or nil."
  (when-let* ((part (gemini-companion-turn-page--part-here))
              ((eq 'proposal (gemini-companion-turn-page--part-kind part))))
    (gemini-companion-turn-page--part-edit part)))

(cl-defmethod gemini-companion-view-edits ((_ gemini-companion-turn-page-view))
  "Return the CLI of the page, and the proposal at point."
  (cons (gemini-companion-turn-page--subject-session
         gemini-companion-turn-page--subject)
        (when-let* ((edit (gemini-companion-turn-page--proposal-here)))
          (list edit))))

(cl-defmethod gemini-companion-view-edit-here ((_ gemini-companion-turn-page-view))
  "Return the edit of the file at point, or nil."
  (when-let* ((part (gemini-companion-turn-page--part-here)))
    (gemini-companion-turn-page--part-edit part)))

(cl-defmethod gemini-companion-view-texts ((_ gemini-companion-turn-page-view))
  "Return the lines of the file at point now, and without its changes."
  (let* ((part (gemini-companion-turn-page--part-here))
         (now (gemini-companion-turn-page--part-now part)))
    (if now
        (cons now (gemini-companion-lines-without
                   (gemini-companion-turn-page--part-changes part) now))
      (gemini-companion-edit-texts-call
       (gemini-companion-turn-page--part-edit part)
       (lambda (old new)
         (cons (gemini-companion-lines-split
                (gemini-companion-text-of-buffer new))
               (gemini-companion-lines-split
                (gemini-companion-text-of-buffer old))))))))

(cl-defmethod gemini-companion-view-hunk ((_ gemini-companion-turn-page-view))
  "Return the hunk of a proposal at point, or nil."
  (when (gemini-companion-turn-page--proposal-here)
    (get-text-property (point) 'gemini-companion-hunk)))

(cl-defmethod gemini-companion-view-follow
  ((_ gemini-companion-turn-page-view) event)
  "Show the effect of EVENT of an edit at once, as the user has caused it here."
  (when (memq event '(toggled changed))
    (gemini-companion-page-refresh)))

(defun gemini-companion-turn-page--change-at-point ()
  "Return (PART CHANGE LINES) for the change at point, or nil.
LINES are its lines now."
  (when-let* ((part (gemini-companion-turn-page--part-here))
              ((gemini-companion-turn-page--part-record part))
              (changes (gemini-companion-turn-page--part-changes part))
              (change (if (get-text-property (point)
                                             'gemini-companion-turn-page-conversion)
                          (seq-find #'gemini-companion-changes-conversion
                                    changes)
                        (gemini-companion-turn-page--change-of-hunk
                         (get-text-property (point) 'gemini-companion-hunk)
                         changes))))
    (list part change
          (substring (gemini-companion-turn-page--part-now part)
                     (gemini-companion-lines-change-start change)
                     (gemini-companion-lines-change-end change)))))

(defun gemini-companion-turn-page--change-of-hunk (hunk changes)
  "Return the one of CHANGES that is drawn as HUNK, or nil if that is nil."
  (and hunk
       (seq-find (lambda (change)
                   (and (= (gemini-companion-lines-change-start change)
                           (1- (gemini-companion-hunk-new hunk)))
                        (null (gemini-companion-changes-conversion change))))
                 changes)))

(defun gemini-companion-turn-page--change-here ()
  "Return (PART CHANGE LINES) for the change at point, computed again.
Signal an error if there is none, or another than the user has seen."
  (pcase-let ((`(,_ ,seen ,lines) (gemini-companion-turn-page--change-at-point)))
    (unless seen
      (user-error "%s" (if (gemini-companion-turn-page--proposal-here)
                           "This is a proposal; answer it by a or r"
                         "No change here; n goes to the next one")))
    (gemini-companion-page-refresh)
    (pcase (gemini-companion-turn-page--change-at-point)
      ((and found
            `(,_ ,change ,now)
            (guard (equal lines now))
            (guard (equal (gemini-companion-lines-change-lines seen)
                          (gemini-companion-lines-change-lines change))))
       found)
      (_ (user-error "This change is not as you have seen it; the page was updated")))))

(defun gemini-companion-turn-page--file-here ()
  "Return the part with changes at point, computed again, or signal an error."
  (gemini-companion-page-refresh)
  (let ((part (gemini-companion-turn-page--part-here)))
    (unless (and part (gemini-companion-turn-page--part-record part))
      (user-error "No file with changes here; n goes to the next change"))
    part))

(defun gemini-companion-turn-page--stops ()
  "Return the positions of changes, hunks and lines of files to go to, in order."
  (let ((position (point-min))
        (stops nil))
    (while (setq position (text-property-not-all position (point-max)
                                                 'gemini-companion-change nil))
      ;; In a long line are further ones.
      (when (memq (char-before position) '(nil ?\n))
        (push position stops))
      (setq position (1+ position)))
    (nreverse stops)))

(defun gemini-companion-turn-page--number-here ()
  "Return the number of the stop at or before point, from 0 on."
  (max 0 (1- (seq-count (lambda (stop) (<= stop (point)))
                        (gemini-companion-turn-page--stops)))))

(defun gemini-companion-turn-page--beginning-of-part ()
  "Return where the part at point begins."
  (text-property-any (point-min) (point-max) 'gemini-companion-turn-page-part
                     (gemini-companion-turn-page--part-here)))

(defun gemini-companion-turn-page--number-of-file ()
  "Return the number of the first stop of the part at point, from 0 on."
  (let ((beg (gemini-companion-turn-page--beginning-of-part)))
    (seq-count (lambda (stop) (< stop beg)) (gemini-companion-turn-page--stops))))

(defun gemini-companion-turn-page--after (number what)
  "Write the page again, go to its stop NUMBER, and report WHAT was done.
That stop is the next change, as the one of that number is gone."
  (gemini-companion-page-refresh)
  (let ((stops (gemini-companion-turn-page--stops))
        (left (gemini-companion-changes-left)))
    (when stops
      (goto-char (or (nth number stops) (car (last stops))))
      (gemini-companion-turn-page--reveal))
    (message "%s; %s" what
             (if left
                 (format (ngettext "%d change is left" "%d changes are left" left)
                         left)
               "no changes are left"))))

(defun gemini-companion-turn-page--reveal ()
  "Make the change at point visible, if the page is in the selected window."
  (when (eq (current-buffer) (window-buffer))
    (gemini-companion-unified-reveal)))

(defun gemini-companion-turn-page--move (back)
  "Go to the next change, or to the previous one if BACK is non-nil.
A long diff gets more text if that is necessary."
  (let ((fold (and (not back) (gemini-companion-turn-page--more-before
                               (gemini-companion-unified-change)))))
    (when fold
      (gemini-companion-unified-toggle-fold fold)))
  (goto-char (or (gemini-companion-unified-change back)
                 (user-error "No %s change" (if back "previous" "next"))))
  (gemini-companion-turn-page--reveal))

(defun gemini-companion-turn-page--more-before (position)
  "Return the fold of a long diff between point and POSITION, or nil.
POSITION is nil for the end of the buffer."
  (let ((place (point))
        (end (or position (point-max)))
        (found nil))
    (while (and (not found)
                (setq place (text-property-not-all place end
                                                   'gemini-companion-fold nil)))
      (let ((fold (get-text-property place 'gemini-companion-fold)))
        (when (eq 'more (cadr fold))
          (setq found fold))
        (setq place (next-single-property-change place 'gemini-companion-fold
                                                 nil end))))
    found))

;;;; Life

(cl-defmethod gemini-companion-part-stop ((_part (eql 'turn-page)))
  "Close the page."
  (when-let* ((buffer (get-buffer gemini-companion-turn-page--buffer)))
    (gemini-companion-windows-at-once
      (kill-buffer buffer))))

;;;; Commands

(defun gemini-companion-turn-page (&optional session turn)
  "Show the changes of a CLI that you have neither kept nor undone on one page.
SESSION is by default the only CLI, or you are asked.  With TURN, a turn
of it, show that turn only, and name what you have reviewed of it."
  (interactive)
  (let ((subject (gemini-companion-turn-page--make-subject
                  (or session
                      (gemini-companion-session-read
                       (gemini-companion-turn-page--sessions)))
                  turn)))
    (with-current-buffer (get-buffer-create gemini-companion-turn-page--buffer)
      ;; The sections of another turn are known to nobody after the mode has begun.
      (let ((inhibit-read-only t))
        (erase-buffer))
      (gemini-companion-turn-page-mode)
      (setq gemini-companion-turn-page--subject subject))
    (gemini-companion-windows-at-once
      (pop-to-buffer gemini-companion-turn-page--buffer
                     (if gemini-companion-edits-view
                         '(display-buffer-same-window
                           (category . gemini-companion-list))
                       '((display-buffer-reuse-window
                          gemini-companion-windows-display-covering)
                         (category . gemini-companion-list)))))
    (gemini-companion-turn-page--open)))

(defun gemini-companion-turn-page--open ()
  "Write the page in the current buffer for the first time.
If nothing is left to review, unfold what was reviewed.  Go to the first
change."
  (gemini-companion-page-refresh)
  (when (seq-every-p (lambda (part)
                       (eq 'reviewed (gemini-companion-turn-page--part-kind part)))
                     gemini-companion-turn-page--parts)
    (setf (gemini-companion-turn-page--subject-unfolded
           gemini-companion-turn-page--subject)
          t)
    (setq gemini-companion-turn-page--parts nil)
    (gemini-companion-page-refresh))
  (goto-char (or (car (gemini-companion-turn-page--stops)) (point-min))))

(defun gemini-companion-turn-page--sessions ()
  "Return the sessions of CLIs that have changes or are connected.
Those with changes are the only ones if there are any."
  (let ((with-changes
         (seq-uniq
          (seq-mapcat
           (lambda (record)
             (mapcar #'gemini-companion-edit-session
                     (gemini-companion-changes-file-edits record)))
           (gemini-companion-changes-files))
          #'gemini-companion-session-same-p)))
    (or with-changes (gemini-companion-sessions))))

(defun gemini-companion-turn-page-next (&optional count)
  "Go to the next change on the page, or COUNT changes on."
  (interactive "p" gemini-companion-turn-page-mode)
  (let ((count (or count 1)))
    (dotimes (_ (abs count))
      (gemini-companion-turn-page--move (< count 0)))))

(defun gemini-companion-turn-page-previous (&optional count)
  "Go to the previous change on the page, or COUNT changes back."
  (interactive "p" gemini-companion-turn-page-mode)
  (gemini-companion-turn-page-next (- (or count 1))))

(defun gemini-companion-turn-page-keep ()
  "Keep the change at point, and go to the next one."
  (interactive nil gemini-companion-turn-page-mode)
  (pcase-let ((`(,part ,change ,_) (gemini-companion-turn-page--change-here))
              (number (gemini-companion-turn-page--number-here)))
    (gemini-companion-changes-keep (gemini-companion-turn-page--part-record part)
                                   (list change))
    (gemini-companion-turn-page--after number "Kept 1 change")))

(defun gemini-companion-turn-page-undo ()
  "Undo the change at point in its file, and go to the next one.
If the buffer of the file has unsaved text, only that is changed.  A new file is
deleted, after asking."
  (interactive nil gemini-companion-turn-page-mode)
  (pcase-let* ((`(,part ,change ,_) (gemini-companion-turn-page--change-here))
               (number (gemini-companion-turn-page--number-here)))
    (gemini-companion-turn-page--after
     number (gemini-companion-walk-undo
             (list (list (gemini-companion-turn-page--part-record part) change))))))

(defun gemini-companion-turn-page-keep-file (&optional all)
  "Keep all changes of the file at point that are on the page.
With ALL, a prefix argument, keep those of all files on it, but not those
that another turn has changed, too."
  (interactive "P" gemini-companion-turn-page-mode)
  (pcase-let ((`(,number ,groups . ,shared) (gemini-companion-turn-page--groups all)))
    (pcase-dolist (`(,record . ,changes) groups)
      (gemini-companion-changes-keep record changes))
    (gemini-companion-turn-page--after
     number (concat "Kept " (gemini-companion-walk-count groups)
                    (gemini-companion-walk-shared shared)))))

(defun gemini-companion-turn-page-undo-file (&optional all)
  "Undo all changes of the file at point that are on the page.
If its buffer has unsaved text, only that is changed.  With ALL, a prefix
argument, undo those of all files on the page, but not those that another turn
has changed, too.  New files are deleted, after asking."
  (interactive "P" gemini-companion-turn-page-mode)
  (pcase-let ((`(,number ,groups . ,shared) (gemini-companion-turn-page--groups all)))
    (gemini-companion-turn-page--after
     number (concat (gemini-companion-walk-undo groups)
                    (gemini-companion-walk-shared shared)))))

(defun gemini-companion-turn-page--groups (all)
  "Return the changes of the file at point, or on the whole page if ALL is non-nil.
The value is (NUMBER GROUPS . SHARED): the number of the stop to go to
when they are gone, a list of (RECORD . CHANGES), and how many changes are
left out, as another turn or CLI has changed them, too."
  (if all
      (let ((subject gemini-companion-turn-page--subject))
        (gemini-companion-page-refresh)
        (pcase-let ((`(,groups . ,shared)
                     (gemini-companion-walk-changes-of
                      (apply-partially #'gemini-companion-turn-page--own-p subject))))
          (unless groups
            (user-error "No changes to keep or undo here%s"
                        (or (gemini-companion-walk-shared shared) "")))
          (cons 0 (cons groups shared))))
    (let ((part (gemini-companion-turn-page--file-here)))
      (cons (gemini-companion-turn-page--number-of-file)
            (cons (list (cons (gemini-companion-turn-page--part-record part)
                              (gemini-companion-turn-page--part-changes part)))
                  0)))))

(defun gemini-companion-turn-page-toggle ()
  "Fold the file at point, or unfold it.
In a diff, show the lines that are folded at point, or fold unchanged
lines again."
  (interactive nil gemini-companion-turn-page-mode)
  (if (gemini-companion-unified-draw-fold-here)
      (gemini-companion-unified-toggle-fold)
    (let ((key (gemini-companion-turn-page--part-key
                (or (gemini-companion-turn-page--part-here)
                    (user-error "No file here")))))
      (goto-char (gemini-companion-turn-page--beginning-of-part))
      (setq gemini-companion-turn-page--toggled
            (if (member key gemini-companion-turn-page--toggled)
                (remove key gemini-companion-turn-page--toggled)
              (cons key gemini-companion-turn-page--toggled))))
    (gemini-companion-page-refresh)))

(defun gemini-companion-turn-page-visit ()
  "Visit the file at point in another window, at the line at point.
A removed line is where it was.  A proposal is reviewed instead."
  (interactive nil gemini-companion-turn-page-mode)
  (let* ((part (or (gemini-companion-turn-page--part-here)
                   (user-error "No file here")))
         (file (gemini-companion-turn-page--part-path part))
         (line (or (get-text-property (point) 'gemini-companion-line)
                   (when-let* ((change (car (gemini-companion-turn-page--part-changes
                                             part)))
                               ((gemini-companion-lines-change-p change)))
                     (1+ (gemini-companion-lines-change-start change))))))
    (if (gemini-companion-turn-page--proposal-here)
        (gemini-companion-review-enter)
      (when-let* ((why (or (gemini-companion-text-unreadable-reason file)
                           (and (null (gemini-companion-text-attributes file))
                                "was deleted or renamed"))))
        (user-error "%s %s" (gemini-companion-label-file file) why))
      (gemini-companion-windows-show-beside (gemini-companion-revert-visit file)
                                            #'pop-to-buffer)
      (when line
        (let ((place (gemini-companion-hunk-line line)))
          (unless (<= (point-min) place (point-max))
            (widen))
          (goto-char place))))))

(provide 'gemini-companion-turn-page)
;;; gemini-companion-turn-page.el ends here
