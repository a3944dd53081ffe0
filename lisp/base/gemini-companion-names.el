;;; gemini-companion-names.el --- Names of files, here and for the user  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A file has two names: the name by which Emacs visits it, and the name of the local
;; file with its text.  They are equal for a local file.  A host is identified by the
;; prefix of the names of its files, such as "/ssh:host:".  While a CLI on that host
;; is connected, each of its files has a local copy.  All components read and watch
;; the copy, and never call TRAMP, which would block Emacs.
;;
;; The core accesses other hosts only by the generic functions of this file.  The
;; add-on for remote hosts has methods for them; without it, each file is local.
;; Names are also escaped and shortened for the user here.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-text)

;;;; State

(defconst gemini-companion-names-dir-locals '(".dir-locals.el" ".dir-locals-2.el")
  "Names of the files with directory variables, which may exclude files.")

(defvar gemini-companion-names-hosts-hook nil
  "Hook run after a host was connected, was disconnected, or has changed.
The local names of its files, and whether they are shared, may have changed.")

;;;; Names from other programs

(defun gemini-companion-names-below (directory name)
  "Return the absolute name of the file NAME in DIRECTORY.
NAME is relative to DIRECTORY; it may come from Git, a CLI or a file.  It is a
string of bytes, or of characters, which are in UTF-8 on the disk.

Use this instead of `expand-file-name', for which some names have a meaning: a
project may have a directory of the name \"~\"."
  (let ((coding (coding-system-change-eol-conversion
                 (or file-name-coding-system default-file-name-coding-system 'utf-8)
                 'unix)))
    ;; An absolute name has no meaning but its own.
    (expand-file-name
     (concat (file-name-as-directory directory)
             (decode-coding-string (gemini-companion-text-utf-8 name) coding)))))

(defun gemini-companion-names-in (directory name)
  "Return the absolute name of the file NAME, as a program in DIRECTORY names it.
NAME may be absolute; otherwise, see `gemini-companion-names-below'."
  (if (and (file-name-absolute-p name) (not (string-prefix-p "~" name)))
      (expand-file-name name)
    (gemini-companion-names-below directory name)))

;;;; Files on other hosts

(cl-defgeneric gemini-companion-names-copy (_file)
  "Return the local copy of FILE, a name with its host, or nil.
It is nil if that host is not connected.  The copy need not exist."
  nil)

(cl-defgeneric gemini-companion-names-of-copy (_file)
  "Return the host and name of the remote file with the local copy FILE.
The value is a cons such as
  (\"/ssh:host:\" . \"/srv/app/bill.py\")
or nil if FILE is not a copy."
  nil)

(cl-defgeneric gemini-companion-names-copy-of-buffer (_buffer)
  "Return the copy of the remote file that BUFFER visits, or nil."
  nil)

(cl-defgeneric gemini-companion-names-remote (_file _host)
  "Return (HOST . NAME) of FILE, a file or directory, on a host.
FILE is a local name: a copy, or in a directory that is shared with HOST, or
with any host if HOST is nil.  Return nil for other files."
  nil)

(cl-defgeneric gemini-companion-names-remote-location (_directory)
  "Return the remote location of a CLI in DIRECTORY, or nil if it is local.
The value is a list (HOST NAME ROOT): the host, and the names of DIRECTORY
and of the workspace root on it; ROOT is nil while it is unknown."
  nil)

(cl-defgeneric gemini-companion-names-roots (_host)
  "Return the copies of the workspace roots of HOST, or of all hosts if nil."
  nil)

(cl-defgeneric gemini-companion-names-connected-p (_host)
  "Return non-nil if HOST is, or will be, connected."
  nil)

(cl-defgeneric gemini-companion-names-unwritable-reason (_file)
  "Return the reason why the remote file with the copy FILE cannot be written.
The value is a sentence, or nil if it can be written, or FILE is not a copy."
  nil)

(cl-defgeneric gemini-companion-names-write (_file _old _text _done)
  "Start to write TEXT to the remote file with the copy FILE.
TEXT is a unibyte string, or nil to delete the file; OLD is the unibyte string
that the file must have.  DONE is called later with nil, or with the reason why
writing failed, a sentence; and again with nil if a host that was no longer
waited for has written it after all.  If FILE is not a copy, do nothing and
return nil; otherwise return non-nil."
  nil)

(defun gemini-companion-names-title (host)
  "Return the name of HOST for the user: \"ssh:host\" for \"/ssh:host:\"."
  (substring host 1 -1))

(defun gemini-companion-names-visited (file)
  "Return the name by which Emacs visits FILE, which may be a copy."
  (pcase (gemini-companion-names-of-copy file)
    (`(,host . ,there) (concat host there))
    (_ file)))

;;;; Buffers

(defun gemini-companion-names-file (&optional buffer)
  "Return the local file with the text that BUFFER visits, or nil.
The value is the visited file, or the copy of a remote file whose host is
connected.  BUFFER defaults to the current one."
  (let ((buffer (or buffer (current-buffer))))
    (or (gemini-companion-names-copy-of-buffer buffer)
        (gemini-companion-text-visited buffer))))

(defun gemini-companion-names-visited-here-p (file)
  "Return non-nil if the current buffer visits FILE, or the original of copy FILE.
FILE is a true name, or nil.  Search no other buffer, and follow no links."
  (when (and file buffer-file-name
             ;; Comparing the last part of the names is fast enough for each key.
             (let ((file-name-handler-alist nil))
               (string-suffix-p (file-name-nondirectory file)
                                (or buffer-file-truename buffer-file-name) t)))
    (let* ((copy (gemini-companion-names-copy-of-buffer (current-buffer)))
           (visited (or copy buffer-file-truename))
           (file-name-handler-alist nil))
      (and visited
           (gemini-companion-text-same-file-p
            (expand-file-name visited)
            ;; Emacs applies `directory-abbrev-alist' to true names of buffers.
            (if copy file (expand-file-name (abbreviate-file-name file))))))))

(defvar gemini-companion-names--visited nil
  "Table of what identifies the visited files, or nil.
See `gemini-companion-names-search-once'.")

(defmacro gemini-companion-names-search-once (&rest body)
  "Evaluate BODY, which must not visit or rename files, and return its value.
Meanwhile `gemini-companion-names-buffer' does not pass through all buffers for
each file that no buffer visits; in Emacs 28, that takes 3 ms for 1,000 buffers."
  (declare (indent 0) (debug t))
  `(let ((gemini-companion-names--visited
          (or gemini-companion-names--visited
              (gemini-companion-names--identify-visited))))
     ,@body))

(defun gemini-companion-names--identify-visited ()
  "Return a table of the true names and the inodes of all visited files."
  (let* ((buffers (buffer-list))
         (table (make-hash-table :test 'equal :size (* 2 (length buffers)))))
    (dolist (buffer buffers table)
      (when (buffer-file-name buffer)
        (puthash (buffer-local-value 'buffer-file-truename buffer) t table)
        (puthash (car (buffer-local-value 'buffer-file-number buffer)) t table)))))

(defun gemini-companion-names--maybe-visited-p (file)
  "Return nil if it is known that no buffer visits FILE."
  (or (null gemini-companion-names--visited)
      (let ((true-name (abbreviate-file-name (file-truename file))))
        (or (gethash true-name gemini-companion-names--visited)
            (gethash (file-attribute-inode-number (file-attributes true-name))
                     gemini-companion-names--visited)))))

(defun gemini-companion-names-buffer (file)
  "Return the buffer that visits FILE, or the original of the copy FILE, or nil."
  (if (gemini-companion-names-of-copy file)
      (cl-find (ignore-errors (file-truename file)) (buffer-list)
               :key #'gemini-companion-names-copy-of-buffer :test #'equal)
    (let ((file-name-handler-alist nil))
      ;; The links of FILE may be a loop.
      (ignore-errors
        (and (gemini-companion-names--maybe-visited-p file)
             (find-buffer-visiting file))))))

;;;; For the user

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
  "Return NAME, escaped and shortened in the middle to COLUMNS, by default 60.
Only both ends of a very long NAME, as a CLI may send, are processed."
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
