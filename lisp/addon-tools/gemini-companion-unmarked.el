;;; gemini-companion-unmarked.el --- Files that a call has written, without marks  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A call of a tool may write hundreds of files, or files that are no texts.  No lines
;; of these are marked.  They are one edit, whose row in the overview has their number.
;; Their contents are in the store of the snapshots, a git directory of the server.  Emacs
;; reads the diff of two snapshots there, with git.  To give the files what they had
;; before, the server compares and writes them, and Emacs moves to the trash what goes.
;; The store exists at most as long as the server.

;;; Code:

(require 'cl-lib)
(require 'diff-mode)
(require 'seq)
(require 'gemini-companion-attribution)
(require 'gemini-companion-changes)
(require 'gemini-companion-content)
(require 'gemini-companion-edit)
(require 'gemini-companion-git)
(require 'gemini-companion-idle)
(require 'gemini-companion-names)
(require 'gemini-companion-revert)
(require 'gemini-companion-server)
(require 'gemini-companion-slices)
(require 'gemini-companion-step)
(require 'gemini-companion-text)
(require 'gemini-companion-trash)
(require 'gemini-companion-undo)
(require 'gemini-companion-watch)

(declare-function json-encode "json")

(cl-defstruct (gemini-companion-unmarked
               (:noinline t)
               (:include gemini-companion-edit
                         (id (gensym)) (answer 'unreviewed) (reported t)
                         (file-state 'written)
                         (content (gemini-companion-content-make :bytes 'unknown)))
               (:constructor gemini-companion-unmarked-make
                             (file files &optional snapshots environ left-out
                                   others made session command uncommitted
                                   &aux (true-name
                                         (gemini-companion-text-true-name file))))
               (:copier nil))
  "An edit of several files, which one call of a tool has written below FILE.
FILES are a list of `gemini-companion-unmarked-entry's.  SNAPSHOTS is a list of
the names of two trees of git, before and after the call, which git finds with
ENVIRON, a list of strings as in `process-environment'.  LEFT-OUT are names of
files that were written, but not stored, as they are too large.  OTHERS are
files of which it is not known what they had before, so that they stay as they
are: an alist of `moved' ones, whose contents may be older than the call,
`unknown' ones, at which no snapshot has looked before, `gone' ones, and
`repositories', directories that have become one.
Each value is a list of their number and the first names.  MADE are names of
directories that are new.  UNCOMMITTED is how many of FILES had text that was in
no commit.  TAKEN-BACK are those of FILES that the user has undone, and BUSY is
non-nil while that is going on."
  files snapshots environ left-out others made uncommitted
  (taken-back nil)
  (busy nil))

(cl-defstruct (gemini-companion-unmarked-entry
               (:noinline t)
               (:constructor gemini-companion-unmarked-entry
                             (name before after old-modes new-modes))
               (:copier nil))
  "A file with a NAME relative to the root.
BEFORE and AFTER are the names of its contents in git, \"\" without a file; both
are nil if only its modes count.  OLD-MODES and NEW-MODES are the modes that git
has, such as #o100644, or 0 without a file."
  name before after old-modes new-modes)

(defconst gemini-companion-unmarked--link #o120000
  "The modes of a symbolic link in git.")

(defconst gemini-companion-unmarked--most-named 20
  "Maximum number of files whose names are displayed.")

(defconst gemini-companion-unmarked-most-problems 3
  "Maximum number of problems of an undo that are displayed.")

;;;; Recording

(defun gemini-companion-unmarked-record (unmarked)
  "Record that the command of UNMARKED has written its files."
  (gemini-companion-edit-add unmarked)
  (gemini-companion-edit-notify-file unmarked 'written))

;;;; Display

(cl-defmethod gemini-companion-changes-several-p ((_unmarked gemini-companion-unmarked))
  "Return t, as an edit of this kind is of several files."
  t)

(cl-defmethod gemini-companion-changes-names
  ((unmarked gemini-companion-unmarked) &optional files)
  "Return the names of FILES of UNMARKED, by default all."
  (mapcar (apply-partially #'gemini-companion-unmarked--path unmarked)
          (or files (gemini-companion-unmarked-files unmarked))))

(cl-defmethod gemini-companion-changes-several-undone ((unmarked gemini-companion-unmarked))
  "Return how many files of UNMARKED are undone, and how many there are, a cons."
  (cons (length (gemini-companion-unmarked-taken-back unmarked))
        (length (gemini-companion-unmarked-files unmarked))))

(cl-defmethod gemini-companion-edit-name
  ((unmarked gemini-companion-unmarked) &optional _plain)
  "Return the number of files of UNMARKED and their kind, a phrase."
  (let ((counts nil))
    (dolist (file (gemini-companion-unmarked-files unmarked))
      (cl-incf (alist-get (gemini-companion-unmarked--kind file) counts 0)))
    (when-let* ((left-out (gemini-companion-unmarked-left-out unmarked)))
      (setf (alist-get 'large counts) (length left-out)))
    (pcase-dolist (`(,kind ,count) (gemini-companion-unmarked-others unmarked))
      (setf (alist-get kind counts) count))
    (when-let* ((count (gemini-companion-unmarked-uncommitted unmarked))
                ((< 0 count))
                ((length< (gemini-companion-unmarked-taken-back unmarked)
                          (length (gemini-companion-unmarked-files unmarked)))))
      (setf (alist-get 'uncommitted counts) count))
    (mapconcat (pcase-lambda (`(,kind . ,count))
                 (format (pcase kind
                           ('uncommitted (gemini-companion-unmarked-uncommitted-text
                                          count))
                           ('mode (ngettext "mode of %d file" "modes of %d files" count))
                           ('link (ngettext "%d link" "%d links" count))
                           ('large (ngettext "%d large file" "%d large files" count))
                           ('moved (ngettext "%d file moved here"
                                             "%d files moved here" count))
                           ('unknown (ngettext "%d file not looked at before"
                                               "%d files not looked at before" count))
                           ('gone (ngettext "%d removed, not kept"
                                            "%d removed, not kept" count))
                           ('repositories (ngettext "%d new repository"
                                                    "%d new repositories" count))
                           (_ (ngettext "%d file" "%d files" count)))
                         count))
               (nreverse counts) ", ")))

(defun gemini-companion-unmarked-uncommitted-text (count)
  "Return that a command takes text of COUNT files in no commit, a phrase."
  (propertize (format (ngettext "takes text of %d file that was never committed"
                                "takes text of %d files that was never committed"
                                count)
                      count)
              'face 'warning))

(defun gemini-companion-unmarked--kind (file)
  "Return the kind of FILE: `mode', `link' or `content'."
  (pcase-let (((cl-struct gemini-companion-unmarked-entry
                          before after old-modes new-modes)
               file))
    (cond ((equal before after) 'mode)
          ((memq gemini-companion-unmarked--link (list old-modes new-modes)) 'link)
          (t 'content))))

(cl-defmethod gemini-companion-changes-several-text ((unmarked gemini-companion-unmarked))
  "Return the names of the files of UNMARKED, one in a line, as git lists them."
  (let* ((lines (append
                 (mapcar (lambda (file)
                           (pcase-let (((cl-struct gemini-companion-unmarked-entry
                                                   name before after)
                                        file))
                             (concat (cond ((equal before "") "new      ")
                                           ((equal after "") "deleted  ")
                                           ((equal before after) "mode     ")
                                           (t "changed  "))
                                     (gemini-companion-names-shown name))))
                         (gemini-companion-unmarked-files unmarked))
                 (mapcar (lambda (name)
                           (concat "not kept " (gemini-companion-names-shown name)))
                         (gemini-companion-unmarked-left-out unmarked))
                 (seq-mapcat #'gemini-companion-unmarked--lines-of-others
                             (gemini-companion-unmarked-others unmarked))))
         (more (- (length lines) gemini-companion-unmarked--most-named)))
    (concat (mapconcat (apply-partially #'format "    %s\n")
                       (seq-take lines gemini-companion-unmarked--most-named) "")
            (and (< 0 more)
                 (format "    and %d more; RET shows the diff\n" more)))))

(defun gemini-companion-unmarked--lines-of-others (others)
  "Return lines with the names of OTHERS, a member of that slot."
  (pcase-let ((`(,kind ,count . ,names) others))
    (append (mapcar (lambda (name)
                      (concat (pcase kind
                                ('moved "moved    ")
                                ('unknown "unknown  ")
                                ('gone "removed  ")
                                ('repositories "not looked at "))
                              (gemini-companion-names-shown name)))
                    names)
            (when (< (length names) count)
              (list (format "...and %d more of these" (- count (length names))))))))

(cl-defmethod gemini-companion-changes-several-show ((unmarked gemini-companion-unmarked))
  "Display the difference that UNMARKED has made, in another window."
  (let* ((root (gemini-companion-edit-file unmarked))
         (files (gemini-companion-unmarked-files unmarked))
         ;; No undo brings back what they had before.
         (moved (alist-get 'moved (gemini-companion-unmarked-others unmarked)))
         (text (gemini-companion-unmarked--git
                unmarked
                `("diff-tree" "-p" "-r" "--no-renames" "--no-ext-diff" "--no-textconv"
                  ,@(gemini-companion-unmarked-snapshots unmarked) "--"
                  ;; Without names, all is shown: not all names of these are known.
                  ,@(when (and files (length= (cdr moved) (or (car moved) 0)))
                      (append (mapcar #'gemini-companion-unmarked-entry-name files)
                              (cdr moved))))))
         (buffer (get-buffer-create (format "*gemini diff: %s*"
                                            (gemini-companion-edit-name unmarked)))))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (decode-coding-string text 'utf-8-unix)))
      (goto-char (point-min))
      ;; Before the mode, which otherwise has no keys such as q.
      (setq buffer-read-only t)
      (diff-mode)
      (setq default-directory (file-name-as-directory root)))
    (pop-to-buffer buffer '(nil (category . gemini-companion-patch)))))

(defun gemini-companion-unmarked--git (unmarked arguments)
  "Return what git prints for ARGUMENTS in the store of UNMARKED, in bytes.
Signal a `user-error' if the store was deleted."
  (with-temp-buffer
    (set-buffer-multibyte nil)
    (let ((process-environment (apply #'gemini-companion-git-environment
                                      (gemini-companion-unmarked-environ unmarked)))
          (coding-system-for-read 'no-conversion)
          (coding-system-for-write 'utf-8-unix)
          (default-directory (file-name-as-directory
                              (gemini-companion-edit-file unmarked))))
      (unless (eql 0 (apply #'call-process "git" nil '(t nil) nil arguments))
        (user-error "The snapshots of this command were deleted"))
      (buffer-string))))

;;;; Undoing

(cl-defmethod gemini-companion-undo-several-left ((unmarked gemini-companion-unmarked))
  "Return those of the files of UNMARKED that are not undone."
  (gemini-companion-unmarked--without (gemini-companion-unmarked-files unmarked)
                                      (gemini-companion-unmarked-taken-back unmarked)))

(defun gemini-companion-unmarked--without (files others)
  "Return those of FILES that are not in OTHERS; both may be thousands."
  (let ((table (make-hash-table :test 'eq)))
    (dolist (file others)
      (puthash file t table))
    (seq-remove (lambda (file) (gethash file table)) files)))

(cl-defmethod gemini-companion-step-several-problem ((unmarked gemini-companion-unmarked))
  "Return why the files of UNMARKED cannot be changed now, a verb phrase, or nil."
  (let ((server (plist-get (gemini-companion-server-info) :pid)))
    (cond ((null server) "cannot be undone or restored: their snapshots were deleted")
          ((equal server (gemini-companion-unmarked-busy unmarked))
           "are being written; wait for that"))))

(cl-defmethod gemini-companion-step-several-deletes
  ((unmarked gemini-companion-unmarked) files undone)
  "Return what is moved to the trash when FILES of UNMARKED are UNDONE."
  (gemini-companion-unmarked--items
   unmarked (gemini-companion-unmarked--going files undone) undone))

(cl-defmethod gemini-companion-step-several-except
  ((unmarked gemini-companion-unmarked) files names)
  "Return those of FILES of UNMARKED that do not have one of the absolute NAMES."
  (let ((table (make-hash-table :test 'equal)))
    (dolist (name names)
      (puthash name t table))
    (seq-remove (lambda (file)
                  (gethash (gemini-companion-unmarked--path unmarked file) table))
                files)))

(cl-defmethod gemini-companion-step-several
  ((unmarked gemini-companion-unmarked) step done)
  "Start STEP, by which UNMARKED is undone or restored.
For DONE and the value, see `gemini-companion-step-do'."
  (let ((on (gemini-companion-step-on step))
        (back (gemini-companion-step-back step))
        (functions gemini-companion-step-decided-functions))
    (gemini-companion-unmarked--change
     unmarked (gemini-companion-step-hunks step) on
     (gemini-companion-step-lost step)
     (lambda (changed problems)
       (let* ((gemini-companion-step-decided-functions functions)
              (most gemini-companion-unmarked-most-problems)
              (more (- (length problems) most))
              (text (string-join (append (seq-take problems most)
                                         (and (< 0 more)
                                              (list (format "and %d more" more))))
                                 "; ")))
         (setf (gemini-companion-step-hunks back) changed)
         (gemini-companion-attribution-set-undone
          unmarked (and (gemini-companion-unmarked-files unmarked)
                        (null (gemini-companion-undo-several-left unmarked))))
         (gemini-companion-idle-announce
          (concat (gemini-companion-unmarked--done on (length changed))
                  (and problems (concat (if changed "; " ": ") text))))
         (if changed
             (funcall done nil back)
           (funcall done (format "%s: %s" (gemini-companion-edit-name unmarked) text)
                    nil)))))
    back))

(defun gemini-companion-unmarked--done (on count)
  "Return a text that COUNT files were undone if ON is non-nil, or restored."
  (if (= 0 count)
      (if on "Nothing undone" "Nothing restored")
    (format (concat (if on "Undid " "Restored ") (ngettext "%d file" "%d files" count))
            count)))

(defun gemini-companion-unmarked--change (unmarked files undone lost done)
  "Give FILES of UNMARKED the contents before the call if UNDONE is non-nil.
Otherwise give them those after it.  A file that has other contents now, or
unsaved text in its buffer, is not changed.  LOST are the files that may be
deleted for good, absolute names, or t.  DONE is called, later, with a list of
the changed files, and one of problems, texts.  Signal a `user-error' if nothing
can be changed."
  (when-let* ((problem (gemini-companion-step-several-problem unmarked)))
    (user-error "%s %s" (gemini-companion-edit-name unmarked) problem))
  (setf (gemini-companion-unmarked-busy unmarked)
        (plist-get (gemini-companion-server-info) :pid))
  (pcase-let ((`(,saved . ,unsaved) (gemini-companion-unmarked--saved unmarked files)))
    (gemini-companion-unmarked--delete-going
     unmarked saved undone lost
     (lambda (stays gone kept)
       (gemini-companion-unmarked--write
        unmarked stays undone gone
        (pcase-lambda (`(,written . ,unwritten))
          (let ((changed (append gone written)))
            (gemini-companion-unmarked--end unmarked changed undone)
            (funcall done changed
                     (append (and undone
                                  (gemini-companion-unmarked--never-undone unmarked))
                             unsaved kept unwritten)))))))))

(defun gemini-companion-unmarked--delete-going (unmarked files undone lost then)
  "Delete those of FILES of UNMARKED that do not exist once they are UNDONE.
FILES have no unsaved text.  THEN is called, maybe later, with those that are to
be written, those that were deleted, and a list of problems.  For UNDONE and
LOST, see `gemini-companion-unmarked--change'."
  (let ((goes (gemini-companion-unmarked--going files undone)))
    (if (null goes)
        (funcall then files nil nil)
      ;; Nothing is deleted before it is known that the others can be written.
      (gemini-companion-unmarked--ask
       unmarked files undone goes t
       (pcase-lambda (`(,possible . ,impossible))
         (pcase-let* ((`(,saved . ,unsaved)
                       (gemini-companion-unmarked--saved unmarked possible))
                      (goes (gemini-companion-unmarked--going saved undone))
                      (renamed (and undone
                                    (gemini-companion-unmarked--renamed unmarked saved))))
           (gemini-companion-unmarked--delete
            unmarked (gemini-companion-unmarked--without goes (mapcar #'car renamed))
            undone
            (pcase-lambda (`(,gone . ,undeleted))
              (funcall then (gemini-companion-unmarked--without saved goes) gone
                       (append impossible unsaved
                               (mapcar #'gemini-companion-unmarked--renamed-text renamed)
                               undeleted)))
            lost)))))))

(defun gemini-companion-unmarked--renamed (unmarked files)
  "Return those of FILES that UNMARKED has renamed and that stay, an alist.
FILES are those that can be undone; the values are the files with the old names,
which cannot.  So nothing else would have the contents."
  (let ((stay (make-hash-table :test 'equal)))
    (dolist (file (gemini-companion-unmarked--without
                   (gemini-companion-undo-several-left unmarked) files))
      (when (equal "" (gemini-companion-unmarked-entry-after file))
        (puthash (gemini-companion-unmarked-entry-before file) file stay)))
    (cl-loop for file in (gemini-companion-unmarked--going files t)
             for old = (gethash (gemini-companion-unmarked-entry-after file) stay)
             when old collect (cons file old))))

(defun gemini-companion-unmarked--renamed-text (renamed)
  "Return a text that the car of RENAMED stays: it was renamed from the cdr."
  (gemini-companion-unmarked--sentence
   (car renamed) (format "was renamed from %s, which cannot be created again"
                         (gemini-companion-names-shown
                          (gemini-companion-unmarked-entry-name (cdr renamed))))))

(defun gemini-companion-unmarked--never-undone (unmarked)
  "Return which files of UNMARKED stay as they are when it is undone, texts."
  (append (mapcar (lambda (name)
                    (format "%s was not stored" (gemini-companion-names-shown name)))
                  (gemini-companion-unmarked-left-out unmarked))
          (mapcar (pcase-lambda (`(,kind ,count))
                    (format (pcase kind
                              ('moved (ngettext "%d file that was moved here stays"
                                                "%d files that were moved here stay"
                                                count))
                              ('unknown (ngettext "%d file not looked at before stays"
                                                  "%d files not looked at before stay"
                                                  count))
                              ('gone (ngettext "%d removed file was not kept"
                                               "%d removed files were not kept"
                                               count))
                              ('repositories (ngettext "%d new repository stays"
                                                       "%d new repositories stay"
                                                       count)))
                            count))
                  (gemini-companion-unmarked-others unmarked))))

(defun gemini-companion-unmarked--end (unmarked changed undone)
  "Record that CHANGED, files of UNMARKED, are UNDONE, or restored."
  (setf (gemini-companion-unmarked-busy unmarked) nil
        (gemini-companion-unmarked-taken-back unmarked)
        (let ((others (gemini-companion-unmarked--without
                       (gemini-companion-unmarked-taken-back unmarked) changed)))
          (if undone (append others changed) others))))

(defun gemini-companion-unmarked--path (unmarked file)
  "Return the absolute name of FILE of UNMARKED."
  (gemini-companion-names-below (gemini-companion-edit-file unmarked)
                                (gemini-companion-unmarked-entry-name file)))

(defun gemini-companion-unmarked--going (files undone)
  "Return those of FILES that do not exist once they are UNDONE, or restored."
  (seq-filter (lambda (file)
                (equal "" (if undone
                              (gemini-companion-unmarked-entry-before file)
                            (gemini-companion-unmarked-entry-after file))))
              files))

(defun gemini-companion-unmarked--sentence (file phrase)
  "Return a sentence with the name of FILE and PHRASE."
  (concat (gemini-companion-names-shown (gemini-companion-unmarked-entry-name file))
          " " phrase))

(defun gemini-companion-unmarked--saved (unmarked files &optional phrase)
  "Return a cons of those of FILES of UNMARKED without unsaved text, and problems.
These say PHRASE about the others."
  (let ((unsaved (gemini-companion-names-search-once
                   (seq-filter
                    (lambda (file)
                      ;; A buffer would visit what a link names.
                      (and (not (eq 'link (gemini-companion-unmarked--kind file)))
                           (gemini-companion-revert-unsaved
                            (gemini-companion-unmarked--path unmarked file))))
                    files))))
    (cons (gemini-companion-unmarked--without files unsaved)
          (mapcar (lambda (file)
                    (gemini-companion-unmarked--sentence
                     file (or phrase "has unsaved changes")))
                  unsaved))))

;;;; The server

(defun gemini-companion-unmarked--ask (unmarked files undone gone compare done)
  "Let the server change FILES of UNMARKED, or only COMPARE them.
For UNDONE, see `gemini-companion-unmarked--change'.  GONE are files that were
deleted just now, or will be.  DONE is called with a cons of those of FILES that
the server has changed, or can change, and problems."
  (let* ((fail (lambda (why) (funcall done (list nil why))))
         (facts (list :root (gemini-companion-edit-file unmarked)
                      :modes (default-file-modes)
                      :backups (expand-file-name gemini-companion-text-backups)
                      :checks compare
                      :gone (mapcar #'gemini-companion-unmarked-entry-name gone)
                      :tree (nth (if undone 0 1)
                                 (gemini-companion-unmarked-snapshots unmarked))))
         (end (lambda (answer)
                (let ((refused (mapcar (pcase-lambda (`(,index ,why))
                                         (cons (nth index files) why))
                                       answer)))
                  (funcall done
                           (cons (gemini-companion-unmarked--without files (mapcar #'car refused))
                                 (mapcar (pcase-lambda (`(,file . ,why))
                                           (gemini-companion-unmarked--sentence file why))
                                         refused)))))))
    (cond ((not (or files gone)) (funcall end nil))
          ((gemini-companion-server-ask
            'restore (list facts (gemini-companion-unmarked--json files undone))
            end fail))
          (t (funcall fail "the server has ended")))))

(defun gemini-companion-unmarked--json (files undone)
  "Return what the server needs to know of FILES to be UNDONE, or restored."
  (require 'json)
  (json-encode
   (vconcat
    (mapcar (pcase-lambda ((cl-struct gemini-companion-unmarked-entry
                                      name before after old-modes new-modes))
              (if undone
                  (vector name after new-modes before old-modes)
                (vector name before old-modes after new-modes)))
            files))))

(defun gemini-companion-unmarked--write (unmarked files undone gone done)
  "Let the server write FILES of UNMARKED; their buffers follow.
For UNDONE, GONE and DONE, see `gemini-companion-unmarked--ask'."
  (let ((paths (mapcar (apply-partially #'gemini-companion-unmarked--path unmarked)
                       files)))
    (dolist (path paths)
      (gemini-companion-watch-begin path))
    (gemini-companion-unmarked--ask
     unmarked files undone gone nil
     (pcase-lambda (`(,written . ,problems))
       (mapc #'gemini-companion-watch-end paths)
       (gemini-companion-slices-later
        written
        (lambda (file)
          (gemini-companion-revert-now (gemini-companion-unmarked--path unmarked file)))
        (lambda ()
          ;; What the user has typed meanwhile stays.
          (let ((unsaved (gemini-companion-unmarked--saved
                          unmarked written
                          "has unsaved changes, and has changed on disk")))
            (funcall done (cons written (append problems (cdr unsaved)))))))))))

;;;; Deleting

(defun gemini-companion-unmarked--items (unmarked files undone)
  "Return what to move to the trash for FILES of UNMARKED, see there.
For UNDONE, see `gemini-companion-unmarked--change'."
  (let ((paths (mapcar (apply-partially #'gemini-companion-unmarked--path unmarked)
                       files)))
    (if undone
        (gemini-companion-trash-items
         paths (mapcar (apply-partially #'gemini-companion-names-below
                                        (gemini-companion-edit-file unmarked))
                       (gemini-companion-unmarked-made unmarked)))
      (mapcar #'list paths))))

(defun gemini-companion-unmarked--delete (unmarked files undone done lost)
  "Move FILES of UNMARKED to the trash, in slices, and kill their buffers.
DONE is called with a cons of those that are deleted, and problems.  For UNDONE
and LOST, see `gemini-companion-unmarked--change'."
  (let* ((items (gemini-companion-unmarked--items unmarked files undone))
         (left-out (gemini-companion-trash-left-out (mapcar #'car items)))
         (problems nil))
    (gemini-companion-slices-later
     items
     (pcase-lambda (`(,item . ,in-it))
       (condition-case problem
           (progn
             (gemini-companion-trash-delete
              item
              (apply #'gemini-companion-step-may-lose-p lost (or in-it (list item)))
              (cdr (assoc item left-out)))
             (mapc #'gemini-companion-step-kill-buffer (or in-it (list item))))
         (user-error (push (gemini-companion-text-problem problem) problems))))
     (lambda ()
       (funcall done
                (cons (seq-remove
                       (lambda (file)
                         (file-attributes (gemini-companion-unmarked--path unmarked file)))
                       files)
                      (nreverse problems)))))))

(provide 'gemini-companion-unmarked)
;;; gemini-companion-unmarked.el ends here
