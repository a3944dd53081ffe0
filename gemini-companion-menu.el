;;; gemini-companion-menu.el --- The commands as a transient  -*- lexical-binding: t; -*-

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

;; The commands of gemini-companion.el, and those of a review, as transients.  A
;; file of its own so that Emacs loads the package transient only when it is used.

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-auto)
(require 'gemini-companion-diff)
(require 'gemini-companion-review)
(require 'transient)

(defmacro gemini-companion-menu--define (name documentation)
  "Define NAME with DOCUMENTATION, a transient of all commands."
  `(transient-define-prefix ,name ()
     ,documentation
     ,(vconcat
       (mapcar (pcase-lambda (`(,title . ,commands))
                 (vconcat (list title)
                          (mapcar (pcase-lambda (`(,key ,command ,label))
                                    (list key label command))
                                  commands)))
               gemini-companion-menu-commands))))

;;;###autoload (autoload 'gemini-companion-menu "gemini-companion-menu" nil t)
(gemini-companion-menu--define gemini-companion-menu
  "Give a command of gemini-companion.")

;;;; Review

(defun gemini-companion-menu--subject ()
  "Return what the review here is about, a heading."
  (let ((diff (gemini-companion-diff-current)))
    (concat (gemini-companion-diff-name diff)
            (pcase (gemini-companion-diff-counts diff)
              (`(,hunks ,excluded ,added ,removed)
               (format "  %s, %s, %d excluded"
                       (gemini-companion-review-lines added removed)
                       (gemini-companion-review-plural hunks "change")
                       excluded))))))

(defun gemini-companion-menu--auto ()
  "Return what the key for auto-accept does."
  (format "Auto-accept (%s)"
          (if (gemini-companion-auto-on-p
               (gemini-companion-diff-session (gemini-companion-diff-current)))
              "on" "off")))

(defun gemini-companion-menu--list ()
  "Return what the key for the list does."
  (format "List reviews (%d)" (length (gemini-companion-diffs))))

;;;###autoload (autoload 'gemini-companion-review-menu "gemini-companion-menu" nil t)
(transient-define-prefix gemini-companion-review-menu ()
  "Answer a review, or change what is displayed of it."
  [:description gemini-companion-menu--subject
   ["Answer"
    ("a" "Accept" gemini-companion-diff-accept)
    ("r" "Reject" gemini-companion-diff-reject)
    ("R" "Reject with a reason" gemini-companion-diff-reject-with-reason)
    ("q" "Ask me" gemini-companion-review-quit)]
   ["Changes"
    ("n" "Next" gemini-companion-review-next-hunk
     :inapt-if-not gemini-companion-review-hunks-p :transient t)
    ("p" "Previous" gemini-companion-review-previous-hunk
     :inapt-if-not gemini-companion-review-hunks-p :transient t)
    ("x" "Exclude or restore" gemini-companion-review-toggle-hunk
     :inapt-if-not gemini-companion-review-hunk-p :transient t)
    ("e" "Edit the proposal" gemini-companion-review-edit)]
   ["Display"
    ("v" gemini-companion-review-switch-view
     :description gemini-companion-review-other-view)
    ("l" gemini-companion-list :description gemini-companion-menu--list)
    ("!" gemini-companion-auto-accept
     :description gemini-companion-menu--auto)]]
  (interactive)
  (gemini-companion-diff-unsettled nil)
  (transient-setup 'gemini-companion-review-menu))

(provide 'gemini-companion-menu)
;;; gemini-companion-menu.el ends here
