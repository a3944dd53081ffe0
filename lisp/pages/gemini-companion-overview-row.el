;;; gemini-companion-overview-row.el --- What waits and what was written, as rows  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The rows of the overview, as a tree: requests that await an answer and, for each CLI,
;; its turns, their files, and their changes.  A change that several turns have written
;; belongs to the newest of them, so it is counted once.
;;
;; This file records nothing.  The file `gemini-companion-overview-draw' draws the rows.

;;; Code:

(require 'cl-lib)
(require 'subr-x) ; in Emacs 28 for `hash-table-keys'
(require 'gemini-companion-changes)
(require 'gemini-companion-comment)
(require 'gemini-companion-context)
(require 'gemini-companion-edit)
(require 'gemini-companion-hunk)
(require 'gemini-companion-record)
(require 'gemini-companion-request)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-undo)

;;;; Structures

(cl-defstruct (gemini-companion-overview-row
               (:noinline t)
               (:constructor gemini-companion-overview-row)
               (:copier nil))
  "A row of the overview.
KEY identifies it, compared by `equal', and LEVEL is 1 to 4.  KIND is one of

  `note'      a problem, or the note of TURN, with TEXT and ACTION, a command
  `waiting'   the heading of what waits
  `proposal'  an EDIT that awaits an answer
  `request'   another REQUEST
  `cli'       a SESSION
  `turn'      a TURN of it
  `taken'     lines of the user that TURN has removed in the files TAKEN
  `reviewed'  files of TURN with nothing left
  `file'      what the EDITS of TURN have done to one file; EDIT is the last one

ROWS are the rows below it.  PATH is the name of the file and FILE its true
name.  RECORD is that of the file, or nil if there is none, and SEEN is its
`gemini-companion-changes-seen', or nil if its changes are unknown, because of
PROBLEM, a text, or nil.  LEFT are its changes that are left and of TURN, and
DECIDED those of TURN that are kept or undone.  TAKEN are rows of files.  OPENING
is nil, or a function that returns with what a comment on the note begins.
STATUS is for `gemini-companion-overview-row-outcome'."
  key level kind rows session turn edit edits request file path record seen
  problem left decided text action opening taken (status 'unknown))

(defvar gemini-companion-overview-row-notes-function #'ignore
  "Function that returns notes at the top of the overview.
It is called with the sessions that have rows, and returns lists (TEXT COMMAND);
the command is called on the row.")

(defvar gemini-companion-overview-row-turn-note-function #'ignore
  "Function that returns the note of a turn, its argument, or nil.
The value is a list (TEXT COMMAND OPENING); for OPENING, see the row.")

;;;; Records

(defun gemini-companion-overview-row-outcome (row)
  "Return the `gemini-companion-changes-status' of the edit of ROW, a file.
It is asked once, as ROW is drawn once: asking takes as long as to draw it."
  (if (eq 'unknown (gemini-companion-overview-row-status row))
      (setf (gemini-companion-overview-row-status row)
            (gemini-companion-changes-status (gemini-companion-overview-row-edit row)))
    (gemini-companion-overview-row-status row)))

(defun gemini-companion-overview-row-version (row)
  "Return a value that differs, by `equal', after a change of ROW's file."
  (let ((record (gemini-companion-overview-row-record row))
        (seen (gemini-companion-overview-row-seen row)))
    (if seen
        (gemini-companion-changes-seen-key seen)
      (gemini-companion-changes-version
       record (gemini-companion-changes-buffer record)))))

(defun gemini-companion-overview-row-lines (row)
  "Return the lines of ROW's file, in which its changes are, a vector."
  (when-let* ((seen (gemini-companion-overview-row-seen row)))
    (gemini-companion-changes-seen-lines seen)))

(defun gemini-companion-overview-row-others (row)
  "Return the indices of the lines of ROW's file that no CLI has written.
Omit the lines that the file had before the first edit."
  (when-let* ((seen (gemini-companion-overview-row-seen row)))
    (gemini-companion-changes-seen-others seen)))

(defun gemini-companion-overview-row-open-p (row)
  "Return non-nil if changes are left in ROW's file, of any turn."
  (and (gemini-companion-overview-row-seen row)
       (gemini-companion-changes-file-known (gemini-companion-overview-row-record row))
       t))

(defun gemini-companion-overview-row--of-turn (turn changes)
  "Return those of CHANGES that are counted in TURN."
  (seq-filter (lambda (change) (eq turn (gemini-companion-changes-turn change)))
              changes))

;;;; Edits

(defun gemini-companion-overview-row--edits ()
  "Return all known edits, oldest first.
Include the edits of recorded files that are no longer in the list of edits."
  (let* ((edits (gemini-companion-edits))
         (seen (make-hash-table :test 'eq))
         (older nil))
    (dolist (edit edits)
      (puthash edit t seen))
    (dolist (record (gemini-companion-changes-files 'all))
      (dolist (edit (gemini-companion-changes-file-edits record))
        (unless (gethash edit seen)
          (puthash edit t seen)
          (push edit older))))
    (append (seq-sort-by #'gemini-companion-edit-since #'< older) edits)))

(defun gemini-companion-overview-row--by-turn (edits)
  "Return a list of (TURN . EDITS) for EDITS, the newest turn first.
The edits of a turn are in the order of the argument."
  (let ((turns nil))
    (dolist (edit (reverse edits))
      (push edit (alist-get (gemini-companion-edit-turn edit) turns)))
    (seq-sort-by (lambda (turn) (gemini-companion-turn-began (car turn))) #'> turns)))

;;;; Rows

(cl-defun gemini-companion-overview-rows (directory &optional plain)
  "Return the rows of the overview, a list of those of level 1.
CLIs whose root contains DIRECTORY come first.  PLAIN is a list of keys of rows
of files that must not be gathered in a row `reviewed'."
  (let* ((edits (gemini-companion-overview-row--edits))
         (requests (seq-filter #'gemini-companion-request-listed-p
                               (gemini-companion-requests)))
         (sessions (gemini-companion-overview-row--sessions edits requests directory))
         (clis (mapcar (lambda (session)
                         (gemini-companion-overview-row--cli session edits plain))
                       sessions)))
    (append (gemini-companion-overview-row--notes sessions)
            (gemini-companion-overview-row--other-comments clis)
            (and requests
                 (list (gemini-companion-overview-row
                        :key 'waiting :level 1 :kind 'waiting
                        :rows (mapcar #'gemini-companion-overview-row--waiting
                                      requests))))
            clis)))

(defun gemini-companion-overview-row--notes (sessions)
  "Return the rows of problems, or else those of other notes.
SESSIONS are those of all CLIs with rows."
  (let ((note (lambda (text action)
                (list (gemini-companion-overview-row
                       :key (list 'note text) :level 1 :kind 'note
                       :text text :action action)))))
    (cond ((not (bound-and-true-p gemini-companion-mode))
           (and (null sessions)
                (funcall note "gemini-companion-mode is off; turn it on"
                         'gemini-companion-mode)))
          (gemini-companion-server-problem
           (funcall note gemini-companion-server-problem 'gemini-companion-status))
          (gemini-companion-context-paused
           (funcall note "Sharing is paused" 'gemini-companion-pause))
          ((null sessions)
           (funcall note
                    (substitute-command-keys
                     "No CLI is connected; \\[gemini-companion-run] starts one")
                    'gemini-companion-run))
          (t (seq-mapcat (apply-partially #'apply note)
                         (funcall gemini-companion-overview-row-notes-function
                                  sessions))))))

(defun gemini-companion-overview-row--waiting (request)
  "Return the row of REQUEST, which waits for an answer."
  (let ((session (gemini-companion-request-session request)))
    (if (gemini-companion-edit-p request)
        ;; A proposal that replaces another one has the same key.
        (gemini-companion-overview-row
         :key (list 'proposal
                    (gemini-companion-overview-row--session-key session)
                    (gemini-companion-edit-file request))
         :level 2 :kind 'proposal :session session
         :edit request :request request :edits (list request)
         :file (gemini-companion-edit-true-name request)
         :path (gemini-companion-edit-file request))
      (gemini-companion-overview-row
       :key (list 'request (gemini-companion-request-kind request)
                  (gemini-companion-request-since request))
       :level 2 :kind 'request :session session :request request))))

(defun gemini-companion-overview-row--sessions (edits requests directory)
  "Return the sessions of all CLIs that have rows.
A CLI has a row if it is connected, or has one of EDITS or of REQUESTS.  Local
CLIs whose root contains DIRECTORY come first, and disconnected CLIs last.
DIRECTORY may be nil."
  (let ((sessions (seq-uniq
                   (append (gemini-companion-sessions)
                           (mapcar #'gemini-companion-request-session
                                   (append requests edits)))
                   #'gemini-companion-session-same-p))
        (directory (and directory (expand-file-name directory))))
    (seq-sort-by (lambda (session)
                   (let ((root (gemini-companion-session-directory session)))
                     (cond ((not (gemini-companion-session-connected-p session)) 2)
                           ((and directory root
                                 (not (gemini-companion-session-remote session))
                                 (string-prefix-p (file-name-as-directory root)
                                                  directory))
                            0)
                           (t 1))))
                 #'< sessions)))

(defun gemini-companion-overview-row--session-key (session)
  "Return what identifies the CLI of SESSION, compared by `equal'."
  (or (gemini-companion-session-pid session)
      (gemini-companion-session-id session)))

(defun gemini-companion-overview-row--cli (session edits plain)
  "Return the row of the CLI of SESSION, and the rows below it.
EDITS are those of all CLIs; for PLAIN, see `gemini-companion-overview-rows'."
  (let ((turns (gemini-companion-overview-row--by-turn
                (seq-filter (lambda (edit)
                              (gemini-companion-session-same-p
                               session (gemini-companion-edit-session edit)))
                            edits))))
    (gemini-companion-overview-row
     :key (list 'cli (gemini-companion-overview-row--session-key session))
     :level 1 :kind 'cli :session session
     :edits (seq-filter #'gemini-companion-edit-open-p (seq-mapcat #'cdr turns))
     :rows (mapcar (pcase-lambda (`(,turn . ,edits))
                     (gemini-companion-overview-row--turn session turn edits plain))
                   turns))))

(defun gemini-companion-overview-row--turn (session turn edits plain)
  "Return the row of TURN of SESSION, with the files of EDITS."
  (let* ((ended (seq-remove #'gemini-companion-edit-open-p edits))
         (files (gemini-companion-overview-row--files session turn ended))
         (done (seq-remove (lambda (row)
                             (or (gemini-companion-overview-row-open-p row)
                                 (gemini-companion-overview-row-without-marks-p row)
                                 (member (gemini-companion-overview-row-key row) plain)
                                 (gemini-companion-comments-of-file
                                  (gemini-companion-overview-row-file row))))
                           files))
         (gather (and (cdr done)
                      (seq-some #'gemini-companion-overview-row-left files))))
    (gemini-companion-overview-row
     :key (list 'turn (gemini-companion-turn-began turn)) :level 2 :kind 'turn
     :session session :turn turn :edits edits
     :rows (append
            (gemini-companion-overview-row--note session turn)
            (gemini-companion-overview-row--taken session turn files)
            (if gather
                (append (seq-difference files done #'eq)
                        (list (gemini-companion-overview-row--reviewed
                               session turn done)))
              files)))))

(defun gemini-companion-overview-row--note (session turn)
  "Return a list of the row of the note of TURN of SESSION, or nil."
  (pcase (funcall gemini-companion-overview-row-turn-note-function turn)
    (`(,text ,action ,opening)
     (list (gemini-companion-overview-row
            :key (list 'note (gemini-companion-turn-began turn)) :level 3
            :kind 'note :session session :turn turn
            :text text :action action :opening opening)))))

(defun gemini-companion-overview-row-lines-taken (file)
  "Return the lines of the user that are missing in FILE, a row, by its edits.
They are in no commit."
  (cond ((gemini-companion-overview-row-record file)
         (seq-mapcat #'gemini-companion-changes-taken
                     (gemini-companion-overview-row-left file)))
        ((eq 'written (gemini-companion-changes-outcome
                       (gemini-companion-overview-row-edit file)))
         (when-let* ((taken (gemini-companion-edit-taken
                             (gemini-companion-overview-row-edit file))))
           (hash-table-keys (cdr taken))))))

(defun gemini-companion-overview-row--taken (session turn files)
  "Return a list of the row of lines that TURN of SESSION took from the user.
FILES are the rows of its files.  Return nil without such lines."
  (when-let* ((found (seq-filter
                      (lambda (file)
                        (and (seq-some #'gemini-companion-edit-taken
                                       (gemini-companion-overview-row-edits file))
                             (gemini-companion-overview-row-lines-taken file)))
                      files)))
    (list (gemini-companion-overview-row
           :key (list 'taken (gemini-companion-turn-began turn)) :level 3
           :kind 'taken :session session :turn turn :taken found
           :edits (seq-mapcat #'gemini-companion-overview-row-edits found)
           :edit (gemini-companion-overview-row-edit (car found))
           :file (gemini-companion-overview-row-file (car found))
           :path (gemini-companion-overview-row-path (car found))))))

(defun gemini-companion-overview-row-of-turn (session turn)
  "Return the row of TURN of SESSION, which may have no edits."
  (gemini-companion-overview-row--turn
   session turn
   (seq-filter (lambda (edit) (eq turn (gemini-companion-edit-turn edit)))
               (gemini-companion-overview-row--edits))
   nil))

(defun gemini-companion-overview-row-without-marks-p (row)
  "Return non-nil if ROW has no marks although nobody has reviewed its edit.
A file that was deleted, or is not in UTF-8, has no record."
  (let ((edit (gemini-companion-overview-row-edit row)))
    (and (null (gemini-companion-overview-row-record row))
         (eq 'unreviewed (gemini-companion-edit-answer edit))
         (eq 'written (gemini-companion-changes-outcome edit)))))

(defun gemini-companion-overview-row-several-p (row)
  "Return non-nil if the edit of ROW, a file, is of several files."
  (gemini-companion-changes-several-p (gemini-companion-overview-row-edit row)))

(defun gemini-companion-overview-row--reviewed (session turn files)
  "Return the row of FILES, rows of TURN of SESSION with nothing left."
  (dolist (row files)
    (setf (gemini-companion-overview-row-level row) 4))
  (gemini-companion-overview-row
   :key (list 'reviewed (gemini-companion-turn-began turn)) :level 3
   :kind 'reviewed :session session :turn turn :rows files))

(defun gemini-companion-overview-row--files (session turn edits)
  "Return the rows of the files of EDITS, those of TURN of SESSION that have ended.
Edits that were not written, or are of several files, have a row each."
  (let ((groups nil))
    (dolist (edit edits)
      (let* ((record (gemini-companion-changes-with-edit edit))
             (written (or record
                          (gemini-companion-edit-written-p edit)
                          (eq 'unreviewed (gemini-companion-edit-answer edit))))
             (name (and written
                        (null (gemini-companion-changes-several-p edit))
                        (if record
                            (gemini-companion-changes-file-name record)
                          (gemini-companion-edit-true-name edit))))
             (group (and name (assoc name groups))))
        (if group
            (push edit (cddr group))
          (push (list name record edit) groups))))
    (mapcar (pcase-lambda (`(,name ,record . ,edits))
              (gemini-companion-overview-row--file session turn name record edits))
            (nreverse groups))))

(defun gemini-companion-overview-row--file (session turn name record edits)
  "Return the row of the file NAME of TURN of SESSION.
RECORD is that of the file, or nil.  EDITS are those of TURN, the last one
first.  NAME is nil if they were not written."
  (let* ((edit (car edits))
         (look (and record
                    (condition-case err
                        (gemini-companion-changes-look record)
                      (gemini-companion-text-not-compared
                       (gemini-companion-text-problem err)))))
         (problem (and (stringp look) look))
         (seen (and (null problem) look))
         (left (and seen (gemini-companion-changes-file-known record)))
         (decided (and seen (gemini-companion-changes-seen-decided seen))))
    (gemini-companion-overview-row
     :key (if name
              (list 'file (gemini-companion-turn-began turn) name)
            (list 'edit (gemini-companion-edit-id edit)))
     :level 3 :kind 'file :session session :turn turn
     :edit edit :edits edits :record record :seen seen :problem problem
     :file (or name (gemini-companion-edit-true-name edit))
     :path (if record
               (gemini-companion-changes-path record)
             (gemini-companion-edit-file edit))
     :left (gemini-companion-overview-row--of-turn turn left)
     :decided (gemini-companion-overview-row--of-turn turn decided))))

;;;; Comments

(defun gemini-companion-overview-row--other-comments (clis)
  "Return a list of the note of the comments that no row of CLIS displays, or nil."
  (let* ((shown (mapcar #'gemini-companion-overview-row-file
                        (seq-filter #'gemini-companion-overview-row-comments-p
                                    (gemini-companion-overview-row-flat clis))))
         (comments (seq-remove (lambda (comment)
                                 (member (gemini-companion-comment-file comment) shown))
                               (gemini-companion-comments)))
         (count (length comments)))
    (when comments
      (list (gemini-companion-overview-row
             :key '(note comments) :level 1 :kind 'note
             :text (format (ngettext "%d comment on files without changes"
                                     "%d comments on files without changes" count)
                           count)
             :action (lambda ()
                       (interactive)
                       (gemini-companion-comment-visit comments)))))))

(defun gemini-companion-overview-row-comments-p (row)
  "Return non-nil if ROW displays the comments on its file.
Each comment is displayed once, with the last edit of its file."
  (when (eq 'file (gemini-companion-overview-row-kind row))
    (let ((record (gemini-companion-overview-row-record row))
          (edit (gemini-companion-overview-row-edit row)))
      (eq edit
          (if record
              (car (gemini-companion-changes-file-edits record))
            (seq-find (lambda (other)
                        (not (gemini-companion-edit-open-p other)))
                      (gemini-companion-edits-of-file
                       (gemini-companion-edit-true-name edit))))))))

(defun gemini-companion-overview-row-answered (row)
  "Return when the comments were sent that the turn of ROW answers, or nil.
Comments are answered by the first turn that begins after them, or by the turn
in which they were sent."
  (let ((turn (gemini-companion-overview-row-turn row)))
    (seq-find
     (lambda (time)
       (and (or (null (gemini-companion-turn-ended turn))
                (< time (gemini-companion-turn-ended turn)))
            (eq turn (gemini-companion-overview-row--answer-to
                      time (gemini-companion-overview-row-session row)))))
     (gemini-companion-comment-times (gemini-companion-overview-row-session row)))))

(defun gemini-companion-overview-row--answer-to (time session)
  "Return the turn of SESSION that answers what was sent at TIME, or nil."
  (let ((turns (seq-sort-by
                #'gemini-companion-turn-began #'<
                (cl-loop for edit in (gemini-companion-edits)
                         for turn = (gemini-companion-edit-turn edit)
                         when (and (gemini-companion-session-same-p
                                    session (gemini-companion-edit-session edit))
                                   (or (null (gemini-companion-turn-ended turn))
                                       (< time (gemini-companion-turn-ended turn))))
                         collect turn))))
    (or (seq-find (lambda (turn) (<= time (gemini-companion-turn-began turn))) turns)
        (car turns))))

;;;; Counting

(defun gemini-companion-overview-row-flat (rows)
  "Return ROWS and all rows below them, in order."
  (seq-mapcat (lambda (row)
                (cons row (gemini-companion-overview-row-flat
                           (gemini-companion-overview-row-rows row))))
              rows))

(defun gemini-companion-overview-row-files (row)
  "Return the rows of files at or below ROW, in order."
  (seq-filter (lambda (row) (eq 'file (gemini-companion-overview-row-kind row)))
              (gemini-companion-overview-row-flat (list row))))

(defun gemini-companion-overview-row-count-left (row)
  "Return how many changes are left at or below ROW."
  (cl-loop for file in (gemini-companion-overview-row-files row)
           sum (length (gemini-companion-overview-row-left file))))

(defun gemini-companion-overview-row-count-postponed (row)
  "Return how many of the changes left at or below ROW are marked later."
  (cl-loop for file in (gemini-companion-overview-row-files row)
           sum (seq-count #'gemini-companion-record-postponed-p
                          (gemini-companion-overview-row-left file))))

(defun gemini-companion-overview-row-count-decided (row)
  "Return how many changes at or below ROW are kept or undone."
  (cl-loop for file in (gemini-companion-overview-row-files row)
           sum (length (gemini-companion-overview-row-decided file))))

(defun gemini-companion-overview-row-empty-p (row)
  "Return non-nil if ROW is a new file that is empty.
It has no change that could be kept or undone."
  (let ((record (gemini-companion-overview-row-record row)))
    (and record
         (null (gemini-companion-overview-row-left row))
         (null (gemini-companion-overview-row-decided row))
         (gemini-companion-changes-file-new record)
         (seq-some #'gemini-companion-edit-new-p
                   (gemini-companion-overview-row-edits row))
         (not (gemini-companion-changes-deleted-p record))
         (equal "" (gemini-companion-changes-text record)))))

(defun gemini-companion-overview-row-groups-to-undo (row)
  "Return what to undo at or below ROW, as `gemini-companion-overview-row-groups'.
If changes are left, new files that are empty belong to that."
  (when-let* ((groups (gemini-companion-overview-row-groups row)))
    (append groups
            (mapcar (lambda (file)
                      (list (gemini-companion-overview-row-record file)))
                    (seq-filter #'gemini-companion-overview-row-empty-p
                                (gemini-companion-overview-row-files row))))))

(defun gemini-companion-overview-row-groups (row)
  "Return the changes left at or below ROW, a list of (RECORD . CHANGES).
The file that was written last comes first."
  (let ((groups nil))
    (dolist (file (gemini-companion-overview-row-files row) groups)
      (when (gemini-companion-overview-row-left file)
        (let ((group (assq (gemini-companion-overview-row-record file) groups)))
          (if group
              ;; Changes of one file are undone at once, in their order.
              (setcdr group
                      (seq-sort-by #'gemini-companion-hunk-new #'<
                                   (append (cdr group)
                                           (gemini-companion-overview-row-left file))))
            (push (cons (gemini-companion-overview-row-record file)
                        (gemini-companion-overview-row-left file))
                  groups)))))))

(defun gemini-companion-overview-row-by (row)
  "Return a predicate that is satisfied by the edits of the turn of ROW.
If ROW is a CLI, the edits of all its turns satisfy the predicate."
  (let ((turn (gemini-companion-overview-row-turn row))
        (session (gemini-companion-overview-row-session row)))
    (if turn
        (lambda (edit) (eq turn (gemini-companion-edit-turn edit)))
      (lambda (edit)
        (gemini-companion-session-same-p session (gemini-companion-edit-session edit))))))

(defun gemini-companion-overview-row-asks-p (row)
  "Return non-nil if the CLI of ROW, or ROW, certainly waits for the user."
  (pcase (gemini-companion-overview-row-kind row)
    ((or 'proposal 'request)
     (gemini-companion-request-certain-p (gemini-companion-overview-row-request row)))
    ('waiting t)
    ('cli (gemini-companion-requests-certain
           (gemini-companion-overview-row-session row)))))

(provide 'gemini-companion-overview-row)
;;; gemini-companion-overview-row.el ends here
