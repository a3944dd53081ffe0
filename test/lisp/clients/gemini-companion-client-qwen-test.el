;;; gemini-companion-client-qwen-test.el --- Tests of the adapter of Qwen Code  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-client-qwen)

(ert-deftest gemini-companion-client-qwen-shows-states-in-titles ()
  (pcase-dolist (`(,title . ,state)
                 '(("◐ Qwen - dir" . working) ("✳ Qwen - dir" . waiting)
                   ("Qwen - dir" . ready) ("Fix the login" . named)))
    (should (eq state (assoc-default title (gemini-companion-client-titles "qwen")
                                     #'string-match-p)))))

(provide 'gemini-companion-client-qwen-test)
;;; gemini-companion-client-qwen-test.el ends here
