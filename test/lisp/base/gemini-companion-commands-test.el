;;; gemini-companion-commands-test.el --- Tests of the table of commands  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-commands)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-commands-are-loaded-from-the-file-that-has-them ()
  :tags '(pure)
  ;; The files of the commands are not loaded in this Emacs.
  (pcase-let ((`(,program . ,arguments)
               (gemini-companion-test-emacs
                '(require 'gemini-companion)
                '(dolist (row (gemini-companion-commands-in 'global))
                   (let ((command (cadr row)))
                     (unless (and (fboundp command)
                                  (or (not (autoloadp (symbol-function command)))
                                      (commandp (autoload-do-load
                                                 (symbol-function command)
                                                 command))))
                       (princ command)))))))
    (with-temp-buffer
      (apply #'call-process program nil '(t nil) nil arguments)
      (should (equal "" (buffer-string))))))

(ert-deftest gemini-companion-commands-have-one-key-each-in-a-place ()
  (dolist (place '(global review view list page change))
    (ert-info ((symbol-name place))
      (let ((keys (mapcar #'car (gemini-companion-commands-in place))))
        (should keys)
        (should (equal keys (seq-uniq keys)))))))

(ert-deftest gemini-companion-commands-of-a-menu-have-titles-and-labels ()
  :tags '(pure)
  (dolist (place '(global view list page))
    (pcase-dolist (`(,title . ,rows) (gemini-companion-commands-menu place))
      (ert-info (title)
        (should (stringp title))
        (should rows)
        (dolist (row rows)
          (should (memq place (nth 3 row))))))))

(ert-deftest gemini-companion-commands-are-bound-as-the-caller-wants ()
  (let ((map (gemini-companion-commands-bind (make-sparse-keymap) 'change
                                             #'list)))
    (should (equal '(gemini-companion-next-change) (lookup-key map "n")))
    (should-not (lookup-key map "r"))))

(ert-deftest gemini-companion-commands-are-bound-with-their-labels ()
  (let ((found nil))
    (map-keymap (lambda (key binding) (push (cons key binding) found))
                gemini-companion-command-map)
    (should (equal '("Next change" . gemini-companion-next-change)
                   (alist-get ?n found))))
  (should (eq 'gemini-companion-next-change
              (lookup-key gemini-companion-command-map "n")))
  (should (equal (list [?n]) (where-is-internal 'gemini-companion-next-change
                                               gemini-companion-command-map))))

(ert-deftest gemini-companion-commands-that-go-to-a-change-are-repeated ()
  (dolist (command '(gemini-companion-next-change gemini-companion-previous-change))
    (let ((map (symbol-value (get command 'repeat-map))))
      (should (eq 'gemini-companion-next-change (lookup-key map "n")))
      (should (eq 'gemini-companion-previous-change (lookup-key map "p")))
      ;; Those that change a file are no keys of that map.
      (should-not (lookup-key map "u"))
      (should-not (lookup-key map "k")))))

(defvar gemini-companion-commands-test-state)

(ert-deftest gemini-companion-commands-state-is-a-variable-or-a-function ()
  (should-not (gemini-companion-commands-state
               'gemini-companion-commands-test-nothing))
  (let ((gemini-companion-commands-test-state 1))
    (should (equal 1 (gemini-companion-commands-state
                      'gemini-companion-commands-test-state))))
  (should (equal (buffer-name)
                 (gemini-companion-commands-state 'buffer-name)))
  (cl-letf (((symbol-function 'gemini-companion-commands-test-fails)
             (lambda () (user-error "No review here"))))
    (should-not (gemini-companion-commands-state
                 'gemini-companion-commands-test-fails))))

;;; gemini-companion-commands-test.el ends here
