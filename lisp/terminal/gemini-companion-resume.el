;;; gemini-companion-resume.el --- Conversations of the CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Start a CLI with its own list of conversations, and restart CLIs with theirs.

;;; Code:

(require 'gemini-companion-choice)
(require 'gemini-companion-cli)
(require 'gemini-companion-client)
(require 'gemini-companion-session)
(require 'gemini-companion-terminal)
(require 'gemini-companion-turn)

;;;; Restart

(defun gemini-companion-resume--terminals (&optional clients)
  "Return the buffers of terminals with a live CLI that can resume.
CLIENTS is nil or a list of keys of `gemini-companion-clients', the CLIs to
include.  CLIs on other hosts are omitted."
  (seq-filter
   (lambda (buffer)
     (when-let* ((cli (buffer-local-value 'gemini-companion-terminal-cli buffer))
                 (client (gemini-companion-terminal-cli-client cli)))
       (and (null (gemini-companion-terminal-cli-remote cli))
            (or (null clients) (member client clients))
            (process-live-p (get-buffer-process buffer))
            (gemini-companion-client-resume-arguments client))))
   (buffer-list)))

(defun gemini-companion-resume-running (clients)
  "Return the names of the CLIs of CLIENTS that can be restarted, strings."
  (mapcar (lambda (buffer)
            (gemini-companion-cli-name
             (buffer-local-value 'gemini-companion-terminal-cli buffer)))
          (gemini-companion-resume--terminals clients)))

(defun gemini-companion-resume--conversation-p (buffer)
  "Return non-nil if the CLI in the terminal BUFFER has a conversation.
Return nil if the CLI is not connected, as Emacs does not know then."
  (seq-some (lambda (session)
              (and (eq buffer (gemini-companion-session-terminal session))
                   (gemini-companion-session-turn session)))
            (gemini-companion-sessions)))

;;;; Commands

(defun gemini-companion-run-again ()
  "Restart the CLIs in terminals of this Emacs; ask about each of them.
A CLI reads its links, extensions and settings only when it starts.  Its
turn ends, and its open proposals are closed.  If it has a conversation, it
resumes that, or asks which one to resume.  CLIs on other hosts are not
restarted."
  (interactive)
  (let ((buffers (or (gemini-companion-resume--terminals)
                     (user-error "No CLI runs in a terminal of this Emacs"))))
    (dolist (buffer buffers)
      (let ((cli (buffer-local-value 'gemini-companion-terminal-cli buffer))
            (resume (gemini-companion-resume--conversation-p buffer)))
        (when (and (gemini-companion-choice-y-or-n-p
                    (format "Restart %s%s? "
                            (gemini-companion-cli-name cli)
                            (if resume " with its conversation" "")))
                   ;; The CLI may have exited meanwhile.
                   (process-live-p (get-buffer-process buffer)))
          (delete-process (get-buffer-process buffer))
          (gemini-companion-cli-launch
           (gemini-companion-terminal-cli-with
            cli 'arguments (and resume
                                (gemini-companion-client-resume-arguments
                                 (gemini-companion-terminal-cli-client cli))))))))))

(defun gemini-companion-resume (&optional number)
  "Start the CLI of this project with its own list of conversations.
NUMBER, the prefix argument, is as for `gemini-companion-run'.  If that
CLI is running, start another one."
  (interactive "P")
  (let* ((cli (gemini-companion-cli-wanted number))
         (arguments (or (gemini-companion-client-conversations-arguments
                         (gemini-companion-terminal-cli-client cli))
                        (user-error "%s cannot resume conversations"
                                    (gemini-companion-cli-name cli)))))
    (gemini-companion-cli-check cli)
    (gemini-companion-cli-launch
     (gemini-companion-terminal-cli-with
      cli
      'arguments arguments
      'number (if (gemini-companion-cli-live-buffer cli)
                  (gemini-companion-cli-free-number cli)
                (gemini-companion-terminal-cli-number cli))))))

(provide 'gemini-companion-resume)
;;; gemini-companion-resume.el ends here
