;;; gemini-companion-compose.el --- Write prompts in Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What is at point becomes a prompt: it is described by texts and references to
;; files, by a table with a function for each mode.  A reference, such as @path, is
;; read by the CLI; all else is quoted.
;;
;; A buffer for the next prompt of a CLI, in a mode for text.  Its draft is in a
;; file, to which Emacs saves automatically, until the prompt is submitted.  There
;; is one buffer for each directory in which a CLI runs.

;;; Code:

(require 'compile)
(require 'diff-mode)
(require 'dired)
(require 'dnd)
(require 'flymake)
(require 'gemini-companion-edit)
(require 'gemini-companion-install)
(require 'gemini-companion-session)
(require 'gemini-companion-prompt)
(require 'gemini-companion-cli)
(require 'gemini-companion-state)
(require 'gemini-companion-windows-at-once)
(require 'map)
(require 'project)
(require 'xref)

(declare-function flycheck-error-filename "ext:flycheck")
(declare-function flycheck-error-line "ext:flycheck")
(declare-function flycheck-error-message "ext:flycheck")
(declare-function flycheck-overlay-errors-in "ext:flycheck")
(declare-function magit-current-section "ext:magit-section")
(declare-function magit-file-at-point "ext:magit-git")
(declare-function slot-value "eieio")

;;;; What is at point

(defvar gemini-companion-send-alist
  '((dired-mode . gemini-companion-send--dired)
    (compilation-mode . gemini-companion-send--hits)
    (xref--xref-buffer-mode . gemini-companion-send--hits)
    (occur-mode . gemini-companion-send--hits)
    (flymake-diagnostics-buffer-mode . gemini-companion-send--hits)
    (flymake-project-diagnostics-mode . gemini-companion-send--hits)
    (flycheck-error-list-mode . gemini-companion-send--hits)
    (org-agenda-mode . gemini-companion-send--hits)
    (diff-mode . gemini-companion-send--diff)
    (magit-mode . gemini-companion-send--magit)
    (eshell-mode . gemini-companion-send--shell)
    (comint-mode . gemini-companion-send--shell)
    (vterm-mode . gemini-companion-send--shell)
    (eat-mode . gemini-companion-send--shell)
    (term-mode . gemini-companion-send--shell)
    (fundamental-mode . gemini-companion-send--file))
  "Alist of (MODE . FUNCTION): what `gemini-companion-send' sends.
The first element counts whose MODE is the major mode, or one that it is
derived from; `fundamental-mode' is for all modes.

FUNCTION returns a list of what is at point.  Each element is a string,
which is quoted, or a list (FILE LINES TEXT) for a reference to FILE, an
absolute file name: LINES is a number, a cons (FIRST . LAST), or nil,
and TEXT is a string from FILE or about it, or nil.")

;;;; Files

(defun gemini-companion-send--file ()
  "Return a reference to the lines of the region, the defun or the line.
With a diagnostic on the line of point, it has its message.  An image
or a PDF has no lines.  Without a file, return the region or paragraph."
  (let ((file (gemini-companion-text-visited (current-buffer)))
        messages)
    (cond ((null file)
           (gemini-companion-send--region))
          ((or (derived-mode-p 'image-mode)
               (eq 'no-conversion buffer-file-coding-system))
           (list (list file)))
          ((and (not (use-region-p))
                (setq messages (gemini-companion-send--diagnostics)))
           (list (list file (line-number-at-pos nil t)
                       (string-join messages "\n"))))
          (t
           (pcase-let ((`(,start . ,end)
                        (or (bounds-of-thing-at-point 'region)
                            (and (derived-mode-p 'prog-mode)
                                 (bounds-of-thing-at-point 'defun))
                            (cons (point) (point)))))
             ;; Nothing of the line after a newline is meant.
             (when (and (< start end) (eq (char-before end) ?\n))
               (setq end (1- end)))
             (list (list file (cons (line-number-at-pos start t)
                                    (line-number-at-pos end t)))))))))

(defun gemini-companion-send--diagnostics ()
  (let ((line (list (line-beginning-position) (line-beginning-position 2))))
    (delete-dups
     (mapcar (lambda (text) (string-trim (string-replace "\n" " " text)))
             (append
              (and flymake-mode
                   (mapcar #'flymake-diagnostic-text
                           (apply #'flymake-diagnostics line)))
              (and (bound-and-true-p flycheck-mode)
                   (delq nil (mapcar #'flycheck-error-message
                                     (apply #'flycheck-overlay-errors-in
                                            line)))))))))

;;;; What is not shared

(defun gemini-companion-send--hidden (files &optional buffer)
  "Return the first of FILES that may not be shared, or nil.
Files whose text is in BUFFER count, too, and a directory as those in it."
  (seq-find (lambda (file)
              (gemini-companion-privacy-name-hidden-p
               (if (file-directory-p file) (expand-file-name "x" file) file)))
            (append files (and buffer (gemini-companion-send--shown buffer)))))

(defun gemini-companion-send--shown (buffer)
  "Return the files whose text is in BUFFER, which may visit none."
  (with-current-buffer (if-let* ((shown (get-buffer buffer)))
                           (or (buffer-base-buffer shown) shown)
                         (user-error "Buffer %s was killed" buffer))
    (if-let* ((marker (bound-and-true-p org-src--beg-marker)))
        (gemini-companion-send--shown (marker-buffer marker))
      (ensure-list
       (or (gemini-companion-text-visited (current-buffer))
           (and gemini-companion-edit-here
                (gemini-companion-edit-file gemini-companion-edit-here))
           (and gemini-companion-edits-view
                (mapcar #'gemini-companion-edit-file (gemini-companion-edits)))
           (bound-and-true-p vc-annotate-parent-file)
           (bound-and-true-p log-view-vc-fileset)
           (bound-and-true-p magit-buffer-file-name)
           ;; The address of a page in EWW.
           (dnd-get-local-file-name (or list-buffers-directory ""))
           (gemini-companion-send--words (car-safe compilation-arguments)))))))

(defun gemini-companion-send--words (command)
  "Return the words of the shell COMMAND, any of which may be a file, or nil."
  (mapcar (lambda (word)
            (let ((file (expand-file-name word)))
              ;; Of a host that is not connected, no file is shared.
              (or (gemini-companion-names-copy file) (file-local-name file))))
          ;; A quoted word may be a command, too.  A colon may be before the name
          ;; of a file in Git; for a word with one, Tramp might connect.
          (split-string (or command "") "[][ \t\n\"'`(){}<>;|&=:]+" t)))

(defun gemini-companion-send--dired ()
  (mapcar #'list (dired-get-marked-files)))

;;;; Lists of locations

(defun gemini-companion-send--hits ()
  (pcase-let* ((`(,start . ,end) (or (bounds-of-thing-at-point 'region)
                                     (cons (point) (point))))
               (found (save-excursion
                        (goto-char start)
                        (cl-loop collect (gemini-companion-send--hit)
                                 while (and (zerop (forward-line))
                                            (< (point) end)))))
               (before (gemini-companion-send--near start -1))
               (after (gemini-companion-send--near (max start (1- end)) 1))
               ;; Lines without a location may be from the file of one of these.
               (hidden (gemini-companion-send--hidden
                        (delq nil (mapcar #'car-safe `(,before ,after ,@found)))
                        (current-buffer))))
    (or (delete-dups (seq-filter (if hidden #'consp #'identity) found))
        (when hidden
          (user-error "This may be text of %s, which is not shared"
                      (gemini-companion-name-absolute hidden))))))

(defun gemini-companion-send--compilation-p ()
  (or (eq 'compilation-mode major-mode)
      (and (derived-mode-p 'comint-mode) compilation-arguments)))

(defun gemini-companion-send--near (position step)
  "Return the first hit of a compilation from POSITION by STEP lines, 1 or -1."
  (when (gemini-companion-send--compilation-p)
    (save-excursion
      (goto-char position)
      (cl-loop repeat 200
               while (zerop (forward-line step))
               for hit = (gemini-companion-send--hit)
               when (consp hit) return hit))))

(defun gemini-companion-send--property (name)
  (when-let* ((location (text-property-not-all (line-beginning-position)
                                               (line-end-position) name nil)))
    (get-text-property location name)))

(defun gemini-companion-send--hit ()
  "Return the hit or the diagnostic on this line, or nil.
Searches have a text property on each, other lists the id of an entry."
  (let* ((line (list (line-beginning-position) (line-end-position)))
         (text (string-replace
                ;; Grep's separator is displayed as a colon.
                "\0" ":"
                (string-trim (apply #'buffer-substring-no-properties line)))))
    ;; A line that was not displayed has no hit yet.
    (apply #'font-lock-ensure line)
    (if-let* ((location (gemini-companion-send--location text)))
        (append location (list text))
      (pcase (seq-some #'gemini-companion-send--property
                       '(xref-item occur-target org-marker tabulated-list-id))
        ((and (pred xref-item-p) (app xref-item-location location))
         (if (xref-buffer-location-p location)
             (gemini-companion-send--at (xref-location-marker location) text)
           (list (expand-file-name (xref-location-group location))
                 (xref-location-line location) text)))
        ;; Emacs 28 has a marker, later versions a list of pairs of them.
        ((or (and (pred markerp) marker) `((,marker . ,_) . ,_))
         (gemini-companion-send--at marker text))
        (`(:diagnostic ,diagnostic . ,_)
         (gemini-companion-send--at (flymake-diagnostic-beg diagnostic)
                                    (flymake-diagnostic-text diagnostic)
                                    (flymake-diagnostic-buffer diagnostic)))
        ;; In results of a search, it may be from a file that is not shared.
        ('nil (and (gemini-companion-send--compilation-p)
                   (not (string-empty-p text))
                   text))
        (id (list (flycheck-error-filename id) (flycheck-error-line id)
                  (flycheck-error-message id)))))))

(defun gemini-companion-send--location (text)
  "Return (FILE LINE) of the message of a compilation on this line, TEXT.
Any number after a colon may be taken for the line of a file that does not
exist, and Emacs does not know the formats of all compilers."
  (seq-find
   (lambda (location)
     (and location
          (or (file-exists-p (car location))
              (gemini-companion-send--hidden (list (car location))))))
   (list (when-let* ((message (gemini-companion-send--property
                               'compilation-message))
                     ;; A line of Make about a directory has none.
                     (loc (compilation--message->loc message)))
           (list (apply #'expand-file-name
                        (car (compilation--loc->file-struct loc)))
                 (compilation--loc->line loc)))
         (when (and (gemini-companion-send--compilation-p)
                    (string-match "\\([^][ \t\"'(){}<>:]+\\)[:(]\\([0-9]+\\)"
                                  text))
           (list (expand-file-name (match-string 1 text))
                 (string-to-number (match-string 2 text)))))))

(defun gemini-companion-send--at (position text &optional buffer)
  "Return a reference with TEXT to POSITION, in BUFFER or that of a marker.
For a file that is not visited, Flymake has its name, and (LINE . COLUMN).
If BUFFER visits no file, return TEXT; if it was killed, nil."
  (let* ((buffer (or buffer (marker-buffer position)))
         (live (buffer-live-p buffer))
         (file (and live (or (gemini-companion-text-visited buffer)
                             (gemini-companion-send--hidden nil buffer)))))
    (cond ((stringp buffer)
           (list buffer (car position) text))
          (file
           (list file (gemini-companion-text-line buffer position) text))
          ;; A line of these may be from any file.
          ((and live (not (with-current-buffer buffer
                            (seq-some #'derived-mode-p
                                      '(compilation-mode diff-mode magit-mode
                                        occur-mode xref--xref-buffer-mode)))))
           text))))

;;;; Texts

(defun gemini-companion-send--diff ()
  (save-excursion
    (let ((end (line-end-position))
          (hunk (or (ignore-errors (diff-bounds-of-hunk))
                    (user-error "No hunk here"))))
      ;; In the header of a file, the functions of Diff mode find another one.
      (goto-char (car hunk))
      (apply #'gemini-companion-send--hunk
             ;; A binary file has no hunk, and the next one is of another file.
             (unless (re-search-backward "^\\(?:diff\\|Index:\\) "
                                         (min end (point)) t)
               (append (seq-mapcat #'gemini-companion-send--diff-files
                                   (diff-hunk-file-names))
                       ;; The names may be labels.
                       (when (re-search-backward "^diff \\(.*\\)" nil t)
                         (gemini-companion-send--words (match-string 1)))))
             hunk))))

(defun gemini-companion-send--diff-files (name)
  "Return the files that NAME, in a diff, may stand for.
It may have a prefix, and be relative to this directory or the root."
  (let* ((name (if (string-prefix-p "\"" name)
                   ;; Git quotes the bytes of other than ASCII letters.
                   (decode-coding-string (read name) 'utf-8)
                 name))
         (bare (replace-regexp-in-string "\\`[^/]+/" "" name)))
    (cond ((string-match "\\`#<buffer \\(.*\\)>\\'" name)
           (gemini-companion-send--shown (match-string 1 name)))
          ;; A command line also has options, and quoted spaces.
          ((not (string-match-p "\\`\\(?:/dev/null\\'\\|[-\\]\\)" name))
           (cl-loop for directory in (list (vc-root-dir) default-directory)
                    append (mapcar (lambda (name)
                                     (expand-file-name name directory))
                                   (if (string-match-p "\\`[[:alnum:]]/" name)
                                       (list bare name)
                                     (list name bare))))))))

(defun gemini-companion-send--magit ()
  "Return the hunk at point, with the name of its file."
  ;; The compiler would warn of the name of a slot that it does not know.
  (let ((slot (lambda (name &optional section)
                (ignore-errors
                  (slot-value (or section (magit-current-section)) name)))))
    (gemini-companion-send--hunk
     (delq nil
           (list (magit-file-at-point)
                 ;; The file may be renamed or copied.
                 (or (funcall slot 'source)
                     (funcall slot 'source (funcall slot 'parent)))))
     (funcall slot 'start) (funcall slot 'end))))

(defun gemini-companion-send--hunk (files start end)
  "Return the hunk of FILES from START to END.
It has the name of one that is hidden, or else of one that exists."
  (let ((text (string-trim (buffer-substring-no-properties start end)
                           "\n+" "\n+"))
        (files (mapcar #'expand-file-name files)))
    (list (list (or (gemini-companion-send--hidden files (current-buffer))
                    (seq-find #'file-exists-p files)
                    (car files)
                    (user-error "No hunk or file here"))
                nil
                ;; An untracked file in Magit is only its name.
                (and (string-search "\n" text)
                     (gemini-companion-send--fenced text "diff"))))))

(defun gemini-companion-send--shell ()
  "Return the region, or the last command and the end of its output."
  (cond
   ((gemini-companion-send--compilation-p) (gemini-companion-send--hits))
   ((use-region-p) (gemini-companion-send--region))
   (t
    (save-excursion
      (if-let* ((start (or (bound-and-true-p eshell-last-input-start)
                           (bound-and-true-p comint-last-input-start))))
          (goto-char start)
        ;; In a terminal that is suspended, point may be anywhere.
        (unless (gemini-companion-cli-takes-keys-p)
          (goto-char (point-max))
          (skip-chars-backward " \t\n"))
        (let ((prompt (replace-regexp-in-string
                       ;; A command may be half typed.
                       "\\`\\([^#$%>]*[#$%>]\\) .*\\| +\\'" "\\1"
                       (buffer-substring-no-properties
                        (line-beginning-position) (point)))))
          (forward-line 0)
          ;; While a command runs, there may be none.
          (or (re-search-backward (concat (if (string-empty-p prompt) "\\`" "^")
                                          (regexp-quote prompt))
                                  nil t)
              ;; It may have the directory or the time.
              (re-search-backward (format "^[^#$%%>\n]*%s "
                                          (regexp-quote (substring prompt -1)))
                                  nil 'move))))
      (let* ((lines (split-string (string-trim (buffer-substring-no-properties
                                                (line-beginning-position)
                                                (point-max)))
                                  "\n"))
             (left (- (length lines) 201)))
        (when (< 0 left)
          (setcdr lines (cons (format "[%d lines left out]" left)
                              (last lines 200))))
        (list (gemini-companion-send--fenced (string-join lines "\n"))))))))

(defun gemini-companion-send--region ()
  (let ((text (substring-no-properties
               (or (if (use-region-p)
                       (funcall region-extract-function nil) ; or a rectangle
                     (thing-at-point 'paragraph))
                   ""))))
    (when (string-blank-p text)
      (user-error "Nothing here; select a region"))
    (list (if-let* ((file (gemini-companion-send--hidden nil (current-buffer))))
              (list file)
            (format "From %s:\n%s" (buffer-name)
                    (gemini-companion-send--fenced
                     text
                     (when (derived-mode-p 'prog-mode)
                       (string-remove-suffix "-mode"
                                             (symbol-name major-mode)))))))))

(defun gemini-companion-send--fenced (text &optional language)
  (let ((fence "```"))
    (while (string-search fence text) (setq fence (concat fence "`")))
    (concat fence language "\n" (string-trim text "\n+" "\n+") "\n" fence)))

;;;; Prompt

(defun gemini-companion-send--things ()
  "Return what is at point, as `gemini-companion-send-alist' has it."
  (or (funcall (assoc-default nil gemini-companion-send-alist
                              (lambda (mode _)
                                (or (eq mode 'fundamental-mode)
                                    (derived-mode-p mode)))))
      (user-error "Nothing here to send")))

(defun gemini-companion-send--sessions (file)
  "Return the sessions in whose directory, or on whose host, FILE is."
  (seq-filter (lambda (session)
                (car (gemini-companion-send--names-for file session)))
              (gemini-companion-sessions)))

(defun gemini-companion-send--names-for (file session)
  "Return (NAME . LOCAL) for FILE, or nil if it is not where SESSION is.
NAME is its name in the directory or on the host of SESSION, or nil, and
LOCAL the name on this machine, in its true directory; it may be a link."
  (pcase-let* (((map :remote :directory) session)
               (`(,host . ,there) (gemini-companion-names-remote file remote)))
    (cond (remote
           (when (equal remote host)
             (cons there (gemini-companion-names-copy (concat remote there)))))
          ((not (file-remote-p file))
           (let* ((file (expand-file-name file))
                  (local (concat (file-truename (file-name-directory file))
                                 (file-name-nondirectory file)))
                  (root (and directory (file-truename directory))))
             (cons (and root
                        (gemini-companion-text-in-directory-p
                         (file-name-as-directory local) root)
                        (file-relative-name local root))
                   local))))))

(defun gemini-companion-send--description (things session)
  "Return a text for the prompt of SESSION that describes THINGS.
They are as `gemini-companion-send--things' returns them."
  (let* ((names (mapcar (lambda (file)
                          (cons file (gemini-companion-send--name file session)))
                        (delete-dups (delq nil (mapcar #'car-safe things)))))
         (text (string-join
                (append (mapcar
                         (lambda (thing)
                           (if (stringp thing)
                               thing
                             (apply #'gemini-companion-send--reference
                                    (cdr (assoc (car thing) names))
                                    (cdr thing))))
                         things)
                        (gemini-companion-send--texts (mapcar #'cdr names)))
                "\n"))
         (text (gemini-companion-prompt-quote text session t)))
    ;; It must not be a command of the CLI, as the name of a file can be.
    (concat (and (gemini-companion-prompt-command text) "About ") text)))

(defun gemini-companion-send--reference (name &optional lines text)
  "Return a reference to NAME, a value of `gemini-companion-send--name'.
It has LINES, and TEXT if the file is shared."
  (pcase-let ((`(,first . ,last) (if (consp lines) lines (cons lines lines))))
    (concat (plist-get name :name)
            (cond ((null lines) "")
                  ((eql first last) (format " (line %d)" first))
                  (t (format " (lines %d-%d)" first last)))
            (and text (not (plist-get name :hidden))
                 (concat (if (string-search "\n" text) ":\n" ": ")
                         text)))))

(defun gemini-companion-send--name (file session)
  "Return how FILE is named in a prompt for SESSION, a plist.
`:name' is a reference, or the name alone; `:hidden' is non-nil if FILE is
not shared; `:unread' is non-nil if the CLI would read FILE, but reads it in
no form of its name; and `:local' is then its name here, or that of the copy
of a remote file, if there is one.
Ask about a file that is not shared, or outside the directory of the CLI.
A file that does not exist is only named, and so is a directory, as the CLI
would read all files in it."
  ;; It would name another file.
  (when (string-match-p "[\0-\37\177\u0080-\u009f]" file)
    (user-error "A prompt cannot name a file with a control character"))
  (pcase-let* ((`(,there . ,local)
                (or (gemini-companion-send--names-for file session)
                    (user-error "%s is not a file on the machine of %s"
                                (gemini-companion-name-absolute file)
                                (gemini-companion-session-name session))))
               (name (or there local))
               (hidden (gemini-companion-send--hidden (list file local))))
    (unless (or (and there (not hidden))
                (y-or-n-p (format (if hidden
                                      "%s is not shared; name it anyway? "
                                    "%s is outside the project of the CLI; \
name it anyway? ")
                                  (gemini-companion-name-absolute local))))
      (user-error "Nothing was sent"))
    (if (not (or (plist-get session :remote) (file-regular-p local)))
        (list :name name :hidden hidden)
      (if-let* ((reference (gemini-companion-prompt-reference
                            name (plist-get session :client))))
          (list :name reference :hidden hidden)
        (list :name name :hidden hidden
              :unread t :local local)))))

(defconst gemini-companion-send--longest 30000
  "Number of bytes up to which texts are sent in place of references.")

(defun gemini-companion-send--texts (names)
  "Return texts in place of references, for those of NAMES that are not read.
NAMES are values of `gemini-companion-send--name'.  A text is that of the
file, as the CLI would have read it, or else a sentence that makes the
model read it: if it is not shared, long, or not a text in UTF-8."
  (let ((left gemini-companion-send--longest))
    (mapcan
     (pcase-lambda ((map :name :hidden :unread :local))
       (when unread
         (let ((text (and local
                          (not hidden)
                          (<= (or (file-attribute-size (file-attributes local))
                                  (1+ left))
                              left)
                          (gemini-companion-send--text-of local))))
           (cl-decf left (length text))
           (list (if text
                     (format "The text of %s:\n%s" name
                             (gemini-companion-send--fenced
                              text (file-name-extension name)))
                   (format "Read the file %s first." name))))))
     names)))

(defun gemini-companion-send--text-of (file)
  "Return the text of FILE, or nil if it has none in UTF-8."
  (when-let* ((text (ignore-error file-error
                      (gemini-companion-text-read file))))
    (unless (or (string-search "\0" text)
                (memq 'eight-bit (find-charset-string text)))
      text)))

;;;###autoload
(defun gemini-companion-send (&optional compose)
  "Insert what is at point into the prompt of a CLI, and go there.
`gemini-companion-send-alist' defines what that is in each mode: in
a file, a reference to the lines of the region, the defun or the line;
elsewhere the marked files, the hit, the hunk, the last command and its
output, or the region.  The CLI is the one whose directory has the file,
or else you are asked.  If it runs outside of this Emacs, add the text
to the kill ring.

With COMPOSE, a prefix argument, insert it into the buffer of
\\[gemini-companion-compose], where you can write more."
  (interactive "P")
  (let* ((things (gemini-companion-send--things))
         (session (gemini-companion-session-read
                   (or (gemini-companion-send--sessions
                        (or (seq-some #'car-safe things) default-directory))
                       (gemini-companion-sessions))))
         (text (gemini-companion-send--description things session))
         (unsaved (and buffer-file-name (buffer-modified-p))))
    (if compose
        (gemini-companion-compose session text)
      (message "%s%s"
               (gemini-companion-prompt-insert
                (concat text (if (string-search "\n" text) "\n" " ")) session)
               (if unsaved "; save the buffer first" "")))))

;;;; State

(defvar gemini-companion-compose-history nil
  "Submitted prompts, the last first.")

(defvar-local gemini-companion-compose--session nil
  "The session for the prompt, which may have ended, or nil.")

(defvar-local gemini-companion-compose--files nil
  "Cons of a client and the files for completion, or nil before they are needed.
See `gemini-companion-compose--file-names'.")

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
Add the text to the history.  After the latest prompt, the text is empty."
  (interactive "p")
  (let ((text (gemini-companion-compose--typed)))
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
  "Complete the name of a file after @, or of a command after / at the start."
  (let ((end (point)))
    (save-excursion
      ;; A quoted space is part of a name, before which @ needs no space.
      (re-search-backward "[^\\][ \t]\\|^")
      (goto-char (match-end 0))
      (cond ((search-forward "@" end t)
             (list (point) end (gemini-companion-compose--file-names)
                   :exit-function #'gemini-companion-compose--completed
                   ;; Completion that pops up by itself need not wait.
                   :company-prefix-length t :exclusive 'no))
            ((and (bobp) (< (point) end) (eq ?/ (char-after)))
             (let ((commands (gemini-companion-compose--command-names)))
               (list (1+ (point)) end commands :exclusive 'no
                     :annotation-function
                     (lambda (name) (cdr (assoc name commands))))))))))

(defun gemini-companion-compose--file-names ()
  "Return the files of the project in the form for the CLI, after @.
The value is an alist of (REFERENCE . NAME), where REFERENCE has no @; it
is NAME itself for a file that the CLI reads in no form."
  (let ((client (plist-get (gemini-companion-compose--target) :client)))
    (unless (equal client (car gemini-companion-compose--files))
      (setq gemini-companion-compose--files
            (cons client
                  (when-let* ((default-directory (file-truename default-directory))
                              (project (project-current)))
                    (mapcar
                     (lambda (file)
                       (let* ((name (string-remove-prefix default-directory file))
                              (reference (gemini-companion-prompt-reference
                                          name client)))
                         (cons (if reference (substring reference 1) name)
                               name)))
                     (project-files project (list default-directory)))))))
    (cdr gemini-companion-compose--files)))

(defun gemini-companion-compose--completed (text status)
  "Replace the completed TEXT after @ if the CLI would not read it.
What `gemini-companion-send' sends for the file takes its place.  STATUS
is as for `:exit-function' of `completion-extra-properties'."
  (let ((name (cdr (assoc text (cdr gemini-companion-compose--files))))
        (session (gemini-companion-compose--target))
        (start (- (point) (length text) 1)))
    (when (and name
               (eq status 'finished)
               (not (gemini-companion-prompt-reference
                     name (plist-get session :client)))
               (<= (point-min) start)
               (equal (concat "@" text) (buffer-substring start (point))))
      (let ((description (gemini-companion-send--description
                          (list (list (expand-file-name name))) session)))
        (delete-region start (point))
        (insert description)))))

(defun gemini-companion-compose--command-names ()
  (pcase-let* ((client (plist-get (gemini-companion-compose--target) :client))
               (`(,project ,user) (mapcar #'file-name-directory
                                          (gemini-companion-remote-settings client)))
               (host (file-remote-p default-directory))
               (home (if host
                         (concat host user)
                       (gemini-companion-clients-home client)))
               (title (concat "  " (gemini-companion-clients-title client))))
    (append (seq-mapcat #'gemini-companion-compose--commands-in
                        (list home project))
            (mapcar (lambda (name) (cons name title))
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
  (let* ((client (plist-get (gemini-companion-compose--target) :client))
         (name (gemini-companion-clients-get client :images))
         (home (gemini-companion-clients-home client))
         (project (gemini-companion-settings-get
                   (expand-file-name "projects.json" home)
                   (list "projects" (directory-file-name
                                     (file-truename default-directory))))))
    (when (and name (or project (not (string-search "%s" name))))
      (expand-file-name (format name project) home))))

(defun gemini-companion-compose--yank-image (type data)
  (when-let* ((name (or (plist-get (gemini-companion-compose--target) :remote)
                        (file-remote-p default-directory))))
    (user-error "Image is not on %s; copy it there and type its name after @"
                (gemini-companion-names-title name)))
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
                 file (plist-get (gemini-companion-compose--target) :client))
                (format "Read the image %s" file))
            " ")))

(defun gemini-companion-compose--drop (uri _action)
  (let ((file (or (dnd-get-local-file-name uri t)
                  (user-error "Not a file on this machine: %s" uri))))
    (if (and (string-match-p (image-file-name-regexp) file)
             (not (file-in-directory-p file default-directory))
             (not (gemini-companion-privacy-name-hidden-p file)))
        (gemini-companion-compose--yank-image
         (intern (concat "image/" (file-name-extension file)))
         (gemini-companion-text-bytes file))
      (unless (bolp) (just-one-space))
      (insert (gemini-companion-send--description
               (list (list file)) (gemini-companion-compose--target))
              " ")))
  'private)

(defun gemini-companion-compose--delete-images (&rest changed)
  "Delete the images, but if sessions have CHANGED only those of ended ones."
  (pcase-dolist (`(,file . ,session) gemini-companion-compose--images)
    (unless (and changed (or (null session)
                             (gemini-companion-session-connected-p session)))
      (delete-file file)
      (setf (alist-get file gemini-companion-compose--images nil t #'equal) nil))))

;;;; Commands

(defun gemini-companion-compose--target ()
  "Return the session of this buffer, or another one in its directory.
Without one, return what is known of one to start; it has no `:id'."
  (let ((session gemini-companion-compose--session))
    (cond ((gemini-companion-session-connected-p session) session)
          ((car (gemini-companion-send--sessions default-directory)))
          (t (list :directory default-directory
                   :client (or (plist-get session :client)
                               gemini-companion-run-client
                               (caar gemini-companion-clients)))))))

(defun gemini-companion-compose-submit (&optional insert)
  "Submit the prompt; with INSERT, a prefix argument, only insert it.
While the CLI works, it queues the prompt."
  (interactive "P")
  (let ((typed (gemini-companion-compose--typed))
        (session (gemini-companion-compose--target)))
    (when (string-empty-p typed)
      (user-error "Nothing to submit"))
    (gemini-companion-compose--check-command typed)
    (let ((text (gemini-companion-prompt-quote typed session))
          (name (gemini-companion-session-name session)))
      (cond ((null (plist-get session :id))
             (gemini-companion-compose--start text))
            ((eq 'waiting (gemini-companion-session-state session))
             (user-error "%s waits for an answer; answer it first" name))
            ((or insert (not (gemini-companion-cli-process session)))
             (message "%s" (save-current-buffer
                             (gemini-companion-prompt-insert text session))))
            (t
             (gemini-companion-prompt-submit
              text (lambda () session) 30
              (format "%s did not take the prompt" name)))))
    (gemini-companion-compose--remember typed)
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
     text (lambda () (car (gemini-companion-send--sessions directory)))
     300 "No CLI was ready")))

(defun gemini-companion-compose-close ()
  "Close this buffer, and keep its text as a draft."
  (interactive)
  (when (gemini-companion-compose--typed)
    (gemini-companion-windows-at-once
      (quit-windows-on (current-buffer) 'kill))))

(defun gemini-companion-compose-attach (buffer)
  "Insert what `gemini-companion-send' would send from BUFFER."
  (interactive
   (list (read-buffer "Attach what is at point in buffer: "
                      (other-buffer (current-buffer) t) t)))
  (let ((window (get-buffer-window buffer t)))
    (unless (bolp) (insert "\n"))
    (insert (gemini-companion-send--description
             (with-current-buffer buffer
               (save-excursion
                 (when window
                   (goto-char (window-point window)))
                 (gemini-companion-send--things)))
             (gemini-companion-compose--target))
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
  :interactive nil
  (setq header-line-format '(:eval (gemini-companion-compose--header)))
  (add-hook 'completion-at-point-functions
            #'gemini-companion-compose--complete nil t)
  ;; Emacs does so by itself when it exits.  A change of the mode keeps it.
  (add-hook 'kill-buffer-hook (lambda () (do-auto-save t t)) nil t)
  (add-hook 'gemini-companion-session-changed-functions
            #'gemini-companion-compose--delete-images)
  (setq-local dnd-protocol-alist `(("^file:" . gemini-companion-compose--drop)
                                   ,@dnd-protocol-alist))
  (when (fboundp 'yank-media-handler)
    (yank-media-handler "image/.*" #'gemini-companion-compose--yank-image))
  (unless gemini-companion-compose-history
    (setq gemini-companion-compose-history
          (ignore-errors (read (gemini-companion-text-read
                                (gemini-companion-compose--file "history")))))))

(defun gemini-companion-compose--typed ()
  "Return the prompt in this buffer; signal an error if it is none.
The text of a file must not be sent, replaced or killed."
  (unless gemini-companion-compose-mode
    (user-error (substitute-command-keys
                 "No prompt in this buffer; \\[gemini-companion-compose] opens one")))
  (string-trim (gemini-companion-text-of-buffer)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'compose)))
  "Leave drafts in their major mode only, and delete the images."
  (remove-hook 'gemini-companion-session-changed-functions
               #'gemini-companion-compose--delete-images)
  (gemini-companion-compose--delete-images)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when gemini-companion-compose-mode
        (funcall major-mode)))))

(defun gemini-companion-compose--header ()
  (let* ((session (gemini-companion-compose--target))
         (state (and (plist-get session :id)
                     (gemini-companion-session-state session))))
    (gemini-companion-name-header
     `((nil ,(if state (gemini-companion-session-name session) ""))
       (1 ,(pcase state
             ('nil "Not connected")
             ('working " works; prompt is queued")
             ('waiting " waits for an answer")
             (_ "")))
       ,@(mapcar (pcase-lambda (`(,rank ,keys))
                   (list rank (concat "  " (substitute-command-keys keys))))
                 '((2 "\\[gemini-companion-compose-submit] submit")
                   (5 "\\[gemini-companion-compose-previous] previous")
                   (4 "\\[gemini-companion-compose-attach] attach")
                   (3 "@file")
                   (3 "/command")
                   (6 "\\[gemini-companion-compose-close] close")))))))

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

(defun gemini-companion-compose--directory ()
  "Return the root of the project here, or else this directory."
  (pcase (and (or gemini-companion-remote-terminal
                  (file-remote-p default-directory))
              (gemini-companion-remote-here))
    ;; Tramp would ask the host for the project.
    (`(,host ,_ ,(and root (pred stringp))) (concat host root))
    (_ (file-truename (if-let* ((project (project-current)))
                          (project-root project)
                        default-directory)))))

;;;###autoload
(defun gemini-companion-compose (&optional session text)
  "Write the next prompt of a CLI in a buffer, below its terminal.
SESSION is by default the CLI of this project.  TEXT is added to the
draft."
  (interactive)
  (let* ((directory (gemini-companion-compose--directory))
         (sessions (gemini-companion-send--sessions directory))
         (session (or session
                      (and sessions
                           (gemini-companion-session-read sessions))))
         (terminal (gemini-companion-session-terminal session))
         (window (and terminal (get-buffer-window terminal)))
         (buffer (gemini-companion-compose--buffer
                  (file-name-as-directory
                   (or (plist-get session :directory) directory)))))
    (gemini-companion-windows-at-once
      (pop-to-buffer buffer
                     (and window `((display-buffer-reuse-window
                                    display-buffer-in-direction)
                                   (direction . below)
                                   (window . ,window)
                                   (window-height
                                    . ,(max 5 (/ (window-height window) 3)))))))
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
