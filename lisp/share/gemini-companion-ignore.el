;;; gemini-companion-ignore.el --- Files that the rules of a project ignore  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Read .geminiignore and similar files, and match file names with their patterns, as
;; Git does with .gitignore.
;;
;; Each kind of ignore file is evaluated independently; a file is ignored if one kind
;; ignores it.  Within a kind, rules of inner directories precede those of outer ones,
;; and later lines of a file precede earlier ones; the first matching rule decides.
;; Directories above the file are checked before it, the outermost first, since a file
;; in an ignored directory cannot be included again.
;;
;; The rules of a directory, including those above it, are cached until one of the
;; files changes.

;;; Code:

(require 'gemini-companion-cache)
(require 'gemini-companion-clients)
(require 'gemini-companion-names)
(require 'gemini-companion-text)

;;;; State

(cl-defstruct (gemini-companion-ignore--rule
               (:noinline t)
               (:constructor gemini-companion-ignore--rule
                             (above pattern directory-p include-p)))
  "A line of an ignore file.
PATTERN is matched with the path of a file relative to the ignore file: the
absolute path without its first ABOVE names.  DIRECTORY-P is non-nil if the
rule applies only to directories, and INCLUDE-P if it includes again what a
previous line ignores.

PATTERN is a list with an element for each name in the path: the symbol `**'
for any number of names, or a list of regexps, which match one after another
in a name with any text between them.  For example, the pattern of
`src/**/*.el' has three elements: a regexp for src, `**', and two regexps, for
the beginning of a name and for .el at its end."
  above pattern directory-p include-p)

;;;; Decision

(defun gemini-companion-ignore-p (file)
  "Return non-nil if ignore files, such as .geminiignore, exclude FILE.
FILE is an absolute name.  For which rule decides, see the commentary."
  (let ((case-fold-search (file-name-case-insensitive-p file))
        (path (split-string file "/" t)))
    (seq-some (lambda (name)
                (gemini-companion-ignore--path-ignored-p
                 path (gemini-companion-ignore--rules-of
                       name (file-name-directory file))))
              (gemini-companion-clients-append
               #'gemini-companion-client-ignore-files))))

(defun gemini-companion-ignore--path-ignored-p (path rules)
  "Return non-nil if RULES ignore PATH, a list of names, or a directory above it."
  (and rules
       (cl-loop for depth from 1 to (length path)
                thereis (gemini-companion-ignore--ignored-at-p path depth rules))))

(defun gemini-companion-ignore--ignored-at-p (path depth rules)
  "Return non-nil if RULES ignore the first DEPTH names of PATH.
If DEPTH is less than the length of PATH, these are a directory."
  (when-let*
      ((rule (seq-find
              (lambda (rule)
                (pcase-let (((cl-struct gemini-companion-ignore--rule
                                        above pattern directory-p)
                             rule))
                  (and (< above depth)
                       (or (not directory-p) (< depth (length path)))
                       (gemini-companion-ignore--match-p
                        pattern (seq-subseq path above depth)))))
              rules)))
    (not (gemini-companion-ignore--rule-include-p rule))))

;;;; Rules

(defun gemini-companion-ignore--rules-of (name directory)
  "Return the rules of the files NAME in DIRECTORY and above.
The rules of the innermost file come first."
  (gemini-companion-cache-get
   (list 'ignored name directory)
   (lambda ()
     (let ((file (gemini-companion-names-below directory name))
           (outside (file-name-directory (directory-file-name directory))))
       (gemini-companion-cache-note-time file)
       (append (when (file-regular-p file)
                 (gemini-companion-ignore--rules
                  file (length (split-string directory "/" t))))
               (unless (equal outside directory)
                 (gemini-companion-ignore--rules-of name outside)))))))

;;;; Patterns

(defun gemini-companion-ignore--match-p (pattern path)
  "Return non-nil if PATTERN matches PATH, a list of file names.
For PATTERN, see `gemini-companion-ignore--rule'."
  ;; Tails of PATH that the elements so far may leave unmatched, the longest
  ;; first.  PATTERN matches if the empty tail is among them at the end.
  (let ((tails (list path)))
    (dolist (element pattern (memq nil tails))
      (setq tails (if (eq '** element)
                      (gemini-companion-ignore--tails-of (car tails) tails)
                    (cl-loop for (name . tail) in (remq nil tails)
                             when (gemini-companion-ignore--name-match-p
                                   element name)
                             collect tail))))))

(defun gemini-companion-ignore--tails-of (longest tails)
  "Return all tails of LONGEST, the first one of TAILS; nil if TAILS is nil.
The value is a list with the longest first, and the empty tail last."
  (and tails (append (cl-maplist #'identity longest) '(nil))))

;; A regexp matches texts of a fixed length, and only its first match is tried, so no
;; pattern takes exponential time.
(defun gemini-companion-ignore--name-match-p (regexps name)
  "Return non-nil if all REGEXPS match in NAME, each after the previous one."
  (let ((start 0))
    (seq-every-p (lambda (regexp)
                   (when (string-match regexp name start)
                     (setq start (match-end 0))))
                 regexps)))

(defun gemini-companion-ignore--rules (file above)
  "Return the rules in FILE, an ignore file, the last line first.
ABOVE is the number of names in the directory of FILE."
  (let ((text (gemini-companion-text-normalized
               (concat (gemini-companion-text-read file) "\n")))
        (rules nil))
    (dolist (line (split-string text "\n") rules)
      (let* ((line (gemini-companion-text-trim line " \t" 'right))
             (pattern (string-remove-prefix "!" line))
             (names (split-string (string-remove-suffix "/" pattern) "/"))
             (anchored (cdr names)))
        (unless (or (string-prefix-p "#" line) (equal "" (car (last names))))
          (when (equal "" (car names))
            (pop names))
          ;; Skip a malformed line, as Git does.
          (ignore-error invalid-regexp
            (push (gemini-companion-ignore--rule
                   above
                   (gemini-companion-ignore--pattern names anchored)
                   (string-suffix-p "/" pattern)
                   (string-prefix-p "!" line))
                  rules)))))))

(defun gemini-companion-ignore-glob-match-p (glob file)
  "Return non-nil if GLOB, a pattern of an ignore file, matches FILE.
FILE is relative to the directory to which GLOB applies, or absolute.  GLOB
must match FILE itself, or if it ends with a slash, a directory above FILE.
Signal an error if GLOB is malformed."
  (let* ((names (split-string (if (string-suffix-p "/" glob)
                                  (concat glob "**")
                                glob)
                              "/"))
         (anchored (cdr names)))
    (when (equal "" (car names))
      (pop names))
    (gemini-companion-ignore--match-p
     (gemini-companion-ignore--pattern names anchored)
     (split-string file "/" t))))

(defun gemini-companion-ignore--pattern (names anchored)
  "Return the pattern of NAMES, the names between slashes in a line.
If ANCHORED is nil, it matches in each directory.  For patterns, see
`gemini-companion-ignore--rule'.  Signal an error if one is malformed."
  (let ((elements (mapcar #'gemini-companion-ignore--element names)))
    (append (unless anchored '(**))
            elements
            ;; A trailing `**' matches at least one name.
            (when (eq '** (car (last elements))) '((""))))))

(defconst gemini-companion-ignore--token
  (string-join
   '("\\*+"
     ;; A class: its first character may be a bracket.
     "\\[[!^]?\\(?:\\[:[a-z]+:]\\|.\\)\\(?:\\[:[a-z]+:]\\|[^]]\\)*]"
     "\\\\."
     ".")
   "\\|")
  "Regexp for a token in a name: stars, a class, or a character.")

(defun gemini-companion-ignore--element (name)
  "Return the element of a pattern for NAME, a name between slashes.
Signal an error if NAME is malformed."
  (gemini-companion-ignore--check-classes name)
  (if (string-match-p "\\`\\*\\*+\\'" name)
      '**
    (let ((regexps
           (split-string
            (concat "\\`"
                    (replace-regexp-in-string
                     gemini-companion-ignore--token
                     #'gemini-companion-ignore--token-regexp
                     name t t)
                    "\\'")
            "\0")))
      (dolist (regexp regexps regexps)
        (string-match-p regexp "")))))

(defun gemini-companion-ignore--check-classes (name)
  "Signal an error if the last class of a pattern in NAME has no end.
For many beginnings of a class, to search the end of each would take long."
  (let ((rest (substring name (1+ (or (cl-position ?\] name :from-end t) -1)))))
    (when (string-search "[" (replace-regexp-in-string "\\\\." "" rest))
      (signal 'invalid-regexp (list name)))))

(defun gemini-companion-ignore--token-regexp (token)
  "Return the regexp for TOKEN, or a null character for stars.
Signal an error if TOKEN is incomplete."
  (pcase token
    ((pred (string-prefix-p "*")) "\0")
    ("?" "[^/]")
    ((or "[" "\\") (signal 'invalid-regexp (list token)))
    ((pred (string-prefix-p "[!")) (concat "[^" (substring token 2)))
    ((pred (string-prefix-p "[")) token)
    (_ (regexp-quote (substring token -1)))))

(provide 'gemini-companion-ignore)
;;; gemini-companion-ignore.el ends here
