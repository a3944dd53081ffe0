;;; gemini-companion-review-answered.el --- Keys after an answer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Handle keys in an answered review, which stays on the screen until the next edit
;; replaces it.  Keys that were typed for the review must not reach the buffer that it
;; covers: a letter would be inserted into a file or a prompt, and RET would answer a
;; question of the CLI.  Any other key, such as M-x, runs its command in the covered
;; buffer; otherwise the keys after it would be inserted there.

;;; Code:

(require 'gemini-companion-arrival)
(require 'gemini-companion-commands)
(require 'gemini-companion-edit)
(require 'gemini-companion-proposal)

;;;; Kinds of commands

(defconst gemini-companion-review-answered--prefixes
  '( universal-argument universal-argument-more digit-argument negative-argument
     evil-use-register)
  "Commands that set a prefix argument for the next command.")

(defconst gemini-companion-review-answered--for-windows
  (rx bos
      (or "other-window" "other-frame" "delete-frame" "ace-window" "bury-buffer"
          "quit-window" "previous-buffer" "next-buffer"
          (seq "delete-" (? "other-") "window" (* nonl))
          (seq "split-window-" (+ nonl))
          (seq "kill-" (or "buffer" "current-buffer" "this-buffer"
                           "buffer-and-window"))
          (seq (or "evil-window-" "windmove-" "tab-") (+ nonl)))
      eos)
  "Regexp for commands that manage windows and buffers.")

(defconst gemini-companion-review-answered--of-evil
  '( evil-ex evil-search-forward evil-search-backward evil-ex-search-forward
     evil-ex-search-backward evil-command-window-ex evil-buffer
     evil-switch-to-windows-last-buffer evil-jump-backward evil-jump-forward
     evil-jump-to-tag evil-goto-definition evil-find-file-at-point-with-line)
  "Commands of Evil that read an argument or switch buffers.
Its other commands edit the text, move point or change the state.")

(defconst gemini-companion-review-answered--asking
  '(insert-char insert-register quoted-insert yank-pop)
  "Editing commands that read an argument.
The keys of the argument must not be inserted as text.")

(defconst gemini-companion-review-answered--for-text
  (rx bos
      (or ;; Commands of terminals and of reviews.
          "vterm-" "eat-" "term-" "ediff-" "evil-" "xterm-paste"
          ;; Kill commands work in a read-only buffer, as they copy its text.
          (seq (or "" "backward-" "copy-")
               (or "kill" "delete") "-"
               (or "char" "line" "whole-line" "visual-line" "word" "sexp"
                   "sentence" "paragraph" "region" "rectangle")
               eos)
          ;; Commands that quit, or set a mode of the buffer.
          (seq (or "keyboard-quit" "keyboard-escape-quit" "ignore" "undefined"
                   "read-only-mode")
               eos)))
  "Regexp for further commands that are ignored after an answer.")

(defun gemini-companion-review-answered--text-key-p (event)
  "Return non-nil if EVENT is a key for text: a character, RET, TAB or DEL."
  (or (and (characterp event) (or (<= ?\s event) (memq event '(?\t ?\n ?\r))))
      (memq event '(return tab backtab backspace delete deletechar escape))
      (eq 'xterm-paste (car-safe event))))

(defun gemini-companion-review-answered--for-text-p (command)
  "Return non-nil if COMMAND is for editing text or moving point.
The interactive form of such a command begins with * or ^, for a read-only
buffer or shift selection, and reads no argument."
  (and (symbolp command)
       (not (memq command gemini-companion-review-answered--of-evil))
       (not (memq command gemini-companion-review-answered--asking))
       (or (string-match-p gemini-companion-review-answered--for-text
                           (symbol-name command))
           (get command 'delete-selection)
           (let ((form (cadr (interactive-form command))))
             (and (stringp form)
                  (string-match-p
                   ;; Other letters read an argument.
                   (rx bos (* (in "@*^")) (in "*^") (* (in "@*^"))
                       (* (in "Pdeimpr") (* nonl) (? "\n")) eos)
                   form))))))

(defun gemini-companion-review-answered--typed-p (command keys)
  "Return non-nil if KEYS, whose command is COMMAND, were typed as text."
  (or (gemini-companion-review-answered--for-text-p command)
      (and (= 1 (length keys))
           (gemini-companion-review-answered--text-key-p (aref keys 0))
           (not (memq command gemini-companion-review-answered--of-evil)))))

;;;; Replaced commands

(defun gemini-companion-review-answered-set-up ()
  "Make keys close the answered review in the current buffer.
`gemini-companion-view-follow' calls this once the review waits for the next
edit."
  (add-hook 'pre-command-hook
            #'gemini-companion-review-answered--replace-command nil t))

(defun gemini-companion-review-answered--replace-command ()
  "Replace the command of a key in the buffer of an answered review.
Clicks, menus and switches to another frame are not replaced, nor are commands
that manage windows, and global commands that are also in a review but need no
open review; the review is closed after such a command."
  (cl-flet ((in-p (context)
              (seq-some (lambda (row) (eq this-command (cadr row)))
                        (gemini-companion-commands-in context))))
    (cond
     ((and (listp last-nonmenu-event) (not (eq this-command 'xterm-paste))))
     ((and (in-p 'global) (in-p 'view)))
     ((and this-command (symbolp this-command)
           (string-match-p gemini-companion-review-answered--for-windows
                           (symbol-name this-command))))
     ((memq this-command gemini-companion-review-answered--prefixes)
      (gemini-companion-arrival-ignore-key))
     ((or (seq-some #'in-p '(view unified panel))
          (and (symbolp this-command)
               (get this-command 'gemini-companion-review-answered-of-review)))
      (setq this-command #'gemini-companion-review-answered--wait-on))
     (t
      (setq this-command #'gemini-companion-review-answered--leave)))))

(defun gemini-companion-review-answered--run (command)
  "Run COMMAND, of a key in an answered review, in the current buffer.
The key was typed in another buffer, so COMMAND must not edit this one unless
it reads from the minibuffer first: the buffer is read-only until then."
  (let* ((buffer (current-buffer))
         (read-only buffer-read-only)
         (prompted nil)
         (allow-editing (lambda ()
                          (setq prompted t)
                          (when (buffer-live-p buffer)
                            (with-current-buffer buffer
                              (setq buffer-read-only read-only))))))
    (setq this-command command
          real-this-command command
          prefix-arg current-prefix-arg)
    (condition-case nil
        (minibuffer-with-setup-hook allow-editing
          (if (gemini-companion-review-answered--disabled-p command)
              (let ((buffer-read-only t))
                (command-execute command))
            ;; Arguments are read while the buffer is still writable: an editing
            ;; command such as M-% would signal an error instead of prompting, and
            ;; the keys that answer its prompt would be inserted as text.
            (let* ((arguments (advice-eval-interactive-spec
                               (cadr (interactive-form command))))
                   (buffer-read-only (or read-only (not prompted))))
              (setq prefix-arg nil)
              (apply #'funcall-interactively command arguments))))
      (buffer-read-only (gemini-companion-review-answered--report-ignored-key)))))

(defun gemini-companion-review-answered--disabled-p (command)
  "Return non-nil if COMMAND is disabled, or a keyboard macro.
`command-execute' must call it, as it asks about a disabled command."
  (or (not (functionp command))
      (and (symbolp command) (get command 'disabled))))

(defun gemini-companion-review-answered--report-ignored-key ()
  "Report that a key was ignored, and that the review is closed."
  (message "Key ignored: the review has ended and was closed"))

(defun gemini-companion-review-answered--drop-text-keys (seconds)
  "Discard text keys that were typed ahead, up to the first other key.
Wait SECONDS for each key."
  (let (event)
    (while (and (setq event (cond ((input-pending-p) (read-event))
                                  ((< 0 seconds) (read-event nil nil seconds))))
                (gemini-companion-review-answered--text-key-p event)))
    (when (and event (not (gemini-companion-review-answered--text-key-p event)))
      (push (cons t event) unread-command-events))))

;;;; Evil

(declare-function evil-has-command-property-p "ext:evil-common")
(defvar evil-motion-state-map)
(defvar evil-normal-state-map)

(defun gemini-companion-review-answered--evil-command (keys)
  "Return the command of KEYS in the normal state of Evil, or nil.
Buffers of a review are in its Emacs state, where letters are keys of the
review, and other letters are undefined."
  (when (bound-and-true-p evil-local-mode)
    (seq-find #'commandp
              (list (lookup-key evil-normal-state-map keys)
                    (lookup-key evil-motion-state-map keys)))))

(defun gemini-companion-review-answered--evil-operator-p (command)
  "Return non-nil if COMMAND is an operator of Evil, to be followed by a motion."
  (and (symbolp command)
       (fboundp 'evil-has-command-property-p)
       ;; Operators have the property :move-point; x, which reads no motion, has
       ;; :motion as well.
       (evil-has-command-property-p command :move-point)
       (not (evil-has-command-property-p command :motion))))

(defun gemini-companion-review-answered--read-evil-argument (command)
  "Read the argument of COMMAND if it is a command of Evil, and ignore it.
For example, read the second d of dd, or the x of fx."
  (when (string-prefix-p "evil-" (format "%s" command))
    (let ((this-command command))
      (condition-case nil
          (advice-eval-interactive-spec (cadr (interactive-form command)))
        ((error quit) nil)))))

;;;; Commands

(defun gemini-companion-review-answered--wait-on ()
  "Keep waiting for the next edit, in place of a key of the answered review."
  (interactive)
  (gemini-companion-arrival-wait-on))

(defun gemini-companion-review-answered--leave ()
  "Close this answered review.
If the command of the key is not for text, run the command that the key has in
the buffer that is then selected.  Otherwise ignore the key, and the text keys
that were typed after it."
  (interactive)
  (let* ((edit (gemini-companion-edit-current))
         (keys (this-single-command-keys))
         (bound (and (commandp real-this-command)
                     (not (eq #'undefined real-this-command))
                     real-this-command))
         (command (or bound (gemini-companion-review-answered--evil-command keys)))
         (typed (gemini-companion-review-answered--typed-p command keys))
         ;; The second d of dd may come later.
         (seconds
          (if (and (not bound)
                   (gemini-companion-review-answered--evil-operator-p command))
              0.5
            0)))
    (when (and bound typed)
      (gemini-companion-review-answered--read-evil-argument bound))
    (gemini-companion-proposal-finish edit)
    (set-buffer (window-buffer))
    (unless typed
      (let ((binding (key-binding keys t)))
        (when (and (commandp binding)
                   (not (gemini-companion-review-answered--for-text-p binding)))
          (setq command binding))))
    (cond (typed
           (gemini-companion-review-answered--drop-text-keys seconds)
           (gemini-companion-review-answered--report-ignored-key))
          (command (gemini-companion-review-answered--run command)))))

(provide 'gemini-companion-review-answered)
;;; gemini-companion-review-answered.el ends here
