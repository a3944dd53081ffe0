;;; gemini-companion-windows-at-once.el --- Several changes of windows in one step  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Code that changes the buffer of a window, or the layout, runs in the macro of this
;; file.  Then only the result is displayed.  This also avoids crashes of Emacs in a text
;; terminal; doc/emacs-bug.org describes them.

;;; Code:

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
    (let ((gemini-companion-windows-at-once--p t)
          ;; One collection between two changes of windows may be enough for a crash.
          (gc-cons-threshold most-positive-fixnum)
          (inhibit-redisplay t))
      (gemini-companion-windows-at-once--forget-screens)
      (unwind-protect
          (funcall function)
        (gemini-companion-windows-at-once--forget-screens)))))

;;;; Strings on the screen of a text terminal

;; In a text terminal, `set-window-buffer' makes Emacs 28 to 30 drop its references
;; to strings of the window that are on the screen, such as its mode line.  The next
;; garbage collection frees them.  If the layout changes before the next redisplay,
;; Emacs reads these strings from its copy of the screen, and crashes in the following
;; collection.  There is no redisplay between the commands of a keyboard macro, or of
;; keys that are typed ahead.  So Emacs gives up its copy of the screen: before FUNCTION
;; because of earlier commands, after it because of FUNCTION.
(defun gemini-companion-windows-at-once--forget-screens ()
  "Make Emacs give up its copy of the screen of each text frame.
The next redisplay draws the whole frame.  The function `redraw-frame' would
clear the screen, and a message after it would make Emacs crash."
  (dolist (frame (frame-list))
    (when (eq t (framep frame))
      ;; Emacs keeps no copy while a window has a margin.
      (let ((window (frame-first-window frame)))
        (pcase-let ((`(,left . ,right) (window-margins window)))
          (set-window-margins window (if left (1- left) 1) right)
          (set-window-margins window left right))))))

;;;; Quitting

(defun gemini-companion-quit-window ()
  "Quit the selected window, like `quit-window'."
  (interactive)
  (gemini-companion-windows-at-once
    (quit-window)))

(provide 'gemini-companion-windows-at-once)
;;; gemini-companion-windows-at-once.el ends here
