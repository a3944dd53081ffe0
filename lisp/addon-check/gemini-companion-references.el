;;; gemini-companion-references.el --- References that a turn left behind  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A turn that changes or renames a definition may not have changed each caller.  Find
;; the references to what a change defines, or has defined, in files that no edit of its
;; turn touches.  imenu knows the definitions, and the backend of xref the references:
;; Eglot, etags, or that of Lisp.

;;; Code:

(require 'cl-lib)
(require 'imenu)
(require 'project)
(require 'subr-x)
(require 'xref)
(require 'gemini-companion-changes)
(require 'gemini-companion-choice)
(require 'gemini-companion-edit)
(require 'gemini-companion-hunk)
(require 'gemini-companion-lines)
(require 'gemini-companion-overview-page)
(require 'gemini-companion-overview-row)
(require 'gemini-companion-revert)
(require 'gemini-companion-text)
(require 'gemini-companion-walk)

(defvar project-vc-external-roots-function)

;;;; Definitions

(defun gemini-companion-references--flat (index)
  "Return the entries of INDEX, a nested one of `imenu', conses (NAME . POSITION)."
  (cl-loop for (name . value) in index
           append (cond ((imenu--subalist-p (cons name value))
                         (gemini-companion-references--flat value))
                        ;; Some modes have (NAME POSITION FUNCTION ARGUMENT...).
                        ((integer-or-marker-p (or (car-safe value) value))
                         (list (cons name (or (car-safe value) value)))))))

(defun gemini-companion-references--symbol (name)
  "Return where the symbol that NAME, of `imenu', names is on this line, or nil.
The value is a cons of the symbol and its position.  NAME may have words for the
user around the symbol, as in \"price (def)\"."
  (cl-loop for word in (reverse (split-string
                                 (replace-regexp-in-string " (.*)\\'" "" name)
                                 "[^[:alnum:]_?!*<>=$%/+-]+" t))
           do (save-excursion
                (when (re-search-forward (format "\\_<%s\\_>" (regexp-quote word))
                                         (line-end-position) t)
                  (cl-return (cons word (match-beginning 0)))))))

(defun gemini-companion-references--defined (first end)
  "Return what the lines of this buffer from FIRST to END define.
The lines are counted from 0, and END is not included.  The value is a list of
conses of a symbol and its position."
  (let ((beg (gemini-companion-hunk-position first))
        (end (gemini-companion-hunk-position end)))
    (save-excursion
      (delete-dups
       (cl-loop for (name . position)
                in (gemini-companion-references--flat
                    ;; A mode may have no index.
                    (ignore-errors (funcall imenu-create-index-function)))
                when (and (<= beg position) (< position end))
                do (goto-char position)
                (beginning-of-line)
                and when (gemini-companion-references--symbol name)
                collect it)))))

(defun gemini-companion-references--removed (change)
  "Return the symbols that only the lines before CHANGE of this buffer define."
  (let ((text (gemini-companion-lines-join
               (gemini-companion-lines-without
                (list change)
                (gemini-companion-lines-split (gemini-companion-text-of-buffer)))))
        (first (gemini-companion-hunk-new change))
        (mode major-mode))
    (with-temp-buffer
      (insert text)
      ;; Its hooks are for files of the user.
      (delay-mode-hooks (funcall mode))
      (mapcar #'car (gemini-companion-references--defined
                     first (+ first (length (gemini-companion-hunk-lines change))))))))

(defun gemini-companion-references--read (change)
  "Return a symbol with a definition in CHANGE of this buffer, or removed by it.
The value is a cons of the symbol and its position, nil if it was removed.  If
there are several, read one."
  (let* ((now (gemini-companion-references--defined
               (gemini-companion-hunk-new change) (gemini-companion-hunk-new-end change)))
         (removed (seq-difference (gemini-companion-references--removed change)
                                  (mapcar #'car now)))
         (symbols (append now (mapcar #'list removed))))
    (cond ((null symbols) (user-error "No definition in the lines of this change"))
          ((cdr symbols)
           (gemini-companion-choice-read
            "References to"
            (mapcar (lambda (symbol) (cons (car symbol) symbol)) symbols)
            'gemini-companion-symbol))
          (t (car symbols)))))

;;;; References

(defun gemini-companion-references--backend (symbol)
  "Return the backend of xref for SYMBOL of this buffer, or signal an error.
SYMBOL is a value of `gemini-companion-references--read'."
  (let ((backend (or (xref-find-backend)
                     (user-error "No xref backend here; M-x eglot provides one"))))
    (cond ((and (eq backend 'eglot) (null (cdr symbol)))
           (user-error "%s is not defined any more; Eglot reports its uses as errors"
                       (car symbol)))
          ;; Others search in the files of the project.
          ((not (or (eq backend 'eglot) (project-current)))
           (user-error "%s belongs to no project; use M-x rgrep" (buffer-name))))
    backend))

(defun gemini-companion-references--find (backend symbol files)
  "Return the references to SYMBOL by BACKEND, xrefs outside of FILES.
SYMBOL is a value of `gemini-companion-references--read' for this buffer."
  (save-excursion
    (when (cdr symbol)
      (goto-char (cdr symbol)))
    (seq-remove
     (lambda (xref) (member (gemini-companion-references--file xref) files))
     ;; Libraries are not in the project.
     (let ((project-vc-external-roots-function #'ignore))
       (xref-backend-references
        backend
        (or (and (cdr symbol) (xref-backend-identifier-at-point backend))
            (car symbol)))))))

(defun gemini-companion-references--file (xref)
  "Return the true name of the file of XREF."
  (gemini-companion-text-true-name
   (expand-file-name (xref-location-group (xref-item-location xref)))))

(defun gemini-companion-references--files (turn)
  "Return the true names of the files that edits of TURN have written.
Without those that were rejected or undone: their callers are as before."
  (cl-loop for edit in (gemini-companion-edits)
           when (and (eq turn (gemini-companion-edit-turn edit))
                     (gemini-companion-changes-there-p edit))
           append (mapcar #'gemini-companion-text-true-name
                          (gemini-companion-changes-names edit))))

(defun gemini-companion-references--show (symbol turn)
  "Show the references to SYMBOL that no edit of TURN touches.
SYMBOL is a value of `gemini-companion-references--read' for this buffer."
  (let* ((buffer (current-buffer))
         (backend (gemini-companion-references--backend symbol))
         (files (gemini-companion-references--files turn))
         (fetch (lambda ()
                  (with-current-buffer buffer
                    (gemini-companion-references--find backend symbol files))))
         (found (funcall fetch))
         (in (seq-uniq (mapcar #'gemini-companion-references--file found))))
    (when found
      (funcall xref-show-xrefs-function fetch
               `((window . ,(selected-window)) (display-action) (auto-jump)
                 (fetched-xrefs . ,found))))
    (message "%s to `%s' in %s that no edit of this turn touches"
             (format (ngettext "%d reference" "%d references" (length found))
                     (length found))
             (car symbol)
             (format (ngettext "%d file" "%d files" (length in)) (length in)))))

;;;; Commands

(defun gemini-companion-references ()
  "Show the references to the symbols of the change at point.
These are the symbols that it defines, or has defined.  Only references in files
that its turn has not written are shown, as by \\[xref-find-references]: callers
that the CLI may have forgotten.  The change is the one at point in a file, or
in the overview."
  (interactive)
  (let* ((row (and (derived-mode-p 'gemini-companion-overview-mode)
                   (gemini-companion-overview-page-row)))
         (change (or (if row
                         (and (gemini-companion-overview-page-change)
                              (gemini-companion-overview-page-current-change))
                       (gemini-companion-walk-change))
                     (user-error "No change here; go to one first"))))
    (with-current-buffer (if row
                             (gemini-companion-revert-visit
                              (gemini-companion-overview-row-path row))
                           (current-buffer))
      (gemini-companion-references--show
       (gemini-companion-references--read change)
       (if row
           (gemini-companion-overview-row-turn row)
         (gemini-companion-changes-turn change))))))

(provide 'gemini-companion-references)
;;; gemini-companion-references.el ends here
