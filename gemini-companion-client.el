;;; gemini-companion-client.el --- The CLIs that can connect  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; All that differs by CLI and is no setting of it: one table, and look-ups in it.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)

(defconst gemini-companion-client-table
  '(("gemini"
     :title "Gemini CLI"
     :package "@google/gemini-cli"
     :node "20"
     :oldest "0.31.0"
     :home-variable "TMPDIR"
     :port-variable "GEMINI_CLI_IDE_SERVER_PORT"
     :pid-variable "GEMINI_CLI_IDE_PID"
     :unset ("GEMINI_CLI_IDE_AUTH_TOKEN"
             "GEMINI_CLI_IDE_CONNECTION_TYPE"
             "GEMINI_CLI_IDE_SERVER_STDIO_ARGS"
             "GEMINI_CLI_IDE_SERVER_STDIO_COMMAND"
             ;; The model may write to directories in it.
             "GEMINI_CLI_IDE_WORKSPACE_PATH")
     :user-settings ("$GEMINI_CLI_HOME/.gemini/settings.json"
                     "~/.gemini/settings.json")
     :project-settings ".gemini/settings.json"
     :system-settings ("$GEMINI_CLI_SYSTEM_SETTINGS_PATH"
                       "/etc/gemini-cli/settings.json"
                       "/Library/Application Support/GeminiCli/settings.json")
     :required ((("ide" "enabled") t "IDE integration is off in Gemini CLI"
                 "/ide enable"))
     :connect "Run /ide enable there.  If the CLI answers that IDE \
integration is not supported, start it again: it searches for editors only \
when it starts."
     :reconnect "/ide enable"
     :trust "/permissions trust"
     :link ("link" "--consent")
     :hooks ((AfterTool . "write_file|replace")
             (BeforeAgent) (AfterAgent) (Notification))
     :hooks-file "hooks/hooks.json"
     :policies "policies/%s.toml"
     :distrusts t
     :commands "about agents auth bug chat clear commands compress copy \
directory docs editor extensions footer help hooks ide init mcp memory model \
permissions plan policies privacy quit restore resume rewind settings \
setup-github shortcuts skills stats tasks terminal-setup theme tools upgrade \
vim voice"
     :conversations ("--list-sessions")
     :drops-edits t
     :hides-interrupts t
     :searches t
     :escapes "[][ (){};|$`'#&<>!~,@]\\|\\.\\'"
     ;; Gemini CLI uses the name as a pattern, in which others may match or none,
     ;; and
     ;; takes a long name with a quote or an ellipsis for text of a log.
     :unreadable "[\"\\*?]\\|\\.\\.\\.\\|\\[[^/]*]\\|[@+!](\\|{[^/}]*\\(?:,\\|\\.\\.\\)[^/]*}"
     :images "tmp/%s/images/"
     :ignore-files (".geminiignore")
     :titles (("\\`\u25c7" . ready)
              ("\\`[\u2726\u23f2]" . working)
              ("\\`\u270b" . waiting)))
    ("qwen"
     :title "Qwen Code"
     :package "@qwen-code/qwen-code"
     :node "22"
     :oldest "0.15.10"
     :home-variable "QWEN_HOME"
     :port-variable "QWEN_CODE_IDE_SERVER_PORT"
     :unset ("QWEN_CODE_IDE_SERVER_STDIO_ARGS"
             "QWEN_CODE_IDE_SERVER_STDIO_COMMAND"
             ;; "qwen serve" binds the directories in it.
             "QWEN_CODE_IDE_WORKSPACE_PATH")
     :user-settings ("$QWEN_HOME/settings.json" "~/.qwen/settings.json")
     :project-settings ".qwen/settings.json"
     :system-settings ("$QWEN_CODE_SYSTEM_SETTINGS_PATH"
                       "/etc/qwen-code/settings.json"
                       "/Library/Application Support/QwenCode/settings.json")
     :required ((("ide" "enabled") t "IDE integration is off in Qwen Code"
                 "/ide enable")
                (("tools" "approvalMode") "default"
                 "Qwen Code does not ask about edits, so no review appears"
                 "/approval-mode default"))
     :connect "Run /ide enable there.  If the CLI answers that IDE \
integration is not supported, start it again: it searches for editors only \
when it starts."
     :reconnect "/ide enable"
     :trust "/trust"
     :link ("link")
     :hooks ((PostToolUse . "write_file|edit")
             (UserPromptSubmit) (Stop) (Notification))
     :permission-hook (PermissionRequest
                       ;; These have a review, or are answered in the terminal.
                       . "^(?!(edit|write_file|notebook_edit|ask_user_question\
|exit_plan_mode)$)")
     :commands "about agents approval-mode auth branch btw bug cd clear \
compress config context copy delete diff directory docs doctor editor effort \
export extensions forget fork goal help history hooks ide init insight \
language learn lsp mcp memory model output-style permissions plan quit recap \
remember rename restore resume rewind settings setup-github skills stats \
status statusline summary tasks terminal-setup theme tools trust update vim \
voice workflows"
     :conversations ("sessions" "list" "--json" "--limit" "100")
     ;; Qwen Code writes before it fetches the text of the review.
     :discards-edits t
     :keeps-coding t
     :escapes "[][ (){};|*?$`'\"#&<>!~,]"
     :unreadable "\\\\\\|\\.\\'"
     :images "tmp/clipboard/"
     :ignore-files (".qwenignore" ".agentignore" ".aiignore")
     :titles (("\\`\u25d0" . working)
              ("\\`\u2733" . waiting)
              ("\\`Qwen - " . ready)
              ("." . named)))
    ("copilot"
     :title "Copilot CLI"
     :package "@github/copilot"
     :node "22"
     :home-variable "COPILOT_HOME"
     :user-settings ("$COPILOT_HOME/settings.json" "~/.copilot/settings.json")
     :project-settings ".github/copilot/settings.json"
     :connect "Run /ide there, and choose Emacs.  By itself it connects only \
if its directory is a workspace root, not below one."
     :commands "add-dir agent allow-all ask autopilot changelog clear compact \
context copy cwd delegate diagnose diff env exit experimental feedback fleet \
footer fork help ide init instructions keep-alive limits list-dirs login \
logout lsp mcp memory model move new permissions plan plugin pr refine remote \
rename reset-allowed-tools research restart resume review rewind rubber-duck \
sandbox search security-review session settings share skills statusline \
subagents tasks terminal-setup theme update usage user version vim voice \
worktree"
     :discards-edits t
     :writes-own-text t
     :notifies "notification"
     :drops-edits t
     :unreadable "[[:space:]@]\\|\\`~\\|[.,;:!?]\\'"))
  "Alist of (NAME . PLIST), the CLIs that connect.
NAME is the `:client' of a session and the program.  A CLI has no value
for what it does not have.  Keys of PLIST:
`:title', the name for the user;
`:package' and `:node', its npm package and the version of Node.js that
this needs;
`:oldest', the first version that finds Emacs;
`:home-variable', the variable that decides where it searches for Emacs;
with \"TMPDIR\", that is the temporary directory of Node.js;
`:port-variable' and `:pid-variable', the variables that are set in
terminals, to the port and to the process id of Emacs, if any, and
`:unset', those that are unset;
`:user-settings' and `:system-settings', names of settings files, for
`gemini-companion-client-file';
`:project-settings', the name of a project's settings file;
`:required', lists (KEYS VALUE PROBLEM COMMAND) of the settings that
are needed: PROBLEM is what goes wrong without VALUE, and COMMAND is
typed in the CLI to set it;
`:connect', what the user does if it is not connected;
`:reconnect', its command that connects it again after it has lost the
server, if it does not search for a server by itself then;
`:trust', the command of the CLI that trusts its directory;
`:distrusts', non-nil if it asks for trust where no setting decides that;
`:link', the command about extensions that links one, and its options;
`:hooks', an alist of events about which a linked one calls a hook, and
regexps for names of tools, and `:hooks-file', the file of the extension
for them, if that is not the manifest;
`:permission-hook', a cons of an event and a regexp for names of tools,
if a hook of it may answer what the CLI asks, and `:notifies', an event
that a file in the directory of hooks of the user reports, if the CLI is
linked by such a file;
`:policies', the file of a policy of that name, below its own directory;
`:commands', the names of its own commands;
`:conversations', the arguments with which its program prints the
conversations of a directory, for `gemini-companion-resume';
`:discards-edits', non-nil if a yes in the terminal writes the text of
the CLI, without the user's edits of the proposal;
`:writes-own-text', non-nil if a yes in Emacs does so, too, and the text
that it proposes has the line ends of the file;
`:keeps-coding', non-nil if it writes a file in the coding system that
it had, and proposes its text without the byte order mark;
`:drops-edits', non-nil if rejecting an edit cancels the other edits of
the same answer;
`:hides-interrupts', non-nil if it does not close the review when the
user interrupts its question by \\`C-c';
`:searches', non-nil if it takes a part of the name of a file for it;
`:escapes', a regexp for the characters that take a backslash in the
name of a file after @, and `:unreadable', one for names of which it then
reads no file, or others, too; see `gemini-companion-prompt-reference';
`:images', the directory of pasted images, below its own; %s stands for
the name of the project in its projects.json;
`:ignore-files', the names of files that list what is not shared;
`:titles', an alist of regexps for window titles and the states that
they show, of which the first that matches counts; `named' is `ready' if
another title of the same program has shown a state.")

(defun gemini-companion-client-get (client key)
  "Return the value of KEY of CLIENT, a name or nil."
  (plist-get (cdr (assoc client gemini-companion-client-table)) key))

(defun gemini-companion-client-title (client)
  "Return the title of CLIENT, or \"the CLI\" if it is nil or unknown."
  (or (gemini-companion-client-get client :title) "the CLI"))

(defun gemini-companion-client-all (key)
  "Append the lists that are the values of KEY of all CLIs."
  (seq-mapcat (lambda (client) (plist-get (cdr client) key))
              gemini-companion-client-table))

(defun gemini-companion-client-variables (port pid)
  "Return the entries of an environment that name Emacs PID at PORT to a CLI."
  (cl-loop for (_ . row) in gemini-companion-client-table
           append (cl-loop for (key . value) in `((:port-variable . ,port)
                                                  (:pid-variable . ,pid))
                           for name = (plist-get row key)
                           when name collect (format "%s=%d" name value))))

(defun gemini-companion-client-read (prompt choices)
  "Read one of CHOICES, an alist of (NAME . VALUE), with PROMPT.
Return its VALUE; the default is the first."
  (let ((completion-ignore-case t))
    (cdr (assoc (completing-read (format-prompt prompt (caar choices))
                                 choices nil t nil nil (caar choices))
                choices))))

(defun gemini-companion-client-file (client key)
  "Return the file KEY of CLIENT, one of the names in the table.
It is the first name that begins with a variable that is set, else the
first that exists, else the first."
  (let* ((default-directory "/")
         (names (gemini-companion-client-get client key))
         (fixed (mapcar #'expand-file-name
                        (seq-filter #'file-name-absolute-p names))))
    (or (seq-some (lambda (name)
                    (and (string-match "\\`\\$\\([^/]+\\)" name)
                         (not (string-empty-p
                               (or (getenv (match-string 1 name)) "")))
                         (expand-file-name (substitute-env-vars name))))
                  names)
        (seq-find #'file-exists-p fixed)
        (car fixed))))

(defun gemini-companion-client-home (client)
  "Return the directory of CLIENT in the home of the user.
It exists once the CLI has run."
  (file-name-directory (gemini-companion-client-file client :user-settings)))

(defun gemini-companion-client-has-run-p (client)
  "Return non-nil if CLIENT has its directory in the home directory."
  (file-directory-p (gemini-companion-client-home client)))

(provide 'gemini-companion-client)
;;; gemini-companion-client.el ends here
