;;; gemini-companion-overview-row-test.el --- Tests of the rows of the overview  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-overview-test-helper)

(defun gemini-companion-overview-row-test-tree (rows)
  "Return ROWS as a tree of their kinds and what they count."
  (mapcar (lambda (row)
            (append (list (gemini-companion-overview-row-kind row))
                    (and (gemini-companion-overview-row-path row)
                         (list (file-name-nondirectory
                                (gemini-companion-overview-row-path row))
                               (length (gemini-companion-overview-row-left row))
                               (length (gemini-companion-overview-row-decided row))))
                    (gemini-companion-overview-row-test-tree
                     (gemini-companion-overview-row-rows row))))
          rows))

(ert-deftest gemini-companion-overview-row-are-of-the-newest-turn-of-a-change ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n4\n5\n") ("b" "B\n"))
    (gemini-companion-state-report session 'prompt "First")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\nfive\n" session)
    (gemini-companion-test-writes "b" "C\n" session 'reviewed)
    (gemini-companion-state-report session 'end nil)
    (gemini-companion-state-report session 'prompt "Second")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\ncinq\n" session)
    (gemini-companion-edit-reject (gemini-companion-test-open "b" "D\n" 5 session))
    (gemini-companion-test-open "b" "E\n" 6 session)
    (let ((rows (gemini-companion-overview-rows directory)))
      (should (equal '((waiting (proposal "b" 0 0))
                       (cli (turn (file "a" 1 0) (file "b" 0 0))
                            (turn (file "a" 1 0) (file "b" 0 1))))
                     (gemini-companion-overview-row-test-tree rows)))
      (should (= 2 (gemini-companion-overview-row-count-left (cadr rows))))
      (should (eq (gemini-companion-session-turn session)
                  (gemini-companion-overview-row-newer
                   (car (gemini-companion-overview-row-files
                         (cadr (gemini-companion-overview-row-rows (cadr rows)))))))))))

(ert-deftest gemini-companion-overview-row-of-the-project-come-first ()
  (gemini-companion-overview-test-with nil
    (let ((here (list :id "here" :directory (directory-file-name directory) :pid 11))
          (there '(:id "there" :directory "/elsewhere" :pid 12))
          (gone '(:id "gone" :directory "/gone" :pid 13)))
      (gemini-companion-server-receive 'sessions-update (list there here))
      (gemini-companion-file-state-record gone (expand-file-name "a") nil "1\n")
      (should (equal '("here" "there" "gone")
                     (mapcar (lambda (row)
                               (plist-get (gemini-companion-overview-row-session row) :id))
                             (gemini-companion-overview-rows directory)))))))

(ert-deftest gemini-companion-overview-row-group-changes-by-their-files ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n4\n5\n") ("b" "B\n"))
    (gemini-companion-state-report session 'prompt "First")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n" session)
    (gemini-companion-state-report session 'end nil)
    (gemini-companion-state-report session 'prompt "Second")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\nfive\n" session)
    (gemini-companion-test-writes "b" "C\n" session)
    (let ((groups (gemini-companion-overview-row-groups
                   (car (gemini-companion-overview-rows directory)))))
      (should (equal '(("a" 0 4) ("b" 0))
                     (sort (mapcar (pcase-lambda (`(,record . ,changes))
                                     (cons (file-name-nondirectory
                                            (gemini-companion-changes-file-name record))
                                           (mapcar #'gemini-companion-lines-change-start
                                                   changes)))
                                   groups)
                           (lambda (a b) (string< (car a) (car b)))))))))

;;; gemini-companion-overview-row-test.el ends here
