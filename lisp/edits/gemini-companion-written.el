;;; gemini-companion-written.el --- What a CLI is expected to write  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A CLI writes a file some time after its review has ended.  Wait for that write for
;; a minute, revert the buffer of the file, and report each write by a program other
;; than this Emacs, and whether it was the awaited one.
;;
;; Some CLIs ignore the text that the user has accepted, and write their original
;; proposal.  Then the accepted text replaces the proposal in the file, repeatedly for
;; some seconds, since the CLI may write the file in pieces, or twice.

;;; Code:

(require 'gemini-companion-label)
(require 'gemini-companion-lines)
(require 'gemini-companion-revert)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)

;;;; State

(defconst gemini-companion-written-minute 125
  "Number of checks in a minute, the time in which a CLI must write.
Gemini CLI may take that long to compare long lines before it writes.")

(defconst gemini-companion-written--complete-seconds 3
  "Seconds without a change after which a file is written completely.")

(cl-defstruct (gemini-companion-written
               (:noinline t)
               (:constructor gemini-companion-written--make)
               (:copier nil))
  "A write of a file that is awaited from a CLI.
WATCH is the watch of the file.  REPORT is a function that is called with
`changed' when another program has written the file, and with `expired' if that
did not happen in time.  It returns non-nil if the file has the awaited text.
For KEYS, see `gemini-companion-revert-now'."
  watch report keys
  (checks gemini-companion-written-minute
          :documentation "Number of checks that remain.")
  (waits nil :documentation "Nil, or a function that returns non-nil if the CLI
waits for answers at the end of the minute, which then begins again.")
  (seen nil :documentation "The stamp of the last write that was reported.")
  (found nil :documentation "The stamp of the awaited write, if it was found.")
  (overwrite nil :documentation "Nil, or (EXPECTED . ACCEPTED): when the CLI has
written the text EXPECTED, Emacs overwrites it by the text ACCEPTED.")
  (lasts nil :documentation "Nil, or a function that returns nil once the text
must no longer be overwritten.")
  (self-written nil :documentation "The stamp of the last write by this Emacs, at the
start or by an overwrite.  A later write by this Emacs ends the overwrite.")
  (touched nil :documentation "Time of the last write, in seconds, while the
text may be overwritten.")
  (postponed nil :documentation "Non-nil if that write is not reported yet."))

;;;; Records

(defun gemini-companion-written-await (file report &rest rest)
  "Await a write of FILE by a CLI, and return a `gemini-companion-written'.
REPORT, and REST, keywords and values, are slots of the value."
  (let ((written (apply #'gemini-companion-written--make :report report rest)))
    (setf (gemini-companion-written-watch written)
          (gemini-companion-watch-start
           file
           (lambda (_watch changed occasion)
             (gemini-companion-written--check written changed occasion))
           ;; The CLI may have written FILE before it closed the review.
           'changed))
    (gemini-companion-written--set-self-written written)
    written))

(defun gemini-companion-written--set-self-written (written)
  "Record that writes by Emacs until now do not end the overwrite of WRITTEN."
  (setf (gemini-companion-written-self-written written)
        (gemini-companion-watch-self-written
         (gemini-companion-written-watch written))))

(defun gemini-companion-written-live-p (written)
  "Return non-nil if WRITTEN, which may be nil, is still awaited."
  (and written
       (gemini-companion-watch-live-p (gemini-companion-written-watch written))))

(defun gemini-companion-written-found-now-p (written)
  "Return non-nil if the file of WRITTEN is unchanged since the awaited write."
  (and (gemini-companion-written-found written)
       (equal (gemini-companion-written-found written)
              (gemini-companion-watch-stamp
               (gemini-companion-watch-file
                (gemini-companion-written-watch written))))))

(defun gemini-companion-written-alone-p (written)
  "Return non-nil if this Emacs has not written the file since WRITTEN began.
Overrides of the text of the CLI do not count."
  (equal (gemini-companion-written-self-written written)
         (gemini-companion-watch-self-written
          (gemini-companion-written-watch written))))

(defun gemini-companion-written-end-overwrite (written)
  "End the overwrite of WRITTEN, and report the last write if it was postponed."
  (when (gemini-companion-written-overwrite written)
    (setf (gemini-companion-written-overwrite written) nil)
    (when (gemini-companion-written-postponed written)
      (gemini-companion-written--report written 'changed))))

;;;; Checks

(defun gemini-companion-written--check (written changed occasion)
  "Handle a check of the file of WRITTEN.
CHANGED is non-nil if the file has changed.  Then revert its buffer, unless a
command is in progress or OCCASION forbids that, and return non-nil if it was
reverted.  See `gemini-companion-watch-start'."
  (let* ((watch (gemini-companion-written-watch written))
         (stamp (gemini-companion-watch-last watch))
         (free (and changed
                    (gemini-companion-watch-may-revert-p occasion)
                    (gemini-companion-revert-free-p occasion))))
    (when (and changed stamp
               (not (member stamp (list (gemini-companion-watch-self-written watch)
                                        (gemini-companion-written-seen written)))))
      (setf (gemini-companion-written-seen written) stamp)
      (gemini-companion-written--changed written))
    (gemini-companion-written--maybe-end-overwrite written)
    (when free
      (gemini-companion-revert-now (gemini-companion-watch-file watch)
                                   (gemini-companion-written-keys written)))
    (unless (or changed occasion)
      (gemini-companion-written--count written))
    free))

(defun gemini-companion-written--changed (written)
  "Handle a write of the file of WRITTEN by another program.
If the text is to be overwritten, do so once it is the expected text; until
then, postpone the report.  Otherwise, report the write."
  (unless (gemini-companion-written--lasts-p written)
    (gemini-companion-written-end-overwrite written))
  (if (null (gemini-companion-written-overwrite written))
      (gemini-companion-written--report written 'changed)
    (setf (gemini-companion-written-touched written) (float-time)
          (gemini-companion-written-postponed written) t)
    (when (gemini-companion-written--overwrite written)
      (gemini-companion-written--report written 'changed))))

(defun gemini-companion-written--lasts-p (written)
  "Return non-nil if the text of WRITTEN may still be overwritten."
  (and (gemini-companion-written-alone-p written)
       (or (null (gemini-companion-written-lasts written))
           (funcall (gemini-companion-written-lasts written)))))

(defun gemini-companion-written--maybe-end-overwrite (written)
  "End the overwrite of WRITTEN once it is not allowed, or the file is complete."
  (when (and (gemini-companion-written-overwrite written)
             (or (not (gemini-companion-written--lasts-p written))
                 (when-let* ((time (gemini-companion-written-touched written)))
                   (< gemini-companion-written--complete-seconds
                      (abs (- (float-time) time))))))
    (gemini-companion-written-end-overwrite written)))

(defun gemini-companion-written--report (written event)
  "Report EVENT, and record the answer in WRITTEN."
  (setf (gemini-companion-written-postponed written) nil)
  (when (funcall (gemini-companion-written-report written) event)
    (setf (gemini-companion-written-found written)
          (gemini-companion-watch-last (gemini-companion-written-watch written)))))

(defun gemini-companion-written--count (written)
  "Count a check of WRITTEN, and stop after the last one.
After the awaited write, two checks remain, since a CLI may write in two steps."
  (let ((checks (gemini-companion-written-checks written)))
    (setf (gemini-companion-written-checks written)
          (cond ((and (not (gemini-companion-written-overwrite written))
                      (gemini-companion-written-found written))
                 (1- (min 2 checks)))
                ;; The overwrite ends by itself after some seconds.
                ((and (gemini-companion-written-overwrite written)
                      (gemini-companion-written-touched written))
                 checks)
                ((and (= 1 checks)
                      (gemini-companion-written-waits written)
                      (funcall (gemini-companion-written-waits written)))
                 gemini-companion-written-minute)
                (t (1- checks)))))
  (unless (< 0 (gemini-companion-written-checks written))
    (gemini-companion-watch-stop (gemini-companion-written-watch written))
    (unless (gemini-companion-written-found written)
      (gemini-companion-written--report written 'expired))))

;;;; The accepted text

(defun gemini-companion-written--overwrite (written)
  "Override the text of the file of WRITTEN if it is the expected one.
Return non-nil on success.  The accepted text gets the line ends of the file;
if they are mixed, each line keeps its own.
If writing fails, for example since the disk is full, report that, and leave
the file unchanged."
  (pcase-let* ((`(,expected . ,accepted) (gemini-companion-written-overwrite written))
               (file (gemini-companion-watch-file
                      (gemini-companion-written-watch written))))
    (condition-case err
        (let* ((bytes (gemini-companion-text-bytes file))
               (now (decode-coding-string bytes 'utf-8-unix)))
          (when (string= (gemini-companion-text-normalized expected)
                         (gemini-companion-text-normalized now))
            (gemini-companion-watch-writing file
              (gemini-companion-text-rewrite
               file bytes (gemini-companion-lines-fit accepted now)))
            (gemini-companion-written--set-self-written written)
            t))
      (file-error
       (message "Cannot write the accepted text to %s (%s)"
                (gemini-companion-label-file file) (gemini-companion-text-problem err))
       nil))))

(provide 'gemini-companion-written)
;;; gemini-companion-written.el ends here
