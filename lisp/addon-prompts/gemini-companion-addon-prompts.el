;;; gemini-companion-addon-prompts.el --- The add-on for prompts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Declare the add-on to the core before its files are loaded: its commands, and the
;; functions that load its files when they are needed.  The add-on composes prompts and
;; types them into a CLI.

;;; Code:

(require 'gemini-companion-part)
(require 'seq)
(require 'subr-x)

(autoload 'gemini-companion-comment-send-follow "gemini-companion-comment-send")
(autoload 'gemini-companion-comment-send-waiting "gemini-companion-comment-send")
(autoload 'gemini-companion-undone-addition "gemini-companion-undone")
(autoload 'gemini-companion-undone-record "gemini-companion-undone")
(declare-function gemini-companion-comment-waiting-p "gemini-companion-comment")
(declare-function gemini-companion-comments-unsent "gemini-companion-comment")
(declare-function gemini-companion-edit-comments "gemini-companion-edit")
(declare-function gemini-companion-edit-reject-with-reason
                  "gemini-companion-prompt")
(declare-function gemini-companion-session-name "gemini-companion-session")
(declare-function gemini-companion-session-same-p "gemini-companion-session")
(declare-function gemini-companion-undone-note "gemini-companion-undone")
(declare-function gemini-companion-undone-session-of "gemini-companion-undone")
(defvar gemini-companion-label-unsent-function)
(defvar gemini-companion-overview-row-notes-function)
(defvar gemini-companion-turn-addition-function)
(defvar gemini-companion-proposal-reject-function)

;;;; Comments

;; Most answers and turns have no comments, and load no file of the add-on.

(defun gemini-companion-addon-prompts--reject (edit)
  "Reject EDIT with its comments as the reason, if some are not on their way yet.
Return non-nil if so.  This is the value of
`gemini-companion-proposal-reject-function'."
  (when (seq-some #'gemini-companion-comment-waiting-p
                  (gemini-companion-edit-comments edit))
    (gemini-companion-edit-reject-with-reason edit "")
    t))

(defun gemini-companion-addon-prompts--comments-p ()
  "Return non-nil if there are comments that were not sent."
  (and (featurep 'gemini-companion-comment)
       (gemini-companion-comments-unsent)))

(defun gemini-companion-addon-prompts--follow (session state)
  "Call `gemini-companion-comment-send-follow' if there are comments.
SESSION and STATE are its arguments."
  (when (gemini-companion-addon-prompts--comments-p)
    (gemini-companion-comment-send-follow session state)))

(setq gemini-companion-proposal-reject-function
      #'gemini-companion-addon-prompts--reject
      gemini-companion-label-unsent-function
      (lambda (session)
        (let ((text (and (gemini-companion-addon-prompts--comments-p)
                         (gemini-companion-comment-send-waiting session))))
          (and text
               (cons text 'gemini-companion-send-comments)))))

;;;; Undone changes

(defvar gemini-companion-addon-prompts--asking nil
  "The sessions whose CLIs have asked for additions to a prompt.")

(defun gemini-companion-addon-prompts--addition (cli read)
  "Call `gemini-companion-undone-addition' if something of CLI was undone.
CLI is a session, or the processes of a CLI that is not connected, for example
since Emacs was restarted.  READ is the other argument.  This is the value of
`gemini-companion-turn-addition-function'."
  (when-let* ((session (if (listp cli)
                           (and (featurep 'gemini-companion-undone)
                                (gemini-companion-undone-session-of cli))
                         cli)))
    (cl-pushnew session gemini-companion-addon-prompts--asking
                :test #'gemini-companion-session-same-p)
    (and (featurep 'gemini-companion-undone)
         (gemini-companion-undone-addition session read))))

(defun gemini-companion-addon-prompts--notes (sessions)
  "Return notes of the overview about SESSIONS: lists (TEXT COMMAND).
This is the value of `gemini-companion-overview-row-notes-function'."
  (cl-loop for session in (and (featurep 'gemini-companion-undone) sessions)
           for text = (and (cl-member session gemini-companion-addon-prompts--asking
                                      :test #'gemini-companion-session-same-p)
                           (gemini-companion-undone-note session))
           when text
           collect (list (propertize
                          (format "%s: %s" (gemini-companion-session-name session) text)
                          'face (get-text-property 0 'face text))
                         'gemini-companion-show-undone)))

(setq gemini-companion-turn-addition-function
      #'gemini-companion-addon-prompts--addition
      gemini-companion-overview-row-notes-function
      #'gemini-companion-addon-prompts--notes)

;;;; Declarations

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'addon-prompts)))
  "Record undone changes, and follow comments that were not sent."
  '((gemini-companion-changes-undo-functions gemini-companion-undone-record)
    (gemini-companion-state-functions gemini-companion-addon-prompts--follow)))

(cl-defmethod gemini-companion-part-commands ((_part (eql 'addon-prompts)))
  "Return the rows of the commands of the add-on."
  '(("CLI" "G"
     ("s" gemini-companion-send "Send what is at point" (global)
      :enable connected))
    ("CLI" "s"
     (":" gemini-companion-send-comments "Send your comments" (global)
      :enable connected))
    ("CLI" "s"
     ("c" gemini-companion-compose "Write a prompt" (global)))
    ("Answer" "C-c C-k"
     ("C-c C-r" gemini-companion-edit-reject-with-reason "Reject, say why"
      (review) :enable to-answer))
    ("Waiting" "r"
     ("R" gemini-companion-overview-reject-with-reason "Reject with a reason"
      (overview) :enable overview-proposal))
    ("Changes" "c"
     ("s" gemini-companion-send-comments "Send comments" (overview)
      :header "send"))
    (nil "C-c C-k"
     ("C-c C-r" gemini-companion-overview-reject-with-reason nil (overview)))))

(cl-defmethod gemini-companion-part-members ((_part (eql 'addon-prompts)))
  "Return the components of the add-on; each is loaded when it is used."
  '((prompt walk) (compose prompt) (undone comment) (comment-send undone)))

;;;; Life

(cl-defmethod gemini-companion-part-stop ((_part (eql 'addon-prompts)))
  "Drop the sessions whose CLIs have asked for additions."
  (setq gemini-companion-addon-prompts--asking nil))

(provide 'gemini-companion-addon-prompts)
;;; gemini-companion-addon-prompts.el ends here
