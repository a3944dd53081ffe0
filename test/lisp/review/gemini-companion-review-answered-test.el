;;; gemini-companion-review-answered-test.el --- Keys after an answer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-arrival)
(require 'gemini-companion-review-answered)
(require 'gemini-companion-review-test-helper)

(ert-deftest gemini-companion-review-answered-takes-only-keys ()
  (gemini-companion-test-with-reviews '(("a" "old\n"))
    (gemini-companion-test-accept-inside (gemini-companion-test-show "a" "new\n"))
    (pcase-dolist
        (`(,last-nonmenu-event ,this-command ,runs)
         '(((switch-frame frame) handle-switch-frame handle-switch-frame)
           ((menu-bar) save-buffer save-buffer)
           (?o other-window other-window)
           (?k kill-buffer kill-buffer)
           (?\C-u universal-argument universal-argument)
           (?3 digit-argument digit-argument)
           (?x self-insert-command gemini-companion-review-answered--leave)
           (?\M-x execute-extended-command gemini-companion-review-answered--leave)
           (?\C-c nil gemini-companion-review-answered--leave)
           ((xterm-paste "text") xterm-paste gemini-companion-review-answered--leave)
           (?\t gemini-companion-unified-toggle-fold
                gemini-companion-review-answered--wait-on)
           (?g gemini-companion-ediff-compare-again
               gemini-companion-review-answered--wait-on)))
      (run-hooks 'pre-command-hook)
      (should (eq runs this-command)))))

(ert-deftest gemini-companion-review-answered-runs-a-key-that-is-not-for-the-review ()
  (dolist (gemini-companion-review-view '(ediff diff))
    (pcase-dolist
        (`(,keys ,buffer ,text)
         '(("z" "b" "text\n") ("C-k" "b" "text\n") ("C-y" "b" "text\n")
           ("C-u z" "b" "text\n") ("C-c C-]" "b" "text\n")
           ("M-: (insert SPC \"I SPC \") RET" "b" "I text\n")
           ("M-x upcase-word RET" "b" "TEXT\n")
           ;; Commands that refuse a read-only buffer ask first, too.
           ("M-% t RET T RET !" "b" "TexT\n")
           ("C-x i c RET" "b" "more\ntext\n")
           ("C-x 8 RET DIGIT SPC FOUR RET" "b" "4text\n")
           ("C-q q" "b" "text\n")
           ("C-x b *scratch* RET" "*scratch*" nil)
           ;; A command of the user changes no text unless it asks first.
           ("C-c 1" "b" "text\n") ("C-c 2 y RET" "b" "y: text\n")))
      (ert-info ((format "%s, %s" gemini-companion-review-view keys))
        (gemini-companion-test-with-reviews
            '(("a" "old\n") ("b" "text\n") ("c" "more\n"))
          (find-file "b")
          (let ((kill-ring '("killed"))
                (map (current-global-map)))
            (unwind-protect
                (progn
                  (use-global-map (make-composed-keymap
                                   (list (make-sparse-keymap)) map))
                  (global-set-key (kbd "C-c 1")
                                  (lambda () (interactive) (insert "1")))
                  (global-set-key (kbd "C-c 2")
                                  (lambda (word)
                                    (interactive "sWord: ")
                                    (insert word ": ")))
                  (gemini-companion-test-accept-inside
                   (gemini-companion-test-show "a" "new\n"))
                  (should (gemini-companion-edits-ending))
                  (ignore-errors (execute-kbd-macro (kbd keys)))
                  (should-not (gemini-companion-edits-ending))
                  (should (equal buffer (buffer-name (window-buffer))))
                  (when text
                    (with-current-buffer buffer
                      (should (equal text (buffer-string)))
                      (should-not buffer-read-only)))
                  (should (equal '("killed") kill-ring)))
              (use-global-map map))))))))

;;; gemini-companion-review-answered-test.el ends here
