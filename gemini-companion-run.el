;;; gemini-companion-run.el --- Gemini CLI in a terminal here  -*- lexical-binding: t; -*-

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

;; Start Gemini CLI in a terminal of this Emacs, in the root of a project; one
;; buffer for each project, more on request.  Gemini CLI looks for Emacs once,
;; when it starts, so the entry has this wait until the server is ready.

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-install)
(require 'gemini-companion-server)
(require 'gemini-companion-terminal)
(require 'seq)
(require 'subr-x)

(declare-function eat-exec "ext:eat")
(declare-function eat-mode "ext:eat")
(declare-function evil-emacs-state "ext:evil-states")
(declare-function project-root "project")
(declare-function term-char-mode "term")
(declare-function term-exec "term")
(declare-function term-mode "term")
(declare-function term-set-escape-char "term")
(declare-function vterm-mode "ext:vterm")
(defvar eat-kill-buffer-on-exit)
(defvar term-escape-char)
(defvar vterm-kill-buffer-on-exit)
(defvar vterm-min-window-width)
(defvar vterm-shell)

;;;; Customization

(defcustom gemini-companion-gemini-command "gemini"
  "Program that is Gemini CLI, or a list of it and its arguments."
  :type '(choice (string :tag "Program")
                 (repeat :tag "Program and arguments" string))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

(defcustom gemini-companion-terminal nil
  "Terminal in which `gemini-companion-run' starts Gemini CLI.
Nil means the first of vterm, eat and term that is installed.

A function is called with the command, a list of strings, in an
empty buffer that is shown already, in the folder and environment
to use.  It makes that buffer the terminal, or starts a terminal
outside of Emacs."
  :type '(choice (const :tag "The best that is installed" nil)
                 (const :tag "vterm" vterm)
                 (const :tag "eat" eat)
                 (const :tag "term, which Emacs has" term)
                 function)
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

(defcustom gemini-companion-run-side-window nil
  "Side of the frame where Gemini CLI is shown, or nil for any window.
At a side, `gemini-companion-run' hides the window if it is the
selected one."
  :type '(choice (const :tag "Any window" nil)
                 (const right) (const left) (const bottom))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

;;;; State

(defvar-local gemini-companion-run--place nil
  "What Gemini CLI in this buffer was started with, a plist, or nil.
Its `:directory' and `:number' tell it from others; `:environment',
`:path' and `:command' are what it is started with.")

;; The terminals' modes kill all other local variables.
(put 'gemini-companion-run--place 'permanent-local t)

(defvar gemini-companion-run--waiting nil
  "Buffers in which Gemini CLI is to start when the server is ready.")

;;;; Places

(defun gemini-companion-run-place (number)
  "Return where to have Gemini CLI for the current buffer, a plist.
NUMBER, a raw prefix argument, tells several of one folder apart."
  (let* ((here (or gemini-companion-run--place
                   (gemini-companion-run--new-place)))
         (number (pcase number
                   ('nil (plist-get here :number))
                   ((pred consp) (gemini-companion-run--free-number
                                  (plist-get here :directory)))
                   (_ (prefix-numeric-value number)))))
    (append (list :number number
                  :command (ensure-list gemini-companion-gemini-command))
            here)))

(defun gemini-companion-run--new-place ()
  "Return a place for the current buffer, which is no Gemini CLI."
  (when (file-remote-p default-directory)
    (user-error "Gemini CLI runs on this machine, and %s is on another one; \
go to a local buffer first"
                (abbreviate-file-name default-directory)))
  (list :directory (gemini-companion-run--directory)
        :number 1
        :environment process-environment
        :path exec-path))

(defun gemini-companion-run--directory ()
  "Return the root of the current buffer's project, else its folder."
  (let ((directory (expand-file-name
                    (if-let* ((project (project-current)))
                        (project-root project)
                      default-directory))))
    (unless (file-accessible-directory-p directory)
      (user-error "The folder %s is not there; go to another buffer first"
                  (abbreviate-file-name directory)))
    (file-name-as-directory directory)))

(defun gemini-companion-run--buffer (place)
  "Return the buffer of PLACE, or nil."
  (seq-find
   (lambda (buffer)
     (when-let* ((other (buffer-local-value 'gemini-companion-run--place
                                            buffer)))
       (and (equal (plist-get place :directory) (plist-get other :directory))
            (equal (plist-get place :number) (plist-get other :number)))))
   (buffer-list)))

(defun gemini-companion-run--free-number (directory)
  "Return the first free number for DIRECTORY."
  (let ((number 1))
    (while (gemini-companion-run--live-p
            (gemini-companion-run--buffer
             (list :directory directory :number number)))
      (setq number (1+ number)))
    number))

(defun gemini-companion-run--live-p (buffer)
  "Return non-nil if BUFFER has a live process or waits for one."
  (and buffer
       (or (memq buffer gemini-companion-run--waiting)
           (process-live-p (get-buffer-process buffer)))))

(defun gemini-companion-run--name (place)
  "Return the name for the buffer of PLACE."
  (let ((folder (file-name-nondirectory
                 (directory-file-name (plist-get place :directory))))
        (number (plist-get place :number)))
    (generate-new-buffer-name
     (if (eql number 1)
         (format "*gemini: %s*" folder)
       (format "*gemini: %s (%d)*" folder number)))))

(defun gemini-companion-run-check (place)
  "Signal an error if the program of PLACE or its terminal is not there."
  (when (and (memq gemini-companion-terminal '(vterm eat))
             (not (locate-library
                   (symbol-name gemini-companion-terminal))))
    (user-error "The package %s is not installed; install it (M-x \
package-install RET %s), or customize `gemini-companion-terminal'"
                gemini-companion-terminal gemini-companion-terminal))
  (let ((program (car (plist-get place :command)))
        (exec-path (plist-get place :path)))
    (unless (executable-find program)
      (user-error "Cannot find the program %s; install it (npm install -g \
@google/gemini-cli, which needs Node.js 20), or customize \
`gemini-companion-gemini-command'%s"
                  program (gemini-companion-install-path-hint)))))

(defun gemini-companion-run--argv (place)
  "Return the command of PLACE with the full name of its program."
  (let ((exec-path (plist-get place :path)))
    (pcase-let ((`(,program . ,args) (plist-get place :command)))
      (cons (or (executable-find program) program) args))))

;;;; Windows

(defun gemini-companion-run--show (buffer)
  "Show BUFFER and select its window."
  (pop-to-buffer
   buffer
   (pcase gemini-companion-run-side-window
     ('nil nil)
     ('bottom '(display-buffer-in-side-window
                (side . bottom) (window-height . 0.4)))
     (side `(display-buffer-in-side-window
             (side . ,side) (window-width . 0.4))))))

(defun gemini-companion-run-visit (place)
  "Go to the live Gemini CLI of PLACE; return nil if there is none.
In a side window, hide it if it is the selected one."
  (let ((buffer (gemini-companion-run--buffer place)))
    (when (gemini-companion-run--live-p buffer)
      (if (and gemini-companion-run-side-window
               (eq buffer (window-buffer)))
          (quit-window)
        (gemini-companion-run--show buffer))
      t)))

;;;; Start

(defun gemini-companion-run-prepare (place)
  "Show a buffer in which Gemini CLI will run at PLACE."
  (let ((former (gemini-companion-run--buffer place))
        (buffer (generate-new-buffer " *gemini*")))
    (with-current-buffer buffer
      (setq default-directory (plist-get place :directory)
            gemini-companion-run--place place)
      (insert "Gemini CLI starts here when its server is ready.\n")
      (set-buffer-modified-p nil))
    (if-let* ((window (and former (get-buffer-window former))))
        (progn (select-window window)
               (set-window-buffer window buffer)
               (set-buffer buffer))
      (gemini-companion-run--show buffer))
    (when former
      (kill-buffer former))
    (with-current-buffer buffer
      (rename-buffer (gemini-companion-run--name place)))
    (push buffer gemini-companion-run--waiting)))

(defun gemini-companion-run-ready (_how)
  "Start Gemini CLI in the buffers that were prepared, with our environment."
  (gemini-companion-terminal-export
   (plist-get (gemini-companion-server-info) :port) (emacs-pid))
  (gemini-companion-run--start))

(defun gemini-companion-run--start ()
  "Start Gemini CLI in the buffers that were prepared."
  (let ((buffers (nreverse gemini-companion-run--waiting)))
    (setq gemini-companion-run--waiting nil)
    (dolist (buffer buffers)
      (when (buffer-live-p buffer)
        (condition-case problem
            (gemini-companion-run--in buffer)
          (error
           (gemini-companion-run--end buffer
                                      (error-message-string problem))))))))

(defun gemini-companion-run-give-up ()
  "Start nothing in the buffers that were prepared."
  (let ((buffers gemini-companion-run--waiting))
    (setq gemini-companion-run--waiting nil)
    (dolist (buffer buffers)
      (when (buffer-live-p buffer)
        (gemini-companion-run--end buffer "The server did not start")))))

(defun gemini-companion-run--in (buffer)
  "Start Gemini CLI in BUFFER, with the size of its window."
  (let ((window (get-buffer-window buffer t))
        (place (buffer-local-value 'gemini-companion-run--place buffer)))
    (with-current-buffer buffer
      (erase-buffer))
    (save-selected-window
      ;; The terminals take their size from the selected window.
      (when window
        (select-window window 'norecord))
      (with-current-buffer buffer
        (let ((process-environment
               (let ((process-environment (plist-get place :environment)))
                 (gemini-companion-terminal-environment)))
              (exec-path (plist-get place :path)))
          (funcall (gemini-companion-run--terminal)
                   (gemini-companion-run--argv place)))))
    (gemini-companion-run--expect-end buffer)))

;;;; Terminals

(defun gemini-companion-run--terminal ()
  "Return the function to make the current buffer a terminal."
  (pcase gemini-companion-terminal
    ('nil (cond ((gemini-companion-run--vterm-p) #'gemini-companion-run--vterm)
                ((locate-library "eat") #'gemini-companion-run--eat)
                (t #'gemini-companion-run--term)))
    ('vterm #'gemini-companion-run--vterm)
    ('eat #'gemini-companion-run--eat)
    ('term #'gemini-companion-run--term)
    (function function)))

(defun gemini-companion-run--vterm-p ()
  "Return non-nil if vterm is there with its module.
Without it, loading vterm asks whether to compile one."
  (and (bound-and-true-p module-file-suffix)
       (locate-library "vterm")
       (locate-library "vterm-module")))

(defun gemini-companion-run--vterm (command)
  "Run COMMAND in the current buffer with vterm."
  (require 'vterm)
  (let* ((columns (window-max-chars-per-line))
         (line (mapconcat #'shell-quote-argument command " "))
         (vterm-shell
          (if (= columns (window-body-width))
              line
            ;; On a text terminal vterm takes the column for Emacs's `$' too.
            (format "sh -c %s"
                    (shell-quote-argument
                     (format "stty columns %d; exec %s" columns line)))))
         ;; It would draw for 80 columns in a narrower window.
         (vterm-min-window-width 20))
    (vterm-mode))
  (setq-local vterm-min-window-width 20)
  (gemini-companion-run--fit (get-buffer-process (current-buffer))))

(defun gemini-companion-run--fit (process)
  "Tell PROCESS the size of the selected window, as a change of it would."
  (let ((size (funcall (process-get process 'adjust-window-size-function)
                       process (list (selected-window)))))
    (when size
      (set-process-window-size process (cdr size) (car size)))))

(defun gemini-companion-run--eat (command)
  "Run COMMAND in the current buffer with eat."
  (require 'eat)
  (eat-mode)
  (let ((eat-kill-buffer-on-exit nil))
    (eat-exec (current-buffer) (buffer-name) (car command) nil
              (cdr command))))

(defun gemini-companion-run--term (command)
  "Run COMMAND in the current buffer with term.
As in `ansi-term', \\`C-x' is for Emacs, and \\`C-c' for the program."
  (require 'term)
  (term-mode)
  (term-exec (current-buffer) (buffer-name) (car command) nil (cdr command))
  (term-char-mode)
  (let (term-escape-char)
    (term-set-escape-char ?\C-x)))

;;;; End

(defvar gemini-companion-run-ended-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "g" 'gemini-companion-run)
    (define-key map "q" #'quit-window)
    map)
  "Keys in the buffer of a Gemini CLI that has ended.")

(define-minor-mode gemini-companion-run-ended-mode
  "Mark a buffer in which Gemini CLI ran and has ended."
  :lighter " Ended"
  :interactive nil
  (setq-local minor-mode-overriding-map-alist
              (and gemini-companion-run-ended-mode
                   (list (cons 'gemini-companion-run-ended-mode
                               gemini-companion-run-ended-mode-map))))
  (setq buffer-read-only t))

(defun gemini-companion-run--expect-end (buffer)
  "Have BUFFER say it when its process ends."
  (when-let* ((process (get-buffer-process buffer)))
    (let ((sentinel (process-sentinel process)))
      (set-process-sentinel
       process
       (lambda (process event)
         ;; vterm would kill the buffer, and with it a message of failure.
         (let ((vterm-kill-buffer-on-exit nil))
           (funcall sentinel process event))
         (when (and (buffer-live-p buffer)
                    (not (process-live-p process)))
           (gemini-companion-run--end
            buffer (format "Gemini CLI: %s" (string-trim event)))))))))

(defun gemini-companion-run--end (buffer reason)
  "Mark BUFFER as one where for REASON there is no Gemini CLI."
  (with-current-buffer buffer
    (gemini-companion-run-ended-mode)
    ;; Evil has its own meaning for the keys.
    (when (bound-and-true-p evil-local-mode)
      (evil-emacs-state))
    (setq header-line-format
          (list " " reason
                (substitute-command-keys
                 (concat "; \\<gemini-companion-run-ended-mode-map>"
                         "\\[gemini-companion-run] again, "
                         "\\[quit-window] leave"))))))

;;;; Command

;;;###autoload
(defun gemini-companion-run (&optional number)
  "Switch to the Gemini CLI of this project, or start it in a terminal.
It starts in the root of the project, when the server is ready; the
mode is turned on for that.  NUMBER, the prefix argument, switches
to another one of the same project; \\[universal-argument] alone starts one more."
  (interactive "P")
  (let ((place (gemini-companion-run-place number)))
    (unless (gemini-companion-run-visit place)
      (gemini-companion-run-check place)
      (unless gemini-companion-mode
        (gemini-companion-mode 1))
      (when gemini-companion-mode
        (gemini-companion-run-prepare place)
        (when (gemini-companion-server-ready-p)
          (gemini-companion-run--start))))))

(provide 'gemini-companion-run)
;;; gemini-companion-run.el ends here
