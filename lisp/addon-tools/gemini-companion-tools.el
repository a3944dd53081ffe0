;;; gemini-companion-tools.el --- Link CLIs to Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A CLI that is linked to this Emacs reports each edit after writing it, and receives
;; the new errors.  It reports its prompts and the ends of its turns, and its model may
;; ask about the code.  This file dispatches the calls of the server, and has the command
;; that links the CLIs.  It does nothing until the user runs that command.
;;
;; A CLI is linked by an extension: a directory with a manifest for each kind of CLI, a
;; hook, and the bridge, the program that the CLI starts for both.  The CLIs link and
;; unlink it by their commands "extensions link" and "extensions uninstall".  These
;; commands run in the directory of the extension, since they mark the current
;; directory as trusted.

;;; Code:

(require 'gemini-companion-choice)
(require 'gemini-companion-cli)
(require 'gemini-companion-client-settings)
(require 'gemini-companion-clients)
(require 'gemini-companion-context)
(require 'gemini-companion-errors)
(require 'gemini-companion-extension)
(require 'gemini-companion-install)
(require 'gemini-companion-inquiry)
(require 'gemini-companion-lookup)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-permission)
(require 'gemini-companion-plan)
(require 'gemini-companion-privacy)
(require 'gemini-companion-rename)
(require 'gemini-companion-reported)
(require 'gemini-companion-resume)
(require 'gemini-companion-revert)
(require 'gemini-companion-rules)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-shell)
(require 'gemini-companion-state)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'json)
(require 'map)

(declare-function gemini-companion-commit-seen "gemini-companion-commit")

;;;; State

(defconst gemini-companion-tools--name "gemini-companion"
  "Name of the extension.")

(defconst gemini-companion-tools--server "emacs"
  "Name of the bridge in the CLIs, which is part of the names of tools.")

(defvar gemini-companion-tools--watches-rules nil
  "Non-nil while changes of the rules update the file of rules.")

;;;; Extension

(defun gemini-companion-tools--linkable ()
  "Return the clients with a command that links extensions, such as (\"gemini\")."
  (seq-filter #'gemini-companion-client-link-arguments gemini-companion-clients))

(defun gemini-companion-tools--notifying ()
  "Return the clients that are linked by a file of hooks, such as (\"copilot\")."
  (seq-filter #'gemini-companion-client-notification-event
              gemini-companion-clients))

(defun gemini-companion-tools--clients ()
  "Return the clients that can be linked, a list of names.
Those that connect by an extension run no bridge: it reports itself."
  (append (gemini-companion-tools--linkable)
          (gemini-companion-tools--notifying)
          (gemini-companion-extension-clients)))

(defun gemini-companion-tools--installed ()
  "Return the installed clients that can be linked, a list of names."
  (seq-intersection (gemini-companion-tools--clients)
                    (gemini-companion-cli-installed)))

(defun gemini-companion-tools--command (client)
  "Return the command of the bridge for CLIENT.
Its Python is the Python of the server, by a name that outlives an
update of its packages."
  (let* ((program (or (car (gemini-companion-install-command)) ""))
         (python (executable-find
                  (if (string-match-p "python" (file-name-nondirectory program))
                      program
                    "python3"))))
    (unless python
      (user-error "Cannot find a Python; \
M-x gemini-companion-install-server installs what is needed"))
    ;; With -I and the directory, Python imports more and starts later.
    `(,(file-truename python) "-E" "-s" "-S"
      ,(expand-file-name "__main__.py"
                         (gemini-companion-install-extension-directory))
      ,client)))

(defun gemini-companion-tools--files (client)
  "Return the files of the extension for CLIENT, an alist of names and contents.
The contents are objects for `json-encode'.  The hooks are in the manifest,
or in a file of their own, as CLIENT reads them."
  (let* ((command (gemini-companion-tools--command client))
         (hooks `(hooks . ,(gemini-companion-tools--hooks client command)))
         (hooks-file (gemini-companion-client-hooks-file client))
         (manifest
          `((name . ,gemini-companion-tools--name)
            (version . ,gemini-companion-server-version)
            (mcpServers
             (,gemini-companion-tools--server
              (command . ,(car command))
              (args . ,(vconcat (cdr command)))
              ;; A rename waits for the user, as a permission does.
              (timeout . 86400000)
              ;; Qwen Code would hide the tools behind its tool_search.
              (alwaysLoadTools . t)))
            ,@(unless hooks-file (list hooks)))))
    `((,(gemini-companion-client-manifest client) . ,manifest)
      ,@(and hooks-file `((,hooks-file ,hooks))))))

(defun gemini-companion-tools--hooks (client command)
  "Return the hooks of CLIENT, an alist of events for `json-encode'.
Each hook runs the bridge by COMMAND, a list (PROGRAM ARG...)."
  (gemini-companion-tools--by-event
   (mapcar (pcase-lambda (`(,event . ,matcher))
             (gemini-companion-tools--hook
              event matcher command
              (cond
               ;; Gemini CLI asks the user only when this one has returned.
               ((eq event 'Notification) "--notice")
               ((eq event (gemini-companion-client-prompt-event client)) "--prompt")
               (t "--hook"))
              ;; The bridge itself ends within five seconds.
              60))
           (gemini-companion-client-hooks client))
   (pcase (gemini-companion-client-review-hook client)
     (`(,event . ,matcher)
      (list (gemini-companion-tools--hook
             event matcher command "--review" 60
             (gemini-companion-tools--review-line client command)))))
   (pcase (gemini-companion-client-call-hooks client)
     (`((,before . ,after) . ,matcher)
      (cons (gemini-companion-tools--hook before matcher command "--call" 60)
            (mapcar (lambda (event)
                      (gemini-companion-tools--hook event matcher command
                                                    "--hook" 60))
                    after))))
   (pcase (gemini-companion-client-inquiry-hook client)
     (`(,event . ,matcher)
      (list (gemini-companion-tools--hook event matcher command "--notice" 60))))
   (pcase (gemini-companion-client-permission-hook client)
     (`(,event . ,matcher)
      (list (if (gemini-companion-tools--answers-p client)
                (gemini-companion-tools--hook event matcher command
                                              "--permission" 86400)
              (gemini-companion-tools--hook event matcher command
                                            "--notice" 60)))))))

(defun gemini-companion-tools--by-event (&rest hooks)
  "Return HOOKS, lists of (EVENT . VECTOR), as one alist with each event once."
  (mapcar (pcase-lambda (`(,event . ,same))
            (cons event (apply #'vconcat (mapcar #'cdr same))))
          (seq-group-by #'car (apply #'append hooks))))

(defun gemini-companion-tools--hook
    (event matcher command option seconds &optional line)
  "Return the hook for EVENT of tools that MATCHER, a regexp or nil, matches.
It runs the bridge by COMMAND, a list (PROGRAM ARG...), with OPTION, or else
LINE, a line of a shell.  The CLI ends it after SECONDS."
  `(,event . [(,@(and matcher `((matcher . ,matcher)))
               (hooks . [((type . "command")
                          (name . ,gemini-companion-tools--server)
                          (command . ,(or line
                                          (gemini-companion-tools--shell-command
                                           command option)))
                          (timeout . ,(* 1000 seconds)))]))]))

(defun gemini-companion-tools--shell-command (command option &optional otherwise)
  "Return the line of a shell for the bridge: COMMAND, a list, with OPTION.
If its Python or the extension has been deleted, the line answers {}, as if
the CLI were not linked; the status 2 of Python would be a refusal.  If the
bridge fails, the line answers OTHERWISE, an object for `json-encode', by
default {}, and Emacs displays the failure."
  (let ((failures (shell-quote-argument (gemini-companion-tools--failures-file))))
    (format "if [ -x %s ] && [ -f %s ]; then %s %s 2>>%s || \
{ echo %s: exit status $? >>%s; echo %s; }; else echo {}; fi"
            (shell-quote-argument (car command))
            (shell-quote-argument
             (seq-find (apply-partially #'string-suffix-p ".py") command))
            (mapconcat #'shell-quote-argument command " ")
            option failures
            (shell-quote-argument (format "%s %s" (car (last command)) option))
            failures
            (if otherwise (shell-quote-argument (json-encode otherwise)) "{}"))))

(defun gemini-companion-tools--review-line (client command)
  "Return the line of a shell for the hook before CLIENT writes a file.
COMMAND is that of the bridge, a list.  The option is --review while an Emacs
has rules; if there is an Emacs, it is --plan for an event that may be about a
plan.  Otherwise, the line runs no other program than cat."
  (cl-flet ((line (option)
              (gemini-companion-tools--shell-command
               command option (gemini-companion-client-review-answer client)))
            (files (kind)
              (shell-quote-argument (gemini-companion-tools--emacs-file kind ""))))
    (format "set -- %s*; if [ -e \"$1\" ]; then %s; else input=$(command -p cat); \
set -- %s*; case $input in *%s*) if [ -e \"$1\" ]; then printf %%s \"$input\" | { %s; }; \
else echo {}; fi ;; *) echo {} ;; esac; fi"
            (files "rules")
            (line "--review")
            (files "emacs")
            ;; A longer pattern would be slow in a text that almost matches.
            (shell-quote-argument "/plans/")
            (line "--plan"))))

(defun gemini-companion-tools--notification-hooks (client)
  "Return the file of hooks that links CLIENT, an object for `json-encode'."
  (cl-flet ((hook (event matcher option)
              `(,event . [((type . "command")
                           ,@(and matcher `((matcher . ,matcher)))
                           (bash . ,(gemini-companion-tools--shell-command
                                     (gemini-companion-tools--command client)
                                     option))
                           (timeoutSec . 60))])))
    (pcase-let ((`((,before . ,after) . ,tools)
                 (gemini-companion-client-call-hooks client)))
      `((version . 1)
        (hooks
         . ,(gemini-companion-tools--by-event
             (list (hook (intern (gemini-companion-client-notification-event client))
                         nil "--notice"))
             (mapcar (pcase-lambda (`(,event . ,matcher))
                       (hook event matcher
                             (if (eq event (gemini-companion-client-prompt-event
                                            client))
                                 "--prompt"
                               "--notice")))
                     (gemini-companion-client-tool-hooks client))
             (list (hook before tools "--call"))
             (mapcar (lambda (event) (hook event tools "--hook")) after)))))))

(defun gemini-companion-tools--answers-file (client)
  "Return the name of the file by which Emacs answers permissions of CLIENT."
  (expand-file-name (concat "answers-" client)
                    (gemini-companion-install-extension-directory)))

(defun gemini-companion-tools--answers-p (client)
  "Return non-nil if the user wants to answer permissions of CLIENT in Emacs."
  (file-exists-p (gemini-companion-tools--answers-file client)))

;;;; Rules

(defun gemini-companion-tools--emacs-file (kind process)
  "Return the name of the file of KIND by which hooks find the Emacs PROCESS.
KIND is \"emacs\", or \"rules\" for a file that exists while there are rules.
PROCESS is a number, or \"\" for the common prefix of the names.  Each Emacs
has files of its own, as each has its own rules.  The name includes the host,
since hosts may share the directory."
  (concat (gemini-companion-install-extension-directory)
          (format "%s-%s-%s" kind (md5 (system-name)) process)))

(defun gemini-companion-tools--has-rules-p ()
  "Return non-nil if an edit may have to be reviewed by a rule of this Emacs."
  (gemini-companion-rules-all))

(defun gemini-companion-tools--update-files (&optional delete)
  "Write the files by which hooks find this Emacs, if it has a server.
If DELETE is non-nil, or there are no rules, delete those files."
  (let ((info (gemini-companion-server-info)))
    (pcase-dolist (`(,kind . ,wanted)
                   `(("emacs" . t) ("rules" . ,(gemini-companion-tools--has-rules-p))))
      (let ((file (gemini-companion-tools--emacs-file kind (emacs-pid))))
        (cond ((and wanted (not delete))
               (when (or info (not (file-exists-p file)))
                 (gemini-companion-text-write-changed
                  file (gemini-companion-tools--description info))))
              ((file-exists-p file)
               (delete-file file)))))))

(defun gemini-companion-tools--description (info)
  "Return the description of this Emacs for hooks, a text.
INFO is nil, or describes the server, see `gemini-companion-server-info'.
Where process and host are unknown, a hook takes this Emacs for running."
  (json-encode
   `((ppid . ,(emacs-pid))
     (host . ,(mapconcat #'identity
                         (delq nil (list (system-name)
                                         (file-symlink-p "/proc/self/ns/pid")))
                         " "))
     (files . ,(mapcar (pcase-lambda (`(,client ,file))
                         (cons (intern client) file))
                       ;; The first one of a client is its usual one.
                       (seq-uniq (plist-get info :discovery)
                                 (lambda (one other)
                                   (equal (car one) (car other)))))))))

(defun gemini-companion-tools--sweep-files ()
  "Delete the files of Emacs processes on this host that have exited."
  (dolist (kind '("emacs" "rules"))
    (let ((prefix (gemini-companion-tools--emacs-file kind "")))
      (dolist (file (file-expand-wildcards (concat prefix "*")))
        (unless (gemini-companion-text-process-attributes
                 (string-to-number (string-remove-prefix prefix file)))
          (delete-file file))))))

(defun gemini-companion-tools--failures-file ()
  "Return the name of the file to which hooks write their failures."
  (expand-file-name "failures" (gemini-companion-install-extension-directory)))

(defun gemini-companion-tools--rules-set (_symbol _value _operation where)
  "Update the file of rules soon, unless a buffer-local value is set.
WHERE is the buffer, or nil; see `add-variable-watcher'."
  (unless where
    (run-at-time 0 nil #'gemini-companion-tools--rules-changed)))

(defun gemini-companion-tools--rules-changed ()
  "Update the file of rules, if the mode is still on."
  (when gemini-companion-tools--watches-rules
    (gemini-companion-tools--update-files)))

(defun gemini-companion-tools--watch-rules (on)
  "Update the files of this Emacs when rules change, if ON is non-nil.
Otherwise, delete them."
  (setq gemini-companion-tools--watches-rules on)
  (funcall (if on #'add-variable-watcher #'remove-variable-watcher)
           'gemini-companion-review-rules #'gemini-companion-tools--rules-set)
  (funcall (if on #'add-hook #'remove-hook)
           'kill-emacs-hook #'gemini-companion-tools--leave)
  (when on
    (gemini-companion-tools--sweep-files))
  (gemini-companion-tools--update-files (not on)))

(defun gemini-companion-tools--leave ()
  "Delete the files of this Emacs, as it exits."
  (gemini-companion-tools--update-files 'delete))

(defun gemini-companion-tools--review (facts)
  "Return a plist for the server: whether a rule requires a review of an edit.
FACTS is a plist about the edit.  A rule applies even while sharing is paused,
as the answer sends nothing to the model."
  (pcase-let* (((map :path :client) facts)
               (session (gemini-companion-tools--session facts))
               (verdict (gemini-companion-rules-for
                         path
                         (or session
                             (gemini-companion-session-unconnected client)))))
    (cond ((and verdict
                (eq 'always (gemini-companion-rules-verdict-review verdict)))
           (when (and session
                      (gemini-companion-client-reviews-in-terminal-p client))
             (gemini-companion-state-expect-question
              session (gemini-companion-rules-phrase verdict)))
           '(:review "always"))
          (t '(:review "-")))))

(defun gemini-companion-tools--session (facts)
  "Return the session of the CLI that FACTS name, or nil."
  (gemini-companion-session-of-processes (plist-get facts :pids)))

;;;; Files

(defun gemini-companion-tools--write-extension ()
  "Write those files of the extension that have changed.
After an update of this package, the CLIs find the new files.  An unchanged
file is not written, since Python would compile it again."
  (pcase-dolist
      (`(,name . ,content)
       `(,@(seq-mapcat #'gemini-companion-tools--files
                       (gemini-companion-tools--linkable))
         ;; Python caches only modules that are imported; a hook runs after
         ;; each edit.
         ("__main__.py" . "import bridge\n\nbridge.main()\n")
         ;; A CLI may start the bridge at any time; it imports the other module.
         ,@(mapcar (lambda (name)
                     (cons name
                           (gemini-companion-text-read
                            (expand-file-name
                             (concat "python/gemini_companion_epc/" name)
                             gemini-companion-server-directory))))
                   '("common.py" "bridge.py"))))
    (gemini-companion-text-write-changed
     (gemini-companion-names-below (gemini-companion-install-extension-directory)
                                   name)
     (if (stringp content) content (json-encode content)))))

;;;; Links

(defun gemini-companion-tools--notification-file (client)
  "Return the name of the file of hooks that links CLIENT."
  (gemini-companion-tools--file
   client (format "hooks/%s.json" gemini-companion-tools--name)))

(defun gemini-companion-tools--link-by-file (client)
  "Write the file of hooks that links CLIENT."
  (gemini-companion-text-write-changed
   (gemini-companion-tools--notification-file client)
   (json-encode (gemini-companion-tools--notification-hooks client))))

(defun gemini-companion-tools--failures (function clients)
  "Call FUNCTION, which writes or deletes a file, with each of CLIENTS.
If that is impossible, continue with the next client.  Return the
failures, a list of strings, such as: Copilot CLI: Permission denied, FILE"
  (delq nil
        (mapcar (lambda (client)
                  (condition-case problem
                      (ignore (funcall function client))
                    (file-error
                     (format "%s: %s" (gemini-companion-client-title client)
                             (string-join
                              (mapcar (apply-partially #'format "%s") (cddr problem))
                              ", ")))))
                clients)))

(defun gemini-companion-tools--delete-hooks (client)
  "Delete the file of hooks that links CLIENT, and its directory if empty."
  (gemini-companion-tools--delete-with-directory
   (gemini-companion-tools--notification-file client)))

(defun gemini-companion-tools--delete-with-directory (file)
  "Delete FILE, if it exists, and its directory unless that has other files."
  (when (file-exists-p file)
    (delete-file file)
    (ignore-error file-error
      (delete-directory (file-name-directory file)))))

(defun gemini-companion-tools--file (client name)
  "Return the absolute name of the file NAME in the directory of CLIENT."
  (gemini-companion-names-below (gemini-companion-client-home client) name))

(defun gemini-companion-tools--policy (client)
  "Return (FILE . TEXT) of the policies for CLIENT, or nil if it has none.
They allow CLIENT to ask questions of Emacs without confirmation, and to
rename a symbol, which the user reviews in Emacs."
  (pcase (gemini-companion-client-policy
          client gemini-companion-tools--name gemini-companion-tools--server
          (list 'questions gemini-companion-rename-tool))
    (`(,name . ,text)
     (cons (gemini-companion-tools--file client name) text))))

(defun gemini-companion-tools-linked-p (client)
  "Return non-nil if CLIENT has a link to the extension."
  (cond ((gemini-companion-client-notification-event client)
         (file-exists-p (gemini-companion-tools--notification-file client)))
        ((gemini-companion-client-extension client)
         (and (gemini-companion-install-extension-p)
              (gemini-companion-extension-installed-p client)))
        (t (gemini-companion-tools--extension-linked-p client))))

(defun gemini-companion-tools--extension-linked-p (client)
  "Return non-nil if CLIENT has linked the extension by its command."
  (when-let* ((record (gemini-companion-client-link-record
                       client gemini-companion-tools--name)))
    (equal (directory-file-name (gemini-companion-install-extension-directory))
           (gemini-companion-client-settings-get
            (gemini-companion-tools--file client record) '("source")))))

(defun gemini-companion-tools--run (verb clients then &optional failures)
  "Run the command `extensions VERB' of each of CLIENTS, one after another.
VERB is the string link or uninstall.  A command may take seconds, and Emacs
does not wait for it.  At the end, call THEN with a list of strings, FAILURES
and those of the commands, such as: Qwen Code: exit status 1"
  (if (null clients)
      (funcall then (reverse failures))
    (let* ((default-directory (gemini-companion-install-extension-directory))
           (client (car clients))
           (link (gemini-companion-client-link-arguments client))
           (arguments (if (equal verb (car link))
                          (cons (directory-file-name default-directory)
                                (cdr link))
                        (list gemini-companion-tools--name))))
      (gemini-companion-tools--start
       `(,@(gemini-companion-tools--cli-command client) "extensions" ,verb ,@arguments)
       (lambda (problem)
         (gemini-companion-tools--run
          verb (cdr clients) then
          (if problem
              (cons (format "%s: %s" (gemini-companion-client-title client)
                            problem)
                    failures)
            failures)))))))

(defun gemini-companion-tools--cli-command (client)
  "Return the command for CLIENT without its options, which `extensions' refuses.
They are what follows the name of CLIENT.  Return a command without that name
whole: its program runs another one."
  (let ((command (gemini-companion-cli-command client)))
    (or (reverse (cl-member client (reverse command)
                            :key #'file-name-nondirectory :test #'equal))
        command)))

(defun gemini-companion-tools--start (command then)
  "Start COMMAND, a list, and answer yes to its question.
At its end, call THEN with nil or, if COMMAND has failed, with the last line of
its output."
  (let ((process
         (make-process
          :name "gemini-companion-link"
          :buffer (generate-new-buffer " *gemini-companion-link*")
          :command command :noquery t :connection-type 'pipe :coding 'utf-8
          :sentinel
          (lambda (process _event)
            (unless (process-live-p process)
              (let ((output (with-current-buffer (process-buffer process)
                              (buffer-string)))
                    (status (process-exit-status process)))
                (kill-buffer (process-buffer process))
                (funcall then
                         (unless (eql 0 status)
                           (or (car (last (split-string output "[\r\n]+" t)))
                               (format "exit status %s" status))))))))))
    ;; Sending fails if the process has exited.
    (ignore-errors
      ;; Qwen Code asks whether to continue.
      (process-send-string process "y\n")
      (process-send-eof process))))

(defun gemini-companion-tools--write-policy (client)
  "Write the policies that allow CLIENT to ask questions and to rename."
  (pcase-let ((`(,file . ,text) (gemini-companion-tools--policy client)))
    (gemini-companion-text-write-changed file text)))

(defun gemini-companion-tools--delete-policy (client)
  "Delete the policies that `gemini-companion-tools--write-policy' wrote, if any.
Delete their directory unless CLIENT has other policies there."
  (when-let* ((policy (car (gemini-companion-tools--policy client))))
    (gemini-companion-tools--delete-with-directory policy)))

(defun gemini-companion-tools--link (all)
  "Ask whether to link ALL, a list of clients; write the extension and link them."
  (let ((clients (seq-intersection (gemini-companion-tools--linkable) all))
        (by-file (seq-intersection (gemini-companion-tools--notifying) all))
        (extended (seq-intersection (gemini-companion-extension-clients) all)))
    (unless all
      (user-error "No CLI that can be linked is installed; install %s"
                  (mapconcat #'gemini-companion-client-title
                             (gemini-companion-tools--clients) " or ")))
    ;; The user may decline, so ask before any file is written.
    (pcase-let ((`(,trusted ,answering) (gemini-companion-tools--ask all clients)))
      (make-directory (gemini-companion-install-extension-directory) t)
      (dolist (client answering)
        (gemini-companion-text-write-changed
         (gemini-companion-tools--answers-file client) ""))
      (gemini-companion-tools--write-extension)
      (let ((failures
             (append (gemini-companion-tools--failures
                      #'gemini-companion-tools--write-policy trusted)
                     (gemini-companion-tools--failures
                      #'gemini-companion-tools--link-by-file by-file)
                     (gemini-companion-tools--failures
                      #'gemini-companion-extension-write extended))))
        ;; Without a server, the mode calls this method later.
        (when (gemini-companion-server-ready-p)
          (gemini-companion-part-ready 'tools 'linked))
        (message "Linking %s..." (gemini-companion-tools--titles all))
        (gemini-companion-tools--run
         "link" clients
         (lambda (failed)
           (message "%s" (gemini-companion-tools--outcome all failed answering)))
         failures)))))

(defun gemini-companion-tools--titles (clients)
  "Return the titles of CLIENTS, one string."
  (mapconcat #'gemini-companion-client-title clients ", "))

(defun gemini-companion-tools--ask (all clients)
  "Ask whether to link ALL, and what else to allow, in one question.
CLIENTS are those of ALL that ask questions of Emacs.  Return a list of two
lists: the clients whose questions need no confirmation, and the clients whose
permissions are answered in Emacs.  Signal a `user-error' if the user
declines."
  (let* ((trusted (seq-filter #'gemini-companion-tools--policy clients))
         (answering
          (seq-filter #'gemini-companion-tools--permission-event clients))
         (tools (and trusted
                     (format "lets %s query and rename without confirmation"
                             (gemini-companion-tools--titles trusted))))
         (answers (and answering
                       (format "answers in Emacs what %s asks permission for"
                               (gemini-companion-tools--titles answering))))
         (both (and tools answers)))
    ;; The echo area shows five lines of a terminal of 80 columns and 24 lines.
    (pcase (gemini-companion-choice-read
            (format "Emacs shows the questions of a linked CLI.%s%s%s  Link %s (yes%s or no)"
                    (if-let* ((asking (append clients
                                              (seq-intersection
                                               (gemini-companion-extension-clients)
                                               all))))
                        (format "  %s may query shared files and get the errors of edits."
                                (gemini-companion-clients-titles asking))
                      "")
                    (if clients
                        (format "  %s may rename symbols, which you review."
                                (gemini-companion-clients-titles clients))
                      "")
                    (cond (both (format "  \"Tools\" %s; \"all\" also %s."
                                        tools answers))
                          ((or tools answers)
                           (format "  \"All\" %s." (or tools answers)))
                          (t ""))
                    (gemini-companion-tools--titles all)
                    (concat (and both ", tools")
                            (and (or tools answers) ", all")))
            ;; The answer is a word that ends with RET: letters that follow an answer
            ;; by one key would be typed into the file of the user.
            `(("no" . no) ("yes" . yes)
              ,@(and both '(("tools" . tools)))
              ,@(and (or tools answers) '(("all" . all))))
            'gemini-companion-links)
      ('yes '(nil nil))
      ('tools (list trusted nil))
      ('all (list trusted answering))
      (_ (user-error "Nothing was linked")))))

(defun gemini-companion-tools--outcome (clients failed answering)
  "Return a message about the links of CLIENTS.
FAILED is a list of strings about the links that failed.  ANSWERING are the
clients whose permissions are answered in Emacs."
  (concat
   (if failed
       (concat "Linking failed; " (string-join failed "; "))
     (format "Linked %s" (gemini-companion-tools--titles clients)))
   ;; A sentinel calls this, so it cannot ask: the user may be typing.
   (if-let* ((names (gemini-companion-resume-running
                     (seq-filter #'gemini-companion-tools-linked-p clients))))
       (format "; M-x gemini-companion-run-again restarts %s" (string-join names ", "))
     (if failed "" "; restart those that are running"))
   (mapconcat (lambda (client)
                (concat "; " (gemini-companion-tools--other-hook client)))
              (seq-filter #'gemini-companion-tools--other-hook answering)
              "")))

(defun gemini-companion-tools--permission-event (client)
  "Return the event whose hook may answer permissions of CLIENT, or nil.
The value is a symbol."
  (car (gemini-companion-client-permission-hook client)))

(defun gemini-companion-tools--other-hook (client)
  "Return a phrase that CLIENT has a permission hook of the user, or nil.
If that hook allows what CLIENT asks, CLIENT runs it, unless the answer of
Emacs is a refusal."
  (when-let* ((event (gemini-companion-tools--permission-event client))
              ((gemini-companion-client-settings-get
                (gemini-companion-client-settings-files client default-directory)
                (list "hooks" (symbol-name event)))))
    (format "another hook for %s in the settings of %s may answer without asking you"
            event (gemini-companion-client-title client))))

(defun gemini-companion-tools--unlink ()
  "Delete the links, the policies and the extensions, if the user confirms."
  (let ((extended (seq-filter #'gemini-companion-extension-installed-p
                              (gemini-companion-extension-clients))))
    (unless (gemini-companion-choice-y-or-n-p
             (concat "The extension is linked; delete it and its links"
                     (and extended
                          (format ", and the extension of %s, which then has \
no reviews" (gemini-companion-tools--titles extended)))
                     "? "))
      (user-error "The extension stays linked"))
    (message "Unlinking...")
    (gemini-companion-part-stop 'tools)
    (gemini-companion-tools--run
     "uninstall"
     (seq-filter #'gemini-companion-tools-linked-p
                 (seq-intersection (gemini-companion-tools--linkable)
                                   (gemini-companion-cli-installed)))
     (lambda (failures)
       (cl-callf append failures
         (gemini-companion-tools--failures #'gemini-companion-tools--delete-policy
                                           (gemini-companion-tools--linkable)))
       (delete-directory (gemini-companion-install-extension-directory) t)
       (if failures
           (message "Deleted the extension, but not all links; %s"
                    (string-join failures "; "))
         (message "Deleted the extension and its links")))
     (append (gemini-companion-tools--failures
              #'gemini-companion-tools--delete-hooks
              (gemini-companion-tools--notifying))
             (gemini-companion-tools--failures
              #'gemini-companion-extension-delete extended)))))

;;;; Questions

(cl-defmethod gemini-companion-server-receive
  ((_method (eql 'ask)) kind facts &rest texts)
  "Return a function that answers a question of KIND, maybe later.
FACTS is a plist about the question, and TEXTS are its texts."
  (lambda (answer)
    (save-match-data
      ;; No hook runs when another program writes an ignore file.
      (gemini-companion-privacy-refresh 'if-changed)
      (gemini-companion-tools--answer kind facts texts answer))))

(defun gemini-companion-tools--answer (kind facts texts answer)
  "Call ANSWER with the answer to a question of KIND, now or later.
KIND is one of these:
`review'      A hook asks before an edit whether to review it.
`edited'      A hook reports an edit, with the TEXTS before and after.
`turn'        A hook reports an `:event' of a turn.
`addition'    A hook asks what to add to a prompt.
`read'        The CLI has read what was to be added to its prompt.
`permission'  A hook reports what the CLI asks.
`ended'       A hook reports that the question of the CLI has ended.
`called'      A tool of a CLI begins or ends; `:open' tells if one runs.
`saved'       The server asks for the number of the last write of Emacs.
`shared'      The server asks which files of a work tree may be stored.
`wrote'       The server reports what was written while tools ran.
`committed'   The server reports commits that were made while no tool ran.
`rename'      The model asks to rename a symbol.
Others        See `gemini-companion-lookup'.
FACTS is a plist with some of `:path', `:symbol', `:line', `:after', `:new',
`:event', `:client' and `:pids'."
  (pcase-let (((map :path :symbol :line :after :event) facts))
    (pcase kind
      ('edited
       (apply #'gemini-companion-tools--edited facts answer texts))
      ('turn
       (gemini-companion-tools--report facts (intern event))
       (funcall answer nil))
      ((or 'addition 'read)
       (funcall answer (gemini-companion-tools--addition facts (eq kind 'read))))
      ('review
       (funcall answer (gemini-companion-tools--review facts)))
      ('permission
       (gemini-companion-permission-ask facts (car texts) answer))
      ('ended
       (gemini-companion-tools--report facts 'progress)
       (funcall answer nil))
      ('called
       (gemini-companion-shell-called (plist-get facts :open))
       (funcall answer nil))
      ('saved
       (funcall answer
                (list :number (gemini-companion-shell-saved (plist-get facts :since)))))
      ('shared
       (gemini-companion-shell-shared (json-parse-string (car texts))
                                      (plist-get facts :seconds) answer))
      ('committed
       (gemini-companion-tools--committed facts)
       (funcall answer nil))
      ('wrote
       (gemini-companion-shell-wrote
        (or (gemini-companion-tools--session facts)
            (gemini-companion-session-unconnected (plist-get facts :client)))
        facts
        (json-parse-string (car texts) :null-object nil :false-object 'unknown)
        answer))
      ('rename
       (if gemini-companion-context-paused
           (gemini-companion-tools--answer-unless-paused answer nil)
         (gemini-companion-rename-ask facts answer)))
      (_
       (gemini-companion-lookup
        kind
        (apply-partially #'gemini-companion-tools--answer-unless-paused answer)
        path symbol line after)))))

(defun gemini-companion-tools--answer-unless-paused (answer value)
  "Call ANSWER with VALUE, or with a problem if sharing is paused.
The user may have paused sharing since the question arrived."
  (funcall answer (if gemini-companion-context-paused
                      '(:problem "Sharing is paused in Emacs")
                    value)))

(defun gemini-companion-tools--report (facts event)
  "Report EVENT of the CLI that FACTS name; return its session, or nil."
  (when-let* ((session (gemini-companion-tools--session facts)))
    (gemini-companion-state-report session event (plist-get facts :prompt))
    session))

(defun gemini-companion-tools--committed (facts)
  "Keep what the commits in FACTS have, unless a CLI may have made them.
The server does not know what tools of a CLI do that is not linked."
  (pcase-let (((map :root :base :commit) facts))
    (unless (seq-some (lambda (session)
                        (let ((directory (gemini-companion-session-directory session)))
                          (and (or (null directory)
                                   (gemini-companion-text-in-directory-p
                                    (file-name-as-directory directory)
                                    (file-name-as-directory root)))
                               (not (gemini-companion-tools-linked-p
                                     (gemini-companion-session-client session))))))
                      (gemini-companion-sessions))
      (gemini-companion-commit-seen root base commit))))

(defun gemini-companion-tools--addition (facts read)
  "Return a plist with the `:text' to add to the prompt of the CLI of FACTS.
If READ is non-nil, record that the CLI has read it, and return nil."
  (when-let* ((cli (or (gemini-companion-tools--session facts)
                       (plist-get facts :pids)))
              (text (funcall gemini-companion-turn-addition-function cli read))
              ((not read)))
    (list :text text)))

(defun gemini-companion-tools--edited (facts answer before after)
  "Record an edit that a CLI has written; call ANSWER with the new errors.
FACTS names the file and the CLI; BEFORE, nil for a new file, and AFTER
are its texts."
  (pcase-let* (((map :path :client) facts)
               (session (or (gemini-companion-tools--report facts 'edit)
                            ;; A linked CLI need not be connected.
                            (gemini-companion-session-unconnected client))))
    ;; Record the edit before the revert: if the edit was undone and is written
    ;; again, the revert marks it as written.
    (gemini-companion-reported-write session path before after)
    (gemini-companion-revert path)
    (gemini-companion-errors-after-edit answer path before after)))

;;;; Findings

(defun gemini-companion-tools--finding (client directory)
  "Return the finding about the link of CLIENT in DIRECTORY.
For findings, see `gemini-companion-status-checks'."
  (let ((title (gemini-companion-client-title client)))
    (cond
     ((not (gemini-companion-tools-linked-p client))
      `(note ,(format "%s is not linked" title)
             "M-x gemini-companion-tools links it."
             ("Link" . ,(lambda () (gemini-companion-tools--link (list client))))))
     ;; The local settings do not apply to another host.
     ((and (not (file-remote-p directory))
           (gemini-companion-client-settings-untrusted-p client directory))
      `(note ,(format "%s is linked, but: %s is not trusted, so questions \
are not offered and edits are not reported"
                      title (gemini-companion-names-absolute directory))
             ,(format "To trust the directory, type %s in %s there."
                      (gemini-companion-client-trust-command client) title)))
     (t `(good ,(format "%s is linked" title))))))

;;;; Life

(cl-defmethod gemini-companion-part-findings ((_part (eql 'tools)) directory)
  "Return the findings about the links of CLIs that run in DIRECTORY.
Include those of the parts `shell' and `errors', which start and stop with this
one."
  (let ((used (seq-intersection (gemini-companion-tools--clients)
                                (gemini-companion-cli-clients)))
        (clients (gemini-companion-tools--installed)))
    (when (and used (gemini-companion-install-extension-p))
      (append
       (mapcar (lambda (client)
                 (cons "Links" (gemini-companion-tools--finding client directory)))
               clients)
       (mapcar (lambda (client)
                 (cons "Permissions"
                       (gemini-companion-tools--permission-finding client
                                                                   directory)))
               (seq-difference
                (seq-filter #'gemini-companion-tools-linked-p clients)
                ;; These never ask for permission.
                (gemini-companion-extension-clients)))
       (and (gemini-companion-rules-all)
            (cl-loop for client in (seq-filter #'gemini-companion-client-review-hook
                                               used)
                     for finding = (gemini-companion-tools--rules-finding client
                                                                          directory)
                     when finding collect (cons "Rules" finding)))
       (gemini-companion-part-findings 'shell directory)
       (gemini-companion-part-findings 'errors directory)))))

(defun gemini-companion-tools--rules-finding (client directory)
  "Return the finding about the rules for CLIENT in DIRECTORY."
  (gemini-companion-rules-finding
   client
   (cond ((not (gemini-companion-tools-linked-p client)) nil)
         ((and (not (file-remote-p directory))
               (gemini-companion-client-settings-untrusted-p client directory))
          'untrusted)
         (t t))))

(defun gemini-companion-tools--permission-finding (client directory)
  "Return the finding about the permissions of CLIENT in DIRECTORY.
It says whether they are answered in Emacs, and if not, why."
  (let ((title (gemini-companion-client-title client))
        (other (gemini-companion-tools--other-hook client)))
    (cond
     ((not (gemini-companion-tools--permission-event client))
      `(note ,(format "Permissions of %s are shown, and answered in its terminal: \
its hooks cannot answer" title)
             nil))
     ((not (gemini-companion-tools--answers-p client))
      `(note ,(format "Permissions of %s are shown, and answered in its terminal"
                      title)
             "To answer them in Emacs, unlink and link the CLIs by \
M-x gemini-companion-tools."))
     ((or gemini-companion-context-paused
          (gemini-companion-privacy-directory-hidden-p directory))
      `(note ,(format "Permissions of %s are answered in its terminal: sharing is \
paused, or the project is excluded" title)
             nil))
     (other
      `(note ,(format "Permissions of %s are answered in Emacs; %s" title other)
             nil))
     (t `(good ,(format "Permissions of %s are answered in Emacs" title))))))

(cl-defmethod gemini-companion-part-ready ((_part (eql 'tools)) _how)
  "Start answering CLIs if the extension exists."
  (when (gemini-companion-install-extension-p)
    (gemini-companion-tools--write-extension)
    (gemini-companion-tools--watch-rules t)
    (gemini-companion-part-start 'errors)
    (gemini-companion-part-start 'shell)
    (gemini-companion-part-start 'permission)
    (gemini-companion-part-start 'rename)
    (gemini-companion-server-call 'tools-update t
                                  (gemini-companion-tools--failures-file))))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'tools)))
  "Stop answering CLIs."
  (gemini-companion-tools--watch-rules nil)
  (gemini-companion-part-stop 'rename)
  (gemini-companion-part-stop 'permission)
  (gemini-companion-server-call 'tools-update nil)
  (gemini-companion-part-stop 'shell)
  (gemini-companion-part-stop 'errors))

;;;; Commands

(defun gemini-companion-tools ()
  "Link the CLIs to this Emacs, or unlink them.
After each edit, the new errors that Eglot, Flymake or Flycheck finds
are reported to a linked CLI.  Its model may ask for the references and
the definition of a symbol, and for the diagnostics of a file.

Linking writes an extension into `gemini-companion-install-directory',
and a link to it for each installed CLI.  A CLI reads the link when it
starts; `gemini-companion-run-again' restarts running CLIs.  If the CLIs
are linked, this command deletes the extension and the links; if some of
them are not, it asks whether to link these instead."
  (interactive)
  (when (get-process "gemini-companion-link")
    (user-error "CLIs are still being linked or unlinked; wait for the message"))
  (if (not (gemini-companion-install-extension-p))
      (gemini-companion-tools--link (gemini-companion-tools--installed))
    (let ((missing (seq-remove #'gemini-companion-tools-linked-p
                               (gemini-companion-tools--installed))))
      (pcase (if missing
                 (gemini-companion-choice-read
                  (format "%s not linked; link it, or unlink all CLIs (link, unlink \
or nothing)"
                          (gemini-companion-tools--titles missing))
                  '(("nothing" . nil) ("link" . link) ("unlink" . unlink))
                  'gemini-companion-links)
               'unlink)
        ('link (gemini-companion-tools--link missing))
        ('unlink (gemini-companion-tools--unlink))
        (_ (user-error "Nothing was changed"))))))

(provide 'gemini-companion-tools)
;;; gemini-companion-tools.el ends here
