;;; gemini-companion-client-test.el --- Tests of the table of CLIs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-clients)
(require 'gemini-companion-client-settings nil t)
(require 'gemini-companion-client-test-helper)
(require 'gemini-companion-part)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-clients-finds-files-by-an-environment ()
  (gemini-companion-test-needs-add-on 'terminal)
  (pcase-dolist
      (`(,client ,environment ,system ,user)
       '(("gemini" ("HOME=/h" "GEMINI_CLI_HOME=") nil "/h/.gemini/settings.json")
         ("gemini" ("HOME=/h" "GEMINI_CLI_HOME=/g") nil "/g/.gemini/settings.json")
         ("qwen" ("HOME=/h" "QWEN_CODE_SYSTEM_SETTINGS_PATH=/s") "/s"
          "/h/.qwen/settings.json")))
    (ert-info ((format "%s %s" client environment))
      (let ((process-environment environment))
        (gemini-companion-test-in-turkish
          (let ((files (gemini-companion-client-settings-files client "/")))
            (should (equal user (car (last files))))
            (when system
              (should (equal system (car files))))))))))

(ert-deftest gemini-companion-clients-names-a-running-cli-only-where-one-runs ()
  (gemini-companion-test-needs-add-on 'terminal)
  (pcase-dolist (`(,runs-p ,text)
                 '((nil "Setting saved")
                   (ignore "Setting saved")
                   (always "Setting saved; a running Gemini CLI needs /ide enable")))
    (gemini-companion-client-test-setting nil
      (ert-with-message-capture shown
        (pcase (car (gemini-companion-client-settings-findings "gemini" "/" runs-p))
          (`(,_ ,_ ,_ (,_ . ,set)) (funcall set)))
        (should (equal (concat text "\n") shown))))))

;;; gemini-companion-client-test.el ends here
