;;; gemini-companion-session-test.el --- Tests of the sessions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The connected CLIs and their names.

;;; Code:

(require 'ert)
(require 'gemini-companion-session)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-session-counts-a-cli-once ()
  "A CLI that connects again has two sessions with one process."
  (unwind-protect
      (progn
        (gemini-companion-session-update
         '((:id "a" :pid 7) (:id "b" :pid 7) (:id "c") (:id "d")))
        (should (equal '("a" "c" "d")
                       (mapcar (lambda (session) (plist-get session :id))
                               (gemini-companion-sessions)))))
    (gemini-companion-session-forget)))

(ert-deftest gemini-companion-session-keeps-its-facts-over-a-restart ()
  "The new server does not know when a CLI connected, nor its version."
  (unwind-protect
      (progn
        (gemini-companion-session-update
         '((:id "a" :since 1 :version "0.61.0") (:id "b" :since 2)))
        (gemini-companion-session-update nil)
        (gemini-companion-session-update '((:id "b" :since 8)))
        (gemini-companion-session-update
         '((:id "a" :since 9) (:id "b" :since 8) (:id "c" :since 9)))
        (should (equal '(("a" 1 "0.61.0") ("b" 2 nil) ("c" 9 nil))
                       (mapcar (lambda (session)
                                 (mapcar (lambda (key) (plist-get session key))
                                         '(:id :since :version)))
                               (gemini-companion-sessions)))))
    (gemini-companion-session-forget)))

(ert-deftest gemini-companion-session-is-named-by-directory-and-process ()
  "Unknown parts are omitted."
  (should (equal "web (7)" (gemini-companion-session-name
                            '(:id "abc" :pid 7 :directory "/home/web/"))))
  (should (equal "\\u202Eweb-...0123456789a\\u200B (7)"
                 (gemini-companion-session-name
                  '(:id "abc" :pid 7 :directory "/x/\u202Eweb-0123456789abcdef0123456789a\u200B/"))))
  (should (equal "process 7" (gemini-companion-session-name
                              '(:id "abc" :pid 7))))
  (should (equal "session 01234567"
                 (gemini-companion-session-name '(:id "0123456789")))))

(ert-deftest gemini-companion-session-names-its-program ()
  (should (equal "Qwen Code web (7)"
                 (gemini-companion-session-name
                  '(:id "abc" :client "qwen" :pid 7 :directory "/home/web/"))))
  (should (equal "Gemini CLI process 7"
                 (gemini-companion-session-name
                  '(:id "abc" :client "gemini" :pid 7))))
  (should (equal "Qwen Code"
                 (gemini-companion-session-title '(:client "qwen"))))
  (should (equal "the CLI" (gemini-companion-session-title '(:id "abc")))))

(ert-deftest gemini-companion-session-finds-the-terminal-of-a-grandchild ()
  (with-temp-buffer
    (let ((process (start-process "terminal" (current-buffer) "sh" "-c"
                                  "sh -c 'sleep 60 & echo $!; wait'; :")))
      (set-process-query-on-exit-flag process nil)
      (unwind-protect
          (progn
            (gemini-companion-test-eventually
              (string-match-p "[0-9]+\n" (buffer-string)))
            (let ((pid (string-to-number (buffer-string))))
              (should (eq (current-buffer)
                          (gemini-companion-session-terminal
                           (list :pid pid))))
              (should-not (gemini-companion-session-terminal
                           (list :pid (emacs-pid))))
              (signal-process pid 'SIGTERM)))
        (delete-process process)))))

;;; gemini-companion-session-test.el ends here
