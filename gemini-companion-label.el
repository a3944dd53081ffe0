;;; gemini-companion-label.el --- Names of files and lines of text for the user  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The name of a file as it is displayed, with a warning where the file is outside
;; all workspace roots, and lines that are fitted into a width.

;;; Code:

(require 'gemini-companion-names)
(require 'gemini-companion-roots)
(require 'gemini-companion-text)

;;;; Names of files

(defun gemini-companion-label-file (file &optional session plain)
  "Return a name of FILE to show to the user.
It is its true name, relative to the root in which the CLI of
SESSION runs or, without SESSION, to any root.  Unless PLAIN is
non-nil, it includes that FILE is outside all roots, or a symbolic
link to somewhere else.  Invisible characters are escaped, and a long
name is shortened in its middle."
  (pcase-let* ((file (let ((file-name-handler-alist nil))
                       (expand-file-name file)))
               ;; A file whose links are a loop has no true name.
               (true-name (or (gemini-companion-text-true-name file) file))
               (`(,root ,own)
                (gemini-companion-roots-outermost true-name session))
               (name (gemini-companion-label--below
                      true-name (and (or own (null session)) root)))
               (remote (car (gemini-companion-names-of-copy true-name)))
               (shown (concat
                       ;; An absolute name has its host.
                       (and remote (not (string-prefix-p "/" name))
                            (concat (gemini-companion-names-title remote) ":"))
                       (gemini-companion-names-shown name)))
               (link (unless (or plain
                                 (gemini-companion-text-same-file-p
                                  true-name file)
                                 (string-suffix-p (concat "/" name) file))
                       (gemini-companion-label--below
                        file (car (gemini-companion-roots-outermost
                                   file session))))))
    (unless (or plain (and root (not link)))
      ;; Where there is little room, only that is shortened.
      (setq shown (concat (unless root "a file outside your projects: ")
                          (propertize shown 'gemini-companion-path t)
                          (and link (format " (by the symbolic link %s)"
                                            (gemini-companion-names-shown
                                             link)))))
      (add-face-text-property 0 (length shown) (if root 'warning 'error)
                              nil shown))
    shown))

(defun gemini-companion-label--below (file root)
  (if (and root (gemini-companion-text-in-directory-p file root))
      (substring file (length (file-name-as-directory root)))
    (gemini-companion-names-absolute file)))

;;;; Lines

(defconst gemini-companion-label--least-columns 16
  "Columns of a name that are more important than keys.")

(defun gemini-companion-label-fit (parts width)
  "Return as many of PARTS as fit into WIDTH columns, in their order.
PARTS are lists of a rank and a text; parts of the highest rank are
omitted first, and parts of rank 0 never.  One of them is a name: its
rank is nil.  It is shortened only if all others that remain have rank 5
or less, and most before the ones below rank 3 are omitted."
  (let* ((name (assq nil parts))
         ;; The one that is omitted next comes first.
         (others (seq-sort-by #'car #'> (reverse (remq name parts))))
         (text (cadr name))
         (columns (string-width text))
         (shortest (string-width (gemini-companion-label--shortened text 4)))
         (whole (string-width (gemini-companion-label--shortened text 4 t)))
         (room (lambda ()
                 (- width (string-width (mapconcat #'cadr others "")))))
         rank)
    (while (and (< 0 (setq rank (or (caar others) 0)))
                (< (funcall room)
                   (min columns
                        (cond ((<= rank 2) shortest)
                              ((< rank 3) whole)
                              ((<= rank 5)
                               (max whole gemini-companion-label--least-columns))
                              (columns)))))
      (pop others))
    (mapconcat (lambda (part)
                 (cond ((eq part name)
                        (gemini-companion-label--shortened
                         text (max 4 (funcall room))))
                       ((memq part others) (cadr part))))
               parts "")))

(defun gemini-companion-label-header (parts)
  "Return as many of PARTS as fit into a header line.
For PARTS, see `gemini-companion-label-fit'."
  (string-replace
   "%" "%%" (concat " " (gemini-companion-label-fit parts (1- (window-width))))))

(defun gemini-companion-label--shortened (name columns &optional whole)
  "Return NAME, shortened to COLUMNS.
Of a name with a warning, only the path is shortened.  Unless WHOLE is
non-nil, a link to a file outside is omitted if there is no room for it."
  (if-let* ((beg (text-property-any 0 (length name)
                                    'gemini-companion-path t name)))
      (let* ((end (next-single-property-change beg 'gemini-companion-path
                                               name (length name)))
             (path (substring name beg end))
             (link (substring name end))
             (room (- columns beg (string-width link))))
        (when (and (not whole) (< 0 beg)
                   (< room (min gemini-companion-label--least-columns
                                (string-width path))))
          (setq link "" room (- columns beg)))
        (concat (substring name 0 beg)
                (gemini-companion-names-shown
                 path (max gemini-companion-label--least-columns room))
                link))
    (gemini-companion-names-shown name columns)))

(provide 'gemini-companion-label)
;;; gemini-companion-label.el ends here
