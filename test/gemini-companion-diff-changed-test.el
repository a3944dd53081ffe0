;;; gemini-companion-diff-changed-test.el --- Tests of changed files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-diff)

(defmacro gemini-companion-diff-changed-test-with (files &rest body)
  "Watch the files of proposals while BODY is run in a directory with FILES.
`outcomes' has the sent outcomes, `views' the number of views."
  (declare (indent 1) (debug t))
  `(let ((inhibit-message t)
         (views 0)
         outcomes)
     (gemini-companion-test-with-diffs ,files
         (gemini-companion-test-diff-start
          (lambda (&rest _)
            (cl-incf views)
            (lambda () (cl-decf views)))
          (lambda (diff) (push diff outcomes)))
         nil
       ,@body)))

(defun gemini-companion-diff-changed-test-open (file text)
  "Return a new diff that proposes TEXT for FILE."
  (gemini-companion-test-open file text (random 1000)))

(defun gemini-companion-diff-changed-test-write (file text)
  "Make TEXT the content of FILE, with another time than before."
  (gemini-companion-test-write file text)
  (set-file-times file (time-add nil (random 100000))))

(ert-deftest gemini-companion-diff-changed-dismisses-what-was-written-by-itself ()
  (pcase-dolist (`(,old ,proposal ,written ,visible)
                 '(("old\n" "new\n" "new\n" "new\n")
                   ("o\r\n" "n\nm\n" "n\r\nm\r\n" "n\nm\n")
                   ("o" "é\n" "\uFEFFé\n" "é\n")
                   ("old\n" "" "" "")))
    (gemini-companion-diff-changed-test-with (list (list "a" old))
      (let ((diff (gemini-companion-diff-changed-test-open "a" proposal)))
        (with-current-buffer (find-file-noselect "a")
          (gemini-companion-test-eventually (= 1 views))
          (gemini-companion-diff-changed-test-write "a" written)
          (gemini-companion-test-eventually
            (gemini-companion-test-run-timers)
            (zerop views))
          (gemini-companion-test-eventually (equal visible (buffer-string)))
          (should (verify-visited-file-modtime)))
        (should (eq 'dismissed (gemini-companion-diff-state diff)))
        (should-not outcomes)
        (gemini-companion-test-eventually
          (not (gemini-companion-test-timers)))))))

(ert-deftest gemini-companion-diff-changed-leaves-other-changes-to-the-user ()
  (gemini-companion-diff-changed-test-with '(("a" "old\n") ("same" "same\n"))
    (let ((diffs (list (gemini-companion-diff-changed-test-open "a" "new\n")
                       (gemini-companion-diff-changed-test-open "same" "same\n")
                       (gemini-companion-diff-changed-test-open "none" "n\n"))))
      (with-current-buffer (gemini-companion-diff-proposal-buffer (car diffs))
        (insert "mine "))
      (gemini-companion-diff-changed-test-write "a" "newer\n")
      (gemini-companion-test-run-timers)
      (delete-file "a")
      (gemini-companion-test-run-timers)
      (should (equal diffs (gemini-companion-diffs)))
      ;; That is what it waits for.
      (gemini-companion-diff-changed-test-write "a" "new\n")
      (gemini-companion-test-run-timers)
      (should (equal (cdr diffs) (gemini-companion-diffs)))
      (should (equal "mine new\n" (gemini-companion-test-last-proposal))))))

;;;; Files that change otherwise

(defmacro gemini-companion-diff-changed-test-with-reviews (files &rest body)
  "Show and watch proposals while BODY is run in a directory with FILES.
`asked' is how often a confirmation was asked for, which is given
if `answer' is non-nil."
  (declare (indent 1) (debug t))
  `(let ((asked 0)
         (answer nil))
     (gemini-companion-test-with-reviews ,files
       (cl-letf (((symbol-function 'yes-or-no-p)
                  (lambda (_) (cl-incf asked) answer)))
         ,@body))))

(defun gemini-companion-diff-changed-test-remark-p (remark)
  "Return non-nil if REMARK is in the header line of the unified diff."
  (string-search remark (gemini-companion-test-header
                         (gemini-companion-review-main
                          (car (gemini-companion-diffs))))))

(ert-deftest gemini-companion-diff-changed-asks-before-a-change-is-overwritten ()
  (pcase-dolist (`(,written ,accepted ,asks)
                 '(("one\n2\n3\n4\n5\n" "1\n2\n3\n4\nfive\n" t)
                   ("one\n2\n3\n4\n5\n" "one\n2\n3\n4\nfive\n" t)
                   ("1\n2\n3\n4\n5\n" "1\n2\n3\n4\nfive\n" nil)
                   ("1\n2\n3\n4\nFive\n" "1\n2\n3\n4\nfive\n" t)
                   (nil "1\n2\n3\n4\nfive\n" t)))
    (ert-info ((format "%S, %S" written accepted))
      (gemini-companion-diff-changed-test-with-reviews '(("a" "1\n2\n3\n4\n5\n"))
        (let ((diff (gemini-companion-test-show "a" "1\n2\n3\n4\nfive\n")))
          (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
            (erase-buffer)
            (insert accepted))
          (if written
              (gemini-companion-diff-changed-test-write "a" written)
            (delete-file "a"))
          ;; At once, before the next check of the file.
          (gemini-companion-diff-accept diff)
          (should (eql (if asks 1 0) asked))
          (when asks
            (should-not outcomes)
            (setq answer t)
            (gemini-companion-diff-accept diff))
          (should (equal (list (list 1 'accepted accepted)) outcomes)))))))

(ert-deftest gemini-companion-diff-changed-asks-about-what-was-never-shown ()
  (dolist (views '((view accept) (accept view)))
    (gemini-companion-diff-changed-test-with-reviews '(("a" "old\n"))
      (let* ((gemini-companion-review-arrival 'notify)
             (gemini-companion-review-view 'diff)
             (diff (gemini-companion-test-open "a" "new\n")))
        (gemini-companion-diff-changed-test-write "a" "saved\n")
        (dolist (step views)
          (if (eq step 'accept)
              (gemini-companion-diff-accept diff)
            (gemini-companion-arrival-view diff)))
        (should (gemini-companion-diff-changed-test-remark-p "file changed"))
        (should (equal '(1 nil) (list asked outcomes)))))))

(ert-deftest gemini-companion-diff-changed-asks-before-another-file-is-written ()
  (gemini-companion-diff-changed-test-with-reviews '(("a" "old\n") ("b" "old\n"))
    (let ((diff (gemini-companion-test-show "a" "new\n")))
      (delete-file "a")
      (make-symbolic-link "b" "a")
      (gemini-companion-diff-accept diff)
      (should (equal '(1 nil) (list asked outcomes)))
      (should (gemini-companion-diff-changed-test-remark-p
               "b (by the symbolic link a)"))
      (setq answer t)
      (gemini-companion-diff-accept diff)
      (should (equal (list (list 1 'accepted "new\n")) outcomes)))))

;;;; Edits that were not written

(defun gemini-companion-diff-changed-test-edit (diff)
  "Edit the proposal of DIFF."
  (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
    (goto-char (point-min))
    (insert "mine ")))

(defconst gemini-companion-diff-changed-test-ends
  (list
   ;; Gemini CLI, answered in its terminal: the review ends first.
   (lambda (_diff written)
     (gemini-companion-diff-close 1 'closed)
     (gemini-companion-diff-changed-test-write "a" written))
   ;; Qwen Code, answered in its terminal: the file is written first.
   (lambda (_diff written)
     (gemini-companion-diff-changed-test-write "a" written)
     (gemini-companion-diff-close 1 'closed))
   ;; Any of them, answered here.
   (lambda (diff written)
     (gemini-companion-diff-accept diff)
     (gemini-companion-diff-changed-test-write "a" written)))
  "The ways in which a review ends and its file is written.")

(defun gemini-companion-diff-changed-test-told (end written edit)
  "Return how often lost edits are reported after END.
The proposal is edited if EDIT, and the file then has WRITTEN."
  (gemini-companion-diff-changed-test-with '(("a" "old\n"))
    (let* ((diff (gemini-companion-test-open "a" "new\n" 1))
           (count 0))
      (when edit
        (gemini-companion-diff-changed-test-edit diff))
      (setq count (seq-count
                   (apply-partially #'string-search "written without your edits")
                   (gemini-companion-test-messages
                     (funcall end diff written)
                     (gemini-companion-test-eventually
                       (gemini-companion-test-run-timers)
                       (not (gemini-companion-test-timers))))))
      (when (< 0 count)
        (should (equal "mine new\n" (gemini-companion-test-last-proposal))))
      count)))

(ert-deftest gemini-companion-diff-changed-reports-edits-that-were-not-written-once ()
  (dolist (end gemini-companion-diff-changed-test-ends)
    (pcase-dolist (`(,written ,edit ,count)
                   '(("new\n" t 1) ("new\n" nil 0) ("mine new\n" t 0)
                     ("mine new" t 0) ("mine new\r\n" t 0)))
      (should (= count (gemini-companion-diff-changed-test-told
                        end written edit))))))

;;; gemini-companion-diff-changed-test.el ends here
