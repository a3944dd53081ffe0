;;; gemini-companion-permission-test-helper.el --- What a CLI asks, in tests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-context)
(require 'gemini-companion-part)
(require 'gemini-companion-permission)
(require 'gemini-companion-test-helper)
(require 'json)

(defconst gemini-companion-permission-test-session
  (gemini-companion-session-make
   :id "one" :client "qwen" :pid 12 :directory "/src/shop")
  "A connected CLI.")

(defvar gemini-companion-permission-test-answers nil
  "What was sent to the server, the last one first.")

(defvar gemini-companion-permission-test-end nil
  "The last position in the window, or nil for the end of the buffer.
Without a terminal, Emacs does not know it.")

(defmacro gemini-companion-permission-test-with (&rest body)
  "Evaluate BODY while the part works and one CLI is connected."
  (declare (indent 0) (debug t))
  `(let ((gemini-companion-permission-test-answers nil))
     (save-window-excursion
       (unwind-protect
           (cl-letf (((symbol-function 'window-end)
                      (lambda (&rest _)
                        (or gemini-companion-permission-test-end (point-max)))))
             (gemini-companion-part-start 'state)
             (gemini-companion-part-start 'permission)
             (gemini-companion-test-set-sessions
              (list gemini-companion-permission-test-session))
             ,@body)
         (gemini-companion-part-stop 'permission)
         (gemini-companion-part-stop 'session)
         (gemini-companion-part-stop 'state)))))

(defun gemini-companion-permission-test-input (command &rest slots)
  "Return the text of the server for COMMAND; SLOTS are pairs of others."
  ;; Where a name occurs twice, parsers differ.
  (json-encode (seq-uniq `(,@slots (tool . "Shell") (command . ,command)
                           (arguments . ,(vector)) (partial . :json-false))
                         (lambda (a b) (eq (car a) (car b))))))

(defun gemini-companion-permission-test-ask (command &optional id &rest slots)
  "Ask for COMMAND, and return the permission, or nil if it is not open.
With ID, a string, the hook of the CLI waits.  For SLOTS, see
`gemini-companion-permission-test-input'."
  (gemini-companion-permission-ask
   `(:client "qwen" :pids (11 12 1) :directory "/src/shop" ,@(and id `(:id ,id)))
   (apply #'gemini-companion-permission-test-input command slots)
   (lambda (answer) (push answer gemini-companion-permission-test-answers)))
  (car (last (gemini-companion-permission-test-open))))

(defun gemini-companion-permission-test-open ()
  "Return the open permissions, plans and questions of models, oldest first."
  (seq-filter #'gemini-companion-permission-p (gemini-companion-requests)))

(defun gemini-companion-permission-test-draw ()
  "Record that the current buffer, in the selected window, is drawn."
  (run-hook-with-args 'pre-redisplay-functions (selected-window)))

(defun gemini-companion-permission-test-run-timers ()
  "Run the timers of permissions as if their times had come."
  (dolist (timer (append timer-list timer-idle-list))
    (when (string-prefix-p "gemini-companion-permission-"
                           (format "%s" (timer--function timer)))
      (apply (timer--function timer) (timer--args timer)))))

(defun gemini-companion-permission-test-type (key)
  "Run the command of KEY, a string, as it was typed."
  (run-hooks 'pre-command-hook)
  (call-interactively (key-binding (kbd key))))

(defun gemini-companion-permission-test-see (permission)
  "Show PERMISSION until its keys answer."
  (gemini-companion-request-show permission)
  (set-buffer (window-buffer))
  (gemini-companion-permission-test-draw))

(defmacro gemini-companion-permission-test-refused (&rest body)
  "Check that BODY signals a user error, and that nothing was answered."
  (declare (indent 0) (debug t))
  `(progn
     (should-error (progn ,@body) :type 'user-error)
     (should-not gemini-companion-permission-test-answers)))

(provide 'gemini-companion-permission-test-helper)
;;; gemini-companion-permission-test-helper.el ends here
