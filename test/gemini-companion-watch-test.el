;;; gemini-companion-watch-test.el --- Tests of watched files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-test-helper)
(require 'gemini-companion-watch)

(ert-deftest gemini-companion-watch-repeats-a-whole-change-until-it-is-followed ()
  (gemini-companion-test-with-directory '(("a" "one\n"))
    (let* ((follows nil)
           (reported nil)
           (watch (gemini-companion-watch-start
                   "a" (lambda (changed _now)
                         (setq reported changed)
                         follows)))
           (seen (lambda ()
                   (gemini-companion-watch-check watch)
                   reported)))
      (should-not (funcall seen))
      (pcase-dolist
          (`(,how ,text ,more)
           `((write "two") (replace "two") (delete) (write "1")
             (write "" may-follow)
             (write ,(make-string 100000 ?x) may-follow)))
        (pcase how
          ('delete (delete-file "a"))
          ('write (gemini-companion-test-write "a" text))
          ('replace (gemini-companion-test-write "b" text)
                    (rename-file "b" "a" t)))
        (setq follows nil)
        (when more
          (should-not (funcall seen)))
        (should (funcall seen))
        (setq follows t)
        (should (funcall seen))
        (should-not (funcall seen)))
      (gemini-companion-watch-end watch))))

(ert-deftest gemini-companion-watch-goes-on-by-itself-until-its-end ()
  (gemini-companion-test-with-directory '(("a" "one\n"))
    (let* ((debug-on-error nil)
           (inhibit-message t)
           (timers (gemini-companion-test-timers))
           (count 0)
           (watch (gemini-companion-watch-start
                   "a" (lambda (changed _now)
                         (when changed
                           (setq count (1+ count))
                           (error "Boom"))))))
      (gemini-companion-test-write "a" "two")
      (gemini-companion-test-eventually (< 2 count))
      (gemini-companion-watch-end watch)
      ;; What other tests have left may have ended.
      (should-not (seq-difference (gemini-companion-test-timers) timers)))))

;;; gemini-companion-watch-test.el ends here
