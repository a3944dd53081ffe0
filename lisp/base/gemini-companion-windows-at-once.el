;;; gemini-companion-windows-at-once.el --- Several changes of windows in one step  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; All that gives a window another buffer, or changes the layout, does so in the
;; macro of this file: only the result is displayed, and Emacs does not crash in a
;; text terminal.  doc/emacs-bug.org reports why it otherwise does.

;;; Code:

(require 'gemini-companion-garbage)
(require 'seq)
(require 'subr-x)

(defvar gemini-companion-windows-at-once--p nil
  "Non-nil while the body of `gemini-companion-windows-at-once' runs.")

(defmacro gemini-companion-windows-at-once (&rest body)
  "Change windows by BODY, and display only the result.
Return the value of BODY.  It must not read from the minibuffer, as the
prompt would not be displayed."
  (declare (indent 0) (debug t))
  `(gemini-companion-windows-at-once--call (lambda () ,@body)))

(defun gemini-companion-windows-at-once--call (function)
  "Call FUNCTION without a redisplay, and without a collection of garbage.
In a call inside of another, only call FUNCTION."
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

;; In a text terminal, `set-window-buffer' makes Emacs 28 to 30 forget which
;; strings of the window are on the screen, such as its mode line.  The next
;; collection frees them.  If the layout changes before the next redisplay, Emacs
;; takes what it has forgotten from the screen again, with the strings that are
;; freed, and crashes in the collection after that.  Between the commands of a
;; keyboard macro, or of keys that are typed ahead, there is no redisplay, so a
;; text frame whose windows have changed is redrawn at the end.
(defun gemini-companion-windows-at-once--exchanged (window _start)
  "Make Emacs know what is on the screen, as WINDOW got a buffer.
As far as Emacs knows, the layout changes: a margin appears, and
disappears.  Nothing is drawn for that."
  (when-let* ((frame (window-frame window))
              ((tty-top-frame frame))
              ;; The window must have room for a margin.
              (window (minibuffer-window frame))
              (window (if (eq frame (window-frame window))
                          window
                        (frame-first-window frame))))
    (pcase-let ((`(,left . ,right) (window-margins window)))
      (set-window-margins window (if left (1- left) 1) right)
      (set-window-margins window left right))))

(defun gemini-companion-windows-at-once--redraw-pending ()
  "Redraw each text frame whose windows have changed since it was drawn.
After that, Emacs knows of no strings on its screen until the next
redisplay."
  (mapc #'redraw-frame
        (seq-filter #'gemini-companion-windows-at-once--pending-p
                    (frame-list))))

(defun gemini-companion-windows-at-once--pending-p (frame)
  "Return non-nil if FRAME has other windows than it had when it was drawn.
So it is after another command of a keyboard macro, for example; the
strings on the screen may be freed already.  FRAME is visible on a text
terminal, and not suspended."
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
  "Quit this window, as `quit-window' does."
  (interactive)
  (gemini-companion-windows-at-once
    (quit-window)))

(provide 'gemini-companion-windows-at-once)
;;; gemini-companion-windows-at-once.el ends here
