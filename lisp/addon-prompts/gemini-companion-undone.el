;;; gemini-companion-undone.el --- What the user has undone, to be sent  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the user has undone of the changes of a CLI, in a file or in the
;; overview, until it is sent to the CLI with the next comments; see
;; `gemini-companion-comment-send'.  Which hunks these are is known to the record of
;; the file, see `gemini-companion-changes': those that are there again by then are
;; not sent.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-changes)
(require 'gemini-companion-edit)
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
  "A change of a CLI that the user has undone, and that was not sent yet.
SOURCE is the record of the file, whose HUNKS these are, or the edit that was
undone.  PATH is the name of the file, and SESSION is the CLI.  FIRST and LAST
are the numbers of the lines that the CLI had written; if it had only removed
some, LAST is before FIRST.  They are nil if the file, which the CLI had made,
was deleted.  OLD and NEW are the lines without and with the change, lists of
strings with newlines."
  source hunks path session first last old new)

(defvar gemini-companion-undone--all nil
  "What the user has undone and was not sent, the last one first.")

(defun gemini-companion-undone-note (source changes now)
  "Record that CHANGES of SOURCE in the lines NOW are undone, for their CLIs.
It is one of `gemini-companion-changes-undo-functions', see there.  The first
call loads this file."
  (if (eq changes 'deleted)
      (gemini-companion-undone--push
       source (if (gemini-companion-edit-p source)
                  source
                (gemini-companion-changes-file-edit source)))
    ;; The model knows nothing of a conversion.
    (dolist (change (seq-remove #'gemini-companion-changes-conversion changes))
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
  "Record what was undone of SOURCE, of which EDIT was written by the CLI.
SLOTS are further ones of the `gemini-companion-undone'."
  (push (apply #'gemini-companion-undone--make
               :source source
               :path (gemini-companion-edit-file edit)
               :session (gemini-companion-edit-session edit)
               slots)
        gemini-companion-undone--all))

(defun gemini-companion-undone-set-told (undone)
  "Forget UNDONE, a list, which was sent to the CLI."
  (setq gemini-companion-undone--all
        (seq-difference gemini-companion-undone--all undone #'eq)))

;;;; What is to be sent

(defun gemini-companion-undone-of-session (session)
  "Return what the user has undone of the CLI of SESSION and was not sent to it.
What was undone of a CLI that has exited is for the next one of its kind in its
directory.  What is there again, as after an undo in the buffer, is left out."
  (seq-filter (lambda (undone)
                (and (gemini-companion-session-next-p
                      session (gemini-companion-undone-session undone))
                     (not (gemini-companion-undone--back-p undone))))
              (reverse gemini-companion-undone--all)))

(defun gemini-companion-undone--back-p (undone)
  "Return non-nil if the change UNDONE, or the deleted file, is there again."
  (let ((source (gemini-companion-undone-source undone)))
    (cond ((null (gemini-companion-undone-first undone))
           (gemini-companion-text-attributes (gemini-companion-undone-path undone)))
          ((gemini-companion-edit-p source)
           (gemini-companion-edit-written-p source))
          (t (gemini-companion-changes-back-p
              source (gemini-companion-undone-hunks undone))))))

;;;; Life

(cl-defmethod gemini-companion-part-stop ((_part (eql 'undone)))
  "Forget what was undone, as the edits are forgotten."
  (setq gemini-companion-undone--all nil))

(provide 'gemini-companion-undone)
;;; gemini-companion-undone.el ends here
