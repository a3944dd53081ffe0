;;; gemini-companion-undo-test.el --- Tests of reverting edits  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-text-test-helper)
(require 'gemini-companion-undo)

(defun gemini-companion-undo-test-refuses (edit reason)
  "Assert that EDIT is not reverted for REASON."
  (gemini-companion-test-answering #'ignore
    (should (string-search
             reason (gemini-companion-test-refusal
                     (gemini-companion-test-undo-edit edit))))))

(defun gemini-companion-undo-test-hunk (edit number)
  "Undo the hunk NUMBER, from 0 on, of EDIT in the record of its file, as keys do."
  (pcase-let ((`(,record . ,hunks) (gemini-companion-changes-of edit)))
    (gemini-companion-test-undo
     record
     (gemini-companion-record-without
      (gemini-companion-changes-seen-look
       (gemini-companion-changes-seen record (gemini-companion-changes-buffer record)))
      (list (nth number hunks))))))

(defmacro gemini-companion-undo-test-with (files &rest body)
  "Run BODY in a directory with FILES."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-changes ,files ,@body))

(defun gemini-companion-undo-test-status (edit)
  "Return the status of EDIT after a look at its file."
  (gemini-companion-changes-status edit))

(defun gemini-companion-undo-test-written (file text session)
  "Accept TEXT for FILE, of SESSION, notice that it is written, return the edit."
  (let ((edit (gemini-companion-test-accept file text 1 session)))
    (gemini-companion-attribution-detect-write edit)
    (should-not (gemini-companion-attribution-awaited-p edit))
    edit))

(defun gemini-companion-undo-test-accept (file text session)
  "Accept TEXT for FILE, of SESSION, revert its buffer, and return the edit."
  (prog1 (gemini-companion-test-accept file text 1 session)
    (gemini-companion-revert-now (expand-file-name file))
    (gemini-companion-reported-write session (expand-file-name file) nil text)))

(defconst gemini-companion-undo-test-lines "1\n2\n3\n4\n5\n6\n7\n8\n9\n")

(defmacro gemini-companion-undo-test-in (text &rest body)
  "Run BODY in the buffer of a, with lines 1 to 9 of which `edit' has made TEXT."
  (declare (indent 1) (debug t))
  `(gemini-companion-undo-test-with
       `(("a" ,gemini-companion-undo-test-lines))
     (find-file "a")
     (let ((edit (gemini-companion-undo-test-accept "a" ,text session)))
       (ignore edit)
       ,@body)))

(ert-deftest gemini-companion-undo-gives-the-same-bytes ()
  (pcase-dolist
      (`(,name . ,before)
       `(("a" . "one\r\ntwo\nthree\r\n") ("a" . "no end") ("a" . "") ("a" . "\0\300\264")
         ("a" . "\357\273\277mark\n\r\nno end") ("a" . "\303\251\351\n")
         ("a" . "-*- coding: latin-1 -*-\r\ncaf\351\n") ("a" . "\377\376o\0\n\0")
         ;; These are not what their names say.
         ,@(mapcar (lambda (end) (cons (concat "a" end) "1\ncaf\351\r\n"))
                   '(".gz" ".Z" ".xz" ".bz2" ".zst" ".tgz" ".svgz" ".gpg"))))
    (ert-info ((format "%s %S" name before))
      (gemini-companion-undo-test-with nil
        (let ((file (expand-file-name name))
              (require-final-newline t))
          (gemini-companion-test-write file before)
          (set-file-modes file #o750)
          (let ((buffer (and (equal name "a") (find-file-noselect file)))
                (edit (let ((file-name-handler-alist nil))
                        (gemini-companion-test-accept file "new\ncaf\u00e9\n"))))
            (gemini-companion-test-undo-edit edit)
            (should (equal before (gemini-companion-text-bytes file)))
            (should (= #o750 (file-modes file)))
            (when buffer
              (should (verify-visited-file-modtime buffer))
              (should-not (buffer-modified-p buffer)))
            (should (eq 'undone (gemini-companion-changes-status edit)))
            (gemini-companion-undo-test-refuses edit "is already undone")))))))

(ert-deftest gemini-companion-undo-keeps-the-line-ends-of-a-reported-file ()
  (pcase-dolist (`(,written ,reported . ,expected)
                 '(("\357\273\277new\r\n" "é old\n"
                    . "\357\273\277\303\251 old\r\n")
                   ("new\r\n" "as it was\r\n" . "as it was\r\n")
                   ("new\n" "a lone\rreturn\n" . "a lone\rreturn\n")))
    (ert-info ((format "%S" reported))
      (gemini-companion-undo-test-with '(("a" ""))
        (let ((file (expand-file-name "a")))
          (gemini-companion-test-write file written)
          (gemini-companion-reported-write session file reported "new\n")
          (gemini-companion-test-answering #'always
            (gemini-companion-test-undo-edit (car (gemini-companion-edits))))
          (should (equal expected (gemini-companion-text-bytes file))))))))

(ert-deftest gemini-companion-undo-refuses-to-revert-what-would-lose-text ()
  (gemini-companion-undo-test-with '(("a" "old\n2\n") ("b" "old\n") ("c" "old\n"))
    (let ((a (gemini-companion-undo-test-written "a" "new\n2\n" session))
          (born (gemini-companion-test-accept "born" "new\n" 2))
          (b (gemini-companion-test-open "b" "new\n" 3))
          (c (gemini-companion-test-open "c" "new\n" 4)))
      (gemini-companion-edit-reject b)
      (gemini-companion-test-write "born" "newer\n")
      (gemini-companion-undo-test-refuses born "changed since")
      (delete-file "born")
      (gemini-companion-undo-test-refuses born "is already deleted")
      (make-directory "born")
      (gemini-companion-undo-test-refuses born "is not a regular file")
      (gemini-companion-undo-test-refuses b "was rejected")
      (gemini-companion-undo-test-refuses c "awaits an answer")
      (setq gemini-companion-test-send #'ignore)
      (gemini-companion-edit-accept c)
      (gemini-companion-undo-test-refuses c "is not written yet")
      (gemini-companion-test-write "a" "newer\n2\n")
      (gemini-companion-undo-test-refuses a "line 1 has changed since")
      (gemini-companion-test-write "a" "new\n2\n")
      (rename-file "a" "elsewhere")
      (make-symbolic-link "elsewhere" "a")
      (gemini-companion-undo-test-refuses a "symbolic links")
      (rename-file "elsewhere" "a" 'replace)
      (with-current-buffer (find-file-noselect (expand-file-name "a"))
        (insert "unsaved")
        (gemini-companion-undo-test-refuses a "line 1 has changed since")
        (should (equal "unsavednew\n2\n" (buffer-string)))))))

(ert-deftest gemini-companion-undo-keeps-the-file-if-the-disk-is-full ()
  (let ((disk (make-temp-file "disk-" t)))
    (skip-unless (eql 0 (ignore-errors
                          (call-process "mount" nil nil nil "-t" "tmpfs"
                                        "-o" "size=256k" "tmpfs" disk))))
    (unwind-protect
        (gemini-companion-undo-test-with nil
          (let* ((file (expand-file-name "a" (file-truename disk)))
                 (before (apply #'concat (make-list 10000 "before é\n")))
                 (after (concat (make-string 3000 ?x) "\nnew\n")))
            (gemini-companion-test-write file before)
            (add-name-to-file file (concat file "-link"))
            (let ((edit (gemini-companion-test-accept file after)))
              (with-current-buffer (find-file-noselect file)
                (call-process "sh" nil nil nil "-c"
                              (format "cat /dev/zero > %s/filler" disk))
                (should (string-search
                         "No space left"
                         (gemini-companion-test-refusal
                           (gemini-companion-test-undo-edit edit))))
                (should (equal after (gemini-companion-test-file-text file)))
                (should (equal after (gemini-companion-test-file-text
                                      (concat file "-link"))))
                (should (equal after (buffer-string)))
                (should (verify-visited-file-modtime))
                (should-not (buffer-modified-p))
                (should (eq 'accepted (gemini-companion-changes-status edit)))
                (delete-file (expand-file-name "filler" disk))
                (gemini-companion-test-undo-edit edit)
                (should (equal before (gemini-companion-test-file-text
                                       (concat file "-link"))))
                (should (equal before (buffer-string)))
                (kill-buffer)))))
      (call-process "umount" nil nil nil disk)
      (delete-directory disk))))

(ert-deftest gemini-companion-undo-in-unsaved-text-saves-nothing ()
  (pcase-dolist (`(,then ,status ,text)
                 '((save-buffer undone "1\n2\n3\n4\n5!\n6\n7\n8\n9\n")
                   (undo accepted nil)
                   ((lambda ()
                      (undo)
                      (undo-boundary)
                      (undo-redo 1))
                    undone nil)
                   ((lambda ()
                      (undo)
                      (save-buffer))
                    accepted "one\n2\n3\n4\n5!\n6\n7\n8\nnine\n")))
    (let ((written "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"))
      (gemini-companion-undo-test-in written
        (buffer-enable-undo)
        (goto-char (point-min))
        (search-forward "5")
        (insert "!")
        (gemini-companion-test-undo-edit edit)
        (should (equal "1\n2\n3\n4\n5!\n6\n7\n8\n9\n" (buffer-string)))
        (should (equal written (gemini-companion-test-file-text "a")))
        (should (eq 'undone (gemini-companion-undo-test-status edit)))
        (should-error (gemini-companion-test-undo-edit edit) :type 'user-error)
        (funcall then)
        (should (eq status (gemini-companion-undo-test-status edit)))
        (should (equal (or text written)
                       (gemini-companion-test-file-text "a")))))))

;; Emacs refused to undo hidden text, after the record had the change again: the next
;; undo left the text as it was.
(ert-deftest gemini-companion-undo-of-hidden-text-is-taken-back ()
  (gemini-companion-undo-test-in "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    (let ((text (buffer-string)))
      (buffer-enable-undo)
      (gemini-companion-test-undo-edit edit)
      (should (equal gemini-companion-undo-test-lines (buffer-string)))
      (narrow-to-region (point-min) 4)
      (undo-boundary)
      (undo)
      (run-hooks 'post-command-hook)
      (should (equal text (buffer-string)))
      (should (equal text (gemini-companion-test-file-text "a")))
      (should (eq 'accepted (gemini-companion-undo-test-status edit))))))

(ert-deftest gemini-companion-undo-that-is-not-saved-is-forgotten ()
  (dolist (drop (list (lambda ()
                        (set-buffer-modified-p nil)
                        (kill-buffer))
                      (lambda () (revert-buffer t t))
                      (lambda () (write-file "other"))))
    (gemini-companion-undo-test-in "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
      (gemini-companion-undo-test-hunk edit 0)
      (forward-line 2)
      (insert "mine\n")
      (gemini-companion-undo-test-hunk edit 1)
      (gemini-companion-test-undo-edit edit)
      (should (eq 'undone (gemini-companion-undo-test-status edit)))
      ;; Killing a clone drops nothing.
      (kill-buffer (clone-indirect-buffer "clone" nil))
      (should (eq 'undone (gemini-companion-undo-test-status edit)))
      (funcall drop)
      (should (eq 'accepted (gemini-companion-undo-test-status edit))))))

(ert-deftest gemini-companion-undo-is-taken-back-by-an-undo-of-the-user ()
  (gemini-companion-undo-test-in "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    ;; A later edit of the file has not written that again.
    (gemini-companion-undo-test-accept
     "a" "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n" session)
    (let ((text (buffer-string)))
      (buffer-enable-undo)
      (dolist (undo (list (lambda () (gemini-companion-undo-test-hunk edit 0))
                          (lambda () (gemini-companion-test-undo-edit edit))))
        (funcall undo)
        (undo-boundary)
        (undo)
        (save-buffer)
        (should (equal text (gemini-companion-test-file-text "a")))
        (should (eq 'accepted (gemini-companion-undo-test-status edit))))
      ;; A hunk that was undone before all of it was reverted is not back.
      (gemini-companion-undo-test-hunk edit 0)
      (gemini-companion-test-undo-edit edit)
      (undo-boundary)
      (undo)
      (save-buffer)
      (should (eq 'accepted (gemini-companion-undo-test-status edit)))
      ;; It is of the later edit if that has written it again.
      (gemini-companion-test-undo-edit edit)
      (gemini-companion-state-report session 'prompt "Again")
      (gemini-companion-undo-test-accept "a" text session)
      (goto-char (point-max))
      (insert "mine\n")
      (save-buffer)
      (should (eq 'undone (gemini-companion-undo-test-status edit))))))

;; Each comparison takes milliseconds.
(ert-deftest gemini-companion-undo-of-the-last-hunk-leaves-what-is-there-again ()
  (dolist (unsaved '(nil t))
    (gemini-companion-undo-test-with '(("a" "1\n2\n3\n4\n5\n"))
      (find-file "a")
      (pcase-let* ((write (lambda (text)
                            (gemini-companion-undo-test-write
                             "a" (gemini-companion-edit-after
                                  (gemini-companion-test-accept "a" text 1 session)))
                            (gemini-companion-revert-now (expand-file-name "a"))))
                   (edit (progn (funcall write "one\n2\n3\n4\nfive\n")
                                (car (gemini-companion-edits)))))
        (gemini-companion-undo-test-hunk edit 0)
        (funcall write "one\n2\n3\n4\nfive\n")
        (when unsaved
          (goto-char (point-max))
          (insert "6\n"))
        (gemini-companion-undo-test-hunk edit 1)
        (should (equal (if unsaved "one\n2\n3\n4\n5\n6\n" "one\n2\n3\n4\n5\n")
                       (buffer-string)))
        (set-buffer-modified-p nil)))))

(ert-deftest gemini-companion-undo-looks-at-nothing-at-a-save ()
  (gemini-companion-undo-test-in "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    (dotimes (number 2)
      (gemini-companion-undo-test-hunk edit number))
    (goto-char (point-max))
    (insert "mine\n")
    (cl-letf (((symbol-function 'gemini-companion-record-look)
               (lambda (&rest _) (ert-fail "Compared"))))
      (save-buffer)
      (kill-buffer))
    (should (eq 'undone (gemini-companion-undo-test-status edit)))
    ;; Nor at a look if nothing has changed since.
    (cl-letf (((symbol-function 'gemini-companion-record-look)
               (lambda (&rest _) (ert-fail "Compared"))))
      (should (eq 'undone (gemini-companion-undo-test-status edit))))))

(ert-deftest gemini-companion-undo-of-lines-that-others-changed-changes-nothing ()
  (gemini-companion-undo-test-with '(("a" "1\n2\n3\n"))
    (let ((edit (gemini-companion-undo-test-accept "a" "1\ntwo\n3\n" session)))
      ;; Its buffer does not follow another program.
      (find-file-noselect "a")
      (gemini-companion-test-write "a" "0\n1\nmine\n3\n")
      (should (equal "a: line 3 has changed since; undo its changes one by one"
                     (gemini-companion-test-refusal
                       (gemini-companion-test-undo-edit edit))))
      (should (equal "0\n1\nmine\n3\n" (gemini-companion-test-file-text "a"))))))

(ert-deftest gemini-companion-undo-of-a-file-not-in-utf-8-is-by-its-bytes ()
  (pcase-dolist (`(,client ,proposed ,written)
                 '(("gemini" "caf\uFFFD\ntwo\n" "caf\357\277\275\ntwo\n")
                   ("qwen" "caf\u00e9\ntwo\n" "caf\351\ntwo\n")))
    (ert-info (client)
      (gemini-companion-test-with-changes '(("a" ""))
        (gemini-companion-test-write "a" "caf\351\n2\n")
        (find-file "a")
        (setq gemini-companion-test-send
              (lambda (_) (gemini-companion-test-write "a" written)))
        (let ((edit (gemini-companion-test-writes
                     "a" proposed (gemini-companion-test-session-like
                                   session :client client))))
          (should-not (gemini-companion-test-left))
          (gemini-companion-test-write "a" (concat written "mine\n"))
          (should (equal "a is not text in UTF-8 and has changed since; the text before is \
in *gemini before: a*"
                         (gemini-companion-test-refusal
                          (gemini-companion-test-undo-edit edit))))
          (should (equal (concat written "mine\n") (gemini-companion-text-bytes "a")))
          (with-current-buffer "*gemini before: a*"
            (should (equal "café\n2\n" (buffer-string)))
            (kill-buffer))
          (gemini-companion-test-write "a" written)
          (gemini-companion-test-undo-edit edit)
          (should (equal "caf\351\n2\n" (gemini-companion-text-bytes "a")))
          (should (eq 'undone (gemini-companion-changes-status edit))))))))

(ert-deftest gemini-companion-undo-keeps-mark-line-ends-and-bytes ()
  (pcase-dolist
      (`(,before ,proposed ,now ,after ,client ,written)
       '(("1\r\n2\r\n3\r\n4\r\n5\r\n" "one\n2\n3\n4\nfive\n"
          "one\r\n2\r\nmine\r\n4\r\nfive\r\n" "1\r\n2\r\nmine\r\n4\r\n5\r\n")
         ("1\n2\n3\n4\n5" "one\n2\n3\n4\nfive"
          "one\n2\nmine\n4\nfive\n" "1\n2\nmine\n4\n5"
          nil "one\n2\n3\n4\nfive")
         ;; The user has added empty lines.
         ("1\n2\n3\n" "one\n2\n3\n" "one\n2\n3\n\n\n" "1\n2\n3\n\n\n"
          nil "one\n2\n3\n")
         ("1\r\n2\r\n3\r\n4\r\n5" "one\n2\n3\n4\nfive"
          "one\r\n2\r\nmine\r\n4\r\nfive\r\n" "1\r\n2\r\nmine\r\n4\r\n5"
          nil "one\r\n2\r\n3\r\n4\r\nfive")
         ("\357\273\2771\n\303\251\n3\n4\n5\n" "one\n\u00e9\n3\n4\nfive\n"
          "\357\273\277one\n\303\251\n\303\266\n4\nfive\n"
          "\357\273\2771\n\303\251\n\303\266\n4\n5\n"
          nil "\357\273\277one\n\303\251\n3\n4\nfive\n")
         ;; The CLI has dropped the mark.
         ("\357\273\2771\n2\n3\n4\n5\n" "one\n2\n3\n4\nfive\n"
          "one\n2\nmine\n4\nfive\n" "1\n2\nmine\n4\n5\n")
         ("\357\273\277" "one\n" "one\nmine\n" "mine\n" nil "one\n")
         ;; It keeps the mark; the user did not.
         ("\357\273\2771\n2\n3\n4\n5\n" "one\n2\n3\n4\nfive\n"
          "one\n2\nmine\n4\nfive\n" "1\n2\nmine\n4\n5\n" "qwen"
          "\357\273\277one\n2\n3\n4\nfive\n")
         ("1\r\n2\n3\n4\n5\r\n" "one\r\n2\n3\n4\nfive\r\n"
          "one\r\n2\nmine\n4\nfive\r\n" "1\r\n2\nmine\n4\n5\r\n" "copilot")))
    (ert-info ((format "%S" now))
      (dolist (whole '(nil t))
        (gemini-companion-undo-test-with '(("a" ""))
          (gemini-companion-test-write "a" before)
          ;; The CLI has kept the line ends of the file.
          (setq gemini-companion-test-send
                (lambda (_)
                  (gemini-companion-test-write
                   "a" (or written (string-replace "mine" "3" now)))))
          (let ((edit (cl-letf (((symbol-function 'yes-or-no-p) #'always))
                        (gemini-companion-undo-test-written
                         "a" proposed (gemini-companion-test-session-like
                                       session :client (or client "gemini"))))))
            (gemini-companion-test-write "a" now)
            (gemini-companion-test-answering #'always
              (if whole
                  (gemini-companion-test-undo-edit edit)
                (dotimes (number (length (cdr (gemini-companion-changes-of edit))))
                  (gemini-companion-undo-test-hunk edit number))))
            (should (equal after (gemini-companion-text-bytes "a")))))))))

(defun gemini-companion-undo-test-undone
    (coding before proposed undone &optional client)
  "Write PROPOSED over the text BEFORE in CODING, as CLIENT does.
By default, that is Qwen Code.
Undo the first hunk in the file, and then with unsaved text in its buffer,
which is saved then.  Assert that each has the text UNDONE in CODING."
  (dolist (unsaved '(nil t))
    (gemini-companion-undo-test-with '(("a" ""))
      (let ((write (lambda (text)
                     (gemini-companion-test-write
                      "a" (encode-coding-string text coding)))))
        (funcall write before)
        (find-file "a")
        (setq gemini-companion-test-send (lambda (_) (funcall write proposed)))
        (let ((edit (gemini-companion-undo-test-written
                     "a" proposed (gemini-companion-test-session-like
                                   session :client (or client "qwen")))))
          (gemini-companion-revert-now (expand-file-name "a"))
          (goto-char (point-max))
          (when unsaved
            (insert "mine\n"))
          (gemini-companion-undo-test-hunk edit 0)
          (should (eq unsaved (buffer-modified-p)))
          (save-buffer)
          (should (equal (encode-coding-string
                          (concat undone (and unsaved "mine\n")) coding)
                         (gemini-companion-text-bytes "a"))))))))

;; The mark was lost, or there were two of them.
(ert-deftest gemini-companion-undo-in-line-1-leaves-the-byte-order-mark ()
  (pcase-dolist
      (`(,before ,proposed ,undone)
       '(("1\n2\n3\n4\n" "new\n1\n2\n3\nfour\n" "1\n2\n3\nfour\n")
         ("1\n2\n3\n4\n" "2\n3\nfour\n" "1\n2\n3\nfour\n")
         ("1\n2\n3\n4\n" "one\n2\n3\nfour\n" "1\n2\n3\nfour\n")
         ("1\n2\n3\n4\n" "a\nb\n2\n3\nfour\n" "1\n2\n3\nfour\n")))
    (dolist (coding '(utf-8-with-signature-unix utf-8-with-signature-dos
                      utf-8-unix utf-8-dos))
      (ert-info ((format "%s %S" coding proposed))
        (gemini-companion-undo-test-undone coding before proposed undone)))
    ;; Its proposal has no mark, and the file may have it all the same.
    (gemini-companion-undo-test-undone 'utf-8-with-signature-unix
                                          before proposed undone "gemini")))

;; The first hunk counts as undone, as no line is left of what it did.
(ert-deftest gemini-companion-undo-of-a-hunk-leaves-another-whose-lines-are-gone ()
  (gemini-companion-undo-test-with '(("a" "1\n2\n3\n4\n5\n"))
    (find-file "a")
    (gemini-companion-undo-test-accept "a" "1\nnew\n2\n3\n4\nx\n" session)
    (let ((edit (gemini-companion-undo-test-accept "a" "1\n2\n3\n4\nxx\n" session)))
      (goto-char (point-max))
      (insert "mine\n")
      (save-buffer)
      (gemini-companion-undo-test-hunk edit 1)
      (should (equal "1\n2\n3\n4\nx\nmine\n" (buffer-string))))))

;;;; Random turns

(defvar gemini-companion-undo-test-coding 'utf-8-unix
  "Coding system of the file, with its line ends.")

(defun gemini-companion-undo-test-write (file text)
  "Write TEXT to FILE as a CLI does, in the same coding system."
  (gemini-companion-test-write
   file (encode-coding-string text gemini-companion-undo-test-coding)))

(defun gemini-companion-undo-test-merge (mine base theirs)
  "Return the merge of MINE and THEIRS by diff3, from BASE, or nil.
The last newline is that of the side that has changed it."
  (pcase-dolist (`(,name ,text) `(("m" ,mine) ("b" ,base) ("t" ,theirs)))
    (gemini-companion-test-write
     (concat "diff3/" name)
     (if (string-match-p "[^\n]\\'" text) (concat text "\n") text)))
  (with-temp-buffer
    (when (eql 0 (call-process "diff3" nil t nil "-m" "-E"
                               "diff3/m" "diff3/b" "diff3/t"))
      (let ((open-p (apply-partially #'string-match-p "[^\n]\\'")))
        (if (if (eq (null (funcall open-p mine)) (null (funcall open-p base)))
                (funcall open-p theirs)
              (funcall open-p mine))
            (string-remove-suffix "\n" (buffer-string))
          (buffer-string))))))

(defun gemini-companion-undo-test-type ()
  "Edit some lines of the current buffer as a user does."
  (goto-char (point-min))
  (while (not (eobp))
    (let* ((end (min (point-max) (line-beginning-position 2)))
           (line (buffer-substring (point) end))
           (new (gemini-companion-test-edited-at-random line)))
      (if (equal line new)
          (goto-char end)
        (delete-region (point) end)
        (insert new)))))

(defun gemini-companion-undo-test-unique (text)
  "Return the lines of TEXT that no other line equals, a list."
  (seq-filter (lambda (line) (string-match-p "[0-9]" line))
              (split-string text "[\n ]*\n" t)))

(defun gemini-companion-undo-test-others-stay-p (now base undone result)
  "Return non-nil if RESULT is the text NOW with UNDONE in place of BASE.
That is so if all lines of others stay, and none that was undone."
  (let ((now (gemini-companion-undo-test-unique now))
        (base (gemini-companion-undo-test-unique base))
        (undone (gemini-companion-undo-test-unique undone))
        (result (gemini-companion-undo-test-unique result)))
    (and (null (seq-difference (seq-difference now base) result))
         (null (seq-intersection (seq-difference base undone) result))
         (null (seq-difference result (append now undone))))))

(defun gemini-companion-undo-test-revert (edit)
  "Undo EDIT as the merge program does, or not at all.
Where that has a conflict, the lines of others stay, or it is refused."
  (let* ((buffer (get-file-buffer "a"))
         (state (lambda ()
                  (list (gemini-companion-test-file-text "a")
                        (gemini-companion-text-of-buffer buffer)
                        (buffer-modified-p buffer))))
         (was (funcall state))
         (base (gemini-companion-edit-after edit))
         (undone (progn
                   (gemini-companion-test-write
                    "before" (gemini-companion-edit-bytes-before edit))
                   (gemini-companion-test-file-text "before")))
         (now (if (nth 2 was) (nth 1 was) (nth 0 was)))
         (merged (gemini-companion-undo-test-merge now base undone))
         (problem (condition-case problem
                      (gemini-companion-test-answering #'ignore
                        (ignore (gemini-companion-test-undo-edit edit)))
                    (user-error (error-message-string problem)))))
    (if problem
        (progn
          (should (equal was (funcall state)))
          (or (and (string-search "merges them first" problem) 'unmerged)
              (and (string-match-p "already undone\\|not changed by" problem) 'undone)
              (and (equal "Not undone" problem) 'refused)
              (and (string-match-p "line [0-9]+ has changed" problem)
                   (or (null merged)
                       ;; A newline at the end that another line has by now.
                       (equal (string-remove-suffix "\n" base)
                              (string-remove-suffix "\n" undone)))
                   'refused)
              (ert-fail (list problem merged was base undone))))
      (pcase-let* ((`(,file ,text ,modified) (funcall state)))
        ;; The undo may have left the text of the file.
        (should (or (eq modified (nth 2 was))
                    (and (null modified) (equal file text))))
        (if modified
            (should (equal file (nth 0 was)))
          (should (equal file text)))
        ;; Of lines that are alike, the record may take others than the merge; and
        ;; a line of an earlier edit that was undone as well does not come back.
        (unless (or (and merged
                         (equal (gemini-companion-undo-test-unique merged)
                                (gemini-companion-undo-test-unique text)))
                    (gemini-companion-undo-test-others-stay-p now base undone text))
          (ert-fail (list now base undone text merged))))
      'undone)))

(defun gemini-companion-undo-test-step (session)
  "Do something by chance in the current buffer, of the file that SESSION edits.
Return what became of a revert."
  (let* ((file buffer-file-name)
         (edits (seq-remove #'gemini-companion-undo-unwritten
                            (gemini-companion-edits))))
    (if (= 0 (random 3))
        (narrow-to-region (1+ (random (point-max))) (1+ (random (point-max))))
      (widen))
    (pcase (random 10)
      ;; The CLI writes.
      ((or 0 1)
       (gemini-companion-undo-test-write
        file (gemini-companion-edit-after
              (gemini-companion-test-accept
               file (concat (gemini-companion-test-edited-at-random
                             (gemini-companion-test-file-text file))
                            (if (= 0 (random 10))
                                "x"
                              (seq-random-elt '("x\n" "\n" "é \n"))))
               1 session))))
      ;; So does another program, or the user with and without saving.
      (2 (gemini-companion-undo-test-write
          file (gemini-companion-test-edited-at-random
                (gemini-companion-test-file-text file))))
      (3 (unless (gemini-companion-revert-blocked-reason (current-buffer))
           (gemini-companion-undo-test-type)
           (save-buffer)))
      (4 (gemini-companion-undo-test-type))
      (5 (ignore-errors
           (undo-boundary)
           (undo)))
      (6 (unless (or (buffer-modified-p)
                     (gemini-companion-revert-blocked-reason (current-buffer)))
           (revert-buffer t t)))
      ;; A turn, the newest one first.
      (7 (dolist (edit (reverse edits))
           (unless (gemini-companion-undo-unwritten edit)
             (setq edits (gemini-companion-undo-test-revert edit)))))
      (_ (when edits
           (setq edits (gemini-companion-undo-test-revert
                        (seq-random-elt edits))))))
    (gemini-companion-revert-now file)
    (should (equal (gemini-companion-text-bytes file)
                   (encode-coding-string (gemini-companion-test-file-text file)
                                         gemini-companion-undo-test-coding)))
    (and (symbolp edits) edits)))

(ert-deftest gemini-companion-undo-of-random-turns-is-the-merge-or-nothing ()
  (let ((results nil))
    (gemini-companion-text-test-at-random
        (string-to-number (or (getenv "GC_TURNS") "10"))
      (gemini-companion-undo-test-with '(("a" ""))
        (let ((gemini-companion-undo-test-coding
               (seq-random-elt '(utf-8-unix utf-8-dos utf-8-with-signature-unix
                                            utf-8-with-signature-dos))))
          (gemini-companion-undo-test-write
           "a" (mapconcat (apply-partially #'format "%d\n")
                          (number-sequence 1 12) ""))
          (with-current-buffer (find-file-noselect "a")
            (buffer-enable-undo)
            (add-hook 'before-save-hook #'delete-trailing-whitespace nil t)
            (dotimes (_ 15)
              (push (gemini-companion-undo-test-step session) results))))))
    ;; Otherwise the test shows nothing; in so few turns, none may be refused.
    (should (memq 'undone results))))

;; Otherwise, the undo would change nothing, again and again.
(ert-deftest gemini-companion-undo-leaves-a-last-newline-that-a-line-of-others-needs ()
  (dolist (saved '(nil t))
    (pcase-dolist (`(,before ,after ,count . ,undone)
                   '(("a\nb" "a\nb\n" 0 . "a\nb\n")
                     ("a\nb" "A\nb\n" 1 . "a\nb\n")
                     ("a\nx\nb" "A\nx\nb\n" 1 . "a\nx\nb\n")
                     ("a\nb" "a\nB\n" 1 . "a\nb\n")
                     ("a\nb" "a\nb\nc\n" 1 . "a\nb\n")))
      (ert-info ((format "%S %S" before after))
        (gemini-companion-undo-test-with `(("a" ,before))
          (find-file "a")
          (let* ((edit (gemini-companion-test-writes "a" after session))
                 (record (gemini-companion-changes-of-file (file-truename "a")))
                 (undo (lambda ()
                         (gemini-companion-test-undo
                          record (gemini-companion-changes-update record)))))
            (goto-char (point-max))
            (insert "mine\n")
            (when saved
              (save-buffer))
            (should (length= (gemini-companion-changes-update record) count))
            (should (eq (if (= 0 count) 'gone 'automatic)
                        (gemini-companion-undo-test-status edit)))
            (when (< 0 count)
              (funcall undo))
            (should-not (gemini-companion-changes-update record))
            (should (equal (concat undone "mine\n") (buffer-string)))
            ;; Without that line, the newline is that of the CLI again.
            (when (= 0 count)
              (goto-char (point-max))
              (forward-line -1)
              (delete-region (point) (point-max))
              (should (length= (gemini-companion-changes-update record) 1))
              (should (eq 'automatic (gemini-companion-undo-test-status edit)))
              (funcall undo)
              (should-not (gemini-companion-changes-update record))
              (should (equal before (buffer-string))))
            (set-buffer-modified-p nil)))))))

;;; gemini-companion-undo-test.el ends here
