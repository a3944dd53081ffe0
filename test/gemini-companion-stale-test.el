;;; gemini-companion-stale-test.el --- Tests of reviews that became pointless  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Files that come to hold what was proposed, by another hand.

;;; Code:

(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-stale)

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
           (gemini-companion-stale-start))
         (gemini-companion-stale-stop)
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

;;; gemini-companion-stale-test.el ends here
