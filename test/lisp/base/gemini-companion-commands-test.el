;;; gemini-companion-commands-test.el --- Tests of the table of commands  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-commands)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-commands-are-loaded-from-the-file-that-has-them ()
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
  (gemini-companion-test-needs-add-on 'pages)
  (dolist (place '(global review view overview change))
    (ert-info ((symbol-name place))
      (let ((keys (mapcar #'car (gemini-companion-commands-in place))))
        (should keys)
        (should (equal keys (seq-uniq keys)))))))

(ert-deftest gemini-companion-commands-of-a-menu-have-titles-and-labels ()
  (dolist (place '(global view overview))
    (pcase-dolist (`(,title . ,rows) (gemini-companion-commands-menu place))
      (ert-info (title)
        (should (stringp title))
        (should rows)
        (dolist (row rows)
          (should (memq place (nth 3 row))))))))

(ert-deftest gemini-companion-commands-are-bound-as-the-caller-wants ()
  (gemini-companion-test-needs-add-on 'changes)
  (let ((map (gemini-companion-commands-bind (make-sparse-keymap) 'change
                                             #'list)))
    (should (equal '(gemini-companion-next-change) (lookup-key map "n")))
    (should-not (lookup-key map "r"))))

(ert-deftest gemini-companion-commands-are-bound-with-their-labels ()
  (gemini-companion-test-needs-add-on 'changes)
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
  (gemini-companion-test-needs-add-on 'changes)
  (dolist (command '(gemini-companion-next-change gemini-companion-previous-change))
    (let ((map (symbol-value (get command 'repeat-map))))
      (should (eq 'gemini-companion-next-change (lookup-key map "n")))
      (should (eq 'gemini-companion-previous-change (lookup-key map "p")))
      ;; Those that change a file are no keys of that map.
      (should-not (lookup-key map "u"))
      (should-not (lookup-key map "k")))))

(ert-deftest gemini-companion-commands-name-only-what-some-file-knows ()
  "A name of the table without a method would be nil in each menu."
  (let ((known (seq-mapcat
                (lambda (file)
                  (with-temp-buffer
                    (insert-file-contents
                     (expand-file-name file gemini-companion-test-root))
                    (cl-loop while (re-search-forward
                                    "commands-value ((_name (eql '\\([a-z-]+\\))))"
                                    nil t)
                             collect (intern (match-string 1)))))
                (gemini-companion-test-sources))))
    (should (equal known (seq-uniq known)))
    (pcase-dolist (`(,_ ,command ,_ ,_ . ,plist)
                   (seq-mapcat #'cdr gemini-companion-commands))
      (ert-info ((symbol-name command))
        (dolist (name (list (plist-get plist :enable) (plist-get plist :on)))
          (should (or (null name) (memq name known))))))))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'test-buffer)))
  "Return the name of the current buffer."
  (buffer-name))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'test-fails)))
  "Signal a user error."
  (user-error "No review here"))

(ert-deftest gemini-companion-commands-state-is-nil-if-it-is-not-known ()
  (should (equal (buffer-name) (gemini-companion-commands-state 'test-buffer)))
  (should-not (gemini-companion-commands-state 'test-nothing))
  (should-not (gemini-companion-commands-state 'test-fails)))

;;; gemini-companion-commands-test.el ends here
