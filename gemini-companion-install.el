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

;; The server needs a few Python packages.  They are kept in an environment of
;; their own, made once for each version of this package, below the folder
;; that Emacs has for the person's things.  Whether to make one, and what to
;; do then, is the entry's matter.
;;
;; An environment cannot be moved, so it is made in place, under a new name,
;; and counts from the moment when its stamp is written, which is last.  What
;; has no stamp was interrupted.  The one before stays until then.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-server)
(require 'seq)
(require 'subr-x)

;;;; Customization

(defcustom gemini-companion-install-directory
  (locate-user-emacs-file "gemini-companion/")
  "Folder for the Python packages of the server.
They are installed once for each version of this package, after a
question.  Nothing is installed if `gemini-companion-server-command'
says how to run the server."
  :type 'directory
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

;;;; State

(defconst gemini-companion-install--requirements
  '("epc>=0.0.5,<0.1"
    "sexpdata>=1.0.2,<2"
    "mcp>=2.3,<3"
    "hypercorn>=0.18,<0.19"
    "psutil>=7,<8")
  "What the server needs; the same as in pyproject.toml.")

(defconst gemini-companion-install--stamp "gemini-companion.eld"
  "File in an environment with what it was made for.")

(defconst gemini-companion-install--log "*gemini-companion install*"
  "Name of the buffer that shows how the last installation went.")

(defconst gemini-companion-install--log-file "install.log"
  "File in the folder of the environments with the same.")

(defconst gemini-companion-install--pythons
  (append '(("python3") ("python"))
          (mapcar (lambda (minor) (list (format "python3.%d" minor)))
                  (number-sequence 14 10 -1))
          (when (eq system-type 'windows-nt) '(("py" "-3"))))
  "Commands that may be a Python, the one to be tried first first.")

(cl-defstruct (gemini-companion-install--job
               (:constructor gemini-companion-install--make-job)
               (:copier nil))
  "An installation under way.
FOLDER is the environment in the making.  DONE is called without
arguments, and FAILED with a sentence."
  folder done failed
  (process nil :documentation "The process that runs, or nil.")
  (output nil :documentation "Where its output begins in the log.")
  (python nil :documentation "Command of the Python in use, or nil.")
  (pythons nil :documentation "Commands that are still to be tried.")
  (faults nil :documentation "Alist of (SYMBOL . SENTENCE), their faults."))

(defvar gemini-companion-install--job nil
  "The installation under way, or nil.")

;;;; What is there

(defun gemini-companion-install--interpreter (folder)
  "Return the name of the Python of the environment FOLDER."
  (expand-file-name (if (eq system-type 'windows-nt)
                        "Scripts/python.exe"
                      "bin/python")
                    folder))

(defun gemini-companion-install-beside ()
  "Return the Python of the environment beside this package, or nil.
A checkout has one after `make setup'."
  (let ((python (gemini-companion-install--interpreter
                 (expand-file-name ".venv"
                                   gemini-companion-server-directory))))
    (and (file-executable-p python) python)))

(defun gemini-companion-install--prefix ()
  "Return how the names of this version's environments begin."
  (format "venv-%s-" gemini-companion-server-version))

(defun gemini-companion-install--environments ()
  "Return the environments of this version, the newest first."
  (let ((directory (expand-file-name gemini-companion-install-directory)))
    (when (file-directory-p directory)
      (nreverse
       (directory-files directory t
                        (concat "\\`" (regexp-quote
                                       (gemini-companion-install--prefix))))))))

(defun gemini-companion-install--wanted (folder)
  "Return what the stamp of the environment FOLDER must say.
An environment dies with the Python that it was made with, and
where it is moved."
  (list :version gemini-companion-server-version
        :requirements gemini-companion-install--requirements
        :folder folder
        :python (file-truename (gemini-companion-install--interpreter
                                folder))))

(defun gemini-companion-install--usable (folder)
  "Return the Python of the environment FOLDER, or nil if it cannot be used."
  (let ((python (gemini-companion-install--interpreter folder)))
    (and (file-executable-p python)
         (equal (gemini-companion-install--wanted folder)
                (gemini-companion-install--read-stamp folder))
         python)))

(defun gemini-companion-install--read-stamp (folder)
  "Return the content of the stamp of the environment FOLDER, or nil."
  (condition-case nil
      (with-temp-buffer
        (let ((coding-system-for-read 'utf-8-unix))
          (insert-file-contents (expand-file-name
                                 gemini-companion-install--stamp folder)))
        (read (current-buffer)))
    ;; Whatever is wrong with it, the environment is made anew.
    (error nil)))

(defun gemini-companion-install--write-stamp (folder)
  "Write the stamp of the environment FOLDER."
  (let ((coding-system-for-write 'utf-8-unix)
        (print-length nil)
        (print-level nil))
    (write-region (prin1-to-string (gemini-companion-install--wanted folder))
                  nil
                  (expand-file-name gemini-companion-install--stamp folder)
                  nil 'silent)))

(defun gemini-companion-install-python ()
  "Return the Python of an environment with all that the server needs.
Return nil if there is none."
  (or (gemini-companion-install-beside)
      (seq-some #'gemini-companion-install--usable
                (gemini-companion-install--environments))))

(defun gemini-companion-install-needed-p ()
  "Return non-nil if the server cannot run before something is installed."
  (not (or gemini-companion-server-command
           (gemini-companion-install-python))))

(defun gemini-companion-install-agreed-p ()
  "Return non-nil if the person once had packages installed.
There is an environment then, be it of another version or broken."
  (let ((directory (expand-file-name gemini-companion-install-directory)))
    (and (file-directory-p directory)
         (seq-some (lambda (folder)
                     (file-exists-p (expand-file-name
                                     gemini-companion-install--stamp folder)))
                   (directory-files directory t "\\`venv-")))))

(defun gemini-companion-install-running-p ()
  "Return non-nil while an installation is under way."
  (and gemini-companion-install--job t))

;;;; Sentences

(defconst gemini-companion-install--other-way
  "or set `gemini-companion-server-command' to a Python that has the packages"
  "The cure that always works.")

(defconst gemini-companion-install--no-venv
  "Python lacks its module venv.  Install it (on Debian and Ubuntu: \
apt install python3-venv), %s"
  "What to say of a Python that cannot make environments.")

(defconst gemini-companion-install--no-space
  "The disk is full.  About 100 MB are needed in %d; make room, or \
customize `gemini-companion-install-directory'"
  "What to say when there is no room.")

(defconst gemini-companion-install--causes
  `(("No space left on device\\|Disk quota exceeded\\|Errno 28\\|Errno 122\
\\|os error 28\\|os error 122"
     . ,gemini-companion-install--no-space)
    ("ensurepip is not available\\|No module named '?\\(?:venv\\|ensurepip\\)"
     . ,gemini-companion-install--no-venv)
    ("Permission denied\\|Read-only file system\\|os error \\(?:13\\|30\\)\\_>"
     . "Something in %d cannot be written; see the lines below, or customize \
`gemini-companion-install-directory'")
    ("NewConnectionError\\|ConnectTimeout\\|ReadTimeout\\|timed out\
\\|ProxyError\\|SSLError\\|CERTIFICATE_VERIFY\\|Network is unreachable\
\\|Temporary failure in name resolution\\|getaddrinfo failed\
\\|error sending request\\|[Cc]onnection \\(?:refused\\|reset\\|broken\\)"
     . "The packages could not be fetched.  Look at the network, and at what \
pip is told of it: HTTPS_PROXY and PIP_INDEX_URL in Emacs's environment, and \
its file pip.conf")
    ("No matching distribution found\\|No solution found"
     . "The package index does not have the packages for this Python; use \
another index or another Python, %s"))
  "Alist of (REGEXP . SENTENCE), faults outside of our hands.
In a sentence %d stands for the folder and %s for the other way.")

(defconst gemini-companion-install--little-space 20000000
  "With less than so many bytes left, that is why a step failed.")

(defun gemini-companion-install--cause (output)
  "Return a sentence on why a step failed that printed OUTPUT."
  (let ((case-fold-search nil)
        ;; Some programs break their lines anywhere.
        (output (replace-regexp-in-string "[ \r\n]+" " " output)))
    (gemini-companion-install--sentence
     (or (cdr (seq-find (lambda (entry)
                          (string-match-p (car entry) output))
                        gemini-companion-install--causes))
         (and (gemini-companion-install--full-p)
              gemini-companion-install--no-space)
         "Installing failed; see the lines below, %s"))))

(defun gemini-companion-install--full-p ()
  "Return non-nil if there is no room in the folder."
  (when-let* ((space (file-system-info gemini-companion-install-directory)))
    (< (nth 2 space) gemini-companion-install--little-space)))

(defun gemini-companion-install--sentence (template)
  "Return TEMPLATE with the folder for %d and the other way for %s."
  (format-spec template
               `((?d . ,(abbreviate-file-name
                         gemini-companion-install-directory))
                 (?s . ,gemini-companion-install--other-way))))

(defun gemini-companion-install--no-python (job)
  "Return a sentence on why no Python was good enough for JOB."
  (let ((faults (gemini-companion-install--job-faults job)))
    (or (alist-get 'no-venv faults)
        (alist-get 'old faults)
        (alist-get 'broken faults)
        (concat (gemini-companion-install--sentence
                 "No Python found.  Install Python 3.10 or later (on Debian \
and Ubuntu: apt install python3-venv) or uv (docs.astral.sh/uv), %s")
                (gemini-companion-install-path-hint)))))

(defun gemini-companion-install-path-hint ()
  "Return what a person needs to know of Emacs's PATH, or an empty string."
  (if (and (eq system-type 'darwin) (display-graphic-p))
      ".  A graphical Emacs on macOS does not have the PATH of your shell; \
the package exec-path-from-shell gives it that"
    ""))

;;;; Steps

(defun gemini-companion-install-start (done failed)
  "Make an environment for the server, without waiting for it.
DONE is called without arguments when it is there, or FAILED with
what a person needs to know."
  (when gemini-companion-install--job
    (user-error "An installation is going on already; see %s"
                gemini-companion-install--log))
  (let ((job (gemini-companion-install--make-job
              :done done :failed failed
              :pythons gemini-companion-install--pythons
              :folder (expand-file-name
                       (format "%s%s-%d" (gemini-companion-install--prefix)
                               (format-time-string "%Y%m%dT%H%M%S%3N")
                               (emacs-pid))
                       gemini-companion-install-directory))))
    (setq gemini-companion-install--job job)
    (with-current-buffer (get-buffer-create gemini-companion-install--log)
      (let ((inhibit-read-only t))
        (erase-buffer))
      (special-mode))
    (condition-case problem
        (progn
          (with-file-modes #o700
            (make-directory gemini-companion-install-directory t))
          (if-let* ((uv (gemini-companion-install--find "uv")))
              (gemini-companion-install--uv job uv)
            (gemini-companion-install--next-python job)))
      (file-error
       (gemini-companion-install--fail
        job (format "The folder %s cannot be made; customize \
`gemini-companion-install-directory'"
                    (abbreviate-file-name gemini-companion-install-directory))
        (error-message-string problem))))))

(defun gemini-companion-install--find (program)
  "Return the full name of PROGRAM, or nil."
  (let ((exec-path (default-value 'exec-path)))
    (executable-find program)))

(defun gemini-companion-install--uv (job uv)
  "Make the environment of JOB with the program UV, else with Python."
  (let* ((folder (gemini-companion-install--job-folder job))
         (otherwise (lambda (_output)
                      (gemini-companion-install--remove job)
                      ;; That takes a while; nothing may be made there.
                      (setf (gemini-companion-install--job-folder job)
                            (concat folder "-pip"))
                      (gemini-companion-install--next-python job))))
    (gemini-companion-install--run
     job "making an environment"
     (list uv "venv" "--no-project" "--python" ">=3.10" folder)
     (lambda ()
       (gemini-companion-install--run
        job "fetching packages"
        `(,uv "pip" "install" "--python"
              ,(gemini-companion-install--interpreter folder)
              ,@gemini-companion-install--requirements)
        (lambda () (gemini-companion-install--verify job))
        otherwise))
     otherwise)))

(defconst gemini-companion-install--probe-program "\
import sys
sys.stdout.write('%s is Python %d.%d\\n' % ((sys.executable,) + sys.version_info[:2]))
sys.stdout.flush()
if sys.version_info < (3, 10):
    sys.exit(3)
try:
    import ensurepip, venv
except ImportError:
    sys.exit(4)
"
  "Program for any Python that tells whether it is good enough.")

(defun gemini-companion-install--next-python (job)
  "Have JOB try the next Python."
  (if-let* ((python (pop (gemini-companion-install--job-pythons job))))
      (if-let* ((program (gemini-companion-install--find (car python))))
          (gemini-companion-install--try job (cons program (cdr python)))
        (gemini-companion-install--next-python job))
    (gemini-companion-install--fail
     job (gemini-companion-install--no-python job))))

(defun gemini-companion-install--try (job python)
  "Have JOB use PYTHON, a command, if it is good enough."
  (gemini-companion-install--run
   job "looking at Python"
   `(,@python "-c" ,gemini-companion-install--probe-program)
   (lambda ()
     (setf (gemini-companion-install--job-python job) python)
     (gemini-companion-install--venv job))
   (lambda (output)
     (push (gemini-companion-install--fault
            (string-join python " ")
            (process-exit-status (gemini-companion-install--job-process job))
            output)
           (gemini-companion-install--job-faults job))
     (gemini-companion-install--next-python job))))

(defun gemini-companion-install--fault (python status output)
  "Return the fault of PYTHON, which ended with STATUS and printed OUTPUT."
  (pcase status
    (3 (cons 'old (concat
                   "Python 3.10 or later is needed, and "
                   (string-trim output)
                   (gemini-companion-install--sentence
                    ".  Install a newer one, %s")
                   (gemini-companion-install-path-hint))))
    (4 (cons 'no-venv
             (concat (string-trim output) ", but this "
                     (gemini-companion-install--sentence
                      gemini-companion-install--no-venv))))
    (_ (cons 'broken
             (format "%s does not work.  Install Python 3.10 or later, %s"
                     python gemini-companion-install--other-way)))))

(defun gemini-companion-install--venv (job)
  "Make the environment of JOB with its Python."
  (let* ((folder (gemini-companion-install--job-folder job))
         (fail (lambda (output)
                 (gemini-companion-install--fail-with job output))))
    (gemini-companion-install--run
     job "making an environment"
     `(,@(gemini-companion-install--job-python job) "-m" "venv" ,folder)
     (lambda ()
       (gemini-companion-install--run
        job "fetching packages"
        `(,(gemini-companion-install--interpreter folder)
          "-m" "pip" "install" "--no-input" "--no-user"
          "--disable-pip-version-check" "--progress-bar" "off"
          ,@gemini-companion-install--requirements)
        (lambda () (gemini-companion-install--verify job))
        fail))
     fail)))

(defun gemini-companion-install--verify (job)
  "See whether the environment of JOB is good, and end JOB."
  (gemini-companion-install--run
   job "checking"
   (list (gemini-companion-install--interpreter
          (gemini-companion-install--job-folder job))
         "-c" (concat "import "
                      (mapconcat (lambda (requirement)
                                   (car (split-string requirement ">")))
                                 gemini-companion-install--requirements ", ")))
   (lambda ()
     (condition-case problem
         (progn
           (gemini-companion-install--write-stamp
            (gemini-companion-install--job-folder job))
           (gemini-companion-install--finish job))
       (file-error
        (gemini-companion-install--fail-with
         job (error-message-string problem)))))
   (lambda (output)
     (gemini-companion-install--fail-with job output))))

;;;; End

(defun gemini-companion-install--finish (job)
  "End JOB, whose environment is there."
  (setq gemini-companion-install--job nil)
  (gemini-companion-install--say "done")
  (gemini-companion-install--keep-log)
  (gemini-companion-install--tidy
   (gemini-companion-install--job-folder job))
  (funcall (gemini-companion-install--job-done job)))

(defun gemini-companion-install--fail-with (job output)
  "End JOB, as a step failed and printed OUTPUT."
  (gemini-companion-install--fail
   job (gemini-companion-install--cause output) output))

(defun gemini-companion-install--fail (job sentence &optional output)
  "End JOB, which failed for the reason SENTENCE; OUTPUT has more."
  (setq gemini-companion-install--job nil)
  (gemini-companion-install--remove job)
  (gemini-companion-install--note (concat "\n" sentence "\n"))
  (gemini-companion-install--keep-log)
  (funcall (gemini-companion-install--job-failed job)
           (concat
            "The Python packages of gemini-companion were not installed.  "
            sentence "."
            (gemini-companion-install--end-of output)
            (format "\n\nTo try again: M-x gemini-companion-mode, or \
M-x gemini-companion-install-server.\nThe whole log is in the buffer %s."
                    gemini-companion-install--log))))

(defun gemini-companion-install--end-of (output)
  "Return the last lines of OUTPUT, a string or nil, for a report."
  (let ((lines (seq-remove
                (lambda (line) (string-match-p "\\`WARNING: " line))
                (split-string (or output "") "[\r\n]+" t "[ \t]+"))))
    (if lines
        (concat "\n\nIt said last:\n  "
                (string-join (last lines 8) "\n  "))
      "")))

(defun gemini-companion-install-cancel ()
  "End the installation under way, if there is one."
  (when-let* ((job gemini-companion-install--job))
    (setq gemini-companion-install--job nil)
    (when-let* ((process (gemini-companion-install--job-process job)))
      (set-process-sentinel process #'ignore)
      (delete-process process))
    (gemini-companion-install--note "\nInterrupted.\n")
    (gemini-companion-install--keep-log)
    (gemini-companion-install--remove job)))

(defun gemini-companion-install--remove (job)
  "Remove what JOB has made so far."
  (let ((folder (gemini-companion-install--job-folder job)))
    (when (file-exists-p folder)
      (gemini-companion-install--run-python
       (or (gemini-companion-install--job-python job)
           (list (gemini-companion-install--interpreter folder)))
       "import shutil, sys; shutil.rmtree(sys.argv[1], ignore_errors=True)"
       folder))))

(defconst gemini-companion-install--tidy-program "\
import os, psutil, shutil, sys
kept, folder = sys.argv[1:]
found = [process.info['cmdline'] for process in psutil.process_iter(['cmdline'])]
running = [word for words in found for word in words or []]
for name in os.listdir(folder):
    path = os.path.join(folder, name)
    if name.startswith('venv-') and path != kept:
        if not any(word.startswith(path) for word in running):
            shutil.rmtree(path, ignore_errors=True)
"
  "Program that removes unused environments, but one.")

(defun gemini-companion-install--tidy (folder)
  "Remove the unused environments other than FOLDER."
  (gemini-companion-install--run-python
   (list (gemini-companion-install--interpreter folder))
   gemini-companion-install--tidy-program
   folder (expand-file-name gemini-companion-install-directory)))

(defun gemini-companion-install--run-python (python program &rest args)
  "Run PROGRAM with ARGS by the command PYTHON and forget about it."
  (let ((process-environment (gemini-companion-install--environment))
        (default-directory "/"))
    (condition-case problem
        (make-process :name "gemini-companion tidy" :noquery t
                      :connection-type 'pipe
                      :command `(,@python "-c" ,program ,@args)
                      :sentinel #'ignore)
      (file-error (gemini-companion-install--note
                   (concat (error-message-string problem) "\n"))))))

;;;; Processes

(defun gemini-companion-install--environment ()
  "Return the environment of Emacs without what misleads a Python.
What tells pip and uv of proxies and indexes stays."
  (let ((process-environment
         (copy-sequence (default-value 'process-environment))))
    (dolist (name '("PYTHONHOME" "PYTHONPATH" "PYTHONSTARTUP"
                    "__PYVENV_LAUNCHER__" "VIRTUAL_ENV" "CONDA_PREFIX"
                    "PIP_TARGET" "PIP_PREFIX" "PIP_ROOT" "PIP_USER"))
      (setenv name nil))
    (setenv "PYTHONUTF8" "1")
    (setenv "NO_COLOR" "1")
    process-environment))

(defun gemini-companion-install--run (job what command next otherwise)
  "Run COMMAND, which does WHAT for JOB; then call NEXT.
If it fails, call OTHERWISE with its output instead."
  (gemini-companion-install--say what)
  (gemini-companion-install--note
   (format "\n$ %s\n" (gemini-companion-install--printed command)))
  (let ((process-environment (gemini-companion-install--environment))
        (default-directory "/")
        (log (get-buffer-create gemini-companion-install--log)))
    (setf (gemini-companion-install--job-output job)
          (with-current-buffer log
            (add-hook 'kill-buffer-hook
                      #'gemini-companion-install--log-killed nil t)
            (point-max)))
    (condition-case problem
        (let ((process
               (make-process
                :name "gemini-companion install" :noquery t :buffer log
                :command command :connection-type 'pipe :coding 'utf-8-unix
                :sentinel
                (lambda (process _event)
                  (unless (process-live-p process)
                    (gemini-companion-install--ended
                     job process next otherwise))))))
          (setf (gemini-companion-install--job-process job) process)
          ;; The end of input answers a question of the program, which may
          ;; have ended already.
          (ignore-errors (process-send-eof process)))
      (file-error
       (gemini-companion-install--note (error-message-string problem))
       (setf (gemini-companion-install--job-process job) nil)
       (gemini-companion-install--fail-with
        job (error-message-string problem))))))

(defun gemini-companion-install--log-killed ()
  "End the process of the log, which is being killed.
One that ignores a hangup, as below nohup, would go on unheard."
  (when-let* ((process (get-buffer-process (current-buffer))))
    (delete-process process)))

(defun gemini-companion-install--printed (command)
  "Return COMMAND for the log, with a program in it cut short."
  (mapconcat (lambda (word)
               (if (string-match-p "\n" word)
                   "..."
                 (shell-quote-argument word)))
             command " "))

(defun gemini-companion-install--ended (job process next otherwise)
  "Go on with JOB by NEXT, or OTHERWISE if its PROCESS failed."
  (when (eq job gemini-companion-install--job)
    (let ((output (gemini-companion-install--output job process)))
      (cond ((and (eq (process-status process) 'exit)
                  (zerop (process-exit-status process)))
             (funcall next))
            ((eq (process-status process) 'signal)
             (gemini-companion-install--fail
              job "Something killed the installation" output))
            (t (funcall otherwise output))))))

(defun gemini-companion-install--output (job process)
  "Return what PROCESS of JOB has printed."
  (if (buffer-live-p (process-buffer process))
      (with-current-buffer (process-buffer process)
        (buffer-substring-no-properties
         (min (point-max) (gemini-companion-install--job-output job))
         (point-max)))
    ""))

(defun gemini-companion-install--note (text)
  "Append TEXT to the log."
  (with-current-buffer (get-buffer-create gemini-companion-install--log)
    (let ((inhibit-read-only t))
      (save-excursion
        (goto-char (point-max))
        (insert text)))))

(defun gemini-companion-install--keep-log ()
  "Write the log to its file, which is there when Emacs has ended, too."
  ;; Where that is not possible the installation has failed for that reason.
  (ignore-error file-error
    (with-current-buffer (get-buffer-create gemini-companion-install--log)
      (let ((coding-system-for-write 'utf-8-unix))
        (with-file-modes #o600
          (write-region nil nil
                        (expand-file-name gemini-companion-install--log-file
                                          gemini-companion-install-directory)
                        nil 'silent))))))

(defun gemini-companion-install--say (what)
  "Tell the person that the installation is at WHAT."
  (force-mode-line-update t)
  (unless (active-minibuffer-window)
    (message "Installing the Python packages of gemini-companion...%s" what)))

(provide 'gemini-companion-install)
;;; gemini-companion-install.el ends here
