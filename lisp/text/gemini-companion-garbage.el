;;; gemini-companion-garbage.el --- Put off the collection of garbage  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; By default, Emacs collects garbage after each 800 kB.  Where the texts of files
;; are compared, drawn or completed, that would take most of the time, and a
;; collection in the midst of a replacement truncates the undo list that is being
;; made.  The macro of this file puts it off, by at most 256 MB.

;;; Code:

(defmacro gemini-companion-garbage-later (&rest body)
  "Evaluate BODY, and return its value, with no collection of garbage in it.
After 256 MB, Emacs collects nevertheless.  If the user has set
`gc-cons-threshold' to more, that stays."
  (declare (indent 0) (debug t))
  `(let ((gc-cons-threshold (max gc-cons-threshold (* 256 1024 1024))))
     ,@body))

(provide 'gemini-companion-garbage)
;;; gemini-companion-garbage.el ends here
