;;; gemini-companion-terminal.el --- Terminals of this Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Terminals of this Emacs in which CLIs run: start a program in one, show it,
;; find out whether it takes keys, and watch its output for the few sequences that
;; the terminals of Emacs do not handle.
;;
;; The output is searched for operating system commands (OSC) before the terminal
;; gets it: questions for the colors, the window title, which has the state of the
;; CLI, and text that the CLI copies.  From term they are removed.

;;; Code:

(require 'gemini-companion-session)
(require 'gemini-companion-state)

(declare-function eat-exec "ext:eat")
(declare-function eat-mode "ext:eat")
(declare-function evil-insert-state "ext:evil-states")
(declare-function term-char-mode "term")
(declare-function term-exec "term")
(declare-function term-mode "term")
(declare-function term-set-escape-char "term")
(declare-function vterm-mode "ext:vterm")
(defvar eat-kill-buffer-on-exit)
(defvar term-escape-char)
(defvar term-raw-map)
(defvar vterm-min-window-width)
(defvar vterm-shell)

;;;; Customization

(defgroup gemini-companion-terminal nil
  "CLIs in terminals of this Emacs."
  :group 'gemini-companion)

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

;;;; Start

(defun gemini-companion-terminal-function ()
  "Return the function to make the current buffer a terminal.
Return nil if there is none, as on Windows."
  (pcase gemini-companion-terminal
    ('vterm #'gemini-companion-terminal--vterm)
    ('eat #'gemini-companion-terminal--eat)
    ('term #'gemini-companion-terminal--term)
    ('nil (cond ((eq system-type 'windows-nt) nil)
                ((and (locate-library "vterm")
                      ;; Without it, loading vterm asks whether to compile one.
                      (locate-library "vterm-module"))
                 #'gemini-companion-terminal--vterm)
                ((locate-library "eat") #'gemini-companion-terminal--eat)
                (t #'gemini-companion-terminal--term)))
    (function function)))

(defun gemini-companion-terminal-start (command)
  "Run COMMAND in the current buffer, in a terminal with the selected window."
  (let* ((function (gemini-companion-terminal-function))
         (process-environment
          ;; They display 24-bit colors.
          (if (and (eq function #'gemini-companion-terminal--term)
                   (< emacs-major-version 29))
              process-environment
            (cons "COLORTERM=truecolor" process-environment))))
    (funcall function command))
  (when-let* ((process (get-buffer-process (current-buffer))))
    (process-put process 'gemini-companion-terminal-started t)
    (gemini-companion-terminal--watch)))

(defun gemini-companion-terminal--vterm (command)
  (require 'vterm)
  (let ((vterm-shell
         ;; On a text terminal vterm takes the column for Emacs's `$' too.
         (format "sh -c %s"
                 (shell-quote-argument
                  (format "stty columns %d; exec %s"
                          (window-max-chars-per-line)
                          (mapconcat #'shell-quote-argument command " ")))))
        ;; In a narrower window it would draw for 80 columns.
        (vterm-min-window-width 20))
    (vterm-mode))
  (setq-local vterm-min-window-width 20))

(defun gemini-companion-terminal--eat (command)
  (require 'eat)
  (eat-mode)
  (let ((eat-kill-buffer-on-exit nil))
    (eat-exec (current-buffer) (buffer-name) (car command) nil
              (cdr command))))

(defun gemini-companion-terminal--term (command)
  "Run COMMAND in the current buffer with term.
\\`M-x' is for Emacs, as in vterm and eat; so are \\`C-x' and \\`C-c',
which are sent to the program if they are typed twice."
  (require 'term)
  (term-mode)
  ;; CLIs write UTF-8 in any locale.
  (setq-local locale-coding-system 'utf-8-unix)
  (term-exec (current-buffer) (buffer-name) (car command) nil (cdr command))
  (setq-local term-raw-map (copy-keymap term-raw-map))
  (define-key term-raw-map (kbd "M-x") #'execute-extended-command)
  (term-char-mode)
  (let (term-escape-char)
    (term-set-escape-char ?\C-x)))

;;;; Use

(defun gemini-companion-terminal-show (buffer)
  "Display BUFFER, the terminal of a CLI, unless it is visible; select it."
  (let ((split-width-threshold
         ;; The default, 160, would put a CLI below the file in most frames.
         (if (and split-width-threshold (one-window-p t))
             (min split-width-threshold 120)
           split-width-threshold)))
    (pop-to-buffer buffer
                   (pcase (unless (get-buffer-window buffer)
                            gemini-companion-run-side-window)
                     ('nil '(nil (reusable-frames . visible)))
                     (side `(display-buffer-in-side-window
                             (side . ,side)
                             (,(if (eq side 'bottom) 'window-height 'window-width)
                              . 0.4))))))
  ;; Keys are for the CLI.
  (when (bound-and-true-p evil-local-mode)
    (evil-insert-state)))

(defun gemini-companion-terminal-takes-keys-p ()
  "Return non-nil if the current buffer is a terminal that takes keys.
Some are suspended while the user copies text or edits a line."
  (cond ((derived-mode-p 'vterm-mode)
         (not (bound-and-true-p vterm-copy-mode)))
        ((derived-mode-p 'term-mode)
         (eq (current-local-map) (bound-and-true-p term-raw-map)))
        ((derived-mode-p 'eat-mode) t)))

(defun gemini-companion-terminal-process (session)
  "Return the process of the terminal of SESSION if a text can be typed there.
It cannot if SESSION waits for an answer, which the text would be."
  (when-let* (((not (eq 'waiting (gemini-companion-session-state session))))
              (buffer (gemini-companion-session-terminal session))
              (process (get-buffer-process buffer)))
    (with-current-buffer buffer
      (and (process-live-p process)
           (gemini-companion-terminal-takes-keys-p)
           process))))

;;;; Output

(defun gemini-companion-terminal--unwatch (process)
  (process-put process 'gemini-companion-title nil)
  (process-put process 'gemini-companion-terminal-rest nil)
  (remove-function (process-filter process)
                   #'gemini-companion-terminal--filter))

(defun gemini-companion-terminal--watch (&rest _)
  (let ((buffers (delq nil (mapcar #'gemini-companion-session-terminal
                                   (gemini-companion-sessions)))))
    (dolist (process (process-list))
      (cond ((or (process-get process 'gemini-companion-terminal-started)
                 (memq (process-buffer process) buffers))
             (add-function :filter-args (process-filter process)
                           #'gemini-companion-terminal--filter))
            (t (gemini-companion-terminal--unwatch process))))))

(defun gemini-companion-terminal-ready (_how)
  "Watch the terminals of the CLIs that connect."
  (add-hook 'gemini-companion-session-changed-functions
            #'gemini-companion-terminal--watch))

(defun gemini-companion-terminal-stop ()
  "Stop watching terminals; their titles will not be up to date."
  (remove-hook 'gemini-companion-session-changed-functions
               #'gemini-companion-terminal--watch)
  (mapc #'gemini-companion-terminal--unwatch (process-list)))

(defun gemini-companion-terminal--of-cli-p (process)
  "Return non-nil if a CLI now has the terminal of PROCESS.
Otherwise its output is from a shell, or from what runs there."
  (or (process-get process 'gemini-companion-terminal-started)
      (seq-some
       (lambda (session)
         (and (eq (process-buffer process)
                  (gemini-companion-session-terminal session))
              ;; A process in the background, or suspended, differs.
              (let-alist (let ((default-directory "/"))
                           (process-attributes (plist-get session :pid)))
                (eql .pgrp .tpgid))))
       (gemini-companion-sessions))))

(defun gemini-companion-terminal--filter (arguments)
  "Handle the sequences in the output of a program; keep an incomplete one.
ARGUMENTS are the process and the output.  Return what the terminal is
to get: term would display these sequences."
  (pcase-let* ((`(,process ,output) arguments)
               (rest (process-get process 'gemini-companion-terminal-rest))
               (start 0)
               (plain nil))
    ;; Most output has none, and is not copied.
    (if (not (or rest
                 (string-search "\e]" output)
                 (string-suffix-p "\e" output)))
        arguments
      (let ((text (concat rest output)))
        (while (string-match "\e]\\([^\a\e]*\\)\\(?:\a\\|\e\\\\\\)" text start)
          (push (substring text start (match-beginning 0)) plain)
          (setq start (match-end 0))
          (gemini-companion-terminal--handle process (match-string 1 text)))
        (let ((end (string-match "\e\\(?:][^\a\e]*\e?\\)?\\'" text start)))
          (push (substring text start end) plain)
          (setq rest (and end (substring text end)))))
      ;; In Emacs 28, twice this length overflows the stack of regexps.
      (process-put process 'gemini-companion-terminal-rest
                   (and (length< rest 200000) rest))
      (list process (if (gemini-companion-terminal--mode-p process 'term-mode)
                        (string-join (nreverse plain))
                      ;; Eat would say that the frame is dark, and pad titles.
                      (replace-regexp-in-string
                       "\e]1[01];\\?\\(?:\a\\|\e\\\\\\)\\|\\(\e]0;[^\a\e]*?\\) +\\(\a\\)"
                       "\\1\\2" output t))))))

(defun gemini-companion-terminal--mode-p (process mode)
  (and (buffer-live-p (process-buffer process))
       (with-current-buffer (process-buffer process)
         (derived-mode-p mode))))

(defun gemini-companion-terminal--handle (process content)
  (cond
   ((not (and (string-match-p "\\`\\(?:[02]\\|1[01]\\|52\\);" content)
              (gemini-companion-terminal--of-cli-p process))))
   ((string-match "\\`[02];" content)
    ;; Not all terminals have decoded it.
    (gemini-companion-state-set-title
     process (decode-coding-string
              (encode-coding-string (substring content 2) 'utf-8-emacs)
              'utf-8)))
   ((string-match "\\`1\\([01]\\);\\?\\'" content)
    (gemini-companion-terminal--answer-color process (match-string 1 content)))
   ;; It does the rest itself.
   ((gemini-companion-terminal--mode-p process 'eat-mode))
   ((string-match "\\`52;[^;]*;\\(.+\\)\\'" content)
    (when-let* ((bytes (ignore-errors
                         (base64-decode-string (match-string 1 content)))))
      (kill-new (decode-coding-string bytes 'utf-8))
      (message "Text that the CLI copied is in the kill ring")))))

(defun gemini-companion-terminal--answer-color (process which)
  "Report a color of the frame of PROCESS to it.
WHICH is \"0\" for the foreground, and \"1\" for the background.
Otherwise a CLI takes the background to be dark, and its text is white
on white in a light theme."
  (let* ((window (get-buffer-window (process-buffer process) t))
         (frame (if window (window-frame window) (selected-frame)))
         (foreground (equal which "0"))
         (color (funcall (if foreground #'face-foreground #'face-background)
                         'default frame))
         (dark (eq 'dark (frame-parameter frame 'background-mode)))
         ;; Of a text terminal, Emacs may know only whether it is dark.
         (values (or (color-values color frame)
                     (make-list 3 (if (eq foreground dark) #xffff 0)))))
    (process-send-string
     process (apply #'format "\e]1%s;rgb:%04x/%04x/%04x\e\\" which values))))

(provide 'gemini-companion-terminal)
;;; gemini-companion-terminal.el ends here
