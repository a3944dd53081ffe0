;;; gemini-companion-label-test.el --- Tests of names of files for the user  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-label)
(require 'gemini-companion-part)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-roots)

(ert-deftest gemini-companion-label-is-relative-and-hides-nothing ()
  (gemini-companion-test-with-directory '(("home/.bashrc" "") ("project/.git/x" "")
                                          ("project/a" "") ("project/src/b" ""))
    (let* ((process-environment
            (cons (concat "HOME=" directory "home") process-environment))
           (abbreviated-home-dir nil)
           (default-directory (concat directory "project/"))
           (session (gemini-companion-test-session "one" 1)))
      (make-symbolic-link "../../home/.bashrc" "src/innocent.txt")
      (make-symbolic-link "a" "b")
      (make-symbolic-link "loop" "loop")
      (make-symbolic-link "project" "../alias")
      (pcase-dolist
          (`(,file ,name ,face)
           `(("a" "a") ("src/b" "src/b") ("src/../src/b" "src/b") ("new/c" "new/c")
             ;; What leads to the project is no matter.
             (,(concat directory "alias/a") "a")
             ("b" "a (by the symbolic link b)" warning)
             ("loop" "loop")
             (,(concat directory "home/.bashrc")
              "a file outside your projects: ~/.bashrc" error)
             ("src/innocent.txt"
              "a file outside your projects: ~/.bashrc (by the symbolic link \
src/innocent.txt)" error)
             ("/etc/passwd" "a file outside your projects: /etc/passwd" error)
             ("/ssh:nowhere.invalid:/x"
              "a file outside your projects: /ssh:nowhere.invalid:/x" error)
             ;; Characters that are not seen.
             ("gr\u00FC\u00DF \u65E5\u672C.txt" "gr\u00FC\u00DF \u65E5\u672C.txt")
             ("a\u202Etxt.exe" "a\\u202Etxt.exe")
             ("a\u200B\u2066b" "a\\u200B\\u2066b")
             ("a\nb\tc" "a\\nb\\tc")
             ("\uFEFFa\u00A0b\u2028" "\\uFEFFa\\u00A0b\\u2028")
             ("a\U000E0041b" "a\\U000E0041b")
             (,(concat "first/" (make-string 200 ?x) "/sub/last.txt")
              ,(concat "first/" (make-string 14 ?x) "..." (make-string 24 ?x)
                       "/sub/last.txt"))))
        (ert-info (file)
          (let ((shown (gemini-companion-label-file
                        (if (string-prefix-p "/" file)
                            file
                          (concat default-directory file))
                        session)))
            (should (equal name shown))
            (should (eq face (get-text-property 0 'face shown))))))
      (should (equal "a\\xFFb" (gemini-companion-names-shown
                                (string ?a #x3FFFFF ?b))))
      ;; The CLI runs below the root of its project.
      (should (equal "src/b"
                     (gemini-companion-label-file
                      (expand-file-name "src/b")
                      (gemini-companion-session-make :directory (expand-file-name "src")))))
      ;; A name in another project is absolute.
      (make-directory "../home/web")
      (gemini-companion-roots-update (expand-file-name "../home/web/"))
      (let ((file (expand-file-name "../home/web/a")))
        (unwind-protect
            (should (equal-including-properties
                     '("~/web/a" "a") (list (gemini-companion-label-file file session)
                                            (gemini-companion-label-file file))))
          (setq gemini-companion-roots-last nil))))))

;; Emacs cut them off within a word.
(ert-deftest gemini-companion-label-header-ends-at-a-whole-key ()
  (let ((texts '("unsaved; " nil "100% a" "  C-c C-c accept" "  n next" "  p")))
    (pcase-dolist
        (`(,width . ,line)
         '((40 . " unsaved; 100%% a  C-c C-c accept  n next")
           (60 . " unsaved; 100%% a  C-c C-c accept  n next  p")
           ;; The third key would fit, but comes later.
           (39 . " unsaved; 100%% a  C-c C-c accept")
           (31 . " unsaved; 100%% a")
           (16 . " unsaved; 100%% a")
           ;; Other texts are as long as possible.
           (13 . " unsaved; ...")))
      (cl-letf (((symbol-function 'window-width) (lambda (&rest _) width))
                ((symbol-function 'gemini-companion-text-sign) (lambda (_ sign) sign)))
        (ert-info ((format "%d" width))
          (should (equal line (gemini-companion-label-header texts))))))))

(ert-deftest gemini-companion-label-fits-a-line-by-omitting-from-the-right ()
  (let ((texts '("größe.txt" nil "" "  a accept" "  q" "  ? help")))
    (pcase-dolist (`(,width . ,line)
                   '((80 . "größe.txt  a accept  q  ? help")
                     (30 . "größe.txt  a accept  q  ? help")
                     (29 . "größe.txt  a accept  q")
                     (21 . "größe.txt  a accept")
                     ;; What comes after a text that does not fit is omitted, too.
                     (13 . "größe.txt")))
      (should (equal line (gemini-companion-label-fit texts width))))
    (let ((line (gemini-companion-label-fit texts 6)))
      (should (<= (string-width line) 6))
      (should (string-prefix-p "grö" line)))
    (should (equal "" (gemini-companion-label-fit nil 6)))))

(ert-deftest gemini-companion-label-warns-of-a-file-in-another-worktree ()
  (skip-unless (executable-find "git"))
  (gemini-companion-test-with-directory '(("main/a" "x\n") ("other/a" "x\n"))
    (let ((git (lambda (&rest arguments)
                 (should (eql 0 (apply #'call-process "git" nil nil nil "-C" "main"
                                       "-c" "user.name=x" "-c" "user.email=x@x.invalid"
                                       arguments)))))
          (warnings (lambda (file cli)
                      (gemini-companion-label-location-warnings
                       (gemini-companion-label-location
                        (expand-file-name file)
                        (gemini-companion-session-make :directory (expand-file-name cli))))))
          (gemini-companion-roots-last
           (mapcar #'expand-file-name '("main" "other" "feature"))))
      (gemini-companion-cache-refresh)
      (funcall git "init" "-q")
      (funcall git "add" "a")
      (funcall git "commit" "-q" "-m" "x")
      (funcall git "worktree" "add" "-q" "../feature")
      (should-not (funcall warnings "main/a" "main"))
      (should-not (funcall warnings "feature/a" "feature"))
      (should-not (funcall warnings "other/a" "main"))
      (should (equal '("in another worktree (feature)")
                     (funcall warnings "feature/a" "main")))
      (should (equal '("in another worktree (main)")
                     (funcall warnings "main/new/b" "feature"))))))

;;; gemini-companion-label-test.el ends here
