;;; gemini-companion-client-settings-test.el --- Tests of settings of the CLIs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-client)
(require 'gemini-companion-client-settings)
(require 'gemini-companion-client-test-helper)
(require 'gemini-companion-part)
(require 'gemini-companion-test-helper)

(defun gemini-companion-client-test-finding ()
  "Return the finding about ide.enabled."
  (car (gemini-companion-client-settings-findings "gemini" "/")))

(defun gemini-companion-client-test-set ()
  "Set ide.enabled."
  (pcase (gemini-companion-client-test-finding)
    (`(,_ ,_ ,_ (,_ . ,set)) (funcall set))))

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
         ("{\"ide\": null}" "{\n  \"ide\": {\n    \"enabled\": true\n  }\n}\n")
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

(ert-deftest gemini-companion-clients-leaves-to-the-user-what-would-be-lost ()
  (pcase-dolist (`(,text ,reason)
                 '(("{\"a\": [{\"b\": 1E400}]}" "has a number that Emacs cannot write")
                   ("{\"ide\": 1}" "has no object as ide")
                   ("{\"ide\": [1]}" "has no object as ide")))
    (ert-info (text :prefix "Text: ")
      (gemini-companion-client-test-setting text
        (ert-with-message-capture shown
          (save-window-excursion
            (gemini-companion-client-test-set)
            (kill-buffer (get-file-buffer file)))
          (should (string-search reason shown)))
        (should (equal text (gemini-companion-test-file-text file)))))))

(ert-deftest gemini-companion-clients-writes-settings-whole-or-in-place ()
  (gemini-companion-client-test-setting "{}"
    (let ((before (file-attribute-inode-number (file-attributes file))))
      ;; A program that reads it meanwhile has the whole text, before or after.
      (gemini-companion-client-test-set)
      (should-not (equal before (file-attribute-inode-number (file-attributes file)))))
    (should (equal (list (file-name-nondirectory file))
                   (seq-filter (lambda (name) (string-prefix-p "settings" name))
                               (directory-files (file-name-directory file)))))
    ;; A user may have to write the file, but not its directory.
    (cl-letf* ((writable (symbol-function 'file-writable-p))
               ((symbol-function 'file-writable-p)
                (lambda (name)
                  (and (not (file-directory-p name)) (funcall writable name))))
               (before (file-attribute-inode-number (file-attributes file))))
      (write-region "{\"a\": 1}" nil file nil 'silent)
      (gemini-companion-client-test-set)
      (should (equal before (file-attribute-inode-number (file-attributes file))))
      (should (equal 1 (gemini-companion-client-settings-get file '("a"))))
      (should (eq t (gemini-companion-client-settings-get file '("ide" "enabled")))))))

(ert-deftest gemini-companion-clients-leaves-comments-to-the-user ()
  (dolist (text '("// mine\n{\n  \"a\": 1\n}\n" "{\"ide\": 1}"))
    (gemini-companion-client-test-setting text
      (ert-with-message-capture shown
        (should-not (gemini-companion-client-test-set))
        (should (string-search "set ide.enabled to true in it" shown)))
      (should (file-equal-p file buffer-file-name))
      (should (equal text (buffer-string))))))

(ert-deftest gemini-companion-client-settings-name-the-directory-of-images ()
  (gemini-companion-test-with-directory nil
    (with-environment-variables (("GEMINI_CLI_HOME" directory))
      (should-not (gemini-companion-client-settings-images "gemini" directory))
      (gemini-companion-test-write
       ".gemini/projects.json"
       (format "{\"projects\": {\"%s\": \"shop\"}}"
               (directory-file-name (file-truename directory))))
      (should (equal (expand-file-name ".gemini/tmp/shop/images/")
                     (gemini-companion-client-settings-images "gemini" directory))))))

;;; gemini-companion-client-settings-test.el ends here
