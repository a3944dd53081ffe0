;;; gemini-companion-client-test.el --- Tests of the table of CLIs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-client)
(require 'gemini-companion-client-settings)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-clients-finds-files-by-an-environment ()
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

;;;; Settings

(defun gemini-companion-client-test-finding ()
  "Return the finding about ide.enabled."
  (car (gemini-companion-client-settings-findings "gemini" "/")))

(defun gemini-companion-client-test-set ()
  "Set ide.enabled."
  (pcase (gemini-companion-client-test-finding)
    (`(,_ ,_ ,_ (,_ . ,set)) (funcall set))))

(defmacro gemini-companion-client-test-setting (text &rest body)
  "Run BODY with a settings file of TEXT, `file', or none if it is nil."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory nil
     (with-environment-variables (("GEMINI_CLI_HOME" directory))
       (let ((file (expand-file-name ".gemini/settings.json"))
             (json-object-type 'plist)) ; as a user's init file may have it
         (when-let* ((text ,text))
           (gemini-companion-test-write file text))
         (save-window-excursion ,@body)))))

(ert-deftest gemini-companion-clients-names-a-running-cli-only-where-one-runs ()
  (pcase-dolist (`(,runs-p ,text)
                 '((nil "Setting saved")
                   (ignore "Setting saved")
                   (always "Setting saved; a running Gemini CLI needs /ide enable")))
    (gemini-companion-client-test-setting nil
      (ert-with-message-capture shown
        (pcase (car (gemini-companion-client-settings-findings "gemini" "/" runs-p))
          (`(,_ ,_ ,_ (,_ . ,set)) (funcall set)))
        (should (equal (concat text "\n") shown))))))

(ert-deftest gemini-companion-clients-reads-settings-as-the-clis-do ()
  (pcase-dolist
      (`(,text . ,expected)
       '(("") ("{}") ("{\"ide\": {}}") ("{\"ide\": 1}")
         ("{\"ide\": {\"enabled\": false}}" . :false)
         ("// {\"ide\": 1}\n{/* \" */\"ide\": {\"enabled\": true}}" . t)
         ("{\"a\": \"// b\", \"ide\": {\"enabled\": true}}" . t)
         ("{\"a\": \"\\\"/*\", \"ide\": {\"enabled\": true}, \"b\": \"*/\"}" . t)
         ("{" . bad) ("[]" . bad) ("null" . bad) ("{} x" . bad) ("ide" . bad)
         ("{\"a\": 1 \"b\": 2}" . bad) ("{\"ide\" {}}" . bad) ("\"{\"" . bad)))
    (ert-info (text :prefix "Text: ")
      (gemini-companion-client-test-setting text
        (should (equal expected
                       (if (string-search
                            "malformed"
                            (nth 1 (gemini-companion-client-test-finding)))
                           'bad
                         (gemini-companion-client-settings-get
                          file '("ide" "enabled")))))))))

(ert-deftest gemini-companion-clients-sets-one-setting-and-keeps-the-rest-mode-and-link ()
  (pcase-dolist
      (`(,before ,after)
       '((nil "{\n  \"ide\": {\n    \"enabled\": true\n  }\n}\n")
         (" " "{\n  \"ide\": {\n    \"enabled\": true\n  }\n}\n")
         ("{\"ide\": {\"enabled\": false, \"seen\": true}, \"b\": null,
           \"a\": [1, {}, []], \"c\": false, \"nil\": \"\", \"d\": 0.5}"
          "{
  \"ide\": {
    \"enabled\": true,
    \"seen\": true
  },
  \"b\": null,
  \"a\": [
    1,
    {},
    []
  ],
  \"c\": false,
  \"nil\": \"\",
  \"d\": 0.5
}\n")
         ("{\"ä\": 1}\r\n"
          "{\n  \"ide\": {\n    \"enabled\": true\n  },\n  \"ä\": 1\n}\n")))
    (ert-info (before :prefix "Text: ")
      (gemini-companion-client-test-setting before
        (when before
          (set-file-modes file #o600)
          (rename-file file "dotfiles.json")
          (make-symbolic-link (expand-file-name "dotfiles.json") file))
        (gemini-companion-client-test-set)
        (should (equal after (gemini-companion-test-file-text file)))
        (when before
          (should (file-symlink-p file))
          (should (= #o600 (file-modes "dotfiles.json"))))))))

(ert-deftest gemini-companion-clients-leaves-comments-to-the-user ()
  (dolist (text '("// mine\n{\n  \"a\": 1\n}\n" "{\"ide\": 1}"))
    (gemini-companion-client-test-setting text
      (ert-with-message-capture shown
        (should-not (gemini-companion-client-test-set))
        (should (string-search "set ide.enabled to true in it" shown)))
      (should (file-equal-p file buffer-file-name))
      (should (equal text (buffer-string))))))

(ert-deftest gemini-companion-clients-completes-a-name-in-any-case ()
  (cl-letf (((symbol-function 'completing-read)
             (lambda (_prompt names &rest _) (try-completion "q" names))))
    (should (equal 2 (gemini-companion-client-read
                      "Start" '(("Gemini CLI" . 1) ("Qwen Code" . 2)))))))

;;; gemini-companion-client-test.el ends here
