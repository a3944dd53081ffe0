;;; gemini-companion-windows-at-once.el --- Several changes of windows in one step  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Code that changes the buffer of a window, or the layout, runs in the macro of this
;; file.  Then only the result is displayed, and a bug of Emacs, which makes it crash
;; in a text terminal, is avoided; doc/emacs-bug.org describes that bug.

;;; Code:

(require 'gemini-companion-garbage)
(require 'seq)
(require 'subr-x)

(defvar gemini-companion-windows-at-once--p nil
  "Non-nil while the body of `gemini-companion-windows-at-once' runs.")

(defmacro gemini-companion-windows-at-once (&rest body)
  "Evaluate BODY, which may change windows, and display only the result.
Return the value of BODY.  BODY must not read from the minibuffer, since the
prompt would not be displayed."
  (declare (indent 0) (debug t))
  `(gemini-companion-windows-at-once--call (lambda () ,@body)))

(defun gemini-companion-windows-at-once--call (function)
  "Call FUNCTION without redisplay and without garbage collection.
If this is nested in another such call, only call FUNCTION."
  (if gemini-companion-windows-at-once--p
      (funcall function)
    (gemini-companion-garbage-later
      (let ((gemini-companion-windows-at-once--p t)
            (inhibit-redisplay t))
        (gemini-companion-windows-at-once--redraw-pending)
        (unwind-protect
            (progn
              ;; `set-window-buffer' runs it.
              (add-hook 'window-scroll-functions
                        #'gemini-companion-windows-at-once--exchanged)
              (funcall function))
          (remove-hook 'window-scroll-functions
                       #'gemini-companion-windows-at-once--exchanged)
          ;; A command of the user may change the layout before the next redisplay.
          (gemini-companion-windows-at-once--redraw-pending))))))

;;;; Strings on the screen of a text terminal

;; In a text terminal, `set-window-buffer' makes Emacs 28 to 30 drop its references
;; to strings of the window that are on the screen, such as its mode line.  The next
;; garbage collection frees them.  If the layout changes before the next redisplay,
;; Emacs reads these strings from its copy of the screen, and crashes in the following
;; collection.  There is no redisplay between the commands of a keyboard macro, or of
;; keys that are typed ahead, so a text frame whose windows have changed is redrawn at
;; the end.
(defun gemini-companion-windows-at-once--exchanged (window _start)
  "Make Emacs restore its references to the screen after WINDOW got a buffer.
To do so, change the layout: add a margin, and remove it.  Nothing is drawn."
  (when-let* ((frame (window-frame window))
              ((tty-top-frame frame))
              ;; The window must be wide enough for a margin.
              (window (minibuffer-window frame))
              (window (if (eq frame (window-frame window))
                          window
                        (frame-first-window frame))))
    (pcase-let ((`(,left . ,right) (window-margins window)))
      (set-window-margins window (if left (1- left) 1) right)
      (set-window-margins window left right))))

(defun gemini-companion-windows-at-once--redraw-pending ()
  "Redraw each text frame whose windows have changed since its last redisplay.
Then Emacs has no references to strings on the screen until the next
redisplay."
  (mapc #'redraw-frame
        (seq-filter #'gemini-companion-windows-at-once--pending-p
                    (frame-list))))

(defun gemini-companion-windows-at-once--pending-p (frame)
  "Return non-nil if windows of FRAME have changed since its last redisplay.
That is so after the previous command of a keyboard macro, for example; the
strings on the screen may already be freed.  Return nil unless FRAME is
visible on a text terminal, and not suspended."
  (and (eq frame (tty-top-frame frame))
       (eq t (frame-visible-p frame))
       (seq-some (lambda (window)
                   (not (and (eq (window-buffer window)
                                 (window-old-buffer window))
                             (eql (window-pixel-width window)
                                  (window-old-pixel-width window))
                             (eql (window-pixel-height window)
                                  (window-old-pixel-height window)))))
                 (window-list frame 'no-minibuffer))))

;;;; Quitting

(defun gemini-companion-quit-window ()
  "Quit the selected window, like `quit-window'."
  (interactive)
  (gemini-companion-windows-at-once
    (quit-window)))

(provide 'gemini-companion-windows-at-once)
;;; gemini-companion-windows-at-once.el ends here
