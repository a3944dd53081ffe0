;;; gemini-companion-slices.el --- Long work in slices  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A command that writes many files does so one after another.  In between, Emacs
;; displays the progress and handles what processes have sent.  C-g stops the command
;; between two files, never within one.
;;
;; What no command does, as an answer to a CLI, takes milliseconds at a time, and goes
;; on in timers, until the mode is turned off.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-part)

(defvar gemini-companion-slices-seconds 0.1
  "Seconds of work after which progress is displayed.")

(defun gemini-companion-slices-do (what items function)
  "Call FUNCTION with each of ITEMS in order, and let the user stop in between.
WHAT is a text for the progress, such as \"Undoing\".  Return those of ITEMS
that are left when the user has stopped, or nil if all are done.

Processes may change anything between two calls: FUNCTION has to check that.
If it asks the user, it does so in `with-local-quit'.  A single item is done as
if this function was not here: the user can quit."
  (if (null (cdr items))
      (progn (mapc function items) nil)
    (let ((count (length items))
          (since (float-time))
          (done 0)
          ;; Emacs would collect garbage for a third of the time.
          (gc-cons-threshold (max gc-cons-threshold (* 256 1024 1024)))
          (inhibit-quit t))
      (while (and items (not quit-flag))
        (funcall function (pop items))
        (setq done (1+ done))
        (when (and items
                   (not quit-flag)
                   (< gemini-companion-slices-seconds (- (float-time) since)))
          (let ((message-log-max nil))
            (message "%s: %d of %d files; C-g stops" what done count))
          (redisplay)
          (accept-process-output nil 0)
          (setq since (float-time))))
      ;; The user has stopped this, and nothing else.
      (setq quit-flag nil)
      items)))

(defconst gemini-companion-slices-seconds-later 0.005
  "Seconds of work after which Emacs handles keys.")

(defun gemini-companion-slices-later (items function done &optional until)
  "Call FUNCTION with each of ITEMS in order, then DONE without arguments.
This begins now, and goes on in timers of this function, so that Emacs handles
keys in between.  FUNCTION must not signal an error.  If UNTIL, a float time, is
over, skip the rest of ITEMS."
  (let ((end (+ (float-time) gemini-companion-slices-seconds-later))
        (works items))
    (while (and items
                ;; At least one, however late Emacs is.
                (progn (funcall function (pop items))
                       (< (float-time) end))))
    (when (and until (< until (float-time)))
      (setq items nil))
    ;; DONE may work for as long.
    (if (or items (and works (<= end (float-time))))
        (run-at-time 0 nil #'gemini-companion-slices-later items function done until)
      (funcall done))))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'slices)))
  "Cancel what would go on in timers."
  (cancel-function-timers #'gemini-companion-slices-later))

(provide 'gemini-companion-slices)
;;; gemini-companion-slices.el ends here
