;;; gemini-companion-edit-test.el --- Tests of proposals and their end  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes)
(require 'gemini-companion-edit-test-helper)
(require 'gemini-companion-part)
(require 'gemini-companion-replace)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-tools)

(defvar transient--prefix)

(ert-deftest gemini-companion-edit-ends-once-with-the-text-as-it-was-edited ()
  (pcase-dolist (`(,answer . ,text) '((gemini-companion-edit-accept . "mine new\n")
                                      (gemini-companion-edit-reject . nil)))
    (gemini-companion-edit-test-with '(("a" "old\n"))
      (let ((diff (gemini-companion-edit-test-edited
                   (lambda ()
                     (insert "mine ")
                     (narrow-to-region 1 2)))))
        (funcall answer diff)
        (should-not (gemini-companion-edits-open))
        (should-not (buffer-live-p (gemini-companion-edit-proposal-buffer diff)))
        (should-error (gemini-companion-edit-accept diff) :type 'user-error)
        (should-error (gemini-companion-edit-reject diff) :type 'user-error)
        ;; The CLI may close it at the same moment.
        (should-not (gemini-companion-server-receive 'close-diff 1 'closed))
        (should (equal (list (list 1 (if text 'accepted 'rejected) text))
                       outcomes))
        (should (eq (null text) (null (gemini-companion-edits-kept))))))))

(ert-deftest gemini-companion-edit-asks-before-edits-are-dropped ()
  (pcase-dolist (`(,what ,ask)
                 `(("killing" ,(lambda (diff)
                                 (kill-buffer
                                  (gemini-companion-edit-proposal-buffer diff))))
                   ("exit" ,(lambda (_)
                              (and (run-hook-with-args-until-failure
                                    'kill-emacs-query-functions)
                                   (gemini-companion-proposal-settle-all 'rejected
                                                                         'now))))))
    (pcase-dolist (`(,answer . ,status)
                   '((nil . pending) (t . rejected) (closed . dismissed)))
      (ert-info ((format "%s %s" what answer))
        (gemini-companion-edit-test-with '(("a" "old\n"))
          (let* ((diff (gemini-companion-edit-test-edited))
                 (noninteractive nil)
                 (ask-user
                  (lambda (question)
                    (should (string-match-p " a .*drop your edits" question))
                    (when (eq answer 'closed)
                      (gemini-companion-server-receive 'close-diff 1 'closed))
                    answer))
                 (messages (cl-letf (((symbol-function 'yes-or-no-p) ask-user))
                             (gemini-companion-test-messages (funcall ask diff)))))
            (should (eq status (gemini-companion-edit-status diff)))
            (should (eq (and (eq answer 'closed) (equal what "killing"))
                        (equal messages '("This review has ended already"))))
            (should (equal (and answer "mine new\n")
                           (gemini-companion-test-last-proposal)))))))))

(ert-deftest gemini-companion-edit-keeps-edits-where-it-cannot-ask ()
  (pcase-dolist
      (`(,status . ,end)
       `((rejected . ,(lambda (_) (gemini-companion-proposal-settle-all 'rejected)))
         (dismissed . ,(lambda (_) (gemini-companion-proposal-settle-all 'dismissed)))
         (rejected
          . ,(lambda (diff)
               (kill-buffer (gemini-companion-edit-proposal-buffer diff))))
         (dismissed . ,(lambda (_)
                         (should (equal "mine new\n" (gemini-companion-server-receive
                                                         'close-diff 1 'closed)))))))
    (gemini-companion-edit-test-with '(("a" "old\n"))
      (let ((diff (gemini-companion-edit-test-edited)))
        (funcall end diff)
        (should-not (gemini-companion-edits-open))
        (should (eq status (gemini-companion-edit-status diff)))
        (should (eq (eq status 'rejected) (and outcomes t))))
      ;; Nothing is left of this one, which replaces no kept edits.
      (gemini-companion-edit-test-edited #'erase-buffer)
      (gemini-companion-server-receive 'close-diff 1 'closed)
      (should (equal "mine new\n" (gemini-companion-test-last-proposal))))))

(ert-deftest gemini-companion-edit-shows-one-kept-proposal-after-the-other ()
  (gemini-companion-edit-test-with '(("a" "old\n"))
    (dotimes (n 12)
      (gemini-companion-test-open (format "/a%d" n) "new\n" n)
      (with-current-buffer (gemini-companion-edit-proposal-buffer
                            (car (gemini-companion-edits-open)))
        (erase-buffer)
        (insert (format "text %d" n)))
      (gemini-companion-server-receive 'close-diff n 'closed))
    (save-window-excursion
      (dolist (n '(11 10 9 8 7 6 5 4 3 2 11))
        (gemini-companion-last-proposal)
        (with-current-buffer (window-buffer)
          (should (equal (format "text %d" n) (buffer-string)))))
      (kill-buffer (window-buffer)))))

(ert-deftest gemini-companion-edit-unwritten-is-reported-during-later-reviews ()
  "A CLI that reports no prompts may have one answer after the other."
  (gemini-companion-test-with-edits '(("a" "A\n") ("b" "B\n") ("c" "C\n"))
    (setq gemini-companion-test-send #'ignore)
    (let* ((edit (gemini-companion-test-accept "a" "1\n" 1 session))
           (other (gemini-companion-test-accept "b" "2\n" 2 session))
           (last (gemini-companion-test-open "c" "3\n" 4 session)))
      ;; Qwen Code writes nothing before that.
      (dotimes (_ 300)
        (gemini-companion-test-run-timers))
      (should (eq 'accepted (gemini-companion-edit-status edit)))
      (gemini-companion-edit-reject last)
      (gemini-companion-test-write "b" "2\n")
      (gemini-companion-test-in-the-end
        (eq 'written (gemini-companion-edit-file-state other)))
      (let ((later (gemini-companion-test-open "c" "3\n" 3 session)))
        (should (eq (gemini-companion-edit-turn edit)
                    (gemini-companion-edit-turn later)))
        (gemini-companion-test-in-the-end
          (eq 'unwritten (gemini-companion-edit-status edit)))
        (should (gemini-companion-edit-open-p later))))))

(ert-deftest gemini-companion-edit-refuses-to-accept-an-emptied-proposal ()
  (gemini-companion-edit-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-test-open "a" "new\n")))
      (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
        (erase-buffer))
      (should-error (gemini-companion-edit-accept diff) :type 'user-error)
      (should-not outcomes)
      (should (gemini-companion-edits-open)))
    (let ((diff (gemini-companion-test-open "b" "" 2)))
      (gemini-companion-edit-accept diff)
      (should (equal '((2 accepted "")) outcomes)))))

(ert-deftest gemini-companion-edit-stays-open-if-its-outcome-cannot-be-sent ()
  (dolist (problem '(error quit))
    (gemini-companion-edit-test-with '(("a" "old\n"))
      (let ((diff (gemini-companion-test-open "a" "new\n")))
        (let ((gemini-companion-test-send
               (lambda (_) (signal problem nil))))
          (should (eq problem (condition-case err
                                  (gemini-companion-edit-accept diff)
                                ((error quit) (car err))))))
        (should (equal (list diff) (gemini-companion-edits-open)))
        (gemini-companion-edit-reject diff)
        (should (equal '((1 rejected nil)) outcomes))))))

(ert-deftest gemini-companion-edit-waits-for-the-view-of-one-that-ended ()
  (gemini-companion-edit-test-with '(("a" "old\n"))
    (let* ((first (gemini-companion-test-open "a" "new\n"))
           (stays (lambda ()
                    (interactive)
                    (dotimes (_ 3) (gemini-companion-test-run-timers))
                    (should (equal (list first) views))))
           second)
      (gemini-companion-test-eventually (equal (list first) views))
      ;; A command is going on, then a menu is open, then a search.
      (command-execute
       (lambda ()
         (interactive)
         (gemini-companion-server-receive 'close-diff 1 'closed)
         (setq second (gemini-companion-test-open "b" "new\n" 2))
         (funcall stays)))
      (let ((transient--prefix t))
        (funcall stays))
      (with-current-buffer (window-buffer)
        (let ((isearch-mode t))
          (funcall stays)))
      (gemini-companion-test-eventually (equal (list second) views))
      ;; At its end, a prompt restores the windows of its beginning.
      (cl-letf (((symbol-function 'active-minibuffer-window) #'always))
        (gemini-companion-edit-accept second)
        (should (equal (list second) views)))
      (gemini-companion-test-eventually (not views)))))

;; The letters that follow would be inserted in another buffer.
(ert-deftest gemini-companion-edit-closes-no-view-in-which-the-user-is-typing ()
  (pcase-dolist (`(,written ,more ,kept) '((nil "more " "mine more new\n")
                                           ;; By a yes in the terminal.
                                           ("mine new\n" "" nil)))
    (gemini-companion-edit-test-with '(("a" "old\n"))
      (let ((proposal (gemini-companion-edit-proposal-buffer
                       (gemini-companion-edit-test-edited)))
            (idle 0.1))
        (gemini-companion-test-eventually views)
        (cl-letf (((symbol-function 'current-idle-time)
                   (lambda () (seconds-to-time idle))))
          (save-window-excursion
            (set-window-buffer nil proposal)
            (with-current-buffer proposal
              (gemini-companion-server-receive 'close-diff 1 'closed)
              (when written
                (gemini-companion-test-rewrite "a" written)
                (gemini-companion-test-eventually
                  (not (gemini-companion-edits-kept))))
              (gemini-companion-test-run-timers)
              (should views)
              (insert more))
            (setq idle 2)
            (gemini-companion-test-eventually (not views))))
        (should (equal kept (gemini-companion-test-last-proposal)))))))

(ert-deftest gemini-companion-edit-outlives-a-clone-of-its-proposal ()
  (gemini-companion-edit-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-test-open "a" "new\n")))
      (gemini-companion-test-eventually views)
      (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
        (kill-buffer (clone-indirect-buffer "clone" nil)))
      (should (equal (list diff) (gemini-companion-edits-open)))
      (kill-buffer (gemini-companion-edit-proposal-buffer diff))
      (should (equal '((1 rejected nil)) outcomes)))))

;;;; Files that change

(ert-deftest gemini-companion-edit-dismisses-what-was-written-by-itself ()
  (pcase-dolist (`(,old ,proposal ,written ,visible)
                 '(("old\n" "new\n" "new\n" "new\n")
                   ("o\r\n" "n\nm\n" "n\r\nm\r\n" "n\nm\n")
                   ("o" "é\n" "\uFEFFé\n" "é\n")
                   ("old\n" "" "" "")))
    (gemini-companion-edit-test-with (list (list "a" old))
      (let ((diff (gemini-companion-test-open "a" proposal)))
        (with-current-buffer (find-file-noselect "a")
          (gemini-companion-test-eventually views)
          (gemini-companion-test-rewrite "a" written)
          (gemini-companion-test-in-the-end (not views))
          (gemini-companion-test-eventually (equal visible (buffer-string)))
          (should (verify-visited-file-modtime)))
        (should (eq 'dismissed (gemini-companion-edit-decision diff)))
        (should (eq 'accepted (gemini-companion-edit-status diff)))
        (should-not outcomes)
        (gemini-companion-test-in-the-end
          (not (gemini-companion-test-timers)))))))

(defmacro gemini-companion-edit-test-with-answers (files &rest body)
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

(ert-deftest gemini-companion-edit-asks-before-a-change-is-overwritten ()
  (pcase-dolist (`(,written ,accepted ,asks)
                 '(("one\n2\n3\n4\n5\n" "1\n2\n3\n4\nfive\n" t)
                   ("one\n2\n3\n4\n5\n" "one\n2\n3\n4\nfive\n" t)
                   ("1\n2\n3\n4\n5\n" "1\n2\n3\n4\nfive\n" nil)
                   (nil "1\n2\n3\n4\nfive\n" t)))
    (ert-info ((format "%S, %S" written accepted))
      (gemini-companion-edit-test-with-answers '(("a" "1\n2\n3\n4\n5\n"))
        (let ((diff (gemini-companion-test-show "a" "1\n2\n3\n4\nfive\n")))
          (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
            (erase-buffer)
            (insert accepted))
          (if written
              (gemini-companion-test-rewrite "a" written)
            (delete-file "a"))
          ;; At once, before the next check of the file.
          (gemini-companion-edit-accept diff)
          (should (eql (if asks 1 0) asked))
          (when asks
            (should-not outcomes)
            (setq answer t)
            (gemini-companion-edit-accept diff))
          (should (equal (list (list 1 'accepted accepted)) outcomes)))))))

(ert-deftest gemini-companion-edit-asks-about-what-was-never-shown ()
  (dolist (views '((view accept) (accept view)))
    (gemini-companion-edit-test-with-answers '(("a" "old\n"))
      (let* ((gemini-companion-review-arrival 'notify)
             (gemini-companion-review-view 'diff)
             (diff (gemini-companion-test-open "a" "new\n")))
        (gemini-companion-test-rewrite "a" "saved\n")
        (dolist (step views)
          (if (eq step 'accept)
              (gemini-companion-edit-accept diff)
            (gemini-companion-arrival-view diff)))
        (should (string-search "file changed"
                               (gemini-companion-test-header
                                (gemini-companion-review-main-buffer diff))))
        (should (equal '(1 nil) (list asked outcomes)))))))

;;;; Edits that were not written

(ert-deftest gemini-companion-edit-reports-edits-that-were-not-written-once ()
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
                           (gemini-companion-test-last-proposal)))))))))

;;;; Records and reverts

(defun gemini-companion-edits-test-reported ()
  "Return a list of (NAME STATE BEFORE AFTER) of all edits."
  (mapcar (lambda (edit)
            (list (file-name-nondirectory (gemini-companion-edit-file edit))
                  (gemini-companion-edit-status edit)
                  (gemini-companion-edit-before edit)
                  (gemini-companion-edit-after edit)))
          (gemini-companion-edits)))

(ert-deftest gemini-companion-edits-has-what-the-terminal-let-overwrite ()
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
    (gemini-companion-changes-check (car (gemini-companion-edits)))
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
                                                       '(:id "other"))))
           (events nil)
           (gemini-companion-edit-functions
            (cons (lambda (edit event) (push (list edit event) events))
                  gemini-companion-edit-functions)))
      (gemini-companion-test-accept "d" "4\n" 6 session)
      (gemini-companion-test-eventually (gemini-companion-edit-decision other))
      (gemini-companion-test-in-the-end (not (gemini-companion-test-timers)))
      (should (equal '(unreviewed rejected dismissed accepted)
                     (nthcdr 2 (gemini-companion-edits-test-states))))
      ;; The marks of earlier turns go then.
      (should-not (member (list refused 'written) events))
      (should-error (gemini-companion-changes-check other) :type 'user-error))))

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

;; Copilot CLI does not wait until its review is closed.
(ert-deftest gemini-companion-edits-has-the-text-before-one-written-meanwhile ()
  (gemini-companion-test-with-edits '(("a" "A\n"))
    (gemini-companion-test-open "a" "1\n" 1 session)
    (advice-add 'gemini-companion-text-bytes :before
                (lambda (file) (gemini-companion-test-write file "1\n"))
                '((name . write)))
    (unwind-protect
        (gemini-companion-server-receive 'close-diff 1 'closed)
      (advice-remove 'gemini-companion-text-bytes 'write))
    (gemini-companion-test-write "a" "1\n")
    (gemini-companion-test-eventually
      (equal '(("a" accepted "A\n" "1\n"))
             (gemini-companion-edits-test-reported)))))

(ert-deftest gemini-companion-edits-records-what-was-written-without-review ()
  (gemini-companion-test-with-edits nil
    (let ((file (expand-file-name "a")))
      (gemini-companion-file-state-record session file "é\n" "new\n")
      (gemini-companion-file-state-record session file nil "newer\n")
      ;; A CLI takes any file for UTF-8.
      (gemini-companion-file-state-record session file "caf\uFFFD\n" "last\n")
      (should (equal '(("a" unreviewed "\303\251\n" "new\n")
                       ("a" unreviewed new "newer\n")
                       ("a" unreviewed unknown "last\n"))
                     (gemini-companion-edits-test-reported))))))

(ert-deftest gemini-companion-edits-records-a-write-of-a-file-that-is-gone ()
  "The text before the first edit was too large to be kept."
  (gemini-companion-test-with-edits
      `(("a" ,(make-string (* 6 1024 1024) ?x)))
    (gemini-companion-edit-reject (gemini-companion-test-open "a" "1\n" 1 session))
    (delete-file "a")
    (gemini-companion-file-state-record session (expand-file-name "a") "A\n" "1\n")
    (should (equal '(rejected unreviewed) (gemini-companion-edits-test-states)))))

(ert-deftest gemini-companion-edits-records-a-reviewed-edit-once ()
  (gemini-companion-test-with-edits '(("a" "A\r\n") ("b" "B\n") ("c" "C\n"))
    (gemini-companion-test-accept "a" "1\n" 1 session)
    (gemini-companion-edit-reject (gemini-companion-test-open "b" "2\n" 2 session))
    (gemini-companion-test-open "c" "C" 3 session)
    (gemini-companion-server-receive 'close-diff 3 'closed)
    (gemini-companion-test-accept "d" "4\n" 4 session)
    (make-symbolic-link "." "link")
    (pcase-dolist (`(,file ,before ,after . ,states)
                   '(("a" "A\r\n" "1\r\n" accepted rejected dismissed accepted)
                     ("c" "C\n" "C" accepted rejected accepted accepted)
                     ("link/d" nil "4\n" accepted rejected accepted accepted)
                     ;; It writes again, and what was rejected, of two texts.
                     ("a" "x\n" "1\r\n" accepted rejected accepted accepted
                      unreviewed)
                     ("b" "x\n" "2\n" accepted rejected accepted accepted
                      unreviewed unreviewed)
                     ("link/b" "B\n" "2\n" accepted unreviewed accepted accepted
                      unreviewed unreviewed)))
      (gemini-companion-file-state-record session (expand-file-name file) before after)
      (ert-info (file)
        (should (equal states (gemini-companion-edits-test-states)))))
    (should (equal "4 files"
                   (car (gemini-companion-edit-hunks-total (gemini-companion-edits)))))))

(ert-deftest gemini-companion-edits-records-an-edit-once-if-no-prompt-was-reported ()
  (gemini-companion-test-with-edits '(("a" "A\n") ("b" "B\n"))
    (gemini-companion-test-accept "a" "1\n" 1 session)
    ;; Answered in the terminal.
    (gemini-companion-test-open "b" "1\n" 2 session)
    (gemini-companion-server-receive 'close-diff 2 'closed)
    (pcase-dolist (`(,file ,before) '(("a" "A\n") ("b" "B\n")))
      (funcall (gemini-companion-server-receive 'ask 'edited
                 (list :path (expand-file-name file) :pids '(1)) before "1\n")
               #'ignore)
      (should (gemini-companion-session-turn session))
      ;; Emacs may see the file before its report.
      (gemini-companion-test-write "b" "1\n")
      (gemini-companion-test-eventually
        (equal '(accepted accepted) (gemini-companion-edits-test-states))))))

(ert-deftest gemini-companion-edits-keeps-a-hundred-and-forgets-at-the-end ()
  (gemini-companion-test-with-edits nil
    (let ((open (gemini-companion-test-open "open" "x\n" 1 session)))
      (dotimes (i 105)
        (gemini-companion-file-state-record session (format "/f%d" i) nil "x\n"))
      (pcase-let ((`(,first . ,others) (gemini-companion-edits)))
        (should (eq open first))
        (should (= 100 (length others)))
        (should (equal "/f5" (gemini-companion-edit-file (car others)))))
      (dotimes (_ 20)
        (gemini-companion-file-state-record session "/large" nil
                                            (make-string (* 4 1024 1024) ?x)))
      (should (> 12 (length (gemini-companion-edits))))
      (gemini-companion-proposal-settle-all 'rejected 'now))
    (gemini-companion-part-stop 'edit)
    (should-not (gemini-companion-edits))))

(ert-deftest gemini-companion-edit-follows-what-becomes-of-its-file ()
  (gemini-companion-test-with-edits '(("c" "A\n"))
    (make-symbolic-link "target" "new")
    ;; From A to B, C and B: without the first, none of them is in the file.
    (pcase-dolist (`(,file . ,reverted) '(("c" 0) ("new" 3) ("newer" 8 7 6)))
      (dolist (text '("B\n" "C\n" "B\n"))
        (gemini-companion-test-accept file text 3 session))
      (find-file-noselect file) ; of a new file, it is killed
      (dolist (index reverted)
        (gemini-companion-changes-revert (nth index (gemini-companion-edits)))))
    (should (equal "A\n" (gemini-companion-test-file-text "c")))
    (should-not (file-exists-p "target"))
    ;; It may be noticed only now that they were written.
    (gemini-companion-test-in-the-end (not (gemini-companion-test-timers)))
    (should (equal "A\n" (gemini-companion-test-file-text "c")))
    (should (equal '(reverted reverted reverted
                     deleted reverted reverted deleted reverted reverted)
                   (gemini-companion-edits-test-states)))))

(ert-deftest gemini-companion-edit-refused-is-not-what-the-next-turn-writes ()
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
                  (gemini-companion-file-state-record session buffer-file-name
                                                      "A\n" "1\n")
                (gemini-companion-test-write "a" "1\n")
                (gemini-companion-test-eventually
                  (equal "1\n" (buffer-string)))))
            (should (equal '(dismissed unreviewed)
                           (gemini-companion-edits-test-states)))
            (gemini-companion-changes-revert (cadr (gemini-companion-edits)))
            (should (equal '(dismissed reverted)
                           (gemini-companion-edits-test-states)))
            (kill-buffer)))))))

;;;; Who has written the file

(ert-deftest gemini-companion-edit-that-the-user-saves-over-is-not-written ()
  "Qwen Code refuses to write a file that has changed since it read it."
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
          (should-error (gemini-companion-changes-check first) :type 'user-error)
          (gemini-companion-edit-accept second)
          (gemini-companion-test-write "b" "new\n")
          (should (seq-some
                   (apply-partially #'string-search "a was accepted but was not")
                   (gemini-companion-test-messages
                     (should (equal '(unwritten accepted)
                                    (gemini-companion-edit-test-ends
                                     first second)))))))))))

(ert-deftest gemini-companion-edit-is-written-before-the-user-saves-over-it ()
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

(ert-deftest gemini-companion-edit-refused-is-not-what-emacs-writes ()
  (gemini-companion-test-with-edits '(("a" "A\n"))
    ;; Typed and saved by the user, also during the review.
    (let ((edit (gemini-companion-test-open "a" "1\n" 1 session)))
      (gemini-companion-edit-reject edit)
      (gemini-companion-edit-test-save "a" "1\n")
      (should (equal '(rejected) (gemini-companion-edit-test-ends edit))))
    (let ((edit (gemini-companion-test-arrive "a" "2\n" 2 session)))
      (gemini-companion-edit-test-save "a" "2\n")
      (gemini-companion-test-in-the-end (gemini-companion-edit-decision edit))
      (should (equal '(dismissed) (gemini-companion-edit-test-ends edit))))
    ;; Reverted in Emacs.
    (let ((written (gemini-companion-test-accept "a" "3\n" 3 session))
          (refused (gemini-companion-test-open "a" "2\n" 4 session)))
      (gemini-companion-server-receive 'close-diff 4 'closed)
      (gemini-companion-changes-revert written)
      (should (equal '(reverted dismissed)
                     (gemini-companion-edit-test-ends written refused))))))

(ert-deftest gemini-companion-edit-refused-is-not-what-another-cli-writes ()
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

(ert-deftest gemini-companion-edit-is-not-written-where-the-file-is-the-same ()
  (dolist (change (list (lambda () (set-file-times "a"))
                        (lambda () (gemini-companion-test-rewrite "a" "1\r\n2\r\n3\r\n"))
                        ;; As git checkout.
                        (lambda ()
                          (gemini-companion-test-rewrite "a" "1\n2\n3\nother\n"))))
    (gemini-companion-test-with-edits '(("a" "1\n2\n3\n"))
      (setq gemini-companion-test-send #'ignore)
      (let ((edit (gemini-companion-test-accept "a" "eins\n2\n3\n" 1 session)))
        (funcall change)
        (should (equal '(unwritten) (gemini-companion-edit-test-ends edit)))))))

(ert-deftest gemini-companion-edit-edited-beside-another-may-not-be-written ()
  "Qwen Code writes the files of an answer at its end, and merges two edits.
It does not find the place of the second one if the user has changed that."
  (pcase-dolist
      (`(,written ,expected)
       '((("A\n2\n3\n4\n5\n") (accepted unwritten unwritten))
         (("A\n2\n3\n4\n5\n" "A\n2\n3\n4\nE\n") (accepted unwritten accepted))
         (("A\n2\n3\n4\nE\n") (accepted unwritten accepted))
         ;; All were merged.
         (("A\n2\nmine C\n4\nE\n") (accepted accepted accepted))))
    (ert-info ((format "%S" written))
      (gemini-companion-test-with-edits '(("a" "1\n2\n3\n4\n5\n"))
        (setq gemini-companion-test-send #'ignore)
        (let* ((one (gemini-companion-test-accept "a" "A\n2\n3\n4\n5\n" 1 session))
               (two (gemini-companion-test-open "a" "1\n2\nC\n4\n5\n" 2 session))
               three)
          (should (gemini-companion-file-state-follows-p two))
          (with-current-buffer (gemini-companion-edit-proposal-buffer two)
            (goto-char 5)
            (insert "mine "))
          (gemini-companion-edit-accept two)
          (setq three (gemini-companion-test-accept "a" "1\n2\n3\n4\nE\n" 3 session))
          (dolist (text written)
            (gemini-companion-test-write "a" text)
            (dotimes (_ 3)
              (gemini-companion-test-run-timers)))
          (should (equal expected (gemini-companion-edit-test-ends one two three)))
          (should (equal (and (eq 'unwritten (nth 1 expected))
                              "1\n2\nmine C\n4\n5\n")
                         (cdr (gemini-companion-edit-kept two)))))))))

(ert-deftest gemini-companion-edit-in-the-place-of-another-is-not-written ()
  (gemini-companion-test-with-edits '(("a" "1\n2\n3\n"))
    (setq gemini-companion-test-send #'ignore)
    (let* ((one (gemini-companion-test-accept "a" "A\n2\n3\n" 1 session))
           (two (gemini-companion-test-accept "a" "B\n2\n3\n" 2 session))
           (three (gemini-companion-test-accept "a" "1\n2\nC\n" 3 session)))
      (gemini-companion-test-write "a" "A\n2\nC\n")
      (should (equal '(accepted unwritten accepted)
                     (gemini-companion-edit-test-ends one two three))))))

(ert-deftest gemini-companion-edit-asks-before-it-undoes-the-edits-of-the-user ()
  (pcase-dolist (`(,proposal ,mine ,asks) '(("1\nB\nC\n" nil t)
                                            ;; The user has merged it.
                                            ("1\nB\nC\n" "1\nmine B\nC\n" nil)
                                            ;; The CLI has read the file since.
                                            ("1\nmine B\nC\n" nil nil)))
    (gemini-companion-edit-test-with-copilot
      (gemini-companion-test-rewrite "a" "1\nB\n3\n")
      (funcall run)
      (let ((next (gemini-companion-test-open "a" proposal 2 session))
            (asked 0))
        (should (eq (not (string-search "mine" proposal))
                    (and (memq 'undoes (gemini-companion-edit-remarks next)) t)))
        (when mine
          (with-current-buffer (gemini-companion-edit-proposal-buffer next)
            (gemini-companion-replace-text mine)))
        (cl-letf (((symbol-function 'yes-or-no-p)
                   (lambda (question)
                     (should (string-search "undoes yours" question))
                     (cl-incf asked)
                     nil)))
          (gemini-companion-edit-accept next))
        (should (eq asks (= 1 asked)))
        (should (eq asks (gemini-companion-edit-open-p next)))))))

;;;; Outcomes

(ert-deftest gemini-companion-edit-outlives-a-crash-if-the-cli-knows-of-it ()
  "It asks in its terminal if it has no answer to openDiff."
  (gemini-companion-edit-test-with '(("a" "old\n") ("b" "old\n"))
    (let ((known (gemini-companion-test-open "a" "new\n"))
          calls)
      (gemini-companion-server-receive 'diff-opened 1)
      (gemini-companion-test-open "b" "new\n" 2)
      (cl-letf (((symbol-function 'gemini-companion-server-call)
                 (lambda (method id &rest _) (push (list method id) calls))))
        (gemini-companion-part-ready 'proposal 'resumed))
      (should (equal '((diff-rejected 2) (adopt-diff 1)) calls))
      (should (equal (list known) (gemini-companion-edits-open))))))

(ert-deftest gemini-companion-outcome-undelivered-keeps-what-was-accepted ()
  (gemini-companion-test-with-edits '(("a\u202E" "old\n"))
    (setq gemini-companion-test-send #'ignore)
    (let ((diff (gemini-companion-test-open
                 "a\u202E" "new\n" 1 '(:id "one" :pid 7 :directory "/web"))))
      (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
        (insert "mine "))
      (gemini-companion-edit-accept diff)
      ;; The server has crashed before it could report that this was delivered.
      (gemini-companion-edit-accept (gemini-companion-test-open "b" "new\n" 2))
      (gemini-companion-file-state-record nil (expand-file-name "b") nil "new\n")
      ;; Once is enough.
      (dolist (id '(1 1 2))
        (gemini-companion-server-receive 'outcome-undelivered id))
      (let ((warnings (gemini-companion-test-text "*Warnings*")))
        (kill-buffer "*Warnings*")
        ;; The beginning of a long name is left out.
        (should (string-match-p "/a\\\\u202E was not written" warnings))
        (should (string-search "the CLI (web) is" warnings))
        (should (= 2 (length (split-string warnings "was not written")))))
      ;; The list and the header line show it.
      (should (eq 'unwritten (gemini-companion-edit-file-state diff)))
      (should (equal "mine new\n" (gemini-companion-test-last-proposal))))))

;;; gemini-companion-edit-test.el ends here
