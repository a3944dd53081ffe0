;;; gemini-companion-comment-opening-test.el --- Tests of what begins a prompt  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-comment-opening)

(ert-deftest gemini-companion-comment-opening-is-one-for-each-cli ()
  (let ((one (gemini-companion-session-make :id "one" :pid 11))
        (two (gemini-companion-session-make :id "two" :pid 12))
        (typed '("Good" " work" "/quit"))
        (gemini-companion-comment-functions nil))
    (cl-letf (((symbol-function 'read-string)
               (lambda (_prompt &optional previous)
                 (concat previous (pop typed)))))
      (unwind-protect
          (progn
            (gemini-companion-comment-opening-read one)
            (gemini-companion-comment-opening-read one)
            (should (equal "Good work" (gemini-companion-comment-opening one)))
            (should-not (gemini-companion-comment-opening two))
            (should-error (gemini-companion-comment-opening-read two) :type 'user-error)
            (should-not (gemini-companion-comment-opening two))
            (gemini-companion-comment-opening-set one " ")
            (should-not (gemini-companion-comment-opening one)))
        (gemini-companion-part-stop 'comment)))))

;;; gemini-companion-comment-opening-test.el ends here
