;;; gemini-companion-input-file.el --- The file from which a CLI reads prompts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A CLI may watch a file for prompts while it runs in a terminal.  Each CLI that Emacs
;; starts has its own file, in a private directory, which is deleted when the CLI ends or
;; the mode is turned off.  A line of the file is an object of JSON.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-terminal)
(require 'json)

(defvar-local gemini-companion-input-file nil
  "File from which the CLI of this buffer reads prompts, or nil.")
;; The modes of terminals kill all other local variables.
(put 'gemini-companion-input-file 'permanent-local t)

(defun gemini-companion-input-file-arguments (client command)
  "Make the file for CLIENT, about to start by COMMAND in the current buffer.
Return the arguments that name it.  Return nil for a CLI that reads no prompts,
and if COMMAND, a list of strings, names another file."
  (gemini-companion-input-file-delete)
  (when-let* ((option (gemini-companion-client-input-option client))
              ((not (seq-some (apply-partially #'string-prefix-p option) command))))
    (let ((directory (make-temp-file "gemini-companion-input-" t)))
      (setq gemini-companion-input-file (expand-file-name "prompts.jsonl" directory))
      (with-file-modes #o600
        (write-region "" nil gemini-companion-input-file nil 'silent nil 'excl))
      (list option gemini-companion-input-file))))

(defun gemini-companion-input-file-of (process client)
  "Return the file of CLIENT, which has PROCESS as its terminal, or nil."
  (when-let* ((buffer (process-buffer process))
              (cli (buffer-local-value 'gemini-companion-terminal-cli buffer))
              ((equal client (gemini-companion-terminal-cli-client cli)))
              (file (buffer-local-value 'gemini-companion-input-file buffer))
              ((file-exists-p file)))
    file))

(defun gemini-companion-input-file-append (file text)
  "Append TEXT to FILE as a prompt."
  (let ((coding-system-for-write 'utf-8-unix))
    (write-region (concat (json-encode `((type . "submit") (text . ,text))) "\n")
                  nil file 'append 'silent)))

(defun gemini-companion-input-file-delete ()
  "Delete the file of the CLI in the current buffer, and its directory."
  (when gemini-companion-input-file
    (ignore-errors
      (delete-directory (file-name-directory gemini-companion-input-file) t))
    (setq gemini-companion-input-file nil)))

(defun gemini-companion-input-file-delete-all ()
  "Delete the files of all CLIs."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (gemini-companion-input-file-delete))))

(provide 'gemini-companion-input-file)
;;; gemini-companion-input-file.el ends here
