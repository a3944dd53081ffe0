;;; gemini-companion-addon-tools-test.el --- Tests of the add-on for linked CLIs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-cli)
(require 'gemini-companion-commands)

(ert-deftest gemini-companion-addon-tools-offers-to-link-clis-until-they-are ()
  (cl-letf (((symbol-function 'gemini-companion-cli-clients) (lambda () '("qwen")))
            ((symbol-function 'gemini-companion-install-extension-p) #'ignore))
    (should (equal '("Links" note)
                   (seq-take (car (gemini-companion-part-findings 'addon-tools "/"))
                             2)))
    (cl-letf (((symbol-function 'gemini-companion-install-extension-p) #'always))
      (should-not (gemini-companion-part-findings 'addon-tools "/")))))

(ert-deftest gemini-companion-addon-tools-has-its-row-after-pausing ()
  (should (equal "t" (cadr (member "P" (mapcar #'car (cdr (assoc "CLI" gemini-companion-commands))))))))

;;; gemini-companion-addon-tools-test.el ends here
