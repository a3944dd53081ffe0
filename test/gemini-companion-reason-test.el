;;; gemini-companion-reason-test.el --- Tests of rejections with a reason  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What happens to the sentence.  That it reaches the model is tested end to
;; end, in e2e/test_reason.py.

;;; Code:

(require 'gemini-companion-reason)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-reason-test-with (answer &rest body)
  "Run BODY with a diff `diff'; what is asked gets ANSWER.
ANSWER is a function without arguments.  `outcomes' holds what was
told."
  (declare (indent 1) (debug t))
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
                1 '(:id "one") (expand-file-name "a" folder) "new\n")
               (setq diff (car (gemini-companion-diffs)))
               ,@body)
           (gemini-companion-reason-stop)
           (gemini-companion-diff-stop 'dismissed))))))

(ert-deftest gemini-companion-reason-of-a-cli-outside-goes-to-the-kill-ring ()
  (gemini-companion-reason-test-with (lambda () "Too long")
    (gemini-companion-diff-reject-with-reason diff)
    (should (equal '(rejected) outcomes))
    (should (equal "Too long" (car kill-ring)))))

(ert-deftest gemini-companion-reason-empty-decides-nothing ()
  (gemini-companion-reason-test-with (lambda () " ")
    (should-error (gemini-companion-diff-reject-with-reason diff)
                  :type 'user-error)
    (should (equal (list diff) (gemini-companion-diffs)))
    (should-not outcomes)
    (should (equal '("before") kill-ring))))

(ert-deftest gemini-companion-reason-quit-decides-nothing ()
  (gemini-companion-reason-test-with (lambda () (signal 'quit nil))
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
    (gemini-companion-diff-reject-with-reason diff)
    (should (equal '(rejected) outcomes))
    (should (equal "Too long" (car kill-ring)))))

(ert-deftest gemini-companion-reason-waits-until-the-terminal-stands-still ()
  (gemini-companion-reason-test-with (lambda () "Too long")
    (let ((terminal (generate-new-buffer "*term*"))
          typed)
      (unwind-protect
          (cl-letf (((symbol-function 'gemini-companion-session-terminal)
                     (lambda (_) terminal))
                    ((symbol-function 'gemini-companion-prompt-type)
                     (lambda (session text submit)
                       (push (list (plist-get session :id) text submit
                                   (with-current-buffer terminal
                                     (buffer-string)))
                             typed))))
            (gemini-companion-diff-reject-with-reason diff)
            (let ((gemini-companion-reason--still-seconds 0))
              (gemini-companion-test-wait #'ignore 0.4)
              (should-not typed))
            (gemini-companion-reason-told 1)
            (with-current-buffer terminal (insert "Request cancelled"))
            (gemini-companion-test-eventually typed)
            (should (equal '(("one" "Too long" t "Request cancelled")) typed))
            (should-not gemini-companion-reason--waiting))
        (kill-buffer terminal)))))

(ert-deftest gemini-companion-reason-that-cannot-be-typed-is-kept ()
  (gemini-companion-reason-test-with (lambda () "Too long")
    (let ((terminal (generate-new-buffer "*term*"))
          (gemini-companion-reason--most-seconds 0.2))
      (cl-letf (((symbol-function 'gemini-companion-session-terminal)
                 (lambda (_) (and (buffer-live-p terminal) terminal))))
        (gemini-companion-diff-reject-with-reason diff)
        (kill-buffer terminal)
        (gemini-companion-test-eventually
          (equal "Too long" (car kill-ring)))
        (should-not gemini-companion-reason--waiting)))))

(ert-deftest gemini-companion-reason-outlives-the-mode ()
  (gemini-companion-reason-test-with (lambda () "Too long")
    (with-temp-buffer
      (let ((terminal (current-buffer)))
        (cl-letf (((symbol-function 'gemini-companion-session-terminal)
                   (lambda (_) terminal)))
          (gemini-companion-diff-reject-with-reason diff)
          (should (equal "before" (car kill-ring)))
          (gemini-companion-reason-stop)
          (should (equal "Too long" (car kill-ring)))
          (should-not gemini-companion-reason--waiting))))))

;;; gemini-companion-reason-test.el ends here
