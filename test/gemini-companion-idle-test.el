;;; gemini-companion-idle-test.el --- Tests of whether the user is busy  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; States that batch Emacs can be in; test/e2e/test_arrival.py tries the others.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'gemini-companion-idle)

(ert-deftest gemini-companion-idle-user-is-busy-in-a-command ()
  (cl-letf (((symbol-function 'current-idle-time)
             (lambda () (seconds-to-time 2))))
    (should (gemini-companion-idle-user-p))
    (let (busy)
      (command-execute
       (lambda ()
         (interactive)
         (setq busy (not (gemini-companion-idle-between-commands-p)))))
      (should busy))
    ;; A prompt of a timer leaves this.
    (let ((real-this-command 'exit-minibuffer))
      (should (gemini-companion-idle-user-p)))))

(ert-deftest gemini-companion-idle-user-is-busy-for-a-moment-after-a-key ()
  (dolist (idle '(0.1 nil))
    (cl-letf (((symbol-function 'current-idle-time)
               (lambda () (and idle (seconds-to-time idle)))))
      (setq num-nonmacro-input-events (1+ num-nonmacro-input-events))
      (should (gemini-companion-idle-typing-p))
      (should-not (gemini-companion-idle-user-p))))
  (cl-letf (((symbol-function 'current-idle-time)
             (lambda () (seconds-to-time 2))))
    (should (gemini-companion-idle-user-p))))

;;; gemini-companion-idle-test.el ends here
