;;; gemini-companion-content.el --- What a file has, as a CLI and Emacs read it  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A content is a struct with the bytes of a file, or the fact that there is no file.
;; Its functions return the text, as Emacs decodes it, and the format in which the text
;; is stored.  A file that is valid UTF-8 is read as UTF-8, as CLIs read it.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-coding)
(require 'gemini-companion-format)
(require 'gemini-companion-lines)

(cl-defstruct (gemini-companion-content
               (:noinline t)
               (:constructor gemini-companion-content-make)
               (:copier nil))
  "What a file has or had at a time.
BYTES is a unibyte string; `none' if there is no file; `unknown' if its bytes
cannot be kept; or nil while the file has not been read.  CODING is the coding
system in which Emacs reads them, with plain line ends.  REPORTED is non-nil if
the CLI has reported the text; it is `lines' if it has reported no line ends and
no byte order mark, so that BYTES have those from after the write."
  (bytes nil) (coding 'utf-8-unix) (reported nil))

(defun gemini-companion-content-read (bytes coding)
  "Return the content of a file that had BYTES.
CODING is the coding system in which Emacs reads it if it is not UTF-8, or nil."
  (gemini-companion-content-make
   :bytes bytes
   :coding (gemini-companion-content--coding bytes coding)))

(defun gemini-companion-content--coding (bytes coding)
  "Return the coding system of BYTES: UTF-8, or CODING if they are not UTF-8."
  (if (or (null coding)
          (and (stringp bytes) (gemini-companion-coding-utf-8-p bytes)))
      'utf-8-unix
    coding))

(defun gemini-companion-content-of-lines (lines format)
  "Return the content of a file that had LINES in FORMAT.
LINES is a vector of strings."
  (let* ((coding (or (gemini-companion-format-coding format) 'utf-8))
         (text (gemini-companion-lines-join
                lines (if (eq 'crlf (gemini-companion-format-ends format))
                          "\r\n"
                        "\n"))))
    (gemini-companion-content-read
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
  (gemini-companion-content-read bytes (gemini-companion-content-coding content)))

(defun gemini-companion-content-text (content)
  "Return the text of CONTENT, with its line ends.  CONTENT must have bytes."
  (decode-coding-string (gemini-companion-content-bytes content)
                        (gemini-companion-content-coding content)))

(defun gemini-companion-content-encoded (content text)
  "Return the content of a file that has TEXT, and is stored as CONTENT is.
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
     (gemini-companion-content-coding content))))

(provide 'gemini-companion-content)
;;; gemini-companion-content.el ends here
