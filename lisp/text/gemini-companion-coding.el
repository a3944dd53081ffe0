;;; gemini-companion-coding.el --- Files that are not UTF-8  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; How a CLI reads and writes a file that is not UTF-8.  Gemini CLI and Copilot CLI
;; decode it as UTF-8 nevertheless, and replace each invalid byte by U+FFFD.  Qwen Code
;; guesses a coding system by statistics, and often guesses wrong if the file has
;; little text: it takes "x é" in Latin-1 for KOI8-R.  Qwen Code writes the file in the
;; guessed coding system, with "?" for each character that the coding system lacks.
;; Only the text of the proposal shows which coding system Qwen Code has guessed.
;;
;; This file works on texts and bytes alone, and does not use edits.  All coding
;; systems here have Unix line ends.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-garbage)
(require 'seq)
(require 'subr-x)

;; Emacs caches only the last 20 compiled regexps.  Compiling a range visits each of
;; its characters: 4 ms for Unicode, and 20 ms for raw bytes and characters outside
;; Unicode, at each key that toggles a hunk.  So these regexps negate the range of
;; the characters that they do not match.

(defconst gemini-companion-coding--undecoded "[^\0-\x10ffff]"
  "Regexp for a byte that was not decoded, or a character outside Unicode.")

(defconst gemini-companion-coding--lost "[^\0-\uFFFC\uFFFE-\x10ffff]"
  "Regexp for U+FFFD, an undecoded byte, or a character outside Unicode.")

(defconst gemini-companion-coding--lost-or-question "[^\0->@-\uFFFC\uFFFE-\x10ffff]"
  "Regexp for a question mark, or a match of `gemini-companion-coding--lost'.")

(defconst gemini-companion-coding--sample-bytes (* 64 1024)
  "Size of a file, in bytes, above which only a sample of its lines is compared.")

;;;; Coding systems

(defun gemini-companion-coding-undecoded-p (text)
  "Return non-nil if TEXT has a byte that was not decoded.
So does a character outside Unicode, which no other program can read."
  ;; A character class compiles at once; `gemini-companion-coding--undecoded' takes
  ;; milliseconds.
  (and (string-match-p "[^[:ascii:]]" text)
       (or (not (multibyte-string-p text))
           (unencodable-char-position 0 (length text) 'utf-8 nil text))))

(defun gemini-companion-coding--replace (text regexp replacement)
  "Return TEXT with REPLACEMENT for each run of matches of REGEXP.
REGEXP matches one character."
  (let ((case-fold-search nil)
        (runs (concat regexp "+")))
    (if (string-match-p runs text)
        (replace-regexp-in-string runs replacement text)
      text)))

(defun gemini-companion-coding-utf-8-p (bytes)
  "Return non-nil if BYTES are valid UTF-8."
  (not (gemini-companion-coding-undecoded-p
        (decode-coding-string bytes 'utf-8-unix))))

(defun gemini-companion-coding-declared (file bytes)
  "Return the coding system that is declared for FILE, or nil.
A cookie in BYTES, the contents of FILE, declares it, or the user's settings
for the name of FILE."
  (with-temp-buffer
    (set-buffer-multibyte nil)
    (insert bytes)
    (goto-char (point-min))
    (let ((coding (ignore-errors
                    (or (funcall set-auto-coding-function file (length bytes))
                        (car (find-operation-coding-system
                              'insert-file-contents
                              (cons file (current-buffer))))))))
      (unless (memq (and coding (coding-system-base coding)) '(nil undecided))
        (coding-system-change-eol-conversion coding 'unix)))))

(defun gemini-companion-coding-of-file (file bytes)
  "Return the coding system in which Emacs would visit FILE with the given BYTES."
  (or (gemini-companion-coding-declared file bytes)
      (coding-system-change-eol-conversion
       (detect-coding-string bytes 'highest) 'unix)))

(defun gemini-companion-coding-of-buffer (buffer)
  "Return the coding system of the file of BUFFER, or nil if it is not decoded.
A coding system that the user chose to read the file comes first."
  (with-current-buffer buffer
    (when-let* ((enable-multibyte-characters)
                (coding (or (car buffer-file-coding-system-explicit)
                            buffer-file-coding-system))
                ((not (memq (coding-system-type coding) '(raw-text undecided)))))
      (coding-system-change-eol-conversion coding 'unix))))

(defun gemini-companion-coding-decode-undecoded (bytes coding)
  "Decode BYTES as UTF-8, and each line that is not valid UTF-8 as CODING.
A line that CODING cannot decode keeps its raw bytes."
  (let ((case-fold-search nil)
        (text (decode-coding-string bytes 'utf-8-unix))
        other)
    (cond ((not (and (gemini-companion-coding-undecoded-p text)
                     ;; UTF-16 has other bytes for a newline.
                     (coding-system-get coding :ascii-compatible-p)))
           text)
          ;; A file without a valid UTF-8 sequence is decoded as a whole.
          ((not (or (string-match-p "[\u0080-\x10ffff]" text)
                    (gemini-companion-coding-undecoded-p
                     (setq other (decode-coding-string bytes coding)))))
           other)
          (t
           (mapconcat
            (lambda (line)
              (let ((text (decode-coding-string line 'utf-8-unix)))
                (if (not (gemini-companion-coding-undecoded-p text))
                    text
                  (let ((other (decode-coding-string line coding)))
                    (if (gemini-companion-coding-undecoded-p other)
                        text
                      other)))))
            (split-string bytes "\n")
            "\n")))))

;;;; Lost characters

(defun gemini-companion-coding-sendable (text)
  "Return TEXT with U+FFFD for each character that UTF-8 cannot encode."
  (if (gemini-companion-coding-undecoded-p text)
      (let ((case-fold-search nil))
        (replace-regexp-in-string gemini-companion-coding--undecoded "\uFFFD" text))
    text))

(defun gemini-companion-coding-replaced (text)
  "Return the number of characters U+FFFD in TEXT."
  (cl-loop for start = (string-search "\uFFFD" text)
           then (string-search "\uFFFD" text (1+ start))
           while start count t))

(defun gemini-companion-coding-lost (text &optional coding)
  "Return the number of lost characters in TEXT.
Count U+FFFD and raw bytes.  If CODING is non-nil, also count the characters
that CODING cannot encode."
  (let ((case-fold-search nil)
        (regexp gemini-companion-coding--lost))
    (+ (cl-loop for start = (and (string-match-p "[^[:ascii:]]" text)
                                 (string-match regexp text))
                then (string-match regexp text (match-end 0))
                while start count t)
       (if coding
           (seq-count (lambda (position)
                        (let ((char (aref text position)))
                          (and (/= #xFFFD char) (<= char #x10FFFF))))
                      (gemini-companion-coding--missing text coding))
         0))))

(defun gemini-companion-coding--missing (text coding)
  "Return the positions in TEXT of characters that CODING cannot encode."
  (and (not (string-empty-p text))
       (unencodable-char-position 0 (length text) coding (length text) text)))

(defun gemini-companion-coding-as-written (text coding)
  "Return TEXT with one question mark for each run of characters lost in CODING.
Question marks of TEXT count as lost, since Qwen Code writes one or more
of them, or another byte, for a lost character."
  ;; Emacs 31 signals an error where a string gets a character of another length.
  (let ((characters (vconcat text)))
    (dolist (position (gemini-companion-coding--missing text coding))
      (aset characters position ?\uFFFD))
    (gemini-companion-coding--replace
     (concat characters) gemini-companion-coding--lost-or-question "?")))

;;;; Guessing

(cl-defstruct (gemini-companion-coding--sample
               (:noinline t)
               (:constructor gemini-companion-coding--make-sample)
               (:copier nil))
  "Lines of a file that are compared with a proposal.
LINES are strings of bytes.  If COMPLETE is non-nil, they are all lines of the
file that are not ASCII.  Otherwise, the file is large; NUMBERS are the line
numbers of LINES, from 1, and COUNT is the number of all lines of the file."
  lines complete numbers count)

(defun gemini-companion-coding-guess (bytes text codings preferred)
  "Guess the coding system in which a CLI has read BYTES.
TEXT is the proposal of the CLI for the file with BYTES.  The value is a
member of CODINGS, see `gemini-companion-client-codings', or of PREFERRED,
which wins a tie, its first element before the others.  Only some lines of a
large file are compared."
  (cond ((string-match-p "\\`\377\376" bytes) 'utf-16le-with-signature-unix)
        ((string-match-p "\\`\376\377" bytes) 'utf-16be-with-signature-unix)
        ((gemini-companion-coding-utf-8-p bytes) 'utf-8-unix)
        (t
         (gemini-companion-garbage-later
           (let* ((sample (gemini-companion-coding--sample-of bytes))
                  (lines-of-text (gemini-companion-coding--lines-of text sample))
                  (candidates
                   (cl-loop
                    for coding in (seq-uniq (append preferred codings))
                    for lines = (mapcar
                                 (lambda (line)
                                   (gemini-companion-coding--line
                                    (decode-coding-string line coding)))
                                 (gemini-companion-coding--sample-lines sample))
                    for unmatched = (seq-remove
                                     (lambda (line)
                                       (gethash (gemini-companion-coding--key line)
                                                lines-of-text))
                                     lines)
                    collect (list (length unmatched) coding unmatched)))
                  (least (apply #'min (mapcar #'car candidates))))
             (gemini-companion-coding--best
              (seq-filter (pcase-lambda (`(,count . ,_)) (= count least))
                          candidates)
              (gemini-companion-coding--sample-lines sample) text preferred))))))

(defun gemini-companion-coding--best (candidates lines text preferred)
  "Return the coding system of the best of CANDIDATES.
Each candidate is a list (COUNT CODING UNMATCHED): UNMATCHED are those of
LINES, strings of bytes, that TEXT does not have when they are decoded by
CODING, and COUNT is their number, which is the same for all CANDIDATES.
For PREFERRED, see `gemini-companion-coding-guess'."
  (if (null (cdr candidates))
      (nth 1 (car candidates))
    (let ((text (substring text 0 (min (length text)
                                       (* 4 gemini-companion-coding--sample-bytes))))
          best)
      (pcase-dolist (`(,_ ,coding ,unmatched) candidates)
        ;; The lowest score wins; an element counts if those before it are equal.
        (let ((score
               (list (- (gemini-companion-coding--likeness unmatched text))
                     (or (seq-position preferred coding)
                         (length preferred))
                     ;; If the whole text has changed, prefer a coding system that
                     ;; decodes all bytes, and then one that encodes TEXT.
                     (seq-count (lambda (line)
                                  (gemini-companion-coding-undecoded-p
                                   (decode-coding-string line coding)))
                                lines)
                     (if (gemini-companion-coding--missing text coding) 1 0))))
          (when (or (null best)
                    (cl-loop for new in score
                             for old in (car best)
                             unless (= new old) return (< new old)))
            (setq best (list score coding)))))
      (nth 1 best))))

(defun gemini-companion-coding--likeness (lines text)
  "Return the fraction of character pairs in LINES that TEXT has, 0.0 to 1.0.
Only pairs with a character outside ASCII count.  A changed line still has
most of its pairs; a line that is decoded wrongly has few."
  (let ((pairs 0)
        (common 0))
    (catch 'enough
      (dolist (line lines)
        (let ((start 0))
          (while (string-match ".[^[:ascii:]]\\|[[:nonascii:]]" line start)
            (setq start (match-end 0)
                  pairs (1+ pairs))
            (when (string-search (match-string 0 line) text)
              (setq common (1+ common)))
            (when (= 200 pairs)
              (throw 'enough nil))))))
    (if (= 0 pairs) 0.0 (/ (float common) pairs))))

(defun gemini-companion-coding--key (line)
  "Return the hash table key of LINE.
Emacs 28 hashes only parts of a string, so that a look-up among many similar
lines would be as slow as a search."
  (md5 line nil nil 'utf-8-emacs-unix 'noerror))

(defun gemini-companion-coding--line (line)
  "Return LINE, a line or a text, with U+FFFD for each run of undecoded bytes."
  (if (string-match-p "[^[:ascii:]]" line)
      (gemini-companion-coding--replace line gemini-companion-coding--lost "\uFFFD")
    line))

(defun gemini-companion-coding--lines-of (text sample)
  "Return a hash table with the keys of the lines of TEXT to compare with SAMPLE.
If SAMPLE is complete, these are all lines that are not ASCII; otherwise,
only lines near the numbers of SAMPLE: a hundred thousand lines would take a
second."
  (let* ((keys (make-hash-table :test #'equal))
         (add-line (lambda ()
                     (puthash (gemini-companion-coding--key
                               (string-remove-suffix
                                "\r" (buffer-substring (point)
                                                       (line-end-position))))
                              t keys))))
    (with-temp-buffer
      (insert (if (string-search "\uFFFD" text)
                  (gemini-companion-coding--line text)
                text))
      (goto-char (point-min))
      (if (gemini-companion-coding--sample-complete sample)
          (while (re-search-forward "[^[:ascii:]]" nil t)
            (forward-line 0)
            (funcall add-line)
            (forward-line))
        (let ((line 1))
          (dolist (first (gemini-companion-coding--windows
                          sample (count-lines (point-min) (point-max))))
            (forward-line (- first line))
            (setq line first)
            (save-excursion
              (dotimes (_ 5)
                (funcall add-line)
                (forward-line)))))))
    keys))

(defun gemini-companion-coding--windows (sample count)
  "Return the first lines of the windows in which lines of SAMPLE may be.
A window has five lines, and is in a proposal with COUNT lines.  For each line
of SAMPLE there are two, in order of lines: one around its number, in case the
proposal differs below it, and one around its number counted from the end, in
case the proposal differs above it."
  (let ((shift (- count (gemini-companion-coding--sample-count sample))))
    (sort (cl-loop for number in (gemini-companion-coding--sample-numbers sample)
                   collect (max 1 (- number 2))
                   collect (max 1 (+ number shift -2)))
          #'<)))

(defun gemini-companion-coding--sample-of (bytes)
  "Return the `gemini-companion-coding--sample' of a file with BYTES."
  (with-temp-buffer
    (set-buffer-multibyte nil)
    (insert bytes)
    (goto-char (point-min))
    (if (<= (buffer-size) gemini-companion-coding--sample-bytes)
        (gemini-companion-coding--make-sample
         :complete t
         :lines (cl-loop while (re-search-forward "[\200-\377]" nil t)
                         collect (gemini-companion-coding--bytes-of-line)
                         do (forward-line)))
      (let ((line 1)
            lines numbers)
        (dolist (position (seq-uniq
                           (sort (append
                                  (gemini-companion-coding--lines-with-each-byte)
                                  (gemini-companion-coding--lines-everywhere))
                                 #'<)
                           #'eql))
          (cl-incf line (count-lines (point) position))
          (goto-char position)
          (push line numbers)
          (push (gemini-companion-coding--bytes-of-line) lines))
        (gemini-companion-coding--make-sample
         :lines (nreverse lines)
         :numbers (nreverse numbers)
         :count (count-lines (point-min) (point-max)))))))

(defun gemini-companion-coding--lines-with-each-byte ()
  "Return positions of lines that have all bytes outside ASCII of this buffer.
Leave point at the beginning of the buffer."
  (let ((bytes (number-sequence #x80 #xFF))
        positions)
    (while (and bytes
                (re-search-forward
                 (concat "[" (apply #'unibyte-string bytes) "]") nil t))
      (push (line-beginning-position) positions)
      (setq bytes (seq-difference
                   bytes (cons (char-before)
                               (append (gemini-companion-coding--bytes-of-line)
                                       nil)))))
    (goto-char (point-min))
    positions))

(defun gemini-companion-coding--lines-everywhere ()
  "Return positions of about 200 lines that are not ASCII, evenly distributed.
Leave point at the beginning of the buffer."
  (let ((step (/ (buffer-size) 200))
        positions)
    (while (re-search-forward "[\200-\377]" nil t)
      (push (line-beginning-position) positions)
      (goto-char (max (line-end-position)
                      (min (point-max) (+ step (point))))))
    (goto-char (point-min))
    positions))

(defun gemini-companion-coding--bytes-of-line ()
  "Return at most 16 kB of the line at point, without the line end.
A longer line is only compared by its pairs of characters."
  (let ((beginning (line-beginning-position)))
    (string-remove-suffix
     "\r" (buffer-substring beginning
                            (min (line-end-position) (+ 16384 beginning))))))

(provide 'gemini-companion-coding)
;;; gemini-companion-coding.el ends here
