;;; gemini-companion-addon-check.el --- The add-on for checks  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Declare the add-on to the core before its files are loaded: its commands, and the
;; note of a turn that was checked.  The add-on checks what a turn has written, by a
;; command of the project, and finds the references that the turn did not change.

;;; Code:

(require 'gemini-companion-part)

(declare-function gemini-companion-check-note "gemini-companion-check")
(defvar gemini-companion-overview-row-turn-note-function)

;;;; State

(gemini-companion-part-autoload 'check 'gemini-companion-check)

(setq gemini-companion-overview-row-turn-note-function
      (lambda (turn)
        (and (featurep 'gemini-companion-check)
             (gemini-companion-check-note turn))))

;;;; Declarations

(cl-defmethod gemini-companion-part-commands ((_part (eql 'addon-check)))
  "Return the commands of the add-on."
  '(("Changes" "c"
     ("V" gemini-companion-check "Check the turn" (overview)
      :enable overview-written))
    ("Go to" "^"
     ("M-?" gemini-companion-references "Other references" (overview)))
    ("Code" "w"
     ("M-?" gemini-companion-references "Other references" (global)
      :enable changes-here))))

(cl-defmethod gemini-companion-part-members ((_part (eql 'addon-check)))
  "Return the component of the add-on, which is loaded when it is used."
  '((check overview)))

(provide 'gemini-companion-addon-check)
;;; gemini-companion-addon-check.el ends here
