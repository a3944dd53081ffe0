;;; gemini-companion-compose.el --- Write prompts in Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Compose the next prompt of a CLI in a buffer with a text mode.  The draft is saved
;; to a file a second after it has changed, until the prompt is submitted.  There is one buffer for each
;; directory in which a CLI runs.
;;
;; File names after @, and commands after /, are completed.  An image that is yanked or
;; dropped is saved to a file, to which the prompt refers.

;;; Code:

(require 'dnd)
(require 'gemini-companion-choice)
(require 'gemini-companion-cli)
(require 'gemini-companion-client-settings)
(require 'gemini-companion-clients)
(require 'gemini-companion-garbage)
(require 'gemini-companion-install)
(require 'gemini-companion-label)
(require 'gemini-companion-names)
(require 'gemini-companion-prompt)
(require 'gemini-companion-send)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-terminal)
(require 'project)

;;;; Customization

(defface gemini-companion-compose-file
  '((t :inherit link))
  "Face of an @ and the name after it in a draft, if that is a file."
  :group 'gemini-companion)

;;;; Keys

(defvar gemini-companion-compose-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'gemini-companion-compose-submit)
    (define-key map (kbd "C-c C-k") #'gemini-companion-compose-close)
    (define-key map (kbd "C-c C-a") #'gemini-companion-compose-attach)
    (define-key map (kbd "C-c C-w") #'gemini-companion-compose-withdraw)
    (define-key map (kbd "M-p") #'gemini-companion-compose-previous)
    (define-key map (kbd "M-n") #'gemini-companion-compose-next)
    ;; Text mode completes words of a dictionary by it in Emacs 28 and 29.
    (define-key map (kbd "C-M-i") #'completion-at-point)
    ;; The filter leaves TAB to the major mode where no word can be completed.
    (define-key map (kbd "TAB")
      `(menu-item "" completion-at-point
                  :filter ,(lambda (command)
                             (and (gemini-companion-compose--word) command))))
    map)
  "Keys in the buffer of a prompt.")

;;;; State

(defvar gemini-companion-compose-history nil
  "Submitted prompts, the newest first.")

(defvar-local gemini-companion-compose--session nil
  "The session for the prompt, which may have ended, or nil.")

(defvar-local gemini-companion-compose--timer nil
  "The timer that saves this draft, or nil.")

(defvar-local gemini-companion-compose--files nil
  "The absolute names of the files for completion, nil until they are needed.")

(defvar gemini-companion-compose--images nil
  "Alist of (FILE . SESSION), images that were yanked.")

;;;; Target

(defun gemini-companion-compose--target ()
  "Return the session of this buffer, or another one in its directory.
Without one, return a session of a CLI to start, which has no ID yet."
  (let ((session gemini-companion-compose--session))
    (cond ((gemini-companion-session-connected-p session) session)
          ((car (gemini-companion-send-sessions default-directory)))
          (t (gemini-companion-session-make
              :directory default-directory
              :client (or (and session (gemini-companion-session-client session))
                          gemini-companion-run-client
                          (car gemini-companion-clients)))))))

;;;; Draft

(defun gemini-companion-compose--file (name &optional directory)
  "Return the file NAME in DIRECTORY, by default the directory of drafts.
Create DIRECTORY if necessary, readable only by the user."
  (let ((directory (or directory
                       (expand-file-name "prompts/"
                                         gemini-companion-install-directory))))
    (with-file-modes #o700
      (make-directory directory t))
    (gemini-companion-names-below directory name)))

(defun gemini-companion-compose--buffer (directory)
  "Return the buffer of the draft for DIRECTORY, with its saved text.
The text is saved in the auto-save file; the buffer visits no file."
  (let ((file (gemini-companion-compose--file (sha1 directory))))
    (or (seq-find (lambda (buffer)
                    (equal file (buffer-local-value
                                 'buffer-auto-save-file-name buffer)))
                  (buffer-list))
        (with-current-buffer (generate-new-buffer
                              (format "*prompt: %s*"
                                      (gemini-companion-names-shown
                                       (file-name-nondirectory
                                        (directory-file-name directory)))))
          (if (fboundp 'gfm-mode) (gfm-mode) (text-mode))
          (setq default-directory directory)
          (when (file-exists-p file)
            (insert (gemini-companion-text-read file)))
          (setq buffer-auto-save-file-name file)
          (set-buffer-modified-p nil)
          (current-buffer)))))

(defun gemini-companion-compose--save-soon (&rest _)
  "Save this draft in a second."
  (unless gemini-companion-compose--timer
    (setq gemini-companion-compose--timer
          (run-at-time 1 nil #'gemini-companion-compose--save (current-buffer)))))

(defun gemini-companion-compose--save (draft)
  "Save the text of DRAFT, a buffer that may have been killed."
  (when (buffer-live-p draft)
    (with-current-buffer draft
      (setq gemini-companion-compose--timer nil)
      (let ((auto-save-include-big-deletions t))
        (do-auto-save t t)))))

(defun gemini-companion-compose--directory ()
  "Return the root of the project here, or else this directory.
On a remote host, it is the workspace root there, if that is known."
  (pcase (let ((directory (or gemini-companion-session-remote-directory
                              default-directory)))
           (and (file-remote-p directory)
                (gemini-companion-names-remote-location directory)))
    ;; `project-current' would connect to the host.
    (`(,host ,_ ,(and root (pred stringp))) (concat host root))
    (_ (file-truename (if-let* ((project (project-current)))
                          (project-root project)
                        default-directory)))))

;;;; History

(defun gemini-companion-compose--remember (text)
  "Add TEXT to the history, of at most 100 elements, and save it."
  (let ((history-delete-duplicates t)
        print-length print-level)
    (add-to-history 'gemini-companion-compose-history text 100 t)
    (gemini-companion-text-write
     (gemini-companion-compose--file "history")
     (prin1-to-string gemini-companion-compose-history))))

(defun gemini-companion-compose--load-history ()
  "Read the history from its file, unless it has been read.
Without a readable file, the history is empty."
  (unless gemini-companion-compose-history
    (setq gemini-companion-compose-history
          (ignore-errors (read (gemini-companion-text-read
                                (gemini-companion-compose--file "history")))))))

;;;; Completion

(defun gemini-companion-compose--word ()
  "Return the word to complete before point, (KIND BEGINNING), or nil.
KIND is `file' for a file name after @, or `command' for a name after / at the
start of the draft."
  (let ((end (point)))
    (save-excursion
      ;; A quoted space belongs to a name.  An @ needs no space before it.
      (re-search-backward "[^\\][ \t]\\|^")
      (goto-char (match-end 0))
      (cond ((search-forward "@" end t)
             (list 'file (point)))
            ((and (bobp) (< (point) end) (eq ?/ (char-after)))
             (list 'command (1+ (point))))))))

(defun gemini-companion-compose--complete ()
  "Complete the name of a file after @, or of a command after / at the start.
A member of `completion-at-point-functions'."
  (pcase (gemini-companion-compose--word)
    (`(file ,beginning)
     (list beginning (point) (gemini-companion-compose--file-table)
           :exit-function #'gemini-companion-compose--replace-completed
           ;; Completion that pops up by itself need not wait.
           :company-prefix-length t
           :exclusive 'no))
    (`(command ,beginning)
     (let ((commands (gemini-companion-compose--command-names)))
       (list beginning (point)
             (gemini-companion-choice-table
              commands
              `((category . gemini-companion-command)
                (annotation-function
                 . ,(lambda (name) (cdr (assoc name commands))))))
             :exclusive 'no)))))

(defun gemini-companion-compose--file-table ()
  "Return a completion table of the references to files, without their @.
A reference is the name of a file in the form that the CLI reads, or the
plain name if it reads none.  As a project may have 100,000 files, only the
names that begin with the input are converted."
  (let* ((client (gemini-companion-session-client
                  (gemini-companion-compose--target)))
         (files (gemini-companion-compose--list-files))
         (directory (file-truename default-directory))
         (references
          (completion-table-with-cache
           (lambda (beginning)
             (gemini-companion-garbage-later
               (let ((completion-regexp-list nil))
                 (mapcar (lambda (file)
                           (let ((name (string-remove-prefix directory file)))
                             (or (gemini-companion-prompt-file-name name client)
                                 name)))
                         (all-completions (concat directory beginning) files))))))))
    (lambda (text predicate action)
      (cond ((eq action 'metadata)
             '(metadata (category . project-file)))
            ((eq (car-safe action) 'boundaries)
             nil)
            (t
             (complete-with-action
              action
              ;; Behind a quoting character, names and references differ.
              (all-completions (substring text 0 (string-match "[\\\"]" text))
                               references)
              text predicate))))))

(defun gemini-companion-compose--list-files ()
  "Return the absolute names of the files of the current project.
They are cached in the buffer of the draft."
  (or gemini-companion-compose--files
      (when-let* ((default-directory (file-truename default-directory))
                  (project (project-current)))
        (gemini-companion-garbage-later
          (setq gemini-companion-compose--files
                (project-files project (list default-directory)))))))

(defun gemini-companion-compose--replace-completed (text status)
  "Replace the completed TEXT after @ if the CLI would not read that file.
Insert what `gemini-companion-send' sends for the file.  STATUS is as for
`:exit-function' of `completion-extra-properties'."
  (let ((session (gemini-companion-compose--target))
        (file (gemini-companion-names-below (file-truename default-directory) text))
        (start (- (point) (length text) 1)))
    (when (and (eq status 'finished)
               (not (gemini-companion-prompt-reference
                     text (gemini-companion-session-client session)))
               ;; TEXT is no reference, so it is a name.
               (member file gemini-companion-compose--files)
               (<= (point-min) start)
               (equal (concat "@" text) (buffer-substring start (point))))
      (let ((description (gemini-companion-send-description
                          (list (list file)) session)))
        (delete-region start (point))
        (insert description)))))

(defun gemini-companion-compose--command-names ()
  "Return the commands in files of the user and the project, an alist.
The elements are (NAME . DESCRIPTION) as for
`gemini-companion-compose--commands-in'."
  (pcase-let* ((client (gemini-companion-session-client
                        (gemini-companion-compose--target)))
               (`(,project ,user)
                (mapcar (lambda (name) (and name (file-name-directory name)))
                        (gemini-companion-client-settings-names client)))
               (host (file-remote-p default-directory))
               ;; The files of the user are those on the host of the CLI.
               (home (if host
                         (and user (concat host user))
                       (gemini-companion-client-home client))))
    (seq-mapcat #'gemini-companion-compose--commands-in
                (delq nil (list home project)))))

(defun gemini-companion-compose--commands-in (directory)
  "Return the commands in the files below DIRECTORY, an alist.
The elements are (NAME . DESCRIPTION), two strings.  For the file
commands/git/commit.toml, NAME is git:commit.  DESCRIPTION begins with two
spaces, or is nil."
  (let ((directory (expand-file-name "commands/" directory)))
    (mapcar (lambda (file)
              (cons (string-replace "/" ":" (file-name-sans-extension
                                             (file-relative-name
                                              file directory)))
                    (gemini-companion-compose--command-description file)))
            (ignore-error file-missing
              (directory-files-recursively
               directory "\\`[^.].*\\.\\(?:toml\\|md\\)\\'")))))

(defun gemini-companion-compose--command-description (file)
  "Return the description in FILE of a command, after two spaces, or nil.
It is near the beginning, in TOML or in the front matter of Markdown."
  (with-temp-buffer
    (insert-file-contents file nil 0 2000)
    (when (re-search-forward
           "^description *[=:] *\\([\"']*\\)\\(.+?\\)\\1 *$" nil t)
      (concat "  " (match-string 2)))))

;;;; Names that are files

(defun gemini-companion-compose--local-p ()
  "Return non-nil if the files of the draft are local, so that checking is fast."
  (not (or (file-remote-p default-directory)
           (gemini-companion-session-remote (gemini-companion-compose--target)))))

(defun gemini-companion-compose--search-file (end)
  "Search for an @ with the name of a file before END, and move point there.
This is a function of `font-lock-keywords'."
  (and (gemini-companion-compose--local-p)
       (let ((name nil))
         (while (and (setq name (gemini-companion-prompt-search-reference end))
                     (not (file-exists-p name))))
         name)))

;;;; Images

(defun gemini-companion-compose--image-directory ()
  "Return the directory of images that were pasted into the CLI, or nil.
For an image in another directory outside the project, the CLI refuses or asks."
  (gemini-companion-client-settings-images
   (gemini-companion-session-client (gemini-companion-compose--target))
   default-directory))

(defconst gemini-companion-compose--image
  "\\`\\(?:\211PNG\r\n\32\n\\|\377\330\377\\|GIF8[79]a\\|RIFF....WEBP\\|....ftyp\\)"
  "Regexp for the first bytes of an image that a CLI may read.")

(defconst gemini-companion-compose--largest-image 20000000
  "Bytes that an image may have; the models accept no larger ones.")

(defun gemini-companion-compose--check-image (name bytes size)
  "Signal a `user-error' if an image is none, or too large.
NAME is its name in the message, BYTES its first ones, and SIZE their number."
  (let ((case-fold-search nil))
    (cond ((not (string-match-p gemini-companion-compose--image bytes))
           (user-error "%s is no image that a CLI reads (%s); copy it as PNG or \
JPEG" name (file-size-human-readable size 'iec " " "B")))
          ((< gemini-companion-compose--largest-image size)
           (user-error "%s is too large (%s); copy a smaller part of it"
                       name (file-size-human-readable size 'iec " " "B"))))))

(defun gemini-companion-compose--yank-image (type data)
  "Save the image DATA of TYPE in a file, and insert a reference to the file.
TYPE is a symbol such as `image/png', and DATA are bytes.  The file is deleted
when the session ends."
  (when-let* ((name (or (gemini-companion-session-remote
                         (gemini-companion-compose--target))
                        (file-remote-p default-directory))))
    (user-error "Image is not on %s; copy it there and type its name after @"
                (gemini-companion-names-title name)))
  (gemini-companion-compose--check-image
   (format "The text for %s" type) data (length data))
  (let* ((coding-system-for-write 'binary)
         (file (make-temp-file (gemini-companion-compose--file
                                "image-"
                                (gemini-companion-compose--image-directory))
                               nil
                               (replace-regexp-in-string
                                "\\`image/\\([a-z]+\\).*" ".\\1"
                                (symbol-name type))
                               data)))
    (push (cons file gemini-companion-compose--session)
          gemini-companion-compose--images)
    (unless (bolp) (just-one-space))
    (insert (or (gemini-companion-prompt-reference
                 file (gemini-companion-session-client
                       (gemini-companion-compose--target)))
                (format "Read the image %s" file))
            " ")))

(defun gemini-companion-compose--drop (uri _action)
  "Insert a reference to the file URI, which was dropped on the draft.
A handler of `dnd-protocol-alist'.  An image outside the project is copied,
since the CLI may not read it there."
  (let ((file (or (dnd-get-local-file-name uri t)
                  (user-error "Not a file on this machine: %s" uri))))
    (if (and (string-match-p (image-file-name-regexp) file)
             (not (file-in-directory-p file default-directory))
             (not (gemini-companion-privacy-name-hidden-p file)))
        (progn
          ;; Before a large file is read.
          (gemini-companion-compose--check-image
           (file-name-nondirectory file)
           (gemini-companion-text-bytes file 12)
           (file-attribute-size (gemini-companion-text-attributes file)))
          (gemini-companion-compose--yank-image
           (intern (concat "image/" (file-name-extension file)))
           (gemini-companion-text-bytes file)))
      (unless (bolp) (just-one-space))
      (insert (gemini-companion-send-description
               (list (list file)) (gemini-companion-compose--target))
              " ")))
  'private)

(defun gemini-companion-compose--delete-images (&rest changed)
  "Delete the files of images.
If sessions have CHANGED, as for `gemini-companion-session-changed-functions',
only delete those for sessions that have ended."
  (pcase-dolist (`(,file . ,session) gemini-companion-compose--images)
    (unless (and changed (or (null session)
                             (gemini-companion-session-connected-p session)))
      (delete-file file)
      (setf (alist-get file gemini-companion-compose--images nil t #'equal) nil))))

;;;; Submitting

(defun gemini-companion-compose-deliver (text session &optional insert ended)
  "Submit TEXT to SESSION, the value of `gemini-companion-compose--target'.
With INSERT, or if no terminal of the CLI takes input, only insert TEXT.
Signal an error if the CLI waits for an answer.  A CLI with an extension
accepts TEXT even while it waits, and in any terminal.  Call ENDED once, as
`gemini-companion-prompt-submit' does, or with `copied' if the CLI has no
known terminal and TEXT was added to the kill ring."
  (cond ((null (gemini-companion-session-id session))
         (gemini-companion-compose--start text))
        ((and (not insert) (gemini-companion-prompt-by-message-p text session))
         (gemini-companion-compose--submit text session ended))
        ((eq 'waiting (gemini-companion-session-state session))
         (user-error "%s is waiting for an answer; answer it first"
                     (gemini-companion-session-name session)))
        ((or insert (not (gemini-companion-terminal-process session)))
         (message "%s" (save-current-buffer
                         (gemini-companion-prompt-insert text session)))
         (when ended
           (funcall ended
                    (unless (gemini-companion-session-terminal session) 'copied))))
        (t
         (gemini-companion-compose--submit text session ended))))

(defun gemini-companion-compose--submit (text session ended)
  "Submit TEXT to SESSION; ENDED is as for `gemini-companion-prompt-submit'."
  (gemini-companion-prompt-submit
   text (lambda () session) 30
   (format "%s did not accept the prompt" (gemini-companion-session-name session))
   ended))

(defconst gemini-companion-compose--start-seconds 300
  "Seconds that a CLI may take to start before its prompt is given up.")

(defun gemini-companion-compose--start (text)
  "Start a CLI for this project, and submit TEXT once it is connected.
Signal a `user-error' if the user declines."
  (unless (gemini-companion-choice-y-or-n-p
           "No CLI is connected here; start one with this prompt? ")
    (user-error "Prompt not submitted"))
  (let ((directory default-directory))
    (save-selected-window
      (gemini-companion-run))
    (gemini-companion-prompt-submit
     text (lambda () (car (gemini-companion-send-sessions directory)))
     gemini-companion-compose--start-seconds "No CLI was ready")))

(defun gemini-companion-compose--check-shell (text)
  "Ask whether to submit TEXT if a CLI would run it in a shell.
Signal an error if the answer is no."
  (when-let* ((command (gemini-companion-prompt-command text)))
    (unless (or (string-prefix-p "/" command)
                (gemini-companion-choice-y-or-n-p
                 "Prompt begins with !, so the CLI runs it in a shell; \
submit it? "))
      (user-error "Prompt not submitted"))))

;;;; Mode

(defun gemini-companion-compose--header ()
  "Return the header line of a draft: the CLI, its state, and the keys."
  (let* ((session (gemini-companion-compose--target))
         (state (and (gemini-companion-session-id session)
                     (gemini-companion-session-state session)))
         (count (gemini-companion-prompt-pending session)))
    (gemini-companion-label-header
     (cons (concat (if state
                       (gemini-companion-session-name session)
                     "Not connected")
                   (pcase state
                     ('working " is working")
                     ('waiting " is waiting for an answer"))
                   (and count (format "; %d queued" count)))
           (mapcar (lambda (keys)
                     (concat "  " (substitute-command-keys keys)))
                   `(,@(and count '("\\[gemini-companion-compose-withdraw] withdraw"))
                     "\\[gemini-companion-compose-submit] submit"
                     "@file"
                     "/command"
                     "\\[gemini-companion-compose-attach] attach"
                     "\\[gemini-companion-compose-previous] previous"
                     "\\[gemini-companion-compose-close] close"))))))

(define-minor-mode gemini-companion-compose-mode
  "Mode of a buffer for the next prompt of a CLI.
\\{gemini-companion-compose-mode-map}"
  :interactive nil
  (setq header-line-format '(:eval (gemini-companion-compose--header)))
  (add-hook 'completion-at-point-functions
            #'gemini-companion-compose--complete nil t)
  ;; By default, Emacs completes names of this category as substrings only, so TAB
  ;; would not insert the common prefix of the matching names.
  (setq-local completion-category-defaults
              (cons '(project-file (styles basic substring))
                    completion-category-defaults))
  ;; A draft, and this hook, stay when the companion mode is turned off: its text is
  ;; still saved when the buffer is killed.
  (add-hook 'kill-buffer-hook (apply-partially #'do-auto-save t t) nil t)
  (add-hook 'after-change-functions #'gemini-companion-compose--save-soon nil t)
  (add-hook 'gemini-companion-session-changed-functions
            #'gemini-companion-compose--delete-images)
  (font-lock-add-keywords
   nil '((gemini-companion-compose--search-file
          0 'gemini-companion-compose-file prepend)))
  ;; Text mode has no keywords, so it leaves Font Lock off.
  (when global-font-lock-mode
    (font-lock-mode))
  (font-lock-flush)
  (setq-local dnd-protocol-alist `(("^file:" . gemini-companion-compose--drop)
                                   ,@dnd-protocol-alist))
  (when (fboundp 'yank-media-handler)
    (yank-media-handler "image/.*" #'gemini-companion-compose--yank-image))
  (gemini-companion-compose--load-history))

(defun gemini-companion-compose--draft ()
  "Return the text of this draft; signal an error in another buffer.
Otherwise, the text of a file could be sent, replaced or killed."
  (unless gemini-companion-compose-mode
    (user-error (substitute-command-keys
                 "Not a draft; \\[gemini-companion-compose] opens one")))
  (gemini-companion-text-trim (gemini-companion-text-of-buffer)))

;;;; Life

(cl-defmethod gemini-companion-part-stop ((_part (eql 'compose)))
  "Turn off the mode of drafts in their buffers, and delete the images."
  (remove-hook 'gemini-companion-session-changed-functions
               #'gemini-companion-compose--delete-images)
  (gemini-companion-compose--delete-images)
  (cancel-function-timers #'gemini-companion-compose--save)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when gemini-companion-compose-mode
        (gemini-companion-compose--save buffer)
        (funcall major-mode)))))

;;;; Commands

(defun gemini-companion-compose-submit (&optional insert)
  "Submit the prompt; with INSERT, a prefix argument, only insert it.
If the CLI is working, the prompt is sent when its work has ended;
`gemini-companion-compose-withdraw' withdraws it."
  (interactive "P" gemini-companion-compose-mode)
  (let ((typed (gemini-companion-compose--draft))
        (session (gemini-companion-compose--target))
        (here (selected-window)))
    (when (string-empty-p typed)
      (user-error "Nothing to submit"))
    (gemini-companion-compose--check-shell typed)
    (gemini-companion-compose-deliver
     (gemini-companion-prompt-quote typed session) session insert)
    (gemini-companion-compose--remember typed)
    (erase-buffer)
    (if (eq here (selected-window))
        (gemini-companion-compose-close)
      ;; The terminal stays selected: with INSERT, the user completes the text there.
      (save-selected-window
        (gemini-companion-compose-close)))))

(defun gemini-companion-compose-close ()
  "Close this buffer, and keep its text as a draft."
  (interactive nil gemini-companion-compose-mode)
  (when (gemini-companion-compose--draft)
    (quit-windows-on (current-buffer) 'kill)))

(defun gemini-companion-compose-withdraw ()
  "Withdraw the newest prompt that is queued for a CLI.
In the buffer of a prompt, insert its text at the beginning.  Elsewhere, add
it to the kill ring; if several CLIs have queued prompts, you are asked.
Comments count as not sent again, so the text of a prompt that
`gemini-companion-send-comments' has made is not needed.  What Emacs has already
typed stays in the prompt of the CLI."
  (interactive)
  (let* ((session (if gemini-companion-compose-mode
                      (gemini-companion-compose--target)
                    (gemini-companion-session-read
                     (or (seq-filter #'gemini-companion-prompt-pending
                                     (gemini-companion-sessions))
                         (user-error "No prompt is queued")))))
         (text (gemini-companion-prompt-withdraw session)))
    (cond ((null text)
           (message "Prompt withdrawn; your comments count as not sent"))
          (gemini-companion-compose-mode
           (goto-char (point-min))
           (insert text)
           (unless (eobp)
             (save-excursion (insert "\n")))
           (message "Prompt withdrawn; %s submits it"
                    (substitute-command-keys "\\[gemini-companion-compose-submit]")))
          (t
           (gemini-companion-text-keep
            text (format "Prompt for %s withdrawn"
                         (gemini-companion-session-name session)))))))

(defun gemini-companion-compose-attach (buffer)
  "Insert the text about point in BUFFER that `gemini-companion-send' would send."
  (interactive
   (list (read-buffer "Attach what is at point in buffer: "
                      (other-buffer (current-buffer) t) t))
   gemini-companion-compose-mode)
  (let ((window (get-buffer-window buffer t)))
    (unless (bolp) (insert "\n"))
    (insert (gemini-companion-send-description
             (with-current-buffer buffer
               (save-excursion
                 (when window
                   (goto-char (window-point window)))
                 (gemini-companion-send-things)))
             (gemini-companion-compose--target))
            "\n")))

(defun gemini-companion-compose-previous (&optional n)
  "Replace the text by the previous prompt of the history, or the Nth one.
The replaced text is added to the history.  After the newest prompt, the
text is empty."
  (interactive "p" gemini-companion-compose-mode)
  (let ((text (gemini-companion-compose--draft)))
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
  (interactive "p" gemini-companion-compose-mode)
  (gemini-companion-compose-previous (- (or n 1))))

(defun gemini-companion-compose (&optional session text)
  "Compose the next prompt of a CLI in a buffer, below its terminal.
SESSION is by default the CLI of this project; if there are several, you
are asked.  TEXT is added to the draft."
  (interactive)
  (let* ((directory (gemini-companion-compose--directory))
         (sessions (gemini-companion-send-sessions directory))
         (session (or session
                      (and sessions
                           (gemini-companion-session-read sessions))))
         (terminal (gemini-companion-session-terminal session))
         (window (and terminal (get-buffer-window terminal)))
         (buffer (gemini-companion-compose--buffer
                  (file-name-as-directory
                   (or (and session (gemini-companion-session-directory session))
                       directory)))))
    (pop-to-buffer buffer
                   (if (null window)
                       '(nil (category . gemini-companion-prompt))
                     `((display-buffer-reuse-window
                        display-buffer-in-direction)
                       (category . gemini-companion-prompt)
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
