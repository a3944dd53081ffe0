;;; gemini-companion-resume-test.el --- Tests of conversations and desktops  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'desktop)
(require 'gemini-companion-cli-test-helper)
(require 'gemini-companion-part)
(require 'gemini-companion-resume)

(ert-deftest gemini-companion-resume-lists-the-newest-first-or-shows-why-not ()
  (pcase-dolist
      (`(,client ,output ,status ,expected)
       '(("gemini" "\nAvailable sessions for this project (2):
  1. Fix the login\u202e (2 days ago, now) [4c48ef04-d0ec]
  2. Say \"x\" (now) [1] (Just now) [2be1dce2-9491]\n" 0
          " Just now          Say \"x\" (now) \\[1]
 2 days ago, now   Fix the login\\\\u202E\n")
         ("qwen" "{\"sessionId\":\"c4\",\"mtime\":1795366152296.9111,\
\"prompt\":\"x\",\"customTitle\":\"Fix the thing\"}
{\"sessionId\":\"c5\",\"mtime\":1795279752296.9111,\
\"prompt\":\"Add a test\\nand more\",\"customTitle\":null}
{not JSON}
{\"sessionId\":\"c6\",\"mtime\":1795279752296.9111,\"prompt\":null}\n" 0
          " 2026-11-22 16:49  Fix the thing
 2026-11-21 16:49  Add a test and more
 2026-11-21 16:49 *\n")
         ("gemini" "No previous sessions found for this project.\n" 0
          "Gemini CLI (.*) has no conversations; M-x gemini-companion-run .*\n")
         ("qwen" "Usage\nUnknown command\n" 1
          "Qwen Code (.*) cannot list its conversations: Unknown command\n")
         ("gemini" "" 7
          "Gemini CLI (.*) cannot list its conversations: exit status 7\n")))
    (gemini-companion-test-with-directory `(("output" ,output))
      (let ((gemini-companion-run-commands
             `((,client "sh" "-c" ,(format "cat output; exit %d" status))))
            (gemini-companion-run-client client))
        (set-time-zone-rule "UTC0")
        (save-window-excursion
          (gemini-companion-resume)
          (unwind-protect
              (progn
                (gemini-companion-test-eventually
                  (not (string-prefix-p "Listing" (buffer-string))))
                (should (eq truncate-lines
                            (not (string-search "conversation" (buffer-string)))))
                (should (string-match-p (format "\\`%s\\'" expected)
                                        (buffer-string))))
            (set-time-zone-rule nil)
            (kill-buffer)))))))

(ert-deftest gemini-companion-resume-starts-a-cli-that-asks-itself ()
  (gemini-companion-run-test-with-mode
    (let ((gemini-companion-run-client "copilot")
          (gemini-companion-run-commands '(("copilot" . "cat"))))
      (gemini-companion-resume)
      (should (equal (format "*copilot: %s*" name) (buffer-name)))
      (should (equal '("--resume") (cdaar gemini-companion-run-test-started))))))

(ert-deftest gemini-companion-resume-restarts-each-cli-that-the-user-agrees-to ()
  (gemini-companion-run-test-with-mode
    (should-error (gemini-companion-run-again) :type 'user-error)
    (let* ((gemini-companion-run-client "copilot")
           (gemini-companion-run-commands '(("copilot" . "cat")))
           (talks nil)
           (agreed nil)
           (questions nil))
      (gemini-companion-run)
      (let ((process (start-process "cat" (current-buffer) "cat")))
        (set-process-query-on-exit-flag process nil)
        (cl-letf (((symbol-function 'y-or-n-p)
                   (lambda (question) (push question questions) agreed))
                  ((symbol-function 'gemini-companion-resume--conversation-p)
                   (lambda (_) talks)))
          (should (equal (list (gemini-companion-cli-name gemini-companion-terminal-cli))
                         (gemini-companion-resume-running '("copilot"))))
          (should-not (gemini-companion-resume-running '("gemini")))
          (gemini-companion-run-again)
          (should (process-live-p process))
          (should (= 1 (length gemini-companion-run-test-started)))
          (setq agreed t)
          (gemini-companion-run-again)
          (should-not (process-live-p process))
          ;; Without a prompt, there is no conversation.
          (should-not (cdaar gemini-companion-run-test-started))
          (setq talks t)
          (set-process-query-on-exit-flag
           (start-process "cat" (current-buffer) "cat") nil)
          (gemini-companion-run-again)
          (should (equal '("--resume") (cdaar gemini-companion-run-test-started)))
          (should (string-search "with its conversation" (car questions))))))))

(ert-deftest gemini-companion-resume-restores-its-buffers-only-and-no-modes ()
  (let* ((restored nil)
         (desktop-buffer-mode-handlers
          `((term-mode . ,(lambda (&rest arguments) (push arguments restored)))
            ,(assq 'gemini-companion-resume-mode desktop-buffer-mode-handlers))))
    (gemini-companion-part-start 'resume)
    (dlet ((desktop-buffer-ok-count 0) (desktop-buffer-fail-count 0)
           (desktop-first-buffer nil))
      (dolist (mode '(term-mode gemini-companion-resume-mode))
        (desktop-create-buffer 208 "file" "mine" mode nil 1 nil nil "saved"))
      (with-current-buffer
          (desktop-create-buffer 208 nil "*gemini*" 'gemini-companion-resume-mode
                                 '(overwrite-mode) 1 nil nil
                                 '(:client "gemini" :directory "/tmp/" :number 2))
        (should-not overwrite-mode)
        ;; The next desktop has it, too.
        (should (equal '(:client "gemini" :directory "/tmp/" :number 2)
                       (funcall desktop-save-buffer nil)))
        (kill-buffer)))
    (gemini-companion-part-stop 'resume)
    (should (equal '(("file" "mine" "saved")) restored))))

;;; gemini-companion-resume-test.el ends here
