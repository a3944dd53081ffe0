;;; gemini-companion-install-test.el --- Tests of the installation  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-server-test-helper)

(defconst gemini-companion-install-test-log "*gemini-companion install*"
  "Name of the buffer with the output of the installation.")

(defconst gemini-companion-install-test-real "\
case \"$*\" in
  *version_info*) echo 'python3 is Python 3.11' ;;
  '-m venv '*) mkdir -p \"$3/bin\" && ln -s \"$0\" \"$3/bin/python\" ;;
  '-m pip '*) ;;
  *) exec \"$GC_REAL\" \"$@\" ;;
esac
"
  "What a good Python does, in the language of the shell.")

(defconst gemini-companion-install-test-good
  (concat "case \"$*\" in *check_settings) exit ;; esac\n"
          gemini-companion-install-test-real)
  "What a good Python does that does not ask pip for its settings.
That would be most of the work of an installation here.")

(defun gemini-companion-install-test-program (name &rest lines)
  "Write the program NAME with LINES of shell to the directory bin."
  (let ((file (expand-file-name (concat "bin/" name))))
    (gemini-companion-test-write
     file (concat "#!/bin/sh\n" (string-join lines "\n") "\n"))
    (set-file-modes file #o700)))

(defmacro gemini-companion-install-test-with (programs &rest body)
  "Run BODY where PROGRAMS, lists of (NAME LINE...), are all that there are.
The answer to each question is `answer'; `asked' has the questions,
`warnings' the warnings."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory '()
     (let* ((real (gemini-companion-test-python))
            (package gemini-companion-server-directory)
            (gemini-companion-server-directory directory)
            (gemini-companion-server-command nil)
            (gemini-companion-install-directory
             (expand-file-name "installed/" directory))
            (exec-path (list (expand-file-name "bin" directory)))
            (process-environment
             (append (list (concat "GC_REAL=" real)
                           (concat "TMPDIR=" directory))
                     process-environment))
            (noninteractive nil)
            (after-init-time (current-time))
            (answer t)
            asked warnings)
       (ignore answer asked warnings)
       (copy-directory (expand-file-name "python" package) "python" t)
       (pcase-dolist (`(,name . ,lines) ,programs)
         (apply #'gemini-companion-install-test-program name lines))
       (cl-letf (((symbol-function 'y-or-n-p)
                  (lambda (question) (push question asked) answer))
                 ((symbol-function 'display-warning)
                  (lambda (_type message &rest _) (push message warnings))))
         (unwind-protect
             (progn ,@body)
           (gemini-companion-mode -1)
           (gemini-companion-install-test-ended)
           (when (get-buffer gemini-companion-install-test-log)
             (kill-buffer gemini-companion-install-test-log)))))))

(defun gemini-companion-install-test-ended ()
  "Wait for the end of all processes of the package."
  (gemini-companion-test-eventually (not (gemini-companion-test-processes))))

(defun gemini-companion-install-test-environments ()
  "Return the names of the environments that are there, whole or not."
  (and (file-directory-p gemini-companion-install-directory)
       (directory-files gemini-companion-install-directory nil "venv")))

(ert-deftest gemini-companion-install-asks-once-and-the-mode-starts ()
  (gemini-companion-install-test-with
      ;; test/e2e installs by a uv that works.
      `(("python3" ,gemini-companion-install-test-real) ("uv" "exit 1"))
    (gemini-companion-mode 1)
    (should (equal " Gemini installing" (cadr (gemini-companion-lighter))))
    (should (get-buffer-window gemini-companion-install-test-log))
    (gemini-companion-mode 1)
    (gemini-companion-test-eventually (gemini-companion-server-ready-p))
    (should (equal 1 (length asked)))
    (should (string-match-p "installed/" (car asked)))
    (should (string-match-p
             "python -m pip install"
             (gemini-companion-test-text gemini-companion-install-test-log)))
    (should-not (get-buffer-window gemini-companion-install-test-log t))
    (should-not warnings)
    (gemini-companion-mode -1)
    (gemini-companion-install-test-ended)
    (gemini-companion-mode 1)
    (gemini-companion-test-eventually (gemini-companion-server-ready-p))
    (gemini-companion-mode -1)
    ;; Nor about a new list.
    (write-region "#" nil "python/requirements.txt" t)
    (let ((noninteractive t))
      (gemini-companion-mode 1)
      (should-not gemini-companion-mode))
    ;; A daemon without a frame cannot ask.
    (cl-letf (((symbol-function 'daemonp) #'always))
      (gemini-companion-mode 1))
    (gemini-companion-test-eventually (gemini-companion-server-ready-p))
    (should (equal 1 (length asked)))))

(ert-deftest gemini-companion-install-without-a-yes-turns-the-mode-off ()
  (gemini-companion-install-test-with
      `(("python3" ,gemini-companion-install-test-good))
    (setq answer nil)
    (let ((after-init-time nil)
          (emacs-startup-hook nil))
      (gemini-companion-mode 1)
      (should-not asked)
      (setq after-init-time (current-time))
      (run-hooks 'emacs-startup-hook)
      (should-not emacs-startup-hook))
    (gemini-companion-mode 1)
    (should-not gemini-companion-mode)
    (should (equal 2 (length asked)))
    (let ((gemini-companion-server-command (list real)))
      (should-error (gemini-companion-install-server) :type 'user-error))
    (cl-letf (((symbol-function 'y-or-n-p) (lambda (_) (signal 'quit nil))))
      (gemini-companion-mode 1)
      (should-not gemini-companion-mode))
    (let ((noninteractive t))
      (gemini-companion-mode 1)
      (should-not gemini-companion-mode))
    (should (equal 2 (length asked)))
    (should (string-match-p "M-x gemini-companion-install-server" (car warnings)))
    (should-not (gemini-companion-test-processes))
    (should-not (gemini-companion-install-test-environments))))

(ert-deftest gemini-companion-install-reports-how-to-fix-each-failure ()
  (pcase-dolist
      (`(,remedy . ,programs)
       `(("No working Python found; install Python 3\\.10")
         ("Python 3\\.10 or later is needed"
          ("python3" "echo This Python is older than 3.10; exit 1"))
         ("apt install python3-venv"
          ("python3" "case \"$2\" in venv)"
           "echo 'ensurepip is not\navailable.  On Debian'; exit 1;; esac"))
         ("check the network"
          ("python3" "case \"$2\" in pip) echo 'NewConnectionError'"
           "echo 'ERROR: No matching distribution found for epc'; exit 1;;"
           "esac" ,gemini-companion-install-test-good))
         ("does not have the expected hash"
          ("python3" "case \"$2\" in pip)"
           "echo 'PACKAGES DO NOT MATCH THE HASHES FROM'; exit 1;;"
           "esac" ,gemini-companion-install-test-good))
         ;; By settings, the packages are installed elsewhere.
         ("setting install\\.target='/x y'; remove"
          ("python3" "case \"$*\" in *check_settings)"
           "echo \"Setting of pip: install.target='/x y'\"; exit 1;; esac"
           ,gemini-companion-install-test-good))
         ;; Only the import shows it.
         ("or cannot be imported; remove settings such as .target. and .prefix."
          ("python3" "case \"$*\" in *check_packages)"
           "echo 'Packages not importable: No module named epc'; exit 1;;"
           "esac" ,gemini-companion-install-test-good))
         ("settings such as .target. and .prefix. of pip and uv"
          ("python3" "case \"$2\" in pip)"
           "echo \"Cannot import 'setuptools.build_meta'\"; exit 1;;"
           "esac" ,gemini-companion-install-test-good))
         ;; Its directory cannot be created.
         ("gemini-companion-install-directory"
          ("../installed") ("python3" "exit 1"))
         ;; The file that marks a complete environment cannot be written.
         ("The installation failed"
          ("python3" "case \"$2\" in pip)"
           "mkdir -p \"${0%/bin/python}/gemini-companion\";; esac"
           ,gemini-companion-install-test-good))))
    (ert-info ((format "%s: %S" remedy programs))
      (gemini-companion-install-test-with programs
        (gemini-companion-mode 1)
        (gemini-companion-test-eventually warnings)
        (should (string-match-p remedy (car warnings)))
        (should (string-match-p "To try again" (car warnings)))
        (should-not gemini-companion-mode)
        (should-not (gemini-companion-install-running-p))
        (gemini-companion-install-test-ended)
        (should-not (gemini-companion-install-test-environments))))))

(ert-deftest gemini-companion-install-takes-the-python-that-is-good ()
  (gemini-companion-install-test-with '(("python3.13" "exit 127"))
    (let ((process-environment
           (append '("HTTPS_PROXY=proxy" "PIP_INDEX_URL=index" "PIP_USER=1"
                     "PYTHONHOME=/nowhere" "PYTHONPATH=/nowhere"
                     ;; Each package has its version.
                     "PIP_CONSTRAINT=/none" "UV_OVERRIDE=/none"
                     "UV_EXCLUDE_NEWER=2020-01-01" "PIP_ONLY_BINARY=:all:"
                     "SSL_CERT_FILE=certificates")
                   process-environment)))
      (gemini-companion-mode 1)
      (gemini-companion-test-eventually warnings)
      ;; It works the next time.
      (dolist (name '("python3.12" "python3"))
        (gemini-companion-install-test-program
         name "echo \"$HTTPS_PROXY $PIP_INDEX_URL ${PYTHONHOME-none} \
${PYTHONPATH-none} $PIP_USER $PYTHONWARNINGS $PIP_CONSTRAINT \
${UV_OVERRIDE-none} ${UV_EXCLUDE_NEWER-none} ${PIP_ONLY_BINARY-none} \
$SSL_CERT_FILE\" >&2"
         gemini-companion-install-test-good))
      (gemini-companion-mode 1)
      (gemini-companion-test-eventually
        (not (gemini-companion-install-running-p))))
    (gemini-companion-test-eventually (gemini-companion-server-ready-p))
    (dolist (output '("python3.12 -m venv" "^proxy index none none 0 ignore /dev/null none none none \
certificates$"))
      (should (string-match-p output (gemini-companion-test-text
                                      gemini-companion-install-test-log))))))

(ert-deftest gemini-companion-install-leaves-nothing-when-it-is-ended ()
  (pcase-dolist
      (`(,end . ,warned)
       `((,(lambda () (gemini-companion-mode -1)) . nil)
         (,(lambda () (kill-buffer gemini-companion-install-test-log)) . t)))
    (gemini-companion-install-test-with
        `(("python3" "case \"$2\" in pip) echo slow; exec sleep 1000;; esac"
           ,gemini-companion-install-test-good))
      (gemini-companion-mode 1)
      (gemini-companion-test-eventually
        (string-match-p "^slow" (gemini-companion-test-text
                                 gemini-companion-install-test-log)))
      (should (gemini-companion-install-test-environments))
      (with-selected-window (get-buffer-window gemini-companion-install-test-log)
        (should (eobp)))
      (funcall end)
      (gemini-companion-test-eventually
        (not (or (gemini-companion-install-running-p)
                 (gemini-companion-install-test-environments)
                 (gemini-companion-test-processes))))
      (should-not gemini-companion-mode)
      (should (eq warned (and warnings t))))))

(ert-deftest gemini-companion-install-detects-an-outdated-environment ()
  (gemini-companion-install-test-with
      `(("python3" ,gemini-companion-install-test-good))
    (gemini-companion-install-server)
    (gemini-companion-install-test-ended)
    (let ((python (car (gemini-companion-install-command))))
      (should (file-executable-p python))
      (copy-file "bin/python3" "bin/python3.12")
      (make-symbolic-link (expand-file-name "bin/python3.12") python t)
      (should-not (car (gemini-companion-install-command)))
      (delete-file "bin/python3.12")
      (should-not (car (gemini-companion-install-command))))))

(ert-deftest gemini-companion-install-by-hand-deletes-what-is-not-complete ()
  (gemini-companion-install-test-with
      `(("python3" ,gemini-companion-install-test-good))
    ;; Of an installation that was interrupted, too.
    (dolist (name '("venv-0.0.1" "venv-20261124T120000-4999999"))
      (make-directory (expand-file-name (concat name "/bin")
                                        gemini-companion-install-directory)
                      t))
    (let ((gemini-companion-server-problem "An old one")
          (default-directory (expand-file-name "python/")))
      (gemini-companion-install-server)
      ;; It waits for that.
      (gemini-companion-mode 1)
      (should (gemini-companion-install-running-p))
      (should-not gemini-companion-server-problem)
      (should (equal default-directory gemini-companion-context-directory))
      (gemini-companion-test-eventually
        (gemini-companion-server-ready-p))
      (should (= 1 (length (gemini-companion-install-test-environments)))))))

(ert-deftest gemini-companion-install-keeps-what-other-emacsen-make-or-use ()
  (gemini-companion-install-test-with
      `(("python3" "case \"$2\" in pip) while [ -e \"$SLOW\" ]; do"
         "sleep 0.05; done;; esac" ,gemini-companion-install-test-good))
    (gemini-companion-test-write "slow" "")
    (dolist (name '("slow" "no"))
      (make-process
       :name "other" :buffer name :noquery t :connection-type 'pipe
       :command
       (gemini-companion-test-emacs
        `(setq process-environment ',(cons (concat "SLOW=" (expand-file-name name))
                                           process-environment)
               exec-path ',exec-path
               gemini-companion-install-directory ,gemini-companion-install-directory
               end nil)
        '(require 'gemini-companion-install)
        '(gemini-companion-install-start
          (lambda (problem) (message (or problem "ready")) (setq end t)))
        '(while (not end) (accept-process-output nil 0.01))
        ;; At the end of a line of input it says whether what it has installed
        ;; is still there.
        '(read-string "")
        `(set-buffer ,gemini-companion-install-test-log)
        '(goto-char (point-min))
        '(re-search-forward "-m venv \\(.*\\)")
        '(and (file-exists-p (match-string 1)) (message "still there")))))
    (gemini-companion-test-eventually
      (= 2 (length (gemini-companion-install-test-environments))))
    (dotimes (_ 3)
      (gemini-companion-install-server)
      (gemini-companion-test-eventually
        (not (gemini-companion-install-running-p))))
    (delete-file "slow")
    (dolist (name '("slow" "no"))
      (with-current-buffer name
        (gemini-companion-test-eventually
          (string-match-p "ready" (buffer-string)))
        (process-send-string (get-buffer-process name) "\n")
        (gemini-companion-test-eventually (not (get-buffer-process name)))
        (should (string-match-p "still there" (buffer-string)))
        (kill-buffer)))
    (should-not warnings)))

(ert-deftest gemini-companion-install-replaces-what-the-server-uses ()
  (gemini-companion-install-test-with
      `(("python3" ,gemini-companion-install-test-good))
    (gemini-companion-mode 1)
    (gemini-companion-test-eventually (gemini-companion-server-ready-p))
    (dolist (install (list #'gemini-companion-install-server
                           (lambda ()
                             (write-region "#" nil "python/requirements.txt" t)
                             (gemini-companion-restart))))
      (gemini-companion-test-replacing
        (funcall install))
      (should (equal (car (gemini-companion-install-command))
                     (car (plist-get (gemini-companion-server-info) :command)))))
    (should (equal 1 (length asked)))
    (should-not warnings)
    ;; The server of another Emacs may use the previous one.
    (should (equal 2 (length (gemini-companion-install-test-environments))))
    ;; One that fails changes nothing.
    (let ((python (car (gemini-companion-install-command))))
      (gemini-companion-install-test-program "python3" "exit 1")
      (gemini-companion-install-server)
      (gemini-companion-test-eventually warnings)
      (should (gemini-companion-server-ready-p))
      (should (equal python (car (gemini-companion-install-command)))))))

;;; gemini-companion-install-test.el ends here
