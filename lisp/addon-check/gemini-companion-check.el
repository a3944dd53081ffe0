;;; gemini-companion-check.el --- A command of the project for a turn  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Check a turn by a command such as "make test", which runs by `compile' in a buffer
;; of its own.  The note of the turn in the overview has the result.
;;
;; The command runs what a CLI may just have written.  So it is run only by a key of the
;; user, who has seen all of it: no option, hook, timer or local variable runs it, or
;; agrees to it.  The user's yes is for that text in that directory, in this Emacs; and
;; he is asked again while what such a command reads first has unreviewed changes.

;;; Code:

(require 'cl-lib)
(require 'compile)
(require 'subr-x)
(require 'gemini-companion-changes)
(require 'gemini-companion-choice)
(require 'gemini-companion-context)
(require 'gemini-companion-edit)
(require 'gemini-companion-label)
(require 'gemini-companion-names)
(require 'gemini-companion-overview)
(require 'gemini-companion-overview-row)
(require 'gemini-companion-page)
(require 'gemini-companion-part)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)

;;;; Keys

(defvar gemini-companion-check-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map [remap recompile] #'gemini-companion-check--again)
    map)
  "Keys in the buffer of a check.")

;;;; State

(cl-defstruct (gemini-companion-check--run
               (:noinline t)
               (:constructor gemini-companion-check--make)
               (:copier nil))
  "A run of COMMAND in the directory ROOT for TURN of SESSION.
BUFFER has its output, unless a later run has replaced it.  BEGAN and ENDED are
times in seconds; ENDED is nil while it runs.  FAILURE is nil, or a phrase such
as \"3 errors\".  BETWEEN is non-nil if a CLI may have worked there meanwhile."
  command root turn session buffer (began (float-time)) ended failure between)

(defvar gemini-companion-check--runs (make-hash-table :test 'eq)
  "Table from turns to their last runs.")

(defvar-local gemini-companion-check--here nil
  "The run whose output the current buffer has.")

(defvar gemini-companion-check--agreed nil
  "What the user has agreed to run in this Emacs, a list of (ROOT . COMMAND).
The last one comes first.")

;; Emacs may set local variables without a question.
(add-to-list 'ignored-local-variables 'gemini-companion-check--agreed)

(defvar gemini-companion-check--history nil
  "The commands that the user has typed, for the minibuffer.")

(defconst gemini-companion-check--read-first
  (concat
   "\\`"
   (regexp-opt
    '("makefile" "gnumakefile" "cmakelists.txt" "configure" "meson.build" "sconstruct"
      "wscript" "justfile" "taskfile.yml" "taskfile.yaml" "rakefile" "gemfile" "dockerfile"
      "package.json" ".npmrc" ".yarnrc.yml" ".babelrc" ".mocharc.json" "deno.json"
      "conftest.py" "setup.py" "setup.cfg" "pyproject.toml" "tox.ini" "pytest.ini"
      "noxfile.py" "tasks.py" "manage.py" "sitecustomize.py" "usercustomize.py"
      "build.rs" "cargo.toml" "go.mod" "pom.xml" "build.xml" "build" "build.bazel"
      "workspace" ".bazelrc" "gradlew" "mvnw" "mix.exs" "rebar.config" "dune"
      "eask" "cask" ".env" ".envrc" ".gitconfig"))
   "\\'"
   "\\|\\.\\(?:mk\\|cmake\\|ac\\|am\\|in\\|el\\|sh\\|bash\\|gradle\\|kts\\|sbt\\|nix\\|"
   "gemspec\\|cabal\\|csproj\\|targets\\|props\\|pth\\|bat\\|cmd\\|ps1\\)\\'"
   "\\|[.]config[.][cm]?[jt]s\\'\\|\\`\\.[a-z]+rc\\.[cm]?js\\'")
  "Regexp for base names of files that programs such as make read and run first.
Case is ignored.")

(defvar gemini-companion-check-most-output (* 4 1024 1024)
  "Number of characters of output after which a command is killed.")

;;;; The command

(defun gemini-companion-check--root (session)
  "Return the directory for a command of SESSION, a true name."
  (let ((directory (gemini-companion-session-directory session))
        (name (gemini-companion-session-name session)))
    (cond ((gemini-companion-session-remote session)
           (user-error "%s runs on another host; run the command there by M-x compile"
                       name))
          ((null directory)
           (user-error "Directory of %s is unknown; use M-x compile" name))
          ((not (file-directory-p directory))
           (user-error "Directory of %s was removed" name)))
    (file-name-as-directory (gemini-companion-text-true-name directory))))

(defun gemini-companion-check--valid (command)
  "Return COMMAND, without blanks around it, if all of it can be shown, or nil."
  (let ((command (and (stringp command)
                      (< (length command) 10000)
                      (gemini-companion-text-trim command))))
    (and command
         (not (string-empty-p command))
         (equal command (gemini-companion-text-escaped command))
         (substring-no-properties command))))

(defun gemini-companion-check--of-project (root)
  "Return the `compile-command' of the directory variables for ROOT, or nil.
Nothing is set or evaluated.  A project may have written it, so it is only what
the minibuffer begins with."
  (when (and enable-local-variables enable-dir-local-variables)
    (with-temp-buffer
      (setq default-directory root)
      (let ((enable-local-variables :safe)
            (enable-local-eval nil))
        (hack-dir-local-variables)
        (alist-get 'compile-command file-local-variables-alist)))))

(defun gemini-companion-check--read (root)
  "Read a command for ROOT; signal an error if it is blank or cannot be shown."
  (let* ((default-directory root)
         (text (read-shell-command
                (format "Check in %s by: " (gemini-companion-names-absolute root))
                (or (cdr (assoc root gemini-companion-check--agreed))
                    (gemini-companion-check--valid
                     (gemini-companion-check--of-project root))
                    (gemini-companion-check--valid (default-value 'compile-command)))
                'gemini-companion-check--history)))
    (cond ((string-blank-p text)
           (user-error "No command; type one, such as make test"))
          ((gemini-companion-check--valid text))
          (t (user-error "Command has invisible characters: %s; put it into a script"
                         (gemini-companion-text-escaped-line text 60))))))

;;;; What it reads first

(defun gemini-companion-check--unreviewed-p (row)
  "Return non-nil if ROW, of a file, has changes that nobody has reviewed.
If that is unknown, so is the answer."
  (let ((edit (gemini-companion-overview-row-edit row)))
    (or (gemini-companion-overview-row-left row)
        (gemini-companion-overview-row-problem row)
        ;; A file that was deleted, or is not in UTF-8, has no record.
        (and (null (gemini-companion-overview-row-record row))
             (memq (gemini-companion-edit-final-answer edit) '(unreviewed automatic))
             (gemini-companion-changes-there-p edit)))))

(defun gemini-companion-check--names (row)
  "Return the names of the files of ROW, a list."
  (delete-dups (append (and (gemini-companion-overview-row-path row)
                            (list (gemini-companion-overview-row-path row)
                                  (gemini-companion-overview-row-file row)))
                       (gemini-companion-changes-names
                        (gemini-companion-overview-row-edit row)))))

(defun gemini-companion-check--reads-p (command name)
  "Return non-nil if COMMAND may read or run the file NAME before all else."
  (let ((base (file-name-nondirectory name))
        (file-name-handler-alist nil)
        (case-fold-search t))
    (or (string-match-p gemini-companion-check--read-first base)
        (member base (mapcar #'file-name-nondirectory
                             (split-string command "[][ \t\"'`(){}<>;&|=]+" t))))))

(defun gemini-companion-check--unreviewed (command root session)
  "Return the sorted names of unreviewed files that are read by COMMAND first.
They are in ROOT, or the CLI of SESSION has written them, in any of its turns:
this turn may only use what an earlier one has written."
  (sort
   (cl-loop for row in (gemini-companion-overview-row-flat
                        (gemini-companion-overview-rows root))
            when (and (eq 'file (gemini-companion-overview-row-kind row))
                      (gemini-companion-check--unreviewed-p row))
            append (seq-filter
                    (lambda (name)
                      (and (gemini-companion-check--reads-p command name)
                           (or (gemini-companion-text-in-directory-p name root)
                               (gemini-companion-session-same-p
                                session (gemini-companion-overview-row-session row)))))
                    (gemini-companion-check--names row))
            into names
            finally return (delete-dups names))
   #'string<))

;;;; The question

(defun gemini-companion-check--room ()
  "Return how many columns of a question the minibuffer can show at once."
  (let* ((window (minibuffer-window))
         (most max-mini-window-height)
         (lines (if (or (null resize-mini-windows) (default-value 'truncate-lines))
                    1
                  (if (floatp most) (floor (* most (frame-height (window-frame window)))) most))))
    (* (max 1 lines) (- (window-width window) 2))))

(defun gemini-companion-check--question (command root files)
  "Return the question whether to run COMMAND in ROOT.
FILES are the names of unreviewed files that it reads first."
  (let ((shown (seq-take files 3)))
    (concat
     (and files
          (format "Not reviewed: %s%s.  "
                  (mapconcat (lambda (name)
                               (gemini-companion-names-shown
                                (if (gemini-companion-text-in-directory-p name root)
                                    (substring name (length root))
                                  name)
                                40))
                             shown ", ")
                  (if (length> files (length shown))
                      (format " and %d more" (- (length files) (length shown)))
                    "")))
     (format "Run in %s: %s?" (gemini-companion-names-absolute root) command))))

(defun gemini-companion-check--ask (command root files)
  "Ask whether to run COMMAND in ROOT; signal an error unless the answer is yes.
FILES are the names of unreviewed files that it reads first."
  (let ((question (gemini-companion-check--question command root files)))
    ;; The end of a longer one would be hidden; the keys come after it.
    (when (< (gemini-companion-check--room) (+ 10 (string-width question)))
      (user-error "Command is too long to show all of it; put it into a script"))
    (unless (eq ?y (gemini-companion-choice-key question '(?y ?n)))
      (user-error "Command not run"))))

;;;; A run

(defun gemini-companion-check--between-p (root began)
  "Return non-nil if a CLI may not have written all files in ROOT yet.
It works there, its state is unknown, or it has written there since BEGAN."
  (or (seq-some
       (lambda (session)
         (when-let* ((directory (gemini-companion-session-directory session))
                     ((not (gemini-companion-session-remote session)))
                     ((memq (gemini-companion-session-state session)
                            '(working waiting unknown)))
                     (directory (file-name-as-directory (file-truename directory))))
           (or (string-prefix-p root directory)
               (string-prefix-p directory root))))
       (gemini-companion-sessions))
      (seq-some (lambda (edit)
                  (and (< began (gemini-companion-edit-since edit))
                       (gemini-companion-text-in-directory-p
                        (gemini-companion-edit-true-name edit) root)))
                (gemini-companion-edits))))

(define-derived-mode gemini-companion-check-mode compilation-mode "Check"
  "Major mode for the output of a command that checks a turn.

\\{gemini-companion-check-mode-map}"
  :interactive nil)

(defun gemini-companion-check--name (root)
  "Return the name of the buffer with the output of a command in ROOT."
  (format "*gemini check: %s*" (gemini-companion-names-absolute root)))

(defun gemini-companion-check--end-previous (root)
  "Kill the running command in ROOT; signal an error unless the user agrees.
`compilation-start' would ask, when it is about to start the next one."
  (when-let* ((buffer (get-buffer (gemini-companion-check--name root)))
              (process (get-buffer-process buffer))
              ((process-live-p process)))
    (unless (gemini-companion-choice-yes-or-no-p "Previous check is running; kill it? ")
      (user-error "Previous check is still running"))
    (when (process-live-p process)
      (interrupt-process process)
      (sit-for 1)
      (delete-process process))))

(defun gemini-companion-check--start (run)
  "Start RUN, without showing its buffer."
  (let* ((root (gemini-companion-check--run-root run))
         (name (gemini-companion-check--name root))
         (default-directory root)
         ;; `compilation-start' goes itself to where the command begins by cd.
         (file-name-handler-alist nil)
         ;; No window and no key changes before the user goes there.
         (display-buffer-overriding-action '(display-buffer-no-window
                                             (allow-no-window . t)))
         (compilation-auto-jump-to-first-error nil)
         (compilation-scroll-output nil)
         (next-error-last-buffer next-error-last-buffer)
         (buffer (compilation-start (gemini-companion-check--run-command run)
                                    'gemini-companion-check-mode
                                    (lambda (_mode) name)))
         (process (get-buffer-process buffer)))
    (setf (gemini-companion-check--run-buffer run) buffer
          (gemini-companion-check--run-between run)
          (gemini-companion-check--between-p root (gemini-companion-check--run-began run)))
    (puthash (gemini-companion-check--run-turn run) run gemini-companion-check--runs)
    (set-process-filter process #'gemini-companion-check--filter)
    (with-current-buffer buffer
      (setq gemini-companion-check--here run)
      (setq-local revert-buffer-function
                  (lambda (&rest _) (gemini-companion-check--again)))
      ;; M-x recompile would run it without a question.
      (setf (nth 2 compilation-arguments) #'gemini-companion-check--refuse)
      (add-hook 'compilation-finish-functions
                (lambda (&rest _) (gemini-companion-check--end run process)) nil t)
      (add-hook 'kill-buffer-hook
                (lambda () (gemini-companion-check--end run nil)) nil t))
    (gemini-companion-check--redraw)))

(defun gemini-companion-check--refuse (_mode)
  "Signal an error in place of returning the name of a buffer."
  (user-error "A check asks before it runs a command; g checks again"))

(defun gemini-companion-check--filter (process text)
  "Insert TEXT of PROCESS as `compilation-filter', and search for errors.
Long lines are broken, as its regexps take a minute for some of 8000 characters;
and Tramp does not connect to a host that TEXT names.  A command that prints too
much is killed."
  (when-let* ((buffer (process-buffer process))
              ((buffer-live-p buffer)))
    (let ((file-name-handler-alist nil)
          (columns (with-current-buffer buffer
                     (save-excursion
                       (goto-char (process-mark process))
                       (- (point) (line-beginning-position))))))
      (compilation-filter process
                          (concat (and (<= 300 columns) "\n")
                                  (replace-regexp-in-string
                                   "[^\n]\\{300\\}" "\\&\n" text t))))
    (when (< gemini-companion-check-most-output (buffer-size buffer))
      (kill-process process))))

(defun gemini-companion-check--end (run process)
  "Record that RUN has ended.
PROCESS is that of its command; it is nil if its buffer is being killed."
  (unless (gemini-companion-check--run-ended run)
    (setf (gemini-companion-check--run-ended run) (float-time)
          (gemini-companion-check--run-failure run)
          (cond ((not (and process (eq 'exit (process-status process)))) "killed")
                ((= 0 (process-exit-status process)) nil)
                ((= 0 compilation-num-errors-found)
                 (format "exit code %d" (process-exit-status process)))
                (t (format (ngettext "%d error" "%d errors" compilation-num-errors-found)
                           compilation-num-errors-found)))
          (gemini-companion-check--run-between run)
          (or (gemini-companion-check--run-between run)
              (gemini-companion-check--between-p
               (gemini-companion-check--run-root run)
               (gemini-companion-check--run-began run))))
    (gemini-companion-check--redraw)))

(defun gemini-companion-check--errors ()
  "Return the first ten errors in this buffer.
The value is a list of (LINE DIRECTORY FILE): the text of the line, and the
absolute names of the directory in which it was printed and of its file."
  (let ((file-name-handler-alist nil)
        (compilation-skip-threshold 2)
        (errors nil))
    (save-excursion
      (goto-char (point-min))
      ;; There is no further one.
      (ignore-error user-error
        (dotimes (_ 10)
          (pcase-let* ((error (compilation-next-error 1))
                       (`(,name ,printed-in)
                        (compilation--file-struct->file-spec
                         (compilation--loc->file-struct
                          (compilation--message->loc error))))
                       ;; A line of make may name another directory.
                       (directory (expand-file-name (or printed-in default-directory))))
            (push (list (buffer-substring-no-properties (line-beginning-position)
                                                        (line-end-position))
                        directory (gemini-companion-names-in directory name))
                  errors)))))
    (nreverse errors)))

(defun gemini-companion-check--redraw ()
  "Draw the overview again, if it is visible."
  (when-let* ((buffer (gemini-companion-overview-buffer)))
    (gemini-companion-page-refresh-soon buffer)))

(defun gemini-companion-check--buffer (run)
  "Return the buffer with the output of RUN, or signal an error."
  (let ((buffer (gemini-companion-check--run-buffer run)))
    (unless (and (buffer-live-p buffer)
                 (eq run (buffer-local-value 'gemini-companion-check--here buffer)))
      (user-error "Output of this check is gone; V checks again"))
    buffer))

;;;; The note

(defun gemini-companion-check-note (turn)
  "Return the note about the last check of TURN, or nil.
See `gemini-companion-overview-row-turn-note-function'."
  (when-let* ((run (gethash turn gemini-companion-check--runs)))
    (list (gemini-companion-check--text run)
          (lambda () (interactive) (gemini-companion-check--visit run))
          (and (gemini-companion-check--run-failure run)
               (lambda () (gemini-companion-check--opening run))))))

(defun gemini-companion-check--text (run)
  "Return the text of the note about RUN."
  (pcase-let* (((cl-struct gemini-companion-check--run command began ended failure
                                                           between)
                run)
               (name (gemini-companion-names-shown command 40))
               (during (if between ", maybe of a state in between" ""))
               (seconds (and ended
                             (format-seconds "%h h %m min %z%s s" (- ended began)))))
    (cond ((null ended)
           (propertize (format "Running since %s: %s"
                               (format-time-string "%H:%M" began) name)
                       'face 'shadow))
          (failure
           (propertize (format "%s %s: %s%s" (gemini-companion-text-sign ?\u2717 "x")
                               name failure during)
                       'face 'gemini-companion-file-remark))
          (t
           (propertize (format "%s %s %s%s" (gemini-companion-text-sign ?\u2713 "ok")
                               name seconds during)
                       'face 'success)))))

(defun gemini-companion-check--visit (run)
  "Show the output of RUN, and let `next-error' go to its errors."
  (let ((buffer (gemini-companion-check--buffer run)))
    (setq next-error-last-buffer buffer)
    (pop-to-buffer buffer '(nil (category . gemini-companion-check)))))

(defun gemini-companion-check--opening (run)
  "Return what the next prompt is to begin with after RUN has failed.
It has the first errors, but none that names a file that is not shared."
  (let* ((root (gemini-companion-check--run-root run))
         (session (gemini-companion-check--run-session run))
         (command (gemini-companion-check--run-command run))
         (errors (ignore-error user-error
                   (with-current-buffer (gemini-companion-check--buffer run)
                     (seq-take
                      (seq-filter
                       (pcase-lambda (`(,line ,directory ,file))
                         ;; What is not there is unknown.
                         (and (let ((file-name-handler-alist nil))
                                (file-exists-p file))
                              (gemini-companion-context-text-shared-p file session)
                              (gemini-companion-check--shared-p line root session)
                              (gemini-companion-check--shared-p line directory session)))
                       (gemini-companion-check--errors))
                      5)))))
    (concat (if (gemini-companion-check--shared-p command root session)
                (format "`%s`" command)
              "The check")
            " failed: " (gemini-companion-check--run-failure run)
            (mapconcat (lambda (error)
                         (concat "\n> " (gemini-companion-text-escaped-line (car error) 160)))
                       errors ""))))

(defun gemini-companion-check--shared-p (text directory session)
  "Return non-nil if TEXT names no file that the CLI of SESSION may not see.
Each word counts as a name, relative to DIRECTORY."
  (seq-every-p (lambda (word)
                 (or (not (string-match-p "[[:alnum:]]" word))
                     (and (not (string-prefix-p "~" word))
                          (ignore-errors
                            (gemini-companion-context-text-shared-p
                             (gemini-companion-names-in directory word) session)))))
               (split-string text "[][ \t\"'`(){}<>;&|=:,]+" t)))

;;;; Life

(cl-defmethod gemini-companion-part-stop ((_part (eql 'check)))
  "Forget what has run, and what the user has agreed to.
Without the mode, it is unknown what is not reviewed."
  (clrhash gemini-companion-check--runs)
  (setq gemini-companion-check--agreed nil))

;;;; Commands

(defun gemini-companion-check--turn (turn session other)
  "Check TURN of SESSION by the command of its project, or ask for one.
If OTHER is non-nil, ask for another one."
  (let* ((root (gemini-companion-check--root session))
         (agreed (assoc root gemini-companion-check--agreed))
         (command (if (or other (null agreed))
                      (gemini-companion-check--read root)
                    (cdr agreed))))
    (save-some-buffers (not compilation-ask-about-save)
                       (or compilation-save-buffers-predicate
                           (lambda ()
                             (and buffer-file-name
                                  (gemini-companion-text-in-directory-p
                                   (file-truename buffer-file-name) root)))))
    (let ((files (gemini-companion-check--unreviewed command root session)))
      (unless (and (null files)
                   (member (cons root command) gemini-companion-check--agreed))
        (gemini-companion-check--ask command root files))
      (let ((pair (cons root command)))
        (setq gemini-companion-check--agreed
              (cons pair (delete pair gemini-companion-check--agreed))))
      (gemini-companion-check--end-previous root)
      (unless (equal files (gemini-companion-check--unreviewed command root session))
        (user-error "Files have changed since the question; type the key again")))
    (gemini-companion-check--start
     (gemini-companion-check--make :command command :root root
                                   :turn turn :session session))))

(defun gemini-companion-check (&optional other)
  "Run a command of the project to check the turn at point, such as make test.
The first time in a directory, or with OTHER, a prefix argument, ask for the
command.  You are shown all of it, and asked before it is run, once in this
Emacs; but each time while files that such a command reads first, such as a
Makefile, have unreviewed changes.

The result is in a row below the turn."
  (interactive "P" gemini-companion-overview-mode)
  (let ((row (gemini-companion-overview-turn-row)))
    (gemini-companion-check--turn (gemini-companion-overview-row-turn row)
                                  (gemini-companion-overview-row-session row)
                                  other)))

(defun gemini-companion-check--again (&optional other)
  "Check the turn of this buffer again, as `gemini-companion-check' with OTHER."
  (interactive "P" gemini-companion-check-mode)
  (let ((run (or gemini-companion-check--here
                 (user-error "No check in this buffer"))))
    (gemini-companion-check--turn (gemini-companion-check--run-turn run)
                                  (gemini-companion-check--run-session run)
                                  other)))

(provide 'gemini-companion-check)
;;; gemini-companion-check.el ends here
