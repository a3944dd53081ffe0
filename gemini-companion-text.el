;;; gemini-companion-text.el --- Texts of files, to the byte  -*- lexical-binding: t; -*-

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
;; no format is decoded, no hook and no handler of file names of the user's
;; is called, and line ends stay.
;;
;; To decode 10 MB that are not all ASCII takes Emacs 30 ms, and so it does to
;; encode them.  But in a buffer text is in UTF-8 already, and to take its
;; bytes for characters, or the other way round, takes three.

;;; Code:

(require 'subr-x)

(defconst gemini-companion-text--surrogate "\355[\240-\277]"
  "Matches bytes that are not UTF-8 but would be a character of Emacs.")

(defun gemini-companion-text-true-name (file)
  "Return the true name of the local FILE, or nil if its links are a loop."
  (let ((file-name-handler-alist nil))
    (condition-case nil
        (file-truename file)
      (error nil))))

(defun gemini-companion-text-attributes (file)
  "Return the attributes of the local FILE, or nil if it does not exist.
Those of what it links to, if it is a link."
  (let ((file-name-handler-alist nil))
    (when-let* ((name (if (file-symlink-p file)
                          (gemini-companion-text-true-name file)
                        file)))
      (file-attributes name))))

(defun gemini-companion-text-remote-p (file)
  "Return non-nil if FILE, an absolute name, is remote to Emacs.
It is then an odd local name to Gemini CLI."
  (condition-case nil
      (file-remote-p file)
    ;; Tramp may know no such method.
    (error t)))

(defun gemini-companion-text-problem (file)
  "Return why the text of FILE cannot be read, or nil.
Nil also if there is no such file.  To read a pipe, a terminal or
a device may never end, nor to read a file of the kernel, in /proc.
The value is the predicate of a sentence."
  (if (gemini-companion-text-remote-p file)
      "has a remote file name"
    (let ((file-name-handler-alist nil))
      (cond ((null (gemini-companion-text-true-name file))
             "is a loop of symbolic links")
            ((and (file-exists-p file)
                  (not (gemini-companion-text--regular-p file)))
             "is not a regular file")))))

(defun gemini-companion-text--regular-p (file)
  "Return non-nil if FILE is regular, and takes space on a disk if any.
The file systems of the kernel have no size, nor have the files."
  (and (file-regular-p file)
       (not (and (eql 0 (file-attribute-size
                         (gemini-companion-text-attributes file)))
                 (eql 0 (car (file-system-info file)))))))

(defun gemini-companion-text--insert-bytes (file)
  "Insert the bytes of the regular FILE, no more of them than its size."
  (let ((file-name-handler-alist nil)
        (attributes (gemini-companion-text-attributes file)))
    (unless (or (null attributes) (file-regular-p file))
      (signal 'file-error (list "Not a regular file" file)))
    (insert-file-contents-literally file nil 0
                                    (file-attribute-size attributes))))

(defun gemini-companion-text-fill (file &optional coding)
  "Make the text of FILE that of the current buffer, which is empty.
It is in UTF-8, or in CODING.  Return its size in bytes."
  (set-buffer-multibyte nil)
  (gemini-companion-text--insert-bytes file)
  (prog1 (buffer-size)
    (gemini-companion-text--decode (or coding 'utf-8-unix))
    (goto-char (point-min))))

(defun gemini-companion-text--decode (coding)
  "Make the bytes in the current buffer, in CODING, characters."
  (if (let ((case-fold-search nil))
        (re-search-forward gemini-companion-text--surrogate nil t))
      (let ((bytes (buffer-string)))
        (erase-buffer)
        (set-buffer-multibyte t)
        (insert (decode-coding-string bytes coding)))
    (set-buffer-multibyte t)))

(defun gemini-companion-text-insert (file &optional coding)
  "Insert the text of FILE, which is in UTF-8 or CODING, after point."
  (let ((target (current-buffer)))
    (with-temp-buffer
      (gemini-companion-text-fill file coding)
      (let ((source (current-buffer)))
        (with-current-buffer target
          (save-excursion
            (insert-buffer-substring source)))))))

(defun gemini-companion-text-read (file)
  "Return the text of FILE, which is in UTF-8, as a string."
  (with-temp-buffer
    (gemini-companion-text-fill file)
    (buffer-string)))

(defun gemini-companion-text-bytes (file)
  "Return the bytes of FILE as a string."
  (with-temp-buffer
    (set-buffer-multibyte nil)
    (gemini-companion-text--insert-bytes file)
    (buffer-string)))

(defun gemini-companion-text-write (file &optional text exclusive)
  "Write TEXT, or the whole current buffer, to FILE as UTF-8.
What is not UTF-8 stays as `gemini-companion-text-insert' with the
coding `utf-8-emacs-unix' reads it.  If EXCLUSIVE is non-nil, signal
an error if there is such a file."
  (let ((source (current-buffer)))
    (with-temp-buffer
      (if text
          (progn (insert text)
                 (set-buffer-multibyte nil))
        (let ((bytes (current-buffer)))
          (with-current-buffer source
            (save-restriction
              (widen)
              (gemini-companion-text--take-bytes bytes nil nil)))))
      (let ((coding-system-for-write 'no-conversion)
            (file-name-handler-alist nil)
            (write-region-annotate-functions nil)
            (write-region-post-annotation-function nil)
            (write-region-inhibit-fsync t)
            (inhibit-message t))
        (write-region nil nil file nil 'silent nil (and exclusive 'excl))))))

(defun gemini-companion-text-temporary-file (&optional text)
  "Return the name of a new file with TEXT, or the whole current buffer.
Nobody else may read it."
  (let ((file (make-temp-file "gemini-companion-")))
    (gemini-companion-text-write file text)
    file))

(defun gemini-companion-text-as-bytes (function)
  "Call FUNCTION, which writes from buffers, without encoding.
The coding system that it uses for that must be `no-conversion'."
  (let ((here (current-buffer)))
    (with-temp-buffer
      (let* ((bytes (current-buffer))
             (write-region-inhibit-fsync t)
             (write-region-post-annotation-function nil)
             ;; What is written is the buffer that they leave current.
             (write-region-annotate-functions
              (list (lambda (start end)
                      (gemini-companion-text--take-bytes bytes start end)))))
        (with-current-buffer here
          (funcall function))))))

(defun gemini-companion-text--take-bytes (bytes start end)
  "Make BYTES current, with the text from START to END in this buffer.
All that is accessible here, if they are nil."
  (let ((source (current-buffer)))
    (set-buffer bytes)
    (erase-buffer)
    (set-buffer-multibyte t)
    (insert-buffer-substring source start end)
    (set-buffer-multibyte nil)
    nil))

(provide 'gemini-companion-text)
;;; gemini-companion-text.el ends here
