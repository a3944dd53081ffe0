;;; gemini-companion-trash.el --- Files of the user that an undo deletes  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A file that an undo deletes may be the only copy of what the user wants tomorrow, in
;; another Emacs.  So it is moved to the trash of the system.  What the trash does not
;; get, see `gemini-companion-trash-left-out', is deleted only if the user agrees: what is
;; on another host, excluded, another user's, or large.  A file that cannot be moved stays,
;; and so does one for which the user was not asked.
;;
;; All files of the user that an undo deletes are deleted here.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'gemini-companion-label)
(require 'gemini-companion-names)
(require 'gemini-companion-privacy)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)

;;;; State

(defconst gemini-companion-trash-most-bytes (* 64 1024 1024)
  "Maximum number of bytes that one undo moves to the trash.")

(defconst gemini-companion-trash--most-names 200
  "Maximum number of files that one undo moves to the trash.
A directory that is moved as one counts as one.")

(defvar gemini-companion-trash--moved (make-hash-table :test 'equal)
  "Table from names of files to hashes of the bytes that the trash has of them.")

;;;; What the trash does not get

(defun gemini-companion-trash--reason (file)
  "Return why FILE is not moved to the trash when it is deleted, or nil.
The value is a verb phrase.  FILE may be a directory that is moved as one."
  (let* ((file-name-handler-alist nil)
         (attributes (file-attributes file 'integer)))
    (cond ((gemini-companion-names-of-copy file) "is on another host")
          ((null attributes) nil)
          ((/= (user-uid) (file-attribute-user-id attributes))
           "belongs to another user")
          ((< gemini-companion-trash-most-bytes (gemini-companion-trash--size file))
           (format "is larger than %s"
                   (file-size-human-readable gemini-companion-trash-most-bytes)))
          ((and (null (file-attribute-type attributes))
                (gemini-companion-privacy-name-hidden-p file))
           "is excluded"))))

(defun gemini-companion-trash--size (file)
  "Return the number of bytes of FILE, which may be a directory."
  (let* ((file-name-handler-alist nil)
         (attributes (file-attributes file)))
    (if (eq t (file-attribute-type attributes))
        (cl-loop for entry in (gemini-companion-trash--entries file)
                 sum (gemini-companion-trash--size entry))
      (or (file-attribute-size attributes) 0))))

(defun gemini-companion-trash--entries (directory)
  "Return the absolute names of what is in DIRECTORY."
  (directory-files directory t directory-files-no-dot-files-regexp t))

(defun gemini-companion-trash-left-out (files)
  "Return which of FILES are not moved to the trash, all together, and why.
The value is an alist from files to verb phrases."
  (let ((names 0)
        (bytes 0)
        (left-out nil))
    (dolist (file files (nreverse left-out))
      (let* ((size (gemini-companion-trash--size file))
             (reason (if (and (< 0 names)
                              (or (<= gemini-companion-trash--most-names names)
                                  (< gemini-companion-trash-most-bytes
                                     (+ bytes size))))
                         "is beyond its limit"
                       (gemini-companion-trash--reason file))))
        (if reason
            (push (cons file reason) left-out)
          (setq names (1+ names)
                bytes (+ bytes size)))))))

(defun gemini-companion-trash-items (files directories)
  "Return what to move to the trash in order to delete FILES.
It is a list of (NAME . FILES): NAME is a file, or one of DIRECTORIES that have
nothing but FILES.  All names are absolute."
  (let ((left (make-hash-table :test 'equal))
        (items nil))
    (dolist (file files)
      (puthash file t left))
    ;; The outermost ones first.
    (dolist (directory (seq-sort-by #'length #'< directories))
      (let ((in-it (gemini-companion-trash--all-in directory left)))
        (unless (memq in-it '(nil no))
          (dolist (file in-it)
            (remhash file left))
          (push (cons directory in-it) items))))
    (append (nreverse items)
            (mapcar #'list (seq-filter (lambda (file) (gethash file left)) files)))))

(defun gemini-companion-trash--all-in (directory files)
  "Return the files in DIRECTORY, or `no' if one is not in the table FILES."
  (if (not (eq t (file-attribute-type (file-attributes directory))))
      'no
    (let ((all nil))
      (dolist (entry (gemini-companion-trash--entries directory) all)
        (let ((in-it (cond ((eq all 'no) 'no)
                           ((gethash entry files) (list entry))
                           (t (gemini-companion-trash--all-in entry files)))))
          (setq all (if (eq in-it 'no)
                        'no
                      (append in-it all))))))))

;;;; Deleting

(defun gemini-companion-trash-delete (file &optional agreed reason)
  "Move the local FILE to the trash, or a directory with all that is in it.
If that has a copy of FILE already, delete FILE.  If it does not get FILE, for
REASON or another one of `gemini-companion-trash-left-out', delete FILE only if
AGREED is non-nil: the user has agreed that it is gone for good.  If that is
impossible, or not agreed, signal a `user-error', and change nothing."
  (setq reason (or reason (gemini-companion-trash--reason file)))
  ;; FILE may have grown since the user was asked.
  (when (and reason (not agreed))
    (user-error "%s not deleted, as it %s and cannot go to the trash; delete it by hand"
                (gemini-companion-label-file file) reason))
  (gemini-companion-watch-writing file
    (let ((file-name-handler-alist nil))
      (condition-case problem
          (if (or reason (gemini-companion-trash--still-has-p file))
              (let ((delete-by-moving-to-trash nil))
                (if (eq t (file-attribute-type (file-attributes file)))
                    (delete-directory file t)
                  (delete-file file)))
            (let ((hash (gemini-companion-trash--hash file)))
              (move-file-to-trash file)
              (when hash
                (puthash (expand-file-name file) hash gemini-companion-trash--moved))))
        (error
         (user-error "%s cannot be moved to the trash (%s)"
                     (gemini-companion-label-file file)
                     (gemini-companion-text-problem problem)))))))

(defun gemini-companion-trash--hash (file)
  "Return a hash of the bytes of FILE, or nil if it is not a regular file."
  (and (null (file-attribute-type (file-attributes file)))
       (secure-hash 'sha256 (gemini-companion-text-bytes file))))

(defun gemini-companion-trash--still-has-p (file)
  "Return non-nil if the trash still has FILE with its bytes, from an earlier undo."
  (when-let* ((hash (gethash (expand-file-name file) gemini-companion-trash--moved))
              ((equal hash (gemini-companion-trash--hash file))))
    (gemini-companion-trash-has-p file hash)))

(defun gemini-companion-trash-has-p (file hash)
  "Return non-nil if the trash is known to have FILE with the bytes of HASH."
  (when-let* ((trash (gemini-companion-trash--directory))
              ((file-directory-p trash)))
    (seq-some (lambda (copy) (equal hash (gemini-companion-trash--hash copy)))
              (directory-files
               trash t
               ;; A second one of that name has a suffix.
               (concat "\\`" (regexp-quote (file-name-nondirectory file))) t))))

(defun gemini-companion-trash--directory ()
  "Return the directory of the trash of `move-file-to-trash', if it is known."
  (cond ((fboundp 'system-move-file-to-trash) nil)
        (trash-directory)
        (t (expand-file-name "Trash/files"
                             (or (getenv "XDG_DATA_HOME") "~/.local/share")))))

(provide 'gemini-companion-trash)
;;; gemini-companion-trash.el ends here
