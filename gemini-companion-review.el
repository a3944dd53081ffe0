;;; gemini-companion-review.el --- A review on the screen  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The review of an edit on the screen: its view, how to switch to another one, the
;; keys, the header line with the file, remarks on it, the amount of change and the
;; keys as far as they fit, and the colors of the texts, by the major mode of the
;; file without its hooks.  The two views are loaded when used.

;;; Code:

(require 'gemini-companion-arrival)
(require 'gemini-companion-commands)
(require 'gemini-companion-edit)
(require 'gemini-companion-header)
(require 'gemini-companion-hunk)
(require 'gemini-companion-idle)
(require 'gemini-companion-names)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-view)
(require 'gemini-companion-windows)
(require 'map)

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

(defun gemini-companion-review--key (command)
  "Return a binding of COMMAND that does nothing just after a review appears."
  (list 'menu-item "" command
        :filter (lambda (command)
                  (if (< 0 (- gemini-companion-view-new-until (float-time)) 1)
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
              (number (seq-count (lambda (hunk)
                                   (<= (gemini-companion-hunk-new hunk) line))
                                 hunks)))
    (gemini-companion-view-go-to view (max 0 (1- number)))))

(cl-defmethod gemini-companion-view-follow ((view gemini-companion-view) event)
  "Update VIEW after EVENT of its edit, or select it if that is `select'."
  (pcase event
    ('file-changed (gemini-companion-view-compare view)
                   (force-mode-line-update t))
    ;; The keys of a review that is selected work at once.
    ('select (setq gemini-companion-view-new-until 0)
             (gemini-companion-windows-at-once
               (gemini-companion-review--select view 'lay-out)))
    ('toggled (gemini-companion-view-mark view t))
    ('restored (gemini-companion-view-mark view nil))
    ;; The keys of a review that waits only say so, and any other key closes it.
    ('waits (dolist (buffer (gemini-companion-view-buffers view))
              (with-current-buffer buffer
                (add-hook 'pre-command-hook
                          #'gemini-companion-review--key-after-answer nil t)))
            (gemini-companion-view-mark view nil)
            (force-mode-line-update t))
    ('hide (gemini-companion-review--close view))))

;;;; Menu state

;; A user error of these functions means nil in a menu.
(defun gemini-companion-review-hunk-at-point ()
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
  (member (gemini-companion-review-hunk-at-point)
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
                   ;; The frame is visible on some terminal, and no child frame.
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
      (setq gemini-companion-view-new-until (1+ (float-time))))
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
  "Return the number of the line of the proposal where the user is in VIEW.
It is nil where no line and no hunk is."
  (let ((edit (gemini-companion-view-edit view)))
    (with-current-buffer (if (eq edit gemini-companion-edit-here)
                             (current-buffer)
                           (car (gemini-companion-view-buffers view)))
      (if (eq (current-buffer) (gemini-companion-edit-proposal-buffer edit))
          (line-number-at-pos nil 'absolute)
        (or (gemini-companion-view-line view)
            (when-let* ((hunk (gemini-companion-review-hunk-at-point)))
              (gemini-companion-hunk-new hunk)))))))

(defun gemini-companion-review--resized (window)
  (run-with-idle-timer 0.3 nil #'gemini-companion-review--follow-frame
                       (buffer-local-value 'gemini-companion-edit-here
                                           (window-buffer window))))
(put 'gemini-companion-review--resized 'permanent-local-hook t)

(defun gemini-companion-review--follow-frame (edit)
  "Show the view of EDIT as its frame has room for it, between two commands."
  (when-let* ((view (and edit (gemini-companion-edit-view edit)))
              ;; A review that has ended stays as it was answered.
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
          ;; Commands that kill copy what they cannot delete in a read-only buffer.
          (seq (or "" "backward-" "copy-")
               (or "kill" "delete") "-"
               (or "char" "line" "whole-line" "visual-line" "word" "sexp"
                   "sentence" "paragraph" "region" "rectangle")
               eos)
          ;; Commands that only end what is in progress, or set a mode of the
          ;; buffer.
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
            ;; A command that edits, such as M-%, asks nothing in a read-only
            ;; buffer, and
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

(autoload 'gemini-companion-terminal-show "gemini-companion-terminal")

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
           (gemini-companion-terminal-show
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
  (let ((hunk (or (gemini-companion-review-hunk-at-point)
                  (user-error
                   "No hunk here; %s goes to the next one"
                   (gemini-companion-header-shortest-key
                    'gemini-companion-review-next-hunk)))))
    (if (gemini-companion-edit-toggle (gemini-companion-edit-current) hunk)
        (message "Hunk excluded; %s restores it"
                 (gemini-companion-header-shortest-key
                  'gemini-companion-review-toggle-hunk))
      (message "Hunk restored"))))

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

;;;; Highlighting

(cl-defmethod gemini-companion-part-start ((_part (eql 'review)))
  "Show edits as reviews."
  (setq gemini-companion-arrival-show-function #'gemini-companion-review--show))

(provide 'gemini-companion-review)
;;; gemini-companion-review.el ends here
