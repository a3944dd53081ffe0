;;; gemini-companion-proposal-test.el --- Tests of proposals and their end  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-undo nil t)
(require 'gemini-companion-edit-test-helper)
(require 'gemini-companion-exit)
(require 'gemini-companion-part)
(require 'gemini-companion-proposal)
(require 'gemini-companion-replace)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-text-test-helper)

(defvar transient--prefix)

;;;; Opening

(ert-deftest gemini-companion-proposal-that-cannot-be-compared-is-not-opened ()
  (gemini-companion-edit-test-with '(("a" "old\nsame\nold\n"))
    (let ((buffers (buffer-list)))
      (gemini-companion-text-test-where-diff-fails
        (let ((problem (should-error (gemini-companion-test-open
                                      "a" "new\nsame\nnew\n"))))
          ;; The server adds to it: answer in the terminal of the CLI.
          (should (string-match-p reason (error-message-string problem))))
        (should-not (gemini-companion-edits))
        (should-not outcomes)
        (should-not (seq-difference (buffer-list) buffers))))
    (should (gemini-companion-test-open "a" "new\n"))))

(ert-deftest gemini-companion-proposal-is-not-accepted-unless-it-can-be-compared ()
  (gemini-companion-edit-test-with '(("a" "old\nsame\n"))
    (let ((diff (gemini-companion-test-open "a" "new\nsame\n")))
      (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
        (goto-char (point-max))
        (insert "mine\n"))
      (gemini-companion-text-test-where-diff-fails
        (should-error (gemini-companion-edit-accept diff)
                      :type 'gemini-companion-text-not-compared))
      (should-not outcomes)
      (gemini-companion-edit-accept diff)
      (should (equal '((1 accepted "new\nsame\nmine\n")) outcomes)))))

;;;; Answers

(ert-deftest gemini-companion-proposal-ends-once-with-the-text-as-it-was-edited ()
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
        (should-not kill-ring)))))

(ert-deftest gemini-companion-proposal-refuses-to-accept-an-emptied-proposal ()
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

(ert-deftest gemini-companion-proposal-stays-open-if-its-outcome-cannot-be-sent ()
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

;;;; Texts of the user

(ert-deftest gemini-companion-proposal-asks-before-edits-are-dropped ()
  (pcase-dolist (`(,what ,ask)
                 `(("killing" ,(lambda (diff)
                                 (kill-buffer
                                  (gemini-companion-edit-proposal-buffer diff))))
                   ("exit" ,(lambda (_)
                              (let ((kill-emacs-query-functions nil))
                                (gemini-companion-part-start 'exit)
                                (and (run-hook-with-args-until-failure
                                      'kill-emacs-query-functions)
                                     (gemini-companion-proposal-decide-all 'rejected
                                                                           'now)))))))
    (pcase-dolist (`(,answer . ,status)
                   '((nil . pending) (t . rejected) (closed . dismissed)))
      (ert-info ((format "%s %s" what answer))
        (gemini-companion-edit-test-with '(("a" "old\n"))
          (let* ((diff (gemini-companion-edit-test-edited))
                 (noninteractive nil)
                 (ask-user
                  (lambda (question)
                    (should (string-match-p
                             (if (equal what "exit")
                                 "\\`Your edits of the proposal for a are not written; "
                               " a .*discard your edits")
                             question))
                    (when (eq answer 'closed)
                      (gemini-companion-server-receive 'close-diff 1 'closed))
                    answer))
                 (messages (cl-letf (((symbol-function 'yes-or-no-p) ask-user))
                             (gemini-companion-test-messages (funcall ask diff)))))
            (should (eq status (gemini-companion-edit-status diff)))
            (should (eq (and (eq answer 'closed) (equal what "killing"))
                        (and (member "This review has ended already" messages) t)))
            (should (equal (and answer '("mine new\n")) kill-ring))))))))

(ert-deftest gemini-companion-proposal-keeps-edits-where-it-cannot-ask ()
  (pcase-dolist
      (`(,status . ,end)
       `((rejected . ,(lambda (_) (gemini-companion-proposal-decide-all 'rejected)))
         (dismissed . ,(lambda (_) (gemini-companion-proposal-decide-all 'dismissed)))
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
      (should (equal "mine new\n" (car kill-ring))))))

(ert-deftest gemini-companion-proposal-that-is-not-written-at-the-end-is-kept ()
  (gemini-companion-edit-test-with '(("a" "old\n"))
    (gemini-companion-test-diff-start #'ignore #'ignore)
    (gemini-companion-edit-accept (gemini-companion-edit-test-edited))
    (should-not kill-ring)
    (should (equal '("a is not written yet; your text is in the kill ring")
                   (gemini-companion-test-messages
                     (gemini-companion-proposal-decide-all 'rejected))))
    (should (equal '("mine new\n") kill-ring))))

;;;; Views

(ert-deftest gemini-companion-proposal-waits-for-the-view-of-one-that-ended ()
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
(ert-deftest gemini-companion-proposal-closes-no-view-in-which-the-user-is-typing ()
  (pcase-dolist (`(,written ,more ,kept)
                 '((nil "more " ("mine more new\n" "mine new\n"))
                   ;; By a yes in the terminal.
                   ("mine new\n" "" ("mine new\n"))))
    (gemini-companion-edit-test-with '(("a" "old\n"))
      (let* ((edit (gemini-companion-edit-test-edited))
             (proposal (gemini-companion-edit-proposal-buffer edit))
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
                  (eq 'written (gemini-companion-edit-file-state edit))))
              (gemini-companion-test-run-timers)
              (should views)
              (insert more))
            (setq idle 2)
            (gemini-companion-test-eventually (not views))))
        (should (equal kept kill-ring))))))

(ert-deftest gemini-companion-proposal-outlives-a-clone-of-its-proposal ()
  (gemini-companion-edit-test-with '(("a" "old\n"))
    (let ((diff (gemini-companion-test-open "a" "new\n")))
      (gemini-companion-test-eventually views)
      (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
        (kill-buffer (clone-indirect-buffer "clone" nil)))
      (should (equal (list diff) (gemini-companion-edits-open)))
      (kill-buffer (gemini-companion-edit-proposal-buffer diff))
      (should (equal '((1 rejected nil)) outcomes)))))

;;;; Files that change

(ert-deftest gemini-companion-proposal-dismisses-what-was-written-by-itself ()
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
        (should (eq 'dismissed (gemini-companion-edit-answer diff)))
        (should (eq 'accepted (gemini-companion-edit-status diff)))
        (should-not outcomes)
        (gemini-companion-test-in-the-end
          (not (gemini-companion-test-timers)))))))

(defmacro gemini-companion-proposal-test-with-answers (files &rest body)
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

(ert-deftest gemini-companion-proposal-asks-before-a-change-is-overwritten ()
  (pcase-dolist (`(,written ,accepted ,asks)
                 '(("one\n2\n3\n4\n5\n" "1\n2\n3\n4\nfive\n" t)
                   ("one\n2\n3\n4\n5\n" "one\n2\n3\n4\nfive\n" t)
                   ("1\n2\n3\n4\n5\n" "1\n2\n3\n4\nfive\n" nil)
                   (nil "1\n2\n3\n4\nfive\n" t)))
    (ert-info ((format "%S, %S" written accepted))
      (gemini-companion-proposal-test-with-answers '(("a" "1\n2\n3\n4\n5\n"))
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

(ert-deftest gemini-companion-proposal-asks-about-what-was-never-shown ()
  (dolist (views '((view accept) (accept view)))
    (gemini-companion-proposal-test-with-answers '(("a" "old\n"))
      (let* ((gemini-companion-review-arrival 'notify)
             (gemini-companion-review-view 'diff)
             (diff (gemini-companion-test-open "a" "new\n")))
        (gemini-companion-test-rewrite "a" "saved\n")
        (dolist (step views)
          (if (eq step 'accept)
              (gemini-companion-edit-accept diff)
            (gemini-companion-arrival-view diff 'requested)))
        (should (string-search "file changed"
                               (gemini-companion-test-header
                                (gemini-companion-review-main-buffer diff))))
        (should (equal '(1 nil) (list asked outcomes)))))))

;; Copilot CLI does not wait until its review is closed.
(ert-deftest gemini-companion-proposal-has-the-text-before-one-written-meanwhile ()
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

;;;; Outcomes

(ert-deftest gemini-companion-proposal-outlives-a-crash-if-the-cli-knows-of-it ()
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

(ert-deftest gemini-companion-proposal-outcome-undelivered-keeps-what-was-accepted ()
  (gemini-companion-test-needs-add-on 'changes)
  (gemini-companion-test-with-edits '(("a\u202E" "old\n"))
    (setq gemini-companion-test-send #'ignore)
    (let ((diff (gemini-companion-test-open
                 "a\u202E" "new\n" 1
                 (gemini-companion-session-make :id "one" :pid 7 :directory "/web"))))
      (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
        (insert "mine "))
      (gemini-companion-edit-accept diff)
      ;; The server has crashed before it could report that this was delivered.
      (gemini-companion-edit-accept (gemini-companion-test-open "b" "new\n" 2))
      (gemini-companion-reported-write nil (expand-file-name "b") nil "new\n")
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
      (should (equal "mine new\n" (car kill-ring))))))

;;; gemini-companion-proposal-test.el ends here
