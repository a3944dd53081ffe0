;;; gemini-companion-edit.el --- The edits of CLIs, and what became of them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; An edit is what a CLI wants to write, or has written, to one file.  It has one
;; record, `gemini-companion-edit', whose decision, texts and file state only this
;; file changes.  It begins with `gemini-companion-edit-open', if the CLI proposes
;; it for a review, or with `gemini-companion-edit-written', if the CLI reports a
;; write without one.
;;
;; The decision is nil while the edit awaits an answer, and is then set once, by
;; one function, so that an outcome is sent exactly once.  The file state is what
;; has become of the file since, which a later report may move again.
;;
;; How an edit is displayed, and when, is not known here.

;;; Code:

(require 'gemini-companion-client)
(require 'gemini-companion-coding)
(require 'gemini-companion-hunk)
(require 'gemini-companion-idle)
(require 'gemini-companion-label)
(require 'gemini-companion-part)
(require 'gemini-companion-replace)
(require 'gemini-companion-revert)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-view)
(require 'gemini-companion-watch)
(require 'gemini-companion-written)

;;;; Customization

(defgroup gemini-companion-reviews nil
  "Reviews of proposed edits."
  :group 'gemini-companion)

(defcustom gemini-companion-edit-opened-functions nil
  "Functions called with each edit when it is shown, also when it is again."
  :type 'hook
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-edit-closed-functions nil
  "Functions called with each proposal that has ended, once its review is closed.
It need not have had one.  `gemini-companion-edit-status' returns its outcome."
  :type 'hook
  :package-version '(gemini-companion . "0.1.0"))

;;;; Keys

(define-minor-mode gemini-companion-review-mode
  "Answer a proposal of a CLI.
\\{gemini-companion-review-mode-map}"
  :lighter nil
  :keymap (make-sparse-keymap))
(put 'gemini-companion-review-mode 'permanent-local t)

;;;; State

(defconst gemini-companion-edit--most-bytes (* 5 1024 1024)
  "Maximum size of the text of a file to keep.")

(cl-defstruct (gemini-companion-edit
               (:constructor gemini-companion-edit--make)
               (:copier nil))
  "An edit of FILE, a name as the CLI sent it, by SESSION.
DECISION is nil while the edit awaits an answer, and then `accepted',
`automatic' if that was done without review, `rejected', `dismissed' if
the CLI closed it or has exited, or `unreviewed' if there was no review.
FILE-STATE is nil until it is known; `written'; `unwritten' if the CLI did
not write the file in a minute; `reverted' if the user then did that,
`unsaved' if that is not saved yet, or `deleted' if the file was new.

BEFORE is the text that the file had, undecoded, `new' if there was no
file, or `unknown'; PROPOSED is the text that the CLI proposed, and AFTER
the text that was answered or written, or nil while the edit is open.
ORIGINAL-BUFFER and PROPOSAL-BUFFER are the buffers of the two texts during
a review; the user may edit the second."
  id session file decision file-state before proposed after
  original-buffer proposal-buffer
  (true-name (gemini-companion-text-true-name file)
             :documentation "True name of the file when it arrived.")
  (time (float-time) :documentation "When it arrived or ended, in seconds.")
  (turn nil :documentation "Its turn, which is a guess if it is unknown.")
  (coding 'utf-8-unix :documentation "In which the CLI reads and writes the file.")
  (shown-in nil :documentation "The coding system in which lines are displayed
that the CLI cannot read, as they are not UTF-8; nil if there are none.")
  (lost 0 :documentation "How many characters its proposal loses, with all hunks;
see `gemini-companion-edit-lost-count'.")
  (watch nil :documentation "The watch of its file while it is open.")
  (awaited nil :documentation "The write of its file that is awaited since it
has ended, a `gemini-companion-written'.")
  (remarks nil :documentation "What is to be known of its file: a list of
`changed' since the proposal, `undoes' if the CLI does not know what the user
has made of its last edit of that file, and `loss-accepted' if the user has
accepted that characters are lost.")
  (objection nil :documentation "Why it was not auto-accepted, a string, or nil.")
  (view nil :documentation "Its view on the screen, or nil.")
  (acknowledged nil :documentation "Whether the CLI knows that it is open.")
  (outcome nil :documentation "`sent' until the CLI has the outcome.")
  (problem nil :documentation "Why it cannot be shown, or was closed, a \
string, or nil.")
  (known-hunks nil :documentation "The hunks of the last comparison, or nil.")
  (compared nil :documentation "The state of the texts at that comparison.")
  (commented nil :documentation "Alist of lines and comments of the user.")
  (reported nil :documentation "Non-nil if the CLI reported its write.")
  (undone nil :documentation "The hunks that were reverted, in order.")
  (kept nil :documentation "Cons of a time and a text that was not written,
for `gemini-companion-last-proposal'."))

(defvar gemini-companion-edit--all nil
  "The recorded edits, the last one first.")

(defvar gemini-companion-edit-functions nil
  "Functions called with an edit and what has happened to it.
That is `opened', `shown', `hidden' or `changed' while it is open, and for
its view `file-changed', `toggled', `restored' and `hide', and `waits' if
that awaits the next edit; `settled' when it has ended, `answered' after
that if the user has settled it from inside, and `closed' when its view is
closed; and `written', `unwritten' or `reverted' when its file is, or a hunk.
These functions must be fast.  An error in one is only reported.")

(defvar-local gemini-companion-edit-here nil
  "The edit whose review this buffer belongs to, or nil.")
(put 'gemini-companion-edit-here 'permanent-local t)

(defvar-local gemini-companion-edits-view nil
  "The view of this buffer if it displays several edits, or nil.")

;;;; Edits

(defun gemini-companion-edits ()
  "Return the recorded edits, oldest first."
  (reverse gemini-companion-edit--all))

(defun gemini-companion-edits-open (&optional session)
  "Return the edits that await an answer, oldest first.
If SESSION is non-nil, return only its edits."
  (seq-filter (lambda (edit)
                (and (gemini-companion-edit-open-p edit)
                     (or (null session)
                         (gemini-companion-session-same-p
                          session (gemini-companion-edit-session edit)))))
              (gemini-companion-edits)))

(defun gemini-companion-edits-ending ()
  "Return the edits that have ended and whose views are still to be closed."
  (seq-filter (lambda (edit)
                (and (gemini-companion-edit-decision edit)
                     (gemini-companion-edit-proposal-buffer edit)))
              gemini-companion-edit--all))

(defun gemini-companion-edit--of-id (id)
  "Return the edit that the server knows by ID, or nil."
  (cl-find id gemini-companion-edit--all :key #'gemini-companion-edit-id))

(defun gemini-companion-edit--of-file (true-name)
  "Return the edits of the file TRUE-NAME, the last one first."
  (seq-filter (lambda (edit)
                (equal true-name (gemini-companion-edit-true-name edit)))
              gemini-companion-edit--all))

(defun gemini-companion-edit--others-of-file (edit)
  "Return the other edits of the file of EDIT, the last one first."
  (remq edit (gemini-companion-edit--of-file
              (gemini-companion-edit-true-name edit))))

(defun gemini-companion-edit-open-p (edit)
  "Return non-nil if EDIT awaits an answer."
  (null (gemini-companion-edit-decision edit)))

(defun gemini-companion-edit-shown ()
  "Return the edit that awaits an answer and is shown, or nil."
  (seq-find #'gemini-companion-edit-view (gemini-companion-edits-open)))

(defun gemini-companion-edits-at-point ()
  "Return the edits at point, or of this buffer, else the one that is shown."
  (if gemini-companion-edits-view
      (cdr (gemini-companion-view-edits gemini-companion-edits-view))
    (list (or gemini-companion-edit-here
              (gemini-companion-edit-shown)
              (user-error "No review is displayed")))))

(defun gemini-companion-edit-current ()
  "Return the edit of `gemini-companion-edits-at-point', which is the only one."
  (pcase (gemini-companion-edits-at-point)
    (`(,edit) edit)
    (_ (user-error "No edit on this line"))))

(defun gemini-companion-edits-to-answer (&optional edit)
  "Return those of the edits at point that await an answer, or of EDIT."
  (let ((edits (if edit (list edit) (gemini-companion-edits-at-point))))
    (or (seq-filter #'gemini-companion-edit-open-p edits)
        (pcase edits
          (`(,edit) (user-error "This review has ended already: %s"
                                (gemini-companion-edit-status edit)))
          (_ (user-error "No edit here awaits an answer"))))))

(defun gemini-companion-edit-unsettled (&optional edit)
  "Return EDIT, by default the current one, if it awaits an answer."
  (car (gemini-companion-edits-to-answer
        (or edit (gemini-companion-edit-current)))))

(defun gemini-companion-edit-status (edit)
  "Return what has become of EDIT.
That is `pending' or `shown' while it is open; else its file state if that
is `reverted', `unsaved', `deleted' or `unwritten', or its decision.  One that
was dismissed and written all the same was accepted, in the terminal; one
that was rejected and written is `unreviewed'."
  (pcase (cons (gemini-companion-edit-decision edit)
               (gemini-companion-edit-file-state edit))
    (`(nil . ,_) (if (gemini-companion-edit-view edit) 'shown 'pending))
    (`(,_ . ,(and state (or 'reverted 'unsaved 'deleted))) state)
    (`(,(or 'accepted 'automatic) . unwritten) 'unwritten)
    (`(dismissed . written) 'accepted)
    (`(rejected . written) 'unreviewed)
    (`(,decision . ,_) decision)))

(defun gemini-companion-edit-written-p (edit)
  "Return non-nil if EDIT has changed its file."
  (pcase (gemini-companion-edit-file-state edit)
    ('nil (memq (gemini-companion-edit-decision edit) '(accepted automatic)))
    (state (eq state 'written))))

(defun gemini-companion-edit-name (edit &optional plain)
  "Return the name of the file of EDIT for the user.
With PLAIN non-nil, without warnings; see `gemini-companion-label-file'."
  (gemini-companion-label-file (gemini-companion-edit-file edit)
                         (gemini-companion-edit-session edit)
                         plain))

(defun gemini-companion-edit--title (edit)
  "Return the name of the program of EDIT's CLI."
  (gemini-companion-session-title (gemini-companion-edit-session edit)))

(defun gemini-companion-edit-client-get (edit key)
  "Return the value of KEY of EDIT's CLI in `gemini-companion-client-table'."
  (gemini-companion-client-get
   (plist-get (gemini-companion-edit-session edit) :client) key))

(defun gemini-companion-edit--turn-of (session)
  "Return the turn of an edit of SESSION that arrives now.
For a CLI that reports no turns, that is the one of its last edit, if that
is open or a minute old at most, or else a new one."
  (let ((last (cl-find session gemini-companion-edit--all
                       :key #'gemini-companion-edit-session
                       :test #'gemini-companion-session-same-p)))
    (cond ((gemini-companion-session-turn session))
          ((and last
                (or (gemini-companion-edit-open-p last)
                    (< (- (float-time) (gemini-companion-edit-time last)) 60)))
           (gemini-companion-edit-turn last))
          (t (gemini-companion-turn-make)))))

(defun gemini-companion-edit--places (edit)
  "Return how many of the hundred places for edits EDIT takes, 1 or more.
It takes one for each 400 kB of its texts."
  (let ((bytes 0))
    (dolist (text (list (gemini-companion-edit-before edit)
                        (gemini-companion-edit-after edit)))
      (when (stringp text)
        (cl-incf bytes (string-bytes text))))
    (max 1 (/ bytes 400000))))

(defun gemini-companion-edit--pruned (edits)
  "Return EDITS, the last one first, without old ones for which is no place.
There are a hundred places.  An edit under review, one whose CLI does not
have the outcome, and one with a text that can be recovered stay."
  (let ((kept (gemini-companion-edits-kept))
        (places 100)
        (left nil))
    (dolist (edit edits)
      (cl-decf places (gemini-companion-edit--places edit))
      (when (or (<= 0 places)
                (gemini-companion-edit-proposal-buffer edit)
                (gemini-companion-edit-outcome edit)
                (memq edit kept))
        (push edit left)))
    (nreverse left)))

(defun gemini-companion-edit--add (edit)
  "Record EDIT, which is new, in its turn; old edits may be dropped."
  (setf (gemini-companion-edit-turn edit)
        (gemini-companion-edit--turn-of (gemini-companion-edit-session edit)))
  (setq gemini-companion-edit--all
        (gemini-companion-edit--pruned (cons edit gemini-companion-edit--all))))

(defun gemini-companion-edit--notify (edit event)
  "Call the functions for EDIT and EVENT, also those of the user.
For the events, see `gemini-companion-edit-functions'.  The views that display
EDIT follow first."
  (force-mode-line-update t)
  (dolist (view (list (gemini-companion-edit-view edit)
                      gemini-companion-edits-view))
    (with-demoted-errors "Updating a review: %S"
      (gemini-companion-view-follow view event)))
  (run-hook-wrapped 'gemini-companion-edit-functions
                    #'gemini-companion-text-call edit event)
  (pcase event
    ('shown (run-hook-wrapped 'gemini-companion-edit-opened-functions
                              #'gemini-companion-text-call edit))
    ('closed (run-hook-wrapped 'gemini-companion-edit-closed-functions
                               #'gemini-companion-text-call edit))))

;;;; Texts

;; The texts before and after an edit are compared as its CLI sees them: decoded
;; from UTF-8, or as the file is, with plain line ends and, if the CLI restores it,
;; without a byte order mark.  But what the CLI cannot decode is as the file has it,
;; so that each character that it replaces is a difference.
;; The bytes of a file that is not UTF-8 say little about its coding system, and
;; Qwen Code guesses one; its proposal shows which.
(defun gemini-companion-edit--coding-of-cli (edit bytes text)
  "Return the coding system in which the CLI of EDIT reads and writes its file.
BYTES are those of the file, which are not UTF-8, and TEXT is a text that
the CLI has made of them, such as its proposal."
  (if (gemini-companion-edit-client-get edit :keeps-coding)
      (gemini-companion-coding-guess
       bytes text
       (delq nil (list (gemini-companion-edit--coding-of-buffer edit)
                       (gemini-companion-coding-declared
                        (gemini-companion-edit-file edit) bytes))))
    'utf-8-unix))

(defun gemini-companion-edit--coding-of-buffer (edit)
  "Return the coding system of the buffer of EDIT's file, or nil if it has none."
  (when-let* ((buffer (gemini-companion-names-buffer
                       (gemini-companion-edit-file edit))))
    (gemini-companion-coding-of-buffer buffer)))

(defun gemini-companion-edit--set-coding (edit bytes text)
  "Record in which coding systems the CLI and Emacs read the file of EDIT.
BYTES are those of the file, or a symbol if they are not known, and TEXT is
a text that the CLI has made of them, such as its proposal."
  (let* ((undecoded (and (stringp bytes)
                         (not (gemini-companion-coding-utf-8-p bytes))))
         (coding (if undecoded
                     (gemini-companion-edit--coding-of-cli edit bytes text)
                   'utf-8-unix)))
    (setf (gemini-companion-edit-coding edit) coding
          (gemini-companion-edit-shown-in edit)
          (and undecoded
               (eq 'utf-8-unix coding)
               (or (gemini-companion-edit--coding-of-buffer edit)
                   (gemini-companion-coding-of-file
                    (gemini-companion-edit-file edit) bytes))))))

(defun gemini-companion-edit-decode (edit bytes)
  "Return the text of BYTES, which the file of EDIT has."
  (decode-coding-string bytes (gemini-companion-edit-coding edit)))

(defun gemini-companion-edit--decode-shown (edit bytes)
  "Return the text of BYTES, which the file of EDIT has, for the user.
Lines that the CLI cannot read are as Emacs reads them."
  (if-let* ((shown-in (gemini-companion-edit-shown-in edit)))
      (gemini-companion-coding-decode-undecoded bytes shown-in)
    (gemini-companion-edit-decode edit bytes)))

(defun gemini-companion-edit-decode-before (edit)
  "Return the text that the file of EDIT had, with its line ends.
Its bytes must be known.  Lines that the CLI cannot read are as Emacs reads
them."
  (gemini-companion-edit--decode-shown edit (gemini-companion-edit-before edit)))

(defun gemini-companion-edit-as-visited (edit text)
  "Return TEXT, of EDIT, as the current buffer has it, which visits its file.
The CLI may read the file in another coding system than Emacs."
  (let ((coding (gemini-companion-edit-coding edit))
        (own (gemini-companion-coding-of-buffer (current-buffer))))
    (if (or (null own)
            (eq (coding-system-base own) (coding-system-base coding))
            (and (eq 'utf-8-unix coding)
                 ;; With unsaved text, it may be in another one than the file.
                 ;; If not, the file has lines of both, as after an undo of one
                 ;; hunk: the changes in the others would count as edited.
                 (or (buffer-modified-p)
                     (eq 'utf-8 (coding-system-type own)))))
        text
      (decode-coding-string (encode-coding-string text coding) own))))

(defun gemini-companion-edit--plain (edit text)
  "Return TEXT as the CLI of EDIT sees it."
  (let ((text (string-replace "\r\n" "\n" text)))
    (if (gemini-companion-edit-client-get edit :keeps-coding)
        (string-remove-prefix "\uFEFF" text)
      text)))

(defun gemini-companion-edit--read (edit)
  "Read the text of the file of EDIT, which is not written yet.
Record the remarks on it, and update the buffer of the original."
  (let ((file (gemini-companion-edit-file edit))
        (previous (gemini-companion-edit-before edit))
        (buffer (gemini-companion-edit-original-buffer edit)))
    (setf (gemini-companion-edit-before edit)
          (cond ((null (gemini-companion-text-attributes file)) 'new)
                ((and (gemini-companion-edit-keepable-p file)
                      (ignore-error file-error
                        (gemini-companion-text-bytes file))))
                (t 'unknown)))
    (gemini-companion-edit--set-coding edit (gemini-companion-edit-before edit)
                                       (gemini-companion-edit-proposed edit))
    ;; If its text is too large, the time of the file has changed.
    (unless (member previous
                    (remq 'unknown (list nil (gemini-companion-edit-before edit))))
      (cl-pushnew 'changed (gemini-companion-edit-remarks edit)))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (gemini-companion-replace-text (gemini-companion-edit--read-original edit))
        (set-buffer-modified-p nil)))))

(defun gemini-companion-edit-keepable-p (file)
  "Return non-nil if FILE exists and its text can be kept."
  (when-let* (((not (gemini-companion-text-unreadable-reason file)))
              (attributes (gemini-companion-text-attributes file)))
    (<= (file-attribute-size attributes) gemini-companion-edit--most-bytes)))

(defun gemini-companion-edit--text-before (edit)
  "Return the text before EDIT, as its CLI sees it, or \"\" of a new file.
It must have been kept."
  (if (eq 'new (gemini-companion-edit-before edit))
      ""
    (gemini-companion-edit--plain edit (gemini-companion-edit-decode-before edit))))

(defun gemini-companion-edit--read-original (edit)
  "Return the text before EDIT, which is open, for the buffer of the original.
A file that is too large to be kept is read now, and its coding systems are
recorded."
  (if (not (eq 'unknown (gemini-companion-edit-before edit)))
      (gemini-companion-edit--text-before edit)
    (let ((bytes (gemini-companion-text-bytes (gemini-companion-edit-file edit))))
      (gemini-companion-edit--set-coding edit bytes
                                         (gemini-companion-edit-proposed edit))
      (gemini-companion-edit--plain
       edit (gemini-companion-edit--decode-shown edit bytes)))))

(defun gemini-companion-edit-original (edit)
  "Return a read-only buffer with the text before EDIT, which is open."
  (or (gemini-companion-edit-original-buffer edit)
      (with-current-buffer (gemini-companion-edit--make-buffer
                            edit "*gemini original: %s*"
                            (gemini-companion-edit--read-original edit))
        (buffer-disable-undo)
        (setq buffer-read-only t)
        (setf (gemini-companion-edit-original-buffer edit) (current-buffer)))))

(defun gemini-companion-edit--make-buffer (edit name text)
  "Return a new buffer of EDIT with TEXT; NAME has a place for its file.
It visits no file, so that nothing locks, saves or formats it."
  (with-current-buffer (generate-new-buffer
                        (format name (gemini-companion-edit-name edit 'plain)))
    (setq default-directory
          (let ((file-name-handler-alist nil)
                (file (gemini-companion-edit-file edit)))
            (pcase (gemini-companion-names-of-copy file)
              (`(,name . ,there) (concat name (file-name-directory there)))
              ;; The nearest directory that exists.
              (_ (or (locate-dominating-file file #'file-directory-p) "/")))))
    (let ((inhibit-modification-hooks t)
          (buffer-undo-list t))
      (insert text))
    (set-buffer-modified-p nil)
    (goto-char (point-min))
    (gemini-companion-edit-adopt edit)
    (current-buffer)))

(defun gemini-companion-edit-text (edit)
  "Return the text that EDIT has written, or that accepting it sends.
While it is open, that is the proposal as the user has edited it,
without the excluded hunks.  Once it is rejected, they are shown again,
as they may have comments."
  (or (gemini-companion-edit-after edit)
      ;; An excluded hunk may have bytes that no CLI can be sent.
      (gemini-companion-coding-sendable
       (funcall (if (eq 'rejected (gemini-companion-edit-decision edit))
                    #'gemini-companion-text-of-buffer
                  #'gemini-companion-hunk-remaining-text)
                (gemini-companion-edit-proposal-buffer edit)))))

(defun gemini-companion-edit-edited-p (edit)
  "Return non-nil if the user has edited the proposal of EDIT."
  (let ((proposal (gemini-companion-edit-proposal-buffer edit)))
    (and (buffer-modified-p proposal)
         (not (equal (gemini-companion-edit-proposed edit)
                     (gemini-companion-text-of-buffer proposal))))))

(defun gemini-companion-edit-emptied-p (edit)
  "Return non-nil if the user has left no text of the proposal of EDIT."
  (and (string-empty-p (gemini-companion-edit-text edit))
       (not (string-empty-p (gemini-companion-edit-proposed edit)))))

(defun gemini-companion-edit--own-text-p (edit text)
  "Return non-nil if TEXT is neither empty nor the proposal of EDIT."
  (not (member text (list "" (gemini-companion-edit-proposed edit)))))

(defun gemini-companion-edit--comparable (text)
  "Return TEXT with plain line ends, and no byte order mark or last newline.
A CLI leaves these of a file as they are."
  (string-remove-suffix "\n" (gemini-companion-text-normalized text)))

(defun gemini-companion-edit--same-written-p (a b)
  "Return non-nil if the text A may be B as a CLI has written it."
  (string= (gemini-companion-edit--comparable a)
           (gemini-companion-edit--comparable b)))

(defun gemini-companion-edit--bytes (edit)
  "Return the bytes of the file of EDIT, or nil if they cannot be kept."
  (let ((file (gemini-companion-edit-file edit)))
    (and (gemini-companion-edit-keepable-p file)
         (ignore-error file-error
           (gemini-companion-text-bytes file)))))

(defun gemini-companion-edit-in-file-p (edit &optional text)
  "Return non-nil if the file of EDIT has changed to TEXT, as a CLI writes it.
By default, that is the text that the edit has written."
  (when-let* ((bytes (gemini-companion-edit--bytes edit)))
    (gemini-companion-edit--has-changed-to-p
     edit (or text (gemini-companion-edit-after edit)) bytes)))

(defun gemini-companion-edit--has-changed-to-p (edit text bytes)
  "Return non-nil if BYTES are TEXT, but not what the file of EDIT had before."
  (and (not (equal bytes (gemini-companion-edit-before edit)))
       (or (gemini-companion-edit--written-in-p
            text bytes (gemini-companion-edit-coding edit))
           ;; Before a rewrite of the whole text, nothing showed in which coding
           ;; system the CLI had read the file; now its text does.
           (and (gemini-companion-edit-client-get edit :keeps-coding)
                (not (gemini-companion-coding-utf-8-p bytes))
                (gemini-companion-edit--written-in-p
                 text bytes
                 (gemini-companion-coding-guess
                  bytes text (list (gemini-companion-edit-coding edit))))))))

(defun gemini-companion-edit--correct-coding (edit text)
  "Record in which coding system the CLI of EDIT has written TEXT to its file."
  (when-let* (((gemini-companion-edit-client-get edit :keeps-coding))
              (bytes (ignore-error file-error
                       (gemini-companion-text-bytes (gemini-companion-edit-file edit))))
              (coding (gemini-companion-edit-coding edit))
              ((not (gemini-companion-edit--written-in-p text bytes coding))))
    (setf (gemini-companion-edit-coding edit)
          (gemini-companion-coding-guess bytes text (list coding))
          ;; The hunks are of lines that were decoded otherwise.
          (gemini-companion-edit-compared edit) nil)))

(defun gemini-companion-edit--written-in-p (text bytes coding)
  "Return non-nil if BYTES are TEXT as a CLI has written it in CODING."
  (let ((now (decode-coding-string bytes coding)))
    (if (memq coding '(utf-8-unix utf-16le-with-signature-unix
                                  utf-16be-with-signature-unix))
        (gemini-companion-edit--same-written-p text now)
      (gemini-companion-edit--same-written-p
       (gemini-companion-coding-as-written text coding)
       (gemini-companion-coding-as-written now coding)))))

(defun gemini-companion-edit-call-with-texts (edit function)
  "Call FUNCTION with buffers of the texts before and after EDIT."
  (if (gemini-companion-edit-open-p edit)
      (funcall function (gemini-companion-edit-original edit)
               (gemini-companion-edit-proposal-buffer edit))
    (when (eq 'unknown (gemini-companion-edit-before edit))
      (user-error "The previous text of %s was not kept"
                  (gemini-companion-edit-name edit)))
    (with-temp-buffer
      (insert (gemini-companion-edit--text-before edit))
      (let ((old (current-buffer)))
        (with-temp-buffer
          (insert (gemini-companion-edit--plain
                   edit (gemini-companion-edit-after edit)))
          (funcall function old (current-buffer)))))))

;;;; Hunks

(defun gemini-companion-edit--texts-state (edit)
  "Return a value that differs after a change of the texts of EDIT."
  ;; The file may show later that the CLI has written another text.
  (or (gemini-companion-edit-after edit)
      (when-let* ((original (gemini-companion-edit-original-buffer edit)))
        (mapcar #'buffer-chars-modified-tick
                (list original (gemini-companion-edit-proposal-buffer edit))))))

(defun gemini-companion-edit-hunks (edit)
  "Return the hunks of EDIT, a list of `gemini-companion-hunk's.
Signal an error if its texts are unknown or cannot be compared.  Excluded
hunks that are not among them are restored."
  (let ((state (gemini-companion-edit--texts-state edit)))
    (unless (and state (equal state (gemini-companion-edit-compared edit)))
      (gemini-companion-edit-call-with-texts
       edit
       (lambda (old new)
         (let ((hunks (gemini-companion-hunk-find old new)))
           (setf (gemini-companion-edit-known-hunks edit) hunks
                 (gemini-companion-edit-lost edit)
                 (gemini-companion-edit--count-lost edit old new)
                 (gemini-companion-edit-compared edit)
                 (gemini-companion-edit--texts-state edit))
           (when (gemini-companion-edit-open-p edit)
             (gemini-companion-edit--restore edit hunks old))))))
    (gemini-companion-edit-known-hunks edit)))

;; A CLI may lose characters of a file that is not UTF-8: it could not read them,
;; or cannot write them in the coding system of the file.
(defun gemini-companion-edit--lost-in (edit text)
  "Return how many characters of TEXT the CLI of EDIT does not write as they are."
  (let ((coding (gemini-companion-edit-coding edit)))
    (gemini-companion-coding-lost text (unless (eq 'utf-8-unix coding) coding))))

(defun gemini-companion-edit--count-lost (edit old new)
  "Return how many characters are lost in the buffer NEW that OLD has, for EDIT.
That is 0 for a file in UTF-8."
  (if (or (gemini-companion-edit-shown-in edit)
          (not (eq 'utf-8-unix (gemini-companion-edit-coding edit))))
      (max 0 (- (gemini-companion-edit--lost-in
                 edit (gemini-companion-text-of-buffer new))
                ;; The file may have some already.
                (gemini-companion-coding-replaced
                 (if (stringp (gemini-companion-edit-before edit))
                     (gemini-companion-edit-decode
                      edit (gemini-companion-edit-before edit))
                   (gemini-companion-text-of-buffer old)))))
    0))

(defun gemini-companion-edit-lost-count (edit)
  "Return how many characters the CLI of EDIT would replace by others.
That is for its proposal as it was compared last, without excluded hunks."
  (let ((lost (gemini-companion-edit-lost edit))
        (proposal (gemini-companion-edit-proposal-buffer edit)))
    (if (or (= 0 lost) (not (gemini-companion-edit-open-p edit)))
        lost
      (dolist (mark (gemini-companion-hunk-marks proposal))
        (pcase-let ((`(,old ,new) (overlay-get mark 'gemini-companion-texts)))
          (cl-incf lost (- (gemini-companion-edit--lost-in edit old)
                           (gemini-companion-edit--lost-in edit new)))))
      (max 0 lost))))

(defun gemini-companion-edit-counts (edit)
  "Return the `gemini-companion-hunk-counts' of EDIT, or nil if it has no hunks.
They are those of the last comparison.  Hunks that were reverted count as
excluded ones."
  (when-let* ((hunks (gemini-companion-edit-known-hunks edit)))
    (let ((proposal (gemini-companion-edit-proposal-buffer edit)))
      (gemini-companion-hunk-count
       hunks
       (if proposal
           (gemini-companion-hunk-excluded proposal)
         (gemini-companion-edit-undone edit))))))

(defun gemini-companion-edit-lines (edits)
  "Return the numbers of lines that EDITS add and remove, such as \"+3 -1\".
Return nil if there are no EDITS, or the hunks of one are unknown."
  (when edits
    (ignore-errors
      (let ((added 0)
            (removed 0))
        (dolist (edit edits)
          (gemini-companion-edit-hunks edit)
          (when-let* ((counts (gemini-companion-edit-counts edit)))
            (cl-incf added (gemini-companion-hunk-counts-added counts))
            (cl-incf removed (gemini-companion-hunk-counts-removed counts))))
        (gemini-companion-hunk-lines added removed)))))

(defun gemini-companion-edit-total (edits)
  "Return a list of texts, the number of files of EDITS and of their lines.
Only the lines of edits that were written count, if all are known."
  (when-let* ((edits)
              (files (length (seq-group-by #'gemini-companion-edit-true-name
                                           edits))))
    (delq nil (list (format (ngettext "%d file" "%d files" files) files)
                    (gemini-companion-edit-lines
                     (seq-filter #'gemini-companion-edit-written-p edits))))))

(defun gemini-companion-edit-summary (&optional edit plain)
  "Return the name of the file of EDIT, and its amount of change if known.
EDIT is the current one by default.  For PLAIN, see
`gemini-companion-edit-name'."
  (setq edit (or edit (gemini-companion-edit-current)))
  (concat (gemini-companion-edit-name edit plain)
          (pcase (and (equal (gemini-companion-edit--texts-state edit)
                             (gemini-companion-edit-compared edit))
                      (gemini-companion-edit-counts edit))
            ((cl-struct gemini-companion-hunk-counts hunks excluded added removed)
             (format ": %s (%s)"
                     (if (zerop excluded)
                         (format (ngettext "%d hunk" "%d hunks" hunks) hunks)
                       (format "%d of %d hunks" (- hunks excluded) hunks))
                     (gemini-companion-hunk-lines added removed))))))

(defun gemini-companion-edit--hunk-left-p (edit)
  "Return non-nil if EDIT would have a hunk left without one more of them."
  (when-let* ((counts (gemini-companion-edit-counts edit)))
    (< (1+ (gemini-companion-hunk-counts-excluded counts))
       (gemini-companion-hunk-counts-hunks counts))))

(defun gemini-companion-edit-toggle (edit hunk)
  "Exclude HUNK from the proposal of EDIT, or restore it.
HUNK is one of `gemini-companion-edit-hunks'.  Return non-nil if it is
excluded now.  Ask before excluding the last one."
  (gemini-companion-edit-unsettled edit)
  (let* ((proposal (gemini-companion-edit-proposal-buffer edit))
         (excluded (member hunk (gemini-companion-hunk-excluded proposal))))
    ;; The bytes would be displayed as if they stayed, and be replaced.
    (when (and (not excluded)
               (gemini-companion-coding-undecoded-p
                (gemini-companion-hunk-old-text
                 hunk (gemini-companion-edit-original edit))))
      (user-error "%s cannot write the bytes that this hunk replaces"
                  (gemini-companion-edit--title edit)))
    (let ((sure (or excluded
                    (gemini-companion-edit--hunk-left-p edit)
                    (y-or-n-p "This is the only remaining hunk; exclude it? "))))
      ;; The edit may end while the question is asked.
      (gemini-companion-edit-unsettled edit)
      (unless sure
        (user-error "Hunk not excluded")))
    (prog1 (gemini-companion-hunk-toggle
            hunk (gemini-companion-edit-original edit) proposal)
      (gemini-companion-edit--notify edit 'toggled))))

(defun gemini-companion-edit--restore (edit &optional hunks original)
  "Restore the excluded hunks of EDIT that were edited, and report that.
With HUNKS of ORIGINAL, restore also those that are not among them."
  (let ((count (gemini-companion-hunk-prune
                (gemini-companion-edit-proposal-buffer edit) hunks original)))
    (when (< 0 count)
      (message
       (ngettext "An excluded hunk of %2$s has changed and was restored"
                 "%1$d excluded hunks of %2$s have changed and were restored"
                 count)
       count (gemini-companion-edit-name edit 'plain))
      (gemini-companion-edit--notify edit 'restored))))

(defun gemini-companion-edit--edited (&rest _)
  "Restore the excluded hunks in the current buffer that were just edited."
  (when-let* ((edit gemini-companion-edit-here))
    (gemini-companion-edit--restore edit)
    (gemini-companion-edit--notify edit 'changed)))
(put 'gemini-companion-edit--edited 'permanent-local-hook t)

;;;; Comments

(defun gemini-companion-edit-comments (edit)
  "Return the comments on EDIT, an alist of (SIDE . LINES) and texts.
LINES is a number, or a cons (FIRST . LAST) for several lines.  SIDE is
`before' for removed lines, which LINES counts in the file, or `after'
for others, which LINES counts in the proposal as it is now."
  (cl-flet ((number (place)
              (if (markerp place)
                  (gemini-companion-text-line (marker-buffer place) place)
                place)))
    (mapcar (pcase-lambda (`((,side . ,lines) . ,text))
              (cons (cons side (pcase lines
                                 (`(,first . ,last)
                                  (cons (number first) (number last)))
                                 (line (number line))))
                    text))
            (gemini-companion-edit-commented edit))))

(defun gemini-companion-edit-comment (edit key text)
  "Make TEXT the comment on KEY of EDIT.
KEY is a cons (SIDE . LINES), see `gemini-companion-edit-comments'.  If
TEXT is nil, delete that comment.  It follows edits of the proposal."
  (setf (gemini-companion-edit-commented edit)
        (cl-loop for comment in (gemini-companion-edit-commented edit)
                 for (other) in (gemini-companion-edit-comments edit)
                 unless (equal key other) collect comment))
  (when text
    (with-current-buffer (gemini-companion-edit-proposal-buffer edit)
      (cl-flet ((place (line)
                  ;; A line that is inserted before it is another one.
                  (copy-marker (gemini-companion-hunk-line line) t)))
        (push (cons (pcase key
                      (`(after ,first . ,last)
                       (cons 'after (cons (place first) (place last))))
                      (`(after . ,line) (cons 'after (place line)))
                      (_ key))
                    text)
              (gemini-companion-edit-commented edit)))))
  (gemini-companion-edit--notify edit 'changed))

;;;; Opening

(cl-defmethod gemini-companion-server-receive ((_method (eql 'open-diff)) &rest args)
  "Open an edit; for ARGS, see `gemini-companion-edit-open'."
  (apply #'gemini-companion-edit-open args))

(defun gemini-companion-edit-open (id session file proposal)
  "Open an edit that proposes PROPOSAL as the text of FILE.
ID is an integer that names the edit; SESSION is a plist with the `:id'
of the CLI.  An open edit of that CLI for that file is replaced; its
edited text is kept."
  (let ((previous (cl-find file (gemini-companion-edits-open session)
                           :key #'gemini-companion-edit-file :test #'equal))
        (edit (gemini-companion-edit--make :id id :session session :file file
                                           :proposed proposal)))
    (when previous
      (gemini-companion-edit--keep-edits
       previous "New proposal for %s; %s shows your edits of the previous one")
      (gemini-companion-edit--settle previous 'dismissed))
    (with-current-buffer
        (setf (gemini-companion-edit-proposal-buffer edit)
              (gemini-companion-edit--make-buffer edit "*gemini proposal: %s*"
                                                  proposal))
      (add-hook 'after-change-functions #'gemini-companion-edit--edited nil t))
    (gemini-companion-edit--end-others edit)
    (gemini-companion-edit--read edit)
    (setf (gemini-companion-edit-watch edit)
          (gemini-companion-watch-start
           file
           (lambda (_watch changed occasion)
             (and changed (gemini-companion-edit--file-changed edit occasion)))))
    (gemini-companion-edit--add edit)
    (when (gemini-companion-edit--undoes-p edit proposal)
      (push 'undoes (gemini-companion-edit-remarks edit)))
    ;; The rest is done later: the server is waiting for the answer.
    (gemini-companion-edit--notify edit 'opened)
    t))

(defun gemini-companion-edit-adopt (edit)
  "Make the current buffer one of EDIT's: add its keys and its hook.
Killing the buffer rejects EDIT, and asks before that if it was edited."
  (setq gemini-companion-edit-here edit)
  (with-demoted-errors "Hook of the review: %S"
    (gemini-companion-review-mode))
  (add-hook 'kill-buffer-query-functions #'gemini-companion-edit--kill-p nil t)
  (add-hook 'kill-buffer-hook #'gemini-companion-edit--buffer-killed nil t))
(put 'gemini-companion-edit--kill-p 'permanent-local-hook t)
(put 'gemini-companion-edit--buffer-killed 'permanent-local-hook t)

(defun gemini-companion-edit-discard (buffer)
  "Kill BUFFER if it is live, without settling its edit."
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

(defun gemini-companion-edit--ends-here ()
  "Return the edit whose review ends if this buffer is killed, or nil.
That is not the edit of an indirect buffer."
  (and gemini-companion-edit-here
       (not (buffer-base-buffer))
       (gemini-companion-edit-proposal-buffer gemini-companion-edit-here)
       gemini-companion-edit-here))

(defun gemini-companion-edit--kill-p ()
  (let ((edit (gemini-companion-edit--ends-here)))
    (or (null edit) (gemini-companion-edit-decision edit)
        (gemini-companion-edit-ask
         edit (lambda () (gemini-companion-edit-drop-p edit))))))

(defun gemini-companion-edit--buffer-killed ()
  "Close the review whose buffer is being killed; reject it if it is open."
  (when-let* ((edit (gemini-companion-edit--ends-here)))
    (let* ((open (gemini-companion-edit-open-p edit))
           (kept (and open (gemini-companion-edit--keep-edits edit))))
      (gemini-companion-edit--settle edit 'rejected)
      (gemini-companion-edit-finish edit)
      (when open
        (message (if kept "%s; %s shows your edits" "%s")
                 (gemini-companion-edit--rejected edit)
                 (substitute-command-keys
                  "\\[gemini-companion-last-proposal]"))))))

(defun gemini-companion-edit-drop-p (&optional edit)
  "Return non-nil if the user's text in EDIT, by default all, may be dropped.
Ask the user if there is any and a question is possible."
  (let ((edited (seq-filter #'gemini-companion-edit-edited-p
                            (if edit
                                (list edit)
                              (gemini-companion-edits-open)))))
    (or (null edited)
        noninteractive
        (yes-or-no-p
         (format "Reject the proposal for %s and drop your edits? "
                 (mapconcat (lambda (edit)
                              (gemini-companion-edit-name edit 'plain))
                            edited ", "))))))

;;;; Ending

(defun gemini-companion-edit--settle (edit decision &optional over)
  "Set the DECISION about EDIT and send its outcome, unless it is dismissed.
An edit that was settled is not changed.  Its view is still to be closed.
OVER is nil, or the text that the user has accepted and that Emacs writes
over what the CLI writes."
  (when (gemini-companion-edit-open-p edit)
    (gemini-companion-edit--end-others edit)
    (gemini-companion-edit--decide edit decision over)
    (gemini-companion-watch-stop (gemini-companion-edit-watch edit))
    (when (memq decision '(dismissed rejected))
      (gemini-companion-edit--read-refused edit))
    (setf (gemini-companion-edit-time edit) (float-time))
    (gemini-companion-edit--notify edit 'settled)))

(defun gemini-companion-edit--decide (edit decision over)
  "Set the DECISION about EDIT, await its write, and send its outcome.
For OVER, see `gemini-companion-edit--settle'.  If the outcome cannot be sent,
or the user quits meanwhile, EDIT stays open, and can be answered again."
  (gemini-companion-edit--await edit decision over)
  (setf (gemini-companion-edit-decision edit) decision
        (gemini-companion-edit-after edit) (gemini-companion-edit-text edit))
  (unless (eq decision 'dismissed)
    (let ((sent nil))
      (unwind-protect
          (progn (gemini-companion-edit--send edit)
                 (setq sent t))
        (unless sent
          (gemini-companion-edit--undecide edit))))))

(defun gemini-companion-edit--undecide (edit)
  "Make EDIT, whose outcome was not sent, an open one again."
  (gemini-companion-watch-stop
   (gemini-companion-written-watch (gemini-companion-edit-awaited edit)))
  (setf (gemini-companion-edit-decision edit) nil
        (gemini-companion-edit-after edit) nil
        (gemini-companion-edit-awaited edit) nil))

(defun gemini-companion-edit--read-refused (edit)
  "Record the text of the file of EDIT, which was refused, if it has changed.
But if the CLI had written it already, record that, and keep the text before."
  ;; Copilot CLI may write the file after it was found not to have done that:
  ;; what it wrote, read as the text before, would make an edit of +0 -0.
  (when (and (gemini-companion-watch-touched-p (gemini-companion-edit-watch edit))
             (not (gemini-companion-edit--note-early-write edit)))
    (gemini-companion-edit--read edit)))

(defun gemini-companion-edit--await (edit decision over)
  "Await the write of EDIT by its CLI after the DECISION about it.
For OVER, see `gemini-companion-edit--settle'."
  ;; A rejected edit may be written, too: a yes in the terminal may cross the
  ;; answer.
  (setf (gemini-companion-edit-awaited edit)
        (gemini-companion-written-await
         (gemini-companion-edit-file edit)
         (apply-partially #'gemini-companion-edit--follow edit)
         :keys (and (not (eq decision 'automatic)) num-input-keys)
         :pending (lambda () (gemini-companion-edit--pending-p edit))
         :over (and over (cons (gemini-companion-edit-proposed edit) over))
         :lasts (lambda () (not (gemini-companion-edit--past-p edit))))))

(defun gemini-companion-edit--pending-p (edit)
  "Return non-nil if the CLI of EDIT cannot have written its file yet.
Qwen Code writes the files of an answer once all its edits have ended."
  (and (cl-find (gemini-companion-edit-turn edit) (gemini-companion-edits-open)
                :key #'gemini-companion-edit-turn)
       (not (gemini-companion-edit--later-written-p edit))))

(defun gemini-companion-edit--later-written-p (edit)
  "Return non-nil if an edit of EDIT's turn that ended later was written.
What is open in that turn is then of another answer.  A turn that is not
reported may last as long as the session; without this, each further review
in it would put off the report about EDIT."
  (seq-some (lambda (other)
              (and (eq (gemini-companion-edit-turn edit)
                       (gemini-companion-edit-turn other))
                   (< (gemini-companion-edit-time edit)
                      (gemini-companion-edit-time other))
                   (eq 'written (gemini-companion-edit-file-state other))))
            gemini-companion-edit--all))

(defun gemini-companion-edit--past-p (edit)
  "Return non-nil if the turn of EDIT has ended, as far as that is known."
  (when-let* ((turn (gemini-companion-session-turn
                     (gemini-companion-edit-session edit))))
    (if (eq turn (gemini-companion-edit-turn edit))
        (and (gemini-companion-turn-ended turn)
             ;; A turn whose end is only supposed may go on, as after a new
             ;; connection.
             (not (gemini-companion-turn-cut turn)))
      (< (gemini-companion-edit-time edit) (gemini-companion-turn-began turn)))))

(cl-defmethod gemini-companion-server-receive ((_method (eql 'close-diff)) id reason)
  "Close the edit ID for REASON; see `gemini-companion-edit-close'."
  (when-let* ((edit (gemini-companion-edit--of-id id)))
    (gemini-companion-edit-close edit reason)))

(defun gemini-companion-edit-close (edit reason)
  "Dismiss EDIT if it is open, and return the text that it had then.
REASON is `closed' if the CLI closed the review, `exited' if its process
has exited, `disconnected' if it has not reconnected in time,
`interrupted' if it no longer asks, and `lost' if the server gave up."
  (when-let* (((gemini-companion-edit-open-p edit))
              (text (gemini-companion-edit-text edit)))
    (let ((kept (gemini-companion-edit--keep-edits edit)))
      (when (and (eq reason 'interrupted) (not kept))
        (gemini-companion-edit--keep edit text))
      (when (and (eq reason 'closed) (gemini-companion-edit-emptied-p edit))
        (message
         "You emptied the proposal for %s; if you answered yes \
in the terminal, %s writes its own text"
         (gemini-companion-edit-name edit) (gemini-companion-edit--title edit)))
      (gemini-companion-edit--settle edit 'dismissed)
      (when (memq reason '(interrupted disconnected))
        ;; The CLI may still wait for its outcome.
        (gemini-companion-edit--send edit))
      (unless (memq reason '(closed lost))
        (setf (gemini-companion-edit-problem edit)
              (message (concat "%s %s; review closed, %s not written"
                               (and kept "; %s shows your edits"))
                       (gemini-companion-session-name
                        (gemini-companion-edit-session edit))
                       reason
                       (gemini-companion-edit-name edit)
                       (substitute-command-keys
                        "\\[gemini-companion-last-proposal]")))))
    text))

(defun gemini-companion-edit--take (edit decision)
  "Accept EDIT with its text; DECISION is `accepted' or `automatic'."
  ;; A text of 1 MB would trigger a garbage collection, which takes longer than
  ;; anything else.
  (let ((gc-cons-threshold (max gc-cons-threshold (* 256 1024 1024)))
        (text (gemini-companion-edit-text edit)))
    (gemini-companion-edit--read edit)
    (gemini-companion-edit--settle
     edit decision
     (when (gemini-companion-edit--own-text-p edit text)
       ;; Until it is written.
       (gemini-companion-edit--keep edit text)
       (and (gemini-companion-edit-client-get edit :writes-own-text) text)))))

(defun gemini-companion-edit-finish (edit)
  "Close the view and the buffers of EDIT, which has ended."
  ;; The user may have typed in it since it was dismissed.
  (when (eq 'dismissed (gemini-companion-edit-decision edit))
    (gemini-companion-edit--keep-edits
     edit "Review of %s closed; %s shows your edits"))
  (gemini-companion-edit-hide edit)
  ;; The markers of comments are in that buffer.
  (setf (gemini-companion-edit-commented edit) (gemini-companion-edit-comments edit))
  (gemini-companion-edit-discard (gemini-companion-edit-proposal-buffer edit))
  (gemini-companion-edit-discard (gemini-companion-edit-original-buffer edit))
  (setf (gemini-companion-edit-proposal-buffer edit) nil
        (gemini-companion-edit-original-buffer edit) nil)
  (gemini-companion-edit--notify edit 'closed))

(defun gemini-companion-edit-show (edit function)
  "Show EDIT by calling FUNCTION with it, and report whether it is shown.
FUNCTION opens a view, and records that by `gemini-companion-edit-set-view'.
If it signals an error, record that as the problem of EDIT."
  (setf (gemini-companion-edit-problem edit) nil)
  (condition-case problem
      (progn
        (when-let* ((problem (gemini-companion-text-unreadable-reason
                              (gemini-companion-edit-file edit))))
          (user-error "%s %s" (gemini-companion-edit-name edit) problem))
        ;; The watch may not have noticed a change of the file yet.
        (when (gemini-companion-watch-touched-p
               (gemini-companion-edit-watch edit))
          (gemini-companion-edit--read edit))
        (funcall function edit))
    (error
     (gemini-companion-edit-discard (gemini-companion-edit-original-buffer edit))
     (setf (gemini-companion-edit-original-buffer edit) nil
           (gemini-companion-edit-problem edit)
           (concat
            ;; An error in a hook of the user, for example.
            (unless (eq 'user-error (car problem))
              (format "Cannot show the review of %s: "
                      (gemini-companion-edit-name edit)))
            (error-message-string problem)))))
  (gemini-companion-edit--notify
   edit (if (gemini-companion-edit-view edit) 'shown 'hidden)))

(defun gemini-companion-edit-offer (edit objection)
  "Accept EDIT without a review; if OBJECTION is non-nil, only record that."
  (setf (gemini-companion-edit-objection edit) objection)
  (unless objection
    (gemini-companion-edit--take edit 'automatic)))

(defun gemini-companion-edit-set-view (edit view)
  "Record that EDIT is shown in VIEW, or in none if that is nil.
This is called by what opens and closes a view, and by nothing else."
  (setf (gemini-companion-edit-view edit) view))

(defun gemini-companion-edit-hide (edit)
  "Close the view of EDIT, if it has one."
  (when (gemini-companion-edit-view edit)
    (gemini-companion-edit--notify edit 'hide)
    (gemini-companion-edit--notify edit 'hidden)))

(defun gemini-companion-edit-ask (edit ask)
  "Return the user's answer about EDIT, the value of calling ASK.
If EDIT ended meanwhile, report that and return nil."
  (let ((answer (funcall ask)))
    (if (gemini-companion-edit-open-p edit)
        answer
      (message "%s" (or (gemini-companion-edit-problem edit)
                        "This review has ended already"))
      nil)))

;;;; Texts of the user

(defun gemini-companion-edit--keep-edits (edit &optional format)
  "Keep the proposal of EDIT if the user has edited it and left some text.
Report that by FORMAT, if it was not kept before, and return non-nil."
  (when-let* ((proposal (gemini-companion-edit-proposal-buffer edit))
              ((buffer-live-p proposal))
              (text (gemini-companion-hunk-remaining-text proposal))
              ((gemini-companion-edit--own-text-p edit text))
              ;; A yes in the terminal may have written it.
              ((not (gemini-companion-edit-in-file-p edit text))))
    (gemini-companion-edit--keep
     edit text
     (unless (equal text (cdr (gemini-companion-edit-kept edit))) format))
    t))

(defun gemini-companion-edit--keep (edit text &optional format)
  "Keep TEXT, of EDIT, for `gemini-companion-last-proposal'.
Report that by FORMAT, which has places for the name of the file and a
key, if it is non-nil."
  (setf (gemini-companion-edit-kept edit) (cons (float-time) text))
  (when format
    (message
     format (gemini-companion-edit-name edit 'plain)
     (substitute-command-keys "\\[gemini-companion-last-proposal]"))))

(defun gemini-companion-edits-kept ()
  "Return the ten edits whose texts were kept last, the last one first."
  (seq-take (seq-sort-by (lambda (edit)
                           (car (gemini-companion-edit-kept edit)))
                         #'>
                         (seq-filter #'gemini-companion-edit-kept
                                     gemini-companion-edit--all))
            10))

;;;; The file

(defun gemini-companion-edit--file-changed (edit occasion)
  "Follow a change of the file of EDIT; return nil if that has to wait.
If the file has the proposed text, dismiss EDIT, else update its view; on
OCCASION nil, see `gemini-companion-watch-check', only between commands."
  (cond ((gemini-companion-edit-in-file-p edit
                                          (gemini-companion-edit-proposed edit))
         (gemini-companion-edit--settle edit 'dismissed)
         (unless (gemini-companion-edit-kept edit)
           (message "%s already has the proposed text; review closed \
(if %s still prompts, answer there)"
                    (gemini-companion-edit-name edit)
                    (gemini-companion-edit--title edit)))
         t)
        ((or occasion (gemini-companion-idle-between-commands-p))
         (gemini-companion-edit--read edit)
         (gemini-companion-edit--notify edit 'file-changed)
         t)))

;; What another program than this Emacs has written to a file is attributed to at
;; most one edit by its text.  A program may format what a CLI has written, and
;; Qwen Code merges two edits of a file, so the file may have another text after an
;; accepted edit was written: then it must have changed where that edit changes it.
(defun gemini-companion-edit--follow (edit event)
  "Record what has become of the file of EDIT, which has ended.
For EVENT and the value, see `gemini-companion-written'."
  (pcase event
    ('changed (gemini-companion-edit--file-written edit))
    ('expired (gemini-companion-edit--file-unwritten edit))))

(defun gemini-companion-edit--file-written (edit)
  "Record whether another program's write of the file of EDIT is that edit.
Return `found' if it is, `likely' if it may be, or nil."
  ;; What was refused, and is written in the next turn, is another edit.
  (when-let* (((or (gemini-companion-edit--accepted-p edit)
                   (gemini-companion-edit--in-turn-p
                    edit (gemini-companion-edit-session edit))))
              (bytes (or (gemini-companion-edit--bytes edit) 'unknown))
              (how (gemini-companion-edit--attributed edit bytes)))
    ;; The user may have reverted it before that was noticed.
    (unless (and (eq 'likely (car how)) (gemini-companion-edit-file-state edit))
      (gemini-companion-edit--set-written edit (cdr how))
      (gemini-companion-edit--notify edit 'written))
    (car how)))

(defun gemini-companion-edit--in-turn-p (edit session)
  "Return non-nil if EDIT may be of the current turn of SESSION.
It may if the CLI has not reported that turn."
  (let ((turn (gemini-companion-session-turn session)))
    (or (null turn)
        (not (gemini-companion-turn-reported turn))
        (eq turn (gemini-companion-edit-turn edit)))))

(defun gemini-companion-edit--accepted-p (edit)
  "Return non-nil if EDIT was accepted in Emacs."
  (memq (gemini-companion-edit-decision edit) '(accepted automatic)))

(defun gemini-companion-edit--attributed (edit bytes)
  "Return how the file of EDIT, which has BYTES, may be as EDIT has written it.
BYTES is `unknown' if the file is too large.  The value is nil or a cons:
`found' and the text of EDIT that the file has, or, only for an accepted
edit, `likely' and the text of EDIT from which the file was made."
  (let* ((exact (and (stringp bytes)
                     (gemini-companion-edit--text-in-file edit bytes)))
         (rivals (and (stringp bytes) (gemini-companion-edit--rivals edit)))
         ;; A CLI that ignores the user's text has written its own.
         (text (if (gemini-companion-edit-client-get edit :writes-own-text)
                   (gemini-companion-edit-proposed edit)
                 (gemini-companion-edit-after edit))))
    (cond (exact
           (unless (seq-some (lambda (rival)
                               (and (gemini-companion-edit--precedes-p rival edit)
                                    (gemini-companion-edit--text-in-file rival
                                                                         bytes)))
                             rivals)
             (cons 'found exact)))
          ((and (gemini-companion-edit--accepted-p edit)
                (not (seq-some (lambda (rival)
                                 (gemini-companion-edit--text-in-file rival bytes))
                               rivals))
                (gemini-companion-edit--changed-there-p edit text bytes))
           (cons 'likely text)))))

(defun gemini-companion-edit--text-in-file (edit bytes)
  "Return the text of EDIT that its file has changed to, or nil.
BYTES are those of the file.  The text is the one that was answered, or
the proposal."
  (seq-find (lambda (text) (gemini-companion-edit--has-changed-to-p edit text bytes))
            (list (gemini-companion-edit-after edit)
                  (gemini-companion-edit-proposed edit))))

(defun gemini-companion-edit--changed-there-p (edit text bytes)
  "Return non-nil if the file of EDIT has changed at a difference of TEXT.
BYTES are those of the file; if it is not known which these are, or the
previous ones, it has.  It has, too, if TEXT makes no difference."
  (or (symbolp bytes)
      (eq 'unknown (gemini-companion-edit-before edit))
      (let* ((before (gemini-companion-edit--text-before edit))
             (expected (gemini-companion-edit--differences before text)))
        (or (null expected)
            (gemini-companion-edit--any-of-edit-p
             edit
             (gemini-companion-edit--differences
              before (gemini-companion-edit-decode edit bytes))
             expected)))))

(defun gemini-companion-edit--any-of-edit-p (edit changes expected)
  "Return non-nil if one of CHANGES of EDIT's file may be one of EXPECTED.
Both are lists of `gemini-companion-edit--difference's; EXPECTED are those
that EDIT makes.  A change may be one of them if it is at the same place; but
if it has lines of another edit, and none of EXPECTED, it is of that one."
  (when-let* ((there (seq-filter
                      (lambda (change)
                        (seq-some (apply-partially
                                   #'gemini-companion-edit--overlap-p change)
                                  expected))
                      changes)))
    (or (seq-some (lambda (change)
                    (gemini-companion-edit--share-p change expected))
                  there)
        (let ((others (gemini-companion-edit--differences-of-others edit)))
          (seq-some (lambda (change)
                      (not (gemini-companion-edit--share-p change others)))
                    there)))))

(defun gemini-companion-edit--differences-of-others (edit)
  "Return the differences that other edits of EDIT's file have made, a list.
Only edits of its turn, or that are still expected, count.  The elements are
`gemini-companion-edit--difference's."
  (seq-mapcat
   (lambda (other)
     (when (and (gemini-companion-edit--accepted-p other)
                (or (eq (gemini-companion-edit-turn edit)
                        (gemini-companion-edit-turn other))
                    (gemini-companion-written-live-p
                     (gemini-companion-edit-awaited other)))
                (not (eq 'unknown (gemini-companion-edit-before other))))
       (gemini-companion-edit--differences
        (gemini-companion-edit--text-before other)
        (gemini-companion-edit-after other))))
   (gemini-companion-edit--others-of-file edit)))

(cl-defstruct (gemini-companion-edit--difference
               (:constructor gemini-companion-edit--difference (hunk lines))
               (:copier nil))
  "A HUNK of two texts, and its LINES in the second one, a list of strings."
  hunk lines)

(defun gemini-companion-edit--differences (a b)
  "Return the hunks between the texts A and B, as a CLI writes them.
It is a list of `gemini-companion-edit--difference's."
  (pcase-let ((`(,a ,b) (mapcar #'gemini-companion-edit--comparable (list a b))))
    (unless (string= a b)
      (let ((lines (split-string b "\n")))
        (mapcar (lambda (hunk)
                  (gemini-companion-edit--difference
                   hunk
                   (seq-take (nthcdr (1- (gemini-companion-hunk-new hunk)) lines)
                             (gemini-companion-hunk-new-count hunk))))
                (gemini-companion-hunk-compare a b))))))

(defun gemini-companion-edit--share-p (change others)
  "Return non-nil if CHANGE has a line of one of OTHERS, except an empty one.
All are `gemini-companion-edit--difference's."
  (let ((lines (gemini-companion-edit--difference-lines change)))
    (seq-some (lambda (other)
                (seq-some (lambda (line)
                            (and (not (string-blank-p line)) (member line lines)))
                          (gemini-companion-edit--difference-lines other)))
              others)))

(defun gemini-companion-edit--overlap-p (a b)
  "Return non-nil if the differences A and B are at the same old lines.
One that only adds lines is at the place between two lines."
  (let* ((a (gemini-companion-edit--difference-hunk a))
         (b (gemini-companion-edit--difference-hunk b)))
    (gemini-companion-hunk-touch-p
     (gemini-companion-hunk-old a) (gemini-companion-hunk-old-end a)
     (gemini-companion-hunk-old b) (gemini-companion-hunk-old-end b))))

(defun gemini-companion-edit--rivals (edit)
  "Return other edits that may have written the file of EDIT, a list.
They have ended, and their write is awaited, was just noticed, or came
later."
  (seq-filter (lambda (other)
                (and (gemini-companion-edit-decision other)
                     (or (gemini-companion-edit--found-now-p other)
                         (gemini-companion-written-live-p
                          (gemini-companion-edit-awaited other))
                         (< (gemini-companion-edit-time edit)
                            (gemini-companion-edit-time other)))))
              (gemini-companion-edit--others-of-file edit)))

(defun gemini-companion-edit--found-p (edit)
  "Return non-nil if the write of EDIT was found, maybe some time ago."
  (when-let* ((awaited (gemini-companion-edit-awaited edit)))
    (gemini-companion-written-found awaited)))

(defun gemini-companion-edit--found-now-p (edit)
  "Return non-nil if the file of EDIT is as EDIT was found to have written it."
  (when-let* ((awaited (gemini-companion-edit-awaited edit)))
    (gemini-companion-written-found-now-p awaited)))

(defun gemini-companion-edit--delayed-p (edit)
  "Return non-nil if the CLI of EDIT writes its file only after other answers."
  (when-let* ((awaited (gemini-companion-edit-awaited edit)))
    (gemini-companion-written-pending-p awaited)))

(defun gemini-companion-edit--precedes-p (a b)
  "Return non-nil if a text that the edits A and B have is rather that of A.
That is so if it was found to be A's already; or if A alone was accepted; or
if both were, and were not found, and A was before B or does not have to
wait for other answers.  If both were refused, the last one is written."
  (let ((later (< (gemini-companion-edit-time b) (gemini-companion-edit-time a))))
    (cond ((gemini-companion-edit--found-now-p a) t)
          ((not (gemini-companion-edit--accepted-p b))
           (or (gemini-companion-edit--accepted-p a) later))
          ((not (gemini-companion-edit--accepted-p a)) nil)
          ((or (gemini-companion-edit--found-p a)
               (gemini-companion-edit--found-p b))
           nil)
          (t (pcase (list (and (gemini-companion-edit--delayed-p a) t)
                          (and (gemini-companion-edit--delayed-p b) t))
               ('(nil t) t)
               ('(t nil) nil)
               (_ (not later)))))))

(defun gemini-companion-edit--set-written (edit text)
  "Record that EDIT was written with TEXT, which is one of its texts.
If that is its proposal, its CLI has ignored the changes of the user, which
is reported."
  (let ((after (gemini-companion-edit-after edit)))
    (cond ((not (equal text after))
           (when (gemini-companion-edit--own-text-p edit after)
             (gemini-companion-edit--keep
              edit after "%s was written without your edits; %s shows them")))
          ((equal text (cdr (gemini-companion-edit-kept edit)))
           (setf (gemini-companion-edit-kept edit) nil)))
    (gemini-companion-edit--correct-coding edit text)
    (setf (gemini-companion-edit-after edit) text
          (gemini-companion-edit-file-state edit) 'written)))

(defun gemini-companion-edit--note-early-write (edit)
  "Record whether the CLI of EDIT had written the file when it was refused.
Qwen Code writes it before it closes the review.  Return non-nil if it had."
  (when-let* (((gemini-companion-watch-written-p (gemini-companion-edit-watch edit)))
              (bytes (gemini-companion-edit--bytes edit))
              (how (gemini-companion-edit--attributed edit bytes)))
    (gemini-companion-edit--set-written edit (cdr how))
    t))

(defun gemini-companion-edit--file-unwritten (edit)
  "Record that the CLI of EDIT has not written its file, if that is so."
  (let ((accepted (gemini-companion-edit--accepted-p edit)))
    (unless (or (gemini-companion-edit-file-state edit)
                (and accepted (gemini-companion-edit--superseded-p edit)))
      ;; A user who interrupts Gemini CLI leaves a review that it ignores.
      (when accepted
        (gemini-companion-edit--keep
         edit (gemini-companion-edit-after edit)
         "%s was accepted but was not written; %s shows the text"))
      (setf (gemini-companion-edit-file-state edit) 'unwritten)
      (gemini-companion-edit--notify edit 'unwritten))))

(defun gemini-companion-edit--superseded-p (edit)
  "Return non-nil if EDIT may have been written, and written over at once.
Its CLI has then written a later edit of the same turn, or another CLI the
same text, and the file has changed where EDIT changes it, by no save."
  (and (gemini-companion-written-alone-p (gemini-companion-edit-awaited edit))
       (seq-some
        (lambda (other)
          (and (gemini-companion-edit--found-p other)
               (or (and (eq (gemini-companion-edit-turn edit)
                            (gemini-companion-edit-turn other))
                        (< (gemini-companion-edit-time edit)
                           (gemini-companion-edit-time other)))
                   (gemini-companion-edit--same-written-p
                    (gemini-companion-edit-after edit)
                    (gemini-companion-edit-after other)))))
        (gemini-companion-edit--others-of-file edit))
       (gemini-companion-edit--changed-there-p
        edit (gemini-companion-edit-after edit)
        (or (gemini-companion-edit--bytes edit) 'unknown))))

(defun gemini-companion-edit--end-others (edit)
  "Notice what became of the edits of EDIT's file that have ended.
Emacs writes no accepted text over that file for them any more: what comes
now may be EDIT."
  (dolist (other (gemini-companion-edit--others-of-file edit))
    (let ((awaited (gemini-companion-edit-awaited other)))
      (when (gemini-companion-written-live-p awaited)
        (gemini-companion-edit--look other)
        (gemini-companion-written-end-over awaited)))))

(defun gemini-companion-edit--look (edit)
  "Notice at once whether the file of EDIT, which has ended, was written."
  (let ((watch (gemini-companion-written-watch (gemini-companion-edit-awaited edit))))
    ;; A large file counts as written if it is as at the previous check.
    (dotimes (_ 2)
      (when (gemini-companion-watch-live-p watch)
        (gemini-companion-watch-check watch 'look)))))

(defun gemini-companion-edit-awaited-p (edit)
  "Return non-nil if EDIT was accepted, and its CLI is still to write its file."
  (when (and (gemini-companion-edit--accepted-p edit)
             (gemini-companion-edit-awaited edit))
    (gemini-companion-edit--look edit)
    (and (null (gemini-companion-edit-file-state edit))
         (gemini-companion-written-live-p (gemini-companion-edit-awaited edit)))))

(defun gemini-companion-edit-follows-p (edit)
  "Return non-nil if an edit of EDIT's file from its turn is not written yet.
Qwen Code writes the files of an answer at its end, and merges two edits of
a file only if the user has not changed the second one."
  (and (gemini-companion-edit-open-p edit)
       (seq-some (lambda (other)
                   (and (gemini-companion-edit--accepted-p other)
                        (null (gemini-companion-edit-file-state other))
                        (eq (gemini-companion-edit-turn edit)
                            (gemini-companion-edit-turn other))
                        (gemini-companion-written-live-p
                         (gemini-companion-edit-awaited other))))
                 (gemini-companion-edit--others-of-file edit))))

(defun gemini-companion-edit--text-of-cli (edit)
  "Return the text that the CLI of EDIT takes for that of its file, or nil.
A CLI that writes its own text, over which Emacs has written the one that
the user has accepted, does not know that one in the same turn, until it
reads the file again.  Return nil if the CLI knows the text of the file."
  (when-let* (((gemini-companion-edit-client-get edit :writes-own-text))
              (last (seq-find #'gemini-companion-edit-written-p
                              (gemini-companion-edit--others-of-file edit)))
              ((eq (gemini-companion-edit-turn edit)
                   (gemini-companion-edit-turn last)))
              ((not (equal (gemini-companion-edit-proposed last)
                           (gemini-companion-edit-after last)))))
    (gemini-companion-edit-proposed last)))

(defun gemini-companion-edit--undoes-p (edit text)
  "Return non-nil if lines of the user are lost by TEXT, for the file of EDIT.
These are lines that the user has made of the CLI's previous edit of the file,
which the CLI does not know; see `gemini-companion-edit--text-of-cli'."
  (when-let* ((base (gemini-companion-edit--text-of-cli edit))
              ((not (eq 'unknown (gemini-companion-edit-before edit)))))
    (let* ((mine (gemini-companion-edit--text-before edit))
           (of-user (gemini-companion-edit--differences base mine))
           (of-text (gemini-companion-edit--differences mine text)))
      (seq-some (lambda (change)
                  (seq-some (apply-partially #'gemini-companion-edit--changes-p
                                             change)
                            of-user))
                of-text))))

(defun gemini-companion-edit--changes-p (second first)
  "Return non-nil if the difference SECOND changes lines that FIRST has made."
  (let ((first (gemini-companion-edit--difference-hunk first))
        (second (gemini-companion-edit--difference-hunk second)))
    (gemini-companion-hunk-touch-p
     (gemini-companion-hunk-new first) (gemini-companion-hunk-new-end first)
     (gemini-companion-hunk-old second) (gemini-companion-hunk-old-end second))))

(defun gemini-companion-edit-written (session file before after)
  "Record that SESSION has written FILE, maybe without a review.
BEFORE is the previous text of FILE, nil if it did not exist, and AFTER
the current one.  An edit between these texts, of this turn or not reported
yet, is not recorded again."
  (let ((edit (or (gemini-companion-edit--of-write session file before after)
                  (gemini-companion-edit--record-write session file before
                                                       after))))
    (setf (gemini-companion-edit-reported edit) t
          (gemini-companion-edit-file-state edit) 'written)
    (gemini-companion-edit--notify edit 'written)))

(defun gemini-companion-edit--of-write (session file before after)
  "Return the recorded edit that is a reported write, or nil.
For the arguments, see `gemini-companion-edit-written'."
  (seq-find
   (lambda (edit)
     (and (gemini-companion-edit--same-written-p
           after (gemini-companion-edit-text edit))
          (if (gemini-companion-edit-written-p edit)
              ;; The report of its prompt may have been lost.
              (not (gemini-companion-edit-reported edit))
            (and (gemini-companion-edit--in-turn-p edit session)
                 (not (eq 'unknown (gemini-companion-edit-before edit)))
                 (gemini-companion-edit--same-written-p
                  (or before "") (gemini-companion-edit--text-before edit))))))
   (gemini-companion-edit--of-file (gemini-companion-text-true-name file))))

(defun gemini-companion-edit--record-write (session file before after)
  "Record a reported write as a new edit, and return that.
For the arguments, see `gemini-companion-edit-written'."
  (let ((edit (gemini-companion-edit--make
               :id (gensym) :session session :file file
               :decision 'unreviewed :proposed after :after after)))
    (gemini-companion-edit--set-coding edit
                                       (gemini-companion-edit--bytes edit)
                                       after)
    (setf (gemini-companion-edit-before edit)
          (if before
              (gemini-companion-edit--encoded edit before)
            'new))
    (gemini-companion-edit--add edit)
    edit))

(defun gemini-companion-edit--encoded (edit text)
  "Return the bytes of TEXT in the file of EDIT, or `unknown'.
TEXT is as the CLI has read it.  Its bytes are unknown if the CLI could not
decode them, or if Emacs does not have some of its characters in that coding
system."
  (let ((bytes (encode-coding-string text (gemini-companion-edit-coding edit))))
    (if (or (string-search "\uFFFD" text)
            (not (equal text (gemini-companion-edit-decode edit bytes))))
        'unknown
      bytes)))

(defun gemini-companion-edit-set-reverted (edit state &optional undone)
  "Set the file state STATE of EDIT, of which the hunks UNDONE are reverted."
  (unless (and (eq state (gemini-companion-edit-file-state edit))
               (equal undone (gemini-companion-edit-undone edit)))
    (setf (gemini-companion-edit-file-state edit) state
          (gemini-companion-edit-undone edit) undone)
    (gemini-companion-edit--notify edit 'reverted)))

;;;; Commands

(defun gemini-companion-edit--answer (edit verb function)
  "Call FUNCTION with EDIT, or if that is nil, with each open edit at point.
If there are several edits, ask for confirmation with VERB."
  (let ((edits (gemini-companion-edits-to-answer edit))
        (view gemini-companion-edits-view))
    (when (or (null (cdr edits))
              (y-or-n-p (format "%s %d proposals? " verb (length edits))))
      ;; An edit may end while a question is asked about another.
      (dolist (edit edits)
        (when (gemini-companion-edit-open-p edit)
          (funcall function edit)))
      (gemini-companion-view-follow view 'answered))))

(defun gemini-companion-edit-accept (&optional edit)
  "Accept EDIT with the text in its proposal buffer.
That text is then written to the file.  Without EDIT, take the
edits at point in the list; else the review of the current buffer,
or the one that is shown."
  (interactive)
  (gemini-companion-edit--answer edit "Accept" #'gemini-companion-edit--accept))

(defun gemini-companion-edit--accept (edit)
  (when (gemini-companion-edit-emptied-p edit)
    (user-error "An empty text cannot be accepted: the CLI would write \
its own text; reject the proposal, or leave at least one character"))
  (unless (gemini-companion-edit--refused-p edit)
    (let ((summary (gemini-companion-edit-summary edit 'plain)))
      (gemini-companion-edit--take edit 'accepted)
      (gemini-companion-edit--answered edit (concat "Accepted " summary)))))

(defun gemini-companion-edit--refused-p (edit)
  "Return non-nil if the user objects to accepting EDIT.
Ask only if the CLI would write over a change of the file, or lose characters."
  ;; A large file counts as written if it is as at the previous check.
  (dotimes (_ 2)
    (gemini-companion-watch-check (gemini-companion-edit-watch edit) 'command))
  (or (not (gemini-companion-edit-open-p edit))
      (when-let* ((format (gemini-companion-edit--overwrites edit)))
        (not (gemini-companion-edit-ask
              edit
              (lambda ()
                (yes-or-no-p (format format (gemini-companion-edit-name edit)))))))
      (gemini-companion-edit--loss-refused-p edit)))

(defun gemini-companion-edit--overwrites (edit)
  "Return a question about what accepting EDIT would overwrite, or nil.
It has a place for the name of its file.  If the user has merged what the
CLI does not know into the proposal, that is not overwritten."
  (cond ((memq 'changed (gemini-companion-edit-remarks edit))
         "%s has changed since the edit was proposed; accept anyway? ")
        ((and (memq 'undoes (gemini-companion-edit-remarks edit))
              (gemini-companion-edit--undoes-p edit (gemini-companion-edit-text edit)))
         "This edit of %s undoes yours of the previous one; accept anyway? ")))

(defun gemini-companion-edit--loss-accepted-p (edit)
  "Return non-nil if the user has accepted a loss in EDIT's file and turn."
  (seq-some (lambda (other)
              (and (memq 'loss-accepted (gemini-companion-edit-remarks other))
                   (eq (gemini-companion-edit-turn edit)
                       (gemini-companion-edit-turn other))))
            (gemini-companion-edit--of-file
             (gemini-companion-edit-true-name edit))))

(defun gemini-companion-edit--loss-refused-p (edit)
  "Return non-nil if the user objects to characters that are lost by EDIT.
Ask once for a file and turn."
  (ignore-errors (gemini-companion-edit-hunks edit))
  (let ((count (gemini-companion-edit-lost-count edit)))
    (cond ((or (= 0 count) (gemini-companion-edit--loss-accepted-p edit))
           nil)
          ((gemini-companion-edit-ask
            edit
            (lambda ()
              (yes-or-no-p
               (format (ngettext
                        "%s is not UTF-8: %s replaces %d character; accept anyway? "
                        "%s is not UTF-8: %s replaces %d characters; accept anyway? "
                        count)
                       (gemini-companion-edit-name edit)
                       (gemini-companion-edit--title edit) count))))
           (cl-pushnew 'loss-accepted (gemini-companion-edit-remarks edit))
           nil)
          (t t))))

(defun gemini-companion-edit--answered (edit text)
  "Close the view of EDIT, which the user has settled; report TEXT in one line.
If the user is in the review, it may stay until the next takes its place."
  (cond ((active-minibuffer-window))   ; it would show the view again in the end
        ((and real-this-command (gemini-companion-edit-view edit)
              (eq edit gemini-companion-edit-here))
         (gemini-companion-edit--notify edit 'answered))
        (t (gemini-companion-edit-finish edit)))
  (let ((left (length (gemini-companion-edits-open))))
    (unless (zerop left)
      (setq text (format "%s; %d more waiting" text left)))
    (message "%s" (gemini-companion-names-shown text (1- (frame-width))))))

(defvar gemini-companion-edit-reject-function #'ignore
  "Function that may reject an edit in its own way, as with a reason.
It is called with the edit when the user types a key to reject it, and
returns non-nil if it has rejected the edit.")

(defun gemini-companion-edit-reject (&optional edit)
  "Reject EDIT, so that the CLI does not write the file.
Without EDIT, take the edits at point in the list, or else the review of
the current buffer, or the one that is shown; the comments on them
are sent as the reason."
  (interactive)
  (gemini-companion-edit--answer
   edit "Reject"
   (lambda (rejected)
     (unless (and (null edit)
                  (funcall gemini-companion-edit-reject-function rejected))
       (gemini-companion-edit--settle rejected 'rejected)
       (gemini-companion-edit--answered
        rejected (gemini-companion-edit--rejected rejected))))))

(defun gemini-companion-edit--rejected (edit)
  (concat "Rejected " (gemini-companion-edit-name edit 'plain)
          (and (gemini-companion-edit-client-get edit :drops-edits)
               (format "; %s drops its other edits of this answer"
                       (gemini-companion-edit--title edit)))))

;;;; Outcomes

;; An outcome is kept until the server reports that it was written to the CLI:
;; a server may crash before that.
(defun gemini-companion-edit--send (edit)
  (pcase-let (((cl-struct gemini-companion-edit id decision after) edit))
    ;; After a quit here, the user answers again.
    (apply #'gemini-companion-server-call
           (if (memq decision '(accepted automatic))
               (list 'diff-accepted id after)
             (list 'diff-rejected id))))
  (setf (gemini-companion-edit-outcome edit) 'sent))

(cl-defmethod gemini-companion-part-ready ((_part (eql 'edit)) how)
  "Hand over the edits to a new server, which became ready HOW.
It gets those whose outcome was not written, with the outcome, and the
open ones.  A CLI without an answer that a review is open asks in
its terminal."
  (pcase-dolist ((and edit (cl-struct gemini-companion-edit id session file
                                      proposed decision outcome acknowledged))
                 (gemini-companion-edits))
    ;; A text may be too large to send, which must not affect other reviews.
    (with-demoted-errors "Handing over a review: %S"
      (cond ((or outcome (and acknowledged (null decision)))
             (gemini-companion-server-call 'adopt-diff id session file proposed)
             (when outcome
               (gemini-companion-edit--send edit)))
            ;; An edit that has ended stays as it is.
            (t (gemini-companion-edit-close edit 'disconnected)))))
  (when (and (eq how 'recovered) (gemini-companion-sessions))
    (display-warning
     'gemini-companion
     (concat "Server crashed and was restarted.  Answer open reviews in Emacs, \
as their terminals do not take an answer."
             (when-let* ((remedy (gemini-companion-session-reconnect
                                  "if that does not reconnect")))
               (format "  Then %s; it opens no reviews until then." remedy))))))

(cl-defmethod gemini-companion-server-receive ((_method (eql 'diff-opened)) id)
  "Record that the CLI has the answer that the edit ID is open."
  (when-let* ((edit (gemini-companion-edit--of-id id)))
    (setf (gemini-companion-edit-acknowledged edit) t)))

(cl-defmethod gemini-companion-server-receive ((_method (eql 'outcome-written)) id)
  "Drop the outcome of the edit ID, which was written to its CLI."
  (when-let* ((edit (gemini-companion-edit--of-id id)))
    (setf (gemini-companion-edit-outcome edit) nil)))

(cl-defmethod gemini-companion-server-receive ((_method (eql 'outcome-undelivered)) id)
  "Report an accepted text of the edit ID, which cannot reach its CLI any more."
  (when-let* ((edit (gemini-companion-edit--of-id id))
              ((gemini-companion-edit-outcome edit))
              ((null (gemini-companion-edit-file-state edit)))
              ((gemini-companion-edit-written-p edit)))
    (gemini-companion-edit--keep edit (gemini-companion-edit-after edit))
    ;; If the file gets the text all the same, the edit is written then.
    (setf (gemini-companion-edit-file-state edit) 'unwritten)
    (gemini-companion-edit--notify edit 'unwritten)
    (display-warning
     'gemini-companion
     (format "%s was not written: %s %s.  \
M-x gemini-companion-last-proposal shows the text that you accepted"
             (gemini-companion-edit-name edit)
             (gemini-companion-session-name
              (gemini-companion-edit-session edit))
             (if (gemini-companion-session-connected-p
                  (gemini-companion-edit-session edit))
                 "is no longer waiting for the answer"
               "is no longer connected"))))
  (gemini-companion-server-receive 'outcome-written id))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'edit)))
  "Ask before edits of the user are dropped."
  '((kill-emacs-query-functions gemini-companion-edit-drop-p)))

(defun gemini-companion-edit-settle-all (decision &optional now)
  "Settle all open edits with DECISION.
Close their views between two commands, or at once if NOW is non-nil."
  (dolist (edit (gemini-companion-edits-open))
    (with-demoted-errors "Ending a review: %S"
      (gemini-companion-edit--keep-edits edit)
      (gemini-companion-edit--settle edit decision)
      (when now
        (gemini-companion-edit-finish edit)))))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'edit)))
  "Drop all edits but the last texts of the user that were not written."
  (dolist (edit gemini-companion-edit--all)
    (setf (gemini-companion-edit-outcome edit) nil))
  (setq gemini-companion-edit--all
        (seq-union (gemini-companion-edits-ending)
                   (gemini-companion-edits-kept) #'eq)))

(provide 'gemini-companion-edit)
;;; gemini-companion-edit.el ends here
