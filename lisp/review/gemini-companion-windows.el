;;; gemini-companion-windows.el --- Where a review is displayed  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A review takes the whole frame, and restores its window configuration at its end.
;;
;; Files whose names do not begin with that of this file create, delete and resize
;; windows, and set their buffers, only by `display-buffer'.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)

;;;; State

(defconst gemini-companion-windows-side-columns 80
  "Minimum width of each of two windows beside each other.")

(defconst gemini-companion-windows-review-lines 20
  "Minimum height of a frame for a review with two texts.")

(defconst gemini-companion-windows-lines 8
  "Minimum height of a window in which the overview appears by itself.
It is also that of a frame in which something is displayed.")

(defconst gemini-companion-windows--columns 40
  "Minimum width of a frame in which something is displayed.")

(defconst gemini-companion-windows-quit-parameters
  '(quit-restore quit-restore-prev)
  "Parameters of a window that determine the effect of quitting it.
Emacs 31 saves the first one in the second one if the window displays another
buffer; earlier versions overwrite the first one.")

;;;; A review

(defun gemini-companion-windows-configuration ()
  "Return the window configuration of the selected frame, a cons.
Its cdr is an alist from windows to their previous and next buffers, which Emacs
does not save: a window that a review has used would not be deleted by quitting."
  (let ((window-persistent-parameters
         ;; Emacs saves only these parameters.  Without them, restored windows would
         ;; not be atomic, and quitting *Help* would not delete its window.
         `((window-atom . t)
           ,@(mapcar (lambda (parameter) (cons parameter t))
                     gemini-companion-windows-quit-parameters)
           ,@window-persistent-parameters)))
    (cons (current-window-configuration)
          (mapcar (lambda (window)
                    (list window (window-prev-buffers window)
                          (window-next-buffers window)))
                  (window-list nil 'no-minibuffer)))))

(defun gemini-companion-windows-clear ()
  "Make a window the only one of the selected frame, and select it.
It is no side window, and may then be split, and display any buffer."
  (gemini-companion-windows-forget-screen)
  (let ((ignore-window-parameters t))
    (select-window (seq-find (lambda (window)
                               (not (window-parameter window 'window-side)))
                             (window-list nil 'no-minibuffer)))
    (delete-other-windows)
    (set-window-parameter nil 'window-atom nil)
    (set-window-dedicated-p nil nil)))

(defun gemini-companion-windows-calling (function)
  "Call FUNCTION, which may arrange windows, restore them, and return its value."
  (let ((configuration (gemini-companion-windows-configuration)))
    (unwind-protect
        (funcall function)
      (gemini-companion-windows--set configuration))))

(defun gemini-companion-windows--set (configuration)
  "Set the windows of its frame to CONFIGURATION; the selected frame stays.
It is a value of `gemini-companion-windows-configuration'."
  (set-window-configuration (car configuration) 'dont-set-frame)
  (pcase-dolist (`(,window ,previous ,next) (cdr configuration))
    (when (window-live-p window)
      (set-window-prev-buffers window previous)
      (set-window-next-buffers window next))))

(defun gemini-companion-windows-restore (configuration)
  "Restore CONFIGURATION; windows of terminals follow the output.
For CONFIGURATION, see `gemini-companion-windows--set'."
  ;; Point follows in a buffer without a window; eat does not move the process mark.
  (let ((ends (mapcar (lambda (buffer)
                        (cons buffer (with-current-buffer buffer (point))))
                      (seq-filter #'get-buffer-process (buffer-list)))))
    (gemini-companion-windows--set configuration)
    (dolist (window (window-list (window-configuration-frame (car configuration))
                                 'no-minibuffer))
      (when-let* ((end (alist-get (window-buffer window) ends)))
        (set-window-point window end)))))

(defun gemini-companion-windows-show-p (windows buffers)
  "Return non-nil if WINDOWS, at least one, still display BUFFERS.
They must be in the current tab of their frame."
  (and windows
       (seq-every-p (lambda (window)
                      (and (window-live-p window)
                           (memq (window-buffer window) buffers)))
                    windows)))

(defun gemini-companion-windows-close (configuration buffers windows)
  "End the display of a review in BUFFERS.
If WINDOWS still display BUFFERS, restore CONFIGURATION, the windows of their
frame before the review.  Otherwise only quit the windows of BUFFERS, as on
other frames."
  (let ((frame (and (gemini-companion-windows-show-p windows buffers)
                    (window-configuration-frame (car configuration)))))
    ;; A window that quits must not display the next one of BUFFERS.
    (mapc #'bury-buffer buffers)
    (dolist (buffer buffers)
      (dolist (window (get-buffer-window-list buffer nil t))
        (unless (eq frame (window-frame window))
          (set-window-dedicated-p window nil)
          (if (eq window (selected-window))
              (quit-restore-window)
            (with-selected-window window
              (quit-restore-window))))))
    (when frame
      (gemini-companion-windows-restore configuration))
    (gemini-companion-windows-forget-screen frame)))

(defun gemini-companion-windows-select-room ()
  "Select another frame of the display if nothing has room in the selected one.
That is so in the control panel of an Ediff session in a frame of its own."
  (cl-flet ((room-p (frame)
              (and (eq t (frame-visible-p frame))
                   (eq (frame-terminal frame) (frame-terminal))
                   (<= gemini-companion-windows-lines (frame-height frame))
                   (<= gemini-companion-windows--columns (frame-width frame)))))
    (unless (room-p (selected-frame))
      (when-let* ((frame (seq-find #'room-p (frame-list))))
        (select-frame-set-input-focus frame)))))

;;;; Strings on the screen of a text terminal

;; In a text terminal, `set-window-buffer' makes Emacs 28 to 30 drop its references to
;; strings of the window that are on the screen, such as its mode line.  The next
;; collection of garbage frees them.  If the layout changes before the next redisplay,
;; Emacs reads these strings from its copy of the screen, and crashes in the following
;; collection.  There is no redisplay between keys that are typed ahead.
(defun gemini-companion-windows-forget-screen (&optional frame)
  "Make Emacs give up its copy of the screen of FRAME, by default the selected one.
Ediff changes the layout at its start, and its end changes it back."
  ;; Emacs keeps no copy while a window has a margin.
  (let* ((window (frame-first-window frame))
         (margins (window-margins window)))
    (set-window-margins window (1+ (or (car margins) 0)) (cdr margins))
    (set-window-margins window (car margins) (cdr margins))))

(provide 'gemini-companion-windows)
;;; gemini-companion-windows.el ends here
