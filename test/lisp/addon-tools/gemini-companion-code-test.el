;;; gemini-companion-code-test.el --- Tests of reading source code  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-code)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-code-new-errors-only-a-syntax-error-hides-others ()
  (let ((new (lambda (errors old-errors lines old-lines)
               (mapcar (lambda (located)
                         (car (gemini-companion-code-located-error located)))
                       (gemini-companion-code-new-errors
                        errors (string-join lines "\n")
                        (list old-errors) (string-join old-lines "\n"))))))
    (pcase-dolist
        (`(,gone ,expected)
         '(("Import \"os\" could not be resolved" (1 2))
           ("invalid syntax" nil)
           ("'(' was never closed" nil)
           ("Unindent not expected" nil)
           ("Too many errors emitted, stopping now" nil)))
      (should (equal expected
                     (funcall new '((1 "undefined name 'os'")
                                    (2 "undefined name 'os'"))
                              `((1 ,gone))
                              '("os.x" "os.y") '("import os" "os.x" "os.y")))))
    ;; An indentation that has changed makes a new line.
    (should (equal '(2) (funcall new '((2 "unexpected indent"))
                                 '((1 "invalid syntax"))
                                 '("x" "    y") '("x x" "y"))))))

;;; gemini-companion-code-test.el ends here
