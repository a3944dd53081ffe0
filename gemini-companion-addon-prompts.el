;;; gemini-companion-addon-prompts.el --- The add-on for prompts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the core has to know of the add-on before it is used: its commands.  The
;; add-on writes prompts and types them into a CLI: `gemini-companion-prompt',
;; `gemini-companion-send', `gemini-companion-compose' and
;; `gemini-companion-comment-send'.

;;; Code:

(require 'gemini-companion-part)

(gemini-companion-part-autoload 'send 'gemini-companion-send)
(gemini-companion-part-autoload 'compose 'gemini-companion-compose)
(gemini-companion-part-autoload 'comment-send 'gemini-companion-send-comments)
(gemini-companion-part-autoload 'prompt 'gemini-companion-edit-reject-with-reason)

(autoload 'gemini-companion-prompt-reject-with-comments "gemini-companion-prompt")
(autoload 'gemini-companion-comment-send-accepted "gemini-companion-comment-send")
(defvar gemini-companion-proposal-reject-function)
(defvar gemini-companion-proposal-accepted-function)

;; Comments go with an answer, also before a file of the add-on is loaded.
(setq gemini-companion-proposal-reject-function
      #'gemini-companion-prompt-reject-with-comments
      gemini-companion-proposal-accepted-function
      #'gemini-companion-comment-send-accepted)

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
    ("Answer" "c"
     ("s" gemini-companion-send-comments "Send comments" (list) :header "send"))
    ("Answer" "c"
     ("C-c C-c" gemini-companion-send-comments "Send comments" (page)))
    (nil "C-c C-k"
     ("C-c C-r" gemini-companion-edit-reject-with-reason nil (review)))))

(cl-defmethod gemini-companion-part-files ((_part (eql 'addon-prompts)))
  "Return the files of the add-on."
  '(addon-prompts prompt send compose comment-send))

(provide 'gemini-companion-addon-prompts)
;;; gemini-companion-addon-prompts.el ends here
