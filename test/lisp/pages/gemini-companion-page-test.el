;;; gemini-companion-page-test.el --- Tests of pages  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-page)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-text-test-helper)

(ert-deftest gemini-companion-page-keeps-point-and-mark-at-their-lines ()
  (with-temp-buffer
    (pcase-dolist (`(,text ,place)
                   `(("a\nsame\nb\nsame\nrest\nrest\n" "b\nsa|me\n")
                     ("new\na\nmore\nsame\nb\nsame\nrest\nrest\n" "b\nsa|me\n")
                     ("a\nsame\nb\nsafe\nmore\n" "b\nsa|fe\n")
                     (,(propertize "a\nsame\nb\n" 'face 'bold) "b\n|")
                     ("a\n" "a\n|")))
      (gemini-companion-page-replace text)
      (when (= 1 (point))
        (search-forward "b\nsa")
        (set-mark (point)))
      (should (equal-including-properties text (buffer-string)))
      (save-excursion
        (insert "|")
        (should (string-search place (buffer-string)))
        (delete-char -1)
        (should (= (point) (mark t)))))))

;; The local value of the hook runs with any buffer current before Emacs 31, and
;; there in its buffer, also when a window shows another one.
(ert-deftest gemini-companion-page-is-written-once-when-windows-have-changed ()
  (let ((written 0)
        (page (generate-new-buffer "page")))
    (unwind-protect
        (save-window-excursion
          (with-current-buffer page
            (gemini-companion-page-set-up (lambda () (setq written (1+ written)))
                                          '(gemini-companion-page-test-hook)))
          (set-window-buffer nil page)
          (dolist (current (list page (get-buffer "*scratch*")))
            (setq written 0)
            (let ((num-input-keys (1+ num-input-keys))
                  (functions (buffer-local-value 'window-buffer-change-functions
                                                 page)))
              (with-current-buffer current
                (dotimes (_ 2)
                  (mapc (lambda (function)
                          (unless (eq t function)
                            (funcall function (selected-window))))
                        functions))))
            (gemini-companion-test-eventually (< 0 written))
            (gemini-companion-test-run-timers)
            (should (= 1 written)))
          (set-window-buffer nil "*scratch*")
          (setq written 0)
          (with-current-buffer page
            (run-hook-with-args 'window-buffer-change-functions (selected-window)))
          (gemini-companion-test-run-timers)
          (should (= 0 written)))
      (kill-buffer page))))

;; It was drawn again 0.2 seconds later.
(ert-deftest gemini-companion-page-that-its-command-has-written-is-not-written-again ()
  (let ((written 0)
        (page (generate-new-buffer "page")))
    (unwind-protect
        (save-window-excursion
          (set-window-buffer nil page)
          (with-current-buffer page
            (gemini-companion-page-set-up (lambda () (setq written (1+ written)))
                                          '(gemini-companion-page-test-hook))
            (gemini-companion-page-refresh)
            (cl-flet ((redisplay ()
                        (run-hook-with-args 'window-buffer-change-functions
                                            (selected-window))
                        (run-hook-with-args 'window-size-change-functions
                                            (selected-window))
                        (gemini-companion-test-run-timers)
                        written))
              (should (= 1 (redisplay)))
              ;; Another command, or another window.
              (let ((num-input-keys (1+ num-input-keys)))
                (should (= 2 (redisplay))))
              (should (= 3 (redisplay)))
              (split-window-right)
              (should (= 4 (redisplay)))
              (delete-other-windows)
              (should (= 5 (redisplay)))
              ;; Something changes while the page is hidden.
              (set-window-buffer nil "*scratch*")
              (run-hooks 'gemini-companion-page-test-hook)
              (gemini-companion-test-run-timers)
              (set-window-buffer nil page)
              (should (= 6 (redisplay))))))
      (kill-buffer page))))

(ert-deftest gemini-companion-page-is-written-at-once-for-what-is-urgent ()
  (let ((written 0)
        (page (generate-new-buffer "page")))
    (unwind-protect
        (save-window-excursion
          (with-current-buffer page
            (gemini-companion-page-set-up (lambda () (setq written (1+ written)))
                                          '(gemini-companion-page-test-hook)
                                          '(gemini-companion-page-test-urgent)))
          (set-window-buffer nil page)
          (let ((time 100.0)
                delays)
            (cl-letf* (((symbol-function 'float-time) (lambda (&rest _) time))
                       (run-at-time (symbol-function 'run-at-time))
                       ((symbol-function 'run-at-time)
                        (lambda (delay &rest arguments)
                          (push delay delays)
                          (apply run-at-time delay arguments))))
              (run-hooks 'gemini-companion-page-test-hook)
              (run-hooks 'gemini-companion-page-test-urgent)
              ;; This does not put it off.
              (run-hooks 'gemini-companion-page-test-hook)
              (should (equal '(0 0.2) delays))
              (gemini-companion-test-run-timers)
              (should (= 1 written))
              ;; Further ones wait for each other.
              (dotimes (_ 2)
                (run-hooks 'gemini-companion-page-test-urgent))
              (should (equal '(0.2 0.2) (seq-take delays 2)))
              (gemini-companion-test-run-timers)
              (should (= 2 written))
              (setq time 101.0)
              (run-hooks 'gemini-companion-page-test-urgent)
              (should (equal 0 (car delays))))))
      (kill-buffer page))
    (should-not (bound-and-true-p gemini-companion-page-test-urgent))))

;;; gemini-companion-page-test.el ends here
