;;; gemini-companion-page.el --- Buffers that are written again as a whole  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The list, the status and the unified view are pages: when something has changed
;; and the buffer is visible, its whole text is computed again, and replaces in the
;; buffer what differs, so that point and the windows stay at their lines.

;;; Code:

(require 'gemini-companion-text)

(defvar-local gemini-companion-page--write nil
  "Function that writes the text of this page.")

(defvar-local gemini-companion-page--timer (timer-create)
  "Timer that refreshes this page.")

(defun gemini-companion-page-set-up (write hooks)
  "Make the current buffer a page whose text the function WRITE writes.
It is written again by `revert-buffer', and soon after one of HOOKS has
run.  If there are HOOKS, also when a window displays it."
  (let* ((page (current-buffer))
         (soon (lambda (&rest _) (gemini-companion-page-refresh-soon page)))
         (end (lambda ()
                (dolist (hook hooks)
                  (remove-hook hook soon))
                (cancel-timer gemini-companion-page--timer))))
    (setq gemini-companion-page--write write)
    (setq-local revert-buffer-function
                (lambda (&rest _) (gemini-companion-page-refresh)))
    (dolist (hook hooks)
      (add-hook hook soon))
    (when hooks
      (dolist (hook '(window-buffer-change-functions
                      window-size-change-functions))
        (add-hook hook soon nil t)))
    (dolist (hook '(kill-buffer-hook change-major-mode-hook))
      (add-hook hook end nil t))))

(defun gemini-companion-page-refresh-soon (page)
  "Write the text of the buffer PAGE again soon if it is visible then.
Each call waits for further ones."
  (when (buffer-live-p page)
    (with-current-buffer page
      (cancel-timer gemini-companion-page--timer)
      (setq gemini-companion-page--timer
            (run-at-time 0.2 nil
                         (lambda ()
                           (when (get-buffer-window page t)
                             (with-current-buffer page
                               (gemini-companion-page-refresh)))))))))

(defun gemini-companion-page-refresh ()
  "Write the text of the current buffer, a page, again."
  (funcall gemini-companion-page--write)
  ;; Hooks that ran meanwhile need no other refresh.
  (cancel-timer gemini-companion-page--timer))

;;;; Text

(defun gemini-companion-page-replace (text)
  "Replace the text of the current buffer, and its properties, by TEXT.
Point, mark, markers and the windows stay at their lines."
  (widen)
  (with-silent-modifications
    (gemini-companion-text-replace text)
    ;; `object-intervals' takes seconds for ten thousand of them.
    (let ((beg 0))
      (while (< beg (length text))
        (let ((end (next-property-change beg text (length text))))
          (set-text-properties (1+ beg) (1+ end)
                               (text-properties-at beg text))
          (setq beg end))))))

(provide 'gemini-companion-page)
;;; gemini-companion-page.el ends here
