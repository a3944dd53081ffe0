;;; gemini-companion-question-test.el --- Tests of questions in terminals  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-question)
(require 'gemini-companion-state)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-question-test-with (&rest body)
  "Run BODY with `session', a CLI whose terminal is elsewhere.
`events' has what happened to questions, the last one first."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory '(("a" "old\n"))
     (let ((inhibit-message t)
           (session '(:id "1" :client "gemini" :directory "/src/shop/"))
           (events nil))
       (gemini-companion-test-with-parts '(state edit proposal) session
         (let ((gemini-companion-request-functions
                (cons (lambda (request event)
                        (when (gemini-companion-question-p request)
                          (push event events)))
                      gemini-companion-request-functions)))
           ,@body)))))

(ert-deftest gemini-companion-question-is-open-while-the-cli-waits ()
  (gemini-companion-question-test-with
    (gemini-companion-state-report session 'prompt "Do it")
    (should-not (gemini-companion-requests))
    (dotimes (_ 2)
      (gemini-companion-state-report session 'question nil))
    (should (equal '(opened) events))
    (let ((question (car (gemini-companion-requests session))))
      (should (eq 'question (gemini-companion-request-kind question)))
      (should (equal "asks in its terminal" (gemini-companion-request-label question)))
      (should-not (gemini-companion-request-certain-p question))
      (gemini-companion-state-lasts session)
      (should (gemini-companion-request-certain-p question))
      (should (equal '(changed opened) events)))
    (gemini-companion-state-report session 'end nil)
    (should (equal '(closed changed opened) events))
    (should-not (gemini-companion-requests))))

(ert-deftest gemini-companion-question-ends-with-an-edit-and-with-its-cli ()
  (gemini-companion-question-test-with
    (gemini-companion-state-report session 'question nil)
    (gemini-companion-proposal-open 1 session (expand-file-name "a") "new\n")
    (should (equal '(edit) (mapcar #'gemini-companion-request-kind
                                   (gemini-companion-requests))))
    (gemini-companion-edit-accept (car (gemini-companion-edits-open)))
    (should (equal '(question) (mapcar #'gemini-companion-request-kind
                                       (gemini-companion-requests))))
    (gemini-companion-server-receive 'sessions-update nil)
    (should-not (gemini-companion-requests))
    (should (equal '(closed opened closed opened) events))))

(ert-deftest gemini-companion-question-of-a-terminal-elsewhere-says-so ()
  (gemini-companion-question-test-with
    (gemini-companion-state-report session 'question nil)
    (let ((question (car (gemini-companion-requests))))
      (should (gemini-companion-request-problem question))
      (should (string-search
               "not in this Emacs"
               (error-message-string
                (should-error (gemini-companion-request-show question)
                              :type 'user-error)))))))

(ert-deftest gemini-companion-question-takes-no-second-key-to-the-terminal ()
  (gemini-companion-question-test-with
    (gemini-companion-state-report session 'question nil)
    (let ((question (car (gemini-companion-requests))))
      (with-temp-buffer
        (let ((terminal (current-buffer)))
          (cl-letf (((symbol-function 'gemini-companion-session-terminal)
                     (lambda (_) terminal)))
            ;; RET is typed twice in the list.
            (cl-letf (((symbol-function 'sit-for) #'ignore))
              (should (string-search
                       "several keys"
                       (downcase
                        (error-message-string
                         (should-error (gemini-companion-request-show question)
                                       :type 'user-error)))))
              (should-not (eq terminal (window-buffer))))
            (gemini-companion-request-show question)
            (should (eq terminal (window-buffer)))))))))

;;; gemini-companion-question-test.el ends here
