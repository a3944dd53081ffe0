;;; gemini-companion-prompt.el --- What is put into the prompt of a CLI  -*- lexical-binding: t; -*-

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
;; long texts are shown as placeholders.
;;
;; The protocol has no field for the reason of a rejection, so it becomes the next
;; prompt.
;;
;; What is at point is described by texts and references to files, by a table with
;; a function for each mode.  A reference, such as @path, is read by the CLI; all
;; else is quoted.

;;; Code:

(require 'gemini-companion-edit)
(require 'gemini-companion-names)
(require 'gemini-companion-privacy)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-cli)
(require 'gemini-companion-text)
(require 'compile)
(require 'diff-mode)
(require 'dired)
(require 'project)
(require 'xref)

;;;; State

(defconst gemini-companion-prompt--most 200000
  "Length of the longest text that is typed, in characters.
A terminal takes a few thousand at once, and Emacs waits for the rest.")

(defconst gemini-companion-prompt--check-seconds 0.1
  "Seconds between checks of a terminal.")

(defconst gemini-companion-prompt--shown-checks 6
  "Number of checks for which a text must be shown before the next key.
A CLI takes an Enter that follows a text at once for a part of a paste,
and may show rows below a text, or a text typed again, later.")

(defconst gemini-companion-prompt--text-behind
  (let ((text ".*[^ \n\u200b\u2500-\u259f]")
        (row "[ │┃]\\{2\\}"))
    (concat text "\\|.*\n\\(?:[ │┃]*\n\\)*" row text
            ;; After an empty line, the footer may be indented, too.
            "\\(?:.*\n" row "\\)*\\(?:.*\n[ │┃]*\\(?:$\\|[─-▟]\\)\\|.*\\'\\)"))
  "Regexp for text in a prompt, on the row of the mark or in rows below.
These are indented.  Below them is the frame, or an empty row.")

(defvar gemini-companion-prompt--tasks nil
  "Texts that are not shown yet, the last first: lists (TEXT FIND PROBLEM).
See `gemini-companion-prompt-submit'.")

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
    (when (string-match "\\`[\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\
\u202f\u205f\u3000\ufeff]*\\([/!]\\)" text)
      (substring text (match-beginning 1)))))

(defun gemini-companion-prompt-quote (text session &optional quotation)
  "Return TEXT for the prompt of SESSION, with a backslash before some @.
It is before each one by which the CLI would read a file whose name the
user has not written: src/property.py for @property.  In a QUOTATION, only
an @ with the text property `gemini-companion-reference' names a file."
  (let ((default-directory (or (plist-get session :directory)
                               default-directory))
        ;; Most of the time would be spent on collecting garbage.
        (gc-cons-threshold (max gc-cons-threshold (* 64 1024 1024)))
        (part "\\(?:\\\\.\\|[^][\\(){} \t\n\r,;!?%s]\\)")
        names)
    (replace-regexp-in-string
     (concat "\\\\@\\|@" (format part "") "*" (format part "."))
     (lambda (word)
       (let ((name (string-replace "\\" "" (substring word 1))))
         (if (or (string-prefix-p "\\" word)
                 (get-text-property 0 'gemini-companion-reference word)
                 (save-match-data
                   (not (if (or (plist-get session :remote)
                                (file-exists-p name))
                            quotation
                          (string-search
                           (concat (and (string-search "/" name) "\n")
                                   (downcase (file-name-nondirectory name)))
                           (setq names
                                 (or names (gemini-companion-prompt--names
                                            session))))))))
             word
           (concat "\\" word))))
     text t t)))

(defun gemini-companion-prompt--names (session)
  "Return the names of files here, for a search by the CLI of SESSION.
Each is after a newline, in lower case and without its directory."
  (if (gemini-companion-clients-get (plist-get session :client) :searches)
      (downcase (mapconcat (lambda (file)
                             (concat "\n" (file-name-nondirectory file)))
                           (gemini-companion-prompt-files) ""))
    ""))

(defun gemini-companion-prompt-files ()
  "Return the absolute names of the files of the project in this directory."
  (when-let* ((project (project-current)))
    (project-files project (list default-directory))))

(defun gemini-companion-prompt--write (process string)
  (ignore-errors (process-send-string process string)))

(defun gemini-companion-prompt--paste (process text)
  (gemini-companion-prompt--write
   process
   (concat "\e[200~" (gemini-companion-prompt--clean text) "\e[201~")))

(defun gemini-companion-prompt--check-length (text)
  (when (< gemini-companion-prompt--most (length text))
    (user-error "Too much text for a prompt: %d characters; send the file"
                (length text))))

(defun gemini-companion-prompt-insert (text session)
  "Insert TEXT into the prompt of SESSION, or add it to the kill ring.
Select the terminal.  Return a message."
  (let ((name (gemini-companion-session-name session))
        (terminal (gemini-companion-session-terminal session)))
    (if-let* ((process (gemini-companion-cli-process session)))
        (progn
          (gemini-companion-prompt--begin
           text (lambda () session) 10 (format "%s may not have taken the text" name)
           (gemini-companion-prompt--mark (gemini-companion-prompt--seen-as text)
                                          process))
          (gemini-companion-prompt--paste process text)
          (gemini-companion-cli-show terminal)
          (format "In the prompt of %s: %s" name
                  (truncate-string-to-width (string-replace "\n" " " text)
                                            60 nil nil t)))
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
    (string-join
     (cons "\\[\\(?:Image \\|Paste[ d]\\|clipboard-\\)"
           (mapcar (lambda (regexp)
                     (if (string-match regexp text)
                         (regexp-quote (string-trim (match-string 0 text)))
                       regexp))
                   (list part (concat part "[^[:graph:]]*\\'"))))
     "\\|")))

(defun gemini-companion-prompt--mark (regexp process)
  "Return a mark that is shown when PROCESS has one more match of REGEXP."
  (with-current-buffer (process-buffer process)
    (cons regexp (how-many regexp (point-min) (point-max)))))

(defun gemini-companion-prompt--shown-p (mark process)
  "Return non-nil if MARK is in the terminal of PROCESS.
It is a string, or the value of `gemini-companion-prompt--mark'."
  (if (consp mark)
      (< (cdr mark) (cdr (gemini-companion-prompt--mark (car mark) process)))
    (with-current-buffer (process-buffer process)
      (save-excursion
        (goto-char (point-max))
        (when-let* ((position (search-backward mark nil t)))
          ;; The text field of a dialog is a frame in a frame.
          (forward-line 0)
          (unless (looking-at-p "│ *│") position))))))

;;;; Submitting

(defun gemini-companion-prompt-submit (text find seconds problem)
  "Submit TEXT to a session: the value of the function FIND, or nil.
Type it as soon as the prompt of the CLI takes it.  After SECONDS, or if
the terminal is killed, put it into the kill ring; the message then
begins with PROBLEM."
  (gemini-companion-prompt--begin text find seconds problem nil))

(defun gemini-companion-prompt--begin (text find seconds problem mark)
  "Begin to submit TEXT, or if MARK is non-nil, only wait until that is shown.
FIND, SECONDS and PROBLEM are as for `gemini-companion-prompt-submit'."
  (gemini-companion-prompt--check-length text)
  (let ((task (list text find problem)))
    (push task gemini-companion-prompt--tasks)
    ;; Checks are counted, as a busy Emacs has not seen what the CLI shows.
    (gemini-companion-prompt--step
     task (/ seconds gemini-companion-prompt--check-seconds)
     mark 0 (and mark 'inserted))))

(defun gemini-companion-prompt--step (task left mark shown typed)
  "Type what is next of TASK, and go on soon, at most LEFT times.
First type MARK, a space, until it is shown, then the text, with another
one unless it is a command, and then press Enter.  SHOWN checks in a row
have found MARK.  TYPED is nil before the text, `inserted' if it is all."
  (pcase-let* ((`(,text ,find ,problem) task)
               (session (funcall find))
               (process (gemini-companion-cli-process session))
               (found (and process mark
                           (gemini-companion-prompt--shown-p mark process)))
               (shown (if found (1+ shown) 0))
               (next (= shown gemini-companion-prompt--shown-checks)))
    (cond ((or (< left 0)
               (and session
                    (not (gemini-companion-session-terminal session))
                    (not (gemini-companion-session-connected-p session))))
           (gemini-companion-prompt--end task problem))
          ((and next (not typed)
                (gemini-companion-prompt--refused-p
                 task session mark process found)))
          ((and next typed)
           (gemini-companion-prompt--end task)
           (unless (eq typed 'inserted)
             (gemini-companion-prompt--enter text session process)))
          (t
           (cond (next
                  (setq mark (gemini-companion-prompt--type-text
                              text mark process found)
                        shown 0
                        typed t))
                 ((and process (not (or found typed))
                       ;; A dialog may have taken the last one.
                       (if mark (zerop (mod left 10))
                         (gemini-companion-prompt--first-p task session)))
                  (setq mark (gemini-companion-prompt--unused-mark process))
                  (gemini-companion-prompt--paste process mark)))
           (run-at-time gemini-companion-prompt--check-seconds nil
                        #'gemini-companion-prompt--step
                        task (1- left) mark shown typed)))))

(defun gemini-companion-prompt--refused-p (task session mark process position)
  "Return non-nil, and end TASK, if SESSION must not get its text.
MARK is in the prompt of PROCESS at POSITION."
  (when-let* ((obstacle
               (with-current-buffer (process-buffer process)
                 (save-excursion
                   (goto-char (1+ position))
                   (cond ((looking-at-p gemini-companion-prompt--text-behind)
                          "%s has text behind the cursor in its prompt")
                         ((or
                           ;; The footer of Copilot CLI.
                           (re-search-forward "^ \\(?:.* · \\)?Shell · " nil t)
                           (progn
                             (re-search-backward "^[ │]*[!*>]" nil t)
                             (looking-at-p "[ │]*!")))
                          "%s is in shell mode"))))))
    (gemini-companion-prompt--delete-mark mark process position)
    (gemini-companion-prompt--end
     task (format obstacle (gemini-companion-session-name session)))
    t))

(defun gemini-companion-prompt--enter (text session process)
  (gemini-companion-state-submitted session text)
  (gemini-companion-prompt--write process "\r")
  (message "Prompt submitted in %s" (buffer-name (process-buffer process))))

(defun gemini-companion-prompt--first-p (task session)
  "Return non-nil if no text is to be submitted to SESSION before TASK."
  (not (seq-some (lambda (other) (equal session (funcall (nth 1 other))))
                 (cdr (memq task gemini-companion-prompt--tasks)))))

(defun gemini-companion-prompt--end (task &optional problem)
  (setq gemini-companion-prompt--tasks (delq task gemini-companion-prompt--tasks))
  (when problem
    (gemini-companion-prompt--keep (car task) problem)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'prompt)))
  "Submit no more; put the texts into the kill ring."
  (cancel-function-timers #'gemini-companion-prompt--step)
  (dolist (task gemini-companion-prompt--tasks)
    (gemini-companion-prompt--end task "Prompt not submitted")))

(defun gemini-companion-prompt--unused-mark (process)
  (seq-find (lambda (mark)
              (not (gemini-companion-prompt--shown-p mark process)))
            (mapcar #'string (number-sequence ?\u2000 ?\u200a))
            "\u2000"))

(defun gemini-companion-prompt--delete-mark (mark process position)
  "Delete MARK at POSITION, in the prompt in PROCESS.
A slow CLI shows it only when it was typed again.  Return non-nil if it
is behind a text that the user has begun."
  (with-current-buffer (process-buffer process)
    (save-excursion
      (goto-char (1+ position))
      (gemini-companion-prompt--write
       process
       (make-string (- (skip-chars-backward mark))
                    ;; In this mode of Qwen Code, DEL deletes nothing.
                    (if (save-excursion
                          (re-search-forward "^ *-- NORMAL --" nil t))
                        ?u
                      ?\177)))
      (looking-back "[[:graph:]]" (line-beginning-position)))))

(defun gemini-companion-prompt--type-text (text mark process position)
  "Type TEXT and a space in place of MARK, at POSITION in PROCESS.
Return what is to be shown."
  (when (and (gemini-companion-prompt--delete-mark mark process position)
             (string-match-p "\\`[[:graph:]]" text))
    (setq text (concat "\n" text)))
  (let ((mark (gemini-companion-prompt--unused-mark process)))
    (cond
     ;; With a space, Enter may choose another command.
     ((string-match-p "\\`/[^ \t\n]+\\'" text)
      (setq mark (gemini-companion-prompt--mark (regexp-quote text) process))
      (gemini-companion-prompt--paste process text))
     ;; At the end of a command it would begin another word to complete.
     ((string-prefix-p "/" text)
      (gemini-companion-prompt--paste process (concat mark text)))
     (t
      (gemini-companion-prompt--paste
       process
       ;; Enter would choose a file for a name at the end.
       (concat text (and (string-match-p
                          "@\\(?:\\\\.\\|[^[:space:]]\\)*\\'" text)
                         " ")))
      ;; It is shown though a placeholder stands for TEXT.
      (gemini-companion-prompt--paste process mark)))
    mark))

;;;; Reasons

(defun gemini-companion-prompt-read (edit prompt &rest arguments)
  "Return what the user types after PROMPT, or nil if EDIT ended meanwhile.
The text is in the kill ring then.  PROMPT and ARGUMENTS are those of
`read-string'."
  (let ((typed (apply #'read-string prompt arguments)))
    (if (gemini-companion-edit-open-p edit)
        typed
      (gemini-companion-prompt--keep typed "This review has ended already")
      nil)))

(defun gemini-companion-prompt--read-reason (edit)
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
  (if (string-blank-p text)
      (message "%s" problem)
    (kill-new text)
    (message "%s; your text is in the kill ring" problem)))

(defun gemini-companion-prompt--comments (edit)
  (let* ((file (gemini-companion-edit-file edit))
         (directory (plist-get (gemini-companion-edit-session edit) :directory))
         (name (if directory (file-relative-name file directory) file)))
    (mapcar (pcase-lambda (`((,side . ,line) . ,comment))
              (format "%s:%d%s: %s" name line
                      (if (eq side 'before) " (removed line)" "")
                      comment))
            (seq-sort-by #'cdar #'< (gemini-companion-edit-comments edit)))))

;;;; Commands

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
      ;; It must not be a command of the CLI.
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

(declare-function flycheck-error-filename "ext:flycheck")
(declare-function flycheck-error-line "ext:flycheck")
(declare-function flycheck-error-message "ext:flycheck")
(declare-function flycheck-overlay-errors-in "ext:flycheck")
(declare-function flymake-diagnostic-beg "flymake" t t)
(declare-function flymake-diagnostic-buffer "flymake" t t)
(declare-function flymake-diagnostic-text "flymake" t t)
(declare-function flymake-diagnostics "flymake" t t)
(declare-function magit-current-section "ext:magit-section")
(declare-function magit-file-at-point "ext:magit-git")
(declare-function slot-value "eieio")
(defvar comint-last-input-start)
(defvar eshell-last-input-start)
(defvar flymake-mode)
(defvar org-src--beg-marker)

(defvar gemini-companion-send-alist
  '((dired-mode . gemini-companion-prompt--dired)
    (wdired-mode . gemini-companion-prompt--dired)
    (compilation-mode . gemini-companion-prompt--hits)
    (xref--xref-buffer-mode . gemini-companion-prompt--hits)
    (occur-mode . gemini-companion-prompt--hits)
    (flymake-diagnostics-buffer-mode . gemini-companion-prompt--hits)
    (flymake-project-diagnostics-mode . gemini-companion-prompt--hits)
    (flycheck-error-list-mode . gemini-companion-prompt--hits)
    (diff-mode . gemini-companion-prompt--diff)
    (magit-mode . gemini-companion-prompt--magit)
    (eshell-mode . gemini-companion-prompt--shell)
    (comint-mode . gemini-companion-prompt--shell)
    (vterm-mode . gemini-companion-prompt--shell)
    (eat-mode . gemini-companion-prompt--shell)
    (term-mode . gemini-companion-prompt--shell)
    (fundamental-mode . gemini-companion-prompt--file))
  "Alist of (MODE . FUNCTION): what `gemini-companion-send' sends.
The first element counts whose MODE is the major mode, or one that it is
derived from; `fundamental-mode' is for all modes.

FUNCTION returns a list of what is at point.  Each element is a string,
which is quoted, or a list (FILE LINES TEXT) for a reference to FILE, an
absolute file name: LINES is a number, a cons (FIRST . LAST), or nil,
and TEXT is a string from FILE or about it, or nil.")

;;;; Files

(defun gemini-companion-prompt--file ()
  "Return a reference to the lines of the region, the defun or the line.
With a diagnostic on the line of point, it has its message.  An image
or a PDF has no lines.  Without a file, return the region or paragraph."
  (let ((file (gemini-companion-text-visited (current-buffer)))
        messages)
    (cond ((null file)
           (gemini-companion-prompt--region))
          ((or (derived-mode-p 'image-mode)
               (eq 'no-conversion buffer-file-coding-system))
           (list (list file nil nil)))
          ((and (not (use-region-p))
                (setq messages (gemini-companion-prompt--diagnostics)))
           (list (list file (line-number-at-pos nil t)
                       (string-join messages "\n"))))
          (t
           (pcase-let ((`(,start . ,end)
                        (cond ((use-region-p)
                               (cons (region-beginning) (region-end)))
                              ((and (derived-mode-p 'prog-mode)
                                    (bounds-of-thing-at-point 'defun)))
                              (t
                               (cons (point) (point))))))
             ;; Nothing of the line after a newline is meant.
             (when (and (< start end) (eq (char-before end) ?\n))
               (setq end (1- end)))
             (list (list file
                         (cons (line-number-at-pos start t)
                               (line-number-at-pos end t))
                         nil)))))))

(defun gemini-companion-prompt--diagnostics ()
  (let ((line (list (line-beginning-position) (line-beginning-position 2))))
    (delete-dups
     (mapcar (lambda (text) (string-trim (string-replace "\n" " " text)))
             (append
              (and (bound-and-true-p flymake-mode)
                   (mapcar #'flymake-diagnostic-text
                           (apply #'flymake-diagnostics line)))
              (and (bound-and-true-p flycheck-mode)
                   (delq nil (mapcar #'flycheck-error-message
                                     (apply #'flycheck-overlay-errors-in
                                            line)))))))))

;;;; What is not shared

(defun gemini-companion-prompt--hidden (files)
  "Return the first of FILES that may not be shared, or nil.
A directory counts as the files in it."
  (seq-find (lambda (file)
              (gemini-companion-privacy-name-hidden-p
               (if (file-directory-p file) (expand-file-name "x" file) file)))
            files))

(defun gemini-companion-prompt--shown (buffer)
  "Return the files whose text is in BUFFER, which may visit none."
  (with-current-buffer (or (get-buffer buffer)
                           (user-error "Buffer %s was killed" buffer))
    (if (bound-and-true-p org-src--beg-marker)
        (gemini-companion-prompt--shown (marker-buffer org-src--beg-marker))
      (ensure-list
       (or (gemini-companion-text-visited (current-buffer))
           (and gemini-companion-edit-here
                (gemini-companion-edit-file gemini-companion-edit-here))
           (bound-and-true-p vc-annotate-parent-file)
           (bound-and-true-p log-view-vc-fileset)
           (bound-and-true-p magit-buffer-file-name))))))

(defun gemini-companion-prompt--dired ()
  (mapcar (lambda (file) (list file nil nil))
          (dired-get-marked-files)))

;;;; Lists of locations

(defun gemini-companion-prompt--hits ()
  (save-excursion
    (let* ((end (if (use-region-p) (region-end) (point)))
           (before (progn
                     (goto-char (if (use-region-p) (region-beginning) end))
                     (gemini-companion-prompt--near -1)))
           (found (cl-loop collect (gemini-companion-prompt--hit)
                           while (and (zerop (forward-line))
                                      (< (point) end))))
           (after (progn
                    (forward-line -1)
                    (gemini-companion-prompt--near 1))))
      (delete-dups
       (seq-filter
        ;; Lines without a location may be from the file of one before or after.
        (if (gemini-companion-prompt--hidden
             (mapcar #'car (seq-filter #'consp `(,before ,after ,@found))))
            #'consp
          #'identity)
        found)))))

(defun gemini-companion-prompt--compilation-p ()
  (or (eq 'compilation-mode major-mode)
      (and (derived-mode-p 'comint-mode)
           (bound-and-true-p compilation-arguments))))

(defun gemini-companion-prompt--near (step)
  "Return the next hit of a compilation after STEP lines, 1 or -1, or nil."
  (when (gemini-companion-prompt--compilation-p)
    (save-excursion
      (cl-loop repeat 200
               while (zerop (forward-line step))
               for hit = (gemini-companion-prompt--hit)
               when (consp hit) return hit))))

(defun gemini-companion-prompt--property (name)
  (when-let* ((location (text-property-not-all (line-beginning-position)
                                               (line-end-position) name nil)))
    (get-text-property location name)))

(defun gemini-companion-prompt--hit ()
  "Return the hit or the diagnostic on this line, or nil.
Searches have a text property on each, other lists the id of an entry."
  (let* ((line (list (line-beginning-position) (line-end-position)))
         (text (string-replace
                ;; Grep's separator is displayed as a colon.
                "\0" ":"
                (string-trim (apply #'buffer-substring-no-properties line))))
         (id (gemini-companion-prompt--property 'tabulated-list-id))
         location)
    ;; A line that was not displayed has no hit yet.
    (apply #'font-lock-ensure line)
    ;; A line of Make about a directory has a message without a location.
    (cond ((setq location (gemini-companion-prompt--location
                           (gemini-companion-prompt--property 'compilation-message)
                           text))
           (append location (list text)))
          ((setq location (gemini-companion-prompt--property 'xref-item))
           (setq location (xref-item-location location))
           (list (expand-file-name (xref-location-group location))
                 (xref-location-line location) text))
          ((setq location (gemini-companion-prompt--property 'occur-target))
           ;; Emacs 28 has a marker, later versions a list of pairs of them.
           (setq location (if (consp location) (caar location) location))
           (gemini-companion-prompt--at (marker-buffer location) location text))
          ((setq location (plist-get (and (listp id) id) :diagnostic))
           (gemini-companion-prompt--at (flymake-diagnostic-buffer location)
                                        (flymake-diagnostic-beg location)
                                        (flymake-diagnostic-text location)))
          (id (list (flycheck-error-filename id) (flycheck-error-line id)
                    (flycheck-error-message id)))
          ;; In results of a search, it may be from a file that is not shared.
          ((and (gemini-companion-prompt--compilation-p)
                (not (string-empty-p text)))
           text))))

(defun gemini-companion-prompt--location (message text)
  "Return (FILE LINE) of MESSAGE, a text property in a compilation, or of TEXT.
Any number after a colon may be taken for the line of a file that does not
exist, and Emacs does not know the formats of all compilers."
  (seq-find
   (lambda (location)
     (and location
          (or (file-exists-p (car location))
              (gemini-companion-prompt--hidden (list (car location))))))
   (list (when-let* ((loc (and message (compilation--message->loc message))))
           (list (apply #'expand-file-name
                        (car (compilation--loc->file-struct loc)))
                 (compilation--loc->line loc)))
         (when (and (gemini-companion-prompt--compilation-p)
                    (string-match "\\([^][ \t\"'(){}<>:]+\\):\\([0-9]+\\)"
                                  text))
           (list (expand-file-name (match-string 1 text))
                 (string-to-number (match-string 2 text)))))))

(defun gemini-companion-prompt--at (buffer location text)
  "Return a reference with TEXT to LOCATION, a position in BUFFER.
For a file that is not visited, Flymake has its name, and (LINE . COLUMN).
If BUFFER visits no file, return TEXT; if it was killed, nil."
  (cond ((stringp buffer)
         (list buffer (car location) text))
        ((buffer-live-p buffer)
         (if-let* ((file (or (gemini-companion-text-visited buffer)
                             (gemini-companion-prompt--hidden
                              (gemini-companion-prompt--shown buffer)))))
             (list file (gemini-companion-text-line buffer location) text)
           ;; A line of these may be from any file.
           (unless (seq-some (apply-partially
                              #'provided-mode-derived-p
                              (buffer-local-value 'major-mode buffer))
                             '(compilation-mode diff-mode magit-mode))
             text)))))

;;;; Texts

(defun gemini-companion-prompt--diff ()
  (save-excursion
    (let ((end (line-end-position))
          (hunk (or (ignore-errors (diff-bounds-of-hunk))
                    (user-error "No hunk here"))))
      ;; In the header of a file, the functions of Diff mode find another one.
      (goto-char (car hunk))
      (apply #'gemini-companion-prompt--hunk
             ;; A binary file has no hunk, and the next one is of another file.
             (unless (re-search-backward "^\\(?:diff\\|Index:\\) "
                                         (min end (point)) t)
               (seq-mapcat #'gemini-companion-prompt--diff-files
                           (diff-hunk-file-names)))
             hunk))))

(defun gemini-companion-prompt--diff-files (name)
  "Return the files that NAME, in a diff, may stand for.
It may have a prefix, and be relative to this directory or the root."
  (let* ((name (if (string-prefix-p "\"" name)
                   ;; Git quotes the bytes of other than ASCII letters.
                   (decode-coding-string (read name) 'utf-8)
                 name))
         (bare (replace-regexp-in-string "\\`[^/]+/" "" name)))
    (cond ((string-match "\\`#<buffer \\(.*\\)>\\'" name)
           (gemini-companion-prompt--shown (match-string 1 name)))
          ;; A command line also has options, and quoted spaces.
          ((not (string-match-p "\\`\\(?:/dev/null\\'\\|[-\\]\\)" name))
           (seq-mapcat
            (lambda (directory)
              (mapcar (lambda (name) (expand-file-name name directory))
                      (cond ((not (string-match-p "\\`[[:alnum:]]/" name))
                             (list name bare))
                            ((file-exists-p name) (list bare name))
                            (t (list bare)))))
            (list (vc-root-dir) default-directory))))))

(defun gemini-companion-prompt--magit ()
  "Return the hunk at point, with the name of its file."
  ;; The compiler would warn of the name of a slot that it does not know.
  (let ((slot (lambda (name &optional section)
                (ignore-errors
                  (slot-value (or section (magit-current-section)) name)))))
    (gemini-companion-prompt--hunk
     (delq nil
           (list (magit-file-at-point)
                 ;; The file may be renamed or copied.
                 (or (funcall slot 'source)
                     (funcall slot 'source (funcall slot 'parent)))))
     (funcall slot 'start) (funcall slot 'end))))

(defun gemini-companion-prompt--hunk (files start end)
  "Return the hunk of FILES from START to END.
It has the name of one that is hidden, or else of one that exists."
  (let ((text (string-trim (buffer-substring-no-properties start end)
                           "\n+" "\n+"))
        (files (mapcar #'expand-file-name files)))
    (list (list (or (gemini-companion-prompt--hidden
                     (append files (gemini-companion-prompt--shown
                                    (current-buffer))))
                    (seq-find #'file-exists-p files)
                    (car files)
                    (user-error "No hunk or file here"))
                nil
                ;; An untracked file in Magit is only its name.
                (and (string-search "\n" text)
                     (gemini-companion-prompt--fenced text "diff"))))))

(defun gemini-companion-prompt--shell ()
  "Return the region, or the last command and the end of its output."
  (if-let* ((function (cond ((gemini-companion-prompt--compilation-p)
                             #'gemini-companion-prompt--hits)
                            ((use-region-p) #'gemini-companion-prompt--region))))
      (funcall function)
    (save-excursion
      (if-let* ((start (or (bound-and-true-p eshell-last-input-start)
                           (bound-and-true-p comint-last-input-start))))
          (goto-char start)
        ;; In a terminal that is suspended, point may be anywhere.
        (unless (gemini-companion-cli-takes-keys-p)
          (goto-char (point-max))
          (skip-chars-backward " \t\n"))
        (let ((prompt (replace-regexp-in-string
                       ;; A command may be half typed.
                       "\\`\\([^#$%>]*[#$%>]\\) .*\\| +\\'" "\\1"
                       (buffer-substring-no-properties
                        (line-beginning-position) (point)))))
          (forward-line 0)
          ;; While a command runs, there may be none.
          (or (re-search-backward (concat (if (string-empty-p prompt) "\\`" "^")
                                          (regexp-quote prompt))
                                  nil t)
              ;; It may have the directory or the time.
              (re-search-backward (format "^[^#$%%>\n]*%s "
                                          (regexp-quote (substring prompt -1)))
                                  nil 'move))))
      (let* ((lines (split-string (string-trim (buffer-substring-no-properties
                                                (line-beginning-position)
                                                (point-max)))
                                  "\n"))
             (left (- (length lines) 201)))
        (when (< 0 left)
          (setcdr lines (cons (format "[%d lines left out]" left)
                              (last lines 200))))
        (list (gemini-companion-prompt--fenced (string-join lines "\n")))))))

(defun gemini-companion-prompt--region ()
  (let ((text (or (if (use-region-p)
                      (buffer-substring-no-properties (region-beginning)
                                                      (region-end))
                    (thing-at-point 'paragraph t))
                  "")))
    (when (string-blank-p text)
      (user-error "Nothing here; select a region"))
    (list (if-let* ((file (gemini-companion-prompt--hidden
                           (gemini-companion-prompt--shown (current-buffer)))))
              (list file nil nil)
            (format "From %s:\n%s" (buffer-name)
                    (gemini-companion-prompt--fenced
                     text
                     (when (derived-mode-p 'prog-mode)
                       (string-remove-suffix "-mode"
                                             (symbol-name major-mode)))))))))

(defun gemini-companion-prompt--fenced (text &optional language)
  (let ((fence "```"))
    (while (string-search fence text) (setq fence (concat fence "`")))
    (concat fence language "\n" (string-trim text "\n+" "\n+") "\n" fence)))

;;;; Prompt

(defun gemini-companion-prompt-things ()
  "Return what is at point, as `gemini-companion-send-alist' has it."
  (or (funcall (assoc-default nil gemini-companion-send-alist
                              (lambda (mode _)
                                (or (eq mode 'fundamental-mode)
                                    (derived-mode-p mode)))))
      (user-error "Nothing here to send")))

(defun gemini-companion-prompt-sessions (file)
  "Return the sessions in whose directory, or on whose host, FILE is."
  (seq-filter (lambda (session)
                (car (gemini-companion-prompt--names-for file session)))
              (gemini-companion-sessions)))

(defun gemini-companion-prompt--names-for (file session)
  "Return (NAME . LOCAL) for FILE, or nil if it is not where SESSION is.
NAME is its name in the directory or on the host of SESSION, or nil, and
LOCAL the name on this machine, in its true directory; it may be a link."
  (let ((remote (plist-get session :remote))
        (directory (plist-get session :directory))
        (there (gemini-companion-names-remote file)))
    (cond (remote
           (when (equal remote (car there))
             (cons (cdr there)
                   (gemini-companion-names-copy
                    (concat remote (cdr there))))))
          ((not (file-remote-p file))
           (let* ((file (expand-file-name file))
                  (local (concat (file-truename (file-name-directory file))
                                 (file-name-nondirectory file)))
                  (root (and directory (file-truename directory))))
             (cons (and root
                        (gemini-companion-text-in-directory-p
                         (file-name-as-directory local) root)
                        (file-relative-name local root))
                   local))))))

(defvar gemini-companion-prompt--agreed nil
  "Files not shared or outside that may be named, while a text is made.")

(defun gemini-companion-prompt-description (things session)
  "Return a text for the prompt of SESSION that describes THINGS.
They are as `gemini-companion-prompt-things' returns them."
  (let* ((gemini-companion-prompt--agreed nil)
         (text (mapconcat
                (lambda (thing)
                  (if (stringp thing)
                      thing
                    (apply #'gemini-companion-prompt--reference session thing)))
                things "\n"))
         (text (gemini-companion-prompt-quote text session t)))
    ;; It must not be a command of the CLI, as the name of a file can be.
    (concat (and (gemini-companion-prompt-command text) "About ") text)))

(defun gemini-companion-prompt--reference (session file lines text)
  "Return a reference for SESSION to FILE, with LINES and TEXT.
Ask about a file that is not shared, and omit its TEXT, or outside the
directory of the CLI.  A file that does not exist is only named, and so
is a directory, as the CLI would read all files in it."
  ;; It would name another file.
  (when (string-match-p "[\0-\37\177\u0080-\u009f]" file)
    (user-error "A prompt cannot name a file with a control character"))
  (pcase-let* ((`(,name . ,file)
                (or (gemini-companion-prompt--names-for file session)
                    (user-error "%s is not a file on the machine of %s" file
                                (gemini-companion-session-name session))))
               (hidden (gemini-companion-prompt--hidden (list file)))
               (`(,first . ,last) (if (consp lines) lines (cons lines lines))))
    (unless (or (and name (not hidden))
                (member file gemini-companion-prompt--agreed)
                (y-or-n-p (format (if hidden
                                      "%s is not shared; name it anyway? "
                                    "%s is outside the project of the CLI; \
name it anyway? ")
                                  (abbreviate-file-name file))))
      (user-error "Nothing was sent"))
    (push file gemini-companion-prompt--agreed)
    (concat (if (or (plist-get session :remote) (file-regular-p file))
                (propertize
                 (concat "@" (gemini-companion-prompt-escape (or name file)))
                 'gemini-companion-reference t)
              (or name file))
            (cond ((null lines) "")
                  ((eql first last) (format " (line %d)" first))
                  (t (format " (lines %d-%d)" first last)))
            (and text (not hidden)
                 (concat (if (string-search "\n" text) ":\n" ": ")
                         text)))))

(defun gemini-companion-prompt-escape (name)
  "Return the file NAME, quoted for the prompt of a CLI."
  (cond ((not (eq system-type 'windows-nt))
         (replace-regexp-in-string
          ;; A dot at the end would end the sentence.
          "[][ (){};|*?$`'\"#&<>!~\\,@]\\|\\.\\'" "\\\\\\&" name))
        ((string-match-p "[][ (){}^=;!'+,`~%$@#&]" name)
         (concat "\"" name "\""))
        (t name)))

;;;; Command

;;;###autoload
(defun gemini-companion-send (&optional compose)
  "Insert what is at point into the prompt of a CLI, and go there.
`gemini-companion-send-alist' defines what that is in each mode: in
a file, a reference to the lines of the region, the defun or the line;
elsewhere the marked files, the hit, the hunk, the last command and its
output, or the region.  The CLI is the one whose directory has the file,
or else you are asked.  If it runs outside of this Emacs, add the text
to the kill ring.

With COMPOSE, a prefix argument, insert it into the buffer of
\\[gemini-companion-compose], where you can write more."
  (interactive "P")
  (let* ((things (gemini-companion-prompt-things))
         (session (gemini-companion-session-read
                   (or (gemini-companion-prompt-sessions
                        (or (seq-some #'car-safe things) default-directory))
                       (gemini-companion-sessions)
                       (user-error "No CLI is connected; \
M-x gemini-companion-run starts one, /ide enable (/ide in Copilot CLI) connects \
a running one"))))
         (text (gemini-companion-prompt-description things session))
         (unsaved (and buffer-file-name (buffer-modified-p))))
    (if compose
        (gemini-companion-compose session text)
      (message "%s%s"
               (gemini-companion-prompt-insert
                (concat text (if (string-search "\n" text) "\n" " ")) session)
               (if unsaved "; save the buffer first" "")))))

(provide 'gemini-companion-prompt)
;;; gemini-companion-prompt.el ends here
