;;; gemini-companion-choice.el --- Choices by completion  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Read one of several named values, such as CLIs, with completion.  Each prompt has
;; a completion category, so that packages such as Embark, and the user's
;; `completion-category-overrides', recognize the candidates.  Or read one of a few keys.

;;; Code:

(require 'subr-x)

;;;; Completion

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
CHOICES is an alist of (NAME . VALUE), displayed in this order; the first one
is the default.  CATEGORY is the completion category.  ANNOTATE is nil, or a
function that returns the annotation of a VALUE, a string or nil."
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

;;;; Questions

;; Each question of the package is asked by a function below, or begins with the first.

(defun gemini-companion-choice-forget-keys ()
  "Forget the keys that wait to be read.
The user has typed them before the next question, and has not seen it."
  (unless (or executing-kbd-macro defining-kbd-macro)
    (discard-input)))

(defun gemini-companion-choice-y-or-n-p (question)
  "Ask QUESTION by `y-or-n-p', which gets no key that was typed before it."
  (gemini-companion-choice-forget-keys)
  (y-or-n-p question))

(defun gemini-companion-choice-yes-or-no-p (question)
  "Ask QUESTION by `yes-or-no-p', which gets no key that was typed before it.
A single key answers it if `use-short-answers' is non-nil."
  (gemini-companion-choice-forget-keys)
  (yes-or-no-p question))

(defun gemini-companion-choice-key (prompt keys)
  "Read one of KEYS, characters, with PROMPT and their names, and return it.
Each key has to be typed: no other one answers, nor do RET and SPC, with which
`y-or-n-p' may take a key that was typed ahead for a yes."
  (gemini-companion-choice-forget-keys)
  (let ((prompt (format "%s (%s) " prompt (mapconcat #'char-to-string keys ", ")))
        (key nil))
    (while (not (memq key keys))
      (setq key (read-char-from-minibuffer prompt keys)))
    key))

(defun gemini-companion-choice-reason (prompt)
  "Read a reason with PROMPT, which gets no key that was typed before it.
It is sent with an answer as soon as RET ends it."
  (gemini-companion-choice-forget-keys)
  (read-string prompt))

(provide 'gemini-companion-choice)
;;; gemini-companion-choice.el ends here
