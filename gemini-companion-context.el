;;; gemini-companion-context.el --- What the person works on, as a snapshot  -*- lexical-binding: t; -*-

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

;; Turn the state of Emacs into a snapshot for Gemini CLI, and notice when it
;; may have changed: the open files, the active one, its cursor and selection.
;; It knows no server; the entry passes it the function to report to.
;;
;; Hooks only compare a few values and arm one timer.  The timer makes the
;; snapshot and reports it.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)

;;;; State

(defconst gemini-companion-context--quiet-seconds 0.05
  "How long Emacs must be quiet before a snapshot is made.")

(defconst gemini-companion-context--again-seconds 0.025
  "How long a snapshot is put off when a change came while it was due.
Shorter than the first wait, as the change is some time ago then.")

(defconst gemini-companion-context--most-waits 4
  "How often a snapshot is put off while changes keep coming.")

(defconst gemini-companion-context--most-files 10
  "How many files a snapshot lists; the client cuts the list here too.")

(defconst gemini-companion-context--most-units 16384
  "How many UTF-16 units of the selection are told; the client's own limit.")

(defvar gemini-companion-context--report-function nil
  "Function called with a snapshot after each change, or nil.")

(defvar gemini-companion-context--timer nil
  "Timer that makes the next snapshot, or nil.")

(defvar gemini-companion-context--waits 0
  "How often the snapshot that is due has been put off.")

(defvar gemini-companion-context--moved nil
  "Non-nil if something changed since the timer was armed.")

(defvar gemini-companion-context--buffer nil
  "Buffer of the selected window when it was last looked at.")

(defvar gemini-companion-context--point nil
  "Point of that buffer.")

(defvar gemini-companion-context--mark nil
  "Mark of that buffer if it was active, else nil.")

(defvar gemini-companion-context--tick nil
  "Modification tick of that buffer.")

(defvar gemini-companion-context--active nil
  "Buffer of the active file: the file buffer that was selected last.")

(defvar gemini-companion-context--active-file nil
  "Entry of the active file when it was selected last.")

(defvar gemini-companion-context--watches nil
  "Alist of (FILE . DESCRIPTOR), the listed files whose end is watched.")

(defvar-local gemini-companion-context--focused nil
  "When this buffer was selected last, in milliseconds, or nil.")
(put 'gemini-companion-context--focused 'permanent-local t)

;;;; Files

(defun gemini-companion-context--file (buffer)
  "Return the local file that BUFFER or its base buffer visits, or nil."
  (let ((file (buffer-file-name (or (buffer-base-buffer buffer) buffer))))
    (and file
         (not (file-remote-p file))
         file)))

(defun gemini-companion-context--buffers ()
  "Return the buffers that visit files, the one focused last first.
Each file counts once."
  (let (found files)
    (dolist (buffer (buffer-list))
      (when-let* ((file (gemini-companion-context--file buffer)))
        (push (list (gemini-companion-context--timestamp buffer) file buffer)
              found)))
    (dolist (entry (sort (nreverse found)
                         (lambda (a b) (> (car a) (car b)))))
      (unless (assoc (nth 1 entry) files)
        (push (cons (nth 1 entry) (nth 2 entry)) files)))
    (mapcar #'cdr (nreverse files))))

(defun gemini-companion-context--timestamp (buffer)
  "Return when BUFFER was last focused, in milliseconds since 1970."
  (or (buffer-local-value 'gemini-companion-context--focused buffer)
      (when-let* ((time (buffer-local-value 'buffer-display-time buffer)))
        (gemini-companion-context--milliseconds time))
      0))

(defun gemini-companion-context--milliseconds (&optional time)
  "Return TIME, default now, in milliseconds since 1970."
  (floor (* 1000 (float-time time))))

;;;; Positions

(defun gemini-companion-context--cursor (position)
  "Return POSITION of the current buffer as a plist, ignoring narrowing.
Its `:line' and `:character' are 1-based; characters are counted
in UTF-16 units from the beginning of the line."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char position)
      (let ((start (line-beginning-position)))
        (list :line (line-number-at-pos position t)
              :character (+ 1 (- position start)
                            (gemini-companion-context--astral
                             start position)))))))

(defun gemini-companion-context--astral (start end)
  "Count the characters from START to END that are two UTF-16 units."
  (save-excursion
    (goto-char start)
    (let ((count 0))
      (while (re-search-forward "[\U00010000-\U0010FFFF]" end t)
        (cl-incf count))
      count)))

(defun gemini-companion-context--selection ()
  "Return the selected text of the current buffer, or nil."
  (when (and (region-active-p) (/= (point) (mark)))
    (let ((text (gemini-companion-context--region-text)))
      (unless (string-empty-p text)
        (gemini-companion-context--cut text)))))

(defun gemini-companion-context--region-text ()
  "Return the text of the region, no more of it than is told."
  (if (bound-and-true-p rectangle-mark-mode)
      (substring-no-properties (funcall region-extract-function nil))
    (let ((start (region-beginning)))
      (buffer-substring-no-properties
       start (min (region-end)
                  (+ start gemini-companion-context--most-units))))))

(defun gemini-companion-context--cut (text)
  "Return TEXT cut to what is told of a selection, no character split."
  (let ((units 0) (index 0) (length (length text)))
    (while (and (< index length)
                (<= (cl-incf units (if (< #xFFFF (aref text index) #x110000)
                                       2
                                     1))
                    gemini-companion-context--most-units))
      (cl-incf index))
    (substring text 0 index)))

;;;; Snapshot

(defun gemini-companion-context-snapshot ()
  "Return what the person works on, a list of plists, newest first.
Each has `:path' and `:timestamp' (milliseconds since 1970); the
active file has `:active' t, `:line' and `:character' (1-based,
in UTF-16 units), and `:selected-text' if there is a selection."
  (gemini-companion-context--refresh-active)
  (let ((buffers (gemini-companion-context--buffers))
        (count 0)
        entries)
    (while (and buffers (< count gemini-companion-context--most-files))
      (let* ((buffer (pop buffers))
             (file (gemini-companion-context--file buffer)))
        (when (gemini-companion-context--exists-p file)
          (cl-incf count)
          (push (append (list :path file :timestamp
                              (gemini-companion-context--timestamp buffer))
                        (gemini-companion-context--active-part file))
                entries))))
    (nreverse entries)))

(defun gemini-companion-context--exists-p (file)
  "Return non-nil if FILE is there and not a folder."
  (let ((file-name-handler-alist nil))
    (and (file-exists-p file) (not (file-directory-p file)))))

(defun gemini-companion-context--refresh-active ()
  "Look at the active file anew if it is selected, and drop it if it is gone."
  (let ((selected (window-buffer (selected-window))))
    (when (and (gemini-companion-context--file selected)
               (not (eq selected gemini-companion-context--active)))
      (gemini-companion-context--focus selected)))
  (if (not (buffer-live-p gemini-companion-context--active))
      (setq gemini-companion-context--active nil
            gemini-companion-context--active-file nil)
    (when (or (null gemini-companion-context--active-file)
              (eq gemini-companion-context--active
                  (window-buffer (selected-window))))
      (gemini-companion-context--look-at-active))))

(defun gemini-companion-context--look-at-active ()
  "Remember cursor and selection of the active file as they are now."
  (with-current-buffer gemini-companion-context--active
    (setq gemini-companion-context--active-file
          (append (list :active t)
                  (gemini-companion-context--cursor (point))
                  (when-let* ((text (gemini-companion-context--selection)))
                    (list :selected-text text))))))

(defun gemini-companion-context--active-part (file)
  "Return what an entry of FILE has more than others if FILE is active."
  (when (and gemini-companion-context--active
             (equal file (gemini-companion-context--file
                          gemini-companion-context--active)))
    gemini-companion-context--active-file))

;;;; Tracking

(defconst gemini-companion-context--hooks
  '((post-command-hook . gemini-companion-context--notice)
    (pre-redisplay-functions . gemini-companion-context--notice)
    (buffer-list-update-hook . gemini-companion-context--notice-buffer)
    (activate-mark-hook . gemini-companion-context--notice)
    (deactivate-mark-hook . gemini-companion-context--notice)
    (find-file-hook . gemini-companion-context--changed)
    (after-save-hook . gemini-companion-context--changed)
    (after-revert-hook . gemini-companion-context--changed)
    (after-set-visited-file-name-hook . gemini-companion-context--changed)
    (kill-buffer-hook . gemini-companion-context--killed))
  "The hooks that tracking uses, and what it adds to each.")

(defun gemini-companion-context-start (report)
  "Start tracking and call REPORT with a snapshot after each change.
The snapshot may equal the one before."
  (setq gemini-companion-context--report-function report)
  (pcase-dolist (`(,hook . ,function) gemini-companion-context--hooks)
    (add-hook hook function))
  (gemini-companion-context--notice-buffer)
  (gemini-companion-context--changed))

(defun gemini-companion-context-stop ()
  "Stop tracking and forget what was tracked."
  (pcase-dolist (`(,hook . ,function) gemini-companion-context--hooks)
    (remove-hook hook function))
  (when gemini-companion-context--timer
    (cancel-timer gemini-companion-context--timer))
  (gemini-companion-context--watch nil)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (kill-local-variable 'gemini-companion-context--focused)))
  (setq gemini-companion-context--report-function nil
        gemini-companion-context--timer nil
        gemini-companion-context--buffer nil
        gemini-companion-context--active nil
        gemini-companion-context--active-file nil))

(defun gemini-companion-context--notice (&rest _)
  "Note that the buffer, point or selection of the person may have changed.
Run after every command and before every redisplay, so that what
Lisp does without a command is seen too."
  (let ((buffer (window-buffer (selected-window))))
    (unless (and (eq buffer gemini-companion-context--buffer)
                 (eq buffer (current-buffer))
                 (eq (point) gemini-companion-context--point)
                 (eq (and mark-active (marker-position (mark-marker)))
                     gemini-companion-context--mark)
                 (eq (buffer-chars-modified-tick)
                     gemini-companion-context--tick))
      (gemini-companion-context--look buffer))))

(defun gemini-companion-context--look (buffer)
  "Remember the state of BUFFER, which is selected, if it differs."
  (with-current-buffer buffer
    (let ((point (point))
          (mark (and mark-active (marker-position (mark-marker))))
          (tick (buffer-chars-modified-tick)))
      (unless (and (eq buffer gemini-companion-context--buffer)
                   (eq point gemini-companion-context--point)
                   (eq mark gemini-companion-context--mark)
                   (eq tick gemini-companion-context--tick))
        (unless (eq buffer gemini-companion-context--buffer)
          (gemini-companion-context--leave)
          (gemini-companion-context--focus buffer))
        (setq gemini-companion-context--buffer buffer
              gemini-companion-context--point point
              gemini-companion-context--mark mark
              gemini-companion-context--tick tick)
        (gemini-companion-context--changed)))))

(defun gemini-companion-context--leave ()
  "Note that the buffer which was selected is not any more.
The next snapshot would be too late: some modes end the selection."
  (when (and (buffer-live-p gemini-companion-context--active)
             (eq gemini-companion-context--active
                 gemini-companion-context--buffer))
    (gemini-companion-context--look-at-active)))

(defun gemini-companion-context--focus (buffer)
  "Note that BUFFER is selected now."
  (when (gemini-companion-context--file buffer)
    (with-current-buffer buffer
      (setq gemini-companion-context--focused
            (gemini-companion-context--next-timestamp)
            gemini-companion-context--active buffer
            gemini-companion-context--active-file nil))))

(defvar gemini-companion-context--last-timestamp 0
  "The largest timestamp given out, in milliseconds since 1970.")

(defun gemini-companion-context--next-timestamp ()
  "Return the time in milliseconds, later than each one before."
  (setq gemini-companion-context--last-timestamp
        (max (1+ gemini-companion-context--last-timestamp)
             (gemini-companion-context--milliseconds))))

(defun gemini-companion-context--notice-buffer ()
  "Note that another buffer may be selected now."
  (unless (eq (window-buffer (selected-window))
              gemini-companion-context--buffer)
    (gemini-companion-context--look (window-buffer (selected-window)))))

(defun gemini-companion-context--killed ()
  "Note that a buffer is being killed."
  (when buffer-file-name
    (gemini-companion-context--changed)))

(defun gemini-companion-context--changed (&rest _)
  "Arrange that a snapshot is made when Emacs is quiet."
  (setq gemini-companion-context--moved t)
  (unless gemini-companion-context--timer
    (setq gemini-companion-context--waits 0)
    (gemini-companion-context--arm gemini-companion-context--quiet-seconds)))

(defun gemini-companion-context--arm (seconds)
  "Look in SECONDS whether Emacs is quiet by then."
  (setq gemini-companion-context--moved nil
        gemini-companion-context--timer
        (run-at-time seconds nil #'gemini-companion-context--due)))

(defun gemini-companion-context--due ()
  "Report the snapshot, unless Emacs is not quiet yet."
  (setq gemini-companion-context--timer nil)
  (cond ((and gemini-companion-context--moved
              (< gemini-companion-context--waits
                 gemini-companion-context--most-waits))
         (setq gemini-companion-context--waits
               (1+ gemini-companion-context--waits))
         (gemini-companion-context--arm
          gemini-companion-context--again-seconds))
        (t (gemini-companion-context--report))))

(defun gemini-companion-context--report ()
  "Make a snapshot and report it."
  (let ((snapshot (gemini-companion-context-snapshot)))
    (gemini-companion-context--watch
     (mapcar (lambda (entry) (plist-get entry :path)) snapshot))
    (funcall gemini-companion-context--report-function snapshot)))

;;;; Deleted files

(declare-function inotify-add-watch "inotify.c" (filename aspect callback))
(declare-function inotify-rm-watch "inotify.c" (watch-descriptor))

(defun gemini-companion-context--watch (files)
  "Watch FILES, and no others, for being deleted or moved away.
No hook runs when a file is deleted.  `file-notify-add-watch'
would watch whole folders, and wake Emacs for each file in them."
  (when (fboundp 'inotify-add-watch)
    (dolist (watch gemini-companion-context--watches)
      (unless (member (car watch) files)
        (gemini-companion-context--unwatch watch)))
    (dolist (file files)
      (unless (assoc file gemini-companion-context--watches)
        (when-let* ((descriptor
                     ;; The system's number of watches may be used up.
                     (ignore-error file-error
                       (inotify-add-watch
                        file '(attrib delete-self move-self)
                        (lambda (event)
                          (gemini-companion-context--vanished (car event)))))))
          (push (cons file descriptor) gemini-companion-context--watches))))))

(defun gemini-companion-context--unwatch (watch)
  "Remove WATCH, which may have gone with its file."
  (setq gemini-companion-context--watches
        (delq watch gemini-companion-context--watches))
  (ignore-error file-error
    (inotify-rm-watch (cdr watch))))

(defun gemini-companion-context--vanished (descriptor)
  "Note that the file watched by DESCRIPTOR may be gone.
A file that was saved by renaming has another inode now, so the
watch is made anew with the next snapshot."
  (when-let* ((watch (rassoc descriptor gemini-companion-context--watches)))
    (gemini-companion-context--unwatch watch)
    (gemini-companion-context--changed)))

(provide 'gemini-companion-context)
;;; gemini-companion-context.el ends here
