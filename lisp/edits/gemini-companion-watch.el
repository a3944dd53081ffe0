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
;; is expected to write, and `edit' the files of open reviews.

;;; Code:

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
  "A file that is watched.
Its parts read FILE, LAST and OWN; all else is for this file."
  (file nil :documentation "The name of the file, or of the copy of a remote one.")
  (function nil :documentation "See `gemini-companion-watch-start'.")
  (lasting nil :documentation "Non-nil if FILE may be watched for hours: one
of many such files is checked less often.")
  (delay 0.02 :documentation "Seconds between the last check and the next one.")
  (wait 0.02 :documentation "Seconds that are left of that.")
  (busy nil :documentation "Non-nil during a check, whose function may run
hooks by which the file is checked again.")
  (first nil :documentation "The stamp at the start.")
  (last nil :documentation "The stamp at the last check.")
  (followed nil :documentation "The stamp of the last change that FUNCTION has
followed, as its value was non-nil; or that at the start.")
  (own nil :documentation "The stamp after which a change is one by another
program: that at the start, or of the last write by this Emacs.")
  (hash nil :documentation "Hash of the bytes after the last write by this
Emacs, if there was one: a program that only touches the file has not
written it.")
  (saved nil :documentation "The bytes that Emacs has saved to a remote file
and its copy, FILE, does not have yet, or nil.")
  (true-name (or (gemini-companion-text-true-name file) file)
             :documentation "The true name of FILE at the start."))

(defvar gemini-companion-watch--all nil
  "The watches that were started and not stopped, the last one first.")

(defvar gemini-companion-watch--timer nil
  "The timer of the next checks, or nil if no file is watched.")

(defvar gemini-companion-watch--pace nil
  "Seconds for which that timer was set.")

(defun gemini-companion-watch-stamp (file)
  "Return the (TIME SIZE INODE) of FILE, or nil if it does not exist.
Follow symbolic links.  Stamps are compared by `equal'."
  (when-let* ((attributes (gemini-companion-text-attributes file)))
    (list (file-attribute-modification-time attributes)
          (file-attribute-size attributes)
          (file-attribute-inode-number attributes))))

(defun gemini-companion-watch--stamp-now (watch)
  "Return the present stamp of the file of WATCH."
  (gemini-companion-watch-stamp (gemini-companion-watch-file watch)))

;;;; Start and stop

(defun gemini-companion-watch-any-p ()
  "Return non-nil if any file is watched."
  gemini-companion-watch--all)

(defun gemini-companion-watch-start (file function &optional changed lasting)
  "Check FILE repeatedly, and call FUNCTION each time; return the watch.
The arguments are the watch, a value that is non-nil if FILE has changed,
and OCCASION of `gemini-companion-watch-check'.  The second one stays
non-nil until FUNCTION returns non-nil, which means that it has followed
the change.  If CHANGED is non-nil, FILE has changed before.
If LASTING is non-nil, FILE may be watched for hours.

The first checks are 20 ms apart, and later ones half a second."
  (let* ((stamp (gemini-companion-watch-stamp file))
         (watch (gemini-companion-watch--make
                 :file file :function function :lasting lasting
                 :first stamp :own stamp :last stamp
                 :followed (if changed 'none stamp))))
    (push watch gemini-companion-watch--all)
    ;; A timer that is set again by each of many watches would never fire.
    (unless (and gemini-companion-watch--timer
                 (<= gemini-companion-watch--pace
                     (gemini-companion-watch-delay watch)))
      (gemini-companion-watch--set-timer))
    watch))

(defun gemini-companion-watch-stop (watch)
  "Stop WATCH, which may have been stopped before."
  (setq gemini-companion-watch--all (remq watch gemini-companion-watch--all))
  (unless gemini-companion-watch--all
    (gemini-companion-watch--set-timer)))

(defun gemini-companion-watch-live-p (watch)
  "Return non-nil if WATCH was not stopped."
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
  "Check the watches whose time has come; each is checked ever later.
This is called by the timer."
  (let ((due (seq-filter (lambda (watch)
                           (<= (cl-decf (gemini-companion-watch-wait watch)
                                        gemini-companion-watch--pace)
                               0))
                         gemini-companion-watch--all))
        ;; Many files take at most 40 checks in a second.
        (lasting (max 0.5 (/ (length gemini-companion-watch--all) 40.0))))
    (dolist (watch due)
      (let ((delay (min (if (gemini-companion-watch-lasting watch) lasting 0.5)
                        (* 1.5 (gemini-companion-watch-delay watch)))))
        (setf (gemini-companion-watch-delay watch) delay
              (gemini-companion-watch-wait watch) delay)))
    ;; Before the checks, one of which may fail, or ask.
    (gemini-companion-watch--set-timer)
    (dolist (watch due)
      ;; The function of another one may have stopped it.
      (when (gemini-companion-watch-live-p watch)
        (gemini-companion-watch-check watch)))))

;;;; Checks

(defun gemini-companion-watch-check (watch &optional occasion)
  "Check WATCH at once.
OCCASION is what the check is for:
- nil, that of the timer: nothing is urgent, and a command may be in
  progress;
- `command': a command that is about to begin needs the result;
- `look': what was written must be noticed before Emacs writes the file;
- `read': Emacs has just read the file, whose buffer has its time.
See `gemini-companion-watch-may-revert-p' for what they permit."
  (unless (gemini-companion-watch-busy watch)
    (setf (gemini-companion-watch-busy watch) t)
    (unwind-protect
        (gemini-companion-watch--check watch occasion)
      (setf (gemini-companion-watch-busy watch) nil))))

(defun gemini-companion-watch-may-revert-p (occasion)
  "Return non-nil if the function of a watch may change a buffer.
OCCASION is that of `gemini-companion-watch-check'.  While Emacs saves or
reads a file, its buffer must stay as it is."
  (memq occasion '(nil command)))

(defun gemini-companion-watch--check (watch occasion)
  "Check WATCH, which is not busy with another check.
For OCCASION, see `gemini-companion-watch-check'."
  (let* ((stamp (gemini-companion-watch--stamp-now watch))
         (changed (gemini-companion-watch--changed-p watch stamp)))
    (setf (gemini-companion-watch-last watch) stamp)
    (when (and changed
               (gemini-companion-watch--last-by-emacs-p watch occasion))
      (gemini-companion-watch--set-own watch))
    (gemini-companion-log-guarded "Following a file"
      (let ((followed (funcall (gemini-companion-watch-function watch)
                               watch changed occasion)))
        (when (and changed followed)
          (setf (gemini-companion-watch-followed watch) stamp))))))

(defun gemini-companion-watch--changed-p (watch stamp)
  "Return non-nil if the file of WATCH has changed, and is complete.
STAMP is its present stamp.  A small file is complete unless it is empty,
a large or an empty one if it is as at the last check."
  (and (not (equal stamp (gemini-companion-watch-followed watch)))
       (or (null stamp)
           (equal stamp (gemini-companion-watch-last watch))
           ;; A program writes less than 64 KiB in one call.
           (< 0 (nth 1 stamp) 65536))))

(defun gemini-companion-watch--last-by-emacs-p (watch occasion)
  "Return non-nil if the last change of the file of WATCH is one by Emacs.
A program that has written the bytes that Emacs had written counts as
Emacs.  For OCCASION, see `gemini-companion-watch-check'."
  (and (not (equal (gemini-companion-watch-last watch)
                   (gemini-companion-watch-own watch)))
       (or (gemini-companion-watch--same-bytes-p watch)
           (and (not (eq occasion 'read))
                (gemini-companion-watch--of-buffer-p watch)))))

(defun gemini-companion-watch--same-bytes-p (watch)
  "Return non-nil if the file of WATCH has the bytes that Emacs has written."
  (when-let* ((hash (gemini-companion-watch-hash watch)))
    (equal hash (gemini-companion-watch--hash (gemini-companion-watch-file watch)))))

(defun gemini-companion-watch--of-buffer-p (watch)
  "Return non-nil if the file of WATCH is as its buffer was saved.
A remote file is, if its copy has the bytes that were saved; a local one,
if its buffer has its time: a formatter that is run in Emacs may write the
file without the hooks of a save, and then sets that time.  A buffer that
was just read has it, too, so this is not asked on the occasion `read'."
  (let ((file (gemini-companion-watch-file watch)))
    (if-let* ((saved (gemini-companion-watch-saved watch)))
        (equal saved (gemini-companion-text-bytes file))
      (when-let* (((not (gemini-companion-names-of-copy file)))
                  (buffer (gemini-companion-names-buffer file)))
        (with-current-buffer buffer
          (time-equal-p (visited-file-modtime)
                        (car (gemini-companion-watch-last watch))))))))

(defun gemini-companion-watch--hash (file)
  "Return a hash of the bytes of FILE, or nil if it is large or not there."
  (when-let* ((attributes (gemini-companion-text-attributes file))
              ((< (file-attribute-size attributes) (* 5 1024 1024))))
    ;; FILE may have been deleted meanwhile, or be unreadable.
    (ignore-error file-error
      (secure-hash 'sha256 (gemini-companion-text-bytes file)))))

(defun gemini-companion-watch-touched-p (watch)
  "Return non-nil if the file of WATCH was touched since the start."
  (not (equal (gemini-companion-watch-first watch)
              (gemini-companion-watch--stamp-now watch))))

(defun gemini-companion-watch-written-p (watch)
  "Return non-nil if another program has written the file of WATCH.
That is the case until this Emacs writes it.  A file that is not there
was not written."
  (let ((stamp (gemini-companion-watch--stamp-now watch)))
    (and stamp
         (not (equal stamp (gemini-companion-watch-own watch))))))

;;;; What was written before

(defun gemini-companion-watch-look (file)
  "Notice what other programs have written to FILE until now.
Call this before Emacs writes FILE, but by a save, which has a hook."
  (gemini-companion-watch--check-all (gemini-companion-watch--of file) 'look))

(defun gemini-companion-watch-visited (occasion)
  "Check the watches of the file that the current buffer visits.
For OCCASION, see `gemini-companion-watch-check'."
  (gemini-companion-watch--check-all (gemini-companion-watch--here) occasion))

(defun gemini-companion-watch--check-all (watches occasion)
  "Check each of WATCHES, so that its function notices a large file, too.
For OCCASION, see `gemini-companion-watch-check'."
  (dolist (watch watches)
    ;; A large file counts as complete if it is as at the check before.
    (dotimes (_ 2)
      ;; The function may stop it.
      (when (gemini-companion-watch-live-p watch)
        (gemini-companion-watch-check watch occasion)))))

(defun gemini-companion-watch--of (file)
  "Return the watches of FILE, whatever its name."
  (let ((true-name (gemini-companion-text-true-name file)))
    (seq-filter (lambda (watch)
                  (equal true-name (gemini-companion-watch-true-name watch)))
                gemini-companion-watch--all)))

(defun gemini-companion-watch--here ()
  "Return the watches of the file that the current buffer visits."
  (seq-filter (lambda (watch)
                (gemini-companion-names-visited-here-p
                 (gemini-companion-watch-true-name watch)))
              gemini-companion-watch--all))

;;;; Writes by Emacs

(defmacro gemini-companion-watch-writing (file &rest body)
  "Evaluate BODY, which writes FILE, so that this counts as a write by Emacs.
Return the value of BODY."
  (declare (indent 1) (debug t))
  (let ((name (make-symbol "name")))
    `(let ((,name ,file))
       (gemini-companion-watch-look ,name)
       ;; After a failure, Emacs has put the old bytes back.
       (unwind-protect (progn ,@body)
         (gemini-companion-watch-wrote ,name)))))

(defun gemini-companion-watch-wrote (file &optional bytes)
  "Record that this Emacs has just written FILE.
If FILE is the copy of a remote file, BYTES are what it will have soon."
  (dolist (watch (gemini-companion-watch--of file))
    (if bytes
        (setf (gemini-companion-watch-saved watch) bytes)
      (gemini-companion-watch--set-own watch))))

(defun gemini-companion-watch--set-own (watch)
  "Record that this Emacs has just written the file of WATCH."
  (let ((file (gemini-companion-watch-file watch)))
    (setf (gemini-companion-watch-own watch) (gemini-companion-watch-stamp file)
          (gemini-companion-watch-hash watch) (gemini-companion-watch--hash file)
          (gemini-companion-watch-saved watch) nil)))

(defun gemini-companion-watch--saved (watch)
  "Record in WATCH that the current buffer, which visits its file, was saved.
A remote file is saved, and its copy gets the new text later."
  (let ((file (gemini-companion-watch-file watch)))
    (if (gemini-companion-names-of-copy file)
        (setf (gemini-companion-watch-saved watch)
              (encode-coding-string (gemini-companion-text-of-buffer)
                                    (or buffer-file-coding-system 'utf-8-unix)))
      ;; With another time, another program has written the file since.
      (when (time-equal-p (visited-file-modtime)
                          (car (gemini-companion-watch-stamp file)))
        (gemini-companion-watch--set-own watch)))))

;;;; Life

;; Most files are watched by nothing: the hooks of each save and each file that is
;; visited must cost nothing then.
(defun gemini-companion-watch--before-save ()
  "Notice what other programs have written, before Emacs writes over it."
  (when gemini-companion-watch--all
    (gemini-companion-watch-visited 'look)))

(defun gemini-companion-watch--after-save ()
  "Record that this Emacs has written the file of the current buffer."
  (when gemini-companion-watch--all
    (mapc #'gemini-companion-watch--saved (gemini-companion-watch--here))))

(defun gemini-companion-watch--after-read ()
  "Notice what other programs have written, which Emacs has just read."
  (when gemini-companion-watch--all
    (gemini-companion-watch-visited 'read)))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'watch)))
  "Tell writes by Emacs from those by other programs."
  '((before-save-hook gemini-companion-watch--before-save)
    ;; Before programs that then format the file.
    (after-save-hook gemini-companion-watch--after-save -90)
    ;; Emacs has read what was written, whose time is then that of the buffer.
    (after-revert-hook gemini-companion-watch--after-read -90)
    (find-file-hook gemini-companion-watch--after-read -90)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'watch)))
  "Stop watching all files."
  (mapc #'gemini-companion-watch-stop gemini-companion-watch--all))

(provide 'gemini-companion-watch)
;;; gemini-companion-watch.el ends here
