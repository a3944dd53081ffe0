;;; gemini-companion-clients.el --- The CLIs that connect  -*- lexical-binding: t; -*-

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

;; The CLIs that speak the companion protocol.  They differ in what this table
;; holds, and in how they find an editor, which the server knows.  A further one
;; is a row here and one in python/gemini_companion_epc/clients.py.

;;; Code:

(defconst gemini-companion-clients
  '(("gemini"
     :title "Gemini CLI"
     :port-variable "GEMINI_CLI_IDE_SERVER_PORT"
     :unset ("GEMINI_CLI_IDE_AUTH_TOKEN"
             "GEMINI_CLI_IDE_CONNECTION_TYPE"
             "GEMINI_CLI_IDE_SERVER_STDIO_ARGS"
             "GEMINI_CLI_IDE_SERVER_STDIO_COMMAND"
             ;; The model may write to directories in it.
             "GEMINI_CLI_IDE_WORKSPACE_PATH")
     :ignore-files (".geminiignore"))
    ("qwen"
     :title "Qwen Code"
     :port-variable "QWEN_CODE_IDE_SERVER_PORT"
     :unset ("QWEN_CODE_IDE_SERVER_STDIO_ARGS"
             "QWEN_CODE_IDE_SERVER_STDIO_COMMAND"
             ;; "qwen serve" binds the directories in it.
             "QWEN_CODE_IDE_WORKSPACE_PATH")
     :ignore-files (".qwenignore" ".agentignore" ".aiignore")))
  "Alist of (NAME . PLIST), the CLIs that connect.
NAME is the `:client' of a session.  Keys of PLIST: `:title', the
name for the user; `:port-variable' and `:unset', the variables
that are set and unset in terminals; `:ignore-files', the names of
the files that list what is not shared.")

(defun gemini-companion-clients-get (client key)
  "Return the value of KEY of CLIENT, a name or nil."
  (plist-get (cdr (assoc client gemini-companion-clients)) key))

(defun gemini-companion-clients-all (key)
  "Return the values of KEY of all CLIs, lists, as one list."
  (apply #'append
         (mapcar (lambda (client) (plist-get (cdr client) key))
                 gemini-companion-clients)))

(provide 'gemini-companion-clients)
;;; gemini-companion-clients.el ends here
