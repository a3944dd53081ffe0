;;; gemini-companion-idle-test.el --- Tests of whether the user is busy  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; States that batch Emacs can be in; test/e2e/test_arrival.py tries the others.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'gemini-companion-idle)

(ert-deftest gemini-companion-idle-user-is-busy-after-a-key-and-in-a-drag ()
  (pcase-dolist (`(,idle ,map ,typing ,busy)
                 '((0.1 nil t t) (nil nil t t) (2 (keymap) nil t) (2 nil nil nil) (-9 nil nil nil)))
    (cl-letf (((symbol-function 'current-idle-time)
               (lambda () (and idle (seconds-to-time idle))))
              (track-mouse t)
              (overriding-terminal-local-map map))
      (setq num-nonmacro-input-events (1+ num-nonmacro-input-events))
      (should (eq typing (gemini-companion-idle-typing-p)))
      (should (eq busy (not (gemini-companion-idle-user-p)))))))

;;; gemini-companion-idle-test.el ends here
