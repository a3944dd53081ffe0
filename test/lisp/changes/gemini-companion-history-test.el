;;; gemini-companion-history-test.el --- Tests of the history of a file as data  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-history)
(require 'gemini-companion-step)

(defun gemini-companion-history-test-printed (data)
  "Return DATA printed and read again."
  (car (read-from-string (let ((print-escape-nonascii t)) (prin1-to-string data)))))

(defun gemini-companion-history-test-restart ()
  "Let the records and edits be those of another Emacs; return their data before."
  (let ((all (mapcar (lambda (record)
                       (cons (gemini-companion-changes-file-name record)
                             (gemini-companion-history-test-printed
                              (gemini-companion-history-data record))))
                     (gemini-companion-changes-files 'all))))
    (gemini-companion-part-stop 'changes)
    (gemini-companion-test-forget-edits)
    (gemini-companion-history-forget-turns)
    (gemini-companion-part-start 'changes)
    (pcase-dolist (`(,name . ,data) all)
      (gemini-companion-history-restore name data))
    all))

(ert-deftest gemini-companion-history-has-any-text ()
  (dotimes (_ 30)
    (cl-flet ((text ()
                (mapconcat (lambda (_)
                             (seq-random-elt '("a" "b" "\n" "ä" "á" "漢" "\r\n" "\uFEFF" "🙂")))
                           (make-list (random 12) nil) "")))
      (gemini-companion-test-with-changes `(("a" ,(text)))
        (dotimes (_ 3)
          (gemini-companion-test-writes "a" (text) session))
        ;; The turn has ended.
        (gemini-companion-history-test-restart)
        (let ((data (gemini-companion-history-test-restart)))
          (should (equal data (gemini-companion-history-test-restart))))))))

(ert-deftest gemini-companion-history-of-random-work-is-the-same-in-the-next-emacs ()
  (dotimes (_ 8)
    (let ((seed (random most-positive-fixnum)))
      (ert-info ((format "seed %d" seed))
        (random (format "%d" seed))
        (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines))
          (find-file "a")
          (dotimes (_ 12)
            (let* ((record (gemini-companion-changes-of-file (file-truename "a")))
                   (changes (and record (gemini-companion-changes-update record))))
              (pcase (random 8)
                ((or 0 1 2)
                 (gemini-companion-test-writes
                  "a" (gemini-companion-test-edited-at-random (buffer-string)) session))
                (3 (gemini-companion-test-writes
                    "a" (gemini-companion-test-edited-at-random (buffer-string)) session
                    'reviewed))
                (4 (goto-char (1+ (random (buffer-size))))
                   (forward-line 0)
                   (insert "mine\n")
                   (save-buffer))
                ((guard (null changes)))
                (5 (gemini-companion-test-keep record changes))
                (6 (gemini-companion-test-undo record (list (seq-random-elt changes))))
                (_ (gemini-companion-changes-selection
                    record (seq-random-elt changes)
                    (lambda (n) (= 0 (mod n 2))) (lambda (n) (= 0 (mod n 2))))))))
          (let* ((record (gemini-companion-changes-of-file (file-truename "a")))
                 (state (lambda ()
                          (let ((record (gemini-companion-changes-of-file
                                         (file-truename "a"))))
                            (list (mapcar (lambda (change)
                                            (list (gemini-companion-hunk-new change)
                                                  (gemini-companion-hunk-new-end change)
                                                  (gemini-companion-hunk-lines change)))
                                          (gemini-companion-changes-update record))
                                  (mapcar (lambda (change)
                                            (list (gemini-companion-hunk-new change)
                                                  (gemini-companion-record-decided-state
                                                   change)))
                                          (gemini-companion-changes-kept-and-undone record))
                                  (mapcar #'gemini-companion-edit-status
                                          (gemini-companion-changes-file-edits record))))))
                 (before (and record
                              (gemini-companion-changes-file-unreviewed record)
                              (funcall state))))
            (when before
              ;; The turn has ended.
              (gemini-companion-history-test-restart)
              (should (equal before (funcall state)))
              (let ((data (gemini-companion-history-test-restart)))
                (should (equal data (gemini-companion-history-test-restart)))
                (should (equal before (funcall state)))))))))))

(defconst gemini-companion-history-test-formats
  '(("1\n2\n3\n" . "1\ntwo\n3\n")
    ("1\r\n2\r\n3\r\n" . "1\r\ntwo\r\n3\r\n")
    ("1\r\n2\n3\r\n" . "1\r\ntwo\n3\r\n")
    ("1\n2\n3" . "1\ntwo\n3")
    ("\357\273\2771\n2\n3\n" . "\357\273\2771\ntwo\n3\n")
    ("\357\273\2771\r\n2\r\n3" . "1\ntwo\n3")
    ("1\r\n2\r\n3\r\n" . "1\ntwo\n3\n")
    ("1\n2\n3\n" . "1\r\ntwo\r\n3\r\n")
    ("1\r\n2\n3\r\n" . "1\ntwo\n3\n")
    ("\303\244\n2\n3\n" . "\357\273\277\303\244\ntwo\n3\n")
    ("1\r2\r3\n" . "1\r2\rtwo\n"))
  "The bytes before and after an edit.")

(ert-deftest gemini-companion-history-bytes-before-an-edit-are-those-of-its-file ()
  (pcase-dolist (`(,before . ,after) gemini-companion-history-test-formats)
    (dolist (way '(command tool))
      (ert-info ((format "%S %S %s" before after way))
        (gemini-companion-test-with-changes '(("a" ""))
          (let ((name (file-truename "a"))
                (text (lambda (bytes) (decode-coding-string bytes 'utf-8-unix))))
            (gemini-companion-text-write "a" after)
            (if (eq way 'command)
                (gemini-companion-reported-bytes
                 session (expand-file-name "a") before after "sed")
              (gemini-companion-reported-write
               session (expand-file-name "a") (funcall text before) (funcall text after)))
            (let* ((facts (lambda ()
                            (let ((edit (car (gemini-companion-edits-of-file name))))
                              (list (gemini-companion-edit-content edit)
                                    (gemini-companion-edit-format edit)
                                    (gemini-companion-edit-after edit)
                                    (gemini-companion-edit-texts-conversion edit)))))
                   (known (funcall facts)))
              (gemini-companion-history-test-restart)
              (should (equal known (funcall facts)))
              (gemini-companion-test-undo-edit (car (gemini-companion-edits-of-file name)))
              (should (equal before (gemini-companion-text-bytes "a"))))))))))

(provide 'gemini-companion-history-test)
;;; gemini-companion-history-test.el ends here
