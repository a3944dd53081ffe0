;;; gemini-companion-label.el --- Names of files and lines of text for the user  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The name of a file as it is displayed, with a warning where the file is outside
;; all workspace roots, and lines that are fitted into a width.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-names)
(require 'gemini-companion-roots)
(require 'gemini-companion-text)

;;;; Names of files

(cl-defstruct (gemini-companion-label--place
               (:constructor gemini-companion-label--make-place
                             (name host root link))
               (:copier nil))
  "Where a file is.
NAME is its true name, relative to a root of its CLI, if that has one.  HOST
is the remote host of a relative name, as an absolute name has its host.
ROOT is the workspace root in which it is, or nil.  LINK is the name by
which the file was named if that is a symbolic link to somewhere else."
  name host root link)

(defun gemini-companion-label-file (file &optional session plain)
  "Return a name of FILE to show to the user.
It is its true name, relative to the root in which the CLI of
SESSION runs or, without SESSION, to any root.  Unless PLAIN is
non-nil, it includes that FILE is outside all roots, or a symbolic
link to somewhere else.  Invisible characters are escaped, and a long
name is shortened in its middle."
  (pcase-let* (((cl-struct gemini-companion-label--place name host root link)
                (gemini-companion-label--place file session))
               (shown (concat (and host (concat (gemini-companion-names-title host)
                                                ":"))
                              (gemini-companion-names-shown name))))
    (unless (or plain (and root (not link)))
      (setq shown (concat (unless root "a file outside your projects: ")
                          shown
                          (and link (format " (by the symbolic link %s)"
                                            (gemini-companion-names-shown
                                             link)))))
      (add-face-text-property 0 (length shown) (if root 'warning 'error)
                              nil shown))
    shown))

(defun gemini-companion-label-place-warnings (file &optional session)
  "Return warnings about where FILE is, phrases in the face of a warning.
The CLI of SESSION writes it.  The value is nil for a file of its project."
  (pcase-let (((cl-struct gemini-companion-label--place root link)
               (gemini-companion-label--place file session)))
    (delq nil
          (list (unless root
                  (propertize "outside your projects" 'face '(bold error)))
                (when link
                  (propertize "by a symbolic link" 'face '(bold warning)))))))

(defun gemini-companion-label--place (file session)
  "Return where FILE is for the CLI of SESSION, or without one, for any."
  (pcase-let* ((file (let ((file-name-handler-alist nil))
                       (expand-file-name file)))
               ;; A file whose links are a loop has no true name.
               (true-name (or (gemini-companion-text-true-name file) file))
               (`(,root ,own)
                (gemini-companion-roots-outermost true-name session))
               (name (gemini-companion-label--below
                      true-name (and (or own (null session)) root))))
    (gemini-companion-label--make-place
     name
     (unless (string-prefix-p "/" name)
       (car (gemini-companion-names-of-copy true-name)))
     root
     (unless (or (gemini-companion-text-same-file-p true-name file)
                 (string-suffix-p (concat "/" name) file))
       (gemini-companion-label--below
        file (car (gemini-companion-roots-outermost file session)))))))

(defun gemini-companion-label--below (file root)
  "Return the name of FILE relative to ROOT, or absolute if it is not below."
  (if (and root (gemini-companion-text-in-directory-p file root))
      (substring file (length (file-name-as-directory root)))
    (gemini-companion-names-absolute file)))

;;;; Lines

(defun gemini-companion-label-fit (texts width)
  "Return TEXTS, joined, as far as they fit into WIDTH columns.
TEXTS are in the order of importance; nil and empty strings are left out.
What does not fit is omitted from the right, a whole text each; only the
first text is shortened."
  (let* ((texts (seq-remove #'string-empty-p (delq nil (copy-sequence texts))))
         (line (truncate-string-to-width
                (or (pop texts) "") width nil nil
                (gemini-companion-text-sign ?\u2026 "..."))))
    (while (and texts
                (<= (+ (string-width line) (string-width (car texts))) width))
      (setq line (concat line (pop texts))))
    line))

(defun gemini-companion-label-header (texts)
  "Return TEXTS as far as they fit into a header line.
For TEXTS, see `gemini-companion-label-fit'."
  (string-replace
   "%" "%%" (concat " " (gemini-companion-label-fit texts (1- (window-width))))))

(provide 'gemini-companion-label)
;;; gemini-companion-label.el ends here
