;;; gemini-companion-unmarked.el --- Files that a call has written, without marks  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A call of a tool may write hundreds of files, or files that are no texts.  No lines
;; of these are marked.  They are one edit, whose row in the overview has their number.
;; Their contents are in the store of the snapshots, a git directory of the server, and
;; Emacs reads them there with git: for the diff of the two snapshots, and to give the
;; files what they had before.  The store exists at most as long as the server.

;;; Code:

(require 'cl-lib)
(require 'diff-mode)
(require 'seq)
(require 'gemini-companion-git)
(require 'gemini-companion-names)
(require 'gemini-companion-revert)
(require 'gemini-companion-slices)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)

(cl-defstruct (gemini-companion-unmarked
               (:noinline t)
               (:constructor gemini-companion-unmarked-make
                             (root files &optional snapshots environ left-out
                                   others))
               (:copier nil))
  "Files that one call of a tool has written below ROOT, a directory.
FILES are a list of `gemini-companion-unmarked-file's.  SNAPSHOTS is a list of
the names of two trees of git, before and after the call, which git finds with
ENVIRON, a list of strings as in `process-environment'.  LEFT-OUT are names of
files that were written, but not stored, as they are too large.  OTHERS are
files of which it is not known what they had before, so that they stay as they
are: an alist of `moved' ones, new names whose contents may be older than the
call, `unknown' ones, at which no snapshot has looked before, and `gone' ones.
Each value is a list of their number and the first names.  UNDONE are those of
FILES that the user has undone."
  root files snapshots environ left-out others
  (undone nil))

(cl-defstruct (gemini-companion-unmarked-file
               (:noinline t)
               (:constructor gemini-companion-unmarked-file
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

;;;; Display

(defun gemini-companion-unmarked-label (unmarked)
  "Return the number of files of UNMARKED and their kind, a phrase."
  (let ((counts nil))
    (dolist (file (gemini-companion-unmarked-files unmarked))
      (cl-incf (alist-get (gemini-companion-unmarked--kind file) counts 0)))
    (when-let* ((left-out (gemini-companion-unmarked-left-out unmarked)))
      (setf (alist-get 'large counts) (length left-out)))
    (pcase-dolist (`(,kind ,count) (gemini-companion-unmarked-others unmarked))
      (setf (alist-get kind counts) count))
    (mapconcat (pcase-lambda (`(,kind . ,count))
                 (format (pcase kind
                           ('mode (ngettext "mode of %d file" "modes of %d files" count))
                           ('link (ngettext "%d link" "%d links" count))
                           ('large (ngettext "%d large file" "%d large files" count))
                           ('moved (ngettext "%d file moved here"
                                             "%d files moved here" count))
                           ('unknown (ngettext "%d file not looked at before"
                                               "%d files not looked at before" count))
                           ('gone (ngettext "%d removed, not kept"
                                            "%d removed, not kept" count))
                           (_ (ngettext "%d file" "%d files" count)))
                         count))
               (nreverse counts) ", ")))

(defun gemini-companion-unmarked--kind (file)
  "Return the kind of FILE: `mode', `link' or `content'."
  (pcase-let (((cl-struct gemini-companion-unmarked-file
                          before after old-modes new-modes)
               file))
    (cond ((equal before after) 'mode)
          ((memq gemini-companion-unmarked--link (list old-modes new-modes)) 'link)
          (t 'content))))

(defun gemini-companion-unmarked-text (unmarked)
  "Return the names of the files of UNMARKED, one in a line, as git lists them."
  (let* ((lines (append
                 (mapcar (lambda (file)
                           (pcase-let (((cl-struct gemini-companion-unmarked-file
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
                                ('gone "removed  "))
                              (gemini-companion-names-shown name)))
                    names)
            (when (< (length names) count)
              (list (format "...and %d more of these" (- count (length names))))))))

(defun gemini-companion-unmarked-show (unmarked)
  "Display the difference that UNMARKED has made, in another window."
  (let* ((root (gemini-companion-unmarked-root unmarked))
         (text (gemini-companion-unmarked--git
                unmarked
                `("diff-tree" "-p" "-r" "--no-renames" "--no-ext-diff" "--no-textconv"
                  ,@(gemini-companion-unmarked-snapshots unmarked) "--"
                  ,@(mapcar #'gemini-companion-unmarked-file-name
                            (gemini-companion-unmarked-files unmarked)))))
         (buffer (get-buffer-create (format "*gemini diff: %s*"
                                            (gemini-companion-unmarked-label unmarked)))))
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
                              (gemini-companion-unmarked-root unmarked))))
      (unless (eql 0 (apply #'call-process "git" nil '(t nil) nil arguments))
        (user-error "The snapshots of this command were deleted"))
      (buffer-string))))

;;;; Undoing

(defun gemini-companion-unmarked-set-undone (unmarked undone)
  "Give the files of UNMARKED the contents before the call if UNDONE is non-nil.
Otherwise give those that were undone the contents after it.  A file that has
other contents now, or unsaved text in its buffer, is not changed.  Return a
list of the number of changed files, and of problems, texts."
  (dolist (snapshot (gemini-companion-unmarked-snapshots unmarked))
    (gemini-companion-unmarked--git unmarked (list "cat-file" "-e" snapshot)))
  (let* ((all (if undone
                  (gemini-companion-unmarked-files unmarked)
                (gemini-companion-unmarked-undone unmarked)))
         (done nil)
         (problems (and undone
                        (gemini-companion-unmarked--never-undone unmarked)))
         (put (lambda (file)
                (condition-case problem
                    (progn
                      (gemini-companion-unmarked--put unmarked file undone)
                      (push file done))
                  ((user-error file-error)
                   (push (error-message-string problem) problems)))))
         (what (if undone "Undoing" "Restoring"))
         (goes (seq-filter (lambda (file)
                             (gemini-companion-unmarked--goes-p file undone))
                           all))
         (others (seq-difference all goes #'eq))
         (left (gemini-companion-slices-do what goes put)))
    (when done
      ;; A file may come in the place of a directory.
      (gemini-companion-unmarked--delete-directories unmarked done undone))
    (setq left (if left
                   (append left others)
                 (gemini-companion-slices-do what others put)))
    (setf (gemini-companion-unmarked-undone unmarked) (and undone done))
    (list (length done)
          (append (nreverse problems)
                  (and left (list (format "stopped, %d left" (length left))))))))

(defun gemini-companion-unmarked--never-undone (unmarked)
  "Return which files of UNMARKED stay as they are when it is undone, texts."
  (append (mapcar (lambda (name)
                    (format "%s was not stored" name))
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
                                               count)))
                            count))
                  (gemini-companion-unmarked-others unmarked))))

(defun gemini-companion-unmarked--goes-p (file undone)
  "Return non-nil if FILE does not exist once it is UNDONE, or restored."
  (equal "" (if undone
                (gemini-companion-unmarked-file-before file)
              (gemini-companion-unmarked-file-after file))))

(defun gemini-companion-unmarked--put (unmarked file undone)
  "Give FILE of UNMARKED what it had before the call if UNDONE, or else after it.
Signal a `user-error' or `file-error' if that is impossible."
  (pcase-let* (((cl-struct gemini-companion-unmarked-file
                           name before after old-modes new-modes)
                file)
               (path (gemini-companion-names-below
                      (gemini-companion-unmarked-root unmarked) name))
               (`(,from ,from-modes ,to ,to-modes)
                (if undone
                    (list after new-modes before old-modes)
                  (list before old-modes after new-modes)))
               (buffer (gemini-companion-names-buffer path))
               (`(,modes . ,bytes) (gemini-companion-unmarked--now path)))
    (cond ((and buffer (buffer-modified-p buffer))
           (user-error "%s has unsaved changes" name))
          ((not (and (eql modes from-modes)
                     (or (null from)
                         (equal from (gemini-companion-unmarked--hash
                                      bytes (length (if (equal from "") to from)))))))
           (user-error "%s has changed since" name)))
    (gemini-companion-watch-writing path
      (cond ((or (null to) (equal to from)))
            ((equal to "")
             (delete-file path))
            (t
             (gemini-companion-unmarked--write
              path (gemini-companion-unmarked--git unmarked (list "cat-file" "blob" to))
              modes bytes to-modes)))
      (unless (memq to-modes (list 0 gemini-companion-unmarked--link))
        (gemini-companion-unmarked--set-executable path (= to-modes #o100755))))
    (cond ((equal to "")
           (when buffer
             (kill-buffer buffer)))
          (buffer
           (gemini-companion-revert-now path)))))

(defun gemini-companion-unmarked--now (path)
  "Return the modes as in git and the bytes that the file PATH has, a cons.
The modes are 0, and the bytes nil, without a file."
  (let* ((file-name-handler-alist nil)
         (attributes (file-attributes path)))
    (pcase (and attributes (file-attribute-type attributes))
      ((and link (pred stringp))
       (cons gemini-companion-unmarked--link
             (encode-coding-string link (or file-name-coding-system 'utf-8-unix))))
      ((guard (null attributes))
       (cons 0 nil))
      ('nil
       (cons (if (= 0 (logand #o100 (file-modes path))) #o100644 #o100755)
             (gemini-companion-text-bytes path)))
      (_ (cons nil nil)))))

(defun gemini-companion-unmarked--hash (bytes length)
  "Return the name of BYTES in git, a text of LENGTH; \"\" if BYTES is nil."
  (if (null bytes)
      ""
    (secure-hash (if (= 40 length) 'sha1 'sha256)
                 (concat (format "blob %d\0" (length bytes)) bytes))))

(defun gemini-companion-unmarked--write (path content modes bytes to-modes)
  "Write CONTENT to the file PATH, which has MODES and BYTES, with TO-MODES."
  (let ((file-name-handler-alist nil)
        (link gemini-companion-unmarked--link))
    (make-directory (file-name-directory path) t)
    (cond ((= link to-modes)
           (unless (eql 0 modes)
             (delete-file path))
           (make-symbolic-link
            (decode-coding-string content (or file-name-coding-system 'utf-8-unix))
            path))
          ((= #o100000 (logand #o170000 modes))
           (gemini-companion-text-rewrite path bytes content))
          (t
           (when (= link modes)
             (delete-file path))
           (gemini-companion-text-write path content)))))

(defun gemini-companion-unmarked--set-executable (path executable)
  "Make the file PATH EXECUTABLE for those who can read it, or for nobody."
  (let* ((file-name-handler-alist nil)
         (modes (file-modes path)))
    (unless (eq executable (/= 0 (logand #o100 modes)))
      (set-file-modes path (if executable
                               (logior modes (ash (logand modes #o444) -2))
                             (logand modes (lognot #o111)))))))

(defun gemini-companion-unmarked--delete-directories (unmarked files undone)
  "Delete the empty directories of FILES of UNMARKED, which were deleted.
Keep those of the snapshot before the call if UNDONE is non-nil, or else those
of the one after it."
  (let ((names nil))
    (dolist (file files)
      (let ((name (file-name-directory (gemini-companion-unmarked-file-name file))))
        (while name
          (let ((directory (directory-file-name name)))
            (cl-pushnew directory names :test #'equal)
            (setq name (file-name-directory directory))))))
    (when names
      (let ((there (split-string
                    (decode-coding-string
                     (gemini-companion-unmarked--git
                      unmarked
                      `("ls-tree" "--name-only" "-z" "-r" "-d" "--full-tree" "--"
                        ,(nth (if undone 0 1)
                              (gemini-companion-unmarked-snapshots unmarked))
                        ,@(seq-remove (apply-partially #'string-search "/") names)))
                     'utf-8-unix)
                    "\0" t)))
        ;; The deepest ones first.
        (dolist (name (seq-sort-by #'length #'> (seq-difference names there)))
          (let ((directory (gemini-companion-names-below
                            (gemini-companion-unmarked-root unmarked) name)))
            (when (and (file-directory-p directory)
                       (directory-empty-p directory))
              (ignore-error file-error
                (delete-directory directory)))))))))

(provide 'gemini-companion-unmarked)
;;; gemini-companion-unmarked.el ends here
