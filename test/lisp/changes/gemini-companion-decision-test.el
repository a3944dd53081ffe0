;;; gemini-companion-decision-test.el --- Tests of taking back what was kept and undone  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-decision)

(defmacro gemini-companion-decision-test-in (text &rest body)
  "Run BODY in the buffer of a, with lines 1 to 9 of which `edit' has made TEXT."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-in-changed ,text
     (unwind-protect (progn ,@body)
       (gemini-companion-part-stop 'decision))))

(defun gemini-companion-decision-test-undo-file ()
  "Undo all changes of the file a as one decision."
  (gemini-companion-decision-with "undo of a"
    (let ((record (car (gemini-companion-changes-files))))
      (gemini-companion-undo-decide
       'undo
       (list (cons record (gemini-companion-changes-update record)))))))

(defun gemini-companion-decision-test-said (command)
  "Call COMMAND, and return what it has said last."
  (car (last (split-string (ert-with-message-capture messages
                             (funcall command)
                             messages)
                           "\n" t))))

(defconst gemini-companion-decision-test-text "one\n2\n3\n4\n5\n6\n7\n8\nnine\n")

(ert-deftest gemini-companion-decision-takes-back-a-keep-and-redoes-it ()
  (gemini-companion-decision-test-in gemini-companion-decision-test-text
    (should-error (gemini-companion-decision-undo) :type 'user-error)
    (should-error (gemini-companion-decision-redo) :type 'user-error)
    (gemini-companion-decision-with "keep of 1 change"
      (gemini-companion-test-keep
       (gemini-companion-changes-here)
       (list (car (gemini-companion-changes-update (gemini-companion-changes-here))))))
    (dotimes (_ 2)
      (should (eql 1 (gemini-companion-test-left)))
      (should (equal "Taken back: keep of 1 change"
                     (gemini-companion-decision-test-said
                      #'gemini-companion-decision-undo)))
      (should (eql 2 (gemini-companion-test-left)))
      (should (equal "Redone: keep of 1 change"
                     (gemini-companion-decision-test-said
                      #'gemini-companion-decision-redo))))))

(ert-deftest gemini-companion-decision-takes-back-an-undo-whether-visited-or-not ()
  (dolist (how '(visited killed edited))
    (ert-info ((format "%s" how))
      (gemini-companion-decision-test-in gemini-companion-decision-test-text
        (let* ((with (lambda (text)
                       (if (eq how 'edited)
                           (string-replace "5\n" "5\nmine\n" text)
                         text)))
               (there (lambda (text left)
                        (should (equal (funcall with text)
                                       (gemini-companion-test-file-text "a")))
                        (should (eql left (gemini-companion-test-left)))
                        (should (eq (if left 'automatic 'undone)
                                    (gemini-companion-changes-status edit)))
                        (when-let* ((buffer (get-file-buffer "a")))
                          (with-current-buffer buffer
                            (should-not (buffer-modified-p))
                            (should (equal (funcall with text) (buffer-string))))))))
          (gemini-companion-decision-test-undo-file)
          (pcase how
            ('killed (kill-buffer))
            ('edited (goto-char (point-min))
                     (forward-line 5)
                     (insert "mine\n")
                     (save-buffer)))
          (let ((default-directory directory))
            (dotimes (_ 2)
              (funcall there gemini-companion-test-lines nil)
              (gemini-companion-decision-undo)
              (funcall there gemini-companion-decision-test-text 2)
              (gemini-companion-decision-redo))))))))

(ert-deftest gemini-companion-decision-restores-no-line-that-the-user-had-deleted ()
  (gemini-companion-decision-test-in "one\nmore\n2\n3\n4\n5\n6\n7\n8\n9\n"
    (goto-char (point-min))
    (forward-line)
    (delete-region (point) (line-beginning-position 2))
    (let ((text (buffer-string)))
      (gemini-companion-test-answering #'always
        (dotimes (_ 2)
          (gemini-companion-decision-test-undo-file)
          (dotimes (_ 2)
            (should (equal gemini-companion-test-lines (buffer-string)))
            (gemini-companion-decision-undo)
            (should (equal text (buffer-string)))
            (should (eql 1 (gemini-companion-test-left)))
            (gemini-companion-decision-redo))
          (gemini-companion-decision-undo))))
    (set-buffer-modified-p nil)))

(ert-deftest gemini-companion-decision-changes-nothing-where-lines-have-changed-since ()
  (gemini-companion-decision-test-in gemini-companion-decision-test-text
    (gemini-companion-decision-test-undo-file)
    (goto-char (point-min))
    (insert "mine ")
    (save-buffer)
    (let ((text (buffer-string)))
      (should (equal "Taken back: nothing; a: line 1 has changed since; not restored"
                     (gemini-companion-decision-test-said
                      #'gemini-companion-decision-undo)))
      (should (equal text (buffer-string)))
      (should (equal text (gemini-companion-test-file-text "a"))))))

;; The buffer had the text of its file, and counted as not saved.
(ert-deftest gemini-companion-decision-that-is-taken-back-leaves-no-unsaved-text ()
  (gemini-companion-decision-test-in gemini-companion-decision-test-text
    (let ((mine (string-replace "one" "mine" (buffer-string))))
      (gemini-companion-test-write "a" mine)
      (gemini-companion-revert-now (expand-file-name "a"))
      (gemini-companion-test-answering #'always
        (gemini-companion-decision-with "undo of a"
                                        (gemini-companion-test-undo-edit edit))
        (should-not (string-search "mine" (buffer-string)))
        (gemini-companion-decision-undo))
      (should (equal mine (buffer-string)))
      (should-not (buffer-modified-p)))))

;; A line that the user has typed again is the user's, and stays.
(ert-deftest gemini-companion-decision-that-is-taken-back-leaves-lines-typed-again ()
  (gemini-companion-decision-test-in "one\n2\n3\n4\nfive\n7\n8\n9\n"
    (goto-char (point-min))
    (search-forward "five\n")
    (insert "6\n")
    (let ((text (buffer-string)))
      (gemini-companion-changes-update-buffer)
      (gemini-companion-decision-test-undo-file)
      (should (equal "1\n2\n3\n4\n5\n6\n6\n7\n8\n9\n" (buffer-string)))
      (gemini-companion-decision-undo)
      (should (equal text (buffer-string))))))

;; The text was the same, so the record still said that the edit was undone.
(ert-deftest gemini-companion-decision-takes-back-what-changed-no-line ()
  (gemini-companion-decision-test-in (concat "new\n" gemini-companion-test-lines)
    ;; A later edit removes the line of the first one.
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (goto-char (point-max))
    (insert "mine\n")
    (let ((text (buffer-string))
          (state (lambda ()
                   (gemini-companion-changes-status edit))))
      (should (eq 'automatic (funcall state)))
      (gemini-companion-test-answering #'always
        (gemini-companion-decision-with "undo of a"
                                        (gemini-companion-test-undo-edit edit)))
      (should-not (eq 'automatic (funcall state)))
      (gemini-companion-decision-undo)
      (should (eq 'automatic (funcall state)))
      (should (equal text (buffer-string))))))

;; The corrected line was gone.
(ert-deftest gemini-companion-decision-that-is-redone-leaves-lines-of-others-in-the-kill-ring ()
  (gemini-companion-decision-test-in gemini-companion-decision-test-text
    (let ((kill-ring nil))
      (gemini-companion-decision-test-undo-file)
      (gemini-companion-decision-undo)
      (goto-char (point-min))
      (search-forward "one")
      (insert " of mine")
      (gemini-companion-decision-redo)
      (should (equal gemini-companion-test-lines (buffer-string)))
      (should (equal '("one of mine\n") kill-ring)))
    (set-buffer-modified-p nil)))

(ert-deftest gemini-companion-decision-follows-the-undo-of-emacs ()
  (dolist (keep '(nil t))
    (gemini-companion-decision-test-in gemini-companion-decision-test-text
      (cl-flet ((said (command) (gemini-companion-decision-test-said command))
                (emacs (command)
                  (let ((last-command 'ignore))
                    (undo-boundary)
                    ;; In Emacs 28, `undo-redo' needs a number.
                    (funcall command 1)
                    (run-hooks 'post-command-hook))))
        (let ((first (if keep "keep of 2 changes" "undo of a")))
          (if keep
              (gemini-companion-keep-changes)
            (gemini-companion-decision-test-undo-file))
          (emacs #'undo)
          (should (equal gemini-companion-decision-test-text (buffer-string)))
          (should (eql 2 (gemini-companion-test-left)))
          (should (equal "No keep or undo to take back"
                         (gemini-companion-test-refusal (gemini-companion-decision-undo))))
          ;; It can be redone there, and taken back here again.
          (should (equal (concat "Redone: " first)
                         (said #'gemini-companion-decision-redo)))
          (should-not (gemini-companion-test-left))
          (emacs #'undo)
          (emacs #'undo-redo)
          (should-not (gemini-companion-test-left))
          (should (equal (concat "Taken back: " first)
                         (said #'gemini-companion-decision-undo)))
          (should (eql 2 (gemini-companion-test-left)))
          (should (equal gemini-companion-decision-test-text
                         (gemini-companion-test-file-text "a"))))))))

(ert-deftest gemini-companion-decision-brings-back-a-deleted-file ()
  (dolist (how '(list walk))
    (gemini-companion-test-with-changes nil
      (unwind-protect
          (let ((edit (gemini-companion-test-writes "d/new" "x\n" session)))
            (set-file-modes "d/new" #o750)
            (find-file-noselect "d/new")
            (gemini-companion-test-answering #'always
              (if (eq how 'walk)
                  (gemini-companion-decision-test-undo-file)
                (gemini-companion-decision-with "undo of d/new"
                                                (gemini-companion-test-undo-edit edit))))
            (should-not (file-exists-p "d/new"))
            (should (eq 'undone (gemini-companion-changes-status edit)))
            ;; The CLI made its directory.
            (should-not (file-exists-p "d"))
            (dotimes (_ 2)
              (gemini-companion-decision-undo)
              (should (equal "x\n" (gemini-companion-test-file-text "d/new")))
              (should (= #o750 (file-modes "d/new")))
              (should (eql 1 (gemini-companion-test-left)))
              (should (eq 'automatic (gemini-companion-changes-status edit)))
              (gemini-companion-decision-redo)
              (should-not (file-exists-p "d"))
              (should-not (gemini-companion-test-left)))
            (make-directory "d")
            (gemini-companion-test-write "d/new" "mine\n")
            (should (string-search "d/new exists again"
                                   (gemini-companion-decision-test-said
                                    #'gemini-companion-decision-undo)))
            (should (equal "mine\n" (gemini-companion-test-file-text "d/new"))))
        (gemini-companion-part-stop 'decision)))))

(ert-deftest gemini-companion-decision-brings-back-an-edit-that-changed-nothing ()
  (gemini-companion-test-with-changes nil
    (let* ((edits (list (gemini-companion-test-writes "a" "1\n" session)
                        (gemini-companion-test-writes "a" "1\n" session)))
           (states (lambda ()
                     (mapcar #'gemini-companion-changes-status edits)))
           (before (funcall states)))
      (unwind-protect
          (progn
            (gemini-companion-test-answering #'always
              (gemini-companion-test-undo-edit (car edits)))
            (should-not (file-exists-p "a"))
            (should-not (equal before (funcall states)))
            (gemini-companion-decision-undo)
            (should (equal before (funcall states))))
        (gemini-companion-part-stop 'decision)))))

(ert-deftest gemini-companion-decision-deletes-the-directories-of-a-new-file ()
  (gemini-companion-test-with-changes nil
    (unwind-protect
        (let* ((first (gemini-companion-test-writes "d/e/f/one" "x\n" session))
               (second (gemini-companion-test-writes "d/e/two" "x\n" session))
               (undo (lambda (edit)
                       (gemini-companion-test-answering #'always
                         (gemini-companion-test-undo-edit edit)))))
          ;; Those that are not empty stay until the last file in them is deleted.
          (funcall undo first)
          (should-not (file-exists-p "d/e/f"))
          (should (file-exists-p "d/e/two"))
          (funcall undo second)
          (should-not (file-exists-p "d"))
          (dolist (file '("d/e/two" "d/e/f/one"))
            (gemini-companion-decision-undo)
            (should (equal "x\n" (gemini-companion-test-file-text file))))
          ;; So does the directory of a buffer, but not that of the current one.
          (with-temp-buffer
            (let ((root default-directory))
              (setq default-directory (expand-file-name "d/e/f/"))
              (with-temp-buffer
                (setq default-directory root)
                (funcall undo first)
                (should (file-directory-p "d/e/f"))
                (gemini-companion-decision-undo))
              (funcall undo first)
              (should-not (file-exists-p (expand-file-name "d/e/f" root)))
              (should (equal (expand-file-name "d/e/" root) default-directory))
              (gemini-companion-decision-undo)))
          ;; A directory that was there before stays.
          (make-directory "mine")
          (funcall undo (gemini-companion-test-writes "mine/new" "x\n" session))
          (should (file-directory-p "mine")))
      (gemini-companion-part-stop 'decision))))

(ert-deftest gemini-companion-decision-forgets-the-oldest-texts-and-says-so ()
  (gemini-companion-test-with-changes nil
    (unwind-protect
        (let ((gemini-companion-decision-most-bytes 10000)
              (text (make-string 4000 ?x)))
          (gemini-companion-test-answering #'always
            (dolist (file '("a" "b" "c"))
              (let* ((edit (gemini-companion-test-writes file text session))
                     (said (ert-with-message-capture messages
                                                     (gemini-companion-decision-with "undo"
                                                                                     (gemini-companion-test-undo-edit edit))
                                                     messages)))
                (should (eq (equal file "c")
                            (and (string-match-p
                                  "Deleted file .*a can no longer be restored"
                                  said)
                                 t)))))
            (dotimes (_ 2)
              (gemini-companion-decision-undo))
            (should-error (gemini-companion-decision-undo) :type 'user-error)
            (should (equal '(nil t t) (mapcar #'file-exists-p '("a" "b" "c"))))))
      (gemini-companion-part-stop 'decision))))

(ert-deftest gemini-companion-decision-is-one-for-all-files-of-a-command ()
  (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
    (unwind-protect
        (let ((edits (list (gemini-companion-test-writes
                            "a" gemini-companion-decision-test-text session)
                           (gemini-companion-test-writes "b" "C\n" session)))
              (texts (lambda ()
                       (mapcar #'gemini-companion-test-file-text '("a" "b")))))
          (gemini-companion-decision-with "undo of 2 edits"
            (mapc #'gemini-companion-test-undo-edit edits))
          (should (equal (list gemini-companion-test-lines "B\n") (funcall texts)))
          (gemini-companion-decision-undo)
          (should (equal (list gemini-companion-decision-test-text "C\n")
                         (funcall texts)))
          (gemini-companion-decision-redo)
          (should (equal (list gemini-companion-test-lines "B\n") (funcall texts))))
      (gemini-companion-part-stop 'decision))))

;; The second file is not writable while `full' is non-nil, and none is if it is `all'
;; and one was written.
(ert-deftest gemini-companion-decision-is-done-taken-back-and-redone-by-all-or-none ()
  (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
    (let* ((edits (list (gemini-companion-test-writes
                         "a" gemini-companion-decision-test-text session)
                        (gemini-companion-test-writes "b" "C\n" session)))
           (before (list gemini-companion-test-lines "B\n"))
           (after (list gemini-companion-decision-test-text "C\n"))
           (texts (lambda ()
                    (mapcar #'gemini-companion-test-file-text '("a" "b"))))
           (undo (lambda (edits)
                   (gemini-companion-decision-with-all "undo of 2 edits"
                     (mapc #'gemini-companion-test-undo-edit edits))))
           (write (symbol-function 'gemini-companion-text-rewrite))
           (full nil))
      (unwind-protect
          (cl-letf (((symbol-function 'gemini-companion-text-rewrite)
                     (lambda (file old text)
                       (when (and full (equal "b" (file-name-nondirectory file)))
                         (signal 'file-error '("No space left on device")))
                       (funcall write file old text))))
            (cl-flet ((fails (files function &rest arguments)
                        (setq full t)
                        (should (string-match-p
                                 "b cannot be written (No space left on device)"
                                 (gemini-companion-test-refusal
                                   (apply function arguments))))
                        (should (equal files (funcall texts)))
                        (dolist (edit edits)
                          (should (eq (if (equal files after) 'automatic 'undone)
                                      (gemini-companion-changes-status edit))))
                        (setq full nil)))
              (fails after undo edits)
              (should (string-search "No keep or undo to take back"
                                     (gemini-companion-test-refusal
                                       (gemini-companion-decision-undo))))
              (funcall undo edits)
              (should (equal before (funcall texts)))
              (fails before #'gemini-companion-decision-undo)
              ;; It can be tried again.
              (gemini-companion-decision-undo)
              (should (equal after (funcall texts)))
              (fails after #'gemini-companion-decision-redo)
              (gemini-companion-decision-redo)
              (should (equal before (funcall texts)))
              ;; Without a file, it would be the next one for ever.
              (delete-file "a")
              (should (equal "Taken back: nothing; a has been deleted or renamed"
                             (gemini-companion-decision-test-said
                              #'gemini-companion-decision-undo)))
              (should (equal "B\n" (gemini-companion-test-file-text "b")))
              (should (string-search "No keep or undo to take back"
                                     (gemini-companion-test-refusal
                                       (gemini-companion-decision-undo))))))
        (gemini-companion-part-stop 'decision)))))

;; What was undone in the file that cannot be written any more is a decision.
(ert-deftest gemini-companion-decision-records-what-cannot-be-put-back ()
  (gemini-companion-test-with-changes '(("a" "A\n") ("b" "B\n"))
    (let* ((edits (list (gemini-companion-test-writes "a" "C\n" session)
                        (gemini-companion-test-writes "b" "D\n" session)))
           (write (symbol-function 'gemini-companion-text-rewrite))
           (left 1))
      (unwind-protect
          (progn
            (cl-letf (((symbol-function 'gemini-companion-text-rewrite)
                       (lambda (file old text)
                         (when (< (cl-decf left) 0)
                           (signal 'file-error '("No space left on device")))
                         (funcall write file old text))))
              (should (string-search
                       "b cannot be written"
                       (gemini-companion-test-refusal
                         (gemini-companion-decision-with-all "undo of 2 edits"
                           (mapc #'gemini-companion-test-undo-edit edits))))))
            (should (equal '("A\n" "D\n")
                           (mapcar #'gemini-companion-test-file-text '("a" "b"))))
            (gemini-companion-decision-undo)
            (should (equal '("C\n" "D\n")
                           (mapcar #'gemini-companion-test-file-text '("a" "b")))))
        (gemini-companion-part-stop 'decision)))))

(ert-deftest gemini-companion-decision-has-the-undo-of-a-remote-file-once-written ()
  (gemini-companion-decision-test-in gemini-companion-decision-test-text
    (kill-buffer)
    (let ((writes nil)
          (default-directory directory))
      (cl-letf (((symbol-function 'gemini-companion-names-of-copy)
                 (lambda (_) '("/ssh:far:" . "/a")))
                ((symbol-function 'gemini-companion-names-write)
                 (lambda (file old text done)
                   (push (lambda (problem)
                           (unless problem
                             (should (equal old (gemini-companion-text-bytes file)))
                             (gemini-companion-test-write file text))
                           (funcall done problem))
                         writes))))
        (cl-flet ((undo-edit ()
                    (gemini-companion-decision-with "undo of a"
                      (gemini-companion-test-undo-edit edit)))
                  (there (text left)
                    (should (equal text (gemini-companion-test-file-text "a")))
                    (gemini-companion-changes-update
                     (gemini-companion-changes-with-edit edit))
                    (should (eql left (gemini-companion-test-left)))))
          (undo-edit)
          (should-error (gemini-companion-decision-undo) :type 'user-error)
          (funcall (pop writes) "lost")
          (should-error (gemini-companion-decision-undo) :type 'user-error)
          (undo-edit)
          (funcall (pop writes) nil)
          (there gemini-companion-test-lines nil)
          (dotimes (_ 2)
            (gemini-companion-decision-undo)
            (funcall (pop writes) nil)
            (there gemini-companion-decision-test-text 2)
            (gemini-companion-decision-redo)
            (funcall (pop writes) nil)
            (there gemini-companion-test-lines nil)))))))

(ert-deftest gemini-companion-decision-that-gains-a-file-at-the-question-keeps-it ()
  (gemini-companion-test-with-changes '(("a" "A\n") ("b" "B\n") ("c" "C\n"))
    (let ((edits (mapcar (lambda (file) (gemini-companion-test-writes file "X\n" session))
                         '("a" "b" "c")))
          (writes nil))
      (cl-letf (((symbol-function 'gemini-companion-names-of-copy)
                 (lambda (file)
                   (and (string-suffix-p "/c" file) '("/ssh:far:" . "/c"))))
                ((symbol-function 'gemini-companion-names-write)
                 (lambda (file _ text done)
                   (push (lambda ()
                           (gemini-companion-test-write file text)
                           (funcall done nil))
                         writes))))
        (cl-flet ((texts ()
                    (mapcar #'gemini-companion-test-file-text '("a" "c")))
                  (end-writes (&rest _)
                    (while writes
                      (funcall (pop writes)))
                    t))
          (unwind-protect
              (progn
                (gemini-companion-decision-with "undo of 3 edits"
                  (mapc #'gemini-companion-test-undo-edit edits))
                ;; The user is asked, as it cannot be restored.
                (delete-file "b")
                (gemini-companion-test-answering #'end-writes
                  (should (string-search "has changed meanwhile"
                                         (gemini-companion-test-refusal
                                           (gemini-companion-decision-undo))))
                  (should (equal '("A\n" "C\n") (texts)))
                  (gemini-companion-decision-undo)
                  (end-writes)
                  (should (equal '("X\n" "X\n") (texts)))))
            (gemini-companion-part-stop 'decision)))))))

(provide 'gemini-companion-decision-test)
;;; gemini-companion-decision-test.el ends here
