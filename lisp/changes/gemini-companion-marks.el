;;; gemini-companion-marks.el --- Marks of changes in the buffer of a file  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Each change of `gemini-companion-changes' is marked at the right of its lines, in
;; the fringe or in a margin.  Added lines, changed lines and the positions of removed
;; lines have different shapes and faces.
;;
;; After an edit beside a mark, the changes are computed again when Emacs is idle.
;; Typing elsewhere computes nothing.

;;; Code:

(require 'gemini-companion-changes)
(require 'gemini-companion-commands)
(require 'gemini-companion-edit)
(require 'gemini-companion-hunk)
(require 'gemini-companion-part)
(require 'gemini-companion-revert)
(require 'gemini-companion-text)

;;;; Customization

(defface gemini-companion-mark
  '((t :inherit success))
  "Face of the marks at the right of lines that a CLI has added."
  :group 'gemini-companion-reviews)

(defface gemini-companion-mark-changed
  '((t :inherit warning))
  "Face of the marks at the right of lines that a CLI has changed."
  :group 'gemini-companion-reviews)

(defface gemini-companion-mark-removed
  '((t :inherit error))
  "Face of the marks where a CLI has removed lines."
  :group 'gemini-companion-reviews)

;;;; Keys

(autoload 'gemini-companion-walk-click "gemini-companion-walk")
(autoload 'gemini-companion-walk-context-menu "gemini-companion-walk")

(defvar gemini-companion-marks-map
  (let ((map (make-sparse-keymap)))
    (dolist (area '(right-fringe right-margin) map)
      (define-key map (vector area 'mouse-1) #'gemini-companion-marks--click)))
  "Keymap of the lines of a change, for clicks on its mark.")

;;;; State

(defvar-local gemini-companion-marks-here nil
  "The overlays of the changes in this buffer, in order.")
(put 'gemini-companion-marks-here 'permanent-local t)

(cl-defmethod gemini-companion-commands-value ((_name (eql 'changes-here)))
  "Return the overlays of the changes in this buffer."
  gemini-companion-marks-here)

(defvar-local gemini-companion-marks--edited nil
  "Non-nil if this buffer was edited and its changes will be updated.")

(when (fboundp 'define-fringe-bitmap)
  (define-fringe-bitmap 'gemini-companion-mark [24] nil nil '(center t))
  ;; A dashed line.
  (define-fringe-bitmap 'gemini-companion-mark-changed [24 24 24 0 0] nil nil
    '(center t))
  (define-fringe-bitmap 'gemini-companion-mark-removed [254 254] nil nil 'top))

(defconst gemini-companion-marks--kinds
  '((added gemini-companion-mark gemini-companion-mark ?\u2503 "|")
    (changed gemini-companion-mark-changed gemini-companion-mark-changed
             ?\u2507 ":")
    (removed gemini-companion-mark-removed gemini-companion-mark-removed
             ?\u2594 "_"))
  "Lists of a kind of change, its face, its bitmap, and its signs.
The last sign is for terminals that cannot display the other one.")

;;;; Marks

(defun gemini-companion-marks--kind (change)
  "Return the kind of CHANGE: `added', `changed' or `removed'."
  (cond ((null (gemini-companion-hunk-lines change)) 'added)
        ((= (gemini-companion-hunk-new change)
            (gemini-companion-hunk-new-end change))
         'removed)
        (t 'changed)))

(defun gemini-companion-marks--draw (record buffer)
  "Mark the changes of RECORD in BUFFER, which visits its file, and nothing else.
If BUFFER is nil, remove the marks from a buffer that is to be merged first.
RECORD may be nil; see `gemini-companion-changes-functions'."
  (when-let* ((record)
              (marked (or buffer (gemini-companion-revert-unsaved
                                  (gemini-companion-changes-path record)))))
    (with-current-buffer marked
      (when (or buffer (local-variable-p 'gemini-companion-marks-here))
        (gemini-companion-marks--draw-here
         (and buffer (gemini-companion-changes-file-known record))
         (gemini-companion-changes-file-unreviewed record))))))

(defun gemini-companion-marks--draw-here (changes watched)
  "Mark CHANGES in the current buffer, and nothing else.
If WATCHED is non-nil, mark them again after edits."
  (let ((marks nil)
        (line 0))
    (save-excursion
      (save-restriction
        (widen)
        (gemini-companion-marks--remove)
        (when watched
          (add-hook 'after-change-functions #'gemini-companion-marks--edited nil t)
          (add-hook 'context-menu-functions #'gemini-companion-walk-context-menu
                    nil t))
        (goto-char (point-min))
        (dolist (change changes)
          ;; Counting from the first line for each change would take long.
          (forward-line (- (gemini-companion-hunk-new change) line))
          (setq line (gemini-companion-hunk-new change))
          (push (gemini-companion-marks--make change) marks))))
    (when (or marks watched (local-variable-p 'gemini-companion-marks-here))
      (setq gemini-companion-marks-here (nreverse marks))
      (gemini-companion-marks--set-margins))))

(defun gemini-companion-marks--remove ()
  "Remove all marks from the current buffer, including cloned ones."
  (remove-overlays nil nil 'gemini-companion-mark t)
  (kill-local-variable 'gemini-companion-marks--edited)
  (remove-hook 'after-change-functions #'gemini-companion-marks--edited t)
  (remove-hook 'context-menu-functions #'gemini-companion-walk-context-menu t))

(defun gemini-companion-marks--make (change)
  "Mark the lines of CHANGE, the first of which begins at point."
  (pcase-let*
      ((count (- (gemini-companion-hunk-new-end change)
                 (gemini-companion-hunk-new change)))
       ;; At a last line without a newline, `forward-line' stays in that line.
       (end (max (point) (save-excursion (forward-line count) (point))))
       (mark (make-overlay (point) end nil t))
       (`(,_ ,face ,bitmap ,char ,ascii)
        (assq (gemini-companion-marks--kind change) gemini-companion-marks--kinds))
       (sign (propertize (gemini-companion-text-sign char ascii) 'face face))
       (string (concat
                (propertize "!" 'display `(right-fringe ,bitmap ,face))
                (propertize "!" 'display `((margin right-margin) ,sign)))))
    (overlay-put mark 'gemini-companion-change change)
    (overlay-put mark 'gemini-companion-mark t)
    (overlay-put mark 'keymap gemini-companion-marks-map)
    ;; A string is displayed once only, so each line has an overlay.  A prefix of
    ;; the lines would replace others, such as the indentation by Org.
    (save-excursion
      (dotimes (_ (min (max 1 count) 200) mark)
        (let ((line (make-overlay (point) (point) nil t t)))
          (overlay-put line 'gemini-companion-mark t)
          (overlay-put line 'before-string string))
        (forward-line)))))

(defun gemini-companion-marks--update-soon ()
  "Update the changes of the current buffer when Emacs is idle, if it may have any."
  (when (and (local-variable-p 'gemini-companion-marks-here)
             (not gemini-companion-marks--edited))
    (setq gemini-companion-marks--edited t)
    (run-with-idle-timer 0.2 nil #'gemini-companion-marks--update
                         (current-buffer))))

(defun gemini-companion-marks--update (buffer)
  "Update the changes of BUFFER, which was edited and may have been killed.
If they are as they were, no marks are drawn."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (kill-local-variable 'gemini-companion-marks--edited))
    (gemini-companion-changes-update-buffer buffer)))

(defun gemini-companion-marks--edited (start end _length)
  "Compute the changes of the current buffer again when Emacs is idle.
Do so only if START to END is beside a mark, or if an undo may have restored
marked lines."
  (when (and (not gemini-companion-marks--edited)
             (or undo-in-progress
                 (seq-some (lambda (overlay)
                             (overlay-get overlay 'gemini-companion-mark))
                           (overlays-in (save-excursion
                                          (goto-char start)
                                          (1- (line-beginning-position)))
                                        (save-excursion
                                          (goto-char end)
                                          (+ 2 (line-end-position)))))))
    (gemini-companion-marks--update-soon)))
(put 'gemini-companion-marks--edited 'permanent-local-hook t)
(put 'gemini-companion-walk-context-menu 'permanent-local-hook t)

;;;; Margins

(defun gemini-companion-marks--set-margins ()
  "Show a right margin in each window where a mark has no fringe, or hide it."
  (dolist (window (get-buffer-window-list nil nil t))
    (pcase-let ((`(,left . ,right) (window-margins window)))
      ;; A wider margin belongs to a mode that centers the text.
      (unless (< 1 (or right 0))
        (set-window-margins window left
                            (if (and gemini-companion-marks-here
                                     (= 0 (cadr (window-fringes window))))
                                1
                              right-margin-width))))))

(defun gemini-companion-marks--displayed (frame)
  "Adapt the right margins in FRAME, whose windows have changed."
  (dolist (window (window-list frame 'no-minibuffer))
    (with-current-buffer (window-buffer window)
      (cond ((not (local-variable-p 'gemini-companion-marks-here)))
            ;; The marks of an indirect buffer were copied with its text.
            ((buffer-base-buffer) (gemini-companion-marks--draw-here nil nil))
            (t (gemini-companion-marks--set-margins))))))

(defun gemini-companion-marks--displayed-last ()
  "Adapt the right margins in all frames.
`visual-fill-column-mode' removes them in each other hook for windows where
the text is as wide as the window; Emacs runs this hook last."
  (mapc #'gemini-companion-marks--displayed (frame-list)))

(defun gemini-companion-marks--show-changes (frame)
  "Mark the changes in buffers that FRAME displays and that have no marks yet.
A file may be visited without hooks."
  (dolist (window (window-list frame 'no-minibuffer))
    (with-current-buffer (window-buffer window)
      (when (and buffer-file-name
                 (not (local-variable-p 'gemini-companion-marks-here)))
        (gemini-companion-changes-update-buffer)))))

(defun gemini-companion-marks--renamed ()
  "Remove the marks from the current buffer if it visits another file now."
  (when (and (local-variable-p 'gemini-companion-marks-here)
             (not (gemini-companion-changes-here)))
    (gemini-companion-marks--draw-here nil nil)))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'marks)))
  "Mark the changes by CLIs from now on."
  '((gemini-companion-changes-functions gemini-companion-marks--draw)
    (window-buffer-change-functions gemini-companion-marks--displayed)
    (window-buffer-change-functions gemini-companion-marks--show-changes)
    ;; Restoring a window configuration restores an old margin.
    (window-size-change-functions gemini-companion-marks--displayed)
    (window-state-change-hook gemini-companion-marks--displayed-last)
    ;; What the user has typed far from a mark may be what a CLI wrote.
    (after-save-hook gemini-companion-marks--update-soon)
    (after-set-visited-file-name-hook gemini-companion-marks--renamed)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'marks)))
  "Remove all marks, and stop marking changes."
  (cancel-function-timers #'gemini-companion-marks--update)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when (local-variable-p 'gemini-companion-marks-here)
        (gemini-companion-marks--draw-here nil nil)
        (kill-local-variable 'gemini-companion-marks-here)))))

;;;; Commands

(defun gemini-companion-marks--click (event)
  "Show the previous text of the change whose mark was clicked, or hide it.
EVENT is the click."
  (interactive "e")
  (gemini-companion-walk-click event))

(provide 'gemini-companion-marks)
;;; gemini-companion-marks.el ends here
