;;; gemini-companion-header.el --- The header line of a review  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The header line of a review has the file, remarks on it, the amount of change,
;; and the keys, as far as they fit.

;;; Code:

(require 'gemini-companion-commands)
(require 'gemini-companion-edit)
(require 'gemini-companion-hunk)
(require 'gemini-companion-label)
(require 'gemini-companion-revert)
(require 'gemini-companion-session)
(require 'gemini-companion-view)

(defun gemini-companion-header-shortest-key (command &optional place)
  "Return the key of COMMAND in PLACE, by default `view', if it works here.
Otherwise return its other key, or nil if it has none."
  (let ((key (car (cl-find command (gemini-companion-commands-in (or place 'view))
                           :key #'cadr))))
    (if (eq command (key-binding (kbd key)))
        (propertize key 'face 'bold)
      (when (where-is-internal command nil t)
        (substitute-command-keys (format "\\[%s]" command))))))

(defun gemini-companion-header-set ()
  "Set the header line of the current buffer, one of a review."
  (setq header-line-format '(:eval (gemini-companion-header--text)))
  ;; The header line shows the hunk at point, and whether the review is selected.
  (add-hook 'post-command-hook #'force-mode-line-update nil t)
  (add-hook 'window-selection-change-functions #'force-mode-line-update nil t))

(defun gemini-companion-header--text ()
  "Return the header line of the review of the current buffer.
It has the file, remarks on it, the amount of change, and the keys in
this buffer, as far as they fit into the window."
  (let ((edit gemini-companion-edit-here)
        (gap (if (< (window-width) 80) " " "  ")))
    (gemini-companion-label-header
     (append (gemini-companion-header--subject edit)
             (gemini-companion-header--amount edit)
             (mapcar (pcase-lambda (`(,rank ,text))
                       (list rank (string-replace "  " gap text)))
                     (gemini-companion-header--answers edit))))))

(defun gemini-companion-header--answers (edit)
  "Return the keys that answer EDIT, if it is open, parts of a header line."
  ;; While a header line is computed, its own window is selected.
  (let* ((window (old-selected-window))
         (selected (and (window-live-p window)
                        (window-buffer (or (and (window-minibuffer-p window)
                                                (get-mru-window
                                                 (window-frame window) t))
                                           window))))
         (proposal (gemini-companion-edit-proposal-buffer edit)))
    (cond
     ((and selected
           (eq edit (buffer-local-value 'gemini-companion-edit-here selected)))
      (gemini-companion-header-keys
       (if (eq (current-buffer) proposal)
           ;; The mark of removed lines is empty, so no character has it.
           (seq-some (lambda (mark)
                       (<= (overlay-start mark) (point) (overlay-end mark)))
                     (gemini-companion-hunk-marks proposal))
         (member (get-text-property (point) 'gemini-companion-hunk)
                 (gemini-companion-hunk-excluded proposal)))))
     ((gemini-companion-edit-open-p edit)
      ;; The key that works where the user is.
      (with-current-buffer (or selected (current-buffer))
        `((2 ,(substitute-command-keys
               "  \\[gemini-companion-review] to answer"))))))))

;; The ranks: 0 is a remark that guards text of the user, 2 a key and 2.5 its
;; word, 4 and 5 are more of these and the amount of change; all others are
;; omitted before the name is shortened.
(defun gemini-companion-header--subject (edit)
  "Return the file of EDIT and remarks on it, parts of a header line.
What guards text comes first, the longest last: a long name may not fit."
  (let ((name (copy-sequence (gemini-companion-edit-name edit)))
        (remarks (gemini-companion-edit-remarks edit)))
    (add-face-text-property 0 (length name) 'bold 'append name)
    (append
     (mapcar
      (pcase-lambda (`(,rank ,text)) (list rank (propertize text 'face 'bold)))
      `(,@(when (gemini-companion-revert-unsaved
                 (gemini-companion-edit-file edit))
            '((0 "unsaved") (4 " changes here") (0 "; ")))
        ,@(when (memq 'changed remarks)
            '((4 "file ") (0 "changed") (4 " since the proposal") (0 "; ")))
        ,@(when (memq 'undoes remarks)
            '((0 "undoes your edits") (4 " of the previous proposal") (0 "; ")))
        ,@(when (gemini-companion-edit-follows-p edit)
            '((0 "edits may not be written")
              (4 ": another edit of this file is not written yet") (0 "; ")))
        ,@(gemini-companion-header--of-coding edit)
        ,@(when (and (gemini-companion-edit-open-p edit)
                     (or (gemini-companion-edit-edited-p edit)
                         (gemini-companion-hunk-marks
                          (gemini-companion-edit-proposal-buffer edit))))
            (gemini-companion-header--of-edits edit))))
     (list (list nil name))
     (gemini-companion-header--remark
      0 (pcase (gemini-companion-edit-decision edit)
          ;; The buffers of a dismissed edit stay while the user types in them.
          ('dismissed "closed")
          ((and decision (or 'accepted 'rejected)) (symbol-name decision))))
     (gemini-companion-header--remark 3 (gemini-companion-edit-objection edit))
     (gemini-companion-header--remark
      3 (unless (gemini-companion-session-connected-p
                 (gemini-companion-edit-session edit))
          "not connected"))
     (gemini-companion-header--remark
      3 (and (eq 'new (gemini-companion-edit-before edit)) "new file")))))

(defun gemini-companion-header--of-coding (edit)
  "Return remarks on what the CLI of EDIT does to a file that is not UTF-8."
  (let ((count (if (gemini-companion-edit-open-p edit)
                   (gemini-companion-edit-lost-count edit)
                 0)))
    (cond ((< 0 count)
           `((0 ,(format (ngettext "not UTF-8: the CLI replaces %d character; "
                                   "not UTF-8: the CLI replaces %d characters; "
                                   count)
                         count))))
          ((memq 'not-utf-8 (gemini-companion-edit-remarks edit))
           '((0 "not UTF-8") (4 ": the CLI writes UTF-8") (0 "; "))))))

(defun gemini-companion-header--of-edits (edit)
  "Return remarks on the user's edits of EDIT if they are lost on its CLI."
  (append
   (when (gemini-companion-edit-client-get edit :discards-edits)
     '((0 "answer here")
       (4 ": a yes in the terminal writes the CLI's own text") (0 "; ")))
   (when (gemini-companion-edit-client-get edit :writes-own-text)
     '((0 "Emacs writes your edits") (4 " over the CLI's own text") (0 "; ")))))

(defun gemini-companion-header--remark (rank text)
  "Return a list of TEXT, with RANK and in bold, or nil if it is nil."
  (when text
    `((,rank ,(concat ", " (propertize text 'face 'bold))))))

(defun gemini-companion-header--amount (edit)
  "Return the size of EDIT, and its place among the open edits.
The value is a list of (RANK TEXT); see `gemini-companion-label-header'."
  (let* ((edits (gemini-companion-edits-open))
         (hunk (get-text-property (point) 'gemini-companion-hunk))
         (number (seq-position (gemini-companion-edit-known-hunks edit) hunk)))
    (append
     (pcase (gemini-companion-edit-counts edit)
       (`(,hunks ,excluded ,added ,removed)
        `((5 ,(concat "  " (gemini-companion-hunk-lines added removed)))
          (7 ,(if number
                  (format ", hunk %d of %d" (1+ number) hunks)
                (format (ngettext ", %d hunk" ", %d hunks" hunks) hunks)))
          ,@(gemini-companion-header--remark
             4 (unless (zerop excluded) (format "%d excluded" excluded))))))
     (gemini-companion-header--remark
      6 (and (gemini-companion-edit-edited-p edit) "edited"))
     (when (cdr edits)
       `((6 ,(format ", %d of %d" (1+ (or (seq-position edits edit #'eq) 0))
                     (length edits)))))
     ;; Two CLIs may propose files of one name.
     `((,(if (cdr (gemini-companion-sessions)) 3 10)
        ,(concat ", " (gemini-companion-session-name
                       (gemini-companion-edit-session edit))))))))

(defun gemini-companion-header-keys (&optional excluded)
  "Return the keys in this buffer, of a review or the list.
After an answer, return what follows it.  The value consists of parts of
a header line.  EXCLUDED is non-nil if the hunk at point is excluded."
  (let* (;; Include the keys that a new review ignores for a moment.
         (gemini-companion-view-new-until 0)
         (edit gemini-companion-edit-here)
         (decision (and edit (gemini-companion-edit-decision edit)))
         (view (and edit (gemini-companion-edit-view edit)))
         (toggle (if excluded "restore" "exclude")))
    (cond
     ((null edit) (gemini-companion-header--keys 'list))
     ((memq decision '(accepted rejected))
      '((2 "; waiting for the next edit") (3 "; any other key closes this")))
     ((null decision)
      (gemini-companion-header--keys
       'view
       `(,@(unless (cdr (gemini-companion-edit-known-hunks edit))
             '((gemini-companion-review-next-hunk)))
         ,@(cond ((not (eq (current-buffer)
                           (gemini-companion-edit-proposal-buffer edit)))
                  `((gemini-companion-review-toggle-hunk 2 ,toggle)
                    (gemini-companion-review-edit 2 "edit")))
                 ((and view (eq 'diff (gemini-companion-view-kind view)))
                  '((gemini-companion-review-toggle-hunk)
                    (gemini-companion-review-edit 3 "back to the diff")))
                 (t
                  `((gemini-companion-review-edit)
                    (gemini-companion-review-toggle-hunk 8 ,toggle))))))))))

(defun gemini-companion-header--keys (place &optional words)
  "Return the keys in the current buffer, in PLACE, parts of a header line.
WORDS is an alist of commands and their values of `:header' here."
  (seq-mapcat
   (pcase-lambda (`(,_ ,command ,_ ,_ . ,properties))
     (pcase-let ((`(,rank ,word)
                  (alist-get command words (plist-get properties :header)))
                 (key (gemini-companion-header-shortest-key command place)))
       (when (and word key)
         (setq key (concat "  " (propertize key 'face 'bold))
               word (concat " " word))
         (if (< 2 rank)
             `((,rank ,(concat key word)))
           ;; Beside two remarks there may be no room for each word.
           `((,rank ,key) (,(+ rank 0.5) ,word))))))
   (gemini-companion-commands-in place)))

(provide 'gemini-companion-header)
;;; gemini-companion-header.el ends here
