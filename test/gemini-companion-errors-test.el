;;; gemini-companion-errors-test.el --- Tests for new errors  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; With Eglot and a real language server, and with one that does what real
;; servers do at times; with Flymake, and with Flycheck where it is installed.
;; test/errors has many more edits with more servers.

;;; Code:

(require 'flymake)
(require 'gemini-companion-errors)
(require 'gemini-companion-revert)
(require 'gemini-companion-test-helper)

(defvar eglot-autoreconnect)
(defvar eglot-server-programs)
(defvar eglot-sync-connect)
(defvar flycheck-check-syntax-automatically)
(defvar flycheck-checkers)
(defvar flycheck-last-status-change)
(declare-function eglot-current-server "eglot")
(declare-function eglot-ensure "eglot")
(declare-function eglot-managed-p "eglot")
(declare-function eglot-shutdown-all "eglot")
(declare-function flycheck-buffer "ext:flycheck")
(declare-function flycheck-mode "ext:flycheck")
(declare-function jsonrpc--process "jsonrpc")
(declare-function jsonrpc-notify "jsonrpc")

;;;; What the tests do

(defun gemini-companion-errors-test-write (file text)
  "Write TEXT to FILE, as another program does."
  (let ((coding-system-for-write 'utf-8-unix))
    (write-region text nil file nil 'silent)))

(defun gemini-companion-errors-test-old (file text)
  "Write TEXT to FILE a minute ago."
  (gemini-companion-errors-test-write file text)
  (set-file-times file (time-subtract nil 60)))

(defun gemini-companion-errors-test-begin (file before after)
  "Change FILE from BEFORE to AFTER, and have it checked.
Return a function that returns all answers, a list."
  (let ((answers nil))
    (gemini-companion-errors-test-write file after)
    (gemini-companion-revert file)
    (gemini-companion-errors-after-edit
     (expand-file-name file) before after
     (lambda (text) (push text answers)))
    (lambda () answers)))

(defun gemini-companion-errors-test-edit (file before after)
  "Change FILE from BEFORE to AFTER; return what is reported, without its head."
  (let* ((began (float-time))
         (answers (gemini-companion-errors-test-begin file before after))
         (text (car (gemini-companion-test-eventually (funcall answers)))))
    (should (< (- (float-time) began) 30))
    (should (equal (list text) (funcall answers)))
    (and text (cdr (split-string text "\n")))))

(defun gemini-companion-errors-test-visit (file)
  "Visit FILE with its language server."
  (set-buffer (find-file-noselect file))
  (eglot-ensure)
  (run-hooks 'post-command-hook)
  (gemini-companion-test-eventually (eglot-managed-p))
  ;; Without a display it waits for one.
  (flymake-start))

(defun gemini-companion-errors-test-age ()
  "Let the last report of a server become old enough to be trusted."
  (gemini-companion-test-wait #'ignore 1.7))

(defmacro gemini-companion-errors-test-with (command files &rest body)
  "Run BODY in a project with FILES, a list of (NAME TEXT).
The language server COMMAND runs for files like the first one,
which is visited.  If COMMAND is nil there is none."
  (declare (indent 2) (debug t))
  `(gemini-companion-test-with-directory ,files
     (let ((command ,command)
           (gemini-companion-errors-bound 60)
           (gemini-companion-paused nil))
       (call-process "git" nil nil nil "init" "-q")
       (gemini-companion-roots directory)
       (gemini-companion-errors-start)
       (unwind-protect
           (let ((eglot-server-programs
                  (list (cons '(text-mode python-mode) command)))
                 (eglot-autoreconnect nil)
                 (eglot-sync-connect t)
                 (inhibit-message t))
             (when command
               (gemini-companion-errors-test-visit (car (car ,files))))
             ,@body)
         (gemini-companion-errors-stop)
         (when command
           (let ((inhibit-message t))
             (eglot-shutdown-all))
           ;; Those with what was written to a server outlive it.
           (dolist (buffer (buffer-list))
             (when (string-match-p "EGLOT" (buffer-name buffer))
               (let ((kill-buffer-query-functions nil))
                 (kill-buffer buffer)))))
         (gemini-companion-roots-forget)))))

(defun gemini-companion-errors-test-server (&rest flags)
  "Return the command of the test's language server with FLAGS."
  (unless (require 'eglot nil t)
    (ert-skip "No Eglot"))
  `("python3" ,(expand-file-name "test/language_server.py"
                                 gemini-companion-test-root)
    ,@flags))

;;;; Files that are not visited

(ert-deftest gemini-companion-errors-names-only-what-is-new ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server)
      '(("home.txt" "fine") ("a.txt" "error old"))
    (let (answer)
      (gemini-companion-errors-test-write "a.txt" "1\n2\nerror old\nerror b")
      (gemini-companion-errors-after-edit
       (expand-file-name "a.txt") "error old" "1\n2\nerror old\nerror b"
       (lambda (text) (setq answer text)))
      (gemini-companion-test-eventually answer)
      (should (equal answer
                     "Emacs sees 1 new error in a.txt \
(a later edit may already fix it):\n4: error: b is wrong [test]")))
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "error old" "error old\nwarning b"))
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "error old" "1\n2\n3\n  error old"))
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "a\nerror old" "a\n"))
    (should (equal '("2: error: c is wrong [test]")
                   (gemini-companion-errors-test-edit
                    "a.txt" "x\r\ny\r\n" "\U0001D11E\r\nerror c\r\n")))
    (should (equal '("1: error: d is wrong [test]")
                   (gemini-companion-errors-test-edit
                    "new.txt" nil "error d")))
    (should-not (find-buffer-visiting "a.txt"))))

(ert-deftest gemini-companion-errors-takes-no-changed-or-uncovered-error-for-new ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server)
      '(("home.txt" "fine"))
    ;; The same error in an edited line.
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "error x\n" "edited error x\n"))
    ;; Its number is that of a line.
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "error from-7\n" "\nerror from-8\n"))
    ;; The first one has hidden it.
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "error syntax\nerror y\n" "fine\nerror y\n"))
    (should (equal '("1: error: z is wrong [test]")
                   (gemini-companion-errors-test-edit
                    "a.txt" "error syntax\nerror y\n" "error z\nerror y\n")))
    (should (equal '("2: error: z is wrong [test]")
                   (gemini-companion-errors-test-edit
                    "a.txt" "error x\n" "fine\nerror z\n")))))

(ert-deftest gemini-companion-errors-cuts-long-reports ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server)
      '(("home.txt" "fine"))
    (let ((lines (gemini-companion-errors-test-edit
                  "a.txt" ""
                  (mapconcat (lambda (number)
                               (format "error %s%d" (make-string 300 ?x) number))
                             (number-sequence 1 13) "\n"))))
      (should (= 11 (length lines)))
      (should (seq-every-p (lambda (line) (<= (length line) 200)) lines))
      (should (equal "... 3 more" (car (last lines)))))))

(ert-deftest gemini-companion-errors-finds-the-file-by-a-symbolic-link ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server "versions")
      '(("home.txt" "fine"))
    (make-directory "real/ä %b" t)
    (make-symbolic-link "real" "link")
    (should (equal '("1: error: x is wrong [test]")
                   (gemini-companion-errors-test-edit
                    "link/ä %b/a.txt" "" "error x")))
    (should (equal '("1: error: x is wrong [test]")
                   (gemini-companion-errors-test-edit
                    "real/ä %b/a.txt" "" "error x")))))

(ert-deftest gemini-companion-errors-waits-for-the-last-report ()
  (dolist (flag '("partial" "early"))
    (gemini-companion-errors-test-with
        (gemini-companion-errors-test-server flag)
        '(("home.txt" "fine"))
      (should-not (gemini-companion-errors-test-edit
                   "a.txt" "error old" "\nerror old"))
      (should (equal '("2: error: x is wrong [test]")
                     (gemini-companion-errors-test-edit
                      "a.txt" "error old" "error old\nerror x"))))))

(ert-deftest gemini-companion-errors-asks-a-server-that-can-be-asked ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server "pull")
      '(("home.txt" "fine"))
    (should (equal '("2: error: x is wrong [test]")
                   (gemini-companion-errors-test-edit
                    "a.txt" "error old" "error old\nerror x")))
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "error old\nerror x" "\nerror old"))))

(ert-deftest gemini-companion-errors-reports-nothing-while-the-server-is-busy ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server "busy")
      '(("home.txt" "fine"))
    (let ((gemini-companion-errors-bound 1))
      (should-not (gemini-companion-errors-test-edit "a.txt" "" "error x")))))

(ert-deftest gemini-companion-errors-reports-nothing-without-a-report ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server "mute")
      '(("home.txt" "fine"))
    (let ((gemini-companion-errors-bound 1))
      (should-not (gemini-companion-errors-test-edit "a.txt" "" "error x")))))

(ert-deftest gemini-companion-errors-reports-nothing-of-a-dead-server ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server)
      '(("home.txt" "fine"))
    (let ((answers (gemini-companion-errors-test-begin "a.txt" "" "error x")))
      (delete-process (jsonrpc--process (eglot-current-server)))
      (gemini-companion-test-eventually (funcall answers))
      (should (equal '(nil) (funcall answers))))
    (should-not (gemini-companion-errors-test-edit "a.txt" "" "error x"))))

(ert-deftest gemini-companion-errors-sends-no-text-that-is-not-read ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server)
      '(("home.txt" "fine"))
    (let ((text (concat (make-string 100000 ?\n) "error x"))
          (gemini-companion-errors-bound 2)
          (longest 0))
      (jsonrpc-notify (eglot-current-server) :test/sleep '(:seconds 5))
      (let ((answers (gemini-companion-errors-test-begin "a.txt" "" text)))
        (while (not (funcall answers))
          (let ((began (float-time)))
            (accept-process-output nil 0.01)
            (setq longest (max longest (- (float-time) began)))))
        (should (equal '(nil) (funcall answers)))
        (should (< longest 3)))
      (gemini-companion-test-eventually
        (gemini-companion-errors-test-edit "a.txt" "" text)))
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "" (concat (make-string 1000000 ?\n) "error x")))))

(ert-deftest gemini-companion-errors-reports-nothing-of-files-not-shared ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server)
      '(("home.txt" "fine"))
    (let ((gemini-companion-excluded '("/secret\\.txt\\'")))
      (should-not (gemini-companion-errors-test-edit
                   "secret.txt" "" "error x")))
    (let ((gemini-companion-paused t))
      (should-not (gemini-companion-errors-test-edit "a.txt" "" "error x")))
    (let ((gemini-companion-roots-function #'ignore))
      (gemini-companion-roots directory)
      (should-not (gemini-companion-errors-test-edit "a.txt" "" "error x")))
    (gemini-companion-roots directory)
    (let ((text "-*- gemini-companion-share: nil -*-\n"))
      (gemini-companion-errors-test-old "own.txt" text)
      (save-current-buffer
        (gemini-companion-errors-test-visit "own.txt"))
      (gemini-companion-errors-test-age)
      (should-not (gemini-companion-errors-test-edit
                   "own.txt" text (concat text "error x"))))
    (let (answers)
      (dolist (file (list (expand-file-name "gone.txt")
                          "/ssh:nowhere:/a.txt"
                          (expand-file-name "a.unknown")))
        (gemini-companion-errors-after-edit
         file "" "error x" (lambda (text) (push text answers))))
      (gemini-companion-test-eventually (= 3 (length answers)))
      (should (equal '(nil nil nil) answers)))
    (should (gemini-companion-errors-test-edit "a.txt" "" "error x"))))

(ert-deftest gemini-companion-errors-reports-the-later-of-two-edits ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server)
      '(("home.txt" "fine"))
    (let ((first (gemini-companion-errors-test-begin "a.txt" "" "error x"))
          (other (gemini-companion-errors-test-begin "b.txt" "" "error z")))
      (should (equal '("2: error: y is wrong [test]")
                     (gemini-companion-errors-test-edit
                      "a.txt" "error x" "error x\nerror y")))
      (should (equal '(nil) (funcall first)))
      (gemini-companion-test-eventually (funcall other))
      (should (string-search "1: error: z" (car (funcall other)))))))

(ert-deftest gemini-companion-errors-leaves-a-file-that-is-visited-meanwhile ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server "partial")
      '(("home.txt" "fine"))
    (let ((answers (gemini-companion-errors-test-begin "a.txt" "" "error x")))
      (accept-process-output nil 0.1)
      (should-not (funcall answers))
      (gemini-companion-errors-test-visit "a.txt")
      (should (equal '(nil) (funcall answers)))
      (gemini-companion-test-eventually (flymake-diagnostics)))))

(ert-deftest gemini-companion-errors-changes-nothing-that-is-seen ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server)
      '(("home.txt" "fine"))
    (let* ((file (expand-file-name "a.txt"))
           (state (lambda ()
                    (list (buffer-list) (current-buffer) (point)
                          (mark t) (current-window-configuration)
                          (with-current-buffer (messages-buffer)
                            (buffer-string)))))
           answer before)
      (gemini-companion-errors-test-write file "error x")
      (setq before (funcall state))
      (gemini-companion-errors-after-edit file "" "error x"
                                          (lambda (text) (setq answer text)))
      (while (not answer)
        (accept-process-output nil 0.01))
      (should (seq-every-p #'identity
                           (seq-mapn (lambda (a b)
                                       (or (equal a b)
                                           (and (window-configuration-p a)
                                                ;; Obsolete since Emacs 29.
                                                (with-suppressed-warnings
                                                    ((obsolete compare-window-configurations))
                                                  (compare-window-configurations
                                                   a b)))))
                                     before (funcall state)))))))

;;;; Files that are visited

(ert-deftest gemini-companion-errors-knows-the-errors-of-a-visited-file ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server)
      '(("home.txt" "fine"))
    (gemini-companion-errors-test-old "a.txt" "error old\n")
    (gemini-companion-errors-test-visit "a.txt")
    (gemini-companion-test-eventually (flymake-diagnostics))
    (gemini-companion-errors-test-age)
    (should (equal '("3: error: x is wrong [test]")
                   (gemini-companion-errors-test-edit
                    "a.txt" "error old\n" "\nerror old\nerror x\n")))
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "\nerror old\nerror x\n" "error old\n"))
    (should (equal '("2: error: y is wrong [test]")
                   (gemini-companion-errors-test-edit
                    "a.txt" "error old\r\n" "error old\r\nerror y\r\n")))
    ;; Nothing is known of this text.
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "other\n" "error z\n"))
    ;; The user types.
    (let ((answers (gemini-companion-errors-test-begin
                    "a.txt" "error z\n" "error z\nerror 9\n")))
      (insert "typed")
      (gemini-companion-test-eventually (funcall answers))
      (should (equal '(nil) (funcall answers))))
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "error z\nerror 9\n" "error z\nerror 9\nerror 10\n"))))

(ert-deftest gemini-companion-errors-does-not-trust-an-early-report ()
  (gemini-companion-errors-test-with
      (gemini-companion-errors-test-server)
      '(("home.txt" "fine"))
    ;; Just written.
    (gemini-companion-errors-test-write "a.txt" "fine\n")
    (gemini-companion-errors-test-visit "a.txt")
    (gemini-companion-errors-test-age)
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "fine\n" "error x\n"))))

(defun gemini-companion-errors-test-flymake (report &rest _)
  "Call REPORT with the errors of this buffer, later."
  (let ((buffer (current-buffer))
        (tick (buffer-chars-modified-tick)))
    (run-at-time
     0.1 nil
     (lambda ()
       (with-current-buffer buffer
         (when (= tick (buffer-chars-modified-tick))
           (save-excursion
             (goto-char (point-min))
             (let (found)
               (while (re-search-forward "\\(error\\|warning\\) \\(.+\\)" nil t)
                 (push (flymake-make-diagnostic
                        buffer (match-beginning 0) (match-end 0)
                        (intern (concat ":" (match-string 1)))
                        (match-string 2))
                       found))
               (funcall report found)))))))))

(ert-deftest gemini-companion-errors-asks-other-backends-of-flymake ()
  (gemini-companion-errors-test-with nil nil
    (gemini-companion-errors-test-old "a.txt" "error old\n")
    (set-buffer (find-file-noselect "a.txt"))
    (add-hook 'flymake-diagnostic-functions
              #'gemini-companion-errors-test-flymake nil t)
    (flymake-mode)
    (flymake-start)
    (gemini-companion-test-eventually (flymake-diagnostics))
    (should (equal '("3: error: x")
                   (gemini-companion-errors-test-edit
                    "a.txt" "error old\n" "\nerror old\nerror x\n")))
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "\nerror old\nerror x\n" "error old\nwarning y\n"))
    ;; One that does not report.
    (add-hook 'flymake-diagnostic-functions #'ignore nil t)
    (let ((gemini-companion-errors-bound 1))
      (should-not (gemini-companion-errors-test-edit
                   "a.txt" "error old\nwarning y\n" "error z\n")))))

;;;; Flycheck

(ert-deftest gemini-companion-errors-asks-flycheck ()
  (skip-unless (require 'flycheck nil t))
  (skip-unless (executable-find "bash"))
  (gemini-companion-errors-test-with nil nil
    (gemini-companion-errors-test-old "a.sh" "#!/bin/bash\necho\n")
    (set-buffer (find-file-noselect "a.sh"))
    (let ((flycheck-checkers '(sh-bash))
          (flycheck-check-syntax-automatically nil))
      (flycheck-mode)
      (flycheck-buffer)
      (gemini-companion-test-eventually
       (eq 'finished flycheck-last-status-change))
      (let ((broken "#!/bin/bash\necho\nif then\n")
            (fine "#!/bin/bash\necho\n"))
        (should (string-match-p
                 "\\`3: error: syntax error"
                 (car (gemini-companion-errors-test-edit "a.sh" fine broken))))
        (should-not (gemini-companion-errors-test-edit
                     "a.sh" broken
                     (string-replace "echo" "\necho" broken)))
        (should-not (gemini-companion-errors-test-edit
                     "a.sh" (string-replace "echo" "\necho" broken) fine))))))

;;;; A real server

(ert-deftest gemini-companion-errors-is-right-with-pylsp ()
  (let ((pylsp (expand-file-name ".venv/bin/pylsp"
                                 gemini-companion-test-root))
        (before "import os\n\nold\n\ndef f():\n    return os.name\n")
        (after "\n\nimport os\n\nold\n\ndef f():\n    return os.name + missing\n"))
    (skip-unless (file-executable-p pylsp))
    (skip-unless (require 'eglot nil t))
    (gemini-companion-errors-test-with
        (list pylsp) '(("home.py" "x = 1\n"))
      (gemini-companion-errors-test-old "b.py" before)
      (gemini-companion-errors-test-visit "b.py")
      (gemini-companion-test-eventually (flymake-diagnostics))
      (gemini-companion-errors-test-age)
      (dolist (file '("a.py" "b.py"))
        (should (equal '("8: error: undefined name 'missing' [pyflakes]")
                       (gemini-companion-errors-test-edit file before after)))
        (should-not (gemini-companion-errors-test-edit file after before))
        (should-not (gemini-companion-errors-test-edit
                     file before (concat before "import sys\n")))))))

(provide 'gemini-companion-errors-test)
;;; gemini-companion-errors-test.el ends here
