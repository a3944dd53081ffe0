;;; gemini-companion-page-test.el --- Tests of buffers written as a whole  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-page)
(require 'gemini-companion-test-helper)

(defun gemini-companion-page-test-text (&rest sections)
  "Return a text of SECTIONS, each a string of lines that begins with its name."
  (mapconcat (lambda (text)
               (propertize text 'gemini-companion-section (substring text 0 1)))
             sections ""))

(ert-deftest gemini-companion-page-keeps-point-and-mark-at-their-lines ()
  (with-temp-buffer
    (pcase-dolist (`(,sections ,place)
                   '((("a\nsame\n" "b\nsame\nrest\nrest\n") "b\nsa|me\n")
                     (("new\n" "a\nmore\nsame\n" "b\nsame\nrest\nrest\n") "b\nsa|me\n")
                     (("a\nsame\n" "b\n") "b|\n")
                     (("a\nsame\n") "a\nsame\n|")))
      (gemini-companion-page-replace
       (apply #'gemini-companion-page-test-text sections))
      (when (= 1 (point))
        (search-forward "b\nsa")
        (set-mark (point)))
      (ert-info ((format "%S" sections))
        (save-excursion
          (insert "|")
          (should (string-search place (buffer-string)))
          (delete-char -1)
          (should (= (point) (mark t))))))))

(provide 'gemini-companion-page-test)
;;; gemini-companion-page-test.el ends here
