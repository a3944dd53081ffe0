;;; gemini-companion-page.el --- Buffers whose whole text is computed  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A page is a buffer whose whole text is computed.  A visible page is redrawn after
;; each change: its text is computed again, and only the lines that differ are
;; replaced, so that point and windows keep their lines.  The overview, the status and
;; the unified diff of a review are pages.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-replace)

(defvar-local gemini-companion-page--write nil
  "Function without arguments that draws this page, the current buffer.
It calls `gemini-companion-page-replace'.")

(defvar-local gemini-companion-page--timer (timer-create)
  "Timer that refreshes this page.")

(defvar-local gemini-companion-page-busy-function #'ignore
  "Function that returns non-nil while this page is not to be written by a timer.")

(defvar-local gemini-companion-page--sections nil
  "Sections of this page, for `gemini-companion-page-replace-sections'.")

(defconst gemini-companion-page--pause 0.2
  "Seconds after a change in which a page waits for further changes.")

(defvar-local gemini-companion-page--written 0
  "Time when this page was last drawn, a float time.")

(defvar-local gemini-companion-page--drawn-for nil
  "The value of `gemini-companion-page--now' when this page was last drawn.
Nil if something has changed since, while no window displayed the page.")

(defvar-local gemini-companion-page--due nil
  "Time when the timer of this page will redraw it, a float time, or nil.")

;;;; Refresh

(defun gemini-companion-page-set-up (write hooks &optional urgent)
  "Make the current buffer a page that the function WRITE draws.
HOOKS and URGENT are lists of hooks.  `revert-buffer' redraws the page; so does
a hook of HOOKS, 0.2 seconds later, and a hook of URGENT, as soon as Emacs
waits for input.  If there are HOOKS, the page is also redrawn when a window
displays it.  Killing the buffer, or changing its mode, ends all that."
  (setq gemini-companion-page--write write)
  (setq-local revert-buffer-function
              (lambda (&rest _) (gemini-companion-page-refresh)))
  (let* ((page (current-buffer))
         (soon (lambda (&rest _) (gemini-companion-page-refresh-soon page)))
         (displayed (lambda (&rest _) (gemini-companion-page-refresh-displayed page)))
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
      (add-hook 'window-buffer-change-functions displayed nil t)
      (add-hook 'window-size-change-functions displayed nil t))
    (add-hook 'kill-buffer-hook end nil t)
    (add-hook 'change-major-mode-hook end nil t)))

(defun gemini-companion-page-refresh-soon (page)
  "Redraw the buffer PAGE in 0.2 seconds if it is visible then.
Another call before that starts the 0.2 seconds again."
  (gemini-companion-page--refresh-in gemini-companion-page--pause page))

(defun gemini-companion-page-refresh-displayed (page)
  "Redraw the buffer PAGE soon, as redisplay has found that its windows changed.
Do nothing if the command that has changed them has drawn PAGE there."
  (when (buffer-live-p page)
    (with-current-buffer page
      (unless (equal (gemini-companion-page--now) gemini-companion-page--drawn-for)
        (gemini-companion-page-refresh-soon page)))))

(defun gemini-companion-page--now ()
  "Return how many keys were typed, and the windows of this page with their sizes."
  (cons num-input-keys
        (mapcar (lambda (window)
                  (list window (window-total-width window)
                        (window-total-height window)))
                (get-buffer-window-list nil nil t))))

(defun gemini-companion-page--refresh-next (page)
  "Redraw the buffer PAGE as soon as Emacs waits for input.
If PAGE was drawn in the last 0.2 seconds, wait for further calls."
  (when (buffer-live-p page)
    (gemini-companion-page--refresh-in
     (if (< (- (float-time)
               (buffer-local-value 'gemini-companion-page--written page))
            gemini-companion-page--pause)
         gemini-companion-page--pause
       0)
     page)))

(defun gemini-companion-page--refresh-in (seconds page)
  "Redraw the buffer PAGE in SECONDS if it is visible then.
A redraw that is overdue is not postponed."
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
  "Redraw the buffer PAGE if a window displays it.
Called by a timer, which is canceled when PAGE is killed."
  (with-current-buffer page
    (setq gemini-companion-page--due nil)
    (cond ((null (get-buffer-window page t))
           (setq gemini-companion-page--drawn-for nil))
          ((funcall gemini-companion-page-busy-function)
           (gemini-companion-page-refresh-soon page))
          (t (gemini-companion-page-refresh)))))

(defun gemini-companion-page-refresh (&optional write)
  "Redraw the current buffer, a page.
WRITE is the function that does it, by default that of the page."
  (funcall (or write gemini-companion-page--write))
  (setq gemini-companion-page--written (float-time)
        gemini-companion-page--drawn-for (gemini-companion-page--now)
        gemini-companion-page--due nil)
  ;; What hooks have requested during this redraw is drawn.
  (cancel-timer gemini-companion-page--timer))

;;;; Text

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
  "Replace the text of the current buffer by SECTIONS, a list of (KEY . TEXT).
No other function may modify the buffer.  Sections must keep their order in
later calls.  A section is not redrawn if its TEXT is `eq' to the previous
text of KEY; otherwise, only the lines that differ are replaced."
  (widen)
  (let ((old gemini-companion-page--sections)
        (beg 1))
    (pcase-dolist (`(,key . ,text) sections)
      (let* ((old-from-key (cl-member key old :test #'equal :key #'car))
             (old-text (cdar old-from-key)))
        (when old-from-key
          (gemini-companion-page--delete-sections beg (cl-ldiff old old-from-key))
          (setq old (cdr old-from-key)))
        (unless (eq text old-text)
          (gemini-companion-page-replace text beg (+ beg (length old-text))))
        (cl-incf beg (length text))))
    (gemini-companion-page--delete-sections beg old)
    (setq gemini-companion-page--sections sections)))

(defun gemini-companion-page-sections ()
  "Return the sections of the current buffer, a list of (KEY . TEXT).
The last call of `gemini-companion-page-replace-sections' has set them."
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
