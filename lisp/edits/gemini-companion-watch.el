;;; gemini-companion-watch.el --- Files that are watched, and who wrote them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A watch polls one file, and calls its function at each check.  Notifications of the
;; system are not used, since they are lost when a file is replaced.  All watches share
;; one timer; the newest watch decides its interval.
;;
;; A watch distinguishes writes by other programs from writes by this Emacs.  Before
;; Emacs saves a file, its watches are checked, so that an earlier write by a CLI is
;; detected; after that, they record the saved state.  Otherwise, a file that the user
;; saves would be taken for the expected write of a CLI.
;;
;; `revert' watches files whose buffers must be reverted, `written' files that a CLI
;; is expected to write, and `edit' the files of open reviews.  Other files are asked
;; when the user turns to them.

;;; Code:

(require 'gemini-companion-choice)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-text)

;;;; State

;; A stamp is a value of `gemini-companion-watch-stamp'.
(cl-defstruct (gemini-companion-watch
               (:noinline t)
               (:constructor gemini-companion-watch--make)
               (:copier nil))
  "A watched file.
Other files may read the slots FILE, LAST and SELF-WRITTEN."
  (file nil :documentation "The name of the file, or of the copy of a remote one.")
  (function nil :documentation "See `gemini-companion-watch-start'.")
  (lasting nil :documentation "Non-nil if FILE may be watched for hours; then
it is checked less often if there are many watches.")
  (delay 0.02 :documentation "Seconds between the last check and the next one.")
  (wait 0.02 :documentation "Seconds until the next check.")
  (busy nil :documentation "Non-nil during a check, since FUNCTION may run
hooks that would check the file recursively.")
  (first nil :documentation "The stamp at the start.")
  (last nil :documentation "The stamp at the last check.")
  (since nil :documentation "Time of the first check with that stamp, in seconds.")
  (followed nil :documentation "The stamp of the last change that FUNCTION has
handled, by returning non-nil; at first, the stamp at the start.")
  (self-written nil :documentation "The stamp of the last write by this Emacs, or at
the start: another stamp means a write by another program.")
  (hash nil :documentation "Size and hash, a cons, of the bytes that this Emacs
has last written, or nil if these are many: a program that writes the same bytes
has not changed the file.  The copy of a remote file gets them later.")
  (true-name (or (gemini-companion-text-true-name file) file)
             :documentation "The true name of FILE at the start."))

(defvar gemini-companion-watch-empty-seconds 2
  "Seconds after which a file is taken for an empty one.
A program empties a file just before it writes the text, and a busy machine may
stop it between the two.")

(defvar gemini-companion-watch--all nil
  "The running watches, the newest first.")

(defvar gemini-companion-watch--version 0
  "How often the list of watches has changed.")

(defvar gemini-companion-watch--here-known nil
  "The last value of `gemini-companion-watch-here-p', (VALUE VERSION BUFFER NAME).
It holds for that version of the list and true name of the file in BUFFER.")

(defvar gemini-companion-watch--timer nil
  "The timer of the next checks, or nil if no file is watched.")

(defvar gemini-companion-watch--pace nil
  "Delay of `gemini-companion-watch--timer', in seconds.")

(defun gemini-companion-watch-stamp (file)
  "Return the stamp (TIME SIZE INODE) of FILE, or nil if it does not exist.
Follow symbolic links.  Stamps are compared by `equal'."
  (when-let* ((attributes (gemini-companion-text-attributes file)))
    (list (file-attribute-modification-time attributes)
          (file-attribute-size attributes)
          (file-attribute-inode-number attributes))))

(defun gemini-companion-watch--stamp-now (watch)
  "Return the current stamp of the file of WATCH."
  (gemini-companion-watch-stamp (gemini-companion-watch-file watch)))

;;;; Start and stop

(defun gemini-companion-watch-start (file function &optional changed lasting)
  "Start to check FILE repeatedly, and return the watch.
Each check calls FUNCTION with three arguments: the watch; a value that is
non-nil if FILE has changed, until FUNCTION returns non-nil because it has
handled the change; and the OCCASION of `gemini-companion-watch-check'.

If CHANGED is non-nil, the first check reports a change.  LASTING is non-nil
if FILE may be watched for hours.  The delay between checks increases from 20
ms to half a second."
  (let* ((stamp (gemini-companion-watch-stamp file))
         (watch (gemini-companion-watch--make
                 :file file :function function :lasting lasting
                 :first stamp :self-written stamp :last stamp :since (float-time)
                 :followed (if changed 'none stamp))))
    (push watch gemini-companion-watch--all)
    (cl-incf gemini-companion-watch--version)
    ;; If each new watch set the timer again, it might never run.
    (unless (and gemini-companion-watch--timer
                 (<= gemini-companion-watch--pace
                     (gemini-companion-watch-delay watch)))
      (gemini-companion-watch--set-timer))
    watch))

(defun gemini-companion-watch-stop (watch)
  "Stop WATCH; it may already be stopped."
  (setq gemini-companion-watch--all (remq watch gemini-companion-watch--all))
  (cl-incf gemini-companion-watch--version)
  (unless gemini-companion-watch--all
    (gemini-companion-watch--set-timer)))

(defun gemini-companion-watch-live-p (watch)
  "Return non-nil if WATCH is running."
  (memq watch gemini-companion-watch--all))

(defun gemini-companion-watch--set-timer ()
  "Set the timer for the watch with the shortest delay, if there is one."
  (when gemini-companion-watch--timer
    (cancel-timer gemini-companion-watch--timer))
  (setq gemini-companion-watch--timer
        (when gemini-companion-watch--all
          (setq gemini-companion-watch--pace
                (apply #'min (mapcar #'gemini-companion-watch-delay
                                     gemini-companion-watch--all)))
          (run-at-time gemini-companion-watch--pace nil
                       #'gemini-companion-watch--tick))))

(defun gemini-companion-watch--tick ()
  "Check the watches that are due, and increase their delays.
Called by the timer."
  (let ((due (seq-filter (lambda (watch)
                           (<= (cl-decf (gemini-companion-watch-wait watch)
                                        gemini-companion-watch--pace)
                               0))
                         gemini-companion-watch--all))
        ;; Lasting watches are checked at most 40 times per second altogether.
        (lasting (max 0.5 (/ (length gemini-companion-watch--all) 40.0))))
    (dolist (watch due)
      (let ((delay (min (if (gemini-companion-watch-lasting watch) lasting 0.5)
                        (* 1.5 (gemini-companion-watch-delay watch)))))
        (setf (gemini-companion-watch-delay watch) delay
              (gemini-companion-watch-wait watch) delay)))
    ;; Set the timer first, since a check may fail or prompt.
    (gemini-companion-watch--set-timer)
    (dolist (watch due)
      ;; The function of another watch may have stopped this one.
      (when (gemini-companion-watch-live-p watch)
        (gemini-companion-watch-check watch)))))

;;;; Checks

(defun gemini-companion-watch-check (watch &optional occasion)
  "Check WATCH immediately.
OCCASION is the reason for the check:
- nil: the timer; a command may be in progress;
- `command': a command is about to begin, and needs the result;
- `write': Emacs is about to write the file, so earlier writes must be detected;
- `read': Emacs has just read the file, and recorded its time in the buffer."
  (unless (gemini-companion-watch-busy watch)
    (setf (gemini-companion-watch-busy watch) t)
    (unwind-protect
        (gemini-companion-watch--check watch occasion)
      (setf (gemini-companion-watch-busy watch) nil))))

(defun gemini-companion-watch-may-revert-p (occasion)
  "Return non-nil if the function of a watch may modify a buffer on OCCASION.
It must not while Emacs saves or reads the file.  For OCCASION, see
`gemini-companion-watch-check'."
  (memq occasion '(nil command)))

(defun gemini-companion-watch--check (watch occasion)
  "Check WATCH, which must not be busy.
For OCCASION, see `gemini-companion-watch-check'."
  (let* ((stamp (gemini-companion-watch--stamp-now watch))
         (changed (gemini-companion-watch--changed-p watch stamp)))
    (unless (equal stamp (gemini-companion-watch-last watch))
      (setf (gemini-companion-watch-last watch) stamp
            (gemini-companion-watch-since watch) (float-time)))
    (when (and changed
               (not (equal stamp (gemini-companion-watch-self-written watch)))
               (or (gemini-companion-watch--same-bytes-p watch)
                   ;; Reading the file records its time as well.
                   (and (not (eq occasion 'read))
                        (gemini-companion-watch--same-time-p watch))))
      (gemini-companion-watch--set-self-written watch))
    (gemini-companion-log-guarded "Checking a watched file"
      (let ((followed (funcall (gemini-companion-watch-function watch)
                               watch changed occasion)))
        (when (and changed followed)
          (setf (gemini-companion-watch-followed watch) stamp))))))

(defun gemini-companion-watch--changed-p (watch stamp)
  "Return non-nil if the file of WATCH has changed, and is written completely.
STAMP is its current stamp.  A large file is complete if its stamp is that
of the last check, an empty one if it was that for some seconds; other files
are complete at once."
  (and (not (equal stamp (gemini-companion-watch-followed watch)))
       (or (null stamp)
           ;; Programs write up to 64 KiB by one system call.
           (< 0 (nth 1 stamp) 65536)
           (and (equal stamp (gemini-companion-watch-last watch))
                (or (< 0 (nth 1 stamp))
                    (<= gemini-companion-watch-empty-seconds
                        ;; The clock may have been set.
                        (abs (- (float-time) (gemini-companion-watch-since watch)))))))))

(defun gemini-companion-watch--same-bytes-p (watch)
  "Return non-nil if the file of WATCH has the bytes that Emacs has last written.
If another program has written the same bytes since, that counts as Emacs."
  (pcase-let ((`(,_ ,size . ,_) (gemini-companion-watch-last watch))
              (hash (gemini-companion-watch-hash watch)))
    (and hash
         (eql size (car hash))
         (equal hash (gemini-companion-watch--hash
                      ;; The file may have been deleted meanwhile, or be unreadable.
                      (ignore-error file-error
                        (gemini-companion-text-bytes
                         (gemini-companion-watch-file watch))))))))

(defun gemini-companion-watch--same-time-p (watch)
  "Return non-nil if the buffer of the file of WATCH has recorded its time.
A formatter in Emacs may write the file without the hooks of a save, and records
the time.  The time of the copy of a remote file says nothing."
  (when-let* ((file (gemini-companion-watch-file watch))
              ((not (gemini-companion-names-of-copy file)))
              (buffer (gemini-companion-names-buffer file)))
    (with-current-buffer buffer
      (time-equal-p (visited-file-modtime)
                    (car (gemini-companion-watch-last watch))))))

(defun gemini-companion-watch--hash (bytes)
  "Return the size and the hash of BYTES, a cons, or nil for nil."
  (and bytes (cons (length bytes) (secure-hash 'sha256 bytes))))

(defun gemini-companion-watch-touched-p (watch)
  "Return non-nil if the stamp of the file of WATCH has changed since the start."
  (not (equal (gemini-companion-watch-first watch)
              (gemini-companion-watch--stamp-now watch))))

(defun gemini-companion-watch-written-p (watch)
  "Return non-nil if another program was the last to write the file of WATCH.
Return nil if the file does not exist."
  (let ((stamp (gemini-companion-watch--stamp-now watch)))
    (and stamp
         (not (equal stamp (gemini-companion-watch-self-written watch))))))

;;;; Checks before a write

(defun gemini-companion-watch-detect (file)
  "Detect writes of other programs to FILE until now.
Call this before Emacs writes FILE other than by saving its buffer, for which
there is a hook."
  (gemini-companion-watch--check-all (gemini-companion-watch--of file) 'write))

(defun gemini-companion-watch-visited (occasion)
  "Check the watches of the file that the current buffer visits.
For OCCASION, see `gemini-companion-watch-check'."
  (gemini-companion-watch--check-all (gemini-companion-watch--here) occasion))

(defun gemini-companion-watch--check-all (watches occasion)
  "Check each of WATCHES, twice, to detect changes of large files.
For OCCASION, see `gemini-companion-watch-check'."
  (dolist (watch watches)
    ;; A large file is complete if its stamp is the same at two checks.
    (dotimes (_ 2)
      ;; The function of the watch may stop it.
      (when (gemini-companion-watch-live-p watch)
        (gemini-companion-watch-check watch occasion)))))

(defun gemini-companion-watch--of (file)
  "Return the watches of FILE, by any of its names."
  (let ((true-name (and gemini-companion-watch--all
                        (gemini-companion-text-true-name file))))
    (seq-filter (lambda (watch)
                  (equal true-name (gemini-companion-watch-true-name watch)))
                gemini-companion-watch--all)))

(defun gemini-companion-watch-here-p ()
  "Return non-nil if the file that the current buffer visits is watched.
Each command asks this, so the value is computed again only for another buffer
or after a change of the watches."
  (unless (pcase gemini-companion-watch--here-known
            (`(,_ ,version ,buffer ,name)
             (and (eq version gemini-companion-watch--version)
                  (eq buffer (current-buffer))
                  (eq name buffer-file-truename))))
    (setq gemini-companion-watch--here-known
          (list (and (gemini-companion-watch--here) t)
                gemini-companion-watch--version (current-buffer)
                buffer-file-truename)))
  (car gemini-companion-watch--here-known))

(defun gemini-companion-watch--here ()
  "Return the watches of the file that the current buffer visits."
  (seq-filter (lambda (watch)
                (gemini-companion-names-visited-here-p
                 (gemini-companion-watch-true-name watch)))
              gemini-companion-watch--all))

;;;; Writes by Emacs

(defvar gemini-companion-watch-writing-functions nil
  "Functions called with a file and a symbol when Emacs writes or deletes it.
The symbol is `before' or `after'.  The saves of a buffer have hooks of Emacs.")

(defmacro gemini-companion-watch-writing (file &rest body)
  "Evaluate BODY, which writes FILE, and record that as a write by Emacs.
Return the value of BODY."
  (declare (indent 1) (debug t))
  (let ((name (make-symbol "name")))
    `(let ((,name ,file))
       (gemini-companion-watch-begin ,name)
       ;; After a failure, Emacs has written the old bytes again.
       (unwind-protect (progn ,@body)
         (gemini-companion-watch-end ,name)))))

(defun gemini-companion-watch-begin (file)
  "Record that Emacs, or the server for it, begins to write FILE."
  (gemini-companion-watch-detect file)
  (run-hook-with-args 'gemini-companion-watch-writing-functions file 'before))

(defun gemini-companion-watch-end (file)
  "Record that Emacs, or the server for it, has written FILE."
  (gemini-companion-watch-wrote file)
  (run-hook-with-args 'gemini-companion-watch-writing-functions file 'after))

(defun gemini-companion-watch-wrote (file &optional bytes)
  "Record that this Emacs has just written FILE.
If FILE is the copy of a remote file, BYTES are those that it will have soon."
  (dolist (watch (gemini-companion-watch--of file))
    (if bytes
        (setf (gemini-companion-watch-hash watch) (gemini-companion-watch--hash bytes))
      (gemini-companion-watch--set-self-written watch))))

(defun gemini-companion-watch--set-self-written (watch)
  "Record that this Emacs has just written the file of WATCH."
  (let* ((file (gemini-companion-watch-file watch))
         (stamp (gemini-companion-watch-stamp file)))
    (setf (gemini-companion-watch-self-written watch) stamp
          (gemini-companion-watch-hash watch)
          (and stamp
               (< (nth 1 stamp) (* 5 1024 1024))
               (gemini-companion-watch--hash
                (ignore-error file-error
                  (gemini-companion-text-bytes file)))))))

;;;; Files to which the user turns

;; Notifications of the system are lost where a file is replaced, and polling each file
;; would keep the machine awake.  So other files are asked when the user turns to them.

(defvar gemini-companion-watch-turned-functions nil
  "Functions called with the buffer to which the user turns, after redisplay.
The argument is nil for all buffers, when Emacs gets the focus or the user goes
to the overview.")

(defun gemini-companion-watch--turn-to (buffer)
  "Call `gemini-companion-watch-turned-functions' with BUFFER, if that is live."
  (when (or (null buffer) (buffer-live-p buffer))
    (run-hook-with-args 'gemini-companion-watch-turned-functions buffer)))

(defun gemini-companion-watch--follow-selection (frame)
  "Turn to the file of the selected window of FRAME, after redisplay."
  (let ((buffer (window-buffer (frame-selected-window frame))))
    (when (gemini-companion-text-visited buffer)
      (run-with-timer 0 nil #'gemini-companion-watch--turn-to buffer))))

(defun gemini-companion-watch-turn-to-all ()
  "Turn to all files, after the event."
  (cancel-function-timers #'gemini-companion-watch--turn-to)
  (run-with-timer 0 nil #'gemini-companion-watch--turn-to nil))

(defun gemini-companion-watch--follow-focus ()
  "Turn to all files if Emacs has got the focus."
  (when (seq-some (lambda (frame) (eq t (frame-focus-state frame))) (frame-list))
    (gemini-companion-watch-turn-to-all)))

;;;; Life

(cl-defmethod gemini-companion-part-start ((_part (eql 'watch)))
  "Turn to all files when Emacs gets the focus."
  (add-function :after after-focus-change-function
                #'gemini-companion-watch--follow-focus))

;; Most files are not watched, so these hooks, which run at each save and each visit
;; of a file, must be fast without watches.
(defun gemini-companion-watch--before-save ()
  "Detect writes of other programs before Emacs overwrites the file."
  (when gemini-companion-watch--all
    (gemini-companion-watch-visited 'write)))

;; Emacs compares the times before it runs `before-save-hook', whose errors do not stop
;; a save.  A file may be written while its functions run, and they may take long.
(defun gemini-companion-watch--before-write ()
  "Ask whether to save if the file was written since the save began, as Emacs does.
Then detect writes of other programs again."
  (or (null buffer-file-name)
      ;; The host of a remote file is asked only if the file is watched.
      (and (file-remote-p buffer-file-name)
           (not (gemini-companion-watch-here-p)))
      (verify-visited-file-modtime (current-buffer))
      (not (file-exists-p buffer-file-name))
      (gemini-companion-choice-yes-or-no-p
       (format "%s has changed since visited or saved.  Save anyway? "
               (file-name-nondirectory buffer-file-name)))
      (user-error "Save not confirmed"))
  (gemini-companion-watch--before-save)
  ;; The file is still to be written.
  nil)

(defun gemini-companion-watch--after-save ()
  "Record that this Emacs has written the file of the current buffer.
The copy of a remote file gets the text later."
  (when gemini-companion-watch--all
    (dolist (watch (gemini-companion-watch--here))
      (let ((file (gemini-companion-watch-file watch)))
        (cond ((gemini-companion-names-of-copy file)
               (setf (gemini-companion-watch-hash watch)
                     (gemini-companion-watch--hash
                      (encode-coding-string (gemini-companion-text-of-buffer)
                                            (or buffer-file-coding-system
                                                'utf-8-unix)))))
              ;; If the times differ, another program has written the file since.
              ((time-equal-p (visited-file-modtime)
                             (car (gemini-companion-watch-stamp file)))
               (gemini-companion-watch--set-self-written watch)))))))

(defun gemini-companion-watch--after-read ()
  "Detect a write by another program, which Emacs has just read."
  (when gemini-companion-watch--all
    (gemini-companion-watch-visited 'read)))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'watch)))
  "Distinguish writes by Emacs from writes by other programs."
  '((before-save-hook gemini-companion-watch--before-save)
    ;; After functions that take time, but a function may also write the file itself.
    (write-file-functions gemini-companion-watch--before-write 90)
    ;; Before programs that then format the file.
    (after-save-hook gemini-companion-watch--after-save -90)
    ;; Emacs has read what was written, whose time is then that of the buffer.
    (after-revert-hook gemini-companion-watch--after-read -90)
    (find-file-hook gemini-companion-watch--after-read -90)
    (window-selection-change-functions gemini-companion-watch--follow-selection)
    (window-buffer-change-functions gemini-companion-watch--follow-selection)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'watch)))
  "Stop watching all files."
  (remove-function after-focus-change-function
                   #'gemini-companion-watch--follow-focus)
  (cancel-function-timers #'gemini-companion-watch--turn-to)
  (mapc #'gemini-companion-watch-stop gemini-companion-watch--all)
  (setq gemini-companion-watch--here-known nil))

(provide 'gemini-companion-watch)
;;; gemini-companion-watch.el ends here
