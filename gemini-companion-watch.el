;;; gemini-companion-watch.el --- Watch files that CLIs write  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Check by a timer whether a file has changed: often at first, as a CLI writes
;; soon after an answer, and then twice a second.  Notifications of the system
;; would be lost for a file that is replaced by a new one.

;;; Code:

(require 'gemini-companion-text)

(cl-defstruct (gemini-companion-watch
               (:constructor gemini-companion-watch--make)
               (:copier nil))
  "A file that is watched.
FUNCTION is as in `gemini-companion-watch-start', FIRST the stamp at
the start, LAST the one at the last check, and CHANGED non-nil until
FUNCTION has returned non-nil for the last change."
  file function first last changed timer)

(defun gemini-companion-watch-stamp (file)
  "Return the time, size and inode of FILE, or nil if it does not exist.
Follow symbolic links."
  (when-let* ((attributes (gemini-companion-text-attributes file)))
    (list (file-attribute-modification-time attributes)
          (file-attribute-size attributes)
          (file-attribute-inode-number attributes))))

(defun gemini-companion-watch-start (file function &optional changed)
  "Check FILE repeatedly, and call FUNCTION each time; return the watch.
The arguments are non-nil if FILE has changed, and NOW of
`gemini-companion-watch-check'.  The first one stays non-nil until
FUNCTION returns non-nil.  If CHANGED is non-nil, FILE has changed
before."
  (let* ((stamp (gemini-companion-watch-stamp file))
         (watch (gemini-companion-watch--make
                 :file file :function function :changed changed
                 :first stamp :last stamp)))
    (setf (gemini-companion-watch-timer watch)
          (run-at-time 0.02 nil #'gemini-companion-watch--tick watch 0.03))
    watch))

(defun gemini-companion-watch-end (watch)
  "End WATCH."
  (cancel-timer (gemini-companion-watch-timer watch)))

(defun gemini-companion-watch--tick (watch delay)
  "Check WATCH, which may end it, and again in DELAY seconds."
  (setf (gemini-companion-watch-timer watch)
        (run-at-time delay nil #'gemini-companion-watch--tick
                     watch (min 0.5 (* 1.5 delay))))
  (gemini-companion-watch-check watch))

(defun gemini-companion-watch-check (watch &optional now)
  "Check WATCH at once; NOW is non-nil if a command needs the result.
A file that is not written completely has not changed yet: a small one
is complete unless it is empty, a large one if it is as at the last check."
  (let* ((stamp (gemini-companion-watch-stamp
                 (gemini-companion-watch-file watch)))
         (same (equal stamp (gemini-companion-watch-last watch)))
         (changed (and (or (not same) (gemini-companion-watch-changed watch))
                       (or same
                           (null stamp)
                           ;; So much is written at once.
                           (< 0 (nth 1 stamp) 65536)))))
    (unless same
      (setf (gemini-companion-watch-last watch) stamp
            (gemini-companion-watch-changed watch) t))
    (with-demoted-errors "Following a file: %S"
      (when (and (funcall (gemini-companion-watch-function watch) changed now)
                 changed)
        (setf (gemini-companion-watch-changed watch) nil)))))

(provide 'gemini-companion-watch)
;;; gemini-companion-watch.el ends here
