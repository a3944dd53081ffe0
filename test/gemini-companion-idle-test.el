;;; gemini-companion-idle-test.el --- Tests of whether the user is busy  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; States that batch Emacs can be in; test/e2e/test_arrival.py tries the others.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'gemini-companion-idle)

(ert-deftest gemini-companion-idle-user-is-busy-for-a-moment-after-a-key ()
  (pcase-dolist (`(,idle . ,busy) '((0.1 . t) (nil . t) (2 . nil)))
    (cl-letf (((symbol-function 'current-idle-time)
               (lambda () (and idle (seconds-to-time idle)))))
      (setq num-nonmacro-input-events (1+ num-nonmacro-input-events))
      (should (eq busy (gemini-companion-idle-typing-p)))
      (should (eq busy (not (gemini-companion-idle-user-p)))))))

;;; gemini-companion-idle-test.el ends here
