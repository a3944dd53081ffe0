;;; gemini-companion-reported.el --- Writes that linked CLIs report  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A linked CLI reports what it has written: its tools, by the text before and after, and
;; its commands, by the bytes in a snapshot.  A report is of an edit that is recorded
;; already, as it was reviewed, or of a new one that nobody has reviewed.

;;; Code:

(require 'gemini-companion-attribution)
(require 'gemini-companion-content)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-lines)
(require 'gemini-companion-names)
(require 'gemini-companion-revert)
(require 'gemini-companion-text)

;;;; Of tools

(defun gemini-companion-reported-write (session file before after)
  "Record that SESSION has written FILE, maybe without a review.
BEFORE is the previous text of FILE, nil if it did not exist, and AFTER
the current one.  If such an edit is recorded already, record only that it was
reported and written."
  (gemini-companion-attribution-set-reported
   (or (gemini-companion-reported--edit session file before after)
       (gemini-companion-reported--new session file before after))))

(defun gemini-companion-reported--edit (session file before after)
  "Return the recorded edit that SESSION reports now as written, or nil.
For FILE, BEFORE and AFTER, see `gemini-companion-reported-write'."
  (seq-find
   (lambda (edit)
     (and (gemini-companion-edit-texts-same-p
           after (gemini-companion-edit-text edit))
          (cond ((not (gemini-companion-edit-written-p edit))
                 (gemini-companion-reported--begins-with-p edit session before))
                ((gemini-companion-edit-reported edit)
                 nil)
                ((gemini-companion-edit-command edit)
                 (gemini-companion-reported--begins-with-p edit session before))
                ;; Compare no turns: the report of the prompt may have been lost.
                (t))))
   (gemini-companion-edits-of-file (gemini-companion-text-true-name file))))

(defun gemini-companion-reported--begins-with-p (edit session before)
  "Return non-nil if EDIT is of the turn of SESSION, and its file had BEFORE."
  (and (gemini-companion-attribution-in-turn-p edit session)
       (if (gemini-companion-edit-known-p edit)
           (gemini-companion-edit-texts-same-p
            (or before "") (gemini-companion-edit-texts-before edit))
         (null before))))

(defun gemini-companion-reported--new (session file before after)
  "Record a new edit for a write that SESSION reports, and return the edit.
For FILE, BEFORE and AFTER, see `gemini-companion-reported-write'."
  (let* ((edit (gemini-companion-edit-make
                :id (gensym) :session session :file file :answer 'unreviewed))
         (bytes (gemini-companion-edit-texts-bytes edit))
         (now (gemini-companion-edit-texts-content edit bytes)))
    (gemini-companion-edit-texts-set
     edit
     (if before
         (gemini-companion-reported--content edit now before after)
       (gemini-companion-content-with now (gemini-companion-edit-texts-missing edit)))
     after)
    (gemini-companion-edit-add edit)
    edit))

;;;; Of snapshots

;; A snapshot has bytes, which no CLI has read.
(cl-defun gemini-companion-reported-bytes
    (session file before after command
             &key modes made taken (answer 'unreviewed))
  "Record that COMMAND of SESSION has made AFTER of BEFORE in FILE.
BEFORE and AFTER are bytes; BEFORE is nil if the file is new, AFTER if it was
deleted, which had MODES.  MADE are the names of new directories; for TAKEN and
ANSWER, see `gemini-companion-edit'.  Return the edit.  Do nothing if an edit
has reported that write, unless the user has just decided on it."
  (unless (and (eq answer 'unreviewed)
               (gemini-companion-reported--known-p file before after))
    (let* ((edit (gemini-companion-edit-make
                  :id (gensym) :session session :file file :command command
                  :answer answer :file-state 'written :taken taken
                  :deleted-modes (and (null after) modes)))
           (content (gemini-companion-edit-texts-content edit (or before 'none)))
           (text (gemini-companion-content-text
                  (gemini-companion-edit-texts-content edit (or after "")))))
      (gemini-companion-edit-texts-set edit content text)
      (setf (gemini-companion-edit-missing-directories edit)
            (gemini-companion-reported--made edit made))
      (gemini-companion-edit-add edit)
      (when after
        (gemini-companion-edit-texts-record-format edit))
      (gemini-companion-edit-notify-file edit 'written)
      edit)))

(defun gemini-companion-reported--made (edit made)
  "Return the directories of the new file of EDIT that are in MADE, a sequence.
They are true names, the innermost first."
  (let ((made (mapcar #'file-name-as-directory made))
        (directory (file-name-directory (gemini-companion-edit-true-name edit)))
        (names nil))
    (while (and (gemini-companion-edit-new-p edit)
                (member directory made))
      (push directory names)
      (setq directory (file-name-directory (directory-file-name directory))))
    (nreverse names)))

(defun gemini-companion-reported--known-p (file before after)
  "Return non-nil if the last edit of FILE was written, and made AFTER of BEFORE.
BEFORE and AFTER are bytes; BEFORE is nil if the file is new.  A command may
give a file that the user has changed the text of the last edit again."
  (when-let* ((edit (car (gemini-companion-edits-of-file
                          (gemini-companion-text-true-name file)))))
    (and after
         (gemini-companion-edit-written-p edit)
         (gemini-companion-attribution-text-in-file edit after)
         (cond ((not (gemini-companion-edit-known-p edit))
                (null before))
               ((null before)
                (gemini-companion-edit-new-p edit))
               (t
                (gemini-companion-edit-texts-same-p
                 (gemini-companion-edit-texts-before edit)
                 (gemini-companion-content-text
                  (gemini-companion-edit-texts-with edit before))))))))

(defun gemini-companion-reported--content (edit now before after)
  "Return the content of the file of EDIT before the write that a CLI reports.
NOW is its content after that.  For BEFORE and AFTER, see
`gemini-companion-reported-write'.  Where BEFORE has characters that the CLI
could not read, or the texts cannot be compared, the content before is unknown."
  (condition-case err
      (gemini-companion-reported--content-of edit now before after)
    (gemini-companion-text-not-compared
     (message "The previous text of %s is unknown: %s"
              (gemini-companion-edit-name edit) (gemini-companion-text-problem err))
     (gemini-companion-content-with now 'unknown))))

(defun gemini-companion-reported--content-of (edit now before after)
  "Return the content of the file of EDIT before the write that its CLI reports.
For NOW, BEFORE and AFTER, see
`gemini-companion-reported--content'."
  (let* ((text (and (gemini-companion-content-bytes-p now)
                    (gemini-companion-content-text now)))
         (lines (and text (gemini-companion-reported--lines-only-p
                           before after text)))
         (read (and text (gemini-companion-reported--bytes-read edit now before)))
         (content (or read
                      (gemini-companion-content-encoded
                       now (if lines (gemini-companion-lines-fit before text) before)))))
    (setf (gemini-companion-content-reported content)
          (if (and lines (null read)) 'lines t))
    ;; If Emacs reads the file otherwise than the CLI, the bytes would be wrong.
    (unless (or (eq 'utf-8-unix (gemini-companion-content-coding now))
                (gemini-companion-edit-texts-same-p after text))
      (setf (gemini-companion-content-bytes content) 'unknown))
    content))

(defun gemini-companion-reported--lines-only-p (before after now)
  "Return non-nil if the report of BEFORE and AFTER is without line ends.
The file has the text NOW.  The report has plain line ends and no byte order
mark, but the file does not, so the CLI has written others than it reports."
  (and (not (equal after now))
       (equal before (gemini-companion-text-normalized before))
       (equal (gemini-companion-lines-split now)
              (gemini-companion-lines-split after))))

(defun gemini-companion-reported--bytes-read (edit now before)
  "Return the content that Emacs has read before EDIT, if its lines are BEFORE.
BEFORE has plain line ends, and may be all that the CLI reports.  The buffer of
the file has that text until it is reverted.  NOW is the content after EDIT."
  (when-let* ((buffer (gemini-companion-names-buffer
                       (gemini-companion-edit-file edit)))
              ((not (buffer-modified-p buffer)))
              (bytes (with-current-buffer buffer
                       (gemini-companion-revert-encoded)))
              (content (gemini-companion-content-with now bytes))
              ((equal before (gemini-companion-text-normalized
                              (gemini-companion-content-text content)))))
    content))

(provide 'gemini-companion-reported)
;;; gemini-companion-reported.el ends here
