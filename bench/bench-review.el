;;; bench-review.el --- Reviews, and the same texts without them  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Shows reviews and reports when they are on the screen, and shows the same two
;; texts by Ediff alone.  At the end of a measurement the windows must show all
;; differences.

;;; Code:

(require 'bench)
(require 'cl-lib)
(require 'diff-mode)
(require 'ediff)
(require 'gemini-companion)
(require 'gemini-companion-reported)
(require 'outline)
(require 'seq)

(defconst bench-review--bound 30
  "Seconds after which a review that is not displayed is an error.")

(declare-function gemini-companion-changes-left "gemini-companion-changes")
(declare-function gemini-companion-decision-undo "gemini-companion-decision")
(declare-function gemini-companion-overview--level "gemini-companion-overview")
(declare-function gemini-companion-overview-page-write "gemini-companion-overview-page")
(declare-function gemini-companion-overview-undo-file "gemini-companion-overview")
(declare-function gemini-companion-turn-page "gemini-companion-overview")
(declare-function gemini-companion-edit-accept "gemini-companion-proposal")
(declare-function gemini-companion-edit-reject "gemini-companion-proposal")
(declare-function gemini-companion-edits-open "gemini-companion-edit")
(defvar gemini-companion-review-arrival)

;;;; Screen

(defun bench-review--ediff-p (buffer)
  "Return non-nil if BUFFER is the panel of a session with differences.
Both sides must be in windows."
  (with-current-buffer buffer
    (and (derived-mode-p 'ediff-mode)
         (get-buffer-window ediff-buffer-A)
         (get-buffer-window ediff-buffer-B)
         (< 0 ediff-number-of-differences))))

(defun bench-review--displayed ()
  "Wait until Ediff is on the screen.
Return when it is, and the processor time of Emacs by then."
  (let ((end (+ (float-time) bench-review--bound)))
    (while (not (seq-some #'bench-review--ediff-p (buffer-list)))
      (when (< end (float-time))
        (error "No difference is on the screen but: %s"
               (mapcar #'window-buffer (window-list))))
      (accept-process-output nil 0.01))
    (redisplay t)
    (list (float-time) (bench-review-cpu))))

(defun bench-review-cpu ()
  "Return the seconds that Emacs was on a processor."
  (float-time (get-internal-run-time)))

;;;; Ours

(defun bench-review-report (arrival)
  "Report when a review is on the screen; ARRIVAL is how it arrives.
That is a value of `gemini-companion-review-arrival'."
  (setq gemini-companion-review-arrival arrival)
  (add-hook 'gemini-companion-edit-opened-functions #'bench-review--shown))

(defun bench-review--shown (_diff)
  "Report when a review is on the screen, all of it."
  (bench-report (bench-review--displayed)))

(defun bench-review-accept ()
  "Accept the displayed review; return the time of the call."
  (prog1 (float-time)
    (gemini-companion-edit-accept)))

;;;; Overview

(defun bench-review-list ()
  "Show the edits with their diffs in the overview."
  (gemini-companion-list)
  (gemini-companion-overview--level 4)
  nil)

(defun bench-review-arriving (file)
  "Report that an edit of FILE may arrive; wait until it is in the overview.
Return the ms of processor time since then, without those for garbage."
  (garbage-collect)
  (let ((gc-cons-threshold most-positive-fixnum)
        (began (bench-review-cpu)))
    (bench-report t)
    (while (not (bench-review--listed-p file))
      (accept-process-output nil 0.05))
    (redisplay t)
    (* 1000 (- (bench-review-cpu) began))))

(defun bench-review--listed-p (file)
  "Return non-nil if the overview, in the selected window, has FILE."
  (with-current-buffer (window-buffer)
    (save-excursion
      (goto-char (point-min))
      (search-forward file nil t))))

;;;; All changes of a turn

(defun bench-review-write-turn (directory)
  "Let a CLI write 400 changes in 20 files in DIRECTORY, a new Git repository.
They are not committed.  Return the number of changes."
  (let ((default-directory (file-name-as-directory directory))
        (old (bench-review--source "value"))
        (new (bench-review--source "changed"))
        (names (mapcar (apply-partially #'format "file%d.py")
                       (number-sequence 1 20))))
    (dolist (name names)
      (write-region old nil name nil 'silent))
    (dolist (arguments '(("init" "-q") ("add" ".")
                         ("-c" "user.name=a" "-c" "user.email=a@b"
                          "commit" "-q" "-m" "x")))
      (unless (eql 0 (apply #'call-process "git" nil nil nil arguments))
        (error "Git failed: %s" arguments)))
    (dolist (name names)
      (write-region new nil name nil 'silent)
      (gemini-companion-reported-write
       (gemini-companion-session-make :id "bench") (expand-file-name name) old new))
    (gemini-companion-changes-left)))

(defun bench-review--source (word)
  "Return 400 lines of Python, of which each twentieth one has WORD."
  (mapconcat (lambda (line)
               (format "    result_%d = compute(%s, 'text', %d)  # a line\n"
                       line (if (zerop (% line 20)) word "value") line))
             (number-sequence 1 400) ""))

(defun bench-review-page ()
  "Return the times to draw the changes of the turn, and to display them.
Nothing that was drawn before is used again.  The value is a list of
the seconds until then, and of those on a processor."
  (when (get-buffer "*gemini*")
    (kill-buffer "*gemini*"))
  (bench-review--timed
   (lambda ()
     (gemini-companion-turn-page (gemini-companion-session-make :id "bench"))
     (gemini-companion-overview--level 4)
     (redisplay t)
     (with-current-buffer "*gemini*"
       (bench-review--check-lines)))))

(defun bench-review-diff-mode (directory)
  "Return the times to draw the changes in DIRECTORY by other means, a list.
These are `git diff --color-words', and Diff mode, which colors the output of
`git diff'.  For the value, see `bench-review-page'."
  (let* ((default-directory (file-name-as-directory directory))
         (buffer (generate-new-buffer "diff")))
    (prog1 (bench-review--timed
            (lambda ()
              (with-temp-buffer
                (call-process "git" nil t nil "diff" "--color-words"))
              (switch-to-buffer buffer)
              (call-process "git" nil t nil "diff")
              (goto-char (point-min))
              (diff-mode)
              (font-lock-ensure)
              (redisplay t)
              (bench-review--check-lines)))
      (kill-buffer buffer))))

(defun bench-review--check-lines ()
  "Signal an error unless the current buffer has all changes with their context."
  (unless (< 3000 (count-lines (point-min) (point-max)))
    (error "Not all changes are displayed")))

(defun bench-review--timed (function)
  "Call FUNCTION; return the seconds until its end, and those on a processor.
The programs that Emacs starts count, too: Diff mode starts one for each
hunk."
  (garbage-collect)
  (let ((used (bench-review--used))
        (began (float-time)))
    (funcall function)
    (list (- (float-time) began) (- (bench-review--used) used))))

(defun bench-review--used ()
  "Return the seconds of a processor that Emacs and its ended programs have used."
  (let ((attributes (process-attributes (emacs-pid))))
    (+ (float-time (alist-get 'time attributes))
       (float-time (alist-get 'ctime attributes)))))

;;;; Undoing a turn

(defun bench-review-undo-turn (directory count)
  "Return the ms of CPU to draw, undo and restore a turn of COUNT files, a list.
The files are in DIRECTORY, and have ten changes each.  No buffer visits them."
  (let* ((default-directory (file-name-as-directory
                             (make-temp-file (expand-file-name "undo-" directory) t)))
         (session (gemini-companion-session-make :id (symbol-name (gensym))
                                                 :directory default-directory))
         (source (lambda (word)
                   (mapconcat (lambda (line)
                                (format "%s %d\n" (if (zerop (% line 10)) word "line") line))
                              (number-sequence 1 100) "")))
         (old (funcall source "line"))
         (new (funcall source "word"))
         (names (mapcar (lambda (number) (expand-file-name (format "file%d" number)))
                        (number-sequence 1 count)))
         (check (lambda (text)
                  (dolist (name names)
                    (unless (equal text (with-temp-buffer
                                          (insert-file-contents name)
                                          (buffer-string)))
                      (error "Not as expected: %s" name))))))
    (dolist (name names)
      (write-region new nil name nil 'silent)
      (gemini-companion-reported-write session name old new))
    (gemini-companion-turn-page session)
    (with-current-buffer "*gemini*"
      (cl-letf (((symbol-function 'gemini-companion-choice-key) (lambda (&rest _) ?y)))
        (list (bench-review--cost #'gemini-companion-overview-page-write 'fresh)
              (prog1 (bench-review--cost #'gemini-companion-overview-undo-file '(4))
                (funcall check old))
              (prog1 (bench-review--cost #'gemini-companion-decision-undo)
                (funcall check new)))))))

(defun bench-review--cost (function &rest arguments)
  "Return the ms of CPU that FUNCTION takes with ARGUMENTS."
  (garbage-collect)
  (let ((began (get-internal-run-time)))
    (apply function arguments)
    (* 1000 (float-time (time-subtract (get-internal-run-time) began)))))

;;;; Comparators

(defun bench-review-alone (old new)
  "Return the seconds, and those of the processor, to display OLD and NEW.
Both texts, of files, are in buffers, where the proposal could be edited."
  (garbage-collect)
  (let* ((windows (current-window-configuration))
         (cpu (bench-review-cpu))
         (began (float-time))
         (buffers (mapcar #'bench-review--buffer (list old new)))
         (end (apply #'bench-review--ediff buffers)))
    (prog1 (cl-mapcar #'- (bench-review--displayed) (list began cpu))
      (funcall end)
      (mapc #'kill-buffer buffers)
      (set-window-configuration windows))))

(defun bench-review--ediff (old new)
  "Start Ediff on the buffers OLD and NEW; return a function that ends it."
  (let ((ediff-window-setup-function #'ediff-setup-windows-plain)
        panel)
    (ediff-buffers old new
                   (list (lambda ()
                           (setq panel (current-buffer))
                           (ediff-next-difference))))
    (lambda ()
      (let ((this-command 'ediff-quit))
        (with-current-buffer panel
          (ediff-really-quit nil))))))

(defun bench-review--buffer (file)
  "Return a new buffer with the text of FILE."
  (with-current-buffer (generate-new-buffer (file-name-nondirectory file))
    (let ((coding-system-for-read 'utf-8-unix))
      (insert-file-contents file))
    (goto-char (point-min))
    (set-buffer-modified-p nil)
    (current-buffer)))

(provide 'bench-review)
;;; bench-review.el ends here
