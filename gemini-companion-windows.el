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
(require 'subr-x)

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

(defconst gemini-companion-windows--side-columns 160
  "Number of columns from which a review gets the right half of a frame.")

(defconst gemini-companion-windows--least-columns 60
  "Least width of a part of a frame that is used for a review.")

(defconst gemini-companion-windows--kept-lines 4
  "Least height of the window in use while a review is shown.")

(defun gemini-companion-windows-make-room (buffer lines &optional keep)
  "Show BUFFER in a window of the selected frame, and return that window.
The window becomes the only one and is selected.  If KEEP is
non-nil, the window in use stays visible and selected.  Return nil
if there is no room for a window of LINES."
  (let* ((ignore-window-parameters t)
         (window-min-height 1)
         (window (if keep
                     (gemini-companion-windows--beside
                      (gemini-companion-windows-in-use) lines)
                   (and (<= lines (window-total-height (frame-root-window)))
                        (frame-first-window (window-main-window))))))
    (when window
      (set-window-dedicated-p window nil)
      (set-window-buffer window buffer)
      (unless keep
        ;; Another file never gets the focus meanwhile.
        (select-window window)
        (delete-other-windows))
      window)))

(defun gemini-companion-windows-in-use ()
  "Return the selected window, or the one selected before the minibuffer."
  (cond ((not (window-minibuffer-p)) (selected-window))
        ((minibuffer-selected-window))
        (t (frame-first-window (window-main-window)))))

(defun gemini-companion-windows--beside (window lines)
  "Return a window of LINES or more beside WINDOW, or nil.
It takes the largest part of the frame that does not contain
WINDOW, or if none is large enough, most of the frame."
  (let ((part (gemini-companion-windows--largest-part window lines))
        (height (window-total-height (frame-root-window)))
        (width (window-total-width (frame-root-window))))
    (cond (part
           (gemini-companion-windows--merge part))
          ((and (<= lines height)
                (<= gemini-companion-windows--side-columns width))
           (delete-other-windows window)
           (split-window window nil 'right))
          ((<= (+ lines gemini-companion-windows--kept-lines) height)
           (delete-other-windows window)
           (split-window window (- (max lines (/ (* 2 height) 3)))
                         'below)))))

(defun gemini-companion-windows--largest-part (window lines)
  "Return the largest part of the frame without WINDOW, or nil.
It has room for LINES."
  (let (parts)
    (while (window-parent window)
      (let ((part (window-child (window-parent window))))
        (while part
          (when (and (not (eq part window))
                     (gemini-companion-windows-fits-p part lines))
            (push part parts))
          (setq part (window-next-sibling part))))
      (setq window (window-parent window)))
    (car (seq-sort-by (lambda (part)
                        (* (window-total-height part)
                           (window-total-width part)))
                      #'> parts))))

(defun gemini-companion-windows-fits-p (part lines)
  "Return non-nil if PART of a frame has LINES and enough columns."
  (and (<= lines (window-total-height part))
       (<= gemini-companion-windows--least-columns
           (window-total-width part))))

(defun gemini-companion-windows--merge (part)
  "Delete all windows but one in PART of a frame, and return that one."
  (let (windows)
    (walk-window-subtree (lambda (window) (push window windows)) part)
    (mapc #'delete-window (cdr windows))
    (car windows)))

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

(defun gemini-companion-windows-restore (layout &optional buffers)
  "Lay the frame of LAYOUT out as it was.
A terminal has written on meanwhile, and its windows follow it.
If BUFFERS, those of a review, are given, a window that shows
another one keeps that, its point, and the selection: the user
may have worked there meanwhile."
  (pcase-let* ((`(,configuration (,selected ,point) ,histories ,following)
                layout)
               (frame (window-configuration-frame configuration)))
    (when (frame-live-p frame)
      (let ((kept (and buffers
                       (gemini-companion-windows--kept frame buffers)))
            (last (frame-selected-window frame)))
        (set-window-configuration configuration
                                  (not (eq frame (selected-frame))))
        (when (and (window-live-p selected)
                   (eq (marker-buffer point) (window-buffer selected)))
          (set-window-point selected point))
        (pcase-dolist (`(,window ,previous ,next) histories)
          (when (and (window-live-p window) (not (assq window kept)))
            (set-window-prev-buffers window previous)
            (set-window-next-buffers window next)))
        (dolist (window (seq-filter #'window-live-p following))
          (set-window-point window
                            (with-current-buffer (window-buffer window)
                              (point))))
        (pcase-dolist (`(,window . ,place) kept)
          (when (window-live-p window)
            (apply #'gemini-companion-windows--put-back window place)))
        (when (and (assq last kept) (window-live-p last))
          (set-frame-selected-window frame last 'norecord))))))

(defun gemini-companion-windows--kept (frame buffers)
  "Return the windows of FRAME that show none of BUFFERS.
The value is a list of (WINDOW BUFFER START POINT)."
  (mapcar (lambda (window)
            (list window (window-buffer window)
                  (window-start window) (window-point window)))
          (seq-remove (lambda (window)
                        (memq (window-buffer window) buffers))
                      (window-list frame 'no-minibuffer))))

(defun gemini-companion-windows--put-back (window buffer start point)
  "Show BUFFER in WINDOW from START on, with point at POINT.
If WINDOW shows BUFFER already, leave its start."
  (unless (eq buffer (window-buffer window))
    (set-window-buffer window buffer)
    (set-window-start window start))
  (set-window-start window (window-start window) 'noforce)
  (set-window-point window point))

;;;; Leaving

(defun gemini-companion-windows-shown-p (layout buffers windows)
  "Return non-nil if one of BUFFERS is where LAYOUT was taken.
That is on its frame, and if that has tabs, on the one with
WINDOWS, or with those of LAYOUT; other tabs have other windows."
  (let ((frame (gemini-companion-windows-layout-frame layout)))
    (and (frame-live-p frame)
         (or (not (gemini-companion-windows--tabs-p frame))
             (seq-some #'window-live-p
                       (append windows (mapcar #'car (nth 2 layout)))))
         (seq-some (lambda (buffer) (get-buffer-window buffer frame))
                   buffers))))

(defun gemini-companion-windows--tabs-p (frame)
  "Return non-nil if FRAME has several tabs."
  (cdr (frame-parameter frame 'tabs)))

(defun gemini-companion-windows-leave (layout buffers windows)
  "Restore LAYOUT now if one of BUFFERS is where it was taken.
If none is, the user may have moved to another tab; then do it
when one of WINDOWS, where they were, is on the frame again.
Elsewhere only the windows that were made for BUFFERS go."
  (cond ((gemini-companion-windows-shown-p layout buffers windows)
         (gemini-companion-windows--restore-around layout buffers))
        ((let ((frame (gemini-companion-windows-layout-frame layout)))
           (and (frame-live-p frame) (gemini-companion-windows--tabs-p frame)))
         (gemini-companion-windows--restore-later layout windows)))
  ;; None of them takes the place of another.
  (mapc #'bury-buffer (seq-filter #'buffer-live-p buffers))
  (dolist (buffer buffers)
    (mapc #'quit-restore-window (get-buffer-window-list buffer nil t))))

(defun gemini-companion-windows--restore-around (layout buffers)
  "Restore LAYOUT from a review in BUFFERS.
If the user is in a window that LAYOUT does not have, its buffer
stays selected, too."
  (let* ((frame (gemini-companion-windows-layout-frame layout))
         (window (frame-selected-window frame))
         (buffer (window-buffer window))
         (point (window-point window)))
    (gemini-companion-windows-restore layout buffers)
    (unless (or (window-live-p window) (memq buffer buffers))
      (with-selected-frame frame
        (setq window (display-buffer buffer '(nil (inhibit-switch-frame . t)))))
      (when window
        (set-window-point window point)
        (set-frame-selected-window frame window)))))

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
