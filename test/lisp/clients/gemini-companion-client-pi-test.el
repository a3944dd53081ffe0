;;; gemini-companion-client-pi-test.el --- Tests of the adapter of Pi  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-edit-test-helper)
(require 'gemini-companion-proposal)
(require 'gemini-companion-state nil t)

(declare-function gemini-companion-compose-deliver "gemini-companion-compose")
(declare-function gemini-companion-edit-reject-with-reason "gemini-companion-prompt")
(declare-function gemini-companion-prompt-submit "gemini-companion-prompt")

(defmacro gemini-companion-pi-test-with-edit (calls &rest body)
  "Run BODY with an edit of Pi.
The variable CALLS has the calls of the server, the last first."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory '(("a" "old\n"))
     (let ((session
            (gemini-companion-session-make :id "1" :client "pi" :directory directory))
           (,calls nil))
       (cl-letf (((symbol-function 'gemini-companion-server-call)
                  (lambda (&rest call) (push call ,calls) t)))
         (gemini-companion-test-with-parts '(edit proposal) session
           (gemini-companion-proposal-open 1 session (expand-file-name "a")
                                           "new\n")
           ,@body)))))

(ert-deftest gemini-companion-pi-has-the-reason-with-the-rejection ()
  (gemini-companion-test-needs-add-on 'prompts)
  (require 'gemini-companion-prompt)
  (gemini-companion-pi-test-with-edit calls
    (gemini-companion-edit-reject-with-reason
     (car (gemini-companion-edits-open)) "in French")
    (should (member '(diff-rejected 1 "in French") calls))))

(ert-deftest gemini-companion-pi-is-not-rejected-by-the-end-of-the-mode ()
  (gemini-companion-pi-test-with-edit calls
    (let ((edit (car (gemini-companion-edits-open))))
      (gemini-companion-proposal-decide-all 'rejected t)
      (should (eq 'dismissed (gemini-companion-edit-answer edit)))
      (should-not (assq 'diff-rejected calls)))))

(ert-deftest gemini-companion-pi-takes-prompts-from-the-server ()
  (gemini-companion-test-needs-add-on 'prompts)
  (require 'gemini-companion-prompt)
  (let ((session (gemini-companion-session-make :id "1" :client "pi"))
        (answer t)
        (kill-ring nil)
        calls)
    (cl-letf (((symbol-function 'gemini-companion-server-ask)
               (lambda (method args done &rest _)
                 (push (cons method args) calls)
                 (funcall done answer)
                 t)))
      (gemini-companion-prompt-submit "why?" (lambda () session) 1 "Not sent")
      (should (equal '((prompt "1" "why?")) calls))
      (should-not kill-ring)
      (setq answer nil)
      (gemini-companion-prompt-submit "why?" (lambda () session) 1 "Not sent")
      (should (equal "why?" (car kill-ring))))))

(ert-deftest gemini-companion-pi-has-prompts-but-no-commands-by-messages ()
  (gemini-companion-test-needs-add-on 'prompts)
  (require 'gemini-companion-compose)
  (let ((session (gemini-companion-session-make :id "1" :client "pi" :pid 1))
        (kill-ring nil)
        calls)
    (cl-letf (((symbol-function 'gemini-companion-session-connected-p) #'always)
              ((symbol-function 'gemini-companion-server-ask)
               (lambda (_method args done &rest _)
                 (push (cadr args) calls)
                 (funcall done t)
                 t)))
      (gemini-companion-compose-deliver "why?" session)
      (should (equal '("why?") calls))
      ;; Pi is in no terminal of this Emacs.
      (gemini-companion-compose-deliver "/compact" session)
      (should (equal '("why?") calls))
      (should (equal '("/compact") kill-ring))
      ;; It connects after the prompt was submitted.
      (let ((connected nil))
        (gemini-companion-prompt-submit "again" (lambda () connected) 30 "Not sent")
        (should (equal '("why?") calls))
        (setq connected session)
        (gemini-companion-test-eventually (equal '("again" "why?") calls))))))

(ert-deftest gemini-companion-pi-prompts-survive-the-end-of-the-server ()
  (gemini-companion-test-needs-add-on 'prompts)
  (require 'gemini-companion-prompt)
  (dolist (end (list (lambda () (gemini-companion-part-ready 'prompt 'resumed))
                     (lambda () (gemini-companion-part-stop 'prompt))))
    (let ((kill-ring nil)
          (results nil)
          answer)
      (cl-letf (((symbol-function 'gemini-companion-server-ask)
                 (lambda (_method _args done &rest _) (setq answer done))))
        (gemini-companion-prompt-submit "why?" (lambda ()
                                                 (gemini-companion-session-make
                                                  :id "1" :client "pi"))
                                        1 "Not sent"
                                        (lambda (result) (push result results)))
        (should-not kill-ring)
        (funcall end)
        (should (equal '("why?") kill-ring))
        ;; The answer of the server that has ended comes too late.
        (funcall answer t)
        (should (equal '(nil) results))))))

(provide 'gemini-companion-client-pi-test)
;;; gemini-companion-client-pi-test.el ends here
