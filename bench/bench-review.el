;;; bench-review.el --- Reviews, and the same without us  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Shows reviews at once and says when they are on the screen; and shows the same
;; two texts by Ediff or diff alone.  When a clock has stopped, the windows must
;; show the differences.

;;; Code:

(require 'bench)
(require 'ediff)
(require 'gemini-companion)
(require 'gemini-companion-unified)
(require 'seq)

;;;; Screen

(defun bench-review--buffers ()
  "Return the buffers in the windows."
  (mapcar #'window-buffer (window-list)))

(defun bench-review--wait ()
  "Wait until all that is to be on the screen has been made."
  (let (process)
    (while (setq process
                 (seq-some (apply-partially #'buffer-local-value
                                            'gemini-companion-unified--process)
                           (bench-review--buffers)))
      (accept-process-output process 0.01))))

(defun bench-review--kind ()
  "Return how the windows show differences: \"ediff\" or \"diff\".
If they show none, return what is there instead."
  (let ((buffers (bench-review--buffers)))
    (cond ((seq-some #'bench-review--ediff-p buffers) "ediff")
          ((seq-some #'bench-review--diff-p buffers) "diff")
          ;; In parentheses, so that no name of a buffer is one of these.
          (t (format "%s" (mapcar #'buffer-name buffers))))))

(defun bench-review--ediff-p (buffer)
  "Return non-nil if BUFFER is the panel of a session with differences.
Both sides must be in windows."
  (with-current-buffer buffer
    (and (derived-mode-p 'ediff-mode)
         (get-buffer-window ediff-buffer-A)
         (get-buffer-window ediff-buffer-B)
         (< 0 ediff-number-of-differences))))

(defun bench-review--diff-p (buffer)
  "Return non-nil if a hunk of a unified diff is in BUFFER."
  (with-current-buffer buffer
    (save-excursion
      (goto-char (point-min))
      (re-search-forward "^@@ .* @@$" nil t))))

(defun bench-review--check (kind)
  "Signal an error if the windows do not show differences as KIND."
  (unless (equal kind (bench-review--kind))
    (error "No %s is on the screen but: %s" kind (bench-review--kind))))

;;;; Ours

(defun bench-review-now ()
  "Show each review at once and tell when it is on the screen."
  (setq gemini-companion-review-arrival 'now)
  (add-hook 'gemini-companion-diff-opened-functions #'bench-review--shown))

(defun bench-review--shown (_diff)
  "Tell when a review is on the screen, all of it, and of what kind."
  (bench-review--wait)
  (redisplay t)
  (let ((at (float-time)))
    (bench-tell (list at (bench-review--kind)))))

(defun bench-review-accept ()
  "Accept the review that is shown; return when that was pressed."
  (prog1 (float-time)
    (gemini-companion-diff-accept)))

;;;; Comparators

(defun bench-review--buffer (file)
  "Return a new buffer with the text of FILE."
  (with-current-buffer (generate-new-buffer (file-name-nondirectory file))
    (let ((coding-system-for-read 'utf-8-unix))
      (insert-file-contents file))
    (goto-char (point-min))
    (set-buffer-modified-p nil)
    (current-buffer)))

(defun bench-review-ediff (one two)
  "Return how long Ediff takes to show the files ONE and TWO."
  (let* ((windows (current-window-configuration))
         (buffers (mapcar #'bench-review--buffer (list one two)))
         (ediff-window-setup-function #'ediff-setup-windows-plain)
         (began (progn (garbage-collect) (float-time)))
         panel took)
    (ediff-buffers (car buffers) (cadr buffers)
                   (list (lambda ()
                           (setq panel (current-buffer))
                           (ediff-next-difference))))
    (redisplay t)
    (setq took (- (float-time) began))
    (bench-review--check "ediff")
    (let ((this-command 'ediff-quit))
      (with-current-buffer panel
        (ediff-really-quit nil)))
    (mapc #'kill-buffer buffers)
    (set-window-configuration windows)
    took))

(defun bench-review-diff (one two)
  "Return how long diff takes to show the files ONE and TWO."
  (garbage-collect)
  (let ((began (float-time)))
    (save-window-excursion
      (switch-to-buffer (generate-new-buffer "diff"))
      (call-process "diff" nil t nil "-u" one two)
      (goto-char (point-min))
      (redisplay t)
      (prog1 (- (float-time) began)
        (bench-review--check "diff")
        (set-buffer-modified-p nil)
        (kill-buffer)))))

(provide 'bench-review)
;;; bench-review.el ends here
