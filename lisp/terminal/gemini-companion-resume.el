;;; gemini-companion-resume.el --- Conversations of the CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; List the conversations that a CLI can resume.  A desktop restores the buffer of a
;; CLI as such a list.

;;; Code:

(require 'gemini-companion-cli)
(require 'gemini-companion-clients)
(require 'gemini-companion-names)
(require 'gemini-companion-session)
(require 'gemini-companion-terminal)
(require 'gemini-companion-turn)
(require 'gemini-companion-windows-at-once)
(require 'tabulated-list)

(defvar desktop-buffer-major-mode)
(defvar desktop-buffer-mode-handlers)
(defvar desktop-minor-mode-handlers)
(defvar desktop-save-buffer)

;;;; Keys

(defvar gemini-companion-resume-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'gemini-companion-resume-at-point)
    (define-key map [remap quit-window] #'gemini-companion-quit-window)
    map)
  "Keys in a list of conversations.")

;;;; List

(defun gemini-companion-resume--entry (conversation)
  "Return the row of the list for CONVERSATION, a list (ID TIME WORDS).
See `gemini-companion-client-conversations'."
  (pcase-let ((`(,id ,time ,words) conversation))
    (list id (vector time (gemini-companion-names-shown
                           (string-clean-whitespace words) 300)))))

(defun gemini-companion-resume--list ()
  "List the conversations, or start the CLI if only that can list them."
  (let* ((cli gemini-companion-terminal-cli)
         (client (gemini-companion-terminal-cli-client cli))
         (arguments (gemini-companion-client-conversations-arguments client)))
    (if (null arguments)
        (gemini-companion-cli-launch
         (gemini-companion-terminal-cli-with cli 'resume t))
      (gemini-companion-resume--say "Listing the conversations of %s...")
      (let ((process-environment (gemini-companion-cli-environment cli))
            (exec-path (gemini-companion-terminal-cli-path cli)))
        (gemini-companion-cli-program
         "gemini-companion-conversations"
         (append (gemini-companion-cli-command client) arguments)
         ""
         (apply-partially #'gemini-companion-resume--show (current-buffer)))))))

(defun gemini-companion-resume--show (buffer output problem)
  "Display the conversations in OUTPUT of a CLI in BUFFER, if it is live.
If the CLI has failed, PROBLEM is the reason, else nil."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq tabulated-list-entries
            (mapcar #'gemini-companion-resume--entry
                    (gemini-companion-client-conversations
                     (gemini-companion-terminal-cli-client
                      gemini-companion-terminal-cli)
                     output)))
      (setq truncate-lines (and tabulated-list-entries t))
      (cond (tabulated-list-entries
             (tabulated-list-print))
            (problem
             (gemini-companion-resume--say
              "%s cannot list its conversations: %s" problem))
            (t
             (gemini-companion-resume--say
              "%s has no conversations; %s begins one"
              (substitute-command-keys "\\[gemini-companion-run]")))))))

(defun gemini-companion-resume--say (format &rest arguments)
  "Display a message in place of a list: FORMAT with the name of the CLI.
ARGUMENTS are further arguments of FORMAT."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (insert (apply #'format format
                   (gemini-companion-cli-name gemini-companion-terminal-cli)
                   arguments)
            "\n")
    (goto-char (point-min))))

(define-derived-mode gemini-companion-resume-mode tabulated-list-mode
  "Conversations"
  "Mode of the list of conversations that a CLI can resume.
\\{gemini-companion-resume-mode-map}"
  :interactive nil
  (setq tabulated-list-format [("When" 17 nil)
                               ("Conversation (RET resumes it, g refreshes)" 0 nil)]
        tabulated-list-padding 1)
  (setq-local desktop-save-buffer #'gemini-companion-terminal-desktop
              revert-buffer-function
              (lambda (&rest _) (gemini-companion-resume--list)))
  (tabulated-list-init-header))

;;;; Desktop

;; Before a desktop restores a buffer, it loads the file of its mode.
(add-to-list 'desktop-buffer-mode-handlers
             '(gemini-companion-resume-mode . gemini-companion-resume--restore) t)

(defconst gemini-companion-resume--desktop-handlers
  (mapcar (lambda (mode) (cons mode 'gemini-companion-resume--restore))
          '(vterm-mode eat-mode term-mode))
  "Elements of `desktop-buffer-mode-handlers' while the mode is on.")

(defun gemini-companion-resume--restore (file name entry)
  "Return a buffer NAME in which a CLI can be resumed, or nil.
ENTRY is what `gemini-companion-terminal-desktop' has saved for that CLI.
For another terminal, call the handler of the user, if any, with FILE, NAME
and ENTRY.  This is a value of `desktop-buffer-mode-handlers'."
  (let ((directory (and (eq :client (car-safe entry))
                        (plist-get entry :directory))))
    (cond
     ((null directory)
      (let ((others (rassq-delete-all #'gemini-companion-resume--restore
                                      (copy-sequence
                                       desktop-buffer-mode-handlers))))
        (funcall (alist-get desktop-buffer-major-mode others #'ignore)
                 file name entry)))
     ((file-directory-p directory)
      (with-current-buffer (get-buffer-create name)
        (gemini-companion-resume-mode)
        (setq default-directory directory
              gemini-companion-terminal-cli
              (gemini-companion-terminal-cli-make
               :client (plist-get entry :client)
               :directory directory
               :number (plist-get entry :number)
               :environment process-environment
               :path exec-path))
        ;; The desktop would turn on minor modes of a terminal, which bind keys.
        (setq-local desktop-minor-mode-handlers
                    (append (mapcar (lambda (mode) (cons mode #'ignore))
                                    (seq-filter #'local-variable-if-set-p
                                                minor-mode-list))
                            desktop-minor-mode-handlers))
        (gemini-companion-resume--say
         "%s ran here; g lists its conversations")
        (current-buffer))))))

;;;; Restart

(defun gemini-companion-resume--terminals (&optional clients)
  "Return the buffers of terminals with a live CLI that can resume.
CLIENTS is nil or a list of keys of `gemini-companion-clients', the CLIs to
include.  CLIs on other hosts are omitted."
  (seq-filter
   (lambda (buffer)
     (when-let* ((cli (buffer-local-value 'gemini-companion-terminal-cli buffer))
                 (client (gemini-companion-terminal-cli-client cli)))
       (and (null (gemini-companion-terminal-cli-remote cli))
            (or (null clients) (member client clients))
            (process-live-p (get-buffer-process buffer))
            (gemini-companion-client-resume-arguments client t))))
   (buffer-list)))

(defun gemini-companion-resume-running (clients)
  "Return the names of the CLIs of CLIENTS that can be restarted, strings."
  (mapcar (lambda (buffer)
            (gemini-companion-cli-name
             (buffer-local-value 'gemini-companion-terminal-cli buffer)))
          (gemini-companion-resume--terminals clients)))

(defun gemini-companion-resume--conversation-p (buffer)
  "Return non-nil if the CLI in the terminal BUFFER has a conversation.
Return nil if the CLI is not connected, as Emacs does not know then."
  (seq-some (lambda (session)
              (and (eq buffer (gemini-companion-session-terminal session))
                   (gemini-companion-session-turn session)))
            (gemini-companion-sessions)))

;;;; Life

(cl-defmethod gemini-companion-part-start ((_part (eql 'resume)))
  "Restore the terminals of CLIs from a desktop."
  (setq desktop-buffer-mode-handlers
        (seq-union gemini-companion-resume--desktop-handlers
                   (bound-and-true-p desktop-buffer-mode-handlers))))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'resume)))
  "Stop restoring the terminals of CLIs from a desktop."
  (setq desktop-buffer-mode-handlers
        (seq-difference (bound-and-true-p desktop-buffer-mode-handlers)
                        gemini-companion-resume--desktop-handlers)))

;;;; Commands

(defun gemini-companion-resume-at-point ()
  "Resume the conversation at point, in a terminal in this window."
  (interactive nil gemini-companion-resume-mode)
  (gemini-companion-cli-launch
   (gemini-companion-terminal-cli-with
    gemini-companion-terminal-cli
    'resume (or (tabulated-list-get-id)
                (user-error "No conversation at point; type g to list them")))))

(defun gemini-companion-run-again ()
  "Restart the CLIs in terminals of this Emacs; ask about each of them.
A CLI reads its links, extensions and settings only when it starts.  Its
turn ends, and its open proposals are closed.  If it has a conversation, it
resumes that, or asks which one to resume.  CLIs on other hosts are not
restarted."
  (interactive)
  (let ((buffers (or (gemini-companion-resume--terminals)
                     (user-error "No CLI runs in a terminal of this Emacs"))))
    (dolist (buffer buffers)
      (let ((cli (buffer-local-value 'gemini-companion-terminal-cli buffer))
            (resume (and (gemini-companion-resume--conversation-p buffer) t)))
        (when (and (y-or-n-p (format "Restart %s%s? "
                                     (gemini-companion-cli-name cli)
                                     (if resume " with its conversation" "")))
                   ;; The CLI may have exited meanwhile.
                   (process-live-p (get-buffer-process buffer)))
          (delete-process (get-buffer-process buffer))
          (gemini-companion-cli-launch
           (gemini-companion-terminal-cli-with cli 'resume resume)))))))

(defun gemini-companion-resume (&optional number)
  "List the conversations of the CLI of this project, to resume one.
NUMBER, the prefix argument, is as for `gemini-companion-run'.  If that
CLI is running, the conversation is resumed in a new one."
  (interactive "P")
  (let ((cli (gemini-companion-cli-wanted number)))
    (when (gemini-companion-terminal-cli-remote cli)
      (user-error "Conversations on other hosts are not listed; type /resume in \
the CLI"))
    (unless (gemini-companion-client-resume-arguments
             (gemini-companion-terminal-cli-client cli) t)
      (user-error "%s cannot resume conversations"
                  (gemini-companion-cli-name cli)))
    (gemini-companion-cli-check cli)
    (when (gemini-companion-cli-live-buffer cli)
      (setq cli (gemini-companion-terminal-cli-with
                 cli 'number (gemini-companion-cli-free-number cli))))
    (gemini-companion-cli-show-buffer cli)
    (rename-buffer (string-replace ":" " conversations:"
                                   (gemini-companion-cli-buffer-name cli))
                   'unique)
    (gemini-companion-resume-mode)
    (gemini-companion-resume--list)))

(provide 'gemini-companion-resume)
;;; gemini-companion-resume.el ends here
