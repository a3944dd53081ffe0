;;; gemini-companion-outcome-test.el --- Tests of what reaches a CLI  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Outcomes that the server could not deliver.  There is no server here, so
;; none ever is.

;;; Code:

(require 'gemini-companion-outcome)
(require 'gemini-companion-review-test-helper)

(ert-deftest gemini-companion-outcome-undelivered-keeps-what-was-accepted ()
  (gemini-companion-test-with-diffs '(("a\u202E" "old\n"))
      (gemini-companion-test-diff-start (lambda (_) #'ignore)
                                        #'gemini-companion-outcome-send)
      (gemini-companion-outcome-stop)
    (let ((inhibit-message t))
      (with-current-buffer
          (gemini-companion-diff-proposal-buffer
           (gemini-companion-test-open
            "a\u202E" "new\n" 1 '(:id "one" :pid 7 :directory "/web")))
        (insert "mine "))
      (gemini-companion-diff-accept (car (gemini-companion-diffs)))
      ;; Once is enough.
      (dotimes (_ 2)
        (gemini-companion-outcome-undelivered 1))
      (let ((warnings (gemini-companion-test-text "*Warnings*")))
        (kill-buffer "*Warnings*")
        ;; The beginning of a long name is left out.
        (should (string-match-p "/a\\\\u202E was not written" warnings))
        (should (string-search "the CLI (web) is" warnings))
        (should (= 2 (length (split-string warnings "was not written")))))
      (should (equal "mine new\n" (gemini-companion-test-last-proposal))))))

;;; gemini-companion-outcome-test.el ends here
