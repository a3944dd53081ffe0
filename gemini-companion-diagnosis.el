;;; gemini-companion-diagnosis.el --- Why Gemini CLI does not connect  -*- lexical-binding: t; -*-

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

;; The checks of `gemini-companion-status': each looks at one thing that can
;; keep Gemini CLI from this Emacs, and returns findings, with the cure.  How
;; they are shown is not known here.  They must work when nothing else does,
;; so none relies on the mode, the server or Python; programs are asked by a
;; function that is given, and never waited for.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-settings)
(require 'json)
(require 'seq)
(require 'subr-x)

;; Without the package epc it cannot be loaded, which is to be said.
(eval-and-compile
  (ignore-error file-missing
    (require 'gemini-companion)))

;;;; Findings

(cl-defstruct (gemini-companion-finding
               (:constructor gemini-companion-finding (mark text &rest more
                                                            &aux
                                                            (cure (car more))
                                                            (actions (cdr more))))
               (:copier nil))
  "What one check found.
MARK is `good', `bad', `note' or `wait'.  CURE is a sentence or nil.
ACTIONS is a list of (LABEL . FUNCTION), what Emacs can do about it."
  mark text cure actions)

(defconst gemini-companion-diagnosis-checks
  '(("Package" . gemini-companion-diagnosis--package)
    ("Server" . gemini-companion-diagnosis--server)
    ("Python" . gemini-companion-diagnosis--python)
    ("Discovery file" . gemini-companion-diagnosis--discovery)
    ("Temporary folder" . gemini-companion-diagnosis--temporary-folder)
    ("Options" . gemini-companion-diagnosis--options)
    ("Project" . gemini-companion-diagnosis--project)
    ("Other editors" . gemini-companion-diagnosis--others)
    ("Gemini CLI" . gemini-companion-diagnosis--version)
    ("Its settings" . gemini-companion-diagnosis--settings)
    ("Container" . gemini-companion-diagnosis--container)
    ("Proxy" . gemini-companion-diagnosis--proxy)
    ("Running CLIs" . gemini-companion-diagnosis--unconnected))
  "Alist of (TITLE . FUNCTION), the checks in their order.
Each function is called with the folder that the person works in
and a function that asks programs; it returns a finding or a list
of them.")

(defun gemini-companion-diagnosis (directory ask)
  "Return an alist of (TITLE . FINDINGS) for a person who works in DIRECTORY.
ASK is called with a program and its arguments, and returns a cons
of its exit status and output, or nil as long as that is not known."
  (mapcar (pcase-lambda (`(,title . ,check))
            (cons title
                  (condition-case problem
                      (let ((found (funcall check directory ask)))
                        (if (listp found) found (list found)))
                    (error
                     (list (gemini-companion-finding
                            'note
                            (format "This could not be looked at: %s"
                                    (error-message-string problem))))))))
          gemini-companion-diagnosis-checks))

;;;; Emacs and its server

(defun gemini-companion-diagnosis--package (_directory _ask)
  "Find whether the packages are there."
  (if (locate-library "epc")
      (gemini-companion-finding
       'good (format "Emacs %s, gemini-companion %s, epc %s" emacs-version
                     (bound-and-true-p gemini-companion-server-version)
                     (gemini-companion-diagnosis--epc-version)))
    (gemini-companion-finding
     'bad "The package epc is not installed"
     "It comes from MELPA: add that to `package-archives', then \
M-x package-install RET epc RET and start Emacs anew.")))

(defun gemini-companion-diagnosis--epc-version ()
  "Return the version of the package epc as a string."
  (let ((package (cadr (assq 'epc (bound-and-true-p package-alist)))))
    (if (fboundp 'package-desc-version)
        (if package
            (package-version-join (package-desc-version package))
          "of unknown version")
      "of unknown version")))

(defun gemini-companion-diagnosis--info ()
  "Return what the server said of itself, a plist, or nil."
  (and (fboundp 'gemini-companion-server-info)
       (gemini-companion-server-info)))

(defun gemini-companion-diagnosis--server (_directory _ask)
  "Find whether the server is up."
  (let ((info (gemini-companion-diagnosis--info)))
    (cond
     ((and info (not (equal (plist-get info :version)
                            gemini-companion-server-version)))
      (gemini-companion-finding
       'bad (format "The server is %s, and gemini-companion %s"
                    (plist-get info :version) gemini-companion-server-version)
       "This package was updated since the server started."
       '("Restart the server" . gemini-companion-restart)))
     (info
      (gemini-companion-finding
       'good (format "The server %s runs" (plist-get info :version))))
     ((gemini-companion-diagnosis-installing-p)
      (gemini-companion-finding 'wait "Its Python packages are being installed"))
     ((bound-and-true-p gemini-companion-mode)
      (gemini-companion-finding 'wait "The server is starting"))
     ((bound-and-true-p gemini-companion-last-problem)
      (gemini-companion-finding
       'bad gemini-companion-last-problem
       "When that is mended, turn the mode on again."
       '("Turn on" . gemini-companion-diagnosis-turn-on)))
     (t
      (gemini-companion-finding
       'bad "The mode is off"
       "Turn it on, then start `gemini' anew if it was running."
       '("Turn on" . gemini-companion-diagnosis-turn-on))))))

(defun gemini-companion-diagnosis-installing-p ()
  "Return non-nil while the packages of the server are being installed."
  (and (fboundp 'gemini-companion-install-running-p)
       (gemini-companion-install-running-p)))

(defun gemini-companion-diagnosis-turn-on ()
  "Turn on the mode."
  (require 'gemini-companion)
  (gemini-companion-mode 1))

(defconst gemini-companion-diagnosis--python-code
  "import sys, importlib.metadata as m
print('Python', sys.version.split()[0])
for n in 'epc', 'sexpdata', 'mcp', 'hypercorn', 'psutil':
    try: print(n, m.version(n))
    except m.PackageNotFoundError: print(n, 'MISSING')"
  "Prints the versions of what the server needs.")

(defun gemini-companion-diagnosis--python (_directory ask)
  "Find by ASK whether the Python of the server has what it needs."
  (pcase (gemini-companion-server-program)
    (`(,program "-m" . ,_)
     (pcase (funcall ask program "-c" gemini-companion-diagnosis--python-code)
       ('nil (gemini-companion-finding 'wait (format "Asking %s" program)))
       (`(0 . ,output) (gemini-companion-diagnosis--packages program output))
       (`(,_ . ,output)
        (gemini-companion-finding
         'bad (format "%s does not work: %s" program (string-trim output))
         "Python 3.10 or later is needed."
         '("Install the server" . gemini-companion-install-server)))))
    ('nil
     (gemini-companion-finding
      'bad "The Python packages of the server are not installed" nil
      '("Install the server" . gemini-companion-install-server)))
    (command
     (gemini-companion-finding
      'note (format "The server is run by %s"
                    (mapconcat #'shell-quote-argument command " "))))))

(defun gemini-companion-diagnosis--packages (program output)
  "Return the finding for OUTPUT, the versions that PROGRAM printed."
  (let ((old (and (string-match "^Python \\([0-9.]+\\)" output)
                  (version< (match-string 1 output) "3.10")))
        (told (string-join (split-string output "\n" t) ", ")))
    (setq program (abbreviate-file-name program))
    (if (or old (string-search "MISSING" output))
        (gemini-companion-finding
         'bad (format "%s: %s" program told)
         (if old "Python 3.10 or later is needed."
           "These packages are needed.")
         '("Install the server" . gemini-companion-install-server))
      (gemini-companion-finding 'good (format "%s: %s" program told)))))

;;;; Discovery files

(defun gemini-companion-diagnosis--discovery (_directory _ask)
  "Find whether the discovery file is as Gemini CLI needs it."
  (let* ((info (gemini-companion-diagnosis--info))
         (file (plist-get info :discovery))
         (wrong (and info (gemini-companion-diagnosis--file-fault file info))))
    (cond ((null info)
           (gemini-companion-finding 'note "There is none without the server"))
          (wrong
           (gemini-companion-finding
            'bad wrong
            "The server writes it anew within a minute; a restart does at once."
            '("Restart the server" . gemini-companion-restart)))
          (t (gemini-companion-finding 'good file)))))

(defun gemini-companion-diagnosis--file-fault (file info)
  "Return what is wrong with FILE, the discovery file of INFO, or nil."
  (let ((attributes (and file (file-attributes file 'integer))))
    (cond
     ((null file) "It could not be written; see the warnings")
     ((null attributes) (format "%s is gone" file))
     ((file-attribute-type attributes)
      (format "%s is not a regular file" file))
     ((/= (file-attribute-user-id attributes) (user-uid))
      (format "%s belongs to another user, so Gemini CLI ignores it" file))
     ((not (or (eq system-type 'windows-nt)
               (zerop (logand #o077 (file-modes file)))))
      (format "%s, which holds a secret, can be read by others" file))
     (t (gemini-companion-diagnosis--content-fault file info)))))

(defun gemini-companion-diagnosis--content-fault (file info)
  "Return what is wrong with the content of FILE of the server of INFO, or nil."
  (let ((content (gemini-companion-diagnosis--json file)))
    (cond ((null content) (format "%s is not valid JSON" file))
          ((not (and (eql (alist-get 'port content) (plist-get info :port))
                     (equal (alist-get 'authToken content)
                            (plist-get info :token))))
           (format "%s names another port or token than the server has" file))
          ((not (stringp (alist-get 'workspacePath content)))
           (format "%s has no list of folders" file)))))

(defun gemini-companion-diagnosis--json (file)
  "Return the JSON object in FILE as an alist, or nil."
  (condition-case nil
      (let ((value (json-read-file file)))
        (and (consp value) (consp (car value)) value))
    (error nil)))

(defun gemini-companion-diagnosis--folders (content)
  "Return the folders in CONTENT, that of a discovery file."
  (let ((path (alist-get 'workspacePath content)))
    (and (stringp path)
         (split-string path (regexp-quote path-separator) t))))

(defun gemini-companion-diagnosis-folders (file)
  "Return the folders in FILE, a discovery file."
  (gemini-companion-diagnosis--folders (gemini-companion-diagnosis--json file)))

(defun gemini-companion-diagnosis--in-p (directory folders)
  "Return non-nil if DIRECTORY is one of FOLDERS or below."
  (unless (file-remote-p directory)
    (let ((directory (file-truename directory)))
      (seq-some (lambda (folder)
                  (file-in-directory-p directory (file-truename folder)))
                folders))))

(defun gemini-companion-diagnosis--tmpdir (variable)
  "Return the temporary folder of a Node in some environment.
VARIABLE is called with the name of a variable, for its value."
  (directory-file-name
   (or (seq-some (lambda (name)
                   (let ((value (funcall variable name)))
                     (and value (not (string-empty-p value)) value)))
                 (if (eq system-type 'windows-nt)
                     '("TEMP" "TMP")
                   '("TMPDIR" "TMP" "TEMP")))
       "/tmp")))

(defun gemini-companion-diagnosis--getenv (name)
  "Return the value of the variable NAME in a child of Emacs."
  (let ((process-environment (default-value 'process-environment)))
    (getenv name)))

(defun gemini-companion-diagnosis--own-folder ()
  "Return the folder of discovery files for a child of Emacs."
  (expand-file-name "gemini/ide" (gemini-companion-diagnosis--tmpdir
                                  #'gemini-companion-diagnosis--getenv)))

(defun gemini-companion-diagnosis--temporary-folder (_directory _ask)
  "Find whether Emacs and its children have one temporary folder."
  (let* ((file (plist-get (gemini-companion-diagnosis--info) :discovery))
         (folder (gemini-companion-diagnosis--own-folder))
         (written (and file (directory-file-name (file-name-directory file)))))
    (if (or (null file)
            (file-equal-p folder written))
        (gemini-companion-finding
         'good (format "%s; a terminal outside must have the same TMPDIR"
                       (gemini-companion-diagnosis--tmpdir
                        #'gemini-companion-diagnosis--getenv)))
      (gemini-companion-finding
       'bad (format "The discovery file is in %s, but a Gemini CLI that \
Emacs starts looks into %s" written folder)
       "TMPDIR was changed in Emacs since the server started."
       '("Restart the server" . gemini-companion-restart)))))

(defun gemini-companion-diagnosis--options (_directory _ask)
  "Find options that fail, so that nothing is told."
  (or (delq nil
            (list
             (when-let* ((problem (gemini-companion-privacy-problem)))
               (gemini-companion-finding
                'bad (format "What says which files are hidden fails (%s), \
so files are hidden" problem)
                "Correct `gemini-companion-excluded', \
`gemini-companion-share-function' or .geminiignore."))
             (when gemini-companion-roots-problem
               (gemini-companion-finding
                'bad (format "`gemini-companion-roots-function' fails: %s"
                             gemini-companion-roots-problem)
                "Correct it; until then no Gemini CLI may connect."))))
      (gemini-companion-finding
       'good "Those that say what is told do not fail")))

(defun gemini-companion-diagnosis--project (directory _ask)
  "Find whether a CLI in DIRECTORY may connect."
  (let* ((file (plist-get (gemini-companion-diagnosis--info) :discovery))
         (folders (and file (gemini-companion-diagnosis-folders file)))
         ;; Emacs 28 asks the other machine to abbreviate.
         (name (if (file-remote-p directory)
                   directory
                 (abbreviate-file-name directory))))
    (cond
     ((null file) nil)
     ((file-remote-p directory)
      (gemini-companion-finding
       'note (format "%s is on another machine; Gemini CLI connects only \
from this one" name)))
     ((gemini-companion-diagnosis--in-p directory folders)
      (gemini-companion-finding
       'good (format "A Gemini CLI that runs in %s may connect" name)))
     ((gemini-companion-privacy-folder-hidden-p directory)
      (gemini-companion-finding
       'bad (format "%s keeps to itself, so a Gemini CLI that runs there may \
not connect" name)
       "See `gemini-companion-excluded', `gemini-companion-share' in its \
.dir-locals.el, and `gemini-companion-share-function'."))
     (t
      (gemini-companion-finding
       'bad (format "A Gemini CLI that runs in %s may not connect: it is in \
none of the folders %s" name (if folders (string-join folders ", ") "(none)"))
       "Open a file of that project, then type /ide enable.  The home folder \
and / never count; see `gemini-companion-roots-function'.")))))

(defun gemini-companion-diagnosis--others (directory _ask)
  "Find discovery files of others that a CLI in DIRECTORY may take for ours."
  (or (delq nil (mapcar (lambda (file)
                          (gemini-companion-diagnosis--other file directory))
                        (gemini-companion-diagnosis--other-files)))
      (gemini-companion-finding 'good "none is in the way")))

(defun gemini-companion-diagnosis--other-files ()
  "Return the names of all discovery files but ours."
  (let* ((own (plist-get (gemini-companion-diagnosis--info) :discovery))
         (folder (if own
                     (file-name-directory own)
                   (gemini-companion-diagnosis--own-folder))))
    (when (file-directory-p folder)
      (delete own
              (directory-files
               folder t
               "\\`gemini-ide-server-[0-9]+\\(-[0-9]+\\)?\\.json\\'")))))

(defun gemini-companion-diagnosis--pid (file)
  "Return the number of the process in the name of FILE."
  (string-match "server-\\([0-9]+\\)" file)
  (string-to-number (match-string 1 file)))

(defun gemini-companion-diagnosis--editor (file content)
  "Return what to call the editor that wrote CONTENT to FILE."
  (format "%s (process %d)"
          (or (alist-get 'displayName (alist-get 'ideInfo content))
              "An editor")
          (gemini-companion-diagnosis--pid file)))

(defun gemini-companion-diagnosis--offers-p (content directory)
  "Return non-nil if CONTENT, of a discovery file, has DIRECTORY in it."
  (gemini-companion-diagnosis--in-p
   directory (gemini-companion-diagnosis--folders content)))

(defun gemini-companion-diagnosis--rival (directory port)
  "Return the name of another editor that has a CLI in DIRECTORY, or nil.
PORT, a string or nil, is that of the editor in whose terminal it
was started."
  (seq-some (lambda (file)
              (let ((content (gemini-companion-diagnosis--json file)))
                (and (gemini-companion-diagnosis--offers-p content directory)
                     (process-attributes (gemini-companion-diagnosis--pid file))
                     (or (null port)
                         (equal port (format "%s" (alist-get 'port content))))
                     (gemini-companion-diagnosis--editor file content))))
            (gemini-companion-diagnosis--other-files)))

(defun gemini-companion-diagnosis--other (file directory)
  "Return the finding about FILE, a discovery file of another, or nil.
It is for a CLI in DIRECTORY."
  (let* ((content (gemini-companion-diagnosis--json file))
         (pid (gemini-companion-diagnosis--pid file))
         (editor (gemini-companion-diagnosis--editor file content))
         (delete (cons "Delete" (lambda ()
                                  (gemini-companion-diagnosis--delete file)))))
    (cond
     ((null content) nil)
     ((not (stringp (alist-get 'workspacePath content)))
      (gemini-companion-finding
       'bad (format "%s has no folders, which stops every Gemini CLI" file)
       "Delete it." delete))
     ((not (gemini-companion-diagnosis--offers-p content directory)) nil)
     ((null (process-attributes pid))
      (gemini-companion-finding
       'bad (format "%s was left by %s, which has ended" file editor)
       "Delete it." delete))
     (t
      (gemini-companion-finding
       'note
       (format "%s offers this project, too; a gemini in a terminal outside \
takes %s" editor (if (< pid (emacs-pid)) "this Emacs" "that one"))
       "Start gemini in a terminal of the editor that you want.")))))

(defun gemini-companion-diagnosis--delete (file)
  "Delete FILE if the person agrees."
  (when (yes-or-no-p (format "Delete %s? " file))
    (delete-file file)))

;;;; Gemini CLI

(defconst gemini-companion-diagnosis--oldest "0.31.0"
  "The first version of Gemini CLI that finds Emacs by its projects.")

(defun gemini-companion-diagnosis--program ()
  "Return the name of the program that is Gemini CLI."
  (let ((command (bound-and-true-p gemini-companion-gemini-command)))
    (cond ((consp command) (car command))
          ((stringp command) (car (split-string-and-unquote command)))
          (t "gemini"))))

(defun gemini-companion-diagnosis--version (_directory ask)
  "Find by ASK which version of Gemini CLI is there."
  (let* ((program (gemini-companion-diagnosis--program))
         (file (let ((exec-path (default-value 'exec-path)))
                 (executable-find program))))
    (if (null file)
        (gemini-companion-finding
         'bad (format "The program %s is not in the PATH of Emacs" program)
         (concat "To install it: npm install -g @google/gemini-cli"
                 (if (eq system-type 'darwin)
                     ".  A graphical Emacs on macOS lacks the PATH of your \
shell; the package exec-path-from-shell brings it."
                   "")))
      (pcase (funcall ask file "--version")
        ('nil (gemini-companion-finding 'wait (format "Asking %s" file)))
        (`(0 . ,output) (gemini-companion-diagnosis--judge file output))
        (`(,_ . ,output)
         (gemini-companion-finding
          'bad (format "%s does not work: %s" file
                       (truncate-string-to-width (string-trim output) 300))
          "To install it anew: npm install -g @google/gemini-cli"))))))

(defun gemini-companion-diagnosis--judge (file output)
  "Return the finding about FILE, which printed OUTPUT as its version."
  (if (not (string-match "\\([0-9]+\\.[0-9]+\\.[0-9]+\\)" output))
      (gemini-companion-finding
       'note (format "%s does not tell its version" file))
    (let ((version (match-string 1 output)))
      (if (version< version gemini-companion-diagnosis--oldest)
          (gemini-companion-finding
           'bad (format "%s is version %s; before %s it cannot find Emacs"
                        file version gemini-companion-diagnosis--oldest)
           "To update it: npm install -g @google/gemini-cli")
        (gemini-companion-finding
         'good (format "%s, version %s" file version))))))

(defun gemini-companion-diagnosis--settings (directory _ask)
  "Find whether Gemini CLI in DIRECTORY may connect to editors."
  (let* ((project (and (not (file-remote-p directory))
                       (gemini-companion-diagnosis--project-settings
                        directory)))
         (system (gemini-companion-settings-system-file))
         (files (delq nil (list system project)))
         ;; The first that says something of it wins.
         (winner (seq-find #'gemini-companion-diagnosis--says files)))
    (if (and winner (eq t (gemini-companion-diagnosis--says winner)))
        (list (gemini-companion-diagnosis--user-settings winner))
      (delq nil
            (cons (gemini-companion-diagnosis--user-settings nil)
                  (mapcar #'gemini-companion-diagnosis--denial files))))))

(defun gemini-companion-diagnosis--says (file)
  "Return what FILE, a settings file, has as `ide.enabled', or nil."
  (ignore-errors
    (gemini-companion-settings-ide-enabled
     (or (gemini-companion-settings-text file) ""))))

(defun gemini-companion-diagnosis--project-settings (directory)
  "Return the settings file of the project that DIRECTORY is in, or nil."
  (when-let* ((folder (locate-dominating-file directory
                                              ".gemini/settings.json"))
              (file (expand-file-name ".gemini/settings.json" folder)))
    (unless (file-equal-p file (gemini-companion-settings-file))
      file)))

(defun gemini-companion-diagnosis--user-settings (winner)
  "Return the finding about the person's settings of Gemini CLI.
WINNER is another settings file that allows to connect, or nil."
  (let* ((file (gemini-companion-settings-file))
         (name (abbreviate-file-name file))
         (open (cons "Open" (lambda () (find-file-other-window file)))))
    (condition-case problem
        (if (or (eq t (gemini-companion-settings-ide-enabled
                       (or (gemini-companion-settings-text file) "")))
                winner)
            (gemini-companion-finding
             'good (format "ide.enabled is true in %s"
                           (if winner (abbreviate-file-name winner) name)))
          (gemini-companion-finding
           'bad (format "ide.enabled is not set in %s" name)
           "Set it, or type /ide enable in Gemini CLI, once."
           (cons "Set it" (lambda () (gemini-companion-diagnosis--enable file)))))
      (gemini-companion-settings-malformed
       (gemini-companion-finding
        'bad (format "%s is malformed: %s" name (cadr problem))
        "Gemini CLI does not start with it; mend it by hand." open)))))

(defun gemini-companion-diagnosis--enable (file)
  "Set `ide.enabled' in FILE if the person agrees."
  (when (yes-or-no-p (format "Set ide.enabled in %s? "
                             (abbreviate-file-name file)))
    (gemini-companion-settings-set-enabled file)
    (message "Set; type /ide enable in a Gemini CLI that is running")))

(defun gemini-companion-diagnosis--denial (file)
  "Return a finding if FILE, a settings file, denies to connect."
  (when (eq :false (gemini-companion-diagnosis--says file))
    (gemini-companion-finding
     'bad (format "ide.enabled is false in %s, which wins"
                  (abbreviate-file-name file))
     "Take it out there."
     (cons "Open" (lambda () (find-file-other-window file))))))

;;;; Around it

(defconst gemini-companion-diagnosis--beside
  '("SSH_CONNECTION" "REMOTE_CONTAINERS" "VSCODE_REMOTE_CONTAINERS_SESSION")
  "Variables that tell a CLI in a container that its editor is in there too.")

(defun gemini-companion-diagnosis--in-container-p ()
  "Return non-nil if Emacs is in a container, as Gemini CLI sees it."
  (or (file-exists-p "/.dockerenv")
      (file-exists-p "/run/.containerenv")))

(defun gemini-companion-diagnosis--container (_directory _ask)
  "Find whether a CLI would look for Emacs outside of a container."
  (if (gemini-companion-diagnosis--in-container-p)
      (gemini-companion-finding
       'note "This is a container; a gemini outside of Emacs needs \
REMOTE_CONTAINERS=1 in its environment"
       "export REMOTE_CONTAINERS=1 in that terminal; those of Emacs have it.")
    (gemini-companion-finding 'good "none")))

(defun gemini-companion-diagnosis--proxy (_directory _ask)
  "Find whether there is a proxy."
  (let ((set (seq-filter #'gemini-companion-diagnosis--getenv
                         '("HTTP_PROXY" "HTTPS_PROXY" "ALL_PROXY"
                           "http_proxy" "https_proxy" "all_proxy"))))
    (gemini-companion-finding
     'good (if set
               (format "%s set; Gemini CLI goes around it to Emacs"
                       (string-join set ", "))
             "none"))))

;;;; Processes

(defconst gemini-companion-diagnosis--command
  (rx bos (? (* (not " ")) "/") (or "node" "nodejs" "bun" "gemini")
      (or " " eos))
  "What the command line of a Gemini CLI begins with.")

(defconst gemini-companion-diagnosis--script
  (rx (or bos (any " /")) "gemini" (? ".js") (or " " eos))
  "What the command line of a Gemini CLI has in it.")

(defun gemini-companion-diagnosis--unconnected (_directory _ask)
  "Find the Gemini CLIs of this person that are not connected, and why."
  (let* ((all (gemini-companion-diagnosis--processes))
         (connected (mapcar (lambda (session) (plist-get session :pid))
                            (and (fboundp 'gemini-companion-sessions)
                                 (gemini-companion-sessions))))
         (left (seq-remove (lambda (process) (memq (car process) connected))
                           all)))
    (or (mapcar #'gemini-companion-diagnosis--process-finding left)
        (gemini-companion-finding
         'good (if all "each one on this machine is connected"
                 "none on this machine")))))

(defun gemini-companion-diagnosis--processes ()
  "Return an alist of (PID . ATTRIBUTES) of this person's Gemini CLIs."
  (let ((found (delq nil (mapcar #'gemini-companion-diagnosis--process
                                 (list-system-processes)))))
    ;; Gemini CLI starts itself anew, in a child.
    (seq-remove (lambda (process)
                  (seq-some (lambda (other)
                              (eql (car process) (alist-get 'ppid (cdr other))))
                            found))
                found)))

(defun gemini-companion-diagnosis--process (pid)
  "Return a cons of PID and its attributes if it is a Gemini CLI, or nil."
  (let* ((attributes (process-attributes pid))
         (command (or (alist-get 'args attributes) "")))
    (and (eql (alist-get 'euid attributes) (user-uid))
         (string-match-p gemini-companion-diagnosis--command command)
         (string-match-p gemini-companion-diagnosis--script command)
         (not (string-suffix-p " --version" command))
         (cons pid attributes))))

(defun gemini-companion-diagnosis--environment (pid)
  "Return the environment of the process PID, a list, or nil if unknown."
  (ignore-error file-error
    (with-temp-buffer
      (insert-file-contents-literally (format "/proc/%d/environ" pid))
      (split-string (decode-coding-string (buffer-string) 'utf-8) "\0" t))))

(defun gemini-companion-diagnosis--process-finding (process)
  "Return the finding about PROCESS, a Gemini CLI that is not connected."
  (let* ((pid (car process))
         (directory (file-symlink-p (format "/proc/%d/cwd" pid)))
         (environment (gemini-companion-diagnosis--environment pid))
         (reason (and environment
                      (gemini-companion-diagnosis--info)
                      (gemini-companion-diagnosis--reason
                       directory (lambda (name)
                                   (getenv-internal name environment))))))
    (gemini-companion-finding
     (if (gemini-companion-diagnosis--info) 'bad 'note)
     (format "gemini (process %d%s) is not connected%s" pid
             (if directory (format ", in %s" (abbreviate-file-name directory))
               "")
             (if reason (concat ": " (car reason)) ""))
     (or (cadr reason)
         "Type /ide enable in it.  If it says that IDE integration is not \
supported, it was started before the mode was on: start it anew."))))

(defun gemini-companion-diagnosis--reason (directory variable)
  "Return why a CLI does not connect, and the cure, or nil.
It runs in DIRECTORY; VARIABLE is called with the name of a
variable of its environment and returns the value."
  (let* ((info (gemini-companion-diagnosis--info))
         (file (plist-get info :discovery))
         (folder (expand-file-name
                  "gemini/ide" (gemini-companion-diagnosis--tmpdir variable)))
         (port (funcall variable "GEMINI_CLI_IDE_SERVER_PORT")))
    (cond
     ((and file (not (equal (file-truename (file-name-directory file))
                            (file-truename (file-name-as-directory folder)))))
      (list (format "its temporary folder is %s"
                    (gemini-companion-diagnosis--tmpdir variable))
            "Start it with the TMPDIR that Emacs has."))
     ((and file directory
           (not (gemini-companion-diagnosis--in-p
                 directory (gemini-companion-diagnosis-folders file))))
      (list "it runs in none of the projects that are open here"
            "Open a file of its project, then type /ide enable in it."))
     ((and (gemini-companion-diagnosis--in-container-p)
           (not (seq-some variable gemini-companion-diagnosis--beside)))
      (list "it is in a container and looks for Emacs outside"
            "export REMOTE_CONTAINERS=1 in its terminal, and start it anew."))
     ((and directory (gemini-companion-diagnosis--rival directory port))
      (list (format "it may be connected to %s, which offers its project, too"
                    (gemini-companion-diagnosis--rival directory port))
            "To have it here, start it in a terminal of this Emacs."))
     (t
      (gemini-companion-diagnosis--disabled variable)))))

(defun gemini-companion-diagnosis--disabled (variable)
  "Return reason and cure for a CLI whose settings forbid to connect, or nil.
VARIABLE is called with the name of a variable, for its value."
  (when-let* ((home (or (funcall variable "GEMINI_CLI_HOME")
                        (funcall variable "HOME")))
              (file (expand-file-name ".gemini/settings.json" home)))
    (unless (eq t (gemini-companion-settings-ide-enabled
                   (or (gemini-companion-settings-text file) "")))
      (list (format "ide.enabled is not set in %s" (abbreviate-file-name file))
            "Type /ide enable in it, once."))))

(provide 'gemini-companion-diagnosis)
;;; gemini-companion-diagnosis.el ends here
