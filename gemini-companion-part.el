;;; gemini-companion-part.el --- What a part of the package does  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The mode consists of parts, each in a file of its own.  The file of a part has
;; methods of these generic functions for what the part needs: its functions on
;; hooks, its start, a server that is ready, its element of the mode line, its
;; problems for the status, and its stop.

;;; Code:

(require 'cl-lib)

;;;; Generic functions

(cl-defgeneric gemini-companion-part-hooks (_part)
  "Return the functions of PART that are on hooks while the mode is on.
The value is a list of (HOOK FUNCTION DEPTH), for `add-hook'."
  nil)

(cl-defgeneric gemini-companion-part-start (_part)
  "Start PART, a symbol, as the mode is turned on.
PART may have started before."
  nil)

(cl-defmethod gemini-companion-part-start :before (part)
  "Put the functions of PART on their hooks."
  (pcase-dolist (`(,hook ,function ,depth) (gemini-companion-part-hooks part))
    (add-hook hook function depth)))

(cl-defgeneric gemini-companion-part-ready (_part _how)
  "Tell PART that the server can be called.
HOW is `started'; `restarted' on request; `resumed' after a crash that no
CLI has noticed; or else `recovered'."
  nil)

(cl-defgeneric gemini-companion-part-lighter (_part)
  "Return the element of PART for the mode line, a cons, or nil.
It has a text, which comes first if it ends in a space, and a line of
the tooltip or a function that returns that line."
  nil)

(cl-defgeneric gemini-companion-part-findings (_part _directory)
  "Return what is to be known of PART for a CLI in DIRECTORY.
The value is an alist of (TITLE . FINDING), in any order; for findings,
see `gemini-companion-status-checks'.  For example:
  ((\"Project\" good \"A CLI may connect from ~/src/p\"))
The status calls this for each part that is loaded, and puts its findings
in the order of `gemini-companion-status-titles'."
  nil)

(cl-defgeneric gemini-companion-part-stop (_part)
  "Stop PART, as the mode is turned off."
  nil)

(cl-defmethod gemini-companion-part-stop :before (part)
  "Remove the functions of PART from their hooks."
  (pcase-dolist (`(,hook ,function) (gemini-companion-part-hooks part))
    (remove-hook hook function)))

(provide 'gemini-companion-part)
;;; gemini-companion-part.el ends here
