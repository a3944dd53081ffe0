;;; gemini-companion-edit-hunks-test.el --- Tests of the hunks of edits  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-test-helper)

(ert-deftest gemini-companion-edit-hunks-shows-each-character-that-is-lost ()
  (gemini-companion-edit-test-with-bytes "gemini" "caf\351\n2\nd\351j\340\n4\n"
    (let ((edit (funcall propose "caf\uFFFD\ntwo\nd\uFFFDj\uFFFD\n4\n"))
          asked)
      (should (equal (list (gemini-companion-hunk-make
                            0 3 0 3 '("café\n" "2\n" "déjà\n")))
                     (gemini-companion-edit-hunks edit)))
      (should (equal "café\n2\ndéjà\n4\n"
                     (gemini-companion-test-text
                      (gemini-companion-edit-texts-original edit))))
      (should (= 3 (gemini-companion-edit-lost edit)))
      (cl-letf (((symbol-function 'yes-or-no-p)
                 (lambda (question) (ignore (push question asked)))))
        (gemini-companion-edit-accept edit))
      (should (gemini-companion-edit-open-p edit))
      (should (string-search "a is not UTF-8: Gemini CLI will replace 3 characters; accept"
                             (car asked)))
      (cl-letf (((symbol-function 'yes-or-no-p) #'always))
        (gemini-companion-edit-accept edit))
      (should (eq 'accepted (gemini-companion-edit-answer edit)))
      (should (= 1 (length asked))))))

(ert-deftest gemini-companion-edit-hunks-does-not-ask-if-nothing-is-lost ()
  (pcase-dolist (`(,bytes ,proposal)
                 '(("caf\351\n2\n" "café\ntwo\n")
                   ("caf\303\251\n2\n" "caf\uFFFD\ntwo\n")))
    (gemini-companion-edit-test-with-bytes "gemini" bytes
      (cl-letf (((symbol-function 'yes-or-no-p) (lambda (_) (error "Asked"))))
        (gemini-companion-edit-accept (funcall propose proposal))))))

(ert-deftest gemini-companion-edit-hunks-are-answered-as-a-whole-if-not-utf-8 ()
  (pcase-dolist (`(,bytes ,proposal)
                 '(("\351\n2\n3\n4\n" "\uFFFD\n2\n3\nfour\n")
                   ("\0\n2\n3\n4\n" "\0\n2\n3\nfour\n")
                   ("\303\251 \351\n2\n3\n4\n" "é \uFFFD\n2\n3\nfour\n")))
    (gemini-companion-edit-test-with-bytes "gemini" bytes
      (let* ((edit (funcall propose proposal))
             (hunks (gemini-companion-edit-hunks edit)))
        (should (= (cl-count ?\uFFFD proposal) (gemini-companion-edit-lost edit)))
        (should (equal "a is not text in UTF-8; accept or reject the whole proposal"
                       (gemini-companion-test-refusal
                         (gemini-companion-edit-hunks-toggle edit (car hunks)))))))))

;; Qwen Code writes a question mark.
(ert-deftest gemini-companion-edit-hunks-coding-that-lacks-a-character-is-reported ()
  (gemini-companion-edit-test-with-bytes "qwen" "caf\351 cr\350me\n2\n"
    (let ((edit (funcall propose "café crème\n→ 2\n")))
      (gemini-companion-edit-hunks edit)
      (should (= 1 (gemini-companion-edit-lost edit)))
      (cl-letf (((symbol-function 'yes-or-no-p) #'ignore))
        (gemini-companion-edit-accept edit))
      (should (gemini-companion-edit-open-p edit)))))

(ert-deftest gemini-companion-edit-hunks-count-what-is-not-excluded ()
  (gemini-companion-edit-test-with '(("a" "1\n2\n3\n4\n"))
    (let* ((edit (gemini-companion-test-open "a" "one\n2\n3\n4\n5\n"))
           (hunks (gemini-companion-edit-hunks edit)))
      (should (= 2 (length hunks)))
      (should (string-match-p "\\`\\+2 .1\\'"
                              (gemini-companion-edit-hunks-lines (list edit))))
      (should (gemini-companion-edit-hunks-toggle edit (car hunks)))
      (should (string-match-p "\\`\\+1 .0\\'"
                              (gemini-companion-edit-hunks-lines (list edit))))
      (should (string-match-p ": 1 of 2 hunks"
                              (gemini-companion-edit-hunks-summary edit)))
      ;; Nothing is left without the other one.
      (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
        (should-error (gemini-companion-edit-hunks-toggle edit (cadr hunks))
                      :type 'user-error))
      (should-not (gemini-companion-edit-hunks-toggle edit (car hunks))))))

(ert-deftest gemini-companion-edit-hunks-are-proposed-without-the-selected-lines ()
  (gemini-companion-edit-test-with '(("a" "1\n2\n3\n4\n5"))
    (let ((edit (gemini-companion-test-open "a" "one\n2\n3\nfour\nfive\nsix\n")))
      (cl-flet ((without (news)
                  (gemini-companion-edit-hunks-text-without
                   edit (lambda (index) (memq index news)) #'ignore)))
        (should (equal "1\n2\n3\nfour\nfive\nsix\n" (without '(0))))
        ;; The last line of the file has no newline.
        (should (equal "one\n2\n3\n4\n5\nfive\nsix\n" (without '(3))))
        (should (equal "one\n2\n3\nfour\n" (without '(4 5))))
        (should (equal "one\n2\n3\n4\n5" (without '(3 4 5))))
        (should (string-search "No line to exclude"
                               (gemini-companion-test-refusal (without '(1 2)))))
        (should (string-search "Nothing else is proposed"
                               (gemini-companion-test-refusal (without '(0 3 4 5)))))
        ;; What is excluded stays.
        (gemini-companion-edit-hunks-toggle edit (car (gemini-companion-edit-hunks edit)))
        (should (string-search "No line to exclude"
                               (gemini-companion-test-refusal (without '(0)))))
        (should (string-search "Nothing else is proposed"
                               (gemini-companion-test-refusal (without '(3 4 5)))))
        (should (equal "one\n2\n3\nfour\nfive\n" (without '(0 5))))))))

;;; gemini-companion-edit-hunks-test.el ends here
