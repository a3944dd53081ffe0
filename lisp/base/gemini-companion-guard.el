;;; gemini-companion-guard.el --- Keys that were not meant for what they hit  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A key that the user types for one thing can hit another, which has just appeared
;; or has taken its place.  If that key answers a CLI, the user has said yes to what
;; nobody has read.  Each guard below has its own condition:
;;
;; - *new*: something has appeared by itself within the last second;
;; - *reading*: a buffer was drawn, and the user then typed nothing for half a second;
;; - *burst*: another key follows within a fifth of a second;
;; - *ignored keys*: what the keys answer has just ended.
;;
;; None of them answers anything: a guard only makes a key count for nothing.

;;; Code:

(require 'cl-lib)

;;;; State

(defvar gemini-companion-guard-new-until 0
  "Time, in seconds, until which keys that answer are ignored in a new review.")

(defvar gemini-companion-guard-quiet-seconds 0.5
  "Seconds without a key before a key counts as typed by a user who has read.
They begin when the buffer has been drawn.")

(defvar gemini-companion-guard-burst-seconds 0.2
  "Seconds after a key in which another one makes it count for none.
That is for the keys after which the next one could be a yes that nobody
meant: those that allow a command, or go to the terminal that asks.")

(cl-defstruct (gemini-companion-guard--reading
               (:noinline t)
               (:constructor gemini-companion-guard--make-reading (since))
               (:copier nil))
  "That a buffer has been drawn in the selected window.
SINCE is the time of that, in seconds.  KEYS is the number of keys that
had been typed when nothing had been typed for a while, or nil until then.
TIMER records that, after each such while."
  since keys timer)

(defvar-local gemini-companion-guard--reading nil
  "The `gemini-companion-guard--reading' of this buffer, or nil.")

(defvar gemini-companion-guard--end-ignoring #'ignore
  "Function that ends what `gemini-companion-guard-ignore-keys' began.")

;;;; New

(defun gemini-companion-guard-set-new (new)
  "Ignore the keys that answer for a second if NEW is non-nil, else heed them."
  (setq gemini-companion-guard-new-until (if new (1+ (float-time)) 0)))

(defun gemini-companion-guard-new-p ()
  "Return non-nil if a review has appeared within the last second."
  ;; At most a second, also if the clock was set back.
  (< 0 (- gemini-companion-guard-new-until (float-time)) 1))

;;;; Reading

(defun gemini-companion-guard-watch-reading ()
  "Notice when the current buffer is drawn, for `gemini-companion-guard-read-p'."
  (add-hook 'pre-redisplay-functions #'gemini-companion-guard--note-drawing nil t))

(defun gemini-companion-guard-read-p ()
  "Return non-nil if the key of this command was typed after a look.
The current buffer must be that of the selected window and must have been drawn
there, half a second must have passed without a key, and the key must be the
first one after that, with no other input behind it."
  (and gemini-companion-guard--reading
       (eq (window-buffer) (current-buffer))
       (eql (gemini-companion-guard--reading-keys gemini-companion-guard--reading)
            (1- num-input-keys))
       (not (input-pending-p))))

(defun gemini-companion-guard-read-again ()
  "Require another look at the current buffer: it must be drawn again."
  (gemini-companion-guard--forget-drawing (current-buffer)
                                          gemini-companion-guard--reading))

(defun gemini-companion-guard--note-drawing (window)
  "Record that the current buffer is drawn in WINDOW, if that is selected.
Called before each redisplay of WINDOW."
  (when (and (eq window (selected-window))
             (null gemini-companion-guard--reading))
    (let ((reading (gemini-companion-guard--make-reading (float-time)))
          (seconds gemini-companion-guard-quiet-seconds))
      (setq gemini-companion-guard--reading reading)
      (setf (gemini-companion-guard--reading-timer reading)
            (run-with-idle-timer seconds t #'gemini-companion-guard--note-quiet
                                 (current-buffer) reading))
      ;; If Emacs has been idle for longer, that timer waits for the next key.
      (run-at-time seconds nil #'gemini-companion-guard--await-quiet
                   (current-buffer) reading))))

(defun gemini-companion-guard--await-quiet (buffer reading)
  "Record once that no key has been typed for a while since READING of BUFFER.
If input is pending, or Emacs has been busy, check again after that while."
  (gemini-companion-guard--note-quiet buffer reading)
  (when (and (gemini-companion-guard--current-p buffer reading)
             (null (gemini-companion-guard--reading-keys reading)))
    (run-at-time gemini-companion-guard-quiet-seconds nil
                 #'gemini-companion-guard--await-quiet buffer reading)))

(defun gemini-companion-guard--note-quiet (buffer reading)
  "Record that no key has been typed for a while since READING of BUFFER.
The key that answers must be the first one after that."
  (let ((seconds gemini-companion-guard-quiet-seconds)
        (idle (current-idle-time)))
    (cond
     ((not (and (gemini-companion-guard--current-p buffer reading)
                (eq buffer (window-buffer (selected-window)))))
      (gemini-companion-guard--forget-drawing buffer reading)
      ;; Another window may be selected for a moment only, without a redisplay.
      (when (buffer-live-p buffer)
        (force-window-update buffer)))
     ((and idle
           (not (input-pending-p))
           (<= seconds (float-time idle))
           (<= seconds (- (float-time)
                          (gemini-companion-guard--reading-since reading))))
      (setf (gemini-companion-guard--reading-keys reading) num-input-keys)))))

(defun gemini-companion-guard--forget-drawing (buffer reading)
  "Forget READING of BUFFER, if there is one: it must be drawn again."
  (when reading
    (cancel-timer (gemini-companion-guard--reading-timer reading)))
  (when (gemini-companion-guard--current-p buffer reading)
    (with-current-buffer buffer
      (setq gemini-companion-guard--reading nil))))

(defun gemini-companion-guard--current-p (buffer reading)
  "Return non-nil if BUFFER is live, and READING is the one that counts there."
  (and (buffer-live-p buffer)
       (eq reading (buffer-local-value 'gemini-companion-guard--reading buffer))))

;;;; Burst

(defun gemini-companion-guard-no-burst (problem)
  "Signal a `user-error' with PROBLEM, a string, if another key follows at once."
  (unless (sit-for gemini-companion-guard-burst-seconds)
    (user-error "%s" problem)))

;;;; Ignored keys

(defun gemini-companion-guard-ignore-keys (keys reason)
  "Ignore KEYS for a second, or until another key is typed, and report REASON.
KEYS is a list of keys as for `kbd'.  What they answer has ended, and a key that
is typed once too often would become text of another buffer."
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
  "Ignore no keys any more."
  (cancel-function-timers #'gemini-companion-guard-heed-keys)
  (funcall gemini-companion-guard--end-ignoring)
  (setq gemini-companion-guard--end-ignoring #'ignore))

(provide 'gemini-companion-guard)
;;; gemini-companion-guard.el ends here
