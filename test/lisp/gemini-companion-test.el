;;; gemini-companion-test.el --- Tests of the mode with its server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

;; Loaded by the mode when a user turns it on, with a message in some Emacsen.
(require 'cus-edit)
(require 'gemini-companion-auto)
(require 'gemini-companion-commands)
(require 'gemini-companion-part)
(require 'gemini-companion-resume nil t)
(require 'gemini-companion-review)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-server-test-helper)
(require 'package)

(defvar epc:live-connections)

(defun gemini-companion-test-trace ()
  "Return the state that the mode must restore."
  (list (gemini-companion-test-hooks)
        (copy-sequence (default-value 'process-environment))
        epc:live-connections))

(ert-deftest gemini-companion-mode-off-after-use-leaves-nothing-behind ()
  (gemini-companion-test-needs-add-on 'pages)
  ;; Load what the first start loads.
  (gemini-companion-test-with-mode '())
  (let ((before (gemini-companion-test-trace))
        (things (gemini-companion-test-things))
        (buffers (buffer-list)))
    (gemini-companion-test-with-mode '((".git" "") ("a" "text\n"))
      (let ((gemini-companion-install-directory (expand-file-name "ours/"))
            (discovery (gemini-companion-test-discovery-file)))
        (should (file-exists-p discovery))
        (should (equal (gemini-companion-server-info)
                       (progn (gemini-companion-mode 1)
                              (gemini-companion-server-info))))
        (should (equal (number-to-string
                        (plist-get (gemini-companion-server-info) :port))
                       (getenv "GEMINI_CLI_IDE_SERVER_PORT")))
        (find-file "a")
        (insert "more ")
        (gemini-companion-proposal-open 1
                                        (gemini-companion-session-make :id "one") (expand-file-name "a") "new\n")
        (gemini-companion-review)
        (gemini-companion-list)
        (should (gemini-companion-test-traces))
        (dolist (answer (list (lambda () (signal 'quit nil)) #'ignore #'always))
          (should gemini-companion-mode)
          (cl-letf (((symbol-function 'gemini-companion-proposal-drop-p) answer))
            (ignore-error (quit user-error)
              (call-interactively #'gemini-companion-mode))))
        (should-not (getenv "GEMINI_CLI_IDE_SERVER_PORT"))
        (gemini-companion-test-eventually
          (not (or (gemini-companion-test-processes)
                   (gemini-companion-test-traces)
                   (file-exists-p discovery))))
        (dolist (buffer (seq-difference (buffer-list) buffers))
          (should-not (string-match-p "(gemini-companion-\\|\"text\\\\n\""
                                      (format "%S" (buffer-local-variables buffer)))))))
    (gemini-companion-test-leaves-only things)
    (should (equal before (gemini-companion-test-trace)))))

(ert-deftest gemini-companion-mode-ends-with-the-command-that-starts-a-cli ()
  (gemini-companion-test-needs-add-on 'terminal)
  (gemini-companion-test-with-mode '((".git" ""))
    (gemini-companion-mode -1)
    (let ((shown nil))
      (cl-letf (((symbol-function 'message)
                 (lambda (format &rest arguments)
                   (when format
                     (setq shown (apply #'format-message format arguments)))))
                ((symbol-function 'current-message) (lambda () shown)))
        (call-interactively #'gemini-companion-mode))
      (should (equal "Gemini-Companion mode enabled; M-x gemini-companion-run \
starts a CLI"
                     shown)))
    ;; An init file shows nothing.
    (gemini-companion-mode -1)
    (should-not (gemini-companion-test-messages
                  (gemini-companion-mode)))))

(ert-deftest gemini-companion-mode-off-at-once-leaves-nothing-behind ()
  (gemini-companion-test-with-mode-off '()
    ;; The second one prints a port when it is to end.
    (dolist (gemini-companion-server-command
             `(,gemini-companion-server-command ("sh" "-c" "cat >&2; echo 1")))
      (gemini-companion-mode 1)
      (gemini-companion-mode -1)
      (should-not (gemini-companion-test-hooks))
      (gemini-companion-test-eventually
        (not (or (gemini-companion-test-processes)
                 (gemini-companion-test-timers)
                 (directory-files-recursively temporary "-server-"))))
      (should-not (string-search "*epc" (format "%s" (buffer-list)))))))

(ert-deftest gemini-companion-mode-errors-stop-no-function-of-others ()
  (gemini-companion-test-with-mode '(("a" "text"))
    (with-current-buffer (find-file-noselect "a")
      (let* ((called nil)
             (find-file-hook
              (append (seq-filter #'gemini-companion-test-ours-p find-file-hook)
                      (list (lambda () (setq called t)))))
             ;; Every operation on a name fails.
             (file-name-handler-alist
              (list (cons "" (lambda (&rest _) (error "In the package"))))))
        (gemini-companion-test-demoted
          (run-hooks 'find-file-hook))
        (should called)))))

(ert-deftest gemini-companion-mode-errors-in-an-answer-do-not-repeat-it ()
  (gemini-companion-test-with-mode '()
    (let ((answers 0)
          (next nil))
      (gemini-companion-test-demoted
        (gemini-companion-server-ask
         'processes nil
         (lambda (_) (setq answers (1+ answers)) (error "In the answer")))
        (gemini-companion-test-wait (lambda () (< 0 answers))))
      (gemini-companion-server-ask 'processes nil (lambda (_) (setq next t)))
      (gemini-companion-test-eventually next)
      (should (= 1 answers)))))

(ert-deftest gemini-companion-mode-errors-in-a-part-stop-no-other-part ()
  (gemini-companion-test-needs-add-on 'terminal)
  (gemini-companion-test-with-mode '(("a" "text"))
    (find-file-noselect "a")
    (cl-letf* ((pid (gemini-companion-test-pid))
               (gemini-companion-state-functions
                (cons (lambda (&rest _) (error "In a function of the user"))
                      gemini-companion-state-functions))
               (failing (lambda (function)
                          (lambda (part &rest args)
                            (when (memq part '(remote install))
                              (error "In the part"))
                            (apply function part args))))
               ((symbol-function 'gemini-companion-part-ready)
                (funcall failing (symbol-function 'gemini-companion-part-ready)))
               ((symbol-function 'gemini-companion-part-stop)
                (funcall failing (symbol-function 'gemini-companion-part-stop))))
      (gemini-companion-test-demoted
        (gemini-companion-restart)
        (gemini-companion-test-wait
         (lambda ()
           (not (memql (gemini-companion-test-pid) (list nil pid))))))
      (gemini-companion-test-eventually
        (string-search "-> roots-update" (gemini-companion-test-events)))
      (gemini-companion-test-demoted
       (gemini-companion-test-set-sessions
        (list (gemini-companion-session-make :id "one")))
        (gemini-companion-mode -1))
      (should-not (gemini-companion-test-hooks)))))

;;;; Loading

(defmacro gemini-companion-test-with-autoloads (&rest body)
  "Run BODY while `autoloads' is a file with those of a copy of the package."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory '()
     (dolist (file (gemini-companion-test-package-files))
       (unless (string-match-p "-\\(?:autoloads\\|pkg\\)\\.elc?\\'" file)
         (copy-file file directory nil t)))
     (make-symbolic-link (expand-file-name "python" gemini-companion-server-directory)
                         "python")
     (package-generate-autoloads "ours" directory)
     (let ((autoloads (expand-file-name "ours-autoloads.el")))
       ,@body)))

(ert-deftest gemini-companion-mode-loads-files-when-they-are-used ()
  (gemini-companion-test-needs-add-on 'pages)
  (pcase-let
      ((`(,early ,parts ,late)
        (gemini-companion-test-fresh
         '(start)
         '(defun loaded (features) (seq-filter #'featurep features))
         '(setq early (loaded '( auth-source diff diff-mode ediff epc json
                                 outline project rect transient
                                 gemini-companion-edit gemini-companion-review
                                 gemini-companion-context gemini-companion-cli)))
         '(wait)
         '(list early
                (list (featurep 'gemini-companion-cli)
                      (boundp 'gemini-companion-review-view)
                      (served))
                (append
                 (loaded '( gemini-companion-unified gemini-companion-ediff
                            gemini-companion-list gemini-companion-status
                            gemini-companion-menu ediff transient))
                 (progn
                   (gemini-companion-server-receive
         'sessions-update `((:id "one" :directory ,temporary-file-directory)))
                   (gemini-companion-status)
                   (find-file (make-temp-file "load" nil nil "text\n"))
                   (loaded '(eglot))))))))
    (should-not early)
    (should (equal '(t t t) parts))
    (should-not late)))

(ert-deftest gemini-companion-mode-loads-no-file-that-it-does-not-use ()
  (gemini-companion-test-needs-add-on 'pages)
  (gemini-companion-test-with-autoloads
    (should
     (equal
      ;; What the core has to know of the add-ons that load their files by use.
      (sort (mapcar (lambda (part)
                      (symbol-name (gemini-companion-part-feature part)))
                    (seq-filter #'gemini-companion-part-load
                                (gemini-companion-part-addon-parts
                                 '(check prompts remote tools))))
            #'string<)
      (gemini-companion-test-fresh
       `(load ,autoloads)
       '(start)
       '(wait)
       '(find-file (make-temp-file "load" nil nil "text\n"))
       '(gemini-companion-server-receive
         'sessions-update `((:id "one" :directory ,temporary-file-directory)))
       '(gemini-companion-server-receive
         'open-diff 1 '(:id "one") buffer-file-name "new\n")
       '(gemini-companion-review)
       '(gemini-companion-edit-accept (car (gemini-companion-edits-open)))
       '(gemini-companion-server-receive
         'open-diff 2 '(:id "one") buffer-file-name "newer\n")
       '(gemini-companion-review)
       '(gemini-companion-edit-reject)
       '(gemini-companion-list)
       '(gemini-companion-turn-page)
       '(gemini-companion-status)
       ;; By the files that were loaded, as one may forget to provide its feature.
       `(sort (seq-filter
               (lambda (feature)
                 (member feature
                         ',(gemini-companion-test-files-of
                            (gemini-companion-part-addon-parts
                             '(check prompts remote tools)))))
               (mapcar (lambda (entry) (file-name-base (or (car entry) "")))
                       load-history))
              #'string<))))))

(ert-deftest gemini-companion-files-bind-keys-in-no-map-of-others ()
  (should-not
   (gemini-companion-test-fresh
    `(dolist (file ',(seq-filter (apply-partially #'string-suffix-p ".el")
                                 (gemini-companion-test-package-files)))
       ;; Two files of an installed package are no libraries.
       (unless (string-match-p "-\\(?:autoloads\\|pkg\\)\\.el\\'" file)
         (require (intern (file-name-base file)))))
    '(mapc #'require '(help-mode package))
    '(let (found)
       (mapatoms
        (lambda (symbol)
          (when (and (not (string-search "gemini-companion" (symbol-name symbol)))
                     (boundp symbol)
                     (keymapp (symbol-value symbol))
                     (string-search "gemini-companion-"
                                    (format "%S" (symbol-value symbol))))
            (push symbol found))))
       found))))

(defun gemini-companion-test-forms (function)
  "Call FUNCTION with each list in the forms of the package's files."
  (letrec ((walk (lambda (form)
                   (while (consp form)
                     (when (consp (car form))
                       (funcall function (car form))
                       (funcall walk (car form)))
                     (setq form (cdr form))))))
    (dolist (file (gemini-companion-test-sources))
      (with-temp-buffer
        (insert-file-contents file)
        (while (ignore-error end-of-file
                 (let ((form (read (current-buffer))))
                   (funcall walk (list form))
                   t)))))))

(ert-deftest gemini-companion-buffers-are-displayed-with-a-category ()
  (let ((without nil))
    (gemini-companion-test-forms
     (lambda (form)
       (when (and (memq (car form) '(pop-to-buffer display-buffer))
                  (proper-list-p form)
                  ;; A constant has it for two calls.
                  (not (string-match-p "(category \\. gemini-companion-\\|--display-action"
                                       (format "%S" (nth 2 form)))))
         (push form without))))
    (should-not without)))

(ert-deftest gemini-companion-buffers-follow-a-rule-of-the-user-for-their-category ()
  (gemini-companion-test-needs-add-on 'pages)
  (skip-unless (<= 30 emacs-major-version))
  (gemini-companion-test-with-mode '(("a" "text\n"))
    (let ((buffers (buffer-list)))
      (unwind-protect
          (save-window-excursion
            (delete-other-windows)
            (let ((display-buffer-alist
                   '(((category . gemini-companion-status)
                      display-buffer-in-side-window (side . bottom)))))
              (gemini-companion-status)
              (should (eq 'bottom (window-parameter nil 'window-side)))
              (delete-window)
              (gemini-companion-events-buffer)
              (should-not (window-parameter nil 'window-side))))
        ;; A status that lives on is written again after each event.
        (mapc #'kill-buffer
              (seq-filter (lambda (buffer)
                            (string-prefix-p "*gemini" (buffer-name buffer)))
                          (seq-difference (buffer-list) buffers)))))))

(ert-deftest gemini-companion-commands-of-a-buffer-are-completed-only-there ()
  (gemini-companion-test-needs-add-on 'prompts)
  (require 'gemini-companion-compose)
  (require 'gemini-companion-ediff)
  (with-temp-buffer
    (dolist (command '( gemini-companion-compose-submit
                        gemini-companion-compose-attach
                        gemini-companion-ediff-compare-again
                        gemini-companion-overview-undo))
      (ert-info ((symbol-name command))
        (should-not (command-completion-default-include-p
                     command (current-buffer)))))
    (dolist (command '(gemini-companion-compose gemini-companion-edit-accept))
      (should (command-completion-default-include-p command (current-buffer))))
    (gemini-companion-compose-mode)
    (should (command-completion-default-include-p
             'gemini-companion-compose-submit (current-buffer)))))

(defun gemini-companion-test-listed-autoloads ()
  "Return the forms in the list of autoloads of the main file."
  (let ((listed nil))
    (letrec ((walk (lambda (form)
                     (while (consp form)
                       (pcase form
                         (`(autoload ',_ ,(pred stringp) ,(pred stringp) . ,_)
                          (push form listed)))
                       (funcall walk (car form))
                       (setq form (cdr-safe form))))))
      (with-temp-buffer
        (insert-file-contents (car (gemini-companion-test-sources)))
        (funcall walk (cl-loop for form = (ignore-error end-of-file
                                            (read (current-buffer)))
                               while form collect form))))
    listed))

(ert-deftest gemini-companion-autoloads-are-those-of-the-commands ()
  "The list has each command for all buffers, with its file and first line."
  (mapc #'gemini-companion-test-needs-add-on '(check prompts remote tools))
  (let ((listed (gemini-companion-test-listed-autoloads)))
    (pcase-dolist (`(,_ ',command ,file ,line . ,rest) listed)
      (ert-info ((symbol-name command))
        (require (intern file))
        (should (equal line (car (split-string (documentation command) "\n"))))
        (should (eq (and (car rest) t) (commandp command)))
        (unless (equal file "gemini-companion-menu")
          (should (equal file (file-name-base (symbol-file command 'defun)))))))
    (dolist (row (gemini-companion-commands-in 'global))
      (ert-info ((format "%S" row))
        (should (or (equal "gemini-companion"
                           (file-name-base (symbol-file (cadr row) 'defun)))
                    (seq-find (lambda (form) (equal `',(cadr row) (nth 1 form)))
                              listed)))))))

(ert-deftest gemini-companion-autoloads-are-enough-for-each-command ()
  (gemini-companion-test-needs-add-on 'pages)
  (gemini-companion-test-with-autoloads
    (should (equal '(nil t)
                   (gemini-companion-test-fresh
                    `(load ,autoloads)
                    `(list (seq-remove
                            #'documentation
                            ',(mapcar #'cadr
                                      (gemini-companion-commands-in 'global)))
                           (progn
                             (require 'gemini-companion-commands)
                             (fboundp 'gemini-companion-overview-menu))))))
    (pcase-dolist (`(,command . ,message)
                   '((gemini-companion-review . "No proposal waits")
                     (gemini-companion-list . "nil")
                     (gemini-companion-auto-accept . "No CLI is connected")
                     (gemini-companion-merge . "No buffer needs a merge")))
      (ert-info ((symbol-name command))
        (should
         (string-prefix-p
          message
          (gemini-companion-test-fresh
           `(load ,autoloads)
           `(condition-case problem
                (progn (call-interactively ',command) "nil")
              (error (error-message-string problem))))))))))

(ert-deftest gemini-companion-mode-has-all-loaded-for-the-init-file ()
  (should
   (equal '(t t)
          (gemini-companion-test-fresh
           '(setq after-init-time nil)
           '(gemini-companion-mode 1)
           '(list (boundp 'gemini-companion-review-mode-map) (served))))))

;;; gemini-companion-test.el ends here
