;;; gemini-companion-ediff.el --- A proposal as an Ediff session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The review of a proposal by `ediff-buffers'.  Buffer A is the original, read-only;
;; buffer B is the proposal, editable; the control panel has the keys of a review.  A
;; difference of Ediff is a hunk of the edit; the two are matched by their first line.
;; Hooks and options of the user for Ediff do not apply to a review, nor does a review
;; affect other Ediff sessions.  This file is loaded with the first review of this
;; kind, since it loads Ediff.

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
         (ediff-use-long-help-message nil)
         (ediff-window-setup-function #'ediff-setup-windows-plain)
         (ediff-split-window-function
          (if (< (frame-width) (* 2 gemini-companion-windows-side-columns))
              #'split-window-vertically
            #'split-window-horizontally))
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
  (setq truncate-lines t)
  (setq-local ediff-mode-map gemini-companion-ediff--panel-map
              ediff-before-setup-windows-hook nil
              ediff-after-setup-windows-hook nil
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

;;;; Control panel

(defun gemini-companion-ediff--write-panel ()
  "Write the current hunk and the keys into the control panel.
The panel is the current buffer.  Ediff calls this after it has selected another
difference."
  (with-silent-modifications
    (erase-buffer)
    (apply #'insert
           (format " Hunk %d of %d"
                   (1+ ediff-current-difference) ediff-number-of-differences)
           (if (gemini-companion-ediff--excluded-p)
               (concat ", " (propertize "excluded" 'face 'bold))
             "")
           (gemini-companion-header-keys 'view)))
  (goto-char (point-min)))

(defun gemini-companion-ediff--excluded-p ()
  "Return non-nil if the current hunk is excluded.
The control panel is current."
  (when-let* (((ediff-valid-difference-p))
              ;; Finding the hunk counts the lines before it.
              (excluded (gemini-companion-hunk-excluded ediff-buffer-B)))
    (member (gemini-companion-ediff--hunk ediff-current-difference) excluded)))

;;;; Hunks

(defun gemini-companion-ediff--hunk (number)
  "Return the hunk at which the difference NUMBER of Ediff begins, or nil.
Numbers begin at 0.  The control panel is current."
  (cl-find (1- (gemini-companion-text-line ediff-buffer-B
                                           (ediff-get-diff-posn 'B 'beg number)))
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

(cl-defmethod gemini-companion-view-mark ((view gemini-companion-ediff-view) _redraw)
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
    (pop-to-buffer (if (eq (current-buffer) proposal) panel proposal)
                   '(nil (category . gemini-companion-review)))))

;;;; Closing

(cl-defmethod gemini-companion-view-close ((view gemini-companion-ediff-view))
  "End the Ediff session of VIEW, which may be incomplete.
The hooks of the user do not run; many kill the compared buffers."
  (let ((panel (gemini-companion-ediff--panel view)))
    (when (buffer-live-p panel)
      (with-current-buffer panel
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
