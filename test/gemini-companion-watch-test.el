;;; gemini-companion-watch-test.el --- Tests of watched files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-test-helper)
(require 'gemini-companion-watch)

(defmacro gemini-companion-watch-test-with-watch (follows &rest body)
  "Evaluate BODY while the file \"a\" is watched.
FOLLOWS is an expression: whether the function of the watch follows
a change.  `calls' has what it was called with, the last one first, and
`seen' is a function that checks the file and returns whether it has
changed."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory '(("a" "one\n"))
     (let* ((calls nil)
            (timers (gemini-companion-test-timers))
            (watch (gemini-companion-watch-start
                    "a" (lambda (changed _now)
                          (push changed calls)
                          ,follows)))
            (seen (lambda ()
                    (gemini-companion-watch-check watch)
                    (and (car calls) t))))
       (ignore seen)
       (unwind-protect
           (progn ,@body)
         (gemini-companion-watch-end watch))
       (should (equal timers (gemini-companion-test-timers))))))

(ert-deftest gemini-companion-watch-repeats-a-change-until-it-is-followed ()
  (let ((follows nil))
    (gemini-companion-watch-test-with-watch follows
      (should-not (funcall seen))
      (dolist (change (list (lambda () (gemini-companion-test-write "a" "two"))
                            (lambda ()
                              (gemini-companion-test-write "b" "two")
                              (rename-file "b" "a" t))
                            (lambda () (delete-file "a"))
                            (lambda () (gemini-companion-test-write "a" "1"))))
        (funcall change)
        (setq follows nil)
        (should (funcall seen))
        (setq follows t)
        (should (funcall seen))
        (should-not (funcall seen))))))

(ert-deftest gemini-companion-watch-waits-for-the-whole-text ()
  (dolist (text (list "" (make-string 100000 ?x)))
    (gemini-companion-watch-test-with-watch t
      (gemini-companion-test-write "a" text)
      (should-not (funcall seen))
      (should (funcall seen)))))

(ert-deftest gemini-companion-watch-goes-on-by-itself ()
  (let ((debug-on-error nil)
        (inhibit-message t))
    (gemini-companion-watch-test-with-watch
        (error "Boom")
      (gemini-companion-test-write "a" "two")
      (gemini-companion-test-eventually
        (< 2 (length (delq nil calls)))))))

;;; gemini-companion-watch-test.el ends here
