;;; gemini-companion-cache.el --- Values that are kept until a file changes  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Hooks ask at each command whether a file is shared.  This file caches the answers
;; that are computed from ignore files and names, and drops all of them when one of
;; the ignore files has changed.
;;
;; A key is a list: a symbol for the question, and all arguments of the answer.
;;   (directory "/src/a/")           is the directory hidden?
;;   (file "/src/a/b" TIME)          is the file, with this modification time, hidden?
;;   (buffer BUFFER FILE ...)        is the visited file hidden?
;;   (opted-out "/src/a/b" c-mode)   do directory variables exclude it in that mode?
;;   (ignored ".geminiignore" "/src/a/")   the rules in this directory and above
;;   (root-of "/src/a/")             the root of its project
;;   (time "/src/.geminiignore")     modification time of the file, nil without it
;; The cache does not record which value depends on which file: if the time of one
;; file with a `time' key has changed, a refresh drops all values.

;;; Code:

(require 'gemini-companion-text)

;;;; State

(defvar gemini-companion-cache--table (make-hash-table :test #'equal)
  "Hash table from keys to values.")

;;;; Values

(defun gemini-companion-cache-time (file)
  "Return the modification time of the local FILE, or nil if it does not exist."
  (file-attribute-modification-time (gemini-companion-text-attributes file)))

(defun gemini-companion-cache-note-time (file)
  "Return the cached modification time of FILE.
Once it has changed, `gemini-companion-cache-refresh' drops all values."
  (gemini-companion-cache-get
   (list 'time file) (lambda () (gemini-companion-cache-time file))))

(defun gemini-companion-cache-get (key compute)
  "Return the cached value of KEY; compute it by COMPUTE if there is none.
KEY is a list of a symbol and all arguments on which the value depends."
  (let ((value (gethash key gemini-companion-cache--table 'none)))
    (if (eq value 'none)
        (puthash key (funcall compute) gemini-companion-cache--table)
      value)))

(defun gemini-companion-cache-refresh (&optional if-changed)
  "Drop all values, and return non-nil.
If IF-CHANGED is non-nil and no file with a recorded time has changed, keep
them, and return nil.  If IF-CHANGED is `old', ignore files that were
created since, which takes less time."
  (unless (and if-changed
               (cl-loop
                for key being the hash-keys of gemini-companion-cache--table
                using (hash-values time)
                never (pcase key
                        ((and `(time ,file)
                              (guard (or time (not (eq if-changed 'old)))))
                         (not (equal time (gemini-companion-cache-time file)))))))
    (clrhash gemini-companion-cache--table)
    t))

(defun gemini-companion-cache-drop (key)
  "Drop the cached value of KEY."
  (remhash key gemini-companion-cache--table))

(provide 'gemini-companion-cache)
;;; gemini-companion-cache.el ends here
