;;; gemini-companion-changes-test.el --- Tests of changes that nobody has reviewed  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes)
(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-decision)
(require 'gemini-companion-remote-test-helper)
(require 'gemini-companion-text-test-helper)

(ert-deftest gemini-companion-changes-stay-over-the-next-turns ()
  (gemini-companion-test-with-changes
      `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
    (find-file-noselect "b")
    (find-file "a")
    (gemini-companion-state-report session 'prompt "First")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-test-writes "b" "C\n" session)
    (gemini-companion-test-writes "a" "one\n2\n3\n4\nfive\n6\n7\n8\n9\n" session)
    (should (equal '(1 5) (gemini-companion-test-marked "a")))
    (gemini-companion-state-report session 'end nil)
    (gemini-companion-state-report session 'prompt "Second")
    ;; It writes one of its lines again, and another one.
    (gemini-companion-test-writes "a" "one\n2\n3\n4\nFIVE\n6\n7\n8\nnine\n" session)
    (should (equal '(1 5 9) (gemini-companion-test-marked "a")))
    (should (equal '(1) (gemini-companion-test-marked "b")))
    (should (eql 4 (gemini-companion-test-left)))
    ;; The CLI deletes what it needed in its turn.
    (gemini-companion-test-writes "new" "1\n" session)
    (delete-file "new")
    (should (eql 5 (gemini-companion-test-left)))
    (gemini-companion-state-report session 'end nil)
    (should (eql 4 (gemini-companion-test-left)))
    (goto-char (point-min))
    (gemini-companion-test-walk 'gemini-companion-next-change "n" "u")
    (should (equal "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
                   (gemini-companion-text-of-buffer "a")))
    (should (eql 3 (gemini-companion-test-left)))))

(ert-deftest gemini-companion-changes-that-cannot-be-compared-are-not-undone ()
  (let ((text (mapconcat (lambda (n) (format "line %d\n" n))
                         (number-sequence 1 400) "")))
    (gemini-companion-test-with-changes `(("a" ,text))
      (find-file "a")
      (buffer-enable-undo)
      (gemini-companion-test-writes "a" (string-replace "line 300\n" "CLI\n" text)
                                    session)
      (should (equal '(300) (gemini-companion-test-marked "a")))
      ;; Typed at both ends, so that the program diff compares what is between.
      (goto-char (point-min))
      (forward-line 2)
      (insert "mine 1\nmine 2\nmine 3\n")
      (goto-char (point-max))
      (forward-line -2)
      (insert "mine 4\n")
      (let ((typed (buffer-string))
            (restored (string-replace "CLI\n" "line 300\n" (buffer-string)))
            (record (gemini-companion-changes-of-file (file-truename "a"))))
        (gemini-companion-text-test-where-diff-fails
          (dolist (go '(("CLI" . gemini-companion-undo-change)
                        ("line 296" . gemini-companion-undo-change)
                        ("CLI" . gemini-companion-keep-change)))
            (goto-char (point-min))
            (search-forward (car go))
            (should (string-match-p
                     reason
                     (error-message-string
                      (should-error (gemini-companion-test-walk (cdr go)))))))
          (should (equal typed (buffer-string)))
          ;; The mark stays, and an idle timer reports the problem.
          (should (string-match-p
                   (concat "Updating changes: .*" reason)
                   (ert-with-message-capture messages
                     (let ((inhibit-message nil))
                       (gemini-companion-changes-update-buffer))
                     messages)))
          (should (equal 1 (gemini-companion-test-left))))
        (should (equal '(303) (gemini-companion-test-marked "a")))
        (goto-char (point-min))
        (search-forward "CLI")
        (gemini-companion-test-walk 'gemini-companion-undo-change)
        (should (equal restored (buffer-string)))
        (should-not (gemini-companion-changes-update record))))))

(defun gemini-companion-changes-test-long ()
  "Return a text of 400 lines, and those of two writes after it.
The first write changes the lines 9 and 395, the second one the line 300."
  (let* ((text (mapconcat (lambda (n) (format "line %d\n" n))
                          (number-sequence 1 400) ""))
         (first (string-replace "line 9\n" "first\n"
                                (string-replace "line 395\n" "first too\n" text))))
    (list text first (string-replace "line 300\n" "second\n" first))))

(ert-deftest gemini-companion-changes-that-cannot-be-compared-are-recorded-later ()
  (pcase-let ((`(,text ,first ,second) (gemini-companion-changes-test-long)))
    (gemini-companion-test-with-changes `(("a" ,text))
      (find-file "a")
      (let ((edit (gemini-companion-edit-make
                   :id 1 :session session :file (expand-file-name "a")
                   :answer 'unreviewed :proposed first :after first
                   :content (gemini-companion-content-make
                             :bytes (encode-coding-string text 'utf-8)
                             :coding 'utf-8-unix))))
        (gemini-companion-edit-add edit)
        (gemini-companion-test-write "a" first)
        (gemini-companion-revert-now (expand-file-name "a"))
        (should (equal first (buffer-string)))
        (gemini-companion-text-test-where-diff-fails
          (should (string-match-p
                   (concat "Recording an edit: .*" reason)
                   (ert-with-message-capture messages
                     (let ((inhibit-message nil))
                       (setf (gemini-companion-edit-file-state edit) 'written)
                       (gemini-companion-edit-notify-file edit 'written))
                     messages)))
          (should-not (gemini-companion-test-left))))
      ;; The next write records both, in order.
      (gemini-companion-test-writes "a" second session)
      (should (equal '(9 300 395) (gemini-companion-test-marked "a"))))))

(ert-deftest gemini-companion-changes-stay-if-a-write-cannot-be-compared-again ()
  (pcase-let ((`(,text ,first ,second) (gemini-companion-changes-test-long)))
    (gemini-companion-test-with-changes `(("a" ,text))
      (find-file "a")
      (let ((edit (gemini-companion-test-writes "a" first session)))
        (cl-flet ((hunks ()
                    (length (cdr (gemini-companion-changes-of edit)))))
          (should (eql 2 (hunks)))
          (gemini-companion-text-test-where-diff-fails
            ;; The CLI reports another text than Emacs has found.
            (setf (gemini-companion-edit-after edit) second)
            (gemini-companion-edit-notify-file edit 'written)
            (should (eql 2 (hunks))))
          (gemini-companion-test-write "a" second)
          (gemini-companion-revert-now (expand-file-name "a"))
          (gemini-companion-edit-notify-file edit 'written)
          (should (eql 3 (hunks)))
          (should (equal '(9 300 395) (gemini-companion-test-marked "a"))))))))

(ert-deftest gemini-companion-changes-of-a-write-are-computed-once ()
  (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines))
    (find-file "a")
    (let* ((computed nil)
           (states (symbol-function 'gemini-companion-record-states))
           (drawn 0)
           (count (lambda (&rest _) (cl-incf drawn))))
      (cl-letf (((symbol-function 'gemini-companion-record-states)
                 (lambda (look)
                   (push (gemini-companion-lines-join (gemini-companion-record-text look))
                         computed)
                   (funcall states look))))
        (unwind-protect
            (dolist (text '("one\n2\n3\n4\n5\n6\n7\n8\n9\n"
                            "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"))
              (add-hook 'gemini-companion-changes-functions count)
              (setq computed nil
                    drawn 0)
              (gemini-companion-proposal-offer
               (gemini-companion-test-open "a" text (random) session) nil)
              (gemini-companion-test-eventually (equal text (buffer-string)))
              ;; Not the previous text, which would take the most time.
              (should (equal (list text) computed))
              (should (= 1 drawn)))
          (remove-hook 'gemini-companion-changes-functions count))))
    (should (equal '(1 9) (gemini-companion-test-marked "a")))))

(ert-deftest gemini-companion-changes-that-were-accepted-are-kept ()
  (gemini-companion-test-with-changes
      `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
    (find-file "a")
    (gemini-companion-test-writes "b" "C\n" session 'reviewed)
    (should-not (gemini-companion-test-left))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    ;; Nobody has reviewed the first line, which is written again.
    (gemini-companion-test-writes "a" "ONE\n2\n3\n4\nfive\n6\n7\n8\nnine\n" session
                                  'reviewed)
    (should (equal '(1 9) (gemini-companion-test-marked "a")))
    (gemini-companion-test-walk 'gemini-companion-next-change "u" "u")
    (should (equal "1\n2\n3\n4\nfive\n6\n7\n8\n9\n" (buffer-string)))))

(ert-deftest gemini-companion-changes-are-what-differs-from-an-accepted-text ()
  (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines))
    (find-file "a")
    ;; A formatter changes the file as the CLI writes it.
    (setq gemini-companion-test-send
          (lambda (_)
            (gemini-companion-test-write
             "a" "1\n2\n3\n4\nfive\n6\n7\n8\nformatted\n")))
    (gemini-companion-edit-accept
     (gemini-companion-test-open "a" "1\n2\n3\n4\nfive\n6\n7\n8\n9\n" 1 session))
    (gemini-companion-test-in-the-end
     (equal '(9) (gemini-companion-test-marked "a")))
    (should (eql 1 (gemini-companion-test-left)))))

;; The piece stayed the known text of the record.
(ert-deftest gemini-companion-changes-of-a-file-written-in-pieces-are-those-of-the-whole ()
  (dolist (piece '("1\ntwo\n" "1\n2\n"))
    (dolist (last '(file report))
      (ert-info ((format "%S, then %s" piece last))
        (gemini-companion-test-with-changes '(("a" "1\n2\n3\n"))
          (find-file "a")
          (setq gemini-companion-test-send #'ignore)
          (let ((edit (gemini-companion-test-open "a" "1\ntwo\n3\nfour\n" 1 session)))
            (gemini-companion-edit-accept edit)
            (gemini-companion-test-rewrite "a" piece)
            (gemini-companion-test-in-the-end (gemini-companion-edit-file-state edit))
            (gemini-companion-test-rewrite "a" "1\ntwo\n3\nfour\n")
            (when (eq last 'report)
              (gemini-companion-reported-write session (expand-file-name "a")
                                               "1\n2\n3\n" "1\ntwo\n3\nfour\n"))
            (gemini-companion-test-in-the-end
              (and (not (gemini-companion-test-timers "watch"))
                   (equal "1\ntwo\n3\nfour\n" (buffer-string))))
            (dolist (line '(1 3))
              (should (car (gemini-companion-changes-whose line))))
            (should (equal '(nil . base) (gemini-companion-changes-whose 2)))))))))

;; "No changes of a CLI are left" was said with marks before one's eyes.
(ert-deftest gemini-companion-changes-of-an-earlier-turn-can-be-reached ()
  (pcase-dolist (`(,why . ,hide)
                 `(("edited" . ,(lambda ()
                                  (with-current-buffer "b" (insert "mine "))))
                   ("kept" . ,(lambda ()
                                (with-current-buffer "b"
                                  (gemini-companion-keep-changes))))
                   ("unsaved before" . ignore)
                   ("reverted" . ,(lambda ()
                                    (gemini-companion-test-undo-edit
                                     (car (last (gemini-companion-edits))))))))
    (ert-info (why)
      (gemini-companion-test-with-changes
          `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
        (find-file-noselect "b")
        (gemini-companion-state-report session 'prompt "First")
        (find-file "a")
        (goto-char (point-max))
        (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
        (gemini-companion-state-report session 'end nil)
        (gemini-companion-state-report session 'prompt "Second")
        (when (equal why "unsaved before")
          (with-current-buffer "b" (insert "mine ")))
        (gemini-companion-test-writes "b" "C\n" session)
        (funcall hide)
        (ert-run-idle-timers)
        (should (equal '(1 9) (gemini-companion-test-marked "a")))
        ;; The walk that has begun is over.
        (let ((this-command #'ignore))
          (run-hooks 'pre-command-hook))
        (set-window-buffer nil "a")
        (with-current-buffer "a"
          (goto-char (point-min))
          (should (string-prefix-p
                   "Change 1 of" (gemini-companion-test-walk
                                  'gemini-companion-next-change)))
          (should (string-prefix-p "Change 2 of" (gemini-companion-test-walk "n"))))))))

;; The commands and the mode line counted none, and the marks stayed.
(ert-deftest gemini-companion-changes-stay-when-the-option-is-set ()
  (gemini-companion-test-with-changes '(("a" "1\n") ("b" "1\n"))
    (find-file "a")
    (gemini-companion-test-writes "a" "2\n" session)
    (let ((gemini-companion-after-write nil))
      (find-file "b")
      (gemini-companion-test-writes "b" "2\n" session)
      (should-not (gemini-companion-test-marked "b"))
      (should (equal '(1) (gemini-companion-test-marked "a")))
      (should (eql 1 (gemini-companion-test-left)))
      (gemini-companion-next-change)
      (should (equal "a" (buffer-name))))))

(ert-deftest gemini-companion-changes-are-back-with-their-branch ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
    (let ((text (buffer-string)))
      (dolist (other '("x\ny\nz\n" "1\n2\n3\n4\n5\n6\n7\n8\n9\n"))
        (gemini-companion-test-write "a" other)
        (revert-buffer t t)
        (should-not (gemini-companion-test-marked "a"))
        (should-not (gemini-companion-test-left))
        (gemini-companion-test-write "a" text)
        (revert-buffer t t)
        (should (equal '(1 5 9) (gemini-companion-test-marked "a")))))))

(ert-deftest gemini-companion-changes-keep-lines-of-others ()
  (gemini-companion-test-in-changed "one\n2\n3\nnew\n4\n5\n6\n7\n8\n9\n"
    ;; As `git pull' does.
    (gemini-companion-test-write "a" "one\n2\n3\nnew\n4\n5\npulled\n6\n7\n8\n9\n")
    (revert-buffer t t)
    (goto-char (point-min))
    (search-forward "new\n")
    (insert "mine\n")
    (should (equal '(1 4) (gemini-companion-test-marked "a")))
    (gemini-companion-test-writes "a" "one\n2\n3\nnew\n4\n5\npulled\n6\n7\n8\nnine\n"
                                  session)
    (gemini-companion-merge)
    (should (equal '(1 4 12) (gemini-companion-test-marked "a")))
    (gemini-companion-test-walk 'gemini-companion-undo-changes)
    (should (equal "1\n2\n3\nmine\n4\n5\npulled\n6\n7\n8\n9\n"
                   (gemini-companion-text-of-buffer "a")))))

;;;; Line ends, and the byte order mark

(defun gemini-companion-changes-test-converts (before written text session)
  "Let the CLI of SESSION write WRITTEN where a has BEFORE, both bytes.
TEXT is what it has proposed.  Visit the file a before."
  (gemini-companion-test-write "a" before)
  (find-file "a")
  (buffer-enable-undo)
  (setq gemini-companion-test-send
        (lambda (_) (gemini-companion-test-write "a" written)))
  (gemini-companion-test-writes "a" text session))

(ert-deftest gemini-companion-changes-undone-leave-what-no-hunk-has-changed ()
  (pcase-dolist (`(,before ,written ,after)
                 '(("1\n2\n" "\357\273\277one\r\n2\r\n" "\357\273\2771\r\n2\r\n")
                   ("\357\273\2771\r\n2\r\n" "\357\273\277one\r\n2\r\n"
                    "\357\273\2771\r\n2\r\n")))
    (dolist (visited '(t nil))
      (gemini-companion-test-with-changes '(("a" "") ("b" "1\n"))
        (gemini-companion-test-writes "b" "one\n" session)
        (let ((edit (gemini-companion-changes-test-converts
                     before written "one\n2\n" session))
              (file (expand-file-name "a")))
          (unless visited
            (kill-buffer "a"))
          (should (eql 2 (gemini-companion-test-left)))
          (gemini-companion-undo-decide
           'undo
           (mapcar (lambda (record)
                     (cons record (gemini-companion-changes-update record)))
                   (gemini-companion-changes-files)))
          (should (equal after (gemini-companion-text-bytes file)))
          ;; By the bytes, the whole edit is undone.
          (unless (equal before after)
            (gemini-companion-test-write file written)
            (gemini-companion-test-undo-edit edit)
            (should (equal before (gemini-companion-text-bytes file)))
            (should (eq 'undone (gemini-companion-changes-status edit)))))))))

(ert-deftest gemini-companion-changes-of-only-line-ends-are-undone-by-bytes ()
  (gemini-companion-test-with-changes '(("a" ""))
    (let ((edit (gemini-companion-changes-test-converts
                 "1\n2\n" "1\r\n2\r\n" "1\n2\n" session)))
      (should-not (gemini-companion-test-left))
      (gemini-companion-test-write "a" "1\r\n2\r\nmine\r\n")
      (should (string-search "has changed since; this edit has changed no lines"
                             (gemini-companion-test-refusal
                              (gemini-companion-test-undo-edit edit))))
      (gemini-companion-test-write "a" "1\r\n2\r\n")
      (gemini-companion-test-undo-edit edit)
      (should (equal "1\n2\n" (gemini-companion-text-bytes "a")))
      (should (eq 'undone (gemini-companion-changes-status edit))))))

(ert-deftest gemini-companion-changes-kept-without-a-last-newline-leave-none ()
  (gemini-companion-test-with-changes '(("a" "1\n2"))
    (find-file "a")
    (gemini-companion-test-writes "a" "1\n2\n3" session)
    (gemini-companion-test-walk 'gemini-companion-keep-changes)
    (gemini-companion-changes-update-buffer)
    (should-not (gemini-companion-test-left))
    (should (equal "1\n2\n3" (gemini-companion-test-file-text "a")))))

(ert-deftest gemini-companion-changes-undo-leaves-line-ends-of-others ()
  (gemini-companion-test-with-changes '(("a" "1\r\n2\n3\n4\r\n"))
    (find-file "a")
    (setq gemini-companion-test-send
          (lambda (_) (gemini-companion-test-write "a" "1\r\n2\nthree\n4\r\n")))
    (gemini-companion-test-writes "a" "1\n2\nthree\n4\n" session)
    (gemini-companion-test-walk 'gemini-companion-undo-changes)
    (save-buffer)
    (should (equal "1\r\n2\n3\n4\r\n" (gemini-companion-text-bytes "a")))))

;; Each line had two carriage returns then.
(ert-deftest gemini-companion-changes-undo-makes-line-ends-of-both-kinds-one ()
  (let ((before "1\r\n2\r\n3")
        (written "1\r\n2\r\n3\n4"))
    (gemini-companion-test-with-changes '(("a" ""))
      (gemini-companion-changes-test-converts before written "1\n2\n3\n4" session)
      (gemini-companion-test-walk 'gemini-companion-undo-changes)
      (should (equal before (gemini-companion-text-bytes "a")))
      (let ((last-command 'ignore))
        (undo-boundary)
        (undo)
        (run-hooks 'post-command-hook))
      (should (equal written (gemini-companion-text-bytes "a"))))))

;; Gemini CLI reports a replacement with plain line ends, and keeps those of the file.
(ert-deftest gemini-companion-changes-reported-with-plain-ends-convert-nothing ()
  (pcase-dolist
      (`(,before ,written)
       '(("1\r\n2\r\n3\r\n" "1\r\ntwo\r\n3\r\n")
         ("1\r\n2\r\n3" "1\r\ntwo\r\n3")
         ("\357\273\2771\n2\n3\n" "\357\273\2771\ntwo\n3\n")
         ("\357\273\277caf\303\251\r\n2\r\n" "\357\273\277caf\303\251\r\ntwo\r\n")
         ("1\r\n2\n3\n4\r\n" "1\r\ntwo\n3\n4\r\n")))
    (ert-info ((format "%S" before))
      (dolist (how '(walk list))
        (gemini-companion-test-with-changes '(("a" ""))
          (let ((file (expand-file-name "a"))
                (plain (lambda (bytes)
                         (gemini-companion-text-normalized
                          (decode-coding-string bytes 'utf-8-unix)))))
            (gemini-companion-test-write "a" before)
            (find-file file)
            (gemini-companion-test-write "a" written)
            (gemini-companion-revert-now file)
            (gemini-companion-reported-write
             session file (funcall plain before) (funcall plain written))
            (should (eql 1 (gemini-companion-test-left)))
            (if (eq how 'list)
                (gemini-companion-test-answering #'always
                  (gemini-companion-test-undo-edit (car (gemini-companion-edits))))
              (gemini-companion-test-walk 'gemini-companion-undo-changes)
              (save-buffer))
            (should (equal before (gemini-companion-text-bytes file)))))))))

;;;; Undone changes

;; They were changes again, though no line of the CLI was there.
(ert-deftest gemini-companion-changes-undone-stay-undone ()
  (pcase-dolist (`(,what . ,touch)
                 `(("typed behind it" . ,(lambda () (end-of-line) (insert " mine")))
                   ("deleted" . ,(lambda ()
                                   (delete-region (point)
                                                  (line-beginning-position 2))))
                   ("blanks deleted" . ,(lambda ()
                                          (delete-trailing-whitespace)))))
    (dolist (how '(walk list))
      (dolist (saved '(before after nil))
        (ert-info ((format "%s, %s, saved %s" what how saved))
          (gemini-companion-test-with-changes '(("a" "one\ntwo  \nthree\n"))
            (find-file "a")
            (buffer-enable-undo)
            (let ((edit (gemini-companion-test-writes
                         "a" "one\nzwei\nthree\n" session)))
              (if (eq how 'list)
                  (gemini-companion-test-undo-edit edit)
                (gemini-companion-test-walk 'gemini-companion-undo-changes))
              (when (eq saved 'before)
                (save-buffer))
              (should-not (gemini-companion-test-left))
              (goto-char (point-min))
              (forward-line 1)
              (funcall touch)
              (when (eq saved 'after)
                (save-buffer))
              (gemini-companion-changes-update-buffer)
              (should-not (gemini-companion-test-left))
              (should-not (gemini-companion-test-marked "a"))
              ;; The CLI writes there again.
              (save-buffer)
              (let ((text (buffer-string)))
                (gemini-companion-test-writes "a" "one\nvier\nthree\n" session)
                (should (eql 1 (gemini-companion-test-left)))
                (gemini-companion-test-walk 'gemini-companion-undo-changes)
                (should (equal text (buffer-string)))))))))))

(ert-deftest gemini-companion-changes-undone-are-back-by-emacs-undo ()
  (dolist (text '("one\nzwei\nthree\n" "one\nthree\n" "one\ntwo\nnew\nthree\n"))
    (ert-info (text)
      (gemini-companion-test-with-changes '(("a" "one\ntwo\nthree\n"))
        (find-file "a")
        (buffer-enable-undo)
        (gemini-companion-test-writes "a" text session)
        (gemini-companion-test-walk 'gemini-companion-undo-changes)
        (should (equal "one\ntwo\nthree\n" (buffer-string)))
        (should-not (gemini-companion-test-left))
        (dotimes (_ 2)
          (let ((last-command 'ignore))
            (undo-boundary)
            (undo))
          (gemini-companion-changes-update-buffer)
          (should (equal text (buffer-string)))
          (should (eql 1 (gemini-companion-test-left)))
          (let ((last-command 'ignore))
            (undo-boundary)
            (undo))
          (gemini-companion-changes-update-buffer)
          (should (equal "one\ntwo\nthree\n" (buffer-string)))
          (should-not (gemini-companion-test-left)))))))

;; Only the buffer was changed; the CLI read the file, and wrote it all again.
(ert-deftest gemini-companion-changes-undone-are-written-and-so-is-emacs-undo ()
  (dolist (how '(walk list))
    (dolist (bytes '("one\r\ntwo\r\n" "\357\273\277one\ntwo" "one\ncaf\303\251\n"))
      (ert-info ((format "%s %S" how bytes))
        (gemini-companion-test-with-changes '(("a" ""))
          (gemini-companion-test-write "a" bytes)
          (find-file "a")
          (buffer-enable-undo)
          (let* ((require-final-newline t)
                 (hooks 0)
                 (written (string-replace "one" "eins" bytes))
                 (edit (progn
                         (setq gemini-companion-test-send
                               (lambda (_) (gemini-companion-test-write "a" written)))
                         (gemini-companion-test-writes
                          "a" (decode-coding-string written 'utf-8-unix) session)))
                 (check (lambda (file)
                          (should (equal file (gemini-companion-text-bytes "a")))
                          (should-not (buffer-modified-p))
                          (should (verify-visited-file-modtime)))))
            (add-hook 'before-save-hook (lambda () (cl-incf hooks)) nil t)
            (pcase how
              ('list (gemini-companion-test-undo-edit edit))
              (_ (gemini-companion-test-walk 'gemini-companion-undo-changes)))
            (funcall check bytes)
            (dolist (file (list written bytes written))
              (let ((last-command 'ignore))
                (undo-boundary)
                (undo)
                (run-hooks 'post-command-hook))
              (funcall check file)
              (should (equal (and (equal file written) 1)
                             (gemini-companion-test-left))))
            (should (= 0 hooks))))))))

(ert-deftest gemini-companion-changes-undone-are-not-written-over-unsaved-text ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    (let ((written (buffer-string)))
      ;; Undone in unsaved text.
      (goto-char (point-max))
      (insert "mine\n")
      (gemini-companion-test-walk 'gemini-companion-undo-changes)
      (should (equal written (gemini-companion-test-file-text "a")))
      (let ((last-command 'ignore))
        (undo-boundary)
        (undo)
        (run-hooks 'post-command-hook))
      (should (equal written (gemini-companion-test-file-text "a")))
      (delete-region (- (point-max) 5) (point-max))
      (save-buffer)
      ;; Another program has written the file since.
      (gemini-companion-test-walk 'gemini-companion-undo-changes)
      (should (equal gemini-companion-test-lines (gemini-companion-test-file-text "a")))
      (let ((last-command 'ignore))
        (undo-boundary)
        (undo)
        (gemini-companion-test-write "a" "other\n")
        (should (string-search
                 "a is not saved; it has changed since"
                 (ert-with-message-capture messages
                   (run-hooks 'post-command-hook)
                   messages))))
      (should (equal "other\n" (gemini-companion-test-file-text "a")))
      (should (buffer-modified-p)))))

;; An undo deleted it, with the text that its buffer had.
(ert-deftest gemini-companion-changes-of-a-file-that-was-removed-are-not-undone ()
  (dolist (how '(proposal report))
    (ert-info ((symbol-name how))
      (gemini-companion-test-with-changes '(("a" "1\n2\n"))
        (find-file-noselect "a")
        (delete-file "a")
        (let ((edit (if (eq how 'proposal)
                        (gemini-companion-test-writes "a" "new\n" session)
                      (gemini-companion-test-write "a" "new\n")
                      (gemini-companion-reported-write
                       session (expand-file-name "a") nil "new\n")
                      (gemini-companion-revert-now (expand-file-name "a"))
                      (car (last (gemini-companion-edits))))))
          (should-not (gemini-companion-test-left))
          (should (equal "a cannot be restored: its previous text was not recorded"
                         (gemini-companion-test-refusal
                           (gemini-companion-test-undo-edit edit))))
          (should (equal "new\n" (gemini-companion-text-read "a")))
          (with-current-buffer "a"
            (let ((last-command 'ignore))
              (undo))
            (should (equal "1\n2\n" (buffer-string)))
            (set-buffer-modified-p nil)))))))

(defun gemini-companion-changes-test-looks (body)
  "Return how often a record is compared with a text by BODY, a function."
  (let* ((calls 0)
         (count (lambda (&rest _) (setq calls (1+ calls)))))
    (advice-add 'gemini-companion-record-look :before count)
    (unwind-protect (funcall body)
      (advice-remove 'gemini-companion-record-look count))
    calls))

;; The buffer was drawn before and after its revert, and compared four times.
(ert-deftest gemini-companion-changes-of-a-write-are-drawn-once ()
  (dolist (reviewed '(nil t))
    (pcase-dolist (`(,function . ,times) '((gemini-companion-test-drawn . 1)
                                           ;; Before the write, and now.
                                           (gemini-companion-changes-test-looks . 2)))
      (ert-info ((format "%s %s" function reviewed))
        (gemini-companion-test-in-changed "one\n2\n3\n4\n5\n6\n7\n8\n9\n"
          (let ((file (expand-file-name "a"))
                (before (buffer-string))
                (after "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"))
            (should (= times
                       (funcall
                        function
                        (lambda ()
                          (if reviewed
                              (gemini-companion-test-accept "a" after 1 session)
                            (gemini-companion-test-write file after))
                          (gemini-companion-reported-write session file before after)
                          (gemini-companion-revert-now file)))))
            (should (equal after (buffer-string)))
            (should (eql (if reviewed 1 2) (gemini-companion-test-left)))))))))

;; The list said that it is undone, as the other file has no such line.
(ert-deftest gemini-companion-changes-are-those-of-the-file-that-was-written ()
  (gemini-companion-test-with-changes '(("target" "1\n2\n") ("other" "1\n2\n"))
    (make-symbolic-link "target" "link")
    (let ((edit (gemini-companion-test-writes "link" "one\n2\n" session)))
      (should (eql 1 (gemini-companion-test-left)))
      (delete-file "link")
      (make-symbolic-link "other" "link")
      (should (eq 'automatic (gemini-companion-changes-status edit)))
      (should (string-search "symbolic links"
                             (gemini-companion-test-refusal
                               (gemini-companion-test-undo-edit edit))))
      (delete-file "link")
      (make-symbolic-link "target" "link")
      (gemini-companion-test-undo-edit edit)
      (should (equal "1\n2\n" (gemini-companion-test-file-text "target")))
      (should (eq 'undone (gemini-companion-changes-status edit))))))

(ert-deftest gemini-companion-changes-are-not-undone-while-a-proposal-is-open ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    (let ((other (gemini-companion-test-open
                  "a" "one\n2\n3\n4\n5\n6\n7\n8\nTEN\n" 9 session)))
      (dolist (undo (list (lambda () (gemini-companion-test-undo-edit edit))
                          (lambda () (gemini-companion-undo-changes))))
        (should (string-search "has a proposal that awaits an answer"
                               (gemini-companion-test-refusal (funcall undo)))))
      (gemini-companion-edit-reject other)
      (gemini-companion-test-walk 'gemini-companion-undo-changes)
      (should (equal gemini-companion-test-lines
                     (gemini-companion-test-file-text "a"))))))

;; Undoing the file left a1 and two, or nothing to review.
(ert-deftest gemini-companion-changes-of-an-earlier-edit-stay-when-a-later-is-undone ()
  (dolist (saved '(t nil))
    (gemini-companion-test-with-changes '(("a" "one\ntwo\nthree\n"))
      (find-file "a")
      (buffer-enable-undo)
      (let ((first (gemini-companion-test-writes "a" "one\na1\nthree\n" session))
            (second (gemini-companion-test-writes "a" "one\nb1\nthree\n" session)))
        ;; The first one has removed a line, and the second one has added one.
        (should (equal (list second first)
                       (gemini-companion-record-change-edits
                        (car (gemini-companion-changes-file-known
                                  (gemini-companion-changes-here))))))
        (gemini-companion-test-undo-edit second)
        (should (equal "one\na1\nthree\n" (buffer-string)))
        (when saved
          (save-buffer))
        (should (eql 1 (gemini-companion-test-left)))
        (should (equal (list first)
                       (gemini-companion-record-change-edits
                        (car (gemini-companion-changes-file-known
                                  (gemini-companion-changes-here))))))
        (gemini-companion-test-walk 'gemini-companion-undo-changes)
        (should (equal "one\ntwo\nthree\n" (buffer-string)))))))

;; The last line was taken for another one with the newline behind it.
(ert-deftest gemini-companion-changes-at-the-end-are-those-of-the-cli ()
  (pcase-dolist (`(,before ,written ,mine ,left ,undone)
                 '(;; Emacs or the user puts a newline behind the line of the CLI.
                   ("one\ntwo" "one\ntwo\nthree" "one\ntwo\nthree\n" 1 "one\ntwo")
                   ;; The user's last line got its newline from the CLI.
                   ("one\ntwo" "one\ntwo\nthree\n" nil 1 "one\ntwo")
                   ("one\ntwo" "one\nzwei" nil 1 "one\ntwo")
                   ("one\ntwo\n" "one\nzwei" nil 1 "one\ntwo\n")
                   ("one\ntwo" "one\ntwo\n" nil 1 "one\ntwo")))
    (ert-info ((format "%S" (list before written mine)))
      (gemini-companion-test-with-changes `(("a" ,before))
        (let ((require-final-newline nil)
              (mode-require-final-newline nil))
          (find-file "a")
          (buffer-enable-undo)
          (gemini-companion-test-writes "a" written session)
          (when mine
            (erase-buffer)
            (insert mine))
          (gemini-companion-changes-update-buffer)
          (should (eql left (gemini-companion-test-left)))
          (gemini-companion-test-walk 'gemini-companion-undo-changes)
          (should (equal undone (buffer-string)))
          (should-not (gemini-companion-test-left)))))))

;;;; Saving, and other names

;; A formatter made the lines of the CLI others'.
(ert-deftest gemini-companion-changes-formatted-as-the-file-is-saved-are-the-clis ()
  (pcase-dolist (`(,written ,format)
                 `(("one  \n'zwei'  \nthree\nnew  \n4\n5\n" delete-trailing-whitespace)
                   ("one  \nf('zwei',\n  2)\nthree\n4\n5\n"
                    ,(lambda ()
                       (goto-char (point-min))
                       (while (search-forward ",\n  " nil t)
                         (replace-match ", "))))
                   ("one  \nf(2)\nthree\n4\n5\n"
                    ,(lambda ()
                       (goto-char (point-min))
                       (while (search-forward "(2)" nil t)
                         (replace-match "(\n2\n)"))))))
    (ert-info (written)
      (gemini-companion-test-with-changes '(("a" "one  \ntwo\nthree\n4\n5\n"))
        (find-file "a")
        (buffer-enable-undo)
        (gemini-companion-test-writes "a" written session)
        (let ((left (gemini-companion-test-left)))
          (add-hook 'before-save-hook format nil t)
          (set-buffer-modified-p t)
          (save-buffer)
          (should-not (equal written (buffer-string)))
          (gemini-companion-changes-update-buffer)
          (should (eql left (gemini-companion-test-left)))
          (gemini-companion-test-walk 'gemini-companion-undo-changes)
          (should (equal (if (eq format #'delete-trailing-whitespace)
                             "one\ntwo\nthree\n4\n5\n"
                           "one  \ntwo\nthree\n4\n5\n")
                         (buffer-string)))
          (should-not (gemini-companion-test-left)))))))

;; The save overwrote the lines of the CLI without a question, and `u' took back what the
;; file had never kept.
(ert-deftest gemini-companion-changes-written-within-a-save-are-not-overwritten-unasked ()
  (dolist (place '((before-save-hook -50) (before-save-hook 50) (write-file-functions -50)))
    (dolist (anyway '(nil t))
      (ert-info ((format "%S, %S" place anyway))
        (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines))
          (find-file "a")
          (buffer-enable-undo)
          (setq gemini-companion-test-send #'ignore)
          (let* ((text (concat "one\n" (substring gemini-companion-test-lines 2)))
                 (mine (concat gemini-companion-test-lines "mine\n"))
                 (edit (gemini-companion-test-open "a" text 1 session))
                 (written nil)
                 (write (lambda ()
                          (unless written
                            ;; Emacs itself would unlock the file.
                            (call-process-region text nil "tee" nil nil nil "a")
                            (setq written t)
                            nil)))
                 ;; As by default: without it, Emacs may ask when it writes.
                 (create-lockfiles t)
                 (asked nil))
            (gemini-companion-proposal-offer edit nil)
            (goto-char (point-max))
            (insert "mine  \n")
            (add-hook 'before-save-hook #'delete-trailing-whitespace nil t)
            (add-hook (car place) write (cadr place) t)
            (cl-letf (((symbol-function 'yes-or-no-p)
                       (lambda (question) (push question asked) anyway)))
              (if anyway
                  (save-buffer)
                (should-error (save-buffer) :type 'user-error)))
            (should (equal '("a has changed since visited or saved.  Save anyway? ")
                           asked))
            (should (equal mine (buffer-string)))
            (should (equal (if anyway mine text) (gemini-companion-test-file-text "a")))
            (gemini-companion-reported-write session (expand-file-name "a") nil text)
            (gemini-companion-test-run-timers)
            (if anyway
                (progn
                  (should-not (gemini-companion-test-left))
                  ;; Nothing of it is left to undo.
                  (ignore-error user-error
                    (gemini-companion-test-undo-edit edit))
                  (should (equal mine (buffer-string))))
              (should (eql 1 (gemini-companion-test-left)))
              (gemini-companion-merge)
              (should (equal (concat text "mine\n") (buffer-string)))
              (save-buffer)
              (gemini-companion-test-undo-edit edit)
              (should (equal mine (buffer-string)))
              (should (equal mine (gemini-companion-test-file-text "a"))))))))))

;; Its change had no mark, was not walked, and was forgotten.
(ert-deftest gemini-companion-changes-follow-the-name-of-their-file ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    (rename-file "a" "b")
    (set-visited-file-name (expand-file-name "b") t t)
    (rename-buffer "a")
    (should (equal '(1 9) (gemini-companion-test-marked (current-buffer))))
    (should (eql 2 (gemini-companion-test-left)))
    (gemini-companion-test-walk 'gemini-companion-undo-changes)
    (should (equal gemini-companion-test-lines (buffer-string)))
    (save-buffer)
    (kill-buffer)))

;; The edit was said to be undone, as the buffer had not got its text.
(ert-deftest gemini-companion-changes-are-not-undone-in-text-from-before-the-write ()
  (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines))
    (find-file "a")
    (goto-char (point-max))
    (insert "mine\n")
    (let ((edit (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n"
                                              session 'reviewed)))
      (should (eq 'accepted (gemini-companion-changes-status edit)))
      (gemini-companion-merge)
      (should (eq 'accepted (gemini-companion-changes-status edit)))
      ;; The text of the buffer counts from then on.
      (gemini-companion-test-undo-edit edit)
      (should (eq 'undone (gemini-companion-changes-status edit)))
      (should (equal (concat gemini-companion-test-lines "mine\n") (buffer-string)))
      (set-buffer-modified-p nil))))

;;;; Kept edits, and memory

(defun gemini-companion-changes-test-unkeep (edit)
  "Let what is kept of EDIT be left, as the overview does.
Return the number of changes that are left."
  (let ((record (gemini-companion-changes-with-edit edit)))
    (dolist (decided (gemini-companion-changes-kept-and-undone record))
      (when (memq edit (gemini-companion-record-change-edits decided))
        (gemini-companion-step-unkeep-change record decided)))
    (gemini-companion-test-left)))

(ert-deftest gemini-companion-changes-of-an-edit-are-kept-and-unkept ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    (let ((other (gemini-companion-test-writes
                  "a" "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n" session)))
      (should (eql 3 (gemini-companion-test-left)))
      (goto-char (point-min))
      (gemini-companion-test-walk 'gemini-companion-next-change "k")
      (should (eql 2 (gemini-companion-test-left)))
      (gemini-companion-test-walk 'gemini-companion-keep-changes)
      (should-not (gemini-companion-test-left))
      ;; The user has typed since.
      (goto-char (point-max))
      (insert "mine\n")
      (should (eql 2 (gemini-companion-changes-test-unkeep edit)))
      (should (equal '(1 9) (gemini-companion-test-marked "a")))
      (should (eql 3 (gemini-companion-changes-test-unkeep other)))
      (gemini-companion-test-walk 'gemini-companion-undo-changes)
      (should (equal (concat gemini-companion-test-lines "mine\n")
                     (buffer-string))))))

;; Once the file had the text from before it again, the overview said "undone".
(ert-deftest gemini-companion-changes-of-an-edit-without-any-are-not-undone ()
  (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines))
    (let ((none (gemini-companion-test-writes "a" gemini-companion-test-lines session))
          (edit (gemini-companion-test-writes "a" "new\n" session)))
      (should (eq 'automatic (gemini-companion-changes-status none)))
      (gemini-companion-test-undo-edit edit)
      (should (eq 'automatic (gemini-companion-changes-status none))))))

(defmacro gemini-companion-changes-test-with-few-edits (files &rest body)
  "Evaluate BODY with FILES and marks, and with ten edits in the list of edits."
  (declare (indent 1) (debug t))
  `(let ((gemini-companion-edit-most 10))
     (gemini-companion-test-with-changes ,files ,@body)))

(ert-deftest gemini-companion-changes-reviewed-of-old-edits-are-forgotten ()
  (gemini-companion-changes-test-with-few-edits nil
    (gemini-companion-test-writes "left" "1\n" session)
    (gemini-companion-test-accepts "a" "1\n" session)
    (gemini-companion-test-accepts "b" "1\n" session)
    (dotimes (i 9)
      (gemini-companion-test-writes "c" (format "%d\n" i) session))
    (should (equal '("left" "b" "c")
                   (seq-filter (lambda (name)
                                 (gemini-companion-changes-of-file (file-truename name)))
                               '("left" "a" "b" "c"))))))

;; A file that a CLI wrote all day kept each edit in memory, with its texts.
(ert-deftest gemini-companion-changes-of-a-file-do-not-grow-by-reviewed-edits ()
  (gemini-companion-changes-test-with-few-edits `(("a" ,gemini-companion-test-lines))
    (let* ((text (concat "left\n" gemini-companion-test-lines))
           (left (gemini-companion-test-writes "a" text session))
           (record (gemini-companion-changes-of-file (file-truename "a"))))
      (dotimes (i 25)
        (setq text (format "%s%d\n" text i))
        (gemini-companion-test-accepts "a" text session))
      (should (= 11 (length (gemini-companion-changes-file-writes record))))
      (should (= 11 (length (gemini-companion-changes-file-edits record))))
      (should (= 11 (length (gemini-companion-record-hunks
                             (gemini-companion-changes-file-lines record)))))
      ;; What is left can be undone.
      (should (eql 1 (gemini-companion-test-left)))
      (gemini-companion-test-undo-edit left)
      (should (equal (string-remove-prefix "left\n" text)
                     (gemini-companion-text-bytes "a"))))))

(ert-deftest gemini-companion-changes-of-a-forgotten-edit-over-an-undone-one-are-recorded ()
  (gemini-companion-changes-test-with-few-edits `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-undo-edit
     (gemini-companion-test-writes "a" "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n" session))
    (let ((text "1\nTWO\n3\n4\n5\n6\n7\n8\n9\n")
          (record (gemini-companion-changes-of-file (file-truename "a"))))
      (dotimes (i 12)
        (gemini-companion-test-accepts "a" text session)
        (setq text (format "%s%d\n" text i)))
      (should-not (seq-difference
                   (gemini-companion-record-hunks
                    (gemini-companion-changes-file-lines record))
                   (gemini-companion-changes-hunks record)
                   #'eq)))))

;;;; Saving before and after, wherever the command is given

(defun gemini-companion-changes-test-undo-all (how)
  "Undo all changes of the file a, which the current buffer visits.
HOW is `here', `narrowed', `elsewhere' or `killed'.  Return its buffer."
  (let ((record (gemini-companion-changes-here)))
    (cl-flet ((undo-all ()
                (gemini-companion-decision-with "undo"
                  (gemini-companion-undo-decide
                   'undo
                   (list (cons record (gemini-companion-changes-update record)))))))
      (pcase how
        ('here (undo-all))
        ('narrowed (save-restriction
                     (narrow-to-region (point-min) (1+ (point-min)))
                     (undo-all)))
        ('elsewhere (with-temp-buffer (undo-all)))
        ('killed (let ((file buffer-file-name))
                   (set-buffer-modified-p nil)
                   (kill-buffer)
                   (with-temp-buffer (undo-all))
                   (find-file file))))
      (current-buffer))))

(defun gemini-companion-changes-test-undone-to (bytes how first mine)
  "Undo all changes of the file a, and check that it has BYTES, and none are left.
The current buffer visits it.  MINE is a function that edits it as the user; its
text is saved before the undo if FIRST is `save', and after it if that is
`undo'.  For HOW, see `gemini-companion-changes-test-undo-all'."
  (should (gemini-companion-test-left))
  (when (eq first 'save)
    (funcall mine)
    (save-buffer))
  (with-current-buffer (gemini-companion-changes-test-undo-all how)
    (when (eq first 'undo)
      (funcall mine))
    (save-buffer)
    (should (equal bytes (gemini-companion-text-bytes "a")))
    (gemini-companion-changes-update-buffer)
    (should-not (gemini-companion-test-left))
    ;; What the user types next is no change of the CLI.
    (goto-char (point-max))
    (insert "more\n")
    (gemini-companion-changes-update-buffer)
    (should-not (gemini-companion-test-left))
    (set-buffer-modified-p nil)))

(ert-deftest gemini-companion-changes-are-undone-before-and-after-a-save-alike ()
  (pcase-dolist
      (`(,name ,before ,writes ,mine ,after)
       `(("typed beside" "one\ntwo\nthree\n" ("one\nzwei\nthree\n")
          ,(lambda () (goto-char (point-max)) (insert "mine\n"))
          "one\ntwo\nthree\nmine\n")
         ("two edits" "one\ntwo\nthree\n" ("one\na1\nthree\n" "one\nb1\nthree\n")
          ,(lambda () (goto-char (point-min)) (insert "mine\n"))
          "mine\none\ntwo\nthree\n")
         ("CRLF" "one\r\ntwo\r\nthree\r\n" ("one\nzwei\nthree\n")
          ,(lambda () (goto-char (point-max)) (insert "mine\n"))
          "one\r\ntwo\r\nthree\r\nmine\r\n")
         ("byte order mark" "\357\273\277one\ntwo\n" ("one\nzwei\n")
          ,(lambda () (goto-char (point-max)) (insert "mine\n"))
          "\357\273\277one\ntwo\nmine\n")
         ("no last newline" "one\ntwo" ("one\nzwei\nthree")
          ,(lambda () (goto-char (point-min)) (insert "mine\n"))
          "mine\none\ntwo")
         ("last newline added" "one\ntwo" ("one\ntwo\n")
          ,(lambda () (goto-char (point-min)) (insert "mine\n"))
          "mine\none\ntwo")
         ("formatted" "one\ntwo\nthree\n" ("one\nzwei  \nthree\nnew  \n")
          ,(lambda ()
             (add-hook 'before-save-hook #'delete-trailing-whitespace nil t)
             (set-buffer-modified-p t))
          "one\ntwo\nthree\n")))
    (dolist (how '(here narrowed elsewhere killed))
      (dolist (first '(save undo))
        (ert-info ((format "%s, %s, %s first" name how first))
          (gemini-companion-test-with-changes nil
            (unwind-protect
                (let ((require-final-newline nil)
                      (mode-require-final-newline nil))
                  (gemini-companion-test-write "a" before)
                  (find-file "a")
                  (buffer-enable-undo)
                  (dolist (text writes)
                    (setq gemini-companion-test-send
                          (lambda (edit)
                            (gemini-companion-changes-test-as-before
                             before (gemini-companion-edit-after edit))))
                    (gemini-companion-test-writes "a" text session))
                  (gemini-companion-changes-test-undone-to after how first mine))
              (gemini-companion-part-stop 'decision))))))))

(defun gemini-companion-changes-test-as-before (before text)
  "Write TEXT to the file a with the mark and the line ends of BEFORE."
  (gemini-companion-test-write
   "a" (concat (and (string-prefix-p "\357\273\277" before) "\357\273\277")
               (if (string-search "\r\n" before)
                   (string-replace "\n" "\r\n" text)
                 text))))

;;;; Files that others write

(defun gemini-companion-changes-test-written (file text seconds)
  "Write TEXT to FILE as another program, SECONDS later than now."
  (write-region text nil file nil 'silent)
  (set-file-times file (time-add nil seconds)))

(defmacro gemini-companion-changes-test-compared (occasion &rest body)
  "Let another program take back an edit, and run BODY after OCCASION, a form.
The file is a, with 9 lines, of which the CLI has changed the second one."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-in-changed "1\nzwei\n3\n4\n5\n6\n7\n8\n9\n"
     (should (eql 1 (gemini-companion-test-left)))
     (gemini-companion-changes-test-written "a" gemini-companion-test-lines 10)
     ,occasion
     ,@body))

(ert-deftest gemini-companion-changes-follow-other-programs-at-the-end-of-a-turn ()
  (gemini-companion-changes-test-compared
      (run-hook-with-args 'gemini-companion-state-functions session 'ready)
    (should (equal gemini-companion-test-lines (buffer-string)))
    (should-not (gemini-companion-test-left))
    ;; Again, as if that was rewound.
    (gemini-companion-changes-test-written
     "a" (string-replace "2" "zwei" gemini-companion-test-lines) 20)
    (run-hook-with-args 'gemini-companion-state-functions session 'ready)
    (should (eql 1 (gemini-companion-test-left)))))

(ert-deftest gemini-companion-changes-follow-other-programs-when-a-window-is-selected ()
  (gemini-companion-changes-test-compared
      (progn
        (switch-to-buffer (current-buffer))
        (run-hook-with-args 'gemini-companion-watch-turned-functions
                            (current-buffer)))
    (should (equal gemini-companion-test-lines (buffer-string)))
    (should-not (gemini-companion-test-left))))

(ert-deftest gemini-companion-changes-follow-other-programs-in-files-not-visited ()
  (gemini-companion-changes-test-compared
      (progn
        (kill-buffer)
        (run-hook-with-args 'gemini-companion-watch-turned-functions nil))
    (should-not (gemini-companion-test-left))))

(ert-deftest gemini-companion-changes-report-once-that-unsaved-text-is-stale ()
  (gemini-companion-changes-test-compared
      (progn
        ;; Emacs would ask whether to edit a file that has changed.
        (set-visited-file-modtime)
        (goto-char (point-max))
        (insert "mine\n")
        (gemini-companion-changes-test-written "a" "1\n" 20))
    (let ((message (lambda ()
                     (ert-with-message-capture all
                       (run-hook-with-args 'gemini-companion-watch-turned-functions nil)
                       all))))
      (should (string-search "unsaved changes in Emacs" (funcall message)))
      (should (string-suffix-p "mine\n" (buffer-string)))
      (should (equal "" (funcall message))))
    (set-buffer-modified-p nil)))

;;;; Buffers that show other lines

(ert-deftest gemini-companion-changes-in-a-buffer-of-another-coding-have-no-marks ()
  (pcase-dolist (`(,before ,after ,coding)
                 '(("-*- coding: latin-1 -*-\ncaf\u00e9\n"
                    "-*- coding: latin-1 -*-\nth\u00e9\n" iso-latin-1-unix)
                   ("one\rtwo\rthree\r" "one\rzw\u00f6lf\rthree\r" utf-8-mac)))
    (dolist (whole '(nil t))
      (gemini-companion-test-with-changes '(("a" ""))
        (gemini-companion-test-write "a" before)
        (find-file "a")
        (let* ((edit (gemini-companion-test-writes "a" after session))
               (record (gemini-companion-changes-of-file (file-truename "a")))
               (known (gemini-companion-changes-update record))
               (reason (format "is shown in %s, and has no marks" coding)))
          (should (eq coding buffer-file-coding-system))
          (should-not (gemini-companion-test-marked "a"))
          (should (eql 1 (gemini-companion-test-left)))
          (should (equal reason (gemini-companion-changes-unmarked-reason record)))
          (should (string-search reason
                                 (gemini-companion-test-refusal
                                   (gemini-companion-next-change))))
          ;; The text of the buffer is not that of the file.
          (goto-char (point-max))
          (insert "mine\n")
          (should (string-search "has unsaved changes; save them first"
                                 (gemini-companion-test-refusal
                                   (if whole
                                       (gemini-companion-test-undo-edit edit)
                                     (gemini-companion-test-undo record known)))))
          (primitive-undo 1 buffer-undo-list)
          (set-buffer-modified-p nil)
          (if whole
              (gemini-companion-test-undo-edit edit)
            (gemini-companion-test-undo
             record (gemini-companion-changes-update record)))
          (should (equal (encode-coding-string before 'utf-8-unix)
                         (gemini-companion-text-bytes "a")))
          (should-not (gemini-companion-changes-update record))
          (should-not (buffer-modified-p)))))))

;;;; Remote files

(ert-deftest gemini-companion-changes-of-a-remote-file-are-judged-by-its-new-text ()
  (gemini-companion-test-needs-add-on 'remote)
  (gemini-companion-test-with-changes '(("a" "one\n"))
    (let* ((copy (expand-file-name "a"))
           (hosts '(("/ssh:far:" :state "connected")))
           (gemini-companion-remote-names-hosts hosts)
           (gemini-companion-remote-names-copies
            `(("/ssh:far:" . ,(directory-file-name default-directory))))
           (inhibit-message t))
      (mapc #'gemini-companion-part-start '(revert changes))
      (with-temp-buffer
        (insert "one\n")
        (setq buffer-file-name "/ssh:far:/a"
              buffer-file-truename buffer-file-name)
        (set-file-times copy 1000)
        (set-visited-file-modtime (time-convert 1000 'list))
        (set-buffer-modified-p nil)
        (gemini-companion-test-rewrite copy "two\n")
        ;; Nothing is reverted while the user types the name of a command.
        (gemini-companion-reported-write session copy "one\n" "two\n")
        (should (equal '(unreviewed) (mapcar #'gemini-companion-edit-status
                                             (gemini-companion-edits))))
        ;; It disconnects the host.
        (setq gemini-companion-remote-names-hosts nil)
        (gemini-companion-revert-now copy)
        (should (equal "one\n" (buffer-string)))
        (setq gemini-companion-remote-names-hosts hosts)
        (run-hooks 'gemini-companion-names-hosts-hook)
        (should (equal "two\n" (buffer-string)))
        (should (equal '(1) (gemini-companion-test-marked (current-buffer))))
        (should (equal '(unreviewed) (mapcar #'gemini-companion-edit-status
                                             (gemini-companion-edits))))
        (setq buffer-file-name nil)))))

;;; gemini-companion-changes-test.el ends here
