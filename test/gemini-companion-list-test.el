;;; gemini-companion-list-test.el --- Tests of the list of reviews  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the list tells, and that it follows the diffs.

;;; Code:

(require 'gemini-companion-list)
(require 'gemini-companion-review-test-helper)

(defmacro gemini-companion-list-test-with (files &rest body)
  "List proposals while BODY is run in a folder with FILES.
`outcomes' holds what was told, the last one first."
  (declare (indent 1) (debug t))
  `(let ((inhibit-message t)
         outcomes)
     (gemini-companion-test-with-diffs ,files
         (progn
           (setq gemini-companion-review-arrival 'notify)
           (gemini-companion-diff-start
            (lambda (&rest _) #'ignore)
            (lambda (diff)
              (push (cons (gemini-companion-diff-id diff)
                          (gemini-companion-diff-state diff))
                    outcomes))))
         (gemini-companion-list-stop)
       ,@body)))

(defun gemini-companion-list-test-open (id session file text)
  "Open a diff ID of SESSION, a number, for FILE with TEXT; return it."
  (gemini-companion-test-open file text id
                              (gemini-companion-test-session
                               (format "s%d" session) session)))

(defun gemini-companion-list-test-cells ()
  "Return the list's cells, a list of lists."
  (with-current-buffer "*gemini reviews*"
    (mapcar (lambda (entry)
              (mapcar (lambda (cell) (if (consp cell) (car cell) cell))
                      (cadr entry)))
            tabulated-list-entries)))

(defun gemini-companion-list-test-lines (file text)
  "Return the cell with the lines changed if FILE gets TEXT."
  (let ((diff (gemini-companion-list-test-open 1 1 file text))
        cell)
    (save-window-excursion
      (gemini-companion-list)
      (gemini-companion-test-eventually
        (string-match-p "[?0-9]"
                        (setq cell (nth 4 (car (gemini-companion-list-test-cells)))))))
    (gemini-companion-diff-reject diff)
    cell))

(defun gemini-companion-list-test-go-to (diff)
  "Move point to the line of DIFF in the list."
  (goto-char (point-min))
  (while (not (eq diff (tabulated-list-get-id)))
    (should (zerop (forward-line)))))

(ert-deftest gemini-companion-list-tells-file-cli-age-lines-and-state ()
  (gemini-companion-list-test-with '(("a" "one\ntwo\n"))
    (let ((diff (gemini-companion-list-test-open 1 77 "sub/a" "x\n"))
          (project (file-name-nondirectory (directory-file-name folder))))
      (setf (gemini-companion-diff-opened diff) (- (float-time) 125))
      (save-window-excursion
        (gemini-companion-list)
        (gemini-companion-test-eventually
          (equal (list (list "sub/a" project (format "%s (77)" project)
                             "2min" "+1 -0" "pending"))
                 (gemini-companion-list-test-cells)))
        (gemini-companion-diff-view diff)
        (gemini-companion-test-eventually
          (equal "shown" (nth 5 (car (gemini-companion-list-test-cells)))))))))

(ert-deftest gemini-companion-list-counts-lines-as-diff-does ()
  (gemini-companion-list-test-with '(("a" "one\ntwo\nthree\n")
                                     ("dos" "one\r\ntwo\r\n")
                                     ("big" ""))
    (should (equal "+1 -1" (gemini-companion-list-test-lines
                            "a" "two\nthree\none\n")))
    (should (equal "+2 -1" (gemini-companion-list-test-lines
                            "a" "one\n> 2\n< 2\nthree\n")))
    (should (equal "+0 -0" (gemini-companion-list-test-lines
                            "dos" "one\ntwo\n")))
    (should (equal "+30000 -0" (gemini-companion-list-test-lines
                                "big" (apply #'concat
                                             (make-list 30000 "line\n")))))
    (should (equal "+1 -0" (gemini-companion-list-test-lines "new" "n\n")))
    (let ((diff-command "no-such-diff"))
      (should (equal "?" (gemini-companion-list-test-lines "a" "b\n"))))))

(ert-deftest gemini-companion-list-follows-what-is-opened-and-answered ()
  (gemini-companion-list-test-with '(("a" "one\n") ("b" "two\n"))
    (save-window-excursion
      (gemini-companion-list)
      (should-not (gemini-companion-list-test-cells))
      (gemini-companion-list-test-open 1 1 "a" "x\n")
      (let ((second (gemini-companion-list-test-open 2 2 "b" "y\n")))
        (gemini-companion-test-eventually
          (= 2 (length (gemini-companion-list-test-cells))))
        (gemini-companion-list-test-go-to second)
        (gemini-companion-list-reject)
        (should (equal '((2 . rejected)) outcomes))
        (gemini-companion-test-eventually
          (= 1 (length (gemini-companion-list-test-cells))))
        (gemini-companion-list-accept)
        (should (equal '((1 . accepted) (2 . rejected)) outcomes))))))

(ert-deftest gemini-companion-list-stays-at-its-line ()
  (gemini-companion-list-test-with '(("a" "one\n") ("b" "two\n"))
    (save-window-excursion
      (let ((first (gemini-companion-list-test-open 1 1 "a" "x\n"))
            (second (gemini-companion-list-test-open 2 2 "b" "y\n")))
        (gemini-companion-list)
        (should (eq first (tabulated-list-get-id)))
        (gemini-companion-list-test-go-to second)
        (gemini-companion-diff-reject first)
        (gemini-companion-test-eventually
          (= 1 (length (gemini-companion-list-test-cells))))
        (should (eq second (tabulated-list-get-id)))))))

(ert-deftest gemini-companion-list-goes-on-with-what-comes-next ()
  (gemini-companion-list-test-with '(("a" "one\n") ("b" "two\n"))
    (save-window-excursion
      (let ((diffs (mapcar (lambda (n)
                             (gemini-companion-list-test-open n n "a" "x\n"))
                           '(1 2 3 4))))
        (gemini-companion-list)
        (gemini-companion-list-test-go-to (nth 1 diffs))
        (pcase-dolist (`(,left ,next) '((3 2) (2 3) (1 0)))
          (gemini-companion-list-accept)
          (gemini-companion-test-eventually
            (= left (length (gemini-companion-list-test-cells))))
          (should (eq (nth next diffs) (tabulated-list-get-id))))))))

(ert-deftest gemini-companion-list-has-one-line-for-each ()
  (gemini-companion-list-test-with nil
    (save-window-excursion
      (gemini-companion-list-test-open 1 1 "a\nb" "x\n")
      (gemini-companion-list)
      (should (= 2 (count-lines (point-min) (point-max)))))))

(ert-deftest gemini-companion-list-accepts-all-of-one-cli ()
  (gemini-companion-list-test-with '(("a" "one\n") ("b" "two\n"))
    (save-window-excursion
      (let ((first (gemini-companion-list-test-open 1 1 "a" "x\n")))
        (gemini-companion-list-test-open 2 2 "b" "y\n")
        (gemini-companion-list-test-open 3 1 "b" "z\n")
        (gemini-companion-list)
        (gemini-companion-list-test-go-to first)
        (cl-letf (((symbol-function 'y-or-n-p) #'always))
          (gemini-companion-list-accept-session))
        (should (equal '((3 . accepted) (1 . accepted)) outcomes))
        (should (= 1 (length (gemini-companion-diffs))))))))

(ert-deftest gemini-companion-list-accepts-those-that-are-left ()
  (gemini-companion-list-test-with '(("a" "one\n") ("b" "two\n"))
    (save-window-excursion
      (gemini-companion-list-test-open 1 1 "a" "x\n")
      (gemini-companion-list-test-open 2 1 "b" "y\n")
      (gemini-companion-list)
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (_) (gemini-companion-diff-close 1 'closed))))
        (gemini-companion-list-accept-session))
      (should (equal '((2 . accepted)) outcomes)))))

(ert-deftest gemini-companion-review-lists-several-and-shows-one ()
  (gemini-companion-list-test-with '(("a" "one\n") ("b" "two\n"))
    (save-window-excursion
      (should-error (gemini-companion-review) :type 'user-error)
      (let ((first (gemini-companion-list-test-open 1 1 "a" "x\n"))
            (second (gemini-companion-list-test-open 2 2 "b" "y\n")))
        (gemini-companion-review)
        (should (eq major-mode 'gemini-companion-list-mode))
        (should (eq 'pending (gemini-companion-diff-state first)))
        (gemini-companion-diff-reject first)
        (gemini-companion-review)
        (should (eq 'shown (gemini-companion-diff-state second)))
        (gemini-companion-review 'list)
        (should (eq major-mode 'gemini-companion-list-mode))))))

(ert-deftest gemini-companion-list-has-what-was-auto-accepted ()
  (gemini-companion-list-test-with '(("a" "one\ntwo\n"))
    (let ((session (gemini-companion-test-session "s1" 1))
          (temporary-file-directory folder))
      (gemini-companion-diff-start #'ignore #'ignore)
      (gemini-companion-auto-start)
      (unwind-protect
          (save-window-excursion
            (gemini-companion-list)
            (gemini-companion-auto-accept session)
            (gemini-companion-diff-open 1 session (expand-file-name "a") "1\n")
            (gemini-companion-diff-open 2 session (expand-file-name "b") "b\n")
            (gemini-companion-test-eventually
              (equal '(("b" "+1 -0" "accepted") ("a" "+1 -2" "accepted"))
                     (mapcar (lambda (cells)
                               (list (file-name-nondirectory (nth 0 cells))
                                     (nth 4 cells) (nth 5 cells)))
                             (gemini-companion-list-test-cells))))
            (should-error (gemini-companion-list-accept) :type 'user-error)
            (should-not (directory-files folder nil "\\`gemini-")))
        (gemini-companion-auto-stop)))))

(ert-deftest gemini-companion-list-leaves-nothing-behind ()
  (gemini-companion-list-test-with '(("a" "one\n"))
    (save-window-excursion
      (gemini-companion-list-test-open 1 1 "a" "x\n")
      (gemini-companion-list)
      (gemini-companion-list-stop)
      (should-not (get-buffer "*gemini reviews*"))
      (should-not gemini-companion-diff-changed-hook)
      (gemini-companion-test-eventually
        (not (gemini-companion-test-timers))))))

;;; gemini-companion-list-test.el ends here
