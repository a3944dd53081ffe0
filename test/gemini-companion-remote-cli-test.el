;;; gemini-companion-remote-cli-test.el --- Tests of CLIs on other hosts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-remote-cli)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-remote-cli-connects-no-local-directory ()
  (let ((default-directory temporary-file-directory)
        (gemini-companion-remote-directories nil))
    (should (string-prefix-p
             "A local CLI connects by itself"
             (gemini-companion-test-refusal (gemini-companion-connect))))))

(ert-deftest gemini-companion-remote-cli-disconnects-only-what-is-connected ()
  (let ((gemini-companion-remote-names-hosts nil)
        (default-directory temporary-file-directory))
    (should (equal "No remote host is connected"
                   (gemini-companion-test-refusal
                     (call-interactively #'gemini-companion-disconnect))))))

;;; gemini-companion-remote-cli-test.el ends here
