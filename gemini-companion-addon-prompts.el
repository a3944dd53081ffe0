;;; gemini-companion-addon-prompts.el --- The add-on for prompts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the core has to know of the add-on before it is used: its commands.  The
;; add-on writes prompts and types them into a CLI: `gemini-companion-prompt',
;; `gemini-companion-send' and `gemini-companion-compose'.

;;; Code:

(require 'gemini-companion-part)

(gemini-companion-part-autoload 'send 'gemini-companion-send)
(gemini-companion-part-autoload 'compose 'gemini-companion-compose)
(gemini-companion-part-autoload 'prompt 'gemini-companion-edit-reject-with-reason)

(cl-defmethod gemini-companion-part-commands ((_part (eql 'addon-prompts)))
  "Return the rows of the commands of the add-on."
  '(("CLI" "G"
     ("s" gemini-companion-send "Send what is at point" (global)
      :enable gemini-companion-sessions))
    ("CLI" "s"
     ("c" gemini-companion-compose "Write a prompt" (global)))
    ("Answer" "r"
     ("R" gemini-companion-edit-reject-with-reason "Reject with a reason"
      (view list page)
      :enable gemini-companion-edits-to-answer))
    (nil "C-c C-k"
     ("C-c C-r" gemini-companion-edit-reject-with-reason nil (review)))))

(cl-defmethod gemini-companion-part-files ((_part (eql 'addon-prompts)))
  "Return the files of the add-on."
  '(addon-prompts prompt send compose))

(provide 'gemini-companion-addon-prompts)
;;; gemini-companion-addon-prompts.el ends here
