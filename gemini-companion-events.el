;;; gemini-companion-events.el --- Log of calls between Emacs and the server  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The last calls between Emacs and the server, both ways.  They are kept in
;; memory, shortened, and displayed on request, one line for each.

;;; Code:

(require 'ring)
(require 'seq)

(defvar gemini-companion-events--ring (make-ring 500)
  "The last events, lists of TIME, DIRECTION, METHOD and ARGS.")

(define-derived-mode gemini-companion-events-mode special-mode "Gemini events"
  "The last calls between Emacs and the server of gemini-companion.
\\{gemini-companion-events-mode-map}"
  (setq-local truncate-lines t
              revert-buffer-function #'gemini-companion-events--show))

(defun gemini-companion-events-record (direction method &optional args)
  "Record that METHOD was called with ARGS.
DIRECTION is `sent' or `received', as seen from Emacs, or `failed'
for an error here."
  (ring-insert gemini-companion-events--ring
               (list (current-time) direction method
                     (mapcar #'gemini-companion-events--short args))))

(defmacro gemini-companion-events-guarded (name &rest body)
  "Run BODY, and record an error in it under NAME instead of signaling it.
Emacs drops some hook functions that fail, or skips the rest of them."
  (declare (indent 1) (debug t))
  (let ((problem (make-symbol "problem")))
    `(condition-case ,problem
         (progn ,@body)
       (error (gemini-companion-events-record
               'failed ,name (list (symbol-name (car ,problem))))))))

(defun gemini-companion-events--short (value)
  (cond ((and (stringp value) (< 300 (length value)))
         (format "%s... (%d characters)" (substring value 0 300)
                 (length value)))
        ((proper-list-p value)
         (mapcar #'gemini-companion-events--short value))
        (t value)))

(defun gemini-companion-events--show (&rest _)
  (let ((inhibit-read-only t)
        (print-escape-newlines t))
    (erase-buffer)
    (pcase-dolist (`(,time ,direction ,method ,args)
                   (reverse (ring-elements gemini-companion-events--ring)))
      (insert (format-time-string "%H:%M:%S.%3N" time)
              (pcase direction
                ('sent " -> ")
                ('received " <- ")
                ('failed " !! "))
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
    (gemini-companion-events--show)
    (pop-to-buffer (current-buffer))))

(provide 'gemini-companion-events)
;;; gemini-companion-events.el ends here
