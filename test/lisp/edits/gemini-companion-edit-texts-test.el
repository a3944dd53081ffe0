;;; gemini-companion-edit-texts-test.el --- Tests of the texts of edits  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-undo)
(require 'gemini-companion-edit-test-helper)
(require 'gemini-companion-edit-texts)

;; Nothing of the text before is left, so that only the file tells.
(ert-deftest gemini-companion-edit-texts-coding-is-corrected-by-what-was-written ()
  (dolist (coding '(koi8-r windows-1251 big5))
    (let* ((old (if (eq coding 'big5) "這是測試\n" "тест\n"))
           (new (if (eq coding 'big5) "內容\n" "Вторая\n"))
           (bytes (encode-coding-string old coding)))
      (gemini-companion-edit-test-with-bytes "qwen" bytes
        (with-current-buffer (find-file-noselect "a")
          (let ((edit (funcall propose new)))
            (cl-letf (((symbol-function 'yes-or-no-p) #'always))
              (gemini-companion-edit-accept edit))
            (gemini-companion-test-write "a" (encode-coding-string new coding))
            (gemini-companion-test-in-the-end
              (eq 'written (gemini-companion-edit-file-state edit)))
            (gemini-companion-undo-edit edit)
            (should (equal bytes (gemini-companion-text-bytes "a")))))))))

(ert-deftest gemini-companion-edit-texts-before-is-as-the-cli-sees-it ()
  :tags '(pure)
  (pcase-dolist (`(,client ,bytes ,text)
                 '(("gemini" "1\r\n2\n" "1\n2\n")
                   ("gemini" "\357\273\2771\n" "\uFEFF1\n")
                   ("qwen" "\357\273\2771\n" "1\n")
                   ("gemini" "caf\351\n" "café\n")))
    (gemini-companion-edit-test-with-bytes client bytes
      (let ((edit (funcall propose "new\n")))
        (should (equal bytes (gemini-companion-edit-bytes-before edit)))
        (should (equal text (gemini-companion-edit-texts-before edit)))
        (should (equal text (gemini-companion-test-text
                             (gemini-companion-edit-texts-original edit))))))))

(ert-deftest gemini-companion-edit-texts-in-file-are-compared-as-a-cli-writes-them ()
  :tags '(pure)
  (gemini-companion-edit-test-with-bytes "gemini" "old\n"
    (let ((edit (funcall propose "1\n2\n")))
      (should-not (gemini-companion-edit-texts-in-file-p edit "1\n2\n"))
      (pcase-dolist (`(,bytes . ,same) '(("1\n2\n" . t) ("1\r\n2\r\n" . t)
                                         ("1\n2" . t) ("1\n3\n" . nil)))
        (gemini-companion-test-write "a" bytes)
        (should (eq same (gemini-companion-edit-texts-in-file-p edit
                                                                "1\n2\n")))))))

;;; gemini-companion-edit-texts-test.el ends here
