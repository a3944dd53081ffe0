;;; gemini-companion-settings-test.el --- Tests of the settings  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-settings)

(ert-deftest gemini-companion-settings-test-says-what-is-set ()
  (pcase-dolist
      (`(,text . ,expected)
       '(("" . nil) ("{}" . nil) ("{\"ide\": {}}" . nil) ("{\"ide\": 1}" . nil)
         ("{\"ide\": {\"enabled\": true}}" . t)
         ("{\"ide\": {\"enabled\": false}}" . :false)
         ("// {\"ide\": 1}\n{/* \" */\"ide\": {\"enabled\": true}}" . t)
         ("{\"a\": \"// no comment\", \"ide\": {\"enabled\": true}}" . t)
         ("{\"a\": \"\\\"/*\", \"ide\": {\"enabled\": true}, \"b\": \"*/\"}" . t)
         ("{\"ide\": {\"enabled\": true, \"enabled\": false}}" . :false)))
    (ert-info (text :prefix "Text: ")
      (should (equal expected (gemini-companion-settings-ide-enabled text))))))

(ert-deftest gemini-companion-settings-test-refuses-malformed-text ()
  (dolist (text '("{" "[]" "null" "{\"ide\": {\"enabled\": true},}" "{} x"
                  "ide" "{\"a\": 1 \"b\": 2}" "{\"ide\" {}}" "\"{\""))
    (ert-info (text :prefix "Text: ")
      (should-error (gemini-companion-settings-ide-enabled text)
                    :type 'gemini-companion-settings-malformed)
      (should-error (gemini-companion-settings-enable text)
                    :type 'gemini-companion-settings-malformed)))
  (should-error (gemini-companion-settings-enable "{\"ide\": null}")
                :type 'gemini-companion-settings-malformed))

(ert-deftest gemini-companion-settings-test-changes-nothing-else ()
  (pcase-dolist
      (`(,before ,after)
       '((" " "{\n  \"ide\": {\n    \"enabled\": true\n  }\n}\n")
         ("{}" "{ \"ide\": {\"enabled\": true} }")
         ("{\"a\":1}" "{\"a\":1, \"ide\": {\"enabled\": true}}")
         ("{\"ide\":{\"enabled\" :false}, \"z\":1}"
          "{\"ide\":{\"enabled\" :true}, \"z\":1}")
         ("{\"ide\": {\"hasSeenNudge\": true}}"
          "{\"ide\": {\"hasSeenNudge\": true, \"enabled\": true}}")
         ;; The comment after the last member stays with it.
         ("// mine\n{\n\t// why\n\t\"a\": [1, {\"b\": \"}\"}] // so\n\t/* end */\n}\n"
          "// mine\n{\n\t// why\n\t\"a\": [1, {\"b\": \"}\"}], // so\n\t/* end */\n\t\"ide\": {\n\t\t\"enabled\": true\n\t}\n}\n")
         ("{\n    \"ide\": {\n        // \"enabled\": false,\n        \"x\": 1\n    },\n    \"z\": {}\n}"
          "{\n    \"ide\": {\n        // \"enabled\": false,\n        \"x\": 1,\n        \"enabled\": true\n    },\n    \"z\": {}\n}")
         ("{\n  \"ide\": {\n  }\n}"
          "{\n  \"ide\": {\n    \"enabled\": true\n  }\n}")
         ("{\n  // nothing\n}\n"
          "{\n  // nothing\n  \"ide\": {\n    \"enabled\": true\n  }\n}\n")
         ("{\"ide\": {\"enabled\": false}, \"ide\": {\"enabled\": false}}"
          "{\"ide\": {\"enabled\": false}, \"ide\": {\"enabled\": true}}")))
    (ert-info (before :prefix "Text: ")
      (should (equal after (gemini-companion-settings-enable before)))
      (should (eq t (gemini-companion-settings-ide-enabled after)))
      (should (equal after (gemini-companion-settings-enable after))))))

(defmacro gemini-companion-settings-test--with-file (file text &rest body)
  "Bind FILE to a file with TEXT, or to no file if nil, in BODY."
  (declare (indent 2))
  `(let* ((folder (make-temp-file "gc" t))
          (,file (expand-file-name ".gemini/settings.json" folder)))
     (unwind-protect
         (progn
           (when ,text
             (make-directory (file-name-directory ,file))
             (let ((coding-system-for-write 'utf-8-unix))
               (write-region ,text nil ,file nil 'silent)))
           ,@body)
       (when-let* ((buffer (find-buffer-visiting ,file)))
         (with-current-buffer buffer (set-buffer-modified-p nil))
         (kill-buffer buffer))
       (delete-directory folder t))))

(defun gemini-companion-settings-test--bytes (file)
  "Return the bytes of FILE."
  (with-temp-buffer
    (set-buffer-multibyte nil)
    (insert-file-contents-literally file)
    (buffer-string)))

(ert-deftest gemini-companion-settings-test-keeps-line-ends-mode-and-link ()
  (gemini-companion-settings-test--with-file file "{\r\n  \"ä\": 1\r\n}\r\n"
    (let ((link (concat file ".link")))
      (set-file-modes file #o600)
      (make-symbolic-link file link)
      (gemini-companion-settings-set-enabled link)
      (should (file-symlink-p link))
      (should (= #o600 (file-modes file)))
      (should (equal (encode-coding-string "{\r\n  \"ä\": 1,\r\n  \"ide\": \
{\r\n    \"enabled\": true\r\n  }\r\n}\r\n" 'utf-8)
                     (gemini-companion-settings-test--bytes file)))
      (should (= 4 (length (directory-files (file-name-directory file))))))))

(ert-deftest gemini-companion-settings-test-makes-a-file-if-there-is-none ()
  (gemini-companion-settings-test--with-file file nil
    (gemini-companion-settings-set-enabled file)
    (should (eq t (gemini-companion-settings-ide-enabled
                   (gemini-companion-settings-text file))))))

(ert-deftest gemini-companion-settings-test-leaves-a-malformed-file-alone ()
  (gemini-companion-settings-test--with-file file "{\"a\": }"
    (should-error (gemini-companion-settings-set-enabled file)
                  :type 'user-error)
    (should (equal "{\"a\": }" (gemini-companion-settings-text file)))))

(ert-deftest gemini-companion-settings-test-leaves-unsaved-changes-alone ()
  (gemini-companion-settings-test--with-file file "{}"
    (with-current-buffer (find-file-noselect file)
      (insert " ")
      (should-error (gemini-companion-settings-set-enabled file)
                    :type 'user-error)
      (set-buffer-modified-p nil)
      (gemini-companion-settings-set-enabled file)
      (should (string-search "enabled" (buffer-string)))
      (should-not (buffer-modified-p)))))

(provide 'gemini-companion-settings-test)
;;; gemini-companion-settings-test.el ends here
