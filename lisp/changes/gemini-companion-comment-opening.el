;;; gemini-companion-comment-opening.el --- The text that begins a prompt with comments  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A comment on a turn does not belong to a line of a file.  It is the opening: the
;; text that begins the next prompt with comments for that CLI.  A CLI has at most one
;; opening, which is removed when the prompt is sent.

;;; Code:

(require 'gemini-companion-comment)
(require 'gemini-companion-part)
(require 'gemini-companion-session)
(require 'seq)
(require 'subr-x)

(defvar gemini-companion-comment-opening--all nil
  "The openings that were not sent, a list of (SESSION . TEXT).")

(defun gemini-companion-comment-opening--of-p (session opening)
  "Return non-nil if OPENING, (SESSION . TEXT), is for the CLI of SESSION."
  (let ((other (car opening)))
    (or (gemini-companion-session-same-p session other)
        (and (gemini-companion-session-directory other)
             (gemini-companion-session-next-p session other)))))

(defun gemini-companion-comment-opening (session)
  "Return the opening for the CLI of SESSION, a text, or nil."
  (cdr (seq-find (apply-partially #'gemini-companion-comment-opening--of-p session)
                 gemini-companion-comment-opening--all)))

(defun gemini-companion-comment-opening-set (session text)
  "Let TEXT be the opening for the CLI of SESSION.
Without TEXT, or if it is blank, there is none."
  (setq gemini-companion-comment-opening--all
        (seq-remove (apply-partially #'gemini-companion-comment-opening--of-p session)
                    gemini-companion-comment-opening--all))
  (unless (string-blank-p (or text ""))
    (push (cons session text) gemini-companion-comment-opening--all))
  (run-hook-with-args 'gemini-companion-comment-functions nil))

(defun gemini-companion-comment-opening-read (session &optional more)
  "Read the opening for the CLI of SESSION; the previous one can be edited.
MORE is nil, or a text that the opening is to have as well."
  (let* ((previous (gemini-companion-comment-opening session))
         (begin (if (and more (not (string-search more (or previous ""))))
                    (concat previous (and previous "\n\n") more)
                  previous))
         (text (read-string (format "Begin the next prompt for %s with: "
                                    (gemini-companion-session-name session))
                            begin)))
    ;; The CLI would execute it, and not read the comments.
    (when (string-match-p "\\`[[:space:]]*[/!]" text)
      (user-error "A prompt that begins with / or ! is a command; begin with a word"))
    (gemini-companion-comment-opening-set session text)))

;;;; Life

(cl-defmethod gemini-companion-part-saved ((_part (eql 'comment-opening)))
  "Return the openings, each with the directory of its CLI."
  (seq-filter #'car
              (mapcar (pcase-lambda (`(,session . ,text))
                        (list (and (null (gemini-companion-session-remote session))
                                   (gemini-companion-session-directory session))
                              (gemini-companion-session-facts session) text))
                      gemini-companion-comment-opening--all)))

(cl-defmethod gemini-companion-part-restore ((_part (eql 'comment-opening)) items)
  "Restore the openings in ITEMS, for the next CLIs in their directories."
  (pcase-dolist (`(,_ ,facts ,text) items)
    (let ((session (gemini-companion-session-from-facts facts)))
      (unless (gemini-companion-comment-opening session)
        (gemini-companion-comment-opening-set session text)))))

(cl-defmethod gemini-companion-part-stop :after ((_part (eql 'comment)))
  "Forget all openings."
  (setq gemini-companion-comment-opening--all nil))

(provide 'gemini-companion-comment-opening)
;;; gemini-companion-comment-opening.el ends here
