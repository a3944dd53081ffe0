;;; gemini-companion-epc-test.el --- Tests of the EPC connection  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-server-test-helper)

(ert-deftest gemini-companion-epc-records-calls-without-secrets ()
  "The server writes them to its log."
  (gemini-companion-test-with-directory '()
    (let ((gemini-companion-log-file (expand-file-name "new/log" directory)))
      (gemini-companion-test-with-mode '(("a" "text"))
        (gemini-companion-test-eventually
          (string-search "Emacs is connected" (gemini-companion-test-file-text
                                         gemini-companion-log-file)))
        (let ((events (gemini-companion-test-events)))
          (should (string-search " -> hello\n" events))
          (should (string-search " -> serve\n" events))
          (dolist (text (list events (gemini-companion-test-file-text
                                      gemini-companion-log-file)))
            (should-not (string-search
                         (plist-get (gemini-companion-server-info) :token)
                         text))))))))

;;; gemini-companion-epc-test.el ends here
