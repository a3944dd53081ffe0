;;; gemini-companion-overview.el --- What waits, what was written, what is left  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; One buffer shows the requests that await an answer and, for each CLI, its turns and
;; their files, each with one diff.  There the user answers, keeps, undoes and comments.
;; This file has the keys, the header line and the commands that show the buffer;
;; `gemini-companion-overview-page' has its text.

;;; Code:

(require 'gemini-companion-arrival)
(require 'gemini-companion-changes)
(require 'gemini-companion-choice)
(require 'gemini-companion-client)
(require 'gemini-companion-commands)
(require 'gemini-companion-comment)
(require 'gemini-companion-comment-opening)
(require 'gemini-companion-decision)
(require 'gemini-companion-step)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-header)
(require 'gemini-companion-hunk)
(require 'gemini-companion-label)
(require 'gemini-companion-lines)
(require 'gemini-companion-names)
(require 'gemini-companion-overview-draw)
(require 'gemini-companion-overview-page)
(require 'gemini-companion-overview-row)
(require 'gemini-companion-page)
(require 'gemini-companion-part)
(require 'gemini-companion-proposal)
(require 'gemini-companion-record)
(require 'gemini-companion-request)
(require 'gemini-companion-revert)
(require 'gemini-companion-review)
(require 'gemini-companion-session)
(require 'gemini-companion-terminal)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-undo)
(require 'gemini-companion-unified-draw)
(require 'gemini-companion-view)
(require 'gemini-companion-walk)
(require 'gemini-companion-watch)
(require 'gemini-companion-windows-beside)
(require 'outline)
(require 'subr-x)

(declare-function gemini-companion-edit-reject-with-reason "gemini-companion-prompt")
(declare-function gemini-companion-overview-menu "gemini-companion-menu")

;;;; Keys

(defvar gemini-companion-overview-mode-map
  (let ((map (gemini-companion-commands-bind (make-sparse-keymap) 'overview)))
    (define-key map [backtab] (lookup-key map (kbd "S-TAB")))
    (define-key map [mouse-2] #'gemini-companion-overview--click)
    (gemini-companion-decision-bind map)
    (dolist (level '(1 2 3 4) map)
      (define-key map (number-to-string level) #'gemini-companion-overview--level)))
  "Keys in the overview.")

(define-key gemini-companion-overview-page-sign-map [mouse-1]
  #'gemini-companion-overview--click-sign)

;;;; State

(defvar-local gemini-companion-overview--last-key 0
  "Time of the last command in this buffer, in seconds.")

(defvar gemini-companion-overview-busy-seconds 1
  "Seconds after a command in the overview until which it is not redrawn.")

(defvar-local gemini-companion-overview--ignores-keys nil
  "Non-nil until the overview is displayed in the place of a file.
The keys that were typed until then are for a change in that file.")

;;;; Mode

(define-derived-mode gemini-companion-overview-mode special-mode "Gemini"
  "Major mode for requests that await an answer, and for what CLIs have written.
The section Waiting has the proposals and questions of all CLIs, the oldest
first.  Below each CLI are its turns, the newest first, and their files.  In
the diff of a file, a letter before the sign says what was decided: k for
kept, u for undone, x for excluded, l for later, and * is before lines of your
own.  What is left has colors.

\\{gemini-companion-overview-mode-map}"
  :interactive nil
  ;; A global mode may have turned them on.
  :after-hook (setq display-line-numbers nil)
  (buffer-disable-undo)
  (setq truncate-lines nil
        header-line-format '(:eval (gemini-companion-overview--header))
        gemini-companion-edits-view (gemini-companion-overview--make-view))
  (gemini-companion-overview-page-set-up)
  ;; The face of the current line would hide whether it is removed or added.
  (setq-local global-hl-line-mode nil
              bidi-paragraph-direction 'left-to-right
              glyphless-char-display gemini-companion-label-glyphless
              next-error-function #'gemini-companion-overview--next-error
              imenu-create-index-function #'gemini-companion-overview--imenu
              outline-regexp "\\s|"
              outline-level (lambda ()
                              (if-let* ((row (gemini-companion-overview-page-row)))
                                  (gemini-companion-overview-row-level row)
                                1))
              parse-sexp-lookup-properties t
              gemini-companion-page-busy-function
              #'gemini-companion-overview--busy-p)
  (outline-minor-mode)
  ;; An ellipsis after the name of a file could be a part of it.
  (setq buffer-invisibility-spec '(outline))
  (add-hook 'post-command-hook #'gemini-companion-overview--after-command nil t)
  (add-hook 'pre-redisplay-functions #'gemini-companion-overview--note-display nil t)
  (add-hook 'context-menu-functions #'gemini-companion-overview--context-menu nil t)
  (gemini-companion-page-set-up #'gemini-companion-overview-page-write
                                '(gemini-companion-changes-functions
                                  gemini-companion-comment-functions
                                  gemini-companion-mode-hook
                                  gemini-companion-session-changed-functions
                                  gemini-companion-state-functions
                                  gemini-companion-state-lasting-hook
                                  gemini-companion-turn-addition-hook)
                                ;; A CLI waits until the user sees its row.
                                '(gemini-companion-request-functions))
  (setq-local revert-buffer-function
              (lambda (&rest _)
                (gemini-companion-watch-turn-to-all)
                (gemini-companion-page-refresh
                 (lambda () (gemini-companion-overview-page-write 'fresh)))))
  (let ((page (current-buffer)))
    ;; The user may have undone or saved something in the window of a file, and git may
    ;; have written files in that of a shell.
    (add-hook 'window-selection-change-functions
              ;; Another buffer may be current.
              (lambda (window)
                (when (eq window (selected-window))
                  (gemini-companion-watch-turn-to-all))
                (gemini-companion-page-refresh-displayed page))
              nil t))
  ;; A diff is drawn when it is unfolded.  Emacs 29 has declared the hook obsolete,
  ;; and has nothing in its place.
  (with-suppressed-warnings ((obsolete outline-view-change-hook))
    (add-hook 'outline-view-change-hook
              (lambda () (gemini-companion-page-refresh-soon (current-buffer)))
              nil t))
  (gemini-companion-commands-letters-are-keys 'gemini-companion-overview-mode))

(defun gemini-companion-overview--after-command ()
  "Record when the user has typed, and update the header line for point.
After undo or redo, redraw the buffer; as `undo', go to what is there again."
  (setq gemini-companion-overview--last-key (float-time))
  (pcase this-command
    ('gemini-companion-decision-undo
     (gemini-companion-overview-page-go-to-restored))
    ('gemini-companion-decision-redo
     (gemini-companion-page-refresh)))
  (force-mode-line-update))

(defun gemini-companion-overview--note-display (window)
  "Note that WINDOW is about to display the overview, so that its keys act.
After a timer, Emacs draws even while keys wait to be read, which were typed
before.  This is a member of `pre-redisplay-functions'."
  (unless (input-pending-p)
    (setq gemini-companion-overview--ignores-keys nil)
    (gemini-companion-overview-page-note-display window)))

(defun gemini-companion-overview--busy-p ()
  "Return non-nil if the user has typed in this buffer within the last second."
  (and (eq (current-buffer) (window-buffer))
       (gemini-companion-idle-since-p gemini-companion-overview--last-key
                                      gemini-companion-overview-busy-seconds)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'overview)))
  "Close the overview."
  (setq gemini-companion-arrival-as-row-function #'ignore)
  (when-let* ((buffer (get-buffer gemini-companion-overview-page-buffer)))
    (kill-buffer buffer)))

(defun gemini-companion-overview--next-error (count reset)
  "Go to the change that is COUNT changes further, and visit its line.
If RESET is non-nil, begin at the first one."
  (if reset
      (goto-char (point-min))
    ;; In a window that is not selected, point is that of the window.
    (when-let* ((window (get-buffer-window nil t)))
      (goto-char (window-point window))))
  (gemini-companion-overview-page-move-by-changes count)
  (dolist (window (get-buffer-window-list nil nil t))
    (set-window-point window (point)))
  (gemini-companion-overview--visit-file
   (gemini-companion-overview-page-row-or-error)
   (if (null (buffer-file-name (window-buffer)))
       #'pop-to-buffer
     ;; The other window of a file may be that of this buffer, which is to stay.
     (lambda (buffer &rest _)
       (pop-to-buffer buffer '((display-buffer-reuse-window
                                display-buffer-same-window)
                               (category . gemini-companion-file)))))))

(defun gemini-companion-overview--imenu ()
  "Return a nested index for `imenu': by CLI, then by turn, then by file."
  (let ((beg (point-min))
        (entries nil))
    (pcase-dolist (`(,section . ,text) (gemini-companion-page-sections))
      (when-let* ((row (pcase section
                         (`(row ,key)
                          (gemini-companion-overview-page-row-of-key key))))
                  (name (gemini-companion-overview--index-name row)))
        (push (list (gemini-companion-overview-row-level row) name (copy-marker beg))
              entries))
      (setq beg (+ beg (length text))))
    (gemini-companion-overview--index (nreverse entries))))

(defun gemini-companion-overview--index-name (row)
  "Return the name of ROW in the index, or nil if it is not in there."
  (pcase (gemini-companion-overview-row-kind row)
    ('waiting "Waiting")
    ('cli (gemini-companion-session-name (gemini-companion-overview-row-session row)))
    ('turn
     (let ((turn (gemini-companion-overview-row-turn row)))
       (concat (format-time-string "%H:%M" (gemini-companion-turn-began turn))
               (when-let* ((prompt (gemini-companion-turn-prompt turn)))
                 (concat "  " (gemini-companion-text-escaped-line prompt 60))))))
    ((guard (gemini-companion-overview-row-path row))
     (gemini-companion-label-file (gemini-companion-overview-row-path row)
                                  (gemini-companion-overview-row-session row)
                                  'plain))))

(defun gemini-companion-overview--index (entries)
  "Return ENTRIES as an index of `imenu'.
ENTRIES are lists (LEVEL NAME MARKER), in order.  One that has deeper ones after
it is a menu of these."
  (let ((index nil))
    (while entries
      (pcase-let ((`(,level ,name ,marker) (pop entries)))
        (let ((below (cl-loop while (and entries (< level (caar entries)))
                              collect (pop entries))))
          (push (cons name (if below
                               (gemini-companion-overview--index below)
                             marker))
                index))))
    (nreverse index)))

;;;; Header line

(defun gemini-companion-overview--what ()
  "Return what is at point: a kind of row, or `change', `kept' or `undone'.
For several files of one edit, return `several', and for the note of a turn,
`turn-note'."
  (pcase (gemini-companion-overview-page-change-id)
    (`(left . ,_) 'change)
    (`(decided . ,_)
     (gemini-companion-record-decided-state (gemini-companion-overview-page-change)))
    (_ (let ((kind (gemini-companion-overview-page-kind))
             (row (gemini-companion-overview-page-row)))
         (cond ((and (eq kind 'file)
                     (gemini-companion-overview-row-several-p row))
                'several)
               ((and (eq kind 'note) (gemini-companion-overview-row-turn row))
                'turn-note)
               (t kind))))))

(defun gemini-companion-overview--header ()
  "Return the header line: where point is, what is not sent, and the keys there."
  (let* ((row (gemini-companion-overview-page-row))
         (keys (gemini-companion-header-key 'gemini-companion-overview-menu
                                            "keys" 'overview))
         (above (gemini-companion-overview--above)))
    (gemini-companion-label-header
     (append (list above
                   ;; How to find all keys is always displayed.
                   (gemini-companion-label-fit
                    (list (gemini-companion-overview--where row))
                    (max 1 (- (window-width) 2 (string-width (concat above keys)))))
                   " " keys)
             (when row
               (append (gemini-companion-overview--send-keys row)
                       (gemini-companion-header-keys-of
                        (gemini-companion-overview--what))))))))

(defun gemini-companion-overview--above ()
  "Return a text about what waits above the selected window, or nil."
  (let* ((first (and (< (point-min) (window-start))
                     (gemini-companion-overview-page-waiting-row)))
         (position (and first
                        (car (gemini-companion-page-section
                              (list 'row (gemini-companion-overview-row-key first)))))))
    (when (and position (< position (window-start)))
      (format "%s %s  "
              (propertize (format "%d to answer above:"
                                  (length (gemini-companion-overview-row-rows
                                           (gemini-companion-overview-page-parent first))))
                          'face 'bold)
              (substitute-command-keys "\\[gemini-companion-list]")))))

(defun gemini-companion-overview--send-keys (row)
  "Return the keys for the comments for the CLI of ROW, with their number, texts.
They are those that have a word for the header line in the table of commands."
  (when-let* ((session (gemini-companion-overview-row-session row))
              (count (+ (if (gemini-companion-comment-opening session) 1 0)
                        (seq-count
                         (lambda (comment)
                           (and (null (gemini-companion-comment-edit comment))
                                (or (null (gemini-companion-comment-session comment))
                                    (gemini-companion-session-same-p
                                     session
                                     (gemini-companion-comment-session comment)))))
                         (gemini-companion-comments-unsent))))
              ((< 0 count)))
    (cl-loop for (_ command _ _ . properties)
             in (gemini-companion-commands-in 'overview)
             for word = (plist-get properties :header)
             when word
             collect (gemini-companion-header-key command (format "%s %d" word count)
                                                  'overview))))

(defun gemini-companion-overview--where (row)
  "Return a text about ROW and the change at point, for the header line."
  (pcase (and row (gemini-companion-overview-row-kind row))
    ('nil "Gemini")
    ('note (gemini-companion-overview-row-text row))
    ('waiting "Waiting")
    ('taken "Your lines")
    ('cli (gemini-companion-session-name (gemini-companion-overview-row-session row)))
    ((or 'turn 'reviewed)
     (let ((session (gemini-companion-overview-row-session row)))
       (concat (or (gemini-companion-session-directory-name
                    (gemini-companion-session-directory session)
                    (gemini-companion-session-remote session))
                   (gemini-companion-session-title session))
               (format-time-string " %H:%M" (gemini-companion-turn-began
                                             (gemini-companion-overview-row-turn row))))))
    ('request
     (concat (gemini-companion-session-name (gemini-companion-overview-row-session row))
             " asks"))
    (kind
     (let* ((name (gemini-companion-names-shown
                   (gemini-companion-label-file
                    (gemini-companion-overview-row-path row)
                    (gemini-companion-overview-row-session row) 'plain)
                   (max 16 (/ (window-width) 3))))
            (edit (gemini-companion-overview-row-edit row))
            (hunk (get-text-property (point) 'gemini-companion-hunk))
            (number (if (eq kind 'proposal)
                        (seq-position (gemini-companion-edit-known-hunks edit) hunk)
                      (cdr (gemini-companion-overview-page-change-id))))
            (count (cond ((eq kind 'proposal)
                          (length (gemini-companion-edit-known-hunks edit)))
                         ((eq 'left (car (gemini-companion-overview-page-change-id)))
                          (length (gemini-companion-overview-row-left row))))))
       (if (and number count)
           (format "%s %d of %d%s" name (1+ number) count
                   (if (and (not (eq kind 'proposal))
                            (gemini-companion-record-postponed-p
                             (nth number (gemini-companion-overview-row-left row))))
                       ", later"
                     ""))
         name)))))

;;;; A view of several edits

(cl-defstruct (gemini-companion-overview-view
               (:noinline t)
               (:include gemini-companion-view)
               (:constructor gemini-companion-overview--make-view)
               (:copier nil))
  "The view of the overview, which displays several edits.")

(cl-defmethod gemini-companion-view-session ((_ gemini-companion-overview-view))
  "Return the session of the row at point, or nil."
  (when-let* ((row (gemini-companion-overview-page-row)))
    (gemini-companion-overview-row-session row)))

(cl-defmethod gemini-companion-view-edits ((_ gemini-companion-overview-view))
  "Return the edits of the row at point, a list."
  (when-let* ((row (gemini-companion-overview-page-row)))
    (gemini-companion-overview-row-edits row)))

(cl-defmethod gemini-companion-view-check ((view gemini-companion-overview-view))
  "Signal a `user-error' unless VIEW displayed the proposal at point as it is.
A question names several ones."
  (gemini-companion-overview--check-proposal)
  (unless (or (eq 'proposal (gemini-companion-overview-page-kind))
              (cdr (gemini-companion-view-edits view)))
    (user-error "No proposal here; go to its row to answer it")))

(cl-defmethod gemini-companion-view-edit-here ((_ gemini-companion-overview-view))
  "Return the edit of the file at point, or nil."
  (when-let* ((row (gemini-companion-overview-page-row)))
    (gemini-companion-overview-row-edit row)))

(cl-defmethod gemini-companion-view-comment ((_ gemini-companion-overview-view))
  "Read the opening of the next prompt for the CLI or turn at point, if any."
  (when (memq (gemini-companion-overview--what) '(cli turn reviewed turn-note))
    (let* ((row (gemini-companion-overview-page-row))
           (opening (gemini-companion-overview-row-opening row)))
      (gemini-companion-comment-opening-read
       (gemini-companion-overview-row-session row)
       (and opening (funcall opening))))
    (gemini-companion-page-refresh)
    t))

(cl-defmethod gemini-companion-view-texts ((_ gemini-companion-overview-view))
  "Return the current lines of the file at point, and its lines without its turn."
  (let* ((row (gemini-companion-overview-page-row))
         (edit (gemini-companion-overview-row-edit row)))
    (if (or (gemini-companion-overview-row-left row)
            (gemini-companion-overview-row-decided row))
        (cons (gemini-companion-overview-row-lines row)
              (gemini-companion-overview-draw-lines-before row))
      (gemini-companion-edit-texts-call
       edit
       (lambda (old new)
         (cons (gemini-companion-lines-split (gemini-companion-text-of-buffer new))
               (gemini-companion-lines-split (gemini-companion-text-of-buffer old))))))))

(cl-defmethod gemini-companion-view-hunk ((_ gemini-companion-overview-view))
  "Return the hunk of a proposal at point, or nil."
  (when (eq 'proposal (gemini-companion-overview-page-kind))
    (get-text-property (point) 'gemini-companion-hunk)))

(cl-defmethod gemini-companion-view-move ((_ gemini-companion-overview-view) count)
  "Go forward by COUNT rows or changes."
  (gemini-companion-overview-next count))

(cl-defmethod gemini-companion-view-follow
  ((_ gemini-companion-overview-view) event)
  "Show the effect of EVENT of an edit at once, as the user has caused it here."
  (when (memq event '(toggled changed))
    (gemini-companion-page-refresh)))

;;;; Menu state

;; A menu asks for these often: they only read what is drawn.
(cl-defmethod gemini-companion-commands-value ((_name (eql 'overview-proposal)))
  "Return non-nil if point is on a proposal, or on a row above proposals."
  (when-let* ((row (gemini-companion-overview-page-row)))
    (gemini-companion-overview--open-proposals row)))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'overview-written)))
  "Return non-nil if point is on what a CLI has written."
  (memq (gemini-companion-overview-page-kind) '(cli turn reviewed file taken)))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'overview-comment)))
  "Return non-nil if point is on a file, a proposal, a turn or a CLI."
  (or (memq (gemini-companion-overview-page-kind)
            '(proposal file turn reviewed cli))
      (eq 'turn-note (gemini-companion-overview--what))))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'overview-file)))
  "Return non-nil if point is on a file or a proposal."
  (memq (gemini-companion-overview-page-kind) '(proposal file)))

;;;; What the keys check

(defun gemini-companion-overview--check-key ()
  "Signal an error for a key that was typed before the overview was displayed."
  (when gemini-companion-overview--ignores-keys
    (user-error "Key ignored: the overview has just appeared")))

(defun gemini-companion-overview--refuse (row accept refuse)
  "Signal an error if ROW is answered by keys, not kept or undone.
ACCEPT and REFUSE are texts about the keys for proposals and questions."
  (pcase (gemini-companion-overview-row-kind row)
    ('proposal (user-error "This is a proposal; %s" accept))
    ('request (user-error "This is a question; %s" refuse))
    ((or 'note 'waiting) (user-error "No changes here"))))

(defun gemini-companion-overview--file-row (all)
  "Return the row of the file at point, or of its turn if ALL is non-nil."
  (let ((row (gemini-companion-overview-page-row-or-error)))
    (or (if all
            (or (gemini-companion-overview-page-ancestor row 'turn)
                (gemini-companion-overview-page-ancestor row 'cli))
          (gemini-companion-overview-page-ancestor row 'file))
        (user-error "No file of a turn here; n goes to the next row"))))

(defun gemini-companion-overview-turn-row ()
  "Return the row of the turn at or above point.
Signal an error if there is none, or for a key that is to be ignored."
  (gemini-companion-overview--check-key)
  (or (gemini-companion-overview-page-ancestor
       (gemini-companion-overview-page-row-or-error) 'turn)
      (user-error "No turn here; n goes to the next row")))

;;;; Keeping and undoing

(defun gemini-companion-overview-keep ()
  "Keep the change at point, or what is left of the file, turn or CLI at point.
With an active region, keep its lines.  A kept change is left again.  You are
asked about several files; changes that are marked later stay."
  (interactive nil gemini-companion-overview-mode)
  (gemini-companion-overview--check-key)
  (let ((row (gemini-companion-overview-page-row-or-error))
        (selected (gemini-companion-overview--selected)))
    (gemini-companion-overview--refuse row "a accepts it" "a allows it")
    (cond
     (selected (gemini-companion-overview--decide-selected selected 'keep))
     ((gemini-companion-overview-page-change-id) (gemini-companion-overview--keep-change))
     ((gemini-companion-overview-page-on-heading-p)
      (gemini-companion-overview--decide-row 'keep row))
     (t (user-error "No change here; n goes to the next one")))))

(defun gemini-companion-overview--selected ()
  "Return what is selected of the changes left, or nil if no region is active.
The value is a list (ROW SELECTED...), where ROW is the last one in the region.
An element of SELECTED is a list of the lines of a change, (POSITION . LINE), in
order; for LINE, see `gemini-companion-overview--line-here'."
  (when (use-region-p)
    (let* ((lines (gemini-companion-overview--in-region
                   (lambda ()
                     (when (eq 'left (car (gemini-companion-overview-page-change-id)))
                       (list (gemini-companion-overview-page-row)
                             (gemini-companion-overview-page-change-id)
                             (point)
                             (gemini-companion-overview--line-here))))))
           (rows (or (mapcar #'car lines)
                     (user-error "No change in the region"))))
      (when (cdr (seq-uniq (mapcar #'gemini-companion-overview-row-record rows) #'eq))
        (user-error "Select lines of one file"))
      (cons (car (last rows))
            (mapcar (pcase-lambda (`(,_ . ,lines))
                      (mapcar (pcase-lambda (`(,_ ,_ ,position ,line))
                                (cons position line))
                              lines))
                    (seq-group-by (pcase-lambda (`(,row ,id . ,_))
                                    (cons (gemini-companion-overview-row-key row) id))
                                  lines))))))

(defun gemini-companion-overview--in-region (function)
  "Return the values of FUNCTION on the lines of the region, without nil."
  (pcase-let ((`(,beg . ,end) (gemini-companion-text-region)))
    (save-excursion
      (goto-char beg)
      (cl-loop for value = (funcall function)
               when value collect value
               while (and (= 0 (forward-line))
                          (<= (point) end))))))

(defun gemini-companion-overview--line-here ()
  "Return which line of a change is at point, (new . INDEX) or (old . INDEX).
INDEX is that of the line in the text, or among the removed ones of the change.
Return nil if it is neither, such as a comment."
  (let ((old (get-text-property (point) 'gemini-companion-old))
        (new (get-text-property (point) 'gemini-companion-line))
        (id (gemini-companion-overview-page-change-id))
        (count 0))
    (cond ((null new) nil)
          ((null old) (cons 'new (1- new)))
          ((get-text-property (point) 'gemini-companion-hunk)
           (save-excursion
             (while (and (= 0 (forward-line -1))
                         (equal id (gemini-companion-overview-page-change-id))
                         (get-text-property (point) 'gemini-companion-old))
               (setq count (1+ count))))
           (cons 'old count)))))

(defun gemini-companion-overview--decide-selected (selected keep)
  "Keep SELECTED if KEEP is non-nil, or undo it.
SELECTED is the value of `gemini-companion-overview--selected'."
  (pcase-let* ((`(,row . ,groups) selected)
               (record (gemini-companion-overview-row-record row))
               (`((,first . ,_) . ,_) (car groups))
               (index (save-excursion
                        (goto-char first)
                        (gemini-companion-overview-page-target-number)))
               (changes (mapcar (pcase-lambda (`((,position . ,_) . ,_))
                                  (save-excursion
                                    (goto-char position)
                                    (gemini-companion-overview-page-current-change)))
                                groups))
               (parts (cl-loop for change in changes
                               for group in groups
                               append (gemini-companion-overview--part
                                       record change group))))
    (deactivate-mark)
    (gemini-companion-overview-page-after
     index row (gemini-companion-undo-decide
                (if keep 'keep 'undo)
                (list (cons record (if keep
                                       (gemini-companion-changes-to-keep parts)
                                     parts)))
                :unit (if (seq-difference parts changes #'eq) 'line 'change)))))

(defun gemini-companion-overview--part (record change lines)
  "Return the parts of CHANGE of RECORD, computed now, that have the drawn LINES.
These are as in `gemini-companion-overview--selected'."
  (let* ((drawn (save-excursion
                  (goto-char (caar lines))
                  (gemini-companion-overview-page-change)))
         ;; Others may have written lines above.
         (shift (- (gemini-companion-hunk-new change) (gemini-companion-hunk-new drawn)))
         (lines (mapcar #'cdr lines)))
    (gemini-companion-changes-selection
     record change
     (lambda (n) (member (cons 'new (- n shift)) lines))
     (lambda (n) (member (cons 'old n) lines)))))

(defun gemini-companion-overview--keep-change ()
  "Keep the change at point, or if it is kept, make it unreviewed again."
  (let* ((change (gemini-companion-overview-page-current-change))
         (row (gemini-companion-overview-page-row))
         (record (gemini-companion-overview-row-record row))
         (index (gemini-companion-overview-page-target-number)))
    (pcase (and (gemini-companion-record-decided-p change)
                (gemini-companion-record-decided-state change))
      ('undone (user-error "This change is undone; %s restores it"
                           (substitute-command-keys
                            "\\[gemini-companion-decision-undo]")))
      ('kept
       (unless (gemini-companion-decision-with "keep taken back"
                 (gemini-companion-step-unkeep-change record change))
         (user-error "This change was accepted before it was written; u undoes it"))
       (gemini-companion-page-refresh)
       (message "Change is unreviewed again"))
      (_
       (gemini-companion-overview-page-after
        index row (gemini-companion-undo-decide 'keep (list (list record change))))))))

(defun gemini-companion-overview--decide-row (keep row)
  "Keep what is left at or below ROW if KEEP is non-nil, or undo it.
The last file is the first one, and the user is asked about several.  Then go to
the next change."
  (let* ((now (or (gemini-companion-overview-page-computed row) row))
         (index (gemini-companion-overview-page-target-number))
         (groups (if keep
                     (gemini-companion-overview-row-groups now)
                   (gemini-companion-overview-row-groups-to-undo now))))
    (gemini-companion-overview--check-drawn row now)
    (unless groups
      (user-error "No changes left here%s"
                  (if keep
                      ""
                    (substitute-command-keys "; \\[universal-argument] \
\\[gemini-companion-overview-undo] undoes kept ones"))))
    (gemini-companion-overview-page-after
     index row (if keep
                   (gemini-companion-undo-decide
                    'keep (gemini-companion-changes-not-postponed groups) :row t)
                 (gemini-companion-undo-decide
                  'undo groups :by (gemini-companion-overview-row-by now) :row t)))))

(defun gemini-companion-overview--check-drawn (row now)
  "Signal an error if changes are left in NOW that ROW, as it was drawn, has not.
NOW is ROW, computed again.  These changes are then drawn."
  (cl-flet ((left (row)
              (cl-loop for file in (gemini-companion-overview-row-files row)
                       append (mapcar (lambda (change)
                                        (cons (gemini-companion-overview-row-file file)
                                              (gemini-companion-changes-shown change)))
                                      (gemini-companion-overview-row-left file)))))
    ;; There may be thousands.
    (let ((drawn (make-hash-table :test 'equal)))
      (dolist (change (left row))
        (puthash change t drawn))
      (unless (seq-every-p (lambda (change) (gethash change drawn)) (left now))
        (gemini-companion-overview-page-refuse
         "New changes are left here; read them, then type the key again")))))

(defun gemini-companion-overview-postpone ()
  "Decide about the change at point later, and go to the next one.
It stays left when you keep its file or turn, or commit it; an undo of these
undoes it.  On such a change, take that back."
  (interactive nil gemini-companion-overview-mode)
  (gemini-companion-overview--check-key)
  (unless (eq 'left (car (gemini-companion-overview-page-change-id)))
    (user-error "No change left here; n goes to the next one"))
  (let ((row (gemini-companion-overview-page-row)))
    (gemini-companion-overview-page-after
     (1+ (gemini-companion-overview-page-target-number)) row
     (gemini-companion-decision-postpone
      (gemini-companion-overview-row-record row)
      (gemini-companion-overview-page-current-change)))))

(defun gemini-companion-overview-keep-file (&optional turn)
  "Keep what is left of the file at point, or of its TURN with a prefix argument."
  (interactive "P" gemini-companion-overview-mode)
  (gemini-companion-overview--check-key)
  (gemini-companion-overview--decide-row 'keep (gemini-companion-overview--file-row turn)))

(defun gemini-companion-overview-undo (&optional whole)
  "Undo the change at point, or what is left of the file, turn or CLI.
This changes the files, or only the buffer of a file with unsaved text.  A new
file is deleted.  You are asked about several files and about new ones, and on a
row also about lines of others.  A change at point is replaced by the lines that
are displayed as removed, even if two turns have written it.  On a row, what an
earlier turn has done in the same lines stays, and counts in that turn.  With an
active region, undo its lines.

With WHOLE, a prefix argument, undo everything that the edits of the file or
turn at point have done, including what you have kept: the file gets its
previous bytes, unless it has changed since.

On the row of a file of a rename, undo the rename in all its files, or in none,
after a question."
  (interactive "P" gemini-companion-overview-mode)
  (gemini-companion-overview--check-key)
  (let ((row (gemini-companion-overview-page-row-or-error))
        (selected (gemini-companion-overview--selected)))
    (gemini-companion-overview--refuse row "x excludes a hunk, r rejects it"
                                       "r refuses it")
    (cond
     (selected (gemini-companion-overview--decide-selected selected nil))
     ((and (gemini-companion-overview-page-on-heading-p)
           (gemini-companion-overview--undo-together row)))
     ((eq 'taken (gemini-companion-overview-row-kind row))
      (gemini-companion-overview--undo-taken row))
     (whole (gemini-companion-overview--undo-whole
             (or (gemini-companion-overview-row-edits row)
                 (seq-mapcat #'gemini-companion-overview-row-edits
                             (gemini-companion-overview-row-rows row)))))
     ((gemini-companion-overview-page-change-id) (gemini-companion-overview--undo-change))
     ((or (gemini-companion-overview--unrecorded-p row)
          (gemini-companion-overview-row-empty-p row))
      (gemini-companion-overview--undo-edit (gemini-companion-overview-row-edit row)))
     ((gemini-companion-overview-page-on-heading-p)
      (gemini-companion-overview--decide-row nil row))
     (t (user-error "No change here; n goes to the next one")))))

(defun gemini-companion-overview--undo-taken (row)
  "Give the user the lines back that the turn of ROW took."
  (let* ((row (or (gemini-companion-overview-page-computed row)
                  (user-error "Your lines are back already")))
         (turn (gemini-companion-overview-page-parent row))
         (index (gemini-companion-overview-page-target-number))
         (files (gemini-companion-overview-row-taken row))
         (count (cl-loop for file in files
                         sum (length (gemini-companion-overview-row-lines-taken file))))
         (groups (cl-loop for file in files
                          for record = (gemini-companion-overview-row-record file)
                          when record
                          collect (cons record
                                        (seq-filter
                                         #'gemini-companion-changes-taken
                                         (gemini-companion-overview-row-left file)))))
         (edits (mapcar #'gemini-companion-overview-row-edit
                        (seq-remove #'gemini-companion-overview-row-record files)))
         (said (gemini-companion-undo-taken groups edits)))
    (gemini-companion-overview-page-after
     index turn
     (concat (format (ngettext "%d line of yours is back: "
                               "%d lines of yours are back: " count)
                     count)
             said
             (and (seq-some (lambda (edit)
                              (when-let* ((command (gemini-companion-edit-command edit)))
                                (gemini-companion-overview-draw-stash-p command)))
                            (gemini-companion-overview-row-edits row))
                  "; `git stash pop' would conflict now")))))

(defun gemini-companion-overview--unrecorded-p (row)
  "Return non-nil if ROW is a file of which no changes are recorded."
  (and (eq 'file (gemini-companion-overview-row-kind row))
       (null (gemini-companion-overview-row-record row))))

(defun gemini-companion-overview--undo-change ()
  "Undo the change at point, left or kept, and go to the next change left.
Signal a `user-error' if the change is already undone."
  (let* ((change (gemini-companion-overview-page-current-change))
         (row (gemini-companion-overview-page-row))
         (record (gemini-companion-overview-row-record row))
         (index (gemini-companion-overview-page-target-number)))
    (when (and (gemini-companion-record-decided-p change)
               (eq 'undone (gemini-companion-record-decided-state change)))
      (user-error "This change is already undone"))
    (gemini-companion-overview-page-after
     index row (gemini-companion-undo-decide 'undo (list (list record change))))))

(defun gemini-companion-overview-undo-file (&optional turn)
  "Undo what is left of the file at point, or of its TURN with a prefix argument.
New files are deleted, after asking."
  (interactive "P" gemini-companion-overview-mode)
  (gemini-companion-overview--check-key)
  (let ((row (gemini-companion-overview--file-row turn)))
    (cond ((gemini-companion-overview--undo-together row))
          ((or (gemini-companion-overview--unrecorded-p row)
               (gemini-companion-overview-row-empty-p row))
           (gemini-companion-overview--undo-edit (gemini-companion-overview-row-edit row)))
          (t (gemini-companion-overview--decide-row nil row)))))

(defun gemini-companion-overview-undo-since (&optional kept)
  "Undo the turn at point and all later turns of its CLI, after a question.
Your lines stay, and so do the changes that you have kept or committed, which
are named.  With KEPT, a prefix argument, undo these as well: the edits of the
turns as a whole, see `gemini-companion-overview-undo'."
  (interactive "P" gemini-companion-overview-mode)
  (let* ((row (gemini-companion-overview-turn-row))
         (index (gemini-companion-overview-page-target-number))
         (began (gemini-companion-turn-began (gemini-companion-overview-row-turn row)))
         (cli (gemini-companion-overview-page-parent row))
         (rows (seq-filter
                (lambda (other)
                  (and (eq 'turn (gemini-companion-overview-row-kind other))
                       (<= began (gemini-companion-turn-began
                                  (gemini-companion-overview-row-turn other)))))
                (gemini-companion-overview-row-rows
                 (or (gemini-companion-overview-page-computed cli) cli))))
         (turns (mapcar #'gemini-companion-overview-row-turn rows))
         (files (seq-mapcat #'gemini-companion-overview-row-files rows)))
    (if kept
        (gemini-companion-overview--undo-whole
         (seq-mapcat #'gemini-companion-overview-row-edits rows)
         (format (ngettext "%d turn" "%d turns" (length turns)) (length turns)))
      (unless (seq-some (lambda (row)
                          (or (gemini-companion-overview-row-left row)
                              (gemini-companion-overview-row-empty-p row)
                              (gemini-companion-overview-row-without-marks-p row)))
                        files)
        (user-error "No changes left here; %s undoes kept ones"
                    (substitute-command-keys
                     "\\[universal-argument] \\[gemini-companion-overview-undo-since]")))
      (gemini-companion-overview-page-after
       index row
       (gemini-companion-undo-turns
        turns
        (seq-uniq (delq nil (mapcar #'gemini-companion-overview-row-record files)) #'eq)
        (mapcar #'gemini-companion-overview-row-edit
                (seq-filter #'gemini-companion-overview-row-without-marks-p files)))))))

(defun gemini-companion-overview--undo-together (row)
  "If the file of ROW is one of a rename, undo all of that, if the user agrees.
If one of the files cannot be undone, none is.  Return nil for another ROW."
  (when-let* (((eq 'file (gemini-companion-overview-row-kind row)))
              (edit (gemini-companion-overview-row-edit row))
              (command (gemini-companion-edit-command edit))
              ;; The user is asked only about a rename.
              ((eq 'accepted (gemini-companion-edit-answer edit)))
              (all (seq-filter
                    (apply-partially #'gemini-companion-step-same-command-p edit)
                    (seq-mapcat #'gemini-companion-overview-row-edits
                                (gemini-companion-overview-row-files
                                 (gemini-companion-overview-page-ancestor row 'turn)))))
              (edits (or (seq-remove #'gemini-companion-undo-unwritten all)
                         (user-error "Nothing here is left to undo"))))
    (when (and gemini-companion-edit-last-forgotten
               (gemini-companion-step-same-command-p
                edit gemini-companion-edit-last-forgotten))
      (user-error "Other files of %s are no longer recorded; \
ask its CLI to rename it back"
                  command))
    (gemini-companion-overview--undo-all
     edits :ask t :whole t
     :what (format (ngettext "%s in %d file" "%s in %d files" (length edits))
                   command (length edits)))
    t))

(defun gemini-companion-overview--undo-all (edits &rest arguments)
  "Undo EDITS as a whole, if the user agrees, and report that.
For ARGUMENTS, see `gemini-companion-undo-edits'."
  (let ((said (unwind-protect
                  (apply #'gemini-companion-undo-edits edits
                         :ended #'gemini-companion-overview--refresh arguments)
                ;; After a conflict, the buffer of the file is current.
                (gemini-companion-overview--refresh))))
    (when said
      (message "%s" said))))

(defun gemini-companion-overview--undo-edit (edit)
  "Undo EDIT as a whole, if the user agrees."
  (gemini-companion-overview--undo-all (list edit) :visit t :ask t))

(defun gemini-companion-overview--never-there (edit all)
  "Return EDIT and those of ALL that have made what it has deleted, or nil.
There is no file before and after them, and nobody else has written it.  The
command of EDIT has not renamed the file, which has to come back then before the
new one goes."
  (and (gemini-companion-edit-deleted-modes edit)
       (not (seq-some (lambda (other)
                        (and (gemini-companion-edit-new-p other)
                             (gemini-companion-step-same-command-p edit other)))
                      all))
       (let ((others (cdr (memq edit (gemini-companion-edits-of-file
                                      (gemini-companion-edit-true-name edit)))))
             (found (list edit)))
         (while (and (memq (car others) all)
                     (gemini-companion-edit-bytes-before (car found))
                     (equal (gemini-companion-edit-texts-before (car found))
                            (gemini-companion-edit-after (car others))))
           (push (pop others) found))
         (and (gemini-companion-edit-new-p (car found)) found))))

(defun gemini-companion-overview--undo-whole (all &optional what)
  "Undo those of ALL edits that were written, as a whole, if the user agrees.
WHAT is nil, or names what they are of, such as \"2 turns\"."
  (let* ((written (seq-remove #'gemini-companion-undo-unwritten all))
         (gone (seq-mapcat (lambda (edit)
                             (gemini-companion-overview--never-there edit all))
                           written))
         ;; The last one first.
         (edits (seq-filter (lambda (edit)
                              (and (memq edit written) (not (memq edit gone))))
                            (reverse (gemini-companion-edits))))
         (count (length edits)))
    (unless edits
      (user-error "No edit here to undo"))
    (gemini-companion-overview--undo-all
     edits :ask t :visit (= 1 count)
     :what (and what (format (ngettext "%d edit of %s" "%d edits of %s" count)
                             count what)))))

(defun gemini-companion-overview--refresh ()
  "Draw the overview again, if it exists."
  (when-let* ((buffer (get-buffer gemini-companion-overview-page-buffer)))
    (with-current-buffer buffer
      (gemini-companion-page-refresh))))

;;;; Answering

(defun gemini-companion-overview--open-proposals (row)
  "Return the proposals at or below ROW that await an answer."
  (seq-filter #'gemini-companion-edit-open-p
              (if (eq 'waiting (gemini-companion-overview-row-kind row))
                  (delq nil (mapcar #'gemini-companion-overview-row-edit
                                    (gemini-companion-overview-row-rows row)))
                (gemini-companion-overview-row-edits row))))

(defun gemini-companion-overview--proposals (row)
  "Return the proposals below ROW that await an answer, or signal an error."
  (or (gemini-companion-overview--open-proposals row)
      (user-error "No proposal here awaits an answer")))

(defun gemini-companion-overview--answer (verb function hint)
  "Answer the proposals at point by FUNCTION, and go to the next proposal.
VERB is the verb of a question about several proposals, and HINT an error for a
change.  Other requests are only displayed: they are answered in their buffers."
  (gemini-companion-overview--check-key)
  (let ((row (gemini-companion-overview-page-row-or-error)))
    (pcase (gemini-companion-overview-row-kind row)
      ('proposal
       (let ((edit (gemini-companion-overview-row-edit row)))
         (funcall function edit)
         (unless (gemini-companion-edit-open-p edit)
           (gemini-companion-overview--after-answer verb (list edit)))))
      ('request (gemini-companion-request-show (gemini-companion-overview-row-request row)))
      ((or 'waiting 'cli 'turn)
       (let ((edits (gemini-companion-overview--proposals row)))
         (when (gemini-companion-overview--agreed-p
                "%s %s (%s)?" verb
                (format (ngettext "%d proposal" "%d proposals" (length edits))
                        (length edits))
                (gemini-companion-edit-hunks-files edits))
           ;; An edit may end while the question is asked, or another is answered.
           (dolist (edit edits)
             (when (gemini-companion-edit-open-p edit)
               (funcall function edit)))
           (gemini-companion-overview--after-answer verb edits))))
      ((guard (gemini-companion-overview--unrecorded-p row))
       (user-error "This review has ended already: %s"
                   (gemini-companion-changes-status
                    (gemini-companion-overview-row-edit row))))
      (_ (user-error "This was written already; %s" hint)))))

(defun gemini-companion-overview--agreed-p (question &rest arguments)
  "Ask QUESTION, a format of ARGUMENTS; return non-nil only if the user types y."
  (eq ?y (gemini-companion-choice-key (apply #'format question arguments) '(?y ?n))))

(defun gemini-companion-overview--after-answer (verb edits)
  "Go to the next proposal, or else to the row above; never to another question.
EDITS were answered by VERB, \"Accept\" or \"Reject\"."
  (gemini-companion-decision-sent
   (format "%s of %s" (if (equal verb "Accept") "acceptance" "rejection")
           (gemini-companion-edit-hunks-files edits)))
  (when-let* ((buffer (get-buffer gemini-companion-overview-page-buffer)))
    (with-current-buffer buffer
      (gemini-companion-page-refresh)
      (let* ((proposals (seq-filter
                         (lambda (row)
                           (eq 'proposal (gemini-companion-overview-row-kind row)))
                         (gemini-companion-overview-page-drawn-rows)))
             (start (lambda (row)
                      (car (gemini-companion-page-section
                            (list 'row (gemini-companion-overview-row-key row))))))
             (next (or (seq-find (lambda (row) (<= (point) (funcall start row)))
                                 proposals)
                       (car (last proposals)))))
        (cond (next (goto-char (funcall start next)))
              ((eq 'request (gemini-companion-overview-page-kind))
               (goto-char (or (gemini-companion-overview-page-heading-beside 'back)
                              (point)))))))))

(defun gemini-companion-overview-accept ()
  "Accept the proposal at point, or after a question all of the turn or CLI.
In a hunk of several, ask whether to accept all of them.  The version that
was displayed is accepted: if it is folded, or has been replaced, it is
shown, and nothing is accepted.  Other requests of a CLI are displayed in
their own buffers."
  (interactive nil gemini-companion-overview-mode)
  (gemini-companion-overview--check-proposal)
  (when (gemini-companion-overview--all-hunks-p)
    (gemini-companion-overview--check-proposal)
    (gemini-companion-overview--answer "Accept" #'gemini-companion-edit-accept
                                       "k keeps it")))

(defun gemini-companion-overview-accept-proposal ()
  "Accept the proposal at point, and nothing else.
As `gemini-companion-overview-accept', but elsewhere do nothing: the same key
interrupts a CLI in its terminal."
  (interactive nil gemini-companion-overview-mode)
  (gemini-companion-overview--check-key)
  (unless (eq 'proposal (gemini-companion-overview-page-kind))
    (user-error "No proposal here"))
  (gemini-companion-overview--check-proposal)
  (gemini-companion-overview--answer "Accept" #'gemini-companion-edit-accept ""))

(defun gemini-companion-overview--all-hunks-p ()
  "Return non-nil if the user agrees to accept all hunks of the proposal at point.
Ask only in a hunk of several: in Ediff, the same letter is about one."
  (let* ((hunk (gemini-companion-view-hunk gemini-companion-edits-view))
         (edit (and hunk (gemini-companion-overview-row-edit
                          (gemini-companion-overview-page-row))))
         (counts (and edit (gemini-companion-edit-hunks-counts edit)))
         (count (and counts (- (gemini-companion-hunk-counts-hunks counts)
                               (gemini-companion-hunk-counts-excluded counts)))))
    (or (null count)
        (<= count 1)
        (gemini-companion-overview--agreed-p "Accept all %d hunks?" count))))

(defun gemini-companion-overview--check-proposal ()
  "Signal an error unless the user has seen the proposal at point, if there is one.
It must be as it is now; what they have not seen is shown."
  (let ((row (gemini-companion-overview-page-row-or-error)))
    (when (eq 'proposal (gemini-companion-overview-row-kind row))
      (gemini-companion-overview--check-key)
      (cond
       ((not (gemini-companion-overview-page-unfolded-p row))
        (gemini-companion-overview-page-unfold row)
        (user-error "Proposal was folded; read it, then type the key again"))
       ((not (gemini-companion-overview-page-current-p row))
        (gemini-companion-page-refresh)
        (user-error "Proposal has changed; read it, then type the key again"))
       ((not (gemini-companion-overview-page-displayed-p row))
        (user-error "Proposal has just appeared; read it, then type the key again"))))))

(defun gemini-companion-overview-reject ()
  "Reject the proposal at point, or after a question all of the turn or CLI.
The version that was displayed is rejected, as by
`gemini-companion-overview-accept'; your comments on it are the reason.  Other
requests of a CLI are displayed in their own buffers."
  (interactive nil gemini-companion-overview-mode)
  (gemini-companion-overview--check-proposal)
  (gemini-companion-overview--answer "Reject" #'gemini-companion-edit-reject
                                     "u undoes it"))

(defun gemini-companion-overview-reject-with-reason ()
  "Ask for a reason, and reject the proposals at point with it.
Several proposals get the same reason."
  (interactive nil gemini-companion-overview-mode)
  (gemini-companion-overview--check-key)
  (gemini-companion-overview--check-proposal)
  (let ((row (gemini-companion-overview-page-row-or-error)))
    (pcase (gemini-companion-overview-row-kind row)
      ('request (gemini-companion-request-show (gemini-companion-overview-row-request row)))
      ((or 'proposal 'waiting 'cli 'turn)
       (let ((edits (gemini-companion-overview--proposals row)))
         (if (null (cdr edits))
             (gemini-companion-edit-reject-with-reason (car edits))
           (gemini-companion-overview--reject-all edits))
         (unless (seq-some #'gemini-companion-edit-open-p edits)
           (gemini-companion-overview--after-answer "Reject" edits))))
      (_ (user-error "No proposal here; u undoes what was written")))))

(defun gemini-companion-overview--reject-all (edits)
  "Reject EDITS, several proposals, for one reason, which is asked for.
A CLI that takes a reason only as a prompt gets it once."
  (let ((reason (gemini-companion-choice-reason
                 (format "Reject %d proposals (%s); reason: " (length edits)
                         (gemini-companion-edit-hunks-files edits))))
        (told nil))
    (when (string-blank-p reason)
      (user-error "No reason given; r rejects without one"))
    ;; An edit may end while the reason is typed, or another is answered.
    (dolist (edit edits)
      (when (gemini-companion-edit-open-p edit)
        (let ((session (gemini-companion-edit-session edit)))
          (if (and (seq-contains-p told session #'gemini-companion-session-same-p)
                   (not (gemini-companion-client-extended-p
                         (gemini-companion-edit-client edit))))
              (gemini-companion-edit-reject edit)
            (push session told)
            (gemini-companion-edit-reject-with-reason edit reason)))))))

(defun gemini-companion-overview-exclude ()
  "Exclude the hunk of a proposal at point, or restore it.
With an active region, exclude its lines, by an edit of the proposal."
  (interactive nil gemini-companion-overview-mode)
  (gemini-companion-overview--check-key)
  (if (use-region-p)
      (gemini-companion-overview--exclude-region)
    (pcase (gemini-companion-overview-page-kind)
      ('proposal (gemini-companion-overview--exclude-hunk))
      ('file (user-error "This was written already; u undoes it"))
      (_ (user-error "No proposal here")))))

(defun gemini-companion-overview--exclude-hunk ()
  "Exclude the hunk of the proposal at point, or restore it."
  (let* ((edit (gemini-companion-overview-row-edit (gemini-companion-overview-page-row)))
         (hunk (or (get-text-property (point) 'gemini-companion-hunk)
                   (user-error "No hunk here; n goes to the next one")))
         (excluded (member hunk (gemini-companion-hunk-excluded
                                 (gemini-companion-edit-proposal-buffer edit)))))
    (gemini-companion-decision-with
        (if excluded "restoring of 1 hunk" "exclusion of 1 hunk")
      (gemini-companion-review-toggle-hunk
       (gemini-companion-header-shortest-key 'gemini-companion-overview-exclude
                                             'overview))
      (run-hook-with-args 'gemini-companion-step-decided-functions
                          (gemini-companion-step-make
                           :kind 'excluded :on (and excluded t)
                           :edit edit :hunks (list hunk))))))

(defun gemini-companion-overview--exclude-region ()
  "Exclude the lines of the region from their proposal."
  (let* ((lines (gemini-companion-overview--in-region
                 (lambda ()
                   (when-let* ((hunk (get-text-property (point) 'gemini-companion-hunk))
                               (line (get-text-property (point) 'gemini-companion-line))
                               (row (gemini-companion-overview-page-row))
                               ((eq 'proposal (gemini-companion-overview-row-kind row))))
                     (list (gemini-companion-overview-row-edit row) hunk line
                           (get-text-property (point) 'gemini-companion-old))))))
         (edit (or (caar lines) (user-error "No line of a proposal in the region")))
         (news nil)
         (olds nil))
    (pcase-dolist (`(,its-edit ,hunk ,line ,old) lines)
      (unless (eq edit its-edit)
        (user-error "Select lines of one proposal"))
      (gemini-companion-review-check-hunk edit hunk)
      (if old
          (push (1- old) olds)
        (push (1- line) news)))
    (let ((text (gemini-companion-edit-hunks-text-without
                 edit
                 (lambda (index) (memq index news))
                 (lambda (index) (memq index olds)))))
      (deactivate-mark)
      (gemini-companion-decision-with "exclusion of lines"
        (gemini-companion-step-decide
         (gemini-companion-step-make
          :kind 'excluded :on t :edit edit
          :texts (cons (gemini-companion-text-of-buffer
                        (gemini-companion-edit-proposal-buffer edit))
                       text))))
      (gemini-companion-page-refresh)
      (message "%s" (substitute-command-keys
                     "Lines excluded; \\[gemini-companion-decision-undo] restores them")))))

(defun gemini-companion-overview-edit ()
  "Edit the proposal at point in its review, or visit the file at point."
  (interactive nil gemini-companion-overview-mode)
  (pcase (gemini-companion-overview-page-kind)
    ('proposal (gemini-companion-review-edit))
    ('file (gemini-companion-overview-visit))
    (_ (user-error "No file here"))))

;;;; Visiting

(defun gemini-companion-overview-visit ()
  "Go to what is at point.
Go to the review of a proposal, at the hunk at point; to the buffer of another
request; to the terminal of a CLI; to the first change left of a turn, or else
to its first proposal; or to the file, in another window, at the line at point.
At the end of a long diff, show more of it."
  (interactive nil gemini-companion-overview-mode)
  (let ((row (gemini-companion-overview-page-row-or-error)))
    (pcase (gemini-companion-overview-row-kind row)
      ((guard (eq 'more (cadr (gemini-companion-unified-draw-fold-here))))
       (gemini-companion-overview-toggle))
      ('note (call-interactively (gemini-companion-overview-row-action row)))
      ('waiting (gemini-companion-overview-page-go-to-row
                 (car (gemini-companion-overview-row-rows row))))
      ('request (gemini-companion-request-show (gemini-companion-overview-row-request row)))
      ('proposal (gemini-companion-review-enter))
      ('cli (gemini-companion-overview--show-terminal row))
      ((and 'file (guard (gemini-companion-overview-row-several-p row)))
       (gemini-companion-changes-several-show (gemini-companion-overview-row-edit row)))
      ((or 'turn 'reviewed)
       (if-let* ((file (seq-find #'gemini-companion-overview-row-left
                                 (gemini-companion-overview-row-files row))))
           (gemini-companion-overview-page-go-to-change (cons file 0))
         (if-let* ((proposal (gemini-companion-overview--first-proposal row)))
             (gemini-companion-overview-page-go-to-row proposal)
           (gemini-companion-overview-toggle))))
      (_ (gemini-companion-overview--visit-file row #'pop-to-buffer)))))

(defun gemini-companion-overview--show-terminal (row)
  "Select the terminal of the CLI of ROW."
  (let ((session (gemini-companion-overview-row-session row)))
    (gemini-companion-terminal-show
     (or (gemini-companion-session-terminal session)
         (user-error "%s does not run in a terminal of this Emacs"
                     (gemini-companion-session-name session))))))

(defun gemini-companion-overview--first-proposal (row)
  "Return the row in Waiting of the first open proposal of ROW, a turn, or nil."
  (let ((edits (gemini-companion-overview--open-proposals row)))
    (seq-find (lambda (other)
                (and (eq 'proposal (gemini-companion-overview-row-kind other))
                     (memq (gemini-companion-overview-row-edit other) edits)))
              (gemini-companion-overview-page-all-rows))))

(defun gemini-companion-overview--line (row)
  "Return the number of the line of ROW's file at point, or of its first change.
Return nil if there is none."
  (let ((hunk (get-text-property (point) 'gemini-companion-hunk))
        (unrecorded (gemini-companion-overview--unrecorded-p row)))
    (if (and (or unrecorded (eq 'proposal (gemini-companion-overview-row-kind row)))
             (not (gemini-companion-changes-there-p
                   (gemini-companion-overview-row-edit row))))
        ;; The file before has no added line, so go to the beginning of its hunk.
        (or (get-text-property (point) 'gemini-companion-old)
            (and hunk (1+ (gemini-companion-hunk-old hunk))))
      (or (get-text-property (point) 'gemini-companion-line)
          (and hunk (1+ (if unrecorded
                            (gemini-companion-hunk-old hunk)
                          (gemini-companion-hunk-new hunk))))
          (when-let* ((change (or (car (gemini-companion-overview-row-left row))
                                  (car (gemini-companion-overview-row-decided row)))))
            (1+ (gemini-companion-hunk-new change)))))))

(defun gemini-companion-overview--visit-file (row display)
  "Show the file of ROW by DISPLAY, `pop-to-buffer' or `display-buffer'.
Go there, in the window that shows it now, to the line at point."
  (let* ((file (gemini-companion-overview-row-path row))
         (proposed (eq 'proposal (gemini-companion-overview-row-kind row)))
         (line (gemini-companion-overview--line row)))
    (when-let* ((why (cond ((gemini-companion-text-unreadable-reason file))
                           ((gemini-companion-text-attributes file) nil)
                           (proposed "does not exist yet; RET shows its review")
                           (t "was deleted or renamed"))))
      (user-error "%s %s" (gemini-companion-label-file file) why))
    (let* ((buffer (gemini-companion-revert-visit file))
           (shown (gemini-companion-windows-beside-show buffer display)))
      (when line
        (with-current-buffer buffer
          (let ((position (gemini-companion-hunk-position (1- line))))
            (unless (<= (point-min) position (point-max))
              (widen))
            ;; In other windows of the file, the user is elsewhere.
            (set-window-point (if (windowp shown) shown (selected-window))
                              position)))))))

(defun gemini-companion-overview-display ()
  "Show what is at point, as \\[gemini-companion-overview-visit], but stay here.
On a proposal, show its file at the line at point.  On a turn, show the terminal
of its CLI."
  (interactive nil gemini-companion-overview-mode)
  (save-selected-window
    (save-excursion
      (let ((row (gemini-companion-overview-page-row)))
        (pcase (gemini-companion-overview-page-kind)
          ('proposal (gemini-companion-overview--visit-file row #'display-buffer))
          ((or 'turn 'reviewed) (gemini-companion-overview--show-terminal row))
          (_ (gemini-companion-overview-visit)))))))

;;;; Moving

(defun gemini-companion-overview-next (&optional count)
  "Go to the next row or change, or COUNT further.
Rows and changes that need no decision are skipped."
  (interactive "p" gemini-companion-overview-mode)
  (let ((count (or count 1)))
    (dotimes (_ (abs count))
      (gemini-companion-overview-page-step (< count 0)))))

(defun gemini-companion-overview-previous (&optional count)
  "Go to the previous row or change, or COUNT back.
Rows and changes that need no decision are skipped."
  (interactive "p" gemini-companion-overview-mode)
  (gemini-companion-overview-next (- (or count 1))))

(defun gemini-companion-overview-next-sibling (&optional count)
  "Go to the next row of the same kind, or COUNT further.
From a change, go to the next change that is left, in this file or the next one."
  (interactive "p" gemini-companion-overview-mode)
  (let ((count (or count 1))
        (here (gemini-companion-overview-page-row-or-error)))
    (if (gemini-companion-overview-page-change-id)
        (gemini-companion-overview-page-move-by-changes count)
      (let* ((kinds (pcase (gemini-companion-overview-row-kind here)
                      ;; All kinds of requests count as one.
                      ((or 'proposal 'request) '(proposal request))
                      (kind (list kind))))
             (rows (seq-filter (lambda (row)
                                 (memq (gemini-companion-overview-row-kind row) kinds))
                               (gemini-companion-overview-page-drawn-rows)))
             (number (+ count (or (seq-position rows here #'eq) 0))))
        (gemini-companion-overview-page-go-to-row
         (or (and (<= 0 number) (nth number rows))
             (user-error "No %s row of this kind"
                         (if (< count 0) "previous" "further"))))))))

(defun gemini-companion-overview-previous-sibling (&optional count)
  "Go to the previous row of the same kind, or COUNT back."
  (interactive "p" gemini-companion-overview-mode)
  (gemini-companion-overview-next-sibling (- (or count 1))))

(defun gemini-companion-overview-up ()
  "Go to the row of the text at point, or from a row to the one above it."
  (interactive nil gemini-companion-overview-mode)
  (let ((row (gemini-companion-overview-page-row-or-error)))
    (gemini-companion-overview-page-go-to-row
     (if (gemini-companion-overview-page-on-heading-p)
         (or (gemini-companion-overview-page-parent row)
             (user-error "This is the topmost row"))
       row))))

(defun gemini-companion-overview-toggle ()
  "Unfold the row at point, or fold it again.
In a diff, show the lines that are folded at point, or fold unchanged lines
again; elsewhere in it, fold its file."
  (interactive nil gemini-companion-overview-mode)
  (if (gemini-companion-unified-draw-fold-here)
      (gemini-companion-unified-draw-toggle-fold)
    (let* ((row (gemini-companion-overview-page-row-or-error))
           (shown (or (gemini-companion-overview-page-shown row)
                      (user-error "Nothing is below this row"))))
      (gemini-companion-overview-page-go-to-row row)
      (gemini-companion-overview-page-choose row (if (eq shown 'open) 'folded 'open))
      (gemini-companion-page-refresh))))

(defun gemini-companion-overview--level (&optional level)
  "Unfold all rows above LEVEL, and fold the others.
Level 1 has the CLIs, 2 the turns, 3 the files and 4 the diffs.  It is by
default the number that was typed."
  (interactive nil gemini-companion-overview-mode)
  (let ((level (or level (- (event-basic-type last-command-event) ?0))))
    (dolist (row (gemini-companion-overview-page-all-rows))
      (gemini-companion-overview-page-choose
       row (if (< (gemini-companion-overview-row-level row) level) 'open 'folded)))
    (let ((gemini-companion-overview-page-going-to (gemini-companion-overview-page-row)))
      (gemini-companion-page-refresh))))

(defvar-local gemini-companion-overview--cycle 4
  "The level to which `gemini-companion-overview-cycle' has last unfolded.")

(defun gemini-companion-overview-cycle ()
  "Fold all rows; when repeated, unfold one level more each time."
  (interactive nil gemini-companion-overview-mode)
  (setq gemini-companion-overview--cycle (1+ (mod gemini-companion-overview--cycle 4)))
  (gemini-companion-overview--level gemini-companion-overview--cycle))

;;;; Mouse

(defun gemini-companion-overview--click (event)
  "Go to what was clicked by EVENT."
  (interactive "e" gemini-companion-overview-mode)
  (gemini-companion-commands-go-to-click event)
  (gemini-companion-overview-visit))

(defun gemini-companion-overview--click-sign (event)
  "Fold or unfold the row whose sign was clicked by EVENT."
  (interactive "e" gemini-companion-overview-mode)
  (gemini-companion-commands-go-to-click event)
  (gemini-companion-overview-toggle))

(defun gemini-companion-overview--context-menu (menu click)
  "Add what can be done with the row at CLICK to MENU, and return MENU.
This is a function of `context-menu-functions'."
  (save-excursion
    (goto-char (posn-point (event-start click)))
    (let ((what (gemini-companion-overview--what)))
      (gemini-companion-commands-add-items
       menu click
       (pcase what
         ('proposal '(("Accept" . gemini-companion-overview-accept)
                      ("Reject" . gemini-companion-overview-reject)
                      ("Exclude or restore this hunk" . gemini-companion-overview-exclude)
                      ("Comment" . gemini-companion-comment)))
         ('request '(("Show" . gemini-companion-overview-visit)))
         ((or 'change 'kept 'file 'turn 'cli)
          `(("Keep" . gemini-companion-overview-keep)
            ("Undo" . gemini-companion-overview-undo)
            ("Comment" . gemini-companion-comment)))
         ('several '(("Undo" . gemini-companion-overview-undo)))
         ('taken '(("Give them back" . gemini-companion-overview-undo)))
         ('undone '(("Comment" . gemini-companion-comment)))))))
  menu)

;;;; Ways in

(defun gemini-companion-overview--prepare ()
  "Return the buffer of the overview, made if necessary, for this directory."
  (let ((directory (or gemini-companion-session-remote-directory default-directory)))
    (with-current-buffer (get-buffer-create gemini-companion-overview-page-buffer)
      (unless (derived-mode-p 'gemini-companion-overview-mode)
        (gemini-companion-overview-mode))
      (setq gemini-companion-arrival-as-row-function
            (lambda ()
              (and (get-buffer-window gemini-companion-overview-page-buffer) t)))
      (unless (eq (current-buffer) (window-buffer))
        (setq gemini-companion-overview-page-directory directory
              default-directory directory))
      (current-buffer))))

(defun gemini-companion-overview--show ()
  "Draw and display the overview, and select it."
  (let ((guarded (gemini-companion-walk-on-p)))
    ;; Letters such as k act on rows here, not on the change of the walk.
    (gemini-companion-walk-end)
    (pop-to-buffer (gemini-companion-overview--prepare)
                   '((display-buffer-reuse-window
                      gemini-companion-windows-beside-cover)
                     (category . gemini-companion-overview)
                     (window-height . 0.6)))
    (setq gemini-companion-overview--ignores-keys guarded)
    (gemini-companion-page-refresh)))

(defun gemini-companion-overview-buffer ()
  "Return the buffer of the overview, or nil if there is none."
  (get-buffer gemini-companion-overview-page-buffer))

(defun gemini-companion-overview--row-of (request)
  "Return the row of REQUEST, if that waits, or nil.
REQUEST may be nil."
  (and request
       (seq-find (lambda (row)
                   (or (eq request (gemini-companion-overview-row-request row))
                       (and (eq 'proposal (gemini-companion-overview-row-kind row))
                            (eq request (gemini-companion-overview-row-edit row)))))
                 (gemini-companion-overview-page-all-rows))))

(defun gemini-companion-overview-show (request)
  "Select the overview, and go to the row of REQUEST, if that waits."
  (gemini-companion-overview--show)
  (gemini-companion-overview--unfold-at request))

(defun gemini-companion-overview--unfold-at (request)
  "Go to the row of REQUEST, if that waits, and unfold it."
  (when-let* ((row (gemini-companion-overview--row-of request)))
    (unless (gemini-companion-overview-page-unfolded-p row)
      (gemini-companion-overview-page-unfold row))
    (gemini-companion-overview-page-go-to-row row)))

(defun gemini-companion-overview-appear (request)
  "Display the overview from the row of REQUEST on, without selecting it.
If there is no window for it, do nothing."
  (let ((page (gemini-companion-overview--prepare))
        (session (gemini-companion-request-session request)))
    (with-selected-frame (gemini-companion-windows-beside-frame session)
      (when-let* ((window (gemini-companion-windows-beside-appear
                           page
                           (and (gemini-companion-edit-p request)
                                (gemini-companion-names-buffer
                                 (gemini-companion-edit-file request))))))
        (with-selected-window window
          (gemini-companion-page-refresh)
          (gemini-companion-overview--unfold-at request)
          (set-window-start nil (gemini-companion-overview-page-begin-of
                                 (gemini-companion-overview-page-row))))))))

(defun gemini-companion-overview-follow (edit)
  "Go to the row of EDIT if the last command in the overview was an answer.
That is, if it is selected, and nothing else waits."
  (when (and (eq (window-buffer) (gemini-companion-overview-buffer))
             (equal (list edit) (gemini-companion-requests))
             (memq last-command '(gemini-companion-overview-accept
                                  gemini-companion-overview-accept-proposal
                                  gemini-companion-overview-reject)))
    (with-current-buffer (window-buffer)
      (gemini-companion-page-refresh)
      (gemini-companion-overview--unfold-at edit))))

(defun gemini-companion-list ()
  "Go to what waits for an answer in the overview of all CLIs.
If nothing waits, go to the first change that is left.  From a review, go to
the row of its edit; the review ends, and RET begins it again."
  (interactive)
  (let ((edit gemini-companion-edit-here))
    (when edit
      (gemini-companion-proposal-hide edit))
    (gemini-companion-overview--show)
    (if-let* ((row (or (gemini-companion-overview--row-of edit)
                       (gemini-companion-overview-page-waiting-row))))
        (gemini-companion-overview-page-go-to-row row)
      (gemini-companion-overview-page-go-to-first))))

(defun gemini-companion-turn-page (&optional session turn)
  "Go to the change at point, or the first one left, in the overview of all CLIs.
With SESSION or TURN, go to the first one of that CLI or turn."
  (interactive)
  (let* ((hunks (when-let* ((change (and (null session) (null turn)
                                         (gemini-companion-walk-change))))
                  (gemini-companion-record-change-hunks change)))
         (_ (gemini-companion-overview--show))
         (mine (lambda (row)
                 (and (or (null session)
                          (gemini-companion-session-same-p
                           session (gemini-companion-overview-row-session row)))
                      (or (null turn)
                          (eq turn (gemini-companion-overview-row-turn row))))))
         (targets (gemini-companion-overview-page-targets))
         (target (or (and hunks
                          (seq-find
                           (pcase-lambda (`(,row . ,number))
                             (seq-intersection
                              hunks (gemini-companion-record-change-hunks
                                     (nth number (gemini-companion-overview-row-left row)))
                              #'eq))
                           targets))
                     (seq-find (lambda (target) (funcall mine (car target))) targets)))
         (row (seq-find (lambda (row)
                          (and (eq (if turn 'turn 'cli)
                                   (gemini-companion-overview-row-kind row))
                               (funcall mine row)))
                        (gemini-companion-overview-page-all-rows))))
    (cond (target (gemini-companion-overview-page-go-to-change target))
          ((and row (or session turn)) (gemini-companion-overview-page-go-to-row row))
          (t (gemini-companion-overview-page-go-to-first)
             (message "No change is left")))))

(gemini-companion-part-loaded 'overview)

(provide 'gemini-companion-overview)
;;; gemini-companion-overview.el ends here
