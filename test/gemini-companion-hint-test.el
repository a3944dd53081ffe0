;;; gemini-companion-hint-test.el --- Tests of the hint  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A shell under the name of node plays the CLI, in a real pseudo-terminal, and
;; the mode is on.  That time passes is what timers and clocks are made to say.

;;; Code:

(require 'gemini-companion-server-test-helper)

(defmacro gemini-companion-hint-test-with (script &rest body)
  "Run BODY with `terminal', a buffer with a shell that has SCRIPT.
In it gemini is what looks like Gemini CLI, and is a minute old.
What is said gets into `said', the last first."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-mode
       `(("gemini" "echo up; read line"))
     (make-symbolic-link (executable-find "sh") "node")
     (let* ((age 60)
            (passed 3600)
            (clock (symbol-function 'float-time))
            (attributes (symbol-function 'process-attributes))
            (terminal (generate-new-buffer "*terminal*"))
            (process
             (make-process
              :name "terminal" :buffer terminal :connection-type 'pty
              :noquery t
              :command (list "bash" "--norc" "-c"
                             (format "set -m; gemini() { %snode %sgemini \
\"$@\"; }; %s" folder folder ,script))))
            said)
       (ignore age passed)
       (cl-letf (((symbol-function 'message)
                  (lambda (&rest args) (push (apply #'format args) said)))
                 ((symbol-function 'process-attributes)
                  (lambda (pid)
                    (cons (cons 'etime age) (funcall attributes pid))))
                 ((symbol-function 'float-time)
                  (lambda (&optional time)
                    (if time
                        (funcall clock time)
                      (+ passed (funcall clock))))))
         (unwind-protect
             (save-window-excursion
               (gemini-companion-test-eventually
                 (string-match-p "up" (gemini-companion-test-text terminal)))
               (gemini-companion-hint-test-go-to terminal)
               ,@body)
           (delete-process process)
           (kill-buffer terminal))))))

(defun gemini-companion-hint-test-go-to (buffer)
  "Go to BUFFER, and have Emacs say so as at the end of a command."
  (switch-to-buffer buffer)
  (run-hook-with-args 'window-selection-change-functions (selected-frame)))

(defun gemini-companion-hint-test-wait ()
  "Let all pass that is waited for, again and again."
  (dotimes (_ 5)
    (gemini-companion-test-run-timers)))

(ert-deftest gemini-companion-hint-speaks-once-of-a-cli-that-is-apart ()
  (gemini-companion-hint-test-with "gemini"
    (gemini-companion-hint-test-wait)
    (should (equal 1 (length said)))
    (should (string-match-p "\\*terminal\\* is not connected.* /ide enable"
                            (car said)))
    (should-not (gemini-companion-test-timers))))

(ert-deftest gemini-companion-hint-tells-of-one-that-is-too-old ()
  (gemini-companion-hint-test-with "gemini"
    (setq passed 0)
    (gemini-companion-hint-test-wait)
    (should (string-match-p "was started before this mode" (car said)))))

(ert-deftest gemini-companion-hint-tells-of-one-in-a-foreign-folder ()
  (gemini-companion-hint-test-with "cd / && gemini"
    (gemini-companion-hint-test-wait)
    (should (string-match-p "runs outside the open projects" (car said)))))

(ert-deftest gemini-companion-hint-is-silent-of-others ()
  (dolist (script '("echo up; read line"
                    "gemini -p question"
                    "gemini --acp"))
    (ert-info (script)
      (gemini-companion-hint-test-with script
        (gemini-companion-hint-test-wait)
        (should-not said)))))

(ert-deftest gemini-companion-hint-is-silent-of-a-connected-one ()
  (gemini-companion-hint-test-with "gemini"
    (gemini-companion-session-update
     (list (list :id "one" :pid (process-running-child-p process))))
    (gemini-companion-hint-test-wait)
    (should-not said)))

(ert-deftest gemini-companion-hint-gives-a-young-one-time ()
  (gemini-companion-hint-test-with "gemini"
    (setq age 1)
    (gemini-companion-hint-test-wait)
    (should-not said)
    (should (gemini-companion-test-timers))))

(ert-deftest gemini-companion-hint-looks-after-going-to-a-terminal ()
  (gemini-companion-hint-test-with "gemini"
    (gemini-companion-hint-test-wait)
    (should said)
    (should-not (gemini-companion-test-timers))
    (gemini-companion-hint-test-go-to "*scratch*")
    (gemini-companion-hint-test-wait)
    (should-not (gemini-companion-test-timers))
    (gemini-companion-hint-test-go-to terminal)
    (should (gemini-companion-test-timers))))

(ert-deftest gemini-companion-hint-knows-the-ways-to-start-it ()
  (gemini-companion-hint-test-with "echo up; read line"
    (let ((pid 1000000)
          command)
      (cl-letf (((symbol-function 'process-running-child-p)
                 (lambda (&rest _) pid))
                ((symbol-function 'process-attributes)
                 (lambda (_)
                   (list (cons 'etime age) (cons 'args command)))))
        (pcase-dolist (`(,one . ,known)
                       '(("node /usr/bin/gemini" . t)
                         ("gemini -m gemini-2.5-flash" . t)
                         ("node --max-old-space-size=9 /a/gemini-cli/gemini.js"
                          . t)
                         ("bun /a/gemini.mjs" . t)
                         ("vim gemini" . nil)
                         ("node server.js" . nil)
                         ("node /usr/bin/gemini -p hello" . nil)
                         ("" . nil) (nil . nil)))
          (ert-info ((format "%s" one))
            (setq command one
                  pid (1+ pid)
                  said nil)
            (gemini-companion-hint-test-go-to "*scratch*")
            (gemini-companion-hint-test-go-to terminal)
            (gemini-companion-hint-test-wait)
            (should (eq known (and said t)))))))))

;;; gemini-companion-hint-test.el ends here
