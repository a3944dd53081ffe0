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
;; buffer for each project, more on request.  Gemini CLI searches for Emacs
;; once, when it starts, so it is started when the server is ready.
;;
;; What Emacs starts inherits a few variables by which Gemini CLI finds this
;; Emacs among several.  Terminals outside need none of them: there the
;; discovery file is enough.
;;
;; A CLI in a terminal of this Emacs that does not connect needs /ide enable,
;; once; a hint in the echo area says so.  Nothing reports when a program starts
;; in a terminal, so they are checked some seconds after the user went to one
;; or left one, and at no other time.

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-clients)
(require 'gemini-companion-install)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-share)
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

(defgroup gemini-companion-terminal nil
  "A CLI in a terminal of this Emacs."
  :group 'gemini-companion)

(defcustom gemini-companion-gemini-command "gemini"
  "Command that starts Gemini CLI: a program, or a list (PROGRAM ARG...)."
  :type '(choice (string :tag "Program")
                 (repeat :tag "Program and arguments" string))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-terminal)

(defcustom gemini-companion-terminal nil
  "Terminal in which `gemini-companion-run' starts Gemini CLI.
Nil means the first of vterm, eat and term that is installed.

A function is called with the command, a list of strings, in an
empty buffer that is shown already, in the directory and environment
to use.  It makes that buffer the terminal, or starts a terminal
outside of Emacs."
  :type '(choice (const :tag "The best that is installed" nil)
                 (const :tag "vterm" vterm)
                 (const :tag "eat" eat)
                 (const :tag "term, which Emacs has" term)
                 function)
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-terminal)

(defcustom gemini-companion-run-side-window nil
  "Side of the frame where Gemini CLI is shown, or nil for any window.
At a side, `gemini-companion-run' hides the window if it is the
selected one."
  :type '(choice (const :tag "Any window" nil)
                 (const right) (const left) (const bottom))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-terminal)

;;;; State

(defvar-local gemini-companion-run--place nil
  "What Gemini CLI in this buffer was started with, a plist, or nil.
Its `:directory' and `:number' tell it from others; `:environment',
`:path' and `:command' are what it is started with.")

;; The terminals' modes kill all other local variables.
(put 'gemini-companion-run--place 'permanent-local t)

(defvar gemini-companion-run--waiting nil
  "Buffers in which Gemini CLI is to start when the server is ready.")

(defvar gemini-companion-run--exported nil
  "Alist of (NAME . VALUE), the variables that are exported, or nil.
VALUE is nil for a variable that is unset.")

(defvar gemini-companion-run--inherited nil
  "Alist of (NAME . VALUE), the same variables before they were exported.")

(defconst gemini-companion-run--hooks
  '(window-buffer-change-functions window-selection-change-functions)
  "Hooks that run when the user goes to another buffer.")

(defconst gemini-companion-run--connect-seconds 10
  "Seconds that a CLI may take to connect.")

(defconst gemini-companion-run--idle-seconds 2
  "Seconds of idleness before a hint.")

(defvar gemini-companion-run--timer nil
  "Timer of the next check or hint, or nil.")

(defvar gemini-companion-run--hinted nil
  "Process ids of the CLIs that were the subject of a hint.")

(defvar gemini-companion-run--last-buffer nil
  "Buffer of the window that was selected last.")

;;;; Environment

(defconst gemini-companion-run-container-variables
  '("SSH_CONNECTION" "REMOTE_CONTAINERS" "VSCODE_REMOTE_CONTAINERS_SESSION")
  "Variables for which a CLI in a container searches there for editors.")

(defun gemini-companion-run-container-p ()
  "Return non-nil if Emacs is in a container, as Gemini CLI sees it."
  (or (file-exists-p "/.dockerenv")
      (file-exists-p "/run/.containerenv")))

(defun gemini-companion-run--variables (port pid)
  "Return an alist of variables that lead to the server at PORT of Emacs PID."
  `(,@(mapcar (lambda (client)
                (cons (plist-get (cdr client) :port-variable)
                      (number-to-string port)))
              gemini-companion-clients)
    ("GEMINI_CLI_IDE_PID" . ,(number-to-string pid))
    ,@(mapcar #'list (gemini-companion-clients-all :unset))
    ;; In a container the client dials the host unless it is told that
    ;; its editor is in there too.
    ,@(when (and (gemini-companion-run-container-p)
                 (not (seq-some #'getenv
                                gemini-companion-run-container-variables)))
        '(("REMOTE_CONTAINERS" . "1")))))

(defun gemini-companion-run--with (variables environment)
  "Return ENVIRONMENT with VARIABLES, an alist; without those of nil."
  (let ((result (copy-sequence environment)))
    (pcase-dolist (`(,name . ,value) variables)
      (setq result (setenv-internal result name value nil)))
    result))

(defun gemini-companion-run--led-p (environment)
  "Return non-nil if ENVIRONMENT leads to the server."
  (let ((port (car gemini-companion-run--exported)))
    (equal (cdr port) (getenv-internal (car port) environment))))

(defun gemini-companion-run--local-buffers ()
  "Return the buffers with a `process-environment' of their own.
Packages such as envrc and mise make one for each project."
  (seq-filter (lambda (buffer)
                (local-variable-p 'process-environment buffer))
              (buffer-list)))

(defun gemini-companion-run--put (variables buffer)
  "Put VARIABLES into the environment of BUFFER."
  (with-current-buffer buffer
    (setq process-environment
          (gemini-companion-run--with variables process-environment))))

(defun gemini-companion-run--put-default (variables)
  "Put VARIABLES into the default environment."
  (setq-default process-environment
                (gemini-companion-run--with
                 variables (default-value 'process-environment))))

(defun gemini-companion-run--export (port pid)
  "Lead each Gemini CLI in this Emacs to PORT of Emacs PID."
  (gemini-companion-run--restore)
  (setq gemini-companion-run--exported
        (gemini-companion-run--variables port pid)
        gemini-companion-run--inherited
        (mapcar (pcase-lambda (`(,name . ,_))
                  (cons name (gemini-companion-run--inherited-value name)))
                gemini-companion-run--exported))
  (gemini-companion-run--put-default gemini-companion-run--exported)
  (dolist (buffer (gemini-companion-run--local-buffers))
    (gemini-companion-run--put gemini-companion-run--exported buffer)))

(defun gemini-companion-run--inherited-value (name)
  "Return the value of the variable NAME in the default environment, or nil."
  (let ((value (getenv-internal name (default-value 'process-environment))))
    ;; It is t for a variable that was unset by `setenv'.
    (and (stringp value) value)))

(defun gemini-companion-run--lead (frame)
  "Lead what is started in the selected window of FRAME to the server.
Its buffer may have an environment of its own, which a package made
from one that is older than the mode."
  (let ((buffer (window-buffer (frame-selected-window frame))))
    (when (and (local-variable-p 'process-environment buffer)
               (not (gemini-companion-run--led-p
                     (buffer-local-value 'process-environment buffer))))
      (gemini-companion-run--put gemini-companion-run--exported buffer))))

(defun gemini-companion-run--environment ()
  "Return the environment of the current buffer with our variables."
  (gemini-companion-run--with gemini-companion-run--exported
                              process-environment))

(defun gemini-companion-run--restore ()
  "Restore the variables that were exported, where they still are."
  (when gemini-companion-run--exported
    (when (gemini-companion-run--led-p (default-value 'process-environment))
      (gemini-companion-run--put-default gemini-companion-run--inherited))
    (dolist (buffer (gemini-companion-run--local-buffers))
      (when (gemini-companion-run--led-p
             (buffer-local-value 'process-environment buffer))
        (gemini-companion-run--put gemini-companion-run--inherited buffer))))
  (setq gemini-companion-run--exported nil
        gemini-companion-run--inherited nil))

;;;; Places

(defun gemini-companion-run--wanted-place (number)
  "Return the place of Gemini CLI for the current buffer, a plist.
NUMBER, a raw prefix argument, chooses one of several in a directory."
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
    (user-error "Cannot run Gemini CLI in remote directory %s; \
switch to a local buffer"
                (abbreviate-file-name default-directory)))
  (list :directory (gemini-companion-run--directory)
        :number 1
        :environment process-environment
        :path exec-path))

(defun gemini-companion-run--directory ()
  "Return the root of the current buffer's project, else its directory."
  (let ((directory (expand-file-name
                    (if-let* ((project (project-current)))
                        (project-root project)
                      default-directory))))
    (unless (file-accessible-directory-p directory)
      (user-error "Directory %s does not exist; switch to another buffer"
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
  (let ((directory (file-name-nondirectory
                    (directory-file-name (plist-get place :directory))))
        (number (plist-get place :number)))
    (generate-new-buffer-name
     (if (eql number 1)
         (format "*gemini: %s*" directory)
       (format "*gemini: %s (%d)*" directory number)))))

(defun gemini-companion-run--check-place (place)
  "Signal an error if the program of PLACE or its terminal is missing."
  (when (and (memq gemini-companion-terminal '(vterm eat))
             (not (locate-library
                   (symbol-name gemini-companion-terminal))))
    (user-error "Package %s is not installed; install it (M-x \
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

(defun gemini-companion-run--switch (place)
  "Switch to the live Gemini CLI of PLACE; return nil if there is none.
If it is in a selected side window, hide that."
  (let ((buffer (gemini-companion-run--buffer place)))
    (when (gemini-companion-run--live-p buffer)
      (if (and gemini-companion-run-side-window
               (eq buffer (window-buffer)))
          (quit-window)
        (gemini-companion-run--show buffer))
      t)))

;;;; Start

(defun gemini-companion-run--prepare (place)
  "Show a buffer in which Gemini CLI will run at PLACE."
  (let ((previous (gemini-companion-run--buffer place))
        (buffer (generate-new-buffer " *gemini*")))
    (with-current-buffer buffer
      (setq default-directory (plist-get place :directory)
            gemini-companion-run--place place)
      (insert "Gemini CLI starts here when the server is ready.\n")
      (set-buffer-modified-p nil))
    (if-let* ((window (and previous (get-buffer-window previous))))
        (progn (select-window window)
               (set-window-buffer window buffer)
               (set-buffer buffer))
      (gemini-companion-run--show buffer))
    (when previous
      (kill-buffer previous))
    (with-current-buffer buffer
      (rename-buffer (gemini-companion-run--name place)))
    (push buffer gemini-companion-run--waiting)))

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

(defun gemini-companion-run--give-up ()
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
                 (gemini-companion-run--environment)))
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
  "Mark BUFFER when its process ends."
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
  "Mark BUFFER as one without a Gemini CLI, for REASON."
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

;;;; Hint

(defun gemini-companion-run--tty-process (buffer)
  "Return the live process of BUFFER if that is a terminal, else nil."
  (when-let* ((process (and (buffer-live-p buffer)
                            (get-buffer-process buffer))))
    (and (process-live-p process)
         (process-id process)
         (process-tty-name process)
         process)))

(defun gemini-companion-run--front-pid (process)
  "Return the id of the foreground process of the terminal PROCESS."
  (let ((child (process-running-child-p process)))
    (if (numberp child) child (process-id process))))

(defun gemini-companion-run--interactive-p (command)
  "Return non-nil if COMMAND, a string, is an interactive Gemini CLI."
  (and (gemini-companion-session-cli-p command)
       (null (seq-intersection
              (split-string command " " t)
              '("-p" "--prompt" "--acp" "--experimental-acp")))))

(defun gemini-companion-run--connected-p (buffer)
  "Return non-nil if a CLI in BUFFER is connected."
  (seq-some (lambda (session)
              (eq buffer (gemini-companion-session-terminal session)))
            (gemini-companion-sessions)))

(defun gemini-companion-run--unconnected (buffer)
  "Return a CLI in BUFFER that is not connected, or nil.
That is a cons of its process id and its age in seconds."
  (when-let* ((process (gemini-companion-run--tty-process buffer))
              (pid (gemini-companion-run--front-pid process))
              (attributes (and (not (memq pid gemini-companion-run--hinted))
                               (process-attributes pid))))
    (and (gemini-companion-run--interactive-p (alist-get 'args attributes))
         (not (gemini-companion-run--connected-p buffer))
         (cons pid (float-time (alist-get 'etime attributes 0))))))

(defun gemini-companion-run--notice (frame)
  "Check the terminals soon if the user went to one in FRAME, or left one."
  (let ((buffer (window-buffer (frame-selected-window frame))))
    (unless (eq buffer gemini-companion-run--last-buffer)
      (when (or (gemini-companion-run--tty-process buffer)
                (gemini-companion-run--tty-process
                 gemini-companion-run--last-buffer))
        (gemini-companion-run--check-in gemini-companion-run--connect-seconds))
      (setq gemini-companion-run--last-buffer buffer))))

(defun gemini-companion-run--check-in (seconds)
  "Check the terminals in SECONDS, unless that is planned anyway."
  (unless gemini-companion-run--timer
    (setq gemini-companion-run--timer
          (run-at-time seconds nil #'gemini-companion-run--check))))

(defun gemini-companion-run--check ()
  "Check the terminals for a CLI that is not connected."
  (setq gemini-companion-run--timer nil)
  (when (gemini-companion-server-ready-p)
    (let ((youngest nil))
      (dolist (buffer (buffer-list))
        (pcase (gemini-companion-run--unconnected buffer)
          (`(,pid . ,age)
           (if (<= gemini-companion-run--connect-seconds age)
               (gemini-companion-run--plan-hint buffer pid age)
             (setq youngest (min age (or youngest age)))))))
      (when youngest
        (gemini-companion-run--check-in
         (- (1+ gemini-companion-run--connect-seconds) youngest))))))

(defun gemini-companion-run--plan-hint (buffer pid age)
  "Give a hint for the CLI PID of AGE seconds in BUFFER when Emacs is idle."
  (unless gemini-companion-run--timer
    (setq gemini-companion-run--timer
          (run-with-idle-timer gemini-companion-run--idle-seconds nil
                               #'gemini-companion-run--hint
                               buffer pid age))))

(defun gemini-companion-run--hint (buffer pid age)
  "Give a hint for the CLI PID of AGE seconds in BUFFER, once."
  (setq gemini-companion-run--timer nil)
  (when (and (equal pid (car (gemini-companion-run--unconnected buffer)))
             (not (active-minibuffer-window)))
    (push pid gemini-companion-run--hinted)
    (message (gemini-companion-run--hint-text buffer pid age)
             (buffer-name buffer))
    ;; Another may have waited for this one.
    (gemini-companion-run--check-in gemini-companion-run--connect-seconds)))

(defun gemini-companion-run--pid-directory (buffer pid)
  "Return the working directory of the process PID of BUFFER."
  (let ((link (format "/proc/%d/cwd" pid)))
    (file-name-as-directory
     (file-truename (if (file-accessible-directory-p link)
                        link
                      (buffer-local-value 'default-directory buffer))))))

(defun gemini-companion-run--inside-p (directory)
  "Return non-nil if a CLI in DIRECTORY may connect."
  (seq-some (lambda (root)
              (string-prefix-p (file-name-as-directory root) directory))
            (gemini-companion-share-roots)))

(defun gemini-companion-run--hint-text (buffer pid age)
  "Return the hint for the CLI PID of AGE seconds in BUFFER.
In it %s stands for the name of BUFFER."
  (cond ((not (gemini-companion-run--inside-p
               (gemini-companion-run--pid-directory buffer pid)))
         "Gemini CLI in %s cannot connect, as it runs outside the open \
projects; M-x gemini-companion-status shows more")
        ((< (- (float-time) (or (gemini-companion-server-since) 0)) age)
         "Gemini CLI in %s was started before gemini-companion-mode; \
start it again, or run /ide enable there")
        (t
         "Gemini CLI in %s is not connected; run /ide enable there \
\(M-x gemini-companion-status shows why)")))

;;;; Life

(defun gemini-companion-run-ready (_how)
  "Start the CLIs that waited for the server, and follow the others."
  (gemini-companion-run--export
   (plist-get (gemini-companion-server-info) :port) (emacs-pid))
  (gemini-companion-run--start)
  (dolist (hook gemini-companion-run--hooks)
    (add-hook hook #'gemini-companion-run--lead)
    (add-hook hook #'gemini-companion-run--notice))
  (when (seq-some #'gemini-companion-run--tty-process (buffer-list))
    (gemini-companion-run--check-in gemini-companion-run--connect-seconds)))

(defun gemini-companion-run-stop ()
  "Start and follow no CLI any more, and restore the environment."
  (gemini-companion-run--give-up)
  (dolist (hook gemini-companion-run--hooks)
    (remove-hook hook #'gemini-companion-run--lead)
    (remove-hook hook #'gemini-companion-run--notice))
  (gemini-companion-run--restore)
  (when gemini-companion-run--timer
    (cancel-timer gemini-companion-run--timer))
  (setq gemini-companion-run--timer nil
        gemini-companion-run--hinted nil
        gemini-companion-run--last-buffer nil))

;;;; Command

;;;###autoload
(defun gemini-companion-run (&optional number)
  "Switch to the Gemini CLI of this project, or start it in a terminal.
It starts in the root of the project, when the server is ready; the
mode is turned on for that.  NUMBER, the prefix argument, switches
to another one of the same project; \\[universal-argument] alone starts one more."
  (interactive "P")
  (let ((place (gemini-companion-run--wanted-place number)))
    (unless (gemini-companion-run--switch place)
      (gemini-companion-run--check-place place)
      (unless gemini-companion-mode
        (gemini-companion-mode 1))
      (when gemini-companion-mode
        (gemini-companion-run--prepare place)
        (when (gemini-companion-server-ready-p)
          (gemini-companion-run--start))))))

(provide 'gemini-companion-run)
;;; gemini-companion-run.el ends here
