;;; gemini-companion-resume-test.el --- Tests of lists of conversations  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What is shown of what a CLI prints, with a script in its place.  test/e2e
;; resumes conversations of the real CLIs, and restores them with a desktop.

;;; Code:

(require 'desktop)
(require 'gemini-companion-resume)
(require 'gemini-companion-test-helper)

(defun gemini-companion-resume-test-listed (client output status)
  "Return the list for CLIENT, which prints OUTPUT and exits with STATUS."
  (gemini-companion-test-with-directory `(("output" ,output))
    (let* ((default-directory directory)
           (command (list "sh" "-c" (format "cat output; exit %d" status)))
           (gemini-companion-run-commands `((,client . ,command)))
           (gemini-companion-run-client client))
      (save-window-excursion
        (gemini-companion-resume)
        (unwind-protect
            (progn
              (gemini-companion-test-eventually
                (not (string-prefix-p "Listing" (buffer-string))))
              (should (eq truncate-lines
                          (not (string-search "conversation" (buffer-string)))))
              (replace-regexp-in-string " +$" "" (buffer-string)))
          (kill-buffer))))))

(ert-deftest gemini-companion-resume-lists-the-newest-conversation-first ()
  (should (equal (concat " Just now          Say \"x\" (now) [1]\n"
                         " 2 days ago, now   Fix the login\\u202E\n")
                 (gemini-companion-resume-test-listed
                  "gemini"
                  "\nAvailable sessions for this project (2):
  1. Fix the login\u202e (2 days ago, now) [4c48ef04-d0ec]
  2. Say \"x\" (now) [1] (Just now) [2be1dce2-9491]\n"
                  0)))
  (should (equal (concat " 2026-11-22 16:49  Fix the thing\n"
                         " 2026-11-21 16:49  Add a test and more\n"
                         " 2026-11-21 16:49\n")
                 (with-environment-variables (("TZ" "UTC"))
                   (gemini-companion-resume-test-listed
                    "qwen"
                    "{\"sessionId\":\"c4\",\"mtime\":1795366152296.9111,\
\"prompt\":\"x\",\"customTitle\":\"Fix the thing\"}
{\"sessionId\":\"c5\",\"mtime\":1795279752296.9111,\
\"prompt\":\"Add a test\\nand more\",\"customTitle\":null}
{not JSON}
{\"sessionId\":\"c6\",\"mtime\":1795279752296.9111,\"prompt\":null}\n"
                    0)))))

(ert-deftest gemini-companion-resume-shows-why-nothing-is-listed ()
  (pcase-dolist
      (`(,client ,output ,status ,text)
       '(("gemini" "No previous sessions found for this project.\n" 0
          "Gemini CLI (.*) has no conversation to resume; \
M-x gemini-companion-run begins one\n")
         ("qwen" "Usage\nUnknown command\n" 1
          "Qwen Code (.*) cannot list its conversations: Unknown command\n")
         ("gemini" "" 7
          "Gemini CLI (.*) cannot list its conversations: exit status 7\n")))
    (should (string-match-p (format "\\`%s\\'" text)
                            (gemini-companion-resume-test-listed
                             client output status)))))

(ert-deftest gemini-companion-resume-restores-no-modes-of-a-terminal ()
  (gemini-companion-test-with-directory ()
    (dlet ((desktop-buffer-ok-count 0) (desktop-first-buffer nil))
      (with-current-buffer
          (desktop-create-buffer 208 nil "*gemini*" 'gemini-companion-resume-mode
                                 '(overwrite-mode) 1 nil nil
                                 (list :client "gemini" :directory directory))
        (should-not overwrite-mode)
        (kill-buffer)))))

;;; gemini-companion-resume-test.el ends here
