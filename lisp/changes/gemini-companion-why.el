;;; gemini-companion-why.el --- Why a line is there  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A command that says which CLI has written the line at point, for which prompt, and
;; what became of it.  It reads the record of the file, and nothing of git.  What the
;; record does not know is said to be unknown.

;;; Code:

(require 'gemini-companion-changes)
(require 'gemini-companion-origin)
(require 'gemini-companion-revert)
(require 'gemini-companion-text)

;;;; Commands

(defun gemini-companion-why ()
  "Show which CLI wrote the line at point, when, and for which prompt.
Also say what became of it: whether you have accepted or kept it, and whether it
was changed since."
  (interactive)
  (unless buffer-file-name
    (user-error "This buffer visits no file"))
  (when (save-restriction
          (widen)
          (and (eobp) (bolp)))
    (user-error "No line here; go to one first"))
  (let ((coding (gemini-companion-revert-shown-in (current-buffer))))
    (pcase (and (null coding)
                (gemini-companion-changes-whose
                 (1- (gemini-companion-text-line (current-buffer) (point)))))
      ((guard coding)
       (message "Unknown: the buffer shows the file in %s" coding))
      ('nil
       (message "Unknown: no edit of this file is recorded"))
      ('(nil . base)
       (message "Unknown: this line is older than the first recorded edit"))
      ('(nil . others)
       (message "Written by you or another program, since a CLI wrote this file"))
      (`(,origin . ,how)
       (message "%s" (gemini-companion-origin-phrase origin (eq how 'formatted)))))))

(provide 'gemini-companion-why)
;;; gemini-companion-why.el ends here
