;;; gemini-companion-server-test-helper.el --- The mode in tests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-context)
(require 'gemini-companion-log)
(require 'gemini-companion-proposal)
(require 'gemini-companion-test-helper)
(require 'json)

;;;; Server

(defmacro gemini-companion-test-with-mode-off (files &rest body)
  "Run BODY in a directory with FILES, and turn the mode off in the end.
Temporary files are in a directory of their own, `temporary'."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory ,files
     (let* ((temporary (file-name-as-directory
                        (make-temp-file "gemini-companion-tmp" t)))
            (process-environment (cons (concat "TMPDIR=" temporary)
                                       process-environment))
            (gemini-companion-server-command
             (list (gemini-companion-test-python) "-m" "gemini_companion_epc")))
       (unwind-protect
           (progn ,@body)
         (gemini-companion-mode -1)
         (gemini-companion-test-eventually
           (not (gemini-companion-test-processes)))
         (delete-directory temporary t)))))

(defmacro gemini-companion-test-with-mode (files &rest body)
  "Run BODY with the mode on and ready, in a directory with FILES.
See `gemini-companion-test-with-mode-off'."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-mode-off ,files
     (gemini-companion-mode 1)
     (gemini-companion-test-eventually (gemini-companion-server-ready-p))
     ,@body))

(defun gemini-companion-test-processes ()
  "Return the processes of the mode."
  (seq-filter (lambda (process)
                (string-match-p "gemini-companion\\|epc" (process-name process)))
              (process-list)))

(defun gemini-companion-test-pid ()
  "Return the process ID of the server that can be called, or nil."
  (plist-get (gemini-companion-server-info) :pid))

(defun gemini-companion-test-kill-server ()
  "Kill the server and wait until Emacs knows."
  (let ((pid (gemini-companion-test-pid)))
    (signal-process pid 'SIGKILL)
    (gemini-companion-test-eventually
      (not (equal pid (gemini-companion-test-pid))))))

(defmacro gemini-companion-test-replacing (&rest body)
  "Evaluate BODY, and wait until another server can be called."
  (declare (indent 0) (debug t))
  `(let ((pid (gemini-companion-test-pid)))
     ,@body
     (gemini-companion-test-eventually
       (not (memql (gemini-companion-test-pid) (list nil pid))))))

(defun gemini-companion-test-warning (start)
  "Return the next warning after calling START.
Do not wait until the next attempt to start the server, but do wait for
each process: timers that limit its time are running as well."
  (let (warning)
    (cl-letf (((symbol-function 'display-warning)
               (lambda (_type message &rest _) (setq warning message))))
      (gemini-companion-test-demoted
        (funcall start)
        (gemini-companion-test-wait
         (lambda ()
           (unless (gemini-companion-test-processes)
             (gemini-companion-test-run-timers))
           warning))))
    (should warning)
    warning))

(defun gemini-companion-test-failure (&rest command)
  "Return the warning when COMMAND is to run the server."
  (let ((gemini-companion-server-command command))
    (prog1 (gemini-companion-test-warning #'gemini-companion-mode)
      (should-not gemini-companion-mode)
      (should-not gemini-companion-context-directory)
      (should-not (gemini-companion-test-hooks))
      (should-not (gemini-companion-test-processes)))))

(defun gemini-companion-test-discovery-file ()
  "Return the name of the discovery file for Gemini CLI."
  (cadr (assoc "gemini" (plist-get (gemini-companion-server-info) :discovery))))

;;;; Another Emacs

(defun gemini-companion-test-fresh (&rest forms)
  "Return what FORMS evaluate to in an Emacs that has loaded nothing.
The mode is known as its autoload makes it, and the server is a
program that does nothing."
  (pcase-let
      ((`(,program . ,arguments)
        (gemini-companion-test-emacs
         '(autoload 'gemini-companion-mode "gemini-companion" nil t)
         '(setq gemini-companion-server-command '("sh" "-c" "cat >/dev/null"))
         ;; Is Emacs not to end without the mode being turned off?
         '(defun served ()
            (and (string-search "gemini-companion" (format "%S" kill-emacs-hook))
                 t))
         `(defun start ()
            (setq gemini-companion-server-command
                  '(,(gemini-companion-test-python) "-m" "gemini_companion_epc"))
            (gemini-companion-mode 1))
         '(defun wait ()
            (let ((end (+ 120 (float-time))))
              (while (not (or (gemini-companion-server-ready-p)
                              (< end (float-time))))
                (accept-process-output nil 0.01)))
            (gemini-companion-server-ready-p))
         `(print (progn ,@forms)))))
    (with-temp-buffer
      (should (equal 0 (apply #'call-process program nil '(t nil) nil arguments)))
      (car (read-from-string (buffer-string))))))

;;;; Client

(defun gemini-companion-test-client (program &rest arguments)
  "Start Python with PROGRAM, a list, the port, the token and ARGUMENTS.
Return its process."
  (let ((info (gemini-companion-server-info))
        (process-environment
         (cons (concat "PYTHONPATH=" (expand-file-name
                                      "test/python" gemini-companion-test-root))
               process-environment)))
    (make-process
     :name "client" :noquery t :connection-type 'pipe :coding 'utf-8-unix
     :buffer (generate-new-buffer " *client*")
     :command `(,(gemini-companion-test-python) ,@program
                ,(number-to-string (plist-get info :port))
                ,(plist-get info :token) ,@arguments))))

(defun gemini-companion-test-connect ()
  "Connect a client to the server; return its process when Emacs knows it."
  (let ((sessions (length (gemini-companion-sessions)))
        (client (gemini-companion-test-client
                 (list (expand-file-name "test/python/fake_cli.py"
                                         gemini-companion-test-root)))))
    (gemini-companion-test-answer client)
    (gemini-companion-test-eventually
      (< sessions (length (gemini-companion-sessions))))
    client))

(defun gemini-companion-test-answer (client)
  "Return the next answer of CLIENT, read as JSON."
  (with-current-buffer (process-buffer client)
    (gemini-companion-test-eventually
      (goto-char (point-min))
      (search-forward "\n" nil t))
    (goto-char (point-min))
    ;; Of a large text, `json-read' takes a second.
    (prog1 (if (fboundp 'json-parse-buffer)
               (json-parse-buffer :object-type 'alist)
             (json-read))
      (forward-line)
      (delete-region (point-min) (point)))))

(defun gemini-companion-test-ask (client tool &rest arguments)
  "Have CLIENT call TOOL with ARGUMENTS, a plist, and return the answer.
With the TOOL \"next\" return the next notification instead."
  (process-send-string
   client (concat (json-encode (list tool (or arguments #s(hash-table))))
                  "\n"))
  (gemini-companion-test-answer client))

(defun gemini-companion-test-events ()
  "Return the events since Emacs and its server said hello, as text."
  (gemini-companion-events-buffer)
  (with-current-buffer "*gemini-companion events*"
    (goto-char (point-max))
    (search-backward " -> hello")
    (prog1 (buffer-substring-no-properties (point) (point-max))
      (kill-buffer))))

(provide 'gemini-companion-server-test-helper)
;;; gemini-companion-server-test-helper.el ends here
