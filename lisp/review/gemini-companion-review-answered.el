;;; gemini-companion-review-answered.el --- Keys after an answer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; An answered review stays on the screen until the next edit takes its place.
;; Keys that were typed for it must not reach the buffer behind it: a letter would
;; become text of a file or of a prompt, and RET the answer to a question of the
;; CLI.  A key that is not for a review, such as M-x, does what it does there, as
;; otherwise what is typed after it would become such text.

;;; Code:

(require 'gemini-companion-arrival)
(require 'gemini-companion-commands)
(require 'gemini-companion-edit)
(require 'gemini-companion-proposal)

;;;; State

(defvar gemini-companion-review-answered--asked nil
  "Non-nil once the command of a key after an answer has asked for something.")

;;;; Kinds of commands

(defconst gemini-companion-review-answered--prefixes
  '( universal-argument universal-argument-more digit-argument negative-argument
     evil-use-register)
  "Commands that belong to the command of the next key.")

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
  "Regexp for commands about the windows and buffers that the user sees.")

(defconst gemini-companion-review-answered--of-evil
  '( evil-ex evil-search-forward evil-search-backward evil-ex-search-forward
     evil-ex-search-backward evil-command-window-ex evil-buffer
     evil-switch-to-windows-last-buffer evil-jump-backward evil-jump-forward
     evil-jump-to-tag evil-goto-definition evil-find-file-at-point-with-line)
  "Commands of Evil that read an argument or go elsewhere.
Others edit the text or move point, or end another state.")

(defconst gemini-companion-review-answered--asking
  '(insert-char insert-register quoted-insert yank-pop)
  "Commands that read an argument, though they seem only to edit.
What is typed for it must not become text.")

(defconst gemini-companion-review-answered--for-text
  (rx bos
      (or ;; They type into a terminal, or are for a review.
          "vterm-" "eat-" "term-" "ediff-" "evil-" "xterm-paste"
          ;; Commands that kill copy what they cannot delete in a read-only buffer.
          (seq (or "" "backward-" "copy-")
               (or "kill" "delete") "-"
               (or "char" "line" "whole-line" "visual-line" "word" "sexp"
                   "sentence" "paragraph" "region" "rectangle")
               eos)
          ;; Commands that only end what is in progress, or set a mode of the
          ;; buffer.
          (seq (or "keyboard-quit" "keyboard-escape-quit" "ignore" "undefined"
                   "read-only-mode")
               eos)))
  "Regexp for more commands that do nothing after an answer.")

(defun gemini-companion-review-answered--text-key-p (event)
  "Return non-nil if EVENT is a key for text: a character, RET, TAB or DEL."
  (or (and (characterp event) (or (<= ?\s event) (memq event '(?\t ?\n ?\r))))
      (memq event '(return tab backtab backspace delete deletechar escape))
      (eq 'xterm-paste (car-safe event))))

(defun gemini-companion-review-answered--for-text-p (command)
  "Return non-nil if COMMAND is for the text at point, an edit or a motion.
Such a command is marked as one that fails in a read-only buffer, or by
which a shifted key extends the region, and reads no argument."
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

;;;; What a key does

(defun gemini-companion-review-answered-set-up ()
  "Let keys in the current buffer, of an answered review, close the review.
`gemini-companion-view-follow' calls this once the edit waits for the next."
  (add-hook 'pre-command-hook
            #'gemini-companion-review-answered--replace-command nil t))

(defun gemini-companion-review-answered--replace-command ()
  "Replace the command of a key in the buffer of a review that was answered.
A click, a menu and the switch to another frame do what they do, and so do
commands on windows, and global commands that a review has, too, as they
need no open one; the review is then closed after that."
  (cl-flet ((in-p (place)
              (seq-some (lambda (row) (eq this-command (cadr row)))
                        (gemini-companion-commands-in place))))
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
  "Run COMMAND, of a key in a review that was answered, in the current buffer.
Let it change no text before it has asked for something: it was typed in
another buffer."
  (let ((buffer (current-buffer))
        (read-only buffer-read-only)
        (gemini-companion-review-answered--asked nil))
    (setq this-command command
          real-this-command command
          prefix-arg current-prefix-arg)
    (condition-case nil
        (minibuffer-with-setup-hook
            (lambda ()
              (setq gemini-companion-review-answered--asked t)
              (when (buffer-live-p buffer)
                (with-current-buffer buffer
                  (setq buffer-read-only read-only))))
          (if (or (not (functionp command))
                  (and (symbolp command) (get command 'disabled)))
              (let ((buffer-read-only t))
                (command-execute command))
            ;; A command that edits, such as M-%, asks nothing in a read-only
            ;; buffer, and
            ;; what is typed for the question would become text.
            (let* ((arguments (advice-eval-interactive-spec
                               (cadr (interactive-form command))))
                   (buffer-read-only
                    (or read-only (not gemini-companion-review-answered--asked))))
              (setq prefix-arg nil)
              (apply #'funcall-interactively command arguments))))
      (buffer-read-only (gemini-companion-review-answered--report-ignored-key)))))

(defun gemini-companion-review-answered--report-ignored-key ()
  (message "Key ignored: the review had ended, and is closed now"))

(defun gemini-companion-review-answered--drop-text-keys (seconds)
  "Drop the keys for text that were typed ahead, up to the first other one.
Wait for each one for SECONDS."
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
The diff and the panel of Ediff are in its Emacs state, where letters are
keys of the review, and others do nothing."
  (when (bound-and-true-p evil-local-mode)
    (seq-find #'commandp
              (list (lookup-key evil-normal-state-map keys)
                    (lookup-key evil-motion-state-map keys)))))

(defun gemini-companion-review-answered--evil-operator-p (command)
  "Return non-nil if COMMAND is one of Evil after which a motion is typed."
  (and (symbolp command)
       (fboundp 'evil-has-command-property-p)
       ;; Each operator has the first property; x has the second one, too.
       (evil-has-command-property-p command :move-point)
       (not (evil-has-command-property-p command :motion))))

(defun gemini-companion-review-answered--read-evil-argument (command)
  "Read what the user types after COMMAND if it is one of Evil.
That is the second d of dd, for example, or the x of fx."
  (when (string-prefix-p "evil-" (format "%s" command))
    (let ((this-command command))
      (condition-case nil
          (advice-eval-interactive-spec (cadr (interactive-form command)))
        ((error quit) nil)))))

;;;; Commands

(defun gemini-companion-review-answered--wait-on ()
  "Wait on for the next edit, in place of a key for a review that has ended."
  (interactive)
  (gemini-companion-arrival-wait-on))

(defun gemini-companion-review-answered--leave ()
  "Close this review, which was answered.
If the key of this command reads an argument or goes elsewhere, do then
what it does in the buffer that is selected without the review.  A key
for text does no more, nor do such keys that were typed with it."
  (interactive)
  (let* ((edit (gemini-companion-edit-current))
         (keys (this-single-command-keys))
         (here (and (commandp real-this-command)
                    (not (eq #'undefined real-this-command))
                    real-this-command))
         (command (or here (gemini-companion-review-answered--evil-command keys)))
         (typed (gemini-companion-review-answered--typed-p command keys))
         ;; The second d of dd may come later.
         (seconds
          (if (and (not here)
                   (gemini-companion-review-answered--evil-operator-p command))
              0.5
            0)))
    (when (and here typed)
      (gemini-companion-review-answered--read-evil-argument here))
    (gemini-companion-proposal-finish edit)
    (set-buffer (window-buffer))
    (unless typed
      (let ((there (key-binding keys t)))
        (when (and (commandp there)
                   (not (gemini-companion-review-answered--for-text-p there)))
          (setq command there))))
    (cond (typed
           (gemini-companion-review-answered--drop-text-keys seconds)
           (gemini-companion-review-answered--report-ignored-key))
          (command (gemini-companion-review-answered--run command)))))

(provide 'gemini-companion-review-answered)
;;; gemini-companion-review-answered.el ends here
