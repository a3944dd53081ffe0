;;; gemini-companion-diagnostics-test.el --- Tests of diagnostics and new errors  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; With Eglot and a real language server, and with one that does what real
;; servers do at times; with Flymake, and with Flycheck where it is installed.
;; test/errors has many more edits with more servers.

;;; Code:

(require 'flymake)
(require 'gemini-companion-diagnostics)
(require 'gemini-companion-tools)
(require 'gemini-companion-project-test-helper)
(require 'gemini-companion-revert)

(defvar flycheck-checkers)
(declare-function eglot-current-server "eglot")
(declare-function eglot-shutdown-all "eglot")
(declare-function eglot--signal-textDocument/didChange "eglot")
(declare-function flycheck-define-error-level "ext:flycheck")
(declare-function flycheck-define-generic-checker "ext:flycheck")
(declare-function flycheck-error-new-at "ext:flycheck")
(declare-function flycheck-mode "ext:flycheck")
(declare-function jsonrpc--process "jsonrpc")
(declare-function jsonrpc-notify "jsonrpc")
(declare-function jsonrpc-request "jsonrpc")

;;;; What the tests do

(defun gemini-companion-diagnostics-test-begin (file before after)
  "Change FILE from BEFORE to AFTER, and have it checked.
Return a function that returns all answers, a list."
  (let ((answers nil))
    (gemini-companion-test-write file after)
    (gemini-companion-revert file)
    (gemini-companion-diagnostics-after-edit
     (expand-file-name file) before after
     (lambda (text) (push text answers)))
    (lambda () answers)))

(defun gemini-companion-diagnostics-test-line (error)
  "Return ERROR as a line of text."
  (format "%d: error: %s%s" (nth 0 error) (nth 1 error)
          (if (nth 2 error) (format " [%s]" (nth 2 error)) "")))

(defun gemini-companion-diagnostics-test-edit (file before after)
  "Change FILE from BEFORE to AFTER; return what is reported, as lines."
  (let* ((began (float-time))
         (answers (gemini-companion-diagnostics-test-begin file before after))
         (facts (car (gemini-companion-test-eventually (funcall answers)))))
    (should (< (- (float-time) began) 30))
    (should (equal (list facts) (funcall answers)))
    (append (mapcar #'gemini-companion-diagnostics-test-line
                    (plist-get facts :errors))
            (mapcar (pcase-lambda (`(,name ,number ,first))
                      (format "%s %d:%s" (file-name-nondirectory name) number
                              (gemini-companion-diagnostics-test-line first)))
                    (plist-get facts :others)))))

(defun gemini-companion-diagnostics-test-sent (file text)
  "Wait until the server has TEXT of FILE, and has reported all that it does."
  (gemini-companion-test-eventually
    (eq t (jsonrpc-request (eglot-current-server) :test/reported
                           `( :uri ,(gemini-companion-lookup-uri
                                     (expand-file-name file))
                              :text ,text)))))

(defmacro gemini-companion-diagnostics-test-with (flags files &rest body)
  "Run BODY in a project with home.txt and FILES, a list of (NAME TEXT).
The test's language server runs with FLAGS, a list, and without visiting
FILES."
  (declare (indent 2) (debug t))
  `(gemini-companion-test-in-project
       (apply #'gemini-companion-test-server ,flags)
       (cons '("home.txt" "fine") ,files)
     ,@body))

(defun gemini-companion-diagnostics-test-known (&rest names)
  "Wait until the errors of the buffers NAMES are known."
  (dolist (name names)
    (with-current-buffer name
      (gemini-companion-test-eventually
        (gemini-companion-diagnostics--current)))))

(defun gemini-companion-diagnostics-test-ask (&optional file)
  "Return the answer to the question for the diagnostics of FILE, or of all."
  (gemini-companion-test-answer-of #'gemini-companion-diagnostics-answer
                                   (and file (expand-file-name file))))

;;;; Questions

(defun gemini-companion-diagnostics-test-flymake (report &rest _)
  "Call REPORT with the errors of this buffer, later."
  (let ((buffer (current-buffer))
        (tick (buffer-chars-modified-tick)))
    (run-at-time
     0.1 nil
     (lambda ()
       (when (and (buffer-live-p buffer)
                  (= tick (buffer-chars-modified-tick buffer)))
         (with-current-buffer buffer
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

(ert-deftest gemini-companion-diagnostics-of-flymake-are-of-the-present-text ()
  (gemini-companion-test-in-project nil '(("a.txt" "warning odd\nerror bad\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (let ((problem (lambda (text &optional file)
                       (string-search
                        text (plist-get (gemini-companion-diagnostics-test-ask file)
                                        :problem)))))
        (let ((flymake-list-only-diagnostics nil))
          (should (equal '(:rows nil) (gemini-companion-diagnostics-test-ask))))
        ;; A server reports that there are none when a file is closed.
        (let ((flymake-list-only-diagnostics (list (list buffer-file-name))))
          (should (funcall problem "does not check" "a.txt")))
        (add-hook 'flymake-diagnostic-functions
                  #'gemini-companion-diagnostics-test-flymake nil t)
        (flymake-mode)
        (flymake-start)
        (should (equal '((1 "warning" "odd") (2 "error" "bad"))
                       (seq-sort-by #'car #'<
                                    (plist-get (gemini-companion-diagnostics-test-ask
                                                "a.txt")
                                               :rows))))
        (should (equal `(:rows ((,buffer-file-name 1 1)))
                       (gemini-companion-diagnostics-test-ask)))
        ;; One that does not report.
        (add-hook 'flymake-diagnostic-functions #'ignore nil t)
        (flymake-start)
        (should (funcall problem "ask again" "a.txt"))
        ;; As that of Eglot, when its language server ends.
        (setq-local flymake-diagnostic-functions nil)
        (flymake-start)
        (should (funcall problem "does not check" "a.txt"))))))

(defun gemini-companion-diagnostics-test-flycheck (checker callback)
  "Call CALLBACK with errors of CHECKER, some in this buffer.
The text of the first one is the first line."
  (let ((text (buffer-substring (point-min) (line-end-position)))
        (buffer (current-buffer)))
    (run-at-time
     0.1 nil
     (lambda ()
       (with-current-buffer buffer
         (funcall
          callback 'finished
          (list
           (flycheck-error-new-at 2 1 'warning "odd\nthing" :checker checker)
           (flycheck-error-new-at 3 1 'gemini-companion-diagnostics-test-level
                                  "bad" :checker checker)
           (flycheck-error-new-at 1 1 'error text :checker checker)
           (flycheck-error-new-at 1 1 'error "secret" :checker checker
                                  :filename (expand-file-name ".env")))))))))

(ert-deftest gemini-companion-diagnostics-of-flycheck-are-of-the-present-text ()
  (skip-unless (require 'flycheck nil t))
  (flycheck-define-error-level 'gemini-companion-diagnostics-test-level
                               :severity 200 :compilation-level 2)
  (flycheck-define-generic-checker 'gemini-companion-diagnostics-test "A checker."
                                   :start #'gemini-companion-diagnostics-test-flycheck
                                   :modes '(text-mode))
  (gemini-companion-test-in-project nil '(("a.txt" "one\ntwo\nthree\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (let ((flycheck-checkers '(gemini-companion-diagnostics-test))
            (rows (lambda (text)
                    `(:rows ((2 "warning" "odd thing") (3 "error" "bad")
                             (1 "error" ,text))))))
        (flycheck-mode)
        (should (equal (funcall rows "one")
                       (gemini-companion-diagnostics-test-ask "a.txt")))
        (should (equal '("1: error: fore")
                       (gemini-companion-diagnostics-test-edit
                        "a.txt" "one\ntwo\nthree\n" "fore\ntwo\nthree\n")))
        (should-not (gemini-companion-diagnostics-test-edit
                     "a.txt" "fore\ntwo\nthree\n" "fore\ntwo\nthree\nfour\n"))
        ;; Flycheck does not check it by itself, as it is in no window.
        (insert "now ")
        (should (equal (funcall rows "now fore")
                       (gemini-companion-diagnostics-test-ask "a.txt")))
        (setq flycheck-checkers nil)
        (insert "then ")
        (should (string-search
                 "does not check"
                 (plist-get (gemini-companion-diagnostics-test-ask "a.txt")
                            :problem)))
        (set-buffer-modified-p nil)))))

(ert-deftest gemini-companion-diagnostics-of-eglot-are-of-the-present-text ()
  (gemini-companion-test-in-project (gemini-companion-test-server "versions")
      '(("a.py" "error x\n"))
    (let ((ask (lambda ()
                 ;; Eglot then reports the errors that it knows.
                 (flymake-start)
                 (plist-get (gemini-companion-diagnostics-test-ask "a.py") :rows)))
          (rows (lambda (word)
                  (list (list 1 "error" (format "test: %s is wrong" word))))))
      ;; The first report names no version, so the next one is not awaited.
      (gemini-companion-test-eventually (equal (funcall rows "x") (funcall ask)))
      (dolist (word '("y" "z"))
        (delete-region (point-min) (point-max))
        (insert "error " word "\n")
        (eglot--signal-textDocument/didChange)
        (gemini-companion-test-eventually
          (equal (funcall rows word) (funcall ask))))
      (delete-region (point-min) (point-max))
      (insert "error v\n")
      (eglot--signal-textDocument/didChange)
      (should (equal (funcall rows "v") (funcall ask))))))

;;;; What is new

(ert-deftest gemini-companion-diagnostics-only-a-syntax-error-hides-others ()
  (let ((new (lambda (errors old-errors lines old-lines)
               (mapcar #'caar (gemini-companion-diagnostics--new
                               errors (string-join lines "\n")
                               old-errors (string-join old-lines "\n"))))))
    (pcase-dolist
        (`(,gone ,expected)
         '(("Import \"os\" could not be resolved" (1 2))
           ("invalid syntax" nil)
           ("'(' was never closed" nil)
           ("Unindent not expected" nil)
           ("Too many errors emitted, stopping now" nil)))
      (should (equal expected
                     (funcall new '((1 "undefined name 'os'")
                                    (2 "undefined name 'os'"))
                              `((1 ,gone))
                              '("os.x" "os.y") '("import os" "os.x" "os.y")))))
    ;; An indentation that has changed makes a new line.
    (should (equal '(2) (funcall new '((2 "unexpected indent"))
                                 '((1 "invalid syntax"))
                                 '("x" "    y") '("x x" "y"))))))

;;;; Files that are not visited

(ert-deftest gemini-companion-diagnostics-names-only-what-is-new ()
  (gemini-companion-diagnostics-test-with '("versions") '(("a.txt" "error old"))
    (let ((text "1\n2\nerror old\nerror b")
          (view (gemini-companion-test-view)))
      (gemini-companion-test-write "a.txt" text)
      (should (equal (gemini-companion-test-answer-of
                      #'gemini-companion-diagnostics-after-edit
                      (expand-file-name "a.txt") "error old" text)
                     `( :path ,(expand-file-name "a.txt") :count 1
                        :errors ((4 "b is wrong" "test")) :others nil)))
      (should (equal view (gemini-companion-test-view))))
    (make-directory "real/ä %b" t)
    (make-symbolic-link "real" "link")
    (pcase-dolist
        (`(,before ,after . ,expected)
         '(("error old" "error old\nwarning b")
           ("error old" "1\n2\n3\n  error old")
           ("a\nerror old" "a\n")
           ("x\r\ny\r\n" "\U0001D11E\r\nerror c\r\n" "2: error: c is wrong [test]")
           (nil "error d" "1: error: d is wrong [test]")
           ;; A line that was copied.
           ("error x\nfine\n" "error x\nfine\nerror x\n")
           ;; The same error in an edited line.
           ("error x\n" "edited error x\n")
           ;; Its number is that of a line.
           ("error from-7\n" "\nerror from-8\n")
           ;; The first one has hidden it.
           ("error syntax\nerror y\n" "fine\nerror y\n")
           ("error syntax\nerror y\n" "error z\nerror y\n"
            "1: error: z is wrong [test]")
           ("error x\n" "fine\nerror z\n" "2: error: z is wrong [test]")
           ;; One without a severity.
           ("" "uses x" "1: error: x is unknown [test]")))
      (ert-info ((format "%S" after))
        (should (equal expected (gemini-companion-diagnostics-test-edit
                                 (if before "link/ä %b/b.txt" "real/ä %b/b.txt")
                                 before after)))))
    (should (= 10 (length (gemini-companion-diagnostics-test-edit
                           "a.txt" "" (mapconcat (apply-partially #'format "error %d")
                                                 (number-sequence 1 13) "\n")))))
    (should-not (find-buffer-visiting "a.txt"))))

(ert-deftest gemini-companion-diagnostics-asks-a-server-that-can-be-asked ()
  ;; What Pyright publishes does not matter.
  (pcase-dolist (`(,flag ,file) '(("pull" "a.txt") ("pyright" "a.txt")
                                  ("pyright" "home.txt")))
    (gemini-companion-diagnostics-test-with (list flag) nil
      (pcase-dolist (`(,before ,after . ,expected)
                     '(("fine" "error old" "1: error: old is wrong [test]")
                       ("error old" "error old\nerror x"
                        "2: error: x is wrong [test]")
                       ("error old\nerror x" "\nerror old")
                       ("\nerror old" "uses x" "1: error: x is unknown [test]")))
        (ert-info ((format "%s %s: %S" flag file after))
          (should (equal expected (gemini-companion-diagnostics-test-edit
                                   file before after)))))
      ;; The next edit is written before the check of the first one begins.
      (let ((first (gemini-companion-diagnostics-test-begin
                    file "uses x" "error a")))
        (gemini-companion-test-write file "error a\nerror b")
        (gemini-companion-revert file)
        (when (equal file "home.txt")
          (gemini-companion-test-eventually (funcall first))))
      (should (equal '("2: error: b is wrong [test]")
                     (gemini-companion-diagnostics-test-edit
                      file "error a" "error a\nerror b"))))))

(ert-deftest gemini-companion-diagnostics-in-doubt-reports-nothing ()
  ;; The server is busy, reports nothing, or does not name the version of a text.
  (dolist (flags '(("versions" "busy") ("versions" "mute") nil))
    (pcase-dolist (`(,file ,before) '(("a.txt" nil) ("home.txt" "fine")))
      (gemini-companion-diagnostics-test-with flags nil
        (let ((answers (gemini-companion-diagnostics-test-begin
                        file before "error x")))
          (gemini-companion-diagnostics-test-sent file "error x")
          (gemini-companion-test-run-timers)
          (should-not (funcall answers))
          (when (equal file "a.txt")
            ;; Eglot opens what the check has opened.
            (gemini-companion-test-visit file)
            (should (equal '(nil) (funcall answers)))))))))

(ert-deftest gemini-companion-diagnostics-knows-what-other-includes-break ()
  (gemini-companion-diagnostics-test-with '("versions" "includes")
      '(("b.txt" "#include \"a\"\nerror old\n"))
    (gemini-companion-test-visit "b.txt")
    (gemini-companion-diagnostics-test-known "b.txt")
    (dolist (file '("a.txt" "b.txt"))
      (should (equal '("3: error: x is wrong [test]")
                     (gemini-companion-diagnostics-test-edit
                      file "#include \"a\"\nerror old\n"
                      "#include \"b\"\nerror old\nerror x\n"))))))

(ert-deftest gemini-companion-diagnostics-sends-no-text-that-is-not-read ()
  (gemini-companion-diagnostics-test-with '("versions") nil
    (let* ((text (concat (make-string 100000 ?\n) "error x"))
           (process (jsonrpc--process (eglot-current-server)))
           ;; Otherwise a text that is sent would block the test for good.
           (timer (run-at-time 30 nil #'signal-process process 'SIGUSR1)))
      (jsonrpc-notify (eglot-current-server) :test/pause '(:until "SIGUSR1"))
      (gemini-companion-diagnostics-test-begin "a.txt" "" text)
      (gemini-companion-test-run-timers)
      (should (memq timer timer-list))
      (cancel-timer timer)
      (signal-process process 'SIGUSR1)
      (should (gemini-companion-diagnostics-test-edit "a.txt" "" text)))
    ;; A large one is not even looked at.
    (should (equal '(nil) (funcall (gemini-companion-diagnostics-test-begin
                                    "a.txt" ""
                                    (concat (make-string 1000000 ?\n)
                                            "error x")))))))

(ert-deftest gemini-companion-diagnostics-reports-nothing-of-files-not-shared ()
  (gemini-companion-diagnostics-test-with '("versions") nil
    (let ((gemini-companion-excluded '("/secret\\.txt\\'")))
      (should-not (gemini-companion-diagnostics-test-edit
                   "secret.txt" "" "error x")))
    (let ((gemini-companion-paused t))
      (should-not (gemini-companion-diagnostics-test-edit "a.txt" "" "error x")))
    (let ((gemini-companion-excluded (list #'always)))
      (gemini-companion-roots directory)
      (should-not (gemini-companion-diagnostics-test-edit "a.txt" "" "error x")))
    (gemini-companion-roots directory)
    (let ((text "-*- gemini-companion-share: nil -*-\n"))
      (gemini-companion-test-write "own.txt" text)
      (save-current-buffer
        (gemini-companion-test-visit "own.txt"))
      (should-not (gemini-companion-diagnostics-test-edit
                   "own.txt" text (concat text "error x"))))
    ;; Nothing is awaited that no checker checks.
    (let ((gemini-companion-diagnostics-timeout 3600))
      (dolist (file '("visited.unknown" "a.unknown"))
        (gemini-companion-test-write file "error x"))
      (find-file-noselect "visited.unknown")
      (dolist (file '("gone.txt" "/ssh:nowhere:/a.txt" "visited.unknown"
                      "a.unknown"))
        (should-not (gemini-companion-test-answer-of
                     #'gemini-companion-diagnostics-after-edit
                     (expand-file-name file) "" "error x"))))
    (should (gemini-companion-diagnostics-test-edit "a.txt" "" "error x"))))

(ert-deftest gemini-companion-diagnostics-ends-a-check-that-is-overtaken ()
  (gemini-companion-diagnostics-test-with '("versions") '(("b.txt" ""))
    (let ((first (gemini-companion-diagnostics-test-begin "a.txt" "" "error x"))
          (other (gemini-companion-diagnostics-test-begin "c.txt" "" "error z")))
      (should (equal '("2: error: y is wrong [test]")
                     (gemini-companion-diagnostics-test-edit
                      "a.txt" "error x" "error x\nerror y")))
      (should (equal '(nil) (funcall first)))
      (gemini-companion-test-eventually (funcall other))
      (should (equal '((1 "z is wrong" "test"))
                     (plist-get (car (funcall other)) :errors))))
    (gemini-companion-test-visit "b.txt")
    (gemini-companion-diagnostics-test-known "b.txt")
    (pcase-dolist
        (`(,file . ,what)
         `(("a.txt" . ,(lambda () (gemini-companion-test-write "a.txt" "formatted")))
           ("b.txt" . ,(lambda () (gemini-companion-test-write "b.txt" "formatted")))
           ("e.txt" . ,(lambda () (delete-process (jsonrpc--process
                                                   (eglot-current-server)))))))
      (let ((answers (gemini-companion-diagnostics-test-begin file "" "error x")))
        (should-not (funcall answers))
        (funcall what)
        (gemini-companion-test-eventually (funcall answers))
        (ert-info (file)
          (should (equal '(nil) (funcall answers))))))
    (should-not (gemini-companion-diagnostics-test-edit "e.txt" "" "error x"))))

(ert-deftest gemini-companion-diagnostics-reports-nothing-that-a-start-brings ()
  ;; The server reports an error until it has loaded the project.
  (gemini-companion-diagnostics-test-with '("versions" "loads") nil
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "fine\n" "fine\nmore\n"))
    (should (equal '("2: error: x is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "a.txt" "fine\nmore\n" "fine\nerror x\n")))))

(ert-deftest gemini-companion-diagnostics-trusts-no-report-of-an-earlier-check ()
  (gemini-companion-diagnostics-test-with '("versions") nil
    (with-current-buffer "home.txt"
      (erase-buffer)
      (insert "def one\n")
      (eglot--signal-textDocument/didChange)
      (gemini-companion-diagnostics-test-known "home.txt")
      (should-not (gemini-companion-diagnostics-test-edit
                   "a.txt" "uses one\n" "1\nuses one\n"))
      ;; As if another program had changed what a.txt includes.
      (jsonrpc-notify (eglot-current-server) :test/forget
                      `(:uri ,(gemini-companion-lookup-uri
                               (expand-file-name "home.txt"))))
      (should-not (gemini-companion-diagnostics-test-edit
                   "a.txt" "1\nuses one\n" "2\nuses one\n"))
      (set-buffer-modified-p nil))))

(ert-deftest gemini-companion-diagnostics-forgets-what-another-text-changes ()
  (gemini-companion-diagnostics-test-with '("versions") nil
    (let ((type (lambda (text)
                  (erase-buffer)
                  (insert text)
                  (eglot--signal-textDocument/didChange)
                  (gemini-companion-diagnostics-test-known "home.txt"))))
      (should (equal '("1: error: x is unknown [test]")
                     (gemini-companion-diagnostics-test-edit
                      "a.txt" "fine\n" "uses x\n")))
      (gemini-companion-diagnostics-test-edit "a.txt" "uses x\n" "fine\n")
      ;; The text after the edit is known with an error.
      (funcall type "def x\n")
      (should-not (gemini-companion-diagnostics-test-edit
                   "a.txt" "fine\n" "uses x\n"))
      ;; The text before the edit is known without one.
      (funcall type "fine\n")
      (should-not (gemini-companion-diagnostics-test-edit
                   "a.txt" "uses x\n" "\nuses x\n"))
      (set-buffer-modified-p nil))))

;;;; Other files

(ert-deftest gemini-companion-diagnostics-names-callers-checked-when-one-saves ()
  (gemini-companion-diagnostics-test-with '("versions" "saved")
      '(("a.txt" "uses one\n") ("one.txt" "/* def one */\nint one(int x)\n"))
    (dolist (file '("one.txt" "a.txt"))
      (gemini-companion-test-visit file)
      (gemini-companion-diagnostics-test-known file))
    (should (equal '("a.txt 1:1: error: one is unknown [test]")
                   (gemini-companion-diagnostics-test-edit
                    "one.txt" "/* def one */\nint one(int x)\n"
                    "/* def two */\nint two(int x)\n")))))

(ert-deftest gemini-companion-diagnostics-names-the-callers-that-break ()
  (gemini-companion-diagnostics-test-with '("versions")
      '(("one.txt" "def one\n") ("a.txt" "uses other\nuses one\nuses one\n")
        ("b.txt" "def two\n") ("secret.txt" "uses one\n"))
    (let* ((gemini-companion-excluded '("/secret\\.txt\\'"))
           (files '("one.txt" "a.txt" "b.txt" "secret.txt"))
           (edit (lambda (&rest args)
                   (apply #'gemini-companion-diagnostics-test-known files)
                   (apply #'gemini-companion-diagnostics-test-edit args))))
      (mapc #'gemini-companion-test-visit files)
      ;; It is open, and names the definition.
      (should (equal '("a.txt 2:2: error: one is unknown [test]")
                     (funcall edit "one.txt" "def one\n" "def three\n")))
      (funcall edit "b.txt" "def two\n" "uses three\n")
      (should (equal '("2: error: x is wrong [test]"
                       "b.txt 1:1: error: three is unknown [test]")
                     (funcall edit "one.txt" "def three\n"
                              "def four\nerror x\n")))
      ;; The server reports before the hook of the CLI does.
      (funcall edit "one.txt" "def four\nerror x\n" "def one\n")
      (apply #'gemini-companion-diagnostics-test-known files)
      (gemini-companion-test-write "one.txt" "def five\n")
      (gemini-companion-revert "one.txt")
      (with-current-buffer "one.txt"
        (eglot--signal-textDocument/didChange))
      (with-current-buffer "a.txt"
        (gemini-companion-test-eventually
          (= 3 (length (flymake-diagnostics)))))
      (should (equal `((,(expand-file-name "a.txt")
                        2 (2 "one is unknown" "test")))
                     (plist-get (gemini-companion-test-answer-of
                                 #'gemini-companion-diagnostics-after-edit
                                 (expand-file-name "one.txt")
                                 "def one\n" "def five\n")
                                :others)))
      ;; No news of the file itself, after a harmless edit.
      (should-not (funcall edit "a.txt" "uses other\nuses one\nuses one\n"
                           "\nuses other\nuses one\nuses one\n")))))

;;;; Files that are visited

(ert-deftest gemini-companion-diagnostics-knows-the-errors-of-a-visited-file ()
  (gemini-companion-diagnostics-test-with '("versions") '(("a.txt" "error old\n"))
    (gemini-companion-test-visit "a.txt")
    (gemini-companion-diagnostics-test-known "a.txt")
    (should (equal '("3: error: x is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "a.txt" "error old\n" "\nerror old\nerror x\n")))
    ;; A revert by the user closes it; then there is no version.
    (let ((inhibit-message t))
      (revert-buffer t t t))
    (gemini-companion-diagnostics-test-known "a.txt")
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "\nerror old\nerror x\n" "error old\n"))
    (narrow-to-region 3 4)
    (should (equal '("2: error: y is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "a.txt" "error old\r\n" "error old\r\nerror y\r\n")))
    ;; Of a text of which nothing is known, those in new lines are.
    (should (equal '("2: error: z is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "a.txt" "error old\n" "error old\nerror z\n")))
    ;; The user types.
    (let ((answers (gemini-companion-diagnostics-test-begin
                    "a.txt" "error z\n" "error z\nerror 9\n")))
      (insert "typed")
      (gemini-companion-test-eventually (funcall answers))
      (should (equal '(nil) (funcall answers))))
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "error z\nerror 9\n" "error z\nerror 9\nerror 10\n"))))

(ert-deftest gemini-companion-diagnostics-knows-both-of-two-quick-edits ()
  (gemini-companion-diagnostics-test-with '("versions")
      '(("a.txt" "fine\n") ("b.txt" "fine\n"))
    (dolist (file '("a.txt" "b.txt"))
      (gemini-companion-test-visit file)
      (gemini-companion-diagnostics-test-known file))
    (let ((first (gemini-companion-diagnostics-test-begin
                  "a.txt" "fine\n" "fine\nerror x\n")))
      (should (equal '("2: error: y is wrong [test]")
                     (gemini-companion-diagnostics-test-edit
                      "b.txt" "fine\n" "fine\nerror y\n")))
      (gemini-companion-test-eventually (funcall first))
      (should (equal '((2 "x is wrong" "test"))
                     (plist-get (car (funcall first)) :errors))))
    ;; The errors of the text between are never known.
    (gemini-companion-diagnostics-test-begin
     "a.txt" "fine\nerror x\n" "fine\nerror y\n")
    (should (equal '("3: error: z is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "a.txt" "fine\nerror y\n" "fine\nerror y\nerror z\n")))))

(ert-deftest gemini-companion-diagnostics-believes-no-report-of-the-text-before ()
  (gemini-companion-diagnostics-test-with '("versions")
      '(("a.txt" "error x\n") ("b.txt" "fine\n"))
    (dolist (file '("b.txt" "a.txt"))
      (gemini-companion-test-visit file)
      (gemini-companion-diagnostics-test-known file))
    (insert "\n")
    (eglot--signal-textDocument/didChange)
    (gemini-companion-diagnostics-test-known "a.txt")
    (erase-buffer)
    ;; The server reports about a.txt again, whose change it does not know.
    (dotimes (_ 2)
      (with-current-buffer "b.txt"
        (insert "fine\n")
        (eglot--signal-textDocument/didChange))
      (gemini-companion-diagnostics-test-known "b.txt"))
    (should (string-search "ask again"
                           (plist-get (gemini-companion-diagnostics-test-ask "a.txt")
                                      :problem)))
    (eglot--signal-textDocument/didChange)
    (should (equal '(:rows nil) (gemini-companion-diagnostics-test-ask "a.txt")))
    (set-buffer-modified-p nil)
    (with-current-buffer "b.txt" (set-buffer-modified-p nil))))

(defmacro gemini-companion-diagnostics-test-with-flymake (text &rest body)
  "Run BODY in a buffer that visits a.txt with TEXT, which Flymake has checked."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-in-project nil (list (list "a.txt" ,text))
     (set-buffer (find-file-noselect "a.txt"))
     (add-hook 'flymake-diagnostic-functions
               #'gemini-companion-diagnostics-test-flymake nil t)
     (flymake-mode)
     (flymake-start)
     (gemini-companion-diagnostics-test-known "a.txt")
     ,@body))

(ert-deftest gemini-companion-diagnostics-asks-other-backends-of-flymake ()
  (gemini-companion-diagnostics-test-with-flymake "error old\n"
    (should (equal '("3: error: x")
                   (gemini-companion-diagnostics-test-edit
                    "a.txt" "error old\n" "\nerror old\nerror x\n")))
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "\nerror old\nerror x\n" "error old\nwarning y\n"))
    ;; In a narrowed buffer, backends find wrong lines.
    (narrow-to-region 11 (point-max))
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "error old\nwarning y\n" "error old\nerror y\n"))))

(ert-deftest gemini-companion-diagnostics-of-a-large-text-block-no-key ()
  (let* ((line "    some_name = another_name(argument)\n")
         (rest (apply #'concat (make-list (/ 500000 (length line)) line)))
         (old (concat "error syntax\n" rest))
         (new (concat (mapconcat (lambda (number) (format "error x%d\n" number))
                                 (number-sequence 1 20) "")
                      rest))
         (now (lambda () (float-time (get-internal-run-time))))
         (longest 0)
         (times nil)
         (measure (lambda (function timer)
                    (let ((began (funcall now)))
                      (prog1 (funcall function timer)
                        (when (gemini-companion-test-ours-p (timer--function timer))
                          (setq longest (max longest
                                             (- (funcall now) began)))))))))
    (gemini-companion-diagnostics-test-with-flymake old
      (advice-add 'timer-event-handler :around measure)
      (unwind-protect
          (dotimes (_ 3)
            (garbage-collect)
            (let ((gc-cons-threshold most-positive-fixnum))
              (setq longest 0)
              (should (gemini-companion-diagnostics-test-edit "a.txt" old new))
              (push longest times)
              (gemini-companion-diagnostics-test-edit "a.txt" new old)))
        (advice-remove 'timer-event-handler measure)))
    ;; A limit for a busy machine; compiled, the longest piece takes 8 ms.
    (ert-info ((format "%S" times))
      (should (< (apply #'min times) 0.1)))))

;;;; Real servers

(ert-deftest gemini-companion-diagnostics-knows-what-models-break ()
  (dolist (command '(("pylsp") ("ruff" "server")))
    (let ((program (gemini-companion-test-program (car command)))
          ;; The name is that of the file: an edit of a definition waits
          ;; for other files with its name.
          (fine (apply-partially
                 #'format "import os\n\nold\n\n\ndef %s():\n    return os.name
\n\nprint(%s())\n")))
      (gemini-companion-test-in-project (cons program (cdr command))
          `(("home.py" "x = 1\n") ("a.py" ,(funcall fine "a" "a"))
            ("b.py" ,(funcall fine "b" "b")))
        (gemini-companion-test-visit "b.py")
        (gemini-companion-diagnostics-test-known "b.py")
        ;; The first one is slow; of files that are not visited, there are others.
        (dolist (name (if (equal command '("pylsp")) '("b") '("a" "b")))
          (pcase-dolist
              (`(,old ,new ,expected)
               '(("import os\n" "" "6: error: .*ndefined name .os.")
                 ("def " "def renamed_" "10: error: .*ndefined name .[ab].")
                 ("())" "()" "1[01]: error: ")
                 ("    return" "return" "7: error: ")
                 ("old\n" "old + missing\n" "3: error: .*ndefined name .missing.")
                 ("old\n" "import sys\n\nold\n" nil)))
            (ert-info ((format "%s %s: %S" command name new))
              (let* ((file (concat name ".py"))
                     (fine (funcall fine name name))
                     (broken (string-replace old new fine))
                     (lines (gemini-companion-diagnostics-test-edit
                             file fine broken)))
                (if expected
                    (should (string-match-p (concat "\\`" expected) (car lines)))
                  (should-not lines))
                (should-not (gemini-companion-diagnostics-test-edit
                             file broken fine))))))))))

;;; gemini-companion-diagnostics-test.el ends here
