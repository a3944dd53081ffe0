;;; gemini-companion-choice.el --- Choices by completion  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Questions whose answer is one of several things with names, such as CLIs.
;; Each has a completion category, by which other packages, such as Embark, and
;; the user's `completion-category-overrides' know what is completed.

;;; Code:

(require 'subr-x)

(defun gemini-companion-choice-table (choices metadata)
  "Return a completion table of CHOICES with METADATA.
CHOICES is any completion table, and METADATA an alist as in the Info
node `(elisp) Programmed Completion'."
  (lambda (string predicate action)
    (if (eq action 'metadata)
        (cons 'metadata metadata)
      (complete-with-action action choices string predicate))))

(defun gemini-companion-choice-read (prompt choices category &optional annotate)
  "Read one of CHOICES with PROMPT, and return its value.
CHOICES is an alist of (NAME . VALUE), the most likely first, which is the
default: they are displayed in that order.  CATEGORY is the completion
category.  ANNOTATE returns what is displayed beside the name of a VALUE,
a string or nil."
  (let* ((completion-ignore-case t)
         (default (caar choices))
         (table (gemini-companion-choice-table
                 choices
                 `((category . ,category)
                   (display-sort-function . identity)
                   (cycle-sort-function . identity)
                   ,@(and annotate
                          `((annotation-function
                             . ,(lambda (name)
                                  (when-let* ((text (funcall annotate
                                                             (cdr (assoc name choices)))))
                                    (concat "  " text))))))))))
    (cdr (assoc (completing-read (format-prompt prompt default)
                                 table nil t nil nil default)
                choices))))

(provide 'gemini-companion-choice)
;;; gemini-companion-choice.el ends here
