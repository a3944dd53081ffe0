;;; gemini-companion-share-test.el --- Tests of what is sent  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-share)
(require 'gemini-companion-server-test-helper)

(defun gemini-companion-share-test-shares (&rest names)
  "Assert that in the end the files NAMES are shared."
  (gemini-companion-test-eventually
    (equal names (gemini-companion-test-names (gemini-companion-shared)))))

(defun gemini-companion-share-test-hidden-p ()
  "Return non-nil if the mode line has this file as not shared."
  (string-search "hidden" (cadr (gemini-companion-lighter))))

(ert-deftest gemini-companion-share-context-is-sent-to-connected-clis-only ()
  (gemini-companion-test-with-mode '(("a" "text") ("b" "text"))
    (save-window-excursion
      (find-file "a")
      (gemini-companion-test-eventually (gemini-companion-idle-p))
      (should-not (string-search "context-update"
                                 (gemini-companion-test-events)))
      (let ((client (gemini-companion-test-connect)))
        (gemini-companion-share-test-shares "a")
        ;; It has the name that the CLI uses.
        (make-symbolic-link "." "link")
        (find-file "link/b")
        (gemini-companion-test-eventually
          (equal (list (concat directory "b") (concat directory "a"))
                 (mapcar (lambda (entry) (plist-get entry :path))
                         (gemini-companion-shared))))
        (delete-process client)
        (kill-buffer (process-buffer client))
        (gemini-companion-test-eventually (not (gemini-companion-sessions))))
      (should-not (gemini-companion-shared))
      (gemini-companion-test-connect)
      (gemini-companion-share-test-shares "b" "a")
      (should-not (string-search " -> context-update nil\n"
                                 (gemini-companion-test-events))))))

(ert-deftest gemini-companion-share-follows-options-modes-and-names ()
  (gemini-companion-test-with-mode '(("a" "text") ("b" "text"))
    (save-window-excursion
      (find-file "b")
      (find-file "a")
      (gemini-companion-test-connect)
      (gemini-companion-share-test-shares "a" "b")
      (should-not (gemini-companion-share-test-hidden-p))
      (should (string-search "Shared: a, b" (gemini-companion-test-help)))
      (let ((gemini-companion-excluded '("/[ac]\\'" prog-mode)))
        (gemini-companion-share-test-shares "b")
        (find-file "b")
        (gemini-companion-test-eventually (gemini-companion-idle-p))
        (emacs-lisp-mode)
        (gemini-companion-share-test-shares)
        (should (gemini-companion-share-test-hidden-p))
        (with-current-buffer "a"
          (should-not (gemini-companion-share-test-hidden-p)))
        (fundamental-mode)
        (gemini-companion-share-test-shares "b")
        (write-file "c")
        (gemini-companion-share-test-shares))
      (gemini-companion-share-test-shares "c" "a")
      (gemini-companion-test-with-directory '(("notes" ""))
        (let ((process-environment (cons (concat "HOME=" directory)
                                         process-environment)))
          (find-file "notes")
          (run-hooks 'post-command-hook)
          (gemini-companion-test-eventually (gemini-companion-idle-p))
          (gemini-companion-share-test-shares "c" "a")
          (let ((gemini-companion-share-outside-projects t))
            (gemini-companion-share-test-shares "notes" "c" "a")))))
    (gemini-companion-mode -1)
    (should-not (get-variable-watchers 'gemini-companion-excluded))))

;;; gemini-companion-share-test.el ends here
