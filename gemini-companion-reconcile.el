;;; gemini-companion-reconcile.el --- Buffers of files that Gemini CLI writes  -*- lexical-binding: t; -*-

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

;; Gemini CLI writes a file some time after its review ended.  Watch for that
;; for a few seconds, and bring the buffer that visits the file up to date.
;; Nothing here saves a file, asks, or changes text that was not saved.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-merge)
(require 'gemini-companion-name)
(require 'gemini-companion-text)
(require 'seq)

;;;; Customization

(defcustom gemini-companion-after-write nil
  "What happens in the buffer of a file that Gemini CLI has written.
Nil means that it is brought up to date and no more; `pulse' that
the lines that changed are highlighted for a moment; `show' that
the buffer is displayed too, and not selected."
  :type '(choice (const :tag "Nothing more" nil)
                 (const :tag "Highlight what changed" pulse)
                 (const :tag "Display the buffer" show))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

(defface gemini-companion-changed
  '((t :inherit highlight :extend t))
  "Face of lines that Gemini CLI has just written."
  :group 'gemini-companion)

;;;; State

(defconst gemini-companion-reconcile--delays
  '(0.02 0.03 0.05 0.1 0.2 0.4 0.8 1.6 3.2 3.6)
  "Seconds between the looks at a file, ten in all.")

(defconst gemini-companion-reconcile--small 65536
  "Size in bytes up to which a file is written in one go.")

(cl-defstruct (gemini-companion-reconcile--watch
               (:constructor gemini-companion-reconcile--watch-make)
               (:copier nil))
  "A file that will be written, and what is known of it.
BEFORE is its stamp before it is written, LAST the one at the last
look, DONE the one when its buffer was brought up to date."
  file before last done delays timer)

(defconst gemini-companion-reconcile--marked (* 1024 1024)
  "Size in characters above which changed lines are not looked for.")

(defconst gemini-companion-reconcile--pulse 1.5
  "For how many seconds changed lines are highlighted.")

(defvar gemini-companion-reconcile--watches nil
  "The watches of all files that are expected to be written.")

(defvar gemini-companion-reconcile--pulses nil
  "Alist of a timer and the overlays that it deletes.")

;;;; Watching

(defun gemini-companion-reconcile-idle-p ()
  "Return non-nil if no file is expected to be written."
  (null gemini-companion-reconcile--watches))

(defun gemini-companion-reconcile-expect (file)
  "Bring the buffer of FILE up to date when FILE is written soon."
  (gemini-companion-reconcile--cancel
   (gemini-companion-reconcile--find file))
  (let* ((stamp (gemini-companion-reconcile-stamp file))
         (watch (gemini-companion-reconcile--watch-make
                 :file file :before stamp :last stamp
                 :delays gemini-companion-reconcile--delays)))
    (push watch gemini-companion-reconcile--watches)
    (dolist (buffer (gemini-companion-reconcile--buffers file))
      (with-current-buffer buffer
        (gemini-companion-merge-keep)
        (add-hook 'pre-command-hook
                  #'gemini-companion-reconcile--before-command nil t)))
    (gemini-companion-reconcile--later watch)))

(defun gemini-companion-reconcile (file)
  "Bring the buffers of FILE, which was written, up to date."
  (mapc #'gemini-companion-reconcile--buffer
        (gemini-companion-reconcile--buffers file)))

(defun gemini-companion-reconcile-stop ()
  "Stop watching all files."
  (mapc #'gemini-companion-reconcile--cancel
        gemini-companion-reconcile--watches)
  (mapc #'gemini-companion-reconcile--calm
        (mapcar #'car gemini-companion-reconcile--pulses)))

(defun gemini-companion-reconcile--find (file)
  "Return the watch of FILE, or nil."
  (seq-find (lambda (watch)
              (equal (gemini-companion-reconcile--watch-file watch) file))
            gemini-companion-reconcile--watches))

(defun gemini-companion-reconcile--cancel (watch)
  "End WATCH, unless it is nil."
  (when watch
    (setq gemini-companion-reconcile--watches
          (remq watch gemini-companion-reconcile--watches))
    (when-let* ((timer (gemini-companion-reconcile--watch-timer watch)))
      (cancel-timer timer))
    (dolist (buffer (gemini-companion-reconcile--buffers
                     (gemini-companion-reconcile--watch-file watch)))
      (with-current-buffer buffer
        (when (verify-visited-file-modtime buffer)
          (gemini-companion-merge-forget))
        (remove-hook 'pre-command-hook
                     #'gemini-companion-reconcile--before-command t)))))

(defun gemini-companion-reconcile--later (watch)
  "Look at the file of WATCH again, or end it if that was often enough."
  (if-let* ((delay (pop (gemini-companion-reconcile--watch-delays watch))))
      (setf (gemini-companion-reconcile--watch-timer watch)
            (run-at-time delay nil #'gemini-companion-reconcile--look watch))
    (gemini-companion-reconcile--cancel watch)))

(defun gemini-companion-reconcile--look (watch)
  "Reconcile the buffer of the file of WATCH if it was written by now.
End WATCH if the file has not changed since that was done, or is gone."
  (let ((done (gemini-companion-reconcile--watch-done watch)))
    (gemini-companion-reconcile--check watch)
    (if (and done
             (member (gemini-companion-reconcile--watch-last watch)
                     (list done nil)))
        (gemini-companion-reconcile--cancel watch)
      (gemini-companion-reconcile--later watch))))

(defun gemini-companion-reconcile--check (watch)
  "Reconcile the buffer of the file of WATCH if it was written and is whole.
A small file is, unless it is empty, which it is for a moment; a
large one if it is as it was at the last look."
  (let* ((stamp (gemini-companion-reconcile-stamp
                 (gemini-companion-reconcile--watch-file watch)))
         (last (gemini-companion-reconcile--watch-last watch)))
    (setf (gemini-companion-reconcile--watch-last watch) stamp)
    (when (and stamp
               (not (equal stamp
                           (gemini-companion-reconcile--watch-before watch)))
               (not (equal stamp
                           (gemini-companion-reconcile--watch-done watch)))
               (or (< 0 (nth 1 stamp) gemini-companion-reconcile--small)
                   (equal stamp last)))
      (setf (gemini-companion-reconcile--watch-done watch) stamp)
      (mapc #'gemini-companion-reconcile--buffer
            (gemini-companion-reconcile--buffers
             (gemini-companion-reconcile--watch-file watch))))))

(defun gemini-companion-reconcile--before-command ()
  "Reconcile the current buffer before a command may edit it.
Otherwise Emacs would ask whether to edit a file that has changed."
  (when-let* ((watch (seq-find
                      (lambda (watch)
                        (memq (current-buffer)
                              (gemini-companion-reconcile--buffers
                               (gemini-companion-reconcile--watch-file
                                watch))))
                      gemini-companion-reconcile--watches)))
    (gemini-companion-reconcile--check watch)))

(defun gemini-companion-reconcile-stamp (file)
  "Return the time, size and inode of FILE, or nil if it is not there.
Those of what it links to, if it is a link."
  (when-let* ((attributes (gemini-companion-text-attributes file)))
    (list (file-attribute-modification-time attributes)
          (file-attribute-size attributes)
          (file-attribute-inode-number attributes))))

(defun gemini-companion-reconcile--buffers (file)
  "Return the buffers that visit FILE."
  (when-let* ((buffers (gemini-companion-reconcile--namesakes file))
              (true-name (gemini-companion-text-true-name file)))
    (let ((name (abbreviate-file-name true-name)))
      (seq-filter (lambda (buffer)
                    (equal name (buffer-local-value 'buffer-file-truename
                                                    buffer)))
                  buffers))))

(defun gemini-companion-reconcile--namesakes (file)
  "Return the buffers that may visit FILE, by its name in its folder.
To find its true name takes longer than all else before an outcome
is told."
  (pcase-let ((`(,name . ,any)
               (let ((file-name-handler-alist nil))
                 (cons (file-name-nondirectory file) (file-symlink-p file)))))
    (seq-filter (lambda (buffer)
                  (when-let* ((other (buffer-local-value 'buffer-file-truename
                                                         buffer)))
                    (or any
                        ;; Some file systems ignore case.
                        (eq t (compare-strings
                               name nil nil
                               (file-name-nondirectory other) nil nil
                               t)))))
                (buffer-list))))

;;;; Bringing up to date

(defun gemini-companion-reconcile--buffer (buffer)
  "Bring BUFFER up to date if another program has written its file."
  (with-current-buffer buffer
    (unless (or (verify-visited-file-modtime buffer)
                (gemini-companion-text-problem buffer-file-name))
      (pcase-let ((`(,text . ,coding) (gemini-companion-merge-read)))
        (cond ((string= text (gemini-companion-merge-text))
               (set-visited-file-modtime)
               (set-buffer-modified-p nil)
               (gemini-companion-merge-save-as coding)
               (gemini-companion-reconcile--show nil))
              ((not (buffer-modified-p))
               (gemini-companion-reconcile--show
                (gemini-companion-reconcile--changes
                 (lambda ()
                   (gemini-companion-reconcile--revert text coding)))))
              (t
               (message (substitute-command-keys
                         "Gemini CLI wrote %s, which has unsaved changes here; \
\\[gemini-companion-merge] merges them")
                        (gemini-companion-name buffer-file-name))))))))

(defun gemini-companion-reconcile--revert (text coding)
  "Revert the current buffer in place to TEXT, which is in CODING.
Point, markers and undo stay."
  (let* ((inhibit-message t)
         (read-only buffer-read-only)
         (in-place (and enable-multibyte-characters
                        (eq revert-buffer-function #'revert-buffer--default)))
         (revert-buffer-insert-file-contents-function
          (if in-place
              (lambda (&rest _)
                (gemini-companion-merge-take text)
                (set-buffer-modified-p nil)
                (set-visited-file-modtime))
            revert-buffer-insert-file-contents-function)))
    (revert-buffer t t t)
    ;; Before Emacs 29 a revert forgets it.
    (setq buffer-read-only read-only)
    (when in-place
      (gemini-companion-merge-save-as coding))))

;;;; Showing what changed

(defun gemini-companion-reconcile--show (lines)
  "Show the current buffer and LINES, a list of (BEG . END).
That is as `gemini-companion-after-write' says."
  (let ((buffer (current-buffer)))
    (when (and (eq gemini-companion-after-write 'show)
               (not (get-buffer-window buffer 'visible)))
      (let ((window (display-buffer buffer '(nil (inhibit-same-window . t)))))
        (when (and window lines)
          (set-window-point window (caar lines))))))
  (when (and gemini-companion-after-write lines)
    (gemini-companion-reconcile--highlight lines)))

(defun gemini-companion-reconcile--changes (function)
  "Call FUNCTION, which edits the current buffer; return where it did.
The value is a list of (BEG . END), whole lines, if it is wanted."
  (if (not (and gemini-companion-after-write
                (< (buffer-size) gemini-companion-reconcile--marked)))
      (ignore (funcall function))
    (save-restriction
      (widen)
      (gemini-companion-reconcile--number)
      (funcall function)
      (prog1 (gemini-companion-reconcile--unnumbered)
        (with-silent-modifications
          (remove-text-properties (point-min) (point-max)
                                  '(gemini-companion-line nil)))))))

(defun gemini-companion-reconcile--number ()
  "Number the lines of the current buffer by a property of their text.
What an edit in place keeps, keeps it."
  (with-silent-modifications
    (save-excursion
      (goto-char (point-min))
      (let ((number 0))
        (while (not (eobp))
          (put-text-property (point) (progn (forward-line) (point))
                             'gemini-companion-line
                             (setq number (1+ number))))))))

(defun gemini-companion-reconcile--unnumbered ()
  "Return where lines of the current buffer are new or others are gone.
The value is a list of (BEG . END)."
  (let ((position (point-min))
        (last 0)
        changes)
    (while (< position (point-max))
      (let ((number (get-text-property position 'gemini-companion-line))
            (end (next-single-property-change
                  position 'gemini-companion-line nil (point-max))))
        (cond ((null number)
               (push (gemini-companion-reconcile--lines position end) changes))
              ((< (1+ last) number)
               (push (gemini-companion-reconcile--lines position position)
                     changes)))
        (setq last (or number last)
              position end)))
    (nreverse changes)))

(defun gemini-companion-reconcile--lines (beg end)
  "Return the whole lines from BEG to END as a cons of positions."
  (save-excursion
    (cons (progn (goto-char beg) (line-beginning-position))
          (progn (goto-char end)
                 (if (and (bolp) (< beg end))
                     end
                   (min (point-max) (1+ (line-end-position))))))))

(defun gemini-companion-reconcile--highlight (lines)
  "Highlight LINES, a list of (BEG . END), for a moment."
  (let ((overlays (mapcar (pcase-lambda (`(,beg . ,end))
                            (let ((overlay (make-overlay beg end)))
                              (overlay-put overlay 'face
                                           'gemini-companion-changed)
                              overlay))
                          lines))
        (timer (timer-create)))
    (timer-set-time timer (time-add nil gemini-companion-reconcile--pulse))
    (timer-set-function timer #'gemini-companion-reconcile--calm (list timer))
    (timer-activate timer)
    (push (cons timer overlays) gemini-companion-reconcile--pulses)))

(defun gemini-companion-reconcile--calm (timer)
  "Delete the overlays of TIMER."
  (cancel-timer timer)
  (mapc #'delete-overlay
        (alist-get timer gemini-companion-reconcile--pulses))
  (setf (alist-get timer gemini-companion-reconcile--pulses nil 'remove) nil))

(provide 'gemini-companion-reconcile)
;;; gemini-companion-reconcile.el ends here
