;;; gemini-companion-ediff.el --- A proposal as an Ediff session  -*- lexical-binding: t; -*-

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

;; One way to look at a diff.  A is the original, read-only; B is the proposal,
;; editable.  The session has a frame to itself, and knows nothing of other
;; sessions of the person's.  Loaded with the first review of its kind, as it
;; loads Ediff.

;;; Code:

(require 'ediff)
(require 'gemini-companion-diff)
(require 'gemini-companion-review)
(require 'gemini-companion-text)
(require 'seq)

(defconst gemini-companion-ediff--least-lines 15
  "Least height of an Ediff session.
With less, a unified diff shows more.")

(defconst gemini-companion-ediff--good-lines 24
  "Height below which a session that is selected gets the whole frame.")

;;;; View

(defun gemini-companion-ediff-open (diff original frame &optional keep)
  "Show DIFF, an edit of the text in ORIGINAL, as an Ediff session on FRAME.
If KEEP is non-nil, the window in use there stays visible.  The
value is a plist; see `gemini-companion-review--kinds'."
  (let ((proposal (gemini-companion-diff-proposal-buffer diff)))
    (setf (gemini-companion-diff-frame diff) frame)
    (dolist (buffer (list original proposal))
      (with-current-buffer buffer
        (gemini-companion-review-colour (gemini-companion-diff-file-path diff))
        (gemini-companion-diff-adopt diff)))
    (let ((panel (gemini-companion-ediff--start diff original proposal
                                                frame keep)))
      (gemini-companion-ediff--set-headers panel)
      (list :buffers (list panel original proposal)
            :main proposal
            :hunk (lambda () (gemini-companion-ediff--toggle panel))
            :move (lambda (count) (gemini-companion-ediff--move panel count))
            :edit (lambda () (gemini-companion-ediff--edit panel))
            :select (lambda () (gemini-companion-ediff--select panel))
            :display (lambda () (gemini-companion-ediff--display panel))
            :compare (lambda ()
                       (gemini-companion-ediff--compare
                        panel (gemini-companion-diff-frame diff)))
            :close (lambda () (gemini-companion-ediff--close panel))))))

(defun gemini-companion-ediff--start (diff original proposal frame keep)
  "Start Ediff on ORIGINAL and PROPOSAL of DIFF in FRAME.
If KEEP is non-nil, the window in use there stays visible.  Return
the control panel.  If Ediff fails, kill what it left and signal
its error."
  (let ((ediff-window-setup-function #'ediff-setup-windows-plain)
        (ediff-before-setup-windows-hook
         (cons #'gemini-companion-ediff--lay-out
               ediff-before-setup-windows-hook))
        (ediff-make-buffers-readonly-at-startup nil)
        ;; A null character would make them binary; and the hunks are those
        ;; of the unified diff, also where lines occur twice.
        (ediff-actual-diff-options (concat "--text --horizon-lines=3 "
                                           ediff-actual-diff-options))
        (buffers (buffer-list))
        panel)
    (condition-case problem
        (gemini-companion-review-in-frame
         frame
         (lambda ()
           (select-window (gemini-companion-ediff--make-room original keep))
           ;; Excluded hunks are among the differences, too.
           (gemini-companion-review-call-with-all
            proposal
            (lambda ()
              (gemini-companion-text-as-bytes
               (lambda ()
                 (let ((ediff-coding-system-for-write 'no-conversion))
                   (ediff-buffers original proposal
                                  (list (lambda ()
                                          (setq panel (current-buffer))
                                          (gemini-companion-ediff--set-up
                                           diff)))))))))))
      ((error quit)
       (when panel
         (gemini-companion-ediff--close panel))
       (gemini-companion-ediff--clean (list original proposal) buffers)
       (signal (car problem) (cdr problem))))
    ;; Windows take what is on top of the list of buffers.
    (bury-buffer ediff-registry-buffer)
    panel))

(defun gemini-companion-ediff--clean (sides buffers)
  "Remove what an Ediff session that failed has left.
SIDES are those it was to compare, BUFFERS all from before it.  A
hook of the user's may fail at any time."
  (dolist (buffer (seq-difference (buffer-list) buffers #'eq))
    (when (string-match-p "\\`\\*[Ee]diff" (buffer-name buffer))
      (gemini-companion-diff-discard buffer)))
  (dolist (side sides)
    (with-current-buffer side
      (kill-local-variable 'mode-line-format)
      (dolist (overlay (overlays-in (point-min) (point-max)))
        (when (or (overlay-get overlay 'ediff)
                  (overlay-get overlay 'ediff-diff-num))
          (delete-overlay overlay))))))

(defun gemini-companion-ediff--set-up (diff)
  "Make the control panel, which is current, one of the review of DIFF."
  (gemini-companion-diff-adopt diff)
  (setq-local ediff-grab-mouse nil
              ediff-actual-diff-options ediff-actual-diff-options)
  (add-hook 'ediff-before-setup-windows-hook
            #'gemini-companion-ediff--lay-out nil t)
  (add-hook 'ediff-quit-hook #'gemini-companion-diff-buffer-killed nil t)
  (local-set-key "q" #'gemini-companion-review-quit)
  (local-set-key "x" #'gemini-companion-review-toggle-hunk)
  (local-set-key "e" #'gemini-companion-review-edit)
  (local-set-key "!" #'gemini-companion-ediff--compare-anew)
  (when (< 0 ediff-number-of-differences)
    (ediff-next-difference)))

;;;; Windows

(defun gemini-companion-ediff--make-room (buffer &optional keep)
  "Show BUFFER in a window with room for Ediff, and return the window.
If KEEP is non-nil, the window in use stays visible."
  (or (gemini-companion-review-make-room
       buffer gemini-companion-ediff--least-lines keep)
      (user-error "No room for Ediff in this frame")))

(defun gemini-companion-ediff--lay-out ()
  "Lay out the session of the control panel, which is current.
It takes the place of its windows that are left, or else the whole
frame, as Ediff itself always does.  If all are there, do nothing."
  (unless (ediff-keep-window-config (current-buffer))
    (let* ((panel (current-buffer))
           (ignore-window-parameters t)
           (window-min-height 1)
           (switch-to-buffer-obey-display-actions nil)
           (there (gemini-companion-ediff--place))
           (bottom (split-window there -3 'below))
           (here (gemini-companion-ediff--split there)))
      (set-window-buffer there ediff-buffer-A)
      (set-window-buffer here ediff-buffer-B)
      (setq ediff-window-A there
            ediff-window-B here)
      (select-window bottom)
      (ediff-setup-control-buffer panel))))

(defun gemini-companion-ediff--place ()
  "Return one window in place of those of the control panel's session.
The control panel is current."
  (save-current-buffer
    (let ((windows (gemini-companion-ediff--windows)))
      (mapc #'delete-window (cdr windows))
      (if (null windows)
          (gemini-companion-ediff--make-room ediff-buffer-A)
        ;; Ediff dedicates that of the panel.
        (set-window-dedicated-p (car windows) nil)
        (car windows)))))

(defun gemini-companion-ediff--windows ()
  "Return the windows of the control panel's session on this frame.
The control panel is current."
  (seq-mapcat (lambda (buffer)
                (get-buffer-window-list buffer nil (selected-frame)))
              (list ediff-buffer-A ediff-buffer-B (current-buffer))))

(defun gemini-companion-ediff--split (window)
  "Split WINDOW as the user likes it in Ediff, and return the new one.
The control panel is current."
  (let ((function ediff-split-window-function))
    (save-current-buffer
      (select-window window)
      (funcall function)
      (when (eq window (selected-window))
        (select-window (next-window nil 'no-minibuffer)))
      (selected-window))))

(defun gemini-companion-ediff--select (panel)
  "Select the window of PANEL if the session is laid out, with room.
Return non-nil if it is."
  (with-current-buffer panel
    (let ((windows (gemini-companion-ediff--windows)))
      (when (and (= 3 (length windows))
                 (seq-every-p (lambda (window) (memq window windows))
                              (list ediff-window-A ediff-window-B
                                    ediff-control-window))
                 (gemini-companion-ediff--roomy-p windows))
        (select-window ediff-control-window)))))

(defun gemini-companion-ediff--roomy-p (windows)
  "Return non-nil if WINDOWS are high enough, or as high as their frame."
  (let ((lines (- (apply #'max (mapcar (lambda (window)
                                         (+ (window-top-line window)
                                            (window-total-height window)))
                                       windows))
                  (apply #'min (mapcar #'window-top-line windows)))))
    (<= (min gemini-companion-ediff--good-lines
             (window-total-height (frame-root-window)))
        lines)))

(defun gemini-companion-ediff--display (panel)
  "Give the session of PANEL the selected frame."
  (select-window (gemini-companion-ediff--make-room panel))
  (with-current-buffer panel
    (ediff-recenter)))

;;;; Header lines

(defun gemini-companion-ediff--set-headers (panel)
  "Say in the header lines of PANEL's session what a person may do."
  (pcase-let ((`(,original ,proposal ,total)
               (with-current-buffer panel
                 (pcase-let ((`(,there ,here) (gemini-companion-ediff--sides)))
                   (list (ediff-get-buffer there) (ediff-get-buffer here)
                         ediff-number-of-differences)))))
    (with-current-buffer original
      (setq header-line-format
            (gemini-companion-review-header
             (gemini-companion-review-subject gemini-companion-diff-here))))
    (with-current-buffer proposal
      (setq header-line-format
            (gemini-companion-review-header
             (gemini-companion-review-keys
              'gemini-companion-diff-accept "accept"
              'gemini-companion-diff-reject "reject")
             (gemini-companion-review-excluded-text proposal total)
             (gemini-companion-review-keys
              'gemini-companion-review-toggle-hunk "exclude hunk"
              'gemini-companion-review-switch-view "unified"))))))

;;;; Hunks

(defun gemini-companion-ediff--sides ()
  "Return on which sides original and proposal are, a list of `A' and `B'.
The control panel is current; there is a key that exchanges them."
  (if (eq ediff-buffer-A
          (gemini-companion-diff-proposal-buffer gemini-companion-diff-here))
      '(B A)
    '(A B)))

(defun gemini-companion-ediff--compare-anew ()
  "Have Ediff compare again, as it was done first.
Excluded hunks stay among the differences."
  (interactive)
  (let ((panel (current-buffer)))
    (gemini-companion-review-call-with-all
     (gemini-companion-diff-proposal-buffer gemini-companion-diff-here)
     (lambda ()
       (with-current-buffer panel
         (ediff-update-diffs))))
    (gemini-companion-ediff--set-headers panel)))

(defun gemini-companion-ediff--compare (panel frame)
  "Compare again in PANEL's session on FRAME, and leave its windows alone."
  (let ((said (current-message))
        (message-log-max nil))
    (gemini-companion-review-in-frame
     frame
     (lambda ()
       (save-window-excursion
         ;; Ediff goes back to the selected window in the middle of it.
         (if-let* ((window (get-buffer-window panel)))
             (select-window window 'norecord)
           (gemini-companion-ediff--display panel))
         (with-current-buffer panel
           (gemini-companion-ediff--compare-anew)))))
    (when said
      (message "%s" said))))

(defun gemini-companion-ediff--toggle (panel)
  "Exclude a hunk of PANEL's session from the proposal, or restore it.
In PANEL that is the current one, else the one at point.  Return
non-nil if it is excluded now."
  (let ((n (gemini-companion-ediff--hunk panel)))
    (with-current-buffer panel
      (prog1 (gemini-companion-ediff--toggle-hunk n)
        (ediff-clear-fine-differences n)
        (ediff-unselect-and-select-difference n nil 'no-recenter)))))

(defun gemini-companion-ediff--hunk (panel)
  "Return the number of the hunk that is meant in the current buffer.
The numbers of the session of PANEL begin with 0."
  (let* ((buffer (current-buffer))
         (position (point)))
    (with-current-buffer panel
      (or (if (eq buffer panel)
              (and (ediff-valid-difference-p) ediff-current-difference)
            (let ((side (if (eq buffer ediff-buffer-A) 'A 'B)))
              (seq-find (lambda (n)
                          (<= (ediff-get-diff-posn side 'beg n)
                              position
                              (ediff-get-diff-posn side 'end n)))
                        (number-sequence 0 (1- ediff-number-of-differences)))))
          (user-error "No hunk here")))))

(defun gemini-companion-ediff--toggle-hunk (n)
  "Exclude the hunk N of the control panel, which is current, or restore it.
Return non-nil if it is excluded now."
  (pcase-let* ((`(,there ,here) (gemini-companion-ediff--sides))
               (`(,beg ,end) (gemini-companion-ediff--range n here))
               (range (gemini-companion-ediff--range n there))
               (original (with-current-buffer (ediff-get-buffer there)
                           (apply #'gemini-companion-review-text range))))
    (with-current-buffer (ediff-get-buffer here)
      (gemini-companion-review-excluded)
      (gemini-companion-review-toggle
       (gemini-companion-review-overlay beg end original)))))

(defun gemini-companion-ediff--range (n side)
  "Return a list of where the hunk N begins and ends on SIDE, `A' or `B'."
  (list (ediff-get-diff-posn side 'beg n) (ediff-get-diff-posn side 'end n)))

(defun gemini-companion-ediff--move (panel count)
  "Go COUNT hunks on in the session of PANEL, with point of this buffer."
  (let ((buffer (current-buffer)))
    (save-selected-window
      (with-current-buffer panel
        (let ((n (+ ediff-current-difference count)))
          (unless (< -1 n ediff-number-of-differences)
            (user-error "No %s hunk" (if (< count 0) "previous" "next")))
          (ediff-jump-to-difference (1+ n)))))
    (unless (eq buffer panel)
      (goto-char (ediff-get-diff-posn
                  (if (eq buffer (buffer-local-value 'ediff-buffer-A panel))
                      'A
                    'B)
                  'beg nil panel)))))

(defun gemini-companion-ediff--edit (panel)
  "Select the window of the proposal, or from there that of PANEL."
  (let* ((proposal (gemini-companion-diff-proposal-buffer
                    gemini-companion-diff-here))
         (window (get-buffer-window (if (eq (current-buffer) proposal)
                                        panel
                                      proposal))))
    (if window
        (select-window window)
      (pop-to-buffer proposal))))

;;;; Leaving

(defun gemini-companion-ediff--close (panel)
  "End the Ediff session of PANEL and leave the windows as they are."
  (when (buffer-live-p panel)
    (let ((buffers (gemini-companion-ediff--session-buffers panel))
          (layout (gemini-companion-review-layout (selected-frame)))
          (kill-buffer-query-functions nil)
          (said (current-message))
          ;; Ediff makes the selected window the only one, even a side window.
          (ignore-window-parameters t)
          ;; With it Ediff accepts that the buffers it compared are dead; so
          ;; it does not display them.
          (this-command 'ediff-quit))
      (save-window-excursion
        (with-current-buffer panel
          (remove-hook 'ediff-quit-hook
                       #'gemini-companion-diff-buffer-killed t)
          (gemini-companion-diff-forsake)
          (gemini-companion-ediff--quit)))
      (gemini-companion-review-restore layout)
      ;; Ediff clears the echo area.
      (when said
        (let ((message-log-max nil))
          (message "%s" said)))
      (mapc #'gemini-companion-diff-discard buffers)
      (gemini-companion-ediff--forget-registry))))

(defun gemini-companion-ediff--quit ()
  "End the session of the control panel, which is current.
The person's own hooks run in there, and many kill what was
compared; a review that goes on still needs that."
  (let ((ediff-keep-variants t)
        (buffers (seq-filter #'buffer-live-p
                             (list ediff-buffer-A ediff-buffer-B))))
    (dolist (buffer buffers)
      (with-current-buffer buffer
        (add-hook 'kill-buffer-query-functions #'ignore nil t)))
    (with-demoted-errors "Ending the review: %S"
      (ediff-really-quit nil))
    (dolist (buffer buffers)
      (with-current-buffer buffer
        (remove-hook 'kill-buffer-query-functions #'ignore t)))))

(defun gemini-companion-ediff--session-buffers (panel)
  "Return PANEL and the auxiliary buffers of its Ediff session."
  (with-current-buffer panel
    (list panel ediff-diff-buffer ediff-custom-diff-buffer
          ediff-fine-diff-buffer ediff-error-buffer)))

(defun gemini-companion-ediff--forget-registry ()
  "Kill Ediff's list of sessions if it is empty and not on a screen."
  (when (and (null ediff-session-registry)
             (not (get-buffer-window ediff-registry-buffer t)))
    (gemini-companion-diff-discard ediff-registry-buffer)))

(provide 'gemini-companion-ediff)
;;; gemini-companion-ediff.el ends here
