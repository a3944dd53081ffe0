;;; gemini-companion-edits-test.el --- Tests of the record of edits  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Which edits are recorded, in which turn, with which texts, and the way back.
;; The CLI's part, writing the file, is done by the outcome function here.

;;; Code:

(require 'gemini-companion-review-test-helper)

(defun gemini-companion-edits-test-reported ()
  "Return a list of (NAME STATE BEFORE AFTER) of all edits."
  (mapcar (lambda (edit)
            (list (file-name-nondirectory (gemini-companion-edit-file edit))
                  (gemini-companion-edit-status edit)
                  (gemini-companion-edit-before edit)
                  (gemini-companion-edit-after edit)))
          (gemini-companion-edits)))

(ert-deftest gemini-companion-edits-records-each-edit-with-its-texts ()
  (gemini-companion-test-with-edits '(("a" "A\n") ("b" "B\n") ("c" "C\n"))
    (gemini-companion-test-arrive "a" "1\n" 1 session)
    (gemini-companion-test-open "b" "2\n" 2 session)
    (gemini-companion-test-open "new" "3\n" 3 session)
    (gemini-companion-test-open "c" "4\n" 4 session)
    (should (equal '(("a" shown "A\n" nil)
                     ("b" pending "B\n" nil)
                     ("new" pending new nil)
                     ("c" pending "C\n" nil))
                   (gemini-companion-edits-test-reported)))
    (pcase-let ((`(,a ,b ,new ,_) (gemini-companion-diffs)))
      (with-current-buffer (gemini-companion-diff-proposal-buffer a)
        (insert "mine "))
      (gemini-companion-diff-accept a)
      (gemini-companion-diff-reject b)
      (gemini-companion-diff-accept new)
      (gemini-companion-diff-close 4 'closed))
    (should (equal '(("a" accepted "A\n" "mine 1\n")
                     ("b" rejected "B\n" "2\n")
                     ("new" accepted new "3\n")
                     ("c" dismissed "C\n" "4\n"))
                   (gemini-companion-edits-test-reported)))))

(ert-deftest gemini-companion-edits-has-the-text-that-is-overwritten ()
  (gemini-companion-test-with-edits '(("a" "A\n"))
    (let ((diff (gemini-companion-test-open "a" "1\n" 1 session)))
      (gemini-companion-test-write "a" "saved meanwhile\n")
      (cl-letf (((symbol-function 'yes-or-no-p) #'always))
        (gemini-companion-diff-accept diff))
      (should (equal '(("a" accepted "saved meanwhile\n" "1\n"))
                     (gemini-companion-edits-test-reported))))
    (gemini-companion-auto-accept session)
    (gemini-companion-test-open "a" "2\n" 2 session)
    (gemini-companion-test-eventually
      (equal '("a" automatic "1\n" "2\n")
             (cadr (gemini-companion-edits-test-reported))))))

(ert-deftest gemini-companion-edits-has-what-the-terminal-let-overwrite ()
  (gemini-companion-test-with-edits '(("a" "A\n") ("b" "B\n"))
    (with-current-buffer (gemini-companion-diff-proposal-buffer
                          (gemini-companion-test-open "a" "1\n" 1 session))
      (insert "mine"))
    (gemini-companion-test-open "b" "2\n" 2 session)
    ;; Qwen Code writes its own text before it closes the diff, Gemini CLI after
    ;; that.
    (gemini-companion-test-write "a" "1\n")
    (gemini-companion-test-write "b" "saved meanwhile\n")
    (gemini-companion-diff-close 1 'closed)
    (gemini-companion-diff-close 2 'closed)
    (should (equal '(("a" accepted "A\n" "1\n")
                     ("b" dismissed "saved meanwhile\n" "2\n"))
                   (gemini-companion-edits-test-reported)))
    (gemini-companion-edits-check-revert (car (gemini-companion-edits)))
    (gemini-companion-test-write "b" "2\n")
    (gemini-companion-test-eventually
      (equal '("b" accepted "saved meanwhile\n" "2\n")
             (cadr (gemini-companion-edits-test-reported))))))

(ert-deftest gemini-companion-edits-begins-after-a-minute-with-nothing-open ()
  (gemini-companion-test-with-edits '(("a" "A\n") ("b" "B\n") ("c" "C\n"))
    (let* ((now (float-time))
           (other (gemini-companion-test-session "two" 2))
           (turns (lambda ()
                    (let ((turns (mapcar #'gemini-companion-edit-turn
                                         (gemini-companion-edits))))
                      (mapcar (lambda (turn) (seq-position turns turn #'eq))
                              turns)))))
      (cl-letf (((symbol-function 'float-time)
                 (lambda (&optional time)
                   (if time (time-convert time 'integer) now))))
        (gemini-companion-test-open "a" "1\n" 1 session)
        (setq now (+ now 1000))
        (gemini-companion-test-open "b" "2\n" 2 session)
        (should (equal '(0 0) (funcall turns)))
        (mapc #'gemini-companion-diff-accept (gemini-companion-diffs))
        (setq now (+ now 59))
        (gemini-companion-test-open "c" "3\n" 3 session)
        (should (equal '(0 0 0) (funcall turns)))
        (gemini-companion-diff-reject (car (gemini-companion-diffs)))
        (setq now (+ now 61))
        (gemini-companion-test-open "a" "4\n" 4 other)
        (should (equal '(0 0 0 3) (funcall turns)))
        (gemini-companion-test-open "a" "5\n" 5 session)
        (should (equal '(0 0 0 3 4) (funcall turns)))))))

(ert-deftest gemini-companion-edits-records-what-was-written-without-review ()
  (gemini-companion-test-with-edits nil
    (let ((file (expand-file-name "a"))
          (large (make-string (* 6 1024 1024) ?x)))
      (gemini-companion-edits-written session file "é\n" "new\n")
      (gemini-companion-edits-written session file nil "newer\n")
      (gemini-companion-edits-written session file large "newest\n")
      ;; A CLI takes any file for UTF-8.
      (gemini-companion-edits-written session file "caf\uFFFD\n" "last\n")
      (should (equal '(("a" written "\303\251\n" "new\n")
                       ("a" written new "newer\n")
                       ("a" written unknown "newest\n")
                       ("a" written unknown "last\n"))
                     (gemini-companion-edits-test-reported))))))

(ert-deftest gemini-companion-edits-records-a-reviewed-edit-once ()
  (gemini-companion-test-with-edits '(("a" "A\r\n") ("b" "B\n") ("c" "C\n"))
    (let ((report (lambda (file before after)
                    (gemini-companion-edits-written
                     session (expand-file-name file) before after)))
          (states (lambda () (mapcar #'gemini-companion-edit-status
                                     (gemini-companion-edits)))))
      (gemini-companion-test-open "a" "1\n" 1 session)
      (gemini-companion-test-open "b" "2\n" 2 session)
      (gemini-companion-test-open "c" "3\n" 3 session)
      (gemini-companion-diff-accept (car (gemini-companion-diffs)))
      (gemini-companion-diff-reject (car (gemini-companion-diffs)))
      (gemini-companion-diff-close 3 'closed)
      (funcall report "a" "A\r\n" "1\r\n")
      (funcall report "c" "C\n" "3\n")
      (should (equal '(accepted rejected dismissed) (funcall states)))
      (make-symbolic-link "." "link")
      (gemini-companion-diff-accept
       (gemini-companion-test-open "c" "4\n" 4 session))
      (funcall report "link/c" "3\n" "4\n")
      (should (equal '(accepted rejected dismissed accepted) (funcall states)))
      ;; It writes the same text again, without a review, and what was rejected.
      (funcall report "a" "x\n" "1\r\n")
      (funcall report "b" "B\n" "2\n")
      (should (equal '(accepted rejected dismissed accepted written written)
                     (funcall states))))))

(ert-deftest gemini-companion-edits-records-a-write-that-was-late ()
  (gemini-companion-test-with-edits '(("a" "A\n"))
    (gemini-companion-test-diff-start (lambda (&rest _) #'ignore) #'ignore)
    (gemini-companion-diff-accept
     (gemini-companion-test-open "a" "1\n" 1 session))
    (gemini-companion-test-in-the-end
      (equal '(("a" unwritten "A\n" "1\n"))
             (gemini-companion-edits-test-reported)))
    (gemini-companion-edits-written session (expand-file-name "a")
                                    "A\n" "1\n")
    (should (equal '(("a" accepted "A\n" "1\n"))
                   (gemini-companion-edits-test-reported)))))

(defun gemini-companion-edits-test-refuses (edit reason)
  "Assert that EDIT is not reverted for REASON."
  (should (string-search
           reason (cadr (should-error (gemini-companion-edits-revert edit)
                                      :type 'user-error)))))

(ert-deftest gemini-companion-edits-reverts-to-the-same-bytes ()
  (dolist (before '("one\r\ntwo\nthree\r\n" "no end" "" "\0\n"
                    "\357\273\277mark\n\r\nno end" "\303\251\351\n"
                    "-*- coding: latin-1 -*-\r\ncaf\351\n" "\377\376o\0\n\0"))
    (ert-info ((format "%S" before))
      (gemini-companion-test-with-edits '(("a.txt" ""))
        (let ((file (expand-file-name "a.txt"))
              (require-final-newline t))
          (gemini-companion-test-write file before)
          (set-file-modes file #o750)
          (let ((buffer (find-file-noselect file)))
            (gemini-companion-diff-accept
             (gemini-companion-test-open file "new\ncaf\u00e9\n" 1 session))
            (gemini-companion-edits-revert (car (gemini-companion-edits)))
            (should (equal before (gemini-companion-text-bytes file)))
            (should (= #o750 (file-modes file)))
            (should (verify-visited-file-modtime buffer))
            (should-not (buffer-modified-p buffer)))
          (should (equal '(reverted) (mapcar #'gemini-companion-edit-status
                                             (gemini-companion-edits))))
          (gemini-companion-edits-test-refuses (car (gemini-companion-edits))
                                               "was reverted already"))))))

(ert-deftest gemini-companion-edits-keeps-the-line-ends-of-a-reported-file ()
  (pcase-dolist (`(,written ,reported . ,expected)
                 '(("\357\273\277new\r\n" "é old\n"
                    . "\357\273\277\303\251 old\r\n")
                   ("new\r\n" "as it was\r\n" . "as it was\r\n")
                   ("new\n" "a lone\rreturn\n" . "a lone\rreturn\n")))
    (ert-info ((format "%S" reported))
      (gemini-companion-test-with-edits '(("a" ""))
        (let ((file (expand-file-name "a")))
          (gemini-companion-test-write file written)
          (gemini-companion-edits-written session file reported "new\n")
          (gemini-companion-edits-revert (car (gemini-companion-edits)))
          (should (equal expected
                         (gemini-companion-text-bytes file))))))))

(ert-deftest gemini-companion-edits-refuses-to-revert-what-would-lose-text ()
  (gemini-companion-test-with-edits '(("a" "old\n") ("b" "old\n") ("c" "old\n"))
    (gemini-companion-test-open "a" "new\n" 1 session)
    (gemini-companion-test-open "born" "new\n" 2 session)
    (gemini-companion-test-open "b" "new\n" 3 session)
    (pcase-let ((`(,a ,born ,b) (gemini-companion-diffs)))
      (gemini-companion-diff-accept a)
      (gemini-companion-diff-accept born)
      (gemini-companion-diff-reject b))
    (gemini-companion-test-open "c" "new\n" 4 session)
    (pcase-let ((`(,a ,born ,b ,c) (gemini-companion-edits)))
      (gemini-companion-test-write "born" "newer\n")
      (gemini-companion-edits-test-refuses born "changed since")
      (gemini-companion-edits-test-refuses b "was rejected")
      (gemini-companion-edits-test-refuses c "awaits an answer")
      (gemini-companion-test-write "a" "newer\n")
      (gemini-companion-edits-test-refuses a "changed since")
      (gemini-companion-test-write "a" "new\n")
      (rename-file "a" "elsewhere")
      (make-symbolic-link "elsewhere" "a")
      (gemini-companion-edits-test-refuses a "replaced by a symbolic link")
      (rename-file "elsewhere" "a" 'replace)
      (with-current-buffer (find-file-noselect (expand-file-name "a"))
        (insert "unsaved")
        (gemini-companion-edits-test-refuses a "unsaved changes")
        (should (equal "unsavednew\n" (buffer-string)))))))

(ert-deftest gemini-companion-edits-keeps-a-hundred-and-forgets-at-the-end ()
  (gemini-companion-test-with-edits nil
    (let ((open (gemini-companion-test-open "open" "x\n" 1 session)))
      (dotimes (i 105)
        (gemini-companion-edits-written session (format "/f%d" i) nil "x\n"))
      (pcase-let ((`(,first . ,others) (gemini-companion-edits)))
        (should (eq open (gemini-companion-edit-diff first)))
        (should (= 100 (length others)))
        (should (equal "/f5" (gemini-companion-edit-file (car others)))))
      (dotimes (_ 20)
        (gemini-companion-edits-written session "/large" nil
                                       (make-string (* 4 1024 1024) ?x)))
      (should (> 12 (length (gemini-companion-edits)))))
    (gemini-companion-edits-stop)
    (should-not (gemini-companion-edits))))

;;; gemini-companion-edits-test.el ends here
