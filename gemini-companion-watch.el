;;; gemini-companion-watch.el --- Files that are watched, and who wrote them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A watch checks one file repeatedly, by a timer, as notifications of the system
;; would be lost for a file that is replaced.  Its function is called at each check.
;;
;; A watch also knows whether another program has written the file, or only this
;; Emacs.  Before Emacs saves the file, each watch of it is checked, so that what
;; a CLI has written until then is noticed; after that, what Emacs has written is
;; the state from which changes count.  Without this, a file that the user saves
;; would count as written by the CLI from which it is expected.

;;; Code:

(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-text)

;;;; State

(cl-defstruct (gemini-companion-watch
               (:constructor gemini-companion-watch--make)
               (:copier nil))
  "A FILE that is watched, whose TRUE-NAME is that of the beginning.
FUNCTION is as in `gemini-companion-watch-start'.  A stamp is the value
of `gemini-companion-watch-stamp'.  FIRST is the stamp at the start, LAST
the one at the last check, and FOLLOWED the last one for which FUNCTION
has returned non-nil.  OWN is the stamp after which a change is one by
another program: that of the start, or of the last write by this Emacs.
SAVED are the bytes that Emacs has written to a remote file whose copy FILE
does not have them yet, or nil, and HASH is that of the bytes of FILE after
the last write by this Emacs, if there was one: a program that only touches
the file has not written it.  BUSY is non-nil during a check, whose
function may run hooks by which the file is checked again."
  file function first own last followed timer saved hash busy
  (true-name (or (gemini-companion-text-true-name file) file)))

(defvar gemini-companion-watch--all nil
  "The watches that were started and not stopped, the last one first.")

(defun gemini-companion-watch-stamp (file)
  "Return the time, size and inode of FILE, or nil if it does not exist.
Follow symbolic links."
  (when-let* ((attributes (gemini-companion-text-attributes file)))
    (list (file-attribute-modification-time attributes)
          (file-attribute-size attributes)
          (file-attribute-inode-number attributes))))

;;;; Start and stop

(defun gemini-companion-watch-any-p ()
  "Return non-nil if any file is watched."
  gemini-companion-watch--all)

(defun gemini-companion-watch-start (file function &optional changed)
  "Check FILE repeatedly, and call FUNCTION each time; return the watch.
The arguments are the watch, a value that is non-nil if FILE has changed,
and NOW of `gemini-companion-watch-check'.  The second one stays non-nil
until FUNCTION returns non-nil.  If CHANGED is non-nil, FILE has changed
before."
  (let* ((stamp (gemini-companion-watch-stamp file))
         (watch (gemini-companion-watch--make
                 :file file :function function
                 :first stamp :own stamp :last stamp
                 :followed (if changed 'none stamp))))
    (setf (gemini-companion-watch-timer watch)
          (run-at-time 0.02 nil #'gemini-companion-watch--tick watch 0.03))
    (push watch gemini-companion-watch--all)
    watch))

(defun gemini-companion-watch-stop (watch)
  "Stop WATCH, which may have been stopped before."
  (setq gemini-companion-watch--all (remq watch gemini-companion-watch--all))
  (cancel-timer (gemini-companion-watch-timer watch)))

(defun gemini-companion-watch-live-p (watch)
  "Return non-nil if WATCH was not stopped."
  (memq watch gemini-companion-watch--all))

(defun gemini-companion-watch--tick (watch delay)
  "Check WATCH, and again after DELAY seconds."
  (setf (gemini-companion-watch-timer watch)
        (run-at-time delay nil #'gemini-companion-watch--tick
                     watch (min 0.5 (* 1.5 delay))))
  (gemini-companion-watch-check watch))

;;;; Checks

(defun gemini-companion-watch-check (watch &optional now)
  "Check WATCH at once.
NOW is `command' if a command needs the result.  It is `look' if what was
written must only be noticed, while no buffer may be changed, as before
it is saved, and `read' if, moreover, Emacs has just read the file.  A file
that is not written completely has not changed yet: a small one is complete
unless it is empty, a large one if it is as at the last check."
  (unless (gemini-companion-watch-busy watch)
    (setf (gemini-companion-watch-busy watch) t)
    (unwind-protect
        (gemini-companion-watch--check watch now)
      (setf (gemini-companion-watch-busy watch) nil))))

(defun gemini-companion-watch--check (watch now)
  "Check WATCH; for NOW, see `gemini-companion-watch-check'."
  (let* ((stamp (gemini-companion-watch-stamp
                 (gemini-companion-watch-file watch)))
         (changed (and (not (equal stamp (gemini-companion-watch-followed watch)))
                       (or (equal stamp (gemini-companion-watch-last watch))
                           (null stamp)
                           ;; A program writes less than 64 KiB in one call.
                           (< 0 (nth 1 stamp) 65536)))))
    (setf (gemini-companion-watch-last watch) stamp)
    (when (and changed
               (not (equal stamp (gemini-companion-watch-own watch)))
               (or (gemini-companion-watch--same-bytes-p watch)
                   (and (not (eq now 'read))
                        (gemini-companion-watch--of-emacs-p watch))))
      (gemini-companion-watch--set-own watch))
    (with-demoted-errors "Following a file: %S"
      (when (and (funcall (gemini-companion-watch-function watch)
                          watch changed now)
                 changed)
        (setf (gemini-companion-watch-followed watch) stamp)))))

(defun gemini-companion-watch-touched-p (watch)
  "Return non-nil if the file of WATCH was touched since the start."
  (not (equal (gemini-companion-watch-first watch)
              (gemini-companion-watch-stamp
               (gemini-companion-watch-file watch)))))

(defun gemini-companion-watch-written-p (watch)
  "Return non-nil if another program has written the file of WATCH.
That is the case until this Emacs writes it."
  (not (member (gemini-companion-watch-stamp (gemini-companion-watch-file watch))
               (list nil (gemini-companion-watch-own watch)))))

(defun gemini-companion-watch--of-emacs-p (watch)
  "Return non-nil if the last change of the file of WATCH is one by Emacs.
A formatter may write it after a save, without the hooks of one, and then
sets the time of its buffer.  A file that Emacs has read has such a time,
too, but what was written is noticed then, by a hook."
  (let ((file (gemini-companion-watch-file watch)))
    (if-let* ((saved (gemini-companion-watch-saved watch)))
        (equal saved (gemini-companion-text-bytes file))
      (when-let* (((not (gemini-companion-names-of-copy file)))
                  (buffer (gemini-companion-names-buffer file)))
        (with-current-buffer buffer
          (time-equal-p (visited-file-modtime)
                        (car (gemini-companion-watch-last watch))))))))

(defun gemini-companion-watch--same-bytes-p (watch)
  "Return non-nil if the file of WATCH has the bytes that Emacs has written."
  (when-let* ((hash (gemini-companion-watch-hash watch)))
    (equal hash (gemini-companion-watch--hash (gemini-companion-watch-file watch)))))

(defun gemini-companion-watch--hash (file)
  "Return a hash of the bytes of FILE, or nil if it is large or not there."
  (when-let* ((attributes (gemini-companion-text-attributes file))
              ((< (file-attribute-size attributes) (* 5 1024 1024))))
    (ignore-error file-error
      (secure-hash 'sha256 (gemini-companion-text-bytes file)))))

;;;; Writes by Emacs

(defun gemini-companion-watch-look (file)
  "Notice what other programs have written to FILE until now."
  (let ((true-name (gemini-companion-text-true-name file)))
    (gemini-companion-watch--look
     (seq-filter (lambda (watch)
                   (equal true-name (gemini-companion-watch-true-name watch)))
                 gemini-companion-watch--all)
     'look)))

(defun gemini-companion-watch--look (watches now)
  "Check each of WATCHES; for NOW, see `gemini-companion-watch-check'."
  (dolist (watch watches)
    ;; A large file counts as written if it is as at the previous check.
    (dotimes (_ 2)
      (when (gemini-companion-watch-live-p watch)
        (gemini-companion-watch-check watch now)))))

(defun gemini-companion-watch-visited (now)
  "Check the watches of the file that the current buffer visits.
For NOW, see `gemini-companion-watch-check'."
  (gemini-companion-watch--look (gemini-companion-watch--here) now))

(defun gemini-companion-watch--here ()
  "Return the watches of the file that the current buffer visits."
  (seq-filter (lambda (watch)
                (gemini-companion-names-visited-here-p
                 (gemini-companion-watch-true-name watch)))
              gemini-companion-watch--all))

(defmacro gemini-companion-watch-writing (file &rest body)
  "Evaluate BODY, which writes FILE, so that this counts as a write by Emacs."
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
  (let ((true-name (gemini-companion-text-true-name file)))
    (dolist (watch gemini-companion-watch--all)
      (when (equal true-name (gemini-companion-watch-true-name watch))
        (if bytes
            (setf (gemini-companion-watch-saved watch) bytes)
          (gemini-companion-watch--set-own watch))))))

(defun gemini-companion-watch--set-own (watch)
  "Record that this Emacs has just written the file of WATCH."
  (let ((file (gemini-companion-watch-file watch)))
    (setf (gemini-companion-watch-own watch) (gemini-companion-watch-stamp file)
          (gemini-companion-watch-hash watch) (gemini-companion-watch--hash file)
          (gemini-companion-watch-saved watch) nil)))

(defun gemini-companion-watch--before-save ()
  "Notice what other programs have written, before Emacs writes over it."
  (when gemini-companion-watch--all
    (gemini-companion-watch-visited 'look)))

(defun gemini-companion-watch--after-read ()
  "Notice what other programs have written, which Emacs has just read."
  (when gemini-companion-watch--all
    (gemini-companion-watch-visited 'read)))

(defun gemini-companion-watch--after-save ()
  "Record that this Emacs has written the file of the current buffer."
  (when gemini-companion-watch--all
    (dolist (watch (gemini-companion-watch--here))
      (let ((file (gemini-companion-watch-file watch)))
        (cond ((gemini-companion-names-of-copy file)
               ;; The host sends the new text later.
               (setf (gemini-companion-watch-saved watch)
                     (encode-coding-string (gemini-companion-text-of-buffer)
                                           (or buffer-file-coding-system
                                               'utf-8-unix))))
              ;; With another time, another program has written the file since.
              ((time-equal-p (visited-file-modtime)
                             (car (gemini-companion-watch-stamp file)))
               (gemini-companion-watch--set-own watch)))))))

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
