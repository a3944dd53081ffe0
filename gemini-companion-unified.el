;;; gemini-companion-unified.el --- A proposal as a unified diff  -*- lexical-binding: t; -*-

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

;; One way to look at a diff: what `diff -u' says, in one window, read-only.
;; It compares the original with the proposal before any hunk was excluded, so
;; that excluded ones stay there, struck through.  What is sent is the
;; proposal buffer, which can be edited in the same window.  Loaded with the
;; first review of its kind, as it loads Diff mode.

;;; Code:

(require 'diff-mode)
(require 'gemini-companion-blocks)
(require 'gemini-companion-compare)
(require 'gemini-companion-diff)
(require 'gemini-companion-hunks)
(require 'gemini-companion-look)
(require 'gemini-companion-text)
(require 'gemini-companion-view)
(require 'gemini-companion-windows)
(require 'seq)

(defface gemini-companion-excluded
  '((t :inherit shadow :strike-through t))
  "Face of a hunk that is excluded from a proposal."
  :group 'gemini-companion-reviews)

(defconst gemini-companion-unified--wait 0.3
  "For how many seconds the text of a diff is waited for.
One that takes longer appears when it is there.")

(defconst gemini-companion-unified--refined (* 512 1024)
  "Size of a diff above which changed words are not marked.")

(defconst gemini-companion-unified--least-lines 8
  "A window with fewer lines is too small for a diff.")

;;;; Keys

(defvar gemini-companion-unified-keys
  (let ((map (make-sparse-keymap)))
    ;; The header line names those that come last.
    (define-key map (kbd "RET") #'gemini-companion-review-edit)
    (define-key map "o" #'gemini-companion-review-edit)
    (define-key map "e" #'gemini-companion-review-edit)
    (define-key map "k" #'gemini-companion-review-toggle-hunk)
    (define-key map "x" #'gemini-companion-review-toggle-hunk)
    (define-key map "g" #'gemini-companion-unified-refresh)
    (define-key map "q" #'gemini-companion-review-quit)
    ;; What would change the file, or this text alone.
    (dolist (command '( diff-add-change-log-entries-other-window
                        diff-apply-buffer diff-apply-hunk
                        diff-context->unified
                        diff-delete-trailing-whitespace diff-ediff-patch
                        diff-file-kill diff-goto-source diff-hunk-kill
                        diff-ignore-whitespace-hunk diff-kill-applied-hunks
                        diff-refresh-hunk diff-reverse-direction
                        diff-revert-and-kill-hunk diff-split-hunk
                        diff-test-hunk diff-undo diff-unified->context))
      (define-key map (vector 'remap command)
                  #'gemini-companion-unified-not-here))
    map)
  "Keys in the unified diff of a proposal, beside those of a review.")

(define-derived-mode gemini-companion-unified-mode diff-mode "Proposal"
  "Show a proposal of Gemini CLI as a unified diff.
\\{gemini-companion-unified-keys}"
  ;; It would open the file to learn its colours.
  (setq-local diff-font-lock-syntax nil)
  ;; Before those of Diff mode for buffers that are read-only.
  (push (cons 'gemini-companion-unified--original
              gemini-companion-unified-keys)
        minor-mode-overriding-map-alist)
  (gemini-companion-look-letters-are-keys 'gemini-companion-unified-mode))

(defun gemini-companion-unified-not-here ()
  "Say that this command of Diff mode is of no use in a review."
  (interactive)
  (user-error
   "Not in a review; %s"
   (substitute-command-keys
    "\\[gemini-companion-review-edit] edits the proposal, \
\\[gemini-companion-review-toggle-hunk] excludes a hunk")))

;;;; State

(defvar-local gemini-companion-unified--original nil
  "The buffer with the original that this diff is about.")

(defvar-local gemini-companion-unified--process nil
  "The process that makes this diff anew, or nil.")

(defvar-local gemini-companion-unified--diff nil
  "The buffer with the unified diff of this proposal, or nil.")
(put 'gemini-companion-unified--diff 'permanent-local t)

(defvar-local gemini-companion-unified--stale nil
  "Non-nil if the proposal has changed since this diff was made.
It is the timer that makes it anew, or t.")

(defvar gemini-companion-unified--toggling nil
  "Non-nil while this file changes a proposal.")

(defvar-local gemini-companion-unified--total nil
  "How many hunks this diff has, or nil if none is excluded.")

;;;; View

(defun gemini-companion-unified-open (diff original frame &optional keep)
  "Show DIFF, an edit of the text in ORIGINAL, as a unified diff on FRAME.
If KEEP is non-nil, the window in use there stays visible.  The
value is a plist; see `gemini-companion-view--kinds'."
  (let* ((proposal (gemini-companion-diff-proposal-buffer diff))
         (buffer (gemini-companion-unified--buffer diff original)))
    (condition-case problem
        (progn
          (gemini-companion-unified--make buffer)
          (gemini-companion-windows-in-frame
           frame
           (lambda ()
             (setf (gemini-companion-diff-frame diff)
                   (window-frame (gemini-companion-unified--display
                                  buffer diff keep))))))
      ((error quit)
       (gemini-companion-unified--close buffer proposal)
       (signal (car problem) (cdr problem))))
    (with-current-buffer proposal
      (setq gemini-companion-unified--diff buffer)
      (add-hook 'after-change-functions #'gemini-companion-unified--changed
                nil t))
    (list :buffers (list buffer proposal)
          :main buffer
          :hunk #'gemini-companion-unified--toggle
          :move (lambda (count) (gemini-companion-unified--move buffer count))
          :edit (lambda () (gemini-companion-unified--edit buffer proposal))
          :select (lambda ()
                    (when-let* ((window (or (get-buffer-window buffer)
                                            (get-buffer-window proposal))))
                      (select-window window)))
          :display (lambda () (gemini-companion-unified--display buffer diff))
          :compare (lambda () (gemini-companion-unified--make buffer 0))
          :close (lambda ()
                   (gemini-companion-unified--close buffer proposal)))))

(defun gemini-companion-unified--buffer (diff original)
  "Return a new buffer for the unified diff of DIFF, an edit of ORIGINAL."
  (with-current-buffer
      (generate-new-buffer (format "*gemini diff: %s*"
                                   (gemini-companion-diff-name diff 'plain)))
    (let ((diff-default-read-only t)
          (diff-update-on-the-fly nil))
      ;; A hook of the person's may fail; that is no reason to show no review.
      (with-demoted-errors "Mode for the review: %S"
        (gemini-companion-unified-mode)))
    (buffer-disable-undo)
    (setq default-directory (buffer-local-value 'default-directory original)
          gemini-companion-unified--original original)
    (gemini-companion-diff-adopt diff)
    (current-buffer)))

(defun gemini-companion-unified--display (buffer diff &optional keep)
  "Show and select BUFFER, the view of DIFF, and return its window.
If KEEP is non-nil, the window in use stays visible.  A user's
`display-buffer-alist' comes first."
  (select-window
   (or (display-buffer
        buffer
        (list (list #'display-buffer-reuse-window
                    (lambda (buffer _)
                      (gemini-companion-unified--use-window buffer diff keep))
                    (lambda (buffer _)
                      (gemini-companion-windows-make-room
                       buffer
                       (if keep gemini-companion-unified--least-lines 1)
                       keep))
                    ;; Emacs would go on with a new frame.
                    (lambda (&rest _) 'fail))
              '(inhibit-switch-frame . t)
              (cons 'inhibit-same-window keep)))
       (user-error "No window for the review of %s"
                   (gemini-companion-diff-name diff)))))

(defun gemini-companion-unified--use-window (buffer diff keep)
  "Show BUFFER, the view of DIFF, in a window of this frame, and return that.
It is the one of the file, the selected one, or the largest; nil
if each of them is small or there for something else.  If KEEP is
non-nil, that in use is."
  (let* ((file (find-buffer-visiting (gemini-companion-diff-file-path diff)))
         (used (and keep (gemini-companion-windows-in-use)))
         (windows (list (and file (get-buffer-window file))
                        (selected-window)
                        (get-largest-window nil nil keep))))
    (when-let* ((window (seq-find
                         (lambda (window)
                           (gemini-companion-unified--roomy-p window keep))
                         (delq used (delq nil windows)))))
      (set-window-buffer window buffer)
      window)))

(defun gemini-companion-unified--roomy-p (window wide)
  "Return non-nil if a diff can be read in WINDOW.
If WIDE is non-nil, it has enough columns, too."
  (not (or (window-dedicated-p window)
           (window-minibuffer-p window)
           (window-parameter window 'window-side)
           (and wide (not (gemini-companion-windows-fits-p window 1)))
           (< (window-body-height window)
              gemini-companion-unified--least-lines))))

(defun gemini-companion-unified--close (buffer proposal)
  "End the view in BUFFER of PROPOSAL, and leave the windows as they are."
  (when (buffer-live-p proposal)
    (with-current-buffer proposal
      (setq gemini-companion-unified--diff nil)
      (remove-hook 'after-change-functions
                   #'gemini-companion-unified--changed t)))
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (when (timerp gemini-companion-unified--stale)
        (cancel-timer gemini-companion-unified--stale))
      (when gemini-companion-unified--process
        (gemini-companion-compare-cancel gemini-companion-unified--process)))
    (gemini-companion-diff-discard buffer)))

;;;; Text

(defun gemini-companion-unified--make (buffer &optional seconds)
  "Have `diff' make the text of BUFFER again, and wait SECONDS for it.
The default is `gemini-companion-unified--wait'."
  (with-current-buffer buffer
    (when gemini-companion-unified--process
      (gemini-companion-compare-cancel gemini-companion-unified--process))
    (setq gemini-companion-unified--stale nil
          gemini-companion-unified--process
          (gemini-companion-compare-start
           gemini-companion-unified--original
           (gemini-companion-diff-proposal-buffer gemini-companion-diff-here)
           (gemini-companion-diff-file-path gemini-companion-diff-here)
           (lambda (process file)
             (gemini-companion-unified--take buffer process file))))
    (gemini-companion-unified--set-header)
    (gemini-companion-compare-wait gemini-companion-unified--process
                                   (or seconds
                                       gemini-companion-unified--wait))))

(defun gemini-companion-unified--take (buffer process file)
  "Show in BUFFER what PROCESS, which has ended, has written to FILE."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq gemini-companion-unified--process nil)
      (gemini-companion-unified--fill process file)
      (gemini-companion-unified--mark)
      (gemini-companion-unified--set-header))))

(defun gemini-companion-unified--fill (process file)
  "Make what PROCESS wrote to FILE the text of the current buffer.
The windows stay at their line; at first, that is the first hunk."
  (let ((places (mapcar (lambda (window)
                          (list window
                                (line-number-at-pos (window-point window))
                                (line-number-at-pos (window-start window))))
                        (get-buffer-window-list nil nil t)))
        (line (line-number-at-pos))
        (first (zerop (buffer-size)))
        (inhibit-read-only t))
    (erase-buffer)
    (gemini-companion-text-insert file 'utf-8-emacs-unix)
    (when (zerop (buffer-size))
      (insert (if (< 1 (process-exit-status process))
                  (format "%s failed; see another view by %s.\n"
                          diff-command
                          (substitute-command-keys
                           "\\[gemini-companion-review-switch-view]"))
                "There is no difference left.\n")))
    (setq-local diff-refine (and (< (buffer-size)
                                    gemini-companion-unified--refined)
                                 (default-value 'diff-refine)))
    (set-buffer-modified-p nil)
    (goto-char (gemini-companion-unified--line line))
    (when (and first
               (re-search-forward gemini-companion-blocks-header-re nil t))
      (goto-char (match-beginning 0))
      (setq line (line-number-at-pos)))
    (pcase-dolist (`(,window ,point ,start) places)
      (set-window-point window
                        (gemini-companion-unified--line (if first line point)))
      (set-window-start window (gemini-companion-unified--line start)))))

(defun gemini-companion-unified--line (line)
  "Return where LINE, 1-based, of the current buffer begins."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (forward-line (1- line))
      (point))))

(defun gemini-companion-unified--changed (&rest _)
  "Note that the current buffer, a proposal, was changed by the person.
Its diff is made anew soon, or when the person comes back to it."
  (let ((buffer gemini-companion-unified--diff))
    (when (and (buffer-live-p buffer)
               (not gemini-companion-unified--toggling))
      (with-current-buffer buffer
        (unless gemini-companion-unified--stale
          (setq gemini-companion-unified--stale
                (run-with-idle-timer 0.5 nil
                                     #'gemini-companion-unified--follow
                                     buffer)))))))

(put 'gemini-companion-unified--changed 'permanent-local-hook t)

(defun gemini-companion-unified--follow (buffer)
  "Make the diff in BUFFER anew if it is on a screen."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq gemini-companion-unified--stale t)
      (when (get-buffer-window buffer t)
        (gemini-companion-unified--make buffer)))))

(defun gemini-companion-unified-refresh ()
  "Make this unified diff anew."
  (interactive)
  (gemini-companion-unified--make (current-buffer)))

;;;; Header line

(defun gemini-companion-unified--set-header ()
  "Say in the header line of the current buffer what a person may do."
  (setq header-line-format
        (gemini-companion-look-header
         (gemini-companion-look-subject gemini-companion-diff-here)
         (gemini-companion-look-keys
          'gemini-companion-diff-accept "accept"
          'gemini-companion-diff-reject "reject")
         (if gemini-companion-unified--process
             (propertize "comparing..." 'face 'warning)
           (gemini-companion-look-excluded
            (gemini-companion-diff-proposal-buffer gemini-companion-diff-here)
            'gemini-companion-unified--total))
         (gemini-companion-look-keys
          'gemini-companion-review-toggle-hunk "exclude hunk"
          'gemini-companion-review-edit "edit"
          'gemini-companion-review-switch-view "Ediff"))))

;;;; Hunks

(defun gemini-companion-unified--move (buffer count)
  "Go COUNT hunks on in BUFFER, a unified diff that is shown."
  (with-selected-window (or (get-buffer-window buffer)
                            (user-error "The diff is not shown here"))
    (diff-hunk-next count)))

(defun gemini-companion-unified--toggle ()
  "Exclude the lines at point from the proposal, or restore them.
Those are a block of changed lines, or between such blocks all
that have one header, as Diff mode's commands take them.  Return
non-nil if they are excluded now."
  (gemini-companion-unified--check)
  (let* ((overlays (gemini-companion-unified--overlays
                    (gemini-companion-blocks-at-point
                     (gemini-companion-blocks-header))))
         (left (seq-remove #'gemini-companion-hunks-excluded-p overlays))
         (gemini-companion-unified--toggling t))
    (mapc #'gemini-companion-hunks-toggle (or left overlays))
    (gemini-companion-unified--mark)
    (force-mode-line-update)
    left))

(defun gemini-companion-unified--check ()
  "Signal an error if no hunk can be excluded in the current buffer."
  (when (buffer-local-value 'buffer-read-only
                            (gemini-companion-diff-proposal-buffer
                             gemini-companion-diff-here))
    (user-error "The proposal is read-only"))
  (cond ((not (derived-mode-p 'gemini-companion-unified-mode))
         (user-error "Hunks are excluded in the diff"))
        (gemini-companion-unified--stale
         (gemini-companion-unified--make (current-buffer))
         (user-error "The proposal has changed; here is how it differs now"))
        (gemini-companion-unified--process
         (user-error "The diff is still being made"))))

(defun gemini-companion-unified--overlays (blocks)
  "Return the overlays of BLOCKS in the proposal."
  (let ((original gemini-companion-unified--original)
        (proposal (gemini-companion-diff-proposal-buffer
                   gemini-companion-diff-here)))
    (gemini-companion-hunks-call-with-all
     proposal
     (lambda ()
       (mapcar (pcase-lambda (`(,old ,old-count ,new ,new-count . ,_))
                 (gemini-companion-hunks-overlay
                  (gemini-companion-unified--line new)
                  (gemini-companion-unified--line (+ new new-count))
                  (with-current-buffer original
                    (gemini-companion-hunks-text
                     (gemini-companion-unified--line old)
                     (gemini-companion-unified--line (+ old old-count))))))
               blocks)))))

;;;; Marks

(defun gemini-companion-unified--mark ()
  "Mark the blocks of the current buffer that are excluded."
  (remove-overlays (point-min) (point-max) 'gemini-companion-excluded t)
  (let ((lines (gemini-companion-unified--excluded-lines)))
    (setq gemini-companion-unified--total
          (and lines (gemini-companion-blocks-count)))
    (save-excursion
      (goto-char (point-min))
      (while (and lines
                  (re-search-forward gemini-companion-blocks-header-re nil t))
        (pcase-let* ((header (match-beginning 0))
                     (`(,_ ,_ ,new ,count)
                      (gemini-companion-blocks-sides header)))
          (when (<= (car lines) (+ new count))
            (pcase-dolist (`(,_ ,_ ,line ,_ ,beg ,end)
                           (gemini-companion-blocks-under header))
              (when (memql line lines)
                (gemini-companion-unified--strike beg end)))
            (setq lines (seq-drop-while (lambda (line) (<= line (+ new count)))
                                        lines))))))))

(defun gemini-companion-unified--excluded-lines ()
  "Return where in the proposal the excluded hunks begin, in order.
Those are lines of the proposal with no hunk excluded."
  (gemini-companion-hunks-call-with-all
   (gemini-companion-diff-proposal-buffer gemini-companion-diff-here)
   (lambda ()
     (save-restriction
       (widen)
       (sort (mapcar (lambda (overlay)
                       (line-number-at-pos (overlay-start overlay)))
                     (gemini-companion-hunks-overlays))
             #'<)))))

(defun gemini-companion-unified--strike (beg end)
  "Strike the lines from BEG to END through."
  (let ((overlay (make-overlay beg end)))
    (overlay-put overlay 'gemini-companion-excluded t)
    (overlay-put overlay 'face 'gemini-companion-excluded)
    (overlay-put overlay 'priority 10)
    ;; Many terminals strike nothing through.
    (overlay-put overlay 'line-prefix (propertize "x " 'face 'warning))))

;;;; Editing

(defun gemini-companion-unified--edit (buffer proposal)
  "Show PROPOSAL in the window of BUFFER, its diff, or the other way round."
  (if (eq (current-buffer) buffer)
      (let ((place (gemini-companion-unified--place proposal)))
        (set-window-buffer (selected-window) proposal)
        (with-current-buffer proposal
          (unless font-lock-mode
            (gemini-companion-look-colour
             (gemini-companion-diff-file-path gemini-companion-diff-here))
            (gemini-companion-diff-adopt gemini-companion-diff-here))
          (setq header-line-format (gemini-companion-unified--edit-header))
          (goto-char place))
        (set-window-point (selected-window) place))
    (set-window-buffer (selected-window) buffer)
    (when (buffer-local-value 'gemini-companion-unified--stale buffer)
      (gemini-companion-unified--make buffer))))

(defun gemini-companion-unified--edit-header ()
  "Return the header line of a proposal that is edited."
  (gemini-companion-look-header
   (gemini-companion-look-keys 'gemini-companion-diff-accept "accept"
                               'gemini-companion-diff-reject "reject"
                               'gemini-companion-review-edit "back to the diff")
   (gemini-companion-look-subject gemini-companion-diff-here)))

(defun gemini-companion-unified--place (proposal)
  "Return where in PROPOSAL the line at point is."
  (let* ((header (ignore-error user-error (gemini-companion-blocks-header)))
         (line (if header
                   (nth 2 (gemini-companion-blocks-sides header))
                 1))
         (end (line-beginning-position)))
    (when header
      (save-excursion
        (goto-char header)
        (forward-line)
        (while (< (point) end)
          (unless (memq (char-after) '(?- ?\\))
            (setq line (1+ line)))
          (forward-line))))
    (with-current-buffer proposal
      (marker-position
       (gemini-companion-hunks-call-with-all
        proposal
        (lambda ()
          (copy-marker (gemini-companion-unified--line line))))))))

(provide 'gemini-companion-unified)
;;; gemini-companion-unified.el ends here
