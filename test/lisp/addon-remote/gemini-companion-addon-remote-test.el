;;; gemini-companion-addon-remote-test.el --- Tests of the add-on for remote hosts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion)
(require 'gemini-companion-commands)

(ert-deftest gemini-companion-addon-remote-has-commands-without-keys ()
  (should (commandp 'gemini-companion-connect))
  (should (commandp 'gemini-companion-disconnect))
  (should-not (gemini-companion-part-commands 'addon-remote)))

;;; gemini-companion-addon-remote-test.el ends here
