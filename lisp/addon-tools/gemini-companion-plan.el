;;; gemini-companion-plan.el --- Plans that CLIs ask about  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A plan is a request in which a linked CLI asks for approval of its plan.  It arrives
;; and ends like a permission.  The user comments on its lines; if the hook of the CLI
;; waits, the comments are sent to the model, which revises the plan.  The user
;; approves the plan only in the terminal, and chooses there the mode in which the CLI
;; continues.
;;
;; If a CLI writes its plan to a file, the plan has a review instead.  After that, the
;; CLI asks whether to start; this request has no comments.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-choice)
(require 'gemini-companion-commands)
(require 'gemini-companion-comment)
(require 'gemini-companion-permission)
(require 'gemini-companion-request)
(require 'gemini-companion-session)
(require 'gemini-companion-text)

;;;; Keys

(defvar gemini-companion-plan-mode-map
  ;; The map of permissions is no parent, since its keys allow and refuse.
  (gemini-companion-commands-special-map 'plan)
  "Keys in the buffer of a plan.")

;;;; State

(cl-defstruct (gemini-companion-plan
               (:noinline t)
               (:include gemini-companion-permission (kind 'plan))
               (:constructor gemini-companion-plan--make)
               (:copier nil))
  "A plan for which a CLI asks approval.
TEXT is the displayed text of the plan.  BEGINNING is the position of the plan
in its buffer."
  text beginning)

(defvar gemini-companion-plan--largest 100000
  "Maximum number of characters of a plan to display.")

(cl-defmethod gemini-companion-permission-new ((_kind (eql 'plan)) parsed slots)
  "Return the plan for PARSED and SLOTS."
  (let* ((whole (plist-get parsed :plan))
         (text (substring whole 0 (min (length whole)
                                       gemini-companion-plan--largest)))
         (cut (gemini-companion-permission-fit
               (apply #'append (plist-get parsed :arguments)))))
    (apply #'gemini-companion-plan--make
           :tool (plist-get parsed :tool)
           :text text
           :cut (+ (cdr cut) (- (length whole) (length text)))
           :arguments (seq-partition (car cut) 2)
           :summary (gemini-companion-permission-summarize
                     (plist-get parsed :tool) text nil)
           slots)))

;;;; A plan as a request

(cl-defmethod gemini-companion-permission-major-mode ((_plan gemini-companion-plan))
  "Return the mode for a plan."
  'gemini-companion-plan-mode)

(cl-defmethod gemini-companion-permission-context ((_plan gemini-companion-plan))
  "Return the context of the keys of a plan."
  'plan)

(cl-defmethod gemini-companion-permission-reason ((plan gemini-companion-plan))
  "Return the comments on PLAN; without any, read what to change."
  (if (gemini-companion-plan-comments plan)
      (gemini-companion-plan--comments-text plan)
    (gemini-companion-choice-reason "Change the plan to: ")))

(cl-defmethod gemini-companion-permission-closed ((plan gemini-companion-plan))
  "Add the comments on PLAN that were not sent to the kill ring."
  (when (and (gemini-companion-plan-comments plan)
             (not (eq 'refused (gemini-companion-permission-outcome plan))))
    (gemini-companion-text-keep (gemini-companion-plan--comments-text plan)
                                "The question about the plan has ended"))
  (setf (gemini-companion-plan-comments plan) nil))

(cl-defmethod gemini-companion-request-answer ((plan gemini-companion-plan) answer)
  "Send ANSWER, a cons (refuse . TEXT) with the words of the user, to PLAN.
Signal a `user-error' for another answer: a plan is approved in the terminal."
  (unless (consp answer)
    (user-error "Answer in the terminal of %s"
                (gemini-companion-permission-title plan)))
  (cl-call-next-method))

;;;; Text

(define-derived-mode gemini-companion-plan-mode gemini-companion-permission-mode
  "Plan"
  "Mode of a buffer with a plan for which a CLI asks approval.

\\{gemini-companion-plan-mode-map}"
  :interactive nil
  ;; In prose, unlike in commands, characters with accents are usual.
  (setq-local auto-composition-mode t
              word-wrap t)
  (gemini-companion-commands-letters-are-keys 'gemini-companion-plan-mode))

(cl-defmethod gemini-companion-permission-insert ((plan gemini-companion-plan))
  "Insert the origin of PLAN, and then its text, with a bar before each line.
Lines by Emacs have no bar and precede the text, so that the CLI cannot imitate
them."
  (let ((start (point))
        (bar (concat (gemini-companion-text-sign ?\u2502 "|") " ")))
    (gemini-companion-permission-insert-facts plan)
    (gemini-companion-permission-insert-row
     "Approve" "in the terminal; its first choice is the previous mode, such as \
yolo")
    (pcase-dolist (`(,name ,text) (gemini-companion-permission-arguments plan))
      (gemini-companion-permission-insert-argument name (or text "")))
    (add-face-text-property start (point) 'shadow 'append)
    (gemini-companion-permission-insert-cut (gemini-companion-permission-cut plan))
    (insert "\n")
    (setf (gemini-companion-plan-beginning plan) (point))
    (insert (propertize (gemini-companion-text-escaped (gemini-companion-plan-text plan)
                                                       'composed 'lines)
                        'line-prefix bar 'wrap-prefix bar))
    (goto-char (point-min))))

;;;; Comments

(defun gemini-companion-plan--comments-text (plan)
  "Return the comments on PLAN for the model, each with its lines."
  (concat "Comments of the user on the plan:\n\n"
          (string-join (gemini-companion-comment-texts-of-edit plan) "\n\n")
          "\n\nRevise the plan and present it again."))

;;;; Commands

(defun gemini-companion-plan-comment-here ()
  "Comment on the line of the plan at point, or on the lines of the region.
An empty comment removes the comment on these lines.
\\<gemini-companion-plan-mode-map>\\[gemini-companion-permission-refuse-with-reason] \
sends all comments."
  (interactive nil gemini-companion-plan-mode)
  (let ((plan gemini-companion-permission-here))
    (cond ((not (gemini-companion-plan-p plan))
           (user-error "No plan here"))
          ((gemini-companion-permission-outcome plan)
           (user-error "The question about this plan has ended; q closes it"))
          ((< (if (use-region-p) (region-beginning) (point))
              (gemini-companion-plan-beginning plan))
           (user-error "No line of the plan here")))
    (gemini-companion-comment-on-request plan)))

(provide 'gemini-companion-plan)
;;; gemini-companion-plan.el ends here
