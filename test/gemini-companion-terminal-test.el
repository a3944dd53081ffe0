;;; gemini-companion-terminal-test.el --- Tests of the environment  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What a child of this Emacs sees, and what is left of it afterwards.

;;; Code:

(require 'compile)
(require 'eshell)
(require 'gemini-companion-terminal)
(require 'gemini-companion-test-helper)

(defun gemini-companion-terminal-test-sees (name)
  "Return what a child of this Emacs sees of the variable NAME."
  (with-temp-buffer
    (call-process "sh" nil t nil "-c" (format "printf %%s \"${%s-unset}\"" name))
    (buffer-string)))

(defmacro gemini-companion-terminal-test-with (variables &rest body)
  "Run BODY with VARIABLES, an alist, in the environment."
  (declare (indent 1) (debug t))
  `(let ((before (default-value 'process-environment)))
     (unwind-protect
         (progn
           (pcase-dolist (`(,name . ,value) ,variables)
             (setenv name value))
           ,@body)
       (gemini-companion-terminal-restore)
       (setq-default process-environment before))))

(ert-deftest gemini-companion-terminal-leads-children-here ()
  (gemini-companion-terminal-test-with
      '(("GEMINI_CLI_IDE_WORKSPACE_PATH" . "/elsewhere")
        ("GEMINI_CLI_IDE_AUTH_TOKEN" . "theirs"))
    (gemini-companion-terminal-export 4711 42)
    (should (equal "4711" (gemini-companion-terminal-test-sees
                           "GEMINI_CLI_IDE_SERVER_PORT")))
    (should (equal "42" (gemini-companion-terminal-test-sees
                         "GEMINI_CLI_IDE_PID")))
    (should (equal "unset" (gemini-companion-terminal-test-sees
                            "GEMINI_CLI_IDE_WORKSPACE_PATH")))
    (should (equal "unset" (gemini-companion-terminal-test-sees
                            "GEMINI_CLI_IDE_AUTH_TOKEN")))))

(declare-function eshell-send-input "esh-mode")
(defvar eshell-directory-name)
(defvar explicit-shell-file-name)

(defconst gemini-companion-terminal-test-ways
  `((compile . ,(lambda (command)
                  (let ((compilation-ask-about-save nil))
                    (compile command))))
    (async-shell-command . ,(lambda (command)
                              (async-shell-command command)
                              (get-buffer "*Async Shell Command*")))
    (shell . ,(lambda (command)
                (let ((explicit-shell-file-name "/bin/sh"))
                  (shell))
                (process-send-string nil (concat command "\n"))
                (current-buffer)))
    (term . ,(lambda (command)
               (term "/bin/sh")
               (process-send-string nil (concat command "\n"))
               (current-buffer)))
    (eshell . ,(lambda (command)
                 (let ((eshell-directory-name default-directory))
                   (eshell t))
                 (goto-char (point-max))
                 (insert (format "sh -c '%s'" command))
                 (eshell-send-input)
                 (current-buffer))))
  "The ways in which people start programs, alist of functions.")

(ert-deftest gemini-companion-terminal-leads-all-that-people-start ()
  (gemini-companion-test-with-folder '()
    (gemini-companion-terminal-test-with '(("HISTFILE" . "/dev/null"))
      (pcase-dolist (`(,way . ,start) gemini-companion-terminal-test-ways)
        (ert-info ((symbol-name way))
          (save-window-excursion
            (gemini-companion-terminal-export 4711 42)
            (let ((buffer (funcall
                           start
                           "echo port: $GEMINI_CLI_IDE_SERVER_PORT :"))
                  (kill-buffer-query-functions nil))
              (unwind-protect
                  (gemini-companion-test-eventually
                    (string-match-p "port: 4711 :"
                                    (with-current-buffer buffer
                                      (buffer-string))))
                (kill-buffer buffer)))
            (gemini-companion-terminal-restore)))))))

(ert-deftest gemini-companion-terminal-follows-another-port ()
  (gemini-companion-terminal-test-with '()
    (gemini-companion-terminal-export 1 42)
    (gemini-companion-terminal-export 2 42)
    (should (equal "2" (gemini-companion-terminal-test-sees
                        "GEMINI_CLI_IDE_SERVER_PORT")))))

(ert-deftest gemini-companion-terminal-gives-back-what-it-took ()
  (gemini-companion-terminal-test-with
      '(("GEMINI_CLI_IDE_SERVER_PORT" . "7")
        ("GEMINI_CLI_IDE_WORKSPACE_PATH" . "/elsewhere"))
    (let ((before (copy-sequence (default-value 'process-environment))))
      (gemini-companion-terminal-export 4711 42)
      (gemini-companion-terminal-restore)
      (should-not (seq-difference before (default-value 'process-environment)))
      (should-not (seq-difference (default-value 'process-environment)
                                  before)))))

(ert-deftest gemini-companion-terminal-keeps-what-others-set-meanwhile ()
  (gemini-companion-terminal-test-with
      '(("GEMINI_CLI_IDE_SERVER_PORT" . "7"))
    (gemini-companion-terminal-export 4711 42)
    (setenv "GC_TEST_OF_OTHERS" "x")
    (gemini-companion-terminal-restore)
    (should (equal "x" (gemini-companion-terminal-test-sees
                        "GC_TEST_OF_OTHERS")))
    (should (equal "7" (gemini-companion-terminal-test-sees
                        "GEMINI_CLI_IDE_SERVER_PORT")))
    (should (equal "unset" (gemini-companion-terminal-test-sees
                            "GEMINI_CLI_IDE_PID")))))

(defun gemini-companion-terminal-test-port (buffer)
  "Return the port that a child started in BUFFER sees."
  (with-current-buffer buffer
    (let ((environment process-environment))
      (with-temp-buffer
        (let ((process-environment environment))
          (gemini-companion-terminal-test-sees
           "GEMINI_CLI_IDE_SERVER_PORT"))))))

(defun gemini-companion-terminal-test-own (&rest variables)
  "Give the current buffer an environment of its own with VARIABLES."
  (setq-local process-environment
              (append variables (default-value 'process-environment))))

(ert-deftest gemini-companion-terminal-leads-where-a-buffer-has-its-own ()
  (gemini-companion-terminal-test-with '()
    (with-temp-buffer
      (gemini-companion-terminal-test-own "GC_TEST_OF_OTHERS=x")
      (let ((before (copy-sequence process-environment)))
        (gemini-companion-terminal-export 1 42)
        (gemini-companion-terminal-export 2 42)
        (should (equal "2" (gemini-companion-terminal-test-port
                            (current-buffer))))
        (should (member "GC_TEST_OF_OTHERS=x" process-environment))
        (gemini-companion-terminal-restore)
        (should (equal before process-environment))))))

(ert-deftest gemini-companion-terminal-leads-where-one-comes-later ()
  (gemini-companion-terminal-test-with
      '(("GEMINI_CLI_IDE_SERVER_PORT" . "7"))
    (let ((older (default-value 'process-environment)))
      (gemini-companion-terminal-export 1 42)
      (with-temp-buffer
        ;; As envrc does: on top of the default.
        (gemini-companion-terminal-test-own "GC_TEST_OF_OTHERS=x")
        (should (equal "1" (gemini-companion-terminal-test-port
                            (current-buffer))))
        (gemini-companion-terminal-restore)
        (should (equal "7" (gemini-companion-terminal-test-port
                            (current-buffer)))))
      (gemini-companion-terminal-export 1 42)
      (with-temp-buffer
        (setq-local process-environment older)
        (save-window-excursion
          (switch-to-buffer (current-buffer))
          (run-hook-with-args 'window-buffer-change-functions
                              (selected-frame)))
        (should (equal "1" (gemini-companion-terminal-test-port
                            (current-buffer))))
        (gemini-companion-terminal-restore)
        (should (equal older process-environment))))))

(ert-deftest gemini-companion-terminal-leaves-foreign-environments-alone ()
  (gemini-companion-terminal-test-with '()
    (gemini-companion-terminal-export 1 42)
    (with-temp-buffer
      (setq-local process-environment
                  (list "GEMINI_CLI_IDE_SERVER_PORT=9"))
      (gemini-companion-terminal-restore)
      (should (equal '("GEMINI_CLI_IDE_SERVER_PORT=9")
                     process-environment)))))

(ert-deftest gemini-companion-terminal-tells-a-container-once ()
  (gemini-companion-terminal-test-with '(("SSH_CONNECTION" . "1 2 3 4")
                                         ("REMOTE_CONTAINERS"))
    (gemini-companion-terminal-export 4711 42)
    (should (equal "unset" (gemini-companion-terminal-test-sees
                            "REMOTE_CONTAINERS")))))

;;; gemini-companion-terminal-test.el ends here
