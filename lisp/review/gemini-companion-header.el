;;; gemini-companion-header.el --- The header line of a review  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Compute the header line of a review: the file, warnings, the keys, and the number of
;; changed lines, as far as they fit.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-clients)
(require 'gemini-companion-commands)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-file-state)
(require 'gemini-companion-hunk)
(require 'gemini-companion-label)
(require 'gemini-companion-names)
(require 'gemini-companion-revert)
(require 'gemini-companion-session)

;; A pattern of `cl-struct' calls what Emacs 28 loads with this function only.
(eval-when-compile (cl-typep nil 'null))

(defvar gemini-companion-header-listing-keys nil
  "Non-nil while the keys of a review are listed.
Then a key is bound to its command, even if it is to be ignored now.")

(defvar gemini-companion-header--maps (make-hash-table :test 'eq)
  "Table from commands to the keymaps of their words in header lines.")

(defun gemini-companion-header-shortest-key (command &optional context)
  "Return the shortest key of COMMAND that works in this buffer, or nil.
It is the key in CONTEXT, by default `view', or else another one.  For
CONTEXT, see `gemini-companion-commands'."
  (let (;; Include the keys that a new review ignores for a moment.
        (gemini-companion-header-listing-keys t)
        (key (car (cl-find command (gemini-companion-commands-in (or context 'view))
                           :key #'cadr))))
    (if (eq command (key-binding (kbd key)))
        (propertize key 'face 'bold)
      (when (where-is-internal command nil t)
        (substitute-command-keys (format "\\[%s]" command))))))

(defun gemini-companion-header-set ()
  "Set the header line of the current buffer, one of a review."
  (setq header-line-format '(:eval (gemini-companion-header--text)))
  ;; The header line shows the hunk at point, and whether the review is selected.
  (add-hook 'post-command-hook #'force-mode-line-update nil t)
  (add-hook 'window-selection-change-functions #'force-mode-line-update nil t))

(defun gemini-companion-header--text ()
  "Return the header line of the review of the current buffer.
In a narrow window, its end is cut off.  So the most important texts come
first: warnings, the name of the file, the keys that answer, other keys, the
amount of change, and the rest."
  (let* ((edit gemini-companion-edit-here)
         (warnings (gemini-companion-header--with-reason
                    edit (gemini-companion-header--warnings edit)))
         (counts (gemini-companion-edit-hunks-counts edit))
         (location (gemini-companion-label-location
                 (gemini-companion-edit-file edit)
                 (gemini-companion-edit-session edit))))
    (let* ((answers (gemini-companion-header--answers edit))
           (before (gemini-companion-header--before-name location warnings))
           (after (gemini-companion-header--after-name edit counts))
           (name (gemini-companion-label-location-base
                  location (gemini-companion-header--room (list before after)
                                                       answers))))
      (gemini-companion-label-header
       `(,(concat before (propertize name 'face 'bold) after)
         ,@answers
         ,@(gemini-companion-header--unsent (gemini-companion-edit-session edit))
         ,@(unless (gemini-companion-edit-decision edit)
             (append (gemini-companion-header--amount edit counts)
                     (gemini-companion-header--rest edit location warnings
                                                    name))))))))

(defun gemini-companion-header--answers (edit)
  "Return the keys that answer EDIT, if it is open, a list of texts."
  ;; While a header line is computed, its own window is selected.
  (let* ((window (old-selected-window))
         (selected (and (window-live-p window)
                        (window-buffer (or (and (window-minibuffer-p window)
                                                (get-mru-window
                                                 (window-frame window) t))
                                           window))))
         (proposal (gemini-companion-edit-proposal-buffer edit)))
    (cond
     ((and selected
           (eq edit (buffer-local-value 'gemini-companion-edit-here selected)))
      (gemini-companion-header-keys
       (if (eq (current-buffer) proposal)
           ;; The mark of removed lines is empty, so no character has it.
           (seq-some (lambda (mark)
                       (<= (overlay-start mark) (point) (overlay-end mark)))
                     (gemini-companion-hunk-marks proposal))
         (member (get-text-property (point) 'gemini-companion-hunk)
                 (gemini-companion-hunk-excluded proposal)))))
     ((gemini-companion-edit-open-p edit)
      ;; Show the key that works in the selected window.
      (with-current-buffer (or selected (current-buffer))
        (list (substitute-command-keys
               "  \\[gemini-companion-review] to answer")))))))

(defun gemini-companion-header--room (texts keys)
  "Return the number of columns for the name of a file in a header line.
TEXTS are displayed around the name.  Leave room for the first three of KEYS,
which answer, unless fewer than 16 columns would remain."
  (let* ((width (lambda (texts) (apply #'+ (mapcar #'string-width texts))))
         (alone (- (window-width) 1 (funcall width texts)))
         (beside-keys (- alone (funcall width (seq-take keys 3)))))
    (if (<= 16 beside-keys) beside-keys alone)))

(defun gemini-companion-header--before-name (location warnings)
  "Return the text before the name of the file at LOCATION.
It has WARNINGS, a value of `gemini-companion-header--warnings', and the
warnings about LOCATION."
  (mapconcat (lambda (warning) (concat warning "; "))
             (append (mapcar (lambda (warning)
                               (propertize (car warning) 'face 'bold))
                             warnings)
                     (gemini-companion-label-location-warnings location))
             ""))

(defun gemini-companion-header--after-name (edit counts)
  "Return the text after the name of the file of EDIT.
It has the CLI if there are several, the decision, and the number of excluded
hunks in COUNTS, the `gemini-companion-hunk-counts' of EDIT, or nil."
  (concat
   (when (cdr (gemini-companion-sessions))
     (concat " by " (gemini-companion-names-shown
                     (gemini-companion-session-name
                      (gemini-companion-edit-session edit))
                     40)))
   (pcase (gemini-companion-edit-decision edit)
     ;; If the user is typing in the proposal, a dismissed edit stays displayed.
     ('dismissed ", closed")
     ((and decision (or 'accepted 'rejected))
      (format ", %s" decision)))
   ;; Excluded hunks are not written, so their number comes early.
   (when (and counts (< 0 (gemini-companion-hunk-counts-excluded counts)))
     (format ", %d excluded" (gemini-companion-hunk-counts-excluded counts)))))

(defun gemini-companion-header--warnings (edit)
  "Return the warnings about EDIT, an alist.
The elements are (TEXT . DETAIL); DETAIL is nil, or a text for a wide window."
  (let ((remarks (gemini-companion-edit-remarks edit))
        (open (gemini-companion-edit-open-p edit)))
    (append
     (unless (gemini-companion-session-connected-p
              (gemini-companion-edit-session edit))
       '(("not connected")))
     (when (gemini-companion-revert-unsaved (gemini-companion-edit-file edit))
       '(("unsaved changes here")))
     (when (memq 'changed remarks)
       '(("file changed since the proposal")))
     (when (gemini-companion-edit-texts-removed-p edit)
       '(("file was removed" . "its last text is in its buffer")))
     (when (memq 'undoes remarks)
       '(("undoes your edits" . "those that you made in the previous proposal")))
     (when (gemini-companion-file-state-follows-p edit)
       '(("edits may not be written"
          . "another edit of this file is not written yet")))
     (gemini-companion-header--of-coding edit)
     (when (and open
                (or (gemini-companion-edit-texts-edited-p edit)
                    (gemini-companion-hunk-marks
                     (gemini-companion-edit-proposal-buffer edit))))
       (append
        (when (gemini-companion-client-discards-edits-p
               (gemini-companion-edit-client edit))
          '(("answer here" . "accepting in the terminal discards your edits")))
        (when (gemini-companion-client-writes-own-text-p
               (gemini-companion-edit-client edit))
          '(("Emacs writes your edits"
             . "and overwrites the text that the CLI writes"))))))))

(defun gemini-companion-header--with-reason (edit warnings)
  "Return WARNINGS about EDIT with the reason why it was not auto-accepted.
For WARNINGS, see `gemini-companion-header--warnings'; one of them may be the
reason already."
  (let ((reason (gemini-companion-edit-review-reason edit)))
    (if (or (null reason)
            (seq-some (pcase-lambda (`(,text . ,_))
                        (or (string-prefix-p text reason)
                            (string-prefix-p reason text)))
                      warnings))
        warnings
      (append warnings
              `((,reason . ,(and (null (gemini-companion-edit-group edit))
                                 "not auto-accepted")))))))

(defun gemini-companion-header--of-coding (edit)
  "Return warnings about the file of EDIT if it is not UTF-8, an alist.
For its shape, see `gemini-companion-header--warnings'."
  (let ((loss (and (gemini-companion-edit-open-p edit)
                   (gemini-companion-edit-hunks-loss edit))))
    (cond (loss `((,loss)))
          ((gemini-companion-edit-texts-converted-p edit)
           '(("not UTF-8: the CLI writes UTF-8"))))))

(defun gemini-companion-header--amount (edit counts)
  "Return texts about the size of EDIT, and its number among the open edits.
COUNTS are its `gemini-companion-hunk-counts', or nil."
  (let* ((edits (gemini-companion-edits-open))
         (hunk (get-text-property (point) 'gemini-companion-hunk))
         (number (seq-position (gemini-companion-edit-known-hunks edit) hunk)))
    (append
     (pcase counts
       ((cl-struct gemini-companion-hunk-counts hunks added removed)
        (list (concat "  " (gemini-companion-hunk-amount added removed))
              (if number
                  (format ", hunk %d of %d" (1+ number) hunks)
                (format (ngettext ", %d hunk" ", %d hunks" hunks) hunks)))))
     (list (when (gemini-companion-edit-texts-edited-p edit)
             ", edited")
           (when (cdr edits)
             (format ", edit %d of %d"
                     (1+ (or (seq-position edits edit #'eq) 0))
                     (length edits)))))))

(defun gemini-companion-header--rest (edit location warnings base)
  "Return texts about EDIT, with the details of WARNINGS, for wide windows.
LOCATION is that of its file, and BASE the displayed name of the file."
  `(,@(mapcar (lambda (text)
                (and text (concat ", " text)))
              (list (gemini-companion-edit-rule edit)
                    (when (gemini-companion-edit-new-p edit)
                      "new file")
                    ;; For a file in a root, the line begins with this name.
                    (let ((name (gemini-companion-label-location-text
                                 location 'plain)))
                      (unless (equal name base)
                        name))
                    ;; If there are several CLIs, this one is named earlier.
                    (unless (cdr (gemini-companion-sessions))
                      (gemini-companion-session-name
                       (gemini-companion-edit-session edit)))))
    ,@(mapcar (lambda (warning)
                (and (cdr warning) (concat "; " (cdr warning))))
              warnings)))

(defun gemini-companion-header--unsent (session)
  "Return a list of a text about unsent comments for SESSION, or nil.
The text is a button that sends them.  SESSION may be nil."
  (pcase (and session (funcall gemini-companion-label-unsent-function session))
    (`(,text . ,command)
     (list (concat "  " (gemini-companion-header--button text command))))))

(defun gemini-companion-header-keys (&optional excluded)
  "Return the keys in this buffer of an open review, a list of texts.
The list is for `gemini-companion-label-fit'.  EXCLUDED is non-nil if the hunk
at point is excluded."
  (let* ((edit gemini-companion-edit-here)
         (toggle (if excluded "restore" "exclude")))
    (when (and edit (gemini-companion-edit-open-p edit))
      (gemini-companion-header-keys-in
       'view
       `(,@(unless (cdr (gemini-companion-edit-known-hunks edit))
             '((gemini-companion-review-next-hunk)))
         ,@(if (and (eq (current-buffer)
                        (gemini-companion-edit-proposal-buffer edit))
                    (not buffer-read-only))
               `((gemini-companion-review-edit)
                 (gemini-companion-review-toggle-hunk . ,toggle))
             `((gemini-companion-review-toggle-hunk . ,toggle)
               (gemini-companion-review-edit . "edit"))))))))

(defun gemini-companion-header-keys-in (context &optional words)
  "Return the keys in the current buffer, in CONTEXT, a list of texts.
The keys that answer come first.  WORDS is an alist of (COMMAND . WORD).  It
overrides the words in `gemini-companion-commands'; a key whose WORD is nil is
omitted."
  (gemini-companion-header--keys
   context
   (lambda (command properties)
     (alist-get command words (plist-get properties :header)))))

(defun gemini-companion-header-keys-of (what)
  "Return the keys for WHAT is at point in the overview, a list of texts.
The words are `:words' in `gemini-companion-commands'."
  (gemini-companion-header--keys
   'overview
   (lambda (_command properties)
     (alist-get what (plist-get properties :words)))))

(defun gemini-companion-header--keys (context word)
  "Return the keys in CONTEXT that have a word, a list of texts.
WORD is a function from a command and its properties in the table of commands to
its word, or nil.  Keys that are `:first' there come first."
  (let ((rows (seq-group-by
               (lambda (row)
                 (and (plist-get (nthcdr 4 row) :first) t))
               (gemini-companion-commands-in context))))
    (delq nil
          (mapcar
           (pcase-lambda (`(,_ ,command ,_ ,_ . ,properties))
             (when-let* ((word (funcall word command properties)))
               (gemini-companion-header-key command word context)))
           (append (alist-get t rows) (alist-get nil rows))))))

(defun gemini-companion-header-key (command word context)
  "Return the key of COMMAND in CONTEXT, with WORD, as a button, or nil.
It is nil if the command has no key."
  (when-let* ((key (gemini-companion-header-shortest-key command context)))
    (concat "  " (gemini-companion-header--button
                  (concat (propertize key 'face 'bold) " " word)
                  command))))

(defun gemini-companion-header--button (text command)
  "Return TEXT with properties for a click on a header line to call COMMAND."
  (propertize text
              'mouse-face 'mode-line-highlight
              'help-echo (concat "mouse-1: " (substring-no-properties text))
              'local-map (or (gethash command gemini-companion-header--maps)
                             (puthash command
                                      (gemini-companion-header--click-map command)
                                      gemini-companion-header--maps))))

(defun gemini-companion-header--click-map (command)
  "Return a keymap for a click on a header line to call COMMAND.
The command is called in the window of the header line."
  (let ((map (make-sparse-keymap)))
    (define-key map [header-line mouse-1]
                (lambda (event)
                  (interactive "e")
                  (select-window (posn-window (event-start event)))
                  (call-interactively command)))
    map))

(provide 'gemini-companion-header)
;;; gemini-companion-header.el ends here
