;;; gemini-companion-log.el --- The log of calls between Emacs and the server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Record the last calls between Emacs and the server, and errors of functions on
;; hooks; M-x gemini-companion-events-buffer displays them.

;;; Code:

(require 'seq)

;;;; State

(defvar gemini-companion-log--events nil
  "The last events, lists of TIME, DIRECTION, METHOD and ARGS, the newest first.
There are 500 or more.")

(defconst gemini-companion-log--texts
  '((open-diff . 3) (adopt-diff . 3) (diff-accepted . 1) (diff-rejected . 1)
    (context-update . 0) (prompt . 1) (remote-write . 3))
  "Alist from calls that carry a text of the user to the index of that argument.")

(define-derived-mode gemini-companion-events-mode special-mode "Gemini events"
  "The last calls between Emacs and the server of gemini-companion.
\\{gemini-companion-events-mode-map}"
  :interactive nil
  (setq-local truncate-lines t
              revert-buffer-function #'gemini-companion-log--show))

;;;; Events

(defun gemini-companion-log-record (direction method &optional args)
  "Record that METHOD was called with ARGS.
DIRECTION is `sent' or `received', as seen from Emacs; `failed' for an error
here; or `noted' for what only developers want to know.  METHOD is a
symbol, or a string after an error."
  (push (list (current-time) direction method
              (mapcar #'gemini-companion-log--shortened
                      (pcase method
                        ;; The call `hello' carries a secret.
                        ('hello nil)
                        ;; The call `ask' carries texts of files.
                        ('ask (seq-remove #'sequencep args))
                        (_ (gemini-companion-log--without-text method args)))))
        gemini-companion-log--events)
  (when (nthcdr 1000 gemini-companion-log--events)
    (setcdr (nthcdr 499 gemini-companion-log--events) nil)))

(defmacro gemini-companion-log-guarded (name &rest body)
  "Run BODY, and record an error in it under NAME instead of signaling it.
Return the value of BODY, or nil after an error.  NAME is a symbol, such as
`context'; or a string that names the action, such as \"Stopping a
component\"; a string also displays the error.  Use a string only for an
action that does not run at each key.

Use this on hooks, since Emacs removes some hook functions that fail and skips
the functions after them; and in loops, which an error would end.  With
`debug-on-error', the debugger is entered."
  (declare (indent 1) (debug t))
  (let ((problem (make-symbol "problem")))
    `(condition-case-unless-debug ,problem
         (progn ,@body)
       (error (gemini-companion-log--failed ,name ,problem)))))

(defun gemini-companion-log--failed (name problem)
  "Record PROBLEM, the data of an error, under NAME; return nil.
For NAME, see `gemini-companion-log-guarded'.  The log has only the
symbol of the error, as its message may contain text of a file."
  (gemini-companion-log-record 'failed name
                                      (list (symbol-name (car problem))))
  (when (stringp name)
    (message "%s: %s" name (error-message-string problem)))
  nil)

(defun gemini-companion-log--without-text (method args)
  "Return ARGS of METHOD with the size of the text of the user, if there is one."
  (let ((index (alist-get method gemini-companion-log--texts)))
    (seq-map-indexed (lambda (arg i)
                       (cond ((not (eq i index)) arg)
                             ((stringp arg) (format "(%d characters)" (length arg)))
                             ((and (listp arg) (not (keywordp (car arg))))
                              (format "(%d files)" (length arg)))
                             ;; A large text is in a private file.
                             (t arg)))
                     args)))

(defun gemini-companion-log--shortened (value)
  "Return VALUE, an argument of a call, with its long strings truncated.
A string in a list is truncated as well, to 300 characters and its length:
\"abc... (90000 characters)\"."
  (cond ((and (stringp value) (< 300 (length value)))
         (format "%s... (%d characters)" (substring value 0 300)
                 (length value)))
        ((proper-list-p value)
         (mapcar #'gemini-companion-log--shortened value))
        (t value)))

(defun gemini-companion-log--show (&rest _)
  "Write the events into the current buffer, the newest at the end."
  (let ((inhibit-read-only t)
        (print-escape-newlines t))
    (erase-buffer)
    (pcase-dolist (`(,time ,direction ,method ,args)
                   (reverse gemini-companion-log--events))
      (insert (format-time-string "%H:%M:%S.%3N" time)
              (alist-get direction '((sent . " -> ") (received . " <- ")
                                     (failed . " !! ") (noted . " .. ")))
              (format "%s" method)
              (mapconcat (lambda (arg) (format " %S" arg)) args "")
              "\n"))
    (goto-char (point-max))))

;;;; Commands

(defun gemini-companion-events-buffer ()
  "Display the last events between Emacs and the server."
  (interactive)
  (with-current-buffer (get-buffer-create "*gemini-companion events*")
    (gemini-companion-events-mode)
    (gemini-companion-log--show)
    (pop-to-buffer (current-buffer) '(nil (category . gemini-companion-log)))))

(provide 'gemini-companion-log)
;;; gemini-companion-log.el ends here
