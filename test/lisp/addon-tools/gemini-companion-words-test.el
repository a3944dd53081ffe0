;;; gemini-companion-words-test.el --- Tests of files that contain a word  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-test-helper)
(require 'gemini-companion-words)

(defun gemini-companion-words-test-found (word)
  "Return the names of the files with WORD below `default-directory'.
The value is sorted, or `unknown'."
  (let ((found nil))
    (gemini-companion-words-search word default-directory
                                   (lambda (files) (setq found (list files))))
    (gemini-companion-test-wait (lambda () found))
    (if (listp (car found))
        (sort (mapcar #'file-relative-name (car found)) #'string<)
      (car found))))

(ert-deftest gemini-companion-words-are-found-with-git-and-without-a-repository ()
  (skip-unless (executable-find "git"))
  (gemini-companion-test-with-directory
      '(("a.py" "one = 1\n") ("b.py" "one_more, someone = 1\n")
        ("sub/\N{LATIN SMALL LETTER A WITH DIAERESIS} b.py" "f(-one)\n")
        ("out.py" "one\n") ("c.bin" "one\0\n") (".gitignore" "out.py\n")
        ("d.py" "na\N{LATIN SMALL LETTER I WITH DIAERESIS}ve --x\n"))
    (let ((gemini-companion-words-seconds 3600))
      (dolist (git '(nil t))
        (when git
          (should (eql 0 (call-process "git" nil nil nil "init"))))
        (ert-info ((format "repository: %s" git))
          (should (equal (list "a.py" "sub/\N{LATIN SMALL LETTER A WITH DIAERESIS} b.py")
                         (gemini-companion-words-test-found "one")))
          (should (equal '("d.py")
                         (gemini-companion-words-test-found
                          "na\N{LATIN SMALL LETTER I WITH DIAERESIS}ve")))
          (should (equal '("d.py") (gemini-companion-words-test-found "--x")))
          (should (equal nil (gemini-companion-words-test-found "on.")))))
      (should (eq 'unknown (gemini-companion-words-test-found "one\ntwo")))
      (let ((exec-path nil))
        (should (eq 'unknown (gemini-companion-words-test-found "one")))))))

(ert-deftest gemini-companion-words-are-found-in-a-directory-with-the-name-of-home ()
  (skip-unless (executable-find "git"))
  (gemini-companion-test-with-directory '(("~/a.py" "one = 1\n"))
    (let ((gemini-companion-words-seconds 3600))
      (should (equal '("~/a.py") (gemini-companion-words-test-found "one"))))))

(ert-deftest gemini-companion-words-are-found-in-unsaved-buffers ()
  (skip-unless (executable-find "git"))
  (gemini-companion-test-with-directory '(("a.py" "one = 1\n") ("b.py" "two = 1\n")
                                          ("c.py" "two = 1\n"))
    (let ((gemini-companion-words-seconds 3600))
      (make-symbolic-link "b.py" "link")
      (dolist (file '("a.py" "link" "c.py"))
        (with-current-buffer (find-file-noselect file)
          (goto-char (point-max))
          (insert (if (equal file "c.py") "someone\n" "one\n"))))
      (unwind-protect
          (should (equal '("a.py" "b.py")
                         (gemini-companion-words-test-found "one")))
        (dolist (file '("a.py" "link" "c.py"))
          (with-current-buffer (get-file-buffer file)
            (set-buffer-modified-p nil)
            (kill-buffer)))))))

(ert-deftest gemini-companion-words-of-a-search-that-fails-or-is-slow-are-unknown ()
  (gemini-companion-test-with-directory '(("bin/git" "#!/bin/sh\nexec cat\n")
                                          ("bin/bad/git" "#!/bin/sh\necho oh\n"))
    (dolist (program '("bin/git" "bin/bad/git"))
      (set-file-modes program #o700)
      (let ((exec-path (list (expand-file-name (file-name-directory program))))
            (gemini-companion-words-seconds 0.1))
        (should (eq 'unknown (gemini-companion-words-test-found "one")))))
    (should-not (seq-find (lambda (buffer)
                            (string-prefix-p " *gemini-companion-words"
                                             (buffer-name buffer)))
                          (buffer-list)))))

;;; gemini-companion-words-test.el ends here
