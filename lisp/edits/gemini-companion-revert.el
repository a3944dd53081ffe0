;;; gemini-companion-revert.el --- Buffers of files that CLIs write  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Revert the buffer that visits a file after a CLI has written the file, between two
;; commands.  If the buffer has unsaved text, a command can merge the two texts: their
;; common ancestor is recorded before the first unsaved change.  This file never saves
;; a buffer, and never prompts.

;;; Code:

(require 'gemini-companion-coding)
(require 'gemini-companion-idle)
(require 'gemini-companion-label)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-replace)
(require 'gemini-companion-server)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)

(defvar revert-buffer-preserve-modes)
(declare-function smerge-start-session "smerge-mode")

;;;; Customization

(defcustom gemini-companion-after-write 'marks
  "Display of the changes in a file that a CLI has written.
Nil means only to revert the buffer.  `pulse' means to highlight the
changed lines for a moment.  `marks' means also to mark what you have not
reviewed, at the right of its lines, until you keep or undo it.  After
your answer to a review, a window of the buffer also goes to the first
change, unless you are typing there.  Takes effect with the next edit."
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
  "Non-nil while a buffer is reverted line by line, which preserves overlays.")

(defvar gemini-companion-revert-merge-hook nil
  "Hook run in a buffer before the text of its file is merged into it.")

(defvar gemini-companion-revert-merged-hook nil
  "Hook run in a buffer into which the text of its file was merged.")

(defvar gemini-companion-revert-remote-hook nil
  "Hook run in a buffer that has got the new text of its remote file.
Other hooks of a revert would call Tramp.")

(defvar-local gemini-companion-revert--stamp nil
  "The stamp of the file that this buffer was last reverted to, or nil.
If only the user reverts this buffer, it was reported to be stale for that.  A
file that is replaced in the same tick of the clock differs by its size or its
inode only.")

(defvar-local gemini-companion-revert--misread nil
  "The last answer of `gemini-companion-revert--misread-p', (STAMP . ANSWER).")

(defvar-local gemini-companion-revert--ancestor nil
  "Common ancestor of this buffer and its file, (TIME . TEXT), or nil.
It is valid while TIME is the modification time at which the file was visited
or saved.  A rename in Emacs may choose another major mode.")
(put 'gemini-companion-revert--ancestor 'permanent-local t)

(defvar gemini-companion-revert--vc-buffers nil
  "Buffers whose mode line has an outdated state of version control.")

(defvar gemini-companion-revert--vc-timer (timer-create)
  "Timer of `gemini-companion-revert--refresh-vc'.")

;;;; Start

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'revert)))
  "Record the text of a file buffer before its first change.
Revert buffers before commands, and those of a host that was connected.  Update
mode lines once they are displayed."
  '((first-change-hook gemini-companion-revert--keep-ancestor)
    (gemini-companion-names-hosts-hook gemini-companion-revert--remote)
    (window-buffer-change-functions gemini-companion-revert--refresh-vc-soon)
    ;; After functions that end a search.
    (pre-command-hook gemini-companion-revert--before-command 90)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'revert)))
  "Stop reverting, and remove the recorded texts."
  (mapc #'gemini-companion-revert--end gemini-companion-revert--watches)
  (cancel-timer gemini-companion-revert--vc-timer)
  (setq gemini-companion-revert--vc-buffers nil)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (kill-local-variable 'gemini-companion-revert--ancestor))))

;;;; When a buffer is reverted

(defun gemini-companion-revert (file)
  "Revert the buffer that visits FILE, if any, after a CLI has written FILE.
If a command is in progress, do so after it."
  (if (gemini-companion-revert-free-p)
      (gemini-companion-revert-now file)
    (unless (cl-find file gemini-companion-revert--watches :test #'equal
                     :key #'gemini-companion-watch-file)
      (push (gemini-companion-watch-start file #'gemini-companion-revert--soon
                                          'changed)
            gemini-companion-revert--watches))))

(cl-defmethod gemini-companion-server-receive ((_method (eql 'file-written)) file)
  "Revert the buffer of FILE, which a CLI has written without a review."
  (gemini-companion-revert file))

(defun gemini-companion-revert--soon (watch _changed occasion)
  "Revert the buffer of the file of WATCH, and end WATCH, if that is possible.
For OCCASION, see `gemini-companion-watch-check'."
  (when (and (gemini-companion-watch-may-revert-p occasion)
             (gemini-companion-revert-free-p occasion))
    (gemini-companion-revert--end watch)
    (gemini-companion-revert-now (gemini-companion-watch-file watch))
    t))

(defun gemini-companion-revert--end (watch)
  "End WATCH."
  (setq gemini-companion-revert--watches
        (remq watch gemini-companion-revert--watches))
  (gemini-companion-watch-stop watch))

(defun gemini-companion-revert-now (file &optional keys)
  "Revert the buffer that visits FILE, if any, immediately.
KEYS is nil, or the value of `num-input-keys' when the user answered a review
of FILE; then move point to the first change."
  ;; A hook of the user may signal an error.
  (gemini-companion-log-guarded "Reverting a buffer"
    (when-let* ((buffer (gemini-companion-names-buffer file)))
      (gemini-companion-revert--buffer buffer keys))))

(defun gemini-companion-revert--remote ()
  "Revert the buffers of remote files that were written while no host had them.
A host may have been disconnected before its buffers were reverted."
  (dolist (buffer (buffer-list))
    (when-let* ((copy (gemini-companion-names-copy-of-buffer buffer))
                ((not (gemini-companion-revert-current-p buffer))))
      (gemini-companion-revert copy))))

(defun gemini-companion-revert-visit (file)
  "Return a buffer that visits FILE with its current text.
If FILE is the copy of a remote file, visit the remote file."
  ;; Emacs would ask whether to read a changed file again.
  (gemini-companion-revert-now file)
  (find-file-noselect (gemini-companion-names-visited file) 'nowarn))

(defun gemini-companion-revert--before-command ()
  "Revert the current buffer before a command may edit it, if a CLI is writing.
Otherwise Emacs would ask whether to edit a file that has changed.  A file from
which no CLI expects anything is not asked."
  (unless (or (not (gemini-companion-watch-here-p))
              ;; Most buffers are current.  Tramp need not be called.
              (let ((file-name-handler-alist nil))
                (verify-visited-file-modtime (current-buffer))))
    (gemini-companion-watch-visited 'command)))

(defun gemini-companion-revert-free-p (&optional now)
  "Return non-nil if no command is in progress that may store positions.
A command that prompts, such as `query-replace', does so.  If NOW is non-nil,
the next command has not begun yet."
  (if now
      (not (or isearch-mode (backtrace-frame 0 'command-execute)))
    (gemini-companion-idle-between-commands-p)))

(defun gemini-companion-revert-unsaved (file)
  "Return the buffer that visits FILE if it has unsaved text, or nil."
  (when-let* ((buffer (gemini-companion-names-buffer file)))
    (and (buffer-modified-p buffer) buffer)))

;;;; Reverting

(defun gemini-companion-revert--current-p ()
  "Return non-nil if the file has not changed since the buffer visited it."
  (let ((file (gemini-companion-names-file)))
    (if (equal file buffer-file-name)
        (let ((file-name-handler-alist nil))
          (and (verify-visited-file-modtime)
               (or (not (equal (car gemini-companion-revert--stamp)
                               (visited-file-modtime)))
                   (equal gemini-companion-revert--stamp
                          (gemini-companion-watch-stamp file)))))
      ;; Tramp would ask the remote host; it sets times in seconds only.
      (let ((written (car (gemini-companion-watch-stamp file))))
        (or (null written)
            (time-less-p written (visited-file-modtime))
            ;; For a link, the recorded time may be that of the link itself.
            (and (buffer-modified-p)
                 (equal (gemini-companion-revert--ancestor-text)
                        (gemini-companion-revert--content-text
                         (gemini-companion-revert--read)))))))))

(defun gemini-companion-revert-current-p (buffer)
  "Return non-nil if BUFFER has read what its file has now.
For a remote file, whose time may prove nothing, compare the texts; nobody asks
the host."
  (with-current-buffer buffer
    (or (gemini-companion-revert--current-p)
        (and (not (equal (gemini-companion-names-file) buffer-file-name))
             (not (buffer-modified-p))
             (equal (gemini-companion-text-of-buffer)
                    (ignore-error file-error
                      (gemini-companion-revert--content-text
                       (gemini-companion-revert--read))))))))

(defun gemini-companion-revert--plain-p (file)
  "Return non-nil if the text of FILE can replace that of its current buffer.
Return nil for a buffer with another `revert-buffer-function', such as a hex
dump, which may prompt, and for a file that is decompressed or decrypted."
  (and (eq revert-buffer-function (default-value 'revert-buffer-function))
       (not (or (find-file-name-handler file 'insert-file-contents)
                (gemini-companion-text-unreadable-reason file)))))

(defun gemini-companion-revert-own-way-p (buffer)
  "Return non-nil if only the user reverts BUFFER, which visits a file."
  (with-current-buffer buffer
    (not (gemini-companion-revert--plain-p (gemini-companion-names-file)))))

(defun gemini-companion-revert--buffer (buffer keys)
  "Revert BUFFER if another program has written its file.
See `gemini-companion-revert-now' for KEYS."
  (with-current-buffer buffer
    (when-let* ((file (gemini-companion-names-file))
                (stamp (gemini-companion-watch-stamp file))
                ((not (or (gemini-companion-text-unreadable-reason file)
                          (gemini-companion-revert--current-p)))))
      (cond
       ((gemini-companion-revert--plain-p file)
        (gemini-companion-revert--plain file stamp keys))
       ;; The user must revert it, as it may prompt then.
       ((not (equal stamp gemini-companion-revert--stamp))
        (setq gemini-companion-revert--stamp stamp)
        (message "%s was written; its buffer (%s) still shows the previous text; %s"
                 (gemini-companion-label-file file) major-mode
                 (substitute-command-keys "type \\[revert-buffer] there")))))))

(defun gemini-companion-revert--plain (file stamp keys)
  "Revert the current buffer, of FILE, which has STAMP.
If the buffer has unsaved text, report how to merge it instead.  For KEYS, see
`gemini-companion-revert-now'."
  (let ((content (gemini-companion-revert--read)))
    (if (and (buffer-modified-p)
             (not (string= (gemini-companion-revert--content-text content)
                           (gemini-companion-text-of-buffer))))
        (message "%s was written, and has unsaved changes in Emacs; %s"
                 (gemini-companion-label-file file)
                 (substitute-command-keys
                  (if (gemini-companion-revert--mergeable-p)
                      "\\[gemini-companion-merge] merges them"
                    "\\[ediff-current-file] compares them")))
      (setq gemini-companion-revert--stamp stamp)
      (let ((lines (gemini-companion-revert--revert content (car stamp))))
        (gemini-companion-revert--highlight lines)
        (gemini-companion-revert--outdate-vc)
        (when (and keys lines)
          (gemini-companion-revert--go-to (caar lines) keys))))))

;; `vc-refresh-state' waits for git, so one buffer is updated at a time, and only if it
;; is displayed.
(defun gemini-companion-revert--outdate-vc ()
  "Make VC compute the state of the file of the current buffer again.
Do nothing for a remote file."
  (when (and vc-mode
             (equal buffer-file-name (gemini-companion-names-file))
             (not (file-remote-p buffer-file-name)))
    (vc-file-clearprops buffer-file-name)
    (cl-pushnew (current-buffer) gemini-companion-revert--vc-buffers)
    (gemini-companion-revert--refresh-vc-soon)))

(defun gemini-companion-revert--refresh-vc-soon (&rest _)
  "Update the mode lines of displayed buffers soon, if some are outdated."
  (when gemini-companion-revert--vc-buffers
    (cancel-timer gemini-companion-revert--vc-timer)
    (setq gemini-companion-revert--vc-timer
          (run-at-time 0.5 nil #'gemini-companion-revert--refresh-vc))))

(defun gemini-companion-revert--refresh-vc ()
  "Update the mode line of a displayed buffer, if the user is idle; then go on."
  (cl-callf2 seq-filter #'buffer-live-p gemini-companion-revert--vc-buffers)
  (when-let* ((buffer (seq-find (lambda (buffer) (get-buffer-window buffer 'visible))
                                gemini-companion-revert--vc-buffers)))
    (when (gemini-companion-idle-user-p)
      (cl-callf2 delq buffer gemini-companion-revert--vc-buffers)
      (gemini-companion-log-guarded "Version control"
        (with-current-buffer buffer
          (vc-refresh-state))))
    (gemini-companion-revert--refresh-vc-soon)))

(defun gemini-companion-revert--revert (content time)
  "Revert the current buffer to CONTENT, which was written at TIME.
Preserve point, markers and undo unless the buffer is unibyte.  Return the
changed lines, a list of (BEG . END), or nil if they are unknown."
  (let* ((inhibit-message t)
         ;; Hooks of the user must not prompt.
         (inhibit-interaction t)
         ;; For a remote file, hooks would call Tramp.
         (local (equal buffer-file-name (gemini-companion-names-file)))
         (gemini-companion-revert-in-place enable-multibyte-characters)
         (revert-buffer-preserve-modes t))
    ;; Emacs 31 has renamed the variable; its compiler warns of the old name.
    (cl-progv (list (if (boundp 'revert-buffer-in-progress)
                        'revert-buffer-in-progress
                      'revert-buffer-in-progress-p))
        '(t)
      (cond (enable-multibyte-characters
             (when local
               (gemini-companion-revert--run-hook 'before-revert-hook))
             (gemini-companion-revert--set-time time)
             (prog1 (gemini-companion-revert--replace content local)
               (gemini-companion-revert--run-hook
                (if local 'after-revert-hook 'gemini-companion-revert-remote-hook))))
            (local
             (ignore (revert-buffer t t t)))))))

(defun gemini-companion-revert--replace (content local)
  "Replace the text of the current buffer by CONTENT; leave it unmodified.
LOCAL is nil for a remote file: then call no file name handler, and lock no
file.  Return the changed lines."
  (let ((file-name-handler-alist (and local file-name-handler-alist))
        (create-lockfiles (and local create-lockfiles)))
    ;; In an unmodified buffer, undoing the replacement would mark the old text as saved.
    (let ((create-lockfiles nil))
      (set-buffer-modified-p t))
    (prog1 (gemini-companion-replace-text
            (gemini-companion-revert--content-text content))
      ;; A symbolic link may lead to another file now, whose text this is.
      (when local
        (setq buffer-file-truename
              (abbreviate-file-name (file-truename buffer-file-name))))
      ;; Before the update of the mode line, which displays the coding system.
      (setq buffer-file-coding-system
            (gemini-companion-revert--content-coding content))
      (set-buffer-modified-p nil))))

(defun gemini-companion-revert--set-time (time)
  "Record that the file of the current buffer was written at TIME.
For a symbolic link to a remote file, keep the recorded time, with which Tramp
compares the time of the link itself.  A link whose target has the same name
cannot be recognized without calling the host, and is not treated as a link."
  ;; First report pending writes: after TIME is recorded, they would count as
  ;; written by Emacs.
  (gemini-companion-watch-visited 'read)
  (when (string-suffix-p (concat "/" (file-name-nondirectory buffer-file-name))
                         (gemini-companion-names-file))
    (set-visited-file-modtime time)))

(defun gemini-companion-revert--run-hook (hook)
  "Run HOOK without the functions of Eglot.
They would close and open the document, and restart its version numbers."
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
  "Return the current content of this buffer's file, as Emacs would visit it.
The value is a `gemini-companion-revert--content'.  As in a revert, a coding
system that the user has chosen to read the file comes first."
  (let ((file (gemini-companion-names-file))
        (coding-system-for-read (car buffer-file-coding-system-explicit)))
    (with-temp-buffer
      (insert-file-contents file)
      (gemini-companion-revert--content
       (buffer-string)
       (or (find-new-buffer-file-coding-system last-coding-system-used)
           buffer-file-coding-system)))))

;;;; Texts of buffers

(defun gemini-companion-revert-shown-in (buffer)
  "Return the coding system of BUFFER if its lines are not those of its file.
Return nil if the lines are those that a CLI reads.  A file in UTF-8 may declare
another coding system, and lines that end in CR are one line for a CLI."
  (with-current-buffer buffer
    (let ((coding (gemini-companion-coding-of-buffer buffer)))
      (and (or (eq 2 (coding-system-eol-type buffer-file-coding-system))
               (and coding
                    (not (eq 'utf-8 (coding-system-type coding)))
                    (gemini-companion-revert--misread-p)))
           buffer-file-coding-system))))

(defun gemini-companion-revert--misread-p ()
  "Return non-nil if the file of the current buffer is UTF-8, and not ASCII.
The buffer has another coding system.  The file is read again once it changes."
  (when-let* ((file (gemini-companion-names-file))
              (stamp (gemini-companion-watch-stamp file)))
    (unless (equal stamp (car gemini-companion-revert--misread))
      (setq gemini-companion-revert--misread
            (cons stamp
                  (when-let* (((not (gemini-companion-text-unreadable-reason file)))
                              (bytes (ignore-error file-error
                                       (gemini-companion-text-bytes file))))
                    (and (string-match-p "[^[:ascii:]]" bytes)
                         (gemini-companion-coding-utf-8-p bytes))))))
    (cdr gemini-companion-revert--misread)))

(defun gemini-companion-revert-encoded ()
  "Return the bytes that saving the current buffer would write.
Return nil if its coding system does not have all of the characters."
  (let* ((text (gemini-companion-text-of-buffer))
         (own (or buffer-file-coding-system 'undecided))
         (coding (if (memq (coding-system-type own) '(undecided))
                     (coding-system-change-eol-conversion
                      'utf-8 (pcase (coding-system-eol-type own)
                               ((and type (pred integerp)) type)
                               (_ 'unix)))
                   own))
         (bytes (encode-coding-string text coding)))
    ;; Emacs decodes raw bytes into a unibyte string.
    (and (equal text (string-to-multibyte (decode-coding-string bytes coding)))
         bytes)))

(defun gemini-companion-revert-lock ()
  "Lock the file of the current buffer before a command of the user edits it.
If another Emacs has locked the file, Emacs asks what to do, as it does when
the user types; the answer may be a `file-locked' error.  Call this before
replacing lines, which runs no hooks that would lock the file."
  (unless (buffer-modified-p)
    (lock-file buffer-file-truename)))

(defun gemini-companion-revert-replace-text (text)
  "Replace the text of the current file buffer by TEXT.
The caller must have called `gemini-companion-revert-lock'."
  ;; Replacing text does not run this hook, which records the ancestor of a merge.
  (unless (buffer-modified-p)
    (run-hook-wrapped 'first-change-hook #'gemini-companion-text-call))
  (gemini-companion-replace-text text))

;;;; Showing what changed

(defun gemini-companion-revert--highlight (lines)
  "Highlight LINES of the current buffer for a moment.
LINES is a list of (BEG . END)."
  (when (and gemini-companion-after-write lines)
    (let ((overlays
           (mapcar (pcase-lambda (`(,beg . ,end))
                     (save-excursion
                       (goto-char beg)
                       ;; If lines were deleted, highlight the next line.
                       (make-overlay beg (max end (line-beginning-position 2)))))
                   lines)))
      (dolist (overlay overlays)
        (overlay-put overlay 'face 'gemini-companion-changed))
      (run-at-time 1.5 nil #'mapc #'delete-overlay overlays))))

(defun gemini-companion-revert--go-to (position keys)
  "Move point to POSITION in a window of the current buffer, if there is one.
In the selected window, do so only if `num-input-keys' is still KEYS, and push
the previous position on the mark ring."
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
  "Record TEXT as the common ancestor of the current buffer and its file.
TEXT defaults to the text of the buffer, which is about to change, unless it is
larger than 1 MB."
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
  "Return the common ancestor of the current buffer and its file, or nil."
  (pcase gemini-companion-revert--ancestor
    (`(,(pred (equal (visited-file-modtime))) . ,text) text)))

(defun gemini-companion-revert--mergeable-p ()
  "Return non-nil if the current buffer can be merged with its file.
A buffer of raw bytes, such as those of a file with a NUL, has no text."
  (and enable-multibyte-characters
       (not (eq 'raw-text (coding-system-type
                           (or buffer-file-coding-system 'undecided))))
       (gemini-companion-revert--ancestor-text)
       (executable-find "diff3")))

(defun gemini-companion-revert-unmerged-p (buffer)
  "Return non-nil if BUFFER has unsaved text and its file was written since."
  (with-current-buffer buffer
    (when-let* (((buffer-modified-p))
                (file (gemini-companion-names-file))
                ((gemini-companion-revert--plain-p file))
                ((gemini-companion-text-attributes file)))
      (not (gemini-companion-revert--current-p)))))

(defun gemini-companion-revert-blocked-reason (buffer)
  "Return the reason why the unsaved text of BUFFER cannot be changed, or nil.
The value is a verb phrase about its file."
  (with-current-buffer buffer
    (cond (buffer-read-only
           (substitute-command-keys
            "is read-only; type \\[read-only-mode] first"))
          ((not (and enable-multibyte-characters
                     (null (gemini-companion-revert-shown-in buffer))
                     (gemini-companion-revert--plain-p
                      (gemini-companion-names-file))))
           "has unsaved changes; save them first")
          ((gemini-companion-revert-unmerged-p buffer)
           (substitute-command-keys "has unsaved changes and was written; \
\\[gemini-companion-merge] merges them first")))))

(defun gemini-companion-revert--merge ()
  "Merge the current text of this buffer's file into the buffer.
Return non-nil if there are conflicts."
  (let* ((time (car (gemini-companion-watch-stamp (gemini-companion-names-file))))
         (content (gemini-companion-revert--read))
         (theirs (gemini-companion-revert--content-text content))
         (merged (gemini-companion-text-merged
                  (gemini-companion-text-of-buffer)
                  (gemini-companion-revert--ancestor-text)
                  theirs "unsaved" "before" "CLI")))
    (gemini-companion-revert--set-time time)
    (setq buffer-file-coding-system
          (gemini-companion-revert--content-coding content))
    (gemini-companion-replace-text (cdr merged))
    (gemini-companion-revert--keep-ancestor theirs)
    (set-buffer-modified-p (not (string= (cdr merged) theirs)))
    (car merged)))

(defun gemini-companion-merge ()
  "Merge your unsaved text with what a CLI has written to the file.
If this buffer needs no merge, display and merge another one that does.
Conflicting lines are kept in both versions, for `smerge-mode'.  The buffer is
not saved."
  (interactive)
  (unless (gemini-companion-revert-unmerged-p (current-buffer))
    (pop-to-buffer
     (or (seq-find #'gemini-companion-revert-unmerged-p (buffer-list))
         (user-error "No buffer needs a merge"))
     '(nil (category . gemini-companion-file))))
  (unless (gemini-companion-revert--mergeable-p)
    (user-error "%s" (substitute-command-keys "Cannot merge, as the common \
ancestor is unknown, the file is not a text, or the program diff3 is missing; \
\\[ediff-current-file] compares the texts")))
  (run-hooks 'gemini-companion-revert-merge-hook)
  (let ((conflict (gemini-companion-revert--merge)))
    (run-hooks 'gemini-companion-revert-merged-hook)
    (if (null conflict)
        (message "Merged; not saved yet")
      ;; SMerge mode ends at once if a narrowing hides the conflict.
      (widen)
      (smerge-start-session)
      (message "Merged with conflicts; resolve them by the menu SMerge"))))

(provide 'gemini-companion-revert)
;;; gemini-companion-revert.el ends here
