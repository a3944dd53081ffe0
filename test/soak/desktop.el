;;; desktop.el --- A user with a large desktop  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Types, switches buffers, saves, answers reviews and looks at the list and the
;; status, while a timer of 10 ms records each gap of more than 50 ms in which no key
;; would have been handled, and what Emacs was doing: the function of the package, or
;; else the innermost one, that the profiler has seen most often; garbage
;; collection; or other programs, which had the processor.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion)
(require 'gemini-companion-compose)
(require 'profiler)
(require 'seq)

(setq create-lockfiles nil
      make-backup-files nil
      auto-save-default nil
      vc-handled-backends '(Git)
      large-file-warning-threshold nil
      ;; Each log is a table of this size.
      profiler-log-size 20
      profiler-max-stack-depth 40
      profiler-sampling-interval 2000000)

(dolist (function '(y-or-n-p yes-or-no-p))
  (advice-add function :override (lambda (&rest _) (error "Emacs asks"))))

(defconst desktop--least 0.05 "Seconds of a gap that is recorded.")

(defvar desktop-gaps nil "List of gaps: vectors of a name and ms.")
(defvar desktop-keys 0 "Number of keys that were handled.")
(defvar desktop-problems nil "Errors in this Emacs, a list of strings.")
(defvar desktop--timers nil "The timers of the simulated user.")
(defvar desktop--last nil "Times at the last tick, see `desktop--times'.")
(defvar desktop--work 0 "Processor time since the last log of the profiler.")
(defvar desktop--pressed nil "Time when a key was pressed that is not handled, or nil.")

;;;; Gaps

(defun desktop--times ()
  "Return real time, processor time, that for garbage, that of others, and a count.
That of others is the time for which this process could have run, but they did;
the count is of garbage collections."
  (list (float-time)
        (float-time (get-internal-run-time))
        gc-elapsed
        ;; A new buffer each time would be garbage.
        (with-current-buffer (get-buffer-create " *desktop*")
          (erase-buffer)
          (insert-file-contents-literally "/proc/self/schedstat")
          (forward-word)
          (/ (read (current-buffer)) 1e9))
        gcs-done))

(defun desktop--tick ()
  "Record the gap since the last tick, if it is one."
  (let ((now (desktop--times)))
    (when desktop--last
      (pcase-let ((`(,real ,work ,garbage ,others ,count)
                   (cl-mapcar #'- now desktop--last)))
        (cond ((< desktop--least real)
               ;; It has waited for that.
               (when desktop--pressed
                 (setq desktop--pressed (car now)))
               (desktop--record (- real others)
                                (desktop--why (- real others) work garbage count)))
              ;; Timers run, but no keys.
              ((and desktop--pressed
                    (< desktop--least (- (car now) desktop--pressed)))
               (desktop--record (- (car now) desktop--pressed)
                                (concat "no keys in " (desktop--running)))
               (setq desktop--pressed nil)))
        ;; A log is garbage, too.
        (when (< 0.02 (cl-incf desktop--work work))
          (setq desktop--work 0)
          (profiler-cpu-log))))
    ;; What this takes is none of it.
    (setq desktop--last (desktop--times))))

(defun desktop--why (own work garbage count)
  "Return the name of a gap of OWN seconds, without those of other programs.
WORK is processor time, GARBAGE that of COUNT garbage collections."
  (cond ((< own desktop--least) "other programs")
        ((< work (/ own 2)) (concat "wait in " (desktop--profiled)))
        ((< garbage (/ own 2)) (desktop--profiled))
        ((< count 3) "garbage collection")
        (t (concat "garbage collections in " (desktop--profiled)))))

(defun desktop--record (seconds name)
  "Record a gap of SECONDS with NAME."
  (push (vector name (* 1000 seconds)) desktop-gaps))

(defun desktop--profiled ()
  "Return the name of what the profiler has seen most often."
  (let (names)
    (maphash (lambda (stack count)
               (unless (eq 'Automatic\ GC (aref stack 0))
                 (cl-incf (alist-get (desktop--name (append stack nil)) names
                                     0 nil #'equal)
                          count)))
             (profiler-cpu-log))
    (or (caar (sort names (lambda (a b) (> (cdr a) (cdr b))))) "what is unknown")))

(defun desktop--running ()
  "Return the name of what this timer has interrupted."
  (let (functions)
    (mapbacktrace (lambda (_evald function &rest _) (push function functions)))
    (desktop--name (cdr (memq 'timer-event-handler (nreverse functions))))))

(defun desktop--name (functions)
  "Return the name of FUNCTIONS, from the innermost one."
  (let ((names (mapcar #'symbol-name (seq-filter #'symbolp (remq nil functions)))))
    (or (seq-find (lambda (name) (string-prefix-p "gemini-companion" name)) names)
        (car names)
        "what is unknown")))

;;;; Keys

(defun desktop--press ()
  "Press a key, four seconds of five."
  (when (and (null desktop--pressed)
             (< 0.2 (mod (/ (float-time) 5) 1)))
    (setq desktop--pressed (float-time)
          unread-command-events (append unread-command-events
                                        (list (if (zerop (random 20)) ?\C-n ?\C-f))))))

(defun desktop--handled ()
  "Record that a key was handled."
  (cl-incf desktop-keys)
  (setq desktop--pressed nil))

;;;; The user

(defun desktop--files ()
  "Return the buffers of files."
  (seq-filter #'buffer-file-name (buffer-list)))

(defun desktop--act ()
  "Do something that users do now and then."
  (condition-case problem
      (pcase (random 12)
        ((or 0 1 2 3) (switch-to-buffer (seq-random-elt (desktop--files)) nil t))
        ((or 4 5) (with-current-buffer (seq-random-elt (desktop--files))
                    (goto-char (point-max))
                    (insert "x\n")
                    (save-buffer)))
        (6 (let* ((buffer (seq-random-elt (desktop--files)))
                  (file (buffer-file-name buffer)))
             (unless (get-buffer-window buffer t)
               (kill-buffer buffer)
               (find-file-noselect file))))
        (7 (save-selected-window (gemini-companion-status)))
        (8 (save-selected-window (gemini-companion-list)))
        (9 (delete-other-windows))
        (10 (save-window-excursion (desktop--compose)))
        (11 (set-mark (point-min)) (activate-mark)))
    (error (push (format "%S" problem) desktop-problems))))

(defun desktop--compose ()
  "Complete the name of a file in a buffer for the next prompt."
  (with-temp-buffer
    (text-mode)
    (gemini-companion-compose-mode)
    (insert "See @d7/file7777")
    (completion-at-point)))

(defun desktop--answer ()
  "Accept the oldest edit, or what is left of it without its first hunk."
  (when-let* ((edit (car (gemini-companion-edits-open))))
    (condition-case problem
        (progn
          (when (zerop (random 3))
            (gemini-companion-edit-hunks-toggle
             edit (car (gemini-companion-edit-hunks edit))))
          (gemini-companion-edit-accept edit))
      (error (push (format "%S" problem) desktop-problems)))))

;;;; Start and stop

(defun desktop-visit (directory)
  "Visit the files in DIRECTORY and below."
  (mapc #'find-file-noselect (directory-files-recursively directory "\\.txt\\'"))
  (length (desktop--files)))

(defun desktop-start ()
  "Start the simulated user, and record the gaps."
  (switch-to-buffer (seq-random-elt (desktop--files)))
  (add-hook 'post-command-hook #'desktop--handled)
  (garbage-collect)
  (profiler-cpu-start profiler-sampling-interval)
  (setq desktop--timers
        (list (run-at-time 0 0.01 #'desktop--tick)
              (run-at-time 0 0.1 #'desktop--press)
              (run-at-time 1 0.5 #'desktop--answer)
              (run-at-time 1 1.5 #'desktop--act)))
  nil)

(defun desktop-answer-all ()
  "Accept edits until the CLIs have ended their turns."
  (run-at-time 0 0.05 #'desktop--answer))

(defun desktop-stop ()
  "Stop the simulated user."
  (mapc #'cancel-timer desktop--timers)
  (profiler-cpu-stop))

(provide 'desktop)
;;; desktop.el ends here
