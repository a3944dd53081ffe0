;;; gemini-companion-review-plans-test.el --- Tests of the files of plans  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-label)
(require 'gemini-companion-review-plans)
(require 'gemini-companion-rules)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-review-plans-test-with (&rest body)
  "Run BODY in a directory that is the home of the user; no rule is set."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory
       '((".gemini/tmp/shop/1a/plans/add.md" "") ("src/a.md" ""))
     (let ((process-environment
            (append (list (concat "HOME=" directory) "GEMINI_CLI_HOME")
                    process-environment))
           (gemini-companion-review-rules nil))
       ,@body)))

(ert-deftest gemini-companion-review-plans-are-below-the-directory-of-their-cli ()
  (gemini-companion-review-plans-test-with
    (make-symbolic-link ".gemini" "link")
    (make-symbolic-link (expand-file-name "src/a.md") ".gemini/tmp/shop/1a/plans/b.md")
    (dolist (name '(".gemini/tmp/shop/1a/plans/add.md" ".gemini/tmp/shop/1a/plans/new.md"
                    ".gemini/tmp/shop/plans/add.md" "link/tmp/shop/1a/plans/add.md"))
      (ert-info (name)
        (should (gemini-companion-review-plans-file-p (expand-file-name name)))))
    (dolist (name '("src/a.md" "src/plans/a.md" "src/.gemini/tmp/shop/1a/plans/a.md"
                    ".gemini/tmp/shop/1a/plans/a.el" ".gemini/tmp/shop/1a/plans/a/b.md"
                    ".gemini/tmp/shop/1a/b/plans/a.md" ".gemini/plans/a.md"
                    ".qwen/tmp/shop/1a/plans/a.md"
                    ;; It leads to a file of the project.
                    ".gemini/tmp/shop/1a/plans/b.md"
                    ".gemini/tmp/shop/1a/plans/../../../../../src/plans/a.md"))
      (ert-info (name)
        (should-not (gemini-companion-review-plans-file-p (expand-file-name name)))))))

(ert-deftest gemini-companion-review-plans-unless-a-rule-or-the-user-says-no ()
  (gemini-companion-review-plans-test-with
    (cl-flet ((verdict (name)
                (when-let* ((verdict (gemini-companion-rules-for
                                      (expand-file-name name)
                                      (gemini-companion-session-make :id "one"))))
                  (list (gemini-companion-rules-verdict-review verdict)
                        (gemini-companion-rules-phrase verdict)))))
      (let ((plan ".gemini/tmp/shop/1a/plans/add.md"))
        (should (equal '(always "by your rule gemini-companion-review-plans")
                       (verdict plan)))
        (should-not (verdict "src/a.md"))
        (let ((gemini-companion-review-rules '(("*.md" . never))))
          (should (eq 'never (car (verdict plan)))))
        (let ((gemini-companion-review-plans nil))
          (should-not (verdict plan)))
        ;; A project cannot turn it off.
        (with-temp-buffer
          (setq-local gemini-companion-review-plans nil)
          (should (verdict plan)))))))

(ert-deftest gemini-companion-review-plans-are-called-the-plan ()
  (gemini-companion-review-plans-test-with
    (cl-flet ((label (name)
                (gemini-companion-label-file (expand-file-name name)))
              (warnings (name)
                (mapcar #'substring-no-properties
                        (gemini-companion-label-location-warnings
                         (gemini-companion-label-location (expand-file-name name))))))
      (should (equal "the plan: add.md" (label ".gemini/tmp/shop/1a/plans/add.md")))
      (should (equal '("the plan") (warnings ".gemini/tmp/shop/1a/plans/add.md")))
      (should (equal "the plan: a\\u202E.md"
                     (label ".gemini/tmp/shop/1a/plans/a\u202e.md")))
      (should (string-prefix-p "a file outside your projects: "
                               (label ".gemini/tmp/shop/1a/notes/add.md")))
      ;; A link that leads to it is still one.
      (make-symbolic-link (expand-file-name ".gemini/tmp/shop/1a/plans/add.md")
                          "src/innocent.md")
      (should (string-search "by the symbolic link" (label "src/innocent.md"))))))

;;; gemini-companion-review-plans-test.el ends here
