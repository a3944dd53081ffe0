;;; gemini-companion-terminal.el --- Environment of the terminals of this Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software; you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.

;; This program is distributed in the hope that it will be useful,
;; but WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
;; GNU General Public License for more details.

;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; What Emacs starts inherits a few variables by which Gemini CLI finds this
;; Emacs among several.  Terminals outside need none of them: there the
;; discovery file is enough.  And which of these terminals a CLI runs in.

;;; Code:

(require 'seq)

;;;; Environment

(defvar gemini-companion-terminal--inherited nil
  "Alist of (NAME . VALUE), the variables as they were before ours.
VALUE is nil if the variable was not set.")

(defvar gemini-companion-terminal--environments nil
  "Cons of `process-environment' before and after ours, or nil.")

(defun gemini-companion-terminal--container-p ()
  "Return non-nil if Emacs is in a container, as Gemini CLI sees it."
  (or (file-exists-p "/.dockerenv")
      (file-exists-p "/run/.containerenv")))

(defun gemini-companion-terminal--variables (port pid)
  "Return an alist of variables that lead to the server at PORT of Emacs PID."
  `(("GEMINI_CLI_IDE_SERVER_PORT" . ,(number-to-string port))
    ("GEMINI_CLI_IDE_PID" . ,(number-to-string pid))
    ;; Folders in it would become folders that the model may write to.
    ("GEMINI_CLI_IDE_WORKSPACE_PATH")
    ("GEMINI_CLI_IDE_AUTH_TOKEN")
    ("GEMINI_CLI_IDE_CONNECTION_TYPE")
    ("GEMINI_CLI_IDE_SERVER_STDIO_COMMAND")
    ("GEMINI_CLI_IDE_SERVER_STDIO_ARGS")
    ;; In a container the client dials the host unless it is told that
    ;; its editor is in there too.
    ,@(when (and (gemini-companion-terminal--container-p)
                 (not (seq-some #'getenv
                                '("SSH_CONNECTION" "REMOTE_CONTAINERS"
                                  "VSCODE_REMOTE_CONTAINERS_SESSION"))))
        '(("REMOTE_CONTAINERS" . "1")))))

(defun gemini-companion-terminal--with (variables environment)
  "Return ENVIRONMENT with VARIABLES, an alist; without those of nil."
  (let ((result (copy-sequence environment)))
    (pcase-dolist (`(,name . ,value) variables)
      (setq result (setenv-internal result name value nil)))
    result))

(defun gemini-companion-terminal-export (port pid)
  "Lead each Gemini CLI in this Emacs to PORT of Emacs PID."
  (gemini-companion-terminal-restore)
  (let* ((variables (gemini-companion-terminal--variables port pid))
         (before (default-value 'process-environment))
         (after (gemini-companion-terminal--with variables before)))
    (setq gemini-companion-terminal--inherited
          (mapcar (lambda (variable)
                    (cons (car variable)
                          (let ((process-environment before))
                            (getenv (car variable)))))
                  variables)
          gemini-companion-terminal--environments (cons before after))
    (setq-default process-environment after)))

(defun gemini-companion-terminal-restore ()
  "Give the environment back as it was before the export."
  (pcase gemini-companion-terminal--environments
    (`(,before . ,after)
     (let ((now (default-value 'process-environment)))
       (setq-default process-environment
                     (if (equal now after)
                         before
                       (gemini-companion-terminal--with
                        gemini-companion-terminal--inherited now))))))
  (setq gemini-companion-terminal--environments nil
        gemini-companion-terminal--inherited nil))

;;;; Where a CLI runs

(defconst gemini-companion-terminal--most-ancestors 32
  "How far up the tree of processes a terminal is looked for.")

(defun gemini-companion-terminal-buffer (pid)
  "Return the buffer of this Emacs with the process PID in it, or nil."
  (let ((buffers (delq nil (mapcar #'gemini-companion-terminal--entry
                                   (process-list))))
        (left gemini-companion-terminal--most-ancestors)
        found)
    (while (and pid (not found) (< 0 left))
      (setq found (alist-get pid buffers)
            pid (alist-get 'ppid (process-attributes pid))
            left (1- left)))
    found))

(defun gemini-companion-terminal--entry (process)
  "Return a cons of the pid of PROCESS and its buffer, or nil."
  (let ((pid (process-id process))
        (buffer (process-buffer process)))
    (and pid (buffer-live-p buffer) (cons pid buffer))))

(provide 'gemini-companion-terminal)
;;; gemini-companion-terminal.el ends here
