;;; gemini-companion-status.el --- Status and diagnostics  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; One buffer that shows whether a CLI is connected and, if none is, why: a
;; verdict, the problems with remedies and buttons, the state, and the checks
;; that passed.  Programs that a check needs run in the background; the buffer
;; is written again when they answer, and when something changes while it is
;; visible.

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-clients)
(require 'gemini-companion-context)
(require 'gemini-companion-diff)
(require 'gemini-companion-install)
(require 'gemini-companion-privacy)
(require 'gemini-companion-roots)
(require 'gemini-companion-run)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-settings)
(require 'gemini-companion-share)
(require 'gemini-companion-text)
(require 'gemini-companion-tools)
(require 'json)
(require 'map)
(require 'seq)
(require 'subr-x)

;;;; State

(defvar gemini-companion-status-checks
  '(("Package" . gemini-companion-status--package)
    ("Server" . gemini-companion-status--server)
    ("Options" . gemini-companion-status--options)
    ("CLI" . gemini-companion-status--version)
    ("Settings" . gemini-companion-status--settings)
    ("Account" . gemini-companion-status--account)
    ("Discovery file" . gemini-companion-status--discovery)
    ("Project" . gemini-companion-status--project)
    ("Other editors" . gemini-companion-status--others)
    ("Diff program" . gemini-companion-status--diff)
    ("Running CLIs" . gemini-companion-status--unconnected)
    ("Links" . gemini-companion-tools-findings))
  "Alist of (TITLE . FUNCTION), the checks in their order.
Each function is called with the user's directory and the function
ASK, which runs programs; see `gemini-companion-status-findings'.  It
returns a list of findings, which may be empty.

A finding is a list (MARK TEXT REMEDY (LABEL . FUNCTION)...).  MARK is
`good'; `bad' for a problem that keeps a CLI from connecting or from
opening reviews; `note'; or `wait' until programs have answered.  TEXT
is a phrase with a capital and without a period.  REMEDY is a sentence
or nil.  Each LABEL is that of a button, which calls its FUNCTION and
checks again.")

(defconst gemini-companion-status--name "*gemini-companion status*"
  "Name of the buffer.")

(defvar gemini-companion-status--answers nil
  "Alist of (COMMAND . ANSWER), the answers of programs and functions.
The ANSWER of a program is a cons of exit status and output, or a live
process; the ANSWER of a function is a list.")

(defvar gemini-companion-status--found nil
  "Alist of (TITLE . FINDINGS), the results of the checks.")

(defvar gemini-companion-status--outdated nil
  "Non-nil if the checks have to run before the buffer is written again.")

(defvar gemini-companion-status--timer nil
  "Timer that writes the buffer again, or nil.")

(defvar gemini-companion-status--origin nil
  "Buffer in which the status was called.")

;;;; Mode

(autoload 'gemini-companion-status-menu "gemini-companion-menu" nil t)

(defvar gemini-companion-status-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'forward-button)
    (define-key map (kbd "<backtab>") #'backward-button)
    (define-key map "l" #'gemini-companion-list)
    (define-key map "r" #'gemini-companion-review)
    (define-key map "e" #'gemini-companion-events-buffer)
    (define-key map "h" #'gemini-companion-menu)
    (define-key map "?" #'gemini-companion-status-menu)
    map)
  "Keymap of `gemini-companion-status-mode'.")

(define-derived-mode gemini-companion-status-mode special-mode "Gemini status"
  "Mode of the buffer with the state of the connections.
\\{gemini-companion-status-mode-map}"
  (setq-local revert-buffer-function #'gemini-companion-status--refresh
              truncate-lines nil
              wrap-prefix "    ")
  (visual-line-mode)
  (gemini-companion-status--watch #'add-hook)
  (add-hook 'window-buffer-change-functions
            #'gemini-companion-status--changed nil t)
  (add-hook 'kill-buffer-hook #'gemini-companion-status--forget nil t))

;;;###autoload
(defun gemini-companion-status ()
  "Show the state of the connections to the CLIs, and problems.
\\<gemini-companion-status-mode-map>\
Type \\[gemini-companion-status-menu] there for its keys."
  (interactive)
  (let ((directory default-directory)
        (origin (current-buffer))
        (status (get-buffer-create gemini-companion-status--name)))
    (with-current-buffer status
      (unless (derived-mode-p 'gemini-companion-status-mode)
        (gemini-companion-status-mode))
      (unless (eq origin status)
        (setq gemini-companion-status--origin origin
              default-directory directory))
      (gemini-companion-status--refresh))
    (pop-to-buffer status)))

(defun gemini-companion-status--refresh (&rest _)
  "Check everything again."
  (gemini-companion-status--stop)
  (setq gemini-companion-status--outdated t)
  (gemini-companion-status--update))

(defun gemini-companion-status--stop ()
  "Discard the answers of programs, and end what is still under way."
  (let ((answers (map-values gemini-companion-status--answers)))
    (setq gemini-companion-status--answers nil)
    (mapc #'delete-process (seq-filter #'processp answers)))
  (when gemini-companion-status--timer
    (cancel-timer gemini-companion-status--timer)
    (setq gemini-companion-status--timer nil)))

(defun gemini-companion-status--forget ()
  "Stop everything, as the buffer is being killed."
  (gemini-companion-status--stop)
  (gemini-companion-status--watch #'remove-hook))

(defun gemini-companion-status--update ()
  "Write the buffer again; check before that if necessary."
  (setq gemini-companion-status--timer nil)
  (with-current-buffer gemini-companion-status--name
    (when gemini-companion-status--outdated
      (setq gemini-companion-status--outdated nil
            gemini-companion-status--found
            (let ((directory default-directory)
                  (default-directory temporary-file-directory))
              (gemini-companion-status-findings
               directory #'gemini-companion-status--ask))))
    (gemini-companion-status--write)))

(defun gemini-companion-status--write ()
  "Write the current buffer; point and the windows stay at their text."
  (let ((text (with-temp-buffer
                (gemini-companion-status--insert-all)
                (buffer-string)))
        (inhibit-read-only t))
    (save-excursion
      (gemini-companion-text-replace text))
    ;; What stayed has its old face and buttons.
    (pcase-dolist (`(,start ,end ,properties) (object-intervals text))
      (set-text-properties (1+ start) (1+ end) properties))
    (dolist (window (get-buffer-window-list nil nil t))
      (set-window-start window
                        (save-excursion
                          (goto-char (window-start window))
                          (line-beginning-position))
                        'noforce))))

;;;; Changes

(defun gemini-companion-status--watch (change)
  "Call CHANGE, `add-hook' or `remove-hook', for each hook."
  (dolist (hook '(gemini-companion-mode-hook
                  gemini-companion-ready-hook
                  gemini-companion-session-changed-functions))
    (funcall change hook #'gemini-companion-status--changed))
  (dolist (hook '(gemini-companion-context-changed-hook
                  gemini-companion-diff-changed-hook))
    (funcall change hook #'gemini-companion-status--work-changed)))

(defun gemini-companion-status--changed (&rest _)
  "Check again soon if the buffer is visible."
  (setq gemini-companion-status--outdated t)
  (gemini-companion-status--work-changed))

(defun gemini-companion-status--work-changed (&rest _)
  "Write the buffer again soon if it is visible."
  (when (and (not gemini-companion-status--timer)
             (get-buffer-window gemini-companion-status--name t))
    (setq gemini-companion-status--timer
          (run-at-time 0.2 nil #'gemini-companion-status--update))))

;;;; Programs

(defun gemini-companion-status--ask (program &rest args)
  "Return the answer of PROGRAM to ARGS, a cons of exit status and output.
Return nil while it runs.  PROGRAM may also be a function that is
called with ARGS and a function for its answer, a list."
  (let* ((command (cons program args))
         (known (assoc command gemini-companion-status--answers)))
    (unless known
      (setq known (list command))
      (push known gemini-companion-status--answers)
      (let ((answered (lambda (answer)
                        (when (memq known gemini-companion-status--answers)
                          (setcdr known answer)
                          (gemini-companion-status--changed)))))
        (if (functionp program)
            (apply program (append args (list answered)))
          (setcdr known (gemini-companion-status--start command answered)))))
    (when (listp (cdr known))
      (cdr known))))

(defun gemini-companion-status--start (command answered)
  "Start COMMAND; return its process, or its answer if that fails.
Call ANSWERED with the answer of the process."
  (let ((process-environment (default-value 'process-environment))
        (output (generate-new-buffer " *gemini-companion answer*" t)))
    (condition-case problem
        (let ((process
               (make-process
                :name "gemini-companion question" :command command
                :buffer output :noquery t :connection-type 'pipe
                :sentinel (lambda (process _event)
                            (unless (process-live-p process)
                              (let ((text (with-current-buffer output
                                            (buffer-string))))
                                (kill-buffer output)
                                (funcall answered
                                         (cons (process-exit-status process)
                                               text))))))))
          ;; If the process has ended already, its sentinel reports that.
          (ignore-errors (process-send-eof process))
          process)
      (error
       (kill-buffer output)
       (cons 1 (error-message-string problem))))))

;;;; Contents

(defconst gemini-companion-status--marks
  '((good ?✓ "ok" success)
    (bad ?✗ "NO" error)
    (note ?• "--" shadow)
    (wait ?… ".." shadow))
  "Alist of (MARK CHARACTER ASCII FACE).")

(defun gemini-companion-status--insert-buttons (actions)
  "Insert buttons for ACTIONS, an alist of (LABEL . FUNCTION).
A button calls its FUNCTION and checks again."
  (pcase-dolist (`(,label . ,function) actions)
    (insert " ")
    (insert-text-button
     (concat "[" label "]")
     'follow-link t
     'action (lambda (_button)
               (unwind-protect
                   (if (commandp function)
                       (call-interactively function)
                     (funcall function))
                 (when (get-buffer gemini-companion-status--name)
                   (gemini-companion-status--refresh)))))))

(defun gemini-companion-status--insert-all ()
  "Insert the whole status."
  (gemini-companion-status--insert-verdict)
  (gemini-companion-status--insert-findings "Problems" '(bad))
  (gemini-companion-status--insert-server)
  (gemini-companion-status--insert-sessions)
  (gemini-companion-status--insert-reviews)
  (gemini-companion-status--insert-shared)
  (gemini-companion-status--insert-roots)
  (gemini-companion-status--insert-findings "Checks" '(wait note good)))

(defun gemini-companion-status--heading (text)
  "Insert TEXT as a heading."
  (insert "\n" (propertize text 'face 'bold)))

(defun gemini-companion-status--insert-findings (heading kinds)
  "Insert HEADING and the findings whose mark is in KINDS, if any."
  (pcase-dolist (`(,title . ,findings) gemini-companion-status--found)
    (dolist (finding findings)
      (when (memq (car finding) kinds)
        (when heading
          (gemini-companion-status--heading heading)
          (insert "\n")
          (setq heading nil))
        (gemini-companion-status--insert-finding title finding)))))

(defun gemini-companion-status--insert-finding (title finding)
  "Insert FINDING of the check TITLE."
  (pcase-let* ((`(,mark ,text ,remedy . ,actions) finding)
               (`(,character ,ascii ,face)
                (alist-get mark gemini-companion-status--marks)))
    (insert (propertize (gemini-companion-text-sign character ascii)
                        'face face)
            " " title ": " text)
    (when remedy
      (insert "\n    " remedy))
    (gemini-companion-status--insert-buttons actions)
    (insert "\n")))

(defun gemini-companion-status--insert-verdict ()
  "Insert one line about whether a CLI is connected, or why none is."
  (pcase-let* ((sessions (gemini-companion-sessions))
               (`(,_ ,problem ,_ . ,actions)
                (assq 'bad (seq-mapcat #'cdr gemini-companion-status--found))))
    (insert (propertize (if sessions "Connected: " "Not connected: ")
                        'face (if sessions 'success 'error)))
    (cond
     (sessions
      (insert (gemini-companion-status--counts sessions)))
     ((gemini-companion-install-running-p)
      (insert "The Python packages of the server are being installed"))
     ((and gemini-companion-mode (not (gemini-companion-server-ready-p)))
      (insert "The server is starting"))
     (problem
      (insert (car (split-string problem "\n")))
      (gemini-companion-status--insert-buttons actions))
     (t
      (insert "No CLI runs in the open projects")
      (gemini-companion-status--insert-buttons
       '(("Start" . gemini-companion-run)))))
    (insert "\n")))

(defun gemini-companion-status--counts (sessions)
  "Return how many SESSIONS of each CLI there are, and how many reviews."
  (let ((reviews (length (gemini-companion-diffs))))
    (concat
     (mapconcat (pcase-lambda (`(,title . ,same))
                  ;; The name of a CLI has no plural.
                  (format (ngettext "%d %s" "%d sessions of %s" (length same))
                          (length same) title))
                (seq-group-by #'gemini-companion-session-title sessions)
                ", ")
     (unless (zerop reviews)
       (format (ngettext ", %d review waiting" ", %d reviews waiting" reviews)
               reviews)))))

(defun gemini-companion-status--insert-server ()
  "Insert the state of the server."
  (when-let* ((info (gemini-companion-server-info)))
    (gemini-companion-status--heading "State")
    (insert (format "\nServer: process %d, port %d, since %s"
                    (plist-get info :pid) (plist-get info :port)
                    (format-time-string "%H:%M" (plist-get info :since))))
    (gemini-companion-status--insert-buttons
     '(("Restart" . gemini-companion-restart)
       ("Events" . gemini-companion-events-buffer)))
    (insert "\n")))

(defun gemini-companion-status--insert-sessions ()
  "Insert the connected CLIs."
  (when-let* ((sessions (gemini-companion-sessions)))
    (insert "CLIs:\n")
    (dolist (session sessions)
      (pcase-let (((map :directory :version :since) session)
                  (terminal (gemini-companion-session-terminal session)))
        (insert "    " (gemini-companion-session-name session)
                (if directory
                    (concat " in " (gemini-companion-status--file directory))
                  "")
                (if version (concat ", version " version) "")
                (if since
                    (format-time-string ", since %H:%M" (/ since 1000))
                  ""))
        (when terminal
          (gemini-companion-status--insert-buttons
           `(("Terminal" . ,(lambda () (pop-to-buffer terminal))))))
        (insert "\n")))))

(defun gemini-companion-status--file (name)
  "Return the local file NAME for the user, abbreviated and escaped."
  (gemini-companion-name-escaped (abbreviate-file-name name)))

(defun gemini-companion-status--insert-reviews ()
  "Insert the proposals that await an answer."
  (when-let* ((diffs (gemini-companion-diffs)))
    (insert "Reviews:")
    (gemini-companion-status--insert-buttons
     '(("Review" . gemini-companion-review)))
    (insert "\n")
    (dolist (diff diffs)
      (insert (format "    %s, from %s, %s\n"
                      (gemini-companion-diff-name diff)
                      (gemini-companion-session-name
                       (gemini-companion-diff-session diff))
                      (if (eq 'pending (gemini-companion-diff-state diff))
                          "waiting"
                        "shown"))))))

(defun gemini-companion-status--insert-shared ()
  "Insert what is shared."
  (gemini-companion-status--heading "Shared")
  (let ((files (gemini-companion-shared)))
    (insert (cond (gemini-companion-paused ": nothing, sharing is paused")
                  ((null (gemini-companion-sessions))
                   ": nothing, no CLI is connected")
                  ((null files) ": nothing")
                  (t "")))
    (when gemini-companion-mode
      (gemini-companion-status--insert-buttons
       `((,(if gemini-companion-paused "Resume" "Pause")
          . gemini-companion-pause))))
    (insert "\n")
    (mapc #'gemini-companion-status--insert-file files)
    (gemini-companion-status--insert-unshared)))

(defun gemini-companion-status--insert-file (file)
  "Insert FILE, a plist of `gemini-companion-context-snapshot'."
  (insert "    " (gemini-companion-status--file (plist-get file :path))
          (if (plist-get file :active)
              (format ", active, line %s, character %s"
                      (plist-get file :line) (plist-get file :character))
            "")
          "\n")
  (when-let* ((text (plist-get file :selected-text)))
    (let ((print-escape-newlines t))
      (insert (format "        %d characters selected: %S\n" (length text)
                      (truncate-string-to-width text 60 nil nil "..."))))))

(defun gemini-companion-status--insert-unshared ()
  "Insert why the file of the user's buffer is not shared, if so."
  (let* ((origin gemini-companion-status--origin)
         (file (and (buffer-live-p origin) (buffer-file-name origin)))
         (reason (cond
                  ((null file) nil)
                  ((file-remote-p file) "it is on a remote host")
                  ((gemini-companion-privacy-hidden-p origin)
                   "see `gemini-companion-excluded', \
`gemini-companion-share', `gemini-companion-share-function' and the ignore \
files, such as .geminiignore")
                  ((not (file-exists-p file)) "it does not exist on disk yet")
                  ((and gemini-companion-mode
                        (not gemini-companion-share-outside-projects)
                        (not (gemini-companion-roots-name file)))
                   "it is outside the directories below; \
see `gemini-companion-share-outside-projects'"))))
    (when reason
      (insert (format "    %s is not shared: %s\n"
                      (if (file-remote-p file) file (abbreviate-file-name file))
                      reason)))))

(defun gemini-companion-status--insert-roots ()
  "Insert the directories from which a CLI may connect."
  (when gemini-companion-roots-last
    (gemini-companion-status--heading "Workspace roots")
    (insert "\n")
    (dolist (root gemini-companion-roots-last)
      (insert "    " (gemini-companion-status--file root) "\n"))))

;;;; Checks

(defun gemini-companion-status-findings (directory ask)
  "Return an alist of (TITLE . FINDINGS), see `gemini-companion-status-checks'.
DIRECTORY is the directory of the user's buffer.  ASK is a function like
`gemini-companion-status--ask'."
  (mapcar (pcase-lambda (`(,title . ,check))
            (cons title
                  (condition-case problem
                      (funcall check directory ask)
                    (error
                     `((note ,(format "Check failed: %s"
                                      (error-message-string problem))))))))
          gemini-companion-status-checks))

(defun gemini-companion-status--package (_directory _ask)
  "Check whether the packages are installed."
  (if-let* ((epc (locate-library "epc")))
      `((good ,(format "Emacs %s, gemini-companion %s, %s" emacs-version
                       gemini-companion-server-version
                       (abbreviate-file-name (directory-file-name
                                              (file-name-directory epc))))))
    '((bad "The package epc is not installed"
           "Add MELPA to `package-archives', then M-x package-install RET epc \
RET and start Emacs again."))))

(defun gemini-companion-status--server (_directory _ask)
  "Check the server."
  (let* ((info (gemini-companion-server-info))
         (version (plist-get info :version))
         (turn-on '("Turn on" . gemini-companion-mode)))
    (cond
     ((and info (not (equal version gemini-companion-server-version)))
      `((bad ,(format "The server has version %s, and gemini-companion %s"
                      version gemini-companion-server-version)
             "This package was updated since the server started."
             ("Restart the server" . gemini-companion-restart))))
     (info
      `((good ,(format "Version %s, run by %s" version
                       (abbreviate-file-name
                        (car (plist-get info :command)))))))
     ((gemini-companion-install-running-p)
      '((wait "The Python packages are being installed")))
     (gemini-companion-mode
      '((wait "The server is starting")))
     (gemini-companion-last-problem
      `((bad ,gemini-companion-last-problem
             "When that is fixed, turn the mode on again."
             ,turn-on)))
     (t
      `((bad "gemini-companion-mode is off"
             "Turn the mode on, and restart a CLI that was running."
             ,turn-on))))))

(defun gemini-companion-status--options (_directory _ask)
  "Check whether the options that decide about sharing work."
  (or (append
       (when gemini-companion-privacy-problem
         `((bad ,(format "An option that excludes files fails (%s), so files \
are not shared" gemini-companion-privacy-problem)
                "Correct `gemini-companion-excluded', \
`gemini-companion-share-function' or the ignore file.")))
       (when gemini-companion-roots-problem
         `((bad ,(format "`gemini-companion-roots-function' fails: %s"
                         gemini-companion-roots-problem)
                "Correct the function; until then no CLI can connect."))))
      '((good "Sharing options work"))))

;;;; Installed CLIs

(defun gemini-companion-status--program (client)
  "Return the file name of the program of CLIENT for Emacs, or nil."
  (let ((exec-path (default-value 'exec-path)))
    (executable-find (car (gemini-companion-run-command client)))))

(defun gemini-companion-status--session-p (client)
  "Return non-nil if a session of CLIENT is connected."
  (seq-some (lambda (session) (equal client (plist-get session :client)))
            (gemini-companion-sessions)))

(defun gemini-companion-status--clients ()
  "Return the names of the user's CLIs, or of the first CLI if there are none."
  (let ((all (mapcar #'car gemini-companion-clients)))
    (or (seq-filter (lambda (client)
                      (or (gemini-companion-status--program client)
                          (gemini-companion-status--session-p client)
                          (gemini-companion-clients-used-p client)))
                    all)
        (list (car all)))))

(defun gemini-companion-status--version (_directory ask)
  "Check by ASK which version of each CLI is installed."
  (mapcar (lambda (client)
            (gemini-companion-status--version-of client ask))
          (gemini-companion-status--clients)))

(defun gemini-companion-status--version-of (client ask)
  "Return the finding about the version of CLIENT, by ASK."
  (let* ((title (gemini-companion-clients-title client))
         (file (gemini-companion-status--program client))
         (hint (gemini-companion-install-path-hint))
         (install (concat "npm install -g "
                          (gemini-companion-clients-get client :package))))
    (if (null file)
        ;; A CLI that has run may be in the PATH of a terminal only.
        (list (if (gemini-companion-clients-used-p client) 'note 'bad)
              (format "The program %s is not in the PATH of Emacs"
                      (car (gemini-companion-run-command client)))
              (concat "To install it: " install hint))
      (pcase (funcall ask file "--version")
        ('nil `(wait ,(format "Asking %s" file)))
        (`(0 . ,output)
         (let ((version (and (string-match "[0-9]+\\.[0-9]+\\.[0-9]+" output)
                             (match-string 0 output)))
               (oldest (gemini-companion-clients-get client :oldest)))
           (cond ((null version)
                  `(note ,(format "%s does not print its version" file)))
                 ((version< version oldest)
                  `(bad ,(format "%s %s cannot find Emacs; %s or later is needed (%s)"
                                 title version oldest file)
                        ,(concat "To update it: " install)))
                 (t `(good ,(format "%s %s, %s" title version file))))))
        (`(,_ . ,output)
         `(bad ,(format "%s does not work: %s" file
                        (truncate-string-to-width (string-trim output) 300))
               ,(concat "Add the directory of node to `exec-path' and PATH, \
or install it again: " install hint)))))))

(defun gemini-companion-status--settings (directory ask)
  "Check the settings of the CLIs in DIRECTORY.
ASK returns the environments of the connected CLIs."
  (let* ((connected (gemini-companion-status--connected))
         (processes (when connected
                      (funcall ask #'gemini-companion-server-ask-processes
                               (mapcar #'car connected)))))
    (seq-mapcat
     (lambda (client)
       (gemini-companion-status--settings-of
        client directory
        (seq-some (lambda (process)
                    (and (equal client (alist-get (plist-get process :pid)
                                                  connected))
                         (plist-get process :environment)))
                  processes)))
     (gemini-companion-status--clients))))

(defun gemini-companion-status--connected ()
  "Return an alist of (PID . CLIENT), the connected CLIs."
  (seq-filter #'car (mapcar (lambda (session)
                              (cons (plist-get session :pid)
                                    (plist-get session :client)))
                            (gemini-companion-sessions))))

(defun gemini-companion-status--settings-of (client directory environment)
  "Return the findings about the settings of CLIENT in DIRECTORY.
ENVIRONMENT is as in `gemini-companion-clients-file'."
  (let ((file (gemini-companion-clients-file client :user-settings
                                             environment))
        (files (gemini-companion-settings-files client directory environment)))
    (condition-case problem
        (progn
          (gemini-companion-settings-read file)
          (mapcar (lambda (required)
                    (gemini-companion-status--setting
                     client file files required))
                  (gemini-companion-clients-get client :required)))
      (error
       `((bad ,(format "%s is malformed: %s" (abbreviate-file-name file)
                       (error-message-string problem))
              ,(format "%s does not start with this file; correct it."
                       (gemini-companion-clients-title client))
              ,(gemini-companion-status--open file)))))))

(defun gemini-companion-status--open (file)
  "Return the label and function of a button that opens FILE."
  (cons "Open" (lambda () (find-file-other-window file))))

(defun gemini-companion-status--setting (client user files required)
  "Return the finding about REQUIRED, of CLIENT.
FILES are its settings files, USER is that of the user."
  (pcase-let* ((`(,keys ,value ,problem ,command) required)
               (file (or (gemini-companion-settings-find files keys) user))
               (place (format "%s in %s" (string-join keys ".")
                              (abbreviate-file-name file)))
               (mark (if (and (gemini-companion-sessions)
                              (not (gemini-companion-status--session-p client)))
                         'note
                       'bad)))
    (cond
     ((equal value (gemini-companion-settings-get file keys))
      `(good ,(format "%s is %s" place (json-encode value))))
     ((equal file user)
      `(,mark ,problem
              ,(format "Set %s to %s, or type %s in %s." place
                       (json-encode value) command
                       (gemini-companion-clients-title client))
              (,(if (eq value t) "Enable" "Set it")
               . ,(lambda ()
                    (when (gemini-companion-settings-set file keys value)
                      (message "Setting saved; type %s in each running %s"
                               command
                               (gemini-companion-clients-title client)))))))
     (t
      `(,mark ,problem
              ,(format "Remove %s, which overrides your own settings." place)
              ,(gemini-companion-status--open file))))))

(defun gemini-companion-status--account (_directory _ask)
  "Check whether the CLIs sign in with an account that is accepted."
  (seq-mapcat
   (lambda (client)
     (pcase (gemini-companion-clients-get client :account)
       (`(,keys ,refused ,problem ,remedy)
        (let ((type (gemini-companion-settings-get
                     (gemini-companion-clients-file client :user-settings)
                     keys)))
          (if (member type (list nil refused))
              `((note ,(format "%s; %s" (or type "Not chosen yet") problem)
                      ,remedy))
            `((good ,(format "%s: %s" (gemini-companion-clients-title client)
                             type))))))))
   (gemini-companion-status--clients)))

;;;; Discovery files

(defun gemini-companion-status--directory (client)
  "Return the discovery directory of a CLIENT that is started by Emacs.
The environment of Emacs determines it."
  (gemini-companion-clients-file client :discovery
                                 (default-value 'process-environment)))

(defun gemini-companion-status--own-directory (client)
  "Return the directory of the discovery file of this Emacs for CLIENT."
  (if-let* ((file (gemini-companion-status--own-file client)))
      (file-name-directory file)
    (gemini-companion-status--directory client)))

(defun gemini-companion-status--own-file (client)
  "Return the discovery file of this Emacs for CLIENT, or nil."
  (when-let* ((info (gemini-companion-server-info)))
    (let* ((name (format (gemini-companion-clients-get client :discovery-file)
                         (emacs-pid) (plist-get info :port)))
           (file (expand-file-name
                  name (gemini-companion-status--directory client))))
      (if (file-exists-p file)
          file
        ;; TMPDIR may have changed since the server started.
        (seq-find (lambda (other)
                    (equal name (file-name-nondirectory other)))
                  (plist-get info :discovery))))))

(defun gemini-companion-status-roots (file)
  "Return the workspace roots in FILE, a discovery file."
  (let ((path (gemini-companion-settings-get file '("workspacePath"))))
    (cond ((not (stringp path)) nil)
          ((string-prefix-p "[" path)
           (let ((json-array-type 'list))
             (ignore-errors (json-read-from-string path))))
          (t (split-string path (regexp-quote path-separator) t)))))

(defun gemini-companion-status--discovery (_directory _ask)
  "Check the discovery files of this Emacs."
  (if (gemini-companion-server-info)
      (mapcar #'gemini-companion-status--discovery-of
              (gemini-companion-status--clients))
    '((note "None, as the server is not running"))))

(defun gemini-companion-status--discovery-of (client)
  "Return the finding about the discovery file for CLIENT."
  (let* ((file (gemini-companion-status--own-file client))
         (directory (gemini-companion-status--directory client))
         (restart '("Restart the server" . gemini-companion-restart)))
    (cond
     ((and (null file) (not (gemini-companion-clients-used-p client)))
      `(note ,(format "None for %s, which has not run yet"
                      (gemini-companion-clients-title client))))
     ((null file)
      '(bad "The file could not be written; see the warnings"))
     ((not (file-exists-p file))
      `(bad ,(format "%s does not exist" file)
            "The server writes it again within a minute, or at once if restarted."
            ,restart))
     ((file-equal-p directory (file-name-directory file))
      `(good ,file))
     (t
      `(bad ,(format "The discovery file is %s, but a %s that Emacs starts \
searches %s" file (gemini-companion-clients-title client) directory)
            "The environment of Emacs was changed since the server started."
            ,restart)))))

(defun gemini-companion-status--below-p (directory roots)
  "Return non-nil if DIRECTORY is one of ROOTS or below one."
  (unless (file-remote-p directory)
    (gemini-companion-roots-above
     (file-name-as-directory (file-truename directory))
     (mapcar #'file-truename roots))))

(defun gemini-companion-status--project (directory _ask)
  "Check whether a CLI in DIRECTORY may connect."
  (cond
   ((null (gemini-companion-server-info)) nil)
   ;; Emacs 28 asks the remote host to abbreviate.
   ((file-remote-p directory)
    `((note ,(format "%s is remote; a CLI connects only from this host"
                     directory))))
   ((gemini-companion-status--below-p directory gemini-companion-roots-last)
    `((good ,(format "A CLI may connect from %s"
                     (abbreviate-file-name directory)))))
   ((gemini-companion-privacy-directory-hidden-p directory)
    `((bad ,(format "%s is excluded from sharing, so no CLI can connect \
from there" (abbreviate-file-name directory))
           "See `gemini-companion-excluded', `gemini-companion-share' in \
its .dir-locals.el, and `gemini-companion-share-function'.")))
   (t
    `((bad ,(format "No CLI can connect from %s, which is in none of \
the workspace roots" (abbreviate-file-name directory))
           "Open a file of that project, then type /ide enable.  The home \
directory and / are never roots; see `gemini-companion-roots-function'.")))))

;;;; Other editors

(defun gemini-companion-status--editors (client directory)
  "Return the other editors to which CLIENT in DIRECTORY may connect.
They are plists with the `:name', the discovery `:file' and the `:port',
and with `:ended' if the editor has ended."
  (let ((place (gemini-companion-status--own-directory client))
        (regexp (gemini-companion-clients-get client :discovery-regexp)))
    (when (file-directory-p place)
      (mapcar (lambda (file)
                (gemini-companion-status--editor file regexp))
              (seq-filter
               (lambda (file)
                 (gemini-companion-status--below-p
                  directory (gemini-companion-status-roots file)))
               (delete (gemini-companion-status--own-file client)
                       (directory-files place t regexp)))))))

(defun gemini-companion-status--editor (file regexp)
  "Return the editor that wrote FILE, whose name matches REGEXP."
  (let* ((get (lambda (predicate &rest keys)
                (let ((value (gemini-companion-settings-get file keys)))
                  (and (funcall predicate value) value))))
         (name (or (funcall get #'stringp "ideInfo" "displayName")
                   "An editor"))
         (base (file-name-nondirectory file))
         (pid (or (funcall get #'integerp "ppid")
                  (and (string-match regexp base)
                       (match-string 1 base)
                       (string-to-number (match-string 1 base))))))
    (list :name (if pid (format "%s (process %d)" name pid) name)
          :file file
          :port (funcall get #'integerp "port")
          :ended (and pid (null (process-attributes pid))))))

(defun gemini-companion-status--others (directory _ask)
  "Check for discovery files of other editors that a CLI in DIRECTORY may use."
  (or (seq-mapcat (lambda (client)
                    (mapcar (apply-partially #'gemini-companion-status--other
                                             client)
                            (gemini-companion-status--editors client
                                                              directory)))
                  (gemini-companion-status--clients))
      '((good "None for this project"))))

(defun gemini-companion-status--other (client editor)
  "Return the finding about EDITOR, to which CLIENT may connect."
  (let ((name (plist-get editor :name))
        (file (plist-get editor :file)))
    (if (plist-get editor :ended)
        `(bad ,(format "%s is from %s, which has ended" file name)
              "Delete the file."
              ("Delete" . ,(lambda ()
                             (when (yes-or-no-p (format "Delete %s? " file))
                               (delete-file file)))))
      `(note ,(format "%s has this project open too; %s in a terminal outside \
Emacs may connect to that editor"
                      name (gemini-companion-clients-title client))
             "Start the CLI in a terminal of the editor that you want."))))

(defun gemini-companion-status--rival (client directory port)
  "Return the name of another editor that CLIENT in DIRECTORY may use, or nil.
PORT, a string or nil, is the port of the editor in whose terminal the
CLI was started."
  (seq-some (lambda (editor)
              (and (not (plist-get editor :ended))
                   (member port
                           (list nil (format "%s" (plist-get editor :port))))
                   (plist-get editor :name)))
            (gemini-companion-status--editors client directory)))

;;;; Running CLIs

(defun gemini-companion-status--diff (_directory _ask)
  "Check whether reviews find a program that compares files."
  (if-let* ((file (executable-find diff-command)))
      `((good ,(abbreviate-file-name file)))
    `((bad ,(format "Cannot find the program %s, so no review can be displayed"
                    diff-command)
           ,(if (eq system-type 'windows-nt)
                "Install Git for Windows or MSYS2, and add its directory \
usr/bin to PATH."
              "Install the package diffutils of your system.")))))

(defun gemini-companion-status--unconnected (_directory ask)
  "Find the user's CLIs that are not connected, and the reasons.
ASK returns the directories and environments of their processes."
  (let* ((all (gemini-companion-status--processes))
         (connected (mapcar #'car (gemini-companion-status--connected)))
         (rest (seq-remove (lambda (process) (memq (car process) connected))
                           all))
         (pids (mapcar #'car rest)))
    (cond ((null rest)
           `((good ,(if all "All are connected" "None"))))
          ((mapcar (lambda (process)
                     (gemini-companion-status--process-finding
                      process (alist-get (plist-get process :pid) rest)))
                   (if (gemini-companion-server-ready-p)
                       (funcall ask #'gemini-companion-status--ask-processes
                                pids)
                     (gemini-companion-status--unknown pids))))
          (t '((wait "Asking where they run"))))))

(defun gemini-companion-status--ask-processes (pids done)
  "Ask the server for the processes PIDS, and call DONE with them later.
If it cannot answer, nothing but their ids is known."
  (let ((answered (lambda (processes)
                    (funcall done
                             (or processes
                                 (gemini-companion-status--unknown pids))))))
    (unless (gemini-companion-server-ask-processes pids answered)
      (funcall answered nil))))

(defun gemini-companion-status--unknown (pids)
  "Return the processes PIDS, of which nothing else is known."
  (mapcar (lambda (pid) (list :pid pid)) pids))

(defun gemini-companion-status--processes ()
  "Return an alist of (PID . CLIENT), the user's CLIs."
  (let ((parents nil)
        (found nil))
    (dolist (pid (list-system-processes))
      (let* ((attributes (process-attributes pid))
             (client (and (eql (alist-get 'euid attributes) (user-uid))
                          (gemini-companion-clients-of-command
                           (alist-get 'args attributes)))))
        (when client
          (push (alist-get 'ppid attributes) parents)
          (push (cons pid client) found))))
    ;; A CLI may run itself again in a child process.
    (seq-remove (lambda (process) (memq (car process) parents)) found)))

(defun gemini-companion-status--process-finding (process client)
  "Return the finding about PROCESS, a CLIENT that is not connected.
PROCESS is a plist of `gemini-companion-server-ask-processes'."
  (let* ((pid (plist-get process :pid))
         (directory (plist-get process :directory))
         (environment (plist-get process :environment))
         (reason (and environment
                      (gemini-companion-status--reason
                       client directory environment))))
    (list (if (gemini-companion-server-info) (or (car reason) 'bad) 'note)
          (format "%s (process %d%s) is not connected%s"
                  (gemini-companion-clients-title client) pid
                  (if directory
                      (format ", in %s"
                              (gemini-companion-status--file directory))
                    "")
                  (if reason (concat ": " (nth 1 reason)) ""))
          (or (nth 2 reason)
              "Type /ide enable there.  If the CLI answers that IDE integration \
is not supported, it was started before the mode was on: start it again."))))

(defun gemini-companion-status--reason (client directory environment)
  "Return a finding with the reason why CLIENT in DIRECTORY is not connected.
Return nil if it is unknown.  ENVIRONMENT is that of its process; the
server knows both of a process or neither."
  (let* ((own (gemini-companion-status--own-directory client))
         (searched (gemini-companion-clients-file client :discovery
                                                  environment))
         (port (getenv-internal
                (gemini-companion-clients-get client :port-variable)
                environment))
         (rival (gemini-companion-status--rival client directory port))
         (required (car (gemini-companion-clients-get client :required))))
    (cond
     ((not (or (equal own searched) (file-equal-p own searched)))
      (list 'note (format "it searches %s for editors" searched)
            "To connect it here, start it in a terminal of this Emacs."))
     (rival
      (list 'note (format "it may be connected to %s, which has its project \
open too" rival)
            "To connect it here, start it in a terminal of this Emacs."))
     ((not (gemini-companion-status--below-p directory
                                             gemini-companion-roots-last))
      (list (if (gemini-companion-sessions) 'note 'bad)
            "it runs outside the workspace roots"
            "Open a file of its project, then type /ide enable in it."))
     ((and (gemini-companion-clients-get client :leaves-container)
           (gemini-companion-run-container-p)
           (not (seq-some (lambda (name) (getenv-internal name environment))
                          gemini-companion-run-container-variables)))
      (list 'bad "it runs in a container and searches the host for editors"
            "Set REMOTE_CONTAINERS=1 in its terminal, and start it again."))
     ((member required (gemini-companion-settings-missing
                        client directory environment))
      (list 'bad (nth 2 required)
            (format "Type %s in it, once." (nth 3 required)))))))

(provide 'gemini-companion-status)
;;; gemini-companion-status.el ends here
