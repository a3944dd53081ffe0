;;; gemini-companion-exit.el --- Ask before Emacs exits  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The exit of Emacs ends the CLIs that run in it, closes the reviews, and loses
;; comments that were not sent.  Each component names what it would lose, by a method
;; of `gemini-companion-part-unfinished', and one question names it all.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-choice)
(require 'gemini-companion-part)
(require 'subr-x)

(defun gemini-companion-exit--allowed-p ()
  "Return non-nil if Emacs may exit: nothing is unfinished, or the user agrees.
If Emacs is not interactive, do not ask."
  (let ((unfinished (seq-mapcat #'gemini-companion-part-unfinished
                                (gemini-companion-parts-loaded))))
    (or (null unfinished)
        noninteractive
        (gemini-companion-choice-yes-or-no-p
         (format "%s; exit anyway? " (string-join unfinished "; "))))))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'exit)))
  "Ask before Emacs exits."
  '((kill-emacs-query-functions gemini-companion-exit--allowed-p)))

(provide 'gemini-companion-exit)
;;; gemini-companion-exit.el ends here
