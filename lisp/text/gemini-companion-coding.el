;;; gemini-companion-coding.el --- Files that are not UTF-8  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Files that are not UTF-8.  Some CLIs decode them as UTF-8 nevertheless, and replace
;; each invalid byte by U+FFFD.  Qwen Code guesses a coding system, and writes "?" for
;; each character that it lacks.  Emacs reads such a file as it would visit it.
;;
;; This file works on texts and bytes alone, and does not use edits.  All coding
;; systems here have Unix line ends.

;;; Code:

(require 'subr-x)

;;;; Coding systems

(defun gemini-companion-coding--undecoded-p (text)
  "Return non-nil if TEXT has a byte that was not decoded.
So does a character outside Unicode, which no other program can read."
  (and (string-match-p "[^[:ascii:]]" text)
       (or (not (multibyte-string-p text))
           (unencodable-char-position 0 (length text) 'utf-8 nil text))))

(defun gemini-companion-coding-utf-8 (bytes)
  "Return the text of BYTES if they are valid UTF-8, or nil."
  (let ((text (decode-coding-string bytes 'utf-8-unix)))
    (unless (gemini-companion-coding--undecoded-p text)
      text)))

(defun gemini-companion-coding-utf-8-p (bytes)
  "Return non-nil if BYTES are valid UTF-8."
  (and (gemini-companion-coding-utf-8 bytes) t))

(defun gemini-companion-coding-of-file (file bytes)
  "Return the coding system in which Emacs would visit FILE with the given BYTES."
  (with-temp-buffer
    (set-buffer-multibyte nil)
    (let ((inhibit-modification-hooks t))
      (insert bytes))
    (goto-char (point-min))
    (let ((declared (ignore-errors
                      (or (funcall set-auto-coding-function file (length bytes))
                          (car (find-operation-coding-system
                                'insert-file-contents
                                (cons file (current-buffer))))))))
      (coding-system-change-eol-conversion
       (if (memq (and declared (coding-system-base declared)) '(nil undecided))
           (detect-coding-string bytes 'highest)
         declared)
       'unix))))

(defun gemini-companion-coding-of-buffer (buffer)
  "Return the coding system of the file of BUFFER, or nil if it is not decoded.
A coding system that the user chose to read the file comes first."
  (with-current-buffer buffer
    (when-let* ((enable-multibyte-characters)
                (coding (or (car buffer-file-coding-system-explicit)
                            buffer-file-coding-system))
                ((not (memq (coding-system-type coding) '(raw-text undecided)))))
      (coding-system-change-eol-conversion coding 'unix))))

;;;; Lost characters

(defun gemini-companion-coding-sendable (text)
  "Return TEXT with U+FFFD for each character that UTF-8 cannot encode."
  (if (gemini-companion-coding--undecoded-p text)
      (let ((case-fold-search nil))
        (replace-regexp-in-string "[^\0-\x10ffff]" "\uFFFD" text))
    text))

(defun gemini-companion-coding-lost (text coding)
  "Return the number of lost characters in TEXT.
These are U+FFFD, raw bytes, and if CODING is non-nil, what it cannot encode."
  (let* ((others (string-replace "\uFFFD" "" text))
         (length (length others)))
    (+ (- (length text) length)
       (if (zerop length)
           0
         (length (unencodable-char-position 0 length (or coding 'utf-8) length
                                            others))))))

(provide 'gemini-companion-coding)
;;; gemini-companion-coding.el ends here
