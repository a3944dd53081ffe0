;;; gemini-companion-page-test.el --- Tests of pages  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-page)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-text-test-helper)

(ert-deftest gemini-companion-page-keeps-point-and-mark-at-their-lines ()
  (with-temp-buffer
    (pcase-dolist (`(,text ,place)
                   `(("a\nsame\nb\nsame\nrest\nrest\n" "b\nsa|me\n")
                     ("new\na\nmore\nsame\nb\nsame\nrest\nrest\n" "b\nsa|me\n")
                     ("a\nsame\nb\nsafe\nmore\n" "b\nsa|fe\n")
                     (,(propertize "a\nsame\nb\n" 'face 'bold) "b\n|")
                     ("a\n" "a\n|")))
      (gemini-companion-page-replace text)
      (when (= 1 (point))
        (search-forward "b\nsa")
        (set-mark (point)))
      (should (equal-including-properties text (buffer-string)))
      (save-excursion
        (insert "|")
        (should (string-search place (buffer-string)))
        (delete-char -1)
        (should (= (point) (mark t)))))))

;;; gemini-companion-page-test.el ends here
