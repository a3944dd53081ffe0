;;; gemini-companion-written.el --- What a CLI is expected to write  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A CLI writes a file some time after its review has ended.  Wait for that write for
;; a minute, revert the buffer of the file, and report each write by a program other
;; than this Emacs, and whether it was the awaited one.
;;
;; Some CLIs ignore the text that the user has accepted, and write their original
;; proposal.  Then replace it by the accepted text, repeatedly for some seconds, since
;; the CLI may write the file in pieces, or twice.

;;; Code:

(require 'gemini-companion-label)
(require 'gemini-companion-revert)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)

(defconst gemini-companion-written--minute 125
  "Number of checks in a minute.
It is as long as that because Gemini CLI may compare long lines first.")

(defconst gemini-companion-written--settled 3
  "Seconds for which a file must stay as it is to be written completely.")

(cl-defstruct (gemini-companion-written
               (:noinline t)
               (:constructor gemini-companion-written--make)
               (:copier nil))
  "A write of a file that is awaited from a CLI.
WATCH is the watch of the file.  REPORT is called with `changed' when
another program has written the file, and with `expired' if it has not in
time.  Its value is `found' if that was the awaited write, `likely' if it
may have been, or else nil.  PENDING is non-nil while the CLI cannot have
written it yet, see `gemini-companion-written-set-pending'.  KEYS is as in
`gemini-companion-revert-now'."
  watch report pending keys
  (checks gemini-companion-written--minute
          :documentation "Number of checks that are left.")
  (overtaken nil :documentation "Non-nil once its CLI has written something
later.")
  (seen nil :documentation "The stamp of the last write that was reported.")
  (found nil :documentation "The stamp of the awaited write, if it was found.")
  (likely nil :documentation "Non-nil if a write may have been that.")
  (over nil :documentation "Nil, or a cons of the text that the CLI
writes, and of the one that is then written over it.")
  (lasts nil :documentation "A function whose value is nil once nothing may
be written over the file any more.")
  (own nil :documentation "The stamp of the last write by this Emacs: that
of the start, or of what was written over.  Another one ends that.")
  (touched nil :documentation "When the file was last written, a time in
seconds, if a text may be written over it.")
  (postponed nil :documentation "Non-nil if that write is not reported yet."))

(defun gemini-companion-written-await (file report &rest rest)
  "Await a write of FILE by a CLI, and return the record of that.
For REPORT, see `gemini-companion-written'.  REST are further slots of
it, as keywords and values."
  (let ((written (apply #'gemini-companion-written--make :report report rest)))
    (setf (gemini-companion-written-watch written)
          (gemini-companion-watch-start
           file
           (lambda (_watch changed occasion)
             (gemini-companion-written--check written changed occasion))
           ;; A CLI may have written it before it closed the review.
           'changed))
    (gemini-companion-written--set-own written)
    written))

(defun gemini-companion-written--set-own (written)
  "Record that what Emacs has written until now ends no overwriting of WRITTEN."
  (setf (gemini-companion-written-own written)
        (gemini-companion-watch-own (gemini-companion-written-watch written))))

(defun gemini-companion-written-live-p (written)
  "Return non-nil if WRITTEN, or nil, is still awaited."
  (and written
       (gemini-companion-watch-live-p (gemini-companion-written-watch written))))

(defun gemini-companion-written-found-now-p (written)
  "Return non-nil if the file of WRITTEN is as its CLI has written it."
  (and (gemini-companion-written-found written)
       (equal (gemini-companion-written-found written)
              (gemini-companion-watch-stamp
               (gemini-companion-watch-file
                (gemini-companion-written-watch written))))))

(defun gemini-companion-written-alone-p (written)
  "Return non-nil if this Emacs has not written the file since WRITTEN began.
What it wrote over the CLI's text does not count."
  (equal (gemini-companion-written-own written)
         (gemini-companion-watch-own (gemini-companion-written-watch written))))

(defun gemini-companion-written-pending-p (written)
  "Return non-nil if the CLI cannot have written the file of WRITTEN yet."
  (and (gemini-companion-written-pending written)
       (not (gemini-companion-written-overtaken written))))

(cl-defun gemini-companion-written-set-pending (written &key pending overtaken)
  "Record in WRITTEN whether its CLI cannot have written the file yet.
PENDING is non-nil if it still waits for answers.  If OVERTAKEN is non-nil,
it has written something later, and has not waited for them since."
  (setf (gemini-companion-written-pending written) pending)
  (when overtaken
    (setf (gemini-companion-written-overtaken written) t)))

(defun gemini-companion-written-end-over (written)
  "Write nothing over the file of WRITTEN any more, and report its last write."
  (when (gemini-companion-written-over written)
    (setf (gemini-companion-written-over written) nil)
    (when (gemini-companion-written-postponed written)
      (gemini-companion-written--report written 'changed))))

;;;; Checks

(defun gemini-companion-written--check (written changed occasion)
  "Follow the file of WRITTEN, which has CHANGED if that is non-nil.
Revert its buffer, unless a command is in progress or OCCASION forbids
it, and return non-nil if that was done; see
`gemini-companion-watch-start'."
  (let* ((watch (gemini-companion-written-watch written))
         (stamp (gemini-companion-watch-last watch))
         (free (and changed
                    (gemini-companion-watch-may-revert-p occasion)
                    (gemini-companion-revert-free-p occasion))))
    (when (and changed stamp
               (not (member stamp (list (gemini-companion-watch-own watch)
                                        (gemini-companion-written-seen written)))))
      (setf (gemini-companion-written-seen written) stamp)
      (gemini-companion-written--changed written))
    (gemini-companion-written--settle written)
    (when free
      (gemini-companion-revert-now (gemini-companion-watch-file watch)
                                   (gemini-companion-written-keys written)))
    (unless (or changed occasion)
      (gemini-companion-written--count written))
    free))

(defun gemini-companion-written--changed (written)
  "Handle that another program has written the file of WRITTEN.
Write over it, or report it; but if the text that is expected has not come
yet, wait until the file stays as it is."
  (unless (gemini-companion-written--lasts-p written)
    (gemini-companion-written-end-over written))
  (if (null (gemini-companion-written-over written))
      (gemini-companion-written--report written 'changed)
    (setf (gemini-companion-written-touched written) (float-time)
          (gemini-companion-written-postponed written) t)
    (when (gemini-companion-written--write-over written)
      (gemini-companion-written--report written 'changed))))

(defun gemini-companion-written--lasts-p (written)
  "Return non-nil if a text may still be written over the file of WRITTEN."
  (and (gemini-companion-written-alone-p written)
       (or (null (gemini-companion-written-lasts written))
           (funcall (gemini-companion-written-lasts written)))))

(defun gemini-companion-written--settle (written)
  "Write nothing over the file of WRITTEN any more once it stays as it is."
  (when (and (gemini-companion-written-over written)
             (or (not (gemini-companion-written--lasts-p written))
                 (when-let* ((time (gemini-companion-written-touched written)))
                   (< gemini-companion-written--settled
                      (abs (- (float-time) time))))))
    (gemini-companion-written-end-over written)))

(defun gemini-companion-written--report (written event)
  "Report EVENT, and record the answer in WRITTEN."
  (setf (gemini-companion-written-postponed written) nil)
  (pcase (funcall (gemini-companion-written-report written) event)
    ('found (setf (gemini-companion-written-found written)
                  (gemini-companion-watch-last
                   (gemini-companion-written-watch written))))
    ('likely (setf (gemini-companion-written-likely written) t))))

(defun gemini-companion-written--count (written)
  "Count a check of WRITTEN; stop at the last one.
After the awaited write only two checks are left, as it may be done in two
steps, and after each check while the CLI cannot have written, a minute."
  (let ((checks (gemini-companion-written-checks written)))
    (setf (gemini-companion-written-checks written)
          (cond ((and (not (gemini-companion-written-over written))
                      (or (gemini-companion-written-found written)
                          (gemini-companion-written-likely written)))
                 (1- (min 2 checks)))
                ((gemini-companion-written-pending-p written)
                 gemini-companion-written--minute)
                ;; Whether it is written completely is a matter of time.
                ((and (gemini-companion-written-over written)
                      (gemini-companion-written-touched written))
                 checks)
                (t (1- checks)))))
  (unless (< 0 (gemini-companion-written-checks written))
    (gemini-companion-watch-stop (gemini-companion-written-watch written))
    (unless (or (gemini-companion-written-found written)
                (gemini-companion-written-likely written))
      (gemini-companion-written--report written 'expired))))

;;;; The accepted text

(defun gemini-companion-written--write-over (written)
  "Write the accepted text over the file of WRITTEN if the CLI has written it.
Return non-nil if that was done.  The text gets the line ends of the file.
Report a failure, such as a full disk; the file is then as before."
  (pcase-let* ((`(,expected . ,accepted) (gemini-companion-written-over written))
               (file (gemini-companion-watch-file
                      (gemini-companion-written-watch written))))
    (condition-case err
        (let* ((bytes (gemini-companion-text-bytes file))
               (now (decode-coding-string bytes 'utf-8-unix)))
          (when (string= (gemini-companion-text-normalized expected)
                         (gemini-companion-text-normalized now))
            (gemini-companion-watch-writing file
              (gemini-companion-text-rewrite
               file bytes (gemini-companion-text-fit accepted now)))
            (gemini-companion-written--set-own written)
            t))
      (file-error
       (message "Cannot write the accepted text to %s (%s)"
                (gemini-companion-label-file file) (error-message-string err))
       nil))))

(provide 'gemini-companion-written)
;;; gemini-companion-written.el ends here
