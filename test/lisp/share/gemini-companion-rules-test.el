;;; gemini-companion-rules-test.el --- Tests of the rules for reviews  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-privacy)
(require 'gemini-companion-rules)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-rules-test-with (directories files roots &rest body)
  "Run BODY in a new directory with DIRECTORIES and FILES, relative names.
ROOTS of them are the workspace roots; no rule is set."
  (declare (indent 3) (debug t))
  `(gemini-companion-test-with-directory '()
     (dolist (name ,directories)
       (make-directory (expand-file-name name) t))
     (dolist (name ,files)
       (write-region "" nil (expand-file-name name) nil 'silent))
     (let ((gemini-companion-review-rules nil)
           (gemini-companion-rules-until-exit nil)
           (gemini-companion-roots-last
            (mapcar (lambda (name)
                      (directory-file-name (file-truename (expand-file-name name))))
                    ,roots)))
       (gemini-companion-privacy-refresh)
       (unwind-protect (progn ,@body)
         (gemini-companion-privacy-refresh)))))

(defun gemini-companion-rules-test-review (file)
  "Return what the rules decide about FILE: `always', `never' or nil."
  (when-let* ((verdict (gemini-companion-rules-for (expand-file-name file)
                                                   '(:id "one"))))
    (gemini-companion-rules-verdict-review verdict)))

(ert-deftest gemini-companion-rules-fit-by-globs-below-the-innermost-root ()
  :tags '(pure)
  (gemini-companion-rules-test-with '("p/docs/deep" "p/src/gen" "p/lib/docs") '()
      '("p" "p/lib")
    (pcase-dolist
        (`(,condition ,fits ,others)
         '(("*.el" ("p/a.el" "p/src/b.el" "p/src/new/c.el") ("p/a.elc" "p/el"))
           ("docs/**" ("p/docs/a" "p/docs/deep/b" "p/lib/docs/c")
            ("p/docs" "p/src/docs/a" "p/src/a"))
           ("docs/" ("p/docs/a" "p/docs/deep/b") ("p/docs" "p/src/docs/a"))
           ("/a" ("p/a" "p/lib/a") ("p/src/a"))
           ("src/*.c" ("p/src/a.c") ("p/src/gen/a.c" "p/lib/src.c"))
           ("[ab]?.txt" ("p/a1.txt" "p/src/b2.txt") ("p/c1.txt"))
           ("**/gen/**" ("p/src/gen/a" "outside/gen/b") ("p/gen"))
           ((and "src/**" (not "src/gen/**")) ("p/src/a") ("p/src/gen/a" "p/a"))
           ((or "*.c" "*.h") ("p/a.c" "p/a.h") ("p/a.o"))
           (t ("p/a" "outside/b") ())
           ((project "p") ("p/a" "p/src/b") ("p/lib/a" "outside/b"))
           ((and (project "p/lib/") "/docs/**") ("p/lib/docs/a") ("p/docs/a"))
           (gemini-companion-rules-test-b-p ("p/b" "outside/b") ("p/a"))))
      (let ((gemini-companion-review-rules (list (cons condition 'always))))
        (dolist (name fits)
          (ert-info ((format "%S %s" condition name))
            (should (eq 'always (gemini-companion-rules-test-review name)))))
        (dolist (name others)
          (ert-info ((format "%S not %s" condition name))
            (should-not (gemini-companion-rules-test-review name))))))))

(defun gemini-companion-rules-test-b-p (file session)
  "Return non-nil if FILE is one with the name b; SESSION is a plist."
  (and (file-name-absolute-p file)
       (plist-get session :id)
       (equal "b" (file-name-nondirectory file))))

(ert-deftest gemini-companion-rules-decide-by-the-first-that-fits ()
  :tags '(pure)
  (gemini-companion-rules-test-with '("p") '() '("p")
    (should-not (gemini-companion-rules-test-review "p/a.el"))
    (setq gemini-companion-review-rules
          '(("a.el" . never) ("*.el" . always) (t . never)))
    (should (equal '(never always never)
                   (mapcar #'gemini-companion-rules-test-review
                           '("p/a.el" "p/b.el" "p/c"))))
    ;; Those of this Emacs come first, and may lift others.
    (setq gemini-companion-rules-until-exit '(("a.el" . nil) ("b.el" . never)))
    (should (equal '(nil never never)
                   (mapcar #'gemini-companion-rules-test-review
                           '("p/a.el" "p/b.el" "p/c"))))))

(ert-deftest gemini-companion-rules-that-fail-ask-for-a-review ()
  :tags '(pure)
  (gemini-companion-rules-test-with '("p") '("p/a") '("p")
    (pcase-dolist
        (`(,condition . ,problem)
         `((,(lambda (&rest _) (error "Boom")) . "Boom")
           (,(lambda (&rest _) (y-or-n-p "Never? ")) . "interaction")
           (,(lambda (&rest _) (sleep-for 20)) . "Timeout")
           (,(lambda (&rest _)
               (let ((end (+ (float-time) 1.1)))
                 (while (< (float-time) end))))
            . "longer than a second")
           (,(lambda () t) . "arguments")
           (,(lambda (&rest _) (signal 'quit nil)) . "Quit")
           (gemini-companion-rules-test-no-such-function . "malformed")
           ((xor "a" "b") . "malformed")
           ("[" . "nvalid")
           (nil . "malformed")))
      (let* ((gemini-companion-review-rules (list (cons condition 'never)))
             (began (float-time))
             (verdict (gemini-companion-rules-for (expand-file-name "p/a"))))
        (ert-info ((format "%S" condition))
          (should (< (- (float-time) began) 10))
          (should (eq 'always (gemini-companion-rules-verdict-review verdict)))
          (should (string-match-p problem
                                  (gemini-companion-rules-verdict-problem verdict)))
          (should (string-match-p "\\`your rule .* failed: "
                                  (gemini-companion-rules-phrase verdict))))))
    (dolist (rules '("*.el" ("*.el") (("a" . sometimes)) ((t . ask))))
      (let ((gemini-companion-review-rules rules))
        (ert-info ((format "%S" rules))
          (should (eq 'always (gemini-companion-rules-test-review "p/a"))))))))

(ert-deftest gemini-companion-rules-hold-for-both-names-of-a-symbolic-link ()
  :tags '(pure)
  (gemini-companion-rules-test-with '("p/docs" "p/src" "far") '("p/src/a" "far/b") '("p")
    (pcase-dolist (`(,target . ,link)
                   '(("../src/a" . "p/docs/a") ("../../far/b" . "p/docs/b")
                     ("../src/new" . "p/docs/new") ("../far" . "p/far")
                     ("loop" . "p/docs/loop")))
      (make-symbolic-link target (expand-file-name link)))
    (pcase-dolist
        (`(,rules . ,expected)
         '(((("docs/**" . never))
            . (nil nil nil nil nil always))
           ((("docs/**" . always))
            . (always always always nil nil always))
           ((("src/**" . always))
            . (always nil always nil always always))
           ((("docs/**" . never) ("src/**" . never))
            . (never nil never nil never always))
           ((("far/**" . never) ("b" . never))
            . (nil never nil never nil always))
           ((("docs/**" . never) ("src/**" . always))
            . (always nil always nil always always))))
      (let ((gemini-companion-review-rules rules))
        (ert-info ((format "%S" rules))
          (should (equal expected
                         (mapcar #'gemini-companion-rules-test-review
                                 '("p/docs/a" "p/docs/b" "p/docs/new" "p/far/b"
                                   "p/src/a" "p/docs/loop")))))))))

(ert-deftest gemini-companion-rules-are-none-of-local-variables ()
  (gemini-companion-rules-test-with '("p") '("p/a") '("p")
    (gemini-companion-test-write
     "p/.dir-locals.el"
     "((nil . ((gemini-companion-review-rules . ((t . never)))
              (gemini-companion-rules-until-exit . ((t . never))))))")
    (let ((enable-local-variables :all)
          (gemini-companion-review-rules '(("*.el" . never))))
      (with-current-buffer (find-file-noselect (expand-file-name "p/a"))
        (unwind-protect
            (progn
              (should-not (local-variable-p 'gemini-companion-review-rules))
              (should (risky-local-variable-p 'gemini-companion-review-rules))
              (should-not (gemini-companion-rules-test-review "a"))
              (setq-local gemini-companion-review-rules '((t . never)))
              (should-not (gemini-companion-rules-test-review "a")))
          (kill-buffer))))))

(ert-deftest gemini-companion-rules-say-which-of-them-has-decided ()
  :tags '(pure)
  (gemini-companion-rules-test-with '("p") '() '("p")
    (pcase-dolist
        (`(,condition . ,rule)
         `(("docs/**" . "docs/**")
           ("*[!\u202e]" . "*[!\\u202E]")
           (gemini-companion-rules-test-b-p . "gemini-companion-rules-test-b-p")
           (t . "t")
           (,(lambda (&rest _) t) . "that is a function")
           ((and (project "~/src/shop/") "/docs/**") . "/docs/** in shop")
           ((or "docs/*" (not "a")) . "(or \"docs/*\" (not \"a\"))")))
      (should (equal rule (gemini-companion-rules-condition-text condition))))
    (let ((gemini-companion-review-rules '(("docs/**" . always))))
      (should (equal "by your rule docs/**"
                     (gemini-companion-rules-phrase
                      (gemini-companion-rules-for
                       (expand-file-name "p/docs/b") '(:id "one"))))))
    (should-not (gemini-companion-rules-phrase nil))))

(provide 'gemini-companion-rules-test)
;;; gemini-companion-rules-test.el ends here
