;;; gemini-companion-epc-test.el --- Tests of the EPC connection  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the connection leaves behind, and what it records.

;;; Code:

(require 'gemini-companion-server-test-helper)

(ert-deftest gemini-companion-epc-reports-a-port-that-refuses ()
  (let ((buffers (buffer-list)))
    (should (string-match-p "Cannot connect to port 1"
                            (gemini-companion-test-failure
                             "sh" "-c" "echo 1; exec sleep 60")))
    (should-not (seq-find (lambda (buffer)
                            (string-match-p "epc con" (buffer-name buffer)))
                          (seq-difference (buffer-list) buffers)))))

(ert-deftest gemini-companion-epc-records-calls-without-secrets ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let ((events (gemini-companion-test-events)))
      (should (string-search " -> hello\n" events))
      (should (string-search " -> serve\n" events))
      (should-not (string-search (plist-get (gemini-companion-server-info) :token)
                                 events)))))

;;; gemini-companion-epc-test.el ends here
