;;; gemini-companion-shell-test.el --- Tests of what tools write  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-edit-hunks)
(require 'gemini-companion-edit-test-helper)
(require 'gemini-companion-overview-test-helper)
(require 'gemini-companion-test-helper)
(require 'gemini-companion-trash)
(require 'gemini-companion-shell)
(require 'gemini-companion-undo)
(require 'gemini-companion-unmarked-test-helper)

(defun gemini-companion-shell-test-save (text)
  "Save TEXT in this buffer, which visits a file."
  (erase-buffer)
  (insert text)
  (save-buffer))

(defun gemini-companion-shell-test-write (text)
  "Write TEXT to the file of this buffer as another program does."
  (let ((file buffer-file-name))
    (with-temp-file file
      (insert text))
    (revert-buffer t t t)))

(defvar gemini-companion-shell-test-first nil
  "The number of the last write before the test.")

(defmacro gemini-companion-shell-test-with-file (text &rest body)
  "Evaluate BODY in a buffer of a new file with TEXT, while a tool is running.
`session' is its CLI."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-edits (list (list "a.txt" ,text))
     (let ((mode-require-final-newline nil)
           (make-backup-files nil)
           (gemini-companion-shell-test-first (gemini-companion-shell-saved 0)))
       (gemini-companion-part-start 'shell)
       (unwind-protect
           (with-current-buffer (find-file-noselect "a.txt")
             (unwind-protect
                 (progn
                   (gemini-companion-shell-called t)
                   ,@body)
               (set-buffer-modified-p nil)
               (kill-buffer)))
         (gemini-companion-part-stop 'shell)))))

(defun gemini-companion-shell-test-blob (content)
  "Return the name of CONTENT, a string of bytes or nil, in git."
  (if content
      (secure-hash 'sha1 (concat (format "blob %d\0" (length content)) content))
    ""))

(defun gemini-companion-shell-test-change (name before after &optional old new)
  "Return what the server sends if NAME had BEFORE, and has AFTER now.
Both are bytes or nil.  OLD and NEW are its modes as in git."
  (cl-flet ((content (bytes)
              (and bytes
                   (let ((file (make-temp-file "content")))
                     (gemini-companion-text-write file bytes)
                     file)))
            (modes (modes bytes)
              (if bytes (or modes #o100644) 0)))
    (vector name (content before) (content after)
            (modes old before) (modes new after)
            (gemini-companion-shell-test-blob before)
            (gemini-companion-shell-test-blob after))))

(defun gemini-companion-shell-test-wrote (session changes &rest facts)
  "Let SESSION report CHANGES of the current directory with FACTS."
  (let ((done nil))
    (gemini-companion-shell-wrote
     session
     `(,@facts :root ,default-directory :command "make" :problem ""
               :count ,(length changes) :by_git 0 :unseen 0 :saved (0 0 0 0))
     (vconcat changes)
     (lambda (_) (setq done t)))
    (gemini-companion-test-eventually done)))

(defmacro gemini-companion-shell-test-said (&rest body)
  "Evaluate BODY, and return what was announced about a command, or nil."
  (declare (indent 0) (debug t))
  `(let ((said nil))
     (cl-letf (((symbol-function 'gemini-companion-idle-announce)
                (lambda (text) (push text said))))
       ,@body)
     (should-not (cdr said))
     (car said)))

(defun gemini-companion-shell-test-numbers (&optional counts)
  "Return the numbers of the last write as two snapshots began and were complete.
COUNTS are those of the writes of the test until then; by default, none was made
while a snapshot was taken."
  (let ((last (gemini-companion-shell-saved 0)))
    (if counts
        (mapcar (apply-partially #'+ gemini-companion-shell-test-first) counts)
      (list gemini-companion-shell-test-first gemini-companion-shell-test-first
            last last))))

(defun gemini-companion-shell-test-steps (session before after &optional counts)
  "Return what SESSION has made of the file of this buffer, BEFORE to AFTER.
The value is a list of (BEFORE . AFTER) for the edits that are recorded, or
`unknown'.  For COUNTS, see `gemini-companion-shell-test-numbers'."
  (let ((known (gemini-companion-edits)))
    (if (gemini-companion-shell-test-said
          (gemini-companion-shell-test-wrote
           session (list (gemini-companion-shell-test-change "a.txt" before after))
           :saved (gemini-companion-shell-test-numbers counts)))
        'unknown
      (mapcar (lambda (edit)
                (cons (gemini-companion-edit-bytes-before edit)
                      (gemini-companion-edit-after edit)))
              (seq-difference (gemini-companion-edits) known #'eq)))))

(ert-deftest gemini-companion-shell-saves-are-left-out-of-what-tools-write ()
  (gemini-companion-shell-test-with-file "1"
    (should (equal '(("1" . "2")) (gemini-companion-shell-test-steps session "1" "2")))
    (gemini-companion-shell-test-write "12")
    (gemini-companion-shell-test-save "user 12")
    (gemini-companion-shell-test-write "user 123")
    (should (equal '(("1" . "12") ("user 12" . "user 123"))
                   (gemini-companion-shell-test-steps session "1" "user 123")))))

(ert-deftest gemini-companion-shell-only-saves-are-no-step ()
  (gemini-companion-shell-test-with-file "1"
    (gemini-companion-shell-test-save "2")
    (gemini-companion-shell-test-save "3")
    (should-not (gemini-companion-shell-test-steps session "1" "3"))
    ;; The snapshots may have been taken between the saves.
    (should-not (gemini-companion-shell-test-steps session "2" "3" '(0 1 2 2)))
    (should-not (gemini-companion-shell-test-steps session "1" "2" '(0 0 1 2)))
    ;; Who has written it at once with a save is not known.
    (should (eq 'unknown (gemini-companion-shell-test-steps session "0" "3" '(0 1 2 2))))
    (should (eq 'unknown (gemini-companion-shell-test-steps session "1" "4" '(0 0 1 2))))))

(ert-deftest gemini-companion-shell-only-saves-of-the-interval-count ()
  (gemini-companion-shell-test-with-file "1"
    (gemini-companion-shell-test-save "2")
    (gemini-companion-shell-test-write "1")
    ;; An old save is no text before, though it leads to the text now.
    (should (equal '(("1" . "2"))
                   (gemini-companion-shell-test-steps session "1" "2" '(1 1 1 1))))
    (gemini-companion-shell-test-save "3")
    (should (equal '(("2" . "1")) (gemini-companion-shell-test-steps session "1" "3")))
    ;; The first save is forgotten.
    (should (= (+ 2 gemini-companion-shell-test-first)
               (gemini-companion-shell-saved (1+ gemini-companion-shell-test-first))))
    (should-not (gemini-companion-shell-test-steps session "1" "3"))
    ;; The end of all tools may precede a report.
    (gemini-companion-shell-called nil)
    (should-not (gemini-companion-shell-test-steps session "1" "3" '(1 1 2 2)))
    (gemini-companion-shell-test-save "4")
    (should (= (+ 2 gemini-companion-shell-test-first)
               (gemini-companion-shell-saved 0)))))

(ert-deftest gemini-companion-shell-save-that-fails-is-none ()
  (gemini-companion-shell-test-with-file "1"
    (let ((write-contents-functions (list (lambda () (error "Disk full")))))
      (should-error (gemini-companion-shell-test-save "2")))
    (gemini-companion-shell-test-write "3")
    (should (equal '(("1" . "3")) (gemini-companion-shell-test-steps session "1" "3")))))

(ert-deftest gemini-companion-shell-save-of-an-unknown-text-is-said ()
  (gemini-companion-shell-test-with-file "1"
    (gemini-companion-shell-called nil)
    (add-hook 'before-save-hook (lambda () (gemini-companion-shell-called t)) 100 t)
    (gemini-companion-shell-test-save "2")
    (should (eq 'unknown (gemini-companion-shell-test-steps session "1" "2")))))

(ert-deftest gemini-companion-shell-text-of-an-edit-that-comes-back-is-written ()
  (gemini-companion-test-with-edits '(("a" "cli\n"))
    (let ((file (expand-file-name "a")))
      (gemini-companion-reported-write session file "1\n" "cli\n")
      ;; The user changes it, and a command takes that back.
      (gemini-companion-shell-test-wrote
       session (list (gemini-companion-shell-test-change "a" "user\n" "cli\n")))
      (should (equal '(("a") ("a" . "make")) (gemini-companion-shell-test-edits)))
      (should (equal "user\n" (gemini-companion-edit-bytes-before
                               (car (gemini-companion-edits-of-file file))))))))

(ert-deftest gemini-companion-shell-server-learns-that-a-cli-is-ready ()
  (gemini-companion-test-with-edits nil
    (let ((calls nil))
      (cl-letf (((symbol-function #'gemini-companion-server-call)
                 (lambda (&rest call) (push call calls))))
        (gemini-companion-part-start 'shell)
        (run-hook-with-args 'gemini-companion-state-functions session 'ready)
        (should-not calls)
        (gemini-companion-shell-called t)
        (unwind-protect
            (progn
              (run-hook-with-args 'gemini-companion-state-functions session 'working)
              (should-not calls)
              (run-hook-with-args 'gemini-companion-state-functions session 'ready)
              (should (equal `((cli-ready (,(gemini-companion-session-pid session))))
                             calls)))
          (gemini-companion-shell-called nil)
          (gemini-companion-part-stop 'shell))))))

(ert-deftest gemini-companion-shell-file-that-emacs-deletes-is-no-step ()
  (gemini-companion-shell-test-with-file "1"
    (let ((file buffer-file-name))
      (gemini-companion-trash-delete file 'agreed)
      (should-not (gemini-companion-shell-test-steps session "1" nil)))))

(ert-deftest gemini-companion-shell-excluded-files-are-hidden-from-the-server ()
  (gemini-companion-test-with-directory '(("a.txt" "") (".env" ""))
    (let ((answer nil))
      (gemini-companion-shell-shared
       (vector (expand-file-name "a.txt") (expand-file-name ".env"))
       60 (lambda (value) (setq answer value)))
      (gemini-companion-test-wait (lambda () answer))
      (should (equal '(:shared (0) :hidden (1)) answer)))))

(ert-deftest gemini-companion-shell-files-without-time-are-neither-shared-nor-hidden ()
  (gemini-companion-test-with-directory '(("a.txt" ""))
    (let ((answer nil)
          (files (make-vector 1000 (expand-file-name "a.txt")))
          (gemini-companion-excluded
           (list (lambda (_file _buffer) (ignore (sleep-for 0.01))))))
      (pcase-dolist (`(,seconds ,all) '((60 t) (0 nil)))
        (setq answer nil)
        (gemini-companion-privacy-refresh)
        (gemini-companion-shell-shared
         files seconds (lambda (value) (setq answer value)))
        (gemini-companion-test-wait (lambda () answer))
        (should (eq all (length= (plist-get answer :shared) (length files))))
        (should-not (plist-get answer :hidden))))))

(defun gemini-companion-shell-test-edits ()
  "Return the names and commands of the edits that are recorded here."
  (mapcar (lambda (edit)
            (cons (gemini-companion-edit-name edit 'plain)
                  (gemini-companion-edit-command edit)))
          (seq-filter (lambda (edit)
                        (string-prefix-p default-directory
                                         (gemini-companion-edit-file edit)))
                      (gemini-companion-edits))))

;; An undo deleted it.
(ert-deftest gemini-companion-shell-file-with-a-text-of-the-user-is-no-change ()
  (gemini-companion-test-with-edits '(("a" "1\n"))
    (gemini-companion-part-start 'shell)
    (unwind-protect
        (with-current-buffer (find-file-noselect "a")
          (gemini-companion-shell-called t)
          (gemini-companion-shell-test-save "mine\n")
          (let ((said (ert-with-message-capture said
                        (gemini-companion-shell-test-wrote
                         session
                         (list (gemini-companion-shell-test-change "b" nil "mine\n")
                               (gemini-companion-shell-test-change "old" "1\n" "mine\n")
                               (gemini-companion-shell-test-change "c" nil "other\n")
                               (gemini-companion-shell-test-change "image" nil "mine\0"))
                         :saved (let ((last (gemini-companion-shell-saved 0)))
                                  (list 0 0 last last)))
                        (gemini-companion-test-run-timers)
                        said)))
            (should (equal '(("c" . "make") ("1 file" . "make"))
                           (gemini-companion-shell-test-edits)))
            (should (string-search "not recorded, as you have written it at once, or its \
text is lost: old, b" said))))
      (gemini-companion-part-stop 'shell))))

(ert-deftest gemini-companion-shell-line-of-latin-1-is-one-line ()
  (gemini-companion-test-with-edits '(("a" "eins\nzwei\nl\351\n"))
    (gemini-companion-shell-test-wrote
     session (list (gemini-companion-shell-test-change
                    "a" "eins\ntwo\nl\351\n" "eins\nzwei\nl\351\n")))
    (should (equal "+1 −1"
                   (substring-no-properties
                    (gemini-companion-edit-hunks-lines (gemini-companion-edits)))))))

(ert-deftest gemini-companion-shell-write-that-a-tool-reports-is-one-edit ()
  ;; The report comes before or after the snapshot.
  (dolist (first '(nil t))
    (gemini-companion-test-with-edits '(("a" "two\n"))
      (let ((report (lambda ()
                      (gemini-companion-reported-write
                       session (expand-file-name "a") "one\n" "two\n"))))
        (when first
          (funcall report))
        (gemini-companion-shell-test-wrote
         session (list (gemini-companion-shell-test-change "a" "one\n" "two\n")))
        (unless first
          (funcall report))
        (should (equal '(("a")) (gemini-companion-shell-test-edits)))))))

(ert-deftest gemini-companion-shell-edits-are-left-out-of-what-tools-write ()
  (gemini-companion-shell-test-with-file "1\n"
    (gemini-companion-shell-test-write "1\n2\n")
    (gemini-companion-reported-write session buffer-file-name "1\n" "1\n2\n")
    (gemini-companion-shell-test-write "0\n1\n2\n")
    (should (equal '(("1\n2\n" . "0\n1\n2\n"))
                   (gemini-companion-shell-test-steps session "1\n" "0\n1\n2\n")))))

;; It was a deletion by the command, whose undo made the file again.
(ert-deftest gemini-companion-shell-edit-of-an-unknown-text-deletes-nothing ()
  (gemini-companion-shell-test-with-file "1\n"
    (gemini-companion-shell-test-write "2\n")
    (gemini-companion-reported-write session buffer-file-name "\uFFFD\n" "2\n")
    (gemini-companion-shell-test-write "2\n3\n")
    (should (equal '(("2\n" . "2\n3\n"))
                   (gemini-companion-shell-test-steps session "1\n" "2\n3\n")))))

(ert-deftest gemini-companion-shell-deleted-file-has-its-modes-or-those-of-new-files ()
  (pcase-dolist (`(,in-git ,default ,private ,modes)
                 '((#o100644 #o700 nil #o600)
                   (#o100644 #o755 nil #o644)
                   (#o100755 #o775 nil #o775)
                   ;; All could read it then.
                   (#o100644 #o755 #o600 #o600)
                   (#o100755 #o755 #o750 #o750)))
    (gemini-companion-test-with-edits nil
      (with-file-modes default
        (gemini-companion-shell-test-wrote
         session (list (gemini-companion-shell-test-change "a" "1\n" nil in-git))
         :private (and private `(("a" ,private))))
        (gemini-companion-test-undo-edit (car (gemini-companion-edits))))
      (should (= modes (file-modes "a"))))))

;; It was in the trash only.
(ert-deftest gemini-companion-shell-renamed-file-goes-once-it-has-its-old-name ()
  (pcase-dolist (`(,taken ,names ,left)
                 '((nil ("new") ("new"))
                   (nil ("new" "dir/old") ("dir/old"))
                   (nil ("dir/old" "new") ("dir/old"))
                   ("dir" ("new" "dir/old") ("new"))
                   ("dir/old" ("new" "dir/old") ("new"))))
    (gemini-companion-test-with-edits '(("new" "mine\n") ("other" "2\n"))
      (gemini-companion-shell-test-wrote
       session (list (gemini-companion-shell-test-change "dir/old" "mine\n" nil)
                     (gemini-companion-shell-test-change "new" nil "mine\n")
                     (gemini-companion-shell-test-change "other" "1\n" "2\n")))
      (when taken
        (make-directory (or (file-name-directory taken) ".") t)
        (gemini-companion-test-write taken "others\n"))
      (let ((edits (mapcar (lambda (name)
                             (car (gemini-companion-edits-of-file
                                   (expand-file-name name))))
                           (append names '("other")))))
        (gemini-companion-test-answering #'always
          (gemini-companion-undo-edits edits)))
      (should (equal "1\n" (gemini-companion-text-bytes "other")))
      (dolist (name '("new" "dir/old"))
        (should (eq (and (member name left) t)
                    (and (not (equal name taken))
                         (file-exists-p name))))
        (when (member name left)
          (should (equal "mine\n" (gemini-companion-text-bytes name))))))))

(ert-deftest gemini-companion-shell-buffers-of-all-files-follow ()
  (gemini-companion-test-with-edits '(("a" "1\n") ("b" "1\n"))
    (dolist (name '("a" "b"))
      (find-file name)
      (gemini-companion-text-write (expand-file-name name) "2\n"))
    ;; Many, or none of them a text.
    (let ((gemini-companion-shell-most-texts 0))
      (gemini-companion-shell-test-wrote
       session (mapcar (lambda (name) (vector name nil nil #o100644 #o100644 "x" "y"))
                       '("a" "b"))))
    (dolist (name '("a" "b"))
      (should (equal "2\n" (with-current-buffer name (buffer-string)))))
    (should (equal '(("2 files" . "make")) (gemini-companion-shell-test-edits)))))

;; One that changed each third line of 4.5 MB blocked Emacs for 12 s.
(ert-deftest gemini-companion-shell-change-that-is-too-large-has-no-marks ()
  (cl-flet ((lines (count &optional size)
              (apply #'concat (mapcar (lambda (n)
                                        (concat (format "%d" n)
                                                (make-string (or size 1) ?x) "\n"))
                                      (number-sequence 1 count)))))
    (pcase-dolist (`(,before ,after ,marked)
                   (list (list (lines 21000) (upcase (lines 21000)) nil)
                         (list (lines 19000) (upcase (lines 19000)) t)
                         (list (lines 50 30000) (upcase (lines 50 30000)) nil)
                         ;; Large, but little is changed.
                         (list (lines 21000) (concat (lines 21000) "y\n") t)
                         (list (lines 50 30000) (concat "y\n" (lines 50 30000)) t)
                         (list nil (lines 21000) nil)
                         (list (lines 21000) nil nil)))
      (gemini-companion-test-with-edits '(("a" ""))
        (if after
            (gemini-companion-text-write (expand-file-name "a") after)
          (delete-file "a"))
        (gemini-companion-shell-test-wrote
         session (list (gemini-companion-shell-test-change "a" before after)))
        (let ((edit (car (gemini-companion-edits))))
          (should (eq marked (null (gemini-companion-unmarked-p edit)))))))))

(ert-deftest gemini-companion-shell-files-that-are-no-texts-are-one-edit ()
  (gemini-companion-test-with-edits '(("a" "1\n") ("b" "\0") ("c" "") ("d" ""))
    (gemini-companion-shell-test-wrote
     session
     (list (gemini-companion-shell-test-change "a" "" "1\n")
           (gemini-companion-shell-test-change "b" nil "\0")
           (gemini-companion-shell-test-change "c" "1" "1" nil #o100755)
           (gemini-companion-shell-test-change "d" "c" "b" #o120000 #o120000)
           (gemini-companion-shell-test-change "e" "1\n" "2\n" nil #o100755)
           ;; It counted as reviewed, and did not come back with the others.
           (gemini-companion-shell-test-change "__init__.py" "" nil))
     :left_out '("big"))
    (should (equal '(("a" . "make") ("e" . "make")
                     ("2 files, modes of 2 files, 1 link, 1 large file" . "make"))
                   (gemini-companion-shell-test-edits)))))

;; It was there again, and the next undo deleted it.
(ert-deftest gemini-companion-shell-empty-file-that-a-turn-makes-and-deletes-is-no-change ()
  (pcase-dolist (`(,text ,turns) '((nil 1) ("1\n" 1) (nil 2)))
    (gemini-companion-overview-test-with '(("a" "2\n"))
      (cl-flet ((writes (name before after)
                  (if after
                      (gemini-companion-test-write name after)
                    (delete-file name))
                  (gemini-companion-shell-test-wrote
                   session
                   (list (gemini-companion-shell-test-change name before after)))))
        (gemini-companion-state-report session 'prompt "First")
        (writes "a" "1\n" "2\n")
        (writes "x" nil (or text ""))
        (when text
          (writes "x" text ""))
        (when (= 2 turns)
          (gemini-companion-state-report session 'end nil)
          (gemini-companion-state-report session 'prompt "Second"))
        (writes "x" "" nil))
      (let ((edit (car (gemini-companion-edits-of-file (expand-file-name "x")))))
        (gemini-companion-turn-page)
        (if (= 2 turns)
            ;; The second turn has deleted what was there before it.
            (should (gemini-companion-edit-new-p edit))
          (should (gemini-companion-edit-deleted-modes edit))
          (gemini-companion-overview-test-go-to-turn)
          (let ((current-prefix-arg nil))
            (gemini-companion-overview-test-keys "C-u u" 'yes))
          (should (equal "1\n" (gemini-companion-test-file-text "a")))
          (should-not (file-exists-p "x")))))))

;; A file with the name that the link leads to was the one that was deleted.
(ert-deftest gemini-companion-shell-file-of-a-directory-that-is-a-link-now-has-no-marks ()
  (gemini-companion-test-with-edits '(("real/a" "1\n"))
    (make-symbolic-link "real" "dir")
    (gemini-companion-shell-test-wrote
     session
     (list (gemini-companion-shell-test-change "dir" nil "real" nil #o120000)
           (gemini-companion-shell-test-change "dir/a" "2\n" nil)))
    (should (equal '(("1 link, 1 file" . "make")) (gemini-companion-shell-test-edits)))
    (should-not (gemini-companion-edits-of-file (file-truename "real/a")))))

;; A row without a name was left of an undo of all.
(ert-deftest gemini-companion-shell-directories-are-no-files ()
  (gemini-companion-test-with-edits '(("dir/a" "1\n"))
    (gemini-companion-shell-test-wrote
     session (list (gemini-companion-shell-test-change "dir/a" nil "1\n"))
     :made '("dir"))
    (should (equal '(("dir/a" . "make")) (gemini-companion-shell-test-edits)))))

(ert-deftest gemini-companion-shell-files-with-an-unknown-past-are-only-named ()
  (gemini-companion-test-with-edits '(("b.txt" "mine") ("x" "mine"))
    (gemini-companion-shell-test-wrote
     session nil
     :moved '("b.txt") :moved_count 1 :unknown '("x" "y") :unknown_count 3
     :gone '(".env") :gone_count 1 :repositories '("app/") :repositories_count 1)
    (should (equal '(("1 file moved here, 3 files not looked at before, 1 removed, \
not kept, 1 new repository" . "make"))
                   (gemini-companion-shell-test-edits)))
    (let ((unmarked (car (gemini-companion-edits))))
      (should (equal "    moved    b.txt
    unknown  x
    unknown  y
    ...and 1 more of these
    removed  .env
    not looked at app/
"
                     (gemini-companion-changes-several-text unmarked))))
    (let ((unmarked (car (gemini-companion-edits))))
      (gemini-companion-unmarked-test-with-server ".store"
        (should (equal '(0 ("1 file that was moved here stays"
                            "3 files not looked at before stay"
                            "1 removed file was not kept"
                            "1 new repository stays"))
                       (gemini-companion-unmarked-test-change unmarked t)))
        (should (gemini-companion-test-refusal
                  (gemini-companion-test-answering #'always
                    (gemini-companion-undo-edits (list unmarked)))))
        ;; The row said "undone".
        (should (eq 'unreviewed (gemini-companion-changes-status unmarked)))))
    (should (file-exists-p "b.txt"))
    (should (file-exists-p "x"))))

(ert-deftest gemini-companion-shell-messages-escape-commands-and-names ()
  (dolist (problem '("" "git: a\n\e[31m"))
    (should (string-match-p
             "\\`[ -~]+\\'"
             (gemini-companion-shell-test-said
               (gemini-companion-shell-test-wrote
                (gemini-companion-session-make :id "1" :client "gemini")
                '(["a\nb" unknown unknown #o100644 #o100644 "x" "y"]
                  ["c\u202Ed" unknown unknown #o100644 #o100644 "x" "y"])
                :command "make\n\e[31m \u202E" :root "/p" :problem problem))))))

(defun gemini-companion-shell-test-taken ()
  "Return the lines of the user that the last edit has taken, and if of a commit."
  (pcase (gemini-companion-edit-taken (car (last (gemini-companion-edits))))
    (`(,tracked . ,lines) (cons tracked (sort (hash-table-keys lines) #'string<)))))

(ert-deftest gemini-companion-shell-lines-of-the-user-are-those-of-no-cli ()
  (gemini-companion-test-with-edits '(("a" "cli\nmine\n") ("b" "1\n"))
    (let ((file (expand-file-name "a"))
          (said nil)
          (taken (lambda (text)
                   (let ((file (make-temp-file "taken")))
                     (gemini-companion-text-write file text)
                     file))))
      (cl-letf (((symbol-function #'gemini-companion-notify-warn)
                 (lambda (_ text) (push text said))))
        (gemini-companion-reported-write session file "mine\n" "cli\nmine\n")
        (gemini-companion-shell-test-wrote
         session (list (gemini-companion-shell-test-change "b" "1\n" "2\n")
                       (gemini-companion-shell-test-change "a" "cli\nmine\n\n" "1\n"))
         :taken `((1 t ,(funcall taken "cli\nmine"))))
        (should (equal '(t "mine") (gemini-companion-shell-test-taken)))
        (should-not (gemini-companion-edit-taken (cadr (gemini-companion-edits))))
        (should (string-match-p
                 "(`make') takes 1 line of yours that was never committed: "
                 (car said)))
        (gemini-companion-shell-test-wrote
         session (list (gemini-companion-shell-test-change "b" "cli\n" nil))
         :taken `((0 nil ,(funcall taken "cli"))))
        (should (equal '(nil "cli") (gemini-companion-shell-test-taken)))
        (should (string-match-p "1 line, maybe yours, that was never" (car said)))
        (gemini-companion-shell-test-wrote
         session (list (gemini-companion-shell-test-change "c" "\0" nil)) :taken_count 7)
        (should (string-match-p "takes text of 7 files that was never committed"
                                (car said)))
        (should (equal "1 file, takes text of 7 files that was never committed"
                       (substring-no-properties
                        (gemini-companion-edit-name
                         (car (last (gemini-companion-edits)))))))))))

(ert-deftest gemini-companion-shell-saved-lines-that-are-taken-are-the-users ()
  (gemini-companion-shell-test-with-file "1\n"
    (gemini-companion-shell-test-save "1\nsaved\n")
    (pcase-dolist (`(,after ,taken) '(("2\n" (t "saved")) ("saved\n2\n" nil)))
      (cl-letf (((symbol-function #'gemini-companion-notify-warn) #'ignore))
        (gemini-companion-shell-test-wrote
         session (list (gemini-companion-shell-test-change "a.txt" "1\n" after))
         :saved (gemini-companion-shell-test-numbers)
         :taken `((0 t ,(make-temp-file "taken")))))
      (should (equal after (gemini-companion-edit-after
                            (car (last (gemini-companion-edits))))))
      (should (equal taken (gemini-companion-shell-test-taken))))))

(ert-deftest gemini-companion-shell-names-are-those-of-files-in-the-project ()
  (gemini-companion-test-with-edits '(("~/f" "2\n") ("$HOME" "2\n") ("~/g" "\0"))
    (gemini-companion-shell-test-wrote
     session (list (gemini-companion-shell-test-change "~/f" nil "2\n")
                   (gemini-companion-shell-test-change "$HOME" "1\n" "2\n")
                   (gemini-companion-shell-test-change "~/g" nil "\0"))
     :made '("~"))
    (should (equal '("$HOME" "~/f")
                   (sort (mapcar (lambda (edit)
                                   (string-remove-prefix
                                    default-directory
                                    (gemini-companion-edit-true-name edit)))
                                 (seq-remove #'gemini-companion-unmarked-p
                                             (gemini-companion-edits)))
                         #'string<)))
    (should (equal (list (concat default-directory "~/"))
                   (gemini-companion-edit-missing-directories
                    (cl-find "/f" (gemini-companion-edits) :test #'string-suffix-p
                             :key #'gemini-companion-edit-true-name))))
    ;; Their buffers follow.
    (let ((root default-directory))
      (find-file (concat root "~/f"))
      (gemini-companion-text-write buffer-file-name "3\n")
      (let ((default-directory root))
        (gemini-companion-shell-test-wrote
         session (list (gemini-companion-shell-test-change "~/f" "2\n" "3\n"))))
      (should (equal "3\n" (buffer-string))))))

(ert-deftest gemini-companion-shell-what-is-not-recorded-is-said ()
  (let ((session (gemini-companion-session-make :id "1" :client "gemini"))
        (other (gemini-companion-session-make :id "2" :client "qwen")))
    (cl-labels ((said-of (session changes &rest facts)
                  (when-let* ((said (gemini-companion-shell-test-said
                                      (apply #'gemini-companion-shell-test-wrote
                                             session changes
                                             (append facts '(:root "/p"))))))
                    (substring said (+ 4 (string-search "'): " said)))))
                (said-by (session &rest facts)
                  (apply #'said-of session nil facts))
                (said (&rest facts)
                  (apply #'said-by session facts))
                (findings ()
                  (gemini-companion-part-findings 'shell "/p")))
      (should-not (said))
      (let ((problem '(:problem "src has 3000 files" :remedy "list src/ in .gitignore"))
            (text (concat "files it wrote are not recorded: src has 3000 files; "
                          "list src/ in .gitignore")))
        (should (equal text (apply #'said problem)))
        ;; It is said once to each CLI, and stays in the status until it is over.
        (should-not (apply #'said problem))
        (should (equal text (apply #'said-by other problem)))
        (should-not (apply #'said problem))
        (should-not (said))
        (should (equal `(("Shell commands" note
                          ,(concat "What shell commands write in /p is not recorded: "
                                   "src has 3000 files")
                          "List src/ in .gitignore."))
                       (findings)))
        (should-not (said :over t))
        (should-not (findings))
        (should (equal text (apply #'said problem))))
      (should (equal (concat "files it wrote are not recorded: git failed; "
                             "written since: a.txt and 2 more")
                     (said :problem "git failed" :meanwhile '("a.txt")
                           :meanwhile_count 3)))
      (should (equal "It is recorded again once that is over." (nth 3 (car (findings)))))
      (should (equal "300 files written, too many to record" (said :count 300)))
      (should (equal "20 files changed by git to another commit" (said :by_git 20)))
      (should (equal "1 file changed by git to another commit" (said :by_git 1)))
      (should (equal "1 file not recorded, as Emacs was busy" (said :unseen 1)))
      (should (equal "7 files not recorded, as Emacs was busy" (said :unseen 7)))
      (should (equal "not recorded, as the name is not in UTF-8: caf\ufffd"
                     (said :odd '("caf\ufffd"))))
      (should (equal (concat "not recorded, as you have written it at once, or its text "
                             "is lost: a.png")
                     (said-of session
                              '(["a.png" unknown unknown #o100644 #o100644 "x" "y"]))))
      (said :over t))))

(provide 'gemini-companion-shell-test)
;;; gemini-companion-shell-test.el ends here
