;;; run.el --- Example of `make run'  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; To be loaded with -Q -nw in a copy of the example; then -f run-start
;; shows the file, and starts Gemini CLI beside it.

;;; Code:

(require 'package)

(declare-function eglot-ensure "eglot")
(declare-function gemini-companion-tools--run "gemini-companion-tools")
(declare-function gemini-companion-tools--write-extension "gemini-companion-tools")
(declare-function gemini-companion-run "gemini-companion-cli")
(defvar eglot-server-programs)
(defvar gemini-companion-run-client)
(defvar gemini-companion-server-command)
(defvar python-flymake-command)

(defconst run-root
  (file-name-directory
   (directory-file-name (file-name-directory load-file-name)))
  "The directory of the repository.")

(defun run--settings ()
  "Set options, because no init file is loaded."
  ;; Emacs 29 gave it another name.
  (set (if (< emacs-major-version 29)
           'native-comp-deferred-compilation
         'native-comp-jit-compilation)
       nil)
  (setq inhibit-startup-screen t
        load-prefer-newer t
        ;; Exiting takes one key: the server and the CLI end with Emacs.
        confirm-kill-processes nil
        ring-bell-function #'ignore
        package-directory-list nil
        package-user-dir (expand-file-name
                          (format ".eask/%s/elpa" emacs-version) run-root))
  (package-initialize)
  (push run-root load-path)
  ;; The vterm of Debian.
  (when-let* ((directory
               (car (file-expand-wildcards
                     "/usr/share/emacs/site-lisp/elpa*/vterm-[0-9]*"))))
    (push directory load-path)
    ;; It reports that it loads one of its files.
    (let ((inhibit-message t))
      (require 'vterm nil t)))
  (menu-bar-mode -1))

;;;; Errors

(defun run--link ()
  "Link Gemini CLI to this Emacs, as `gemini-companion-tools' does.
Its home is that of this run.  Then start it."
  (require 'gemini-companion-tools)
  (gemini-companion-tools--write-extension)
  (message "Linking Gemini CLI to Emacs...")
  (gemini-companion-tools--run "link" (list "gemini") #'run--linked))

(defun run--linked (failures)
  "Start Gemini CLI beside the file; FAILURES are those of the link."
  (with-current-buffer "hello.py"
    (gemini-companion-run))
  (if (not (getenv "GC_OFFLINE"))
      (message "Ask Gemini CLI to change hello.py")
    (select-window (get-buffer-window "hello.py"))
    (message "Gemini CLI is about to propose an edit%s"
             (if failures (format " (%s)" (car failures)) ""))))

(defun run--check ()
  "Check this buffer by a language server, or by Flymake alone."
  (let ((bin (expand-file-name ".venv/bin/" run-root)))
    (if (require 'eglot nil t)
        (progn
          (setq eglot-server-programs
                `((python-mode ,(concat bin "pylsp"))))
          (eglot-ensure))
      (setq python-flymake-command `(,(concat bin "python") "-m" "pyflakes"))
      (flymake-mode))))

(defun run-start ()
  "Open the example, and start Gemini CLI."
  (run--settings)
  (require 'gemini-companion)
  (global-set-key (kbd "C-c g") 'gemini-companion-command-map)
  (setq gemini-companion-run-client "gemini"
        gemini-companion-server-command
        (list (expand-file-name ".venv/bin/python" run-root)
              "-m" "gemini_companion_epc"))
  (find-file "hello.py")
  (run--check)
  (setq header-line-format
        " C-c g r goes to the review, C-c C-c accepts it; C-x C-c exits")
  (run--link))

(provide 'run)
;;; run.el ends here
