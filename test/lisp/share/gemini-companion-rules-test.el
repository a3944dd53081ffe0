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
                                                   (gemini-companion-session-make
                                                    :id "one"))))
    (gemini-companion-rules-verdict-review verdict)))

(ert-deftest gemini-companion-rules-fit-by-globs-below-the-innermost-root ()
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
           ("**" ("p/a" "outside/b") ())
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
       (gemini-companion-session-id session)
       (equal "b" (file-name-nondirectory file))))

(ert-deftest gemini-companion-rules-decide-by-the-first-that-fits ()
  (gemini-companion-rules-test-with '("p") '() '("p")
    (should-not (gemini-companion-rules-test-review "p/a.el"))
    (setq gemini-companion-review-rules
          '(("a.el" . never) ("*.el" . always) ("**" . never)))
    (should (equal '(never always never)
                   (mapcar #'gemini-companion-rules-test-review
                           '("p/a.el" "p/b.el" "p/c"))))))

(ert-deftest gemini-companion-rules-that-fail-ask-for-a-review ()
  (gemini-companion-rules-test-with '("p") '("p/a") '("p")
    (pcase-dolist
        (`(,condition . ,problem)
         `((,(lambda (&rest _) (error "Boom")) . "Boom")
           (,(lambda (&rest _) (y-or-n-p "Never? ")) . "interaction")
           (,(lambda () t) . "arguments")
           (,(lambda (&rest _) (signal 'quit nil)) . "Quit")
           (gemini-companion-rules-test-no-such-function . "malformed")
           ((and "a" "b") . "malformed")
           (t . "malformed")
           ("[" . "nvalid")
           (nil . "malformed")))
      (let* ((gemini-companion-review-rules (list (cons condition 'never)))
             (verdict (gemini-companion-rules-for (expand-file-name "p/a"))))
        (ert-info ((format "%S" condition))
          (should (eq 'always (gemini-companion-rules-verdict-review verdict)))
          (should (string-match-p problem
                                  (gemini-companion-rules-verdict-problem verdict)))
          (should (string-match-p "\\`your rule .* failed: "
                                  (gemini-companion-rules-phrase verdict))))))
    (dolist (rules '("*.el" ("*.el") (("a" . sometimes)) (("**" . nil))))
      (let ((gemini-companion-review-rules rules))
        (ert-info ((format "%S" rules))
          (should (eq 'always (gemini-companion-rules-test-review "p/a"))))))))

(ert-deftest gemini-companion-rules-hold-for-the-true-name-of-a-file ()
  (gemini-companion-rules-test-with '("p/docs" "p/src" "far") '("p/src/a" "far/b") '("p")
    (pcase-dolist (`(,target . ,link)
                   '(("../src/a" . "p/docs/a") ("../../far/b" . "p/docs/b")
                     ("loop" . "p/docs/loop")))
      (make-symbolic-link target (expand-file-name link)))
    (setq gemini-companion-review-rules '(("docs/**" . never) ("src/**" . always)))
    (should (equal '(always nil always never always)
                   (mapcar #'gemini-companion-rules-test-review
                           '("p/docs/a" "p/docs/b" "p/src/a" "p/docs/c"
                             "p/docs/loop"))))))

(ert-deftest gemini-companion-rules-are-none-of-local-variables ()
  (gemini-companion-rules-test-with '("p") '("p/a") '("p")
    (gemini-companion-test-write
     "p/.dir-locals.el"
     "((nil . ((gemini-companion-review-rules . ((\"**\" . never))))))")
    (let ((enable-local-variables :all)
          (gemini-companion-review-rules '(("*.el" . never))))
      (with-current-buffer (find-file-noselect (expand-file-name "p/a"))
        (unwind-protect
            (progn
              (should-not (local-variable-p 'gemini-companion-review-rules))
              (should (risky-local-variable-p 'gemini-companion-review-rules))
              (should-not (gemini-companion-rules-test-review "a"))
              (setq-local gemini-companion-review-rules '(("**" . never)))
              (should-not (gemini-companion-rules-test-review "a")))
          (kill-buffer))))))

(ert-deftest gemini-companion-rules-say-which-of-them-has-decided ()
  (gemini-companion-rules-test-with '("p") '() '("p")
    (pcase-dolist
        (`(,condition . ,phrase)
         `(("docs/**" . "by your rule docs/**")
           ("*[!\u202e]" . "by your rule *[!\\u202E]")
           (gemini-companion-rules-test-b-p
            . "by your rule gemini-companion-rules-test-b-p")
           (,(lambda (&rest _) t) . "by your rule that is a function")
           ((or "docs/*" "a") . "your rule (or \"docs/*\" \"a\") failed: \
Condition is ...ormed: (or \"docs/*\" \"a\")")))
      (let ((gemini-companion-review-rules `((,condition . always))))
        (should (equal phrase
                       (gemini-companion-rules-phrase
                        (gemini-companion-rules-for
                         (expand-file-name "p/docs/b")
                         (gemini-companion-session-make :id "one")))))))
    (should-not (gemini-companion-rules-phrase nil))))

(provide 'gemini-companion-rules-test)
;;; gemini-companion-rules-test.el ends here
