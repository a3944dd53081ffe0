;;; gemini-companion-run.el --- CLIs in a terminal here  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Start a CLI in a terminal of this Emacs, in the root of a project; one
;; buffer for each project, more on request.  A CLI searches for Emacs
;; once, when it starts, so it is started when the server is ready.
;;
;; Programs that Emacs starts inherit a few variables by which a CLI finds this
;; Emacs among several.  Terminals outside Emacs do not need them: there the
;; discovery file is enough.
;;
;; A CLI that was started here and does not connect needs /ide enable, once; a
;; hint in the echo area shows that.

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-clients)
(require 'gemini-companion-install)
(require 'gemini-companion-name)
(require 'gemini-companion-send)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
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
(defvar term-raw-map)
(defvar vterm-kill-buffer-on-exit)
(defvar vterm-min-window-width)
(defvar vterm-shell)

;;;; Customization

(defgroup gemini-companion-terminal nil
  "CLIs in terminals of this Emacs."
  :group 'gemini-companion)

(defcustom gemini-companion-run-commands nil
  "Commands that start the CLIs, an alist of (CLIENT . COMMAND).
CLIENT is \"gemini\" or \"qwen\".  COMMAND is a program, or a list
\(PROGRAM ARG...).  A CLI that is not in the alist is started by the
program of its name."
  :type `(alist :key-type (choice ,@(gemini-companion-clients-choices))
                :value-type (choice (string :tag "Program")
                                    (repeat :tag "Program and arguments"
                                            string)))
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-run-client nil
  "CLI that `gemini-companion-run' starts, \"gemini\" or \"qwen\".
Nil means the one that is installed.  If several are, the command
asks, and sets this option."
  :type `(choice (const :tag "The one that is installed" nil)
                 ,@(gemini-companion-clients-choices))
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-run-offer-ide t
  "Non-nil means to offer to enable the IDE integration of a CLI.
The question is asked before a CLI starts whose IDE integration is off,
as it cannot connect.  Answering no sets this option to nil."
  :type 'boolean
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-terminal nil
  "Terminal in which `gemini-companion-run' starts a CLI.
Nil means the first of vterm, eat and term that is installed.

A function is called with the command, a list of strings.  The current
buffer is empty, is displayed already, and has the directory and the
environment to use.  The function makes that buffer a terminal that runs
the command, or starts a terminal outside of Emacs."
  :type '(choice (const :tag "The first that is installed" nil)
                 (const :tag "vterm" vterm)
                 (const :tag "eat" eat)
                 (const :tag "term, which is part of Emacs" term)
                 function)
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-run-side-window nil
  "Side of the frame where the CLI is shown, or nil for any window.
At a side, `gemini-companion-run' hides the window if it is the
selected one."
  :type '(choice (const :tag "Any window" nil)
                 (const right) (const left) (const bottom))
  :package-version '(gemini-companion . "0.1.0"))

;;;; State

(defvar-local gemini-companion-run--place nil
  "Parameters of the CLI in this buffer, a plist, or nil.
Its `:client', `:directory' and `:number' distinguish it from
others; `:environment' and `:path' are what it is started with.")

;; The modes of terminals kill all other local variables.
(put 'gemini-companion-run--place 'permanent-local t)

(defvar gemini-companion-run--waiting nil
  "Buffers in which a CLI is to start when the server is ready.")

(defvar gemini-companion-run--exported nil
  "Alist of (NAME . VALUE), the variables that are exported, or nil.
VALUE is nil for a variable that is unset.")

(defvar gemini-companion-run--inherited nil
  "Alist of (NAME . VALUE), the values that the exported variables had.")

(defconst gemini-companion-run--connect-seconds 10
  "Seconds of idleness before a hint about a CLI that is not connected.")

(defvar gemini-companion-run--checked nil
  "Names of the clients whose settings were checked.")

;;;; Environment

(defconst gemini-companion-run-container-variables
  '("SSH_CONNECTION" "REMOTE_CONTAINERS" "VSCODE_REMOTE_CONTAINERS_SESSION")
  "Variables that make a CLI search for editors in its own container.")

(defun gemini-companion-run-container-p ()
  "Return non-nil if a CLI detects that Emacs is in a container."
  (or (file-exists-p "/.dockerenv")
      (file-exists-p "/run/.containerenv")))

(defun gemini-companion-run--variables (port pid)
  "Return an alist of the variables that name Emacs PID at PORT to a CLI."
  `(,@(seq-mapcat
       (lambda (client)
         (let ((row (cdr client)))
           (cons (cons (plist-get row :port-variable) (number-to-string port))
                 (when-let* ((name (plist-get row :pid-variable)))
                   (list (cons name (number-to-string pid)))))))
       gemini-companion-clients)
    ,@(mapcar #'list (gemini-companion-clients-all :unset))
    ;; In a container the client connects to the host, unless this
    ;; variable indicates that its editor is in the container.
    ,@(when (and (gemini-companion-run-container-p)
                 (not (seq-some #'getenv
                                gemini-companion-run-container-variables)))
        '(("REMOTE_CONTAINERS" . "1")))))

(defun gemini-companion-run--with (variables environment)
  "Return ENVIRONMENT with VARIABLES, an alist; nil unsets a variable."
  (seq-reduce (pcase-lambda (result `(,name . ,value))
                (setenv-internal result name value nil))
              variables (copy-sequence environment)))

(defun gemini-companion-run--change-environments (change)
  "Set each environment to the value of CHANGE, a function, for it.
Environments are the default one and the ones of buffers; packages such as envrc
and mise make one for each project."
  (setq-default process-environment
                (funcall change (default-value 'process-environment)))
  (dolist (buffer (buffer-list))
    (when (local-variable-p 'process-environment buffer)
      (with-current-buffer buffer
        (setq process-environment (funcall change process-environment))))))

(defun gemini-companion-run--led-p (environment)
  "Return non-nil if ENVIRONMENT names the server to a CLI."
  (pcase-let ((`(,name . ,port) (car gemini-companion-run--exported)))
    (equal port (getenv-internal name environment))))

(defun gemini-companion-run--export (port pid)
  "Export the variables that name Emacs PID at PORT to a CLI."
  (gemini-companion-run--restore)
  (setq gemini-companion-run--exported
        (gemini-companion-run--variables port pid)
        gemini-companion-run--inherited
        (let ((process-environment (default-value 'process-environment)))
          (mapcar (pcase-lambda (`(,name . ,_)) (cons name (getenv name)))
                  gemini-companion-run--exported)))
  (gemini-companion-run--change-environments
   (apply-partially #'gemini-companion-run--with
                    gemini-companion-run--exported)))

(defun gemini-companion-run--restore ()
  "Restore the exported variables to their values in the default environment.
An environment in which they have changed is not modified."
  (when gemini-companion-run--exported
    (gemini-companion-run--change-environments
     (lambda (environment)
       (if (gemini-companion-run--led-p environment)
           (gemini-companion-run--with gemini-companion-run--inherited
                                       environment)
         environment))))
  (setq gemini-companion-run--exported nil
        gemini-companion-run--inherited nil))

;;;; Clients

(defun gemini-companion-run-command (client)
  "Return the command for CLIENT, a list."
  (ensure-list (or (cdr (assoc client gemini-companion-run-commands))
                   (gemini-companion-clients-get client :program))))

(defun gemini-companion-run--title (place)
  "Return the name for the user of the CLI of PLACE."
  (gemini-companion-clients-title (plist-get place :client)))

(defun gemini-companion-run--choose-client (another)
  "Return the CLI to start; ask if several are installed.
Unless ANOTHER is non-nil, do so once, and set the option
`gemini-companion-run-client' to the answer."
  (let ((installed
         (seq-filter
          (lambda (client)
            (executable-find (car (gemini-companion-run-command client))))
          (mapcar #'car gemini-companion-clients))))
    (cond ((and gemini-companion-run-client
                (not (and another (cdr installed))))
           gemini-companion-run-client)
          ((cdr installed)
           (let ((client (gemini-companion-clients-read
                          "Start"
                          (mapcar (lambda (name)
                                    (cons (gemini-companion-clients-title name)
                                          name))
                                  installed))))
             (unless another
               (customize-save-variable 'gemini-companion-run-client client))
             client))
          ((car installed))
          (t (caar gemini-companion-clients)))))

(defun gemini-companion-run--offer-ide (place)
  "Ask whether to enable IDE integration in the CLI of PLACE, if it is off.
Return nil if the user has to edit a settings file first."
  (let* ((process-environment (plist-get place :environment))
         (client (plist-get place :client))
         (files (gemini-companion-settings-files
                 client (plist-get place :directory)))
         (file (gemini-companion-clients-file client :user-settings)))
    (pcase-let ((`(,keys ,value . ,_)
                 (car (gemini-companion-clients-get client :required))))
      (cond
       ((or (not gemini-companion-run-offer-ide)
            (not (member (gemini-companion-settings-find files keys)
                         (list nil file)))
            (equal value (gemini-companion-settings-get file keys))
            ;; The CLI reports a malformed file.
            (not (ignore-errors (gemini-companion-settings-read file) t)))
        t)
       ((y-or-n-p (format "Enable IDE integration in %s? "
                          (gemini-companion-run--title place)))
        (gemini-companion-settings-set file keys value))
       (t
        (customize-save-variable 'gemini-companion-run-offer-ide nil)
        t)))))

;;;; Places

(defun gemini-companion-run--wanted-place (number)
  "Return the place of the CLI for the current buffer, a plist.
NUMBER, a raw prefix argument, chooses one of several in a directory."
  (let* ((here (or gemini-companion-run--place
                   (gemini-companion-run--new-place)))
         (directory (plist-get here :directory))
         (exec-path (plist-get here :path))
         (client (or (and (not (consp number))
                          (or (plist-get here :client)
                              (gemini-companion-run--live-client directory)))
                     (gemini-companion-run--choose-client (consp number))))
         (number (pcase number
                   ('nil (or (plist-get here :number) 1))
                   ((pred consp)
                    (gemini-companion-run--free-number client directory))
                   (_ (prefix-numeric-value number)))))
    (append (list :client client :number number) here)))

(defun gemini-companion-run--new-place ()
  "Return a place for the current buffer, which is not the terminal of a CLI.
Its directory is the root of the buffer's project, if there is one."
  (when (file-remote-p default-directory)
    (user-error "Cannot run a CLI in remote directory %s; \
switch to a local buffer"
                (abbreviate-file-name default-directory)))
  (let ((directory (expand-file-name (if-let* ((project (project-current)))
                                         (project-root project)
                                       default-directory))))
    (unless (file-accessible-directory-p directory)
      (user-error "Directory %s does not exist; switch to another buffer"
                  (abbreviate-file-name directory)))
    (list :directory (file-name-as-directory directory)
          :environment process-environment
          :path exec-path)))

(defun gemini-companion-run--live-client (directory)
  "Return a live CLI of DIRECTORY, the chosen one first, or nil."
  (seq-find (lambda (client)
              (gemini-companion-run--live-buffer
               (list :client client :directory directory :number 1)))
            (cons gemini-companion-run-client
                  (mapcar #'car gemini-companion-clients))))

(defun gemini-companion-run--buffer (place)
  "Return the buffer of PLACE, or nil."
  (seq-find
   (lambda (buffer)
     (when-let* ((other (buffer-local-value 'gemini-companion-run--place
                                            buffer)))
       (seq-every-p (lambda (key)
                      (equal (plist-get place key) (plist-get other key)))
                    '(:client :directory :number))))
   (buffer-list)))

(defun gemini-companion-run--live-buffer (place)
  "Return the buffer of PLACE if it has a live process or waits for one."
  (when-let* ((buffer (gemini-companion-run--buffer place)))
    (and (or (memq buffer gemini-companion-run--waiting)
             (process-live-p (get-buffer-process buffer)))
         buffer)))

(defun gemini-companion-run--free-number (client directory)
  "Return the first free number for CLIENT in DIRECTORY."
  (let ((number 1))
    (while (gemini-companion-run--live-buffer
            (list :client client :directory directory :number number))
      (setq number (1+ number)))
    number))

(defun gemini-companion-run--name (place)
  "Return the name for the buffer of PLACE, if no other has it."
  (let ((client (plist-get place :client))
        (directory (gemini-companion-name-shown
                    (file-name-nondirectory
                     (directory-file-name (plist-get place :directory)))))
        (number (plist-get place :number)))
    (if (eql number 1)
        (format "*%s: %s*" client directory)
      (format "*%s: %s (%d)*" client directory number))))

(defun gemini-companion-run--check-place (place)
  "Signal an error if the program of PLACE or its terminal is missing."
  (unless (gemini-companion-run--terminal)
    (user-error "Emacs has no terminal on Windows; start the CLI in a window \
of its own, in %s"
                (abbreviate-file-name (plist-get place :directory))))
  (when (and (memq gemini-companion-terminal '(vterm eat))
             (not (locate-library
                   (symbol-name gemini-companion-terminal))))
    (user-error "Package %s is not installed; install it (M-x \
package-install RET %s), or customize `gemini-companion-terminal'"
                gemini-companion-terminal gemini-companion-terminal))
  (let* ((client (plist-get place :client))
         (program (car (gemini-companion-run-command client)))
         (exec-path (plist-get place :path)))
    (unless (executable-find program)
      (user-error "Cannot find the program %s; install it (npm install -g \
%s, which needs Node.js %s), or customize `gemini-companion-run-commands'%s"
                  program
                  (gemini-companion-clients-get client :package)
                  (gemini-companion-clients-get client :node)
                  (gemini-companion-install-path-hint)))))

;;;; Windows

(defconst gemini-companion-run--split-columns 120
  "Width from which the only window is split into two side by side.
Emacs's own default, 160, would put a CLI below the file in most frames.")

(defun gemini-companion-run--show (buffer)
  "Show BUFFER and select its window."
  (let ((split-width-threshold
         (if (and split-width-threshold (one-window-p t))
             (min split-width-threshold gemini-companion-run--split-columns)
           split-width-threshold)))
    (pop-to-buffer
     buffer
     (pcase gemini-companion-run-side-window
       ('nil nil)
       ('bottom '(display-buffer-in-side-window
                  (side . bottom) (window-height . 0.4)))
       (side `(display-buffer-in-side-window
               (side . ,side) (window-width . 0.4)))))))

(defun gemini-companion-run--switch (place)
  "Switch to the live CLI of PLACE; return nil if there is none.
If it is in a selected side window, hide that."
  (when-let* ((buffer (gemini-companion-run--live-buffer place)))
    (if (and gemini-companion-run-side-window
             (eq buffer (window-buffer)))
        (quit-window)
      (gemini-companion-run--show buffer))
    t))

;;;; Start

(defun gemini-companion-run--prepare (place)
  "Show a buffer in which the CLI of PLACE will run."
  (let ((previous (gemini-companion-run--buffer place))
        (buffer (generate-new-buffer " *gemini*")))
    (with-current-buffer buffer
      (setq default-directory (plist-get place :directory)
            gemini-companion-run--place place)
      (insert (gemini-companion-run--title place)
              " starts here when the server is ready.\n")
      (set-buffer-modified-p nil))
    (if-let* ((window (and previous (get-buffer-window previous))))
        (let ((dedicated (window-dedicated-p window)))
          (select-window window)
          (set-window-dedicated-p window nil)
          (set-window-buffer window buffer)
          (set-window-dedicated-p window dedicated)
          (set-buffer buffer))
      (gemini-companion-run--show buffer))
    (when previous
      (kill-buffer previous))
    (with-current-buffer buffer
      (rename-buffer (gemini-companion-run--name place) 'unique))
    (push buffer gemini-companion-run--waiting)))

(defun gemini-companion-run--start (&optional problem)
  "Start the CLIs in the prepared buffers.
If PROBLEM, why none can start, is non-nil, show it there instead."
  (let ((buffers (nreverse gemini-companion-run--waiting)))
    (setq gemini-companion-run--waiting nil)
    (dolist (buffer (seq-filter #'buffer-live-p buffers))
      (condition-case err
          (if problem
              (gemini-companion-run--end buffer problem)
            (gemini-companion-run--in buffer))
        (error
         (gemini-companion-run--end buffer (error-message-string err)))))))

(defun gemini-companion-run--in (buffer)
  "Start the CLI in BUFFER, with the size of its window."
  (save-selected-window
    ;; The terminals take their size from the selected window.
    (when-let* ((window (get-buffer-window buffer t)))
      (select-window window 'norecord))
    (with-current-buffer buffer
      (erase-buffer)
      (let* ((place gemini-companion-run--place)
             (command (gemini-companion-run-command (plist-get place :client)))
             (process-environment
              (gemini-companion-run--with
               ;; Of the terminal of Emacs itself, by which a CLI does not
               ;; believe that a background is white.
               '(("TMUX") ("TMUX_PANE") ("STY"))
               (gemini-companion-run--with gemini-companion-run--exported
                                           (plist-get place :environment))))
             (exec-path (plist-get place :path)))
        (funcall (gemini-companion-run--terminal)
                 (cons (or (executable-find (car command)) (car command))
                       (cdr command))))))
  (when-let* ((process (get-buffer-process buffer)))
    (with-current-buffer buffer
      (gemini-companion-run-mode))
    (gemini-companion-run--expect-end buffer process)
    (run-with-idle-timer gemini-companion-run--connect-seconds nil
                         #'gemini-companion-run--hint buffer process)))

(defun gemini-companion-run--hint (buffer process)
  "Show how to connect the CLI of PROCESS in BUFFER, unless it is connected."
  (when (and (process-live-p process)
             (gemini-companion-server-ready-p)
             (not (memq buffer (mapcar #'gemini-companion-session-terminal
                                       (gemini-companion-sessions)))))
    (message "%s in %s is not connected; run /ide enable there \
\(M-x gemini-companion-status shows why)"
             (gemini-companion-run--title
              (buffer-local-value 'gemini-companion-run--place buffer))
             (buffer-name buffer))))

;;;; Terminals

(defconst gemini-companion-run--truecolor "COLORTERM=truecolor"
  "Entry in the environment of a terminal that displays 24-bit colors.")

(defun gemini-companion-run--terminal ()
  "Return the function to make the current buffer a terminal.
Return nil if there is none, as on Windows."
  (pcase gemini-companion-terminal
    ('vterm #'gemini-companion-run--vterm)
    ('eat #'gemini-companion-run--eat)
    ('term #'gemini-companion-run--term)
    ('nil (cond ((eq system-type 'windows-nt) nil)
                ((and (locate-library "vterm")
                      ;; Without it, loading vterm asks whether to compile one.
                      (locate-library "vterm-module"))
                 #'gemini-companion-run--vterm)
                ((locate-library "eat") #'gemini-companion-run--eat)
                (t #'gemini-companion-run--term)))
    (function function)))

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
         ;; In a narrower window it would draw for 80 columns.
         (vterm-min-window-width 20)
         (process-environment (cons gemini-companion-run--truecolor
                                    process-environment)))
    (vterm-mode))
  (gemini-companion-run--answer-color-questions)
  (setq-local vterm-min-window-width 20)
  (gemini-companion-run--fit (get-buffer-process (current-buffer))))

(defun gemini-companion-run--fit (process)
  "Fit the terminal of PROCESS to the selected window."
  (when-let* ((size (funcall (process-get process 'adjust-window-size-function)
                             process (list (selected-window)))))
    (set-process-window-size process (cdr size) (car size))))

(defun gemini-companion-run--eat (command)
  "Run COMMAND in the current buffer with eat."
  (require 'eat)
  (eat-mode)
  (let ((eat-kill-buffer-on-exit nil)
        (process-environment (cons gemini-companion-run--truecolor
                                   process-environment)))
    (eat-exec (current-buffer) (buffer-name) (car command) nil
              (cdr command))))

(defun gemini-companion-run--term (command)
  "Run COMMAND in the current buffer with term.
\\`M-x' is for Emacs, as in vterm and eat; so are \\`C-x' and \\`C-c',
which are sent to the program if they are typed twice."
  (require 'term)
  (term-mode)
  (let ((process-environment
         (if (< emacs-major-version 29)
             process-environment
           (cons gemini-companion-run--truecolor process-environment))))
    (term-exec (current-buffer) (buffer-name) (car command) nil (cdr command)))
  (setq-local term-raw-map (copy-keymap term-raw-map))
  (define-key term-raw-map (kbd "M-x") #'execute-extended-command)
  (term-char-mode)
  (let (term-escape-char)
    (term-set-escape-char ?\C-x))
  (gemini-companion-run--answer-color-questions))

;;;; Colors

(defconst gemini-companion-run--color-question
  "\e]1\\([01]\\);\\?\\(?:\a\\|\e\\\\\\)"
  "Regexp for the question for the foreground or background color.")

(defconst gemini-companion-run--color-question-beginning
  "\e\\(?:]\\(?:1\\(?:[01]\\(?:;\\(?:\\?\e?\\)?\\)?\\)?\\)?\\)?\\'"
  "Regexp for an incomplete question at the end of a text.")

(defun gemini-companion-run--answer-color-questions ()
  "Answer the program in this buffer when it asks for the colors.
Otherwise a CLI takes the background to be dark, and its text is white
on white in a light theme.  Of the terminals, only eat answers."
  (let ((rest nil))
    (add-function
     :before (process-filter (get-buffer-process (current-buffer)))
     (lambda (process output)
       ;; Most output is not copied: garbage would take longer than the search.
       (let ((text (if rest (concat rest output) output))
             (start 0))
         (when (string-search "\e]1" text)
           (while (string-match gemini-companion-run--color-question text start)
             (setq start (match-end 0))
             (gemini-companion-run--answer-color
              process (match-string 1 text))))
         (setq rest (and (string-match
                          gemini-companion-run--color-question-beginning
                          text (max start (- (length text) 7)))
                         (match-string 0 text))))))))

(defun gemini-companion-run--answer-color (process which)
  "Report a color of the frame of PROCESS to it.
WHICH is \"0\" for the foreground, and \"1\" for the background."
  (let* ((window (get-buffer-window (process-buffer process) t))
         (frame (if window (window-frame window) (selected-frame)))
         (foreground (equal which "0"))
         (color (if foreground
                    (face-foreground 'default frame)
                  (face-background 'default frame)))
         ;; Of a text terminal, Emacs may know only whether it is dark.
         (values (or (color-values color frame)
                     (make-list 3 (if (eq foreground
                                          (eq 'dark (frame-parameter
                                                     frame 'background-mode)))
                                      #xffff
                                    0)))))
    (process-send-string
     process (apply #'format "\e]1%s;rgb:%04x/%04x/%04x\e\\" which values))))

;;;; Keys

(defvar gemini-companion-run-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "ESC ESC") #'gemini-companion-run-escape)
    map)
  "Keys in the terminal of a CLI, in addition to the terminal's own.")

(define-minor-mode gemini-companion-run-mode
  "Mode of a terminal in which `gemini-companion-run' has started a CLI.
\\{gemini-companion-run-mode-map}"
  :lighter nil
  :interactive nil
  ;; Some terminals have their keymaps in minor modes, too.
  (setq-local minor-mode-overriding-map-alist
              (list (cons 'gemini-companion-run-mode
                          gemini-companion-run-mode-map))))

(defun gemini-companion-run-escape ()
  "Send Escape to the CLI in this terminal.
In a text terminal, a single Escape is the beginning of a key of Emacs."
  (interactive)
  (if (gemini-companion-send-takes-keys-p)
      (process-send-string (get-buffer-process (current-buffer)) "\e")
    (keyboard-escape-quit)))

;;;; End

(defvar gemini-companion-run-ended-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "g" 'gemini-companion-run)
    (define-key map "q" #'quit-window)
    map)
  "Keys in the buffer of a CLI that has ended.")

(define-minor-mode gemini-companion-run-ended-mode
  "Mark a buffer in which a CLI ran and has ended."
  :lighter " Ended"
  :interactive nil
  (setq-local minor-mode-overriding-map-alist
              (list (cons 'gemini-companion-run-ended-mode
                          gemini-companion-run-ended-mode-map))
              buffer-read-only t))

(defun gemini-companion-run--expect-end (buffer process)
  "Mark BUFFER when its PROCESS ends."
  (add-function
   :around (process-sentinel process)
   (lambda (sentinel process event)
     ;; vterm would kill the buffer with the error message.
     (let ((vterm-kill-buffer-on-exit nil))
       (funcall sentinel process event))
     (when (and (buffer-live-p buffer)
                (not (process-live-p process)))
       (gemini-companion-run--end
        buffer (format "%s: %s"
                       (gemini-companion-run--title
                        (buffer-local-value 'gemini-companion-run--place
                                            buffer))
                       (string-trim event)))))))

(defun gemini-companion-run--end (buffer reason)
  "Mark BUFFER as one without a CLI, for REASON."
  (with-current-buffer buffer
    (gemini-companion-run-mode -1)
    (gemini-companion-run-ended-mode)
    ;; Evil has its own meaning for the keys.
    (when (bound-and-true-p evil-local-mode)
      (evil-emacs-state))
    (setq header-line-format
          ;; A % would begin a construct of the mode line.
          (string-replace
           "%" "%%"
           (concat " " reason
                   (substitute-command-keys
                    (concat "; \\<gemini-companion-run-ended-mode-map>"
                            "\\[gemini-companion-run] restarts it, "
                            "\\[quit-window] closes the window")))))))

;;;; Settings

(defun gemini-companion-run--check-settings (&rest _)
  "Report CLIs whose settings make them write without asking.
Report it once for each client."
  (dolist (session (gemini-companion-sessions))
    (let ((client (plist-get session :client)))
      (unless (or (null client)
                  (member client gemini-companion-run--checked))
        (push client gemini-companion-run--checked)
        (let ((report (apply-partially #'gemini-companion-run--report-unset
                                       session)))
          (if-let* ((pid (plist-get session :pid)))
              (gemini-companion-server-ask-processes (list pid) report)
            (funcall report nil)))))))

(defun gemini-companion-run--report-unset (session processes)
  "Report which settings SESSION, which has connected, lacks.
PROCESSES is a list of its process, or nil if that is unknown."
  (let ((client (plist-get session :client)))
    (pcase-dolist (`(,_ ,_ ,problem ,command)
                   (seq-intersection
                    ;; Without the first one it would not connect.
                    (cdr (gemini-companion-clients-get client :required))
                    (gemini-companion-settings-missing
                     client (or (plist-get session :directory) "/")
                     (plist-get (car processes) :environment))))
      (message "%s; type %s there (or use M-x gemini-companion-status)"
               problem command))))

;;;; Life

(defun gemini-companion-run-ready (_how)
  "Start the CLIs that waited for the server, and prepare for others."
  (add-hook 'gemini-companion-session-changed-functions
            #'gemini-companion-run--check-settings)
  (gemini-companion-run--export
   (plist-get (gemini-companion-server-info) :port) (emacs-pid))
  (gemini-companion-run--start))

(defun gemini-companion-run-stop ()
  "Stop starting CLIs, and restore the environment."
  (gemini-companion-run--start "The server is not running")
  (remove-hook 'gemini-companion-session-changed-functions
               #'gemini-companion-run--check-settings)
  (gemini-companion-run--restore)
  (cancel-function-timers #'gemini-companion-run--hint)
  (setq gemini-companion-run--checked nil))

;;;; Command

;;;###autoload
(defun gemini-companion-run (&optional number)
  "Switch to the CLI of this project, or start it in a terminal.
It starts in the root of the project, when the server is ready; the
mode is turned on for that.  `gemini-companion-run-client' is the
CLI to start.  NUMBER, the prefix argument, switches to the CLI with
that number in the same project; \\[universal-argument] alone starts
one more, of either kind."
  (interactive "P")
  (let ((place (gemini-companion-run--wanted-place number)))
    (unless (gemini-companion-run--switch place)
      (gemini-companion-run--check-place place)
      (when (gemini-companion-run--offer-ide place)
        (unless gemini-companion-mode
          (gemini-companion-mode 1))
        (when gemini-companion-mode
          (gemini-companion-run--prepare place)
          (when (gemini-companion-server-ready-p)
            (gemini-companion-run--start)))))))

(provide 'gemini-companion-run)
;;; gemini-companion-run.el ends here
