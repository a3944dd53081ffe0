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

;;;; Roots

(defmacro gemini-companion-share-test-with-projects (names &rest body)
  "Run BODY with the mode on in a directory with the projects NAMES.
Each has a file f, and `roots' returns the roots below the directory."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-mode
       (mapcar (lambda (name) (list (concat name "/f") "text")) ,names)
     (dolist (name ,names)
       (make-directory (concat name "/.git")))
     (let ((roots (lambda ()
                    (sort (delete "."
                                  (mapcar (lambda (root)
                                            (file-relative-name root directory))
                                          (seq-filter
                                           (lambda (root)
                                             (file-in-directory-p root directory))
                                           gemini-companion-roots-last)))
                          #'string<))))
       (save-window-excursion ,@body))))

(ert-deftest gemini-companion-share-roots-follow-each-change ()
  (gemini-companion-share-test-with-projects '("p" "q" "r" "s" "t")
    (let ((terminal (generate-new-buffer "terminal"))
          (gemini-companion-excluded gemini-companion-excluded))
      (pcase-dolist
          (`(,expected . ,change)
           `((("p") . ,(lambda () (find-file "p/f")))
             (("p" "q") . ,(lambda () (find-file-noselect "../q/f")))
             (("p" "q" "r") . ,(lambda () (find-file-literally "../r/f")))
             ;; Saved under another name, renamed, and moved with its directory.
             (("p" "q" "s") . ,(lambda () (write-file "../s/f2")))
             (("p" "q") . ,(lambda () (set-visited-file-name "../q/f2" t t)))
             (("q" "u") . ,(lambda ()
                             (require 'dired-aux)
                             (dired-rename-file (concat directory "p")
                                                (concat directory "u") nil)))
             (("q" "t" "u") . ,(lambda ()
                                 (with-current-buffer terminal
                                   (setq default-directory
                                         (concat directory "t/"))
                                   (shell-mode))))
             ;; In another directory while it is not selected.
             (("q" "s" "u") . ,(lambda ()
                                 (with-current-buffer terminal
                                   (setq default-directory
                                         (concat directory "s/")))
                                 (insert "more")
                                 (run-hooks 'post-command-hook)))
             (("q" "r" "u") . ,(lambda ()
                                 (switch-to-buffer terminal)
                                 (run-hooks 'post-command-hook)
                                 (gemini-companion-test-eventually
                                   (gemini-companion-idle-p))
                                 (setq default-directory (concat directory "r/"))
                                 (run-hooks 'post-command-hook)))
             (("q" "u") . ,(lambda () (kill-buffer terminal)))
             (("u") . ,(lambda () (setq gemini-companion-excluded '("/q/"))))
             (() . ,(lambda ()
                      (kill-buffer (get-file-buffer (concat directory "u/f")))))
             (("q") . ,(lambda () (setq gemini-companion-excluded nil)))
             (("q" "u") . ,(lambda ()
                             (with-temp-file (concat directory "q/.dir-locals.el")
                               (insert "((nil . ((gemini-companion-share))))"))
                             (find-file (concat directory "u/f"))))
             ;; An opt-out counts from when it is saved, or a CLI connects.
             (("u") . ,#'gemini-companion-test-connect)))
        (funcall change)
        (ert-info ((format "%S" expected))
          (gemini-companion-test-eventually
            (and (gemini-companion-idle-p)
                 (equal expected (funcall roots)))))))))

(ert-deftest gemini-companion-share-roots-see-a-project-that-was-just-made ()
  (gemini-companion-share-test-with-projects nil
    (make-directory "new/src" t)
    (find-file "new/src/f")
    (gemini-companion-test-eventually (equal '("new/src") (funcall roots)))
    (make-directory "../.git")
    (vc-file-clearprops default-directory)
    (insert "text")
    (save-buffer)
    (gemini-companion-test-eventually (equal '("new") (funcall roots)))))

(ert-deftest gemini-companion-share-roots-are-without-a-buffer-that-dies-slowly ()
  (gemini-companion-share-test-with-projects '("p" "q")
    (find-file "p/f")
    (with-current-buffer (find-file-noselect "../q/f")
      (gemini-companion-test-eventually (equal '("p" "q") (funcall roots)))
      ;; As Eglot waits until its server has ended.
      (add-hook 'kill-buffer-hook (lambda () (sleep-for 0.3)) nil t)
      (kill-buffer))
    (gemini-companion-test-eventually (equal '("p") (funcall roots)))))

(ert-deftest gemini-companion-share-roots-are-computed-after-changes-only ()
  (gemini-companion-share-test-with-projects '("p" "q")
    (find-file "p/f")
    (gemini-companion-test-connect)
    (gemini-companion-share-test-shares "f")
    (gemini-companion-test-eventually (gemini-companion-idle-p))
    (let ((last gemini-companion-roots-last))
      (dotimes (_ 3)
        (insert "more")
        (run-hooks 'post-command-hook)
        (switch-to-buffer "*scratch*")
        (run-hooks 'post-command-hook)
        (with-temp-buffer
          (emacs-lisp-mode))
        (switch-to-buffer "f")
        (run-hooks 'post-command-hook)
        (gemini-companion-test-eventually (gemini-companion-idle-p)))
      (should (eq last gemini-companion-roots-last))
      (should (equal '("p") (funcall roots)))
      (find-file-noselect "../q/f")
      (gemini-companion-test-eventually (gemini-companion-idle-p))
      (should-not (eq last gemini-companion-roots-last)))))

;;; gemini-companion-share-test.el ends here
