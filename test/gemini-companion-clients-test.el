;;; gemini-companion-clients-test.el --- Tests of the CLIs together  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-clients)

(ert-deftest gemini-companion-clients-name-this-emacs-in-an-environment ()
  :tags '(pure)
  (should (equal '("GEMINI_CLI_IDE_SERVER_PORT=4711" "GEMINI_CLI_IDE_PID=12"
                   "QWEN_CODE_IDE_SERVER_PORT=4711")
                 (gemini-companion-clients-variables 4711 12))))

(ert-deftest gemini-companion-clients-are-named-in-phrases ()
  :tags '(pure)
  (should (equal "/ide enable, or /ide in Copilot CLI"
                 (gemini-companion-clients-search)))
  (should (equal "Gemini CLI and Qwen Code"
                 (gemini-companion-clients-titles '("gemini" "qwen")))))

(ert-deftest gemini-companion-clients-without-a-method-have-nothing ()
  :tags '(pure)
  (dolist (client '(nil "other" other))
    (should (equal "the CLI" (gemini-companion-client-title client)))
    (should-not (gemini-companion-client-titles client))
    (should-not (gemini-companion-client-home client))
    (should-not (gemini-companion-client-has-run-p client))
    (should-not (gemini-companion-client-conversations client "output"))
    (should-not (string-match-p (gemini-companion-client-unreadable client) "a"))))

(provide 'gemini-companion-clients-test)
;;; gemini-companion-clients-test.el ends here
