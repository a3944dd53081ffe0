;;; bench-commands.el --- The cost of a command  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A loop moves point and runs the hooks of a command, in quick succession: the timer
;; of the first command waits all the time.

;;; Code:

(require 'bench)
(require 'cl-lib)
(require 'gemini-companion)
(require 'gemini-companion-changes)
(require 'gemini-companion-cli)
(require 'gemini-companion-marks)
(require 'gemini-companion-record)
(require 'gemini-companion-reported)
(require 'gemini-companion-shell)
(require 'gemini-companion-state)
(require 'gemini-companion-terminal)
(require 'memory-report)
(require 'seq)
(require 'term)

(defconst bench-commands--hooks
  '(pre-command-hook post-command-hook pre-redisplay-functions)
  "The hooks that are run with each command.")

(defconst bench-commands--places 1000
  "Number of places at the end of the buffer to which point moves.")

(defvar bench-commands--timer nil "The timer of `bench-commands--habit'.")

(defun bench-commands--habit ()
  "Do what other companions do after each command."
  (when bench-commands--timer
    (cancel-timer bench-commands--timer))
  (setq bench-commands--timer (run-with-timer 0.05 nil #'ignore)))

(defun bench-commands--of (side)
  "Return the functions of SIDE in each of `bench-commands--hooks'."
  (pcase side
    ('ours (mapcar #'bench-commands--ours bench-commands--hooks))
    ('comparator '(nil (bench-commands--habit) nil))))

(defun bench-commands--ours (hook)
  "Return the functions of the package in HOOK."
  (seq-filter (lambda (function)
                (and (symbolp function)
                     (string-prefix-p "gemini-companion"
                                      (symbol-name function))))
              (append (default-value hook)
                      (and (local-variable-p hook) (symbol-value hook)))))

;;;; Commands

(defun bench-commands-run (side count)
  "Return the µs and the bytes of one of COUNT commands with SIDE's hooks.
SIDE is `ours' or `comparator'.  A timer waits all the time,
that of the first command.  There are no others: a new timer would pass
all that are due, which are more the longer this runs."
  (cl-progv bench-commands--hooks (bench-commands--of side)
    (let* ((timer-list nil)
           (timers nil))
      (dotimes (place 10)
        (bench-commands--command place))
      (bench-commands--check timers)
      (garbage-collect)
      (let* ((began (float-time))
             (before (memory-use-counts))
             (memory (memory-use-counts)))
        (dotimes (place count)
          (bench-commands--command place))
        (let ((after (memory-use-counts))
              (took (- (float-time) began)))
          (bench-commands--finish timers)
          (list (/ (* 1e6 took) count)
                (/ (bench-commands--bytes before memory after)
                   (float count))))))))

;;;; Marks

(defun bench-commands-type (side)
  "Return the ms of a processor for a key, and for showing its effect.
It is typed at another place each time.  If SIDE is `ours', the buffer
has 500 marks."
  (let ((file (make-temp-file "bench-" nil ".txt"))
        (text (lambda (word)
                (mapconcat (lambda (line)
                             (format "%s %d\n" (if (zerop (% line 4)) word "line")
                                     line))
                           (number-sequence 1 2000) ""))))
    (with-temp-file file
      (insert (funcall text "new")))
    (save-window-excursion
      (with-current-buffer (find-file file)
        (when (eq side 'ours)
          (gemini-companion-reported-write
           (gemini-companion-session-make :id "bench") file (funcall text "old")
           (funcall text "new"))
          (bench-commands--check-marks))
        (redisplay t)
        (garbage-collect)
        (let ((began (get-internal-run-time)))
          (dotimes (place 400)
            (goto-char (point-min))
            (forward-line (1+ (* 4 place)))
            (insert "x")
            (redisplay t))
          (prog1 (/ (* 1e3 (float-time (time-subtract (get-internal-run-time)
                                                      began)))
                    400)
            (set-buffer-modified-p nil)
            (kill-buffer)
            (delete-file file)))))))

(defun bench-commands--check-marks ()
  "Signal an error unless each change in the current buffer is marked."
  (unless (<= 500 (seq-count (lambda (overlay) (overlay-get overlay 'before-string))
                             (overlays-in (point-min) (point-max))))
    (error "The changes are not marked")))

;;;; Looks

(defun bench-commands-look (count)
  "Return the ms of a processor to look at a file of COUNT lines, a list.
A CLI has changed each 40th line.  The first figure is after one character was
typed, the second one after each line was reindented, and the third one after
that was taken back.  They are without those of the garbage collector, which
runs once after a look at a large file."
  (let* ((file (make-temp-file "bench-" nil ".txt"))
         (text (lambda (word indentation)
                 (mapconcat (lambda (line)
                              (format "%s%s %d\n" indentation
                                      (if (zerop (% line 40)) word "line") line))
                            (number-sequence 1 count) "")))
         (old (funcall text "old" ""))
         (new (funcall text "new" ""))
         (times nil))
    (with-temp-file file
      (insert new))
    (save-window-excursion
      (with-current-buffer (find-file file)
        (gemini-companion-reported-write
         (gemini-companion-session-make :id "bench") file old new)
        (dolist (step (list (lambda () (forward-line (/ count 2)) (insert "x"))
                            (lambda () (erase-buffer) (insert (funcall text "new" "  ")))
                            (lambda () (erase-buffer) (insert new))))
          (funcall step)
          (garbage-collect)
          (let ((gc-cons-threshold most-positive-fixnum)
                (began (bench-commands--cpu)))
            (gemini-companion-changes-update-buffer)
            (push (* 1000 (- (bench-commands--cpu) began)) times)))
        (unless (length= gemini-companion-marks-here (/ count 40))
          (error "Not all changes are left"))
        (set-buffer-modified-p nil)
        (kill-buffer)
        (delete-file file)))
    (nreverse times)))

(defun bench-commands--cpu ()
  "Return the seconds that Emacs was on a processor."
  (float-time (get-internal-run-time)))

(defun bench-commands--texts (writes count step)
  "Return a text of COUNT lines and those after WRITES of one of STEP lines."
  (let ((text (vconcat (mapcar (apply-partially #'format "line %d\n")
                               (number-sequence 1 count)))))
    (cl-loop repeat (1+ writes)
             for n from 0
             collect text
             do (setq text (copy-sequence text))
             do (cl-loop for k from (% n step) below count by step
                         do (aset text k (format "%d of %d\n" k n))))))

(defun bench-commands-origins (count origin)
  "Return what a record of COUNT lines costs: ms of a look, and kB.
The user has kept five writes of all lines, which are forgotten, with their
origins if ORIGIN is non-nil."
  (let* ((texts (bench-commands--texts 5 count 1))
         (origins (make-hash-table))
         (origin (and origin
                      (lambda (hunk &rest _)
                        (let ((edit (gemini-companion-record-hunk-edit hunk)))
                          (or (gethash edit origins)
                              (puthash edit (vector edit) origins))))))
         (lines (car texts)))
    (cl-loop for (before after) on texts while after
             for edit from 1
             do (let ((made (gemini-companion-record-write lines edit before after)))
                  (gemini-companion-record-set-kept (cdr made) t)
                  (setq lines (gemini-companion-record-forget
                               (car made) nil #'always origin))))
    (garbage-collect)
    (let ((gc-cons-threshold most-positive-fixnum)
          (now (vconcat ["typed\n"] (car (last texts))))
          (began (bench-commands--cpu)))
      (dotimes (_ 20)
        (gemini-companion-record-changes (gemini-companion-record-look lines now)))
      (list (/ (* 1000 (- (bench-commands--cpu) began)) 20)
            (/ (memory-report-object-size lines) 1024.0)))))

(defun bench-commands-look-after (writes count step)
  "Return the ms of a processor to look at a file of COUNT lines after WRITES.
Each write has changed one of STEP lines, and is not reviewed.  The text is the
one before the last write, with a typed line."
  (let* ((texts (bench-commands--texts writes count step))
         (lines (car texts)))
    (cl-loop for (before after) on texts while after
             for edit from 1
             do (setq lines (gemini-companion-record-forget
                             (car (gemini-companion-record-write lines edit before after))
                             nil)))
    (garbage-collect)
    (let ((gc-cons-threshold most-positive-fixnum)
          (now (vconcat ["typed\n"] (car (last texts 2))))
          (began (bench-commands--cpu)))
      (dotimes (_ 5)
        (gemini-companion-record-changes (gemini-companion-record-look lines now)))
      (/ (* 1000 (- (bench-commands--cpu) began)) 5))))

;;;; Reports

(defun bench-commands-visit (directory)
  "Visit the files in DIRECTORY and below in the background."
  (mapc #'find-file-noselect (directory-files-recursively directory "\\.txt\\'"))
  nil)

(defun bench-commands-report (count)
  "Return the CPU ms that one of COUNT reports of a moved point takes.
Without those of the garbage collector, which needs longer for more buffers."
  (cl-progv bench-commands--hooks (bench-commands--of 'ours)
    (let ((gc-cons-threshold most-positive-fixnum)
          (timers (copy-sequence timer-list))
          (sum 0))
      (dotimes (place count)
        (bench-commands--command place)
        (let ((began (get-internal-run-time)))
          (bench-commands--finish timers)
          (setq sum (time-add sum (time-subtract (get-internal-run-time)
                                                 began)))))
      (/ (* 1000 (float-time sum)) count))))

(defun bench-commands-writes (directory)
  "Return the CPU ms that recording a write in a turn of 60 files takes.
The files are in DIRECTORY, and are not visited."
  (let ((gc-cons-threshold most-positive-fixnum)
        (session (gemini-companion-session-make :id "bench" :directory directory))
        began)
    (dotimes (number 60)
      (let ((file (expand-file-name (format "new/%d.txt" number) directory)))
        (make-directory (file-name-directory file) t)
        (write-region "new\n" nil file nil 'silent)
        (when (= 50 number)
          (setq began (get-internal-run-time)))
        (gemini-companion-reported-write session file nil "new\n")))
    (/ (* 1000 (float-time (time-subtract (get-internal-run-time) began))) 10)))

;;;; Parts

(defun bench-commands--command (place)
  "Move point to PLACE and run the hooks of a command."
  (goto-char (+ (- (point-max) bench-commands--places)
                (% place bench-commands--places)))
  (run-hooks 'pre-command-hook)
  (run-hooks 'post-command-hook)
  (run-hook-with-args 'pre-redisplay-functions (selected-window)))

(defun bench-commands--bytes (before memory after)
  "Return the bytes from MEMORY to AFTER, values of `memory-use-counts'.
MEMORY was asked for right after BEFORE: that takes some too."
  (cl-loop for x in after for y in memory for z in before
           for size in '(16 8 8 48 1 56 32)
           sum (* size (- x y (- y z)))))

(defun bench-commands--check (before)
  "Signal an error if commands have made no timer.
BEFORE is `timer-list' as it was before them."
  (unless (bench-commands--new before)
    (error "No timer waits after a command")))

(defun bench-commands--new (before)
  "Return the timers that are not in BEFORE, a `timer-list'."
  (seq-remove (lambda (timer) (memq timer before)) timer-list))

(defun bench-commands--finish (before)
  "Run the timers that are not in BEFORE until none is left.
BEFORE is `timer-list' as it was before a command."
  (let ((attempts 0)
        timers)
    (while (setq timers (bench-commands--new before))
      (when (< 1000 (cl-incf attempts))
        (error "Timers make timers for ever: %s" timers))
      (mapc #'timer-event-handler timers))))

(defun bench-commands-place ()
  "Return line and character of point, as they are shared."
  (list (line-number-at-pos) (1+ (- (point) (line-beginning-position)))))

;;;; Output of a CLI

(defun bench-commands-output (side)
  "Return the ms of CPU that SIDE takes for 100 KB of output in a terminal.
SIDE is `ours', what watches the output, or `comparator', `term'."
  (let* ((process (bench-commands--terminal))
         (line "\e[38;2;66;133;244m12\e[39m + \e[1mreturn\e[22m f(x)  # \u2713\r\n")
         (chunk (encode-coding-string (apply #'concat (make-list 80 line)) 'utf-8))
         (title "\e]0;\u2726  Working\u2026 (project)\a")
         (outputs (list chunk (concat (encode-coding-string title 'utf-8) chunk)))
         (began (get-internal-run-time)))
    (dotimes (number (/ 100000 (length chunk)))
      (let ((arguments (list process (if (zerop (% number 10))
                                         (nth 1 outputs)
                                       (car outputs)))))
        (if (eq side 'ours)
            (gemini-companion-terminal--filter arguments)
          (apply #'term-emulate-terminal arguments))))
    (* 1000 (float-time (time-subtract (get-internal-run-time) began)))))

;;;; What has blocked Emacs

(defun bench-commands-sequences (side)
  "Return the ms of CPU for 4,000 sequences in the output of a connected CLI.
SIDE is `ours', alternating reports of its state, or `comparator', links."
  (let* ((process (bench-commands--terminal))
         (gemini-companion-state--records
          (list (gemini-companion-state--make
                 :session (gemini-companion-session-make :id "bench" :client "pi")
                 :process process)))
         (pair (if (eq side 'ours)
                   "\e]7501;state=working\e\\\e]7501;state=done\e\\"
                 "\e]8;;http://a/some/thing\e\\\e]8;;http://an/other\e\\"))
         (output (apply #'concat (make-list 50 pair)))
         (gc-cons-threshold most-positive-fixnum)
         (began (bench-commands--cpu)))
    (process-put process 'gemini-companion-started (float-time))
    (dotimes (_ 40)
      (gemini-companion-terminal--filter (list process output)))
    (* 1000 (- (bench-commands--cpu) began))))

(defun bench-commands-long-line (side)
  "Return the ms of CPU of a look at a file with one line of 480 kB by a CLI.
SIDE is `ours', if others have changed that line, or `comparator', if not."
  (let* ((line (concat (apply #'concat (make-list 48000 "var a=1;  ")) "\n"))
         (lines (car (gemini-companion-record-write ["a\n"] 'one ["a\n"]
                                                    (vector "a\n" line))))
         (now (vector "a\n" (if (eq side 'ours) (concat "x" line) line)))
         (gc-cons-threshold most-positive-fixnum)
         (began (bench-commands--cpu)))
    (dotimes (_ 10)
      (gemini-companion-record-look lines now))
    (/ (* 1000 (- (bench-commands--cpu) began)) 10)))

(defun bench-commands-written (side)
  "Return the ms of CPU until what a command has written is recorded.
The file has 4.5 MB.  SIDE is `ours', if each third line was changed, or
`comparator', if a few were."
  (let* ((directory (file-name-as-directory (make-temp-file "bench-" t)))
         (file (expand-file-name "a.txt" directory))
         (text (lambda (word step)
                 (mapconcat (lambda (line)
                              (format "%s %d of a file with some more text in it\n"
                                      (if (zerop (% line step)) word "line") line))
                            (number-sequence 1 100000) "")))
         (old (funcall text "line" 1))
         (new (funcall text "word" (if (eq side 'ours) 3 20000)))
         (content (lambda (text)
                    (let ((name (make-temp-file "bench-")))
                      (write-region text nil name nil 'silent)
                      name)))
         (session (gemini-companion-session-make :id "bench" :directory directory))
         (done nil))
    (write-region old nil file nil 'silent)
    (unwind-protect
        (with-current-buffer (find-file-noselect file)
          (write-region new nil file nil 'silent)
          (garbage-collect)
          (let ((gc-cons-threshold most-positive-fixnum)
                (began (bench-commands--cpu)))
            (gemini-companion-shell-wrote
             session (list :root directory :command "sed" :problem "" :count 1
                           :by_git 0 :unseen 0 :saved '(0 0 0 0))
             (vector (vector "a.txt" (funcall content old) (funcall content new)
                             #o100644 #o100644 "x" "y"))
             (lambda (_) (setq done t)))
            (while (not done)
              (accept-process-output nil 0.01))
            (prog1 (* 1000 (- (bench-commands--cpu) began))
              (set-buffer-modified-p nil)
              (kill-buffer))))
      (delete-directory directory t))))

(defun bench-commands--terminal ()
  "Return the process of a terminal."
  (with-current-buffer (get-buffer-create "*output*")
    (unless (get-buffer-process (current-buffer))
      (term-mode)
      (term-exec (current-buffer) "output" "cat" nil nil)
      (term-char-mode))
    (get-buffer-process (current-buffer))))

(provide 'bench-commands)
;;; bench-commands.el ends here
