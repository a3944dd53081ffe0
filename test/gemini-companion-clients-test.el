;;; gemini-companion-clients-test.el --- Tests of the table of CLIs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-clients)
(require 'seq)

(ert-deftest gemini-companion-clients-knows-a-cli-by-its-command ()
  (pcase-dolist
      (`(,command . ,expected)
       '(("node /usr/bin/gemini" . "gemini") ("gemini --acp" . "gemini")
         ("/opt/node --max-old-space-size=1 /x/bin/gemini -p a" . "gemini")
         ("node /x/@google/gemini-cli/bundle/gemini.js" . "gemini")
         ("qwen" . "qwen") ("node /usr/local/bin/qwen" . "qwen")
         ("/x/node --expose-gc /x/@qwen-code/qwen-code/cli.js" . "qwen")
         ("node /x/@qwen-code/qwen-code/dist/cli.js --acp" . "qwen")
         ("/usr/bin/node /usr/bin/gemini --version" . nil)
         ("node /x/@qwen-code/qwen-code/cli.js --version" . nil)
         ("node /x/gemini-mcp/server.js" . nil) ("node cli.js" . nil)
         ("emacs gemini" . nil) ("bash -c gemini" . nil) ("vi qwen" . nil)
         ("vi gemini.js" . nil) ("" . nil) (nil . nil)))
    (ert-info ((format "%s" command))
      (should (equal expected
                     (gemini-companion-clients-of-command command))))))

(ert-deftest gemini-companion-clients-finds-files-by-an-environment ()
  (pcase-dolist
      (`(,client ,key ,environment ,expected)
       '(("gemini" :user-settings ("HOME=/h" "GEMINI_CLI_HOME=")
          "/h/.gemini/settings.json")
         ("gemini" :user-settings ("HOME=/h" "GEMINI_CLI_HOME=/g")
          "/g/.gemini/settings.json")
         ("qwen" :user-settings ("HOME=/h") "/h/.qwen/settings.json")
         ("qwen" :system-settings ("QWEN_CODE_SYSTEM_SETTINGS_PATH=/s")
          "/s")))
    (ert-info ((format "%s %s %s" client key environment))
      (should (equal expected
                     (gemini-companion-clients-file
                      client key environment))))))

(provide 'gemini-companion-clients-test)
;;; gemini-companion-clients-test.el ends here
