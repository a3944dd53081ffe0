;;; gemini-companion-written-test.el --- Tests of what a CLI is expected to write  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-edit-test-helper)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-written)

(ert-deftest gemini-companion-edit-accepted-is-awaited-until-all-are-answered ()
  ;; Qwen Code then writes the files of a turn.
  (gemini-companion-edit-test-with '(("a" "A\n") ("b" "B\n"))
    (gemini-companion-edit-accept (gemini-companion-test-open "a" "1\n"))
    (let ((last (gemini-companion-test-open "b" "2\n" 2)))
      (dotimes (_ 300)
        (gemini-companion-test-run-timers))
      (gemini-companion-edit-accept last))
    (gemini-companion-test-write "a" "1\n")
    (gemini-companion-test-in-the-end
      (equal '(accepted unwritten) (gemini-companion-edits-test-states)))))

;; A CLI that always has a review open kept each edit in memory, with its texts.
(ert-deftest gemini-companion-edit-that-was-dropped-is-not-awaited-forever ()
  (gemini-companion-test-needs-add-on 'changes)
  (gemini-companion-test-with-edits '(("a" "old\n"))
    (setq gemini-companion-test-send #'ignore)
    (let ((edit (gemini-companion-test-accept "a" "new\n" 1 session))
          (minutes (lambda ()
                     (dotimes (_ 300)
                       (gemini-companion-test-run-timers)))))
      (gemini-companion-server-receive 'outcome-written 1)
      (gemini-companion-test-open "b" "new\n" 2 session)
      (funcall minutes)
      (should (gemini-companion-attribution-awaited-p edit))
      (dotimes (i 100)
        (gemini-companion-reported-write session (format "/f%d" i) nil "x\n"))
      (should-not (memq edit (gemini-companion-edits)))
      (should-not (gemini-companion-test-messages (funcall minutes)))
      (should-not (gemini-companion-attribution-awaited-p edit)))))

;; With a hundred edits of a file that had been rejected, the checks of the next
;; minute took two thirds of a processor.
(ert-deftest gemini-companion-checks-of-files-look-at-no-other-edits ()
  (gemini-companion-edit-test-with '(("a" "A\n"))
    (dotimes (i 20)
      (gemini-companion-edit-reject
       (gemini-companion-test-open "a" "1\n" (1+ i))))
    (gemini-companion-test-open "a" "2\n" 21)
    ;; The first check of each reads the file.
    (dotimes (_ 3)
      (gemini-companion-test-run-timers))
    (let ((looks 0)
          (checks 0))
      (cl-letf* ((edits (symbol-function 'gemini-companion-edits))
                 (true-name (symbol-function 'file-truename))
                 (check (symbol-function 'gemini-companion-watch-check))
                 ((symbol-function 'gemini-companion-edits)
                  (lambda () (cl-incf looks) (funcall edits)))
                 ((symbol-function 'file-truename)
                  (lambda (&rest arguments)
                    (cl-incf looks)
                    (apply true-name arguments)))
                 ((symbol-function 'gemini-companion-watch-check)
                  (lambda (&rest arguments)
                    (cl-incf checks)
                    (apply check arguments))))
        (dotimes (_ 3)
          (gemini-companion-test-run-timers)))
      (should (< 20 checks))
      (should (= 0 looks)))))

(ert-deftest gemini-companion-edit-accepted-and-not-written-is-kept ()
  (pcase-dolist (`(,written ,report ,state ,kept)
                 '(("a" "Accepted a" accepted nil)
                   ("b" "was not written" unwritten "mine new\n")))
    (gemini-companion-edit-test-with '(("a" "old\n"))
      (gemini-companion-test-diff-start
       #'ignore
       (lambda (_) (write-region "mine new\n" nil (expand-file-name written))))
      (let ((diff (gemini-companion-edit-test-edited)))
        (should (string-search
                 report
                 (car (gemini-companion-test-messages
                        (gemini-companion-edit-accept diff)
                        (gemini-companion-test-in-the-end
                          (not (gemini-companion-test-timers)))))))
        (should (eq state (gemini-companion-edit-status diff)))
        (should (equal kept (car kill-ring)))
        ;; The CLI reports it late, and it is not recorded again.
        (gemini-companion-reported-write (gemini-companion-edit-session diff)
                                         (gemini-companion-edit-file diff)
                                         "old\n" "mine new\n")
        (should (eq diff (car (last (gemini-companion-edits)))))
        (should (eq 'accepted (gemini-companion-edit-status diff)))))))

(ert-deftest gemini-companion-edit-writes-what-the-cli-ignores ()
  ;; CLIENT writes CLI, and then the file has LAST.
  (pcase-dolist
      (`(,client ,before ,mine ,cli ,last ,kept ,terminal)
       '(("copilot" "one\n" "mine " "new\n" "mine new\n" nil)
         ("copilot" "one\n" nil "new\n" "new\n" nil)
         ("copilot" "\uFEFFone\r\n" "é " "\uFEFFnew\r\n" "\uFEFFé new\r\n" nil)
         ;; It has another text, as after a program that formats it.
         ("copilot" "one\n" "mine " "New;\n" "New;\n" "mine new\n")
         ("copilot" "one\n" nil "New;\n" "New;\n" nil)
         ;; A yes in the terminal is one to what that shows.
         ("copilot" "one\n" "mine " "new\n" "new\n" "mine new\n" terminal)
         ;; It writes what was accepted.
         ("gemini" "one\n" "mine\n" "new\n" "new\n" "mine\nnew\n")))
    (dolist (visited '(t nil))
      (gemini-companion-test-with-edits nil
        (gemini-companion-test-write "a" before)
        (let ((create-lockfiles t)
              (buffer (and visited (find-file-noselect "a")))
              (diff (gemini-companion-test-open
                     "a" "new\n" 1 (gemini-companion-test-session-like
                                    session :client client))))
          (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
            (insert (or mine "")))
          (when buffer
            (with-current-buffer buffer
              ;; As outside the home, where Emacs asks about a file that has changed.
              (setq buffer-file-truename (expand-file-name "a"))))
          (setq gemini-companion-test-send #'ignore)
          (if terminal
              (gemini-companion-server-receive 'close-diff 1 'closed)
            (gemini-companion-edit-accept diff)
            (should (equal (if (equal "mine\n" mine) "+2 −1" "+1 −1")
                           (gemini-companion-edit-hunks-lines (list diff)))))
          (gemini-companion-test-write "a" cli)
          (gemini-companion-test-in-the-end
            (gemini-companion-edit-file-state diff))
          (should (equal last (gemini-companion-text-read "a")))
          (should (eq 'accepted (gemini-companion-edit-status diff)))
          (should (equal (if kept "new\n" (concat mine "new\n"))
                         (gemini-companion-edit-after diff)))
          (should (equal "+1 −1" (gemini-companion-edit-hunks-lines (list diff))))
          (should (equal kept (car kill-ring)))
          (when buffer
            (gemini-companion-test-in-the-end
              (equal (gemini-companion-text-normalized last)
                     (gemini-companion-text-of-buffer buffer)))
            (should-not (buffer-modified-p buffer))
            (should (verify-visited-file-modtime buffer))
            (kill-buffer buffer)))))))

(ert-deftest gemini-companion-edit-is-written-over-whatever-comes-first ()
  (dolist (writes '((touch "1\nB\n3\n")
                    ("1\nB" "1\nB\n3\n")
                    ("1\nB\n3\n" "1\nB\n3\n")
                    ("" "1\n" "1\nB\n3\n" "1\n" "1\nB\n3\n")))
    (ert-info ((format "%S" writes))
      (gemini-companion-edit-test-with-copilot
        (dolist (text writes)
          (if (eq text 'touch)
              (set-file-times "a" (time-add nil 5))
            (gemini-companion-test-rewrite "a" text))
          (funcall run))
        (should (equal '(accepted) (gemini-companion-edit-test-ends edit)))
        (should (equal "1\nmine B\n3\n" (gemini-companion-test-file-text "a")))
        (should-not kill-ring)))))

(ert-deftest gemini-companion-edit-is-not-written-over-another-or-the-user ()
  (dolist (what '(user edit turn))
    (ert-info ((symbol-name what))
      (gemini-companion-edit-test-with-copilot
        (gemini-companion-test-rewrite "a" "1\nB\n3\n")
        (funcall run)
        (should (equal "1\nmine B\n3\n" (gemini-companion-test-file-text "a")))
        (pcase what
          ('user (gemini-companion-edit-test-save "a" "1\nmine B\n3\nmore\n"))
          ('edit (gemini-companion-test-open "a" "1\nB\nC\n" 2 session))
          ('turn (setf (gemini-companion-session-turn session)
                       (gemini-companion-turn-make :began (+ 5 (float-time))))))
        (gemini-companion-test-rewrite "a" "1\nB\n3\n")
        (funcall run)
        (should (equal "1\nB\n3\n" (gemini-companion-test-file-text "a")))
        (should (equal '("1\nmine B\n3\n") kill-ring))))))

;;; gemini-companion-written-test.el ends here
