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

;; The unified view of a review: one window with the output of the program diff,
;; in which hunks are excluded and restored, and from which the proposal can be
;; edited.

;;; Code:

(require 'diff)
(require 'diff-mode)
(require 'gemini-companion-diff)
(require 'gemini-companion-review)
(require 'gemini-companion-text)
(require 'seq)

;;;; Text of a diff

(defconst gemini-companion-unified-header-re
  (concat "^@@ -\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?"
          " \\+\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)? @@")
  "What the first line of a hunk looks like.")

(defun gemini-companion-unified-header ()
  "Return where the hunk at point begins."
  (save-excursion
    (end-of-line)
    (or (re-search-backward gemini-companion-unified-header-re nil t)
        (user-error "No hunk here"))))

(defun gemini-companion-unified-sides (header)
  "Return the numbers in the HEADER of a hunk.
A list (OLD OLD-COUNT NEW NEW-COUNT) of lines, from 1 on."
  (save-excursion
    (goto-char header)
    (looking-at gemini-companion-unified-header-re)
    (pcase-let ((`(,old ,old-count ,new ,new-count)
                 (mapcar (lambda (group)
                           (string-to-number (or (match-string group) "1")))
                         '(1 2 3 4))))
      ;; A side without lines names the line before it.
      (list (if (zerop old-count) (1+ old) old) old-count
            (if (zerop new-count) (1+ new) new) new-count))))

(defun gemini-companion-unified-under (header)
  "Return the blocks of changed lines in the hunk at HEADER, in order.
Each is a list (OLD OLD-COUNT NEW NEW-COUNT BEG END): lines of the
original, of the proposal with no hunk excluded, and positions here."
  (pcase-let ((`(,old ,old-left ,new ,new-left)
               (gemini-companion-unified-sides header))
              (blocks nil)
              (block nil))
    (save-excursion
      (goto-char header)
      (forward-line)
      (while (and (or (< 0 old-left) (< 0 new-left)) (not (eobp)))
        (let ((sign (char-after)))
          (cond ((memq sign '(?- ?+))
                 (unless block
                   (setq block (list old 0 new 0 (point) (point)))
                   (push block blocks)))
                ((not (eq sign ?\\))
                 (setq block nil)))
          (unless (memq sign '(?+ ?\\))
            (setq old (1+ old) old-left (1- old-left))
            (when block (setf (nth 1 block) (1+ (nth 1 block)))))
          (unless (memq sign '(?- ?\\))
            (setq new (1+ new) new-left (1- new-left))
            (when block (setf (nth 3 block) (1+ (nth 3 block)))))
          (forward-line)
          (when block (setf (nth 5 block) (point))))))
    (nreverse blocks)))

(defun gemini-companion-unified-at-point (header)
  "Return the block at point, in a list, or all of the hunk at HEADER."
  (let ((blocks (gemini-companion-unified-under header)))
    (or (seq-filter (lambda (block)
                      (and (<= (nth 4 block) (point))
                           (< (point) (nth 5 block))))
                    blocks)
        blocks)))

(defun gemini-companion-unified-count ()
  "Return how many blocks of changed lines the current buffer has."
  (save-excursion
    (goto-char (point-min))
    (how-many "^[ @].*\n[-+]")))

;;;; Comparison

(defun gemini-companion-unified-start (original proposal name on-end)
  "Start `diff' on the buffers ORIGINAL and PROPOSAL; return its process.
NAME is that of the file, for the diff.  ON-END is called with the
process and the file that it wrote, unless it was cancelled."
  (unless (executable-find diff-command)
    (user-error "Cannot find the program %s; install it or customize \
`diff-command'"
                diff-command))
  (let* ((verbatim (buffer-local-value 'gemini-companion-review-file original))
         (old (or verbatim (gemini-companion-unified--file original)))
         (new (gemini-companion-unified--file proposal))
         (out (make-temp-file "gemini-companion-"))
         (default-directory "/")
         (process (make-process
                   :name "gemini-companion-diff" :noquery t
                   :connection-type 'pipe
                   :command (gemini-companion-unified--command
                             old new out (abbreviate-file-name name))
                   :sentinel (lambda (process _event)
                               (gemini-companion-unified--collect process)))))
    (process-put process :files (cons out (remq verbatim (list old new))))
    (process-put process :on-end on-end)
    process))

(defun gemini-companion-unified--file (buffer)
  "Write BUFFER to a new private file, and return its name.
Of a proposal, write the text with no hunk excluded."
  (gemini-companion-review-call-with-all
   buffer #'gemini-companion-text-temporary-file))

(defun gemini-companion-unified--command (old new out name)
  "Return the command that writes how the files OLD and NEW differ to OUT.
Both are called NAME there.  It writes to a file, as a garbage
collection would come with each piece that is read from a pipe."
  ;; The person's own shell may quote in another way.
  (let ((posix (file-executable-p "/bin/sh")))
    (list (if posix "/bin/sh" shell-file-name)
          (if posix "-c" shell-command-switch)
          (concat (and posix "exec ")
                  (mapconcat #'shell-quote-argument
                             (list diff-command "--text" "-u"
                                   "--label" (concat name "\tas it is")
                                   "--label" (concat name "\tproposed")
                                   old new)
                             " ")
                  " >" (shell-quote-argument out)))))

(defun gemini-companion-unified-wait (process seconds)
  "Wait until PROCESS has ended, SECONDS at most."
  (let ((end (+ (float-time) seconds)))
    (while (and (process-live-p process) (< (float-time) end))
      ;; No timer may run meanwhile.
      (accept-process-output process 0.005 nil 1)))
  (gemini-companion-unified--collect process))

(defun gemini-companion-unified--collect (process)
  "Hand over what PROCESS has written, if it has ended."
  (when-let* ((files (and (not (process-live-p process))
                          (process-get process :files))))
    (unwind-protect
        (funcall (process-get process :on-end) process (car files))
      (gemini-companion-unified-cancel process))))

(defun gemini-companion-unified-cancel (process)
  "End PROCESS, if that is needed, and delete its files."
  (let ((files (process-get process :files)))
    (process-put process :files nil)
    (delete-process process)
    (mapc #'delete-file files)))

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
  (gemini-companion-review-letters-are-keys 'gemini-companion-unified-mode))

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
value is a plist; see `gemini-companion-review--kinds'."
  (let* ((proposal (gemini-companion-diff-proposal-buffer diff))
         (buffer (gemini-companion-unified--buffer diff original)))
    (condition-case problem
        (progn
          (gemini-companion-unified--make buffer)
          (gemini-companion-review-in-frame
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
                      (gemini-companion-review-make-room
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
         (used (and keep (gemini-companion-review-in-use)))
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
           (and wide (not (gemini-companion-review-fits-p window 1)))
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
        (gemini-companion-unified-cancel gemini-companion-unified--process)))
    (gemini-companion-diff-discard buffer)))

;;;; Text

(defun gemini-companion-unified--make (buffer &optional seconds)
  "Have `diff' make the text of BUFFER again, and wait SECONDS for it.
The default is `gemini-companion-unified--wait'."
  (with-current-buffer buffer
    (when gemini-companion-unified--process
      (gemini-companion-unified-cancel gemini-companion-unified--process))
    (setq gemini-companion-unified--stale nil
          gemini-companion-unified--process
          (gemini-companion-unified-start
           gemini-companion-unified--original
           (gemini-companion-diff-proposal-buffer gemini-companion-diff-here)
           (gemini-companion-diff-file-path gemini-companion-diff-here)
           (lambda (process file)
             (gemini-companion-unified--take buffer process file))))
    (gemini-companion-unified--set-header)
    (gemini-companion-unified-wait gemini-companion-unified--process
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
               (re-search-forward gemini-companion-unified-header-re nil t))
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
        (gemini-companion-review-header
         (gemini-companion-review-subject gemini-companion-diff-here)
         (gemini-companion-review-keys
          'gemini-companion-diff-accept "accept"
          'gemini-companion-diff-reject "reject")
         (if gemini-companion-unified--process
             (propertize "comparing..." 'face 'warning)
           (gemini-companion-review-excluded-text
            (gemini-companion-diff-proposal-buffer gemini-companion-diff-here)
            'gemini-companion-unified--total))
         (gemini-companion-review-keys
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
                    (gemini-companion-unified-at-point
                     (gemini-companion-unified-header))))
         (left (seq-remove #'gemini-companion-review-excluded-p overlays))
         (gemini-companion-unified--toggling t))
    (mapc #'gemini-companion-review-toggle (or left overlays))
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
    (gemini-companion-review-call-with-all
     proposal
     (lambda ()
       (mapcar (pcase-lambda (`(,old ,old-count ,new ,new-count . ,_))
                 (gemini-companion-review-overlay
                  (gemini-companion-unified--line new)
                  (gemini-companion-unified--line (+ new new-count))
                  (with-current-buffer original
                    (gemini-companion-review-text
                     (gemini-companion-unified--line old)
                     (gemini-companion-unified--line (+ old old-count))))))
               blocks)))))

;;;; Marks

(defun gemini-companion-unified--mark ()
  "Mark the blocks of the current buffer that are excluded."
  (remove-overlays (point-min) (point-max) 'gemini-companion-excluded t)
  (let ((lines (gemini-companion-unified--excluded-lines)))
    (setq gemini-companion-unified--total
          (and lines (gemini-companion-unified-count)))
    (save-excursion
      (goto-char (point-min))
      (while (and lines
                  (re-search-forward gemini-companion-unified-header-re nil t))
        (pcase-let* ((header (match-beginning 0))
                     (`(,_ ,_ ,new ,count)
                      (gemini-companion-unified-sides header)))
          (when (<= (car lines) (+ new count))
            (pcase-dolist (`(,_ ,_ ,line ,_ ,beg ,end)
                           (gemini-companion-unified-under header))
              (when (memql line lines)
                (gemini-companion-unified--strike beg end)))
            (setq lines (seq-drop-while (lambda (line) (<= line (+ new count)))
                                        lines))))))))

(defun gemini-companion-unified--excluded-lines ()
  "Return where in the proposal the excluded hunks begin, in order.
Those are lines of the proposal with no hunk excluded."
  (gemini-companion-review-call-with-all
   (gemini-companion-diff-proposal-buffer gemini-companion-diff-here)
   (lambda ()
     (save-restriction
       (widen)
       (sort (mapcar (lambda (overlay)
                       (line-number-at-pos (overlay-start overlay)))
                     (gemini-companion-review-overlays))
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
            (gemini-companion-review-colour
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
  (gemini-companion-review-header
   (gemini-companion-review-keys 'gemini-companion-diff-accept "accept"
                               'gemini-companion-diff-reject "reject"
                               'gemini-companion-review-edit "back to the diff")
   (gemini-companion-review-subject gemini-companion-diff-here)))

(defun gemini-companion-unified--place (proposal)
  "Return where in PROPOSAL the line at point is."
  (let* ((header (ignore-error user-error (gemini-companion-unified-header)))
         (line (if header
                   (nth 2 (gemini-companion-unified-sides header))
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
       (gemini-companion-review-call-with-all
        proposal
        (lambda ()
          (copy-marker (gemini-companion-unified--line line))))))))

(provide 'gemini-companion-unified)
;;; gemini-companion-unified.el ends here
