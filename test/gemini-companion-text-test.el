;;; gemini-companion-text-test.el --- Tests of texts in files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The same text on both sides, whatever the person has set up for files.

;;; Code:

(require 'gemini-companion-test-helper)
(require 'gemini-companion-text)

(ert-deftest gemini-companion-text-is-the-same-when-it-comes-back ()
  (gemini-companion-test-with-folder '()
    (dolist (text (list "" "a\r\nb\rc\n" "\uFEFFé\0\u2028"
                        (string ?a #x3FFFE9 ?b)
                        "Content-Type: text/enriched\n\n<bold>b</bold>"))
      (dolist (file '("plain" "packed.gz"))
        (with-temp-buffer
          (insert "hidden\n" text)
          (narrow-to-region 1 2)
          (setq buffer-file-format '(text/enriched))
          (let ((after-insert-file-functions (list (lambda (_) (erase-buffer) 0)))
                (write-region-annotate-functions
                 (list (lambda (&rest _) '((1 . "more"))))))
            (gemini-companion-text-write file)
            (with-temp-buffer
              (gemini-companion-text-insert file 'utf-8-emacs-unix)
              (should (equal (concat "hidden\n" text) (buffer-string)))
              (should (= (point) (point-min))))))))))

(ert-deftest gemini-companion-text-overwrites-no-file-that-must-be-new ()
  (gemini-companion-test-with-folder '(("a" "old"))
    (should-error (gemini-companion-text-write "a" "new" 'exclusive)
                  :type 'file-already-exists)
    (should (equal "old" (gemini-companion-text-read "a")))))

(provide 'gemini-companion-text-test)
;;; gemini-companion-text-test.el ends here
