;;; gemini-companion-epc-test.el --- Tests of the EPC connection  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-server-test-helper)

(ert-deftest gemini-companion-epc-records-calls-without-secrets ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let ((events (gemini-companion-test-events)))
      (should (string-search " -> hello\n" events))
      (should (string-search " -> serve\n" events))
      (should-not (string-search (plist-get (gemini-companion-server-info) :token)
                                 events)))))

;;; gemini-companion-epc-test.el ends here
