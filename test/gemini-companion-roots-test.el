;;; gemini-companion-roots-test.el --- Tests of the roots  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-roots)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-roots-test-with (directories &rest body)
  "Run BODY in a new directory with DIRECTORIES, a list of relative names.
Roots are cached, but not from before."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory '()
     (dolist (name ,directories)
       (make-directory (expand-file-name name directory) t))
     (setq gemini-companion-roots-last nil)
     (gemini-companion-privacy-refresh)
     (unwind-protect (progn ,@body)
       (gemini-companion-privacy-refresh)
       (setq gemini-companion-roots-last nil))))

(defun gemini-companion-roots-test-below (directory roots)
  "Return those of ROOTS that are below DIRECTORY, relative to it."
  (mapcar (lambda (root) (file-relative-name root directory))
          (seq-filter (lambda (root)
                        (file-in-directory-p root directory))
                      roots)))

(ert-deftest gemini-companion-roots-are-the-projects-of-files-and-terminals ()
  (gemini-companion-roots-test-with '("p/.git" "p/src" "q/.git" "r/.git" "lone")
    (let ((below (lambda ()
                   (sort (gemini-companion-roots-test-below
                          directory (gemini-companion-roots nil))
                         #'string<))))
      (mapc #'find-file-noselect '("p/src/a" "q/b" "lone/c"))
      (should (equal '("lone" "p" "q") (funcall below)))
      (with-temp-buffer
        (setq major-mode 'term-mode
              default-directory (expand-file-name "r/" directory))
        (should (equal '("lone" "p" "q" "r") (funcall below)))
        ;; Nothing that is hidden.
        (gemini-companion-privacy-refresh)
        (let ((gemini-companion-excluded '("src/a\\'" "/r/\\'")))
          (should (equal '("lone" "q") (funcall below)))))
      (gemini-companion-privacy-refresh)
      (kill-buffer (get-file-buffer "q/b"))
      (should (equal '("lone" "p") (funcall below))))))

(ert-deftest gemini-companion-roots-exclude-home-and-remote-directories ()
  (gemini-companion-roots-test-with '(".git" "notes")
    (let ((link (make-temp-name (directory-file-name directory))))
      (make-symbolic-link directory link)
      (unwind-protect
          (dolist (home (list directory (concat directory "/") link
                              (concat link "/../" (file-name-nondirectory link))))
            (gemini-companion-privacy-refresh)
            (let ((process-environment (cons (concat "HOME=" home)
                                             process-environment)))
              (pcase-dolist (`(,below . ,start)
                             `((() . ,directory)
                               (() . ,(file-name-as-directory link))
                               (("notes") . ,(expand-file-name "notes/" link))
                               (("notes") . ,(expand-file-name "notes/"))))
                (should (equal below (gemini-companion-roots-test-below
                                      directory
                                      (gemini-companion-roots start)))))))
        (delete-file link)))
    (gemini-companion-test-with-far-host
      (with-temp-buffer
        (setq buffer-file-name "/far:/srv/a")
        (should-not (seq-find (lambda (root) (string-match-p "srv\\|far" root))
                              (gemini-companion-roots nil)))
        (setq buffer-file-name nil))
      (dolist (start '("/" "/far:/srv/"))
        (should-not (gemini-companion-roots start))))))

(ert-deftest gemini-companion-roots-see-a-project-that-was-just-made ()
  (gemini-companion-roots-test-with '("p/src")
    (let ((source (expand-file-name "p/src/" directory)))
      (find-file-noselect (expand-file-name "a" source))
      (should (equal '("p/src") (gemini-companion-roots-test-below
                                 directory (gemini-companion-roots nil))))
      (make-directory (expand-file-name "p/.git" directory))
      (vc-file-clearprops source)
      (gemini-companion-privacy-drop (list 'place source))
      (should (equal '("p") (gemini-companion-roots-test-below
                             directory (gemini-companion-roots nil)))))))

(ert-deftest gemini-companion-roots-name-files-as-the-cli-sees-the-project ()
  (gemini-companion-roots-test-with '("p/.git" "p/src" "elsewhere" "lone")
    (make-symbolic-link (expand-file-name "p") (expand-file-name "link"))
    (make-symbolic-link (expand-file-name "elsewhere/x")
                        (expand-file-name "p/src/inner"))
    (make-symbolic-link (expand-file-name "p/src/a") (expand-file-name "far"))
    (dolist (name '("elsewhere/x" "p/src/a"))
      (write-region "" nil name nil 'silent))
    (let ((gemini-companion-excluded
           (list (lambda (name buffer)
                   (and (null buffer)
                        (equal name (expand-file-name "elsewhere/"))))))
          (process-environment (cons (concat "HOME=" directory)
                                     process-environment))
          (find-file-visit-truename nil)
          (vc-follow-symlinks nil))
      (pcase-dolist (`(,visited . ,name)
                     '(("link/src/a" . "p/src/a")
                       ("link/src/inner" . "p/src/inner")
                       ("far" . "p/src/a")
                       ("lone/b" . "lone/b")
                       ("elsewhere/x" . nil)))
        (let ((buffer (find-file-noselect visited)))
          (gemini-companion-roots (expand-file-name "p/"))
          (should (equal (and name (expand-file-name name))
                         (gemini-companion-roots-name
                          (buffer-file-name buffer))))
          (kill-buffer buffer))))))

;;; gemini-companion-roots-test.el ends here
