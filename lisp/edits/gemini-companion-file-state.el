;;; gemini-companion-file-state.el --- What became of the file of an edit  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The file state of an edit is nil until it is known whether its CLI has written
;; the file; a later report may move it again.  Only this file sets it.
;;
;; What another program than this Emacs has written to a file is attributed to at
;; most one edit by its text.  A program may format what a CLI has written, and
;; Qwen Code merges two edits of a file, so the file may have another text after an
;; accepted edit was written: then it must have changed where that edit changes it.
;;
;; gemini-companion-written.el awaits a write, and asks this file whether it was the
;; expected one.  A linked CLI reports its writes, also those without a review.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-hunk)
(require 'gemini-companion-lines)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-watch)
(require 'gemini-companion-written)

;;;; State

(cl-defstruct (gemini-companion-file-state--difference
               (:noinline t)
               (:constructor gemini-companion-file-state--difference (hunk lines))
               (:copier nil))
  "A HUNK of two texts, and its LINES in the second one, a list of strings."
  hunk lines)

;;;; Awaiting a write

(defun gemini-companion-file-state-await (edit decision over)
  "Await the write of EDIT by its CLI after the DECISION about it.
OVER is nil, or the text that Emacs writes over the one that the CLI writes."
  ;; A rejected edit may be written, too: a yes in the terminal may cross the
  ;; answer.
  (setf (gemini-companion-edit-awaited edit)
        (gemini-companion-written-await
         (gemini-companion-edit-file edit)
         (apply-partially #'gemini-companion-file-state--follow edit)
         :keys (and (not (eq decision 'automatic)) num-input-keys)
         :pending (gemini-companion-file-state--others-open-p edit)
         :over (and over (cons (gemini-companion-edit-proposed edit) over))
         :lasts (lambda () (not (gemini-companion-file-state--past-p edit))))))

(defun gemini-companion-file-state-forget (edit)
  "Await no write of EDIT any more, as if it had not ended."
  (gemini-companion-watch-stop
   (gemini-companion-written-watch (gemini-companion-edit-awaited edit)))
  (setf (gemini-companion-edit-awaited edit) nil))

(defun gemini-companion-file-state--others-open-p (edit)
  "Return non-nil if another edit of EDIT's turn awaits an answer."
  (seq-some (lambda (other)
              (and (not (eq edit other))
                   (eq (gemini-companion-edit-turn edit)
                       (gemini-companion-edit-turn other))))
            (gemini-companion-edits-open)))

(defun gemini-companion-file-state-follow-answers (request event)
  "Note for all edits whether their CLIs can have written them, after EVENT.
A CLI cannot while another edit of the turn is open: Qwen Code writes the
files of an answer once all its edits have ended.  But once an edit of the
turn that ended later was written, what is open in it is of another answer.
A turn that is not reported may last as long as the session; without this,
each further review in it would put off the report about an edit.

For REQUEST and EVENT, see `gemini-companion-request-functions' and
`gemini-companion-edit-functions'.  Each awaited file is checked twice a
second, and if this was found out then, the cost of the checks would grow
with the square of the number of edits."
  (when (and (gemini-companion-edit-p request)
             (memq event '(opened closed written)))
    (let ((open (make-hash-table :test #'eq))
          (written (make-hash-table :test #'eq)))
      (dolist (edit (gemini-companion-edits))
        (let ((turn (gemini-companion-edit-turn edit)))
          (cond ((gemini-companion-edit-open-p edit)
                 (puthash turn t open))
                ((eq 'written (gemini-companion-edit-file-state edit))
                 (puthash turn
                          (max (gemini-companion-edit-since edit)
                               (gethash turn written 0))
                          written)))))
      (dolist (edit (gemini-companion-edits))
        (when-let* ((awaited (gemini-companion-edit-awaited edit))
                    (turn (gemini-companion-edit-turn edit)))
          (gemini-companion-written-set-pending
           awaited
           :pending (gethash turn open)
           :overtaken (< (gemini-companion-edit-since edit)
                         (gethash turn written 0))))))))

(defun gemini-companion-file-state--past-p (edit)
  "Return non-nil if the turn of EDIT has ended, as far as that is known."
  (when-let* ((turn (gemini-companion-session-turn
                     (gemini-companion-edit-session edit))))
    (if (eq turn (gemini-companion-edit-turn edit))
        (and (gemini-companion-turn-ended turn)
             ;; A turn whose end is only supposed may go on, as after a new
             ;; connection.
             (not (gemini-companion-turn-cut turn)))
      (< (gemini-companion-edit-since edit) (gemini-companion-turn-began turn)))))

(defun gemini-companion-file-state--look (edit)
  "Notice at once whether the file of EDIT, which has ended, was written."
  (let ((watch (gemini-companion-written-watch
                (gemini-companion-edit-awaited edit))))
    ;; A large file counts as written if it is as at the previous check.
    (dotimes (_ 2)
      (when (gemini-companion-watch-live-p watch)
        (gemini-companion-watch-check watch 'look)))))

(defun gemini-companion-file-state-end-others (edit)
  "Notice what became of the edits of EDIT's file that have ended.
Emacs writes no accepted text over that file for them any more: what comes
now may be EDIT."
  (dolist (other (gemini-companion-edit-others-of-file edit))
    (let ((awaited (gemini-companion-edit-awaited other)))
      (when (gemini-companion-written-live-p awaited)
        (gemini-companion-file-state--look other)
        (gemini-companion-written-end-over awaited)))))

(defun gemini-companion-file-state-awaited-p (edit)
  "Return non-nil if EDIT was accepted, and its CLI is still to write its file.
The file is looked at before that, so the file state may change."
  (when (and (gemini-companion-edit-accepted-p edit)
             (gemini-companion-edit-awaited edit))
    (gemini-companion-file-state--look edit)
    (and (null (gemini-companion-edit-file-state edit))
         (gemini-companion-written-live-p (gemini-companion-edit-awaited edit)))))

(defun gemini-companion-file-state-follows-p (edit)
  "Return non-nil if an edit of EDIT's file from its turn is not written yet.
Qwen Code writes the files of an answer at its end, and merges two edits of
a file only if the user has not changed the second one."
  (and (gemini-companion-edit-open-p edit)
       (seq-some (lambda (other)
                   (and (gemini-companion-edit-accepted-p other)
                        (null (gemini-companion-edit-file-state other))
                        (eq (gemini-companion-edit-turn edit)
                            (gemini-companion-edit-turn other))
                        (gemini-companion-written-live-p
                         (gemini-companion-edit-awaited other))))
                 (gemini-companion-edit-others-of-file edit))))

;;;; What was written

(defun gemini-companion-file-state--follow (edit event)
  "Record what has become of the file of EDIT, which has ended.
EVENT is `changed' if another program has written the file, or `expired' if
none has in time.  For the value, see REPORT in `gemini-companion-written'."
  (pcase event
    ('changed (gemini-companion-file-state--check edit))
    ('expired (gemini-companion-file-state--expire edit))))

(defun gemini-companion-file-state--check (edit)
  "Record whether another program's write of the file of EDIT is that edit.
Return `found' if it is, `likely' if it may be, or nil."
  ;; What was refused, and is written in the next turn, is another edit.
  (when-let* (((or (gemini-companion-edit-accepted-p edit)
                   (gemini-companion-file-state--in-turn-p
                    edit (gemini-companion-edit-session edit))))
              (bytes (or (gemini-companion-edit-texts-bytes edit) 'unknown))
              (how (gemini-companion-file-state--attributed edit bytes)))
    ;; The user may have reverted the edit before its write was noticed.
    (unless (and (eq 'likely (car how)) (gemini-companion-edit-file-state edit))
      (gemini-companion-file-state--set-written edit (cdr how))
      (gemini-companion-edit-notify edit 'written))
    (car how)))

(defun gemini-companion-file-state--in-turn-p (edit session)
  "Return non-nil if EDIT may be of the current turn of SESSION.
It may if the CLI has not reported that turn."
  (let ((turn (gemini-companion-session-turn session)))
    (or (null turn)
        (not (gemini-companion-turn-reported turn))
        (eq turn (gemini-companion-edit-turn edit)))))

(defun gemini-companion-file-state--set-written (edit text)
  "Record that EDIT was written with TEXT, which is one of its texts.
If that is not the text that was answered, its CLI has ignored the changes of
the user, which are kept, and that is reported."
  (let ((answered (gemini-companion-edit-after edit)))
    (if (equal text answered)
        (gemini-companion-edit-drop-kept edit text)
      (when (gemini-companion-edit-texts-own-p edit answered)
        (gemini-companion-edit-keep
         edit answered "%s was written without your edits; %s shows them")))
    (gemini-companion-edit-texts-correct-coding edit text)
    (setf (gemini-companion-edit-after edit) text
          (gemini-companion-edit-file-state edit) 'written)
    ;; The user may have converted the file by the time of a later look.
    (unless (gemini-companion-edit-format edit)
      (gemini-companion-edit-texts-record-format edit))))

(defun gemini-companion-file-state-set-written (edit)
  "Record that Emacs has written the file of EDIT with its accepted text."
  (gemini-companion-file-state--set-written edit (gemini-companion-edit-after edit))
  (gemini-companion-edit-notify edit 'written))

(defun gemini-companion-file-state-note-early-write (edit)
  "Record whether the CLI of EDIT had written the file when it was refused.
Qwen Code writes it before it closes the review.  Return non-nil if it had."
  (when-let* (((gemini-companion-watch-written-p (gemini-companion-edit-watch edit)))
              (bytes (gemini-companion-edit-texts-bytes edit))
              (how (gemini-companion-file-state--attributed edit bytes)))
    (gemini-companion-file-state--set-written edit (cdr how))
    t))

(defun gemini-companion-file-state--expire (edit)
  "Record that the CLI of EDIT has not written its file, if that is so."
  (let ((accepted (gemini-companion-edit-accepted-p edit)))
    (unless (or (gemini-companion-edit-file-state edit)
                (and accepted (gemini-companion-file-state--superseded-p edit)))
      ;; A user who interrupts Gemini CLI leaves a review that it ignores.
      (when accepted
        (gemini-companion-edit-keep
         edit (gemini-companion-edit-after edit)
         "%s was accepted but was not written; %s shows the text"))
      (gemini-companion-file-state-set-unwritten edit))))

(defun gemini-companion-file-state--superseded-p (edit)
  "Return non-nil if EDIT may have been written, and written over at once.
Its CLI has then written a later edit of the same turn, or another CLI the
same text, and the file has changed where EDIT changes it, by no save."
  (and (gemini-companion-written-alone-p (gemini-companion-edit-awaited edit))
       (seq-some
        (lambda (other)
          (and (gemini-companion-file-state--found-p other)
               (or (and (eq (gemini-companion-edit-turn edit)
                            (gemini-companion-edit-turn other))
                        (< (gemini-companion-edit-since edit)
                           (gemini-companion-edit-since other)))
                   (gemini-companion-edit-texts-same-p
                    (gemini-companion-edit-after edit)
                    (gemini-companion-edit-after other)))))
        (gemini-companion-edit-others-of-file edit))
       (gemini-companion-file-state--changed-there-p
        edit (gemini-companion-edit-after edit)
        (or (gemini-companion-edit-texts-bytes edit) 'unknown))))

(defun gemini-companion-file-state-set-unwritten (edit)
  "Record that the CLI of EDIT does not write its file.
If the file gets the text all the same, EDIT is written then."
  (setf (gemini-companion-edit-file-state edit) 'unwritten)
  (gemini-companion-edit-notify edit 'unwritten))

(defun gemini-companion-file-state-set-reverted (edit state &optional undone)
  "Set the file state STATE of EDIT, of which the hunks UNDONE are reverted.
STATE is `reverted', `unsaved', `deleted', or `written' if hunks are left.
Nothing is done if both are so already."
  (unless (and (eq state (gemini-companion-edit-file-state edit))
               (equal undone (gemini-companion-edit-undone edit)))
    (setf (gemini-companion-edit-file-state edit) state
          (gemini-companion-edit-undone edit) undone)
    (gemini-companion-edit-notify edit 'reverted)))

;;;; Whose text the file has

(defun gemini-companion-file-state--attributed (edit bytes)
  "Return how the file of EDIT, which has BYTES, may be as EDIT has written it.
BYTES is `unknown' if the file is too large.  The value is nil or a cons:
`found' and the text of EDIT that the file has, or, only for an accepted
edit, `likely' and the text of EDIT from which the file was made."
  (let* ((known (stringp bytes))
         (exact (and known (gemini-companion-file-state--text-in-file edit bytes)))
         ;; A CLI that ignores the user's text has written its own.
         (text (if (gemini-companion-client-writes-own-text-p
                    (gemini-companion-edit-client edit))
                   (gemini-companion-edit-proposed edit)
                 (gemini-companion-edit-after edit))))
    (when (and (or exact (gemini-companion-edit-accepted-p edit))
               (not (and known
                         (gemini-companion-file-state--of-rival-p edit bytes
                                                                  exact))))
      (cond (exact (cons 'found exact))
            ((gemini-companion-file-state--changed-there-p edit text bytes)
             (cons 'likely text))))))

(defun gemini-companion-file-state--text-in-file (edit bytes)
  "Return the text of EDIT that its file has changed to, or nil.
BYTES are those of the file.  The text is the one that was answered, or
the proposal."
  (seq-find (lambda (text)
              (gemini-companion-edit-texts-changed-to-p edit text bytes))
            (list (gemini-companion-edit-after edit)
                  (gemini-companion-edit-proposed edit))))

(defun gemini-companion-file-state--of-rival-p (edit bytes exact)
  "Return non-nil if another edit has written BYTES, which EDIT's file has.
If EXACT is non-nil, they are a text of EDIT, too; then the other edit counts
only if it precedes, see `gemini-companion-file-state--precedes-p'."
  (seq-some (lambda (rival)
              (and (or (not exact)
                       (gemini-companion-file-state--precedes-p rival edit))
                   (gemini-companion-file-state--text-in-file rival bytes)))
            (gemini-companion-file-state--rivals edit)))

(defun gemini-companion-file-state--rivals (edit)
  "Return other edits that may have written the file of EDIT, a list.
They have ended, and their write is awaited, was just noticed, or came
later."
  (seq-filter (lambda (other)
                (and (gemini-companion-edit-decision other)
                     (or (gemini-companion-file-state--found-now-p other)
                         (gemini-companion-written-live-p
                          (gemini-companion-edit-awaited other))
                         (< (gemini-companion-edit-since edit)
                            (gemini-companion-edit-since other)))))
              (gemini-companion-edit-others-of-file edit)))

(defun gemini-companion-file-state--found-p (edit)
  "Return non-nil if the write of EDIT was found, maybe some time ago."
  (when-let* ((awaited (gemini-companion-edit-awaited edit)))
    (gemini-companion-written-found awaited)))

(defun gemini-companion-file-state--found-now-p (edit)
  "Return non-nil if the file of EDIT is as EDIT was found to have written it."
  (when-let* ((awaited (gemini-companion-edit-awaited edit)))
    (gemini-companion-written-found-now-p awaited)))

(defun gemini-companion-file-state--delayed-p (edit)
  "Return non-nil if the CLI of EDIT writes its file only after other answers."
  (when-let* ((awaited (gemini-companion-edit-awaited edit)))
    (gemini-companion-written-pending-p awaited)))

(defun gemini-companion-file-state--precedes-p (a b)
  "Return non-nil if a text that the edits A and B have is rather that of A.
That is so if it was found to be A's already; or if A alone was accepted; or
if both were, and were not found, and A was before B or does not have to
wait for other answers.  If both were refused, the last one is written."
  (let ((later (< (gemini-companion-edit-since b) (gemini-companion-edit-since a))))
    (cond ((gemini-companion-file-state--found-now-p a) t)
          ((not (gemini-companion-edit-accepted-p b))
           (or (gemini-companion-edit-accepted-p a) later))
          ((not (gemini-companion-edit-accepted-p a)) nil)
          ((or (gemini-companion-file-state--found-p a)
               (gemini-companion-file-state--found-p b))
           nil)
          ((gemini-companion-file-state--delayed-p a)
           (and (gemini-companion-file-state--delayed-p b) (not later)))
          (t (or (gemini-companion-file-state--delayed-p b) (not later))))))

(defun gemini-companion-file-state--changed-there-p (edit text bytes)
  "Return non-nil if the file of EDIT has changed at a difference of TEXT.
BYTES are those of the file; if it is not known which these are, or the
previous ones, it has.  It has, too, if TEXT makes no difference."
  (or (symbolp bytes)
      (not (gemini-companion-edit-known-p edit))
      (let* ((before (gemini-companion-edit-texts-before edit))
             (expected (gemini-companion-file-state--differences before text)))
        (or (null expected)
            (gemini-companion-file-state--any-of-edit-p
             edit
             (gemini-companion-file-state--differences
              before (gemini-companion-content-text
                      (gemini-companion-edit-texts-with edit bytes)))
             expected)))))

(defun gemini-companion-file-state--any-of-edit-p (edit found expected)
  "Return non-nil if one of FOUND in EDIT's file may be one of EXPECTED.
Both are lists of `gemini-companion-file-state--difference's: FOUND are those
between the text before EDIT and the file, EXPECTED those that EDIT makes.
One may be an expected one if it is at the same place; but if it has lines of
another edit, and none of EXPECTED, it is of that one."
  (when-let* ((there (seq-filter
                      (lambda (change)
                        (seq-some (apply-partially
                                   #'gemini-companion-file-state--overlap-p change)
                                  expected))
                      found)))
    (or (seq-some (lambda (change)
                    (gemini-companion-file-state--share-p change expected))
                  there)
        (let ((others (gemini-companion-file-state--differences-of-others edit)))
          (seq-some (lambda (change)
                      (not (gemini-companion-file-state--share-p change others)))
                    there)))))

(defun gemini-companion-file-state--differences-of-others (edit)
  "Return the differences that other edits of EDIT's file have made, a list.
Only edits of its turn, or that are still expected, count.  The elements are
`gemini-companion-file-state--difference's."
  (seq-mapcat
   (lambda (other)
     (when (and (gemini-companion-edit-accepted-p other)
                (or (eq (gemini-companion-edit-turn edit)
                        (gemini-companion-edit-turn other))
                    (gemini-companion-written-live-p
                     (gemini-companion-edit-awaited other)))
                (gemini-companion-edit-known-p other))
       (gemini-companion-file-state--differences
        (gemini-companion-edit-texts-before other)
        (gemini-companion-edit-after other))))
   (gemini-companion-edit-others-of-file edit)))

;;;; Differences

(defun gemini-companion-file-state--differences (a b)
  "Return the hunks between the texts A and B, as a CLI writes them.
It is a list of `gemini-companion-file-state--difference's."
  (let ((a (gemini-companion-edit-texts-comparable a))
        (b (gemini-companion-edit-texts-comparable b)))
    (unless (string= a b)
      (let ((lines (split-string b "\n")))
        (mapcar (lambda (hunk)
                  (gemini-companion-file-state--difference
                   hunk
                   (seq-take (nthcdr (1- (gemini-companion-hunk-new hunk)) lines)
                             (gemini-companion-hunk-new-count hunk))))
                (gemini-companion-hunk-compare a b))))))

(defun gemini-companion-file-state--share-p (change others)
  "Return non-nil if CHANGE has a line of one of OTHERS, except an empty one.
All are `gemini-companion-file-state--difference's."
  (let ((lines (gemini-companion-file-state--difference-lines change)))
    (seq-some (lambda (other)
                (seq-some (lambda (line)
                            (and (not (string-blank-p line)) (member line lines)))
                          (gemini-companion-file-state--difference-lines other)))
              others)))

(defun gemini-companion-file-state--overlap-p (a b)
  "Return non-nil if the differences A and B are at the same old lines.
One that only adds lines is at the place between two lines."
  (let* ((a (gemini-companion-file-state--difference-hunk a))
         (b (gemini-companion-file-state--difference-hunk b)))
    (gemini-companion-hunk-touch-p
     (gemini-companion-hunk-old a) (gemini-companion-hunk-old-end a)
     (gemini-companion-hunk-old b) (gemini-companion-hunk-old-end b))))

(defun gemini-companion-file-state--puts-back-p (change previous)
  "Return non-nil if CHANGE puts back lines of PREVIOUS.
Both are differences from one text, at the same lines of it.  If PREVIOUS has
no lines there, CHANGE puts that back if it writes nothing for the lines."
  (if (seq-every-p #'string-blank-p
                   (gemini-companion-file-state--difference-lines previous))
      (let ((change (gemini-companion-file-state--difference-hunk change))
            (previous (gemini-companion-file-state--difference-hunk previous)))
        (<= (gemini-companion-hunk-new-count change)
            ;; CHANGE may be of other lines, too.
            (- (gemini-companion-hunk-old-count change)
               (max 0 (- (min (gemini-companion-hunk-old-end change)
                              (gemini-companion-hunk-old-end previous))
                         (max (gemini-companion-hunk-old change)
                              (gemini-companion-hunk-old previous)))))))
    (gemini-companion-file-state--share-p change (list previous))))

;;;; What the CLI does not know

(defun gemini-companion-file-state--unknown-to-cli (edit)
  "Return the last edit of EDIT's file whose text the CLI may not know, or nil.
A CLI that writes its own text, over which Emacs has written the one that
the user has accepted, does not know that one in the same turn, until it
reads the file again."
  (when-let* (((gemini-companion-client-writes-own-text-p
                (gemini-companion-edit-client edit)))
              (last (seq-find #'gemini-companion-edit-written-p
                              (gemini-companion-edit-others-of-file edit)))
              ((eq (gemini-companion-edit-turn edit)
                   (gemini-companion-edit-turn last)))
              ((not (equal (gemini-companion-edit-proposed last)
                           (gemini-companion-edit-after last)))))
    last))

(defun gemini-companion-file-state-undoes-p (edit text)
  "Return non-nil if TEXT reverts what the user has typed, for the file of EDIT.
These are lines that the user has made of the CLI's previous edit of the file,
which the CLI may not know; see `gemini-companion-file-state--unknown-to-cli'.
That is the case where TEXT puts back what the CLI had written, or what was
there before; with another text, the CLI has read that of the user."
  (when-let* ((last (gemini-companion-file-state--unknown-to-cli edit))
              ((gemini-companion-edit-known-p edit)))
    (let* ((mine (gemini-companion-edit-texts-before edit))
           (differences (apply-partially #'gemini-companion-file-state--differences
                                         mine))
           (of-user (funcall differences (gemini-companion-edit-proposed last)))
           (previous (append
                      of-user
                      (when (gemini-companion-edit-known-p last)
                        (funcall differences
                                 (gemini-companion-edit-texts-before last))))))
      (seq-some (lambda (change)
                  (let ((overlaps-p (apply-partially
                                     #'gemini-companion-file-state--overlap-p change)))
                    (and (seq-some overlaps-p of-user)
                         (seq-some (apply-partially
                                    #'gemini-companion-file-state--puts-back-p change)
                                   (seq-filter overlaps-p previous)))))
                (funcall differences text)))))

;;;; Reported writes

(defun gemini-companion-file-state-record (session file before after)
  "Record that SESSION has written FILE, maybe without a review.
BEFORE is the previous text of FILE, nil if it did not exist, and AFTER
the current one.  An edit between these texts, of this turn or not reported
yet, is not recorded again."
  (let ((edit (or (gemini-companion-file-state--of-write session file before after)
                  (gemini-companion-file-state--record-new session file before
                                                           after))))
    (setf (gemini-companion-edit-reported edit) t
          (gemini-companion-edit-file-state edit) 'written)
    (unless (gemini-companion-edit-format edit)
      (gemini-companion-edit-texts-record-format edit))
    (gemini-companion-edit-notify edit 'written)))

(defun gemini-companion-file-state--of-write (session file before after)
  "Return the recorded edit that SESSION reports now as written, or nil.
For FILE, BEFORE and AFTER, see `gemini-companion-file-state-record'."
  (seq-find
   (lambda (edit)
     (and (gemini-companion-edit-texts-same-p
           after (gemini-companion-edit-text edit))
          (if (gemini-companion-edit-written-p edit)
              ;; The report of the prompt of that turn may have been lost.
              (not (gemini-companion-edit-reported edit))
            (and (gemini-companion-file-state--in-turn-p edit session)
                 (gemini-companion-edit-known-p edit)
                 (gemini-companion-edit-texts-same-p
                  (or before "") (gemini-companion-edit-texts-before edit))))))
   (gemini-companion-edits-of-file (gemini-companion-text-true-name file))))

(defun gemini-companion-file-state--record-new (session file before after)
  "Record what SESSION reports as written as a new edit, and return that.
For FILE, BEFORE and AFTER, see `gemini-companion-file-state-record'."
  (let* ((edit (gemini-companion-edit-make
                :id (gensym) :session session :file file
                :decision 'unreviewed :proposed after :after after))
         (bytes (gemini-companion-edit-texts-bytes edit))
         (now (gemini-companion-edit-texts-content edit bytes after)))
    (setf (gemini-companion-edit-content edit)
          (if before
              (gemini-companion-content-encoded
               now
               (if bytes
                   (gemini-companion-file-state--with-ends
                    before after (gemini-companion-content-text now))
                 before))
            (gemini-companion-content-with now 'none)))
    (gemini-companion-edit-add edit)
    edit))

(defun gemini-companion-file-state--with-ends (before after now)
  "Return the text BEFORE a write, with the line ends that the file had.
The CLI reports BEFORE and AFTER, and the file has the text NOW.  If the report
has plain line ends and no byte order mark, but the file does not, the CLI has
kept those of the file: then each line of BEFORE has the end that it has now,
or if it is not there, that of the line in its place."
  (let ((old (gemini-companion-lines-split before))
        (new (gemini-companion-lines-split now)))
    (if (and (not (equal after now))
             (equal before (gemini-companion-text-normalized before))
             (equal new (gemini-companion-lines-split after)))
        (gemini-companion-lines-undo-in-text
         (mapcar (lambda (region)
                   (gemini-companion-lines-change
                    (gemini-companion-lines-region-new region)
                    (gemini-companion-lines-region-new-end region)
                    (append (substring old (gemini-companion-lines-region-old region)
                                       (gemini-companion-lines-region-old-end region))
                            nil)))
                 (gemini-companion-lines-compare old new))
         now)
      before)))

(provide 'gemini-companion-file-state)
;;; gemini-companion-file-state.el ends here
