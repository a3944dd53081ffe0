;;; gemini-companion-tools-test.el --- Tests of the questions of a CLI  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The real server, asked over HTTP as the bridge asks it; the command that
;; links CLIs; and answers about real files, from the Lisp of this Emacs, from
;; Flymake, and from a language server where Eglot and one are installed.

;;; Code:

(require 'gemini-companion-code)
(require 'gemini-companion-server-test-helper)
(require 'gemini-companion-tools)
(require 'json)

(defvar eglot-autoshutdown)
(defvar eglot-server-programs)
(defvar eglot-sync-connect)
(declare-function eglot-current-server "eglot")
(declare-function eglot-ensure "eglot")
(declare-function eglot-managed-p "eglot")
(declare-function eglot-shutdown "eglot")
(declare-function eglot--signal-textDocument/didChange "eglot")
(declare-function flycheck-buffer "ext:flycheck")
(declare-function flycheck-define-error-level "ext:flycheck")
(declare-function flycheck-define-generic-checker "ext:flycheck")
(declare-function flycheck-error-new-at "ext:flycheck")
(declare-function flycheck-mode "ext:flycheck")
(declare-function flymake-make-diagnostic "flymake")
(declare-function flymake-running-backends "flymake")
(declare-function flymake-reporting-backends "flymake")
(declare-function flymake-start "flymake")
(declare-function project-remember-project "project")
(defvar flycheck-checkers)
(defvar flymake-diagnostic-functions)
(defvar flymake-list-only-diagnostics)
(defvar flymake-timer)

;;;; Helpers

(defmacro gemini-companion-tools-test-with-home (&rest body)
  "Run BODY in a home with the directories of Gemini CLI and Qwen Code."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory nil
     (let* ((process-environment
             (append (list (concat "HOME=" directory) "GEMINI_CLI_HOME" "QWEN_HOME")
                     process-environment))
            (gemini-companion-install-directory
             (expand-file-name "emacs/" directory))
            (gemini-companion-server-command
             (list (gemini-companion-test-python)
                   "-m" "gemini_companion_epc")))
       (make-directory ".gemini")
       (make-directory ".qwen")
       ,@body)))

(defmacro gemini-companion-tools-test-answering (answers &rest body)
  "Run BODY while each question of y or n is answered by one of ANSWERS."
  (declare (indent 1) (debug t))
  (let ((left (make-symbol "left")))
    `(let ((,left ,answers))
       (cl-letf (((symbol-function 'y-or-n-p) (lambda (_) (pop ,left))))
         ,@body))))

(defun gemini-companion-tools-test-files (directory)
  "Return the names of the files and directories below DIRECTORY."
  (mapcar (lambda (file) (file-relative-name file directory))
          (directory-files-recursively directory "" t)))

(defun gemini-companion-tools-test-answer (function &rest args)
  "Return what FUNCTION, called with ARGS, answers."
  (let ((answer nil))
    (apply function
           (append args (list (lambda (value) (setq answer (list value))))))
    (gemini-companion-test-eventually answer)
    (car answer)))

(defmacro gemini-companion-tools-test-in-project (files &rest body)
  "Run BODY in a project with FILES, whose directory is a root."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory ,files
     (unwind-protect
         (progn
           (call-process "git" nil nil nil "init" "-q")
           (gemini-companion-privacy-refresh)
           (gemini-companion-roots directory)
           ,@body)
       (gemini-companion-roots-forget)
       (gemini-companion-privacy-forget))))

;;;; Command

(ert-deftest gemini-companion-tools-links-and-unlinks-each-cli ()
  (gemini-companion-tools-test-with-home
    (let ((before (gemini-companion-tools-test-files directory)))
      (gemini-companion-tools-test-answering '(t t)
        (gemini-companion-tools))
      (should (gemini-companion-tools-extension-p))
      (should (equal '("gemini" "qwen")
                     (seq-filter #'gemini-companion-tools-linked-p
                                 (gemini-companion-tools-clients))))
      (should (file-exists-p (gemini-companion-tools-policy-file)))
      (dolist (name '("gemini-extension.json" "qwen-extension.json"
                      "hooks/hooks.json"))
        (should (json-read-file
                 (expand-file-name
                  name
                  (gemini-companion-tools-directory)))))
      ;; As a CLI records that the user has disabled it.
      (write-region "{\"gemini-companion\": {\"overrides\": [\"!/*\"]}}" nil
                    ".gemini/extensions/extension-enablement.json" nil 'silent)
      (gemini-companion-tools-test-answering '(t)
        (gemini-companion-tools))
      (delete-directory gemini-companion-install-directory)
      (should (equal before (gemini-companion-tools-test-files directory))))))

(ert-deftest gemini-companion-tools-hooks-of-running-clis-outlive-the-link ()
  (gemini-companion-tools-test-with-home
    (gemini-companion-tools-write-extension)
    (let ((commands
           (mapcar
            (lambda (name)
              (let ((text (gemini-companion-test-file-text
                           (expand-file-name
                            name (gemini-companion-tools-directory)))))
                (should (string-match "\"command\":\\(\"[^\"]*--hook[^\"]*\"\\)"
                                      text))
                (json-read-from-string (match-string 1 text))))
            '("hooks/hooks.json" "qwen-extension.json"))))
      (gemini-companion-tools-delete-extension)
      (dolist (command commands)
        (with-temp-buffer
          (should (eq 0 (call-process "sh" nil '(t nil) nil "-c" command)))
          (should (equal "{}\n" (buffer-string))))))))

(ert-deftest gemini-companion-tools-does-nothing-without-a-yes ()
  (gemini-companion-tools-test-with-home
    (let ((before (gemini-companion-tools-test-files directory)))
      (gemini-companion-tools-test-answering '(nil)
        (should-error (gemini-companion-tools) :type 'user-error))
      (should (equal before (gemini-companion-tools-test-files directory))))))

(ert-deftest gemini-companion-tools-links-without-hooks-while-the-mode-is-off ()
  (gemini-companion-tools-test-with-home
    (let ((before (gemini-companion-test-hooks)))
      (gemini-companion-tools-test-answering '(t t)
        (gemini-companion-tools))
      (should (gemini-companion-tools-linked-p "gemini"))
      (should (equal before (gemini-companion-test-hooks))))))

(ert-deftest gemini-companion-tools-links-all-or-nothing ()
  (gemini-companion-tools-test-with-home
    (let ((before (gemini-companion-tools-test-files directory)))
      ;; The user quits the second question.
      (should (eq 'quit
                  (condition-case nil
                      (cl-letf (((symbol-function 'y-or-n-p)
                                 (lambda (question)
                                   (or (string-search "A linked CLI" question)
                                       (signal 'quit nil)))))
                        (gemini-companion-tools))
                    (quit 'quit))))
      (should (equal before (gemini-companion-tools-test-files directory))))
    (write-region "" nil ".gemini/policies" nil 'silent)
    (gemini-companion-tools-test-answering '(t t)
      (should-error (gemini-companion-tools) :type 'file-error))
    (should-not (gemini-companion-tools-extension-p))
    (should-not (file-exists-p ".gemini/extensions"))))

(ert-deftest gemini-companion-tools-links-nothing-without-the-bridge ()
  (gemini-companion-tools-test-with-home
    (let ((gemini-companion-server-directory directory)
          (before (gemini-companion-tools-test-files directory)))
      (gemini-companion-tools-test-answering '(t t)
        (should-error (gemini-companion-tools) :type 'file-error))
      (should (equal before (gemini-companion-tools-test-files directory))))))

(ert-deftest gemini-companion-tools-link-works-after-an-update ()
  (gemini-companion-tools-test-with-home
    (gemini-companion-tools-test-answering '(t nil)
      (gemini-companion-tools))
    (should-not (file-exists-p (gemini-companion-tools-policy-file)))
    (let ((bridge (expand-file-name "bridge.py"
                                    (gemini-companion-tools-directory))))
      (write-region "old" nil bridge nil 'silent)
      (gemini-companion-tools-ready 'started)
      (should (string-search "MCP" (gemini-companion-test-file-text bridge))))
    (gemini-companion-tools-stop)))

(ert-deftest gemini-companion-tools-keeps-what-belongs-to-other-extensions ()
  (gemini-companion-tools-test-with-home
    (gemini-companion-tools-write-extension)
    (gemini-companion-tools-link-client "gemini")
    (write-region "{\"other\": {\"overrides\": [\"/*\"]},
                    \"gemini-companion\": {\"overrides\": [\"!/*\"]}}" nil
                    ".gemini/extensions/extension-enablement.json" nil 'silent)
    (gemini-companion-tools-delete-extension)
    (should (equal "{\"other\":{\"overrides\":[\"/*\"]}}"
                   (gemini-companion-test-file-text
                    ".gemini/extensions/extension-enablement.json")))))

(ert-deftest gemini-companion-tools-deletes-the-record-of-qwen-code ()
  (gemini-companion-tools-test-with-home
    (gemini-companion-tools-write-extension)
    (gemini-companion-tools-link-client "qwen")
    (let ((record "\"%s\":{\"name\":\"%s\",\"workspaceOverrides\":{}}")
          (state "{\"version\":2,\"extensions\":{%s},\"old\":null}")
          (file ".qwen/extension-store/state.json"))
      (make-directory ".qwen/extension-store")
      (pcase-dolist (`(,before ,after)
                     `((,(format record "a" "gemini-companion") "")
                       (,(concat (format record "a" "gemini-companion") ","
                                 (format record "b" "other"))
                        ,(format record "b" "other"))))
        (write-region (format state before) nil file nil 'silent)
        (gemini-companion-tools-link-client "qwen")
        (gemini-companion-tools-delete-extension)
        (should (equal (format state after)
                       (gemini-companion-test-file-text file)))))))

(ert-deftest gemini-companion-tools-keeps-another-extension-of-its-name ()
  (gemini-companion-tools-test-with-home
    (let ((other ".gemini/extensions/gemini-companion/"))
      (make-directory other t)
      (write-region "{}" nil (concat other "gemini-extension.json")
                    nil 'silent)
      (write-region "git" nil (concat other ".gemini-extension-install.json")
                    nil 'silent)
      (let ((before (gemini-companion-tools-test-files directory)))
        (should (string-search "another extension"
                               (cadr (should-error (gemini-companion-tools)
                                                   :type 'user-error))))
        (should (equal before (gemini-companion-tools-test-files directory)))
        (should (equal "git" (gemini-companion-test-file-text
                              (concat other
                                      ".gemini-extension-install.json"))))))))

(ert-deftest gemini-companion-tools-keeps-a-link-of-another-directory ()
  (gemini-companion-tools-test-with-home
    (gemini-companion-tools-write-extension)
    (gemini-companion-tools-link-client "gemini")
    (let ((gemini-companion-install-directory
           (expand-file-name "other/" directory)))
      (gemini-companion-tools-delete-extension))
    (should (gemini-companion-tools-linked-p "gemini"))))

;;;; Status

(defun gemini-companion-tools-test-texts (directory)
  "Return the texts of the findings for DIRECTORY, of each client."
  (mapcar #'cadr (gemini-companion-tools-findings directory #'ignore)))

(ert-deftest gemini-companion-tools-status-shows-why-a-cli-does-not-ask ()
  (gemini-companion-tools-test-with-home
    (should (string-search "No CLI is linked"
                           (car (gemini-companion-tools-test-texts directory))))
    (gemini-companion-tools-test-answering '(t nil)
      (gemini-companion-tools))
    (should (string-search "is not trusted, so questions are not offered and \
edits are not reported"
                           (car (gemini-companion-tools-test-texts directory))))
    (write-region (json-encode `((,directory . "TRUST_FOLDER"))) nil
                  ".gemini/trustedFolders.json" nil 'silent)
    (should (string-search "Gemini CLI is linked; 0 questions and 0 edits"
                           (car (gemini-companion-tools-test-texts directory))))
    (pcase-dolist
        (`(,file ,text ,reason)
         '(("settings.json" "{\"hooksConfig\": {\"enabled\": false}}"
            "hooksConfig.enabled is false")
           ("settings.json" "{\"hooksConfig\": {\"disabled\": [\"emacs\"]}}"
            "hooksConfig.disabled has emacs")
           ("mcp-server-enablement.json" "{\"emacs\": {\"enabled\": false}}"
            "the server emacs is disabled")
           ("settings.json" "{\"mcp\": {\"allowed\": [\"other\"]}}"
            "mcp.allowed lacks emacs")
           ("settings.json" "{\"mcp\": {\"excluded\": [\"emacs\"]}}"
            "mcp.excluded has emacs")
           ("trustedFolders.json" "{\"/\": \"DO_NOT_TRUST\"}" "is not trusted")
           ("extensions/extension-enablement.json"
            "{\"gemini-companion\": {\"overrides\": [\"!/*\"]}}"
            "the extension is disabled")))
      (let ((file (expand-file-name file ".gemini")))
        (write-region text nil file nil 'silent)
        (should (string-search reason (car (gemini-companion-tools-test-texts
                                            directory))))
        (delete-file file)))
    (dolist (rules '(["!/elsewhere/*"] ["!/*" "/*"] ["!/"]))
      (write-region (json-encode `((gemini-companion . ((overrides . ,rules)))))
                    nil ".gemini/extensions/extension-enablement.json"
                    nil 'silent)
      (should-not (string-search "is disabled"
                                 (car (gemini-companion-tools-test-texts
                                       directory)))))
    (gemini-companion-tools-test-answering '(t)
      (gemini-companion-tools))))

(ert-deftest gemini-companion-tools-status-names-the-command-of-trust ()
  (gemini-companion-tools-test-with-home
    (write-region "{\"security\": {\"folderTrust\": {\"enabled\": true}}}" nil
                  ".qwen/settings.json" nil 'silent)
    (gemini-companion-tools-test-answering '(t nil)
      (gemini-companion-tools))
    (let ((remedies (lambda ()
                      (delq nil (mapcar #'caddr (gemini-companion-tools-findings
                                                 directory #'ignore))))))
      (should (equal
               '("To trust the directory, type /permissions trust in Gemini CLI there."
                 "To trust the directory, type /trust in Qwen Code there.")
               (seq-take (funcall remedies) 2)))
      (dolist (home '(".gemini" ".qwen"))
        (write-region (json-encode `((,directory . "TRUST_FOLDER"))) nil
                      (expand-file-name "trustedFolders.json" home)
                      nil 'silent))
      (should-not (string-search "To trust" (format "%s" (funcall remedies)))))
    (gemini-companion-tools-test-answering '(t)
      (gemini-companion-tools))))

(ert-deftest gemini-companion-tools-status-asks-no-remote-host ()
  (gemini-companion-tools-test-with-home
    (gemini-companion-tools-test-answering '(t nil)
      (gemini-companion-tools))
    (write-region "{\"/\": \"TRUST_FOLDER\"}" nil
                  ".gemini/trustedFolders.json" nil 'silent)
    (let* ((asked nil)
           (handler (lambda (operation &rest args)
                      (pcase operation
                        ('file-remote-p "/mock:host:")
                        ((or 'expand-file-name 'file-name-as-directory)
                         (car args))
                        (_ (push operation asked) (car args)))))
           (file-name-handler-alist (cons (cons "\\`/mock:" handler)
                                          file-name-handler-alist)))
      (should (string-search
               "Gemini CLI is linked; "
               (car (gemini-companion-tools-test-texts "/mock:host:/x/"))))
      (should-not asked))
    (gemini-companion-tools-test-answering '(t)
      (gemini-companion-tools))))

;;;; Server

(defconst gemini-companion-tools-test-program "
import http.client, json, sys
port, token, body = sys.argv[1:]
connection = http.client.HTTPConnection('127.0.0.1', int(port))
connection.request('POST', '/tools', body, {
    'Authorization': f'Bearer {token}', 'Content-Type': 'application/json'})
response = connection.getresponse()
print(response.status, response.read().decode())
"
  "Program that posts what the bridge posts, and prints the answer.")

(defun gemini-companion-tools-test-post (&rest request)
  "Return what the server answers to REQUEST, a plist."
  (let ((info (gemini-companion-server-info)))
    (string-trim
     (gemini-companion-test-output
      (gemini-companion-test-python) "-c" gemini-companion-tools-test-program
      (number-to-string (plist-get info :port)) (plist-get info :token)
      (json-encode (append (list :directory default-directory) request))))))

(ert-deftest gemini-companion-tools-are-answered-once-they-are-linked ()
  (gemini-companion-tools-test-with-home
    (write-region "(defun gemini-companion-tools-test-x ())\n" nil "a.el")
    (let ((process-environment (cons (concat "TMPDIR=" directory)
                                     process-environment)))
      (make-directory "project/.git" t)
      (rename-file "a.el" "project/")
      (setq default-directory (expand-file-name "project/"))
      (unwind-protect
          (progn
            (gemini-companion-mode)
            (gemini-companion-test-eventually (gemini-companion-server-ready-p))
            (should (string-prefix-p
                     "404" (gemini-companion-tools-test-post :method "list")))
            (gemini-companion-tools-test-answering '(t nil)
              (gemini-companion-tools))
            (gemini-companion-test-eventually
              (string-prefix-p
               "200" (gemini-companion-tools-test-post :method "list")))
            (let ((ask (lambda ()
                         (gemini-companion-tools-test-post
                          :method "call" :name "definition"
                          :arguments '(:file "a.el" :symbol "no-such")))))
              (should (string-search "No definition of no-such" (funcall ask)))
              (should (string-search "Emacs does not check this file"
                                     (gemini-companion-tools-test-post
                                      :method "call" :name "diagnostics"
                                      :arguments '(:file "a.el"))))
              (should (file-exists-p "a.el"))
              (gemini-companion-pause)
              (should (string-search "paused" (funcall ask)))
              (gemini-companion-pause)
              (should (equal '(3 0) (gemini-companion-tools-counts)))
              ;; The server asks this by itself.
              (gemini-companion-tools-ask 0 'visible (list :files nil))
              (should (equal '(3 0) (gemini-companion-tools-counts)))
              ;; The events have no texts.
              (save-window-excursion
                (gemini-companion-events-buffer))
              (let ((events (gemini-companion-test-text
                             "*gemini-companion events*")))
                (should (string-search "<- ask" events))
                (should-not (string-search "no-such" events)))
              (kill-buffer "*gemini-companion events*"))
            (gemini-companion-tools-test-answering '(t)
              (gemini-companion-tools))
            (gemini-companion-test-eventually
              (string-prefix-p
               "404" (gemini-companion-tools-test-post :method "list"))))
        (when gemini-companion-paused (gemini-companion-pause))
        (gemini-companion-mode -1)
        (gemini-companion-test-eventually
          (not (gemini-companion-test-processes)))))))

;;;; Definitions and diagnostics

(ert-deftest gemini-companion-tools-connects-to-no-remote-host ()
  (let* (operations
         answers
         (handler (lambda (operation &rest _)
                    (push operation operations)
                    "/mock:host:"))
         (file-name-handler-alist (cons (cons "\\`/mock:" handler)
                                        file-name-handler-alist)))
    (dolist (kind '(references definition diagnostics))
      (gemini-companion-tools-answer
       (lambda (answer) (push (plist-get answer :problem) answers))
       kind '(:path "/mock:host:/a.py" :symbol "a")))
    (should (equal (make-list 3 "/mock:host:/a.py is not shared by Emacs")
                   answers))
    (should (equal '(file-remote-p) (delete-dups operations)))))

(ert-deftest gemini-companion-code-defines-a-symbol-of-lisp ()
  (gemini-companion-tools-test-in-project
      '(("a.el" "\n(defun gemini-companion-tools-test-f ()
  \"Do nothing.\"
  nil)\n\n(gemini-companion-tools-test-f)\n"))
    (load (expand-file-name "a.el") nil t)
    (let ((answer (gemini-companion-tools-test-answer
                   #'gemini-companion-code-definition
                   (expand-file-name "a.el") "gemini-companion-tools-test-f"
                   nil)))
      (should (equal `((,(expand-file-name "a.el") 2))
                     (plist-get answer :places)))
      (should (string-search "Do nothing." (plist-get answer :documentation)))
      (should (equal "(defun gemini-companion-tools-test-f ()
  \"Do nothing.\"
  nil)"
                     (plist-get answer :source))))
    (should (plist-get (gemini-companion-tools-test-answer
                        #'gemini-companion-code-references
                        (expand-file-name "a.el") "nil" nil nil)
                       :problem))))

(ert-deftest gemini-companion-code-has-the-documentation-of-compiled-lisp ()
  (gemini-companion-tools-test-in-project
      '(("a.el" ";; -*- lexical-binding: t -*-
(defvar gemini-companion-tools-test-v nil\n  \"Be nil.\")\n"))
    (let ((byte-compile-verbose nil))
      (byte-compile-file (expand-file-name "a.el")))
    (load (expand-file-name "a.elc") nil t)
    (should (equal "Be nil."
                   (plist-get (gemini-companion-tools-test-answer
                               #'gemini-companion-code-definition
                               (expand-file-name "a.el")
                               "gemini-companion-tools-test-v" nil)
                              :documentation)))))

(defun gemini-companion-tools-test-flymake (report &rest _)
  "Call REPORT with an error on line 2 and a warning on line 1."
  (funcall report (list (flymake-make-diagnostic (current-buffer) 1 2
                                                 :warning "odd")
                        (flymake-make-diagnostic (current-buffer) 5 6
                                                 :error "bad"))))

(defvar gemini-companion-tools-test-report nil
  "Function that ends the check of `gemini-companion-tools-test-slow'.")

(defun gemini-companion-tools-test-slow (report &rest _)
  "Check this buffer until `gemini-companion-tools-test-report' is called.
REPORT is called with an error then."
  (setq gemini-companion-tools-test-report
        (lambda ()
          (funcall report (list (flymake-make-diagnostic (current-buffer) 1 2
                                                         :error "bad"))))))

(ert-deftest gemini-companion-code-waits-for-the-check-of-the-present-text ()
  (gemini-companion-tools-test-in-project '(("a.txt" "one\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (add-hook 'flymake-diagnostic-functions
                #'gemini-companion-tools-test-slow nil t)
      (flymake-mode)
      (flymake-start)
      (let (answer)
        (gemini-companion-code-diagnostics
         buffer-file-name (lambda (value) (setq answer value)))
        (should-not answer)
        (funcall gemini-companion-tools-test-report)
        (gemini-companion-test-eventually answer)
        (should (equal '(:rows ((1 "error: bad"))) answer)))
      (flymake-start)
      (should (string-search "ask again"
                             (plist-get (gemini-companion-tools-test-answer
                                         #'gemini-companion-code-diagnostics
                                         buffer-file-name)
                                        :problem))))))

(ert-deftest gemini-companion-code-has-no-diagnostics-of-what-is-not-checked ()
  (gemini-companion-tools-test-in-project '(("a.txt" "one\n"))
    (let ((ask (lambda ()
                 (plist-get (gemini-companion-tools-test-answer
                             #'gemini-companion-code-diagnostics
                             (expand-file-name "a.txt"))
                            :problem))))
      (should (string-search "does not check" (funcall ask)))
      (with-current-buffer (find-file-noselect "a.txt")
        (should (string-search "does not check" (funcall ask)))
        (setq-local flymake-diagnostic-functions
                    '(gemini-companion-tools-test-flymake))
        (flymake-mode)
        (flymake-start)
        (gemini-companion-test-eventually (flymake-reporting-backends))
        (should-not (funcall ask))
        ;; As that of Eglot, when its language server ends.
        (setq-local flymake-diagnostic-functions nil)
        (should (string-search "does not check" (funcall ask)))
        (flymake-start)
        (should (string-search "does not check" (funcall ask)))))))

(ert-deftest gemini-companion-code-has-the-diagnostics-of-flymake ()
  (gemini-companion-tools-test-in-project '(("a.txt" "one\ntwo\n"))
    (find-file-noselect "a.txt")
    (with-current-buffer "a.txt"
      (add-hook 'flymake-diagnostic-functions
                #'gemini-companion-tools-test-flymake nil t)
      (flymake-mode)
      (flymake-start)
      (gemini-companion-test-eventually
        (and (flymake-reporting-backends)
             (null (seq-difference (flymake-running-backends)
                                   (flymake-reporting-backends))))))
    (should (equal '(:rows ((2 "error: bad") (1 "warning: odd")))
                   (gemini-companion-tools-test-answer
                    #'gemini-companion-code-diagnostics
                    (expand-file-name "a.txt"))))
    (should (equal `(:rows ((,(expand-file-name "a.txt")
                             "1 errors, 1 warnings")))
                   (gemini-companion-tools-test-answer
                    #'gemini-companion-code-diagnostics nil)))))

;;;; Flycheck

(defun gemini-companion-tools-test-flycheck (checker callback)
  "Call CALLBACK with errors of CHECKER, some in this buffer.
The text of the first one is the first line."
  (let ((text (buffer-substring (point-min) (line-end-position)))
        (buffer (current-buffer)))
    (run-at-time
     0.1 nil
     (lambda ()
       (with-current-buffer buffer
         (funcall
          callback 'finished
          (list
           (flycheck-error-new-at 2 1 'warning "odd\nthing" :checker checker)
           (flycheck-error-new-at 3 1 'gemini-companion-tools-test-level "bad"
                                  :checker checker)
           (flycheck-error-new-at 1 1 'error text :checker checker)
           (flycheck-error-new-at 1 1 'error "secret" :checker checker
                                  :filename (expand-file-name ".env")))))))))

(ert-deftest gemini-companion-code-has-the-diagnostics-of-flycheck ()
  (skip-unless (require 'flycheck nil t))
  (flycheck-define-error-level 'gemini-companion-tools-test-level
    :severity 200 :compilation-level 2)
  (flycheck-define-generic-checker 'gemini-companion-tools-test "A checker."
    :start #'gemini-companion-tools-test-flycheck
    :modes '(text-mode))
  (gemini-companion-tools-test-in-project '(("a.txt" "one\ntwo\nthree\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (let ((flycheck-checkers '(gemini-companion-tools-test))
            (ask (lambda ()
                   (gemini-companion-tools-test-answer
                    #'gemini-companion-code-diagnostics buffer-file-name)))
            (rows (lambda (text)
                    `(:rows ((1 ,(concat "error: " text)) (3 "error: bad")
                             (2 "warning: odd thing"))))))
        (flycheck-mode)
        (should (equal (funcall rows "one") (funcall ask)))
        ;; Flycheck does not check it by itself, as it is in no window.
        (insert "now ")
        (should (equal (funcall rows "now one") (funcall ask)))
        (setq flycheck-checkers nil)
        (insert "then ")
        (should (string-search "does not check"
                               (plist-get (funcall ask) :problem)))
        (set-buffer-modified-p nil)))))

(ert-deftest gemini-companion-code-answers-nothing-about-hidden-files ()
  (gemini-companion-tools-test-in-project
      '((".env" "KEY=1\n") ("a.txt" "KEY\n") (".geminiignore" "ignored.txt\n")
        ("ignored.txt" "KEY\n"))
    (let ((gemini-companion-excluded (cons 'nroff-mode
                                           gemini-companion-excluded)))
      (write-region "KEY\n" nil "a.man" nil 'silent)
      (make-symbolic-link ".env" "innocent.txt")
      (let ((hidden (mapcar #'expand-file-name
                            '(".env" "ignored.txt" "a.man" "innocent.txt")))
            (a (expand-file-name "a.txt")))
        (should (equal (list a)
                       (plist-get (gemini-companion-tools-test-answer
                                   #'gemini-companion-code-visible
                                   (append hidden (list a "/etc/passwd")))
                                  :files)))
        (dolist (file (cons "/etc/passwd" hidden))
          (dolist (answer
                   (list (gemini-companion-tools-test-answer
                          #'gemini-companion-code-references
                          file "KEY" nil nil)
                         (gemini-companion-tools-test-answer
                          #'gemini-companion-code-definition file "KEY" nil)
                         (gemini-companion-tools-test-answer
                          #'gemini-companion-code-diagnostics file)))
            (should (equal (list :problem
                                 (format "%s is not shared by Emacs" file))
                           answer))))))))

;;;; Language server

(defvar gemini-companion-tools-test-server
  (list (expand-file-name "pylsp"
                          (file-name-directory (gemini-companion-test-python))))
  "The command of the language server.")

(defmacro gemini-companion-tools-test-with-eglot (files &rest body)
  "Run BODY in a project with FILES, Eglot managing the first one.
Skip the test if Eglot or the language server is not installed."
  (declare (indent 1) (debug t))
  `(progn
     (skip-unless (and (require 'eglot nil t)
                       (executable-find
                        (car gemini-companion-tools-test-server))))
     (gemini-companion-tools-test-in-project ,files
       (let ((eglot-server-programs
              `((python-mode ,@gemini-companion-tools-test-server)))
             (eglot-sync-connect nil)
             (inhibit-message t)
             (server nil))
         (with-current-buffer (find-file-noselect (caar ,files))
           (cl-letf (((symbol-function 'file-notify-add-watch) #'ignore))
             (eglot-ensure)
             (run-hooks 'post-command-hook)
             (gemini-companion-test-eventually
               (setq server (eglot-current-server)))
             (gemini-companion-test-eventually (eglot-managed-p))
             (unwind-protect
                 (progn ,@body)
               (eglot-shutdown server nil 20))))))))

(defconst gemini-companion-tools-test-project
  '(("a.py" "def helper(x: int) -> int:
    \"\"\"Double X.\"\"\"
    return 2 * x


def other(helper_: int) -> int:
    return helper(helper_)
")
    ("b.py" "from a import helper

y = helper(3), \"\N{GRINNING FACE}\", helper(4)
")
    (".env.py" "from a import helper; TOP_SECRET = helper(5) # bytes of it
def hidden_function(): \"bytes of it\"
")
    ("c.py" "import os

print(os.getcwd())
"))
  "A project with a file that is not shared.")

(defun gemini-companion-tools-test-lines (answer)
  "Return the places in ANSWER as a list of (NAME . LINE)."
  (mapcar (lambda (place)
            (cons (file-name-nondirectory (nth 0 place)) (nth 1 place)))
          (plist-get answer :places)))

(ert-deftest gemini-companion-code-finds-references-wherever-point-is ()
  (gemini-companion-tools-test-with-eglot gemini-companion-tools-test-project
    (let ((expected '(("a.py" . 1) ("a.py" . 7) ("b.py" . 1) ("b.py" . 3)))
          (ask (lambda (file symbol &optional line after)
                 (gemini-companion-tools-test-answer
                  #'gemini-companion-code-references
                  (expand-file-name file) symbol line after))))
      (gemini-companion-test-eventually
        (equal expected
               (gemini-companion-tools-test-lines
                (funcall ask "a.py" "helper"))))
      (goto-char (point-max))
      (dolist (question '(("a.py" "helper" 7) ("b.py" "helper")
                          ("b.py" "helper" 3) ("b.py" "helper" 2)))
        (should (equal expected (gemini-companion-tools-test-lines
                                 (apply ask question)))))
      (should (equal '("def helper(x: int) -> int:" "    return helper(helper_)"
                       "from a import helper")
                     (seq-take (mapcar #'caddr
                                       (plist-get (funcall ask "a.py" "helper")
                                                  :places))
                               3)))
      (let ((rest (funcall ask "a.py" "helper" nil 3)))
        (should (equal '(("b.py" . 3)) (gemini-companion-tools-test-lines rest)))
        (should (= 4 (plist-get rest :total))))
      (should (equal "Line 2 does not have helper; taken from line 1."
                     (plist-get (funcall ask "b.py" "helper" 2) :taken)))
      (should (plist-get (funcall ask "b.py" "help") :problem)))))

(ert-deftest gemini-companion-code-defines-what-the-language-server-knows ()
  (gemini-companion-tools-test-with-eglot gemini-companion-tools-test-project
    (let ((ask (lambda (file symbol)
                 (gemini-companion-tools-test-answer
                  #'gemini-companion-code-definition
                  (expand-file-name file) symbol nil))))
      (gemini-companion-test-eventually
        (plist-get (funcall ask "b.py" "helper") :places))
      (let ((answer (funcall ask "b.py" "helper")))
        (should (equal '(("a.py" . 1))
                       (gemini-companion-tools-test-lines answer)))
        (should (string-search "helper(x: int) -> int"
                               (plist-get answer :documentation)))
        (should (string-prefix-p "def helper" (plist-get answer :source)))
        (should (string-suffix-p "return 2 * x" (plist-get answer :source))))
      ;; Of a library only the place and the documentation.
      (gemini-companion-test-eventually
        (plist-get (funcall ask "c.py" "getcwd") :places))
      (let ((answer (funcall ask "c.py" "getcwd")))
        (should (plist-get answer :documentation))
        (should-not (plist-get answer :source))))))

(ert-deftest gemini-companion-code-asks-no-server-of-another-host ()
  (let ((gemini-companion-tools-test-server
         (gemini-companion-tools-test-fake)))
    (gemini-companion-tools-test-with-eglot '(("a.py" "") ("b.py" ""))
      (let ((file (expand-file-name "b.py")))
        (should (eq (current-buffer) (gemini-companion-code-neighbor file)))
        (let* ((buffer-file-name (concat "/mock:host:" buffer-file-name))
               (handler (lambda (operation &rest args)
                          (let ((file-name-handler-alist nil))
                            (if (eq operation 'file-remote-p)
                                "/mock:host:"
                              (apply operation args)))))
               (file-name-handler-alist (cons (cons "\\`/mock:" handler)
                                              file-name-handler-alist)))
          (should-not (gemini-companion-code-neighbor file)))))))

(ert-deftest gemini-companion-code-names-files-as-eglot-does ()
  (dolist (file '("/a/b.py" "/a b/c:d.py" "/größe/1%.py"))
    (should (equal file (gemini-companion-code-path
                         (gemini-companion-code-uri file))))
    (when-let* (((require 'eglot nil t))
                (uri (seq-find #'fboundp '(eglot-path-to-uri
                                           eglot--path-to-uri))))
      (should (equal (funcall uri file) (gemini-companion-code-uri file)))))
  (should (equal "file:///a%20b/c%3Ad.py"
                 (gemini-companion-code-uri "/a b/c:d.py"))))

;;;; Texts that a language server has not

(defun gemini-companion-tools-test-fake (&rest flags)
  "Return the command of the test's language server with FLAGS."
  `("python3" ,(expand-file-name "test/language_server.py"
                                 gemini-companion-test-root)
    ,@flags))

(ert-deftest gemini-companion-code-has-no-diagnostics-if-nothing-is-checked ()
  (gemini-companion-tools-test-in-project '(("a.txt" "one\n"))
    (with-current-buffer (find-file-noselect "a.txt")
      (let ((flymake-list-only-diagnostics nil))
        (should (string-search
                 "checks no file"
                 (plist-get (gemini-companion-tools-test-answer
                             #'gemini-companion-code-diagnostics nil)
                            :problem)))))))

(ert-deftest gemini-companion-code-has-no-diagnostics-of-a-text-not-open ()
  (let ((gemini-companion-tools-test-server
         (gemini-companion-tools-test-fake "open")))
    (gemini-companion-tools-test-with-eglot
        '(("a.py" "") ("b.py" "error x\n"))
      ;; The server then reports that there are none, as it was closed.
      (should (equal '(1) (gemini-companion-tools-test-references "b.py" "x")))
      (gemini-companion-test-eventually
        (assoc (expand-file-name "b.py") flymake-list-only-diagnostics))
      (gemini-companion-test-eventually
        (null (cdr (assoc (expand-file-name "b.py")
                          flymake-list-only-diagnostics))))
      (should (string-search "does not check"
                             (plist-get (gemini-companion-tools-test-answer
                                         #'gemini-companion-code-diagnostics
                                         (expand-file-name "b.py"))
                                        :problem))))))

(ert-deftest gemini-companion-tools-await-the-report-of-a-server ()
  (let* ((gemini-companion-tools-test-server
          (gemini-companion-tools-test-fake))
         (ask (lambda ()
                ;; Eglot then reports the errors that it knows.
                (flymake-start)
                (plist-get (gemini-companion-tools-test-answer
                            (lambda (answer)
                              (gemini-companion-tools-answer
                               answer 'diagnostics
                               (list :path buffer-file-name))))
                           :rows))))
    (gemini-companion-errors-start)
    (unwind-protect
        (gemini-companion-tools-test-with-eglot '(("a.py" "error x\n"))
          (should (equal '((1 "error: test: x is wrong")) (funcall ask)))
          (delete-region (point-min) (point-max))
          (insert "error y\n")
          ;; Its timer runs in the selected window only.
          (setq flymake-timer nil)
          (eglot--signal-textDocument/didChange)
          (should (equal '((1 "error: test: y is wrong")) (funcall ask)))
          (set-buffer-modified-p nil))
      (gemini-companion-errors-stop))))

(defun gemini-companion-tools-test-references (file symbol)
  "Return the lines of the references to SYMBOL in FILE, or the problem."
  (let ((answer (gemini-companion-tools-test-answer
                 #'gemini-companion-code-references
                 (expand-file-name file) symbol nil nil)))
    (or (plist-get answer :problem)
        (mapcar #'cadr (plist-get answer :places)))))

(ert-deftest gemini-companion-code-asks-about-large-files-without-their-text ()
  (let ((gemini-companion-tools-test-server
         (gemini-companion-tools-test-fake "early")))
    (gemini-companion-tools-test-with-eglot
        `(("a.py" "") ("b.py" ,(concat (make-string 100000 ?\n) "word\n")))
      (should (equal '(100001)
                     (gemini-companion-tools-test-references "b.py" "word")))
      ;; The server reports errors of each text that it is sent.
      (should-not (assoc (expand-file-name "b.py")
                         flymake-list-only-diagnostics)))))

(ert-deftest gemini-companion-code-opens-what-a-server-does-not-know ()
  (let ((gemini-companion-tools-test-server
         (gemini-companion-tools-test-fake "open")))
    (gemini-companion-tools-test-with-eglot
        `(("a.py" "") ("b.py" "\nword word\n")
          ("c.py" ,(concat (make-string 100000 ?\n) "word\n"))
          ("d.py" ,(concat (make-string 1100000 ?\n) "word\n")))
      (dotimes (_ 2)
        (should (equal '(2)
                       (gemini-companion-tools-test-references "b.py" "word"))))
      (dolist (large '("c.py" "d.py"))
        (should (string-search
                 "too large"
                 (gemini-companion-tools-test-references large "word")))))))

(ert-deftest gemini-companion-code-opens-what-a-server-knows-otherwise ()
  (let ((gemini-companion-tools-test-server
         (gemini-companion-tools-test-fake "stale")))
    (gemini-companion-tools-test-with-eglot
        '(("a.py" "") ("b.py" "other\nother\n"))
      (should (equal '(1 2)
                     (gemini-companion-tools-test-references "b.py" "other")))
      (write-region "word\nother\nword\n" nil "b.py" nil 'silent)
      (should (equal '(1 3)
                     (gemini-companion-tools-test-references "b.py" "word"))))))

;;;; Many questions

(defun gemini-companion-tools-test-random (list)
  "Return a random element of LIST."
  (nth (random (length list)) list))

(defun gemini-companion-tools-test-question (files symbols answer)
  "Ask a random question about one of FILES and SYMBOLS, for ANSWER."
  (let ((file (gemini-companion-tools-test-random files))
        (symbol (gemini-companion-tools-test-random symbols))
        (line (gemini-companion-tools-test-random '(nil 1 2 7 100 1000000))))
    (pcase (random 4)
      (0 (gemini-companion-code-references
          file symbol line
          (gemini-companion-tools-test-random '(nil 0 1 1000)) answer))
      (1 (gemini-companion-code-definition file symbol line answer))
      (2 (gemini-companion-code-diagnostics
          (gemini-companion-tools-test-random (list file nil)) answer))
      (3 (gemini-companion-code-visible files answer)))))

(defun gemini-companion-tools-test-view ()
  "Return what the user sees."
  (list (buffer-list)
        (window-list)
        (selected-window)
        (mapcar #'window-start (window-list))
        (mapcar #'window-point (window-list))
        (current-buffer)
        (mapcar (lambda (buffer)
                  (with-current-buffer buffer
                    (list (point) (mark t) mark-active (buffer-modified-p)
                          (point-min) (point-max))))
                (seq-filter #'buffer-file-name (buffer-list)))
        (minibuffer-depth)
        (with-current-buffer (messages-buffer) (buffer-string))))

(defconst gemini-companion-tools-test-symbols
  '("helper" "helper_" "x" "TOP_SECRET" "hidden_function" "getcwd" "os" ".*"
    "no_such" "(" "\\" "def")
  "Symbols to ask about, some of which are in a file that is not shared.")

(defmacro gemini-companion-tools-test-many (count answers &rest body)
  "Ask COUNT random questions, bind their ANSWERS, and evaluate BODY."
  (declare (indent 2) (debug t))
  `(let* ((files (append (mapcar #'expand-file-name
                                 '("a.py" "b.py" "c.py" ".env.py" "none.py"))
                         '("/etc/passwd" "relative" "" "/ssh:nowhere:/a")))
          (before nil)
          (,answers nil)
          (seed (format "%s" (float-time))))
     (random seed)
     (goto-char (point-min))
     (push-mark nil t)
     (goto-char (point-max))
     (string-match "a\\(b\\)" "xab")
     (setq before (gemini-companion-tools-test-view))
     ;; As many at once as the server lets through.
     (dotimes (_ (/ ,count 4))
       (let ((left 4))
         (dotimes (_ 4)
           (gemini-companion-tools-test-question
            files gemini-companion-tools-test-symbols
            (lambda (answer)
              (push answer ,answers)
              (setq left (1- left)))))
         (gemini-companion-test-eventually (zerop left))))
     (ert-info ((format "seed %s" seed))
       (should (equal before (gemini-companion-tools-test-view)))
       ,@body)))

(ert-deftest gemini-companion-code-changes-nothing-by-a-thousand-questions ()
  (gemini-companion-tools-test-in-project gemini-companion-tools-test-project
    (with-current-buffer (find-file-noselect "a.py")
      (gemini-companion-tools-test-many 1000 answers
        ;; A language server may change it.
        (should (equal '(1 3 2 3) (match-data)))
        (should-not (string-search "bytes of it" (format "%S" answers)))))))

(ert-deftest gemini-companion-code-gives-nothing-of-files-not-shared ()
  (gemini-companion-tools-test-with-eglot gemini-companion-tools-test-project
    (gemini-companion-test-eventually
      (plist-get (gemini-companion-tools-test-answer
                  #'gemini-companion-code-definition
                  (expand-file-name "b.py") "helper" nil)
                 :places))
    (gemini-companion-tools-test-many 1000 answers
      (let ((all (format "%S" answers)))
        (should (string-search "return 2 * x" all))
        (should-not (string-search "bytes of it" all))
        (should-not (string-search "helper(5)" all))
        (should-not (seq-some (lambda (answer)
                                (assoc (expand-file-name ".env.py")
                                       (plist-get answer :places)))
                              answers))))))

(provide 'gemini-companion-tools-test)
;;; gemini-companion-tools-test.el ends here
