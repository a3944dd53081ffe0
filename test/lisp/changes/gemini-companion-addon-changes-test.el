;;; gemini-companion-addon-changes-test.el --- Tests of the add-on for changes  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-commands)

(ert-deftest gemini-companion-addon-changes-has-its-rows-among-those-of-the-core ()
  (should (equal '("n" "p" "=" "u" "k" "U" "K")
                 (seq-take (mapcar #'car (cdr (assoc "Changes in files"
                                                     gemini-companion-commands)))
                           7))))

;;; gemini-companion-addon-changes-test.el ends here
