;;; gemini-companion-unmarked-test.el --- Tests of files without marks  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-unmarked)
(require 'gemini-companion-unmarked-test-helper)

(defun gemini-companion-unmarked-test-git (&rest arguments)
  "Return what git prints for ARGUMENTS in the store here."
  (with-temp-buffer
    (let ((process-environment (append (gemini-companion-unmarked-test-environ)
                                       process-environment)))
      (should (eql 0 (apply #'call-process "git" nil '(t nil) nil arguments))))
    (string-trim (buffer-string))))

(defun gemini-companion-unmarked-test-environ ()
  "Return the variables of the store here."
  (list (concat "GIT_DIR=" (expand-file-name ".store"))
        (concat "GIT_WORK_TREE=" (expand-file-name "tree"))
        "GIT_CONFIG_GLOBAL=/dev/null" "GIT_CONFIG_NOSYSTEM=1"))

(defun gemini-companion-unmarked-test-snapshot ()
  "Return the name of a tree with all files of the directory tree."
  (gemini-companion-unmarked-test-git "add" "-A")
  (gemini-companion-unmarked-test-git "write-tree"))

(defun gemini-companion-unmarked-test-between (before after)
  "Return the `gemini-companion-unmarked' between two trees, BEFORE and AFTER."
  (gemini-companion-unmarked-make
   (expand-file-name "tree")
   (mapcar (lambda (line)
             (pcase-let ((`(,old-modes ,new-modes ,old ,new ,_ ,name)
                          (split-string (substring line 1) "[ \t]")))
               (cl-flet ((blob (name)
                           (if (string-match-p "\\`0+\\'" name) "" name)))
                 (gemini-companion-unmarked-entry
                  name (blob old) (blob new)
                  (string-to-number old-modes 8) (string-to-number new-modes 8)))))
           (split-string (gemini-companion-unmarked-test-git
                          "diff-tree" "-r" before after)
                         "\n" t))
   (list before after) (gemini-companion-unmarked-test-environ) nil nil
   '("new" "new/deep")))

(defun gemini-companion-unmarked-test-files ()
  "Return what all files and directories of the directory tree have."
  (mapcar (lambda (name)
            (list name (file-symlink-p name)
                  (or (file-symlink-p name)
                      (if (file-directory-p name)
                          'directory
                        (cons (file-modes name) (gemini-companion-text-bytes name))))))
          (directory-files-recursively "tree" "" t)))

(defmacro gemini-companion-unmarked-test-with (&rest body)
  "Evaluate BODY with `unmarked', of all kinds of files that a call writes."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory
       '(("tree/text" "1\n") ("tree/image" "\0\1") ("tree/run" "#!/bin/sh\n")
         ("tree/old/deep/gone" "gone\n") ("tree/file" "f") ("tree/dir/in" "d"))
     (let ((make-backup-files nil))
       (gemini-companion-unmarked-test-git "init" "-q")
       (make-symbolic-link "text" "tree/link")
       (make-directory "tree/empty")
       (let ((before (gemini-companion-unmarked-test-snapshot)))
         (gemini-companion-text-write "tree/text" "2\r\n\351")
         (gemini-companion-text-write "tree/image" "\0\2")
         (set-file-modes "tree/run" #o755)
         (delete-directory "tree/old" t)
         (delete-file "tree/link")
         (make-symbolic-link "image" "tree/link")
         (make-directory "tree/new/deep" t)
         (gemini-companion-text-write "tree/new/deep/a" "new")
         ;; A file in the place of a directory, and a directory in that of a file.
         (delete-file "tree/file")
         (make-directory "tree/file")
         (gemini-companion-text-write "tree/file/in" "d")
         (delete-directory "tree/dir" t)
         (gemini-companion-text-write "tree/dir" "f")
         (let ((unmarked (gemini-companion-unmarked-test-between
                          before (gemini-companion-unmarked-test-snapshot))))
           (gemini-companion-unmarked-test-with-server ".store"
             ,@body))))))

(ert-deftest gemini-companion-unmarked-files-get-what-they-had-before ()
  (gemini-companion-unmarked-test-with
    (let ((after (gemini-companion-unmarked-test-files))
          (count (length (gemini-companion-unmarked-files unmarked))))
      (should (equal (list count nil)
                     (gemini-companion-unmarked-test-change unmarked t)))
      (should (equal (car (gemini-companion-unmarked-snapshots unmarked))
                     (gemini-companion-unmarked-test-snapshot)))
      (should-not (file-exists-p "tree/new"))
      (should (member "new" (mapcar #'file-name-nondirectory
                                    (gemini-companion-test-trash))))
      (should (equal "1\n" (gemini-companion-text-bytes "tree/text")))
      (should (equal (list count nil)
                     (gemini-companion-unmarked-test-change unmarked nil)))
      (should (equal after (gemini-companion-unmarked-test-files))))))

;; It was in the trash only.
(ert-deftest gemini-companion-unmarked-renamed-file-goes-once-it-has-its-old-name ()
  (dolist (taken '(nil "tree/old" "tree/old/in"))
    (gemini-companion-test-with-directory '(("tree/text" "1\n") ("tree/old/in" "\0mine"))
      (gemini-companion-unmarked-test-git "init" "-q")
      (let ((before (gemini-companion-unmarked-test-snapshot)))
        (gemini-companion-text-write "tree/text" "2\n")
        (rename-file "tree/old/in" "tree/moved")
        (delete-directory "tree/old")
        (let ((unmarked (gemini-companion-unmarked-test-between
                         before (gemini-companion-unmarked-test-snapshot))))
          (when taken
            (make-directory (file-name-directory taken) t)
            (gemini-companion-test-write taken "others\n"))
          (gemini-companion-unmarked-test-with-server ".store"
            (pcase-let ((`(,done ,problems)
                         (gemini-companion-unmarked-test-change unmarked t)))
              (should (= done (if taken 1 3)))
              (when taken
                (should (member "moved was renamed from old/in, which cannot be created again"
                                problems))
                (should (equal "others\n" (gemini-companion-text-bytes taken))))
              (should (equal "\0mine" (gemini-companion-text-bytes
                                       (if taken "tree/moved" "tree/old/in"))))
              (should (eq (and taken t) (file-exists-p "tree/moved")))
              (should (equal "1\n" (gemini-companion-text-bytes "tree/text"))))))))))

;; All of them were deleted for good with the yes to one question.
(ert-deftest gemini-companion-unmarked-file-that-would-be-gone-stays-alone ()
  (gemini-companion-unmarked-test-with
    (let ((gemini-companion-trash-most-bytes 2)
          (asked nil)
          (ended nil))
      (cl-letf (((symbol-function 'yes-or-no-p)
                 (lambda (question) (ignore (push question asked))))
                ((symbol-function 'gemini-companion-choice-key)
                 (lambda (&rest _) ?y)))
        (gemini-companion-undo-edits (list unmarked) :ended (lambda () (setq ended t)))
        (gemini-companion-test-eventually ended))
      (should (= 1 (length asked)))
      (should (string-search "tree/new/deep/a is larger than 2; delete for good? "
                             (car asked)))
      (should (equal '("new/deep/a")
                     (mapcar #'gemini-companion-unmarked-entry-name
                             (gemini-companion-undo-several-left unmarked))))
      (should (equal "new" (gemini-companion-text-bytes "tree/new/deep/a")))
      (should (equal "1\n" (gemini-companion-text-bytes "tree/text")))
      (should (equal "gone\n" (gemini-companion-text-bytes "tree/old/deep/gone"))))))

;; It was deleted for good without a question.
(ert-deftest gemini-companion-unmarked-file-that-has-outgrown-the-trash-stays ()
  (gemini-companion-unmarked-test-with
    (let ((gemini-companion-trash-most-bytes 2))
      (pcase-let ((`(,_ ,problems) (gemini-companion-unmarked-test-change unmarked t)))
        (should (seq-some (apply-partially #'string-search "cannot go to the trash")
                          problems))
        (should (equal "new" (gemini-companion-text-bytes "tree/new/deep/a")))
        (should (equal "1\n" (gemini-companion-text-bytes "tree/text")))))))

(ert-deftest gemini-companion-unmarked-leaves-files-that-have-changed-since ()
  (gemini-companion-unmarked-test-with
    (gemini-companion-text-write "tree/text" "mine")
    (set-file-modes "tree/image" #o755)
    (delete-file "tree/new/deep/a")
    (with-current-buffer (find-file-noselect "tree/dir")
      (insert "unsaved"))
    (unwind-protect
        (let ((count (length (gemini-companion-unmarked-files unmarked))))
          (pcase-let ((`(,done ,problems)
                       (gemini-companion-unmarked-test-change unmarked t)))
            ;; The directory cannot come in the place of the unsaved file.  So what has
            ;; the content of dir/in stays as well, and file cannot come in its place.
            (should (= 7 (- count done)))
            (should (member "dir/in is below a file now" problems))
            (should (member "text has changed since" problems))
            (should (member "image has changed since" problems))
            (should (member "new/deep/a has changed since" problems))
            (should (member "dir has unsaved changes" problems)))
          (should (equal "mine" (gemini-companion-text-bytes "tree/text")))
          (should (equal "\0\2" (gemini-companion-text-bytes "tree/image")))
          (should (equal "f" (gemini-companion-text-bytes "tree/dir"))))
      (with-current-buffer "dir"
        (set-buffer-modified-p nil)
        (kill-buffer)))))

(ert-deftest gemini-companion-unmarked-writes-nothing-outside-of-its-root ()
  (gemini-companion-test-with-directory '(("home/f" "mine") ("tree/a" ""))
    (let ((process-environment (cons (concat "HOME=" (expand-file-name "home"))
                                     process-environment)))
      (make-directory "home/dir")
      (gemini-companion-unmarked-test-git "init" "-q")
      (let ((before (gemini-companion-unmarked-test-snapshot)))
        (make-directory (concat default-directory "tree/~/dir") t)
        (dolist (name '("tree/~/f" "tree/~/dir/g" "tree/$HOME"))
          (gemini-companion-text-write (concat default-directory name) "mine"))
        (let ((unmarked (gemini-companion-unmarked-test-between
                         before (gemini-companion-unmarked-test-snapshot))))
          (gemini-companion-unmarked-test-with-server ".store"
            (should (equal '(3 nil) (gemini-companion-unmarked-test-change unmarked t)))
            (should (equal '("a") (directory-files "tree" nil "[^.]")))
            (should (equal '("dir" "f") (directory-files "home" nil "[^.]")))
            (should (equal '(3 nil) (gemini-companion-unmarked-test-change unmarked nil)))
            (should (equal '("$HOME" "a" "~") (directory-files "tree" nil "[^.]")))))))))

(ert-deftest gemini-companion-unmarked-problems-have-escaped-names ()
  (gemini-companion-test-with-directory nil
    (let* ((name "a\n\e[31mb\u202E")
           (file (gemini-companion-unmarked-entry name "x" "y" #o100644 #o100644))
           (unmarked (gemini-companion-unmarked-make
                      directory (list file) nil nil '("c\nd"))))
      (gemini-companion-test-write (concat directory name) "mine")
      (with-current-buffer (find-file-noselect (concat directory name))
        (insert "unsaved")
        (let ((problems (gemini-companion-unmarked-test-with-server ".store"
                          (cadr (gemini-companion-unmarked-test-change unmarked t)))))
          (should (= 2 (length problems)))
          (dolist (problem problems)
            (should (string-match-p "\\`[ -~]+\\'" problem))))
        (set-buffer-modified-p nil)))))

(ert-deftest gemini-companion-unmarked-buffers-follow ()
  (gemini-companion-unmarked-test-with
    (let ((text (find-file-noselect "tree/text"))
          (new (find-file-noselect "tree/new/deep/a")))
      (gemini-companion-unmarked-test-change unmarked t)
      (should-not (buffer-live-p new))
      (with-current-buffer text
        (should (equal "1\n" (buffer-string)))
        (kill-buffer)))))

(ert-deftest gemini-companion-unmarked-files-are-undone-though-a-buffer-stays ()
  (dolist (problem '(error quit))
    (gemini-companion-unmarked-test-with
      (let ((buffer (find-file-noselect "tree/new/deep/a"))
            (debug-on-error nil))
        (with-current-buffer buffer
          (add-hook 'kill-buffer-query-functions (lambda () (signal problem nil)) nil t))
        (should (equal (list (length (gemini-companion-unmarked-files unmarked)) nil)
                       (gemini-companion-unmarked-test-change unmarked t)))
        (should-not (gemini-companion-step-several-problem unmarked))
        (with-current-buffer buffer
          (setq kill-buffer-query-functions nil)
          (kill-buffer))))))

(ert-deftest gemini-companion-unmarked-shows-the-difference ()
  (gemini-companion-unmarked-test-with
    (save-window-excursion
      (gemini-companion-changes-several-show unmarked)
      (unwind-protect
          (progn
            (should (eq 'diff-mode major-mode))
            (should (eq 'quit-window (key-binding "q")))
            (should (string-search "Binary files a/image and b/image differ"
                                   (buffer-string)))
            (should (string-search "\n-1\n" (buffer-string))))
        (kill-buffer)))))

(ert-deftest gemini-companion-unmarked-shows-what-a-file-had-that-was-overwritten ()
  (gemini-companion-unmarked-test-with
    ;; As by "cp -p": no undo brings the old text back.
    (setf (gemini-companion-unmarked-files unmarked)
          (seq-filter (lambda (file)
                        (equal "image" (gemini-companion-unmarked-entry-name file)))
                      (gemini-companion-unmarked-files unmarked))
          (gemini-companion-unmarked-others unmarked) '((moved 1 "text")))
    (cl-flet ((shows-p (text)
                (save-window-excursion
                  (gemini-companion-changes-several-show unmarked)
                  (prog1 (string-search text (buffer-string))
                    (kill-buffer)))))
      (should (shows-p "\n-1\n"))
      ;; Of more than twenty, the row does not have the names of all.
      (setf (gemini-companion-unmarked-others unmarked) '((moved 2 "another")))
      (should (shows-p "\n-1\n"))
      (setf (gemini-companion-unmarked-others unmarked) nil)
      (should-not (shows-p "\n-1\n")))))

(ert-deftest gemini-companion-unmarked-names-at-most-twenty-files ()
  (cl-flet ((text (count)
              (gemini-companion-changes-several-text
               (gemini-companion-unmarked-make
                "/" (mapcar (lambda (i)
                              (gemini-companion-unmarked-entry
                               (format "a%d" i) "1" "2" #o100644 #o100644))
                            (number-sequence 1 count))))))
    (should (string-suffix-p "    changed  a20\n" (text 20)))
    (should (string-suffix-p "    changed  a20\n    and 1 more; RET shows the diff\n"
                             (text 21)))))

(ert-deftest gemini-companion-unmarked-deleted-snapshots-are-said ()
  (gemini-companion-unmarked-test-with
    (let ((after (gemini-companion-unmarked-test-files)))
      (delete-directory ".store" t)
      (should (string-search "were deleted"
                             (gemini-companion-test-refusal
                               (gemini-companion-changes-several-show unmarked))))
      ;; Nothing is deleted.
      (should (equal '(0 ("the snapshots were deleted"))
                     (gemini-companion-unmarked-test-change unmarked t)))
      (should-not (gemini-companion-unmarked-taken-back unmarked))
      (should (equal after (gemini-companion-unmarked-test-files))))))

(ert-deftest gemini-companion-unmarked-files-without-a-server-stay ()
  (gemini-companion-unmarked-test-with
    (cl-letf (((symbol-function 'gemini-companion-server-info) #'ignore))
      (should (string-suffix-p " cannot be undone or restored: their snapshots were deleted"
                               (gemini-companion-test-refusal
                                 (gemini-companion-unmarked-test-change unmarked t)))))))

;; The second one counted as a second step of the same file, and there was a question.
(ert-deftest gemini-companion-unmarked-files-of-two-calls-stay-without-a-server ()
  (gemini-companion-unmarked-test-with
    (gemini-companion-decision-with "undo of 2 calls"
      (dolist (edit (list unmarked
                          (apply #'gemini-companion-unmarked-test-between
                                 (gemini-companion-unmarked-snapshots unmarked))))
        (run-hook-with-args 'gemini-companion-step-decided-functions
                            (gemini-companion-step-make
                             :kind 'several :edit edit
                             :hunks (gemini-companion-unmarked-files edit)))))
    (cl-letf (((symbol-function 'gemini-companion-server-info) #'ignore))
      (gemini-companion-test-answering (lambda (_question) (ert-fail "Asked"))
        (should (string-prefix-p "Taken back: nothing; "
                                 (cdr (gemini-companion-decision-take-back))))))))

;; The row said "undone", and a second undo that it is.
(ert-deftest gemini-companion-unmarked-files-that-are-left-are-undone-later ()
  (gemini-companion-unmarked-test-with
    (let ((count (length (gemini-companion-unmarked-files unmarked)))
          (text (find-file-noselect "tree/text")))
      (with-current-buffer text
        (insert "unsaved"))
      (should (equal (list (1- count) '("text has unsaved changes"))
                     (gemini-companion-unmarked-test-change unmarked t)))
      (should (equal '("text") (mapcar #'gemini-companion-unmarked-entry-name
                                       (gemini-companion-undo-several-left unmarked))))
      (with-current-buffer text
        (set-buffer-modified-p nil)
        (kill-buffer))
      (should (equal '(1 nil) (gemini-companion-unmarked-test-change unmarked t)))
      (should-not (gemini-companion-undo-several-left unmarked))
      (should (equal (car (gemini-companion-unmarked-snapshots unmarked))
                     (gemini-companion-unmarked-test-snapshot))))))

(ert-deftest gemini-companion-changes-several-text-that-is-typed-meanwhile-stays ()
  (gemini-companion-unmarked-test-with
    (let ((count (length (gemini-companion-unmarked-files unmarked)))
          (text (find-file-noselect "tree/text"))
          (ask (symbol-function 'gemini-companion-server-ask)))
      (cl-letf (((symbol-function 'gemini-companion-server-ask)
                 (lambda (&rest arguments)
                   ;; The server has the question.
                   (should (equal "are being written; wait for that"
                                  (gemini-companion-step-several-problem unmarked)))
                   ;; After the last check.
                   (unless (plist-get (car (nth 1 arguments)) :checks)
                     (with-current-buffer text
                       (insert "typed")))
                   (apply ask arguments))))
        (should (equal (list count
                             '("text has unsaved changes, and has changed on disk"))
                       (gemini-companion-unmarked-test-change unmarked t))))
      (with-current-buffer text
        (should (string-prefix-p "typed2" (buffer-string)))
        (set-buffer-modified-p nil)
        (kill-buffer))
      (should (equal "1\n" (gemini-companion-text-bytes "tree/text"))))))

(ert-deftest gemini-companion-unmarked-entry-of-others-in-a-new-directory-stays ()
  (gemini-companion-unmarked-test-with
    (gemini-companion-text-write "tree/new/mine" "mine")
    (should-not (cadr (gemini-companion-unmarked-test-change unmarked t)))
    (should (equal '("mine") (directory-files "tree/new" nil "\\`[^.]")))))

(provide 'gemini-companion-unmarked-test)
;;; gemini-companion-unmarked-test.el ends here
