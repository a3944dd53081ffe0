;;; gemini-companion-ediff.el --- A proposal as an Ediff session  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The Ediff view of a review.  A is the original, read-only; B is the proposal,
;; editable.  The session does not affect other Ediff sessions of the user.
;; Loaded with the first review of this kind, because it loads Ediff.

;;; Code:

(require 'ediff)
(require 'gemini-companion-edit)
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
    ;; Ediff's own keys that only change the display.
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

;;;; Current hunk

(defun gemini-companion-ediff--selected ()
  "Display which hunk is current, and if it is excluded.
The control panel is current.  The lines get signs, as in a unified diff:
some users cannot tell the colors of hunks apart.  On a side without
lines, display an empty line instead of Ediff's color on the next one."
  (let ((valid (ediff-valid-difference-p))
        (excluded (gemini-companion-ediff--excluded-p)))
    (pcase-dolist (`(,side ,overlay ,sign ,face)
                   `((A ,ediff-current-diff-overlay-A "-" ediff-current-diff-A)
                     (B ,ediff-current-diff-overlay-B "+" ediff-current-diff-B)))
      (when (and overlay (overlay-buffer overlay))
        (when valid
          (move-overlay overlay (ediff-get-diff-posn side 'beg)
                        (ediff-get-diff-posn side 'end)))
        (overlay-put overlay 'before-string
                     (and valid
                          (= (overlay-start overlay) (overlay-end overlay))
                          ;; An excluded hunk without lines has a line of its own
                          ;; already.
                          (not excluded)
                          (propertize "\n" 'face 'gemini-companion-other-hunk)))
        (overlay-put overlay 'line-prefix
                     (propertize (if excluded "x" sign)
                                 'face (list 'bold face)))
        (overlay-put overlay 'wrap-prefix (propertize " " 'face face)))))
  (gemini-companion-ediff--write-panel))

;;;; View

(cl-defstruct (gemini-companion-ediff-view
               (:include gemini-companion-view)
               (:constructor gemini-companion-ediff-make)
               (:copier nil))
  "A review as an Ediff session.
Its buffers are the control panel, the proposal and the original.")

(defun gemini-companion-ediff--panel (view)
  (car (gemini-companion-view-buffers view)))

(cl-defmethod gemini-companion-view-open
  ((view gemini-companion-ediff-view) keep)
  "Show VIEW as an Ediff session; KEEP is as in the generic function.
The user's own hooks for Ediff do not run."
  (let* ((edit (gemini-companion-view-edit view))
         (original (gemini-companion-edit-original edit))
         (proposal (gemini-companion-edit-proposal-buffer edit)))
    (select-window
     (gemini-companion-windows-make-for-ediff original edit keep))
    (dolist (buffer (list original proposal))
      (with-current-buffer buffer
        (widen)
        (gemini-companion-highlight (gemini-companion-edit-file edit))))
    (setf (gemini-companion-view-hunks view) (gemini-companion-edit-hunks edit))
    ;; The original is current now: other buffers may have local values,
    ;; which would be bound instead of the default ones.
    (let ((change-major-mode-hook nil)
          (ediff-before-setup-hook nil)
          (ediff-mode-hook
           (list (lambda ()
                   (setf (gemini-companion-view-buffers view)
                         (list (current-buffer) proposal original))
                   (gemini-companion-ediff--set-up edit)
                   (gemini-companion-ediff--set-up-texts original proposal))))
          (ediff-prepare-buffer-hook nil)
          (ediff-startup-hook nil)
          (ediff-make-buffers-readonly-at-startup nil)
          (ediff-coding-system-for-write 'utf-8-emacs-unix))
      (gemini-companion-text-keeping-message
        (ediff-buffers original proposal
                       (list (lambda ()
                               (when (< 0 ediff-number-of-differences)
                                 (ediff-jump-to-difference 1)))))))
    ;; Windows display the first buffers in the buffer list.
    (bury-buffer ediff-registry-buffer)))

(defun gemini-companion-ediff--set-up-texts (original proposal)
  "Set up the buffers ORIGINAL and PROPOSAL until the view is closed."
  (dolist (buffer (list original proposal))
    (with-current-buffer buffer
      (setq-local face-remapping-alist
                  (append '(;; Changed words are bold, as in a unified diff.
                            (ediff-fine-diff-A bold ediff-fine-diff-A)
                            (ediff-fine-diff-B bold ediff-fine-diff-B)
                            ;; Ediff's own are unreadable in some themes.
                            (ediff-even-diff-A gemini-companion-other-hunk)
                            (ediff-even-diff-B gemini-companion-other-hunk)
                            (ediff-odd-diff-A gemini-companion-other-hunk)
                            (ediff-odd-diff-B gemini-companion-other-hunk))
                          face-remapping-alist)
                  ;; Place for the signs of the current hunk.
                  line-prefix " "
                  wrap-prefix " ")))
  (with-current-buffer original
    (setq header-line-format " File on disk"))
  (with-current-buffer proposal
    (gemini-companion-header-set)))

(defun gemini-companion-ediff--set-up (edit)
  "Set up the control panel, which is current and new, for the review of EDIT."
  (gemini-companion-edit-adopt edit)
  (setq-local ediff-mode-map gemini-companion-ediff--panel-map
              ediff-window-setup-function #'ediff-setup-windows-plain
              ediff-before-setup-windows-hook
              (list #'gemini-companion-ediff--lay-out)
              ediff-after-setup-windows-hook nil
              ediff-select-hook (list #'gemini-companion-ediff--selected)
              ediff-unselect-hook nil
              vertical-scroll-bar nil
              ediff-grab-mouse nil
              ediff-verbose-p nil
              ;; The user's own program and options may hide changes.
              ediff-diff-program diff-command
              ;; As when the session starts.
              ediff-coding-system-for-write ediff-coding-system-for-write
              ediff-ignore-similar-regions nil
              ediff-diff-options ""
              ediff-diff-ok-lines-regexp "^" ; else it may kill this
              ;; A null character would make the texts binary.
              ediff-actual-diff-options "--text")
  (dolist (hook '(window-selection-change-functions
                  window-size-change-functions))
    (add-hook hook
              (lambda (window)
                ;; The keys are in the header line while the review is selected.
                (force-mode-line-update t)
                ;; Any buffer may be current.
                (with-current-buffer (window-buffer window)
                  (gemini-companion-ediff--write-panel)))
              nil t))
  (when (bound-and-true-p global-display-line-numbers-mode)
    ;; A global mode for line numbers would number the panel after the next command.
    (display-line-numbers-mode -1)))

;;;; Windows

(defun gemini-companion-ediff--lay-out ()
  "Lay out the session of the control panel, which is current.
Ediff calls this before it would lay out the whole frame itself, which it
then finds done.  If all windows exist, do nothing."
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
  "Return the windows of the control panel's session on this frame.
The control panel is current."
  (seq-mapcat (lambda (buffer)
                (get-buffer-window-list buffer nil (selected-frame)))
              (list ediff-buffer-A ediff-buffer-B (current-buffer))))

(cl-defmethod gemini-companion-view-fits-p ((view gemini-companion-ediff-view))
  "Return non-nil if the windows of VIEW's session are all there and fit."
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
It is current.  Where its keys do not work, they are dimmed."
  (when-let* ((window (and gemini-companion-edit-here (get-buffer-window))))
    (let ((excluded (gemini-companion-ediff--excluded-p)))
      (with-silent-modifications
        (erase-buffer)
        (insert (gemini-companion-label-fit
                 (cons (concat (format " Hunk %d of %d"
                                       (1+ ediff-current-difference)
                                       ediff-number-of-differences)
                               (and excluded
                                    (concat ", " (propertize "excluded"
                                                             'face 'bold))))
                       (gemini-companion-header-keys excluded))
                 (1- (window-width window))))
        (unless (eq window (selected-window))
          (add-face-text-property (point-min) (point-max) 'shadow)))
      (goto-char (point-min)))))

(defun gemini-companion-ediff--excluded-p ()
  "Return non-nil if the current hunk is excluded.
The control panel is current."
  (when (ediff-valid-difference-p)
    (member (gemini-companion-ediff--hunk ediff-current-difference)
            (gemini-companion-hunk-excluded ediff-buffer-B))))

;;;; Hunks

(defun gemini-companion-ediff-compare-again ()
  "Compare the file and the proposal again, and display the hunks.
The texts are widened."
  (interactive)
  ;; Ediff compares and shows what is accessible, and a new first line of the file
  ;; is before its bounds.
  (dolist (bounds (seq-filter #'overlayp ediff-wide-bounds))
    (with-current-buffer (overlay-buffer bounds)
      (widen)
      (move-overlay bounds (point-min) (point-max))))
  (ediff-update-diffs)
  (setf (gemini-companion-view-hunks (gemini-companion-review-of-buffer))
        (gemini-companion-edit-hunks gemini-companion-edit-here))
  (gemini-companion-ediff--selected))

(cl-defmethod gemini-companion-view-compare ((view gemini-companion-ediff-view))
  "Compare again in the session of VIEW, and leave the windows alone."
  (let ((message-log-max nil))
    (gemini-companion-text-keeping-message
      ;; Ediff goes on in the window that is selected, and selects it again.
      (gemini-companion-windows-call-in-panel
       (gemini-companion-ediff--panel view)
       (gemini-companion-view-edit view)
       #'gemini-companion-ediff-compare-again))))

(cl-defmethod gemini-companion-view-mark
  ((view gemini-companion-ediff-view) _redraw)
  "Display in VIEW whether the current hunk is excluded."
  (with-current-buffer (gemini-companion-ediff--panel view)
    (gemini-companion-ediff--selected)))

(cl-defmethod gemini-companion-view-hunk ((view gemini-companion-ediff-view))
  "Return the hunk of VIEW at point, in the panel the current one of Ediff."
  (let ((panel (gemini-companion-ediff--panel view))
        (buffer (current-buffer))
        (position (point)))
    (with-current-buffer panel
      (when-let* ((side (if (eq buffer ediff-buffer-A) 'A 'B))
                  (n (if (eq buffer panel)
                         (and (ediff-valid-difference-p)
                              ediff-current-difference)
                       (seq-find
                        (lambda (n)
                          (<= (ediff-get-diff-posn side 'beg n)
                              position
                              (ediff-get-diff-posn side 'end n)))
                        (number-sequence 0 (1- ediff-number-of-differences))))))
        (gemini-companion-ediff--hunk n)))))

(defun gemini-companion-ediff--hunk (n)
  "Return the hunk where Ediff's difference N begins, or nil.
The control panel is current."
  (cl-find (gemini-companion-text-line ediff-buffer-B
                                       (ediff-get-diff-posn 'B 'beg n))
           (gemini-companion-edit-known-hunks gemini-companion-edit-here)
           :key #'gemini-companion-hunk-new))

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
      ;; Ediff goes on in the buffer of the selected window.
      (when (window-live-p ediff-control-window)
        (select-window ediff-control-window 'norecord))
      (ediff-jump-to-difference (1+ number)))))

(cl-defmethod gemini-companion-view-edit-proposal ((view gemini-companion-ediff-view))
  "Select the window of the proposal of VIEW, or from there the panel."
  (pcase-let ((`(,panel ,proposal . ,_) (gemini-companion-view-buffers view)))
    (if-let* ((window (get-buffer-window
                       (if (eq (current-buffer) proposal) panel proposal))))
        (select-window window)
      (gemini-companion-windows-at-once
        (pop-to-buffer proposal)))))

;;;; Closing

(cl-defmethod gemini-companion-view-close ((view gemini-companion-ediff-view))
  "End the Ediff session of VIEW, which may be incomplete.
Ediff's own command for that would also rearrange the windows, and run
hooks of the user, many of which kill the compared buffers."
  (let ((panel (gemini-companion-ediff--panel view)))
    (when (buffer-live-p panel)
      (with-current-buffer panel
        (ediff-delete-temp-files)
        (ediff-clear-diff-vector 'ediff-difference-vector-A 'fine-diffs-also)
        (ediff-clear-diff-vector 'ediff-difference-vector-B 'fine-diffs-also)
        (mapc #'delete-overlay
              (seq-filter #'overlayp `(,ediff-current-diff-overlay-A
                                       ,ediff-current-diff-overlay-B
                                       ,@ediff-wide-bounds)))
        (dolist (side (list ediff-buffer-A ediff-buffer-B))
          (when (buffer-live-p side)
            (with-current-buffer side
              (setq ediff-this-buffer-ediff-sessions
                    (delq panel ediff-this-buffer-ediff-sessions))
              (mapc #'kill-local-variable
                    '( mode-line-buffer-identification mode-line-format
                       face-remapping-alist line-prefix wrap-prefix)))))
        (mapc #'gemini-companion-edit-discard
              (list ediff-diff-buffer ediff-custom-diff-buffer
                    ediff-fine-diff-buffer ediff-error-buffer
                    (get-buffer ediff-tmp-buffer) (get-buffer ediff-msg-buffer)
                    panel)))
      (setq ediff-session-registry (delq panel ediff-session-registry))
      (if (or ediff-session-registry
              (get-buffer-window "*Ediff Registry*" t))
          (ediff-update-registry)
        (gemini-companion-edit-discard (get-buffer "*Ediff Registry*"))))))

(provide 'gemini-companion-ediff)
;;; gemini-companion-ediff.el ends here
