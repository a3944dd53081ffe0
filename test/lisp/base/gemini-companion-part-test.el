;;; gemini-companion-part-test.el --- Tests of the parts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-clients)
(require 'gemini-companion-commands)
(require 'gemini-companion-part)
(require 'gemini-companion-test-helper)

(defvar gemini-companion-part-test-hook nil
  "A hook of the part of these tests.")

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'part-test)))
  "Return two functions of one hook."
  '((gemini-companion-part-test-hook ignore)
    (gemini-companion-part-test-hook identity 90)))

(ert-deftest gemini-companion-part-is-on-its-hooks-while-it-runs ()
  (let ((gemini-companion-part-test-hook nil))
    ;; A part may be started twice.
    (dotimes (_ 2)
      (gemini-companion-part-start 'part-test)
      (should (equal '(ignore identity) gemini-companion-part-test-hook)))
    (gemini-companion-part-stop 'part-test)
    (should-not gemini-companion-part-test-hook)))

(ert-deftest gemini-companion-part-has-its-hooks-for-itself ()
  (mapc #'gemini-companion-part-load (gemini-companion-parts))
  (let ((hooks (mapcar (lambda (hook) (seq-take hook 2))
                       (seq-mapcat #'gemini-companion-part-hooks
                                   (gemini-companion-parts-loaded)))))
    (should (assq 'kill-emacs-query-functions hooks))
    ;; A part that stops would remove the function of another one.
    (should (equal hooks (seq-uniq hooks)))))

(ert-deftest gemini-companion-part-needs-no-method ()
  (gemini-companion-part-start 'nothing)
  (gemini-companion-part-ready 'nothing 'started)
  (should-not (gemini-companion-part-hooks 'nothing))
  (should-not (gemini-companion-part-lighter 'nothing))
  (should-not (gemini-companion-part-findings 'nothing "/"))
  (gemini-companion-part-stop 'nothing))

;;;; Add-ons and files that are loaded by use

(defun gemini-companion-part-test-copy (parts directory)
  "Copy the package to DIRECTORY, without the files of the add-ons of PARTS.
PARTS may have features, strings, whose files are left out as well."
  (let ((left-out (append (seq-filter #'stringp parts)
                          (gemini-companion-test-files-of
                           (seq-filter #'symbolp parts)))))
    (dolist (file (gemini-companion-test-package-files))
      (unless (or (member (file-name-base file) left-out)
                  (string-match-p "-\\(?:autoloads\\|pkg\\)\\'" (file-name-base file)))
        (copy-file file (file-name-as-directory directory))))))

(defconst gemini-companion-part-test-program
  '(progn
     (dolist (file (directory-files directory nil "\\`gemini-companion.*\\.el\\'"))
       (require (intern (file-name-base file))))
     (dolist (group gemini-companion-commands)
       (dolist (row (cdr group))
         (unless (and (commandp (nth 1 row))
                      (progn (autoload-do-load (symbol-function (nth 1 row))) t))
           (error "Dead row %S" row))))
     ;; As the mode does.
     (dolist (part (gemini-companion-parts-to-start))
       (require (gemini-companion-part-feature part)))
     (dolist (part (gemini-companion-parts-loaded))
       (gemini-companion-part-start part))
     (when (fboundp 'gemini-companion-status)
       (gemini-companion-status))
     (dolist (part (reverse (gemini-companion-parts-loaded)))
       (gemini-companion-part-stop part))
     (mapcar #'cadr (gemini-companion-commands-in 'global)))
  "Form that loads the package in `directory', and returns its global commands.")

(defun gemini-companion-part-test-package-p (directory)
  "Return non-nil if some file in DIRECTORY is one of the package."
  (and (file-directory-p directory)
       (seq-find (lambda (file) (not (string-match-p "-test" file)))
                 (directory-files directory nil "\\`gemini-companion.*\\.el\\'"))))

(defun gemini-companion-part-test-run (parts form &optional files)
  "Return the value of FORM in an Emacs without the add-ons of PARTS.
FILES are added to the package, an alist of names and lists of forms; the
directory of the package is `directory' in FORM.  If FORM fails, return the
output of that Emacs."
  (let ((directory (make-temp-file "core-" 'directory)))
    (unwind-protect
        (with-temp-buffer
          (gemini-companion-part-test-copy parts directory)
          (pcase-dolist (`(,name . ,forms) files)
            (write-region (concat ";; -*- lexical-binding: t; -*-\n"
                                  (mapconcat #'prin1-to-string forms "\n"))
                          nil (expand-file-name name directory)))
          (if (eql 0 (call-process
                      (expand-file-name invocation-name invocation-directory)
                      nil t nil "-Q" "--batch"
                      ;; Not where the add-ons are.
                      "--eval" (format "%S" `(setq load-path
                                                   ',(seq-remove
                                                      #'gemini-companion-part-test-package-p
                                                      load-path)))
                      "-L" directory
                      "--eval" (format "%S" `(let ((directory ,directory))
                                               (print ,form)))))
              (progn (goto-char (point-max))
                     (backward-sexp)
                     (read (current-buffer)))
            (buffer-string)))
      (delete-directory directory 'recursive))))

(ert-deftest gemini-companion-part-core-has-no-dead-row-without-add-ons ()
  ;; What needs the first one is all that is not in the core.
  (dolist (name (mapcar #'car gemini-companion-part--addons))
    (let ((parts (gemini-companion-part-addon-parts (list name))))
      (ert-info ((format "%s" parts))
        (should (equal (seq-difference
                        (mapcar #'cadr (gemini-companion-commands-in 'global))
                        (cl-loop for part in parts append
                                 (cl-loop for (_ _ . rows)
                                          in (gemini-companion-part-commands part)
                                          append
                                          (cl-loop for row in rows
                                                   when (memq 'global (nth 3 row))
                                                   collect (cadr row)))))
                       (gemini-companion-part-test-run
                        parts gemini-companion-part-test-program)))))))

(ert-deftest gemini-companion-part-addons-go-with-what-they-need ()
  (should (equal '(addon-pages addon-check addon-prompts addon-remote addon-tools)
                 (gemini-companion-part-addon-parts '(pages))))
  (should (equal '(addon-prompts addon-tools)
                 (gemini-companion-part-addon-parts '(tools prompts))))
  (should (equal (gemini-companion-part-addon-parts)
                 (gemini-companion-part-addon-parts '(terminal)))))

(ert-deftest gemini-companion-part-core-needs-no-adapter ()
  "Without the adapter of a CLI, all else is loaded, and starts.
The CLI is not offered then."
  (let ((commands (mapcar #'cadr (gemini-companion-commands-in 'global))))
    (dolist (client gemini-companion-clients)
      (ert-info (client)
        (should (equal (list (remove client gemini-companion-clients) commands)
                       (gemini-companion-part-test-run
                        (list (concat "gemini-companion-client-" client))
                        `(let ((commands ,gemini-companion-part-test-program))
                           (list gemini-companion-clients commands)))))))))

(ert-deftest gemini-companion-part-has-no-command-of-a-removed-add-on ()
  (let* ((commands '(let ((found nil))
                      (require 'gemini-companion)
                      (mapatoms (lambda (symbol)
                                  (when (autoloadp (symbol-function symbol))
                                    (push (nth 1 (symbol-function symbol)) found))))
                      found))
         (all (gemini-companion-part-test-run nil commands)))
    (dolist (part (seq-filter #'gemini-companion-part-load
                              (gemini-companion-part-addon-parts)))
      (let ((features (gemini-companion-test-files-of (list part))))
        (ert-info ((symbol-name part))
          (should (seq-intersection features all))
          (should-not (seq-intersection
                       features
                       (gemini-companion-part-test-run (list part) commands))))))))

(ert-deftest gemini-companion-part-starts-as-its-file-is-loaded-by-use ()
  "Without the mode, it does not."
  (gemini-companion-test-needs-add-on 'changes)
  (dolist (mode '(nil t))
    (should
     (equal
      (list nil mode)
      (gemini-companion-part-test-run
       nil
       `(let ((on-p (lambda ()
                      (and (memq 'gemini-companion-comment--attach
                                 find-file-hook)
                           t))))
          (require 'gemini-companion)
          (setq gemini-companion-mode ,mode)
          (list (funcall on-p)
                (progn (require 'gemini-companion-comment)
                       (funcall on-p)))))))))

(ert-deftest gemini-companion-part-undone-is-loaded-by-the-first-undo ()
  (gemini-companion-test-needs-add-on 'prompts)
  (should
   (equal
    '(nil t (nil))
    (gemini-companion-part-test-run
     nil
     '(progn
        (require 'gemini-companion)
        (require 'gemini-companion-changes)
        (mapc #'gemini-companion-part-start (gemini-companion-parts-loaded))
        (list (featurep 'gemini-companion-undone)
              (progn (run-hook-with-args 'gemini-companion-changes-undo-functions
                                         (gemini-companion-edit-make
                                          :session (gemini-companion-session-make :id "1")
                                          :file "/a")
                                         'deleted)
                     (featurep 'gemini-companion-undone))
              (mapcar #'gemini-companion-undone-first
                      gemini-companion-undone--all)))))))

(ert-deftest gemini-companion-part-core-names-nothing-of-an-add-on ()
  (let* ((features (gemini-companion-test-files-of
                    (gemini-companion-part-addon-parts)))
         (regexp (format "(\\(?:require\\|autoload\\) +'?\"?\\(?:%s\\)\\_>\\|\\_<\\(?:%s\\)-"
                         (regexp-opt features) (regexp-opt features)))
         (found nil))
    (dolist (file (seq-filter (apply-partially #'string-suffix-p ".el")
                              (gemini-companion-test-package-files)))
      (unless (or (member (file-name-base file) features)
                  (member (file-name-base file)
                          ;; The list of autoloads; generated.
                          '("gemini-companion" "gemini-companion-autoloads")))
        (with-temp-buffer
          (insert-file-contents file)
          (emacs-lisp-mode)
          (while (re-search-forward regexp nil t)
            (unless (save-match-data (nth 8 (syntax-ppss)))
              (push (cons (file-name-base file) (match-string 0)) found))))))
    (should-not found)))

(ert-deftest gemini-companion-part-core-asks-whether-a-command-of-an-add-on-exists ()
  "No file of the core calls such a command, or binds it, without that."
  (let* ((parts (gemini-companion-part-addon-parts))
         (features (gemini-companion-test-files-of parts))
         (commands (cl-loop for part in parts append
                            (cl-loop for (_ _ . rows)
                                     in (gemini-companion-part-commands part)
                                     append (mapcar #'cadr rows))))
         (own (seq-mapcat (lambda (group) (mapcar #'cadr (cdr group)))
                          gemini-companion-commands--core))
         (regexp (format "\\(?:(\\|#'\\|'\\)\\(%s\\)\\_>"
                         (regexp-opt
                          (seq-filter (apply-partially #'string-prefix-p
                                                       "gemini-companion-")
                                      (mapcar #'symbol-name
                                              (seq-difference commands own))))))
         (found nil))
    (dolist (file (seq-filter (apply-partially #'string-suffix-p ".el")
                              (gemini-companion-test-package-files)))
      (unless (or (member (file-name-base file) features)
                  (string-suffix-p "-autoloads" (file-name-base file)))
        (with-temp-buffer
          (insert-file-contents file)
          (emacs-lisp-mode)
          (while (re-search-forward regexp nil t)
            (let ((name (match-string 1))
                  (start (match-beginning 0)))
              (unless (or (save-match-data (nth 8 (syntax-ppss)))
                          (save-excursion
                            (goto-char start)
                            (looking-back "(\\(?:autoload\\|fboundp\\) " nil))
                          (save-excursion
                            (goto-char (point-min))
                            (re-search-forward
                             (format "(\\(?:fboundp\\|gemini-companion-commands-hint\\)[ \n]+'%s\\_>"
                                     name)
                             start t))
                          (save-excursion
                            (goto-char start)
                            (looking-back "gemini-companion-commands-hint[ \n]+" nil)))
                (push (cons (file-name-base file) name) found)))))))
    (should-not found)))

(ert-deftest gemini-companion-part-of-a-new-add-on-needs-no-other-file ()
  "An add-on as by the recipe in doc/design.org has all that it contributes."
  (should
   (equal
    '("w" watch-clock                   ; its row, after that of the core
      (("Clock" note "It is late"))
      ("wants a break"))
    (gemini-companion-part-test-run
     nil
     '(progn
        (require 'gemini-companion-part)
        (setq gemini-companion-part--addons
              (append gemini-companion-part--addons '((clock pages))))
        (require 'gemini-companion)
        (let ((row (car (last (cdr (assoc "Connection" gemini-companion-commands))))))
          (call-interactively (nth 1 row))
          (require 'gemini-companion-request)
          (list (nth 0 row) (nth 1 row)
                (gemini-companion-part-findings 'clock "/")
                (mapcar #'gemini-companion-request-label
                        (gemini-companion-requests)))))
     '(("gemini-companion-addon-clock.el"
        (require 'gemini-companion-part)
        (autoload 'watch-clock "gemini-companion-clock" nil t)
        (cl-defmethod gemini-companion-part-members ((_part (eql 'addon-clock)))
          '((clock status)))
        (cl-defmethod gemini-companion-part-commands ((_part (eql 'addon-clock)))
          '(("Connection" "," ("w" watch-clock "Watch the clock" (global)))))
        (provide 'gemini-companion-addon-clock))
       ("gemini-companion-clock.el"
        (require 'gemini-companion-request)
        (cl-defstruct (clock-request (:include gemini-companion-request
                                               (kind 'clock))))
        (defvar clock-requests (list (make-clock-request :session
                                                         (gemini-companion-session-make :id "1"))))
        (cl-defmethod gemini-companion-request-label ((_ clock-request))
          "wants a break")
        (cl-defmethod gemini-companion-part-hooks ((_part (eql 'clock)))
          '((gemini-companion-request-list-functions clock-open)))
        (cl-defmethod gemini-companion-part-findings ((_part (eql 'clock)) _)
          '(("Clock" note "It is late")))
        (defun clock-open () clock-requests)
        (defun watch-clock ()
          (interactive)
          ;; The mode may be on already.
          (gemini-companion-part-start 'clock))
        (provide 'gemini-companion-clock)))))))

;;; gemini-companion-part-test.el ends here
