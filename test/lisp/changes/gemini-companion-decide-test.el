;;; gemini-companion-decide-test.el --- Tests of deciding about several files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-text-test-helper)

(defun gemini-companion-decide-test-text (file)
  "Return the text that FILE has, or that its buffer has, or nil without both.
Omit the line that others have written during the command."
  (let ((buffer (get-file-buffer file)))
    (cond ((and buffer (buffer-modified-p buffer))
           (gemini-companion-text-of-buffer buffer))
          ((file-exists-p file)
           (string-remove-suffix "late\n" (gemini-companion-test-file-text file))))))

(defun gemini-companion-decide-test-prepare (file session)
  "Do something by chance to FILE, which the CLI of SESSION has written.
Return when FILE is to be written by others: `asked', `run' or nil."
  (pcase (random 9)
    (0 (with-current-buffer (find-file-noselect file)
         (read-only-mode)))
    (1 (gemini-companion-test-open file "new\n" (random) session))
    (2 (with-current-buffer (find-file-noselect file)
         (goto-char (point-max))
         (insert "typed\n")))
    (3 (gemini-companion-test-write file "one\nmine\n3\n4\n5\n6\n7\n8\n9\n"))
    (4 (ignore (delete-file file)))
    (5 (ignore (find-file-noselect file)))
    (6 'asked)
    (7 'run)))

;;;; The question

(defmacro gemini-companion-decide-test-asked (answer &rest body)
  "Evaluate BODY with ANSWER to each question, and return the questions.
ANSWER is as for `gemini-companion-test-answering', of which it is the value."
  (declare (indent 1) (debug t))
  `(let ((asked nil))
     (gemini-companion-test-answering (lambda (question)
                                        (push question asked)
                                        ,answer)
       (ignore-error (user-error quit)
         ,@body))
     (nreverse asked)))

(defmacro gemini-companion-decide-test-with-all (&rest body)
  "Evaluate BODY with what can be asked: a, b and c were changed, and new is new.
Lines of a are the user's, and b is read-only.  GROUPS are all changes."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-changes
       (mapcar (lambda (name) (list name gemini-companion-test-lines)) '("a" "b" "c"))
     (dolist (file '("a" "b" "c"))
       (gemini-companion-test-writes
        file "one\ntwo\n3\n4\n5\n6\n7\n8\nnine\n" session))
     (gemini-companion-test-writes "new" "x\n" session)
     (gemini-companion-test-write "a" "one\nmine\n3\n4\n5\n6\n7\n8\nnine\n")
     (gemini-companion-test-open "b" "two\n" 7 session)
     (let ((groups (mapcar (lambda (record)
                             (cons record (gemini-companion-changes-update record)))
                           (gemini-companion-changes-files 'all))))
       (ignore groups)
       ,@body)))

(defun gemini-companion-decide-test-texts ()
  "Return the texts of the files a, b, c and new, or nil for one that is missing."
  (mapcar (lambda (file)
            (and (file-exists-p file) (gemini-companion-test-file-text file)))
          '("a" "b" "c" "new")))

(ert-deftest gemini-companion-decide-asks-once-with-the-worst-first ()
  (gemini-companion-decide-test-with-all
    (let ((before (gemini-companion-decide-test-texts)))
      (should (equal '("Deletes new, takes 1 line, maybe yours, in a, leaves out b: \
undo 5 changes in 3 files?")
                     (let ((gemini-companion-decide-columns 100))
                       (gemini-companion-decide-test-asked nil
                         (gemini-companion-undo-decide 'undo groups :row t)))))
      (should (equal before (gemini-companion-decide-test-texts)))
      ;; What does not fit is not cut: the names are in a list then.
      (let ((list nil))
        (should (equal '("Deletes 1 file, takes 1 line, maybe yours, \
...: undo 5 changes?")
                       (gemini-companion-decide-test-asked
                           (setq list (with-current-buffer "*gemini files*"
                                        (should (get-buffer-window))
                                        (buffer-string)))
                         (setq list nil)
                         (gemini-companion-undo-decide 'undo groups :row t))))
        (should (equal "  delete     new
  undo       a, with 1 line of yours or a formatter's
  leave out  b has a proposal that awaits an answer; answer that first
  undo       c
s: undo only what needs no warning
"
                       list)))
      (should-not (get-buffer "*gemini files*"))
      (should (equal (list gemini-companion-test-lines (nth 1 before)
                           gemini-companion-test-lines nil)
                     (gemini-companion-decide-test-texts))))))

(ert-deftest gemini-companion-decide-does-only-what-needs-no-warning ()
  (gemini-companion-decide-test-with-all
    (let ((before (gemini-companion-decide-test-texts))
          (said nil))
      (gemini-companion-test-answering (lambda (_) ?s)
        (setq said (gemini-companion-undo-decide 'undo groups :row t)))
      (should (equal (list (nth 0 before) (nth 1 before) gemini-companion-test-lines
                           (nth 3 before))
                     (gemini-companion-decide-test-texts)))
      (should (equal "Undid 2 changes of c; b has a proposal that awaits an answer; \
answer that first; left out: a, new"
                     said))
      (gemini-companion-decision-undo)
      (should (equal before (gemini-companion-decide-test-texts))))))

;; The trash does not get it, and another Emacs would not know its text.
(ert-deftest gemini-companion-decide-asks-twice-only-about-what-would-be-gone ()
  (dolist (lose '(t nil))
    (gemini-companion-decide-test-with-all
      (let ((gemini-companion-trash-most-bytes 1)
            (before (gemini-companion-decide-test-texts))
            (twice nil)
            (said nil))
        (cl-letf (((symbol-function 'yes-or-no-p)
                   (lambda (question) (push question twice) lose)))
          (should (= 1 (length (gemini-companion-decide-test-asked t
                                 (setq said (gemini-companion-undo-decide
                                             'undo groups :row t)))))))
        (should (equal '("Not to the trash: new is larger than 1; delete for good? ")
                       twice))
        (should (equal (list gemini-companion-test-lines (nth 1 before)
                             gemini-companion-test-lines (if lose nil "x\n"))
                       (gemini-companion-decide-test-texts)))
        (should (eq lose (not (string-suffix-p "; left out: new" said))))
        (gemini-companion-decision-undo)
        (should (equal before (gemini-companion-decide-test-texts)))))))

;; It was deleted for good, as the trash did not get it any more.
(ert-deftest gemini-companion-decide-leaves-what-the-trash-no-longer-gets ()
  (gemini-companion-decide-test-with-all
    (let ((gemini-companion-trash-most-bytes gemini-companion-trash-most-bytes)
          (said nil))
      (cl-letf (((symbol-function 'yes-or-no-p) (lambda (_) (error "Asked")))
                ((symbol-function 'gemini-companion-decide-run)
                 (let ((run (symbol-function 'gemini-companion-decide-run)))
                   (lambda (&rest arguments)
                     (setq gemini-companion-trash-most-bytes 1)
                     (apply run arguments)))))
        (gemini-companion-test-answering #'always
          (setq said (gemini-companion-undo-decide 'undo groups :row t))))
      (should (equal "x\n" (gemini-companion-test-file-text "new")))
      (should (string-search "new not deleted, as it is larger than 1 and cannot go to \
the trash; delete it by hand"
                             said)))))

;; The answer to the first one counted for this one.
(ert-deftest gemini-companion-decide-asks-again-what-a-redo-would-delete-for-good ()
  (dolist (lose '(nil t quit))
    (gemini-companion-decide-test-with-all
      (let ((gemini-companion-trash-most-bytes 1)
            (answer t)
            (twice nil))
        (cl-letf (((symbol-function 'yes-or-no-p)
                   (lambda (question)
                     (push question twice)
                     (when (eq 'quit answer)
                       (setq answer t)
                       (signal 'quit nil))
                     answer)))
          (gemini-companion-test-answering #'always
            (gemini-companion-undo-decide 'undo groups :row t))
          (should-not (file-exists-p "new"))
          (gemini-companion-decision-undo)
          (should (file-exists-p "new"))
          (should (= 1 (length twice)))
          (setq answer lose)
          (when (eq 'quit lose)
            ;; Nothing is done, and it can be redone later.
            (should (eq 'quit (condition-case nil
                                  (gemini-companion-decision-redo)
                                (quit 'quit))))
            (should-not (equal gemini-companion-test-lines
                               (gemini-companion-test-file-text "c")))
            (pop twice))
          (gemini-companion-decision-redo)
          (should (equal '("Not to the trash: new is larger than 1; delete for good? ")
                         (cdr twice)))
          (should (= 2 (length twice)))
          (should (eq (null lose) (file-exists-p "new")))
          (should (equal gemini-companion-test-lines
                         (gemini-companion-test-file-text "c"))))))))

(ert-deftest gemini-companion-decide-does-nothing-after-a-quit-at-either-question ()
  (dolist (at '(1 2))
    (gemini-companion-decide-test-with-all
      (let ((gemini-companion-trash-most-bytes 1)
            (before (gemini-companion-decide-test-texts))
            (last (gemini-companion-decision-last)))
        (cl-letf (((symbol-function 'yes-or-no-p) (lambda (_) (signal 'quit nil))))
          (should (eq 'quit (condition-case nil
                                (gemini-companion-test-answering
                                    (lambda (_) (if (= at 1) (signal 'quit nil) t))
                                  (gemini-companion-undo-decide 'undo groups :row t))
                              (quit 'quit)))))
        (should (equal before (gemini-companion-decide-test-texts)))
        (should (eq last (gemini-companion-decision-last)))
        (should-not (get-buffer "*gemini files*"))))))

(ert-deftest gemini-companion-decide-names-what-is-left-out-if-nothing-is-done ()
  (gemini-companion-decide-test-with-all
    (let ((some (seq-filter (pcase-lambda (`(,record . ,_))
                              (member (file-name-nondirectory
                                       (gemini-companion-changes-file-name record))
                                      '("b" "c")))
                            groups)))
      (gemini-companion-test-answering (lambda (_)
                                         (gemini-companion-test-write "c" "mine\n")
                                         t)
        (should (equal "b has a proposal that awaits an answer; answer that first; \
c has changed meanwhile; review it again"
                       (gemini-companion-test-refusal
                         (gemini-companion-undo-decide 'undo some :row t))))))))

(ert-deftest gemini-companion-decide-question-fits-into-a-line ()
  (gemini-companion-text-test-at-random 50
    (let* ((long (make-string (1+ (random 60)) ?x))
           (items (mapcar (lambda (n)
                            (gemini-companion-decide-item
                             :name (format "%s%d" long n)
                             :reason (and (= 0 (random 3)) (format "%s%d is red" long n))
                             :others (max 0 (- (random 2000) 1000))
                             :concern (seq-random-elt '(nil nil changed line-ends))
                             :deletes (and (= 0 (random 3)) (list (list (format "/%d" n))))))
                          (number-sequence 1 (1+ (random 6)))))
           (requests (gemini-companion-decide-requests 'undo items 'change))
           (shown nil))
      (cl-letf (((symbol-function 'read-char-from-minibuffer)
                 (lambda (prompt keys)
                   (should (<= (string-width prompt) 79))
                   (should-not (memq ?\s keys))
                   (should-not (memq ?\r keys))
                   (setq shown (get-buffer "*gemini files*"))
                   (unless shown
                     (dolist (item items)
                       (when (or (gemini-companion-decide-item-reason item)
                                 (gemini-companion-decide-item-deletes item)
                                 (< 0 (gemini-companion-decide-item-others item))
                                 (gemini-companion-decide-item-concern item))
                         (should (string-search (gemini-companion-decide-item-name item)
                                                prompt)))))
                   ?n)))
        (should-error (gemini-companion-decide-agreed items 'undo requests :ask t)
                      :type 'user-error)))))

;;;; What happens meanwhile

;; The file has the same size, and on some disks the same time.
(ert-deftest gemini-companion-decide-twice-within-a-second-is-two-decisions ()
  (dolist (visited '(nil t))
    (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines))
      (gemini-companion-test-writes "a" "x\n2\n3\n4\n5\n6\n7\n8\ny\n" session)
      (when visited
        (find-file "a"))
      (let* ((record (car (gemini-companion-changes-files 'all)))
             (then (encode-time '(0 0 0 1 1 2020 nil nil 0)))
             (texts nil)
             (text (lambda ()
                     (set-file-times "a" then)
                     (gemini-companion-test-file-text "a"))))
        (dotimes (_ 2)
          (push (funcall text) texts)
          (gemini-companion-undo-decide
           'undo (list (list record (car (gemini-companion-changes-update record))))))
        (should (equal gemini-companion-test-lines (funcall text)))
        (dolist (before texts)
          (gemini-companion-decision-undo)
          (should (equal before (funcall text))))
        (dolist (after (list (car texts) gemini-companion-test-lines))
          (gemini-companion-decision-redo)
          (should (equal after (funcall text)))))
      (gemini-companion-part-stop 'decision))))

(ert-deftest gemini-companion-decide-goes-on-after-an-undo-of-emacs-during-its-question ()
  (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines)
                                        ("b" ,gemini-companion-test-lines))
    (dolist (file '("a" "b"))
      (gemini-companion-test-writes file "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session))
    (find-file "a")
    (buffer-enable-undo)
    (let ((undo-first (lambda ()
                        (let ((record (gemini-companion-changes-here)))
                          (gemini-companion-undo-decide
                           'undo
                           (list (list record (car (gemini-companion-changes-update
                                                    record))))))))
          (texts (lambda () (mapcar #'gemini-companion-test-file-text '("a" "b"))))
          (last (gemini-companion-decision-last)))
      (funcall undo-first)
      (should (equal '("1\n2\n3\n4\n5\n6\n7\n8\nnine\n" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n")
                     (funcall texts)))
      (let ((groups (mapcar (lambda (record)
                              (cons record (gemini-companion-changes-update record)))
                            (gemini-companion-changes-files 'all))))
        (gemini-companion-test-answering
            (lambda (_)
              (with-current-buffer "a"
                (let ((last-command 'ignore))
                  (undo-boundary)
                  (undo 1)
                  (run-hooks 'post-command-hook)))
              t)
          (gemini-companion-undo-decide 'undo groups :row t)))
      ;; What was taken back is left; what was asked about is undone.
      (should (equal (list "one\n2\n3\n4\n5\n6\n7\n8\n9\n" gemini-companion-test-lines)
                     (funcall texts)))
      (should (eql 1 (gemini-companion-test-left)))
      (gemini-companion-decision-undo)
      (should (equal (make-list 2 "one\n2\n3\n4\n5\n6\n7\n8\nnine\n") (funcall texts)))
      ;; That of the user was taken back already.
      (should (eq last (gemini-companion-decision-last))))
    (gemini-companion-part-stop 'decision)))

(ert-deftest gemini-companion-decide-keeps-the-bytes-of-a-buffer-in-another-coding ()
  (gemini-companion-test-with-changes `(("a" "caf\u00e9\n2\n3\n")
                                        ("b" ,gemini-companion-test-lines))
    (let ((bytes (gemini-companion-text-bytes "a")))
      (gemini-companion-test-writes "a" "caf\u00e9\ntwo\n3\n" session)
      (gemini-companion-test-writes "b" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
      (let ((written (gemini-companion-text-bytes "a"))
            (groups (mapcar (lambda (record)
                              (cons record (gemini-companion-changes-update record)))
                            (gemini-companion-changes-files 'all))))
        (let ((coding-system-for-read 'latin-1))
          (find-file "a"))
        ;; It has no marks, and is not shown before it is changed.
        (should (equal "a is shown in iso-latin-1-unix, and has no marks"
                       (gemini-companion-test-refusal
                         (gemini-companion-undo-decide
                          'undo (list (assq (gemini-companion-changes-of-file
                                             (expand-file-name "a"))
                                            groups))))))
        (should (equal written (gemini-companion-text-bytes "a")))
        (gemini-companion-test-answering #'always
          (gemini-companion-undo-decide 'undo groups :row t)
          (should (equal bytes (gemini-companion-text-bytes "a")))
          (should (equal "caf\u00c3\u00a9\n2\n3\n" (buffer-string)))
          (gemini-companion-decision-undo))
        (should (equal written (gemini-companion-text-bytes "a")))
        (should-not (buffer-modified-p))))
    (gemini-companion-part-stop 'decision)))

(ert-deftest gemini-companion-decide-names-a-file-whose-directory-is-read-only ()
  (skip-unless (/= 0 (user-uid)))
  (gemini-companion-decide-test-with-all
    (make-directory "closed")
    (gemini-companion-test-writes "closed/new" "x\n" session)
    (set-file-modes "closed" #o500)
    (unwind-protect
        (let ((said (gemini-companion-test-answering #'always
                      (gemini-companion-undo-decide
                       'undo
                       (mapcar (lambda (record)
                                 (cons record (gemini-companion-changes-update record)))
                               (gemini-companion-changes-files 'all))
                       :row t))))
          (should (string-search "closed/new cannot be moved to the trash" said))
          (should (file-exists-p "closed/new"))
          (should (equal gemini-companion-test-lines (gemini-companion-test-file-text "c"))))
      (set-file-modes "closed" #o700))))

;;;; Random plans

;; All texts are those before or those of an undo; what is not done is named; what is
;; done can be taken back and redone; and one question is asked at most.
(ert-deftest gemini-companion-decide-does-what-it-says-in-random-files ()
  (gemini-companion-text-test-at-random
      (string-to-number (or (getenv "GC_TURNS") "10"))
    (gemini-companion-test-with-changes
        (mapcar (lambda (name) (list name gemini-companion-test-lines))
                '("a1" "b2" "c3" "d4"))
      (unwind-protect
          (let* ((names '("a1" "b2" "c3" "d4" "e5"))
                 (files (mapcar #'expand-file-name names))
                 (second (gemini-companion-test-session "two" 2))
                 (_ (dolist (file files)
                      (gemini-companion-test-writes
                       file "one\ntwo\n3\n4\n5\n6\n7\n8\n9\n" session)
                      (gemini-companion-test-writes
                       file "one\ntwo\nthree\n4\n5\n6\n7\n8\nnine\n" second)))
                 (when (mapcar (lambda (file)
                                 (gemini-companion-decide-test-prepare file session))
                               files))
                 (verb (if (= 0 (random 4)) 'keep 'undo))
                 (by (and (eq verb 'undo) (= 0 (random 3))
                          (lambda (edit)
                            (eq second (gemini-companion-edit-session edit)))))
                 (groups (cl-loop for record in (gemini-companion-changes-files 'all)
                                  for changes = (seq-filter
                                                 (lambda (change)
                                                   (or (null by)
                                                       (gemini-companion-changes-share
                                                        change by)))
                                                 (gemini-companion-changes-update record))
                                  when changes collect (cons record changes)))
                 (write (lambda (occasion)
                          (cl-loop for file in files
                                   for its in when
                                   for text = (and (file-exists-p file)
                                                   (gemini-companion-test-file-text file))
                                   ;; It is not undone yet.
                                   when (and (eq its occasion) text
                                             (string-search "two\n" text)
                                             (string-search "nine" text))
                                   do (gemini-companion-test-write
                                       file (if (= 0 (random 2))
                                                (concat text "late\n")
                                              (string-replace "two" "two of others"
                                                              text))))
                          (setq when (cl-substitute nil occasion when))))
                 (texts (lambda () (mapcar #'gemini-companion-decide-test-text files)))
                 (before (funcall texts))
                 (last (gemini-companion-decision-last))
                 (answer (seq-random-elt '(?y ?y ?y ?y ?s ?n quit)))
                 ;; A file that cannot be written, as the disk is full, or nil.
                 (full (and (= 0 (random 3)) (seq-random-elt names)))
                 (rewrite (symbol-function 'gemini-companion-text-rewrite))
                 (move (symbol-function 'move-file-to-trash))
                 (fails (lambda (file)
                          (when (equal full (file-name-nondirectory file))
                            (signal 'file-error '("No space left on device")))))
                 (asked nil)
                 ;; After how many files the user types C-g, or a number of none.
                 (stops (random 12))
                 (later (lambda (&rest _)
                          (funcall write 'run)
                          (when (and (= 0 (cl-decf stops)) inhibit-quit)
                            (setq quit-flag t))))
                 (said nil))
            (add-hook 'gemini-companion-changes-undo-functions later)
            (unwind-protect
                (cl-letf (((symbol-function 'gemini-companion-text-rewrite)
                           (lambda (file &rest more)
                             (funcall fails file)
                             (apply rewrite file more)))
                          ((symbol-function 'move-file-to-trash)
                           (lambda (file) (funcall fails file) (funcall move file)))
                          ((symbol-function 'gemini-companion-choice-key)
                           (lambda (question keys)
                             (push question asked)
                             (funcall write 'asked)
                             (setq before (funcall texts))
                             (when (eq answer 'quit)
                               (signal 'quit nil))
                             (unless (memq answer keys)
                               (setq answer ?y))
                             answer)))
                  (setq said (condition-case problem
                                 (gemini-companion-undo-decide verb groups
                                                               :row t :by by)
                               ((user-error quit) (error-message-string problem)))))
              (remove-hook 'gemini-companion-changes-undo-functions later))
            (ert-info ((format "%S %s" asked said))
              (should (length< asked 2))
              (let ((after (funcall texts))
                    (done nil))
                (cl-loop
                 for name in names
                 for was in before
                 for is in after
                 for record = (gemini-companion-changes-of-file
                               (file-truename (expand-file-name name)))
                 do (unless (or (equal was is)
                                (equal (string-replace "two" "two of others" was) is))
                      (push name done)
                      (should (member (and is (string-replace
                                               " of others" ""
                                               (string-remove-suffix "typed\n" is)))
                                      (if by
                                          '("one\ntwo\n3\n4\n5\n6\n7\n8\n9\n"
                                            "one\nmine\n3\n4\n5\n6\n7\n8\n9\n")
                                        (list nil "" gemini-companion-test-lines)))))
                 (unless (or (member name done)
                             (not (assq record groups))
                             (and asked (memq answer '(?n quit))))
                   (unless (or (eq verb 'keep) (string-search "; stopped, " said))
                     (should (string-search name (concat said (car asked)))))))
                (when (eq verb 'keep)
                  (should-not done))
                (when (and asked (eq answer ?s) (null by))
                  (cl-loop for name in names
                           for was in before
                           for is in after
                           when (member name done)
                           do (should (or is (null was)))
                           and do (should-not (and was (string-search "mine" was)))))
                (cond
                 ((and (eq verb 'keep) (or (null asked) (memq answer '(?y ?s))))
                  (should-not (eq last (gemini-companion-decision-last)))
                  (should-not (gemini-companion-test-left))
                  (gemini-companion-decision-undo)
                  (should (gemini-companion-test-left)))
                 ((or (and asked (memq answer '(?n quit))) (null done))
                  (should-not done)
                  (should (eq last (gemini-companion-decision-last))))
                 (t
                  (let ((back (lambda ()
                                (cl-loop for name in names
                                         for text in (funcall texts)
                                         when (member name done) collect text))))
                    (let ((undone (funcall back)))
                      (gemini-companion-test-answering #'always
                        (gemini-companion-decision-undo)
                        (should (equal (cl-loop for name in names
                                                for text in before
                                                when (member name done) collect text)
                                       (funcall back)))
                        (gemini-companion-decision-redo)
                        (should (equal undone (funcall back)))))))))))
        (gemini-companion-part-stop 'decision)
        (dolist (buffer (buffer-list))
          (with-current-buffer buffer
            (when buffer-file-name
              (set-buffer-modified-p nil))))))))

;; The error that nothing was done counted as one of the last file.
(ert-deftest gemini-companion-decide-reports-once-that-nothing-was-done ()
  (let ((ends 0))
    (should (equal "Nothing done"
                   (gemini-companion-test-refusal
                     (gemini-companion-decide-run
                      "Doing"
                      (mapcar (lambda (name)
                                (gemini-companion-decide-item :name name :remote t))
                              '("a" "b"))
                      (lambda (_ end) (funcall end "it is red"))
                      (lambda (&rest _)
                        (cl-incf ends)
                        (user-error "Nothing done"))))))
    (should (= 1 ends))))

;; Some items end at once, some later in any order or never, as on a host that does not
;; answer; some fail.
(ert-deftest gemini-companion-decide-ends-each-item-once ()
  (gemini-companion-text-test-at-random 300
    (let* ((items (cl-loop for n below (random 12)
                           collect (gemini-companion-decide-item
                                    :name (format "f%d" n) :remote (= 0 (random 2))
                                    :current (if (= 0 (random 8)) #'ignore #'always))))
           (started nil)
           (waiting nil)
           (ends 0)
           (result nil)
           (value (gemini-companion-decide-run
                   "Doing" items
                   (lambda (item end)
                     (should-not (memq item started))
                     ;; Those of other hosts come last, one after another.
                     (should-not waiting)
                     (push item started)
                     (pcase (random 6)
                       (0 (error "No space left"))
                       (1 (funcall end "f is red"))
                       ((and 2 (guard (gemini-companion-decide-item-remote item)))
                        (setq waiting end))
                       (_ (funcall end nil))))
                   (lambda (&rest all)
                     (cl-incf ends)
                     (setq result all)
                     'said))))
      (while (and waiting (< 0 (random 10)))
        (should-not value)
        (should (= 0 ends))
        (let ((end waiting))
          (setq waiting nil)
          (funcall end (and (= 0 (random 4)) "late"))))
      (if waiting
          (should (= 0 ends))
        (should (= 1 ends))
        (pcase-let ((`(,done ,problems ,left) result))
          (should-not left)
          (dolist (item items)
            (should-not (eq (null (memq item done))
                            (null (string-match-p
                                   (format "\\_<%s\\_>" (gemini-companion-decide-item-name item))
                                   (string-join problems "; "))))))
          (should (equal (seq-filter (lambda (item) (memq item done))
                                     (append (seq-remove #'gemini-companion-decide-item-remote
                                                         items)
                                             (seq-filter #'gemini-companion-decide-item-remote
                                                         items)))
                         done)))))))

;; The question was whether to delete all of them.
(ert-deftest gemini-companion-decide-names-the-one-of-several-files-that-goes ()
  (should (equal '(("/p/new" . "/p/new"))
                 (gemini-companion-decide--deleted
                  (gemini-companion-decide-item
                   :name "1 link, 2 files" :deletes '(("/p/new"))
                   :step (gemini-companion-step-make :kind 'several :on t))))))

;;; gemini-companion-decide-test.el ends here
