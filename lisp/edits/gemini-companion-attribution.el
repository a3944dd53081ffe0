;;; gemini-companion-attribution.el --- Which edit has written a file  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Attribute each write of a file to an edit, and set the file state of that edit:
;; whether its CLI has written the file.  It is nil until that is known, and a later
;; report may change it.
;;
;; A write by another program than this Emacs is attributed to the first accepted edit
;; whose text the file has.  A program may format the text that a CLI has written, and
;; Qwen Code merges two edits of a file.  So a text that no edit has is attributed to
;; each accepted edit whose write is awaited; if there are several, the overview says
;; that the text is one of them.
;;
;; gemini-companion-written.el awaits a write, and calls this file to find out whether
;; it was the expected one.  A linked CLI reports its writes, see
;; gemini-companion-reported.el.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-watch)
(require 'gemini-companion-written)

;;;; Awaiting a write

(defun gemini-companion-attribution-await (edit answer overwrite)
  "Await the write of EDIT by its CLI after the ANSWER to it.
OVERWRITE is nil, or the text by which Emacs overwrites the text of the CLI."
  ;; Even a rejected edit may be written: a yes in the terminal may cross the
  ;; answer.
  (setf (gemini-companion-edit-awaited edit)
        (gemini-companion-written-await
         (gemini-companion-edit-file edit)
         (lambda (event)
           (pcase event
             ('changed (gemini-companion-attribution--check edit))
             ('expired (gemini-companion-attribution--expire edit))))
         :keys (and (not (eq answer 'automatic)) num-input-keys)
         ;; Qwen Code writes the files of an answer once all of its edits have ended.
         :waits (lambda ()
                  (and (gemini-companion-edit-listed-p edit)
                       (gemini-companion-edits-open
                        (gemini-companion-edit-session edit))))
         :overwrite (and overwrite
                         (cons (gemini-companion-edit-proposed edit) overwrite))
         :lasts (lambda () (not (gemini-companion-attribution--past-p edit))))))

(defun gemini-companion-attribution-forget (edit)
  "Stop awaiting the write of EDIT, which is opened again."
  (gemini-companion-watch-stop
   (gemini-companion-written-watch (gemini-companion-edit-awaited edit)))
  (setf (gemini-companion-edit-awaited edit) nil))

(defun gemini-companion-attribution--past-p (edit)
  "Return non-nil if the turn of EDIT is known to have ended."
  (when-let* ((turn (gemini-companion-session-turn
                     (gemini-companion-edit-session edit))))
    (if (eq turn (gemini-companion-edit-turn edit))
        (and (gemini-companion-turn-ended turn)
             ;; The end of a cut turn is a guess: the turn may continue, for
             ;; example after a reconnection.
             (not (gemini-companion-turn-cut turn)))
      (< (gemini-companion-edit-since edit) (gemini-companion-turn-began turn)))))

(defun gemini-companion-attribution--detect (edit)
  "Check immediately whether the file of EDIT, which has ended, was written."
  (let ((watch (gemini-companion-written-watch
                (gemini-companion-edit-awaited edit))))
    ;; A large file is complete if its stamp is the same at two checks.
    (dotimes (_ 2)
      (when (gemini-companion-watch-live-p watch)
        (gemini-companion-watch-check watch 'write)))))

(defun gemini-companion-attribution-end-others (edit)
  "Check the other edits of the file of EDIT that have ended.
Stop overwriting the text of the file for them, as the next write may be EDIT."
  (dolist (other (gemini-companion-edit-others-of-file edit))
    (let ((awaited (gemini-companion-edit-awaited other)))
      (when (gemini-companion-written-live-p awaited)
        (gemini-companion-attribution--detect other)
        (gemini-companion-written-end-overwrite awaited)))))

(defun gemini-companion-attribution-detect-write (edit)
  "Check immediately whether EDIT was written, if it was accepted.
This may change the file state."
  (when (and (gemini-companion-edit-accepted-p edit)
             (gemini-companion-edit-awaited edit))
    (gemini-companion-attribution--detect edit)))

(defun gemini-companion-attribution-awaited-p (edit)
  "Return non-nil if EDIT was accepted, and its CLI has yet to write its file.
Before it, call `gemini-companion-attribution-detect-write'."
  (and (gemini-companion-edit-accepted-p edit)
       (gemini-companion-edit-awaited edit)
       (null (gemini-companion-edit-file-state edit))
       (gemini-companion-written-live-p (gemini-companion-edit-awaited edit))))

(defun gemini-companion-attribution-follows-p (edit)
  "Return non-nil if an accepted edit before EDIT is not written yet.
Only edits of the same file and turn count.  Qwen Code writes the files of an
answer at its end, and merges two edits of a file only if the user has not
changed the second one."
  (and (gemini-companion-edit-open-p edit)
       (seq-some (lambda (other)
                   (and (gemini-companion-edit-accepted-p other)
                        (null (gemini-companion-edit-file-state other))
                        (eq (gemini-companion-edit-turn edit)
                            (gemini-companion-edit-turn other))
                        (gemini-companion-written-live-p
                         (gemini-companion-edit-awaited other))))
                 (gemini-companion-edit-others-of-file edit))))

;;;; Writes

(defun gemini-companion-attribution--check (edit)
  "Record EDIT as written if the last write of its file may be that edit.
Return non-nil if the file has a text of EDIT."
  ;; If a refused text is written in a later turn, that is another edit.
  (when (or (gemini-companion-edit-accepted-p edit)
            (gemini-companion-attribution-in-turn-p
             edit (gemini-companion-edit-session edit)))
    (let* ((bytes (gemini-companion-edit-texts-bytes edit))
           (text (and bytes (gemini-companion-attribution--text-written edit bytes))))
      (when (or text (gemini-companion-attribution--maybe-written-p edit bytes))
        (if text
            (gemini-companion-attribution--set-written edit text)
          (gemini-companion-attribution--set-maybe-written edit))
        (gemini-companion-edit-notify-file edit 'written))
      text)))

(defun gemini-companion-attribution-in-turn-p (edit session)
  "Return non-nil if EDIT may be of the current turn of SESSION.
If the CLI has not reported that turn, any edit may be."
  (let ((turn (gemini-companion-session-turn session)))
    (or (null turn)
        (not (gemini-companion-turn-reported turn))
        (eq turn (gemini-companion-edit-turn edit)))))

(defun gemini-companion-attribution-keep-accepted (edit problem)
  "Add the text of EDIT to the kill ring, and display PROBLEM, if it is the user's.
EDIT has ended, and its text is not in its file."
  (let ((text (gemini-companion-edit-after edit)))
    (when (and text (gemini-companion-edit-texts-by-user-p edit text))
      (gemini-companion-text-keep text problem))))

(defun gemini-companion-attribution-keep-awaited (edit)
  "Add the text of EDIT to the kill ring if it is the user's and is not written.
Called when the mode is turned off, after which a write would not be noticed."
  (when (and (gemini-companion-edit-accepted-p edit)
             (null (gemini-companion-edit-file-state edit))
             (not (gemini-companion-edit-texts-in-file-p edit)))
    (gemini-companion-attribution-keep-accepted
     edit (format "%s is not written yet" (gemini-companion-edit-name edit 'plain)))))

(defun gemini-companion-attribution--set-written (edit text)
  "Record that EDIT was written with TEXT, which is one of its texts.
If TEXT is not the text that was answered, the CLI has ignored the edits of the
user: keep and report them."
  (unless (equal text (gemini-companion-edit-after edit))
    (gemini-companion-attribution-keep-accepted
     edit (format "%s was written without your edits"
                  (gemini-companion-edit-name edit 'plain))))
  (gemini-companion-edit-texts-set-after edit text)
  (setf (gemini-companion-edit-file-state edit) 'written)
  ;; Later, the user may have converted the file.
  (unless (gemini-companion-edit-format edit)
    (gemini-companion-edit-texts-record-format edit)))

(defun gemini-companion-attribution--set-maybe-written (edit)
  "Record that EDIT was written, but that the file has another text.
Keep the text that the user has accepted.  If the writes of other edits are
awaited as well, the file has the text of one of them, or of all."
  (when (seq-some (lambda (other)
                    (and (gemini-companion-edit-accepted-p other)
                         (gemini-companion-written-live-p
                          (gemini-companion-edit-awaited other))
                         (or (null (gemini-companion-edit-file-state other))
                             (memq 'one-of (gemini-companion-edit-remarks other)))))
                  (gemini-companion-edit-others-of-file edit))
    (gemini-companion-edit-add-remark edit 'one-of))
  ;; A CLI that ignores the text of the user has written its proposal.
  (if (gemini-companion-client-writes-own-text-p (gemini-companion-edit-client edit))
      (gemini-companion-attribution--set-written edit
                                                 (gemini-companion-edit-proposed edit))
    (gemini-companion-attribution-keep-accepted
     edit (format "%s was written, but has another text"
                  (gemini-companion-edit-name edit 'plain)))
    (setf (gemini-companion-edit-file-state edit) 'written)
    ;; The CLI may read the file in another coding system than Emacs.
    (when-let* (((not (or (memq 'one-of (gemini-companion-edit-remarks edit))
                          (gemini-companion-edit-texts-utf-8-p edit))))
                (now (gemini-companion-edit-texts-now edit)))
      (gemini-companion-edit-texts-set-after edit (gemini-companion-content-text now)))
    (gemini-companion-edit-texts-record-format edit)))

(defun gemini-companion-attribution-record-early-write (edit)
  "Record EDIT, which was refused, as written if its CLI has written the file.
Return non-nil if so.  Qwen Code writes the file before it closes the review."
  (when-let* (((gemini-companion-watch-written-p (gemini-companion-edit-watch edit)))
              (bytes (gemini-companion-edit-texts-bytes edit))
              (text (gemini-companion-attribution--text-written edit bytes)))
    (gemini-companion-attribution--set-written edit text)
    t))

(defun gemini-companion-attribution--expire (edit)
  "Record that the CLI of EDIT, if accepted, has not written its file in time.
Do nothing if EDIT was written, if another edit was that has the same text, or
if the list of edits has dropped EDIT."
  (when (and (gemini-companion-edit-listed-p edit)
             (gemini-companion-edit-accepted-p edit)
             (null (gemini-companion-edit-file-state edit))
             (not (gemini-companion-edit-texts-in-file-p edit)))
    ;; Once the user has interrupted Gemini CLI, it ignores the review.
    (let ((problem (format "%s was accepted but was not written"
                           (gemini-companion-edit-name edit 'plain))))
      (message "%s" problem)
      (gemini-companion-attribution-keep-accepted edit problem))
    (gemini-companion-attribution-set-unwritten edit)))

(defun gemini-companion-attribution-set-unwritten (edit)
  "Record that the CLI of EDIT does not write its file.
If the file gets the text later, EDIT is recorded as written."
  (setf (gemini-companion-edit-file-state edit) 'unwritten)
  (gemini-companion-edit-notify-file edit 'file-state))

(defun gemini-companion-attribution-set-undone (edit undone)
  "Record whether the user has UNDONE EDIT, whose file has no record."
  (setf (gemini-companion-edit-undone edit) undone)
  (gemini-companion-edit-notify-file edit 'file-state))

;;;; Attribution

(defun gemini-companion-attribution--text-written (edit bytes)
  "Return the text of EDIT to which its file has changed, if by the CLI of EDIT.
BYTES are those of the file.  Of several edits with that text, the file was
written by the first accepted one, or if none was accepted, the last one."
  (let ((edits (seq-filter
                (lambda (other)
                  (and (or (eq edit other)
                           (gemini-companion-attribution--found-now-p other)
                           (and (null (gemini-companion-edit-file-state other))
                                (gemini-companion-written-live-p
                                 (gemini-companion-edit-awaited other))))
                       (gemini-companion-attribution-text-in-file other bytes)))
                (gemini-companion-edits-of-file
                 (gemini-companion-edit-true-name edit)))))
    (when (eq edit (or (seq-find #'gemini-companion-attribution--found-now-p edits)
                       (car (last (seq-filter #'gemini-companion-edit-accepted-p
                                              edits)))
                       (car edits)))
      (gemini-companion-attribution-text-in-file edit bytes))))

(defun gemini-companion-attribution--maybe-written-p (edit bytes)
  "Return non-nil if EDIT may have been written, though the file has another text.
BYTES are those of the file, or nil if it is too large.  EDIT was accepted, and
the text has changed, but neither to that of another edit nor by this Emacs."
  (and (gemini-companion-edit-accepted-p edit)
       (null (gemini-companion-edit-file-state edit))
       (gemini-companion-written-alone-p (gemini-companion-edit-awaited edit))
       (or (null bytes)
           (not (gemini-companion-edit-known-p edit))
           (not (gemini-companion-edit-texts-same-p
                 (gemini-companion-edit-texts-before edit)
                 (gemini-companion-content-text
                  (gemini-companion-edit-texts-with edit bytes)))))
       (not (and bytes
                 (seq-some (lambda (other)
                             (and (gemini-companion-edit-answer other)
                                  (gemini-companion-attribution-text-in-file
                                   other bytes)))
                           (gemini-companion-edit-others-of-file edit))))))

(defun gemini-companion-attribution-text-in-file (edit bytes)
  "Return the text of EDIT to which its file has changed, or nil.
BYTES are those of the file.  The text is the one that was answered, or
the proposal."
  (seq-find (lambda (text)
              (gemini-companion-edit-texts-changed-to-p edit text bytes))
            (list (gemini-companion-edit-after edit)
                  (gemini-companion-edit-proposed edit))))

(defun gemini-companion-attribution--found-now-p (edit)
  "Return non-nil if the file of EDIT is unchanged since its write was found."
  (when-let* ((awaited (gemini-companion-edit-awaited edit)))
    (gemini-companion-written-found-now-p awaited)))

(defun gemini-companion-attribution-set-reported (edit)
  "Record that the CLI of EDIT has reported that it has written the file."
  (setf (gemini-companion-edit-reported edit) t
        ;; A snapshot may have seen the write of the tool before its report.
        (gemini-companion-edit-command edit) nil
        (gemini-companion-edit-file-state edit) 'written)
  (unless (gemini-companion-edit-format edit)
    (gemini-companion-edit-texts-record-format edit))
  (gemini-companion-edit-notify-file edit 'written))

;;;; Unknown to the CLI

(defun gemini-companion-attribution-unknown-to-cli-p (edit)
  "Return non-nil if the CLI of EDIT may not know the text of the file of EDIT.
Some CLIs write their proposal, which Emacs overwrites by the text that the user
has accepted.  In the same turn, the CLI does not know that text until it reads
the file again."
  (when-let* (((gemini-companion-client-writes-own-text-p
                (gemini-companion-edit-client edit)))
              (last (seq-find #'gemini-companion-edit-written-p
                              (gemini-companion-edit-others-of-file edit)))
              ((eq (gemini-companion-edit-turn edit)
                   (gemini-companion-edit-turn last))))
    (not (equal (gemini-companion-edit-proposed last)
                (gemini-companion-edit-after last)))))

(provide 'gemini-companion-attribution)
;;; gemini-companion-attribution.el ends here
