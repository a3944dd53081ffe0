;;; gemini-companion-manual-test.el --- The manual is complete  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

;; Its widgets are the types of options.
(require 'cus-edit)
(require 'gemini-companion)
(require 'gemini-companion-test-helper)
(require 'wid-edit)

;; The mode loads most of them later.
(dolist (file (directory-files gemini-companion-test-root nil
                               "\\`gemini-companion.*\\.el\\'"))
  (unless (string-suffix-p "-autoloads.el" file)
    (require (intern (file-name-sans-extension file)))))

(defmacro gemini-companion-manual-test-with (&rest body)
  "Evaluate BODY in a buffer with the manual."
  (declare (indent 0) (debug t))
  `(with-temp-buffer
     (insert-file-contents
      (expand-file-name "doc/gemini-companion.org"
                        gemini-companion-test-root))
     ,@body))

(defun gemini-companion-manual-test-options (&optional group)
  "Return all options of GROUP, by default ours, and of its subgroups."
  (seq-mapcat (pcase-lambda (`(,name ,type))
                (pcase type
                  ('custom-variable (list name))
                  ('custom-group (gemini-companion-manual-test-options name))))
              (get (or group 'gemini-companion) 'custom-group)))

(ert-deftest gemini-companion-manual-has-every-option-and-command-of-the-menu ()
  (gemini-companion-manual-test-with
    (dolist (symbol (append (gemini-companion-manual-test-options)
                            (mapcar #'cadr
                                    (seq-mapcat #'cdr
                                                gemini-companion-menu-commands))))
      (goto-char (point-min))
      (should (search-forward (format "\n- %s ::" symbol) nil t)))))

(ert-deftest gemini-companion-manual-names-only-what-exists ()
  (gemini-companion-manual-test-with
    (let ((case-fold-search nil)
          unknown)
      (while (re-search-forward
              "^- (?\\(gemini-companion-[a-z-]+\\)[^:]*::\\|[~ (']\\(gemini-companion-[a-z-]+\\)[~)]"
              nil t)
        (let ((symbol (intern (or (match-string 1) (match-string 2)))))
          (unless (or (fboundp symbol) (boundp symbol) (facep symbol))
            (push symbol unknown))))
      (should-not unknown))))

(ert-deftest gemini-companion-options-have-version-and-fitting-type ()
  (dolist (option (gemini-companion-manual-test-options))
    (ert-info ((symbol-name option))
      (should (get option 'custom-package-version))
      (should (widget-apply (widget-convert (get option 'custom-type))
                            :match (eval (car (get option 'standard-value)) t)))
      (should (get option 'variable-documentation)))))

;;; gemini-companion-manual-test.el ends here
