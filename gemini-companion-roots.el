;;; gemini-companion-roots.el --- Workspace roots  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The workspace roots: a CLI connects to this Emacs if it runs in one of
;; them or below.  They are the projects of the open files and of the terminals.

;;; Code:

(require 'gemini-companion-place)
(require 'gemini-companion-privacy)
(require 'gemini-companion-text)

(declare-function project-root "project")

(defvar gemini-companion-roots-last nil
  "The last computed roots.")

;;;; Roots

(defun gemini-companion-roots (directory)
  "Return the workspace roots, a list of true names of directories.
They are the projects of the open files and of the terminals, and the
project of DIRECTORY.  In place of a project that does not exist, the
directory itself is used.  The home directory, the root of the file
system and directories that are not shared are never among them."
  (setq gemini-companion-roots-last
        (seq-remove
         #'gemini-companion-privacy-directory-hidden-p
         (delete-dups
          (delq nil
                (mapcar
                 (lambda (directory)
                   ;; Tramp would search for a project.
                   (unless (or (null directory)
                               (file-remote-p directory)
                               (gemini-companion-privacy-directory-hidden-p
                                directory))
                     (cdr (gemini-companion-roots--place directory))))
                 (delete-dups
                  `(,@(mapcar #'gemini-companion-roots--of-buffer (buffer-list))
                    ,directory))))))))

(defun gemini-companion-roots-of (directory)
  "Return the roots for a CLI in the local DIRECTORY.
They are the last computed roots that contain DIRECTORY.  If there
are none, as a root may be dropped while the CLI is connected, it is
the root of its project."
  (unless (file-remote-p directory)
    (or (gemini-companion-roots-above (file-name-as-directory directory)
                                      gemini-companion-roots-last)
        (delq nil (list (cdr (gemini-companion-roots--place directory)))))))

(defun gemini-companion-roots-above (name roots)
  "Return the ROOTS that contain NAME; all are true names.
If NAME is a directory, it ends with a slash."
  (seq-filter (apply-partially #'gemini-companion-text-in-directory-p name)
              roots))

(defun gemini-companion-roots-all ()
  "Return the last computed roots, and the copies of roots of remote places."
  (append gemini-companion-roots-last (gemini-companion-place-roots)))

(defun gemini-companion-roots--of-buffer (buffer)
  "Return the directory of BUFFER, a shared file or a terminal, or nil."
  (if-let* ((file (buffer-file-name buffer)))
      (unless (gemini-companion-privacy-hidden-p buffer)
        (file-name-directory file))
    (and (gemini-companion-roots-terminal-p buffer)
         (buffer-local-value 'default-directory buffer))))

(defun gemini-companion-roots-terminal-p (buffer)
  "Return non-nil if BUFFER is a terminal."
  (seq-some (apply-partially #'provided-mode-derived-p
                             (buffer-local-value 'major-mode buffer))
            '(vterm-mode eat-mode term-mode eshell-mode shell-mode)))

(defun gemini-companion-roots--place (directory)
  "Return (PLACE . TRUE-NAME) for DIRECTORY, or nil if it cannot be a root.
PLACE is the root of the project of DIRECTORY, or else DIRECTORY
itself, and TRUE-NAME is the true name of PLACE."
  (gemini-companion-privacy-cached
   (list 'place directory)
   (lambda ()
     (seq-find
      (pcase-lambda (`(,_ . ,root))
        (and (file-directory-p root)
             (not (seq-some (apply-partially #'file-equal-p root) '("~" "/")))))
      (mapcar (lambda (directory)
                (cons (file-name-as-directory (expand-file-name directory))
                      (directory-file-name (file-truename directory))))
              (delq nil
                    (list
                     ;; A user's function in `project-find-functions' may fail.
                     (ignore-errors
                       (when-let* ((project (project-current nil directory)))
                         (project-root project)))
                     directory)))))))

;;;; Names

(defun gemini-companion-roots-name (file)
  "Return the name of FILE for a CLI in one of the roots.
It begins with the true name of the root, which the CLI uses for its
own directory, and continues as FILE is visited.  Return nil if FILE
is in none of the last computed roots."
  (pcase-let* ((`(,place . ,true-name)
                (gemini-companion-roots--place (file-name-directory file)))
               (file (expand-file-name file))
               (inside (lambda (name)
                         (and (gemini-companion-roots-above
                               name (gemini-companion-roots-all))
                              name))))
    (or (and place
             (string-prefix-p place file)
             (let ((name (concat (file-name-as-directory true-name)
                                 (substring file (length place)))))
               (if (member true-name gemini-companion-roots-last)
                   name
                 (funcall inside name))))
        (funcall inside (file-truename file)))))

(provide 'gemini-companion-roots)
;;; gemini-companion-roots.el ends here
