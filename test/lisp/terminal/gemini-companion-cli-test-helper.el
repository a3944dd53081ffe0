;;; gemini-companion-cli-test-helper.el --- Help for tests of CLIs in terminals  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-cli)
(require 'gemini-companion-server-test-helper)
(require 'project)

(defvar gemini-companion-run-test-started nil
  "Started programs, the last first: command, directory, and variables.")

(defun gemini-companion-run-test-terminal (command)
  "Run COMMAND in the current buffer, and record that."
  (push (list command default-directory
              (mapcar #'getenv
                      '("GEMINI_CLI_IDE_SERVER_PORT" "GC_TEST" "TMUX")))
        gemini-companion-run-test-started)
  (make-process :name "gemini" :buffer (current-buffer) :command command
                :connection-type 'pipe :noquery t))

(defmacro gemini-companion-run-test-with (&rest body)
  "Run BODY in a project whose Gemini CLI is `cat'."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-mode-off '(("a" "text") (".git" ""))
     (let* ((project-find-functions
             (list (lambda (_) (cons 'transient directory))))
            (gemini-companion-run-commands '(("gemini" . "cat")))
            (gemini-companion-run-client "gemini")
            (gemini-companion-terminal #'gemini-companion-run-test-terminal)
            (gemini-companion-run-test-started nil)
            (name (file-name-nondirectory (directory-file-name directory))))
       (ignore name)
       (save-window-excursion
         (unwind-protect
             ;; Do not enable IDE integration.
             (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
               ,@body)
           (dolist (buffer (buffer-list))
             (when (string-match-p "\\`\\*\\(gemini\\|qwen\\|copilot\\): " (buffer-name buffer))
               (let ((kill-buffer-query-functions nil))
                 (kill-buffer buffer)))))))))

(defmacro gemini-companion-run-test-with-mode (&rest body)
  "Run BODY as above, with the mode on and ready."
  (declare (indent 0) (debug t))
  `(gemini-companion-run-test-with
     (gemini-companion-mode 1)
     (gemini-companion-test-eventually (gemini-companion-server-ready-p))
     ,@body))

(provide 'gemini-companion-cli-test-helper)
;;; gemini-companion-cli-test-helper.el ends here
