;;; gemini-companion-patch-test.el --- Tests of patches  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-patch)

(defmacro gemini-companion-patch-test-with (files &rest body)
  "Run BODY in a directory with FILES, where changes are recorded."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-changes ,files
     (unwind-protect
         (progn ,@body)
       (when-let* ((buffer (get-buffer "*gemini patch*")))
         (kill-buffer buffer)))))

(defun gemini-companion-patch-test-text (&optional of-turn)
  "Return the text of the patch for the current buffer; for OF-TURN see there."
  (gemini-companion-patch of-turn)
  (with-current-buffer "*gemini patch*"
    (should (derived-mode-p 'diff-mode))
    (should (eq 'quit-window (key-binding "q")))
    (buffer-substring-no-properties (point-min) (point-max))))

(ert-deftest gemini-companion-patch-shows-all-changes-that-are-left ()
  (gemini-companion-patch-test-with `(("a" ,gemini-companion-test-lines) ("b" "B"))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-writes "b" "C" session)
    (gemini-companion-test-writes "new" "x\n" session)
    (let ((record (car (gemini-companion-changes-files))))
      (gemini-companion-test-keep
       record (list (car (gemini-companion-changes-update record)))))
    (should (equal "\
--- a/a
+++ b/a
@@ -6,4 +6,4 @@
 6
 7
 8
-9
+nine
--- a/b
+++ b/b
@@ -1 +1 @@
-B
\\ No newline at end of file
+C
\\ No newline at end of file
--- /dev/null
+++ b/new
@@ -0,0 +1 @@
+x
" (gemini-companion-patch-test-text)))))

(ert-deftest gemini-companion-patch-shows-a-proposal-that-c-c-c-a-applies ()
  (gemini-companion-patch-test-with '(("sub/a" "1\nä\n3\n"))
    (let ((edit (gemini-companion-test-open "sub/a" "1\nö\n3\n" 1 session)))
      (with-current-buffer (gemini-companion-edit-proposal-buffer edit)
        (goto-char (point-max))
        (insert "4\n")
        (should (string-suffix-p "@@ -1,3 +1,4 @@\n 1\n-ä\n+ö\n 3\n+4\n"
                                 (gemini-companion-patch-test-text))))
      (gemini-companion-edit-reject edit)
      (with-current-buffer "*gemini patch*"
        (goto-char (point-min))
        (diff-hunk-next)
        (ert-simulate-command (list (key-binding (kbd "C-c C-a")))))
      (with-current-buffer (find-buffer-visiting "sub/a")
        (should (equal "1\nö\n3\n4\n" (buffer-string)))
        (set-buffer-modified-p nil)
        (kill-buffer)))))

(ert-deftest gemini-companion-patch-shows-what-the-last-turn-did ()
  (gemini-companion-patch-test-with '(("a" "1\n") ("b" "1\n"))
    (gemini-companion-test-writes "b" "2\n" session)
    (gemini-companion-turn-begin session "go" t)
    (dolist (text '("2\n" "3\n"))
      (gemini-companion-test-writes "a" text session))
    (should (equal "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+3\n"
                   (gemini-companion-patch-test-text t)))))

(ert-deftest gemini-companion-patch-has-names-that-git-reads ()
  (skip-unless (executable-find "git"))
  (let ((names '("new\nline" "tab\t" "quo\"te" "back\\slash" "\e[31mred" "left\u202E"
                 "é" "sp ace" "~")))
    (gemini-companion-patch-test-with nil
      (dolist (name names)
        (gemini-companion-test-writes (concat directory name) "x\n" session))
      (let ((text (gemini-companion-patch-test-text)))
        (should-not (string-match-p "[\e\t\u202E]" text))
        (dolist (name names)
          (delete-file (concat directory name)))
        (gemini-companion-test-write "patch" text)
        (should (eql 0 (call-process "git" nil nil nil "apply" "patch")))
        (dolist (name names)
          (should (equal "x\n" (gemini-companion-text-read
                                (concat directory name)))))))))

(ert-deftest gemini-companion-patch-needs-a-change ()
  (gemini-companion-patch-test-with '(("a" "1\n"))
    (should-error (gemini-companion-patch) :type 'user-error)
    (should-not (get-buffer "*gemini patch*"))
    (should-error (gemini-companion-patch t) :type 'user-error)))

(ert-deftest gemini-companion-patch-is-written-again-by-revert ()
  (gemini-companion-patch-test-with '(("a" "1\n"))
    (gemini-companion-test-writes "a" "2\n" session)
    (gemini-companion-patch)
    (gemini-companion-test-writes "a" "3\n" session)
    (with-current-buffer "*gemini patch*"
      (revert-buffer)
      (should (string-suffix-p "-1\n+3\n" (buffer-string))))))

;;; gemini-companion-patch-test.el ends here
