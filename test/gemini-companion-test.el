;;; gemini-companion-test.el --- Tests of the mode with its server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The mode on and off, with the real Python server, and what happens when
;; that cannot start.  No Gemini CLI takes part; test/e2e has it.

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-share)
(require 'gemini-companion-review)
(require 'gemini-companion-server-test-helper)

(defvar epc:live-connections)

(defun gemini-companion-test-discovery-file ()
  "Return the name of the discovery file for Gemini CLI."
  (cadr (assoc "gemini" (plist-get (gemini-companion-server-info) :discovery))))

(defun gemini-companion-test-discovery ()
  "Return the content of the discovery file for Gemini CLI, an alist."
  (json-read-file (gemini-companion-test-discovery-file)))

(defun gemini-companion-test-trace ()
  "Return the state that the mode must restore."
  (list (mapcar (lambda (hook) (copy-sequence (default-value hook)))
                '(post-command-hook pre-redisplay-functions kill-emacs-hook
                  buffer-list-update-hook find-file-hook kill-buffer-hook
                  after-make-frame-functions after-save-hook
                  after-revert-hook after-set-visited-file-name-hook
                  after-change-major-mode-hook activate-mark-hook
                  deactivate-mark-hook))
        (gemini-companion-test-buffers)
        (length (gemini-companion-test-processes))
        (copy-sequence (default-value 'process-environment))
        (gemini-companion-test-timer-count)
        (length timer-idle-list)
        epc:live-connections))

(defun gemini-companion-test-failure (&rest command)
  "Return the warning when COMMAND is to run the server."
  (let ((gemini-companion-server-command command)
        warning)
    (cl-letf (((symbol-function 'display-warning)
               (lambda (_type message &rest _) (setq warning message))))
      (gemini-companion-mode 1)
      (gemini-companion-test-eventually warning))
    (should-not gemini-companion-mode)
    (should-not (gemini-companion-test-processes))
    warning))

(ert-deftest gemini-companion-mode-writes-the-discovery-file ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let ((file (gemini-companion-test-discovery-file))
          (content (gemini-companion-test-discovery)))
      (should (equal (concat temporary "gemini/ide/")
                     (file-name-directory file)))
      (should (string-prefix-p (format "gemini-ide-server-%d-" (emacs-pid))
                               (file-name-nondirectory file)))
      (should (equal "-rw-------" (file-attribute-modes
                                   (file-attributes file))))
      (should (equal (directory-file-name directory)
                     (alist-get 'workspacePath content)))
      (should (equal "emacs" (alist-get 'name (alist-get 'ideInfo content)))))))

(ert-deftest gemini-companion-mode-off-leaves-nothing-behind ()
  ;; Load what the first start loads.
  (gemini-companion-test-with-mode '())
  ;; An earlier test may have a timer that is about to run.
  (gemini-companion-test-eventually (= 0 (gemini-companion-test-timer-count)))
  (let ((before (gemini-companion-test-trace))
        discovery)
    (gemini-companion-test-with-mode '(("a" "text"))
      (setq discovery (gemini-companion-test-discovery-file))
      (should (file-exists-p discovery))
      (should (equal (number-to-string
                      (plist-get (gemini-companion-server-info) :port))
                     (getenv "GEMINI_CLI_IDE_SERVER_PORT")))
      (gemini-companion-diff-open 1 '(:id "one") (expand-file-name "a") "new")
      (gemini-companion-mode -1)
      (should-not (getenv "GEMINI_CLI_IDE_SERVER_PORT"))
      (gemini-companion-test-eventually
        (not (or (gemini-companion-test-processes)
                 (file-exists-p discovery)))))
    (gemini-companion-test-wait
     (lambda () (equal before (gemini-companion-test-trace))))
    (should (equal before (gemini-companion-test-trace)))))

(ert-deftest gemini-companion-mode-sends-new-roots-and-keeps-the-port ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (gemini-companion-test-with-directory '(("b" "text"))
      (let ((before (gemini-companion-test-discovery)))
        (find-file (expand-file-name "b" directory))
        (gemini-companion-test-eventually
          (string-match-p (regexp-quote (directory-file-name directory))
                          (alist-get 'workspacePath
                                     (gemini-companion-test-discovery))))
        (dolist (key '(port authToken))
          (should (equal (alist-get key before)
                         (alist-get key (gemini-companion-test-discovery)))))))))

(ert-deftest gemini-companion-mode-can-be-turned-on-twice ()
  (gemini-companion-test-with-mode '()
    (let ((info (gemini-companion-server-info)))
      (gemini-companion-mode 1)
      (should (eq info (gemini-companion-server-info))))))

(ert-deftest gemini-companion-mode-off-at-once-leaves-no-process-and-no-file ()
  (let ((gemini-companion-server-command
         (list (gemini-companion-test-python) "-m" "gemini_companion_epc")))
    (gemini-companion-mode 1)
    (gemini-companion-mode -1)
    (gemini-companion-test-eventually
      (not (or (gemini-companion-test-processes)
               (file-expand-wildcards
                (expand-file-name
                 (format "gemini/ide/*-server-%d-*" (emacs-pid))
                 temporary-file-directory)))))))

(ert-deftest gemini-companion-mode-off-ends-a-server-that-is-suspended ()
  (gemini-companion-test-with-mode '()
    (signal-process (plist-get (gemini-companion-server-info) :pid) 'SIGSTOP)
    (gemini-companion-test-eventually
      (memq 'stop (mapcar #'process-status (gemini-companion-test-processes))))
    (let ((directory (plist-get (gemini-companion-server-info) :directory)))
      (should (file-directory-p directory))
      (gemini-companion-mode -1)
      (should-not gemini-companion-mode)
      (gemini-companion-test-in-the-end
        (not (gemini-companion-test-processes)))
      (should-not (file-directory-p directory)))))

(ert-deftest gemini-companion-mode-without-a-program-is-off ()
  (let ((gemini-companion-server-command '("/no/such/python"))
        (before (gemini-companion-test-trace)))
    (should-error (gemini-companion-mode 1) :type 'user-error)
    (should-not gemini-companion-mode)
    (should-not (gemini-companion-test-processes))
    (should-not gemini-companion-share-directory)
    (should (equal before (gemini-companion-test-trace)))))

(ert-deftest gemini-companion-mode-reports-why-the-server-did-not-start ()
  (let ((warning (gemini-companion-test-failure
               "sh" "-c" "echo 'no module named mcp' >&2; exit 3")))
    (should (string-match-p "exited with status 3" warning))
    (should (string-match-p "no module named mcp" warning))
    (should (string-match-p "sh -c" warning))
    (should (string-match-p "gemini-companion-server-command" warning))))

(ert-deftest gemini-companion-mode-reports-a-failed-start-in-the-init-file ()
  (let ((after-init-time nil)
        (gemini-companion-log-file 'not-a-name))
    (should (string-match-p "stringp, not-a-name"
                            (gemini-companion-test-failure
                             (gemini-companion-test-python)
                             "-m" "gemini_companion_epc")))))

(ert-deftest gemini-companion-mode-reports-a-program-that-is-not-a-server ()
  (should (string-match-p "Expected a port number, got: hello"
                          (gemini-companion-test-failure
                           "sh" "-c" "echo hello; exec sleep 60"))))

(ert-deftest gemini-companion-mode-reports-a-port-that-refuses ()
  (let ((buffers (buffer-list)))
    (should (string-match-p "Cannot connect to port 1"
                            (gemini-companion-test-failure
                             "sh" "-c" "echo 1; exec sleep 60")))
    (should-not (seq-find (lambda (buffer)
                            (string-match-p "epc con" (buffer-name buffer)))
                          (seq-difference (buffer-list) buffers)))))

(ert-deftest gemini-companion-mode-ends-a-program-that-never-stops-writing ()
  (should (string-match-p "Expected a port number, got: garbage"
                          (gemini-companion-test-failure
                           "sh" "-c" "yes oops >&2 & echo garbage; wait"))))

(ert-deftest gemini-companion-mode-reports-that-versions-differ ()
  (let ((gemini-companion-server-version "0.0.0"))
    (should (string-match-p
             "0\\.0\\.0"
             (gemini-companion-test-failure (gemini-companion-test-python)
                                            "-m" "gemini_companion_epc")))))

(ert-deftest gemini-companion-mode-starts-a-killed-server-again ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let ((info (gemini-companion-server-info)))
      (gemini-companion-test-kill-server)
      (gemini-companion-test-eventually (gemini-companion-server-ready-p))
      (dolist (key '(:port :token :discovery))
        (should (equal (plist-get info key)
                       (plist-get (gemini-companion-server-info) key))))
      (should (file-exists-p (gemini-companion-test-discovery-file))))))

(ert-deftest gemini-companion-mode-is-off-after-a-server-that-stays-dead ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let ((discovery (gemini-companion-test-discovery-file))
          warning)
      (setq gemini-companion-server-command
            '("sh" "-c" "echo gone for good >&2"))
      (cl-letf (((symbol-function 'display-warning)
                 (lambda (_type message &rest _) (setq warning message))))
        (gemini-companion-test-kill-server)
        (gemini-companion-test-eventually
          (gemini-companion-test-run-timers)
          warning))
      (should (string-match-p "gone for good" warning))
      (should-not gemini-companion-mode)
      (should-not (file-exists-p discovery)))))

(ert-deftest gemini-companion-lighter-makes-its-tooltip-on-demand ()
  (gemini-companion-test-with-mode '()
    (gemini-companion-test-connect)
    (let ((made nil))
      (cl-letf (((symbol-function 'gemini-companion-session-name)
                 (lambda (_session) (push 'session made) "Named"))
                ((symbol-function 'gemini-companion-shared)
                 (lambda () (push 'shared made) '((:path "/shared")))))
        (gemini-companion-lighter)
        (should-not made)
        (should (string-search "Named" (gemini-companion-test-help)))
        (should (string-search "Shared: no active file, one open file"
                               (gemini-companion-test-help)))))))

(ert-deftest gemini-companion-diagnostics-stop-no-function-of-others ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (with-current-buffer (find-file-noselect "a")
      (let* ((called nil)
             (find-file-hook
              (append (alist-get 'find-file-hook (gemini-companion-test-hooks))
                      (list (lambda () (setq called t)))))
             ;; Every operation on a name fails.
             (file-name-handler-alist
              (list (cons "" (lambda (&rest _) (error "In the package"))))))
        (run-hooks 'find-file-hook)
        (should called)))))

(ert-deftest gemini-companion-diagnostics-in-an-answer-do-not-repeat-it ()
  (gemini-companion-test-with-mode '()
    (let ((answers nil)
          (next nil))
      (gemini-companion-test-demoted
        (gemini-companion-server-ask-processes
         nil (lambda (answer) (push answer answers) (error "In the answer")))
        (gemini-companion-test-wait (lambda () answers)))
      (gemini-companion-server-ask-processes
       (list (emacs-pid)) (lambda (answer) (setq next answer)))
      (gemini-companion-test-eventually next)
      (should (equal '(nil) answers)))))

(ert-deftest gemini-companion-diagnostics-in-a-part-stop-no-other-part ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (find-file-noselect "a")
    (let ((pid (plist-get (gemini-companion-server-info) :pid)))
      (cl-letf (((symbol-function 'gemini-companion-session-ready)
                 (lambda (_how) (error "In the part"))))
        (gemini-companion-test-demoted
          (gemini-companion-restart)
          (gemini-companion-test-wait
           (lambda ()
             (not (memql (plist-get (gemini-companion-server-info) :pid)
                         (list nil pid)))))))
      (gemini-companion-test-eventually
        (string-search "-> roots-update" (gemini-companion-test-events))))))

(ert-deftest gemini-companion-restart-keeps-the-place-of-the-server ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let ((info (gemini-companion-server-info))
          (pid (plist-get (gemini-companion-server-info) :pid))
          (port (getenv "GEMINI_CLI_IDE_SERVER_PORT")))
      (gemini-companion-restart)
      (should (gemini-companion-server-ready-p))
      (gemini-companion-test-eventually
        (not (memql (plist-get (gemini-companion-server-info) :pid)
                    (list nil pid))))
      (should-not (process-attributes pid))
      (dolist (key '(:port :token :discovery))
        (should (equal (plist-get info key)
                       (plist-get (gemini-companion-server-info) key))))
      (should (file-exists-p (gemini-companion-test-discovery-file)))
      (should (equal port (getenv "GEMINI_CLI_IDE_SERVER_PORT"))))))

(ert-deftest gemini-companion-restart-without-a-server-shows-what-to-do ()
  (let ((report (lambda ()
                  (cadr (should-error (gemini-companion-restart)
                                      :type 'user-error)))))
    (should (string-search "M-x gemini-companion-mode" (funcall report)))
    (gemini-companion-test-with-mode '(("a" "text"))
      (gemini-companion-test-kill-server)
      (should (string-search "starting" (funcall report))))))

(ert-deftest gemini-companion-restart-returns-nothing-to-print ()
  "Printing a server's state keeps Emacs busy for half a minute."
  (gemini-companion-test-with-mode '(("a" "text"))
    (should-not (gemini-companion-restart))))

(ert-deftest gemini-companion-log-file-has-events-but-no-token ()
  (gemini-companion-test-with-directory '()
    (let ((gemini-companion-log-file (expand-file-name "new/log" directory))
          (gemini-companion-log-level 'debug)
          token)
      (gemini-companion-test-with-mode '(("a" "text"))
        (setq token (plist-get (gemini-companion-server-info) :token))
        (gemini-companion-test-eventually
          (string-match-p "roots-update"
                          (gemini-companion-test-file-text
                           gemini-companion-log-file))))
      (should (equal "-rw-------" (file-attribute-modes
                                   (file-attributes
                                    gemini-companion-log-file))))
      (should-not (string-match-p (regexp-quote token)
                                  (gemini-companion-test-file-text
                                   gemini-companion-log-file))))))

(ert-deftest gemini-companion-restart-sends-outcomes-that-a-crash-interrupted ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (gemini-companion-diff-open 1 '(:id "one") (expand-file-name "a") "new")
    (gemini-companion-restart)
    (gemini-companion-test-kill-server)
    (should-not (gemini-companion-server-ready-p))
    (gemini-companion-diff-accept (car (gemini-companion-diffs)))
    (gemini-companion-test-eventually (gemini-companion-server-ready-p))
    (let ((events (gemini-companion-test-events)))
      (should (string-search " -> adopt-diff 1\n  1\n  \"one\"\n" events))
      (should (string-search " -> diff-accepted 1\n  1\n  \"new\"\n" events)))))

(ert-deftest gemini-companion-restart-that-fails-changes-nothing ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let ((pid (plist-get (gemini-companion-server-info) :pid))
          (gemini-companion-server-command '("sh" "-c" "exit 1"))
          warning)
      (cl-letf (((symbol-function 'display-warning)
                 (lambda (_type message &rest _) (setq warning message))))
        (gemini-companion-restart)
        (gemini-companion-test-eventually warning))
      (should (equal pid (plist-get (gemini-companion-server-info) :pid))))))

(ert-deftest gemini-companion-restart-that-fails-after-a-crash-is-repeated ()
  "The previous server is not running any more."
  (gemini-companion-test-with-mode '(("wait" ""))
    (let ((gemini-companion-server-command
           (list "sh" "-c" (format "while test -e %swait; do sleep 0.1; done"
                                   directory))))
      (gemini-companion-restart)
      (gemini-companion-test-kill-server))
    (delete-file "wait")
    (gemini-companion-test-eventually (gemini-companion-server-ready-p))))

(ert-deftest gemini-companion-texts-of-any-size-and-kind-come-back ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let* ((gemini-companion-review-arrival 'notify)
           (inhibit-message t)
           (client (gemini-companion-test-connect))
           (private (plist-get (gemini-companion-server-info) :directory))
           (large (make-string 300000 ?x))
           (file (expand-file-name "a")))
      (dolist (text (list "" "\0\"\\\n\r\t" "\U0001F600\u2028\uFEFF"
                          (make-string 300000 ?é)
                          (concat "\uFEFFa\r\nb\r" large)
                          (concat "Content-Type: text/enriched\n\n<bold>b</bold>"
                                  large)))
        (should (equal text (gemini-companion-test-through client file text)))
        (should (equal text (gemini-companion-test-through client file "" text))))
      (should-not (directory-files private nil "emacs-\\|python-"))
      (delete-directory private t)
      (should (equal large (gemini-companion-test-through client file "" large)))
      (dolist (text (list "" large))
        (should (equal (concat text "a\uFFFDb")
                       (gemini-companion-test-through
                        client file ""
                        (concat text "a" (string #x3FFFE9) "b"))))))))

(ert-deftest gemini-companion-text-that-cannot-be-written-keeps-the-review ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let* ((gemini-companion-review-arrival 'notify)
           (inhibit-message t)
           (client (gemini-companion-test-connect))
           (info (gemini-companion-server-info))
           (private (plist-get info :directory)))
      (gemini-companion-test-ask client "openDiff"
                                 :filePath (expand-file-name "a")
                                 :newContent "new")
      (delete-directory private t)
      (write-region "" nil private)
      (let ((diff (car (gemini-companion-diffs))))
        (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
          (erase-buffer)
          (insert (make-string 300000 ?x)))
        (should-error (gemini-companion-diff-accept diff))
        (should (gemini-companion-diff-open-p diff))
        (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
          (erase-buffer)
          (insert "less"))
        (gemini-companion-diff-accept diff)
        (let ((event nil))
          (gemini-companion-test-eventually
            (setq event (gemini-companion-test-ask client "next"))
            (equal "ide/diffAccepted" (alist-get 'method event)))
          (should (equal "less" (alist-get 'content
                                           (alist-get 'params event)))))
        (should (equal info (gemini-companion-server-info)))))))

(defun gemini-companion-test-through (client file text &optional edited)
  "Have CLIENT propose TEXT for FILE, and return the proposal it gets back.
Before that make EDITED, if non-nil, the text of the proposal."
  (gemini-companion-test-ask client "openDiff" :filePath file :newContent text)
  (gemini-companion-test-eventually (gemini-companion-diffs))
  (with-current-buffer (gemini-companion-diff-proposal-buffer
                        (car (gemini-companion-diffs)))
    (should (equal text (buffer-string)))
    (when edited
      (erase-buffer)
      (insert edited)))
  (let* ((answer (gemini-companion-test-ask client "closeDiff" :filePath file))
         (content (alist-get 'content (alist-get 'result answer))))
    (alist-get 'content (json-read-from-string
                         (alist-get 'text (aref content 0))))))

(ert-deftest gemini-companion-mode-is-restored-by-a-desktop-once ()
  (should
   (equal '(t nil nil nil)
          (gemini-companion-test-fresh
           '(require 'desktop)
           '(defun restore ()
              (ignore-errors
                (funcall (alist-get 'gemini-companion-mode
                                    desktop-minor-mode-handlers
                                    (lambda (_) (gemini-companion-mode 1)))
                         nil))
              gemini-companion-mode)
           '(list (restore)
                  (progn (gemini-companion-mode -1)
                         desktop-minor-mode-handlers)
                  (let ((gemini-companion-server-command '("/no/such/file")))
                    (restore))
                  (restore))))))

;;;; Loading

(defun gemini-companion-test-fresh (&rest forms)
  "Return what FORMS evaluate to in an Emacs that has loaded nothing.
The mode is known as its autoload makes it, and the server is a
program that does nothing."
  (with-temp-buffer
    (let ((status
           (call-process
            (expand-file-name invocation-name invocation-directory)
            nil (list t nil) nil "-Q" "--batch"
            "--eval" (format "(setq load-path '%S)" load-path)
            "--eval" "(autoload 'gemini-companion-mode \"gemini-companion\" nil t)"
            "--eval" "(setq gemini-companion-server-command
 '(\"sh\" \"-c\" \"cat >/dev/null\"))"
            ;; Is Emacs not to end without the mode being turned off?
            "--eval" "(defun served () (and (string-search \"gemini-companion\"
 (format \"%S\" kill-emacs-hook)) t))"
            "--eval" (format "(print (progn %s))"
                             (mapconcat #'prin1-to-string forms " ")))))
      (should (equal 0 status))
      (car (read-from-string (buffer-string))))))

(ert-deftest gemini-companion-mode-loads-no-library-before-its-use ()
  (should-not
   (gemini-companion-test-fresh
    '(gemini-companion-mode 1)
    '(mapcan (lambda (feature) (and (featurep feature) (list feature)))
             '(auth-source diff diff-mode ediff epc json
               outline project rect transient
               gemini-companion-diff gemini-companion-review
               gemini-companion-share gemini-companion-epc)))))

(ert-deftest gemini-companion-mode-loads-all-when-emacs-is-free ()
  (should
   (equal '(t t t t)
          (gemini-companion-test-fresh
           '(gemini-companion-mode 1)
           '(let ((end (+ 120 (float-time))))
              (while (and (not (served)) (< (float-time) end))
                (accept-process-output nil 0.01)))
           '(let ((end (+ 120 (float-time))))
              (while (and (not (featurep 'gemini-companion-run))
                          (< (float-time) end))
                (accept-process-output nil 0.01)))
           '(list (featurep 'gemini-companion)
                  (featurep 'gemini-companion-epc)
                  (boundp 'gemini-companion-review-view)
                  (served))))))

(ert-deftest gemini-companion-mode-has-all-loaded-for-the-init-file ()
  (should
   (equal '(t t)
          (gemini-companion-test-fresh
           '(setq after-init-time nil)
           '(gemini-companion-mode 1)
           '(list (boundp 'gemini-companion-review-mode-map) (served))))))

(ert-deftest gemini-companion-mode-off-at-once-leaves-nothing-behind ()
  (should-not
   (gemini-companion-test-fresh
    '(require 'seq)
    '(gemini-companion-mode 1)
    '(gemini-companion-mode -1)
    '(let ((end (+ 120 (float-time))))
       (while (and (process-list) (< (float-time) end))
         (accept-process-output nil 0.01)))
    '(or (served)
         (process-list)
         (seq-filter (lambda (what)
                       (string-search "gemini-companion" (format "%S" what)))
                     (append timer-list post-command-hook))))))

(ert-deftest gemini-companion-loads-most-files-when-they-are-used ()
  (gemini-companion-test-with-directory nil
    (let* ((code
            `(progn
               (setq load-path ',load-path
                     load-prefer-newer t
                     gemini-companion-install-directory ,directory
                     gemini-companion-server-command
                     '(,(gemini-companion-test-python)
                       "-m" "gemini_companion_epc"))
               (require 'gemini-companion)
               (gemini-companion-mode 1)
               (while (not (gemini-companion-server-ready-p))
                 (accept-process-output nil 0.1))
               (dolist (entry load-history)
                 (when (string-match-p "/gemini-companion[^/]*\\'" (car entry))
                   (princ (format "%S\n" (mapcar #'cdr (seq-filter
                                                        (lambda (item)
                                                          (memq (car-safe item)
                                                                '(provide require)))
                                                        entry))))))
               (kill-emacs)))
           (loaded (gemini-companion-test-output
                    (expand-file-name invocation-name invocation-directory)
                    "-Q" "--batch" "--eval" (format "%S" code))))
      (should (string-search "gemini-companion-review" loaded))
      (dolist (feature '( gemini-companion-unified gemini-companion-ediff
                          gemini-companion-list gemini-companion-status
                          gemini-companion-lookup gemini-companion-diagnostics
                          gemini-companion-extension gemini-companion-menu
                          diff-mode ediff eglot flymake transient))
        (should-not (string-match-p (format "\\_<%s\\_>" feature) loaded))))))

;;; gemini-companion-test.el ends here
