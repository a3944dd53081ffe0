;;; gemini-companion-invariants.el --- Check what must always be so  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; An aid for developers, which nothing loads by itself: (require
;; 'gemini-companion-invariants) turns it on, as all tests do.  After each write, step
;; and look it checks that
;;
;; - the known text of a record is the text that was written last;
;; - each hunk that a line or a decision names is one of the record;
;; - the marks in a buffer are the changes of the last look, and no others;
;; - the numbers of a row in the overview are those of the diff below it;
;; - what Emacs has overwritten or deleted is kept: a step can restore it, or it was an
;;   edit's.
;;
;; That each slot of an edit is set in one file is a test of the source.
;;
;; What is not so is in `gemini-companion-invariants-broken', and in the buffer of
;; M-x gemini-companion-events-buffer, after the events that have led to it.  Neither
;; has a text of a file.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'gemini-companion-changes)
(require 'gemini-companion-content)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-hunk)
(require 'gemini-companion-lines)
(require 'gemini-companion-log)
(require 'gemini-companion-marks)
(require 'gemini-companion-names)
(require 'gemini-companion-overview-page)
(require 'gemini-companion-overview-row)
(require 'gemini-companion-part)
(require 'gemini-companion-record)
(require 'gemini-companion-step)
(require 'gemini-companion-text)
(require 'gemini-companion-trash)
(require 'gemini-companion-watch)

;;;; State

(defvar gemini-companion-invariants-broken nil
  "Sentences about what was not as it must be, the last one first.")

(defvar gemini-companion-invariants--before nil
  "Alist from true names of files that are being written to their bytes before.")

(defvar gemini-companion-invariants--written nil
  "What Emacs has overwritten or deleted, and nothing yet keeps.
The value is an alist from true names of files to bytes.")

(defvar gemini-companion-invariants--own nil
  "What Emacs has written last, which its undo has: conses of true names and bytes.")

(defvar gemini-companion-invariants--stored nil
  "Alist from true names of files that the server writes to what it has of them.
That is a list of the names in git of their contents.")

(defvar gemini-companion-invariants--trashed nil
  "The true name of the file that was moved to the trash last, or nil.")

(defun gemini-companion-invariants--broken (format &rest args)
  "Record what is not so, a sentence, by FORMAT and ARGS."
  (let ((sentence (apply #'format format args)))
    (unless (member sentence gemini-companion-invariants-broken)
      (push sentence gemini-companion-invariants-broken)
      (gemini-companion-log-record 'failed 'invariants (list sentence)))))

;;;; Records

(defun gemini-companion-invariants--wrote (edit event)
  "Check what is known after an EVENT of the file of EDIT."
  (gemini-companion-log-record
   'noted event (list (gemini-companion-edit-true-name edit)
                      (gemini-companion-edit-status edit)))
  ;; Emacs records a rename once it has written all of its files.
  (let ((name (gemini-companion-edit-true-name edit)))
    (gemini-companion-invariants--keep
     name (apply-partially #'gemini-companion-invariants--of-edit-p name)))
  (when-let* (((eq event 'written))
              (record (gemini-companion-changes-with-edit edit))
              ((eq edit (gemini-companion-changes-file-edit record)))
              ;; What the user has undone is not known any more.
              ((seq-every-p (lambda (hunk)
                              (not (gemini-companion-record-hunk-undone hunk)))
                            (gemini-companion-changes-hunks record)))
              (known (gemini-companion-record-text
                      (gemini-companion-changes-file-lines record))))
    (unless (or (equal known (gemini-companion-lines-split
                              (gemini-companion-edit-after edit)))
                ;; A formatter has changed what was accepted.
                (when-let* ((now (gemini-companion-edit-texts-now edit)))
                  (equal known (gemini-companion-changes-lines-of-content now))))
      (gemini-companion-invariants--broken
       "The known text of %s is not what was written"
       (gemini-companion-changes-file-name record)))))

(defun gemini-companion-invariants--hunks (record hunks who)
  "Check that HUNKS, which WHO names, a text, are hunks of RECORD."
  (when (seq-difference hunks (gemini-companion-changes-hunks record) #'eq)
    (gemini-companion-invariants--broken "%s of %s names a hunk of no write" who
                                         (gemini-companion-changes-file-name record))))

(defun gemini-companion-invariants--looked (record buffer)
  "Check the changes of RECORD, and their marks in BUFFER, which visits its file.
Log that they were looked at."
  (when record
    (let ((changes (gemini-companion-changes-file-known record)))
      (gemini-companion-log-record
       'noted 'look (list (gemini-companion-changes-file-name record)
                          (length changes)))
      (gemini-companion-invariants--hunks
       record
       (gemini-companion-record-hunks (gemini-companion-changes-file-lines record))
       "A line")
      (when buffer
        (gemini-companion-invariants--marks buffer changes)))))

(defun gemini-companion-invariants--marks (buffer changes)
  "Check that the marks in BUFFER are those of CHANGES, in place, and no others.
A mark is the overlay of a change, or one with the sign of a line."
  (with-current-buffer buffer
    (save-excursion
      (save-restriction
        (widen)
        (let* ((all (seq-filter (lambda (overlay)
                                  (or (overlay-get overlay 'gemini-companion-mark)
                                      (overlay-get overlay 'gemini-companion-change)))
                                (overlays-in (point-min) (point-max))))
               (signs (seq-difference all gemini-companion-marks-here #'eq))
               (expected nil)
               (places nil))
          (dolist (change changes)
            (goto-char (point-min))
            (forward-line (gemini-companion-hunk-new change))
            (push (cons (point) change) expected)
            (dotimes (_ (min (max 1 (- (gemini-companion-hunk-new-end change)
                                       (gemini-companion-hunk-new change)))
                             200))
              (push (point) places)
              (forward-line)))
          (unless (and (equal (nreverse expected)
                              (mapcar (lambda (mark)
                                        (cons (overlay-start mark)
                                              (overlay-get mark 'gemini-companion-change)))
                                      gemini-companion-marks-here))
                       (equal (sort places #'<)
                              (sort (mapcar #'overlay-start signs) #'<)))
            (gemini-companion-invariants--broken
             "The marks in %s are not the changes of the last look" (buffer-name))))))))

(defun gemini-companion-invariants--unmarked ()
  "Check that the current buffer has no marks if it has no changes of its own."
  (when (or (buffer-base-buffer)
            (null (gemini-companion-changes-here)))
    (gemini-companion-invariants--marks (current-buffer) nil)))

(defun gemini-companion-invariants--displayed (frame)
  "Check the buffers in FRAME that have no changes of their own."
  ;; A test may pass a window, as in a buffer of its own.
  (dolist (window (window-list (and (framep frame) frame) 'no-minibuffer))
    (with-current-buffer (window-buffer window)
      (gemini-companion-invariants--unmarked))))

;;;; What Emacs writes

(defun gemini-companion-invariants--writing (file when)
  "Note what FILE has as Emacs writes it; WHEN is `before' or `after' that."
  (let ((name (gemini-companion-text-true-name file))
        (bytes (gemini-companion-invariants--bytes file)))
    (if (eq when 'before)
        (push (cons name bytes) gemini-companion-invariants--before)
      (gemini-companion-log-record 'noted (if bytes 'wrote 'deleted) (list name))
      (pcase (alist-get name gemini-companion-invariants--before nil 'remove #'equal)
        ;; What was written before is there again.
        ((guard (member (cons name bytes) gemini-companion-invariants--written))
         (gemini-companion-invariants--keep name (apply-partially #'equal bytes)))
        ((and (pred stringp) before
              (guard (not (member before (list "" bytes))))
              (guard (not (or (gemini-companion-invariants--stored-p name before)
                              (member (cons name before) gemini-companion-invariants--own)
                              (gemini-companion-invariants--of-edit-p name before)))))
         (push (cons name before) gemini-companion-invariants--written)))
      (when bytes
        (setq gemini-companion-invariants--own
              (seq-take (cons (cons name bytes) gemini-companion-invariants--own) 50)))
      (setf (alist-get name gemini-companion-invariants--before nil 'remove #'equal)
            nil))))

(defun gemini-companion-invariants--bytes (file)
  "Return the bytes of FILE, or nil if they cannot be kept, or it is a link."
  (and (not (file-symlink-p file))
       (gemini-companion-edit-texts-keepable-p file)
       (ignore-error file-error
         (gemini-companion-text-bytes file))))

(defun gemini-companion-invariants--stored-p (file bytes)
  "Return non-nil if the server, which writes FILE, a true name, has its BYTES."
  (seq-some (lambda (blob)
              (and (stringp blob)
                   (equal blob (secure-hash (if (length= blob 64) 'sha256 'sha1)
                                            (concat (format "blob %d\0" (length bytes))
                                                    bytes)))))
            (cdr (assoc file gemini-companion-invariants--stored))))

(defun gemini-companion-invariants--keep (file keeps-p)
  "Note that what was overwritten in FILE, a true name, is kept.
KEEPS-P is a predicate on its bytes."
  (setq gemini-companion-invariants--written
        (seq-remove (pcase-lambda (`(,name . ,bytes))
                      (and (equal name file)
                           (funcall keeps-p bytes)))
                    gemini-companion-invariants--written)))

(defun gemini-companion-invariants--step (do step &rest args)
  "Call DO with STEP and ARGS, and check what that has done; return its value.
A file that is deleted then is in the trash, unless the user has agreed."
  (let* ((file (gemini-companion-step-file step))
         (name (gemini-companion-text-true-name file))
         (is-local (and (not (file-remote-p file)) (file-regular-p name))))
    (gemini-companion-invariants--changes step)
    (setq gemini-companion-invariants--trashed nil)
    (let ((back (apply do step args)))
      ;; There is nothing to take back if nothing was to be changed.
      (when back
        (gemini-companion-invariants--did back))
      (when (and is-local
                 (not (file-exists-p name))
                 (not (equal name gemini-companion-invariants--trashed)))
        (gemini-companion-invariants--broken "%s was deleted past the trash" name))
      back)))

(defun gemini-companion-invariants--changes (step)
  "Note what the server has of the files of STEP, if it has several."
  (when (eq 'several (gemini-companion-step-kind step))
    (setq gemini-companion-invariants--stored
          (cl-mapcar
           (lambda (name file)
             ;; The slots `before' and `after' of a `gemini-companion-unmarked-entry',
             ;; which is of a later wing.
             (list (gemini-companion-text-true-name name) (aref file 2) (aref file 3)))
           (gemini-companion-changes-names (gemini-companion-step-edit step)
                                           (gemini-companion-step-hunks step))
           (gemini-companion-step-hunks step)))))

(defun gemini-companion-invariants--trash (delete file &optional agreed &rest args)
  "Call DELETE with FILE, AGREED and ARGS, and check that the trash has FILE then.
If AGREED is non-nil, the user was told that it may not."
  (let ((bytes (gemini-companion-invariants--bytes file)))
    (prog1 (apply delete file agreed args)
      (unless (or agreed
                  (null bytes)
                  (gemini-companion-trash-has-p file (secure-hash 'sha256 bytes)))
        (gemini-companion-invariants--broken "The trash does not have %s" file))
      (setq gemini-companion-invariants--trashed (gemini-companion-text-true-name file))
      (gemini-companion-invariants--keep gemini-companion-invariants--trashed
                                         #'identity))))

(defun gemini-companion-invariants--of-edit-p (file bytes)
  "Return non-nil if an edit of FILE, a true name, has the text BYTES."
  (let ((text (gemini-companion-text-normalized
               (decode-coding-string bytes 'utf-8-unix))))
    (seq-some (lambda (edit)
                (and (equal file (gemini-companion-edit-true-name edit))
                     (seq-some (lambda (other)
                                 (and other
                                      (equal text (gemini-companion-text-normalized
                                                   other))))
                               (list (gemini-companion-edit-proposed edit)
                                     (gemini-companion-edit-after edit)
                                     (and (gemini-companion-edit-known-p edit)
                                          (not (gemini-companion-edit-new-p edit))
                                          (gemini-companion-content-text
                                           (gemini-companion-edit-content edit)))))))
              (gemini-companion-edits))))

(defun gemini-companion-invariants--did (step)
  "Check STEP, which takes back the step that was done just now."
  (let ((file (gemini-companion-step-file step))
        (record (gemini-companion-step-record step)))
    (gemini-companion-log-record
     'noted 'step (list file (gemini-companion-step-kind step)
                        (gemini-companion-step-on step)))
    (when record
      (gemini-companion-invariants--hunks record (gemini-companion-step-hunks step)
                                          "A decision"))
    (gemini-companion-invariants--keep
     (gemini-companion-text-true-name file)
     (apply-partially #'equal (gemini-companion-step-after step)))))

;;;; The overview

(defun gemini-companion-invariants--page ()
  "Check the numbers of lines in the current buffer if it is the overview."
  (when (derived-mode-p 'gemini-companion-overview-mode)
    (save-excursion
      (goto-char (point-min))
      (while (not (eobp))
        (let ((row (and (gemini-companion-overview-page-on-heading-p)
                        (gemini-companion-overview-page-row)))
              (heading (buffer-substring-no-properties (line-beginning-position)
                                                       (line-end-position))))
          (forward-line)
          (when (and row (eq 'file (gemini-companion-overview-row-kind row)))
            (gemini-companion-invariants--row row heading)))))))

(defun gemini-companion-invariants--row (row heading)
  "Check the numbers of lines of ROW in its HEADING, a text; its diff is at point.
Do not check those of a diff with folded changes."
  (let ((added 0)
        (removed 0)
        (all t))
    (while (not (or (eobp) (gemini-companion-overview-page-on-heading-p)))
      ;; Remarks and comments have no number.
      (when (and (get-text-property (point) 'gemini-companion-hunk)
                 (plist-member (text-properties-at (point)) 'gemini-companion-line)
                 (not (memq 'gemini-companion-comment-block
                            (flatten-tree (get-text-property (point) 'face)))))
        (if (get-text-property (point) 'gemini-companion-old)
            (setq removed (1+ removed))
          (setq added (1+ added))))
      (pcase (get-text-property (point) 'gemini-companion-fold)
        (`(,_ more . ,_) (setq all nil)))
      (forward-line))
    (let ((amount (gemini-companion-hunk-amount added removed)))
      (when (and all
                 (< 0 (+ added removed))
                 (string-match-p "[+-][0-9]" heading)
                 ;; "+1 -1" is not in "+1 -12".
                 (not (string-match-p (concat (regexp-quote amount) "\\_>") heading)))
        (gemini-companion-invariants--broken
         "The row of %s does not count the lines of its diff, %s: %s"
         (gemini-companion-overview-row-path row) amount heading)))))

;;;; Checks

(defun gemini-companion-invariants--lost ()
  "Check that what was overwritten and deleted is kept; nothing is written now."
  (pcase-dolist (`(,name . ,_) gemini-companion-invariants--written)
    (gemini-companion-invariants--broken
     "What Emacs has overwritten or deleted in %s is not kept" name))
  (setq gemini-companion-invariants--written nil))

(defun gemini-companion-invariants-check ()
  "Return sentences about what was not so since the last call, or nil.
Call this when nothing is being written."
  (gemini-companion-invariants--lost)
  (prog1 (nreverse gemini-companion-invariants-broken)
    (setq gemini-companion-invariants-broken nil)))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'invariants)))
  "Check after each write, step, look and command."
  '((gemini-companion-edit-file-functions gemini-companion-invariants--wrote 90)
    (gemini-companion-changes-functions gemini-companion-invariants--looked 90)
    (after-set-visited-file-name-hook gemini-companion-invariants--unmarked 90)
    (window-buffer-change-functions gemini-companion-invariants--displayed 90)
    (gemini-companion-watch-writing-functions gemini-companion-invariants--writing -90)
    (post-command-hook gemini-companion-invariants--lost 90)
    (post-command-hook gemini-companion-invariants--page)))

(cl-defmethod gemini-companion-part-start ((_part (eql 'invariants)))
  "Check what takes back each step."
  (advice-add 'gemini-companion-step-do :around #'gemini-companion-invariants--step)
  (advice-add 'gemini-companion-trash-delete :around #'gemini-companion-invariants--trash))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'invariants)))
  "Check no longer."
  (advice-remove 'gemini-companion-step-do #'gemini-companion-invariants--step)
  (advice-remove 'gemini-companion-trash-delete #'gemini-companion-invariants--trash))

(gemini-companion-part-loaded 'invariants)

(provide 'gemini-companion-invariants)
;;; gemini-companion-invariants.el ends here
