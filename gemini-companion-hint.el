;;; gemini-companion-hint.el --- What to do for a CLI that stays apart  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software; you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.

;; This program is distributed in the hope that it will be useful,
;; but WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
;; GNU General Public License for more details.

;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; A Gemini CLI that runs in a terminal of this Emacs and has not connected
;; needs one command of its person, once: /ide enable.  Say so, once for each
;; CLI, in the echo area, when nobody types.
;;
;; Nothing tells when a program starts in a terminal.  So the terminals are
;; looked at some seconds after the person went to one or left one, and not at
;; any other time.

;;; Code:

(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-sharing)
(require 'seq)

;;;; State

(defconst gemini-companion-hint--seconds 10
  "How long a CLI may take to connect.")

(defconst gemini-companion-hint--idle-seconds 2
  "How long nobody must have typed before something is said.")

(defconst gemini-companion-hint--hooks
  '(window-buffer-change-functions window-selection-change-functions)
  "The hooks that tell where the person goes.")

(defvar gemini-companion-hint--timer nil
  "Timer of the next look or of what is to be said, or nil.")

(defvar gemini-companion-hint--told nil
  "Process ids of the CLIs of which was spoken.")

(defvar gemini-companion-hint--buffer nil
  "The buffer in which the person was last.")

;;;; Terminals

(defun gemini-companion-hint--terminal (buffer)
  "Return the live process of BUFFER if that is a terminal, else nil."
  (when-let* ((process (and (buffer-live-p buffer)
                            (get-buffer-process buffer))))
    (and (process-live-p process)
         (process-id process)
         (process-tty-name process)
         process)))

(defun gemini-companion-hint--program (process)
  "Return the process id of the program in front in the terminal PROCESS."
  (let ((child (process-running-child-p process)))
    (if (numberp child) child (process-id process))))

(defun gemini-companion-hint--gemini-p (command)
  "Return non-nil if COMMAND, a string, is a Gemini CLI to talk with."
  (and (gemini-companion-session-cli-p command)
       (null (seq-intersection
              (split-string command " " t)
              '("-p" "--prompt" "--acp" "--experimental-acp")))))

(defun gemini-companion-hint--connected-p (buffer)
  "Return non-nil if a CLI in BUFFER is connected."
  (seq-some (lambda (session)
              (eq buffer (gemini-companion-session-terminal session)))
            (gemini-companion-sessions)))

(defun gemini-companion-hint--apart (buffer)
  "Return a CLI in BUFFER that is not connected, or nil.
That is a cons of its process id and its age in seconds."
  (when-let* ((process (gemini-companion-hint--terminal buffer))
              (pid (gemini-companion-hint--program process))
              (attributes (and (not (memq pid gemini-companion-hint--told))
                               (process-attributes pid))))
    (and (gemini-companion-hint--gemini-p (alist-get 'args attributes))
         (not (gemini-companion-hint--connected-p buffer))
         (cons pid (float-time (alist-get 'etime attributes 0))))))

;;;; Looking

(defun gemini-companion-hint--notice (frame)
  "Have the terminals looked at if the person went to one in FRAME."
  (let ((buffer (window-buffer (frame-selected-window frame))))
    (unless (eq buffer gemini-companion-hint--buffer)
      (when (or (gemini-companion-hint--terminal buffer)
                (gemini-companion-hint--terminal
                 gemini-companion-hint--buffer))
        (gemini-companion-hint--wait gemini-companion-hint--seconds))
      (setq gemini-companion-hint--buffer buffer))))

(defun gemini-companion-hint--wait (seconds)
  "Have the terminals looked at in SECONDS, unless that is to be anyway."
  (unless gemini-companion-hint--timer
    (setq gemini-companion-hint--timer
          (run-at-time seconds nil #'gemini-companion-hint--look))))

(defun gemini-companion-hint--look ()
  "Look at the terminals for a CLI that is not connected."
  (setq gemini-companion-hint--timer nil)
  (when (gemini-companion-server-ready-p)
    (let ((youngest nil))
      (dolist (buffer (buffer-list))
        (pcase (gemini-companion-hint--apart buffer)
          (`(,pid . ,age)
           (if (<= gemini-companion-hint--seconds age)
               (gemini-companion-hint--plan buffer pid age)
             (setq youngest (min age (or youngest age)))))))
      (when youngest
        (gemini-companion-hint--wait
         (- (1+ gemini-companion-hint--seconds) youngest))))))

(defun gemini-companion-hint--plan (buffer pid age)
  "Speak of the CLI PID of AGE seconds in BUFFER when nobody types."
  (unless gemini-companion-hint--timer
    (setq gemini-companion-hint--timer
          (run-with-idle-timer gemini-companion-hint--idle-seconds nil
                               #'gemini-companion-hint--say
                               buffer pid age))))

(defun gemini-companion-hint--say (buffer pid age)
  "Say what to do for the CLI PID of AGE seconds in BUFFER."
  (setq gemini-companion-hint--timer nil)
  (when (and (equal pid (car (gemini-companion-hint--apart buffer)))
             (not (active-minibuffer-window)))
    (push pid gemini-companion-hint--told)
    (message (gemini-companion-hint--sentence buffer pid age)
             (buffer-name buffer))
    ;; Another may have waited for this one.
    (gemini-companion-hint--wait gemini-companion-hint--seconds)))

(defun gemini-companion-hint--directory (buffer pid)
  "Return the folder in which the process PID of BUFFER works."
  (let ((link (format "/proc/%d/cwd" pid)))
    (file-name-as-directory
     (file-truename (if (file-accessible-directory-p link)
                        link
                      (buffer-local-value 'default-directory buffer))))))

(defun gemini-companion-hint--inside-p (directory)
  "Return non-nil if a CLI in DIRECTORY may connect."
  (seq-some (lambda (root)
              (string-prefix-p (file-name-as-directory root) directory))
            (gemini-companion-sharing-roots)))

(defun gemini-companion-hint--sentence (buffer pid age)
  "Return what to say of the CLI PID of AGE seconds in BUFFER.
In it %s stands for the name of BUFFER."
  (cond ((not (gemini-companion-hint--inside-p
               (gemini-companion-hint--directory buffer pid)))
         "Gemini CLI in %s cannot connect to Emacs, as it runs outside the \
open projects: M-x gemini-companion-status")
        ((< (- (float-time) (or (gemini-companion-server-since) 0)) age)
         "Gemini CLI in %s was started before this mode was on: \
start it again, or type /ide enable there")
        (t
         "Gemini CLI in %s is not connected to Emacs: type /ide enable there \
(why: M-x gemini-companion-status)")))

;;;; Life

(defun gemini-companion-hint-ready (_how)
  "Watch for CLIs in terminals here that do not connect."
  (dolist (hook gemini-companion-hint--hooks)
    (add-hook hook #'gemini-companion-hint--notice))
  (when (seq-some #'gemini-companion-hint--terminal (buffer-list))
    (gemini-companion-hint--wait gemini-companion-hint--seconds)))

(defun gemini-companion-hint-stop ()
  "Watch no more."
  (dolist (hook gemini-companion-hint--hooks)
    (remove-hook hook #'gemini-companion-hint--notice))
  (when gemini-companion-hint--timer
    (cancel-timer gemini-companion-hint--timer))
  (setq gemini-companion-hint--timer nil
        gemini-companion-hint--told nil
        gemini-companion-hint--buffer nil))

(provide 'gemini-companion-hint)
;;; gemini-companion-hint.el ends here
