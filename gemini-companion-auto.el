;;; gemini-companion-auto.el --- Accept edits without review  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software; you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.

;; This program is distributed in the hope that it will be useful,
;; but WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
;; GNU General Public License for more details.

;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; Auto-accept: on request, and for one Gemini CLI at a time, proposals are
;; accepted without a review until the user ends that.  What was accepted is
;; kept, to be seen and reverted afterwards.  It holds for regular files of the
;; CLI's project only; what the user has unsaved changes in, and what runs by
;; itself, is reviewed.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-diff)
(require 'gemini-companion-name)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'seq)
(require 'subr-x)

;;;; State

(defconst gemini-companion-auto--gone-seconds 15
  "Seconds after which auto-accept ends for a CLI that is gone.")

(defconst gemini-companion-auto--active
  '("/\\."                              ; .git, .envrc, .dir-locals.el, .gemini...
    "/hooks/[^./]+\\'" "/hooks\\.json\\'"
    "/\\(?:gemini\\|qwen\\)-extension\\.json\\'"
    "/mise\\(?:\\.[^/]+\\)?\\.toml\\'"
    "/lefthook[^/]*\\.\\(?:json\\|toml\\|ya?ml\\)\\'")
  "Regexps for names, below a root, of files that may run by themselves.
Any hidden file or directory counts, as so many of them do.")

(defconst gemini-companion-auto--most-edits 100
  "How many accepted edits are kept.")

(defconst gemini-companion-auto--most-bytes (* 5 1024 1024)
  "Size above which the former text of a file is not kept.")

(defconst gemini-companion-auto--most-bytes-in-all (* 40 1024 1024)
  "Size of all texts that are kept.")

(cl-defstruct (gemini-companion-auto--grant
               (:constructor gemini-companion-auto--grant-make)
               (:copier nil))
  "Auto-accept for the CLI of SESSION.
TIMER ends it, as that CLI is gone, or is nil."
  session timer)

(cl-defstruct (gemini-companion-auto-edit
               (:constructor gemini-companion-auto-edit--make)
               (:copier nil))
  "An edit of FILE by SESSION that was auto-accepted at TIME.
FORMER is the text that the file had, undecoded, `new' if there
was no file, or `large'.  TEXT is the text that was accepted."
  session file time former text)

(defvar gemini-companion-auto--grants nil
  "The grants that hold now.")

(defvar gemini-companion-auto--edits nil
  "The edits that were auto-accepted, the last one first.")

;;;; Looking

(defun gemini-companion-auto-accepted ()
  "Return the edits that were auto-accepted, the last one first."
  (copy-sequence gemini-companion-auto--edits))

(defun gemini-companion-auto-on-p (&optional session)
  "Return non-nil if auto-accept is on for SESSION, or for any."
  (if session
      (gemini-companion-auto--grant session)
    gemini-companion-auto--grants))

(defun gemini-companion-auto--grant (session)
  "Return the grant for SESSION, or nil."
  (seq-find (lambda (grant)
              (gemini-companion-session-same-p
               session (gemini-companion-auto--grant-session grant)))
            gemini-companion-auto--grants))

;;;; Accepting

(defun gemini-companion-auto-take (diff)
  "Accept DIFF if auto-accept is on for its CLI; return non-nil if so.
If it has to be reviewed nevertheless, record why."
  (when (gemini-companion-auto-on-p (gemini-companion-diff-session diff))
    (if-let* ((objection (gemini-companion-auto--objection diff)))
        (ignore (setf (gemini-companion-diff-note diff)
                      (concat "not auto-accepted: " objection)))
      (gemini-companion-auto--accept diff)
      t)))

(defun gemini-companion-auto--accept (diff)
  "Accept DIFF and keep what it was."
  (let* ((file (gemini-companion-diff-file-path diff))
         (edit (gemini-companion-auto-edit--make
                :session (gemini-companion-diff-session diff)
                :file file :time (float-time)
                :former (gemini-companion-auto--former file))))
    (gemini-companion-diff-take diff)
    (setf (gemini-companion-auto-edit-text edit)
          (gemini-companion-diff-accepted-text diff))
    (gemini-companion-auto--keep edit)))

(defun gemini-companion-auto--objection (diff)
  "Return why DIFF has to be reviewed, a short text, or nil."
  (let ((file (gemini-companion-diff-file-path diff)))
    (pcase-let ((`(,name ,root ,own)
                 (gemini-companion-name-place
                  file (gemini-companion-diff-session diff))))
      (cond ((gemini-companion-text-problem file))
            ((not own) "outside the project of the CLI")
            ((gemini-companion-auto--active-p name root)
             "hidden, or may run by itself")
            ((gemini-companion-diff-changed diff)
             "file changed since it was proposed")
            ((gemini-companion-revert-unsaved-p file)
             "unsaved changes here")))))

(defun gemini-companion-auto--active-p (name root)
  "Return non-nil if the file NAME in ROOT is one that may run by itself."
  (let ((case-fold-search t)
        (below (substring name (length (directory-file-name root)))))
    (seq-some (lambda (regexp) (string-match-p regexp below))
              gemini-companion-auto--active)))

(defun gemini-companion-auto--former (file)
  "Return the present text of FILE, as in `gemini-companion-auto-edit'."
  (let ((size (file-attribute-size (gemini-companion-text-attributes file))))
    (cond ((null size) 'new)
          ((< gemini-companion-auto--most-bytes size) 'large)
          (t (gemini-companion-text-bytes file)))))

(defun gemini-companion-auto--keep (edit)
  "Keep EDIT and report it; drop the oldest if there are too many."
  (let ((bytes 0))
    (setq gemini-companion-auto--edits
          (seq-take-while
           (lambda (edit)
             (setq bytes (+ bytes (gemini-companion-auto--bytes edit)))
             (< bytes gemini-companion-auto--most-bytes-in-all))
           (seq-take (cons edit gemini-companion-auto--edits)
                     gemini-companion-auto--most-edits))))
  (unless (active-minibuffer-window)
    (message (substitute-command-keys
              "Auto-accepted edit of %s (\\[gemini-companion-list] to list)")
             (gemini-companion-auto--name edit))))

(defun gemini-companion-auto--name (edit)
  "Return the name of the file of EDIT for the user."
  (gemini-companion-name (gemini-companion-auto-edit-file edit)
                         (gemini-companion-auto-edit-session edit)))

(defun gemini-companion-auto--bytes (edit)
  "Return the size of the texts of EDIT."
  (let ((former (gemini-companion-auto-edit-former edit)))
    (+ (if (stringp former) (string-bytes former) 0)
       (string-bytes (gemini-companion-auto-edit-text edit)))))

;;;; Grants

(defun gemini-companion-auto--start (session)
  "Accept the edits of SESSION without review from now on.
Those that wait are accepted too; one that is shown is not."
  (push (gemini-companion-auto--grant-make :session session)
        gemini-companion-auto--grants)
  (gemini-companion-diff-offer-again)
  (force-mode-line-update t)
  (message (substitute-command-keys
            "Auto-accept on for %s; \\[gemini-companion-auto-accept] ends it%s")
           (gemini-companion-session-name session)
           (if (seq-some (lambda (diff)
                           (gemini-companion-session-same-p
                            session (gemini-companion-diff-session diff)))
                         (gemini-companion-diffs))
               " (open reviews still await your answer)"
             "")))

(defun gemini-companion-auto--end-in (grant seconds)
  "End GRANT in SECONDS."
  (setf (gemini-companion-auto--grant-timer grant)
        (run-at-time seconds nil #'gemini-companion-auto--end grant)))

(defun gemini-companion-auto--cancel (grant)
  "Cancel the timer of GRANT, if it has one."
  (when-let* ((timer (gemini-companion-auto--grant-timer grant)))
    (cancel-timer timer)
    (setf (gemini-companion-auto--grant-timer grant) nil)))

(defun gemini-companion-auto--end (grant)
  "End GRANT and report it."
  (gemini-companion-auto--cancel grant)
  (setq gemini-companion-auto--grants
        (delq grant gemini-companion-auto--grants))
  (force-mode-line-update t)
  (unless (active-minibuffer-window)
    (message "Auto-accept ended for %s"
             (gemini-companion-session-name
              (gemini-companion-auto--grant-session grant)))))

(defun gemini-companion-auto--sessions-changed (&rest _)
  "End the grants of CLIs that are gone, unless they come back soon."
  (dolist (grant gemini-companion-auto--grants)
    (cond ((gemini-companion-auto--there-p grant)
           (gemini-companion-auto--cancel grant))
          ((not (gemini-companion-auto--grant-timer grant))
           (gemini-companion-auto--end-in
            grant gemini-companion-auto--gone-seconds)))))

(defun gemini-companion-auto--there-p (grant)
  "Return non-nil if the CLI of GRANT is connected."
  (seq-some (lambda (session)
              (gemini-companion-session-same-p
               session (gemini-companion-auto--grant-session grant)))
            (gemini-companion-sessions)))

(defun gemini-companion-auto-start ()
  "Accept edits of CLIs as the user asks for it.
Follow which CLIs are connected."
  (add-hook 'gemini-companion-diff-arrival-functions
            #'gemini-companion-auto-take)
  (add-hook 'gemini-companion-session-changed-functions
            #'gemini-companion-auto--sessions-changed))

(defun gemini-companion-auto-lighter ()
  "Return the text and tooltip of auto-accept for the mode line, or nil."
  (and (gemini-companion-auto-on-p)
       '("!" . "Edits of a CLI are accepted without review")))

(defun gemini-companion-auto-stop ()
  "End all grants and forget what was accepted."
  (remove-hook 'gemini-companion-diff-arrival-functions
               #'gemini-companion-auto-take)
  (remove-hook 'gemini-companion-session-changed-functions
               #'gemini-companion-auto--sessions-changed)
  (when-let* ((buffer (get-buffer "*gemini accepted*")))
    (kill-buffer buffer))
  (mapc #'gemini-companion-auto--cancel gemini-companion-auto--grants)
  (setq gemini-companion-auto--grants nil
        gemini-companion-auto--edits nil))

;;;; Reverting

(defun gemini-companion-auto-show (edit)
  "Show what EDIT, which was auto-accepted, has changed."
  (let ((name (substring-no-properties (gemini-companion-auto--name edit)))
        (former (car (gemini-companion-auto--decoded edit)))
        (text (gemini-companion-auto-edit-text edit)))
    (unless (executable-find diff-command)
      (user-error "The program %s is not there; set `diff-command'"
                  diff-command))
    (with-current-buffer (get-buffer-create "*gemini accepted*")
      (let ((inhibit-read-only t)
            (coding-system-for-read 'utf-8-unix))
        (erase-buffer)
        (gemini-companion-auto--insert-diff name former text))
      (diff-mode)
      (setq buffer-read-only t)
      (goto-char (point-min)))
    (pop-to-buffer "*gemini accepted*")))

(defun gemini-companion-auto--insert-diff (name former text)
  "Insert the diff between FORMER and TEXT, both of the file NAME."
  (let ((files (mapcar #'gemini-companion-text-temporary-file
                       (list former text))))
    (unwind-protect
        (apply #'call-process diff-command nil t nil "--text" "-u"
               "--label" (concat name "\tbefore")
               "--label" (concat name "\taccepted")
               files)
      (mapc #'delete-file files))))

(defun gemini-companion-auto--buffer (name text)
  "Return a new buffer NAME with TEXT."
  (with-current-buffer (generate-new-buffer name)
    (insert text)
    (current-buffer)))

(defun gemini-companion-auto--decoded (edit)
  "Return a cons of the former text of EDIT and its coding system."
  (pcase (gemini-companion-auto-edit-former edit)
    ('new '("" . utf-8-unix))
    ('large (user-error "The former text was too large to be kept"))
    (former
     (let ((coding (detect-coding-string former t)))
       (cons (decode-coding-string former coding) coding)))))

(defun gemini-companion-auto-revert (edit)
  "Put the text from before EDIT into the buffer of its file, unsaved.
Refuse if the file has changed since."
  (let ((file (gemini-companion-auto-edit-file edit))
        (name (gemini-companion-auto--name edit)))
    (when (eq 'new (gemini-companion-auto-edit-former edit))
      (user-error "%s was new; delete it to revert that" name))
    (pcase-let ((`(,text . ,coding) (gemini-companion-auto--decoded edit)))
      (unless (gemini-companion-auto--as-accepted-p edit)
        (user-error "%s has changed since; revert the edit by hand" name))
      (when (gemini-companion-revert-unsaved-p file)
        (user-error "%s has unsaved changes; save or undo them first" name))
      (gemini-companion-auto--put file text coding))
    (message (substitute-command-keys
              "Reverted %s, not saved yet; \\[save-buffer] saves it")
             name)))

(defun gemini-companion-auto--as-accepted-p (edit)
  "Return non-nil if the file of EDIT is as it was accepted.
Gemini CLI keeps the line ends and the last newline of the file."
  (let ((file (gemini-companion-auto-edit-file edit)))
    (and (file-exists-p file)
         (string= (gemini-companion-auto--plain
                   (gemini-companion-auto-edit-text edit))
                  (gemini-companion-auto--plain
                   (gemini-companion-text-read file))))))

(defun gemini-companion-auto--plain (text)
  "Return TEXT without what Gemini CLI may change in it as it writes."
  (string-trim-right (string-remove-prefix
                      "\uFEFF" (string-replace "\r\n" "\n" text))
                     "\n"))

(defun gemini-companion-auto--put (file text coding)
  "Make TEXT that of the buffer of FILE, to be saved in CODING."
  (let ((source (gemini-companion-auto--buffer " *gemini former*" text)))
    (unwind-protect
        (progn
          (pop-to-buffer (find-file-noselect file))
          (let ((inhibit-read-only t))
            (save-restriction
              (widen)
              (replace-buffer-contents source 0.5)))
          (unless (eq 'undecided (coding-system-base coding))
            (setq buffer-file-coding-system coding))
          (set-buffer-modified-p t))
      (kill-buffer source))))

;;;; Commands

(defun gemini-companion-auto-accept (session)
  "Accept the edits of SESSION without review, or end that.
It holds for that one CLI until this command ends it, or the CLI
has gone.  Edits that wait are accepted too, the one that is shown
is not.

Only edits of regular files in the project of that CLI are
accepted so, not of hidden ones, hooks and other files that may
run by themselves, nor of a file with unsaved changes in this
Emacs.  Others are reviewed, and the header line gives the reason.  What
was accepted is in \\[gemini-companion-list], to be seen and reverted.

Interactively SESSION is the CLI of the review here, or the only
one, or asked for."
  (interactive
   (list (gemini-companion-auto-confirm (gemini-companion-auto--read-session))))
  (if-let* ((grant (gemini-companion-auto--grant session)))
      (gemini-companion-auto--end grant)
    (gemini-companion-auto--start session)))

(defun gemini-companion-auto--read-session ()
  "Return the session that the user means."
  (let ((sessions (gemini-companion-sessions)))
    (cond (gemini-companion-diff-here
           (gemini-companion-diff-session gemini-companion-diff-here))
          ((null sessions) (user-error "No CLI is connected"))
          ((null (cdr sessions)) (car sessions))
          (t (gemini-companion-session-read "CLI" sessions)))))

(defun gemini-companion-auto-confirm (session)
  "Return SESSION, after a question if auto-accept is off for it.
Signal an error if the answer is no."
  (unless (or (gemini-companion-auto-on-p session)
              (y-or-n-p (format "Accept edits of %s without review? "
                                (gemini-companion-session-name session))))
    (user-error "Auto-accept stays off"))
  session)

(provide 'gemini-companion-auto)
;;; gemini-companion-auto.el ends here
