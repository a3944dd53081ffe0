;;; gemini-companion-stale-test.el --- Tests of reviews that became pointless  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Files that come to hold what was proposed, by another hand.

;;; Code:

(require 'gemini-companion-auto)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-diff)

(defmacro gemini-companion-stale-test-with (files &rest body)
  "Watch the files of proposals while BODY is run in a folder with FILES.
`outcomes' holds what was told, `views' how many views there are."
  (declare (indent 1) (debug t))
  `(let ((inhibit-message t)
         (views 0)
         outcomes)
     (gemini-companion-test-with-diffs ,files
         (progn
           (gemini-companion-diff-start
            (lambda (&rest _)
              (cl-incf views)
              (lambda (&rest _) (cl-decf views)))
            (lambda (diff) (push diff outcomes)))
           (gemini-companion-diff-watch))
         (gemini-companion-diff-unwatch)
       ,@body)))

(defun gemini-companion-stale-test-open (file text)
  "Return a new diff that proposes TEXT for FILE."
  (gemini-companion-test-open file text (random 1000)))

(defun gemini-companion-stale-test-write (file text)
  "Make TEXT the content of FILE, with another time than before."
  (let ((coding-system-for-write 'utf-8-unix))
    (write-region text nil file nil 'silent))
  (set-file-times file (time-add nil (random 100000))))

(ert-deftest gemini-companion-stale-dismisses-what-was-written-by-itself ()
  (pcase-dolist (`(,old ,proposal ,written)
                 '(("old\n" "new\n" "new\n")
                   ("o\r\n" "n\nm\n" "n\r\nm\r\n")
                   ("o" "é\n" "\uFEFFé\n")
                   ("old\n" "" "")))
    (gemini-companion-stale-test-with (list (list "a" old))
      (let ((diff (gemini-companion-stale-test-open "a" proposal)))
        (gemini-companion-test-eventually (= 1 views))
        (gemini-companion-stale-test-write "a" written)
        (gemini-companion-test-eventually
          (gemini-companion-test-run-timers)
          (zerop views))
        (should (eq 'dismissed (gemini-companion-diff-state diff)))
        (should-not outcomes)
        (should-not (gemini-companion-test-timers))))))

(ert-deftest gemini-companion-stale-leaves-other-changes-to-the-person ()
  (gemini-companion-stale-test-with '(("a" "old\n") ("same" "same\n"))
    (let ((diffs (list (gemini-companion-stale-test-open "a" "new\n")
                       (gemini-companion-stale-test-open "same" "same\n")
                       (gemini-companion-stale-test-open "none" "n\n"))))
      (gemini-companion-stale-test-write "a" "newer\n")
      (gemini-companion-test-run-timers)
      (delete-file "a")
      (gemini-companion-test-run-timers)
      (should (equal diffs (gemini-companion-diffs)))
      ;; That is what it waits for.
      (gemini-companion-stale-test-write "a" "new\n")
      (gemini-companion-test-run-timers)
      (should (equal (cdr diffs) (gemini-companion-diffs))))))

(ert-deftest gemini-companion-stale-keeps-what-the-person-wrote ()
  (gemini-companion-stale-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-stale-test-open "a" "new\n")))
      (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
        (insert "mine "))
      (gemini-companion-stale-test-write "a" "new\n")
      (gemini-companion-test-run-timers)
      (should-not (gemini-companion-diffs))
      (should (equal "mine new\n" (gemini-companion-test-last-proposal))))))

(ert-deftest gemini-companion-stale-brings-the-buffer-up-to-date ()
  (gemini-companion-stale-test-with '(("a" "old\n"))
    (with-current-buffer (find-file-noselect (expand-file-name "a"))
      (gemini-companion-stale-test-open "a" "new\n")
      (gemini-companion-stale-test-write "a" "new\n")
      (gemini-companion-test-run-timers)
      (gemini-companion-test-eventually (equal "new\n" (buffer-string)))
      (should (verify-visited-file-modtime)))))

(ert-deftest gemini-companion-stale-watches-only-while-something-waits ()
  (gemini-companion-stale-test-with '(("a" "old\n"))
    (gemini-companion-test-eventually (not (gemini-companion-test-timers)))
    (let ((diff (gemini-companion-stale-test-open "a" "new\n")))
      (gemini-companion-test-eventually (= 1 views))
      (should (equal 1 (length (gemini-companion-test-timers))))
      (gemini-companion-diff-reject diff)
      (gemini-companion-test-eventually
        (not (gemini-companion-test-timers))))))

;;;; Files that change otherwise

(defmacro gemini-companion-stale-test-with-reviews (files &rest body)
  "Show and watch proposals while BODY is run in a folder with FILES.
`asked' is how often a confirmation was asked for, which is given
if `answer' is non-nil."
  (declare (indent 1) (debug t))
  `(let ((asked 0)
         (answer nil))
     (gemini-companion-test-with-reviews ,files
       (cl-letf (((symbol-function 'yes-or-no-p)
                  (lambda (_) (cl-incf asked) answer)))
         (gemini-companion-diff-watch)
         (unwind-protect (progn ,@body)
           (gemini-companion-diff-unwatch))))))

(defun gemini-companion-stale-test-remark-p (remark)
  "Return non-nil if REMARK is in the header line of the unified diff."
  (string-search remark (gemini-companion-test-header
                         (gemini-companion-diff-main
                          (car (gemini-companion-diffs))))))

(ert-deftest gemini-companion-stale-compares-a-changed-file-again ()
  (dolist (view '(ediff diff))
    (gemini-companion-stale-test-with-reviews '(("a" "1\n2\n3\n4\n5\n"))
      (let* ((gemini-companion-review-view view)
             (diff (gemini-companion-test-show "a" "1\n2\n3\n4\nfive\n"))
             (proposal (gemini-companion-diff-proposal-buffer diff)))
        (with-current-buffer proposal
          (goto-char (point-max))
          (insert "mine\n"))
        (gemini-companion-stale-test-write "a" "one\n2\n3\n4\n5\n")
        (gemini-companion-test-eventually
          (equal "one\n2\n3\n4\n5\n"
                 (gemini-companion-test-text "*gemini original: a*")))
        (should (equal "1\n2\n3\n4\nfive\nmine\n"
                       (gemini-companion-diff-proposal-text diff)))
        (gemini-companion-test-eventually
          (pcase view
            ('ediff (eql 2 (buffer-local-value
                            'ediff-number-of-differences
                            (get-buffer "*Ediff Control Panel*"))))
            ('diff (string-match-p
                    "^-one$" (gemini-companion-test-text
                              "*gemini diff: a*")))))
        (should (string-search
                 "file changed since it was proposed"
                 (gemini-companion-test-header
                  (if (eq view 'diff)
                      "*gemini diff: a*"
                    "*gemini original: a*"))))))))

(ert-deftest gemini-companion-stale-asks-before-a-change-is-undone ()
  (pcase-dolist (`(,written ,accepted ,asks)
                 '(("one\n2\n3\n4\n5\n" "1\n2\n3\n4\nfive\n" t)
                   ("one\n2\n3\n4\n5\n" "one\n2\n3\n4\nfive\n" nil)
                   ("1\n2\n3\n4\n5\n" "1\n2\n3\n4\nfive\n" nil)
                   ("1\n2\n3\n4\nFive\n" "1\n2\n3\n4\nfive\n" t)
                   (nil "1\n2\n3\n4\nfive\n" t)))
    (ert-info ((format "%S, %S" written accepted))
      (gemini-companion-stale-test-with-reviews '(("a" "1\n2\n3\n4\n5\n"))
        (let ((diff (gemini-companion-test-show "a" "1\n2\n3\n4\nfive\n")))
          (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
            (erase-buffer)
            (insert accepted))
          (if written
              (gemini-companion-stale-test-write "a" written)
            (delete-file "a"))
          ;; At once, before the next look at the file.
          (gemini-companion-diff-accept diff)
          (should (eql (if asks 1 0) asked))
          (when asks
            (should-not outcomes)
            (setq answer t)
            (gemini-companion-diff-accept diff))
          (should (equal (list (list 1 'accepted accepted)) outcomes)))))))

(ert-deftest gemini-companion-stale-asks-about-what-was-never-shown ()
  (gemini-companion-stale-test-with-reviews '(("a" "old\n"))
    (let* ((gemini-companion-review-arrival 'notify)
           (gemini-companion-review-view 'diff)
           (diff (gemini-companion-test-open "a" "new\n")))
      (gemini-companion-stale-test-write "a" "saved\n")
      (gemini-companion-diff-accept diff)
      (should (equal '(1 nil) (list asked outcomes)))
      (gemini-companion-diff-view diff)
      (should (gemini-companion-stale-test-remark-p "file changed")))))

(ert-deftest gemini-companion-stale-change-is-not-undone-without-review ()
  (gemini-companion-stale-test-with-reviews '(("a" "old\n"))
    (let ((gemini-companion-review-arrival 'notify)
          (diff (gemini-companion-test-open "a" "new\n")))
      (gemini-companion-stale-test-write "a" "saved\n")
      (gemini-companion-test-eventually (gemini-companion-diff-changed diff))
      (gemini-companion-auto-start)
      (unwind-protect
          (progn
            (gemini-companion-auto-accept (gemini-companion-diff-session diff))
            (should (equal (list diff) (gemini-companion-diffs))))
        (gemini-companion-auto-stop)))))

(ert-deftest gemini-companion-stale-follows-whether-the-buffer-is-saved ()
  (gemini-companion-stale-test-with-reviews '(("a" "old\n"))
    (let ((gemini-companion-review-view 'diff)
          (buffer (find-file-noselect (expand-file-name "a"))))
      (with-current-buffer buffer
        (insert "mine "))
      (gemini-companion-test-show "a" "new\n")
      (should (gemini-companion-stale-test-remark-p "unsaved changes here"))
      (with-current-buffer buffer
        (set-buffer-modified-p nil))
      (gemini-companion-test-eventually
        (not (gemini-companion-stale-test-remark-p "unsaved changes here")))
      (with-current-buffer buffer
        (insert "more "))
      (gemini-companion-test-eventually
        (gemini-companion-stale-test-remark-p "unsaved changes here")))))

;;; gemini-companion-stale-test.el ends here
