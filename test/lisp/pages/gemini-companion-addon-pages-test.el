;;; gemini-companion-addon-pages-test.el --- Tests of the add-on for pages  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-commands)

(ert-deftest gemini-companion-addon-pages-has-its-rows-among-those-of-the-core ()
  (should (equal '("r" "l" "a")
                 (mapcar #'car (cdr (assoc "Reviews" gemini-companion-commands))))))

;;; gemini-companion-addon-pages-test.el ends here
