;;; gemini-companion-coding.el --- Files that are not UTF-8  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; How a CLI reads and writes a file that is not UTF-8.  Gemini CLI and Copilot CLI
;; read UTF-8 all the same, and replace what is none by U+FFFD.  Qwen Code guesses
;; a coding system by statistics, often a wrong one where there is little text: of
;; "x é" in Latin-1, it is KOI8-R.  It writes the file in that, and "?" for what
;; that does not have.  Only the text that it proposes tells which one it was.
;;
;; Nothing here knows edits.  All coding systems have plain line ends.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-garbage)
(require 'seq)
(require 'subr-x)

;; Emacs forgets what it has compiled of a regexp once it has matched 20 others, and
;; to compile a range, it goes through its characters: 4 ms for those of Unicode, and
;; 20 ms for bytes that were not decoded and characters outside Unicode, at each key
;; that toggles a hunk.  Therefore these name what is not to match.

(defconst gemini-companion-coding--undecoded "[^\0-\x10ffff]"
  "Regexp for a byte that was not decoded, or a character outside Unicode.")

(defconst gemini-companion-coding--lost "[^\0-\uFFFC\uFFFE-\x10ffff]"
  "Regexp for what the one above matches, and U+FFFD.")

(defconst gemini-companion-coding--lost-or-asked "[^\0->@-\uFFFC\uFFFE-\x10ffff]"
  "Regexp for what the one above matches, and a question mark.")

(defconst gemini-companion-coding--sample-bytes (* 64 1024)
  "Number of bytes beyond which a file is only sampled.")

;;;; Coding systems

(defun gemini-companion-coding-undecoded-p (text)
  "Return non-nil if TEXT has a byte that was not decoded.
A character outside Unicode counts, too: other programs do not have it."
  ;; A class takes no time to compile.  The regexp above takes milliseconds, as Emacs
  ;; goes through each character of its range, and does so again whenever it has
  ;; compiled some others since.
  (and (string-match-p "[^[:ascii:]]" text)
       (or (not (multibyte-string-p text))
           (unencodable-char-position 0 (length text) 'utf-8 nil text))))

(defun gemini-companion-coding--replace (text regexp replacement)
  "Return TEXT with REPLACEMENT for each run of what REGEXP, above, matches."
  (let ((case-fold-search nil)
        (runs (concat regexp "+")))
    (if (string-match-p runs text)
        (replace-regexp-in-string runs replacement text)
      text)))

(defun gemini-companion-coding-utf-8-p (bytes)
  "Return non-nil if BYTES are UTF-8, as all programs read it."
  (not (gemini-companion-coding-undecoded-p
        (decode-coding-string bytes 'utf-8-unix))))

(defun gemini-companion-coding-declared (file bytes)
  "Return the coding system that FILE, which has BYTES, declares, or nil.
That is the one of a cookie in it, or of the user's settings for its name."
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
  "Return the coding system in which Emacs would visit FILE, which has BYTES."
  (or (gemini-companion-coding-declared file bytes)
      (coding-system-change-eol-conversion
       (detect-coding-string bytes 'highest) 'unix)))

(defun gemini-companion-coding-of-buffer (buffer)
  "Return the coding system of the file of BUFFER, or nil if it has bytes.
One that the user has chosen for reading the file counts."
  (with-current-buffer buffer
    (when-let* ((enable-multibyte-characters)
                (coding (or (car buffer-file-coding-system-explicit)
                            buffer-file-coding-system))
                ((not (memq (coding-system-type coding) '(raw-text undecided)))))
      (coding-system-change-eol-conversion coding 'unix))))

(defun gemini-companion-coding-decode-undecoded (bytes coding)
  "Return the text of BYTES in UTF-8, and in CODING the lines that are not UTF-8.
Where CODING does not decode them, either, the bytes stay."
  (let ((case-fold-search nil)
        (text (decode-coding-string bytes 'utf-8-unix))
        other)
    (cond ((not (and (gemini-companion-coding-undecoded-p text)
                     ;; In UTF-16, a line ends elsewhere.
                     (coding-system-get coding :ascii-compatible-p)))
           text)
          ;; A file in Latin-1 hardly has any text in UTF-8.
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

;;;; Characters that are lost

(defun gemini-companion-coding-sendable (text)
  "Return TEXT with U+FFFD for each byte that UTF-8 does not have."
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
  "Return the number of characters of TEXT that are lost.
These are U+FFFD and bytes, and with CODING non-nil, also the characters
that it does not have."
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
  "Return the positions in TEXT of characters that CODING does not have."
  (and (not (string-empty-p text))
       (unencodable-char-position 0 (length text) coding (length text) text)))

(defun gemini-companion-coding-as-written (text coding)
  "Return TEXT with a question mark for what is lost in CODING.
Qwen Code writes one or more of these, or another byte."
  ;; Emacs 31 signals an error where a string gets a character of another length.
  (let ((characters (vconcat text)))
    (dolist (position (gemini-companion-coding--missing text coding))
      (aset characters position ?\uFFFD))
    (gemini-companion-coding--replace
     (concat characters) gemini-companion-coding--lost-or-asked "?")))

;;;; Guessing

(defun gemini-companion-coding-guess (bytes text codings preferred)
  "Return the coding system in which a CLI has read BYTES that proposes TEXT.
It is one of CODINGS, see `gemini-companion-client-codings', or PREFERRED;
these are the coding systems that count if no other one fits better, the
best one first.  Of a large file, only some lines are compared."
  (cond ((string-match-p "\\`\377\376" bytes) 'utf-16le-with-signature-unix)
        ((string-match-p "\\`\376\377" bytes) 'utf-16be-with-signature-unix)
        ((gemini-companion-coding-utf-8-p bytes) 'utf-8-unix)
        (t
         (gemini-companion-garbage-later
           (let* ((sampled (gemini-companion-coding--sample bytes))
                  (sample (car sampled))
                  (known (gemini-companion-coding--lines text (cdr sampled)))
                  (candidates
                   (cl-loop
                    for coding in (seq-uniq (append preferred codings))
                    for lines = (mapcar
                                 (lambda (line)
                                   (gemini-companion-coding--line
                                    (decode-coding-string line coding)))
                                 sample)
                    for left = (seq-remove
                                (lambda (line)
                                  (gethash (gemini-companion-coding--key line) known))
                                lines)
                    collect (list (length left) coding left)))
                  (least (apply #'min (mapcar #'car candidates))))
             (gemini-companion-coding--best
              (seq-filter (pcase-lambda (`(,missed . ,_)) (= missed least))
                          candidates)
              sample text preferred))))))

(defun gemini-companion-coding--best (candidates sample text preferred)
  "Return the best of CANDIDATES, which have equally many lines of TEXT.
Each is a list (MISSED CODING LEFT); LEFT are the lines of SAMPLE, decoded,
that TEXT does not have.  For PREFERRED, see `gemini-companion-coding-guess'."
  (if (null (cdr candidates))
      (nth 1 (car candidates))
    (let ((text (substring text 0 (min (length text)
                                       (* 4 gemini-companion-coding--sample-bytes))))
          best)
      (pcase-dolist (`(,_ ,coding ,left) candidates)
        (let ((score
               (list (- (gemini-companion-coding--likeness left text))
                     (or (seq-position preferred coding)
                         (length preferred))
                     ;; If nothing is as it was, prefer one that has all.
                     (seq-count (lambda (line)
                                  (gemini-companion-coding-undecoded-p
                                   (decode-coding-string line coding)))
                                sample)
                     (if (gemini-companion-coding--missing text coding) 1 0))))
          (when (or (null best)
                    (cl-loop for new in score
                             for old in (car best)
                             unless (= new old) return (< new old)))
            (setq best (list score coding)))))
      (nth 1 best))))

(defun gemini-companion-coding--likeness (lines text)
  "Return the part of the pairs of characters in LINES that TEXT has, 0.0 to 1.0.
A changed line still has most of its pairs, but decoded wrongly, few."
  (let ((pairs 0)
        (found 0))
    (catch 'enough
      (dolist (line lines)
        (let ((start 0))
          (while (string-match ".[^[:ascii:]]\\|[[:nonascii:]]" line start)
            (setq start (match-end 0)
                  pairs (1+ pairs))
            (when (string-search (match-string 0 line) text)
              (setq found (1+ found)))
            (when (= 200 pairs)
              (throw 'enough nil))))))
    (if (= 0 pairs) 0.0 (/ (float found) pairs))))

(defun gemini-companion-coding--key (line)
  "Return a key for LINE in a table.
Emacs 28 hashes only parts of a string: among many lines that are alike, each
look-up would take as long as a search."
  (md5 line nil nil 'utf-8-emacs-unix 'noerror))

(defun gemini-companion-coding--line (line)
  "Return LINE, or a text, with U+FFFD for what is not decoded."
  (if (string-match-p "[^[:ascii:]]" line)
      (gemini-companion-coding--replace line gemini-companion-coding--lost "\uFFFD")
    line))

(defun gemini-companion-coding--lines (text &optional numbers)
  "Return a table with keys of the lines of TEXT that are not ASCII.
With NUMBERS, the numbers of the sampled lines of another text and of all its
lines, that are only the lines near these, counted from the beginning and
from the end: hundred thousand would take a second."
  (let* ((known (make-hash-table :test #'equal))
         (take (lambda ()
                 (puthash (gemini-companion-coding--key
                           (string-remove-suffix
                            "\r" (buffer-substring (point)
                                                   (line-end-position))))
                          t known))))
    (with-temp-buffer
      (insert (if (string-search "\uFFFD" text)
                  (gemini-companion-coding--line text)
                text))
      (goto-char (point-min))
      (if (null numbers)
          (while (re-search-forward "[^[:ascii:]]" nil t)
            (forward-line 0)
            (funcall take)
            (forward-line))
        (let ((moved (- (count-lines (point-min) (point-max))
                        (car (last numbers))))
              (at 1))
          (dolist (number (sort (cl-loop for number in (butlast numbers)
                                         collect (max 1 (- number 2))
                                         collect (max 1 (+ number moved -2)))
                                #'<))
            (forward-line (- number at))
            (setq at number)
            (save-excursion
              (dotimes (_ 5)
                (funcall take)
                (forward-line)))))))
    known))

(defun gemini-companion-coding--sample (bytes)
  "Return lines of BYTES that are not ASCII, and their numbers.
The value is a cons of a list of strings of bytes, and of nil if these are
all; or if they are many, of those with bytes that others do not have, and
some from everywhere, and a list of their numbers and that of all lines."
  (with-temp-buffer
    (set-buffer-multibyte nil)
    (insert bytes)
    (goto-char (point-min))
    (if (<= (buffer-size) gemini-companion-coding--sample-bytes)
        (list (cl-loop while (re-search-forward "[\200-\377]" nil t)
                       collect (gemini-companion-coding--bytes-of-line)
                       do (forward-line)))
      (let ((step (/ (buffer-size) 200))
            (left (number-sequence #x80 #xFF))
            places lines numbers)
        (while (and left
                    (re-search-forward
                     (concat "[" (apply #'unibyte-string left) "]") nil t))
          (push (line-beginning-position) places)
          (setq left (seq-difference
                      left (cons (char-before)
                                 (append (gemini-companion-coding--bytes-of-line)
                                         nil)))))
        (goto-char (point-min))
        (while (re-search-forward "[\200-\377]" nil t)
          (push (line-beginning-position) places)
          (goto-char (max (line-end-position)
                          (min (point-max) (+ step (point))))))
        (goto-char (point-min))
        (dolist (place (seq-uniq (sort places #'<) #'eql))
          (push (+ (or (car numbers) 1) (count-lines (point) place)) numbers)
          (goto-char place)
          (push (gemini-companion-coding--bytes-of-line) lines))
        (cons (nreverse lines)
              (nreverse (cons (count-lines (point-min) (point-max)) numbers)))))))

(defun gemini-companion-coding--bytes-of-line ()
  "Return the line at point, without its end, at most 16 kB of it.
Of a longer one, only pairs of characters are compared."
  (let ((beginning (line-beginning-position)))
    (string-remove-suffix
     "\r" (buffer-substring beginning
                            (min (line-end-position) (+ 16384 beginning))))))

(provide 'gemini-companion-coding)
;;; gemini-companion-coding.el ends here
