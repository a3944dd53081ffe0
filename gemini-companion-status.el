;;; gemini-companion-status.el --- Status and diagnostics  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software; you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.

;; This program is distributed in the hope that it will be useful,
;; but WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
;; GNU General Public License for more details.

;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; One buffer that shows the state of the connection and, if a Gemini CLI is
;; not connected, why: the state first, then a list of checks with remedies
;; and buttons.  Programs are asked in the background; the buffer is written
;; again when they answer.

;;; Code:

(require 'button)
(require 'cl-lib)
(require 'gemini-companion)
(require 'gemini-companion-diff)
(require 'gemini-companion-events)
(require 'gemini-companion-install)
(require 'gemini-companion-list)
(require 'gemini-companion-privacy)
(require 'gemini-companion-roots)
(require 'gemini-companion-run)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-share)
(require 'json)
(require 'seq)
(require 'subr-x)

;;;; State

(cl-defstruct (gemini-companion-status-finding
               (:constructor gemini-companion-status-finding
                             (mark text &rest more
                                   &aux
                                   (remedy (car more))
                                   (actions (cdr more))))
               (:copier nil))
  "Result of a check.
MARK is `good', `bad', `note' or `wait'.  REMEDY is a sentence or nil.
ACTIONS is a list of (LABEL . FUNCTION), for buttons."
  mark text remedy actions)

(defconst gemini-companion-status-checks
  '(("Package" . gemini-companion-status--package)
    ("Server" . gemini-companion-status--server)
    ("Python" . gemini-companion-status--python)
    ("Discovery file" . gemini-companion-status--discovery)
    ("Temporary directory" . gemini-companion-status--temporary-directory)
    ("Options" . gemini-companion-status--options)
    ("Project" . gemini-companion-status--project)
    ("Other editors" . gemini-companion-status--others)
    ("Gemini CLI" . gemini-companion-status--version)
    ("Its settings" . gemini-companion-status--settings)
    ("Its account" . gemini-companion-status--account)
    ("Container" . gemini-companion-status--container)
    ("Running CLIs" . gemini-companion-status--unconnected))
  "Alist of (TITLE . FUNCTION), the checks in their order.
Each function is called with the user's directory and a function
that asks programs; it returns a finding or a list of them.")

(defconst gemini-companion-status--selection-length 60
  "Maximum number of characters of a selection to show.")

(defvar-local gemini-companion-status--answers nil
  "Alist of (COMMAND . ANSWER), the answers of programs.
ANSWER is a cons of exit status and output, or a live process.")

(defvar-local gemini-companion-status--origin nil
  "Buffer in which the status was called.")

;;;; Mode

(defvar gemini-companion-status-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'forward-button)
    (define-key map (kbd "<backtab>") #'backward-button)
    map)
  "Keymap of `gemini-companion-status-mode'.")

(define-derived-mode gemini-companion-status-mode special-mode "Gemini status"
  "Mode of the buffer with the state of the connection to Gemini CLI.
\\{gemini-companion-status-mode-map}"
  (setq-local revert-buffer-function #'gemini-companion-status--refresh
              truncate-lines nil)
  (visual-line-mode)
  (add-hook 'kill-buffer-hook #'gemini-companion-status--forget nil t))

;;;###autoload
(defun gemini-companion-status ()
  "Show the state of the connection to Gemini CLI, and problems.
\\<gemini-companion-status-mode-map>\
\\[revert-buffer] checks again, \\[forward-button] moves to the next button."
  (interactive)
  (let ((directory default-directory)
        (origin (current-buffer))
        (status (get-buffer-create "*gemini-companion status*")))
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
  (gemini-companion-status--forget)
  (gemini-companion-status--write))

(defun gemini-companion-status--forget ()
  "Discard the answers of programs, and kill those that still run."
  (dolist (answer gemini-companion-status--answers)
    (when (processp (cdr answer))
      (delete-process (cdr answer))))
  (setq gemini-companion-status--answers nil))

(defun gemini-companion-status--write ()
  "Write the buffer, and keep point."
  (let ((line (line-number-at-pos))
        (column (current-column))
        (inhibit-read-only t))
    (erase-buffer)
    (gemini-companion-status--insert-all)
    (goto-char (point-min))
    (forward-line (1- line))
    (move-to-column column)))

;;;; Programs

(defun gemini-companion-status--ask (program &rest args)
  "Return the answer of PROGRAM to ARGS: its exit status and output.
Return nil while it runs."
  (let* ((command (cons program args))
         (known (assoc command gemini-companion-status--answers)))
    (unless known
      (setq known (cons command (gemini-companion-status--start command)))
      (push known gemini-companion-status--answers))
    (unless (processp (cdr known))
      (cdr known))))

(defun gemini-companion-status--start (command)
  "Start COMMAND; return its process, or the answer if that fails."
  (let ((process-environment (default-value 'process-environment))
        (default-directory temporary-file-directory)
        (status (current-buffer))
        (output (generate-new-buffer " *gemini-companion answer*" t)))
    (condition-case problem
        (let ((process
               (make-process
                :name "gemini-companion question" :command command
                :buffer output :noquery t :connection-type 'pipe
                :sentinel (lambda (process _event)
                            (unless (process-live-p process)
                              (gemini-companion-status--answered
                               process command status))))))
          ;; Its sentinel reports one that has ended already.
          (ignore-errors (process-send-eof process))
          process)
      (error
       (kill-buffer output)
       (cons 1 (error-message-string problem))))))

(defun gemini-companion-status--answered (process command status)
  "Write the buffer STATUS with the answer of PROCESS, which ran COMMAND."
  (let ((output (with-current-buffer (process-buffer process)
                  (buffer-string))))
    (kill-buffer (process-buffer process))
    (when (buffer-live-p status)
      (with-current-buffer status
        (when-let* ((known (assoc command gemini-companion-status--answers)))
          (when (eq process (cdr known))
            (setcdr known (cons (process-exit-status process) output))
            ;; Point is that of the window.
            (if-let* ((window (get-buffer-window status t)))
                (with-selected-window window
                  (gemini-companion-status--write))
              (gemini-companion-status--write))))))))

;;;; Contents

(defconst gemini-companion-status--marks
  '((good "✓" "ok" success)
    (bad "✗" "NO" error)
    (note "•" "--" shadow)
    (wait "…" ".." shadow))
  "Alist of (MARK CHARACTER ASCII FACE).")

(defun gemini-companion-status--mark (mark)
  "Return the text for MARK on this display."
  (pcase-let ((`(,character ,ascii ,face)
               (alist-get mark gemini-companion-status--marks)))
    (propertize (if (char-displayable-p (aref character 0)) character ascii)
                'face face)))

(defun gemini-companion-status--button (label function)
  "Insert a button with LABEL, to call FUNCTION and check again."
  (insert " ")
  (insert-text-button
   (concat "[" label "]")
   'follow-link t
   'action (lambda (button)
             (let ((buffer (current-buffer)))
               (ignore button)
               (unwind-protect
                   (if (commandp function)
                       (call-interactively function)
                     (funcall function))
                 (when (buffer-live-p buffer)
                   (with-current-buffer buffer
                     (gemini-companion-status--refresh))))))))

(defun gemini-companion-status--insert-all ()
  "Insert the whole status."
  (gemini-companion-status--insert-mode)
  (gemini-companion-status--insert-sessions)
  (gemini-companion-status--insert-reviews)
  (gemini-companion-status--insert-shared)
  (gemini-companion-status--insert-roots)
  (gemini-companion-status--heading "Checks")
  (insert "\n")
  (pcase-dolist (`(,title . ,findings)
                 (let ((directory default-directory)
                       (default-directory temporary-file-directory))
                   (gemini-companion-status-findings
                    directory #'gemini-companion-status--ask)))
    (dolist (finding findings)
      (gemini-companion-status--insert-finding title finding))))

(defun gemini-companion-status--heading (text)
  "Insert TEXT as a heading."
  (insert (if (bobp) "" "\n") (propertize text 'face 'bold)))

(defun gemini-companion-status--insert-finding (title finding)
  "Insert FINDING of the check TITLE."
  (let ((mark (gemini-companion-status-finding-mark finding)))
    (insert (gemini-companion-status--mark mark) " " title ": "
            (gemini-companion-status-finding-text finding))
    (when-let* ((remedy (gemini-companion-status-finding-remedy finding)))
      (insert "\n    " remedy))
    (pcase-dolist (`(,label . ,function)
                   (gemini-companion-status-finding-actions finding))
      (gemini-companion-status--button label function))
    (insert "\n")))

(defun gemini-companion-status--insert-mode ()
  "Insert the state of the mode and of its server."
  (let ((info (gemini-companion-server-info)))
    (gemini-companion-status--heading "gemini-companion")
    (cond
     (info
      (insert (format " is on\nServer: process %d, port %d, since %s"
                      (gemini-companion-server-pid) (plist-get info :port)
                      (format-time-string "%H:%M"
                                          (gemini-companion-server-since))))
      (gemini-companion-status--button "Restart" #'gemini-companion-restart)
      (gemini-companion-status--button "Events"
                                       #'gemini-companion-events-buffer))
     ((gemini-companion-install-running-p)
      (insert " is installing its Python packages"))
     (gemini-companion-mode
      (insert " is starting"))
     (t
      (insert " is off")
      (gemini-companion-status--button
       "Turn on" #'gemini-companion-status--turn-on)))
    (insert "\n")))

(defun gemini-companion-status--turn-on ()
  "Turn on the mode."
  (gemini-companion-mode 1))

(defun gemini-companion-status--insert-sessions ()
  "Insert the connected CLIs."
  (let ((sessions (gemini-companion-sessions)))
    (insert (format "Connected: %s\n"
                    (pcase (length sessions)
                      (0 "no Gemini CLI")
                      (1 "1 Gemini CLI")
                      (count (format "%d Gemini CLIs" count)))))
    (mapc #'gemini-companion-status--insert-session sessions)))

(defun gemini-companion-status--insert-session (session)
  "Insert one line about SESSION."
  (let ((directory (plist-get session :directory))
        (version (plist-get session :version))
        (since (plist-get session :since))
        (terminal (gemini-companion-session-terminal session)))
    (insert "    " (gemini-companion-session-name session)
            (if directory
                (concat " in " (abbreviate-file-name directory))
              "")
            (if version (concat ", version " version) "")
            (if since
                (format-time-string ", since %H:%M" (/ since 1000))
              ""))
    (when terminal
      (gemini-companion-status--button
       "Terminal" (lambda () (pop-to-buffer terminal))))
    (insert "\n")))

(defun gemini-companion-status--insert-reviews ()
  "Insert the proposals that await an answer."
  (let ((diffs (gemini-companion-diffs)))
    (insert (format "Reviews: %s" (if diffs (length diffs) "none")))
    (when diffs
      (gemini-companion-status--button "Review" #'gemini-companion-review))
    (insert "\n")
    (dolist (diff diffs)
      (insert (format "    %s, from %s, %s\n"
                      (abbreviate-file-name
                       (gemini-companion-diff-file-path diff))
                      (gemini-companion-session-name
                       (gemini-companion-diff-session diff))
                      (gemini-companion-diff-state diff))))))

(defun gemini-companion-status--insert-shared ()
  "Insert what is shared with Gemini CLI."
  (gemini-companion-status--heading "Shared with Gemini CLI")
  (let ((files (gemini-companion-shared)))
    (insert (cond (gemini-companion-paused ": nothing, sharing is paused")
                  ((null (gemini-companion-sessions))
                   ": nothing, no Gemini CLI is connected")
                  ((null files) ": nothing")
                  (t "")))
    (when gemini-companion-mode
      (gemini-companion-status--button
       (if gemini-companion-paused "Resume" "Pause")
       #'gemini-companion-pause))
    (insert "\n")
    (mapc #'gemini-companion-status--insert-file files)
    (gemini-companion-status--insert-unshared)))

(defun gemini-companion-status--insert-file (file)
  "Insert FILE, a plist of `gemini-companion-context-snapshot'."
  (insert "    " (abbreviate-file-name (plist-get file :path))
          (if (plist-get file :active)
              (format ", active, line %s, character %s"
                      (plist-get file :line) (plist-get file :character))
            "")
          "\n")
  (when-let* ((text (plist-get file :selected-text)))
    (let ((print-escape-newlines t))
      (insert (format "        %d characters selected: %S\n" (length text)
                      (truncate-string-to-width
                       text gemini-companion-status--selection-length
                       nil nil "..."))))))

(defun gemini-companion-status--insert-unshared ()
  "Insert why the file of the user's buffer is not shared, if so."
  (let* ((origin gemini-companion-status--origin)
         (file (and (buffer-live-p origin) (buffer-file-name origin)))
         (reason (cond
                  ((null file) nil)
                  ((file-remote-p file) "it is on a remote host")
                  ((gemini-companion-privacy-hidden-p origin)
                   "see `gemini-companion-excluded', \
`gemini-companion-share' and .geminiignore")
                  ((not (file-exists-p file)) "it does not exist on disk yet")
                  ((not (or (not gemini-companion-mode)
                            gemini-companion-share-outside-projects
                            (gemini-companion-roots-name file)))
                   "it is outside the directories below; \
see `gemini-companion-share-outside-projects'"))))
    (when reason
      (insert (format "    %s is not shared: %s\n"
                      (if (file-remote-p file) file (abbreviate-file-name file))
                      reason)))))

(defun gemini-companion-status--insert-roots ()
  "Insert the directories from which Gemini CLI may connect."
  (when-let* ((file (gemini-companion-status--own-file)))
    (gemini-companion-status--heading "Gemini CLI may connect from\n")
    (dolist (root (gemini-companion-status-roots file))
      (insert "    " (abbreviate-file-name root) "\n"))))

;;;; Checks

(defun gemini-companion-status-findings (directory ask)
  "Return an alist of (TITLE . FINDINGS), what is good and what is not.
DIRECTORY is that of the user's buffer.  ASK is called with a
program and its arguments; its value is a cons of exit status and
output, or nil until the program has ended."
  (mapcar (pcase-lambda (`(,title . ,check))
            (cons title
                  (condition-case problem
                      (ensure-list (funcall check directory ask))
                    (error
                     (list (gemini-companion-status-finding
                            'note (format "Check failed: %s"
                                          (error-message-string problem))))))))
          gemini-companion-status-checks))

(defun gemini-companion-status--package (_directory _ask)
  "Check whether the packages are installed."
  (if-let* ((epc (locate-library "epc")))
      (gemini-companion-status-finding
       'good (format "Emacs %s, gemini-companion %s, %s" emacs-version
                     gemini-companion-server-version
                     (abbreviate-file-name (directory-file-name
                                            (file-name-directory epc)))))
    (gemini-companion-status-finding
     'bad "The package epc is not installed"
     "Add MELPA to `package-archives', then M-x package-install RET epc RET \
and start Emacs again.")))

(defun gemini-companion-status--server (_directory _ask)
  "Check the server."
  (let* ((info (gemini-companion-server-info))
         (version (plist-get info :version)))
    (cond
     ((and info (not (equal version gemini-companion-server-version)))
      (gemini-companion-status-finding
       'bad (format "The server is %s, and gemini-companion %s"
                    version gemini-companion-server-version)
       "This package was updated since the server started."
       '("Restart the server" . gemini-companion-restart)))
     (info
      (gemini-companion-status-finding 'good (format "Version %s runs" version)))
     ((gemini-companion-install-running-p)
      (gemini-companion-status-finding
       'wait "Its Python packages are being installed"
       "Type g to check again."))
     (gemini-companion-mode
      (gemini-companion-status-finding
       'wait "The server is starting" "Type g to check again."))
     (gemini-companion-last-problem
      (gemini-companion-status-finding
       'bad gemini-companion-last-problem
       "When that is fixed, turn the mode on again."
       '("Turn on" . gemini-companion-status--turn-on)))
     (t
      (gemini-companion-status-finding
       'bad "The mode is off"
       "Turn it on, and restart Gemini CLI if it was running."
       '("Turn on" . gemini-companion-status--turn-on))))))

(defconst gemini-companion-status--python-code
  "import sys, importlib.metadata as m
print('Python', sys.version.split()[0])
for n in 'epc', 'sexpdata', 'mcp', 'hypercorn', 'psutil':
    try: print(n, m.version(n))
    except m.PackageNotFoundError: print(n, 'MISSING')"
  "Program that prints the versions of what the server needs.")

(defun gemini-companion-status--python (_directory ask)
  "Check by ASK whether the Python of the server has the packages."
  (let ((install '("Install the server" . gemini-companion-install-server)))
    (pcase (or (gemini-companion-server-program)
               (gemini-companion-install-command))
      (`(,program "-m" . ,_)
       (pcase (funcall ask program "-c" gemini-companion-status--python-code)
         ('nil (gemini-companion-status-finding
                'wait (format "Asking %s" program)))
         (`(0 . ,output)
          (let ((old (and (string-match "^Python \\([0-9.]+\\)" output)
                          (version< (match-string 1 output) "3.10"))))
            (apply #'gemini-companion-status-finding
                   (if (or old (string-search "MISSING" output)) 'bad 'good)
                   (format "%s: %s" (abbreviate-file-name program)
                           (string-join (split-string output "\n" t) ", "))
                   (cond (old (list "Python 3.10 or later is needed." install))
                         ((string-search "MISSING" output)
                          (list "The missing packages are needed." install))))))
         (`(,_ . ,output)
          (gemini-companion-status-finding
           'bad (format "%s does not work: %s" program (string-trim output))
           "Python 3.10 or later is needed." install))))
      ('nil
       (gemini-companion-status-finding
        'bad "The Python packages of the server are not installed" nil install))
      (command
       (gemini-companion-status-finding
        'note (format "The command of the server is %s"
                      (mapconcat #'shell-quote-argument command " ")))))))

(defun gemini-companion-status--options (_directory _ask)
  "Check whether the options that decide about sharing work."
  (or (delq nil
            (list
             (when-let* ((problem (gemini-companion-privacy-problem)))
               (gemini-companion-status-finding
                'bad (format "An option that excludes files fails (%s), so \
files are not shared" problem)
                "Correct `gemini-companion-excluded', \
`gemini-companion-share-function' or .geminiignore."))
             (when gemini-companion-roots-problem
               (gemini-companion-status-finding
                'bad (format "`gemini-companion-roots-function' fails: %s"
                             gemini-companion-roots-problem)
                "Correct it; until then no Gemini CLI may connect."))))
      (gemini-companion-status-finding 'good "Sharing options work")))

;;;; Discovery files

(defun gemini-companion-status--own-file ()
  "Return the discovery file of this Emacs for Gemini CLI, or nil."
  (seq-find (lambda (file)
              (string-prefix-p "gemini-ide-server-"
                               (file-name-nondirectory file)))
            (plist-get (gemini-companion-server-info) :discovery)))

(defun gemini-companion-status--json (file)
  "Return the JSON object in FILE as an alist, or nil."
  (condition-case nil
      (let ((value (json-read-file file)))
        (and (consp value) (consp (car value)) value))
    (error nil)))

(defun gemini-companion-status-roots (file)
  "Return the workspace roots in FILE, a discovery file."
  (let ((path (alist-get 'workspacePath (gemini-companion-status--json file))))
    (and (stringp path)
         (split-string path (regexp-quote path-separator) t))))

(defun gemini-companion-status--discovery (_directory _ask)
  "Check the discovery file of this Emacs."
  (if-let* ((info (gemini-companion-server-info)))
      (let ((file (gemini-companion-status--own-file)))
        (if-let* ((problem (gemini-companion-status--file-problem file info)))
            (gemini-companion-status-finding
             'bad problem
             "The server writes it again within a minute, a restart at once."
             '("Restart the server" . gemini-companion-restart))
          (gemini-companion-status-finding 'good file)))
    (gemini-companion-status-finding 'note "None without the server")))

(defun gemini-companion-status--file-problem (file info)
  "Return the problem with FILE, the discovery file of INFO, or nil."
  (let ((content (and file (gemini-companion-status--json file))))
    (cond
     ((null file) "It could not be written; see the warnings")
     ((not (file-regular-p file)) (format "%s does not exist" file))
     ((/= (file-attribute-user-id (file-attributes file 'integer)) (user-uid))
      (format "%s belongs to another user, so Gemini CLI ignores it" file))
     ((not (or (eq system-type 'windows-nt)
               (zerop (logand #o077 (file-modes file)))))
      (format "%s, which holds a secret, can be read by other users" file))
     ((not (and (eql (alist-get 'port content) (plist-get info :port))
                (equal (alist-get 'authToken content) (plist-get info :token))
                (stringp (alist-get 'workspacePath content))))
      (format "%s does not hold what the server wrote" file)))))

(defun gemini-companion-status--below-p (directory roots)
  "Return non-nil if DIRECTORY is one of ROOTS or below one."
  (unless (file-remote-p directory)
    (let ((directory (file-truename directory)))
      (seq-some (lambda (root)
                  (file-in-directory-p directory (file-truename root)))
                roots))))

(defun gemini-companion-status--getenv (name)
  "Return the value of the variable NAME in a child of Emacs."
  (let ((process-environment (default-value 'process-environment)))
    (getenv name)))

(defun gemini-companion-status--tmpdir (variable)
  "Return the temporary directory of Node.js in some environment.
VARIABLE is called with the name of a variable, for its value."
  (directory-file-name
   (or (seq-some (lambda (name)
                   (let ((value (funcall variable name)))
                     (and value (not (string-empty-p value)) value)))
                 (if (eq system-type 'windows-nt)
                     '("TEMP" "TMP")
                   '("TMPDIR" "TMP" "TEMP")))
       "/tmp")))

(defun gemini-companion-status--discovery-directory (variable)
  "Return the directory of discovery files in some environment.
VARIABLE is as in `gemini-companion-status--tmpdir'."
  (expand-file-name "gemini/ide" (gemini-companion-status--tmpdir variable)))

(defun gemini-companion-status--temporary-directory (_directory _ask)
  "Check whether Emacs and its children have one temporary directory."
  (let* ((file (gemini-companion-status--own-file))
         (directory (gemini-companion-status--discovery-directory
                     #'gemini-companion-status--getenv)))
    (if (or (null file)
            (file-equal-p directory (file-name-directory file)))
        (gemini-companion-status-finding
         'good (format "%s; a terminal outside must have the same TMPDIR"
                       (gemini-companion-status--tmpdir
                        #'gemini-companion-status--getenv)))
      (gemini-companion-status-finding
       'bad (format "The discovery file is in %s, but a Gemini CLI that \
Emacs starts searches %s" (file-name-directory file) directory)
       "TMPDIR was changed in Emacs since the server started."
       '("Restart the server" . gemini-companion-restart)))))

(defun gemini-companion-status--project (directory _ask)
  "Check whether a CLI in DIRECTORY may connect."
  (when-let* ((file (gemini-companion-status--own-file)))
    (let ((roots (gemini-companion-status-roots file))
          ;; Emacs 28 asks the remote host to abbreviate.
          (name (if (file-remote-p directory)
                    directory
                  (abbreviate-file-name directory))))
      (cond
       ((file-remote-p directory)
        (gemini-companion-status-finding
         'note (format "%s is remote; Gemini CLI connects only from this host"
                       name)))
       ((gemini-companion-status--below-p directory roots)
        (gemini-companion-status-finding
         'good (format "Gemini CLI may connect from %s" name)))
       ((gemini-companion-privacy-folder-hidden-p directory)
        (gemini-companion-status-finding
         'bad (format "%s is excluded from sharing, so Gemini CLI cannot \
connect from there" name)
         "See `gemini-companion-excluded', `gemini-companion-share' in its \
.dir-locals.el, and `gemini-companion-share-function'."))
       (t
        (gemini-companion-status-finding
         'bad (format "Gemini CLI cannot connect from %s, which is below \
none of the workspace roots %s" name (if roots (string-join roots ", ") "(none)"))
         "Open a file of that project, then type /ide enable.  The home \
directory and / never count; see `gemini-companion-roots-function'."))))))

;;;; Other editors

(defun gemini-companion-status--others (directory _ask)
  "Check for discovery files of others that a CLI in DIRECTORY may use."
  (or (delq nil (mapcar (lambda (file)
                          (gemini-companion-status--other file directory))
                        (gemini-companion-status--other-files)))
      (gemini-companion-status-finding 'good "None for this project")))

(defun gemini-companion-status--other-files ()
  "Return the names of all discovery files but that of this Emacs."
  (let* ((own (gemini-companion-status--own-file))
         (directory (if own
                        (file-name-directory own)
                      (gemini-companion-status--discovery-directory
                       #'gemini-companion-status--getenv))))
    (when (file-directory-p directory)
      (delete own
              (directory-files
               directory t
               "\\`gemini-ide-server-[0-9]+\\(-[0-9]+\\)?\\.json\\'")))))

(defun gemini-companion-status--pid (file)
  "Return the number of the process in the name of FILE."
  (string-match "server-\\([0-9]+\\)" file)
  (string-to-number (match-string 1 file)))

(defun gemini-companion-status--editor (file)
  "Return a name for the editor that wrote FILE."
  (format "%s (process %d)"
          (or (alist-get 'displayName
                         (alist-get 'ideInfo
                                    (gemini-companion-status--json file)))
              "An editor")
          (gemini-companion-status--pid file)))

(defun gemini-companion-status--other (file directory)
  "Return a finding if FILE, of another editor, concerns DIRECTORY."
  (let* ((content (gemini-companion-status--json file))
         (pid (gemini-companion-status--pid file))
         (editor (gemini-companion-status--editor file))
         (delete (cons "Delete" (lambda ()
                                  (when (yes-or-no-p (format "Delete %s? " file))
                                    (delete-file file))))))
    (cond
     ((null content) nil)
     ((not (stringp (alist-get 'workspacePath content)))
      (gemini-companion-status-finding
       'bad (format "%s has no workspace roots, which makes every Gemini CLI \
fail" file)
       "Delete it." delete))
     ((not (gemini-companion-status--below-p
            directory (gemini-companion-status-roots file)))
      nil)
     ((null (process-attributes pid))
      (gemini-companion-status-finding
       'bad (format "%s is from %s, which has ended" file editor)
       "Delete it." delete))
     (t
      (gemini-companion-status-finding
       'note
       (format "%s has this project open too; Gemini CLI in a terminal \
outside connects to %s" editor (if (< pid (emacs-pid)) "this Emacs" "that one"))
       "Start Gemini CLI in a terminal of the editor that you want.")))))

(defun gemini-companion-status--rival (directory port)
  "Return the name of another editor that has a CLI in DIRECTORY, or nil.
PORT, a string or nil, is that of the editor in whose terminal the
CLI was started."
  (seq-some (lambda (file)
              (and (gemini-companion-status--below-p
                    directory (gemini-companion-status-roots file))
                   (process-attributes (gemini-companion-status--pid file))
                   (member port
                           (list nil
                                 (format "%s" (alist-get
                                               'port
                                               (gemini-companion-status--json
                                                file)))))
                   (gemini-companion-status--editor file)))
            (gemini-companion-status--other-files)))

;;;; Gemini CLI

(defconst gemini-companion-status--oldest "0.31.0"
  "First version of Gemini CLI that finds Emacs by its workspace roots.")

(defun gemini-companion-status--program ()
  "Return the name of the program that is Gemini CLI."
  (pcase gemini-companion-gemini-command
    (`(,program . ,_) program)
    (command (car (split-string-and-unquote command)))))

(defun gemini-companion-status--version (_directory ask)
  "Check by ASK which version of Gemini CLI is installed."
  (let* ((exec-path (default-value 'exec-path))
         (program (gemini-companion-status--program))
         (file (executable-find program))
         (hint (gemini-companion-install-path-hint)))
    (if (null file)
        (gemini-companion-status-finding
         'bad (format "The program %s is not in the PATH of Emacs" program)
         (concat "To install it: npm install -g @google/gemini-cli" hint))
      (pcase (funcall ask file "--version")
        ('nil (gemini-companion-status-finding 'wait (format "Asking %s" file)))
        (`(0 . ,output) (gemini-companion-status--judge file output))
        ((guard (not (executable-find "node")))
         (gemini-companion-status-finding
          'bad (format "%s does not work, because node is not in the PATH of \
Emacs" file)
          (concat "Add the directory of node to `exec-path' and PATH" hint)))
        (`(,_ . ,output)
         (gemini-companion-status-finding
          'bad (format "%s does not work: %s" file
                       (truncate-string-to-width (string-trim output) 300))
          "To install it again: npm install -g @google/gemini-cli"))))))

(defun gemini-companion-status--judge (file output)
  "Return the finding about FILE, which printed OUTPUT as its version."
  (if (not (string-match "[0-9]+\\.[0-9]+\\.[0-9]+" output))
      (gemini-companion-status-finding
       'note (format "%s does not print its version" file))
    (let ((version (match-string 0 output)))
      (if (version< version gemini-companion-status--oldest)
          (gemini-companion-status-finding
           'bad (format "%s is version %s, which cannot find Emacs; %s can"
                        file version gemini-companion-status--oldest)
           "To update it: npm install -g @google/gemini-cli")
        (gemini-companion-status-finding
         'good (format "%s, version %s" file version))))))

;;;; Settings of Gemini CLI

(defun gemini-companion-status--user-file ()
  "Return the name of the user's settings file of Gemini CLI."
  (expand-file-name ".gemini/settings.json"
                    (or (getenv "GEMINI_CLI_HOME") "~")))

(defun gemini-companion-status--system-file ()
  "Return the name of the settings file that overrides all others."
  (or (getenv "GEMINI_CLI_SYSTEM_SETTINGS_PATH")
      (pcase system-type
        ('darwin "/Library/Application Support/GeminiCli/settings.json")
        ('windows-nt "C:/ProgramData/gemini-cli/settings.json")
        (_ "/etc/gemini-cli/settings.json"))))

(defun gemini-companion-status--project-file (directory)
  "Return the settings file of the project of DIRECTORY, or nil."
  (when-let* (((not (file-remote-p directory)))
              (root (locate-dominating-file directory ".gemini/settings.json"))
              (file (expand-file-name ".gemini/settings.json" root)))
    (unless (file-equal-p file (gemini-companion-status--user-file))
      file)))

(defun gemini-companion-status--strip-comments ()
  "Delete the comments in the current buffer of JSON."
  (goto-char (point-min))
  (while (re-search-forward
          (rx (or (seq "\"" (* (or (not (any "\"\\\n")) (seq "\\" nonl))) "\"")
                  (group (or (seq "//" (* nonl))
                             (seq "/*" (*? anything) "*/")))))
          nil t)
    (when (match-beginning 1)
      (replace-match " " t t))))

(defun gemini-companion-status--read-settings (file)
  "Return the JSON object in FILE, which may have comments, as an alist.
Its keys are strings.  Return nil if there is no FILE or nothing in
it; signal an error if it is malformed."
  (with-temp-buffer
    (when (file-exists-p file)
      (let ((coding-system-for-read 'utf-8))
        (insert-file-contents file)))
    (gemini-companion-status--strip-comments)
    (goto-char (point-min))
    (skip-chars-forward " \t\r\n")
    (unless (eobp)
      (unless (eq (char-after) ?\{)
        (error "Not a JSON object"))
      (let ((json-object-type 'alist)
            (json-key-type 'string)
            (json-array-type 'vector)
            (json-false :false)
            ;; Distinct from an empty object.
            (json-null :null))
        (prog1 (json-read)
          (skip-chars-forward " \t\r\n")
          (unless (eobp)
            (error "Text after the JSON object")))))))

(defun gemini-companion-status--setting (file &rest keys)
  "Return what FILE, a settings file, has for KEYS, or nil."
  (let ((value (ignore-errors (gemini-companion-status--read-settings file))))
    (dolist (key keys value)
      (setq value (and (consp value) (cdr (assoc key value)))))))

(defun gemini-companion-status--enabled (file)
  "Return t if FILE has `ide.enabled' true, `:false', or nil for neither."
  (gemini-companion-status--setting file "ide" "enabled"))

(defun gemini-companion-status--settings (directory _ask)
  "Check whether Gemini CLI in DIRECTORY may connect to editors."
  (let* ((files (delq nil
                      (list (gemini-companion-status--system-file)
                            (gemini-companion-status--project-file directory))))
         ;; The first one that sets it decides.
         (winner (seq-find #'gemini-companion-status--enabled files)))
    (if (and winner (eq t (gemini-companion-status--enabled winner)))
        (gemini-companion-status--user-settings winner)
      (delq nil
            (cons (gemini-companion-status--user-settings nil)
                  (mapcar #'gemini-companion-status--denial files))))))

(defun gemini-companion-status--user-settings (winner)
  "Return the finding about the user's settings of Gemini CLI.
WINNER is another settings file that allows to connect, or nil."
  (let* ((file (gemini-companion-status--user-file))
         (name (abbreviate-file-name file)))
    (condition-case problem
        (progn
          (gemini-companion-status--read-settings file)
          (cond
           (winner
            (gemini-companion-status-finding
             'good (format "ide.enabled is true in %s"
                           (abbreviate-file-name winner))))
           ((eq t (gemini-companion-status--enabled file))
            (gemini-companion-status-finding
             'good (format "ide.enabled is true in %s" name)))
           (t
            (gemini-companion-status-finding
             'bad (format "ide.enabled is not set in %s" name)
             "Set it, or type /ide enable in Gemini CLI, once."
             (cons "Set it"
                   (lambda () (gemini-companion-status--enable file)))))))
      (error
       (gemini-companion-status-finding
        'bad (format "%s is malformed: %s" name (error-message-string problem))
        "Gemini CLI does not start with it; correct it."
        (gemini-companion-status--open file))))))

(defun gemini-companion-status--open (file)
  "Return the label and function of a button that opens FILE."
  (cons "Open" (lambda () (find-file-other-window file))))

(defun gemini-companion-status--denial (file)
  "Return a finding if FILE, a settings file, denies to connect."
  (when (eq :false (gemini-companion-status--enabled file))
    (gemini-companion-status-finding
     'bad (format "ide.enabled is false in %s, which overrides the user's"
                  (abbreviate-file-name file))
     "Remove it there."
     (gemini-companion-status--open file))))

(defun gemini-companion-status--enable (file)
  "Set `ide.enabled' in FILE if the user agrees.
If it has comments, which would be lost, the user edits it."
  (let ((buffer (find-buffer-visiting file))
        (object (gemini-companion-status--read-settings file)))
    (cond
     ((and buffer (buffer-modified-p buffer))
      (user-error "%s has unsaved changes; save them first"
                  (buffer-name buffer)))
     ((or (gemini-companion-status--comments-p file)
          (not (listp (cdr (assoc "ide" object)))))
      (gemini-companion-status--edit file))
     ((yes-or-no-p (format "Set ide.enabled in %s? "
                           (abbreviate-file-name file)))
      (gemini-companion-status--rewrite
       file (gemini-companion-status--with
             object "ide" (gemini-companion-status--with
                           (cdr (assoc "ide" object)) "enabled" t)))
      (when buffer
        (with-current-buffer buffer
          (revert-buffer t t t)))
      (message "Set; type /ide enable in a Gemini CLI that is running")))))

(defun gemini-companion-status--comments-p (file)
  "Return non-nil if FILE, a settings file, has comments."
  (and (file-exists-p file)
       (with-temp-buffer
         (insert-file-contents file)
         (let ((tick (buffer-modified-tick)))
           (gemini-companion-status--strip-comments)
           (/= tick (buffer-modified-tick))))))

(defun gemini-companion-status--with (object key value)
  "Return OBJECT, an alist, with VALUE for KEY, in its place or last."
  (if (assoc key object)
      (mapcar (lambda (member)
                (if (equal key (car member)) (cons key value) member))
              object)
    (append object (list (cons key value)))))

(defun gemini-companion-status--rewrite (file object)
  "Write OBJECT, an alist, to FILE as JSON, with the line ends that it has."
  (let ((json-encoding-pretty-print t)
        (json-false :false)
        (json-null :null)
        (coding-system-for-write 'utf-8-unix)
        ;; Users keep a link here to where all their settings are.
        (file (file-truename file)))
    (with-temp-buffer
      (when (file-exists-p file)
        (let ((coding-system-for-read 'utf-8))
          (insert-file-contents file))
        (setq coding-system-for-write last-coding-system-used))
      (make-directory (file-name-directory file) t)
      (write-region (concat (json-encode object) "\n") nil file nil 'silent))))

(defun gemini-companion-status--edit (file)
  "Visit FILE at the place for `ide.enabled', with that in the kill ring."
  (find-file-other-window file)
  (goto-char (point-min))
  (let ((inside (re-search-forward "\"ide\"[ \t\r\n]*:[ \t\r\n]*{" nil t)))
    (unless inside
      (search-forward "{" nil t))
    (kill-new (if inside
                  "\"enabled\": true,"
                "\"ide\": {\"enabled\": true},"))
    (message "%s has comments; yank %s here, then save"
             (file-name-nondirectory file) (current-kill 0))))

(defun gemini-companion-status--account (_directory _ask)
  "Check whether Gemini CLI signs in with an account that is accepted."
  (let ((type (gemini-companion-status--setting
               (gemini-companion-status--user-file)
               "security" "auth" "selectedType")))
    (if (member type '(nil "oauth-personal"))
        (gemini-companion-status-finding
         'note (format "%s; since June 2026 Gemini CLI refuses personal Google \
accounts" (if type "Google account" "Not chosen yet"))
         "An API key, Vertex AI and enterprise accounts work; /auth changes it.")
      (gemini-companion-status-finding 'good type))))

;;;; Running CLIs

(defun gemini-companion-status--container (_directory _ask)
  "Check whether a CLI would search for Emacs outside of a container."
  (if (gemini-companion-run-container-p)
      (gemini-companion-status-finding
       'note "This is a container, where Gemini CLI searches the host for \
editors"
       "export REMOTE_CONTAINERS=1 in terminals outside Emacs; those of Emacs \
have it.")
    (gemini-companion-status-finding 'good "None")))

(defun gemini-companion-status--unconnected (_directory _ask)
  "Find the user's CLIs that are not connected, and why."
  (let* ((all (gemini-companion-status--processes))
         (connected (mapcar (lambda (session) (plist-get session :pid))
                            (gemini-companion-sessions)))
         (rest (seq-difference all connected)))
    (or (mapcar #'gemini-companion-status--process-finding rest)
        (gemini-companion-status-finding
         'good (if all "All are connected" "None")))))

(defun gemini-companion-status--processes ()
  "Return the process ids of the user's Gemini CLIs."
  (let ((parents nil)
        (found nil))
    (dolist (pid (list-system-processes))
      (let ((attributes (process-attributes pid)))
        (when (and (eql (alist-get 'euid attributes) (user-uid))
                   (gemini-companion-session-cli-p
                    (alist-get 'args attributes)))
          (push (alist-get 'ppid attributes) parents)
          (push pid found))))
    ;; Gemini CLI runs itself in a child.
    (seq-difference found parents)))

(defun gemini-companion-status--environment (pid)
  "Return the environment of the process PID, a list, or nil if unknown."
  (ignore-error file-error
    (with-temp-buffer
      (insert-file-contents-literally (format "/proc/%d/environ" pid))
      (split-string (decode-coding-string (buffer-string) 'utf-8) "\0" t))))

(defun gemini-companion-status--process-finding (pid)
  "Return the finding about process PID, a CLI that is not connected."
  (let* ((directory (file-symlink-p (format "/proc/%d/cwd" pid)))
         (environment (gemini-companion-status--environment pid))
         (reason (and environment
                      (gemini-companion-server-info)
                      (gemini-companion-status--reason
                       directory (lambda (name)
                                   (getenv-internal name environment))))))
    (gemini-companion-status-finding
     (if (gemini-companion-server-info) 'bad 'note)
     (format "Gemini CLI (process %d%s) is not connected%s" pid
             (if directory (format ", in %s" (abbreviate-file-name directory))
               "")
             (if reason (concat ": " (car reason)) ""))
     (or (cadr reason)
         "Type /ide enable in it.  If it answers that IDE integration is not \
supported, it was started before the mode was on: start it again."))))

(defun gemini-companion-status--reason (directory variable)
  "Return why a CLI does not connect, and the remedy, or nil.
It runs in DIRECTORY; VARIABLE is called with the name of a
variable of its environment and returns the value."
  (let ((file (gemini-companion-status--own-file))
        (port (funcall variable "GEMINI_CLI_IDE_SERVER_PORT")))
    (cond
     ((and file (not (file-equal-p
                      (file-name-directory file)
                      (gemini-companion-status--discovery-directory variable))))
      (list (format "its temporary directory is %s"
                    (gemini-companion-status--tmpdir variable))
            "Start it with the TMPDIR that Emacs has."))
     ((and file directory
           (not (gemini-companion-status--below-p
                 directory (gemini-companion-status-roots file))))
      (list "it runs outside the workspace roots"
            "Open a file of its project, then type /ide enable in it."))
     ((and (gemini-companion-run-container-p)
           (not (seq-some variable
                          gemini-companion-run-container-variables)))
      (list "it runs in a container and searches the host for editors"
            "export REMOTE_CONTAINERS=1 in its terminal, and start it again."))
     ((and directory (gemini-companion-status--rival directory port))
      (list (format "it may be connected to %s, which has its project open too"
                    (gemini-companion-status--rival directory port))
            "To connect it here, start it in a terminal of this Emacs."))
     (t
      (when-let* ((home (or (funcall variable "GEMINI_CLI_HOME")
                            (funcall variable "HOME")))
                  (settings (expand-file-name ".gemini/settings.json" home)))
        (unless (eq t (gemini-companion-status--enabled settings))
          (list (format "ide.enabled is not set in %s"
                        (abbreviate-file-name settings))
                "Type /ide enable in it, once.")))))))

(provide 'gemini-companion-status)
;;; gemini-companion-status.el ends here
