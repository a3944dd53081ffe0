;;; gemini-companion-slices-test.el --- Tests of long work that can be stopped  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'ert-x)
(require 'gemini-companion-slices)

(ert-deftest gemini-companion-slices-stop-between-two-items ()
  (let ((done nil))
    (should (equal '(c d)
                   (gemini-companion-slices-do
                    "Undoing" '(a b c d)
                    (lambda (item)
                      ;; As C-g does while this runs.
                      (when (eq item 'b)
                        (setq quit-flag t))
                      (push item done)))))
    (should (equal '(b a) done))
    (should-not quit-flag)
    (should-not (gemini-companion-slices-do "Undoing" '(a b) #'ignore))))

(ert-deftest gemini-companion-slices-display-the-progress ()
  (let ((gemini-companion-slices--seconds -1)
        (inhibit-message t))
    (should (equal "Undoing: 1 of 3 files; C-g stops\nUndoing: 2 of 3 files; C-g stops\n"
                   (ert-with-message-capture messages
                     (gemini-companion-slices-do "Undoing" '(a b c) #'ignore)
                     messages)))))

(ert-deftest gemini-companion-slices-let-the-user-quit-a-single-item ()
  (should-error (gemini-companion-slices-do "Undoing" '(a)
                                            (lambda (_)
                                              (should-not inhibit-quit)
                                              (user-error "Not undone")))
                :type 'user-error))

;;; gemini-companion-slices-test.el ends here
