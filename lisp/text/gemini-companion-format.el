;;; gemini-companion-format.el --- How the text of a file is stored  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A CLI may convert a file that it writes: to another coding system, to other line
;; ends, or with or without a byte order mark.  The lines of the text do not show
;; such a conversion, so this file compares the formats of files, for a remark.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-coding)
(require 'gemini-companion-text)

;;;; State

(cl-defstruct (gemini-companion-format
               (:noinline t)
               (:constructor gemini-companion-format-make)
               (:copier nil))
  "How a text is stored in a file.
CODING is the coding system, without line ends and byte order mark; it is nil
if it cannot be determined, since each character is ASCII in one byte.  MARK
is non-nil if the file begins with a byte order mark.  ENDS is `lf', `crlf'
or `mixed', or nil if the text has no newline."
  coding mark ends)

;;;; Formats

(defun gemini-companion-format-of-bytes (bytes coding)
  "Return the `gemini-companion-format' of a file that has BYTES.
CODING is its coding system if BYTES are not UTF-8."
  (let* ((marked (cond ((string-prefix-p "\377\376" bytes)
                        'utf-16le-with-signature-unix)
                       ((string-prefix-p "\376\377" bytes)
                        'utf-16be-with-signature-unix)
                       ((string-prefix-p "\357\273\277" bytes)
                        'utf-8-with-signature-unix)))
         (coding (cond (marked)
                       ((gemini-companion-coding-utf-8-p bytes) 'utf-8-unix)
                       (t coding)))
         (text (decode-coding-string bytes coding))
         (plain (gemini-companion-format--plain coding)))
    (gemini-companion-format-make
     :coding (and (or (gemini-companion-format--wide-p plain)
                      (string-match-p "[^[:ascii:]]"
                                      (string-remove-prefix "\uFEFF" text)))
                  plain)
     :mark (and marked t)
     :ends (gemini-companion-format--ends text))))

(defun gemini-companion-format--plain (coding)
  "Return CODING without line ends and byte order mark, or nil if undecided."
  (pcase (coding-system-type coding)
    ('utf-8 'utf-8)
    ('utf-16 (if (eq 'little (coding-system-get coding :endian))
                 'utf-16le
               'utf-16be))
    ((or 'undecided 'raw-text) nil)
    (_ (coding-system-base coding))))

(defun gemini-companion-format--wide-p (plain)
  "Return non-nil if PLAIN, a coding system or nil, is UTF-16."
  (memq plain '(utf-16le utf-16be)))

(defun gemini-companion-format--ends (text)
  "Return the line ends of TEXT: `lf', `crlf', `mixed', or nil if it has none."
  (let ((crlf (string-search "\r\n" text)))
    (cond ((not (string-search "\n" text)) nil)
          ((null crlf) 'lf)
          ((let ((case-fold-search nil))
             (string-match-p "\\(?:\\`\\|[^\r]\\)\n" text))
           'mixed)
          (t 'crlf))))

;;;; Comparison

(defun gemini-companion-format-conversion (from to)
  "Describe the conversion from the format FROM to TO, or return nil.
Each may be nil if it is unknown.  Example: \"line ends LF -> CRLF\"."
  (when (and from to)
    (let ((arrow (gemini-companion-text-sign ?\u2192 "->"))
          (coding (gemini-companion-format-coding from))
          (new-coding (gemini-companion-format-coding to))
          (ends (gemini-companion-format-ends from))
          (new-ends (gemini-companion-format-ends to))
          (mark (gemini-companion-format-mark from))
          (texts nil))
      (when (gemini-companion-format--converted-p coding new-coding)
        ;; A text in ASCII has the same bytes in UTF-8.
        (push (format "encoding %s %s %s"
                      (or coding 'utf-8) arrow (or new-coding 'utf-8))
              texts))
      (unless (or (null ends) (null new-ends) (eq ends new-ends))
        (push (format "line ends %s %s %s" (gemini-companion-format--ends-name ends)
                      arrow (gemini-companion-format--ends-name new-ends))
              texts))
      (unless (eq mark (gemini-companion-format-mark to))
        (push (if mark "byte order mark removed" "byte order mark added") texts))
      (when texts
        (string-join (nreverse texts) ", ")))))

(defun gemini-companion-format--converted-p (coding new-coding)
  "Return non-nil if a file in CODING was converted to NEW-CODING.
Each is nil if all characters are ASCII in one byte."
  (and (not (eq coding new-coding))
       (or (and coding new-coding)
           (gemini-companion-format--wide-p coding)
           (gemini-companion-format--wide-p new-coding))))

(defun gemini-companion-format--ends-name (ends)
  "Return the name of the line ENDS for the user."
  (pcase ends
    ('lf "LF")
    ('crlf "CRLF")
    (_ "mixed")))

(provide 'gemini-companion-format)
;;; gemini-companion-format.el ends here
