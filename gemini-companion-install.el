;;; gemini-companion-install.el --- Python packages of the server  -*- lexical-binding: t; -*-

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

;; Install the Python packages of the server, listed with their hashes in
;; python/requirements.txt, into a virtual environment by uv or pip.  A buffer
;; shows the output.  gemini-companion.el decides whether to install them.
;;
;; Each environment has a new name, and is complete when its stamp is written.
;; The previous one is kept until then.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-server)
(require 'gemini-companion-text)
(require 'seq)
(require 'subr-x)

;;;; Customization

(defcustom gemini-companion-install-directory
  (locate-user-emacs-file "gemini-companion/")
  "Directory for the Python packages of the server.
The packages are installed after asking for confirmation.  When an
update of gemini-companion needs other packages, they are installed
without asking again.  Nothing is installed if
`gemini-companion-server-command' is set."
  :type 'directory
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-server)

;;;; State

(defconst gemini-companion-install--log "*gemini-companion install*"
  "Name of the buffer with the output of the installation.")

(cl-defstruct (gemini-companion-install--job
               (:constructor gemini-companion-install--make-job)
               (:copier nil))
  "An installation in progress.
WAYS are lists of commands that make the environment DIRECTORY; the
first one whose first command succeeds is used.  PROCESS is the
current one, or nil.  At the end DONE is called without arguments,
or FAILED with a report."
  directory ways done failed process)

(defvar gemini-companion-install--job nil
  "The installation in progress, or nil.")

;;;; Environments

(defun gemini-companion-install--interpreter (directory)
  "Return the file name of the Python of the environment DIRECTORY."
  (expand-file-name (if (eq system-type 'windows-nt)
                        "Scripts/python.exe"
                      "bin/python")
                    directory))

(defun gemini-companion-install-beside ()
  "Return the Python of the environment in the package directory, or nil.
A checkout has one after `make setup'."
  (let ((python (gemini-companion-install--interpreter
                 (expand-file-name ".venv"
                                   gemini-companion-server-directory))))
    (and (file-executable-p python) python)))

(defun gemini-companion-install--requirements ()
  "Return the names of the lists of packages, in the order to install."
  (mapcar (lambda (name)
            (expand-file-name (concat "python/" name)
                              gemini-companion-server-directory))
          '("requirements-build.txt" "requirements.txt")))

(defun gemini-companion-install--environments ()
  "Return the environments, the newest first, complete or not."
  (let ((directory (expand-file-name gemini-companion-install-directory)))
    (when (file-directory-p directory)
      (nreverse (directory-files directory t "\\`venv-")))))

(defun gemini-companion-install--stamp (directory)
  "Return the name of the file that DIRECTORY, an environment, has if complete."
  (expand-file-name "gemini-companion" directory))

(defun gemini-companion-install--wanted (directory)
  "Return the stamp that the environment DIRECTORY must have.
It depends on the lists of packages, and on the Python that the
environment links to."
  (with-temp-buffer
    (mapc #'insert-file-contents-literally
          (gemini-companion-install--requirements))
    (insert (file-truename (gemini-companion-install--interpreter directory)))
    (secure-hash 'sha256 (current-buffer))))

(defun gemini-companion-install--usable (directory)
  "Return the Python of the environment DIRECTORY if it is up to date."
  (let ((python (gemini-companion-install--interpreter directory))
        (stamp (gemini-companion-install--stamp directory)))
    (and (file-executable-p python)
         (file-readable-p stamp)
         (equal (gemini-companion-install--wanted directory)
                (gemini-companion-text-bytes stamp))
         python)))

(defun gemini-companion-install-command ()
  "Return the command of the server, or nil if its packages are missing."
  (or gemini-companion-server-command
      (when-let* ((python (or (gemini-companion-install-beside)
                              (seq-some
                               #'gemini-companion-install--usable
                               (gemini-companion-install--environments)))))
        (list python "-m" "gemini_companion_epc"))))

(defun gemini-companion-install-agreed-p ()
  "Return non-nil if the user has agreed to an installation before.
There is a complete environment then, up to date or not."
  (seq-some #'file-exists-p
            (mapcar #'gemini-companion-install--stamp
                    (gemini-companion-install--environments))))

(defun gemini-companion-install-running-p ()
  "Return non-nil during an installation."
  (and gemini-companion-install--job t))

;;;; Problems

(defconst gemini-companion-install--problems
  '(("No space left on device\\|Disk quota exceeded\\|os error \\(?:28\\|122\\)"
     . "The disk is full; free 100 MB in %d, or customize \
`gemini-companion-install-directory'")
    ("ensurepip is not available\\|No module named '?\\(?:venv\\|ensurepip\\)"
     . "Python lacks its module venv; install it (on Debian and Ubuntu: \
apt install python3-venv), %s")
    ("Permission denied\\|Read-only file system\\|os error \\(?:13\\|30\\)\\_>"
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
(docs.astral.sh/uv), %s%p"))
  "Alist of (REGEXP . SENTENCE): output of a failed step, and the remedy.
In a sentence %d stands for the directory, %s for the option to use
instead of an installation and %p for a hint about the PATH.")

(defun gemini-companion-install--problem (output &optional default)
  "Return a sentence about the failure of a step that printed OUTPUT.
DEFAULT is the sentence for unknown OUTPUT."
  (let ((case-fold-search nil)
        ;; Some programs wrap their lines.
        (output (replace-regexp-in-string "[ \r\n]+" " " output)))
    (format-spec
     (or (alist-get output gemini-companion-install--problems nil nil
                    (lambda (regexp output) (string-match-p regexp output)))
         default
         "The installation failed; see its output, %s")
     `((?d . ,(abbreviate-file-name gemini-companion-install-directory))
       (?s . "or set `gemini-companion-server-command' to a Python that has \
the packages")
       (?p . ,(gemini-companion-install-path-hint))))))

(defun gemini-companion-install-path-hint ()
  "Return a sentence about the PATH of Emacs on macOS, or an empty string."
  (if (and (eq system-type 'darwin) (display-graphic-p))
      ".  A graphical Emacs on macOS does not have the PATH of your shell; \
the package exec-path-from-shell sets it"
    ""))

;;;; Commands

(defun gemini-companion-install--find (program)
  "Return the file name of PROGRAM, or nil."
  (let ((exec-path
         (seq-remove (lambda (directory)
                       ;; Python there is 3.9, or only opens a dialog.
                       (and (eq system-type 'darwin)
                            (member directory '("/usr/bin" "/usr/bin/"))))
                     (default-value 'exec-path))))
    (executable-find program)))

(defconst gemini-companion-install--check-program "\
import sys
print('%s is Python %d.%d' % ((sys.executable,) + sys.version_info[:2]))
if sys.version_info < (3, 10):
    sys.exit('That is older than 3.10')
import ensurepip, venv
"
  "Program that fails in a Python that cannot make the environment.")

(defun gemini-companion-install--pythons ()
  "Return the programs that may be Python, in order of preference."
  (delq nil (mapcar #'gemini-companion-install--find
                    `(,@(mapcar (lambda (minor) (format "python3.%d" minor))
                                (number-sequence 15 10 -1))
                      "python3"
                      ,@(when (eq system-type 'windows-nt) '("py" "python"))))))

(defun gemini-companion-install--ways (directory)
  "Return the ways to make the environment DIRECTORY.
They are lists of commands, in order of preference."
  (let* ((python (gemini-companion-install--interpreter directory))
         (pip (gemini-companion-install--each
               python "-m" "pip" "install" "--no-input" "--use-pep517"
               "--disable-pip-version-check" "--progress-bar" "off"))
         (uv (gemini-companion-install--find "uv")))
    (append
     (when uv
       `(((,uv "venv" "--python" ">=3.10,<3.16" ,directory)
          ,@(gemini-companion-install--each
             uv "pip" "install" "--python" python "--compile-bytecode"))))
     (mapcar (lambda (program)
               `((,program "-c" ,gemini-companion-install--check-program)
                 (,program "-m" "venv" ,directory)
                 ,@pip))
             (gemini-companion-install--pythons)))))

(defun gemini-companion-install--each (&rest command)
  "Return COMMAND for each of the lists of packages."
  (mapcar (lambda (file)
            `(,@command "--require-hashes" "--no-build-isolation" "-r" ,file))
          (gemini-companion-install--requirements)))

(defun gemini-companion-install--environment ()
  "Return `process-environment' without variables that affect Python.
The settings of pip and uv for proxies and indexes stay."
  (append '("PYTHONUTF8=1" "NO_COLOR=1"
            ;; Without a value, a variable is unset.
            "PYTHONHOME" "PYTHONPATH" "PYTHONSTARTUP" "__PYVENV_LAUNCHER__"
            "VIRTUAL_ENV" "CONDA_PREFIX"
            "PIP_TARGET" "PIP_PREFIX" "PIP_ROOT" "PIP_USER")
          (default-value 'process-environment)))

;;;; Installation

(defun gemini-companion-install-start (done failed &optional show)
  "Make an environment for the server, without waiting for it.
Call DONE without arguments when it is complete, or FAILED with a
report for the user.  Display the output if SHOW is non-nil."
  (when gemini-companion-install--job
    (user-error "Installation already in progress; see the buffer %s"
                gemini-companion-install--log))
  (let* ((directory (expand-file-name
                     (format "venv-%s-%d"
                             (format-time-string "%Y%m%dT%H%M%S%3N")
                             (emacs-pid))
                     gemini-companion-install-directory))
         (job (gemini-companion-install--make-job
               :directory directory :done done :failed failed
               :ways (gemini-companion-install--ways directory)))
         (log (get-buffer-create gemini-companion-install--log)))
    (setq gemini-companion-install--job job)
    (with-current-buffer log
      (let ((inhibit-read-only t))
        (erase-buffer))
      (special-mode))
    (when show
      (display-buffer log))
    (message "Installing the Python packages of gemini-companion...")
    (condition-case problem
        (progn
          (with-file-modes #o700
            (make-directory gemini-companion-install-directory t))
          (gemini-companion-install--try job))
      (file-error
       (gemini-companion-install--fail
        job (error-message-string problem)
        "Cannot create %d; customize `gemini-companion-install-directory'")))))

(defun gemini-companion-install--try (job)
  "Try the next way of JOB, or fail."
  (if-let* ((way (pop (gemini-companion-install--job-ways job))))
      (gemini-companion-install--run
       job way (lambda () (gemini-companion-install--try job)))
    (gemini-companion-install--fail
     job (gemini-companion-install--output 1)
     "No working Python found; install Python 3.10 or later (on Debian and \
Ubuntu: apt install python3-venv) or uv (docs.astral.sh/uv), %s%p")))

(defun gemini-companion-install--run (job commands &optional otherwise)
  "Run COMMANDS for JOB one after the other, and finish JOB.
If the first one fails, call OTHERWISE, or else fail."
  (gemini-companion-install--insert
   (format "$ %s\n" (mapconcat (lambda (word)
                                 (if (string-search "\n" word)
                                     "..."
                                   (shell-quote-argument word)))
                               (car commands) " ")))
  (let* ((process-environment (gemini-companion-install--environment))
         (default-directory "/")
         (log (get-buffer gemini-companion-install--log))
         (start (with-current-buffer log (point-max)))
         (process
          (make-process
           :name "gemini-companion install" :noquery t :buffer log
           :command (car commands) :connection-type 'pipe :coding 'utf-8-unix
           :sentinel
           (lambda (process _event)
             (when (and (eq job gemini-companion-install--job)
                        (not (process-live-p process)))
               (cond
                ((eq (process-status process) 'signal)
                 (gemini-companion-install--fail
                  job (gemini-companion-install--output start)
                  "Installation was killed by a signal"))
                ((/= 0 (process-exit-status process))
                 (if otherwise
                     (funcall otherwise)
                   (gemini-companion-install--fail
                    job (gemini-companion-install--output start))))
                ((cdr commands)
                 (gemini-companion-install--run job (cdr commands)))
                (t
                 (gemini-companion-install--finish job))))))))
    (setf (gemini-companion-install--job-process job) process)
    ;; The end of input answers any question; the process may have ended.
    (ignore-errors (process-send-eof process))))

(defun gemini-companion-install--insert (text)
  "Append TEXT to the log."
  (with-current-buffer (get-buffer-create gemini-companion-install--log)
    (save-excursion
      (goto-char (point-max))
      (let ((inhibit-read-only t))
        (insert text)))))

(defun gemini-companion-install--output (start)
  "Return the text of the log from START on."
  (with-current-buffer (get-buffer-create gemini-companion-install--log)
    (buffer-substring-no-properties (min start (point-max)) (point-max))))

(defun gemini-companion-install--finish (job)
  "End JOB, whose packages are installed."
  (let ((directory (gemini-companion-install--job-directory job)))
    (setq gemini-companion-install--job nil)
    (write-region (gemini-companion-install--wanted directory) nil
                  (gemini-companion-install--stamp directory) nil 'silent)
    (gemini-companion-install--tidy directory)
    (dolist (window (get-buffer-window-list gemini-companion-install--log
                                            nil t))
      (unless (eq window (selected-window))
        (quit-restore-window window)))
    (message "Installing the Python packages of gemini-companion...done")
    (funcall (gemini-companion-install--job-done job))))

(defun gemini-companion-install--fail (job output &optional default)
  "End JOB, which failed with OUTPUT; DEFAULT is for unknown OUTPUT."
  (let ((sentence (gemini-companion-install--problem output default)))
    (gemini-companion-install--abandon job)
    (gemini-companion-install--insert (concat "\n" sentence "\n"))
    (funcall (gemini-companion-install--job-failed job)
             (format "The Python packages of gemini-companion were not \
installed.  %s.\n\nTo try again: M-x gemini-companion-mode, or \
M-x gemini-companion-install-server.\nThe output is in the buffer %s."
                     sentence gemini-companion-install--log))))

(defun gemini-companion-install-cancel ()
  "Cancel the installation in progress, if any."
  (when-let* ((job gemini-companion-install--job))
    (gemini-companion-install--abandon job)
    (gemini-companion-install--insert "\nCancelled\n")))

(defun gemini-companion-install--abandon (job)
  "End JOB and delete its environment."
  (setq gemini-companion-install--job nil)
  (when-let* ((process (gemini-companion-install--job-process job)))
    (delete-process process))
  ;; A child of the process may still write there; the next installation
  ;; deletes the rest.
  (ignore-errors
    (delete-directory (gemini-companion-install--job-directory job) t)))

(defconst gemini-companion-install--tidy-program "\
import os, psutil, shutil, sys
kept, directory = sys.argv[1:]
found = [process.info['cmdline'] for process in psutil.process_iter(['cmdline'])]
running = [word for words in found for word in words or []]
for name in os.listdir(directory):
    path = os.path.join(directory, name)
    if name.startswith('venv-') and path != kept:
        if not any(word.startswith(path) for word in running):
            shutil.rmtree(path, ignore_errors=True)
"
  "Program that deletes the environments that no process uses, except one.")

(defun gemini-companion-install--tidy (directory)
  "Delete the unused environments except DIRECTORY."
  (let ((process-environment (gemini-companion-install--environment))
        (default-directory "/"))
    (make-process :name "gemini-companion tidy" :noquery t
                  :connection-type 'pipe :sentinel #'ignore
                  :command (list (gemini-companion-install--interpreter
                                  directory)
                                 "-c" gemini-companion-install--tidy-program
                                 directory
                                 (expand-file-name
                                  gemini-companion-install-directory)))))

(provide 'gemini-companion-install)
;;; gemini-companion-install.el ends here
