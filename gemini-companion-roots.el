;;; gemini-companion-roots.el --- Folders that Gemini CLI may connect from  -*- lexical-binding: t; -*-

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

;; Gemini CLI connects to this Emacs if it runs in one of its roots or below:
;; the projects of the open files and of the terminals.  Only computes; when
;; to do so and what for is the entry's matter.

;;; Code:

(require 'project)
(require 'seq)

(defcustom gemini-companion-roots-function #'identity
  "Function that has the last word on the roots of this Emacs.
It is called with the list of roots that were found, and returns
the list that is used: absolute names of local folders.  Gemini
CLI connects to this Emacs if it runs in one of them or below."
  :type 'function
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

(defconst gemini-companion-roots--terminal-modes
  '(vterm-mode eat-mode term-mode eshell-mode shell-mode
    shell-command-mode compilation-mode)
  "Major modes of buffers in which a person may run Gemini CLI.")

(defvar gemini-companion-roots--directories nil
  "The folders from which the roots were computed last.")

(defvar gemini-companion-roots--known nil
  "Alist of (DIRECTORY . ROOT) for those folders.")

(defvar gemini-companion-roots--last nil
  "The roots that were computed last.")

(defun gemini-companion-roots (directory)
  "Return the roots of this Emacs, a list of true names of folders.
They are the projects of the open files and of the terminals, the
one used last first, and that of DIRECTORY.  What belongs to no
project counts with its own folder.  The home folder and the root
of the file system are never among them."
  (let ((directories (gemini-companion-roots--directories directory)))
    (unless (equal directories gemini-companion-roots--directories)
      (setq gemini-companion-roots--directories directories
            gemini-companion-roots--known
            (mapcar #'gemini-companion-roots--entry directories)
            gemini-companion-roots--last
            (funcall gemini-companion-roots-function
                     (delete-dups
                      (delq nil (mapcar #'cdr
                                        gemini-companion-roots--known))))))
    gemini-companion-roots--last))

(defun gemini-companion-roots--entry (directory)
  "Return a cons of DIRECTORY and its root, looked up once."
  (or (assoc directory gemini-companion-roots--known)
      (cons directory (gemini-companion-roots--root directory))))

(defun gemini-companion-roots-forget ()
  "Forget what was computed."
  (setq gemini-companion-roots--directories nil
        gemini-companion-roots--known nil
        gemini-companion-roots--last nil))

(defun gemini-companion-roots--directories (directory)
  "Return the folders of all file and terminal buffers, and DIRECTORY."
  (delete-dups
   (delq nil
         (append (mapcar #'gemini-companion-roots--buffer-directory
                         (buffer-list))
                 (and directory
                      (not (file-remote-p directory))
                      (list directory))))))

(defun gemini-companion-roots--buffer-directory (buffer)
  "Return the local folder that BUFFER works in, or nil."
  (with-current-buffer buffer
    (let ((directory
           (cond (buffer-file-name (file-name-directory buffer-file-name))
                 ((apply #'derived-mode-p gemini-companion-roots--terminal-modes)
                  default-directory))))
      (and directory
           (not (file-remote-p directory))
           directory))))

(defun gemini-companion-roots--root (directory)
  "Return the root that DIRECTORY belongs to, as a true name, or nil."
  (seq-find #'gemini-companion-roots--allowed-p
            (mapcar (lambda (folder)
                      (directory-file-name (file-truename folder)))
                    (delq nil (list (gemini-companion-roots--project directory)
                                    directory)))))

(defun gemini-companion-roots--project (directory)
  "Return the root of the project that DIRECTORY is in, or nil."
  ;; People add functions of their own to `project-find-functions'.
  (condition-case nil
      (when-let* ((project (project-current nil directory)))
        (project-root project))
    (error nil)))

(defun gemini-companion-roots--allowed-p (root)
  "Return non-nil if ROOT is a folder that may be told to Gemini CLI."
  (and (not (file-remote-p root))
       (file-directory-p root)
       (not (string= root (directory-file-name (file-truename "~"))))
       (not (string= root (directory-file-name (file-truename "/"))))))

(provide 'gemini-companion-roots)
;;; gemini-companion-roots.el ends here
