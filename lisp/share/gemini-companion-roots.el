;;; gemini-companion-roots.el --- The workspace roots  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A CLI connects to this Emacs if it runs in one of the workspace roots or below.
;; They are the projects of the open files and of the terminals.

;;; Code:

(require 'gemini-companion-cache)
(require 'gemini-companion-clients)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-privacy)
(require 'gemini-companion-server)
(require 'gemini-companion-text)
(require 'map)

(declare-function project-root "project")

;;;; State

(defvar gemini-companion-roots-last nil
  "The last computed roots, as in `gemini-companion-roots'.
Only `gemini-companion-roots-update' and `-forget' set this.")

(defun gemini-companion-roots-update (directory)
  "Compute the workspace roots again, with DIRECTORY, and return them."
  (setq gemini-companion-roots-last (gemini-companion-roots directory)))

(defun gemini-companion-roots-forget ()
  "Forget the last computed roots, as the mode is turned off."
  (setq gemini-companion-roots-last nil))

;;;; Computation

(defun gemini-companion-roots (directory)
  "Return the workspace roots, a list of true names of directories.
They are the projects of the open files and of the terminals, and the
project of DIRECTORY, which may be nil.  In place of a project that does
not exist, the directory itself is used.  The home directory, the root of
the file system and directories that are not shared are never among them.
Two such names are /home/me/src/web and /srv/notes, without a slash at the
end."
  (cl-loop for directory in (delete-dups
                             `(,@(mapcar #'gemini-companion-roots--of-buffer
                                         (buffer-list))
                               ,directory))
           for root = (and directory
                           ;; Tramp would search for a project.
                           (not (file-remote-p directory))
                           (not (gemini-companion-privacy-directory-hidden-p
                                 directory))
                           (cdr (gemini-companion-roots--root directory)))
           unless (or (null root)
                      (member root roots)
                      (gemini-companion-privacy-directory-hidden-p root))
           collect root into roots
           finally return roots))

;;;; Questions

(defun gemini-companion-roots-outermost (name &optional session)
  "Return a list of the outermost root above NAME, and OWN.
NAME is a true name; that of a directory ends with a slash.  Roots of the
CLI of SESSION come first, and OWN is non-nil if the root is one of them."
  (pcase-let* (((map :directory :remote) session)
               (outermost (lambda (roots)
                            (car (seq-sort-by #'length #'<
                                              (gemini-companion-roots--above
                                               name roots)))))
               (own (funcall
                     outermost
                     (cond (remote (gemini-companion-names-roots remote))
                           ((or (null directory) (file-remote-p directory)) nil)
                           ((gemini-companion-roots--above
                             (file-name-as-directory directory)
                             gemini-companion-roots-last))
                           ;; A root may be dropped while the CLI is connected.
                           (t (ensure-list (cdr (gemini-companion-roots--root
                                                 directory))))))))
    (list (or own (funcall outermost (gemini-companion-roots-all)))
          own)))

(defun gemini-companion-roots-innermost (name &optional session)
  "Return the innermost root above NAME, a true name, or nil.
A root of the CLI of SESSION counts although it may have been dropped."
  (car (seq-sort-by #'length #'>
                    (gemini-companion-roots--above
                     name
                     (append (remq nil (gemini-companion-roots-outermost
                                        name session))
                             (gemini-companion-roots-all))))))

(defun gemini-companion-roots--above (name roots)
  "Return the ROOTS that contain NAME; all are true names.
If NAME is a directory, it ends with a slash."
  (seq-filter (apply-partially #'gemini-companion-text-in-directory-p name)
              roots))

(defun gemini-companion-roots-all ()
  "Return the last computed roots, and the copies of roots of remote hosts."
  (append gemini-companion-roots-last (gemini-companion-names-roots nil)))

(defun gemini-companion-roots--of-buffer (buffer)
  "Return the directory that BUFFER contributes to the roots, or nil.
It is that of its file, if that may be shared, or of a terminal."
  (if-let* ((file (gemini-companion-text-visited buffer)))
      (unless (gemini-companion-privacy-hidden-p buffer)
        (file-name-directory file))
    (and (gemini-companion-roots-terminal-p buffer)
         (buffer-local-value 'default-directory buffer))))

(defun gemini-companion-roots-terminal-p (buffer)
  "Return non-nil if BUFFER is a terminal."
  (seq-some (apply-partially #'provided-mode-derived-p
                             (buffer-local-value 'major-mode buffer))
            '(vterm-mode eat-mode term-mode eshell-mode shell-mode)))

(defun gemini-companion-roots--root (directory)
  "Return (PLACE . TRUE-NAME) for DIRECTORY, or nil if it cannot be a root.
PLACE is the root of the project of DIRECTORY, or else DIRECTORY
itself, and TRUE-NAME is the true name of PLACE."
  (gemini-companion-cache-get
   (list 'root-of directory)
   (lambda ()
     (cl-loop
      for place in (list
                    ;; A user's function in `project-find-functions' may fail.
                    (ignore-errors
                      (when-let* ((project (project-current nil directory)))
                        (project-root project)))
                    directory)
      for root = (and place (directory-file-name (file-truename place)))
      when (and root
                (file-directory-p root)
                (not (seq-some (apply-partially #'file-equal-p root)
                               '("~" "/"))))
      return (cons (file-name-as-directory (expand-file-name place)) root)))))

(defun gemini-companion-roots-name (file)
  "Return the name of FILE for a CLI in one of the roots.
It begins with the true name of the root, which the CLI uses for its
own directory, and continues as FILE is visited.  Return nil if FILE
is in none of the last computed roots."
  (pcase-let* ((`(,root . ,true-name)
                (gemini-companion-roots--root (file-name-directory file)))
               (file (expand-file-name file))
               (roots (gemini-companion-roots-all))
               (name (and root
                          (string-prefix-p root file)
                          (concat (file-name-as-directory true-name)
                                  (substring file (length root))))))
    (cl-flet ((in-root (name)
                (and name (gemini-companion-roots--above name roots) name)))
      ;; To compare with many roots, or to follow the links, takes ten times as
      ;; long as the rest.
      (or (and (member true-name roots) name)
          (in-root name)
          (in-root (file-truename file))))))

;;;; Status

(defun gemini-companion-roots-finding (directory)
  "Return the finding about whether a CLI in DIRECTORY may connect.
Return nil without a server, and for a remote DIRECTORY of a host that is
connected.  For findings, see `gemini-companion-status-checks'."
  (cond
   ((null (gemini-companion-server-info)) nil)
   ;; Emacs 28 asks the remote host to abbreviate.
   ((file-remote-p directory)
    (unless (gemini-companion-names-connected-p (file-remote-p directory))
      `(note ,(format "%s, the host of this directory, is not connected"
                      (gemini-companion-names-title (file-remote-p directory)))
             ,(substitute-command-keys
               "Type \\[gemini-companion-run] in a buffer of that host."))))
   ((and (not (member (file-name-as-directory directory)
                      (list (expand-file-name "~/") "/")))
         (car (gemini-companion-roots-outermost
               (file-name-as-directory (file-truename directory)))))
    `(good ,(format "A CLI may connect from %s"
                    (abbreviate-file-name directory))))
   ((gemini-companion-privacy-directory-hidden-p directory)
    `(bad ,(format "%s is excluded from sharing, so no CLI can connect \
from there" (gemini-companion-names-absolute directory))
          "See `gemini-companion-excluded', and `gemini-companion-share' in \
its .dir-locals.el."))
   (t
    `(bad ,(format "%s is in none of the workspace roots, so no CLI can \
connect from there" (gemini-companion-names-absolute directory))
          ,(format "Start it in a project, or open a file of that project, then \
type %s.  The home directory and / are never roots."
                   (gemini-companion-clients-search))))))

;;;; Life

(cl-defmethod gemini-companion-part-findings ((_part (eql 'roots)) directory)
  "Return the finding about whether a CLI in DIRECTORY may connect."
  (when-let* ((finding (gemini-companion-roots-finding directory)))
    (list (cons "Project" finding))))

(provide 'gemini-companion-roots)
;;; gemini-companion-roots.el ends here
