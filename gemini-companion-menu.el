;;; gemini-companion-menu.el --- Keys and menu of the commands  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software; you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.

;; This program is distributed in the hope that it will be useful,
;; but WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
;; GNU General Public License for more details.

;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; One table of the commands that a person gives outside of a review, and the
;; doors to them: a prefix map for a key of their choice and a menu.  (The
;; third, gemini-companion-transient.el, is loaded when it is opened.)  The
;; commands themselves are loaded when one is given.

;;; Code:

(require 'easymenu)

(defconst gemini-companion-menu-commands
  '(("Gemini CLI"
     ("g" gemini-companion-run "Start Gemini CLI or go to it")
     ("s" gemini-companion-send-region "Send the region")
     ("f" gemini-companion-send-file "Send the file")
     ("d" gemini-companion-send-diagnostic-at-point "Send the diagnostic")
     ("p" gemini-companion-pause "Share nothing, or share again"))
    ("Reviews"
     ("r" gemini-companion-review "Show the next review")
     ("l" gemini-companion-list "List the reviews that wait")
     ("a" gemini-companion-auto-accept "Auto-accept on or off")
     ("o" gemini-companion-last-proposal "Show the last proposal"))
    ("Connection"
     ("?" gemini-companion-status "What goes on, and what is wrong")
     ("R" gemini-companion-restart "Restart the server")
     ("e" gemini-companion-events-buffer "Show the last calls")
     ("i" gemini-companion-install-server "Install the server's packages")
     ("m" gemini-companion-mode "Turn the mode on or off")
     ("," gemini-companion-customize "Set options")))
  "The commands by group, lists of key, command and label.")

(pcase-dolist (`(,file . ,commands)
               '(("gemini-companion" gemini-companion-install-server
                  gemini-companion-restart gemini-companion-run)
                 ("gemini-companion-auto" gemini-companion-auto-accept)
                 ("gemini-companion-diff" gemini-companion-last-proposal)
                 ("gemini-companion-events" gemini-companion-events-buffer)
                 ("gemini-companion-list" gemini-companion-list
                  gemini-companion-review)
                 ("gemini-companion-mode" gemini-companion-mode)
                 ("gemini-companion-send" gemini-companion-send-file
                  gemini-companion-send-region
                  gemini-companion-send-diagnostic-at-point)
                 ("gemini-companion-sharing" gemini-companion-pause)
                 ("gemini-companion-status" gemini-companion-status)
                 ("gemini-companion-transient" gemini-companion-menu)))
  (dolist (command commands)
    (autoload command file nil t)))

;;;###autoload
(defun gemini-companion-customize ()
  "Set the options of gemini-companion."
  (interactive)
  ;; It has them all.
  (require 'gemini-companion)
  (customize-group 'gemini-companion))

(defvar gemini-companion-command-map
  (let ((map (make-sparse-keymap)))
    (dolist (group gemini-companion-menu-commands)
      (pcase-dolist (`(,key ,command ,_) (cdr group))
        (define-key map key command)))
    (define-key map "h" 'gemini-companion-menu)
    map)
  "Keys of the commands, to be bound to a prefix key of your choice.
For example:
  (global-set-key (kbd \"C-c g\") \\='gemini-companion-command-map)")

;;;###autoload (autoload 'gemini-companion-command-map "gemini-companion-menu" nil t 'keymap)
(fset 'gemini-companion-command-map gemini-companion-command-map)

(easy-menu-define gemini-companion-menu-map nil
  "Menu of gemini-companion."
  (cons "Gemini"
        (mapcan (lambda (group)
                  (cons (vector (car group) nil :active nil)
                        (mapcar (pcase-lambda (`(,_ ,command ,label))
                                  (vector label command))
                                (cdr group))))
                gemini-companion-menu-commands)))

(provide 'gemini-companion-menu)
;;; gemini-companion-menu.el ends here
