;;; gemini-companion-content.el --- What a file has, as a CLI and Emacs read it  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A CLI reads a file as UTF-8, or guesses its coding system; Emacs may read the file
;; in another coding system.  A content is a struct with the bytes of a file, or the
;; fact that there is no file.  Its functions return the text that the CLI reads, the
;; text that Emacs displays, and the format in which the text is stored.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-coding)
(require 'gemini-companion-format)
(require 'gemini-companion-lines)

(cl-defstruct (gemini-companion-content
               (:noinline t)
               (:constructor gemini-companion-content-make)
               (:copier gemini-companion-content--copy))
  "What a file has or had at a time.
BYTES is a unibyte string; `none' if there is no file; `unknown' if its bytes
cannot be kept; or nil while the file has not been read.  CODING is the coding
system, with plain line ends, in which the CLI reads and writes the file.
SHOWN-IN is the one of displayed lines that the CLI cannot read, since they are
not UTF-8, or nil if there are no such lines.  REPORTED is non-nil if the CLI has
reported the text: it may have plain line ends where the file had others."
  (bytes nil) (coding 'utf-8-unix) (shown-in nil) (reported nil))

(defun gemini-companion-content-unread (bytes coding)
  "Return the content of a file that had BYTES, which no CLI has read.
CODING is the coding system in which Emacs read it, or nil."
  (gemini-companion-content-make
   :bytes bytes
   :shown-in (and (not (gemini-companion-coding-utf-8-p bytes)) coding)))

(defun gemini-companion-content-of-lines (lines format)
  "Return the content of a file that had LINES in FORMAT, which no CLI has read.
LINES is a vector of strings."
  (let* ((coding (or (gemini-companion-format-coding format) 'utf-8))
         (text (gemini-companion-lines-join
                lines (if (eq 'crlf (gemini-companion-format-ends format))
                          "\r\n"
                        "\n"))))
    (gemini-companion-content-unread
     (encode-coding-string
      (concat (and (gemini-companion-format-mark format) "\uFEFF") text)
      (coding-system-change-eol-conversion coding 'unix))
     coding)))

(defun gemini-companion-content-bytes-p (content)
  "Return non-nil if CONTENT has bytes: its file exists, and they are known."
  (stringp (gemini-companion-content-bytes content)))

(defun gemini-companion-content-none-p (content)
  "Return non-nil if CONTENT is that of no file."
  (eq 'none (gemini-companion-content-bytes content)))

(defun gemini-companion-content-known-p (content)
  "Return non-nil unless the bytes of CONTENT cannot be kept."
  (not (eq 'unknown (gemini-companion-content-bytes content))))

(defun gemini-companion-content-with (content bytes)
  "Return the content of a file that has BYTES and is read as CONTENT is.
For BYTES, see `gemini-companion-content'."
  (let ((copy (gemini-companion-content--copy content)))
    (setf (gemini-companion-content-bytes copy) bytes
          (gemini-companion-content-reported copy) nil)
    copy))

(defun gemini-companion-content-text (content)
  "Return the text of CONTENT for the CLI, with its line ends.
CONTENT must have bytes."
  (decode-coding-string (gemini-companion-content-bytes content)
                        (gemini-companion-content-coding content)))

(defun gemini-companion-content-text-shown (content)
  "Return the text of CONTENT as it is displayed, with its line ends.
Lines that the CLI cannot read are as Emacs reads them.  CONTENT must have
bytes."
  (if-let* ((shown-in (gemini-companion-content-shown-in content)))
      (gemini-companion-coding-decode-undecoded
       (gemini-companion-content-bytes content) shown-in)
    (gemini-companion-content-text content)))

(defun gemini-companion-content-encoded (content text)
  "Return the content of a file to which the CLI of CONTENT has written TEXT.
Its bytes are unknown if the CLI may not have decoded some of them, or if Emacs
does not have some characters of TEXT in that coding system."
  (let* ((bytes (encode-coding-string
                 text (gemini-companion-content-coding content)))
         (encoded (gemini-companion-content-with content bytes)))
    (if (or (string-search "\uFFFD" text)
            (not (equal text (gemini-companion-content-text encoded))))
        (gemini-companion-content-with content 'unknown)
      encoded)))

(defun gemini-companion-content-format (content)
  "Return the `gemini-companion-format' of CONTENT, or nil if it has no bytes."
  (when (gemini-companion-content-bytes-p content)
    (gemini-companion-format-of-bytes
     (gemini-companion-content-bytes content)
     (or (gemini-companion-content-shown-in content)
         (gemini-companion-content-coding content)))))

(provide 'gemini-companion-content)
;;; gemini-companion-content.el ends here
