;;; gemini-companion-prompt.el --- Type into the prompt of a CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Type a text into the prompt of a CLI in a terminal of this Emacs, so that the CLI
;; takes it literally: a description of the text at point, a composed prompt, or the
;; reason for a rejection.  A text for a CLI in another terminal is copied to the kill
;; ring.
;;
;; A text to be submitted is a *task*.  Each phase of a task has a function: the task is
;; `queued' until its CLI is ready; `probing' until the CLI shows a sentinel; `typed' or
;; `retyped' until the terminal shows the text; then Enter is pressed.  A text or Enter
;; would answer a question of the CLI.  One that works may ask at any time, even between
;; a check and Enter, so nothing is typed while the CLI asks or works.
;;
;; A *sentinel* is a space character that is nowhere else in the terminal, and that the
;; CLI strips from the prompt.  It shows where the prompt is: the text itself may
;; already be elsewhere on the screen, and a CLI shows a placeholder for a long text.
;; Copilot CLI may take a sentinel after a text for part of the paste; then the sentinel
;; is typed again.  A sentinel must be visible for a while: a CLI takes an Enter
;; immediately after a text for part of a paste, and may draw the screen late.
;;
;; A CLI that Emacs has started may read prompts from a file instead, with a delay.  A
;; key that the user types meanwhile could turn on its shell mode, in which it would run
;; the text.  So the text is `resting' until its prompt is ordinary and no key was typed
;; for a second; then it is `appended' to the file, and keys are held until the CLI works.
;; A prompt that the terminal does not show for ten seconds is sought by a sentinel.
;;
;; The protocol has no field for the reason of a rejection, so the reason is the next
;; prompt.

;;; Code:

(require 'gemini-companion-choice)
(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-garbage)
(require 'gemini-companion-input-file)
(require 'gemini-companion-proposal)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-terminal)
(require 'project)
(require 'thunk)

(declare-function gemini-companion-comment-set-going "gemini-companion-comment")
(declare-function gemini-companion-comment-set-result "gemini-companion-comment")
(declare-function gemini-companion-comment-texts-of-edit "gemini-companion-comment")

;;;; State

(cl-defstruct (gemini-companion-prompt--task
               (:noinline t)
               (:constructor gemini-companion-prompt--make-task)
               (:copier nil))
  "A text for the prompt of a CLI, until it is submitted.
FIND is a function that returns the session, or nil while there is none.
PROBLEM begins the message if the text goes to the kill ring instead.
LEFT is the number of checks that remain in which the CLI neither works nor
waits for an answer.  ENDED is called at the end, see
`gemini-companion-prompt-submit'.  DIRECTORY is that in which the task began.

PHASE is `queued', `probing', `typed', `retyped', `resting' or `appended'; see
`gemini-companion-prompt--phases'.  DELAYED is non-nil if the CLI has worked since
the task began.  SESSION and PROCESS are those of the
current check: the value of FIND, and the process of its terminal if
that takes a text now: while the CLI works, only by a file.  TIMER makes the
next check.

The terminal is searched for SENTINEL, a string of one space, or, if MATCHES
is non-nil, for the TEXT, which the terminal had MATCHES times before.  SEEN checks have found it
since it was missing, and the last MISSED ones in a row have not.  FREE is
non-nil if there was no text after the sentinel when a check first found it.

INPUT is the file from which the CLI reads the text, or nil if that is typed.
TERMINAL is the buffer of the CLI then, where keys are watched.  Since the text
was appended, WAITED checks were made, and the keys HELD, vectors, were typed,
the last first.  WORKS is the value of `gemini-companion-state-work-count' then,
or nil if that does not show when the text is read."
  text find problem left
  (ended #'ignore)
  (directory default-directory)
  (phase 'queued)
  delayed
  session process timer
  sentinel matches
  (seen 0) (missed 0) free
  input terminal (waited 0) held works)

(cl-defstruct (gemini-companion-prompt--screen
               (:noinline t)
               (:constructor gemini-companion-prompt--make-screen)
               (:copier nil))
  "The prompt of a CLI around a sentinel, as its terminal shows it.
COUNT is the number of sentinels in a row; a slow CLI has more than one.
BEFORE and BEHIND are non-nil if there is text before or after them.
KIND is as `gemini-companion-prompt-kind' returns it, and NORMAL is non-nil in
the normal mode of Vi."
  (count 1) before behind kind normal)

(defvar gemini-companion-prompt--tasks nil
  "The tasks that have not ended, the newest first.")

(defvar gemini-companion-prompt--posted nil
  "Functions that end the prompts that their CLIs have not taken yet.
They are called with non-nil if the prompt was taken.  A server that exits
confirms nothing, so they are called with nil then.")

(defconst gemini-companion-prompt--phases
  '((queued . gemini-companion-prompt--queued)
    (probing . gemini-companion-prompt--probing)
    (typed . gemini-companion-prompt--typed)
    (retyped . gemini-companion-prompt--typed)
    (resting . gemini-companion-prompt--resting)
    (appended . gemini-companion-prompt--appended))
  "Alist of (PHASE . FUNCTION): the phases of a task.
FUNCTION is called at each check with the task and a screen, or nil if
the terminal does not show what the task seeks.  It types what is next,
and returns the next phase, or nil if it has ended the task.")

(defconst gemini-companion-prompt--not-ordinary
  "Prompt of %s not recognized as ordinary; it might run your text as a command"
  "Format for the name of a CLI that might run a text.")

(defconst gemini-companion-prompt--checks-per-second 10
  "Number of checks in a second, if Emacs is not busy.
Phases count checks rather than measure time: while Emacs is busy, it does not
see the output of the CLI.")

(defconst gemini-companion-prompt--steady-checks 6
  "Number of checks that must find a sentinel before the next phase.
The count restarts if `gemini-companion-prompt--gone-checks' checks in a row
miss the sentinel.")

(defconst gemini-companion-prompt--gone-checks 5
  "Number of checks in a row after which a sentinel that they miss is gone.
A CLI that works erases and redraws its prompt some ten times a second, so
every other check of a busy terminal may see an erased prompt.")

;;;; Typing

(defun gemini-companion-prompt--clean (text &optional newline)
  "Return TEXT without control characters.
Line ends are converted to NEWLINE, by default to those that terminals paste."
  (replace-regexp-in-string
   "\n" (or newline "\r")
   (replace-regexp-in-string
    "[\0-\10\13-\37\177\u0080-\u009f]" ""
    (replace-regexp-in-string "\r\n?" "\n" (substring-no-properties text)))
   t t))

(defun gemini-companion-prompt-command (text)
  "Return the command that TEXT is for a CLI: TEXT from its / or ! on.
Return nil if TEXT is no command.  The CLIs ignore white space before
the / or !."
  (let ((text (gemini-companion-prompt--clean text)))
    (when (string-match "\\`\\(?:[^[:graph:]]\\|\ufeff\\)*\\([/!]\\)" text)
      (substring text (match-beginning 1)))))

(defun gemini-companion-prompt-file-name (name client)
  "Return the form of the file NAME for CLIENT, after an @, or nil.
NAME is relative to the directory of the CLI, or absolute.  The value is a
string such as \"a\\\\ b.txt\".  It is nil if the CLI reads no form of NAME: it
would read nothing, or other files."
  ;; Completion may call this for 100,000 files.  The slowest steps would be a
  ;; replacement that replaces nothing, and a dispatch on a string.
  (let* ((client (intern (or client (car gemini-companion-clients))))
         (escapes (gemini-companion-client-escapes client)))
    (cond ((string-match-p (gemini-companion-client-unreadable client) name) nil)
          ((null escapes) name)
          ((eq system-type 'windows-nt)
           (if (string-match-p "[][ (){}^=;!'+,`~%$@#&]" name)
               (concat "\"" name "\"")
             name))
          ((string-match-p escapes name)
           (replace-regexp-in-string escapes "\\\\\\&" name))
          (t name))))

(defun gemini-companion-prompt-reference (name client)
  "Return the reference to the file NAME for CLIENT, or nil.
The value is a string such as \"@a\\\\ b.txt\", which
`gemini-companion-prompt-quote' does not change.  For NAME, and for the value
nil, see `gemini-companion-prompt-file-name'."
  (when-let* ((read (gemini-companion-prompt-file-name name client)))
    (propertize (concat "@" read) 'gemini-companion-reference t)))

(defconst gemini-companion-prompt--at-sign
  (let ((part "\\(?:\\\\.\\|[^][\\(){} \t\n\r,;!?%s]\\)"))
    (concat "\\\\@"                      ; an @ that is quoted already
            "\\|@" (format part "") "*/[[({]"
            "\\|@" (format part "") "*" (format part ".")))
  "Regexp for an @ and the name after it, as the CLIs read it.
A name ends before a bracket, or with a bracket after a slash, as in
\"@app/[\", and never with a dot.")

(defun gemini-companion-prompt-search-reference (&optional bound)
  "Search forward for an @ and a name, up to BOUND if that is non-nil.
Return the name without backslashes, or nil if there is none.  Ignore an
escaped @.  Set point and the match data."
  (let ((name nil))
    (while (and (not name)
                (re-search-forward gemini-companion-prompt--at-sign bound t))
      (when (eq ?@ (char-after (match-beginning 0)))
        (setq name (string-replace "\\" "" (substring (match-string-no-properties 0)
                                                      1)))))
    (unless (equal "" name) name)))

(defun gemini-companion-prompt-quote (text session &optional quotation)
  "Return TEXT for the prompt of SESSION, with some @ escaped by a backslash.
Escape each @ after which the CLI would read a file that the user has not
named: for example, src/property.py for @property, or all files in app for
@app/[id]/page.ts, since the CLI does not take the bracket for a part of the
name.  In a QUOTATION, escape each @ without the text property
`gemini-companion-reference'."
  (gemini-companion-garbage-later
    (let ((default-directory (or (gemini-companion-session-directory session)
                                 default-directory)))
      ;; The list of all files is computed only if an @ needs it.
      (thunk-let ((names (gemini-companion-prompt--names session)))
        (replace-regexp-in-string
         gemini-companion-prompt--at-sign
         (lambda (word)
           (if (save-match-data
                 (gemini-companion-prompt--misread-p
                  word session quotation (lambda () names)))
               (concat "\\" word)
             word))
         text t t)))))

(defun gemini-companion-prompt--misread-p (word session quotation names)
  "Return non-nil if the CLI of SESSION would wrongly read a file for WORD.
WORD is a match of `gemini-companion-prompt--at-sign'.  QUOTATION is as
for `gemini-companion-prompt-quote', and NAMES a function that returns
the value of `gemini-companion-prompt--names'."
  (let ((name (string-replace "\\" "" (substring word 1))))
    (cond
     ((or (string-prefix-p "\\" word)
          (get-text-property 0 'gemini-companion-reference word))
      nil)
     ;; Copilot CLI, which has no escapes, takes the bracket for a part of the
     ;; name; the others read the whole directory before it.
     ((string-match-p "/[[({]\\'" word)
      (gemini-companion-client-escapes (gemini-companion-session-client session)))
     ;; A remote file counts as existing: Tramp would have to ask the host.
     ((or (gemini-companion-session-remote session) (file-exists-p name))
      ;; Copilot CLI would name the file to the model despite a backslash.
      (and quotation
           (gemini-companion-client-escapes (gemini-companion-session-client session))))
     (t
      (string-search (concat (and (string-search "/" name) "\n")
                             (downcase (file-name-nondirectory name)))
                     (funcall names))))))

(defun gemini-companion-prompt--names (session)
  "Return one string with the names of the files of SESSION, to search in.
For example, \"\\na.py\\nreadme.md\": the names in lower case, without
directories, each after a newline.  The string is empty for a CLI that does
not find files by a substring of their name."
  (if-let* (((gemini-companion-client-searches-names-p
              (gemini-companion-session-client session)))
            (project (project-current)))
      (downcase (mapconcat (lambda (file)
                             (concat "\n" (file-name-nondirectory file)))
                           (project-files project (list default-directory)) ""))
    ""))

(defun gemini-companion-prompt--write (process string)
  "Write STRING to PROCESS; return nil if that is stopped or has ended."
  (ignore-errors (process-send-string process string) t))

(defun gemini-companion-prompt--paste (process text)
  "Write TEXT to PROCESS as a bracketed paste.
In a paste, a CLI takes a newline for text, and not for the end of the prompt."
  (gemini-companion-prompt--write
   process
   (concat "\e[200~" (gemini-companion-prompt--clean text) "\e[201~")))

(defun gemini-companion-prompt--check-length (text)
  "Signal a `user-error' if TEXT is too long to be typed.
A terminal accepts a few thousand characters at a time, and Emacs would wait."
  (when (< 200000 (length text))
    (user-error "Text too long for a prompt (%d characters); refer to the file"
                (length text))))

(defun gemini-companion-prompt-insert (text session)
  "Insert TEXT into the prompt of SESSION, or add it to the kill ring.
Select the terminal.  Return a message."
  (let ((name (gemini-companion-session-name session))
        (terminal (gemini-companion-session-terminal session)))
    (if-let* ((process (gemini-companion-terminal-process session)))
        (progn
          (gemini-companion-prompt--check-length text)
          (gemini-companion-prompt--paste process text)
          (gemini-companion-terminal-show terminal)
          (format "In the prompt of %s: %s" name
                  (truncate-string-to-width
                   (string-replace "\n" " " (gemini-companion-text-trim text))
                   60 nil nil t)))
      (kill-new text)
      (format
       (cond ((not terminal)
              "%s has no known terminal in Emacs; text copied to the kill ring")
             ((eq 'waiting (gemini-companion-session-state session))
              "%s is waiting for an answer; text copied to the kill ring")
             (t "Terminal of %s does not accept input now; text copied to the kill ring"))
       name))))

;;;; Screen

(defconst gemini-companion-prompt--text-behind
  (let ((text ".*[^ \n\u200b\u2500-\u259f]")
        (row "[ │┃]\\{2\\}"))
    (concat text "\\|.*\n\\(?:[ │┃]*\n\\)*" row text
            ;; The footer, after an empty line, may be indented like the prompt.
            "\\(?:.*\n" row "\\)*\\(?:.*\n[ │┃]*\\(?:$\\|[─-▟]\\)\\|.*\\'\\)"))
  "Regexp for text in a prompt, on the row of the sentinel or in rows below.
Rows below belong to the prompt if they are indented, and end with the
frame, or with an empty row.")

(defconst gemini-companion-prompt--dialog "│ *│"
  "Regexp for the beginning of a row of a dialog.
The text field of a dialog is a frame in a frame.")

(defun gemini-companion-prompt--screen (task)
  "Return the `gemini-companion-prompt--screen' that TASK seeks, or nil.
For a task that seeks its text, the slots have their defaults."
  (pcase-let (((cl-struct gemini-companion-prompt--task
                          process sentinel matches input)
               task))
    (cond ((null process) nil)
          (sentinel
           (gemini-companion-prompt--screen-with
            sentinel process (gemini-companion-prompt--client task)))
          (input
           (gemini-companion-prompt--frame
            process (gemini-companion-prompt--client task)))
          ((and matches (< matches (gemini-companion-prompt--count task)))
           (gemini-companion-prompt--make-screen)))))

(defun gemini-companion-prompt--count (task)
  "Return how often the terminal of TASK has its text."
  (let ((text (regexp-quote (gemini-companion-prompt--task-text task))))
    (with-current-buffer (process-buffer (gemini-companion-prompt--task-process task))
      (how-many text (point-min) (point-max)))))

(defun gemini-companion-prompt--client (task)
  "Return the name of the CLI of TASK, or nil if it has no session."
  (when-let* ((session (gemini-companion-prompt--task-session task)))
    (gemini-companion-session-client session)))

(defun gemini-companion-prompt--screen-with (sentinel process client)
  "Return the prompt around the last SENTINEL in the terminal of PROCESS.
SENTINEL is a string of one space, and CLIENT the CLI that runs there.  One in
the text field of a dialog is ignored.  The value is nil, or a
`gemini-companion-prompt--screen'."
  (with-current-buffer (process-buffer process)
    (save-excursion
      (goto-char (point-max))
      (when (and (search-backward sentinel nil t)
                 (not (save-excursion
                        (forward-line 0)
                        (looking-at-p gemini-companion-prompt--dialog))))
        (forward-char)
        (let ((behind (looking-at-p gemini-companion-prompt--text-behind))
              (count (- (skip-chars-backward sentinel))))
          ;; From here on, point is before the sentinels.
          (gemini-companion-prompt--make-screen
           :count count
           :behind behind
           :before (not (looking-back
                         (format "^[ │┃]*\\(?:!\\|%s\\)?[ \u2000-\u200a]*"
                                 (or (gemini-companion-client-prompt-sign client) ""))
                         (line-beginning-position)))
           :kind (gemini-companion-prompt-kind client)
           :normal (gemini-companion-prompt--below-p
                    (gemini-companion-client-normal-footer client))))))))

(defun gemini-companion-prompt--below-p (regexp)
  "Return non-nil if REGEXP matches after point, as the footer of a CLI may.
REGEXP is nil for a CLI without such a footer."
  (and regexp
       (save-excursion
         (re-search-forward regexp nil t))))

(defun gemini-companion-prompt-kind (client)
  "Return whether CLIENT would certainly send the prompt at point to the model.
The value is `ordinary' if its first row has the usual sign or its footer says
so; `later' if the footer shows that CLIENT works, and hides that; or nil.  A
shell, or CLIENT itself, might run the text in any other prompt, even in one of
an unknown version of CLIENT."
  (let* ((sign (gemini-companion-client-prompt-sign client))
         (footer-p (lambda (regexp)
                     (and regexp
                          (save-excursion
                            (forward-line 0)
                            (while (and (looking-at-p "┃")
                                        (zerop (forward-line -1))))
                            (looking-at-p "╻.*\n┃ *[^ /]"))
                          (gemini-companion-prompt--below-p regexp)))))
    (cond ((save-excursion
             (forward-line 0)
             ;; The other rows are indented like the text of the first one.
             (while (and (looking-at-p "│?  \\| ?$") (zerop (forward-line -1))))
             (if sign
                 (looking-at-p (format "│? ?%s *[^ /]" sign))
               (and (looking-at-p "[\u2000-\u200a]")
                    (zerop (forward-line -1))
                    (looking-at-p "──"))))
           'ordinary)
          ((funcall footer-p (gemini-companion-client-prompt-footer client))
           'ordinary)
          ((funcall footer-p (gemini-companion-client-busy-footer client))
           'later))))

(defun gemini-companion-prompt--frame (process client)
  "Return the prompt of CLIENT in a frame in the terminal of PROCESS, or nil.
Below the frame, there are completions or the footer.  The value is a
`gemini-companion-prompt--screen' with KIND only."
  (with-current-buffer (process-buffer process)
    (save-excursion
      (goto-char (point-max))
      (skip-chars-backward " \n")
      (when (and (re-search-backward "^─\\{9\\}" (line-beginning-position -14) t)
                 (re-search-backward "^─\\{9\\}" nil t))
        (forward-line)
        (gemini-companion-prompt--make-screen
         :kind (gemini-companion-prompt-kind client))))))

;;;; Submitting

(defun gemini-companion-prompt-submit (text find seconds problem &optional ended)
  "Submit TEXT to a session: the value of the function FIND, or nil.
Type TEXT once the prompt of the CLI accepts input.  If that takes more than
SECONDS, not counting the time in which the CLI works or waits for an answer, or
if the terminal is killed, add TEXT to the kill ring, with a message that begins
with PROBLEM.  Call ENDED, if non-nil, once: with `sent' when the prompt was
submitted; with `withdrawn', see `gemini-companion-prompt-withdraw'; or with nil
if it was not submitted.  Signal an error if TEXT is too long.
If `gemini-companion-prompt-by-message-p' returns non-nil, send TEXT at once."
  (let ((session (funcall find))
        (ended (or ended #'ignore)))
    (if (gemini-companion-prompt-by-message-p text session)
        (gemini-companion-prompt--post text session problem ended)
      (gemini-companion-prompt--begin
       (gemini-companion-prompt--make-task
        :text text :find find :problem problem :ended ended
        :left (* seconds gemini-companion-prompt--checks-per-second))))))

(defun gemini-companion-prompt-by-message-p (text session)
  "Return non-nil if TEXT is sent to SESSION as a message of the server.
An extension of the CLI accepts that in any terminal, and waits while the CLI
cannot take it.  A command of the CLI must be typed.  SESSION may be nil."
  (and session
       (gemini-companion-client-extended-p (gemini-companion-session-client session))
       (not (gemini-companion-prompt-command text))))

(defun gemini-companion-prompt--post (text session problem ended)
  "Send TEXT as a prompt to SESSION by the server.
If that fails, add TEXT to the kill ring, with a message about PROBLEM.
ENDED is as for `gemini-companion-prompt-submit'."
  (gemini-companion-prompt--check-length text)
  (let (end)
    (setq end (lambda (sent)
                (when (memq end gemini-companion-prompt--posted)
                  (cl-callf2 delq end gemini-companion-prompt--posted)
                  (cond (sent
                         (message "Prompt sent to %s"
                                  (gemini-companion-session-name session)))
                        (t
                         (gemini-companion-state-report session 'submitted "")
                         (gemini-companion-text-keep text problem)))
                  (funcall ended (and sent 'sent)))))
    ;; The turn may begin before the CLI confirms the prompt.
    (gemini-companion-state-report session 'submitted text)
    (push end gemini-companion-prompt--posted)
    (message "Sending prompt to %s..." (gemini-companion-session-name session))
    (unless (gemini-companion-server-ask
             'prompt (list (gemini-companion-session-id session) text)
             end (lambda (_problem) (funcall end nil)))
      (funcall end nil))))

(defun gemini-companion-prompt--give-up-posted ()
  "Give up all texts that the server has not confirmed.
This adds them to the kill ring."
  (dolist (end gemini-companion-prompt--posted)
    (funcall end nil)))

(defun gemini-companion-prompt--begin (task)
  "Add TASK to the tasks, and check it."
  (gemini-companion-prompt--check-length (gemini-companion-prompt--task-text task))
  (push task gemini-companion-prompt--tasks)
  ;; A header line has their number.
  (force-mode-line-update t)
  (gemini-companion-prompt--check task)
  (when-let* ((session (gemini-companion-prompt--task-session task))
              ((gemini-companion-prompt--works-p session)))
    (message "%s is working; prompt is sent when its work has ended \
(M-x gemini-companion-compose-withdraw withdraws it)"
             (gemini-companion-session-name session))))

(defun gemini-companion-prompt--works-p (session)
  "Return non-nil if a key typed for SESSION might answer its next question.
It works, as its title or a report shows, and takes its prompts by keys."
  (when-let* (((memq (gemini-companion-state-titled session) '(working waiting)))
              (process (gemini-companion-terminal-process session)))
    (not (gemini-companion-input-file-of
          process (gemini-companion-session-client session)))))

(defun gemini-companion-prompt--check (task)
  "Check the terminal of TASK, call the function of its phase, and check again.
A timer calls this until TASK has ended."
  (let* ((session (funcall (gemini-companion-prompt--task-find task)))
         (works (and session (gemini-companion-prompt--works-p session)))
         (waiting (or works
                      (eq 'waiting (gemini-companion-session-state session)))))
    (setf (gemini-companion-prompt--task-session task) session
          (gemini-companion-prompt--task-process task)
          (unless works
            (gemini-companion-terminal-process session)))
    (when waiting
      (setf (gemini-companion-prompt--task-seen task) 0))
    (when works
      (setf (gemini-companion-prompt--task-delayed task) t))
    (if (gemini-companion-prompt--lost-p task)
        (gemini-companion-prompt--end
         task (gemini-companion-prompt--task-problem task))
      (let ((screen (gemini-companion-prompt--screen task)))
        (gemini-companion-prompt--record task screen)
        (when-let* ((phase (funcall
                            (alist-get (gemini-companion-prompt--task-phase task)
                                       gemini-companion-prompt--phases)
                            task screen)))
          (setf (gemini-companion-prompt--task-phase task) phase)
          (unless waiting
            (cl-decf (gemini-companion-prompt--task-left task)))
          (setf (gemini-companion-prompt--task-timer task)
                (run-at-time (/ 1.0 gemini-companion-prompt--checks-per-second) nil
                             #'gemini-companion-prompt--check task)))))))

(defun gemini-companion-prompt--lost-p (task)
  "Return non-nil if TASK has timed out, or its session has ended."
  (let ((session (gemini-companion-prompt--task-session task)))
    (or (< (gemini-companion-prompt--task-left task) 0)
        (and session
             (not (gemini-companion-session-terminal session))
             (not (gemini-companion-session-connected-p session))))))

(defun gemini-companion-prompt--record (task screen)
  "Record in TASK that a check has found SCREEN, or nothing if that is nil."
  (cond (screen
         (setf (gemini-companion-prompt--task-missed task) 0)
         (when (and (= 1 (cl-incf (gemini-companion-prompt--task-seen task)))
                    (not (gemini-companion-prompt--screen-behind screen)))
           (setf (gemini-companion-prompt--task-free task) t)))
        ((<= gemini-companion-prompt--gone-checks
             (cl-incf (gemini-companion-prompt--task-missed task)))
         (setf (gemini-companion-prompt--task-seen task) 0))))

(defun gemini-companion-prompt--steady-p (task screen)
  "Return non-nil at the check at which the match of TASK becomes steady.
SCREEN is the current match, or nil."
  (and screen
       (= gemini-companion-prompt--steady-checks
          (gemini-companion-prompt--task-seen task))))

(defun gemini-companion-prompt--queued (task _screen)
  "Type a sentinel once TASK is the first one for a CLI that takes a text.
Return the next phase, or nil if the text was sent by a message."
  (cond ((gemini-companion-prompt-by-message-p
          (gemini-companion-prompt--task-text task)
          (gemini-companion-prompt--task-session task))
         ;; The CLI has connected since the task began.
         (pcase-let (((cl-struct gemini-companion-prompt--task
                                 text session problem ended)
                      task))
           (gemini-companion-prompt--end task)
           (gemini-companion-prompt--post text session problem ended)
           nil))
        ((not (and (gemini-companion-prompt--task-process task)
                   (gemini-companion-prompt--first-p task)))
         'queued)
        ((setf (gemini-companion-prompt--task-input task)
               (gemini-companion-input-file-of
                (gemini-companion-prompt--task-process task)
                (gemini-companion-prompt--client task)))
         (gemini-companion-prompt--watch-keys task)
         ;; While the task was queued, no check could find the prompt.
         (setf (gemini-companion-prompt--task-missed task) 0)
         'resting)
        (t
         (gemini-companion-prompt--type-sentinel task)
         'probing)))

(defun gemini-companion-prompt--probing (task screen)
  "Send the text of TASK once the sentinel on SCREEN is in an ordinary prompt.
Return the next phase, or nil if the text would be added to another text,
or might be run as a command: the task has ended then."
  (cond ((not (gemini-companion-prompt--steady-p task screen))
         (gemini-companion-prompt--retype-sentinel task)
         'probing)
        ((and (gemini-companion-prompt--screen-behind screen)
              (not (gemini-companion-prompt--task-input task)))
         (gemini-companion-prompt--delete-sentinel task screen)
         (gemini-companion-prompt--refuse
          task "%s has text after the cursor in its prompt"))
        ;; The user may be in the middle of it, and Enter would submit it.
        ((and (gemini-companion-prompt--screen-before screen)
              (gemini-companion-prompt--task-delayed task))
         (gemini-companion-prompt--delete-sentinel task screen)
         (gemini-companion-prompt--refuse
          task "%s has a prompt that you have begun"))
        (t
         (pcase-exhaustive (gemini-companion-prompt--screen-kind screen)
           ((and 'ordinary (guard (gemini-companion-prompt--task-input task)))
            (gemini-companion-prompt--delete-sentinel task screen)
            (setf (gemini-companion-prompt--task-sentinel task) nil)
            (gemini-companion-prompt--append task))
           ('ordinary
            (gemini-companion-prompt--type-text task screen)
            'typed)
           ('later
            (cl-decf (gemini-companion-prompt--task-seen task))
            (cl-incf (gemini-companion-prompt--task-left task))
            'probing)
           ('nil
            (gemini-companion-prompt--delete-sentinel task screen)
            (gemini-companion-prompt--refuse
             task gemini-companion-prompt--not-ordinary))))))

(defun gemini-companion-prompt--typed (task screen)
  "Press Enter once the text of TASK is on SCREEN.
Return the next phase, or nil if the task has ended.  In the phase
`retyped', the sentinel was typed again after the text; if there is no text
before the sentinel, the user has deleted the text, so Enter is not pressed."
  (let ((phase (gemini-companion-prompt--task-phase task)))
    (cond ((not (gemini-companion-prompt--steady-p task screen))
           (if (gemini-companion-prompt--retype-sentinel task) 'retyped phase))
          ;; A CLI displays hints about arguments after a command.
          ((and (gemini-companion-prompt--screen-behind screen)
                (not (string-prefix-p "/" (gemini-companion-prompt--task-text
                                           task))))
           (gemini-companion-prompt--refuse
            task "%s has other text after your prompt"))
          ((and (eq phase 'retyped)
                (not (gemini-companion-prompt--screen-before screen)))
           'retyped)
          (t (gemini-companion-prompt--enter task)))))

(defun gemini-companion-prompt--resting (task screen)
  "Append the text of TASK to its file once SCREEN has shown a prompt for a second.
Return the next phase, or nil if the prompt might be run as a command: the task
has ended then.  If SCREEN has been nil for ten seconds, and TASK has a terminal
to type in, seek the prompt by a sentinel."
  (pcase-let (((cl-struct gemini-companion-prompt--task
                          process seen missed)
               task))
    (cond ((and process (<= (* 10 gemini-companion-prompt--checks-per-second) missed))
           ;; The CLI may not have drawn its prompt; a sentinel makes it do that.
           (gemini-companion-prompt--type-sentinel task)
           'probing)
          ((or (null screen) (< seen gemini-companion-prompt--checks-per-second))
           'resting)
          ((not (eq 'ordinary (gemini-companion-prompt--screen-kind screen)))
           (gemini-companion-prompt--refuse
            task gemini-companion-prompt--not-ordinary))
          (t
           (gemini-companion-prompt--append task)))))

(defun gemini-companion-prompt--append (task)
  "Append the text of TASK to its file.
Return the next phase, or nil if the file cannot be written."
  (pcase-let (((cl-struct gemini-companion-prompt--task text session input terminal)
               task))
    ;; Neither work that goes on nor a command shows that the text was read.
    (setf (gemini-companion-prompt--task-works task)
          (and (not (gemini-companion-prompt-command text))
               (eq 'ready (gemini-companion-state-titled session))
               (gemini-companion-state-work-count session)))
    (condition-case err
        (progn
          (gemini-companion-input-file-append
           input (gemini-companion-prompt--clean text "\n"))
          (gemini-companion-state-report session 'submitted text)
          'appended)
      (file-error
       ;; A part of a line would spoil the next one.
       (with-current-buffer terminal
         (gemini-companion-input-file-delete))
       (gemini-companion-prompt--refuse
        task (concat "Prompt for %s not written: "
                     (string-replace "%" "%%" (error-message-string err))))))))

(defun gemini-companion-prompt--appended (task _screen)
  "End TASK once its CLI has read the text, or has not in five seconds.
Return the next phase, or nil if the task has ended."
  (pcase-let* (((cl-struct gemini-companion-prompt--task
                           session terminal works)
                task)
               (seconds (/ (cl-incf (gemini-companion-prompt--task-waited task))
                           (float gemini-companion-prompt--checks-per-second))))
    (cond ((if works
               (< works (gemini-companion-state-work-count session))
             (<= 1 seconds))
           (gemini-companion-prompt--end task)
           (funcall (gemini-companion-prompt--task-ended task) 'sent)
           (message "Prompt submitted in %s" (buffer-name terminal))
           nil)
          ((< seconds 5) 'appended)
          (t
           ;; A CLI that goes on reads nothing from a file that is gone; if the file
           ;; became shorter, it would read all of it again.
           (with-current-buffer terminal
             (gemini-companion-input-file-delete))
           (gemini-companion-prompt--refuse task "%s did not read the prompt")))))

(defun gemini-companion-prompt--watch-keys (task)
  "Watch the keys that are typed in the terminal of TASK."
  (with-current-buffer
      (setf (gemini-companion-prompt--task-terminal task)
            (process-buffer (gemini-companion-prompt--task-process task)))
    (add-hook 'pre-command-hook #'gemini-companion-prompt--before-key nil t)))

(defun gemini-companion-prompt--before-key ()
  "Hold the key of this command, or record that it was typed in this terminal.
A member of `pre-command-hook' there."
  (dolist (task gemini-companion-prompt--tasks)
    (when (eq (current-buffer) (gemini-companion-prompt--task-terminal task))
      (pcase (gemini-companion-prompt--task-phase task)
        ((or 'resting 'probing)
         (setf (gemini-companion-prompt--task-seen task) 0))
        ('appended
         (push (this-command-keys-vector) (gemini-companion-prompt--task-held task))
         (setq this-command #'ignore))))))

(defun gemini-companion-prompt--unwatch-keys (task)
  "Stop watching the terminal of TASK, and handle the keys there that were held.
If it is not selected any more, drop them: they would be typed elsewhere."
  (pcase-let (((cl-struct gemini-companion-prompt--task terminal held) task))
    (when (buffer-live-p terminal)
      (unless (cl-find terminal gemini-companion-prompt--tasks
                       :key #'gemini-companion-prompt--task-terminal)
        (with-current-buffer terminal
          (remove-hook 'pre-command-hook #'gemini-companion-prompt--before-key t)))
      (cond ((null held))
            ((eq terminal (window-buffer))
             (setq unread-command-events
                   (append (mapcar (lambda (key) (cons t key))
                                   (apply #'vconcat (reverse held)))
                           unread-command-events)))
            (t
             (message "Keys typed in %s while a prompt was sent were dropped"
                      (buffer-name terminal)))))))

(defun gemini-companion-prompt--refuse (task reason)
  "End TASK without submitting its text, and return nil.
REASON is a format for the name of the CLI."
  (gemini-companion-prompt--end
   task (format reason (gemini-companion-session-name
                        (gemini-companion-prompt--task-session task)))))

(defun gemini-companion-prompt--enter (task)
  "End TASK, press Enter in its terminal, and return nil."
  (pcase-let (((cl-struct gemini-companion-prompt--task text session process)
               task))
    (if (not (gemini-companion-prompt--write process "\r"))
        (gemini-companion-prompt--refuse task "%s is stopped; prompt not sent")
      (gemini-companion-prompt--end task)
      (gemini-companion-state-report session 'submitted text)
      (funcall (gemini-companion-prompt--task-ended task) 'sent)
      (message "Prompt submitted in %s" (buffer-name (process-buffer process)))
      nil)))

(defun gemini-companion-prompt--end (task &optional problem)
  "Remove TASK from the tasks, and return nil.
If PROBLEM is non-nil, display it, and add the text to the kill ring."
  (setq gemini-companion-prompt--tasks (delq task gemini-companion-prompt--tasks))
  (when-let* ((timer (gemini-companion-prompt--task-timer task)))
    (cancel-timer timer))
  (force-mode-line-update t)
  (gemini-companion-prompt--unwatch-keys task)
  (when problem
    (gemini-companion-text-keep (gemini-companion-prompt--task-text task)
                                   problem)
    (funcall (gemini-companion-prompt--task-ended task) nil))
  nil)

(defun gemini-companion-prompt--first-p (task)
  "Return non-nil if TASK is the first one in the queue of its session."
  (let ((session (gemini-companion-prompt--task-session task)))
    (not (seq-some (lambda (earlier)
                     (equal session
                            (funcall (gemini-companion-prompt--task-find earlier))))
                   (cdr (memq task gemini-companion-prompt--tasks))))))

(defun gemini-companion-prompt--of-session (session)
  "Return the tasks of SESSION, the newest first.
If SESSION has no ID, return those that wait for a CLI to start in its
directory."
  (seq-filter (lambda (task)
                (if-let* ((other (funcall
                                  (gemini-companion-prompt--task-find task))))
                    (gemini-companion-session-same-p session other)
                  (and (null (gemini-companion-session-id session))
                       (equal (gemini-companion-session-directory session)
                              (gemini-companion-prompt--task-directory task)))))
              gemini-companion-prompt--tasks))

(defun gemini-companion-prompt-pending (session)
  "Return how many texts for SESSION are not submitted yet, or nil if none are.
This is the value of `gemini-companion-state-pending-function'."
  (let ((tasks (gemini-companion-prompt--of-session session)))
    (and tasks (length tasks))))

(setq gemini-companion-state-pending-function
      #'gemini-companion-prompt-pending)

(defun gemini-companion-prompt-withdraw (session)
  "End the newest task of SESSION whose text was not sent; return the text.
Return nil if the text is of comments that count as unsent again, as ENDED of
the task has returned `unsent'.  Signal a `user-error' if there is no task."
  (let* ((task (or (seq-find (lambda (task)
                               (not (eq 'appended
                                        (gemini-companion-prompt--task-phase task))))
                             (gemini-companion-prompt--of-session session))
                   (user-error "No prompt is queued for %s"
                               (gemini-companion-session-name session))))
         (screen (and (eq 'probing (gemini-companion-prompt--task-phase task))
                      (gemini-companion-prompt--screen task))))
    (when screen
      (gemini-companion-prompt--delete-sentinel task screen))
    (gemini-companion-prompt--end task)
    (unless (eq 'unsent (funcall (gemini-companion-prompt--task-ended task) 'withdrawn))
      (gemini-companion-prompt--task-text task))))

(cl-defmethod gemini-companion-part-unfinished ((_part (eql 'prompt)))
  "Return how many prompts are queued."
  (let ((count (length gemini-companion-prompt--tasks)))
    (and (< 0 count)
         (list (format (ngettext "%d prompt was not sent" "%d prompts were not sent"
                                 count)
                       count)))))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'prompt)))
  "End all tasks, and add their texts to the kill ring."
  (dolist (task gemini-companion-prompt--tasks)
    (gemini-companion-prompt--end task "Prompt not submitted"))
  (gemini-companion-prompt--give-up-posted))

(cl-defmethod gemini-companion-part-ready ((_part (eql 'prompt)) _how)
  "Give up all texts that the previous server has not confirmed."
  (gemini-companion-prompt--give-up-posted))

;;;; Sentinels

(defun gemini-companion-prompt--type-sentinel (task &optional text)
  "Type a new sentinel for TASK, and TEXT after it.
The sentinel is a space that the terminal does not show yet."
  (let* ((process (gemini-companion-prompt--task-process task))
         (sentinel (seq-find (lambda (sentinel)
                               (not (gemini-companion-prompt--screen-with
                                     sentinel process
                                     (gemini-companion-prompt--client task))))
                             (mapcar #'string (number-sequence ?\u2000 ?\u200a))
                             "\u2000")))
    (gemini-companion-prompt--paste process (concat sentinel text))
    (setf (gemini-companion-prompt--task-sentinel task) sentinel
          (gemini-companion-prompt--task-seen task) 0
          (gemini-companion-prompt--task-missed task) 0
          (gemini-companion-prompt--task-free task) nil)))

(defun gemini-companion-prompt--retype-sentinel (task)
  "Type a new sentinel each second in which TASK has missed its sentinel.
Return non-nil if one was typed.  A dialog, or Copilot CLI after a text, may
have swallowed the previous sentinel."
  (pcase-let (((cl-struct gemini-companion-prompt--task process sentinel missed)
               task))
    (when (and process
               sentinel
               (< 0 missed)
               (zerop (mod missed gemini-companion-prompt--checks-per-second)))
      (gemini-companion-prompt--type-sentinel task)
      t)))

(defun gemini-companion-prompt--delete-sentinel (task screen)
  "Delete each sentinel on SCREEN, in the terminal of TASK."
  ;; If the user has typed text after the sentinel, the cursor is after that text, and
  ;; DEL would delete a character of the user.
  (unless (and (gemini-companion-prompt--screen-behind screen)
               (gemini-companion-prompt--task-free task))
    (gemini-companion-prompt--write
     (gemini-companion-prompt--task-process task)
     (make-string (gemini-companion-prompt--screen-count screen)
                  ;; In the normal mode of Vi, a CLI ignores DEL, but has undo.
                  (if (gemini-companion-prompt--screen-normal screen) ?u ?\177)))))

(defun gemini-companion-prompt--type-text (task screen)
  "Replace the text on SCREEN by the text of TASK and a sentinel.
TASK then seeks the sentinel, or if the text is a command, the text itself."
  (pcase-let (((cl-struct gemini-companion-prompt--task text process) task))
    (gemini-companion-prompt--delete-sentinel task screen)
    ;; Append the text to what the user has typed, on a line of its own.
    (when (and (gemini-companion-prompt--screen-before screen)
               (string-match-p "\\`[[:graph:]]" text))
      (setq text (concat "\n" text)))
    (setf (gemini-companion-prompt--task-seen task) 0
          (gemini-companion-prompt--task-missed task) 0)
    (cond
     ;; After a command without arguments and a space, Enter may choose another
     ;; command.
     ((string-match-p "\\`/[^ \t\n]+\\'" text)
      (setf (gemini-companion-prompt--task-sentinel task) nil
            (gemini-companion-prompt--task-matches task)
            (gemini-companion-prompt--count task))
      (gemini-companion-prompt--paste process text))
     ;; A sentinel at the end of a command would begin another word to complete.
     ((string-prefix-p "/" text)
      (gemini-companion-prompt--type-sentinel task text))
     (t
      (gemini-companion-prompt--paste
       process
       ;; If the text ends with a name after @, Enter would complete that name.
       (concat text (and (string-match-p "@\\(?:\\\\.\\|[^[:space:]]\\)*\\'" text)
                         " ")))
      ;; The sentinel is shown even if a placeholder stands for the text.
      (gemini-companion-prompt--type-sentinel task)))))

;;;; Reasons

(defun gemini-companion-prompt--read-reason (edit)
  "Return the reason to reject EDIT, read in the minibuffer.
Return nil if EDIT ended meanwhile."
  (gemini-companion-choice-forget-keys)
  (gemini-companion-request-read
   edit
   (format "Reject %s; reason for %s%s: "
           (gemini-companion-edit-name edit)
           (gemini-companion-session-title (gemini-companion-edit-session edit))
           (if (gemini-companion-edit-comments edit)
               " (in addition to your comments)"
             ""))
   nil nil nil t))

(defun gemini-companion-prompt--comments (edit)
  "Return the comments on EDIT as a list of texts for its CLI, in order.
Each @ in them is escaped: unlike in a reason, none refers to a file to read."
  (when (gemini-companion-edit-comments edit)
    (let ((texts (gemini-companion-comment-texts-of-edit edit))
          (session (gemini-companion-edit-session edit)))
      (if (gemini-companion-client-extended-p (gemini-companion-edit-client edit))
          texts
        (mapcar (lambda (text) (gemini-companion-prompt-quote text session t))
                texts)))))

;;;; Commands

(defun gemini-companion-edit-reject-with-reason (&optional edit reason)
  "Reject EDIT with REASON, which is by default read in the minibuffer.
The reason and the comments on EDIT are sent with the rejection if the CLI
has an extension of this package.  Otherwise they are the next prompt of
the CLI, or are added to the kill ring if it runs in no terminal of this
Emacs.  EDIT is by default that of the review in the current buffer, or of
the displayed review."
  (interactive (gemini-companion-proposal-check))
  (let ((edit (gemini-companion-edit-open-or-error edit)))
    (when-let* ((reason (or reason (gemini-companion-prompt--read-reason edit)))
                (text (string-join
                       (append (unless (string-blank-p reason) (list reason))
                               (gemini-companion-prompt--comments edit))
                       "\n\n")))
      (when (string-empty-p text)
        (user-error "No reason given; %s rejects without one"
                    (substitute-command-keys
                     "\\<gemini-companion-review-mode-map>\
\\[gemini-companion-edit-reject]")))
      (gemini-companion-prompt--check-length text)
      (gemini-companion-prompt--reject edit text))))

(defun gemini-companion-prompt--submit-reason (session text ended)
  "Submit TEXT, the reason of a rejection, as the next prompt of SESSION.
If SESSION has no terminal in this Emacs, add TEXT to the kill ring.  Call ENDED
as `gemini-companion-prompt-submit' does, or with `copied' if there is no
terminal."
  (let ((name (gemini-companion-session-name session))
        (text (gemini-companion-prompt-quote
               ;; A reason such as "/quit is wrong" must not be a command.
               (if (gemini-companion-prompt-command text)
                   (concat "No: " text)
                 text)
               session)))
    (if (not (gemini-companion-session-terminal session))
        (progn
          (gemini-companion-text-keep
           text (format "Rejected; %s has no known terminal in Emacs" name))
          (funcall ended 'copied))
      (gemini-companion-prompt-submit
       text (lambda () session) 30
       (format "Rejected; %s did not accept the prompt" name)
       ended)
      (message "Rejected; the reason will be submitted in %s" name))))

(defun gemini-companion-prompt--reject (edit text)
  "Reject EDIT for the reason TEXT, which includes its comments.
Send TEXT with the outcome, or else as a prompt."
  (let ((comments (gemini-companion-edit-comments edit))
        (session (gemini-companion-edit-session edit)))
    (when comments
      (gemini-companion-comment-set-going comments))
    (if (gemini-companion-client-extended-p (gemini-companion-edit-client edit))
        (progn
          (setf (gemini-companion-edit-reason edit) text)
          (gemini-companion-edit-reject edit)
          (when comments
            (gemini-companion-comment-set-result comments session 'sent)))
      (gemini-companion-edit-reject edit)
      (gemini-companion-prompt--submit-reason
       session text
       (if comments
           (lambda (result)
             (gemini-companion-comment-set-result comments session result))
         #'ignore)))))

(provide 'gemini-companion-prompt)
;;; gemini-companion-prompt.el ends here
