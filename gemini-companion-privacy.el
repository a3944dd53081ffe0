;;; gemini-companion-privacy.el --- What is never shared, and the workspace roots  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Which files and directories are hidden from the CLIs: those that the user
;; excludes by name, mode or function, projects that opt out, and what their
;; .geminiignore files name.  When in doubt, for example after an error in a
;; function of the user, a file is hidden.
;;
;; A CLI connects to this Emacs if it runs in one of the workspace roots or below.
;; They are the projects of the open files and of the terminals.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-server)
(require 'gemini-companion-names)
(require 'gemini-companion-text)

(defvar auth-sources)

;;;; Customization

(defgroup gemini-companion-sharing nil
  "Files and workspace roots to share with CLIs."
  :group 'gemini-companion)

(defcustom gemini-companion-excluded
  '("/\\.authinfo[^/]*\\'" "/[._]netrc[^/]*\\'" "/\\.pgpass\\'" "/\\.my\\.cnf\\'"
    "/\\.git-credentials\\'" "/\\.npmrc\\'" "/\\.pypirc\\'" "/\\.htpasswd\\'"
    "/\\.?\\(?:credentials\\|secrets\\)\\(?:\\.[^/]*\\)?\\'"
    "\\(?:credential\\|secret\\)s?\\(?:[-_.][^/]*\\)?\\.\\(?:json\\|ya?ml\\|csv\\)\\'"
    "service[-_]?account[^/]*\\.json\\'"
    "/\\.\\(?:dockercfg\\|vault-token\\|s3cfg\\|boto\\|terraformrc\\)\\'"
    "[/.]kubeconfig[^/]*\\'" "\\.tf\\(?:state\\|vars\\)\\(?:\\.[^/]*\\)?\\'"
    "\\.\\(?:gpg\\|pgp\\|asc\\|age\\)\\'"
    "/\\.env[^/]*\\'" "\\.env\\'" "/id_\\(?:rsa\\|dsa\\|ecdsa\\|ed25519\\)[^/]*\\'"
    "\\.\\(?:pem\\|key\\|ppk\\|p8\\|p12\\|pfx\\|jks\\|keystore\\|kdbx?\\)\\'"
    "/\\.\\(?:ssh\\|gnupg\\|password-store\\|aws\\|azure\\|kube\\|docker\\)/"
    "/\\.config/\\(?:gcloud\\|gh\\)/"
    "/pass\\.[[:alnum:]]\\{13\\}/"
    gemini-companion-auth-source-p authinfo-mode pass-view-mode)
  "Files never shared with a CLI, neither their names nor their text.
Each element is one of
- a regexp, which is matched against the absolute name of the file,
  and each one to which links lead, ignoring case;
- a major mode, a symbol that ends in `-mode'; modes derived from
  it count too;
- a function, which is called with the absolute name of a file and
  its buffer, or with the name of a directory, with a slash at its
  end, and nil; it returns non-nil to exclude it.  Its value is kept until
  the file is saved or renamed, or a CLI connects.

If a directory is excluded, so is all below it, and no CLI can connect
to this Emacs from there, unless the directory is in an open project.

While such a file is selected, no file is reported as active.  Edits
that a CLI proposes for such a file are shown like others, as the
CLI has read it by itself.  Takes effect at once."
  :type '(repeat (choice (regexp :tag "Regexp for file names")
                         (function-item gemini-companion-auth-source-p)
                         (symbol :tag "Major mode or function")
                         (function :tag "Function")))
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-share t
  "Nil means not to share this file or project.
Meant to be set in the .dir-locals.el of a project:
  ((nil . ((gemini-companion-share . nil))))
No CLI can then connect to this Emacs from there, either.
With a default of nil, only projects that set it to t are shared.
A project cannot opt in by itself: t in a .dir-locals.el takes
effect only after you have marked it as safe, with ! when Emacs
asks about it."
  :type 'boolean
  :safe #'null
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-share-outside-projects nil
  "Non-nil means to share files that are outside all roots, too.
The roots are the projects of the open files and terminals, and the
directories of files in no project.  Outside are files directly in
the home directory and in /."
  :type 'boolean
  :package-version '(gemini-companion . "0.1.0"))

(defconst gemini-companion-privacy-options
  '(gemini-companion-excluded gemini-companion-share-outside-projects)
  "Options that affect what is shared, which a project must not set.")

;; Otherwise a project could share more than the user wants, if local variables
;; are set without a question.
(dolist (option (cons 'gemini-companion-paused
                      gemini-companion-privacy-options))
  (add-to-list 'ignored-local-variables option))

;;;; State

(defvar gemini-companion-privacy--cache (make-hash-table :test #'equal)
  "Hash table of `gemini-companion-privacy-cached'.")

(defvar gemini-companion-privacy-problem nil
  "Symbol of the last error in a check, or nil.")

(defun gemini-companion-privacy-refresh (&optional if-changed)
  "Drop the cached values.
If IF-CHANGED is non-nil, do so only if a file that decides what is
shared has changed.  No hook runs when another program writes it.  If
IF-CHANGED is `old', a new file does not count, which takes less time."
  (unless (and if-changed
               (cl-loop
                for key being the hash-keys of gemini-companion-privacy--cache
                using (hash-values time)
                never (pcase key
                        ((and `(time ,file)
                              (guard (or time (not (eq if-changed 'old)))))
                         (not (equal time (gemini-companion-privacy--time
                                           file)))))))
    (clrhash gemini-companion-privacy--cache)
    (setq gemini-companion-privacy-problem nil)))

(defun gemini-companion-privacy--time (file)
  (file-attribute-modification-time (gemini-companion-text-attributes file)))

(defun gemini-companion-privacy--note-time (file)
  (gemini-companion-privacy-cached
   (list 'time file) (lambda () (gemini-companion-privacy--time file))))

(defun gemini-companion-privacy-cached (key compute)
  "Return the value kept for KEY, or else call COMPUTE for it.
KEY is a list of all on which the value depends until a refresh."
  (let ((value (gethash key gemini-companion-privacy--cache 'none)))
    (if (eq value 'none)
        (puthash key (funcall compute) gemini-companion-privacy--cache)
      value)))

(defun gemini-companion-privacy-drop (key)
  "Drop the value kept for KEY."
  (remhash key gemini-companion-privacy--cache))

;;;; Exclusions

(defun gemini-companion-auth-source-p (file _buffer)
  "Return non-nil if FILE is one of `auth-sources'."
  (require 'auth-source)
  (seq-some (apply-partially #'gemini-companion-text-same-file-p file)
            (gemini-companion-privacy-cached
             (list 'auth-sources auth-sources)
             (lambda ()
               (cl-loop for source in auth-sources
                        for name = (if (keywordp (car-safe source))
                                       (plist-get source :source)
                                     source)
                        when (and (stringp name) (not (file-remote-p name)))
                        collect (file-truename name))))))

(defun gemini-companion-privacy--excluded-p (names buffer)
  "Return non-nil if a file with NAMES, visited by BUFFER, is excluded.
BUFFER is nil for a directory."
  (let ((case-fold-search t))
    (seq-some
     (lambda (element)
       (cond ((stringp element)
              (seq-some (lambda (name) (string-match-p element name)) names))
             ((and (symbolp element)
                   (string-suffix-p "-mode" (symbol-name element)))
              (and buffer
                   (provided-mode-derived-p
                    (buffer-local-value 'major-mode buffer) element)))
             (t (seq-some (lambda (name) (funcall element name buffer))
                          names))))
     gemini-companion-excluded)))

(defun gemini-companion-privacy--linked (name)
  "Return the absolute NAME and those to which its links lead, the last one last."
  (let ((last (file-name-nondirectory name)))
    (if (string-empty-p last)
        (list name)
      ;; A name may begin with "~", which `expand-file-name' would expand.
      (let* ((names (mapcar (lambda (above) (file-name-concat above last))
                            (gemini-companion-privacy--linked
                             (directory-file-name (file-name-directory name)))))
             (link (car (last names)))
             (target (file-symlink-p link)))
        (append names
                (and target
                     (gemini-companion-privacy--linked
                      (directory-file-name
                       (expand-file-name
                        (if (string-prefix-p "/" target)
                            target
                          (concat (file-name-directory link) target)))))))))))

(defun gemini-companion-privacy--names (file)
  "Return the absolute names by which FILE is known, also those between links.
A backup or compressed copy of a file has the name of that file, too, and
a member of an archive is below the archive."
  (let* ((name (directory-file-name (expand-file-name file)))
         ;; It signals an error if the links are a loop.
         (names (cons (file-truename name)
                      (gemini-companion-privacy--linked name))))
    (delete-dups
     (append names
             (mapcar
              (lambda (name)
                (let ((name (replace-regexp-in-string
                             "\\(?:\\.\\(?:gz\\|bz2\\|xz\\|zst\\|lzma\\|lz\\|Z\\|bak\\|old\\|orig\\|~[^/]+\\)\\)+\\'"
                             ""
                             (file-name-sans-versions
                              (replace-regexp-in-string
                               "/#\\([^/]+\\)#\\'" "/\\1" name)))))
                  ;; In a directory for all backups, its last part is all of it.
                  (if (string-match "/\\(![^/]*\\)\\'" name)
                      (string-replace "!" "/" (match-string 1 name))
                    (replace-regexp-in-string "\\(\\.[[:alnum:]]+\\)[:!]"
                                              "\\1/" name))))
              names)))))

;;;; Projects

(defun gemini-companion-privacy--directory-hidden-p (directory)
  "Return non-nil if nothing in the local DIRECTORY may be shared."
  (gemini-companion-privacy--hidden-if
   (list 'directory directory)
   (lambda ()
     (or (seq-some
          (lambda (name)
            (locate-dominating-file
             (file-name-as-directory name)
             (lambda (above)
               (dolist (name gemini-companion-names-dir-locals)
                 (let ((file (expand-file-name name above)))
                   (gemini-companion-privacy--note-time file)
                   ;; Emacs ignores a malformed file; the error hides all below.
                   (when (file-regular-p file)
                     (let ((text (gemini-companion-text-read file)))
                       (when (string-search "gemini-companion-share" text)
                         (read text))))))
               (setq above (expand-file-name above))
               (gemini-companion-privacy--excluded-p
                ;; What is above the copies is not of their host.
                (if (gemini-companion-names-of-copy name)
                    (ensure-list (cdr (gemini-companion-names-of-copy above)))
                  (list above))
                nil))))
          (gemini-companion-privacy--names directory))
         (gemini-companion-privacy--opted-out-p
          ;; A buffer may have it with "~".
          (file-name-as-directory (expand-file-name directory))
          'fundamental-mode)))))

(defun gemini-companion-privacy--opted-out-p (name mode)
  "Return non-nil if directory variables opt out of sharing NAME in MODE.
NAME is a file, or a directory with a slash.  Emacs has only those of the
innermost .dir-locals.el, but one that does not mention sharing must not
make a part of a private project public."
  (gemini-companion-privacy-cached
   (list 'opted-out name mode)
   (lambda ()
     (with-temp-buffer
       (setq default-directory (file-name-directory name)
             major-mode mode)
       ;; An opt-out counts even if the user has disabled such variables, and
       ;; an opt-in only if it is marked as safe.
       (let ((enable-local-variables :safe)
             (enable-dir-local-variables t)
             (buffer-file-name name)
             (above (file-name-directory (directory-file-name name))))
         (hack-dir-local-variables)
         (pcase (assq 'gemini-companion-share file-local-variables-alist)
           (`(,_ . ,shared) (not shared))
           (_ (or (not (default-value 'gemini-companion-share))
                  (unless (equal above name)
                    (gemini-companion-privacy--opted-out-p above mode))))))))))

(defun gemini-companion-privacy--hidden-if (key predicate)
  "Return the value kept for KEY, or of PREDICATE, or t if it signals an error."
  (gemini-companion-privacy-cached
   key
   (lambda ()
     (condition-case problem
         (save-match-data (funcall predicate))
       (error
        (setq gemini-companion-privacy-problem (car problem))
        ;; The error message may contain the name of the file.
        (gemini-companion-server-record
         'failed 'gemini-companion-excluded (list (symbol-name (car problem))))
        t)))))

;;;; Ignored files

(defun gemini-companion-privacy--ignored-p (file)
  "Return non-nil if an ignore file, such as .geminiignore, names FILE.
A file in an ignored directory cannot be included again."
  (cl-loop
   with case-fold-search = (file-name-case-insensitive-p file)
   with parts = (split-string file "/" t)
   for name in (gemini-companion-clients-all :ignore-files)
   for rules = (gemini-companion-privacy--ignore-rules
                name (file-name-directory file))
   thereis (cl-loop
            for depth from 1 to (length parts)
            ;; The first rule that matches decides.
            thereis (cl-loop
                     for (above pattern directory negated) in rules
                     when (and (< above depth)
                               (or (not directory) (< depth (length parts)))
                               (gemini-companion-privacy--match-p
                                pattern (seq-subseq parts above depth)))
                     return (not negated)))))

(defun gemini-companion-privacy--ignore-rules (name directory)
  "Return the rules of the files NAME in DIRECTORY and above.
The rules of the innermost file come first."
  (gemini-companion-privacy-cached
   (list 'ignored name directory)
   (lambda ()
     (let ((file (expand-file-name name directory))
           (outside (file-name-directory (directory-file-name directory))))
       (gemini-companion-privacy--note-time file)
       (append (when (file-regular-p file)
                 (gemini-companion-privacy--rules
                  file (length (split-string directory "/" t))))
               (unless (equal outside directory)
                 (gemini-companion-privacy--ignore-rules name outside)))))))

;;;; Patterns

;; A pattern is a list of names, with nil for `**'; a name is a list of regexps
;; with gaps between them that match anything.  A regexp matches texts of one
;; length only, and what follows a gap is matched where it is found first, so no
;; pattern takes exponential time.

(defun gemini-companion-privacy--match-p (pattern path)
  "Return non-nil if PATTERN matches PATH, a list of file names."
  ;; The parts of PATH that may be left, the longest first.
  (let ((rests (list path)))
    (dolist (name pattern (memq nil rests))
      (setq rests
            (if name
                (cl-loop for (text . rest) in (remq nil rests)
                         when (cl-loop for regexp in name
                                       for start = 0 then (match-end 0)
                                       always (string-match regexp text start))
                         collect rest)
              (and rests
                   `(,@(cl-maplist #'identity (car rests)) nil)))))))

(defun gemini-companion-privacy--rules (file above)
  "Return the rules in FILE, a .geminiignore, the last one first.
Each is a list of ABOVE, the number of parts of its directory, a
pattern, whether it is for directories only, and whether it includes
again what a previous rule ignores."
  (let ((text (gemini-companion-text-normalized
               (concat (gemini-companion-text-read file) "\n")))
        (rules nil))
    (dolist (line (split-string text "[ \t]*\n") rules)
      (let* ((pattern (string-remove-prefix "!" line))
             (names (split-string (string-remove-suffix "/" pattern) "/"))
             (anchored (cdr names)))
        (unless (or (string-prefix-p "#" line) (equal "" (car (last names))))
          (when (equal "" (car names))
            (pop names))
          ;; As Git does.
          (ignore-error invalid-regexp
            (setq names (mapcar #'gemini-companion-privacy--name names))
            (push (list above
                        (append (unless anchored '(nil))
                                names
                                ;; At the end ** stands for at least one name,
                                ;; elsewhere for any number.
                                (unless (car (last names)) '((""))))
                        (string-suffix-p "/" pattern)
                        (string-prefix-p "!" line))
                  rules)))))))

(defun gemini-companion-privacy--name (text)
  "Return a pattern for the name TEXT, or nil for `**'.
Signal an error if it is malformed."
  (unless (string-match-p "\\`\\*\\*+\\'" text)
    (let ((regexps
           (split-string
            (concat
             "\\`"
             (replace-regexp-in-string
              ;; Stars, a class, a character.
              (concat "\\*+\\|\\[[!^]?\\(?:\\[:[a-z]+:]\\|.\\)"
                      "\\(?:\\[:[a-z]+:]\\|[^]]\\)*]\\|\\\\.\\|.")
              (lambda (token)
                (pcase token
                  ((pred (string-prefix-p "*")) "\0")
                  ("?" "[^/]")
                  ((or "[" "\\") (signal 'invalid-regexp (list token)))
                  ((pred (string-prefix-p "[!"))
                   (concat "[^" (substring token 2)))
                  ((pred (string-prefix-p "[")) token)
                  (_ (regexp-quote (substring token -1)))))
              text t t)
             "\\'")
            "\0")))
      (dolist (regexp regexps regexps)
        (string-match-p regexp "")))))

;;;; Files

(defun gemini-companion-privacy-hidden-p (buffer)
  "Return non-nil if the file that BUFFER visits may not be shared.
A remote file may not, unless its host is connected."
  (let* ((buffer (or (buffer-base-buffer buffer) buffer))
         (file (gemini-companion-names-file buffer))
         ;; The copy has the true name of a remote file.
         (visited (gemini-companion-names-copy
                   (or (buffer-file-name buffer) "")))
         (shared (buffer-local-value 'gemini-companion-share buffer)))
    (gemini-companion-privacy--hidden-if
     (list 'buffer buffer file visited shared
           (buffer-local-value 'major-mode buffer)
           (with-current-buffer buffer (visited-file-modtime)))
     (lambda ()
       (or (not file)
           (not shared)
           (gemini-companion-privacy--file-hidden-p file buffer)
           (and visited
                (gemini-companion-privacy--file-hidden-p visited buffer)))))))

(defun gemini-companion-privacy--file-hidden-p (file buffer)
  (or (file-remote-p file)
      (let ((names (gemini-companion-privacy--names file)))
        (or (gemini-companion-privacy--excluded-p
             (mapcar (lambda (name)
                       (or (cdr (gemini-companion-names-of-copy name)) name))
                     names)
             buffer)
            (seq-some (lambda (name)
                        (or (gemini-companion-privacy--directory-hidden-p
                             (file-name-directory name))
                            (gemini-companion-privacy--opted-out-p
                             name (buffer-local-value 'major-mode buffer))
                            (gemini-companion-privacy--ignored-p name)))
                      names)
            (gemini-companion-privacy--text-opts-out-p (car names))))))

(defun gemini-companion-privacy--text-opts-out-p (file)
  "Return non-nil if the local variables in FILE, a true name, opt out.
They count even if the user has disabled such variables."
  (let* ((file-name-handler-alist nil)
         (size (file-attribute-size (file-attributes file))))
    (when (and size (file-regular-p file))
      (with-temp-buffer
        ;; They are in one of the first lines or in the last 3000 characters.
        (insert-file-contents-literally file nil (max 0 (- size 12000)) size)
        (when (< 12000 size)
          (insert-file-contents-literally file nil 0 1000))
        (re-search-forward
         "gemini-companion-share[ \t]*:[ \t]*\\(?:nil\\|()\\)" nil t)))))

(defun gemini-companion-privacy-name-hidden-p (file)
  "Return non-nil if FILE, an absolute name, may not be shared.
It need not be visited."
  (setq file (or (gemini-companion-names-copy file) file))
  (let ((buffer (gemini-companion-names-buffer file)))
    (or (and buffer (gemini-companion-privacy-hidden-p buffer))
        ;; It may be visited by another name, a link.
        (unless (and buffer (equal file (gemini-companion-names-file buffer)))
          (gemini-companion-privacy--hidden-if
           (list 'file file (gemini-companion-privacy--time file))
           (lambda ()
             (with-temp-buffer
               ;; Modes, too, may be excluded.
               (let ((mode (assoc-default file auto-mode-alist
                                          #'string-match-p)))
                 (when (symbolp mode)
                   (setq major-mode mode)))
               (gemini-companion-privacy--file-hidden-p
                file (current-buffer)))))))))

(declare-function project-root "project")

(defvar gemini-companion-roots-last nil
  "The last computed roots.")

;;;; Roots

(defun gemini-companion-roots (directory)
  "Return the workspace roots, a list of true names of directories.
They are the projects of the open files and of the terminals, and the
project of DIRECTORY.  In place of a project that does not exist, the
directory itself is used.  The home directory, the root of the file
system and directories that are not shared are never among them."
  (cl-loop for directory in (delete-dups
                             `(,@(mapcar #'gemini-companion-roots--of-buffer
                                         (buffer-list))
                               ,directory))
           for root = (and directory
                           ;; Tramp would search for a project.
                           (not (file-remote-p directory))
                           (not (gemini-companion-privacy--directory-hidden-p
                                 directory))
                           (cdr (gemini-companion-roots--root directory)))
           unless (or (null root)
                      (member root roots)
                      (gemini-companion-privacy--directory-hidden-p root))
           collect root into roots
           finally return (setq gemini-companion-roots-last roots)))

(defun gemini-companion-roots-outermost (name &optional session)
  "Return a list of the outermost root above NAME, and OWN.
NAME is a true name; that of a directory ends with a slash.  Roots of the
CLI of SESSION come first, and OWN is non-nil if the root is one of them."
  (pcase-let* (((map :directory :remote) session)
               (outermost (lambda (roots)
                            (car (seq-sort-by #'length #'<
                                              (gemini-companion-roots--above
                                               name roots)))))
               (own (funcall
                     outermost
                     (cond (remote (gemini-companion-names-roots remote))
                           ((or (null directory) (file-remote-p directory)) nil)
                           ((gemini-companion-roots--above
                             (file-name-as-directory directory)
                             gemini-companion-roots-last))
                           ;; A root may be dropped while the CLI is connected.
                           (t (ensure-list (cdr (gemini-companion-roots--root
                                                 directory))))))))
    (list (or own (funcall outermost (gemini-companion-roots-all)))
          own)))

(defun gemini-companion-roots--above (name roots)
  "Return the ROOTS that contain NAME; all are true names.
If NAME is a directory, it ends with a slash."
  (seq-filter (apply-partially #'gemini-companion-text-in-directory-p name)
              roots))

(defun gemini-companion-roots-all ()
  "Return the last computed roots, and the copies of roots of remote hosts."
  (append gemini-companion-roots-last (gemini-companion-names-roots)))

(defun gemini-companion-roots--of-buffer (buffer)
  (if-let* ((file (gemini-companion-text-visited buffer)))
      (unless (gemini-companion-privacy-hidden-p buffer)
        (file-name-directory file))
    (and (gemini-companion-roots-terminal-p buffer)
         (buffer-local-value 'default-directory buffer))))

(defun gemini-companion-roots-terminal-p (buffer)
  "Return non-nil if BUFFER is a terminal."
  (seq-some (apply-partially #'provided-mode-derived-p
                             (buffer-local-value 'major-mode buffer))
            '(vterm-mode eat-mode term-mode eshell-mode shell-mode)))

(defun gemini-companion-roots--root (directory)
  "Return (PLACE . TRUE-NAME) for DIRECTORY, or nil if it cannot be a root.
PLACE is the root of the project of DIRECTORY, or else DIRECTORY
itself, and TRUE-NAME is the true name of PLACE."
  (gemini-companion-privacy-cached
   (list 'root-of directory)
   (lambda ()
     (cl-loop
      for place in (list
                    ;; A user's function in `project-find-functions' may fail.
                    (ignore-errors
                      (when-let* ((project (project-current nil directory)))
                        (project-root project)))
                    directory)
      for root = (and place (directory-file-name (file-truename place)))
      when (and root
                (file-directory-p root)
                (not (seq-some (apply-partially #'file-equal-p root)
                               '("~" "/"))))
      return (cons (file-name-as-directory (expand-file-name place)) root)))))

;;;; Names

(defun gemini-companion-roots-name (file)
  "Return the name of FILE for a CLI in one of the roots.
It begins with the true name of the root, which the CLI uses for its
own directory, and continues as FILE is visited.  Return nil if FILE
is in none of the last computed roots."
  (pcase-let* ((`(,root . ,true-name)
                (gemini-companion-roots--root (file-name-directory file)))
               (file (expand-file-name file))
               (roots (gemini-companion-roots-all))
               (name (and root
                          (string-prefix-p root file)
                          (concat (file-name-as-directory true-name)
                                  (substring file (length root))))))
    (cl-flet ((in-root (name)
                (and name (gemini-companion-roots--above name roots) name)))
      ;; To compare with many roots, or to follow the links, takes ten times as
      ;; long as the rest.
      (or (and (member true-name roots) name)
          (in-root name)
          (in-root (file-truename file))))))

;;;; Status

(cl-defmethod gemini-companion-part-findings ((_part (eql 'privacy)) directory)
  "Return the finding about whether a CLI in DIRECTORY may connect."
  (cond
   ((null (gemini-companion-server-info)) nil)
   ;; Emacs 28 asks the remote host to abbreviate.
   ((file-remote-p directory)
    (unless (assoc (file-remote-p directory) gemini-companion-names-remotes)
      `((note ,(format "%s, the host of this directory, is not connected"
                       (gemini-companion-names-title (file-remote-p directory)))
              ,(substitute-command-keys
                "Type \\[gemini-companion-connect] in a buffer of that \
host.")))))
   ((and (not (member (file-name-as-directory directory)
                      (list (expand-file-name "~/") "/")))
         (car (gemini-companion-roots-outermost
               (file-name-as-directory (file-truename directory)))))
    `((good ,(format "A CLI may connect from %s"
                     (abbreviate-file-name directory)))))
   ((gemini-companion-privacy--directory-hidden-p directory)
    `((bad ,(format "%s is excluded from sharing, so no CLI can connect \
from there" (gemini-companion-name-absolute directory))
           "See `gemini-companion-excluded', and `gemini-companion-share' in \
its .dir-locals.el.")))
   (t
    `((bad ,(format "%s is in none of the workspace roots, so no CLI can \
connect from there" (gemini-companion-name-absolute directory))
           "Start it in a project, or open a file of that project, then type \
/ide enable, or /ide in Copilot CLI.  The home directory and / are never \
roots.")))))

(provide 'gemini-companion-privacy)
;;; gemini-companion-privacy.el ends here
