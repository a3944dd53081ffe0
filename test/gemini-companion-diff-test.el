;;; gemini-companion-diff-test.el --- Tests of proposals and their end  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Each outcome of a diff, and what is sent about it.  The view is a plain
;; buffer here; Ediff is tested in gemini-companion-ediff-test.el.

;;; Code:

(require 'gemini-companion-diff)
(require 'gemini-companion-review-test-helper)

(defvar transient--prefix)

(defmacro gemini-companion-diff-test-with (files &rest body)
  "Take proposals while BODY is run in a directory with FILES.
`outcomes' has the sent outcomes, the last one first; `views' the
diffs that have a view now."
  (declare (indent 1) (debug t))
  `(let (outcomes views)
     (gemini-companion-test-with-diffs ,files
         (gemini-companion-test-diff-start
          (lambda (diff &rest _)
            (push diff views)
            (lambda ()
              (setq views (delq diff views))))
          (lambda (diff)
            (push (gemini-companion-test-outcome diff) outcomes)))
         nil
       ,@body)))

(defun gemini-companion-diff-test-open (id file text &optional session)
  "Open a diff ID of SESSION for FILE with TEXT; return it."
  (gemini-companion-test-open file text id (gemini-companion-test-session (or session "one"))))

(defun gemini-companion-diff-test-edited (&optional edit)
  "Return the diff of a proposal in which the user has typed something.
If EDIT is non-nil, call it in the proposal instead."
  (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n")))
    (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
      (funcall (or edit (lambda () (insert "mine ")))))
    diff))

(ert-deftest gemini-companion-diff-ends-once-with-the-text-as-it-was-edited ()
  (pcase-dolist (`(,answer . ,text) '((gemini-companion-diff-accept . "mine new\n")
                                      (gemini-companion-diff-reject . nil)))
    (gemini-companion-diff-test-with '(("a" "old\n"))
      (let ((diff (gemini-companion-diff-test-edited
                   (lambda ()
                     (insert "mine ")
                     (narrow-to-region 1 2)))))
        (funcall answer diff)
        (should-not (gemini-companion-diffs))
        (should-not (buffer-live-p (gemini-companion-diff-proposal-buffer diff)))
        (should-error (gemini-companion-diff-accept diff) :type 'user-error)
        (should-error (gemini-companion-diff-reject diff) :type 'user-error)
        ;; The CLI may close it at the same moment.
        (should-not (gemini-companion-diff-close 1 'closed))
        (should (equal (list (list 1 (if text 'accepted 'rejected) text))
                       outcomes))
        (should-not (gemini-companion-last-proposal-p))))))

(ert-deftest gemini-companion-diff-keeps-the-proposal-beside-its-edits ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-diff-test-edited #'text-mode)))
      (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
        (dolist (edit (list (lambda () (insert "mine\n")) #'erase-buffer))
          (set-buffer-modified-p nil)
          (funcall edit)
          (should (equal "new\n" (gemini-companion-diff-proposed-text diff))))
        (insert "new\n"))
      (should (equal "new\n" (gemini-companion-diff-close 1 'closed)))
      (should-not (gemini-companion-test-last-proposal)))))

(ert-deftest gemini-companion-diff-asks-before-edits-are-dropped ()
  (pcase-dolist (`(,what ,ask)
                 `(("killing" ,(lambda (diff)
                                 (kill-buffer
                                  (gemini-companion-diff-proposal-buffer diff))))
                   ("exit" ,(lambda (_)
                              (and (run-hook-with-args-until-failure
                                    'kill-emacs-query-functions)
                                   (gemini-companion-diff-stop 'rejected
                                                               'now))))))
    (dolist (answer '(nil t))
      (ert-info ((format "%s %s" what answer))
        (gemini-companion-diff-test-with '(("a" "old\n"))
          (let ((diff (gemini-companion-diff-test-edited))
                (noninteractive nil)
                asked)
            (cl-letf (((symbol-function 'yes-or-no-p)
                       (lambda (question)
                         (should (string-match-p " a .*drop your edits"
                                                 question))
                         (setq asked t)
                         answer)))
              (funcall ask diff))
            (should asked)
            (should (eq (if answer 'rejected 'pending)
                        (gemini-companion-diff-state diff)))
            (should (equal (and answer "mine new\n")
                           (gemini-companion-test-last-proposal)))))))))

(ert-deftest gemini-companion-diff-keeps-edits-where-it-cannot-ask ()
  (dolist (end (list (lambda () (gemini-companion-diff-stop 'rejected))
                     (lambda () (gemini-companion-diff-stop 'dismissed))
                     (lambda ()
                       (gemini-companion-test-eventually
                         (gemini-companion-diff-shown))
                       (run-hook-with-args 'delete-frame-functions
                                           (selected-frame)))
                     (lambda ()
                       (kill-buffer (gemini-companion-diff-proposal-buffer
                                     (car (gemini-companion-diffs)))))))
    (gemini-companion-diff-test-with '(("a" "old\n"))
      (gemini-companion-diff-test-edited)
      (funcall end)
      (should-not (gemini-companion-diffs))
      (should (equal "mine new\n" (gemini-companion-test-last-proposal))))))

(ert-deftest gemini-companion-diff-shows-one-kept-proposal-after-the-other ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (dotimes (n 12)
      (gemini-companion-diff-keep
       (gemini-companion-diff--make :file-path (format "/a%d" n))
       (format "text %d" n)))
    (save-window-excursion
      (dolist (n '(11 10 9 8 7 6 5 4 3 2 11))
        (gemini-companion-last-proposal)
        (with-current-buffer (window-buffer)
          (should (equal (format "text %d" n) (buffer-string)))))
      (kill-buffer (window-buffer)))))

(ert-deftest gemini-companion-diff-leaves-nothing-of-a-proposal-it-cannot-read ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((buffers (buffer-list)))
      (should-error (gemini-companion-diff-test-open
                     1 "a" (lambda () (insert "n") (error "Gone"))))
      (should-not (gemini-companion-diffs))
      (should (equal buffers (buffer-list))))))

(ert-deftest gemini-companion-diff-accepted-and-not-written-is-kept ()
  (pcase-dolist (`(,written . ,kept) '(("a" . nil) ("b" . "mine new\n")))
    (gemini-companion-diff-test-with '(("a" "old\n"))
      (gemini-companion-test-diff-start
       #'ignore
       (lambda (_) (write-region "mine new\n" nil (expand-file-name written))))
      (gemini-companion-diff-accept (gemini-companion-diff-test-edited))
      (gemini-companion-test-eventually
        (gemini-companion-test-run-timers)
        (not (gemini-companion-test-timers)))
      (should (equal kept (gemini-companion-test-last-proposal))))))

(ert-deftest gemini-companion-diff-is-rejected-after-its-directory-was-deleted ()
  (gemini-companion-diff-test-with ()
    (let ((diff (gemini-companion-diff-test-open 1 "d/a" "new\n")))
      (make-symbolic-link "d" "d")
      (gemini-companion-diff-reject diff)
      (should (equal '((1 rejected nil)) outcomes)))))

(ert-deftest gemini-companion-diff-refuses-to-accept-an-emptied-proposal ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n")))
      (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
        (erase-buffer))
      (should-error (gemini-companion-diff-accept diff) :type 'user-error)
      (should-not outcomes)
      (should (gemini-companion-diffs)))
    (let ((diff (gemini-companion-diff-test-open 2 "b" "")))
      (gemini-companion-diff-accept diff)
      (should (equal '((2 accepted "")) outcomes)))))

(ert-deftest gemini-companion-diff-closed-by-the-cli-returns-the-text-only ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-diff-test-edited)))
      (gemini-companion-test-eventually views)
      (should (equal "mine new\n" (gemini-companion-diff-close 1 'closed)))
      (should (eq 'dismissed (gemini-companion-diff-state diff)))
      (gemini-companion-test-eventually (not views))
      (should-not outcomes)
      (should (equal "mine new\n" (gemini-companion-test-last-proposal))))
    ;; Nothing is left of this one, which replaces no kept edits.
    (gemini-companion-diff-test-edited #'erase-buffer)
    (gemini-companion-diff-close 1 'closed)
    (should (equal "mine new\n" (gemini-companion-test-last-proposal)))))

(ert-deftest gemini-companion-diff-survives-a-hook-that-fails ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let* ((fail (list (lambda (&rest _) (error "Boom"))))
           (gemini-companion-diff-opened-functions fail)
           (gemini-companion-diff-closed-functions fail)
           (debug-on-error nil)
           (first (gemini-companion-diff-test-open 1 "a" "new\n"))
           (second (gemini-companion-diff-test-open 2 "b" "new\n")))
      (gemini-companion-test-eventually (equal (list first) views))
      (should-not (gemini-companion-diff-problem first))
      (let ((kill-buffer-hook fail))
        (gemini-companion-diff-accept first))
      (should-not (buffer-live-p (gemini-companion-diff-proposal-buffer first)))
      (gemini-companion-test-eventually (equal (list second) views)))))

(ert-deftest gemini-companion-diff-stays-open-if-its-outcome-cannot-be-sent ()
  (dolist (problem '(error quit))
    (gemini-companion-diff-test-with '(("a" "old\n"))
      (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n")))
        (gemini-companion-test-diff-start #'ignore
                                          (lambda (_) (signal problem nil)))
        (should (eq problem (condition-case err
                                (gemini-companion-diff-accept diff)
                              ((error quit) (car err)))))
        (should (equal (list diff) (gemini-companion-diffs)))
        (gemini-companion-test-diff-start
         #'ignore
         (lambda (diff) (push (gemini-companion-test-outcome diff) outcomes)))
        (gemini-companion-diff-reject diff)
        (should (equal '((1 rejected nil)) outcomes))))))

(ert-deftest gemini-companion-diff-viewed-puts-the-shown-one-back ()
  (dolist (killed '(nil t))
    (gemini-companion-diff-test-with '(("a" "old\n"))
      (let ((first (gemini-companion-diff-test-open 1 "a" "new\n"))
            (second (gemini-companion-diff-test-open 2 "b" "new\n" "two")))
        (gemini-companion-test-eventually (equal (list first) views))
        (gemini-companion-arrival-view second)
        (should (equal (list second) views))
        (should (eq 'pending (gemini-companion-diff-state first)))
        (if killed
            (kill-buffer (gemini-companion-diff-proposal-buffer first))
          (gemini-companion-diff-reject))
        (should (equal (list (list (if killed 1 2) 'rejected nil)) outcomes))
        (gemini-companion-test-eventually
          (equal (list (if killed second first)) views))))))

(ert-deftest gemini-companion-diff-waits-for-the-view-of-one-that-ended ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let* ((first (gemini-companion-diff-test-open 1 "a" "new\n"))
           (stays (lambda ()
                    (interactive)
                    (dotimes (_ 3)
                      (gemini-companion-test-run-timers))
                    (should (equal (list first) views))))
           second)
      (gemini-companion-test-eventually (equal (list first) views))
      ;; A command is going on, then a menu is open, then a search.
      (command-execute
       (lambda ()
         (interactive)
         (gemini-companion-diff-close 1 'closed)
         (setq second (gemini-companion-diff-test-open 2 "b" "new\n" "two"))
         (funcall stays)))
      (let ((transient--prefix t))
        (funcall stays))
      (with-current-buffer (window-buffer)
        (let ((isearch-mode t))
          (funcall stays)))
      (gemini-companion-test-eventually (equal (list second) views)))))

;; The letters that follow would be inserted in another buffer.
(ert-deftest gemini-companion-diff-closes-no-view-in-which-the-user-is-typing ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((proposal (gemini-companion-diff-proposal-buffer
                     (gemini-companion-diff-test-open 1 "a" "new\n")))
          (idle 0.1))
      (gemini-companion-test-eventually views)
      (cl-letf (((symbol-function 'current-idle-time)
                 (lambda () (seconds-to-time idle))))
        (save-window-excursion
          (set-window-buffer nil proposal)
          (with-current-buffer proposal
            (insert "mine "))
          (gemini-companion-diff-close 1 'exited)
          (gemini-companion-test-run-timers)
          (should views)
          (with-current-buffer proposal
            (insert "and more "))
          (setq idle 2)
          (gemini-companion-test-eventually (not views))))
      (should (equal "mine and more new\n"
                     (gemini-companion-test-last-proposal))))))

(ert-deftest gemini-companion-diff-viewed-takes-the-place-of-one-that-ended ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let* ((first (gemini-companion-diff-test-edited))
           (second (gemini-companion-diff-test-open 2 "b" "new\n" "two"))
           closed
           (gemini-companion-diff-closed-functions
            (list (lambda (diff) (push diff closed)))))
      (gemini-companion-test-eventually (equal (list first) views))
      (gemini-companion-diff-close 1 'exited)
      (with-current-buffer (gemini-companion-diff-proposal-buffer first)
        (insert "and more "))
      (gemini-companion-arrival-view second)
      (dotimes (_ 3)
        (should (equal (list second) views))
        (gemini-companion-test-run-timers))
      (should (equal (list first) closed))
      (should (equal "mine and more new\n"
                     (gemini-companion-test-last-proposal))))))

(ert-deftest gemini-companion-diff-reports-what-was-typed-after-the-end ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (dolist (typed '("" "and more "))
      (let ((diff (gemini-companion-diff-test-edited)))
        (gemini-companion-test-eventually views)
        (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
          (gemini-companion-diff-close 1 'exited)
          (insert typed))
        (should (eq (equal typed "")
                    (not (string-search
                          "shows your edits"
                          (string-join
                           (gemini-companion-test-messages
                             (gemini-companion-test-eventually
                               (not views))))))))))))

(ert-deftest gemini-companion-diff-goes-on-if-an-ended-proposal-is-killed ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((first (gemini-companion-diff-test-edited))
          (second (gemini-companion-diff-test-open 2 "b" "new\n" "two")))
      (gemini-companion-test-eventually (equal (list first) views))
      (gemini-companion-diff-close 1 'exited)
      (kill-buffer (gemini-companion-diff-proposal-buffer first))
      (gemini-companion-test-run-timers)
      (gemini-companion-test-eventually (equal (list second) views)))))

(ert-deftest gemini-companion-diff-outlives-a-clone-of-its-proposal ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n")))
      (gemini-companion-test-eventually views)
      (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
        (kill-buffer (clone-indirect-buffer "clone" nil)))
      (should (equal (list diff) (gemini-companion-diffs)))
      (kill-buffer (gemini-companion-diff-proposal-buffer diff))
      (should (equal '((1 rejected nil)) outcomes)))))

;;; gemini-companion-diff-test.el ends here
