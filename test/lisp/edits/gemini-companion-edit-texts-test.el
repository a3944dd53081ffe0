;;; gemini-companion-edit-texts-test.el --- Tests of the texts of edits  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-edit-test-helper)
(eval-and-compile
  (when (gemini-companion-part-load 'addon-changes)
    (require 'gemini-companion-changes-test-helper)))
(require 'gemini-companion-undo nil t)
(require 'gemini-companion-edit-test-helper)
(require 'gemini-companion-edit-texts)

(ert-deftest gemini-companion-edit-texts-of-qwen-code-are-as-emacs-reads-them ()
  (gemini-companion-test-needs-add-on 'changes)
  (gemini-companion-edit-test-with-bytes "qwen" "caf\351\n1\n"
    (let ((edit (funcall propose "café\n2\n")))
      (should (equal "café\n1\n" (gemini-companion-test-text
                                  (gemini-companion-edit-texts-original edit))))
      (should-not (gemini-companion-edit-texts-converted-p edit))
      (gemini-companion-edit-accept edit)
      (gemini-companion-test-write "a" "caf\351\n2\n")
      (should (gemini-companion-edit-texts-in-file-p edit))
      (gemini-companion-test-undo-edit edit)
      (should (equal "caf\351\n1\n" (gemini-companion-text-bytes "a"))))))

;; Qwen Code may have guessed another coding system.
(ert-deftest gemini-companion-edit-texts-that-emacs-reads-otherwise-are-bytes ()
  (gemini-companion-test-needs-add-on 'changes)
  (let ((before (encode-coding-string "тест\n" 'koi8-r))
        (after (encode-coding-string "Вторая\n" 'koi8-r)))
    (gemini-companion-edit-test-with-bytes "qwen" before
      (with-coding-priority '(utf-8 iso-latin-1)
        (let ((edit (funcall propose "Вторая\n")))
          (cl-letf (((symbol-function 'yes-or-no-p) #'always))
            (gemini-companion-edit-accept edit))
          (gemini-companion-test-write "a" after)
          (gemini-companion-test-in-the-end
            (eq 'written (gemini-companion-edit-file-state edit)))
          (gemini-companion-test-write "a" (concat after "mine\n"))
          (should (equal "a is not text in UTF-8 and has changed since; the text \
before is in *gemini before: a*"
                         (gemini-companion-test-refusal
                           (gemini-companion-test-undo-edit edit))))
          (should (equal before
                         (with-current-buffer "*gemini before: a*"
                           (encode-coding-string (buffer-string) 'latin-1))))
          (should (equal (concat after "mine\n") (gemini-companion-text-bytes "a")))
          (gemini-companion-test-write "a" after)
          (gemini-companion-test-undo-edit edit)
          (should (equal before (gemini-companion-text-bytes "a"))))))))

(ert-deftest gemini-companion-edit-texts-before-is-as-the-cli-sees-it ()
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
  (gemini-companion-edit-test-with-bytes "gemini" "old\n"
    (let ((edit (funcall propose "1\n2\n")))
      (should-not (gemini-companion-edit-texts-in-file-p edit "1\n2\n"))
      (pcase-dolist (`(,bytes . ,same) '(("1\n2\n" . t) ("1\r\n2\r\n" . t)
                                         ("1\n2" . t) ("1\n3\n" . nil)))
        (gemini-companion-test-write "a" bytes)
        (should (eq same (gemini-companion-edit-texts-in-file-p edit
                                                                "1\n2\n")))))))

;;; gemini-companion-edit-texts-test.el ends here
