;;; gemini-companion-ediff.el --- A proposal as an Ediff session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The Ediff view of a review.  Buffer A is the original, read-only; buffer B is the
;; proposal, editable; the control panel is a line below them, and has the keys.  A
;; difference of Ediff is a hunk of the edit; the two are matched by their first line.
;; Other Ediff sessions of the user are not affected.  This file is loaded with the
;; first review of this kind, since it loads Ediff.

;;; Code:

(require 'ediff)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-header)
(require 'gemini-companion-highlight)
(require 'gemini-companion-hunk)
(require 'gemini-companion-label)
(require 'gemini-companion-review)
(require 'gemini-companion-text)
(require 'gemini-companion-view)
(require 'gemini-companion-windows)
(require 'map)

;;;; Keys

(defvar gemini-companion-ediff--panel-map
  (let ((map (gemini-companion-review-make-map 'panel)))
    ;; Keys of Ediff that change only the display.
    (pcase-dolist (`(,keys . ,command)
                   '((("SPC") . gemini-companion-review-next-hunk)
                     (("DEL" "S-SPC") . gemini-companion-review-previous-hunk)
                     (("j") . ediff-jump-to-difference)
                     (("C-v" "V" "M-v" "^") . ediff-scroll-vertically)
                     (("<" ">") . ediff-scroll-horizontally)
                     (("C-l") . ediff-recenter)))
      (dolist (key keys)
        (define-key map (kbd key) command)))
    map)
  "Keys in the control panel of a review.")

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

(cl-defmethod gemini-companion-view-open
  ((view gemini-companion-ediff-view) keep)
  "Show VIEW as an Ediff session; KEEP is as in the generic function.
The hooks of the user for Ediff do not run."
  (let* ((edit (gemini-companion-view-edit view))
         (original (gemini-companion-edit-texts-original edit))
         (proposal (gemini-companion-edit-proposal-buffer edit)))
    (select-window
     (gemini-companion-windows-make-for-ediff original edit keep))
    (dolist (buffer (list original proposal))
      (with-current-buffer buffer
        (widen)
        (gemini-companion-highlight (gemini-companion-edit-file edit))))
    (setf (gemini-companion-view-hunks view) (gemini-companion-edit-hunks edit))
    (gemini-companion-text-keeping-message
      (gemini-companion-ediff--start view original proposal))
    ;; Windows display the first buffers in the buffer list.
    (bury-buffer ediff-registry-buffer)))

(defun gemini-companion-ediff--start (view original proposal)
  "Start the session of VIEW, with the buffers ORIGINAL and PROPOSAL.
Do so in ORIGINAL: in another buffer, `let' might bind its local values of the
variables of Ediff instead of the default values."
  (let ((change-major-mode-hook nil)
        (ediff-before-setup-hook nil)
        (ediff-mode-hook
         ;; Ediff runs it in the new panel, before anything that may fail: a view
         ;; that has its buffers can be closed.
         (list (lambda ()
                 (setf (gemini-companion-view-buffers view)
                       (list (current-buffer) proposal original))
                 (gemini-companion-ediff--set-up-panel
                  (gemini-companion-view-edit view))
                 (mapc #'gemini-companion-ediff--set-up-text
                       (list original proposal))
                 (with-current-buffer original
                   (setq header-line-format
                         " File on disk"))
                 (with-current-buffer proposal
                   (gemini-companion-header-set)))))
        (ediff-prepare-buffer-hook nil)
        (ediff-startup-hook nil)
        (ediff-make-buffers-readonly-at-startup nil)
        (ediff-coding-system-for-write 'utf-8-emacs-unix))
    (ediff-buffers original proposal
                   (list #'gemini-companion-ediff--go-to-first))))

(defun gemini-companion-ediff--go-to-first ()
  "Go to the first hunk of a new session.
Ediff calls this at the end of its start, in the control panel."
  (when (< 0 ediff-number-of-differences)
    (ediff-jump-to-difference 1)))

(defun gemini-companion-ediff--set-up-text (buffer)
  "Set up BUFFER, one of the texts, until `gemini-companion-ediff--leave-text'."
  (with-current-buffer buffer
    (setq-local face-remapping-alist
                (append '(;; Changed words are bold, as in a unified diff.
                          (ediff-fine-diff-A bold ediff-fine-diff-A)
                          (ediff-fine-diff-B bold ediff-fine-diff-B)
                          ;; The faces of Ediff are unreadable in some themes.
                          (ediff-even-diff-A gemini-companion-other-hunk)
                          (ediff-even-diff-B gemini-companion-other-hunk)
                          (ediff-odd-diff-A gemini-companion-other-hunk)
                          (ediff-odd-diff-B gemini-companion-other-hunk))
                        face-remapping-alist)
                ;; Leave a column for the signs of the current hunk.
                line-prefix " "
                wrap-prefix " ")))

(defun gemini-companion-ediff--set-up-panel (edit)
  "Set up the control panel, which is current and new, for the review of EDIT."
  (gemini-companion-edit-adopt edit)
  (setq-local ediff-mode-map gemini-companion-ediff--panel-map
              ediff-window-setup-function #'ediff-setup-windows-plain
              ediff-before-setup-windows-hook
              (list #'gemini-companion-ediff--lay-out)
              ediff-after-setup-windows-hook nil
              ediff-select-hook (list #'gemini-companion-ediff--show-current)
              ediff-unselect-hook nil
              vertical-scroll-bar nil
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
  (dolist (hook '(window-selection-change-functions
                  window-size-change-functions))
    (add-hook hook #'gemini-companion-ediff--window-changed nil t))
  (when (bound-and-true-p global-display-line-numbers-mode)
    ;; A global mode for line numbers would number the panel after the next command.
    (display-line-numbers-mode -1)))

(defun gemini-companion-ediff--window-changed (window)
  "Redraw the panel in WINDOW after it was selected, left or resized.
Emacs calls this at redisplay, in any buffer."
  ;; The keys are in the header line while the review is selected.
  (force-mode-line-update t)
  (with-current-buffer (window-buffer window)
    (gemini-companion-ediff--write-panel)))

;;;; Windows

(defun gemini-companion-ediff--lay-out ()
  "Lay out the session of the control panel, the current buffer.
Ediff calls this before it lays out the frame, which is then unnecessary.  If
all windows exist, do nothing."
  (unless (ediff-keep-window-config (current-buffer))
    (gemini-companion-windows-at-once
      (let ((panel (current-buffer))
            (switch-to-buffer-obey-display-actions nil)
            (ediff-use-long-help-message nil))
        (gemini-companion-windows-lay-out-ediff
         (gemini-companion-ediff--windows) ediff-buffer-A ediff-buffer-B
         (lambda (original proposal)
           (with-current-buffer panel
             (setq ediff-window-A original
                   ediff-window-B proposal))
           (ediff-setup-control-buffer panel)))
        (gemini-companion-ediff--write-panel)))))

(defun gemini-companion-ediff--windows ()
  "Return the windows of the session on this frame.
The control panel is current."
  (seq-mapcat (lambda (buffer)
                (get-buffer-window-list buffer nil (selected-frame)))
              (list ediff-buffer-A ediff-buffer-B (current-buffer))))

(cl-defmethod gemini-companion-view-fits-p ((view gemini-companion-ediff-view))
  "Return non-nil if all windows of the session of VIEW exist and fit."
  (with-current-buffer (gemini-companion-ediff--panel view)
    (and (seq-set-equal-p (list ediff-window-A ediff-window-B
                                ediff-control-window)
                          (gemini-companion-ediff--windows)
                          #'eq)
         (<= gemini-companion-windows-ediff-columns
             (window-total-width ediff-control-window))
         (<= gemini-companion-windows-ediff-lines
             (- (nth 3 (window-edges ediff-control-window))
                (nth 1 (window-edges ediff-window-A)))))))

;;;; Control panel

(defun gemini-companion-ediff--write-panel ()
  "Write the current hunk and the keys into the control panel.
The panel is the current buffer; do nothing if no window displays it.  While
the panel is not selected, its keys are dimmed, since they do not work."
  (when-let* ((window (and gemini-companion-edit-here (get-buffer-window))))
    (let* ((excluded (gemini-companion-ediff--excluded-p))
           (hunk (concat (format " Hunk %d of %d"
                                 (1+ ediff-current-difference)
                                 ediff-number-of-differences)
                         (when excluded
                           (concat ", " (propertize "excluded" 'face 'bold))))))
      (with-silent-modifications
        (erase-buffer)
        (insert (gemini-companion-label-fit
                 (cons hunk (gemini-companion-header-keys excluded))
                 (1- (window-width window))))
        (unless (eq window (selected-window))
          (add-face-text-property (point-min) (point-max) 'shadow)))
      (goto-char (point-min)))))

;;;; Current hunk

(defun gemini-companion-ediff--show-current ()
  "Highlight the current hunk, and display whether it is excluded.
The control panel is the current buffer.  Ediff calls this after it has
selected another difference."
  (gemini-companion-ediff--mark-side
   'A ediff-current-diff-overlay-A "-" 'ediff-current-diff-A)
  (gemini-companion-ediff--mark-side
   'B ediff-current-diff-overlay-B "+" 'ediff-current-diff-B)
  (gemini-companion-ediff--write-panel))

(defun gemini-companion-ediff--mark-side (side overlay sign face)
  "Mark the current difference on SIDE, `A' or `B', with OVERLAY and SIGN.
The lines get signs, as in a unified diff: some users cannot tell the
colors of hunks apart.  The sign has FACE; that of an excluded hunk is x.
Without lines on SIDE, display an empty line, where Ediff would color the
next line.  If Ediff uses no colors, OVERLAY is nil or in no buffer."
  (when (and overlay (overlay-buffer overlay))
    (let ((valid (ediff-valid-difference-p))
          (excluded (gemini-companion-ediff--excluded-p)))
      (when valid
        (move-overlay overlay (ediff-get-diff-posn side 'beg)
                      (ediff-get-diff-posn side 'end)))
      (overlay-put overlay 'before-string
                   (and valid
                        (= (overlay-start overlay) (overlay-end overlay))
                        ;; The mark of an excluded hunk displays a line already.
                        (not excluded)
                        (propertize "\n" 'face 'gemini-companion-other-hunk)))
      (overlay-put overlay 'line-prefix
                   (propertize (if excluded "x" sign) 'face (list 'bold face)))
      (overlay-put overlay 'wrap-prefix (propertize " " 'face face)))))

(defun gemini-companion-ediff--excluded-p ()
  "Return non-nil if the current hunk is excluded.
The control panel is current."
  (when-let* (((ediff-valid-difference-p))
              ;; Finding the hunk counts the lines before it.
              (excluded (gemini-companion-hunk-excluded ediff-buffer-B)))
    (member (gemini-companion-ediff--hunk ediff-current-difference) excluded)))

(defun gemini-companion-ediff--hunk (number)
  "Return the hunk at which the difference NUMBER of Ediff begins, or nil.
Numbers begin at 0.  The control panel is current."
  (cl-find (gemini-companion-text-line ediff-buffer-B
                                       (ediff-get-diff-posn 'B 'beg number))
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

;;;; Hunks

(cl-defmethod gemini-companion-view-compare ((view gemini-companion-ediff-view))
  "Compare again in the session of VIEW without changing windows."
  (let ((message-log-max nil))
    (gemini-companion-text-keeping-message
      ;; Ediff works in the selected window, and selects it again.
      (gemini-companion-windows-call-in-panel
       (gemini-companion-ediff--panel view)
       (gemini-companion-view-edit view)
       #'gemini-companion-ediff-compare-again))))

(cl-defmethod gemini-companion-view-mark
  ((view gemini-companion-ediff-view) _redraw)
  "Display in VIEW whether the current hunk is excluded."
  (with-current-buffer (gemini-companion-ediff--panel view)
    (gemini-companion-ediff--show-current)))

(cl-defmethod gemini-companion-view-hunk ((view gemini-companion-ediff-view))
  "Return the hunk of VIEW at point; in the panel, the current hunk of Ediff."
  (let ((buffer (current-buffer))
        (position (point)))
    (with-current-buffer (gemini-companion-ediff--panel view)
      (when-let* ((number
                   (cond ((not (eq buffer (current-buffer)))
                          (gemini-companion-ediff--difference-at
                           (if (eq buffer ediff-buffer-A) 'A 'B) position))
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
    (if-let* ((window (get-buffer-window
                       (if (eq (current-buffer) proposal) panel proposal))))
        (select-window window)
      (gemini-companion-windows-at-once
        (pop-to-buffer proposal '(nil (category . gemini-companion-review)))))))

;;;; Closing

(cl-defmethod gemini-companion-view-close ((view gemini-companion-ediff-view))
  "End the Ediff session of VIEW, which may be incomplete.
Do not call `ediff-quit': it would rearrange the windows, and run hooks of the
user, many of which kill the compared buffers."
  (let ((panel (gemini-companion-ediff--panel view)))
    (when (buffer-live-p panel)
      (with-current-buffer panel
        (ediff-delete-temp-files)
        (gemini-companion-ediff--delete-overlays)
        (dolist (text (list ediff-buffer-A ediff-buffer-B))
          (when (buffer-live-p text)
            (gemini-companion-ediff--leave-text text panel)))
        (mapc #'gemini-companion-edit-discard
              (list ediff-diff-buffer ediff-custom-diff-buffer
                    ediff-fine-diff-buffer ediff-error-buffer
                    (get-buffer ediff-tmp-buffer) (get-buffer ediff-msg-buffer)
                    panel)))
      (gemini-companion-ediff--unregister panel))))

(defun gemini-companion-ediff--delete-overlays ()
  "Delete the overlays of the session from both texts.
The control panel is current."
  (ediff-clear-diff-vector 'ediff-difference-vector-A 'fine-diffs-also)
  (ediff-clear-diff-vector 'ediff-difference-vector-B 'fine-diffs-also)
  (mapc #'delete-overlay
        (seq-filter #'overlayp `(,ediff-current-diff-overlay-A
                                 ,ediff-current-diff-overlay-B
                                 ,@ediff-wide-bounds))))

(defun gemini-companion-ediff--leave-text (buffer panel)
  "Undo in BUFFER the settings for the session of PANEL."
  (with-current-buffer buffer
    (setq ediff-this-buffer-ediff-sessions
          (delq panel ediff-this-buffer-ediff-sessions))
    (mapc #'kill-local-variable
          '( mode-line-buffer-identification mode-line-format
             face-remapping-alist line-prefix wrap-prefix))))

(defun gemini-companion-ediff--unregister (panel)
  "Remove the session of PANEL from the registry of Ediff.
Kill the buffer of the registry unless it is displayed or has other sessions."
  (setq ediff-session-registry (delq panel ediff-session-registry))
  (if (or ediff-session-registry
          (get-buffer-window "*Ediff Registry*" t))
      (ediff-update-registry)
    (gemini-companion-edit-discard (get-buffer "*Ediff Registry*"))))

;;;; Commands

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
  (gemini-companion-ediff--show-current))

(provide 'gemini-companion-ediff)
;;; gemini-companion-ediff.el ends here
