;;; gemini-companion-invariants-test.el --- Tests of what must always be so  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Each test puts in a fault by hand.  A slot of an edit that another file sets is found by
;; `gemini-companion-slots-are-set-in-one-file'.

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-invariants)
(require 'gemini-companion-overview-test-helper)

(defmacro gemini-companion-invariants-test-finds (regexp files &rest body)
  "Run BODY, with a fault, in a directory with FILES, where changes are marked.
Assert that REGEXP matches what is not so, and that nothing else is not so."
  (declare (indent 2) (debug t))
  `(let ((gemini-companion-invariants-broken nil)
         (gemini-companion-invariants--written nil))
     (gemini-companion-overview-test-with ,files
       ,@body
       (let ((broken (gemini-companion-invariants-check)))
         (should broken)
         (dolist (sentence broken)
           (should (string-match-p ,regexp sentence)))))))

(ert-deftest gemini-companion-invariants-find-a-mark-that-is-left-behind ()
  (gemini-companion-invariants-test-finds "marks in a are not the changes"
      '(("a" "1\n2\n3\n"))
    (find-file "a")
    (gemini-companion-test-writes "a" "1\nB\n3\n" session)
    (should-not (gemini-companion-invariants-check))
    (overlay-put (make-overlay 1 2) 'gemini-companion-change t)
    (gemini-companion-test-writes "a" "1\nB\nC\n" session)))

(ert-deftest gemini-companion-invariants-find-the-sign-of-a-mark-that-is-left-behind ()
  (gemini-companion-invariants-test-finds "marks in a are not the changes"
      '(("a" "1\n2\n3\n"))
    (find-file "a")
    (cl-letf (((symbol-function 'gemini-companion-marks--remove)
               (lambda () (mapc #'delete-overlay gemini-companion-marks-here))))
      (gemini-companion-test-writes "a" "1\nB\n3\n" session)
      (should-not (gemini-companion-invariants-check))
      (gemini-companion-test-writes "a" "1\nB\nC\n" session))))

(ert-deftest gemini-companion-invariants-find-a-mark-at-another-line ()
  (gemini-companion-invariants-test-finds "marks in a are not the changes"
      '(("a" "1\n2\n3\n"))
    (find-file "a")
    (let ((move (lambda (_record buffer)
                  (with-current-buffer buffer
                    (move-overlay (car gemini-companion-marks-here) 1 3)))))
      (add-hook 'gemini-companion-changes-functions move 50)
      (unwind-protect
          (gemini-companion-test-writes "a" "1\nB\n3\n" session)
        (remove-hook 'gemini-companion-changes-functions move)))))

(ert-deftest gemini-companion-invariants-find-marks-in-a-buffer-without-changes ()
  (gemini-companion-invariants-test-finds "marks in \\(?:b\\|clone\\) are not the changes"
      '(("a" "1\n2\n3\n"))
    (find-file "a")
    (gemini-companion-test-writes "a" "1\nB\n3\n" session)
    (should-not (gemini-companion-invariants-check))
    (cl-letf (((symbol-function 'gemini-companion-marks--draw-here) #'ignore))
      (switch-to-buffer (make-indirect-buffer (current-buffer) "clone" t))
      (run-hook-with-args 'window-buffer-change-functions (selected-frame))
      (should (gemini-companion-invariants-check))
      (kill-buffer)
      (switch-to-buffer "a")
      (set-visited-file-name "b")
      (set-buffer-modified-p nil))))

(ert-deftest gemini-companion-invariants-find-a-hunk-in-no-record ()
  (gemini-companion-invariants-test-finds "A line of .* names a hunk of no write"
      '(("a" "1\n2\n3\n"))
    (gemini-companion-test-writes "a" "1\nB\n3\n" session)
    (should-not (gemini-companion-invariants-check))
    (setf (gemini-companion-changes-file-writes (car (gemini-companion-changes-files)))
          nil)
    (gemini-companion-test-writes "a" "1\nB\nC\n" session)))

(ert-deftest gemini-companion-invariants-find-a-count-that-differs ()
  (dolist (count '("+2 \\1" "+1 \\12"))
    (gemini-companion-invariants-test-finds "does not count the lines of its diff"
        '(("a" "1\n2\n3\n"))
      (gemini-companion-test-writes "a" "1\nB\n3\n" session)
      (gemini-companion-turn-page)
      (run-hooks 'post-command-hook)
      (should-not (gemini-companion-invariants-check))
      (goto-char (point-min))
      (let ((inhibit-read-only t))
        (should (re-search-forward "\\+1 \\(.1\\)  a"))
        (replace-match (concat count "  a") t))
      (run-hooks 'post-command-hook))))

(ert-deftest gemini-companion-invariants-find-a-deletion-without-its-bytes ()
  (gemini-companion-invariants-test-finds "overwritten or deleted in .*/a is not kept"
      '(("a" "1\n2\n3\n"))
    (let ((file (expand-file-name "a")))
      (gemini-companion-watch-writing file
        (delete-file file)))))

(ert-deftest gemini-companion-invariants-find-an-overwrite-without-its-bytes ()
  (gemini-companion-invariants-test-finds "overwritten or deleted in .*/a is not kept"
      '(("a" "1\n2\n3\n"))
    (let ((file (expand-file-name "a")))
      (find-file file)
      (buffer-enable-undo)
      (insert "text that is not that of the file")
      (gemini-companion-text-write file "others\n")
      (gemini-companion-watch-writing file
        (gemini-companion-text-rewrite file "others\n" "new\n"))
      (set-buffer-modified-p nil))))

(ert-deftest gemini-companion-invariants-find-an-undo-without-the-bytes-before ()
  (gemini-companion-invariants-test-finds "overwritten or deleted in .*/a is not kept"
      '(("a" "1\n2\n3\n"))
    (gemini-companion-test-writes "a" "1\nB\n3\n" session)
    (let* ((record (car (gemini-companion-changes-files)))
           (changes (gemini-companion-changes-file-known record))
           (step (gemini-companion-step-of-changes
                  record changes
                  (gemini-companion-record-change-hunks (car changes)) t)))
      (gemini-companion-text-write "a" "others\n")
      ;; The step writes the file as if nobody had written it since.
      (cl-letf (((symbol-function 'gemini-companion-step--bytes)
                 (lambda (_) (gemini-companion-step-before step)))
                ((symbol-function 'gemini-companion-text-rewrite)
                 (lambda (file _old text) (gemini-companion-text-write file text))))
        (gemini-companion-step-do step)))))

(ert-deftest gemini-companion-invariants-find-an-overwrite-by-the-server ()
  (gemini-companion-test-needs-add-on 'tools)
  (gemini-companion-invariants-test-finds "overwritten or deleted in .*/a is not kept"
      '(("a" "others\n") ("b" "2\n"))
    (let ((unmarked (gemini-companion-unmarked-make
                     (expand-file-name ".")
                     ;; These are 1 and 2.
                     (mapcar (lambda (name)
                               (gemini-companion-unmarked-entry
                                name "d00491fd7e5bb6fa28c517a0bb32b8b506539d4d"
                                "0cfbf08886fca9a91cb753ec8734c84fcbe52c9f"
                                #o100644 #o100644))
                             '("a" "b"))
                     '("x" "y") nil nil nil nil)))
      (cl-letf (((symbol-function 'gemini-companion-server-info)
                 (lambda () '(:pid 1)))
                ((symbol-function 'gemini-companion-server-ask)
                 (lambda (_method _args done &optional _failed)
                   (gemini-companion-text-write "a" "1\n")
                   (gemini-companion-text-write "b" "1\n")
                   (funcall done nil)
                   t)))
        (gemini-companion-step-do
         (gemini-companion-step-make
          :kind 'several :on t :edit unmarked
          :hunks (gemini-companion-unmarked-files unmarked)))))))

(ert-deftest gemini-companion-invariants-find-what-the-trash-does-not-have ()
  (gemini-companion-invariants-test-finds "The trash does not have .*/a"
      '(("a" "1\n2\n3\n"))
    (cl-letf (((symbol-function 'move-file-to-trash) #'delete-file))
      (gemini-companion-trash-delete (expand-file-name "a")))))

(ert-deftest gemini-companion-invariants-find-a-deletion-past-the-trash ()
  (gemini-companion-invariants-test-finds "/new was deleted past the trash"
      '(("a" "1\n2\n3\n"))
    (gemini-companion-test-writes "new" "x\n" session)
    (cl-letf (((symbol-function 'gemini-companion-trash-delete)
               (lambda (file &rest _) (delete-file file))))
      (gemini-companion-test-answering #'always
        (gemini-companion-test-undo-edit (car (gemini-companion-edits)))))))

(ert-deftest gemini-companion-invariants-find-a-known-text-that-was-not-written ()
  (gemini-companion-invariants-test-finds "known text of .* is not what was written"
      '(("a" "1\n2\n3\n"))
    (gemini-companion-test-writes "a" "1\nB\n3\n" session)
    (should-not (gemini-companion-invariants-check))
    (let ((record (car (gemini-companion-changes-files))))
      (setf (gemini-companion-changes-file-lines record)
            (vconcat (gemini-companion-changes-file-lines record) ["4\n"]))
      (run-hook-with-args 'gemini-companion-edit-file-functions
                          (gemini-companion-changes-file-edit record) 'written))))

;; An undo whose buffer was killed without a save was taken back by an error of Lisp.
(ert-deftest gemini-companion-invariants-hold-for-a-step-that-changes-nothing ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n"))
    (gemini-companion-test-writes "a" "1\nB\n3\n" session)
    (let* ((record (car (gemini-companion-changes-files)))
           (step (gemini-companion-step-make
                  :kind 'undone :on nil :record record
                  :hunks (gemini-companion-record-change-hunks
                          (car (gemini-companion-changes-update record))))))
      (should-not (gemini-companion-step-do step)))))

(ert-deftest gemini-companion-invariants-are-in-the-log-without-a-text ()
  (gemini-companion-invariants-test-finds "a are not the changes"
      '(("a" "1\n2\n3\n"))
    (find-file "a")
    (overlay-put (make-overlay 1 2) 'gemini-companion-change t)
    (gemini-companion-test-writes "a" "1\nsecret\n3\n" session)
    (gemini-companion-events-buffer)
    (with-current-buffer "*gemini-companion events*"
      (dolist (event '(" .. written " " .. look " " !! invariants "))
        (should (string-search event (buffer-string))))
      (should-not (string-search "secret" (buffer-string)))
      (kill-buffer))))

(ert-deftest gemini-companion-invariants-are-in-the-log-after-the-command ()
  (gemini-companion-invariants-test-finds "is not kept"
      '(("a" "secret\n"))
    (let ((file (expand-file-name "a")))
      (gemini-companion-watch-writing file
        (delete-file file)))
    (run-hooks 'post-command-hook)
    (gemini-companion-events-buffer)
    (with-current-buffer "*gemini-companion events*"
      (should (string-match-p " !! invariants .* is not kept" (buffer-string)))
      (should-not (string-search "secret" (buffer-string)))
      (kill-buffer))))

(provide 'gemini-companion-invariants-test)
;;; gemini-companion-invariants-test.el ends here
