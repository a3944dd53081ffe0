;;; gemini-companion-roots.el --- The workspace roots  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A CLI can connect to this Emacs if it runs in a workspace root, or below one.  The
;; workspace roots are the projects of the open files and of the terminals.

;;; Code:

(require 'gemini-companion-cache)
(require 'gemini-companion-clients)
(require 'gemini-companion-commands)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-privacy)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-text)

(declare-function project-root "project")

;;;; State

(defvar gemini-companion-roots-last nil
  "The last computed roots, as in `gemini-companion-roots'.
Only `gemini-companion-roots-update' and `-forget' set this.")

(defun gemini-companion-roots-update (directory)
  "Compute the workspace roots again, with DIRECTORY, and return them."
  (setq gemini-companion-roots-last (gemini-companion-roots directory)))

(defun gemini-companion-roots-forget ()
  "Reset the last computed roots."
  (setq gemini-companion-roots-last nil))

;;;; Computation

(defun gemini-companion-roots (directory)
  "Return the workspace roots, a list of true names of directories.
They are the projects of the open files, of the terminals, and of DIRECTORY,
which may be nil.  A directory that is in no project is itself a root.  The
home directory, the root of the file system and directories that are not
shared are never roots.  Examples are /home/me/src/web and /srv/notes; a root
has no slash at its end."
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

;;;; Roots above a file

(defun gemini-companion-roots-outermost (name &optional session)
  "Return (ROOT IN-SESSION): the outermost root above NAME, or nil.
NAME is a true name; the name of a directory ends with a slash.  Prefer the
roots of the CLI of SESSION; IN-SESSION is non-nil if ROOT is one of them."
  (pcase-let* (((or 'nil (cl-struct gemini-companion-session directory remote))
                session)
               (outermost (lambda (roots)
                            (car (seq-sort-by #'length #'<
                                              (gemini-companion-roots--above
                                               name roots)))))
               (of-session
                (funcall
                 outermost
                 (cond (remote (gemini-companion-names-roots remote))
                       ((or (null directory) (file-remote-p directory)) nil)
                       ((gemini-companion-roots--above
                         (file-name-as-directory directory)
                         gemini-companion-roots-last))
                       ;; A root may be removed while the CLI is connected.
                       (t (ensure-list (cdr (gemini-companion-roots--root
                                             directory))))))))
    (list (or of-session (funcall outermost (gemini-companion-roots-all)))
          of-session)))

(defun gemini-companion-roots-innermost (name &optional session)
  "Return the innermost root above NAME, a true name, or nil.
Consider the root of the CLI of SESSION even if it was removed meanwhile."
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
It is the directory of a file that may be shared, or of a terminal."
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
  "Return (NAME . TRUE-NAME) of the root of DIRECTORY, or nil.
NAME is the root of the project of DIRECTORY, or DIRECTORY if it is in none.
Return nil if DIRECTORY cannot be in a root."
  (gemini-companion-cache-get
   (list 'root-of directory)
   (lambda ()
     (cl-loop
      for name in (list
                   ;; A user's function in `project-find-functions' may fail.
                   (ignore-errors
                     (when-let* ((project (project-current nil directory)))
                       (project-root project)))
                   directory)
      for root = (and name (directory-file-name (file-truename name)))
      when (and root
                (file-directory-p root)
                (not (seq-some (apply-partially #'file-equal-p root)
                               '("~" "/"))))
      return (cons (file-name-as-directory (expand-file-name name)) root)))))

(defun gemini-companion-roots-name (file)
  "Return the name of FILE for a CLI in one of the roots, or nil.
The name begins with the true name of the root, since a CLI uses true names of
directories; the rest is as Emacs visits FILE.  Return nil if FILE is in none
of the last computed roots."
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
      ;; The first test is fast; comparing with all roots, or following links, takes
      ;; ten times as long.
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
             ,(gemini-companion-commands-hint
               'gemini-companion-run "Type %s in a buffer of that host."))))
   ((not (file-directory-p directory))
    `(bad ,(format "%s does not exist" (gemini-companion-names-absolute directory))
          "Go to a buffer of another directory."))
   ((and (not (member (file-name-as-directory directory)
                      (list (expand-file-name "~/") "/")))
         (car (gemini-companion-roots-outermost
               (file-name-as-directory (file-truename directory)))))
    `(good ,(format "A CLI may connect from %s"
                    (gemini-companion-names-absolute directory))))
   ((gemini-companion-privacy-directory-hidden-p directory)
    `(bad ,(format "%s is excluded from sharing, so no CLI can connect \
from there" (gemini-companion-names-absolute directory))
          "See `gemini-companion-excluded', and `gemini-companion-share' in \
its .dir-locals.el."))
   (t
    `(bad ,(format "%s is not in a workspace root, so no CLI can \
connect from there" (gemini-companion-names-absolute directory))
          ,(format "Start it in a project, or open a file of that project, then \
type %s.  The home directory and / are never roots."
                   (gemini-companion-clients-search))))))

(defun gemini-companion-roots--unknown-finding (directory)
  "Return a finding if only Jujutsu marks the project of DIRECTORY, or nil.
Emacs then takes each directory in it for a project of its own.  For findings,
see `gemini-companion-status-checks'."
  (when-let* (((not (file-remote-p directory)))
              (top (locate-dominating-file directory ".jj"))
              (top (file-truename top))
              ;; Without a project, each directory is its own root.
              ((not (equal (directory-file-name top)
                           (cdr (gemini-companion-roots--root
                                 (concat (file-name-as-directory top) ".jj/")))))))
    `(note ,(format "%s is not a project for Emacs, which does not know .jj"
                    (gemini-companion-names-absolute top))
           ,(if (< emacs-major-version 29)
                "Type jj git init --colocate there."
              "Add \".jj\" to `project-vc-extra-root-markers'."))))

;;;; Life

(cl-defmethod gemini-companion-part-findings ((_part (eql 'roots)) directory)
  "Return the finding about whether a CLI in DIRECTORY may connect."
  (mapcar (apply-partially #'cons "Project")
          (delq nil (list (gemini-companion-roots-finding directory)
                          (gemini-companion-roots--unknown-finding directory)))))

(provide 'gemini-companion-roots)
;;; gemini-companion-roots.el ends here
