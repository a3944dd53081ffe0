;;; gemini-companion-auto.el --- Accept the edits of a CLI unseen  -*- lexical-binding: t; -*-

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

;; On request, and for one Gemini CLI at a time, proposals are accepted without
;; a review, for a while.  What was accepted so is kept, to be looked at and
;; taken back afterwards.  An edit of a file with unsaved text in this Emacs is
;; reviewed all the same.
;;
;; The protocol does not tell when a turn of the model ends; here it has ended
;; when the CLI has proposed nothing for a minute.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-diff)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'seq)
(require 'subr-x)

;;;; State

(defconst gemini-companion-auto--turn-seconds 60
  "After how long without a proposal a turn counts as ended.")

(defconst gemini-companion-auto--gone-seconds 15
  "For how long a CLI may be away before its edits are reviewed again.")

(defconst gemini-companion-auto--most-edits 100
  "How many accepted edits are kept.")

(defconst gemini-companion-auto--most-bytes (* 5 1024 1024)
  "Size above which the former text of a file is not kept.")

(defconst gemini-companion-auto--most-bytes-in-all (* 40 1024 1024)
  "Size of all texts that are kept.")

(cl-defstruct (gemini-companion-auto--grant
               (:constructor gemini-companion-auto--grant-make)
               (:copier nil))
  "That the edits of SESSION are accepted unseen.
TURN is non-nil if only for the rest of the turn.  TIMER ends it,
or is nil."
  session turn timer)

(cl-defstruct (gemini-companion-auto-edit
               (:constructor gemini-companion-auto-edit--make)
               (:copier nil))
  "An edit of FILE by SESSION that was accepted unseen at TIME.
FORMER is the text that the file had, undecoded, `new' if there
was no file, or `large'.  TEXT is the text that was accepted."
  session file time former text)

(defvar gemini-companion-auto--grants nil
  "The grants that hold now.")

(defvar gemini-companion-auto--edits nil
  "The edits that were accepted unseen, the last one first.")

;;;; Looking

(defun gemini-companion-auto-accepted ()
  "Return the edits that were accepted unseen, the last one first."
  (copy-sequence gemini-companion-auto--edits))

(defun gemini-companion-auto-on-p (&optional session)
  "Return non-nil if edits of SESSION, or of any, are accepted unseen."
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
  "Accept DIFF if its CLI may edit unseen; return non-nil if so.
A file with unsaved text in a buffer is not touched so."
  (let ((grant (gemini-companion-auto--grant
                (gemini-companion-diff-session diff)))
        (file (gemini-companion-diff-file-path diff)))
    (when grant
      (gemini-companion-auto--prolong grant)
      (unless (or (gemini-companion-text-problem file)
                  (gemini-companion-auto--unsaved-p file))
        (let ((edit (gemini-companion-auto-edit--make
                     :session (gemini-companion-diff-session diff)
                     :file file :time (float-time)
                     :former (gemini-companion-auto--former file))))
          (gemini-companion-diff-accept diff)
          (setf (gemini-companion-auto-edit-text edit)
                (gemini-companion-diff-accepted-text diff))
          (gemini-companion-auto--keep edit)
          t)))))

(defun gemini-companion-auto--unsaved-p (file)
  "Return non-nil if a buffer of FILE has unsaved text."
  (when-let* ((buffer (find-buffer-visiting file)))
    (buffer-modified-p buffer)))

(defun gemini-companion-auto--former (file)
  "Return the present text of FILE, as in `gemini-companion-auto-edit'."
  (let ((size (file-attribute-size (gemini-companion-text-attributes file))))
    (cond ((null size) 'new)
          ((< gemini-companion-auto--most-bytes size) 'large)
          (t (gemini-companion-text-bytes file)))))

(defun gemini-companion-auto--keep (edit)
  "Keep EDIT, and say so; forget the oldest if there are too many."
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
              "Accepted unseen: %s; \\[gemini-companion-list] lists it")
             (file-name-nondirectory (gemini-companion-auto-edit-file edit)))))

(defun gemini-companion-auto--bytes (edit)
  "Return the size of the texts of EDIT."
  (let ((former (gemini-companion-auto-edit-former edit)))
    (+ (if (stringp former) (string-bytes former) 0)
       (string-bytes (gemini-companion-auto-edit-text edit)))))

;;;; Grants

(defun gemini-companion-auto--grant-to (session turn)
  "Accept the edits of SESSION from now on, for the TURN if non-nil.
Those that wait are accepted too; one that is shown is not."
  (let ((grant (gemini-companion-auto--grant-make :session session
                                                  :turn turn)))
    (push grant gemini-companion-auto--grants)
    (gemini-companion-auto--prolong grant)
    (gemini-companion-diff-offer-again)
    (force-mode-line-update t)
    (message "Edits of %s are accepted unseen %s%s"
             (gemini-companion-session-name session)
             (if turn
                 "until it has proposed nothing for a minute"
               (substitute-command-keys
                "until \\[gemini-companion-auto-accept] ends that"))
             (if (seq-some (lambda (diff)
                             (gemini-companion-session-same-p
                              session (gemini-companion-diff-session diff)))
                           (gemini-companion-diffs))
                 ", but for those that still await your answer"
               ""))))

(defun gemini-companion-auto--prolong (grant)
  "Let GRANT hold a while longer if it is for a turn."
  (when (gemini-companion-auto--grant-turn grant)
    (gemini-companion-auto--end-in grant
                                   gemini-companion-auto--turn-seconds)))

(defun gemini-companion-auto--end-in (grant seconds)
  "End GRANT in SECONDS unless it is prolonged."
  (gemini-companion-auto--cancel grant)
  (setf (gemini-companion-auto--grant-timer grant)
        (run-at-time seconds nil #'gemini-companion-auto--end grant)))

(defun gemini-companion-auto--cancel (grant)
  "Cancel the timer of GRANT, if it has one."
  (when-let* ((timer (gemini-companion-auto--grant-timer grant)))
    (cancel-timer timer)
    (setf (gemini-companion-auto--grant-timer grant) nil)))

(defun gemini-companion-auto--end (grant)
  "End GRANT, and say so."
  (gemini-companion-auto--cancel grant)
  (setq gemini-companion-auto--grants
        (delq grant gemini-companion-auto--grants))
  (force-mode-line-update t)
  (unless (active-minibuffer-window)
    (message "Edits of %s are reviewed again"
             (gemini-companion-session-name
              (gemini-companion-auto--grant-session grant)))))

(defun gemini-companion-auto-sessions-changed ()
  "End the grants of CLIs that are gone, unless they come back soon."
  (dolist (grant gemini-companion-auto--grants)
    (let ((there (gemini-companion-auto--there-p grant)))
      (cond ((not there)
             (unless (gemini-companion-auto--grant-timer grant)
               (gemini-companion-auto--end-in
                grant gemini-companion-auto--gone-seconds)))
            ((not (gemini-companion-auto--grant-turn grant))
             (gemini-companion-auto--cancel grant))))))

(defun gemini-companion-auto--there-p (grant)
  "Return non-nil if the CLI of GRANT is connected."
  (seq-some (lambda (session)
              (gemini-companion-session-same-p
               session (gemini-companion-auto--grant-session grant)))
            (gemini-companion-sessions)))

(defun gemini-companion-auto-stop ()
  "End all grants and forget what was accepted."
  (when-let* ((buffer (get-buffer "*gemini accepted*")))
    (kill-buffer buffer))
  (mapc #'gemini-companion-auto--cancel gemini-companion-auto--grants)
  (setq gemini-companion-auto--grants nil
        gemini-companion-auto--edits nil))

;;;; Taking back

(defun gemini-companion-auto-show (edit)
  "Show what EDIT, which was accepted unseen, has changed."
  (let ((name (file-name-nondirectory (gemini-companion-auto-edit-file edit)))
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
        (name (file-name-nondirectory (gemini-companion-auto-edit-file edit))))
    (when (eq 'new (gemini-companion-auto-edit-former edit))
      (user-error "%s was new; delete it to undo that" name))
    (pcase-let ((`(,text . ,coding) (gemini-companion-auto--decoded edit)))
      (unless (gemini-companion-auto--as-accepted-p edit)
        (user-error "%s has changed since; look at the edit and undo it by hand"
                    name))
      (when (gemini-companion-auto--unsaved-p file)
        (user-error "The buffer of %s has unsaved text; save or undo that first"
                    name))
      (gemini-companion-auto--put file text coding))
    (message (substitute-command-keys
              "The former text of %s is here, unsaved; \\[save-buffer] \
writes it")
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

(defun gemini-companion-auto-accept (session &optional turn)
  "Accept the edits of SESSION without a review, or end that.
With TURN non-nil only until that CLI has proposed nothing for a
minute, which is taken for the end of the turn: what is asked of
it within that minute counts as well.

Edits that wait are accepted too, the one that is shown is not.
Edits of a file with unsaved text in this Emacs are reviewed all
the same.  What was accepted is in \\[gemini-companion-list], where
it can be looked at and taken back.

Interactively SESSION is the CLI of the review here, or the only
one, or asked for."
  (interactive
   (let ((session (gemini-companion-auto--read-session)))
     (list session
           (and (not (gemini-companion-auto--grant session))
                (gemini-companion-auto-read-turn session)))))
  (if-let* ((grant (gemini-companion-auto--grant session)))
      (gemini-companion-auto--end grant)
    (gemini-companion-auto--grant-to session turn)))

(defun gemini-companion-auto--read-session ()
  "Return the session that the person means."
  (let ((sessions (gemini-companion-sessions)))
    (cond (gemini-companion-diff-here
           (gemini-companion-diff-session gemini-companion-diff-here))
          ((null sessions) (user-error "No Gemini CLI is connected"))
          ((null (cdr sessions)) (car sessions))
          (t
           (let ((names (mapcar (lambda (session)
                                  (cons (gemini-companion-session-name session)
                                        session))
                                sessions)))
             (cdr (assoc (completing-read "Gemini CLI: " names nil t)
                         names)))))))

(defun gemini-companion-auto-read-turn (session)
  "Return non-nil if the edits of SESSION are to be accepted for a turn."
  (pcase (car (read-multiple-choice
               (format "Accept edits of %s unseen"
                       (gemini-companion-session-name session))
               '((?t "turn" "Until it has proposed nothing for a minute")
                 (?u "until told otherwise" "Until this command ends it")
                 (?n "not at all" "Every edit is reviewed"))))
    (?t t)
    (?u nil)
    (_ (user-error "Edits are reviewed as before"))))

(provide 'gemini-companion-auto)
;;; gemini-companion-auto.el ends here
