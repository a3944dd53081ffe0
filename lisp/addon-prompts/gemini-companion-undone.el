;;; gemini-companion-undone.el --- What the user has undone, to be sent  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Record which changes of a CLI the user has undone, in a file or in the overview,
;; until the next comments report them to the CLI; see
;; `gemini-companion-comment-send'.  The record of the file has their hunks, see
;; `gemini-companion-changes': a change that is in the file again when the comments are
;; sent is omitted.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-changes)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-lines)
(require 'gemini-companion-part)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-weave)

;;;; State

(cl-defstruct (gemini-companion-undone
               (:noinline t)
               (:constructor gemini-companion-undone--make)
               (:copier nil))
  "A change of a CLI that the user has undone, unknown to the CLI so far.
SOURCE is the record of the file, which has the HUNKS, or the edit that was
undone.  PATH is the name of the file, and SESSION is the CLI.  FIRST and
LAST are the numbers of the lines that the CLI had written; if it had only
removed lines, LAST is FIRST minus 1.  They are nil if the user has deleted
the file, which the CLI had made.  OLD and NEW are the lines without and with
the change, lists of strings with newlines."
  source hunks path session first last old new)

(defvar gemini-companion-undone--all nil
  "Undone changes of which no CLI is notified yet, the newest first.")

(defun gemini-companion-undone-record (source changes now)
  "Record that CHANGES of SOURCE in the lines NOW are undone, for their CLIs.
For the arguments, see `gemini-companion-changes-undo-functions', of which
this is a member.  The first call loads this file."
  (if (eq changes 'deleted)
      (gemini-companion-undone--push
       source (if (gemini-companion-edit-p source)
                  source
                (gemini-companion-changes-file-edit source)))
    (dolist (change changes)
      (let ((start (gemini-companion-lines-change-start change))
            (end (gemini-companion-lines-change-end change)))
        (gemini-companion-undone--push
         source
         (if (gemini-companion-edit-p source)
             source
           (car (gemini-companion-weave-change-edits change)))
         :hunks (gemini-companion-weave-change-hunks change)
         :first (1+ start) :last end
         :old (gemini-companion-lines-change-lines change)
         :new (append (substring now start end) nil))))))

(defun gemini-companion-undone--push (source edit &rest slots)
  "Record a `gemini-companion-undone' of SOURCE for the file and CLI of EDIT.
SLOTS is a plist of its other slots."
  (add-hook 'gemini-companion-edit-functions #'gemini-companion-undone--follow)
  (push (apply #'gemini-companion-undone--make
               :source source
               :path (gemini-companion-edit-file edit)
               :session (gemini-companion-edit-session edit)
               slots)
        gemini-companion-undone--all))

(defun gemini-companion-undone-set-sent (undone)
  "Drop UNDONE, a list, of which the CLI was notified."
  (setq gemini-companion-undone--all
        (seq-difference gemini-companion-undone--all undone #'eq)))

(defun gemini-companion-undone--follow (edit event)
  "Report that EDIT was written without review, if so, over undone changes.
For EVENT, see `gemini-companion-edit-functions'.  The model does not know yet
what the user has undone."
  (when (and (eq event 'written)
             (memq (gemini-companion-edit-decision edit) '(automatic unreviewed))
             (seq-some (apply-partially #'gemini-companion-undone--restores-p edit)
                       gemini-companion-undone--all))
    (message "%s wrote again what you have undone in %s"
             (gemini-companion-session-name (gemini-companion-edit-session edit))
             (gemini-companion-edit-name edit))))

(defun gemini-companion-undone--restores-p (edit undone)
  "Return non-nil if EDIT has written the lines again that UNDONE removed."
  (let ((lines (string-join (gemini-companion-undone-new undone)))
        (after (gemini-companion-edit-after edit)))
    (and (equal (gemini-companion-edit-file edit) (gemini-companion-undone-path undone))
         (not (string-blank-p lines))
         (stringp after)
         (string-search lines after)
         (gemini-companion-edit-content edit)
         (not (string-search lines (gemini-companion-edit-texts-before edit))))))

;;;; Selection

(defun gemini-companion-undone-of-session (session)
  "Return the undone changes that were not reported to the CLI of SESSION yet.
Include the changes of a CLI of the same kind and directory that has exited.
Omit a change that is in its file again, as after an undo in the buffer."
  (seq-filter (lambda (undone)
                (and (gemini-companion-session-next-p
                      session (gemini-companion-undone-session undone))
                     (not (gemini-companion-undone--restored-p undone))))
              (reverse gemini-companion-undone--all)))

(defun gemini-companion-undone--restored-p (undone)
  "Return non-nil if the change UNDONE is in its file again.
For a deleted file, return non-nil if that exists again."
  (let ((source (gemini-companion-undone-source undone)))
    (cond ((null (gemini-companion-undone-first undone))
           (gemini-companion-text-attributes (gemini-companion-undone-path undone)))
          ((gemini-companion-edit-p source)
           (gemini-companion-edit-written-p source))
          (t (gemini-companion-changes-back-p
              source (gemini-companion-undone-hunks undone))))))

;;;; Life

(cl-defmethod gemini-companion-part-stop ((_part (eql 'undone)))
  "Drop all undone changes, as the edits are dropped."
  (remove-hook 'gemini-companion-edit-functions #'gemini-companion-undone--follow)
  (setq gemini-companion-undone--all nil))

(provide 'gemini-companion-undone)
;;; gemini-companion-undone.el ends here
