;;; gemini-companion-privacy.el --- Files never shared  -*- lexical-binding: t; -*-

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

(require 'cl-lib)
(require 'gemini-companion-clients)
(require 'gemini-companion-events)
(require 'seq)
(require 'subr-x)

(defvar auth-sources)

;;;; Customization

(defgroup gemini-companion-sharing nil
  "What is shared with a CLI."
  :group 'gemini-companion)

(defcustom gemini-companion-excluded
  '("/\\.authinfo[^/]*\\'" "/[._]netrc[^/]*\\'" "/\\.pgpass\\'" "/\\.my\\.cnf\\'"
    "/\\.git-credentials\\'" "/\\.npmrc\\'" "/\\.pypirc\\'" "/\\.htpasswd\\'"
    "/\\.?\\(?:credentials\\|secrets\\)\\(?:\\.[^/]*\\)?\\'"
    "/\\.\\(?:dockercfg\\|vault-token\\|s3cfg\\|boto\\|terraformrc\\)\\'"
    "[/.]kubeconfig[^/]*\\'" "\\.tf\\(?:state\\|vars\\)\\(?:\\.[^/]*\\)?\\'"
    "\\.\\(?:gpg\\|pgp\\|asc\\|age\\)\\'"
    "/\\.env[^/]*\\'" "\\.env\\'"
    "/id_\\(?:rsa\\|dsa\\|ecdsa\\|ed25519\\)[^/]*\\'"
    "\\.\\(?:pem\\|key\\|ppk\\|p12\\|pfx\\|jks\\|keystore\\|kdbx?\\)\\'"
    "/\\.\\(?:ssh\\|gnupg\\|password-store\\|aws\\|azure\\|kube\\|docker\\)/"
    "/\\.config/gcloud/"
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
  :group 'gemini-companion-sharing)

(defcustom gemini-companion-share-function #'always
  "Function that says which folders Gemini CLI may know of.
It is called with the absolute name of a folder, with a slash at the
end.  When it returns nil, the files in that folder and below are
not told, and Gemini CLI cannot connect from there by way of this
Emacs.  Its answer is kept until Gemini CLI connects."
  :type 'function
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-sharing)

(defcustom gemini-companion-respect-geminiignore t
  "Non-nil means not to share files that a .geminiignore names.
The one in the directory of a file and those above it count, with
the syntax and the precedence of .gitignore files.  (Gemini CLI
itself reads only the one in the directory where it was started.)
So do .qwenignore, .agentignore and .aiignore, which Qwen Code
reads; a file that one of them names is shared with no CLI.
They are read again when they are saved in Emacs, and when a CLI
connects.  A file is not shared either if matching it against them
would take too long."
  :type 'boolean
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-sharing)

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
  :group 'gemini-companion-sharing)

;;;; State

(defvar gemini-companion-privacy--generation nil
  "Number of the answers that hold now, or nil while none is kept.
It grows when something has changed on which they depend.")

(defvar gemini-companion-privacy--buffers
  (make-hash-table :test #'eq :weakness 'key)
  "Whether the file of a buffer is hidden.
This and the next two are for `gemini-companion-privacy-cached'.")

(defvar gemini-companion-privacy--directories (make-hash-table :test #'equal)
  "Whether a directory is hidden.")

(defvar gemini-companion-privacy--ignores (make-hash-table :test #'equal)
  "What `gemini-companion-privacy--ignore-files' found for each directory.")

(defvar gemini-companion-privacy--problem nil
  "The error with which an answer failed last, a symbol, or nil.")

(defun gemini-companion-privacy-refresh ()
  "Keep answers, but none from before.
To be called when an option or a file has changed on which they
depend."
  (setq gemini-companion-privacy--generation
        (1+ (or gemini-companion-privacy--generation 0))
        gemini-companion-privacy--problem nil))

(defun gemini-companion-privacy-forget ()
  "Keep no answers until `gemini-companion-privacy-refresh'."
  (setq gemini-companion-privacy--generation nil
        gemini-companion-privacy--problem nil)
  (mapc #'clrhash (list gemini-companion-privacy--buffers
                        gemini-companion-privacy--directories
                        gemini-companion-privacy--ignores)))

(defun gemini-companion-privacy-cached (table key question compute)
  "Return the value for KEY in TABLE, or that of COMPUTE, a function.
That is kept in TABLE as long as QUESTION and the generation are
the same."
  (let ((known (gethash key table))
        (generation gemini-companion-privacy--generation))
    (if (and known
             (eql generation (car known))
             (equal question (cadr known)))
        (cddr known)
      (let ((value (funcall compute)))
        (when generation
          (puthash key (cons generation (cons question value)) table))
        value))))

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
  (let* ((name (expand-file-name file))
         (below (concat (file-truename (file-name-directory name))
                        (file-name-nondirectory name)))
         (names (list name below
                      (if (file-symlink-p below) (file-truename below) below))))
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

(defun gemini-companion-privacy-folder-hidden-p (folder)
  "Return non-nil if nothing of the local FOLDER may be shared."
  (gemini-companion-privacy-cached
   gemini-companion-privacy--directories folder nil
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
     (setq gemini-companion-privacy--problem (car problem))
     ;; What an error says may name the file.
     (gemini-companion-events-note
      'failed 'gemini-companion-excluded (list (symbol-name (car problem))))
     t)))

(defun gemini-companion-privacy-problem ()
  "Return the error with which an answer failed last, a symbol, or nil."
  gemini-companion-privacy--problem)

;;;; Ignored files

(define-error 'gemini-companion-geminiignore-too-complex
  "Too much work to match a .geminiignore")

(defconst gemini-companion-privacy--most-steps 150000
  "Steps in which a file must be matched, or it is hidden.
They take some 20 ms.  A repository must not be able to stop Emacs.")

(defvar gemini-companion-privacy--steps 0
  "Steps that are left for the file in question.")

(defsubst gemini-companion-privacy--spend (count)
  "Count down by COUNT what is left to do; signal an error at its end."
  (when (< (cl-decf gemini-companion-privacy--steps count) 0)
    (signal 'gemini-companion-geminiignore-too-complex nil)))

(defun gemini-companion-privacy--ignored-p (file)
  "Return non-nil if an ignore file of a CLI, as .geminiignore, names FILE.
What is in an ignored directory cannot be restored."
  (let ((parts (gemini-companion-privacy--parts file)))
    (seq-some
     (lambda (name)
       (when-let* ((files (gemini-companion-privacy--ignore-files
                           name (file-name-directory file))))
         (cl-loop for depth from 1 to (length parts)
                  thereis (gemini-companion-privacy--ignored-at-p
                           files parts depth))))
     (gemini-companion-clients-all :ignore-files))))

(defun gemini-companion-privacy--parts (name)
  "Return a vector of the parts of the absolute file NAME."
  (vconcat (split-string name "/" t)))

(defun gemini-companion-privacy--ignored-at-p (files parts depth)
  "Return non-nil if FILES, .geminiignore, name the first DEPTH of PARTS.
The last rule that matches decides, and one in an inner directory
before those further out."
  (cl-loop for (above . rules) in files
           for rule = (and (< above depth)
                           (gemini-companion-privacy--matching-rule
                            rules (substring parts above depth)
                            (< depth (length parts))))
           when rule return (not (nth 2 rule))))

(defun gemini-companion-privacy--matching-rule (rules name directory)
  "Return the first of RULES that matches NAME, a vector of parts, or nil.
DIRECTORY is non-nil if NAME is that of a directory."
  (seq-find (lambda (rule)
              (and (or directory (not (nth 1 rule)))
                   (gemini-companion-privacy--match-p (car rule) name)))
            rules))

(defun gemini-companion-privacy--ignore-files (name directory)
  "Return what the files NAME, as .geminiignore, in DIRECTORY and above say.
The value is a list of (DEPTH . RULES), the innermost file first.
They add up as .gitignore files do.  Gemini CLI itself reads only
the one in the directory in which it was started."
  (gemini-companion-privacy-cached
   gemini-companion-privacy--ignores (cons name directory) nil
   (lambda ()
     (when-let* ((place (locate-dominating-file
                         directory
                         (lambda (place)
                           (file-regular-p (expand-file-name name place)))))
                 (place (expand-file-name place))
                 (outside (file-name-directory (directory-file-name place))))
       (cons (cons (length (gemini-companion-privacy--parts place))
                   (gemini-companion-privacy--rules
                    (expand-file-name name place)))
             (unless (equal outside place)
               (gemini-companion-privacy--ignore-files name outside)))))))

;;;; Patterns

(defconst gemini-companion-privacy--classes
  '(("alnum" (?0 . ?9) (?A . ?Z) (?a . ?z))
    ("alpha" (?A . ?Z) (?a . ?z))
    ("blank" (?\t . ?\t) (?\s . ?\s))
    ("cntrl" (0 . 31) (127 . 127))
    ("digit" (?0 . ?9))
    ("graph" (33 . 126))
    ("lower" (?a . ?z))
    ("print" (32 . 126))
    ("punct" (33 . 47) (58 . 64) (91 . 96) (123 . 126))
    ("space" (9 . 13) (?\s . ?\s))
    ("upper" (?A . ?Z))
    ("xdigit" (?0 . ?9) (?A . ?F) (?a . ?f)))
  "The named classes of characters and their ranges, as git has them.")

;; A pattern is a list of pieces, with gaps between them that match anything: in
;; a name, pieces of characters between "*"; in a path, vectors of names between
;; "**".  Each piece is matched where it is found first, and nowhere else, so
;; there is no backtracking as in a regexp.

(defun gemini-companion-privacy--match-p (pieces text)
  "Return non-nil if PIECES match TEXT, a name or a vector of names."
  (let* ((piece (pop pieces))
         (start (length piece))
         (end (- (length text) (length (car (last pieces))))))
    (and (<= start end)
         (gemini-companion-privacy--piece-at-p piece text 0)
         (if (null pieces)
             (= start end)
           (and (gemini-companion-privacy--piece-at-p (car (last pieces))
                                                      text end)
                (progn
                  (while (and start (cdr pieces))
                    (setq start (gemini-companion-privacy--piece-end
                                 (pop pieces) text start end)))
                  start))))))

(defun gemini-companion-privacy--piece-end (piece text start end)
  "Return where PIECE ends that is first in TEXT from START to END, or nil."
  (let ((last (- end (length piece))))
    (if (stringp piece)
        (let ((found (string-search piece text start)))
          (gemini-companion-privacy--spend
           (1+ (/ (- (or found (length text)) start) 64)))
          (and found (<= found last) (+ found (length piece))))
      (while (and (<= start last)
                  (not (gemini-companion-privacy--piece-at-p piece text start)))
        (cl-incf start))
      (and (<= start last) (+ start (length piece))))))

(defun gemini-companion-privacy--piece-at-p (piece text start)
  "Return non-nil if PIECE matches at START of TEXT."
  (gemini-companion-privacy--spend 1)
  (if (stringp piece)
      (eq t (compare-strings piece nil nil text start (+ start (length piece))))
    (cl-loop for part across piece
             for index from start
             always (gemini-companion-privacy--part-p part (aref text index)))))

(defun gemini-companion-privacy--part-p (part thing)
  "Return non-nil if PART of a piece matches THING, a character or a name."
  (gemini-companion-privacy--spend 1)
  (cond ((stringp thing) (gemini-companion-privacy--match-p part thing))
        ((integerp part) (eq part thing))
        (t (not (eq (car part)
                    (cl-loop for (first . last) in (cdr part)
                             thereis (<= first thing last)))))))

(defun gemini-companion-privacy--rules (file)
  "Return the rules in FILE, a .geminiignore, the last one first.
Each is a list of pieces, whether it is for directories only, and
whether it restores what a rule before it ignores."
  (gemini-companion-privacy--spend
   (file-attribute-size (file-attributes (file-truename file))))
  (with-temp-buffer
    (insert-file-contents file)
    (let (rules)
      (while (not (eobp))
        (gemini-companion-privacy--spend 10)
        (when-let* ((rule (catch 'invalid (gemini-companion-privacy--rule))))
          (push rule rules))
        (forward-line))
      rules)))

(defun gemini-companion-privacy--rule ()
  "Return the rule on the line at point, or nil."
  (unless (eq (char-after) ?#)
    (gemini-companion-privacy--trim)
    (let* ((negated (when (eq (char-after) ?!) (forward-char) t))
           (anchored (looking-at-p ".*/."))
           (names (list (gemini-companion-privacy--name)))
           directory)
      (while (eq (char-after) ?/)
        (forward-char)
        (push (gemini-companion-privacy--name) names))
      (when (and (cdr names) (equal (car names) '("")))
        (pop names)
        (setq directory t))
      ;; At the end ** stands for something, elsewhere for nothing too.
      (when (eq (car names) '**)
        (push '("" "") names))
      (setq names (nreverse names))
      (cond ((not anchored) (push '** names))
            ((equal (car names) '("")) (pop names)))
      (unless (equal (car (last names)) '(""))
        (list (gemini-companion-privacy--path-pieces names)
              directory negated)))))

(defun gemini-companion-privacy--trim ()
  "Delete the space at the end of the line, unless it is escaped."
  (save-excursion
    (end-of-line)
    (skip-chars-backward "\r" (1- (point)))
    (skip-chars-backward " ")
    (when (and (eq (char-after) ?\s)
               (cl-oddp (save-excursion (skip-chars-backward "\\\\"))))
      (forward-char))
    (delete-region (point) (line-end-position))))

(defun gemini-companion-privacy--path-pieces (names)
  "Return the pieces into which `**' divides NAMES."
  (let ((pieces (list nil)))
    (dolist (name names)
      (if (eq name '**)
          (push nil pieces)
        (push name (car pieces))))
    (nreverse (mapcar (lambda (piece) (vconcat (nreverse piece))) pieces))))

(defun gemini-companion-privacy--name ()
  "Move over a name in a pattern, and return its pieces, or `**' for that."
  (if (looking-at-p "\\*\\*+\\(?:/\\|$\\)")
      (progn (skip-chars-forward "*") '**)
    (let ((pieces (list (gemini-companion-privacy--piece))))
      (while (eq (char-after) ?*)
        (skip-chars-forward "*")
        (push (gemini-companion-privacy--piece) pieces))
      (nreverse pieces))))

(defun gemini-companion-privacy--piece ()
  "Move over a piece of characters in a pattern, and return it.
It is a string, or a vector if it has classes."
  (let ((beginning (point)))
    (skip-chars-forward "^*?[\\\\/\n")
    (let ((piece (buffer-substring beginning (point))))
      (if (memq (char-after) '(?* ?/ ?\n nil))
          piece
        (let ((parts (nreverse (append piece nil))))
          (while (not (memq (char-after) '(?* ?/ ?\n nil)))
            (push (gemini-companion-privacy--part) parts))
          (setq parts (nreverse parts))
          (if (seq-every-p #'integerp parts)
              (concat parts)
            (vconcat parts)))))))

(defun gemini-companion-privacy--part ()
  "Move over a character or class, and return it.
A class is a cons of whether it is negated, and a list of ranges."
  (pcase (char-after)
    (?? (forward-char) '(t))
    (?\[ (forward-char) (gemini-companion-privacy--class))
    (_ (gemini-companion-privacy--character))))

(defun gemini-companion-privacy--character ()
  "Move over a character, escaped or not, and return it."
  (when (eq (char-after) ?\\)
    (forward-char))
  (when (eolp)
    (throw 'invalid nil))
  (prog1 (char-after) (forward-char)))

(defun gemini-companion-privacy--class ()
  "Move over a class of characters, from behind its bracket, and return it."
  (let ((negated (when (memq (char-after) '(?! ?^)) (forward-char) t))
        (beginning (point))
        ranges)
    (while (or (= (point) beginning) (not (eq (char-after) ?\])))
      (setq ranges (nconc (gemini-companion-privacy--ranges) ranges)))
    (forward-char)
    (cons negated ranges)))

(defun gemini-companion-privacy--ranges ()
  "Move over a part of a class, and return a new list of its ranges."
  (if (looking-at "\\[:\\([a-z]*\\):\\]")
      (progn
        (goto-char (match-end 0))
        (or (copy-sequence
             (cdr (assoc (match-string 1) gemini-companion-privacy--classes)))
            (throw 'invalid nil)))
    (let ((first (gemini-companion-privacy--character)))
      (list (cons first
                  (if (looking-at-p "-[^]\n]")
                      (progn (forward-char)
                             (gemini-companion-privacy--character))
                    first))))))

;;;; Files

(defun gemini-companion-privacy-hidden-p (buffer)
  "Return non-nil if the file that BUFFER visits may not be shared.
Nothing of a remote file may, and of an indirect buffer nothing that
may not be shared of its base."
  (let* ((base (buffer-base-buffer buffer))
         (file (buffer-file-name (or base buffer))))
    (or (and base (gemini-companion-privacy-hidden-p base))
        (gemini-companion-privacy-cached
         gemini-companion-privacy--buffers buffer
         (list file
               (buffer-local-value 'major-mode buffer)
               (buffer-local-value 'gemini-companion-share buffer)
               (with-current-buffer buffer (visited-file-modtime)))
         (lambda ()
           (or (not file)
               (and (file-remote-p file) t)
               (not (buffer-local-value 'gemini-companion-share buffer))
               (gemini-companion-privacy--doubtful
                (lambda ()
                  (gemini-companion-privacy--file-hidden-p file buffer)))))))))

(defun gemini-companion-privacy--file-hidden-p (file buffer)
  "Return non-nil if the local FILE, visited by BUFFER, may not be told."
  (let ((names (gemini-companion-privacy--names file))
        (gemini-companion-privacy--steps gemini-companion-privacy--most-steps))
    (or (gemini-companion-privacy--excluded-p names buffer)
        (seq-some (lambda (name)
                    (or (gemini-companion-privacy-folder-hidden-p
                         (file-name-directory name))
                        (and gemini-companion-respect-geminiignore
                             (gemini-companion-privacy--ignored-p name))))
                  names))))

(provide 'gemini-companion-privacy)
;;; gemini-companion-privacy.el ends here
