;;; gemini-companion-privacy.el --- Files that are never shared  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Decide which files and directories are hidden from the CLIs: files that the user
;; excludes by name, mode or function, projects that opt out of sharing, and files that
;; an ignore file such as .geminiignore lists.  In doubt, for example after an error in
;; a function of the user, a file is hidden.
;;
;; A file is hidden if one of these rules hides one of its names; no rule overrides
;; another:
;; 1. it is remote, and its host is not connected;
;; 2. an element of `gemini-companion-excluded' matches;
;; 3. a directory above it is excluded, has a malformed .dir-locals.el that
;;    mentions sharing, or its directory variables opt out;
;; 4. its directory variables opt out in its mode;
;; 5. an ignore file lists it, see gemini-companion-ignore.el;
;; 6. the local variables of the file opt out.
;;
;; The names of a file are its true name, and the name of each link to it.  A backup,
;; a compressed copy or a member of an archive also has the names of the original.
;;
;; Hooks ask about files at each command, so answers are cached until a file with
;; rules changes; see gemini-companion-cache.el.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-cache)
(require 'gemini-companion-ignore)
(require 'gemini-companion-log)
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
  and each name to which links lead, ignoring case;
- a major mode, a symbol that ends in `-mode', which stands for
  modes derived from it as well;
- a function, which is called with the absolute name of a file and
  its buffer, or with the name of a directory, with a slash at its
  end, and nil; it returns non-nil to exclude it.  Its value is kept until
  the file is saved or renamed, or a CLI connects.

If a directory is excluded, so are all files below it, and no CLI can connect
to this Emacs from there, unless the directory is in an open project.

While such a file is selected, no file is reported as active.  Edits
that a CLI proposes for such a file are displayed, since the CLI has
read the file by itself.  Takes effect at once."
  :type '(repeat (choice (regexp :tag "Regexp for file names")
                         (function-item gemini-companion-auth-source-p)
                         (symbol :tag "Major mode or function")
                         (function :tag "Function")))
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-share t
  "Nil means not to share this file or project.
Set it in the .dir-locals.el of a project:
  ((nil . ((gemini-companion-share . nil))))
Then no CLI can connect to this Emacs from the project.
With a default of nil, only projects that set it to t are shared.
A project cannot opt in by itself: t in a .dir-locals.el takes
effect only after you have marked it as safe, with ! when Emacs
asks about it."
  :type 'boolean
  :safe #'null
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-share-outside-projects nil
  "Non-nil means to share files outside of all workspace roots as well.
The roots are the projects of the open files and terminals, and the
directories of files without a project.  Files directly in the home directory
and in / are outside."
  :type 'boolean
  :package-version '(gemini-companion . "0.1.0"))

(defconst gemini-companion-privacy-options
  '(gemini-companion-excluded gemini-companion-share-outside-projects)
  "Options that decide what is shared; a project must not set them.")

;; Emacs may set local variables without a question, and a project could share more
;; than the user wants.
(dolist (option (cons 'gemini-companion-context-paused
                      gemini-companion-privacy-options))
  (add-to-list 'ignored-local-variables option))

;;;; State

(defvar gemini-companion-privacy-problem nil
  "Symbol of the last error in a check, or nil.")

(defvar gemini-companion-privacy-refresh-hook nil
  "Hook run when other files may be shared than before.")

(defun gemini-companion-privacy-refresh (&optional if-changed)
  "Drop the cached answers about files and roots.
If IF-CHANGED is non-nil, do so only if a file with rules has changed; see
`gemini-companion-cache-refresh'.  Call this regularly, since no hook runs when
another program writes such a file."
  (when (gemini-companion-cache-refresh if-changed)
    (setq gemini-companion-privacy-problem nil)
    (run-hooks 'gemini-companion-privacy-refresh-hook)))

;;;; Exclusions

(defun gemini-companion-auth-source-p (file _buffer)
  "Return non-nil if FILE is one of `auth-sources'."
  (require 'auth-source)
  (seq-some (apply-partially #'gemini-companion-text-same-file-p file)
            (gemini-companion-cache-get
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
  ;; Without functions, which would be garbage for each file.
  (let ((case-fold-search t))
    (cl-loop for element in gemini-companion-excluded
             thereis
             (cond ((stringp element)
                    (cl-loop for name in names
                             thereis (string-match-p element name)))
                   ((and (symbolp element)
                         (string-suffix-p "-mode" (symbol-name element)))
                    (and buffer
                         (provided-mode-derived-p
                          (buffer-local-value 'major-mode buffer) element)))
                   (t (cl-loop for name in names
                               thereis (funcall element name buffer)))))))

(defun gemini-companion-privacy--linked (name)
  "Return a list of the absolute NAME and the names to which its links lead.
The true name is last."
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
  "Return all absolute names of FILE, including each link on the way.
A backup or compressed copy of a file also has the name of that file, and a
member of an archive has a name below the archive."
  (let* ((name (directory-file-name (expand-file-name file)))
         ;; `file-truename' signals an error if the links are a loop.
         (names (cons (file-truename name)
                      (gemini-companion-privacy--linked name))))
    (delete-dups
     (append names
             (mapcar
              (lambda (name)
                (let ((name (gemini-companion-privacy--sans-suffixes
                             (file-name-sans-versions
                              (replace-regexp-in-string
                               "/#\\([^/]+\\)#\\'" "/\\1" name)))))
                  ;; A directory for all backups has names such as !home!me!a.el.
                  (if (string-match "/\\(![^/]*\\)\\'" name)
                      (string-replace "!" "/" (match-string 1 name))
                    (replace-regexp-in-string "\\(\\.[[:alnum:]]+\\)[:!]"
                                              "\\1/" name))))
              names)))))

(defun gemini-companion-privacy--sans-suffixes (name)
  "Return the file NAME without the suffixes of backup and compressed copies.
A regexp for several suffixes would take exponential time for some names."
  (let* ((last (file-name-nondirectory name))
         (version (string-search ".~" last))
         (pieces (nreverse
                  (split-string (if (and version (< (+ version 2) (length last)))
                                    (substring last 0 version)
                                  last)
                                "\\."))))
    (while (and (cdr pieces)
                (member-ignore-case
                 (car pieces)
                 '("gz" "bz2" "xz" "zst" "lzma" "lz" "z" "bak" "old" "orig")))
      (pop pieces))
    (concat (file-name-directory name) (string-join (nreverse pieces) "."))))

;;;; Projects

(defun gemini-companion-privacy-directory-hidden-p (directory)
  "Return non-nil if nothing in the local DIRECTORY may be shared.
One of its names is excluded or below an excluded directory, or its directory
variables opt out.  The answer is cached."
  (gemini-companion-privacy--hidden-if
   (list 'directory directory)
   (lambda ()
     (or (seq-some #'gemini-companion-privacy--name-excluded-p
                   (gemini-companion-privacy--names directory))
         (gemini-companion-privacy--opted-out-p
          ;; The default directory of a buffer may begin with "~".
          (file-name-as-directory (expand-file-name directory))
          'fundamental-mode)))))

(defun gemini-companion-privacy--name-excluded-p (name)
  "Return non-nil if the directory NAME, or one above it, is excluded.
Signal an error if one of their files with directory variables is malformed."
  (let ((copy-p (gemini-companion-names-of-copy name)))
    (locate-dominating-file
     (file-name-as-directory name)
     (lambda (above)
       (gemini-companion-privacy--read-dir-locals above)
       (let ((above (expand-file-name above)))
         (gemini-companion-privacy--excluded-p
          ;; Directories above the copies do not exist on their host.
          (if copy-p
              (ensure-list (cdr (gemini-companion-names-of-copy above)))
            (list above))
          nil))))))

(defun gemini-companion-privacy--read-dir-locals (directory)
  "Signal an error if directory variables in DIRECTORY are malformed.
Do so only if their file mentions sharing.  Emacs ignores a malformed file; the
error hides all files below DIRECTORY.  Record the times of these files, on
which cached values depend."
  (dolist (name gemini-companion-names-dir-locals)
    (let ((file (gemini-companion-names-below directory name)))
      (gemini-companion-cache-note-time file)
      (when (file-regular-p file)
        (let ((text (gemini-companion-text-read file)))
          (when (string-search "gemini-companion-share" text)
            (read text)))))))

(defun gemini-companion-privacy--opted-out-p (name mode)
  "Return non-nil if directory variables opt out of sharing NAME in MODE.
NAME is a file, or a directory with a slash at its end.  Emacs reads only the
innermost .dir-locals.el.  If that does not mention sharing, check the
directories above, so that it does not make part of a private project public."
  (gemini-companion-cache-get
   (list 'opted-out name mode)
   (lambda ()
     (let ((above (file-name-directory (directory-file-name name))))
       (pcase (gemini-companion-privacy--dir-locals-share name mode)
         (`(,_ . ,shared) (not shared))
         (_ (or (not (default-value 'gemini-companion-share))
                (unless (equal above name)
                  (gemini-companion-privacy--opted-out-p above mode)))))))))

(defun gemini-companion-privacy--dir-locals-share (name mode)
  "Return what directory variables say about sharing NAME in MODE.
The value is a cons of the variable and its value, or nil."
  (when (gemini-companion-privacy--dir-locals-mention-p (file-name-directory name))
    (with-temp-buffer
      (setq default-directory (file-name-directory name)
            major-mode mode)
      ;; An opt-out counts even if the user has disabled such variables, and
      ;; an opt-in only if it is marked as safe.
      (let ((enable-local-variables :safe)
            (enable-dir-local-variables t)
            (buffer-file-name name))
        (hack-dir-local-variables)
        (assq 'gemini-companion-share file-local-variables-alist)))))

;; Most projects do not, and to ask for each file takes long.
(defun gemini-companion-privacy--dir-locals-mention-p (directory)
  "Return non-nil if directory variables of DIRECTORY may mention sharing."
  (gemini-companion-cache-get
   (list 'mentioned directory)
   (lambda ()
     (condition-case nil
         (let* ((found (dir-locals-find-file directory))
                (class (if (stringp found)
                           (dir-locals-read-from-dir found)
                         (nth 1 found)))
                (print-length nil)
                (print-level nil))
           (string-search "gemini-companion-share"
                          (prin1-to-string (dir-locals-get-class-variables class))))
       (error t)))))

(defun gemini-companion-privacy--hidden-if (key predicate &optional state)
  "Return the cached value of KEY in STATE, or compute it by PREDICATE.
The value is t if PREDICATE signals an error."
  (gemini-companion-cache-get
   key
   (lambda ()
     (condition-case problem
         (save-match-data (funcall predicate))
       (error
        (setq gemini-companion-privacy-problem (car problem))
        ;; The error message may contain the name of the file.
        (gemini-companion-log-record
         'failed 'gemini-companion-excluded (list (symbol-name (car problem))))
        t)))
   state))

;;;; Files

(defun gemini-companion-privacy-hidden-p (buffer)
  "Return non-nil if the file that BUFFER visits must not be shared.
A remote file must not be shared unless its host is connected."
  (let* ((buffer (or (buffer-base-buffer buffer) buffer))
         (file (gemini-companion-names-file buffer))
         ;; The copy has the true name of a remote file.
         (visited (gemini-companion-names-copy
                   (or (buffer-file-name buffer) "")))
         (shared (buffer-local-value 'gemini-companion-share buffer)))
    (gemini-companion-privacy--hidden-if
     (list 'buffer buffer)
     (lambda ()
       (or (not file)
           (not shared)
           (gemini-companion-privacy--file-hidden-p file buffer)
           (and visited
                (gemini-companion-privacy--file-hidden-p visited buffer))))
     (list file visited shared
           (buffer-local-value 'major-mode buffer)
           (with-current-buffer buffer (visited-file-modtime))))))

(defun gemini-companion-privacy--file-hidden-p (file buffer)
  "Return non-nil if FILE, visited by BUFFER, must not be shared.
The rules are those of the commentary; the rule that reads FILE comes last."
  (or (file-remote-p file)
      (let ((names (gemini-companion-privacy--names file)))
        (or (gemini-companion-privacy--excluded-p
             (mapcar (lambda (name)
                       (or (cdr (gemini-companion-names-of-copy name)) name))
                     names)
             buffer)
            (seq-some (lambda (name)
                        (or (gemini-companion-privacy-directory-hidden-p
                             (file-name-directory name))
                            (gemini-companion-privacy--opted-out-p
                             name (buffer-local-value 'major-mode buffer))
                            (gemini-companion-ignore-p name)))
                      names)
            (gemini-companion-privacy--text-opts-out-p (car names))))))

(defun gemini-companion-privacy--text-opts-out-p (file)
  "Return non-nil if the local variables in FILE, a true name, opt out.
They apply even if the user has disabled local variables."
  (let* ((file-name-handler-alist nil)
         (inhibit-modification-hooks t)
         (size (file-attribute-size (file-attributes file))))
    (when (and size (file-regular-p file))
      (with-temp-buffer
        ;; Local variables are in one of the first lines or in the last 3000
        ;; characters.
        (insert-file-contents-literally file nil (max 0 (- size 12000)) size)
        (when (< 12000 size)
          (insert-file-contents-literally file nil 0 1000))
        (re-search-forward
         "gemini-companion-share[ \t]*:[ \t]*\\(?:nil\\|()\\)" nil t)))))

(defun gemini-companion-privacy-name-hidden-p (file)
  "Return non-nil if FILE, an absolute name, must not be shared.
FILE need not be visited."
  (setq file (or (gemini-companion-names-copy file) file))
  (let ((buffer (gemini-companion-names-buffer file)))
    (or (and buffer (gemini-companion-privacy-hidden-p buffer))
        ;; The file may be visited by another name, a link.
        (unless (and buffer (equal file (gemini-companion-names-file buffer)))
          (gemini-companion-privacy--hidden-if
           (list 'file file)
           (lambda ()
             (with-temp-buffer
               ;; An exclusion may name the mode.
               (let ((mode (assoc-default file auto-mode-alist
                                          #'string-match-p)))
                 (when (symbolp mode)
                   (setq major-mode mode)))
               (gemini-companion-privacy--file-hidden-p
                file (current-buffer))))
           (gemini-companion-cache-time file))))))

(provide 'gemini-companion-privacy)
;;; gemini-companion-privacy.el ends here
