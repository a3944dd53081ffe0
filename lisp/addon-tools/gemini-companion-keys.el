;;; gemini-companion-keys.el --- Answer a CLI by a key in its terminal  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Some CLIs do not accept an answer to a permission question from a hook, but only a
;; key in their terminal.  A key that is sent without reading the screen could allow
;; another command, since dialogs may appear in another order than the events, and the
;; next dialog follows at once.  So a key is sent once, and only if all of these hold:
;; the terminal is in this Emacs; its title shows that the CLI asks; nothing was typed
;; there for a second; and the screen ends with the dialog about exactly that command.
;;
;; The adapter of a CLI reads the dialog, see `gemini-companion-client-dialog'.  This
;; file sends no key if the rows of the dialog could be those of another command.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-client)
(require 'gemini-companion-part)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-terminal)
(require 'gemini-companion-text)
(require 'seq)

;;;; State

(defvar gemini-companion-keys-quiet-seconds 1
  "Seconds without input to a terminal before a key is sent to it.
A CLI may draw its next dialog up to half a second after a key.")

(defvar gemini-companion-keys-stable-seconds 0.2
  "Seconds for which a dialog must not change before a key is sent.
A terminal may draw its output with a delay of a tenth of a second.")

(defvar gemini-companion-keys-taken-seconds 2
  "Seconds within which the dialog must end after a key was sent.")

(cl-defstruct (gemini-companion-keys--watch
               (:noinline t)
               (:constructor gemini-companion-keys--make-watch)
               (:copier nil))
  "Wait for the end of DIALOG of SESSION, to which a key was sent.
Call CALLBACK with t when the dialog has ended, or with nil at the time END, in
seconds."
  session dialog end callback)

;;;; Comparison of a command with a dialog

(defun gemini-companion-keys-plain-p (char)
  "Return non-nil if CHAR is displayed as itself, in one column.
Return nil for invisible and wide characters, modifiers, symbols that may be
emoji, and characters of right-to-left scripts."
  (or (<= ?\s char ?~)
      (and (not (gemini-companion-text-invisible-p char))
           (not (memq (get-char-code-property char 'general-category) '(Sk So Nl No)))
           (memq (get-char-code-property char 'bidi-class) '(L EN ES ET CS ON))
           (= 1 (char-width char)))))

(defun gemini-companion-keys--obscure (command)
  "Return the reason why a screen cannot display COMMAND exactly, or nil.
The value is a phrase, such as \"a line of the command ends in a backslash\"."
  (cond
   ((not (seq-every-p (lambda (char)
                        (or (eq char ?\n) (gemini-companion-keys-plain-p char)))
                      command))
    "the command has characters that the screen does not show as they are")
   ((or (string-blank-p command)
        (string-match-p "\\`[ \n]\\|[ \n]\\'\\| \n" command))
    "the command has blanks that the screen does not show")
   ;; A blank after a backslash is invisible, and changes the command.
   ((string-match-p "\\\\\\(?:\n\\|\\'\\)" command)
    "a line of the command ends in a backslash")))

(defun gemini-companion-keys--skeleton (command)
  "Return the characters of COMMAND that every screen displays."
  (seq-filter (lambda (char)
                (and (/= char ?\s) (gemini-companion-keys-plain-p char)))
              command))

(defun gemini-companion-keys-alike-p (a b)
  "Return non-nil if A and B, two different commands, may look the same.
Gemini CLI does not display control and format characters, and may display a
newline as blanks.  A command with an escape sequence may look like any other."
  (and (not (equal a b))
       (or (string-match-p "[\e\x9b]" a)
           (string-match-p "[\e\x9b]" b)
           (equal (gemini-companion-keys--skeleton a)
                  (gemini-companion-keys--skeleton b)))))

(defun gemini-companion-keys-mismatch (dialog command)
  "Return the reason why DIALOG may not be about COMMAND, a phrase, or nil.
DIALOG is a `gemini-companion-client-dialog' or nil, and COMMAND a string,
which must be displayed exactly.  If there are several rows, each break
between them must be known to be a newline of the command."
  (let ((rows (and dialog (gemini-companion-client-dialog-rows dialog)))
        (lines (split-string command "\n")))
    (cond
     ((null dialog)
      "its terminal shows no dialog that Emacs knows")
     ((gemini-companion-keys--obscure command))
     ((not (gemini-companion-client-dialog-whole dialog))
      "its terminal shows only a part of the command")
     ((equal rows lines)
      (when (and (cdr rows)
                 (not (gemini-companion-client-dialog-breaks-known dialog)))
        "its terminal does not show where the lines of the command end"))
     ((and (< (length lines) (length rows))
           (equal (gemini-companion-keys--skeleton command)
                  (gemini-companion-keys--skeleton (string-join rows))))
      "its terminal is too narrow for the command")
     (t
      "its terminal shows another command"))))

;;;; The screen

(defvar eat--char-mode)
(defvar eat--semi-char-mode)

(defun gemini-companion-keys--live-p ()
  "Return non-nil if this terminal displays current output, and accepts keys.
While the user copies text or edits a line, it may display previous output."
  (if (derived-mode-p 'eat-mode)
      (or (bound-and-true-p eat--semi-char-mode) (bound-and-true-p eat--char-mode))
    (gemini-companion-terminal-takes-keys-p)))

(defun gemini-companion-keys--dialog (session buffer)
  "Return the dialog of the CLI of SESSION at the end of its terminal BUFFER."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (save-excursion
        (goto-char (point-max))
        (gemini-companion-client-read-dialog
         (plist-get session :client)
         (buffer-substring-no-properties (line-beginning-position -300)
                                         (point)))))))

(defun gemini-companion-keys--unsendable (session)
  "Return the reason why no key can be sent to SESSION now, a phrase, or nil."
  (let* ((buffer (gemini-companion-session-terminal session))
         (process (and buffer (get-buffer-process buffer)))
         (sent (and buffer (buffer-local-value 'gemini-companion-terminal-sent
                                               buffer))))
    (cond
     ((not (and process
                (process-live-p process)
                (gemini-companion-session-has-terminal-p process session)))
      "its terminal is not in this Emacs")
     ((not (eq 'waiting (gemini-companion-state-titled session)))
      "its title does not show that it asks")
     ((not (with-current-buffer buffer (gemini-companion-keys--live-p)))
      "its terminal is in copy mode")
     ((and sent (< (abs (- (float-time) sent))
                   gemini-companion-keys-quiet-seconds))
      "something was typed in its terminal just now"))))

(defun gemini-companion-keys--read (session command)
  "Return the dialog of SESSION about COMMAND.
If there is no such dialog, return the reason, a phrase."
  (or (gemini-companion-keys--unsendable session)
      (let ((dialog (gemini-companion-keys--dialog
                     session (gemini-companion-session-terminal session))))
        (or (gemini-companion-keys-mismatch dialog command)
            dialog))))

(defun gemini-companion-keys--await-output (session)
  "Wait until the terminal of SESSION has drawn its output."
  (let ((end (+ (float-time) gemini-companion-keys-stable-seconds)))
    (while (< (float-time) end)
      (accept-process-output (get-buffer-process
                              (gemini-companion-session-terminal session))
                             0.05))))

;;;; Pressing

(defun gemini-companion-keys-press (session command answer callback
                                            &optional others)
  "Answer the dialog of SESSION about COMMAND by one key, if it is certain.
COMMAND is the whole text of a shell command.  ANSWER is `allow', which means
once, or `refuse'.  OTHERS are the other commands about which SESSION asks.

Return nil if a key was sent.  Then CALLBACK is called with t when the dialog
has ended, or with nil if it has not ended after two seconds.  Otherwise send
nothing, and return the reason, a phrase such as \"its terminal shows another
command\"."
  (if (seq-some (lambda (other) (gemini-companion-keys-alike-p command other))
                others)
      "it asks about another command that may look the same"
    (let ((first (gemini-companion-keys--read session command)))
      (if (stringp first)
          first
        (gemini-companion-keys--await-output session)
        (let ((dialog (gemini-companion-keys--read session command)))
          (cond
           ((stringp dialog) dialog)
           ((not (equal first dialog)) "its terminal is changing")
           (t (gemini-companion-keys--send session dialog answer callback))))))))

(defun gemini-companion-keys--send (session dialog answer callback)
  "Send the key of ANSWER in DIALOG to SESSION, and return nil.
If DIALOG has no such key, return the reason.  For CALLBACK, see
`gemini-companion-keys-press'."
  (let ((key (if (eq answer 'allow)
                 (gemini-companion-client-dialog-allow dialog)
               (gemini-companion-client-dialog-refuse dialog))))
    (if (null key)
        "its terminal does not offer that answer"
      (gemini-companion-terminal-send
       (get-buffer-process (gemini-companion-session-terminal session)) key)
      (gemini-companion-keys--await
       (gemini-companion-keys--make-watch
        :session session :dialog dialog :callback callback
        :end (+ (float-time) gemini-companion-keys-taken-seconds)))
      nil)))

(defun gemini-companion-keys--await (watch)
  "Call the callback of WATCH if its dialog has ended or its time has passed.
Otherwise check again soon."
  (pcase-let* (((cl-struct gemini-companion-keys--watch
                           session dialog end callback)
                watch)
               (buffer (gemini-companion-session-terminal session)))
    (cond
     ((not (and buffer
                (eq 'waiting (gemini-companion-state-titled session))
                (equal dialog (gemini-companion-keys--dialog session buffer))))
      (funcall callback t))
     ((< end (float-time))
      (funcall callback nil))
     (t
      (run-at-time 0.1 nil #'gemini-companion-keys--await watch)))))

;;;; Life

(defun gemini-companion-keys--record-typing ()
  "Record a key that is typed in a terminal; a member of `pre-command-hook'.
Skip commands of this package, which record the input that they send."
  (when (and (derived-mode-p 'vterm-mode 'eat-mode 'term-mode)
             (not (string-prefix-p "gemini-companion-" (format "%s" this-command))))
    (setq gemini-companion-terminal-sent (float-time))))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'keys)))
  "Record keys that the user types in terminals."
  '((pre-command-hook gemini-companion-keys--record-typing)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'keys)))
  "Stop waiting for dialogs."
  (cancel-function-timers #'gemini-companion-keys--await))

(provide 'gemini-companion-keys)
;;; gemini-companion-keys.el ends here
