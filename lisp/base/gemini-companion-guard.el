;;; gemini-companion-guard.el --- Ignore keys that were typed for something else  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A question can appear just before the user types a key for something else.  If
;; the key answers the question, the user has accepted what they have not read.
;; These guards ignore such a key.  A key is ignored under these conditions:
;;
;; - *recent*: what the key acts on was displayed within the last second;
;; - *reading*: the user has not paused for half a second since the buffer was drawn;
;; - *burst*: another key follows within a fifth of a second;
;; - *ignored keys*: the question that the key would answer has just ended.

;;; Code:

(require 'cl-lib)

;;;; State

(defvar gemini-companion-guard--quiet-seconds 0.5
  "Seconds without a key after which the user is assumed to have read a buffer.
They begin when the buffer has been drawn.")

(defvar gemini-companion-guard--burst-seconds 0.2
  "Seconds after a key in which another key cancels it.
They apply to a key after which the next one could be an unintended yes: a
key that allows a command, or that goes to the terminal that asks.")

(cl-defstruct (gemini-companion-guard--reading
               (:noinline t)
               (:constructor gemini-companion-guard--make-reading (since))
               (:copier nil))
  "Record of how long a buffer has been displayed in the selected window.
SINCE is the time when it was drawn, in seconds.  KEYS is nil until no key was
typed for `gemini-companion-guard--quiet-seconds'; then it is the value of
`num-input-keys', which TIMER updates after each such pause."
  since keys timer)

(defvar-local gemini-companion-guard--reading nil
  "Record of the display of this buffer, or nil if it was not drawn.")

(defvar gemini-companion-guard--end-ignoring #'ignore
  "Function that removes the keymap of `gemini-companion-guard-ignore-keys'.")

;;;; Recent

(defvar gemini-companion-guard--recent-seconds 1
  "Seconds after which the user is assumed to have seen what was displayed.")

(defun gemini-companion-guard-recent-p (time)
  "Return non-nil if TIME, in seconds, is within the last second."
  (let ((age (- (float-time) time)))
    ;; The lower bound applies if the clock was set back.
    (and (<= 0 age)
         (< age gemini-companion-guard--recent-seconds))))

;;;; Reading

(defun gemini-companion-guard-watch-reading ()
  "Record drawing of the current buffer for `gemini-companion-guard-read-p'."
  (add-hook 'pre-redisplay-functions #'gemini-companion-guard--note-drawing nil t))

(defun gemini-companion-guard-read-p ()
  "Return non-nil if the user has read the buffer before the last key.
The selected window must display the current buffer, and have drawn it; then
half a second must have passed without a key, and the last key must be the
first one after that pause, with no further input pending."
  (and gemini-companion-guard--reading
       (eq (window-buffer) (current-buffer))
       (eql (gemini-companion-guard--reading-keys gemini-companion-guard--reading)
            (1- num-input-keys))
       (not (input-pending-p))))

(defun gemini-companion-guard-read-again ()
  "Require that the current buffer is drawn and read again."
  (gemini-companion-guard--forget-drawing (current-buffer)
                                          gemini-companion-guard--reading))

(defun gemini-companion-guard--note-drawing (window)
  "Record that the current buffer is drawn in WINDOW, if that is selected.
Called before each redisplay of WINDOW."
  (when (and (eq window (selected-window))
             (null gemini-companion-guard--reading))
    (let ((reading (gemini-companion-guard--make-reading (float-time)))
          (seconds gemini-companion-guard--quiet-seconds))
      (setq gemini-companion-guard--reading reading)
      (setf (gemini-companion-guard--reading-timer reading)
            (run-with-idle-timer seconds t #'gemini-companion-guard--note-quiet
                                 (current-buffer) reading))
      ;; If Emacs is idle for longer already, the idle timer only runs after a key.
      (run-at-time seconds nil #'gemini-companion-guard--await-quiet
                   (current-buffer) reading))))

(defun gemini-companion-guard--await-quiet (buffer reading)
  "Record the first pause without a key since READING of BUFFER began.
If input is pending, or Emacs has been busy, check again after a pause."
  (gemini-companion-guard--note-quiet buffer reading)
  (when (and (gemini-companion-guard--current-p buffer reading)
             (null (gemini-companion-guard--reading-keys reading)))
    (run-at-time gemini-companion-guard--quiet-seconds nil
                 #'gemini-companion-guard--await-quiet buffer reading)))

(defun gemini-companion-guard--note-quiet (buffer reading)
  "Record a pause without a key since READING of BUFFER began.
Only the first key after the pause is accepted as an answer."
  (let ((seconds gemini-companion-guard--quiet-seconds)
        (idle (current-idle-time)))
    (cond
     ((not (and (gemini-companion-guard--current-p buffer reading)
                (eq buffer (window-buffer (selected-window)))))
      (gemini-companion-guard--forget-drawing buffer reading)
      ;; If another window is selected only briefly, BUFFER is not drawn again.
      (when (buffer-live-p buffer)
        (force-window-update buffer)))
     ((and idle
           (not (input-pending-p))
           (<= seconds (float-time idle))
           (<= seconds (- (float-time)
                          (gemini-companion-guard--reading-since reading))))
      (setf (gemini-companion-guard--reading-keys reading) num-input-keys)))))

(defun gemini-companion-guard--forget-drawing (buffer reading)
  "Cancel READING of BUFFER, unless it is nil: BUFFER must be drawn again."
  (when reading
    (cancel-timer (gemini-companion-guard--reading-timer reading)))
  (when (gemini-companion-guard--current-p buffer reading)
    (with-current-buffer buffer
      (setq gemini-companion-guard--reading nil))))

(defun gemini-companion-guard--current-p (buffer reading)
  "Return non-nil if BUFFER is live and READING is its current record."
  (and (buffer-live-p buffer)
       (eq reading (buffer-local-value 'gemini-companion-guard--reading buffer))))

;;;; Burst

(defun gemini-companion-guard-no-burst (problem)
  "Signal a `user-error' with the message PROBLEM if another key follows at once."
  (unless (sit-for gemini-companion-guard--burst-seconds)
    (user-error "%s" problem)))

;;;; Ignored keys

(defun gemini-companion-guard-ignore-keys (keys reason)
  "Ignore KEYS for a second, or until another key is typed.
Display REASON for each ignored key.  KEYS is a list of strings for `kbd'.
Call this when the question that KEYS answer has ended: a key that is typed
once more would insert text into another buffer."
  (funcall gemini-companion-guard--end-ignoring)
  (let ((map (make-sparse-keymap))
        (ignore-key (lambda () (interactive) (message "%s" reason))))
    (dolist (key keys)
      (define-key map (kbd key) ignore-key))
    (setq gemini-companion-guard--end-ignoring
          (set-transient-map map (lambda () (eq this-command ignore-key)))))
  (cancel-function-timers #'gemini-companion-guard-heed-keys)
  (run-at-time 1 nil #'gemini-companion-guard-heed-keys))

(defun gemini-companion-guard-heed-keys ()
  "Stop ignoring keys."
  (cancel-function-timers #'gemini-companion-guard-heed-keys)
  (funcall gemini-companion-guard--end-ignoring)
  (setq gemini-companion-guard--end-ignoring #'ignore))

(provide 'gemini-companion-guard)
;;; gemini-companion-guard.el ends here
