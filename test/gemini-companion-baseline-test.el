;;; gemini-companion-baseline-test.el --- Tests of what nobody has reviewed  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The judge of the random tests knows whose each line is, as all lines differ:
;; those of the file begin with b, those of a CLI with c, of others with u.

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

;;;; By example

(ert-deftest gemini-companion-baseline-lines-alike-are-taken-for-those-of-before ()
  :tags '(pure)
  (let* ((lines #'gemini-companion-baseline-test-lines)
         (text (funcall lines "f {" "  a" "}"))
         (written (funcall lines "f {" "  a" "}" "" "g {" "  b" "}"))
         (baseline (gemini-companion-baseline-after-write nil text written)))
    (should (= 1 (length (gemini-companion-baseline-changes baseline written))))
    ;; Which closing brace is left when it is undone, no comparison knows.
    (should-not (gemini-companion-baseline-changes baseline text))
    (should-not (gemini-companion-baseline-changes
                 baseline (funcall lines "f {" "  a" "  mine" "}")))))

(ert-deftest gemini-companion-baseline-a-line-that-is-brought-back-is-no-change ()
  :tags '(pure)
  (let* ((lines #'gemini-companion-baseline-test-lines)
         (baseline (gemini-companion-baseline-after-write
                    nil (funcall lines "1" "x" "y" "z" "2")
                    (funcall lines "1" "X" "Y" "Z" "2"))))
    (pcase-dolist (`(,now ,folded)
                   '((("1" "X" "y" "Z" "2") ("1" "x" "y" "z" "2"))
                     (("1" "x" "Y" "Z" "2") ("1" "x" "y" "z" "2"))
                     (("1" "x" "mine" "y" "Z" "2") ("1" "x" "mine" "y" "z" "2"))))
      (should (equal (apply lines folded)
                     (gemini-companion-baseline-folded baseline (apply lines now)))))))

(ert-deftest gemini-companion-baseline-the-last-newline-is-part-of-its-line ()
  :tags '(pure)
  (let* ((baseline (gemini-companion-baseline-after-write nil ["1\n" "2"] ["1\n" "2\n"]))
         (changes (gemini-companion-baseline-changes baseline ["1\n" "2\n"])))
    (should (equal '((1 2 ("2")))
                   (mapcar #'gemini-companion-baseline-test-key changes)))
    (should (equal ["1\n" "2"]
                   (gemini-companion-baseline-undo changes ["1\n" "2\n"])))
    ;; Another line has it by now.
    (let* ((now ["1\n" "2\n" "3\n"])
           (folded (gemini-companion-baseline-folded baseline now)))
      (should (equal "1\n2\n3\n" (gemini-companion-lines-join folded))))))

(ert-deftest gemini-companion-baseline-keeps-what-was-accepted ()
  :tags '(pure)
  (let* ((lines #'gemini-companion-baseline-test-lines)
         (text (funcall lines "1" "2" "3" "4" "5"))
         (first (funcall lines "1" "two" "3" "4" "5"))
         (baseline (gemini-companion-baseline-after-write nil text first)))
    (pcase-dolist (`(,accepted ,changes)
                   '((("1" "two" "3" "4" "five") ((1 2 ("2\n"))))
                     ;; It overlaps what nobody has reviewed.
                     (("1" "TWO" "3" "4" "five") ((1 2 ("2\n"))))
                     (("1" "two" "more" "3" "4" "5") ((1 3 ("2\n"))))))
      (let ((written (apply lines accepted)))
        (should (equal changes
                       (mapcar #'gemini-companion-baseline-test-key
                               (gemini-companion-baseline-changes
                                (gemini-companion-baseline-after-review
                                 baseline first written)
                                written))))))))

;;;; At random

(defun gemini-companion-baseline-test-edit (lines number whose)
  "Return LINES, a list, with one inserted, changed or deleted at random.
A new line is WHOSE, a letter, and NUMBER."
  (let ((i (random (length lines)))
        (new (list (format "%s%d\n" whose number))))
    (pcase (random 5)
      ((or 0 1) (append (seq-take lines i) new (nthcdr i lines)))
      ((or 2 3) (append (seq-take lines i) new (nthcdr (1+ i) lines)))
      (_ (append (seq-take lines i) (nthcdr (1+ i) lines))))))

(defun gemini-companion-baseline-test-wrong (baseline now lost)
  "Return what is wrong with the changes of BASELINE in NOW, or nil.
LOST are the lines of b and u that others have deleted or changed."
  (let* ((changes (gemini-companion-baseline-changes baseline now))
         (folded (gemini-companion-baseline-folded baseline now))
         (result (append folded nil))
         (keys (mapcar #'gemini-companion-baseline-test-key changes)))
    (cond
     ((seq-some (lambda (line) (string-prefix-p "c" line)) result)
      'lines-of-a-cli-left)
     ((seq-difference (seq-remove (lambda (line) (string-prefix-p "c" line))
                                  (append now nil))
                      result)
      'lines-lost)
     ((seq-intersection lost result) 'deleted-lines-back)
     ((not (= (length result) (length (seq-uniq result)))) 'doubled)
     ((not (equal folded (gemini-companion-baseline-undo changes now)))
      'undone-otherwise)
     ((gemini-companion-baseline-changes baseline folded) 'changes-after-undo)
     ((gemini-companion-baseline-changes
       baseline (vconcat (cl-loop for i below 30 collect (format "o%d\n" i))))
      'changes-in-another-branch)
     (t
      (let ((kept baseline)
            (left (copy-sequence keys)))
        (while (and left
                    (let ((change (seq-random-elt
                                   (gemini-companion-baseline-changes kept now))))
                      (setq kept (gemini-companion-baseline-keep kept (list change))
                            left (delete (gemini-companion-baseline-test-key change)
                                         left))
                      (equal left (mapcar #'gemini-companion-baseline-test-key
                                          (gemini-companion-baseline-changes
                                           kept now))))))
        (and left 'kept-otherwise))))))

(ert-deftest gemini-companion-baseline-knows-whose-each-line-is ()
  :tags '(pure)
  (let ((seed (or (getenv "GC_SEED") (format "%s" (random))))
        (number 0))
    (random seed)
    (dotimes (_ (string-to-number (or (getenv "GC_TURNS") "100")))
      (let ((now (cl-loop for i below 40 collect (format "b%d\n" i)))
            (lost nil)
            (baseline nil))
        (dotimes (_ (+ 2 (random 4)))
          (let ((before now))
            (dotimes (_ (1+ (random 3)))
              (setq now (gemini-companion-baseline-test-edit
                         now (cl-incf number) "c")))
            (setq baseline (gemini-companion-baseline-after-write
                            baseline (vconcat before) (vconcat now))))
          (dotimes (_ (random 4))
            (let ((before now))
              (setq now (gemini-companion-baseline-test-edit
                         now (cl-incf number) "u")
                    lost (append (seq-difference before now) lost)))))
        (ert-info ((format "GC_SEED=%s\n%S\n%S\n%S" seed
                           (gemini-companion-baseline-text baseline)
                           (gemini-companion-baseline-written baseline) now))
          (should-not (gemini-companion-baseline-test-wrong
                       baseline (vconcat now) lost)))))))

;;; gemini-companion-baseline-test.el ends here
