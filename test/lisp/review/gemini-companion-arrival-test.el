;;; gemini-companion-arrival-test.el --- Tests of the way to the screen  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-overview nil t)
(require 'gemini-companion-part)
(require 'gemini-companion-review-test-helper)

(ert-deftest gemini-companion-arrival-waits-for-the-end-of-a-search-or-region ()
  (gemini-companion-test-with-reviews '(("a" "old\n"))
    (let ((diff (gemini-companion-test-open "a" "new\n")))
      (let ((isearch-mode t))
        (gemini-companion-arrival--tick)
        (should-not (gemini-companion-edit-view diff)))
      (with-current-buffer (window-buffer)
        (insert "text")
        (let ((transient-mark-mode t))
          (push-mark (point-min) t t)
          (gemini-companion-arrival--tick)
          (should-not (gemini-companion-edit-view diff))
          (deactivate-mark)))
      (gemini-companion-arrival--tick)
      (should (gemini-companion-edit-view diff))
      (should-not (gemini-companion-view-requested (gemini-companion-edit-view diff))))))

(ert-deftest gemini-companion-arrival-answers-end-where-no-letter-is-text ()
  (gemini-companion-test-needs-add-on 'pages)
  (gemini-companion-test-with-reviews '(("a" "old\n") ("b" "old\n"))
    (setq gemini-companion-review-arrival 'notify)
    (let ((layout (gemini-companion-test-layout))
          (first (gemini-companion-test-open "a" "new\n"))
          (second (gemini-companion-test-open "b" "new\n" 2)))
      (gemini-companion-arrival-view first 'requested)
      (gemini-companion-test-accept-inside first)
      ;; The next one has the windows.
      (should (gemini-companion-edit-view second))
      (should-not (gemini-companion-view-drawn (gemini-companion-edit-view second)))
      (gemini-companion-test-accept-inside second)
      (should-not (gemini-companion-edits-ending))
      ;; The turn goes on.
      (should (equal "*gemini*" (buffer-name (window-buffer))))
      (setf (gemini-companion-turn-ended (gemini-companion-edit-turn second))
            (float-time))
      ;; The user may be about to type the next answer.
      (gemini-companion-overview--end-awaiting)
      (should (equal "*gemini*" (buffer-name (window-buffer))))
      (cl-letf (((symbol-function 'gemini-companion-idle-user-p) #'always)
                ((symbol-function 'current-idle-time) (lambda () 3)))
        (gemini-companion-overview--end-awaiting))
      (should (equal layout (gemini-companion-test-layout)))
      (gemini-companion-part-stop 'overview))))

(ert-deftest gemini-companion-arrival-shows-a-review-although-a-hook-fails ()
  (dolist (gemini-companion-review-view '(ediff))
    (pcase-dolist
        (`(,shown . ,hooks)
         '((t after-change-major-mode-hook change-major-mode-after-body-hook
              prog-mode-hook emacs-lisp-mode-hook special-mode-hook
              font-lock-mode-hook window-configuration-change-hook
              kill-buffer-query-functions
              gemini-companion-review-mode-hook gemini-companion-request-functions
              gemini-companion-edit-opened-functions
              gemini-companion-edit-closed-functions)
           ;; With these there may be no view.
           (nil first-change-hook before-change-functions
                after-change-functions kill-buffer-hook
                change-major-mode-hook)))
      (dolist (hook hooks)
        (ert-info ((format "%s, %s" gemini-companion-review-view hook))
          (gemini-companion-test-with-reviews '(("a.el" "old\n"))
            (let ((previous (default-value hook))
                  (buffers (gemini-companion-test-buffers))
                  diff state)
              (unwind-protect
                  (gemini-companion-test-demoted
                    (set-default hook (cons (lambda (&rest _) (error "Boom"))
                                            previous))
                    (setq diff (gemini-companion-test-open "a.el" "new\n"))
                    (gemini-companion-test-wait
                     (lambda () (or (gemini-companion-edit-problem diff)
                                    (eq 'shown (gemini-companion-edit-status diff)))))
                    (setq state (gemini-companion-edit-status diff))
                    (gemini-companion-edit-accept diff))
                (set-default hook previous))
              (when shown
                (should (eq 'shown state)))
              (should (equal '((1 accepted "new\n")) outcomes))
              (should-not (gemini-companion-test-buffers buffers)))))))))

;;; gemini-companion-arrival-test.el ends here
