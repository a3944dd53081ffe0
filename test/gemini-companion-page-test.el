;;; gemini-companion-page-test.el --- Tests of buffers written as a whole  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-page)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-page-keeps-point-and-mark-at-their-lines ()
  (with-temp-buffer
    (pcase-dolist (`(,text ,place)
                   '(("a\nsame\nb\nsame\nrest\nrest\n" "b\nsa|me\n")
                     ("new\na\nmore\nsame\nb\nsame\nrest\nrest\n" "b\nsa|me\n")
                     ("a\nsame\nb\nsafe\nmore\n" "b\nsa|fe\n")
                     ("a\nsame\nb\n" "b\n|")
                     ("a\n" "a\n|")))
      (gemini-companion-page-replace text)
      (when (= 1 (point))
        (search-forward "b\nsa")
        (set-mark (point)))
      (ert-info ((format "%S" text))
        (save-excursion
          (insert "|")
          (should (string-search place (buffer-string)))
          (delete-char -1)
          (should (= (point) (mark t))))))))

(ert-deftest gemini-companion-page-keeps-markers-around-what-differs ()
  (with-temp-buffer
    (gemini-companion-page-replace "a\nb\none\nc\n")
    (let ((marks (mapcar (lambda (line)
                           (goto-char (point-min))
                           (search-forward line)
                           (cons line (copy-marker (match-beginning 0))))
                         '("a" "b" "c"))))
      (gemini-companion-page-replace (propertize "a\nb\nno more\nc\n" 'face 'bold))
      (should (equal-including-properties
               (propertize "a\nb\nno more\nc\n" 'face 'bold) (buffer-string)))
      (pcase-dolist (`(,line . ,mark) marks)
        (goto-char mark)
        (should (looking-at-p line))))))

;;; gemini-companion-page-test.el ends here
