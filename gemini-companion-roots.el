;;; gemini-companion-roots.el --- Workspace roots  -*- lexical-binding: t; -*-

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

(require 'gemini-companion-privacy)
(require 'seq)
(require 'subr-x)

(declare-function project-root "project")

(defcustom gemini-companion-roots-function #'identity
  "Function that has the last word on the roots of this Emacs.
It is called with the list of roots that were found, and returns
the list that is used: absolute names of local folders.  Gemini
CLI connects to this Emacs if it runs in one of them or below.
If it fails, there are no roots, and `gemini-companion-status' says
so."
  :type 'function
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-sharing)

(defcustom gemini-companion-share-outside-projects nil
  "Non-nil means to share files that are outside all roots, too.
The roots are the projects of the open files and terminals, and the
folders of files in no project.  Outside are files right in the home
folder, and those below what `gemini-companion-roots-function' took
away."
  :type 'boolean
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-sharing)

(defconst gemini-companion-roots--terminal-modes
  '(vterm-mode eat-mode term-mode eshell-mode shell-mode
    shell-command-mode compilation-mode)
  "Major modes of buffers in which a person may run Gemini CLI.")

(defconst gemini-companion-roots--passing-modes
  '(compilation-mode shell-command-mode)
  "Those of them that count while something runs there only.
They show results, too, such as what Emacs says when it compiles a
package, in a folder that nobody works in.")

(defvar gemini-companion-roots--known (make-hash-table :test #'equal)
  "Places of directories, and, for the key t, the roots.
It is for `gemini-companion-privacy-cached'.")

(defvar gemini-companion-roots--last nil
  "The roots that were computed last.")

(defvar gemini-companion-roots-problem nil
  "Why `gemini-companion-roots-function' failed last, a string, or nil.")

;;;; Roots

(defun gemini-companion-roots (directory)
  "Return the roots of this Emacs, a list of true names of directories.
They are the projects of the open files and of the terminals, the
one used last first, and that of DIRECTORY.  What belongs to no
project counts with its own directory.  The home directory and the
root of the file system are never among them, nor is what is hidden."
  (let ((directories (gemini-companion-roots--directories directory)))
    (setq gemini-companion-roots--last
          (gemini-companion-privacy-cached
           gemini-companion-roots--known t directories
           (lambda ()
             (gemini-companion-roots--chosen
              (seq-remove
               #'gemini-companion-privacy-folder-hidden-p
               (seq-uniq
                (delq nil (mapcar (lambda (directory)
                                    (cdr (gemini-companion-roots--place
                                          directory)))
                                  directories))))))))))

(defun gemini-companion-roots--chosen (roots)
  "Return the true names of those that the function picks from ROOTS.
Nothing if that fails, as it may be there to take roots away."
  (setq gemini-companion-roots-problem nil)
  (condition-case problem
      (delete-dups
       (mapcar (lambda (root)
                 (unless (file-name-absolute-p root)
                   (error "%s is no absolute name" root))
                 (if (file-remote-p root)
                     (error "%s is on another machine" root)
                   (directory-file-name (file-truename root))))
               (funcall gemini-companion-roots-function roots)))
    (error
     (setq gemini-companion-roots-problem (error-message-string problem))
     nil)))

(defun gemini-companion-roots-last ()
  "Return the roots that were computed last."
  gemini-companion-roots--last)

(defun gemini-companion-roots-of (directory)
  "Return the roots for a CLI in the local DIRECTORY.
Those that were computed last and have DIRECTORY in them, else that
of its project: a root may go while the CLI is connected."
  (unless (file-remote-p directory)
    (or (seq-filter (lambda (root)
                      (gemini-companion-roots-in-p
                       (file-name-as-directory directory) root))
                    gemini-companion-roots--last)
        (delq nil (list (cdr (gemini-companion-roots--place directory)))))))

(defun gemini-companion-roots-in-p (name root)
  "Return non-nil if the file NAME, or directory NAME/, is in ROOT."
  (string-prefix-p (file-name-as-directory root) name))

(defun gemini-companion-roots-forget ()
  "Forget what was computed."
  (clrhash gemini-companion-roots--known)
  (setq gemini-companion-roots--last nil
        gemini-companion-roots-problem nil))

(defun gemini-companion-roots-look-again (directory)
  "Look up DIRECTORY again, as a project may have been made of it."
  (remhash directory gemini-companion-roots--known)
  (remhash t gemini-companion-roots--known))

(defun gemini-companion-roots--directories (directory)
  "Return the directories of all file and terminal buffers, and DIRECTORY.
Leave out what is hidden."
  (let (found)
    (dolist (buffer (buffer-list))
      (when-let* ((directory (gemini-companion-roots--buffer-directory buffer)))
        (unless (equal directory (car found))
          (push directory found))))
    (delete-dups
     (nconc (nreverse found)
            (and directory
                 (gemini-companion-roots--shared-p directory)
                 (list directory))))))

(defun gemini-companion-roots--terminal-p (buffer)
  "Return non-nil if a person may run Gemini CLI in BUFFER."
  (let ((mode (buffer-local-value 'major-mode buffer)))
    (and (apply #'provided-mode-derived-p mode
                gemini-companion-roots--terminal-modes)
         ;; Emacs compiles Lisp in the background wherever it is started.
         (not (provided-mode-derived-p mode 'emacs-lisp-compilation-mode))
         (or (get-buffer-process buffer)
             (not (apply #'provided-mode-derived-p mode
                         gemini-companion-roots--passing-modes))))))

(defun gemini-companion-roots--buffer-directory (buffer)
  "Return the local directory that BUFFER works in, or nil if it is hidden."
  (if-let* ((file (buffer-file-name buffer)))
      (unless (gemini-companion-privacy-hidden-p buffer)
        (file-name-directory file))
    (when (gemini-companion-roots--terminal-p buffer)
      (let ((directory (buffer-local-value 'default-directory buffer)))
        (and directory
             (gemini-companion-roots--shared-p directory)
             directory)))))

(defun gemini-companion-roots--shared-p (directory)
  "Return non-nil if DIRECTORY is local and not hidden."
  (not (or (file-remote-p directory)
           (gemini-companion-privacy-folder-hidden-p directory))))

(defun gemini-companion-roots--place (directory)
  "Return (PLACE . TRUE-NAME) for DIRECTORY.
PLACE is the root of the project that DIRECTORY is in, or DIRECTORY
itself, and TRUE-NAME that of PLACE; both are nil for a directory
that cannot be a root."
  (gemini-companion-privacy-cached
   gemini-companion-roots--known directory nil
   (lambda ()
     (or (seq-find
          (lambda (place) (gemini-companion-roots--allowed-p (cdr place)))
          (mapcar (lambda (directory)
                    (cons (file-name-as-directory (expand-file-name directory))
                          (directory-file-name (file-truename directory))))
                  (delq nil (list (gemini-companion-roots--project directory)
                                  directory))))
         (list nil)))))

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

;;;; Names

(defun gemini-companion-roots-name (file)
  "Return the name of FILE as a Gemini CLI in one of the roots sees it.
That is below the true name of the root, as the CLI has it of its
own folder, and below that as the person visits FILE.  Return nil if
FILE is in none of the roots that were computed last."
  (or (gemini-companion-roots--inside (gemini-companion-roots--placed file))
      (gemini-companion-roots--inside (file-truename file))))

(defun gemini-companion-roots--placed (file)
  "Return the name of FILE below the true name of its place, or nil."
  (pcase-let ((`(,place . ,true-name)
               (gemini-companion-roots--place (file-name-directory file)))
              (file (expand-file-name file)))
    (when (and place (string-prefix-p place file))
      (concat (file-name-as-directory true-name)
              (substring file (length place))))))

(defun gemini-companion-roots--inside (name)
  "Return NAME if it is in one of the roots computed last, else nil."
  (and name
       (seq-some (lambda (root) (gemini-companion-roots-in-p name root))
                 gemini-companion-roots--last)
       name))

(provide 'gemini-companion-roots)
;;; gemini-companion-roots.el ends here
