;;; gemini-companion-terminal.el --- Kinds of terminals and their output  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Run a CLI in vterm, eat or term, and display its buffer.  A buffer-local struct
;; describes the CLI.
;;
;; This file handles OSC escape sequences in the output before the terminal emulator
;; receives it: queries for the colors, the window title and reports of the Program
;; Status Protocol, which show the state of the CLI, and text that the CLI copies.  For
;; term, these sequences are removed, since term would display them.
;;
;; Known issues:
;;
;; - A sequence of more than 200,000 characters is not handled, as the regexps of Emacs 28
;;   fail for twice that: such a text is not copied.  No test
;; - Qwen Code waits for an answer about colors for 0.2 s only; if Emacs is busy longer, it
;;   has the theme for COLORFGBG.  No test
;; - On a text terminal, Emacs may know only whether the background is dark, and answers
;;   with black and white.
;;   Test: `gemini-companion-terminal-answers-questions-for-colors'

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-session)
(require 'gemini-companion-state)

(declare-function eat-exec "ext:eat")
(declare-function eat-mode "ext:eat")
(declare-function term-char-mode "term")
(declare-function term-exec "term")
(declare-function term-mode "term")
(defvar term-home-marker)
(defvar term-raw-map)
(declare-function vterm-mode "ext:vterm")
(defvar vterm-kill-buffer-on-exit)
(defvar vterm-min-window-width)
(defvar vterm-shell)
(declare-function evil-emacs-state "ext:evil-states")
(declare-function evil-insert-state "ext:evil-states")
(defvar eat-kill-buffer-on-exit)

;;;; Customization

(defgroup gemini-companion-terminal nil
  "CLIs in terminals of this Emacs."
  :group 'gemini-companion)

(defcustom gemini-companion-terminal nil
  "Terminal in which `gemini-companion-run' starts a CLI.
Nil means the first of vterm, eat and term that is installed.

A function is called with the command, a list of strings, in an empty,
displayed buffer with the directory and the environment to use.  The
function turns that buffer into a terminal that runs the command, or
starts a terminal outside of Emacs."
  :type '(choice (const :tag "The first that is installed" nil)
                 (const :tag "vterm" vterm)
                 (const :tag "eat" eat)
                 (const :tag "term, which is part of Emacs" term)
                 function)
  :package-version '(gemini-companion . "0.1.0"))

(defcustom gemini-companion-run-side-window nil
  "Side of the frame for the window of a CLI, or nil for any window.
If the side window is selected, `gemini-companion-run' hides it."
  :type '(choice (const :tag "Any window" nil)
                 (const right) (const left) (const bottom))
  :package-version '(gemini-companion . "0.1.0"))

;;;; Keys

(defvar gemini-companion-terminal-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "ESC ESC") #'gemini-companion-run-escape)
    (define-key map (kbd "C-c C-o") 'gemini-companion-visit-location)
    (define-key map [mouse-1] 'gemini-companion-visit-location-at-click)
    map)
  "Keys in the terminal of a CLI, in addition to the terminal's own.")

(defvar gemini-companion-terminal-ended-map
  (let ((map (make-sparse-keymap)))
    (define-key map "g" 'gemini-companion-run)
    (define-key map "r" 'gemini-companion-resume)
    (define-key map "q" #'quit-window)
    (define-key map (kbd "C-c C-o") 'gemini-companion-visit-location)
    map)
  "Keys in the buffer of a CLI that has ended.")

;;;; State

(defvar-local gemini-companion-terminal-hint nil
  "How to connect the CLI in this buffer, for its header line, or nil.
It is displayed while the CLI is not connected.")

(defvar gemini-companion-terminal-header-function #'ignore
  "Function that returns the header line of the terminal of a CLI.
It is called without arguments in the buffer of the terminal, while the
header line is displayed; gemini-companion-notify.el sets it.")

(cl-defstruct (gemini-companion-terminal-cli
               (:noinline t)
               (:constructor gemini-companion-terminal-cli-make)
               (:copier gemini-companion-terminal-cli-copy))
  "A CLI that Emacs starts, or has started, in a terminal.
CLIENT, DIRECTORY and NUMBER distinguish it from others: CLIENT is a key
of `gemini-companion-clients', such as \"gemini\", and nil until one
is chosen; NUMBER is 1 for the first such CLI in DIRECTORY.

ENVIRONMENT and PATH are the values of `process-environment' and
`exec-path' to start it with, and ARGUMENTS are additional arguments.

On a remote host, REMOTE is the name of that host, such as
\"/ssh:host:\", with which DIRECTORY begins; THERE is the directory on
the host, and ROOT the workspace root there once the host is connected."
  client directory number environment path arguments remote there root)

(defvar-local gemini-companion-terminal-cli nil
  "The CLI in this buffer, a `gemini-companion-terminal-cli', or nil.
It may have ended.")
;; The modes of terminals kill all other local variables.
(put 'gemini-companion-terminal-cli 'permanent-local t)

(defun gemini-companion-terminal-cli-with (cli &rest changes)
  "Return a copy of CLI with CHANGES, slots and their new values.
For example, CHANGES are \\='number 2 \\='arguments nil."
  (let ((copy (gemini-companion-terminal-cli-copy cli)))
    ;; The list begins with the tag, as the struct does.
    (cl-loop with slots = (mapcar #'car
                                  (cl-struct-slot-info 'gemini-companion-terminal-cli))
             for (slot value) on changes by #'cddr
             do (aset copy (seq-position slots slot) value))
    copy))

;;;; Kinds of terminals

(defun gemini-companion-terminal-function ()
  "Return the function to run a command in the terminal of the user.
It is nil on Windows, where no terminal works."
  (pcase gemini-companion-terminal
    ('vterm #'gemini-companion-terminal--vterm)
    ('eat #'gemini-companion-terminal--eat)
    ('term #'gemini-companion-terminal--term)
    ('nil (cond ((eq system-type 'windows-nt) nil)
                ((and (locate-library "vterm")
                      ;; Without the module, vterm asks whether to compile one.
                      (locate-library "vterm-module"))
                 #'gemini-companion-terminal--vterm)
                ((locate-library "eat") #'gemini-companion-terminal--eat)
                (t #'gemini-companion-terminal--term)))
    (function function)))

(defun gemini-companion-terminal-show-plainly ()
  "Turn off display features of global modes in a terminal.
For example, with line numbers, vterm would display rows that are too wide."
  (when gemini-companion-terminal-cli
    (dolist (mode '( display-line-numbers-mode linum-mode hl-line-mode
                     display-fill-column-indicator-mode))
      (when (and (boundp mode) (symbol-value mode))
        (funcall mode -1)))
    (setq-local display-line-numbers nil
                global-hl-line-mode nil
                show-trailing-whitespace nil)))

(defun gemini-companion-terminal-start (command)
  "Run COMMAND in the current buffer, in a terminal with the selected window."
  (let* ((function (gemini-companion-terminal-function))
         (process-environment
          `(;; Qwen Code waits for an answer of the terminal for 0.2 s only.
            ,(if (eq 'dark (frame-parameter nil 'background-mode))
                 "COLORFGBG=15;0"
               "COLORFGBG=0;15")
            ;; Only term of Emacs 28 cannot display 24-bit colors.
            ,@(unless (and (eq function #'gemini-companion-terminal--term)
                           (< emacs-major-version 29))
                '("COLORTERM=truecolor"))
            ,@process-environment)))
    (unwind-protect
        ;; A terminal takes the size of the window when its mode begins, so there
        ;; must be a header line, and no line numbers, already.
        (cl-letf (((default-value 'header-line-format) " ")
                  ((default-value 'display-line-numbers) nil))
          ;; Global modes turn on at the end of the terminal's mode, and term
          ;; and eat start the program after that.
          (add-hook 'after-change-major-mode-hook
                    #'gemini-companion-terminal-show-plainly 100)
          (funcall function command))
      (remove-hook 'after-change-major-mode-hook
                   #'gemini-companion-terminal-show-plainly))
    (gemini-companion-terminal-show-plainly)))

(defun gemini-companion-terminal--vterm (command)
  "Run COMMAND in the current buffer with vterm."
  (require 'vterm)
  (let ((vterm-shell
         ;; On a text terminal, vterm would use the column that Emacs needs for `$'.
         (format "sh -c %s"
                 (shell-quote-argument
                  (format "stty columns %d; exec %s"
                          (window-max-chars-per-line)
                          (mapconcat #'shell-quote-argument command " ")))))
        ;; In a narrower window, vterm would draw 80 columns.
        (vterm-min-window-width 20))
    (vterm-mode))
  (setq-local vterm-min-window-width 20))

(defun gemini-companion-terminal--eat (command)
  "Run COMMAND in the current buffer with eat."
  (require 'eat)
  (eat-mode)
  (let ((eat-kill-buffer-on-exit nil))
    (eat-exec (current-buffer) (buffer-name) (car command) nil (cdr command))))

(defun gemini-companion-terminal--term (command)
  "Run COMMAND in the current buffer with term.
\\`M-x', \\`C-x' and \\`C-c' are keys of Emacs, as in vterm and eat; typed
twice, \\`C-x' and \\`C-c' are sent to the program."
  (require 'term)
  (term-mode)
  ;; CLIs write UTF-8 in any locale.
  (setq-local locale-coding-system 'utf-8-unix)
  (term-exec (current-buffer) (buffer-name) (car command) nil (cdr command))
  (setq-local term-raw-map (copy-keymap term-raw-map))
  (define-key term-raw-map (kbd "M-x") #'execute-extended-command)
  ;; The map of term's prefix key C-c sends a second C-c.
  (define-key term-raw-map (kbd "C-x")
    (make-composed-keymap '(keymap (?\C-x . term-send-raw)) ctl-x-map))
  (term-char-mode))

;;;; Display

(defun gemini-companion-terminal-show (buffer)
  "Display BUFFER, the terminal of a CLI, unless it is visible; select it."
  (let ((split-width-threshold
         ;; The default, 160, would put a CLI below the file in most frames.
         (if (and split-width-threshold (one-window-p t))
             (min split-width-threshold 120)
           split-width-threshold)))
    (pop-to-buffer
     buffer
     (pcase (unless (get-buffer-window buffer)
              gemini-companion-run-side-window)
       ('nil '(nil (category . gemini-companion-terminal)
                   (reusable-frames . visible)))
       (side `(display-buffer-in-side-window
               (category . gemini-companion-terminal)
               (side . ,side)
               (,(if (eq side 'bottom) 'window-height 'window-width)
                . 0.4))))))
  ;; Emacs would center the cursor of term, with nothing below it.
  (when-let* ((window (get-buffer-window buffer 'visible))
              ((with-current-buffer buffer (derived-mode-p 'term-mode))))
    (set-window-start window (buffer-local-value 'term-home-marker buffer) t))
  ;; In insert state, Evil sends keys to the CLI.
  (when (bound-and-true-p evil-local-mode)
    (evil-insert-state)))

(defun gemini-companion-terminal-show-question (buffer)
  "Select BUFFER, a terminal in which a CLI asks; ignore RET there once.
RET is a yes there, and it may be the last key of a command that was typed
without a look at the question.  Discard keys that were typed before the
terminal is displayed."
  (gemini-companion-terminal-show buffer)
  (when (and (input-pending-p) (not executing-kbd-macro))
    (discard-input)
    (message "Keys ignored: the terminal has just been selected"))
  (let ((map (make-sparse-keymap)))
    (dolist (key '("RET" "<return>"))
      (define-key map (kbd key) #'gemini-companion-terminal--ignore-key))
    (set-transient-map map)))

(defun gemini-companion-terminal--ignore-key ()
  "Ignore a key that was typed as the first one in a terminal."
  (interactive)
  (message "RET ignored: the terminal has just been selected; type it again to answer"))

(defun gemini-companion-terminal-takes-keys-p ()
  "Return non-nil if the current buffer is a terminal that takes keys.
vterm and term take no keys while the user copies text or edits a line."
  (cond ((derived-mode-p 'vterm-mode)
         (not (bound-and-true-p vterm-copy-mode)))
        ((derived-mode-p 'term-mode)
         (eq (current-local-map) (bound-and-true-p term-raw-map)))
        ((derived-mode-p 'eat-mode) t)))

(defun gemini-companion-terminal-process (session)
  "Return the process of the terminal of SESSION if a text can be typed there.
Return nil if SESSION waits for an answer: the text would be the answer."
  (when-let* (((not (eq 'waiting (gemini-companion-session-state session))))
              (buffer (gemini-companion-session-terminal session))
              (process (get-buffer-process buffer)))
    (with-current-buffer buffer
      (and (process-live-p process)
           (gemini-companion-terminal-takes-keys-p)
           (gemini-companion-session-has-terminal-p process session)
           process))))

;;;; Output

(defun gemini-companion-terminal--unwatch (process)
  "Stop handling the output of PROCESS."
  (process-put process 'gemini-companion-title nil)
  (process-put process 'gemini-companion-program-status nil)
  (process-put process 'gemini-companion-output-rest nil)
  (remove-function (process-filter process) #'gemini-companion-terminal--filter))

(defun gemini-companion-terminal-watch (&rest _)
  "Handle the output of the terminals of all CLIs, and of no others.
Called when a CLI has started, connected or disconnected."
  (let ((buffers (delq nil (mapcar #'gemini-companion-session-terminal
                                   (gemini-companion-sessions)))))
    (dolist (process (process-list))
      (let ((buffer (process-buffer process))
            (started (process-get process 'gemini-companion-started)))
        (if (not (or started (memq buffer buffers)))
            (gemini-companion-terminal--unwatch process)
          (add-function :filter-args (process-filter process)
                        #'gemini-companion-terminal--filter)
          ;; The process may be about to end.
          (when (and started (buffer-live-p buffer))
            (with-current-buffer buffer
              (setq header-line-format '(:eval (funcall gemini-companion-terminal-header-function)))
              ;; eat has its keymaps in minor modes, which would come first.
              (setq-local minor-mode-overriding-map-alist
                          (list (cons t gemini-companion-terminal-map))))))))))

(defun gemini-companion-terminal-release ()
  "Make the terminals of running CLIs ordinary terminals."
  (mapc #'gemini-companion-terminal--unwatch (process-list))
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when (and gemini-companion-terminal-cli
                 (get-buffer-process buffer))
        (mapc #'kill-local-variable
              '(minor-mode-overriding-map-alist header-line-format))))))

(defconst gemini-companion-terminal--work
  (delq nil (mapcar #'gemini-companion-client-work gemini-companion-clients))
  "Texts that CLIs display while they work with a title of `ready'.")

(defun gemini-companion-terminal--filter (arguments)
  "Handle the OSC sequences in the output of a program.
ARGUMENTS are the process and the output.  Return them with the output for the
terminal.  This is an advice of the process filter."
  (pcase-let* ((`(,process ,output) arguments)
               (buffer (process-buffer process))
               (live (buffer-live-p buffer))
               (term (and live
                          (with-current-buffer buffer
                            (derived-mode-p 'term-mode))))
               (plain
                ;; Most output has no sequence, and is not copied.  The last output
                ;; may come after the buffer was killed.
                (and live
                     (or (process-get process 'gemini-companion-output-rest)
                         (string-search "\e]" output)
                         (string-suffix-p "\e" output))
                     (gemini-companion-terminal--handle-all process output))))
    (when (and live (seq-some (lambda (text) (string-search text output))
                              gemini-companion-terminal--work))
      (gemini-companion-state-set-working process))
    (list process
          (cond
           ;; term would display the sequences.
           (term (gemini-companion-terminal--erasing-lines (or plain output)))
           (plain (gemini-companion-terminal--without-questions output))
           (t output)))))

(defun gemini-companion-terminal--erasing-lines (output)
  "Return OUTPUT with the sequence to erase a line replaced by two others.
In Emacs 28 to 30, term erases only the text after the cursor, so the
beginnings of redrawn lines would remain."
  (string-replace "\e[2K" "\e[1K\e[K" output))

(defun gemini-companion-terminal--handle-all (process output)
  "Handle the OSC sequences in OUTPUT of PROCESS, and return the remaining output.
An incomplete sequence at the end is saved for the next output."
  (let ((text (concat (process-get process 'gemini-companion-output-rest)
                      output))
        (start 0)
        (plain nil))
    (while (string-match "\e]\\([^\a\e]*\\)\\(?:\a\\|\e\\\\\\)" text start)
      (push (substring text start (match-beginning 0)) plain)
      (setq start (match-end 0))
      (gemini-companion-terminal--handle process (match-string 1 text)))
    (let ((end (string-match "\e\\(?:][^\a\e]*\e?\\)?\\'" text start)))
      (push (substring text start end) plain)
      ;; In Emacs 28, twice this length overflows the stack of regexps.
      (process-put process 'gemini-companion-output-rest
                   (and end
                        (< (- (length text) end) 200000)
                        (substring text end))))
    (string-join (nreverse plain))))

(defun gemini-companion-terminal--without-questions (output)
  "Return OUTPUT without queries for colors, and with titles trimmed.
Eat would answer the queries as for a dark frame, and pad titles."
  (replace-regexp-in-string
   "\e]1[01];\\?\\(?:\a\\|\e\\\\\\)\\|\\(\e]0;[^\a\e]*?\\) +\\(\a\\)"
   "\\1\\2" output t))

(defun gemini-companion-terminal--handle (process content)
  "Handle CONTENT of an OSC sequence in the output of PROCESS.
CONTENT begins with the number of a command and a semicolon: 0 and 2 set the
title, 10 and 11 query a color, 52 copies a text, and 7501 reports the state or
asks whether that is read.  Ignore the commands of programs that are no CLI;
with 133, the prompt of a shell ends what a CLI was doing."
  (when (string-prefix-p "133;A" content)
    (gemini-companion-state-at-shell-prompt process))
  (when (and (string-match-p "\\`\\(?:[02]\\|1[01]\\|52\\|7501\\);" content)
             (gemini-companion-session-has-terminal-p process))
    (cond
     ((string-match "\\`[02];" content)
      ;; vterm has decoded the title; term has not.
      (gemini-companion-terminal--set-title
       process (decode-coding-string
                (encode-coding-string (substring content 2) 'utf-8-emacs)
                'utf-8)))
     ((equal content "7501;?")
      (gemini-companion-terminal--answer-status process))
     ((string-prefix-p "7501;" content)
      (gemini-companion-state-set-program-status
       process (substring content (length "7501;"))))
     ((string-match "\\`1\\([01]\\);\\?\\'" content)
      (gemini-companion-terminal--answer-color process (match-string 1 content)))
     ((string-match "\\`52;[^;]*;\\(.+\\)\\'" content)
      ;; eat itself adds copied texts to the kill ring.
      (unless (with-current-buffer (process-buffer process)
                (derived-mode-p 'eat-mode))
        (gemini-companion-terminal--copy (match-string 1 content)))))))

(defun gemini-companion-terminal--set-title (process title)
  "Record TITLE, which the CLI of PROCESS has set for its window.
If TITLE means that the CLI is ready, and the CLI adapts its theme, report the
background again: it starts with the theme of its last run, and cannot read a
report before it has set its first title."
  (let* ((displayed (cdr (process-get process 'gemini-companion-title)))
         (buffer (process-buffer process))
         (cli (buffer-local-value 'gemini-companion-terminal-cli buffer))
         (client (if cli
                     (gemini-companion-terminal-cli-client cli)
                   ;; The user has started the CLI in a shell.
                   (when-let* ((session (gemini-companion-session-of-terminal buffer)))
                     (gemini-companion-session-client session)))))
    (gemini-companion-state-set-title process title)
    (when (and displayed
               (gemini-companion-client-follows-background-p client)
               (eq 'ready (assoc-default title (gemini-companion-client-titles client)
                                         #'string-match-p)))
      (gemini-companion-terminal--answer-color process "1"))))

(defun gemini-companion-terminal--answer-status (process)
  "Tell the CLI of PROCESS that reports of its state are read; once a second.
The property `gemini-companion-status-answered' of PROCESS is the last time."
  (let ((now (float-time))
        (last (process-get process 'gemini-companion-status-answered)))
    (unless (and last (< (abs (- now last)) 1))
      (process-put process 'gemini-companion-status-answered now)
      (gemini-companion-terminal--answer process "\e]7501;?\e\\"))))

(defun gemini-companion-terminal--copy (encoded)
  "Add a text that a CLI has copied to the kill ring.
ENCODED is the text in UTF-8 and Base64.  Ignore it if it is invalid."
  (when-let* ((bytes (ignore-errors (base64-decode-string encoded))))
    (kill-new (decode-coding-string bytes 'utf-8))
    (message "CLI copied a text to the kill ring")))

(defun gemini-companion-terminal--answer-color (process which)
  "Report a color of the frame of PROCESS to it.
WHICH is \"0\" for the foreground, and \"1\" for the background.  Without an
answer, a CLI assumes a dark background, and displays white text, which is
invisible in a light theme."
  (let* ((frame (window-frame (get-buffer-window (process-buffer process) t)))
         (foreground (equal which "0"))
         (color (funcall (if foreground #'face-foreground #'face-background)
                         'default frame))
         (dark (eq 'dark (frame-parameter frame 'background-mode)))
         ;; On a text terminal, Emacs may know only whether it is dark.
         (values (or (color-values color frame)
                     (make-list 3 (if (eq foreground dark) #xffff 0)))))
    (gemini-companion-terminal--answer
     process (apply #'format "\e]1%s;rgb:%04x/%04x/%04x\e\\" which values))))

(defun gemini-companion-terminal--answer (process text)
  "Send TEXT to the program of PROCESS, at most twenty times a second.
Emacs would wait for a program that asks more often than it reads.  The
property `gemini-companion-answers' of PROCESS is a cons of the beginning of
that second and the number of answers in it."
  (pcase-let ((now (float-time))
              (`(,began . ,count)
               (or (process-get process 'gemini-companion-answers) '(0 . 0))))
    (when (<= 1 (abs (- now began)))
      (setq began now
            count 0))
    (when (< count 20)
      (process-put process 'gemini-companion-answers (cons began (1+ count)))
      (process-send-string process text))))

;;;; Commands

(defun gemini-companion-run-escape ()
  "Send Escape to the CLI in this terminal.
Typed once in a text terminal, Escape is a prefix of keys of Emacs."
  (interactive)
  (if (gemini-companion-terminal-takes-keys-p)
      (process-send-string (get-buffer-process (current-buffer)) "\e")
    (keyboard-escape-quit)))

(provide 'gemini-companion-terminal)
;;; gemini-companion-terminal.el ends here
