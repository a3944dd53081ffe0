;;; gemini-companion-resume-test.el --- Tests of conversations  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-cli-test-helper)
(require 'gemini-companion-resume)

(ert-deftest gemini-companion-resume-starts-a-cli-that-lists-its-conversations ()
  (pcase-dolist (`(,client . ,arguments) '(("gemini" "-i" "/resume")
                                           ("copilot" "--resume")))
    (gemini-companion-run-test-with-mode
      (let ((gemini-companion-run-client client)
            (gemini-companion-run-commands `((,client . "cat"))))
        (gemini-companion-resume)
        (should (equal (format "*%s: %s*" client name) (buffer-name)))
        (should (equal arguments (cdaar gemini-companion-run-test-started)))
        ;; A CLI that is started again begins another conversation.
        (delete-process (get-buffer-process (current-buffer)))
        (gemini-companion-run)
        (should (= 2 (length gemini-companion-run-test-started)))
        (should-not (cdaar gemini-companion-run-test-started))))))

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

;;; gemini-companion-resume-test.el ends here
