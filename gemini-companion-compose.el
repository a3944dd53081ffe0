;;; gemini-companion-compose.el --- Write prompts in Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A buffer for the next prompt of a CLI, in a mode for text.  Its draft is in a
;; file, to which Emacs saves automatically, until the prompt is submitted.  There
;; is one buffer for each directory in which a CLI runs.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-install)
(require 'gemini-companion-name)
(require 'gemini-companion-point)
(require 'gemini-companion-privacy)
(require 'gemini-companion-run)
(require 'gemini-companion-send)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-terminal)
(require 'gemini-companion-text)
(require 'seq)
(require 'subr-x)

(declare-function gfm-mode "ext:markdown-mode")
(declare-function project-files "project")
(declare-function project-root "project")
(defvar savehist-additional-variables)

;;;; State

(defvar gemini-companion-compose-history nil
  "Submitted prompts, the last first.")

(defconst gemini-companion-compose--most-prompts 100
  "Maximum number of prompts in the history.")

(defvar-local gemini-companion-compose--place nil
  "Place in the history, or nil before it; see `gemini-companion-compose-history'.")

(defvar-local gemini-companion-compose--own nil
  "Text that was written before the history was shown.")

(defvar-local gemini-companion-compose--session nil
  "The session for the prompt, which may have ended, or nil.")

(defvar-local gemini-companion-compose--files nil
  "Names for completion, a list of strings, or nil before they are needed.")

(defvar gemini-companion-compose--pending nil
  "Alist of (DIRECTORY . TEXT), prompts for CLIs that are starting.")

;;;; Draft

(defun gemini-companion-compose--file (name)
  "Return the file NAME in the directory of drafts."
  (expand-file-name (concat "prompts/" name)
                    gemini-companion-install-directory))

(defun gemini-companion-compose--write (file text)
  "Write TEXT to FILE, which only the user can read; delete it if TEXT is blank."
  (if (string-blank-p text)
      (when (file-exists-p file)
        (delete-file file))
    (with-file-modes #o700
      (make-directory (file-name-directory file) t))
    (with-file-modes #o600
      (let ((coding-system-for-write 'utf-8-unix))
        (write-region text nil file nil 'silent)))))

(defun gemini-companion-compose--save ()
  "Save the draft in this buffer."
  (when buffer-auto-save-file-name
    (gemini-companion-compose--write buffer-auto-save-file-name
                                     (buffer-substring-no-properties
                                      (point-min) (point-max)))
    (set-buffer-modified-p nil)))

(defun gemini-companion-compose--save-all ()
  "Save all drafts."
  (dolist (buffer (buffer-list))
    (when (buffer-local-value 'gemini-companion-compose-mode buffer)
      (with-current-buffer buffer
        (gemini-companion-compose--save)))))

;;;; History

(defun gemini-companion-compose--load-history ()
  "Load the history, unless savehist does that."
  (let ((file (gemini-companion-compose--file "history")))
    (cond ((bound-and-true-p savehist-mode)
           (add-to-list 'savehist-additional-variables
                        'gemini-companion-compose-history))
          ((and (not gemini-companion-compose-history)
                (file-exists-p file))
           (setq gemini-companion-compose-history
                 (ignore-errors
                   (read (gemini-companion-text-read file))))))))

(defun gemini-companion-compose--remember (text)
  "Add TEXT to the history."
  (let ((history-delete-duplicates t)
        (history-length gemini-companion-compose--most-prompts))
    (add-to-history 'gemini-companion-compose-history text nil t))
  (unless (bound-and-true-p savehist-mode)
    (let (print-length print-level)
      (gemini-companion-compose--write
       (gemini-companion-compose--file "history")
       (prin1-to-string gemini-companion-compose-history)))))

(defun gemini-companion-compose-previous (&optional n)
  "Replace the text by the previous prompt of the history, or the Nth one."
  (interactive "p")
  (let ((place (+ (or gemini-companion-compose--place -1) (or n 1))))
    (unless (< -2 place (length gemini-companion-compose-history))
      (user-error "No %s prompt" (if (< place 0) "next" "previous")))
    (unless gemini-companion-compose--place
      (setq gemini-companion-compose--own (buffer-string)))
    (setq gemini-companion-compose--place (and (<= 0 place) place))
    (erase-buffer)
    (insert (if (<= 0 place)
                (nth place gemini-companion-compose-history)
              gemini-companion-compose--own))))

(defun gemini-companion-compose-next (&optional n)
  "Replace the text by the next prompt of the history, or the Nth one."
  (interactive "p")
  (gemini-companion-compose-previous (- (or n 1))))

;;;; Completion

(defconst gemini-companion-compose--commands
  '("about" "auth" "bug" "chat" "clear" "compress" "copy" "directory" "docs"
    "editor" "extensions" "help" "ide" "init" "mcp" "memory" "model" "privacy"
    "quit" "restore" "resume" "rewind" "settings" "stats" "theme" "tools" "vim")
  "Names of commands that the CLIs have themselves.")

(defun gemini-companion-compose--complete ()
  "Complete the name of a file after @, or of a command after / at the start.
For `completion-at-point-functions'."
  (let ((end (point)))
    (save-excursion
      (skip-chars-backward "^ \t\n")
      (cond ((eq ?@ (char-after))
             (list (1+ (point)) end (gemini-companion-compose--file-names)
                   :exclusive 'no))
            ((and (eq ?/ (char-after)) (bobp))
             (let ((commands (gemini-companion-compose--command-names)))
               (list (1+ (point)) end commands :exclusive 'no
                     :annotation-function
                     (lambda (name) (cdr (assoc name commands))))))))))

(defun gemini-companion-compose--file-names ()
  "Return the names of the shared files of the project, quoted for the CLI.
If a key is typed before they are known, return nil."
  (or gemini-companion-compose--files
      (let ((names
             (while-no-input
               (let ((directory (file-truename default-directory)))
                 (mapcar
                  (lambda (file)
                    (gemini-companion-point-escape
                     (file-relative-name file directory)))
                  (seq-remove #'gemini-companion-privacy-name-hidden-p
                              (when-let* ((project (project-current
                                                    nil directory)))
                                (mapcar #'expand-file-name
                                        (project-files project)))))))))
        (and (listp names)
             (setq gemini-companion-compose--files names)))))

(defun gemini-companion-compose--command-names ()
  "Return an alist of the names and descriptions of the commands of the CLI."
  (let* ((client (or (plist-get gemini-companion-compose--session :client)
                     (caar gemini-companion-clients)))
         (home (gemini-companion-clients-home client))
         (project (expand-file-name (file-name-nondirectory
                                     (directory-file-name home)))))
    (append
     (seq-mapcat
      (lambda (directory)
        (let ((directory (expand-file-name "commands/" directory)))
          (when (file-directory-p directory)
            (mapcar (lambda (file)
                      (cons (string-replace "/" ":" (file-name-sans-extension
                                                     (file-relative-name
                                                      file directory)))
                            (gemini-companion-compose--description file)))
                    (directory-files-recursively
                     directory "\\`[^.].*\\.\\(?:toml\\|md\\)\\'")))))
      (list home project))
     (mapcar #'list gemini-companion-compose--commands))))

(defun gemini-companion-compose--description (file)
  "Return the description in FILE, of a command, or nil."
  (with-temp-buffer
    (insert-file-contents file nil 0 2000)
    (when (re-search-forward
           "^description *[=:] *[\"']*\\([^\"'\n]+\\)" nil t)
      (concat "  " (match-string 1)))))

;;;; Commands

(defun gemini-companion-compose--find-session (directory)
  "Return the session in DIRECTORY, or nil; ask if there are several.
The one of this buffer is the first choice."
  (if (and gemini-companion-compose--session
           (gemini-companion-session-connected-p
            gemini-companion-compose--session))
      gemini-companion-compose--session
    (gemini-companion-session-read
     (seq-filter (lambda (session)
                   (gemini-companion-point--inside directory session))
                 (gemini-companion-sessions)))))

(defun gemini-companion-compose-submit (&optional insert)
  "Submit the prompt; with INSERT, a prefix argument, only insert it.
While the CLI works, it queues the prompt."
  (interactive "P")
  (let ((text (string-trim (buffer-substring-no-properties (point-min)
                                                           (point-max))))
        (session (gemini-companion-compose--find-session default-directory)))
    (when (string-empty-p text)
      (user-error "Nothing to submit"))
    (setq gemini-companion-compose--session session)
    (gemini-companion-compose--check-command text)
    (cond ((null session)
           (gemini-companion-compose--start text))
          ((eq 'waiting (gemini-companion-session-state session))
           (user-error "%s waits for an answer; answer it first"
                       (gemini-companion-session-name session)))
          (insert
           (message "%s" (gemini-companion-send-insert text session 'stay)))
          ((not (gemini-companion-send-type session text t))
           (kill-new text)
           (message "%s takes no input from Emacs; copied to the kill ring"
                    (gemini-companion-session-name session))))
    (gemini-companion-compose--remember text)
    (gemini-companion-compose--close "")))

(defun gemini-companion-compose--check-command (text)
  "Ask if TEXT begins like a command that is unknown."
  (when (and (string-match "\\`[/!]\\([^ \n]*\\)" text)
             (not (assoc (match-string 1 text)
                         (gemini-companion-compose--command-names)))
             (not (y-or-n-p (format "This prompt begins with %c, as a command of \
the CLI does; submit it? "
                                    (aref text 0)))))
    (user-error "Nothing was submitted")))

(defun gemini-companion-compose--start (text)
  "Offer to start a CLI here, and submit TEXT when it is ready."
  (unless (y-or-n-p "No CLI is connected here; start one with this prompt? ")
    (user-error "Nothing was submitted"))
  (setf (alist-get (file-truename default-directory)
                   gemini-companion-compose--pending nil nil #'equal)
        text)
  (add-hook 'gemini-companion-state-functions
            #'gemini-companion-compose--submit-pending)
  (save-selected-window
    (gemini-companion-run)))

(defun gemini-companion-compose--submit-pending (session state)
  "Submit the prompt that SESSION was started for, if STATE is ready."
  (when-let* ((entry (and (eq state 'ready)
                          (seq-find
                           (pcase-lambda (`(,directory . ,_))
                             (gemini-companion-point--inside directory session))
                           gemini-companion-compose--pending))))
    (setq gemini-companion-compose--pending
          (delq entry gemini-companion-compose--pending))
    (unless (gemini-companion-send-type session (cdr entry) t)
      (kill-new (cdr entry))
      (message "Prompt not submitted; it is in the kill ring"))
    (unless gemini-companion-compose--pending
      (remove-hook 'gemini-companion-state-functions
                   #'gemini-companion-compose--submit-pending))))

(defun gemini-companion-compose--close (text)
  "Close this buffer, and keep TEXT as its draft."
  (gemini-companion-compose--write buffer-auto-save-file-name text)
  (setq buffer-auto-save-file-name nil)
  (if-let* ((window (get-buffer-window)))
      (quit-restore-window window 'kill)
    (kill-buffer)))

(defun gemini-companion-compose-close ()
  "Close this buffer, and keep its text as a draft."
  (interactive)
  (gemini-companion-compose--close (buffer-string)))

(defun gemini-companion-compose-attach (buffer)
  "Insert what `gemini-companion-send' would send from BUFFER."
  (interactive
   (list (read-buffer "Attach what is at point in buffer: "
                      (other-buffer (current-buffer) t) t)))
  (let ((session (gemini-companion-compose--find-session default-directory))
        (window (get-buffer-window buffer t)))
    (insert (with-current-buffer buffer
              (save-excursion
                (when window
                  (goto-char (window-point window)))
                (gemini-companion-point-attachment session)))
            "\n")))

;;;; Mode

(defvar gemini-companion-compose-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'gemini-companion-compose-submit)
    (define-key map (kbd "C-c C-k") #'gemini-companion-compose-close)
    (define-key map (kbd "C-c C-a") #'gemini-companion-compose-attach)
    (define-key map (kbd "M-p") #'gemini-companion-compose-previous)
    (define-key map (kbd "M-n") #'gemini-companion-compose-next)
    map)
  "Keys in the buffer of a prompt.")

(define-minor-mode gemini-companion-compose-mode
  "Mode of a buffer for the next prompt of a CLI.
\\{gemini-companion-compose-mode-map}"
  :lighter nil
  :interactive nil
  (setq header-line-format '(:eval (gemini-companion-compose--header)))
  (add-hook 'completion-at-point-functions
            #'gemini-companion-compose--complete nil t)
  (add-hook 'kill-buffer-hook #'gemini-companion-compose--save nil t)
  (add-hook 'kill-emacs-hook #'gemini-companion-compose--save-all)
  (gemini-companion-compose--load-history))

(defun gemini-companion-compose--header ()
  "Return the header line: the CLI and its state, and the keys."
  (let ((session gemini-companion-compose--session))
    (string-replace
     "%" "%%"
     (concat
      " "
      (if (and session (gemini-companion-session-connected-p session))
          (concat (gemini-companion-session-name session)
                  (pcase (gemini-companion-session-state session)
                    ('working " works; the prompt is queued")
                    ('waiting " waits for an answer; answer it first")
                    ('ready " is ready")))
        "No CLI is connected here")
      (substitute-command-keys
       "   \\<gemini-companion-compose-mode-map>\
\\[gemini-companion-compose-submit] submit  \
\\[gemini-companion-compose-close] close")))))

(defun gemini-companion-compose--buffer (client directory)
  "Return the buffer with the draft for CLIENT in DIRECTORY."
  (let* ((name (format "*prompt: %s*"
                       (gemini-companion-name-shown
                        (file-name-nondirectory
                         (directory-file-name directory)))))
         (file (gemini-companion-compose--file
                (format "%s-%s" client (sha1 directory))))
         (buffer (seq-find (lambda (buffer)
                             (equal file (buffer-local-value
                                          'buffer-auto-save-file-name buffer)))
                           (buffer-list))))
    (or buffer
        (with-current-buffer (generate-new-buffer name)
          (if (fboundp 'gfm-mode) (gfm-mode) (text-mode))
          (setq default-directory directory)
          (gemini-companion-compose-mode)
          (when (file-exists-p file)
            (insert (gemini-companion-text-read file)))
          (with-file-modes #o700
            (make-directory (file-name-directory file) t))
          (setq buffer-auto-save-file-name file)
          (set-buffer-modified-p nil)
          (current-buffer)))))

(defun gemini-companion-compose--display (buffer session)
  "Display BUFFER below the terminal of SESSION, or anywhere, and select it."
  (let* ((terminal (and session (gemini-companion-session-terminal session)))
         (window (and terminal (get-buffer-window terminal))))
    (pop-to-buffer buffer (and window
                               `(display-buffer-in-direction
                                 (direction . below)
                                 (window . ,window)
                                 (window-height . 0.3))))))

;;;###autoload
(defun gemini-companion-compose (&optional session text)
  "Write the next prompt of a CLI in a buffer of Emacs.
SESSION is by default the CLI of this project.  TEXT is added to the
draft."
  (interactive)
  (let* ((project (project-current))
         (default-directory (file-truename
                             (if project (project-root project)
                               default-directory)))
         (session (or session (gemini-companion-compose--find-session
                               default-directory)))
         (buffer (gemini-companion-compose--buffer
                  (or (plist-get session :client)
                      gemini-companion-run-client
                      (caar gemini-companion-clients))
                  (file-name-as-directory
                   (or (plist-get session :directory) default-directory)))))
    (gemini-companion-compose--display buffer session)
    (setq gemini-companion-compose--session session)
    (goto-char (point-max))
    (when text
      (unless (or (bobp) (bolp))
        (insert "\n"))
      (insert text "\n"))))

(provide 'gemini-companion-compose)
;;; gemini-companion-compose.el ends here
