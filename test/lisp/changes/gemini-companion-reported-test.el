;;; gemini-companion-reported-test.el --- Tests of reported writes  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-edit-test-helper)
(require 'gemini-companion-reported)
(require 'gemini-companion-review-test-helper)

(ert-deftest gemini-companion-reported-records-what-was-written-without-review ()
  (gemini-companion-test-with-edits nil
    (let ((file (expand-file-name "a")))
      (gemini-companion-reported-write session file "é\n" "new\n")
      (gemini-companion-reported-write session file nil "newer\n")
      ;; A CLI takes any file for UTF-8.
      (gemini-companion-reported-write session file "caf\uFFFD\n" "last\n")
      (should (equal '(("a" unreviewed "\303\251\n" "new\n")
                       ("a" unreviewed none "newer\n")
                       ("a" unreviewed unknown "last\n"))
                     (gemini-companion-edits-test-reported))))))

(ert-deftest gemini-companion-reported-records-a-write-of-a-file-that-is-gone ()
  "The text before the first edit was too large to be kept."
  (gemini-companion-test-with-edits
      `(("a" ,(make-string (* 6 1024 1024) ?x)))
    (gemini-companion-edit-reject (gemini-companion-test-open "a" "1\n" 1 session))
    (delete-file "a")
    (gemini-companion-reported-write session (expand-file-name "a") "A\n" "1\n")
    (should (equal '(rejected unreviewed) (gemini-companion-edits-test-states)))))

(ert-deftest gemini-companion-reported-records-a-reviewed-edit-once ()
  (gemini-companion-test-with-edits '(("a" "A\r\n") ("b" "B\n") ("c" "C\n"))
    (gemini-companion-test-accept "a" "1\n" 1 session)
    (gemini-companion-edit-reject (gemini-companion-test-open "b" "2\n" 2 session))
    (gemini-companion-test-open "c" "C" 3 session)
    (gemini-companion-server-receive 'close-diff 3 'closed)
    (gemini-companion-test-accept "d" "4\n" 4 session)
    (make-symbolic-link "." "link")
    (pcase-dolist (`(,file ,before ,after . ,states)
                   '(("a" "A\r\n" "1\r\n" accepted rejected dismissed accepted)
                     ("c" "C\n" "C" accepted rejected accepted accepted)
                     ("link/d" nil "4\n" accepted rejected accepted accepted)
                     ;; It writes again, and what was rejected, of two texts.
                     ("a" "x\n" "1\r\n" accepted rejected accepted accepted
                      unreviewed)
                     ("b" "x\n" "2\n" accepted rejected accepted accepted
                      unreviewed unreviewed)
                     ("link/b" "B\n" "2\n" accepted unreviewed accepted accepted
                      unreviewed unreviewed)))
      (gemini-companion-reported-write session (expand-file-name file) before after)
      (ert-info (file)
        (should (equal states (gemini-companion-edits-test-states)))))))

;;; gemini-companion-reported-test.el ends here
