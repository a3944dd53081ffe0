;;; gemini-companion-diff.el --- Proposals and their one outcome  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software; you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.

;; This program is distributed in the hope that it will be useful,
;; but WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
;; GNU General Public License for more details.

;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; A diff is an edit that a CLI proposes to one file.  It begins with
;; `gemini-companion-diff-open' as `pending', is `shown' when the user is free
;; to see it, and ends once: `accepted', `rejected', or `dismissed' because the
;; CLI closed it or is gone.  One function moves a diff to its end, so that an
;; outcome is sent exactly once.  While it is open its file is watched.
;;
;; How a diff is displayed is not known here: the entry file passes a function
;; that displays a diff and returns a function that closes its view.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-name)
(require 'gemini-companion-revert)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'seq)
(require 'subr-x)

;;;; Customization

(defgroup gemini-companion-reviews nil
  "Reviews of proposed edits."
  :group 'gemini-companion)

(defcustom gemini-companion-review-arrival 'when-idle
  "When the review of a proposed edit appears.
`when-idle' waits until nothing was typed for a moment and no
prompt, macro or search is going on; `now' shows it at once;
`notify' only says that it is there, and \\[gemini-companion-review]
shows it.

The window in use stays selected and visible; the same command
selects the review."
  :type '(choice (const :tag "When nobody types" when-idle)
                 (const :tag "At once" now)
                 (const :tag "On request" notify))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

(defcustom gemini-companion-diff-opened-functions nil
  "Functions called with each diff when it is shown."
  :type 'hook
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

(defvar gemini-companion-diff-arrival-functions nil
  "Functions called with each new diff before it may be shown.
The first one that returns non-nil has settled the diff.")

(defvar gemini-companion-diff-objection-functions nil
  "Functions called with each diff that the user accepts.
If one of them returns non-nil, the diff stays open.")

(defcustom gemini-companion-diff-closed-functions nil
  "Functions called with each diff after it ended.
`gemini-companion-diff-state' tells how."
  :type 'hook
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

;;;; Keys

(defvar gemini-companion-review-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'gemini-companion-diff-accept)
    (define-key map (kbd "C-c C-k") #'gemini-companion-diff-reject)
    (define-key map [remap save-buffer] #'gemini-companion-diff-accept)
    map)
  "Keys in all buffers of a review.")

(define-minor-mode gemini-companion-review-mode
  "Answer a proposal of Gemini CLI.
\\{gemini-companion-review-mode-map}"
  :lighter nil)
(put 'gemini-companion-review-mode 'permanent-local t)

;;;; State

(cl-defstruct (gemini-companion-diff
               (:constructor gemini-companion-diff--make)
               (:copier nil))
  "An edit that a Gemini CLI proposes.
FILE-PATH is the path as the CLI sent it, PROPOSAL-BUFFER the live
buffer that holds the text that it proposes and that the person
may edit.  STATE is `pending', `shown', `accepted', `rejected' or
`dismissed'."
  id session file-path proposal-buffer (state 'pending)
  (tick nil :documentation "That of the proposal buffer before any edit.")
  (unedited nil :documentation "The text before the first edit, or nil.")
  (frame nil :documentation "The frame that shows it, or nil.")
  (main nil :documentation "The buffer of its view to go to, or nil.")
  (select nil :documentation "Function that selects its view, or nil.")
  (hide nil :documentation "Function that takes the view away, or nil.")
  (problem nil :documentation "Why it cannot be shown, a string, or nil.")
  (remarks nil :documentation "What is unusual about its file, strings.")
  (note nil :documentation "Why it is not auto-accepted, or nil.")
  (stamp nil :documentation "Stamp of its file when it was proposed, or nil.")
  (outdated nil :documentation "Non-nil if its view has to compare again.")
  (changed nil :documentation "Non-nil if its file has changed since then.")
  (base nil :documentation "Text of its file before that, or nil if unknown.")
  (unsaved nil :documentation "Non-nil if a buffer of its file has unsaved text.")
  (refresh nil :documentation "Function that reads its file again for its view, \
or nil.")
  (opened (float-time) :documentation "When it was opened, in seconds.")
  (replaces-edited nil :documentation "Non-nil if the user had edited the \
previous proposal.")
  (offered nil :documentation "Non-nil once it was offered to be taken.")
  (accepted-text nil :documentation "The text that was accepted, or nil."))

(defvar gemini-companion-diff--open nil
  "The unsettled diffs, oldest first.")

(defvar gemini-companion-diff--outcome-function #'ignore
  "Function called with each diff that was accepted or rejected.")

(defvar gemini-companion-diff--show-function #'ignore
  "Function that shows a diff and returns a function that hides it.")

(defvar gemini-companion-diff-changed-hook nil
  "Hook run after a diff was opened, shown, put back or ended.
For what displays the diffs; it must not fail, nor take long.")

(defvar gemini-companion-diff--timer nil
  "Timer of `gemini-companion-diff--go-on', or nil.")

(defvar gemini-companion-diff--announced nil
  "What was said last about a diff that waits, or nil.")

(defvar gemini-companion-diff--asking nil
  "The diff about whose end the person is being asked, or nil.")

(defvar gemini-companion-diff--leaving nil
  "The diffs that have ended and whose views are still to go.")

(defvar gemini-companion-diff--ended nil
  "The diff that ended last, or nil.")

(defvar gemini-companion-diff--last-proposal nil
  "Cons of a file and the last text that a review of it did not send.")

(defvar-local gemini-companion-diff-here nil
  "The diff that this buffer belongs to, or nil.")
(put 'gemini-companion-diff-here 'permanent-local t)

(defconst gemini-companion-diff--garbage-limit (* 256 1024 1024)
  "Up to how many bytes no garbage is collected before an outcome is told.
A text of 1 MB would start a collection, which takes longer than all else.")

(defconst gemini-companion-diff--idle-seconds 0.7
  "For how long nothing may have been typed before a review appears.")

;;;; Looking

(defun gemini-companion-diffs ()
  "Return the diffs that await an answer, oldest first."
  (copy-sequence gemini-companion-diff--open))

(defun gemini-companion-diff-proposal-text (diff)
  "Return the text in the proposal buffer of DIFF."
  (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
    (save-restriction
      (widen)
      (buffer-substring-no-properties (point-min) (point-max)))))

(defun gemini-companion-diff-proposed-text (diff)
  "Return the text that the CLI proposes by DIFF, whatever was edited.
Return nil if it is not known any more, as it was edited without
hooks.  The proposal buffer must be live."
  (or (gemini-companion-diff-unedited diff)
      (unless (gemini-companion-diff--touched-p diff)
        (gemini-companion-diff-proposal-text diff))))

(defun gemini-companion-diff--touched-p (diff)
  "Return non-nil if the proposal of DIFF was ever edited, in whatever way."
  (/= (gemini-companion-diff-tick diff)
      (buffer-chars-modified-tick
       (gemini-companion-diff-proposal-buffer diff))))

(defun gemini-companion-diff--edited-p (diff)
  "Return non-nil if the text in the proposal buffer of DIFF is another now."
  (and (gemini-companion-diff--touched-p diff)
       (not (equal (gemini-companion-diff-unedited diff)
                   (gemini-companion-diff-proposal-text diff)))))

(defun gemini-companion-diff-name (diff &optional plain)
  "Return the name of the file of DIFF for the user.
With PLAIN non-nil, without warnings; see `gemini-companion-name'."
  (gemini-companion-name (gemini-companion-diff-file-path diff)
                         (gemini-companion-diff-session diff)
                         plain))

(defun gemini-companion-diff--open-p (diff)
  "Return non-nil if DIFF awaits an answer."
  (memq (gemini-companion-diff-state diff) '(pending shown)))

(defun gemini-companion-diff--shown ()
  "Return the diff that is shown, or nil."
  (seq-find (lambda (diff) (eq (gemini-companion-diff-state diff) 'shown))
            gemini-companion-diff--open))

(defun gemini-companion-diff--waiting ()
  "Return the oldest diff that waits to be shown, or nil."
  (seq-find (lambda (diff)
              (and (eq (gemini-companion-diff-state diff) 'pending)
                   (not (gemini-companion-diff-problem diff))))
            gemini-companion-diff--open))

(defun gemini-companion-diff-lighter ()
  "Return the number of open diffs for the mode line, and its tooltip, or nil."
  (when-let* ((count (length gemini-companion-diff--open))
              ((< 0 count)))
    (cons (format "?%d" count)
          (format "%d edits wait for your answer" count))))

(defun gemini-companion-diff-current ()
  "Return the diff of the current buffer, else the one that is shown."
  (or gemini-companion-diff-here
      (gemini-companion-diff--shown)
      (user-error "No review is open here")))

;;;; Arrival

(defun gemini-companion-diff-start (show outcome)
  "Take proposals: show them by SHOW and tell each outcome by OUTCOME.
SHOW is called with a diff, and non-nil if the user has asked for
it and it is to be selected; it returns a function that hides it.
OUTCOME is called with each diff that was accepted or rejected."
  (setq gemini-companion-diff--show-function show
        gemini-companion-diff--outcome-function outcome)
  (add-hook 'delete-frame-functions #'gemini-companion-diff--frame-deleted)
  (add-hook 'after-make-frame-functions #'gemini-companion-diff--schedule))

(defun gemini-companion-diff-stop (state &optional now)
  "Move all diffs to STATE and take no more.
Their views go at once if NOW is non-nil, as Emacs is about to
end, else when the person is between two commands."
  (remove-hook 'delete-frame-functions #'gemini-companion-diff--frame-deleted)
  (remove-hook 'after-make-frame-functions #'gemini-companion-diff--schedule)
  (let ((later (not (or now (gemini-companion-diff--between-commands-p)))))
    (dolist (diff (gemini-companion-diffs))
      (with-demoted-errors "Ending a review: %S"
        (gemini-companion-diff--settle diff state later))))
  (when (and gemini-companion-diff--timer
             (null gemini-companion-diff--leaving))
    (cancel-timer gemini-companion-diff--timer))
  (gemini-companion-revert-stop)
  (setq gemini-companion-diff--ended nil
        gemini-companion-diff--last-proposal nil))

(defun gemini-companion-diff-open (id session file-path proposal)
  "Take the proposal to make PROPOSAL the text of FILE-PATH.
PROPOSAL is a string, or a function that fills a buffer.  ID is an
integer that names the diff; SESSION a plist with the `:id' of the
CLI that asks.  An open diff of that CLI for that file is replaced;
what the user made of it is kept."
  (let* ((former (gemini-companion-diff--find session file-path))
         (diff (gemini-companion-diff--make
                :id id :session session :file-path file-path
                :stamp (gemini-companion-revert-stamp file-path)
                :replaces-edited
                (and former (gemini-companion-diff--edited-p former)))))
    (when former
      (gemini-companion-diff-dismiss former))
    (setf (gemini-companion-diff-proposal-buffer diff)
          (gemini-companion-diff--proposal-buffer diff proposal)
          (gemini-companion-diff-tick diff)
          (buffer-chars-modified-tick
           (gemini-companion-diff-proposal-buffer diff)))
    (setq gemini-companion-diff--open
          (append gemini-companion-diff--open (list diff)))
    ;; The server waits for an answer to this call first.
    (gemini-companion-diff--schedule)
    (gemini-companion-diff--changed)
    t))

(defun gemini-companion-diff--offer (diff)
  "Let DIFF, if it waits, be settled without a review."
  (when (eq (gemini-companion-diff-state diff) 'pending)
    (setf (gemini-companion-diff-offered diff) t)
    (with-demoted-errors "Taking a proposal: %S"
      (run-hook-with-args-until-success
       'gemini-companion-diff-arrival-functions diff))))

(defun gemini-companion-diff-offer-again ()
  "Let each diff that waits be settled without a review."
  (mapc #'gemini-companion-diff--offer (gemini-companion-diffs)))

(defun gemini-companion-diff--changed ()
  "Let everything know that displays the diffs."
  (force-mode-line-update t)
  (with-demoted-errors "Showing the state of the reviews: %S"
    (run-hooks 'gemini-companion-diff-changed-hook)))

(defun gemini-companion-diff--find (session file-path)
  "Return the open diff of SESSION for FILE-PATH, or nil."
  (seq-find (lambda (diff)
              (and (equal (gemini-companion-diff-file-path diff) file-path)
                   (equal (plist-get (gemini-companion-diff-session diff) :id)
                          (plist-get session :id))))
            gemini-companion-diff--open))

(defun gemini-companion-diff--proposal-buffer (diff proposal)
  "Return a new buffer with PROPOSAL, that of DIFF.
It visits no file, so that nothing locks, saves or formats it."
  (with-current-buffer
      ;; A hook of the user's that fails is no reason to have no review.
      (let (buffer-list-update-hook)
        (generate-new-buffer (format "*gemini proposal: %s*"
                                     (gemini-companion-diff-name diff 'plain))))
    (setq default-directory
          (gemini-companion-diff-directory
           (gemini-companion-diff-file-path diff)))
    (buffer-disable-undo)
    (gemini-companion-diff--insert proposal)
    (buffer-enable-undo)
    (set-buffer-modified-p nil)
    (goto-char (point-min))
    (add-hook 'before-change-functions
              #'gemini-companion-diff--keep-unedited nil t)
    (gemini-companion-diff-adopt diff)
    (current-buffer)))

(defun gemini-companion-diff-directory (file)
  "Return the directory of FILE, or the nearest one above that exists."
  (let ((directory (let ((file-name-handler-alist nil))
                     (locate-dominating-file file #'file-directory-p))))
    (if (or (null directory) (gemini-companion-text-remote-p directory))
        "/"
      directory)))

(defun gemini-companion-diff--insert (proposal)
  "Insert PROPOSAL in the current buffer, or kill that if it cannot be read."
  (condition-case problem
      (let ((inhibit-modification-hooks t))
        (if (stringp proposal)
            (insert proposal)
          (funcall proposal)))
    (error
     (kill-buffer)
     (signal (car problem) (cdr problem)))))

(defun gemini-companion-diff--keep-unedited (&rest _)
  "Keep the text of the current buffer, a proposal, before it is edited."
  (remove-hook 'before-change-functions
               #'gemini-companion-diff--keep-unedited t)
  (when-let* ((diff gemini-companion-diff-here))
    (unless (gemini-companion-diff--touched-p diff)
      (setf (gemini-companion-diff-unedited diff)
            (gemini-companion-diff-proposal-text diff)))))
(put 'gemini-companion-diff--keep-unedited 'permanent-local-hook t)

(defun gemini-companion-diff-adopt (diff)
  "Make the current buffer one of DIFF's: it has its keys, and ends with it.
Killing the buffer rejects DIFF."
  (setq gemini-companion-diff-here diff)
  (with-demoted-errors "Hook of the review: %S"
    (gemini-companion-review-mode))
  (add-hook 'kill-buffer-hook #'gemini-companion-diff-buffer-killed nil t))
(put 'gemini-companion-diff-buffer-killed 'permanent-local-hook t)

(defun gemini-companion-diff-forsake ()
  "Let the current buffer, one of a diff's, be killed without ending that."
  (setq gemini-companion-diff-here nil)
  (remove-hook 'kill-buffer-hook #'gemini-companion-diff-buffer-killed t))

(defun gemini-companion-diff-discard (buffer)
  "Kill BUFFER if it is live, without ending the diff that it belongs to."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (gemini-companion-diff-forsake)
      (set-buffer-modified-p nil))
    (let ((kill-buffer-query-functions nil))
      (condition-case nil
          (kill-buffer buffer)
        (error
         ;; A hook of the user's has failed.
         (with-current-buffer buffer
           (setq-local kill-buffer-hook nil))
         (kill-buffer buffer))))))

(defun gemini-companion-diff-buffer-killed ()
  "Reject the diff whose buffer is being killed, if it is still open.
One that is put back loses all its buffers but the proposal's.  An
indirect buffer that the person made may go."
  (let ((diff gemini-companion-diff-here))
    (when (and (not (buffer-base-buffer))
               (or (eq (gemini-companion-diff-state diff) 'shown)
                   (eq (gemini-companion-diff-proposal-buffer diff)
                       (current-buffer))))
      (gemini-companion-diff--settle diff 'rejected))))

(defun gemini-companion-diff--frame-deleted (frame)
  "Reject the diff on FRAME, as FRAME is being deleted."
  (when-let* ((diff (gemini-companion-diff--shown)))
    (when (eq frame (gemini-companion-diff-frame diff))
      (gemini-companion-diff--settle diff 'rejected))))

(defun gemini-companion-diff--schedule (&optional seconds)
  "Do what is due soon, or in SECONDS if that is a number."
  (when gemini-companion-diff--timer
    (cancel-timer gemini-companion-diff--timer))
  (setq gemini-companion-diff--timer
        (run-at-time (if (numberp seconds) seconds 0) nil
                     #'gemini-companion-diff--go-on)))

(defun gemini-companion-diff--go-on ()
  "Do what is due: offer new diffs, close views and show one.
Try again soon if some of that has to wait until the user is free."
  (mapc #'gemini-companion-diff--offer
        (seq-remove #'gemini-companion-diff-offered
                    gemini-companion-diff--open))
  (mapc #'gemini-companion-diff--leave
        (copy-sequence gemini-companion-diff--leaving))
  (when (or (gemini-companion-diff--arrive)
            gemini-companion-diff--leaving)
    (gemini-companion-diff--schedule 0.2))
  ;; Our own question about a diff ends with it.
  (when (memq gemini-companion-diff--asking gemini-companion-diff--leaving)
    (throw 'gemini-companion-diff--asking 'ended)))

(defun gemini-companion-diff--arrive ()
  "Show the next diff if none is shown and the user is free.
Otherwise announce it; return non-nil if it waits for the user."
  (when-let* ((diff (gemini-companion-diff--waiting)))
    (cond ((or (gemini-companion-diff--shown)
               gemini-companion-diff--leaving
               (eq gemini-companion-review-arrival 'notify)
               (not (gemini-companion-diff--frame-p)))
           (ignore (gemini-companion-diff--announce diff "shows")))
          ((or (eq gemini-companion-review-arrival 'now)
               (gemini-companion-diff--free-p))
           (ignore (gemini-companion-diff--show diff)))
          (t
           (gemini-companion-diff--announce diff "shows")
           t))))

(defun gemini-companion-diff--frame-p ()
  "Return non-nil if there is a frame that a person can see."
  (seq-some (lambda (frame)
              (and (not (frame-parameter frame 'parent-frame))
                   (not (equal (terminal-name (frame-terminal frame))
                               "initial_terminal"))))
            (frame-list)))

(defun gemini-companion-diff--free-p ()
  "Return non-nil if a view may appear without getting in the person's way."
  (and (gemini-companion-diff--between-commands-p)
       (zerop (recursion-depth))
       (not executing-kbd-macro)
       (not defining-kbd-macro)
       (not (buffer-local-value 'isearch-mode (window-buffer)))
       (not (bound-and-true-p transient--prefix))
       (not track-mouse)
       (not (input-pending-p))
       (when-let* ((idle (current-idle-time)))
         (<= gemini-companion-diff--idle-seconds (float-time idle)))))

(defun gemini-companion-diff--between-commands-p ()
  "Return non-nil if no command, prompt or key sequence is going on.
A command that reads keys, such as `query-replace', goes on."
  (and (not (active-minibuffer-window))
       (null real-this-command)
       (null prefix-arg)
       (zerop (length (this-command-keys-vector)))))

(defun gemini-companion-diff--announce (diff does)
  "Announce DIFF once, unless the user is in the echo area.
DOES is a verb: what the command to look at it does."
  (let ((text (format
               (substitute-command-keys
                (concat "%s proposes an edit of %s; \
\\[gemini-companion-review] %s it"
                        (when (gemini-companion-diff-replaces-edited diff)
                          "; \
\\[gemini-companion-last-proposal] shows your edits of the previous one")))
               (upcase-initials
                (gemini-companion-session-title
                 (gemini-companion-diff-session diff)))
               (concat (gemini-companion-diff-name diff)
                       (when (gemini-companion-diff-note diff)
                         (format " (%s)" (gemini-companion-diff-note diff))))
               does)))
    (unless (or (active-minibuffer-window)
                (equal text gemini-companion-diff--announced))
      (setq gemini-companion-diff--announced (message "%s" text)))))

(defun gemini-companion-diff--unannounce ()
  "Clear the echo area if a diff is still announced."
  (when (and gemini-companion-diff--announced
             (equal (current-message) gemini-companion-diff--announced))
    (message nil))
  (setq gemini-companion-diff--announced nil))

(defun gemini-companion-diff--show (diff &optional select)
  "Show DIFF, and select it if SELECT is non-nil.
If that fails say why; the CLI's own prompt can still answer it."
  (condition-case problem
      (setf (gemini-companion-diff-hide diff)
            (progn
              (gemini-companion-diff--check-file diff)
              (funcall gemini-companion-diff--show-function diff select))
            (gemini-companion-diff-state diff) 'shown
            (gemini-companion-diff-problem diff) nil)
    (error
     (setf (gemini-companion-diff-problem diff) (error-message-string problem))
     (message "%s; answer in the terminal of %s"
              (error-message-string problem)
              (gemini-companion-session-title
               (gemini-companion-diff-session diff)))
     (gemini-companion-diff--schedule)))
  (gemini-companion-diff--changed)
  (when (eq (gemini-companion-diff-state diff) 'shown)
    (gemini-companion-diff--unannounce)
    (unless select
      (gemini-companion-diff--announce diff "selects"))
    (gemini-companion-diff--run 'gemini-companion-diff-opened-functions diff)))

(defun gemini-companion-diff--check-file (diff)
  "Signal an error if the file of DIFF is nothing to be reviewed."
  (when-let* ((problem (gemini-companion-text-problem
                        (gemini-companion-diff-file-path diff))))
    (user-error "%s %s" (gemini-companion-diff-name diff) problem)))

(defun gemini-companion-diff-view (diff)
  "Show DIFF, which awaits an answer, or select it if it is shown.
Another one that is shown is put back: it waits again, with the
edits that the person made in its proposal."
  (gemini-companion-diff-unsettled diff)
  (cond ((eq (gemini-companion-diff-state diff) 'shown)
         (funcall (gemini-companion-diff-select diff)))
        ((not (gemini-companion-diff--frame-p))
         (user-error "There is no frame to show a review in"))
        (t
         (mapc #'gemini-companion-diff--finish
               (copy-sequence gemini-companion-diff--leaving))
         (when-let* ((shown (gemini-companion-diff--shown)))
           (gemini-companion-diff--put-back shown))
         (gemini-companion-diff--show diff 'select))))

(defun gemini-companion-diff-compare-again (diff &optional now)
  "Have the view of DIFF compare again if it is outdated.
Unless NOW is non-nil, do that only between two commands."
  (when (and (gemini-companion-diff-outdated diff)
             (or now (gemini-companion-diff--between-commands-p)))
    (setf (gemini-companion-diff-outdated diff) nil)
    (with-demoted-errors "Reading a proposed file again: %S"
      (if (gemini-companion-diff-refresh diff)
          (funcall (gemini-companion-diff-refresh diff))
        (setf (gemini-companion-diff-changed diff) t)))))

(defun gemini-companion-diff--put-back (diff)
  "Take the view of DIFF, which is shown, away; it is pending again."
  (let ((hide (gemini-companion-diff-hide diff)))
    (setf (gemini-companion-diff-state diff) 'pending
          (gemini-companion-diff-hide diff) nil
          (gemini-companion-diff-frame diff) nil)
    (funcall hide 'keep)
    (gemini-companion-diff--changed)))

(defun gemini-companion-diff--run (hook diff)
  "Run HOOK, the person's, with DIFF; an error in it is only told."
  (with-demoted-errors "A function of the review hooks failed: %S"
    (run-hook-with-args hook diff)))

;;;; Leaving

(defun gemini-companion-diff-close (id reason)
  "Dismiss the diff ID and return the text that its proposal buffer held.
If it was accepted at the same moment, return that text; nil if it
has ended otherwise.  REASON is `closed' if the CLI closed it,
`exited' if the CLI's process has ended, `disconnected' if the CLI
has not reconnected in time, `lost' if the server leaves it."
  (if-let* ((diff (seq-find (lambda (diff)
                              (eql (gemini-companion-diff-id diff) id))
                            gemini-companion-diff--open)))
      (let ((text (gemini-companion-diff-proposal-text diff)))
        (if (eq reason 'closed)
            (progn
              (gemini-companion-diff--keep diff)
              (gemini-companion-revert-expect
               (gemini-companion-diff-file-path diff))
              (gemini-companion-diff--settle diff 'dismissed 'later))
          (gemini-companion-diff-dismiss diff)
          (unless (eq reason 'lost)
            (gemini-companion-diff--report-gone diff reason)))
        text)
    (and gemini-companion-diff--ended
         (eql id (gemini-companion-diff-id gemini-companion-diff--ended))
         (gemini-companion-diff-accepted-text gemini-companion-diff--ended))))

(defun gemini-companion-diff--report-gone (diff reason)
  "Say that DIFF was dismissed as its CLI is gone for REASON.
That is `exited' or `disconnected'."
  (message "%s %s; review closed, %s not written"
           (gemini-companion-session-name (gemini-companion-diff-session diff))
           reason
           (gemini-companion-diff-name diff)))

(defun gemini-companion-diff-dismiss (diff)
  "End open DIFF, about which nobody asks any more; nothing is told.
What the person made of the proposal is kept."
  (unless (gemini-companion-diff--emptied-p diff)
    (gemini-companion-diff--keep diff))
  (gemini-companion-diff--settle diff 'dismissed 'later))

(defun gemini-companion-diff--keep (diff)
  "Keep the text that the person made of the proposal of DIFF.
The CLI is about to close DIFF and may write another text."
  (when (gemini-companion-diff--edited-p diff)
    (gemini-companion-diff-keep diff (gemini-companion-diff-proposal-text diff))
    (when (gemini-companion-diff--emptied-p diff)
      (message "You emptied the proposal for %s; if you answered yes, \
%s writes its own text"
               (gemini-companion-diff-name diff)
               (gemini-companion-session-title
                (gemini-companion-diff-session diff))))))

(defun gemini-companion-diff-keep (diff text)
  "Keep TEXT, of DIFF, for `gemini-companion-last-proposal'."
  (setq gemini-companion-diff--last-proposal
        (cons (gemini-companion-diff-file-path diff) text)))

(defun gemini-companion-diff--emptied-p (diff)
  "Return non-nil if the person has removed all text that DIFF proposed."
  (and (zerop (buffer-size (gemini-companion-diff-proposal-buffer diff)))
       (gemini-companion-diff--edited-p diff)))

(defun gemini-companion-diff--settle (diff state &optional later)
  "Move open DIFF to STATE and tell its outcome, unless it is dismissed.
A diff that has ended stays as it is.  The view goes at once, or
soon if LATER is non-nil."
  (when (gemini-companion-diff--open-p diff)
    (gemini-companion-diff--tell diff state)
    (setq gemini-companion-diff--open
          (delq diff gemini-companion-diff--open)
          gemini-companion-diff--ended diff)
    (gemini-companion-diff--changed)
    (if (not later)
        (gemini-companion-diff--finish diff)
      (push diff gemini-companion-diff--leaving)
      (gemini-companion-diff--schedule))))

(defun gemini-companion-diff--tell (diff state)
  "Move DIFF to STATE and tell its outcome.
If that fails it is as before, and can be answered again."
  (let ((former (gemini-companion-diff-state diff))
        told)
    (setf (gemini-companion-diff-state diff) state)
    (unwind-protect
        (progn
          (when (memq state '(accepted rejected))
            (funcall gemini-companion-diff--outcome-function diff))
          (setq told t))
      (unless told
        (setf (gemini-companion-diff-state diff) former)))))

(defun gemini-companion-diff--leave (diff)
  "Close what is left of DIFF, which ended without the user's doing.
Its view waits for a command or a prompt, whose keys would go to
another buffer."
  (unless (or (eq diff gemini-companion-diff--asking)
              (and (gemini-companion-diff-hide diff)
                   (not (gemini-companion-diff--between-commands-p))))
    (gemini-companion-diff--finish diff)))

(defun gemini-companion-diff--finish (diff)
  "Take away all that is left of DIFF, which has ended, and show the next."
  (setq gemini-companion-diff--leaving
        (delq diff gemini-companion-diff--leaving))
  (gemini-companion-diff--unannounce)
  (when-let* ((hide (gemini-companion-diff-hide diff)))
    (setf (gemini-companion-diff-hide diff) nil)
    (funcall hide))
  (gemini-companion-diff-discard (gemini-companion-diff-proposal-buffer diff))
  (when gemini-companion-diff--open
    (gemini-companion-diff--schedule))
  (gemini-companion-diff--run 'gemini-companion-diff-closed-functions diff)
  nil)

;;;; Commands

(defun gemini-companion-diff-accept (&optional diff)
  "Accept DIFF with the text in its proposal buffer.
Gemini CLI then writes that text to the file.  Without DIFF, take
the review of the current buffer, else the one that is shown."
  (interactive)
  (let ((diff (gemini-companion-diff-unsettled diff)))
    (when (gemini-companion-diff--emptied-p diff)
      (user-error "An empty text cannot be accepted: Gemini CLI would write \
its own; reject it, or leave at least one character"))
    (unless (run-hook-with-args-until-success
             'gemini-companion-diff-objection-functions diff)
      (gemini-companion-diff-take diff))))

(defun gemini-companion-diff-take (diff)
  "Accept DIFF with the text in its proposal buffer, without a question."
  (let ((gc-cons-threshold (max gc-cons-threshold
                                gemini-companion-diff--garbage-limit))
        (text (gemini-companion-diff-proposal-text diff)))
    (gemini-companion-revert-expect (gemini-companion-diff-file-path diff))
    (setf (gemini-companion-diff-accepted-text diff) text)
    (gemini-companion-diff--settle diff 'accepted)))

(defun gemini-companion-diff-reject (&optional diff)
  "Reject DIFF, so that Gemini CLI does not write the file.
Without DIFF, take the review of the current buffer, else the one
that is shown."
  (interactive)
  (gemini-companion-diff--settle (gemini-companion-diff-unsettled diff)
                                 'rejected))

(defun gemini-companion-diff-unsettled (diff)
  "Return DIFF, or the current one if it is nil, if it awaits an answer."
  (let ((diff (or diff (gemini-companion-diff-current))))
    (unless (gemini-companion-diff--open-p diff)
      (user-error "This review has ended already: %s"
                  (gemini-companion-diff-state diff)))
    diff))

(defun gemini-companion-diff-ask (diff ask)
  "Return the person's answer about DIFF, the value of calling ASK.
If DIFF ends meanwhile, so does the question; return nil then."
  (let ((answer (let ((gemini-companion-diff--asking diff))
                  (catch 'gemini-companion-diff--asking
                    (funcall ask)))))
    (if (eq answer 'ended)
        (gemini-companion-diff--finish diff)
      answer)))

(defun gemini-companion-last-proposal ()
  "Show the last text of a review that Gemini CLI did not take.
That is one that you accepted and that could not be delivered, or
a proposal that you edited and that the CLI closed, as you answered
in its terminal, or that ended with the CLI."
  (interactive)
  (pcase gemini-companion-diff--last-proposal
    (`(,_ . ,text)
     (with-current-buffer (get-buffer-create "*gemini last proposal*")
       (erase-buffer)
       (insert text)
       (pop-to-buffer (current-buffer))))
    (_ (user-error "Nothing of a review was left undelivered"))))

;;;; Files that change

;;;;; State

(defconst gemini-companion-diff--seconds 0.5
  "How often the files of open diffs are looked at.")

(defvar gemini-companion-diff--stamps nil
  "Alist of each open diff and what its file was like at the last look.")

(defvar gemini-companion-diff--watch-timer nil
  "Timer that looks at the files, or nil while no diff is open.")

;;;;; Comparison

(defun gemini-companion-diff--stamp (diff)
  "Return the stamp of the file of DIFF, or nil if there is none."
  (gemini-companion-revert-stamp (gemini-companion-diff-file-path diff)))

(defun gemini-companion-diff--as-proposed-p (diff size)
  "Return non-nil if the file of DIFF, of SIZE bytes, is as was proposed.
Gemini CLI keeps the line ends that a file had."
  (when-let* ((proposal (gemini-companion-diff-proposed-text diff))
              (bytes (string-bytes proposal)))
    ;; What cannot be the same is not read.
    (and (<= (/ bytes 2) size (+ 3 (* 2 bytes)))
         (string= (gemini-companion-diff--plain proposal)
                  (gemini-companion-diff--plain
                   (gemini-companion-text-read
                    (gemini-companion-diff-file-path diff)))))))

(defun gemini-companion-diff--plain (text)
  "Return TEXT with plain line ends and no byte order mark."
  (string-remove-prefix "\uFEFF" (string-replace "\r\n" "\n" text)))

;;;;; Confirmation

(defun gemini-companion-diff--objection (diff)
  "Return non-nil if the user does not want DIFF accepted after all.
Ask only if that would undo a change of its file."
  (gemini-companion-diff--check diff)
  (gemini-companion-diff-compare-again diff 'now)
  (or (not (memq diff (gemini-companion-diffs)))
      (and (gemini-companion-diff-changed diff)
           (gemini-companion-diff--undoes-p diff)
           (not (gemini-companion-diff-ask
                 diff
                 (lambda ()
                   (yes-or-no-p
                    (format "%s has changed since it was proposed; \
accept and undo that change? "
                            (gemini-companion-diff-name diff)))))))))

(defun gemini-companion-diff--undoes-p (diff)
  "Return non-nil if the proposal of DIFF would undo a change of its file.
Or if that cannot be known."
  (let ((text (gemini-companion-diff-proposal-text diff))
        (now (ignore-error file-error
               (gemini-companion-diff--plain
                (gemini-companion-text-read
                 (gemini-companion-diff-file-path diff)))))
        (base (gemini-companion-diff-base diff)))
    (not (and now
              (or (string= text now)
                  (and base
                       (gemini-companion-diff--merged-p text base now)))))))

(defun gemini-companion-diff--merged-p (text base now)
  "Return non-nil if TEXT has all that changed from BASE to NOW."
  (when (executable-find "diff3")
    (let ((files (mapcar #'gemini-companion-text-temporary-file
                         (list text base now)))
          (default-directory "/"))
      (unwind-protect
          (with-temp-buffer
            (and (eql 0 (apply #'call-process "diff3" nil t nil "--text" files))
                 ;; Parts where NOW differs from the two others, or all do.
                 (not (progn (goto-char (point-min))
                             (re-search-forward "^====3?$" nil t)))))
        (mapc #'delete-file files)))))

;;;;; Watch

(defun gemini-companion-diff-watch ()
  "Watch from now on the file of each diff that awaits an answer."
  (add-hook 'gemini-companion-diff-objection-functions
            #'gemini-companion-diff--objection)
  (add-hook 'gemini-companion-diff-changed-hook
            #'gemini-companion-diff--follow))

(defun gemini-companion-diff-unwatch ()
  "Look at no file any more."
  (remove-hook 'gemini-companion-diff-objection-functions
               #'gemini-companion-diff--objection)
  (remove-hook 'gemini-companion-diff-changed-hook
               #'gemini-companion-diff--follow)
  (when gemini-companion-diff--watch-timer
    (cancel-timer gemini-companion-diff--watch-timer))
  (setq gemini-companion-diff--watch-timer nil
        gemini-companion-diff--stamps nil))

(defun gemini-companion-diff--follow ()
  "Watch the files of the diffs that are open now, and no others."
  (let ((diffs (gemini-companion-diffs)))
    (setq gemini-companion-diff--stamps
          (mapcar (lambda (diff)
                    (or (assq diff gemini-companion-diff--stamps)
                        (cons diff (gemini-companion-diff-stamp diff))))
                  diffs))
    (mapc #'gemini-companion-diff--check-buffer diffs)
    (cond ((and diffs (not gemini-companion-diff--watch-timer))
           (setq gemini-companion-diff--watch-timer
                 (run-at-time gemini-companion-diff--seconds
                              gemini-companion-diff--seconds
                              #'gemini-companion-diff--look)))
          ((and gemini-companion-diff--watch-timer (not diffs))
           (cancel-timer gemini-companion-diff--watch-timer)
           (setq gemini-companion-diff--watch-timer nil)))))

(defun gemini-companion-diff--look ()
  "Look at the files of the open diffs."
  (dolist (diff (mapcar #'car gemini-companion-diff--stamps))
    (gemini-companion-diff--check diff)
    (gemini-companion-diff-compare-again diff)
    (gemini-companion-diff--check-buffer diff)))

(defun gemini-companion-diff--check (diff)
  "If the file of DIFF has changed since the last look, act on it.
Dismiss DIFF if the file is as was proposed, else its view is
outdated."
  (let ((known (assq diff gemini-companion-diff--stamps))
        (stamp (gemini-companion-diff--stamp diff)))
    (unless (equal stamp (cdr known))
      (setcdr known stamp)
      (if (and stamp
               ;; The file may be gone by now, or not be readable.
               (with-demoted-errors "Looking at a proposed file: %S"
                 (gemini-companion-diff--as-proposed-p diff (nth 1 stamp))))
          (gemini-companion-diff--dismiss diff)
        (setf (gemini-companion-diff-outdated diff) t)))))

(defun gemini-companion-diff--check-buffer (diff)
  "Note whether a buffer of the file of DIFF has unsaved text."
  (let ((unsaved (gemini-companion-revert-unsaved-p
                  (gemini-companion-diff-file-path diff))))
    (unless (eq unsaved (gemini-companion-diff-unsaved diff))
      (setf (gemini-companion-diff-unsaved diff) unsaved)
      (force-mode-line-update t))))

(defun gemini-companion-diff--dismiss (diff)
  "Dismiss DIFF, whose file is as was proposed, and say so."
  (gemini-companion-diff-dismiss diff)
  (gemini-companion-revert (gemini-companion-diff-file-path diff))
  (unless (active-minibuffer-window)
    (message "%s already has the proposed text; review closed (if %s still \
prompts, answer there)"
             (gemini-companion-diff-name diff)
             (gemini-companion-session-title
              (gemini-companion-diff-session diff)))))

(provide 'gemini-companion-diff)
;;; gemini-companion-diff.el ends here
