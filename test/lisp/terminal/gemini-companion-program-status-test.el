;;; gemini-companion-program-status-test.el --- Tests of the protocol  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-program-status)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-program-status-reads-only-what-is-well-formed ()
  (pcase-dolist
      (`(,report . ,record)
       `(("state=working" . ("" . working))
         ("state=blocked:kind=permission:app=pi:id=a/b" . ("a/b" . blocked))
         ("state=idle:STATE=x:later=1:=:a:state=done:x" . ("" . done))
         ("state=asleep") ("kind=question") ("") ("?") ("state=") ("state=DONE")
         ;; Texts are not read, and may be anything.
         ("state=error:msg=VG9vIG1hbnkgcmVxdWVzdHM=" . ("" . error))
         ("state=done:title=a:msg=%%%" . ("" . done))
         (,(concat "state=done:x=" (make-string 5000 ?x)))
         (,(concat "state=done:id=" (make-string 129 ?x)))
         ("state=done:id=1/2/3/4/5/6/7/8" . ("1/2/3/4/5/6/7/8" . done))
         ("state=done:id=1/2/3/4/5/6/7/8/9")))
    (ert-info (report)
      (should (equal record (gemini-companion-program-status-read report))))))

(ert-deftest gemini-companion-program-status-of-a-program-and-its-parts ()
  (let ((records nil))
    (pcase-dolist
        (`(,report . ,state)
         '(("state=idle" . ready) ("state=working" . working)
           ("id=a:state=blocked" . waiting) ("id=a/b:state=working" . waiting)
           ("id=ab:state=done" . waiting) ("state=done" . waiting)
           ("id=a:state=clear" . ready) ("id=c:state=working" . working)
           ("state=clear" . nil)))
      (ert-info (report)
        (setq records (gemini-companion-program-status-set
                       records (gemini-companion-program-status-read report)))
        (should (eq state (gemini-companion-program-status-state records)))))
    (should-not records)
    (dotimes (n 200)
      (setq records (gemini-companion-program-status-set
                     records (cons (format "%d" n) 'working))))
    (should (equal "199" (caar records)))
    (should (= 64 (length records)))
    (should (equal '(("a" . done))
                   (gemini-companion-program-status-at-prompt
                    '(("" . working) ("a" . done) ("b" . blocked)))))))

(provide 'gemini-companion-program-status-test)
;;; gemini-companion-program-status-test.el ends here
