;;; gemini-companion-session-test.el --- Tests of the sessions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

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
    (gemini-companion-session-stop)))

(ert-deftest gemini-companion-session-is-named-by-program-directory-and-process ()
  "The process is needed where another CLI has the same name."
  (let ((gemini-companion-session--all
         '((:id "1" :client "gemini" :pid 8 :directory "/x/web/"))))
    (pcase-dolist
        (`(,name . ,facts)
         '(("Qwen Code (web)" :client "qwen" :pid 7 :directory "/home/web/")
           ("Gemini CLI (web, process 7)"
            :client "gemini" :pid 7 :directory "/home/web/")
           ("Gemini CLI (ssh:far)" :client "gemini" :place "/ssh:far:")
           ("the CLI (\\u202Eweb-...0123456789a\\u200B)"
            :directory "/x/\u202Eweb-0123456789abcdef0123456789a\u200B/")
           ("Gemini CLI (process 7)" :client "gemini" :pid 7)
           ("the CLI (session 01234567)")))
      (should (equal name (gemini-companion-session-name
                           (append '(:id "0123456789") facts))))))
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
              ;; Of two on a host, it may be the terminal of either.
              (setq-local gemini-companion-place-terminal "/ssh:far:/srv/")
              (let ((all '((:id "1" :place "/ssh:far:")
                           (:id "2" :place "/ssh:far:"))))
                (dolist (sessions (list all (last all) nil))
                  (gemini-companion-session-update sessions)
                  (should (eq (null (cdr sessions))
                              (bufferp (gemini-companion-session-terminal
                                        (cadr all)))))))
              (signal-process pid 'SIGTERM)))
        (delete-process process)))))

;;; gemini-companion-session-test.el ends here
