;;; gemini-companion-hint-test.el --- Tests of the hint  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A shell under the name of node plays the CLI, in a real pseudo-terminal.

;;; Code:

(require 'gemini-companion-hint)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-hint-test-with (script &rest body)
  "Run BODY with `terminal', a buffer with a shell that has SCRIPT.
In it gemini is what looks like Gemini CLI.  What is said gets
into `said', the last first."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-folder
       `(("gemini" "echo up; read line"))
     (make-symbolic-link (executable-find "sh") "node")
     (let* ((gemini-companion-hint--seconds 0)
            (gemini-companion-hint--told nil)
            (gemini-companion-session--all nil)
            (gemini-companion-hint--roots-function
             (lambda () (list (directory-file-name folder))))
            (terminal (generate-new-buffer "*terminal*"))
            (process
             (make-process
              :name "terminal" :buffer terminal :connection-type 'pty
              :noquery t
              :command (list "bash" "--norc" "-c"
                             (format "set -m; gemini() { %snode %sgemini \
\"$@\"; }; %s" folder folder ,script))))
            said)
       (cl-letf (((symbol-function 'message)
                  (lambda (&rest args) (push (apply #'format args) said)))
                 ((symbol-function 'gemini-companion-server-ready-p)
                  #'always)
                 ((symbol-function 'gemini-companion-server-since)
                  (lambda () (- (float-time) 3600))))
         (unwind-protect
             (progn
               (gemini-companion-test-eventually
                 (string-match-p "up" (with-current-buffer terminal
                                        (buffer-string))))
               ,@body)
           (gemini-companion-hint-stop)
           (delete-process process)
           (kill-buffer terminal))))))

(defun gemini-companion-hint-test-look ()
  "Look at the terminals, and say at once what is to be said."
  (gemini-companion-hint--look)
  (when gemini-companion-hint--timer
    (let ((timer gemini-companion-hint--timer))
      (cancel-timer timer)
      (when (memq (timer--function timer) '(gemini-companion-hint--say))
        (apply (timer--function timer) (timer--args timer)))
      (when gemini-companion-hint--timer
        (cancel-timer gemini-companion-hint--timer))
      (setq gemini-companion-hint--timer nil))))

(ert-deftest gemini-companion-hint-speaks-once-of-a-cli-that-is-apart ()
  (gemini-companion-hint-test-with "gemini"
    (dotimes (_ 2)
      (gemini-companion-hint-test-look))
    (should (equal 1 (length said)))
    (should (string-match-p "\\*terminal\\* is not connected.* /ide enable"
                            (car said)))))

(ert-deftest gemini-companion-hint-tells-of-one-that-is-too-old ()
  (gemini-companion-hint-test-with "gemini"
    (cl-letf (((symbol-function 'gemini-companion-server-since)
               #'float-time))
      (gemini-companion-test-eventually
        (progn (gemini-companion-hint-test-look) said)))
    (should (string-match-p "was started before this mode" (car said)))))

(ert-deftest gemini-companion-hint-tells-of-one-in-a-foreign-folder ()
  (gemini-companion-hint-test-with "cd / && gemini"
    (gemini-companion-hint-test-look)
    (should (string-match-p "runs outside the open projects" (car said)))))

(ert-deftest gemini-companion-hint-is-silent-of-others ()
  (dolist (script '("echo up; read line"
                    "gemini -p question"
                    "gemini --acp"))
    (ert-info (script)
      (gemini-companion-hint-test-with script
        (gemini-companion-hint-test-look)
        (should-not said)))))

(ert-deftest gemini-companion-hint-is-silent-of-a-connected-one ()
  (gemini-companion-hint-test-with "gemini"
    (gemini-companion-session-update
     (list (list :id "one" :pid (gemini-companion-hint--program process))))
    (gemini-companion-hint-test-look)
    (should-not said)))

(ert-deftest gemini-companion-hint-gives-a-young-one-time ()
  (gemini-companion-hint-test-with "gemini"
    (let ((gemini-companion-hint--seconds 10))
      (gemini-companion-hint--look)
      (should (eq #'gemini-companion-hint--look
                  (timer--function gemini-companion-hint--timer)))
      (should-not said))))

(ert-deftest gemini-companion-hint-rests-where-nobody-goes ()
  (gemini-companion-hint-test-with "gemini"
    (gemini-companion-hint-test-look)
    (should said)
    (gemini-companion-hint--look)
    (should-not gemini-companion-hint--timer)))

(ert-deftest gemini-companion-hint-looks-after-going-to-a-terminal ()
  (gemini-companion-hint-test-with "gemini"
    (save-window-excursion
      (switch-to-buffer "*scratch*")
      (gemini-companion-hint--notice (selected-frame))
      (should-not gemini-companion-hint--timer)
      (switch-to-buffer terminal)
      (gemini-companion-hint--notice (selected-frame))
      (should gemini-companion-hint--timer))))

(ert-deftest gemini-companion-hint-knows-the-ways-to-start-it ()
  (pcase-dolist (`(,command . ,known)
                 '(("node /usr/bin/gemini" . t)
                   ("gemini -m gemini-2.5-flash" . t)
                   ("node --max-old-space-size=9 /a/gemini-cli/gemini.js" . t)
                   ("bun /a/gemini.mjs" . t)
                   ("vim gemini" . nil)
                   ("node server.js" . nil)
                   ("node /usr/bin/gemini -p hello" . nil)
                   ("" . nil) (nil . nil)))
    (ert-info ((format "%s" command))
      (should (eq known (and (gemini-companion-hint--gemini-p command) t))))))

;;; gemini-companion-hint-test.el ends here
