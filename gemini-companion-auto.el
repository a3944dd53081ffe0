;;; gemini-companion-auto.el --- Accept edits without review  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Auto-accept: on request, the proposals of a CLI are accepted without review
;; until the user ends that.  It applies only to regular files in the project of
;; the CLI; files with unsaved changes, and those that may be run automatically,
;; are reviewed.

;;; Code:

(require 'gemini-companion-arrival)
(require 'gemini-companion-edit)
(require 'gemini-companion-name)
(require 'gemini-companion-session)
(require 'gemini-companion-text)

;;;; State

(defconst gemini-companion-auto--active
  '("/\\."                              ; .git, .envrc, .dir-locals.el, .gemini...
    "hooks/[^./]+\\'" "/hooks\\.json\\'"
    "/\\(?:gemini\\|qwen\\)-extension\\.json\\'"
    "/mise\\(?:\\.[^/]+\\)?\\.toml\\'"
    "/lefthook[^/]*\\.\\(?:json\\|toml\\|ya?ml\\)\\'")
  "Regexps for names, below a root, of files that may be run automatically.
Any hidden file or directory counts, as so many of them do.")

(defvar gemini-companion-auto--sessions nil
  "Sessions of the CLIs whose edits are accepted without review.
They count while the CLI is connected.")

(defun gemini-companion-auto-on-p (&optional session)
  "Return non-nil if auto-accept is on for SESSION, by default for any CLI."
  (seq-some (lambda (session)
              (seq-contains-p gemini-companion-auto--sessions session
                              #'gemini-companion-session-same-p))
            (if session (list session) (gemini-companion-sessions))))

(defun gemini-companion-auto-review-p ()
  "Return non-nil if auto-accept is on for the CLI of the current review."
  (gemini-companion-auto-on-p
   (gemini-companion-edit-session (gemini-companion-edit-current))))

;;;; Acceptance

(defun gemini-companion-auto--take (edit)
  "Accept EDIT if auto-accept is on for its CLI; return non-nil if so.
If it has to be reviewed nevertheless, record why."
  (when (gemini-companion-auto-on-p (gemini-companion-edit-session edit))
    (if-let* ((objection (gemini-companion-auto--objection edit)))
        (ignore (gemini-companion-edit-object
                 edit (concat "not auto-accepted: " objection)))
      (gemini-companion-edit-take edit 'automatic)
      (unless (active-minibuffer-window)
        (message "Auto-accepted edit of %s" (gemini-companion-edit-name edit)))
      t)))

(defun gemini-companion-auto--objection (edit)
  "Return why EDIT must be reviewed, a short text, or nil."
  (let ((file (gemini-companion-edit-file edit)))
    (pcase-let ((`(,name ,root ,own)
                 (gemini-companion-name-place
                  file (gemini-companion-edit-session edit))))
      (cond ((gemini-companion-text-unreadable-reason file))
            ((gemini-companion-edit-emptied-p edit) "no text is left")
            ((not own) "outside the project of the CLI")
            ((let ((case-fold-search t)
                   (below (substring name
                                     (length (directory-file-name root)))))
               (seq-some (lambda (regexp) (string-match-p regexp below))
                         gemini-companion-auto--active))
             "hidden, or may be run automatically")
            ((gemini-companion-edit-touched-file-p edit)
             "file changed since the proposal")
            ((gemini-companion-revert-unsaved-p file)
             "unsaved changes here")))))

;;;; Start and end

(defun gemini-companion-auto-start ()
  "Handle new proposals."
  (add-hook 'gemini-companion-arrival-functions #'gemini-companion-auto--take))

(defun gemini-companion-auto-lighter ()
  "Return the text and tooltip of auto-accept for the mode line, or nil."
  (and (gemini-companion-auto-on-p)
       '("!" . "Edits of a CLI are accepted without review")))

(defun gemini-companion-auto-stop ()
  "Turn auto-accept off for all CLIs."
  (remove-hook 'gemini-companion-arrival-functions
               #'gemini-companion-auto--take)
  (setq gemini-companion-auto--sessions nil))

;;;; Commands

;;;###autoload
(defun gemini-companion-auto-accept (session)
  "Turn auto-accept for the CLI of SESSION on or off.
It stays on until this command turns it off, or the CLI exits.
Edits that wait are accepted, too, but not the one that is shown.

Only edits of regular files in the project of that CLI are accepted.
Hidden files, hooks and other files that may be run automatically, and
files with unsaved changes in this Emacs are still reviewed, and the
header line shows the reason.  \\[gemini-companion-list] shows the
accepted edits, and can revert them.

Interactively, SESSION is the CLI of the current review, or the only
connected CLI; if there are several, ask for one."
  (interactive
   (list
    (gemini-companion-auto-confirm
     (if gemini-companion-edit-here
         (gemini-companion-edit-session gemini-companion-edit-here)
       (gemini-companion-session-read
        (or (gemini-companion-sessions)
            (user-error "No CLI is connected; M-x gemini-companion-run \
starts one")))))))
  (let ((name (gemini-companion-session-name session))
        (same (apply-partially #'gemini-companion-session-same-p session)))
    (if (gemini-companion-auto-on-p session)
        (progn
          (setq gemini-companion-auto--sessions
                (seq-remove same gemini-companion-auto--sessions))
          (message "Auto-accept ended for %s" name))
      (push session gemini-companion-auto--sessions)
      (gemini-companion-arrival-offer 'again)
      (message "Auto-accept on for %s; %s ends it%s" name
               (substitute-command-keys "\\[gemini-companion-auto-accept]")
               (if (seq-some same (mapcar #'gemini-companion-edit-session
                                          (gemini-companion-edits-open)))
                   " (open reviews still await your answer)"
                 ""))))
  (force-mode-line-update t))

(defun gemini-companion-auto-confirm (session)
  "Return SESSION; if auto-accept is off for it, ask for confirmation.
Signal an error if the answer is no."
  (unless (or (gemini-companion-auto-on-p session)
              (y-or-n-p (format "Accept edits of %s without review? "
                                (gemini-companion-session-name session))))
    (user-error "Auto-accept stays off"))
  session)

(provide 'gemini-companion-auto)
;;; gemini-companion-auto.el ends here
