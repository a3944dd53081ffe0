;;; gemini-companion-view.el --- Which view a review has, and changing it  -*- lexical-binding: t; -*-

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

;; A review can be looked at in several ways, which offer the same commands.
;; Which one a diff gets, how it changes to another in the middle of a review,
;; and what is the same for all: the original, the windows before and after,
;; limits of size.  How a view looks is known in its own file.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-diff)
(require 'gemini-companion-look)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-windows)
(require 'seq)

(autoload 'gemini-companion-ediff-open "gemini-companion-ediff")
(autoload 'gemini-companion-unified-open "gemini-companion-unified")

;;;; Customization

(defcustom gemini-companion-review-view 'ediff
  "How the review of a proposed edit looks.
`ediff' is an Ediff session, `diff' a unified diff in one window;
\\<gemini-companion-review-mode-map>\\[gemini-companion-review-switch-view] \
changes from one to the other.

Nil means no reviews: Gemini CLI is not offered them, and asks in
its terminal as it does without an editor; it still knows what you
work on.  A Gemini CLI that is connected asks once what it is
offered, so a change to or from nil needs \"/ide disable\" in it,
\\[gemini-companion-restart], and \"/ide enable\"; until then,
answer in its terminal.  The other changes hold from the next review on."
  :type '(choice (const :tag "Ediff" ediff)
                 (const :tag "Unified diff" diff)
                 (const :tag "No reviews, only context" nil))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

(defcustom gemini-companion-ediff-limit (* 5 1024 1024)
  "Size in bytes above which a review is a unified diff, not Ediff.
That of the file or of the proposal, whichever is larger."
  :type 'natnum
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

(defcustom gemini-companion-review-limit (* 20 1024 1024)
  "Size in bytes above which an edit is not shown at all.
It is answered in the terminal of Gemini CLI.  That of the file or
of the proposal, whichever is larger."
  :type 'natnum
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

;;;; Keys

(define-key gemini-companion-review-mode-map
  (kbd "C-c C-v") #'gemini-companion-review-switch-view)
(define-key gemini-companion-review-mode-map
  (kbd "C-c C-x") #'gemini-companion-review-toggle-hunk)
(define-key gemini-companion-review-mode-map
  (kbd "C-c C-e") #'gemini-companion-review-edit)
(define-key gemini-companion-review-mode-map
  (kbd "C-c C-n") #'gemini-companion-review-next-hunk)
(define-key gemini-companion-review-mode-map
  (kbd "C-c C-p") #'gemini-companion-review-previous-hunk)

;; Evil remaps the commands of its ex line like those of keys.
(dolist (command '(evil-write evil-update evil-save-and-close
                              evil-save-modified-and-close))
  (define-key gemini-companion-review-mode-map (vector 'remap command)
    #'gemini-companion-review-accept-as-saved))
(define-key gemini-companion-review-mode-map
  [remap evil-quit] #'gemini-companion-review-quit)

(defvar gemini-companion-review-repeat-map
  (let ((map (make-sparse-keymap)))
    (define-key map "n" #'gemini-companion-review-next-hunk)
    (define-key map "p" #'gemini-companion-review-previous-hunk)
    (define-key map "x" #'gemini-companion-review-toggle-hunk)
    map)
  "Keys that go on, in `repeat-mode', after one of these commands.")

(dolist (command '( gemini-companion-review-next-hunk
                    gemini-companion-review-previous-hunk
                    gemini-companion-review-toggle-hunk))
  (put command 'repeat-map 'gemini-companion-review-repeat-map))

;;;; State

(defun gemini-companion-view-offered-p ()
  "Return non-nil if a CLI that connects is offered reviews."
  (and gemini-companion-review-view t))

(defconst gemini-companion-view--kinds
  '((ediff . gemini-companion-ediff-open)
    (diff . gemini-companion-unified-open))
  "Alist of a kind of view and the function that opens it.
It is called with a diff, the buffer of the original, a frame, and
non-nil if the window in use stays visible and selected there.  It
returns a plist: `:buffers' with those in the windows, `:main' with
the one to go to, `:hunk' with a function that excludes the hunk
at point, and returns non-nil, or restores it, `:move' with one that
goes its argument, a number, of hunks on, `:edit' with one that
goes to the proposal or back, `:select' with one that selects the
view if it is on the selected frame as a whole, and returns
non-nil, `:display' with one that lays it out there and selects
it, `:compare' with one that compares again, and `:close' with one
that ends the view but leaves windows, original and proposal alone.
Its error is shown.")

(cl-defstruct (gemini-companion-view
               (:constructor gemini-companion-view--make)
               (:copier nil))
  "What shows a diff.
ORIGINAL is the buffer of that name, LAYOUT the windows before the
review, KIND the key in `gemini-companion-view--kinds', OPEN the
plist that its function returned, WINDOWS those of its buffers."
  diff original layout kind open windows)

(defvar gemini-companion-view--all nil
  "The views that are open.")

(defun gemini-companion-view--here ()
  "Return the view of the review of the current buffer, or the one shown."
  (let ((diff (gemini-companion-diff-current)))
    (or (seq-find (lambda (view) (eq diff (gemini-companion-view-diff view)))
                  gemini-companion-view--all)
        (user-error "This proposal is not shown yet"))))

;;;; Showing

(defun gemini-companion-view-show (diff &optional select)
  "Show DIFF; return a function that takes its view away.
That leaves the proposal buffer alive if its argument is non-nil.
Unless SELECT is non-nil, the window in use stays visible and
selected.  Signal an error if there is nothing to show, or too much."
  (let* ((kind (gemini-companion-view--kind diff))
         (original (gemini-companion-look-original diff))
         (view (gemini-companion-view--make
                :diff diff :original original
                :layout (gemini-companion-windows-layout
                         (gemini-companion-view--frame diff)))))
    (condition-case problem
        (progn
          (gemini-companion-view--check-change diff original)
          (gemini-companion-view--open-first view kind (not select)))
      ((error quit)
       (gemini-companion-diff-discard original)
       (signal (car problem) (cdr problem))))
    (push view gemini-companion-view--all)
    (setf (gemini-companion-diff-select diff)
          (lambda () (gemini-companion-view--select view)))
    (setf (gemini-companion-diff-refresh diff)
          (lambda () (gemini-companion-view--refresh view)))
    (lambda (&optional keep)
      (gemini-companion-view--hide view keep))))

(defun gemini-companion-view--check-change (diff original)
  "Signal an error if DIFF does not change the text in ORIGINAL."
  (when (gemini-companion-look-same-p
         original (gemini-companion-diff-proposal-buffer diff))
    (user-error "Proposal for %s contains no changes"
                (gemini-companion-diff-name diff))))

(defun gemini-companion-view--kind (diff)
  "Return the kind of view that DIFF gets, or signal an error."
  (let ((size (gemini-companion-view--size diff)))
    (cond ((null gemini-companion-review-view)
           (user-error "No review of %s, as `gemini-companion-review-view' is \
nil" (gemini-companion-diff-name diff)))
          ((< gemini-companion-review-limit size)
           (user-error "The edit of %s is too large to be shown"
                       (gemini-companion-diff-name diff)))
          ((< gemini-companion-ediff-limit size) 'diff)
          (t gemini-companion-review-view))))

(defun gemini-companion-view--size (diff)
  "Return the size of the larger side of DIFF."
  (max (buffer-size (gemini-companion-diff-proposal-buffer diff))
       (or (file-attribute-size
            (gemini-companion-text-attributes
             (gemini-companion-diff-file-path diff)))
           0)))

(defun gemini-companion-view--frame (diff)
  "Return the frame for DIFF: one with its terminal, or its file."
  (gemini-companion-windows-frame
   (delq nil (list (gemini-companion-session-terminal
                    (gemini-companion-diff-session diff))
                   (find-buffer-visiting
                    (gemini-companion-diff-file-path diff))))))

(defun gemini-companion-view--open-first (view kind keep)
  "Open VIEW as one of KIND, or as unified diff if that is no Ediff now.
If KEEP is non-nil, the window in use stays visible and selected."
  (condition-case problem
      (gemini-companion-view--open view kind keep)
    (error
     (unless (eq kind 'ediff)
       (signal (car problem) (cdr problem)))
     (message "%s; showing a unified diff" (error-message-string problem))
     (gemini-companion-view--open view 'diff keep))))

(defun gemini-companion-view--open (view kind &optional keep)
  "Open VIEW as one of KIND; if that fails its windows are as before.
If KEEP is non-nil, the window in use stays visible and selected."
  (let* ((layout (gemini-companion-view-layout view))
         (diff (gemini-companion-view-diff view))
         (frame (gemini-companion-windows-layout-frame layout))
         (selected (frame-selected-window frame))
         (open (condition-case problem
                   (funcall (alist-get kind gemini-companion-view--kinds)
                            diff (gemini-companion-view-original view)
                            frame keep)
                 ((error quit)
                  (gemini-companion-windows-restore layout)
                  (signal (car problem) (cdr problem))))))
    (when (and keep (window-live-p selected))
      (set-frame-selected-window frame selected 'norecord))
    (setf (gemini-companion-diff-main diff) (plist-get open :main)
          (gemini-companion-view-kind view) kind
          (gemini-companion-view-open view) open)
    (gemini-companion-view--note-windows view)))

(defun gemini-companion-view--note-windows (view)
  "Note which windows VIEW has."
  (setf (gemini-companion-view-windows view)
        (seq-mapcat (lambda (buffer) (get-buffer-window-list buffer nil t))
                    (plist-get (gemini-companion-view-open view) :buffers))))

(defun gemini-companion-view--select (view)
  "Select VIEW where it is, if that can be seen on this terminal.
Else, and if the user has changed its windows, lay it out again."
  (let* ((open (gemini-companion-view-open view))
         (diff (gemini-companion-view-diff view))
         (frame (gemini-companion-diff-frame diff)))
    (cond ((eq frame (selected-frame)))
          ((and (frame-live-p frame)
                (eq (frame-terminal frame) (frame-terminal)))
           (select-frame-set-input-focus frame))
          (t (setq frame (selected-frame))))
    (unless (funcall (plist-get open :select))
      (gemini-companion-windows-leave (gemini-companion-view-layout view)
                                      (plist-get open :buffers)
                                      (gemini-companion-view-windows view))
      (setf (gemini-companion-view-layout view)
            (gemini-companion-windows-layout frame)
            (gemini-companion-diff-frame diff) frame)
      (funcall (plist-get open :display))
      (gemini-companion-view--note-windows view))))

(defun gemini-companion-view--refresh (view)
  "Read the original of VIEW again, as its file has changed, and compare."
  (let* ((diff (gemini-companion-view-diff view))
         (original (gemini-companion-view-original view)))
    (unless (gemini-companion-diff-changed diff)
      (setf (gemini-companion-diff-base diff)
            (gemini-companion-view--text original)))
    (setf (gemini-companion-diff-changed diff) t)
    (gemini-companion-look-read-again original diff)
    (setf (gemini-companion-diff-changed diff)
          (not (equal (gemini-companion-diff-base diff)
                      (gemini-companion-view--text original))))
    (funcall (plist-get (gemini-companion-view-open view) :compare))
    (force-mode-line-update t)))

(defun gemini-companion-view--text (original)
  "Return the whole text in the buffer ORIGINAL."
  (with-current-buffer original
    (save-restriction
      (widen)
      (buffer-substring-no-properties (point-min) (point-max)))))

;;;; Leaving

(defun gemini-companion-view--hide (view keep)
  "Take VIEW away, and its proposal unless KEEP is non-nil.
If the person has moved to another tab of its frame, the windows stay."
  (let* ((open (gemini-companion-view-open view))
         (diff (gemini-companion-view-diff view))
         (proposal (gemini-companion-diff-proposal-buffer diff)))
    (setq gemini-companion-view--all (delq view gemini-companion-view--all))
    (setf (gemini-companion-diff-refresh diff) nil)
    (gemini-companion-windows-leave (gemini-companion-view-layout view)
                                    (plist-get open :buffers)
                                    (gemini-companion-view-windows view))
    (gemini-companion-diff-discard (gemini-companion-view-original view))
    (unless keep
      (gemini-companion-diff-discard proposal))
    (funcall (plist-get open :close))
    (when keep
      (gemini-companion-view--forsake diff proposal))))

(defun gemini-companion-view--forsake (diff proposal)
  "Leave PROPOSAL of DIFF, which outlives its view, in nobody's way."
  (setf (gemini-companion-diff-main diff) nil)
  (with-current-buffer proposal
    (setq header-line-format nil))
  (bury-buffer proposal))

;;;; Commands

(defun gemini-companion-review-quit ()
  "Ask how to end the review of the current buffer, or to keep at it."
  (interactive)
  (let ((diff (gemini-companion-diff-unsettled nil)))
    (pcase (car (gemini-companion-diff-ask
                 diff
                 (lambda ()
                   (read-multiple-choice
                    (format "Answer for %s" (gemini-companion-diff-name diff))
                    '((?a "accept" "Gemini CLI writes the proposal as it is")
                      (?r "reject" "The file stays as it is")
                      (?k "keep reviewing" "Nothing is decided"))))))
      (?a (gemini-companion-diff-accept diff))
      (?r (gemini-companion-diff-reject diff)))))

(defun gemini-companion-review-accept-as-saved ()
  "Accept the review here, as Evil's :w and ZZ save a file.
With a file name, as in :w FILE, do what Evil does."
  (interactive)
  (if (bound-and-true-p evil-ex-argument)
      (call-interactively 'evil-write)
    (gemini-companion-diff-accept)))

(defun gemini-companion-review-switch-view ()
  "Show this review in another way: as Ediff session or unified diff.
What you have edited stays, and so do excluded hunks."
  (interactive)
  (let* ((view (gemini-companion-view--here))
         (open (gemini-companion-view-open view))
         (layout (gemini-companion-view-layout view))
         (former (gemini-companion-view-kind view))
         (kind (if (eq former 'ediff) 'diff 'ediff)))
    (gemini-companion-view--check-switch view kind)
    (gemini-companion-windows-restore layout (plist-get open :buffers))
    (setf (gemini-companion-view-layout view)
          (gemini-companion-windows-layout
           (gemini-companion-windows-layout-frame layout)))
    (funcall (plist-get open :close))
    (condition-case problem
        (gemini-companion-view--open view kind)
      ((error quit)
       (gemini-companion-view--open view former)
       (user-error "%s" (error-message-string problem))))))

(defun gemini-companion-view--check-switch (view kind)
  "Signal an error if VIEW cannot become one of KIND now."
  (unless (gemini-companion-windows-shown-p
           (gemini-companion-view-layout view)
           (plist-get (gemini-companion-view-open view) :buffers)
           (gemini-companion-view-windows view))
    (user-error "The review is not on this tab"))
  (when (and (eq kind 'ediff)
             (< gemini-companion-ediff-limit
                (gemini-companion-view--size
                 (gemini-companion-view-diff view))))
    (user-error "Too large for Ediff; see `gemini-companion-ediff-limit'")))

(defun gemini-companion-review-toggle-hunk ()
  "Exclude the hunk at point from the proposal, or restore it.
Accepting sends what remains."
  (interactive)
  (message (substitute-command-keys
            (if (funcall (plist-get (gemini-companion-view-open
                                     (gemini-companion-view--here))
                                    :hunk))
                "Hunk excluded; \\[gemini-companion-review-toggle-hunk] \
restores it"
              "Hunk restored"))))

(defun gemini-companion-review-next-hunk (&optional count)
  "Go to the next hunk of this review, or COUNT hunks on."
  (interactive "p")
  (funcall (plist-get (gemini-companion-view-open
                       (gemini-companion-view--here))
                      :move)
           (or count 1)))

(defun gemini-companion-review-previous-hunk (&optional count)
  "Go to the previous hunk of this review, or COUNT hunks back."
  (interactive "p")
  (gemini-companion-review-next-hunk (- (or count 1))))

(defun gemini-companion-review-edit ()
  "Go to the proposal to edit it, or from there back to the review."
  (interactive)
  (funcall (plist-get (gemini-companion-view-open
                       (gemini-companion-view--here))
                      :edit)))

(provide 'gemini-companion-view)
;;; gemini-companion-view.el ends here
