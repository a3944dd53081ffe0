;;; gemini-companion-text.el --- Texts of files and buffers, and their hunks  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Read and write texts in UTF-8: no format is decoded, none of the user's hooks
;; and file name handlers is called, and line ends stay.  Compare and merge them,
;; and replace the text of a buffer.
;;
;; A page is a buffer whose whole text is computed: when something has changed and
;; the buffer is visible, the text is computed again, and replaces in the buffer
;; what differs, so that point and windows stay at their lines.
;;
;; A hunk is one block of changed lines, a list (OLD OLD-COUNT NEW NEW-COUNT) of
;; lines, from 1 on, in the original and in the proposal.  An excluded hunk is
;; marked by an overlay in the proposal, whose text stays; the text to be
;; written is computed from both when it is needed.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)

(defun gemini-companion-text-true-name (file)
  "Return the true name of the local FILE, or nil if its links are a loop."
  (let ((file-name-handler-alist nil))
    (ignore-errors (file-truename file))))

(defun gemini-companion-text-attributes (file)
  "Return the attributes of the local FILE, or nil if it does not exist.
Follow symbolic links."
  (when-let* ((name (gemini-companion-text-true-name file)))
    (let ((file-name-handler-alist nil))
      (file-attributes name))))

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

(defun gemini-companion-text--raw-p (text)
  "Return non-nil if TEXT may not come back from a file as it is.
The raw bytes 303 and 251 are written as é is, and a surrogate is read
again as three raw bytes."
  (if (multibyte-string-p text)
      (and (< (length text) (string-bytes text)) ; is fast, and most are ASCII
           (string-match-p "[\x3fff80-\x3fffff\xd800-\xdfff]" text))
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
  (let* ((printed (seq-some #'gemini-companion-text--raw-p texts))
         (coding-system-for-read 'no-conversion)
         (default-directory "/")
         files)
    (unwind-protect
        (with-temp-buffer
          (set-buffer-multibyte nil)
          (dolist (text texts)
            ;; Only the user can read it.
            (push (make-temp-file "gemini-companion-") files)
            (gemini-companion-text-write
             (car files)
             (if printed (gemini-companion-text--printed text) text)))
          (list (apply #'call-process program nil t nil "--text"
                       (append options (reverse files)))
                (buffer-string)
                printed))
      (mapc #'delete-file files))))

(defun gemini-companion-text-diff (texts)
  "Return the hunks in which the two TEXTS differ, a list.
Return nil if there is no such program, or the disk is full."
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
         ;; Otherwise a marker of a conflict comes behind the last line.
         (texts (mapcar (lambda (text)
                          (string-to-multibyte
                           (if (funcall ends-p text) text (concat text end))))
                        (list mine base theirs))))
    ;; Otherwise lines that both have changed alike are conflicts.
    (pcase (gemini-companion-text--run-merge texts "--merge" "--show-overlap")
      (`(0 . ,merged)
       (cons nil (if (funcall ends-p last)
                     merged
                   (string-remove-suffix end merged))))
      (_
       ;; This is MINE with THEIRS where there are conflicts.
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
        (condition-case err
            (save-current-buffer (apply function args))
          ((error quit) (message "A hook failed: %S" err)))
      ;; Also when it throws.
      (throw 'gemini-companion-text-call nil))))

(defun gemini-companion-text-replace (text &optional beg end)
  "Make TEXT the text of the current buffer, as one undo step.
With BEG and END non-nil, replace only the whole lines between them.
Replace only what differs in the lines that differ, so that point,
windows, markers and overlays stay.  A unibyte buffer gets the bytes of
TEXT in UTF-8.  Return the positions of these lines,
a list of (BEG . END), which are equal where lines were deleted.
Change hooks run once for all changes; some positions may be missing if
they change the text, which then becomes TEXT nevertheless."
  (let ((target (current-buffer))
        (end (and end (copy-marker end t)))
        (passes (list (not inhibit-modification-hooks) nil))
        (deactivate-mark nil)
        (inhibit-quit t)
        (inhibit-read-only t)
        ;; In the midst of a change, they could leave half of the text.
        (inhibit-modification-hooks t)
        ;; A collection would truncate the undo list that is being made.
        (gc-cons-threshold (max gc-cons-threshold (* 64 1024 1024))))
    (with-temp-buffer
      (set-buffer-multibyte (buffer-local-value 'enable-multibyte-characters
                                                target))
      (insert (if enable-multibyte-characters
                  text
                (gemini-companion-text-utf-8 text)))
      (let ((source (current-buffer)))
        (with-current-buffer target
          (save-excursion
            (save-restriction
              (undo-boundary)
              (prog1 (mapcan (lambda (hooks)
                               (if end (narrow-to-region beg end) (widen))
                               (gemini-companion-text--replace source hooks))
                             passes)
                (undo-boundary)))))))))

(defun gemini-companion-text--differences (source)
  "Return the hunks between the accessible text and the buffer SOURCE."
  (unless (let ((case-fold-search nil))
            (zerop (compare-buffer-substrings nil nil nil source nil nil)))
    (let* ((old (count-lines (point-min) (point-max)))
           (new (with-current-buffer source
                  (count-lines (point-min) (point-max)))))
      (or (unless (member (list old new) `((0 ,new) (,old 0) (1 1)))
            (gemini-companion-text-diff
             (list (buffer-substring-no-properties (point-min) (point-max))
                   (gemini-companion-text-of-buffer source))))
          (list (list 1 old 1 new))))))

(defun gemini-companion-text--replace (source hooks)
  "Replace the accessible lines that differ from the buffer SOURCE.
Run the change hooks if HOOKS is non-nil.  Return the positions of the
new lines."
  (when-let* ((hunks (gemini-companion-text--differences source)))
    (let* ((place (lambda (line)
                    (goto-char (point-min))
                    (forward-line (1- line))
                    (point)))
           (beg (funcall place (caar hunks)))
           (end (funcall place (+ (caar (last hunks)) (cadar (last hunks)))))
           (run (if hooks #'run-hook-wrapped #'ignore))
           size alone)
      (funcall run 'before-change-functions #'gemini-companion-text-call
               beg end)
      (setq size (buffer-size))
      ;; Otherwise Emacs reports that an empty undo list is broken, which would
      ;; clear the echo area.
      (unless buffer-undo-list
        (setq buffer-undo-list (list nil)
              alone t))
      (prog1 (combine-change-calls beg end
               (gemini-companion-text--replace-each hunks source))
        ;; At such a boundary at the end, undo-tree would loop.
        (when alone
          (setq buffer-undo-list (nbutlast buffer-undo-list)))
        (funcall run 'after-change-functions #'gemini-companion-text-call
                 beg (+ end (- (buffer-size) size)) (- end beg))))))

(defun gemini-companion-text--replace-each (hunks source)
  "Replace the lines of each of HUNKS by the new ones in the buffer SOURCE.
Return their positions."
  (goto-char (point-min))
  (let ((next 1))
    (mapcar (pcase-lambda (`(,line ,count ,_ ,new-count))
              (forward-line (- line next))
              (setq next (+ line count))
              (let ((beg (point)))
                ;; One line by one, as long as both have some.
                (while (and (< 0 count) (< 1 new-count) (not (eobp)))
                  (gemini-companion-text--edit 1 source 1)
                  (setq count (1- count)
                        new-count (1- new-count)))
                (gemini-companion-text--edit count source new-count)
                (cons beg (point))))
            hunks)))

(defun gemini-companion-text--edit (count source new-count)
  "Replace COUNT lines at point by NEW-COUNT lines at that place in SOURCE.
Keep the common prefix and suffix.  The text before is the same in both."
  (let* ((beg (point))
         (there (1+ (- beg (point-min))))
         (new (with-current-buffer source
                (goto-char there)
                (forward-line new-count)
                (buffer-substring there (point))))
         (old (progn (forward-line count)
                     (buffer-substring-no-properties beg (point))))
         (head (length (fill-common-string-prefix old new)))
         (tail (length (fill-common-string-prefix
                        (reverse (substring old head))
                        (reverse (substring new head))))))
    (goto-char (+ beg head))
    ;; A marker at the beginning of the tail, or of the next line, stays there.
    (funcall (if (or (< 0 count) (< (buffer-size) (point)))
                 #'insert
               #'insert-before-markers)
             (substring new head (- (length new) tail)))
    (delete-char (- (length old) head tail))
    (forward-char tail)))

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

(defvar-local gemini-companion-page--write nil
  "Function that writes the text of this page.")

(defvar-local gemini-companion-page--timer (timer-create)
  "Timer that refreshes this page.")

(defun gemini-companion-page-set-up (write hooks)
  "Make the current buffer a page whose text the function WRITE writes.
It is written again by `revert-buffer', and soon after one of HOOKS has
run.  If there are HOOKS, also when a window displays it."
  (let* ((page (current-buffer))
         (soon (lambda (&rest _) (gemini-companion-page-refresh-soon page)))
         (end (lambda ()
                (dolist (hook hooks)
                  (remove-hook hook soon))
                (cancel-timer gemini-companion-page--timer))))
    (setq gemini-companion-page--write write)
    (setq-local revert-buffer-function
                (lambda (&rest _) (gemini-companion-page-refresh)))
    (dolist (hook hooks)
      (add-hook hook soon))
    (when hooks
      (add-hook 'window-buffer-change-functions soon nil t)
      (add-hook 'window-size-change-functions soon nil t))
    (add-hook 'kill-buffer-hook end nil t)
    (add-hook 'change-major-mode-hook end nil t)))

(defun gemini-companion-page-refresh-soon (page)
  "Write the text of the buffer PAGE again soon if it is visible then.
Each call waits for further ones."
  (when (buffer-live-p page)
    (with-current-buffer page
      (cancel-timer gemini-companion-page--timer)
      (setq gemini-companion-page--timer
            (run-at-time 0.2 nil
                         (lambda ()
                           (when (get-buffer-window page t)
                             (with-current-buffer page
                               (gemini-companion-page-refresh)))))))))

(defun gemini-companion-page-refresh ()
  "Write the text of the current buffer, a page, again."
  (funcall gemini-companion-page--write)
  ;; Hooks that ran meanwhile need no other refresh.
  (cancel-timer gemini-companion-page--timer))

;;;; Text

(defun gemini-companion-page-replace (text &optional beg end)
  "Replace the text of the current buffer, and its properties, by TEXT.
Point, mark, markers and the windows stay at their lines.  With BEG and
END non-nil, replace only the whole lines between them."
  (widen)
  (with-silent-modifications
    (gemini-companion-text-replace text beg end)
    (let ((start (or beg 1))
          (position 0))
      ;; `object-intervals' takes seconds for ten thousand of them.
      (while (< position (length text))
        (let ((next (next-property-change position text (length text))))
          (set-text-properties (+ start position) (+ start next)
                               (text-properties-at position text))
          (setq position next))))))

;;;; Invisible characters

(defvar gemini-companion-text-glyphless
  (let ((table (copy-sequence glyphless-char-display)))
    (dolist (characters '(#x200B #xFEFF (#x202A . #x202E) (#x2066 . #x2069)) table)
      (set-char-table-range table characters 'hex-code)))
  "Value of `glyphless-char-display' in a buffer with the text of an edit.
It shows the codes of characters that reorder other text, or hide in a word.")

;;;; Hunks

(defun gemini-companion-hunk-find (original proposal)
  "Return the hunks between the buffers ORIGINAL and PROPOSAL.
Signal an error if they cannot be compared."
  (unless (executable-find diff-command)
    (user-error "Cannot find the program %s; install it or customize \
`diff-command'"
                diff-command))
  (let ((texts (mapcar #'gemini-companion-text-of-buffer
                       (list original proposal))))
    (or (gemini-companion-text-diff texts)
        (unless (apply #'string= texts)
          (user-error "%s failed" diff-command)))))

;;;; Lines of hunks

(defun gemini-companion-hunk-line (line)
  "Return where LINE, from 1 on, of the current buffer begins."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (forward-line (1- line))
      (point))))

(defun gemini-companion-hunk-lines (added removed)
  "Return a text for ADDED and REMOVED numbers of lines."
  (format "+%d %s%d" added (gemini-companion-text-sign ?\u2212 "-") removed))

(defun gemini-companion-hunk-range (lines)
  "Return a text such as \"3\" or \"3-5\" for LINES.
LINES is a number, or a cons (FIRST . LAST)."
  (pcase lines
    (`(,first . ,last) (format "%d-%d" first last))
    (line (number-to-string line))))

(defun gemini-companion-hunk-old-text (hunk original)
  "Return the lines of HUNK in the buffer ORIGINAL."
  (car (gemini-companion-hunk--texts hunk original original)))

(defun gemini-companion-hunk--texts (hunk original proposal)
  "Return the lines of HUNK in the buffers ORIGINAL and PROPOSAL, a list."
  (pcase-let ((`(,old ,old-count ,new ,new-count) hunk))
    (cl-loop for (buffer line count) in `((,original ,old ,old-count)
                                          (,proposal ,new ,new-count))
             collect (with-current-buffer buffer
                       (save-restriction
                         (widen)
                         (buffer-substring-no-properties
                          (gemini-companion-hunk-line line)
                          (gemini-companion-hunk-line (+ line count))))))))

;;;; Excluded hunks

(defface gemini-companion-excluded-text
  '((t :strike-through t))
  "Face of the text of a hunk that is excluded from a proposal.
The lines are dimmed, too."
  :group 'gemini-companion-reviews)

(defun gemini-companion-hunk-toggle (hunk original proposal)
  "Exclude HUNK of the buffer ORIGINAL from PROPOSAL, or restore it.
Return non-nil if it is excluded now."
  (if-let* ((mark (seq-find
                   (lambda (mark)
                     (equal hunk (overlay-get mark 'gemini-companion-hunk)))
                   (gemini-companion-hunk-marks proposal))))
      (ignore (delete-overlay mark))
    (pcase-let ((`(,_ ,old-count ,new ,new-count) hunk))
      (with-current-buffer proposal
        (let* ((beg (gemini-companion-hunk-line new))
               (end (gemini-companion-hunk-line (+ new new-count)))
               (mark (make-overlay beg end nil (< beg end))))
          (cl-loop for (property value)
                   on `( gemini-companion-hunk ,hunk
                         gemini-companion-texts
                         ,(gemini-companion-hunk--texts hunk original proposal)
                         face (gemini-companion-excluded-text shadow)
                         line-prefix "x"
                         wrap-prefix " ")
                   by #'cddr
                   do (overlay-put mark property value))
          ;; Without a line of its own it would be invisible.
          (when (= beg end)
            (overlay-put mark 'before-string
                         (propertize
                          (format (ngettext "x %d removed line stays\n"
                                            "x %d removed lines stay\n"
                                            old-count)
                                  old-count)
                          'face 'shadow))))))
    t))

(defun gemini-companion-hunk-marks (proposal)
  "Return the overlays of the hunks excluded from PROPOSAL, in order."
  (with-current-buffer proposal
    (save-restriction
      (widen)
      (seq-sort-by
       (lambda (mark) (car (overlay-get mark 'gemini-companion-hunk)))
       #'<
       (seq-filter #'gemini-companion-hunk--valid-p
                   (gemini-companion-hunk--all-marks))))))

(defun gemini-companion-hunk--all-marks ()
  "Return the overlays of excluded hunks in the accessible text."
  (seq-filter (lambda (overlay) (overlay-get overlay 'gemini-companion-hunk))
              (overlays-in (point-min) (point-max))))

(defun gemini-companion-hunk--valid-p (mark)
  "Return non-nil if MARK still has its lines, and these only.
The buffer of MARK is current, and widened."
  (pcase-let ((`(,original ,proposed)
               (overlay-get mark 'gemini-companion-texts))
              (beg (overlay-start mark))
              (end (overlay-end mark)))
    (and (string= (buffer-substring-no-properties beg end) proposed)
         (memq (char-before beg) '(?\n nil))
         (or (= end (point-max))
             (and (memq (char-before end) '(?\n nil))
                  ;; Otherwise the next line would become a part of the last.
                  (string-match-p "\\(?:\\`\\|\n\\)\\'" original))))))

(defun gemini-companion-hunk-prune (proposal &optional hunks original)
  "Restore the excluded hunks of PROPOSAL that were edited; return how many.
If ORIGINAL is non-nil, PROPOSAL was compared with it: restore also those
that are none of HUNKS."
  (with-current-buffer proposal
    (save-restriction
      (widen)
      (let ((restored (seq-remove
                       (lambda (mark)
                         (and (gemini-companion-hunk--valid-p mark)
                              (or (null original)
                                  (gemini-companion-hunk--update
                                   mark hunks original))))
                       (gemini-companion-hunk--all-marks))))
        (mapc #'delete-overlay restored)
        (length restored)))))

(defun gemini-companion-hunk--update (mark hunks original)
  "Record which one of HUNKS, of the buffer ORIGINAL, is marked by MARK.
Return nil if it is none."
  (when-let* ((hunk (cl-find (line-number-at-pos (overlay-start mark)) hunks
                             :key #'cl-third))
              ((equal (overlay-get mark 'gemini-companion-texts)
                      (gemini-companion-hunk--texts hunk original
                                                    (current-buffer)))))
    (overlay-put mark 'gemini-companion-hunk hunk)))

(defun gemini-companion-hunk-excluded (proposal)
  "Return the hunks that are excluded from the buffer PROPOSAL.
They have the lines of the last comparison."
  (mapcar (lambda (mark) (overlay-get mark 'gemini-companion-hunk))
          (gemini-companion-hunk-marks proposal)))

(defun gemini-companion-hunk-remaining-text (proposal)
  "Return the text of the buffer PROPOSAL without the excluded hunks.
In their place it has the lines of the original."
  (let ((text (gemini-companion-text-of-buffer proposal))
        (position 0))
    (concat (mapconcat (lambda (mark)
                         (prog1 (concat
                                 (substring text position
                                            (1- (overlay-start mark)))
                                 (car (overlay-get mark 'gemini-companion-texts)))
                           (setq position (1- (overlay-end mark)))))
                       (gemini-companion-hunk-marks proposal) "")
            (substring text position))))

(provide 'gemini-companion-text)
;;; gemini-companion-text.el ends here
