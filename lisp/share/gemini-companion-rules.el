;;; gemini-companion-rules.el --- Which edits are reviewed  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Rules of the user decide which edits are reviewed.  They are evaluated when a
;; proposal arrives, and when the hook of a linked CLI, in any mode of the CLI, reports
;; that the CLI is about to write a file.
;;
;; A rule that signals an error asks for a review.  Only default values of variables
;; are used, since a CLI may write the local variables of a file.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-clients)
(require 'gemini-companion-ignore)
(require 'gemini-companion-names)
(require 'gemini-companion-review-plans)
(require 'gemini-companion-roots)
(require 'gemini-companion-text)

;;;; Customization

(defcustom gemini-companion-review-rules nil
  "Rules for which edits are reviewed, a list of (CONDITION . REVIEW).
The first rule whose CONDITION fits the file of an edit decides:
- `always': the edit is reviewed.  Auto-accept does not accept it, and a
  linked CLI asks in each of its modes, if it can be made to ask;
- `never': the edit is accepted without review, as by auto-accept, with
  the same exceptions.
If no rule fits, auto-accept and the mode of the CLI decide.

CONDITION is one of
- a glob, as in .gitignore: \"*.lock\", without a slash, matches the last
  component of the name, and \"docs/**\" the name below the innermost
  workspace root, in any project.  The name is the true one, without
  symbolic links;
- a function, which is called with the true name of the file and the
  session of the CLI, and returns non-nil if the rule applies to it.

A rule that is neither, signals an error, or asks a question counts as a
rule with `always'.  For example:
  ((\"*.lock\" . never)
   (\"src/**\" . always))"
  :type '(alist :key-type (choice (string :tag "Glob")
                                  (function :tag "Function"))
                :value-type (choice (const :tag "Always review" always)
                                    (const :tag "Never review" never)))
  :risky t
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

;;;; State

;; A CLI may write the local variables of a project.
(add-to-list 'ignored-local-variables 'gemini-companion-review-rules)

(cl-defstruct (gemini-companion-rules-verdict
               (:noinline t)
               (:constructor gemini-companion-rules--verdict
                             (review condition &optional problem))
               (:copier nil))
  "Decision of the rules about a file.
REVIEW is `always' or `never'; CONDITION is the condition of the rule that
decided.  PROBLEM is an error message if the rule has failed, or nil."
  review condition problem)

(defun gemini-companion-rules-all ()
  "Return the rules of the user."
  (default-value 'gemini-companion-review-rules))

;;;; Decision

(defun gemini-companion-rules-for (file &optional session)
  "Return the `gemini-companion-rules-verdict' on an edit of FILE by SESSION.
Return nil if no rule applies.  This calls functions of the user, so call it
once for each edit."
  (when-let* ((rules (append (gemini-companion-rules-all)
                             (gemini-companion-review-plans-rules file))))
    (let ((tried nil))
      (condition-case problem
          (gemini-companion-rules--decide
           rules file session (lambda (condition) (setq tried condition)))
        ((error quit)
         (gemini-companion-rules--verdict
          'always tried (error-message-string problem)))))))

(defun gemini-companion-rules--decide (rules file session try)
  "Return the verdict of the first of RULES that fits FILE of SESSION, or nil.
Call TRY with the condition of each rule before it is tried."
  (let* ((file (or (gemini-companion-text-true-name file)
                   (error "Loop of symbolic links")))
         (file-name-handler-alist nil)
         (case-fold-search (file-name-case-insensitive-p file))
         (root (gemini-companion-roots-innermost file session))
         (name (if root
                   (substring file (length (file-name-as-directory root)))
                 file)))
    (pcase (cl-find-if (pcase-lambda (`(,condition . ,review))
                         (funcall try condition)
                         (unless (memq review '(always never))
                           (error "REVIEW is neither `always' nor `never': %S" review))
                         (gemini-companion-rules--fits-p condition name file session))
                       rules)
      (`(,condition . ,review)
       (gemini-companion-rules--verdict review condition)))))

(defun gemini-companion-rules--fits-p (condition name file session)
  "Return non-nil if CONDITION fits FILE of SESSION.
NAME is the name of FILE relative to its innermost workspace root, or absolute."
  (cond ((stringp condition) (gemini-companion-ignore-glob-match-p condition name))
        ((functionp condition) (gemini-companion-rules--call condition file session))
        (t (error "Condition is malformed: %S" condition))))

(defun gemini-companion-rules--call (function file session)
  "Return the value of FUNCTION of the user for FILE of SESSION.
A question to the user is an error, and nothing that it does to the match
data or the current buffer counts."
  (let ((inhibit-interaction t))
    (save-match-data
      (save-current-buffer
        (funcall function file session)))))

;;;; Findings

(defun gemini-companion-rules-finding (client linked)
  "Return the finding that CLIENT writes in some modes whatever the rules are.
Return nil if there are no such modes.  LINKED is nil if CLIENT is not linked,
`untrusted' if it does not run the hooks of extensions, or t.  For findings, see
`gemini-companion-status-checks'."
  (let ((modes (gemini-companion-client-silent-modes client))
        (hook (gemini-companion-client-review-hook client)))
    (unless (or (null modes) (and hook (eq linked t)))
      `(note ,(format "In %s, %s writes without review, whatever the rules are"
                      (string-join modes ", ") (gemini-companion-client-title client))
             ,(and hook
                   (if linked
                       "Trust the directory there, so that it asks."
                     "M-x gemini-companion-tools links it, so that it asks."))))))

;;;; Texts

(defun gemini-companion-rules-phrase (verdict)
  "Return the phrase that names the rule of VERDICT, or nil if that is nil.
Two examples are: by your rule docs/**, and: your rule my-rule-p failed."
  (when verdict
    (let ((rule (gemini-companion-rules--condition-text
                 (gemini-companion-rules-verdict-condition verdict))))
      (if (gemini-companion-rules-verdict-problem verdict)
          (format "your rule %s failed: %s" rule
                  (gemini-companion-names-shown
                   (gemini-companion-rules-verdict-problem verdict) 40))
        (format "by your rule %s" rule)))))

(defun gemini-companion-rules--condition-text (condition)
  "Return CONDITION, of a rule, as a text of at most 40 columns."
  (gemini-companion-names-shown
   (cond ((stringp condition) condition)
         ((eq condition #'gemini-companion-review-plans-file-p)
          "gemini-companion-review-plans")
         ((symbolp condition) (symbol-name condition))
         ((functionp condition) "that is a function")
         (t (let ((print-escape-newlines t))
              (prin1-to-string condition))))
   40))

(provide 'gemini-companion-rules)
;;; gemini-companion-rules.el ends here
