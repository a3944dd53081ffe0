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
        (kill-emacs-query-functions nil)
        (asked nil))
    (gemini-companion-part-start 'exit)
    (cl-letf (((symbol-function 'gemini-companion-parts-loaded)
               (lambda () '(exit-test)))
              ((symbol-function 'yes-or-no-p)
               (lambda (question) (push question asked) nil)))
      (should (run-hook-with-args-until-failure 'kill-emacs-query-functions))
      (should-not asked)
      (let ((gemini-companion-exit-test-unfinished
             '("Gemini CLI is working" "2 comments were not sent")))
        (should-not (run-hook-with-args-until-failure 'kill-emacs-query-functions))
        (should (equal '("Gemini CLI is working; 2 comments were not sent; exit anyway? ")
                       asked))
        ;; A batch job cannot answer.
        (let ((noninteractive t))
          (should (run-hook-with-args-until-failure 'kill-emacs-query-functions)))))))

(provide 'gemini-companion-exit-test)
;;; gemini-companion-exit-test.el ends here
