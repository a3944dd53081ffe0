;;; gemini-companion-readme-test.el --- The README and the options are whole  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Whoever adds an option or a command adds its row to the README.

;;; Code:

;; Its widgets are the types of options.
(require 'cus-edit)
(require 'ert)
(require 'gemini-companion)
(require 'seq)
(require 'wid-edit)

(defconst gemini-companion-readme-test-root
  (file-name-directory (locate-library "gemini-companion.el"))
  "The folder of the repository.")

(defun gemini-companion-readme-test-missing (names)
  "Return those of NAMES that the README does not have in = signs."
  (with-temp-buffer
    (insert-file-contents
     (expand-file-name "README.org" gemini-companion-readme-test-root))
    (seq-remove (lambda (name)
                  (goto-char (point-min))
                  (search-forward (format "=%s=" name) nil t))
                names)))

(defun gemini-companion-readme-test-options ()
  "Return all options of the group, as symbols."
  (mapcar #'car (seq-filter (lambda (member) (eq 'custom-variable (cadr member)))
                            (get 'gemini-companion 'custom-group))))

(ert-deftest gemini-companion-readme-has-every-option ()
  (should-not (gemini-companion-readme-test-missing
               (gemini-companion-readme-test-options))))

(ert-deftest gemini-companion-readme-has-every-command-of-the-menu ()
  (should-not
   (gemini-companion-readme-test-missing
    (mapcar #'cadr (apply #'append
                          (mapcar #'cdr gemini-companion-menu-commands))))))

(ert-deftest gemini-companion-options-have-version-and-fitting-type ()
  (dolist (option (gemini-companion-readme-test-options))
    (ert-info ((symbol-name option))
      (should (get option 'custom-package-version))
      (should (widget-apply (widget-convert (get option 'custom-type))
                            :match (eval (car (get option 'standard-value)) t)))
      (should (get option 'variable-documentation)))))

;;; gemini-companion-readme-test.el ends here
