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
;; discovery file is enough.

;;; Code:

(require 'seq)

;;;; Environment

(defvar gemini-companion-terminal--ours nil
  "Alist of (NAME . VALUE), the variables that are exported, or nil.
VALUE is nil for one that is unset.")

(defvar gemini-companion-terminal--inherited nil
  "Alist of (NAME . VALUE), the same variables before they were exported.")

(defconst gemini-companion-terminal--hooks
  '(window-buffer-change-functions window-selection-change-functions)
  "Hooks that run when the user goes to another buffer.")

(defconst gemini-companion-terminal-container-variables
  '("SSH_CONNECTION" "REMOTE_CONTAINERS" "VSCODE_REMOTE_CONTAINERS_SESSION")
  "Variables for which a CLI in a container searches there for editors.")

(defun gemini-companion-terminal-container-p ()
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
    ,@(when (and (gemini-companion-terminal-container-p)
                 (not (seq-some #'getenv
                                gemini-companion-terminal-container-variables)))
        '(("REMOTE_CONTAINERS" . "1")))))

(defun gemini-companion-terminal--with (variables environment)
  "Return ENVIRONMENT with VARIABLES, an alist; without those of nil."
  (let ((result (copy-sequence environment)))
    (pcase-dolist (`(,name . ,value) variables)
      (setq result (setenv-internal result name value nil)))
    result))

(defun gemini-companion-terminal--led-p (environment)
  "Return non-nil if ENVIRONMENT leads to the server."
  (let ((port (car gemini-companion-terminal--ours)))
    (equal (cdr port) (getenv-internal (car port) environment))))

(defun gemini-companion-terminal--local-buffers ()
  "Return the buffers with a `process-environment' of their own.
Packages such as envrc and mise make one for each project."
  (seq-filter (lambda (buffer)
                (local-variable-p 'process-environment buffer))
              (buffer-list)))

(defun gemini-companion-terminal--put (variables buffer)
  "Put VARIABLES into the environment of BUFFER."
  (with-current-buffer buffer
    (setq process-environment
          (gemini-companion-terminal--with variables process-environment))))

(defun gemini-companion-terminal--put-default (variables)
  "Put VARIABLES into the default environment."
  (setq-default process-environment
                (gemini-companion-terminal--with
                 variables (default-value 'process-environment))))

(defun gemini-companion-terminal-export (port pid)
  "Lead each Gemini CLI in this Emacs to PORT of Emacs PID."
  (gemini-companion-terminal-restore)
  (setq gemini-companion-terminal--ours
        (gemini-companion-terminal--variables port pid)
        gemini-companion-terminal--inherited
        (mapcar (pcase-lambda (`(,name . ,_))
                  (cons name (getenv-internal
                              name (default-value 'process-environment))))
                gemini-companion-terminal--ours))
  (gemini-companion-terminal--put-default gemini-companion-terminal--ours)
  (dolist (buffer (gemini-companion-terminal--local-buffers))
    (gemini-companion-terminal--put gemini-companion-terminal--ours buffer))
  (dolist (hook gemini-companion-terminal--hooks)
    (add-hook hook #'gemini-companion-terminal--follow)))

(defun gemini-companion-terminal--follow (frame)
  "Lead what is started in the selected window of FRAME to the server.
Its buffer may have an environment of its own, which a package made
from one that is older than the mode."
  (let ((buffer (window-buffer (frame-selected-window frame))))
    (when (and (local-variable-p 'process-environment buffer)
               (not (gemini-companion-terminal--led-p
                     (buffer-local-value 'process-environment buffer))))
      (gemini-companion-terminal--put gemini-companion-terminal--ours buffer))))

(defun gemini-companion-terminal-environment ()
  "Return the environment of the current buffer with our variables."
  (gemini-companion-terminal--with gemini-companion-terminal--ours
                                   process-environment))

(defun gemini-companion-terminal-restore ()
  "Restore the variables that were exported, where they still are."
  (dolist (hook gemini-companion-terminal--hooks)
    (remove-hook hook #'gemini-companion-terminal--follow))
  (when gemini-companion-terminal--ours
    (when (gemini-companion-terminal--led-p
           (default-value 'process-environment))
      (gemini-companion-terminal--put-default
       gemini-companion-terminal--inherited))
    (dolist (buffer (gemini-companion-terminal--local-buffers))
      (when (gemini-companion-terminal--led-p
             (buffer-local-value 'process-environment buffer))
        (gemini-companion-terminal--put gemini-companion-terminal--inherited
                                        buffer))))
  (setq gemini-companion-terminal--ours nil
        gemini-companion-terminal--inherited nil))

(provide 'gemini-companion-terminal)
;;; gemini-companion-terminal.el ends here
