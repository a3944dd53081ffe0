;;; gemini-companion-plain.el --- A proposal that is displayed alone  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The review of a proposal that Ediff cannot compare: of a new file, of one with a very
;; long line, or without room.  The text of the proposal is displayed in the mode of
;; its file, and is read-only until the user edits it.

;;; Code:

(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-header)
(require 'gemini-companion-highlight)
(require 'gemini-companion-hunk)
(require 'gemini-companion-review)
(require 'gemini-companion-view)

;;;; Keys

(declare-function evil-change-state "ext:evil-core")

(defvar gemini-companion-plain-mode-map
  (let ((map (make-sparse-keymap)))
    (suppress-keymap map)
    (gemini-companion-review-bind map 'view 'plain))
  "Keys in a proposal that is displayed alone, while it is read-only.")

(define-minor-mode gemini-companion-plain-mode
  "Mode of a proposal that is displayed alone, and is not being edited."
  :interactive nil
  (setq buffer-read-only gemini-companion-plain-mode)
  ;; In other states of Evil, letters are its own commands.
  (when (bound-and-true-p evil-local-mode)
    (evil-change-state (if gemini-companion-plain-mode 'emacs 'normal))))

;;;; View

(cl-defstruct (gemini-companion-plain-view
               (:noinline t)
               (:include gemini-companion-view)
               (:constructor gemini-companion-plain-make)
               (:copier nil))
  "A review as one text; its buffer is the proposal.")

(cl-defmethod gemini-companion-view-open ((view gemini-companion-plain-view))
  "Show VIEW in the only window of the frame."
  (let* ((edit (gemini-companion-view-edit view))
         (proposal (gemini-companion-edit-proposal-buffer edit)))
    (setf (gemini-companion-view-buffers view) (list proposal)
          (gemini-companion-view-hunks view) (gemini-companion-edit-hunks edit))
    (with-current-buffer proposal
      (widen)
      (gemini-companion-highlight (gemini-companion-edit-file edit))
      (gemini-companion-header-set)
      (gemini-companion-plain-mode)
      (goto-char (gemini-companion-hunk-position
                  (if-let* ((hunk (car (gemini-companion-view-hunks view))))
                      (gemini-companion-hunk-new hunk)
                    0))))
    (pop-to-buffer proposal '(display-buffer-same-window
                              (category . gemini-companion-review)))))

(cl-defmethod gemini-companion-view-hunk ((view gemini-companion-plain-view))
  "Return the hunk of VIEW at point, or nil."
  (let ((index (1- (line-number-at-pos nil 'absolute))))
    (seq-find (lambda (hunk)
                ;; A hunk without lines in the proposal is at the next one.
                (<= (gemini-companion-hunk-new hunk)
                    index
                    (max (gemini-companion-hunk-new hunk)
                         (1- (gemini-companion-hunk-new-end hunk)))))
              (gemini-companion-view-hunks view))))

(cl-defmethod gemini-companion-view-move ((view gemini-companion-plain-view) count)
  "Go forward by COUNT hunks in VIEW."
  (let* ((back (< count 0))
         (here (1- (line-number-at-pos nil 'absolute)))
         (lines (mapcar #'gemini-companion-hunk-new (gemini-companion-view-hunks view)))
         (further (if back
                      (nreverse (seq-filter (lambda (line) (< line here)) lines))
                    (seq-filter (lambda (line) (< here line)) lines))))
    (goto-char (gemini-companion-hunk-position
                (or (nth (1- (abs count)) further)
                    (user-error "No %s hunk" (if back "previous" "next")))))))

(cl-defmethod gemini-companion-view-go-to ((view gemini-companion-plain-view) number)
  "Go to the hunk with NUMBER, from 0 on, in VIEW."
  (when-let* ((hunk (nth number (gemini-companion-view-hunks view))))
    (with-current-buffer (car (gemini-companion-view-buffers view))
      (goto-char (gemini-companion-hunk-position (gemini-companion-hunk-new hunk)))
      (dolist (window (get-buffer-window-list))
        (set-window-point window (point))))))

(cl-defmethod gemini-companion-view-edit-proposal ((view gemini-companion-plain-view))
  "Let the user edit the proposal of VIEW, or make it read-only again."
  (with-current-buffer (car (gemini-companion-view-buffers view))
    (gemini-companion-plain-mode (if gemini-companion-plain-mode -1 1))
    (force-mode-line-update)))

(cl-defmethod gemini-companion-view-compare ((view gemini-companion-plain-view))
  "Compare the texts of VIEW again."
  (setf (gemini-companion-view-hunks view)
        (gemini-companion-edit-hunks (gemini-companion-view-edit view)))
  (force-mode-line-update t))

(cl-defmethod gemini-companion-view-close ((view gemini-companion-plain-view))
  "Make the proposal of VIEW an ordinary buffer again."
  (dolist (buffer (gemini-companion-view-buffers view))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (gemini-companion-plain-mode -1)))))

(provide 'gemini-companion-plain)
;;; gemini-companion-plain.el ends here
