;;; gemini-companion-clients.el --- The CLIs that can connect  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The list of the CLIs, and functions about all of them.  Each CLI has an adapter; no
;; other file names a CLI.

;;; Code:

(require 'gemini-companion-client)

;;;; State

(defvar gemini-companion-clients '("gemini" "qwen" "copilot" "pi")
  "Names of the CLIs, in the order in which they are offered.
Each has methods of the generic functions in gemini-companion-client.el, in a
file of its own, its adapter.  A CLI whose adapter was removed is not one.")

(setq gemini-companion-clients
      (seq-filter (lambda (client)
                    (require (intern (concat "gemini-companion-client-" client))
                             nil 'noerror))
                  gemini-companion-clients))

;;;; All CLIs

(defun gemini-companion-clients-append (function)
  "Call FUNCTION with each CLI, and append its values, which are lists."
  (seq-mapcat function gemini-companion-clients))

(defun gemini-companion-clients-variables (port pid)
  "Return the entries of an environment that name Emacs PID at PORT to a CLI."
  (cl-flet ((entry (variable number)
              (when variable
                (list (format "%s=%d" variable number)))))
    (seq-mapcat (lambda (client)
                  (append
                   (entry (gemini-companion-client-port-variable client) port)
                   (entry (gemini-companion-client-pid-variable client) pid)))
                gemini-companion-clients)))

(defun gemini-companion-clients-titles (clients)
  "Return the titles of CLIENTS as a phrase, such as \"Gemini CLI and Qwen Code\"."
  (mapconcat #'gemini-companion-client-title clients " and "))

(defun gemini-companion-clients-search ()
  "Return the commands that make CLIs search for Emacs, as a phrase.
For example \"/ide enable, or /ide in Copilot CLI\"; the CLIs with the first
command are not named.  CLIs without such a command are omitted."
  (pcase-let ((`((,usual . ,_) . ,others)
               (seq-group-by #'gemini-companion-client-search-command
                             (seq-filter #'gemini-companion-client-search-command
                                         gemini-companion-clients))))
    (concat usual
            (mapconcat (pcase-lambda (`(,command . ,clients))
                         (format ", or %s in %s" command
                                 (gemini-companion-clients-titles clients)))
                       others ""))))

(provide 'gemini-companion-clients)
;;; gemini-companion-clients.el ends here
