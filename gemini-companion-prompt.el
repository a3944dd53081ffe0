;;; gemini-companion-prompt.el --- Type into the prompt of a CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Type into the prompt of a CLI that runs in a terminal of this Emacs, so that
;; the text is taken literally: what is at point, a prompt that was composed, or
;; the reason for a rejection.  Text for a CLI that runs elsewhere goes to the
;; kill ring.
;;
;; A text to be submitted is typed when the CLI shows what is typed, and Enter is
;; pressed when it shows the text, as both would answer the question of a CLI that
;; asks one.  To see that, a space is typed which is nowhere else in the terminal;
;; the CLI strips it from the prompt.  The text itself may be there already, and
;; long texts are shown as placeholders.  Copilot CLI may take the space behind the
;; text for a part of the paste, so it is typed again.  It must be shown for a
;; while: a CLI takes an Enter that follows a text at once for a part of a paste,
;; and may show rows below a text, or a text typed again, later.
;;
;; The protocol has no field for the reason of a rejection, so it becomes the next
;; prompt.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-client)
(require 'gemini-companion-edit)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-terminal)
(require 'map)
(require 'project)

;;;; State

(defconst gemini-companion-prompt--text-behind
  (let ((text ".*[^ \n\u200b\u2500-\u259f]")
        (row "[ │┃]\\{2\\}"))
    (concat text "\\|.*\n\\(?:[ │┃]*\n\\)*" row text
            ;; After an empty line, the footer may be indented, too.
            "\\(?:.*\n" row "\\)*\\(?:.*\n[ │┃]*\\(?:$\\|[─-▟]\\)\\|.*\\'\\)"))
  "Regexp for text in a prompt, on the row of the mark or in rows below.
These are indented.  Below them is the frame, or an empty row.")

(cl-defstruct (gemini-companion-prompt--task
               (:constructor gemini-companion-prompt--make-task
                             (text find problem left &optional mark phase))
               (:copier nil))
  "A text on its way into a prompt."
  (text nil :documentation "What is typed.")
  (find nil :documentation "A function that returns the session, or nil.")
  (problem nil :documentation "What the message says if the text is not taken.")
  (left nil :documentation "How many checks are left while the CLI asks nothing.")
  (mark nil :documentation "What shows that the CLI displays what is typed:
a space, as a string, or for a text that was typed before, the value of
`gemini-companion-prompt--mark'.")
  (phase 'probe :documentation "`probe' until the CLI displays the mark alone;
`confirm' when the text was typed, until the mark is displayed behind it;
`watch' if the text was typed before and is not submitted.")
  (streak 0 :documentation "How many checks in a row have found the mark, or
if that is negative, have not found it.")
  (free nil :documentation "Non-nil if nothing was behind the mark at first.")
  (retyped nil :documentation "Non-nil if the mark was typed again after the text."))

(cl-defstruct (gemini-companion-prompt--screen
               (:constructor gemini-companion-prompt--make-screen)
               (:copier nil))
  "What a CLI displays at a mark.
COUNT is the number of marks in a row.  BEFORE and BEHIND are non-nil if
there is text before or behind them.  COMMAND is non-nil if the prompt
begins a command, NORMAL if it is in the normal mode of Vi."
  count before behind command normal)

(defvar gemini-companion-prompt--tasks nil
  "The tasks whose texts are not taken yet, the last one first.")

;;;; Typing

(defun gemini-companion-prompt--clean (text)
  "Return TEXT without what could control a terminal.
Lines end as terminals paste them; other control characters go."
  (replace-regexp-in-string
   "\n" "\r"
   (replace-regexp-in-string
    "[\0-\10\13-\37\177\u0080-\u009f]" ""
    (replace-regexp-in-string "\r\n?" "\n" (substring-no-properties text)))
   t t))

(defun gemini-companion-prompt-command (text)
  "Return TEXT from the / or ! on by which a CLI takes it for a command.
Return nil if it is none.  The CLIs ignore any white space before it."
  (let ((text (gemini-companion-prompt--clean text)))
    (when (string-match "\\`\\(?:[^[:graph:]]\\|\ufeff\\)*\\([/!]\\)" text)
      (substring text (match-beginning 1)))))

(defun gemini-companion-prompt-reference (name client)
  "Return the reference to the file NAME for CLIENT, or nil.
NAME is relative to the directory of the CLI, or absolute.  The value is
a string such as \"@a\\\\ b.txt\"; `gemini-companion-prompt-quote' leaves it
as it is.  It is nil for a NAME that the CLI reads in no form: it would
read nothing, or other files."
  (pcase-let (((map :escapes :unreadable)
               (cdr (or (assoc client gemini-companion-client-table)
                        (car gemini-companion-client-table)))))
    (unless (string-match-p unreadable name)
      (propertize
       (concat "@"
               (cond ((not escapes) name)
                     ((not (eq system-type 'windows-nt))
                      (replace-regexp-in-string escapes "\\\\\\&" name))
                     ((string-match-p "[][ (){}^=;!'+,`~%$@#&]" name)
                      (concat "\"" name "\""))
                     (t name)))
       'gemini-companion-reference t))))

(defun gemini-companion-prompt-quote (text session &optional quotation)
  "Return TEXT for the prompt of SESSION, with a backslash before some @.
It is before each one by which the CLI would read a file whose name the
user has not written: src/property.py for @property, or all files in app for
@app/[id]/page.ts, of which it takes no bracket for a part of the name.  In
a QUOTATION, only an @ with the text property `gemini-companion-reference'
names a file."
  (let ((default-directory (or (plist-get session :directory)
                               default-directory))
        ;; Most of the time would be spent on collecting garbage.
        (gc-cons-threshold (max gc-cons-threshold (* 64 1024 1024)))
        (part "\\(?:\\\\.\\|[^][\\(){} \t\n\r,;!?%s]\\)")
        names)
    (replace-regexp-in-string
     (concat "\\\\@\\|@" (format part "") "*/[[({]"
             "\\|@" (format part "") "*" (format part "."))
     (lambda (word)
       (let* ((name (string-replace "\\" "" (substring word 1)))
              (other
               (save-match-data
                 (cond
                  ((or (string-prefix-p "\\" word)
                       (get-text-property 0 'gemini-companion-reference word))
                   nil)
                  ;; Copilot CLI reads what follows, too.
                  ((string-match-p "/[[({]\\'" word)
                   (gemini-companion-client-get (plist-get session :client)
                                                 :escapes))
                  ((or (plist-get session :remote) (file-exists-p name))
                   quotation)
                  (t
                   (string-search
                    (concat (and (string-search "/" name) "\n")
                            (downcase (file-name-nondirectory name)))
                    (setq names (or names (gemini-companion-prompt--names
                                           session)))))))))
         (if other (concat "\\" word) word)))
     text t t)))

(defun gemini-companion-prompt--names (session)
  "Return the names of files here, for a search by the CLI of SESSION.
Each is after a newline, in lower case and without its directory."
  (if-let* (((gemini-companion-client-get (plist-get session :client) :searches))
            (project (project-current)))
      (downcase (mapconcat (lambda (file)
                             (concat "\n" (file-name-nondirectory file)))
                           (project-files project (list default-directory)) ""))
    ""))

(defun gemini-companion-prompt--write (process string)
  "Send STRING to PROCESS, unless that has just ended."
  (ignore-errors (process-send-string process string)))

(defun gemini-companion-prompt--paste (process text)
  "Send TEXT to PROCESS as a bracketed paste."
  (gemini-companion-prompt--write
   process
   (concat "\e[200~" (gemini-companion-prompt--clean text) "\e[201~")))

(defun gemini-companion-prompt--check-length (text)
  "Signal an error if TEXT is too long for a prompt."
  (when (< 200000 (length text))
    ;; A terminal takes a few thousand at once, and Emacs waits for the rest.
    (user-error "Text too long for a prompt (%d characters); refer to the file"
                (length text))))

(defun gemini-companion-prompt-insert (text session)
  "Insert TEXT into the prompt of SESSION, or add it to the kill ring.
Select the terminal.  Return a message."
  (let ((name (gemini-companion-session-name session))
        (terminal (gemini-companion-session-terminal session)))
    (if-let* ((process (gemini-companion-terminal-process session)))
        (progn
          (gemini-companion-prompt-submit
           text (lambda () session) 10 (format "%s may not have taken the text" name)
           (gemini-companion-prompt--mark (gemini-companion-prompt--seen-as text)
                                          process))
          (gemini-companion-prompt--paste process text)
          (gemini-companion-terminal-show terminal)
          (format "In the prompt of %s: %s" name
                  (truncate-string-to-width
                   (string-replace "\n" " " (string-trim text)) 60 nil nil t)))
      (kill-new text)
      (format
       (cond ((not terminal)
              "%s has no known terminal in Emacs; copied to the kill ring")
             ((eq 'waiting (gemini-companion-session-state session))
              "%s waits for an answer; copied to the kill ring")
             (t "Terminal of %s takes no input now; copied to the kill ring"))
       name))))

(defun gemini-companion-prompt--seen-as (text)
  "Return a regexp for the beginning or the end of TEXT in a terminal.
A CLI may break a long word, and displays placeholders for images and
for a long text.  Eat has fillers between wide characters."
  (let ((part "\\(?:[!-~]\\{1,5\\}\\|[[:graph:]]\\)"))
    (concat "\\[\\(?:Image \\|Paste[ d]\\|clipboard-\\)\\|"
            (mapconcat (lambda (regexp)
                         (if (string-match regexp text)
                             (regexp-quote (string-trim (match-string 0 text)))
                           regexp))
                       (list part (concat part "[^[:graph:]]*\\'")) "\\|"))))

(defun gemini-companion-prompt--mark (regexp process)
  "Return a mark that is shown when PROCESS has one more match of REGEXP."
  (with-current-buffer (process-buffer process)
    (cons regexp (how-many regexp (point-min) (point-max)))))

(defun gemini-companion-prompt--look (mark process)
  "Return what is displayed at MARK in the terminal of PROCESS, or nil.
MARK is a string of one character, or the value of
`gemini-companion-prompt--mark', of which only the count is known.  The
value is a `gemini-companion-prompt--screen'."
  (cond
   ((not (and mark process)) nil)
   ((consp mark)
    (when (< (cdr mark) (cdr (gemini-companion-prompt--mark (car mark) process)))
      (gemini-companion-prompt--make-screen :count 1)))
   (t
    (with-current-buffer (process-buffer process)
      (save-excursion
        (goto-char (point-max))
        (when (and (search-backward mark nil t)
                   ;; The text field of a dialog is a frame in a frame.
                   (not (save-excursion
                          (forward-line 0)
                          (looking-at-p "│ *│"))))
          (forward-char)
          (let* ((behind (looking-at-p gemini-companion-prompt--text-behind))
                 (below (lambda (regexp)
                          (save-excursion (re-search-forward regexp nil t))))
                 (count (- (skip-chars-backward mark))))
            (gemini-companion-prompt--make-screen
             :count count :behind behind
             :before (not (looking-back "^[ │]*[!*>❯┃]?[ \u2000-\u200a]*"
                                        (line-beginning-position)))
             :normal (funcall below "^ *-- NORMAL --")
             ;; The footer of Copilot CLI, or the beginning of a prompt.
             :command (or (funcall below "^ \\(?:.* · \\)?Shell · ")
                          (progn
                            (re-search-backward "^[ │]*[!*>❯┃]" nil t)
                            (looking-at-p
                             "[ │]*\\(?:!\\|[*>❯┃] */\\)")))))))))))

;;;; Submitting

(defun gemini-companion-prompt-submit (text find seconds problem &optional mark)
  "Submit TEXT to a session: the value of the function FIND, or nil.
Type it as soon as the prompt of the CLI takes it, or if MARK is non-nil,
only wait until that is shown.  After SECONDS in which the CLI waits for
no answer, or if the terminal is killed, put TEXT into the kill ring; the
message then begins with PROBLEM."
  (gemini-companion-prompt--check-length text)
  (let ((task (gemini-companion-prompt--make-task
               text find problem
               ;; Checks are counted, as a busy Emacs has not seen what the CLI
               ;; shows.
               (* 10 seconds)
               mark (if mark 'watch 'probe))))
    (push task gemini-companion-prompt--tasks)
    (gemini-companion-prompt--step task)))

(defconst gemini-companion-prompt--steady 6
  "How many checks in a row must find the mark before something is typed.
A CLI takes an Enter that follows a text at once for a part of a paste.")

(defun gemini-companion-prompt--step (task)
  "Type what comes next of TASK, if the screen shows that it may be typed.
Then check again in 0.1 seconds, until TASK ends.  The mark is typed
first, alone, as a dialog may take it; then the text, with another mark
behind it unless it is a command; and then Enter is pressed."
  (let* ((session (funcall (gemini-companion-prompt--task-find task)))
         (process (gemini-companion-terminal-process session))
         (screen (gemini-companion-prompt--look
                  (gemini-companion-prompt--task-mark task) process))
         (steady (progn
                   (gemini-companion-prompt--count task screen)
                   (= gemini-companion-prompt--steady
                      (gemini-companion-prompt--task-streak task))))
         (obstacle (and steady (gemini-companion-prompt--obstacle task screen))))
    (cond
     ((gemini-companion-prompt--over-p task session)
      (gemini-companion-prompt--end
       task (gemini-companion-prompt--task-problem task)))
     (obstacle
      (gemini-companion-prompt--refuse task session process screen obstacle))
     ((and steady (gemini-companion-prompt--taken-p task screen))
      (gemini-companion-prompt--end task)
      (when (eq 'confirm (gemini-companion-prompt--task-phase task))
        (gemini-companion-prompt--enter
         (gemini-companion-prompt--task-text task) session process)))
     (t
      (cond
       ((and steady (eq 'probe (gemini-companion-prompt--task-phase task)))
        (gemini-companion-prompt--type-text task process screen))
       ((gemini-companion-prompt--mark-missing-p task session process screen)
        (gemini-companion-prompt--mark-again task process)))
      (unless (eq 'waiting (gemini-companion-session-state session))
        (cl-decf (gemini-companion-prompt--task-left task)))
      (run-at-time 0.1 nil #'gemini-companion-prompt--step task)))))

(defun gemini-companion-prompt--count (task screen)
  "Record in TASK that a check has found SCREEN, or nil for no mark."
  (let ((streak (gemini-companion-prompt--task-streak task)))
    (setf (gemini-companion-prompt--task-streak task)
          (cond (screen (1+ (max 0 streak)))
                ((gemini-companion-prompt--task-mark task) (1- (min 0 streak)))
                (t 0)))
    (when (and screen
               (= 1 (gemini-companion-prompt--task-streak task))
               (not (gemini-companion-prompt--screen-behind screen)))
      (setf (gemini-companion-prompt--task-free task) t))))

(defun gemini-companion-prompt--over-p (task session)
  "Return non-nil if TASK has no time left, or its SESSION has ended."
  (or (< (gemini-companion-prompt--task-left task) 0)
      (and session
           (not (gemini-companion-session-terminal session))
           (not (gemini-companion-session-connected-p session)))))

(defun gemini-companion-prompt--taken-p (task screen)
  "Return non-nil if SCREEN shows that the prompt has the text of TASK.
Without a text before a mark that was typed again, the user has deleted
the text."
  (and (not (eq 'probe (gemini-companion-prompt--task-phase task)))
       (or (not (gemini-companion-prompt--task-retyped task))
           (gemini-companion-prompt--screen-before screen))))

(defun gemini-companion-prompt--mark-missing-p (task session process screen)
  "Return non-nil if PROCESS, that of SESSION, needs a mark for TASK.
That is one that SCREEN does not show for a second, or the first one, if
no other text is to be submitted there before."
  (let ((mark (gemini-companion-prompt--task-mark task)))
    (and process
         (not screen)
         (not (consp mark))
         (if mark
             (zerop (mod (gemini-companion-prompt--task-streak task) 10))
           (gemini-companion-prompt--first-p task session)))))

(defun gemini-companion-prompt--mark-again (task process)
  "Type a mark for TASK into PROCESS."
  (setf (gemini-companion-prompt--task-mark task)
        (gemini-companion-prompt--type-mark process)
        (gemini-companion-prompt--task-retyped task)
        (not (eq 'probe (gemini-companion-prompt--task-phase task)))
        (gemini-companion-prompt--task-free task) nil))

(defun gemini-companion-prompt--obstacle (task screen)
  "Return why the text of TASK must not be typed or submitted, or nil.
SCREEN is what is displayed at its mark.  The value is a format for the
name of the session."
  (let ((probe (eq 'probe (gemini-companion-prompt--task-phase task)))
        (behind (gemini-companion-prompt--screen-behind screen)))
    (cond
     ((and behind probe)
      "%s has text behind the cursor in its prompt")
     ;; The arguments of a command are behind it.
     ((and behind
           (not (string-prefix-p "/" (gemini-companion-prompt--task-text task))))
      "%s has other text behind your prompt")
     ((and probe (gemini-companion-prompt--screen-command screen))
      "%s would run your prompt as a command"))))

(defun gemini-companion-prompt--refuse (task session process screen obstacle)
  "End TASK because of OBSTACLE in the prompt of SESSION.
Delete its mark, which PROCESS displays on SCREEN, if nothing is typed yet."
  (when (eq 'probe (gemini-companion-prompt--task-phase task))
    ;; DEL would delete a character of what the user has typed behind the mark.
    (unless (and (gemini-companion-prompt--task-free task)
                 (gemini-companion-prompt--screen-behind screen))
      (gemini-companion-prompt--delete-mark process screen)))
  (gemini-companion-prompt--end
   task (format obstacle (gemini-companion-session-name session))))

(defun gemini-companion-prompt--enter (text session process)
  "Submit TEXT, which is in the prompt of SESSION in PROCESS."
  (gemini-companion-state-report session 'submitted text)
  (gemini-companion-prompt--write process "\r")
  (message "Prompt submitted in %s" (buffer-name (process-buffer process))))

(defun gemini-companion-prompt--first-p (task session)
  "Return non-nil if no text is to be submitted to SESSION before TASK."
  (not (seq-some (lambda (other)
                   (equal session
                          (funcall (gemini-companion-prompt--task-find other))))
                 (cdr (memq task gemini-companion-prompt--tasks)))))

(defun gemini-companion-prompt--pending-p (session)
  "Return non-nil if a text for SESSION is not typed and submitted yet."
  (seq-some (lambda (task)
              (when-let* ((other (funcall (gemini-companion-prompt--task-find
                                           task))))
                (gemini-companion-session-same-p session other)))
            gemini-companion-prompt--tasks))

(setq gemini-companion-state-pending-function
      #'gemini-companion-prompt--pending-p)

(defun gemini-companion-prompt--end (task &optional problem)
  "End TASK; if PROBLEM is non-nil, put its text into the kill ring.
The message then begins with PROBLEM."
  (setq gemini-companion-prompt--tasks (delq task gemini-companion-prompt--tasks))
  (when problem
    (gemini-companion-prompt--keep (gemini-companion-prompt--task-text task)
                                   problem)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'prompt)))
  "Submit no more; put the texts into the kill ring."
  (cancel-function-timers #'gemini-companion-prompt--step)
  (dolist (task gemini-companion-prompt--tasks)
    (gemini-companion-prompt--end task "Prompt not submitted")))

(defun gemini-companion-prompt--type-mark (process &optional text)
  "Type a space that PROCESS does not show yet, and TEXT; return the space."
  (let ((mark (seq-find (lambda (mark)
                          (not (gemini-companion-prompt--look mark process)))
                        (mapcar #'string (number-sequence ?\u2000 ?\u200a))
                        "\u2000")))
    (gemini-companion-prompt--paste process (concat mark text))
    mark))

(defun gemini-companion-prompt--delete-mark (process screen)
  "Delete the mark on SCREEN of PROCESS.
A slow CLI has displayed it only when it was typed again."
  (gemini-companion-prompt--write
   process
   (make-string (gemini-companion-prompt--screen-count screen)
                ;; In the normal mode of Qwen Code, DEL deletes nothing.
                (if (gemini-companion-prompt--screen-normal screen) ?u ?\177))))

(defun gemini-companion-prompt--type-text (task process screen)
  "Type the text of TASK in place of the mark on SCREEN of PROCESS.
The phase of TASK is then `confirm', and its mark is another one."
  (gemini-companion-prompt--delete-mark process screen)
  (let* ((own (gemini-companion-prompt--task-text task))
         ;; The user has begun a text.
         (text (if (and (gemini-companion-prompt--screen-before screen)
                        (string-match-p "\\`[[:graph:]]" own))
                   (concat "\n" own)
                 own)))
    (setf (gemini-companion-prompt--task-phase task) 'confirm
          (gemini-companion-prompt--task-streak task) 0
          (gemini-companion-prompt--task-mark task)
          (cond
           ;; With a space, Enter may choose another command.
           ((string-match-p "\\`/[^ \t\n]+\\'" text)
            (prog1 (gemini-companion-prompt--mark (regexp-quote text) process)
              (gemini-companion-prompt--paste process text)))
           ;; A mark at the end of a command would begin another word to complete.
           ((string-prefix-p "/" text)
            (gemini-companion-prompt--type-mark process text))
           (t
            (gemini-companion-prompt--paste
             process
             ;; Enter would choose a file for a name at the end.
             (concat text
                     (and (string-match-p "@\\(?:\\\\.\\|[^[:space:]]\\)*\\'" text)
                          " ")))
            ;; The mark is shown even where a placeholder stands for the text.
            (gemini-companion-prompt--type-mark process))))))

;;;; Reasons

(defun gemini-companion-prompt-read (edit prompt &rest arguments)
  "Return what the user types after PROMPT, or nil if EDIT ended meanwhile.
The text is in the kill ring then.  PROMPT and ARGUMENTS are those of
`read-string'."
  ;; Emacs fails if both the current buffer and the frame are gone afterwards.
  (let ((typed (with-temp-buffer (apply #'read-string prompt arguments))))
    (if (gemini-companion-edit-open-p edit)
        typed
      (gemini-companion-prompt--keep typed "This review has ended already")
      nil)))

(defun gemini-companion-prompt--read-reason (edit)
  "Return the reason that the user types for rejecting EDIT, or nil."
  (gemini-companion-prompt-read
   edit
   (format "Reject %s; reason for %s%s: "
           (gemini-companion-edit-name edit)
           (gemini-companion-session-title (gemini-companion-edit-session edit))
           (if (gemini-companion-edit-comments edit)
               " (in addition to your comments)"
             ""))
   nil nil nil t))

(defun gemini-companion-prompt--keep (text problem)
  "Put TEXT, unless it is blank, into the kill ring, and report PROBLEM."
  (if (string-blank-p text)
      (message "%s" problem)
    (kill-new text)
    (message "%s; your text is in the kill ring" problem)))

(defun gemini-companion-prompt--comments (edit)
  "Return the comments on EDIT as lines of a reason, a list of strings.
An element is, for example, \"app/a.py:26-28: Too long\"."
  (pcase-let* ((file (gemini-companion-edit-file edit))
               ((map :directory :remote) (gemini-companion-edit-session edit))
               (name (cond (directory (file-relative-name file directory))
                           ((and remote (cdr (gemini-companion-names-remote
                                              file remote))))
                           (t file))))
    (mapcar (pcase-lambda (`((,side . ,lines) . ,comment))
              (format "%s:%s%s: %s" name (gemini-companion-hunk-range lines)
                      (cond ((not (eq side 'before)) "")
                            ((consp lines) " (removed lines)")
                            (t " (removed line)"))
                      comment))
            ;; As the list shows them, each below its last line.
            (seq-sort-by (pcase-lambda (`((,_ . ,lines) . ,_))
                           (if (consp lines) (cdr lines) lines))
                         #'< (gemini-companion-edit-comments edit)))))

;;;; Commands

;;;###autoload
(defun gemini-companion-edit-reject-with-reason (&optional edit reason)
  "Reject EDIT with REASON, which is by default read in the minibuffer.
The reason, and the comments on the lines of EDIT, are sent as the next
prompt of the CLI if it runs in a terminal of this Emacs; otherwise they
are added to the kill ring.  Without EDIT, take the review of the
current buffer, else the one that is shown."
  (interactive)
  (let ((edit (gemini-companion-edit-unsettled edit)))
    (when-let* ((reason (or reason (gemini-companion-prompt--read-reason edit)))
                (text (string-join
                       (append (unless (string-blank-p reason) (list reason))
                               (gemini-companion-prompt--comments edit))
                       "\n")))
      (when (string-empty-p text)
        (user-error "No reason given; %s rejects without one"
                    (substitute-command-keys
                     "\\<gemini-companion-review-mode-map>\
\\[gemini-companion-edit-reject]")))
      ;; A reason that begins with a slash would be a command of the CLI.
      (when (gemini-companion-prompt-command text)
        (setq text (concat "No: " text)))
      (gemini-companion-prompt--check-length text)
      (gemini-companion-edit-reject edit)
      (let* ((session (gemini-companion-edit-session edit))
             (name (gemini-companion-session-name session))
             (text (gemini-companion-prompt-quote text session)))
        (if (not (gemini-companion-session-terminal session))
            (gemini-companion-prompt--keep
             text
             (format "Rejected; %s has no known terminal in Emacs" name))
          (gemini-companion-prompt-submit
           text (lambda () session) 30
           (format "Rejected; %s did not take the prompt" name))
          (message "Rejected; the reason will be submitted in %s" name))))))

(provide 'gemini-companion-prompt)
;;; gemini-companion-prompt.el ends here
