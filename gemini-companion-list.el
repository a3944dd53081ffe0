;;; gemini-companion-list.el --- The reviews that wait, in a list  -*- lexical-binding: t; -*-

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

;; All diffs that await an answer, one to a line, to be viewed, accepted or
;; rejected from there.  What a line tells is looked up when the list is made,
;; never when a diff arrives; the lines that a diff adds and removes are
;; counted by the program diff, for which nobody waits.

;;; Code:

(require 'diff)
(require 'gemini-companion-diff)
(require 'gemini-companion-reason)
(require 'gemini-companion-session)
(require 'project)
(require 'seq)
(require 'tabulated-list)

;;;; Keys

(defvar gemini-companion-list-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'gemini-companion-list-view)
    (define-key map "a" #'gemini-companion-list-accept)
    (define-key map "r" #'gemini-companion-list-reject)
    (define-key map "R" #'gemini-companion-list-reject-with-reason)
    (define-key map "A" #'gemini-companion-list-accept-session)
    map)
  "Keys in the list of reviews.")

;;;; State

(defconst gemini-companion-list--buffer "*gemini reviews*"
  "Name of the buffer with the list.")

(defconst gemini-companion-list--most-bytes (* 5 1024 1024)
  "Size of a file or a proposal above which its lines are not counted.")

(defconst gemini-companion-list--age-seconds 10
  "How often the ages in a list that is on a screen are told anew.")

(defvar gemini-companion-list--counts (make-hash-table :test #'eq
                                                       :weakness 'key)
  "What is known of each diff: a list of a tick, and a cell for the lines.
The tick is that of the proposal buffer when the lines were
counted.")

(defvar gemini-companion-list--timer nil
  "Timer that makes the list anew soon, or nil.")

(defvar gemini-companion-list--clock nil
  "Timer that tells the ages anew, or nil.")

;;;; Cells

(defun gemini-companion-list--entry (diff)
  "Return the line of DIFF, an element of `tabulated-list-entries'."
  (pcase-let ((`(,project . ,file) (gemini-companion-list--place diff)))
    (list diff
          (vector file
                  project
                  (gemini-companion-session-name
                   (gemini-companion-diff-session diff))
                  (gemini-companion-list--age
                   (- (float-time) (gemini-companion-diff-opened diff)))
                  (gemini-companion-list--lines diff)
                  (gemini-companion-list--state diff)))))

(defun gemini-companion-list--place (diff)
  "Return a cons of the project of DIFF and its file's name in there."
  (let* ((file (gemini-companion-diff-file-path diff))
         (directory (buffer-local-value
                     'default-directory
                     (gemini-companion-diff-proposal-buffer diff)))
         ;; People add functions of their own to `project-find-functions'.
         (root (condition-case nil
                   (when-let* ((project (project-current nil directory)))
                     (expand-file-name (project-root project)))
                 (error nil))))
    (if (and root (file-in-directory-p file root))
        (cons (file-name-nondirectory (directory-file-name root))
              (file-relative-name file root))
      (cons "" (abbreviate-file-name file)))))

(defun gemini-companion-list--age (seconds)
  "Return a short text for SECONDS."
  (cond ((< seconds 60) (format "%ds" seconds))
        ((< seconds 3600) (format "%dmin" (/ seconds 60)))
        (t (format "%dh" (/ seconds 3600)))))

(defun gemini-companion-list--state (diff)
  "Return the state of DIFF as a cell."
  (let ((state (symbol-name (gemini-companion-diff-state diff)))
        (problem (gemini-companion-diff-problem diff)))
    (if problem
        (list state 'face 'warning 'help-echo problem)
      state)))

;;;; Lines

(defun gemini-companion-list--lines (diff)
  "Return a cell with the numbers of lines added and removed by DIFF.
Have them counted if that was not done for its proposal as it is."
  (let ((known (gethash diff gemini-companion-list--counts))
        (tick (buffer-chars-modified-tick
               (gemini-companion-diff-proposal-buffer diff))))
    (unless (eql tick (car known))
      (setq known (list tick (or (cadr known) "...")))
      (puthash diff known gemini-companion-list--counts)
      (unless (gemini-companion-list--count diff known)
        (setf (cadr known) "?")))
    (cadr known)))

(defun gemini-companion-list--count (diff known)
  "Start counting the lines of DIFF, for KNOWN; return non-nil if done.
The proposal goes to the program through a pipe."
  (let* ((file (gemini-companion-diff-file-path diff))
         (proposal (gemini-companion-diff-proposal-buffer diff))
         (size (or (file-attribute-size (file-attributes file)) 0)))
    (when (and (<= (max size (buffer-size proposal))
                   gemini-companion-list--most-bytes)
               (executable-find diff-command))
      (let ((process
             (make-process
              :name "gemini-companion-lines"
              :command (list diff-command "--text" "--strip-trailing-cr"
                             (if (file-exists-p file) file null-device) "-")
              :coding 'utf-8-unix
              :connection-type 'pipe
              :noquery t
              :filter #'gemini-companion-list--filter
              :sentinel (lambda (process _)
                          (gemini-companion-list--counted process known)))))
        (process-put process 'start t)
        (process-put process 'added 0)
        (process-put process 'removed 0)
        ;; The program may end before it has read all.
        (condition-case nil
            (progn
              (process-send-string process (gemini-companion-diff-proposal-text
                                            diff))
              (process-send-eof process))
          (error nil))
        t))))

(defun gemini-companion-list--filter (process output)
  "Count the lines in OUTPUT of PROCESS that begin with < or >."
  (let ((position 0)
        (start (process-get process 'start))
        (end (length output)))
    (while (< position end)
      (when start
        (pcase (aref output position)
          (?> (process-put process 'added
                           (1+ (process-get process 'added))))
          (?< (process-put process 'removed
                           (1+ (process-get process 'removed))))))
      (let ((newline (string-search "\n" output position)))
        (setq start (and newline t)
              position (if newline (1+ newline) end))))
    (process-put process 'start start)))

(defun gemini-companion-list--counted (process known)
  "Put into KNOWN what PROCESS has counted, if it has ended."
  (unless (process-live-p process)
    (setf (cadr known)
          (if (memq (process-exit-status process) '(0 1))
              (format "+%d -%d"
                      (process-get process 'added)
                      (process-get process 'removed))
            "?"))
    (gemini-companion-list--soon)))

;;;; List

(define-derived-mode gemini-companion-list-mode tabulated-list-mode
  "Gemini-Reviews"
  "Major mode for the list of proposals that await an answer.
\\{gemini-companion-list-mode-map}"
  (setq tabulated-list-padding 1
        tabulated-list-sort-key nil)
  ;; The header line has the keys.
  (setq-local tabulated-list-use-header-line nil)
  (add-hook 'tabulated-list-revert-hook #'gemini-companion-list--fill nil t)
  (add-hook 'kill-buffer-hook #'gemini-companion-list--forget nil t)
  (add-hook 'gemini-companion-diff-changed-hook #'gemini-companion-list--soon))

(defun gemini-companion-list--header ()
  "Return what the keys do, as a header line."
  (concat " "
          (substitute-command-keys
           "\\<gemini-companion-list-mode-map>\
\\[gemini-companion-list-view] view  \
\\[gemini-companion-list-accept] accept  \
\\[gemini-companion-list-reject] reject  \
\\[gemini-companion-list-reject-with-reason] with reason  \
\\[gemini-companion-list-accept-session] accept all  \
\\[revert-buffer] again  \\[quit-window] quit")))

(defun gemini-companion-list--fill ()
  "Look up what the list is to tell."
  (let* ((window (get-buffer-window nil t))
         (columns (if window (window-width window) 80)))
    (setq tabulated-list-format
          `[("File" ,(max 18 (min 60 (- columns 63))) t)
            ("Project" 12 t)
            ("Gemini CLI" 18 t)
            ("Age" 6 nil)
            ("Lines" 11 nil)
            ("State" 8 t)]
          tabulated-list-entries
          (mapcar #'gemini-companion-list--entry (gemini-companion-diffs)))
    (tabulated-list-init-header)
    (setq header-line-format '(:eval (gemini-companion-list--header)))))

(defun gemini-companion-list--print ()
  "Make the list anew; each window of it stays at its line."
  (when-let* ((buffer (get-buffer gemini-companion-list--buffer)))
    (with-current-buffer buffer
      (let ((ids (mapcar (lambda (window)
                           (cons window
                                 (tabulated-list-get-id (window-point window))))
                         (get-buffer-window-list nil nil t))))
        (revert-buffer)
        (pcase-dolist (`(,window . ,id) ids)
          (gemini-companion-list--go-to id)
          (set-window-point window (point)))))))

(defun gemini-companion-list--go-to (id)
  "Go to the line of ID, or to the first one if ID is not there."
  (goto-char (point-min))
  (while (not (or (eobp) (and id (eq id (tabulated-list-get-id)))))
    (forward-line 1))
  (when (eobp)
    (goto-char (point-min))
    (forward-line 1)))

(defun gemini-companion-list--soon ()
  "Make the list anew when Emacs is free."
  (unless gemini-companion-list--timer
    (setq gemini-companion-list--timer
          (run-at-time 0 nil #'gemini-companion-list--now))))

(defun gemini-companion-list--now ()
  "Make the list anew."
  (setq gemini-companion-list--timer nil)
  (gemini-companion-list--print)
  (gemini-companion-list--set-clock))

(defun gemini-companion-list--set-clock ()
  "Let the ages be told anew while the list is on a screen and not empty."
  (when gemini-companion-list--clock
    (cancel-timer gemini-companion-list--clock))
  (setq gemini-companion-list--clock
        (and (gemini-companion-diffs)
             (get-buffer-window gemini-companion-list--buffer 'visible)
             (run-at-time gemini-companion-list--age-seconds nil
                          #'gemini-companion-list--soon))))

(defun gemini-companion-list--forget ()
  "Forget the list, as its buffer is being killed."
  (remove-hook 'gemini-companion-diff-changed-hook
               #'gemini-companion-list--soon)
  (dolist (timer (list gemini-companion-list--timer
                       gemini-companion-list--clock))
    (when timer (cancel-timer timer)))
  (setq gemini-companion-list--timer nil
        gemini-companion-list--clock nil))

(defun gemini-companion-list-stop ()
  "Take the list away."
  (when-let* ((buffer (get-buffer gemini-companion-list--buffer)))
    (kill-buffer buffer))
  (clrhash gemini-companion-list--counts))

;;;; Commands

(defun gemini-companion-list ()
  "List the proposals that await an answer."
  (interactive)
  (with-current-buffer (get-buffer-create gemini-companion-list--buffer)
    (unless (derived-mode-p 'gemini-companion-list-mode)
      (gemini-companion-list-mode)))
  (pop-to-buffer gemini-companion-list--buffer)
  (gemini-companion-list--now))

(defun gemini-companion-review (&optional list)
  "Show the next proposal that waits, or select the one that is shown.
With prefix argument LIST, or if several wait and none is shown,
list them."
  (interactive "P")
  (let* ((diffs (gemini-companion-diffs))
         (shown (seq-find (lambda (diff)
                            (eq 'shown (gemini-companion-diff-state diff)))
                          diffs)))
    (cond (list (gemini-companion-list))
          (shown (gemini-companion-diff-view shown))
          ((cdr diffs) (gemini-companion-list))
          (diffs (gemini-companion-diff-view (car diffs)))
          (t (user-error "No proposal waits for an answer")))))

(defun gemini-companion-list--diff ()
  "Return the diff of the line at point."
  (or (tabulated-list-get-id)
      (user-error "No review on this line")))

(defun gemini-companion-list-view ()
  "View the review of this line; one that is shown waits meanwhile."
  (interactive nil gemini-companion-list-mode)
  (gemini-companion-diff-view (gemini-companion-list--diff)))

(defun gemini-companion-list-accept ()
  "Accept the review of this line."
  (interactive nil gemini-companion-list-mode)
  (gemini-companion-diff-accept (gemini-companion-list--diff)))

(defun gemini-companion-list-reject ()
  "Reject the review of this line."
  (interactive nil gemini-companion-list-mode)
  (gemini-companion-diff-reject (gemini-companion-list--diff)))

(defun gemini-companion-list-reject-with-reason ()
  "Reject the review of this line and tell Gemini CLI why."
  (interactive nil gemini-companion-list-mode)
  (gemini-companion-diff-reject-with-reason (gemini-companion-list--diff)))

(defun gemini-companion-list-accept-session ()
  "Accept all reviews of the Gemini CLI of this line."
  (interactive nil gemini-companion-list-mode)
  (let* ((session (gemini-companion-diff-session
                   (gemini-companion-list--diff)))
         (diffs (seq-filter (lambda (diff)
                              (gemini-companion-session-same-p
                               session (gemini-companion-diff-session diff)))
                            (gemini-companion-diffs))))
    (when (or (null (cdr diffs))
              (y-or-n-p (format "Accept %d edits of %s? " (length diffs)
                                (gemini-companion-session-name session))))
      (mapc #'gemini-companion-diff-accept diffs))))

(provide 'gemini-companion-list)
;;; gemini-companion-list.el ends here
