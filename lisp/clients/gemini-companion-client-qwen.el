;;; gemini-companion-client-qwen.el --- The adapter of Qwen Code  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The adapter of Qwen Code, 0.15.10 or later: its methods for the generic functions of
;; gemini-companion-client.el.

;;; Code:

(require 'gemini-companion-client)

;;;; Program

(gemini-companion-client-values qwen
  (gemini-companion-client-title "Qwen Code")
  (gemini-companion-client-package "@qwen-code/qwen-code")
  (gemini-companion-client-node "22")
  (gemini-companion-client-oldest "0.15.10"))

;;;; How it finds Emacs

(gemini-companion-client-values qwen
  (gemini-companion-client-home-variable "QWEN_HOME")
  (gemini-companion-client-port-variable "QWEN_CODE_IDE_SERVER_PORT")
  (gemini-companion-client-unset-variables
   '("QWEN_CODE_IDE_SERVER_STDIO_ARGS"
     "QWEN_CODE_IDE_SERVER_STDIO_COMMAND"
     ;; "qwen serve" binds the directories in this one.
     "QWEN_CODE_IDE_WORKSPACE_PATH"))
  (gemini-companion-client-search-command "/ide enable")
  (gemini-companion-client-reconnect-command "/ide enable"))

;;;; Settings

(gemini-companion-client-values qwen
  (gemini-companion-client-user-settings
   '("$QWEN_HOME/settings.json" "~/.qwen/settings.json"))
  (gemini-companion-client-system-settings
   '("$QWEN_CODE_SYSTEM_SETTINGS_PATH"
     "/etc/qwen-code/settings.json"
     "/Library/Application Support/QwenCode/settings.json"))
  (gemini-companion-client-project-settings ".qwen/settings.json")
  (gemini-companion-client-required-settings
   '((("ide" "enabled") t "IDE integration is off in Qwen Code"
      "/ide enable")
     (("tools" "approvalMode") "default"
      "Qwen Code may write without asking, so that no review appears"
      "/approval-mode default")))
  (gemini-companion-client-trust-command "/trust")
  (gemini-companion-client-folder-trust 'off)
  (gemini-companion-client-ignore-files
   '(".qwenignore" ".agentignore" ".aiignore")))

;;;; Links

(cl-defmethod gemini-companion-client-link-record
  ((_client (eql 'qwen)) extension)
  "Return the record of the link of EXTENSION."
  (format "extensions/%s/.qwen-extension-install.json" extension))

(gemini-companion-client-values qwen
  (gemini-companion-client-manifest "qwen-extension.json")
  (gemini-companion-client-link-arguments '("link"))
  (gemini-companion-client-hooks
   '((PostToolUse . "write_file|edit")
     (UserPromptSubmit) (Stop) (Notification)))
  (gemini-companion-client-prompt-event 'UserPromptSubmit)
  (gemini-companion-client-silent-modes '("auto" "auto-edit" "yolo"))
  (gemini-companion-client-review-hook '(PreToolUse . "write_file|edit"))
  (gemini-companion-client-review-answer
   '((hookSpecificOutput
      . ((hookEventName . "PreToolUse")
         (permissionDecision . "ask")
         (permissionDecisionReason . "The hook of Emacs has failed")))))
  (gemini-companion-client-call-hooks
   '((PreToolUse PostToolUse PostToolUseFailure)
     . "run_shell_command|^mcp__(?!emacs__)"))
  (gemini-companion-client-reviews-in-terminal-p t)
  (gemini-companion-client-permission-hook
   '(PermissionRequest
     ;; The edits of these tools are reviewed, so they need no permission.
     . "^(?!(edit|write_file|notebook_edit)$)")))

(cl-defmethod gemini-companion-client-answers-text ((_client (eql 'qwen)) answers)
  "Return ANSWERS in the format of Qwen Code itself."
  (concat "User has provided the following answers:\n\n"
          (mapconcat (pcase-lambda (`(,header . ,texts))
                       (format "**%s**: %s" header (string-join texts ", ")))
                     answers "\n")))

;;;; Titles

(gemini-companion-client-values qwen
  (gemini-companion-client-titles
   '(("\\`\u25d0" . working)
     ("\\`\u2733" . waiting)
     ("\\`Qwen - " . ready)
     ;; Any other title is the name of the session.
     ("." . named))))

;;;; Conversations

(gemini-companion-client-values qwen
  (gemini-companion-client-resume-arguments '("--resume")))

;;;; Prompts

(gemini-companion-client-values qwen
  (gemini-companion-client-image-directory "tmp/clipboard/")
  (gemini-companion-client-input-option "--input-file")
  (gemini-companion-client-escapes "[][ (){};|*?$`'\"#&<>!~,]")
  (gemini-companion-client-unreadable "\\\\\\|\\.\\'")
  (gemini-companion-client-normal-footer "^ *-- NORMAL --"))

;;;; Edits

(gemini-companion-client-values qwen
  (gemini-companion-client-discards-edits-p
   ;; Qwen Code writes before it fetches the text of the review.
   t)
  (gemini-companion-client-keeps-coding-p t))

(provide 'gemini-companion-client-qwen)
;;; gemini-companion-client-qwen.el ends here
