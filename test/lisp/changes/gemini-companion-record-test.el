;;; gemini-companion-record-test.el --- Tests of who wrote which line  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; GC_RECORD_SEQUENCES is the number of sequences of each kind, 100 if it is unset.

;;; Code:

(require 'ert)
(require 'gemini-companion-record)
(require 'gemini-companion-record-test-helper)

(defun gemini-companion-record-test-lines (text)
  "Return the words of TEXT as lines, a vector."
  (vconcat (mapcar (lambda (word) (concat word "\n")) (split-string text))))

(defmacro gemini-companion-record-test-with (text &rest body)
  "Run BODY with a record of TEXT, words that are its lines.
`write' is called with an edit and a text, and returns the hunks; `left'
returns the changes in a text, as lists (START END LINES EDITS), and `states'
what became of hunks there; `without' returns the text without hunks."
  (declare (indent 1))
  `(let* ((now (gemini-companion-record-test-lines ,text))
          (lines now))
     (cl-labels
         ((vector-of (text) (gemini-companion-record-test-lines text))
          (words (lines)
            (string-trim (string-replace "\n" " " (mapconcat #'identity lines ""))))
          (write (edit text &optional before &rest options)
            (let ((made (apply #'gemini-companion-record-write lines edit
                               (if before (vector-of before) now) (vector-of text) options)))
              (setq lines (car made)
                    now (vector-of text))
              (cdr made)))
          (look (text) (gemini-companion-record-look lines (vector-of text)))
          (left (text)
            (mapcar (lambda (change)
                      (list (gemini-companion-hunk-new change)
                            (gemini-companion-hunk-new-end change)
                            (words (gemini-companion-hunk-lines change))
                            (gemini-companion-record-change-edits change)))
                    (gemini-companion-record-changes (look text))))
          (states (text hunks)
            (let ((states (gemini-companion-record-states (look text))))
              (mapcar (apply-partially #'gemini-companion-record-state states) hunks)))
          (without (text hunks)
            (words (gemini-companion-lines-without
                    (gemini-companion-record-without (look text) hunks)
                    (vector-of text)))))
       (ignore #'vector-of #'words #'write #'look #'left #'states #'without)
       ,@body)))

;;;; The judge

(defun gemini-companion-record-test-count ()
  "Return the number of sequences of each kind."
  (string-to-number (or (getenv "GC_RECORD_SEQUENCES") "100")))

(defun gemini-companion-record-test-permille (kind wrong count)
  "Return how many of 1,000 sequences are WRONG by KIND, of COUNT."
  (/ (* 1000.0 (length (alist-get kind wrong))) count))

(ert-deftest gemini-companion-record-is-right-in-sequences-of-everyday-use ()
  (let* ((count (gemini-companion-record-test-count))
         (wrong (gemini-companion-record-test-judge count)))
    (should-not (alist-get 'exact wrong))
    (should (<= (gemini-companion-record-test-permille 'whose wrong count) 10))
    (should (<= (gemini-companion-record-test-permille 'words wrong count) 30))))

(ert-deftest gemini-companion-record-is-mostly-right-in-sequences-made-for-harm ()
  (let* ((count (gemini-companion-record-test-count))
         (wrong (gemini-companion-record-test-judge count t)))
    (should (<= (gemini-companion-record-test-permille 'exact wrong count) 10))
    (should (<= (gemini-companion-record-test-permille 'whose wrong count) 30))
    (should (<= (gemini-companion-record-test-permille 'words wrong count) 100))))

(ert-deftest gemini-companion-record-that-is-wrong-is-found ()
  (cl-flet ((found-p (name function)
              (cl-letf (((symbol-function name) function))
                (cl-loop for seed below 30
                         thereis (gemini-companion-record-test-run seed)))))
    (let ((look (symbol-function 'gemini-companion-record-look))
          (text (symbol-function 'gemini-companion-record-text))
          (changes (symbol-function 'gemini-companion-record-changes)))
      (dolist (wrong
               `((gemini-companion-record-look
                  . ,(lambda (lines now)
                       ;; What replaces lines of a hunk is not the hunk's.
                       (let ((look (funcall look lines now)))
                         (or (gemini-companion-record-disown look nil) look))))
                 (gemini-companion-record-text
                  . ,(lambda (lines &optional _) (funcall text lines)))
                 (gemini-companion-record-changes
                  . ,(lambda (look)
                       (let ((changes (funcall changes look)))
                         (dolist (change changes changes)
                           (pop (gemini-companion-record-change-edits change))))))
                 (gemini-companion-record-changes
                  . ,(lambda (look) (cdr (funcall changes look))))
                 (gemini-companion-record-set-undone . ignore)
                 (gemini-companion-record-whose . ignore)
                 (gemini-companion-record-of-others . ignore)
                 (gemini-companion-record-states . ,(lambda (_) (make-hash-table)))))
        (ert-info ((symbol-name (car wrong)))
          (should (found-p (car wrong) (cdr wrong))))))))

;;;; Writing, keeping, undoing

(ert-deftest gemini-companion-record-has-what-a-write-has-changed ()
  (gemini-companion-record-test-with "a b c"
    (let ((hunks (write 'one "a B c D")))
      (should (equal '((1 2 "b" (one)) (3 4 "" (one))) (left "a B c D")))
      (should (equal '(left left) (states "a B c D" hunks)))
      (should (equal "a b c" (without "a B c D" hunks)))
      (should (equal "a B c" (without "a B c D" (cdr hunks)))))))

(ert-deftest gemini-companion-record-keeps-and-undoes-by-a-flag ()
  (gemini-companion-record-test-with "a b c"
    (pcase-let ((`(,first ,second) (write 'one "a B c D"))
                (record lines))
      (setf (gemini-companion-record-hunk-reviewed first) 'kept)
      (should (equal '((3 4 "" (one))) (left "a B c D")))
      (should (equal (list second) (gemini-companion-record-set-undone (list second) t)))
      (should-not (gemini-companion-record-set-undone (list second) t))
      (should-not (left "a B c"))
      (should (equal '(kept undone) (states "a B c" (list first second))))
      (should (equal "a B c D" (words (gemini-companion-lines-without
                                       (gemini-companion-record-with
                                        (look "a B c") (list second))
                                       (vector-of "a B c")))))
      ;; It stays undone whatever others do, also in a later write.
      (should-not (left "a B D"))
      (let ((third (write 'two "x a B c" "a B c")))
        (gemini-companion-record-set-undone (list second) nil)
        (should (equal '((0 1 "" (two)) (4 5 "" (one))) (left "x a B c D")))
        (should (equal '(kept left left) (states "x a B c D" (cons first (cons second third))))))
      (should (eq record record)))))

;; Only one of the edits was named.
(ert-deftest gemini-companion-record-names-all-edits-of-a-decided-position ()
  (gemini-companion-record-test-with "a b c"
    (let ((hunks (append (write 'one "a B c") (write 'two "a B2 c"))))
      (should (equal '((two one))
                     (mapcar #'gemini-companion-record-change-edits
                             (gemini-companion-record-without (look "a B2 c") hunks))))
      (dolist (hunk hunks)
        (setf (gemini-companion-record-hunk-reviewed hunk) 'kept))
      (should (equal '((two one))
                     (mapcar #'gemini-companion-record-change-edits
                             (gemini-companion-record-decided (look "a B2 c"))))))))

(ert-deftest gemini-companion-record-knows-decided-hunks ()
  (gemini-companion-record-test-with "a b c"
    (pcase-let ((`(,first ,second) (write 'one "A b C")))
      (setf (gemini-companion-record-hunk-reviewed first) 'kept)
      (gemini-companion-record-set-undone (list second) t)
      (should (equal '((kept 0 1 ("a\n") nil) (undone 2 3 ("c\n") ("C\n")))
                     (mapcar (lambda (change)
                               (list (gemini-companion-record-decided-state change)
                                     (gemini-companion-hunk-new change)
                                     (gemini-companion-hunk-new-end change)
                                     (gemini-companion-hunk-lines change)
                                     (gemini-companion-record-decided-with change)))
                             (gemini-companion-record-decided (look "A b c"))))))))

(ert-deftest gemini-companion-record-reviews-what-was-accepted ()
  (gemini-companion-record-test-with "a b c d e"
    (write 'one "a B c d e")
    ;; A later accepted edit, with a line that touches what nobody has reviewed, and one
    ;; that a formatter has added.
    (let ((hunks (write 'two "a B2 c d E f" nil
                        :accepted (gemini-companion-record-test-lines "a B2 c d E"))))
      (should (equal '(nil t nil) (mapcar #'gemini-companion-record-hunk-reviewed hunks)))
      (should (equal '((1 2 "b" (two one)) (5 6 "" (two)))
                     (mapcar (pcase-lambda (`(,start ,end ,lines ,edits))
                               (list start end lines (sort edits #'string>)))
                             (left "a B2 c d E f")))))))

;; Both counted as undone, though nobody had undone anything.
(ert-deftest gemini-companion-record-has-what-two-edits-did-to-a-line-as-left ()
  (gemini-companion-record-test-with "a b"
    (let ((first (write 'one "a new b"))
          (second (write 'two "a b")))
      (should-not (left "a b"))
      (should (equal '(left left) (states "a b" (append first second))))
      ;; Others have changed it.
      (should (equal '(left left) (states "a b mine" (append first second))))
      (should (equal '(gone gone) (states "x y z" (append first second)))))))

(ert-deftest gemini-companion-record-undoes-the-later-of-two-edits ()
  (gemini-companion-record-test-with "a b c"
    (let ((first (write 'one "a B c"))
          (second (write 'two "a B2 c")))
      ;; The line that the first one has removed is still removed.
      (should (equal '(left left) (states "a B2 c" (append first second))))
      (should-not (gemini-companion-record-conflict (look "a B2 c") second))
      (should (= 1 (gemini-companion-record-conflict (look "a B2 c") first)))
      (should (equal "a B c" (without "a B2 c" second)))
      (gemini-companion-record-set-undone second t)
      (should (equal '((1 2 "b" (one))) (left "a B c")))
      (should (equal '(left undone) (states "a B c" (append first second))))
      (should-not (gemini-companion-record-back (look "a B c") second))
      (should (equal second (gemini-companion-record-back (look "a B2 c") second))))))

;;;; Others

(ert-deftest gemini-companion-record-gives-the-user-what-the-user-typed ()
  (gemini-companion-record-test-with "a b c d"
    (let ((hunks (write 'one "a B C d")))
      (should (equal '((2 4 "b c" (one))) (left "mine a B C d mine")))
      (should (equal "mine a b c d" (without "mine a B C d" hunks)))
      ;; A line between two of a hunk is shown with it, and stays.
      (should (equal "a b c mine d" (without "a B mine C d" hunks)))
      (should (equal '(1) (gemini-companion-record-of-others (look "a mine B C d"))))
      ;; Restoring a line of the CLI takes back what removed it.
      (should (equal '(gone) (states "a b c d" hunks)))
      (should-not (left "a b c d")))))

(ert-deftest gemini-companion-record-gives-a-hunk-what-replaces-its-lines ()
  (gemini-companion-record-test-with "a b c d"
    (let ((hunks (write 'one "a B C d")))
      ;; A word corrected by hand, and two lines that a formatter has joined.
      (should (equal '((1 3 "b c" (one))) (left "a Beta C d")))
      (should (equal '((1 2 "b c" (one))) (left "a BC d")))
      (should (equal '(left) (states "a BC d" hunks)))
      (should (equal "a b c d" (without "a BC d" hunks)))
      (should (equal '(1) (gemini-companion-record-of-others (look "a BC d") hunks)))
      ;; A formatter changes each line, also one of the user's beside them.
      (should (equal '((1 3 "b c" (one))) (left "a B; C; d;")))
      (should (equal '(3) (gemini-companion-record-of-others (look "a B C d;"))))
      ;; A line typed beside one that a formatter changes is the user's.
      (should (equal '(1) (gemini-companion-record-of-others (look "a B; mine C d") hunks)))
      (should (equal '(1 2) (gemini-companion-record-of-others (look "a B; mine C d"))))
      ;; With a line of the user's, it is the user's, also if as many lines are new.
      (should (equal '(2 3) (gemini-companion-record-of-others (look "a B X Y"))))
      (should-not (gemini-companion-record-of-others (look "a B X Y") hunks))
      (should (equal '(1) (gemini-companion-record-of-others (look "a BCD"))))
      (should-not (gemini-companion-record-of-others (look "a BCD") hunks))
      ;; And once it was kept.
      (setf (gemini-companion-record-hunk-reviewed (car hunks)) 'kept)
      (should-not (left "a Beta C d"))
      (should (equal '(1) (gemini-companion-record-of-others (look "a Beta C d")))))))

(ert-deftest gemini-companion-record-has-what-replaces-lines-after-the-next-write ()
  (gemini-companion-record-test-with "a b c d"
    (let ((hunks (write 'one "a B c d")))
      (write 'two "a Beta c D" "a Beta c d")
      (should (equal '((1 2 "b" (one)) (3 4 "d" (two))) (left "a Beta c D")))
      (should (equal "a b c D" (without "a Beta c D" hunks)))
      ;; The user takes the correction back.
      (should (equal '((1 2 "b" (one)) (3 4 "d" (two))) (left "a B c D"))))))

(ert-deftest gemini-companion-record-follows-lines-whose-white-space-changes ()
  (let* ((before ["a\n" "b\n" "c\n"])
         (written ["a\n" "B\n" "c\n"])
         (made (gemini-companion-record-write before 'one before written))
         (look (gemini-companion-record-look (car made) ["  a\n" "  B\n" "  c\n"]))
         (change (car (gemini-companion-record-changes look))))
    (should (equal '(1 2 ("b\n")) (list (gemini-companion-hunk-new change)
                                        (gemini-companion-hunk-new-end change)
                                        (gemini-companion-hunk-lines change))))
    (should-not (gemini-companion-record-of-others look))))

;; Each look at a minified file took a second.
(ert-deftest gemini-companion-record-compares-long-lines-only-as-they-are ()
  (pcase-dolist (`(,size . ,same) '((9000 . t) (11000 . nil)))
    (let* ((long (concat (make-string size ?x) "\n"))
           (made (gemini-companion-record-write ["a\n" "c\n"] 'one ["a\n" "c\n"]
                                                (vector "a\n" long "c\n")))
           (look (gemini-companion-record-look
                  (car made) (vector "a\n" (concat " " long) "c\n"))))
      (should (eq same (null (gemini-companion-record-of-others look)))))))

;; All of it was taken for another text, with nothing left.
(ert-deftest gemini-companion-record-knows-a-small-file-of-which-all-is-formatted ()
  (gemini-companion-record-test-with "a b"
    (let ((hunks (write 'one "A b C")))
      (should (equal '((0 1 "a" (one)) (2 3 "" (one))) (left "A; b; C;")))
      (should (equal "a b; mine" (without "A; b; C; mine" hunks))))))

(ert-deftest gemini-companion-record-forgets-a-position-with-its-lines ()
  (gemini-companion-record-test-with "a b c d e f g h"
    (let ((hunks (write 'one "a b c e f g h")))
      (should (equal '((3 3 "d" (one))) (left "a b c e f g h")))
      (should (equal '((2 2 "d" (one))) (left "a c e f g h")))
      (should-not (left "x y z h"))
      (should (equal '(gone) (states "x y z h" hunks)))
      ;; Also after a CLI has written there, and the branch is back.
      (write 'two "x y z h i" "x y z h")
      (should (equal '((4 5 "" (two))) (left "x y z h i")))
      (should (equal '((3 3 "d" (one))) (left "a b c e f g h"))))))

(ert-deftest gemini-companion-record-gives-a-hunk-what-replaces-its-lines-after-a-branch ()
  (gemini-companion-record-test-with "a b c d"
    (let ((hunk (car (write 'one "a b N c d"))))
      ;; A CLI writes on another branch, and the first one is checked out again.
      (write 'two "x y z i" "x y z")
      (should (equal '((2 3 "" (one))) (left "a b M c d")))
      (should (equal "a b c d" (without "a b M c d" (list hunk)))))))

(ert-deftest gemini-companion-record-has-no-changes-in-the-first-text ()
  (gemini-companion-record-test-with "a b c"
    (write 'one "a B x c" nil :accepted (gemini-companion-record-test-lines "a B x c"))
    (write 'two "a B c")
    (should (equal '((2 2 "x" (two))) (left "a B c")))
    (should-not (left "a b c"))
    ;; Lines that the user has removed before a write are known, too.
    (write 'three "B c" "B c")
    (should-not (left "a b c"))))

;;;; The last newline

(ert-deftest gemini-companion-record-has-the-last-newline-in-the-last-line ()
  (let* ((made (gemini-companion-record-write ["a\n" "b"] 'one ["a\n" "b"] ["a\n" "b\n"]))
         (look (gemini-companion-record-look (car made) ["a\n" "b\n"]))
         (change (car (gemini-companion-record-changes look))))
    (should (equal '("b") (gemini-companion-hunk-lines change)))
    (should (equal ["a\n" "b"]
                   (gemini-companion-lines-without
                    (gemini-companion-record-without look (cdr made)) ["a\n" "b\n"])))))

;;;; Forgetting

(defun gemini-companion-record-test-numbers (count)
  "Return a text of COUNT words."
  (mapconcat #'number-to-string (number-sequence 1 count) " "))

(ert-deftest gemini-companion-record-forgets-nothing-for-lines-that-others-removed ()
  (gemini-companion-record-test-with (gemini-companion-record-test-numbers 1100)
    (write 'one "b" "a")
    (let ((second (write 'two "c")))
      (setq lines (gemini-companion-record-forget lines nil))
      (should (equal "b" (without "c" second))))))

(ert-deftest gemini-companion-record-forgets-no-decision-put-off ()
  (gemini-companion-record-test-with "a"
    (gemini-companion-record-set-postponed
     (write 'one (concat "a " (gemini-companion-record-test-numbers 1100))) t)
    (write 'two "a b")
    (cl-flet ((later ()
                (mapcar #'gemini-companion-record-postponed-p
                        (gemini-companion-record-changes (look "a b")))))
      (should (equal '(t) (later)))
      (setq lines (gemini-companion-record-forget lines nil))
      (should (equal '(t) (later))))))

(ert-deftest gemini-companion-record-forgets-what-is-reviewed ()
  (gemini-companion-record-test-with "a b c"
    (let ((first (write 'one "a B c"))
          (second (write 'two "a B2 c")))
      (should (eq lines (gemini-companion-record-forget lines nil)))
      (dolist (hunk (append first second))
        (setf (gemini-companion-record-hunk-reviewed hunk) 'kept))
      ;; An undo history has an entry of it.
      (should (eq lines (gemini-companion-record-forget lines second)))
      (setq lines (gemini-companion-record-forget lines nil))
      (should (equal '(nil t) (mapcar #'gemini-companion-record-hunk-forgotten
                                      (append first second))))
      ;; Both can still be undone: the text before the first edit is not forgotten.
      (should (equal "a b c" (without "a B2 c" (append first second)))))))

(ert-deftest gemini-companion-record-forgets-reviewed-hunks-of-old-edits ()
  (gemini-companion-record-test-with "a b c d"
    (let* ((first (write 'one "A b c new"))
           (second (write 'two "A2 c new"))
           (old-p (lambda (edit) (eq 'one edit)))
           (forget (lambda (named) (gemini-companion-record-forget lines named old-p))))
      (should (equal lines (funcall forget nil)))
      (dolist (hunk first)
        (setf (gemini-companion-record-hunk-reviewed hunk) 'kept))
      (should (equal lines (funcall forget first)))
      (setq lines (funcall forget nil))
      ;; The text without what is left is as if it was there before.
      (should (equal "A b c new" (without "A2 c new" second)))
      (should (equal "A2 c new" (without "A2 c new" first)))
      (should (equal '((0 1 "A b" (two))) (left "A2 c new")))
      ;; Others have restored what it had removed.
      (should (equal '((1 2 "A b" (two))) (left "a A2 c new d")))
      (should-not (seq-some (lambda (line)
                              (and (consp line)
                                   (seq-some (lambda (act) (memq (car act) first))
                                             (cdr line))))
                            lines)))))

(ert-deftest gemini-companion-record-does-not-grow-by-reviewed-writes ()
  (let* ((text (lambda (n)
                 (vconcat (cl-loop for i below 200 collect (format "%d of %d\n" i n)))))
         (lines (funcall text 0))
         (sizes nil))
    (dotimes (n 20)
      (setq lines (gemini-companion-record-forget
                   (car (gemini-companion-record-write
                         lines n (funcall text n) (funcall text (1+ n))
                         :accepted (funcall text (1+ n))))
                   nil))
      (push (length lines) sizes))
    (should (equal '(400) (delete-dups sizes)))))

(ert-deftest gemini-companion-record-does-not-grow-by-many-unreviewed-writes ()
  (let* ((text (lambda (n)
                 (vconcat (cl-loop for i below 200 collect (format "%d of %d\n" i n)))))
         (lines (funcall text 0))
         (hunks nil))
    (dotimes (n 50)
      (pcase-let ((`(,written . ,made)
                   (gemini-companion-record-write lines n (funcall text n)
                                                  (funcall text (1+ n)))))
        (setq hunks (append hunks made)
              lines (gemini-companion-record-forget
                     written (append (seq-take (reverse hunks) 5) made)))
        (should (<= (length lines) 2400))))
    (let* ((now (funcall text 50))
           (look (gemini-companion-record-look lines now))
           (states (gemini-companion-record-states look)))
      (should (equal (funcall text 0) (gemini-companion-record-text look t)))
      (should (equal (make-list 50 'left)
                     (mapcar (apply-partially #'gemini-companion-record-state states)
                             hunks)))
      ;; The last writes can be undone one by one.
      (should (equal (funcall text 48)
                     (gemini-companion-lines-without
                      (gemini-companion-record-without look (last hunks 2)) now)))
      (dolist (hunk hunks)
        (setf (gemini-companion-record-hunk-reviewed hunk) 'kept))
      (should-not (gemini-companion-record-changes look))
      (should (equal now (gemini-companion-record-text look t))))))

(provide 'gemini-companion-record-test)
;;; gemini-companion-record-test.el ends here
