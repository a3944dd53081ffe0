;;; gemini-companion-header.el --- The header line of a review  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Compute the header line of a review: warnings, the file, the number of changed lines
;; and the keys that fit.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-attribution)
(require 'gemini-companion-cache)
(require 'gemini-companion-clients)
(require 'gemini-companion-commands)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-texts)
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

(defconst gemini-companion-header-staying "Waiting for the next edit; q closes now"
  "Text in an answered review, which stays for some seconds.")

(defun gemini-companion-header-shortest-key (command &optional context)
  "Return the shortest key of COMMAND that works in this buffer, or nil.
It is the key in CONTEXT, by default of a review, or else another one; but not
one of the global map.  For CONTEXT, see `gemini-companion-commands'."
  (let (;; Include the keys that a new review ignores for a moment.
        (gemini-companion-header-listing-keys t)
        (key (car (cl-find command
                           (if context
                               (gemini-companion-commands-in context)
                             (gemini-companion-commands-in 'view 'review))
                           :key #'cadr))))
    (if (and key (eq command (key-binding (kbd key))))
        (propertize key 'face 'bold)
      ;; Searching the global map for each header line would take most of its time, and
      ;; make 120 kB of garbage.
      (when-let* ((keys (where-is-internal
                         command
                         (remq (current-global-map) (current-active-maps)) t)))
        (propertize (key-description keys) 'face 'bold)))))

(defun gemini-companion-header-set ()
  "Set the header line of the current buffer, one of a review."
  (setq header-line-format '(:eval (gemini-companion-header--text)))
  ;; The header line shows the hunk at point, and whether the review is selected.
  (add-hook 'post-command-hook #'force-mode-line-update nil t)
  (add-hook 'window-selection-change-functions #'force-mode-line-update nil t))

(defun gemini-companion-header--text ()
  "Return the header line of the review of the current buffer.
In a narrow window, its end is omitted, so warnings come first."
  (let* ((edit gemini-companion-edit-here)
         (location (gemini-companion-label-location
                    (gemini-companion-edit-file edit)
                    (gemini-companion-edit-session edit)))
         (name (gemini-companion-label-location-base location)))
    (gemini-companion-label-header
     `(,@(mapcar (lambda (warning) (concat warning "; "))
                 (append (mapcar (lambda (warning) (propertize warning 'face 'bold))
                                 (gemini-companion-header-warnings edit))
                         (gemini-companion-label-location-warnings location)))
       ,(propertize name 'face 'bold)
       ,@(gemini-companion-header--state edit)
       ,@(when (gemini-companion-edit-open-p edit)
           (gemini-companion-header-keys nil))
       ,@(when (bound-and-true-p gemini-companion-review-stay-mode)
           (list "  " gemini-companion-header-staying))
       ,@(gemini-companion-header--unsent (gemini-companion-edit-session edit))
       ,@(unless (gemini-companion-edit-answer edit)
           (gemini-companion-header--rest edit location name))))))

(defun gemini-companion-header--state (edit)
  "Return texts about EDIT that follow the name of its file in the header line.
They are whether the file is new, its CLI if there are several, its answer,
and its size."
  (list
   (when (gemini-companion-edit-new-p edit)
     ", new file")
   (when (cdr (gemini-companion-sessions))
     (concat " by " (gemini-companion-names-shown
                     (gemini-companion-session-name
                      (gemini-companion-edit-session edit))
                     40)))
   (pcase (gemini-companion-edit-answer edit)
     ;; If the user is typing in the proposal, a dismissed edit stays displayed.
     ('dismissed ", closed")
     ((and answer (or 'accepted 'rejected))
      (format ", %s" answer)))
   (pcase (gemini-companion-edit-hunks-counts edit)
     ((cl-struct gemini-companion-hunk-counts excluded added removed)
      (concat " " (gemini-companion-hunk-amount added removed)
              ;; Excluded hunks are not written.
              (when (< 0 excluded)
                (format ", %d excluded" excluded)))))))

(defun gemini-companion-header-warnings (edit)
  "Return the warnings about EDIT, a list of phrases.
The reason why it was not auto-accepted is one of them."
  (let* ((remarks (gemini-companion-edit-remarks edit))
         (client (gemini-companion-edit-client edit))
         (edited (and (gemini-companion-edit-open-p edit)
                      (or (gemini-companion-edit-texts-edited-p edit)
                          (gemini-companion-hunk-exclusions
                           (gemini-companion-edit-proposal-buffer edit)))))
         (warnings
          (list
           (unless (gemini-companion-session-connected-p
                    (gemini-companion-edit-session edit))
             "not connected")
           (when (gemini-companion-revert-unsaved (gemini-companion-edit-file edit))
             "unsaved changes in Emacs")
           (when (memq 'changed remarks)
             "file changed since the proposal")
           (when (gemini-companion-attribution-follows-p edit)
             "another edit of this file is not written yet")
           (when (gemini-companion-edit-open-p edit)
             (funcall gemini-companion-edit-also-function edit))
           (gemini-companion-header--of-coding edit)
           (when (and edited (gemini-companion-client-discards-edits-p client))
             "answer here: accepting in the terminal discards your edits")
           (when (and edited (gemini-companion-client-writes-own-text-p client))
             "your edits overwrite what the CLI writes")))
         (reason (gemini-companion-edit-review-reason edit)))
    (delq nil
          (append warnings
                  (unless (and reason
                               (seq-some (lambda (warning)
                                           (and warning
                                                (string-prefix-p reason warning)))
                                         warnings))
                    (list reason))))))

(defun gemini-companion-header--of-coding (edit)
  "Return a warning if the file of EDIT is not UTF-8, or nil."
  (cond ((and (gemini-companion-edit-open-p edit)
              (gemini-companion-edit-hunks-loss edit)))
        ((gemini-companion-edit-texts-converted-p edit)
         "not UTF-8: the CLI writes UTF-8")))

(defun gemini-companion-header--rest (edit location name)
  "Return texts about EDIT for the end of the header line.
LOCATION is that of its file, and NAME the displayed name of the file."
  (let ((edits (gemini-companion-edits-open))
        (whole (gemini-companion-label-location-text location 'plain)))
    (mapcar (lambda (text)
              (and text (concat ", " text)))
            (list (when (gemini-companion-edit-texts-edited-p edit)
                    "edited")
                  (when (cdr edits)
                    (format "edit %d of %d"
                            (1+ (or (seq-position edits edit #'eq) 0))
                            (length edits)))
                  (gemini-companion-edit-rule edit)
                  ;; For a file in a root, the line begins with this name.
                  (unless (equal whole name)
                    whole)
                  ;; If there are several CLIs, this one is named earlier.
                  (unless (cdr (gemini-companion-sessions))
                    (gemini-companion-session-name
                     (gemini-companion-edit-session edit)))))))

(defun gemini-companion-header--unsent (session)
  "Return a list of a text about unsent comments for SESSION, or nil.
The text is a button that sends them.  SESSION may be nil."
  (pcase (and session (funcall gemini-companion-label-unsent-function session))
    (`(,text . ,command)
     (list (concat "  " (gemini-companion-header--button text command))))))

(defun gemini-companion-header-keys (context)
  "Return the keys of CONTEXT in the current buffer, a list of texts.
The words are `:header' in `gemini-companion-commands'.  If CONTEXT is nil,
return the keys of a review."
  (gemini-companion-header--keys
   context
   (lambda (_command properties)
     (plist-get properties :header))))

(defun gemini-companion-header-keys-of (what)
  "Return the keys for WHAT is at point in the overview, a list of texts.
The words are `:words' in `gemini-companion-commands'; keys that `:enable' there
disables are omitted."
  (gemini-companion-header--keys
   'overview
   (lambda (_command properties)
     (when-let* ((word (alist-get what (plist-get properties :words))))
       (let ((state (plist-get properties :enable)))
         (and (or (null state) (gemini-companion-commands-state state))
              word))))))

(defun gemini-companion-header--keys (context word)
  "Return the keys in CONTEXT that have a word, a list of texts.
WORD is a function from a command and its properties in the table of commands to
its word, or nil.  Keys that are `:first' there come first."
  (let ((rows (seq-group-by
               (lambda (row)
                 (and (plist-get (nthcdr 4 row) :first) t))
               (if context
                   (gemini-companion-commands-in context)
                 (gemini-companion-commands-in 'review 'view)))))
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
              'local-map (gemini-companion-cache-get
                          (list 'click command)
                          (lambda () (gemini-companion-header--click-map command)))))

(defun gemini-companion-header--click-map (command)
  "Return a keymap for a click on a header line to call COMMAND.
In the window of the header line, the click does what its key would do."
  (let ((map (make-sparse-keymap)))
    (define-key map [header-line mouse-1]
                (lambda (event)
                  (interactive "e")
                  (let ((window (posn-window (event-start event))))
                    ;; A permission is displayed again in a window that is selected.
                    (unless (eq window (selected-window))
                      (select-window window)))
                  (let ((key (gemini-companion-header-shortest-key command)))
                    ;; A review ignores its keys until it was displayed.
                    (call-interactively (or (and key (key-binding (kbd key)))
                                            command)))))
    map))

(provide 'gemini-companion-header)
;;; gemini-companion-header.el ends here
