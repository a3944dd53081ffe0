;;; gemini-companion-row.el --- A proposal is a row of the overview  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A proposal is displayed by its row in the overview; its review begins there, by the
;; command `gemini-companion-review', or by itself where the user waits for it.  This
;; file is loaded with the mode, and loads the overview when that is needed.

;;; Code:

(require 'gemini-companion-edit)
(require 'gemini-companion-request)

(autoload 'gemini-companion-overview-appear "gemini-companion-overview")
(autoload 'gemini-companion-overview-follow "gemini-companion-overview")
(autoload 'gemini-companion-overview-show "gemini-companion-overview")

(cl-defmethod gemini-companion-request-show-row ((edit gemini-companion-edit) select)
  "Display the row of EDIT; select it if SELECT is non-nil.  Return t."
  (if select
      (gemini-companion-overview-show edit)
    (gemini-companion-overview-appear edit))
  t)

(cl-defmethod gemini-companion-request-follow ((edit gemini-companion-edit))
  "Go to the row of EDIT, if the last one was answered in the overview."
  (gemini-companion-overview-follow edit))

(provide 'gemini-companion-row)
;;; gemini-companion-row.el ends here
