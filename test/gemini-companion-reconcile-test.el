;;; gemini-companion-reconcile-test.el --- Tests of buffers of written files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Real files, written by something that is not the buffer.

;;; Code:

(require 'gemini-companion-reconcile)
(require 'gemini-companion-test-helper)

(defun gemini-companion-reconcile-test-write (file text &optional append)
  "Write TEXT to FILE as another program would, at another time.
APPEND non-nil means after what it holds."
  (call-process-region text nil "sh" nil nil nil "-c"
                       (if append "cat >>\"$0\"" "cat >\"$0\"") file)
  (unless append
    (set-file-times file (time-add nil 5))))

(ert-deftest gemini-companion-reconcile-reverts-a-clean-buffer-in-place ()
  (gemini-companion-test-with-folder '(("a" "one\ntwo\nthree\n"))
    (let ((file (expand-file-name "a" folder)))
      (with-current-buffer (find-file-noselect file)
        (goto-char (point-min))
        (search-forward "thr")
        (let ((marker (copy-marker (point))))
          (gemini-companion-reconcile-expect file)
          (gemini-companion-reconcile-test-write file "zero\none\ntwo\nthree\n")
          (gemini-companion-test-eventually
            (equal "zero\none\ntwo\nthree\n" (buffer-string)))
          (should (looking-at-p "ee"))
          (should (equal (point) (marker-position marker)))
          (should-not (buffer-modified-p))
          (should (verify-visited-file-modtime (current-buffer)))
          (gemini-companion-test-eventually
            (not gemini-companion-reconcile--watches))
          (should-not (memq #'gemini-companion-reconcile--before-command
                            pre-command-hook)))))))

(ert-deftest gemini-companion-reconcile-knows-a-buffer-that-is-equal ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (let ((file (expand-file-name "a" folder)))
      (with-current-buffer (find-file-noselect file)
        (goto-char (point-max))
        (insert "two\n")
        (gemini-companion-reconcile-expect file)
        (gemini-companion-reconcile-test-write file "one\ntwo\n")
        (gemini-companion-test-eventually (not (buffer-modified-p)))
        (should (verify-visited-file-modtime (current-buffer)))))))

(ert-deftest gemini-companion-reconcile-takes-the-coding-of-the-new-text ()
  (gemini-companion-test-with-folder '()
    (let ((file (expand-file-name "a" folder)))
      (let ((coding-system-for-write 'latin-1))
        (write-region "caf\u00e9\n" nil file nil 'silent))
      (with-current-buffer (find-file-noselect file)
        (gemini-companion-reconcile-expect file)
        (gemini-companion-reconcile-test-write file "th\u00e9\n")
        (gemini-companion-test-eventually
          (equal "th\u00e9\n" (buffer-string)))
        (should (eq 'utf-8 (coding-system-type buffer-file-coding-system)))))))

(ert-deftest gemini-companion-reconcile-leaves-a-buffer-read-only ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (let ((file (expand-file-name "a" folder)))
      (with-current-buffer (find-file-noselect file)
        (read-only-mode)
        (gemini-companion-reconcile-expect file)
        (gemini-companion-reconcile-test-write file "two\n")
        (gemini-companion-test-eventually (equal "two\n" (buffer-string)))
        (should buffer-read-only)))))

(ert-deftest gemini-companion-reconcile-leaves-unsaved-text-alone ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (let ((file (expand-file-name "a" folder)))
      (with-current-buffer (find-file-noselect file)
        (insert "mine\n")
        (gemini-companion-reconcile-expect file)
        (gemini-companion-reconcile-test-write file "theirs\n")
        (gemini-companion-test-eventually
          (not gemini-companion-reconcile--watches))
        (should (equal "mine\none\n" (buffer-string)))
        (should (buffer-modified-p))))))

(ert-deftest gemini-companion-reconcile-comes-before-the-next-command ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (let ((file (expand-file-name "a" folder)))
      (with-current-buffer (find-file-noselect file)
        (gemini-companion-reconcile-expect file)
        (gemini-companion-reconcile-test-write file "two\n")
        (run-hooks 'pre-command-hook)
        (should (equal "two\n" (buffer-string)))
        (should (verify-visited-file-modtime (current-buffer)))))))

(ert-deftest gemini-companion-reconcile-waits-for-the-rest-of-a-large-file ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (let ((file (expand-file-name "a" folder))
          (half (make-string 100000 ?x)))
      (with-current-buffer (find-file-noselect file)
        (gemini-companion-reconcile-expect file)
        (gemini-companion-reconcile-test-write file half)
        (run-hooks 'pre-command-hook)
        (should (equal "one\n" (buffer-string)))
        (gemini-companion-reconcile-test-write file half t)
        (gemini-companion-test-eventually
          (equal (concat half half) (buffer-string)))))))

(ert-deftest gemini-companion-reconcile-stop-ends-the-watch ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (let ((timers (length timer-list)))
      (gemini-companion-reconcile-expect (expand-file-name "a" folder))
      (gemini-companion-reconcile-expect (expand-file-name "b" folder))
      (gemini-companion-reconcile-stop)
      (should-not gemini-companion-reconcile--watches)
      (should (equal timers (length timer-list))))))

;;; gemini-companion-reconcile-test.el ends here
