;;; gemini-companion-client-fourth-test-helper.el --- A fourth CLI for tests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A CLI that is added by the recipe in doc/design.org; its module in Python is
;; test/python/fourth.py.  It can neither resume conversations nor be linked.

;;; Code:

(require 'gemini-companion-clients)

(gemini-companion-client-values fourth
  (gemini-companion-client-title "Fourth CLI")
  (gemini-companion-client-package "fourth-cli")
  (gemini-companion-client-node "20")
  (gemini-companion-client-home-variable "FOURTH_HOME")
  (gemini-companion-client-port-variable "FOURTH_PORT")
  (gemini-companion-client-connect-remedy "Type /connect there.")
  (gemini-companion-client-search-command "/connect")
  (gemini-companion-client-reconnect-command "/connect")
  (gemini-companion-client-user-settings
   '("$FOURTH_HOME/settings.json" "~/.fourth/settings.json"))
  (gemini-companion-client-required-settings
   '((("editor" "on") t "The editor is off in Fourth CLI" "/editor on")))
  (gemini-companion-client-ignore-files '(".fourthignore"))
  (gemini-companion-client-titles '(("\\`idle" . ready) ("\\`busy" . working)
                                    ("\\`asks" . waiting)))
  (gemini-companion-client-prompt-sign "#")
  (gemini-companion-client-drops-edits-p t))

(defmacro gemini-companion-client-test-with-fourth (&rest body)
  "Run BODY with a fourth CLI, \"fourth\"."
  (declare (indent 0) (debug t))
  `(let ((gemini-companion-clients (append gemini-companion-clients '("fourth"))))
     ,@body))

(provide 'gemini-companion-client-fourth-test-helper)
;;; gemini-companion-client-fourth-test-helper.el ends here
