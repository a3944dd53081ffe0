;;; gemini-companion-format.el --- How the text of a file is stored  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A CLI may convert a file that it writes: to another coding system, to other line
;; ends, or with or without a byte order mark.  The lines of the text do not show
;; such a conversion, so this file compares the formats of files and buffers.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'gemini-companion-coding)
(require 'gemini-companion-replace)
(require 'gemini-companion-text)

;;;; State

(cl-defstruct (gemini-companion-format
               (:noinline t)
               (:constructor gemini-companion-format--make)
               (:copier nil))
  "How a text is stored in a file, or will be when its buffer is saved.
CODING is the coding system, without line ends and byte order mark; it is nil
if it cannot be determined, since each character is ASCII in one byte.  MARK
is non-nil if the file begins with a byte order mark.  ENDS is `lf', `crlf'
or `mixed', or nil if the text has no newline.  OPEN is non-nil if the last
line has no newline."
  coding mark ends open)

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
         (text (decode-coding-string bytes coding)))
    (gemini-companion-format--of-text text coding marked
                                      (gemini-companion-format--ends text))))

(defun gemini-companion-format-of-buffer (buffer)
  "Return the `gemini-companion-format' in which BUFFER will be saved."
  (let* ((coding (or (buffer-local-value 'buffer-file-coding-system buffer)
                     'undecided))
         (text (gemini-companion-text-of-buffer buffer))
         (ends (gemini-companion-format--ends text)))
    (gemini-companion-format--of-text
     text coding
     (gemini-companion-format--mark-p coding)
     (if (and ends (eq 1 (coding-system-eol-type coding)))
         'crlf
       ends))))

(defun gemini-companion-format--of-text (text coding mark ends)
  "Return the format of TEXT, a decoded text, in CODING.
For MARK and ENDS, see `gemini-companion-format'."
  (let ((plain (gemini-companion-format--plain coding)))
    (gemini-companion-format--make
     :coding (and (or (gemini-companion-format--wide-p plain)
                      (string-match-p "[^[:ascii:]]"
                                      (string-remove-prefix "\uFEFF" text)))
                  plain)
     :mark (and mark t)
     :ends ends
     :open (not (or (string-empty-p text) (string-suffix-p "\n" text))))))

(defun gemini-companion-format--plain (coding)
  "Return CODING without line ends and byte order mark.
Return nil if a buffer with CODING is not decoded."
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

(defun gemini-companion-format--mark-p (coding)
  "Return non-nil if a file that is saved in CODING has a byte order mark."
  (let ((mark (coding-system-get coding :bom)))
    (or (eq t mark)
        ;; UTF-16 without a byte order needs the mark to show it.
        (and mark (eq 'utf-16 (coding-system-type coding))))))

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
Each may be nil if it is unknown.  A missing newline at the end does not
count, since the last line shows it.  Example: \"line ends LF -> CRLF\"."
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

(defun gemini-companion-format-same-p (a b)
  "Return non-nil if no difference between the formats A and B is known.
A missing newline at the end is a difference."
  (or (null a)
      (null b)
      (and (null (gemini-companion-format-conversion a b))
           (eq (gemini-companion-format-open a) (gemini-companion-format-open b)))))

;;;; Facts

(defconst gemini-companion-format-facts '(coding ends mark open)
  "Slots of a `gemini-companion-format'.")

(defun gemini-companion-format-fact (format fact)
  "Return the value of FACT, a slot, in FORMAT.
Return `unknown' if FORMAT is nil, or if it has no line ends.  FACT is one of
`gemini-companion-format-facts'."
  (if (null format)
      'unknown
    (pcase fact
      ('coding (gemini-companion-format-coding format))
      ('ends (or (gemini-companion-format-ends format) 'unknown))
      ('mark (gemini-companion-format-mark format))
      ('open (gemini-companion-format-open format)))))

(defun gemini-companion-format-fact-same-p (fact a b)
  "Return non-nil if no difference between the values A and B of FACT is known."
  (or (eq 'unknown a)
      (eq 'unknown b)
      (if (eq fact 'coding)
          (not (gemini-companion-format--converted-p a b))
        (eq a b))))

(defun gemini-companion-format-of-facts (facts)
  "Return the format of FACTS, an alist from facts to their values."
  (cl-flet ((value (fact)
              (let ((value (alist-get fact facts)))
                (and (not (eq value 'unknown)) value))))
    (gemini-companion-format--make
     :coding (value 'coding) :mark (value 'mark)
     :ends (value 'ends) :open (value 'open))))

;;;; Conversion of a buffer

(defun gemini-companion-format-convert-buffer (format)
  "Set the current buffer to be saved in FORMAT, and return nil.
If that is impossible, change nothing and return the reason, a verb phrase."
  (let* ((previous buffer-file-coding-system)
         ;; `set-buffer-file-coding-system' modifies this pair.
         (explicit (copy-tree buffer-file-coding-system-explicit))
         (now (gemini-companion-format--plain (or previous 'undecided)))
         (plain (or (gemini-companion-format-coding format)
                    ;; A format without a coding has one byte per character.
                    (and (not (gemini-companion-format--wide-p now)) now)
                    'utf-8))
         (coding (if (gemini-companion-format-mark format)
                     (pcase plain
                       ('utf-8 'utf-8-with-signature)
                       ('utf-16le 'utf-16le-with-signature)
                       ('utf-16be 'utf-16be-with-signature)
                       (_ plain))
                   plain))
         (text (gemini-companion-text-of-buffer)))
    (cond ((eq 'mixed (gemini-companion-format-ends format))
           "had line ends of both kinds; undo the whole edit in the overview")
          ((and (not (memq plain '(utf-8 utf-16le utf-16be)))
                (unencodable-char-position 0 (length text) coding nil text))
           (format "has characters that %s does not have; undo these changes first"
                   coding))
          (t
           ;; Line ends of both kinds are in the text, and would be saved twice.
           (when (and (gemini-companion-format-ends format)
                      (not (eq 1 (coding-system-eol-type (or previous 'undecided))))
                      (string-search "\r\n" text))
             (gemini-companion-replace-text (string-replace "\r\n" "\n" text)))
           (set-buffer-file-coding-system
            (coding-system-change-eol-conversion
             coding (pcase (gemini-companion-format-ends format)
                      ('lf 'unix)
                      ('crlf 'dos)
                      (_ (coding-system-eol-type (or previous 'utf-8-unix)))))
            'force)
           (ignore
            (when (listp buffer-undo-list)
              (push (list 'apply #'gemini-companion-format--set-coding
                          previous explicit)
                    buffer-undo-list)))))))

(defun gemini-companion-format--set-coding (coding explicit)
  "Set the current buffer to be saved in CODING, as undo is called.
EXPLICIT is the value for `buffer-file-coding-system-explicit'."
  (push (list 'apply #'gemini-companion-format--set-coding
              buffer-file-coding-system buffer-file-coding-system-explicit)
        buffer-undo-list)
  (setq buffer-file-coding-system coding
        buffer-file-coding-system-explicit explicit)
  (force-mode-line-update))

(provide 'gemini-companion-format)
;;; gemini-companion-format.el ends here
