;;; gemini-companion-resume.el --- Conversations of the CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; List the conversations that a CLI can resume, and restore the buffers of CLIs
;; from a desktop, with such a list.

;;; Code:

(require 'gemini-companion-cli)
(require 'gemini-companion-client)
(require 'gemini-companion-names)
(require 'gemini-companion-session)
(require 'gemini-companion-terminal)
(require 'gemini-companion-windows-at-once)
(require 'json)
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

(defun gemini-companion-resume--parse (output)
  "Return the conversations in OUTPUT of a CLI, as `tabulated-list-entries'.
The newest comes first: Gemini CLI prints that last, and Qwen Code first."
  (let (printed objects)
    (dolist (line (split-string output "[\r\n]+" t))
      (if-let* ((entry (gemini-companion-resume--parse-printed line)))
          (push entry printed)
        (when-let* ((entry (gemini-companion-resume--parse-object line)))
          (push entry objects))))
    (append (nreverse objects) printed)))

(defun gemini-companion-resume--entry (id time words)
  "Return an entry of the list for the conversation ID.
TIME is when it was used last, and WORDS are its title or first prompt."
  (list id (vector time (gemini-companion-names-shown
                         (string-clean-whitespace words) 300))))

(defun gemini-companion-resume--parse-printed (line)
  "Return the entry for LINE, which Gemini CLI has printed, or nil.
Such a LINE is \"  1. Fix the bug (2 hours ago) [ID]\"."
  (when (string-match "\\` *[0-9]+\\. \\(.*\\) (\\([^()]*\\)) \\[\\([^]]+\\)\\]\\'"
                      line)
    (gemini-companion-resume--entry (match-string 3 line) (match-string 2 line)
                                    (match-string 1 line))))

(defun gemini-companion-resume--parse-object (line)
  "Return the entry for LINE, a JSON object of Qwen Code, or nil.
Other lines are of the log of that."
  (let-alist (and (string-prefix-p "{" line)
                  (ignore-error json-error (json-read-from-string line)))
    (when .sessionId
      (gemini-companion-resume--entry
       .sessionId
       (format-time-string "%F %R" (/ .mtime 1000))
       (or .customTitle .prompt "")))))

(defun gemini-companion-resume--list ()
  "List the conversations, or start the CLI if only that can list them."
  (let* ((cli gemini-companion-terminal-cli)
         (client (gemini-companion-terminal-cli-client cli))
         (arguments (gemini-companion-client-get client :conversations)))
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
  "Show the conversations in OUTPUT of a CLI in BUFFER, if it is live.
PROBLEM is why the CLI has failed, or nil."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq tabulated-list-entries (gemini-companion-resume--parse output))
      (setq truncate-lines (and tabulated-list-entries t))
      (cond (tabulated-list-entries
             (tabulated-list-print))
            (problem
             (gemini-companion-resume--say
              "%s cannot list its conversations: %s" problem))
            (t
             (gemini-companion-resume--say
              "%s has no conversation to resume; %s begins one"
              (substitute-command-keys "\\[gemini-companion-run]")))))))

(defun gemini-companion-resume--say (format &rest arguments)
  "Show a text in place of a list: FORMAT with the name of the CLI here.
The ARGUMENTS are for FORMAT, after that name."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (insert (apply #'format format
                   (gemini-companion-cli-name gemini-companion-terminal-cli)
                   arguments)
            "\n")
    (goto-char (point-min))))

;;;###autoload
(define-derived-mode gemini-companion-resume-mode tabulated-list-mode
  "Conversations"
  :interactive nil
  "Mode of the list of conversations that a CLI can resume.
\\{gemini-companion-resume-mode-map}"
  (setq tabulated-list-format [("When" 17 nil)
                               ("Conversation (RET resumes it, g lists again)" 0 nil)]
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
For another terminal, call the user's handler, if any, with FILE, NAME and
ENTRY.  This is a value of `desktop-buffer-mode-handlers'."
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
        ;; Modes of a terminal, which the desktop names, would take the keys.
        (setq-local desktop-minor-mode-handlers
                    (append (mapcar (lambda (mode) (cons mode #'ignore))
                                    (seq-filter #'local-variable-if-set-p
                                                minor-mode-list))
                            desktop-minor-mode-handlers))
        (gemini-companion-resume--say
         "%s ran here; g lists its conversations, to resume one")
        (current-buffer))))))

;;;; Life

(cl-defmethod gemini-companion-part-start ((_part (eql 'resume)))
  "Restore the terminals of CLIs from a desktop."
  (setq desktop-buffer-mode-handlers
        (seq-union gemini-companion-resume--desktop-handlers
                   (bound-and-true-p desktop-buffer-mode-handlers))))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'resume)))
  "Restore no terminals of CLIs from a desktop."
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

;;;###autoload
(defun gemini-companion-resume (&optional number)
  "List the conversations of the CLI of this project, to resume one.
NUMBER, the prefix argument, is as for `gemini-companion-run'.  If that
CLI is running, the conversation is resumed in one more."
  (interactive "P")
  (let ((cli (gemini-companion-cli-wanted number)))
    (when (gemini-companion-terminal-cli-remote cli)
      (user-error "Conversations on other hosts are not listed; type /resume in \
the CLI"))
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
