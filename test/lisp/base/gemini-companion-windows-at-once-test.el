;;; gemini-companion-windows-at-once-test.el --- Tests of changes of windows in one step  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-windows-at-once)

(ert-deftest gemini-companion-windows-at-once-displays-only-the-result ()
  (let ((limit gc-cons-threshold))
    (should (equal '(t . value)
                   (gemini-companion-windows-at-once
                     (should (< limit gc-cons-threshold))
                     (gemini-companion-windows-at-once
                       (cons inhibit-redisplay 'value)))))
    (should-not inhibit-redisplay)
    (should (= limit gc-cons-threshold))))

(ert-deftest gemini-companion-windows-at-once-collects-no-garbage ()
  ;; Emacs collects it if it is more than a part of the limit, here 1/16000.
  (gemini-companion-windows-at-once
    (should (make-list 100000 nil))
    (should-not (garbage-collect-maybe 16000))))

(ert-deftest gemini-companion-windows-at-once-ends-after-an-error ()
  (should-error (gemini-companion-windows-at-once
                  (error "A view cannot be displayed")))
  (should-not inhibit-redisplay)
  ;; The next call is not one inside of another.
  (gemini-companion-windows-at-once
    (should inhibit-redisplay)))

(ert-deftest gemini-companion-windows-at-once-leaves-margins-as-they-are ()
  (save-window-excursion
    (with-temp-buffer
      (dolist (margins '((nil) (1) (2 . 1) (nil . 1)))
        (gemini-companion-windows-at-once
          (set-window-buffer nil (if (eq (current-buffer) (window-buffer))
                                     (get-buffer-create "*scratch*")
                                   (current-buffer)))
          (set-window-margins nil (car margins) (cdr margins)))
        (should (equal margins (window-margins)))))))

;;; gemini-companion-windows-at-once-test.el ends here
