;;; gemini-companion-exit-test.el --- Tests of the question before Emacs exits  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-test-helper)
(require 'gemini-companion-exit)

(defvar gemini-companion-exit-test-unfinished nil
  "What the exit of Emacs would end, a list of strings.")

(cl-defmethod gemini-companion-part-unfinished ((_part (eql 'exit-test)))
  "Return `gemini-companion-exit-test-unfinished'."
  gemini-companion-exit-test-unfinished)

(ert-deftest gemini-companion-exit-asks-once-and-names-what-it-ends ()
  (let ((noninteractive nil)
        (asked nil))
    (cl-letf (((symbol-function 'gemini-companion-parts-loaded)
               (lambda () '(exit-test)))
              ((symbol-function 'yes-or-no-p)
               (lambda (question) (push question asked) nil)))
      (should (gemini-companion-exit--allowed-p))
      (should-not asked)
      (let ((gemini-companion-exit-test-unfinished
             '("Gemini CLI is working" "2 comments were not sent")))
        (should-not (gemini-companion-exit--allowed-p))
        (should (equal '("Gemini CLI is working; 2 comments were not sent; exit anyway? ")
                       asked))
        ;; A batch job cannot answer.
        (let ((noninteractive t))
          (should (gemini-companion-exit--allowed-p)))))))

(provide 'gemini-companion-exit-test)
;;; gemini-companion-exit-test.el ends here
