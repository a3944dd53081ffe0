;;; gemini-companion-compose.el --- Write prompts in Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A buffer for the next prompt of a CLI, in a mode for text.  Its draft is in a
;; file, to which Emacs saves automatically, until the prompt is submitted.  There
;; is one buffer for each directory in which a CLI runs.

;;; Code:

(require 'dnd)
(require 'gemini-companion-clients)
(require 'gemini-companion-install)
(require 'gemini-companion-session)
(require 'gemini-companion-prompt)
(require 'gemini-companion-privacy)
(require 'gemini-companion-cli)
(require 'gemini-companion-state)
(require 'gemini-companion-text)
(require 'project)

(declare-function gfm-mode "ext:markdown-mode")

;;;; State

(defvar gemini-companion-compose-history nil
  "Submitted prompts, the last first.")

(defvar-local gemini-companion-compose--session nil
  "The session for the prompt, which may have ended, or nil.")

(defvar-local gemini-companion-compose--files nil
  "Names of files for completion, or nil before they are needed.")

(defvar gemini-companion-compose--images nil
  "Alist of (FILE . SESSION), images that were yanked.")

;;;; Draft

(defun gemini-companion-compose--file (name &optional directory)
  "Return the file NAME in DIRECTORY, by default in the one of drafts.
If DIRECTORY is new, only the user can read it."
  (let ((directory (or directory
                       (expand-file-name "prompts/"
                                         gemini-companion-install-directory))))
    (with-file-modes #o700
      (make-directory directory t))
    (expand-file-name name directory)))

;;;; History

(defun gemini-companion-compose--remember (text)
  (let ((history-delete-duplicates t)
        print-length print-level)
    (add-to-history 'gemini-companion-compose-history text 100 t)
    (gemini-companion-text-write
     (gemini-companion-compose--file "history")
     (prin1-to-string gemini-companion-compose-history))))

(defun gemini-companion-compose-previous (&optional n)
  "Replace the text by the previous prompt of the history, or the Nth one.
Add the text to the history.  Before the last prompt, the text is empty."
  (interactive "p")
  (let ((text (string-trim (gemini-companion-text-of-buffer))))
    (unless (or (string-empty-p text)
                (member text gemini-companion-compose-history))
      (gemini-companion-compose--remember text))
    (let ((index (+ (or (seq-position gemini-companion-compose-history text) -1)
                    (or n 1))))
      (unless (<= -1 index (1- (length gemini-companion-compose-history)))
        (user-error "No %s prompt" (if (< index 0) "next" "previous")))
      (erase-buffer)
      (unless (< index 0)
        (insert (nth index gemini-companion-compose-history))))))

(defun gemini-companion-compose-next (&optional n)
  "Replace the text by the next prompt of the history, or the Nth one."
  (interactive "p")
  (gemini-companion-compose-previous (- (or n 1))))

;;;; Completion

(defun gemini-companion-compose--complete ()
  "Complete the name of a file after @, or of a command after / at the start.
For `completion-at-point-functions'."
  (let ((end (point)))
    (save-excursion
      (while (progn
               (skip-chars-backward "^ \t\n")
               ;; A quoted space is part of a name, before which @ needs no space.
               (eq ?\\ (char-before (1- (point)))))
        (backward-char))
      (cond ((search-forward "@" end t)
             (list (point) end (gemini-companion-compose--file-names)
                   ;; Completion that pops up by itself need not wait.
                   :company-prefix-length t :exclusive 'no))
            ((and (bobp) (< (point) end) (eq ?/ (char-after)))
             (let ((commands (gemini-companion-compose--command-names)))
               (list (1+ (point)) end commands :exclusive 'no
                     :annotation-function
                     (lambda (name) (cdr (assoc name commands))))))))))

(defun gemini-companion-compose--file-names ()
  "Return the names of the files of the project, quoted for the CLI."
  (or gemini-companion-compose--files
      (let ((default-directory (file-truename default-directory)))
        (setq gemini-companion-compose--files
              (mapcar (lambda (file)
                        (gemini-companion-prompt-escape
                         (string-remove-prefix default-directory file)))
                      (gemini-companion-prompt-files))))))

(defun gemini-companion-compose--client ()
  (or (plist-get gemini-companion-compose--session :client)
      gemini-companion-run-client
      (caar gemini-companion-clients)))

(defun gemini-companion-compose--command-names ()
  (let ((client (gemini-companion-compose--client)))
    (append (seq-mapcat #'gemini-companion-compose--commands-in
                        (pcase-let ((`(,project ,user)
                                     (mapcar #'file-name-directory
                                             (gemini-companion-remote-settings
                                              client))))
                          (list (if-let* ((name (file-remote-p
                                                 default-directory)))
                                    (concat name user)
                                  (gemini-companion-clients-home client))
                                project)))
            (mapcar (lambda (name)
                      (cons name (concat "  " (gemini-companion-clients-title
                                               client))))
                    (split-string (gemini-companion-clients-get
                                   client :commands))))))

(defun gemini-companion-compose--commands-in (directory)
  (let ((directory (expand-file-name "commands/" directory)))
    (mapcar (lambda (file)
              (cons (string-replace "/" ":" (file-name-sans-extension
                                             (file-relative-name
                                              file directory)))
                    (with-temp-buffer
                      (insert-file-contents file nil 0 2000)
                      (when (re-search-forward
                             "^description *[=:] *\\([\"']*\\)\\(.+?\\)\\1 *$"
                             nil t)
                        (concat "  " (match-string 2))))))
            (ignore-error file-missing
              (directory-files-recursively
               directory "\\`[^.].*\\.\\(?:toml\\|md\\)\\'")))))

;;;; Images

(defun gemini-companion-compose--image-directory ()
  "Return the directory of images that were pasted into the CLI, or nil.
Elsewhere outside the project, it does not read them, or asks."
  (let* ((client (gemini-companion-compose--client))
         (name (gemini-companion-clients-get client :images))
         (home (gemini-companion-clients-home client))
         (project (gemini-companion-settings-get
                   (expand-file-name "projects.json" home)
                   (list "projects" (directory-file-name
                                     (file-truename default-directory))))))
    (when (and name (or project (not (string-search "%s" name))))
      (expand-file-name (format name project) home))))

(defun gemini-companion-compose--yank-image (type data)
  (let ((file (make-temp-file (gemini-companion-compose--file
                               "image-"
                               (gemini-companion-compose--image-directory))
                              nil
                              (replace-regexp-in-string
                               "\\`image/\\([a-z]+\\).*" ".\\1"
                               (symbol-name type))))
        (coding-system-for-write 'binary))
    (write-region data nil file nil 'silent)
    (push (cons file gemini-companion-compose--session)
          gemini-companion-compose--images)
    (unless (bolp) (just-one-space))
    (insert "@" (gemini-companion-prompt-escape file) " ")))

(defun gemini-companion-compose--drop (uri _action)
  (let ((file (or (dnd-get-local-file-name uri t)
                  (user-error "Not a file on this machine: %s" uri))))
    (if (and (string-match-p (image-file-name-regexp) file)
             (not (file-in-directory-p file default-directory))
             (not (gemini-companion-privacy-name-hidden-p (file-truename file))))
        (gemini-companion-compose--yank-image
         (intern (concat "image/" (file-name-extension file)))
         (gemini-companion-text-bytes file))
      (unless (bolp) (just-one-space))
      (insert (gemini-companion-compose--describe (list (list file nil nil)))
              " ")))
  'private)

(defun gemini-companion-compose--delete-images (&rest changed)
  "Delete the images, but if sessions have CHANGED only those of ended ones."
  (setq gemini-companion-compose--images
        (seq-remove
         (pcase-lambda (`(,file . ,session))
           (unless (and changed
                        (or (null session)
                            (gemini-companion-session-connected-p session)))
             (delete-file file)
             t))
         gemini-companion-compose--images)))

;;;; Commands

(defun gemini-companion-compose--find-session ()
  "Return the session of this buffer, or another one in its directory, or nil."
  (if (gemini-companion-session-connected-p gemini-companion-compose--session)
      gemini-companion-compose--session
    (car (gemini-companion-prompt-sessions default-directory))))

(defun gemini-companion-compose--describe (things)
  "Return the text for THINGS, as `gemini-companion-send-alist' has them.
Their names are for the CLI of this buffer, or for one to start."
  (gemini-companion-prompt-description
   things (or (gemini-companion-compose--find-session)
              (list :directory default-directory
                    :client (gemini-companion-compose--client)))))

(defun gemini-companion-compose-submit (&optional insert)
  "Submit the prompt; with INSERT, a prefix argument, only insert it.
While the CLI works, it queues the prompt."
  (interactive "P")
  (let ((text (string-trim (gemini-companion-text-of-buffer)))
        (session (gemini-companion-compose--find-session)))
    (when (string-empty-p text)
      (user-error "Nothing to submit"))
    (gemini-companion-compose--check-command text)
    (setq text (gemini-companion-prompt-quote
                text (or session
                         (list :client (gemini-companion-compose--client)))))
    (cond ((null session)
           (gemini-companion-compose--start text))
          ((eq 'waiting (gemini-companion-session-state session))
           (user-error "%s waits for an answer; answer it first"
                       (gemini-companion-session-name session)))
          ((or insert (not (gemini-companion-cli-process session)))
           (message "%s" (save-current-buffer
                           (gemini-companion-prompt-insert text session))))
          (t
           (gemini-companion-prompt-submit
            text (lambda () session) 30
            (format "%s did not take the prompt"
                    (gemini-companion-session-name session)))))
    (gemini-companion-compose--remember text)
    (erase-buffer)
    ;; In the terminal, the text is to be completed.
    (save-selected-window
      (gemini-companion-compose-close))))

(defun gemini-companion-compose--check-command (text)
  (when-let* ((command (gemini-companion-prompt-command text)))
    (unless (or (assoc (car (split-string (substring command 1)))
                       (and (string-prefix-p "/" command)
                            (gemini-companion-compose--command-names)))
                (y-or-n-p (format "This prompt begins with %c, as a command of \
the CLI does; submit it? "
                                  (aref command 0))))
      (user-error "Nothing was submitted"))))

(defun gemini-companion-compose--start (text)
  (unless (y-or-n-p "No CLI is connected here; start one with this prompt? ")
    (user-error "Nothing was submitted"))
  (let ((directory default-directory))
    (save-selected-window
      (gemini-companion-run))
    (gemini-companion-prompt-submit
     text (lambda () (car (gemini-companion-prompt-sessions directory)))
     300 "No CLI was ready")))

(defun gemini-companion-compose-close ()
  "Close this buffer, and keep its text as a draft."
  (interactive)
  (quit-windows-on (current-buffer) 'kill))

(defun gemini-companion-compose-attach (buffer)
  "Insert what `gemini-companion-send' would send from BUFFER."
  (interactive
   (list (read-buffer "Attach what is at point in buffer: "
                      (other-buffer (current-buffer) t) t)))
  (let ((window (get-buffer-window buffer t)))
    (unless (bolp) (insert "\n"))
    (insert (gemini-companion-compose--describe
             (with-current-buffer buffer
               (save-excursion
                 (when window
                   (goto-char (window-point window)))
                 (gemini-companion-prompt-things))))
            "\n")))

;;;; Mode

(defvar gemini-companion-compose-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'gemini-companion-compose-submit)
    (define-key map (kbd "C-c C-k") #'gemini-companion-compose-close)
    (define-key map (kbd "C-c C-a") #'gemini-companion-compose-attach)
    (define-key map (kbd "M-p") #'gemini-companion-compose-previous)
    (define-key map (kbd "M-n") #'gemini-companion-compose-next)
    ;; Text mode completes words of a dictionary by it in Emacs 28 and 29.
    (define-key map (kbd "C-M-i") #'completion-at-point)
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
  (gemini-companion-compose--save-on-kill)
  (add-hook 'gemini-companion-session-changed-functions
            #'gemini-companion-compose--delete-images)
  (setq-local dnd-protocol-alist
              (cons '("^file:" . gemini-companion-compose--drop)
                    dnd-protocol-alist))
  (when (fboundp 'yank-media-handler)
    (yank-media-handler "image/.*" #'gemini-companion-compose--yank-image))
  (unless gemini-companion-compose-history
    (setq gemini-companion-compose-history
          (ignore-errors (read (gemini-companion-text-read
                                (gemini-companion-compose--file "history")))))))

(defun gemini-companion-compose--save-on-kill ()
  "Save the draft when it is killed, as Emacs does by itself when it exits."
  (add-hook 'kill-buffer-hook (lambda () (do-auto-save t t)) nil t))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'compose)))
  "Leave drafts in their major mode only, and delete the images."
  (remove-hook 'gemini-companion-session-changed-functions
               #'gemini-companion-compose--delete-images)
  (gemini-companion-compose--delete-images)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when gemini-companion-compose-mode
        (funcall major-mode)
        (gemini-companion-compose--save-on-kill)))))

(defun gemini-companion-compose--header ()
  (let ((session (gemini-companion-compose--find-session)))
    (string-replace
     "%" "%%"
     (concat
      " "
      (gemini-companion-name-fit
       `((nil ,(if session (gemini-companion-session-name session) ""))
         (1 ,(pcase (and session (gemini-companion-session-state session))
               ('nil "No CLI is connected here")
               ('working " works; the prompt is queued")
               ('waiting " waits for an answer")
               (_ "")))
         ,@(mapcar (pcase-lambda (`(,rank ,keys))
                     (list rank (concat "  " (substitute-command-keys keys))))
                   '((2 "\\[gemini-companion-compose-submit] submit")
                     (3 "\\[gemini-companion-compose-previous] previous")
                     (4 "\\[gemini-companion-compose-attach] attach")
                     (5 "@ file")
                     (5 "/ command")
                     (6 "\\[gemini-companion-compose-close] close"))))
       (1- (window-width)))))))

(defun gemini-companion-compose--buffer (directory)
  (let ((file (gemini-companion-compose--file (sha1 directory))))
    (or (seq-find (lambda (buffer)
                    (equal file (buffer-local-value
                                 'buffer-auto-save-file-name buffer)))
                  (buffer-list))
        (with-current-buffer (generate-new-buffer
                              (format "*prompt: %s*"
                                      (gemini-companion-name-shown
                                       (file-name-nondirectory
                                        (directory-file-name directory)))))
          (if (fboundp 'gfm-mode) (gfm-mode) (text-mode))
          (setq default-directory directory)
          (when (file-exists-p file)
            (insert (gemini-companion-text-read file)))
          (setq buffer-auto-save-file-name file)
          (set-buffer-modified-p nil)
          (current-buffer)))))

;;;###autoload
(defun gemini-companion-compose (&optional session text)
  "Write the next prompt of a CLI in a buffer, below its terminal.
SESSION is by default the CLI of this project.  TEXT is added to the
draft."
  (interactive)
  (let* ((directory (if-let* ((project (project-current)))
                        (project-root project)
                      default-directory))
         (session (or session
                      (gemini-companion-session-read
                       (gemini-companion-prompt-sessions directory))))
         (terminal (and session (gemini-companion-session-terminal session)))
         (window (and terminal (get-buffer-window terminal))))
    (pop-to-buffer (gemini-companion-compose--buffer
                    (file-name-as-directory
                     (or (plist-get session :directory)
                         (file-truename directory))))
                   (and window `((display-buffer-reuse-window
                                  display-buffer-in-direction)
                                 (direction . below)
                                 (window . ,window)
                                 (window-height
                                  . ,(max 5 (/ (window-height window) 3))))))
    (unless gemini-companion-compose-mode
      (gemini-companion-compose-mode))
    (setq gemini-companion-compose--session session)
    (goto-char (point-max))
    (when text
      (unless (bolp)
        (insert "\n"))
      (insert text "\n"))))

(provide 'gemini-companion-compose)
;;; gemini-companion-compose.el ends here
