;;; gemini-companion-review.el --- A review on the screen  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The review of an edit on the screen: its view, how to switch to another one, the
;; keys, the header line with the file, remarks on it, the amount of change and the
;; keys as far as they fit, and the colors of the texts, by the major mode of the
;; file without its hooks.  The two views are loaded when used.

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-arrival)
(require 'gemini-companion-edit)
(require 'gemini-companion-names)
(require 'gemini-companion-revert)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-text)
(require 'gemini-companion-windows)

(autoload 'gemini-companion-ediff-make "gemini-companion-ediff")
(autoload 'gemini-companion-unified-make "gemini-companion-unified")

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
of its CLI is selected.  While a prompt is open, it is not.  Letters, and
the keys that accept, are ignored in it for the first second."
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

(defvar gemini-companion-review-new-until 0
  "Time until which keys that answer are ignored in a new review.")

(defun gemini-companion-review--key (command)
  "Return a binding of COMMAND that does nothing just after a review appears."
  (list 'menu-item "" command
        :filter (lambda (command)
                  (if (< 0 (- gemini-companion-review-new-until (float-time)) 1)
                      #'gemini-companion-review-too-soon
                    command))))

(defun gemini-companion-review-too-soon ()
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
      #'gemini-companion-review-accept-as-saved)))

(defun gemini-companion-review-make-map (place)
  "Return a new keymap for PLACE, a view where no text is typed."
  (let ((map (make-sparse-keymap)))
    (suppress-keymap map)
    (dolist (place (list 'view place) map)
      (gemini-companion-commands-bind map place #'gemini-companion-review--key))))

;;;; State

(defvar gemini-companion-review--unrequested nil
  "Non-nil if the last review appeared by itself, beside the selected window.
For several reviews in a row, it refers to the first.")

(defvar gemini-companion-review-kinds
  '((ediff . gemini-companion-ediff-make)
    (diff . gemini-companion-unified-make))
  "Alist of the kinds of views and their constructors.
A constructor takes the slots of a `gemini-companion-view' as keywords.")

(cl-defstruct (gemini-companion-view (:constructor nil) (:copier nil))
  "The review of EDIT on the screen.
Each kind of view is a type that includes this one, with methods for the
generic functions `gemini-companion-view-...'.  BUFFERS are the buffers
in the windows of the view, first the one to go to, and HUNKS those that
it displays.  KIND is its key in `gemini-companion-review-kinds', CHOSEN
the kind that the user has chosen, or nil.  FRAME is its frame, and SIZE
the size of that when the view was opened; LAYOUT are the windows before
the review, WINDOWS those of BUFFERS when it was opened, and TERMINAL is
the window of the CLI beside them, or nil."
  edit buffers hunks kind chosen frame size layout windows terminal)

(cl-defgeneric gemini-companion-view-open (view keep)
  "Display VIEW on the selected frame, and set its buffers.
If KEEP is non-nil, the selected window stays visible.  If this fails,
the view is closed.")

(cl-defgeneric gemini-companion-view-hunk (view)
  "Return the hunk at point in VIEW, or nil.")

(cl-defgeneric gemini-companion-view-line (_view)
  "Return the line of the proposal at point in a view, or nil if unknown."
  nil)

(cl-defgeneric gemini-companion-view-move (view count)
  "Move forward by COUNT hunks in VIEW, or parts of a long line.")

(cl-defgeneric gemini-companion-view-go-to (view number)
  "Go to the hunk with NUMBER, from 0 on, in VIEW.")

(cl-defgeneric gemini-companion-view-edit-proposal (view)
  "Go to the proposal of VIEW to edit it, or back.")

(cl-defgeneric gemini-companion-view-fits-p (view)
  "Return non-nil if the selected frame displays VIEW well.
By default, a window must show one of its buffers."
  (seq-some #'get-buffer-window (gemini-companion-view-buffers view)))

(cl-defgeneric gemini-companion-view-compare (view)
  "Compare the original and the proposal of VIEW again.")

(cl-defgeneric gemini-companion-view-mark (view redraw)
  "Display in VIEW which hunks are excluded, and whether the review has ended.
If REDRAW is nil, the view will be compared again anyway; that must not
be done now, in the midst of an undo.  By default, compare."
  (when redraw
    (gemini-companion-view-compare view)))

(cl-defgeneric gemini-companion-view-close (view)
  "Close VIEW, but leave windows, original and proposal alone.")

(defun gemini-companion-review-main-buffer (edit)
  "Return the buffer to go to in the view of EDIT, or nil."
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
  "Return the current view; from the list, go there first, to the line at point."
  (when gemini-companion-edits-view
    (let ((edit (gemini-companion-edit-unsettled))
          (line (get-text-property (point) 'gemini-companion-line)))
      (gemini-companion-arrival-view edit)
      (gemini-companion-review--go-to edit line)))
  (gemini-companion-review-of-buffer))

(defun gemini-companion-review--go-to (edit line)
  "Go to the hunk of EDIT, which is selected, with LINE, or the last one before.
LINE is counted in the proposal, or nil."
  (when-let* ((line)
              (hunks (gemini-companion-edit-known-hunks edit))
              (view (gemini-companion-edit-view edit))
              (number (seq-count (lambda (hunk) (<= (nth 2 hunk) line)) hunks)))
    (gemini-companion-view-go-to view (max 0 (1- number)))))

(cl-defmethod gemini-companion-view-follow ((view gemini-companion-view) event)
  "Update VIEW after EVENT of its edit, or select it if that is `select'."
  (pcase event
    ('file-changed (gemini-companion-view-compare view)
                   (force-mode-line-update t))
    ;; Its keys work at once.
    ('select (setq gemini-companion-review-new-until 0)
             (gemini-companion-windows-at-once
               (gemini-companion-review--select view 'lay-out)))
    ('toggled (gemini-companion-view-mark view t))
    ('restored (gemini-companion-view-mark view nil))
    ;; Its keys then only say so, and any other key closes it.
    ('waits (dolist (buffer (gemini-companion-view-buffers view))
              (with-current-buffer buffer
                (add-hook 'pre-command-hook
                          #'gemini-companion-review--key-after-answer nil t)))
            (gemini-companion-view-mark view nil)
            (force-mode-line-update t))
    ('hide (gemini-companion-review--close view))))

;;;; Menu state

;; A user error of these functions means nil in a menu.

(defun gemini-companion-review-hunk-p ()
  "Return the hunk of a review at point, or nil.
If the texts have changed, compare again: what is typed beside a hunk,
also as a part of another line, becomes a part of it."
  (let* ((view (gemini-companion-review-of-buffer))
         (edit (gemini-companion-view-edit view)))
    (unless (or (null edit)
                (gemini-companion-edit-decision edit)
                (eq (gemini-companion-view-hunks view)
                    (gemini-companion-edit-hunks edit)))
      (gemini-companion-view-compare view))
    (gemini-companion-view-hunk view)))

(defun gemini-companion-review-excluded-p ()
  "Return non-nil if the hunk of a review at point is excluded."
  (member (gemini-companion-review-hunk-p)
          (gemini-companion-hunk-excluded
           (gemini-companion-edit-proposal-buffer
            (gemini-companion-edit-unsettled)))))

;;;; Views

(defun gemini-companion-review--show (edit &optional select)
  "Show EDIT, and return its view, or signal an error.
For SELECT, see `gemini-companion-arrival-show-function'."
  (unless gemini-companion-review-view
    (user-error "No review of %s, as `gemini-companion-review-view' is nil"
                (gemini-companion-edit-name edit)))
  (unless (eq select 'next)
    (setq gemini-companion-review--unrequested (not select)))
  ;; A new file may be empty, as many an __init__.py.
  (unless (or (gemini-companion-edit-hunks edit)
              (eq 'new (gemini-companion-edit-before edit)))
    (user-error "Proposal for %s contains no changes"
                (gemini-companion-edit-name edit)))
  (let ((view (with-selected-frame (gemini-companion-review--frame edit select)
                (gemini-companion-review--open
                 edit (gemini-companion-review--kind edit)
                 gemini-companion-review--unrequested))))
    (gemini-companion-review--focus view select)
    view))

(defun gemini-companion-review--frame (edit requested)
  "Return the frame for a review of EDIT, one that displays its CLI or its file.
Prefer the selected frame, and return it if no frame displays one, or if
REQUESTED is non-nil, unless it is only for the buffers that it displays."
  (let ((file (gemini-companion-names-buffer (gemini-companion-edit-file edit)))
        (frames (seq-filter
                 (lambda (frame)
                   ;; It is visible on some terminal, and no child frame.
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
                    ;; That of a control panel of Ediff has two lines.
                    (not (seq-every-p #'window-dedicated-p
                                      (window-list frame 'no-minibuffer))))
                  frames)
        (selected-frame))))

(defun gemini-companion-review--fits-ediff-p (edit)
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
  "Select VIEW, which was opened, if the user wants that.
A prompt or a search keeps the keys.  For SELECT, see
`gemini-companion-arrival-show-function'.  If the user has not asked for
VIEW, some of its keys do nothing for a second."
  (when (or select
            (and (gemini-companion-idle-between-commands-p)
                 (pcase gemini-companion-review-focus
                   ('terminal (eq (selected-window)
                                  (gemini-companion-windows-terminal
                                   (gemini-companion-view-edit view))))
                   (wanted wanted))))
    (unless (eq select 'select)
      (setq gemini-companion-review-new-until (1+ (float-time))))
    (gemini-companion-review--select view)))

(defun gemini-companion-review--kind (edit)
  "Return the kind of view that EDIT has on the selected frame.
That is `gemini-companion-review-view', unless Ediff does not fit."
  (if (and (assq gemini-companion-review-view gemini-companion-review-kinds)
           (or (not (eq 'ediff gemini-companion-review-view))
               (and (not (eq 'new (gemini-companion-edit-before edit)))
                    (gemini-companion-review--fits-ediff-p edit)
                    ;; Ediff shows all of a line.
                    (seq-every-p
                     (lambda (buffer)
                       (<= (nth 1 (buffer-line-statistics buffer)) 4000))
                     (list (gemini-companion-edit-original edit)
                           (gemini-companion-edit-proposal-buffer edit))))))
      gemini-companion-review-view
    'diff))

(defun gemini-companion-review--open (edit kind &optional keep chosen)
  "Open a view of EDIT of KIND on the selected frame, and return it.
If Ediff has no room or fails, it is a unified diff; if that fails,
restore the windows.  If KEEP is non-nil, the selected window stays
visible and selected.  CHOSEN is the kind that the user has chosen, or nil."
  (let ((selected (selected-window))
        (used (seq-sort-by #'window-use-time #'< (window-list)))
        view)
    (condition-case problem
        (gemini-companion-windows-try
         (lambda (layout)
           (setq view (funcall (alist-get kind gemini-companion-review-kinds)
                               :edit edit :kind kind :chosen chosen
                               :layout layout))
           (save-current-buffer
             (gemini-companion-view-open view keep))
           (gemini-companion-review--record-windows view)
           (when keep
             ;; A rule of the user may have made a tab for it.
             (unless (window-live-p selected)
               (tab-bar-switch-to-recent-tab))
             (when (window-live-p selected)
               (select-window selected)
               ;; Emacs goes to the last one if this one is deleted.
               (mapc #'window-bump-use-time (seq-filter #'window-live-p used))))
           (gemini-companion-edit-set-view edit view)))
      ((error quit)
       (when view
         (gemini-companion-view-close view))
       (when (or (eq kind 'diff) (eq 'quit (car problem)))
         (signal (car problem) (cdr problem)))
       (unless (eq (car problem) 'gemini-companion-ediff-too-small)
         (message "%s; showing a unified diff" (error-message-string problem)))
       (gemini-companion-review--open edit 'diff keep chosen)))))

(defun gemini-companion-review--record-windows (view)
  "Record the frame and windows of VIEW, and the window of the CLI there.
Follow the size of the frame."
  (let* ((buffers (gemini-companion-view-buffers view))
         (windows (seq-mapcat
                   (lambda (buffer) (get-buffer-window-list buffer nil t))
                   buffers))
         (frame (window-frame (car windows))))
    (dolist (buffer buffers)
      (with-current-buffer buffer
        (add-hook 'window-size-change-functions
                  #'gemini-companion-review--resized nil t)))
    (setf (gemini-companion-view-windows view) windows
          (gemini-companion-view-frame view) frame
          (gemini-companion-view-size view)
          (gemini-companion-review--size frame)
          (gemini-companion-view-terminal view)
          (gemini-companion-windows-terminal
           (gemini-companion-view-edit view) frame))))

(defun gemini-companion-review--size (frame)
  (cons (frame-width frame) (frame-height frame)))

(defun gemini-companion-review--select (view &optional lay-out)
  "Select VIEW on its frame, if that is visible on this terminal.
If LAY-OUT is non-nil, show it again if its windows are not as they
should be, also as Ediff if that fits now that it may take the windows
of files."
  (let ((frame (gemini-companion-view-frame view)))
    (when (and (frame-live-p frame)
               (not (eq frame (selected-frame)))
               (eq (frame-terminal frame) (frame-terminal)))
      (select-frame-set-input-focus frame))
    (when lay-out
      (mapc #'quit-restore-window
            (gemini-companion-windows-covering
             (selected-frame) (gemini-companion-view-buffers view)))
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
         (place (and (eq proposal (window-buffer)) (window-point))))
    (unless (and (eq kind (gemini-companion-view-kind view))
                 (or (null terminal) (window-live-p terminal))
                 (gemini-companion-view-fits-p view))
      (setq view (gemini-companion-review--replace view kind keep))
      ;; The next one has the same place.
      (unless keep
        (setq gemini-companion-review--unrequested nil))
      ;; What the user types next must not be taken for keys.
      (when place
        (unless (eq proposal (window-buffer))
          (with-current-buffer (window-buffer)
            (gemini-companion-view-edit-proposal view)))
        (set-window-point nil place)))
    view))

(defun gemini-companion-review--replace (view kind &optional keep)
  "Close VIEW, open one of KIND on the selected frame, and return it.
It is at the same hunk.  If that fails, open one as before; if that fails
too, the edit waits again.  If KEEP is non-nil, the selected window stays
visible and selected."
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
  (let ((edit (gemini-companion-view-edit view)))
    (with-current-buffer (if (eq edit gemini-companion-edit-here)
                             (current-buffer)
                           (car (gemini-companion-view-buffers view)))
      (if (eq (current-buffer) (gemini-companion-edit-proposal-buffer edit))
          (line-number-at-pos nil 'absolute)
        (or (gemini-companion-view-line view)
            (nth 2 (gemini-companion-review-hunk-p)))))))

(defun gemini-companion-review--resized (window)
  (run-with-idle-timer 0.3 nil #'gemini-companion-review--follow-frame
                       (buffer-local-value 'gemini-companion-edit-here
                                           (window-buffer window))))
(put 'gemini-companion-review--resized 'permanent-local-hook t)

(defun gemini-companion-review--follow-frame (edit)
  "Show the view of EDIT as its frame has room for it, between two commands."
  (when-let* ((view (and edit (gemini-companion-edit-view edit)))
              ;; One that has ended stays as it was answered.
              ((gemini-companion-edit-open-p edit))
              (frame (gemini-companion-view-frame view))
              ;; The user may have resized a window.
              ((not (equal (gemini-companion-view-size view)
                           (gemini-companion-review--size frame))))
              ;; The user may have deleted some.
              ((equal (gemini-companion-view-windows view)
                      (seq-mapcat
                       (lambda (buffer) (get-buffer-window-list buffer nil t))
                       (gemini-companion-view-buffers view)))))
    (if (not (gemini-companion-idle-between-commands-p))
        (run-with-timer 0.5 nil #'gemini-companion-review--follow-frame edit)
      (with-demoted-errors "Following the size of the frame: %S"
        (with-selected-frame frame
          (with-current-buffer (window-buffer)
            (gemini-companion-review--fit
             view (not (eq edit gemini-companion-edit-here)))))))))

;;;; Closing

(defun gemini-companion-review--close (view)
  "Close VIEW, but leave its proposal alone."
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

;;;; Keys after an answer

;; An answered review stays on the screen until the next edit takes its place.
;; Keys that were typed for it must not reach the buffer behind it: a letter would
;; become text of a file or of a prompt, and RET the answer to a question of the
;; CLI.  A key that is not for a review, such as M-x, does what it does there, as
;; otherwise what is typed after it would become such text.

(defconst gemini-companion-review--prefixes
  '( universal-argument universal-argument-more digit-argument negative-argument
     evil-use-register)
  "Commands that belong to the command of the next key.")

(defconst gemini-companion-review--for-windows
  (rx bos
      (or "other-window" "other-frame" "delete-frame" "ace-window" "bury-buffer"
          "quit-window" "previous-buffer" "next-buffer"
          (seq "delete-" (? "other-") "window" (* nonl))
          (seq "split-window-" (+ nonl))
          (seq "kill-" (or "buffer" "current-buffer" "this-buffer"
                           "buffer-and-window"))
          (seq (or "evil-window-" "windmove-" "tab-") (+ nonl)))
      eos)
  "Regexp for commands about the windows and buffers that the user sees.")

(defconst gemini-companion-review--of-evil
  '( evil-ex evil-search-forward evil-search-backward evil-ex-search-forward
     evil-ex-search-backward evil-command-window-ex evil-buffer
     evil-switch-to-windows-last-buffer evil-jump-backward evil-jump-forward
     evil-jump-to-tag evil-goto-definition evil-find-file-at-point-with-line)
  "Commands of Evil that read an argument or go elsewhere.
Others edit the text or move point, or end another state.")

(defconst gemini-companion-review--asking
  '(insert-char insert-register quoted-insert yank-pop)
  "Commands that read an argument, though they seem only to edit.
What is typed for it must not become text.")

(defconst gemini-companion-review--for-text
  (rx bos
      (or ;; They type into a terminal, or are for a review.
          "vterm-" "eat-" "term-" "ediff-" "evil-" "xterm-paste"
          ;; They copy what they cannot delete in a read-only buffer.
          (seq (or "" "backward-" "copy-")
               (or "kill" "delete") "-"
               (or "char" "line" "whole-line" "visual-line" "word" "sexp"
                   "sentence" "paragraph" "region" "rectangle")
               eos)
          ;; They only end what is in progress, or set what holds for a buffer.
          (seq (or "keyboard-quit" "keyboard-escape-quit" "ignore" "undefined"
                   "read-only-mode")
               eos)))
  "Regexp for more commands that do nothing after an answer.")

(defun gemini-companion-review--key-after-answer ()
  "Replace the command of a key in the buffer of a review that was answered.
A click, a menu and the switch to another frame do what they do, and so do
commands on windows, and global commands that a review has, too, as they
need no open one; the review is then closed after that."
  (cl-flet ((in-p (place)
              (seq-some (lambda (row) (eq this-command (cadr row)))
                        (gemini-companion-commands-in place))))
    (cond
     ((and (listp last-nonmenu-event) (not (eq this-command 'xterm-paste))))
     ((and (in-p 'global) (in-p 'view)))
     ((and this-command (symbolp this-command)
           (string-match-p gemini-companion-review--for-windows
                           (symbol-name this-command))))
     ((memq this-command gemini-companion-review--prefixes)
      (gemini-companion-arrival-ignore-key))
     ((or (seq-some #'in-p '(view unified panel))
          (eq this-command #'gemini-companion-review-accept-as-saved))
      (setq this-command #'gemini-companion-arrival-wait-on))
     (t
      (setq this-command #'gemini-companion-review-leave)))))

(defun gemini-companion-review-leave ()
  "Close this review, which was answered.
If the key of this command reads an argument or goes elsewhere, do then
what it does in the buffer that is selected without the review.  A key
for text does no more, nor do such keys that were typed with it."
  (interactive)
  (let* ((edit (gemini-companion-view-edit (gemini-companion-review-of-buffer)))
         (keys (this-single-command-keys))
         (here (and (commandp real-this-command)
                    (not (eq #'undefined real-this-command))
                    real-this-command))
         (command (or here (gemini-companion-review--evil-command keys)))
         (typed (or (gemini-companion-review--for-text-p command)
                    (and (= 1 (length keys))
                         (gemini-companion-review--text-key-p (aref keys 0))
                         (not (memq command gemini-companion-review--of-evil)))))
         ;; The second d of dd may come later.
         (seconds (if (and (not here)
                           (gemini-companion-review--evil-operator-p command))
                      0.5
                    0)))
    (when (and here typed)
      (gemini-companion-review--read-evil-argument here))
    (gemini-companion-edit-finish edit)
    (set-buffer (window-buffer))
    (unless typed
      (let ((there (key-binding keys t)))
        (when (and (commandp there)
                   (not (gemini-companion-review--for-text-p there)))
          (setq command there))))
    (cond (typed
           (gemini-companion-review--drop-text-keys seconds)
           (gemini-companion-review--report-ignored-key))
          (command (gemini-companion-review--run command)))))

(defun gemini-companion-review--text-key-p (event)
  "Return non-nil if EVENT is a key for text: a character, RET, TAB or DEL."
  (or (and (characterp event) (or (<= ?\s event) (memq event '(?\t ?\n ?\r))))
      (memq event '(return tab backtab backspace delete deletechar escape))
      (eq 'xterm-paste (car-safe event))))

(defun gemini-companion-review--for-text-p (command)
  "Return non-nil if COMMAND is for the text at point, an edit or a motion.
Such a command is marked as one that fails in a read-only buffer, or by
which a shifted key extends the region, and reads no argument."
  (and (symbolp command)
       (not (memq command gemini-companion-review--of-evil))
       (not (memq command gemini-companion-review--asking))
       (or (string-match-p gemini-companion-review--for-text
                           (symbol-name command))
           (get command 'delete-selection)
           (let ((form (cadr (interactive-form command))))
             (and (stringp form)
                  (string-match-p
                   ;; Other letters read an argument.
                   (rx bos (* (in "@*^")) (in "*^") (* (in "@*^"))
                       (* (in "Pdeimpr") (* nonl) (? "\n")) eos)
                   form))))))

(defvar gemini-companion-review--asked nil
  "Non-nil once the command of a key after an answer has asked for something.")

(defun gemini-companion-review--run (command)
  "Run COMMAND, of a key in a review that was answered, in the current buffer.
Let it change no text before it has asked for something: it was typed in
another buffer."
  (let ((buffer (current-buffer))
        (read-only buffer-read-only)
        (gemini-companion-review--asked nil))
    (setq this-command command
          real-this-command command
          prefix-arg current-prefix-arg)
    (condition-case nil
        (minibuffer-with-setup-hook
            (lambda ()
              (setq gemini-companion-review--asked t)
              (when (buffer-live-p buffer)
                (with-current-buffer buffer
                  (setq buffer-read-only read-only))))
          (if (or (not (functionp command))
                  (and (symbolp command) (get command 'disabled)))
              (let ((buffer-read-only t))
                (command-execute command))
            ;; Some that edit, such as M-%, ask nothing in a read-only buffer, and
            ;; what is typed for the question would become text.
            (let* ((arguments (advice-eval-interactive-spec
                               (cadr (interactive-form command))))
                   (buffer-read-only
                    (or read-only (not gemini-companion-review--asked))))
              (setq prefix-arg nil)
              (apply #'funcall-interactively command arguments))))
      (buffer-read-only (gemini-companion-review--report-ignored-key)))))

(defun gemini-companion-review--report-ignored-key ()
  (message "Key ignored: the review had ended, and is closed now"))

(defun gemini-companion-review--drop-text-keys (seconds)
  "Drop the keys for text that were typed ahead, up to the first other one.
Wait for each one for SECONDS."
  (let (event)
    (while (and (setq event (cond ((input-pending-p) (read-event))
                                  ((< 0 seconds) (read-event nil nil seconds))))
                (gemini-companion-review--text-key-p event)))
    (when (and event (not (gemini-companion-review--text-key-p event)))
      (push (cons t event) unread-command-events))))

;;;;; Evil

(declare-function evil-has-command-property-p "ext:evil-common")
(defvar evil-motion-state-map)
(defvar evil-normal-state-map)

(defun gemini-companion-review--evil-command (keys)
  "Return the command of KEYS in the normal state of Evil, or nil.
The diff and the panel of Ediff are in its Emacs state, where letters are
keys of the review, and others do nothing."
  (when (bound-and-true-p evil-local-mode)
    (seq-find #'commandp
              (list (lookup-key evil-normal-state-map keys)
                    (lookup-key evil-motion-state-map keys)))))

(defun gemini-companion-review--evil-operator-p (command)
  "Return non-nil if COMMAND is one of Evil after which a motion is typed."
  (and (symbolp command)
       (fboundp 'evil-has-command-property-p)
       ;; Each operator has the first property; x has the second one, too.
       (evil-has-command-property-p command :move-point)
       (not (evil-has-command-property-p command :motion))))

(defun gemini-companion-review--read-evil-argument (command)
  "Read what the user types after COMMAND if it is one of Evil.
That is the second d of dd, for example, or the x of fx."
  (when (string-prefix-p "evil-" (format "%s" command))
    (let ((this-command command))
      (condition-case nil
          (advice-eval-interactive-spec (cadr (interactive-form command)))
        ((error quit) nil)))))

;;;; Commands

(autoload 'gemini-companion-cli-show "gemini-companion-cli")

;;;###autoload
(defun gemini-companion-review (&optional list)
  "Go to the next review or question.
That is the review that is shown, laid out again if one of its windows
was deleted, or the terminal beside it; else the next proposal; else
the terminal that has waited longest for an answer.  If there is none,
show what each CLI is doing.  With prefix argument LIST, list the edits."
  (interactive "P")
  (let ((edit (or (gemini-companion-edit-shown)
                  (gemini-companion-arrival-waiting)
                  (car (gemini-companion-edits-open))))
        (waiting (seq-filter
                  (lambda (session)
                    (and (eq 'waiting (gemini-companion-session-state session))
                         (gemini-companion-session-terminal session)))
                  (gemini-companion-sessions))))
    (cond (list (gemini-companion-list))
          (edit (gemini-companion-arrival-view edit))
          (waiting
           (gemini-companion-cli-show
            (gemini-companion-session-terminal
             (car (seq-sort-by #'gemini-companion-session-state-since #'<
                               waiting)))))
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
  (let* ((edit (gemini-companion-edit-unsettled nil))
         (view (gemini-companion-edit-view edit)))
    (pcase (car (gemini-companion-edit-ask
                 edit
                 (lambda ()
                   (read-multiple-choice
                    (format "Answer for %s" (gemini-companion-edit-name edit))
                    '((?a "accept" "The CLI writes the proposal")
                      (?r "reject" "The file is not written")
                      (?k "keep reviewing" "Nothing is decided"))))))
      ;; The connection of its frame was lost: this key was typed in another one.
      ((guard (and view (null (gemini-companion-edit-view edit))))
       (message "Review was hidden; it waits again"))
      (?a (gemini-companion-edit-accept edit))
      (?r (gemini-companion-edit-reject edit)))))

(defun gemini-companion-review-accept-as-saved ()
  "Accept the current review, as :w and ZZ of Evil save a file.
With a file name, as in :w FILE, do what Evil does."
  (interactive)
  (if (bound-and-true-p evil-ex-argument)
      (call-interactively 'evil-write)
    (gemini-companion-edit-accept)))

(defun gemini-companion-review-switch-view ()
  "Switch this review between Ediff and the unified diff.
Point stays at its hunk, or goes to the one before.  Your edits and
the excluded hunks stay."
  (interactive)
  (gemini-companion-edit-unsettled)
  (gemini-companion-windows-at-once
    (let* ((view (gemini-companion-review-enter))
           (view (gemini-companion-review--replace
                  view (if (eq 'ediff (gemini-companion-view-kind view))
                           'diff
                         'ediff))))
      (setf (gemini-companion-view-chosen view)
            (gemini-companion-view-kind view)))))

(defun gemini-companion-review-toggle-hunk ()
  "Exclude the hunk at point from the proposal, or restore it.
Accepting sends the rest."
  (interactive)
  (let ((hunk (or (gemini-companion-review-hunk-p)
                  (user-error
                   "No hunk here; %s goes to the next one"
                   (gemini-companion-review--shortest-key
                    'gemini-companion-review-next-hunk)))))
    (if (gemini-companion-edit-toggle (gemini-companion-edit-current) hunk)
        (message "Hunk excluded; %s restores it"
                 (gemini-companion-review--shortest-key
                  'gemini-companion-review-toggle-hunk))
      (message "Hunk restored"))))

(defun gemini-companion-review--shortest-key (command &optional place)
  "Return the key of COMMAND in PLACE, by default `view', if it works here.
Otherwise return its other key, or nil if it has none."
  (let ((key (car (cl-find command (gemini-companion-commands-in (or place 'view))
                           :key #'cadr))))
    (if (eq command (key-binding (kbd key)))
        (propertize key 'face 'bold)
      (when (where-is-internal command nil t)
        (substitute-command-keys (format "\\[%s]" command))))))

(defun gemini-companion-review-next-hunk (&optional count)
  "Go to the next hunk of this review, or COUNT hunks on.
In the list, go to the next line of a CLI, turn, edit or hunk."
  (interactive "p")
  (gemini-companion-view-move (gemini-companion-review-of-buffer)
                              (or count 1)))

(defun gemini-companion-review-previous-hunk (&optional count)
  "Go to the previous hunk of this review, or COUNT hunks back.
In the list, go to the previous line of a CLI, turn, edit or hunk."
  (interactive "p")
  (gemini-companion-review-next-hunk (- (or count 1))))

(defun gemini-companion-review-edit ()
  "Go to the proposal to edit it, or from there back to the review."
  (interactive)
  (gemini-companion-view-edit-proposal (gemini-companion-review-enter)))

;;;; Evil

(declare-function evil-initial-state "ext:evil-core")
(declare-function evil-set-initial-state "ext:evil-core")

(defun gemini-companion-review-letters-are-keys (mode)
  "Make letters keys of MODE, a major mode, also under Evil.
A state that the user has set for MODE stays."
  (when (and (fboundp 'evil-initial-state)
             (not (evil-initial-state mode)))
    (evil-set-initial-state mode 'emacs)))

;;;; Header line

(defun gemini-companion-header-set ()
  "Set the header line of the current buffer, one of a review."
  (setq header-line-format '(:eval (gemini-companion-header--text)))
  ;; It shows the hunk at point, and whether the review is selected.
  (add-hook 'post-command-hook #'force-mode-line-update nil t)
  (add-hook 'window-selection-change-functions #'force-mode-line-update nil t))

(defun gemini-companion-header--text ()
  "Return the header line of the review of the current buffer.
It has the file, remarks on it, the amount of change, and the keys in
this buffer, as far as they fit into the window."
  (let ((edit gemini-companion-edit-here)
        (gap (if (< (window-width) 80) " " "  ")))
    (gemini-companion-name-header
     (append (gemini-companion-header--subject edit)
             (gemini-companion-header--amount edit)
             (mapcar (pcase-lambda (`(,rank ,text))
                       (list rank (string-replace "  " gap text)))
                     (gemini-companion-header--answers edit))))))

(defun gemini-companion-header--answers (edit)
  "Return the keys that answer EDIT, if it is open, parts of a header line."
  ;; While a header line is computed, its own window is selected.
  (let* ((window (old-selected-window))
         (selected (and (window-live-p window)
                        (window-buffer (or (and (window-minibuffer-p window)
                                                (get-mru-window
                                                 (window-frame window) t))
                                           window))))
         (proposal (gemini-companion-edit-proposal-buffer edit)))
    (cond
     ((and selected
           (eq edit (buffer-local-value 'gemini-companion-edit-here selected)))
      (gemini-companion-header-keys
       (if (eq (current-buffer) proposal)
           ;; The mark of removed lines is empty, so no character has it.
           (seq-some (lambda (mark)
                       (<= (overlay-start mark) (point) (overlay-end mark)))
                     (gemini-companion-hunk-marks proposal))
         (member (get-text-property (point) 'gemini-companion-hunk)
                 (gemini-companion-hunk-excluded proposal)))))
     ((gemini-companion-edit-open-p edit)
      ;; The key that works where the user is.
      (with-current-buffer (or selected (current-buffer))
        `((2 ,(substitute-command-keys
               "  \\[gemini-companion-review] to answer"))))))))

;; The ranks: 0 is a remark that guards text of the user, 2 a key and 2.5 its
;; word, 4 and 5 are more of these and the amount of change; all others are
;; omitted before the name is shortened.
(defun gemini-companion-header--subject (edit)
  "Return the file of EDIT and remarks on it, parts of a header line.
What guards text comes first, the longest last: a long name may not fit."
  (let ((name (copy-sequence (gemini-companion-edit-name edit)))
        (remarks (gemini-companion-edit-remarks edit)))
    (add-face-text-property 0 (length name) 'bold 'append name)
    (append
     (mapcar
      (pcase-lambda (`(,rank ,text)) (list rank (propertize text 'face 'bold)))
      `(,@(when (gemini-companion-revert-unsaved
                 (gemini-companion-edit-file edit))
            '((0 "unsaved") (4 " changes here") (0 "; ")))
        ,@(when (memq 'changed remarks)
            '((4 "file ") (0 "changed") (4 " since the proposal") (0 "; ")))
        ,@(when (memq 'undoes remarks)
            '((0 "undoes your edits") (4 " of the previous proposal") (0 "; ")))
        ,@(when (gemini-companion-edit-follows-p edit)
            '((0 "edits may not be written")
              (4 ": another edit of this file is not written yet") (0 "; ")))
        ,@(gemini-companion-header--of-coding edit)
        ,@(when (and (gemini-companion-edit-open-p edit)
                     (or (gemini-companion-edit-edited-p edit)
                         (gemini-companion-hunk-marks
                          (gemini-companion-edit-proposal-buffer edit))))
            (gemini-companion-header--of-edits edit))))
     (list (list nil name))
     (gemini-companion-header--remark
      0 (pcase (gemini-companion-edit-decision edit)
          ;; Its buffers stay while the user types in them.
          ('dismissed "closed")
          ((and decision (or 'accepted 'rejected)) (symbol-name decision))))
     (gemini-companion-header--remark 3 (gemini-companion-edit-objection edit))
     (gemini-companion-header--remark
      3 (unless (gemini-companion-session-connected-p
                 (gemini-companion-edit-session edit))
          "not connected"))
     (gemini-companion-header--remark
      3 (and (eq 'new (gemini-companion-edit-before edit)) "new file")))))

(defun gemini-companion-header--of-coding (edit)
  "Return remarks on what the CLI of EDIT does to a file that is not UTF-8."
  (let ((count (if (gemini-companion-edit-open-p edit)
                   (gemini-companion-edit-lost-count edit)
                 0)))
    (cond ((< 0 count)
           `((0 ,(format (ngettext "not UTF-8: the CLI replaces %d character; "
                                   "not UTF-8: the CLI replaces %d characters; "
                                   count)
                         count))))
          ((memq 'not-utf-8 (gemini-companion-edit-remarks edit))
           '((0 "not UTF-8") (4 ": the CLI writes UTF-8") (0 "; "))))))

(defun gemini-companion-header--of-edits (edit)
  "Return remarks on the user's edits of EDIT if they are lost on its CLI."
  (append
   (when (gemini-companion-edit-client-get edit :discards-edits)
     '((0 "answer here")
       (4 ": a yes in the terminal writes the CLI's own text") (0 "; ")))
   (when (gemini-companion-edit-client-get edit :writes-own-text)
     '((0 "Emacs writes your edits") (4 " over the CLI's own text") (0 "; ")))))

(defun gemini-companion-header--remark (rank text)
  "Return a list of TEXT, with RANK and in bold, or nil if it is nil."
  (when text
    `((,rank ,(concat ", " (propertize text 'face 'bold))))))

(defun gemini-companion-header--amount (edit)
  (let* ((edits (gemini-companion-edits-open))
         (hunk (get-text-property (point) 'gemini-companion-hunk))
         (number (seq-position (gemini-companion-edit-known-hunks edit) hunk)))
    (append
     (pcase (gemini-companion-edit-counts edit)
       (`(,hunks ,excluded ,added ,removed)
        `((5 ,(concat "  " (gemini-companion-hunk-lines added removed)))
          (7 ,(if number
                  (format ", hunk %d of %d" (1+ number) hunks)
                (format (ngettext ", %d hunk" ", %d hunks" hunks) hunks)))
          ,@(gemini-companion-header--remark
             4 (unless (zerop excluded) (format "%d excluded" excluded))))))
     (gemini-companion-header--remark
      6 (and (gemini-companion-edit-edited-p edit) "edited"))
     (when (cdr edits)
       `((6 ,(format ", %d of %d" (1+ (or (seq-position edits edit #'eq) 0))
                     (length edits)))))
     ;; Two CLIs may propose files of one name.
     `((,(if (cdr (gemini-companion-sessions)) 3 10)
        ,(concat ", " (gemini-companion-session-name
                       (gemini-companion-edit-session edit))))))))

(defun gemini-companion-header-keys (&optional excluded)
  "Return the keys in this buffer, of a review or the list.
After an answer, return what follows it.  The value consists of parts of
a header line.  EXCLUDED is non-nil if the hunk at point is excluded."
  (let* (;; Include the keys that a new review ignores for a moment.
         (gemini-companion-review-new-until 0)
         (edit gemini-companion-edit-here)
         (decision (and edit (gemini-companion-edit-decision edit)))
         (view (and edit (gemini-companion-edit-view edit)))
         (toggle (if excluded "restore" "exclude")))
    (cond
     ((null edit) (gemini-companion-header--keys 'list))
     ((memq decision '(accepted rejected))
      '((2 "; waiting for the next edit") (3 "; any other key closes this")))
     ((null decision)
      (gemini-companion-header--keys
       'view
       `(,@(unless (cdr (gemini-companion-edit-known-hunks edit))
             '((gemini-companion-review-next-hunk)))
         ,@(cond ((not (eq (current-buffer)
                           (gemini-companion-edit-proposal-buffer edit)))
                  `((gemini-companion-review-toggle-hunk 2 ,toggle)
                    (gemini-companion-review-edit 2 "edit")))
                 ((and view (eq 'diff (gemini-companion-view-kind view)))
                  '((gemini-companion-review-toggle-hunk)
                    (gemini-companion-review-edit 3 "back to the diff")))
                 (t
                  `((gemini-companion-review-edit)
                    (gemini-companion-review-toggle-hunk 8 ,toggle))))))))))

(defun gemini-companion-header--keys (place &optional words)
  "Return the keys in the current buffer, in PLACE, parts of a header line.
WORDS is an alist of commands and their values of `:header' here."
  (seq-mapcat
   (pcase-lambda (`(,_ ,command ,_ ,_ . ,properties))
     (pcase-let ((`(,rank ,word)
                  (alist-get command words (plist-get properties :header)))
                 (key (gemini-companion-review--shortest-key command place)))
       (when (and word key)
         (setq key (concat "  " (propertize key 'face 'bold))
               word (concat " " word))
         (if (< 2 rank)
             `((,rank ,(concat key word)))
           ;; Beside two remarks there may be no room for each word.
           `((,rank ,key) (,(+ rank 0.5) ,word))))))
   (gemini-companion-commands-in place)))

;;;; Highlighting

(defvar warning-minimum-log-level)
(declare-function evil-initialize "ext:evil-core")

(defun gemini-companion-highlight (file)
  "Highlight the current buffer like FILE, unless that is done.
No mode hook runs, and all text stays unchanged and visible.  The keys
of Evil work there, too."
  (unless font-lock-mode
    (gemini-companion-text-keeping-message
      (let ((enable-local-variables nil)
            (enable-dir-local-variables nil)
            (default-directory "/")     ; a mode may look for files there
            (inhibit-interaction t)
            ;; Some modes show messages, which clear the echo area even so.
            (inhibit-message t)
            (warning-minimum-log-level :emergency)
            (inhibit-read-only nil))
        ;; A mode that would change the text fails.
        (let ((buffer-read-only t))
          (seq-some (lambda (mode)
                      (with-demoted-errors "Mode for the review: %S"
                        (delay-mode-hooks (funcall mode))
                        t))
                    (delq nil (list (gemini-companion-highlight--mode file)
                                    #'text-mode))))
        (setq-local glyphless-char-display gemini-companion-text-glyphless)
        ;; In an internal buffer, Font Lock mode does not turn on, but its hook
        ;; would run.
        (unless (string-prefix-p " " (buffer-name))
          (with-demoted-errors "Mode for the review: %S"
            (delay-mode-hooks
              ;; Globalized minor modes use the delayed hook.
              (font-lock-mode 1)
              (when (bound-and-true-p evil-mode)
                (evil-initialize)))))))))

(defun gemini-companion-highlight--mode (file)
  "Return the major mode to highlight FILE, whose text is current.
Return nil if that mode may do more."
  (with-demoted-errors "Mode for the review: %S"
    (let ((mode (or (save-excursion
                      (goto-char (point-min))
                      (when (looking-at auto-mode-interpreter-regexp)
                        (assoc-default
                         (file-name-nondirectory (match-string 2))
                         interpreter-mode-alist
                         (lambda (regexp name)
                           (string-match-p (format "\\`\\(?:%s\\)\\'" regexp)
                                           name)))))
                    (seq-some (lambda (fold)
                                (let ((case-fold-search fold))
                                  (assoc-default file auto-mode-alist
                                                 #'string-match)))
                              (list nil auto-mode-case-fold)))))
      (setq mode (pcase (car (ensure-list mode))
                   ('c-or-c++-mode 'c++-mode)
                   ('conf-mode-maybe 'conf-mode)
                   ((or 'nxml-mode 'xml-mode) 'sgml-mode)
                   (mode mode)))
      (and (symbolp mode)
           (autoload-do-load (indirect-function mode) mode)
           ;; Other modes fold, align or hide text, start processes, or fetch
           ;; what the text names, as Org mode does.
           (seq-some (apply-partially #'provided-mode-derived-p mode)
                     '(prog-mode conf-mode sgml-mode yaml-mode))
           mode))))

(cl-defmethod gemini-companion-part-start ((_part (eql 'review)))
  "Show edits as reviews."
  (setq gemini-companion-arrival-show-function #'gemini-companion-review--show))

(provide 'gemini-companion-review)
;;; gemini-companion-review.el ends here
