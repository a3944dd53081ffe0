;;; elpa-archive.el --- Make a package archive from packages  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; To be loaded with -Q --batch; then -f elpa-archive-make ARCHIVE FOLDER...
;; Each FOLDER holds folders NAME-VERSION with a NAME-pkg.el.  ARCHIVE
;; becomes a folder that `package-archives' takes as it is.

;;; Code:

(require 'package)

(defun elpa-archive--tar (folder full-name archive)
  "Pack the package in FOLDER as FULL-NAME.tar into ARCHIVE."
  (let ((base (file-name-nondirectory folder)))
    (unless (eq 0 (call-process
                   "tar" nil nil nil
                   "-C" (file-name-directory folder)
                   "-chf" (expand-file-name (concat full-name ".tar") archive)
                   "--exclude=*.elc" "--exclude=*-autoloads.el"
                   (format "--transform=s,^%s,%s," (regexp-quote base) full-name)
                   "--sort=name" "--owner=0" "--group=0" "--mtime=@0" base))
      (error "Cannot pack %s" folder))))

(defun elpa-archive--add (folder archive)
  "Pack the package in FOLDER into ARCHIVE and return its entry."
  (let* ((package-alist nil)
         (desc (package-load-descriptor folder)))
    (elpa-archive--tar folder (package-desc-full-name desc) archive)
    (cons (package-desc-name desc)
          (vector (package-desc-version desc) (package-desc-reqs desc)
                  (package-desc-summary desc) 'tar
                  (package-desc-extras desc)))))

(defun elpa-archive-make ()
  "Make the archive that the command line describes."
  (let ((archive (file-name-as-directory
                  (expand-file-name (pop command-line-args-left))))
        entries)
    (make-directory archive t)
    (dolist (parent command-line-args-left)
      (dolist (folder (directory-files parent t "\\`[^.]"))
        (when (directory-files folder nil "-pkg\\.el\\'")
          (push (elpa-archive--add folder archive) entries))))
    (setq command-line-args-left nil)
    (with-temp-file (expand-file-name "archive-contents" archive)
      (let (print-level print-length)
        (prin1 (cons 1 (nreverse entries)) (current-buffer))))
    (message "%s" (directory-files archive nil "\\.tar\\'"))))

(provide 'elpa-archive)
;;; elpa-archive.el ends here
