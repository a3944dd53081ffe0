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

;; One way to look at a diff.  A is a read-only copy of the file as it is on
;; disk, decoded as Gemini CLI decodes it; B is the proposal, editable.  The
;; session has a frame to itself, and afterwards the windows are as before.
;; Loaded with the first review, as it loads Ediff.

;;; Code:

(require 'ediff)
(require 'gemini-companion-diff)
(require 'gemini-companion-session)
(require 'seq)

(defconst gemini-companion-ediff--largest (* 20 1024 1024)
  "Size in bytes above which neither side of a review is shown.")

;;;; Original

(defun gemini-companion-ediff--original (file)
  "Return the text of FILE as known to Gemini CLI, and remarks on it.
The value is a cons of the text and a list of strings."
  (if (not (file-exists-p file))
      (cons "" '("new file"))
    (with-temp-buffer
      (let ((file-name-handler-alist nil))
        (insert-file-contents-literally file))
      (decode-coding-region (point-min) (point-max) 'utf-8-unix)
      (gemini-companion-ediff--replace "\\`\uFEFF" "")
      (gemini-companion-ediff--replace "\r\n" "\n")
      (let ((raw (gemini-companion-ediff--replace
                  (format "[%c-%c]" #x3FFF80 #x3FFFFF) "\uFFFD")))
        (cons (buffer-string)
              (append (and raw '("not UTF-8"))
                      (and (gemini-companion-ediff--unsaved-p file)
                           '("unsaved changes here"))))))))

(defun gemini-companion-ediff--replace (regexp text)
  "Replace what matches REGEXP in the current buffer by TEXT.
Return non-nil if there was any."
  (goto-char (point-min))
  (let (found)
    (while (re-search-forward regexp nil t)
      (setq found t)
      (replace-match text t t))
    found))

(defun gemini-companion-ediff--unsaved-p (file)
  "Return non-nil if a buffer of FILE has unsaved text."
  (when-let* ((buffer (find-buffer-visiting file)))
    (buffer-modified-p buffer)))

(defun gemini-companion-ediff--original-buffer (diff text remarks)
  "Return a read-only buffer with TEXT, what DIFF would change.
REMARKS are shown in its header line."
  (let ((directory (buffer-local-value
                    'default-directory
                    (gemini-companion-diff-proposal-buffer diff))))
    (with-current-buffer
        (generate-new-buffer (format "*gemini original: %s*"
                                     (gemini-companion-diff-name diff)))
      (setq default-directory directory)
      (insert text)
      (goto-char (point-min))
      (set-buffer-modified-p nil)
      (gemini-companion-ediff--colour (gemini-companion-diff-file-path diff))
      (gemini-companion-diff-adopt diff)
      (setq buffer-read-only t
            header-line-format
            (gemini-companion-ediff--header
             (string-join (cons (gemini-companion-diff-name diff)
                                (or remarks '("as it is")))
                          ", ")))
      (current-buffer))))

;;;; Look

(defun gemini-companion-ediff--colour (file)
  "Highlight the current buffer as FILE would be, and run no hook for it."
  (let ((enable-local-variables nil)
        (enable-dir-local-variables nil)
        ;; Some modes tell what they guess.
        (inhibit-message t))
    ;; A mode of the person's may fail without a file; colours are no reason
    ;; to show no review.
    (with-demoted-errors "Mode for the review: %S"
      (delay-mode-hooks
        (let ((buffer-file-name file))
          (set-auto-mode))
        ;; Its globalized mode hangs on the delayed hook.
        (font-lock-mode 1)))))

(defun gemini-companion-ediff--header (text)
  "Return a header line with TEXT."
  (list " " (replace-regexp-in-string "%" "%%" text t t)))

(defun gemini-companion-ediff--keys ()
  "Return what the keys of the current buffer do, as a line of text."
  (substitute-command-keys
   "\\<gemini-companion-review-mode-map>\
\\[gemini-companion-diff-accept] accept  \
\\[gemini-companion-diff-reject] reject"))

;;;; Session

(defun gemini-companion-ediff-show (diff)
  "Show DIFF as an Ediff session; return a function that takes it away.
Signal an error if there is nothing to show, or too much."
  (gemini-companion-ediff--check-size diff)
  (pcase-let* ((`(,text . ,remarks) (gemini-companion-ediff--original
                                     (gemini-companion-diff-file-path diff)))
               (proposal (gemini-companion-diff-proposal-buffer diff))
               (frame (setf (gemini-companion-diff-frame diff)
                            (gemini-companion-ediff--frame diff))))
    (when (string= text (gemini-companion-diff-proposal-text diff))
      (user-error "Gemini CLI proposes no change of %s"
                  (gemini-companion-diff-name diff)))
    (with-current-buffer proposal
      (gemini-companion-ediff--colour (gemini-companion-diff-file-path diff))
      (gemini-companion-diff-adopt diff)
      (setq header-line-format
            (gemini-companion-ediff--header
             (format "%s  (proposal for %s)" (gemini-companion-ediff--keys)
                     (gemini-companion-diff-name diff)))))
    (let* ((windows (gemini-companion-ediff--windows frame))
           (original (gemini-companion-ediff--original-buffer
                      diff text remarks))
           (panel (gemini-companion-ediff--start
                   diff original proposal frame windows)))
      (lambda (&optional keep)
        (gemini-companion-ediff--hide
         (if keep (list original) (list original proposal))
         panel frame windows)
        (when keep
          (gemini-companion-ediff--forsake proposal))))))

(defun gemini-companion-ediff--check-size (diff)
  "Signal an error if a side of DIFF is too large to be shown."
  (when (seq-some (lambda (size)
                    (< gemini-companion-ediff--largest (or size 0)))
                  (list (buffer-size
                         (gemini-companion-diff-proposal-buffer diff))
                        (file-attribute-size
                         (file-attributes
                          (gemini-companion-diff-file-path diff)))))
    (user-error "The edit of %s is too large to be shown"
                (gemini-companion-diff-name diff))))

(defun gemini-companion-ediff--frame (diff)
  "Return the frame for DIFF: one with its terminal, or its file.
That is the selected frame if it shows one of them, and if none does."
  (let* ((buffers (delq nil
                        (list (gemini-companion-session-terminal
                               (gemini-companion-diff-session diff))
                              (find-buffer-visiting
                               (gemini-companion-diff-file-path diff)))))
         (window (or (seq-some #'get-buffer-window buffers)
                     (seq-some (lambda (buffer)
                                 (get-buffer-window buffer 'visible))
                               buffers))))
    (if window (window-frame window) (selected-frame))))

(defun gemini-companion-ediff--start (diff original proposal frame windows)
  "Start Ediff on ORIGINAL and PROPOSAL of DIFF in FRAME.
Return its control panel.  If Ediff fails, kill what it left, put
WINDOWS back and signal its error."
  (let ((ediff-window-setup-function #'ediff-setup-windows-plain)
        (ediff-make-buffers-readonly-at-startup nil)
        (switch-to-buffer-obey-display-actions nil)
        ;; Side windows and dedicated ones make room too.
        (ignore-window-parameters t)
        ;; A null character would make them binary.
        (ediff-actual-diff-options (concat "--text " ediff-actual-diff-options))
        panel)
    (condition-case problem
        (gemini-companion-ediff--in-frame
         frame
         (lambda ()
           (gemini-companion-ediff--make-room original)
           (ediff-buffers original proposal
                          (list (lambda ()
                                  (setq panel (current-buffer))
                                  (gemini-companion-ediff--set-up diff))))))
      (error
       (let ((panels (seq-mapcat #'gemini-companion-ediff--session-buffers
                                 (buffer-local-value
                                  'ediff-this-buffer-ediff-sessions
                                  proposal))))
         (gemini-companion-ediff--restore windows)
         (with-current-buffer original
           (setq gemini-companion-diff-here nil)
           (remove-hook 'kill-buffer-hook
                        #'gemini-companion-diff--buffer-killed t))
         (mapc #'gemini-companion-ediff--kill (cons original panels)))
       (signal (car problem) (cdr problem))))
    panel))

(defun gemini-companion-ediff--in-frame (frame function)
  "Call FUNCTION with FRAME selected, without taking another frame's focus."
  (if (eq frame (selected-frame))
      (funcall function)
    (with-selected-frame frame
      (funcall function))))

(defun gemini-companion-ediff--make-room (original)
  "Show ORIGINAL in a window that can become the only one, and select it.
Another file never gets the focus meanwhile."
  (let ((window (frame-first-window (window-main-window))))
    (set-window-dedicated-p window nil)
    (set-window-buffer window original)
    (select-window window)))

(defun gemini-companion-ediff--set-up (diff)
  "Make the control panel, which is current, one of the review of DIFF."
  (gemini-companion-diff-adopt diff)
  (setq-local ediff-grab-mouse nil
              ediff-actual-diff-options ediff-actual-diff-options)
  (add-hook 'ediff-quit-hook #'gemini-companion-diff--buffer-killed nil t)
  (local-set-key "q" #'gemini-companion-diff-quit)
  (when (< 0 ediff-number-of-differences)
    (ediff-next-difference)))

(defun gemini-companion-ediff--hide (buffers panel frame windows)
  "End the session of PANEL, kill its BUFFERS, put WINDOWS of FRAME back.
If the person has moved to another tab of FRAME, its windows stay."
  (if (seq-some (lambda (buffer) (get-buffer-window buffer frame))
                (cons panel buffers))
      (gemini-companion-ediff--restore windows)
    (gemini-companion-ediff--restore-later panel frame windows))
  (mapc #'gemini-companion-ediff--kill buffers)
  (when (buffer-live-p panel)
    (gemini-companion-ediff--end panel)))

(defun gemini-companion-ediff--end (panel)
  "End the Ediff session of PANEL and leave the windows as they are."
  (let ((buffers (gemini-companion-ediff--session-buffers panel))
        (windows (gemini-companion-ediff--windows (selected-frame)))
        (kill-buffer-query-functions nil)
        ;; With it Ediff accepts that the buffers it compared are dead; so it
        ;; does not display them.
        (this-command 'ediff-quit))
    (save-window-excursion
      (with-current-buffer panel
        (remove-hook 'ediff-quit-hook
                     #'gemini-companion-diff--buffer-killed t)
        ;; The person's own hooks run in there.
        (with-demoted-errors "Ending the review: %S"
          (ediff-really-quit nil))))
    (gemini-companion-ediff--restore windows)
    (mapc #'gemini-companion-ediff--kill buffers)
    (gemini-companion-ediff--forget-registry)))

(defun gemini-companion-ediff--forsake (proposal)
  "Leave PROPOSAL, which outlives its view, where nobody comes across it."
  (with-current-buffer proposal
    (setq header-line-format nil))
  (bury-buffer proposal))

(defun gemini-companion-ediff--session-buffers (panel)
  "Return PANEL and the auxiliary buffers of its Ediff session."
  (with-current-buffer panel
    (list panel ediff-diff-buffer ediff-custom-diff-buffer
          ediff-fine-diff-buffer ediff-error-buffer)))

(defun gemini-companion-ediff--forget-registry ()
  "Kill Ediff's list of sessions if it is empty and not on a screen."
  (when (and (null ediff-session-registry)
             (not (get-buffer-window ediff-registry-buffer t)))
    (gemini-companion-ediff--kill ediff-registry-buffer)))

(defun gemini-companion-ediff--kill (buffer)
  "Kill BUFFER if it is a live buffer."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (set-buffer-modified-p nil))
    (let ((kill-buffer-query-functions nil))
      (kill-buffer buffer))))

;;;; Windows

(defun gemini-companion-ediff--windows (frame)
  "Return the layout of FRAME, for `gemini-companion-ediff--restore'."
  (list (current-window-configuration frame)
        ;; A configuration does not hold the histories of the windows.
        (mapcar (lambda (window)
                  (list window (window-prev-buffers window)
                        (window-next-buffers window)))
                (window-list frame 'no-minibuffer))
        (seq-filter #'gemini-companion-ediff--following-p
                    (window-list frame 'no-minibuffer))))

(defun gemini-companion-ediff--following-p (window)
  "Return non-nil if the point of WINDOW is where its process writes."
  (let ((buffer (window-buffer window)))
    (and (get-buffer-process buffer)
         (= (window-point window)
            (with-current-buffer buffer (point))))))

(defun gemini-companion-ediff--restore (windows)
  "Lay the frame of WINDOWS out as it was.
A terminal has written on meanwhile, and its windows follow it."
  (pcase-let* ((`(,configuration ,histories ,following) windows)
               (frame (window-configuration-frame configuration)))
    (when (frame-live-p frame)
      (set-window-configuration configuration
                                (not (eq frame (selected-frame))))
      (pcase-dolist (`(,window ,previous ,next) histories)
        (when (window-live-p window)
          (set-window-prev-buffers window previous)
          (set-window-next-buffers window next)))
      (dolist (window (seq-filter #'window-live-p following))
        (set-window-point window
                          (with-current-buffer (window-buffer window)
                            (point)))))))

(defvar gemini-companion-ediff--left nil
  "Layouts to restore when the person comes back to their tab.
An alist of a window of a review that ended meanwhile, and what
`gemini-companion-ediff--windows' returned.")

(defun gemini-companion-ediff--restore-later (panel frame windows)
  "Restore WINDOWS when the windows of PANEL are on FRAME again.
The person may have moved to another tab."
  (when-let* ((window (and (buffer-live-p panel)
                           (frame-live-p frame)
                           (cdr (frame-parameter frame 'tabs))
                           (buffer-local-value 'ediff-window-B panel))))
    (push (cons window windows) gemini-companion-ediff--left)
    (add-hook 'window-configuration-change-hook
              #'gemini-companion-ediff--restore-left)))

(defun gemini-companion-ediff--restore-left ()
  "Restore the layout of a tab that the person has come back to."
  (when-let* ((left (seq-find (lambda (left) (window-live-p (car left)))
                              gemini-companion-ediff--left)))
    (setq gemini-companion-ediff--left
          (delq left gemini-companion-ediff--left))
    (gemini-companion-ediff--restore (cdr left))
    (unless gemini-companion-ediff--left
      (gemini-companion-ediff-forget))))

(defun gemini-companion-ediff-forget ()
  "Forget the layouts of tabs that the person has not come back to."
  (setq gemini-companion-ediff--left nil)
  (remove-hook 'window-configuration-change-hook
               #'gemini-companion-ediff--restore-left))

(provide 'gemini-companion-ediff)
;;; gemini-companion-ediff.el ends here
