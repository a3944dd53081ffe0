;;; gemini-companion-revert.el --- Buffers of files that CLIs write  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A CLI writes a file some time after its review ended.  Watch for that
;; for a few seconds, and bring the buffer that visits the file up to date.
;; If the buffer has unsaved text, keep the text that the file had before, so that
;; a command can merge the two.  Nothing here saves a file or asks.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-name)
(require 'gemini-companion-text)
(require 'subr-x)

(declare-function smerge-start-session "smerge-mode")

;;;; Customization

(defcustom gemini-companion-after-write 'pulse
  "Display of the changes in a file that a CLI has written.
Nil means only to revert the buffer.  `pulse' means to highlight the
changed lines for a moment, and `show' also to display the buffer
without selecting it.  After your answer to a review, a window of the
buffer also goes to the first change, unless you type there meanwhile."
  :type '(choice (const :tag "Only revert the buffer" nil)
                 (const :tag "Highlight the changed lines" pulse)
                 (const :tag "Highlight them, and display the buffer" show))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

(defface gemini-companion-changed
  '((t :inherit highlight :extend t))
  "Face of lines that a CLI has just written."
  :group 'gemini-companion-reviews)

;;;; State

(defconst gemini-companion-revert--delays
  '(0.02 0.03 0.05 0.1 0.2 0.4 0.8 1.6 3.2 3.6)
  "Seconds before each check of a file.")

(defconst gemini-companion-revert--small 65536
  "Size in bytes up to which a file is written at once.")

(cl-defstruct (gemini-companion-revert--watch
               (:constructor gemini-companion-revert--watch-make)
               (:copier nil))
  "A file that is expected to be written.
BEFORE is its stamp before it is written, LAST the stamp at the last
check, and DONE the stamp when its buffer was reverted."
  file before last done delays timer
  (keys nil :documentation "Value of `num-input-keys' when the user answered, \
or nil.")
  (written nil :documentation "WRITTEN of `gemini-companion-revert-expect'."))

(defvar gemini-companion-revert--watches nil
  "Watches of the files that are expected to be written.")

(defconst gemini-companion-revert--largest (* 1024 1024)
  "Size of a file above which it is neither compared nor merged.")

(defvar gemini-companion-revert--reported nil
  "The last report, or nil.")

(defvar-local gemini-companion-revert--ancestor nil
  "The text of this buffer's file before a CLI wrote it, or nil.")

;;;; Watching

(defun gemini-companion-revert-idle-p ()
  "Return non-nil if no file is expected to be written."
  (null gemini-companion-revert--watches))

(defun gemini-companion-revert-expect (file &optional written answered)
  "Bring the buffer of FILE up to date when FILE is written soon.
Call WRITTEN, if it is non-nil, with t once that has happened, or with
nil if it does not happen, unless FILE is expected again or watching
stops before.  ANSWERED is non-nil if the user has just answered a
review of FILE."
  (dolist (watch gemini-companion-revert--watches)
    (when (equal file (gemini-companion-revert--watch-file watch))
      (gemini-companion-revert--cancel watch)))
  (let* ((stamp (gemini-companion-revert-stamp file))
         (watch (gemini-companion-revert--watch-make
                 :file file :before stamp :last stamp :written written
                 :keys (and answered num-input-keys)
                 :delays gemini-companion-revert--delays)))
    (push watch gemini-companion-revert--watches)
    (when-let* ((buffer (gemini-companion-revert--visiting file)))
      (with-current-buffer buffer
        (setq gemini-companion-revert--ancestor
              (gemini-companion-revert--file-text))
        (add-hook 'pre-command-hook
                  #'gemini-companion-revert--before-command nil t)))
    (gemini-companion-revert--later watch)))

(defun gemini-companion-revert (file &optional keys)
  "Bring the buffer of FILE, which was written, up to date.
If KEYS, the number of keys until the user answered a review of FILE,
is non-nil, go to the first change."
  (when-let* ((buffer (gemini-companion-revert--visiting file)))
    ;; A hook of the user may fail.
    (with-demoted-errors "Reverting a buffer: %S"
      (gemini-companion-revert--buffer buffer keys))))

(defun gemini-companion-revert-stop ()
  "Stop watching all files."
  (mapc #'gemini-companion-revert--cancel gemini-companion-revert--watches))

(defun gemini-companion-revert--cancel (watch)
  "End WATCH."
  (setq gemini-companion-revert--watches
        (remq watch gemini-companion-revert--watches))
  (cancel-timer (gemini-companion-revert--watch-timer watch))
  (when-let* ((buffer (gemini-companion-revert--visiting
                       (gemini-companion-revert--watch-file watch))))
    (with-current-buffer buffer
      (when (verify-visited-file-modtime buffer)
        (setq gemini-companion-revert--ancestor nil))
      (remove-hook 'pre-command-hook
                   #'gemini-companion-revert--before-command t))))

(defun gemini-companion-revert--later (watch)
  "Schedule the next check of WATCH, or end WATCH after the last one."
  (if-let* ((delay (pop (gemini-companion-revert--watch-delays watch))))
      (setf (gemini-companion-revert--watch-timer watch)
            (run-at-time delay nil #'gemini-companion-revert--recheck watch))
    (gemini-companion-revert--cancel watch)
    (gemini-companion-revert--end watch nil)))

(defun gemini-companion-revert--end (watch written)
  "Call the function of WATCH once, with whether its file was WRITTEN."
  (when-let* ((function (gemini-companion-revert--watch-written watch)))
    (setf (gemini-companion-revert--watch-written watch) nil)
    (with-demoted-errors "Following a written file: %S"
      (funcall function written))))

(defun gemini-companion-revert--recheck (watch)
  "Check WATCH, and end it after its file was written or deleted."
  (let ((done (gemini-companion-revert--watch-done watch)))
    (gemini-companion-revert--check watch)
    (if (and done
             (member (gemini-companion-revert--watch-last watch)
                     (list done nil)))
        (gemini-companion-revert--cancel watch)
      (gemini-companion-revert--later watch))))

(defun gemini-companion-revert--check (watch)
  "Revert the buffer of the file of WATCH if it was written completely.
A small file is complete unless it is empty; a large one is if it has
not changed since the last check."
  (let* ((stamp (gemini-companion-revert-stamp
                 (gemini-companion-revert--watch-file watch)))
         (last (gemini-companion-revert--watch-last watch)))
    (setf (gemini-companion-revert--watch-last watch) stamp)
    (when (and (not (member stamp
                            (list nil
                                  (gemini-companion-revert--watch-before watch)
                                  (gemini-companion-revert--watch-done watch))))
               (or (< 0 (nth 1 stamp) gemini-companion-revert--small)
                   (equal stamp last)))
      (setf (gemini-companion-revert--watch-done watch) stamp)
      (gemini-companion-revert
       (gemini-companion-revert--watch-file watch)
       (gemini-companion-revert--watch-keys watch))
      (gemini-companion-revert--end watch t))))

(defun gemini-companion-revert--before-command ()
  "Bring the current buffer up to date before a command may edit it.
Otherwise Emacs would ask whether to edit a file that has changed."
  (dolist (watch gemini-companion-revert--watches)
    (when (eq (current-buffer)
              (gemini-companion-revert--visiting
               (gemini-companion-revert--watch-file watch)))
      (gemini-companion-revert--check watch))))

(defun gemini-companion-revert-stamp (file)
  "Return the time, size and inode of FILE, or nil if it does not exist.
Follow symbolic links."
  (when-let* ((attributes (gemini-companion-text-attributes file)))
    (list (file-attribute-modification-time attributes)
          (file-attribute-size attributes)
          (file-attribute-inode-number attributes))))

(defun gemini-companion-revert-unsaved-p (file)
  "Return non-nil if a buffer that visits FILE has unsaved text."
  (when-let* ((buffer (gemini-companion-revert--visiting file)))
    (buffer-modified-p buffer)))

(defun gemini-companion-revert--visiting (file)
  "Return the buffer that visits the local FILE, or nil."
  (let ((file-name-handler-alist nil))
    ;; The links of FILE may be a loop.
    (ignore-errors (find-buffer-visiting file))))

;;;; Reports

(defun gemini-companion-revert-report (format &rest arguments)
  "Show a message about the outcome of an edit.
FORMAT and ARGUMENTS are those of `message'.  The announcement of a
review does not replace it."
  (setq gemini-companion-revert--reported (apply #'message format arguments)))

(defun gemini-companion-revert-shown-report ()
  "Return the last report if it is still in the echo area, or nil."
  (and gemini-companion-revert--reported
       (string-prefix-p gemini-companion-revert--reported
                        (or (current-message) ""))
       gemini-companion-revert--reported))

;;;; Bringing up to date

(defun gemini-companion-revert--buffer (buffer keys)
  "Bring BUFFER up to date if another program has written its file.
See `gemini-companion-revert' for KEYS."
  (with-current-buffer buffer
    (unless (or (verify-visited-file-modtime buffer)
                (gemini-companion-text-problem buffer-file-name))
      (pcase-let ((`(,text . ,coding) (gemini-companion-revert--read)))
        (cond ((string= text (gemini-companion-text-of-buffer))
               (set-visited-file-modtime)
               (set-buffer-modified-p nil)
               (gemini-companion-revert--save-as coding)
               (gemini-companion-revert--show nil))
              ((not (buffer-modified-p))
               (let ((lines (gemini-companion-revert--changes text coding)))
                 (gemini-companion-revert--show lines)
                 (when (and keys lines)
                   (gemini-companion-revert--go-to (caar lines) keys))))
              (t
               (gemini-companion-revert-report
                (substitute-command-keys
                 "%s was written, and has unsaved changes here; \
\\[gemini-companion-merge] merges them")
                (gemini-companion-name buffer-file-name))))))))

(defun gemini-companion-revert--revert (text coding)
  "Revert the current buffer in place to TEXT, which is in CODING.
Point, markers and undo stay."
  (let* ((inhibit-message t)
         (read-only buffer-read-only)
         (in-place (and enable-multibyte-characters
                        (eq revert-buffer-function #'revert-buffer--default)))
         (revert-buffer-insert-file-contents-function
          (if in-place
              (lambda (&rest _)
                (gemini-companion-text-replace text)
                (set-buffer-modified-p nil)
                (set-visited-file-modtime))
            revert-buffer-insert-file-contents-function)))
    (revert-buffer t t t)
    ;; Before Emacs 29 a revert resets it.
    (setq buffer-read-only read-only)
    (when in-place
      (gemini-companion-revert--save-as coding))))

(defun gemini-companion-revert--read ()
  "Return (TEXT . CODING) of the current text of this buffer's file.
A CLI writes UTF-8, whatever the previous coding of the file,
and CRLF everywhere if there was one.  If only ASCII characters were
written, the coding of the buffer stays."
  (let ((file buffer-file-name)
        (previous (or buffer-file-coding-system 'undecided))
        (multibyte enable-multibyte-characters))
    (with-temp-buffer
      (set-buffer-multibyte multibyte)
      (let ((coding-system-for-read (if multibyte 'utf-8 previous)))
        (insert-file-contents file))
      (goto-char (point-min))
      (let* ((coding
              (cond ((not multibyte) previous)
                    ((re-search-forward "[\x3fff80-\x3fffff]" nil t)
                     (erase-buffer)
                     (insert-file-contents file)
                     last-coding-system-used)
                    ((eq (char-after) ?\uFEFF)
                     (delete-char 1)
                     'utf-8-with-signature)
                    ((and (coding-system-get previous :ascii-compatible-p)
                          (not (re-search-forward "[[:nonascii:]]" nil t)))
                     previous)
                    (t 'utf-8)))
             (eol (coding-system-eol-type last-coding-system-used)))
        (cons (buffer-string)
              (if (integerp eol)
                  (coding-system-change-eol-conversion coding eol)
                (coding-system-change-text-conversion previous coding)))))))

(defun gemini-companion-revert--save-as (coding)
  "Set the coding of the current buffer to CODING, that of its file."
  (setq buffer-file-coding-system coding)
  (when buffer-file-coding-system-explicit
    (setq buffer-file-coding-system-explicit (list coding)))
  (force-mode-line-update))

;;;; Showing what changed

(defun gemini-companion-revert--show (lines)
  "Show the current buffer and LINES, a list of (BEG . END).
See `gemini-companion-after-write'."
  (when (and (eq gemini-companion-after-write 'show)
             (not (get-buffer-window nil 'visible)))
    (let ((window (display-buffer (current-buffer)
                                  '(nil (inhibit-same-window . t)))))
      (when (and window lines)
        (set-window-point window (caar lines)))))
  (when (and gemini-companion-after-write lines)
    (gemini-companion-revert--highlight lines)))

(defun gemini-companion-revert--go-to (position keys)
  "Go to POSITION in a window of the current buffer, if it is visible.
If that is the selected one, the user must not have typed more than
KEYS keys, and the previous place is added to the mark ring."
  (let* ((window (get-buffer-window nil 'visible))
         (selected (eq window (selected-window))))
    (when (and window
               (<= (point-min) position (point-max))
               (or (not selected)
                   (and (= keys num-input-keys) (not mark-active))))
      (when selected
        (push-mark nil 'nomsg))
      (set-window-point window position)
      (unless (pos-visible-in-window-p position window)
        (with-selected-window window
          (recenter))))))

(defun gemini-companion-revert--changes (text coding)
  "Revert this buffer to TEXT in CODING, and return the changed lines.
The value is a list of (BEG . END), or nil if it is not needed."
  (if (not (and gemini-companion-after-write
                (< (buffer-size) gemini-companion-revert--largest)))
      (ignore (gemini-companion-revert--revert text coding))
    (save-restriction
      (widen)
      (gemini-companion-revert--number)
      (gemini-companion-revert--revert text coding)
      (prog1 (gemini-companion-revert--unnumbered)
        (with-silent-modifications
          (remove-text-properties (point-min) (point-max)
                                  '(gemini-companion-line nil)))))))

(defun gemini-companion-revert--number ()
  "Number the lines of the current buffer by a text property.
Text that an edit in place does not touch keeps it."
  (with-silent-modifications
    (save-excursion
      (goto-char (point-min))
      (let ((number 0))
        (while (not (eobp))
          (put-text-property (point) (progn (forward-line) (point))
                             'gemini-companion-line (cl-incf number)))))))

(defun gemini-companion-revert--unnumbered ()
  "Return the lines that are new, or where others were deleted.
The value is a list of (BEG . END)."
  (let ((position (point-min))
        (last 0)
        changes)
    (while (< position (point-max))
      (let ((number (get-text-property position 'gemini-companion-line))
            (end (next-single-property-change
                  position 'gemini-companion-line nil (point-max))))
        (when (or (null number) (< (1+ last) number))
          (push (gemini-companion-revert--lines position
                                                (if number position end))
                changes))
        (setq last (or number last)
              position end)))
    (nreverse changes)))

(defun gemini-companion-revert--lines (beg end)
  "Return the whole lines from BEG to END as a cons of positions."
  (save-excursion
    (cons (progn (goto-char beg) (line-beginning-position))
          (progn (goto-char end)
                 (if (and (bolp) (< beg end))
                     end
                   (line-beginning-position 2))))))

(defun gemini-companion-revert--highlight (lines)
  "Highlight LINES, a list of (BEG . END), for a moment."
  (let ((overlays (mapcar (pcase-lambda (`(,beg . ,end))
                            (make-overlay beg end))
                          lines)))
    (dolist (overlay overlays)
      (overlay-put overlay 'face 'gemini-companion-changed))
    (run-at-time 1.5 nil #'mapc #'delete-overlay overlays)))

;;;; Merging

(defun gemini-companion-revert--file-text ()
  "Return the text of the current buffer's file, or nil if it is too large."
  (when (gemini-companion-revert--readable-p)
    (let ((file buffer-file-name)
          (coding-system-for-read buffer-file-coding-system))
      (with-temp-buffer
        (insert-file-contents file)
        (buffer-string)))))

(defun gemini-companion-revert--readable-p ()
  "Return non-nil if the current buffer's file can be merged."
  (let ((size (file-attribute-size (file-attributes buffer-file-name))))
    (and size
         (< size gemini-companion-revert--largest)
         (not (gemini-companion-text-problem buffer-file-name)))))

(defun gemini-companion-merge ()
  "Merge your unsaved text with what a CLI wrote to this file.
Lines that differ in both are kept twice, as a conflict for
`smerge-mode'.  Nothing is saved."
  (interactive)
  (unless (and buffer-file-name gemini-companion-revert--ancestor
               (not (verify-visited-file-modtime)))
    (user-error "No CLI has written this file since you changed it"))
  (unless (gemini-companion-revert--readable-p)
    (user-error "The file does not exist, or is too large to be merged"))
  (pcase-let* ((`(,theirs . ,coding) (gemini-companion-revert--read))
               (plain (if (eql 1 (coding-system-eol-type coding))
                          #'gemini-companion-text-plain
                        #'identity))
               (`(,status . ,text)
                (gemini-companion-revert--merged
                 (funcall plain (gemini-companion-text-of-buffer))
                 (funcall plain gemini-companion-revert--ancestor)
                 theirs)))
    (gemini-companion-text-replace text)
    (gemini-companion-revert--save-as coding)
    (set-visited-file-modtime)
    (set-buffer-modified-p (not (string= text theirs)))
    (setq gemini-companion-revert--ancestor nil)
    (if (eql status 0)
        (message "Merged; not saved yet")
      (smerge-start-session)
      (message "Merged with conflicts; see the menu SMerge"))))

(defun gemini-companion-revert--merged (&rest texts)
  "Merge the first and the last of TEXTS, whose ancestor is the second.
The value is a cons of 0, or 1 if there are conflicts, and the merged
text, in which each line of a conflict ends with a newline."
  (pcase (gemini-companion-text-diff3 texts "--merge" "--label=unsaved"
                                      "--label=before" "--label=CLI")
    ('nil (user-error "Cannot find the program diff3; compare the texts by \
M-x ediff-current-file"))
    ((and `(,(or 0 1) . ,_) merged)
     ;; Otherwise a marker comes behind the last line.
     (let ((whole (mapcar (lambda (text)
                            (replace-regexp-in-string "[^\n]\\'" "\\&\n" text))
                          texts)))
       (if (or (eql 0 (car merged)) (equal texts whole))
           merged
         (apply #'gemini-companion-revert--merged whole))))
    (`(,_ . ,output)
     (user-error "Merging failed: %s" (string-trim output)))))

(provide 'gemini-companion-revert)
;;; gemini-companion-revert.el ends here
