;;; gemini-companion-undone.el --- What the user has undone, to be sent  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Record which changes of a CLI the user has undone, in a file or in the overview,
;; until that is reported to the CLI: with the next comments, see
;; `gemini-companion-comment-send', or with the next prompt, wherever it is typed, if
;; the CLI has a hook for prompts, see `gemini-companion-turn-addition-function'.  The
;; first of both takes the changes, and returns them if the CLI did not get them.  The
;; record of the file has their hunks, see `gemini-companion-changes': a change that is
;; in the file again is omitted.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-changes)
(require 'gemini-companion-context)
(require 'gemini-companion-edit)
(require 'gemini-companion-hunk)
(require 'gemini-companion-part)
(require 'gemini-companion-record)
(require 'gemini-companion-revert)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'map)

;;;; Customization

(defcustom gemini-companion-report-undone t
  "Non-nil means report what you have undone with your next prompt.
This is for linked CLIs that run a hook for each prompt, in any terminal."
  :type 'boolean
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

;;;; State

(defconst gemini-companion-undone--most 50
  "Greatest number of changes in a report; the others are only counted.")

(defconst gemini-companion-undone-reading-seconds 20
  "Seconds in which a CLI confirms that it has read a report.")

(cl-defstruct (gemini-companion-undone
               (:noinline t)
               (:constructor gemini-companion-undone--make)
               (:copier nil))
  "A change of a CLI that the user has undone, unknown to the CLI so far.
SOURCE is the record of the file, which has the HUNKS, or the edit that was
undone.  PATH is the name of the file, and SESSION is the CLI.  FIRST and
LAST are the numbers of the lines that the CLI had written; if it had only
removed lines, LAST is FIRST minus 1.  They are nil for an edit of several
files, or if the user has deleted the file, which the CLI had made.  GOING is
non-nil while the change is on its way to the CLI."
  source hunks path session first last going)

(defvar gemini-companion-undone--all nil
  "Undone changes of which no CLI is notified yet, the newest first.")

(defvar gemini-companion-undone--reported nil
  "Alist of (SESSION . TIME): when undone changes were last reported.")

(defun gemini-companion-undone-record (source changes)
  "Record that CHANGES of SOURCE are undone, for their CLIs.
For the arguments, see `gemini-companion-changes-undo-functions', of which
this is a member.  The first call loads this file."
  (gemini-companion-undone--drop source changes)
  (if (memq changes '(deleted files))
      (gemini-companion-undone--push
       source (if (gemini-companion-edit-p source)
                  source
                (gemini-companion-changes-file-edit source)))
    (dolist (change changes)
      (let ((start (gemini-companion-hunk-new change))
            (end (gemini-companion-hunk-new-end change)))
        (gemini-companion-undone--push
         source
         (if (gemini-companion-edit-p source)
             source
           (car (gemini-companion-record-change-edits change)))
         :hunks (gemini-companion-record-change-hunks change)
         :first (1+ start) :last end))))
  (run-hooks 'gemini-companion-turn-addition-hook))

(defun gemini-companion-undone--drop (source changes)
  "Drop what was recorded when CHANGES of SOURCE were undone before.
They were in the file again since then.  For the arguments, see
`gemini-companion-undone-record'."
  (let ((hunks (and (consp changes)
                    (seq-mapcat #'gemini-companion-record-change-hunks changes))))
    (setq gemini-companion-undone--all
          (seq-remove (lambda (undone)
                        (and (eq source (gemini-companion-undone-source undone))
                             (or (null hunks)
                                 (seq-intersection
                                  hunks (gemini-companion-undone-hunks undone) #'eq))))
                      gemini-companion-undone--all))))

(defun gemini-companion-undone--push (source edit &rest slots)
  "Record a `gemini-companion-undone' of SOURCE for the file and CLI of EDIT.
SLOTS is a plist of its other slots."
  (push (apply #'gemini-companion-undone--make
               :source source
               :path (gemini-companion-edit-file edit)
               :session (gemini-companion-edit-session edit)
               slots)
        gemini-companion-undone--all))

(defun gemini-companion-undone-set-sent (undone session)
  "Drop UNDONE, a list, of which the CLI of SESSION was notified."
  (setq gemini-companion-undone--all
        (seq-difference gemini-companion-undone--all undone #'eq))
  (when undone
    (setf (alist-get session gemini-companion-undone--reported nil nil
                     #'gemini-companion-session-same-p)
          (float-time)))
  (run-hooks 'gemini-companion-turn-addition-hook))

(defun gemini-companion-undone-set-going (undone going)
  "Record that UNDONE, a list, is on its way to a CLI if GOING is non-nil.
Otherwise it is to be reported again."
  (dolist (each undone)
    (setf (gemini-companion-undone-going each) going)))

;;;; Selection

(defun gemini-companion-undone-session-of (pids)
  "Return the session of the CLI with one of PIDS whose changes were undone.
Return nil if there is none on this host."
  (cl-find-if (lambda (session)
                (and (not (gemini-companion-session-remote session))
                     (memql (gemini-companion-session-pid session) pids)))
              (mapcar #'gemini-companion-undone-session
                      gemini-companion-undone--all)))

(defun gemini-companion-undone-of-session (session)
  "Return the undone changes that were not reported to the CLI of SESSION yet.
Include the changes of a CLI of the same kind and directory that has exited.
Omit a change that is in its file again, as after an undo in the buffer, or on
its way to the CLI, and those of files that are not shared."
  (seq-filter (lambda (undone)
                (and (not (gemini-companion-undone-going undone))
                     (gemini-companion-session-next-p
                      session (gemini-companion-undone-session undone))
                     (gemini-companion-context-text-shared-p
                      (gemini-companion-undone-path undone) session)
                     (not (gemini-companion-undone--restored-p undone))))
              (reverse gemini-companion-undone--all)))

(defun gemini-companion-undone--restored-p (undone)
  "Return non-nil if the change UNDONE is in its file again.
For a deleted file, return non-nil if that exists again."
  (let ((source (gemini-companion-undone-source undone)))
    (cond ((not (or (gemini-companion-undone-first undone)
                    (gemini-companion-undone--command undone)))
           (gemini-companion-text-attributes (gemini-companion-undone-path undone)))
          ;; A previous Emacs has undone it.
          ((null source) nil)
          ((gemini-companion-undone--command undone)
           (= 0 (car (gemini-companion-changes-several-undone source))))
          ((gemini-companion-edit-p source)
           (gemini-companion-changes-there-p source))
          (t (gemini-companion-changes-back-p
              source (gemini-companion-undone-hunks undone))))))

;;;; Reports

(defun gemini-companion-undone--text (undone session)
  "Return the report of UNDONE, a list, for the model of the CLI of SESSION."
  (concat "The user has undone these changes of yours since the last prompt; \
read the files again:\n\n"
          (gemini-companion-undone-rows undone session)))

(defun gemini-companion-undone-rows (undone session)
  "Return a row for the CLI of SESSION about each of UNDONE, as a text.
The numbers are those of lines that the CLI had written.  There are no lines of
a file, which the model can read."
  (let ((more (- (length undone) gemini-companion-undone--most)))
    (concat (mapconcat (lambda (each)
                         (gemini-companion-undone--row each session))
                       (seq-take undone gemini-companion-undone--most) "\n")
            (and (< 0 more) (format "\nand %d more" more)))))

(defun gemini-companion-undone--row (undone session)
  "Return the row for the CLI of SESSION about UNDONE."
  (pcase-let* (((cl-struct gemini-companion-undone path first last) undone)
               (name (gemini-companion-session-name-of-file path session)))
    (cond ((gemini-companion-undone--command undone))
          ((null first) (format "%s: your new file was deleted" name))
          ((< last first) (format "%s:%d: lines that you had removed" name first))
          (t (format "%s:%s%s" name
                     (gemini-companion-hunk-range (cons first last))
                     ;; Otherwise the model finds its change in the file.
                     (if (gemini-companion-revert-unsaved path) " (not saved)" ""))))))

(defun gemini-companion-undone--command (undone)
  "Return a phrase about the files that UNDONE is about, and what has written them.
Return nil if UNDONE is not about an edit of several files."
  (when-let* ((edit (gemini-companion-undone-source undone))
              ((gemini-companion-edit-p edit))
              (files (gemini-companion-changes-several-undone edit)))
    (format "%d of %d files that %s had written" (car files) (cdr files)
            (gemini-companion-edit-command-text (gemini-companion-edit-command edit)))))

(defun gemini-companion-undone-addition (session read)
  "Return the report for a prompt of the CLI of SESSION, or nil for none.
Call this again with READ non-nil once the CLI has read the report, else the
changes are to be reported again.  This is for
`gemini-companion-turn-addition-function'."
  (if read
      (gemini-companion-undone-set-sent
       (seq-filter (lambda (undone)
                     (and (eq 'reported (gemini-companion-undone-going undone))
                          (gemini-companion-session-next-p
                           session (gemini-companion-undone-session undone))))
                   gemini-companion-undone--all)
       session)
    (setf (alist-get session gemini-companion-undone--reported nil 'remove
                     #'gemini-companion-session-same-p)
          nil)
    (when-let* (((and gemini-companion-report-undone
                      (not gemini-companion-context-paused)))
                (undone (gemini-companion-undone-of-session session)))
      (prog1 (gemini-companion-undone--text undone session)
        (gemini-companion-undone-set-going undone 'reported)
        (run-at-time gemini-companion-undone-reading-seconds nil
                     #'gemini-companion-undone--give-back undone)))))

(defun gemini-companion-undone--give-back (undone)
  "Let those of UNDONE that no CLI has read be reported again."
  (gemini-companion-undone-set-going
   (seq-intersection undone gemini-companion-undone--all #'eq) nil)
  (run-hooks 'gemini-companion-turn-addition-hook))

(defun gemini-companion-undone-note (session)
  "Return what is to be reported to the CLI of SESSION, or was, as a text, or nil.
What was reported needs no attention: it is in the face `shadow'."
  (let ((count (length (and gemini-companion-report-undone
                            (gemini-companion-undone-of-session session))))
        (time (alist-get session gemini-companion-undone--reported nil nil
                         #'gemini-companion-session-same-p)))
    (cond ((< 0 count) (format (ngettext "%d undone change to report"
                                         "%d undone changes to report" count)
                               count))
          (time (propertize (format-time-string "undone changes reported %H:%M" time)
                            'face 'shadow)))))

;;;; Life

(cl-defmethod gemini-companion-part-saved ((_part (eql 'undone)))
  "Return the undone changes that no CLI knows of."
  (mapcar (lambda (undone)
            (pcase-let (((cl-struct gemini-companion-undone path session first last)
                         undone))
              (cons path (list :path path
                               :session (gemini-companion-session-facts session)
                               :first first :last last))))
          (seq-remove #'gemini-companion-undone--command
                      (reverse gemini-companion-undone--all))))

(cl-defmethod gemini-companion-part-restore ((_part (eql 'undone)) items)
  "Record the undone changes of ITEMS again; their sources are unknown."
  (pcase-dolist (`(,_ . ,(map :path :session :first :last)) items)
    (push (gemini-companion-undone--make
           :path path :session (gemini-companion-session-from-facts session)
           :first first :last last)
          gemini-companion-undone--all))
  (run-hooks 'gemini-companion-turn-addition-hook))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'undone)))
  "Drop all undone changes, as the edits are dropped."
  (setq gemini-companion-undone--all nil
        gemini-companion-undone--reported nil))

;;;; Commands

(defun gemini-companion-show-undone ()
  "Display what your next prompt to each CLI reports as undone."
  (interactive)
  (let ((texts (cl-loop for session in (gemini-companion-sessions)
                        for undone = (gemini-companion-undone-of-session session)
                        when undone
                        collect (format "%s:\n\n%s"
                                        (gemini-companion-session-name session)
                                        (gemini-companion-undone--text undone session)))))
    (unless texts
      (user-error "No undone change to report"))
    (with-help-window "*gemini-companion undone*"
      (princ (string-join texts "\n\n")))))

(provide 'gemini-companion-undone)

(gemini-companion-part-loaded 'undone)
;;; gemini-companion-undone.el ends here
