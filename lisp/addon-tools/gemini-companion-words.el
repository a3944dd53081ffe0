;;; gemini-companion-words.el --- Files that contain a word  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Find the files of a project that contain a word, by a text search of Git.  A
;; language server does not report that it has read only some of the files: jedi stops
;; after 30 files, and clangd answers while it builds its index.  If the answer of the
;; server lacks files that contain the word, the answer may be incomplete.  Neither
;; jedi nor Git reads the unsaved text of a buffer, so the buffers are searched in
;; addition.

;;; Code:

(require 'gemini-companion-code)
(require 'gemini-companion-git)
(require 'gemini-companion-names)
(require 'gemini-companion-text)

;;;; State

(defvar gemini-companion-words-seconds 1
  "Seconds after which a search is ended without a result.")

(defconst gemini-companion-words--most-files 500
  "Greatest number of files in a result.")

;;;; Search

(defun gemini-companion-words-search (word directory then)
  "Find the files below DIRECTORY in which WORD is a whole word; return non-nil.
Call THEN later with a list of at most 500 absolute names, in no order;
or with `unknown' if Git is missing, fails, or takes longer than
`gemini-companion-words-seconds'.  Binary files, and files that Git ignores,
are omitted; files that are hidden from CLIs are not.  A file with an unsaved
buffer counts also if only the buffer has WORD."
  (if (or (string-match-p "[\n\0]" word)
          (not (executable-find "git")))
      (run-at-time 0 nil then 'unknown)
    (let* ((default-directory (file-name-as-directory directory))
           (process-environment (gemini-companion-git-environment))
           (timer nil)
           (process
            (make-process
             :name "gemini-companion-words"
             :buffer (generate-new-buffer " *gemini-companion-words*" t)
             :command (gemini-companion-words--command word)
             :noquery t :connection-type 'pipe
             :coding '(no-conversion . utf-8-unix)
             :sentinel
             (lambda (process _event)
               (unless (process-live-p process)
                 (cancel-timer timer)
                 (let ((files (gemini-companion-words--files process)))
                   (kill-buffer (process-buffer process))
                   (funcall then
                            (if (listp files)
                                (seq-union files
                                           (gemini-companion-words--unsaved
                                            word directory))
                              files))))))))
      (setq timer (run-at-time gemini-companion-words-seconds nil
                               #'delete-process process)))))

(defun gemini-companion-words--unsaved (word directory)
  "Return the files below DIRECTORY with an unsaved buffer that has WORD.
The value is a list of true names."
  (cl-loop with root = (gemini-companion-text-true-name directory)
           for buffer in (buffer-list)
           for visited = (and (buffer-modified-p buffer)
                              (gemini-companion-text-visited buffer))
           for file = (and visited (gemini-companion-text-true-name visited))
           when (and file root
                     (gemini-companion-text-in-directory-p file root)
                     (with-temp-buffer
                       (insert (gemini-companion-text-of-buffer buffer))
                       (goto-char (point-min))
                       (gemini-companion-code-occurrences word)))
           collect file))

(defun gemini-companion-words--command (word)
  "Return the command that prints the names of the files with WORD.
They are relative to `default-directory', each with a null byte at its end."
  `(,@gemini-companion-git-command
    "grep" "-zlIwF" "--no-color"
    ,@(if (locate-dominating-file default-directory ".git")
          '("--untracked")
        '("--no-index" "--exclude-standard"))
    "-e" ,(encode-coding-string word 'utf-8-unix) "--" "."))

(defun gemini-companion-words--files (process)
  "Return the files in the output of PROCESS, which has exited, or `unknown'."
  (let ((output (with-current-buffer (process-buffer process)
                  (buffer-string))))
    (cond ((or (not (memql (process-exit-status process) '(0 1)))
               (not (eq 'exit (process-status process)))
               ;; A line of output is a warning, not the name of a file.
               (string-search "\n" output))
           'unknown)
          (t (mapcar (lambda (name)
                       (gemini-companion-names-below
                        (buffer-local-value 'default-directory
                                            (process-buffer process))
                        name))
                     (seq-take (split-string output "\0" t)
                               gemini-companion-words--most-files))))))

(provide 'gemini-companion-words)
;;; gemini-companion-words.el ends here
