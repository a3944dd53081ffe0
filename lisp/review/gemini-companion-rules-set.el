;;; gemini-companion-rules-set.el --- Setting a rule for reviews  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Set a rule for the file at point, for its extension or for its directory.
;; gemini-companion-rules.el evaluates the rules.

;;; Code:

(require 'cus-edit)
(require 'gemini-companion-auto)
(require 'gemini-companion-edit)
(require 'gemini-companion-label)
(require 'gemini-companion-names)
(require 'gemini-companion-roots)
(require 'gemini-companion-rules)
(require 'gemini-companion-text)
(require 'gemini-companion-view)

;;;; File

(defun gemini-companion-rules-set--here ()
  "Return (FILE SESSION) for the file at point.
FILE is that of the edit at point, and SESSION its CLI; or else FILE is the
file that the current buffer visits, and SESSION is nil.  Signal a `user-error'
if there is no file."
  (let ((edit (if gemini-companion-edits-view
                  (gemini-companion-view-edit-here gemini-companion-edits-view)
                gemini-companion-edit-here)))
    (cond (edit (list (gemini-companion-edit-file edit)
                      (gemini-companion-edit-session edit)))
          (gemini-companion-edits-view
           (user-error "No file on this line; go to the line of an edit"))
          ((gemini-companion-names-file)
           (list (gemini-companion-names-file) nil))
          (t (user-error "No file here; go to a review, the overview or a file")))))

;;;; Conditions

(defun gemini-companion-rules-set--quoted (name)
  "Return a glob that matches only NAME."
  (replace-regexp-in-string "[[*?\\]" "\\\\\\&" name))

(defun gemini-companion-rules-set--condition (kind file session)
  "Return the condition for KIND of FILE of SESSION, or nil.
KIND is `file', `extension' or `directory'.  A condition for an extension
matches files in all projects, the others only in one.  If FILE has two names,
see `gemini-companion-rules-names', the condition matches both."
  (let ((conditions
         (delete-dups
          (mapcar (lambda (name)
                    (gemini-companion-rules-set--condition-of kind name session))
                  (gemini-companion-rules-names file)))))
    (cond ((memq nil conditions) nil)
          ((cdr conditions) (cons 'or conditions))
          (t (car conditions)))))

(defun gemini-companion-rules-set--condition-of (kind name session)
  "Return the condition for KIND of a file of SESSION with NAME, or nil.
For KIND, see `gemini-companion-rules-set--condition'."
  (let* ((file-name-handler-alist nil)
         (root (gemini-companion-roots-innermost name session))
         (below (if root
                    (substring name (length (directory-file-name root)))
                  name))
         (extension (file-name-extension name))
         (glob (pcase kind
                 ('file (gemini-companion-rules-set--quoted below))
                 ('directory (concat (gemini-companion-rules-set--quoted
                                      (file-name-directory below))
                                     "**")))))
    (cond ((eq kind 'extension)
           (and extension
                (not (string-empty-p extension))
                (concat "*." (gemini-companion-rules-set--quoted extension))))
          (root `(and (project ,(abbreviate-file-name root)) ,glob))
          (t glob))))

;;;; Setting

(defun gemini-companion-rules-set--with (rules condition review others)
  "Return RULES with a rule of CONDITION and REVIEW in front.
It replaces the previous rule of CONDITION.  If REVIEW is nil, which means no
rule, add it only if it may override another rule: one of RULES, or another
one if OTHERS is non-nil."
  (let ((rest (cl-remove condition rules :key #'car-safe :test #'equal)))
    (if (or review rest others)
        (cons (cons condition review) rest)
      rest)))

(defun gemini-companion-rules-set--foreign-p ()
  "Return non-nil if the rules were set outside of Customize.
Then the value that Customize saves may be overridden when Emacs starts."
  (let ((variable 'gemini-companion-review-rules))
    (or (not (memq (custom-variable-state variable (default-value variable))
                   '(standard saved)))
        (not (memq (caar (get variable 'theme-value)) '(nil user))))))

(defun gemini-companion-rules-set--check-savable ()
  "Signal a `user-error' if rules cannot be saved by Customize."
  (when (gemini-companion-rules-set--foreign-p)
    (user-error "Rules are set outside of Customize, for example in your init \
file; add this rule there, or set it without a prefix argument"))
  (unless (ignore-errors (custom-file t))
    (user-error "Customize cannot save without an init file; \
set the rule without a prefix argument")))

(defun gemini-companion-rules-set--set (condition review save)
  "Set the rule for CONDITION to REVIEW; save it if SAVE is non-nil."
  (let ((until-exit (default-value 'gemini-companion-rules-until-exit))
        (saved (default-value 'gemini-companion-review-rules)))
    (if (not save)
        (set-default 'gemini-companion-rules-until-exit
                     (gemini-companion-rules-set--with until-exit condition
                                                       review saved))
      ;; A rule until exit would take precedence.
      (set-default 'gemini-companion-rules-until-exit
                   (cl-remove condition until-exit :key #'car-safe :test #'equal))
      (customize-save-variable
       'gemini-companion-review-rules
       (gemini-companion-rules-set--with saved condition review nil)))))

;;;; Commands

(defun gemini-companion-rules-set--read (file session)
  "Ask for a rule for FILE of SESSION; return its condition and review, a list."
  (let* ((label (gemini-companion-label-location-text
                 (gemini-companion-label-location file session) 'plain))
         (review (pcase (car (read-multiple-choice
                              (format "Edits of %s" (gemini-companion-names-shown
                                                     label 40))
                              '((?a "always review" "Each edit is reviewed")
                                (?n "never review" "Accepted without review")
                                (?r "no rule" "Remove the rule"))))
                   (?a 'always)
                   (?n 'never)))
         (kinds (cl-loop
                 for (key kind word) in '((?f file "this file")
                                          (?e extension "extension")
                                          (?d directory "directory"))
                 for condition = (gemini-companion-rules-set--condition
                                  kind file session)
                 when condition
                 collect (list key word
                               (gemini-companion-rules-condition-text condition)
                               condition))))
    (list (nth 3 (read-multiple-choice
                  (format "%s for" (pcase review
                                     ('always "Always review")
                                     ('never "Never review")
                                     (_ "No rule")))
                  kinds))
          review)))

(defun gemini-companion-set-rule (condition review &optional save)
  "Set a rule to review edits of the file at point always or never.
The rule is for this file, for files with its extension in all projects,
or for files in its directory and below; you are asked.  CONDITION and
REVIEW are as in `gemini-companion-review-rules'.  The rule applies until
Emacs exits; if SAVE is non-nil, with a prefix argument, it is saved by
Customize.

A rule that reviews never also accepts proposals that await an answer,
except the displayed one."
  (interactive
   (progn
     (when current-prefix-arg
       (gemini-companion-rules-set--check-savable))
     (append (apply #'gemini-companion-rules-set--read
                    (gemini-companion-rules-set--here))
             (list current-prefix-arg))))
  (when save
    (gemini-companion-rules-set--check-savable))
  (gemini-companion-rules-set--set condition review save)
  (gemini-companion-auto-apply-rules)
  (message "%s%s"
           (format (pcase review
                     ('always "%s: always reviewed")
                     ('never "%s: never reviewed, except hidden and unsaved files")
                     (_ "%s: no rule"))
                   (gemini-companion-rules-condition-text condition))
           (if save "; saved" ", until Emacs exits")))

(provide 'gemini-companion-rules-set)
;;; gemini-companion-rules-set.el ends here
