;;; gemini-companion-diff.el --- Proposals and their one outcome  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A diff is an edit that a CLI proposes to one file.  It begins with
;; `gemini-companion-diff-open' as `pending', is `shown' when the user is free
;; to see it, and ends once: `accepted', `rejected', or `dismissed' because the
;; CLI closed it or has exited.  One function settles a diff, so that an outcome
;; is sent exactly once.  While a diff is open, its file is watched.
;;
;; How a diff is displayed and how its outcome is sent is not known here: the
;; entry file adds functions to two hooks.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-hunk)
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
prompt, macro or search is active; `now' shows the review at once;
`notify' only announces it, and \\[gemini-companion-review] shows it.

The selected window stays visible, and `gemini-companion-review-focus'
decides whether it stays selected.  \\[gemini-companion-review] also
selects a review that is shown."
  :type '(choice (const :tag "When Emacs is idle" when-idle)
                 (const :tag "At once" now)
                 (const :tag "On request" notify))
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-review-focus nil
  "Whether a review that appears by itself is selected.
Nil means never, t means always, and `terminal' means if the terminal
of its CLI is selected.  Letters, and the keys that accept, are
ignored in such a review for the first second."
  :type '(choice (const :tag "Never" nil)
                 (const :tag "From the CLI's terminal" terminal)
                 (const :tag "Always" t))
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-diff-opened-functions nil
  "Functions called with each diff when it is shown, also when it is again."
  :type 'hook
  :package-version '(gemini-companion . "0.1.0"))

(defvar gemini-companion-diff-arrival-functions nil
  "Functions called with each new diff before it may be shown.
The first one that returns non-nil has settled the diff.")

(defvar gemini-companion-diff-show-functions nil
  "Functions called to show a diff, until one returns non-nil.
The arguments are the diff, and non-nil if it is to be selected; the
value is a function that closes its view.")

(defvar gemini-companion-diff-outcome-functions nil
  "Functions called with each diff that was accepted or rejected.
If one of them signals an error, the diff stays open.")

(defvar gemini-companion-diff-accepting-functions nil
  "Functions called with each diff before it is accepted.
The CLI has not written the file yet.")

(defvar gemini-companion-diff-written-functions nil
  "Functions called once it is known whether the file of a diff was written.
The arguments are the diff, which has ended, and non-nil if it was.")

(defcustom gemini-companion-diff-closed-functions nil
  "Functions called with each diff after it ended.
`gemini-companion-diff-state' returns its outcome."
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

(cl-defstruct (gemini-companion-diff
               (:constructor gemini-companion-diff--make)
               (:copier nil))
  "An edit that a CLI proposes.
FILE-PATH is the path as the CLI sent it, PROPOSAL-BUFFER the live
buffer of the proposed text, which the user may edit.  STATE is
`pending', `shown', `accepted', `rejected' or `dismissed'."
  id session file-path proposal-buffer (state 'pending)
  (tick nil :documentation "Tick of the proposal buffer before any edit.")
  (unedited nil :documentation "The text before the first edit, or nil.")
  (frame nil :documentation "The frame that shows it, or nil.")
  (main nil :documentation "The buffer of its view to go to, or nil.")
  (select nil :documentation "Function that selects its view, or nil.")
  (hide nil :documentation "Function that closes its view, or nil.")
  (problem nil :documentation "Why it cannot be shown, a string, or nil.")
  (remarks nil :documentation "Remarks about its file, strings.")
  (note nil :documentation "Why it is not auto-accepted, or nil.")
  (comments nil :documentation "Alist of (SIDE . LINE) and the comment \
of the user; SIDE is `before' or `after'.")
  (automatic nil :documentation "Non-nil if it was accepted automatically.")
  (stamp nil :documentation "Stamp of its file when it was proposed, or nil.")
  (checked nil :documentation "Stamp of its file at the last check, or nil.")
  (true-name nil :documentation "True name of its file when proposed, or nil.")
  (outdated nil :documentation "Non-nil if its view has to compare again.")
  (changed nil :documentation "Non-nil if its file has changed since STAMP.")
  (hunks nil :documentation "Its hunks, once they are known; see \
gemini-companion-hunk.el.")
  (edited nil :documentation "Non-nil if the user has edited the proposal.")
  (base nil :documentation "Text of its file before it changed, \
or nil if unknown.")
  (unsaved nil :documentation "Non-nil if a buffer of its file has unsaved text.")
  (refresh nil :documentation "Function that reads its file again for its view, \
or nil.")
  (replaces-edited nil :documentation "Non-nil if the user had edited the \
previous proposal.")
  (offered nil :documentation "Non-nil once the arrival functions were called.")
  (accepted-text nil :documentation "The text that was accepted, or nil."))

(defvar gemini-companion-diff--open nil
  "The unsettled diffs, oldest first.")

(defvar gemini-companion-diff-changed-hook nil
  "Hook run after a diff was opened, shown, put back or settled.
Its functions display the diffs; they must be fast and not fail.")

(defvar gemini-companion-diff--timer nil
  "Timer of `gemini-companion-diff--proceed', or nil.")

(defvar gemini-companion-diff--announced nil
  "The last announcement of a diff that waits, or nil.")

(defvar gemini-companion-diff--asking nil
  "The diff about which the user is being asked, or nil.")

(defvar gemini-companion-diff--leaving nil
  "The settled diffs whose views are still to be closed.")

(defvar gemini-companion-diff--ended nil
  "The last settled diff, or nil.")

(defvar gemini-companion-diff--last-proposal nil
  "Cons of a file and its last edited or accepted text that was not written.")

(defvar-local gemini-companion-diff-here nil
  "The diff that this buffer belongs to, or nil.")
(put 'gemini-companion-diff-here 'permanent-local t)

;;;; Diffs

(defun gemini-companion-diffs ()
  "Return the diffs that await an answer, oldest first."
  (copy-sequence gemini-companion-diff--open))

(defun gemini-companion-diff-proposal-text (diff)
  "Return the text in the proposal buffer of DIFF."
  (gemini-companion-text-of-buffer
   (gemini-companion-diff-proposal-buffer diff)))

(defun gemini-companion-diff-proposed-text (diff)
  "Return the text that the CLI proposes by DIFF, without edits.
Return nil if it is unknown, because it was edited without running
hooks.  The proposal buffer must be live."
  (or (gemini-companion-diff-unedited diff)
      (unless (gemini-companion-diff--touched-p diff)
        (gemini-companion-diff-proposal-text diff))))

(defun gemini-companion-diff--touched-p (diff)
  "Return non-nil if the proposal of DIFF was ever edited."
  (/= (gemini-companion-diff-tick diff)
      (buffer-chars-modified-tick
       (gemini-companion-diff-proposal-buffer diff))))

(defun gemini-companion-diff-altered-p (diff)
  "Return non-nil if the proposal of DIFF is not the text that the CLI sent.
The user has edited it, or has excluded a hunk."
  (and (gemini-companion-diff--touched-p diff)
       (not (equal (gemini-companion-diff-unedited diff)
                   (gemini-companion-diff-proposal-text diff)))))

(defun gemini-companion-diff-emptied-p (diff)
  "Return non-nil if the user has deleted all text of the proposal of DIFF."
  (and (zerop (buffer-size (gemini-companion-diff-proposal-buffer diff)))
       (gemini-companion-diff-altered-p diff)))

(defun gemini-companion-diff--rewritten-p (diff)
  "Return non-nil if the user has edited DIFF and left some text."
  (and (gemini-companion-diff-altered-p diff)
       (not (gemini-companion-diff-emptied-p diff))))

(defun gemini-companion-diff-counts (diff)
  "Return the numbers of DIFF, or nil if its hunks are not known yet.
A list (HUNKS EXCLUDED ADDED REMOVED), the last two in lines."
  (when-let* ((hunks (gemini-companion-diff-hunks diff)))
    (gemini-companion-hunk-counts
     hunks (gemini-companion-diff-proposal-buffer diff))))

(defun gemini-companion-diff-name (diff &optional plain)
  "Return the name of the file of DIFF for the user.
With PLAIN non-nil, without warnings; see `gemini-companion-name'."
  (gemini-companion-name (gemini-companion-diff-file-path diff)
                         (gemini-companion-diff-session diff)
                         plain))

(defun gemini-companion-diff--open-p (diff)
  "Return non-nil if DIFF awaits an answer."
  (memq (gemini-companion-diff-state diff) '(pending shown)))

(defun gemini-companion-diff-shown ()
  "Return the diff that is shown, or nil."
  (cl-find 'shown gemini-companion-diff--open
           :key #'gemini-companion-diff-state))

(defun gemini-companion-diff--waiting ()
  "Return the oldest diff that waits to be shown, or nil."
  (seq-find (lambda (diff)
              (and (eq (gemini-companion-diff-state diff) 'pending)
                   (not (gemini-companion-diff-problem diff))))
            gemini-companion-diff--open))

(defun gemini-companion-diff-lighter ()
  "Return the number of open diffs for the mode line, and its tooltip, or nil."
  (when gemini-companion-diff--open
    (cons (format "?%d" (length gemini-companion-diff--open))
          #'gemini-companion-diff--help)))

(defun gemini-companion-diff--help ()
  "Return a line about the open diffs."
  (let ((count (length gemini-companion-diff--open)))
    (format (substitute-command-keys
             (concat (ngettext "%d edit waits" "%d edits wait" count)
                     " for your answer; type \\[gemini-companion-review]"))
            count)))

(defun gemini-companion-diff-current ()
  "Return the diff of the current buffer, else the one that is shown."
  (or gemini-companion-diff-here
      (gemini-companion-diff-shown)
      (user-error "No review is displayed")))

;;;; Arrival

(defun gemini-companion-diff-start ()
  "Follow which frames are made and deleted."
  (add-hook 'delete-frame-functions #'gemini-companion-diff--frame-deleted)
  (add-hook 'after-make-frame-functions #'gemini-companion-diff--frame-made))

(defun gemini-companion-diff-stop (state &optional now)
  "Settle all diffs with STATE, and stop following the frames.
Close their views at once if NOW is non-nil, as Emacs is about to
exit; else between two commands."
  (remove-hook 'delete-frame-functions #'gemini-companion-diff--frame-deleted)
  (remove-hook 'after-make-frame-functions #'gemini-companion-diff--frame-made)
  (let ((later (not (or now (gemini-companion-diff--between-commands-p)))))
    (dolist (diff (gemini-companion-diffs))
      (with-demoted-errors "Ending a review: %S"
        (gemini-companion-diff--settle diff state later))))
  (when (and gemini-companion-diff--timer
             (null gemini-companion-diff--leaving))
    (cancel-timer gemini-companion-diff--timer))
  (gemini-companion-revert-stop)
  (setq gemini-companion-diff--ended nil)
  ;; The user has not decided about what is dismissed.
  (unless (eq state 'dismissed)
    (setq gemini-companion-diff--last-proposal nil)))

(defun gemini-companion-diff-open (id session file-path proposal)
  "Open a diff that proposes PROPOSAL as the text of FILE-PATH.
PROPOSAL is a string, or a function that fills the current buffer with
the text.  ID is an integer that names the diff; SESSION is a plist with
the `:id' of the CLI.  An open diff of that CLI for that file is
replaced; its edited text is kept."
  (let* ((previous (gemini-companion-diff--find session file-path))
         (stamp (gemini-companion-revert-stamp file-path))
         (diff (gemini-companion-diff--make
                :id id :session session :file-path file-path
                :stamp stamp :checked stamp
                :true-name (gemini-companion-text-true-name file-path)
                :replaces-edited
                (and previous (gemini-companion-diff--rewritten-p previous)))))
    (when previous
      (gemini-companion-diff--dismiss previous))
    (setf (gemini-companion-diff-proposal-buffer diff)
          (gemini-companion-diff--proposal-buffer diff proposal))
    (setq gemini-companion-diff--open
          (append gemini-companion-diff--open (list diff)))
    ;; Do the rest later: the server is waiting for the answer to this call.
    (gemini-companion-diff--schedule)
    (gemini-companion-diff-updated)
    t))

(defun gemini-companion-diff-offer (&optional again)
  "Run the hook that may settle each new diff without a review.
If AGAIN is non-nil, run it for all diffs that wait."
  (dolist (diff (gemini-companion-diffs))
    (when (and (eq (gemini-companion-diff-state diff) 'pending)
               (or again (not (gemini-companion-diff-offered diff))))
      (setf (gemini-companion-diff-offered diff) t)
      (with-demoted-errors "Accepting a proposal automatically: %S"
        (run-hook-with-args-until-success
         'gemini-companion-diff-arrival-functions diff)))))

(defun gemini-companion-diff-updated ()
  "Update everything that displays the diffs, and watch their files."
  (force-mode-line-update t)
  (with-demoted-errors "Showing the state of the reviews: %S"
    (gemini-companion-diff--follow)
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
      (generate-new-buffer
       (format "*gemini proposal: %s*"
               (gemini-companion-diff-name diff 'plain)))
    ;; The nearest directory that exists.
    (let ((directory (let ((file-name-handler-alist nil))
                       (locate-dominating-file
                        (gemini-companion-diff-file-path diff)
                        #'file-directory-p))))
      (setq default-directory
            (if (or (null directory)
                    (gemini-companion-text-remote-p directory))
                "/"
              directory)))
    (gemini-companion-diff--insert proposal)
    (set-buffer-modified-p nil)
    (goto-char (point-min))
    (add-hook 'before-change-functions
              #'gemini-companion-diff--keep-unedited nil t)
    (add-hook 'after-change-functions
              #'gemini-companion-diff--record-edit nil t)
    (gemini-companion-diff-adopt diff)
    (setf (gemini-companion-diff-tick diff) (buffer-chars-modified-tick))
    (current-buffer)))

(defun gemini-companion-diff--insert (proposal)
  "Insert PROPOSAL in the current buffer; kill that if it cannot be read."
  (condition-case problem
      (let ((inhibit-modification-hooks t)
            (buffer-undo-list t))
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
  ;; Header lines of other buffers show whether the proposal was edited.
  (force-mode-line-update t)
  (when-let* ((diff gemini-companion-diff-here))
    (unless (gemini-companion-diff--touched-p diff)
      (setf (gemini-companion-diff-unedited diff)
            (gemini-companion-diff-proposal-text diff)))))
(put 'gemini-companion-diff--keep-unedited 'permanent-local-hook t)

(defun gemini-companion-diff--record-edit (&rest _)
  "Record that the current buffer, a proposal, was edited by the user."
  (when (and gemini-companion-diff-here
             (not gemini-companion-hunk-toggling))
    (setf (gemini-companion-diff-edited gemini-companion-diff-here) t)))
(put 'gemini-companion-diff--record-edit 'permanent-local-hook t)

(defun gemini-companion-diff-adopt (diff)
  "Make the current buffer one of DIFF's: add its keys and its hook.
Killing the buffer rejects DIFF."
  (setq gemini-companion-diff-here diff)
  (with-demoted-errors "Hook of the review: %S"
    (gemini-companion-review-mode))
  (add-hook 'kill-buffer-hook #'gemini-companion-diff-buffer-killed nil t))
(put 'gemini-companion-diff-buffer-killed 'permanent-local-hook t)

(defun gemini-companion-diff-release ()
  "Detach the current buffer from its diff, which outlives it."
  (setq gemini-companion-diff-here nil)
  (remove-hook 'kill-buffer-hook #'gemini-companion-diff-buffer-killed t))

(defun gemini-companion-diff-discard (buffer)
  "Kill BUFFER if it is live, without settling its diff."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (gemini-companion-diff-release)
      (set-buffer-modified-p nil))
    (let ((kill-buffer-query-functions nil))
      (condition-case nil
          (kill-buffer buffer)
        (error
         ;; A hook of the user has failed, perhaps after the buffer was killed.
         (when (buffer-live-p buffer)
           (with-current-buffer buffer
             (setq-local kill-buffer-hook nil)
             (kill-buffer))))))))

(defun gemini-companion-diff-buffer-killed ()
  "Reject the diff whose buffer is being killed, if it is still open.
Ignore an indirect buffer, and other buffers than the proposal of a
diff that is put back."
  (let ((diff gemini-companion-diff-here))
    (when (and (not (buffer-base-buffer))
               (or (eq (gemini-companion-diff-state diff) 'shown)
                   (eq (gemini-companion-diff-proposal-buffer diff)
                       (current-buffer)))
               (gemini-companion-diff--open-p diff))
      (gemini-companion-diff--settle diff 'rejected)
      (message "Rejected %s" (gemini-companion-diff-name diff 'plain)))))

(defun gemini-companion-diff--frame-deleted (frame)
  "Reject the diff on FRAME, as FRAME is being deleted."
  (when-let* ((diff (gemini-companion-diff-shown)))
    (when (eq frame (gemini-companion-diff-frame diff))
      (gemini-companion-diff--settle diff 'rejected))))

(defun gemini-companion-diff--frame-made (_frame)
  "Show a diff that waits for a frame."
  (gemini-companion-diff--schedule))

(defun gemini-companion-diff--schedule (&optional seconds)
  "Call `gemini-companion-diff--proceed' soon, or in SECONDS."
  (when gemini-companion-diff--timer
    (cancel-timer gemini-companion-diff--timer))
  (setq gemini-companion-diff--timer
        (run-at-time (or seconds 0) nil #'gemini-companion-diff--proceed)))

(defun gemini-companion-diff--proceed ()
  "Offer new diffs, close the views of settled ones, and show the next.
Try again soon if that has to wait until the user is idle."
  (gemini-companion-diff-offer)
  (mapc #'gemini-companion-diff--leave
        (copy-sequence gemini-companion-diff--leaving))
  (when (or (gemini-companion-diff--arrive)
            gemini-companion-diff--leaving)
    (gemini-companion-diff--schedule 0.2))
  ;; Quit our own question about a diff that is settled meanwhile.
  (when (memq gemini-companion-diff--asking gemini-companion-diff--leaving)
    (throw 'gemini-companion-diff--asking 'ended)))

(defun gemini-companion-diff--arrive ()
  "Show the next diff if none is shown and the user is idle.
Otherwise announce it; return non-nil if it waits for the user."
  (when-let* ((diff (gemini-companion-diff--waiting))
              ;; The header line of one that is shown counts them.
              ((not (gemini-companion-diff-shown))))
    (let ((room (gemini-companion-diff--room-p)))
      (if (and room (or (eq gemini-companion-review-arrival 'now)
                        (gemini-companion-diff--free-p)))
          (ignore (gemini-companion-diff--show diff))
        (gemini-companion-diff--announce diff "shows")
        room))))

(defun gemini-companion-diff--room-p ()
  "Return non-nil if a diff may be shown that the user has not chosen."
  (not (or (gemini-companion-diff-shown)
           gemini-companion-diff--leaving
           (eq gemini-companion-review-arrival 'notify)
           (not (gemini-companion-diff--frame-p)))))

(defun gemini-companion-diff--frame-p ()
  "Return non-nil if there is a frame for reviews.
It is no child frame, and not the frame of a daemon."
  (seq-some (lambda (frame)
              (and (not (frame-parameter frame 'parent-frame))
                   (not (equal (terminal-name (frame-terminal frame))
                               "initial_terminal"))))
            (frame-list)))

(defun gemini-companion-diff--free-p ()
  "Return non-nil if a view may appear without disturbing the user."
  (and (gemini-companion-diff--between-commands-p)
       (zerop (recursion-depth))
       (not executing-kbd-macro)
       (not defining-kbd-macro)
       (not track-mouse)
       (not (input-pending-p))
       (current-idle-time)
       (not (gemini-companion-diff--typing-p))))

(defun gemini-companion-diff--typing-p ()
  "Return non-nil if the user has typed a key a moment ago."
  (when-let* ((idle (current-idle-time)))
    (< (float-time idle) 0.7)))

(defun gemini-companion-diff--between-commands-p ()
  "Return non-nil if no command, prompt, search or menu is in progress.
A key sequence that is not complete is in progress, too, and so is a
command that reads keys, such as `query-replace'."
  (and (not (active-minibuffer-window))
       (not (buffer-local-value 'isearch-mode (window-buffer)))
       (not (bound-and-true-p transient--prefix))
       (null real-this-command)
       (null prefix-arg)
       (zerop (length (this-command-keys-vector)))))

(defun gemini-companion-diff--announce (diff does)
  "Announce DIFF once, unless the echo area is in use.
DOES is the verb for the command that shows or selects it.  The
buffer of messages has the whole text."
  (let ((text (gemini-companion-diff--announcement diff does (frame-width))))
    (unless (or (active-minibuffer-window)
                (equal text gemini-companion-diff--announced))
      (let ((report (gemini-companion-revert-shown-report)))
        ;; That clears the echo area.
        (let ((inhibit-message t))
          (message "%s" (gemini-companion-diff--announcement
                         diff does most-positive-fixnum)))
        (let ((message-log-max nil))
          (message "%s" (string-join (delq nil (list report text)) "\n"))))
      (setq gemini-companion-diff--announced text))))

(defun gemini-companion-diff--announcement (diff does width)
  "Return a text that announces DIFF in one line of less than WIDTH columns.
DOES is the verb for the command that shows or selects DIFF.  That
command is never omitted."
  (let* ((session (gemini-companion-diff-session diff))
         (note (gemini-companion-diff-note diff))
         (plain (gemini-companion-diff-name diff 'plain))
         (names (list (gemini-companion-diff-name diff)
                      plain
                      (file-name-nondirectory plain)))
         (noted (and note
                     (mapcar (lambda (name) (format "%s (%s)" name note))
                             names)))
         (long (format "%s proposes an edit of "
                       (upcase-initials
                        (gemini-companion-session-title session))))
         (short "Edit of ")
         (command (format (substitute-command-keys
                           "\\[gemini-companion-review] %s it")
                          does))
         (key (concat "; " command))
         (edits (and (gemini-companion-diff-replaces-edited diff)
                     (concat key (substitute-command-keys
                                  "; \\[gemini-companion-last-proposal] \
shows your edits"))))
         (room (- width 1 (string-width short) (string-width key))))
    ;; The more important a part, the later it is omitted.
    (catch 'fits
      (dolist (after (delq nil (list edits key)))
        (dolist (names (list noted names))
          (dolist (before (list long short))
            (dolist (name names)
              (let ((text (concat before name after)))
                (when (< (string-width text) width)
                  (throw 'fits text)))))))
      (if (< 10 room)
          (concat short (gemini-companion-name-shown (car (last names)) room)
                  key)
        command))))

(defun gemini-companion-diff--unannounce ()
  "Clear the echo area if a diff is still announced, but leave a report."
  (when (and gemini-companion-diff--announced
             (string-suffix-p gemini-companion-diff--announced
                              (or (current-message) "")))
    (let ((report (gemini-companion-revert-shown-report))
          (message-log-max nil))
      (message (and report "%s") report)))
  (setq gemini-companion-diff--announced nil))

(defun gemini-companion-diff--show (diff &optional select)
  "Show DIFF, and select it if SELECT is non-nil.
If that fails, show why; the CLI's own prompt can still answer it."
  (condition-case problem
      (progn
        (when-let* ((problem (gemini-companion-text-problem
                              (gemini-companion-diff-file-path diff))))
          (user-error "%s %s" (gemini-companion-diff-name diff) problem))
        ;; The watch may not have noticed a change of the file yet.
        (unless (equal (gemini-companion-diff-stamp diff)
                       (gemini-companion-revert-stamp
                        (gemini-companion-diff-file-path diff)))
          (setf (gemini-companion-diff-changed diff) t))
        (setf (gemini-companion-diff-hide diff)
              (run-hook-with-args-until-success
               'gemini-companion-diff-show-functions diff select)
              (gemini-companion-diff-state diff) 'shown
              (gemini-companion-diff-problem diff) nil))
    (error
     (setf (gemini-companion-diff-problem diff)
           (if (eq 'user-error (car problem))
               (error-message-string problem)
             ;; An error in a hook of the user, for example.
             (format "Cannot show the review of %s: %s"
                     (gemini-companion-diff-name diff)
                     (error-message-string problem))))
     (gemini-companion-revert-report
      "%s; answer in the terminal of %s"
      (gemini-companion-diff-problem diff)
      (gemini-companion-session-title (gemini-companion-diff-session diff)))
     (gemini-companion-diff--schedule)))
  (gemini-companion-diff-updated)
  (when (eq (gemini-companion-diff-state diff) 'shown)
    (gemini-companion-diff--unannounce)
    (unless (or select
                (eq diff (buffer-local-value 'gemini-companion-diff-here
                                             (window-buffer))))
      (gemini-companion-diff--announce diff "selects"))
    (gemini-companion-diff--run 'gemini-companion-diff-opened-functions diff)))

(defun gemini-companion-diff-view (diff)
  "Show DIFF, which awaits an answer, or select it if it is shown.
If another diff is shown, put it back: it waits again, and keeps the
edits of its proposal."
  (gemini-companion-diff-unsettled diff)
  (cond ((eq (gemini-companion-diff-state diff) 'shown)
         (funcall (gemini-companion-diff-select diff)))
        ((not (gemini-companion-diff--frame-p))
         (user-error "No frame can show a review"))
        (t
         (mapc #'gemini-companion-diff--finish
               (copy-sequence gemini-companion-diff--leaving))
         (when-let* ((shown (gemini-companion-diff-shown))
                     (hide (gemini-companion-diff-hide shown)))
           (setf (gemini-companion-diff-state shown) 'pending
                 (gemini-companion-diff-hide shown) nil
                 (gemini-companion-diff-frame shown) nil)
           (funcall hide))
         (gemini-companion-diff--show diff 'select))))

(defun gemini-companion-diff--run (hook diff)
  "Run HOOK of the user with DIFF; only report an error in it."
  (with-demoted-errors "A function of the review hooks failed: %S"
    (run-hook-with-args hook diff)))

;;;; Settling

(defun gemini-companion-diff-close (id reason)
  "Dismiss the diff ID and return the text of its proposal buffer.
If it was accepted at the same moment, return the accepted text; if it
was settled otherwise, return nil.  REASON is `closed' if the CLI closed
the diff, `exited' if the process of the CLI has exited, `disconnected'
if the CLI has not reconnected in time, `interrupted' if it asks about
another edit, and `lost' if the server gave up the diff."
  (if-let* ((diff (cl-find id gemini-companion-diff--open
                           :key #'gemini-companion-diff-id)))
      (let ((text (gemini-companion-diff-proposal-text diff)))
        (if (not (eq reason 'closed))
            (gemini-companion-diff--dismiss diff)
          (gemini-companion-diff--keep-edits diff)
          (when (gemini-companion-diff-emptied-p diff)
            (gemini-companion-revert-report
             "You emptied the proposal for %s; if you answered yes \
in the terminal, %s writes its own text"
             (gemini-companion-diff-name diff)
             (gemini-companion-session-title
              (gemini-companion-diff-session diff))))
          (gemini-companion-diff--expect diff text)
          (gemini-companion-diff--settle diff 'dismissed 'later))
        (unless (memq reason '(closed lost))
          (gemini-companion-revert-report
           "%s %s; review closed, %s not written"
           (gemini-companion-session-name (gemini-companion-diff-session diff))
           reason
           (gemini-companion-diff-name diff)))
        text)
    (and gemini-companion-diff--ended
         (eql id (gemini-companion-diff-id gemini-companion-diff--ended))
         (gemini-companion-diff-accepted-text gemini-companion-diff--ended))))

(defun gemini-companion-diff--expect (diff text)
  "Follow the file of DIFF, whose review ended with TEXT, until it is written.
If the user has edited TEXT, report a file that holds another text.  If
DIFF is accepted, report a file that is not written."
  (let* ((file (gemini-companion-diff-file-path diff))
         (stamp (gemini-companion-revert-stamp file))
         (edited (gemini-companion-diff--rewritten-p diff)))
    (gemini-companion-revert-expect
     file
     (lambda (written)
       (cond (written
              (when (and edited
                         (not (gemini-companion-text-same-written-p
                               text (gemini-companion-text-read file))))
                (gemini-companion-diff--report-unedited diff text)))
             ;; A user who interrupts Gemini CLI leaves a review that it
             ;; ignores.
             ((eq 'accepted (gemini-companion-diff-state diff))
              (gemini-companion-diff--report-kept
               diff text "%s was accepted 10 seconds ago but was not written; \
\\[gemini-companion-last-proposal] shows the text")))
       (run-hook-with-args 'gemini-companion-diff-written-functions
                           diff written))
     (not (gemini-companion-diff-automatic diff)))
    ;; Qwen Code writes before it closes the review.
    (when (and edited
               stamp
               (not (equal stamp (gemini-companion-diff-stamp diff)))
               (gemini-companion-diff--as-proposed-p diff (nth 1 stamp)))
      (gemini-companion-diff--report-unedited diff text))))

(defun gemini-companion-diff--report-unedited (diff text)
  "Keep TEXT of the review of DIFF, which the CLI did not write; report that."
  (gemini-companion-diff-keep diff text)
  (gemini-companion-revert-report
   (substitute-command-keys
    "%s was written without your edits; \
\\[gemini-companion-last-proposal] shows them")
   (gemini-companion-diff-name diff)))

(defun gemini-companion-diff--report-kept (diff text format)
  "Keep TEXT of DIFF, and report that by FORMAT, unless it is kept already.
FORMAT has a place for the name of the file."
  (let ((previous gemini-companion-diff--last-proposal))
    (gemini-companion-diff-keep diff text)
    (unless (equal previous gemini-companion-diff--last-proposal)
      (gemini-companion-revert-report (substitute-command-keys format)
                                      (gemini-companion-diff-name diff)))))

(defun gemini-companion-diff--dismiss (diff)
  "Dismiss open DIFF, whose answer is not needed any more.
Keep its proposal if it was edited."
  (gemini-companion-diff--keep-edits diff)
  (gemini-companion-diff--settle diff 'dismissed 'later))

(defun gemini-companion-diff--keep-edits (diff)
  "Keep the proposal of DIFF if the user has edited it and left some text."
  (when (gemini-companion-diff--rewritten-p diff)
    (gemini-companion-diff-keep diff
                                (gemini-companion-diff-proposal-text diff))))

(defun gemini-companion-diff-keep (diff text)
  "Keep TEXT, of DIFF, for `gemini-companion-last-proposal'."
  (setq gemini-companion-diff--last-proposal
        (cons (gemini-companion-diff-file-path diff) text)))

(defun gemini-companion-diff--settle (diff state &optional later)
  "Move open DIFF to STATE and send its outcome, unless it is dismissed.
A settled diff is not changed.  Close the view at once, or soon if
LATER is non-nil."
  (when (gemini-companion-diff--open-p diff)
    (let ((previous (gemini-companion-diff-state diff)))
      (setf (gemini-companion-diff-state diff) state)
      (when (memq state '(accepted rejected))
        (condition-case problem
            (run-hook-with-args 'gemini-companion-diff-outcome-functions diff)
          ((error quit)
           ;; The diff can be answered again.
           (setf (gemini-companion-diff-state diff) previous
                 (gemini-companion-diff-accepted-text diff) nil)
           (signal (car problem) (cdr problem))))))
    (setq gemini-companion-diff--open
          (delq diff gemini-companion-diff--open)
          gemini-companion-diff--ended diff)
    (gemini-companion-diff-updated)
    (if (not later)
        (gemini-companion-diff--finish diff)
      (push diff gemini-companion-diff--leaving)
      (gemini-companion-diff--schedule))))

(defun gemini-companion-diff--leave (diff)
  "Close the view of DIFF, which was not settled by the user.
Wait for the end of a command, of a prompt, or of typing in the view:
keys would go to another buffer."
  (unless (or (eq diff gemini-companion-diff--asking)
              (and (gemini-companion-diff-hide diff)
                   (or (not (gemini-companion-diff--between-commands-p))
                       (and (eq diff (buffer-local-value
                                      'gemini-companion-diff-here
                                      (window-buffer)))
                            (gemini-companion-diff--typing-p)))))
    (gemini-companion-diff--finish diff)))

(defun gemini-companion-diff--finish (diff)
  "Close the view and the proposal of settled DIFF, and show the next one."
  (setq gemini-companion-diff--leaving
        (delq diff gemini-companion-diff--leaving))
  ;; The user may have typed in it since it was dismissed.
  (when (and (eq 'dismissed (gemini-companion-diff-state diff))
             (buffer-live-p (gemini-companion-diff-proposal-buffer diff))
             (gemini-companion-diff--rewritten-p diff))
    (gemini-companion-diff--report-kept
     diff (gemini-companion-diff-proposal-text diff)
     "Review of %s closed; \
\\[gemini-companion-last-proposal] shows your edits"))
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
The CLI then writes that text to the file.  Without DIFF, take
the review of the current buffer, else the one that is shown."
  (interactive)
  (let ((diff (gemini-companion-diff-unsettled diff)))
    (when (gemini-companion-diff-emptied-p diff)
      (user-error "An empty text cannot be accepted: the CLI would write \
its own text; reject the proposal, or leave at least one character"))
    (cond ((gemini-companion-diff--objection diff))
          ;; The user may have edited the proposal until it equals the file.
          ((and (gemini-companion-diff--touched-p diff)
                (equal (gemini-companion-diff-proposal-text diff)
                       (gemini-companion-diff--file-text diff))
                (gemini-companion-diff-ask
                 diff
                 (lambda ()
                   (y-or-n-p "Nothing is left of this proposal; reject it \
instead? "))))
           (gemini-companion-diff-reject diff))
          ;; The diff may have ended while a question was asked.
          ((gemini-companion-diff--open-p diff)
           (gemini-companion-diff-take diff 'later)
           (gemini-companion-diff--answered
            diff (gemini-companion-diff--accepted-report diff))))))

(defun gemini-companion-diff--accepted-report (diff)
  "Return what to report when DIFF, whose view is open, was accepted."
  (concat "Accepted " (gemini-companion-diff-name diff 'plain)
          (pcase (gemini-companion-diff-counts diff)
            (`(,hunks ,excluded ,added ,removed)
             (format ": %s (%s)"
                     (if (zerop excluded)
                         (format (ngettext "%d change" "%d changes" hunks) hunks)
                       (format "%d of %d changes" (- hunks excluded) hunks))
                     (gemini-companion-hunk-lines added removed))))))

(defun gemini-companion-diff--answered (diff text)
  "Close the view of DIFF, which the user has settled, and report TEXT.
If the user is in the review, the next one takes its place at once."
  (let ((inside (and real-this-command (eq diff gemini-companion-diff-here))))
    (gemini-companion-diff--finish diff)
    (when inside
      (gemini-companion-diff--show-next))
    (let ((left (length gemini-companion-diff--open)))
      (message "%s%s" text (if (zerop left)
                               ""
                             (format "; %d more waiting" left))))))

(defun gemini-companion-diff--show-next ()
  "Show and select the next diff, unless reviews are shown only on request."
  (gemini-companion-diff-offer)
  (when-let* ((diff (gemini-companion-diff--waiting)))
    (when (and (gemini-companion-diff--room-p)
               (not (active-minibuffer-window)))
      (gemini-companion-diff--show diff 'next))))

(defun gemini-companion-diff-take (diff &optional later)
  "Accept DIFF with the text in its proposal buffer, without a question.
Close its view at once, or soon if LATER is non-nil."
  ;; A text of 1 MB would trigger a garbage collection, which takes longer than
  ;; anything else.
  (let ((gc-cons-threshold (max gc-cons-threshold (* 256 1024 1024)))
        (text (gemini-companion-diff-proposal-text diff)))
    (run-hook-with-args 'gemini-companion-diff-accepting-functions diff)
    (gemini-companion-diff--expect diff text)
    (setf (gemini-companion-diff-accepted-text diff) text)
    (gemini-companion-diff--settle diff 'accepted later)))

(defun gemini-companion-diff-reject (&optional diff)
  "Reject DIFF, so that the CLI does not write the file.
Without DIFF, take the review of the current buffer, else the one
that is shown."
  (interactive)
  (let ((diff (gemini-companion-diff-unsettled diff)))
    (gemini-companion-diff--settle diff 'rejected 'later)
    (gemini-companion-diff--answered
     diff (concat "Rejected " (gemini-companion-diff-name diff 'plain)))))

(defun gemini-companion-diff-unsettled (diff)
  "Return DIFF, or the current one if it is nil, if it awaits an answer."
  (let ((diff (or diff (gemini-companion-diff-current))))
    (unless (gemini-companion-diff--open-p diff)
      (user-error "This review has ended already: %s"
                  (gemini-companion-diff-state diff)))
    diff))

(defun gemini-companion-diff-ask (diff ask)
  "Return the user's answer about DIFF, the value of calling ASK.
If DIFF is settled meanwhile, quit the question and return nil."
  (let ((answer (let ((gemini-companion-diff--asking diff))
                  (catch 'gemini-companion-diff--asking
                    (funcall ask)))))
    (if (eq answer 'ended)
        (gemini-companion-diff--finish diff)
      answer)))

(defun gemini-companion-last-proposal-p ()
  "Return non-nil if `gemini-companion-last-proposal' has a text."
  gemini-companion-diff--last-proposal)

(defun gemini-companion-last-proposal ()
  "Show the last text that you edited or accepted and that was not written.
It is that of a review that you answered in the terminal of the CLI,
that another proposal replaced, or that ended because the CLI exited
or disconnected."
  (interactive)
  (pcase gemini-companion-diff--last-proposal
    (`(,_ . ,text)
     (with-current-buffer (get-buffer-create "*gemini last proposal*")
       (erase-buffer)
       (insert text)
       (goto-char (point-min))
       (pop-to-buffer (current-buffer))))
    (_ (user-error "No unwritten proposal to show"))))

;;;; Changed files

;;;;; State

(defconst gemini-companion-diff--seconds 0.5
  "Seconds between checks of the files of open diffs.")

(defvar gemini-companion-diff--watch-timer nil
  "Timer that checks the files, or nil while no diff is open.")

;;;;; Comparison

(defun gemini-companion-diff--file-text (diff)
  "Return the text of the file of DIFF with plain line ends, or nil."
  (ignore-error file-error
    (gemini-companion-text-plain
     (gemini-companion-text-read (gemini-companion-diff-file-path diff)))))

(defun gemini-companion-diff--as-proposed-p (diff size)
  "Return non-nil if the file of DIFF, of SIZE bytes, has the proposed text.
CLIs keep the line ends that a file had."
  (when-let* ((proposal (gemini-companion-diff-proposed-text diff))
              (bytes (string-bytes proposal)))
    ;; A file of another size cannot be equal.
    (and (<= (/ bytes 2) size (+ 3 (* 2 bytes)))
         (equal (gemini-companion-text-plain proposal)
                (gemini-companion-diff--file-text diff)))))

;;;;; Confirmation

(defun gemini-companion-diff--objection (diff)
  "Return non-nil if the user objects to accepting DIFF.
Ask only if the CLI would write to another file than proposed, or
undo a change of the file."
  (gemini-companion-diff--check diff 'now)
  (or (not (gemini-companion-diff--open-p diff))
      (when-let* ((question (gemini-companion-diff--question diff)))
        (not (gemini-companion-diff-ask
              diff (lambda () (yes-or-no-p question)))))))

(defun gemini-companion-diff--question (diff)
  "Return what to ask before DIFF is accepted, or nil."
  (cond ((not (equal (gemini-companion-diff-true-name diff)
                     (gemini-companion-text-true-name
                      (gemini-companion-diff-file-path diff))))
         (format "The edit would now be written to %s; accept? "
                 (gemini-companion-diff-name diff)))
        ((and (gemini-companion-diff-changed diff)
              (gemini-companion-diff--undoes-p diff))
         (format "%s has changed since the edit was proposed; \
accept and undo that change? "
                 (gemini-companion-diff-name diff)))))

(defun gemini-companion-diff--undoes-p (diff)
  "Return non-nil if the proposal of DIFF may undo a change of its file."
  (let ((text (gemini-companion-diff-proposal-text diff))
        (now (gemini-companion-diff--file-text diff))
        (base (gemini-companion-diff-base diff)))
    (cond ((null now))
          ((string= text now) nil)
          ((null base))
          (t (pcase (gemini-companion-text-diff3 (list text base now))
               ;; These mark parts where NOW differs from the other two, or all
               ;; differ.
               (`(0 . ,output) (string-match-p "^====3?$" output))
               (_ t))))))

;;;;; Watch

(defun gemini-companion-diff--follow ()
  "Watch the files of the open diffs, if any."
  (mapc #'gemini-companion-diff--check-buffer gemini-companion-diff--open)
  (cond ((null gemini-companion-diff--open)
         (when gemini-companion-diff--watch-timer
           (cancel-timer gemini-companion-diff--watch-timer)
           (setq gemini-companion-diff--watch-timer nil)))
        ((null gemini-companion-diff--watch-timer)
         (setq gemini-companion-diff--watch-timer
               (run-at-time gemini-companion-diff--seconds
                            gemini-companion-diff--seconds
                            #'gemini-companion-diff--check-all)))))

(defun gemini-companion-diff--check-all ()
  "Check the files of the open diffs."
  (dolist (diff (gemini-companion-diffs))
    (gemini-companion-diff--check diff)
    (gemini-companion-diff--check-buffer diff)))

(defun gemini-companion-diff--check (diff &optional now)
  "Check whether the file of DIFF has changed since the last check.
If so, dismiss DIFF if the file has the proposed text, else compare its
view again, between two commands unless NOW is non-nil."
  (let ((stamp (gemini-companion-revert-stamp
                (gemini-companion-diff-file-path diff))))
    (unless (equal stamp (gemini-companion-diff-checked diff))
      (setf (gemini-companion-diff-checked diff) stamp)
      (if (and stamp
               (gemini-companion-diff--as-proposed-p diff (nth 1 stamp)))
          (gemini-companion-diff--dismiss-written diff)
        (setf (gemini-companion-diff-outdated diff) t))))
  (when (and (gemini-companion-diff-outdated diff)
             (or now (gemini-companion-diff--between-commands-p)))
    (setf (gemini-companion-diff-outdated diff) nil)
    (with-demoted-errors "Reading a proposed file again: %S"
      (if (gemini-companion-diff-refresh diff)
          (funcall (gemini-companion-diff-refresh diff))
        (setf (gemini-companion-diff-changed diff) t)))))

(defun gemini-companion-diff--check-buffer (diff)
  "Record whether a buffer of the file of DIFF has unsaved text."
  (let ((unsaved (gemini-companion-revert-unsaved-p
                  (gemini-companion-diff-file-path diff))))
    (unless (eq unsaved (gemini-companion-diff-unsaved diff))
      (setf (gemini-companion-diff-unsaved diff) unsaved)
      (force-mode-line-update t))))

(defun gemini-companion-diff--dismiss-written (diff)
  "Dismiss DIFF, whose file has the proposed text, and report that."
  (gemini-companion-diff--dismiss diff)
  (gemini-companion-revert (gemini-companion-diff-file-path diff))
  (cond
   ((gemini-companion-diff--rewritten-p diff)
    (gemini-companion-diff--report-unedited
     diff (gemini-companion-diff-proposal-text diff)))
   ((not (active-minibuffer-window))
    (gemini-companion-revert-report
     "%s already has the proposed text; review closed (if %s still \
prompts, answer there)"
     (gemini-companion-diff-name diff)
     (gemini-companion-session-title
      (gemini-companion-diff-session diff))))))

(provide 'gemini-companion-diff)
;;; gemini-companion-diff.el ends here
