;;; gemini-companion-clients.el --- The CLIs that connect  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The CLIs that connect.  They differ only in what this table contains, and in
;; how they run, find an editor and speak to it, which the server knows.  To add
;; a CLI, add a row here and one in python/gemini_companion_epc/clients.py.
;;
;; The settings files of the CLIs are read and set here, too.  Findings name the
;; settings without which a CLI does not connect.

;;; Code:

(require 'gemini-companion-text)
(require 'gemini-companion-windows-at-once)
(require 'json)

(defconst gemini-companion-clients
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
     ;; It uses the name as a pattern, in which others may match or none, and
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
     :commands "about agents approval-mode auth branch btw bug cd clear \
compress config context copy delete diff directory docs doctor editor effort \
export extensions forget fork goal help history hooks ide init insight \
language learn lsp mcp memory model output-style permissions plan quit recap \
remember rename restore resume rewind settings setup-github skills stats \
status statusline summary tasks terminal-setup theme tools trust update vim \
voice workflows"
     :conversations ("sessions" "list" "--json" "--limit" "100")
     ;; It writes before it fetches the text of the review.
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
`gemini-companion-clients--file';
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

(defun gemini-companion-clients-get (client key)
  "Return the value of KEY of CLIENT, a name or nil."
  (plist-get (cdr (assoc client gemini-companion-clients)) key))

(defun gemini-companion-clients-title (client)
  "Return the title of CLIENT, or \"the CLI\" if it is nil or unknown."
  (or (gemini-companion-clients-get client :title) "the CLI"))

(defun gemini-companion-clients-all (key)
  "Append the lists that are the values of KEY of all CLIs."
  (seq-mapcat (lambda (client) (plist-get (cdr client) key))
              gemini-companion-clients))

(defun gemini-companion-clients-variables (port pid)
  "Return the entries of an environment that name Emacs PID at PORT to a CLI."
  (cl-loop for (_ . row) in gemini-companion-clients
           append (cl-loop for (key . value) in `((:port-variable . ,port)
                                                  (:pid-variable . ,pid))
                           for name = (plist-get row key)
                           when name collect (format "%s=%d" name value))))

(defun gemini-companion-clients-read (prompt choices)
  "Read one of CHOICES, an alist of (NAME . VALUE), with PROMPT.
Return its VALUE; the default is the first."
  (let ((completion-ignore-case t))
    (cdr (assoc (completing-read (format-prompt prompt (caar choices))
                                 choices nil t nil nil (caar choices))
                choices))))

(defun gemini-companion-clients--file (client key)
  "Return the file KEY of CLIENT, one of the names in the table.
It is the first name that begins with a variable that is set, else the
first that exists, else the first."
  (let* ((default-directory "/")
         (names (gemini-companion-clients-get client key))
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

(defun gemini-companion-clients-home (client)
  "Return the directory of CLIENT in the home of the user.
It exists once the CLI has run."
  (file-name-directory (gemini-companion-clients--file client :user-settings)))

;;;; Settings files

(defun gemini-companion-settings-files (client directory)
  "Return the settings files of CLIENT in DIRECTORY; earlier files win.
They are the settings of the system, the project and the user."
  (let* ((name (gemini-companion-clients-get client :project-settings))
         (root (unless (file-remote-p directory)
                 (locate-dominating-file directory name))))
    `(,(gemini-companion-clients--file client :system-settings)
      ,@(and root (list (expand-file-name name root)))
      ,(gemini-companion-clients--file client :user-settings))))

;;;;; Reading

(defun gemini-companion-settings--read (file &optional plain)
  "Return the JSON object in FILE as an alist, whose keys are strings.
FILE may have comments unless PLAIN is non-nil.  Return nil if there is
no FILE or nothing in it; signal an error if it is malformed, or not a
regular file, which a project may have there."
  (when-let* ((problem (gemini-companion-text-unreadable-reason file)))
    (error "File %s" problem))
  (with-temp-buffer
    (when (file-exists-p file)
      (let ((coding-system-for-read 'utf-8))
        (insert-file-contents file)))
    (unless plain
      (save-excursion
        (while (re-search-forward
                (rx (or (seq "\""
                             (* (or (not (any "\"\\\n")) (seq "\\" nonl)))
                             "\"")
                        (group (or (seq "//" (* nonl))
                                   (seq "/*" (*? anything) "*/")))))
                nil t)
          (when (match-beginning 1)
            (replace-match " " t t)))))
    (skip-chars-forward " \t\r\n")
    (unless (eobp)
      (unless (eq (char-after) ?\{)
        (error "Not a JSON object"))
      (let ((json-object-type 'alist)
            (json-key-type 'string)
            (json-array-type 'vector)
            (json-false :false)
            ;; Distinct from an empty object.
            (json-null :null))
        (prog1 (json-read)
          (skip-chars-forward " \t\r\n")
          (unless (eobp)
            (error "Text after the JSON object")))))))

(defun gemini-companion-settings-get (files keys)
  "Return the first value of FILES, a file or a list, for KEYS, or nil.
KEYS is a list of strings; without any, the value is all that a file
has.  Ignore errors."
  (seq-some (lambda (file)
              (let ((value (ignore-errors
                             (gemini-companion-settings--read file))))
                (dolist (key keys value)
                  (setq value (and (consp value) (cdr (assoc key value)))))))
            (ensure-list files)))

;;;;; Writing

(defun gemini-companion-settings--set (file keys value saved)
  "Set KEYS, a list of two strings, to VALUE in FILE, and display SAVED.
If FILE cannot be written, report that instead.  If it has comments,
which would be lost, or its first key is no object, visit it for the
user, and return nil.  Signal an error if it is malformed."
  (let* ((object (gemini-companion-settings--read file))
         (section (cdr (assoc (car keys) object))))
    (if (and (listp section)
             (ignore-errors (gemini-companion-settings--read file 'plain) t))
        (condition-case problem
            (let ((coding-system-for-write 'utf-8-unix)
                  (json-encoding-pretty-print t)
                  (json-false :false)
                  (json-null :null))
              (setf (alist-get (cadr keys) section nil nil #'equal) value
                    (alist-get (car keys) object nil nil #'equal) section)
              (make-directory (file-name-directory file) t)
              (write-region (concat (json-encode object) "\n") nil
                            ;; It may be a link to where all settings are.
                            (file-truename file) nil 'silent)
              (message "%s" saved))
          (file-error
           (message "Setting not saved (%s); set %s to %s where that file is made"
                    (error-message-string problem) (string-join keys ".")
                    (json-encode value))))
      (gemini-companion-settings--open file)
      (message "%s has comments, which would be lost; set %s to %s in it, \
save it, and go back"
               (file-name-nondirectory file) (string-join keys ".")
               (json-encode value))
      nil)))

;;;;; Findings

(defun gemini-companion-settings--open (file)
  "Visit FILE in another window."
  ;; It may ask, which could not be seen if done in one step.
  (let ((buffer (find-file-noselect file)))
    (gemini-companion-windows-at-once
      (switch-to-buffer-other-window buffer))))

(defun gemini-companion-settings-findings (client directory &optional runs-p)
  "Return the findings about the settings of CLIENT in DIRECTORY.
The first one is about what is needed to connect, if they can be read.
RUNS-P is called with CLIENT when a setting was saved: if its value is
non-nil, a message names what a running CLI needs.  A CLI that starts
after that reads the setting itself."
  (when-let* ((required (gemini-companion-clients-get client :required))
              (files (gemini-companion-settings-files client directory))
              (file (car (last files))))
    (condition-case problem
        (progn
          (gemini-companion-settings--read file)
          (mapcar (apply-partially #'gemini-companion-settings--finding
                                   client files (or runs-p #'ignore))
                  required))
      (error
       `((bad ,(format "%s is malformed: %s" (abbreviate-file-name file)
                       (error-message-string problem))
              ,(format "Correct it; %s does not start with this file."
                       (gemini-companion-clients-title client))
              ("Open" . ,(apply-partially #'gemini-companion-settings--open file))))))))

(defun gemini-companion-settings--finding (client files runs-p required)
  (pcase-let* ((`(,keys ,value ,problem ,command) required)
               (user (car (last files)))
               (found (seq-find (lambda (file)
                                  (gemini-companion-settings-get file keys))
                                files))
               (file (or found user))
               (key (format "%s in %s" (string-join keys ".")
                            (abbreviate-file-name file))))
    (cond
     ((equal value (gemini-companion-settings-get file keys))
      `(good ,(format "%s is %s" key (json-encode value))))
     ((equal file user)
      `(bad ,problem
            ,(format "Run %s there, or set %s to %s." command key
                     (json-encode value))
            (,(cond ((eq value t) "Enable")
                    (found "Change it")
                    (t "Set it"))
             . ,(lambda ()
                  (gemini-companion-settings--set
                   file keys value
                   (if (funcall runs-p client)
                       (format "Setting saved; a running %s needs %s"
                               (gemini-companion-clients-title client) command)
                     "Setting saved"))))))
     (t
      `(bad ,problem
            ,(format "Remove %s, which overrides your own settings." key)
            ("Open" . ,(apply-partially #'gemini-companion-settings--open file)))))))

(provide 'gemini-companion-clients)
;;; gemini-companion-clients.el ends here
