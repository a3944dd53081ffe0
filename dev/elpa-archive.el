;;; elpa-archive.el --- Make a package archive from packages  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; To be loaded with -Q --batch; then -f elpa-archive-make ARCHIVE DIRECTORY...
;; Each DIRECTORY has directories NAME-VERSION with a NAME-pkg.el.  ARCHIVE
;; becomes a directory for `package-archives'.

;;; Code:

(require 'package)

(defun elpa-archive--tar (directory full-name archive)
  "Pack the package in DIRECTORY as FULL-NAME.tar into ARCHIVE."
  (let ((base (file-name-nondirectory directory)))
    (unless (eq 0 (call-process
                   "tar" nil nil nil
                   "-C" (file-name-directory directory)
                   "-chf" (expand-file-name (concat full-name ".tar") archive)
                   "--exclude=*.elc" "--exclude=*-autoloads.el"
                   (format "--transform=s,^%s,%s," (regexp-quote base) full-name)
                   "--sort=name" "--owner=0" "--group=0" "--mtime=@0" base))
      (error "Cannot pack %s" directory))))

(defun elpa-archive--add (directory archive)
  "Pack the package in DIRECTORY into ARCHIVE and return its entry."
  (let* ((package-alist nil)
         (desc (package-load-descriptor directory)))
    (elpa-archive--tar directory (package-desc-full-name desc) archive)
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
      (dolist (directory (directory-files parent t "\\`[^.]"))
        (when (directory-files directory nil "-pkg\\.el\\'")
          (push (elpa-archive--add directory archive) entries))))
    (setq command-line-args-left nil)
    (with-temp-file (expand-file-name "archive-contents" archive)
      (let (print-level print-length)
        (prin1 (cons 1 (nreverse entries)) (current-buffer))))
    (message "%s" (directory-files archive nil "\\.tar\\'"))))

(provide 'elpa-archive)
;;; elpa-archive.el ends here
