;;; gemini-companion-lines-test.el --- Tests of texts compared by lines  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-lines)

(ert-deftest gemini-companion-lines-are-split-and-joined ()
  (dolist (text '("" "\n" "a" "a\n" "a\nb" "\n\na\n\n" "é\r\n"))
    (should (equal (string-replace "\r" "" text)
                   (gemini-companion-lines-join
                    (gemini-companion-lines-split text)))))
  (should (equal ["a\n" "b"] (gemini-companion-lines-split "\uFEFFa\r\nb")))
  (should (equal "a\r\nb" (gemini-companion-lines-join ["a\n" "b"] "\r\n")))
  ;; A line without a newline has got one behind it.
  (should (equal "a\nb\n" (gemini-companion-lines-join ["a" "b\n"]))))

(ert-deftest gemini-companion-lines-text-has-the-mixed-line-ends-of-the-file ()
  (pcase-dolist (`(,text . ,written)
                 '(("a\nB\nc\nd\n" . "a\r\nB\nc\r\nd\n")
                   ("a\nx\nb\nc\nd\n" . "a\r\nx\r\nb\nc\r\nd\n")
                   ("c\nd\n" . "c\r\nd\n")
                   ("a\nb\nc\nd\n" . "a\r\nb\nc\r\nd\n")))
    (should (equal written (gemini-companion-lines-fit
                            text "a\r\nb\nc\r\nd\n")))
    (should (equal (concat "\uFEFF" written)
                   (gemini-companion-lines-fit
                    text "\uFEFFa\r\nb\nc\r\nd\n"))))
  (should (equal "x\r\n" (gemini-companion-lines-fit "x\n" "a\r\n"))))

;;; gemini-companion-lines-test.el ends here
