;;; gemini-companion-garbage.el --- Put off the collection of garbage  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; By default, Emacs collects garbage after each 800 kB of allocation.  Collection
;; would take most of the time while texts of files are compared, drawn or completed.
;; A collection during a replacement would truncate the undo list of that replacement.
;; The macro of this file postpones collection, by at most 256 MB.

;;; Code:

;;;; Collection

(defmacro gemini-companion-garbage-later (&rest body)
  "Evaluate BODY without garbage collection, and return its value.
Emacs still collects after 256 MB, or after `gc-cons-threshold' if that is
greater."
  (declare (indent 0) (debug t))
  `(let ((gc-cons-threshold (max gc-cons-threshold (* 256 1024 1024))))
     ,@body))

(provide 'gemini-companion-garbage)
;;; gemini-companion-garbage.el ends here
