;;; gemini-companion-lookup-test.el --- Tests of what Emacs knows of code  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'flycheck nil t)
(require 'gemini-companion-errors)
(require 'gemini-companion-lookup)
(require 'gemini-companion-part)
(require 'gemini-companion-revert)
(require 'gemini-companion-roots)
(require 'gemini-companion-test-helper)

(declare-function eglot-current-server "eglot")
(declare-function eglot-ensure "eglot")
(declare-function eglot-managed-p "eglot")
(declare-function eglot-shutdown-all "eglot")
(declare-function eglot--signal-textDocument/didChange "eglot")
(declare-function jsonrpc--process "jsonrpc")
(declare-function jsonrpc-notify "jsonrpc")
(declare-function jsonrpc-request "jsonrpc")
(defvar flymake-list-only-diagnostics)

;;;; A project

(defun gemini-companion-test-server (&rest flags)
  "Return the command of the test's language server with FLAGS."
  `("python3" ,(expand-file-name "test/language_server.py"
                                 gemini-companion-test-root)
    ,@flags))

(defun gemini-companion-test-visit (file)
  "Visit FILE with its language server, in the current buffer."
  (set-buffer (find-file-noselect file))
  (eglot-ensure)
  (run-hooks 'post-command-hook)
  (gemini-companion-test-eventually (eglot-managed-p))
  ;; Without a display it waits for one.
  (flymake-start))

(defmacro gemini-companion-test-in-project (command files &rest body)
  "Run BODY in a project with FILES, a list of (NAME TEXT), which is a root.
The language server COMMAND runs for files like the first one, which
is visited.  If COMMAND is nil there is none; if there is one, skip the
test without Eglot."
  (declare (indent 2) (debug t))
  `(let ((command ,command))
     (unless (or (null command) (require 'eglot nil t))
       (ert-skip "No Eglot"))
     (gemini-companion-test-with-directory ,files
       ;; A test fails earlier.
       (dlet ((gemini-companion-errors-timeout 3600)
              (gemini-companion-context-paused nil)
              (eglot-server-programs (list (cons '(text-mode python-mode) command)))
              (eglot-autoreconnect nil)
              (eglot-sync-connect t)
              (inhibit-message t))
         (call-process "git" nil nil nil "init" "-q")
         (gemini-companion-privacy-refresh)
         (gemini-companion-roots-update directory)
         (gemini-companion-part-start 'errors)
         (unwind-protect
             (save-current-buffer
               (when command
                 (gemini-companion-test-visit (car (car ,files))))
               ,@body)
           (gemini-companion-part-stop 'errors)
           (when command
             (let ((kill-buffer-query-functions nil))
               (eglot-shutdown-all)
               (kill-matching-buffers "EGLOT" 'internal-too 'no-ask)))
           (setq gemini-companion-roots-last nil))))))

(defun gemini-companion-test-answer-of (kind file &rest args)
  "Return the answer to the question of KIND about FILE with ARGS."
  (let ((answer nil)
        (ask (if (eq kind 'edited)
                 #'gemini-companion-errors-after-edit
               (apply-partially #'gemini-companion-lookup kind))))
    ;; An error is answered, not signaled.
    (gemini-companion-test-demoted
      (apply ask (lambda (value) (setq answer (list value)))
             (and file (expand-file-name file)) args)
      (gemini-companion-test-wait (lambda () answer)))
    (should answer)
    (car answer)))

(defun gemini-companion-lookup-test-references (file symbol)
  "Return the lines of the references to SYMBOL in FILE, or the problem."
  (let ((answer (gemini-companion-test-answer-of
                 'references file symbol nil nil)))
    (or (plist-get answer :problem)
        (mapcar #'cadr (plist-get answer :locations)))))

;;;; Files

(ert-deftest gemini-companion-lookup-defines-a-symbol-of-lisp ()
  (gemini-companion-test-in-project nil
      '(("a.el" "(defun gemini-companion-lookup-test-f ()\n  \"Do it.\" 1)\n"))
    (load (expand-file-name "a.el") nil t)
    (should (string-match-p
             "/a.el\" 1)).*Do it[^:]*:source \"(defun"
             (prin1-to-string
              (gemini-companion-test-answer-of
               'definition "a.el" "gemini-companion-lookup-test-f" nil))))))

(ert-deftest gemini-companion-lookup-answers-nothing-about-hidden-files ()
  (gemini-companion-test-in-project nil
      '((".env" "KEY=1\n") ("a.txt" "KEY\n") (".geminiignore" "ignored.txt\n")
        ("ignored.txt" "KEY\n"))
    (let ((gemini-companion-excluded (cons 'nroff-mode
                                           gemini-companion-excluded)))
      (write-region "KEY\n" nil "a.man" nil 'silent)
      (make-symbolic-link ".env" "innocent.txt")
      (make-symbolic-link "a.txt" "secret.pem")
      (gemini-companion-test-with-far-host
        (dolist (file '("/etc/passwd" "/far:/a.py" ".env" "ignored.txt" "a.man"
                        "innocent.txt" "secret.pem"))
          (pcase-dolist (`(,question . ,arguments)
                         '((references "KEY" nil nil)
                           (definition "KEY" nil)
                           (diagnostics)))
            (should (equal (list :problem
                                 (format "%s is not shared by Emacs"
                                         (expand-file-name file)))
                           (apply #'gemini-companion-test-answer-of
                                  question file arguments))))))
      (let ((gemini-companion-share-outside-projects t))
        (should (string-prefix-p "No language server"
                                 (gemini-companion-lookup-test-references
                                  "/etc/passwd" "root")))))))

;;;; Language server

(defun gemini-companion-lookup-test-lines (answer)
  "Return the places in ANSWER as a list of (NAME . LINE)."
  (mapcar (lambda (place)
            (cons (file-name-nondirectory (nth 0 place)) (nth 1 place)))
          (plist-get answer :locations)))

(ert-deftest gemini-companion-lookup-answers-as-a-real-server-wherever-point-is ()
  (cl-letf (((symbol-function 'file-notify-add-watch) #'ignore)
            (pylsp (expand-file-name "../pylsp" (gemini-companion-test-python))))
    (skip-unless (file-executable-p pylsp))
    (gemini-companion-test-in-project (list pylsp)
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
      (let ((expected '(("a.py" . 1) ("a.py" . 7) ("b.py" . 1) ("b.py" . 3)))
            (references (lambda (file &optional line after)
                          (gemini-companion-test-answer-of
                           'references file "helper" line after)))
            (definition (lambda (file symbol)
                          (gemini-companion-test-answer-of
                           'definition file symbol nil))))
        (gemini-companion-test-eventually
          (equal expected (gemini-companion-lookup-test-lines
                           (funcall references "a.py"))))
        (goto-char (point-max))
        (dolist (place '(("a.py" 7) ("b.py") ("b.py" 3) ("b.py" 2)))
          (should (equal expected (gemini-companion-lookup-test-lines
                                   (apply references place)))))
        (should (equal '("def helper(x: int) -> int:" "    return helper(helper_)"
                         "from a import helper")
                       (seq-take (mapcar #'caddr (plist-get
                                                  (funcall references "a.py")
                                                  :locations))
                                 3)))
        (let ((rest (funcall references "a.py" nil 3)))
          (should (equal '(("b.py" . 3)) (gemini-companion-lookup-test-lines rest)))
          (should (= 4 (plist-get rest :total))))
        (should (string-search "The word help is not in"
                               (gemini-companion-lookup-test-references
                                "b.py" "help")))
        (let ((answer (funcall definition "b.py" "helper")))
          (should (equal '(("a.py" . 1))
                         (gemini-companion-lookup-test-lines answer)))
          (should (string-search "helper(x: int) -> int"
                                 (plist-get answer :documentation)))
          (should (string-prefix-p "def helper" (plist-get answer :source)))
          (should (string-suffix-p "return 2 * x" (plist-get answer :source))))
        ;; Of a library only the place and the documentation.
        (gemini-companion-test-eventually
          (plist-get (funcall definition "c.py" "getcwd") :locations))
        (let ((answer (funcall definition "c.py" "getcwd")))
          (should (plist-get answer :documentation))
          (should-not (plist-get answer :source)))))))

(ert-deftest gemini-companion-lookup-asks-a-server-of-the-same-language ()
  (gemini-companion-test-in-project (gemini-companion-test-server)
      '(("a.py" "") ("b.py" "word") ("b.cpp" "word") ("lib.h" "word"))
    (let ((asked (lambda (file)
                   (equal '(1) (gemini-companion-lookup-test-references
                                file "word")))))
      (should (funcall asked "b.py"))
      (should-not (funcall asked "lib.h"))
      (let ((buffer-file-name (expand-file-name "a.c")))
        (should (equal '(t t nil) (mapcar asked '("b.cpp" "lib.h" "b.py")))))
      (let ((buffer-file-name (concat "/far:" buffer-file-name)))
        (gemini-companion-test-with-far-host
          (should-not (funcall asked "b.py")))))))

;;;; Texts that a language server does not have

(ert-deftest gemini-companion-lookup-asks-about-large-files-without-their-text ()
  (gemini-companion-test-in-project (gemini-companion-test-server)
      `(("a.py" "") ("b.py" ,(concat (make-string 200000 ?\n) "word\n")))
    (should (equal '(200001)
                   (gemini-companion-lookup-test-references "b.py" "word")))
    ;; The server reports errors of each text that it is sent.
    (should-not (assoc (expand-file-name "b.py") flymake-list-only-diagnostics))))

(ert-deftest gemini-companion-lookup-opens-what-a-server-does-not-know ()
  (gemini-companion-test-in-project (gemini-companion-test-server "open")
      `(("a.py" "") ("b.py" "\nword word\n")
        ("c.py" ,(concat (make-string 200000 ?\n) "word\n"))
        ("d.py" ,(concat (make-string 1100000 ?\n) "word\n")))
    (dotimes (_ 2)
      (should (equal '(2)
                     (gemini-companion-lookup-test-references "b.py" "word"))))
    (should-not (find-buffer-visiting "b.py"))
    (dolist (large '("c.py" "d.py"))
      (should (string-search
               "too large"
               (gemini-companion-lookup-test-references large "word")))))
  ;; It has read an earlier text.
  (gemini-companion-test-in-project (gemini-companion-test-server "stale")
      '(("a.py" "") ("b.py" "other\nother\n"))
    (should (equal '(1 2)
                   (gemini-companion-lookup-test-references "b.py" "other")))
    (write-region "word\nother\nword\n" nil "b.py" nil 'silent)
    (should (equal '(1 3)
                   (gemini-companion-lookup-test-references "b.py" "word")))))

;;;; What the tests do

(defun gemini-companion-lookup-test-begin (file before after)
  "Change FILE from BEFORE to AFTER, and have it checked.
Return a function that returns all answers, a list."
  (let ((answers nil))
    (gemini-companion-test-write file after)
    (gemini-companion-revert file)
    (gemini-companion-errors-after-edit (lambda (text) (push text answers))
                             (expand-file-name file) before after)
    (lambda () answers)))

(defun gemini-companion-lookup-test-line (error)
  "Return ERROR as a line of text."
  (format "%d: error: %s%s" (nth 0 error) (nth 1 error)
          (if (nth 2 error) (format " [%s]" (nth 2 error)) "")))

(defun gemini-companion-lookup-test-reported (answers)
  "Return the only one of ANSWERS, of a check that has begun, as lines."
  (let ((facts (car (gemini-companion-test-eventually (funcall answers)))))
    (should (equal (list facts) (funcall answers)))
    (append (mapcar #'gemini-companion-lookup-test-line
                    (plist-get facts :errors))
            (mapcar (pcase-lambda (`(,name ,number ,first))
                      (format "%s %d:%s" (file-name-nondirectory name) number
                              (gemini-companion-lookup-test-line first)))
                    (plist-get facts :others)))))

(defun gemini-companion-lookup-test-edit (file before after)
  "Change FILE from BEFORE to AFTER; return what is reported, as lines."
  (gemini-companion-lookup-test-reported
   (gemini-companion-lookup-test-begin file before after)))

(defun gemini-companion-lookup-test-edits (file &rest edits)
  "Assert what is reported of EDITS of FILE, lists (BEFORE AFTER LINE...)."
  (pcase-dolist (`(,before ,after . ,expected) edits)
    (ert-info ((format "%s: %S" file after))
      (should (equal expected (gemini-companion-lookup-test-edit
                               file before after))))))

(defmacro gemini-companion-lookup-test-with (flags files &rest body)
  "Run BODY in a project with home.txt and FILES, a list of (NAME TEXT).
The test's language server runs with FLAGS, a list, and without visiting
FILES."
  (declare (indent 2) (debug t))
  `(gemini-companion-test-in-project
       (apply #'gemini-companion-test-server ,flags)
       (cons '("home.txt" "fine") ,files)
     ,@body))

(defun gemini-companion-lookup-test-known (&rest names)
  "Wait until the errors of the buffers NAMES are known."
  (dolist (name names)
    (with-current-buffer name
      (gemini-companion-test-eventually
        (gemini-companion-errors-current)))))

(defun gemini-companion-lookup-test-visit (&rest files)
  "Visit each of FILES, and wait until its errors are known."
  (dolist (file files)
    (gemini-companion-test-visit file)
    (gemini-companion-lookup-test-known file)))

(defun gemini-companion-lookup-test-type (text)
  "Replace the text of this buffer by TEXT, which the language server gets."
  (erase-buffer)
  (insert text)
  (eglot--signal-textDocument/didChange))

(defun gemini-companion-lookup-test-ask (&optional file)
  "Return the answer to the question for the diagnostics of FILE, or of all."
  (gemini-companion-test-answer-of 'diagnostics file))

(defun gemini-companion-lookup-test-problem-p (text &optional file)
  "Return non-nil if the diagnostics of FILE are unknown because of TEXT."
  (string-search text (plist-get (gemini-companion-lookup-test-ask file)
                                 :problem)))

;;;; Questions

(defun gemini-companion-lookup-test-flymake (report &rest _)
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

(ert-deftest gemini-companion-lookup-of-flymake-are-of-the-present-text ()
  (gemini-companion-test-in-project nil '(("a.txt" "warning odd\nerror bad\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (let ((flymake-list-only-diagnostics nil))
        (should (equal '(:rows nil) (gemini-companion-lookup-test-ask))))
      ;; A server reports that there are none when a file is closed.
      (let ((flymake-list-only-diagnostics (list (list buffer-file-name))))
        (should (gemini-companion-lookup-test-problem-p "does not check" "a.txt")))
      (add-hook 'flymake-diagnostic-functions
                #'gemini-companion-lookup-test-flymake nil t)
      (flymake-mode)
      (flymake-start)
      (should (equal '((1 "warning" "odd") (2 "error" "bad"))
                     (seq-sort-by #'car #'<
                                  (plist-get (gemini-companion-lookup-test-ask
                                              "a.txt")
                                             :rows))))
      (should (equal `(:rows ((,buffer-file-name 1 1)))
                     (gemini-companion-lookup-test-ask)))
      ;; One that does not report.
      (add-hook 'flymake-diagnostic-functions #'ignore nil t)
      (flymake-start)
      (should (gemini-companion-lookup-test-problem-p "ask again" "a.txt"))
      (run-at-time 0.1 nil (lambda () (setq gemini-companion-context-paused t)))
      (should (gemini-companion-lookup-test-problem-p "not shared" "a.txt"))
      (setq gemini-companion-context-paused nil)
      ;; As that of Eglot, when its language server ends.
      (setq-local flymake-diagnostic-functions nil)
      (flymake-start)
      (should (gemini-companion-lookup-test-problem-p "does not check" "a.txt")))))

(ert-deftest gemini-companion-lookup-of-flycheck-are-of-the-present-text ()
  (skip-unless (featurep 'flycheck))
  (flycheck-define-error-level 'gemini-companion-lookup-test-level
                               :severity 200 :compilation-level 2)
  (flycheck-define-generic-checker 'gemini-companion-lookup-test
      "A checker of which the text of an error is the first line."
    :modes '(text-mode)
    :start
    (lambda (checker callback)
      (let ((text (buffer-substring (point-min) (line-end-position)))
            (new (lambda (line level text &optional file)
                   (flycheck-error-new-at line 1 level text :checker checker
                                          :filename (or file buffer-file-name)))))
        (run-at-time
         0.1 nil callback 'finished
         (list (funcall new 2 'warning "odd\nthing")
               (funcall new 3 'gemini-companion-lookup-test-level "bad")
               (funcall new 1 'error text)
               (funcall new 1 'error "secret" (expand-file-name ".env")))))))
  (gemini-companion-test-in-project nil '(("a.txt" "one\ntwo\nthree\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (let ((flycheck-checkers '(gemini-companion-lookup-test))
            (rows (lambda (text)
                    `(:rows ((2 "warning" "odd thing") (3 "error" "bad")
                             (1 "error" ,text))))))
        (flycheck-mode)
        (should (equal (funcall rows "one")
                       (gemini-companion-lookup-test-ask "a.txt")))
        (gemini-companion-lookup-test-edits
         "a.txt" '("one\ntwo\nthree\n" "fore\ntwo\nthree\n" "1: error: fore")
         '("fore\ntwo\nthree\n" "fore\ntwo\nthree\nfour\n"))
        ;; Flycheck does not check it by itself, as it is in no window.
        (insert "now ")
        (should (equal (funcall rows "now fore")
                       (gemini-companion-lookup-test-ask "a.txt")))
        (setq flycheck-checkers nil)
        (insert "then ")
        (should (gemini-companion-lookup-test-problem-p "does not check" "a.txt"))
        (set-buffer-modified-p nil)))))

(ert-deftest gemini-companion-lookup-of-eglot-are-of-the-present-text ()
  (gemini-companion-test-in-project (gemini-companion-test-server "versions")
      '(("a.py" "error x\n"))
    (let ((ask (lambda ()
                 ;; Eglot then reports the errors that it knows.
                 (flymake-start)
                 (plist-get (gemini-companion-lookup-test-ask "a.py") :rows)))
          (rows (lambda (word)
                  (list (list 1 "error" (format "test: %s is wrong" word))))))
      ;; The first report names no version, so the next one is not awaited.
      (gemini-companion-test-eventually (equal (funcall rows "x") (funcall ask)))
      (dolist (word '("y" "z"))
        (gemini-companion-lookup-test-type (format "error %s\n" word))
        (gemini-companion-test-eventually
          (equal (funcall rows word) (funcall ask))))
      (gemini-companion-lookup-test-type "error v\n")
      (should (equal (funcall rows "v") (funcall ask))))))

;;;; Files that are not visited

(ert-deftest gemini-companion-lookup-names-only-what-is-new ()
  (gemini-companion-lookup-test-with '("versions") '(("a.txt" "error old"))
    (let* ((text "1\n2\nerror old\nerror b")
           (look (lambda ()
                   (list (window-state-get nil t) (current-buffer) (point) (mark t)
                         (buffer-modified-p) (buffer-narrowed-p)
                         (seq-filter #'buffer-file-name (buffer-list))
                         (gemini-companion-test-text (messages-buffer)))))
           (view (funcall look)))
      (gemini-companion-test-write "a.txt" text)
      (should (equal (gemini-companion-test-answer-of
                      'edited "a.txt" "error old" text)
                     `( :path ,(expand-file-name "a.txt") :count 1
                        :errors ((4 "b is wrong" "test")) :others nil)))
      (should (equal view (funcall look))))
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
        (should (equal expected (gemini-companion-lookup-test-edit
                                 (if before "link/ä %b/b.txt" "real/ä %b/b.txt")
                                 before after)))))
    (should (= 10 (length (gemini-companion-lookup-test-edit
                           "a.txt" "" (mapconcat (apply-partially #'format "error %d")
                                                 (number-sequence 1 13) "\n")))))
    (should-not (find-buffer-visiting "a.txt"))))

(ert-deftest gemini-companion-lookup-asks-a-server-that-can-be-asked ()
  ;; What Pyright publishes does not matter.
  (pcase-dolist (`(,flag ,file) '(("pull" "a.txt") ("pyright" "a.txt")
                                  ("pyright" "home.txt")))
    (gemini-companion-lookup-test-with (list flag) nil
      (ert-info (flag)
        (gemini-companion-lookup-test-edits
         file '("fine" "error old" "1: error: old is wrong [test]")
         '("error old" "error old\nerror x" "2: error: x is wrong [test]")
         '("error old\nerror x" "\nerror old")
         '("\nerror old" "uses x" "1: error: x is unknown [test]"))
        ;; The next edit is written before the check of the first one begins.
        (let ((first (gemini-companion-lookup-test-begin
                      file "uses x" "error a")))
          (gemini-companion-test-write file "error a\nerror b")
          (gemini-companion-revert file)
          (when (equal file "home.txt")
            (gemini-companion-test-eventually (funcall first))))
        (gemini-companion-lookup-test-edits
         file '("error a" "error a\nerror b" "2: error: b is wrong [test]"))))))

(ert-deftest gemini-companion-lookup-in-doubt-reports-nothing ()
  ;; The server is busy, reports nothing, or does not name the version of a text.
  (dolist (flags '(("versions" "busy") ("versions" "mute") nil))
    (pcase-dolist (`(,file ,before) '(("a.txt" nil) ("home.txt" "fine")))
      (gemini-companion-lookup-test-with flags nil
        (let ((answers (gemini-companion-lookup-test-begin
                        file before "error x")))
          ;; The server has the text, and has reported all that it does.
          (gemini-companion-test-eventually
            (eq t (jsonrpc-request
                   (eglot-current-server) :test/reported
                   `( :uri ,(concat "file://" (expand-file-name file))
                      :text "error x"))))
          (gemini-companion-test-run-timers)
          (should-not (funcall answers))
          (when (equal file "a.txt")
            ;; Eglot opens what the check has opened.
            (gemini-companion-test-visit file)
            (should (equal '(nil) (funcall answers)))))))))

(ert-deftest gemini-companion-lookup-knows-what-other-includes-break ()
  (gemini-companion-lookup-test-with '("versions" "includes")
      '(("b.txt" "#include \"a\"\nerror old\n"))
    (gemini-companion-lookup-test-visit "b.txt")
    (dolist (file '("a.txt" "b.txt"))
      (gemini-companion-lookup-test-edits
       file '("#include \"a\"\nerror old\n" "#include \"b\"\nerror old\nerror x\n"
              "3: error: x is wrong [test]")))))

(ert-deftest gemini-companion-lookup-sends-no-text-that-is-not-read ()
  (gemini-companion-lookup-test-with '("versions" "open")
      `(("b.txt" ,(concat (make-string 100000 ?\n) "word\n")))
    (let* ((text (concat (make-string 100000 ?\n) "error x"))
           (process (jsonrpc--process (eglot-current-server)))
           ;; Otherwise a text that is sent would block the test for good.
           (timer (run-at-time 120 nil #'signal-process process 'SIGUSR1))
           (found nil))
      (jsonrpc-notify (eglot-current-server) :test/pause '(:until "SIGUSR1"))
      (gemini-companion-lookup-test-begin "a.txt" "" text)
      (gemini-companion-test-run-timers)
      (gemini-companion-lookup
       'references (lambda (answer) (setq found answer))
       (expand-file-name "b.txt") "word" nil nil)
      ;; Not even when the server has had time to answer.
      (dolist (timer (seq-filter (lambda (timer)
                                   (< 5 (float-time (time-subtract
                                                     (timer--time timer) nil))
                                      20))
                                 timer-list))
        (timer-event-handler timer))
      (should (string-search "does not answer" (plist-get found :problem)))
      (setq found nil)
      (gemini-companion-lookup
       'references (lambda (answer) (setq found answer))
       (expand-file-name "b.txt") "word" nil nil)
      (should (memq timer timer-list))
      (cancel-timer timer)
      (signal-process process 'SIGUSR1)
      (should (equal 1 (plist-get (gemini-companion-test-eventually found)
                                  :total)))
      (should (gemini-companion-lookup-test-edit "a.txt" "" text)))
    ;; A large one is not even looked at.
    (should (equal '(nil) (funcall (gemini-companion-lookup-test-begin
                                    "a.txt" ""
                                    (concat (make-string 1000000 ?\n)
                                            "error x")))))))

(ert-deftest gemini-companion-lookup-reports-nothing-of-files-not-shared ()
  (gemini-companion-lookup-test-with '("versions") nil
    (let ((gemini-companion-excluded '("/secret\\.txt\\'")))
      (should-not (gemini-companion-lookup-test-edit
                   "secret.txt" "" "error x")))
    (let ((gemini-companion-context-paused t))
      (should-not (gemini-companion-lookup-test-edit "a.txt" "" "error x")))
    ;; It is paused once the errors are known.
    (let ((new-errors (symbol-function 'gemini-companion-code-new-errors)))
      (cl-letf (((symbol-function 'gemini-companion-code-new-errors)
                 (lambda (&rest arguments)
                   (setq gemini-companion-context-paused t)
                   (apply new-errors arguments))))
        (should-not (gemini-companion-lookup-test-edit "a.txt" "" "error x"))))
    (setq gemini-companion-context-paused nil)
    (let ((gemini-companion-excluded (list #'always)))
      (gemini-companion-roots-update directory)
      (should-not (gemini-companion-lookup-test-edit "a.txt" "" "error x")))
    (gemini-companion-roots-update directory)
    (let ((text "-*- gemini-companion-share: nil -*-\n"))
      (gemini-companion-test-write "own.txt" text)
      (save-current-buffer
        (gemini-companion-test-visit "own.txt"))
      (should-not (gemini-companion-lookup-test-edit
                   "own.txt" text (concat text "error x"))))
    ;; Nothing is awaited that no checker checks.
    (dolist (file '("visited.unknown" "a.unknown"))
      (gemini-companion-test-write file "error x"))
    (find-file-noselect "visited.unknown")
    (dolist (file '("gone.txt" "/ssh:nowhere:/a.txt" "visited.unknown" "a.unknown"))
      (should-not (gemini-companion-test-answer-of 'edited file "" "error x")))
    (should (gemini-companion-lookup-test-edit "a.txt" "" "error x"))))

(ert-deftest gemini-companion-lookup-ends-a-check-that-is-overtaken ()
  (gemini-companion-lookup-test-with '("versions") '(("b.txt" ""))
    (let ((first (gemini-companion-lookup-test-begin "a.txt" "" "error x"))
          (other (gemini-companion-lookup-test-begin "c.txt" "" "error z")))
      (gemini-companion-lookup-test-edits
       "a.txt" '("error x" "error x\nerror y" "2: error: y is wrong [test]"))
      (should (equal '(nil) (funcall first)))
      (should (equal '("1: error: z is wrong [test]")
                     (gemini-companion-lookup-test-reported other))))
    (gemini-companion-lookup-test-visit "b.txt")
    (pcase-dolist
        (`(,file . ,what)
         `(("a.txt" . ,(lambda () (gemini-companion-test-write "a.txt" "formatted")))
           ("b.txt" . ,(lambda () (gemini-companion-test-write "b.txt" "formatted")))
           ("e.txt" . ,(lambda () (delete-process (jsonrpc--process
                                                   (eglot-current-server)))))))
      (let ((answers (gemini-companion-lookup-test-begin file "" "error x")))
        (should-not (funcall answers))
        (funcall what)
        (ert-info (file)
          (should-not (gemini-companion-lookup-test-reported answers)))))
    (should-not (gemini-companion-lookup-test-edit "e.txt" "" "error x"))))

(ert-deftest gemini-companion-lookup-reports-nothing-that-a-start-brings ()
  ;; The server reports an error until it has loaded the project.
  (gemini-companion-lookup-test-with '("versions" "loads") nil
    (gemini-companion-lookup-test-edits
     "a.txt" '("fine\n" "fine\nmore\n")
     '("fine\nmore\n" "fine\nerror x\n" "2: error: x is wrong [test]"))))

(ert-deftest gemini-companion-lookup-trusts-no-report-of-an-earlier-check ()
  (gemini-companion-lookup-test-with '("versions") nil
    (gemini-companion-lookup-test-type "def one\n")
    (gemini-companion-lookup-test-known "home.txt")
    (gemini-companion-lookup-test-edits "a.txt" '("uses one\n" "1\nuses one\n"))
    ;; As if another program had changed what a.txt includes.
    (jsonrpc-notify (eglot-current-server) :test/forget
                    `(:uri ,(concat "file://" (expand-file-name "home.txt"))))
    (gemini-companion-lookup-test-edits "a.txt" '("1\nuses one\n" "2\nuses one\n"))
    (set-buffer-modified-p nil)))

(ert-deftest gemini-companion-lookup-forgets-what-another-text-changes ()
  (gemini-companion-lookup-test-with '("versions") nil
    (gemini-companion-lookup-test-edits
     "a.txt" '("fine\n" "uses x\n" "1: error: x is unknown [test]")
     '("uses x\n" "fine\n"))
    (pcase-dolist (`(,typed . ,edit)
                   ;; The text after the edit is known with an error.
                   '(("def x\n" "fine\n" "uses x\n")
                     ;; The text before the edit is known without one.
                     ("fine\n" "uses x\n" "\nuses x\n")))
      (gemini-companion-lookup-test-type typed)
      (gemini-companion-lookup-test-known "home.txt")
      (gemini-companion-lookup-test-edits "a.txt" edit))
    (set-buffer-modified-p nil)))

;;;; Other files

(ert-deftest gemini-companion-lookup-names-callers-checked-when-one-saves ()
  (gemini-companion-lookup-test-with '("versions" "saved")
      '(("a.txt" "uses one\n") ("one.txt" "/* def one */\nint one(int x)\n"))
    (gemini-companion-lookup-test-visit "one.txt" "a.txt")
    (gemini-companion-lookup-test-edits
     "one.txt" '("/* def one */\nint one(int x)\n" "/* def two */\nint two(int x)\n"
                 "a.txt 1:1: error: one is unknown [test]"))))

(ert-deftest gemini-companion-lookup-names-the-callers-that-break ()
  (gemini-companion-lookup-test-with '("versions")
      '(("one.txt" "def one\n") ("a.txt" "uses other\nuses one\nuses one\n")
        ("b.txt" "def two\n") ("secret.txt" "uses one\n"))
    (let* ((gemini-companion-excluded '("/secret\\.txt\\'"))
           (files '("one.txt" "a.txt" "b.txt" "secret.txt"))
           (edit (lambda (file &rest edit)
                   (apply #'gemini-companion-lookup-test-known files)
                   (gemini-companion-lookup-test-edits file edit))))
      (mapc #'gemini-companion-test-visit files)
      ;; It is open, and names the definition.
      (funcall edit "one.txt" "def one\n" "def three\n"
               "a.txt 2:2: error: one is unknown [test]")
      (funcall edit "b.txt" "def two\n" "uses three\n")
      (funcall edit "one.txt" "def three\n" "def four\nerror x\n"
               "2: error: x is wrong [test]"
               "b.txt 1:1: error: three is unknown [test]")
      ;; The server reports before the hook of the CLI does.
      (funcall edit "one.txt" "def four\nerror x\n" "def one\n")
      (apply #'gemini-companion-lookup-test-known files)
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
                                 'edited "one.txt" "def one\n" "def five\n")
                                :others)))
      ;; No news of the file itself, after a harmless edit.
      (funcall edit "a.txt" "uses other\nuses one\nuses one\n"
               "\nuses other\nuses one\nuses one\n"))))

;;;; Files that are visited

(ert-deftest gemini-companion-lookup-knows-the-errors-of-a-visited-file ()
  (gemini-companion-lookup-test-with '("versions") '(("a.txt" "error old\n"))
    (gemini-companion-lookup-test-visit "a.txt")
    (make-symbolic-link "." "link")
    (setq-local directory-abbrev-alist
                `((,(regexp-quote directory) . ,(expand-file-name "link/"))))
    (setq buffer-file-truename (abbreviate-file-name buffer-file-name))
    (gemini-companion-lookup-test-edits
     "a.txt" '("error old\n" "\nerror old\nerror x\n" "3: error: x is wrong [test]"))
    ;; A revert by the user closes it; then there is no version.
    (let ((inhibit-message t))
      (revert-buffer t t t))
    (gemini-companion-lookup-test-known "a.txt")
    (gemini-companion-lookup-test-edits
     "a.txt" '("\nerror old\nerror x\n" "error old\n"))
    (narrow-to-region 3 4)
    (gemini-companion-lookup-test-edits
     "a.txt"
     '("error old\r\n" "error old\r\nerror y\r\n" "2: error: y is wrong [test]")
     ;; Of a text of which nothing is known, those in new lines are.
     '("error old\n" "error old\nerror z\n" "2: error: z is wrong [test]"))
    ;; The user types.
    (let ((answers (gemini-companion-lookup-test-begin
                    "a.txt" "error z\n" "error z\nerror 9\n")))
      (insert "typed")
      (should-not (gemini-companion-lookup-test-reported answers)))
    (should-not (gemini-companion-lookup-test-edit
                 "a.txt" "error z\nerror 9\n" "error z\nerror 9\nerror 10\n"))))

(ert-deftest gemini-companion-lookup-knows-both-of-two-quick-edits ()
  (gemini-companion-lookup-test-with '("versions")
      '(("a.txt" "fine\n") ("b.txt" "fine\n"))
    (gemini-companion-lookup-test-visit "a.txt" "b.txt")
    (let ((first (gemini-companion-lookup-test-begin
                  "a.txt" "fine\n" "fine\nerror x\n")))
      (gemini-companion-lookup-test-edits
       "b.txt" '("fine\n" "fine\nerror y\n" "2: error: y is wrong [test]"))
      (should (equal '("2: error: x is wrong [test]")
                     (gemini-companion-lookup-test-reported first))))
    ;; The errors of the text between are never known.
    (gemini-companion-lookup-test-begin
     "a.txt" "fine\nerror x\n" "fine\nerror y\n")
    (gemini-companion-lookup-test-edits
     "a.txt" '("fine\nerror y\n" "fine\nerror y\nerror z\n"
               "3: error: z is wrong [test]"))))

(ert-deftest gemini-companion-lookup-believes-no-report-of-the-text-before ()
  (gemini-companion-lookup-test-with '("versions")
      '(("a.txt" "error x\n") ("b.txt" "fine\n"))
    (gemini-companion-lookup-test-visit "b.txt" "a.txt")
    (insert "\n")
    (eglot--signal-textDocument/didChange)
    (gemini-companion-lookup-test-known "a.txt")
    (erase-buffer)
    ;; The server reports about a.txt again, whose change it does not know.
    (dotimes (_ 2)
      (with-current-buffer "b.txt"
        (insert "fine\n")
        (eglot--signal-textDocument/didChange))
      (gemini-companion-lookup-test-known "b.txt"))
    (should (gemini-companion-lookup-test-problem-p "ask again" "a.txt"))
    (eglot--signal-textDocument/didChange)
    (should (equal '(:rows nil) (gemini-companion-lookup-test-ask "a.txt")))
    (set-buffer-modified-p nil)
    (with-current-buffer "b.txt" (set-buffer-modified-p nil))))

(defmacro gemini-companion-lookup-test-with-flymake (text &rest body)
  "Run BODY in a buffer that visits a.txt with TEXT, which Flymake has checked."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-in-project nil (list (list "a.txt" ,text))
     (set-buffer (find-file-noselect "a.txt"))
     (add-hook 'flymake-diagnostic-functions
               #'gemini-companion-lookup-test-flymake nil t)
     (flymake-mode)
     (flymake-start)
     (gemini-companion-lookup-test-known "a.txt")
     ,@body))

(ert-deftest gemini-companion-lookup-asks-other-backends-of-flymake ()
  (gemini-companion-lookup-test-with-flymake "error old\n"
    (gemini-companion-lookup-test-edits
     "a.txt" '("error old\n" "\nerror old\nerror x\n" "3: error: x")
     '("\nerror old\nerror x\n" "error old\nwarning y\n"))
    ;; In a narrowed buffer, backends find wrong lines.
    (narrow-to-region 11 (point-max))
    (gemini-companion-lookup-test-edits
     "a.txt" '("error old\nwarning y\n" "error old\nerror y\n"))))

(ert-deftest gemini-companion-lookup-of-a-large-text-block-no-key ()
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
    (gemini-companion-lookup-test-with-flymake old
      (advice-add 'timer-event-handler :around measure)
      (unwind-protect
          (dotimes (_ 3)
            (garbage-collect)
            (let ((gc-cons-threshold most-positive-fixnum))
              (setq longest 0)
              (should (gemini-companion-lookup-test-edit "a.txt" old new))
              (push longest times)
              (gemini-companion-lookup-test-edit "a.txt" new old)))
        (advice-remove 'timer-event-handler measure)))
    ;; A limit for a busy machine; compiled, the longest piece takes 8 ms.
    (ert-info ((format "%S" times))
      (should (< (apply #'min times) 0.1)))))

;;; gemini-companion-lookup-test.el ends here
