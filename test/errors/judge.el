;;; judge.el --- Edits whose errors are known  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-part)
(require 'gemini-companion-roots)
(require 'json)
(require 'seq)
(require 'subr-x)

(defvar eglot-autoreconnect)
(defvar eglot-server-programs)
(defvar eglot-sync-connect)
(defvar python-flymake-command)
(declare-function flymake-mode "flymake")
(declare-function eglot-ensure "eglot")
(declare-function eglot-managed-p "eglot")

(defvar judge-directory)

(setq make-backup-files nil
      create-lockfiles nil
      vc-handled-backends '(Git))
(require 'eglot nil t)
(require 'gemini-companion-errors)
(require 'gemini-companion-lookup)
(require 'gemini-companion-rename)
(require 'gemini-companion-revert)
(require 'gemini-companion-privacy)

(define-derived-mode typescript-mode js-mode "TypeScript")
(push '("\\.ts\\'" . typescript-mode) auto-mode-alist)
(define-derived-mode go-mode prog-mode "Go")
(push '("\\.go\\'" . go-mode) auto-mode-alist)

(setq eglot-autoreconnect nil
      eglot-sync-connect nil)

(defun judge-until (seconds predicate)
  "Wait SECONDS at most until PREDICATE is non-nil; return its value."
  (let ((end (+ (float-time) seconds))
        value)
    (while (and (not (setq value (funcall predicate)))
                (< (float-time) end))
      (redisplay)
      ;; Unlike `accept-process-output', it runs idle timers.  `sit-for' would return
      ;; at once on Emacs 28, and read no output of a process, as long as an event waits
      ;; that it does not read.
      (read-event nil nil 0.02))
    value))

(defun judge-write (file text)
  "Write TEXT to FILE by another program.
By itself Emacs would ask whether to, if it visits FILE."
  (let ((coding-system-for-write 'utf-8-unix))
    (call-process-region text nil "sh" nil nil nil "-c" "cat >\"$0\"" file)))

(defvar judge-text nil "The text whose errors are to be known.")
(defvar judge-asked nil "When the checker was asked about it.")
(defvar judge-known nil "When it had answered.")

(advice-add 'gemini-companion-errors--ask :before
            (lambda (_ text)
              (when (equal (gemini-companion-errors--text-content text) judge-text)
                (setq judge-asked (float-time)))))

(defun judge-known-p (file)
  "Record when the errors of `judge-text' in FILE are known."
  (when (or (when-let* ((text (gemini-companion-errors--text-of file judge-text)))
              (gemini-companion-errors--text-found text))
            (and (find-buffer-visiting file)
                 (with-current-buffer (find-buffer-visiting file)
                   (gemini-companion-errors--current))))
    (setq judge-known (or judge-known (float-time)))))

(defun judge-checker-seconds (file)
  "Wait until the checker of FILE has answered; return how long it took.
Return 0 if it was not asked."
  (judge-until 20 (lambda ()
                    (judge-known-p file)
                    (or judge-known (not judge-asked))))
  (if judge-asked
      (- (or judge-known (float-time)) judge-asked)
    0))

(defun judge-edit (edit)
  "Make EDIT, a plist, and return what was reported of it, a plist."
  (let* ((file (plist-get edit :file))
         (before (plist-get edit :before))
         (after (plist-get edit :after))
         (answers nil)
         began)
    (setq judge-text after
          judge-asked nil
          judge-known nil)
    (judge-write file after)
    (gemini-companion-revert file)
    (redisplay)
    (setq began (float-time))
    (gemini-companion-errors-after-edit
     (lambda (facts)
       (push (list :errors (cl-map 'vector #'vconcat (plist-get facts :errors))
                   :time (- (float-time) began))
             answers))
     file before after)
    (judge-until 60 (lambda ()
                      (judge-known-p file)
                      answers))
    (append (list :checker (judge-checker-seconds file)) (car answers))))

(defun judge-visit (file is-program)
  "Visit FILE, and wait until its language server has it.
If IS-PROGRAM is t, there is none, but a program for Flymake."
  (find-file file)
  (if (eq t is-program)
      (flymake-mode)
    (eglot-ensure)
    (run-hooks 'post-command-hook)
    (judge-until 60 #'eglot-managed-p)))

(defun judge-warm (file)
  "Wait until the errors of FILE are known, as its server may start slowly."
  (let ((gemini-companion-errors-timeout 60)
        (answered nil))
    (gemini-companion-errors-after-edit (lambda (_) (setq answered t))
     file nil (with-temp-buffer
                (insert-file-contents file)
                (buffer-string)))
    (judge-until 70 (lambda () answered))))

(defun judge-rename (rename project)
  "Have RENAME, a plist, computed in PROJECT, accept it, and undo it again.
Return a plist of what came of it."
  (let ((answers nil)
        (began (float-time))
        (file (plist-get rename :file))
        (result nil))
    (gemini-companion-rename-ask
     (list :id "id" :path file :symbol (plist-get rename :symbol)
           :line (plist-get rename :line) :new (plist-get rename :new)
           :client "gemini" :pids nil :directory project)
     (lambda (facts) (push facts answers)))
    (judge-until 120 (lambda () (or answers (gemini-companion-requests))))
    (setq result (list :shown (- (float-time) began)))
    (when-let* ((open (car (gemini-companion-requests)))
                (files (gemini-companion-rename-files open)))
      (gemini-companion-request-answer open 'allow)
      (judge-until 60 (lambda () answers))
      (setq result
            (append result
                    (list :odd (vconcat
                                (mapcar #'gemini-companion-rename-file-name
                                        (seq-filter #'gemini-companion-rename-file-odd
                                                    files)))
                          :texts (cl-loop for file in files
                                          for name = (gemini-companion-rename-file-name
                                                      file)
                                          nconc (list (intern (concat ":" name))
                                                      (gemini-companion-text-read
                                                       name))))))
      (dolist (file files)
        (judge-write (gemini-companion-rename-file-name file)
                     (gemini-companion-rename-file-before file))
        (gemini-companion-revert (gemini-companion-rename-file-name file)))
      (gemini-companion-eglot-changed
       (gemini-companion-rename-server open)
       (mapcar #'gemini-companion-rename-file-name files)))
    (judge-facts result (car answers))))

(defun judge-facts (result facts)
  "Return RESULT with FACTS, the answer to a rename, as JSON has them."
  (if (null (plist-get facts :files))
      (append result (list :problem (or (plist-get facts :problem)
                                        (format "%S" facts))))
    (append
     result
     (list :files (vconcat (mapcar (pcase-lambda (`(,file ,lines ,left))
                                     (vector file (vconcat lines) left))
                                   (plist-get facts :files)))
           :elsewhere (vconcat (let ((others (plist-get facts :elsewhere)))
                                 (if (listp others) others '("unknown"))))))))

(defun judge ()
  "Make all edits or renames of the plan; return a vector of the results."
  (let* ((json-object-type 'plist)
         (json-array-type 'list)
         (plan (json-read-file (expand-file-name "plan" judge-directory)))
         (edits (plist-get plan :edits))
         (is-program (plist-get plan :program))
         (results nil))
    (setq eglot-server-programs
          (list (cons '(python-mode typescript-mode go-mode c-mode)
                      (plist-get plan :command)))
          python-flymake-command (plist-get plan :command))
    (gemini-companion-roots-update (plist-get plan :project))
    (gemini-companion-part-start 'errors)
    (judge-visit (plist-get plan :home) is-program)
    (judge-warm (plist-get plan :home))
    (when (eq t (plist-get plan :visited))
      (dolist (file (seq-uniq (mapcar (lambda (edit) (plist-get edit :file)) edits)))
        (judge-visit file is-program)
        (judge-warm file)))
    (when (plist-get plan :renames)
      (mapc #'gemini-companion-part-start '(edit permission rename)))
    (dolist (rename (plist-get plan :renames))
      (push (judge-rename rename (plist-get plan :project)) results))
    (dolist (edit edits)
      (judge-write (plist-get edit :file) (plist-get edit :before))
      (push (judge-edit edit) results))
    (vconcat (nreverse results))))

(add-hook 'emacs-startup-hook
          (lambda ()
            (let ((result (condition-case problem
                              (judge)
                            (error (format "%S" problem))))
                  (coding-system-for-write 'utf-8-unix))
              (write-region (json-encode result) nil
                            (expand-file-name "result" judge-directory) nil 'silent))
            (let ((kill-emacs-hook nil)
                  (confirm-kill-processes nil))
              (kill-emacs))))

(provide 'judge)
;;; judge.el ends here
