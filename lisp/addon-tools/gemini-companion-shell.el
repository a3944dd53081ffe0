;;; gemini-companion-shell.el --- What the tools of CLIs write  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A shell command of a CLI writes files without a report.  The server takes a snapshot
;; of the work tree before and after each call of a tool, and sends the contents of the
;; files that differ.  What Emacs has saved meanwhile is the user's; the rest is
;; recorded as written without review, by the command.
;;
;; The server asks which files are shared before it stores them.
;;
;; Known issues:
;;
;; - What another program writes while a command runs, such as another editor, counts as
;;   written by the command.  No test
;; - Without the text of a file before a command, the file is only named.
;;   Test: `gemini-companion-shell-files-with-an-unknown-past-are-only-named'
;; - A change of too many lines has no marks.
;;   Test: `gemini-companion-shell-change-that-is-too-large-has-no-marks'
;; - Git knows only whether a file can be executed, and the server which files not all can
;;   read: another deleted file that comes back has the modes of a new one.
;;   Test: `gemini-companion-shell-deleted-file-has-its-modes-or-those-of-new-files'

;;; Code:

(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-hunk)
(require 'gemini-companion-idle)
(require 'gemini-companion-lines)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-notify)
(require 'gemini-companion-overview-draw)
(require 'gemini-companion-part)
(require 'gemini-companion-privacy)
(require 'gemini-companion-reported)
(require 'gemini-companion-revert)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-slices)
(require 'gemini-companion-state)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-unmarked)
(require 'map)
(require 'subr-x) ; in Emacs 28 for `hash-table-keys'

;;;; State

(defconst gemini-companion-shell-most-texts 20
  "Maximum number of files of which the server sends the contents.")

(defconst gemini-companion-shell--most-bytes 1000000
  "Size of the changed text of a file above which its changes are not marked.")

(defconst gemini-companion-shell--most-lines 20000
  "Number of changed lines of a file above which its changes are not marked.")

(defvar gemini-companion-shell--open nil
  "Non-nil while a tool of a CLI is running.")

(cl-defstruct (gemini-companion-shell--write
               (:noinline t)
               (:constructor gemini-companion-shell--write-make)
               (:copier nil))
  "A write of Emacs, or of a CLI that has reported it, while tools are running.
NUMBER is that of the write, and FILE a true name.  It had the bytes BEFORE, and
then AFTER: nil without a file, and `unknown' if they are too many to be kept,
or a CLI has not told them.  If REPORTED, the file was written some time before
the write got its number.  BLOB is the name of AFTER in git, once it is known."
  number file before after reported (blob nil))

(defvar gemini-companion-shell--number 0
  "The number of the last write of Emacs while a tool was running.")

(defvar gemini-companion-shell--writes nil
  "The writes of which the server may have a report, the last one first.")

(defvar gemini-companion-shell--writing nil
  "What files had that are being written, an alist from true names to bytes.")

(defvar gemini-companion-shell--problems nil
  "Why what commands write is not recorded, an alist from roots.
Each value is a list of a phrase, a remedy, an imperative or \"\", and the
sessions to whose commands that has happened.")

;;;; Shared files

(defun gemini-companion-shell-shared (files seconds answer)
  "Call ANSWER with which of FILES, a vector of absolute names, are shared.
The value is a plist of `:shared' and `:hidden', lists of indices in FILES.  The
files are checked in slices; those for which there was no time in SECONDS are in
neither list."
  (let ((index 0)
        (shared nil)
        (hidden nil))
    (gemini-companion-slices-later
     (append files nil)
     (lambda (file)
       (if (or (and (stringp trash-directory)
                    (gemini-companion-text-in-directory-p
                     file (expand-file-name trash-directory)))
               (gemini-companion-privacy-name-hidden-p file))
           (push index hidden)
         (push index shared))
       (setq index (1+ index)))
     (lambda () (funcall answer (list :shared shared :hidden hidden)))
     (+ (float-time) seconds))))

;;;; What Emacs writes

;; The server asks for the number of the last write before it begins a snapshot, and when
;; the snapshot is complete.  So a write is between two snapshots, or it was made while
;; one was taken; then the bytes tell whether the snapshot has it.

(defun gemini-companion-shell-called (open)
  "Record whether a tool is running: OPEN is non-nil if one is."
  (setq gemini-companion-shell--open open)
  (unless open
    (setq gemini-companion-shell--writing nil)))

(defun gemini-companion-shell-saved (since)
  "Return the number of the last write, and forget those until SINCE.
The server has reported what was written until then."
  (setq gemini-companion-shell--writes
        (seq-take-while (lambda (write)
                          (< since (gemini-companion-shell--write-number write)))
                        gemini-companion-shell--writes))
  gemini-companion-shell--number)

(defun gemini-companion-shell--add (file before after &optional reported)
  "Record that FILE, a true name, had BEFORE, and has AFTER by Emacs.
Both are as in `gemini-companion-shell--write', as is REPORTED."
  (push (gemini-companion-shell--write-make
         :number (cl-incf gemini-companion-shell--number)
         :file file :before before :after after :reported reported)
        gemini-companion-shell--writes))

;; Emacs also writes files when the user undoes a change.
(defun gemini-companion-shell--follow-writing (file when)
  "Record what FILE has as Emacs writes it, while a tool is running.
WHEN is `before' or `after' the write.  A save that fails has no end."
  (when gemini-companion-shell--open
    (let ((name (gemini-companion-text-true-name file))
          (bytes (gemini-companion-shell--bytes file)))
      (pcase when
        ('before
         (setf (alist-get name gemini-companion-shell--writing nil nil #'equal) bytes))
        ('after
         (gemini-companion-shell--add
          name
          (if-let* ((began (assoc name gemini-companion-shell--writing)))
              (cdr began)
            'unknown)
          bytes)
         (setf (alist-get name gemini-companion-shell--writing nil 'remove #'equal)
               nil))))))

(defun gemini-companion-shell--bytes (file)
  "Return the bytes of FILE, nil without one, or `unknown' if they are too many."
  (cond ((not (file-exists-p file)) nil)
        ((gemini-companion-edit-texts-keepable-p file)
         (condition-case nil
             (gemini-companion-text-bytes file)
           (file-error 'unknown)))
        (t 'unknown)))

(defun gemini-companion-shell--before-save ()
  "Record what the file of this buffer has before a save."
  (when buffer-file-name
    (gemini-companion-shell--follow-writing buffer-file-name 'before)))

(defun gemini-companion-shell--after-save ()
  "Record what Emacs has saved."
  (when buffer-file-name
    (gemini-companion-shell--follow-writing buffer-file-name 'after)))

(defun gemini-companion-shell--edited (edit event)
  "Record that EDIT was written, if that is the EVENT, as a tool has reported.
Another tool may be running: it has not written that."
  (when (and gemini-companion-shell--open
             (eq event 'written)
             (gemini-companion-edit-reported edit))
    (gemini-companion-shell--add
     (gemini-companion-edit-true-name edit)
     (if (gemini-companion-edit-known-p edit)
         (gemini-companion-edit-bytes-before edit)
       'unknown)
     (gemini-companion-shell--bytes (gemini-companion-edit-file edit))
     'reported)))

(defun gemini-companion-shell--writes-between (since until writes)
  "Return those of WRITES whose numbers are above SINCE, and at most UNTIL."
  (seq-filter (lambda (write)
                (< since (gemini-companion-shell--write-number write) (1+ until)))
              writes))

(defun gemini-companion-shell--steps (before after writes saved)
  "Return what tools have made of a file, a list of (BEFORE . AFTER) in order.
It had BEFORE, and then AFTER; both are bytes, or nil without a file.  What
Emacs has written of it in between, WRITES, is left out.  SAVED has the numbers
of the last write as the first snapshot began, and when it was complete, and
those of the second one.  Return `unknown' if it is not known which of WRITES a
snapshot has, or what they have made."
  (pcase-let* ((`(,first ,complete ,began ,last) saved)
               (between (lambda (since until)
                          (gemini-companion-shell--writes-between since until writes)))
               (early (gemini-companion-shell--writes-after
                       before (funcall between first complete)))
               (late (gemini-companion-shell--writes-before
                      after (funcall between began last))))
    (if (memq 'unknown (list early late))
        'unknown
      (let* ((writes (append early (funcall between complete began) late))
             (had (cons before (mapcar #'gemini-companion-shell--write-after writes)))
             (steps (append (cl-mapcar #'gemini-companion-shell--step-until had writes)
                            (list (cons (car (last had)) after)))))
        (if (seq-some (pcase-lambda (`(,old . ,new)) (memq 'unknown (list old new)))
                      steps)
            'unknown
          (seq-remove (pcase-lambda (`(,old . ,new)) (equal old new)) steps))))))

(defun gemini-companion-shell--step-until (bytes write)
  "Return what tools have made of a file with BYTES before WRITE, a cons.
Nothing is known of what precedes a report of other bytes without the previous
ones, and nothing precedes a report of BYTES."
  (pcase-let (((cl-struct gemini-companion-shell--write before after reported) write))
    (cons bytes
          (if (and reported (or (eq 'unknown before) (equal after bytes)))
              bytes
            before))))

(defun gemini-companion-shell--writes-after (bytes writes)
  "Return those of WRITES of a file that a snapshot, with BYTES, has not.
They were made while it was taken.  Return `unknown' if that is not known."
  (let ((seen (seq-position (reverse (mapcar #'gemini-companion-shell--write-after
                                             writes))
                            bytes)))
    (cond (seen (last writes seen))
          ((or (null writes)
               (equal bytes (gemini-companion-shell--write-before (car writes))))
           writes)
          (t 'unknown))))

(defun gemini-companion-shell--writes-before (bytes writes)
  "Return those of WRITES of a file that a snapshot, with BYTES, has.
They were made while it was taken.  Return `unknown' if that is not known."
  (let ((unseen (seq-position (mapcar #'gemini-companion-shell--write-before writes)
                              bytes)))
    (cond (unseen (seq-take writes unseen))
          ((or (null writes)
               (equal bytes (gemini-companion-shell--write-after (car (last writes)))))
           writes)
          (t 'unknown))))

;;;; Refused calls

(defun gemini-companion-shell--follow-state (session state)
  "If STATE is `ready', tell the server that the CLI of SESSION waits for a prompt.
Some CLIs announce a command before they ask the user, who may refuse it."
  (when (and gemini-companion-shell--open
             (eq state 'ready))
    (gemini-companion-server-call 'cli-ready
                                  (list (gemini-companion-session-pid session)))))

;;;; Records

(defun gemini-companion-shell-wrote (session facts changes answer)
  "Record what SESSION has written: CHANGES, a vector; then call ANSWER with nil.
Each one is a vector [NAME CONTENT-BEFORE CONTENT-AFTER MODES-BEFORE MODES-AFTER
BEFORE AFTER]: the name relative to the `:root' of FACTS, two files with the
contents, which are read and deleted, the modes as in git, and the names of the
contents in git.  A content is nil without a file, and `unknown' if it is lost.
If the changes are many, no contents are sent.

Texts are recorded, each as an edit, in slices.  What else was written is one
edit."
  (let ((many (< gemini-companion-shell-most-texts (length changes)))
        ;; Later ones are of no interest, and these may be forgotten before the end.
        (writes (pcase (plist-get facts :saved)
                  (`(,first ,_ ,_ ,last)
                   (nreverse (gemini-companion-shell--writes-between
                              first last gemini-companion-shell--writes)))))
        (taken (gemini-companion-shell--taken facts changes))
        (edits (gemini-companion-edits))
        (unmarked nil)
        (lost nil))
    (gemini-companion-slices-later
     (append changes nil)
     (lambda (change)
       (gemini-companion-log-guarded "Recording what a command wrote"
         (pcase-let ((`[,name ,_ ,_ ,old-modes ,new-modes ,old ,new] change))
           (pcase (gemini-companion-shell--record session facts change many writes
                                                  (alist-get change taken nil nil #'eq))
             ('lost (push name lost))
             ('unmarked (push (gemini-companion-unmarked-entry name old new old-modes
                                                               new-modes)
                              unmarked))
             ('modes (push (gemini-companion-unmarked-entry name nil nil old-modes
                                                            new-modes)
                           unmarked))))))
     (lambda ()
       (gemini-companion-shell--record-unmarked session facts (nreverse unmarked))
       (gemini-companion-shell--announce session facts (length changes) lost)
       (gemini-companion-shell--warn
        session facts (seq-difference (gemini-companion-edits) edits #'eq))
       (gemini-companion-slices-later
        (gemini-companion-shell--visited facts changes)
        (lambda (file)
          (gemini-companion-log-guarded "Reverting what a command wrote"
            (gemini-companion-revert file)))
        (apply-partially answer nil))))))

(defun gemini-companion-shell--made-p (blob write)
  "Return non-nil if WRITE has made a content that has the name BLOB in git."
  (equal blob
         (or (gemini-companion-shell--write-blob write)
             (setf (gemini-companion-shell--write-blob write)
                   (let ((after (gemini-companion-shell--write-after write)))
                     (if (stringp after)
                         (secure-hash (if (length= blob 64) 'sha256 'sha1)
                                      (concat (format "blob %d\0" (length after)) after))
                       'none))))))

(defun gemini-companion-shell--record (session facts change many writes taken)
  "Record CHANGE of SESSION, see `gemini-companion-shell-wrote', with FACTS.
If MANY is non-nil, its contents were not sent.  WRITES are those of Emacs
meanwhile, and TAKEN is as in `gemini-companion-shell--taken'.  Return nil if
the change is recorded, or is the user's; `lost' if it cannot be; `unmarked' if
it has no marks; or `modes' if the new modes of the file have none."
  (pcase-let* ((`[,name ,before ,after ,old-modes ,new-modes ,_ ,new] change)
               (file (gemini-companion-names-below (plist-get facts :root) name))
               (true-name (gemini-companion-text-true-name file))
               (before (gemini-companion-shell--content before))
               (after (gemini-companion-shell--content after))
               ;; A command may have moved a file at which no snapshot has looked, also to
               ;; the place of another one.
               (moved (seq-some (apply-partially #'gemini-companion-shell--made-p new)
                                writes))
               (writes (seq-filter (lambda (write)
                                     (equal true-name
                                            (gemini-companion-shell--write-file write)))
                                   writes)))
    (cond
     ((or (memq 'unknown (list before after))
          (and moved (null writes)))
      'lost)
     ((or many
          (not (or (gemini-companion-shell--markable-p before after old-modes new-modes)
                   (and (equal "" before)
                        (null after)
                        (gemini-companion-shell--of-turn-p session true-name))))
          ;; A link in the place of its directory leads to another file.
          (and (null after)
               (not (equal true-name (gemini-companion-names-below
                                      (file-truename (plist-get facts :root)) name)))))
      (if writes 'lost 'unmarked))
     (t
      (pcase (gemini-companion-shell--steps before after writes (plist-get facts :saved))
        ('unknown 'lost)
        (steps
         (pcase-dolist (`(,old . ,new) steps)
           (gemini-companion-reported-bytes
            session file old new (plist-get facts :command)
            :taken (and taken
                        (gemini-companion-shell--taken-by old new taken writes true-name))
            :modes (or (cadr (assoc name (plist-get facts :private)))
                       ;; Git knows only whether a file can be executed.
                       (logand (if (= old-modes #o100755) #o777 #o666)
                               (default-file-modes)))
            :made (mapcar (lambda (name)
                            (gemini-companion-text-true-name
                             (gemini-companion-names-below (plist-get facts :root)
                                                           name)))
                          (plist-get facts :made))))
         (unless (or (= old-modes new-modes) (memq 0 (list old-modes new-modes)))
           'modes)))))))

(defun gemini-companion-shell--markable-p (before after old-modes new-modes)
  "Return non-nil if what has changed from BEFORE to AFTER can be marked.
Both are bytes, or nil without a file; OLD-MODES and NEW-MODES are as in git.
That is so for regular files with texts that differ, but not too much.  One
that was deleted has lines."
  (and (not (equal before after))
       (not (and (equal "" before) (null after)))
       (seq-every-p (lambda (bytes) (not (string-search "\0" (or bytes ""))))
                    (list before after))
       (seq-every-p (lambda (modes) (memq modes '(#o100644 #o100755 0)))
                    (list old-modes new-modes))
       (not (gemini-companion-shell--too-large-p (or before "") (or after "")))))

(defun gemini-companion-shell--of-turn-p (session true-name)
  "Return non-nil if the turn of SESSION has made the file TRUE-NAME, now empty."
  (let ((edits (seq-take-while
                (lambda (edit)
                  (eq (gemini-companion-session-turn session)
                      (gemini-companion-edit-turn edit)))
                (gemini-companion-edits-of-file true-name))))
    (and edits
         (equal "" (gemini-companion-edit-after (car edits)))
         (gemini-companion-edit-new-p (car (last edits))))))

(defun gemini-companion-shell--record-unmarked (session facts files)
  "Record that SESSION has written FILES, `gemini-companion-unmarked-entry's.
FACTS are those of `gemini-companion-shell-wrote'."
  (pcase-let (((map :root :snapshots :environ :command (:left_out left-out) :made)
               facts)
              (others (gemini-companion-shell--others facts)))
    (when (or files left-out others)
      (gemini-companion-unmarked-record
       (gemini-companion-unmarked-make root files snapshots environ left-out others
                                       made session command
                                       (plist-get facts :taken_count))))))

(defun gemini-companion-shell--others (facts)
  "Return the files in FACTS of which it is not known what they had before.
The value is as in `gemini-companion-unmarked-others'."
  (cl-loop for (kind names count) in '((moved :moved :moved_count)
                                       (unknown :unknown :unknown_count)
                                       (gone :gone :gone_count)
                                       (repositories :repositories
                                                     :repositories_count))
           for number = (plist-get facts count)
           unless (memq number '(nil 0))
           collect (cons kind (cons number (plist-get facts names)))))

(defun gemini-companion-shell--too-large-p (old new)
  "Return non-nil if OLD and NEW, bytes or texts, differ too much to be marked.
Recording that would block Emacs for seconds."
  (when (or (< gemini-companion-shell--most-bytes (max (length old) (length new)))
            (seq-some #'gemini-companion-shell--many-lines-p (list old new)))
    (condition-case nil
        (let ((ranges (gemini-companion-text-diff (list old new))))
          (or (gemini-companion-shell--above-limit-p
               old (mapcar (lambda (range) (seq-take range 2)) ranges))
              (gemini-companion-shell--above-limit-p
               new (mapcar (lambda (range) (seq-drop range 2)) ranges))))
      (gemini-companion-text-not-compared t))))

(defun gemini-companion-shell--many-lines-p (text)
  "Return non-nil if TEXT has more lines than are marked."
  (let ((count 0)
        (at 0))
    (while (and (<= count gemini-companion-shell--most-lines)
                (setq at (string-search "\n" text at)))
      (cl-incf count)
      (cl-incf at))
    (< gemini-companion-shell--most-lines count)))

(defun gemini-companion-shell--above-limit-p (text ranges)
  "Return non-nil if the lines of TEXT in RANGES are more than is marked.
RANGES are lists (INDEX END), in order."
  (let ((lines (gemini-companion-hunk-split text))
        (count 0)
        (bytes 0))
    (pcase-dolist (`(,from ,to) ranges)
      (cl-incf count (- to from))
      (cl-loop for n from from below to
               do (cl-incf bytes (length (aref lines n)))))
    (or (< gemini-companion-shell--most-lines count)
        (< gemini-companion-shell--most-bytes bytes))))

;;;; Lines of the user

(defun gemini-companion-shell--taken (facts changes)
  "Return what CHANGES took of the user by FACTS, an alist from some of them.
Each value is a cons of t if a commit has the file, and of the bytes of the
lines; those of CLIs are among them."
  (mapcar (pcase-lambda (`(,index ,tracked ,file))
            (let ((bytes (gemini-companion-shell--content file)))
              (cons (aref changes index)
                    (cons tracked (if (stringp bytes) bytes "")))))
          (plist-get facts :taken)))

(defun gemini-companion-shell--lines (bytes &optional without)
  "Return a table of the lines of BYTES, or of a text, without their ends.
Leave out those that WITHOUT has, a table."
  (let ((table (make-hash-table :test 'equal)))
    (seq-doseq (line (gemini-companion-lines-split (decode-coding-string bytes 'utf-8)))
      (let ((line (string-remove-suffix "\n" line)))
        (unless (and without (gethash line without))
          (puthash line t table))))
    table))

(defun gemini-companion-shell--taken-by (old new taken writes file)
  "Return those of TAKEN that OLD has and NEW has not, both bytes, or nil.
The value is as `gemini-companion-edit-taken'.
Lines that the user has saved meanwhile by WRITES count as well, but not those
that an edit of a CLI has written to FILE, a true name."
  (let* ((tables (cons (gemini-companion-shell--lines (cdr taken))
                       (mapcar #'gemini-companion-shell--saved-by writes)))
         (now (gemini-companion-shell--lines (or new "")))
         (of-clis (mapcar #'gemini-companion-shell--written-by
                          (gemini-companion-edits-of-file file)))
         (in-p (lambda (line tables)
                 (seq-some (apply-partially #'gethash line) tables)))
         (lines (gemini-companion-shell--lines (or old ""))))
    (dolist (line (hash-table-keys lines))
      (when (or (string-blank-p line)
                (gethash line now)
                (funcall in-p line of-clis)
                (not (funcall in-p line tables)))
        (remhash line lines)))
    (unless (hash-table-empty-p lines)
      (cons (car taken) lines))))

(defun gemini-companion-shell--saved-by (write)
  "Return a table of the lines that the user has added by WRITE."
  (pcase-let (((cl-struct gemini-companion-shell--write before after reported) write))
    (if (or reported (not (stringp after)) (eq 'unknown before))
        (make-hash-table)
      (gemini-companion-shell--lines after
                                     (gemini-companion-shell--lines (or before ""))))))

(defun gemini-companion-shell--written-by (edit)
  "Return a table of the lines that the CLI of EDIT has written."
  (let ((after (gemini-companion-edit-after edit)))
    (if (and after (gemini-companion-edit-known-p edit))
        (gemini-companion-shell--lines
         after (gemini-companion-shell--lines
                (or (gemini-companion-edit-texts-before edit) "")))
      (make-hash-table))))

(defun gemini-companion-shell--warn (session facts edits)
  "Tell the user if SESSION took lines in no commit, by FACTS and new EDITS."
  (let* ((taken (delq nil (mapcar #'gemini-companion-edit-taken edits)))
         (files (or (plist-get facts :taken_count) 0)))
    (when (or taken (< 0 files))
      (gemini-companion-notify-warn
       session
       (format "%s (%s) %s: %s"
               (gemini-companion-session-title session)
               (gemini-companion-edit-command-text (plist-get facts :command))
               (if taken
                   (gemini-companion-overview-draw-taken
                    (apply #'+ (mapcar #'hash-table-count (mapcar #'cdr taken)))
                    (seq-every-p #'car taken))
                 (gemini-companion-unmarked-uncommitted-text files))
               (substitute-command-keys "\\[gemini-companion-turn-page]"))))))

(defun gemini-companion-shell--visited (facts changes)
  "Return the files of CHANGES that buffers visit, below the root of FACTS."
  (let ((names (make-hash-table :test 'equal)))
    (seq-doseq (change changes)
      (puthash (gemini-companion-text-true-name
                (gemini-companion-names-below (plist-get facts :root)
                                              (aref change 0)))
               t names))
    (cl-loop for buffer in (buffer-list)
             for file = (buffer-local-value 'buffer-file-truename buffer)
             when (and file (gethash (expand-file-name file) names))
             collect (buffer-file-name buffer))))

(defun gemini-companion-shell--content (content)
  "Return the bytes in the file CONTENT, which is deleted, or nil or `unknown'."
  (if (not (stringp content))
      content
    (unwind-protect
        (condition-case nil
            (gemini-companion-text-bytes content)
          (file-error 'unknown))
      (ignore-error file-error
        (delete-file content)))))

(defun gemini-companion-shell--announce (session facts count lost)
  "Display what SESSION has written that is not recorded, by FACTS.
COUNT is the number of files whose names have arrived, and LOST are names of
files that are not recorded, relative to the root."
  (when-let* ((text (gemini-companion-shell--unrecorded session facts count lost)))
    (gemini-companion-idle-announce
     (format "%s (%s): %s"
             (gemini-companion-session-title session)
             (gemini-companion-edit-command-text (plist-get facts :command))
             text))))

(defun gemini-companion-shell--new-problem (session facts)
  "Record the `:problem' in FACTS for their `:root', until it is `:over'.
Return it if SESSION had none there, or another one."
  (pcase-let* (((map :root :problem :remedy :over) facts)
               (`(,previous ,_ ,told)
                (cdr (assoc root gemini-companion-shell--problems)))
               (told (and (equal problem previous) told)))
    (cond (over
           (setf (alist-get root gemini-companion-shell--problems nil 'remove #'equal)
                 nil)
           nil)
          ((not (member problem '(nil "")))
           (setf (alist-get root gemini-companion-shell--problems nil nil #'equal)
                 (list problem remedy (cons session (remq session told))))
           (and (not (memq session told)) problem)))))

(defun gemini-companion-shell--unrecorded (session facts count lost)
  "Return which writes of SESSION are not recorded, or nil.
For FACTS, COUNT and LOST, see `gemini-companion-shell--announce'."
  (pcase-let (((map (:count written) (:by_git by-git) :unseen :remedy :odd :meanwhile
                    (:meanwhile_count more))
               facts)
              (problem (gemini-companion-shell--new-problem session facts)))
    (cond (problem
           (concat (format "files it wrote are not recorded: %s"
                           (gemini-companion-text-escaped-line problem 200))
                   (and meanwhile
                        (format "; written since: %s%s"
                                (mapconcat #'gemini-companion-names-shown meanwhile ", ")
                                (if (< (length meanwhile) more)
                                    (format " and %d more" (- more (length meanwhile)))
                                  "")))
                   (and (not (member remedy '(nil "")))
                        (concat "; " (gemini-companion-text-escaped-line remedy 200)))))
          ((< count written)
           (format "%d files written, too many to record" written))
          ((< 0 unseen)
           (format (ngettext "%d file not recorded, as Emacs was busy"
                             "%d files not recorded, as Emacs was busy"
                             unseen)
                   unseen))
          (lost
           (format "not recorded, as you have written it at once, or its text is lost: %s"
                   (mapconcat #'gemini-companion-names-shown lost ", ")))
          (odd
           (format "not recorded, as the name is not in UTF-8: %s"
                   (mapconcat #'gemini-companion-names-shown odd ", ")))
          ((< 0 by-git)
           (format (ngettext "%d file changed by git to another commit"
                             "%d files changed by git to another commit"
                             by-git)
                   by-git)))))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'shell)))
  "Record what Emacs writes while a tool of a CLI is running."
  '((before-save-hook gemini-companion-shell--before-save 100)
    (after-save-hook gemini-companion-shell--after-save -100)
    (gemini-companion-watch-writing-functions gemini-companion-shell--follow-writing 0)
    (gemini-companion-state-functions gemini-companion-shell--follow-state)
    (gemini-companion-edit-file-functions gemini-companion-shell--edited)))

(cl-defmethod gemini-companion-part-findings ((_part (eql 'shell)) _directory)
  "Return a finding for each project in which what commands write is not seen."
  (mapcar (pcase-lambda (`(,root ,problem ,remedy))
            `("Shell commands" note
              ,(format "What shell commands write in %s is not recorded: %s"
                       (gemini-companion-names-absolute root) problem)
              ,(if (member remedy '(nil ""))
                   "It is recorded again once that is over."
                 (concat (upcase (substring remedy 0 1)) (substring remedy 1) "."))))
          gemini-companion-shell--problems))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'shell)))
  "Forget what Emacs has saved."
  (setq gemini-companion-shell--problems nil
        gemini-companion-shell--writes nil)
  (gemini-companion-shell-called nil))

(provide 'gemini-companion-shell)
;;; gemini-companion-shell.el ends here
