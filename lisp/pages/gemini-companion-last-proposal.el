;;; gemini-companion-last-proposal.el --- Texts that were not written  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The command that displays proposals that the user edited or accepted, and that were
;; not written.  `gemini-companion-edit-keep-proposal' records their texts.

;;; Code:

(require 'gemini-companion-edit)
(require 'gemini-companion-names)
(require 'gemini-companion-windows-at-once)

(defun gemini-companion-last-proposal ()
  "Show the last text that you edited or accepted and that was not written.
It is of a review that you answered in the terminal of the CLI, that
another proposal replaced, or that ended in another way than by your
answer.  After an interrupt of the CLI, it need not be edited.  Call
this again there for the text before, up to ten of them."
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
    (gemini-companion-windows-at-once
      (pop-to-buffer buffer '(nil (category . gemini-companion-overview))))
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
