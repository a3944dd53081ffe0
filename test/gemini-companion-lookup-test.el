;;; gemini-companion-lookup-test.el --- Tests of answers about symbols and files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Answers about real files, from the Lisp of this Emacs, from Flymake and
;; Flycheck, and from a language server where Eglot and one are installed.

;;; Code:

(require 'gemini-companion-extension)
(require 'gemini-companion-lookup)
(require 'gemini-companion-test-helper)

(defvar eglot-autoshutdown)
(defvar eglot-server-programs)
(defvar eglot-sync-connect)
(declare-function eglot-current-server "eglot")
(declare-function eglot-ensure "eglot")
(declare-function eglot-managed-p "eglot")
(declare-function eglot-shutdown "eglot")
(declare-function eglot--signal-textDocument/didChange "eglot")
(declare-function flycheck-buffer "ext:flycheck")
(declare-function flycheck-define-error-level "ext:flycheck")
(declare-function flycheck-define-generic-checker "ext:flycheck")
(declare-function flycheck-error-new-at "ext:flycheck")
(declare-function flycheck-mode "ext:flycheck")
(declare-function flymake-make-diagnostic "flymake")
(declare-function flymake-running-backends "flymake")
(declare-function flymake-reporting-backends "flymake")
(declare-function flymake-start "flymake")
(declare-function project-remember-project "project")
(defvar flycheck-checkers)
(defvar flymake-diagnostic-functions)
(defvar flymake-list-only-diagnostics)

;;;; Helpers

(defun gemini-companion-lookup-test-answer (function &rest args)
  "Return what FUNCTION, called with ARGS, answers."
  (let ((answer nil))
    (apply function
           (append args (list (lambda (value) (setq answer (list value))))))
    (gemini-companion-test-eventually answer)
    (car answer)))

(defmacro gemini-companion-lookup-test-in-project (files &rest body)
  "Run BODY in a project with FILES, whose directory is a root."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory ,files
     (unwind-protect
         (progn
           (call-process "git" nil nil nil "init" "-q")
           (gemini-companion-privacy-refresh)
           (gemini-companion-roots directory)
           (gemini-companion-diagnostics-start)
           ,@body)
       (gemini-companion-diagnostics-stop)
       (gemini-companion-roots-forget)
       (gemini-companion-privacy-forget))))

;;;; Definitions and diagnostics

(ert-deftest gemini-companion-lookup-defines-a-symbol-of-lisp ()
  (gemini-companion-lookup-test-in-project
      '(("a.el" "\n(defun gemini-companion-lookup-test-f ()
  \"Do nothing.\"
  nil)\n\n(gemini-companion-lookup-test-f)\n"))
    (load (expand-file-name "a.el") nil t)
    (let ((answer (gemini-companion-lookup-test-answer
                   #'gemini-companion-lookup-definition
                   (expand-file-name "a.el") "gemini-companion-lookup-test-f"
                   nil)))
      (should (equal `((,(expand-file-name "a.el") 2))
                     (plist-get answer :places)))
      (should (string-search "Do nothing." (plist-get answer :documentation)))
      (should (equal "(defun gemini-companion-lookup-test-f ()
  \"Do nothing.\"
  nil)"
                     (plist-get answer :source))))
    (should (plist-get (gemini-companion-lookup-test-answer
                        #'gemini-companion-lookup-references
                        (expand-file-name "a.el") "nil" nil nil)
                       :problem))))

(ert-deftest gemini-companion-lookup-has-the-documentation-of-compiled-lisp ()
  (gemini-companion-lookup-test-in-project
      '(("a.el" ";; -*- lexical-binding: t -*-
(defvar gemini-companion-lookup-test-v nil\n  \"Be nil.\")\n"))
    (let ((byte-compile-verbose nil))
      (byte-compile-file (expand-file-name "a.el")))
    (load (expand-file-name "a.elc") nil t)
    (should (equal "Be nil."
                   (plist-get (gemini-companion-lookup-test-answer
                               #'gemini-companion-lookup-definition
                               (expand-file-name "a.el")
                               "gemini-companion-lookup-test-v" nil)
                              :documentation)))))

(defun gemini-companion-lookup-test-flymake (report &rest _)
  "Call REPORT with an error on line 2 and a warning on line 1."
  (funcall report (list (flymake-make-diagnostic (current-buffer) 1 2
                                                 :warning "odd")
                        (flymake-make-diagnostic (current-buffer) 5 6
                                                 :error "bad"))))

(defvar gemini-companion-lookup-test-report nil
  "Function that ends the check of `gemini-companion-lookup-test-slow'.")

(defun gemini-companion-lookup-test-slow (report &rest _)
  "Check this buffer until `gemini-companion-lookup-test-report' is called.
REPORT is called with an error then."
  (setq gemini-companion-lookup-test-report
        (lambda ()
          (funcall report (list (flymake-make-diagnostic (current-buffer) 1 2
                                                         :error "bad"))))))

(ert-deftest gemini-companion-lookup-waits-for-the-check-of-the-present-text ()
  (gemini-companion-lookup-test-in-project '(("a.txt" "one\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (add-hook 'flymake-diagnostic-functions
                #'gemini-companion-lookup-test-slow nil t)
      (flymake-mode)
      (flymake-start)
      (let (answer)
        (gemini-companion-diagnostics-answer
         buffer-file-name (lambda (value) (setq answer value)))
        (should-not answer)
        (funcall gemini-companion-lookup-test-report)
        (gemini-companion-test-eventually answer)
        (should (equal '(:rows ((1 "error: bad"))) answer)))
      (flymake-start)
      (should (string-search "ask again"
                             (plist-get (gemini-companion-lookup-test-answer
                                         #'gemini-companion-diagnostics-answer
                                         buffer-file-name)
                                        :problem))))))

(ert-deftest gemini-companion-lookup-has-no-diagnostics-of-what-is-not-checked ()
  (gemini-companion-lookup-test-in-project '(("a.txt" "one\n"))
    (let ((ask (lambda ()
                 (plist-get (gemini-companion-lookup-test-answer
                             #'gemini-companion-diagnostics-answer
                             (expand-file-name "a.txt"))
                            :problem))))
      (should (string-search "does not check" (funcall ask)))
      (with-current-buffer (find-file-noselect "a.txt")
        (should (string-search "does not check" (funcall ask)))
        (setq-local flymake-diagnostic-functions
                    '(gemini-companion-lookup-test-flymake))
        (flymake-mode)
        (flymake-start)
        (gemini-companion-test-eventually (flymake-reporting-backends))
        (should-not (funcall ask))
        ;; As that of Eglot, when its language server ends.
        (setq-local flymake-diagnostic-functions nil)
        (should (string-search "does not check" (funcall ask)))
        (flymake-start)
        (should (string-search "does not check" (funcall ask)))))))

(ert-deftest gemini-companion-lookup-has-the-diagnostics-of-flymake ()
  (gemini-companion-lookup-test-in-project '(("a.txt" "one\ntwo\n"))
    (find-file-noselect "a.txt")
    (with-current-buffer "a.txt"
      (add-hook 'flymake-diagnostic-functions
                #'gemini-companion-lookup-test-flymake nil t)
      (flymake-mode)
      (flymake-start)
      (gemini-companion-test-eventually
        (and (flymake-reporting-backends)
             (null (seq-difference (flymake-running-backends)
                                   (flymake-reporting-backends))))))
    (should (equal '(:rows ((2 "error: bad") (1 "warning: odd")))
                   (gemini-companion-lookup-test-answer
                    #'gemini-companion-diagnostics-answer
                    (expand-file-name "a.txt"))))
    (should (equal `(:rows ((,(expand-file-name "a.txt")
                             "1 errors, 1 warnings")))
                   (gemini-companion-lookup-test-answer
                    #'gemini-companion-diagnostics-answer nil)))))

;;;; Flycheck

(defun gemini-companion-lookup-test-flycheck (checker callback)
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
           (flycheck-error-new-at 3 1 'gemini-companion-lookup-test-level "bad"
                                  :checker checker)
           (flycheck-error-new-at 1 1 'error text :checker checker)
           (flycheck-error-new-at 1 1 'error "secret" :checker checker
                                  :filename (expand-file-name ".env")))))))))

(ert-deftest gemini-companion-lookup-has-the-diagnostics-of-flycheck ()
  (skip-unless (require 'flycheck nil t))
  (flycheck-define-error-level 'gemini-companion-lookup-test-level
    :severity 200 :compilation-level 2)
  (flycheck-define-generic-checker 'gemini-companion-extension-test "A checker."
    :start #'gemini-companion-lookup-test-flycheck
    :modes '(text-mode))
  (gemini-companion-lookup-test-in-project '(("a.txt" "one\ntwo\nthree\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (let ((flycheck-checkers '(gemini-companion-extension-test))
            (ask (lambda ()
                   (gemini-companion-lookup-test-answer
                    #'gemini-companion-diagnostics-answer buffer-file-name)))
            (rows (lambda (text)
                    `(:rows ((1 ,(concat "error: " text)) (3 "error: bad")
                             (2 "warning: odd thing"))))))
        (flycheck-mode)
        (should (equal (funcall rows "one") (funcall ask)))
        ;; Flycheck does not check it by itself, as it is in no window.
        (insert "now ")
        (should (equal (funcall rows "now one") (funcall ask)))
        (setq flycheck-checkers nil)
        (insert "then ")
        (should (string-search "does not check"
                               (plist-get (funcall ask) :problem)))
        (set-buffer-modified-p nil)))))

(ert-deftest gemini-companion-lookup-answers-nothing-about-hidden-files ()
  (gemini-companion-lookup-test-in-project
      '((".env" "KEY=1\n") ("a.txt" "KEY\n") (".geminiignore" "ignored.txt\n")
        ("ignored.txt" "KEY\n"))
    (let ((gemini-companion-excluded (cons 'nroff-mode
                                           gemini-companion-excluded)))
      (write-region "KEY\n" nil "a.man" nil 'silent)
      (make-symbolic-link ".env" "innocent.txt")
      (let ((hidden (mapcar #'expand-file-name
                            '(".env" "ignored.txt" "a.man" "innocent.txt"))))
        (dolist (file (cons "/etc/passwd" hidden))
          (dolist (answer
                   (list (gemini-companion-lookup-test-answer
                          #'gemini-companion-lookup-references
                          file "KEY" nil nil)
                         (gemini-companion-lookup-test-answer
                          #'gemini-companion-lookup-definition file "KEY" nil)
                         (gemini-companion-lookup-test-answer
                          #'gemini-companion-diagnostics-answer file)))
            (should (equal (list :problem
                                 (format "%s is not shared by Emacs" file))
                           answer))))))))

;;;; Language server

(defvar gemini-companion-lookup-test-server
  (list (expand-file-name "pylsp"
                          (file-name-directory (gemini-companion-test-python))))
  "The command of the language server.")

(defmacro gemini-companion-lookup-test-with-eglot (files &rest body)
  "Run BODY in a project with FILES, Eglot managing the first one.
Skip the test if Eglot or the language server is not installed."
  (declare (indent 1) (debug t))
  `(progn
     (skip-unless (and (require 'eglot nil t)
                       (executable-find
                        (car gemini-companion-lookup-test-server))))
     (gemini-companion-lookup-test-in-project ,files
       (let ((eglot-server-programs
              `((python-mode ,@gemini-companion-lookup-test-server)))
             (eglot-sync-connect nil)
             (inhibit-message t)
             (server nil))
         (with-current-buffer (find-file-noselect (caar ,files))
           (cl-letf (((symbol-function 'file-notify-add-watch) #'ignore))
             (eglot-ensure)
             (run-hooks 'post-command-hook)
             (gemini-companion-test-eventually
               (setq server (eglot-current-server)))
             (gemini-companion-test-eventually (eglot-managed-p))
             (unwind-protect
                 (progn ,@body)
               (eglot-shutdown server nil 20))))))))

(defconst gemini-companion-lookup-test-project
  '(("a.py" "def helper(x: int) -> int:
    \"\"\"Double X.\"\"\"
    return 2 * x


def other(helper_: int) -> int:
    return helper(helper_)
")
    ("b.py" "from a import helper

y = helper(3), \"\N{GRINNING FACE}\", helper(4)
")
    (".env.py" "from a import helper; TOP_SECRET = helper(5) # bytes of it
def hidden_function(): \"bytes of it\"
")
    ("c.py" "import os

print(os.getcwd())
"))
  "A project with a file that is not shared.")

(defun gemini-companion-lookup-test-lines (answer)
  "Return the places in ANSWER as a list of (NAME . LINE)."
  (mapcar (lambda (place)
            (cons (file-name-nondirectory (nth 0 place)) (nth 1 place)))
          (plist-get answer :places)))

(ert-deftest gemini-companion-lookup-finds-references-wherever-point-is ()
  (gemini-companion-lookup-test-with-eglot gemini-companion-lookup-test-project
    (let ((expected '(("a.py" . 1) ("a.py" . 7) ("b.py" . 1) ("b.py" . 3)))
          (ask (lambda (file symbol &optional line after)
                 (gemini-companion-lookup-test-answer
                  #'gemini-companion-lookup-references
                  (expand-file-name file) symbol line after))))
      (gemini-companion-test-eventually
        (equal expected
               (gemini-companion-lookup-test-lines
                (funcall ask "a.py" "helper"))))
      (goto-char (point-max))
      (dolist (question '(("a.py" "helper" 7) ("b.py" "helper")
                          ("b.py" "helper" 3) ("b.py" "helper" 2)))
        (should (equal expected (gemini-companion-lookup-test-lines
                                 (apply ask question)))))
      (should (equal '("def helper(x: int) -> int:" "    return helper(helper_)"
                       "from a import helper")
                     (seq-take (mapcar #'caddr
                                       (plist-get (funcall ask "a.py" "helper")
                                                  :places))
                               3)))
      (let ((rest (funcall ask "a.py" "helper" nil 3)))
        (should (equal '(("b.py" . 3)) (gemini-companion-lookup-test-lines rest)))
        (should (= 4 (plist-get rest :total))))
      (should (equal "Line 2 does not have helper; taken from line 1."
                     (plist-get (funcall ask "b.py" "helper" 2) :taken)))
      (should (plist-get (funcall ask "b.py" "help") :problem)))))

(ert-deftest gemini-companion-lookup-defines-what-the-language-server-knows ()
  (gemini-companion-lookup-test-with-eglot gemini-companion-lookup-test-project
    (let ((ask (lambda (file symbol)
                 (gemini-companion-lookup-test-answer
                  #'gemini-companion-lookup-definition
                  (expand-file-name file) symbol nil))))
      (gemini-companion-test-eventually
        (plist-get (funcall ask "b.py" "helper") :places))
      (let ((answer (funcall ask "b.py" "helper")))
        (should (equal '(("a.py" . 1))
                       (gemini-companion-lookup-test-lines answer)))
        (should (string-search "helper(x: int) -> int"
                               (plist-get answer :documentation)))
        (should (string-prefix-p "def helper" (plist-get answer :source)))
        (should (string-suffix-p "return 2 * x" (plist-get answer :source))))
      ;; Of a library only the place and the documentation.
      (gemini-companion-test-eventually
        (plist-get (funcall ask "c.py" "getcwd") :places))
      (let ((answer (funcall ask "c.py" "getcwd")))
        (should (plist-get answer :documentation))
        (should-not (plist-get answer :source))))))

(ert-deftest gemini-companion-lookup-asks-no-server-of-another-host ()
  (let ((gemini-companion-lookup-test-server
         (gemini-companion-lookup-test-fake)))
    (gemini-companion-lookup-test-with-eglot '(("a.py" "") ("b.py" ""))
      (let ((file (expand-file-name "b.py")))
        (should (eq (current-buffer) (gemini-companion-lookup-neighbor file)))
        (let* ((buffer-file-name (concat "/mock:host:" buffer-file-name))
               (handler (lambda (operation &rest args)
                          (let ((file-name-handler-alist nil))
                            (if (eq operation 'file-remote-p)
                                "/mock:host:"
                              (apply operation args)))))
               (file-name-handler-alist (cons (cons "\\`/mock:" handler)
                                              file-name-handler-alist)))
          (should-not (gemini-companion-lookup-neighbor file)))))))

(ert-deftest gemini-companion-lookup-names-files-as-eglot-does ()
  (dolist (file '("/a/b.py" "/a b/c:d.py" "/größe/1%.py"))
    (should (equal file (gemini-companion-lookup-path
                         (gemini-companion-lookup-uri file))))
    (when-let* (((require 'eglot nil t))
                (uri (seq-find #'fboundp '(eglot-path-to-uri
                                           eglot--path-to-uri))))
      (should (equal (funcall uri file) (gemini-companion-lookup-uri file)))))
  (should (equal "file:///a%20b/c%3Ad.py"
                 (gemini-companion-lookup-uri "/a b/c:d.py"))))

;;;; Texts that a language server has not

(defun gemini-companion-lookup-test-fake (&rest flags)
  "Return the command of the test's language server with FLAGS."
  `("python3" ,(expand-file-name "test/language_server.py"
                                 gemini-companion-test-root)
    ,@flags))

(ert-deftest gemini-companion-lookup-has-no-diagnostics-if-nothing-is-checked ()
  (gemini-companion-lookup-test-in-project '(("a.txt" "one\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (let ((flymake-list-only-diagnostics nil))
        (should (string-search
                 "checks no file"
                 (plist-get (gemini-companion-lookup-test-answer
                             #'gemini-companion-diagnostics-answer nil)
                            :problem)))))))

(ert-deftest gemini-companion-lookup-has-no-diagnostics-of-a-text-not-open ()
  (let ((gemini-companion-lookup-test-server
         (gemini-companion-lookup-test-fake "open")))
    (gemini-companion-lookup-test-with-eglot
        '(("a.py" "") ("b.py" "error x\n"))
      ;; The server then reports that there are none, as it was closed.
      (should (equal '(1) (gemini-companion-lookup-test-references "b.py" "x")))
      (gemini-companion-test-eventually
        (assoc (expand-file-name "b.py") flymake-list-only-diagnostics))
      (gemini-companion-test-eventually
        (null (cdr (assoc (expand-file-name "b.py")
                          flymake-list-only-diagnostics))))
      (should (string-search "does not check"
                             (plist-get (gemini-companion-lookup-test-answer
                                         #'gemini-companion-diagnostics-answer
                                         (expand-file-name "b.py"))
                                        :problem))))))

(ert-deftest gemini-companion-lookup-awaits-the-report-of-a-server ()
  (let* ((gemini-companion-lookup-test-server
          (gemini-companion-lookup-test-fake "versions"))
         (ask (lambda ()
                ;; Eglot then reports the errors that it knows.
                (flymake-start)
                (plist-get (gemini-companion-lookup-test-answer
                            (lambda (answer)
                              (gemini-companion-extension-answer
                               answer 'diagnostics
                               (list :path buffer-file-name))))
                           :rows))))
    (gemini-companion-lookup-test-with-eglot '(("a.py" "error x\n"))
      (should (equal '((1 "error: test: x is wrong")) (funcall ask)))
      (dolist (word '("y" "z"))
        (delete-region (point-min) (point-max))
        (insert "error " word "\n")
        (eglot--signal-textDocument/didChange)
        ;; The first report names no version, so the next one is not awaited.
        (gemini-companion-test-eventually
          (equal (list (list 1 (format "error: test: %s is wrong" word)))
                 (funcall ask))))
      (delete-region (point-min) (point-max))
      (insert "error v\n")
      (eglot--signal-textDocument/didChange)
      (should (equal '((1 "error: test: v is wrong")) (funcall ask)))
      (set-buffer-modified-p nil))))

(defun gemini-companion-lookup-test-references (file symbol)
  "Return the lines of the references to SYMBOL in FILE, or the problem."
  (let ((answer (gemini-companion-lookup-test-answer
                 #'gemini-companion-lookup-references
                 (expand-file-name file) symbol nil nil)))
    (or (plist-get answer :problem)
        (mapcar #'cadr (plist-get answer :places)))))

(ert-deftest gemini-companion-lookup-asks-about-large-files-without-their-text ()
  (let ((gemini-companion-lookup-test-server
         (gemini-companion-lookup-test-fake)))
    (gemini-companion-lookup-test-with-eglot
        `(("a.py" "") ("b.py" ,(concat (make-string 100000 ?\n) "word\n")))
      (should (equal '(100001)
                     (gemini-companion-lookup-test-references "b.py" "word")))
      ;; The server reports errors of each text that it is sent.
      (should-not (assoc (expand-file-name "b.py")
                         flymake-list-only-diagnostics)))))

(ert-deftest gemini-companion-lookup-opens-what-a-server-does-not-know ()
  (let ((gemini-companion-lookup-test-server
         (gemini-companion-lookup-test-fake "open")))
    (gemini-companion-lookup-test-with-eglot
        `(("a.py" "") ("b.py" "\nword word\n")
          ("c.py" ,(concat (make-string 100000 ?\n) "word\n"))
          ("d.py" ,(concat (make-string 1100000 ?\n) "word\n")))
      (dotimes (_ 2)
        (should (equal '(2)
                       (gemini-companion-lookup-test-references "b.py" "word"))))
      (dolist (large '("c.py" "d.py"))
        (should (string-search
                 "too large"
                 (gemini-companion-lookup-test-references large "word")))))))

(ert-deftest gemini-companion-lookup-opens-what-a-server-knows-otherwise ()
  (let ((gemini-companion-lookup-test-server
         (gemini-companion-lookup-test-fake "stale")))
    (gemini-companion-lookup-test-with-eglot
        '(("a.py" "") ("b.py" "other\nother\n"))
      (should (equal '(1 2)
                     (gemini-companion-lookup-test-references "b.py" "other")))
      (write-region "word\nother\nword\n" nil "b.py" nil 'silent)
      (should (equal '(1 3)
                     (gemini-companion-lookup-test-references "b.py" "word"))))))

;;;; Many questions

(defun gemini-companion-lookup-test-random (list)
  "Return a random element of LIST."
  (nth (random (length list)) list))

(defun gemini-companion-lookup-test-question (files symbols answer)
  "Ask a random question about one of FILES and SYMBOLS, for ANSWER."
  (let ((file (gemini-companion-lookup-test-random files))
        (symbol (gemini-companion-lookup-test-random symbols))
        (line (gemini-companion-lookup-test-random '(nil 1 2 7 100 1000000))))
    (pcase (random 3)
      (0 (gemini-companion-lookup-references
          file symbol line
          (gemini-companion-lookup-test-random '(nil 0 1 1000)) answer))
      (1 (gemini-companion-lookup-definition file symbol line answer))
      (2 (gemini-companion-diagnostics-answer
          (gemini-companion-lookup-test-random (list file nil)) answer)))))

(defun gemini-companion-lookup-test-view ()
  "Return what the user sees."
  (list (buffer-list)
        (window-list)
        (selected-window)
        (mapcar #'window-start (window-list))
        (mapcar #'window-point (window-list))
        (current-buffer)
        (mapcar (lambda (buffer)
                  (with-current-buffer buffer
                    (list (point) (mark t) mark-active (buffer-modified-p)
                          (point-min) (point-max))))
                (seq-filter #'buffer-file-name (buffer-list)))
        (minibuffer-depth)
        (with-current-buffer (messages-buffer) (buffer-string))))

(defconst gemini-companion-lookup-test-symbols
  '("helper" "helper_" "x" "TOP_SECRET" "hidden_function" "getcwd" "os" ".*"
    "no_such" "(" "\\" "def")
  "Symbols to ask about, some of which are in a file that is not shared.")

(defmacro gemini-companion-lookup-test-many (count answers &rest body)
  "Ask COUNT random questions, bind their ANSWERS, and evaluate BODY."
  (declare (indent 2) (debug t))
  `(let* ((files (append (mapcar #'expand-file-name
                                 '("a.py" "b.py" "c.py" ".env.py" "none.py"))
                         '("/etc/passwd" "relative" "" "/ssh:nowhere:/a")))
          (before nil)
          (,answers nil)
          (seed (format "%s" (float-time))))
     (random seed)
     (goto-char (point-min))
     (push-mark nil t)
     (goto-char (point-max))
     (string-match "a\\(b\\)" "xab")
     (setq before (gemini-companion-lookup-test-view))
     ;; As many at once as the server lets through.
     (dotimes (_ (/ ,count 4))
       (let ((left 4))
         (dotimes (_ 4)
           (gemini-companion-lookup-test-question
            files gemini-companion-lookup-test-symbols
            (lambda (answer)
              (push answer ,answers)
              (setq left (1- left)))))
         (gemini-companion-test-eventually (zerop left))))
     (ert-info ((format "seed %s" seed))
       (should (equal before (gemini-companion-lookup-test-view)))
       ,@body)))

(ert-deftest gemini-companion-lookup-changes-nothing-by-a-thousand-questions ()
  (gemini-companion-lookup-test-in-project gemini-companion-lookup-test-project
    (with-current-buffer (find-file-noselect "a.py")
      (gemini-companion-lookup-test-many 1000 answers
        ;; A language server may change it.
        (should (equal '(1 3 2 3) (match-data)))
        (should-not (string-search "bytes of it" (format "%S" answers)))))))

(ert-deftest gemini-companion-lookup-gives-nothing-of-files-not-shared ()
  (gemini-companion-lookup-test-with-eglot gemini-companion-lookup-test-project
    (gemini-companion-test-eventually
      (plist-get (gemini-companion-lookup-test-answer
                  #'gemini-companion-lookup-definition
                  (expand-file-name "b.py") "helper" nil)
                 :places))
    (gemini-companion-lookup-test-many 1000 answers
      (let ((all (format "%S" answers)))
        (should (string-search "return 2 * x" all))
        (should-not (string-search "bytes of it" all))
        (should-not (string-search "helper(5)" all))
        (should-not (seq-some (lambda (answer)
                                (assoc (expand-file-name ".env.py")
                                       (plist-get answer :places)))
                              answers))))))

(provide 'gemini-companion-lookup-test)
;;; gemini-companion-lookup-test.el ends here
