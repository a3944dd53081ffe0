;;; gemini-companion-ediff.el --- A proposal as an Ediff session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The review of a proposal by `ediff-buffers'.  Buffer A is the original, read-only;
;; buffer B is the proposal, editable.  The control panel is that of Ediff, with another
;; help message, and its keys do what they do in Ediff; but those that would write or
;; change the file are refused, and those that copy or restore a difference exclude or
;; restore its hunk.  A difference of Ediff is a hunk of the edit; the two are matched
;; by their first line.  Hooks of the user for Ediff, except for its keymap, and options
;; that would hide differences or make frames do not apply to a review, nor does a
;; review affect other Ediff sessions.  This file is loaded with the first review of
;; this kind, since it loads Ediff.

;;; Code:

(require 'ediff)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-header)
(require 'gemini-companion-highlight)
(require 'gemini-companion-hunk)
(require 'gemini-companion-log)
(require 'gemini-companion-review)
(require 'gemini-companion-text)
(require 'gemini-companion-view)
(require 'gemini-companion-windows)

;;;; Keys

(defconst gemini-companion-ediff--commands
  '((gemini-companion-ediff-compare-again (ediff-update-diffs))
    (gemini-companion-ediff-exclude (ediff-copy-A-to-B))
    (gemini-companion-ediff-restore (ediff-restore-diff))
    (gemini-companion-review-quit (ediff-quit))
    (gemini-companion-ediff--not-written
     (ediff-copy-B-to-A "b")
     (nil "ra")
     (ediff-save-buffer "wa" "wb" "wd")
     (ediff-toggle-read-only "A" "B"))
    (gemini-companion-ediff--not-here
     (ediff-documentation "E")
     (ediff-inferior-compare-regions "=")
     (ediff-show-current-session-meta-buffer "M")
     (ediff-show-patch-diagnostics)
     (ediff-show-registry "R")
     (ediff-submit-report "G")
     (ediff-suspend "z")
     (ediff-swap-buffers "~")
     (ediff-toggle-ignore-case "#c")
     (ediff-toggle-multiframe)
     (ediff-toggle-narrow-region "%")
     (ediff-toggle-regexp-match "#f" "#h")
     (ediff-toggle-skip-similar "##"))
    (ediff-toggle-help
     (ediff-help-for-quick-help [mouse-2] "\C-m")))
  "Commands that replace commands of Ediff in a review, and the keys of these.
An element is a list of a command and lists of a command of Ediff and its keys;
the keys of others are in `gemini-companion-commands'.  All other commands of
Ediff only move, or change the display.")

(defvar gemini-companion-ediff-mode-map
  (let ((map (gemini-companion-review-bind (make-sparse-keymap) 'view 'panel)))
    ;; Comparing again sends nothing else.
    (define-key map "!" #'gemini-companion-ediff-compare-again)
    (dolist (prefix '("r" "w" "#"))
      (define-key map (vconcat prefix [t]) #'gemini-companion-ediff--not-here))
    (pcase-dolist (`(,ours . ,theirs) gemini-companion-ediff--commands map)
      (let ((binding (pcase ours
                       ((or 'gemini-companion-ediff-exclude
                            'gemini-companion-ediff-restore)
                        (gemini-companion-review-letter ours))
                       (_ ours))))
        (pcase-dolist (`(,command . ,keys) theirs)
          (dolist (key keys)
            (define-key map key binding))
          ;; The user may have other keys for it.
          (when command
            (define-key map (vector 'remap command) binding))))))
  "Keys of a review in the control panel of Ediff, before those of Ediff.")

(define-minor-mode gemini-companion-ediff-mode
  "Keys of a review in the control panel of Ediff.
All others are those of Ediff, which only move or change the display.
\\{gemini-companion-ediff-mode-map}"
  :interactive nil
  :lighter nil)

(defun gemini-companion-ediff--not-written ()
  "Report that a key of Ediff would write or change the file."
  (interactive)
  (user-error "%s" (substitute-command-keys
                    "The file is written when you accept: \\[gemini-companion-edit-accept]")))

(defun gemini-companion-ediff--not-here ()
  "Report that a key of Ediff has no meaning in a review."
  (interactive)
  (user-error "Not in a review; ? shows all keys"))

;;;; State

(cl-defstruct (gemini-companion-ediff-view
               (:noinline t)
               (:include gemini-companion-view)
               (:constructor gemini-companion-ediff-make)
               (:copier nil))
  "A review as an Ediff session.
Its buffers are the control panel, the proposal and the original.  All
other state of the session is in variables of Ediff that are local to the
panel.")

(defun gemini-companion-ediff--panel (view)
  "Return the control panel of VIEW, or nil if its session has not begun."
  (car (gemini-companion-view-buffers view)))

;;;; Opening

(cl-defmethod gemini-companion-view-open ((view gemini-companion-ediff-view))
  "Show VIEW as an Ediff session on the whole frame."
  (let* ((edit (gemini-companion-view-edit view))
         (original (gemini-companion-edit-texts-original edit))
         (proposal (gemini-companion-edit-proposal-buffer edit)))
    (dolist (buffer (list original proposal))
      (with-current-buffer buffer
        (widen)
        (gemini-companion-highlight (gemini-companion-edit-file edit))))
    (setf (gemini-companion-view-hunks view) (gemini-companion-edit-hunks edit))
    (with-current-buffer original
      (setq header-line-format " File on disk"))
    (with-current-buffer proposal
      (gemini-companion-header-set))
    (gemini-companion-text-keeping-message
      (gemini-companion-ediff--start view original proposal))
    ;; Windows display the first buffers in the buffer list.
    (bury-buffer ediff-registry-buffer)))

(defun gemini-companion-ediff--start (view original proposal)
  "Start the session of VIEW, with the buffers ORIGINAL and PROPOSAL."
  (let* ((change-major-mode-hook nil)
         (message-log-max nil)
         (switch-to-buffer-obey-display-actions nil)
         ;; A user option may display the panel elsewhere.
         (display-buffer-alist nil)
         (ediff-before-setup-hook nil)
         (ediff-prepare-buffer-hook nil)
         (ediff-startup-hook nil)
         (ediff-make-buffers-readonly-at-startup nil)
         (ediff-window-setup-function #'ediff-setup-windows-plain)
         (ediff-split-window-function
          (if (and (eq ediff-split-window-function #'split-window-vertically)
                   (<= (* 2 gemini-companion-windows-side-columns) (frame-width)))
              #'split-window-horizontally
            ediff-split-window-function))
         (ediff-coding-system-for-write 'utf-8-emacs-unix)
         (ediff-mode-hook
          ;; Ediff runs it in the new panel, before anything that may fail: a view that
          ;; has its buffers can be closed.
          (list (lambda ()
                  (setf (gemini-companion-view-buffers view)
                        (list (current-buffer) proposal original))
                  (gemini-companion-ediff--set-up-panel
                   (gemini-companion-view-edit view))))))
    (ediff-buffers original proposal
                   (list #'gemini-companion-ediff--go-to-first))))

(defun gemini-companion-ediff--go-to-first ()
  "Go to the first hunk of a new session.
Ediff calls this at the end of its start, in the control panel."
  (if (< 0 ediff-number-of-differences)
      (ediff-jump-to-difference 1)
    (gemini-companion-ediff--write-panel)))

(defun gemini-companion-ediff--set-up-panel (edit)
  "Set up the control panel, which is current and new, for the review of EDIT."
  (gemini-companion-edit-adopt edit)
  (gemini-companion-ediff-mode)
  (setq truncate-lines t)
  (setq-local ediff-brief-help-message-function #'gemini-companion-ediff--brief-help
              ediff-long-help-message-function #'gemini-companion-ediff--long-help
              ediff-display-help-hook nil
              ediff-before-setup-windows-hook
              (list #'gemini-companion-ediff--before-windows)
              ediff-after-setup-windows-hook
              (list #'gemini-companion-ediff--note-windows)
              ediff-select-hook (list #'gemini-companion-ediff--write-panel)
              ediff-unselect-hook nil
              ediff-grab-mouse nil
              ediff-verbose-p nil
              ;; The program and the options of the user may hide changes.
              ediff-diff-program diff-command
              ediff-ignore-similar-regions nil
              ediff-diff-options ""
              ;; The value of `gemini-companion-ediff--start', for each comparison.
              ediff-coding-system-for-write ediff-coding-system-for-write
              ;; Ediff ends the session at a line of diff that does not match, such
              ;; as a warning.
              ediff-diff-ok-lines-regexp "^"
              ;; With a null character, diff would take the texts for binary files.
              ediff-actual-diff-options "--text")
  (when (bound-and-true-p global-display-line-numbers-mode)
    ;; A global mode for line numbers would number the panel after the next command.
    (display-line-numbers-mode -1)))

(defun gemini-companion-ediff--before-windows ()
  "Prepare for Ediff, which may arrange windows.  The control panel is current.
Make Emacs give up its copy of the screen if so, see
`gemini-companion-windows-forget-screen'."
  (when (gemini-companion-edit-new-p gemini-companion-edit-here)
    ;; The proposal takes the window of the text before, which is empty; the key | would
    ;; split it.
    (setq ediff-split-window-function #'ignore))
  (unless (ediff-keep-window-config (current-buffer))
    (gemini-companion-windows-forget-screen)))

(defun gemini-companion-ediff--note-windows ()
  "Record the windows of the review, which Ediff may have arranged.
The control panel is current."
  (when-let* ((view (gemini-companion-edit-view gemini-companion-edit-here)))
    (let ((windows (gemini-companion-view-windows view)))
      (gemini-companion-review-note-windows view)
      (unless (equal windows (gemini-companion-view-windows view))
        (gemini-companion-windows-forget-screen)))))

;;;; Control panel

(defun gemini-companion-ediff--write-panel ()
  "Write the help message of Ediff, with the current hunk, into the panel.
After the answer, write what the review waits for.  The panel is the current
buffer.  Ediff calls this after it has selected another difference."
  (with-silent-modifications
    (erase-buffer)
    (ediff-set-help-message)
    (insert (if gemini-companion-review-stay-mode
                (concat " " gemini-companion-header-staying)
              ediff-help-message)))
  (goto-char (point-min)))

(defun gemini-companion-ediff--numbers ()
  "Return the number of the current hunk, of all, and whether it is excluded."
  (concat (format " %s/%d"
                  (if (ediff-valid-difference-p) (1+ ediff-current-difference) "-")
                  ediff-number-of-differences)
          (and (gemini-companion-ediff--excluded-p)
               (concat " " (propertize "excluded" 'face 'bold)))))

(defun gemini-companion-ediff--brief-help ()
  "Return the line of the control panel: the current hunk and the first keys.
A narrow frame cuts off the last ones."
  (apply #'concat (gemini-companion-ediff--numbers)
         (cl-loop for (key word) in
                  `(("C-c C-c" "accept") ("C-c C-k" "reject") ("?" "all") ("q" "ask")
                    ,@(if (gemini-companion-review-requested-p)
                          '(("a" "exclude") ("e" "edit"))
                        `((,(substitute-command-keys "\\[gemini-companion-review]")
                           "letters"))))
                  collect (concat "  " (propertize key 'face 'bold) " " word))))

(defun gemini-companion-ediff--long-help ()
  "Return the text of the control panel with all keys."
  (concat (gemini-companion-ediff--numbers)
          (if (gemini-companion-review-requested-p)
              ""
            (substitute-command-keys
             "   \\[gemini-companion-review] enables a, rb, x, e, c, W and l"))
          "
 answer    C-c C-c accept  C-c C-k reject  C-c C-r reject, say why  q ask
 hunk      a exclude  rb restore  x toggle  n p next, previous  j to number
 proposal  e edit  c comment  W patch  l overview  ! compare again
 display  | split  v V < > scroll  h highlight  @ * refine  i D info  ? less"))

(defun gemini-companion-ediff--excluded-p ()
  "Return non-nil if the current hunk is excluded.
The control panel is current."
  (when-let* (((ediff-valid-difference-p))
              ;; Finding the hunk counts the lines before it.
              (excluded (gemini-companion-hunk-excluded
                         (gemini-companion-edit-proposal-buffer
                          gemini-companion-edit-here))))
    (member (gemini-companion-ediff--hunk ediff-current-difference) excluded)))

;;;; Hunks

(defun gemini-companion-ediff--side (buffer)
  "Return the side of BUFFER in the session, `A' or `B'.
The control panel is current.  Ediff can swap the buffers."
  (if (eq buffer ediff-buffer-A) 'A 'B))

(defun gemini-companion-ediff--hunk (number)
  "Return the hunk at which the difference NUMBER of Ediff begins, or nil.
Numbers begin at 0.  The control panel is current."
  (cl-find (let ((proposal (gemini-companion-edit-proposal-buffer
                            gemini-companion-edit-here)))
             (1- (gemini-companion-text-line
                  proposal (ediff-get-diff-posn (gemini-companion-ediff--side proposal)
                                                'beg number))))
           (gemini-companion-edit-known-hunks gemini-companion-edit-here)
           :key #'gemini-companion-hunk-new))

(defun gemini-companion-ediff--difference-at (side position)
  "Return the number of the difference of Ediff at POSITION on SIDE, or nil.
SIDE is `A' or `B'.  The control panel is current."
  (seq-find (lambda (number)
              (<= (ediff-get-diff-posn side 'beg number)
                  position
                  (ediff-get-diff-posn side 'end number)))
            (number-sequence 0 (1- ediff-number-of-differences))))

(defun gemini-companion-ediff--in-panel (view function)
  "Call FUNCTION in the panel of VIEW, in its window if it has one.
Ediff works in the selected window, and may arrange others, which are restored."
  (let ((panel (gemini-companion-ediff--panel view)))
    (save-excursion
      (gemini-companion-windows-calling
       (lambda ()
         (when-let* ((window (get-buffer-window panel t)))
           (select-window window 'norecord))
         (with-current-buffer panel
           (funcall function)))))))

(cl-defmethod gemini-companion-view-compare ((view gemini-companion-ediff-view))
  "Compare again in the session of VIEW without changing windows."
  (let ((message-log-max nil))
    (gemini-companion-text-keeping-message
      (gemini-companion-ediff--in-panel
       view #'gemini-companion-ediff-compare-again))))

(cl-defmethod gemini-companion-view-mark ((view gemini-companion-ediff-view))
  "Display in VIEW whether the current hunk is excluded, and the keys."
  (with-current-buffer (gemini-companion-ediff--panel view)
    (gemini-companion-ediff--write-panel)))

(cl-defmethod gemini-companion-view-hunk ((view gemini-companion-ediff-view))
  "Return the hunk of VIEW at point; in the panel, the current hunk of Ediff."
  (let ((buffer (current-buffer))
        (position (point)))
    (with-current-buffer (gemini-companion-ediff--panel view)
      (when-let* ((number
                   (cond ((not (eq buffer (current-buffer)))
                          (gemini-companion-ediff--difference-at
                           (gemini-companion-ediff--side buffer) position))
                         ((ediff-valid-difference-p)
                          ediff-current-difference))))
        (gemini-companion-ediff--hunk number)))))

(cl-defmethod gemini-companion-view-move
  ((view gemini-companion-ediff-view) count)
  "Go forward by COUNT hunks in VIEW."
  (gemini-companion-view-go-to
   view (+ count (buffer-local-value 'ediff-current-difference
                                     (gemini-companion-ediff--panel view)))))

(cl-defmethod gemini-companion-view-go-to
  ((view gemini-companion-ediff-view) number)
  "Go to the hunk with NUMBER, from 0 on, in the session of VIEW."
  (with-current-buffer (gemini-companion-ediff--panel view)
    (unless (< -1 number ediff-number-of-differences)
      (user-error "No %s hunk" (if (< number 0) "previous" "next")))
    (save-selected-window
      ;; Ediff works in the buffer of the selected window.
      (when (window-live-p ediff-control-window)
        (select-window ediff-control-window 'norecord))
      (ediff-jump-to-difference (1+ number)))))

(cl-defmethod gemini-companion-view-edit-proposal ((view gemini-companion-ediff-view))
  "Select the window of the proposal of VIEW; if it is selected, the panel."
  (pcase-let ((`(,panel ,proposal . ,_) (gemini-companion-view-buffers view)))
    (pop-to-buffer (if (eq (current-buffer) proposal) panel proposal)
                   '(nil (category . gemini-companion-review)))))

;;;; Closing

(cl-defmethod gemini-companion-view-close ((view gemini-companion-ediff-view))
  "End the Ediff session of VIEW, which may be incomplete.
The hooks of the user do not run; many kill the compared buffers."
  (let ((panel (gemini-companion-ediff--panel view)))
    (when (buffer-live-p panel)
      (with-current-buffer panel
        ;; Nil if the texts are not compared, which Ediff does not expect at its end.
        (unless ediff-number-of-differences
          (setq ediff-number-of-differences 0))
        (let ((ediff-cleanup-hook nil)
              ;; Ediff would arrange windows, and kill its buffers.
              (ediff-quit-hook nil)
              (ediff-keep-variants t)
              ;; Ediff arranges windows, which are restored; Emacs 28 does not let it
              ;; do so in a side window.
              (ignore-window-parameters t)
              (buffers (list ediff-diff-buffer ediff-custom-diff-buffer
                             ediff-fine-diff-buffer ediff-error-buffer
                             (get-buffer ediff-tmp-buffer)
                             (get-buffer ediff-msg-buffer)
                             panel)))
          (gemini-companion-log-guarded "Ending Ediff"
            (gemini-companion-text-keeping-message
              (gemini-companion-windows-calling
               (lambda () (ediff-really-quit nil)))))
          (mapc #'gemini-companion-edit-discard buffers))))
    (unless ediff-session-registry
      (dolist (buffer (buffer-list))
        (when (and (string-prefix-p "*Ediff Registry" (buffer-name buffer))
                   (not (get-buffer-window buffer t)))
          (gemini-companion-edit-discard buffer))))))

;;;; Commands

(defun gemini-companion-ediff-exclude ()
  "Exclude the current hunk: copy the text of the file, as `a' of Ediff does.
A hunk that is excluded already stays so."
  (interactive nil gemini-companion-review-mode)
  (if (and (gemini-companion-review-hunk-here)
           (gemini-companion-ediff--excluded-p))
      (message "Hunk is excluded already; rb restores it")
    (gemini-companion-review-toggle-hunk "rb")))

(defun gemini-companion-ediff-restore ()
  "Restore the current hunk if it is excluded, as `rb' of Ediff does."
  (interactive nil gemini-companion-review-mode)
  (if (and (gemini-companion-review-hunk-here)
           (gemini-companion-ediff--excluded-p))
      (gemini-companion-review-toggle-hunk)
    (message "Hunk is not excluded")))

(defun gemini-companion-ediff-compare-again ()
  "Compare the file and the proposal again, and display the hunks.
The texts are widened."
  (interactive nil gemini-companion-review-mode)
  ;; Ediff compares the accessible text within its bounds, which would lack a new
  ;; first line of the file.
  (dolist (bounds (seq-filter #'overlayp ediff-wide-bounds))
    (with-current-buffer (overlay-buffer bounds)
      (widen)
      (move-overlay bounds (point-min) (point-max))))
  (ediff-update-diffs)
  (setf (gemini-companion-view-hunks (gemini-companion-review-of-buffer))
        (gemini-companion-edit-hunks gemini-companion-edit-here))
  (gemini-companion-ediff--write-panel))

(provide 'gemini-companion-ediff)
;;; gemini-companion-ediff.el ends here
