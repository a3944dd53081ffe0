;;; gemini-companion-plain-test.el --- Tests of a proposal that is displayed alone  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-plain)
(require 'gemini-companion-review-test-helper)

(ert-deftest gemini-companion-plain-is-the-review-of-a-new-file ()
  (dolist (text '("new\n" ""))
    (gemini-companion-test-with-reviews nil
      (let ((layout (gemini-companion-test-layout))
            (edit (gemini-companion-test-show "__init__.py" text)))
        (setf (gemini-companion-view-drawn (gemini-companion-edit-view edit)) 0)
        (should (equal "*gemini proposal: __init__.py*" (buffer-name (window-buffer))))
        (with-current-buffer (window-buffer)
          (should (equal text (buffer-string)))
          (should buffer-read-only)
          (call-interactively (key-binding "e"))
          (should-not buffer-read-only)
          (should (eq #'self-insert-command (key-binding "a")))
          (insert "mine\n")
          (call-interactively (key-binding (kbd "C-c C-e")))
          (call-interactively (key-binding (kbd "C-c C-c"))))
        (should (equal (list (list 1 'accepted (concat "mine\n" text))) outcomes))
        (should (equal layout (gemini-companion-test-layout)))))))

;;; gemini-companion-plain-test.el ends here
