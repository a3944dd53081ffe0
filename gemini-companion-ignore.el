;;; gemini-companion-ignore.el --- Files that the rules of a project ignore  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Read .geminiignore and files like it, and match names with their patterns.

;;; Code:

(require 'gemini-companion-cache)
(require 'gemini-companion-client)
(require 'gemini-companion-text)

(defun gemini-companion-ignore-p (file)
  "Return non-nil if an ignore file, such as .geminiignore, names FILE.
A file in an ignored directory cannot be included again."
  (cl-loop
   with case-fold-search = (file-name-case-insensitive-p file)
   with parts = (split-string file "/" t)
   for name in (gemini-companion-client-all :ignore-files)
   for rules = (gemini-companion-ignore--rules-of
                name (file-name-directory file))
   thereis (cl-loop
            for depth from 1 to (length parts)
            ;; The first rule that matches decides.
            thereis (cl-loop
                     for (above pattern directory negated) in rules
                     when (and (< above depth)
                               (or (not directory) (< depth (length parts)))
                               (gemini-companion-ignore--match-p
                                pattern (seq-subseq parts above depth)))
                     return (not negated)))))

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

;; A pattern is a list of names, with nil for `**'; a name is a list of regexps
;; with gaps between them that match anything.  A regexp matches texts of one
;; length only, and what follows a gap is matched where it is found first, so no
;; pattern takes exponential time.
(defun gemini-companion-ignore--match-p (pattern path)
  "Return non-nil if PATTERN matches PATH, a list of file names."
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
  "Return the rules in FILE, a .geminiignore, the last one first.
Each is a list of ABOVE, the number of parts of its directory, a
pattern, whether it is for directories only, and whether it includes
again what a previous rule ignores."
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
          ;; As Git does.
          (ignore-error invalid-regexp
            (setq names (mapcar #'gemini-companion-ignore--name names))
            (push (list above
                        (append (unless anchored '(nil))
                                names
                                ;; At the end ** stands for at least one name,
                                ;; elsewhere for any number.
                                (unless (car (last names)) '((""))))
                        (string-suffix-p "/" pattern)
                        (string-prefix-p "!" line))
                  rules)))))))

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
