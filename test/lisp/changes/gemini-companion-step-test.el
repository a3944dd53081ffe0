;;; gemini-companion-step-test.el --- Tests of what a decision changes in a file  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-decision)
(require 'gemini-companion-step)
(require 'gemini-companion-undo)

(defmacro gemini-companion-step-test-with (files &rest body)
  "Run BODY in a directory with FILES, whose changes are recorded."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-changes ,files
     (unwind-protect (progn ,@body)
       (gemini-companion-part-stop 'decision))))

(ert-deftest gemini-companion-step-takes-back-and-redoes-in-file-and-buffer ()
  (dolist (where '(file buffer unsaved))
    (ert-info ((format "%s" where))
      (gemini-companion-step-test-with `(("a" ,gemini-companion-test-lines))
        (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
        (let* ((record (car (gemini-companion-changes-files)))
               (buffer (and (not (eq where 'file)) (find-file-noselect "a")))
               (texts (lambda ()
                        (list (gemini-companion-test-file-text "a")
                              (and buffer
                                   (with-current-buffer buffer (buffer-string))))))
               (before nil)
               (after nil))
          (when (eq where 'unsaved)
            (with-current-buffer buffer
              (insert "mine\n")))
          (setq before (funcall texts))
          (let* ((changes (gemini-companion-changes-update record))
                 (step (gemini-companion-step-of-changes
                        record (list (car changes))
                        (gemini-companion-record-change-hunks (car changes)) t))
                 (back (gemini-companion-step-do step)))
            (setq after (funcall texts))
            (should (equal (not (eq where 'unsaved))
                           (string-prefix-p "1\n2\n" (car after))))
            (should (eql 1 (gemini-companion-test-left)))
            (dotimes (_ 2)
              (setq step (gemini-companion-step-do back))
              (should (equal before (funcall texts)))
              (should (eql 2 (gemini-companion-test-left)))
              (setq back (gemini-companion-step-do step))
              (should (equal after (funcall texts)))
              (should (eql 1 (gemini-companion-test-left)))))
          (when buffer
            (with-current-buffer buffer
              (should (eq (eq where 'unsaved) (buffer-modified-p)))
              (set-buffer-modified-p nil))))))))

;; Emacs asked whether to edit the buffer, which had the text before.
(ert-deftest gemini-companion-step-reads-what-others-have-written ()
  (gemini-companion-step-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (find-file "a")
    (let* ((record (gemini-companion-changes-here))
           (changes (gemini-companion-changes-update record)))
      (with-temp-file "a"
        (insert "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"))
      (set-file-times "a" (time-add nil 5))
      (cl-letf (((symbol-function 'userlock--ask-user-about-supersession-threat)
                 (lambda (&rest _) (error "Asked"))))
        (gemini-companion-test-undo record changes))
      (should (equal "1\n2\n3\n4\n5\n6\n7\n8\nnine\n"
                     (gemini-companion-test-file-text "a")))
      (should (equal "1\n2\n3\n4\n5\n6\n7\n8\nnine\n" (buffer-string)))
      (should-not (buffer-modified-p)))))

;; The file was gone for good.
(ert-deftest gemini-companion-step-creates-again-what-the-walk-has-deleted ()
  (gemini-companion-step-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "d/new" "x\n" session)
    (set-file-modes "d/new" #o750)
    (gemini-companion-test-writes "a" "one\n" session)
    (find-file "d/new")
    (gemini-companion-test-answering #'always
      (gemini-companion-test-walk 'gemini-companion-next-change "u"))
    (should-not (file-exists-p (expand-file-name "d" directory)))
    (gemini-companion-test-walk 'gemini-companion-restore-change)
    (should (equal "x\n" (gemini-companion-test-file-text
                          (expand-file-name "d/new" directory))))
    (should (= #o750 (file-modes (expand-file-name "d/new" directory))))
    (should (eql 2 (gemini-companion-test-left)))))

;; It was created in the directory of the link, maybe outside of the project.
(ert-deftest gemini-companion-step-writes-nothing-behind-a-link-that-is-back ()
  (gemini-companion-step-test-with '(("a" "1\n") ("linked/b" "1\n"))
    (gemini-companion-test-writes "d/new" "x\n" session)
    (gemini-companion-test-answering #'always
      (gemini-companion-test-undo-edit (car (gemini-companion-edits))))
    (should-not (file-exists-p "d"))
    (make-symbolic-link "linked" "d")
    (should (string-search "d/new) is reached by other symbolic links now"
                           (gemini-companion-decision-undo)))
    (should (equal '("b") (directory-files "linked" nil
                                           directory-files-no-dot-files-regexp)))
    (should (equal "linked" (file-symlink-p "d")))))

;; The line was gone.
(ert-deftest gemini-companion-step-that-deletes-a-new-file-leaves-lines-of-others ()
  (gemini-companion-step-test-with nil
    (gemini-companion-test-writes "new" "x\ny\n" session)
    (find-file "new")
    (search-forward "x")
    (insert " of mine")
    (save-buffer)
    (let ((kill-ring nil))
      (gemini-companion-test-answering #'always
        (gemini-companion-test-walk 'gemini-companion-next-change "u"))
      (should-not (file-exists-p (expand-file-name "new" directory)))
      (should (equal '("x of mine\n") kill-ring)))))

;; A raw error said nothing of the files after it.
(ert-deftest gemini-companion-step-that-cannot-delete-a-new-file-does-the-rest ()
  (gemini-companion-step-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-test-writes "new" "x\n" session)
    (cl-letf (((symbol-function 'move-file-to-trash)
               (lambda (&rest _) (signal 'file-error '("Read-only file system"))))
              ((symbol-function 'delete-file)
               (lambda (&rest _) (signal 'file-error '("Read-only file system")))))
      (let ((said (gemini-companion-test-answering #'always
                    (gemini-companion-undo-decide
                     'undo
                     (mapcar (lambda (record)
                               (cons record (gemini-companion-changes-update record)))
                             (gemini-companion-changes-files))))))
        (should (string-prefix-p "Undid 1 change in 1 file; " said))
        (should (string-search "new cannot be moved to the trash (Read-only" said))))
    (should (equal "x\n" (gemini-companion-test-file-text "new")))
    (should (equal "1\n" (gemini-companion-test-file-text "a")))))

;; A part of it stayed, and then "exists again".
(ert-deftest gemini-companion-step-that-cannot-create-a-file-leaves-nothing-of-it ()
  (gemini-companion-step-test-with nil
    (gemini-companion-reported-bytes
     session (expand-file-name "gone") "1\n2\n" nil "rm gone" :modes #o600)
    (let ((write (symbol-function 'gemini-companion-text-write)))
      (cl-letf (((symbol-function 'gemini-companion-text-write)
                 (lambda (file text)
                   (funcall write file (substring text 0 2))
                   (signal 'file-error '("No space left on device")))))
        (should (string-match-p "gone cannot be created (No space"
                                (gemini-companion-test-refusal
                                  (gemini-companion-test-undo-edit
                                   (car (gemini-companion-edits))))))))
    (should-not (directory-files "." nil directory-files-no-dot-files-regexp))
    (gemini-companion-test-undo-edit (car (gemini-companion-edits)))
    (should (equal "1\n2\n" (gemini-companion-test-file-text "gone")))
    (should (= #o600 (file-modes "gone")))))

(ert-deftest gemini-companion-step-names-what-is-impossible-before-the-rest-is-done ()
  (dolist (answer '(nil t))
    (gemini-companion-step-test-with '(("a" "1\n") ("b" "1\n") ("c" "1\n"))
      (dolist (file '("a" "b" "c"))
        (gemini-companion-test-writes file "one\n" session))
      (gemini-companion-test-open "b" "two\n" 7 session)
      (let ((asked nil)
            (texts (lambda () (mapcar #'gemini-companion-test-file-text '("a" "b" "c")))))
        (gemini-companion-test-answering (lambda (prompt) (push prompt asked) answer)
          (ignore-error user-error
            (gemini-companion-decision-with "undo"
                                            (gemini-companion-undo-decide
                                             'undo
                                             (mapcar (lambda (record)
                                                       (cons record (gemini-companion-changes-update record)))
                                                     (gemini-companion-changes-files)))))
          (should (equal '("Leaves out b: undo 2 changes in 2 files?")
                         asked))
          (should (equal (if answer '("1\n" "one\n" "1\n") '("one\n" "one\n" "one\n"))
                         (funcall texts)))
          (when answer
            ;; It is one decision.  Of one that is taken back, the same is asked.
            (gemini-companion-test-open "a" "two\n" 8 session)
            (setq asked nil)
            (gemini-companion-decision-undo)
            (should (equal '("Leaves out a: take back undo?")
                           asked))
            (should (equal '("1\n" "one\n" "one\n") (funcall texts)))))))))

;; Packages print undo lists to files, such as undo-fu-session and undo-tree.
(ert-deftest gemini-companion-step-undo-list-has-no-record-and-is-read-back ()
  (gemini-companion-step-test-with '(("a" "1\n"))
    (gemini-companion-state-report session 'prompt "Secret prompt")
    (find-file "a")
    (buffer-enable-undo)
    (dotimes (n 40)
      (gemini-companion-test-writes
       "a" (format "%s%d of the CLI\n" (buffer-string) n) session)
      (let ((record (gemini-companion-changes-here)))
        (funcall (if (= 0 (mod n 2))
                     #'gemini-companion-test-keep
                   #'gemini-companion-test-undo)
                 record (gemini-companion-changes-update record))))
    (let* ((ours (seq-filter (lambda (entry)
                               (eq 'gemini-companion-step-turn (car (cdr-safe entry))))
                             buffer-undo-list))
           ;; Emacs puts markers there, which cannot be read.
           (printed (string-replace "#<marker" "" (prin1-to-string buffer-undo-list)))
           (entries (car (read-from-string (prin1-to-string ours)))))
      (should (length= ours 40))
      (should-not (string-match-p "#s(\\|#<\\|Secret prompt" printed))
      (dolist (entry ours)
        (let ((text (prin1-to-string entry)))
          (should-not (string-search "of the CLI" text))
          (should (< (length text) 200))))
      ;; The file is visited again, and its undo list comes from such a package.
      (setq buffer-undo-list (seq-mapcat (lambda (entry) (list nil entry)) entries)
            pending-undo-list nil)
      (let ((text (gemini-companion-test-file-text "a"))
            (messages (ert-with-message-capture messages
                        (let ((inhibit-message nil)
                              (last-command nil))
                          (dotimes (_ 8)
                            (undo)
                            (setq last-command 'undo)
                            (run-hooks 'post-command-hook))
                          (gemini-companion-test-run-timers))
                        messages)))
        (should (string-match-p "is no longer known" messages))
        (should (equal text (gemini-companion-test-file-text "a"))))
      (set-buffer-modified-p nil))))

(ert-deftest gemini-companion-step-undo-list-keeps-what-it-names ()
  (gemini-companion-step-test-with '(("a" "1\n"))
    (find-file "a")
    (buffer-enable-undo)
    (gemini-companion-test-writes "a" "one\n" session)
    (let ((record (gemini-companion-changes-here)))
      (gemini-companion-test-keep record
                                          (gemini-companion-changes-update record)))
    (gemini-companion-part-stop 'decision)
    (garbage-collect)
    (should-not (gemini-companion-test-left))
    (let ((last-command nil))
      (undo))
    (should (eql 1 (gemini-companion-test-left)))))

(provide 'gemini-companion-step-test)
;;; gemini-companion-step-test.el ends here
