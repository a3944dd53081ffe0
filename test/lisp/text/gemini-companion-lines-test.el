;;; gemini-companion-lines-test.el --- Tests of texts compared by lines  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-lines)

(ert-deftest gemini-companion-lines-are-split-and-joined ()
  :tags '(pure)
  (dolist (text '("" "\n" "a" "a\n" "a\nb" "\n\na\n\n" "é\r\n"))
    (should (equal (string-replace "\r" "" text)
                   (gemini-companion-lines-join
                    (gemini-companion-lines-split text)))))
  (should (equal ["a\n" "b"] (gemini-companion-lines-split "\uFEFFa\r\nb")))
  (should (equal "a\r\nb" (gemini-companion-lines-join ["a\n" "b"] "\r\n")))
  ;; A line without a newline has got one behind it.
  (should (equal "a\nb\n" (gemini-companion-lines-join ["a" "b\n"]))))

(ert-deftest gemini-companion-lines-compares-many-lines-as-few ()
  :tags '(pure)
  (let ((old (vconcat (mapcar (apply-partially #'format "%d\n")
                              (number-sequence 1 1000)))))
    (pcase-dolist (`(,changed . ,regions)
                   '(((3 . "x\n")) ((3 . "x\n") (900 . "y\n") (999 . "z"))))
      (let ((new (copy-sequence old)))
        (aset new (car changed) (cdr changed))
        (pcase-dolist (`(,i . ,line) regions)
          (aset new i line))
        (should (equal (mapcar (pcase-lambda (`(,i . ,_)) (list i (1+ i) i (1+ i)))
                               (cons changed regions))
                       (mapcar (lambda (region)
                                 (list (gemini-companion-lines-region-old region)
                                       (gemini-companion-lines-region-old-end region)
                                       (gemini-companion-lines-region-new region)
                                       (gemini-companion-lines-region-new-end region)))
                               (gemini-companion-lines-compare old new))))))))

;;; gemini-companion-lines-test.el ends here
