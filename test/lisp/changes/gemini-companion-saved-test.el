;;; gemini-companion-saved-test.el --- Tests of changes saved for the next Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-comment)
(require 'gemini-companion-comment-opening)
(require 'gemini-companion-saved)

(declare-function gemini-companion-undone-addition "gemini-companion-undone")
(declare-function gemini-companion-undone-of-session "gemini-companion-undone")

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
         (gemini-companion-saved-test-stop)
         (setq gemini-companion-comment--all nil
               gemini-companion-comment-opening--all nil)))))

(defun gemini-companion-saved-test-stop ()
  "Stop saving, as if Emacs was killed: what is due is written elsewhere."
  (let ((lock (expand-file-name "changes/lock" gemini-companion-install-directory))
        ;; The current buffer may have another directory than the test.
        (gemini-companion-install-directory
         (expand-file-name "../elsewhere/" gemini-companion-install-directory)))
    (gemini-companion-part-stop 'saved)
    (ignore-error file-missing
      (delete-file lock))))

(defun gemini-companion-saved-test-end (&optional killed)
  "End this Emacs, as far as changes are concerned; at once if KILLED."
  (when killed
    (gemini-companion-saved-test-stop))
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
  (gemini-companion-test-forget-edits)
  (setq gemini-companion-comment--all nil
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
    (null (seq-difference (gemini-companion-test-timers "saved") timer-idle-list))))

(defun gemini-companion-saved-test-be-idle ()
  "Let Emacs be idle until what was saved is restored, in any number of slices."
  (ert-run-idle-timers)
  (while (seq-intersection (gemini-companion-test-timers "saved") timer-idle-list)
    (ert-run-idle-timers)))

(defun gemini-companion-saved-test-files ()
  "Return the names of the files of changes."
  (ignore-errors (directory-files "ours/changes" t "\\`[^.].*\\.eld\\'")))

(defun gemini-companion-saved-test-file (name)
  "Return the name of the file with what is saved of the file NAME, or nil."
  (seq-find (apply-partially #'string-suffix-p (format "-%s.eld" name))
            (gemini-companion-saved-test-files)))

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
      (should (equal '(384 384)
                     (mapcar #'file-modes (gemini-companion-saved-test-files))))
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

(ert-deftest gemini-companion-saved-change-that-is-postponed-stays-so ()
  (gemini-companion-saved-test-with `(("a" ,gemini-companion-test-lines))
    (find-file "a")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-walk 'gemini-companion-next-change "l")
    (gemini-companion-saved-test-save)
    (gemini-companion-saved-test-restart 'killed)
    (find-file "a")
    (should (string-prefix-p "Kept 1 change; Change 1 of 1, a +1 −1, later"
                             (gemini-companion-test-walk 'gemini-companion-next-change
                                                         "K")))))

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
    (should-not (string-match-p "cannot be restored"
                                (ert-with-message-capture messages
                                  (let ((inhibit-message nil))
                                    (find-file "a"))
                                  messages)))
    (should (equal '(9) (gemini-companion-test-marked "a")))
    (run-hooks 'gemini-companion-turn-addition-hook)
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

;; What a user has made of a CLI's line is a part of that change.  But what was written
;; just before a crash is unknown.
(ert-deftest gemini-companion-saved-lines-that-are-unknown-are-never-those-of-a-cli ()
  (gemini-companion-saved-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\nfive\n6\n7\n8\n9\n" session)
    (find-file "a")
    (goto-char (point-min))
    (search-forward "one")
    (insert " of mine")
    (save-buffer)
    (should (equal '(1 5) (gemini-companion-test-marked "a")))
    (gemini-companion-saved-test-save)
    (gemini-companion-saved-test-end 'killed)
    (gemini-companion-test-rewrite "a" "one of mine\n2\n3\n4\nmine\n6\n7\n8\n9\n")
    (gemini-companion-saved-test-begin)
    (find-file "a")
    (should (eql 2 (gemini-companion-test-left)))
    (gemini-companion-test-answering #'always
      (gemini-companion-test-walk 'gemini-companion-undo-changes))
    (should (equal "1\n2\n3\n4\n5\nmine\n6\n7\n8\n9\n" (buffer-string)))))

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
    (gemini-companion-test-answering #'always
      (gemini-companion-test-walk 'gemini-companion-undo-change))
    (should-not (file-exists-p "dir/new"))))

(ert-deftest gemini-companion-saved-line-ends-are-those-of-the-file ()
  (gemini-companion-saved-test-with '(("a" "1\r\n2\r\n3\r\n"))
    (gemini-companion-test-writes "a" "one\r\n2\r\n3\r\n" session)
    (gemini-companion-saved-test-restart)
    (find-file-noselect "a")
    (should (equal '(1) (gemini-companion-test-marked "a")))
    (gemini-companion-test-undo-edit (car (gemini-companion-edits)))
    (should (equal "1\r\n2\r\n3\r\n" (gemini-companion-text-bytes "a")))))

(ert-deftest gemini-companion-saved-deletion-is-undone ()
  (gemini-companion-saved-test-with '(("a" "1\r\n2\r\n") ("b" "1\n"))
    (set-file-modes "a" #o751)
    (delete-file "a")
    (gemini-companion-reported-bytes
     session (expand-file-name "a") "1\r\n2\r\n" nil "rm a" :modes #o751)
    (should (eql 1 (gemini-companion-test-left)))
    (gemini-companion-saved-test-restart)
    (find-file-noselect "b")
    (gemini-companion-saved-test-be-idle)
    (should (eql 1 (gemini-companion-test-left)))
    (gemini-companion-test-undo-edit (car (gemini-companion-edits)))
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
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "Text of a\n" session)
    (gemini-companion-saved-test-save)
    (gemini-companion-test-writes "a" "Other text\n" session)
    (gemini-companion-test-demoted
      (cl-letf (((symbol-function 'gemini-companion-text-write)
                 (lambda (file &rest _)
                   ;; The disk is full.
                   (write-region "(gemini-comp" nil file nil 'silent)
                   (signal 'file-error '("No space left on device")))))
        (gemini-companion-test-run-timers "saved")))
    (should (string-search "Text of a" (gemini-companion-saved-test-text)))
    ;; It is tried again, though nothing more has changed.
    (gemini-companion-saved-test-save)
    (should (string-search "Other text" (gemini-companion-saved-test-text)))))

(defun gemini-companion-saved-test-damaged (damage &optional repair)
  "Save changes of a and b, damage what is saved of a by DAMAGE, and restart.
DAMAGE is called with the name of the file.  Check that the message names a, and
only a is lost.  Then a CLI writes a again: nothing of what is there is deleted.
Before the next restart, call REPAIR, if given, with the name."
  (gemini-companion-saved-test-with '(("a" "1\n") ("b" "1\n"))
    (dolist (name '("a" "b"))
      (gemini-companion-test-writes name "one\n" session))
    (gemini-companion-saved-test-end)
    (let* ((file (gemini-companion-saved-test-file "a"))
           (damaged (progn (funcall damage file)
                           (gemini-companion-saved-test-contents file)))
           (messages (ert-with-message-capture messages
                       (let ((inhibit-message nil))
                         (gemini-companion-saved-test-begin)
                         (find-file "a")
                         (find-file "b")
                         (gemini-companion-saved-test-be-idle))
                       messages)))
      (should (string-match-p "Saved changes of \\(?:.*/\\)?a cannot be restored" messages))
      (should-not (string-match-p "Saved changes of [^ ]*\\_<b cannot" messages))
      (should (eql 1 (gemini-companion-test-left)))
      (gemini-companion-test-writes "a" "two\n" session)
      (gemini-companion-saved-test-save)
      (should (member damaged
                      (mapcar #'gemini-companion-saved-test-contents
                              (list file (concat file ".unread")))))
      (funcall (or repair #'ignore) file)
      (gemini-companion-saved-test-restart)
      (find-file "a")
      (gemini-companion-saved-test-be-idle)
      (should (eql 2 (gemini-companion-test-left))))))

(defun gemini-companion-saved-test-contents (file)
  "Return what FILE has, a text, `directory', or nil if it does not exist."
  (cond ((file-directory-p file) 'directory)
        ((file-exists-p file)
         (let ((modes (file-modes file)))
           (set-file-modes file #o600)
           (prog1 (with-temp-buffer
                    (set-buffer-multibyte nil)
                    (insert-file-contents-literally file)
                    (buffer-string))
             (set-file-modes file modes))))))

(defun gemini-companion-saved-test-rewrite (file function)
  "Let FILE have the value of FUNCTION for its bytes."
  (gemini-companion-text-write file (funcall function
                                             (gemini-companion-text-bytes file))))

(defun gemini-companion-saved-test-replace-data (file data)
  "Let FILE have DATA, a text, with the right hash."
  (pcase-let ((`(,_ ,_ ,name ,root . ,_)
               (car (read-from-string (gemini-companion-text-bytes file)))))
    (gemini-companion-text-write
     file (format "(gemini-companion-saved 2 %S %S %S)\n%s" name root (sha1 data) data))))

(ert-deftest gemini-companion-saved-file-that-is-damaged-loses-only-its-own-changes ()
  (dolist (damage
           `((truncated . ,(lambda (bytes) (substring bytes 0 (/ (length bytes) 2))))
             (truncated-header . ,(lambda (bytes) (substring bytes 0 30)))
             (empty . ,(lambda (_) ""))
             (garbage . ,(lambda (_) (unibyte-string 0 255 200 10 13 40 34 7)))
             (garbage-inside . ,(lambda (bytes)
                                  (let ((bytes (copy-sequence bytes)))
                                    (aset bytes (- (length bytes) 9) 255)
                                    bytes)))
             (version . ,(lambda (bytes)
                           (replace-regexp-in-string "\\`(gemini-companion-saved 2"
                                                     "(gemini-companion-saved 1" bytes)))
             (nesting . ,(lambda (bytes) (concat bytes (make-string 1000000 ?\())))
             (only-nesting . ,(lambda (_) (make-string 1000000 ?\()))
             (syntax . ,(lambda (bytes)
                          (concat (car (split-string bytes "\n"))
                                  "\n#.(kill-emacs) #s(hash-table) #1=(#1#)")))))
    (ert-info ((symbol-name (car damage)))
      (gemini-companion-saved-test-damaged
       (lambda (file)
         (gemini-companion-saved-test-rewrite file (cdr damage)))))))

(ert-deftest gemini-companion-saved-file-with-other-values-loses-only-its-own-changes ()
  (dolist (data '("17" "\"text\"" "(:record 5)" "(:record (:edits 7 :record ((1) 2)))"
                  "(:record (:edits ((:before (0 0 \"\") :after (9 9 5))) :record nil))"
                  "(:items ((changes . 5)) :record t)" "(:items 5)" "#1=(:record #1#)"
                  "(:record" "#.(kill-emacs)"))
    (ert-info (data)
      (gemini-companion-saved-test-damaged
       (lambda (file)
         (gemini-companion-saved-test-replace-data file data))))))

(ert-deftest gemini-companion-saved-file-that-cannot-be-read-stays ()
  (gemini-companion-saved-test-damaged
   (lambda (file)
     (delete-file file)
     (make-directory file)))
  ;; The superuser may read all files.
  (unless (eql 0 (user-uid))
    (gemini-companion-saved-test-damaged
     (lambda (file)
       (set-file-modes file 0)))))

(ert-deftest gemini-companion-saved-file-without-permission-stays ()
  (let ((bytes (symbol-function 'gemini-companion-text-bytes))
        (denied nil))
    (cl-letf (((symbol-function 'gemini-companion-text-bytes)
               (lambda (file &rest rest)
                 (if (equal file denied)
                     (signal 'file-error
                             (list "Opening input file" "Permission denied" file))
                   (apply bytes file rest)))))
      (gemini-companion-saved-test-damaged
       (lambda (file)
         (setq denied (expand-file-name file)))
       (lambda (_)
         (setq denied nil))))))

(ert-deftest gemini-companion-saved-read-error-at-the-start-deletes-nothing ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-saved-test-end)
    (let ((files (gemini-companion-saved-test-files)))
      (cl-letf (((symbol-function 'gemini-companion-text-bytes)
                 (lambda (&rest _)
                   (signal 'file-error '("Opening input file" "Too many open files")))))
        (gemini-companion-saved-test-begin))
      (should (equal files (gemini-companion-saved-test-files))))
    (gemini-companion-saved-test-restart)
    (find-file "a")
    (should (eql 1 (gemini-companion-test-left)))))

(ert-deftest gemini-companion-saved-projects-whose-names-begin-with-a-dot-are-restored ()
  (gemini-companion-saved-test-with '((".emacs.d/init" "1\n") (".p/.a" "1\n"))
    (dolist (file '(".emacs.d/init" ".p/.a"))
      (gemini-companion-test-writes file "one\n" session))
    (gemini-companion-saved-test-restart)
    (dolist (file '(".emacs.d/init" ".p/.a"))
      (find-file-noselect file))
    (should (eql 2 (gemini-companion-test-left)))))

(ert-deftest gemini-companion-saved-leaves-no-timer-if-it-is-stopped-while-it-saves ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (let ((gemini-companion-saved-slice 0))
      (gemini-companion-test-writes "a" "one\n" session)
      (gemini-companion-test-run-timers "saved")
      (gemini-companion-part-stop 'saved)
      (should-not (gemini-companion-test-timers "saved"))
      (should (gemini-companion-saved-test-files)))))

(ert-deftest gemini-companion-saved-changes-last-until-nothing-is-left ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-saved-test-end)
    (let ((age (lambda ()
                 (set-file-times (car (gemini-companion-saved-test-files))
                                 (time-subtract nil (* 8 24 60 60))))))
      (funcall age)
      (gemini-companion-saved-test-begin)
      (find-file "a")
      (should (eql 1 (gemini-companion-test-left)))
      (gemini-companion-saved-test-end)
      ;; Others have taken it away, and it may come back with another branch.
      (gemini-companion-test-rewrite "a" "1\n")
      (gemini-companion-saved-test-begin)
      (find-file "a")
      (should-not (gemini-companion-test-left))
      (gemini-companion-saved-test-restart)
      (should (gemini-companion-saved-test-files))
      (gemini-companion-saved-test-end)
      (funcall age)
      (gemini-companion-saved-test-begin)
      (find-file "a")
      (should-not (gemini-companion-saved-test-files)))))

(ert-deftest gemini-companion-saved-changes-have-a-limit ()
  (gemini-companion-saved-test-with '(("a" "1\n") ("b" "1\n"))
    (let ((gemini-companion-saved-most-bytes 9000))
      (gemini-companion-test-writes "b" (concat (make-string 1000 ?b) "\n") session)
      (gemini-companion-test-writes "a" (concat (make-string 1000 ?a) "\n") session)
      (gemini-companion-saved-test-save)
      (should (string-search "aaaa" (gemini-companion-saved-test-text)))
      (gemini-companion-test-writes "a" (concat (make-string 9000 ?a) "\n") session)
      (should (string-match-p "Changes left in .*/a are not saved"
                              (ert-with-message-capture messages
                                (let ((inhibit-message nil))
                                  (gemini-companion-saved-test-save))
                                messages))))
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
          (should (= 1 (length (gemini-companion-undone-of-session session))))
          (should (string-search "\na:1" (gemini-companion-undone-addition session nil))))
      (remove-hook 'gemini-companion-changes-undo-functions
                   #'gemini-companion-undone-record)
      (gemini-companion-part-stop 'undone))))

(ert-deftest gemini-companion-saved-undone-changes-of-a-reviewed-edit-are-reported-too ()
  (gemini-companion-test-needs-add-on 'prompts)
  (require 'gemini-companion-undone)
  (gemini-companion-saved-test-with `(("a" ,gemini-companion-test-lines))
    (add-hook 'gemini-companion-changes-undo-functions #'gemini-companion-undone-record)
    (unwind-protect
        (progn
          (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session
                                        'reviewed)
          (gemini-companion-saved-test-save)
          ;; Nothing of the file was to be saved so far.
          (should-not (gemini-companion-saved-test-files))
          (gemini-companion-decision-with "undo"
            (gemini-companion-test-undo-edit (car (gemini-companion-edits))))
          (gemini-companion-saved-test-end)
          (gemini-companion-part-stop 'undone)
          (gemini-companion-saved-test-begin)
          (find-file "a")
          (gemini-companion-saved-test-be-idle)
          (should (= 1 (length (gemini-companion-undone-of-session session)))))
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
    (run-hooks 'gemini-companion-turn-addition-hook)
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

(ert-deftest gemini-companion-saved-forgetting-leaves-no-text ()
  (gemini-companion-saved-test-with '(("a" "1\n") ("b" "1\n") ("c" "1\n"))
    (dolist (name '("a" "b" "c"))
      (gemini-companion-test-writes name (format "Text of %s\n" name) session))
    (gemini-companion-saved-test-end)
    (let ((file #'gemini-companion-saved-test-file))
      ;; One was put aside, and Emacs was killed while it wrote another one.
      (gemini-companion-saved-test-rewrite (funcall file "a")
                                           (lambda (bytes) (concat bytes " ")))
      (copy-file (funcall file "b") (concat (funcall file "b") ".new")))
    (gemini-companion-saved-test-begin)
    (find-file "a")
    (gemini-companion-saved-test-be-idle)
    (should (length= (directory-files "ours/changes" nil "eld") 4))
    (gemini-companion-forget)
    (should-not (directory-files "ours/changes" nil "eld"))
    ;; So does the exclusion of a file.
    (gemini-companion-test-writes "c" "Other text\n" session)
    (gemini-companion-saved-test-save)
    (let ((file (car (gemini-companion-saved-test-files))))
      (copy-file file (concat file ".new"))
      (copy-file file (concat file ".unread")))
    (setq gemini-companion-excluded '("/c\\'"))
    (gemini-companion-privacy-refresh)
    (gemini-companion-saved-test-save)
    (should-not (directory-files "ours/changes" nil "eld"))))

(defun gemini-companion-saved-test-set-lock (&rest owner)
  "Let OWNER have the lock: a host, a process, and when it has begun."
  (make-directory "ours/changes" t)
  (gemini-companion-test-write "ours/changes/lock" (format "%S" owner)))

(ert-deftest gemini-companion-saved-second-emacs-says-so-and-saves-once-the-first-has-ended ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (let ((process (make-process :name "first" :command '("sleep" "1000"))))
      (unwind-protect
          (progn
            (gemini-companion-saved-test-set-lock
             (system-name) (process-id process)
             (floor (float-time (alist-get 'start (process-attributes
                                                   (process-id process))))))
            (gemini-companion-test-writes "a" "one\n" session)
            (let ((messages (ert-with-message-capture messages
                              (let ((inhibit-message nil))
                                (gemini-companion-test-run-timers "saved")
                                (gemini-companion-test-run-timers "saved"))
                              messages)))
              (should (string-match-p
                       (format "\\`Changes left are saved by Emacs process %d; [^\n]*\n\\'"
                               (process-id process))
                       messages)))
            (should-not (gemini-companion-saved-test-files)))
        (delete-process process))
      (gemini-companion-saved-test-save)
      (should (gemini-companion-saved-test-files)))))

(defun gemini-companion-saved-test-move (from to)
  "Rename what is saved in the directory FROM to TO, which is replaced."
  (delete-directory to t)
  (rename-file from to))

(ert-deftest gemini-companion-saved-changes-of-an-emacs-that-has-ended-meanwhile-are-restored ()
  (dolist (connects '(t nil))
    (gemini-companion-saved-test-with `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
      (gemini-companion-test-writes "a" "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n" session)
      (gemini-companion-saved-test-save)
      (gemini-companion-saved-test-end)
      (gemini-companion-saved-test-move "ours/changes" "theirs")
      (gemini-companion-saved-test-begin)
      (find-file "a")
      (should-not (gemini-companion-test-marked "a"))
      (gemini-companion-saved-test-move "theirs" "ours/changes")
      (if connects
          (run-hook-with-args 'gemini-companion-session-changed-functions nil)
        (gemini-companion-test-writes "b" "C\n" session)
        (gemini-companion-saved-test-save))
      (gemini-companion-saved-test-be-idle)
      (should (equal '(2) (gemini-companion-test-marked "a")))
      (gemini-companion-test-writes "a" "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n" session)
      (gemini-companion-saved-test-save)
      (gemini-companion-saved-test-restart)
      (find-file "a")
      (should (equal '(2 9) (gemini-companion-test-marked "a"))))))

(ert-deftest gemini-companion-saved-changes-are-restored-in-a-root-that-is-used-already ()
  (gemini-companion-saved-test-with `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
    (gemini-companion-test-writes "b" "C\n" session)
    (gemini-companion-saved-test-save)
    (gemini-companion-saved-test-end)
    (copy-directory "ours/changes" "older")
    (gemini-companion-saved-test-begin)
    (gemini-companion-test-writes "a" "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-saved-test-save)
    (gemini-companion-saved-test-end)
    (gemini-companion-saved-test-move "ours/changes" "newer")
    (gemini-companion-saved-test-move "older" "ours/changes")
    ;; An Emacs that has begun before.
    (gemini-companion-saved-test-begin)
    (find-file "b")
    (gemini-companion-saved-test-be-idle)
    (gemini-companion-saved-test-move "newer" "ours/changes")
    (run-hook-with-args 'gemini-companion-session-changed-functions nil)
    (gemini-companion-saved-test-be-idle)
    (should (gemini-companion-changes-of-file
             (gemini-companion-text-true-name "a")))))

;; Its comments and what it has to report would be sent here as well.
(ert-deftest gemini-companion-saved-changes-of-an-emacs-that-still-runs-are-its-own ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-saved-test-save)
    (gemini-companion-saved-test-end)
    (gemini-companion-saved-test-move "ours/changes" "theirs")
    (gemini-companion-saved-test-begin)
    (gemini-companion-saved-test-move "theirs" "ours/changes")
    (gemini-companion-saved-test-set-lock
     (system-name) (emacs-pid)
     (floor (float-time (alist-get 'start (process-attributes (emacs-pid))))))
    (dolist (runs '(t nil))
      (unless runs
        (delete-file "ours/changes/lock"))
      (run-hook-with-args 'gemini-companion-session-changed-functions nil)
      (gemini-companion-saved-test-be-idle)
      (should (eq runs (null (gemini-companion-changes-of-file
                              (gemini-companion-text-true-name "a"))))))))

(ert-deftest gemini-companion-saved-changes-that-another-emacs-has-deleted-are-no-problem ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-saved-test-save)
    (gemini-companion-saved-test-end)
    (gemini-companion-saved-test-begin)
    ;; Its user has kept them.
    (delete-file (gemini-companion-saved-test-file "a"))
    (should-not (string-search "cannot be restored"
                               (ert-with-message-capture messages
                                 (let ((inhibit-message nil))
                                   (find-file "a"))
                                 messages)))
    (should-not (gemini-companion-test-marked "a"))))

(ert-deftest gemini-companion-saved-changes-of-another-emacs-are-not-overwritten ()
  (gemini-companion-saved-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-saved-test-save)
    (gemini-companion-saved-test-end)
    (copy-directory "ours/changes" "older")
    (gemini-companion-saved-test-begin)
    (find-file "a")
    (gemini-companion-test-writes "a" "1\ntwo\n3\n4\n5\nsix\n7\n8\n9\n" session)
    (gemini-companion-saved-test-save)
    (gemini-companion-saved-test-end)
    (gemini-companion-saved-test-move "ours/changes" "newer")
    (gemini-companion-saved-test-move "older" "ours/changes")
    ;; An Emacs that has begun before, and is then the one that saves.
    (gemini-companion-saved-test-begin)
    (find-file "a")
    (should (equal '(2) (gemini-companion-test-marked "a")))
    (gemini-companion-saved-test-move "newer" "ours/changes")
    (gemini-companion-test-writes "a" "1\ntwo\n3\n4\n5\nsix\n7\n8\nnine\n" session)
    (should (string-match-p
             "Changes of .*/a that another Emacs .* are in .*-a\\.eld\\.unread"
             (ert-with-message-capture messages
               (let ((inhibit-message nil))
                 (gemini-companion-saved-test-save))
               messages)))
    (should (string-search "six" (gemini-companion-test-file-text
                                  (concat (gemini-companion-saved-test-file "a")
                                          ".unread"))))))

(ert-deftest gemini-companion-saved-lock-of-an-emacs-that-has-ended-is-none ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-saved-test-end)
    (pcase-dolist (`(,host ,pid ,began ,seconds)
                   `(;; Another program has that process id, as in another container.
                     (,(system-name) ,(emacs-pid) 1000 0)
                     (,(system-name) 1 1000 0)
                     ;; No such process.
                     (,(system-name) 99999999 1000 0)
                     ("elsewhere" ,(emacs-pid) 1000 1000)
                     ("elsewhere" 99999999 nil 1000)))
      (ert-info ((format "%s %s" host pid))
        (gemini-companion-saved-test-set-lock host pid began)
        (set-file-times "ours/changes/lock" (time-subtract nil seconds))
        (gemini-companion-saved-test-begin)
        (find-file "a")
        (should (eql 1 (gemini-companion-test-left)))
        (let ((text (format "%s %s %s\n" host pid began)))
          (gemini-companion-test-writes "a" text session)
          (gemini-companion-test-run-timers "saved")
          (should (string-search (string-trim text) (gemini-companion-saved-test-text))))
        (gemini-companion-saved-test-end)))))

(ert-deftest gemini-companion-saved-lock-of-a-living-emacs-keeps-nothing-from-being-restored ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-saved-test-end)
    (gemini-companion-saved-test-set-lock "elsewhere" 7 nil)
    (gemini-companion-saved-test-begin)
    (find-file "a")
    (should (eql 1 (gemini-companion-test-left)))
    ;; What the other one has saved is not deleted here.
    (should (string-match-p "Not deleted: the Emacs on elsewhere"
                            (gemini-companion-test-refusal (gemini-companion-forget))))
    (gemini-companion-test-walk 'gemini-companion-keep-change)
    (gemini-companion-test-run-timers "saved")
    (should (= 1 (length (gemini-companion-saved-test-files))))))

(ert-deftest gemini-companion-saved-changes-outside-all-projects-are-not-saved ()
  (gemini-companion-saved-test-with '(("p/a" "1\n") ("b" "1\n"))
    (let ((session (gemini-companion-test-session-like
                    session :directory (expand-file-name "p/"))))
      (gemini-companion-test-writes "p/a" "Text of a\n" session)
      (gemini-companion-test-writes "b" "Text of b\n" session)
      (gemini-companion-saved-test-save)
      (should (string-search "Text of a" (gemini-companion-saved-test-text)))
      (should-not (string-search "Text of b" (gemini-companion-saved-test-text))))))

(ert-deftest gemini-companion-saved-marks-are-the-same-after-random-work ()
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
                     (gemini-companion-test-keep record (list change))
                   (gemini-companion-undo-decide 'undo (list (list record change))))))))
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

(defun gemini-companion-saved-test-work (directory seed first)
  "Let CLIs and the user work on six files in DIRECTORY until Emacs is killed.
SEED is for random numbers.  Call FIRST, a function, before that, with the
function that makes a step and logs it.  After each step, append to the file log
its time, the name of the file, the lines that are marked there, and its text."
  (random (format "%d" seed))
  (setq gemini-companion-install-directory (expand-file-name "ours/" directory)
        gemini-companion-excluded nil
        default-directory directory)
  (unless (file-exists-p "f0")
    (dotimes (n 6)
      (gemini-companion-test-write (format "f%d" n) "1\n2\n3\n4\n5\n6\n7\n8\n9\n")))
  (mapc #'gemini-companion-part-start '(changes saved))
  (dotimes (n 6)
    (find-file-noselect (format "f%d" n)))
  (let* ((inhibit-message t)
         (create-lockfiles nil)
         (make-backup-files nil)
         (sessions (mapcar (lambda (id)
                             (gemini-companion-session-make
                              :id id :client "gemini" :directory directory))
                           '("1" "2")))
         (step (lambda (kind name)
                 (gemini-companion-saved-test-step
                  kind (expand-file-name name) (seq-random-elt sessions))
                 (gemini-companion-saved-test-log-step name))))
    (gemini-companion-saved-test-turn sessions)
    (funcall first step)
    (while t
      (when (= 0 (random 6))
        (gemini-companion-saved-test-turn sessions))
      (funcall step (seq-random-elt '(tool tool command type other keep undo))
               (format "f%d" (random 6)))
      (sleep-for (* 0.01 (random 8))))))

(defun gemini-companion-saved-test-turn (sessions)
  "Begin a turn of SESSIONS."
  (dolist (session sessions)
    (setf (gemini-companion-session-turn session)
          (gemini-companion-turn-make :prompt "Work"))))

(defun gemini-companion-saved-test-undo-all (step)
  "Undo all changes; then type, save and write by STEP, a function."
  (dolist (record (gemini-companion-changes-files))
    (funcall step 'undo-all (file-name-nondirectory
                             (gemini-companion-changes-file-name record))))
  (dotimes (n 6)
    (dolist (kind '(type tool command))
      (when (< 0 (random 3))
        (funcall step kind (format "f%d" n))))))

(defun gemini-companion-saved-test-step (kind file session)
  "Make a step of KIND in FILE: as the user, or as a CLI of SESSION."
  (let* ((before (gemini-companion-text-read file))
         (lines (split-string before "^" t))
         (at (random (1+ (length lines))))
         (with (lambda (who)
                 (string-join
                  (append (seq-take lines at)
                          (list (format "%s %x\n" who (random most-positive-fixnum)))
                          (nthcdr (+ at (random 2)) lines)))))
         (write (lambda (text)
                  (gemini-companion-test-write file text)
                  (gemini-companion-revert-now file)))
         (record (gemini-companion-changes-of-file file))
         (changes (and record (gemini-companion-changes-update record))))
    (pcase kind
      ((or 'tool 'command)
       (let ((after (funcall with "cli")))
         (funcall write after)
         (if (eq kind 'tool)
             (gemini-companion-reported-write session file before after)
           (gemini-companion-reported-bytes
            session file before after "sed"))))
      ('other (funcall write (funcall with "mine")))
      ('type
       (with-current-buffer (find-file-noselect file)
         (goto-char (point-min))
         (forward-line at)
         (insert (format "mine %x\n" (random most-positive-fixnum)))
         (save-buffer)))
      ((guard (null changes)))
      ('keep (gemini-companion-test-keep record (list (car changes))))
      ('undo (gemini-companion-test-undo record (list (car changes))))
      ('undo-all (gemini-companion-test-undo record changes)))))

(defun gemini-companion-saved-test-log-step (name)
  "Append a step in the file NAME to the log."
  (let ((coding-system-for-write 'utf-8)
        (file (expand-file-name name)))
    (write-region (format "%S\n" (list (float-time) name
                                       (gemini-companion-saved-test-marked file)
                                       (gemini-companion-text-read file)))
                  nil "log" 'append 'silent)))

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

(defun gemini-companion-saved-test-without (file)
  "Return the lines of FILE without its changes, a list."
  (let* ((text (vconcat (split-string (gemini-companion-text-read file) "^" t)))
         (record (gemini-companion-changes-of-file file)))
    (append (if record
                (gemini-companion-lines-without
                 (gemini-companion-changes-update record) text)
              text)
            nil)))

(defun gemini-companion-saved-test-killed (directory seed first)
  "Return an Emacs that works in DIRECTORY, as a process.
For SEED and FIRST, see `gemini-companion-saved-test-work'."
  (let ((default-directory directory))
    (make-process
     :name "killed" :noquery t :connection-type 'pipe
     :buffer (generate-new-buffer " *killed*")
     :command (gemini-companion-test-emacs
               `(load ,(symbol-file 'gemini-companion-saved-test-work 'defun))
               `(gemini-companion-saved-test-work ,directory ,seed #',first)))))

(defun gemini-companion-saved-test-log (directory)
  "Return the log in DIRECTORY, the last step first; omit a half one."
  (let ((steps nil))
    (with-temp-buffer
      (ignore-errors
        (insert-file-contents (expand-file-name "log" directory))
        (while t (push (read (current-buffer)) steps))))
    steps))

(defun gemini-companion-saved-test-kill (directory seed first)
  "Kill an Emacs that works in DIRECTORY at a random moment, and judge.
Return what is wrong, a list, or nil.  For SEED and FIRST, see
`gemini-companion-saved-test-work'."
  (let* ((begun (length (gemini-companion-saved-test-log directory)))
         (process (gemini-companion-saved-test-killed directory seed first)))
    (unwind-protect
        (progn
          (gemini-companion-test-wait
           (lambda () (or (not (process-live-p process))
                          (< (+ 20 begun)
                             (length (gemini-companion-saved-test-log directory))))))
          (gemini-companion-test-wait #'ignore (* 0.01 (random 300)))
          (if (not (process-live-p process))
              (list :ended (with-current-buffer (process-buffer process)
                             (buffer-string)))
            (signal-process process 'KILL)
            (let ((killed (float-time)))
              (should (gemini-companion-test-wait
                       (lambda () (not (process-live-p process)))))
              (with-temp-buffer
                (setq default-directory directory)
                (gemini-companion-saved-test-check directory killed)))))
      (kill-buffer (process-buffer process)))))

(defun gemini-companion-saved-test-kills (count chain first)
  "Kill COUNT Emacsen, CHAIN of them one after the other in one directory.
Report what is wrong.  For FIRST, see `gemini-companion-saved-test-work'."
  (let ((done 0)
        (wrong nil))
    (while (< done count)
      (let ((directory (file-name-as-directory
                        (file-truename (make-temp-file "killed" t)))))
        (dotimes (_ (min chain (- count done)))
          (let ((seed (random 1000000)))
            (when-let* ((found (gemini-companion-saved-test-kill directory seed first)))
              (push (list seed directory found) wrong)))
          (setq done (1+ done)))
        (unless wrong
          (delete-directory directory t))))
    (ert-info ((format "%d of %d: " (length wrong) count))
      (should-not wrong))))

(ert-deftest gemini-companion-saved-second-emacs-saves-once-the-first-is-killed ()
  (gemini-companion-saved-test-with '(("a" "1\n"))
    (let ((first (gemini-companion-saved-test-killed default-directory 1 #'ignore)))
      (unwind-protect
          (progn
            (should (gemini-companion-test-wait
                     #'gemini-companion-saved-test-files))
            (should (file-exists-p "ours/changes/lock"))
            (gemini-companion-test-writes "a" "one\n" session)
            (let ((file-p (lambda () (gemini-companion-saved-test-file "a"))))
              (should (string-match-p
                       (format "saved by Emacs process %d;" (process-id first))
                       (ert-with-message-capture messages
                         (let ((inhibit-message nil))
                           (gemini-companion-test-run-timers "saved"))
                         messages)))
              (should-not (funcall file-p))
              (signal-process first 'KILL)
              (should (gemini-companion-test-wait
                       (lambda () (not (process-live-p first)))))
              ;; Its own timer tries again.
              (should (gemini-companion-test-wait file-p))
              ;; What the first one has saved is there as well.
              (gemini-companion-saved-test-end)
              (gemini-companion-saved-test-begin)
              (should (< 1 (length (gemini-companion-saved-test-files))))))
        (kill-buffer (process-buffer first))))))

(defun gemini-companion-saved-test-count ()
  "Return how many Emacsen to kill."
  (string-to-number (or (getenv "GC_KILLS") "3")))

(ert-deftest gemini-companion-saved-changes-survive-kills-at-random-moments ()
  (gemini-companion-saved-test-kills (gemini-companion-saved-test-count) 1 #'ignore))

(ert-deftest gemini-companion-saved-changes-survive-kills-after-the-undo-of-all ()
  (gemini-companion-saved-test-kills (gemini-companion-saved-test-count) 5
                                     #'gemini-companion-saved-test-undo-all))

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
         (without (gemini-companion-saved-test-without (expand-file-name name)))
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
                            marked))
         ;; The undo of all would remove them.
         (removed (seq-filter (lambda (line)
                                (and (string-prefix-p "mine" line)
                                     (not (member line without))
                                     (seq-every-p (lambda (marks)
                                                    (not (member line marks)))
                                                  marks)))
                              (split-string text "^" t))))
    (when (or lost wrong removed)
      (list :name name :lost lost :wrong wrong :removed removed
            :marked marked :text text :recent recent :old old))))

;; A busy machine makes a timer late.
(defun gemini-companion-saved-test-longest (log)
  "Return the longest time between the last entries of LOG, in seconds."
  (let ((times (mapcar #'car (seq-take log 20))))
    (apply #'max 0 (cl-mapcar #'- times (cdr times)))))

(defun gemini-companion-saved-test-check (directory killed)
  "Compare the marks in this Emacs with those that were in DIRECTORY.
An Emacs that worked there was KILLED at that time.  Return what is wrong."
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
                    (dotimes (n 6)
                      (gemini-companion-saved--restore-file
                       (expand-file-name (format "f%d" n)))))
                  messages))
          (prog1
              (append
               (and (string-match-p "Saved changes" (or messages ""))
                    (list :messages messages))
               (cl-loop for n below 6
                        for name = (format "f%d" n)
                        append (gemini-companion-saved-test-wrong
                                name (- killed (gemini-companion-saved-test-longest log))
                                (seq-filter (lambda (step) (equal name (nth 1 step)))
                                            log))))
            ;; What this kill has lost, the next one has not.
            (dotimes (n 6)
              (gemini-companion-saved-test-log-step (format "f%d" n)))))
      (gemini-companion-saved-test-end 'killed))))

;;;; Bytes

(defconst gemini-companion-saved-test-formats
  '((lf "\n" "\n" "\n") (crlf "\r\n" "\r\n" "\r\n") (cr "\r" "\r" "\r")
    (mixed "\r\n" "\n" "\r\n") (more "\n" "\r\n" "\n"))
  "Lists of a name and the ends of three lines.")

(defun gemini-companion-saved-test-bytes (ends line coding)
  "Return the bytes of three lines with ENDS in CODING; LINE is the second one."
  (encode-coding-string
   (mapconcat #'concat (cl-mapcar #'concat (list "one" line "three") ends) "")
   coding))

(defun gemini-companion-saved-test-conversions ()
  "Return the bytes of all pairs of formats, without and with a change.
The value is four lists of lists (BEFORE AFTER PHRASE), one for each pair of
marks at the beginning."
  (mapcar
   (pcase-lambda (`(,mark . ,mark-after))
     (let ((conversions nil))
       (pcase-dolist (`(,name . ,ends) gemini-companion-saved-test-formats)
         (pcase-dolist (`(,name-after . ,ends-after) gemini-companion-saved-test-formats)
           (dolist (line '("zw\u00f6lf" "zwei"))
             (let ((before (gemini-companion-saved-test-bytes
                            ends "zw\u00f6lf"
                            (if mark 'utf-8-with-signature-unix 'utf-8-unix)))
                   (after (gemini-companion-saved-test-bytes
                           ends-after line
                           (if mark-after 'utf-8-with-signature-unix 'utf-8-unix))))
               (unless (equal before after)
                 (push (list before after
                             (format "%s%s -> %s%s %s" name (if mark " mark" "")
                                     name-after (if mark-after " mark" "") line))
                       conversions))))))
       (nreverse conversions)))
   '((nil . nil) (nil . t) (t . nil) (t . t))))

(defun gemini-companion-saved-test-lines (bytes)
  "Return the text of BYTES as a CLI reports it without its line ends."
  (gemini-companion-text-normalized (decode-coding-string bytes 'utf-8-unix)))

(defun gemini-companion-saved-test-each-conversion (convert restart function)
  "Call FUNCTION for each conversion of a file, after a restart if RESTART.
CONVERT is called with the name of the file, its bytes before and those that it
has.  FUNCTION is called with the same, a phrase and the edit.  The files
with the same marks have a directory and a restart in common."
  (dolist (conversions (gemini-companion-saved-test-conversions))
    (gemini-companion-saved-test-with nil
      (let ((files (seq-map-indexed (lambda (_ k) (expand-file-name (format "a%d" k)))
                                    conversions)))
        (cl-mapc (pcase-lambda (file `(,before ,after ,_))
                   (gemini-companion-test-write file after)
                   (funcall convert session file before after))
                 files conversions)
        (when restart
          (gemini-companion-saved-test-restart)
          (gemini-companion-saved-test-be-idle))
        (let ((edits (gemini-companion-edits)))
          (cl-mapc
           (pcase-lambda (file `(,before ,after ,phrase))
             (ert-info (phrase)
               (let ((edit (seq-find (lambda (edit)
                                       (equal file (gemini-companion-edit-true-name edit)))
                                     edits)))
                 ;; A write that has changed no line is not saved.
                 (should (or edit (and restart (string-suffix-p "\u00f6lf" phrase))))
                 (when edit
                   (funcall function file before after phrase edit)))))
           files conversions))))))

(defun gemini-companion-saved-test-reports (text)
  "Return a function that reports the bytes of a file, converted by TEXT."
  (lambda (session file before after)
    (gemini-companion-reported-write
     session file (funcall text before) (funcall text after))))

(defun gemini-companion-saved-test-concern (edit)
  "Return what else the user has to know before EDIT is undone, or nil."
  (gemini-companion-decide-item-concern
   (car (gemini-companion-undo--plan-edits (list edit) nil))))

(ert-deftest gemini-companion-saved-conversion-by-a-command-is-undone-byte-for-byte ()
  (dolist (restart '(nil t))
    (gemini-companion-saved-test-each-conversion
     (lambda (session file before after)
       (gemini-companion-reported-bytes session file before after "convert a"))
     restart
     (lambda (file before _after _phrase edit)
       (gemini-companion-test-undo-edit edit)
       (should (equal before (gemini-companion-text-bytes file)))))))

(ert-deftest gemini-companion-saved-conversion-by-a-cli-is-undone-byte-for-byte ()
  (dolist (restart '(nil t))
    (gemini-companion-saved-test-each-conversion
     (gemini-companion-saved-test-reports
      (lambda (bytes) (decode-coding-string bytes 'utf-8-unix)))
     restart
     (lambda (file before _after _phrase edit)
       (should-not (gemini-companion-saved-test-concern edit))
       (gemini-companion-test-undo-edit edit)
       (should (equal before (gemini-companion-text-bytes file)))))))

;; Gemini CLI reports its edits so.
(ert-deftest gemini-companion-saved-conversion-that-is-not-reported-is-not-guessed ()
  (dolist (restart '(nil t))
    (gemini-companion-saved-test-each-conversion
     (gemini-companion-saved-test-reports #'gemini-companion-saved-test-lines)
     restart
     (lambda (file before after phrase edit)
       ;; A report of a file with plain line ends may have all that the file had.
       (unless (or (equal after (gemini-companion-text-utf-8
                                 (gemini-companion-saved-test-lines after)))
                   (string-suffix-p "\u00f6lf" phrase))
         (should (eq 'line-ends (gemini-companion-saved-test-concern edit)))
         (gemini-companion-test-answering #'always
           (gemini-companion-test-undo-edit edit))
         (should (equal (gemini-companion-saved-test-lines before)
                        (gemini-companion-saved-test-lines
                         (gemini-companion-text-bytes file)))))))))

(ert-deftest gemini-companion-saved-conversion-of-a-visited-file-is-known ()
  (gemini-companion-saved-test-each-conversion
   (lambda (session file before after)
     (gemini-companion-test-write file before)
     (find-file file)
     (gemini-companion-test-write file after)
     (gemini-companion-reported-write
      session file (gemini-companion-saved-test-lines before)
      (gemini-companion-saved-test-lines after))
     (gemini-companion-revert-now file))
   nil
   (lambda (file before _after phrase edit)
     (unless (string-suffix-p "\u00f6lf" phrase)
       (should-not (gemini-companion-saved-test-concern edit))
       (gemini-companion-test-undo-edit edit)
       (should (equal before (gemini-companion-text-bytes file)))))))

(provide 'gemini-companion-saved-test)
;;; gemini-companion-saved-test.el ends here
