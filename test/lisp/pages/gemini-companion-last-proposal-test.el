;;; gemini-companion-last-proposal-test.el --- Tests of texts not written  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-last-proposal)
(require 'gemini-companion-review-test-helper)

(ert-deftest gemini-companion-last-proposal-shows-one-text-after-the-other ()
  (gemini-companion-test-with-edits '(("a" "1\n"))
    (should-error (gemini-companion-last-proposal) :type 'user-error)
    (dolist (text '("first\n" "second\n"))
      (gemini-companion-edit-keep-proposal
       (gemini-companion-test-open "a" text) text))
    (save-window-excursion
      (let ((shown (lambda ()
                     (gemini-companion-last-proposal)
                     (with-current-buffer (window-buffer)
                       (buffer-string)))))
        (should (equal '("second\n" "first\n" "second\n")
                       (list (funcall shown) (funcall shown) (funcall shown)))))
      (kill-buffer "*gemini last proposal*"))))

;;; gemini-companion-last-proposal-test.el ends here
