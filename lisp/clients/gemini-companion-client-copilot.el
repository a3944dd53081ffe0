;;; gemini-companion-client-copilot.el --- The adapter of Copilot CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The adapter of GitHub Copilot CLI: its methods for the generic functions of
;; gemini-companion-client.el.

;;; Code:

(require 'gemini-companion-client)

;;;; Program

(gemini-companion-client-values copilot
  (gemini-companion-client-title "Copilot CLI")
  (gemini-companion-client-package "@github/copilot")
  (gemini-companion-client-node "22"))

;;;; How it finds Emacs

(gemini-companion-client-values copilot
  (gemini-companion-client-home-variable "COPILOT_HOME")
  (gemini-companion-client-connect-remedy
   "Run /ide there, and choose Emacs.  By itself it connects only \
if its directory is a workspace root, not below one.")
  (gemini-companion-client-search-command "/ide"))

;;;; Settings

(gemini-companion-client-values copilot
  (gemini-companion-client-user-settings
   '("$COPILOT_HOME/settings.json" "~/.copilot/settings.json"))
  (gemini-companion-client-project-settings ".github/copilot/settings.json"))

;;;; Links

(gemini-companion-client-values copilot
  (gemini-companion-client-silent-modes '("--yolo" "--allow-tool"))
  (gemini-companion-client-notification-event "notification")
  (gemini-companion-client-tool-hooks
   ;; The second hook reports the end of the question that the first one reports.
   ;; A prompt ends each question that is still open.
   '((preToolUse . "ask_user|exit_plan_mode")
     (postToolUse . "ask_user|exit_plan_mode")
     (userPromptSubmitted)
     (agentStop)))
  (gemini-companion-client-prompt-event 'userPromptSubmitted)
  (gemini-companion-client-call-hooks
   '((preToolUse postToolUse postToolUseFailure) . "bash|powershell|.+-.+")))

;;;; Titles

(gemini-companion-client-values copilot
  (gemini-companion-client-reports-state-p t))

;;;; Conversations

(gemini-companion-client-values copilot
  (gemini-companion-client-resume-arguments '("--resume")))

;;;; Prompts

(gemini-companion-client-values copilot
  (gemini-companion-client-unreadable "[[:space:]@]\\|\\`~\\|[.,;:!?]\\'")
  (gemini-companion-client-prompt-sign "❯")
  (gemini-companion-client-prompt-footer
   "^ \\(?:.* · \\)?\\(?:Interactive\\|Plan\\|Autopilot\\(?: (limited)\\)?\\) · ")
  (gemini-companion-client-busy-footer "^ [^ ] Working "))

;;;; Edits

(gemini-companion-client-values copilot
  (gemini-companion-client-discards-edits-p t)
  (gemini-companion-client-writes-own-text-p t)
  (gemini-companion-client-drops-edits-p t))

(provide 'gemini-companion-client-copilot)
;;; gemini-companion-client-copilot.el ends here
