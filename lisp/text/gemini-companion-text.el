;;; gemini-companion-text.el --- Texts of files and buffers, and their comparison  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Read and write texts in UTF-8, without format conversion, conversion of line ends,
;; file name handlers and hooks of the user.  Compare and merge texts by the programs
;; diff and diff3; a text with raw bytes is printed in ASCII for them.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)

;;;; Customization

(defface gemini-companion-escape
  '((t :inherit escape-glyph :underline t))
  "Face of the escapes of invisible characters.
It distinguishes an escape from the same letters in the text, on a terminal
without colors as well."
  :group 'gemini-companion)

;;;; Reading

(defun gemini-companion-text-true-name (file)
  "Return the true name of the local FILE, or nil if its links are a loop."
  (let ((file-name-handler-alist nil))
    (ignore-errors (file-truename file))))

(defun gemini-companion-text-attributes (file)
  "Return the attributes of the local FILE, or nil if it does not exist.
Follow symbolic links.  The true name is computed only for a link, since it
takes a system call for each directory and many files are polled twice a
second."
  (let* ((file-name-handler-alist nil)
         ;; FILE may be inaccessible, or a loop of links.
         (attributes (ignore-errors (file-attributes file))))
    (if (stringp (file-attribute-type attributes))
        (when-let* ((name (gemini-companion-text-true-name file)))
          (ignore-errors (file-attributes name)))
      attributes)))

(defun gemini-companion-text-unreadable-reason (file)
  "Return the reason why the text of FILE cannot be read, or nil.
The value is a verb phrase, or nil if FILE is readable or does not exist.
Only regular files can be read: reading a pipe or a device may never end."
  (cond ((condition-case nil
             (file-remote-p file)
           ;; Tramp signals an error for an unknown method.
           (error t))
         ;; A CLI would use it as a local file name.
         "has a remote file name")
        ((null (gemini-companion-text-true-name file))
         "is a loop of symbolic links")
        ((let ((file-name-handler-alist nil))
           (and (file-exists-p file) (not (file-regular-p file))))
         "is not a regular file")))

;;;; Comparison

(defun gemini-companion-text-lines (text)
  "Return the lines of TEXT, a list of strings without newlines."
  (and (not (string-empty-p text))
       (split-string (string-remove-suffix "\n" text) "\n")))

(defun gemini-companion-text-normalized (text)
  "Return TEXT with Unix line ends and without a byte order mark."
  (string-remove-prefix "\uFEFF" (string-replace "\r\n" "\n" text)))

(defun gemini-companion-text-utf-8 (text)
  "Return the bytes of TEXT in UTF-8; return a unibyte TEXT as it is."
  (if (multibyte-string-p text)
      (encode-coding-string text 'utf-8-emacs-unix)
    text))

(defun gemini-companion-text--raw-p (text bytes)
  "Return non-nil if decoding BYTES, the encoded TEXT, may not return TEXT.
For example, the raw bytes 303 and 251 are written like the character é, and
a surrogate is read as three raw bytes."
  (if (multibyte-string-p text)
      ;; Searching TEXT for these characters takes longer than encoding it.  A raw
      ;; byte takes two bytes in a string.
      (or (< (length bytes) (string-bytes text))
          ;; A surrogate; no other character has these two bytes, and few the first.
          (and (string-search "\355" bytes)
               (string-match-p "\355[\240-\277]" bytes)))
    (string-match-p "[[:nonascii:]]" text)))

(defun gemini-companion-text--printed (text)
  "Print TEXT in ASCII, with the same lines; `read' reverses that.
Equal texts, and only these, are printed alike."
  (let ((print-escape-multibyte t)
        (print-escape-newlines nil)
        (print-escape-nonascii nil)
        (print-escape-control-characters nil))
    (substring (prin1-to-string
                (substring-no-properties (string-to-multibyte text)))
               1 -1)))

(define-error 'gemini-companion-text-not-compared "Cannot compare texts"
  '(file-error user-error))

(defun gemini-companion-text--not-compared (program reason)
  "Signal `gemini-companion-text-not-compared', as PROGRAM failed for REASON."
  ;; The message of a `file-error' begins with its data.
  (signal 'gemini-companion-text-not-compared
          (list (if (executable-find program)
                    (format "Cannot compare texts: %s failed (%s)" program reason)
                  (format "Cannot find the program %s; install it%s" program
                          (if (equal program diff-command)
                              " or customize `diff-command'"
                            ""))))))

(defun gemini-companion-text--run (texts program &rest options)
  "Compare TEXTS by PROGRAM with OPTIONS.
Return a list (STATUS OUTPUT PRINTED): the exit status, 0 or 1, the bytes of the
output, and non-nil if `gemini-companion-text--printed' printed the texts.
Signal `gemini-companion-text-not-compared' if PROGRAM cannot be run or fails,
for example since the disk is full."
  (condition-case err
      (let ((run (apply #'gemini-companion-text--run-program texts program options)))
        (if (memq (car run) '(0 1))
            run
          (gemini-companion-text--not-compared
           program
           (gemini-companion-text-trim (decode-coding-string (nth 1 run) 'utf-8)))))
    (gemini-companion-text-not-compared (signal (car err) (cdr err)))
    (file-error
     (gemini-companion-text--not-compared program (error-message-string err)))))

(defun gemini-companion-text--run-program (texts program &rest options)
  "Run PROGRAM with OPTIONS and files with TEXTS.
For the value, see `gemini-companion-text--run'; the status may be another one."
  (let* ((encoded (mapcar #'gemini-companion-text-utf-8 texts))
         (printed (seq-some #'identity
                            (cl-mapcar #'gemini-companion-text--raw-p
                                       texts encoded)))
         (coding-system-for-read 'no-conversion)
         (default-directory "/")
         files)
    (unwind-protect
        (with-temp-buffer
          (set-buffer-multibyte nil)
          (dolist (text (if printed
                            (mapcar #'gemini-companion-text--printed texts)
                          encoded))
            ;; Only the user can read it.
            (push (make-temp-file "gemini-companion-") files)
            (gemini-companion-text-write (car files) text))
          (list (apply #'call-process program nil t nil "--text"
                       (append options (reverse files)))
                (buffer-string)
                printed))
      (mapc #'delete-file files))))

(defun gemini-companion-text-diff (texts)
  "Return the ranges of lines in which the two TEXTS differ, a list.
Each element is a list (OLD OLD-END NEW NEW-END): the indices, from 0, of the
first line and of the next line after the range, in each text.  Signal
`gemini-companion-text-not-compared' if diff fails."
  (or (gemini-companion-text--ranges
       (nth 1 (gemini-companion-text--run texts diff-command "-U0")))
      ;; A text in one file must not count as the other one without a proof.
      (unless (apply #'string= (mapcar #'string-to-multibyte texts))
        (gemini-companion-text--not-compared diff-command "no hunks"))))

(defun gemini-companion-text--ranges (output)
  "Return the ranges of lines in OUTPUT, of diff with the option -U0.
The value is that of `gemini-companion-text-diff'."
  (cl-loop
   with numbers = "\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?"
   with regexp = (format "@@ -%1$s \\+%1$s @@" numbers)
   ;; A regexp would be tried at each byte of a line of a megabyte.
   for start = (string-search "\n@@ -" output)
   then (string-search "\n@@ -" output (1+ start))
   while (and start (eql (1+ start) (string-match regexp output (1+ start))))
   for (old old-count new new-count)
   = (mapcar (lambda (n) (string-to-number (or (match-string n output) "1")))
             '(1 2 3 4))
   ;; Numbers begin at 1; where the count is 0, diff names the line before.
   collect (cl-flet ((range (number count)
                       (let ((start (if (zerop count) number (1- number))))
                         (list start (+ start count)))))
             (append (range old old-count) (range new new-count)))))

(defun gemini-companion-text-unified (old new)
  "Return the unified diff from the text OLD to NEW, without file names.
It is empty if the texts are equal.  Signal
`gemini-companion-text-not-compared' if diff fails."
  (pcase (gemini-companion-text--run (list old new) diff-command "-u")
    (`(0 . ,_) "")
    (`(1 ,output ,printed)
     ;; The first two lines name the files.
     (let ((hunks (substring output (string-search "@@ -" output))))
       (string-to-multibyte
        (if printed
            (read (concat "\"" hunks "\""))
          (decode-coding-string hunks 'utf-8-emacs-unix)))))))

(defun gemini-companion-text-merged (mine base theirs &rest labels)
  "Merge the texts MINE and THEIRS, whose common ancestor is BASE.
Return (CONFLICT . TEXT).  If CONFLICT is non-nil, TEXT has markers of
conflicts, in which LABELS name the three texts.  Signal
`gemini-companion-text-not-compared' if diff3 fails."
  (let* ((end (if (string-search "\r\n" mine) "\r\n" "\n"))
         ;; A regexp would be tried at each character of a line of a megabyte.
         (ends-p (lambda (text)
                   (or (string-empty-p text) (string-suffix-p "\n" text))))
         (last (if (eq (funcall ends-p mine) (funcall ends-p base)) theirs mine))
         ;; Without a final newline, diff3 appends the marker to the last line.
         (texts (mapcar (lambda (text)
                          (string-to-multibyte
                           (if (funcall ends-p text) text (concat text end))))
                        (list mine base theirs))))
    ;; Without `--show-overlap', identical changes are conflicts.
    (pcase (gemini-companion-text--run-merge texts "--merge" "--show-overlap")
      (`(0 . ,merged)
       (cons nil (if (funcall ends-p last)
                     merged
                   (string-remove-suffix end merged))))
      (_
       (cons t (cdr (apply #'gemini-companion-text--run-merge texts "--merge"
                           (mapcar (apply-partially #'concat "--label=") labels))))))))

(defun gemini-companion-text--run-merge (texts &rest options)
  "Run diff3 with OPTIONS for TEXTS, and return (STATUS . OUTPUT)."
  (pcase-let ((`(,status ,output ,printed)
               (apply #'gemini-companion-text--run texts "diff3" options)))
    (cons status
          (string-to-multibyte
           (if printed
               (read (concat "\"" output "\""))
             (decode-coding-string output 'utf-8-emacs-unix))))))

(defun gemini-companion-text-units (text)
  "Return the number of UTF-16 code units of TEXT."
  (/ (length (encode-coding-string text 'utf-16le)) 2))

;;;; Display

(defun gemini-companion-text-sign (char ascii)
  "Return CHAR as a string, or ASCII where it cannot be displayed."
  (if (char-displayable-p char) (string char) ascii))

(defmacro gemini-companion-text-keeping-message (&rest body)
  "Evaluate BODY, then restore the message in the echo area, or clear it."
  (declare (indent 0) (debug t))
  (let ((previous (make-symbol "previous")))
    `(let ((,previous (current-message)))
       (prog1 (progn ,@body)
         (unless (equal ,previous (current-message))
           (let ((message-log-max nil))
             (message (and ,previous "%s") ,previous)))))))

;;;; Buffers

(defun gemini-companion-text-of-buffer (&optional buffer)
  "Return the whole text of BUFFER, or the current one, without properties."
  (with-current-buffer (or buffer (current-buffer))
    (save-restriction
      (widen)
      (buffer-substring-no-properties (point-min) (point-max)))))

(defun gemini-companion-text-line (buffer position)
  "Return the number of the line at POSITION in the whole text of BUFFER."
  (with-current-buffer buffer
    (save-restriction
      ;; Emacs 28 signals an error outside of a narrowing.
      (widen)
      (line-number-at-pos position))))

(defun gemini-companion-text-region ()
  "Return the beginnings of the first and the last line of the region, a cons.
The line after the region is not meant if the region ends before its
first character."
  (let ((beg (region-beginning))
        (end (region-end)))
    (save-excursion
      (goto-char end)
      (when (and (bolp) (< beg end))
        (forward-line -1))
      (cons (save-excursion (goto-char beg) (line-beginning-position))
            (line-beginning-position)))))

(defun gemini-companion-text-region-predicate ()
  "Return a predicate on the indices, from 0 on, of the lines of the region."
  (pcase-let* ((`(,beg . ,end) (gemini-companion-text-region))
               (first (1- (gemini-companion-text-line (current-buffer) beg)))
               (last (1- (gemini-companion-text-line (current-buffer) end))))
    (lambda (index)
      (<= first index last))))

;;;; Hooks of the user

(defun gemini-companion-text-call (function &rest args)
  "Call FUNCTION, from a hook of the user, with ARGS; return nil.
Report an error of FUNCTION.  It cannot exit from the caller, or switch the
buffer of the caller."
  (let ((ended nil))
    (catch 'gemini-companion-text-call
      (unwind-protect
          (progn
            (condition-case-unless-debug err
                (save-current-buffer (apply function args))
              ((error quit) (message "Hook function %s failed: %s"
                                     (if (symbolp function) function "without a name")
                                     (error-message-string err))))
            (setq ended t))
        ;; FUNCTION may throw to a tag outside of the caller.  Emacs forgets C-g,
        ;; typed while `inhibit-quit' is non-nil, if a form here throws.
        (unless ended
          (throw 'gemini-companion-text-call nil))))
    nil))

;;;; Names

(defun gemini-companion-text-visited (buffer)
  "Return the name of the file that BUFFER or its base buffer visits, or nil.
A quoting prefix \"/:\" is removed."
  (when-let* ((file (buffer-file-name (or (buffer-base-buffer buffer) buffer))))
    (string-remove-prefix "/:" file)))

(defun gemini-companion-text-same-file-p (a b)
  "Return non-nil if A and B, two local true names, name the same file.
On a volume that ignores case, their case may differ."
  (or (string= a b)
      (and (eq t (compare-strings a nil nil b nil nil t))
           (let ((file-name-handler-alist nil))
             (file-equal-p a b)))))

(defun gemini-companion-text-in-directory-p (file directory)
  "Return non-nil if FILE is in DIRECTORY or below; both are true names.
A name of a directory in place of FILE ends with a slash."
  (and (string-prefix-p directory file t)
       ;; The test above needs no new string, and excludes most directories.
       (let ((directory (file-name-as-directory directory)))
         (and (string-prefix-p directory file t)
              (gemini-companion-text-same-file-p
               directory (substring file 0 (length directory)))))))

;;;; Files

(defun gemini-companion-text-bytes (file &optional most)
  "Return the bytes of the regular FILE, a unibyte string; at most MOST, if given.
Read at most as many bytes as its size.  Signal a `file-error' if FILE is
not a regular file, or cannot be read."
  (let ((attributes (gemini-companion-text-attributes file))
        (inhibit-modification-hooks t)
        (file-name-handler-alist nil))
    (unless (or (null attributes) (file-regular-p file))
      (signal 'file-error (list "Not a regular file" file)))
    (with-temp-buffer
      (set-buffer-multibyte nil)
      (insert-file-contents-literally
       file nil 0 (and attributes
                       (min (file-attribute-size attributes)
                            (or most most-positive-fixnum))))
      (buffer-string))))

(defun gemini-companion-text-read (file)
  "Return the text of FILE, decoded from UTF-8."
  (decode-coding-string (gemini-companion-text-bytes file) 'utf-8-unix))

(defun gemini-companion-text-write (file text)
  "Write TEXT to FILE as UTF-8.
Raw bytes are written as they are, and so is a unibyte TEXT."
  (let ((file-name-handler-alist nil)
        (buffer-file-format nil)
        (write-region-annotate-functions nil)
        (write-region-post-annotation-function nil)
        (write-region-inhibit-fsync t)
        (create-lockfiles nil)
        ;; Encoding a text in ASCII, as most are, does not copy it.
        (coding-system-for-write 'no-conversion))
    ;; With a name to lock, Emacs would ask if a buffer visits an older version.
    (write-region (gemini-companion-text-utf-8 text) nil file nil 'silent "/")))

(defun gemini-companion-text-write-changed (file text)
  "Write TEXT to FILE atomically unless FILE already has TEXT.
Create its directory if necessary."
  (unless (and (file-exists-p file)
               (equal text (gemini-companion-text-read file)))
    (make-directory (file-name-directory file) t)
    (let ((draft (concat file ".new")))
      (gemini-companion-text-write draft text)
      (rename-file draft file t))))

(defun gemini-companion-text-create (file text modes)
  "Make FILE, which must not exist, with TEXT as UTF-8 and MODES.
If that fails, signal a `file-error'; nothing is left of it then."
  (let* ((file-name-handler-alist nil)
         (draft (gemini-companion-text--make-draft file)))
    (unwind-protect
        (progn
          (gemini-companion-text-write draft text)
          (set-file-modes draft modes)
          (rename-file draft file)
          (setq draft nil))
      (when draft
        (delete-file draft)))))

(define-error 'gemini-companion-text-changed "File has changed meanwhile"
              'file-error)

(defun gemini-companion-text--check-bytes (file bytes)
  "Signal `gemini-companion-text-changed' unless FILE has BYTES."
  (unless (equal bytes (gemini-companion-text-bytes file))
    ;; The message of a `file-error' begins with its data.
    (signal 'gemini-companion-text-changed
            (list "File has changed meanwhile" file))))

(defun gemini-companion-text-rewrite (file old text)
  "Write TEXT as UTF-8 to FILE, a file of the user with the bytes OLD.
TEXT may be a unibyte string.  If Emacs is killed meanwhile, FILE has its old or
its new text: a draft beside FILE gets its name.  Where FILE would not keep all
of its attributes, it is written in place, and OLD is saved before; see
`gemini-companion-text-backups'.  If its bytes differ from OLD, signal
`gemini-companion-text-changed' and write nothing.  If writing fails, for
example since the disk is full, FILE has OLD, and the error is signaled."
  (let* ((inhibit-quit t)
         (file-name-handler-alist nil)
         (file (or (gemini-companion-text-true-name file) file)))
    (gemini-companion-text--check-bytes file old)
    (or (gemini-companion-text--replace file old text)
        (gemini-companion-text--overwrite file old text))))

(defun gemini-companion-text--replace (file old text)
  "Replace FILE, which has the bytes OLD, by a draft with TEXT.
Return nil, and change nothing, if the draft cannot have all that FILE has."
  (when-let* ((attributes (file-attributes file))
              ((eql 1 (file-attribute-link-number attributes)))
              ((file-writable-p file))
              (draft (ignore-error file-error
                       (gemini-companion-text--make-draft file))))
    (unwind-protect
        (progn
          (gemini-companion-text-write draft text)
          (when (gemini-companion-text--copy-attributes file draft)
            ;; The clock of the file system ticks a few hundred times a second, and
            ;; with an equal time, a buffer of FILE would count as current.
            (unless (time-less-p (file-attribute-modification-time attributes)
                                 (file-attribute-modification-time
                                  (file-attributes draft)))
              (set-file-times draft))
            (gemini-companion-text--check-bytes file old)
            (ignore-error file-error
              (rename-file draft file t)
              (setq draft nil)
              t)))
      (when draft
        (delete-file draft)))))

(defun gemini-companion-text--copy-attributes (file draft)
  "Give DRAFT the owner and all attributes of FILE; return nil if some differ.
Emacs does not see extended attributes, but GNU cp copies them, or fails."
  (let ((context (seq-some #'identity (file-selinux-context file)))
        (default-directory "/"))
    (and (eql 0 (ignore-errors
                  (call-process "cp" nil nil nil "--attributes-only"
                                (concat "--preserve=mode,ownership,xattr"
                                        (and context ",context"))
                                "--" file draft)))
         (equal (file-extended-attributes file) (file-extended-attributes draft))
         (let ((a (file-attributes file))
               (b (file-attributes draft)))
           (seq-every-p (lambda (get) (equal (funcall get a) (funcall get b)))
                        '(file-attribute-modes file-attribute-user-id
                          file-attribute-group-id))))))

(defun gemini-companion-text--overwrite (file old text)
  "Write TEXT to FILE, which has the bytes OLD, in place.
It keeps its hard links.  For errors, see `gemini-companion-text-rewrite'."
  (let ((backup (gemini-companion-text--back-up file old text)))
    (condition-case err
        (gemini-companion-text-write file text)
      (error
       ;; A file that could not be opened for writing still has these bytes.
       (unless (equal old (ignore-errors (gemini-companion-text-bytes file)))
         (condition-case nil
             (gemini-companion-text-write file old)
           (file-error
            (signal 'file-error
                    (list "File was truncated; its text is saved in" backup)))))
       (gemini-companion-text--delete-backup backup)
       (signal (car err) (cdr err))))
    (gemini-companion-text--delete-backup backup)))

;;;; Drafts and backups

(defconst gemini-companion-text-draft ".gemini-companion-"
  "How the name of a draft begins, which is beside a file and gets its name.
A file of a project never has such a name, so snapshots omit drafts by it.")

(defvar gemini-companion-text--swept nil
  "Directories in which this Emacs has looked for drafts of a killed Emacs.")

(defvar gemini-companion-text-backups
  (locate-user-emacs-file "gemini-companion/backups/")
  "Directory of the bytes that files have while they are written in place.
For each such file, it has a directory with a file of that name, and beside it a
list (FILE PID HASH HASH), with the hashes of the old and the new bytes.")

(defun gemini-companion-text--make-draft (file)
  "Make an empty draft beside FILE that only the user can read; return its name.
The first time, delete the drafts of Emacsen that were killed."
  (let* ((directory (file-name-directory (expand-file-name file)))
         (prefix (concat directory gemini-companion-text-draft)))
    (unless (member directory gemini-companion-text--swept)
      (push directory gemini-companion-text--swept)
      (dolist (name (file-name-all-completions gemini-companion-text-draft directory))
        (when-let* ((pid (gemini-companion-text--dead-pid
                          (substring name (length gemini-companion-text-draft)))))
          (ignore-errors (delete-file (concat directory name))))))
    (make-temp-file (format "%s%d-" prefix (emacs-pid)))))

(defun gemini-companion-text--dead-pid (name)
  "Return the number with a hyphen at the beginning of NAME if no process has it."
  (when (string-match "\\`\\([0-9]+\\)-" name)
    (let ((pid (string-to-number (match-string 1 name))))
      (unless (gemini-companion-text-process-attributes pid)
        pid))))

(defun gemini-companion-text-process-attributes (pid)
  "Return the attributes of the process PID of this host, or nil.
In a directory of another host, TRAMP would look there, and block Emacs."
  (let ((default-directory "/"))
    (process-attributes pid)))

(defun gemini-companion-text--copy-in (directory file)
  "Return the name of the backup of FILE in DIRECTORY."
  (concat (file-name-as-directory directory) (file-name-nondirectory file)))

(defun gemini-companion-text--back-up (file old new)
  "Save OLD, the bytes of FILE, which gets the text NEW; return the copy."
  (make-directory gemini-companion-text-backups t)
  (let* ((directory (make-temp-file
                     (format "%s%d-" (file-name-as-directory
                                      gemini-companion-text-backups)
                             (emacs-pid))
                     'directory))
         (copy (gemini-companion-text--copy-in directory file)))
    (gemini-companion-text-write copy old)
    ;; Once this file exists, the copy is whole.
    (gemini-companion-text-write
     (concat directory ".eld")
     (prin1-to-string
      (list file (emacs-pid) (secure-hash 'sha256 old)
            (secure-hash 'sha256 (gemini-companion-text-utf-8 new)))))
    copy))

(defun gemini-companion-text--delete-backup (copy)
  "Delete COPY, a backup, as its file is whole."
  (let ((directory (directory-file-name (file-name-directory copy))))
    (ignore-errors (delete-file (concat directory ".eld")))
    (ignore-errors (delete-directory directory t))))

(defun gemini-companion-text-found-backups ()
  "Return the backups of files that an Emacs was writing when it was killed.
The value is a list of (FILE COPY).  Delete the backups of files that have the
old or the new text.  A backup stays until the user deletes it."
  (let ((file-name-handler-alist nil)
        (found nil))
    (when (file-directory-p gemini-companion-text-backups)
      (dolist (name (directory-files gemini-companion-text-backups t "\\`[0-9]+-"))
        (let ((directory (string-remove-suffix ".eld" name)))
          (when (gemini-companion-text--dead-pid (file-name-nondirectory directory))
            (pcase (and (file-directory-p name)
                        (ignore-errors
                          (read (gemini-companion-text-read
                                 (concat directory ".eld")))))
              (`(,file ,_ . ,hashes)
               (let ((copy (gemini-companion-text--copy-in directory file)))
                 (if (or (not (file-exists-p copy))
                         (member (ignore-error file-error
                                   (secure-hash 'sha256
                                                (gemini-companion-text-bytes file)))
                                 hashes))
                     (gemini-companion-text--delete-backup copy)
                   (push (list file copy) found))))
              ;; Emacs was killed before the file was written.
              ('nil (when (file-directory-p name)
                      (ignore-errors (delete-directory name t)))))))))
    (nreverse found)))

;;;; Invisible characters

(defun gemini-companion-text--invisible-p (char &optional composed)
  "Return non-nil if CHAR is invisible, or may look like another character.
Such are control and format characters, blanks other than a space, fillers,
unassigned and private characters, and combining marks.  If COMPOSED is
non-nil, the display composes characters, and only those combining marks
count that are never displayed."
  (and (or (< char ?\s) (< ?~ char))
       (or (memq (get-char-code-property char 'general-category)
                 (if composed
                     '(nil Cc Cf Cn Co Cs Zl Zp Zs)
                   '(nil Cc Cf Cn Co Cs Zl Zp Zs Mn Mc Me)))
           (memq char '(#x34F #x115F #x1160 #x17B4 #x17B5 #x2800 #x3164 #xFFA0))
           (<= #x180B char #x180F)
           (<= #xFE00 char #xFE0F)
           (<= #xE0100 char #xE01EF)
           ;; Letters inside a Korean syllable have no width.
           (and (not composed) (zerop (char-width char))))
       t))

(defun gemini-companion-text-escaped (text &optional composed lines)
  "Return TEXT with its invisible characters escaped.
The escapes have the face `gemini-companion-escape'; other text keeps its
properties.  For COMPOSED, see `gemini-companion-text--invisible-p'.  If LINES
is non-nil, newlines are not escaped."
  (let ((length (length text))
        (pieces nil)
        (start 0)
        (position 0))
    (while (setq position (string-match-p "[^ -~]" text position))
      (let ((end position)
            (escapes nil))
        (while (and (< end length)
                    (not (and lines (eq ?\n (aref text end))))
                    (gemini-companion-text--invisible-p (aref text end) composed))
          (push (gemini-companion-text--escape (aref text end)) escapes)
          (setq end (1+ end)))
        (when escapes
          (push (substring text start position) pieces)
          (push (propertize (apply #'concat (nreverse escapes))
                            'face 'gemini-companion-escape)
                pieces)
          (setq start end))
        (setq position (max end (1+ position)))))
    (apply #'concat (nreverse (cons (substring text start) pieces)))))

(defun gemini-companion-text--escape (char)
  "Return the escape for CHAR, such as \"\\\\u200B\"."
  (pcase char
    (?\t "\\t")
    (?\n "\\n")
    (?\r "\\r")
    ((pred (< #x3FFF7F)) (format "\\x%02X" (- char #x3FFF00)))
    ((pred (< #xFFFF)) (format "\\U%08X" char))
    (_ (format "\\u%04X" char))))

(defun gemini-companion-text-escaped-line (text columns)
  "Return the first nonempty line of TEXT, escaped, in at most COLUMNS columns.
An escaped character takes at least one column, so that no more than COLUMNS
characters of TEXT are examined, however long it is."
  (let* ((start (or (string-match-p "[^\n]" text) (length text)))
         (line (substring text start (min (length text) (+ start columns 1)))))
    (truncate-string-to-width
     (gemini-companion-text-escaped (substring line 0 (string-search "\n" line)))
     columns nil nil (gemini-companion-text-sign ?\u2026 "..."))))

(defun gemini-companion-text-problem (condition)
  "Return the message of CONDITION, an error, escaped for one line.
The message of a `file-error' has the name of the file."
  (gemini-companion-text-escaped
   (pcase condition
     ;; That of Emacs does not say what is wrong.
     (`(file-locked ,file ,who . ,_) (format "%s is being edited by %s" file who))
     (_ (error-message-string condition)))
   'composed))

;;;; Blanks

(defun gemini-companion-text-trim (text &optional characters side)
  "Return TEXT without the CHARACTERS at both ends, by default blanks.
CHARACTERS is a string.  If SIDE is `left' or `right', trim only that one.  The
time of `string-trim' grows with the square of the blanks within TEXT."
  (let ((characters (append (or characters " \t\n\r") nil))
        (beg 0)
        (end (length text)))
    (unless (eq side 'right)
      (while (and (< beg end) (memq (aref text beg) characters))
        (setq beg (1+ beg))))
    (unless (eq side 'left)
      (while (and (< beg end) (memq (aref text (1- end)) characters))
        (setq end (1- end))))
    (substring text beg end)))

;;;; Text typed by the user

(defun gemini-companion-text-keep (text problem)
  "Add TEXT to the kill ring, unless it is blank, and display PROBLEM.
Do not change the clipboard, as the user has not copied TEXT."
  (if (string-blank-p text)
      (message "%s" problem)
    (let ((interprogram-cut-function nil)
          ;; These might wait for the owner of the clipboard, or refuse TEXT.
          (save-interprogram-paste-before-kill nil)
          (kill-transform-function nil))
      (unless (member text kill-ring)
        (kill-new text)))
    (message "%s; your text is in the kill ring" problem)))

(provide 'gemini-companion-text)
;;; gemini-companion-text.el ends here
