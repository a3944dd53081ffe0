;;; gemini-companion-lookup-test.el --- Tests of answers about symbols  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Answers about real files, from the Lisp of this Emacs and, where Eglot is
;; installed, from a language server.

;;; Code:

(require 'gemini-companion-lookup)
(require 'gemini-companion-project-test-helper)
(declare-function eglot-current-server "eglot")
(declare-function eglot-shutdown-all "eglot")

(defvar flymake-list-only-diagnostics)

(defun gemini-companion-lookup-test-references (file symbol)
  "Return the lines of the references to SYMBOL in FILE, or the problem."
  (let ((answer (gemini-companion-test-answer-of
                 #'gemini-companion-lookup-references
                 (expand-file-name file) symbol nil nil)))
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
               #'gemini-companion-lookup-definition (expand-file-name "a.el")
               "gemini-companion-lookup-test-f" nil))))))

(ert-deftest gemini-companion-lookup-answers-nothing-about-hidden-files ()
  (gemini-companion-test-in-project nil
      '((".env" "KEY=1\n") ("a.txt" "KEY\n") (".geminiignore" "ignored.txt\n")
        ("ignored.txt" "KEY\n"))
    (let ((gemini-companion-excluded (cons 'nroff-mode
                                           gemini-companion-excluded)))
      (write-region "KEY\n" nil "a.man" nil 'silent)
      (make-symbolic-link ".env" "innocent.txt")
      (gemini-companion-test-with-far-host
        (dolist (file (append '("/etc/passwd" "/far:/a.py")
                              (mapcar #'expand-file-name
                                      '(".env" "ignored.txt" "a.man"
                                        "innocent.txt"))))
          (dolist (answer
                   (list (gemini-companion-test-answer-of
                          #'gemini-companion-lookup-references
                          file "KEY" nil nil)
                         (gemini-companion-test-answer-of
                          #'gemini-companion-lookup-definition file "KEY" nil)
                         (gemini-companion-test-answer-of
                          #'gemini-companion-diagnostics-answer file)))
            (should (equal (list :problem
                                 (format "%s is not shared by Emacs" file))
                           answer)))))
      (let ((gemini-companion-share-outside-projects t))
        (should (string-prefix-p "No language server"
                                 (plist-get (gemini-companion-test-answer-of
                                             #'gemini-companion-lookup-references
                                             "/etc/passwd" "root" nil nil)
                                            :problem)))))))

;;;; Language server

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
          (plist-get answer :locations)))

(ert-deftest gemini-companion-lookup-answers-as-a-real-server-wherever-point-is ()
  (cl-letf (((symbol-function 'file-notify-add-watch) #'ignore))
    (gemini-companion-test-in-project (list (gemini-companion-test-program "pylsp"))
        gemini-companion-lookup-test-project
      (let ((expected '(("a.py" . 1) ("a.py" . 7) ("b.py" . 1) ("b.py" . 3)))
            (references (lambda (file &optional line after)
                          (gemini-companion-test-answer-of
                           #'gemini-companion-lookup-references
                           (expand-file-name file) "helper" line after)))
            (definition (lambda (file symbol)
                          (gemini-companion-test-answer-of
                           #'gemini-companion-lookup-definition
                           (expand-file-name file) symbol nil))))
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
        (string-match "a\\(b\\)" "xab")
        (funcall references "a.py")
        (should (equal '(1 3 2 3) (match-data)))
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

(ert-deftest gemini-companion-lookup-asks-no-server-of-another-host ()
  (gemini-companion-test-in-project (gemini-companion-test-server)
      '(("a.py" "") ("b.py" ""))
    (let ((file (expand-file-name "b.py")))
      (should (eq (current-buffer) (gemini-companion-lookup-neighbor file)))
      (let ((buffer-file-name (concat "/far:" buffer-file-name)))
        (gemini-companion-test-with-far-host
          (should-not (gemini-companion-lookup-neighbor file)))))))

(ert-deftest gemini-companion-lookup-asks-a-server-of-c-about-headers ()
  (gemini-companion-test-in-project (gemini-companion-test-server) '(("a.py" ""))
    (let ((buffer-file-name (expand-file-name "a.c")))
      (pcase-dolist (`(,name . ,asked) '(("lib.h" . t) ("b.cpp" . t) ("b.py")))
        (should (eq asked (bufferp (gemini-companion-lookup-neighbor
                                    (expand-file-name name)))))))))

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

(ert-deftest gemini-companion-lookup-sends-no-text-that-is-not-read ()
  (gemini-companion-test-in-project (gemini-companion-test-server "open")
      `(("a.py" "") ("b.py" ,(concat (make-string 100000 ?\n) "word\n")))
    (gemini-companion-test-visit "a.py")
    (let* ((server (gemini-companion-test-eventually (eglot-current-server)))
           (process (jsonrpc--process server))
           ;; Otherwise a text that is sent would block the test for good.
           (timer (run-at-time 30 nil #'signal-process process 'SIGUSR1))
           found)
      (jsonrpc-notify server :test/pause '(:until "SIGUSR1"))
      (gemini-companion-lookup-references
       (expand-file-name "b.py") "word" nil nil
       (lambda (answer) (setq found answer)))
      (should (memq timer timer-list))
      (cancel-timer timer)
      (signal-process process 'SIGUSR1)
      (should (equal 1 (plist-get (gemini-companion-test-eventually found)
                                  :total))))))

;;; gemini-companion-lookup-test.el ends here
