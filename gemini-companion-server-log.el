;;; gemini-companion-server-log.el --- The log of calls between Emacs and the server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The last calls in both directions, and errors of functions on hooks, in a
;; buffer that \[gemini-companion-events-buffer] displays.

;;; Code:

(require 'gemini-companion-windows-at-once)
(require 'ring)
(require 'seq)

(defvar gemini-companion-server-log--events (make-ring 500)
  "The last events, lists of TIME, DIRECTION, METHOD and ARGS.")

(define-derived-mode gemini-companion-events-mode special-mode "Gemini events"
  "The last calls between Emacs and the server of gemini-companion.
\\{gemini-companion-events-mode-map}"
  (setq-local truncate-lines t
              revert-buffer-function #'gemini-companion-server-log--show))

(define-key gemini-companion-events-mode-map
  [remap quit-window] #'gemini-companion-quit-window)

(defun gemini-companion-server-log-record (direction method &optional args)
  "Record that METHOD was called with ARGS.
DIRECTION is `sent' or `received', as seen from Emacs, or `failed'
for an error here."
  (ring-insert gemini-companion-server-log--events
               (list (current-time) direction method
                     (mapcar #'gemini-companion-server-log--shortened
                             (pcase method
                               ;; The call `hello' carries a secret.
                               ('hello nil)
                               ;; The call `ask' carries texts of files.
                               ('ask (seq-remove #'sequencep args))
                               (_ args))))))

(defmacro gemini-companion-server-log-guarded (name &rest body)
  "Run BODY, and record an error in it under NAME instead of signaling it.
Emacs drops some hook functions that fail, or skips the rest of them."
  (declare (indent 1) (debug t))
  (let ((problem (make-symbol "problem")))
    `(condition-case ,problem
         (progn ,@body)
       (error (gemini-companion-server-log-record
               'failed ,name (list (symbol-name (car ,problem))))))))

(defun gemini-companion-server-log--shortened (value)
  (cond ((and (stringp value) (< 300 (length value)))
         (format "%s... (%d characters)" (substring value 0 300)
                 (length value)))
        ((proper-list-p value)
         (mapcar #'gemini-companion-server-log--shortened value))
        (t value)))

(defun gemini-companion-server-log--show (&rest _)
  "Write the events into the current buffer, the last one below."
  (let ((inhibit-read-only t)
        (print-escape-newlines t))
    (erase-buffer)
    (pcase-dolist (`(,time ,direction ,method ,args)
                   (reverse (ring-elements gemini-companion-server-log--events)))
      (insert (format-time-string "%H:%M:%S.%3N" time)
              (alist-get direction '((sent . " -> ") (received . " <- ")
                                     (failed . " !! ")))
              (symbol-name method)
              (mapconcat (lambda (arg) (format " %S" arg)) args "")
              "\n"))
    (goto-char (point-max))))

;;;###autoload
(defun gemini-companion-events-buffer ()
  "Show what Emacs and the server have sent each other."
  (interactive)
  (with-current-buffer (get-buffer-create "*gemini-companion events*")
    (gemini-companion-events-mode)
    (gemini-companion-server-log--show)
    (gemini-companion-windows-at-once
      (pop-to-buffer (current-buffer)))))

(provide 'gemini-companion-server-log)
;;; gemini-companion-server-log.el ends here
