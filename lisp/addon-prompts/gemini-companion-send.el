;;; gemini-companion-send.el --- Put what is at point into a prompt  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Insert a description of the text at point into the prompt of a CLI: a reference to
;; a file, which the CLI reads, or a text.  A table has a function for each mode that
;; returns *things*, structs that describe the text at point; another function formats
;; them for a CLI.
;;
;; Many buffers have text of files that are not shared: search results, hunks, output
;; of compilations, versions in Git.  A thing from such a buffer names the file from
;; which its text may come.  Its text is sent only if that file is shared.

;;; Code:

(require 'cl-lib)
(require 'compile)
(require 'diff-mode)
(require 'dired)
(require 'dnd)
(require 'flymake)
(require 'gemini-companion-choice)
(require 'gemini-companion-edit)
(require 'gemini-companion-names)
(require 'gemini-companion-prompt)
(require 'gemini-companion-session)
(require 'gemini-companion-terminal)
(require 'xref)

(declare-function flycheck-error-filename "ext:flycheck")
(declare-function flycheck-error-line "ext:flycheck")
(declare-function flycheck-error-message "ext:flycheck")
(declare-function flycheck-overlay-errors-in "ext:flycheck")
(declare-function magit-current-section "ext:magit-section")
(declare-function magit-file-at-point "ext:magit-git")
(declare-function slot-value "eieio")
(declare-function gemini-companion-compose "gemini-companion-compose")

;;;; State

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
The first element applies whose MODE is the major mode or a parent of it;
`fundamental-mode' applies in all modes.

FUNCTION returns a list that describes the text at point.  Each element is a
string, which is quoted, or a list (FILE LINES TEXT) for a reference to FILE, an
absolute file name: LINES is a number, a cons (FIRST . LAST), or nil,
and TEXT is a string from FILE or about it, or nil.")

;;;; Files

(defun gemini-companion-send--file ()
  "Return a reference to the lines of the region, the defun or the line.
If the line of point has a diagnostic, the reference has its message.  For
an image or a PDF, it has no lines.  Without a file, return the text of the
region or the paragraph."
  (let ((file (gemini-companion-text-visited (current-buffer)))
        (messages (and (not (use-region-p))
                       (gemini-companion-send--diagnostics))))
    (cond ((null file)
           (gemini-companion-send--region))
          ((or (derived-mode-p 'image-mode)
               (eq 'no-conversion buffer-file-coding-system))
           (list (list file)))
          (messages
           (list (list file (line-number-at-pos nil t)
                       (string-join messages "\n"))))
          (t
           (list (list file (gemini-companion-send--lines)))))))

(defun gemini-companion-send--lines ()
  "Return the lines of the region, the defun or point, a cons (FIRST . LAST)."
  (pcase-let ((`(,start . ,end)
               (or (bounds-of-thing-at-point 'region)
                   (and (derived-mode-p 'prog-mode)
                        (bounds-of-thing-at-point 'defun))
                   (cons (point) (point)))))
    ;; A region of whole lines ends at the beginning of the next line.
    (when (and (< start end) (eq (char-before end) ?\n))
      (setq end (1- end)))
    (cons (line-number-at-pos start t) (line-number-at-pos end t))))

(defun gemini-companion-send--diagnostics ()
  "Return the messages of Flymake and Flycheck about this line, strings."
  (let ((line (list (line-beginning-position) (line-beginning-position 2))))
    (delete-dups
     (mapcar (lambda (text)
               (gemini-companion-text-trim (string-replace "\n" " " text)))
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
  "Return the first of FILES that must not be shared, or nil.
Of a directory, check whether a file in it may be shared.  If BUFFER is
non-nil, also check the files whose text BUFFER may have."
  (seq-find (lambda (file)
              (gemini-companion-privacy-name-hidden-p
               (if (file-directory-p file) (expand-file-name "x" file) file)))
            (append files (and buffer (gemini-companion-send--sources buffer)))))

(defun gemini-companion-send--sources (buffer)
  "Return the files whose text is, or may be, in BUFFER, a list.
BUFFER, a buffer or its name, need not visit them: it may show edits of
CLIs, a version or the history of a file, a web page, a block of an Org
file or the output of a command.  Signal an error if it was killed."
  (with-current-buffer (if-let* ((shown (get-buffer buffer)))
                           (or (buffer-base-buffer shown) shown)
                         (user-error "Buffer %s was killed" buffer))
    (if-let* ((marker (bound-and-true-p org-src--beg-marker)))
        (gemini-companion-send--sources (marker-buffer marker))
      (ensure-list
       (or (gemini-companion-text-visited (current-buffer))
           (and gemini-companion-edit-here
                (gemini-companion-edit-file gemini-companion-edit-here))
           (and gemini-companion-edits-view
                (mapcar #'gemini-companion-edit-file (gemini-companion-edits)))
           (bound-and-true-p vc-annotate-parent-file)
           (bound-and-true-p log-view-vc-fileset)
           (bound-and-true-p magit-buffer-file-name)
           ;; EWW has the address of its page there.
           (dnd-get-local-file-name (or list-buffers-directory ""))
           (gemini-companion-send--words (car-safe compilation-arguments)))))))

(defun gemini-companion-send--source (buffer)
  "Return the file of BUFFER, or nil.
It visits that file, or has text of that hidden file."
  (or (gemini-companion-text-visited buffer)
      (gemini-companion-send--hidden nil buffer)))

(defun gemini-companion-send--words (command)
  "Return the words of the shell COMMAND, any of which may be a file, or nil."
  (seq-mapcat
   (lambda (word)
     (mapcar (lambda (file)
               ;; No file of a host that is not connected is shared.
               (or (gemini-companion-names-copy file) (file-local-name file)))
             ;; The word may have been quoted.
             (seq-uniq (list (expand-file-name word)
                             (gemini-companion-names-in default-directory word)))))
   ;; A quoted word may be a command with file names.  In Git, a colon
   ;; precedes the name of a file; a word with a colon could make Tramp
   ;; connect.
   (split-string (or command "") "[][ \t\n\"'`(){}<>;|&=:]+" t)))

;;;; Lists of files and hits

(defun gemini-companion-send--dired ()
  "Return the marked files, or the file at point."
  (mapcar #'list (dired-get-marked-files)))

(defun gemini-companion-send--hits ()
  "Return the hits on the lines of the region, or on this line.
An element is (FILE LINE TEXT), or a line of text that has no location.
A line of text is omitted if it may come from a file that is not shared:
the file of a hit here or nearby, or a file whose text the buffer has.
Signal an error if nothing else is here."
  (pcase-let* ((`(,start . ,end) (or (bounds-of-thing-at-point 'region)
                                     (cons (point) (point))))
               (hits (gemini-companion-send--hits-between start end))
               (nearby (list (gemini-companion-send--near start -1)
                             (gemini-companion-send--near
                              (max start (1- end)) 1)))
               (files (delq nil (mapcar #'car-safe (append nearby hits))))
               (hidden (gemini-companion-send--hidden files (current-buffer)))
               (shared (delete-dups
                        (if hidden (seq-filter #'consp hits) hits))))
    (when (and hidden (null shared))
      (user-error "This may be text of %s, which is not shared"
                  (gemini-companion-names-absolute hidden)))
    shared))

(defun gemini-companion-send--hits-between (start end)
  "Return the values of `gemini-companion-send--hit' from START to END.
Lines without a hit are omitted."
  (save-excursion
    (goto-char start)
    (let ((hits (list (gemini-companion-send--hit))))
      (while (and (zerop (forward-line)) (< (point) end))
        (push (gemini-companion-send--hit) hits))
      (delq nil (nreverse hits)))))

(defun gemini-companion-send--compilation-p ()
  "Return non-nil if the buffer has the output of a command of Compile.
In Grep mode and similar modes, every line is a hit."
  (or (memq major-mode '(compilation-mode gemini-companion-check-mode))
      (and (derived-mode-p 'comint-mode) compilation-arguments)))

(defun gemini-companion-send--near (position step)
  "Return the first hit of a compilation from POSITION by STEP lines, 1 or -1.
Return nil if there is none within 200 lines."
  (when (gemini-companion-send--compilation-p)
    (save-excursion
      (goto-char position)
      (cl-loop repeat 200
               while (zerop (forward-line step))
               for hit = (gemini-companion-send--hit)
               when (consp hit) return hit))))

(defun gemini-companion-send--property (name)
  "Return the first value of the text property NAME on this line, or nil."
  (when-let* ((location (text-property-not-all (line-beginning-position)
                                               (line-end-position) name nil)))
    (get-text-property location name)))

(defun gemini-companion-send--hit ()
  "Return the hit or the diagnostic on this line, or nil.
The value is (FILE LINE TEXT) or, for a line of a compilation or of a
buffer without a file, its text.  Search results have a text property on
each hit, other lists have an entry ID."
  (let* ((bol (line-beginning-position))
         (eol (line-end-position))
         (text (string-replace
                ;; Grep's separator is displayed as a colon.
                "\0" ":" (gemini-companion-text-trim
                          (buffer-substring-no-properties bol eol)))))
    ;; A line that was not displayed has no property of a hit yet.
    (font-lock-ensure bol eol)
    (if-let* ((location (gemini-companion-send--location text)))
        (append location (list text))
      (pcase (seq-some #'gemini-companion-send--property
                       '(xref-item occur-target org-marker tabulated-list-id))
        ((and (pred xref-item-p) item)
         (gemini-companion-send--xref (xref-item-location item) text))
        ;; An occurrence has a marker in Emacs 28, and a list of pairs of markers
        ;; in later versions.
        ((or (and (pred markerp) marker) `((,marker . ,_) . ,_))
         (gemini-companion-send--at marker text))
        (`(:diagnostic ,diagnostic . ,_)
         (gemini-companion-send--at (flymake-diagnostic-beg diagnostic)
                                    (flymake-diagnostic-text diagnostic)
                                    (flymake-diagnostic-buffer diagnostic)))
        ('nil
         ;; A line of the results of a search may be from a file that is not
         ;; shared.
         (and (gemini-companion-send--compilation-p)
              (not (string-empty-p text))
              text))
        (id (list (flycheck-error-filename id) (flycheck-error-line id)
                  (flycheck-error-message id)))))))

(defun gemini-companion-send--xref (location text)
  "Return the hit at LOCATION of Xref, on a line with TEXT."
  (if (xref-buffer-location-p location)
      (gemini-companion-send--at (xref-location-marker location) text)
    (list (expand-file-name (xref-location-group location))
          (xref-location-line location)
          text)))

(defun gemini-companion-send--location (text)
  "Return (FILE LINE) of the message of a compilation on this line, or nil.
TEXT is the line.  Ignore a FILE that does not exist, since any number after
a colon may look like a line, unless that FILE must not be shared."
  (seq-find (pcase-lambda (`(,file . ,_))
              (or (file-exists-p file)
                  (gemini-companion-send--hidden (list file))))
            (delq nil (list (gemini-companion-send--message-location)
                            (gemini-companion-send--text-location text)))))

(defun gemini-companion-send--message-location ()
  "Return the (FILE LINE) that Compile has found on this line, or nil."
  (when-let* ((message (gemini-companion-send--property 'compilation-message))
              ;; A line of Make about a directory has no location.
              (location (compilation--message->loc message)))
    (list (pcase-let ((`(,name ,directory)
                       (car (compilation--loc->file-struct location))))
            (gemini-companion-names-in (expand-file-name (or directory ""))
                                       name))
          (compilation--loc->line location))))

(defun gemini-companion-send--text-location (text)
  "Return (FILE LINE) in TEXT, a line of a compilation, or nil.
Emacs does not know the formats of all compilers."
  (when (and (gemini-companion-send--compilation-p)
             (string-match "[^][ \t\"'(){}<>:][:(]\\([0-9]+\\)" text))
    (let* ((line (string-to-number (match-string 1 text)))
           (end (1+ (match-beginning 0)))
           (beg (1- end)))
      ;; A regexp that begins with the name would be tried at each letter of it.
      (while (and (< 0 beg)
                  (not (seq-position "][ \t\"'(){}<>:" (aref text (1- beg)))))
        (setq beg (1- beg)))
      (list (gemini-companion-names-in default-directory (substring text beg end))
            line))))

(defun gemini-companion-send--at (position text &optional buffer)
  "Return a reference with TEXT to POSITION of BUFFER: (FILE LINE TEXT).
If BUFFER is nil, POSITION is a marker.  For a file that is not visited,
BUFFER is its name and POSITION a cons (LINE . COLUMN), as in Flymake.
Return only TEXT if BUFFER visits no file, and nil if it was killed or its
lines may come from any file."
  (let ((buffer (or buffer (marker-buffer position))))
    (cond ((stringp buffer)
           (list buffer (car position) text))
          ((not (buffer-live-p buffer)) nil)
          ((gemini-companion-send--source buffer)
           (list (gemini-companion-send--source buffer)
                 (gemini-companion-text-line buffer position)
                 text))
          ((with-current-buffer buffer
             (seq-some #'derived-mode-p
                       '( compilation-mode diff-mode magit-mode
                          occur-mode xref--xref-buffer-mode)))
           nil)
          (t text))))

;;;; Hunks

(defun gemini-companion-send--diff ()
  "Return the hunk of a diff at point, with the names of its file."
  (save-excursion
    (let ((end (line-end-position)))
      (pcase-let ((`(,hunk-start ,hunk-end)
                   (or (ignore-errors (diff-bounds-of-hunk))
                       (user-error "No hunk here"))))
        ;; In the header of a file, the functions of Diff mode find the wrong file.
        (goto-char hunk-start)
        (gemini-companion-send--hunk
         ;; A binary file has no hunk, and the next hunk belongs to another file.
         (unless (re-search-backward "^\\(?:diff\\|Index:\\) "
                                     (min end (point)) t)
           (append (seq-mapcat #'gemini-companion-send--diff-files
                               (diff-hunk-file-names))
                   ;; The names may be labels of diff -L; its command has the files.
                   (when (re-search-backward "^diff \\(.*\\)" nil t)
                     (gemini-companion-send--words (match-string 1)))))
         hunk-start hunk-end)))))

(defun gemini-companion-send--diff-files (name)
  "Return the files that NAME in a diff may mean, the likeliest first.
NAME may have a prefix such as a/, and be relative to this directory or
the root of the project.  The value is a list of absolute names, of files
that need not exist.  It is nil for /dev/null and the like.  The name that
diff gives a buffer without a file means the sources of its text."
  (let* ((name (if (string-prefix-p "\"" name)
                   ;; Git quotes the bytes of other than ASCII letters.
                   (decode-coding-string (read name) 'utf-8)
                 name))
         (bare (replace-regexp-in-string "\\`[^/]+/" "" name)))
    (cond ((string-match "\\`#<buffer \\(.*\\)>\\'" name)
           (gemini-companion-send--sources (match-string 1 name)))
          ;; The words of a command line include options, and the pieces of a name
          ;; with a space.
          ((string-match-p "\\`\\(?:/dev/null\\'\\|[-\\]\\)" name)
           nil)
          (t
           (let ((names (if (string-match-p "\\`[[:alnum:]]/" name)
                            (list bare name)
                          (list name bare))))
             (mapcan (lambda (directory)
                       (mapcar (apply-partially #'gemini-companion-names-in directory)
                               names))
                     (list (or (vc-root-dir) default-directory)
                           default-directory)))))))

(defun gemini-companion-send--magit ()
  "Return the hunk at point, with the name of its file."
  (let* ((section (magit-current-section))
         (parent (gemini-companion-send--slot section 'parent)))
    (gemini-companion-send--hunk
     (mapcar (apply-partially #'gemini-companion-names-below default-directory)
             (delq nil
                   (list (magit-file-at-point)
                         ;; A file that was renamed or copied has a source.
                         (or (gemini-companion-send--slot section 'source)
                             (gemini-companion-send--slot parent 'source)))))
     (gemini-companion-send--slot section 'start)
     (gemini-companion-send--slot section 'end))))

(defun gemini-companion-send--slot (section slot)
  "Return the value of SLOT in SECTION of Magit, or nil if it has none.
SLOT is a variable, since the compiler warns of unknown slot names."
  (ignore-errors (slot-value section slot)))

(defun gemini-companion-send--hunk (files start end)
  "Return the hunk of FILES from START to END.
It names a file that is hidden, or else one that exists."
  (let ((text (gemini-companion-text-trim
               (buffer-substring-no-properties start end) "\n")))
    (list (list (or (gemini-companion-send--hidden files (current-buffer))
                    (seq-find #'file-exists-p files)
                    (car files)
                    (user-error "No hunk or file here"))
                nil
                ;; An untracked file in Magit is only its name.
                (and (string-search "\n" text)
                     (gemini-companion-send--fenced text "diff"))))))

;;;; Shells and other text

(defconst gemini-companion-send--most-lines 200
  "Maximum number of lines of the output of a command to send.")

(defun gemini-companion-send--shell ()
  "Return the region, or the last command and the end of its output."
  (cond
   ((gemini-companion-send--compilation-p) (gemini-companion-send--hits))
   ((use-region-p) (gemini-companion-send--region))
   (t
    (let* ((start (save-excursion
                    (gemini-companion-send--go-to-last-command)
                    (line-beginning-position)))
           (lines (split-string (gemini-companion-text-trim
                                 (buffer-substring-no-properties start (point-max)))
                                "\n"))
           ;; The first line is the command.
           (omitted (- (length lines) 1 gemini-companion-send--most-lines))
           (shown (if (< 0 omitted)
                      `(,(car lines)
                        ,(format "[%d lines omitted]" omitted)
                        ,@(last lines gemini-companion-send--most-lines))
                    lines)))
      (list (gemini-companion-send--fenced (string-join shown "\n")))))))

(defun gemini-companion-send--go-to-last-command ()
  "Go to the line of the last command in this buffer of a shell.
Eshell and Comint record its position.  In a terminal, search backward for
the prompt that is on the last line."
  (if-let* ((start (or (bound-and-true-p eshell-last-input-start)
                       (bound-and-true-p comint-last-input-start))))
      (goto-char start)
    ;; In a terminal that is suspended, point may be anywhere.
    (unless (gemini-companion-terminal-takes-keys-p)
      (goto-char (point-max))
      (skip-chars-backward " \t\n"))
    (let ((prompt (gemini-companion-send--shell-prompt)))
      (forward-line 0)
      (or (re-search-backward
           ;; While a command runs, there may be no prompt.
           (if (string-empty-p prompt)
               "\\`"
             (concat "^" (regexp-quote prompt)))
           nil t)
          ;; The prompt may contain the directory or the time, and so differ.
          (re-search-backward (format "^[^#$%%>\n]*%s "
                                      (regexp-quote (substring prompt -1)))
                              nil 'move)))))

(defun gemini-companion-send--shell-prompt ()
  "Return the prompt of a shell before point, without a half-typed command."
  (let ((text (buffer-substring-no-properties (line-beginning-position) (point))))
    (if (string-match "\\`[^#$%>]*[#$%>] " text)
        (substring text 0 (1- (match-end 0)))
      (gemini-companion-text-trim text " " 'right))))

(defun gemini-companion-send--region ()
  "Return the text of the region, or of the paragraph at point, in a list.
If the buffer has text of a file that is not shared, the list has that
file, and not the text."
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
  "Return TEXT in a fence of Markdown, with the name of its LANGUAGE, if any.
The fence is longer than any in TEXT."
  (let ((fence "```"))
    (while (string-search fence text)
      (setq fence (concat fence "`")))
    (concat fence language "\n" (gemini-companion-text-trim text "\n") "\n" fence)))

(defun gemini-companion-send-things ()
  "Return the things at point, by `gemini-companion-send-alist'."
  (or (funcall (assoc-default nil gemini-companion-send-alist
                              (lambda (mode _)
                                (or (eq mode 'fundamental-mode)
                                    (derived-mode-p mode)))))
      (user-error "Nothing here to send")))

;;;; Names for a CLI

(cl-defstruct (gemini-companion-send--name
               (:noinline t)
               (:constructor gemini-companion-send--make-name)
               (:copier nil))
  "The name of FILE in a prompt.
TEXT is a reference, such as \"@src/a.py\", or the name alone.  HIDDEN is
non-nil if FILE is not shared.  UNREAD is non-nil if FILE can be read, but
the CLI reads it by no form of its name.  LOCAL is the local name of FILE,
or of the copy of a remote FILE, or nil."
  file text hidden unread local)

(defun gemini-companion-send-sessions (file)
  "Return the sessions in whose directory, or on whose host, FILE is."
  (seq-filter (lambda (session)
                (car (gemini-companion-send--names-for file session)))
              (gemini-companion-sessions)))

(defun gemini-companion-send--names-for (file session)
  "Return (NAME . LOCAL) for FILE, or nil if it is not on the host of SESSION.
NAME is its name relative to the directory of SESSION, or its name on a
remote host; nil for a local FILE outside the directory.  LOCAL is its
local name, in its true directory; it may be a link."
  (pcase-let* (((cl-struct gemini-companion-session remote directory) session)
               (`(,host . ,there) (gemini-companion-names-remote file remote)))
    (cond ((and remote (equal remote host))
           (cons there (gemini-companion-names-copy (concat remote there))))
          ((or remote (file-remote-p file)) nil)
          (t
           (let* ((file (expand-file-name file))
                  (local (concat (file-truename (file-name-directory file))
                                 (file-name-nondirectory file)))
                  (root (and directory (file-truename directory))))
             (cons (and root
                        (gemini-companion-text-in-directory-p
                         (file-name-as-directory local) root)
                        (file-relative-name local root))
                   local))))))

(defun gemini-companion-send--name (file session)
  "Return how FILE is named in a prompt for SESSION, a struct.
Ask about a file that is not shared, or outside the directory of the CLI.
A file that does not exist is only named, and so is a directory, as the CLI
would read all files in it."
  ;; Control characters are not typed, so the name would mean another file.
  (when (string-match-p "[\0-\37\177\u0080-\u009f]" file)
    (user-error "A prompt cannot name a file with a control character"))
  (pcase-let* ((`(,there . ,local)
                (or (gemini-companion-send--names-for file session)
                    (user-error "%s is not a file on the machine of %s"
                                (gemini-companion-names-absolute file)
                                (gemini-companion-session-name session))))
               (name (or there local))
               (hidden (gemini-companion-send--hidden (list file local)))
               (read (or (gemini-companion-session-remote session)
                         (file-regular-p local)))
               (reference (and read
                               (gemini-companion-prompt-reference
                                name (gemini-companion-session-client session)))))
    (unless (or (and there (not hidden))
                (gemini-companion-choice-y-or-n-p
                 (format (if hidden
                             "%s is not shared; name it anyway? "
                           "%s is outside the project of the CLI; \
name it anyway? ")
                         (gemini-companion-names-absolute local))))
      (user-error "Nothing sent"))
    (gemini-companion-send--make-name
     :file file
     :text (or reference name)
     :hidden hidden
     :unread (and read (not reference))
     :local local)))

;;;; Description

(defun gemini-companion-send-description (things session)
  "Return a text for the prompt of SESSION that describes THINGS.
THINGS is a value of `gemini-companion-send-things'."
  (let* ((files (delete-dups (delq nil (mapcar #'car-safe things))))
         (names (mapcar (lambda (file) (gemini-companion-send--name file session))
                        files))
         (descriptions
          (mapcar (lambda (thing)
                    (if (stringp thing)
                        thing
                      (pcase-let ((`(,file ,lines ,text) thing))
                        (gemini-companion-send--reference
                         (cl-find file names :test #'equal
                                  :key #'gemini-companion-send--name-file)
                         lines text))))
                  things))
         (text (gemini-companion-prompt-quote
                (string-join (append descriptions
                                     (gemini-companion-send--texts names))
                             "\n")
                session t)))
    ;; A name such as /help would be a command of the CLI.
    (concat (and (gemini-companion-prompt-command text) "About ") text)))

(defun gemini-companion-send--reference (name &optional lines text)
  "Return a reference to NAME, a `gemini-companion-send--name'.
LINES are as in `gemini-companion-send-alist'; TEXT is omitted if the file is
not shared.  For example: @a.py (lines 2-3): unused"
  (concat (gemini-companion-send--name-text name)
          (pcase lines
            ('nil "")
            ((and `(,first . ,last) (guard (not (eql first last))))
             (format " (lines %d-%d)" first last))
            ((or `(,line . ,_) line)
             (format " (line %d)" line)))
          (and text
               (not (gemini-companion-send--name-hidden name))
               (concat (if (string-search "\n" text) ":\n" ": ")
                       text))))

(defconst gemini-companion-send--longest 30000
  "Maximum number of bytes of all texts that are sent instead of references.")

(defun gemini-companion-send--texts (names)
  "Return texts to send instead of references, for NAMES that the CLI cannot read.
NAMES are a list of `gemini-companion-send--name'.  A text is the contents of
the file, as the CLI would read them.  If the file must not be shared, is not
UTF-8, or exceeds the rest of `gemini-companion-send--longest', the text is a
sentence that asks the model to read it."
  (let ((left gemini-companion-send--longest)
        (texts nil))
    (dolist (name names)
      (when (gemini-companion-send--name-unread name)
        (let ((text (gemini-companion-send--text-of-name name left)))
          (cl-decf left (length text))
          (push (if text
                    (format "The text of %s:\n%s"
                            (gemini-companion-send--name-text name)
                            (gemini-companion-send--fenced
                             text (file-name-extension
                                   (gemini-companion-send--name-text name))))
                  (format "Read the file %s first."
                          (gemini-companion-send--name-text name)))
                texts))))
    (nreverse texts)))

(defun gemini-companion-send--text-of-name (name most)
  "Return the text of the file NAME, at most MOST bytes, or nil.
NAME is a `gemini-companion-send--name'."
  (pcase-let (((cl-struct gemini-companion-send--name local hidden) name))
    (when (and local (not hidden))
      (let ((size (file-attribute-size (file-attributes local))))
        (and size
             (<= size most)
             (gemini-companion-send--text-of local))))))

(defun gemini-companion-send--text-of (file)
  "Return the text of FILE, or nil if FILE is not UTF-8."
  (when-let* ((text (ignore-error file-error
                      (gemini-companion-text-read file))))
    (unless (or (string-search "\0" text)
                (memq 'eight-bit (find-charset-string text)))
      text)))

;;;; Commands

(defun gemini-companion-send (&optional compose)
  "Insert what is at point into the prompt of a CLI, and go there.
In a file, insert a reference to the lines of the region, the defun or
the line; elsewhere the marked files, the hit, the hunk, the last command
and its output, or the region.  The table `gemini-companion-send-alist'
has this for each mode.  The CLI is the one whose directory has the file;
if there are several or none, you are asked.  If the CLI runs outside of
this Emacs, the text is added to the kill ring.

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
