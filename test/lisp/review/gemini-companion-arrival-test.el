;;; gemini-companion-arrival-test.el --- Tests of the way to the screen  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-part)
(require 'gemini-companion-review-test-helper)

(ert-deftest gemini-companion-arrival-leaves-a-search-selected ()
  (gemini-companion-test-with-reviews '(("a" "old\n"))
    (let ((gemini-companion-review-arrival 'now)
          (gemini-companion-review-focus t)
          (buffer (window-buffer)))
      (dolist (isearch-mode '(t nil))
        (let ((diff (gemini-companion-test-arrive "a" "new\n")))
          (gemini-companion-test-eventually (gemini-companion-edit-view diff))
          (should (eq isearch-mode (eq buffer (window-buffer))))
          (gemini-companion-edit-reject diff))))))

(ert-deftest gemini-companion-arrival-selects-no-review-of-a-later-prompt ()
  (dolist (seconds '(0 3600))
    (gemini-companion-test-with-reviews '(("a" "old\n") ("b" "old\n"))
      (let ((first (gemini-companion-test-show "a" "new\n")))
        (gemini-companion-test-accept-inside first)
        (let* ((time (+ seconds (float-time)))
               (second (cl-letf (((symbol-function 'float-time)
                                  (lambda (&rest _) time)))
                         (prog1 (gemini-companion-test-open
                                 "b" "new\n" 2
                                 (gemini-companion-edit-session first))
                           (gemini-companion-test-wait
                            (lambda () (gemini-companion-edit-shown)))))))
          (should (eq 'shown (gemini-companion-edit-status second)))
          (should (eq (= 3600 seconds)
                      (null (buffer-local-value 'gemini-companion-edit-here
                                                (window-buffer))))))))))

(ert-deftest gemini-companion-arrival-awaits-the-next-edit-until-the-turn-ends ()
  (gemini-companion-test-with-reviews '(("a" "old\n"))
    (let ((gemini-companion-arrival-pause 0)
          (session (gemini-companion-test-session "one"))
          diff)
      (gemini-companion-part-start 'state)
      (gemini-companion-server-receive 'sessions-update (list session))
      (gemini-companion-state-report session 'prompt "Do it")
      (setq diff (gemini-companion-test-show "a" "new\n"))
      (gemini-companion-test-accept-inside diff)
      (should (gemini-companion-edit-view diff))
      (cl-letf (((symbol-function 'old-selected-window) #'selected-window))
        (pcase-dolist (`(,width . ,end) '((60 . "edit") (100 . "closes this")))
          (should (string-suffix-p
                   end (with-current-buffer (gemini-companion-review-main-buffer
                                             diff)
                         (gemini-companion-test-header-text width))))))
      ;; The CLI exits.
      (gemini-companion-server-receive 'sessions-update nil)
      (gemini-companion-test-eventually
        (null (gemini-companion-edit-view diff)))
      (gemini-companion-part-stop 'session)
      (gemini-companion-part-stop 'state))))

(ert-deftest gemini-companion-arrival-awaits-an-edit-later-than-its-question ()
  (gemini-companion-test-with-reviews '(("a" "old\n"))
    (let* ((diff (gemini-companion-test-show "a" "new\n"))
           (session (gemini-companion-edit-session diff))
           since)
      (gemini-companion-server-receive 'sessions-update (list session))
      (setf (gemini-companion-session-turn session) (gemini-companion-edit-turn diff))
      (gemini-companion-test-accept-inside diff)
      ;; It asks now, however slow the machine is.
      (setq since (+ 1000 (float-time)))
      (cl-letf (((symbol-function 'gemini-companion-session-state)
                 (lambda (&rest _) 'waiting))
                ((symbol-function 'gemini-companion-session-state-since)
                 (lambda (_) since)))
        (gemini-companion-test-run-timers)
        (should (gemini-companion-edit-view diff))
        ;; It is a question in the terminal.
        (setq since (float-time))
        (gemini-companion-test-eventually
          (null (gemini-companion-edit-view diff))))
      (gemini-companion-part-stop 'session))))

(ert-deftest gemini-companion-arrival-closes-an-answered-review-after-a-click-or-the-list ()
  (gemini-companion-test-with-reviews '(("a" "old\n"))
    (let ((diff (gemini-companion-test-show "a" "new\n")))
      (gemini-companion-test-accept-inside diff)
      ;; A click counts as a key.
      (cl-letf ((num-input-keys (1+ num-input-keys))
                ((symbol-function 'current-idle-time)
                 (lambda () (seconds-to-time 2))))
        (let ((last-nonmenu-event `(down-mouse-1 (,(selected-window) mode-line)))
              (this-command #'mouse-drag-mode-line)
              (overriding-terminal-local-map '(keymap))
              (track-mouse t))
          (run-hooks 'pre-command-hook)
          (should (eq #'mouse-drag-mode-line this-command))
          ;; A drag goes on while timers run.
          (gemini-companion-test-run-timers)
          (should (equal (list diff) (gemini-companion-edits-ending))))
        (gemini-companion-test-eventually
          (null (gemini-companion-edits-ending))))
      (gemini-companion-test-accept-inside (gemini-companion-test-show "a" "2\n"))
      (execute-kbd-macro "l")
      (gemini-companion-test-eventually (null (gemini-companion-edits-ending)))
      (should (equal "*gemini*" (buffer-name (window-buffer))))
      (kill-buffer "*gemini*"))))

(ert-deftest gemini-companion-arrival-shows-a-review-although-a-hook-fails ()
  (dolist (gemini-companion-review-view '(ediff diff))
    (pcase-dolist
        (`(,shown . ,hooks)
         '((t after-change-major-mode-hook change-major-mode-after-body-hook
              prog-mode-hook emacs-lisp-mode-hook special-mode-hook
              font-lock-mode-hook window-configuration-change-hook
              kill-buffer-query-functions gemini-companion-unified-mode-hook
              gemini-companion-review-mode-hook gemini-companion-edit-functions
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
