;;; gemini-companion-garbage-test.el --- Tests of the collection of garbage  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-garbage)

(ert-deftest gemini-companion-garbage-is-collected-later ()
  (let ((gc-cons-threshold 800000))
    (should (equal '(value 268435456)
                   (gemini-companion-garbage-later
                     (ignore 'first)
                     (list 'value gc-cons-threshold))))
    (should (= 800000 gc-cons-threshold))))

(ert-deftest gemini-companion-garbage-leaves-a-greater-threshold ()
  (let ((gc-cons-threshold most-positive-fixnum))
    (should (= most-positive-fixnum
               (gemini-companion-garbage-later gc-cons-threshold)))))

;;; gemini-companion-garbage-test.el ends here
