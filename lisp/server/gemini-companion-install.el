;;; gemini-companion-install.el --- Python packages of the server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Install the Python packages of the server, listed with their hashes in
;; python/requirements.txt, into a virtual environment by uv or pip.  A buffer
;; shows the output.  gemini-companion.el decides whether to install them.
;;
;; Each environment has a new name, which ends with the process id of its Emacs, and
;; is complete when its stamp is written.  Then the previous environment is deleted.
;; An environment of another Emacs is kept as long as that Emacs runs.

;;; Code:

(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-server)
(require 'gemini-companion-text)

;;;; Customization

(defcustom gemini-companion-install-directory
  (locate-user-emacs-file "gemini-companion/")
  "Directory for the Python packages of the server, drafts and the history.
The packages are installed after asking for confirmation.  When an update
needs other packages, they are installed without asking again.  If
`gemini-companion-server-command' is set, no packages are installed.
The directory also has the extension that links CLIs, so unlink the CLIs
before you set this."
  :type 'directory
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-server)

;;;; State

(defconst gemini-companion-install--log "*gemini-companion install*"
  "Name of the buffer with the output of the installation.")

(cl-defstruct (gemini-companion-install--job (:noinline t))
  "An installation in progress.
DIRECTORY is the environment that is being made.  WAYS are those that
are still to be tried, see `gemini-companion-install--ways', and FAILED
is the output of those that have failed.  END is called at the end, with
a report for the user if the installation has failed, or else nil."
  directory ways (failed "") end)

(defvar gemini-companion-install--job nil
  "The installation in progress, or nil.")

;;;; Environments

(defun gemini-companion-install-extension-directory ()
  "Return the directory of the extension that links CLIs to Emacs."
  (expand-file-name "extension/" gemini-companion-install-directory))

(defun gemini-companion-install-extension-p ()
  "Return non-nil if CLIs are linked to Emacs by that extension."
  (file-exists-p (gemini-companion-install-extension-directory)))

(defun gemini-companion-install--interpreter (directory)
  "Return the name of Python in the environment DIRECTORY."
  (expand-file-name
   (if (eq system-type 'windows-nt) "Scripts/python.exe" "bin/python")
   directory))

(defun gemini-companion-install--requirements ()
  "Return the names of the two lists of packages.
The list of packages that build others comes first."
  (directory-files (expand-file-name "python" gemini-companion-server-directory)
                   t "\\`requirements\\(-build\\)?\\.txt\\'"))

(defun gemini-companion-install--stamp-file (directory)
  "Return the name of the file that only a complete DIRECTORY has.
DIRECTORY is an environment."
  (expand-file-name "gemini-companion" directory))

(defun gemini-companion-install--environments ()
  "Return the directories of environments, complete or not, the newest first."
  ;; The directory of them all may not exist yet.
  (ignore-error file-error
    (nreverse (directory-files gemini-companion-install-directory
                               t "\\`venv-"))))

(defun gemini-companion-install--complete-environments ()
  "Return the directories of complete environments, the newest first."
  (seq-filter (lambda (directory)
                (file-exists-p
                 (gemini-companion-install--stamp-file directory)))
              (gemini-companion-install--environments)))

(defun gemini-companion-install--foreign-p (directory)
  "Return non-nil if another running Emacs has made DIRECTORY, or is making it.
The name of an environment ends with the process ID of its Emacs, as in
\"venv-20261124T120000000-4711\"."
  (let ((default-directory "/")
        (pid (string-to-number (car (last (split-string directory "-"))))))
    (and (< 0 pid)
         (/= pid (emacs-pid))
         (eq 0 (signal-process pid 0)))))

(defun gemini-companion-install-environment ()
  "Return the newest environment that is complete, or nil.
If there is one, the user has agreed to an installation."
  (car (gemini-companion-install--complete-environments)))

(defun gemini-companion-install--stamp (directory)
  "Return the stamp that the environment DIRECTORY must have, a string.
The stamp depends on the lists of packages, and on the Python that the
environment links to: if one of them changes, the packages are installed
again."
  (with-temp-buffer
    (mapc #'insert-file-contents-literally
          (gemini-companion-install--requirements))
    (insert (file-truename (gemini-companion-install--interpreter directory)))
    (secure-hash 'sha256 (current-buffer))))

(defun gemini-companion-install-command ()
  "Return the command of the server, or nil if its packages are missing."
  (or gemini-companion-server-command
      (when-let* ((directory (gemini-companion-install-environment))
                  (python (gemini-companion-install--interpreter directory))
                  ((file-executable-p python))
                  ((equal (gemini-companion-install--stamp directory)
                          (gemini-companion-text-bytes
                           (gemini-companion-install--stamp-file directory)))))
        (list python "-m" "gemini_companion_epc"))))

(defun gemini-companion-install-running-p ()
  "Return non-nil during an installation."
  (and gemini-companion-install--job t))

;;;; Installation

(defun gemini-companion-install--check (python function)
  "Return a command to call FUNCTION of the program of the server by PYTHON.
FUNCTION is \"check_settings\" or \"check_packages\"."
  (list python "-c" "import sys; sys.path.insert(0, sys.argv[1]); \
import gemini_companion_epc.__main__ as program; \
sys.exit(getattr(program, sys.argv[2])())"
        (expand-file-name "python" gemini-companion-server-directory)
        function))

(defconst gemini-companion-install--problems
  '(;; What `gemini-companion-install--check' prints.
    ("Setting of pip: \\([^ =]+='[^']*'\\)"
     . "pip does not install packages in the environment, because of its \
setting %m; remove this setting from pip.conf (pip config debug shows where), %s")
    ("Packages not importable\\|Cannot import 'setuptools\
\\|No module named '?setuptools"
     . "The packages were installed elsewhere, or cannot be imported; remove \
settings such as `target' and `prefix' of pip and uv (pip.conf, uv.toml), %s")
    ("No space left on device\\|Disk quota exceeded\\|os error \\(?:28\\|122\\)"
     . "The disk is full; free 100 MB in %d, or customize \
`gemini-companion-install-directory'")
    ("ensurepip is not available\\|No module named '?\\(?:venv\\|ensurepip\\)"
     . "Python lacks its module venv; install it (on Debian and Ubuntu: \
apt install python3-venv), %s")
    ("Permission denied\\|Read-only file system\\|Creating directory:\
\\|File exists:\\|os error \\(?:13\\|30\\)\\_>"
     . "Cannot write in %d; customize `gemini-companion-install-directory'")
    ("NewConnectionError\\|ConnectTimeout\\|ReadTimeout\\|timed out\
\\|ProxyError\\|SSLError\\|CERTIFICATE_VERIFY\\|Network is unreachable\
\\|name resolution\\|getaddrinfo failed\\|error sending request\
\\|[Cc]onnection \\(?:refused\\|reset\\|broken\\)"
     . "Cannot fetch the packages; check the network, and the proxy and index \
settings of pip and uv (HTTPS_PROXY, PIP_INDEX_URL, UV_INDEX_URL, pip.conf)")
    ("DO NOT MATCH THE HASHES\\|Hash mismatch"
     . "A package that was fetched does not have the expected hash; check the \
package index and the proxy that pip or uv uses")
    ("No matching distribution found\\|No solution found"
     . "The package index lacks a package for this Python and system; use \
another index or another Python, %s")
    ("older than 3\\.10"
     . "Python 3.10 or later is needed; install it or uv \
(docs.astral.sh/uv), %s%p")
    ("No working Python\\'"
     . "No working Python found; install Python 3.10 or later (on Debian and \
Ubuntu: apt install python3-venv) or uv (docs.astral.sh/uv), %s%p")
    ("Killed by a signal\\'" . "Installation was killed by a signal")
    ("" . "The installation failed; see its output, %s"))
  "Alist of (REGEXP . SENTENCE): output of a failed step, and the remedy.
In a sentence %d stands for the directory, %s for the option to use
instead of an installation, %p for a hint about the PATH and %m for the
first group of REGEXP.")

(defun gemini-companion-install-path-hint ()
  "Return a sentence about the PATH of Emacs on macOS, or an empty string."
  (if (and (eq system-type 'darwin) (display-graphic-p))
      ".  A graphical Emacs on macOS does not have the PATH of your shell; \
the package exec-path-from-shell sets it"
    ""))

(defun gemini-companion-install--ways (directory)
  "Return the ways to make an environment in DIRECTORY, the best one first.
A way is a list of commands, each a list (PROGRAM ARG...).  If its first
command fails, the next way is tried; if another one fails, so does the
installation."
  (let ((exec-path
         (seq-remove (lambda (directory)
                       ;; On macOS, Python there is 3.9, or only opens a dialog.
                       (and (eq system-type 'darwin)
                            (member directory '("/usr/bin" "/usr/bin/"))))
                     (default-value 'exec-path))))
    (append
     (when-let* ((uv (executable-find "uv")))
       (list (gemini-companion-install--way-of-uv uv directory)))
     (mapcar (lambda (program)
               (gemini-companion-install--way-of-python program directory))
             (delq nil
                   (mapcar #'executable-find
                           '("python3.15" "python3.14" "python3.13"
                             "python3.12" "python3.11" "python3.10"
                             "python3" "python" "py")))))))

(defun gemini-companion-install--way-of-uv (uv directory)
  "Return the way to make DIRECTORY by the program UV.
For ways, see `gemini-companion-install--ways'."
  `((,uv "venv" "--python" ">=3.10,<3.16" ,directory)
    ,@(gemini-companion-install--package-commands
       directory
       uv "pip" "install" "--python"
       (gemini-companion-install--interpreter directory)
       "--compile-bytecode")))

(defun gemini-companion-install--way-of-python (program directory)
  "Return the way to make DIRECTORY by PROGRAM, a Python, and pip.
For ways, see `gemini-companion-install--ways'.  Its first command fails
if PROGRAM is too old, or lacks a module that is needed."
  (let ((python (gemini-companion-install--interpreter directory)))
    `((,program "-c" "import sys; sys.version_info < (3, 10) and sys.exit(\
'This Python is older than 3.10: ' + sys.version); import ensurepip, venv")
      (,program "-m" "venv" ,directory)
      ,(gemini-companion-install--check python "check_settings")
      ,@(gemini-companion-install--package-commands
         directory
         python "-m" "pip" "install" "--no-input" "--use-pep517"
         "--disable-pip-version-check" "--progress-bar" "off"))))

(defun gemini-companion-install--package-commands (directory &rest installer)
  "Return the commands that install all packages, and then check them.
INSTALLER is the beginning of a command that installs packages in the
environment DIRECTORY, a list (PROGRAM ARG...)."
  (append
   (mapcar (lambda (file)
             (append installer
                     (list "--require-hashes" "--no-build-isolation" "-r" file)))
           (gemini-companion-install--requirements))
   (list (gemini-companion-install--check
          (gemini-companion-install--interpreter directory)
          "check_packages"))))

(defun gemini-companion-install-start (end &optional show)
  "Make an environment for the server, without waiting for it.
At the end call END, with a report for the user if that failed, or
else nil.  Display the output if SHOW is non-nil.  Signal an error if an
installation is in progress."
  (when gemini-companion-install--job
    (user-error "Installation already in progress; see the buffer %s"
                gemini-companion-install--log))
  (gemini-companion-install--prepare-log show)
  (message "Installing the Python packages of gemini-companion...")
  (let ((directory (expand-file-name
                    (format "venv-%s-%d"
                            (format-time-string "%Y%m%dT%H%M%S%3N")
                            (emacs-pid))
                    gemini-companion-install-directory)))
    (setq gemini-companion-install--job
          (make-gemini-companion-install--job
           :directory directory
           :ways (gemini-companion-install--ways directory)
           :end end)))
  ;; The mode line shows that the installation runs.
  (gemini-companion-part-update-lighter)
  (gemini-companion-install--try gemini-companion-install--job))

(defun gemini-companion-install--try (job)
  "Run the first command of the next way of JOB, and then the others.
If the first one fails, try the way after it."
  (pcase (pop (gemini-companion-install--job-ways job))
    ('nil
     (gemini-companion-install--fail
      job (concat (gemini-companion-install--job-failed job)
                  "No working Python")))
    (`(,first . ,rest)
     (gemini-companion-install--run-command
      job first
      (lambda () (gemini-companion-install--run job rest))
      (lambda (output)
        (cl-callf concat (gemini-companion-install--job-failed job) output)
        (gemini-companion-install--try job))))))

(defun gemini-companion-install--run (job commands)
  "Run COMMANDS, which must all succeed, one after another; then end JOB."
  (if commands
      (gemini-companion-install--run-command
       job (car commands)
       (lambda () (gemini-companion-install--run job (cdr commands)))
       (lambda (output) (gemini-companion-install--fail job output)))
    (gemini-companion-install--finish job)))

(defun gemini-companion-install--run-command (job command then else)
  "Run COMMAND, a list (PROGRAM ARG...), for JOB, without waiting for it.
At its end call THEN without arguments if it has succeeded, or else ELSE
with its output.  If it cannot be run, or was killed, JOB fails; if JOB
was cancelled meanwhile, nothing is called."
  (condition-case problem
      (let* ((process-environment
              (gemini-companion-install--environment-variables))
             (default-directory "/")
             (start (gemini-companion-install--insert
                     (format "$ %s\n" (combine-and-quote-strings command)))))
        (with-file-modes #o700
          (make-directory gemini-companion-install-directory t))
        (let ((process
               (make-process
                :name "gemini-companion install" :noquery t
                :buffer gemini-companion-install--log
                :command command :connection-type 'pipe :coding 'utf-8-unix
                :sentinel
                (lambda (process _event)
                  (unless (process-live-p process)
                    (gemini-companion-install--command-ended
                     job process start then else))))))
          ;; The end of input answers any question.  Sending it fails if the
          ;; process has ended.
          (ignore-errors (process-send-eof process))))
    ;; The directory cannot be made, or the program has gone.
    (file-error (gemini-companion-install--fail-by-error job problem))))

(defun gemini-companion-install--command-ended (job process start then else)
  "Go on with JOB after PROCESS, whose output begins at START.
For THEN and ELSE, see `gemini-companion-install--run-command'."
  (cond
   ((not (eq job gemini-companion-install--job)))
   ((eq 'signal (process-status process))
    (gemini-companion-install--fail job "Killed by a signal"))
   ((zerop (process-exit-status process))
    (funcall then))
   (t
    (funcall else (with-current-buffer (process-buffer process)
                    (buffer-substring start (point-max)))))))

(defconst gemini-companion-install--version-settings
  '("PIP_BUILD_CONSTRAINT" "PIP_REQUIREMENT" "PIP_PRE" "PIP_ALL_RELEASES"
    "PIP_ONLY_FINAL" "PIP_UPLOADED_PRIOR_TO" "PIP_NO_BINARY" "PIP_ONLY_BINARY"
    "PIP_PREFER_BINARY" "PIP_NO_DEPS" "PIP_DRY_RUN" "PIP_IGNORE_REQUIRES_PYTHON"
    "UV_CONSTRAINT" "UV_BUILD_CONSTRAINT" "UV_OVERRIDE" "UV_EXCLUDE"
    "UV_EXCLUDE_NEWER" "UV_EXCLUDE_NEWER_PACKAGE" "UV_PRERELEASE" "UV_RESOLUTION"
    "UV_FORK_STRATEGY" "UV_NO_BINARY" "UV_NO_BINARY_PACKAGE" "UV_NO_BUILD"
    "UV_NO_BUILD_PACKAGE" "UV_NO_VERIFY_HASHES")
  "Variables of pip and uv that choose versions, or kinds of packages.
They are unset, as each package has one version and its hashes.")

(defun gemini-companion-install--environment-variables ()
  "Return the environment of the commands, for `process-environment'.
The settings of pip and uv for proxies, certificates and indexes stay."
  (append '("PYTHONUTF8=1" "NO_COLOR=1" "PYTHONWARNINGS=ignore"
            ;; Without a value, a variable is unset.
            "PYTHONHOME" "PYTHONPATH" "__PYVENV_LAUNCHER__"
            "VIRTUAL_ENV" "CONDA_PREFIX" "PIP_TARGET" "PIP_PREFIX"
            "PIP_ROOT" "PIP_USER=0")
          ;; An empty file also replaces the constraints of pip.conf.
          (list (concat "PIP_CONSTRAINT=" null-device))
          gemini-companion-install--version-settings
          (default-value 'process-environment)))

;;;; The end of an installation

(defun gemini-companion-install--finish (job)
  "End JOB, as its environment is complete, and delete the older ones."
  (let ((new (gemini-companion-install--job-directory job)))
    (condition-case problem
        (write-region (gemini-companion-install--stamp new) nil
                      (gemini-companion-install--stamp-file new) nil 'silent)
      (file-error (gemini-companion-install--fail-by-error job problem))
      (:success
       (setq gemini-companion-install--job nil)
       (gemini-companion-install--delete-older-than new)
       (gemini-companion-install--hide-log)
       (message "Installing the Python packages of gemini-companion...done")
       (funcall (gemini-companion-install--job-end job) nil)))))

(defun gemini-companion-install--delete-older-than (new)
  "Delete all environments except NEW and the previous one.
Another Emacs may use the previous one.  Environments that another running
Emacs has made are not deleted."
  (let ((kept (cons new
                    (seq-take (gemini-companion-install--complete-environments)
                              2))))
    (dolist (old (seq-difference (gemini-companion-install--environments) kept))
      (unless (gemini-companion-install--foreign-p old)
        ;; The next installation deletes what cannot be deleted now.
        (ignore-error file-error (delete-directory old t))))))

(defun gemini-companion-install--fail (job output)
  "Cancel JOB, and report why it failed, from the OUTPUT of a command."
  (gemini-companion-part-stop 'install)
  (let ((sentence (gemini-companion-install--explain output)))
    (gemini-companion-install--insert (concat "\n" sentence "\n"))
    (message "Installing the Python packages of gemini-companion...failed")
    (funcall (gemini-companion-install--job-end job)
             (format "The Python packages of gemini-companion were not \
installed.  %s.\n\nTo try again: M-x gemini-companion-mode, or \
M-x gemini-companion-install-server.\nThe output is in the buffer %s."
                     sentence gemini-companion-install--log))))

(defun gemini-companion-install--fail-by-error (job problem)
  "Cancel JOB because of PROBLEM, the data of an error."
  (let ((text (error-message-string problem)))
    (gemini-companion-install--insert (concat text "\n"))
    (gemini-companion-install--fail job text)))

(defun gemini-companion-install--explain (output)
  "Return a sentence about the problem in OUTPUT, and its remedy.
The first one of `gemini-companion-install--problems' that matches has
the sentence."
  (let* ((case-fold-search nil)
         ;; pip and uv wrap lines, also in the middle of a sentence.
         (output (replace-regexp-in-string "[ \r\n]+" " " output))
         (problem (seq-find (lambda (problem) (string-match (car problem) output))
                            gemini-companion-install--problems))
         ;; The match data are those of the last regexp that was tried.
         (setting (or (match-string 1 output) "")))
    (format-spec
     (cdr problem)
     `((?m . ,setting)
       (?d . ,(gemini-companion-names-absolute gemini-companion-install-directory))
       (?s . "or set `gemini-companion-server-command' to a Python that \
has the packages")
       (?p . ,(gemini-companion-install-path-hint))))))

;;;; The buffer with the output

(defun gemini-companion-install--prepare-log (show)
  "Empty the buffer with the output; display it if SHOW is non-nil."
  (with-current-buffer (get-buffer-create gemini-companion-install--log)
    (let ((inhibit-read-only t)) (erase-buffer))
    (special-mode)
    ;; Windows follow the output.
    (setq-local window-point-insertion-type t)
    (when show
      (display-buffer (current-buffer)
                      '(nil (category . gemini-companion-log))))))

(defun gemini-companion-install--insert (text)
  "Insert TEXT at the end of the output; return the position after it."
  (with-current-buffer (get-buffer-create gemini-companion-install--log)
    (save-excursion
      (goto-char (point-max))
      (let ((inhibit-read-only t)) (insert text))
      (point))))

(defun gemini-companion-install--hide-log ()
  "Quit the windows with the output, but not the selected one."
  (dolist (window (get-buffer-window-list gemini-companion-install--log nil t))
    (unless (eq window (selected-window))
      (quit-restore-window window))))

;;;; Life

(cl-defmethod gemini-companion-part-start ((_part (eql 'install)))
  "Tell the user which files a killed Emacs may have left incomplete."
  (setq gemini-companion-text-backups
        (expand-file-name "backups/" gemini-companion-install-directory))
  (pcase-dolist (`(,file ,copy) (gemini-companion-text-found-backups))
    (message "%s may be incomplete, as Emacs was killed while it wrote the file; \
its text before is in %s"
             (gemini-companion-names-absolute file) (gemini-companion-names-absolute copy))))

(cl-defmethod gemini-companion-part-findings ((_part (eql 'install)) _directory)
  "Return findings about files that a killed Emacs may have left incomplete."
  (mapcar (pcase-lambda (`(,file ,copy))
            `("Backups" note
              ,(format "%s may be incomplete, as Emacs was killed while it wrote it"
                       (gemini-companion-names-absolute file))
              ,(format "Its text before is in %s; delete that once the file is right."
                       (gemini-companion-names-absolute copy))))
          (gemini-companion-text-found-backups)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'install)))
  "Cancel the installation in progress, if any, and delete its environment."
  (when-let* ((job gemini-companion-install--job))
    (setq gemini-companion-install--job nil)
    (when-let* ((process (get-buffer-process gemini-companion-install--log)))
      (delete-process process))
    ;; A child of the process may still write there, so that the directory is
    ;; not empty; the next installation deletes the rest.
    (ignore-error file-error
      (delete-directory (gemini-companion-install--job-directory job) t))))

(provide 'gemini-companion-install)
;;; gemini-companion-install.el ends here
