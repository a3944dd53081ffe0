;;; asking.el --- The Emacs of a judged run of questions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What permissions.py asks Emacs about its questions, and a record of each command that
;; a key runs.

;;; Code:

(require 'gemini-companion-inquiry)
(require 'gemini-companion-permission)
(require 'gemini-companion-plan)
(require 'json)

;; Five crashes within minutes would turn the mode off.
(setq gemini-companion-server-delays (make-list 100000 0)
      create-lockfiles nil)

(defun asking-text (permission)
  "Return the text that PERMISSION is about: a command, a plan or a question."
  (cond ((gemini-companion-plan-p permission)
         (gemini-companion-plan-text permission))
        ((gemini-companion-inquiry-p permission)
         (gemini-companion-inquiry-choice-question
          (car (gemini-companion-inquiry-choices permission))))
        (t (gemini-companion-permission-command permission))))

(defun asking-all ()
  "Return the open permissions, plans and questions of models, oldest first."
  (seq-filter #'gemini-companion-permission-p (gemini-companion-requests)))

(defun asking-find (command)
  "Return the open permission about COMMAND, or nil."
  (seq-find (lambda (permission)
              (equal command (asking-text permission)))
            (asking-all)))

(defun asking-open ()
  "Return the open permissions, a vector of (COMMAND HOOK-WAITS)."
  (vconcat (mapcar (lambda (permission)
                     (vector (asking-text permission)
                             (and (gemini-companion-permission-answer permission)
                                  t)))
                   (asking-all))))

(defun asking-show (command)
  "Select the buffer of the permission about COMMAND; return whether there is one.
It may be one that the CLI asks in its terminal by now."
  (when-let* ((permission (asking-find command)))
    (if (gemini-companion-permission-answer permission)
        (gemini-companion-request-show permission)
      (when-let* ((buffer (gemini-companion-request-buffer permission)))
        (pop-to-buffer buffer)))
    (eq (window-buffer) (gemini-companion-request-buffer permission))))

(defvar asking-next nil
  "The command of the permission that F5 selects.")

(global-set-key (kbd "<f5>") (lambda () (interactive) (asking-show asking-next)))

(defun asking-showing ()
  "Return what the selected window shows: its TEXT, whether the end, and keys answer."
  (with-current-buffer (window-buffer)
    (list
     (cons 'buffer (buffer-name))
     (cons 'text (and (derived-mode-p 'gemini-companion-permission-mode)
                      (buffer-substring-no-properties (point-min) (point-max))))
     (cons 'end (and (pos-visible-in-window-p (point-max)) t))
     (cons 'answers (eql (window-use-time)
                         gemini-companion-permission--drawn)))))

(defun asking-record (&rest facts)
  "Append a record of FACTS, an alist, see recorder.py."
  (let ((coding-system-for-write 'utf-8-unix))
    (write-region (concat (json-encode `((at . ,(float-time)) ,@facts)) "\n")
                  nil (getenv "JUDGE_RECORDS") t 'silent)))

(defun asking-note-command ()
  "Record the command that a key runs, and where."
  (asking-record '(what . "command")
                 (cons 'keys (key-description (this-command-keys-vector)))
                 (cons 'command (format "%s" this-command))
                 (cons 'buffer (buffer-name))))
(add-hook 'pre-command-hook #'asking-note-command)

(provide 'asking)
;;; asking.el ends here
