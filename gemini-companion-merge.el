;;; gemini-companion-merge.el --- Unsaved text and what Gemini CLI wrote  -*- lexical-binding: t; -*-

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

;; A file is written while its buffer has text that was not saved.  The text
;; that the file had before is kept, so that a person can merge the two with a
;; command.  Nothing here saves a file.

;;; Code:

(require 'gemini-companion-text)
(require 'subr-x)

(declare-function smerge-start-session "smerge-mode")

(defconst gemini-companion-merge--largest (* 1024 1024)
  "Size in bytes of a file above which its former text is not kept.")

(defvar-local gemini-companion-merge--ancestor nil
  "The text of this buffer's file before Gemini CLI wrote it, or nil.")

(defun gemini-companion-merge-keep ()
  "Keep the text of the current buffer's file, which will be written."
  (setq gemini-companion-merge--ancestor
        (gemini-companion-merge--file-text)))

(defun gemini-companion-merge-forget ()
  "Forget the former text of the current buffer's file, as nothing differs."
  (setq gemini-companion-merge--ancestor nil))

(defun gemini-companion-merge--file-text ()
  "Return the text of the current buffer's file, or nil if it is too large."
  (when (gemini-companion-merge--readable-p)
    (let ((file buffer-file-name)
          (coding-system-for-read buffer-file-coding-system))
      (with-temp-buffer
        (insert-file-contents file)
        (buffer-string)))))

(defun gemini-companion-merge--readable-p ()
  "Return non-nil if the current buffer's file can be merged."
  (let ((size (file-attribute-size (file-attributes buffer-file-name))))
    (and size
         (< size gemini-companion-merge--largest)
         (not (gemini-companion-text-problem buffer-file-name)))))

(defun gemini-companion-merge-read ()
  "Return (TEXT . CODING) of the current buffer's file as it is now.
Gemini CLI writes UTF-8, whatever the file was in before or says
that it is in, and CRLF everywhere if it was anywhere.  Where only
characters of ASCII were written, the buffer's own coding stays."
  (let ((file buffer-file-name)
        (former (or buffer-file-coding-system 'undecided))
        (multibyte enable-multibyte-characters))
    (with-temp-buffer
      (set-buffer-multibyte multibyte)
      (let ((coding-system-for-read (if multibyte 'utf-8 former)))
        (insert-file-contents file))
      (goto-char (point-min))
      (let* ((eol (coding-system-eol-type last-coding-system-used))
             (coding
              (cond ((not multibyte) former)
                    ((re-search-forward "[\x3fff80-\x3fffff]" nil t)
                     (erase-buffer)
                     (insert-file-contents file)
                     last-coding-system-used)
                    ((eq (char-after) ?\uFEFF)
                     (delete-char 1)
                     'utf-8-with-signature)
                    ((and (coding-system-get former :ascii-compatible-p)
                          (not (re-search-forward "[[:nonascii:]]" nil t)))
                     former)
                    (t 'utf-8))))
        (cons (buffer-string)
              (if (integerp eol)
                  (coding-system-change-eol-conversion coding eol)
                (coding-system-change-text-conversion former coding)))))))

(defun gemini-companion-merge-save-as (coding)
  "Save the current buffer in CODING from now on, as its file is in that."
  (setq buffer-file-coding-system coding)
  (when buffer-file-coding-system-explicit
    (setq buffer-file-coding-system-explicit (list coding)))
  (force-mode-line-update))

(defun gemini-companion-merge ()
  "Merge your unsaved text with what Gemini CLI wrote to this file.
Lines that differ in both are kept twice, as a conflict for
`smerge-mode'.  Nothing is saved."
  (interactive)
  (unless (and buffer-file-name gemini-companion-merge--ancestor
               (not (verify-visited-file-modtime)))
    (user-error "Gemini CLI has not written this file since you changed it"))
  (unless (gemini-companion-merge--readable-p)
    (user-error "The file is gone, or too large to be merged"))
  (pcase-let* ((`(,theirs . ,coding) (gemini-companion-merge-read))
               (dos (eql 1 (coding-system-eol-type coding)))
               (`(,status . ,text)
                (gemini-companion-merge--merged
                 (gemini-companion-merge--plain (gemini-companion-merge-text)
                                                dos)
                 (gemini-companion-merge--plain
                  gemini-companion-merge--ancestor dos)
                 theirs)))
    (gemini-companion-merge-take text)
    (gemini-companion-merge-save-as coding)
    (set-visited-file-modtime)
    (set-buffer-modified-p (not (string= text theirs)))
    (setq gemini-companion-merge--ancestor nil)
    (if (eql status 0)
        (message "Merged; not saved yet")
      (smerge-start-session)
      (message "Merged with conflicts; see the menu SMerge"))))

(defun gemini-companion-merge--plain (text dos)
  "Return TEXT, with plain line ends if DOS is non-nil."
  (if dos (string-replace "\r\n" "\n" text) text))

(defun gemini-companion-merge-text ()
  "Return the whole text of the current buffer, without properties."
  (save-restriction
    (widen)
    (buffer-substring-no-properties (point-min) (point-max))))

(defun gemini-companion-merge-take (text)
  "Make TEXT the text of the current buffer, in place."
  (let ((source (generate-new-buffer " *gemini merge*")))
    (unwind-protect
        (save-restriction
          (widen)
          (with-current-buffer source (insert text))
          ;; Otherwise Emacs asks whether to edit a file that has changed.
          (let ((buffer-file-name nil))
            (replace-buffer-contents source 0.2)))
      (kill-buffer source))))

(defun gemini-companion-merge--merged (mine ancestor theirs)
  "Merge MINE and THEIRS, two texts that both come from ANCESTOR.
The value is a cons of 0, or 1 if there are conflicts, and the text."
  (unless (executable-find "diff3")
    (user-error "Cannot find the program diff3; compare the texts by \
M-x ediff-current-file"))
  (let ((files (mapcar (lambda (text)
                         (let ((coding-system-for-write 'utf-8-emacs-unix))
                           (make-temp-file "gemini-companion-" nil nil text)))
                       (list mine ancestor theirs)))
        (coding-system-for-read 'utf-8-emacs-unix)
        (default-directory "/"))
    (unwind-protect
        (with-temp-buffer
          (let ((status (apply #'call-process "diff3" nil t nil "--merge"
                               "--text" "--label=unsaved" "--label=before"
                               "--label=Gemini CLI" files)))
            (unless (memq status '(0 1))
              (user-error "Merging failed: %s" (string-trim (buffer-string))))
            (cons status (buffer-string))))
      (mapc #'delete-file files))))

(provide 'gemini-companion-merge)
;;; gemini-companion-merge.el ends here
