;;; gemini-companion-saved.el --- Changes left, saved for the next Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What is left to review survives the end of Emacs, even if it is killed.  For each file
;; with changes left, its record and edits are saved, see `gemini-companion-history'.
;; Other components save what they have about that file by a method of
;; `gemini-companion-part-saved'.
;;
;; All of that is in one file below `gemini-companion-install-directory', which is named
;; by the hash of the name of the file that it is about.  It is written as a whole, and
;; renamed to its name, within two seconds after a change, and when Emacs exits.  What was
;; written in these two seconds before a crash is unknown to it: lines that it does not
;; know are the user's.
;;
;; It is read when its file is visited or written, or when Emacs is idle once its root is
;; used: a file or a terminal there is open, or a CLI connects from there.  Its first line
;; has the version of the format, the names of the file and of the root, and a hash of the
;; rest, which is not read if that differs.  A file that cannot be read is put aside, and
;; a message names what it was about.
;;
;; One Emacs saves at a time.  Others do so once it has ended.  Nothing is saved of files
;; that are not shared; this is checked before each write, and when the rules have changed.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-changes)
(require 'gemini-companion-context)
(require 'gemini-companion-edit)
(require 'gemini-companion-garbage)
(require 'gemini-companion-history)
(require 'gemini-companion-idle)
(require 'gemini-companion-install)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-privacy)
(require 'gemini-companion-roots)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)
(require 'map)

;;;; State

(defconst gemini-companion-saved--version 2
  "Version of the format of the files.")

(defconst gemini-companion-saved-most-bytes (* 16 1024 1024)
  "Maximum size of what is saved of one file.")

(defconst gemini-companion-saved--week (* 7 24 60 60)
  "Seconds after which a file without changes left, or put aside, is deleted.")

(defvar gemini-companion-saved-slice 0.01
  "Seconds for which a timer works at a time.")

(defvar gemini-companion-saved--found nil
  "Alist of (NAME ROOT . FILE): what was saved of NAME, and is not restored.")

(defvar gemini-companion-saved--known (make-hash-table :test 'equal)
  "Table from names to lists (STATE ROOT . STAMP): what is saved, or was restored.
STATE differs, by `equal', once that is to be saved again.  STAMP is that of the
file, which another Emacs may replace while it is the one that saves.")

(defvar gemini-companion-saved--used nil
  "The roots of which everything is restored.")

(defvar gemini-companion-saved--due nil
  "The names of which something may have changed since it was saved.")

(defvar gemini-companion-saved--items nil
  "Alist of (NAME . ALIST): what components have about the file NAME.
An element of ALIST is (PART . ITEMS).")

(defvar gemini-companion-saved--lock nil
  "What this Emacs has written into the lock, or nil.")

(defvar gemini-companion-saved--other nil
  "A phrase for the other Emacs, which was displayed, or nil.")

(defvar gemini-companion-saved--timer nil
  "The timer that saves, or nil.")

(defvar gemini-companion-saved--idle-timer nil
  "The timer that restores what is used, or nil.")

;;;; Files

(defun gemini-companion-saved--directory ()
  "Return the directory of the files."
  (expand-file-name "changes/" gemini-companion-install-directory))

(defun gemini-companion-saved--file (name)
  "Return the file for NAME, such as \"0a1b2c3d4e5f6a7b-notes.md.eld\".
The name at its end is for the user, and may be incomplete."
  (gemini-companion-names-below
   (gemini-companion-saved--directory)
   (format "%.16s-%.40s.eld" (sha1 (encode-coding-string name 'utf-8-emacs-unix))
           (replace-regexp-in-string
            "[^[:alnum:]._-]" "_"
            (file-name-nondirectory (directory-file-name name))))))

(defun gemini-companion-saved--encode (value)
  "Return VALUE printed in one line, a unibyte string."
  (let ((print-escape-newlines t)
        (print-escape-nonascii t)
        (print-escape-control-characters nil)
        (print-length nil)
        (print-level nil)
        (print-circle nil))
    (encode-coding-string (prin1-to-string value) 'utf-8-emacs-unix)))

(defun gemini-companion-saved--decode (bytes)
  "Return the value of BYTES, see `gemini-companion-saved--encode'."
  (car (read-from-string (decode-coding-string bytes 'utf-8-emacs-unix))))

(defun gemini-companion-saved--header (bytes)
  "Return the header at the beginning of BYTES of a file.
That is a list (NAME ROOT HASH END): what the file is about, the hash of what
follows, and the index where that begins.  Signal an error if it is damaged."
  (let ((end (or (string-search "\n" bytes) (error "The saved file has no header"))))
    (unless (string-prefix-p "(gemini-companion-saved " bytes)
      (error "The saved file has no header"))
    (pcase (gemini-companion-saved--decode (substring bytes 0 end))
      (`(,_ ,(pred (eql gemini-companion-saved--version))
            ,(and name (pred stringp)) ,(and root (pred stringp))
            ,(and hash (pred stringp)))
       (list name root hash (1+ end)))
      (_ (error "The saved file is of another version of gemini-companion")))))

(defun gemini-companion-saved--read (file)
  "Return what FILE has, a plist; signal an error if it is damaged."
  (let ((bytes (gemini-companion-text-bytes file)))
    (pcase-let ((`(,_ ,_ ,hash ,end) (gemini-companion-saved--header bytes)))
      (let ((data (substring bytes end)))
        (unless (equal hash (sha1 data))
          (error "The saved file is incomplete or was modified"))
        (gemini-companion-saved--decode data)))))

(defun gemini-companion-saved--write (name root value)
  "Write VALUE, a plist, as what is saved of NAME in ROOT.
Return nil if it is too large; then nothing is saved."
  (let ((data (gemini-companion-saved--encode value))
        (file (gemini-companion-saved--file name)))
    (if (< gemini-companion-saved-most-bytes (length data))
        (ignore
         (gemini-companion-saved--delete name)
         (message "Changes left in %s are not saved for the next Emacs: more than %d MB"
                  (gemini-companion-names-absolute name)
                  (/ gemini-companion-saved-most-bytes 1024 1024)))
      ;; What could not be read, or is of another Emacs, is not overwritten.
      (unless (gemini-companion-saved--known-p name)
        (when-let* ((aside (gemini-companion-saved--put-aside file))
                    ((gethash name gemini-companion-saved--known)))
          (message "Changes of %s that another Emacs has saved were replaced by those of \
this one; the former are in %s"
                   (gemini-companion-names-absolute name)
                   (gemini-companion-names-absolute aside))))
      (with-file-modes #o600
        (let ((draft (concat file ".new")))
          (gemini-companion-text-write
           draft (concat (gemini-companion-saved--encode
                          (list 'gemini-companion-saved gemini-companion-saved--version
                                name root (sha1 data)))
                         "\n" data))
          (rename-file draft file t)))
      t)))

(defun gemini-companion-saved--known-p (name)
  "Return non-nil if this Emacs has saved what is saved of NAME, or restored it."
  (when-let* ((known (gethash name gemini-companion-saved--known)))
    (equal (cddr known)
           (gemini-companion-watch-stamp (gemini-companion-saved--file name)))))

(defun gemini-companion-saved--delete (name)
  "Delete what is saved of NAME, unless it is unreadable, or of another Emacs."
  (when (or (gemini-companion-saved--known-p name)
            (assoc name gemini-companion-saved--found))
    (gemini-companion-saved--delete-files name))
  (remhash name gemini-companion-saved--known))

(defun gemini-companion-saved--delete-files (name &optional all)
  "Delete the file for NAME, and if ALL is non-nil, what was put aside.
What this Emacs knows of NAME stays."
  (let ((file (gemini-companion-saved--file name)))
    ;; An Emacs that was killed may have left a draft.
    (dolist (suffix (cons "" (cons ".new" (and all '(".unread")))))
      (delete-file (concat file suffix))))
  (setf (alist-get name gemini-companion-saved--found nil 'remove #'equal) nil))

(defun gemini-companion-saved--put-aside (file)
  "Rename FILE, which cannot be read, if it exists; return the new name or nil.
After a week, it is deleted."
  (when (file-exists-p file)
    (let ((aside (concat file ".unread")))
      (condition-case nil
          (progn
            (rename-file file aside t)
            aside)
        (file-error nil)))))

(defun gemini-companion-saved--report (file name problem)
  "Report PROBLEM, a condition, of FILE, which was saved of NAME, or of nil.
Put FILE aside unless it could not be read at all."
  (let ((aside (and (not (memq 'file-error (get (car problem) 'error-conditions)))
                    (gemini-companion-saved--put-aside file))))
    (message "Saved changes of %s cannot be restored: %s; they stay in %s"
             (if name
                 (gemini-companion-names-absolute name)
               (replace-regexp-in-string
                "\\`[0-9a-f]+-\\|\\.eld\\'" "" (file-name-nondirectory file)))
             (if (or (null aside) (eq 'error (car problem)))
                 (gemini-companion-text-problem problem)
               "The saved file is damaged")
             (gemini-companion-names-absolute (or aside file)))))

(defun gemini-companion-saved--files (suffix)
  "Return the names of the files that end with SUFFIX."
  (ignore-error file-missing
    (directory-files (gemini-companion-saved--directory) t
                     (concat "\\.eld" (regexp-quote suffix) "\\'"))))

(defun gemini-companion-saved--names (suffix)
  "Return an alist of (NAME ROOT . FILE) of the files that end with SUFFIX.
Report those whose headers cannot be read."
  (cl-loop for file in (gemini-companion-saved--files suffix)
           for header = (condition-case problem
                            (gemini-companion-saved--header
                             (gemini-companion-text-bytes file 20000))
                          ;; Another Emacs has just deleted it.
                          (file-missing nil)
                          (error
                           (when (equal "" suffix)
                             (gemini-companion-saved--report file nil problem))))
           when (consp header)
           collect (cons (car header) (cons (cadr header) file))))

(defun gemini-companion-saved--find-files ()
  "Find what was saved, reading only the headers of the files."
  (dolist (found (gemini-companion-saved--names ""))
    (unless (or (gethash (car found) gemini-companion-saved--known)
                (assoc (car found) gemini-companion-saved--found))
      (push found gemini-companion-saved--found)
      (cl-callf2 delete (cadr found) gemini-companion-saved--used)))
  (dolist (file (append (gemini-companion-saved--files ".unread")
                        (gemini-companion-saved--files ".new")))
    (when (gemini-companion-saved--old-p file)
      (ignore-error file-error
        (delete-file file)))))

(defun gemini-companion-saved--old-p (file)
  "Return non-nil if FILE was written more than a week ago."
  (< gemini-companion-saved--week
     (float-time (time-since (file-attribute-modification-time
                              (file-attributes file))))))

;;;; Several Emacsen

(defun gemini-companion-saved--lock-file ()
  "Return the name of the lock."
  (expand-file-name "lock" (gemini-companion-saved--directory)))

(defun gemini-companion-saved--began (pid)
  "Return when the process PID has begun, in seconds, or nil if that is unknown."
  (when-let* ((start (alist-get 'start
                                (gemini-companion-text-process-attributes pid))))
    (floor (float-time start))))

(defun gemini-companion-saved--other ()
  "Return a phrase for the other Emacs that has the lock, or nil.
A process with the same number that has begun at another time is another
program.  Whether an Emacs of another host still runs is unknown: it counts as
ended if it has saved nothing for ten minutes."
  (let ((file (gemini-companion-saved--lock-file)))
    (pcase (ignore-errors (gemini-companion-saved--decode
                           (gemini-companion-text-bytes file 1000)))
      ((pred (equal gemini-companion-saved--lock)) nil)
      (`(,host ,(and pid (pred integerp)) ,began . ,_)
       (cond ((and (equal host (system-name)) began)
              (when-let* ((now (gemini-companion-saved--began pid))
                          ;; The time is computed from that of the system.
                          ((< (abs (- now began)) 10)))
                (format "Emacs process %d" pid)))
             ((< (float-time (time-since (file-attribute-modification-time
                                          (file-attributes file))))
                 600)
              (format "the Emacs on %s" host)))))))

(defun gemini-companion-saved--lock ()
  "Let this Emacs be the one that may save; return nil if another one is."
  (let ((file (gemini-companion-saved--lock-file))
        (other (gemini-companion-saved--other)))
    (cond (other
           (setq gemini-companion-saved--lock nil)
           (unless (equal other gemini-companion-saved--other)
             (message "Changes left are saved by %s; this Emacs saves its own once that \
has ended" other))
           (ignore (setq gemini-companion-saved--other other)))
          ((and gemini-companion-saved--lock (file-exists-p file))
           (ignore-errors (set-file-times file))
           t)
          (t
           (with-file-modes #o700
             (make-directory (gemini-companion-saved--directory) t))
           (setq gemini-companion-saved--lock
                 (list (system-name) (emacs-pid)
                       (gemini-companion-saved--began (emacs-pid)) (random)))
           (with-file-modes #o600
             (gemini-companion-text-write
              file (gemini-companion-saved--encode gemini-companion-saved--lock)))
           ;; One that has ended may have saved more since this one has begun.
           (setq gemini-companion-saved--other nil)
           (gemini-companion-saved--find-files)
           (gemini-companion-saved--use-buffers)
           t))))

(defun gemini-companion-saved--unlock ()
  "Let another Emacs save."
  (when gemini-companion-saved--lock
    (unless (gemini-companion-saved--other)
      (ignore-error file-error
        (delete-file (gemini-companion-saved--lock-file))))
    (setq gemini-companion-saved--lock nil)))

;;;; Saving

(defun gemini-companion-saved--hidden-p (name)
  "Return non-nil if nothing of the file NAME may be saved.
It is not shared; or it is the copy of a remote file, which ends with Emacs."
  (or (gemini-companion-names-of-copy name)
      (gemini-companion-privacy-name-hidden-p name)))

(defun gemini-companion-saved--root (name record)
  "Return the root of the file or directory NAME, or nil if it is in none.
RECORD is its record, or nil.  A root that it was saved in stays its root; where
files outside all projects are shared, it is the directory of NAME."
  (or (seq-some (apply-partially
                 #'gemini-companion-roots-innermost
                 (if (file-directory-p name) (file-name-as-directory name) name))
                (if record
                    (list (gemini-companion-edit-session
                           (gemini-companion-changes-file-edit record)))
                  (cons nil (gemini-companion-sessions))))
      (cadr (gethash name gemini-companion-saved--known))
      (and (gemini-companion-context-text-shared-p name)
           (directory-file-name (file-name-directory name)))))

(defun gemini-companion-saved--record (name)
  "Return the record of the file NAME if it has something to save, or nil."
  (when-let* ((record (gemini-companion-changes-of-file name))
              ((gemini-companion-changes-file-unreviewed record)))
    record))

(defun gemini-companion-saved--state (record items)
  "Return a value that differs, by `equal', if RECORD or ITEMS are to be saved."
  (list (and record
             (list (gemini-companion-changes-file-version record)
                   (gemini-companion-changes-path record)
                   (gemini-companion-watch-stamp
                    (gemini-companion-changes-path record))))
        (gemini-companion-saved--encode items)))

(defun gemini-companion-saved--collect-items ()
  "Get from components what they have about files; what has changed is due."
  (let ((all nil))
    (dolist (part (append (gemini-companion-parts-loaded)
                          (and (featurep 'gemini-companion-comment-opening)
                               '(comment-opening))))
      (pcase-dolist (`(,name . ,items)
                     (seq-group-by (lambda (item)
                                     (gemini-companion-text-true-name (car item)))
                                   (gemini-companion-part-saved part)))
        (when name
          (push (cons part items) (alist-get name all nil nil #'equal)))))
    (cl-flet ((of (name alist) (alist-get name alist nil nil #'equal)))
      (dolist (name (mapcar #'car (append all gemini-companion-saved--items)))
        (unless (equal (of name all) (of name gemini-companion-saved--items))
          (cl-pushnew name gemini-companion-saved--due :test #'equal))))
    (setq gemini-companion-saved--items all)))

(defun gemini-companion-saved--save (name)
  "Save what has changed of NAME, or delete it if nothing is left of that."
  (gemini-companion-saved--restore name)
  (let* ((record (gemini-companion-saved--record name))
         (items (alist-get name gemini-companion-saved--items nil nil #'equal))
         (hidden (gemini-companion-saved--hidden-p name))
         (root (and (or record items)
                    (not hidden)
                    (gemini-companion-saved--root name record)))
         (state (and root (gemini-companion-saved--state record items))))
    (cond ((null root)
           (gemini-companion-saved--delete name)
           (when hidden
             (gemini-companion-saved--delete-files name 'all)))
          ((equal state (car (gethash name gemini-companion-saved--known))))
          ((gemini-companion-saved--write
            name root
            (list :record (and record
                               (gemini-companion-garbage-later
                                 (gemini-companion-history-data record)))
                  :items items))
           (puthash name
                    (cons state
                          (cons root (gemini-companion-watch-stamp
                                      (gemini-companion-saved--file name))))
                    gemini-companion-saved--known)))))

(defun gemini-companion-saved--soon (&rest _)
  "Save what is due in a second."
  (gemini-companion-saved--later 1))

(defun gemini-companion-saved--later (seconds)
  "Save what is due in SECONDS, unless that is planned already."
  (unless gemini-companion-saved--timer
    (setq gemini-companion-saved--timer
          (run-at-time seconds nil #'gemini-companion-saved--begin))))

(defun gemini-companion-saved--unplan ()
  "Cancel the timer for what is due, if there is one."
  (when gemini-companion-saved--timer
    (cancel-timer gemini-companion-saved--timer)
    (setq gemini-companion-saved--timer nil)))

(defun gemini-companion-saved--record-changed (record _buffer)
  "Save RECORD soon, which may be nil or dropped, if it is to be saved again."
  (when-let* ((name (and record (gemini-companion-changes-file-name record)))
              (known (or (gethash name gemini-companion-saved--known) '(nil))))
    (unless (if (gemini-companion-saved--record name)
                (equal (caar known)
                       (car (gemini-companion-saved--state record nil)))
              (null (car known)))
      (cl-pushnew name gemini-companion-saved--due :test #'equal)
      (gemini-companion-saved--soon))))

(defun gemini-companion-saved--check-rules ()
  "Check soon whether all that is saved is still shared."
  (dolist (name (append (mapcar #'car gemini-companion-saved--found)
                        (hash-table-keys gemini-companion-saved--known)))
    (cl-pushnew name gemini-companion-saved--due :test #'equal))
  (when gemini-companion-saved--due
    (gemini-companion-saved--soon)))

(defun gemini-companion-saved--begin ()
  "Begin to save what is due; if another Emacs has the lock, try again later."
  (gemini-companion-saved--unplan)
  (gemini-companion-log-guarded "Saving changes"
    ;; No hook runs when another program writes an ignore file.
    (gemini-companion-privacy-refresh 'if-changed)
    (gemini-companion-saved--collect-items)
    ;; A file may have another name.
    (maphash (lambda (name _)
               (unless (or (gemini-companion-saved--record name)
                           (assoc name gemini-companion-saved--items))
                 (cl-pushnew name gemini-companion-saved--due :test #'equal)))
             gemini-companion-saved--known)
    (cond ((null gemini-companion-saved--due))
          ((gemini-companion-saved--lock)
           (gemini-companion-saved--go-on))
          (t
           (gemini-companion-saved--later 5)))))

(defun gemini-companion-saved--go-on (&optional at-once)
  "Save what is due, for a slice, and then later; AT-ONCE means all.
What could not be saved is tried again later."
  (gemini-companion-saved--unplan)
  (let ((since (float-time))
        (failed nil))
    (while (and gemini-companion-saved--due
                (or at-once
                    (< (- (float-time) since) gemini-companion-saved-slice)))
      (let ((name (car (last gemini-companion-saved--due))))
        (setq failed (cons name failed)
              gemini-companion-saved--due (nbutlast gemini-companion-saved--due))
        (gemini-companion-log-guarded "Saving changes"
          (gemini-companion-saved--save name)
          (pop failed))))
    (cond (gemini-companion-saved--due
           ;; What was saved may have planned more.
           (gemini-companion-saved--unplan)
           (setq gemini-companion-saved--timer
                 (run-at-time 0 nil #'gemini-companion-saved--go-on)))
          (failed
           (gemini-companion-saved--later 5)))
    (setq gemini-companion-saved--due (append gemini-companion-saved--due failed))))

(defun gemini-companion-saved--save-now ()
  "Save what is due, without slices."
  (when gemini-companion-saved--timer
    (gemini-companion-saved--begin)
    (when gemini-companion-saved--lock
      (gemini-companion-saved--go-on 'at-once))))

;;;; Restoring

(defun gemini-companion-saved--use (name)
  "Restore later what is saved in the roots that contain NAME.
That is a file, or a directory with a slash at its end."
  (pcase-dolist (`(,_ ,root . ,_) gemini-companion-saved--found)
    (when (and (not (member root gemini-companion-saved--used))
               (gemini-companion-text-in-directory-p name root))
      (push root gemini-companion-saved--used)
      (gemini-companion-saved--restore-later))))

(defun gemini-companion-saved--use-directories (directories)
  "Restore what is saved of the roots that contain DIRECTORIES, names or nil."
  (dolist (directory (seq-uniq directories))
    (unless (or (null directory) (file-remote-p directory))
      (gemini-companion-saved--use
       (file-name-as-directory (gemini-companion-text-true-name directory))))))

(defun gemini-companion-saved--use-sessions (_previous)
  "Restore what is saved of the roots of the CLIs that are connected."
  ;; Their Emacs may have ended and have saved what this one does not know.
  (unless (or gemini-companion-saved--lock (gemini-companion-saved--other))
    (gemini-companion-saved--find-files))
  (when gemini-companion-saved--found
    (gemini-companion-saved--use-directories
     (mapcar #'gemini-companion-session-directory
             (seq-remove #'gemini-companion-session-remote
                         (gemini-companion-sessions))))))

(defun gemini-companion-saved--use-buffers ()
  "Restore what is saved of the roots of all buffers, and of visited files now."
  (when gemini-companion-saved--found
    (gemini-companion-saved--use-directories
     (mapcar (lambda (buffer) (buffer-local-value 'default-directory buffer))
             (buffer-list)))
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (gemini-companion-saved--visited)))))

(defun gemini-companion-saved--restore-later ()
  "Restore what is used when Emacs is idle."
  (unless gemini-companion-saved--idle-timer
    (setq gemini-companion-saved--idle-timer
          (run-with-idle-timer 0.1 'repeat #'gemini-companion-saved--restore-some))))

(defun gemini-companion-saved--restore-some ()
  "Restore what is used until the user types, or a slice is over; then go on later."
  (let ((since (float-time))
        (waiting (cl-loop for (name root . _) in gemini-companion-saved--found
                          when (member root gemini-companion-saved--used)
                          collect name)))
    (while (and waiting (not (input-pending-p))
                (< (- (float-time) since) gemini-companion-saved-slice))
      (gemini-companion-saved--restore (pop waiting)))
    (cond ((null waiting)
           (when gemini-companion-saved--idle-timer
             (cancel-timer gemini-companion-saved--idle-timer))
           (setq gemini-companion-saved--idle-timer nil))
          ;; A timer that repeats runs once each time Emacs is idle.
          ((current-idle-time)
           (run-with-idle-timer (time-add (current-idle-time) 0.01) nil
                                #'gemini-companion-saved--restore-some)))))

(defun gemini-companion-saved--restore (name)
  "Restore what is saved of NAME, if that was not done yet.
If that is impossible, report it.  What may not be shared any more is not
restored."
  (when-let* ((found (assoc name gemini-companion-saved--found))
              (file (cddr found)))
    (cond
     ((gemini-companion-saved--hidden-p name)
      (cl-pushnew name gemini-companion-saved--due :test #'equal)
      (gemini-companion-saved--soon))
     (t
      (setq gemini-companion-saved--found (delq found gemini-companion-saved--found))
      (condition-case problem
          ;; Where another Emacs saves, nothing may be left of it.
          (when-let* ((stamp (gemini-companion-watch-stamp file)))
            (gemini-companion-saved--restore-data
             name (cadr found) file stamp (gemini-companion-saved--read file)))
        (error (gemini-companion-saved--report file name problem)))))))

(defun gemini-companion-saved--restore-data (name root file stamp data)
  "Restore DATA, which were saved of NAME of ROOT in FILE with STAMP.
If nothing of that is left, and FILE is old, delete FILE."
  (cl-check-type data cons)
  (pcase-let (((map :record :items) data))
    (pcase-dolist (`(,part . ,values) items)
      ;; An add-on may not be installed any more.
      (when (gemini-companion-part-load part)
        (gemini-companion-part-restore part values)))
    (when record
      (setq record (gemini-companion-garbage-later
                     (gemini-companion-history-restore name record))))
    (puthash name
             (cons (gemini-companion-saved--state record items) (cons root stamp))
             gemini-companion-saved--known)
    (when items
      (setf (alist-get name gemini-companion-saved--items nil nil #'equal) items))
    (when (and (null items)
               (not (and record (gemini-companion-changes-file-known record)))
               (gemini-companion-saved--old-p file))
      (gemini-companion-saved--delete name))))

(defun gemini-companion-saved--restore-file (name)
  "Restore what is saved of the file NAME, a true name, now."
  (when gemini-companion-saved--found
    (gemini-companion-saved--use name)
    (gemini-companion-saved--restore name)))

(defun gemini-companion-saved--visited ()
  "Restore what is saved of the file that the current buffer visits."
  (gemini-companion-log-guarded "Restoring saved changes"
    (when (and buffer-file-name (not (file-remote-p buffer-file-name)))
      (gemini-companion-saved--restore-file
       (gemini-companion-text-true-name buffer-file-name)))))

(defun gemini-companion-saved--follow (edit _event)
  "Restore what is saved of the file of EDIT, before something is recorded."
  (gemini-companion-saved--restore-file (gemini-companion-edit-true-name edit)))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'saved)))
  "Save what changes, and restore what is used."
  '((gemini-companion-changes-functions gemini-companion-saved--record-changed)
    (gemini-companion-comment-functions gemini-companion-saved--soon)
    (gemini-companion-turn-addition-hook gemini-companion-saved--soon)
    (gemini-companion-privacy-refresh-hook gemini-companion-saved--check-rules)
    (gemini-companion-session-changed-functions gemini-companion-saved--use-sessions)
    (gemini-companion-edit-file-functions gemini-companion-saved--follow -90)
    (find-file-hook gemini-companion-saved--visited -90)))

(cl-defmethod gemini-companion-part-start ((_part (eql 'saved)))
  "Find what the last Emacs has saved."
  (gemini-companion-log-guarded "Reading saved changes"
    (gemini-companion-saved--find-files))
  (gemini-companion-saved--use-buffers))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'saved)))
  "Save everything."
  (gemini-companion-log-guarded "Saving changes"
    (gemini-companion-saved--save-now))
  (gemini-companion-saved--unlock)
  (gemini-companion-saved--unplan)
  (when gemini-companion-saved--idle-timer
    (cancel-timer gemini-companion-saved--idle-timer))
  (cancel-function-timers #'gemini-companion-saved--restore-some)
  (clrhash gemini-companion-saved--known)
  (gemini-companion-history-forget-turns)
  (setq gemini-companion-saved--found nil
        gemini-companion-saved--used nil
        gemini-companion-saved--due nil
        gemini-companion-saved--items nil
        gemini-companion-saved--other nil
        gemini-companion-saved--idle-timer nil))

;;;; Commands

(defun gemini-companion-forget ()
  "Delete what is saved of this project for the next Emacs.
These are the changes left, unsent comments, and what is to be reported as
undone.  In this Emacs they stay; what changes then is saved again."
  (interactive)
  (gemini-companion-saved--save-now)
  (gemini-companion-saved--find-files)
  (let* ((directory (file-name-as-directory
                     (gemini-companion-text-true-name default-directory)))
         (names (seq-uniq
                 (cl-loop for (name root) in
                          (append gemini-companion-saved--found
                                  (gemini-companion-saved--names ".unread")
                                  (map-apply (lambda (name known)
                                               (list name (cadr known)))
                                             gemini-companion-saved--known))
                          when (gemini-companion-text-in-directory-p directory root)
                          collect name))))
    (unless names
      (user-error "Nothing is saved of this project"))
    (when-let* ((other (gemini-companion-saved--other)))
      (user-error "Not deleted: %s saves what is left in this project; \
type this command there" other))
    (dolist (name names)
      ;; What is known does not change by that, so it is not saved again.
      (gemini-companion-saved--delete-files name 'all))
    (message "Deleted what was saved of %d files of this project" (length names))))

(provide 'gemini-companion-saved)
;;; gemini-companion-saved.el ends here
