;;; gemini-companion-menu-test.el --- Tests of keys, menu, mode line  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion)
(require 'gemini-companion-lighter)
(require 'gemini-companion-menu)
(require 'gemini-companion-transient)

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

(ert-deftest gemini-companion-menu-test-lighter-tells-state-and-count ()
  (cl-letf* ((ready nil) (sessions nil) (diffs nil)
             ((symbol-function 'gemini-companion-server-ready-p)
              (lambda () ready))
             ((symbol-function 'gemini-companion-sessions) (lambda () sessions))
             ((symbol-function 'gemini-companion-diffs) (lambda () diffs)))
    (should (equal " Gemini..." (gemini-companion-lighter-text)))
    (setq ready t)
    (should (equal " Gemini" (gemini-companion-lighter-text)))
    (setq sessions '((:id "a" :pid 7 :directory "/x/proj/") (:id "b" :pid 8)))
    (should (equal " Gemini:2" (gemini-companion-lighter-text)))
    (setq diffs '(1 2 3))
    (should (equal " Gemini:2?3" (gemini-companion-lighter-text)))
    (should (string-search "Connected: proj (7), process 8"
                           (gemini-companion-lighter--help)))
    (should (string-search "3 edits" (gemini-companion-lighter--help)))))

(provide 'gemini-companion-menu-test)
;;; gemini-companion-menu-test.el ends here
