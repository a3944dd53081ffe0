;;; gemini-companion-coding-test.el --- Tests of files that are not UTF-8  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-coding)

(ert-deftest gemini-companion-coding-lost-counts-what-is-not-written ()
  (pcase-dolist (`(,text ,coding ,count)
                 '(("abc é" nil 0) ("a\uFFFDb\uFFFD" nil 2) ("é→😀" iso-latin-1-unix 2)
                   ("é\uFFFD→" iso-latin-1-unix 2) ("你→\uFFFD" gb18030-unix 1)
                   ("é \x3fffe9" nil 1) ("\uFFFD" iso-latin-1-unix 1)
                   ("" iso-latin-1-unix 0)))
    (should (= count (gemini-companion-coding-lost text coding)))))

(ert-deftest gemini-companion-coding-sendable-has-only-characters ()
  (should (equal "é \uFFFD" (gemini-companion-coding-sendable
                             (string-to-multibyte "é \x3fffe9"))))
  (should (equal "é" (gemini-companion-coding-sendable "é"))))

(ert-deftest gemini-companion-coding-of-a-file-is-the-one-in-which-emacs-visits-it ()
  (pcase-dolist (`(,name ,bytes ,base)
                 '(("a" "-*- coding: koi8-r -*-\n\317\360\350\n" cyrillic-koi8)
                   ("a" "\377\376a\0\n\0" utf-16le-with-signature)
                   ("a" "caf\351\n" iso-latin-1)))
    (with-coding-priority '(utf-8 iso-latin-1)
      (let ((coding (gemini-companion-coding-of-file name bytes)))
        (should (eq base (coding-system-base coding)))
        (should (eq 0 (coding-system-eol-type coding)))))))

(provide 'gemini-companion-coding-test)
;;; gemini-companion-coding-test.el ends here
