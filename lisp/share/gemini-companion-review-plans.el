;;; gemini-companion-review-plans.el --- The files in which CLIs write plans  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; In its plan mode, a CLI may write the plan to a file in its own directory.  A
;; built-in rule requires a review of such a file: as an edit, with hunks, and each new
;; version is compared with the previous one.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-ignore)
(require 'gemini-companion-text)

;;;; Customization

(defcustom gemini-companion-review-plans t
  "Non-nil means to review a plan that a CLI writes to a file.
This applies to linked CLIs that can be made to ask.  A rule of
`gemini-companion-review-rules' for that file comes first.

Takes effect at the next plan."
  :type 'boolean
  :risky t
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

;; A CLI may write the local variables of a project.
(add-to-list 'ignored-local-variables 'gemini-companion-review-plans)

;;;; Files

(defun gemini-companion-review-plans-file-p (file &optional _session)
  "Return non-nil if FILE, an absolute name, is for the plan of a CLI.
It may also be called as a function of `gemini-companion-review-rules'."
  ;; The cheap test comes first: header lines call this at each redisplay.
  (when (string-match-p "/plans/[^/]+\\.md\\'" file)
    (seq-some (lambda (client)
                (let ((globs (gemini-companion-client-plan-files client)))
                  (and globs
                       (gemini-companion-review-plans--below-p
                        file (gemini-companion-client-home client) globs))))
              gemini-companion-clients)))

(defun gemini-companion-review-plans--below-p (file directory globs)
  "Return non-nil if one of GLOBS matches the name of FILE below DIRECTORY.
Symbolic links that lead to either do not count."
  (let ((file (gemini-companion-text-true-name file))
        (directory (gemini-companion-text-true-name directory)))
    (and file
         directory
         (gemini-companion-text-in-directory-p file directory)
         (let ((name (substring file (length (file-name-as-directory directory)))))
           (seq-some (lambda (glob)
                       (gemini-companion-ignore-glob-match-p glob name))
                     globs)))))

(defun gemini-companion-review-plans-rules (file)
  "Return the rules that are built in for FILE, which come after the user's.
They are as in `gemini-companion-review-rules', nil for most files."
  (when (and (default-value 'gemini-companion-review-plans)
             (gemini-companion-review-plans-file-p file))
    '((gemini-companion-review-plans-file-p . always))))

(provide 'gemini-companion-review-plans)
;;; gemini-companion-review-plans.el ends here
