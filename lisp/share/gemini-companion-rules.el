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
  the same exceptions;
- nil: no rule applies to the file.
If no rule fits, auto-accept and the mode of the CLI decide.
\\[gemini-companion-set-rule] sets a rule for a file.

CONDITION is one of
- a glob, as in .gitignore: \"*.lock\", without a slash, matches the last
  component of the name, and \"docs/**\" the name below the innermost
  workspace root, in any project.  A file with two names, because of
  symbolic links, is `always' reviewed if one of them fits, and `never' if
  both do;
- a function, which is called with the absolute name of the file and the
  session of the CLI, and returns non-nil if the rule applies to it;
- t, for all files;
- (project DIRECTORY), for the files whose innermost root is DIRECTORY;
- (and CONDITION...), (or CONDITION...) or (not CONDITION).

A rule that signals an error, asks a question, or takes a second counts
as a rule with `always'.  For example:
  ((\"*.lock\" . never)
   ((and \"src/**\" (not \"src/gen/**\")) . always))"
  :type '(alist :key-type (choice (string :tag "Glob")
                                  (const :tag "All files" t)
                                  (function :tag "Function")
                                  (sexp :tag "project, and, or, not"))
                :value-type (choice (const :tag "Always review" always)
                                    (const :tag "Never review" never)
                                    (const :tag "No rule" nil)))
  :risky t
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

;;;; State

(defvar gemini-companion-rules-until-exit nil
  "Rules that apply until Emacs exits, as in `gemini-companion-review-rules'.
They precede those of the option.  \\[gemini-companion-set-rule] sets them.")

;; A CLI may write the local variables of a project.
(dolist (variable '(gemini-companion-review-rules
                    gemini-companion-rules-until-exit))
  (put variable 'risky-local-variable t)
  (add-to-list 'ignored-local-variables variable))

(defconst gemini-companion-rules--seconds 1
  "Seconds after which the rules for a file count as failed.")

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
  "Return all rules, those until Emacs exits first."
  (append (default-value 'gemini-companion-rules-until-exit)
          (default-value 'gemini-companion-review-rules)))

;;;; Decision

(defun gemini-companion-rules-for (file &optional session)
  "Return the `gemini-companion-rules-verdict' on an edit of FILE by SESSION.
Return nil if no rule applies.  This calls functions of the user, so call it
once for each edit."
  (when-let* ((rules (append (gemini-companion-rules-all)
                             (gemini-companion-review-plans-rules file))))
    (let ((began (float-time))
          (tried nil))
      (condition-case problem
          (let ((verdict (with-timeout (gemini-companion-rules--seconds
                                        (error "Timeout"))
                           (gemini-companion-rules--decide
                            rules file session
                            (lambda (condition) (setq tried condition))))))
            ;; The timeout does not interrupt a function that never waits.
            (when (< gemini-companion-rules--seconds (- (float-time) began))
              (error "Takes longer than a second"))
            verdict)
        ((error quit)
         (gemini-companion-rules--verdict
          'always tried (error-message-string problem)))))))

(defun gemini-companion-rules--decide (rules file session try)
  "Return the verdict of RULES on FILE of SESSION, or nil.
Call TRY with the condition of each rule before it is tried."
  (let* ((verdicts
          (mapcar (lambda (name)
                    (gemini-companion-rules--first rules name session try))
                  (gemini-companion-rules-names file)))
         (reviews (mapcar (lambda (verdict)
                            (and verdict
                                 (gemini-companion-rules-verdict-review verdict)))
                          verdicts)))
    (cond ((seq-position reviews 'always)
           (nth (seq-position reviews 'always) verdicts))
          ((memq nil reviews) nil)
          (t (car verdicts)))))

(defun gemini-companion-rules-names (file)
  "Return the names of FILE, absolute ones, one or two.
They are the true name, and the name below its root by which the CLI has
FILE, which may lead by symbolic links to the true name."
  (let ((true-name (or (gemini-companion-text-true-name file)
                       (error "Loop of symbolic links")))
        (name (expand-file-name file)))
    (delete-dups (list true-name (or (gemini-companion-roots-name name) name)))))

(defun gemini-companion-rules--first (rules file session try)
  "Return the verdict of the first of RULES that fits FILE of SESSION, or nil.
For TRY, see `gemini-companion-rules--decide'."
  (let* ((file-name-handler-alist nil)
         (case-fold-search (file-name-case-insensitive-p file))
         (root (gemini-companion-roots-innermost file session))
         (name (if root
                   (substring file (length (file-name-as-directory root)))
                 file))
         (rule (cl-find-if
                (pcase-lambda (`(,condition . ,review))
                  (funcall try condition)
                  (unless (memq review '(always never nil))
                    (error "REVIEW is neither `always' nor `never': %S" review))
                  (gemini-companion-rules--fits-p condition root name file
                                                  session))
                rules)))
    (when (cdr rule)
      (gemini-companion-rules--verdict (cdr rule) (car rule)))))

(defun gemini-companion-rules--fits-p (condition root name file session)
  "Return non-nil if CONDITION fits FILE of SESSION.
ROOT is the innermost workspace root of FILE, or nil.  NAME is the name of FILE
relative to ROOT, or absolute."
  (cl-flet ((fits-p (condition)
              (gemini-companion-rules--fits-p condition root name file session)))
    (pcase condition
      ('t t)
      ((pred stringp) (gemini-companion-ignore-glob-match-p condition name))
      (`(project ,(and (pred stringp) directory))
       (and root (equal (directory-file-name (file-truename directory))
                        (directory-file-name root))))
      (`(and . ,all) (cl-every #'fits-p all))
      (`(or . ,any) (cl-some #'fits-p any))
      (`(not ,negated) (not (fits-p negated)))
      ((pred functionp) (gemini-companion-rules--call condition file session))
      (_ (error "Condition is malformed: %S" condition)))))

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
  "Return the finding about rules for CLIENT.
LINKED is nil if CLIENT is not linked, `untrusted' if it does not run the hooks
of extensions, or t.  For findings, see `gemini-companion-status-checks'."
  (let* ((title (gemini-companion-client-title client))
         (modes (gemini-companion-client-silent-modes client))
         (names (if (cdr modes)
                    (concat (string-join (butlast modes) ", ") " and "
                            (car (last modes)))
                  (car modes)))
         (hook (gemini-companion-client-review-hook client))
         (asks (and hook (eq linked t))))
    (cond
     ((null modes)
      `(note ,(format "Rules decide about an edit once %s asks" title) nil))
     ((and asks (gemini-companion-client-reviews-in-terminal-p client))
      `(note ,(format "In %s, %s asks in its terminal about files that a rule \
says are always reviewed; in other modes, in Emacs" names title)
             nil))
     (asks
      `(good ,(format "%s opens a review of files that a rule says are always \
reviewed, also in %s" title names)))
     (t
      `(note ,(format "In %s, %s writes without review, whatever the rules are"
                      names title)
             ,(and hook
                   (if linked
                       "Trust the directory there, so that it asks."
                     "M-x gemini-companion-tools links it, so that it asks.")))))))

;;;; Texts

(defun gemini-companion-rules-phrase (verdict)
  "Return the phrase that names the rule of VERDICT, or nil if that is nil.
Two examples are: by your rule docs/**, and: your rule my-rule-p failed."
  (when verdict
    (let ((rule (gemini-companion-rules-condition-text
                 (gemini-companion-rules-verdict-condition verdict))))
      (if (gemini-companion-rules-verdict-problem verdict)
          (format "your rule %s failed: %s" rule
                  (gemini-companion-names-shown
                   (gemini-companion-rules-verdict-problem verdict) 40))
        (format "by your rule %s" rule)))))

(defun gemini-companion-rules-condition-text (condition)
  "Return CONDITION, of a rule, as a text of at most 40 columns.
One of a glob in a project is: /docs/** in shop."
  (gemini-companion-names-shown
   (cond ((stringp condition) condition)
         ((pcase condition
            (`(and (project ,(and (pred stringp) project))
                   ,(and (pred stringp) glob))
             (format "%s in %s" glob
                     (file-name-nondirectory (directory-file-name project))))))
         ((eq condition #'gemini-companion-review-plans-file-p)
          "gemini-companion-review-plans")
         ((symbolp condition) (symbol-name condition))
         ((functionp condition) "that is a function")
         (t (let ((print-escape-newlines t))
              (prin1-to-string condition))))
   40))

(provide 'gemini-companion-rules)
;;; gemini-companion-rules.el ends here
