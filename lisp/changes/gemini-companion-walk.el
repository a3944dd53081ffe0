;;; gemini-companion-walk.el --- Going from change to change  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A command that goes to a change starts a walk: single keys go to the next change,
;; undo it and keep it.  The walk ends with the first key that neither belongs to it
;; nor scrolls.  A walk goes through all files with changes, in the order in which CLIs
;; first wrote them.

;;; Code:

(require 'gemini-companion-changes)
(require 'gemini-companion-commands)
(require 'gemini-companion-decision)
(require 'gemini-companion-edit)
(require 'gemini-companion-highlight)
(require 'gemini-companion-hunk)
(require 'gemini-companion-label)
(require 'gemini-companion-lines)
(require 'gemini-companion-part)
(require 'gemini-companion-record)
(require 'gemini-companion-revert)
(require 'gemini-companion-step)
(require 'gemini-companion-text)
(require 'gemini-companion-undo)
(require 'gemini-companion-unified-draw)
(require 'gemini-companion-windows-beside)

(declare-function org-show-context "org")

;;;; Keys

(defvar gemini-companion-walk-map
  (gemini-companion-commands-bind
   (make-sparse-keymap) 'change
   (lambda (command)
     `(menu-item "" ,command
                 :filter ,(lambda (command) (unless (minibufferp) command)))))
  "Keys of a walk.")
;; In a graphical frame, vterm and eat bind this key.
(define-key gemini-companion-walk-map [return]
            (lookup-key gemini-companion-walk-map (kbd "RET")))

(defconst gemini-companion-walk--undo-commands
  '(undo undo-only undo-tree-undo undo-fu-only-undo evil-undo)
  "Commands that undo the last change of the current buffer.")
;; The user may have bound them to any key.
(dolist (command gemini-companion-walk--undo-commands)
  (define-key gemini-companion-walk-map (vector 'remap command)
              #'gemini-companion-restore-change))

(defconst gemini-companion-walk--scrolling
  '( recenter-top-bottom recenter mwheel-scroll pixel-scroll-precision
     scroll-other-window scroll-other-window-down)
  "Commands that only scroll, after which the walk goes on.
Other such commands have the property `scroll-command'.")

(defconst gemini-companion-walk--layout
  '( delete-other-windows delete-other-windows-vertically split-window-below
     split-window-right balance-windows enlarge-window enlarge-window-horizontally
     shrink-window shrink-window-horizontally shrink-window-if-larger-than-buffer)
  "Commands that change windows, but select no other: the walk goes on.")

;;;; State

(defvar gemini-companion-walk--end #'ignore
  "Function that ends the keys of the walk.")

(defvar gemini-companion-walk--buffer nil
  "The buffer of the change to which the walk has gone, or nil.")

(defvar gemini-companion-walk--before nil
  "The overlay that displays the previous text of a change, or nil.")

(defvar gemini-companion-walk--words nil
  "Other overlays of the displayed change, such as those of its new words.")

(defvar gemini-companion-walk--last-decision nil
  "The last decision that the user had made before this walk, or nil.")

;;;; Beginning and end

(defun gemini-companion-walk-on-p ()
  "Return non-nil if the walk is on."
  (not (eq gemini-companion-walk--end #'ignore)))

(defun gemini-companion-walk-end ()
  "End the walk, if it is on: the next keys are those of the selected buffer."
  (funcall gemini-companion-walk--end))

(defun gemini-companion-walk--begin ()
  "Activate the keys of `gemini-companion-walk-map' for the next commands.
Each command of the walk begins with this call, as the command may fail: a key
that is typed after it must not become text of a file, nor answer the question
of a CLI in the terminal that is selected."
  (let ((last (if (gemini-companion-walk-on-p)
                  gemini-companion-walk--last-decision
                (gemini-companion-decision-last))))
    (funcall gemini-companion-walk--end)
    (setq gemini-companion-walk--last-decision last))
  (setq gemini-companion-walk--end
        (set-transient-map gemini-companion-walk-map
                           #'gemini-companion-walk--goes-on-p
                           #'gemini-companion-walk--ended))
  (unless (gemini-companion-changes-left)
    (gemini-companion-walk--end-soon))
  (gemini-companion-part-update-lighter))

(defun gemini-companion-walk--begin-here ()
  "As `gemini-companion-walk--begin', if this buffer has or had a change of a CLI.
Elsewhere, as in the terminal of a CLI, the next key is one of that buffer."
  (when (or (gemini-companion-walk-on-p)
            (gemini-companion-changes-here))
    (gemini-companion-walk--begin)))

(defun gemini-companion-walk--end-soon ()
  "End the walk in a second, as no changes are left.
Until then, keys that were typed ahead for further changes insert no text."
  (cancel-function-timers #'gemini-companion-walk--end-without-changes)
  (run-at-time 1 nil #'gemini-companion-walk--end-without-changes))

(defun gemini-companion-walk--end-without-changes ()
  "End the walk if no changes are left."
  (unless (gemini-companion-changes-left)
    (funcall gemini-companion-walk--end)))

(defun gemini-companion-walk--goes-on-p ()
  "Return non-nil if the current command does not end the walk."
  (or (minibufferp)
      (cl-find this-command (gemini-companion-commands-in 'change) :key #'cadr)
      (and (eq (current-buffer) gemini-companion-walk--buffer)
           (symbolp this-command)
           (or (memq this-command gemini-companion-walk--scrolling)
               (memq this-command gemini-companion-walk--layout)
               (get this-command 'scroll-command)))
      (memq this-command '( universal-argument universal-argument-more
                            digit-argument negative-argument))))

(defun gemini-companion-walk--ended ()
  "Remove what the walk has displayed."
  (setq gemini-companion-walk--end #'ignore
        gemini-companion-walk--last-decision nil)
  (gemini-companion-walk--hide-before)
  (gemini-companion-part-update-lighter))

(defun gemini-companion-walk--report (text)
  "Show TEXT and the keys of the walk, as far as they fit."
  (let* ((width (1- (frame-width)))
         (short " (n p u k RET)")
         (keys (seq-find (lambda (keys)
                           (<= (+ (string-width text) (string-width keys)) width))
                         '("   n next  p previous  u undo  k keep  RET before  ? keys"
                           "  n next p prev u undo k keep RET old"))))
    (message "%s" (if keys
                      (concat text keys)
                    (concat (gemini-companion-label-fit
                             (list text) (- width (string-width short)))
                            short)))))

;;;; Changes

(defun gemini-companion-walk--line ()
  "Return the index of the line at point in the whole text."
  (1- (gemini-companion-text-line (current-buffer) (point))))

(defun gemini-companion-walk--at (changes line)
  "Return the one of CHANGES at LINE, the index of a line, or nil.
Removed lines are at the line after them, or else at the last line."
  (let ((last (save-restriction
                (widen)
                (save-excursion
                  (goto-char (point-max))
                  (1- (line-number-at-pos (if (bolp) (max 1 (1- (point))) (point))))))))
    (seq-find (lambda (change)
                (let ((start (gemini-companion-hunk-new change))
                      (end (gemini-companion-hunk-new-end change)))
                  (or (and (<= start line) (< line (max end (1+ start))))
                      (and (= start end) (< last start) (<= last line)))))
              changes)))

(defun gemini-companion-walk--here ()
  "Return a cons of the record of this file, and of the change at point.
Signal an error if there is none."
  (let* ((record (gemini-companion-changes-here))
         (_ (and record (gemini-companion-walk--check-merged record)))
         (change (and record
                      (gemini-companion-walk--at
                       (gemini-companion-changes-update record)
                       (gemini-companion-walk--line)))))
    (unless change
      (user-error "%s" (substitute-command-keys "No change here; \
\\[gemini-companion-next-change] goes to the next one")))
    (cons record change)))

(defun gemini-companion-walk-change ()
  "Return the change at point, or nil if there is none."
  (cdr (ignore-error user-error (gemini-companion-walk--here))))

(defun gemini-companion-walk--check-merged (record)
  "Signal an error if the current buffer is to be merged with RECORD's file first.
The changes of RECORD are then not in the text of the buffer."
  (when (gemini-companion-revert-unmerged-p (current-buffer))
    (user-error "%s %s" (gemini-companion-edit-name
                         (gemini-companion-changes-file-edit record))
                (gemini-companion-revert-blocked-reason (current-buffer)))))

(defun gemini-companion-walk--next (back &optional at others)
  "Visit the file of the next change, or of the previous one if BACK is non-nil.
After the last change of this file, go to the first change of the next file.
If AT is non-nil, the change at point counts as the next one.  OTHERS are
the records of the next files, by default those after this one.  Return a
list of the record, the change, and a text about files that were skipped."
  (let* ((here (gemini-companion-changes-here))
         (nearest (lambda (changes) (car (if back (last changes) changes))))
         (next (and here
                    ;; If the last file was deleted, another one is in its window.
                    (or (null others) (memq here (last others)))
                    ;; Otherwise its changes are not in the text of this buffer.
                    (gemini-companion-changes-buffer here)
                    (let ((line (gemini-companion-walk--line)))
                      (funcall nearest
                               (seq-filter
                                (lambda (change)
                                  (let ((start (gemini-companion-hunk-new change)))
                                    (cond (back (< start line))
                                          (at (<= line start))
                                          (t (< line start)))))
                                (gemini-companion-changes-update here)))))))
    (if next
        (list here next)
      (cl-loop
       for record in (seq-filter #'gemini-companion-changes-file-known
                                 (or others (gemini-companion-walk--others here back)))
       for changes = (gemini-companion-changes-visit record)
       if (stringp changes)
       collect (format "; %s %s"
                       (gemini-companion-edit-name
                        (gemini-companion-changes-file-edit record) 'plain)
                       changes)
       into skipped
       ;; The changes of a file that is skipped do not count any more.
       and do (gemini-companion-changes-update record)
       else if changes
       return (list record (funcall nearest changes) (string-join skipped))
       finally (user-error "%s%s"
                           (if (gemini-companion-changes-left)
                               "No other changes in a file"
                             "No changes of a CLI are left")
                           (string-join skipped))))))

(defun gemini-companion-walk--others (here &optional back)
  "Return the records after HERE, a record or nil, in the order of the walk.
HERE itself is the last one.  If BACK is non-nil, return the records before
HERE, the nearest one first."
  (let* ((records (gemini-companion-changes-files 'all))
         (records (if back (reverse records) records))
         (rest (and here (cdr (memq here records)))))
    (append rest (seq-difference records rest #'eq))))

(defun gemini-companion-walk--go (back &optional at others prefix)
  "Go to the next change, and report it.
For BACK, AT and OTHERS, see `gemini-companion-walk--next'.  PREFIX is a
text before the report."
  (pcase-let ((`(,record ,change ,skipped)
               (gemini-companion-walk--next back at others)))
    (gemini-companion-walk--go-to record change prefix skipped)))

(defun gemini-companion-walk--go-to (record change &optional prefix suffix)
  "Go to CHANGE of RECORD, whose file a buffer visits, and report it.
PREFIX and SUFFIX are texts before and after the report."
  (gemini-companion-walk--hide-before)
  (gemini-companion-walk--close-before)
  (let ((buffer (gemini-companion-changes-buffer record)))
    (unless (eq buffer (current-buffer))
      (pop-to-buffer buffer
                     (if buffer-file-name
                         '(display-buffer-same-window
                           (category . gemini-companion-file))
                       '((display-buffer-reuse-window
                          gemini-companion-windows-beside-cover)
                         (category . gemini-companion-overview)))))
    (setq gemini-companion-walk--buffer buffer))
  (gemini-companion-walk--reveal change)
  (gemini-companion-walk--report
   (concat prefix (gemini-companion-walk--label record change) suffix)))

(defun gemini-companion-walk--label (record change)
  "Return a text such as \"Change 2 of 5, a.py +3 -1\" about CHANGE of RECORD."
  (format "Change %d of %d, %s %s%s"
          (+ 1
             (seq-position (gemini-companion-changes-file-known record) change)
             (cl-loop for other in (gemini-companion-changes-files)
                      until (eq other record)
                      sum (length (gemini-companion-changes-file-known other))))
          (gemini-companion-changes-left)
          (gemini-companion-edit-name (gemini-companion-changes-file-edit record)
                                      'plain)
          (gemini-companion-hunk-amount
           (- (gemini-companion-hunk-new-end change)
              (gemini-companion-hunk-new change))
           (length (gemini-companion-hunk-lines change)))
          (if (gemini-companion-record-postponed-p change) ", later" "")))

;;;; Display

(defun gemini-companion-walk--reveal (change)
  "Go to CHANGE in the current buffer, and make it visible.
It is visible with two lines above it, or its beginning if it is longer
than the window.  Scroll only if needed, as `next-error' does."
  (let ((start (gemini-companion-walk--position
                (gemini-companion-hunk-new change))))
    (unless (<= (point-min) start (point-max))
      (widen))
    (goto-char start)
    (dolist (overlay (overlays-at (point)))
      (when-let* ((open (overlay-get overlay 'isearch-open-invisible)))
        (funcall open overlay)))
    ;; In Org 9.6, no overlays fold text.
    (when (and (invisible-p (point)) (derived-mode-p 'org-mode))
      (org-show-context))
    ;; Before redisplay, Emacs would move point out of text that is still
    ;; invisible.
    (setq disable-point-adjustment t)
    (gemini-companion-walk--scroll change 0)
    ;; Where a long line differs from the previous text may not be visible.
    (let ((same (gemini-companion-walk--same change)))
      (when (if truncate-lines
                (< (- (window-width) 10)
                   (length same)
                   (- (line-end-position) (point)))
              (< (window-body-height) (+ 2 (gemini-companion-walk--rows same))))
        (forward-char (length same))))))

(defun gemini-companion-walk--same (change)
  "Return the common prefix of the first line of CHANGE, at point, and the old one."
  (or (fill-common-string-prefix
       (or (car (gemini-companion-hunk-lines change)) "")
       (buffer-substring-no-properties (point) (line-end-position)))
      ""))

(defun gemini-companion-walk--scroll (change more)
  "Scroll so that CHANGE at point is visible, with two lines above it.
MORE is the number of rows displayed before CHANGE that are not lines of
the buffer.  If all of it is visible already, do not scroll; otherwise put it
in the middle, or lower if the window would be empty below the end of the text."
  (when (eq (current-buffer) (window-buffer))
    (let* ((above (min 2 (count-lines (point-min) (point))))
           (top (save-excursion (forward-line (- above)) (point)))
           (height (window-body-height))
           (count (- (gemini-companion-hunk-new-end change)
                     (gemini-companion-hunk-new change)))
           (end (save-excursion (forward-line (max 1 count)) (point)))
           (rows (lambda (from to)
                   ;; A long text is not counted to its end.
                   (count-screen-lines
                    from (min to (save-excursion
                                   (goto-char from)
                                   (line-beginning-position (+ 2 height))))))))
      (unless (and (<= (window-start) top)
                   (<= (+ more (max 1 count)) height)
                   (<= (+ more (count-screen-lines (window-start) end)) height))
        (recenter (max above
                       (/ (- height more (funcall rows (point) end)) 2)
                       (- height more (funcall rows (point) (point-max)))))))))

(defun gemini-companion-walk--position (line)
  "Return the position of the line with the index LINE in the whole text."
  (save-restriction
    (widen)
    (gemini-companion-hunk-position line)))

(defun gemini-companion-walk--hide-before ()
  "Hide the previous text of a change."
  (when gemini-companion-walk--before
    (delete-overlay gemini-companion-walk--before)
    (mapc #'delete-overlay gemini-companion-walk--words)
    (setq gemini-companion-walk--before nil
          gemini-companion-walk--words nil)))

(defun gemini-companion-walk--close-before ()
  "Close the window that displays the previous text of a change, if there is one.
The end of a walk does not close the window: the user may go there."
  (when-let* ((buffer (get-buffer "*gemini before*")))
    (quit-windows-on buffer 'kill)))

(defun gemini-companion-walk--show-before (change)
  "Display the previous text of CHANGE above its lines, in the current buffer.
If the window has no room for it, display it in another window."
  (pcase-let*
      ((`(,lines . ,words) (gemini-companion-walk--colored change))
       (start (gemini-companion-walk--position
               (gemini-companion-hunk-new change)))
       (end (gemini-companion-walk--position
             (gemini-companion-hunk-new-end change)))
       (rows (gemini-companion-walk--rows lines)))
    (setq gemini-companion-walk--before (make-overlay start end))
    (overlay-put gemini-companion-walk--before 'face 'gemini-companion-added)
    ;; The mark of the first line must stay beside that line.
    (overlay-put gemini-companion-walk--before 'priority -10)
    (pcase-dolist (`(,from . ,to) words)
      (let ((overlay (make-overlay (+ start from) (+ start to))))
        (overlay-put overlay 'face '(gemini-companion-added-words bold))
        (push overlay gemini-companion-walk--words)))
    (if (and (< rows (- (window-body-height) 4))
             ;; In a line that is longer than the window, the difference would not
             ;; be visible together with what is above the line.
             (< (+ rows (save-excursion
                          (goto-char start)
                          (gemini-companion-walk--rows
                           (gemini-companion-walk--same change))))
                (window-body-height)))
        (progn
          (gemini-companion-walk--put-above start lines)
          (gemini-companion-walk--scroll change rows))
      (with-current-buffer (get-buffer-create "*gemini before*")
        (special-mode)
        (let ((inhibit-read-only t))
          (erase-buffer)
          (insert lines))
        (goto-char (point-min))
        (display-buffer (current-buffer)
                        '(nil (category . gemini-companion-change)))))))

(defun gemini-companion-walk--rows (lines)
  "Return how many rows of the selected window LINES take, a string."
  (let ((width (max 1 (1- (window-body-width)))))
    (if truncate-lines
        (length (gemini-companion-text-lines lines))
      (cl-loop for line in (gemini-companion-text-lines lines)
               sum (1+ (/ (max 0 (1- (string-width line))) width))))))

(defun gemini-companion-walk--put-above (start lines)
  "Display LINES above the line at START, the first one of the change.
They end with a newline.  Emacs shows the number of a line beside its first
row, so where lines have numbers, LINES are rows of the line before."
  (if (not (and display-line-numbers
                (< (point-min) start)
                (not (invisible-p (1- start)))))
      (overlay-put gemini-companion-walk--before 'before-string lines)
    (let ((end (make-overlay (1- start) start)))
      (overlay-put end 'before-string (concat "\n" (substring lines 0 -1)))
      (overlay-put end 'face 'gemini-companion-removed)
      (push end gemini-companion-walk--words))))

(defun gemini-companion-walk--colored (change)
  "Return the lines before CHANGE of the current buffer, with faces.
They have the colors of the file, and the words that differ are marked; a long
line is cut to what is near these words.  The value is a cons of these lines and
a list of the ranges of words that differ in the current lines, (START . END),
counted from the first line of CHANGE on."
  (let* ((file buffer-file-name)
         (now (gemini-companion-lines-split
               (gemini-companion-text-of-buffer)))
         (start (gemini-companion-hunk-new change))
         (new (gemini-companion-lines-join
               (substring now start (gemini-companion-hunk-new-end change)))))
    (with-temp-buffer
      (insert (gemini-companion-lines-join
               (gemini-companion-lines-without (list change) now)))
      (gemini-companion-highlight file)
      (pcase-let ((`(,removed ,added)
                   (gemini-companion-unified-draw-words
                    (gemini-companion-unified-draw-lines
                     (current-buffer) start
                     (+ start (length (gemini-companion-hunk-lines change))))
                    (gemini-companion-text-lines new))))
        (cons (gemini-companion-walk--marked removed)
              (gemini-companion-walk--positions added))))))

(defun gemini-companion-walk--marked (lines)
  "Return the text of LINES, conses (TEXT . RANGES), as lines that were removed."
  (let ((text (mapconcat
               (lambda (line)
                 (concat (gemini-companion-unified-draw-marked line "-")
                         "\n"
                         (and (get-text-property 0 'gemini-companion-end (car line))
                              "\\ No newline at end of file\n")))
               lines "")))
    ;; Without the last one, a color of the text behind it shines through.
    (dolist (face '(gemini-companion-removed default) text)
      (add-face-text-property 0 (length text) face t text))))

(defun gemini-companion-walk--positions (lines)
  "Return the ranges of LINES, conses (TEXT . RANGES), counted from the first on."
  (let ((start 0))
    (mapcan (pcase-lambda (`(,text . ,ranges))
              (prog1 (mapcar (pcase-lambda (`(,beg . ,end))
                               (cons (+ start beg) (+ start end)))
                             ranges)
                (cl-incf start (1+ (length text)))))
            lines)))

;;;; Keeping and undoing

(defun gemini-companion-walk--of-turn (turn)
  "Return (GROUPS . SHARED), the changes of TURN in all files.
GROUPS are the changes that no edit of another turn has also written, a list
of (RECORD . CHANGES), as of the last update.  SHARED is the number of the
others."
  (let ((by (lambda (edit) (eq turn (gemini-companion-edit-turn edit))))
        (groups nil)
        (shared 0))
    (dolist (record (gemini-companion-changes-files))
      (let ((shares (seq-group-by (lambda (change)
                                    (gemini-companion-changes-share change by))
                                  (gemini-companion-changes-file-known record))))
        (cl-incf shared (length (alist-get 'some shares)))
        (when-let* ((changes (alist-get 'all shares)))
          (push (cons record changes) groups))))
    (cons (nreverse groups) shared)))

(defun gemini-companion-walk--after (others what)
  "Report WHAT was done, and go to the next change, if there is one.
OTHERS are the records of the next files; this file may have no record now."
  (if (gemini-companion-changes-left)
      (condition-case problem
          (gemini-companion-walk--go nil 'at others (concat what "; "))
        (user-error
         (message "%s; %s" what (gemini-companion-text-problem problem))))
    (gemini-companion-walk--end-soon)
    (message "%s; no changes are left" what)))

(defun gemini-companion-walk--in-region ()
  "Return the changes in the region, and whether they are parts, or nil.
The value is a list of the record of this file, the changes, and whether one of
them is a part of a change.  Return nil if the region is not active."
  (when (use-region-p)
    (let* ((record (or (gemini-companion-changes-here)
                       (user-error "No changes in this buffer")))
           (in-p (gemini-companion-text-region-predicate))
           (changes (progn (gemini-companion-walk--check-merged record)
                           (gemini-companion-changes-update record)))
           (parts (cl-loop
                   for change in changes
                   for start = (gemini-companion-hunk-new change)
                   for removed = (= start (gemini-companion-hunk-new-end change))
                   append (if removed
                              (and (funcall in-p start) (list change))
                            (gemini-companion-changes-selection record change in-p
                                                           #'ignore)))))
      (unless parts
        (user-error "No change in the region"))
      (deactivate-mark)
      (list record parts (not (seq-every-p (lambda (part) (memq part changes))
                                           parts))))))

;;;; Mouse

(defun gemini-companion-walk-click (event)
  "Show the previous text of the change whose mark was clicked, or hide it.
EVENT is the click."
  (gemini-companion-commands-go-to-click event)
  (gemini-companion-show-change))

(defun gemini-companion-walk-context-menu (menu click)
  "Add what can be done with the change at CLICK to MENU, and return MENU.
This is a function of `context-menu-functions'."
  (when (seq-some (lambda (overlay)
                    (overlay-get overlay 'gemini-companion-change))
                  (let ((point (posn-point (event-start click))))
                    (overlays-in point (1+ point))))
    (gemini-companion-commands-add-items
     menu click
     '(("Undo this change" . gemini-companion-undo-change)
       ("Keep this change" . gemini-companion-keep-change)
       ("Show what was before" . gemini-companion-show-change))))
  menu)

;;;; Life

(cl-defmethod gemini-companion-part-stop ((_part (eql 'walk)))
  "End the walk."
  (gemini-companion-walk-end)
  (cancel-function-timers #'gemini-companion-walk--end-without-changes)
  (setq gemini-companion-walk--buffer nil))

(cl-defmethod gemini-companion-part-lighter ((_part (eql 'walk)))
  "Return a text for the mode line while the walk is on, or nil."
  (when (gemini-companion-walk-on-p)
    (cons "(walk)" "walk: the keys n p u k RET act on changes")))

;;;; Commands

(defun gemini-companion-next-change ()
  "Go to the next unreviewed change of a CLI.
A change at point is the first one.  After the last one in a file, visit
the next file, in the order in which they were written.

Then single keys continue the walk: n and p go to the next and the previous
change, RET shows the text before the change, u undoes the change and k
keeps it, U and K undo and keep all changes of the file."
  (interactive)
  (let ((begins (not (gemini-companion-walk-on-p))))
    (gemini-companion-walk--begin)
    ;; A walk that begins on a change shows that change first.
    (gemini-companion-walk--go nil begins)))

(defun gemini-companion-previous-change ()
  "Go to the previous unreviewed change of a CLI.
See `gemini-companion-next-change'."
  (interactive)
  (gemini-companion-walk--begin)
  (gemini-companion-walk--go 'back))

(defun gemini-companion-show-change ()
  "Show the previous text of the change at point above it, or hide it.
The next command of the walk hides it as well."
  (interactive)
  (let ((shown gemini-companion-walk--before))
    ;; The end of the previous keys removes what they have displayed.
    (gemini-companion-walk--begin-here)
    (setq gemini-companion-walk--buffer (current-buffer))
    (gemini-companion-walk--close-before)
    (unless shown
      (let ((change (cdr (gemini-companion-walk--here))))
        (gemini-companion-walk--show-before change)
        (gemini-companion-walk--report
         (if (gemini-companion-hunk-lines change)
             "Before the change"
           "Nothing was here"))))))

(defun gemini-companion-undo-change ()
  "Undo the change at point in the file, and go to the next one.
With an active region, undo what the CLI has changed in its lines.  If the
buffer has unsaved text, only that is changed.  A new file is deleted, after
asking."
  (interactive)
  (gemini-companion-walk--begin-here)
  (gemini-companion-walk--decide-here nil))

(defun gemini-companion-walk--decide-here (keep)
  "Keep the change at point, or the lines of the region, if KEEP is non-nil.
Otherwise, undo them.  Then go to the next change."
  (pcase-let* ((`(,record ,changes ,parts)
                (or (gemini-companion-walk--in-region)
                    (pcase-let ((`(,record . ,change) (gemini-companion-walk--here)))
                      (list record (list change) nil))))
               (others (gemini-companion-walk--others record)))
    (gemini-companion-walk--after
     others (gemini-companion-undo-decide
              (if keep 'keep 'undo)
              (list (cons record (if keep
                                     (gemini-companion-changes-to-keep changes)
                                   changes)))
              :unit (if parts 'line 'change)))))

(defun gemini-companion-undo-changes (&optional turn)
  "Undo all changes of this file, and go to the next file.
If the buffer has unsaved text, only that is changed.  With TURN, a prefix
argument, undo those of the turn of the change at point, in all files.  New
files are deleted, after asking."
  (interactive "P")
  (gemini-companion-walk--begin-here)
  (gemini-companion-walk--decide-all nil turn))

(defun gemini-companion-walk--decide-all (keep turn)
  "Keep all changes of this file if KEEP is non-nil, or undo them.
If TURN is non-nil, decide about those of the turn of the change at point, in
all files.  What an edit of another turn has also written is left out.  Then go
to the next change."
  (pcase-let* ((here (gemini-companion-changes-here))
               (`(,groups . ,shared)
                (if turn
                    (gemini-companion-walk--of-turn
                     (gemini-companion-edit-turn
                      (car (gemini-companion-record-change-edits
                            (cdr (gemini-companion-walk--here))))))
                  (let ((changes (or (and here (gemini-companion-changes-update here))
                                     (user-error "No changes in this buffer"))))
                    (cons (list (cons here changes)) 0))))
               (others (gemini-companion-walk--others here)))
    (unless groups
      (user-error "All changes of this turn also have lines of another turn; \
decide about each"))
    (gemini-companion-walk--after
     others
     (concat (gemini-companion-undo-decide
              (if keep 'keep 'undo)
              (if keep (gemini-companion-changes-not-postponed groups) groups))
             (and (< 0 shared)
                  (format (ngettext "; %d change also has lines of another turn"
                                    "; %d changes also have lines of another turn" shared)
                          shared))))))

(defun gemini-companion-keep-change ()
  "Keep the change at point, and go to the next one.
With an active region, keep what the CLI has changed in its lines; among other
changes, those that are marked later stay."
  (interactive)
  (gemini-companion-walk--begin-here)
  (gemini-companion-walk--decide-here 'keep))

(defun gemini-companion-keep-changes (&optional turn)
  "Keep all changes of this file, and go to the next file.
With TURN, a prefix argument, keep those of the turn of the change at
point, in all files.  Changes that are marked later stay."
  (interactive "P")
  (gemini-companion-walk--begin-here)
  (gemini-companion-walk--decide-all 'keep turn))

(defun gemini-companion-postpone-change ()
  "Decide about the change at point later, and go to the next one.
It stays left when you keep its file or turn, or commit it; an undo of these
undoes it.  On such a change, take that back."
  (interactive)
  (gemini-companion-walk--begin-here)
  (pcase-let* ((`(,record . ,change) (gemini-companion-walk--here))
               (text (gemini-companion-decision-postpone record change)))
    (gemini-companion-walk--go nil nil nil (concat text "; "))))

(defun gemini-companion-restore-change ()
  "Take back the last undo or keep of this walk.
Go there, even to another file.  A new file that was deleted is created again."
  (interactive)
  (gemini-companion-walk--begin)
  (when (eq gemini-companion-walk--last-decision (gemini-companion-decision-last))
    (user-error "Nothing undone or kept in this walk"))
  (pcase-let* ((`(,decision . ,text) (gemini-companion-decision-take-back))
               (step (and decision (car (gemini-companion-decision-steps decision))))
               (record (and step (gemini-companion-step-record step)))
               (hunks (and step (gemini-companion-step-hunks step)))
               (changes (and record (gemini-companion-changes-visit record)))
               (change (and (consp changes)
                            (seq-find (lambda (change)
                                        (seq-intersection
                                         hunks (gemini-companion-record-change-hunks
                                                change)
                                         #'eq))
                                      changes))))
    (if (null change)
        (message "%s" text)
      (gemini-companion-walk--go-to record change (concat text "; ")))))

(defun gemini-companion-walk-help ()
  "Show all keys of the walk."
  (interactive)
  (gemini-companion-walk--begin)
  ;; Emacs cuts a message of more lines than a quarter of the frame.
  (let ((lines (list "")))
    (pcase-dolist (`(,key ,_ ,label . ,_) (gemini-companion-commands-in 'change))
      (let* ((text (concat (propertize key 'face 'help-key-binding) " " label))
             (line (if (string-empty-p (car lines))
                       text
                     (concat (car lines) "   " text))))
        (if (< (string-width line) (frame-width))
            (setcar lines line)
          (push text lines))))
    (message "%s" (string-join (nreverse lines) "\n"))))

(provide 'gemini-companion-walk)
;;; gemini-companion-walk.el ends here
