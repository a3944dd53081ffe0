;;; gemini-companion-addon-terminal-test.el --- Tests of the add-on for terminals  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-commands)

(ert-deftest gemini-companion-addon-terminal-has-its-rows-among-those-of-the-core ()
  (should (equal '("g" "G")
                 (seq-take (mapcar #'car (cdr (assoc "CLI" gemini-companion-commands)))
                           2))))

;;; gemini-companion-addon-terminal-test.el ends here
