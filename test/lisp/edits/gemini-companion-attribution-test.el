;;; gemini-companion-attribution-test.el --- Tests of what became of files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-attribution)
(require 'gemini-companion-edit-test-helper)
(eval-and-compile
  (when (gemini-companion-part-load 'addon-changes)
    (require 'gemini-companion-changes-test-helper)))
(require 'gemini-companion-undo nil t)
(require 'gemini-companion-edit-test-helper)
(require 'gemini-companion-review-test-helper)

;;;; Edits that were not written

;; A minute later, the overview said "unwritten", as a warning.
(ert-deftest gemini-companion-attribution-expects-no-write-of-what-was-refused ()
  (gemini-companion-edit-test-with '(("a" "old\n") ("b" "old\n"))
    (let ((rejected (gemini-companion-test-open "a" "new\n" 1))
          (closed (gemini-companion-test-open "b" "new\n" 2)))
      (gemini-companion-edit-reject rejected)
      (gemini-companion-server-receive 'close-diff 2 'closed)
      (should (equal '(rejected dismissed)
                     (gemini-companion-edit-test-ends rejected closed)))
      (should-not (gemini-companion-edit-file-state rejected))
      (should-not (gemini-companion-edit-file-state closed)))))

(ert-deftest gemini-companion-attribution-reports-edits-that-were-not-written-once ()
  (dolist
      (end
       (list
        ;; Gemini CLI, answered in its terminal: the review ends first.
        (lambda (_diff written)
          (gemini-companion-server-receive 'close-diff 1 'closed)
          (gemini-companion-test-rewrite "a" written))
        ;; Qwen Code, answered in its terminal: the file is written first.
        (lambda (_diff written)
          (gemini-companion-test-rewrite "a" written)
          (gemini-companion-server-receive 'close-diff 1 'closed))
        ;; Any of them, answered here.
        (lambda (diff written)
          (gemini-companion-edit-accept diff)
          (gemini-companion-test-rewrite "a" written))))
    (pcase-dolist (`(,written ,edit ,count)
                   '(("new\n" t 1) ("new\n" nil 0) ("mine new\n" t 0)
                     ("mine new" t 0) ("mine new\r\n" t 0)
                     ;; By the user, after a no.
                     ("saved\n" t 0)))
      (gemini-companion-edit-test-with '(("a" "old\n"))
        (let ((diff (if edit
                        (gemini-companion-edit-test-edited)
                      (gemini-companion-test-open "a" "new\n"))))
          (should (= count
                     (seq-count
                      (apply-partially #'string-search
                                       "written without your edits")
                      (gemini-companion-test-messages
                        (funcall end diff written)
                        (gemini-companion-test-in-the-end
                          (not (gemini-companion-test-timers)))))))
          (when (< 0 count)
            (should (equal "mine new\n"
                           (car kill-ring)))))))))

;;;; Reports and reverts

(ert-deftest gemini-companion-attribution-has-what-the-terminal-let-overwrite ()
  (gemini-companion-test-needs-add-on 'changes)
  (gemini-companion-test-with-edits '(("a" "A\n") ("b" "B\n") ("c" "C\n"))
    (with-current-buffer (gemini-companion-edit-proposal-buffer
                          (gemini-companion-test-open "a" "1\n" 1 session))
      (insert "mine"))
    (gemini-companion-test-open "b" "2\n" 2 session)
    ;; Qwen Code writes its text before it closes the diff, Gemini CLI after that.
    (gemini-companion-test-write "a" "1\n")
    (gemini-companion-test-write "b" "saved meanwhile\n")
    (gemini-companion-server-receive 'close-diff 1 'closed)
    (gemini-companion-server-receive 'close-diff 2 'disconnected)
    (should (equal '(("a" accepted "A\n" "1\n")
                     ("b" dismissed "saved meanwhile\n" "2\n"))
                   (gemini-companion-edits-test-reported)))
    (should-not (gemini-companion-undo-unwritten (car (gemini-companion-edits))))
    (gemini-companion-test-write "b" "2\n")
    (gemini-companion-test-eventually
      (equal '("b" accepted "saved meanwhile\n" "2\n")
             (cadr (gemini-companion-edits-test-reported))))
    ;; A yes there may cross a no here, and two CLIs may propose the same.
    (gemini-companion-edit-reject (gemini-companion-test-open "c" "3\n" 3 session))
    (gemini-companion-test-write "c" "3\n")
    (let* ((refused (gemini-companion-test-open "d" "5\n" 5 session))
           (other (progn (gemini-companion-edit-reject refused)
                         (gemini-companion-test-arrive "d" "4\n" 4
                                                       (gemini-companion-session-make
                                                        :id "other"))))
           (events nil)
           (gemini-companion-edit-file-functions
            (cons (lambda (edit event) (push (list edit event) events))
                  gemini-companion-edit-file-functions)))
      (gemini-companion-test-accept "d" "4\n" 6 session)
      (gemini-companion-test-eventually (gemini-companion-edit-answer other))
      (gemini-companion-test-in-the-end (not (gemini-companion-test-timers)))
      (should (equal '(unreviewed rejected dismissed accepted)
                     (nthcdr 2 (gemini-companion-edits-test-states))))
      ;; The marks of earlier turns go then.
      (should-not (member (list refused 'written) events))
      (should-error (gemini-companion-undo-edits (list other)) :type 'user-error))))

(ert-deftest gemini-companion-attribution-of-what-others-take-away-is-gone ()
  (gemini-companion-test-needs-add-on 'changes)
  (gemini-companion-test-with-changes '(("a" "1\n2\n") ("b" "1\n2\n"))
    (gemini-companion-test-writes "a" "one\n2\n" session)
    (gemini-companion-test-writes "b" "one\n2\n" session)
    (gemini-companion-test-writes "new" "x\n" session)
    (gemini-companion-test-rewrite "a" "1\n2\n")
    (gemini-companion-test-undo-edit (nth 1 (gemini-companion-edits)))
    (delete-file "new")
    (should (equal '(gone undone gone) (gemini-companion-edits-test-states)))
    (should (equal "gone" (gemini-companion-edit-word 'gone)))))

(ert-deftest gemini-companion-attribution-follows-what-becomes-of-its-file ()
  (gemini-companion-test-needs-add-on 'changes)
  (gemini-companion-test-with-changes '(("c" "A\n"))
    (make-symbolic-link "target" "new")
    ;; From A to B, C and B: without the first, none of them is in the file.
    (pcase-dolist (`(,file . ,reverted) '(("c" 0) ("new" 3) ("newer" 8 7 6)))
      (dolist (text '("B\n" "C\n" "B\n"))
        (gemini-companion-test-accept file text 3 session))
      (find-file-noselect file) ; of a new file, it is killed
      (gemini-companion-test-answering #'always
        (dolist (index reverted)
          (gemini-companion-test-undo-edit (nth index (gemini-companion-edits))))))
    (should (equal "A\n" (gemini-companion-test-file-text "c")))
    (should-not (file-exists-p "target"))
    ;; It may be noticed only now that they were written.
    (gemini-companion-test-in-the-end (not (gemini-companion-test-timers)))
    (should (equal "A\n" (gemini-companion-test-file-text "c")))
    (should (equal (make-list 9 'undone) (gemini-companion-edits-test-states)))))

(ert-deftest gemini-companion-attribution-edit-refused-is-not-what-the-next-turn-writes ()
  (gemini-companion-test-needs-add-on 'changes)
  ;; Emacs may see the file before the report, or after it.
  (dolist (order '((file report) (report file)))
    (ert-info ((format "%s" order))
      (gemini-companion-test-with-edits '(("a" "A\n"))
        (let ((begin (lambda ()
                       (setf (gemini-companion-session-turn session)
                             (gemini-companion-turn-make :reported t)))))
          (with-current-buffer (find-file-noselect "a")
            (funcall begin)
            (gemini-companion-test-open "a" "1\n" 1 session)
            (gemini-companion-server-receive 'close-diff 1 'closed)
            (funcall begin)
            (dolist (event order)
              (if (eq event 'report)
                  (gemini-companion-reported-write session buffer-file-name
                                                   "A\n" "1\n")
                (gemini-companion-test-write "a" "1\n")
                (gemini-companion-test-eventually
                  (equal "1\n" (buffer-string)))))
            (should (equal '(dismissed unreviewed)
                           (gemini-companion-edits-test-states)))
            (gemini-companion-test-undo-edit (cadr (gemini-companion-edits)))
            (should (equal '(dismissed undone)
                           (gemini-companion-edits-test-states)))
            (kill-buffer)))))))

;;;; Who has written the file

(ert-deftest gemini-companion-attribution-edit-that-the-user-saves-over-is-not-written ()
  "Qwen Code refuses to write a file that has changed since it read it."
  (gemini-companion-test-needs-add-on 'changes)
  (dolist (format '(nil after-save later))
    (ert-info ((format "formatted %s" format))
      (gemini-companion-test-with-edits '(("a" "1\n2\n3\n") ("b" "B\n"))
        (setq gemini-companion-test-send #'ignore)
        (let ((first (gemini-companion-test-accept "a" "1\nzwei\n3\n" 1 session))
              (second (gemini-companion-test-open "b" "new\n" 2 session)))
          (with-current-buffer (find-file-noselect "a")
            (when (eq format 'after-save)
              ;; A program that the user calls.
              (add-hook 'after-save-hook
                        (lambda ()
                          (gemini-companion-test-write "a" "1\n2\n3 \n")
                          (revert-buffer t t t))
                        90 t))
            (gemini-companion-edit-test-save "a" "1\n2\n3\nmine\n")
            (when (eq format 'later)
              ;; As Apheleia does.
              (gemini-companion-test-write "a" "1\nTWO\n3 \n")
              (set-visited-file-modtime)))
          (dotimes (_ 5)
            (gemini-companion-test-run-timers))
          (should-not (gemini-companion-edit-file-state first))
          (should-error (gemini-companion-undo-edits (list first)) :type 'user-error)
          (gemini-companion-edit-accept second)
          (gemini-companion-test-write "b" "new\n")
          (should (seq-some
                   (apply-partially #'string-search "a was accepted but was not")
                   (gemini-companion-test-messages
                     (should (equal '(unwritten accepted)
                                    (gemini-companion-edit-test-ends
                                     first second)))))))))))

(ert-deftest gemini-companion-attribution-edit-is-written-before-the-user-saves-over-it ()
  (dolist (how '(save auto-revert visit))
    (ert-info ((symbol-name how))
      (gemini-companion-test-with-edits '(("a" "1\n2\n3\n"))
        (setq gemini-companion-test-send #'ignore)
        (unless (eq how 'visit)
          (find-file-noselect "a"))
        (let ((edit (gemini-companion-test-open "a" "1\nzwei\n3\n" 1 session)))
          ;; A yes in its terminal crosses that.
          (gemini-companion-edit-reject edit)
          (gemini-companion-test-write "a" "1\nzwei\n3\n")
          (pcase how
            ('save (gemini-companion-edit-test-save "a" "1\n2\n3\nmine\n"))
            ('auto-revert (with-current-buffer "a" (revert-buffer t t t)))
            ('visit (find-file-noselect "a")))
          (should (equal '(unreviewed) (gemini-companion-edit-test-ends edit))))))))

(ert-deftest gemini-companion-attribution-edit-refused-is-not-what-emacs-writes ()
  (gemini-companion-test-needs-add-on 'changes)
  (gemini-companion-test-with-edits '(("a" "A\n"))
    ;; Typed and saved by the user, also during the review.
    (let ((edit (gemini-companion-test-open "a" "1\n" 1 session)))
      (gemini-companion-edit-reject edit)
      (gemini-companion-edit-test-save "a" "1\n")
      (should (equal '(rejected) (gemini-companion-edit-test-ends edit))))
    (let ((edit (gemini-companion-test-arrive "a" "2\n" 2 session)))
      (gemini-companion-edit-test-save "a" "2\n")
      (gemini-companion-test-in-the-end (gemini-companion-edit-answer edit))
      (should (equal '(dismissed) (gemini-companion-edit-test-ends edit))))
    ;; Reverted in Emacs.
    (let ((written (gemini-companion-test-accept "a" "3\n" 3 session))
          (refused (gemini-companion-test-open "a" "2\n" 4 session)))
      (gemini-companion-server-receive 'close-diff 4 'closed)
      (gemini-companion-test-undo-edit written)
      (should (equal '(undone dismissed)
                     (gemini-companion-edit-test-ends written refused))))))

(ert-deftest gemini-companion-attribution-edit-refused-is-not-what-another-cli-writes ()
  (dolist (first '(accept reject))
    (gemini-companion-test-with-edits '(("a" "A\n") ("b" "B\n"))
      (setq gemini-companion-test-send #'ignore)
      (let* ((other (gemini-companion-test-session "two" 2))
             (accepted (gemini-companion-test-open "a" "1\n" 1 other))
             (refused (gemini-companion-test-open "a" "1\n" 2 session)))
        ;; It waits for another answer, as Qwen Code does.
        (gemini-companion-test-open "b" "1\n" 3 other)
        (if (eq first 'accept)
            (progn (gemini-companion-edit-accept accepted)
                   (gemini-companion-edit-reject refused))
          (gemini-companion-edit-reject refused)
          (gemini-companion-edit-accept accepted))
        (gemini-companion-edit-accept (car (gemini-companion-edits-open)))
        (gemini-companion-test-write "a" "1\n")
        (should (equal '(accepted rejected)
                       (gemini-companion-edit-test-ends accepted refused)))))))

(ert-deftest gemini-companion-attribution-edit-is-not-written-where-the-file-is-the-same ()
  (dolist (change (list (lambda () (set-file-times "a"))
                        (lambda ()
                          (gemini-companion-test-rewrite "a" "1\r\n2\r\n3\r\n"))))
    (gemini-companion-test-with-edits '(("a" "1\n2\n3\n"))
      (setq gemini-companion-test-send #'ignore)
      (let ((edit (gemini-companion-test-accept "a" "eins\n2\n3\n" 1 session)))
        (funcall change)
        (should (equal '(unwritten) (gemini-companion-edit-test-ends edit)))))))

(ert-deftest gemini-companion-attribution-text-of-several-edits-is-of-the-first ()
  (pcase-dolist
      (`(,written ,expected ,one-of)
       '((("A\n2\n3\n") (accepted unwritten unwritten) nil)
         (("same\n2\n3\n") (unwritten accepted unwritten) nil)
         ;; Qwen Code writes the files of an answer at its end, and merges the edits.
         (("A\n2\nmine C\n") (accepted accepted accepted) (t t t))
         (("A\n2\n3\n" "A\n2\nmine C\n") (accepted accepted accepted) (nil t t))))
    (ert-info ((format "%S" written))
      (gemini-companion-test-with-edits '(("a" "1\n2\n3\n"))
        (setq gemini-companion-test-send #'ignore)
        (let ((edits (list (gemini-companion-test-accept "a" "A\n2\n3\n" 1 session)
                           (gemini-companion-test-open "a" "same\n2\n3\n" 2 session))))
          (should (gemini-companion-attribution-follows-p (cadr edits)))
          (gemini-companion-edit-accept (cadr edits))
          (push (gemini-companion-test-open "a" "same\n2\n3\n" 3 session) (cddr edits))
          (with-current-buffer (gemini-companion-edit-proposal-buffer (nth 2 edits))
            (goto-char (point-max))
            (insert "mine\n"))
          (gemini-companion-edit-accept (nth 2 edits))
          (dolist (text written)
            (gemini-companion-test-write "a" text)
            (dotimes (_ 3)
              (gemini-companion-test-run-timers)))
          (should (equal expected (apply #'gemini-companion-edit-test-ends edits)))
          (should (equal one-of
                         (and one-of
                              (mapcar (lambda (edit)
                                        (and (memq 'one-of (gemini-companion-edit-remarks
                                                            edit))
                                             t))
                                      edits))))
          ;; What the user has typed is nowhere else.
          (should (equal '("same\n2\n3\nmine\n") kill-ring)))))))

;;; gemini-companion-attribution-test.el ends here
