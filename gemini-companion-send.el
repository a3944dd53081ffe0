;;; gemini-companion-send.el --- Put what is at point into a prompt  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; \[gemini-companion-send] inserts a reference to what is at point, or its text,
;; into the prompt of a CLI.

;;; Code:

(require 'compile)
(require 'diff-mode)
(require 'dired)
(require 'dnd)
(require 'flymake)
(require 'gemini-companion-edit)
(require 'gemini-companion-prompt)
(require 'gemini-companion-session)
(require 'gemini-companion-terminal)
(require 'map)
(require 'xref)

(declare-function flycheck-error-filename "ext:flycheck")
(declare-function flycheck-error-line "ext:flycheck")
(declare-function flycheck-error-message "ext:flycheck")
(declare-function flycheck-overlay-errors-in "ext:flycheck")
(declare-function magit-current-section "ext:magit-section")
(declare-function magit-file-at-point "ext:magit-git")
(declare-function slot-value "eieio")
(declare-function gemini-companion-compose "gemini-companion-compose")

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
  "Return the messages of Flymake and Flycheck about this line, strings."
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
              ;; No file of a host that is not connected is shared.
              (or (gemini-companion-names-copy file) (file-local-name file))))
          ;; A quoted word may be a command, too.  A colon may be before the name
          ;; of a file in Git; for a word with one, Tramp might connect.
          (split-string (or command "") "[][ \t\n\"'`(){}<>;|&=:]+" t)))

(defun gemini-companion-send--dired ()
  (mapcar #'list (dired-get-marked-files)))

(defun gemini-companion-send--hits ()
  "Return the locations at point, or in the region, of a buffer such as grep's.
An element is (FILE LINE), or a line of text that has no location."
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
                      (gemini-companion-names-absolute hidden))))))

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

(defun gemini-companion-send--diff ()
  "Return the hunk of a diff at point, with the names of its file."
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
        (unless (gemini-companion-terminal-takes-keys-p)
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
              ;; A prompt of a shell may have the directory or the time.
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
  "Return the text of the region, or of the paragraph at point, in a list.
The text of a file that is not shared is not given out: the list then has
that file."
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

(defun gemini-companion-send-things ()
  "Return what is at point, as `gemini-companion-send-alist' has it."
  (or (funcall (assoc-default nil gemini-companion-send-alist
                              (lambda (mode _)
                                (or (eq mode 'fundamental-mode)
                                    (derived-mode-p mode)))))
      (user-error "Nothing here to send")))

(defun gemini-companion-send-sessions (file)
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

(defun gemini-companion-send-description (things session)
  "Return a text for the prompt of SESSION that describes THINGS.
They are as `gemini-companion-send-things' returns them."
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
    ;; A name such as /help would be a command of the CLI.
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
  ;; A control character is dropped, and the name would be that of another file.
  (when (string-match-p "[\0-\37\177\u0080-\u009f]" file)
    (user-error "A prompt cannot name a file with a control character"))
  (pcase-let* ((`(,there . ,local)
                (or (gemini-companion-send--names-for file session)
                    (user-error "%s is not a file on the machine of %s"
                                (gemini-companion-names-absolute file)
                                (gemini-companion-session-name session))))
               (name (or there local))
               (hidden (gemini-companion-send--hidden (list file local))))
    (unless (or (and there (not hidden))
                (y-or-n-p (format (if hidden
                                      "%s is not shared; name it anyway? "
                                    "%s is outside the project of the CLI; \
name it anyway? ")
                                  (gemini-companion-names-absolute local))))
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
  (let* ((things (gemini-companion-send-things))
         (session (gemini-companion-session-read
                   (or (gemini-companion-send-sessions
                        (or (seq-some #'car-safe things) default-directory))
                       (gemini-companion-sessions))))
         (text (gemini-companion-send-description things session))
         (unsaved (and buffer-file-name (buffer-modified-p))))
    (if compose
        (gemini-companion-compose session text)
      (message "%s%s"
               (gemini-companion-prompt-insert
                (concat text (if (string-search "\n" text) "\n" " ")) session)
               (if unsaved "; save the buffer first" "")))))

(provide 'gemini-companion-send)
;;; gemini-companion-send.el ends here
