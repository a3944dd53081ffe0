;;; gemini-companion-project-test-helper.el --- Projects with a language server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; For tests of answers about the code and of new errors: a project that is a
;; root, with Eglot and a language server, or without.

;;; Code:

(require 'gemini-companion-lookup)
(require 'gemini-companion-privacy)
(require 'gemini-companion-test-helper)

(declare-function eglot-ensure "eglot")
(declare-function eglot-managed-p "eglot")
(declare-function eglot-shutdown-all "eglot")
(declare-function flymake-start "flymake")

(defun gemini-companion-test-program (name)
  "Return the program NAME, which is where the Python is, or skip the test."
  (let ((program (expand-file-name
                  name (file-name-directory (gemini-companion-test-python)))))
    (unless (file-executable-p program)
      (ert-skip (format "No %s" name)))
    program))

(defun gemini-companion-test-server (&rest flags)
  "Return the command of the test's language server with FLAGS."
  `("python3" ,(expand-file-name "test/language_server.py"
                                 gemini-companion-test-root)
    ,@flags))

(defun gemini-companion-test-visit (file)
  "Visit FILE with its language server, in the current buffer."
  (set-buffer (find-file-noselect file))
  (eglot-ensure)
  (run-hooks 'post-command-hook)
  (gemini-companion-test-eventually (eglot-managed-p))
  ;; Without a display it waits for one.
  (flymake-start))

(defmacro gemini-companion-test-in-project (command files &rest body)
  "Run BODY in a project with FILES, a list of (NAME TEXT), which is a root.
The language server COMMAND runs for files like the first one, which
is visited.  If COMMAND is nil there is none; if there is one, skip the
test without Eglot."
  (declare (indent 2) (debug t))
  `(let ((command ,command))
     (unless (or (null command) (require 'eglot nil t))
       (ert-skip "No Eglot"))
     (gemini-companion-test-with-directory ,files
       (dlet ((gemini-companion-lookup-timeout 60)
              (gemini-companion-paused nil)
              (eglot-server-programs (list (cons '(text-mode python-mode) command)))
              (eglot-autoreconnect nil)
              (eglot-sync-connect t)
              (inhibit-message t))
         (call-process "git" nil nil nil "init" "-q")
         (gemini-companion-privacy-refresh)
         (gemini-companion-roots directory)
         (gemini-companion-lookup-start)
         (unwind-protect
             (save-current-buffer
               (when command
                 (gemini-companion-test-visit (car (car ,files))))
               ,@body)
           (gemini-companion-lookup-stop)
           (when command
             (let ((inhibit-message t)
                   (kill-buffer-query-functions nil))
               (eglot-shutdown-all)
               (dolist (buffer (buffer-list))
                 (when (string-match-p "EGLOT" (buffer-name buffer))
                   (kill-buffer buffer)))))
           (setq gemini-companion-roots-last nil)
           (gemini-companion-privacy-refresh))))))

(defun gemini-companion-test-view ()
  "Return what the user sees."
  (list (mapcar (lambda (window)
                  (list window (window-start window) (window-point window)
                        (eq window (selected-window))))
                (window-list))
        (current-buffer)
        (mapcar (lambda (buffer)
                  (with-current-buffer buffer
                    (list buffer (point) (mark t) (buffer-modified-p)
                          (buffer-narrowed-p))))
                (seq-filter #'buffer-file-name (buffer-list)))
        (with-current-buffer (messages-buffer) (buffer-string))))

(defun gemini-companion-test-answer-of (function &rest args)
  "Return what FUNCTION, called with ARGS, answers."
  (let ((answer nil))
    (apply function
           (append args (list (lambda (value) (setq answer (list value))))))
    (gemini-companion-test-eventually answer)
    (car answer)))

(provide 'gemini-companion-project-test-helper)
;;; gemini-companion-project-test-helper.el ends here
