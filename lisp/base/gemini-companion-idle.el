;;; gemini-companion-idle.el --- Whether the user is idle, and announcements  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Whether Emacs is between two commands, and whether the user has paused, so that
;; something may appear; and announcements in the echo area that take nothing away.

;;; Code:



;;;; What the user does

(defvar gemini-companion-idle--input (cons num-nonmacro-input-events 0)
  "Number of the last input event, and the time when it was noticed.")

(defun gemini-companion-idle--typing-p ()
  "Return non-nil if the user has typed a key in the last 0.7 seconds.
Emacs has no idle time after a prompt that no command has made, until
the next key.  Then count from when the last key was noticed."
  (unless (eql num-nonmacro-input-events (car gemini-companion-idle--input))
    (setq gemini-companion-idle--input
          (cons num-nonmacro-input-events (float-time))))
  (< -1 (float-time (or (current-idle-time) ; less if the clock was set back
                        (time-since (cdr gemini-companion-idle--input))))
     0.7))

(defun gemini-companion-idle-between-commands-p ()
  "Return non-nil if no command, prompt, search, menu or drag is in progress.
A key sequence that is not complete is in progress, too, and so is a
command that reads keys, such as `query-replace', also while the user
edits recursively in it."
  (and (not (active-minibuffer-window))
       (not (buffer-local-value 'isearch-mode (window-buffer)))
       (not (bound-and-true-p transient--prefix))
       (null prefix-arg)
       ;; Eat and lsp-ui track the mouse all the time, without a map for a drag.
       (not (and track-mouse overriding-terminal-local-map))
       ;; `real-this-command' may be left from a prompt that no command has made.
       (not (backtrace-frame 0 'command-execute))
       ;; What calls this timer, such as another one, may ask by itself, or Emacs
       ;; is starting.  A batch job always does something.
       (or noninteractive
           (not (backtrace-frame 1 'timer-event-handler)))
       ;; Complete keys may be left from such a question.
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
  "Show TEXT in the echo area, after what is there, in one line.
What is there is shortened for it, as it is in the log already.
Only log it while the minibuffer is in use.  Return a function that
removes it again, and leaves the rest."
  (let* ((inhibit-message (and (active-minibuffer-window) t))
         (rest (or (current-message) ""))
         (room (- (frame-width) (string-width text) 3))
         (all (if (or (equal "" rest) (< room 10))
                  text
                (concat (truncate-string-to-width
                         (string-replace "\n" " " rest) room nil nil t)
                        "; " text))))
    (message "%s" all)
    (lambda ()
      (let* ((message-log-max nil)
             (shown (or (current-message) ""))
             (left (if (equal all shown)
                       rest
                     (string-replace (concat text "; ") "" shown))))
        (unless (equal left shown)
          (message "%s" left))))))

(provide 'gemini-companion-idle)
;;; gemini-companion-idle.el ends here
