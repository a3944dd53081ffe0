;;; gemini-companion-unified-test-helper.el --- Help for tests of unified diffs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-review-test-helper)

(defmacro gemini-companion-unified-test-with (files &rest body)
  "Show proposals as unified diffs while BODY is run in a directory with FILES."
  (declare (indent 1) (debug t))
  `(let ((gemini-companion-review-view 'diff))
     (gemini-companion-test-with-reviews ,files ,@body)))

(defun gemini-companion-unified-test-lines (first last &optional prefix)
  "Return the numbers from FIRST to LAST as texts, with PREFIX before each."
  (mapcar (lambda (number) (format "%s%d" (or prefix "") number))
          (number-sequence first last)))

(provide 'gemini-companion-unified-test-helper)
;;; gemini-companion-unified-test-helper.el ends here
