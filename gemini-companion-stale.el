;;; gemini-companion-stale.el --- Reviews that have become pointless  -*- lexical-binding: t; -*-

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

;; While diffs await an answer their files are looked at now and then.  One
;; that has come to hold what was proposed needs no review any more: an older
;; Gemini CLI opens a diff in its auto-edit mode too, writes the file and tells
;; nobody.  Nothing is sent for it; a CLI that still asks is answered in its
;; terminal.  If a file has changed otherwise, its review compares again, and
;; to accept a proposal that would undo the change needs a confirmation.

;;; Code:

(require 'gemini-companion-diff)
(require 'gemini-companion-revert)
(require 'gemini-companion-text)
(require 'seq)

;;;; State

(defconst gemini-companion-stale--seconds 0.5
  "How often the files of open diffs are looked at.")

(defvar gemini-companion-stale--stamps nil
  "Alist of each open diff and what its file was like at the last look.")

(defvar gemini-companion-stale--timer nil
  "Timer that looks at the files, or nil while no diff is open.")

;;;; Comparison

(defun gemini-companion-stale--stamp (diff)
  "Return the stamp of the file of DIFF, or nil if there is none."
  (gemini-companion-revert-stamp (gemini-companion-diff-file-path diff)))

(defun gemini-companion-stale--as-proposed-p (diff size)
  "Return non-nil if the file of DIFF, of SIZE bytes, is as was proposed.
Gemini CLI keeps the line ends that a file had."
  (when-let* ((proposal (gemini-companion-diff-proposed-text diff))
              (bytes (string-bytes proposal)))
    ;; What cannot be the same is not read.
    (and (<= (/ bytes 2) size (+ 3 (* 2 bytes)))
         (string= (gemini-companion-stale--plain proposal)
                  (gemini-companion-stale--plain
                   (gemini-companion-text-read
                    (gemini-companion-diff-file-path diff)))))))

(defun gemini-companion-stale--plain (text)
  "Return TEXT with plain line ends and no byte order mark."
  (string-remove-prefix "\uFEFF" (string-replace "\r\n" "\n" text)))

;;;; Confirmation

(defun gemini-companion-stale--objection (diff)
  "Return non-nil if the user does not want DIFF accepted after all.
Ask only if that would undo a change of its file."
  (gemini-companion-stale--check diff)
  (gemini-companion-diff-compare-again diff 'now)
  (or (not (memq diff (gemini-companion-diffs)))
      (and (gemini-companion-diff-changed diff)
           (gemini-companion-stale--undoes-p diff)
           (not (gemini-companion-diff-ask
                 diff
                 (lambda ()
                   (yes-or-no-p
                    (format "%s has changed since it was proposed; \
accept and undo that change? "
                            (gemini-companion-diff-name diff)))))))))

(defun gemini-companion-stale--undoes-p (diff)
  "Return non-nil if the proposal of DIFF would undo a change of its file.
Or if that cannot be known."
  (let ((text (gemini-companion-diff-proposal-text diff))
        (now (ignore-error file-error
               (gemini-companion-stale--plain
                (gemini-companion-text-read
                 (gemini-companion-diff-file-path diff)))))
        (base (gemini-companion-diff-base diff)))
    (not (and now
              (or (string= text now)
                  (and base
                       (gemini-companion-stale--merged-p text base now)))))))

(defun gemini-companion-stale--merged-p (text base now)
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

;;;; Watch

(defun gemini-companion-stale-start ()
  "Watch from now on the file of each diff that awaits an answer."
  (add-hook 'gemini-companion-diff-objection-functions
            #'gemini-companion-stale--objection)
  (add-hook 'gemini-companion-diff-changed-hook
            #'gemini-companion-stale--follow))

(defun gemini-companion-stale-stop ()
  "Look at no file any more."
  (remove-hook 'gemini-companion-diff-objection-functions
               #'gemini-companion-stale--objection)
  (remove-hook 'gemini-companion-diff-changed-hook
               #'gemini-companion-stale--follow)
  (when gemini-companion-stale--timer
    (cancel-timer gemini-companion-stale--timer))
  (setq gemini-companion-stale--timer nil
        gemini-companion-stale--stamps nil))

(defun gemini-companion-stale--follow ()
  "Watch the files of the diffs that are open now, and no others."
  (let ((diffs (gemini-companion-diffs)))
    (setq gemini-companion-stale--stamps
          (mapcar (lambda (diff)
                    (or (assq diff gemini-companion-stale--stamps)
                        (cons diff (gemini-companion-diff-stamp diff))))
                  diffs))
    (mapc #'gemini-companion-stale--check-buffer diffs)
    (cond ((and diffs (not gemini-companion-stale--timer))
           (setq gemini-companion-stale--timer
                 (run-at-time gemini-companion-stale--seconds
                              gemini-companion-stale--seconds
                              #'gemini-companion-stale--look)))
          ((and gemini-companion-stale--timer (not diffs))
           (cancel-timer gemini-companion-stale--timer)
           (setq gemini-companion-stale--timer nil)))))

(defun gemini-companion-stale--look ()
  "Look at the files of the open diffs."
  (dolist (diff (mapcar #'car gemini-companion-stale--stamps))
    (gemini-companion-stale--check diff)
    (gemini-companion-diff-compare-again diff)
    (gemini-companion-stale--check-buffer diff)))

(defun gemini-companion-stale--check (diff)
  "If the file of DIFF has changed since the last look, act on it.
Dismiss DIFF if the file is as was proposed, else its view is
outdated."
  (let ((known (assq diff gemini-companion-stale--stamps))
        (stamp (gemini-companion-stale--stamp diff)))
    (unless (equal stamp (cdr known))
      (setcdr known stamp)
      (if (and stamp
               ;; The file may be gone by now, or not be readable.
               (with-demoted-errors "Looking at a proposed file: %S"
                 (gemini-companion-stale--as-proposed-p diff (nth 1 stamp))))
          (gemini-companion-stale--dismiss diff)
        (setf (gemini-companion-diff-outdated diff) t)))))

(defun gemini-companion-stale--check-buffer (diff)
  "Note whether a buffer of the file of DIFF has unsaved text."
  (let ((unsaved (gemini-companion-revert-unsaved-p
                  (gemini-companion-diff-file-path diff))))
    (unless (eq unsaved (gemini-companion-diff-unsaved diff))
      (setf (gemini-companion-diff-unsaved diff) unsaved)
      (force-mode-line-update t))))

(defun gemini-companion-stale--dismiss (diff)
  "Dismiss DIFF, whose file is as was proposed, and say so."
  (gemini-companion-diff-dismiss diff)
  (gemini-companion-revert (gemini-companion-diff-file-path diff))
  (unless (active-minibuffer-window)
    (message "%s already has the proposed text; review closed (if %s still \
prompts, answer there)"
             (gemini-companion-diff-name diff)
             (gemini-companion-session-title
              (gemini-companion-diff-session diff)))))

(provide 'gemini-companion-stale)
;;; gemini-companion-stale.el ends here
