;;; gemini-companion-session-test.el --- Tests of the sessions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Which Gemini CLIs are connected, and what they are called.

;;; Code:

(require 'ert)
(require 'gemini-companion-session)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-session-counts-a-cli-once ()
  "A CLI that was enabled anew has two sessions with one process."
  (unwind-protect
      (progn
        (gemini-companion-session-update
         '((:id "a" :pid 7) (:id "b" :pid 7) (:id "c") (:id "d")))
        (should (equal '("a" "c" "d")
                       (mapcar (lambda (session) (plist-get session :id))
                               (gemini-companion-sessions)))))
    (gemini-companion-session-forget)))

(ert-deftest gemini-companion-session-keeps-its-facts-over-a-restart ()
  "The new server knows neither since when a CLI is connected nor its version."
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

(ert-deftest gemini-companion-session-is-called-by-folder-and-process ()
  "What is not known is left out."
  (should (equal "web (7)" (gemini-companion-session-name
                            '(:id "abc" :pid 7 :directory "/home/web/"))))
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

(ert-deftest gemini-companion-session-knows-gemini-by-its-command ()
  (pcase-dolist (`(,command . ,expected)
                 '(("node /usr/bin/gemini" . t) ("gemini --acp" . t)
                   ("/opt/node --max-old-space-size=1 /x/bin/gemini -p a" . t)
                   ("node /x/@google/gemini-cli/bundle/gemini.js" . t)
                   ("/usr/bin/node /usr/bin/gemini --version" . nil)
                   ("node /x/gemini-mcp/server.js" . nil)
                   ("emacs gemini" . nil) ("bash -c gemini" . nil)
                   ("vi gemini.js" . nil) ("" . nil) (nil . nil)))
    (ert-info ((format "%s" command))
      (should (eq expected (and (gemini-companion-session-cli-p command) t))))))

(ert-deftest gemini-companion-session-knows-the-terminal-of-a-grandchild ()
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
