;;; gemini-companion-addon-check-test.el --- Tests of the add-on for checks  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-commands)

(ert-deftest gemini-companion-addon-check-has-its-keys-in-the-overview-alone ()
  (dolist (key '("V" "M-?"))
    (should (assoc key (gemini-companion-commands-in 'overview))))
  (should-not (assoc "V" (gemini-companion-commands-in 'global)))
  ;; In a file, M-? is that of Emacs.
  (should-not (assoc "M-?" (gemini-companion-commands-in 'change))))

;;; gemini-companion-addon-check-test.el ends here
