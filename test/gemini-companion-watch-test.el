;;; gemini-companion-watch-test.el --- Tests of watched files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-test-helper)
(require 'gemini-companion-watch)

(defvar gemini-companion-watch-test--calls nil
  "What the function of the watch was called with, the last one first.")

(defmacro gemini-companion-watch-test-with-watch (follows &rest body)
  "Evaluate BODY while the file \"a\" is watched, in a variable `watch'.
FOLLOWS is an expression: whether its function follows a change."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory '(("a" "one\n"))
     (let* ((gemini-companion-watch-test--calls nil)
            (timers (gemini-companion-test-timers))
            (watch (gemini-companion-watch-start
                    "a" (lambda (changed _now)
                          (push changed gemini-companion-watch-test--calls)
                          ,follows))))
       (unwind-protect
           (progn ,@body)
         (gemini-companion-watch-end watch))
       (should (equal timers (gemini-companion-test-timers))))))

(defun gemini-companion-watch-test-seen (watch)
  "Check WATCH, and return what its function was called with."
  (gemini-companion-watch-check watch)
  (and (car gemini-companion-watch-test--calls) t))

(ert-deftest gemini-companion-watch-sees-each-change-once ()
  (gemini-companion-watch-test-with-watch t
    (should-not (gemini-companion-watch-test-seen watch))
    (dolist (change (list (lambda () (write-region "two" nil "a" nil 'silent))
                          (lambda ()
                            (write-region "two" nil "b" nil 'silent)
                            (rename-file "b" "a" t))
                          (lambda () (delete-file "a"))
                          (lambda () (write-region "1" nil "a" nil 'silent))))
      (funcall change)
      (should (gemini-companion-watch-test-seen watch))
      (should-not (gemini-companion-watch-test-seen watch)))))

(ert-deftest gemini-companion-watch-repeats-a-change-until-it-is-followed ()
  (let ((follows nil))
    (gemini-companion-watch-test-with-watch follows
      (write-region "two" nil "a" nil 'silent)
      (should (gemini-companion-watch-test-seen watch))
      (should (gemini-companion-watch-test-seen watch))
      (setq follows t)
      (should (gemini-companion-watch-test-seen watch))
      (should-not (gemini-companion-watch-test-seen watch)))))

(ert-deftest gemini-companion-watch-waits-for-the-whole-text ()
  (dolist (text (list "" (make-string 100000 ?x)))
    (gemini-companion-watch-test-with-watch t
      (write-region text nil "a" nil 'silent)
      (should-not (gemini-companion-watch-test-seen watch))
      (should (gemini-companion-watch-test-seen watch)))))

(ert-deftest gemini-companion-watch-goes-on-by-itself ()
  (let ((debug-on-error nil)
        (inhibit-message t))
    (gemini-companion-watch-test-with-watch
        (error "Boom")
      (write-region "two" nil "a" nil 'silent)
      (gemini-companion-test-eventually
        (< 2 (length (delq nil gemini-companion-watch-test--calls)))))))

;;; gemini-companion-watch-test.el ends here
