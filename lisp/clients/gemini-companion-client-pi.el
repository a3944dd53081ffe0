;;; gemini-companion-client-pi.el --- The adapter of Pi  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The adapter of Pi: its methods for the generic functions of
;; gemini-companion-client.el.  Pi itself does not connect to editors: an extension,
;; which this package installs, connects it to Emacs.

;;; Code:

(require 'gemini-companion-client)

;;;; Program

(gemini-companion-client-values pi
  (gemini-companion-client-title "Pi")
  (gemini-companion-client-package "@earendil-works/pi-coding-agent")
  (gemini-companion-client-node "22.19")
  (gemini-companion-client-oldest "0.84.0"))

;;;; How it finds Emacs

(gemini-companion-client-values pi
  (gemini-companion-client-home-variable "PI_CODING_AGENT_DIR")
  (gemini-companion-client-port-variable "GEMINI_COMPANION_PORT")
  (gemini-companion-client-connect-remedy
   "Type /reload there; M-x gemini-companion-tools installs what it needs.")
  (gemini-companion-client-extension
   '("extensions/gemini-companion/"
     ("index.js" . "pi.js") ("companion.mjs" . "companion.mjs")))
  (gemini-companion-client-reload-command "/reload"))

;;;; Settings

(gemini-companion-client-values pi
  (gemini-companion-client-user-settings
   '("$PI_CODING_AGENT_DIR/settings.json" "~/.pi/agent/settings.json"))
  (gemini-companion-client-project-settings ".pi/settings.json"))

;;;; Titles

(gemini-companion-client-values pi
  (gemini-companion-client-reports-state-p t))

;;;; Prompts

(gemini-companion-client-values pi
  (gemini-companion-client-prompt-sign nil))

;;;; Conversations

(gemini-companion-client-values pi
  (gemini-companion-client-resume-arguments '("--resume")))

(provide 'gemini-companion-client-pi)
;;; gemini-companion-client-pi.el ends here
