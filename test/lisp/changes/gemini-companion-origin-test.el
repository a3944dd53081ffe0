;;; gemini-companion-origin-test.el --- Tests of where a line comes from  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-history)
(require 'gemini-companion-origin)

(defun gemini-companion-origin-test-phrase (line)
  "Return the phrase about LINE of the current buffer."
  (gemini-companion-origin-phrase (car (gemini-companion-changes-whose (1- line)))))

(ert-deftest gemini-companion-origin-is-one-for-the-equal-lines-of-an-edit ()
  (let* ((edit (gemini-companion-edit-make
                :file "/a" :session (gemini-companion-session-make :client "qwen")
                :since 0 :command "make"))
         (hunks (cdr (gemini-companion-record-write
                      ["1\n" "2\n" "3\n"] edit ["1\n" "2\n" "3\n"]
                      ["one\n" "2\n" "three\n"])))
         (origin (gemini-companion-origin-function)))
    (gemini-companion-record-set-kept (cdr hunks) t)
    (pcase-let ((`(,left ,kept) hunks))
      (should (eq (funcall origin left t "a\n") (funcall origin left t "b\n")))
      (should-not (eq (funcall origin left t "a\n") (funcall origin kept t "a\n")))
      (should (string-match-p "\\`Qwen Code, .*, by `make', kept, prompt unknown\\'"
                              (gemini-companion-origin-phrase
                               (funcall origin kept t "a\n"))))
      (should (string-match-p "not reviewed, changed since by you or another program"
                              (gemini-companion-origin-phrase
                               (funcall origin left 'others "a\n")))))))

(ert-deftest gemini-companion-origin-of-a-file-with-changes-left-survives-a-restart ()
  (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines))
    (cl-flet ((writes (prompt text function)
                (gemini-companion-turn-begin session prompt t)
                (funcall function "a" text session)))
      (writes "First" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" #'gemini-companion-test-accepts)
      (let ((gemini-companion-edit-most 1))
        (gemini-companion-test-accepts "b" "1\n" session))
      (writes "Left" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" #'gemini-companion-test-writes)
      (let* ((name (file-truename "a"))
             (data (gemini-companion-history-data (gemini-companion-changes-of-file name)))
             (printed (prin1-to-string data)))
        (gemini-companion-part-stop 'changes)
        (gemini-companion-test-forget-edits)
        (gemini-companion-history-forget-turns)
        (gemini-companion-part-start 'changes)
        (find-file "a")
        (should-not (gemini-companion-changes-whose 0))
        (gemini-companion-history-restore name (car (read-from-string printed)))))
    (should (string-match-p "accepted, prompt: First" (gemini-companion-origin-test-phrase 1)))
    (should (string-match-p "not reviewed, prompt: Left"
                            (gemini-companion-origin-test-phrase 9)))
    (should (equal '(nil . base) (gemini-companion-changes-whose 1)))))

(provide 'gemini-companion-origin-test)
;;; gemini-companion-origin-test.el ends here
