;;; gemini-companion-edit.el --- The edits of CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; An edit is what a CLI wants to write, or has written, to one file.  Its record is
;; the struct `gemini-companion-edit'.  This file has the list of edits, functions
;; about an edit that all components use, and the events of an edit.
;;
;; The answer is nil while the edit awaits it, and is set once, in
;; gemini-companion-proposal.el, which also sends the outcome.  Whether its CLI has
;; written the file, and the awaited write, are set in gemini-companion-attribution.el,
;; and the hunks in gemini-companion-edit-hunks.el.  The texts before and after are read in
;; gemini-companion-edit-texts.el, and corrected once more is known about the write.
;;
;; This file does not depend on how and when an edit is displayed.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-commands)
(require 'gemini-companion-content)
(require 'gemini-companion-hunk)
(require 'gemini-companion-label)
(require 'gemini-companion-log)
(require 'gemini-companion-part)
(require 'gemini-companion-request)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-view)

;;;; Customization

(defgroup gemini-companion-reviews nil
  "Reviews of proposed edits."
  :group 'gemini-companion)

;;;; Keys

(define-minor-mode gemini-companion-review-mode
  "Answer a proposal of a CLI.
\\{gemini-companion-review-mode-map}"
  :interactive nil
  :lighter nil
  :keymap (make-sparse-keymap))
(put 'gemini-companion-review-mode 'permanent-local t)

;;;; State

(defvar gemini-companion-edit-opened-functions nil
  "Functions called with an edit each time its review is displayed.")

(defvar gemini-companion-edit-closed-functions nil
  "Functions called with an edit after its review has ended and is closed.
They are also called for an edit that was never displayed.
`gemini-companion-edit-status' returns the outcome.")

(cl-defstruct (gemini-companion-edit
               (:noinline t)
               (:include gemini-companion-request (kind 'edit))
               (:constructor gemini-companion-edit-make)
               (:copier nil))
  "An edit of FILE, a name as the CLI sent it, by SESSION.
It is a request while it is open.  SINCE is the time when it arrived or ended.
PROBLEM is the reason why it cannot be displayed, or was closed, or nil.

ANSWER is nil while the edit awaits it, and then `accepted', `automatic' if that
was done without review, `rejected', `dismissed' if the CLI closed it or has
exited, or `unreviewed' if there was no review.
FILE-STATE is nil until it is known, `written', or `unwritten' if the CLI did
not write the file in a minute.  What is left of a written edit is not stored:
the record of its file knows it, see `gemini-companion-changes-outcome'.

CONTENT is the `gemini-companion-content' that the file had before it; PROPOSED
is the text that the CLI proposed, and AFTER the text that was answered or
written, or nil while the edit is open.
ORIGINAL-BUFFER and PROPOSAL-BUFFER are the buffers of the two texts during
a review; the user may edit the second."
  id file answer file-state (content (gemini-companion-content-make)) proposed after
  original-buffer proposal-buffer
  (true-name (gemini-companion-text-true-name file)
             :documentation "True name of the file when it arrived, or the new one
if the file was renamed in Emacs after it was written.")
  (missing-directories (gemini-companion-edit-directories-to-make true-name)
                       :documentation "The directories above the file that were
missing when it arrived, the innermost first.  The CLI makes them.")
  (turn nil :documentation "Its turn, a guess if the CLI reports none.")
  (format nil :documentation "The `gemini-companion-format' in which its CLI has
written the file, or nil if that is unknown.")
  (lost 0 :documentation "Number of characters that its CLI would replace, at the
last comparison.")
  (watch nil :documentation "The watch of its file while it is open.")
  (awaited nil :documentation "The awaited write of its file after it has ended,
a `gemini-companion-written'.")
  (remarks nil :documentation "A list of symbols about its file: `changed' if it
has changed since the proposal; `one-of' if its file was written with another
text than each of several accepted edits.")
  (reason nil :documentation "Why the user rejected it, a string, or nil.")
  (review-reason nil :documentation "Why it was not auto-accepted, a string, or
nil.")
  (rule nil :documentation "The rule of the user that decided whether it is
reviewed, a phrase as of `gemini-companion-rules-phrase', or nil.")
  (view nil :documentation "Its review on the screen, or nil.")
  (appeared nil :documentation "Non-nil once its row has appeared by itself.")
  (acknowledged nil :documentation "Non-nil if the CLI was answered that the edit
is open.")
  (outcome nil :documentation "`sent' until the CLI has received the outcome.")
  (known-hunks nil :documentation "The hunks of the last comparison, or nil.")
  (compared nil :documentation "The state of the texts at that comparison.")
  (reported nil :documentation "Non-nil if the CLI reported its write.")
  (command nil :documentation "The command or the tool that wrote it, a string, or
nil for an edit of the CLI.")
  (deleted-modes nil :documentation "The modes of its file if it has deleted the
file, or nil.")
  (undone nil :documentation "Non-nil if the user has undone it, and its file has
no record.")
  (taken nil :documentation "Nil, or a cons (TRACKED . TABLE).  TABLE has the
lines, without ends, that it has removed, are in no commit, and no CLI has
written.  If TRACKED is nil, no commit has the file: they may be of a program."))

(defun gemini-companion-edit-directories-to-make (file)
  "Return the directories above FILE that are missing, innermost first.
FILE is an absolute name; nil, as of a loop of symbolic links, has none."
  (let* ((file-name-handler-alist nil)
         (directory (and file (file-name-directory file)))
         (missing nil))
    (while (and directory (not (file-directory-p directory)))
      (push directory missing)
      (setq directory (file-name-directory (directory-file-name directory))))
    (nreverse missing)))

(defconst gemini-companion-edit-most 100
  "Maximum weight of the recorded edits, each of which weighs 1 or more.")

(defvar gemini-companion-edit--all nil
  "The recorded edits, the newest first.")

(defvar gemini-companion-edit-last-forgotten nil
  "The newest edit that was dropped, as there are too many, or nil.")

(defvar gemini-companion-edit-file-functions nil
  "Functions called with an edit and what became of its file, a symbol.
It is `written', or `file-state' if that or UNDONE has changed.  While the edit
awaits an answer, it is a request: what follows it then is on
`gemini-companion-request-functions'.  The functions must be fast.  An error in
a function is only reported.")

(defvar gemini-companion-edit-also-function #'ignore
  "Function that returns what other CLIs have done to the file of an edit.
It is called with an open edit, each time that its header line or its row is
drawn, and returns a phrase or nil.")

(defvar gemini-companion-edit-adopt-hook nil
  "Hook run in each new buffer of a review, by `gemini-companion-edit-adopt'.")

(defvar-local gemini-companion-edit-here nil
  "The edit whose review this buffer belongs to, or nil.")
(put 'gemini-companion-edit-here 'permanent-local t)

(defvar-local gemini-companion-edits-view nil
  "The view of this buffer if it displays several edits, or nil.")

;;;; The list of edits

(defun gemini-companion-edits ()
  "Return the recorded edits, oldest first."
  (reverse gemini-companion-edit--all))

(defun gemini-companion-edit-command-text (command)
  "Return COMMAND, which has written an edit, escaped and shortened for one line."
  (format "`%s'" (gemini-companion-text-escaped-line
                  (string-replace "\n" " " command) 40)))

(defun gemini-companion-edits-open (&optional session)
  "Return the edits that await an answer, oldest first.
If SESSION is non-nil, return only its edits."
  (seq-filter (lambda (edit)
                (and (gemini-companion-edit-open-p edit)
                     (or (null session)
                         (gemini-companion-session-same-p
                          session (gemini-companion-edit-session edit)))))
              (gemini-companion-edits)))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'reviews)))
  "Return the edits that await an answer."
  (gemini-companion-edits-open))

(defun gemini-companion-edits-ending ()
  "Return the edits that have ended, but whose views are not closed yet."
  (seq-filter (lambda (edit)
                (and (gemini-companion-edit-answer edit)
                     (gemini-companion-edit-proposal-buffer edit)))
              gemini-companion-edit--all))

(defun gemini-companion-edit-of-id (id)
  "Return the edit that the server knows by ID, or nil."
  (cl-find id gemini-companion-edit--all :key #'gemini-companion-edit-id))

(defun gemini-companion-edits-of-file (true-name)
  "Return the edits of the file TRUE-NAME, the last one first."
  (seq-filter (lambda (edit)
                (equal true-name (gemini-companion-edit-true-name edit)))
              gemini-companion-edit--all))

(defun gemini-companion-edit-others-of-file (edit)
  "Return the other edits of the file of EDIT, the last one first."
  (remq edit (gemini-companion-edits-of-file
              (gemini-companion-edit-true-name edit))))

(defun gemini-companion-edit--turn-before (session)
  "Return the turn of the last edit of SESSION, or nil if that is over.
It is not while the edit is open, and for a minute after it has ended."
  (when-let* ((last (cl-find session gemini-companion-edit--all
                             :key #'gemini-companion-edit-session
                             :test #'gemini-companion-session-same-p))
              ((or (gemini-companion-edit-open-p last)
                   (< (- (float-time) (gemini-companion-edit-since last)) 60))))
    (gemini-companion-edit-turn last)))

(defun gemini-companion-edit--weight (edit)
  "Return the weight of EDIT in the history of edits, 1 or more.
It is 1 for each 400 kB of its texts."
  (max 1 (/ (+ (string-bytes (or (gemini-companion-edit-bytes-before edit) ""))
               (string-bytes (or (gemini-companion-edit-after edit) "")))
            400000)))

(defun gemini-companion-edit--pruned (edits)
  "Return EDITS, the last one first, up to the weight that is kept.
Also return older edits that are under review, or whose outcome the CLI has not
received."
  (let ((capacity gemini-companion-edit-most)
        (remaining nil)
        (forgotten nil))
    (dolist (edit edits)
      (cl-decf capacity (gemini-companion-edit--weight edit))
      (cond ((or (<= 0 capacity)
                 (gemini-companion-edit-proposal-buffer edit)
                 (gemini-companion-edit-outcome edit))
             (push edit remaining))
            ((null forgotten)
             (setq forgotten edit
                   gemini-companion-edit-last-forgotten edit))))
    (nreverse remaining)))

(defun gemini-companion-edit-add (edit)
  "Record EDIT, which is new, in its turn; old edits may be dropped."
  (let ((session (gemini-companion-edit-session edit)))
    (setf (gemini-companion-edit-turn edit)
          (gemini-companion-turn-of-arrival
           session (gemini-companion-edit--turn-before session))))
  (setq gemini-companion-edit--all
        (gemini-companion-edit--pruned (cons edit gemini-companion-edit--all))))

(defun gemini-companion-edit-add-earlier (edit)
  "Record EDIT, which has its turn, among the other edits by its time."
  (let ((newer (seq-take-while (lambda (other)
                                 (< (gemini-companion-edit-since edit)
                                    (gemini-companion-edit-since other)))
                               gemini-companion-edit--all)))
    (setq gemini-companion-edit--all
          (gemini-companion-edit--pruned
           (append newer (list edit)
                   (nthcdr (length newer) gemini-companion-edit--all))))))

(defun gemini-companion-edit-listed-p (edit)
  "Return non-nil if EDIT is in the list of edits, which drops old ones."
  (memq edit gemini-companion-edit--all))

;;;; Properties of an edit

(defun gemini-companion-edit-new-p (edit)
  "Return non-nil if the file of EDIT did not exist before."
  (gemini-companion-content-none-p (gemini-companion-edit-content edit)))

(defun gemini-companion-edit-known-p (edit)
  "Return non-nil if it is known what the file of EDIT had before."
  (gemini-companion-content-known-p (gemini-companion-edit-content edit)))

(defun gemini-companion-edit-bytes-before (edit)
  "Return the bytes of the file before EDIT, or nil if it was new or is unknown."
  (let ((content (gemini-companion-edit-content edit)))
    (and (gemini-companion-content-bytes-p content)
         (gemini-companion-content-bytes content))))

(defun gemini-companion-edit-review-remark (edit)
  "Return why EDIT was not auto-accepted, a phrase, or nil."
  (when-let* ((reason (gemini-companion-edit-review-reason edit)))
    (concat "not auto-accepted: " reason)))

;;;; What became of an edit

;; The answer says what became of a proposal, the file state whether it was written.

(defun gemini-companion-edit-open-p (edit)
  "Return non-nil if EDIT awaits an answer."
  (null (gemini-companion-edit-answer edit)))

(defun gemini-companion-edit-accepted-p (edit)
  "Return non-nil if EDIT was accepted in Emacs."
  (memq (gemini-companion-edit-answer edit) '(accepted automatic)))

(defun gemini-companion-edit-final-answer (edit)
  "Return the answer to EDIT, a symbol or nil, once its file state is known.
There are two exceptions: an edit that was dismissed and then written is
`accepted', since the user did so in the terminal; and one that was rejected and
then written is `unreviewed'."
  (let ((answer (gemini-companion-edit-answer edit)))
    (if (eq 'written (gemini-companion-edit-file-state edit))
        (pcase answer
          ('dismissed 'accepted)
          ('rejected 'unreviewed)
          (_ answer))
      answer)))

(defun gemini-companion-edit-status (edit)
  "Return the status of EDIT, a symbol for the user.
It is `pending' or `shown' while EDIT is open, then `unwritten' if that is the
file state, or else the answer, see `gemini-companion-edit-final-answer'.  For
what the user did with a written edit, see `gemini-companion-changes-status'."
  (cond ((gemini-companion-edit-open-p edit)
         (if (gemini-companion-edit-view edit) 'shown 'pending))
        ((eq 'unwritten (gemini-companion-edit-file-state edit)) 'unwritten)
        (t (gemini-companion-edit-final-answer edit))))

(defun gemini-companion-edit-word (status)
  "Return the word for STATUS of an edit that has ended, of at most 11 characters."
  (pcase status
    ('automatic "auto")
    ('dismissed "closed")
    ('unreviewed "written")
    ('unwritten "not written")
    (_ (symbol-name status))))

(defun gemini-companion-edit-written-p (edit)
  "Return non-nil if EDIT has changed its file.
While that is unknown, assume it for an accepted edit."
  (pcase (gemini-companion-edit-file-state edit)
    ('nil (gemini-companion-edit-accepted-p edit))
    (state (eq state 'written))))

;;;; Names

(defun gemini-companion-edit-path (edit)
  "Return the file of EDIT, under the name that its CLI sent.
If EDIT has ended, and symbolic links in that name lead elsewhere now, return
the true name of the file that EDIT was for."
  (let ((file (gemini-companion-edit-file edit))
        (true-name (gemini-companion-edit-true-name edit)))
    (if (or (equal file true-name)
            (gemini-companion-edit-open-p edit)
            (equal true-name (gemini-companion-text-true-name file)))
        file
      true-name)))

(cl-defgeneric gemini-companion-edit-name (edit &optional plain)
  "Return the name of the file of EDIT for the user.
With PLAIN non-nil, without warnings; see `gemini-companion-label-file'."
  (gemini-companion-label-file (gemini-companion-edit-path edit)
                               (gemini-companion-edit-session edit)
                               plain))

(defun gemini-companion-edit-title (edit)
  "Return the title of the CLI of EDIT, such as \"Gemini CLI\"."
  (gemini-companion-session-title (gemini-companion-edit-session edit)))

(defun gemini-companion-edit-client (edit)
  "Return the name of the CLI of EDIT, for the functions of adapters."
  (gemini-companion-session-client (gemini-companion-edit-session edit)))

;;;; Edits at point

(defun gemini-companion-edit-shown ()
  "Return the edit that awaits an answer and is shown, or nil."
  (seq-find #'gemini-companion-edit-view (gemini-companion-edits-open)))

(defun gemini-companion-edits-at-point ()
  "Return the edits at point, a list.
If this buffer is not a list of edits, the value has the edit of this buffer,
or else the displayed one.  Signal a `user-error' if no review is displayed."
  (if gemini-companion-edits-view
      (gemini-companion-view-edits gemini-companion-edits-view)
    (list (or gemini-companion-edit-here
              (gemini-companion-edit-shown)
              (user-error "No review is displayed")))))

(defun gemini-companion-edit-current ()
  "Return the only edit at point; signal a `user-error' if there is not one."
  (pcase (gemini-companion-edits-at-point)
    (`(,edit) edit)
    (_ (user-error "No edit on this line"))))

(defun gemini-companion-edits-to-answer (&optional edit)
  "Return those of the edits at point that await an answer, a list.
If EDIT is non-nil, consider only EDIT.  Signal a `user-error' if none awaits an
answer."
  (let ((edits (if edit (list edit) (gemini-companion-edits-at-point))))
    (or (seq-filter #'gemini-companion-edit-open-p edits)
        (pcase edits
          (`(,edit) (user-error "This review has ended already: %s"
                                (gemini-companion-edit-status edit)))
          (_ (user-error "No edit here awaits an answer"))))))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'to-answer)))
  "Return the edits at point that await an answer."
  (gemini-companion-edits-to-answer))

(defun gemini-companion-edit-open-or-error (&optional edit)
  "Return EDIT, by default the current one, if it awaits an answer.
Signal a `user-error' if not."
  (car (gemini-companion-edits-to-answer
        (or edit (gemini-companion-edit-current)))))

;;;; Events

(defun gemini-companion-edit-notify (edit event)
  "Report EVENT of EDIT, a proposal: to its views, as a request, and to the user.
EVENT is `opened', `shown', `hidden', `changed', or `file-changed' while EDIT is
open; `toggled' or `restored' if that has happened to a hunk; `hide' if the view
is to be closed, and `closed' once it is after the answer.  The answer is
`decided', and then `answered' if the user decided in the review."
  (gemini-companion-part-update-lighter)
  (dolist (view (list (gemini-companion-edit-view edit)
                      gemini-companion-edits-view))
    (gemini-companion-log-guarded "Updating a review"
      (gemini-companion-view-follow view event)))
  (gemini-companion-edit--notify-request edit event)
  (pcase event
    ('shown (run-hook-wrapped 'gemini-companion-edit-opened-functions
                              #'gemini-companion-text-call edit))
    ('closed (run-hook-wrapped 'gemini-companion-edit-closed-functions
                               #'gemini-companion-text-call edit))))

(defun gemini-companion-edit--notify-request (edit event)
  "Report EVENT of EDIT as one of the request that EDIT is."
  (when-let* ((own (pcase event
                     ('decided 'closed)
                     ((or 'opened 'answered) event)
                     ((guard (gemini-companion-edit-open-p edit)) 'changed))))
    (gemini-companion-request-notify edit own)))

(defun gemini-companion-edit-notify-file (edit event)
  "Call `gemini-companion-edit-file-functions' with EDIT and EVENT."
  (run-hook-wrapped 'gemini-companion-edit-file-functions
                    #'gemini-companion-text-call edit event))

(defun gemini-companion-edit-add-remark (edit remark)
  "Add REMARK, a symbol, to the remarks about EDIT, if it is not there."
  (cl-pushnew remark (gemini-companion-edit-remarks edit)))

(defun gemini-companion-edit-set-appeared (edit)
  "Record that the row of EDIT has appeared by itself."
  (setf (gemini-companion-edit-appeared edit) t))

(defun gemini-companion-edit-set-view (edit view)
  "Record that EDIT is displayed in VIEW, or in none if VIEW is nil.
Only the code that opens or closes a view may call this."
  (setf (gemini-companion-edit-view edit) view))

;;;; Buffers

(defun gemini-companion-edit-adopt (edit)
  "Make the current buffer one of the review of EDIT, with its keys.
Run `gemini-companion-edit-adopt-hook' there: then killing the buffer ends the
review."
  (setq gemini-companion-edit-here edit)
  (gemini-companion-log-guarded "Hook of the review"
    (gemini-companion-review-mode))
  (run-hooks 'gemini-companion-edit-adopt-hook))

(defun gemini-companion-edit-discard (buffer)
  "Kill BUFFER if it is live, without deciding about its edit."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (set-buffer-modified-p nil)
      (setq-local gemini-companion-edit-here nil
                  kill-buffer-query-functions nil)
      (condition-case nil
          (kill-buffer)
        (error
         ;; A hook of the user has failed, perhaps after the buffer was killed.
         (when (buffer-live-p buffer)
           (setq-local kill-buffer-hook nil)
           (kill-buffer)))))))

;;;; An edit as a request

(cl-defmethod gemini-companion-request-label ((edit gemini-companion-edit))
  "Return the phrase that the CLI proposes EDIT, with the name of its file."
  (concat "proposes an edit of " (gemini-companion-edit-name edit 'plain)))

(cl-defmethod gemini-companion-request-waits-to-appear-p
  ((edit gemini-companion-edit))
  "Return non-nil if EDIT is not displayed, but can appear by itself."
  (not (or (gemini-companion-edit-view edit)
           (gemini-companion-edit-appeared edit)
           (gemini-companion-edit-problem edit))))

(cl-defmethod gemini-companion-request-shown-in-p
  ((edit gemini-companion-edit) buffer)
  "Return non-nil if BUFFER belongs to the review of EDIT, or is its terminal."
  (or (eq edit (buffer-local-value 'gemini-companion-edit-here buffer))
      (eq buffer (gemini-companion-session-terminal
                  (gemini-companion-edit-session edit)))))

(cl-defmethod gemini-companion-request-open-p ((edit gemini-companion-edit))
  "Return non-nil if EDIT awaits an answer."
  (gemini-companion-edit-open-p edit))

(cl-defmethod gemini-companion-request-commented ((edit gemini-companion-edit))
  "Update the views of EDIT while it is open."
  (when (gemini-companion-edit-open-p edit)
    (gemini-companion-edit-notify edit 'changed)))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'edit)))
  "Contribute the open edits to the requests."
  '((gemini-companion-request-list-functions gemini-companion-edits-open)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'edit)))
  "Drop all edits, except those whose views are not closed yet."
  (setq gemini-companion-edit--all (gemini-companion-edits-ending)
        gemini-companion-edit-last-forgotten nil))

(provide 'gemini-companion-edit)
;;; gemini-companion-edit.el ends here
