;;; gemini-companion-status.el --- Status and diagnostics  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A buffer that shows whether a CLI is connected and, if none is, why.  It has a
;; verdict, the problems with remedies and buttons, the state, and one line about the
;; checks that passed.  The buffer is a page, see gemini-companion-page.el.  It is
;; redrawn when the server has answered a check, when CLIs connect, and when sharing is
;; paused or resumed; a button acts only if its line is still true.

;;; Code:

(require 'gemini-companion-cli)
(require 'gemini-companion-client-settings)
(require 'gemini-companion-clients)
(require 'gemini-companion-context)
(require 'gemini-companion-install)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-page)
(require 'gemini-companion-part)
(require 'gemini-companion-privacy)
(require 'gemini-companion-roots)
(require 'gemini-companion-rules)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-terminal)
(require 'gemini-companion-text)
(require 'map)

;;;; State

(defconst gemini-companion-status-titles
  '("Server" "Start" "CLI" "Settings" "Sharing" "Remote host"
    "Running CLIs" "Project" "Links" "Permissions" "Rules"
    "Shell commands")
  "Titles of findings, in the order in which a CLI needs them to open a review.
If no CLI is connected, the verdict is the first finding in this order that is
`bad' or `wait'.  Findings with other titles come last.")

(defvar gemini-companion-status-checks
  '(("Server" . gemini-companion-status--server)
    ("CLI" . gemini-companion-status--installed)
    ("Settings" . gemini-companion-status--settings)
    ("Sharing" . gemini-companion-status--sharing)
    ("Running CLIs" . gemini-companion-status--running)
    ("Rules" . gemini-companion-status--rules))
  "Alist of (TITLE . FUNCTION), the checks of the status itself.
Each function is called with the user's directory, and returns a list of
findings, which may be empty.  The other parts have their checks in
methods of `gemini-companion-part-findings'.

A finding is a list (KIND TEXT REMEDY (LABEL . FUNCTION)...).  KIND is
`good'; `bad' for a problem that keeps a CLI from connecting or from
opening reviews; `note'; or `wait' until the server has answered.  TEXT
is a phrase with a capital and without a period.  REMEDY is a sentence
or nil.  A button with each LABEL calls its FUNCTION and checks again.
For example:
  (bad \"gemini-companion-mode is off\"
       \"Turn the mode on, and restart a CLI that was running.\"
       (\"Turn on\" . gemini-companion-mode))")

(defconst gemini-companion-status--name "*gemini-companion status*"
  "Name of the buffer.")

(cl-defstruct (gemini-companion-status--search (:noinline t))
  "A search of the server for CLIs that run.
SERVER and SESSIONS are the description of the server and the sessions at
that time.  FOUND is `wait' until the server has answered; then a list of
plists, see `gemini-companion-status--process-finding'."
  server sessions found)

(defvar gemini-companion-status--search nil
  "The last search for CLIs that run, or nil.")

(defvar gemini-companion-status--origin nil
  "Buffer in which the status was called.")

(defvar gemini-companion-status--passed-shown nil
  "Non-nil if the checks that passed are shown one by one.")

;;;; Mode

(define-derived-mode gemini-companion-status-mode special-mode "Gemini status"
  "Mode of the buffer with the state of the connections.
\\{gemini-companion-status-mode-map}"
  :interactive nil
  (setq-local wrap-prefix "    ")
  (visual-line-mode)
  (button-mode)
  (gemini-companion-page-set-up #'gemini-companion-status--write
                                '(gemini-companion-mode-hook
                                  gemini-companion-session-changed-functions
                                  gemini-companion-context-pause-hook
                                  gemini-companion-context-resume-hook
                                  gemini-companion-names-hosts-hook))
  (setq-local revert-buffer-function
              (lambda (&rest _)
                (setq gemini-companion-status--search nil)
                (gemini-companion-page-refresh))))

(cl-defmethod gemini-companion-part-ready ((_part (eql 'status)) _how)
  "Show the new server."
  (gemini-companion-page-refresh-soon
   (get-buffer gemini-companion-status--name)))

(define-key gemini-companion-status-mode-map
  "e" #'gemini-companion-events-buffer)

(defun gemini-companion-status ()
  "Show the state of the connections to the CLIs, and problems.
The first line is the verdict: which CLIs are connected or, if none is,
what keeps a CLI from connecting in this directory.
\\<gemini-companion-status-mode-map>Type \\[describe-mode] there for its keys."
  (interactive)
  (let ((directory (or gemini-companion-session-remote-directory default-directory))
        (origin (current-buffer))
        (status (get-buffer-create gemini-companion-status--name)))
    (with-current-buffer status
      (unless (derived-mode-p 'gemini-companion-status-mode)
        (gemini-companion-status-mode))
      (unless (eq origin status)
        (setq gemini-companion-status--origin origin
              default-directory directory))
      (revert-buffer))
    (pop-to-buffer status '(nil (category . gemini-companion-status)))))

;;;; Contents

(defun gemini-companion-status--write ()
  "Write the status into the current buffer: the verdict, and the sections."
  (let* ((directory default-directory)
         (findings (let ((default-directory temporary-file-directory))
                     (gemini-companion-status--findings directory)))
         (verdict (unless (gemini-companion-sessions)
                    (seq-find (lambda (finding)
                                (memq (nth 1 finding) '(bad wait)))
                              findings)))
         (by-kind (seq-group-by #'cadr (remq verdict findings))))
    (gemini-companion-page-replace
     (with-temp-buffer
       (gemini-companion-status--insert-verdict verdict)
       (mapc #'gemini-companion-status--insert-section
             (list
              (gemini-companion-status--of-findings
               "Problems" (alist-get 'bad by-kind))
              (gemini-companion-status--shared)
              (gemini-companion-status--roots)
              (gemini-companion-status--of-findings
               "Notes" (append (alist-get 'wait by-kind)
                               (alist-get 'note by-kind)))
              (gemini-companion-status--passed (alist-get 'good by-kind))))
       (buffer-string)))))

(defun gemini-companion-status--insert-section (section)
  "Insert SECTION, a list (HEADING ROWS (LABEL . FUNCTION)...), or nil.
ROWS are lists of arguments of `gemini-companion-status--insert', and the
rest are buttons behind HEADING.  Without rows and buttons, insert
nothing."
  (pcase-let ((`(,heading ,rows . ,actions) section))
    (when (or rows actions)
      (insert "\n")
      (apply #'gemini-companion-status--insert
             (propertize heading 'face 'bold) nil actions)
      (dolist (row rows)
        (apply #'gemini-companion-status--insert row)))))

(defun gemini-companion-status--of-findings (heading findings)
  "Return the section of FINDINGS with HEADING.
For sections, see `gemini-companion-status--insert-section'."
  (list heading (mapcar #'gemini-companion-status--finding-row findings)))

(defun gemini-companion-status--roots ()
  "Return the section of the workspace roots.
For sections, see `gemini-companion-status--insert-section'."
  (list "Workspace roots"
        (mapcar (lambda (root)
                  (list (concat "    " (gemini-companion-names-absolute root)
                                (if (file-directory-p root) "" "  (removed)"))))
                (gemini-companion-roots-all))))

(defun gemini-companion-status--passed (findings)
  "Return the section of FINDINGS that are `good', with a button to show them.
For sections, see `gemini-companion-status--insert-section'."
  (list (format (ngettext "%d check passed" "%d checks passed"
                          (length findings))
                (length findings))
        (and gemini-companion-status--passed-shown
             (mapcar #'gemini-companion-status--finding-row findings))
        (cons (if gemini-companion-status--passed-shown "Hide" "Show")
              (lambda ()
                (setq gemini-companion-status--passed-shown
                      (not gemini-companion-status--passed-shown))))))

(defun gemini-companion-status--insert (text &optional remedy &rest actions)
  "Insert TEXT and REMEDY, with buttons for ACTIONS behind the first line.
Omit REMEDY if it is there already, of an earlier finding."
  (pcase-let* ((`(,line . ,more) (split-string text "\n"))
               (labels (mapcar (lambda (action) (concat "[" (car action) "]")) actions))
               (whole (string-join (cons line labels) " ")))
    (insert line)
    (cl-loop for label in labels
             for (_ . function) in actions
             do (insert " ")
             (insert-text-button
              label
              'follow-link t
              'action (apply-partially #'gemini-companion-status--press
                                       whole function)))
    (insert "\n")
    (when (and remedy (not (string-search remedy (buffer-string))))
      (setq more (append more (list remedy))))
    (dolist (line more)
      (insert "    " line "\n"))))

(defun gemini-companion-status--press (line function &rest _)
  "Call FUNCTION for a button that was drawn in LINE, and check again.
If there is no such line now, signal an error: the button may do the opposite of
what its label says, as where sharing was paused meanwhile."
  (gemini-companion-page-refresh)
  (unless (save-excursion
            (goto-char (point-min))
            (re-search-forward (concat "^" (regexp-quote line) "$") nil t))
    (user-error "Status has changed; read it, then choose again"))
  (unwind-protect
      (funcall function)
    (when (get-buffer gemini-companion-status--name)
      (with-current-buffer gemini-companion-status--name
        (revert-buffer)))))

(defun gemini-companion-status--terminal-button (session)
  "Return a list of the button for the terminal of SESSION, or nil."
  (when-let* ((terminal (gemini-companion-session-terminal session)))
    `(("Terminal" . ,(apply-partially #'gemini-companion-terminal-show terminal)))))

(defun gemini-companion-status--finding-row (finding)
  "Return FINDING as arguments of `gemini-companion-status--insert'.
FINDING is an element of `gemini-companion-status--findings'.  The value is
a list (LINE REMEDY ACTION...); a LINE is, for example:
  ✗ Server: gemini-companion-mode is off"
  (pcase-let* ((`(,title ,kind ,text . ,more) finding)
               (`(,character ,ascii ,face)
                (alist-get kind '((good ?✓ "ok" success)
                                  (bad ?✗ "NO" error)
                                  (note ?• "--" shadow)
                                  (wait ?… ".." shadow)))))
    (cons (concat (propertize (gemini-companion-text-sign character ascii)
                              'face face)
                  " " title ": " text)
          more)))

(defun gemini-companion-status--insert-verdict (problem)
  "Insert one line about which CLIs are connected, or why none is.
A button shows what those do, and what they wait for.
PROBLEM is the first finding that is a problem or awaits an answer."
  (if-let* ((sessions (gemini-companion-sessions)))
      (gemini-companion-status--insert
       (concat (propertize "Connected: " 'face 'success)
               (string-join (seq-uniq
                             (mapcar #'gemini-companion-session-title sessions))
                            ", "))
       nil '("Overview" . gemini-companion-list))
    (pcase-let ((`(,text . ,more)
                 (or (nthcdr 2 problem)
                     '("No CLI runs in the open projects" nil
                       ("Start" . gemini-companion-run)))))
      (apply #'gemini-companion-status--insert
             (concat (propertize "Not connected: " 'face 'error) text) more))))

(defun gemini-companion-status--shared ()
  "Return the section of what is shared, or nil if no CLI is connected.
For sections, see `gemini-companion-status--insert-section'."
  (when (or (gemini-companion-sessions) gemini-companion-context-paused)
    (let ((files (gemini-companion-shared)))
      `(,(cond (gemini-companion-context-paused "Shared: nothing, sharing is paused")
               (files "Shared")
               (t "Shared: nothing"))
        ,(mapcar #'gemini-companion-status--file-row files)
        (,(if gemini-companion-context-paused "Resume" "Pause")
         . gemini-companion-pause)))))

(defun gemini-companion-status--file-row (file)
  "Return FILE, an element of a snapshot, as a row of the status.
The value is a list of arguments of `gemini-companion-status--insert'."
  (pcase-let (((map :path :active :line :character :selected-text) file))
    (list (concat "    " (gemini-companion-names-absolute path)
                  (and active
                       (format ", active, line %s, character %s"
                               line character)))
          (and selected-text
               (format "    %d characters selected: %s" (length selected-text)
                       (let ((print-escape-newlines t))
                         (gemini-companion-names-shown
                          (format "%S" selected-text))))))))

;;;; Checks

(defun gemini-companion-status--findings (directory)
  "Return the findings of all parts that are loaded, for a CLI in DIRECTORY.
The value is an alist of (TITLE . FINDING) in the order of
`gemini-companion-status-titles'; for findings, see
`gemini-companion-status-checks'."
  (seq-sort-by
   (lambda (finding)
     (or (seq-position gemini-companion-status-titles (car finding))
         (length gemini-companion-status-titles)))
   #'<
   (seq-mapcat (lambda (part)
                 (gemini-companion-status--findings-or-error
                  (format "Part %s" part)
                  (apply-partially #'gemini-companion-part-findings
                                   part directory)))
               (gemini-companion-parts-loaded))))

(defun gemini-companion-status--findings-or-error (title check)
  "Call CHECK without arguments, and return its value, an alist of findings.
After an error in CHECK, return a finding about that, with TITLE."
  (condition-case-unless-debug problem
      (funcall check)
    (error `((,title bad ,(gemini-companion-text-problem problem))))))

(cl-defmethod gemini-companion-part-findings ((_part (eql 'status)) directory)
  "Return the findings of `gemini-companion-status-checks' in DIRECTORY."
  (seq-mapcat
   (pcase-lambda (`(,title . ,check))
     (gemini-companion-status--findings-or-error
      title
      (lambda ()
        (mapcar (apply-partially #'cons title) (funcall check directory)))))
   gemini-companion-status-checks))

(defun gemini-companion-status--server (_directory)
  "Return a list of the finding about the server.
It is `good' if the server can be called, `wait' while that is installed or
starts, and else `bad', with the reason for which the mode was turned off."
  (pcase-let (((map :version :pid :port :command)
               (gemini-companion-server-info))
              (turn-on '("Turn on" . gemini-companion-mode)))
    (cond
     (pid
      `((good ,(format "Version %s, process %d, port %d, run by %s"
                       version pid port (gemini-companion-names-absolute (car command)))
              nil ("Restart" . gemini-companion-restart))))
     ((gemini-companion-install-running-p)
      '((wait "The Python packages are being installed")))
     ((bound-and-true-p gemini-companion-mode)
      '((wait "The server is starting")))
     (gemini-companion-server-problem
      `((bad ,gemini-companion-server-problem nil ,turn-on)))
     (t
      `((bad "gemini-companion-mode is off"
             "Turn the mode on, and restart a CLI that was running."
             ,turn-on))))))

;;;; Installed CLIs and their settings

(defun gemini-companion-status--installed (_directory)
  "Return the findings about the programs of CLIs.
The environment is that of the buffer where the status was called, which
`gemini-companion-run' uses."
  (let* ((origin (if (buffer-live-p gemini-companion-status--origin)
                     gemini-companion-status--origin
                   (current-buffer)))
         (exec-path (buffer-local-value 'exec-path origin))
         (process-environment (buffer-local-value 'process-environment origin)))
    (mapcar #'gemini-companion-status--client (gemini-companion-cli-clients))))

(defun gemini-companion-status--client (client)
  "Return the finding about the discovery file or the version of CLIENT."
  (pcase-let* ((title (gemini-companion-client-title client))
               (oldest (gemini-companion-client-oldest client))
               (has-run (gemini-companion-client-has-run-p client))
               ((map :discovery) (gemini-companion-server-info))
               (found-by (cadr (assoc client discovery)))
               (program (car (gemini-companion-cli-command client)))
               (file (executable-find program))
               (top (and file (locate-dominating-file (file-truename file)
                                                      "package.json")))
               (text (and top
                          (gemini-companion-client-settings-get
                           (expand-file-name "package.json" top) '("version"))))
               ;; Without "-preview.1", for example.
               (version (and (stringp text)
                             (string-match "\\`[0-9]+\\.[0-9]+\\.[0-9]+" text)
                             (match-string 0 text)))
               ;; The program may be a script that starts the CLI.
               (running (seq-some
                         (lambda (session)
                           (and (equal client (gemini-companion-session-client session))
                                (gemini-companion-session-version session)))
                         (gemini-companion-sessions)))
               (install (format "npm install -g %s (needs Node.js %s)"
                                (gemini-companion-client-package client)
                                (gemini-companion-client-node client))))
    (cond ((and has-run found-by (not (file-exists-p found-by)))
           `(bad ,(format "Discovery file %s is missing; see the buffer \
*Warnings*" found-by)))
          ((null file)
           ;; A CLI that has run may be in the PATH of a terminal only.
           (list (if has-run 'note 'bad)
                 (format "The program %s is not in the PATH of Emacs" program)
                 (concat "To install it: " install
                         (gemini-companion-install-path-hint))))
          ((and version oldest (version< version oldest))
           `(bad ,(format "%s %s cannot find Emacs; %s or later is needed (%s)"
                          title version oldest file)
                 ,(concat "To update it: " install)))
          (t `(,(if (or version running) 'good 'note)
               ,(format "%s %s, %s" title
                        (cond (version version)
                              (running (format "%s (connected)" running))
                              (t "of unknown version"))
                        file))))))

(defun gemini-companion-status--settings (directory)
  "Return the findings about the settings of CLIs in DIRECTORY.
Without a session these are the settings that a CLI needs to connect."
  (let* ((sessions (gemini-companion-sessions))
         (findings
          (seq-mapcat
           (lambda (client)
             ;; The first one is needed to connect, the others after that.
             (funcall (if sessions #'seq-drop #'seq-take)
                      (gemini-companion-client-settings-findings
                       client directory #'gemini-companion-status--runs-p)
                      1))
           (gemini-companion-cli-clients))))
    (if (or sessions (not (assq 'good findings)))
        findings
      ;; If one CLI can connect, problems of the others are no verdict.
      (cl-subst 'note 'bad findings))))

;;;; Projects

(defun gemini-companion-status--sharing (_directory)
  "Return a list of the finding about why files are not shared, or nil.
It is about all files, or else about the file where the status was called."
  (if gemini-companion-privacy-problem
      `((bad ,(format "An option that excludes files fails (%s), so files \
are not shared" gemini-companion-privacy-problem)
             "Correct `gemini-companion-excluded', .dir-locals.el or the \
ignore file."))
    (when-let* ((origin gemini-companion-status--origin)
                (file (and (buffer-live-p origin) (buffer-file-name origin)))
                (name (gemini-companion-names-file origin))
                ;; The check of the project names its host.
                ((not (file-remote-p name)))
                (remedy
                 (cond
                  ((gemini-companion-privacy-hidden-p origin)
                   (format "See `gemini-companion-excluded', \
`gemini-companion-share' and the ignore files, such as %s."
                           (car (gemini-companion-clients-append
                                 #'gemini-companion-client-ignore-files))))
                  ((not (or (file-remote-p file) (file-exists-p file)))
                   "Save it; it does not exist on disk yet.")
                  ((and (bound-and-true-p gemini-companion-mode)
                        (not gemini-companion-share-outside-projects)
                        (not (gemini-companion-roots-name name)))
                   "It is outside the workspace roots; see \
`gemini-companion-share-outside-projects'."))))
      `((note ,(format "%s is not shared" (gemini-companion-names-absolute name))
              ,remedy)))))

;;;; Rules

(defun gemini-companion-status--rules (_directory)
  "Return the findings about CLIs that rules for reviews do not make ask.
There is none without rules.  The part `tools' knows of linked CLIs."
  (when (gemini-companion-rules-all)
    (delq nil
          (mapcar (lambda (client) (gemini-companion-rules-finding client nil))
                  (seq-remove (lambda (client)
                                (and (gemini-companion-client-review-hook client)
                                     (gemini-companion-install-extension-p)))
                              (gemini-companion-cli-clients))))))

;;;; Running CLIs

(defun gemini-companion-status--running (_directory)
  "Return the findings about CLIs that run and are not connected.
The server searches for them after each change of the sessions; the
status is written again when it has answered."
  (let ((clis (gemini-companion-status--search-found
               (gemini-companion-status--current-search))))
    (if (eq clis 'wait)
        '((wait "The server searches for running CLIs"
                "If this message stays, the server does not answer; restart the server."
                ("Restart" . gemini-companion-restart)))
      (let* ((pids (mapcar #'gemini-companion-session-pid (gemini-companion-sessions)))
             (others (seq-remove (lambda (cli) (memql (plist-get cli :pid) pids)) clis)))
        (cond (others
               (mapcar #'gemini-companion-status--process-finding others))
              (clis
               '((good "All are connected"))))))))

(defun gemini-companion-status--current-search ()
  "Return the search for running CLIs, made with the server and sessions now.
Begin one if they have changed since the last one."
  (let ((server (gemini-companion-server-info))
        (sessions (gemini-companion-sessions))
        (last gemini-companion-status--search))
    (if (and last
             (equal server (gemini-companion-status--search-server last))
             (equal sessions (gemini-companion-status--search-sessions last)))
        last
      (let ((search (make-gemini-companion-status--search
                     :server server :sessions sessions
                     ;; Without a server, nothing is found.
                     :found (and server 'wait))))
        (setq gemini-companion-status--search search)
        (gemini-companion-server-ask
         'processes nil
         (lambda (processes)
           (setf (gemini-companion-status--search-found search) processes)
           (gemini-companion-page-refresh-soon
            (get-buffer gemini-companion-status--name))))
        search))))

(defun gemini-companion-status--runs-p (client)
  "Return non-nil if a CLI of CLIENT ran when the server searched for them.
Until it has answered, only those that are connected count."
  (let ((clis (and gemini-companion-status--search
                   (gemini-companion-status--search-found
                    gemini-companion-status--search))))
    (member client (if (consp clis)
                       (mapcar (lambda (cli) (plist-get cli :client)) clis)
                     (mapcar #'gemini-companion-session-client
                             (gemini-companion-sessions))))))

(defun gemini-companion-status--process-finding (process)
  "Return the finding about PROCESS, a CLI that is not connected.
It is a plist with `:pid', `:client', `:directory' and, if the CLI does
not search this Emacs there, `:searches', the directory that it searches."
  (pcase-let* (((map :pid :client :directory :searches :elsewhere) process)
               (`(,kind ,text . ,remedy)
                (if elsewhere
                    '(note "it is connected to another editor"
                           "To connect it here, start it in a terminal of this \
Emacs.")
                  (gemini-companion-cli-finding client directory searches))))
    `(,(if (gemini-companion-sessions) 'note kind)
      ,(concat (format "%s (process %d" (gemini-companion-client-title client)
                       pid)
               (and directory
                    (concat ", in " (gemini-companion-names-absolute directory)))
               ") is not connected"
               (and text (concat ": " text)))
      ,@remedy
      ,@(gemini-companion-status--terminal-button
         (gemini-companion-session-make :pid pid)))))

(provide 'gemini-companion-status)
;;; gemini-companion-status.el ends here
