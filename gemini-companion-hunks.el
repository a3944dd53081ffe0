;;; gemini-companion-hunks.el --- Hunks excluded from a proposal  -*- lexical-binding: t; -*-

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

;; A hunk is excluded from a proposal by copying the original over it.  An
;; overlay in the proposal buffer keeps both texts, to restore it and to know
;; that it is excluded, in each view.  Undoing that, or editing what was
;; copied, ends it.

;;; Code:

(require 'seq)

(defun gemini-companion-hunks-text (beg end)
  "Return the text from BEG to END, which need not be visible."
  (save-restriction
    (widen)
    (buffer-substring-no-properties beg end)))

(defun gemini-companion-hunks-excluded-p (overlay)
  "Return non-nil if the hunk of OVERLAY is excluded."
  (string= (overlay-get overlay 'gemini-companion-original)
           (with-current-buffer (overlay-buffer overlay)
             (gemini-companion-hunks-text (overlay-start overlay)
                                          (overlay-end overlay)))))

(defun gemini-companion-hunks-excluded ()
  "Return the overlays of the excluded hunks of the current buffer.
Delete those of hunks that are not excluded any more."
  (seq-filter (lambda (overlay)
                (or (gemini-companion-hunks-excluded-p overlay)
                    (delete-overlay overlay)))
              (gemini-companion-hunks-overlays)))

(defun gemini-companion-hunks-overlays (&optional beg end)
  "Return the overlays of hunks from BEG to END, or in the whole buffer."
  (save-restriction
    (widen)
    (let ((beg (or beg (point-min)))
          (end (or end (point-max))))
      (seq-filter (lambda (overlay)
                    (and (overlay-get overlay 'gemini-companion-original)
                         (<= beg (overlay-start overlay))
                         (<= (overlay-end overlay) end)))
                  (overlays-in beg end)))))

(defun gemini-companion-hunks-overlay (beg end original)
  "Return the overlay of the hunk from BEG to END, a new one if need be.
ORIGINAL is the text in its place in the original."
  (let ((proposed (gemini-companion-hunks-text beg end)))
    (cond ((car (gemini-companion-hunks-overlays beg end)))
          ((string= original proposed)
           (user-error "Hunk is identical to the file"))
          (t
           (let ((overlay (make-overlay beg end nil nil 'rear-advance)))
             (overlay-put overlay 'gemini-companion-original original)
             (overlay-put overlay 'gemini-companion-proposed proposed)
             overlay)))))

(defun gemini-companion-hunks-toggle (overlay)
  "Exclude the hunk of OVERLAY, or restore it if it is excluded.
Return non-nil if it is excluded now."
  (with-current-buffer (overlay-buffer overlay)
    (undo-boundary)
    (gemini-companion-hunks--exchange overlay)
    (undo-boundary)
    (or (gemini-companion-hunks-excluded-p overlay)
        (delete-overlay overlay))))

(defun gemini-companion-hunks--exchange (overlay)
  "Replace the text of OVERLAY in the current buffer by its other one."
  (let ((text (overlay-get overlay
                           (if (gemini-companion-hunks-excluded-p overlay)
                               'gemini-companion-proposed
                             'gemini-companion-original)))
        (beg (overlay-start overlay))
        (end (overlay-end overlay)))
    (save-excursion
      (save-restriction
        (widen)
        (goto-char end)
        (insert text)
        (delete-region beg end)))))

(defun gemini-companion-hunks-call-with-all (buffer function)
  "Return the value of FUNCTION, called while BUFFER has no hunk excluded.
BUFFER, a proposal, is current, and must not be edited by FUNCTION."
  (with-current-buffer buffer
    (let ((overlays (gemini-companion-hunks-excluded)))
      (gemini-companion-hunks--exchange-all overlays)
      (unwind-protect (funcall function)
        (with-current-buffer buffer
          (gemini-companion-hunks--exchange-all overlays))))))

(defun gemini-companion-hunks--exchange-all (overlays)
  "Exchange the texts of OVERLAYS in the current buffer.
Nothing notices, as it is done twice."
  (let ((modified (buffer-modified-p))
        (buffer-undo-list t)
        (inhibit-modification-hooks t)
        (inhibit-read-only t))
    (mapc #'gemini-companion-hunks--exchange overlays)
    (restore-buffer-modified-p modified)))

(provide 'gemini-companion-hunks)
;;; gemini-companion-hunks.el ends here
