;;; gemini-companion-errors-test-helper.el --- A language server in tests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-errors)
(require 'gemini-companion-lookup)
(require 'gemini-companion-part)
(require 'gemini-companion-revert)
(require 'gemini-companion-roots)
(require 'gemini-companion-test-helper)

(declare-function eglot-ensure "eglot")
(declare-function eglot-managed-p "eglot")
(declare-function eglot-shutdown-all "eglot")
(declare-function eglot--signal-textDocument/didChange "eglot")

;;;; A project

(defun gemini-companion-test-end-servers ()
  "End all language servers, and kill their buffers."
  (let ((kill-buffer-query-functions nil))
    (eglot-shutdown-all)
    (kill-matching-buffers "EGLOT" 'internal-too 'no-ask)))

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
       ;; A test fails earlier.
       (dlet ((gemini-companion-errors-timeout 3600)
              (gemini-companion-context-paused nil)
              (eglot-server-programs (list (cons '(text-mode python-mode) command)))
              (eglot-autoreconnect nil)
              (eglot-sync-connect t)
              (inhibit-message t))
         (call-process "git" nil nil nil "init" "-q")
         (gemini-companion-privacy-refresh)
         (gemini-companion-roots-update directory)
         (gemini-companion-part-start 'errors)
         (unwind-protect
             (save-current-buffer
               (when command
                 (gemini-companion-test-visit (car (car ,files))))
               ,@body)
           (gemini-companion-part-stop 'errors)
           (when command
             (gemini-companion-test-end-servers))
           (setq gemini-companion-roots-last nil))))))

(defun gemini-companion-test-answer-of (kind file &rest args)
  "Return the answer to the question of KIND about FILE with ARGS."
  (let ((answer nil)
        (ask (if (eq kind 'edited)
                 #'gemini-companion-errors-after-edit
               (apply-partially #'gemini-companion-lookup kind))))
    ;; An error is answered, not signaled.
    (gemini-companion-test-demoted
      (apply ask (lambda (value) (setq answer (list value)))
             (and file (expand-file-name file)) args)
      (gemini-companion-test-wait (lambda () answer)))
    (should answer)
    (car answer)))

;;;; Edits and their errors

(defun gemini-companion-errors-test-begin (file before after)
  "Change FILE from BEFORE to AFTER, and have it checked.
Return a function that returns all answers, a list."
  (let ((answers nil))
    (gemini-companion-test-write file after)
    (gemini-companion-revert file)
    (gemini-companion-errors-after-edit (lambda (text) (push text answers))
                             (expand-file-name file) before after)
    (lambda () answers)))

(defun gemini-companion-errors-test-line (error)
  "Return ERROR as a line of text."
  (format "%d: error: %s%s" (nth 0 error) (nth 1 error)
          (if (nth 2 error) (format " [%s]" (nth 2 error)) "")))

(defun gemini-companion-errors-test-reported (answers)
  "Return the only one of ANSWERS, of a check that has begun, as lines."
  (let ((facts (car (gemini-companion-test-eventually (funcall answers)))))
    (should (equal (list facts) (funcall answers)))
    (append (mapcar #'gemini-companion-errors-test-line
                    (plist-get facts :errors))
            (mapcar (pcase-lambda (`(,name ,number ,first))
                      (format "%s %d:%s" (file-name-nondirectory name) number
                              (gemini-companion-errors-test-line first)))
                    (plist-get facts :others)))))

(defun gemini-companion-errors-test-edit (file before after)
  "Change FILE from BEFORE to AFTER; return what is reported, as lines."
  (gemini-companion-errors-test-reported
   (gemini-companion-errors-test-begin file before after)))

(defun gemini-companion-errors-test-edits (file &rest edits)
  "Assert what is reported of EDITS of FILE, lists (BEFORE AFTER LINE...)."
  (pcase-dolist (`(,before ,after . ,expected) edits)
    (ert-info ((format "%s: %S" file after))
      (should (equal expected (gemini-companion-errors-test-edit
                               file before after))))))

(defmacro gemini-companion-errors-test-with (flags files &rest body)
  "Run BODY in a project with home.txt and FILES, a list of (NAME TEXT).
The test's language server runs with FLAGS, a list, and without visiting
FILES."
  (declare (indent 2) (debug t))
  `(gemini-companion-test-in-project
       (apply #'gemini-companion-test-server ,flags)
       (cons '("home.txt" "fine") ,files)
     ,@body))

(defun gemini-companion-errors-test-known (&rest names)
  "Wait until the errors of the buffers NAMES are known."
  (dolist (name names)
    (with-current-buffer name
      (gemini-companion-test-eventually
        (gemini-companion-errors--current)))))

(defun gemini-companion-errors-test-visit (&rest files)
  "Visit each of FILES, and wait until its errors are known."
  (dolist (file files)
    (gemini-companion-test-visit file)
    (gemini-companion-errors-test-known file)))

(defun gemini-companion-errors-test-type (text)
  "Replace the text of this buffer by TEXT, which the language server gets."
  (erase-buffer)
  (insert text)
  (eglot--signal-textDocument/didChange))

(defun gemini-companion-errors-test-ask (&optional file)
  "Return the answer to the question for the diagnostics of FILE, or of all."
  (gemini-companion-test-answer-of 'diagnostics file))

(defun gemini-companion-errors-test-problem-p (text &optional file)
  "Return non-nil if the diagnostics of FILE are unknown because of TEXT."
  (string-search text (plist-get (gemini-companion-errors-test-ask file)
                                 :problem)))

(defun gemini-companion-errors-test-flymake (report &rest _)
  "Call REPORT with the errors of this buffer, later."
  (let ((buffer (current-buffer))
        (tick (buffer-chars-modified-tick)))
    (run-at-time
     0.1 nil
     (lambda ()
       (when (and (buffer-live-p buffer)
                  (= tick (buffer-chars-modified-tick buffer)))
         (with-current-buffer buffer
           (save-excursion
             (goto-char (point-min))
             (let (found)
               (while (re-search-forward "\\(error\\|warning\\) \\(.+\\)" nil t)
                 (push (flymake-make-diagnostic
                        buffer (match-beginning 0) (match-end 0)
                        (intern (concat ":" (match-string 1)))
                        (match-string 2))
                       found))
               (funcall report found)))))))))

(provide 'gemini-companion-errors-test-helper)
;;; gemini-companion-errors-test-helper.el ends here
