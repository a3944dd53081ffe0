;;; gemini-companion-part-test.el --- Tests of the parts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-part)

(defvar gemini-companion-part-test-hook nil
  "A hook of the part of these tests.")

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'part-test)))
  "Return two functions of one hook."
  '((gemini-companion-part-test-hook ignore)
    (gemini-companion-part-test-hook identity 90)))

(ert-deftest gemini-companion-part-is-on-its-hooks-while-it-runs ()
  (let ((gemini-companion-part-test-hook nil))
    ;; A part may be started twice.
    (dotimes (_ 2)
      (gemini-companion-part-start 'part-test)
      (should (equal '(ignore identity) gemini-companion-part-test-hook)))
    (gemini-companion-part-stop 'part-test)
    (should-not gemini-companion-part-test-hook)))

(ert-deftest gemini-companion-part-needs-no-method ()
  (gemini-companion-part-start 'nothing)
  (gemini-companion-part-ready 'nothing 'started)
  (should-not (gemini-companion-part-hooks 'nothing))
  (should-not (gemini-companion-part-lighter 'nothing))
  (should-not (gemini-companion-part-findings 'nothing "/"))
  (gemini-companion-part-stop 'nothing))

;;; gemini-companion-part-test.el ends here
