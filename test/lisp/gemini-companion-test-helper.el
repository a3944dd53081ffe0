;;; gemini-companion-test-helper.el --- Functions for all tests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'gemini-companion-part)
(require 'seq)
(require 'subr-x)
(require 'term)
(require 'timer)

(defconst gemini-companion-test-root
  (expand-file-name "../.." (file-name-directory
                             (or load-file-name buffer-file-name)))
  "The directory of the repository.
The package itself may be loaded from elsewhere.")

;; What tests delete must not come into the trash of the user.
(setenv "XDG_DATA_HOME" (expand-file-name (format "gemini-companion-test-%d/data"
                                                  (emacs-pid))
                                          temporary-file-directory))
(setq trash-directory nil)

(defun gemini-companion-test-trash ()
  "Return the names of the files in the trash made for a test, absolute."
  (let ((trash (expand-file-name "Trash/files" (getenv "XDG_DATA_HOME"))))
    (and (file-directory-p trash)
         (directory-files trash t directory-files-no-dot-files-regexp))))

(defun gemini-companion-test-sources ()
  "Return the names of the files of the package in the repository, absolute."
  (cons (expand-file-name "gemini-companion.el" gemini-companion-test-root)
        (let ((lisp (expand-file-name "lisp" gemini-companion-test-root)))
          (if (file-directory-p lisp)
              (directory-files-recursively lisp "\\`gemini-companion-.*\\.el\\'")
            ;; `dev/test core' has a copy of a package.
            (directory-files gemini-companion-test-root t
                             "\\`gemini-companion-.*\\.el\\'")))))

(defun gemini-companion-test-files-of (parts)
  "Return the names of the files of the add-ons of PARTS, without .el.
They are beside the file of each of PARTS.  Skip this test in a copy of the
package, as `dev/test core' has it: there all files are in one directory."
  (unless (or (null parts)
              (file-directory-p (expand-file-name "lisp" gemini-companion-test-root)))
    (ert-skip "there are no directories"))
  (let ((directories (seq-group-by #'file-name-directory (gemini-companion-test-sources))))
    (seq-mapcat (lambda (part)
                  (let ((name (format "gemini-companion-%s" part)))
                    (seq-some (lambda (directory)
                                (let ((names (mapcar #'file-name-base (cdr directory))))
                                  (and (member name names) names)))
                              directories)))
                parts)))

(defun gemini-companion-test-package-files ()
  "Return the names of the files of the package that is loaded, also compiled ones."
  (let ((directory (file-name-directory (locate-library "gemini-companion"))))
    (append (directory-files directory t "\\`gemini-companion.*\\.elc?\\'")
            (file-expand-wildcards
             (expand-file-name "lisp/*/gemini-companion*.el*" directory)))))

(defun gemini-companion-test-python ()
  "Return a Python that has the packages of the server."
  (expand-file-name (or (getenv "GC_PYTHON") ".venv/bin/python")
                    gemini-companion-test-root))

(defun gemini-companion-test-wait (predicate &optional seconds)
  "Wait until PREDICATE is non-nil, SECONDS (default 120) at most.
Return what it returned last."
  (let ((end (+ (float-time) (or seconds 120)))
        value)
    (while (and (not (setq value (funcall predicate)))
                (< (float-time) end))
      (accept-process-output nil 0.01))
    value))

(defun gemini-companion-test-needs-add-on (add-on)
  "Load what the core knows of ADD-ON, a symbol, or else skip this test.
That is for a test of the core with a case that only ADD-ON has; `dev/test
core' runs it where the files of ADD-ON are removed."
  (unless (gemini-companion-part-load (intern (format "addon-%s" add-on)))
    (ert-skip (format "the add-on %s is removed" add-on))))

(defmacro gemini-companion-test-demoted (&rest body)
  "Evaluate BODY, in which errors are handled as without ERT.
ERT of Emacs 28 sets `debug-on-error', with which
`condition-case-unless-debug' handles none.  BODY must not have
assertions, which need that."
  (declare (indent 0) (debug t))
  `(let ((debug-on-error nil))
     ,@body))

(defmacro gemini-companion-test-refusal (&rest body)
  "Return the message of the `user-error' in BODY; assert that there is one."
  (declare (indent 0) (debug t))
  `(cadr (should-error (progn ,@body) :type 'user-error)))

(defmacro gemini-companion-test-answering (function &rest body)
  "Evaluate BODY, in which FUNCTION answers each question.
It is called with the question, and returns a key, or whether that is a yes."
  (declare (indent 1) (debug t))
  `(let ((function ,function))
     (cl-letf (((symbol-function 'y-or-n-p) function)
               ((symbol-function 'gemini-companion-choice-key)
                (lambda (question keys)
                  (pcase (funcall function question)
                    ((and key (pred characterp)) (if (memq key keys) key ?y))
                    ('nil ?n)
                    (_ ?y)))))
       ,@body)))

(defmacro gemini-companion-test-eventually (&rest body)
  "Assert that BODY is non-nil within two minutes."
  (declare (indent 0) (debug t))
  `(should (gemini-companion-test-wait (lambda () ,@body))))

(defmacro gemini-companion-test-seconds (&rest body)
  "Evaluate BODY; return the seconds of a processor that this Emacs has used.
Unlike the time that passes, they do not depend on what else the machine does."
  (declare (indent 0) (debug t))
  `(let ((began (get-internal-run-time)))
     ,@body
     (float-time (time-subtract (get-internal-run-time) began))))

(defun gemini-companion-test-emacs (&rest forms)
  "Return the command to evaluate FORMS in another Emacs with the package."
  `(,(expand-file-name invocation-name invocation-directory) "-Q" "--batch"
    ,@(seq-mapcat (lambda (form) (list "--eval" (format "%S" form)))
                  ;; Half of the time would be garbage collection.
                  `((setq load-path ',load-path
                          gc-cons-threshold ,gc-cons-threshold)
                    ,@forms))))

;;;; Leftovers

;; What other tests have left may end at any time, so what is gone does not count;
;; nor does what Emacs makes by itself, to decode text and for undo.

(defun gemini-companion-test-buffers (&optional before)
  "Return the names of the buffers that are not in BEFORE."
  (seq-difference (seq-remove (apply-partially #'string-prefix-p " *code-conver")
                              (mapcar #'buffer-name (buffer-list)))
                  before))

(defun gemini-companion-test-things (&optional before)
  "Return the names of buffers, the timers and processes not in BEFORE."
  (seq-difference
   (append (seq-remove (lambda (timer)
                         (eq 'undo-auto--boundary-timer
                             (timer--function timer)))
                       (append timer-list timer-idle-list))
           (process-list)
           (gemini-companion-test-buffers))
   before))

(defun gemini-companion-test-leaves-only (before)
  "Assert that in the end there is nothing that is not in BEFORE."
  (gemini-companion-test-wait
   (lambda () (not (gemini-companion-test-things before))))
  (should-not (gemini-companion-test-things before)))

;;;; Another host

(defmacro gemini-companion-test-with-far-host (&rest body)
  "Run BODY while names below /far: are on another host.
Assert that it is not connected to."
  (declare (indent 0) (debug t))
  `(let* ((connected nil)
          (file-name-handler-alist
           (cons (cons "\\`/far:" (lambda (operation &rest args)
                                    (pcase operation
                                      ('file-remote-p "/far:")
                                      ((or 'expand-file-name 'file-truename
                                           'file-name-as-directory
                                           'abbreviate-file-name)
                                       (car args))
                                      ('unhandled-file-name-directory nil)
                                      (_ (push operation connected) nil))))
                 file-name-handler-alist)))
     ,@body
     (should-not connected)))

;;;; Terminals

(defun gemini-companion-test-start-in-term (program &rest arguments)
  "Run PROGRAM with ARGUMENTS by term in the current buffer, as users may.
Wait until it has displayed \"up\", and return its process."
  (term-mode)
  (setq-local locale-coding-system 'utf-8-unix)
  (term-exec (current-buffer) "cli" program nil arguments)
  (term-char-mode)
  (let ((process (get-buffer-process (current-buffer))))
    (set-process-query-on-exit-flag process nil)
    (gemini-companion-test-eventually (string-search "up" (buffer-string)))
    process))

(defun gemini-companion-test-start-cat ()
  "Run a program that repeats what it is sent, as the function above does."
  (gemini-companion-test-start-in-term
   "sh" "-c" "stty -echoctl; echo up; exec cat"))

(defmacro gemini-companion-test-without-sign (&rest body)
  "Run BODY as if the ordinary prompt of each CLI had no sign, as in `cat'."
  (declare (indent 0) (debug t))
  `(cl-letf (((symbol-function 'gemini-companion-client-prompt-sign)
              (lambda (_client) "")))
     ,@body))

;;;; Sessions

(defun gemini-companion-test-session-like (session &rest facts)
  "Return a session that differs from SESSION by FACTS, a plist."
  (gemini-companion-session-from-facts
   (append facts (gemini-companion-session-facts session))))

(defun gemini-companion-test-set-sessions (sessions)
  "Let the server report SESSIONS as the connected ones."
  (gemini-companion-server-receive
   'sessions-update (mapcar #'gemini-companion-session-facts sessions)))

;;;; Parts

(defvar gemini-companion-test-send #'ignore
  "Function called with each edit whose outcome is to be sent.")

(advice-add 'gemini-companion-server-call :before
            (lambda (method &rest args)
              (when (memq method '(diff-accepted diff-rejected))
                (funcall gemini-companion-test-send
                         (gemini-companion-edit-of-id (car args)))))
            '((name . gemini-companion-test-send)))

(defmacro gemini-companion-test-with-parts (parts session &rest body)
  "Run BODY with PARTS started and SESSION connected, if it is non-nil.
Edits, whose outcomes are sent nowhere, are dismissed in the end."
  (declare (indent 2) (debug t))
  `(let ((parts ,parts))
     (unwind-protect
         (progn
           (mapc #'gemini-companion-part-start parts)
           (gemini-companion-test-set-sessions (and ,session (list ,session)))
           ,@body)
       (gemini-companion-proposal-decide-all 'dismissed)
       ;; Otherwise the next test has them.
       (mapc #'gemini-companion-proposal-finish (gemini-companion-edits-ending))
       (gemini-companion-part-stop 'session)
       (mapc #'gemini-companion-part-stop (reverse parts)))))

(defmacro gemini-companion-test-with-notices (parts &rest body)
  "Run BODY with PARTS and `session', a CLI in the buffer `terminal'.
That is not displayed.  `notices' has the texts of the open notifications, the
last one first."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory '(("a" "1\n2\n"))
     (let* ((inhibit-message t)
            (terminal (generate-new-buffer "terminal"))
            (process (make-process :name "cli" :buffer terminal :noquery t
                                   :command '("cat") :connection-type 'pty))
            (session (gemini-companion-session-make
                      :id "1" :client "gemini" :pid (process-id process)
                      :directory "/src/shop/"))
            (notices nil)
            (gemini-companion-notify-lasting-seconds 0.1)
            (gemini-companion-notify
             (lambda (_session text)
               (push text notices)
               (lambda () (setq notices (delete text notices))))))
       (unwind-protect
           (save-window-excursion
             (set-window-buffer nil "*scratch*")
             (gemini-companion-test-with-parts ,parts session
               ,@body))
         (delete-process process)
         (kill-buffer terminal)))))

;;;; Timers

(defun gemini-companion-test-ours-p (function)
  "Return non-nil if FUNCTION names one of the package, not only a directory."
  (string-match-p "\\(?:\\`\\|[^/]\\)gemini-companion-" (format "%S" function)))

(defun gemini-companion-test-timers (&optional part)
  "Return the timers of the package, which name one of its functions.
If PART, a regexp, is non-nil, only those that name one of that part."
  (seq-filter (lambda (timer)
                (and (gemini-companion-test-ours-p (timer--function timer))
                     (string-match-p (concat "gemini-companion-\\(?:" part "\\)")
                                     (format "%S" (timer--function timer)))))
              (append timer-list timer-idle-list)))

(defun gemini-companion-test-run-timers (&optional part)
  "Run each timer of the package now, as if its time had come.
PART is as for `gemini-companion-test-timers'."
  (mapc #'timer-event-handler (gemini-companion-test-timers part)))

(defmacro gemini-companion-test-in-the-end (&rest body)
  "Assert that BODY is non-nil within two minutes, as if all timers were due.
That includes the timers whose function is one of Emacs."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-eventually
     (mapc #'timer-event-handler (copy-sequence timer-list))
     ,@body))

(defmacro gemini-companion-test-in-turkish (&rest body)
  "Evaluate BODY in a Turkish environment, where i is not the small letter of I."
  (declare (indent 0) (debug t))
  `(with-case-table (prog2 (turkish-case-conversion-enable)
                        (copy-case-table (standard-case-table))
                      (turkish-case-conversion-disable))
     ,@body))

;;;; Hooks

(defun gemini-companion-test-hook-p (symbol)
  "Return non-nil if SYMBOL names a variable with functions."
  (and (string-match-p "-\\(hook\\|functions\\)\\'" (symbol-name symbol))
       ;; In Emacs 28, what `after-revert-hook' was at the last revert.
       (not (eq symbol 'revert-buffer-internal-hook))))

(defun gemini-companion-test-traces ()
  "Return what would call a function of the package: (PLACE FUNCTION) lists."
  (let (found)
    (cl-flet ((add (place value &rest _)
                (dolist (function (if (functionp value) (list value)
                                    (ensure-list value)))
                  (when (and (gemini-companion-test-ours-p function)
                             (not (string-search "-test-" (format "%S" function))))
                    (push (list place function) found)))))
      ;; There are 60,000 symbols, and many tests wait until there are no traces.
      (mapatoms
       (lambda (symbol)
         ;; Advice is kept when the function is defined again.
         (when (get symbol 'defalias-fset-function)
           (advice-mapc (apply-partially #'add symbol) symbol))
         (when-let* ((watchers (get-variable-watchers symbol)))
           (mapc (apply-partially #'add symbol) watchers))
         (when (and (default-boundp symbol) (gemini-companion-test-hook-p symbol))
           (add symbol (default-value symbol)))))
      (dolist (buffer (buffer-list))
        (dolist (local (buffer-local-variables buffer))
          (when (and (consp local) (gemini-companion-test-hook-p (car local)))
            (add (cons (car local) buffer) (cdr local)))))
      (dolist (process (process-list))
        (add process (process-filter process))
        (add process (process-sentinel process)))
      (dolist (timer (append timer-list timer-idle-list))
        (add timer (timer--function timer)))
      found)))

(byte-compile 'gemini-companion-test-traces)

(defun gemini-companion-test-hooks ()
  "Return the global hooks, advice and watchers of the package, sorted."
  (sort (seq-filter (lambda (trace) (symbolp (car trace)))
                    (gemini-companion-test-traces))
        (lambda (a b) (string< (car a) (car b)))))

;;;; Buffers and files

(defun gemini-companion-test-text (name)
  "Return the text of the buffer NAME."
  (with-current-buffer name
    (buffer-substring-no-properties (point-min) (point-max))))

(defun gemini-companion-test-file-text (file)
  "Return the text of FILE."
  (with-temp-buffer
    (insert-file-contents file)
    (buffer-string)))

(defun gemini-companion-test-write (file text)
  "Write TEXT to FILE as another program does, to the byte.
Make its directory if there is none."
  (let ((file (expand-file-name
               (if (string-prefix-p "~" file) (concat default-directory file) file)))
        (file-name-handler-alist nil)
        (coding-system-for-write (if (multibyte-string-p text)
                                     'utf-8-unix
                                   'no-conversion)))
    (make-directory (file-name-directory file) t)
    ;; Emacs would ask if it visits the file, which has changed.
    (cl-letf (((symbol-function 'userlock--ask-user-about-supersession-threat)
               #'ignore))
      (write-region text nil file nil 'silent))))

(defun gemini-companion-test-rewrite (file text)
  "Write TEXT to FILE as another program does, at another time than before."
  (gemini-companion-test-write file text)
  (set-file-times file (time-add nil (random 100000))))

(defun gemini-companion-test-edited-at-random (text)
  "Return TEXT with some of its lines replaced, deleted or added."
  (mapconcat (lambda (line)
               (pcase (random 8)
                 (0 "")
                 (1 (format "né %d\n" (random)))
                 (2 (format "new %d\n%s" (random) line))
                 (_ line)))
             (split-string text "^" t) ""))

(defun gemini-companion-test-names (snapshot)
  "Return the names of the files in SNAPSHOT, without directories."
  (mapcar (lambda (entry) (file-name-nondirectory (plist-get entry :path)))
          snapshot))

(defmacro gemini-companion-test-with-directory (files &rest body)
  "Run BODY in a new `directory' with FILES, a list of (NAME TEXT).
Kill the buffers that visit a file in it afterwards, and end the watches
of files."
  (declare (indent 1) (debug t))
  `(let* ((directory (file-name-as-directory
                   (file-truename (make-temp-file "gemini-companion" t))))
          (default-directory directory)
          (make-backup-files nil)
          (create-lockfiles nil))
     ;; A test that was skipped counts as a key for 0.7 seconds.
     (when (fboundp 'gemini-companion-idle-between-commands-p)
       (gemini-companion-test-wait 'gemini-companion-idle-between-commands-p 2))
     (unwind-protect
         (progn
           (pcase-dolist (`(,name ,text) ,files)
             (gemini-companion-test-write name text))
           ,@body)
       (when (featurep 'gemini-companion-revert)
         (gemini-companion-part-stop 'revert)
         (gemini-companion-part-stop 'watch))
       (dolist (buffer (buffer-list))
         ;; It may also be one of Dired, or have a quoted name.
         (when (string-search
                directory (expand-file-name
                           (or (buffer-file-name buffer)
                               (buffer-local-value 'list-buffers-directory buffer)
                               "/")))
           (with-current-buffer buffer (set-buffer-modified-p nil))
           (kill-buffer buffer)))
       (delete-directory directory t))))

(provide 'gemini-companion-test-helper)
;;; gemini-companion-test-helper.el ends here
