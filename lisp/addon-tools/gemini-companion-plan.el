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
(require 'gemini-companion-commands)
(require 'gemini-companion-comment)
(require 'gemini-companion-highlight)
(require 'gemini-companion-hunk)
(require 'gemini-companion-lines)
(require 'gemini-companion-log)
(require 'gemini-companion-permission)
(require 'gemini-companion-request)
(require 'gemini-companion-session)
(require 'gemini-companion-text)

(declare-function markdown-mode "ext:markdown-mode")
(defvar markdown-fontify-code-blocks-natively)
(defvar markdown-hide-markup)

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
TEXT is the displayed text of the plan, and PREVIOUS the text of the last plan
of that CLI, or nil.  BEGINNING is the position of the plan in its buffer."
  text previous beginning)

(defvar gemini-companion-plan--largest 100000
  "Maximum number of characters of a plan to display.")

(defvar gemini-companion-plan--largest-highlighted 20000
  "Maximum number of characters of a plan to highlight.")

(defvar gemini-companion-plan--last nil
  "The last plans of CLIs, a list of (SESSION . TEXT), the newest first.")

(cl-defmethod gemini-companion-permission-new ((_kind (eql 'plan)) parsed slots)
  "Return the plan for PARSED and SLOTS, with the previous plan of its CLI."
  (let* ((whole (plist-get parsed :plan))
         (text (substring whole 0 (min (length whole)
                                       gemini-companion-plan--largest)))
         (cut (gemini-companion-permission-fit
               (apply #'append (plist-get parsed :arguments))))
         (plan (apply #'gemini-companion-plan--make
                      :tool (plist-get parsed :tool)
                      :text text
                      :cut (+ (cdr cut) (- (length whole) (length text)))
                      :arguments (seq-partition (car cut) 2)
                      :summary (gemini-companion-permission-summarize
                                (plist-get parsed :tool) text nil)
                      slots)))
    (setf (gemini-companion-plan-previous plan)
          (cdr (seq-find (lambda (last)
                           (gemini-companion-permission-of-p plan (car last)))
                         gemini-companion-plan--last)))
    (setq gemini-companion-plan--last
          (seq-take (cons (cons (gemini-companion-permission-session plan) text)
                          gemini-companion-plan--last)
                    20))
    plan))

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
    (read-string "What should the plan have instead: ")))

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
them.  Mark lines that the last version did not have."
  (let* ((start (point))
         (problem nil)
         (changed (condition-case err
                      (gemini-companion-plan--changed plan)
                    (gemini-companion-text-not-compared
                     (ignore (setq problem (error-message-string err)))))))
    (gemini-companion-permission-insert-facts plan)
    (gemini-companion-permission-insert-row
     "Approve" "in the terminal; its first choice is the previous mode, such as \
yolo")
    (when (gemini-companion-plan-previous plan)
      (gemini-companion-permission-insert-row
       "Changed" (or problem
                     (format (ngettext "%d line since the last version"
                                       "%d lines since the last version"
                                       (length changed))
                             (length changed)))))
    (pcase-dolist (`(,name ,text) (gemini-companion-permission-arguments plan))
      (gemini-companion-permission-insert-argument name (or text "")))
    (add-face-text-property start (point) 'shadow 'append)
    (gemini-companion-permission-insert-cut (gemini-companion-permission-cut plan))
    (insert "\n")
    (setf (gemini-companion-plan-beginning plan) (point))
    (insert (gemini-companion-plan--highlighted
             (gemini-companion-text-escaped (gemini-companion-plan-text plan)
                                            'composed 'lines)))
    (gemini-companion-plan--mark plan changed)
    (goto-char (point-min))))

(defun gemini-companion-plan--changed (plan)
  "Return the numbers of the lines of PLAN that its last version did not have.
The numbers begin at 0, and are in order.  Return nil if there is no last
version."
  (when-let* ((previous (gemini-companion-plan-previous plan)))
    (seq-mapcat (lambda (region)
                  (number-sequence (gemini-companion-hunk-new region)
                                   (1- (gemini-companion-hunk-new-end
                                        region))))
                (gemini-companion-hunk-compare-lines
                 (gemini-companion-lines-split previous)
                 (gemini-companion-lines-split (gemini-companion-plan-text plan))))))

(defun gemini-companion-plan--mark (plan changed)
  "Put a bar before the lines of PLAN, and a plus before those of CHANGED.
CHANGED are as for `gemini-companion-plan--changed'."
  (let ((start (gemini-companion-plan-beginning plan))
        (bar (concat (gemini-companion-text-sign ?\u2502 "|") " "))
        (plus (propertize "+ " 'face 'gemini-companion-added))
        (line 0))
    (put-text-property start (point-max) 'line-prefix bar)
    (put-text-property start (point-max) 'wrap-prefix bar)
    (goto-char start)
    (dolist (number changed)
      (forward-line (- number line))
      (setq line number)
      (let ((end (min (point-max) (1+ (line-end-position)))))
        (add-text-properties (point) end `(line-prefix ,plus wrap-prefix ,plus))
        (add-face-text-property (point) end 'gemini-companion-added 'append)))))

(defun gemini-companion-plan--highlighted (text)
  "Return TEXT with the faces of Markdown mode, if that is installed.
All of TEXT stays visible, and no hook of that mode runs."
  (or (and (<= (length text) gemini-companion-plan--largest-highlighted)
           (or (fboundp 'markdown-mode)
               (require 'markdown-mode nil 'noerror))
           (gemini-companion-log-guarded "Mode for the plan"
             (gemini-companion-plan--with-faces text)))
      text))

(defun gemini-companion-plan--with-faces (text)
  "Return a copy of TEXT with the faces of Markdown mode behind its own."
  (let ((copy (copy-sequence text)))
    (with-temp-buffer
      (insert text)
      (let ((enable-local-variables nil)
            (inhibit-interaction t)
            (inhibit-message t)
            (default-directory "/")
            ;; The CLI chooses the modes of code blocks.
            (markdown-fontify-code-blocks-natively nil)
            (markdown-hide-markup nil))
        (delay-mode-hooks (markdown-mode))
        (font-lock-ensure))
      (let ((start (point-min)))
        (while (< start (point-max))
          (let ((end (next-single-property-change start 'face nil (point-max)))
                (face (get-text-property start 'face)))
            (when face
              (add-face-text-property (1- start) (1- end) face 'append copy))
            (setq start end)))))
    copy))

;;;; Comments

(defun gemini-companion-plan--comments-text (plan)
  "Return the comments on PLAN for the model, each with its lines."
  (concat "Comments of the user on the plan:\n\n"
          (string-join (gemini-companion-comment-texts-of-edit plan) "\n\n")
          "\n\nRevise the plan and present it again."))

;;;; Life

(defun gemini-companion-plan-forget ()
  "Drop the last versions of plans."
  (setq gemini-companion-plan--last nil))

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
