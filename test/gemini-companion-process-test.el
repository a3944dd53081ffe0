;;; gemini-companion-process-test.el --- Tests of a Python process  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A process that does not start or end as it should, and texts to it and back.

;;; Code:

(require 'gemini-companion-review)
(require 'gemini-companion-server-test-helper)

(ert-deftest gemini-companion-process-that-ends-at-once-is-reported ()
  (let ((warning (gemini-companion-test-failure
               "sh" "-c" "echo 'no module named mcp' >&2; exit 3")))
    (should (string-match-p "exited with status 3" warning))
    (should (string-match-p "no module named mcp" warning))
    (should (string-match-p "sh -c" warning))
    (should (string-match-p "gemini-companion-server-command" warning))))

(ert-deftest gemini-companion-process-without-settings-is-reported-in-the-init-file ()
  (let ((after-init-time nil)
        (gemini-companion-log-file 'not-a-name))
    (should (string-match-p "stringp, not-a-name"
                            (gemini-companion-test-failure
                             (gemini-companion-test-python)
                             "-m" "gemini_companion_epc")))))

(ert-deftest gemini-companion-process-that-is-no-server-is-reported ()
  (pcase-dolist (`(,first ,command)
                 '(("hello" "echo hello; exec sleep 60")
                   ;; It never stops writing.
                   ("garbage" "yes oops >&2 & echo garbage; wait")))
    (should (string-search (concat "Expected a port number, got: " first)
                           (gemini-companion-test-failure "sh" "-c" command)))))

(ert-deftest gemini-companion-process-of-another-version-is-reported ()
  (let ((gemini-companion-server-version "0.0.0"))
    (should (string-match-p
             "0\\.0\\.0"
             (gemini-companion-test-failure (gemini-companion-test-python)
                                            "-m" "gemini_companion_epc")))))

(ert-deftest gemini-companion-process-that-is-suspended-ends ()
  (gemini-companion-test-with-mode '()
    (signal-process (plist-get (gemini-companion-server-info) :pid) 'SIGSTOP)
    (gemini-companion-test-eventually
      (memq 'stop (mapcar #'process-status (gemini-companion-test-processes))))
    (let ((directory (plist-get (gemini-companion-server-info) :directory)))
      (should (file-directory-p directory))
      (gemini-companion-mode -1)
      (should-not gemini-companion-mode)
      (gemini-companion-test-in-the-end
        (not (gemini-companion-test-processes)))
      (should-not (file-directory-p directory)))))

(ert-deftest gemini-companion-process-takes-and-returns-texts-of-any-kind ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let* ((gemini-companion-review-arrival 'notify)
           (inhibit-message t)
           (client (gemini-companion-test-connect))
           (private (plist-get (gemini-companion-server-info) :directory))
           (large (make-string 300000 ?x))
           (file (expand-file-name "a")))
      (dolist (text (list "" "\0\"\\\n\r\t" "\U0001F600\u2028\uFEFF"
                          (make-string 300000 ?é)
                          (concat "\uFEFFa\r\nb\r" large)
                          (concat "Content-Type: text/enriched\n\n<bold>b</bold>"
                                  large)))
        (should (equal text (gemini-companion-process-test-through client file text)))
        (should (equal text (gemini-companion-process-test-through client file "" text))))
      (should-not (directory-files private nil "emacs-\\|python-"))
      (delete-directory private t)
      (should (equal large (gemini-companion-process-test-through client file "" large)))
      (dolist (text (list "" large))
        (should (equal (concat text "a\uFFFDb")
                       (gemini-companion-process-test-through
                        client file ""
                        (concat text "a" (string #x3FFFE9) "b"))))))))

(ert-deftest gemini-companion-process-that-cannot-be-sent-a-text-keeps-the-review ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (let* ((gemini-companion-review-arrival 'notify)
           (inhibit-message t)
           (client (gemini-companion-test-connect))
           (info (gemini-companion-server-info))
           (private (plist-get info :directory)))
      (gemini-companion-test-ask client "openDiff"
                                 :filePath (expand-file-name "a")
                                 :newContent "new")
      (delete-directory private t)
      (write-region "" nil private)
      (let ((diff (car (gemini-companion-diffs))))
        (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
          (erase-buffer)
          (insert (make-string 300000 ?x)))
        (should-error (gemini-companion-diff-accept diff))
        (should (gemini-companion-diff-open-p diff))
        (with-current-buffer (gemini-companion-diff-proposal-buffer diff)
          (erase-buffer)
          (insert "less"))
        (gemini-companion-diff-accept diff)
        (let ((event nil))
          (gemini-companion-test-eventually
            (setq event (gemini-companion-test-ask client "next"))
            (equal "ide/diffAccepted" (alist-get 'method event)))
          (should (equal "less" (alist-get 'content
                                           (alist-get 'params event)))))
        (should (equal info (gemini-companion-server-info)))))))

(defun gemini-companion-process-test-through (client file text &optional edited)
  "Have CLIENT propose TEXT for FILE, and return the proposal it gets back.
Before that make EDITED, if non-nil, the text of the proposal."
  (gemini-companion-test-ask client "openDiff" :filePath file :newContent text)
  (gemini-companion-test-eventually (gemini-companion-diffs))
  (with-current-buffer (gemini-companion-diff-proposal-buffer
                        (car (gemini-companion-diffs)))
    (should (equal text (buffer-string)))
    (when edited
      (erase-buffer)
      (insert edited)))
  (let* ((answer (gemini-companion-test-ask client "closeDiff" :filePath file))
         (content (alist-get 'content (alist-get 'result answer))))
    (alist-get 'content (json-read-from-string
                         (alist-get 'text (aref content 0))))))

;;; gemini-companion-process-test.el ends here
