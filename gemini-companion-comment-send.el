;;; gemini-companion-comment-send.el --- Send comments as a prompt  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The comments that were not sent yet, and what the user has undone, as one prompt
;; for a CLI, delivered as a prompt of `gemini-companion-compose' is.  Comments stay,
;; marked as sent.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-baseline)
(require 'gemini-companion-changes)
(require 'gemini-companion-comment)
(require 'gemini-companion-compose)
(require 'gemini-companion-edit)
(require 'gemini-companion-hunk)
(require 'gemini-companion-names)
(require 'gemini-companion-privacy)
(require 'gemini-companion-prompt)
(require 'gemini-companion-proposal)
(require 'gemini-companion-send)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-undone)
(require 'gemini-companion-view)

;;;; Customization

(defcustom gemini-companion-tell-undone nil
  "Whether a CLI is told what you undid also if you have no comments.
`gemini-companion-send-comments' tells it with comments in any case, so
that the model does not build on what is gone."
  :type 'boolean
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

;;;; What is sent

(defvar gemini-companion-comment-send--asked nil
  "The turn in which the user was asked last whether to send comments.")

(defun gemini-companion-comment-send--mine (session)
  "Return the comments for the CLI of SESSION that were not sent, in order.
Files are in the order in which they were written, and lines in theirs.  A
comment for no known CLI is for any in whose directory its file is."
  (let* ((mine (seq-filter
                (lambda (comment)
                  (let ((other (gemini-companion-comment-session comment)))
                    (and (null (gemini-companion-comment-sent comment))
                         (if other
                             (gemini-companion-session-same-p session other)
                           (seq-some (apply-partially #'gemini-companion-session-same-p
                                                      session)
                                     (gemini-companion-send-sessions
                                      (gemini-companion-comment-path comment)))))))
                (gemini-companion-comments)))
         (files (seq-uniq
                 (append (mapcar #'gemini-companion-changes-file-name
                                 (gemini-companion-changes-files 'all))
                         (mapcar #'gemini-companion-comment-file mine)))))
    (seq-mapcat (lambda (file)
                  (seq-filter (lambda (comment) (memq comment mine))
                              (gemini-companion-comments-of-file file)))
                files)))

(defun gemini-companion-comment-send--text (comments undone session)
  "Return the prompt with COMMENTS and UNDONE for the CLI of SESSION."
  (concat
   "Comments on your changes:\n\n"
   (mapconcat (lambda (comment)
                (gemini-companion-comment-send--comment comment session))
              comments "\n\n")
   (and comments undone "\n\n")
   (mapconcat (lambda (one) (gemini-companion-comment-send--undone one session))
              undone "\n")))

(defun gemini-companion-comment-send--comment (comment session)
  "Return COMMENT as a text for the CLI of SESSION: place, lines, comment."
  (pcase-let* ((path (gemini-companion-comment-path comment))
               (`(,first . ,last) (gemini-companion-comment-send--range comment))
               (removed (eq 'before (gemini-companion-comment-side comment)))
               (hidden (gemini-companion-privacy-name-hidden-p path)))
    (concat
     (gemini-companion-prompt-name-for-cli path session) ":"
     (gemini-companion-hunk-range (cons first last))
     (and removed " (lines that you removed)")
     "\n"
     (unless hidden
       (mapconcat (lambda (line) (concat "> " line "\n"))
                  (gemini-companion-comment-lines comment) ""))
     (gemini-companion-comment-text comment))))

(defun gemini-companion-comment-send--range (comment)
  "Return (FIRST . LAST), where the lines of COMMENT are in its file now."
  (let* ((path (gemini-companion-comment-path comment))
         (buffer (gemini-companion-names-buffer path))
         (text (cond (buffer (gemini-companion-text-of-buffer buffer))
                     ((gemini-companion-text-unreadable-reason path) nil)
                     (t (ignore-error file-error (gemini-companion-text-read path)))))
         (count (length (gemini-companion-comment-lines comment)))
         (first (gemini-companion-comment-now comment)))
    (if (and text (eq 'after (gemini-companion-comment-side comment)))
        (gemini-companion-comment-range comment
                                        (gemini-companion-baseline-split text))
      (cons first (+ first (max 0 (1- count)))))))

(defun gemini-companion-comment-send--undone (undone session)
  "Return a sentence by which the CLI of SESSION is told that UNDONE is undone."
  (let ((name (gemini-companion-prompt-name-for-cli
               (gemini-companion-undone-path undone) session))
        (first (gemini-companion-undone-first undone))
        (last (gemini-companion-undone-last undone)))
    (cond ((null first)
           (format "I deleted %s, which you had made." name))
          ((< last first)
           (format "I restored the lines that you removed at %s:%d." name first))
          (t
           (format "I undid your change of %s:%s." name
                   (gemini-companion-hunk-range (cons first last)))))))

(defun gemini-companion-comment-send--shared (comments)
  "Return COMMENTS without those on files that are not shared and stay here.
The user is asked about each such file."
  (let ((hidden (seq-filter #'gemini-companion-privacy-name-hidden-p
                            (seq-uniq (mapcar #'gemini-companion-comment-path
                                              comments)))))
    (dolist (path hidden comments)
      (unless (y-or-n-p (format "%s is not shared; send your comments on it \
without its lines? "
                                (gemini-companion-names-absolute path)))
        (setq comments (seq-remove (lambda (comment)
                                     (equal path (gemini-companion-comment-path
                                                  comment)))
                                   comments))))))

(defun gemini-companion-comment-send--send (session comments undone)
  "Send COMMENTS and UNDONE to the CLI of SESSION, and mark them as sent.
If it is not connected any more, the prompt is added to the kill ring, and
they stay as they are."
  (let ((text (gemini-companion-comment-send--text comments undone session))
        (count (length comments)))
    (if (not (gemini-companion-session-connected-p session))
        (progn
          (kill-new text)
          (message "%s has exited; the prompt is in the kill ring"
                   (gemini-companion-session-name session)))
      (gemini-companion-compose-deliver
       (gemini-companion-prompt-quote text session t) session)
      (dolist (comment comments)
        (gemini-companion-comment-set-sent comment session))
      (gemini-companion-undone-set-told undone)
      (gemini-companion-comment-show-here)
      ;; Without a terminal, the message that it was copied is to be read.
      (when (gemini-companion-session-terminal session)
        (message "Sent %s to %s"
                 (if (= 0 count)
                     "what you undid"
                   (format (ngettext "%d comment" "%d comments" count) count))
                 (gemini-companion-session-name session))))))

;;;; After an answer

(defun gemini-companion-comment-send-accepted (edit)
  "Ask whether to send the comments on EDIT, which the user has accepted.
In a turn, that is asked once."
  (let* ((session (gemini-companion-edit-session edit))
         (turn (gemini-companion-edit-turn edit))
         (comments (gemini-companion-comment-send--mine session))
         (count (length comments)))
    (when (and (cl-find (gemini-companion-edit-true-name edit) comments
                        :key #'gemini-companion-comment-file :test #'equal)
               (not (eq turn gemini-companion-comment-send--asked)))
      (setq gemini-companion-comment-send--asked turn)
      (if (y-or-n-p (format (ngettext "Send your %d comment as the next prompt? "
                                      "Send your %d comments as the next prompt? "
                                      count)
                            count))
          (gemini-companion-send-comments session)
        (message "%s" (substitute-command-keys "Your comments stay; \
\\[gemini-companion-send-comments] sends them"))))))

;;;; Commands

;;;###autoload
(defun gemini-companion-send-comments (&optional session)
  "Send your comments on files to a CLI, all as one prompt.
Each has the name of its file and the numbers of its lines, the lines, and
your text.  What you have undone since the last time is told, too.
SESSION is by default that of the list or the page, or the only one for
which you have comments, or else you are asked."
  (interactive)
  (let* ((session (or session (gemini-companion-comment-send--session)))
         (comments (gemini-companion-comment-send--shared
                    (gemini-companion-comment-send--mine session)))
         (undone (gemini-companion-undone-of-session session)))
    (cond (comments)
          ((null undone) (user-error "No comments to send"))
          ((not gemini-companion-tell-undone)
           (user-error "No comments to send; `gemini-companion-tell-undone' says \
whether what you undid is told without one")))
    (gemini-companion-comment-send--send session comments undone)))

(defun gemini-companion-comment-send--session ()
  "Return the session of the list or the page, or else read one."
  (if gemini-companion-edits-view
      (car (gemini-companion-view-edits gemini-companion-edits-view))
    (gemini-companion-session-read
     (or (seq-uniq
          (delq nil (mapcar (lambda (comment)
                              (and (null (gemini-companion-comment-sent comment))
                                   (gemini-companion-comment-session comment)))
                            (gemini-companion-comments)))
          #'gemini-companion-session-same-p)
         (gemini-companion-sessions)))))

(provide 'gemini-companion-comment-send)
;;; gemini-companion-comment-send.el ends here
