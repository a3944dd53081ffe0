;;; gemini-companion-addon-terminal.el --- The add-on for terminals  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Declare the add-on to the core before its files are loaded: its commands and
;; components.  The add-on starts CLIs in terminals of this Emacs, and determines what
;; each CLI is doing; the core alone reviews the edits of a CLI that was started
;; elsewhere.

;;; Code:

(require 'gemini-companion-part)

;;;; Declarations

(cl-defmethod gemini-companion-part-commands ((_part (eql 'addon-terminal)))
  "Return the commands that start CLIs."
  '(("CLI" nil
     ("g" gemini-companion-run "Go to or start a CLI" (global))
     ("G" gemini-companion-resume "Resume a conversation" (global)))))

(cl-defmethod gemini-companion-part-members ((_part (eql 'addon-terminal)))
  "Return the components that follow the states of CLIs and start CLIs."
  '((extension install always) (state extension always) (cli review always)))

(provide 'gemini-companion-addon-terminal)
;;; gemini-companion-addon-terminal.el ends here
