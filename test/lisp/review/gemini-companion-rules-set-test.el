;;; gemini-companion-rules-set-test.el --- Tests of setting a rule  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-overview)
(require 'gemini-companion-rules-set)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-rules-set-test-with (&rest body)
  "Run BODY with edits in the project of SESSION, where no rule is set.
`default-directory' is that project."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-edits '(("project/x" "") ("other/x" ""))
     (make-directory "project/docs/deep" t)
     (let* ((default-directory (file-truename (concat directory "project/")))
            (session (gemini-companion-test-session "one" 1))
            (gemini-companion-review-rules nil)
            (gemini-companion-rules-until-exit nil)
            (gemini-companion-roots-last
             (list (directory-file-name default-directory)
                   (directory-file-name (file-truename
                                         (concat directory "other"))))))
       ,@body)))

(defun gemini-companion-rules-set-test-type (keys &optional save)
  "Call the command with KEYS, characters, as answers; SAVE is its prefix."
  (cl-letf (((symbol-function 'read-multiple-choice)
             (lambda (_prompt choices &rest _)
               (or (assq (pop keys) choices)
                   (error "No such choice")))))
    (let ((current-prefix-arg save))
      (call-interactively #'gemini-companion-set-rule))))

(defun gemini-companion-rules-set-test-reviews (session &rest files)
  "Return what the rules decide about edits of FILES by SESSION."
  (mapcar (lambda (file)
            (when-let* ((verdict (gemini-companion-rules-for
                                  (expand-file-name file) session)))
              (gemini-companion-rules-verdict-review verdict)))
          files))

(ert-deftest gemini-companion-set-rule-sets-one-for-what-the-user-chooses ()
  :tags '(pure)
  (gemini-companion-rules-set-test-with
    (pcase-dolist
        (`(,file ,kind ,rule . ,expected)
         '(("docs/a.el" ?f "/docs/a.el in project" always nil nil nil)
           ("docs/a.el" ?e "*.el" always always nil always)
           ("docs/a.el" ?d "/docs/** in project" always nil always nil)
           ("b.el" ?d "/** in project" always always always nil)
           ("[*?]\\x.e[l" ?f "/\\[\\*\\?]\\\\x.e\\[l in project" nil nil nil nil)))
      (ert-info ((format "%s %c" file kind))
        (setq gemini-companion-rules-until-exit nil)
        (with-current-buffer (find-file-noselect (expand-file-name file))
          (unwind-protect
              (gemini-companion-rules-set-test-type (list ?a kind))
            (kill-buffer)))
        (should (equal (concat "by your rule " rule)
                       (gemini-companion-rules-phrase
                        (gemini-companion-rules-for (expand-file-name file)
                                                    session))))
        (should (equal expected
                       (gemini-companion-rules-set-test-reviews
                        session "docs/a.el" "b.el" "docs/deep/c"
                        "../other/docs/a.el")))
        (should-not gemini-companion-review-rules)))))

(ert-deftest gemini-companion-set-rule-lifts-its-own-and-makes-exceptions ()
  :tags '(pure)
  (gemini-companion-rules-set-test-with
    (with-current-buffer (find-file-noselect (expand-file-name "a.el"))
      (unwind-protect
          (cl-flet ((type (&rest keys)
                      (gemini-companion-rules-set-test-type keys)
                      (gemini-companion-rules-set-test-reviews
                       session "a.el" "b.el")))
            (should (equal '(never never) (type ?n ?e)))
            (should (equal '(always never) (type ?a ?f)))
            (should (equal '(nil never) (type ?r ?f)))
            ;; The later one comes first.
            (should (equal '(always always) (type ?a ?e)))
            (should (equal '(nil always) (type ?r ?f)))
            (should (equal '(nil nil) (type ?r ?d)))
            (setq gemini-companion-rules-until-exit nil)
            (should (equal '(nil nil) (type ?r ?f)))
            ;; Without a rule, nothing is recorded.
            (should-not gemini-companion-rules-until-exit)
            (setq gemini-companion-review-rules '(("*.el" . always)))
            (should (equal '(nil always) (type ?r ?f))))
        (kill-buffer)))))

(ert-deftest gemini-companion-set-rule-fits-both-names-of-a-link ()
  :tags '(pure)
  (gemini-companion-rules-set-test-with
    (write-region "" nil (expand-file-name "x.el") nil 'silent)
    (make-symbolic-link "../x.el" (expand-file-name "docs/y.txt"))
    (dolist (kind '(?f ?e ?d))
      (setq gemini-companion-rules-until-exit nil)
      (let ((find-file-visit-truename nil)
            (gemini-companion-edit-here nil))
        (cl-letf (((symbol-function 'gemini-companion-names-file)
                   (lambda (&rest _) (expand-file-name "docs/y.txt"))))
          (gemini-companion-rules-set-test-type (list ?n kind))))
      (ert-info ((char-to-string kind))
        (should (equal '(never)
                       (gemini-companion-rules-set-test-reviews
                        session "docs/y.txt")))))))

(ert-deftest gemini-companion-set-rule-decides-about-what-waits ()
  :tags '(pure)
  (gemini-companion-rules-set-test-with
    (let ((lock (gemini-companion-test-open "a.lock" "new\n" 1 session))
          (hidden (gemini-companion-test-open ".a.lock" "new\n" 2 session))
          (other (gemini-companion-test-open "b" "new\n" 3 session)))
      (gemini-companion-test-eventually (gemini-companion-edit-view lock))
      ;; The one that is displayed stays; it has no rule that has decided.
      (with-current-buffer (gemini-companion-edit-proposal-buffer lock)
        (gemini-companion-rules-set-test-type '(?n ?e)))
      (should (equal '(shown pending pending)
                     (mapcar #'gemini-companion-edit-status
                             (list lock hidden other))))
      (should-not (gemini-companion-edit-rule lock))
      (should (string-match-p "hidden" (gemini-companion-edit-review-reason hidden)))
      ;; In the list, the rule is for the file of the row.
      (save-window-excursion
        (gemini-companion-list)
        (with-current-buffer "*gemini*"
          (goto-char (point-min))
          (should-error (gemini-companion-rules-set-test-type '(?n ?f))
                        :type 'user-error)
          (while (not (eq other (gemini-companion-view-edit-here
                                 gemini-companion-edits-view)))
            (should (zerop (forward-line))))
          (gemini-companion-rules-set-test-type '(?a ?f))
          (should (equal "by your rule /b in project"
                         (gemini-companion-edit-rule other)))
          (revert-buffer)
          (should (string-match-p "by your rule /b in project" (buffer-string)))
          (gemini-companion-rules-set-test-type '(?n ?f)))
        (gemini-companion-part-stop 'overview))
      (should (eq 'automatic (gemini-companion-edit-decision other)))
      (should (equal '(shown pending)
                     (mapcar #'gemini-companion-edit-status (list lock hidden)))))))

(ert-deftest gemini-companion-set-rule-saves-by-customize-or-refuses ()
  (gemini-companion-rules-set-test-with
    (let* ((symbol 'gemini-companion-review-rules)
           (gemini-companion-rules-until-exit '(("*.el" . never)))
           (custom-file (expand-file-name "custom.el"))
           (user-init-file (expand-file-name "init.el"))
           (type (lambda (&rest keys)
                   (gemini-companion-rules-set-test-type keys '(4))))
           (refusal (lambda ()
                      (gemini-companion-test-refusal (funcall type ?a ?e)))))
      (with-current-buffer (find-file-noselect (expand-file-name "a.el"))
        (unwind-protect
            (cl-letf (((get symbol 'saved-value) nil)
                      ((get symbol 'theme-value) nil)
                      ((get symbol 'customized-value) nil)
                      ((get 'user 'theme-settings) (get 'user 'theme-settings)))
              (funcall type ?a ?e)
              (should (string-match-p
                       "(gemini-companion-review-rules '((\"\\*\\.el\" \\. always)))"
                       (gemini-companion-test-file-text "custom.el")))
              ;; The rule of this Emacs would come before it.
              (should-not gemini-companion-rules-until-exit)
              (should (equal '(always) (gemini-companion-rules-set-test-reviews
                                        session "a.el")))
              (funcall type ?n ?f)
              (should (equal '(never) (gemini-companion-rules-set-test-reviews
                                       session "a.el")))
              (funcall type ?r ?f)
              (funcall type ?r ?e)
              (should (equal '(nil) (gemini-companion-rules-set-test-reviews
                                     session "a.el")))
              ;; The init file sets it, by `setq', or by use-package.
              (let ((gemini-companion-review-rules '(("*.c" . always))))
                (should (string-match-p "outside of Customize" (funcall refusal))))
              (put symbol 'theme-value `((use-package ,(default-value symbol))))
              (should (string-match-p "outside of Customize" (funcall refusal)))
              (put symbol 'saved-value nil)
              (put symbol 'theme-value nil)
              (let ((gemini-companion-review-rules nil))
                (cl-letf (((symbol-function 'custom-file) #'ignore))
                  (should (string-match-p "without an init file" (funcall refusal))))
                (should-not gemini-companion-review-rules)
                (should-not gemini-companion-rules-until-exit)))
          (kill-buffer)
          (when-let* ((buffer (get-file-buffer custom-file)))
            (kill-buffer buffer)))))))

(ert-deftest gemini-companion-set-rule-needs-a-file ()
  :tags '(pure)
  (with-temp-buffer
    (should-error (call-interactively #'gemini-companion-set-rule)
                  :type 'user-error)))

(provide 'gemini-companion-rules-set-test)
;;; gemini-companion-rules-set-test.el ends here
