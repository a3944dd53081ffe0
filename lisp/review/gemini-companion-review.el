;;; gemini-companion-review.el --- A review on the screen  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Display, select, replace and close the review of an edit, choose its frame and the
;; kind of its view, and define its commands.  `gemini-companion-view' has the generic
;; functions that the kinds of views implement; their files are loaded on first use.
;; `gemini-companion-review-answered' handles keys after an answer.

;;; Code:

(require 'gemini-companion-arrival)
(require 'gemini-companion-commands)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-guard)
(require 'gemini-companion-header)
(require 'gemini-companion-hunk)
(require 'gemini-companion-idle)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-page)
(require 'gemini-companion-part)
(require 'gemini-companion-proposal)
(require 'gemini-companion-request)
(require 'gemini-companion-review-answered)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-view)
(require 'gemini-companion-windows)
(require 'map)

(autoload 'gemini-companion-ediff-make "gemini-companion-ediff")
(autoload 'gemini-companion-unified-make "gemini-companion-unified")

(declare-function gemini-companion-list "gemini-companion-overview")

;;;; Customization

(defcustom gemini-companion-review-view 'ediff
  "View in which a proposed edit is reviewed.
`ediff' is an Ediff session, `diff' a unified diff in one window.
A new file is always reviewed as a unified diff, and so is a file with a
very long line, and any file in a frame that is too small for Ediff.
\\<gemini-companion-review-mode-map>\\[gemini-companion-review-switch-view] \
switches from one view to the other.

Nil means no reviews: CLIs ask in their terminals as they do without
an editor, and still receive the context.  A CLI asks whether there
are reviews only when it connects.  So after a change to or from nil
type \"/ide disable\" in each Gemini CLI and Qwen Code,
\\[gemini-companion-restart], and \"/ide enable\" in each.  Copilot CLI
connects again by itself.  Until then, answer in their terminals.
Any other change takes effect with the next review."
  :type '(choice (const :tag "Ediff" ediff)
                 (const :tag "Unified diff" diff)
                 (const :tag "No reviews, only context" nil))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

(defcustom gemini-companion-review-focus nil
  "Whether a review that appears by itself is selected.
Nil means never, t means always, and `terminal' means if the terminal
of the CLI is selected.  A review is never selected while a prompt is
open.  For the first second, the review ignores letters, and the keys
that accept."
  :type '(choice (const :tag "Never" nil)
                 (const :tag "From the CLI's terminal" terminal)
                 (const :tag "Always" t))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

(defface gemini-companion-other-hunk
  '((((class color) (min-colors 88) (background light))
     :background "#e6e6e6" :extend t)
    (((class color) (min-colors 88) (background dark))
     :background "#3a3a3a" :extend t)
    (t :underline t))
  "Face of the hunks in Ediff that are not current."
  :group 'gemini-companion-reviews)

;;;; Keys

(defun gemini-companion-review--key (command)
  "Return a binding of COMMAND that is ignored just after a review appears."
  (list 'menu-item "" command
        :filter (lambda (command)
                  (if (gemini-companion-guard-new-p)
                      #'gemini-companion-review--too-soon
                    command))))

(defun gemini-companion-review--too-soon ()
  "Ignore a key that was typed before the review could be read."
  (interactive)
  (message "Key ignored: the review has just appeared"))

(let ((map (gemini-companion-commands-bind gemini-companion-review-mode-map
                                           'review)))
  (dolist (key (list (kbd "C-c C-c") [remap save-buffer]))
    (define-key map key
      (gemini-companion-review--key #'gemini-companion-edit-accept)))
  (define-key map [remap evil-quit] #'gemini-companion-review-quit)
  ;; Evil also remaps the commands of its ex line.
  (dolist (command '(evil-write evil-update evil-save-and-close
                                evil-save-modified-and-close))
    (define-key map (vector 'remap command)
      #'gemini-companion-review--accept-as-saved)))

(defun gemini-companion-review-make-map (context)
  "Return a new keymap for CONTEXT, a view in which no text is typed.
For CONTEXT, see `gemini-companion-commands'."
  (let ((map (make-sparse-keymap)))
    (suppress-keymap map)
    (dolist (context (list 'view context) map)
      (gemini-companion-commands-bind map context
                                      #'gemini-companion-review--key))))

;;;; State

(defvar gemini-companion-review--unrequested nil
  "Non-nil if the last review appeared by itself, beside the selected window.
For several reviews in a row, it refers to the first.")

(defvar gemini-companion-review-kinds
  '((ediff gemini-companion-ediff-make
           :fits-p gemini-companion-review--fits-ediff-p :wide t)
    (diff gemini-companion-unified-make))
  "The kinds of views, an alist of (KIND CONSTRUCTOR . PROPERTIES).
CONSTRUCTOR takes the slots of a `gemini-companion-view' as keywords.
`:fits-p' is a function that returns non-nil if the kind fits its argument, an
edit, on the selected frame; without it, the kind always fits.  `:wide' is
non-nil if the texts are displayed side by side.  If a kind does not fit or
fails, the last kind is used.")

(defun gemini-companion-review--last-kind ()
  "Return the last kind of view, which fits each edit."
  (caar (last gemini-companion-review-kinds)))

;;;; Context menu

(put 'gemini-companion-review-context-menu 'permanent-local-hook t)

(defun gemini-companion-review-context-menu (menu click)
  "Add the answers of the review at CLICK to MENU, and return MENU.
This is a member of `context-menu-functions'."
  (when (and gemini-companion-edit-here
             (gemini-companion-edit-open-p gemini-companion-edit-here))
    (define-key menu [gemini-companion-separator] menu-bar-separator)
    (gemini-companion-commands-add-items
     menu click
     '(("Accept" . gemini-companion-edit-accept)
       ("Reject" . gemini-companion-edit-reject)
       ("Exclude or restore this hunk" . gemini-companion-review-toggle-hunk))))
  menu)

(defun gemini-companion-review--set-context-menu ()
  "Add the answers of a review to the context menu of its buffer, or remove them.
This is a member of `gemini-companion-review-mode-hook' while the mode is on."
  (if gemini-companion-review-mode
      (add-hook 'context-menu-functions #'gemini-companion-review-context-menu
                nil t)
    (remove-hook 'context-menu-functions #'gemini-companion-review-context-menu
                 t)))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'review)))
  "Add the answers of a review to the context menus of its buffers."
  '((gemini-companion-review-mode-hook gemini-companion-review--set-context-menu)))

;;;; Current review

(defun gemini-companion-review-main-buffer (edit)
  "Return the buffer to select in the view of EDIT, or nil without a view."
  (when-let* ((view (gemini-companion-edit-view edit)))
    (car (gemini-companion-view-buffers view))))

(defun gemini-companion-review-of-buffer ()
  "Return the view of the current buffer, or signal an error."
  (or gemini-companion-edits-view
      (and gemini-companion-edit-here
           (gemini-companion-edit-view gemini-companion-edit-here))
      (user-error "No review in this buffer; %s goes to one"
                  (substitute-command-keys "\\[gemini-companion-review]"))))

(defun gemini-companion-review-enter ()
  "Return the current view.
In the overview, first go to the view, to the line at point."
  (when gemini-companion-edits-view
    (let ((edit (gemini-companion-edit-open-or-error))
          (line (get-text-property (point) 'gemini-companion-line)))
      (gemini-companion-arrival-view edit)
      (gemini-companion-review--go-to edit line)))
  (gemini-companion-review-of-buffer))

(defun gemini-companion-review--go-to (edit line)
  "Move point to the hunk of EDIT at LINE, or to the last hunk before it.
LINE is a line of the proposal, or nil.  The view of EDIT must be selected."
  (when-let* ((line)
              (hunks (gemini-companion-edit-known-hunks edit))
              (view (gemini-companion-edit-view edit))
              (number (seq-count (lambda (hunk)
                                   (<= (gemini-companion-hunk-new hunk) line))
                                 hunks)))
    (gemini-companion-view-go-to view (max 0 (1- number)))))

(cl-defmethod gemini-companion-view-follow ((view gemini-companion-view) event)
  "Update VIEW after EVENT of its edit, or select it if that is `select'."
  (pcase event
    ('file-changed (gemini-companion-view-compare view)
                   (force-mode-line-update t))
    ;; The user has selected this review, so its keys need no guard.
    ('select (gemini-companion-guard-set-new nil)
             (gemini-companion-windows-at-once
               (gemini-companion-review--select view 'lay-out)))
    ('toggled (gemini-companion-view-mark view t))
    ('restored (gemini-companion-view-mark view nil))
    ;; While the review waits for the next edit, its keys do nothing, and any other
    ;; key closes it.
    ('waits (dolist (buffer (gemini-companion-view-buffers view))
              (with-current-buffer buffer
                (gemini-companion-review-answered-set-up)))
            (gemini-companion-view-mark view nil)
            (force-mode-line-update t))
    ('hide (gemini-companion-review--close view))))

;;;; Menu state

(defun gemini-companion-review--displayed-hunk ()
  "Return the displayed hunk at point, in an open review, or nil.
Do not compare the texts."
  (gemini-companion-edit-open-or-error)
  (gemini-companion-view-hunk (gemini-companion-review-of-buffer)))

(defun gemini-companion-review-excluded-p ()
  "Return non-nil if the hunk of a review at point is excluded."
  (member (gemini-companion-review--displayed-hunk)
          (gemini-companion-hunk-excluded
           (gemini-companion-edit-proposal-buffer
            (gemini-companion-edit-open-or-error)))))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'review)))
  "Return the view of the current buffer."
  (gemini-companion-review-of-buffer))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'hunk)))
  "Return the hunk of a review at point."
  (gemini-companion-review--displayed-hunk))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'excluded)))
  "Return non-nil if the hunk of a review at point is excluded."
  (gemini-companion-review-excluded-p))

;;;; Hunk at point

(defun gemini-companion-review-update-hunk ()
  "Update the comparison of the review at point, and return the hunk at point.
The value is nil if there is no hunk.  Commands call this; menus call
`gemini-companion-review--displayed-hunk', which compares nothing.  If the texts
have changed, compare them again, since lines that were typed beside a hunk
belong to it.  On a page with several edits, signal a `user-error' if the hunk
at point is outdated."
  (let* ((view (gemini-companion-review-of-buffer))
         (edit (gemini-companion-view-edit view)))
    (unless (or (null edit)
                (gemini-companion-edit-decision edit)
                (eq (gemini-companion-view-hunks view)
                    (gemini-companion-edit-hunks edit)))
      (gemini-companion-view-compare view))
    (let ((hunk (gemini-companion-view-hunk view)))
      (unless (or edit
                  (null hunk)
                  (member hunk (gemini-companion-edit-hunks
                                (gemini-companion-edit-open-or-error))))
        (gemini-companion-page-refresh)
        (user-error "The proposal has changed; its diff was updated"))
      hunk)))

;;;; Views

(cl-defmethod gemini-companion-view-show ((edit gemini-companion-edit) select)
  "Show EDIT in the kind of view that the user has chosen.
For SELECT, see the generic function."
  (unless gemini-companion-review-view
    (user-error "No review of %s, as `gemini-companion-review-view' is nil"
                (gemini-companion-edit-name edit)))
  (unless (eq select 'next)
    (setq gemini-companion-review--unrequested (not select)))
  ;; A new file may be empty, such as __init__.py.
  (unless (or (gemini-companion-edit-hunks edit)
              (gemini-companion-edit-new-p edit))
    (user-error "Proposal for %s contains no changes"
                (gemini-companion-edit-name edit)))
  (let ((view (with-selected-frame (gemini-companion-review--frame edit select)
                (gemini-companion-review--open
                 edit (gemini-companion-review--kind edit)
                 gemini-companion-review--unrequested))))
    (gemini-companion-review--focus view select)))

(defun gemini-companion-review--frame (edit requested)
  "Return the frame for a review of EDIT.
It displays the terminal of the CLI or the file of EDIT, or is the selected
frame.  Prefer the selected frame, and if REQUESTED is non-nil, consider no
other reason.  Skip frames with only dedicated windows."
  (let ((file (gemini-companion-names-buffer (gemini-companion-edit-file edit)))
        (frames (seq-filter
                 (lambda (frame)
                   ;; The frame is visible on a terminal, and is not a child frame.
                   (and (eq t (frame-visible-p frame))
                        (not (frame-parameter frame 'parent-frame))
                        (not (equal "initial_terminal"
                                    (terminal-name (frame-terminal frame))))
                        (or (display-graphic-p frame)
                            (eq frame (tty-top-frame frame)))
                        (or (not requested)
                            (eq (frame-terminal) (frame-terminal frame)))))
                 (cons (selected-frame) (frame-list)))))
    (or (unless requested
          (seq-find (lambda (frame)
                      (or (gemini-companion-windows-terminal edit frame)
                          (and file (get-buffer-window file frame))))
                    frames))
        (seq-find (lambda (frame)
                    ;; The frame of a control panel of Ediff has only dedicated
                    ;; windows.
                    (not (seq-every-p #'window-dedicated-p
                                      (window-list frame 'no-minibuffer))))
                  frames)
        (selected-frame))))

(defun gemini-companion-review--fits-ediff-p (edit)
  "Return non-nil if EDIT can be displayed by Ediff on the selected frame."
  (and (not (gemini-companion-edit-new-p edit))
       (gemini-companion-review--room-for-ediff-p edit)
       ;; Ediff shows all of a line.
       (seq-every-p (lambda (buffer)
                      (<= (nth 1 (buffer-line-statistics buffer)) 4000))
                    (list (gemini-companion-edit-texts-original edit)
                          (gemini-companion-edit-proposal-buffer edit)))))

(defun gemini-companion-review--room-for-ediff-p (edit)
  "Return non-nil if Ediff fits here beside the terminal of EDIT's CLI."
  (let* ((main (window-main-window)) ; side windows stay
         (terminal (gemini-companion-windows-terminal edit))
         (columns (window-total-width main))
         (lines (window-total-height main)))
    (cond ((or (memq terminal (list nil main))
               (window-parameter terminal 'window-side)))
          ((window-full-width-p terminal)
           (setq lines (- lines (window-total-height terminal))))
          (t (setq columns (- columns (window-total-width terminal)))))
    (and (<= gemini-companion-windows-ediff-columns columns)
         (<= gemini-companion-windows-ediff-lines lines))))

(defun gemini-companion-review--focus (view select)
  "Select VIEW, a new view, by SELECT or by the option for the focus.
A prompt or a search in progress stays selected.  For SELECT, see
`gemini-companion-view-show'.  If the user has not requested VIEW, ignore its
keys that answer for a second."
  (when (or select
            (and (gemini-companion-idle-between-commands-p)
                 (pcase gemini-companion-review-focus
                   ('terminal (eq (selected-window)
                                  (gemini-companion-windows-terminal
                                   (gemini-companion-view-edit view))))
                   (wanted wanted))))
    (unless (eq select 'select)
      (gemini-companion-guard-set-new t))
    (gemini-companion-review--select view)))

(defun gemini-companion-review--kind (edit)
  "Return the kind of view for EDIT on the selected frame.
It is `gemini-companion-review-view' if that fits."
  (pcase (assq gemini-companion-review-view gemini-companion-review-kinds)
    ((and `(,kind ,_ . ,properties)
          (guard (funcall (or (plist-get properties :fits-p) #'always) edit)))
     kind)
    (_ (gemini-companion-review--last-kind))))

(defun gemini-companion-review--open (edit kind &optional keep chosen)
  "Open a view of EDIT of KIND on the selected frame, and return it.
If Ediff has no room or fails, it is a unified diff; if that fails, signal
the error again.  For KEEP and CHOSEN, see
`gemini-companion-review--open-kind'."
  (condition-case problem
      (gemini-companion-review--open-kind edit kind keep chosen)
    ((error quit)
     (when (or (eq kind (gemini-companion-review--last-kind))
               (eq 'quit (car problem)))
       (signal (car problem) (cdr problem)))
     (unless (eq (car problem) 'gemini-companion-windows-too-small)
       (message "%s; showing a unified diff" (error-message-string problem)))
     (gemini-companion-review--open-kind
      edit (gemini-companion-review--last-kind) keep chosen))))

(defun gemini-companion-review--open-kind (edit kind keep chosen)
  "Open a view of EDIT of KIND on the selected frame, and return it.
If KEEP is non-nil, the selected window stays visible and selected.
CHOSEN is the kind that the user has chosen, or nil.  If that fails, close
the view, restore the windows, and signal the error again."
  (let ((view (funcall (car (alist-get kind gemini-companion-review-kinds))
                       :edit edit :kind kind :chosen chosen)))
    (condition-case problem
        (gemini-companion-windows-try
         (lambda (layout)
           (setf (gemini-companion-view-layout view) layout)
           (save-current-buffer
             (gemini-companion-view-open view keep))
           (gemini-companion-review--record-windows view))
         keep)
      ((error quit)
       (gemini-companion-view-close view)
       (signal (car problem) (cdr problem))))
    (gemini-companion-edit-set-view edit view)
    view))

(defun gemini-companion-review--record-windows (view)
  "Record the frame and windows of VIEW, and the window of the CLI there."
  (let* ((buffers (gemini-companion-view-buffers view))
         (windows (seq-mapcat
                   (lambda (buffer) (get-buffer-window-list buffer nil t))
                   buffers))
         (frame (window-frame (car windows))))
    (setf (gemini-companion-view-windows view) windows
          (gemini-companion-view-frame view) frame
          (gemini-companion-view-size view)
          (gemini-companion-review--size frame)
          (gemini-companion-view-terminal view)
          (gemini-companion-windows-terminal
           (gemini-companion-view-edit view) frame))))

(defun gemini-companion-review--size (frame)
  "Return the width and the height of FRAME in characters, a cons."
  (cons (frame-width frame) (frame-height frame)))

(defun gemini-companion-review--select (view &optional lay-out)
  "Select VIEW on its frame, if that is visible on this terminal.
If LAY-OUT is non-nil and its windows have changed, display it again; use
Ediff if that fits, now that it may replace windows of files."
  (let ((frame (gemini-companion-view-frame view)))
    (when (and (frame-live-p frame)
               (not (eq frame (selected-frame)))
               (eq (frame-terminal frame) (frame-terminal)))
      (select-frame-set-input-focus frame))
    (when lay-out
      (gemini-companion-windows-uncover (gemini-companion-view-buffers view))
      (setq view (gemini-companion-review--fit view)))
    (when-let* ((window (seq-some #'get-buffer-window
                                  (gemini-companion-view-buffers view))))
      (select-window window))))

(defun gemini-companion-review--fit (view &optional keep)
  "Show VIEW on the selected frame in the kind that fits; return the view.
If KEEP is non-nil, the selected window stays visible and selected."
  (setf (gemini-companion-view-frame view) (selected-frame)
        (gemini-companion-view-size view)
        (gemini-companion-review--size (selected-frame)))
  (let* ((edit (gemini-companion-view-edit view))
         (kind (or (gemini-companion-view-chosen view)
                   (gemini-companion-review--kind edit)))
         (terminal (gemini-companion-view-terminal view))
         (proposal (gemini-companion-edit-proposal-buffer edit))
         (point (and (eq proposal (window-buffer)) (window-point))))
    (unless (and (eq kind (gemini-companion-view-kind view))
                 (or (null terminal) (window-live-p terminal))
                 (gemini-companion-view-fits-p view))
      (setq view (gemini-companion-review--replace view kind keep))
      ;; The next review replaces this one, so it may hide the same windows.
      (unless keep
        (setq gemini-companion-review--unrequested nil))
      ;; The user was typing in the proposal: keys must not become commands.
      (when point
        (unless (eq proposal (window-buffer))
          (with-current-buffer (window-buffer)
            (gemini-companion-view-edit-proposal view)))
        (set-window-point nil point)))
    view))

(defun gemini-companion-review--replace (view kind &optional keep)
  "Close VIEW, open one of KIND on the selected frame, and return it.
The new view is at the same hunk.  If it cannot be opened, open one of the
previous kind; if that fails, the edit waits to be displayed again.  If KEEP
is non-nil, the selected window stays visible and selected."
  (let ((edit (gemini-companion-view-edit view))
        (line (gemini-companion-review--line view))
        (chosen (gemini-companion-view-chosen view)))
    (gemini-companion-windows-at-once
      (gemini-companion-review--close view)
      (condition-case problem
          (gemini-companion-review--open edit kind keep chosen)
        ((error quit)
         (gemini-companion-review--open edit (gemini-companion-view-kind view)
                                        keep chosen)
         (user-error "%s" (error-message-string problem))))
      (gemini-companion-review--go-to edit line)
      (gemini-companion-edit-view edit))))

(defun gemini-companion-review--line (view)
  "Return the line number in the proposal at point in VIEW.
Return nil if there is no line and no hunk at point."
  (let ((edit (gemini-companion-view-edit view)))
    (with-current-buffer (if (eq edit gemini-companion-edit-here)
                             (current-buffer)
                           (car (gemini-companion-view-buffers view)))
      (if (eq (current-buffer) (gemini-companion-edit-proposal-buffer edit))
          (line-number-at-pos nil 'absolute)
        (or (gemini-companion-view-line view)
            (when-let* ((hunk (gemini-companion-review-update-hunk)))
              (gemini-companion-hunk-new hunk)))))))

;;;; Closing

(defun gemini-companion-review--close (view)
  "Close VIEW; do not change its proposal."
  (let* ((edit (gemini-companion-view-edit view))
         (proposal (gemini-companion-edit-proposal-buffer edit)))
    ;; A frame that is deleted with its windows would close it again.
    (gemini-companion-edit-set-view edit nil)
    (gemini-companion-windows-at-once
      (gemini-companion-windows-restore-after-review
       (gemini-companion-view-layout view)
       (gemini-companion-view-buffers view)
       (gemini-companion-view-windows view))
      (gemini-companion-view-close view))
    (when (buffer-live-p proposal)
      (with-current-buffer proposal
        (setq header-line-format nil)))))

;;;; Commands

(defun gemini-companion-review (&optional list)
  "Go to the next review or question.
If a review is displayed, select it, or if it is selected, the terminal beside
it; if one of its windows was deleted, restore the windows.  Otherwise go to
the proposal, or to the question in the terminal of a CLI, that has waited
longest; from there, go to the next one.  If nothing waits, display the state
of each CLI.  With prefix argument LIST, go to the overview."
  (interactive "P")
  (let ((request (or (gemini-companion-edit-shown)
                     (gemini-companion-request-next))))
    (cond (list (gemini-companion-list))
          (request (gemini-companion-request-show request))
          (t
           (user-error "No proposal waits for an answer%s"
                       (mapconcat
                        (lambda (session)
                          (pcase (gemini-companion-session-state session)
                            ('unknown "")
                            (state (format "; %s is %s"
                                           (gemini-companion-session-name
                                            session)
                                           state))))
                        (gemini-companion-sessions) ""))))))

(defun gemini-companion-review-quit ()
  "Ask whether to accept, reject or keep reviewing the current edit."
  (interactive)
  (let* ((edit (gemini-companion-edit-open-or-error nil))
         (view (gemini-companion-edit-view edit)))
    (pcase (car (gemini-companion-proposal-ask
                 edit
                 (lambda ()
                   (read-multiple-choice
                    (format "Answer for %s" (gemini-companion-edit-name edit))
                    '((?a "accept" "The CLI writes the proposal")
                      (?r "reject" "The file is not written")
                      (?k "keep reviewing" "Nothing is decided"))))))
      ;; The connection of its frame was lost: this key was typed in another one.
      ((guard (and view (null (gemini-companion-edit-view edit))))
       (message "Review was hidden; the edit still awaits an answer"))
      (?a (gemini-companion-edit-accept edit))
      (?r (gemini-companion-edit-reject edit)))))

(defun gemini-companion-review--accept-as-saved ()
  "Accept the current review, as :w and ZZ of Evil save a file.
With a file name, as in :w FILE, do what Evil does."
  (interactive)
  (if (bound-and-true-p evil-ex-argument)
      (call-interactively 'evil-write)
    (gemini-companion-edit-accept)))
;; After an answer, it is a key for the review that has ended.
(put 'gemini-companion-review--accept-as-saved
     'gemini-companion-review-answered-of-review t)

(defun gemini-companion-review-switch-view ()
  "Switch this review between Ediff and the unified diff.
Point stays at its hunk, or moves to the previous one.  Your edits of the
proposal and the excluded hunks are preserved."
  (interactive)
  (gemini-companion-edit-open-or-error)
  (gemini-companion-windows-at-once
    (let* ((view (gemini-companion-review-enter))
           (others (cdr (memq (gemini-companion-view-kind view)
                              (mapcar #'car gemini-companion-review-kinds))))
           (view (gemini-companion-review--replace
                  view (or (car others) (caar gemini-companion-review-kinds)))))
      (setf (gemini-companion-view-chosen view)
            (gemini-companion-view-kind view)))))

(defun gemini-companion-review-toggle-hunk (&optional key)
  "Exclude the hunk at point from the proposal, or restore it.
Accepting the proposal sends only the hunks that are not excluded.  KEY is the
key that restores it, by default that of this command."
  (interactive)
  (let ((hunk (or (gemini-companion-review-update-hunk)
                  (user-error
                   "No hunk here; %s goes to the next one"
                   (gemini-companion-header-shortest-key
                    'gemini-companion-review-next-hunk)))))
    (if (gemini-companion-edit-hunks-toggle (gemini-companion-edit-current) hunk)
        (message "Hunk excluded; %s restores it"
                 (or key
                     (gemini-companion-header-shortest-key
                      'gemini-companion-review-toggle-hunk)
                     (substitute-command-keys
                      "\\[gemini-companion-review-toggle-hunk]")))
      (message "Hunk restored"))))

(defun gemini-companion-review-next-hunk (&optional count)
  "Go to the next hunk of this review, or COUNT hunks on.
In the overview, go to the next row or change."
  (interactive "p")
  (gemini-companion-view-move (gemini-companion-review-of-buffer)
                              (or count 1)))

(defun gemini-companion-review-previous-hunk (&optional count)
  "Go to the previous hunk of this review, or COUNT hunks back.
In the overview, go to the previous row or change."
  (interactive "p")
  (gemini-companion-review-next-hunk (- (or count 1))))

(defun gemini-companion-review-edit ()
  "Go to the proposal to edit it, or from there back to the review."
  (interactive)
  (gemini-companion-view-edit-proposal (gemini-companion-review-enter)))

(provide 'gemini-companion-review)
;;; gemini-companion-review.el ends here
