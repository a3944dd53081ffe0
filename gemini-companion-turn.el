;;; gemini-companion-turn.el --- Turns of the CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A turn is a prompt of a CLI and all that follows it, until the CLI is ready
;; again.

;;; Code:

(require 'cl-lib)

(cl-defstruct (gemini-companion-turn
               (:constructor gemini-companion-turn-make)
               (:copier nil))
  "A prompt of a CLI and what follows it.
PROMPT is the first line of the prompt, or nil if that is unknown.
BEGAN and ENDED are times in seconds; ENDED is nil until it has ended."
  (prompt nil) (began (float-time)) (ended nil)
  (reported nil :documentation "Non-nil if the CLI reported the prompt.")
  (cut nil :documentation "Non-nil if it has ended, but may go on."))

(provide 'gemini-companion-turn)
;;; gemini-companion-turn.el ends here
