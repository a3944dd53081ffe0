;;; gemini-companion-client-gemini.el --- The adapter of Gemini CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The adapter of Gemini CLI, 0.31.0 or later: its methods for the generic functions
;; of gemini-companion-client.el.  Its fork, Qwen Code, has another adapter.

;;; Code:

(require 'gemini-companion-client)
(require 'gemini-companion-client-settings)

;;;; Program

(gemini-companion-client-values gemini
  (gemini-companion-client-title "Gemini CLI")
  (gemini-companion-client-package "@google/gemini-cli")
  (gemini-companion-client-node "20")
  (gemini-companion-client-oldest "0.31.0"))

(cl-defmethod gemini-companion-client-commands ((_client (eql 'gemini)))
  "Return the commands of Gemini CLI."
  (split-string "about agents auth bug chat clear commands compress copy \
directory docs editor extensions footer help hooks ide init mcp memory model \
permissions plan policies privacy quit restore resume rewind settings \
setup-github shortcuts skills stats tasks terminal-setup theme tools upgrade \
vim voice"))

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
  (gemini-companion-client-ignore-files '(".geminiignore")))

(cl-defmethod gemini-companion-client-untrusted-p
  ((_client (eql 'gemini)) directory)
  "Return non-nil if folder trust is on, and DIRECTORY is not trusted."
  (gemini-companion-client-settings-untrusted-p "gemini" directory t))

;;;; Links

(cl-defmethod gemini-companion-client-link-record
  ((_client (eql 'gemini)) extension)
  "Return the record of the link of EXTENSION."
  (format "extensions/%s/.gemini-extension-install.json" extension))

(gemini-companion-client-values gemini
  (gemini-companion-client-answered-by-key-p t)
  (gemini-companion-client-manifest "gemini-extension.json")
  (gemini-companion-client-link-arguments '("link" "--consent"))
  (gemini-companion-client-hooks
   '((AfterTool . "write_file|replace")
     (BeforeAgent) (AfterAgent) (Notification)))
  (gemini-companion-client-prompt-event 'BeforeAgent)
  (gemini-companion-client-silent-modes '("auto_edit" "yolo"))
  (gemini-companion-client-review-hook '(BeforeTool . "write_file|replace"))
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

;;;; Dialogs

;; The dialog of Gemini CLI 0.61 about a shell command, as it is on the screen:
;;
;;   ╭──────────────────────────────────────╮
;;   │ ? Shell  rm -rf build          1 of 2 │
;;   │ ╭──────────────────────────────────╮ │
;;   │ │ rm -rf build                     │ │
;;   │ ╰──────────────────────────────────╯ │
;;   │ Allow execution of [Shell]?          │
;;   │                                      │
;;   │ ● 1. Allow once                      │
;;   │   2. Allow for this session          │
;;   │   3. No, suggest changes (esc)       │
;;   ╰──────────────────────────────────────╯
;;
;; The inner frame wraps long lines at blanks, and hides these blanks: a newline, a
;; blank and a hundred blanks look the same.  The heading has the command as well
;; unless it is longer than about 150 characters.  It truncates lines instead of
;; wrapping them: if the heading has each row of the inner frame, each row is a line.

(defun gemini-companion-client-gemini--dialog-row (line)
  "Return the text between the bars of LINE, a row in a frame, or nil.
Trailing blanks are removed."
  (when (string-match "\\`│ ?\\(.*?\\) *│\\'" line)
    (match-string 1 line)))

(defun gemini-companion-client-gemini--dialog-frame (screen)
  "Return the rows in the frame at the end of SCREEN, or nil.
Only blank lines may follow the frame."
  (let ((lines (mapcar #'string-trim-right
                       (split-string (string-trim-right screen) "\n")))
        (rows nil)
        (row nil))
    (setq lines (nreverse lines))
    (when (string-match-p "\\`╰─+╯\\'" (car lines))
      (pop lines)
      (while (setq row (gemini-companion-client-gemini--dialog-row
                        (or (car lines) "")))
        (push row rows)
        (pop lines))
      (and (string-match-p "\\`╭─+╮\\'" (or (car lines) ""))
           rows))))

(defun gemini-companion-client-gemini--dialog-options (rows)
  "Return the options at the beginning of ROWS, the last one first.
The value is an alist of labels and keys, such as ((\"Allow once\" . \"1\")).
It is nil unless each of ROWS is an option, and their keys count from 1."
  (let ((options (mapcar
                  (lambda (row)
                    (and (string-match
                          "\\`[● ] \\([1-9]\\)\\. \\([^ ].*\\)\\'" row)
                         (cons (match-string 2 row) (match-string 1 row))))
                  rows)))
    (and options
         (not (memq nil options))
         (equal (mapcar #'cdr options)
                (mapcar #'number-to-string
                        (number-sequence 1 (length options))))
         options)))

(defun gemini-companion-client-gemini--dialog-split (rows)
  "Split ROWS, the rows in the frame of a dialog, into its sections.
The value is a list (HEADING COMMAND OPTIONS) of lists of rows: above the inner
frame, in it, and the options.  The question must follow the inner frame;
remarks may come after it, and then a blank row.  Return nil if ROWS are not
such a dialog."
  (let* ((bottom (cl-position-if (apply-partially #'string-match-p "\\`╰─+╯\\'")
                                 rows :from-end t))
         (top (and bottom
                   (cl-position-if-not #'gemini-companion-client-gemini--dialog-row
                                       rows :end bottom :from-end t)))
         (blank (and bottom (cl-position "" rows :start bottom :test #'equal))))
    (and top blank (< 0 top)
         (string-match-p "\\`╭─+╮\\'" (nth top rows))
         (= (length (nth top rows)) (length (nth bottom rows)))
         (equal "Allow execution of [Shell]?" (nth (1+ bottom) rows))
         (list (seq-subseq rows 0 top)
               (mapcar #'gemini-companion-client-gemini--dialog-row
                       (seq-subseq rows (1+ top) bottom))
               (seq-subseq rows (1+ blank))))))

(defun gemini-companion-client-gemini--dialog-heading-has-p (heading rows)
  "Return non-nil if HEADING has the same rows as ROWS.
The first row of HEADING may end with the number of the dialog in a queue."
  (let ((begin "? Shell  "))
    (and (= (length heading) (length rows))
         (string-match-p (concat "\\`" (regexp-quote (concat begin (car rows)))
                                 "\\(?: +[0-9]+ of [0-9]+\\)?\\'")
                         (car heading))
         (equal (cdr heading)
                (mapcar (lambda (row)
                          (if (equal row "")
                              ""
                            (concat (make-string (length begin) ?\s) row)))
                        (cdr rows))))))

(cl-defmethod gemini-companion-client-read-dialog ((_client (eql 'gemini)) screen)
  "Return the dialog of Gemini CLI at the end of SCREEN."
  (pcase (gemini-companion-client-gemini--dialog-split
          (gemini-companion-client-gemini--dialog-frame screen))
    (`(,heading ,rows ,(app gemini-companion-client-gemini--dialog-options
                            (and options (pred identity))))
     (and rows
          (string-prefix-p "? Shell " (car heading))
          (gemini-companion-client-dialog-make
           :heading heading
           :rows rows
           :whole (not (seq-some (apply-partially #'string-match-p
                                                  "\\`\\.\\.\\. .*hidden")
                                 rows))
           :breaks-known (gemini-companion-client-gemini--dialog-heading-has-p
                          heading rows)
           :allow (cdr (assoc "Allow once" options))
           :refuse (and (assoc "No, suggest changes (esc)" options) "\e"))))))

;;;; Conversations

(cl-defmethod gemini-companion-client-resume-arguments
  ((_client (eql 'gemini)) conversation)
  "Return the option that resumes CONVERSATION, a string, or asks for one."
  (if (stringp conversation)
      (list "--resume" conversation)
    '("--resume")))

(gemini-companion-client-values gemini
  (gemini-companion-client-conversations-arguments '("--list-sessions")))

(cl-defmethod gemini-companion-client-conversations
  ((_client (eql 'gemini)) output)
  "Return the conversations in OUTPUT, which has the newest last.
A line of OUTPUT is like \"  1. Fix the bug (2 hours ago) [ID]\"."
  (let ((conversations nil))
    (dolist (line (split-string output "[\r\n]+" t) conversations)
      (when (string-match
             "\\` *[0-9]+\\. \\(.*\\) (\\([^()]*\\)) \\[\\([^]]+\\)\\]\\'" line)
        (push (list (match-string 3 line) (match-string 2 line)
                    (match-string 1 line))
              conversations)))))

;;;; Prompts

(gemini-companion-client-values gemini
  (gemini-companion-client-searches-names-p t)
  (gemini-companion-client-editor-file "gemini-edit-*/buffer.txt")
  (gemini-companion-client-escapes "[][ (){};|$`'#&<>!~,@]\\|\\.\\'")
  (gemini-companion-client-unreadable
   ;; Gemini CLI uses the name as a glob, which may match other files, and takes
   ;; a long name with a quote or an ellipsis for text of a log.
   "[\"\\*?]\\|\\.\\.\\.\\|\\[[^/]*]\\|[@+!](\\|{[^/}]*\\(?:,\\|\\.\\.\\)[^/]*}"))

(cl-defmethod gemini-companion-client-image-directory
  ((_client (eql 'gemini)) directory)
  "Return the directory of images for DIRECTORY.
Gemini CLI has a name for each directory in which it has run."
  (let ((home (gemini-companion-client-home "gemini")))
    (when-let* ((project (gemini-companion-client-settings-get
                          (expand-file-name "projects.json" home)
                          (list "projects" (directory-file-name
                                            (file-truename directory))))))
      (expand-file-name (format "tmp/%s/images/" project) home))))

;;;; Edits

(gemini-companion-client-values gemini
  (gemini-companion-client-drops-edits-p t)
  (gemini-companion-client-hides-interrupts-p t))

(provide 'gemini-companion-client-gemini)
;;; gemini-companion-client-gemini.el ends here
