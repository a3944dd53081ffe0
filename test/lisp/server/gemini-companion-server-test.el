;;; gemini-companion-server-test.el --- Tests of the server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-review)
(require 'gemini-companion-server-test-helper)

(ert-deftest gemini-companion-restarts-lose-and-repeat-no-review ()
  "Clients send requests at any moment of a restart."
  (gemini-companion-test-with-mode '(("a" "text"))
    (let* ((inhibit-message t)
           (gemini-companion-review-arrival 'notify)
           (accepting
            (run-at-time
             0 0.02
             (lambda ()
               (dolist (diff (gemini-companion-edits-open))
                 (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
                   (goto-char (point-min))
                   (insert "!"))
                 (gemini-companion-edit-accept diff)))))
           (program (expand-file-name "test/python/busy_cli.py"
                                      gemini-companion-test-root))
           (clients (mapcar (apply-partially #'gemini-companion-test-client
                                             (list program))
                            '("one" "two"))))
      (unwind-protect
          (progn
            (dotimes (_ (string-to-number (or (getenv "GC_RESTARTS") "2")))
              (gemini-companion-test-replacing
                (gemini-companion-restart))
              (should (equal '("" "")
                             (mapcar #'gemini-companion-test-text
                                     (mapcar #'process-buffer clients)))))
            (mapc #'process-send-eof clients)
            (dolist (client clients)
              (gemini-companion-test-eventually
                (string-prefix-p
                 "DONE\n" (gemini-companion-test-text
                           (process-buffer client))))))
        (cancel-timer accepting)
        (dolist (client clients)
          (delete-process client)
          (kill-buffer (process-buffer client)))))))

(ert-deftest gemini-companion-server-that-cannot-start-again-ends-the-mode ()
  "It goes on when only its successor has failed."
  (gemini-companion-test-with-mode '(("a" "text"))
    (let ((discovery (gemini-companion-test-discovery-file))
          (pid (gemini-companion-test-pid)))
      (setq gemini-companion-server-command
            '("sh" "-c" "echo gone for good >&2; exit 1"))
      (dolist (start (list #'gemini-companion-restart
                           #'gemini-companion-test-kill-server))
        (should (equal pid (gemini-companion-test-pid)))
        (should (string-match-p
                 "gone for good"
                 (gemini-companion-test-warning start))))
      (should-not gemini-companion-mode)
      (should-not (file-exists-p discovery)))))

(ert-deftest gemini-companion-server-without-its-directory-is-not-the-fault-of-python ()
  (gemini-companion-test-with-mode '(("a" "text"))
    ;; The package was deleted, or updated, while it runs.
    (let ((gemini-companion-server-directory (expand-file-name "deleted/" directory)))
      (let ((warning (gemini-companion-test-warning
                      #'gemini-companion-test-kill-server)))
        (should (string-search (format "The directory of the package, %s"
                                       gemini-companion-server-directory)
                               warning))
        (should-not (string-search "3.10" warning))
        (should-not (string-search "install all again" warning))))
    (should-not gemini-companion-mode)))

(ert-deftest gemini-companion-server-that-is-replaced-keeps-its-place ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (dolist (replace (list (lambda ()
                             ;; Printing the state of a server keeps Emacs busy
                             ;; for half a minute.
                             (should-not (gemini-companion-restart))
                             (should (gemini-companion-server-ready-p)))
                           (lambda ()
                             (gemini-companion-test-kill-server)
                             (should (string-search
                                      "starting"
                                      (gemini-companion-test-refusal
                                        (gemini-companion-restart)))))))
      (let* ((info (gemini-companion-server-info))
             (port (getenv "GEMINI_CLI_IDE_SERVER_PORT")))
        (gemini-companion-test-replacing
          (funcall replace))
        (should-not (process-attributes (plist-get info :pid)))
        (dolist (key '(:port :token :discovery))
          (should (equal (plist-get info key)
                         (plist-get (gemini-companion-server-info) key))))
        (should (file-exists-p (gemini-companion-test-discovery-file)))
        (should (equal port (getenv "GEMINI_CLI_IDE_SERVER_PORT"))))))
  (should (string-search "M-x gemini-companion-mode"
                         (gemini-companion-test-refusal
                           (gemini-companion-restart)))))

(ert-deftest gemini-companion-restart-sends-outcomes-that-a-crash-interrupted ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (dolist (edit '((1 "a") (2 "b")))
      (gemini-companion-proposal-open (car edit)
                                      (gemini-companion-session-make :id "one" :client "gemini")
                                      (expand-file-name (cadr edit)) "new"))
    (gemini-companion-restart)
    (gemini-companion-test-kill-server)
    (should-not (gemini-companion-server-ready-p))
    (gemini-companion-edit-accept (car (gemini-companion-edits-open)))
    ;; The CLI, which waits for its outcome, was interrupted.
    (gemini-companion-server-receive 'close-diff 2 'interrupted)
    (gemini-companion-test-eventually (gemini-companion-server-ready-p))
    (let ((events (gemini-companion-test-events)))
      (should (string-search " -> adopt-diff 1 (:id \"one\" " events))
      (should (string-search " -> diff-accepted 1 \"(3 characters)\"\n" events))
      (should (string-search " -> diff-rejected 2\n" events))
      (should (string-search " -> serve\n" events))
      (should-not (string-search (plist-get (gemini-companion-server-info) :token)
                                 events)))))

;;;; One process

(ert-deftest gemini-companion-server-that-cannot-start-is-reported ()
  (let ((warning (gemini-companion-test-failure
                  "sh" "-c" "echo 'no module named mcp' >&2; exit 3")))
    (dolist (text '("exited with status 3" "no module named mcp" "sh -c"
                    "gemini-companion-server-command"))
      (should (string-match-p text warning))))
  (should (string-search "Cannot find the program /no/such/python of the server

Customize `gemini-companion-server-command' to"
                         (gemini-companion-test-failure "/no/such/python")))
  ;; One that Emacs does not know to have ended when it sends the settings.
  (cl-letf* ((slow (lambda () (call-process "sleep" nil nil nil "0.3") nil))
             ((symbol-function 'gemini-companion-context-share-roots) slow))
    (should (string-search
             "no epc" (gemini-companion-test-failure
                       "sh" "-c" "exec <&-; echo no epc; sleep 0.5; exit 3"))))
  (let ((gemini-companion-server-start-seconds 3))
    (should (string-search
             "No answer within 3 seconds"
             (gemini-companion-test-failure "sh" "-c" "exec cat >/dev/null")))
    ;; Emacs is busy for longer than that.
    (cl-letf* ((slow (lambda () (call-process "sleep" nil nil nil "4") nil))
               ((symbol-function 'gemini-companion-context-share-roots) slow))
      (should (string-search
               "Exited with status 3"
               (gemini-companion-test-failure
                "sh" "-c" "read settings; sleep 0.5; exit 3")))))
  ;; Nothing listens at its port.
  (should (string-search "client process failed" (gemini-companion-test-failure
                                                  "sh" "-c" "echo 1; exec cat")))
  (should-not (string-search "*epc con" (format "%s" (buffer-list))))
  (let ((python (list (gemini-companion-test-python)
                      "-m" "gemini_companion_epc")))
    (let ((gemini-companion-server-version "0.0.0"))
      (should (string-match-p
               "0\\.0\\.0.*; install the same version"
               (apply #'gemini-companion-test-failure python))))
    (let ((gemini-companion-log-file 'not-a-name))
      (should (string-search "stringp, not-a-name"
                             (apply #'gemini-companion-test-failure python))))))

;; It was waited for without an end.
(ert-deftest gemini-companion-server-that-is-killed-fails-what-it-was-asked ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let ((answers nil))
      (signal-process (gemini-companion-test-pid) 'SIGSTOP)
      (should (gemini-companion-server-ask
               'processes nil
               (lambda (_) (push 'done answers))
               (lambda (problem) (push problem answers))))
      (gemini-companion-test-kill-server)
      (gemini-companion-test-eventually answers)
      (should (equal '("the server has ended") answers)))))

(ert-deftest gemini-companion-server-that-is-suspended-ends ()
  (gemini-companion-test-with-mode '()
    (signal-process (plist-get (gemini-companion-server-info) :pid) 'SIGSTOP)
    (gemini-companion-test-eventually
      (memq 'stop (mapcar #'process-status (gemini-companion-test-processes))))
    (gemini-companion-mode -1)
    (gemini-companion-test-in-the-end
      (not (or (gemini-companion-test-processes)
               (directory-files-recursively temporary "-server-"))))))

(ert-deftest gemini-companion-server-takes-and-returns-texts-of-any-kind ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let* ((gemini-companion-review-arrival 'notify)
           (inhibit-message t)
           (client (gemini-companion-test-connect))
           (large (make-string 300000 ?x))
           (file (expand-file-name "a")))
      (dolist (text (list "" "\0\"\\\n\r\t" "\U0001F600\u2028\uFEFF"
                          "e\u0301\u0085\\ud800\uFFFE\uFFFF\U0010FFFF"
                          (make-string 300000 ?é)
                          (concat "\uFEFFa\r\nb\r" large)
                          (concat "Content-Type: text/enriched\n\n<bold>b</bold>"
                                  large)))
        (should (equal text (gemini-companion-server-test-through client file text)))
        (should (equal text (gemini-companion-server-test-through client file "" text))))
      (should-not (file-expand-wildcards
                   (concat (plist-get (gemini-companion-server-info) :files)
                           "*")))
      (dolist (text (list "" large))
        (should (equal (concat text "a\uFFFDb")
                       (gemini-companion-server-test-through
                        client file ""
                        (concat text "a" (string #x3FFFE9) "b"))))))))

(ert-deftest gemini-companion-server-that-cannot-be-sent-a-text-keeps-the-review ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let* ((gemini-companion-review-arrival 'notify)
           (inhibit-message t)
           (client (gemini-companion-test-connect))
           (info (gemini-companion-server-info)))
      (gemini-companion-test-ask client "openDiff"
                                 :filePath (expand-file-name "a")
                                 :newContent "new")
      ;; The server may be writing its discovery file there.
      (rename-file (directory-file-name temporary) "moved")
      (write-region "" nil (directory-file-name temporary))
      (let ((diff (car (gemini-companion-edits-open))))
        (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
          (erase-buffer)
          (insert (make-string 300000 ?x)))
        (should-error (gemini-companion-edit-accept diff))
        (should (gemini-companion-edit-open-p diff))
        (delete-file (directory-file-name temporary))
        (make-directory temporary)
        (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
          (erase-buffer)
          (insert "less"))
        (gemini-companion-edit-accept diff)
        (let ((event nil))
          (gemini-companion-test-eventually
            (setq event (gemini-companion-test-ask client "next"))
            (equal "ide/diffAccepted" (alist-get 'method event)))
          (should (equal "less" (alist-get 'content
                                           (alist-get 'params event)))))
        (should (equal info (gemini-companion-server-info)))))))

(defun gemini-companion-server-test-through (client file text &optional edited)
  "Have CLIENT propose TEXT for FILE, and return the proposal it gets back.
Before that make EDITED, if non-nil, the text of the proposal."
  (gemini-companion-test-ask client "openDiff" :filePath file :newContent text)
  (gemini-companion-test-eventually (gemini-companion-edits-open))
  (with-current-buffer (gemini-companion-edit-proposal-buffer
                        (car (gemini-companion-edits-open)))
    (should (equal text (buffer-string)))
    (when edited
      (erase-buffer)
      (insert edited)))
  (let* ((answer (gemini-companion-test-ask client "closeDiff" :filePath file))
         (content (alist-get 'content (alist-get 'result answer))))
    (alist-get 'content (json-read-from-string
                         (alist-get 'text (aref content 0))))))

;;; gemini-companion-server-test.el ends here
