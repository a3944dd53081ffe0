;;; gemini-companion-revert.el --- Buffers of files that CLIs write  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The buffer that visits a file is reverted after a CLI has written the file,
;; between two commands.  If the buffer has unsaved text, a command can merge the
;; two texts, because the text from before the first unsaved change is kept.
;; Nothing here saves a buffer or asks.

;;; Code:

(require 'gemini-companion-idle)
(require 'gemini-companion-label)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-replace)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)
(require 'gemini-companion-windows-at-once)

(defvar revert-buffer-preserve-modes)
(declare-function smerge-start-session "smerge-mode")

;;;; Customization

(defcustom gemini-companion-after-write 'marks
  "Display of the changes in a file that a CLI has written.
Nil means only to revert the buffer.  `pulse' means to highlight the
changed lines for a moment.  `marks' means also to mark what you have not
reviewed, at the right, until you keep or undo it.  After
your answer to a review, a window of the buffer also goes to the first
change, unless you type there.  Takes effect with the next edit."
  :type '(choice (const :tag "Only revert the buffer" nil)
                 (const :tag "Highlight the changed lines" pulse)
                 (const :tag "Highlight and mark them" marks))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

(defface gemini-companion-changed
  '((t :inherit highlight :extend t))
  "Face of lines that a CLI has just written."
  :group 'gemini-companion-reviews)

;;;; State

(defvar gemini-companion-revert--watches nil
  "Watches of the files whose buffers are reverted once no command is in progress.")

(defvar gemini-companion-revert-in-place nil
  "Non-nil while a buffer is reverted line by line.
Overlays are then still on their lines.")

(defvar gemini-companion-revert-merged-hook nil
  "Hook run in a buffer into which the text of its file was merged.")

(defvar-local gemini-companion-revert--reported nil
  "The stamp of the file for which this buffer was reported to be stale.")

(defvar-local gemini-companion-revert--ancestor nil
  "Cons of a modification time and a text, or nil.
The text is what this buffer last had in common with its file, while
that is the time at which the file was visited or saved.")

;;;; Start

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'revert)))
  "Keep the text of each file buffer before it is edited.
Revert buffers before commands."
  '((first-change-hook gemini-companion-revert--keep-ancestor)
    ;; After functions that end a search.
    (pre-command-hook gemini-companion-revert--before-command 90)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'revert)))
  "Revert nothing any more, and keep no texts."
  (mapc #'gemini-companion-revert--end gemini-companion-revert--watches)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (kill-local-variable 'gemini-companion-revert--ancestor))))

;;;; When a buffer is reverted

(defun gemini-companion-revert (file)
  "Revert the buffer of FILE, if any, which was written.
Do that at once if no command is in progress, else soon."
  (if (gemini-companion-revert-free-p)
      (gemini-companion-revert-now file)
    (unless (cl-find file gemini-companion-revert--watches :test #'equal
                     :key #'gemini-companion-watch-file)
      (push (gemini-companion-watch-start file #'gemini-companion-revert--soon
                                          'changed)
            gemini-companion-revert--watches))))

(defun gemini-companion-revert--soon (watch _changed occasion)
  "Revert the buffer of the file of WATCH, and stop that, if that is possible.
For OCCASION, see `gemini-companion-watch-check'."
  (when (and (gemini-companion-watch-may-revert-p occasion)
             (gemini-companion-revert-free-p occasion))
    (gemini-companion-revert--end watch)
    (gemini-companion-revert-now (gemini-companion-watch-file watch))
    t))

(defun gemini-companion-revert--end (watch)
  (setq gemini-companion-revert--watches
        (remq watch gemini-companion-revert--watches))
  (gemini-companion-watch-stop watch))

(defun gemini-companion-revert-now (file &optional keys)
  "Revert the buffer of FILE, if any, which was written, at once.
If KEYS, the number of keys until the user answered a review of FILE,
is non-nil, go to the first change."
  ;; A hook of the user may fail.
  (gemini-companion-log-guarded "Reverting a buffer"
    (when-let* ((buffer (gemini-companion-names-buffer file)))
      (gemini-companion-revert--buffer buffer keys))))

(defun gemini-companion-revert-visit (file)
  "Return a buffer that visits FILE with its current text.
FILE may be the copy of a remote file, which is visited then."
  ;; Emacs asks whether to read a file again that a CLI has just written.
  (gemini-companion-revert-now file)
  (find-file-noselect (gemini-companion-names-visited file) 'nowarn))

(defun gemini-companion-revert--before-command ()
  "Revert the current buffer before a command may edit it.
Otherwise Emacs would ask whether to edit a file that has changed."
  (unless (or (not (gemini-companion-watch-any-p))
              ;; Many files may be watched; a remote one is never as visited.
              (let ((file-name-handler-alist nil))
                (verify-visited-file-modtime (current-buffer))))
    (gemini-companion-watch-visited 'command)))

(defun gemini-companion-revert-free-p (&optional now)
  "Return non-nil if no command is in progress that may know places in a text.
That is one that asks, such as `query-replace', or calls others.  If NOW
is non-nil, a command has not begun yet."
  (if now
      (not (or isearch-mode (backtrace-frame 0 'command-execute)))
    (gemini-companion-idle-between-commands-p)))

(defun gemini-companion-revert-unsaved (file)
  "Return the buffer that visits FILE if it has unsaved text, or nil."
  (when-let* ((buffer (gemini-companion-names-buffer file)))
    (and (buffer-modified-p buffer) buffer)))

;;;; Reverting

(defun gemini-companion-revert--current-p ()
  "Return non-nil if the current buffer's file has not changed since."
  (let ((file (gemini-companion-names-file)))
    (if (equal file buffer-file-name)
        (verify-visited-file-modtime)
      ;; Tramp would ask the remote host; it sets times in seconds only.
      (let ((written (car (gemini-companion-watch-stamp file))))
        (or (null written)
            (time-less-p written (visited-file-modtime))
            ;; The time of a link stays as it was when the text was kept.
            (and (buffer-modified-p)
                 (equal (gemini-companion-revert--ancestor-text)
                        (gemini-companion-revert--content-text
                         (gemini-companion-revert--read)))))))))

(defun gemini-companion-revert--plain-p (file)
  "Return non-nil if the current buffer can have the text of FILE, its file.
One with a way of its own to revert, such as a hex dump, has not, and
may ask when it is reverted; nor has one that is decompressed or decrypted."
  (and (eq revert-buffer-function (default-value 'revert-buffer-function))
       (not (or (find-file-name-handler file 'insert-file-contents)
                (gemini-companion-text-unreadable-reason file)))))

(defun gemini-companion-revert--buffer (buffer keys)
  "Revert BUFFER if another program has written its file.
See `gemini-companion-revert-now' for KEYS."
  (with-current-buffer buffer
    (when-let* ((file (gemini-companion-names-file))
                (stamp (gemini-companion-watch-stamp file))
                ((not (or (gemini-companion-text-unreadable-reason file)
                          (gemini-companion-revert--current-p)))))
      (if (gemini-companion-revert--plain-p file)
          (gemini-companion-revert--plain file (car stamp) keys)
        (gemini-companion-revert--report-stale file stamp)))))

(defun gemini-companion-revert--plain (file time keys)
  "Revert the current buffer, of FILE, which was written at TIME.
If the buffer has unsaved text, say how to merge it.  See
`gemini-companion-revert-now' for KEYS."
  (let ((content (gemini-companion-revert--read)))
    (if (gemini-companion-revert--unsaved-text-p
         (gemini-companion-revert--content-text content))
        (message "%s was written, and has unsaved changes here; %s"
                 (gemini-companion-label-file file)
                 (substitute-command-keys
                  (if (gemini-companion-revert--mergeable-p)
                      "\\[gemini-companion-merge] merges them"
                    "\\[ediff-current-file] compares them")))
      (let ((lines (gemini-companion-revert--revert content time)))
        (gemini-companion-revert--highlight lines)
        (when (and keys lines)
          (gemini-companion-revert--go-to (caar lines) keys))))))

(defun gemini-companion-revert--unsaved-text-p (text)
  "Return non-nil if the current buffer has something that is not saved.
TEXT is the current text of its file.  A coding system that the user has
chosen for the next save is not saved, either."
  (and (buffer-modified-p)
       (or (gemini-companion-revert--chosen-for-save)
           (not (string= text (gemini-companion-text-of-buffer))))))

(defun gemini-companion-revert--report-stale (file stamp)
  "Report that the current buffer still has what FILE had before STAMP.
That is a buffer with a way of its own to revert, which may ask.  Do that
once for each time at which FILE was written."
  (unless (equal stamp gemini-companion-revert--reported)
    (setq gemini-companion-revert--reported stamp)
    (message "%s was written; its buffer (%s) still shows the previous text; %s"
             (gemini-companion-label-file file) major-mode
             (substitute-command-keys "type \\[revert-buffer] there"))))

(defun gemini-companion-revert--revert (content time)
  "Revert the current buffer to CONTENT, which was written at TIME.
Point, markers and undo stay, unless the buffer has bytes.  Return the
changed lines, if they are known."
  (let* ((inhibit-message t)
         ;; A hook of the user must not ask, either.
         (inhibit-interaction t)
         ;; Hooks would call Tramp.
         (local (equal buffer-file-name (gemini-companion-names-file)))
         (gemini-companion-revert-in-place enable-multibyte-characters)
         (revert-buffer-preserve-modes t))
    ;; Emacs 31 has renamed the variable; its compiler warns of the old name.
    (cl-progv (list (if (boundp 'revert-buffer-in-progress)
                        'revert-buffer-in-progress
                      'revert-buffer-in-progress-p))
        '(t)
      (if (not enable-multibyte-characters)
          (when local
            (ignore (revert-buffer t t t)))
        (when local
          (gemini-companion-revert--run-hook 'before-revert-hook))
        (gemini-companion-revert--set-time time)
        (prog1 (let ((file-name-handler-alist (and local file-name-handler-alist))
                     (create-lockfiles (and local create-lockfiles)))
                 ;; Undoing the first change of an unmodified buffer would make it
                 ;; unmodified.
                 (let ((create-lockfiles nil))
                   (set-buffer-modified-p t))
                 (prog1 (gemini-companion-replace-text
                         (gemini-companion-revert--content-text content))
                   ;; The mode line displays the coding system, too.
                   (setq buffer-file-coding-system
                         (gemini-companion-revert--content-coding content))
                   (set-buffer-modified-p nil)))
          (when local
            (gemini-companion-revert--run-hook 'after-revert-hook)))))))

(defun gemini-companion-revert--set-time (time)
  "Record that the file of the current buffer was written at TIME.
Of a symbolic link to a remote file, Tramp compares its own time.  A
link to a file of the same name is taken for that, as the names do not
tell, and the host is not asked."
  ;; With that time, it would count as written by Emacs.
  (gemini-companion-watch-visited 'read)
  (when (string-suffix-p (concat "/" (file-name-nondirectory buffer-file-name))
                         (gemini-companion-names-file))
    (set-visited-file-modtime time)))

(defun gemini-companion-revert--run-hook (hook)
  "Run HOOK without the functions of Eglot.
They would close and open the document, whose versions would start again."
  (run-hook-wrapped hook
                    (lambda (function)
                      (unless (string-prefix-p "eglot-" (format "%s" function))
                        (gemini-companion-text-call function)))))

(cl-defstruct (gemini-companion-revert--content
               (:noinline t)
               (:constructor gemini-companion-revert--content (text coding))
               (:copier nil))
  "The TEXT of a file, decoded, and the CODING system to save it in."
  text coding)

(defun gemini-companion-revert--read ()
  "Return the current content of this buffer's file.
The value is a `gemini-companion-revert--content'.

Some CLIs write UTF-8, whatever the previous coding system of the file,
and CRLF everywhere if there was one; others keep it.  So valid UTF-8 is
that, and of other bytes the coding system is the one that the user has
chosen, or else what Emacs finds.  If only ASCII characters were
written, the coding system of the buffer stays."
  (let ((file (gemini-companion-names-file))
        (previous (or buffer-file-coding-system 'undecided))
        (chosen (car buffer-file-coding-system-explicit)))
    (with-temp-buffer
      (let ((found (gemini-companion-revert--insert file 'utf-8)))
        (pcase (gemini-companion-revert--kind previous)
          ('undecoded
           (let ((other (gemini-companion-revert--insert
                         file (and chosen (coding-system-base chosen)))))
             (gemini-companion-revert--content-with other other previous)))
          ('marked
           (delete-char 1)
           (gemini-companion-revert--content-with 'utf-8-with-signature found
                                                  previous))
          ('ascii
           ;; In ISO 2022, an escape sequence begins other characters; and the line
           ;; ends count as the previous coding system finds them: in UTF-16, CRLF
           ;; is no CRLF in UTF-8, and no-conversion leaves each CR.
           (unless (eq 'undecided (coding-system-type previous))
             (setq found (gemini-companion-revert--insert
                          file (coding-system-base previous))))
           (gemini-companion-revert--content-with previous found previous))
          ('utf-8
           (gemini-companion-revert--content-with 'utf-8 found previous)))))))

(defun gemini-companion-revert--insert (file coding)
  "Make the text of FILE, decoded by CODING, that of the current buffer.
If CODING is nil, Emacs finds one.  Return the coding system that was used,
with its line ends.  Point is at the beginning."
  (erase-buffer)
  (let ((coding-system-for-read coding))
    (insert-file-contents file))
  (goto-char (point-min))
  last-coding-system-used)

(defun gemini-companion-revert--kind (previous)
  "Return what the text of the current buffer is, which was decoded as UTF-8.
That is `undecoded' if some of its bytes are not UTF-8; `marked' if it
begins with a byte order mark; `ascii' if it has only ASCII characters,
and may be in PREVIOUS, a coding system; or else `utf-8'."
  (goto-char (point-min))
  (save-excursion
    (cond ((re-search-forward "[\x3fff80-\x3fffff]" nil t) 'undecoded)
          ((eq (char-after) ?\uFEFF) 'marked)
          ((and (not (re-search-forward "[[:nonascii:]]" nil t))
                (gemini-companion-revert--in-ascii-p previous))
           'ascii)
          (t 'utf-8))))

(defun gemini-companion-revert--content-with (coding found previous)
  "Return the content of the current buffer, which is to be saved in CODING.
It has the line ends of FOUND, the coding system by which it was decoded;
if it has no line, PREVIOUS with the text conversion of CODING."
  (let ((eol (coding-system-eol-type found)))
    (gemini-companion-revert--content
     (buffer-string)
     (if (integerp eol)
         (coding-system-change-eol-conversion coding eol)
       (coding-system-change-text-conversion previous coding)))))

(defun gemini-companion-revert--in-ascii-p (coding)
  "Return non-nil if the ASCII in the current buffer may be a text in CODING.
It is in UTF-16 if there is a NUL, which no CLI writes into a text."
  (or (coding-system-get coding :ascii-compatible-p)
      (eq 'iso-2022 (coding-system-type coding))
      (save-excursion
        (goto-char (point-min))
        (search-forward "\0" nil t))))

(defun gemini-companion-revert--chosen-for-save ()
  "Return the coding system chosen for the next save of this buffer, or nil.
That is by \\[set-buffer-file-coding-system], until it is saved."
  (pcase buffer-file-coding-system-explicit
    (`(,saved . ,(and chosen (pred coding-system-p)))
     (and chosen
          (not (and saved (eq (coding-system-base saved)
                              (coding-system-base chosen))))
          (eq (coding-system-base chosen)
              (coding-system-base buffer-file-coding-system))
          buffer-file-coding-system))))

;;;; Texts of buffers

;; For a file with a NUL, or with a stray byte beside characters, Emacs makes a
;; buffer of bytes, which CLIs decode as far as they can.
(defun gemini-companion-revert-text (buffer)
  "Return the text of BUFFER, which visits a file, as CLIs decode it."
  (gemini-companion-text-as-decoded
   (gemini-companion-text-of-buffer buffer)
   (buffer-local-value 'buffer-file-coding-system buffer)))

(defun gemini-companion-revert-lock ()
  "Lock the file of the current buffer, as the user is about to edit that.
If another Emacs has unsaved changes of it, Emacs asks what to do, as it does
when the user types; a `file-locked' error means that nothing is to be done.
Replacing lines does not lock it, as no hooks of changes run meanwhile."
  (unless (buffer-modified-p)
    (lock-file buffer-file-truename)))

(defun gemini-companion-revert-replace-text (text)
  "Make TEXT, as CLIs decode it, the text of the current buffer of a file.
The caller has called `gemini-companion-revert-lock'."
  ;; Replacing runs the hooks of changes once for all of them, but not this one,
  ;; without which the text could not be merged with that of the file later.
  (unless (buffer-modified-p)
    (run-hook-wrapped 'first-change-hook #'gemini-companion-text-call))
  (gemini-companion-replace-text
   (gemini-companion-text-as-in-buffer text buffer-file-coding-system)))

;;;; Showing what changed

(defun gemini-companion-revert--highlight (lines)
  "Highlight LINES of the current buffer for a moment.
LINES is a list of (BEG . END)."
  (when (and gemini-companion-after-write lines)
    (let ((overlays
           (mapcar (pcase-lambda (`(,beg . ,end))
                     (save-excursion
                       (goto-char beg)
                       ;; Where lines were deleted, it is the next one.
                       (make-overlay beg (max end (line-beginning-position 2)))))
                   lines)))
      (dolist (overlay overlays)
        (overlay-put overlay 'face 'gemini-companion-changed))
      (run-at-time 1.5 nil #'mapc #'delete-overlay overlays))))

(defun gemini-companion-revert--go-to (position keys)
  "Go to POSITION in a window of the current buffer, if it is visible.
If that is the selected one, the user must have typed KEYS keys and no
more, and the previous place is added to the mark ring."
  (let* ((window (get-buffer-window nil 'visible))
         (selected (eq window (selected-window))))
    (when (and window
               (<= (point-min) position (point-max))
               (or (not selected)
                   (and (eql keys num-input-keys) (not mark-active))))
      (when selected
        (push-mark nil 'nomsg))
      (set-window-point window position))))

;;;; Merging

(defun gemini-companion-revert--keep-ancestor (&optional text)
  "Keep TEXT, which the current buffer and its file have in common.
By default, it is the text of the buffer, which is about to change,
if that is not too large."
  (with-current-buffer (or (buffer-base-buffer) (current-buffer))
    (when buffer-file-name
      ;; A review of the file displays that it is unsaved.
      (force-mode-line-update t)
      (setq gemini-companion-revert--ancestor
            ;; With more, Emacs would collect garbage at the first key.
            (and (or text (< (buffer-size) (* 1024 1024)))
                 (cons (visited-file-modtime)
                       (or text (gemini-companion-text-of-buffer))))))))

(defun gemini-companion-revert--ancestor-text ()
  (pcase gemini-companion-revert--ancestor
    (`(,(pred (equal (visited-file-modtime))) . ,text) text)))

(defun gemini-companion-revert--mergeable-p ()
  (and enable-multibyte-characters
       (gemini-companion-revert--ancestor-text)
       (executable-find "diff3")))

(defun gemini-companion-revert--unmerged-p (buffer)
  "Return non-nil if BUFFER has unsaved text and its file was written since."
  (with-current-buffer buffer
    (when-let* (((buffer-modified-p))
                (file (gemini-companion-names-file))
                ((gemini-companion-revert--plain-p file))
                ((gemini-companion-text-attributes file)))
      (not (gemini-companion-revert--current-p)))))

(defun gemini-companion-revert-obstacle (buffer)
  "Return why the unsaved text of BUFFER cannot be changed now, or nil.
The value is the predicate of a sentence about its file."
  (with-current-buffer buffer
    (cond (buffer-read-only
           (substitute-command-keys
            "is read-only; type \\[read-only-mode] first"))
          ((not (and enable-multibyte-characters
                     (gemini-companion-revert--plain-p
                      (gemini-companion-names-file))))
           "has unsaved changes; save them first")
          ((gemini-companion-revert--unmerged-p buffer)
           (substitute-command-keys "has unsaved changes and was written; \
\\[gemini-companion-merge] merges them first")))))

(defun gemini-companion-revert--merge ()
  "Merge the current text of this buffer's file into the buffer.
Return the line of the first conflict, or nil if there is none."
  (let* ((time (car (gemini-companion-watch-stamp (gemini-companion-names-file))))
         (content (gemini-companion-revert--read))
         (coding (gemini-companion-revert--content-coding content))
         (theirs (gemini-companion-revert--content-text content))
         (chosen (gemini-companion-revert--chosen-for-save))
         ;; Bytes may have become characters, or the other way round.
         (bytes-p (seq-some #'gemini-companion-text-of-bytes-p
                            (list buffer-file-coding-system coding)))
         (decoded (lambda (text)
                    (if bytes-p
                        (gemini-companion-text-as-decoded text 'raw-text)
                      text)))
         (merged (gemini-companion-text-merged
                  (funcall decoded (gemini-companion-text-of-buffer))
                  (funcall decoded (gemini-companion-revert--ancestor-text))
                  (funcall decoded theirs) "unsaved" "before" "CLI"))
         (text (gemini-companion-text-as-in-buffer (cdr merged) coding)))
    (gemini-companion-revert--set-time time)
    (setq buffer-file-coding-system (or chosen coding))
    (gemini-companion-replace-text text)
    (gemini-companion-revert--keep-ancestor theirs)
    (set-buffer-modified-p (not (and (string= text theirs) (null chosen))))
    (car merged)))

(defun gemini-companion-merge ()
  "Merge your unsaved text with what a CLI wrote to its file.
If nothing is to be merged here, show and merge another buffer.
Lines that differ in both are kept twice, as a conflict for
`smerge-mode'.  Nothing is saved."
  (interactive)
  (unless (gemini-companion-revert--unmerged-p (current-buffer))
    (gemini-companion-windows-at-once
      (pop-to-buffer
       (or (seq-find #'gemini-companion-revert--unmerged-p (buffer-list))
           (user-error
            "No CLI has written a file since you changed its text"))
       '(nil (category . gemini-companion-file)))))
  (unless (gemini-companion-revert--mergeable-p)
    (user-error "%s" (substitute-command-keys "Cannot merge, as the previous \
text is unknown or the program diff3 is missing; \
\\[ediff-current-file] compares the texts")))
  (let ((conflict (gemini-companion-revert--merge)))
    (run-hooks 'gemini-companion-revert-merged-hook)
    (if (null conflict)
        (message "Merged; not saved yet")
      ;; A conflict outside of a narrowing would end SMerge mode at once.
      (widen)
      (smerge-start-session)
      (message "Merged with conflicts; see the menu SMerge"))))

(provide 'gemini-companion-revert)
;;; gemini-companion-revert.el ends here
