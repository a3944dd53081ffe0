;;; gemini-companion-lines-test.el --- Tests of texts compared by lines  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-lines)

(ert-deftest gemini-companion-lines-are-split-and-joined ()
  :tags '(pure)
  (dolist (text '("" "\n" "a" "a\n" "a\nb" "\n\na\n\n" "é\r\n"))
    (should (equal (string-replace "\r" "" text)
                   (gemini-companion-lines-join
                    (gemini-companion-lines-split text)))))
  (should (equal ["a\n" "b"] (gemini-companion-lines-split "\uFEFFa\r\nb")))
  (should (equal "a\r\nb" (gemini-companion-lines-join ["a\n" "b"] "\r\n")))
  ;; A line without a newline has got one behind it.
  (should (equal "a\nb\n" (gemini-companion-lines-join ["a" "b\n"]))))

;;; gemini-companion-lines-test.el ends here
