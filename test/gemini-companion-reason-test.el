;;; gemini-companion-reason-test.el --- Tests of rejections with a reason  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What happens to the sentence.  That it reaches the model is tested end to
;; end, in e2e/test_reason.py.

;;; Code:

(require 'gemini-companion-outcome)
(require 'gemini-companion-reason)
(require 'gemini-companion-test-helper)
(require 'term)

(defmacro gemini-companion-reason-test-with (answer session &rest body)
  "Run BODY with a diff `diff' of SESSION; what is asked gets ANSWER.
ANSWER is a function without arguments.  `outcomes' holds what was
told."
  (declare (indent 2) (debug t))
  `(gemini-companion-test-with-folder '(("a" "old\n"))
     (let ((gemini-companion-review-arrival 'notify)
           (inhibit-message t)
           (kill-ring '("before"))
           outcomes)
       (cl-letf (((symbol-function 'read-string)
                  (lambda (&rest _) (funcall ,answer))))
         (unwind-protect
             (let (diff)
               (gemini-companion-diff-start
                #'ignore
                (lambda (diff)
                  (push (gemini-companion-diff-state diff) outcomes)))
               (gemini-companion-diff-open
                1 ,session (expand-file-name "a" folder) "new\n")
               (setq diff (car (gemini-companion-diffs)))
               ,@body)
           (gemini-companion-reason-stop)
           (gemini-companion-diff-stop 'dismissed))))))

(ert-deftest gemini-companion-reason-of-a-cli-outside-goes-to-the-kill-ring ()
  (gemini-companion-reason-test-with (lambda () "Too long") '(:id "one")
    (gemini-companion-diff-reject-with-reason diff)
    (should (equal '(rejected) outcomes))
    (should (equal "Too long" (car kill-ring)))))

(ert-deftest gemini-companion-reason-empty-decides-nothing ()
  (gemini-companion-reason-test-with (lambda () " ") '(:id "one")
    (should-error (gemini-companion-diff-reject-with-reason diff)
                  :type 'user-error)
    (should (equal (list diff) (gemini-companion-diffs)))
    (should-not outcomes)
    (should (equal '("before") kill-ring))))

(ert-deftest gemini-companion-reason-quit-decides-nothing ()
  (gemini-companion-reason-test-with (lambda () (signal 'quit nil)) '(:id "one")
    (should (eq 'quit (condition-case nil
                          (gemini-companion-diff-reject-with-reason diff)
                        (quit 'quit))))
    (should (equal (list diff) (gemini-companion-diffs)))
    (should-not outcomes)))

(ert-deftest gemini-companion-reason-for-a-diff-that-ended-is-kept ()
  (gemini-companion-reason-test-with
      (lambda ()
        (gemini-companion-diff-reject (car (gemini-companion-diffs)))
        "Too long")
      '(:id "one")
    (gemini-companion-diff-reject-with-reason diff)
    (should (equal '(rejected) outcomes))
    (should (equal "Too long" (car kill-ring)))))

(defmacro gemini-companion-reason-test-with-terminal (&rest body)
  "Run BODY with a diff `diff' of a CLI in the buffer `terminal'.
The reason for its rejection is Too long.  The CLI is `cat'."
  (declare (indent 0) (debug t))
  `(let ((terminal (generate-new-buffer "*term*")))
     (unwind-protect
         (progn
           (with-current-buffer terminal
             (term-mode)
             (term-exec terminal "cat" "cat" nil nil)
             (term-char-mode)
             (set-process-query-on-exit-flag (get-buffer-process terminal) nil))
           (gemini-companion-reason-test-with
               (lambda () "Too long")
               (list :id "one"
                     :pid (process-id (get-buffer-process terminal)))
             ,@body))
       (when (buffer-live-p terminal)
         (kill-buffer terminal)))))

(ert-deftest gemini-companion-reason-waits-until-the-terminal-stands-still ()
  (gemini-companion-reason-test-with-terminal
    (gemini-companion-reason-start)
    (gemini-companion-diff-reject-with-reason diff)
    (dotimes (_ 20)
      (gemini-companion-test-run-timers))
    (should (equal "" (gemini-companion-test-text terminal)))
    (should-not (gemini-companion-reason-idle-p))
    (gemini-companion-outcome-told 1)
    (process-send-string terminal "Request cancelled\n")
    (gemini-companion-test-eventually
      (string-match-p "Request cancelled[^z-a]*Too long[^z-a]*Too long"
                      (gemini-companion-test-text terminal)))
    (should (gemini-companion-reason-idle-p))
    (should (equal "before" (car kill-ring)))))

(ert-deftest gemini-companion-reason-that-cannot-be-typed-is-kept ()
  (gemini-companion-reason-test-with-terminal
    (gemini-companion-diff-reject-with-reason diff)
    (kill-buffer terminal)
    (gemini-companion-test-eventually (equal "Too long" (car kill-ring)))
    (should (gemini-companion-reason-idle-p))))

(ert-deftest gemini-companion-reason-outlives-the-mode ()
  (gemini-companion-reason-test-with-terminal
    (gemini-companion-diff-reject-with-reason diff)
    (should (equal "before" (car kill-ring)))
    (gemini-companion-reason-stop)
    (should (equal "Too long" (car kill-ring)))
    (should (gemini-companion-reason-idle-p))))

;;; gemini-companion-reason-test.el ends here
