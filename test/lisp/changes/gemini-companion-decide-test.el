;;; gemini-companion-decide-test.el --- Tests of deciding about several files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-text-test-helper)

(defun gemini-companion-decide-test-text (file)
  "Return the text that FILE has, or that its buffer has, or nil without both.
Omit the line that others have written during the command."
  (let ((buffer (get-file-buffer file)))
    (cond ((and buffer (buffer-modified-p buffer))
           (gemini-companion-text-of-buffer buffer))
          ((file-exists-p file)
           (string-remove-suffix "late\n" (gemini-companion-test-file-text file))))))

(defun gemini-companion-decide-test-prepare (file session)
  "Do something by chance to FILE, which the CLI of SESSION has written.
Return when FILE is to be written by others: `asked', `run' or nil."
  (pcase (random 9)
    (0 (with-current-buffer (find-file-noselect file)
         (read-only-mode)))
    (1 (gemini-companion-test-open file "new\n" (random) session))
    (2 (with-current-buffer (find-file-noselect file)
         (goto-char (point-max))
         (insert "typed\n")))
    (3 (gemini-companion-test-write file "one\nmine\n3\n4\n5\n6\n7\n8\n9\n"))
    (4 (ignore (delete-file file)))
    (5 (ignore (find-file-noselect file)))
    (6 'asked)
    (7 'run)))

;; All texts are those before or those of an undo; what is not done is named; what is
;; done can be taken back and redone; and one question is asked at most.
(ert-deftest gemini-companion-decide-does-what-it-says-in-random-files ()
  :tags '(pure)
  (gemini-companion-text-test-at-random
      (string-to-number (or (getenv "GC_TURNS") "10"))
    (gemini-companion-test-with-changes
        (mapcar (lambda (name) (list name gemini-companion-test-lines))
                '("a1" "b2" "c3" "d4"))
      (unwind-protect
          (let* ((names '("a1" "b2" "c3" "d4" "e5"))
                 (files (mapcar #'expand-file-name names))
                 (second (gemini-companion-test-session "two" 2))
                 (_ (dolist (file files)
                      (gemini-companion-test-writes
                       file "one\ntwo\n3\n4\n5\n6\n7\n8\n9\n" session)
                      (gemini-companion-test-writes
                       file "one\ntwo\nthree\n4\n5\n6\n7\n8\nnine\n" second)))
                 (when (mapcar (lambda (file)
                                 (gemini-companion-decide-test-prepare file session))
                               files))
                 (verb (if (= 0 (random 4)) 'keep 'undo))
                 (by (and (eq verb 'undo) (= 0 (random 3))
                          (lambda (edit)
                            (eq second (gemini-companion-edit-session edit)))))
                 (groups (cl-loop for record in (gemini-companion-changes-files 'all)
                                  for changes = (seq-filter
                                                 (lambda (change)
                                                   (or (null by)
                                                       (gemini-companion-changes-share
                                                        change by)))
                                                 (gemini-companion-changes-update record))
                                  when changes collect (cons record changes)))
                 (write (lambda (occasion)
                          (cl-loop for file in files
                                   for its in when
                                   for text = (and (file-exists-p file)
                                                   (gemini-companion-test-file-text file))
                                   ;; It is not undone yet.
                                   when (and (eq its occasion) text
                                             (string-search "two\n" text)
                                             (string-search "nine" text))
                                   do (gemini-companion-test-write
                                       file (if (= 0 (random 2))
                                                (concat text "late\n")
                                              (string-replace "two" "two of others"
                                                              text))))
                          (setq when (cl-substitute nil occasion when))))
                 (texts (lambda () (mapcar #'gemini-companion-decide-test-text files)))
                 (before (funcall texts))
                 (last (gemini-companion-decision-last))
                 (answer (< 0 (random 5)))
                 (asked nil)
                 ;; After how many files the user types C-g, or a number of none.
                 (stops (random 12))
                 (later (lambda (&rest _)
                          (funcall write 'run)
                          (when (and (= 0 (cl-decf stops)) inhibit-quit)
                            (setq quit-flag t))))
                 (said nil))
            (add-hook 'gemini-companion-changes-undo-functions later)
            (unwind-protect
                (cl-letf (((symbol-function 'y-or-n-p)
                           (lambda (question)
                             (push question asked)
                             (funcall write 'asked)
                             (setq before (funcall texts))
                             answer)))
                  (setq said (condition-case problem
                                 (gemini-companion-undo-decide verb groups
                                                               :row t :by by)
                               (user-error (error-message-string problem)))))
              (remove-hook 'gemini-companion-changes-undo-functions later))
            (ert-info ((format "%S %s" asked said))
              (should (length< asked 2))
              (let ((after (funcall texts))
                    (done nil))
                (cl-loop
                 for name in names
                 for was in before
                 for is in after
                 for record = (gemini-companion-changes-of-file
                               (file-truename (expand-file-name name)))
                 do (unless (or (equal was is)
                                (equal (string-replace "two" "two of others" was) is))
                      (push name done)
                      (should (member (and is (string-replace
                                               " of others" ""
                                               (string-remove-suffix "typed\n" is)))
                                      (if by
                                          '("one\ntwo\n3\n4\n5\n6\n7\n8\n9\n"
                                            "one\nmine\n3\n4\n5\n6\n7\n8\n9\n")
                                        (list nil "" gemini-companion-test-lines)))))
                 (unless (or (member name done)
                             (not (assq record groups))
                             (and asked (not answer)))
                   (unless (or (eq verb 'keep) (string-search "; stopped, " said))
                     (should (string-search name (concat said (car asked)))))))
                (when (eq verb 'keep)
                  (should-not done))
                (cond
                 ((and (eq verb 'keep) (or answer (null asked)))
                  (should-not (eq last (gemini-companion-decision-last)))
                  (should-not (gemini-companion-test-left))
                  (gemini-companion-decision-undo)
                  (should (gemini-companion-test-left)))
                 ((or (and asked (not answer)) (null done))
                  (should-not done)
                  (should (eq last (gemini-companion-decision-last))))
                 (t
                  (let ((back (lambda ()
                                (cl-loop for name in names
                                         for text in (funcall texts)
                                         when (member name done) collect text))))
                    (let ((undone (funcall back)))
                      (cl-letf (((symbol-function 'y-or-n-p) #'always))
                        (gemini-companion-decision-undo)
                        (should (equal (cl-loop for name in names
                                                for text in before
                                                when (member name done) collect text)
                                       (funcall back)))
                        (gemini-companion-decision-redo)
                        (should (equal undone (funcall back)))))))))))
        (gemini-companion-part-stop 'decision)
        (dolist (buffer (buffer-list))
          (with-current-buffer buffer
            (when buffer-file-name
              (set-buffer-modified-p nil))))))))

;;; gemini-companion-decide-test.el ends here
