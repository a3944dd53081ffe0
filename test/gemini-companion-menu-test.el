;;; gemini-companion-menu-test.el --- Tests of keys, menu, mode line  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion)
(require 'gemini-companion-diff)
(require 'gemini-companion-menu)
(require 'gemini-companion-server-test-helper)

(defun gemini-companion-menu-test--commands ()
  "Return the commands of the table as lists of key, command and label."
  (apply #'append (mapcar #'cdr gemini-companion-menu-commands)))

(ert-deftest gemini-companion-menu-test-every-door-leads-to-every-command ()
  (let ((items (flatten-tree (cdr gemini-companion-menu-map))))
    (pcase-dolist (`(,key ,command ,label)
                   (gemini-companion-menu-test--commands))
      (ert-info (label)
        (should (commandp command))
        (should (eq command (lookup-key gemini-companion-command-map
                                        (kbd key))))
        (should (memq command items))
        (should (eq command
                    (plist-get (nth 2 (transient-get-suffix
                                       'gemini-companion-menu key))
                               :command)))))))

(ert-deftest gemini-companion-menu-test-keys-are-there-before-the-package ()
  (should (keymapp 'gemini-companion-command-map)))

(ert-deftest gemini-companion-menu-test-lighter-shows-state-and-count ()
  (let ((gemini-companion-review-arrival 'notify)
        (inhibit-message t))
    (gemini-companion-test-with-mode '(("a" "text"))
      (should (equal " Gemini" (gemini-companion-lighter-text)))
      (gemini-companion-test-connect)
      (gemini-companion-test-connect)
      (should (equal " Gemini:2" (gemini-companion-lighter-text)))
      (dotimes (id 3)
        (gemini-companion-diff-open id (list :id (format "%d" id))
                                    (expand-file-name "a") "new"))
      (should (equal " Gemini:2?3" (gemini-companion-lighter-text)))
      (let ((help (gemini-companion-test-help)))
        (should (string-search
                 (concat "Connected: "
                         (mapconcat #'gemini-companion-session-name
                                    (gemini-companion-sessions) ", "))
                 help))
        (should (string-search "3 edits" help)))
      (gemini-companion-mode -1)
      (gemini-companion-mode 1)
      (should (equal " Gemini..." (gemini-companion-lighter-text))))))

(provide 'gemini-companion-menu-test)
;;; gemini-companion-menu-test.el ends here
