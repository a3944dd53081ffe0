;;; gemini-companion-patch.el --- Edits and changes as a patch  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Show a proposal, the edits of a turn or all changes left as a unified diff in a
;; buffer of `diff-mode'.  File names are relative to the root, so that C-c C-a there
;; and programs such as git can apply the diff.  Nothing is recorded: `revert-buffer'
;; computes the patch again from the current texts.

;;; Code:

(require 'diff-mode)
(require 'gemini-companion-changes)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-lines)
(require 'gemini-companion-names)
(require 'gemini-companion-roots)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-view)

;;;; State

(cl-defstruct (gemini-companion-patch--file
               (:noinline t)
               (:constructor gemini-companion-patch--make-file)
               (:copier nil))
  "The difference of the file NAME, a true name, in the patch.
BEFORE and AFTER are texts; BEFORE is nil if there was no file.  SESSION is the
session of the CLI that wrote the file."
  name before after session)

(defconst gemini-companion-patch--buffer "*gemini patch*"
  "Name of the buffer with the patch.")

;;;; Files

(defun gemini-companion-patch--of-edits (edits)
  "Return the files of EDITS, the oldest one first, as differences.
A difference goes from the text before the first edit of the file to the text
after its last edit, including changes of the user in between.  Files whose
texts were not recorded are omitted."
  (mapcar
   (lambda (of-file)
     (let ((first (car (cdr of-file)))
           (last (car (last of-file))))
       (gemini-companion-patch--make-file
        :name (car of-file)
        :before (unless (gemini-companion-edit-new-p first)
                  (gemini-companion-patch--text-before first))
        :after (gemini-companion-patch--text-after last)
        :session (gemini-companion-edit-session last))))
   (seq-group-by #'gemini-companion-edit-true-name
                 (seq-remove (lambda (edit)
                               (and (not (gemini-companion-edit-open-p edit))
                                    (not (gemini-companion-edit-known-p edit))))
                             edits))))

(defun gemini-companion-patch--text-before (edit)
  "Return the text of the file before EDIT."
  (gemini-companion-edit-texts-call
   edit (lambda (before _after) (gemini-companion-text-of-buffer before))))

(defun gemini-companion-patch--text-after (edit)
  "Return the text that EDIT has written, or that it would if it were accepted."
  (if (gemini-companion-edit-open-p edit)
      (gemini-companion-edit-text edit)
    (gemini-companion-edit-texts-call
     edit (lambda (_before after) (gemini-companion-text-of-buffer after)))))

(defun gemini-companion-patch--of-changes ()
  "Return the files with changes that are left, from reviewed to now."
  (cl-loop
   for record in (gemini-companion-changes-files)
   for text = (gemini-companion-changes-text record)
   for changes = (and text (gemini-companion-changes-update record))
   when changes
   collect (let ((before (gemini-companion-lines-join
                          (gemini-companion-lines-without
                           changes (gemini-companion-lines-split text)))))
             (gemini-companion-patch--make-file
              :name (gemini-companion-changes-file-name record)
              :before (unless (and (gemini-companion-changes-file-new record)
                                   (string-empty-p before))
                        before)
              :after text
              :session (gemini-companion-edit-session
                        (gemini-companion-changes-file-edit record))))))

(defun gemini-companion-patch--edits-here ()
  "Return the edits at point in a review or the overview, oldest first, or nil.
Of several edits, return only those that are open or were written."
  (let ((edits (if gemini-companion-edits-view
                   (gemini-companion-view-edits gemini-companion-edits-view)
                 (and gemini-companion-edit-here
                      (list gemini-companion-edit-here)))))
    (if (cdr edits)
        (gemini-companion-patch--done edits)
      edits)))

(defun gemini-companion-patch--done (edits)
  "Return those of EDITS that are open or have changed their file, oldest first."
  (seq-filter (lambda (edit)
                (and (memq edit edits)
                     (or (gemini-companion-edit-open-p edit)
                         (gemini-companion-changes-there-p edit))))
              (gemini-companion-edits)))

(defun gemini-companion-patch--edits-of-turn ()
  "Return the edits of the last turn of a CLI, oldest first."
  (let* ((sessions (seq-uniq (mapcar #'gemini-companion-edit-session
                                     (gemini-companion-edits))
                             #'gemini-companion-session-same-p))
         (session (gemini-companion-session-read
                   (or sessions (user-error "No CLI has edited a file"))))
         (edits (seq-filter (lambda (edit)
                              (gemini-companion-session-same-p
                               session (gemini-companion-edit-session edit)))
                            (gemini-companion-edits)))
         (turn (if edits
                   (gemini-companion-edit-turn (car (last edits)))
                 (user-error "%s has edited no file"
                             (gemini-companion-session-name session)))))
    (gemini-companion-patch--done
     (seq-filter (lambda (edit) (eq turn (gemini-companion-edit-turn edit)))
                 edits))))

;;;; The patch

(defun gemini-companion-patch--root (file)
  "Return the root above FILE, a difference, or else its directory."
  (let ((name (gemini-companion-patch--file-name file)))
    (file-name-as-directory
     (or (car (gemini-companion-roots-outermost
               name (gemini-companion-patch--file-session file)))
         (file-name-directory name)))))

(defun gemini-companion-patch--quoted (name)
  "Return NAME as Git has it in a patch: quoted if it has odd characters.
A newline would end the name, and some characters are invisible."
  (if (not (or (string-match-p "[\"\\]" name)
               (/= (length name)
                   (length (gemini-companion-text-escaped name 'composed)))))
      name
    (concat "\""
            (mapconcat (lambda (char)
                         (pcase char
                           ((or ?\" ?\\) (string ?\\ char))
                           ((guard (equal (string char)
                                          (gemini-companion-text-escaped
                                           (string char) 'composed)))
                            (string char))
                           (_ (mapconcat (apply-partially #'format "\\%03o")
                                         (gemini-companion-text-utf-8 (string char))
                                         ""))))
                       name "")
            "\"")))

(defun gemini-companion-patch--insert (file root)
  "Insert FILE, a difference, with its name relative to ROOT.
Insert nothing if the texts are the same.  A name outside ROOT is absolute."
  (pcase-let* (((cl-struct gemini-companion-patch--file name before after) file)
               (diff (gemini-companion-text-unified (or before "") after))
               (relative (string-remove-prefix root name)))
    (unless (string-empty-p diff)
      (cl-flet ((label (prefix)
                  (gemini-companion-patch--quoted
                   (if (file-name-absolute-p relative)
                       relative
                     (concat prefix relative)))))
        (insert "--- " (if before (label "a/") "/dev/null") "\n"
                "+++ " (label "b/") "\n"
                diff)))))

(defun gemini-companion-patch--write (compute)
  "Write the files of COMPUTE, a function, in the current buffer.
Signal a `user-error' if they are the same before and after."
  (let* ((files (funcall compute))
         (root (and files (gemini-companion-patch--root (car files))))
         (text (with-temp-buffer
                 (dolist (file files)
                   (gemini-companion-patch--insert file root))
                 (buffer-string)))
         (inhibit-read-only t))
    (when (string-empty-p text)
      (user-error "No change to show as a patch"))
    (erase-buffer)
    (insert text)
    (set-buffer-modified-p nil)
    (goto-char (point-min))
    (setq default-directory (gemini-companion-names-visited root))))

;;;; Commands

(defun gemini-companion-patch (&optional of-turn)
  "Show a unified diff in `diff-mode', with names relative to the root.
In a review it is the proposal, from the file to the text that accepting it
writes; in the overview, the edit at point, or what a turn or CLI did;
elsewhere all changes that you have neither kept nor undone, from what was
reviewed to now.  OF-TURN, the prefix argument, shows what the last turn of
a CLI did.

\\<diff-mode-map>\\[diff-apply-hunk] applies a hunk to the file, and \
\\[diff-goto-source] goes there."
  (interactive "P")
  (let* ((edits (if of-turn
                    (gemini-companion-patch--edits-of-turn)
                  (gemini-companion-patch--edits-here)))
         (compute (if (or of-turn edits)
                      (apply-partially #'gemini-companion-patch--of-edits edits)
                    #'gemini-companion-patch--of-changes))
         (buffer (get-buffer-create gemini-companion-patch--buffer)))
    (with-current-buffer buffer
      (let ((empty (zerop (buffer-size))))
        (condition-case error
            (gemini-companion-patch--write compute)
          (user-error
           (when empty
             (kill-buffer buffer))
           (signal (car error) (cdr error)))))
      ;; Before the mode, which otherwise has no keys such as q.
      (setq buffer-read-only t)
      (diff-mode)
      (setq-local revert-buffer-function
                  (lambda (&rest _) (gemini-companion-patch--write compute))))
    (pop-to-buffer buffer '(nil (category . gemini-companion-patch)))))

(provide 'gemini-companion-patch)
;;; gemini-companion-patch.el ends here
