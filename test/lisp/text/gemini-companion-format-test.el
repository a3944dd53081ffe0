;;; gemini-companion-format-test.el --- Tests of formats of files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-format)
(require 'gemini-companion-test-helper)

(defun gemini-companion-format-test-of (bytes)
  "Return the format of BYTES, in Latin-1 if not in UTF-8, as a list."
  (let ((format (gemini-companion-format-of-bytes bytes 'iso-latin-1-unix)))
    (list (gemini-companion-format-coding format)
          (gemini-companion-format-mark format)
          (gemini-companion-format-ends format))))

(ert-deftest gemini-companion-format-of-bytes-is-what-shows ()
  (pcase-dolist (`(,bytes . ,format)
                 '(("" nil nil nil)
                   ("a" nil nil nil)
                   ("a\n" nil nil lf)
                   ("a\r\nb\r\n" nil nil crlf)
                   ("a\r\nb\n" nil nil mixed)
                   ("\n\r\n" nil nil mixed)
                   ("\357\273\277a\n" nil t lf)
                   ("\303\251\n" utf-8 nil lf)
                   ("\351\n" iso-latin-1 nil lf)
                   ("\377\376\351\0\r\0\n\0" utf-16le t crlf)
                   ("\376\377\0a\0\n" utf-16be t lf)))
    (ert-info ((format "%S" bytes))
      (should (equal format (gemini-companion-format-test-of bytes))))))

(ert-deftest gemini-companion-format-conversion-is-in-words ()
  (pcase-dolist (`(,from ,to . ,conversion)
                 '(("a\n" "b\r\n" . "line ends LF → CRLF")
                   ("a\r\nb\n" "a\r\nb\r\n" . "line ends mixed → CRLF")
                   ("\351\n" "\303\251\n" . "encoding iso-latin-1 → utf-8")
                   ("\357\273\277a\r\n" "a\n"
                    . "line ends CRLF → LF, byte order mark removed")
                   ("a\n" "\357\273\277a\n" . "byte order mark added")
                   ("a\n" "b" . nil)
                   ("\351\n" "e\n" . nil)
                   ;; Its bytes are others also where all characters are ASCII.
                   ("\377\376a\0\n\0" "a\n"
                    . "encoding utf-16le → utf-8, byte order mark removed")
                   ("a\n" "\376\377\0a\0\n"
                    . "encoding utf-8 → utf-16be, byte order mark added")
                   ("\377\376a\0\n\0" "\376\377\0a\0\n"
                    . "encoding utf-16le → utf-16be")))
    (should (equal conversion
                   (apply #'gemini-companion-format-conversion
                          (mapcar (lambda (bytes)
                                    (gemini-companion-format-of-bytes
                                     bytes 'iso-latin-1-unix))
                                  (list from to))))))
  (should-not (gemini-companion-format-conversion nil nil)))

;;; gemini-companion-format-test.el ends here
