;;; gemini-companion-question.el --- Questions in the terminals of CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A question in the terminal of a CLI, of which no more is known than that the CLI
;; waits for an answer: its window title or a hook says so.  It is a request of the
;; simplest kind.  gemini-companion-state.el makes and ends it: a CLI has a question
;; while it waits and has no other request.

;;; Code:

(require 'gemini-companion-request)
(require 'gemini-companion-session)

(autoload 'gemini-companion-terminal-show "gemini-companion-terminal")

;;;; State

(cl-defstruct (gemini-companion-question
               (:noinline t)
               (:include gemini-companion-request (kind 'question))
               (:constructor gemini-companion-question-make)
               (:copier nil))
  "A question in the terminal of a CLI.
LASTING is non-nil once the CLI has waited for a while: the title may say
that it waits for a moment, as until an edit that was accepted is written."
  lasting)

;;;; What it does as a request

(cl-defmethod gemini-companion-request-label ((_ gemini-companion-question))
  "Return that the CLI asks in its terminal."
  "asks in its terminal")

(cl-defmethod gemini-companion-request-notice
  ((question gemini-companion-question))
  "Return that the CLI of QUESTION asks, and the key to go there."
  (concat (gemini-companion-session-name
           (gemini-companion-question-session question))
          (substitute-command-keys " asks in its terminal; \
\\[gemini-companion-review] goes there")))

(cl-defmethod gemini-companion-request-in-header ((_ gemini-companion-question))
  "Return nil, as the question is to be seen in the terminal itself."
  nil)

(cl-defmethod gemini-companion-request-certain-p
  ((question gemini-companion-question))
  "Return non-nil if the CLI of QUESTION has waited for a while."
  (gemini-companion-question-lasting question))

(cl-defmethod gemini-companion-request-buffer ((question gemini-companion-question))
  "Return the terminal of the CLI of QUESTION, or nil."
  (gemini-companion-session-terminal (gemini-companion-question-session question)))

(cl-defmethod gemini-companion-request-show ((question gemini-companion-question))
  "Select the terminal of QUESTION, unless another key is typed at once.
There, a second RET would be the answer of a user who has not seen the
question."
  (let* ((session (gemini-companion-question-session question))
         (name (gemini-companion-session-name session))
         (terminal (or (gemini-companion-request-buffer question)
                       (user-error
                        "%s asks in its terminal, which is not in this Emacs" name))))
    (unless (sit-for gemini-companion-request-burst-seconds)
      (user-error "Several keys were typed at once; the last one would answer %s"
                  name))
    (gemini-companion-terminal-show terminal)))

(provide 'gemini-companion-question)
;;; gemini-companion-question.el ends here
