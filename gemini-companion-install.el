;;; gemini-companion-install.el --- Python packages of the server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Install the Python packages of the server, listed with their hashes in
;; python/requirements.txt, into a virtual environment by uv or pip.  A buffer
;; shows the output.  gemini-companion.el decides whether to install them.
;;
;; Each environment has a new name, which ends with the id of the Emacs that
;; makes it, and is complete when its stamp is written.  The previous one is kept
;; until then, those that other running Emacsen made as long as they run.

;;; Code:

(require 'gemini-companion-part)
(require 'gemini-companion-server)
(require 'gemini-companion-text)
(require 'gemini-companion-windows-at-once)

;;;; Customization

(defcustom gemini-companion-install-directory
  (locate-user-emacs-file "gemini-companion/")
  "Directory for the Python packages of the server, drafts and the history.
The packages are installed after asking for confirmation.  When an update
needs other packages, they are installed without asking again, but none if
`gemini-companion-server-command' is set.  The extension that links CLIs is
there, too, so unlink them before you set this."
  :type 'directory
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-server)

;;;; State

(defconst gemini-companion-install--log "*gemini-companion install*"
  "Name of the buffer with the output of the installation.")

(defvar gemini-companion-install--directory nil
  "The environment that is being made, or nil.")

;;;; Environments

(defun gemini-companion-install-extension-directory ()
  "Return the directory of the extension that links CLIs to Emacs."
  (expand-file-name "extension/" gemini-companion-install-directory))

(defun gemini-companion-install-extension-p ()
  "Return non-nil if CLIs are linked to Emacs by that extension."
  (file-exists-p (gemini-companion-install-extension-directory)))

(defun gemini-companion-install--interpreter (directory)
  (expand-file-name
   (if (eq system-type 'windows-nt) "Scripts/python.exe" "bin/python")
   directory))

(defun gemini-companion-install--requirements ()
  (directory-files (expand-file-name "python" gemini-companion-server-directory)
                   t "\\`requirements\\(-build\\)?\\.txt\\'"))

(defun gemini-companion-install--stamp (directory)
  "Return the name of the file that DIRECTORY, an environment, has if complete."
  (expand-file-name "gemini-companion" directory))

(defun gemini-companion-install--environments (&optional all)
  "Return the environments that are complete, or ALL, the newest first."
  (ignore-error file-error
    (seq-filter (lambda (directory)
                  (or all (file-exists-p
                           (gemini-companion-install--stamp directory))))
                (nreverse (directory-files gemini-companion-install-directory
                                           t "\\`venv-")))))

(defun gemini-companion-install--foreign-p (directory)
  "Return non-nil if another running Emacs made DIRECTORY, or is making it."
  (let ((default-directory "/")
        (pid (string-to-number (car (last (split-string directory "-"))))))
    (and (< 0 pid) (/= pid (emacs-pid)) (eq 0 (signal-process pid 0)))))

(defun gemini-companion-install-environment ()
  "Return the newest environment that is complete, or nil.
If there is one, the user has agreed to an installation."
  (car (gemini-companion-install--environments)))

(defun gemini-companion-install--wanted (directory)
  "Return the stamp that the environment DIRECTORY must have.
It depends on the lists of packages, and on the Python that the
environment links to."
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
                  ((equal (gemini-companion-install--wanted directory)
                          (gemini-companion-text-bytes
                           (gemini-companion-install--stamp directory)))))
        (list python "-m" "gemini_companion_epc"))))

(defun gemini-companion-install-running-p ()
  "Return non-nil during an installation."
  (and gemini-companion-install--directory t))

;;;; Installation

(defun gemini-companion-install--check (python function)
  "Return a command: PYTHON is to call FUNCTION of the program of the server.
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
A way is a list of commands, each a list (PROGRAM ARG...); the next way is
tried when the first command of one fails."
  (let* ((exec-path
          (seq-remove (lambda (directory)
                        ;; Python there is 3.9, or only opens a dialog.
                        (and (eq system-type 'darwin)
                             (member directory '("/usr/bin" "/usr/bin/"))))
                      (default-value 'exec-path)))
         (python (gemini-companion-install--interpreter directory))
         (install (lambda (&rest command)
                    (append
                     (mapcar (lambda (file)
                               `(,@command "--require-hashes"
                                           "--no-build-isolation" "-r" ,file))
                             (gemini-companion-install--requirements))
                     (list (gemini-companion-install--check
                            python "check_packages")))))
         (check "import sys; sys.version_info < (3, 10) and sys.exit(\
'This Python is older than 3.10: ' + sys.version); import ensurepip, venv")
         (pip (funcall install python "-m" "pip" "install" "--no-input"
                       "--use-pep517" "--disable-pip-version-check"
                       "--progress-bar" "off")))
    (append
     (when-let* ((uv (executable-find "uv")))
       `(((,uv "venv" "--python" ">=3.10,<3.16" ,directory)
          ,@(funcall install uv "pip" "install" "--python" python
                     "--compile-bytecode"))))
     (cl-loop for name in '("python3.15" "python3.14" "python3.13" "python3.12"
                            "python3.11" "python3.10" "python3" "python" "py")
              for program = (executable-find name)
              when program collect `((,program "-c" ,check)
                                     (,program "-m" "venv" ,directory)
                                     ,(gemini-companion-install--check
                                       python "check_settings")
                                     ,@pip)))))

(defun gemini-companion-install-start (end &optional show)
  "Make an environment for the server, without waiting for it.
At the end call END, with a report for the user if that failed, or
else nil.  Display the output if SHOW is non-nil."
  (when gemini-companion-install--directory
    (user-error "Installation already in progress; see the buffer %s"
                gemini-companion-install--log))
  (with-current-buffer (get-buffer-create gemini-companion-install--log)
    (let ((inhibit-read-only t)) (erase-buffer))
    (special-mode)
    ;; Windows follow the output.
    (setq-local window-point-insertion-type t)
    (when show
      (gemini-companion-windows-at-once
        (display-buffer (current-buffer)))))
  (message "Installing the Python packages of gemini-companion...")
  (setq gemini-companion-install--directory
        (expand-file-name (format "venv-%s-%d"
                                  (format-time-string "%Y%m%dT%H%M%S%3N")
                                  (emacs-pid))
                          gemini-companion-install-directory))
  (force-mode-line-update t)
  (gemini-companion-install--run
   (gemini-companion-install--ways gemini-companion-install--directory) "" end))

(defun gemini-companion-install--run (ways failed end)
  "Run the commands of the first of WAYS whose first command succeeds.
FAILED is the output of the previous ways, or nil once one is chosen.
At the end call END, see `gemini-companion-install-start'."
  (condition-case problem
      (cond ((null ways)
             (gemini-companion-install--fail (concat failed "No working Python")
                                             end))
            ((car ways)
             (gemini-companion-install--run-command ways failed end))
            (t (gemini-companion-install--finish end)))
    (file-error
     (let ((text (error-message-string problem)))
       (gemini-companion-install--insert (concat text "\n"))
       (gemini-companion-install--fail text end)))))

(defun gemini-companion-install--run-command (ways failed end)
  "Run the first command of the first of WAYS, and the others after it.
If it fails and FAILED is non-nil, the output of ways that have failed,
try the next way; otherwise report that.  END is called at the end, with
nil or a problem."
  (with-file-modes #o700
    (make-directory gemini-companion-install-directory t))
  (let* ((directory gemini-companion-install--directory)
         ;; The settings of pip and uv for proxies and indexes stay.
         (process-environment
          (append '("PYTHONUTF8=1" "NO_COLOR=1" "PYTHONWARNINGS=ignore"
                    ;; Without a value, a variable is unset.
                    "PYTHONHOME" "PYTHONPATH" "__PYVENV_LAUNCHER__"
                    "VIRTUAL_ENV" "CONDA_PREFIX" "PIP_TARGET" "PIP_PREFIX"
                    "PIP_ROOT" "PIP_USER=0")
                  (default-value 'process-environment)))
         (default-directory "/")
         (start (gemini-companion-install--insert
                 (format "$ %s\n" (combine-and-quote-strings (caar ways)))))
         (process
          (make-process
           :name "gemini-companion install" :noquery t
           :buffer gemini-companion-install--log
           :command (caar ways) :connection-type 'pipe :coding 'utf-8-unix
           :sentinel
           (lambda (process _event)
             (when (and (eq directory gemini-companion-install--directory)
                        (not (process-live-p process)))
               (pcase (process-exit-status process)
                 ((guard (eq (process-status process) 'signal))
                  (gemini-companion-install--fail "Killed by a signal" end))
                 (0
                  (gemini-companion-install--run (list (cdar ways)) nil end))
                 (_
                  (let ((output (with-current-buffer (process-buffer process)
                                  (buffer-substring start (point-max)))))
                    (if failed
                        (gemini-companion-install--run
                         (cdr ways) (concat failed output) end)
                      (gemini-companion-install--fail output end))))))))))
    ;; The end of input answers any question; the process may have ended.
    (ignore-errors (process-send-eof process))))

(defun gemini-companion-install--insert (text)
  (with-current-buffer (get-buffer-create gemini-companion-install--log)
    (save-excursion
      (goto-char (point-max))
      (let ((inhibit-read-only t)) (insert text))
      (point))))

(defun gemini-companion-install--finish (end)
  "Use the environment that was installed, and delete the older ones.
Then call END with nil."
  (let* ((new gemini-companion-install--directory)
         (stamp (gemini-companion-install--stamp new)))
    (write-region (gemini-companion-install--wanted new) nil stamp nil 'silent)
    (setq gemini-companion-install--directory nil)
    (dolist (old (seq-difference
                  (seq-remove #'gemini-companion-install--foreign-p
                              (gemini-companion-install--environments 'all))
                  ;; Another Emacs may use the previous one.
                  (cons new
                        (seq-take (gemini-companion-install--environments) 2))))
      (ignore-error file-error (delete-directory old t))))
  (gemini-companion-windows-at-once
    (dolist (window (get-buffer-window-list gemini-companion-install--log nil t))
      (unless (eq window (selected-window)) (quit-restore-window window))))
  (message "Installing the Python packages of gemini-companion...done")
  (funcall end nil))

(defun gemini-companion-install--fail (output end)
  "Call END with the reason for a failed installation, from its OUTPUT.
The first one of `gemini-companion-install--problems' that matches
explains it."
  (gemini-companion-part-stop 'install)
  (let* ((case-fold-search nil)
         ;; pip and uv wrap lines, also in the middle of a sentence.
         (output (replace-regexp-in-string "[ \r\n]+" " " output))
         ;; The match data are for the group of its regexp.
         (problem (seq-find (lambda (problem) (string-match (car problem) output))
                            gemini-companion-install--problems))
         (sentence
          (format-spec
           (cdr problem)
           `((?m . ,(or (match-string 1 output) ""))
             (?d . ,(abbreviate-file-name gemini-companion-install-directory))
             (?s . "or set `gemini-companion-server-command' to a Python that \
has the packages")
             (?p . ,(gemini-companion-install-path-hint))))))
    (gemini-companion-install--insert (concat "\n" sentence "\n"))
    (message "Installing the Python packages of gemini-companion...failed")
    (funcall end (format "The Python packages of gemini-companion were not \
installed.  %s.\n\nTo try again: M-x gemini-companion-mode, or \
M-x gemini-companion-install-server.\nThe output is in the buffer %s."
                         sentence gemini-companion-install--log))))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'install)))
  "Cancel the installation in progress, if any, and delete its environment."
  (when-let* ((directory gemini-companion-install--directory))
    (setq gemini-companion-install--directory nil)
    (when-let* ((process (get-buffer-process gemini-companion-install--log)))
      (delete-process process))
    ;; A child of the process may still write there; the next installation
    ;; deletes the rest.
    (ignore-errors (delete-directory directory t))))

(provide 'gemini-companion-install)
;;; gemini-companion-install.el ends here
