;;; bench-review.el --- Reviews, and the same texts without them  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Shows reviews and reports when they are on the screen, and when the written file
;; is in its buffer; and shows the same two texts by Ediff alone.  At the end
;; of a measurement the windows must show all differences.

;;; Code:

(require 'bench)
(require 'ediff)
(require 'gemini-companion)
(require 'seq)

(defconst bench-review--bound 30
  "Seconds after which a review that is not displayed is an error.")

(declare-function gemini-companion-edit-accept "gemini-companion-edit")
(declare-function gemini-companion-edit-reject "gemini-companion-edit")
(declare-function gemini-companion-edits-open "gemini-companion-edit")
(defvar gemini-companion-review-arrival)

;;;; Screen

(defun bench-review--kind ()
  "Return how the windows show differences: \"ediff\", \"diff\" or nil."
  (cond ((seq-some #'bench-review--ediff-p (buffer-list)) "ediff")
        ((seq-some (lambda (window)
                     (bench-review--diff-p (window-buffer window)))
                   (window-list))
         "diff")))

(defun bench-review--ediff-p (buffer)
  "Return non-nil if BUFFER is the panel of a session with differences.
Both sides must be in windows."
  (with-current-buffer buffer
    (and (derived-mode-p 'ediff-mode)
         (get-buffer-window ediff-buffer-A)
         (get-buffer-window ediff-buffer-B)
         (< 0 ediff-number-of-differences))))

(defun bench-review--diff-p (buffer)
  "Return non-nil if a unified diff with its hunks is in BUFFER."
  (with-current-buffer buffer
    (text-property-not-all (point-min) (point-max)
                           'gemini-companion-hunk nil)))

(defun bench-review--displayed ()
  "Wait until differences are on the screen; return when, and their kind."
  (let ((end (+ (float-time) bench-review--bound))
        kind)
    (while (not (setq kind (bench-review--kind)))
      (when (< end (float-time))
        (error "No difference is on the screen but: %s"
               (mapcar #'window-buffer (window-list))))
      (accept-process-output nil 0.01))
    (redisplay t)
    (list (float-time) kind)))

;;;; Ours

(defun bench-review-report (arrival)
  "Report when a review is on the screen; ARRIVAL is how it arrives.
That is a value of `gemini-companion-review-arrival'."
  (setq gemini-companion-review-arrival arrival)
  (add-hook 'gemini-companion-edit-opened-functions #'bench-review--shown))

(defun bench-review--shown (_diff)
  "Report when a review is on the screen, all of it, and of what kind."
  (bench-report (bench-review--displayed)))

(defun bench-review-accept ()
  "Accept the displayed review; return the time of the call."
  (prog1 (float-time)
    (gemini-companion-edit-accept)))

;;;; Writing

(defun bench-review-follow (file new)
  "Report when the text of the file NEW is in the buffer that visits FILE."
  (let ((text (with-temp-buffer
                (insert-file-contents new)
                (buffer-string)))
        (buffer (find-buffer-visiting file))
        timer)
    (setq timer (run-at-time 0 0.002
                             (lambda ()
                               (when (bench-review--current-p buffer text)
                                 (cancel-timer timer)
                                 (bench-report (float-time))))))
    nil))

(defun bench-review--current-p (buffer text)
  "Return non-nil if TEXT is in BUFFER and in its file."
  (with-current-buffer buffer
    (and (not (buffer-modified-p))
         (= (buffer-size) (length text))
         (string= (buffer-string) text)
         (verify-visited-file-modtime buffer))))

;;;; Comparators

(defun bench-review-alone (old new)
  "Return how many seconds it takes to display the files OLD and NEW.
Both texts are in buffers, where the proposal could be edited."
  (garbage-collect)
  (let* ((windows (current-window-configuration))
         (began (float-time))
         (buffers (mapcar #'bench-review--buffer (list old new)))
         (end (apply #'bench-review--ediff buffers)))
    (prog1 (- (car (bench-review--displayed)) began)
      (funcall end)
      (mapc #'kill-buffer buffers)
      (set-window-configuration windows))))

(defun bench-review--ediff (old new)
  "Start Ediff on the buffers OLD and NEW; return a function that ends it."
  (let ((ediff-window-setup-function #'ediff-setup-windows-plain)
        panel)
    (ediff-buffers old new
                   (list (lambda ()
                           (setq panel (current-buffer))
                           (ediff-next-difference))))
    (lambda ()
      (let ((this-command 'ediff-quit))
        (with-current-buffer panel
          (ediff-really-quit nil))))))

(defun bench-review--buffer (file)
  "Return a new buffer with the text of FILE."
  (with-current-buffer (generate-new-buffer (file-name-nondirectory file))
    (let ((coding-system-for-read 'utf-8-unix))
      (insert-file-contents file))
    (goto-char (point-min))
    (set-buffer-modified-p nil)
    (current-buffer)))

(provide 'bench-review)
;;; bench-review.el ends here
