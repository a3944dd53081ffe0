;;; gemini-companion-label.el --- Names of files and lines of text for the user  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Names of files for the user, with a warning if the file is outside all workspace
;; roots, and texts that are fitted into the width of a line.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-cache)
(require 'gemini-companion-names)
(require 'gemini-companion-review-plans)
(require 'gemini-companion-roots)
(require 'gemini-companion-text)

;;;; Names of files

(cl-defstruct (gemini-companion-label-location
               (:noinline t)
               (:constructor gemini-companion-label--make-location
                             (name host root link plan worktree))
               (:copier nil))
  "Location of a file, as seen by the CLI that writes it.
NAME is its true name, relative to a workspace root of the CLI if it is in
one.  HOST is the remote host if NAME is relative, or nil; an absolute NAME
includes its host.  ROOT is the workspace root that contains the file, or nil.
LINK is nil, or the name that the CLI used if that is a symbolic link to
somewhere else.  PLAN is non-nil for a plan of a CLI, outside all roots.
WORKTREE is nil, or the worktree of the file, if the CLI is in another one of the
same repository."
  name host root link plan worktree)

(defun gemini-companion-label-location (file &optional session)
  "Return the location of FILE for the CLI of SESSION, or for any CLI if nil.
The value is a struct.  Finding true names takes system calls, so call this
once for all texts about a file."
  (pcase-let* ((file (let ((file-name-handler-alist nil))
                       (expand-file-name file)))
               ;; A loop of links has no true name.
               (true-name (or (gemini-companion-text-true-name file) file))
               (`(,root ,own)
                (gemini-companion-roots-outermost true-name session))
               (name (gemini-companion-label--below
                      true-name (and (or own (null session)) root)))
               (host (unless (string-prefix-p "/" name)
                       (car (gemini-companion-names-of-copy true-name))))
               (link (unless (or (gemini-companion-text-same-file-p true-name file)
                                 (string-suffix-p (concat "/" name) file))
                       (gemini-companion-label--below
                        file
                        (car (gemini-companion-roots-outermost file session))))))
    (gemini-companion-label--make-location
     name host root link
     (and (null root) (gemini-companion-review-plans-file-p true-name))
     (gemini-companion-label--other-worktree true-name session))))

(defun gemini-companion-label--other-worktree (file session)
  "Return the worktree of FILE, a true name, if the CLI of SESSION is in another.
Return nil if they are not in two worktrees of one Git repository."
  (pcase-let* (((or 'nil (cl-struct gemini-companion-session directory remote))
                session)
               (`(,worktree . ,repository)
                (and directory (null remote)
                     (gemini-companion-label--worktree (file-name-directory file))))
               (`(,other . ,same)
                (and repository
                     (gemini-companion-label--worktree
                      (file-name-as-directory
                       (gemini-companion-text-true-name directory))))))
    (and repository (equal repository same) (not (equal worktree other)) worktree)))

(defun gemini-companion-label--worktree (directory)
  "Return (WORKTREE . REPOSITORY) of DIRECTORY, true names, or nil.
REPOSITORY is the directory .git that all worktrees of a Git repository share."
  (gemini-companion-cache-get
   (list 'worktree directory)
   (lambda ()
     (when-let* ((worktree (let ((file-name-handler-alist nil))
                             (locate-dominating-file directory ".git")))
                 (git (expand-file-name ".git" worktree)))
       (if (file-directory-p git)
           (cons (expand-file-name worktree) git)
         ;; Of another worktree, it is a file: gitdir: REPOSITORY/worktrees/NAME
         (with-temp-buffer
           (insert-file-contents git)
           (when (looking-at "gitdir: \\(.+\\)/worktrees/[^/\n]+$")
             (cons (expand-file-name worktree)
                   (gemini-companion-names-in worktree (match-string 1))))))))))

(defun gemini-companion-label-file (file &optional session plain)
  "Return the name of FILE for the user.
It is the true name, relative to the workspace root of the CLI of SESSION or,
if SESSION is nil, to any root.  For PLAIN and the format, see
`gemini-companion-label-location-text'."
  (gemini-companion-label-location-text (gemini-companion-label-location file session)
                                     plain))

(defun gemini-companion-label-location-text (location &optional plain)
  "Return the name of the file at LOCATION for the user.
Invisible characters are escaped, and a long name is shortened in the middle.
Unless PLAIN is non-nil, the text names the plan of a CLI, and has a warning, in
a face, if the file is outside all roots, or if its name is a symbolic link to
somewhere else.  Examples are src/a.el and, if PLAIN is nil:
  a file outside your projects: /etc/hosts
  the plan: add-search.md"
  (pcase-let (((cl-struct gemini-companion-label-location name host root link plan)
               location))
    (let ((text (concat (and host
                             (concat (gemini-companion-names-title host) ":"))
                        (gemini-companion-names-shown name))))
      (cond
       ((or plain (and root (not link)))
        text)
       ((and plan (not link))
        (concat "the plan: "
                (gemini-companion-names-shown (file-name-nondirectory name))))
       (t
        (propertize
         (concat (unless root "a file outside your projects: ")
                 text
                 (and link (format " (by the symbolic link %s)"
                                   (gemini-companion-names-shown link))))
         'face (if root 'warning 'error)))))))

(defun gemini-companion-label-location-base (location)
  "Return the last component of the true name of the file at LOCATION.
It is escaped, and shortened to 40 columns."
  (gemini-companion-names-shown
   (file-name-nondirectory (gemini-companion-label-location-name location)) 40))

(defun gemini-companion-label-location-warnings (location)
  "Return warnings about LOCATION, a list of phrases with faces.
It is nil for a file in a workspace root unless its name is a symbolic link to
somewhere else, or the CLI is in another worktree of the repository.  For the
plan of a CLI, which is outside of all roots, the phrase says that instead of a
warning."
  (delq nil
        (list (cond ((gemini-companion-label-location-root location) nil)
                    ((gemini-companion-label-location-plan location)
                     (propertize "the plan" 'face 'bold))
                    (t (propertize "outside your projects" 'face '(bold error))))
              (when-let* ((worktree (gemini-companion-label-location-worktree location)))
                (propertize (format "in another worktree (%s)"
                                    (file-name-nondirectory
                                     (directory-file-name worktree)))
                            'face '(bold warning)))
              (when (gemini-companion-label-location-link location)
                (propertize "by a symbolic link" 'face '(bold warning))))))

(defun gemini-companion-label--below (file root)
  "Return the name of FILE relative to ROOT, or absolute if it is not in ROOT."
  (if (and root (gemini-companion-text-in-directory-p file root))
      (substring file (length (file-name-as-directory root)))
    (gemini-companion-names-absolute file)))

;;;; Lines

(defvar gemini-companion-label-glyphless
  (let ((table (copy-sequence glyphless-char-display)))
    (dolist (characters '(#x200B #xFEFF (#x202A . #x202E) (#x2066 . #x2069)) table)
      (set-char-table-range table characters 'hex-code)))
  "Value of `glyphless-char-display' in buffers that display a text of an edit.
It shows the codes of characters that reorder text, or have no width.")

(defun gemini-companion-label-fit (texts width)
  "Return as many of TEXTS, joined, as fit into WIDTH columns.
TEXTS are in order of importance; nil and empty strings are skipped.  From the
right, each text that does not fit is omitted as a whole; only the first text
is truncated."
  (let* ((texts (seq-remove #'string-empty-p (delq nil (copy-sequence texts))))
         (line (truncate-string-to-width
                (or (pop texts) "") width nil nil
                (gemini-companion-text-sign ?\u2026 "..."))))
    (while (and texts
                (<= (+ (string-width line) (string-width (car texts))) width))
      (setq line (concat line (pop texts))))
    line))

(defvar gemini-companion-label-unsent-function #'ignore
  "Function that returns what the user has not sent to a CLI, or nil.
It is called with a session, in the buffer of a header line, often.  The value
is a text with a key, such as \"2 comments: s\", and the command of the key, a
cons.")

(defun gemini-companion-label-header (texts)
  "Return a header line with TEXTS, strings and nil, for the selected window.
Texts that begin with two spaces, such as keys, are omitted from the first one
on that does not fit; the first other text that does not fit is truncated."
  (let ((width (window-width))
        (line " "))
    (catch 'full
      (dolist (text (delq nil (copy-sequence texts)))
        (let ((longer (concat line text)))
          (unless (<= (string-width longer) width)
            (unless (string-prefix-p "  " text)
              (setq line (truncate-string-to-width
                          longer width nil nil
                          (gemini-companion-text-sign ?\u2026 "..."))))
            (throw 'full nil))
          (setq line longer))))
    (string-replace "%" "%%" line)))

(provide 'gemini-companion-label)
;;; gemini-companion-label.el ends here
