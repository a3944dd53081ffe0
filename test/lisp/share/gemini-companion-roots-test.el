;;; gemini-companion-roots-test.el --- Tests of workspace roots  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-privacy)
(require 'gemini-companion-privacy-test-helper)
(require 'gemini-companion-roots)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-roots-test-with (directories &rest body)
  "Run BODY in a new directory with DIRECTORIES, a list of relative names.
Roots are cached, but not from before."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory '()
     (dolist (name ,directories)
       (make-directory (expand-file-name name directory) t))
     (gemini-companion-privacy-refresh)
     (unwind-protect (progn ,@body)
       (gemini-companion-privacy-refresh)
       (setq gemini-companion-roots-last nil))))

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
                               (("notes") . "~/notes/")
                               (("notes") . ,(expand-file-name "notes/" link))
                               (("notes") . ,(expand-file-name "notes/"))))
                (should (equal below
                               (mapcar (lambda (root)
                                         (file-relative-name root directory))
                                       (seq-filter
                                        (lambda (root)
                                          (file-in-directory-p root directory))
                                        (gemini-companion-roots start))))))))
        (delete-file link)))
    (gemini-companion-test-with-far-host
      (with-temp-buffer
        (setq buffer-file-name "/far:/srv/a")
        (should-not (seq-find (lambda (root) (string-match-p "srv\\|far" root))
                              (gemini-companion-roots nil)))
        (setq buffer-file-name nil))
      (should-not (seq-mapcat #'gemini-companion-roots '("/" "/far:/srv/"))))))

(ert-deftest gemini-companion-roots-of-a-project-of-jujutsu-have-a-finding ()
  (gemini-companion-roots-test-with '("jj/.jj" "jj/src" "both/.jj" "both/.git" "both/src"
                                      "git/.git")
    (cl-flet ((found (name)
                (gemini-companion-privacy-refresh)
                (seq-find (lambda (finding) (string-search ".jj" (nth 2 finding)))
                          (gemini-companion-part-findings
                           'roots (file-name-as-directory (expand-file-name name))))))
      (dolist (name '("jj" "jj/src"))
        (pcase-let ((`("Project" note ,text ,remedy) (found name)))
          (should (string-search "/jj/ is not a project for Emacs" text))
          (should (string-search (if (< emacs-major-version 29)
                                     "colocate"
                                   "`project-vc-extra-root-markers'")
                                 remedy))))
      (dolist (name '("both" "both/src" "git"))
        (should-not (found name)))
      (when (boundp 'project-vc-extra-root-markers)
        (cl-progv '(project-vc-extra-root-markers) '((".jj"))
          (dolist (name '("jj" "jj/src"))
            (should-not (found name))))))))

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
          (gemini-companion-roots-update (expand-file-name "p/"))
          (should (equal (and name (expand-file-name name))
                         (gemini-companion-roots-name
                          (buffer-file-name buffer))))
          (kill-buffer buffer))))))

;;; gemini-companion-roots-test.el ends here
