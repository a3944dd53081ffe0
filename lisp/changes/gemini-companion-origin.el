;;; gemini-companion-origin.el --- Where a line comes from  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The origin of a line says which CLI has written it, when, for which prompt, and what
;; the user has decided about it.  It is made of a hunk of an edit, and has no texts of
;; it, so the record of a file can remember it when the edit is forgotten.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-client)
(require 'gemini-companion-edit)
(require 'gemini-companion-lines)
(require 'gemini-companion-record)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)

;;;; State

(cl-defstruct (gemini-companion-origin
               (:noinline t)
               (:constructor gemini-companion-origin--make)
               (:copier nil))
  "Where lines come from.  It is printed with what is saved for the next Emacs.
CLIENT and VERSION name the CLI, see `gemini-companion-session'.  SINCE is the
time at which it wrote the lines, and BEGAN that at which its turn began, in
seconds.  PROMPT is the first line of the prompt, if the CLI has reported that, or
nil, and COMMAND is the command or the tool that wrote the lines, or nil.

REVIEWED is `accepted' before the write, `kept' after it, or nil.  EDITED is
`yours' if the user had changed the line in the proposal, `others' if others
changed it before it was kept, or nil."
  client version since began prompt command reviewed edited)

;;;; Origins

(defun gemini-companion-origin-function ()
  "Return a function to call for the origin of a line.
It is called with a hunk, and with HOW and the text of the line, see
`gemini-companion-record-forget'.  Equal origins of an edit are the same object."
  (let ((known (make-hash-table :test 'eq)))
    (lambda (hunk how text)
      (let* ((edit (gemini-companion-record-hunk-edit hunk))
             (entry (or (gethash edit known)
                        (puthash edit (list (gemini-companion-origin--proposed edit))
                                 known)))
             (reviewed (gemini-companion-origin--reviewed hunk))
             (edited (cond ((eq how 'others) 'others)
                           ((and (eq how t) (car entry)
                                 (not (gethash (gemini-companion-origin--words text)
                                               (car entry))))
                            'yours))))
        (or (cl-find-if (lambda (origin)
                          (and (eq reviewed (gemini-companion-origin-reviewed origin))
                               (eq edited (gemini-companion-origin-edited origin))))
                        (cdr entry))
            (car (push (gemini-companion-origin--of-edit edit reviewed edited)
                       (cdr entry))))))))

(defun gemini-companion-origin--proposed (edit)
  "Return a table with the lines that the CLI of EDIT proposed.
Return nil if the user has accepted the proposal as it was."
  (let ((proposed (gemini-companion-edit-proposed edit))
        (after (gemini-companion-edit-after edit)))
    (when (and (gemini-companion-edit-accepted-p edit)
               proposed after (not (equal proposed after)))
      (let ((table (make-hash-table :test 'equal)))
        (seq-doseq (line (gemini-companion-lines-split proposed))
          (puthash (gemini-companion-origin--words line) t table))
        table))))

(defun gemini-companion-origin--words (line)
  "Return LINE without white space, which a formatter may change."
  (replace-regexp-in-string "[ \t\r\n]+" "" line))

(defun gemini-companion-origin--reviewed (hunk)
  "Return what the user has decided about HUNK: `accepted', `kept' or nil."
  (pcase (gemini-companion-record-hunk-reviewed hunk)
    ('nil nil)
    ('kept 'kept)
    (_ (and (eq 'accepted (gemini-companion-edit-final-answer
                           (gemini-companion-record-hunk-edit hunk)))
            'accepted))))

(defun gemini-companion-origin--of-edit (edit reviewed edited)
  "Return a new origin of EDIT with REVIEWED and EDITED."
  (let ((session (gemini-companion-edit-session edit))
        (turn (gemini-companion-edit-turn edit)))
    (gemini-companion-origin--make
     :client (gemini-companion-session-client session)
     :version (gemini-companion-session-version session)
     :since (gemini-companion-edit-since edit)
     :began (and turn (gemini-companion-turn-began turn))
     :prompt (and turn
                  (gemini-companion-turn-reported turn)
                  (gemini-companion-turn-prompt turn))
     :command (gemini-companion-edit-command edit)
     :reviewed reviewed :edited edited)))

(defun gemini-companion-origin-phrase (origin &optional formatted)
  "Return a phrase about ORIGIN for the user.
If FORMATTED is non-nil, others have changed white space or punctuation since."
  (let ((command (gemini-companion-origin-command origin))
        (prompt (gemini-companion-origin-prompt origin)))
    (string-join
     (delq nil
           (list
            (gemini-companion-client-title (gemini-companion-origin-client origin))
            (format-time-string "%F %R" (gemini-companion-origin-since origin))
            (and command (concat "by " (gemini-companion-edit-command-text command)))
            (pcase (gemini-companion-origin-reviewed origin)
              ('nil "not reviewed")
              (reviewed (symbol-name reviewed)))
            (pcase (gemini-companion-origin-edited origin)
              ('yours "with words of yours")
              ('others "changed since by you or another program"))
            (and formatted "formatted since")
            (if prompt
                (format "prompt: %s" (gemini-companion-text-escaped-line prompt 200))
              "prompt unknown")))
     ", ")))

(provide 'gemini-companion-origin)
;;; gemini-companion-origin.el ends here
