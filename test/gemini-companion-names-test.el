;;; gemini-companion-names-test.el --- Tests of names of files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-names)

(ert-deftest gemini-companion-names-for-the-user-show-each-character ()
  :tags '(pure)
  (should (equal "a\\xFFb" (gemini-companion-names-shown (string-to-multibyte (concat "a" (unibyte-string 255) "b")))))
  (should (equal "a\\u202Eb" (gemini-companion-names-shown "a\u202Eb")))
  (should (equal "ab...yz" (gemini-companion-names-shown
                            "abcdefghijklmnopqrstuvwxyz" 7))))

(ert-deftest gemini-companion-names-of-a-buffer-are-those-of-its-file ()
  (let ((file (file-truename (make-temp-file "names-"))))
    (unwind-protect
        (with-current-buffer (find-file-noselect file)
          (unwind-protect
              (progn
                (should (equal file (gemini-companion-names-file)))
                (should (gemini-companion-names-visited-here-p file))
                (should-not (gemini-companion-names-visited-here-p nil))
                (should (eq (current-buffer)
                            (gemini-companion-names-buffer file)))
                (should (equal file (gemini-companion-names-visited file)))
                (should-not (gemini-companion-names-of-copy file)))
            (kill-buffer)))
      (delete-file file))))

;;; gemini-companion-names-test.el ends here
