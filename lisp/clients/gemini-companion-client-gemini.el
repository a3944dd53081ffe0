;;; gemini-companion-client-gemini.el --- The adapter of Gemini CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The adapter of Gemini CLI, 0.31.0 or later: its methods for the generic functions
;; of gemini-companion-client.el.  Its fork, Qwen Code, has another adapter.

;;; Code:

(require 'gemini-companion-client)

;;;; Program

(gemini-companion-client-values gemini
  (gemini-companion-client-title "Gemini CLI")
  (gemini-companion-client-package "@google/gemini-cli")
  (gemini-companion-client-node "20")
  (gemini-companion-client-oldest "0.31.0"))

;;;; How it finds Emacs

(gemini-companion-client-values gemini
  (gemini-companion-client-home-variable "TMPDIR")
  (gemini-companion-client-temporary-directory "gemini/ide")
  (gemini-companion-client-port-variable "GEMINI_CLI_IDE_SERVER_PORT")
  (gemini-companion-client-pid-variable "GEMINI_CLI_IDE_PID")
  (gemini-companion-client-unset-variables
   '("GEMINI_CLI_IDE_AUTH_TOKEN"
     "GEMINI_CLI_IDE_CONNECTION_TYPE"
     "GEMINI_CLI_IDE_SERVER_STDIO_ARGS"
     "GEMINI_CLI_IDE_SERVER_STDIO_COMMAND"
     ;; The model may write to directories in this one.
     "GEMINI_CLI_IDE_WORKSPACE_PATH"))
  (gemini-companion-client-container-entries
   ;; In a container, Gemini CLI connects to the host, unless this variable
   ;; shows that its editor is in the container.
   '("REMOTE_CONTAINERS=1"))
  (gemini-companion-client-search-command "/ide enable")
  (gemini-companion-client-reconnect-command "/ide enable"))

;;;; Settings

(gemini-companion-client-values gemini
  (gemini-companion-client-user-settings
   '("$GEMINI_CLI_HOME/.gemini/settings.json" "~/.gemini/settings.json"))
  (gemini-companion-client-system-settings
   '("$GEMINI_CLI_SYSTEM_SETTINGS_PATH"
     "/etc/gemini-cli/settings.json"
     "/Library/Application Support/GeminiCli/settings.json"))
  (gemini-companion-client-project-settings ".gemini/settings.json")
  (gemini-companion-client-required-settings
   '((("ide" "enabled") t "IDE integration is off in Gemini CLI"
      "/ide enable")))
  (gemini-companion-client-trust-command "/permissions trust")
  (gemini-companion-client-folder-trust 'on)
  (gemini-companion-client-ignore-files '(".geminiignore")))

;;;; Links

(cl-defmethod gemini-companion-client-link-record
  ((_client (eql 'gemini)) extension)
  "Return the record of the link of EXTENSION."
  (format "extensions/%s/.gemini-extension-install.json" extension))

(gemini-companion-client-values gemini
  (gemini-companion-client-manifest "gemini-extension.json")
  (gemini-companion-client-link-arguments '("link" "--consent"))
  (gemini-companion-client-hooks
   '((AfterTool . "write_file|replace")
     (BeforeAgent) (AfterAgent) (Notification)))
  (gemini-companion-client-prompt-event 'BeforeAgent)
  (gemini-companion-client-silent-modes '("auto_edit" "yolo"))
  (gemini-companion-client-review-hook '(BeforeTool . "write_file|replace"))
  (gemini-companion-client-review-answer '((decision . "ask")))
  (gemini-companion-client-inquiry-hook '(BeforeTool . "ask_user"))
  (gemini-companion-client-call-hooks
   '((BeforeTool AfterTool) . "run_shell_command|^mcp_(?!emacs_)"))
  (gemini-companion-client-plan-files
   ;; The components are the project and, in most versions, the session.
   '("tmp/*/*/plans/*.md" "tmp/*/plans/*.md"))
  (gemini-companion-client-hooks-file "hooks/hooks.json"))

(cl-defmethod gemini-companion-client-policy
  ((_client (eql 'gemini)) extension server allowed)
  "Return the file of policies for the tools of SERVER that are ALLOWED.
EXTENSION is in its name."
  (cons (format "policies/%s.toml" extension)
        (concat "# Written by M-x gemini-companion-tools, which also deletes it.\n"
                (mapconcat (lambda (tools)
                             (format "[[rule]]
mcpName = \"%s\"
%s
decision = \"allow\"
priority = 100
"
                                     server
                                     (if (eq tools 'questions)
                                         "toolName = \"*\"
toolAnnotations = { readOnlyHint = true }"
                                       (format "toolName = \"%s\"" tools))))
                           allowed "\n"))))

;;;; Titles

(gemini-companion-client-values gemini
  (gemini-companion-client-titles
   '(("\\`\u25c7" . ready)
     ("\\`[\u2726\u23f2]" . working)
     ("\\`\u270b" . waiting)))
  ;; For /compress, which hides the prompt; beside an animation.
  (gemini-companion-client-work "Compressing chat history")
  ;; Gemini CLI saves the theme, and compares it with the background once a minute.
  (gemini-companion-client-follows-background-p t))

;;;; Conversations

(gemini-companion-client-values gemini
  (gemini-companion-client-resume-arguments '("--resume"))
  (gemini-companion-client-conversations-arguments '("-i" "/resume")))

;;;; Prompts

(gemini-companion-client-values gemini
  (gemini-companion-client-image-directory "tmp/%s/images/")
  (gemini-companion-client-project-names '("projects.json" "projects"))
  (gemini-companion-client-searches-names-p t)
  (gemini-companion-client-escapes "[][ (){};|$`'#&<>!~,@]\\|\\.\\'")
  (gemini-companion-client-unreadable
   ;; Gemini CLI uses the name as a glob, which may match other files, and takes
   ;; a long name with a quote or an ellipsis for text of a log.
   "[\"\\*?]\\|\\.\\.\\.\\|\\[[^][/]*]\\|[@+!](\\|{[^/{}]*\\(?:,\\|\\.\\.\\)[^/]*}"))

;;;; Edits

(gemini-companion-client-values gemini
  (gemini-companion-client-drops-edits-p t)
  (gemini-companion-client-hides-interrupts-p t))

(provide 'gemini-companion-client-gemini)
;;; gemini-companion-client-gemini.el ends here
