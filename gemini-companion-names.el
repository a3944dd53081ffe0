;;; gemini-companion-names.el --- Names of remote files, and for the user  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A remote host is known by the prefix of the names of its files, such as
;; "/ssh:host:".  A file there has a copy here, which the server keeps up to date
;; while a CLI wants to write the file.  All parts that read or watch files use
;; the copy, so none of them calls TRAMP, which would block Emacs.
;;
;; This file maps names between the two; it needs neither server nor connection.
;; What the user sees of a name is escaped and shortened here.

;;; Code:

(require 'gemini-companion-text)

;;;; Customization

(defgroup gemini-companion-remote nil
  "CLIs on other hosts and in containers."
  :group 'gemini-companion)

(defcustom gemini-companion-remote-directories nil
  "Remote hosts where CLIs may connect, an alist of (NAME . PAIRS).
NAME is the prefix of the names of files there, such as \"/ssh:host:\".
The commands that connect one ask, and add it.  Each of PAIRS is a
cons (THERE . HERE) of a directory on the host and the same one on
this host, for example by the mount of a container; its files are then
the local ones."
  :type '(alist :key-type (string :tag "Name, such as /ssh:host:")
                :value-type (alist :key-type (string :tag "There")
                                   :value-type (directory :tag "Here")))
  :package-version '(gemini-companion . "0.1.0"))

;;;; State

(defvar gemini-companion-names-remotes nil
  "Alist of (NAME . PLIST), the hosts that are or will be connected.
PLIST has the `:directories', from which the user wants to connect, the
`:state', \"connecting\", \"connected\", \"lost\" or \"ended\", and what the
server has reported: the `:problem', the `:port', the version of `:node',
the temporary directory `:tmp', and `:roots', lists (DIRECTORY ROOT).")

(defvar gemini-companion-names-mirrors nil
  "Alist of (NAME . DIRECTORY), the directories of copies.
A host that is disconnected keeps its own, for the edits there.")

(defun gemini-companion-names-title (name)
  "Return the host NAME for the user."
  (substring name 1 -1))

;;;; Names

(defconst gemini-companion-names-dir-locals '(".dir-locals.el" ".dir-locals-2.el")
  "Names of the files with the variables of a directory, which may opt out.")

(defun gemini-companion-names--mapped (file pairs)
  "Return the name of FILE by the first of PAIRS, (FROM TO), that has it."
  (let ((file-name-handler-alist nil))
    (seq-some (pcase-lambda (`(,from ,to))
                (let ((from (file-name-as-directory from)))
                  (and (string-prefix-p from file)
                       (concat (file-name-as-directory to)
                               (substring file (length from))))))
              pairs)))

(defun gemini-companion-names-shared (name)
  "Return the directories that the host NAME shares with this one.
The value is a list of (THERE HERE)."
  (mapcar (pcase-lambda (`(,there . ,here))
            (list there (expand-file-name here)))
          (cdr (assoc name gemini-companion-remote-directories))))

(defun gemini-companion-names-copy (file)
  "Return the name of the copy of the remote FILE, or nil.
It is nil if the host of FILE is not connected.  The copy need not exist."
  (when-let* ((name (and gemini-companion-names-remotes (file-remote-p file)))
              (host (cdr (assoc name gemini-companion-names-remotes))))
    (gemini-companion-names--mapped
     (replace-regexp-in-string "\\`~/" (concat (plist-get host :home) "/")
                               (file-local-name file) t t)
     `(,@(gemini-companion-names-shared name)
       ("/" ,(cdr (assoc name gemini-companion-names-mirrors)))))))

(defun gemini-companion-names-of-copy (file)
  "Return a cons of the host of the copy FILE and its name there, or nil."
  (seq-some (pcase-lambda (`(,name . ,mirror))
              (when-let* ((there (gemini-companion-names--mapped
                                  file `((,mirror "/")))))
                (cons name there)))
            gemini-companion-names-mirrors))

(defun gemini-companion-names-visited (file)
  "Return the name by which Emacs visits FILE, which may be a copy."
  (pcase (gemini-companion-names-of-copy file)
    (`(,name . ,there) (concat name there))
    (_ file)))

(defun gemini-companion-names--copy-of-buffer (&optional buffer)
  "Return the copy of the remote file that BUFFER visits, or nil."
  (when-let* ((file (and gemini-companion-names-remotes (buffer-file-name buffer)))
              (true-name (or (buffer-local-value 'buffer-file-truename
                                                 (or buffer (current-buffer)))
                             file)))
    ;; In Emacs 28, the true name lacks the hops.
    (gemini-companion-names-copy
     (concat (file-remote-p file) (file-local-name true-name)))))

(defun gemini-companion-names-file (&optional buffer)
  "Return the file that has the text of the file that BUFFER visits, or nil.
BUFFER is the current one by default.  For a remote file, that is its
copy, if its host is connected."
  (or (gemini-companion-names--copy-of-buffer buffer)
      (gemini-companion-text-visited (or buffer (current-buffer)))))

(defun gemini-companion-names-visited-here-p (file)
  "Return non-nil if the current buffer visits FILE, or what has the copy FILE.
FILE is a true name, or nil.  No buffer is searched, and no link followed."
  (when (and file buffer-file-name
             ;; Other files cost nothing more at each key.
             (let ((file-name-handler-alist nil))
               (string-suffix-p (file-name-nondirectory file)
                                (or buffer-file-truename buffer-file-name) t)))
    (let* ((copy (gemini-companion-names--copy-of-buffer))
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
               :key #'gemini-companion-names--copy-of-buffer :test #'equal)
    (let ((file-name-handler-alist nil))
      ;; The links of FILE may be a loop.
      (ignore-errors (find-buffer-visiting file)))))

(defun gemini-companion-names-roots (&optional name)
  "Return the copies of the workspace roots of the host NAME, or of all."
  (cl-loop for (host . plist) in gemini-companion-names-remotes
           when (member name (list nil host))
           append (cl-loop for (_ root) in (plist-get plist :roots)
                           when root collect (gemini-companion-names-copy
                                              (concat host root)))))

(defun gemini-companion-names-remote (file &optional host)
  "Return a cons of the host of FILE, or of a directory, and its name there.
FILE may be a copy.  Return nil if it is local and in no directory that
is shared with HOST, or with any host by default."
  (if-let* ((file (gemini-companion-names-visited file))
            (name (file-remote-p file)))
      (cons name (directory-file-name (file-local-name file)))
    (seq-some (pcase-lambda (`(,name . ,_))
                (when-let* (((member host (list nil name)))
                            (shared (gemini-companion-names-shared name))
                            (there (gemini-companion-names--mapped
                                    (expand-file-name file)
                                    (mapcar #'reverse shared))))
                  (cons name (directory-file-name there))))
              gemini-companion-remote-directories)))

;;;; For the user

(defun gemini-companion-names--escaped (text)
  "Return TEXT with invisible characters escaped.
These are control and format characters, including bidirectional
ones, and blanks other than a space."
  (replace-regexp-in-string
   "[^ -~]"
   (lambda (match)
     (let ((char (aref match 0)))
       (cond ((< #x3FFF7F char) (format "\\x%02X" (- char #x3FFF00)))
             ((memq (get-char-code-property char 'general-category)
                    '(nil Cc Cf Cn Co Cs Zl Zp Zs))
              (format "\\u%04X" char))
             (t match))))
   text t t))

(defun gemini-companion-names-absolute (file)
  "Return the absolute name of FILE for the user, abbreviated and escaped."
  (let ((file-name-handler-alist nil))
    (gemini-companion-names--escaped
     (abbreviate-file-name (gemini-companion-names-visited file)))))

(defun gemini-companion-names-shown (name &optional columns)
  "Return NAME, escaped and shortened in the middle to COLUMNS, or to 60."
  (let* ((name (gemini-companion-names--escaped name))
         (width (string-width name))
         (most (or columns 60))
         (head (/ most 3)))
    (if (<= width most)
        name
      (concat (truncate-string-to-width name head)
              "..."
              (truncate-string-to-width name width
                                        (- width (- most head 3)))))))

(provide 'gemini-companion-names)
;;; gemini-companion-names.el ends here
