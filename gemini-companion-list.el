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
;; rejected from there.  The contents of a line are computed when the list is made,
;; never when a diff arrives; the lines that a diff adds and removes are
;; counted by the program diff, for which nobody waits.

;;; Code:

(require 'gemini-companion-auto)
(require 'gemini-companion-diff)
(require 'gemini-companion-review)
(require 'gemini-companion-name)
(require 'gemini-companion-send)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
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
    (define-key map "!" #'gemini-companion-list-auto-accept)
    (define-key map "=" #'gemini-companion-list-show-accepted)
    (define-key map "u" #'gemini-companion-list-revert)
    map)
  "Keys in the list of reviews.")

;;;; State

(defconst gemini-companion-list--buffer "*gemini reviews*"
  "Name of the buffer with the list.")

(defconst gemini-companion-list--most-bytes (* 5 1024 1024)
  "Size of a file or a proposal above which its lines are not counted.")

(defconst gemini-companion-list--age-seconds 10
  "Seconds between updates of the ages in a visible list.")

(defvar gemini-companion-list--counts (make-hash-table :test #'eq
                                                       :weakness 'key)
  "What is known of each diff: a list of a tick, and a cell for the lines.
The tick is that of the proposal buffer when the lines were
counted.")

(defvar gemini-companion-list--timer nil
  "Timer that refreshes the list soon, or nil.")

(defvar gemini-companion-list--clock nil
  "Timer that updates the ages, or nil.")

;;;; Cells

(defun gemini-companion-list--entries ()
  "Return all lines: the diffs, then what was auto-accepted."
  (append (mapcar #'gemini-companion-list--diff-entry
                  (gemini-companion-diffs))
          (mapcar #'gemini-companion-list--edit-entry
                  (gemini-companion-auto-accepted))))

(defun gemini-companion-list--diff-entry (diff)
  "Return the line of DIFF, an element of `tabulated-list-entries'."
  (gemini-companion-list--entry
   diff
   (gemini-companion-diff-file-path diff)
   (gemini-companion-diff-session diff)
   (gemini-companion-diff-opened diff)
   (gemini-companion-list--diff-lines diff)
   (gemini-companion-list--state diff)))

(defun gemini-companion-list--edit-entry (edit)
  "Return the line of EDIT, which was auto-accepted."
  (gemini-companion-list--entry
   edit
   (gemini-companion-auto-edit-file edit)
   (gemini-companion-auto-edit-session edit)
   (gemini-companion-auto-edit-time edit)
   (gemini-companion-list--edit-lines edit)
   '("accepted" face shadow)))

(defun gemini-companion-list--entry (id file session time lines state)
  "Return the line of ID, with FILE, SESSION, the age by TIME, LINES and STATE."
  (list id
        (vector (gemini-companion-name file session 'plain)
                (gemini-companion-list--project file session)
                (gemini-companion-session-name session)
                (gemini-companion-list--age (- (float-time) time))
                lines
                state)))

(defun gemini-companion-list--project (file session)
  "Return a cell with the project of FILE, which SESSION would change."
  (if-let* ((root (nth 1 (gemini-companion-name-place file session))))
      (gemini-companion-name-escaped
       (file-name-nondirectory (directory-file-name root)))
    '("OUTSIDE" face error help-echo "This file is outside your projects")))

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

(defun gemini-companion-list--diff-lines (diff)
  "Return a cell with the numbers of lines added and removed by DIFF."
  (let ((file (gemini-companion-diff-file-path diff))
        (proposal (gemini-companion-diff-proposal-buffer diff)))
    (gemini-companion-list--lines
     diff (buffer-chars-modified-tick proposal)
     (if (gemini-companion-text-problem file)
         most-positive-fixnum
       (max (buffer-size proposal)
            (or (file-attribute-size (gemini-companion-text-attributes file))
                0)))
     (lambda ()
       (cons (and (file-exists-p file) file)
             (gemini-companion-diff-proposal-text diff))))))

(defun gemini-companion-list--edit-lines (edit)
  "Return a cell with the numbers of lines added and removed by EDIT."
  (let ((former (gemini-companion-auto-edit-former edit))
        (text (gemini-companion-auto-edit-text edit)))
    (gemini-companion-list--lines
     edit t
     (if (eq former 'large) most-positive-fixnum (length text))
     (lambda ()
       (cons (and (stringp former)
                  (gemini-companion-text-temporary-file former))
             text))
     'delete)))

(defun gemini-companion-list--lines (id tick size texts &optional delete)
  "Return a cell with the numbers of lines added and removed by ID.
Have them counted unless that was done at TICK.  TEXTS returns a
cons of a file, or nil, and the text to compare it with; SIZE is
that of the larger one.  DELETE the file then, if non-nil."
  (let ((known (gethash id gemini-companion-list--counts)))
    (unless (eql tick (car known))
      (setq known (list tick (or (cadr known) "...")))
      (puthash id known gemini-companion-list--counts)
      (if (and (<= size gemini-companion-list--most-bytes)
               (executable-find diff-command))
          (pcase-let ((`(,file . ,text) (funcall texts)))
            (gemini-companion-list--count known file text delete))
        (setf (cadr known) "?")))
    (cadr known)))

(defun gemini-companion-list--count (known file text delete)
  "Count for KNOWN the lines that differ between FILE and TEXT.
FILE nil is one without lines.  DELETE it then, if non-nil."
  ;; A pipe would have Emacs wait until the program has read all.
  (let* ((other (gemini-companion-text-temporary-file text))
         (process
          (make-process
           :name "gemini-companion-lines"
           :command (list diff-command "--text" "--strip-trailing-cr"
                          (or file null-device) other)
           :coding 'binary
           :connection-type 'pipe
           :noquery t
           :filter #'gemini-companion-list--filter
           :sentinel (lambda (process _)
                       (unless (process-live-p process)
                         (delete-file other)
                         (when (and file delete) (delete-file file))
                         (gemini-companion-list--counted process known))))))
    (process-put process 'start t)
    (process-put process 'added 0)
    (process-put process 'removed 0)))

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
  "Put into KNOWN what PROCESS, which has ended, has counted."
  (setf (cadr known)
        (if (memq (process-exit-status process) '(0 1))
            (format "+%d -%d"
                    (process-get process 'added)
                    (process-get process 'removed))
          "?"))
  (gemini-companion-list--soon))

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
  (add-hook 'gemini-companion-diff-changed-hook #'gemini-companion-list--soon)
  (gemini-companion-review-letters-are-keys 'gemini-companion-list-mode))

(defun gemini-companion-list--header ()
  "Return what the keys do, as a header line."
  (concat " "
          (substitute-command-keys
           (concat
            "\\<gemini-companion-list-mode-map>\
\\[gemini-companion-list-view] view  \
\\[gemini-companion-list-accept] accept  \
\\[gemini-companion-list-reject] reject  \
\\[gemini-companion-list-reject-with-reason] reason  \
\\[gemini-companion-list-accept-session] all  \
\\[gemini-companion-list-auto-accept] auto-accept"
            (when (gemini-companion-auto-accepted)
              "  \\[gemini-companion-list-show-accepted] show  \
\\[gemini-companion-list-revert] revert")))))

(defun gemini-companion-list--fill ()
  "Compute the entries of the list."
  (let* ((window (get-buffer-window nil t))
         (columns (if window (window-width window) 80)))
    (setq tabulated-list-format
          `[("File" ,(max 16 (min 60 (- columns 70))) t)
            ("Project" 12 t)
            ("CLI" 24 t)
            ("Age" 6 nil)
            ("Lines" 11 nil)
            ("State" 8 t)]
          tabulated-list-entries (gemini-companion-list--entries))
    (tabulated-list-init-header)
    (setq header-line-format '(:eval (gemini-companion-list--header)))))

(defun gemini-companion-list--print ()
  "Refresh the list; each window of it stays at its line."
  (when-let* ((buffer (get-buffer gemini-companion-list--buffer)))
    (with-current-buffer buffer
      (let ((places (mapcar (lambda (window)
                              (let ((point (window-point window)))
                                (list window (tabulated-list-get-id point)
                                      (line-number-at-pos point))))
                            (get-buffer-window-list nil nil t))))
        (revert-buffer)
        (pcase-dolist (`(,window ,id ,line) places)
          (gemini-companion-list--go-to id line)
          (set-window-point window (point)))))))

(defun gemini-companion-list--go-to (id &optional line)
  "Go to the line of ID, or if that is gone to what is now at LINE.
The first LINE has the names of the columns."
  (goto-char (point-min))
  (while (not (or (eobp) (and id (eq id (tabulated-list-get-id)))))
    (forward-line 1))
  (when (eobp)
    (goto-char (point-min))
    (forward-line (1- (max 2 (or line 2))))
    (when (and (eobp) (< 2 (line-number-at-pos)))
      (forward-line -1))))

(defun gemini-companion-list--soon ()
  "Refresh the list when Emacs is free."
  (unless gemini-companion-list--timer
    (setq gemini-companion-list--timer
          (run-at-time 0 nil #'gemini-companion-list--now))))

(defun gemini-companion-list--now ()
  "Refresh the list."
  (setq gemini-companion-list--timer nil)
  (gemini-companion-list--print)
  (gemini-companion-list--set-clock))

(defun gemini-companion-list--set-clock ()
  "Update the ages while the list is visible and not empty."
  (when gemini-companion-list--clock
    (cancel-timer gemini-companion-list--clock))
  (setq gemini-companion-list--clock
        (and (get-buffer-window gemini-companion-list--buffer 'visible)
             (buffer-local-value 'tabulated-list-entries
                                 (get-buffer gemini-companion-list--buffer))
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
Its windows are laid out again if that is needed.  With prefix
argument LIST, or if several wait and none is shown, list them."
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
  (let ((id (tabulated-list-get-id)))
    (cond ((gemini-companion-diff-p id) id)
          (id (user-error "This edit was accepted already"))
          (t (user-error "No review on this line")))))

(defun gemini-companion-list--edit ()
  "Return the edit, which was auto-accepted, of the line at point."
  (let ((id (tabulated-list-get-id)))
    (cond ((gemini-companion-auto-edit-p id) id)
          (id (user-error "This edit still awaits an answer"))
          (t (user-error "No edit on this line")))))

(defun gemini-companion-list--session ()
  "Return the session of the line at point."
  (if (gemini-companion-auto-edit-p (tabulated-list-get-id))
      (gemini-companion-auto-edit-session (tabulated-list-get-id))
    (gemini-companion-diff-session (gemini-companion-list--diff))))

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
  "Reject the review of this line with a reason."
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
      ;; Some may have ended while that was asked.
      (mapc #'gemini-companion-diff-accept
            (seq-intersection diffs (gemini-companion-diffs) #'eq)))))

(defun gemini-companion-list-auto-accept ()
  "Turn auto-accept on or off for the CLI of this line."
  (interactive nil gemini-companion-list-mode)
  (gemini-companion-auto-accept
   (gemini-companion-auto-confirm (gemini-companion-list--session))))

(defun gemini-companion-list-show-accepted ()
  "Show what the edit of this line, which was auto-accepted, changed."
  (interactive nil gemini-companion-list-mode)
  (gemini-companion-auto-show (gemini-companion-list--edit)))

(defun gemini-companion-list-revert ()
  "Put the text from before the edit of this line into its buffer, unsaved."
  (interactive nil gemini-companion-list-mode)
  (let ((edit (gemini-companion-list--edit)))
    (when (y-or-n-p (format "Revert the edit of %s? "
                            (gemini-companion-name
                             (gemini-companion-auto-edit-file edit)
                             (gemini-companion-auto-edit-session edit))))
      (gemini-companion-auto-revert edit))))

(provide 'gemini-companion-list)
;;; gemini-companion-list.el ends here
