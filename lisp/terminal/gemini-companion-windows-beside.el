;;; gemini-companion-windows-beside.el --- Buffers beside the terminals of CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The overview, a permission and the files that they name are displayed in windows that
;; hide neither the terminal of a CLI nor, if they appear by themselves, the selected
;; window.

;;; Code:

(require 'gemini-companion-session)
(require 'gemini-companion-windows)

;;;; What the user asks for

(defun gemini-companion-windows-beside--terminal (session &optional frame)
  "Return the window of the terminal of SESSION, or nil.
Search FRAME, by default the selected frame."
  (when-let* ((buffer (gemini-companion-session-terminal session)))
    (get-buffer-window buffer frame)))

(defun gemini-companion-windows-beside--free (kept)
  "Return the windows of the selected frame that may display another buffer.
Windows in KEPT, dedicated ones, side windows, and those of the terminals of
CLIs are not among them."
  (let ((terminals (mapcar #'gemini-companion-session-terminal
                           (gemini-companion-sessions))))
    (seq-remove (lambda (window)
                  (or (memq window kept)
                      (memq (window-buffer window) terminals)
                      (window-dedicated-p window)
                      (window-parameter window 'window-side)))
                (window-list nil 'no-minibuffer))))

(defun gemini-companion-windows-beside-cover (buffer _alist)
  "Display BUFFER in the least recently used window that hides no CLI.
Return nil if there is none, or if the frame displays no terminal of a CLI.
This is an action function of `display-buffer'."
  (when-let* (((seq-some #'gemini-companion-windows-beside--terminal
                         (gemini-companion-sessions)))
              (window (car (seq-sort-by #'window-use-time #'<
                                        (gemini-companion-windows-beside--free nil)))))
    (gemini-companion-windows-beside--fill window buffer)))

(defun gemini-companion-windows-beside--fill (window buffer)
  "Display BUFFER in WINDOW, so that it can be quit, and return WINDOW."
  (display-buffer-record-window 'reuse window buffer)
  (set-window-buffer window buffer)
  window)

(defun gemini-companion-windows-beside-replace (buffer alist)
  "Display BUFFER in place of another buffer of its kind, if there is one.
The function `instead-of' in ALIST returns non-nil for the window of that
buffer.  Quitting BUFFER then has the same effect as quitting the other buffer
would have had.  This is an action function of `display-buffer'."
  (when-let* ((window (seq-find
                       (lambda (window)
                         (and (funcall (alist-get 'instead-of alist) window)
                              (not (window-dedicated-p window))
                              (not (and (alist-get 'inhibit-same-window alist)
                                        (eq window (selected-window))))))
                       (window-list-1 nil 'no-minibuffer 'visible))))
    (let ((previous (window-buffer window)))
      (set-window-buffer window buffer)
      ;; A window with a previous buffer is not deleted by quitting it.
      (set-window-prev-buffers window (assq-delete-all
                                       previous (window-prev-buffers window)))
      (dolist (parameter gemini-companion-windows-quit-parameters)
        (pcase (window-parameter window parameter)
          (`(,how ,what ,selected ,(pred (eq previous)))
           (set-window-parameter window parameter
                                 (list how what selected buffer))))))
    window))

(defun gemini-companion-windows-beside-show (buffer display)
  "Show BUFFER by the function DISPLAY, but not in the selected window.
DISPLAY is `pop-to-buffer' or `display-buffer'.  Do not hide the terminal of a
CLI."
  (funcall display buffer
           '((display-buffer-reuse-window
              gemini-companion-windows-beside--display)
             (category . gemini-companion-file)
             (inhibit-same-window . t))))

(defun gemini-companion-windows-beside--display (buffer alist)
  "Display BUFFER beside the terminal of a CLI, if the frame displays one.
This is an action function of `display-buffer' with ALIST."
  (when (seq-some #'gemini-companion-windows-beside--terminal (gemini-companion-sessions))
    (if-let* ((window (car (gemini-companion-windows-beside--free
                            (list (selected-window))))))
        (gemini-companion-windows-beside--fill window buffer)
      (display-buffer-below-selected buffer alist))))

;;;; What appears by itself

(defun gemini-companion-windows-beside-frame (session)
  "Return the frame on which something of SESSION may appear by itself.
It displays the terminal of SESSION, or else is the selected one.  It is visible
on its terminal."
  (or (seq-find (lambda (frame)
                  (and (eq t (frame-visible-p frame))
                       (not (frame-parameter frame 'parent-frame))
                       (or (display-graphic-p frame)
                           (eq frame (tty-top-frame frame)))
                       (gemini-companion-windows-beside--terminal session frame)))
                (cons (selected-frame) (frame-list)))
      (selected-frame)))

(defun gemini-companion-windows-beside-appear (buffer file)
  "Display BUFFER on the selected frame, without selecting it.
Return its window, or nil if there is none.  Prefer a window of FILE, a buffer
or nil; never use the selected window, a terminal of a CLI, a dedicated or a
side window, and make no window.  The user option `display-buffer-alist' takes
precedence."
  (let* ((ours
          (lambda (buffer _alist)
            (when-let* ((free (seq-filter
                               (lambda (window)
                                 (<= gemini-companion-windows-lines
                                     (window-body-height window)))
                               (gemini-companion-windows-beside--free
                                (list (or (minibuffer-selected-window)
                                          (selected-window)))))))
              (gemini-companion-windows-beside--fill
               (or (seq-find (lambda (window) (eq file (window-buffer window)))
                             free)
                   (car (seq-sort-by (lambda (window)
                                       (* (window-total-width window)
                                          (window-total-height window)))
                                     #'> free)))
               buffer))))
         (window (display-buffer
                  buffer `((display-buffer-reuse-window
                            ,ours
                            ;; Emacs would use the selected window, or a new frame.
                            ,(lambda (_buffer _alist) 'fail))
                           (category . gemini-companion-overview)
                           (inhibit-switch-frame . t)
                           (inhibit-same-window . t)))))
    (and (windowp window) window)))

(provide 'gemini-companion-windows-beside)
;;; gemini-companion-windows-beside.el ends here
