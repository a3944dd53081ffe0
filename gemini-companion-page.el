;;; gemini-companion-page.el --- Buffers that are written again as a whole  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The list, the status and the unified view are pages: when something has changed
;; and the buffer is visible, its whole text is written again, and point and the
;; windows stay at their lines.  A section of a page is a range whose text has the same property
;; `gemini-companion-section'.

;;; Code:

(require 'gemini-companion-text)
(require 'subr-x)
(require 'text-property-search)

(defvar-local gemini-companion-page--write nil
  "Function that writes the text of this page.")

(defvar-local gemini-companion-page--timer nil
  "Timer that refreshes this page, t during a refresh, or nil.")

(defun gemini-companion-page-set-up (write hooks)
  "Make the current buffer a page whose text the function WRITE writes.
It is written again by `revert-buffer', and soon after one of HOOKS has
run.  If there are HOOKS, also when a window displays it."
  (let* ((page (current-buffer))
         (soon (lambda (&rest _) (gemini-companion-page-refresh-soon page)))
         (end (lambda ()
                (dolist (hook hooks)
                  (remove-hook hook soon))
                (gemini-companion-page--cancel))))
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

(defun gemini-companion-page-refresh-soon (page &optional delay)
  "Write the text of the buffer PAGE again soon if it is visible then.
DELAY is the number of seconds to wait for further changes, by default
0.05."
  (when (buffer-live-p page)
    (with-current-buffer page
      (unless (eq t gemini-companion-page--timer)
        (gemini-companion-page--cancel)
        (setq gemini-companion-page--timer
              (run-at-time
               (or delay 0.05) nil
               (lambda ()
                 ;; A hook of the user may have failed when it was killed.
                 (when (buffer-live-p page)
                   (with-current-buffer page
                     (if (get-buffer-window page t)
                         (gemini-companion-page-refresh)
                       (setq gemini-companion-page--timer nil)))))))))))

(defun gemini-companion-page--cancel ()
  "Cancel the refresh of this page."
  (when (timerp gemini-companion-page--timer)
    (cancel-timer gemini-companion-page--timer))
  (setq gemini-companion-page--timer nil))

(defun gemini-companion-page-refresh ()
  "Write the text of the current buffer, a page, again."
  (gemini-companion-page--cancel)
  ;; Hooks that run meanwhile need no other refresh.
  (setq gemini-companion-page--timer t)
  (unwind-protect
      (funcall gemini-companion-page--write)
    (setq gemini-companion-page--timer nil)))

;;;; Text

(defun gemini-companion-page-replace (text)
  "Replace the text of the current buffer by TEXT.
Point, mark and the windows stay at their lines in their sections."
  (let ((here (gemini-companion-page--place (point)))
        (mark (and (mark t) (gemini-companion-page--place (mark t))))
        (places (mapcar (lambda (window)
                          (list window
                                (gemini-companion-page--place
                                 (window-start window))
                                (gemini-companion-page--place
                                 (window-point window))))
                        (get-buffer-window-list nil nil t))))
    (widen)
    (with-silent-modifications
      ;; Markers around what differs stay, for example in registers.
      (goto-char (point-min))
      (gemini-companion-text-edit (buffer-size) text)
      ;; `object-intervals' takes seconds for ten thousand of them.
      (let ((beg 0))
        (while (< beg (length text))
          (let ((end (next-property-change beg text (length text))))
            (set-text-properties (1+ beg) (1+ end)
                                 (text-properties-at beg text))
            (setq beg end)))))
    (goto-char (gemini-companion-page--position here))
    (when mark
      (set-marker (mark-marker) (gemini-companion-page--position mark)))
    (pcase-dolist (`(,window ,start ,point) places)
      (set-window-start window (gemini-companion-page--position start) t)
      (set-window-point window (gemini-companion-page--position point)))))

(defun gemini-companion-page-section (section)
  "Return where SECTION of this page begins, or nil."
  (save-excursion
    (goto-char (point-min))
    (when-let* ((match (text-property-search-forward 'gemini-companion-section
                                                     section #'equal)))
      (prop-match-beginning match))))

(defun gemini-companion-page--place (position)
  "Return the place of POSITION, which the text may change around.
It is a list of its section, the line in that, the column, and the line
in the buffer."
  (save-excursion
    (goto-char position)
    (let* ((beg (line-beginning-position))
           (section (get-text-property beg 'gemini-companion-section))
           (start (and section (gemini-companion-page-section section))))
      (list section
            (if start (count-lines start beg) 0)
            (- position beg)
            (count-lines (point-min) beg)))))

(defun gemini-companion-page--position (place)
  "Return the position of PLACE, from before the text was replaced."
  (pcase-let* ((`(,section ,line ,column ,line-of-all) place)
               (start (and section (gemini-companion-page-section section))))
    (save-excursion
      (goto-char (or start (point-min)))
      (forward-line (if start line line-of-all))
      (when start
        (goto-char (min (point)
                        (1- (next-single-property-change
                             start 'gemini-companion-section
                             nil (point-max))))))
      (min (line-end-position) (+ (line-beginning-position) column)))))

(provide 'gemini-companion-page)
;;; gemini-companion-page.el ends here
