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

(require 'cl-lib)
(require 'seq)

(defconst gemini-companion-reconcile--delays
  '(0.02 0.03 0.05 0.1 0.2 0.4 0.8 1.6 3.2 3.6)
  "Seconds between the looks at a file, ten in all.")

(defconst gemini-companion-reconcile--small 65536
  "Size in bytes up to which a file is written in one go.")

(cl-defstruct (gemini-companion-reconcile--watch
               (:constructor gemini-companion-reconcile--watch-make)
               (:copier nil))
  "A file that will be written, and what is known of it.
BEFORE is its stamp before it is written, LAST the one at the last
look, DONE the one when its buffer was brought up to date."
  file before last done delays timer)

(defvar gemini-companion-reconcile--watches nil
  "The watches of all files that are expected to be written.")

(defun gemini-companion-reconcile-expect (file)
  "Bring the buffer of FILE up to date when FILE is written soon."
  (gemini-companion-reconcile--cancel
   (gemini-companion-reconcile--find file))
  (let* ((stamp (gemini-companion-reconcile--stamp file))
         (watch (gemini-companion-reconcile--watch-make
                 :file file :before stamp :last stamp
                 :delays gemini-companion-reconcile--delays)))
    (push watch gemini-companion-reconcile--watches)
    (dolist (buffer (gemini-companion-reconcile--buffers file))
      (with-current-buffer buffer
        (add-hook 'pre-command-hook
                  #'gemini-companion-reconcile--before-command nil t)))
    (gemini-companion-reconcile--later watch)))

(defun gemini-companion-reconcile-stop ()
  "Stop watching all files."
  (mapc #'gemini-companion-reconcile--cancel
        gemini-companion-reconcile--watches))

(defun gemini-companion-reconcile--find (file)
  "Return the watch of FILE, or nil."
  (seq-find (lambda (watch)
              (equal (gemini-companion-reconcile--watch-file watch) file))
            gemini-companion-reconcile--watches))

(defun gemini-companion-reconcile--cancel (watch)
  "End WATCH, unless it is nil."
  (when watch
    (setq gemini-companion-reconcile--watches
          (remq watch gemini-companion-reconcile--watches))
    (cancel-timer (gemini-companion-reconcile--watch-timer watch))
    (dolist (buffer (gemini-companion-reconcile--buffers
                     (gemini-companion-reconcile--watch-file watch)))
      (with-current-buffer buffer
        (remove-hook 'pre-command-hook
                     #'gemini-companion-reconcile--before-command t)))))

(defun gemini-companion-reconcile--later (watch)
  "Look at the file of WATCH again, or end it if that was often enough."
  (if-let* ((delay (pop (gemini-companion-reconcile--watch-delays watch))))
      (setf (gemini-companion-reconcile--watch-timer watch)
            (run-at-time delay nil #'gemini-companion-reconcile--look watch))
    (gemini-companion-reconcile--cancel watch)))

(defun gemini-companion-reconcile--look (watch)
  "Reconcile the buffer of the file of WATCH if it was written by now.
End WATCH if the file has not changed since that was done, or is gone."
  (let ((done (gemini-companion-reconcile--watch-done watch)))
    (gemini-companion-reconcile--check watch)
    (if (and done
             (member (gemini-companion-reconcile--watch-last watch)
                     (list done nil)))
        (gemini-companion-reconcile--cancel watch)
      (gemini-companion-reconcile--later watch))))

(defun gemini-companion-reconcile--check (watch)
  "Reconcile the buffer of the file of WATCH if it was written and is whole.
A small file is, unless it is empty, which it is for a moment; a
large one if it is as it was at the last look."
  (let* ((stamp (gemini-companion-reconcile--stamp
                 (gemini-companion-reconcile--watch-file watch)))
         (last (gemini-companion-reconcile--watch-last watch)))
    (setf (gemini-companion-reconcile--watch-last watch) stamp)
    (when (and stamp
               (not (equal stamp
                           (gemini-companion-reconcile--watch-before watch)))
               (not (equal stamp
                           (gemini-companion-reconcile--watch-done watch)))
               (or (< 0 (nth 1 stamp) gemini-companion-reconcile--small)
                   (equal stamp last)))
      (setf (gemini-companion-reconcile--watch-done watch) stamp)
      (mapc #'gemini-companion-reconcile--buffer
            (gemini-companion-reconcile--buffers
             (gemini-companion-reconcile--watch-file watch))))))

(defun gemini-companion-reconcile--before-command ()
  "Reconcile the current buffer before a command may edit it.
Otherwise Emacs would ask whether to edit a file that has changed."
  (when-let* ((watch (seq-find
                      (lambda (watch)
                        (memq (current-buffer)
                              (gemini-companion-reconcile--buffers
                               (gemini-companion-reconcile--watch-file
                                watch))))
                      gemini-companion-reconcile--watches)))
    (gemini-companion-reconcile--check watch)))

(defun gemini-companion-reconcile--stamp (file)
  "Return the time, size and inode of FILE, or nil if it is not there."
  (let* ((file-name-handler-alist nil)
         (attributes (file-attributes file)))
    (and attributes
         (list (file-attribute-modification-time attributes)
               (file-attribute-size attributes)
               (file-attribute-inode-number attributes)))))

(defun gemini-companion-reconcile--buffers (file)
  "Return the buffers that visit FILE."
  (let ((name (abbreviate-file-name (file-truename file))))
    (seq-filter (lambda (buffer)
                  (equal name (buffer-local-value 'buffer-file-truename
                                                  buffer)))
                (buffer-list))))

(defun gemini-companion-reconcile--buffer (buffer)
  "Bring BUFFER up to date if another program has written its file."
  (with-current-buffer buffer
    (cond ((verify-visited-file-modtime buffer))
          ((gemini-companion-reconcile--same-p buffer)
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
        (inhibit-message t)
        (read-only buffer-read-only))
    (if (eq revert-buffer-function #'revert-buffer--default)
        (revert-buffer-with-fine-grain t t)
      (revert-buffer t t t))
    ;; Before Emacs 29 a revert forgets it.
    (setq buffer-read-only read-only)
    (gemini-companion-reconcile--take-coding)))

(defun gemini-companion-reconcile--take-coding ()
  "Save the current buffer from now on in the coding that its file has now.
Gemini CLI writes UTF-8, whatever the file was in."
  (let* ((file buffer-file-name)
         (coding (with-temp-buffer
                   (insert-file-contents file)
                   last-coding-system-used)))
    (unless (memq (coding-system-base coding)
                  (list 'undecided
                        (coding-system-base buffer-file-coding-system)))
      (setq buffer-file-coding-system coding))))

(provide 'gemini-companion-reconcile)
;;; gemini-companion-reconcile.el ends here
