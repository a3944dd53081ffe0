;;; gemini-companion-roots-test.el --- Tests of the roots  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Real folders, with and without a project, and who works in them.

;;; Code:

(require 'gemini-companion-roots)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-roots-test-with (folders &rest body)
  "Run BODY in a new folder that has FOLDERS, a list of relative names.
No roots are kept from before, but those that BODY computes are."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-folder '()
     (dolist (name ,folders)
       (make-directory (expand-file-name name folder) t))
     (gemini-companion-roots-forget)
     (gemini-companion-privacy-refresh)
     (unwind-protect (progn ,@body)
       (gemini-companion-privacy-forget)
       (gemini-companion-roots-forget))))

(defun gemini-companion-roots-test-below (folder roots)
  "Return those of ROOTS that are below FOLDER, relative to it."
  (mapcar (lambda (root) (file-relative-name root folder))
          (seq-filter (lambda (root)
                        (file-in-directory-p root folder))
                      roots)))

(ert-deftest gemini-companion-roots-are-the-projects-of-open-files ()
  (gemini-companion-roots-test-with '("p/.git" "p/src" "q/.git" "lone")
    (dolist (name '("p/src/a" "q/b" "lone/c"))
      (with-current-buffer (find-file-noselect (expand-file-name name folder))
        (set-buffer-modified-p nil)))
    (should (equal '("lone" "p" "q")
                   (sort (gemini-companion-roots-test-below
                          folder (gemini-companion-roots nil))
                         #'string<)))))

(ert-deftest gemini-companion-roots-have-the-folder-of-a-terminal ()
  (gemini-companion-roots-test-with '("p/.git" "p/src")
    (with-temp-buffer
      (setq major-mode 'term-mode
            default-directory (expand-file-name "p/src/" folder))
      (should (equal '("p") (gemini-companion-roots-test-below
                             folder (gemini-companion-roots nil)))))))

(ert-deftest gemini-companion-roots-are-what-the-function-returns ()
  (gemini-companion-roots-test-with '("p")
    (let* ((p (expand-file-name "p" folder))
           (gemini-companion-roots-function
            (lambda (_) (list (file-name-as-directory p) p))))
      (should (equal (list p) (gemini-companion-roots nil)))
      (should-not gemini-companion-roots-problem))))

(ert-deftest gemini-companion-roots-are-none-if-the-function-fails ()
  (gemini-companion-roots-test-with '("p")
    (dolist (function (list (lambda (_) (error "No")) (lambda (_) 5)
                            (lambda (_) '(nil)) (lambda (_) '("p"))
                            (lambda (_) '("/ssh:nowhere.invalid:/p")) nil))
      (let ((gemini-companion-roots-function function))
        (gemini-companion-roots-forget)
        (should-not (gemini-companion-roots (expand-file-name "p/" folder)))
        (should (stringp gemini-companion-roots-problem))))))

(ert-deftest gemini-companion-roots-have-no-folder-of-mere-results ()
  (gemini-companion-roots-test-with '("p/.git" "p/src")
    (with-temp-buffer
      (setq default-directory (expand-file-name "p/src/" folder))
      (dolist (mode '(compilation-mode emacs-lisp-compilation-mode))
        (setq major-mode mode)
        (gemini-companion-roots-forget)
        (should-not (gemini-companion-roots-test-below
                     folder (gemini-companion-roots nil))))
      (let ((process (make-pipe-process :name "native compilation" :noquery t
                                        :buffer (current-buffer))))
        (gemini-companion-roots-forget)
        (should-not (gemini-companion-roots-test-below
                     folder (gemini-companion-roots nil)))
        (delete-process process)))))

(ert-deftest gemini-companion-roots-have-the-folder-of-a-command-that-runs ()
  (gemini-companion-roots-test-with '("p/.git" "p/src")
    (with-temp-buffer
      (setq major-mode 'compilation-mode
            default-directory (expand-file-name "p/src/" folder))
      (let ((process (make-pipe-process :name "command" :noquery t
                                        :buffer (current-buffer))))
        (should (equal '("p") (gemini-companion-roots-test-below
                               folder (gemini-companion-roots nil))))
        (delete-process process)))))

(ert-deftest gemini-companion-roots-are-true-names ()
  (gemini-companion-roots-test-with '("p/.git")
    (make-symbolic-link (expand-file-name "p" folder)
                        (expand-file-name "link" folder))
    (should (equal '("p") (gemini-companion-roots-test-below
                           folder
                           (gemini-companion-roots
                            (expand-file-name "link/" folder)))))))

(ert-deftest gemini-companion-roots-never-have-the-home-folder ()
  (gemini-companion-roots-test-with '(".git" "notes")
    (let ((process-environment (cons (concat "HOME=" folder)
                                     process-environment)))
      (should-not (gemini-companion-roots-test-below
                   folder (gemini-companion-roots folder)))
      (should (equal '("notes")
                     (gemini-companion-roots-test-below
                      folder (gemini-companion-roots
                              (expand-file-name "notes/" folder))))))
    (should-not (gemini-companion-roots "/"))))

(ert-deftest gemini-companion-roots-are-what-the-function-of-the-person-says ()
  (gemini-companion-roots-test-with '("p")
    (let ((gemini-companion-roots-function
           (lambda (roots) (cons "/somewhere" (last roots)))))
      (should (equal '("/somewhere" "p")
                     (let ((roots (gemini-companion-roots
                                   (expand-file-name "p/" folder))))
                       (list (car roots)
                             (file-name-nondirectory (cadr roots)))))))))

(ert-deftest gemini-companion-roots-never-have-a-remote-folder ()
  (gemini-companion-roots-test-with '()
    (with-temp-buffer
      (setq buffer-file-name "/ssh:nobody@example.invalid:/srv/a")
      (should-not (seq-find (lambda (root) (string-match-p "srv\\|ssh" root))
                            (gemini-companion-roots nil)))
      (setq buffer-file-name nil))
    (let ((file-name-handler-alist
           (cons (cons "\\`/ssh:" (lambda (operation &rest args)
                                    (if (eq operation 'file-remote-p)
                                        t
                                      (error "Connecting for %S %S"
                                             operation args))))
                 file-name-handler-alist)))
      (should-not (gemini-companion-roots
                   "/ssh:nobody@example.invalid:/srv/")))))

(ert-deftest gemini-companion-roots-have-nothing-that-is-hidden ()
  (gemini-companion-roots-test-with '("p/.git" "q/.git" "r/.git")
    (dolist (name '("p/a" "q/b"))
      (with-current-buffer (find-file-noselect (expand-file-name name folder))
        (set-buffer-modified-p nil)))
    (with-temp-buffer
      (setq major-mode 'term-mode
            default-directory (expand-file-name "r/" folder))
      (should (equal '("q")
                     (gemini-companion-roots-test-below
                      folder
                      (let ((gemini-companion-excluded '("p/a\\'" "/r/\\'")))
                        (gemini-companion-roots nil))))))))

(ert-deftest gemini-companion-roots-see-a-project-that-was-just-made ()
  (gemini-companion-roots-test-with '("p/src")
    (let ((source (expand-file-name "p/src/" folder)))
      (find-file-noselect (expand-file-name "a" source))
      (should (equal '("p/src") (gemini-companion-roots-test-below
                                 folder (gemini-companion-roots nil))))
      (make-directory (expand-file-name "p/.git" folder))
      (vc-file-clearprops source)
      (gemini-companion-roots-look-again source)
      (should (equal '("p") (gemini-companion-roots-test-below
                             folder (gemini-companion-roots nil)))))))

(ert-deftest gemini-companion-roots-name-files-as-the-cli-sees-the-project ()
  (gemini-companion-roots-test-with '("p/.git" "p/src" "elsewhere" "lone")
    (make-symbolic-link (expand-file-name "p") (expand-file-name "link"))
    (make-symbolic-link (expand-file-name "elsewhere/x")
                        (expand-file-name "p/src/inner"))
    (make-symbolic-link (expand-file-name "p/src/a") (expand-file-name "far"))
    (dolist (name '("elsewhere/x" "p/src/a"))
      (write-region "" nil name nil 'silent))
    (let ((gemini-companion-roots-function
           (lambda (roots)
             (seq-remove (lambda (root)
                           (member root (list (expand-file-name "elsewhere")
                                              (directory-file-name folder))))
                         roots)))
          (find-file-visit-truename nil)
          (vc-follow-symlinks nil))
      (pcase-dolist (`(,visited . ,told)
                     '(("link/src/a" . "p/src/a")
                       ("link/src/inner" . "p/src/inner")
                       ("far" . "p/src/a")
                       ("lone/b" . "lone/b")
                       ("elsewhere/x" . nil)))
        (let ((buffer (find-file-noselect visited)))
          (gemini-companion-roots (expand-file-name "p/"))
          (should (equal (and told (expand-file-name told))
                         (gemini-companion-roots-name
                          (buffer-file-name buffer))))
          (kill-buffer buffer))))))

;;; gemini-companion-roots-test.el ends here
