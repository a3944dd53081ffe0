;;; run.el --- Example of `make run'  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; To be loaded with -Q -nw in a copy of the example; then -f run-start
;; turns the mode on, shows the file, and starts Gemini CLI beside it when
;; the server is ready.

;;; Code:

(require 'package)

(declare-function eglot-ensure "eglot")
(declare-function gemini-companion-tools-link-client "gemini-companion-tools")
(declare-function gemini-companion-tools-write-extension "gemini-companion-tools")
(declare-function gemini-companion-mode "gemini-companion-mode")
(declare-function term-char-mode "term")
(declare-function term-exec "term")
(declare-function term-mode "term")
(declare-function term-set-escape-char "term")
(declare-function vterm-mode "ext:vterm")
(defvar eglot-server-programs)
(defvar gemini-companion-ready-hook)
(defvar gemini-companion-server-command)
(defvar python-flymake-command)
(defvar term-escape-char)
(defvar vterm-environment)
(defvar vterm-min-window-width)
(defvar vterm-shell)

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
  (menu-bar-mode -1))

;;;; Terminal

(defun run--vterm-p ()
  "Load the vterm of Debian; return nil if it is not there."
  (let ((directory (car (or (file-expand-wildcards
                          "/usr/share/emacs/site-lisp/elpa/vterm-[0-9]*")
                         (file-expand-wildcards
                          "/usr/share/emacs/site-lisp/elpa-src/vterm-[0-9]*")))))
    (when directory
      (push directory load-path)
      (load "vterm-load-path" t t)
      (require 'vterm-module nil t)
      (and (featurep 'vterm-module) (require 'vterm nil t)))))

(defun run--vterm ()
  "Make this buffer a vterm with Gemini CLI in it."
  (setq vterm-min-window-width 30)
  (let ((vterm-shell "gemini")
        (vterm-environment
         (list "COLORTERM=truecolor"
               ;; vterm reports one column too many to its child.
               (format "GC_COLUMNS=%d" (window-max-chars-per-line)))))
    (vterm-mode)))

(defun run--terminal ()
  "Start Gemini CLI in a terminal; return its buffer."
  (with-current-buffer (get-buffer-create "*gemini*")
    (if (run--vterm-p)
        (run--vterm)
      (require 'term)
      (term-mode)
      (term-exec (current-buffer) "gemini" "gemini" nil nil)
      (term-char-mode)
      (let (term-escape-char)
        (term-set-escape-char ?\C-x)))
    (current-buffer)))

(defun run--show-terminal ()
  "Show Gemini CLI in the right half of the frame."
  (remove-hook 'gemini-companion-ready-hook #'run--show-terminal)
  (let ((window (split-window-right))
        (offline (getenv "GC_OFFLINE")))
    (with-selected-window window
      (switch-to-buffer (get-buffer-create "*gemini*"))
      (run--terminal))
    (message (if offline
                 "Gemini CLI is about to propose an edit"
               "Ask Gemini CLI, at the right, to change hello.py"))
    (unless offline
      (select-window window))))

;;;; Errors

(defun run--link ()
  "Link Gemini CLI to this Emacs, as `gemini-companion-tools' does.
Its home is that of this run."
  (require 'gemini-companion-tools)
  (gemini-companion-tools-write-extension)
  (gemini-companion-tools-link-client "gemini"))

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
  "Open the example and turn the mode on."
  (run--settings)
  (require 'gemini-companion)
  (global-set-key (kbd "C-c g") 'gemini-companion-command-map)
  (setq gemini-companion-server-command
        (list (expand-file-name ".venv/bin/python" run-root)
              "-m" "gemini_companion_epc"))
  (run--link)
  (find-file "hello.py")
  (run--check)
  (setq header-line-format
        " Review C-c g r; then accept C-c C-c, reject C-c C-k; leave C-x C-c")
  (add-hook 'gemini-companion-ready-hook #'run--show-terminal)
  (gemini-companion-mode 1))

(provide 'run)
;;; run.el ends here
