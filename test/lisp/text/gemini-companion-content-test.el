;;; gemini-companion-content-test.el --- Tests of what a file has  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-content)

(ert-deftest gemini-companion-content-of-no-file-or-of-unknown-bytes-has-no-format ()
  (pcase-dolist (`(,bytes ,known ,none ,has) '((none t t nil)
                                               (unknown nil nil nil)
                                               ("\303\244\n" t nil t)))
    (let ((content (gemini-companion-content-make :bytes bytes)))
      (should (eq known (gemini-companion-content-known-p content)))
      (should (eq none (gemini-companion-content-none-p content)))
      (should (eq has (gemini-companion-content-bytes-p content)))
      (should (eq has (and (gemini-companion-content-format content) t))))))

(ert-deftest gemini-companion-content-is-read-as-emacs-does-unless-it-is-utf-8 ()
  (let* ((bytes (encode-coding-string "ä\nb\n" 'latin-1))
         (content (gemini-companion-content-read bytes 'iso-latin-1-unix)))
    (should (equal "ä\nb\n" (gemini-companion-content-text content)))
    (should (equal "é\n" (gemini-companion-content-text
                          (gemini-companion-content-with content "\351\n"))))
    ;; A CLI may convert the file.
    (should (equal "é\n" (gemini-companion-content-text
                          (gemini-companion-content-with content "\303\251\n"))))
    (should (equal "é\n" (gemini-companion-content-text
                          (gemini-companion-content-read "\303\251\n"
                                                         'iso-latin-1-unix))))))

(ert-deftest gemini-companion-content-of-a-text-has-its-bytes-or-none ()
  (let ((content (gemini-companion-content-make :bytes "a\n"
                                                :coding 'iso-latin-1-unix)))
    (should (equal "\344\n" (gemini-companion-content-bytes
                             (gemini-companion-content-encoded content "ä\n"))))
    ;; Neither what is not in Latin-1, nor what was replaced, can be known.
    (dolist (text '("大\n" "\uFFFD\n"))
      (should-not (gemini-companion-content-known-p
                   (gemini-companion-content-encoded content text))))))

(provide 'gemini-companion-content-test)
;;; gemini-companion-content-test.el ends here
