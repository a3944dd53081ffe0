;;; bench-review.el --- Reviews, and the same without us  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Shows reviews at once and says when they are on the screen; and shows the same
;; two texts by Ediff or diff alone.

;;; Code:

(require 'bench)
(require 'ediff)
(require 'gemini-companion)

(defun bench-review ()
  "Show each review at once and tell when it is on the screen."
  (setq gemini-companion-review-arrival 'now)
  (add-hook 'gemini-companion-diff-opened-functions #'bench--shown))

(defun bench--shown (_diff)
  "Tell when a review is on the screen, all of it."
  (let ((process (bound-and-true-p gemini-companion-unified--process)))
    (while (process-live-p process)
      (accept-process-output process 0.01)))
  (redisplay t)
  (bench-tell (list (float-time) (buffer-name))))

(defun bench-accept ()
  "Accept the review that is shown; return when that was pressed."
  (prog1 (float-time)
    (gemini-companion-diff-accept)))

(defun bench--buffer (file)
  "Return a new buffer with the text of FILE."
  (with-current-buffer (generate-new-buffer (file-name-nondirectory file))
    (let ((coding-system-for-read 'utf-8-unix))
      (insert-file-contents file))
    (goto-char (point-min))
    (set-buffer-modified-p nil)
    (current-buffer)))

(defun bench-ediff (one two)
  "Return how long Ediff takes to show the files ONE and TWO."
  (let* ((windows (current-window-configuration))
         (buffers (mapcar #'bench--buffer (list one two)))
         (ediff-window-setup-function #'ediff-setup-windows-plain)
         (began (progn (garbage-collect) (float-time)))
         panel took)
    (ediff-buffers (car buffers) (cadr buffers)
                   (list (lambda ()
                           (setq panel (current-buffer))
                           (ediff-next-difference))))
    (redisplay t)
    (setq took (- (float-time) began))
    (unless (< 0 (buffer-local-value 'ediff-number-of-differences panel))
      (error "Ediff found no difference"))
    (let ((this-command 'ediff-quit))
      (with-current-buffer panel
        (ediff-really-quit nil)))
    (mapc #'kill-buffer buffers)
    (set-window-configuration windows)
    took))

(defun bench-diff (one two)
  "Return how long diff takes to show the files ONE and TWO."
  (garbage-collect)
  (let ((began (float-time)))
    (save-window-excursion
      (switch-to-buffer (generate-new-buffer "diff"))
      (unless (eql 1 (call-process "diff" nil t nil "-u" one two))
        (error "Diff found no difference"))
      (goto-char (point-min))
      (redisplay t)
      (prog1 (- (float-time) began)
        (set-buffer-modified-p nil)
        (kill-buffer)))))

(provide 'bench-review)
;;; bench-review.el ends here
