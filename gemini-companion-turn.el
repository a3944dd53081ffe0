;;; gemini-companion-turn.el --- The edits of each turn of a CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A record of each edit that a CLI has proposed or written, with the text of
;; the file before and after it, so that it can be shown and reverted.
;;
;; The protocol does not announce the end of a turn.  A new one begins with the
;; first edit that arrives when no other edit of that CLI is open, and none has
;; arrived or ended for a minute.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-diff)
(require 'gemini-companion-name)
(require 'gemini-companion-revert)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'seq)
(require 'subr-x)

;;;; State

(defconst gemini-companion-turn--pause 60
  "Seconds without an edit after which a new turn begins.")

(defconst gemini-companion-turn--most-edits 100
  "Maximum number of edits to keep.")

(defconst gemini-companion-turn--most-bytes (* 5 1024 1024)
  "Maximum size of the text of a file to keep.")

(defconst gemini-companion-turn--most-bytes-in-all (* 40 1024 1024)
  "Maximum size of all texts to keep.")

(defvar gemini-companion-turn--last-id 0
  "The `id' of the last edit.")

(cl-defstruct (gemini-companion-turn-edit
               (:constructor gemini-companion-turn--make)
               (:copier nil))
  "An edit of FILE by SESSION, which may be nil, or else by CLIENT.
DIFF is its diff while that is open.  STATE is then nil, and later
`accepted', `automatic' if that was done without review, `unwritten'
if the CLI then did not write it, `rejected', `dismissed', `written'
if there was no review, `reverted' if the user then reverted it, or
`deleted' if the file was new.
BEFORE is the text that the file had, undecoded, `new' if there was
no file, `unknown', or nil if it was not read yet; AFTER is the text
that was proposed or written, or nil while DIFF is open."
  session client file diff state before after
  (id (cl-incf gemini-companion-turn--last-id))
  (time (float-time) :documentation "When it arrived or ended, in seconds.")
  (stamp nil :documentation "Stamp of the file when BEFORE was read.")
  (earlier nil :documentation "Non-nil if it belongs to an earlier turn.")
  (reported nil :documentation "Non-nil if the CLI reported its write."))

(defvar gemini-companion-turn--edits nil
  "The recorded edits, the last one first.")

(defvar gemini-companion-turn--timer nil
  "Timer that reads the files of new edits, or nil.")

(defvar gemini-companion-turn-changed-hook nil
  "Hook run after an edit has arrived, was shown, or has ended.
Its functions display the edits; they must be fast and not fail.")

;;;; Edits

(defun gemini-companion-turn-edits ()
  "Return the recorded edits, oldest first."
  (reverse gemini-companion-turn--edits))

(defun gemini-companion-turn-edit-status (edit)
  "Return the state of EDIT, or that of its diff while that is open."
  (or (gemini-companion-turn-edit-state edit)
      (gemini-companion-diff-state (gemini-companion-turn-edit-diff edit))))

(defun gemini-companion-turn-same-p (edit session client)
  "Return non-nil if EDIT is of SESSION, or if that is nil, of CLIENT."
  (and (gemini-companion-session-same-p
        session (gemini-companion-turn-edit-session edit))
       (or session
           (equal client (gemini-companion-turn-edit-client edit)))))

(defun gemini-companion-turn--of (diff)
  "Return the edit of DIFF, or nil."
  (seq-find (lambda (edit) (eq diff (gemini-companion-turn-edit-diff edit)))
            gemini-companion-turn--edits))

(defun gemini-companion-turn--add (edit)
  "Keep EDIT, and drop the oldest ones if there are too many."
  (let ((others (seq-filter
                 (lambda (other)
                   (gemini-companion-turn-same-p
                    other
                    (gemini-companion-turn-edit-session edit)
                    (gemini-companion-turn-edit-client edit)))
                 gemini-companion-turn--edits)))
    (unless (seq-some #'gemini-companion-turn--going-on-p others)
      (dolist (other others)
        (setf (gemini-companion-turn-edit-earlier other) t)))
    (push edit gemini-companion-turn--edits)
    (gemini-companion-turn--trim)))

(defun gemini-companion-turn--going-on-p (edit)
  "Return non-nil if the turn of EDIT has not ended."
  (or (gemini-companion-turn-edit-diff edit)
      (< (- (float-time) (gemini-companion-turn-edit-time edit))
         gemini-companion-turn--pause)))

(defun gemini-companion-turn--trim ()
  "Drop the oldest edits that have ended if there are too many."
  (let ((count 0)
        (bytes 0))
    (setq gemini-companion-turn--edits
          (seq-filter
           (lambda (edit)
             (setq count (1+ count)
                   bytes (+ bytes (gemini-companion-turn--bytes edit)))
             (or (gemini-companion-turn-edit-diff edit)
                 (and (<= count gemini-companion-turn--most-edits)
                      (< bytes gemini-companion-turn--most-bytes-in-all))))
           gemini-companion-turn--edits))))

(defun gemini-companion-turn--bytes (edit)
  "Return the size of the texts of EDIT."
  (apply #'+ (mapcar (lambda (text) (if (stringp text) (string-bytes text) 0))
                     (list (gemini-companion-turn-edit-before edit)
                           (gemini-companion-turn-edit-after edit)))))

;;;; Reviews

(defun gemini-companion-turn--follow ()
  "Record new and settled diffs."
  (let ((diffs (gemini-companion-diffs)))
    (dolist (edit gemini-companion-turn--edits)
      (when-let* ((diff (gemini-companion-turn-edit-diff edit)))
        (unless (memq diff diffs)
          (gemini-companion-turn--end edit diff))))
    (dolist (diff diffs)
      (unless (gemini-companion-turn--of diff)
        (gemini-companion-turn--begin diff)))
    (run-hooks 'gemini-companion-turn-changed-hook)))

(defun gemini-companion-turn--begin (diff)
  "Record DIFF, and read its file soon."
  (let ((session (gemini-companion-diff-session diff)))
    (gemini-companion-turn--add
     (gemini-companion-turn--make
      :session session :client (plist-get session :client)
      :file (gemini-companion-diff-file-path diff) :diff diff)))
  (unless gemini-companion-turn--timer
    ;; The user wants to see the review first.
    (setq gemini-companion-turn--timer
          (run-at-time 0.1 nil #'gemini-companion-turn--read-new))))

(defun gemini-companion-turn--read-new ()
  "Read the files of the edits that have just arrived."
  (setq gemini-companion-turn--timer nil)
  (dolist (edit gemini-companion-turn--edits)
    (unless (gemini-companion-turn-edit-before edit)
      (gemini-companion-turn-read edit)
      (gemini-companion-turn--drop-replaced edit)))
  (run-hooks 'gemini-companion-turn-changed-hook))

(defun gemini-companion-turn--drop-replaced (edit)
  "Drop dismissed, unwritten edits of the file that EDIT proposes to change."
  (setq gemini-companion-turn--edits
        (seq-remove
         (lambda (other)
           (and (eq 'dismissed (gemini-companion-turn-edit-state other))
                (gemini-companion-turn--same-file-p
                 (gemini-companion-turn-edit-file other)
                 (gemini-companion-turn-edit-file edit))
                (gemini-companion-session-same-p
                 (gemini-companion-turn-edit-session other)
                 (gemini-companion-turn-edit-session edit))
                (not (gemini-companion-turn--as-written-p other))))
         gemini-companion-turn--edits)))

(defun gemini-companion-turn-read (edit)
  "Read the text of the file of EDIT if it has changed.
EDIT is not written yet."
  (let* ((file (gemini-companion-turn-edit-file edit))
         (problem (gemini-companion-text-problem file))
         (stamp (unless problem (gemini-companion-revert-stamp file))))
    (unless (and (gemini-companion-turn-edit-before edit)
                 (equal stamp (gemini-companion-turn-edit-stamp edit)))
      (setf (gemini-companion-turn-edit-stamp edit) stamp
            (gemini-companion-turn-edit-before edit)
            (cond (problem 'unknown)
                  ((null stamp) 'new)
                  ((< gemini-companion-turn--most-bytes (nth 1 stamp)) 'unknown)
                  (t (condition-case nil
                         (gemini-companion-text-bytes file)
                       (file-error 'unknown))))))))

(defun gemini-companion-turn--accepting (diff)
  "Read the file of DIFF, which the CLI is about to write."
  (when-let* ((edit (gemini-companion-turn--of diff)))
    (gemini-companion-turn-read edit)))

(defun gemini-companion-turn--end (edit diff)
  "Record the outcome of EDIT, that of DIFF."
  (let ((proposal (gemini-companion-diff-proposal-buffer diff)))
    (setf (gemini-companion-turn-edit-diff edit) nil
          (gemini-companion-turn-edit-time edit) (float-time)
          (gemini-companion-turn-edit-state edit)
          (if (gemini-companion-diff-automatic diff)
              'automatic
            (gemini-companion-diff-state diff))
          (gemini-companion-turn-edit-after edit)
          (cond ((gemini-companion-diff-accepted-text diff))
                ((buffer-live-p proposal)
                 (gemini-companion-diff-proposal-text diff))
                (t "")))
    ;; Qwen Code writes the file before it closes the diff, maybe without the
    ;; edits of the user.
    (unless (memq (gemini-companion-turn-edit-state edit)
                  '(accepted automatic))
      (if-let* ((written (seq-find
                          (apply-partially
                           #'gemini-companion-turn--as-written-p edit)
                          (delq nil
                                (list (gemini-companion-turn-edit-after edit)
                                      (gemini-companion-diff-unedited diff))))))
          (progn
            (setf (gemini-companion-turn-edit-after edit) written)
            (when (eq 'dismissed (gemini-companion-turn-edit-state edit))
              (setf (gemini-companion-turn-edit-state edit) 'accepted)))
        (gemini-companion-turn-read edit)))))

;;;; Writes

(defun gemini-companion-turn--diff-written (diff written)
  "Record whether the file of DIFF was WRITTEN.
A dismissed DIFF that was written was accepted in the terminal."
  (dolist (edit gemini-companion-turn--edits)
    (when-let* (((equal (gemini-companion-diff-file-path diff)
                        (gemini-companion-turn-edit-file edit)))
                (state
                 (pcase (gemini-companion-turn-edit-state edit)
                   ('dismissed
                    (and written
                         (gemini-companion-turn--as-written-p edit)
                         'accepted))
                   ((or 'accepted 'automatic)
                    (and (not written)
                         ;; Not an earlier edit of this file.
                         (eq (gemini-companion-diff-accepted-text diff)
                             (gemini-companion-turn-edit-after edit))
                         (not (gemini-companion-turn--as-written-p edit))
                         'unwritten)))))
      (setf (gemini-companion-turn-edit-state edit) state)
      (run-hooks 'gemini-companion-turn-changed-hook))))

(defun gemini-companion-turn-written (session client file before after)
  "Record that a CLI has written FILE, maybe without a review.
The CLI is SESSION, or if that is nil, one of CLIENT, the name of
a client such as \"gemini\".  BEFORE is the previous text of FILE, nil
if it did not exist, and AFTER the current one.  An edit that was
reviewed is not recorded again."
  (if-let* ((edit (seq-find
                   (lambda (edit)
                     (gemini-companion-turn--accounts-p edit file after))
                   gemini-companion-turn--edits)))
      (progn
        (setf (gemini-companion-turn-edit-reported edit) t)
        (when (eq 'unwritten (gemini-companion-turn-edit-state edit))
          (setf (gemini-companion-turn-edit-state edit) 'accepted)
          (run-hooks 'gemini-companion-turn-changed-hook)))
    (gemini-companion-turn--add
     (gemini-companion-turn--make
      :session session
      :client (or client (plist-get session :client))
      :file file :state 'written :reported t
      :before (cond ((null before) 'new)
                    ((or (< gemini-companion-turn--most-bytes (length before))
                         ;; The CLI could not decode it.
                         (string-search "\uFFFD" before))
                     'unknown)
                    (t (encode-coding-string before 'utf-8)))
      :after after))
    (run-hooks 'gemini-companion-turn-changed-hook)))

(defun gemini-companion-turn--accounts-p (edit file text)
  "Return non-nil if EDIT may have written TEXT to FILE."
  (let ((diff (gemini-companion-turn-edit-diff edit)))
    (and (gemini-companion-turn--same-file-p
          file (gemini-companion-turn-edit-file edit))
         (not (gemini-companion-turn-edit-reported edit))
         (not (eq 'rejected (gemini-companion-turn-edit-state edit)))
         (gemini-companion-text-same-written-p
          text (if diff
                   (gemini-companion-diff-proposal-text diff)
                 (gemini-companion-turn-edit-after edit))))))

(defun gemini-companion-turn--same-file-p (a b)
  "Return non-nil if A and B, absolute names, are of the same file."
  (or (equal a b)
      (when-let* ((a (gemini-companion-text-true-name a))
                  (b (gemini-companion-text-true-name b)))
        (gemini-companion-text-same-file-p a b))))

;;;; Revert

(defun gemini-companion-turn-revert (edit)
  "Put the text before EDIT into the buffer of its file, unsaved.
Delete a file that was new, and kill its buffer.  Signal an error if
the file has changed since."
  (gemini-companion-turn-check-revert edit)
  (let ((file (gemini-companion-turn-edit-file edit))
        (before (gemini-companion-turn-edit-before edit))
        (name (gemini-companion-turn-name edit)))
    (if (eq before 'new)
        (progn
          (delete-file file 'trash)
          (when-let* ((buffer (find-buffer-visiting file)))
            (kill-buffer buffer))
          (setf (gemini-companion-turn-edit-state edit) 'deleted)
          (message "Deleted %s" name))
      ;; Otherwise Emacs may ask whether to read the file again.
      (gemini-companion-revert file)
      (with-current-buffer (find-file-noselect file)
        (gemini-companion-turn--put before))
      (setf (gemini-companion-turn-edit-state edit) 'reverted)
      (message (substitute-command-keys
                "Reverted %s, not saved yet; \\[save-buffer] saves it")
               name))))

(defun gemini-companion-turn-check-revert (edit)
  "Signal an error if reverting EDIT would lose text or is impossible."
  (let ((file (gemini-companion-turn-edit-file edit))
        (name (gemini-companion-turn-name edit)))
    (when-let* ((why (gemini-companion-turn--unwritten edit)))
      (user-error "%s %s" name why))
    (when (eq 'unknown (gemini-companion-turn-edit-before edit))
      (user-error "The previous text of %s was not kept" name))
    (unless (gemini-companion-turn--as-written-p edit)
      (user-error (if (gemini-companion-turn--later-p edit)
                      "%s was edited again; revert the later edit first"
                    "%s has changed since; revert the edit by hand")
                  name))
    (when (gemini-companion-revert-unsaved-p file)
      (user-error "%s has unsaved changes; save or undo them first" name))))

(defun gemini-companion-turn--unwritten (edit)
  "Return why EDIT has not changed its file, a predicate, or nil."
  (pcase (gemini-companion-turn-edit-status edit)
    ((or 'pending 'shown) "is not written yet; its proposal awaits an answer")
    ('rejected "was not written; its proposal was rejected")
    ('unwritten (unless (gemini-companion-turn--as-written-p edit)
                  "was not written"))
    ('deleted "was deleted already")))

(defun gemini-companion-turn--as-written-p (edit &optional text)
  "Return non-nil if the file of EDIT has TEXT, by default that after EDIT."
  (let* ((file (gemini-companion-turn-edit-file edit))
         (size (and (not (gemini-companion-text-problem file))
                    (file-attribute-size
                     (gemini-companion-text-attributes file)))))
    (and size
         (<= size gemini-companion-turn--most-bytes)
         (gemini-companion-text-same-written-p
          (or text (gemini-companion-turn-edit-after edit))
          (gemini-companion-text-read file)))))

(defun gemini-companion-turn--later-p (edit)
  "Return non-nil if the file of EDIT was written again by a CLI."
  (seq-some (lambda (other)
              (and (gemini-companion-turn--same-file-p
                    (gemini-companion-turn-edit-file other)
                    (gemini-companion-turn-edit-file edit))
                   (not (gemini-companion-turn--unwritten other))))
            (seq-take-while (lambda (other) (not (eq other edit)))
                            gemini-companion-turn--edits)))

(defun gemini-companion-turn--put (bytes)
  "Decode BYTES into the current buffer, that of a file, unsaved."
  (let ((coding (detect-coding-string bytes t))
        (inhibit-read-only t))
    (gemini-companion-text-replace (decode-coding-string bytes coding))
    (unless (eq 'undecided (coding-system-base coding))
      (setq buffer-file-coding-system
            (if (string-search "\r" bytes)
                coding
              ;; A CLI may report its text with plain line ends.
              (coding-system-change-eol-conversion
               coding (coding-system-eol-type buffer-file-coding-system)))))
    (set-buffer-modified-p t)))

(defun gemini-companion-turn-name (edit &optional columns)
  "Return the name of the file of EDIT for the user.
COLUMNS is its maximum width; see `gemini-companion-name'."
  (gemini-companion-name (gemini-companion-turn-edit-file edit)
                         (gemini-companion-turn-edit-session edit)
                         nil columns))

;;;; Life

(defun gemini-companion-turn-start ()
  "Record the edits of all CLIs."
  (add-hook 'gemini-companion-diff-accepting-functions
            #'gemini-companion-turn--accepting)
  (add-hook 'gemini-companion-diff-changed-hook
            #'gemini-companion-turn--follow)
  (add-hook 'gemini-companion-diff-written-functions
            #'gemini-companion-turn--diff-written)
  (gemini-companion-turn--follow))

(defun gemini-companion-turn-stop ()
  "Drop all edits."
  (remove-hook 'gemini-companion-diff-accepting-functions
               #'gemini-companion-turn--accepting)
  (remove-hook 'gemini-companion-diff-changed-hook
               #'gemini-companion-turn--follow)
  (remove-hook 'gemini-companion-diff-written-functions
               #'gemini-companion-turn--diff-written)
  (when gemini-companion-turn--timer
    (cancel-timer gemini-companion-turn--timer))
  (setq gemini-companion-turn--timer nil
        gemini-companion-turn--edits nil))

(provide 'gemini-companion-turn)
;;; gemini-companion-turn.el ends here
