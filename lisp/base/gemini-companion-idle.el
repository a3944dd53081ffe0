;;; gemini-companion-idle.el --- Whether the user is idle, and announcements  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Find out whether Emacs is between two commands and the user has paused, so that a
;; view may appear.  Announce in the echo area, and keep the message that is there.

;;; Code:



;;;; What the user does

(defun gemini-companion-idle-since-p (time seconds)
  "Return non-nil if TIME, as of `float-time', is less than SECONDS ago.
If the clock was set back meanwhile, the time is over."
  (< -1 (- (float-time) time) seconds))

(defvar gemini-companion-idle--input (cons num-nonmacro-input-events 0)
  "Number of the last input event, and the time when it was noticed.")

(defun gemini-companion-idle--typing-p ()
  "Return non-nil if the user has typed a key in the last 0.7 seconds.
After a prompt outside of a command, Emacs has no idle time until the next
key; then measure from the call that first saw the last key."
  (unless (eql num-nonmacro-input-events (car gemini-companion-idle--input))
    (setq gemini-companion-idle--input
          (cons num-nonmacro-input-events (float-time))))
  (< -1 (float-time (or (current-idle-time) ; less if the clock was set back
                        (time-since (cdr gemini-companion-idle--input))))
     0.7))

(defun gemini-companion-idle--output-p ()
  "Return non-nil if `term' called this timer while it displays output.
Its process filter calls `redisplay' after each output; while a program draws,
most timers are called there.  The filter prompts for nothing, and if somebody
else prompts, the filter does not run at top level."
  ;; In native code, the call of a primitive function has no frame.
  (and (memq (nth 1 (backtrace-frame 1 'timer-event-handler))
             '(redisplay term-emulate-terminal))
       (backtrace-frame 0 'term-emulate-terminal)
       (null (backtrace-frame 1 'term-emulate-terminal))))

(defun gemini-companion-idle-between-commands-p ()
  "Return non-nil if no command, prompt, search, menu or drag is in progress.
Neither may an incomplete key sequence be, nor a command that reads keys, such
as `query-replace', or a recursive edit in it."
  (and (not (active-minibuffer-window))
       (not (buffer-local-value 'isearch-mode (window-buffer)))
       (not (bound-and-true-p transient--prefix))
       (null prefix-arg)
       ;; A drag has a map.  Eat and lsp-ui always track the mouse, without one.
       (not (and track-mouse overriding-terminal-local-map))
       ;; `real-this-command' may be stale after a prompt outside of a command.
       (not (backtrace-frame 0 'command-execute))
       ;; If this timer does not run at top level, its caller may be prompting, or
       ;; Emacs is starting.  A batch job never is at top level.
       (or noninteractive
           (not (backtrace-frame 1 'timer-event-handler))
           (gemini-companion-idle--output-p))
       ;; Complete keys may be left from a prompt outside of a command.
       (let ((keys (this-single-command-keys)))
         (or (equal [] keys)
             (not (keymapp (with-current-buffer (window-buffer)
                             (key-binding keys))))))))

(defun gemini-companion-idle-user-p ()
  "Return non-nil if a view may appear without disturbing the user."
  (and (gemini-companion-idle-between-commands-p)
       (zerop (recursion-depth))
       (not executing-kbd-macro)
       (not defining-kbd-macro)
       (not (input-pending-p))
       (not (gemini-companion-idle--typing-p))))

;;;; Announcements

(defun gemini-companion-idle-announce (text)
  "Append TEXT to the message in the echo area, in one line.
Shorten the previous message to fit; the log has it in full.  If the
minibuffer is in use, only log TEXT.  Return a function without arguments that
removes TEXT again, and restores the previous message."
  (let* ((inhibit-message (and (active-minibuffer-window) t))
         (previous (or (current-message) ""))
         (columns (- (frame-width) (string-width text) 3))
         (announced (if (or (equal "" previous) (< columns 10))
                        text
                      (concat (truncate-string-to-width
                               (string-replace "\n" " " previous)
                               columns nil nil t)
                              "; " text))))
    (message "%s" announced)
    (lambda ()
      (let* ((message-log-max nil)
             (shown (or (current-message) ""))
             (restored (if (equal announced shown)
                           previous
                         (string-replace (concat text "; ") "" shown))))
        (unless (equal restored shown)
          (message "%s" restored))))))

(provide 'gemini-companion-idle)
;;; gemini-companion-idle.el ends here
