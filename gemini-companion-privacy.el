;;; gemini-companion-privacy.el --- What Gemini CLI is never told  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software; you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.

;; This program is distributed in the hope that it will be useful,
;; but WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
;; GNU General Public License for more details.

;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.


;;; Commentary:

;; Which files and folders are kept from Gemini CLI: what the person excludes
;; by name, mode or function, what a project keeps to itself, and what its
;; .geminiignore names.  Only answers; who asks before telling anything is the
;; entry's matter.  When in doubt, as after an error in a function of the
;; person, the answer is that the file is hidden.

;;; Code:

(require 'gemini-companion-events)
(require 'seq)
(require 'subr-x)

(defvar auth-sources)

;;;; Customization

(defcustom gemini-companion-excluded
  '("/\\.authinfo[^/]*\\'" "/[._]netrc[^/]*\\'" "/\\.pgpass\\'" "/\\.my\\.cnf\\'"
    "/\\.git-credentials\\'" "/\\.npmrc\\'" "/\\.pypirc\\'" "/\\.htpasswd\\'"
    "\\.\\(?:gpg\\|pgp\\|asc\\|age\\)\\'"
    "/\\.env[^/]*\\'" "\\.env\\'"
    "/id_\\(?:rsa\\|dsa\\|ecdsa\\|ed25519\\)[^/]*\\'"
    "\\.\\(?:pem\\|key\\|ppk\\|p12\\|pfx\\|jks\\|keystore\\|kdbx?\\)\\'"
    "/\\.\\(?:ssh\\|gnupg\\|password-store\\|aws\\|kube\\|docker\\)/"
    "/pass\\.[[:alnum:]]\\{13\\}/"
    gemini-companion-auth-source-p gemini-companion-password-store-p
    authinfo-mode pass-view-mode)
  "Files that Gemini CLI is never told of, with nothing of what is in them.
Each element is one of
- a regexp, which is tried on the absolute name of the file and on
  its true name, ignoring case;
- a major mode, a symbol that ends in `-mode'; modes derived from
  it count too;
- a function, which is called with the absolute name of a file and
  its buffer, or with that of a folder that ends in a slash and nil,
  and returns non-nil to exclude it.  Its answer is kept until the
  file is saved or renamed, or Gemini CLI connects.

While the person is in such a file, Gemini CLI believes that no file
is active.  Edits that it proposes for such a file are shown like
others: it has read the file by itself.  Takes effect at once."
  :type '(repeat (choice (regexp :tag "Regexp for file names")
                         (function-item gemini-companion-auth-source-p)
                         (function-item gemini-companion-password-store-p)
                         (symbol :tag "Major mode or function")
                         (function :tag "Function")))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

(defcustom gemini-companion-share-function #'always
  "Function that says which folders Gemini CLI may know of.
It is called with the absolute name of a folder, with a slash at the
end.  When it returns nil, the files in that folder and below are
not told, and Gemini CLI cannot connect from there by way of this
Emacs.  Its answer is kept until a file is opened or saved, or
Gemini CLI connects."
  :type 'function
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

(defcustom gemini-companion-share-outside-projects nil
  "Non-nil means to tell files that are outside all roots, too.
The roots are the projects of the open files and terminals, and the
folders of files in no project.  Outside are files right in the home
folder, and those below what `gemini-companion-roots-function' took
away.  Takes effect with the next change of what is told."
  :type 'boolean
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

(defcustom gemini-companion-respect-geminiignore t
  "Non-nil means to tell nothing of files that a .geminiignore names.
That is the nearest file of this name in the folder of a file or
above it; it has the syntax of a .gitignore.  It is read again when
it is saved in Emacs, and when Gemini CLI connects."
  :type 'boolean
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

;;;###autoload
(put 'gemini-companion-share 'safe-local-variable #'null)

(defcustom gemini-companion-share t
  "Nil if nothing of a file or project is to be told to Gemini CLI.
Meant to be set in the .dir-locals.el of a project:
  ((nil . ((gemini-companion-share . nil))))
Gemini CLI then does not find this Emacs from there, either.  With
a default of nil, only the projects that say t there are shared.
A project cannot say that for you: t in a .dir-locals.el counts once
you have marked it as safe, with ! when Emacs asks about it."
  :type 'boolean
  :safe #'null
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

;;;; State

(defvar gemini-companion-privacy--answers
  (make-hash-table :test #'eq :weakness 'key)
  "What was answered last for each buffer: (TURN QUESTION . HIDDEN).")

(defvar gemini-companion-privacy--folders (make-hash-table :test #'equal)
  "What was answered last for each folder: (TURN QUESTION . HIDDEN).")

(defvar gemini-companion-privacy--ignores (make-hash-table :test #'equal)
  "What is ignored in each folder, as (FOLDER . RULES) or nil.")

(defvar gemini-companion-privacy--problem nil
  "The options with which an answer failed last, and why, or nil.
A cons of a list as `gemini-companion-privacy--options' returns it,
and the name of the error, a symbol.")

(defvar gemini-companion-privacy--turn 0
  "Number that grows when the disk is to be looked at again.")

(defun gemini-companion-privacy-look-again ()
  "Look at the disk again before a file is told."
  (setq gemini-companion-privacy--turn (1+ gemini-companion-privacy--turn))
  (clrhash gemini-companion-privacy--ignores))

(defun gemini-companion-privacy-forget ()
  "Forget what was answered."
  (clrhash gemini-companion-privacy--answers)
  (clrhash gemini-companion-privacy--folders)
  (clrhash gemini-companion-privacy--ignores)
  (setq gemini-companion-privacy--problem nil))

(defun gemini-companion-privacy-note ()
  "Note that the current buffer has been found, saved or reverted."
  (if (member (file-name-nondirectory (or buffer-file-name ""))
              '(".geminiignore" ".dir-locals.el" ".dir-locals-2.el"))
      (gemini-companion-privacy-forget)
    (remhash (current-buffer) gemini-companion-privacy--answers)
    (dolist (folder (gemini-companion-privacy--folders-of buffer-file-name))
      (remhash folder gemini-companion-privacy--folders)
      (remhash folder gemini-companion-privacy--ignores))))

(defun gemini-companion-privacy--folders-of (file)
  "Return the names of the folder of FILE, nil if it is not local."
  (when (and file (not (file-remote-p file)))
    (let ((folder (file-name-directory file)))
      (list folder (file-truename folder)))))

(defun gemini-companion-privacy--options ()
  "Return the values of the options on which answers depend."
  (list gemini-companion-excluded
        gemini-companion-share-function
        (default-value 'gemini-companion-share)
        gemini-companion-respect-geminiignore))

(defun gemini-companion-privacy--answer (table key question old-too compute)
  "Return the answer for KEY in TABLE to QUESTION, or that of COMPUTE.
QUESTION is a list of what the answer depends on.  It depends on
files too, but to look at these again and again would be felt on a
slow disk; OLD-TOO means that an answer of an earlier turn will do."
  (let ((known (gethash key table)))
    (if (and known
             (or old-too (eql (car known) gemini-companion-privacy--turn))
             (equal question (cadr known)))
        (cddr known)
      (let ((hidden (funcall compute)))
        (puthash key (cons gemini-companion-privacy--turn
                           (cons question hidden))
                 table)
        hidden))))

;;;; Exclusions

(defun gemini-companion-privacy--true-name-p (name other)
  "Return non-nil if NAME is that of the local file OTHER, or its true name."
  (and (stringp other)
       (not (string-empty-p other))
       (not (file-remote-p other))
       (let ((other (expand-file-name other)))
         (or (string= name other)
             (and (file-exists-p other)
                  (string= name (file-truename other)))))))

(defun gemini-companion-auth-source-p (file _buffer)
  "Return non-nil if FILE is one of `auth-sources'."
  (require 'auth-source)
  (seq-some (lambda (source)
              (gemini-companion-privacy--true-name-p
               file (if (keywordp (car-safe source))
                        (plist-get source :source)
                      source)))
            auth-sources))

(defun gemini-companion-password-store-p (file _buffer)
  "Return non-nil if FILE is in a folder of the program pass."
  (seq-some (lambda (folder)
              (and (stringp folder)
                   (file-directory-p folder)
                   (file-in-directory-p file folder)))
            (list (bound-and-true-p auth-source-pass-filename)
                  (getenv "PASSWORD_STORE_DIR")
                  "~/.password-store")))

(defun gemini-companion-privacy--mode-p (element)
  "Return non-nil if ELEMENT of the exclusions is a major mode."
  (and (symbolp element)
       (string-suffix-p "-mode" (symbol-name element))))

(defun gemini-companion-privacy--excluded-p (names buffer)
  "Return non-nil if a file with NAMES, visited by BUFFER, is excluded.
BUFFER is nil for a folder."
  (let ((case-fold-search t))
    (seq-some
     (lambda (element)
       (cond ((stringp element)
              (seq-some (lambda (name) (string-match-p element name)) names))
             ((gemini-companion-privacy--mode-p element)
              (and buffer
                   (provided-mode-derived-p
                    (buffer-local-value 'major-mode buffer) element)))
             (t (seq-some (lambda (name) (funcall element name buffer))
                          names))))
     gemini-companion-excluded)))

(defun gemini-companion-privacy--names (file)
  "Return the absolute names by which FILE is known.
A backup of a file holds what that held, and counts as it."
  (let ((names (list (expand-file-name file)
                     (file-truename file)
                     (concat (file-truename (file-name-directory file))
                             (file-name-nondirectory file)))))
    (delete-dups
     (append names (mapcar #'gemini-companion-privacy--original names)))))

(defun gemini-companion-privacy--original (name)
  "Return the name of the file of which NAME is a backup, or NAME."
  (if (string-match "/#\\([^/]+\\)#\\'" name)
      (replace-match "/\\1" t nil name)
    (file-name-sans-versions name)))

;;;; Projects

(defun gemini-companion-privacy--local-share (folder)
  "Return what the directory-local variables of FOLDER make of sharing."
  (with-temp-buffer
    (setq default-directory folder)
    ;; An opt-out counts even where the person wants no such variables.
    (let ((enable-local-variables :safe)
          (enable-dir-local-variables t))
      (hack-dir-local-variables)
      (alist-get 'gemini-companion-share dir-local-variables-alist
                 (default-value 'gemini-companion-share)))))

(defun gemini-companion-privacy--kept-p (folder)
  "Return non-nil if FOLDER or one above it is not to be shared."
  (or (not (funcall gemini-companion-share-function folder))
      (let ((parent (file-name-directory (directory-file-name folder))))
        (and parent
             (not (equal parent folder))
             (gemini-companion-privacy--kept-p parent)))))

(defun gemini-companion-privacy-folder-hidden-p (folder &optional old-too)
  "Return non-nil if nothing of the local FOLDER may be told.
OLD-TOO means that an earlier look at the disk will do."
  (gemini-companion-privacy--answer
   gemini-companion-privacy--folders folder
   (gemini-companion-privacy--options)
   old-too
   (lambda ()
     (gemini-companion-privacy--doubtful
      (lambda ()
        (let ((folder (file-name-as-directory folder)))
          (or (gemini-companion-privacy--excluded-p
               (delete-dups
                (mapcar #'file-name-as-directory
                        (gemini-companion-privacy--names folder)))
               nil)
              (gemini-companion-privacy--kept-p folder)
              (not (gemini-companion-privacy--local-share folder)))))))))

(defun gemini-companion-privacy--doubtful (hidden-p)
  "Return the value of HIDDEN-P, a function, or t if that fails."
  (condition-case problem
      (funcall hidden-p)
    (error
     (setq gemini-companion-privacy--problem
           (cons (gemini-companion-privacy--options) (car problem)))
     ;; What an error says may name the file.
     (gemini-companion-events-note
      'failed 'gemini-companion-excluded (list (symbol-name (car problem))))
     t)))

(defun gemini-companion-privacy-problem ()
  "Return the error with which the options of now failed, a symbol, or nil."
  (and (equal (car gemini-companion-privacy--problem)
              (gemini-companion-privacy--options))
       (cdr gemini-companion-privacy--problem)))

;;;; Ignored files

(defun gemini-companion-privacy--ignored-p (file)
  "Return non-nil if the nearest .geminiignore names FILE."
  (pcase (gemini-companion-privacy--ignore (file-name-directory file))
    (`(,folder . ,rules)
     (gemini-companion-privacy--matched-p
      rules (file-relative-name file folder)))))

(defun gemini-companion-privacy--ignore (folder)
  "Return what is ignored in FOLDER, a cons of a folder and its rules, or nil.
The rules are in the .geminiignore of that folder, which is FOLDER
or above it."
  (let ((known (gethash folder gemini-companion-privacy--ignores 'none)))
    (if (not (eq known 'none))
        known
      (puthash folder
               (when-let* ((place (locate-dominating-file folder
                                                          ".geminiignore"))
                           (place (expand-file-name place)))
                 (cons place (gemini-companion-privacy--rules
                              (expand-file-name ".geminiignore" place))))
               gemini-companion-privacy--ignores))))

(defun gemini-companion-privacy--rules (file)
  "Return the rules in FILE."
  (with-temp-buffer
    (insert-file-contents file)
    (gemini-companion-privacy--parse (buffer-string))))

(defun gemini-companion-privacy--parse (text)
  "Return the rules in TEXT, which has the syntax of a .gitignore.
Each is a list of a regexp, whether it is for folders only, and
whether it takes back what a rule before it has ignored."
  (delq nil (mapcar #'gemini-companion-privacy--rule
                    (split-string text "\r?\n"))))

(defun gemini-companion-privacy--rule (line)
  "Return the rule that LINE of a .gitignore is, or nil."
  (let* ((line (replace-regexp-in-string "\\(\\\\ \\)? *\\'" "\\1" line))
         (negated (string-prefix-p "!" line))
         (pattern (if negated (substring line 1) line))
         (folder (string-suffix-p "/" pattern))
         (pattern (if folder (substring pattern 0 -1) pattern))
         (anchored (string-match-p "/" pattern))
         (pattern (string-remove-prefix "/" pattern)))
    (unless (or (string-empty-p pattern)
                (string-prefix-p "#" line))
      (list (concat "\\`" (unless anchored "\\(?:.*/\\)?")
                    (gemini-companion-privacy--regexp pattern) "\\'")
            folder negated))))

(defconst gemini-companion-privacy--tokens
  '(("\\*\\*+/" . "\\(?:.*/\\)?")
    ("\\*\\*+\\'" . ".*")
    ("\\*+" . "[^/]*")
    ("\\?" . "[^/]"))
  "What the parts of a pattern become in a regexp, as an alist.
The first two do so only where a name between slashes begins.")

(defconst gemini-companion-privacy--class
  "\\[\\([!^]?\\)\\(\\]?\\(?:\\[:[a-z]+:\\]\\|[^]]\\)*\\)\\]"
  "Regexp for a class of characters in a pattern.")

(defun gemini-companion-privacy--regexp (pattern)
  "Return a regexp for PATTERN of a .gitignore."
  (let ((index 0) (regexp ""))
    (while (< index (length pattern))
      (pcase-let ((`(,part . ,end)
                   (gemini-companion-privacy--part pattern index)))
        (setq regexp (concat regexp part)
              index end)))
    regexp))

(defun gemini-companion-privacy--part (pattern index)
  "Return a regexp for the part of PATTERN at INDEX, and where that ends."
  (let* ((begins (or (= index 0) (eq (aref pattern (1- index)) ?/)))
         (token (seq-find
                 (lambda (token)
                   (eql index (string-match (car token) pattern index)))
                 (if begins
                     gemini-companion-privacy--tokens
                   (nthcdr 2 gemini-companion-privacy--tokens)))))
    (cond
     (token
      (string-match (car token) pattern index)
      (cons (cdr token) (match-end 0)))
     ((eql index (string-match gemini-companion-privacy--class pattern index))
      (cons (concat "[" (unless (string-empty-p (match-string 1 pattern)) "^/")
                    (match-string 2 pattern) "]")
            (match-end 0)))
     ((and (eq (aref pattern index) ?\\)
           (< (1+ index) (length pattern)))
      (cons (regexp-quote (string (aref pattern (1+ index)))) (+ index 2)))
     (t (cons (regexp-quote (string (aref pattern index))) (1+ index))))))

(defun gemini-companion-privacy--matched-p (rules name)
  "Return non-nil if RULES ignore NAME, relative to where they are.
What is in an ignored folder cannot be taken back."
  (let ((case-fold-search nil)
        (parts (split-string name "/"))
        (prefix nil)
        (ignored nil))
    (while (and parts (not ignored))
      (setq prefix (if prefix (concat prefix "/" (pop parts)) (pop parts)))
      (pcase-dolist (`(,regexp ,folder ,negated) rules)
        (when (and (or parts (not folder))
                   (string-match-p regexp prefix))
          (setq ignored (not negated)))))
    ignored))

;;;; Files

(defun gemini-companion-privacy-hidden-p (buffer &optional old-too)
  "Return non-nil if the file that BUFFER visits may not be told.
Nothing of a remote file may be told, and of an indirect buffer
nothing that may not be told of its base.  OLD-TOO means that an
earlier look at the disk will do."
  (let ((base (buffer-base-buffer buffer)))
    (or (and base (gemini-companion-privacy-hidden-p base old-too))
        (gemini-companion-privacy--answer
         gemini-companion-privacy--answers buffer
         (cons (buffer-file-name (or base buffer))
               (cons (buffer-local-value 'major-mode buffer)
                     (cons (buffer-local-value 'gemini-companion-share buffer)
                           (gemini-companion-privacy--options))))
         old-too
         (lambda ()
           (gemini-companion-privacy--compute
            (buffer-file-name (or base buffer)) buffer))))))

(defun gemini-companion-privacy--compute (file buffer)
  "Return non-nil if FILE, which BUFFER visits, may not be told."
  (or (not file)
      (and (file-remote-p file) t)
      (not (buffer-local-value 'gemini-companion-share buffer))
      (gemini-companion-privacy--doubtful
       (lambda ()
         (gemini-companion-privacy--file-hidden-p file buffer)))))

(defun gemini-companion-privacy--file-hidden-p (file buffer)
  "Return non-nil if the local FILE, visited by BUFFER, may not be told."
  (let ((names (gemini-companion-privacy--names file)))
    (or (gemini-companion-privacy--excluded-p names buffer)
        (seq-some (lambda (name)
                    (or (gemini-companion-privacy-folder-hidden-p
                         (file-name-directory name))
                        (and gemini-companion-respect-geminiignore
                             (gemini-companion-privacy--ignored-p name))))
                  names))))

(provide 'gemini-companion-privacy)
;;; gemini-companion-privacy.el ends here
