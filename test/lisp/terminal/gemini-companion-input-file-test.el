;;; gemini-companion-input-file-test.el --- Tests of the file from which a CLI reads prompts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-input-file)

(ert-deftest gemini-companion-input-file-is-private-and-gone-with-its-cli ()
  (with-temp-buffer
    (should-not (gemini-companion-input-file-arguments "gemini" nil))
    (should-not (gemini-companion-input-file-arguments
                 "qwen" '("qwen" "--input-file=mine")))
    (should-not gemini-companion-input-file)
    (pcase-let* ((`(,option ,file) (gemini-companion-input-file-arguments "qwen" '("qwen")))
                 (directory (file-name-directory file)))
      (should (equal "--input-file" option))
      (should (equal '(#o600 #o700) (mapcar #'file-modes (list file directory))))
      (gemini-companion-input-file-append file "one\n\"two\" \\ größe 😀")
      (gemini-companion-input-file-append file "/help")
      (with-temp-buffer
        (insert-file-contents file)
        (should (equal '(("submit" "one\n\"two\" \\ größe 😀") ("submit" "/help"))
                       (mapcar (lambda (line)
                                 (let ((object (json-parse-string line)))
                                   (list (gethash "type" object)
                                         (gethash "text" object))))
                               (split-string (buffer-string) "\n" t)))))
      (let ((other (cadr (gemini-companion-input-file-arguments "qwen" nil))))
        (should-not (file-exists-p directory))
        (gemini-companion-input-file-delete-all)
        (should-not (file-exists-p (file-name-directory other)))))))

(provide 'gemini-companion-input-file-test)
;;; gemini-companion-input-file-test.el ends here
