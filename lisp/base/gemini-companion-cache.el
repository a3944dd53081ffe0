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
;;   (file "/src/a/b")               is the file hidden?  Its state is its time.
;;   (buffer BUFFER)                 is the visited file hidden?  Its state includes that.
;;   (opted-out "/src/a/b" c-mode)   do directory variables exclude it in that mode?
;;   (mentioned "/src/a/")           do directory variables mention sharing?
;;   (ignored ".geminiignore" "/src/a/")   the rules in this directory and above
;;   (root-of "/src/a/")             the root of its project
;;   (time "/src/.geminiignore")     modification time of the file, nil without it
;;   (click gemini-companion-review) the keymap of a word in a header line
;; The cache does not record which value depends on which file: if the time of one
;; file with a `time' key has changed, a refresh drops all values.

;;; Code:

(require 'gemini-companion-text)

;;;; State

(defvar gemini-companion-cache--table (make-hash-table :test #'equal)
  "Hash table from keys to conses (STATE . VALUE).
For STATE, see `gemini-companion-cache-get'.")

;;;; Values

(defun gemini-companion-cache-time (file)
  "Return the modification time of the local FILE, or nil if it does not exist."
  (file-attribute-modification-time (gemini-companion-text-attributes file)))

(defun gemini-companion-cache-note-time (file)
  "Return the cached modification time of FILE.
Once it has changed, `gemini-companion-cache-refresh' drops all values."
  (gemini-companion-cache-get
   (list 'time file) (lambda () (gemini-companion-cache-time file))))

(defun gemini-companion-cache-get (key compute &optional state)
  "Return the cached value of KEY; compute it by COMPUTE if there is none.
KEY is a list of a symbol and all arguments on which the value depends.  If the
value was computed with another STATE, by `equal', compute it again."
  (let ((cached (gethash key gemini-companion-cache--table)))
    (unless (and cached (equal state (car cached)))
      (setq cached (cons state (funcall compute)))
      (puthash key cached gemini-companion-cache--table))
    (cdr cached)))

(defun gemini-companion-cache-refresh (&optional if-changed)
  "Drop all values, and return non-nil.
If IF-CHANGED is non-nil and no file with a recorded time has changed, keep
them, and return nil.  If IF-CHANGED is `old', ignore files that were
created since, which takes less time.  Values of killed buffers are dropped."
  (if (and if-changed
           (not (gemini-companion-cache--changed-p (eq 'old if-changed))))
      (ignore (gemini-companion-cache--drop-killed))
    (clrhash gemini-companion-cache--table)
    t))

(defun gemini-companion-cache--changed-p (old)
  "Return non-nil if a file with a recorded time has changed.
If OLD is non-nil, ignore files that were created since."
  (cl-loop for key being the hash-keys of gemini-companion-cache--table
           using (hash-values cached)
           for time = (cdr cached)
           thereis (pcase key
                     ((and `(time ,file) (guard (or time (not old))))
                      (not (equal time (gemini-companion-cache-time file)))))))

(defun gemini-companion-cache--drop-killed ()
  "Drop the values of killed buffers."
  (maphash (lambda (key _)
             (pcase key
               ((and `(buffer ,buffer) (guard (not (buffer-live-p buffer))))
                (remhash key gemini-companion-cache--table))))
           gemini-companion-cache--table))

(defun gemini-companion-cache-drop (key)
  "Drop the cached value of KEY."
  (remhash key gemini-companion-cache--table))

(provide 'gemini-companion-cache)
;;; gemini-companion-cache.el ends here
