;;; install.el --- Install the package, and check that  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; To be loaded with -Q --batch by dev/install, which describes the ways.  GC_ELPA
;; names a directory of installed packages, and GC_ROOT the repository.

;;; Code:

(require 'cl-lib)
(require 'find-func)
(require 'package)
(require 'seq)

(declare-function package-vc-install "package-vc")
(declare-function package-vc-install-from-checkout "package-vc")
(declare-function package-vc-upgrade "package-vc")
(declare-function package-vc--unpack-1 "package-vc")
(defvar elisp-flymake-byte-compile-load-path)
(defvar gemini-companion-mode)
(defvar gemini-companion-server-command)
(defvar gemini-companion-server-directory)
(declare-function gemini-companion-mode "gemini-companion")

(setq load-prefer-newer t
      package-archives nil
      package-directory-list nil
      vc-handled-backends '(Git))
;; Emacs 29 gave it another name.
(dolist (name '(native-comp-deferred-compilation native-comp-jit-compilation))
  (when (boundp name)
    (set name nil)))

(defun install--argument ()
  "Return the next argument of the command line, and remove it."
  (pop command-line-args-left))

(defun install-dependencies ()
  "Put the packages that ours needs into `load-path'."
  (let ((package-user-dir (getenv "GC_ELPA")))
    (package-initialize)))

(defun install--initialize ()
  "Activate the packages of this home, with copies of those that ours needs."
  (unless (file-directory-p package-user-dir)
    (make-directory package-user-dir t)
    (dolist (name '("concurrent" "ctable" "deferred" "epc"))
      (copy-directory (car (file-expand-wildcards
                            (expand-file-name (concat name "-*") (getenv "GC_ELPA"))))
                      (file-name-as-directory package-user-dir))))
  (package-initialize))

(defmacro install--check (form)
  "Signal an error if the value of FORM is nil."
  `(or ,form (error "Not so: %S" ',form)))

;;;; Install

(defun install-tar ()
  "Install the tar on the command line."
  (install--initialize)
  (package-install-file (install--argument)))

(defun install-vc ()
  "Install the repository on the command line."
  (install--initialize)
  (package-vc-install (list 'gemini-companion :url (install--argument) :vc-backend 'Git)))

(defun install-checkout ()
  "Install the checkout on the command line."
  (install--initialize)
  (package-vc-install-from-checkout (install--argument) "gemini-companion"))

(defun install-quickstart ()
  "Make the file of all autoloads."
  (install--initialize)
  (let ((package-quickstart t))
    (package-quickstart-refresh)))

(defun install-delete ()
  "Delete the package."
  (install--initialize)
  (package-delete (cadr (assq 'gemini-companion package-alist)) 'force))

(defun install-upgrade ()
  "Upgrade the package while the mode is on.
The new files are in the repository on the command line, not committed."
  (install--initialize)
  ;; Nothing but the process of the mode is wanted here.
  (setq gemini-companion-server-command '("sh" "-c" "cat >&2"))
  (gemini-companion-mode 1)
  (install--check gemini-companion-mode)
  (let ((default-directory (file-name-as-directory (install--argument))))
    (install--check (eql 0 (call-process "git" nil nil nil "add" "-A")))
    (install--check (eql 0 (call-process "git" nil nil nil "commit" "-q" "-m" "two"))))
  (package-vc-upgrade (cadr (assq 'gemini-companion package-alist)))
  ;; A pull may run in the background.
  (with-timeout (600 (error "Not upgraded"))
    (while (or (seq-some (lambda (process)
                           (string-match-p "git" (process-name process)))
                         (process-list))
               (not (file-directory-p
                     (expand-file-name "lisp" (install--directory)))))
      (accept-process-output nil 0.1)))
  (let ((package (cadr (assq 'gemini-companion package-alist))))
    (package-vc--unpack-1 package (package-desc-dir package)))
  ;; The mode is still on, and what is loaded from now on is new.
  (install--check gemini-companion-mode)
  (require 'gemini-companion-status)
  (install--check (string-match-p "/lisp/pages/"
                                  (symbol-file 'gemini-companion-status 'defun)))
  (gemini-companion-mode -1))

;;;; Check

(defun install--directory ()
  "Return the directory of the package."
  (package-desc-dir (cadr (assq 'gemini-companion package-alist))))

(defun install--listed (directory)
  "Return the list of autoloads of the main file in DIRECTORY, (COMMAND . FILE)s."
  (let ((listed nil))
    (with-temp-buffer
      (insert-file-contents (expand-file-name "gemini-companion.el" directory))
      (while (re-search-forward
              "^ +(autoload '\\([a-z-]+\\) \"\\([a-z-]+\\)\"\n +\"" nil t)
        (push (cons (intern (match-string 1)) (match-string 2)) listed)))
    (install--check (< 20 (length listed)))
    listed))

(defun install--check-commands (directory)
  "Check that the commands of the package in DIRECTORY load from its files."
  (pcase-dolist (`(,command . ,file) (install--listed directory))
    (unless (autoloadp (symbol-function command))
      (error "%s is no autoload" command))
    (unless (documentation command)
      (error "%s has no documentation" command))
    (install--check (find-library-name file)))
  (pcase-dolist (`(,command . ,file) (install--listed directory))
    (autoload-do-load (symbol-function command) command)
    (unless (member (file-name-base (or (symbol-file command 'defun) file)) (list file))
      (error "%s is not of %s" command file)))
  (pcase-dolist (`(,name . ,_) load-history)
    (when (and name (string-prefix-p "gemini-companion" (file-name-nondirectory name)))
      (unless (file-in-directory-p name directory)
        (error "%s is loaded" name))))
  (install--check (file-directory-p
                   (expand-file-name "python/gemini_companion_epc"
                                     gemini-companion-server-directory))))

(defun install-check-package ()
  "Check the package that is installed, before and after it is loaded."
  (install--initialize)
  (install--check (not (featurep 'gemini-companion)))
  (install--check (commandp 'gemini-companion-mode))
  (install--check (eq 'keymap (nth 4 (symbol-function 'gemini-companion-command-map))))
  (install--check-commands (file-truename (install--directory)))
  (install--check (keymapp (symbol-function 'gemini-companion-command-map))))

(defun install-check-quickstart ()
  "Check that the file of all autoloads has those of the package, and no more."
  (setq package-quickstart t)
  (load (expand-file-name "package-quickstart" user-emacs-directory) nil t)
  (install--check (commandp 'gemini-companion-mode))
  (install--check (autoloadp (symbol-function 'gemini-companion-run)))
  (install--check (not (member (expand-file-name "lisp/mine" user-emacs-directory)
                               load-path)))
  (require 'gemini-companion)
  (install--check (find-library-name "gemini-companion-status")))

(defun install-check-nothing ()
  "Check that nothing of the package is there."
  (install--initialize)
  (install--check (not (fboundp 'gemini-companion-mode)))
  (install--check (not (locate-library "gemini-companion")))
  (install--check (not (seq-find (lambda (directory)
                                   (string-search "gemini-companion" directory))
                                 load-path))))

(defun install-check-loaded ()
  "Check the package of the clone on the command line, which is loaded."
  (let ((directory (file-truename (install--argument))))
    (install-dependencies)
    (install--check (featurep 'gemini-companion))
    (pcase-dolist (`(,command . ,file) (install--listed directory))
      (unless (or (autoloadp (symbol-function command))
                  (equal file (file-name-base (symbol-file command 'defun))))
        (error "%s is not of %s" command file)))
    (dolist (file (file-expand-wildcards (expand-file-name "lisp/*/*.el" directory)))
      (require (intern (file-name-base file)))
      (install--check (find-library-name (file-name-base file))))))

(defun install-check-removed ()
  "Check that the add-on in the directory on the command line has no command here."
  (install-dependencies)
  (let ((features (mapcar #'file-name-base
                          (file-expand-wildcards (concat (install--argument) "/*.el"))))
        (left nil))
    (install--check features)
    (mapatoms (lambda (symbol)
                (when (and (autoloadp (symbol-function symbol))
                           (member (nth 1 (symbol-function symbol)) features))
                  (push symbol left))))
    (when left
      (error "Left: %S" left))
    (install--check (commandp 'gemini-companion-run))))

(defun install-check-flymake ()
  "Check that Flymake would find the files that one of the clone requires."
  (install-dependencies)
  (let ((enable-local-variables :all)
        (file (car (file-expand-wildcards
                    (expand-file-name "lisp/pages/gemini-companion-status.el"
                                      (install--argument))))))
    (with-current-buffer (find-file-noselect file)
      (let ((load-path (append (mapcar #'expand-file-name
                                       elisp-flymake-byte-compile-load-path)
                               load-path)))
        (dolist (feature (mapcar #'file-name-base
                                 (file-expand-wildcards
                                  (expand-file-name "../*/*.el"))))
          (install--check (locate-library feature)))
        (install--check (locate-library "gemini-companion"))))))

(provide 'install)
;;; install.el ends here
