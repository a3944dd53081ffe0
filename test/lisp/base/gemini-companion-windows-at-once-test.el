;;; gemini-companion-windows-at-once-test.el --- Tests of changes of windows in one step  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-windows-at-once)

(ert-deftest gemini-companion-windows-at-once-displays-only-the-result ()
  (let ((hook (default-value 'window-scroll-functions))
        (limit gc-cons-threshold))
    (should (equal '(t . value)
                   (gemini-companion-windows-at-once
                     (should (< limit gc-cons-threshold))
                     (should-not (equal hook (default-value
                                              'window-scroll-functions)))
                     (gemini-companion-windows-at-once
                       (cons inhibit-redisplay 'value)))))
    (should-not inhibit-redisplay)
    (should (= limit gc-cons-threshold))
    (should (equal hook (default-value 'window-scroll-functions)))))

(ert-deftest gemini-companion-windows-at-once-ends-after-an-error ()
  (let ((hook (default-value 'window-scroll-functions)))
    (should-error (gemini-companion-windows-at-once
                    (error "A view cannot be displayed")))
    (should-not inhibit-redisplay)
    (should (equal hook (default-value 'window-scroll-functions)))
    ;; The next call is not one inside of another.
    (gemini-companion-windows-at-once
      (should inhibit-redisplay))))

(ert-deftest gemini-companion-windows-at-once-leaves-margins-as-they-are ()
  (save-window-excursion
    (set-window-margins nil 2 1)
    (let ((window (minibuffer-window)))
      (gemini-companion-windows-at-once
        (with-temp-buffer
          (set-window-buffer nil (current-buffer))))
      (should (equal '(nil) (window-margins window))))))

;;; gemini-companion-windows-at-once-test.el ends here
