;;; gemini-companion-saved-test.el --- Tests of changes saved for the next Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-comment)
(require 'gemini-companion-comment-opening)
(require 'gemini-companion-saved)

(defmacro gemini-companion-saved-test-with (files &rest body)
  "Save and restore changes while BODY is run in a directory with FILES.
The files of changes are below the directory ours."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-changes ,files
     (let ((gemini-companion-install-directory (expand-file-name "ours/"))
           (gemini-companion-excluded '("/secret")))
       (unwind-protect
           (progn
             (gemini-companion-part-start 'saved)
             ,@body)
         (cl-letf (((symbol-function 'gemini-companion-saved--save-now) #'ignore))
           (gemini-companion-part-stop 'saved))
         (setq gemini-companion-comment--all nil
               gemini-companion-comment-opening--all nil)))))

(defun gemini-companion-saved-test-end (&optional killed)
  "End this Emacs, as far as changes are concerned; at once if KILLED."
  (when killed
    (cl-letf (((symbol-function 'gemini-companion-saved--save-now) #'ignore))
      (gemini-companion-part-stop 'saved)))
  (mapc #'gemini-companion-part-stop '(saved walk marks changes))
  (let ((directory default-directory)
        (current (current-buffer)))
    (dolist (buffer (buffer-list))
      (when (buffer-file-name buffer)
        (with-current-buffer buffer
          (set-buffer-modified-p nil))
        (kill-buffer buffer)))
    (unless (buffer-live-p current)
      ;; Not a buffer that outlives the directory of the test.
      (set-buffer (get-buffer-create " *gemini-companion-saved-test*"))
      (setq default-directory directory)))
  (setq gemini-companion-edit--all nil
        gemini-companion-comment--all nil
        gemini-companion-comment-opening--all nil))

(defun gemini-companion-saved-test-begin ()
  "Begin another Emacs, as far as changes are concerned."
  (mapc #'gemini-companion-part-start '(changes marks saved)))

(defun gemini-companion-saved-test-restart (&optional killed)
  "End this Emacs, at once if KILLED, and begin another one."
  (gemini-companion-saved-test-end killed)
  (gemini-companion-saved-test-begin))

(defun gemini-companion-saved-test-save ()
  "Save as the timer does."
  (gemini-companion-test-in-the-end
   (not (or gemini-companion-saved--timer gemini-companion-saved--due))))

(defun gemini-companion-saved-test-be-idle ()
  "Let Emacs be idle until what was saved is restored, in any number of slices."
  (ert-run-idle-timers)
  (while gemini-companion-saved--idle-timer
    (ert-run-idle-timers)))

(defun gemini-companion-saved-test-files ()
  "Return the names of the files of changes."
  (ignore-errors (directory-files "ours/changes" t "\\`[^.].*\\.eld\\'")))

(defun gemini-companion-saved-test-text ()
  "Return the text of all files of changes."
  (mapconcat #'gemini-companion-test-file-text (gemini-companion-saved-test-files) ""))

(ert-deftest gemini-companion-saved-changes-of-two-turns-are-restored ()
  (dolist (killed '(nil t))
    (gemini-companion-saved-test-with `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
      (find-file "a")
      (gemini-companion-state-report session 'prompt "First")
      (gemini-companion-test-writes "a" "1\ntwo\n3\n4\n5\nsix\n7\n8\n9\n" session)
      (gemini-companion-test-writes "b" "C\n" session)
      (gemini-companion-state-report session 'end nil)
      ;; The user types a line, and keeps a change.
      (goto-char (point-min))
      (insert "mine\n")
      (save-buffer)
      (search-forward "six")
      (gemini-companion-test-walk 'gemini-companion-keep-change)
      (gemini-companion-state-report session 'prompt "Second")
      (gemini-companion-test-writes "a" "mine\n1\nTWO\n3\n4\n5\nsix\n7\n8\nnine\n" session)
      (should (equal '(3 10) (gemini-companion-test-marked "a")))
      (gemini-companion-saved-test-save)
      (should (equal '(384) (mapcar #'file-modes (gemini-companion-saved-test-files))))
      (should (= 448 (file-modes "ours/changes")))
      (gemini-companion-saved-test-restart killed)
      (find-file "a")
      (should (equal '(3 10) (gemini-companion-test-marked "a")))
      (should (eql 3 (gemini-companion-test-left)))
      (let* ((record (gemini-companion-changes-of-file (file-truename "a")))
             (changes (gemini-companion-changes-file-known record))
             (prompts (lambda (change)
                        (mapcar (lambda (edit)
                                  (gemini-companion-turn-prompt
                                   (gemini-companion-edit-turn edit)))
                                (gemini-companion-record-change-edits change)))))
        (should (equal '("Second" "First") (funcall prompts (nth 0 changes))))
        (should (equal '("Second") (funcall prompts (nth 1 changes)))))
      ;; A turn has changed both files.
      (should (= 2 (length (seq-uniq (mapcar #'gemini-companion-edit-turn
                                             (gemini-companion-edits))
                                     #'eq))))
      (goto-char (point-min))
      (gemini-companion-test-walk 'gemini-companion-next-change "u" "u")
      (should (equal "mine\n1\n2\n3\n4\n5\nsix\n7\n8\n9\n"
                     (gemini-companion-text-of-buffer "a")))
      (should (equal "mine\n1\n2\n3\n4\n5\nsix\n7\n8\n9\n"
                     (gemini-companion-test-file-text "a"))))))

(ert-deftest gemini-companion-saved-changes-are-restored-before-the-next-write ()
  (gemini-companion-saved-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-saved-test-restart)
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (find-file "a")
    (should (equal '(1 9) (gemini-companion-test-marked "a")))
    (should (= 2 (length (gemini-companion-edits))))
    ;; What is not changed is not saved again.
    (gemini-companion-saved-test-save)
    (gemini-companion-saved-test-restart)
    (find-file "a")
    (should (equal '(1 9) (gemini-companion-test-marked "a")))))

(ert-deftest gemini-companion-saved-edit-that-was-taken-back-is-restored ()
  (gemini-companion-saved-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-test-writes "a" "1\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-saved-test-restart)
    (should-not (string-match-p "do not fit"
                                (ert-with-message-capture messages
                                  (let ((inhibit-message nil))
                                    (find-file "a"))
                                  messages)))
    (should (equal '(9) (gemini-companion-test-marked "a")))
    (gemini-companion-saved--soon)
    (gemini-companion-saved-test-save)
    (gemini-companion-saved-test-restart)
    (find-file "a")
    (should (equal '(9) (gemini-companion-test-marked "a")))))

(ert-deftest gemini-companion-saved-lines-of-others-are-theirs ()
  (gemini-companion-saved-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\nfive\n6\n7\n8\n9\n" session)
    (gemini-companion-saved-test-end)
    (gemini-companion-test-rewrite "a" "one\n2\nothers\n3\n4\n5\n6\n7\n8\n9\nothers\n")
    (gemini-companion-saved-test-begin)
    (find-file "a")
    (should (equal '(1) (gemini-companion-test-marked "a")))
    (goto-char (point-min))
    (gemini-companion-test-walk 'gemini-companion-undo-change)
    (should (equal "1\n2\nothers\n3\n4\n5\n6\n7\n8\n9\nothers\n" (buffer-string)))))

(ert-deftest gemini-companion-saved-undo-in-an-unsaved-buffer-is-undone-in-no-file ()
  (gemini-companion-saved-test-with `(("a" ,gemini-companion-test-lines))
    (find-file "a")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\nfive\n6\n7\n8\n9\n" session)
    (goto-char (point-max))
    (insert "unsaved\n")
    (goto-char (point-min))
    (gemini-companion-test-walk 'gemini-companion-undo-change)
    (should (buffer-modified-p))
    (should (equal '(5) (gemini-companion-test-marked "a")))
    (gemini-companion-saved-test-save)
    (gemini-companion-saved-test-restart 'killed)
    (find-file "a")
    (should (equal '(1 5) (gemini-companion-test-marked "a")))
    ;; A saved undo stays undone.
    (goto-char (point-min))
    (gemini-companion-test-walk 'gemini-companion-undo-change)
    (should-not (buffer-modified-p))
    (gemini-companion-saved-test-restart)
    (find-file "a")
    (should (equal '(5) (gemini-companion-test-marked "a")))))

(ert-deftest gemini-companion-saved-new-file-is-deleted-by-an-undo ()
  (gemini-companion-saved-test-with nil
    (gemini-companion-test-writes "dir/new" "1\n2\n" session)
    (gemini-companion-saved-test-restart)
    (find-file "dir/new")
    (should (equal '(1 2) (gemini-companion-test-marked "new")))
    (cl-letf (((symbol-function 'y-or-n-p) #'always))
      (gemini-companion-test-walk 'gemini-companion-undo-change))
    (should-not (file-exists-p "dir/new"))))

(ert-deftest gemini-companion-saved-line-ends-are-those-of-the-file ()
  (gemini-companion-saved-test-with '(("a" "1\r\n2\r\n3\r\n"))
    (gemini-companion-test-writes "a" "one\r\n2\r\n3\r\n" session)
    (gemini-companion-saved-test-restart)
    (find-file-noselect "a")
    (should (equal '(1) (gemini-companion-test-marked "a")))
    (gemini-companion-undo-edit (car (gemini-companion-edits)))
    (should (equal "1\r\n2\r\n3\r\n" (gemini-companion-text-bytes "a")))))

(ert-deftest gemini-companion-saved-deletion-is-undone ()
  (gemini-companion-saved-test-with '(("a" "1\r\n2\r\n") ("b" "1\n"))
    (set-file-modes "a" #o751)
    (delete-file "a")
    (gemini-companion-attribution-record-bytes
     session (expand-file-name "a") "1\r\n2\r\n" nil "rm a" :modes #o751)
    (should (eql 1 (gemini-companion-test-left)))
    (gemini-companion-saved-test-restart)
    (find-file-noselect "b")
    (gemini-companion-saved-test-be-idle)
    (should (eql 1 (gemini-companion-test-left)))
    (gemini-companion-undo-edit (car (gemini-companion-edits)))
    (should (equal "1\r\n2\r\n" (gemini-companion-text-bytes "a")))
    (should (= #o751 (file-modes "a")))
    (should-not (gemini-companion-test-left))))

(ert-deftest gemini-companion-saved-changes-are-never-those-of-excluded-files ()
  (gemini-companion-saved-test-with '(("secret" "1\n") ("a" "1\n") ("b" "1\n"))
    (dolist (file '("secret" "a" "b"))
      (gemini-companion-test-writes file (format "Text of %s\n" file) session))
    (gemini-companion-saved-test-save)
    (let ((text (gemini-companion-saved-test-text)))
      (should (string-search "Text of a" text))
      (should (string-search "Text of b" text))
      (should-not (string-search "secret" text)))
    ;; While they are restored, and before.
    (dolist (restart '(nil t))
      (when restart
        (gemini-companion-saved-test-restart))
      (setq gemini-companion-excluded (list "/secret" (if restart "/b\\'" "/a\\'")))
      (gemini-companion-privacy-refresh)
      (gemini-companion-saved-test-save)
      (let ((text (gemini-companion-saved-test-text)))
        (should-not (string-match-p "secret\\|Text of a" text))
        (should (eq restart (null (string-search "Text of b" text))))))
    (should (equal nil (gemini-companion-saved-test-files)))))

(ert-deftest gemini-companion-saved-changes-that-are-excluded-are-not-restored ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "Text of a\n" session)
    (gemini-companion-saved-test-end)
    (setq gemini-companion-excluded '("/a\\'"))
    (gemini-companion-privacy-refresh)
    (gemini-companion-saved-test-begin)
    (find-file "a")
    (should-not (gemini-companion-test-left))
    (gemini-companion-saved-test-save)
    (should-not (gemini-companion-saved-test-files))))

(ert-deftest gemini-companion-saved-changes-are-gone-once-they-are-reviewed ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (find-file "a")
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-saved-test-save)
    (should (= 1 (length (gemini-companion-saved-test-files))))
    (gemini-companion-test-walk 'gemini-companion-keep-change)
    (gemini-companion-saved-test-save)
    (should-not (gemini-companion-saved-test-files))))

(ert-deftest gemini-companion-saved-file-stays-if-it-cannot-be-written ()
  (gemini-companion-saved-test-with '(("a" "1\n") ("b" "1\n"))
    (gemini-companion-test-writes "a" "Text of a\n" session)
    (gemini-companion-saved-test-save)
    (gemini-companion-test-writes "b" "Text of b\n" session)
    (let ((append (symbol-function 'gemini-companion-saved--append))
          (count 0))
      ;; The disk is full at the second entry.
      (gemini-companion-test-demoted
        (cl-letf (((symbol-function 'gemini-companion-saved--append)
                   (lambda (&rest arguments)
                     (if (<= 2 (cl-incf count))
                         (signal 'file-error '("No space left on device"))
                       (apply append arguments)))))
          (gemini-companion-saved-test-save)))
      (should (<= 2 count)))
    (should-not (string-search "Text of b" (gemini-companion-saved-test-text)))
    (should (string-search "Text of a" (gemini-companion-saved-test-text)))
    (gemini-companion-saved--soon)
    (gemini-companion-saved-test-save)
    (should (string-search "Text of a" (gemini-companion-saved-test-text)))
    (should (string-search "Text of b" (gemini-companion-saved-test-text)))))

(ert-deftest gemini-companion-saved-save-in-progress-is-not-begun-again ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "Text of a\n" session)
    (let ((gemini-companion-saved--slice 0))
      ;; Each call does nothing, or one step.
      (gemini-companion-saved--begin)
      (while gemini-companion-saved--work
        (funcall (pop gemini-companion-saved--work))
        (when gemini-companion-saved--work
          (gemini-companion-saved--begin))))
    (should (string-search "Text of a" (gemini-companion-saved-test-text)))))

(ert-deftest gemini-companion-saved-changes-of-another-version-are-deleted ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-saved-test-end)
    (let ((file (car (gemini-companion-saved-test-files))))
      (gemini-companion-test-write
       file (replace-regexp-in-string
             "\\`(gemini-companion-saved 1" "(gemini-companion-saved 0"
             (gemini-companion-test-file-text file)))
      (should (string-match-p "another version"
                              (ert-with-message-capture messages
                                (let ((inhibit-message nil))
                                  (gemini-companion-saved-test-begin))
                                messages)))
      (should-not (file-exists-p file)))
    (find-file "a")
    (should-not (gemini-companion-test-left))))

(ert-deftest gemini-companion-saved-changes-that-do-not-fit-are-named ()
  (gemini-companion-saved-test-with '(("a" "1\n") ("b" "1\n"))
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-test-writes "b" "one\n" session)
    (gemini-companion-saved-test-end)
    (let ((file (car (gemini-companion-saved-test-files))))
      ;; The text of one file is cut.
      (gemini-companion-test-write
       file (replace-regexp-in-string "^(:path \"[^\"]*/a\".*$" "(:path"
                                      (gemini-companion-test-file-text file))))
    (gemini-companion-saved-test-begin)
    (should (string-match-p "Saved changes of .*/a do not fit"
                            (ert-with-message-capture messages
                              (let ((inhibit-message nil))
                                (find-file "a"))
                              messages)))
    (gemini-companion-saved-test-be-idle)
    (should (eql 1 (gemini-companion-test-left)))
    (gemini-companion-saved-test-save)
    (should-not (string-search "/a\"" (gemini-companion-saved-test-text)))))

(ert-deftest gemini-companion-saved-changes-last-a-week ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-saved-test-end)
    (let ((gemini-companion-saved--most-seconds -1))
      (should (string-match-p "older than a week"
                              (ert-with-message-capture messages
                                (let ((inhibit-message nil))
                                  (gemini-companion-saved-test-begin))
                                messages))))
    (find-file "a")
    (should-not (gemini-companion-test-left))))

(ert-deftest gemini-companion-saved-changes-have-a-limit ()
  (gemini-companion-saved-test-with '(("a" "1\n") ("b" "1\n"))
    (gemini-companion-test-writes "a" (concat (make-string 5000 ?a) "\n") session)
    (gemini-companion-saved-test-save)
    (gemini-companion-test-writes "b" (concat (make-string 5000 ?b) "\n") session)
    (should (string-match-p "Changes left in .*/a are not saved"
                            (ert-with-message-capture messages
                              (let ((inhibit-message nil)
                                    (gemini-companion-saved--most-bytes 9000))
                                (gemini-companion-saved-test-save))
                              messages)))
    (should-not (string-search "aaaa" (gemini-companion-saved-test-text)))
    (should (string-search "bbbb" (gemini-companion-saved-test-text)))))

(ert-deftest gemini-companion-saved-comments-and-openings-are-restored ()
  (gemini-companion-saved-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-part-start 'comment)
    (unwind-protect
        (progn
          (find-file "a")
          (goto-char (point-min))
          (forward-line 4)
          (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "Why 5?")))
            (gemini-companion-comment))
          (gemini-companion-comment-opening-set session "Be brief.")
          (gemini-companion-saved-test-save)
          (gemini-companion-saved-test-restart 'killed)
          (find-file "a")
          (gemini-companion-saved-test-be-idle)
          (let ((comment (car (gemini-companion-comments))))
            (should (equal "Why 5?" (gemini-companion-comment-text comment)))
            (should (equal 5 (gemini-companion-comment--now comment))))
          (should (equal "Be brief." (gemini-companion-comment-opening session)))
          (should (gemini-companion-saved-test-files))
          (gemini-companion-forget)
          (should-not (gemini-companion-saved-test-files))
          ;; Sent ones are not saved.
          (gemini-companion-comment-set-sent (gemini-companion-comments) session)
          (gemini-companion-comment-opening-set session nil)
          (gemini-companion-saved-test-save)
          (should-not (gemini-companion-saved-test-files)))
      (gemini-companion-part-stop 'comment)
      (remove-hook 'kill-emacs-query-functions #'gemini-companion-comment--exit-p))))

(ert-deftest gemini-companion-saved-undone-changes-are-reported-by-the-next-emacs ()
  (gemini-companion-test-needs-add-on 'prompts)
  (require 'gemini-companion-undone)
  (gemini-companion-saved-test-with `(("a" ,gemini-companion-test-lines))
    (add-hook 'gemini-companion-changes-undo-functions #'gemini-companion-undone-record)
    (unwind-protect
        (progn
          (find-file "a")
          (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
          (goto-char (point-min))
          (gemini-companion-test-walk 'gemini-companion-undo-change)
          (should (= 1 (length (gemini-companion-undone-of-session session))))
          (gemini-companion-saved-test-save)
          (gemini-companion-saved-test-end 'killed)
          (gemini-companion-part-stop 'undone)
          (gemini-companion-saved-test-begin)
          (find-file "a")
          (gemini-companion-saved-test-be-idle)
          (let ((undone (gemini-companion-undone-of-session session)))
            (should (= 1 (length undone)))
            (should (string-search "a:1\n  1" (gemini-companion-undone--text
                                               undone session))))
          ;; The CLI's line is there again.
          (gemini-companion-test-rewrite "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n")
          (should-not (gemini-companion-undone-of-session session)))
      (remove-hook 'gemini-companion-changes-undo-functions
                   #'gemini-companion-undone-record)
      (gemini-companion-part-stop 'undone))))

(ert-deftest gemini-companion-saved-changes-can-be-forgotten ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (should (string-match-p "Nothing is saved" (gemini-companion-test-refusal
                                                (gemini-companion-forget))))
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-saved-test-save)
    (should (gemini-companion-saved-test-files))
    (gemini-companion-forget)
    (should-not (gemini-companion-saved-test-files))
    ;; It is still left here, and saved if it changes.
    (should (eql 1 (gemini-companion-test-left)))
    (gemini-companion-saved--soon)
    (gemini-companion-saved-test-save)
    (should-not (gemini-companion-saved-test-files))
    (gemini-companion-test-writes "a" "ONE\n" session)
    (gemini-companion-saved-test-save)
    (should (gemini-companion-saved-test-files))
    ;; Before anything is restored.
    (gemini-companion-saved-test-end)
    (gemini-companion-forget)
    (should-not (gemini-companion-saved-test-files))
    (gemini-companion-saved-test-begin)))

(ert-deftest gemini-companion-saved-changes-of-another-emacs-are-left-alone ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "one\n" session)
    (cl-letf (((symbol-function 'file-locked-p) (lambda (_) "somebody")))
      (should (string-match-p "Another Emacs saves"
                              (ert-with-message-capture messages
                                (let ((inhibit-message nil))
                                  (gemini-companion-saved-test-save))
                                messages))))
    (should-not (gemini-companion-saved-test-files))))

(ert-deftest gemini-companion-saved-marks-are-the-same-after-random-work ()
  :tags '(pure)
  (dotimes (_ (string-to-number (or (getenv "GC_SAVED_SEQUENCES") "10")))
    (let ((text (mapconcat (lambda (n) (format "line %d\n" n))
                           (number-sequence 1 30) ""))
          (state (and (random "") (random most-positive-fixnum))))
      (ert-info ((format "seed %d" state))
        (random (format "%d" state))
        (gemini-companion-saved-test-with `(("a" ,text))
          (find-file "a")
          (dotimes (_ 8)
            (pcase (random 5)
              ((or 0 1)
               (let ((text (gemini-companion-test-edited-at-random
                            (gemini-companion-text-of-buffer "a"))))
                 (gemini-companion-test-writes "a" text session)))
              (2
               (goto-char (1+ (random (buffer-size))))
               (forward-line 0)
               (insert (format "mine %d\n" (random 1000)))
               (save-buffer))
              (_
               (when-let* ((record (gemini-companion-changes-here))
                           (changes (gemini-companion-changes-update record))
                           (change (seq-random-elt changes)))
                 (if (= 0 (random 2))
                     (gemini-companion-step-keep-changes record (list change))
                   (gemini-companion-undo-in-file record (list change)))))))
          (let* ((known (lambda ()
                          (let ((record (gemini-companion-changes-of-file
                                         (file-truename "a"))))
                            (mapcar (lambda (change)
                                      (list (gemini-companion-hunk-new change)
                                            (gemini-companion-hunk-new-end change)
                                            (gemini-companion-hunk-lines change)))
                                    (and record
                                         (gemini-companion-changes-update record))))))
                 (before (funcall known)))
            (gemini-companion-saved-test-restart)
            (find-file "a")
            (should (equal before (funcall known)))))))))

;;;; An Emacs that is killed

(defun gemini-companion-saved-test-work (directory seed)
  "Let a CLI and the user work on six files in DIRECTORY until Emacs is killed.
SEED is for random numbers.  After each step, append to the file log its time,
the name of the file, the lines that are marked there, and its text."
  (random (format "%d" seed))
  (setq gemini-companion-install-directory (expand-file-name "ours/" directory)
        gemini-companion-excluded nil
        default-directory directory)
  (mapc #'gemini-companion-part-start '(changes saved))
  (let ((session
         (gemini-companion-session-make :id "1" :client "gemini" :directory directory))
        (inhibit-message t)
        (create-lockfiles nil)
        (number 0))
    (setf (gemini-companion-session-turn session)
          (gemini-companion-turn-make :prompt "Work"))
    (dotimes (n 6)
      (gemini-companion-test-write (format "f%d" n) "1\n2\n3\n4\n5\n6\n7\n8\n9\n"))
    (while t
      (let* ((name (format "f%d" (random 6)))
             (file (expand-file-name name))
             (before (gemini-companion-text-read file))
             (lines (split-string before "^" t))
             (at (random (length lines)))
             (with (lambda (who)
                     (string-join (append (seq-take lines at)
                                          (list (format "%s %d\n" who (cl-incf number)))
                                          (nthcdr (+ at (random 2)) lines)))))
             (record (gemini-companion-changes-of-file file)))
        (pcase (random 5)
          ((or 0 1 2)
           (let ((after (funcall with "cli")))
             (gemini-companion-test-write file after)
             (gemini-companion-attribution-record session file before after)))
          (3 (gemini-companion-test-write file (funcall with "mine")))
          (_ (when-let* ((change (car (and record
                                           (gemini-companion-changes-update record)))))
               (gemini-companion-step-keep-changes record (list change)))))
        (let ((coding-system-for-write 'utf-8)
              (marked (gemini-companion-saved-test-marked file)))
          (write-region (format "%S\n" (list (float-time) name marked
                                              (gemini-companion-text-read file)))
                        nil "log" 'append 'silent))
        (sleep-for (* 0.01 (random 8)))))))

(defun gemini-companion-saved-test-marked (file)
  "Return the marked lines of FILE, which no buffer visits, with newlines."
  (when-let* ((record (gemini-companion-changes-of-file file)))
    (let ((changes (gemini-companion-changes-update record))
          (lines (gemini-companion-changes-seen-lines
                  (gemini-companion-changes-seen record nil))))
      (seq-mapcat (lambda (change)
                    (append (substring lines (gemini-companion-hunk-new change)
                                       (gemini-companion-hunk-new-end change))
                            nil))
                  changes))))

(defun gemini-companion-saved-test-killed (directory seed)
  "Return an Emacs that works in DIRECTORY, as a process.
For SEED, see `gemini-companion-saved-test-work'."
  (let ((default-directory directory))
    (make-process
     :name "killed" :noquery t :connection-type 'pipe
     :buffer (generate-new-buffer " *killed*")
     :command (gemini-companion-test-emacs
               `(load ,(symbol-file 'gemini-companion-saved-test-work 'defun))
               `(gemini-companion-saved-test-work ,directory ,seed)))))

(defun gemini-companion-saved-test-log (directory)
  "Return the log in DIRECTORY, the last step first; omit a half one."
  (let ((steps nil))
    (with-temp-buffer
      (insert-file-contents (expand-file-name "log" directory))
      (ignore-errors
        (while t (push (read (current-buffer)) steps))))
    steps))

(ert-deftest gemini-companion-saved-changes-survive-kills-at-random-moments ()
  :tags '(pure)
  (let ((count (string-to-number (or (getenv "GC_KILLS") "10"))))
    (while (< 0 count)
      (let ((works (cl-loop repeat (min 5 count)
                            for directory = (file-name-as-directory
                                             (file-truename
                                              (make-temp-file "killed" t)))
                            for seed = (random 1000000)
                            collect (list directory seed
                                          (gemini-companion-saved-test-killed
                                           directory seed)))))
        (setq count (- count 5))
        (unwind-protect
            (progn
              (pcase-dolist (`(,directory ,_ ,process) works)
                (should (gemini-companion-test-wait
                         (lambda () (or (not (process-live-p process))
                                        (file-exists-p
                                         (expand-file-name "log" directory)))))))
              (pcase-dolist (`(,directory ,seed ,process) works)
                (gemini-companion-test-wait #'ignore (* 0.01 (random 300)))
                (ert-info ((format "seed %d: %s" seed
                                   (with-current-buffer (process-buffer process)
                                     (buffer-string))))
                  (should (process-live-p process))
                  (signal-process process 'KILL)
                  (let ((killed (float-time)))
                    (should (gemini-companion-test-wait
                             (lambda () (not (process-live-p process)))))
                    (with-temp-buffer
                      (setq default-directory directory)
                      (gemini-companion-saved-test-check directory killed))))))
          (pcase-dolist (`(,directory ,_ ,process) works)
            (kill-buffer (process-buffer process))
            (delete-directory directory t)))))))

(defun gemini-companion-saved-test-wrong (name killed steps)
  "Return what is wrong in the marks of the file NAME, a list, or nil.
STEPS are those of the file until the Emacs was KILLED, the last one first."
  (let* ((text (gemini-companion-test-file-text name))
         (last (nth 2 (car steps)))
         ;; What two seconds may have lost.
         (recent (seq-take-while (lambda (step) (< (- killed 2.1) (car step))) steps))
         (old (car (nthcdr (length recent) steps)))
         (marks (mapcar #'caddr (append recent (list old))))
         (marked (gemini-companion-saved-test-marked (expand-file-name name)))
         ;; A line of the user that replaced lines of a CLI may be the user's again.
         (lost (seq-filter (lambda (line)
                             (and (string-prefix-p "cli" line)
                                  (seq-every-p (apply-partially #'member line) marks)
                                  (not (member line marked))
                                  (string-search line text)))
                           last))
         (wrong (seq-remove (lambda (line)
                              (or (seq-some (apply-partially #'member line) marks)
                                  (not (string-search line (or (nth 3 old) "")))))
                            marked)))
    (when (or lost wrong)
      (list :lost lost :wrong wrong :marked marked :text text :steps steps))))

(defun gemini-companion-saved-test-check (directory killed)
  "Compare the marks in this Emacs with those that were in DIRECTORY.
An Emacs that worked there was KILLED at that time."
  (let* ((gemini-companion-install-directory (expand-file-name "ours/" directory))
         (gemini-companion-excluded nil)
         (log (gemini-companion-saved-test-log directory))
         (messages nil))
    (unwind-protect
        (progn
          (setq messages
                (ert-with-message-capture messages
                  (let ((inhibit-message nil))
                    (gemini-companion-saved-test-begin)
                    (mapc #'gemini-companion-saved--restore
                          (gemini-companion-saved--waiting)))
                  messages))
          (should-not (string-match-p "Saved changes" (or messages "")))
          (dotimes (n 6)
            (let ((name (format "f%d" n)))
              (should-not (gemini-companion-saved-test-wrong
                           name killed
                           (seq-filter (lambda (step) (equal name (nth 1 step))) log))))))
      (gemini-companion-saved-test-end 'killed))))

(provide 'gemini-companion-saved-test)
;;; gemini-companion-saved-test.el ends here
