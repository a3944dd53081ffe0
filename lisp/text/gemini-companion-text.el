;;; gemini-companion-text.el --- Texts of files and buffers, and their comparison  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Read and write texts in UTF-8: no format is decoded, none of the user's hooks
;; and file name handlers is called, and line ends stay.  Compare and merge texts
;; by the programs diff and diff3, for which a text with bytes that are no
;; characters is printed in ASCII.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)

;;;; Customization

(defface gemini-companion-escape
  '((t :inherit escape-glyph :underline t))
  "Face of the escapes that stand for invisible characters.
It tells them from the same letters, on a terminal without colors as well."
  :group 'gemini-companion)

;;;; Reading

(defun gemini-companion-text-true-name (file)
  "Return the true name of the local FILE, or nil if its links are a loop."
  (let ((file-name-handler-alist nil))
    (ignore-errors (file-truename file))))

(defun gemini-companion-text-attributes (file)
  "Return the attributes of the local FILE, or nil if it does not exist.
Follow symbolic links.  Files are asked for them several times a second, so
the true name, which takes a call for each directory, is found only for a link."
  (let* ((file-name-handler-alist nil)
         ;; FILE may not be accessible, or its links be a loop.
         (attributes (ignore-errors (file-attributes file))))
    (if (stringp (file-attribute-type attributes))
        (when-let* ((name (gemini-companion-text-true-name file)))
          (ignore-errors (file-attributes name)))
      attributes)))

(defun gemini-companion-text-unreadable-reason (file)
  "Return why the text of FILE cannot be read, or nil if it can.
The value is the predicate of a sentence.  It is nil also if the
file does not exist.  Reading a pipe, a terminal or a device may never end."
  (cond ((condition-case nil
             (file-remote-p file)
           ;; Tramp signals an error for an unknown method.
           (error t))
         ;; A CLI takes it for a local one.
         "has a remote file name")
        ((null (gemini-companion-text-true-name file))
         "is a loop of symbolic links")
        ((let ((file-name-handler-alist nil))
           (and (file-exists-p file) (not (file-regular-p file))))
         "is not a regular file")))

;;;; Comparison

(defun gemini-companion-text-lines (text)
  "Return the lines of TEXT."
  (and (not (string-empty-p text))
       (split-string (string-remove-suffix "\n" text) "\n")))

(defun gemini-companion-text-normalized (text)
  "Return TEXT with plain line ends and no byte order mark."
  (string-remove-prefix "\uFEFF" (string-replace "\r\n" "\n" text)))

(defun gemini-companion-text-fit (text now &optional own)
  "Return TEXT with the byte order mark and the line ends of the text NOW.
If OWN is non-nil and both have CRLF, it keeps its line ends."
  (let* ((mark "\uFEFF")
         (crlf (string-search "\r\n" now))
         (plain (gemini-companion-text-normalized text)))
    (concat (and (string-prefix-p mark now) mark)
            (cond ((null crlf) plain)
                  ((and own (string-search "\r\n" text))
                   (string-remove-prefix mark text))
                  (t (string-replace "\n" "\r\n" plain))))))

(defun gemini-companion-text-utf-8 (text)
  "Return the bytes of TEXT in UTF-8; a string of bytes is that already."
  (if (multibyte-string-p text)
      (encode-coding-string text 'utf-8-emacs-unix)
    text))

(defun gemini-companion-text-of-bytes-p (coding)
  "Return non-nil if a buffer with CODING has bytes in place of characters.
These are the buffers of files with a NUL, or with a byte that is not
UTF-8 beside characters that are."
  (eq 'raw-text (coding-system-type (or coding 'undecided))))

(defun gemini-companion-text-as-decoded (text coding)
  "Return TEXT of a buffer with CODING as it is decoded from UTF-8.
A CLI decodes all that is UTF-8, also where the buffer has only bytes."
  (if (gemini-companion-text-of-bytes-p coding)
      (decode-coding-string (gemini-companion-text-utf-8 text) 'utf-8-unix)
    text))

(defun gemini-companion-text-as-in-buffer (text coding)
  "Return TEXT, decoded from UTF-8, as a buffer with CODING has it."
  (if (gemini-companion-text-of-bytes-p coding)
      (string-to-multibyte (gemini-companion-text-utf-8 text))
    text))

(defun gemini-companion-text--raw-p (text bytes)
  "Return non-nil if TEXT may not come back from a file with its BYTES as it is.
The raw bytes 303 and 251 are written as é is, and a surrogate is read
again as three raw bytes."
  (if (multibyte-string-p text)
      ;; A search for these characters in TEXT would take longer than to encode it.
      ;; A raw byte takes two bytes in a string.
      (or (< (length bytes) (string-bytes text))
          ;; A surrogate; no other character has these two bytes, and few the first.
          (and (string-search "\355" bytes)
               (string-match-p "\355[\240-\277]" bytes)))
    (string-match-p "[[:nonascii:]]" text)))

(defun gemini-companion-text--printed (text)
  "Return TEXT in ASCII, with the same lines, which `read' reverses.
Two texts are equal if and only if they are printed alike."
  (let ((print-escape-multibyte t)
        (print-escape-newlines nil)
        (print-escape-nonascii nil)
        (print-escape-control-characters nil))
    (substring (prin1-to-string
                (substring-no-properties (string-to-multibyte text)))
               1 -1)))

(defun gemini-companion-text--run (texts program &rest options)
  "Compare TEXTS by PROGRAM with OPTIONS.
Return a list (STATUS OUTPUT PRINTED): its exit status, the bytes of its
output, and whether the lines in there are printed by
`gemini-companion-text--printed'.  Signal a `file-error' if the disk is
full."
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
  "Return the places where the two TEXTS differ, a list.
Each element is a list (OLD OLD-COUNT NEW NEW-COUNT) of the first line and
the number of lines on each side; of a side without lines, it is the line
that comes after that place.  Lines are counted from 1 on.  Return nil if
there is no such program, or the disk is full.  `gemini-companion-hunk-compare'
makes hunks of it."
  (cl-loop
   with numbers = "\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?"
   with regexp = (format "@@ -%1$s \\+%1$s @@" numbers)
   with output = (or (ignore-error file-error
                       (nth 1 (gemini-companion-text--run texts diff-command
                                                          "-U0")))
                     "")
   ;; A regexp would be matched at each byte of a line of a megabyte.
   for start = (string-search "\n@@ -" output)
   then (string-search "\n@@ -" output (1+ start))
   while (and start (eql (1+ start) (string-match regexp output (1+ start))))
   for (old old-count new new-count)
   = (mapcar (lambda (n) (string-to-number (or (match-string n output) "1")))
             '(1 2 3 4))
   ;; A side without lines names the line before it.
   collect (list (if (zerop old-count) (1+ old) old) old-count
                 (if (zerop new-count) (1+ new) new) new-count)))

(defun gemini-companion-text-unified (old new)
  "Return the unified diff from the text OLD to NEW, without names of files.
It is empty if both are the same.  Signal a `user-error' if diff fails."
  (pcase (gemini-companion-text--run (list old new) diff-command "-u")
    (`(0 . ,_) "")
    (`(1 ,output ,printed)
     ;; Two lines name the files.
     (let ((hunks (substring output (string-search "@@ -" output))))
       (string-to-multibyte
        (if printed
            (read (concat "\"" hunks "\""))
          (decode-coding-string hunks 'utf-8-emacs-unix)))))
    (`(,_ ,output ,_)
     (user-error "%s failed: %s" diff-command
                 (string-trim (decode-coding-string output 'utf-8))))))

(defun gemini-companion-text-merged (mine base theirs &rest labels)
  "Merge the texts MINE and THEIRS, which have both been made from BASE.
The value is a cons of nil and the text; or if there are conflicts, of the
line of the first one in MINE, and the text with all of them, in which
LABELS name the three texts."
  (let* ((end (if (string-search "\r\n" mine) "\r\n" "\n"))
         ;; A regexp would be matched at each character of a line of a megabyte.
         (ends-p (lambda (text)
                   (or (string-empty-p text) (string-suffix-p "\n" text))))
         (last (if (eq (funcall ends-p mine) (funcall ends-p base)) theirs mine))
         ;; diff3 would put the marker of a conflict behind the last line.
         (texts (mapcar (lambda (text)
                          (string-to-multibyte
                           (if (funcall ends-p text) text (concat text end))))
                        (list mine base theirs))))
    ;; Without the option, lines that both have changed alike are conflicts.
    (pcase (gemini-companion-text--run-merge texts "--merge" "--show-overlap")
      (`(0 . ,merged)
       (cons nil (if (funcall ends-p last)
                     merged
                   (string-remove-suffix end merged))))
      (_
       ;; The output is MINE with THEIRS where there are conflicts.
       (let* ((other (cdr (gemini-companion-text--run-merge
                           texts "--merge" "--overlap-only")))
              (differs (compare-strings (car texts) nil nil other nil nil)))
         (cons (length (split-string (substring (car texts) 0 (1- (abs differs)))
                                     "\n"))
               (cdr (apply #'gemini-companion-text--run-merge texts "--merge"
                           (mapcar (apply-partially #'concat "--label=")
                                   labels)))))))))

(defun gemini-companion-text--run-merge (texts &rest options)
  "Return a cons of the status and the output of diff3 with OPTIONS for TEXTS."
  (pcase (apply #'gemini-companion-text--run texts "diff3" options)
    (`(,(and (or 0 1) status) ,output ,printed)
     (cons status
           (string-to-multibyte
            (if printed
                (read (concat "\"" output "\""))
              (decode-coding-string output 'utf-8-emacs-unix)))))
    (`(,_ ,output ,_)
     (user-error "Merging failed: %s"
                 (string-trim (decode-coding-string output 'utf-8))))))

(defun gemini-companion-text-units (text)
  "Return the number of UTF-16 units of TEXT."
  (/ (length (encode-coding-string text 'utf-16le)) 2))

;;;; Display

(defun gemini-companion-text-sign (char ascii)
  "Return CHAR as a string, or ASCII where it cannot be displayed."
  (if (char-displayable-p char) (string char) ascii))

(defmacro gemini-companion-text-keeping-message (&rest body)
  "Evaluate BODY, and then show the current message again, or none."
  (declare (indent 0) (debug t))
  (let ((said (make-symbol "said")))
    `(let ((,said (current-message)))
       (prog1 (progn ,@body)
         (unless (equal ,said (current-message))
           (let ((message-log-max nil))
             (message (and ,said "%s") ,said)))))))

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

;;;; Replacing

(defun gemini-companion-text-call (function &rest args)
  "Call FUNCTION, of a hook of the user, with ARGS; return nil.
Report its failure.  It cannot end the caller or change its buffer."
  (catch 'gemini-companion-text-call
    (unwind-protect
        (condition-case-unless-debug err
            (save-current-buffer (apply function args))
          ((error quit) (message "A hook failed: %S" err)))
      ;; A function that throws must not end the caller.
      (throw 'gemini-companion-text-call nil))))

;;;; Names

(defun gemini-companion-text-visited (buffer)
  "Return the name of the file that BUFFER or its base visits, or nil.
It is without /: in front."
  (when-let* ((file (buffer-file-name (or (buffer-base-buffer buffer) buffer))))
    (string-remove-prefix "/:" file)))

(defun gemini-companion-text-same-file-p (a b)
  "Return non-nil if A and B, two local true names, are of one file.
On a volume that ignores case they may differ."
  (or (string= a b)
      (and (eq t (compare-strings a nil nil b nil nil t))
           (let ((file-name-handler-alist nil))
             (file-equal-p a b)))))

(defun gemini-companion-text-in-directory-p (file directory)
  "Return non-nil if FILE is in DIRECTORY or below; both are true names.
A name of a directory in place of FILE ends with a slash."
  (and (string-prefix-p directory file t)
       ;; Most of many directories need no new string.
       (let ((directory (file-name-as-directory directory)))
         (and (string-prefix-p directory file t)
              (gemini-companion-text-same-file-p
               directory (substring file 0 (length directory)))))))

;;;; Files

(defun gemini-companion-text-bytes (file)
  "Return the bytes of the regular FILE, at most as many as its size."
  (let ((attributes (gemini-companion-text-attributes file))
        (inhibit-modification-hooks t)
        (file-name-handler-alist nil))
    (unless (or (null attributes) (file-regular-p file))
      (signal 'file-error (list "Not a regular file" file)))
    (with-temp-buffer
      (set-buffer-multibyte nil)
      (insert-file-contents-literally file nil 0
                                      (file-attribute-size attributes))
      (buffer-string))))

(defun gemini-companion-text-read (file)
  "Return the text of FILE, which is in UTF-8, as a string."
  (decode-coding-string (gemini-companion-text-bytes file) 'utf-8-unix))

(defun gemini-companion-text-write (file &optional text)
  "Write TEXT, or the whole current buffer, to FILE as UTF-8.
Bytes that are not UTF-8 are written as they were read, and so is TEXT
if it is a string of bytes."
  (let ((file-name-handler-alist nil)
        (buffer-file-format nil)
        (write-region-annotate-functions nil)
        (write-region-post-annotation-function nil)
        (write-region-inhibit-fsync t)
        (create-lockfiles nil)
        ;; A text that is in ASCII, as most are, is encoded without being copied.
        (coding-system-for-write (if text 'no-conversion 'utf-8-emacs-unix)))
    ;; Emacs would lock the file, and ask if a buffer has an older text of it.
    (write-region (and text (gemini-companion-text-utf-8 text)) nil file nil
                  'silent "/")))

(defun gemini-companion-text-write-changed (file text)
  "Write TEXT to FILE atomically, and make its directory, unless FILE has TEXT."
  (unless (and (file-exists-p file)
               (equal text (gemini-companion-text-read file)))
    (make-directory (file-name-directory file) t)
    (let ((draft (concat file ".new")))
      (gemini-companion-text-write draft text)
      (rename-file draft file t))))

(defun gemini-companion-text-rewrite (file old text)
  "Write TEXT to FILE of the user, whose bytes are OLD, as UTF-8.
TEXT may be a string of bytes.  The file is written in place: it keeps
its hard links, its owner and its modes.  If it has other bytes than OLD,
signal a `file-error' and write nothing.  If TEXT cannot be written, as
where the disk is full, write OLD again, and signal the error."
  (let ((inhibit-quit t))
    (unless (equal old (gemini-companion-text-bytes file))
      (signal 'file-error (list "File has changed meanwhile" file)))
    (condition-case err
        (gemini-companion-text-write file text)
      (error
       ;; A file that could not be opened for writing still has these bytes.
       (unless (equal old (ignore-errors (gemini-companion-text-bytes file)))
         (gemini-companion-text--put-back file old))
       (signal (car err) (cdr err))))))

(defun gemini-companion-text--put-back (file bytes)
  "Write BYTES to FILE, of which a part was written over.
There is room for them, as they were there, unless another program has
taken it.  Then write them elsewhere, and signal an error that says where."
  (condition-case nil
      (gemini-companion-text-write file bytes)
    (file-error
     (let ((copy (make-temp-file
                  (concat (file-name-nondirectory file) "-"))))
       (gemini-companion-text-write copy bytes)
       (signal 'file-error (list "File was cut; its text is kept in" copy))))))

;;;; Invisible characters

(defun gemini-companion-text-invisible-p (char &optional composed)
  "Return non-nil if CHAR is not displayed as what it is.
That is a control or format character, a blank other than a space, a
filler, a character without a meaning or a glyph, and a mark that is
combined with the character before it.  Such a mark has no glyph where the
display does not compose characters.  If COMPOSED is non-nil, it does, and
only marks that are never displayed count."
  (and (or (< char ?\s) (< ?~ char))
       (or (memq (get-char-code-property char 'general-category)
                 (if composed
                     '(nil Cc Cf Cn Co Cs Zl Zp Zs)
                   '(nil Cc Cf Cn Co Cs Zl Zp Zs Mn Mc Me)))
           (memq char '(#x34F #x115F #x1160 #x17B4 #x17B5 #x2800 #x3164 #xFFA0))
           (<= #x180B char #x180F)
           (<= #xFE00 char #xFE0F)
           (<= #xE0100 char #xE01EF)
           ;; The second and third parts of a Korean syllable are letters.
           (and (not composed) (zerop (char-width char))))
       t))

(defun gemini-companion-text-escaped (text &optional composed lines)
  "Return TEXT with escapes for its invisible characters, in a face.
COMPOSED is as for `gemini-companion-text-invisible-p'.  If LINES is
non-nil, newlines stay.  Other properties of TEXT stay."
  (let ((length (length text))
        (pieces nil)
        (start 0)
        (position 0))
    (while (setq position (string-match-p "[^ -~]" text position))
      (let ((end position)
            (escapes nil))
        (while (and (< end length)
                    (not (and lines (eq ?\n (aref text end))))
                    (gemini-companion-text-invisible-p (aref text end) composed))
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
  "Return a text that stands for CHAR."
  (pcase char
    (?\t "\\t")
    (?\n "\\n")
    (?\r "\\r")
    ((pred (< #x3FFF7F)) (format "\\x%02X" (- char #x3FFF00)))
    ((pred (< #xFFFF)) (format "\\U%08X" char))
    (_ (format "\\u%04X" char))))

(defun gemini-companion-text-escaped-line (text columns)
  "Return the first line of TEXT that is not empty, in at most COLUMNS columns.
Invisible characters are escaped, so that each takes a column at least, and
no more than COLUMNS of them are read, however long TEXT is."
  (let* ((start (or (string-match-p "[^\n]" text) (length text)))
         (line (substring text start (min (length text) (+ start columns 1)))))
    (truncate-string-to-width
     (gemini-companion-text-escaped (substring line 0 (string-search "\n" line)))
     columns nil nil (gemini-companion-text-sign ?\u2026 "..."))))

(defvar gemini-companion-text-glyphless
  (let ((table (copy-sequence glyphless-char-display)))
    (dolist (characters '(#x200B #xFEFF (#x202A . #x202E) (#x2066 . #x2069)) table)
      (set-char-table-range table characters 'hex-code)))
  "Value of `glyphless-char-display' in a buffer with the text of an edit.
It shows the codes of characters that reorder other text, or hide in a word.")

;;;; Texts that the user has typed

(defun gemini-companion-text-keep (text problem)
  "Add TEXT to the kill ring, unless it is blank, and display PROBLEM."
  (if (string-blank-p text)
      (message "%s" problem)
    (kill-new text)
    (message "%s; your text is in the kill ring" problem)))

(provide 'gemini-companion-text)
;;; gemini-companion-text.el ends here
