;;; gemini-companion-outcome-test.el --- Tests of what reaches a CLI  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Outcomes that the server could not deliver.  There is no server here, so
;; none ever is.

;;; Code:

(require 'gemini-companion-outcome)
(require 'gemini-companion-review-test-helper)

(defmacro gemini-companion-outcome-test-with (files &rest body)
  "Send outcomes while BODY is run in a directory with FILES."
  (declare (indent 1) (debug t))
  `(let ((inhibit-message t))
     (gemini-companion-test-with-diffs ,files
         (gemini-companion-test-diff-start (lambda (_) #'ignore)
                                      #'gemini-companion-outcome-send)
         (gemini-companion-outcome-forget)
       ,@body)))

(defun gemini-companion-outcome-test-warnings ()
  "Return the text of the warnings, and delete it."
  (if (not (get-buffer "*Warnings*"))
      ""
    (prog1 (gemini-companion-test-text "*Warnings*")
      (kill-buffer "*Warnings*"))))

(ert-deftest gemini-companion-outcome-undelivered-keeps-what-was-accepted ()
  (gemini-companion-outcome-test-with '(("a\u202E" "old\n"))
    (let ((diff (gemini-companion-test-open
                 "a\u202E" "new\n" 1 '(:id "one" :pid 7 :directory "/web"))))
      (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
        (insert "mine "))
      (gemini-companion-diff-accept diff)
      (gemini-companion-outcome-undelivered 1)
      (let ((warning (gemini-companion-outcome-test-warnings)))
        ;; The beginning of a long name is left out.
        (should (string-search "/a\\u202E was not written" warning))
        (should (string-search "web (7)" warning)))
      (save-window-excursion
        (gemini-companion-last-proposal)
        (should (equal "mine new\n"
                       (gemini-companion-test-text (window-buffer))))
        (kill-buffer (window-buffer)))
      ;; Once is enough.
      (gemini-companion-outcome-undelivered 1)
      (should (equal "" (gemini-companion-outcome-test-warnings))))))

;;; gemini-companion-outcome-test.el ends here
