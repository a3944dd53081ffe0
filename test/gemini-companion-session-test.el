;;; gemini-companion-session-test.el --- Tests of the sessions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Which Gemini CLIs are connected, and what they are called.

;;; Code:

(require 'ert)
(require 'gemini-companion-session)

(ert-deftest gemini-companion-session-counts-a-cli-once ()
  "A CLI that was enabled anew has two sessions with one process."
  (unwind-protect
      (progn
        (gemini-companion-session-update
         '((:id "a" :pid 7) (:id "b" :pid 7) (:id "c") (:id "d")))
        (should (equal '("a" "c" "d")
                       (mapcar (lambda (session) (plist-get session :id))
                               (gemini-companion-sessions)))))
    (gemini-companion-session-update nil)))

(ert-deftest gemini-companion-session-is-called-by-folder-and-process ()
  "What is not known is left out."
  (should (equal "web (7)" (gemini-companion-session-name
                            '(:id "abc" :pid 7 :directory "/home/web/"))))
  (should (equal "process 7" (gemini-companion-session-name
                              '(:id "abc" :pid 7))))
  (should (equal "session 01234567"
                 (gemini-companion-session-name '(:id "0123456789")))))

;;; gemini-companion-session-test.el ends here
