;;; gemini-companion-comment-send.el --- Send comments as a prompt  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Send the unsent comments, and a list of the changes that the user has undone, to a
;; CLI as one prompt.  The prompt is delivered like a prompt of
;; `gemini-companion-compose'.  The comments stay in their files, marked as sent.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-changes)
(require 'gemini-companion-choice)
(require 'gemini-companion-comment)
(require 'gemini-companion-comment-opening)
(require 'gemini-companion-compose)
(require 'gemini-companion-context)
(require 'gemini-companion-edit)
(require 'gemini-companion-idle)
(require 'gemini-companion-names)
(require 'gemini-companion-prompt)
(require 'gemini-companion-send)
(require 'gemini-companion-session)
(require 'gemini-companion-turn)
(require 'gemini-companion-undone)
(require 'gemini-companion-view)

;;;; Selection

(defun gemini-companion-comment-send--unsent (session)
  "Return the comments for the CLI of SESSION that were not sent."
  (seq-filter (lambda (comment)
                (and (gemini-companion-comment-waiting-p comment)
                     (gemini-companion-comment-send--for-p comment session)))
              (gemini-companion-comments)))

(defun gemini-companion-comment-send--mine (session)
  "Return the comments for the CLI of SESSION that were not sent, in order.
They are sorted by the time at which their files were written, and by line."
  (let* ((mine (gemini-companion-comment-send--unsent session))
         (files (seq-uniq
                 (append (mapcar #'gemini-companion-changes-file-name
                                 (gemini-companion-changes-files 'all))
                         (mapcar #'gemini-companion-comment-file mine)))))
    (seq-mapcat (lambda (file)
                  (seq-filter (lambda (comment) (memq comment mine))
                              (gemini-companion-comments-of-file file)))
                files)))

(defun gemini-companion-comment-send--for-p (comment session)
  "Return non-nil if COMMENT is for the CLI of SESSION.
If the CLI of a comment has exited, the comment is for the next CLI of that
kind in the same directory.  If a comment has no CLI, it is for each CLI whose
directory has its file."
  (let ((other (gemini-companion-comment-session comment)))
    (cond ((null other)
           (seq-some (apply-partially #'gemini-companion-session-same-p session)
                     (gemini-companion-send-sessions
                      (gemini-companion-comment-path comment))))
          (t (gemini-companion-session-next-p session other)))))

(defun gemini-companion-comment-send--next (session)
  "Return SESSION, or if it has exited, the next one of its kind and directory.
Signal an error if there is none."
  (cond ((gemini-companion-session-connected-p session) session)
        ((seq-find (lambda (other)
                     (gemini-companion-session-next-p other session))
                   (gemini-companion-sessions)))
        (t (user-error "%s has exited; your comments wait for the next one in \
its directory"
                       (gemini-companion-session-name session)))))

(defun gemini-companion-comment-send--text (comments undone session)
  "Return the prompt with COMMENTS and UNDONE for the CLI of SESSION.
It begins with the opening for that CLI, if there is one."
  (concat
   (when-let* ((opening (gemini-companion-comment-opening session)))
     (concat opening (and (or comments undone) "\n\n")))
   (and (or comments undone)
        "Comments on your changes:\n\n")
   (mapconcat (lambda (comment)
                (gemini-companion-comment-for-cli comment session))
              comments "\n\n")
   (and comments undone "\n\n")
   (and undone "I undid these changes of yours; read the files again:\n")
   (gemini-companion-undone-rows undone session)))

(defun gemini-companion-comment-send--shared (comments session)
  "Return those of COMMENTS that may be sent to the CLI of SESSION.
Ask about each file that is not shared whether to send the comments on it."
  (let ((hidden (seq-remove (lambda (path)
                              (gemini-companion-context-text-shared-p path session))
                            (seq-uniq (mapcar #'gemini-companion-comment-path
                                              comments)))))
    (dolist (path hidden comments)
      (unless (gemini-companion-choice-y-or-n-p
               (format "%s is not shared; send your comments on it \
without its lines? "
                       (gemini-companion-names-absolute path)))
        (setq comments (seq-remove (lambda (comment)
                                     (equal path (gemini-companion-comment-path
                                                  comment)))
                                   comments))))))

(defun gemini-companion-comment-send--send (session comments undone)
  "Submit COMMENTS and UNDONE to the CLI of SESSION.
They count as sent when the prompt was submitted.  If that fails, they are as
before.  For a CLI that is in no terminal of this Emacs, the prompt is added to
the kill ring, and they count as copied until that CLI reports its next prompt."
  (let* ((opening (gemini-companion-comment-opening session))
         (text (gemini-companion-prompt-quote
                (gemini-companion-comment-send--text comments undone session)
                session t))
         (done (lambda (result)
                 (gemini-companion-comment-set-result comments session result)
                 (when (memq result '(sent copied))
                   ;; The user may have written another one meanwhile.
                   (when (equal opening (gemini-companion-comment-opening session))
                     (gemini-companion-comment-opening-set session nil))
                   (gemini-companion-undone-set-sent undone session))
                 (gemini-companion-undone-set-going undone nil)
                 ;; The next prompt of comments has all of it again.
                 (and (eq 'withdrawn result) 'unsent))))
    (gemini-companion-comment-set-going comments)
    ;; The hook of the prompt that is submitted must not report them as well.
    (gemini-companion-undone-set-going undone 'sent)
    (condition-case problem
        (gemini-companion-compose-deliver text session nil done)
      (error
       (funcall done nil)
       (signal (car problem) (cdr problem))))
    (gemini-companion-comment-show-here)))

;;;; After a turn

(defun gemini-companion-comment-send-waiting (session)
  "Return how many comments for SESSION were not sent, as a text, or nil."
  (let ((count (seq-count (lambda (comment)
                            (null (gemini-companion-comment-copied comment)))
                          ;; A header line asks for this at each redisplay: their
                          ;; order would cost a count of lines for each.
                          (gemini-companion-comment-send--unsent session))))
    (when (< 0 count)
      (format (ngettext "%d comment: %s" "%d comments: %s" count) count
              (substitute-command-keys "\\[gemini-companion-send-comments]")))))

(defun gemini-companion-comment-send-follow (session state)
  "Handle a change of SESSION, which is in STATE now.
Copied comments are sent once it reports another prompt.  At the end of a turn,
a message shows how many comments were not sent."
  (when-let* ((turn (gemini-companion-session-turn session)))
    (let ((copied (seq-filter
                   (lambda (comment)
                     (let ((time (gemini-companion-comment-copied comment)))
                       (and time
                            (gemini-companion-turn-reported turn)
                            (< time (gemini-companion-turn-began turn)))))
                   (gemini-companion-comment-send--unsent session))))
      (when copied
        (gemini-companion-comment-set-sent copied session)))
    (when (and (eq state 'ready)
               (gemini-companion-turn-ended turn))
      (when-let* ((waiting (gemini-companion-comment-send-waiting session)))
        (gemini-companion-idle-announce waiting)))))

;;;; Commands

(defun gemini-companion-send-comments (&optional session copied)
  "Send your comments on files to a CLI, all as one prompt.
A comment is sent with the name of its file, its lines and their numbers.
The prompt also lists what you have undone since the last one.
SESSION is by default the session at point in the overview, or the only one
for which you have comments; otherwise you are asked.

If the CLI runs in no terminal of this Emacs, the prompt is added to the kill
ring.  With COPIED, a prefix argument, record that you have pasted it."
  (interactive (list nil current-prefix-arg))
  (let* ((session (gemini-companion-comment-send--next
                   (or session (gemini-companion-comment-send--session))))
         (mine (gemini-companion-comment-send--mine session)))
    (if copied
        (let ((pasted (or (seq-filter #'gemini-companion-comment-copied mine)
                          (user-error "No comments were copied for this CLI"))))
          (gemini-companion-comment-set-sent pasted session)
          (gemini-companion-comment-show-here))
      (let ((comments (gemini-companion-comment-send--shared mine session))
            (undone (gemini-companion-undone-of-session session)))
        (cond (comments)
              ((gemini-companion-comment-opening session))
              (t (user-error "No comments to send")))
        (gemini-companion-comment-send--send session comments undone)))))

(defun gemini-companion-comment-send--session ()
  "Return the session at point in the overview, or else read one."
  (or (and gemini-companion-edits-view
           (gemini-companion-view-session gemini-companion-edits-view))
      (gemini-companion-session-read
       (or (seq-uniq
            (seq-filter #'gemini-companion-comment-send--unsent
                        (gemini-companion-sessions))
            #'gemini-companion-session-same-p)
           (gemini-companion-sessions)))))

(provide 'gemini-companion-comment-send)
;;; gemini-companion-comment-send.el ends here
