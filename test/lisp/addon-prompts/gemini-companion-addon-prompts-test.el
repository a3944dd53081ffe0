;;; gemini-companion-addon-prompts-test.el --- Tests of the add-on for prompts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-commands)

(ert-deftest gemini-companion-addon-prompts-has-its-rows-after-those-of-the-core ()
  (should (equal '("g" "G" "s" "c")
                 (seq-take (mapcar #'car (cdr (assoc "CLI" gemini-companion-commands)))
                           4)))
  (should (equal '("C-c C-c" "C-c C-k" "C-c C-r")
                 (seq-take (mapcar #'car (cdr (assoc "Answer" gemini-companion-commands)))
                           3)))
  (should (eq 'gemini-companion-compose
              (lookup-key gemini-companion-command-map "c"))))

;;; gemini-companion-addon-prompts-test.el ends here
