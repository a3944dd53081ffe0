;;; gemini-companion-cache.el --- Values that are kept until a file changes  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What is computed from rules and names of files is kept, as hooks ask for it at
;; each command.  It is dropped when one of the files that decide it has changed.
;;
;; A key is a list of a symbol for the question and all on which the value depends
;; that no refresh finds, for example:
;;   (directory "/src/a/")           whether it is hidden
;;   (file "/src/a/b" TIME)          the same of a file, by its modification time
;;   (buffer BUFFER FILE ...)        the same of a visited file
;;   (opted-out "/src/a/b" c-mode)   what directory variables decide in that mode
;;   (ignored ".geminiignore" "/src/a/")   the rules there and above
;;   (root-of "/src/a/")             the root of its project
;;   (time "/src/.geminiignore")     when that file was modified, nil without it
;; The keys of `time' decide: once one of these files has another time, everything
;; is dropped, as which value came from which file is not recorded.

;;; Code:

(require 'gemini-companion-text)

(defvar gemini-companion-cache--table (make-hash-table :test #'equal)
  "Hash table of `gemini-companion-cache-get'.")

(defun gemini-companion-cache-time (file)
  "Return the time when the local FILE was modified, or nil without a file."
  (file-attribute-modification-time (gemini-companion-text-attributes file)))

(defun gemini-companion-cache-note-time (file)
  "Return the time of FILE, on which values depend until a refresh."
  (gemini-companion-cache-get
   (list 'time file) (lambda () (gemini-companion-cache-time file))))

(defun gemini-companion-cache-get (key compute)
  "Return the value kept for KEY, or else call COMPUTE for it.
KEY is a list of all on which the value depends until a refresh."
  (let ((value (gethash key gemini-companion-cache--table 'none)))
    (if (eq value 'none)
        (puthash key (funcall compute) gemini-companion-cache--table)
      value)))

(defun gemini-companion-cache-refresh (&optional if-changed)
  "Drop all values, and return non-nil.
If IF-CHANGED is non-nil, do so only if a file that decides a value has
changed; otherwise return nil.  If IF-CHANGED is `old', a file that is new
does not count, which takes less time."
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
  "Drop the value kept for KEY."
  (remhash key gemini-companion-cache--table))

(provide 'gemini-companion-cache)
;;; gemini-companion-cache.el ends here
