;;; gemini-companion-idle-test.el --- Tests of idleness and announcements  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-idle)
(require 'gemini-companion-notify nil t)
(require 'gemini-companion-part)
(require 'gemini-companion-review-test-helper)

(ert-deftest gemini-companion-arrival-announces-in-one-line ()
  (let ((key "; M-x gemini-companion-review shows it"))
    (gemini-companion-test-with-reviews nil
      (setq gemini-companion-review-arrival 'notify)
      (pcase-dolist
          (`(,file ,reason ,width ,expected)
           `(("src/hello.py" nil 78 "Edit of src/hello.py by Gemini CLI")
             ("src/hello.py" nil 72 "Edit of src/hello.py")
             ("source/application/hello.py" nil 67 "Edit of hello.py")
             ("a" nil 48 "Edit of a")
             ("/etc/new" nil 180
              "Edit of a file outside your projects: /etc/new by Gemini CLI")
             ("/etc/new" "why" 86 "Edit of /etc/new (not auto-accepted: why)")))
        (ert-info ((format "%s in %d" file width))
          (let* ((session (gemini-companion-test-session "one"))
                 (diff (gemini-companion-test-open
                        file "new\n" 1 (gemini-companion-test-session-like
                                        session :client "gemini")))
                 (expected (concat expected key)))
            (when reason
              (gemini-companion-proposal-offer diff reason))
            (cl-letf (((symbol-function 'frame-width) (lambda (&rest _) width)))
              (should (member expected
                              (gemini-companion-test-messages
                                (gemini-companion-test-wait
                                 (lambda () (member expected messages))))))
              (dolist (text (cons expected
                                  (gemini-companion-test-messages
                                    (gemini-companion-edit-reject diff))))
                (should (< (string-width text) width))))))))))

(ert-deftest gemini-companion-arrival-names-a-key-with-a-percent-sign ()
  (gemini-companion-test-needs-add-on 'pages)
  (let ((map (current-global-map)))
    (use-global-map (make-sparse-keymap))
    (set-keymap-parent (current-global-map) map)
    (global-set-key (kbd "C-c %") 'gemini-companion-command-map)
    (unwind-protect
        (gemini-companion-test-with-reviews '(("a" "old\n"))
          (setq gemini-companion-review-arrival 'notify)
          (gemini-companion-test-open "a" "new\n")
          (let ((shown (gemini-companion-test-messages
                         (gemini-companion-test-run-timers "arrival"))))
            (should (string-match-p "; C-c % r shows it" (car shown)))
            (should (string-search "1 to answer: C-c % r"
                                   (funcall (cdr (gemini-companion-part-lighter 'notify)))))
            ;; The mode line reads two of them as one.
            (should (string-search "C-c %% r to answer"
                                   (gemini-companion-label-header
                                    '("C-c % r to answer"))))))
      (use-global-map map))))

(ert-deftest gemini-companion-idle-user-is-busy-after-a-key-and-in-a-drag ()
  (pcase-dolist (`(,idle ,map ,busy)
                 '((0.1 nil t) (nil nil t) (2 (keymap) t) (2 nil nil) (-9 nil nil)))
    (cl-letf (((symbol-function 'current-idle-time)
               (lambda () (and idle (seconds-to-time idle))))
              (track-mouse t)
              (overriding-terminal-local-map map))
      (setq num-nonmacro-input-events (1+ num-nonmacro-input-events))
      (should (eq busy (not (gemini-companion-idle-user-p)))))))

;;; gemini-companion-idle-test.el ends here
