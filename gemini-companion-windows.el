;;; gemini-companion-windows.el --- Windows of a frame, as they were  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software; you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.

;; This program is distributed in the hope that it will be useful,
;; but WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
;; GNU General Public License for more details.

;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; A review takes a frame for a while, and afterwards all windows are as they
;; were before.  How the layout of a frame is kept and comes back, also when
;; the person has moved to another tab meanwhile, and which frame a review
;; belongs to.  Nothing here knows what is shown in the meantime.

;;; Code:

(require 'seq)

(defvar gemini-companion-windows--left nil
  "Layouts to restore when the person comes back to their tab.
An alist of a window of a review that ended meanwhile, and what
`gemini-companion-windows-layout' returned.")

;;;; Frame

(defun gemini-companion-windows-frame (buffers)
  "Return the frame for a review: one with one of BUFFERS on it.
That is the selected frame if it is such a one, and if none is.
A daemon has frames on several terminals, and a frame may have no
room for a review."
  (let ((frames (seq-filter #'gemini-companion-windows--roomy-p
                            (cons (selected-frame)
                                  (seq-filter
                                   #'gemini-companion-windows--seen-p
                                   (frame-list))))))
    (or (seq-find (lambda (frame)
                    (seq-some (lambda (buffer) (get-buffer-window buffer frame))
                              buffers))
                  frames)
        (car frames)
        (selected-frame))))

(defun gemini-companion-windows--roomy-p (frame)
  "Return non-nil if FRAME is no child and more than a minibuffer."
  (not (or (frame-parameter frame 'parent-frame)
           (eq 'only (frame-parameter frame 'minibuffer)))))

(defun gemini-companion-windows--seen-p (frame)
  "Return non-nil if a person can see FRAME, on whatever terminal."
  (and (eq t (frame-visible-p frame))
       (not (equal "initial_terminal" (terminal-name (frame-terminal frame))))
       (or (display-graphic-p frame)
           (eq frame (tty-top-frame frame)))))

(defun gemini-companion-windows-in-frame (frame function)
  "Call FUNCTION with FRAME selected, without taking another frame's focus."
  (if (eq frame (selected-frame))
      (funcall function)
    (with-selected-frame frame
      (funcall function))))

(defun gemini-companion-windows-make-room (buffer)
  "Show BUFFER in a window that can become the only one, and select it.
Return that window.  Another file never gets the focus meanwhile."
  (let ((window (frame-first-window (window-main-window))))
    (set-window-dedicated-p window nil)
    (set-window-buffer window buffer)
    (select-window window)))

;;;; Layout

(defun gemini-companion-windows-layout (frame)
  "Return the layout of FRAME, for `gemini-companion-windows-restore'."
  (list (current-window-configuration frame)
        ;; A configuration does not keep point in the selected window, if
        ;; others show the same buffer.
        (let ((window (frame-selected-window frame)))
          (list window (set-marker (make-marker) (window-point window)
                                   (window-buffer window))))
        ;; Nor the histories of the windows.
        (mapcar (lambda (window)
                  (list window (window-prev-buffers window)
                        (window-next-buffers window)))
                (window-list frame 'no-minibuffer))
        (seq-filter #'gemini-companion-windows--following-p
                    (window-list frame 'no-minibuffer))))

(defun gemini-companion-windows-layout-frame (layout)
  "Return the frame of LAYOUT, which may be dead."
  (window-configuration-frame (car layout)))

(defun gemini-companion-windows--following-p (window)
  "Return non-nil if the point of WINDOW is where its process writes."
  (let ((buffer (window-buffer window)))
    (and (get-buffer-process buffer)
         (= (window-point window)
            (with-current-buffer buffer (point))))))

(defun gemini-companion-windows-restore (layout)
  "Lay the frame of LAYOUT out as it was.
A terminal has written on meanwhile, and its windows follow it."
  (pcase-let* ((`(,configuration (,selected ,point) ,histories ,following)
                layout)
               (frame (window-configuration-frame configuration)))
    (when (frame-live-p frame)
      (set-window-configuration configuration
                                (not (eq frame (selected-frame))))
      (when (and (window-live-p selected)
                 (eq (marker-buffer point) (window-buffer selected)))
        (set-window-point selected point))
      (pcase-dolist (`(,window ,previous ,next) histories)
        (when (window-live-p window)
          (set-window-prev-buffers window previous)
          (set-window-next-buffers window next)))
      (dolist (window (seq-filter #'window-live-p following))
        (set-window-point window
                          (with-current-buffer (window-buffer window)
                            (point)))))))

;;;; Leaving

(defun gemini-companion-windows-shown-p (layout buffers windows)
  "Return non-nil if one of BUFFERS is where LAYOUT was taken.
That is on its frame, and on the tab with WINDOWS, or with those
of LAYOUT; other tabs have other windows."
  (let ((frame (gemini-companion-windows-layout-frame layout)))
    (and (frame-live-p frame)
         (seq-some #'window-live-p
                   (append windows (mapcar #'car (nth 2 layout))))
         (seq-some (lambda (buffer) (get-buffer-window buffer frame))
                   buffers))))

(defun gemini-companion-windows-leave (layout buffers windows)
  "Restore LAYOUT now if one of BUFFERS is where it was taken.
If none is, the person may have moved to another tab; then do it
when one of WINDOWS, where they were, is on the frame again.
Elsewhere only the windows that were made for BUFFERS go."
  (cond ((gemini-companion-windows-shown-p layout buffers windows)
         (gemini-companion-windows-restore layout))
        ((let ((frame (gemini-companion-windows-layout-frame layout)))
           (and (frame-live-p frame) (cdr (frame-parameter frame 'tabs))))
         (gemini-companion-windows--restore-later layout windows)))
  ;; None of them takes the place of another.
  (mapc #'bury-buffer (seq-filter #'buffer-live-p buffers))
  (dolist (buffer buffers)
    (mapc #'quit-restore-window (get-buffer-window-list buffer nil t))))

(defun gemini-companion-windows--restore-later (layout windows)
  "Restore LAYOUT when one of WINDOWS is live again."
  (push (cons windows layout) gemini-companion-windows--left)
  (add-hook 'window-configuration-change-hook
            #'gemini-companion-windows--restore-left))

(defun gemini-companion-windows--restore-left ()
  "Restore the layout of a tab that the person has come back to."
  (when-let* ((left (seq-find (lambda (left)
                                (seq-some #'window-live-p (car left)))
                              gemini-companion-windows--left)))
    (setq gemini-companion-windows--left
          (delq left gemini-companion-windows--left))
    (let ((substitutes (gemini-companion-windows--substitutes (car left))))
      (gemini-companion-windows-restore (cdr left))
      (mapc #'kill-buffer substitutes))
    (unless gemini-companion-windows--left
      (gemini-companion-windows-forget))))

(defun gemini-companion-windows--substitutes (windows)
  "Return what stands in WINDOWS in place of buffers that are dead.
Emacs 30 makes a buffer for each when a tab is selected."
  (seq-filter (lambda (buffer)
                (string-prefix-p " *Old buffer " (buffer-name buffer)))
              (seq-uniq (mapcar #'window-buffer
                                (seq-filter #'window-live-p windows)))))

(defun gemini-companion-windows-forget ()
  "Forget the layouts of tabs that the person has not come back to."
  (setq gemini-companion-windows--left nil)
  (remove-hook 'window-configuration-change-hook
               #'gemini-companion-windows--restore-left))

(provide 'gemini-companion-windows)
;;; gemini-companion-windows.el ends here
