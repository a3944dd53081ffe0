;;; gemini-companion-text.el --- Texts in files, as they are  -*- lexical-binding: t; -*-

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

;; What is read from a file, or written to one, as the same text on both sides:
;; no format is decoded, no hook and no handler of file names of the person's
;; has a say, and line ends stay.  To encode 10 MB takes Emacs 30 ms, so what is
;; all ASCII is written without.

;;; Code:

(defun gemini-companion-text-ascii-p (&optional string)
  "Return non-nil if STRING, or the current buffer, is all ASCII.
That takes no time to tell."
  (if string
      (= (length string) (string-bytes string))
    (save-restriction
      (widen)
      (= (point-max) (position-bytes (point-max))))))

(defun gemini-companion-text-insert (file &optional coding)
  "Insert the text of FILE, which is in UTF-8 or CODING, after point."
  (let ((coding-system-for-read (or coding 'utf-8-unix))
        (file-name-handler-alist nil)
        (format-alist nil)
        (after-insert-file-functions nil))
    (insert-file-contents file)))

(defun gemini-companion-text-read (file)
  "Return the text of FILE, which is in UTF-8, as a string."
  (with-temp-buffer
    (gemini-companion-text-insert file)
    (buffer-string)))

(defun gemini-companion-text-write (file &optional text exclusive)
  "Write TEXT, or the whole current buffer, to FILE as UTF-8.
What is not UTF-8 stays as `gemini-companion-text-insert' with the
coding `utf-8-emacs-unix' reads it.  If EXCLUSIVE is non-nil, signal
an error if there is such a file."
  (let ((coding-system-for-write (if (gemini-companion-text-ascii-p text)
                                     'no-conversion
                                   'utf-8-emacs-unix))
        (file-name-handler-alist nil)
        (write-region-annotate-functions nil)
        (write-region-post-annotation-function nil)
        (buffer-file-format nil)
        (selective-display nil)
        (write-region-inhibit-fsync t)
        (inhibit-message t))
    (write-region text nil file nil 'silent nil (and exclusive 'excl))))

(provide 'gemini-companion-text)
;;; gemini-companion-text.el ends here
