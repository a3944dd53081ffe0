;;; gemini-companion-diff-test.el --- Tests of proposals and their end  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Each outcome of a diff, and what is sent about it, and files that change
;; while a diff is open.  Most of these have no view.

;;; Code:

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

(defun gemini-companion-diff-test-edited (&optional edit)
  "Return the diff of a proposal in which the user has typed something.
If EDIT is non-nil, call it in the proposal instead."
  (let ((diff (gemini-companion-test-open "a" "new\n")))
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
        (should (eq (null text) (null (gemini-companion-last-proposal-p))))))))

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
                       (switch-to-buffer (gemini-companion-diff-proposal-buffer
                                          (gemini-companion-diff-shown)))
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

(ert-deftest gemini-companion-diff-stays-on-another-frame ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-diff-test-edited)))
      (gemini-companion-test-eventually (gemini-companion-diff-shown))
      (switch-to-buffer (gemini-companion-diff-proposal-buffer diff))
      ;; Batch Emacs has one frame only.
      (cl-letf* ((frames (list (selected-frame) 'other))
                 ((symbol-function 'window-list-1)
                  (lambda (&rest _) (make-list 2 (selected-window))))
                 ((symbol-function 'window-frame) (lambda (_) (pop frames))))
        (run-hook-with-args 'delete-frame-functions (selected-frame)))
      (should (gemini-companion-diff-open-p diff)))))

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
    (let ((buffers (gemini-companion-test-buffers)))
      (should-error (gemini-companion-test-open
                     "a" (lambda () (insert "n") (error "Gone"))))
      (should-not (gemini-companion-diffs))
      (should-not (gemini-companion-test-buffers buffers)))))

(ert-deftest gemini-companion-diff-accepted-and-not-written-is-kept ()
  (pcase-dolist (`(,written ,report ,kept)
                 '(("a" "Accepted a" nil)
                   ("b" "was not written" "mine new\n")))
    (gemini-companion-diff-test-with '(("a" "old\n"))
      (gemini-companion-test-diff-start
       #'ignore
       (lambda (_) (write-region "mine new\n" nil (expand-file-name written))))
      (should (string-search
               report
               (car (gemini-companion-test-messages
                      (gemini-companion-diff-accept
                       (gemini-companion-diff-test-edited))
                      (gemini-companion-test-in-the-end
                        (not (gemini-companion-test-timers)))))))
      (should (equal kept (gemini-companion-test-last-proposal))))))

(ert-deftest gemini-companion-diff-refuses-to-accept-an-emptied-proposal ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-test-open "a" "new\n")))
      (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
        (erase-buffer))
      (should-error (gemini-companion-diff-accept diff) :type 'user-error)
      (should-not outcomes)
      (should (gemini-companion-diffs)))
    (let ((diff (gemini-companion-test-open "b" "" 2)))
      (gemini-companion-diff-accept diff)
      (should (equal '((2 accepted "")) outcomes)))))

(ert-deftest gemini-companion-diff-closed-by-the-cli-returns-the-text-only ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-diff-test-edited)))
      (should (equal "mine new\n" (gemini-companion-diff-close 1 'closed)))
      (should (eq 'dismissed (gemini-companion-diff-state diff)))
      (should-not outcomes))
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
           (first (gemini-companion-test-open "a" "new\n"))
           (second (gemini-companion-test-open "b" "new\n" 2)))
      (gemini-companion-test-eventually (equal (list first) views))
      (should-not (gemini-companion-diff-problem first))
      (let ((kill-buffer-hook fail))
        (gemini-companion-diff-accept first))
      (should-not (buffer-live-p (gemini-companion-diff-proposal-buffer first)))
      (gemini-companion-test-eventually (equal (list second) views)))))

(ert-deftest gemini-companion-diff-stays-open-if-its-outcome-cannot-be-sent ()
  (dolist (problem '(error quit))
    (gemini-companion-diff-test-with '(("a" "old\n"))
      (let ((diff (gemini-companion-test-open "a" "new\n")))
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
      (let ((first (gemini-companion-test-open "a" "new\n"))
            (second (gemini-companion-test-open "b" "new\n" 2)))
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
    (let* ((first (gemini-companion-test-open "a" "new\n"))
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
         (setq second (gemini-companion-test-open "b" "new\n" 2))
         (funcall stays)))
      (let ((transient--prefix t))
        (funcall stays))
      (with-current-buffer (window-buffer)
        (let ((isearch-mode t))
          (funcall stays)))
      (gemini-companion-test-eventually (equal (list second) views)))))

;; The letters that follow would be inserted in another buffer.
(ert-deftest gemini-companion-diff-closes-no-view-in-which-the-user-is-typing ()
  (pcase-dolist (`(,written ,more ,kept) '((nil "more " "mine more new\n")
                                           ;; By a yes in the terminal.
                                           ("mine new\n" "" nil)))
    (gemini-companion-diff-test-with '(("a" "old\n"))
      (let ((proposal (gemini-companion-diff-proposal-buffer
                       (gemini-companion-diff-test-edited)))
            (idle 0.1))
        (gemini-companion-test-eventually views)
        (cl-letf (((symbol-function 'current-idle-time)
                   (lambda () (seconds-to-time idle))))
          (save-window-excursion
            (set-window-buffer nil proposal)
            (with-current-buffer proposal
              (gemini-companion-diff-close 1 'closed)
              (when written
                (gemini-companion-diff-test-write "a" written)
                (gemini-companion-test-eventually
                  (not (gemini-companion-last-proposal-p))))
              (gemini-companion-test-run-timers)
              (should views)
              (insert more))
            (setq idle 2)
            (gemini-companion-test-eventually (not views))))
        (should (equal kept (gemini-companion-test-last-proposal)))))))

(ert-deftest gemini-companion-diff-viewed-takes-the-place-of-one-that-ended ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let* ((first (gemini-companion-diff-test-edited))
           (second (gemini-companion-test-open "b" "new\n" 2))
           closed
           (gemini-companion-diff-closed-functions
            (list (lambda (diff) (push diff closed)))))
      (gemini-companion-test-eventually (equal (list first) views))
      (gemini-companion-diff-close 1 'exited)
      (gemini-companion-arrival-view second)
      (dotimes (_ 3)
        (should (equal (list second) views))
        (gemini-companion-test-run-timers))
      (should (equal (list first) closed)))))

(ert-deftest gemini-companion-diff-outlives-a-clone-of-its-proposal ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-test-open "a" "new\n")))
      (gemini-companion-test-eventually views)
      (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
        (kill-buffer (clone-indirect-buffer "clone" nil)))
      (should (equal (list diff) (gemini-companion-diffs)))
      (kill-buffer (gemini-companion-diff-proposal-buffer diff))
      (should (equal '((1 rejected nil)) outcomes)))))

;;;; Files that change

(defun gemini-companion-diff-test-write (file text)
  "Make TEXT the content of FILE, with another time than before."
  (gemini-companion-test-write file text)
  (set-file-times file (time-add nil (random 100000))))

(ert-deftest gemini-companion-diff-dismisses-what-was-written-by-itself ()
  (pcase-dolist (`(,old ,proposal ,written ,visible)
                 '(("old\n" "new\n" "new\n" "new\n")
                   ("o\r\n" "n\nm\n" "n\r\nm\r\n" "n\nm\n")
                   ("o" "é\n" "\uFEFFé\n" "é\n")
                   ("old\n" "" "" "")))
    (gemini-companion-diff-test-with (list (list "a" old))
      (let ((diff (gemini-companion-test-open "a" proposal)))
        (with-current-buffer (find-file-noselect "a")
          (gemini-companion-test-eventually views)
          (gemini-companion-diff-test-write "a" written)
          (gemini-companion-test-eventually
            (gemini-companion-test-run-timers)
            (not views))
          (gemini-companion-test-eventually (equal visible (buffer-string)))
          (should (verify-visited-file-modtime)))
        (should (eq 'dismissed (gemini-companion-diff-state diff)))
        (should-not outcomes)
        (gemini-companion-test-eventually
          (not (gemini-companion-test-timers)))))))

(ert-deftest gemini-companion-diff-leaves-other-changes-to-the-user ()
  (gemini-companion-diff-test-with '(("a" "old\n") ("same" "same\n"))
    (let ((diffs (list (gemini-companion-test-open "a" "new\n")
                       (gemini-companion-test-open "same" "same\n")
                       (gemini-companion-test-open "none" "n\n"))))
      (with-current-buffer (gemini-companion-diff-proposal-buffer (car diffs))
        (insert "mine "))
      (gemini-companion-diff-test-write "a" "newer\n")
      (gemini-companion-test-run-timers)
      (delete-file "a")
      (gemini-companion-test-run-timers)
      (should (equal diffs (gemini-companion-diffs)))
      ;; That is what it waits for.
      (gemini-companion-diff-test-write "a" "new\n")
      (gemini-companion-test-run-timers)
      (should (equal (cdr diffs) (gemini-companion-diffs)))
      (should (equal "mine new\n" (gemini-companion-test-last-proposal))))))

(defmacro gemini-companion-diff-test-with-answers (files &rest body)
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

(ert-deftest gemini-companion-diff-asks-before-a-change-is-overwritten ()
  (pcase-dolist (`(,written ,accepted ,asks)
                 '(("one\n2\n3\n4\n5\n" "1\n2\n3\n4\nfive\n" t)
                   ("one\n2\n3\n4\n5\n" "one\n2\n3\n4\nfive\n" t)
                   ("1\n2\n3\n4\n5\n" "1\n2\n3\n4\nfive\n" nil)
                   ("1\n2\n3\n4\nFive\n" "1\n2\n3\n4\nfive\n" t)
                   (nil "1\n2\n3\n4\nfive\n" t)))
    (ert-info ((format "%S, %S" written accepted))
      (gemini-companion-diff-test-with-answers '(("a" "1\n2\n3\n4\n5\n"))
        (let ((diff (gemini-companion-test-show "a" "1\n2\n3\n4\nfive\n")))
          (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
            (erase-buffer)
            (insert accepted))
          (if written
              (gemini-companion-diff-test-write "a" written)
            (delete-file "a"))
          ;; At once, before the next check of the file.
          (gemini-companion-diff-accept diff)
          (should (eql (if asks 1 0) asked))
          (when asks
            (should-not outcomes)
            (setq answer t)
            (gemini-companion-diff-accept diff))
          (should (equal (list (list 1 'accepted accepted)) outcomes)))))))

(ert-deftest gemini-companion-diff-asks-about-what-was-never-shown ()
  (dolist (views '((view accept) (accept view)))
    (gemini-companion-diff-test-with-answers '(("a" "old\n"))
      (let* ((gemini-companion-review-arrival 'notify)
             (gemini-companion-review-view 'diff)
             (diff (gemini-companion-test-open "a" "new\n")))
        (gemini-companion-diff-test-write "a" "saved\n")
        (dolist (step views)
          (if (eq step 'accept)
              (gemini-companion-diff-accept diff)
            (gemini-companion-arrival-view diff)))
        (should (string-search "file changed"
                               (gemini-companion-test-header
                                (gemini-companion-review-main diff))))
        (should (equal '(1 nil) (list asked outcomes)))))))

;;;; Edits that were not written

(defconst gemini-companion-diff-test-ends
  (list
   ;; Gemini CLI, answered in its terminal: the review ends first.
   (lambda (_diff written)
     (gemini-companion-diff-close 1 'closed)
     (gemini-companion-diff-test-write "a" written))
   ;; Qwen Code, answered in its terminal: the file is written first.
   (lambda (_diff written)
     (gemini-companion-diff-test-write "a" written)
     (gemini-companion-diff-close 1 'closed))
   ;; Any of them, answered here.
   (lambda (diff written)
     (gemini-companion-diff-accept diff)
     (gemini-companion-diff-test-write "a" written)))
  "The ways in which a review ends and its file is written.")

(ert-deftest gemini-companion-diff-reports-edits-that-were-not-written-once ()
  (dolist (end gemini-companion-diff-test-ends)
    (pcase-dolist (`(,written ,edit ,count)
                   '(("new\n" t 1) ("new\n" nil 0) ("mine new\n" t 0)
                     ("mine new" t 0) ("mine new\r\n" t 0)
                   ;; By the user, after a no.
                   ("saved\n" t 0)))
      (gemini-companion-diff-test-with '(("a" "old\n"))
        (let ((diff (if edit
                        (gemini-companion-diff-test-edited)
                      (gemini-companion-test-open "a" "new\n"))))
          (should (= count
                     (seq-count
                      (apply-partially #'string-search
                                       "written without your edits")
                      (gemini-companion-test-messages
                        (funcall end diff written)
                        (gemini-companion-test-eventually
                          (gemini-companion-test-run-timers)
                          (not (gemini-companion-test-timers)))))))
          (when (< 0 count)
            (should (equal "mine new\n"
                           (gemini-companion-test-last-proposal)))))))))

;;; gemini-companion-diff-test.el ends here
