;;; gemini-companion-baseline-test.el --- Tests of what is left of an edit  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-baseline)
(require 'gemini-companion-lines)

(defun gemini-companion-baseline-test-lines (&rest lines)
  "Return the vector of LINES, strings without a newline."
  (vconcat (mapcar (lambda (line) (concat line "\n")) lines)))

(defun gemini-companion-baseline-test-key (change)
  "Return the place and the lines of CHANGE, a list."
  (list (gemini-companion-baseline-change-start change)
        (gemini-companion-baseline-change-end change)
        (gemini-companion-baseline-change-lines change)))

(defun gemini-companion-baseline-test-edit (before after)
  "Return the baseline of an edit from BEFORE to AFTER, vectors of lines."
  (let ((hunks (mapcar
                (pcase-lambda ((cl-struct gemini-companion-lines-region
                                          old old-end new new-end))
                  (gemini-companion-hunk-make (1+ old) (- old-end old)
                                              (1+ new) (- new-end new)))
                (gemini-companion-lines-compare before after))))
    (gemini-companion-baseline-of-hunks before after hunks hunks)))

(ert-deftest gemini-companion-baseline-lines-alike-are-taken-for-those-of-before ()
  :tags '(pure)
  (let* ((lines #'gemini-companion-baseline-test-lines)
         (text (funcall lines "f {" "  a" "}"))
         (written (funcall lines "f {" "  a" "}" "" "g {" "  b" "}"))
         (baseline (gemini-companion-baseline-test-edit text written)))
    (should (= 1 (length (gemini-companion-baseline-changes baseline written))))
    ;; Which closing brace is left when it is undone, no comparison knows.
    (should-not (gemini-companion-baseline-changes baseline text))
    (should-not (gemini-companion-baseline-changes
                 baseline (funcall lines "f {" "  a" "  mine" "}")))))

(ert-deftest gemini-companion-baseline-a-line-that-is-brought-back-is-no-change ()
  :tags '(pure)
  (let* ((lines #'gemini-companion-baseline-test-lines)
         (baseline (gemini-companion-baseline-test-edit
                    (funcall lines "1" "x" "y" "z" "2")
                    (funcall lines "1" "X" "Y" "Z" "2"))))
    (pcase-dolist (`(,now ,without)
                   '((("1" "X" "y" "Z" "2") ("1" "x" "y" "z" "2"))
                     (("1" "x" "Y" "Z" "2") ("1" "x" "y" "z" "2"))
                     (("1" "x" "mine" "y" "Z" "2") ("1" "x" "mine" "y" "z" "2"))))
      (let ((now (apply lines now)))
        (should (equal (apply lines without)
                       (gemini-companion-lines-without
                        (gemini-companion-baseline-changes baseline now) now)))))))

(ert-deftest gemini-companion-baseline-the-last-newline-is-part-of-its-line ()
  :tags '(pure)
  (let* ((baseline (gemini-companion-baseline-test-edit ["1\n" "2"] ["1\n" "2\n"]))
         (changes (gemini-companion-baseline-changes baseline ["1\n" "2\n"])))
    (should (equal '((1 2 ("2")))
                   (mapcar #'gemini-companion-baseline-test-key changes)))
    (should (equal ["1\n" "2"]
                   (gemini-companion-lines-without changes ["1\n" "2\n"])))))

;;; gemini-companion-baseline-test.el ends here
