;;; gemini-companion-send-test.el --- Tests of texts for prompts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; References, lines and diagnostics as text; a CLI that is nowhere; and what
;; happens to a reason.  That it reaches the model is tested end to end, in
;; e2e/test_reason.py.

;;; Code:

(require 'flymake)
(require 'gemini-companion-arrival)
(require 'gemini-companion-outcome)
(require 'gemini-companion-send)
(require 'gemini-companion-test-helper)
(require 'term)

(defmacro gemini-companion-send-test-with (sessions &rest body)
  "Run BODY in a directory with the file p/a while SESSIONS are connected."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory '()
     (make-directory "p")
     (write-region "one\ntwo\nthree\n" nil "p/a" nil 'silent)
     (gemini-companion-session-update ,sessions)
     (unwind-protect
         (with-current-buffer (find-file-noselect "p/a")
           ,@body)
       (gemini-companion-session-forget)
       (gemini-companion-privacy-forget))))

(ert-deftest gemini-companion-send-writes-names-as-the-cli-reads-them ()
  (pcase-dolist (`(,name . ,written)
                 '(("src/a.py" . "src/a.py")
                   ("a b" . "a\\ b")
                   ("größe(1).txt" . "größe\\(1\\).txt")
                   ("a,b;c" . "a\\,b\\;c")
                   ("back\\slash" . "back\\\\slash")
                   ("end." . "end\\.")))
    (gemini-companion-test-with-directory '()
      (let ((system-type 'gnu/linux)
            (file (expand-file-name name)))
        (make-directory (file-name-directory file) t)
        (write-region "" nil file nil 'silent)
        (gemini-companion-session-update `((:id "1" :directory ,directory)))
        (unwind-protect
            (with-current-buffer (find-file-noselect file)
              (gemini-companion-send-file)
              (should (equal (concat "@" written " ") (current-kill 0))))
          (gemini-companion-session-forget)
          (gemini-companion-privacy-forget))))))

(ert-deftest gemini-companion-send-names-whole-lines ()
  (gemini-companion-send-test-with
      `((:id "1" :directory ,(expand-file-name "p")))
    (pcase-dolist (`(,start ,end . ,lines)
                   '((1 4 . "line 1") (1 5 . "line 1") (1 6 . "lines 1-2")
                     (5 5 . "line 2") (1 15 . "lines 1-3")))
      (gemini-companion-send-region start end)
      (should (equal (format "@a (%s) " lines) (current-kill 0))))))

(ert-deftest gemini-companion-send-copies-for-a-cli-elsewhere ()
  (gemini-companion-send-test-with
      `((:id "1" :directory ,(expand-file-name "p")))
    (gemini-companion-send-file)
    (should (equal "@a " (current-kill 0)))
    (gemini-companion-send-region 1 9)
    (should (equal "@a (lines 1-2) " (current-kill 0)))))

(ert-deftest gemini-companion-send-names-the-line-of-point-without-a-region ()
  (gemini-companion-send-test-with
      `((:id "1" :directory ,(expand-file-name "p")))
    (let ((transient-mark-mode t))
      (goto-char (point-min))
      (forward-line)
      (call-interactively #'gemini-companion-send-region)
      (should (equal "@a (line 2) " (current-kill 0)))
      (push-mark (point-min) t nil)
      (call-interactively #'gemini-companion-send-region)
      (should (equal "@a (line 2) " (current-kill 0)))
      (activate-mark)
      (forward-line)
      (call-interactively #'gemini-companion-send-region)
      (should (equal "@a (lines 1-2) " (current-kill 0))))))

(ert-deftest gemini-companion-send-uses-the-cli-of-the-directory ()
  (gemini-companion-send-test-with
      `((:id "1" :directory "/nowhere")
        (:id "2" :directory ,(expand-file-name "p")))
    (gemini-companion-send-file)
    (should (equal "@a " (current-kill 0)))))

(ert-deftest gemini-companion-send-offers-a-cli-where-several-would-do ()
  (gemini-companion-send-test-with
      `((:id "1" :directory ,(expand-file-name "p"))
        (:id "2" :directory ,(expand-file-name "p")))
    (let (message)
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (prompt _names &rest more)
                   (should (string-search "session 1" prompt))
                   (nth 4 more)))
                ((symbol-function 'message)
                 (lambda (&rest args) (setq message (apply #'format args)))))
        (gemini-companion-send-file))
      (should (string-search "session 1" message)))))

(ert-deftest gemini-companion-send-gives-the-whole-name-of-a-file-outside ()
  (gemini-companion-send-test-with '((:id "1" :directory "/nowhere"))
    (gemini-companion-send-file)
    (should (equal (concat "@" (buffer-file-name) " ") (current-kill 0)))))

(ert-deftest gemini-companion-send-reports-what-is-missing ()
  (gemini-companion-send-test-with nil
    (should-error (gemini-companion-send-file) :type 'user-error)
    (should-error (gemini-companion-send-diagnostic-at-point)
                  :type 'user-error)
    (with-temp-buffer
      (should-error (gemini-companion-send-file) :type 'user-error))))

(ert-deftest gemini-companion-send-includes-the-flymake-diagnostics-of-the-line ()
  (gemini-companion-send-test-with
      `((:id "1" :directory ,(expand-file-name "p")))
    (add-hook 'flymake-diagnostic-functions
              (lambda (report &rest _)
                (funcall report (list (flymake-make-diagnostic
                                       (current-buffer) 5 6 :error "Bad"))))
              nil t)
    (flymake-mode)
    (flymake-start)
    (gemini-companion-test-eventually (flymake-diagnostics))
    (goto-char 7)
    (gemini-companion-send-diagnostic-at-point)
    (should (equal "@a (line 2): Bad " (current-kill 0)))))

(defmacro gemini-companion-send-test-with-reason (answer session &rest body)
  "Run BODY with a diff `diff' of SESSION; questions get ANSWER.
ANSWER is a function without arguments.  `outcomes' has the sent
outcomes."
  (declare (indent 2) (debug t))
  `(gemini-companion-test-with-directory '(("a" "old\n"))
     (let* ((gemini-companion-review-arrival 'notify)
            (inhibit-message t)
            (kill-ring '("before"))
            outcomes)
       (cl-letf (((symbol-function 'read-string)
                  (lambda (&rest _) (funcall ,answer))))
         (unwind-protect
             (let (diff)
               (gemini-companion-diff-start
                (lambda (diff)
                  (push (gemini-companion-diff-state diff) outcomes)))
               (gemini-companion-diff-open
                1 ,session (expand-file-name "a" directory) "new\n")
               (setq diff (car (gemini-companion-diffs)))
               ,@body)
           (gemini-companion-send-stop)
           (gemini-companion-diff-stop 'dismissed))))))

(ert-deftest gemini-companion-send-reason-of-a-cli-outside-goes-to-the-kill-ring ()
  (gemini-companion-send-test-with-reason (lambda () "Too long") '(:id "one")
    (gemini-companion-diff-reject-with-reason diff)
    (should (equal '(rejected) outcomes))
    (should (equal "Too long" (car kill-ring)))))

(ert-deftest gemini-companion-send-reason-empty-decides-nothing ()
  (gemini-companion-send-test-with-reason (lambda () " ") '(:id "one")
    (should-error (gemini-companion-diff-reject-with-reason diff)
                  :type 'user-error)
    (should (equal (list diff) (gemini-companion-diffs)))
    (should-not outcomes)
    (should (equal '("before") kill-ring))))

(ert-deftest gemini-companion-send-reason-quit-decides-nothing ()
  (gemini-companion-send-test-with-reason (lambda () (signal 'quit nil)) '(:id "one")
    (should (eq 'quit (condition-case nil
                          (gemini-companion-diff-reject-with-reason diff)
                        (quit 'quit))))
    (should (equal (list diff) (gemini-companion-diffs)))
    (should-not outcomes)))

(ert-deftest gemini-companion-send-reason-for-a-diff-that-ended-is-kept ()
  (gemini-companion-send-test-with-reason
      (lambda ()
        (gemini-companion-diff-reject (car (gemini-companion-diffs)))
        "Too long")
      '(:id "one")
    (gemini-companion-diff-reject-with-reason diff)
    (should (equal '(rejected) outcomes))
    (should (equal "Too long" (car kill-ring)))))

(defmacro gemini-companion-send-test-with-reason-terminal (&rest body)
  "Run BODY with a diff `diff' of a CLI in the buffer `terminal'.
The reason for its rejection, by default, is Too long.  The CLI is `cat'."
  (declare (indent 0) (debug t))
  `(let ((terminal (generate-new-buffer "*term*")))
     (unwind-protect
         (progn
           (with-current-buffer terminal
             (term-mode)
             (term-exec terminal "cat" "cat" nil nil)
             (term-char-mode)
             (set-process-query-on-exit-flag (get-buffer-process terminal) nil))
           (gemini-companion-send-test-with-reason
               (lambda () "Too long")
               (list :id "one"
                     :pid (process-id (get-buffer-process terminal)))
             ,@body))
       (when (buffer-live-p terminal)
         (kill-buffer terminal)))))

(ert-deftest gemini-companion-send-selects-the-terminal-if-that-takes-input ()
  (gemini-companion-send-test-with-reason-terminal
    (gemini-companion-session-update
     (list (gemini-companion-diff-session diff)))
    (unwind-protect
        (let ((file (find-file-noselect "a")))
          (delete-other-windows)
          (pcase-dolist
              (`(,mode ,stay ,text ,selected)
               `((term-char-mode nil "In the prompt of" ,terminal)
                 (term-char-mode (4) "In the prompt of" ,file)
                 (term-line-mode nil "takes no input now; copied" ,file)))
            (with-current-buffer terminal
              (funcall mode))
            (switch-to-buffer file)
            (let (message)
              (cl-letf (((symbol-function 'message)
                         (lambda (&rest args)
                           (setq message (apply #'format args)))))
                (gemini-companion-send-file stay))
              (should (string-search text message))
              (should (eq selected (window-buffer))))))
      (gemini-companion-session-forget)
      (gemini-companion-privacy-forget))))

(ert-deftest gemini-companion-send-reason-waits-until-the-terminal-stands-still ()
  (gemini-companion-send-test-with-reason-terminal
    (gemini-companion-send-start)
    (gemini-companion-diff-reject-with-reason diff)
    (dotimes (_ 20)
      (gemini-companion-test-run-timers))
    (should (equal "" (gemini-companion-test-text terminal)))
    (should-not (gemini-companion-send-idle-p))
    (gemini-companion-outcome-written 1)
    (process-send-string terminal "Request cancelled\n")
    (gemini-companion-test-eventually
      (string-match-p "Request cancelled[^z-a]*Too long[^z-a]*Too long"
                      (gemini-companion-test-text terminal)))
    (should (gemini-companion-send-idle-p))
    (should (equal "before" (car kill-ring)))))

(ert-deftest gemini-companion-send-reason-that-cannot-be-typed-is-kept ()
  (gemini-companion-send-test-with-reason-terminal
    (gemini-companion-diff-reject-with-reason diff)
    (kill-buffer terminal)
    (gemini-companion-test-eventually (equal "Too long" (car kill-ring)))
    (should (gemini-companion-send-idle-p))))

(ert-deftest gemini-companion-send-reason-that-is-too-long-is-kept ()
  (gemini-companion-send-test-with-reason-terminal
    (let ((reason (make-string 65537 ?x)))
      (gemini-companion-send-start)
      (gemini-companion-diff-reject-with-reason diff reason)
      (gemini-companion-outcome-written 1)
      (gemini-companion-test-eventually (gemini-companion-send-idle-p))
      (should (equal reason (car kill-ring))))))

(ert-deftest gemini-companion-send-reason-outlives-the-mode ()
  (gemini-companion-send-test-with-reason-terminal
    (gemini-companion-diff-reject-with-reason diff)
    (should (equal "before" (car kill-ring)))
    (gemini-companion-send-stop)
    (should (equal "Too long" (car kill-ring)))
    (should (gemini-companion-send-idle-p))))

;;; gemini-companion-send-test.el ends here
