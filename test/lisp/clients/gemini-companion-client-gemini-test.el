;;; gemini-companion-client-gemini-test.el --- Tests of the adapter of Gemini CLI  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-client-gemini)
(require 'gemini-companion-part)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-client-gemini-shows-states-in-titles ()
  (pcase-dolist (`(,title . ,state)
                 '(("◇  Ready (dir)" . ready) ("✦  Fix it (dir)" . working)
                   ("⏲  Working… (dir)" . working)
                   ("✋  Action Required (dir)" . waiting) ("bash" . nil)))
    (should (eq state (assoc-default title (gemini-companion-client-titles "gemini")
                                     #'string-match-p)))))

(provide 'gemini-companion-client-gemini-test)
;;; gemini-companion-client-gemini-test.el ends here
