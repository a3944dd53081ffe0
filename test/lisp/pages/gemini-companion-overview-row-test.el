;;; gemini-companion-overview-row-test.el --- Tests of the rows of the overview  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-overview-test-helper)

(defun gemini-companion-overview-row-test-tree (rows)
  "Return ROWS as a tree of their kinds and what they count."
  (mapcar (lambda (row)
            (append (list (gemini-companion-overview-row-kind row))
                    (and (gemini-companion-overview-row-path row)
                         (list (file-name-nondirectory
                                (gemini-companion-overview-row-path row))
                               (length (gemini-companion-overview-row-left row))
                               (length (gemini-companion-overview-row-decided row))))
                    (gemini-companion-overview-row-test-tree
                     (gemini-companion-overview-row-rows row))))
          rows))

(ert-deftest gemini-companion-overview-row-are-of-the-newest-turn-of-a-change ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n4\n5\n") ("b" "B\n"))
    (gemini-companion-state-report session 'prompt "First")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\nfive\n" session)
    (gemini-companion-test-writes "b" "C\n" session 'reviewed)
    (gemini-companion-state-report session 'end nil)
    (gemini-companion-state-report session 'prompt "Second")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\ncinq\n" session)
    (gemini-companion-edit-reject (gemini-companion-test-open "b" "D\n" 5 session))
    (gemini-companion-test-open "b" "E\n" 6 session)
    (let ((rows (gemini-companion-overview-rows directory)))
      (should (equal '((waiting (proposal "b" 0 0))
                       (cli (turn (file "a" 1 0) (file "b" 0 0))
                            (turn (file "a" 1 0) (file "b" 0 1))))
                     (gemini-companion-overview-row-test-tree rows)))
      (should (= 2 (gemini-companion-overview-row-count-left (cadr rows)))))))

(ert-deftest gemini-companion-overview-row-has-the-reason-why-diff-fails ()
  (let ((text (mapconcat (lambda (n) (format "line %d\n" n))
                         (number-sequence 1 400) "")))
    (gemini-companion-overview-test-with `(("a" ,text))
      (gemini-companion-overview-test-turns session
        ("First" ("a" (string-replace "line 300\n" "CLI\n" text))))
      (let* ((row-of (lambda ()
                       (car (gemini-companion-overview-row-files
                             (car (gemini-companion-overview-rows directory))))))
             (row (funcall row-of)))
        (should (= 1 (length (gemini-companion-overview-row-left row))))
        (with-current-buffer (find-file-noselect "a")
          (insert "mine\n")
          (goto-char (point-max))
          (insert "mine\n"))
        (let ((temporary-file-directory "/no-such-directory/"))
          (setq row (funcall row-of))
          (should-not (gemini-companion-overview-row-left row))
          (should (string-match-p "Cannot compare texts"
                                  (gemini-companion-overview-draw-body row nil))))
        (setq row (funcall row-of))
        (should-not (gemini-companion-overview-row-problem row))
        (should (= 1 (length (gemini-companion-overview-row-left row))))))))

(ert-deftest gemini-companion-overview-row-says-that-a-text-is-one-of-two-edits ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n"))
    (setq gemini-companion-test-send #'ignore)
    (gemini-companion-state-report session 'prompt "Do it")
    (gemini-companion-test-accept "a" "A\n2\n3\n" 1 session)
    (gemini-companion-test-accept "a" "1\n2\nC\n" 2 session)
    (gemini-companion-test-write "a" "A\n2\nC\n")
    (gemini-companion-test-eventually
      (equal '(accepted accepted) (mapcar #'gemini-companion-edit-status
                                          (seq-filter #'gemini-companion-edit-written-p
                                                      (gemini-companion-edits)))))
    (gemini-companion-test-eventually
      (seq-every-p #'gemini-companion-edit-file-state (gemini-companion-edits)))
    (gemini-companion-list)
    (should (string-match-p "one of 2 edits"
                            (car (gemini-companion-overview-test-rows "\\_<a\\_>"))))
    (gemini-companion-overview-test-go-to "\\_<a\\_>")
    (gemini-companion-overview-test-keys "C-u u" 'yes)
    (should (equal "1\n2\n3\n" (gemini-companion-test-file-text "a")))))

(ert-deftest gemini-companion-overview-row-of-the-project-come-first ()
  (gemini-companion-overview-test-with nil
    (let ((here (gemini-companion-session-make
                 :id "here" :directory (directory-file-name directory) :pid 11))
          (there
           (gemini-companion-session-make :id "there" :directory "/elsewhere" :pid 12))
          (gone
           (gemini-companion-session-make :id "gone" :directory "/gone" :pid 13)))
      (gemini-companion-test-set-sessions (list there here))
      (gemini-companion-reported-write gone (expand-file-name "a") nil "1\n")
      (should (equal '("here" "there" "gone")
                     (mapcar (lambda (row)
                               (gemini-companion-session-id
                                (gemini-companion-overview-row-session row)))
                             (gemini-companion-overview-rows directory)))))))

(ert-deftest gemini-companion-overview-row-group-changes-by-their-files ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n4\n5\n") ("b" "B\n"))
    (gemini-companion-overview-test-turns session
      ("First" ("a" "one\n2\n3\n4\n5\n"))
      ("Second" ("a" "one\n2\n3\n4\nfive\n") ("b" "C\n")))
    (let ((groups (gemini-companion-overview-row-groups
                   (car (gemini-companion-overview-rows directory)))))
      (should (equal '(("a" 0 4) ("b" 0))
                     (sort (mapcar (pcase-lambda (`(,record . ,changes))
                                     (cons (file-name-nondirectory
                                            (gemini-companion-changes-file-name record))
                                           (mapcar #'gemini-companion-hunk-new
                                                   changes)))
                                   groups)
                           (lambda (a b) (string< (car a) (car b)))))))))

(defun gemini-companion-overview-row-test-lines (row)
  "Return the numbers of lines that are drawn for ROW, a list of two."
  (let ((text (substring-no-properties
               (gemini-companion-overview-draw-heading row "" 200))))
    (if (string-match "\\+\\([0-9]+\\) .\\([0-9]+\\)" text)
        (list (string-to-number (match-string 1 text))
              (string-to-number (match-string 2 text)))
      (list 0 0))))

(defun gemini-companion-overview-row-test-sum (rows)
  "Return the sums of the numbers of lines that are drawn for ROWS."
  (apply #'cl-mapcar #'+ '(0 0)
         (mapcar #'gemini-companion-overview-row-test-lines rows)))

(defun gemini-companion-overview-row-test-sums (rows records)
  "Check that the numbers of ROWS, those of level 1, add up.
RECORDS are those of all files."
  (dolist (cli rows)
    (let ((left 0))
      (dolist (turn (gemini-companion-overview-row-rows cli))
        (let ((files (gemini-companion-overview-row-files turn)))
          (cl-incf left (gemini-companion-overview-row-count-left turn))
          (should (equal (gemini-companion-overview-row-test-lines turn)
                         (gemini-companion-overview-row-test-sum files)))
          (should (= (gemini-companion-overview-row-count-left turn)
                     (apply #'+ (mapcar (lambda (file)
                                          (length (gemini-companion-overview-row-left
                                                   file)))
                                        files))))))
      (should (= left (gemini-companion-overview-row-count-left cli)))))
  (should (= (or (gemini-companion-changes-left) 0)
             (apply #'+ (mapcar #'gemini-companion-overview-row-count-left rows))))
  (dolist (record records)
    (let ((files (seq-filter (lambda (file)
                               (eq record (gemini-companion-overview-row-record file)))
                             (seq-mapcat #'gemini-companion-overview-row-files rows))))
      ;; Each change is in one row.
      (should (gemini-companion-overview-row-test-same-p
               (seq-mapcat #'gemini-companion-overview-row-left files)
               (gemini-companion-changes-file-known record)))
      (should (gemini-companion-overview-row-test-same-p
               (seq-mapcat #'gemini-companion-overview-row-decided files)
               (gemini-companion-changes-kept-and-undone record)))
      ;; Each line is in one of those that are kept, and in one that is undone.
      (dolist (state '(kept undone))
        (let ((end 0))
          (dolist (one (seq-sort-by
                        #'gemini-companion-hunk-new #'<
                        (seq-filter
                         (lambda (one)
                           (eq state (gemini-companion-record-decided-state one)))
                         (seq-mapcat #'gemini-companion-overview-row-decided files))))
            (should (<= end (gemini-companion-hunk-new one)))
            (setq end (gemini-companion-hunk-new-end one)))))
      ;; What is drawn in one diff does not overlap.
      (dolist (file files)
        (let ((end 0))
          (dolist (one (seq-sort-by
                        #'gemini-companion-hunk-new #'<
                        (append (gemini-companion-overview-row-left file)
                                (gemini-companion-overview-row-decided file))))
            (should (<= end (gemini-companion-hunk-new one)))
            (setq end (gemini-companion-hunk-new-end one))))))))

(defun gemini-companion-overview-row-test-same-p (some others)
  "Return non-nil if the changes SOME are OTHERS, in any order."
  (and (= (length some) (length others))
       (seq-every-p (lambda (one) (member one others)) some)))

(defun gemini-companion-overview-row-test-written (lines random)
  "Return LINES as a CLI may change them.
RANDOM is a function of a limit, the value of which is a number below that."
  (let ((lines (copy-sequence lines)))
    (dotimes (_ (1+ (funcall random 3)))
      (let* ((at (funcall random (length lines)))
             (tail (nthcdr at lines)))
        (pcase (funcall random 4)
          (0 (when (cddr lines)
               (setq lines (append (seq-take lines at) (cdr tail)))))
          (1 (setq lines (append (seq-take lines at)
                                 (list (format "new %d" (funcall random 1000)))
                                 tail)))
          (_ (setcar tail (format "line %d" (funcall random 1000)))))))
    lines))

(defun gemini-companion-overview-row-test-run (seed)
  "Write, keep, undo, and take back by chance with SEED, and check the numbers."
  (let* ((state seed)
         (random (lambda (limit)
                   (setq state (mod (+ 12345 (* 1103515245 state)) 2147483648))
                   (mod (/ state 65536) limit)))
         (base (mapcar #'number-to-string (number-sequence 1 12)))
         (text (lambda (lines) (concat (string-join lines "\n") "\n"))))
    (gemini-companion-overview-test-with `(("a" ,(funcall text base))
                                           ("b" ,(funcall text base)))
      (let ((others (list session
                          (gemini-companion-session-make
                           :id "two" :pid 22 :client "qwen"
                           :directory directory))))
        (gemini-companion-test-set-sessions others)
        (dotimes (_ 4)
          (let ((cli (nth (funcall random 2) others)))
            (gemini-companion-state-report cli 'prompt "Do it")
            (dotimes (_ (1+ (funcall random 2)))
              (let ((file (if (= 0 (funcall random 2)) "a" "b")))
                (gemini-companion-test-writes
                 file
                 (funcall text (gemini-companion-overview-row-test-written
                                (split-string (gemini-companion-text-read file) "\n" t)
                                random))
                 cli (= 0 (funcall random 4)))))
            (gemini-companion-state-report cli 'end nil))
          (dotimes (_ 4)
            (let* ((rows (gemini-companion-overview-rows directory))
                   (files (seq-filter #'gemini-companion-overview-row-left
                                      (seq-mapcat #'gemini-companion-overview-row-files
                                                  rows)))
                   (file (and files (nth (funcall random (length files)) files)))
                   (change (and file
                                (let ((left (gemini-companion-overview-row-left file)))
                                  (nth (funcall random (length left)) left)))))
              (gemini-companion-overview-row-test-sums
               rows (gemini-companion-changes-files 'all))
              (condition-case nil
                  (pcase (funcall random 4)
                    ((and 0 (guard change))
                     (gemini-companion-decision-with "keep"
                       (gemini-companion-test-keep
                        (gemini-companion-overview-row-record file) (list change))))
                    ((and 1 (guard change))
                     (gemini-companion-test-answering #'always
                       (gemini-companion-decision-with "undo"
                                                       (gemini-companion-undo-decide
                                                        'undo
                                                        (list (list (gemini-companion-overview-row-record file)
                                                                    change))))))
                    (2 (gemini-companion-test-answering #'always
                         (gemini-companion-decision-undo)))
                    (3 (gemini-companion-test-answering #'always
                         (gemini-companion-decision-redo))))
                (user-error nil)))))
        (gemini-companion-overview-row-test-sums
         (gemini-companion-overview-rows directory)
         (gemini-companion-changes-files 'all))
        ;; All kept: the numbers are those of all that was written.
        (pcase-dolist (`(,record . ,changes)
                       (seq-mapcat #'gemini-companion-overview-row-groups
                                   (gemini-companion-overview-rows directory)))
          (gemini-companion-test-keep record changes))
        (let ((rows (gemini-companion-overview-rows directory)))
          (gemini-companion-overview-row-test-sums
           rows (gemini-companion-changes-files 'all))
          (should-not (gemini-companion-changes-left)))))))

(ert-deftest gemini-companion-overview-row-has-numbers-that-add-up ()
  (dotimes (n 4)
    (ert-info ((format "Seed %d" n))
      (gemini-companion-overview-row-test-run n))))

(ert-deftest gemini-companion-overview-row-counts-a-kept-change-in-its-newest-turn ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n"))
    (gemini-companion-overview-test-turns session
      ("First" ("a" "1\ntwo\n3\n"))
      ("Second" ("a" "1\nzwei\n3\n")))
    (cl-flet ((check (left decided)
                (let* ((cli (car (gemini-companion-overview-rows directory)))
                       (files (gemini-companion-overview-row-files cli)))
                  (should (equal `((,left . ,decided) (0 . 0))
                                 (mapcar (lambda (file)
                                           (cons (length
                                                  (gemini-companion-overview-row-left file))
                                                 (length
                                                  (gemini-companion-overview-row-decided
                                                   file))))
                                         files)))
                  (should (equal '((1 1) (1 1))
                                 (mapcar #'gemini-companion-overview-row-test-lines
                                         files)))
                  ;; Nothing is called reviewed that the newer turn has left.
                  (should (eq (= 0 left)
                              (and (string-match-p
                                    "\\(?:reviewed\\|undone\\)\\'"
                                    (gemini-companion-overview-draw-heading
                                     (cadr files) "" 100))
                                   t)))
                  (caar (gemini-companion-overview-row-groups cli)))))
      (let ((record (check 1 0)))
        (gemini-companion-decision-with "keep"
          (gemini-companion-test-keep record
                                         (gemini-companion-changes-file-known record)))
        (check 0 1)
        (gemini-companion-decision-undo)
        (check 1 0)
        (gemini-companion-decision-with "undo"
          (gemini-companion-undo-decide
           'undo
           (list (cons record (gemini-companion-changes-file-known record)))))
        (check 0 1)))))

;;; gemini-companion-overview-row-test.el ends here
