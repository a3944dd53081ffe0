;;; gemini-companion-auto.el --- Accepting the edits of a CLI without review  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Accept edits automatically: the edits of a CLI for which the user has turned on
;; auto-accept, and the edits of files for which the user has set a rule.  An unusual
;; edit, such as an edit outside of the project, is reviewed nevertheless.

;;; Code:

(require 'gemini-companion-attribution)
(require 'gemini-companion-choice)
(require 'gemini-companion-commands)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-part)
(require 'gemini-companion-proposal)
(require 'gemini-companion-revert)
(require 'gemini-companion-roots)
(require 'gemini-companion-rules)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-view)

;;;; State

(defconst gemini-companion-auto--active
  '("/\\."                              ; .git, .envrc, .dir-locals.el, .gemini...
    "hooks/[^./]+\\'" "/hooks\\.json\\'"
    "-extension\\.json\\'"             ; of a CLI
    "/mise\\(?:\\.[^/]+\\)?\\.toml\\'"
    "/lefthook[^/]*\\.\\(?:json\\|toml\\|ya?ml\\)\\'")
  "Regexps for files that may be run automatically, as names below a root.
They match all hidden files and directories, since many of those are.")

(defvar gemini-companion-auto--sessions nil
  "Sessions of the CLIs whose edits are accepted without review.
A session is ignored after its CLI has disconnected.")

(defvar gemini-companion-auto--new nil
  "Edits that were not yet offered to auto-accept, the last one first.
An edit that was displayed meanwhile must be reviewed.")

(defun gemini-companion-auto-on-p (&optional session)
  "Return non-nil if auto-accept is on for SESSION.
SESSION defaults to the CLI at point, or if there is none, to any CLI."
  (let ((session (or session (gemini-companion-auto--session-here))))
    (seq-intersection (if session (list session) (gemini-companion-sessions))
                      gemini-companion-auto--sessions
                      #'gemini-companion-session-same-p)))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'auto-accept)))
  "Return non-nil if auto-accept is on for the CLI at point, or for any."
  (gemini-companion-auto-on-p))

(defun gemini-companion-auto--session-here ()
  "Return the CLI at point, or of the review of this buffer, or nil."
  (cond (gemini-companion-edits-view
         (gemini-companion-view-session gemini-companion-edits-view))
        (gemini-companion-edit-here
         (gemini-companion-edit-session gemini-companion-edit-here))))

;;;; Which edits are accepted

(defun gemini-companion-auto--review (edit)
  "Return `always' or `never' if a rule of the user is for EDIT, else nil.
Record the rule in EDIT."
  (let ((verdict (gemini-companion-rules-for
                  (gemini-companion-edit-file edit)
                  (gemini-companion-edit-session edit))))
    (setf (gemini-companion-edit-rule edit)
          (gemini-companion-rules-phrase verdict))
    (and verdict (gemini-companion-rules-verdict-review verdict))))

(defun gemini-companion-auto--wanted-p (edit)
  "Return non-nil if a rule, or auto-accept, is to accept EDIT without review.
Record the deciding rule in EDIT, if there is one.  The edit is reviewed if
`gemini-companion-auto--review-reason' has a reason."
  (pcase (gemini-companion-auto--review edit)
    ('always nil)
    ('never t)
    (_ (gemini-companion-auto-on-p (gemini-companion-edit-session edit)))))

(defun gemini-companion-auto--undecided-p (edit)
  "Return non-nil if EDIT may be about to be accepted without review."
  (and (memq edit gemini-companion-auto--new)
       (or (gemini-companion-auto-on-p (gemini-companion-edit-session edit))
           (rassq 'never (gemini-companion-rules-all)))))

(cl-defmethod gemini-companion-request-certain-p ((edit gemini-companion-edit))
  "Return non-nil unless EDIT may be about to be accepted without review."
  (not (gemini-companion-auto--undecided-p edit)))

(cl-defmethod gemini-companion-request-listed-p ((edit gemini-companion-edit))
  "Return non-nil unless EDIT may be about to be accepted without review."
  (not (gemini-companion-auto--undecided-p edit)))

(defun gemini-companion-auto-offer (&optional all)
  "Accept each new edit that needs no review, by a rule or by auto-accept.
If ALL is non-nil, consider all edits that await an answer.  Such an edit waits
for the user only once it has not been accepted."
  (let* ((undecided (seq-filter #'gemini-companion-auto--undecided-p
                                gemini-companion-auto--new))
         ;; Others may arrive while an outcome is sent.
         (new (prog1 gemini-companion-auto--new
                (setq gemini-companion-auto--new nil))))
    (dolist (edit (if all (gemini-companion-edits-open) (reverse new)))
      (when (and (gemini-companion-edit-open-p edit)
                 (null (gemini-companion-edit-view edit))
                 (gemini-companion-auto--wanted-p edit))
        (gemini-companion-auto--take edit)))
    (dolist (edit undecided)
      (when (gemini-companion-edit-open-p edit)
        (gemini-companion-request-notify edit 'changed)))))

;;;; Acceptance

(defun gemini-companion-auto--take (edit)
  "Accept EDIT without review, or offer it for a review with the reason."
  (let ((reason (condition-case problem
                    (or (gemini-companion-auto--review-reason edit)
                        (gemini-companion-auto--accept edit))
                  ;; After any error, the user must review the edit.
                  (error (gemini-companion-text-problem problem)))))
    (when reason
      (gemini-companion-proposal-offer edit reason))))

(defun gemini-companion-auto--accept (edit)
  "Accept EDIT without a review, and report that; return nil.
Signal an error if EDIT cannot be compared or answered."
  (let ((lines (gemini-companion-edit-hunks-lines (list edit))))
    (gemini-companion-proposal-offer edit nil)
    (unless (active-minibuffer-window)
      (message "Auto-accepted edit of %s%s%s"
               (gemini-companion-edit-name edit)
               (if lines (format " (%s)" lines) "")
               (if (gemini-companion-edit-rule edit)
                   (concat ", " (gemini-companion-edit-rule edit))
                 "")))
    nil))

(defun gemini-companion-auto--review-reason (edit)
  "Return the reason why EDIT must be reviewed, or nil.
The value is a phrase, such as \"unsaved changes in Emacs\", which the header
line and the overview display."
  (pcase-let* ((file (gemini-companion-edit-file edit))
               (name (or (gemini-companion-text-true-name file) file))
               (`(,root ,of-cli) (gemini-companion-roots-outermost
                                  name (gemini-companion-edit-session edit))))
    (cond ((gemini-companion-text-unreadable-reason file))
          ((gemini-companion-edit-texts-emptied-p edit) "the proposal is empty")
          ((not of-cli) "outside the project of the CLI")
          ((string-match-p
            (string-join gemini-companion-auto--active "\\|")
            (downcase (substring name (length (directory-file-name root)))))
           "hidden, or may be run automatically")
          ((gemini-companion-watch-touched-p (gemini-companion-edit-watch edit))
           "file changed since the proposal")
          ((gemini-companion-revert-unsaved file) "unsaved changes in Emacs")
          ((gemini-companion-edit-texts-converted-p edit) "not UTF-8")
          ;; An error of the comparison is a reason as well.
          ((< 0 (progn (gemini-companion-edit-hunks edit)
                       (gemini-companion-edit-lost edit)))
           "characters would be lost")
          ((gemini-companion-attribution-unknown-to-cli-p edit)
           "the CLI may not know your edits of this turn"))))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'auto)))
  "Offer each new edit once."
  '((gemini-companion-request-functions gemini-companion-auto--follow)))

(defun gemini-companion-auto--follow (request event)
  "Offer REQUEST later if it is a new edit, that is, if EVENT is `opened'."
  (when (and (eq event 'opened)
             (gemini-companion-edit-p request))
    (push request gemini-companion-auto--new)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'auto)))
  "Turn auto-accept off."
  (setq gemini-companion-auto--new nil
        gemini-companion-auto--sessions nil))

(cl-defmethod gemini-companion-part-lighter ((_part (eql 'auto)))
  "Return the text and tooltip of auto-accept for the mode line, or nil."
  (and (seq-some #'gemini-companion-auto-on-p (gemini-companion-sessions))
       '("!" . "Edits of a CLI are accepted without review")))

;;;; Commands

(defun gemini-companion-auto-accept (session)
  "Turn auto-accept for the CLI of SESSION on or off.
It stays on until this command turns it off, or the CLI exits.
It also accepts edits that await an answer, except the one that is displayed.

Only edits of regular files in the project of that CLI are accepted.
Hidden files, hooks and other files that may be run automatically,
files with unsaved changes in this Emacs, and files that a rule of
`gemini-companion-review-rules' always reviews are still reviewed; the header
line shows the reason.  The overview, \\[gemini-companion-list], shows the
accepted edits, and can undo them.

Interactively, SESSION is the CLI at point in the overview or of the current
review, or the only connected CLI; if there are several, ask for one."
  (interactive
   (let ((session
          (or (gemini-companion-auto--session-here)
              (gemini-companion-session-read (gemini-companion-sessions)))))
     (unless (or (gemini-companion-auto-on-p session)
                 (gemini-companion-choice-y-or-n-p
                  (format "Accept edits of %s without review? "
                          (gemini-companion-session-name session))))
       (user-error "Auto-accept stays off"))
     (list session)))
  (cond ((gemini-companion-auto-on-p session)
         (cl-callf2 cl-remove session gemini-companion-auto--sessions
                    :test #'gemini-companion-session-same-p)
         (message "Auto-accept ended for %s"
                  (gemini-companion-session-name session)))
        (t
         (push session gemini-companion-auto--sessions)
         (gemini-companion-auto-offer 'again)
         ;; With M-x that is 77 columns; the question before names the CLI.
         (message "Auto-accept on; %s ends it%s"
                  (substitute-command-keys "\\[gemini-companion-auto-accept]")
                  (if (gemini-companion-edits-open session)
                      "; open reviews remain"
                    ""))))
  (gemini-companion-view-follow gemini-companion-edits-view 'changed)
  (gemini-companion-part-update-lighter))

(provide 'gemini-companion-auto)
;;; gemini-companion-auto.el ends here
