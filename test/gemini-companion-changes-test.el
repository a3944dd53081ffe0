;;; gemini-companion-changes-test.el --- Tests of reverting  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Edits that are reverted, to the byte or by a merge.

;;; Code:

(require 'gemini-companion-changes)
(require 'gemini-companion-review-test-helper)

(defun gemini-companion-changes-test-refuses (edit reason)
  "Assert that EDIT is not reverted for REASON."
  (should (string-search
           reason (cadr (should-error (gemini-companion-changes-revert edit)
                                      :type 'user-error)))))

(ert-deftest gemini-companion-changes-reverts-to-the-same-bytes ()
  (dolist (before '("one\r\ntwo\nthree\r\n" "no end" "" "\0\n"
                    "\357\273\277mark\n\r\nno end" "\303\251\351\n"
                    "-*- coding: latin-1 -*-\r\ncaf\351\n" "\377\376o\0\n\0"))
    (ert-info ((format "%S" before))
      (gemini-companion-test-with-edits '(("a.txt" ""))
        (let ((file (expand-file-name "a.txt"))
              (require-final-newline t))
          (gemini-companion-test-write file before)
          (set-file-modes file #o750)
          (let ((buffer (find-file-noselect file)))
            (gemini-companion-edit-accept
             (gemini-companion-test-open file "new\ncaf\u00e9\n" 1 session))
            (gemini-companion-changes-revert (car (gemini-companion-edits)))
            (should (equal before (gemini-companion-text-bytes file)))
            (should (= #o750 (file-modes file)))
            (should (verify-visited-file-modtime buffer))
            (should-not (buffer-modified-p buffer)))
          (should (equal '(reverted) (mapcar #'gemini-companion-edit-status
                                             (gemini-companion-edits))))
          (gemini-companion-changes-test-refuses (car (gemini-companion-edits))
                                               "was reverted already"))))))

(ert-deftest gemini-companion-changes-keeps-the-line-ends-of-a-reported-file ()
  (pcase-dolist (`(,written ,reported . ,expected)
                 '(("\357\273\277new\r\n" "é old\n"
                    . "\357\273\277\303\251 old\r\n")
                   ("new\r\n" "as it was\r\n" . "as it was\r\n")
                   ("new\n" "a lone\rreturn\n" . "a lone\rreturn\n")))
    (ert-info ((format "%S" reported))
      (gemini-companion-test-with-edits '(("a" ""))
        (let ((file (expand-file-name "a")))
          (gemini-companion-test-write file written)
          (gemini-companion-edit-written session file reported "new\n")
          (gemini-companion-changes-revert (car (gemini-companion-edits)))
          (should (equal expected
                         (gemini-companion-text-bytes file))))))))

(ert-deftest gemini-companion-changes-of-a-remote-file-end-with-its-answer ()
  (gemini-companion-test-with-edits '(("a" "old\n"))
    (let* ((gemini-companion-names-mirrors `(("/ssh:far:" . ,default-directory)))
           (gemini-companion-names-remotes '(("/ssh:far:" :state "connected")))
           calls)
      (gemini-companion-edit-accept
       (gemini-companion-test-open "a" "new\n" 1 session))
      (cl-letf (((symbol-function 'gemini-companion-server-ask)
                 (lambda (&rest call) (push call calls))))
        (pcase-let ((`(,edit) (gemini-companion-edits)))
          (gemini-companion-changes-revert edit)
          (pcase-let ((`((remote-write ,args ,done ,failed)) calls))
            (should (equal args `("/ssh:far:" "/a" ,(secure-hash 'sha256 "new\n")
                                  ,(base64-encode-string "old\n"))))
            (should (equal "new\n" (gemini-companion-text-read "a")))
            (funcall failed "it has changed there")
            (should (eq 'accepted (gemini-companion-edit-status edit)))
            (gemini-companion-test-write "a" "old\n")
            (funcall done t)
            (should (eq 'reverted (gemini-companion-edit-status edit)))))))))

(ert-deftest gemini-companion-changes-refuses-to-revert-what-would-lose-text ()
  (gemini-companion-test-with-edits '(("a" "old\n") ("b" "old\n") ("c" "old\n"))
    (gemini-companion-test-open "a" "new\n" 1 session)
    (gemini-companion-test-open "born" "new\n" 2 session)
    (gemini-companion-test-open "b" "new\n" 3 session)
    (pcase-let ((`(,a ,born ,b) (gemini-companion-edits-open)))
      (gemini-companion-edit-accept a)
      (gemini-companion-edit-accept born)
      (gemini-companion-edit-reject b))
    (gemini-companion-test-open "c" "new\n" 4 session)
    (pcase-let ((`(,a ,born ,b ,c) (gemini-companion-edits)))
      (gemini-companion-test-write "born" "newer\n")
      (gemini-companion-changes-test-refuses born "changed since")
      (delete-file "born")
      (gemini-companion-changes-test-refuses born "was deleted or renamed")
      (make-directory "born")
      (gemini-companion-changes-test-refuses born "is not a regular file")
      (gemini-companion-changes-test-refuses b "was rejected")
      (gemini-companion-changes-test-refuses c "awaits an answer")
      (gemini-companion-test-write "a" "newer\n")
      (gemini-companion-changes-test-refuses a "changed since")
      (gemini-companion-test-write "a" "new\n")
      (rename-file "a" "elsewhere")
      (make-symbolic-link "elsewhere" "a")
      (gemini-companion-changes-test-refuses a "symbolic links")
      (rename-file "elsewhere" "a" 'replace)
      (with-current-buffer (find-file-noselect (expand-file-name "a"))
        (insert "unsaved")
        (gemini-companion-changes-test-refuses a "undo them first")
        (should (equal "unsavednew\n" (buffer-string)))))))

(ert-deftest gemini-companion-changes-names-a-way-that-leads-to-reverting ()
  (gemini-companion-test-with-edits '(("a" "old\n"))
    (with-current-buffer (find-file-noselect (expand-file-name "a"))
      (buffer-enable-undo)
      (dolist (text '("new\n" "newer\n"))
        (gemini-companion-edit-accept
         (gemini-companion-test-open "a" text 1 session))
        (gemini-companion-revert-now (expand-file-name "a")))
      (pcase-let ((`(,first ,later) (gemini-companion-edits)))
        (gemini-companion-changes-test-refuses first "revert later edits first")
        (undo-boundary)
        (insert "unsaved")
        (gemini-companion-changes-test-refuses later "undo them first")
        (undo-boundary)
        (undo)
        (gemini-companion-changes-revert later)
        (gemini-companion-changes-revert first)
        (should (equal "old\n" (buffer-string)))))))

;;; gemini-companion-changes-test.el ends here
