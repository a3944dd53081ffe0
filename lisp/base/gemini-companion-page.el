;;; gemini-companion-page.el --- Buffers whose whole text is computed  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A page is a buffer whose whole text is computed: when something has changed and
;; the buffer is visible, the text is computed again, and replaces in the buffer
;; what differs, so that point and windows stay at their lines.  The overview, the status
;; and the unified diff of a review are pages.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-replace)

(defvar-local gemini-companion-page--write nil
  "Function that writes the text of this page, which is current.
It takes no arguments, and calls `gemini-companion-page-replace'.")

(defvar-local gemini-companion-page--timer (timer-create)
  "Timer that refreshes this page.")

(defvar-local gemini-companion-page-busy-function #'ignore
  "Function that returns non-nil while this page is not to be written by a timer.")

(defvar-local gemini-companion-page--sections nil
  "The sections of this page, as `gemini-companion-page-replace-sections' has them.")

(defconst gemini-companion-page--pause 0.2
  "Seconds for which a page that changes waits for further changes.")

(defvar-local gemini-companion-page--written 0
  "When this page was written last, a float time.")

(defvar-local gemini-companion-page--due nil
  "When the timer of this page is to refresh it, a float time, or nil.")

(defun gemini-companion-page-set-up (write hooks &optional urgent)
  "Make the current buffer a page whose text the function WRITE writes.
It is written again by `revert-buffer', and soon after one of HOOKS, a
list of symbols, has run.  If there are HOOKS, also when a window displays
it.  After one of the list URGENT, it is written as soon as Emacs waits
for input.  All that ends with the buffer or its mode."
  (setq gemini-companion-page--write write)
  (setq-local revert-buffer-function
              (lambda (&rest _) (gemini-companion-page-refresh)))
  (let* ((page (current-buffer))
         (soon (lambda (&rest _) (gemini-companion-page-refresh-soon page)))
         (next (lambda (&rest _) (gemini-companion-page--refresh-next page)))
         (end (lambda ()
                (dolist (hook hooks)
                  (remove-hook hook soon))
                (dolist (hook urgent)
                  (remove-hook hook next))
                (cancel-timer gemini-companion-page--timer))))
    (dolist (hook hooks)
      (add-hook hook soon))
    (dolist (hook urgent)
      (add-hook hook next))
    (when hooks
      (add-hook 'window-buffer-change-functions soon nil t)
      (add-hook 'window-size-change-functions soon nil t))
    (add-hook 'kill-buffer-hook end nil t)
    (add-hook 'change-major-mode-hook end nil t)))

(defun gemini-companion-page-refresh-soon (page)
  "Write the text of the buffer PAGE again in 0.2 seconds if it is visible then.
Each call waits for further ones."
  (gemini-companion-page--refresh-in gemini-companion-page--pause page))

(defun gemini-companion-page--refresh-next (page)
  "Write the text of the buffer PAGE again when Emacs waits for input.
If that was done in the last 0.2 seconds, wait for further calls."
  (when (buffer-live-p page)
    (gemini-companion-page--refresh-in
     (if (< (- (float-time)
               (buffer-local-value 'gemini-companion-page--written page))
            gemini-companion-page--pause)
         gemini-companion-page--pause
       0)
     page)))

(defun gemini-companion-page--refresh-in (seconds page)
  "Write the text of the buffer PAGE again in SECONDS if it is visible then.
What is due already is not put off."
  (when (buffer-live-p page)
    (with-current-buffer page
      (unless (and gemini-companion-page--due
                   (<= gemini-companion-page--due (float-time)))
        (cancel-timer gemini-companion-page--timer)
        (setq gemini-companion-page--due (+ (float-time) seconds)
              gemini-companion-page--timer
              (run-at-time seconds nil
                           #'gemini-companion-page--refresh-visible page))))))

(defun gemini-companion-page--refresh-visible (page)
  "Write the text of the buffer PAGE again if a window displays it.
A timer calls this, which the end of PAGE cancels."
  (with-current-buffer page
    (setq gemini-companion-page--due nil)
    (when (get-buffer-window page t)
      (if (funcall gemini-companion-page-busy-function)
          (gemini-companion-page-refresh-soon page)
        (gemini-companion-page-refresh)))))

(defun gemini-companion-page-refresh (&optional write)
  "Write the text of the current buffer, a page, again.
WRITE is the function that does it, by default that of the page."
  (funcall (or write gemini-companion-page--write))
  (setq gemini-companion-page--written (float-time)
        gemini-companion-page--due nil)
  ;; Hooks that ran meanwhile need no other refresh.
  (cancel-timer gemini-companion-page--timer))

(defun gemini-companion-page-replace (text &optional beg end)
  "Replace the text of the current buffer, and its properties, by TEXT.
Point, mark, markers and the windows stay at their lines.  With BEG and
END non-nil, replace only the whole lines between them."
  (widen)
  (with-silent-modifications
    (gemini-companion-replace-text text beg end)
    (let ((start (or beg 1))
          (position 0))
      ;; `object-intervals' takes seconds for ten thousand of them.
      (while (< position (length text))
        (let ((next (next-property-change position text (length text))))
          (set-text-properties (+ start position) (+ start next)
                               (text-properties-at position text))
          (setq position next))))))

(defun gemini-companion-page-replace-sections (sections)
  "Make SECTIONS, a list of (KEY . TEXT), the text of the current buffer.
Only this function is to change it then.  Sections keep their order.  One
with a TEXT that is `eq' to the last one for KEY stays as it is; of one
with another TEXT, the lines that differ are replaced."
  (widen)
  (let ((old gemini-companion-page--sections)
        (beg 1))
    (pcase-dolist (`(,key . ,text) sections)
      (let ((found (cl-member key old :test #'equal :key #'car)))
        (when found
          (gemini-companion-page--delete-sections beg (cl-ldiff old found))
          (setq old (cdr found)))
        (let ((last (cdar found)))
          (unless (eq text last)
            (gemini-companion-page-replace text beg (+ beg (length last)))))
        (cl-incf beg (length text))))
    (gemini-companion-page--delete-sections beg old)
    (setq gemini-companion-page--sections sections)))

(defun gemini-companion-page-sections ()
  "Return the sections of the current buffer, a list of (KEY . TEXT).
They are those of the last call of `gemini-companion-page-replace-sections'."
  gemini-companion-page--sections)

(defun gemini-companion-page-section (key)
  "Return where the section of KEY is in the current buffer, (BEG . END), or nil."
  (let ((beg 1)
        (sections gemini-companion-page--sections))
    (while (and sections (not (equal key (caar sections))))
      (setq beg (+ beg (length (cdar sections)))
            sections (cdr sections)))
    (when sections
      (cons beg (+ beg (length (cdar sections)))))))

(defun gemini-companion-page--delete-sections (beg sections)
  "Delete the text of SECTIONS, which begins at BEG."
  (when sections
    (gemini-companion-page-replace
     "" beg (apply #'+ beg (mapcar (lambda (section) (length (cdr section)))
                                   sections)))))

(provide 'gemini-companion-page)
;;; gemini-companion-page.el ends here
