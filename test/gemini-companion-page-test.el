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

(ert-deftest gemini-companion-page-keeps-markers-around-what-differs ()
  (with-temp-buffer
    (gemini-companion-page-replace
     (gemini-companion-page-test-text "a\n" "b\none\n" "c\n"))
    (let ((marks (mapcar (lambda (line)
                           (goto-char (point-min))
                           (search-forward line)
                           (cons line (copy-marker (match-beginning 0))))
                         '("a" "b" "c"))))
      (gemini-companion-page-replace
       (gemini-companion-page-test-text "a\n" "b\nno more\n" "c\n"))
      (should (equal "a\nb\nno more\nc\n"
                     (buffer-substring-no-properties (point-min) (point-max))))
      (pcase-dolist (`(,line . ,mark) marks)
        (goto-char mark)
        (should (looking-at-p line))
        (should (equal line (get-text-property
                             mark 'gemini-companion-section)))))))

;;; gemini-companion-page-test.el ends here
