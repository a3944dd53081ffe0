;;; gemini-companion-slices-test.el --- Tests of long work in slices  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'cl-lib)
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
  (let ((gemini-companion-slices-seconds -1)
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

(ert-deftest gemini-companion-slices-let-emacs-handle-keys-in-between ()
  (let ((items nil)
        (timers 0)
        (ended nil))
    (cl-letf (((symbol-function 'run-at-time)
               (lambda (_time _repeat function &rest arguments)
                 (setq timers (1+ timers))
                 (apply function arguments))))
      (let ((work (lambda (item)
                    (push item items)
                    (let ((end (+ (float-time) 0.006)))
                      (while (< (float-time) end))))))
        (gemini-companion-slices-later '(a b c) work (lambda () (setq ended t)))
        (should (equal '(c b a) items))
        (should ended)
        ;; The last one is for the function that is called at the end.
        (should (= 3 timers))
        (setq items nil)
        (gemini-companion-slices-later '(a b c) work #'ignore (float-time))
        (should (equal '(a) items))))))

(ert-deftest gemini-companion-slices-go-on-however-late-emacs-is ()
  (let ((now 0)
        (items nil)
        (ended nil))
    (cl-letf (((symbol-function 'float-time) (lambda (&rest _) (setq now (1+ now))))
              ((symbol-function 'run-at-time)
               (lambda (_time _repeat function &rest arguments)
                 (apply function arguments))))
      (gemini-companion-slices-later '(a b c) (lambda (item) (push item items))
                                     (lambda () (setq ended t))))
    (should (equal '(c b a) items))
    (should ended)))

(ert-deftest gemini-companion-slices-end-with-the-mode ()
  (should (memq 'slices (gemini-companion-parts)))
  (let ((gemini-companion-slices-seconds-later 0)
        (items nil))
    (gemini-companion-slices-later '(a b) (lambda (item) (push item items)) #'ignore)
    (gemini-companion-part-stop 'slices)
    (should-not (seq-some (lambda (timer)
                            (eq (timer--function timer)
                                #'gemini-companion-slices-later))
                          timer-list))
    (should (equal '(a) items))))

;;; gemini-companion-slices-test.el ends here
