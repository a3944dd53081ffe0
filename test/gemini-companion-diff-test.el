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

(ert-deftest gemini-companion-diff-accepts-the-text-as-it-was-edited ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n")))
      (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
        (goto-char (point-max))
        (insert "mine")
        (narrow-to-region 1 2))
      (gemini-companion-diff-accept diff)
      (should (equal '((1 accepted "new\nmine")) outcomes))
      (should (eq 'accepted (gemini-companion-diff-state diff)))
      (should-not (gemini-companion-diffs))
      (should-not (buffer-live-p
                   (gemini-companion-diff-proposal-buffer diff))))))

(ert-deftest gemini-companion-diff-keeps-the-proposal-beside-its-edits ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n")))
      (should (equal "new\n" (gemini-companion-diff-proposed-text diff)))
      (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
        (text-mode))
      (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
        (set-buffer-modified-p t)
        (dolist (edit '("mine\n" "more\n"))
          (insert edit)
          (should (equal "new\n" (gemini-companion-diff-proposed-text diff)))
          (set-buffer-modified-p nil))
        (erase-buffer)
        (should (equal "new\n" (gemini-companion-diff-proposed-text diff)))
        (should-error (gemini-companion-diff-accept diff) :type 'user-error)
        (insert "new\n"))
      (should (equal "new\n" (gemini-companion-diff-close 1 'closed)))
      (should-not (gemini-companion-test-last-proposal)))))

(defun gemini-companion-diff-test-edited ()
  "Return the proposal of a review in which the user has typed something."
  (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n")))
    (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
      (insert "mine "))
    diff))

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

(ert-deftest gemini-companion-diff-keeps-no-edits-that-the-user-rejects ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (gemini-companion-diff-reject (gemini-companion-diff-test-edited))
    (should-not (gemini-companion-last-proposal-p))))

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

(ert-deftest gemini-companion-diff-is-left-as-it-is-by-a-hook-that-edits-it ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n"))
          (kill-buffer-hook (lambda () (insert "late"))))
      (gemini-companion-diff-discard
       (gemini-companion-diff-proposal-buffer diff))
      (should-not (buffer-live-p
                   (gemini-companion-diff-proposal-buffer diff))))))

(ert-deftest gemini-companion-diff-leaves-nothing-of-a-proposal-it-cannot-read ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((buffers (buffer-list)))
      (should-error (gemini-companion-diff-test-open
                     1 "a" (lambda () (insert "n") (error "Gone"))))
      (should-not (gemini-companion-diffs))
      (should (equal buffers (buffer-list))))))

(ert-deftest gemini-companion-diff-follows-a-file-that-is-written-at-once ()
  (dolist (files '((("a" "old\n")) ()))
    (gemini-companion-diff-test-with files
      (let* ((file (expand-file-name "a"))
             (diff (gemini-companion-diff-test-open 1 "a" "new text\n")))
        (gemini-companion-test-diff-start
         #'ignore
         (lambda (_) (write-region "new text\n" nil file nil 'silent)))
        (with-current-buffer (find-file-noselect file)
          (gemini-companion-diff-accept diff)
          (gemini-companion-test-eventually
            (equal "new text\n" (buffer-string))))))))

(ert-deftest gemini-companion-diff-accepted-and-not-written-is-reported ()
  (pcase-dolist (`(,file . ,kept) '(("a" . nil) ("b" . "mine new\n")))
    (gemini-companion-diff-test-with '(("a" "old\n") ("b" "old\n"))
      (gemini-companion-test-diff-start
       #'ignore
       (lambda (_) (write-region "mine new\n" nil (expand-file-name "a"))))
      (let ((diff (gemini-companion-diff-test-open 1 file "new\n")))
        (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
          (insert "mine "))
        (gemini-companion-diff-accept diff)
        (gemini-companion-test-eventually
          (gemini-companion-test-run-timers)
          (gemini-companion-revert-idle-p))
        (should (equal kept (gemini-companion-test-last-proposal)))))))

(ert-deftest gemini-companion-diff-keeps-what-a-merge-needs-before-it-is-written ()
  (gemini-companion-diff-test-with '(("a" "1\n2\n3\n4\n5\n6\n"))
    (let* ((file (expand-file-name "a"))
           (text "1\ntheirs\n3\n4\n5\n6\n")
           (diff (gemini-companion-diff-test-open 1 "a" text)))
      (gemini-companion-test-diff-start
       #'ignore
       (lambda (_) (write-region text nil file nil 'silent)))
      (with-current-buffer (find-file-noselect file)
        (goto-char (point-max))
        (insert "mine\n")
        (gemini-companion-diff-accept diff)
        (gemini-companion-merge)
        (should (equal (concat text "mine\n") (buffer-string)))
        (set-buffer-modified-p nil)))))

(ert-deftest gemini-companion-diff-is-rejected-after-its-directory-was-deleted ()
  (gemini-companion-diff-test-with ()
    (let ((diff (gemini-companion-diff-test-open 1 "d/a" "new\n")))
      (make-symbolic-link "d" "d")
      (gemini-companion-diff-reject diff)
      (should (equal '((1 rejected nil)) outcomes)))))

(ert-deftest gemini-companion-diff-keeps-every-character-of-a-proposal ()
  (gemini-companion-diff-test-with '(("a" "old"))
    (dolist (text (list "\n" "no newline" "a\r\nb\rc\n" "\0\e\t\f"
                        "\uFEFFbom" "\u2028é\U0001F600e\u0301"
                        (make-string 1000000 ?x)))
      (let ((diff (gemini-companion-diff-test-open 1 "a" text)))
        (gemini-companion-diff-accept diff)
        (should (equal text (nth 2 (car outcomes))))))))

(ert-deftest gemini-companion-diff-ends-once ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n")))
      (gemini-companion-diff-reject diff)
      (should-error (gemini-companion-diff-accept diff) :type 'user-error)
      (should-error (gemini-companion-diff-reject diff) :type 'user-error)
      (should-not (gemini-companion-diff-close 1 'closed))
      (should (equal '((1 rejected nil)) outcomes)))))

(ert-deftest gemini-companion-diff-closed-as-it-is-accepted-keeps-its-text ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n")))
      (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
        (insert "mine "))
      (gemini-companion-diff-accept diff)
      (should (equal "mine new\n" (gemini-companion-diff-close 1 'closed)))
      (should-not (gemini-companion-diff-close 2 'closed))
      (should (equal '((1 accepted "mine new\n")) outcomes)))))

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
    (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n")))
      (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
        (insert "mine "))
      (gemini-companion-test-eventually views)
      (should (equal "mine new\n" (gemini-companion-diff-close 1 'closed)))
      (should (eq 'dismissed (gemini-companion-diff-state diff)))
      (gemini-companion-test-eventually (not views))
      (should-not outcomes)
      (should (equal "mine new\n" (gemini-companion-test-last-proposal))))))

(ert-deftest gemini-companion-diff-emptied-replaces-no-kept-edits ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (dolist (edit (list (lambda () (insert "mine ")) #'erase-buffer))
      (with-current-buffer (gemini-companion-diff-proposal-buffer
                            (gemini-companion-diff-test-open 1 "a" "new\n"))
        (funcall edit))
      (gemini-companion-diff-close 1 'closed))
    (should (equal "mine new\n" (gemini-companion-test-last-proposal)))))

(ert-deftest gemini-companion-diff-proposed-again-replaces-the-previous ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((first (gemini-companion-diff-test-open 1 "a" "new\n"))
          second)
      (gemini-companion-test-eventually (equal (list first) views))
      (with-current-buffer (gemini-companion-diff-proposal-buffer first)
        (insert "mine "))
      (should (string-match-p
               "New proposal for a; .* shows your edits"
               (car (gemini-companion-test-messages
                      (setq second (gemini-companion-diff-test-open
                                    2 "a" "newer\n"))))))
      (should (equal "mine new\n" (gemini-companion-test-last-proposal)))
      (should (equal (list second) (gemini-companion-diffs)))
      (should (eq 'dismissed (gemini-companion-diff-state first)))
      (should-not outcomes)
      (should (equal (list first) views))
      (gemini-companion-test-eventually (equal (list second) views)))))

(ert-deftest gemini-companion-diff-that-cannot-be-shown-can-be-answered ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (gemini-companion-test-diff-start (lambda (_) (error "No window")) #'ignore)
    (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n")))
      (gemini-companion-test-eventually (gemini-companion-diff-problem diff))
      (should (equal (list diff) (gemini-companion-diffs)))
      (should (equal "new\n" (gemini-companion-diff-close 1 'closed))))))

(ert-deftest gemini-companion-diff-that-cannot-be-shown-outlives-a-frame ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (gemini-companion-test-diff-start
     (lambda (&rest _) (error "Too large"))
     (lambda (diff)
       (push (gemini-companion-test-outcome diff) outcomes)))
    (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n")))
      (gemini-companion-test-eventually (gemini-companion-diff-problem diff))
      (run-hook-with-args 'delete-frame-functions (selected-frame))
      (should (equal (list diff) (gemini-companion-diffs)))
      (should-not outcomes))))

(ert-deftest gemini-companion-diff-survives-a-hook-that-fails ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let* ((fail (list (lambda (_) (error "Boom"))))
           (gemini-companion-diff-opened-functions fail)
           (gemini-companion-diff-closed-functions fail)
           (debug-on-error nil)
           (first (gemini-companion-diff-test-open 1 "a" "new\n"))
           (second (gemini-companion-diff-test-open 2 "b" "new\n")))
      (gemini-companion-test-eventually (equal (list first) views))
      (should-not (gemini-companion-diff-problem first))
      (gemini-companion-diff-accept first)
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
        (should (equal '((1 rejected nil)) outcomes))
        ;; It has no accepted text.
        (should-not (gemini-companion-diff-close 1 'closed))))))

(ert-deftest gemini-companion-diff-stop-settles-everything ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((buffers (list (gemini-companion-diff-proposal-buffer
                          (gemini-companion-diff-test-open 1 "a" "new\n"))
                         (gemini-companion-diff-proposal-buffer
                          (gemini-companion-diff-test-open 2 "b" "x")))))
      (gemini-companion-diff-stop 'rejected)
      (should (equal '((2 rejected nil) (1 rejected nil)) outcomes))
      (gemini-companion-test-eventually
        (not (seq-some #'buffer-live-p buffers)))
      (should-not (gemini-companion-diffs)))))

(ert-deftest gemini-companion-diff-viewed-puts-the-shown-one-back ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((first (gemini-companion-diff-test-open 1 "a" "new\n"))
          (second (gemini-companion-diff-test-open 2 "b" "new\n" "two")))
      (gemini-companion-test-eventually (equal (list first) views))
      (gemini-companion-arrival-view second)
      (should (equal (list second) views))
      (should (eq 'pending (gemini-companion-diff-state first)))
      (should (buffer-live-p (gemini-companion-diff-proposal-buffer first)))
      (gemini-companion-diff-reject)
      (should (equal '((2 rejected nil)) outcomes))
      (gemini-companion-test-eventually (equal (list first) views)))))

(ert-deftest gemini-companion-diff-put-back-ends-with-its-proposal-buffer ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((first (gemini-companion-diff-test-open 1 "a" "new\n"))
          (second (gemini-companion-diff-test-open 2 "b" "new\n" "two")))
      (gemini-companion-test-eventually views)
      (gemini-companion-arrival-view second)
      (kill-buffer (gemini-companion-diff-proposal-buffer first))
      (should (equal '((1 rejected nil)) outcomes))
      (should (equal (list second) views)))))

(ert-deftest gemini-companion-diff-waits-for-the-view-of-one-that-ended ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((first (gemini-companion-diff-test-open 1 "a" "new\n"))
          second)
      (gemini-companion-test-eventually (equal (list first) views))
      ;; A command is going on, then a menu is open, then a search.
      (command-execute
       (lambda ()
         (interactive)
         (gemini-companion-diff-close 1 'closed)
         (setq second (gemini-companion-diff-test-open 2 "b" "new\n" "two"))
         (dotimes (_ 3)
           (gemini-companion-test-run-timers))
         (should (equal (list first) views))))
      (let ((transient--prefix t))
        (dotimes (_ 3)
          (gemini-companion-test-run-timers))
        (should (equal (list first) views)))
      (with-current-buffer (window-buffer)
        (let ((isearch-mode t))
          (dotimes (_ 3)
            (gemini-companion-test-run-timers)))
        (should (equal (list first) views)))
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

(ert-deftest gemini-companion-diff-keeps-what-was-typed-before-another-is-viewed ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let* ((first (gemini-companion-diff-test-open 1 "a" "new\n"))
           (second (gemini-companion-diff-test-open 2 "b" "new\n" "two")))
      (gemini-companion-test-eventually (equal (list first) views))
      (with-current-buffer (gemini-companion-diff-proposal-buffer first)
        (insert "mine ")
        (gemini-companion-diff-close 1 'exited)
        (insert "and more "))
      (gemini-companion-arrival-view second)
      (should (equal "mine and more new\n"
                     (gemini-companion-test-last-proposal))))))

(ert-deftest gemini-companion-diff-reports-what-was-typed-after-the-end ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (dolist (typed '(nil "and more "))
      (let ((diff (gemini-companion-diff-test-open 1 "a" "new\n"))
            reported)
        (gemini-companion-test-eventually views)
        (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
          (insert "mine ")
          (gemini-companion-diff-close 1 'exited)
          (when typed
            (insert typed)))
        (setq reported (gemini-companion-test-messages
                         (gemini-companion-test-eventually (not views))))
        (should (eq (seq-some (lambda (text)
                                (and (string-search "shows your edits" text) t))
                              reported)
                    (and typed t)))))))

(ert-deftest gemini-companion-diff-goes-on-if-an-ended-proposal-is-killed ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let* ((first (gemini-companion-diff-test-open 1 "a" "new\n"))
           (proposal (gemini-companion-diff-proposal-buffer first))
           (second (gemini-companion-diff-test-open 2 "b" "new\n" "two")))
      (gemini-companion-test-eventually (equal (list first) views))
      (with-current-buffer proposal
        (insert "mine "))
      (gemini-companion-diff-close 1 'exited)
      (kill-buffer proposal)
      (gemini-companion-test-run-timers)
      (gemini-companion-test-eventually (equal (list second) views)))))

(ert-deftest gemini-companion-diff-viewed-takes-the-place-of-one-that-ended ()
  (gemini-companion-diff-test-with '(("a" "old\n"))
    (let ((first (gemini-companion-diff-test-open 1 "a" "new\n"))
          (second (gemini-companion-diff-test-open 2 "b" "new\n" "two")))
      (gemini-companion-test-eventually (equal (list first) views))
      (let* (closed
             (gemini-companion-diff-closed-functions
              (list (lambda (diff) (push diff closed)))))
        (gemini-companion-diff-close 1 'closed)
        (gemini-companion-arrival-view second)
        (should (equal (list second) views))
        (dotimes (_ 3)
          (gemini-companion-test-run-timers))
        (should (equal (list second) views))
        (should (equal (list first) closed))))))

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
