;;; gemini-companion-share-test.el --- Tests of what is sent  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-share)
(require 'gemini-companion-server-test-helper)

(ert-deftest gemini-companion-share-context-is-sent-to-connected-clis-only ()
  (gemini-companion-test-with-mode '(("a" "text") ("b" "text"))
    (save-window-excursion
      (find-file "a")
      (gemini-companion-test-eventually (gemini-companion-idle-p))
      (should-not (string-search "context-update"
                                 (gemini-companion-test-events)))
      (let ((client (gemini-companion-test-connect)))
        (should (equal '("a") (gemini-companion-test-names (gemini-companion-shared))))
        ;; It has the name that the CLI uses.
        (make-symbolic-link "." "link")
        (find-file "link/b")
        (gemini-companion-test-eventually
          (equal (list (concat directory "b") (concat directory "a"))
                 (mapcar (lambda (entry) (plist-get entry :path))
                         (gemini-companion-shared))))
        (gemini-companion-test-disconnect client))
      (should-not (gemini-companion-shared))
      (gemini-companion-test-connect)
      (should (equal '("b" "a") (gemini-companion-test-names (gemini-companion-shared))))
      (should-not (string-search " -> context-update\n  nil\n"
                                 (gemini-companion-test-events))))))

(ert-deftest gemini-companion-share-lighter-shows-what-is-shared ()
  (gemini-companion-test-with-mode '(("a" "text") ("b" "text") (".env" "x"))
    (save-window-excursion
      (find-file "b")
      (find-file "a")
      (gemini-companion-test-connect)
      (should-not (string-search "hidden" (cadr (gemini-companion-lighter))))
      (should (string-search "Shared: a, b" (gemini-companion-test-help)))
      (find-file ".env")
      (gemini-companion-test-eventually
        (string-search "hidden" (cadr (gemini-companion-lighter))))
      (with-current-buffer "a"
        (should-not (string-search "hidden"
                                   (cadr (gemini-companion-lighter))))))))

(ert-deftest gemini-companion-share-exclusions-take-effect-without-a-command ()
  (gemini-companion-test-with-mode '(("a" "text") ("b" "text"))
    (save-window-excursion
      (find-file "b")
      (find-file "a")
      (gemini-companion-test-connect)
      (gemini-companion-test-eventually (gemini-companion-idle-p))
      (should (equal '("a" "b") (gemini-companion-test-names (gemini-companion-shared))))
      (let ((gemini-companion-excluded '("/[ac]\\'" prog-mode)))
        (gemini-companion-test-eventually
          (equal '("b") (gemini-companion-test-names (gemini-companion-shared))))
        (find-file "b")
        (gemini-companion-test-eventually (gemini-companion-idle-p))
        (emacs-lisp-mode)
        (gemini-companion-test-eventually
          (not (gemini-companion-shared)))
        (fundamental-mode)
        (gemini-companion-test-eventually (gemini-companion-shared))
        (write-file "c")
        (gemini-companion-test-eventually
          (not (gemini-companion-shared)))))
    (gemini-companion-mode -1)
    (should-not (get-variable-watchers 'gemini-companion-excluded))))

(ert-deftest gemini-companion-share-files-outside-all-roots-are-shared-on-request ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (save-window-excursion
      (find-file "a")
      (gemini-companion-test-connect)
      (gemini-companion-test-with-directory '(("notes" ""))
        (let ((process-environment (cons (concat "HOME=" directory)
                                         process-environment)))
          (find-file "notes")
          (run-hooks 'post-command-hook)
          (gemini-companion-test-eventually (gemini-companion-idle-p))
          (should (equal '("a") (gemini-companion-test-names (gemini-companion-shared))))
          (let ((gemini-companion-share-outside-projects t))
            (gemini-companion-test-eventually
              (equal '("notes" "a") (gemini-companion-test-names (gemini-companion-shared))))))))))

;;; gemini-companion-share-test.el ends here
