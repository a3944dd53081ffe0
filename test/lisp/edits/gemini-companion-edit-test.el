;;; gemini-companion-edit-test.el --- Tests of the list of edits  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-attribution)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-test-helper)
(require 'gemini-companion-part)

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
        (mapc #'gemini-companion-edit-accept (gemini-companion-edits-open))
        (setq now (+ now 59))
        (gemini-companion-test-open "c" "3\n" 3 session)
        (should (equal '(0 0 0) (funcall turns)))
        (gemini-companion-edit-reject (car (gemini-companion-edits-open)))
        (setq now (+ now 61))
        (gemini-companion-test-open "a" "4\n" 4 other)
        (should (equal '(0 0 0 3) (funcall turns)))
        (gemini-companion-test-open "a" "5\n" 5 session)
        (should (equal '(0 0 0 3 4) (funcall turns)))))))

(ert-deftest gemini-companion-edits-keeps-a-hundred-and-forgets-at-the-end ()
  (gemini-companion-test-needs-add-on 'changes)
  (gemini-companion-test-with-edits nil
    (let ((open (gemini-companion-test-open "open" "x\n" 1 session)))
      (dotimes (i 105)
        (gemini-companion-reported-write session (format "/f%d" i) nil "x\n"))
      (pcase-let ((`(,first . ,others) (gemini-companion-edits)))
        (should (eq open first))
        (should (= 100 (length others)))
        (should (equal "/f5" (gemini-companion-edit-file (car others)))))
      (dotimes (_ 20)
        (gemini-companion-reported-write session "/large" nil
                                         (make-string (* 4 1024 1024) ?x)))
      (should (> 12 (length (gemini-companion-edits))))
      (gemini-companion-proposal-decide-all 'rejected 'now))
    (gemini-companion-part-stop 'edit)
    (should-not (gemini-companion-edits))))

(ert-deftest gemini-companion-edit-status-combines-answer-and-file-state ()
  (pcase-dolist (`(,answer ,state ,status ,written)
                 '((nil nil pending nil) (accepted nil accepted t)
                   (automatic nil automatic t) (accepted written accepted t)
                   (accepted unwritten unwritten nil)
                   (automatic unwritten unwritten nil)
                   (rejected nil rejected nil)
                   (rejected written unreviewed t) (dismissed nil dismissed nil)
                   (dismissed written accepted t)
                   (unreviewed written unreviewed t)))
    (let ((edit (gemini-companion-edit-make :file "/a" :answer answer
                                            :file-state state)))
      (ert-info ((format "%s %s" answer state))
        (should (eq status (gemini-companion-edit-status edit)))
        (should (eq written (and (gemini-companion-edit-written-p edit) t)))))))

(ert-deftest gemini-companion-edit-knows-the-others-of-its-file ()
  (gemini-companion-test-with-edits '(("a" "A\n") ("b" "B\n"))
    (make-symbolic-link "a" "link")
    (let ((edits (seq-map-indexed
                  (lambda (file id)
                    (gemini-companion-test-open file "new\n" id session))
                  '("a" "b" "link"))))
      (should (equal (list (nth 2 edits))
                     (gemini-companion-edit-others-of-file (car edits))))
      (should-not (gemini-companion-edit-others-of-file (cadr edits))))))

;;; gemini-companion-edit-test.el ends here
