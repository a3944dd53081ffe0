;;; gemini-companion-privacy-test-helper.el --- Help for tests of what is shared  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-privacy)
(require 'gemini-companion-test-helper)

(defun gemini-companion-privacy-test-hidden (&rest names)
  "Return those of the files NAMES that are hidden, and forget that."
  (gemini-companion-privacy-refresh)
  (prog1 (seq-filter
          (lambda (name)
            (when (file-name-directory name)
              (make-directory (file-name-directory name) t))
            (let ((enable-local-variables :safe))
              (gemini-companion-privacy-hidden-p (find-file-noselect name))))
          names)
    (gemini-companion-privacy-refresh)))

(provide 'gemini-companion-privacy-test-helper)
;;; gemini-companion-privacy-test-helper.el ends here
