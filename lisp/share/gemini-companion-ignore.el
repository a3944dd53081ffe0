;;; gemini-companion-ignore.el --- Files that the rules of a project ignore  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Read .geminiignore and files like it, and match names with their patterns, as
;; Git does with .gitignore.
;;
;; Which rule decides: each kind of ignore file is for itself, and one that ignores
;; a file is enough.  Within a kind, the rules of the innermost directory come
;; first, and in one file the last line first; the first rule that matches decides.
;; It is asked for each directory on the way to the file, from the outermost, as a
;; file in an ignored directory cannot be included again.
;;
;; The rules of a directory, with those above, are kept until one of the files
;; changes, is written or is deleted.

;;; Code:

(require 'gemini-companion-cache)
(require 'gemini-companion-clients)
(require 'gemini-companion-text)

;;;; State

(cl-defstruct (gemini-companion-ignore--rule
               (:noinline t)
               (:constructor gemini-companion-ignore--rule
                             (above pattern directory-p include-p)))
  "A line of an ignore file.
ABOVE is the number of names in the directory of that file, so the path
without as many of its first names is what PATTERN is matched with.
DIRECTORY-P is non-nil if the rule is for directories only, and INCLUDE-P
if it includes again what a previous line ignores.

PATTERN is a list of names, with nil for `**'; a name is a list of regexps
with gaps between them that match anything.  The pattern of `src/*.el'
has two names, of one regexp, src, and of two, with a gap between the
beginning and .el at the end."
  above pattern directory-p include-p)

;;;; Decision

(defun gemini-companion-ignore-p (file)
  "Return non-nil if an ignore file, such as .geminiignore, names FILE.
FILE is an absolute name.  See the commentary for which rule decides."
  (let ((case-fold-search (file-name-case-insensitive-p file))
        (path (split-string file "/" t)))
    (seq-some (lambda (name)
                (gemini-companion-ignore--path-ignored-p
                 path (gemini-companion-ignore--rules-of
                       name (file-name-directory file))))
              (gemini-companion-clients-append
               #'gemini-companion-client-ignore-files))))

(defun gemini-companion-ignore--path-ignored-p (path rules)
  "Return non-nil if RULES ignore PATH, a list of names, or a directory above."
  (cl-loop for depth from 1 to (length path)
           thereis (gemini-companion-ignore--ignored-at-p path depth rules)))

(defun gemini-companion-ignore--ignored-at-p (path depth rules)
  "Return non-nil if RULES ignore what the first DEPTH names of PATH name."
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
     (let ((file (expand-file-name name directory))
           (outside (file-name-directory (directory-file-name directory))))
       (gemini-companion-cache-note-time file)
       (append (when (file-regular-p file)
                 (gemini-companion-ignore--rules
                  file (length (split-string directory "/" t))))
               (unless (equal outside directory)
                 (gemini-companion-ignore--rules-of name outside)))))))

;;;; Patterns

;; A regexp in a pattern matches texts of one length only, and what follows a gap
;; is matched where it is found first, so no pattern takes exponential time.
(defun gemini-companion-ignore--match-p (pattern path)
  "Return non-nil if PATTERN matches PATH, a list of file names.
For PATTERN, see `gemini-companion-ignore--rule'."
  ;; The parts of PATH that may be left, the longest first.
  (let ((rests (list path)))
    (dolist (name pattern (memq nil rests))
      (setq rests
            (if name
                (cl-loop for (text . rest) in (remq nil rests)
                         when (cl-loop for regexp in name
                                       for start = 0 then (match-end 0)
                                       always (string-match regexp text start))
                         collect rest)
              (and rests
                   `(,@(cl-maplist #'identity (car rests)) nil)))))))

(defun gemini-companion-ignore--rules (file above)
  "Return the rules in FILE, a .geminiignore, the last line first.
ABOVE is the number of names in its directory."
  (let ((text (gemini-companion-text-normalized
               (concat (gemini-companion-text-read file) "\n")))
        (rules nil))
    (dolist (line (split-string text "[ \t]*\n") rules)
      (let* ((pattern (string-remove-prefix "!" line))
             (names (split-string (string-remove-suffix "/" pattern) "/"))
             (anchored (cdr names)))
        (unless (or (string-prefix-p "#" line) (equal "" (car (last names))))
          (when (equal "" (car names))
            (pop names))
          ;; Git ignores a malformed line, too.
          (ignore-error invalid-regexp
            (push (gemini-companion-ignore--rule
                   above
                   (gemini-companion-ignore--pattern names anchored)
                   (string-suffix-p "/" pattern)
                   (string-prefix-p "!" line))
                  rules)))))))

(defun gemini-companion-ignore-glob-match-p (glob file)
  "Return non-nil if GLOB, a pattern as in an ignore file, matches FILE.
FILE is a name below the directory that GLOB is for, or an absolute one.
GLOB names FILE itself, not a directory of it, unless it ends in a slash.
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
  "Return the pattern for NAMES, the parts of a line of an ignore file.
Unless ANCHORED is non-nil, it matches in each directory.  For patterns, see
`gemini-companion-ignore--rule'.  Signal an error if one is malformed."
  (let ((names (mapcar #'gemini-companion-ignore--name names)))
    (append (unless anchored '(nil))
            names
            ;; At the end ** stands for at least one name, elsewhere for any
            ;; number.
            (unless (car (last names)) '((""))))))

(defun gemini-companion-ignore--name (text)
  "Return a pattern for the name TEXT, or nil for `**'.
Signal an error if it is malformed."
  (unless (string-match-p "\\`\\*\\*+\\'" text)
    (let ((regexps
           (split-string
            (concat
             "\\`"
             (replace-regexp-in-string
              ;; Stars, a class, a character.
              (concat "\\*+\\|\\[[!^]?\\(?:\\[:[a-z]+:]\\|.\\)"
                      "\\(?:\\[:[a-z]+:]\\|[^]]\\)*]\\|\\\\.\\|.")
              (lambda (token)
                (pcase token
                  ((pred (string-prefix-p "*")) "\0")
                  ("?" "[^/]")
                  ((or "[" "\\") (signal 'invalid-regexp (list token)))
                  ((pred (string-prefix-p "[!"))
                   (concat "[^" (substring token 2)))
                  ((pred (string-prefix-p "[")) token)
                  (_ (regexp-quote (substring token -1)))))
              text t t)
             "\\'")
            "\0")))
      (dolist (regexp regexps regexps)
        (string-match-p regexp "")))))

(provide 'gemini-companion-ignore)
;;; gemini-companion-ignore.el ends here
