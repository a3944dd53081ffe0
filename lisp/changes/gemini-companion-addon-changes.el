;;; gemini-companion-addon-changes.el --- The add-on for changes  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Declare the add-on to the core before its files are loaded: its commands and
;; components.  The add-on records what CLIs have written and nobody has reviewed, and
;; marks it in the buffers of the files; without it, a change is reviewed before it is
;; written, or not at all.

;;; Code:

(require 'gemini-companion-part)

;;;; Autoloads

(gemini-companion-part-autoload 'walk
                                'gemini-companion-postpone-change
                                'gemini-companion-restore-change
                                'gemini-companion-walk-help)

(defvar gemini-companion-addon-changes-repeat-map
  (let ((map (make-sparse-keymap)))
    (define-key map "n" 'gemini-companion-next-change)
    (define-key map "p" 'gemini-companion-previous-change)
    map)
  "Keymap in which `repeat-mode' repeats going to the next or previous change.")

(dolist (command '(gemini-companion-next-change gemini-companion-previous-change))
  (put command 'repeat-map 'gemini-companion-addon-changes-repeat-map))

;;;; Declarations

(cl-defmethod gemini-companion-part-commands ((_part (eql 'addon-changes)))
  "Return the commands that keep, undo and comment on changes."
  '(("Changes in files" nil
     ("n" gemini-companion-next-change "Next change" (global change)
      :enable changes)
     ("p" gemini-companion-previous-change "Previous change" (global change)
      :enable changes)
     ("=" gemini-companion-show-change "Show what was before" (global)
      :enable changes-here)
     ("u" gemini-companion-undo-change "Undo this change" (global change)
      :enable changes-here)
     ("k" gemini-companion-keep-change "Keep this change" (global change)
      :enable changes-here)
     ("U" gemini-companion-undo-changes "Undo all of this file" (global change)
      :enable changes-here)
     ("K" gemini-companion-keep-changes "Keep all of this file" (global change)
      :enable changes-here))
    ("Code" nil
     ("w" gemini-companion-why "Why this line" (global change)))
    ("Changes in files" "M"
     ("W" gemini-companion-patch "Show as a patch" (global))
     (";" gemini-companion-comment "Comment on this line" (global)))
    ("Connection" "i"
     ("F" gemini-companion-forget "Forget what is saved" (global)))
    ("Edit" "e"
     ("c" gemini-companion-comment "Comment on this line" (view)
      :header "comment"))
    ("Display" nil
     ("W" gemini-companion-patch "Show as a patch" (view)))
    (nil nil
     ("RET" gemini-companion-show-change "Show what was before" (change))
     ("C-/" gemini-companion-restore-change "Take back the last undo or keep" (change))
     ("l" gemini-companion-postpone-change "Decide later, or now" (change))
     ("c" gemini-companion-comment "Comment on this line" (change))
     ("?" gemini-companion-walk-help "Show these keys" (change)))))

(cl-defmethod gemini-companion-part-members ((_part (eql 'addon-changes)))
  "Return the components that record and display what CLIs have written."
  '((changes arrival always) (marks changes always) (walk cli) (decision walk)
    (commit decision) (comment commit) (saved comment always) (slices exit)))

(provide 'gemini-companion-addon-changes)
;;; gemini-companion-addon-changes.el ends here
