;;; gemini-companion-client.el --- What differs by CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; All that differs by CLI is a generic function here, and a method of it in the
;; file of the CLI, its adapter.  A CLI has no method for what it does not have: the
;; value is then the default, which is nil if nothing else is said.
;;
;; A CLI has a name, such as "qwen": the `:client' of a session, the name of its
;; program, and as a symbol what the methods dispatch on, as in (eql 'qwen).
;; The generic functions take the string, or nil if the CLI is not known.  They
;; return data, and write nothing.
;;
;; The list of all CLIs is in gemini-companion-clients.el.  In the server, each CLI
;; has a module of its own.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)

(defmacro gemini-companion-client--define (name arguments docstring &rest default)
  "Define the generic function NAME with ARGUMENTS and DOCSTRING.
The first argument is the name of a CLI, a string, or the symbol by which
methods dispatch.  DEFAULT is the body for a CLI without a method."
  (declare (indent 2) (doc-string 3))
  (let ((others (cdr arguments)))
    `(cl-defgeneric ,name (client ,@others)
       ,docstring
       (ignore ,@others)
       (if (stringp client)
           (,name (intern client) ,@others)
         ,@default))))

(defmacro gemini-companion-client-values (client &rest values)
  "Define methods of CLIENT, a symbol, that return VALUES.
VALUES are lists (FUNCTION VALUE): a generic function without other
arguments than the CLI, and a form that is evaluated at each call."
  (declare (indent 1))
  `(progn
     ,@(mapcar (pcase-lambda (`(,function ,value))
                 `(cl-defmethod ,function ((_client (eql ',client)))
                    ,value))
               values)))

;;;; Program

(gemini-companion-client--define gemini-companion-client-title (client)
  "Return the title of CLIENT for the user, by default \"the CLI\"."
  "the CLI")

(gemini-companion-client--define gemini-companion-client-package (client)
  "Return the name of the npm package of CLIENT.")

(gemini-companion-client--define gemini-companion-client-node (client)
  "Return the version of Node.js that CLIENT needs, such as \"22\".")

(gemini-companion-client--define gemini-companion-client-oldest (client)
  "Return the first version of CLIENT that finds Emacs, such as \"0.15.10\".")

(gemini-companion-client--define gemini-companion-client-commands (client)
  "Return the names of the commands of CLIENT, without a slash, a list.")

;;;; How it finds Emacs

(gemini-companion-client--define gemini-companion-client-home-variable (client)
  "Return the variable that decides where CLIENT searches for Emacs.")

(gemini-companion-client--define gemini-companion-client-temporary-directory (client)
  "Return where CLIENT searches for Emacs in the temporary directory.
The value is relative to the temporary directory of Node.js, such as
\"gemini/ide\".  It is nil for a CLI that searches in the home directory.")

(gemini-companion-client--define gemini-companion-client-port-variable (client)
  "Return the variable that is set to the port of Emacs for CLIENT.
A CLI without one cannot connect from another host.")

(gemini-companion-client--define gemini-companion-client-pid-variable (client)
  "Return the variable that is set to the process id of Emacs for CLIENT.")

(gemini-companion-client--define gemini-companion-client-unset-variables (client)
  "Return the variables that are unset in terminals for CLIENT, a list.")

(gemini-companion-client--define gemini-companion-client-container-entries (client)
  "Return the entries of the environment of CLIENT in a container.
They are a list of strings, such as (\"REMOTE_CONTAINERS=1\"), by which CLIENT
searches for Emacs in its container.")

(gemini-companion-client--define gemini-companion-client-connect-remedy (client)
  "Return what the user does if CLIENT is not connected, a sentence or two.
By default, that is to type its `gemini-companion-client-search-command', or
to start it again if it has none."
  (if-let* ((command (gemini-companion-client-search-command client)))
      (format "Run %s there.  If the CLI answers that IDE integration is not \
supported, start it again: it searches for editors only when it starts."
              command)
    "Start it again."))

(gemini-companion-client--define gemini-companion-client-search-command (client)
  "Return the command by which CLIENT searches for Emacs, such as \"/ide\".")

(gemini-companion-client--define gemini-companion-client-reconnect-command (client)
  "Return the command that connects CLIENT again after it lost the server.
It is nil if CLIENT then searches for a server by itself.")

;;;; Extension

(gemini-companion-client--define gemini-companion-client-extension (client)
  "Return the extension by which CLIENT connects, or nil if it needs none.
The value is a list (DIRECTORY (NAME . SOURCE)...).  DIRECTORY is relative
to that of CLIENT.  NAME is a file there, the first one that CLIENT loads,
and SOURCE the file of this package in its directory of extensions.")

(gemini-companion-client--define gemini-companion-client-reload-command (client)
  "Return the command by which CLIENT loads its extensions again.")

;;;; Settings

(gemini-companion-client--define gemini-companion-client-user-settings (client)
  "Return the names of the user's settings file of CLIENT, a list.
See `gemini-companion-client-file'.")

(gemini-companion-client--define gemini-companion-client-system-settings (client)
  "Return the names of the settings file of CLIENT for all users, a list.
See `gemini-companion-client-file'.")

(gemini-companion-client--define gemini-companion-client-project-settings (client)
  "Return the name of a project's settings file of CLIENT.
It is relative to the root of the project.")

(gemini-companion-client--define gemini-companion-client-required-settings (client)
  "Return the settings that CLIENT needs, the one to connect first.
The value is a list of lists (KEYS VALUE PROBLEM COMMAND ALTERNATIVE).  KEYS
are two strings, the names of a section and a setting; without VALUE, the
PROBLEM is what goes wrong; COMMAND is typed in CLIENT to set it.

ALTERNATIVE is nil, or a list (VALUES KEYS ELEMENT LABEL): the setting may also
have one of VALUES, of which nil is for none, if the list that is the setting
KEYS has ELEMENT.  LABEL is that of the button that adds ELEMENT.")

(gemini-companion-client--define gemini-companion-client-trust-command (client)
  "Return the command of CLIENT that trusts its directory.")

(gemini-companion-client--define gemini-companion-client-untrusted-p
    (client directory)
  "Return non-nil if CLIENT does not trust DIRECTORY, a local one.
Then CLIENT does not run the hooks of extensions there.")

(gemini-companion-client--define gemini-companion-client-ignore-files (client)
  "Return the names of the files that list what is not shared, a list.
These are those that CLIENT reads.")

;;;; Links

(gemini-companion-client--define gemini-companion-client-link-arguments (client)
  "Return the command about extensions that links one, and its options.
The value is a list such as (\"link\" \"--consent\"): CLIENT is run with
\"extensions\", the command, the directory of the extension and the options.")

(gemini-companion-client--define gemini-companion-client-manifest (client)
  "Return the name of the manifest of an extension of CLIENT.")

(gemini-companion-client--define gemini-companion-client-link-record
    (client extension)
  "Return the file in which CLIENT records the link of EXTENSION.
It is relative to the directory of CLIENT, and an object of JSON, in which
\"source\" is the directory of the extension.")

(gemini-companion-client--define gemini-companion-client-hooks (client)
  "Return the events about which CLIENT calls a hook once it is linked.
The value is an alist of (EVENT . TOOLS), a symbol and nil or a regexp for
names of tools.")

(gemini-companion-client--define gemini-companion-client-hooks-file (client)
  "Return the file of the extension for the hooks of CLIENT.
It is nil if they are in the manifest.")

(gemini-companion-client--define gemini-companion-client-review-hook (client)
  "Return the event whose hook can make CLIENT ask about an edit, a cons.
CLIENT then asks in a mode in which it does not by itself, and opens a
review or asks in its terminal; see
`gemini-companion-client-reviews-in-terminal-p'.  The value is (EVENT . TOOLS),
as in `gemini-companion-client-hooks'.")

(gemini-companion-client--define gemini-companion-client-silent-modes (client)
  "Return the modes in which CLIENT does not ask about an edit, strings.
They are as CLIENT names them.")

(gemini-companion-client--define gemini-companion-client-reviews-in-terminal-p
    (client)
  "Return non-nil if CLIENT opens no review when a hook makes it ask.
It then shows the edit in its terminal only.")

(gemini-companion-client--define gemini-companion-client-plan-files (client)
  "Return globs for the files to which CLIENT writes plans, a list.
They are as in .gitignore, for names below the directory of CLIENT.  The
directory of such a file is named plans.")

(gemini-companion-client--define gemini-companion-client-permission-hook (client)
  "Return the event whose hook may answer what CLIENT asks, a cons.
It is (EVENT . TOOLS), as in `gemini-companion-client-hooks'.")

(gemini-companion-client--define gemini-companion-client-inquiry-hook (client)
  "Return the event that has the text of a question of the model, a cons.
It is (EVENT . TOOLS), as in `gemini-companion-client-hooks', for a CLI that
asks it in its terminal only once the hook has returned.")

(gemini-companion-client--define gemini-companion-client-answers-text
    (client answers)
  "Return the text by which the model of CLIENT is told ANSWERS of the user.
ANSWERS is a list of lists of strings, (HEADER ANSWER...): the short name of
a question, and what was chosen or typed.  It is nil for a CLI that is
answered only in its terminal.")

(gemini-companion-client--define gemini-companion-client-tool-hooks (client)
  "Return hooks about tools and prompts in the file of hooks of CLIENT.
The value is an alist as of `gemini-companion-client-hooks'; see
`gemini-companion-client-notification-event'.")

(gemini-companion-client--define gemini-companion-client-notification-event (client)
  "Return the event for which CLIENT is linked by a file of hooks, a string.
The file is in the directory hooks of its directory.  It is nil for a CLI
that is linked by an extension.")

(gemini-companion-client--define gemini-companion-client-policy
    (client extension server)
  "Return the file by which CLIENT asks SERVER without a confirmation.
SERVER is the name of the MCP server of EXTENSION.  The value is a cons of
the name of the file, relative to the directory of CLIENT, and its text.")

;;;; Titles

(gemini-companion-client--define gemini-companion-client-titles (client)
  "Return the meanings of the window titles of CLIENT, an alist.
Its elements are (REGEXP . STATE), of which the first that matches counts.
STATE is `ready', `working' or `waiting', or `named', which is `ready' if
another title of the same program has shown a state.")

(gemini-companion-client--define gemini-companion-client-follows-background-p (client)
  "Return non-nil if CLIENT adapts its theme to a report of the background.
It does so also without having asked, once it displays its prompt.")

;;;; Questions

(gemini-companion-client--define gemini-companion-client-question (client)
  "Return a regexp for text in the terminal of CLIENT while it asks.
It is about questions before CLIENT connects: for trust, a sign-in or the
like."
  "[●›❯] [0-9]+\\. \\|Waiting for auth\\|Enter .*API Key")

(cl-defstruct (gemini-companion-client-dialog
               (:noinline t)
               (:constructor gemini-companion-client-dialog-make)
               (:copier nil))
  "The dialog at the end of a screen by which a CLI asks about a shell command.
ROWS are the rows of the command, strings without what is around them and
without blanks at their ends.  WHOLE is non-nil if none is hidden, and
BREAKS-KNOWN if each end of a row but the last is the end of a line.  ALLOW
and REFUSE are the keys that allow the command this once and refuse it,
strings, or nil.  HEADING are the rows above those of the command."
  rows whole breaks-known allow refuse heading)

(gemini-companion-client--define gemini-companion-client-answered-by-key-p (client)
  "Return non-nil if a key answers CLIENT about a shell command in its terminal.
`gemini-companion-client-read-dialog' reads its dialog then.")

(gemini-companion-client--define gemini-companion-client-read-dialog (client screen)
  "Return the dialog of CLIENT about a shell command at the end of SCREEN.
SCREEN is the text of a terminal.  The value is a
`gemini-companion-client-dialog', or nil if anything is not as it always
is, or if CLIENT is not to be answered by a key.")

;;;; Conversations

(gemini-companion-client--define gemini-companion-client-resume-arguments
    (client conversation)
  "Return the arguments with which CLIENT resumes CONVERSATION, a list.
CONVERSATION is its name for CLIENT, a string, or t if CLIENT is to ask
for it.  The value is nil for a CLI that cannot resume any.")

(gemini-companion-client--define gemini-companion-client-conversations-arguments
    (client)
  "Return the arguments with which CLIENT prints conversations, a list.
These are the conversations in a directory that it can resume.  Without
them, CLIENT asks itself which one to resume.")

(gemini-companion-client--define gemini-companion-client-conversations
    (client output)
  "Return the conversations in OUTPUT of CLIENT, the newest first.
OUTPUT is what it prints if it has the arguments that
`gemini-companion-client-conversations-arguments' returns.  The value is a
list of lists (ID TIME WORDS), of strings: the name for CLIENT, when it was
used last, and its title or first prompt.")

;;;; Prompts

(gemini-companion-client--define gemini-companion-client-searches-names-p (client)
  "Return non-nil if CLIENT takes a part of the name of a file for it.")

(gemini-companion-client--define gemini-companion-client-escapes (client)
  "Return a regexp for characters in the name of a file after an @.
They take a backslash in a prompt of CLIENT.")

(gemini-companion-client--define gemini-companion-client-unreadable (client)
  "Return a regexp for names after an @ of which CLIENT reads no file.
It may also read other files then.  By default no name is such."
  regexp-unmatchable)

(gemini-companion-client--define gemini-companion-client-placeholder (client)
  "Return a regexp for what CLIENT shows for an image or a long text."
  "\\[\\(?:Image \\|Paste[ d]\\|clipboard-\\)")

(gemini-companion-client--define gemini-companion-client-prompt-sign (client)
  "Return a regexp for the character with which the prompt of CLIENT begins.
In place of it, ! may show that the prompt is for a shell."
  "[*>❯┃]")

(gemini-companion-client--define gemini-companion-client-shell-footer (client)
  "Return a regexp for a row below the prompt in which it is for a shell.
Without one, such a prompt of CLIENT begins with ! in place of the usual
sign.")

(gemini-companion-client--define gemini-companion-client-normal-footer (client)
  "Return a regexp for a row below the prompt in the normal mode of Vi.
CLIENT then ignores DEL, but \\`u' undoes what was typed.")

(gemini-companion-client--define gemini-companion-client-editor-file (client)
  "Return a pattern for the file that the editor key of CLIENT opens, or nil.
It is one of the shell, for the end of the name: gemini-edit-*/buffer.txt.")

(gemini-companion-client--define gemini-companion-client-image-directory
    (client directory)
  "Return the directory of images that were pasted into CLIENT in DIRECTORY.
The value is an absolute name, or nil if it is not known.")

;;;; Edits

(gemini-companion-client--define gemini-companion-client-discards-edits-p (client)
  "Return non-nil if a yes in the terminal writes the own text of CLIENT.
The user's edits of the proposal are discarded.")

(gemini-companion-client--define gemini-companion-client-writes-own-text-p (client)
  "Return non-nil if a yes in Emacs writes the own text of CLIENT, too.
The text that it proposes has the line ends of the file.")

(gemini-companion-client--define gemini-companion-client-codings (client)
  "Return the coding systems in which CLIENT reads and writes files.
The value is a list of those that it can find by itself, with plain line
ends; CLIENT keeps the one of a file, and proposes a text without the byte
order mark.  It is nil for a CLI that reads and writes UTF-8.")

(gemini-companion-client--define gemini-companion-client-drops-edits-p (client)
  "Return non-nil if rejecting an edit of CLIENT cancels others.
These are the other edits of the same answer of the model.")

(gemini-companion-client--define gemini-companion-client-hides-interrupts-p (client)
  "Return non-nil if CLIENT hides that the user interrupted its question.
It does not close the review after \\`C-c'.")

(defun gemini-companion-client-extended-p (client)
  "Return non-nil if an extension of this package speaks for CLIENT.
It takes prompts and the reason of a rejection from the server, and sends
an open proposal again to the next server."
  (and (gemini-companion-client-extension client) t))

;;;; Look-ups

(defun gemini-companion-client-file (names)
  "Return the absolute name of a file of a CLI that may have one of NAMES.
It is the first name that begins with a variable that is set, such as
\"$QWEN_HOME/settings.json\", else the first that exists, else the first
one without a variable.  It is nil without any."
  (let* ((default-directory "/")
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

(defun gemini-companion-client-user-file (client)
  "Return the absolute name of the user's settings file of CLIENT."
  (gemini-companion-client-file (gemini-companion-client-user-settings client)))

(defun gemini-companion-client-home (client)
  "Return the directory of CLIENT in the home of the user, or nil.
It exists once the CLI has run.  It is nil for a CLI without settings."
  (when-let* ((file (gemini-companion-client-user-file client)))
    (file-name-directory file)))

(defun gemini-companion-client-has-run-p (client)
  "Return non-nil if CLIENT has its directory in the home directory."
  (when-let* ((home (gemini-companion-client-home client)))
    (file-directory-p home)))

(provide 'gemini-companion-client)
;;; gemini-companion-client.el ends here
