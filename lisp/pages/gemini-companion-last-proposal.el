;;; gemini-companion-last-proposal.el --- Texts that were not written  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The command that displays proposals that the user edited or accepted, and that were
;; not written.  `gemini-companion-edit-keep-proposal' records their texts.

;;; Code:

(require 'gemini-companion-edit)
(require 'gemini-companion-names)

(defun gemini-companion-last-proposal ()
  "Show the last unwritten proposal that you edited or accepted.
You answered its review in the terminal of the CLI, another proposal
replaced it, or it ended without your answer.  A proposal that an
interrupt of the CLI has ended is shown even if you have not edited it.
Repeat the command for the previous proposals, up to ten."
  (interactive)
  (let* ((kept (or (gemini-companion-edits-with-unsaved-proposal)
                   (user-error "No unwritten proposal to show")))
         (buffer (get-buffer-create "*gemini last proposal*"))
         (shown (and (eq buffer (window-buffer))
                     (seq-position kept (buffer-local-value
                                         'gemini-companion-edit-here buffer)
                                   #'eq)))
         (number (if shown (% (1+ shown) (length kept)) 0))
         (edit (nth number kept))
         (inhibit-read-only t))
    (pop-to-buffer buffer '(nil (category . gemini-companion-overview)))
    (special-mode)
    (setq gemini-companion-edit-here edit)
    (erase-buffer)
    (insert (cdr (gemini-companion-edit-unsaved-proposal edit)))
    (goto-char (point-min))
    (message "%s, %d of %d"
             (gemini-companion-names-absolute (gemini-companion-edit-file edit))
             (1+ number) (length kept))))

(provide 'gemini-companion-last-proposal)
;;; gemini-companion-last-proposal.el ends here
