;;; gemini-companion-lookup-test.el --- Tests of what Emacs knows of code  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'flycheck nil t)
(require 'gemini-companion-errors-test-helper)
(require 'gemini-companion-lookup)
(require 'gemini-companion-roots)

(defvar flymake-list-only-diagnostics)

;;;; Files

(defun gemini-companion-lookup-test-references (file symbol)
  "Return the lines of the references to SYMBOL in FILE, or the problem."
  (let ((answer (gemini-companion-test-answer-of
                 'references file symbol nil nil)))
    (or (plist-get answer :problem)
        (mapcar #'cadr (plist-get answer :locations)))))

(ert-deftest gemini-companion-lookup-defines-a-symbol-of-lisp ()
  (gemini-companion-test-in-project nil
      '(("a.el" "(defun gemini-companion-lookup-test-f ()\n  \"Do it.\" 1)\n"))
    (load (expand-file-name "a.el") nil t)
    (should (string-match-p
             "/a.el\" 1)).*Do it[^:]*:source \"(defun"
             (prin1-to-string
              (gemini-companion-test-answer-of
               'definition "a.el" "gemini-companion-lookup-test-f" nil))))
    (should (string-search "No line 3"
                           (plist-get
                            (gemini-companion-test-answer-of
                             'definition "a.el" "gemini-companion-lookup-test-f" 3)
                            :problem)))))

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
        (should (equal (format "No line 4 in %s, which has 3"
                               (expand-file-name "b.py"))
                       (plist-get (funcall references "b.py" 4) :problem)))
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

;; jedi stops at 30 files, and clangd answers while it builds its index.
(ert-deftest gemini-companion-lookup-names-files-of-which-a-server-says-nothing ()
  (skip-unless (executable-find "git"))
  (gemini-companion-test-in-project (gemini-companion-test-server "busy")
      '(("a.py" "word\nword\n") ("z.py" "word\n") ("b.py" "x = word\n")
        ("c.py" "words\n") (".env.py" "word\n") ("read.me" "word\n"))
    (let ((gemini-companion-words-seconds 3600)
          (ask (lambda (&optional after)
                 (gemini-companion-test-answer-of
                  'references "a.py" "word" nil after)))
          (elsewhere (mapcar #'expand-file-name '("b.py" "z.py"))))
      (gemini-companion-test-eventually (plist-get (funcall ask) :busy))
      (let ((answer (funcall ask)))
        (should (= 2 (plist-get answer :total)))
        (should (equal elsewhere (plist-get answer :elsewhere))))
      ;; It has been said with the first lines.
      (should (equal '(:total 2 :locations nil) (funcall ask 2)))
      (let ((exec-path nil))
        (should (eq 'unknown (plist-get (funcall ask) :elsewhere)))))))

;; Eglot offers all three from Emacs 30 on.
(ert-deftest gemini-companion-lookup-counts-columns-as-the-server-does ()
  (dolist (flags '(() ("utf-8") ("utf-32")))
    (gemini-companion-test-in-project
        (apply #'gemini-companion-test-server flags)
        '(("a.py" "\"\N{GRINNING FACE}\u00e4\u20ac\", word, other\n"))
      (dolist (word '("word" "other"))
        (ert-info ((format "%s %s" flags word))
          (should (equal '(1) (gemini-companion-lookup-test-references
                               "a.py" word))))))))

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

;;;; Questions

(ert-deftest gemini-companion-lookup-of-flymake-are-of-the-present-text ()
  (gemini-companion-test-in-project nil '(("a.txt" "warning odd\nerror bad\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (let ((flymake-list-only-diagnostics nil))
        (should (equal '(:rows nil) (gemini-companion-errors-test-ask))))
      ;; A server reports that there are none when a file is closed.
      (let ((flymake-list-only-diagnostics (list (list buffer-file-name))))
        (should (gemini-companion-errors-test-problem-p "does not check" "a.txt")))
      (add-hook 'flymake-diagnostic-functions
                #'gemini-companion-errors-test-flymake nil t)
      (flymake-mode)
      (flymake-start)
      (should (equal '((1 "warning" "odd") (2 "error" "bad"))
                     (seq-sort-by #'car #'<
                                  (plist-get (gemini-companion-errors-test-ask
                                              "a.txt")
                                             :rows))))
      (should (equal `(:rows ((,buffer-file-name 1 1)))
                     (gemini-companion-errors-test-ask)))
      ;; One that does not report.
      (add-hook 'flymake-diagnostic-functions #'ignore nil t)
      (flymake-start)
      (should (gemini-companion-errors-test-problem-p "ask again" "a.txt"))
      (run-at-time 0.1 nil (lambda () (setq gemini-companion-context-paused t)))
      (should (gemini-companion-errors-test-problem-p "not shared" "a.txt"))
      (setq gemini-companion-context-paused nil)
      ;; As that of Eglot, when its language server ends.
      (setq-local flymake-diagnostic-functions nil)
      (flymake-start)
      (should (gemini-companion-errors-test-problem-p "does not check" "a.txt")))))

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
                       (gemini-companion-errors-test-ask "a.txt")))
        (gemini-companion-errors-test-edits
         "a.txt" '("one\ntwo\nthree\n" "fore\ntwo\nthree\n" "1: error: fore")
         '("fore\ntwo\nthree\n" "fore\ntwo\nthree\nfour\n"))
        ;; Flycheck does not check it by itself, as it is in no window.
        (insert "now ")
        (should (equal (funcall rows "now fore")
                       (gemini-companion-errors-test-ask "a.txt")))
        (setq flycheck-checkers nil)
        (insert "then ")
        (should (gemini-companion-errors-test-problem-p "does not check" "a.txt"))
        (set-buffer-modified-p nil)))))

(ert-deftest gemini-companion-lookup-of-eglot-are-of-the-present-text ()
  (gemini-companion-test-in-project (gemini-companion-test-server "versions")
      '(("a.py" "error x\n"))
    (let ((ask (lambda ()
                 ;; Eglot then reports the errors that it knows.
                 (flymake-start)
                 (plist-get (gemini-companion-errors-test-ask "a.py") :rows)))
          (rows (lambda (word)
                  (list (list 1 "error" (format "test: %s is wrong" word))))))
      ;; The first report names no version, so the next one is not awaited.
      (gemini-companion-test-eventually (equal (funcall rows "x") (funcall ask)))
      (dolist (word '("y" "z"))
        (gemini-companion-errors-test-type (format "error %s\n" word))
        (gemini-companion-test-eventually
          (equal (funcall rows word) (funcall ask))))
      (gemini-companion-errors-test-type "error v\n")
      (should (equal (funcall rows "v") (funcall ask))))))

(ert-deftest gemini-companion-lookup-answers-only-about-files-that-may-leave-emacs ()
  (gemini-companion-test-with-directory
      '(("p/a.el" "(a)\n") ("p/.env" "A=1\n") ("out.el" "(b)\n"))
    (make-symbolic-link "../out.el" "p/link.el")
    (let ((gemini-companion-roots-last (list (concat directory "p")))
          (files (mapcar (apply-partially #'concat directory)
                         '("p/a.el" "p/.env" "out.el" "p/link.el")))
          (shared 'none))
      (should (equal (seq-take files 1)
                     (seq-filter (lambda (file)
                                   (ignore-error user-error
                                     (gemini-companion-lookup-true-name file)))
                                 files)))
      (gemini-companion-lookup-shared (mapcar (lambda (file) (list file 1)) files)
                                      (lambda (value) (setq shared value)))
      (gemini-companion-test-eventually (not (eq 'none shared)))
      (should (equal (list (list (car files) 1)) shared))
      (let ((gemini-companion-context-paused t))
        (should-error (gemini-companion-lookup-true-name (car files))
                      :type 'user-error)))))

;;; gemini-companion-lookup-test.el ends here
