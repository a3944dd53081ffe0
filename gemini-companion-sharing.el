;;; gemini-companion-sharing.el --- What the server is told of this Emacs  -*- lexical-binding: t; -*-

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

;; What the person works on goes to the server: the roots always, the context
;; while a CLI is connected and nothing is paused, and neither twice.  Here
;; what -context sees and -roots finds meets what -privacy hides.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-context)
(require 'gemini-companion-events)
(require 'gemini-companion-privacy)
(require 'gemini-companion-roots)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'seq)

;;;; State

(defvar gemini-companion-sharing--directory nil
  "Folder in which the mode was turned on.")

(defvar gemini-companion-sharing--told nil
  "Alist of (METHOD . VALUE), what the server was told last.")

(defvar gemini-companion-sharing--kept nil
  "Buffer of the file that the person is in if that is not told, or nil.")

(defvar gemini-companion-paused nil
  "Non-nil while Gemini CLI is told nothing of what you work on.
Set by `gemini-companion-pause'.")

;;;; What is told

(defun gemini-companion-sharing-roots ()
  "Return the workspace roots of this Emacs."
  (gemini-companion-roots gemini-companion-sharing--directory))

(defun gemini-companion-sharing-tell ()
  "Tell the server the roots and, if a CLI is connected, the context."
  (when (gemini-companion-server-ready-p)
    (gemini-companion-sharing--tell 'roots-update
                                    (gemini-companion-sharing-roots))
    (when (gemini-companion-sessions)
      (gemini-companion-sharing--tell 'context-update
                                      (unless gemini-companion-paused
                                        (gemini-companion-context-snapshot)))
      (gemini-companion-sharing--note-kept))))

(defun gemini-companion-sharing-look-again ()
  "Send the server what has changed since the last time, read from disk."
  (gemini-companion-privacy-refresh)
  (gemini-companion-sharing-tell))

(defun gemini-companion-shared ()
  "Return what Gemini CLI was told last, as of now, or nil.
A list of plists, as `gemini-companion-context-snapshot' returns it.
Nil while no CLI is connected or sharing is paused."
  (and (gemini-companion-sessions)
       (alist-get 'context-update gemini-companion-sharing--told)))

(defun gemini-companion-sharing-active ()
  "Return the entry of the active file in what was told last, or nil."
  (seq-find (lambda (file) (plist-get file :active)) (gemini-companion-shared)))

(defun gemini-companion-sharing-kept-p (buffer)
  "Return non-nil if the person is in the file of BUFFER, which is not told.
Nil while no file is told at all."
  (and gemini-companion-sharing--kept
       (eq buffer gemini-companion-sharing--kept)))

(defun gemini-companion-sharing--note-kept ()
  "Note whether the person is in a file that is not told.
The mode line says so."
  (let ((kept (and (not gemini-companion-paused)
                   (not (gemini-companion-sharing-active))
                   (gemini-companion-context-active))))
    (unless (eq kept gemini-companion-sharing--kept)
      (setq gemini-companion-sharing--kept kept)
      (force-mode-line-update t))))

(defun gemini-companion-sharing--tell (method value)
  "Tell the server VALUE by METHOD unless that is what it was told last."
  (let ((last (assq method gemini-companion-sharing--told)))
    (unless (and last (equal (cdr last) value))
      (setf (alist-get method gemini-companion-sharing--told) value)
      (gemini-companion-server-post method value))))

;;;; Life

(defun gemini-companion-idle-p ()
  "Return non-nil if the server has the current state of Emacs.
Nothing is scheduled to be sent, and all that was sent is answered."
  (and (gemini-companion-context-idle-p)
       (gemini-companion-server-idle-p)))

(defconst gemini-companion-sharing--hooks
  '((find-file-hook . gemini-companion-sharing--note-file)
    (after-save-hook . gemini-companion-sharing--note-file)
    (after-revert-hook . gemini-companion-sharing--note-file)
    (gemini-companion-context-changed-hook . gemini-companion-sharing-tell)
    (gemini-companion-session-changed-functions
     . gemini-companion-sharing--sessions-changed))
  "What is added to which hook while the mode is on.")

(defconst gemini-companion-sharing--options
  '(gemini-companion-excluded
    gemini-companion-share
    gemini-companion-share-function
    gemini-companion-share-outside-projects
    gemini-companion-respect-geminiignore
    gemini-companion-roots-function)
  "The options on which it depends what is shared.")

(defun gemini-companion-sharing--note-option (&rest _)
  "Share what the options say now."
  (gemini-companion-privacy-refresh)
  (gemini-companion-context-changed))

(defun gemini-companion-sharing--note-file ()
  "Note that the file of the current buffer was opened, saved or reverted.
An error must not keep other functions from being called then."
  (gemini-companion-events-guarded 'sharing
    (when buffer-file-name
      (if (member (file-name-nondirectory buffer-file-name)
                  (append (gemini-companion-clients-all :ignore-files)
                          '(".dir-locals.el" ".dir-locals-2.el")))
          (gemini-companion-privacy-refresh)
        (gemini-companion-roots-look-again (file-name-directory
                                            buffer-file-name))))))

(defun gemini-companion-sharing-set-directory (directory)
  "Note that the mode is being turned on in DIRECTORY, which counts as root."
  (setq gemini-companion-sharing--directory directory))

(defun gemini-companion-sharing-ready (_how)
  "Send the server, which is a new one, what it is to know."
  (setq gemini-companion-sharing--told nil)
  (gemini-companion-sharing-look-again))

(defun gemini-companion-sharing--sessions-changed (previous)
  "Send the context to CLIs that were not among the PREVIOUS sessions."
  (let ((sessions (gemini-companion-sessions)))
    (cond ((null sessions)
           ;; The next one must not begin with what is old by then.
           (gemini-companion-sharing-withdraw))
          ;; A CLI looks at its directory when it starts, too.
          ((seq-difference sessions previous #'gemini-companion-session-same-p)
           (gemini-companion-sharing-look-again))
          (t (gemini-companion-sharing-tell)))))

(defun gemini-companion-sharing-lighter ()
  "Return the text and tooltip of sharing for the mode line, or nil."
  (let ((help (gemini-companion-sharing--help)))
    (cond (gemini-companion-paused (cons " paused" help))
          ((gemini-companion-sharing-kept-p (current-buffer))
           (cons " hidden" help))
          (help (cons "" help)))))

(defun gemini-companion-sharing--help ()
  "Return a line about what is shared with the connected CLIs, or nil."
  (when (gemini-companion-sessions)
    (let* ((files (gemini-companion-shared))
           (active (gemini-companion-sharing-active))
           (others (length (remq active files)))
           (selected (length (plist-get active :selected-text))))
      (concat "Shared: "
              (cond (active
                     (file-name-nondirectory (plist-get active :path)))
                    (gemini-companion-paused "nothing, sharing is paused")
                    (files "no active file")
                    (t "nothing"))
              (if (zerop selected)
                  ""
                (format ", %d characters selected" selected))
              (cond ((zerop others) "")
                    ((= 1 others) ", one open file")
                    (t (format ", %d open files" others)))))))

(defun gemini-companion-sharing-withdraw ()
  "Take the context back: no CLI is there any more."
  (setq gemini-companion-sharing--kept nil)
  (gemini-companion-sharing--tell 'context-update nil))

(defun gemini-companion-sharing-start ()
  "Tell the server what is new from now on."
  (gemini-companion-privacy-refresh)
  (gemini-companion-context-start)
  (pcase-dolist (`(,hook . ,function) gemini-companion-sharing--hooks)
    (add-hook hook function))
  (dolist (option gemini-companion-sharing--options)
    (add-variable-watcher option #'gemini-companion-sharing--note-option)))

(defun gemini-companion-sharing-stop ()
  "Tell nothing any more, and forget what was told."
  (pcase-dolist (`(,hook . ,function) gemini-companion-sharing--hooks)
    (remove-hook hook function))
  (dolist (option gemini-companion-sharing--options)
    (remove-variable-watcher option #'gemini-companion-sharing--note-option))
  (gemini-companion-context-stop)
  (gemini-companion-roots-forget)
  (gemini-companion-privacy-forget)
  (setq gemini-companion-sharing--told nil
        gemini-companion-sharing--kept nil
        gemini-companion-sharing--directory nil))

;;;; Command

;;;###autoload
(defun gemini-companion-pause ()
  "Tell Gemini CLI nothing of what you work on, or go on to tell it.
It learns at once that no file is open.  It stays connected, and
reviews appear as before."
  (interactive)
  (setq gemini-companion-paused (not gemini-companion-paused))
  (gemini-companion-sharing-look-again)
  (force-mode-line-update t)
  (message (if gemini-companion-paused
               "Gemini CLI is told nothing until you type M-x gemini-companion-pause again"
             "Gemini CLI is told again what you work on")))

(provide 'gemini-companion-sharing)
;;; gemini-companion-sharing.el ends here
