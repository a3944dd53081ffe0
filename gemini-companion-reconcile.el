;;; gemini-companion-reconcile.el --- Buffers of files that Gemini CLI writes  -*- lexical-binding: t; -*-

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

;; Gemini CLI writes a file some time after its review ended.  Watch for that
;; for a few seconds, and bring the buffer that visits the file up to date.
;; Nothing here saves a file, asks, or changes text that was not saved.

;;; Code:

(require 'seq)

(defconst gemini-companion-reconcile--delays '(0.1 0.1 0.2 0.4 0.8 1.6 3.2 3.6)
  "Seconds between the looks at a file, ten in all.")

(defvar gemini-companion-reconcile--timers nil
  "Alist of (FILE . TIMER), the files that are watched.")

(defun gemini-companion-reconcile-expect (file)
  "Bring the buffer of FILE up to date when FILE is written soon."
  (gemini-companion-reconcile--cancel file)
  (gemini-companion-reconcile--later
   file (gemini-companion-reconcile--stamp file) nil
   gemini-companion-reconcile--delays))

(defun gemini-companion-reconcile-stop ()
  "Stop watching all files."
  (mapc #'gemini-companion-reconcile--cancel
        (mapcar #'car gemini-companion-reconcile--timers)))

(defun gemini-companion-reconcile--cancel (file)
  "Stop watching FILE."
  (when-let* ((entry (assoc file gemini-companion-reconcile--timers)))
    (cancel-timer (cdr entry))
    (setq gemini-companion-reconcile--timers
          (delq entry gemini-companion-reconcile--timers))))

(defun gemini-companion-reconcile--stamp (file)
  "Return the time, size and inode of FILE, or nil if it is not there."
  (let* ((file-name-handler-alist nil)
         (attributes (file-attributes file)))
    (and attributes
         (list (file-attribute-modification-time attributes)
               (file-attribute-size attributes)
               (file-attribute-inode-number attributes)))))

(defun gemini-companion-reconcile--later (file before last delays)
  "Look at FILE after the first of DELAYS.
BEFORE is its stamp before it is written, LAST the one at the
last look if it was written by then."
  (push (cons file (run-at-time (car delays) nil
                                #'gemini-companion-reconcile--look
                                file before last (cdr delays)))
        gemini-companion-reconcile--timers))

(defun gemini-companion-reconcile--look (file before last delays)
  "Reconcile the buffer of FILE if it was written and is whole.
That is when its stamp is not BEFORE, and the same as LAST.
Otherwise look again after the first of DELAYS."
  (gemini-companion-reconcile--cancel file)
  (let* ((stamp (gemini-companion-reconcile--stamp file))
         (written (and (not (equal stamp before)) stamp)))
    (cond ((and written (equal written last))
           (gemini-companion-reconcile--buffers file))
          (delays
           (gemini-companion-reconcile--later
            file before written
            ;; A file that is being written is looked at again soon.
            (if written (cons 0.1 (cdr delays)) delays))))))

(defun gemini-companion-reconcile--buffers (file)
  "Bring the buffers that visit FILE up to date."
  (let ((true (file-truename file)))
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (when (and buffer-file-name
                   (equal buffer-file-truename (abbreviate-file-name true))
                   (not (verify-visited-file-modtime buffer)))
          (gemini-companion-reconcile--buffer buffer))))))

(defun gemini-companion-reconcile--buffer (buffer)
  "Bring BUFFER, whose file was written by another program, up to date."
  (with-current-buffer buffer
    (cond ((gemini-companion-reconcile--same-p buffer)
           (set-visited-file-modtime)
           (set-buffer-modified-p nil))
          ((not (buffer-modified-p))
           (gemini-companion-reconcile--revert))
          (t
           (message "Gemini CLI wrote %s; %s has unsaved changes, compare \
them with M-x ediff-current-file"
                    (file-name-nondirectory buffer-file-name)
                    (buffer-name))))))

(defun gemini-companion-reconcile--same-p (buffer)
  "Return non-nil if BUFFER's text is what a visit of its file would show."
  (with-temp-buffer
    (let ((coding-system-for-read
           (buffer-local-value 'buffer-file-coding-system buffer)))
      (insert-file-contents (buffer-file-name buffer)))
    (string= (buffer-string) (gemini-companion-reconcile--text buffer))))

(defun gemini-companion-reconcile--text (buffer)
  "Return the whole text of BUFFER, without properties."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (buffer-substring-no-properties (point-min) (point-max)))))

(defun gemini-companion-reconcile--revert ()
  "Revert the current buffer in place, keeping point, markers and undo."
  (let ((revert-buffer-with-fine-grain-max-seconds 0.2)
        (inhibit-message t))
    (if (eq revert-buffer-function #'revert-buffer--default)
        (revert-buffer-with-fine-grain t t)
      (revert-buffer t t t))))

(provide 'gemini-companion-reconcile)
;;; gemini-companion-reconcile.el ends here
