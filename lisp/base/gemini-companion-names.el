;;; gemini-companion-names.el --- Names of files, here and for the user  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The name of a file as Emacs visits it, and the name of the local file that has
;; its text.  For a file of this host they are the same.  A host is known by the
;; prefix of the names of its files, such as "/ssh:host:"; a file there has a local
;; copy while a CLI there is connected, and all parts that read or watch files use
;; the copy, so none of them calls TRAMP, which would block Emacs.
;;
;; The generic functions here are all that the core knows of other hosts; without
;; methods for them, each file is local.  The add-on for remote hosts has the
;; methods.  What the user sees of a name is escaped and shortened here.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-text)

;;;; State

(defconst gemini-companion-names-dir-locals '(".dir-locals.el" ".dir-locals-2.el")
  "Names of the files with the variables of a directory, which may opt out.")

(defvar gemini-companion-names-hosts-hook nil
  "Hook run after a host was connected, disconnected or has changed.
The names of its files, and whether they are shared, may be others then.")

;;;; Files on other hosts

(cl-defgeneric gemini-companion-names-copy (_file)
  "Return the local copy of FILE, a name with its host, or nil.
It is nil if that host is not connected.  The copy need not exist."
  nil)

(cl-defgeneric gemini-companion-names-of-copy (_file)
  "Return where the file is whose copy is FILE, a local name.
The value is a cons of its host and its name there, for example
  (\"/ssh:host:\" . \"/srv/app/bill.py\")
or nil if FILE is no copy."
  nil)

(cl-defgeneric gemini-companion-names-copy-of-buffer (_buffer)
  "Return the copy of the remote file that BUFFER visits, or nil."
  nil)

(cl-defgeneric gemini-companion-names-remote (_file _host)
  "Return a cons of the host of FILE, or of a directory, and its name there.
FILE may be a copy, or local in a directory that is shared with HOST, or
with any host if HOST is nil.  Return nil for other files."
  nil)

(cl-defgeneric gemini-companion-names-place (_directory)
  "Return the place of a CLI in DIRECTORY, if that is on another host.
The value is a list of the host, the name of DIRECTORY there, and the
workspace root there, or nil if that is not known yet."
  nil)

(cl-defgeneric gemini-companion-names-roots (_host)
  "Return the copies of the workspace roots of HOST, or of all if that is nil."
  nil)

(cl-defgeneric gemini-companion-names-connected-p (_host)
  "Return non-nil if HOST is, or will be, connected."
  nil)

(cl-defgeneric gemini-companion-names-obstacle (_file)
  "Return why the file whose copy is FILE cannot be written now, or nil.
The value is a sentence."
  nil)

(cl-defgeneric gemini-companion-names-write (_file _old _text _done)
  "Write TEXT to the file whose copy is FILE, if FILE is one.
TEXT is in bytes, or nil to delete the file; OLD are the bytes that it
must have.  Return nil if FILE is no copy, and do nothing then.  Else DONE
is called later, with nil or with the problem, a sentence."
  nil)

(defun gemini-companion-names-title (host)
  "Return HOST for the user."
  (substring host 1 -1))

(defun gemini-companion-names-visited (file)
  "Return the name by which Emacs visits FILE, which may be a copy."
  (pcase (gemini-companion-names-of-copy file)
    (`(,host . ,there) (concat host there))
    (_ file)))

;;;; Buffers

(defun gemini-companion-names-file (&optional buffer)
  "Return the file that has the text of the file that BUFFER visits, or nil.
BUFFER is the current one by default.  For a remote file, that is its
copy, if its host is connected."
  (let ((buffer (or buffer (current-buffer))))
    (or (gemini-companion-names-copy-of-buffer buffer)
        (gemini-companion-text-visited buffer))))

(defun gemini-companion-names-visited-here-p (file)
  "Return non-nil if the current buffer visits FILE, or what has the copy FILE.
FILE is a true name, or nil.  No buffer is searched, and no link followed."
  (when (and file buffer-file-name
             ;; Other files cost nothing more at each key.
             (let ((file-name-handler-alist nil))
               (string-suffix-p (file-name-nondirectory file)
                                (or buffer-file-truename buffer-file-name) t)))
    (let* ((copy (gemini-companion-names-copy-of-buffer (current-buffer)))
           (visited (or copy buffer-file-truename))
           (file-name-handler-alist nil))
      (and visited
           (gemini-companion-text-same-file-p
            (expand-file-name visited)
            ;; Emacs abbreviates true names by `directory-abbrev-alist', too.
            (if copy file (expand-file-name (abbreviate-file-name file))))))))

(defun gemini-companion-names-buffer (file)
  "Return the buffer that visits FILE, or whose file has the copy FILE."
  (if (gemini-companion-names-of-copy file)
      (cl-find (ignore-errors (file-truename file)) (buffer-list)
               :key #'gemini-companion-names-copy-of-buffer :test #'equal)
    (let ((file-name-handler-alist nil))
      ;; The links of FILE may be a loop.
      (ignore-errors (find-buffer-visiting file)))))

;;;; For the user

(defun gemini-companion-names-for-cli (file session)
  "Return the name by which the CLI of SESSION knows FILE.
It is relative to the directory of the CLI if that is known."
  (let ((directory (plist-get session :directory))
        (remote (plist-get session :remote)))
    (cond (directory (file-relative-name file directory))
          ((and remote (cdr (gemini-companion-names-remote file remote))))
          (t file))))

(defun gemini-companion-names--escaped (name)
  "Return NAME with escapes for its invisible characters, without properties.
Marks that are combined with letters, as in names on macOS, stay."
  (substring-no-properties (gemini-companion-text-escaped name 'composed)))

(defun gemini-companion-names-absolute (file)
  "Return the absolute name of FILE for the user, abbreviated and escaped."
  (let ((file-name-handler-alist nil))
    (gemini-companion-names--escaped
     (abbreviate-file-name (gemini-companion-names-visited file)))))

(defun gemini-companion-names-shown (name &optional columns)
  "Return NAME, escaped and shortened in the middle to COLUMNS, or to 60.
Of a NAME that a CLI has made very long, only both ends are read."
  (let* ((most (or columns 60))
         (end (* 8 most))
         (name (gemini-companion-names--escaped
                (if (< (* 2 end) (length name))
                    (concat (substring name 0 end) "..." (substring name (- end)))
                  name)))
         (width (string-width name))
         (head (/ most 3)))
    (if (<= width most)
        name
      (concat (truncate-string-to-width name head)
              "..."
              (truncate-string-to-width name width
                                        (- width (- most head 3)))))))

(provide 'gemini-companion-names)
;;; gemini-companion-names.el ends here
