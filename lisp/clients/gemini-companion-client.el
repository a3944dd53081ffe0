;;; gemini-companion-client.el --- What differs by CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Each difference between CLIs is a generic function of this file.  The file of a CLI,
;; its adapter, has the methods.  If a CLI lacks a feature, its adapter has no method
;; for it; the default value is nil unless the docstring of the function names another.
;;
;; A CLI is identified by the name of its program, such as "qwen".  That string is the
;; `:client' of a session and the argument of the generic functions; it is nil for an
;; unknown CLI.  Methods dispatch on the symbol, as in (eql 'qwen).  The functions
;; return data and have no side effects.
;;
;; gemini-companion-clients.el lists all CLIs.  The server has a Python module for
;; each CLI.

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

;;;; How it finds Emacs

(gemini-companion-client--define gemini-companion-client-home-variable (client)
  "Return the environment variable for the directory where CLIENT finds Emacs.")

(gemini-companion-client--define gemini-companion-client-temporary-directory (client)
  "Return the temporary directory in which CLIENT searches for Emacs.
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
  "Return environment entries that make CLIENT find Emacs in its container.
The value is a list of strings, such as (\"REMOTE_CONTAINERS=1\").")

(gemini-companion-client--define gemini-companion-client-connect-remedy (client)
  "Return the remedy if CLIENT is not connected, one or two sentences.
By default, run its `gemini-companion-client-search-command', or restart it if
it has none."
  (if-let* ((command (gemini-companion-client-search-command client)))
      (format "Run %s there.  If the CLI answers that IDE integration is not \
supported, start it again: it searches for editors only when it starts."
              command)
    "Start it again."))

(gemini-companion-client--define gemini-companion-client-search-command (client)
  "Return the command by which CLIENT searches for Emacs, such as \"/ide\".")

(gemini-companion-client--define gemini-companion-client-reconnect-command (client)
  "Return the command that reconnects CLIENT after it lost the server.
It is nil if CLIENT reconnects by itself.")

;;;; Extension

(gemini-companion-client--define gemini-companion-client-extension (client)
  "Return the extension by which CLIENT connects, or nil if it needs none.
The value is a list (DIRECTORY (NAME . SOURCE)...).  DIRECTORY is relative
to the directory of CLIENT.  NAME is a file in it; CLIENT loads the first one.
SOURCE is a file in the directory of extensions of this package.")

(gemini-companion-client--define gemini-companion-client-reload-command (client)
  "Return the command by which CLIENT reloads its extensions.")

;;;; Settings

(gemini-companion-client--define gemini-companion-client-user-settings (client)
  "Return the possible names of the user's settings file of CLIENT, a list.
See `gemini-companion-client-file'.")

(gemini-companion-client--define gemini-companion-client-system-settings (client)
  "Return the possible names of the system settings file of CLIENT, a list.
See `gemini-companion-client-file'.")

(gemini-companion-client--define gemini-companion-client-project-settings (client)
  "Return the name of a project's settings file of CLIENT.
It is relative to the root of the project.")

(gemini-companion-client--define gemini-companion-client-required-settings (client)
  "Return the settings that CLIENT needs, the one to connect first.
The value is a list of lists (KEYS VALUE PROBLEM COMMAND).  KEYS are two
strings, the names of a section and of a setting, which must have VALUE.
PROBLEM is a text about another value, and COMMAND a command of CLIENT that sets
VALUE.")

(gemini-companion-client--define gemini-companion-client-trust-command (client)
  "Return the command of CLIENT that trusts its directory.")

(gemini-companion-client--define gemini-companion-client-folder-trust (client)
  "Return whether the folder trust of CLIENT is `on' or `off' without a setting.
The value is nil for a CLI that has none.  CLIENT does not run hooks of
extensions in a directory that it does not trust.")

(gemini-companion-client--define gemini-companion-client-ignore-files (client)
  "Return the names of the ignore files that CLIENT reads, a list.
They list files that are not shared.")

;;;; Links

(gemini-companion-client--define gemini-companion-client-link-arguments (client)
  "Return the subcommand that links an extension, and its options.
The value is a list such as (\"link\" \"--consent\"): CLIENT is run with
\"extensions\", the subcommand, the directory of the extension and the options.")

(gemini-companion-client--define gemini-companion-client-manifest (client)
  "Return the name of the manifest of an extension of CLIENT.")

(gemini-companion-client--define gemini-companion-client-link-record
    (client extension)
  "Return the file in which CLIENT records the link of EXTENSION.
The name is relative to the directory of CLIENT.  The file is a JSON object, in
which \"source\" is the directory of the extension.")

(gemini-companion-client--define gemini-companion-client-hooks (client)
  "Return the events for which a linked CLIENT calls a hook.
The value is an alist of (EVENT . TOOLS), a symbol and nil or a regexp for
names of tools.")

(gemini-companion-client--define gemini-companion-client-prompt-event (client)
  "Return the event of a hook of CLIENT whose answer may add to a prompt.
The value is a symbol, one of the events of the hooks of CLIENT.")

(gemini-companion-client--define gemini-companion-client-hooks-file (client)
  "Return the file of the extension that lists the hooks of CLIENT.
It is nil if the manifest lists them.")

(gemini-companion-client--define gemini-companion-client-review-hook (client)
  "Return the event whose hook can make CLIENT ask before an edit.
The value is (EVENT . TOOLS), as in `gemini-companion-client-hooks'.  The hook
is for the modes of `gemini-companion-client-silent-modes'.  CLIENT then opens
a review, or asks in its terminal; see
`gemini-companion-client-reviews-in-terminal-p'.")

(gemini-companion-client--define gemini-companion-client-review-answer (client)
  "Return the answer of that hook with which CLIENT asks, after a failure.
It is an object for `json-encode', in the shape of CLIENT.")

(gemini-companion-client--define gemini-companion-client-silent-modes (client)
  "Return the modes in which CLIENT does not ask before an edit.
The value is a list of strings, the names that CLIENT uses.")

(gemini-companion-client--define gemini-companion-client-reviews-in-terminal-p
    (client)
  "Return non-nil if CLIENT asks in its terminal when a hook makes it ask.
Then it opens no review.")

(gemini-companion-client--define gemini-companion-client-plan-files (client)
  "Return globs for the files in which CLIENT writes plans, a list.
They have the syntax of .gitignore, relative to the directory of CLIENT.  The
files must be in a directory named plans.")

(gemini-companion-client--define gemini-companion-client-permission-hook (client)
  "Return the event whose hook may answer a permission question of CLIENT.
The value is (EVENT . TOOLS), as in `gemini-companion-client-hooks'.")

(gemini-companion-client--define gemini-companion-client-inquiry-hook (client)
  "Return the event whose hook receives a question of the model.
The value is (EVENT . TOOLS), as in `gemini-companion-client-hooks', for a CLI
that asks in its terminal after the hook has returned.")

(gemini-companion-client--define gemini-companion-client-answers-text
    (client answers)
  "Return the text that sends ANSWERS of the user to the model of CLIENT.
ANSWERS is a list of lists of strings, (HEADER ANSWER...): the short name of
a question, and the choices or the text of the user.  Return nil for a CLI
that can only be answered in its terminal.")

(gemini-companion-client--define gemini-companion-client-call-hooks (client)
  "Return the events before and after a tool of CLIENT that may write files.
The value is (EVENTS . TOOLS): EVENTS are symbols, the event before the tool
first; for TOOLS, see `gemini-companion-client-hooks'.  Tools that report their
edits and tools that only read are left out.  CLIENT must wait for the hooks.")

(gemini-companion-client--define gemini-companion-client-tool-hooks (client)
  "Return hooks for tools and prompts in the file of hooks of CLIENT.
The value is an alist, as in `gemini-companion-client-hooks'; for the file, see
`gemini-companion-client-notification-event'.")

(gemini-companion-client--define gemini-companion-client-notification-event (client)
  "Return the notification event of CLIENT if it is linked by a file of hooks.
The value is a string, or nil for a CLI that is linked by an extension.  The
file is in the subdirectory hooks of the directory of CLIENT.")

(gemini-companion-client--define gemini-companion-client-policy
    (client extension server allowed)
  "Return the policy file that lets CLIENT call SERVER without confirmation.
SERVER is the name of the MCP server of EXTENSION.  ALLOWED is a list of
`questions', for its read-only tools, and of names of other tools.  The value
is (NAME . TEXT) of the file; NAME is relative to the directory of CLIENT.")

;;;; Titles

(gemini-companion-client--define gemini-companion-client-titles (client)
  "Return the meanings of the window titles of CLIENT, an alist.
Its elements are (REGEXP . STATE); the first matching one applies.  STATE is
`ready', `working' or `waiting'; or `named', which means `ready' if an earlier
title of the same process had a state.")

(gemini-companion-client--define gemini-companion-client-reports-state-p (client)
  "Return non-nil if CLIENT reports its state by the Program Status Protocol.
Reports in the terminal of another client are of a command that it runs.")

(gemini-companion-client--define gemini-companion-client-work (client)
  "Return a text that CLIENT displays while it works with a title of `ready'.
It must display that again several times in a second.")

(gemini-companion-client--define gemini-companion-client-follows-background-p (client)
  "Return non-nil if CLIENT adapts its theme to a report of the background.
It must accept an unsolicited report while it displays its prompt.")

;;;; Conversations

(gemini-companion-client--define gemini-companion-client-resume-arguments (client)
  "Return the arguments with which CLIENT resumes a conversation, a list.
It resumes the last one, or asks which one.  The value is nil for a CLI that
cannot resume conversations.")

(gemini-companion-client--define gemini-companion-client-conversations-arguments
    (client)
  "Return the arguments with which CLIENT starts with a list of conversations."
  (gemini-companion-client-resume-arguments client))

;;;; Prompts

(gemini-companion-client--define gemini-companion-client-input-option (client)
  "Return the option of CLIENT that names a file from which it reads prompts.
CLIENT reads the objects of JSON that are appended to the file, one in a line.")

(gemini-companion-client--define gemini-companion-client-searches-names-p (client)
  "Return non-nil if CLIENT finds a file by a part of its name in a prompt.")

(gemini-companion-client--define gemini-companion-client-escapes (client)
  "Return a regexp for characters to escape in a file name after an @.
They are escaped by a backslash in a prompt of CLIENT.")

(gemini-companion-client--define gemini-companion-client-unreadable (client)
  "Return a regexp for file names that CLIENT cannot read after an @.
It may read other files, or none.  By default, match no name."
  regexp-unmatchable)

(gemini-companion-client--define gemini-companion-client-prompt-sign (client)
  "Return a regexp for the sign with which an ordinary prompt of CLIENT begins.
A prompt for a shell begins with another one.  The value is nil for a CLIENT
whose prompt is between two lines, and has no sign."
  "[*>]")

(gemini-companion-client--define gemini-companion-client-prompt-footer (client)
  "Return a regexp for a row that is below an ordinary prompt of CLIENT only.
It is for a prompt without a sign in a frame of which each row begins with ┃.")

(gemini-companion-client--define gemini-companion-client-busy-footer (client)
  "Return a regexp for the row below the prompt while CLIENT works.
That row replaces the one of `gemini-companion-client-prompt-footer'.")

(gemini-companion-client--define gemini-companion-client-normal-footer (client)
  "Return a regexp for a row below the prompt in the normal mode of Vi.
CLIENT then ignores DEL, but \\`u' undoes what was typed.")

(gemini-companion-client--define gemini-companion-client-image-directory (client)
  "Return the directory of images that were pasted into CLIENT.
The name is relative to the directory of CLIENT.  In it, %s is for the name of
a project, see `gemini-companion-client-project-names'.")

(gemini-companion-client--define gemini-companion-client-project-names (client)
  "Return where CLIENT keeps names of projects, a list (FILE KEY).
FILE is relative to the directory of CLIENT.  In its JSON object, KEY is an
object with the name of each directory in which CLIENT has run.")

;;;; Edits

(gemini-companion-client--define gemini-companion-client-discards-edits-p (client)
  "Return non-nil if a yes in the terminal writes the own text of CLIENT.
The user's edits of the proposal are discarded.")

(gemini-companion-client--define gemini-companion-client-writes-own-text-p (client)
  "Return non-nil if CLIENT writes its proposal even after a yes in Emacs.
The proposal is written with the line ends of the file.")

(gemini-companion-client--define gemini-companion-client-keeps-coding-p (client)
  "Return non-nil if CLIENT guesses the coding system of a file, and keeps it.
It proposes a text without the byte order mark, which it keeps as well.  Other
CLIs read and write UTF-8.")

(gemini-companion-client--define gemini-companion-client-drops-edits-p (client)
  "Return non-nil if rejecting an edit of CLIENT cancels others.
The other edits are those of the same response of the model.")

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
