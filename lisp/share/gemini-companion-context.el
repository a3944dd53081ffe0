;;; gemini-companion-context.el --- What a CLI knows of the user's work  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The snapshot is what Emacs shares with the CLIs: the files that were used last, and
;; point and the selection of the active file.  Hooks that run at each command and
;; redisplay only compare a few values with the previous ones; a timer computes the
;; snapshot after 50 ms without a change.
;;
;; The snapshot is sent to the server while a CLI is connected and sharing is not
;; paused.  The workspace roots are sent even then.  Only values that have changed are
;; sent.

;;; Code:

(require 'gemini-companion-cache)
(require 'gemini-companion-clients)
(require 'gemini-companion-commands)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-privacy)
(require 'gemini-companion-review-plans)
(require 'gemini-companion-roots)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-text)

;;;; State

(defvar gemini-companion-context--timer nil
  "Timer that reports the next change, or nil.")

(defvar gemini-companion-context--pending nil
  "Non-nil if something changed since the timer was armed.")

(cl-defstruct (gemini-companion-context--location
               (:noinline t)
               (:constructor gemini-companion-context--location-make)
               (:copier nil))
  "Location of the user in Emacs: the values that decide what is shared."
  (buffer nil :documentation "The selected buffer.")
  (point nil :documentation "Point in it.")
  (tick nil :documentation "The modification tick of its text.")
  (mark nil :documentation "The position of the mark if it is active, or nil.")
  (shape nil :documentation "Non-nil for a rectangle, or a selection of Evil.")
  (directory nil :documentation "The default directory."))

(defvar gemini-companion-context--seen (gemini-companion-context--location-make)
  "The last known location of the user.
It is modified in place: a new struct would be garbage after each command.")

(cl-defstruct (gemini-companion-context--known
               (:noinline t)
               (:constructor gemini-companion-context--known-make)
               (:copier nil))
  "The buffers that decide what is shared."
  (terminals nil :documentation "The buffers of terminals.")
  (files nil :documentation "\
The buffers of shared files, the last selected one first."))

(defvar gemini-companion-context--basis nil
  "Arguments of the last computation of the workspace roots.
The value is (KNOWN . DIRECTORIES): a `gemini-companion-context--known', and
the directories of its terminals.")

(defvar gemini-companion-context--active nil
  "The last selected buffer that visits a file, or nil.
Its file may be hidden.")

(defvar gemini-companion-context--active-file nil
  "The active file: (TICK . PLIST), or nil.
PLIST has its cursor and selection when the modification tick was TICK.")

(defvar-local gemini-companion-context--selected 0
  "Time when the file of this buffer was last selected, in ms since 1970.")
(put 'gemini-companion-context--selected 'permanent-local t)

(defvar gemini-companion-context-directory nil
  "Directory in which the mode was turned on.
The mode sets it before this library is loaded.")

(defvar gemini-companion-context--sent nil
  "Alist of (METHOD . VALUE), the last values sent to the server.")

(defvar gemini-companion-context-pause-hook nil
  "Hook run when sharing has been paused.")

(defvar gemini-companion-context-resume-hook nil
  "Hook run when sharing has been resumed.")

(defvar gemini-companion-context-paused nil
  "Non-nil while sharing is paused.
Set by `gemini-companion-pause'.")

(cl-defmethod gemini-companion-commands-value ((_name (eql 'paused)))
  "Return non-nil while sharing is paused."
  gemini-companion-context-paused)

;;;; Files

(defun gemini-companion-context--name (buffer)
  "Return the name to share of the file that BUFFER visits, or nil."
  (when-let* ((file (gemini-companion-text-visited buffer))
              ((not (gemini-companion-privacy-hidden-p buffer))))
    (let ((here (gemini-companion-names-file
                 (or (buffer-base-buffer buffer) buffer))))
      (or (gemini-companion-roots-name here)
          (and gemini-companion-share-outside-projects
               (equal here file)
               (expand-file-name file))))))

;;;; Selection

(declare-function evil-visual-range "ext:evil-states")

(defun gemini-companion-context--selection ()
  "Return a plist with the selected text and its start, or nil if it is empty.
The text is truncated to 16384 characters, the limit of the clients."
  (pcase-let*
      ((limit 16384)
       (`(,start ,end ,type . ,_)
        (cond ((eq (bound-and-true-p evil-state) 'visual)
               (evil-visual-range))
              ((region-active-p)
               (list (region-beginning) (region-end)
                     (and (bound-and-true-p rectangle-mark-mode) 'block)))))
       (text (cond ((null start) "")
                   ((eq type 'block)
                    (string-join (extract-rectangle start end) "\n"))
                   (t (buffer-substring start (min end (+ start limit)))))))
    (unless (string-empty-p text)
      (cl-mapcan #'list '(:selected-text :start-line :start-character)
                 (cons (substring-no-properties text 0 (min limit (length text)))
                       (gemini-companion-context--position start))))))

(defun gemini-companion-context--position (position)
  "Return (LINE CHARACTER) of POSITION, both counted from 1.
CHARACTER is counted in UTF-16 units."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char position)
      (list (line-number-at-pos)
            (1+ (gemini-companion-text-units
                 (buffer-substring-no-properties (line-beginning-position)
                                                 (point))))))))

;;;; Snapshot

(defun gemini-companion-context--known ()
  "Return the terminals and the buffers of shared files, as a struct.
The value is cached: it is `eq' to the previous one until the list of buffers
or the files that are shared may have changed."
  (gemini-companion-cache-get
   'buffers
   (lambda ()
     (gemini-companion-context--known-make
      :terminals (seq-filter #'gemini-companion-roots-terminal-p (buffer-list))
      :files (seq-sort-by
              #'gemini-companion-context--time #'>
              (seq-remove #'gemini-companion-privacy-hidden-p
                          (seq-filter #'gemini-companion-text-visited
                                      (buffer-list))))))))

(defun gemini-companion-context--time (buffer)
  "Return the time when the file of BUFFER was last selected, in ms since 1970."
  (buffer-local-value 'gemini-companion-context--selected buffer))

(defun gemini-companion-context-snapshot ()
  "Return the open files, a list of plists, the last selected file first.
Each has `:path' and `:timestamp', in milliseconds since 1970.  The active file
has `:active', t, and `:line' and `:character', counted from 1 in UTF-16 units;
and if there is a selection, `:selected-text', `:start-line' and
`:start-character'."
  (cl-loop with active = (gemini-companion-context--refresh-active)
           for buffer in (gemini-companion-context--known-files
                          (gemini-companion-context--known))
           while (length< names 10)     ; the limit of the client
           for name = (and (buffer-live-p buffer)
                           (gemini-companion-context--name buffer))
           when (and name
                     (not (member name names))
                     ;; The file may have been deleted; no hook runs for that.
                     (or (gemini-companion-names-of-copy name)
                         (gemini-companion-text-attributes name)))
           collect name into names
           and collect `( :path ,name
                          :timestamp ,(gemini-companion-context--time buffer)
                          ,@(and (equal name active)
                                 (cdr gemini-companion-context--active-file)))))

(defun gemini-companion-context--refresh-active ()
  "Update the record of the active file, and return the name of the file.
Return nil if the file is hidden."
  (if-let* (((buffer-live-p gemini-companion-context--active))
            (name (gemini-companion-context--name
                   gemini-companion-context--active)))
      (with-current-buffer gemini-companion-context--active
        (when (or (eq (current-buffer) (window-buffer (selected-window)))
                  (not (eql (car gemini-companion-context--active-file)
                            (buffer-chars-modified-tick))))
          (save-excursion
            (when-let* ((window (get-buffer-window nil t)))
              (goto-char (window-point window)))
            (gemini-companion-context--record-active)))
        name)
    (setq gemini-companion-context--active-file nil)))

(defun gemini-companion-context--record-active ()
  "Record point and the selection of the active file."
  (with-current-buffer gemini-companion-context--active
    (setq gemini-companion-context--active-file
          `( ,(buffer-chars-modified-tick) :active t
             ,@(cl-mapcan #'list '(:line :character)
                          (gemini-companion-context--position (point)))
             ,@(gemini-companion-context--selection)))))

;;;; Tracking

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'context)))
  "Watch for changes of the context.
The depth is 90: earlier functions on `kill-buffer-hook' may wait, and the
timer would report the buffer before it is killed."
  (cl-loop
   for (function . hooks) in
   '((gemini-companion-context--notice
      post-command-hook pre-redisplay-functions buffer-list-update-hook
      activate-mark-hook deactivate-mark-hook)
     (gemini-companion-context--file-changed
      find-file-hook after-save-hook after-revert-hook)
     (gemini-companion-context--note-change after-set-visited-file-name-hook)
     (gemini-companion-context--buffer-changed
      after-change-major-mode-hook kill-buffer-hook)
     (gemini-companion-context--rules-changed gemini-companion-names-hosts-hook)
     (gemini-companion-context--send-again
      gemini-companion-session-changed-functions))
   append (mapcar (lambda (hook) (list hook function 90)) hooks)))

(cl-defmethod gemini-companion-part-start ((_part (eql 'context)))
  "Start tracking the context, and sending each change."
  (gemini-companion-privacy-refresh)
  (dolist (option (cons 'gemini-companion-share
                        gemini-companion-privacy-options))
    (add-variable-watcher option #'gemini-companion-context--rules-changed))
  ;; The command that turned the mode on may have selected a terminal.
  (when-let* ((buffer (seq-find #'gemini-companion-text-visited
                                (buffer-list (selected-frame)))))
    (gemini-companion-context--select buffer))
  (gemini-companion-context--note-change))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'context)))
  "Stop tracking, and reset the recorded state."
  (dolist (option (cons 'gemini-companion-share
                        gemini-companion-privacy-options))
    (remove-variable-watcher option #'gemini-companion-context--rules-changed))
  (when gemini-companion-context--timer
    (cancel-timer gemini-companion-context--timer))
  (gemini-companion-privacy-refresh)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (kill-local-variable 'gemini-companion-context--selected)))
  (setq gemini-companion-context--timer nil
        gemini-companion-context--seen (gemini-companion-context--location-make)
        gemini-companion-context--basis nil
        gemini-companion-context--active nil
        gemini-companion-part-lighter-buffer nil
        gemini-companion-context--active-file nil
        gemini-companion-context--sent nil)
  (gemini-companion-roots-forget))

(defun gemini-companion-context--notice (&optional _)
  "Schedule a report if the selected buffer, point or selection has changed.
Called after each command, and before each redisplay for changes that Lisp
makes without a command.  Changes in a buffer that visits no file are not
reported."
  (with-current-buffer (window-buffer (selected-window))
    (let* ((seen gemini-companion-context--seen)
           (buffer (gemini-companion-context--location-buffer seen))
           (directory (gemini-companion-context--location-directory seen)))
      (when (gemini-companion-context--see seen)
        (gemini-companion-log-guarded 'context
          (unless (eq buffer (current-buffer))
            (gemini-companion-context--leave buffer))
          (when (or (gemini-companion-text-visited (current-buffer))
                    (not (eq buffer (current-buffer)))
                    (not (eq directory default-directory)))
            (gemini-companion-context--schedule)))))))

(defun gemini-companion-context--leave (previous)
  "Record that the user has switched from the buffer PREVIOUS to the current one.
PREVIOUS may be killed, or nil."
  ;; Record the selection in PREVIOUS now, as a mode may end it before the next snapshot.
  (when (and (buffer-live-p previous)
             (eq gemini-companion-context--active previous)
             (gemini-companion-context--name previous))
    (gemini-companion-context--record-active))
  (unless (or (eq (current-buffer) gemini-companion-context--active)
              (null (gemini-companion-text-visited (current-buffer))))
    (gemini-companion-context--select (current-buffer))))

(defun gemini-companion-context--select (buffer)
  "Make BUFFER, which visits a file, the active one."
  (let* ((known (gemini-companion-context--known))
         (others (delq buffer (gemini-companion-context--known-files known)))
         (now (floor (* 1000 (float-time)))))
    (setf (gemini-companion-context--known-files known) (cons buffer others))
    (with-current-buffer buffer
      (setq gemini-companion-context--selected
            ;; The CLIs take the newest file for the active one.  The time must
            ;; increase even if the clock was set back.
            (if (buffer-live-p (car others))
                (max now (1+ (gemini-companion-context--time (car others))))
              now))))
  (setq gemini-companion-context--active buffer
        gemini-companion-context--active-file nil))

(defun gemini-companion-context--see (seen)
  "Update SEEN to the location of the user in the current buffer.
Return non-nil if SEEN has changed.  SEEN is a
`gemini-companion-context--location'."
  (let ((tick (buffer-chars-modified-tick))
        (mark (and mark-active (marker-position (mark-marker))))
        (shape (and mark-active
                    (or (bound-and-true-p rectangle-mark-mode)
                        (bound-and-true-p evil-visual-selection)))))
    (unless (and (eq (gemini-companion-context--location-buffer seen)
                     (current-buffer))
                 (eq (gemini-companion-context--location-point seen) (point))
                 (eq (gemini-companion-context--location-tick seen) tick)
                 (eq (gemini-companion-context--location-mark seen) mark)
                 (eq (gemini-companion-context--location-shape seen) shape)
                 (eq (gemini-companion-context--location-directory seen)
                     default-directory))
      (setf (gemini-companion-context--location-buffer seen) (current-buffer)
            (gemini-companion-context--location-point seen) (point)
            (gemini-companion-context--location-tick seen) tick
            (gemini-companion-context--location-mark seen) mark
            (gemini-companion-context--location-shape seen) shape
            (gemini-companion-context--location-directory seen) default-directory)
      t)))

(defun gemini-companion-context--file-changed ()
  "Schedule a report after the current buffer was opened, saved or reverted.
Its file may affect what is shared."
  (gemini-companion-log-guarded 'context
    (when buffer-file-name
      (if (member (file-name-nondirectory buffer-file-name)
                  (append (gemini-companion-clients-append
                           #'gemini-companion-client-ignore-files)
                          gemini-companion-names-dir-locals))
          (gemini-companion-privacy-refresh)
        ;; An ignore file may be a link to this file.
        (gemini-companion-privacy-refresh 'old)
        ;; The file may be in a new project.
        (gemini-companion-cache-drop
         (list 'root-of (file-name-directory buffer-file-name))))))
  (gemini-companion-context--note-change))

(defun gemini-companion-context--buffer-changed ()
  "Schedule a report if a file or terminal is killed, or changes its mode."
  (when (or buffer-file-name
            (gemini-companion-roots-terminal-p (current-buffer)))
    (gemini-companion-context--note-change)))

(defun gemini-companion-context--note-change (&rest _)
  "Schedule a report, since the files or terminals may have changed."
  (gemini-companion-cache-drop 'buffers)
  (gemini-companion-context--schedule))

(defun gemini-companion-context--rules-changed (&rest _)
  "Schedule a report, since the files to share may have changed."
  (gemini-companion-privacy-refresh)
  (gemini-companion-context--note-change))

(defun gemini-companion-context--schedule ()
  "Schedule a report."
  (setq gemini-companion-context--pending t)
  (unless gemini-companion-context--timer
    (gemini-companion-context--flush)))

(defun gemini-companion-context--flush ()
  "Send the changes, or wait for 50 ms more if there was another change."
  (if gemini-companion-context--pending
      (setq gemini-companion-context--pending nil
            gemini-companion-context--timer
            (run-at-time 0.05 nil #'gemini-companion-context--flush))
    (setq gemini-companion-context--timer nil)
    (gemini-companion-log-guarded 'context
      (gemini-companion-context--send))))

;;;; Sending

(defun gemini-companion-context-share-roots ()
  "Return the workspace roots of this Emacs.
Compute them again only if the files or terminals may have changed."
  (let* ((known (gemini-companion-context--known))
         (directories (mapcar (apply-partially #'buffer-local-value
                                               'default-directory)
                              (gemini-companion-context--known-terminals known))))
    (unless (and (eq known (car gemini-companion-context--basis))
                 (equal directories (cdr gemini-companion-context--basis)))
      (setq gemini-companion-context--basis (cons known directories))
      (gemini-companion-roots-update gemini-companion-context-directory))
    gemini-companion-roots-last))

(defun gemini-companion-context--send ()
  "Send the roots and the snapshot to the server if they have changed."
  (when (gemini-companion-server-ready-p)
    (gemini-companion-context--post 'roots-update (gemini-companion-context-share-roots))
    (when (gemini-companion-sessions)
      (gemini-companion-context--post 'context-update
                                    (unless gemini-companion-context-paused
                                      (gemini-companion-context-snapshot)))
      ;; The mode line shows whether the file is shared.
      (let ((hidden (and (not (seq-some (lambda (file) (plist-get file :active))
                                        (gemini-companion-shared)))
                         gemini-companion-context--active)))
        (unless (eq hidden gemini-companion-part-lighter-buffer)
          (setq gemini-companion-part-lighter-buffer hidden)
          (gemini-companion-part-update-lighter))))))

(defun gemini-companion-shared ()
  "Return the files that are shared with the CLIs, or nil.
The value is a list of plists, see `gemini-companion-context-snapshot'; it is
nil while no CLI is connected or sharing is paused."
  (alist-get 'context-update gemini-companion-context--sent))

(defun gemini-companion-context--post (method value)
  "Send VALUE to the server by METHOD unless it was the last value sent."
  (unless (equal value (alist-get method gemini-companion-context--sent 'none))
    (setf (alist-get method gemini-companion-context--sent) value)
    (gemini-companion-server-post method value)))

;;;; API

(defun gemini-companion-context-text-shared-p (file &optional session)
  "Return non-nil if lines of FILE may leave Emacs, for a CLI or to the disk.
Each way out asks this.  FILE, which may be a directory, must not be hidden, nor
outside of all roots.  The root of the CLI of SESSION counts even if it was
removed meanwhile, and so does the plan of a CLI."
  (let* ((name (gemini-companion-text-true-name
                (or (gemini-companion-names-copy file) file)))
         (directory (and name (let ((file-name-handler-alist nil))
                                (file-directory-p name)))))
    (and name
         (or directory
             (not (gemini-companion-text-unreadable-reason name)))
         (not (gemini-companion-privacy-name-hidden-p file))
         ;; FILE may be a link.
         (not (gemini-companion-privacy-name-hidden-p name))
         (or gemini-companion-share-outside-projects
             (car (gemini-companion-roots-outermost
                   (if directory (file-name-as-directory name) name) session))
             (gemini-companion-review-plans-file-p name))
         t)))

(defun gemini-companion-context-name-shared-p (file)
  "Return non-nil if FILE may be shared with a CLI without a command of the user.
See `gemini-companion-context-text-shared-p'; sharing must not be paused."
  (and (not gemini-companion-context-paused)
       (gemini-companion-context-text-shared-p file)))

(defun gemini-companion-idle-p ()
  "Return non-nil if the server has the current state of Emacs.
No change is waiting to be sent, and the server has answered all messages."
  (and (null gemini-companion-context--timer)
       (gemini-companion-server-idle-p)))

(cl-defmethod gemini-companion-part-ready ((_part (eql 'context)) _how)
  "Send everything."
  (gemini-companion-context--send-again))

(defun gemini-companion-context--send-again (&rest _)
  "Send all values, since the server is new or the connected CLIs have changed.
The server drops the context while no CLI is connected, and a CLI reads its
ignore files when it starts."
  (setq gemini-companion-context--sent nil)
  (gemini-companion-privacy-refresh 'if-changed)
  (gemini-companion-context--send))

(cl-defmethod gemini-companion-part-lighter ((_part (eql 'context)))
  "Return the text and tooltip of sharing for the mode line, or nil."
  (cond (gemini-companion-context-paused '("paused " . "Sharing is paused"))
        ((and (eq (current-buffer) gemini-companion-part-lighter-buffer)
              (assq 'context-update gemini-companion-context--sent))
         '("hidden " . "This file is not shared"))))

;;;; Commands

(defun gemini-companion-pause ()
  "Pause sharing, or resume it.
While sharing is paused, no open files are reported to the CLIs.  They stay
connected, and reviews are displayed as usual."
  (interactive)
  (setq gemini-companion-context-paused (not gemini-companion-context-paused))
  (gemini-companion-context--send)
  (run-hooks (if gemini-companion-context-paused
                 'gemini-companion-context-pause-hook
               'gemini-companion-context-resume-hook))
  (gemini-companion-part-update-lighter)
  (message "%s" (if gemini-companion-context-paused
                    (substitute-command-keys
                     "Sharing paused; \\[gemini-companion-pause] resumes it")
                  "Sharing resumed")))

(provide 'gemini-companion-context)
;;; gemini-companion-context.el ends here
