;;; gemini-companion-client-copilot-test.el --- Tests of the adapter of Copilot CLI  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-client-copilot)

(ert-deftest gemini-companion-client-copilot-writes-its-own-text ()
  (should (gemini-companion-client-writes-own-text-p "copilot"))
  (should (gemini-companion-client-discards-edits-p "copilot"))
  (should-not (gemini-companion-client-keeps-coding-p "copilot")))

(provide 'gemini-companion-client-copilot-test)
;;; gemini-companion-client-copilot-test.el ends here
