;;; gemini-companion-status-test.el --- Tests of the status buffer  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion)
(require 'gemini-companion-status)
(require 'gemini-companion-server-test-helper)

(defmacro gemini-companion-status-test--with-status (table &rest body)
  "Run BODY in the status buffer, whose findings are those of TABLE."
  (declare (indent 1))
  `(let ((gemini-companion-status-checks ,table))
     (unwind-protect
         (save-window-excursion
           (gemini-companion-status)
           ,@body)
       (kill-buffer "*gemini-companion status*"))))

(ert-deftest gemini-companion-status-test-says-that-all-is-off ()
  (gemini-companion-status-test--with-status
      gemini-companion-status-checks
    (goto-char (point-min))
    (should (looking-at "gemini-companion is off"))
    (dolist (check gemini-companion-status-checks)
      (unless (equal "Project" (car check))
        (goto-char (point-min))
        (should (search-forward (concat " " (car check) ": ") nil t))))))

(ert-deftest gemini-companion-status-test-asks-programs-without-waiting ()
  (gemini-companion-status-test--with-status
      `(("Program" . ,(lambda (_directory ask)
                        (pcase (funcall ask "sh" "-c" "cat; echo said; exit 3")
                          ('nil (gemini-companion-status-finding 'wait "asking"))
                          (answer (gemini-companion-status-finding
                                   'good (format "%S" answer))))))
        ("None" . ,(lambda (_directory ask)
                     (gemini-companion-status-finding
                      'note (format "%S" (funcall ask "/no/program"))))))
    (should (string-search "Program: asking" (buffer-string)))
    (gemini-companion-test-eventually
      (string-search "Program: (3 . \"said\n\")" (buffer-string)))
    (should (string-match-p "None: ([1-9].*/no/program\\|No such file"
                            (buffer-string)))
    (should-not (gemini-companion-test-timers))))

(ert-deftest gemini-companion-status-test-button-acts-and-checks-again ()
  (let ((fixed nil))
    (gemini-companion-status-test--with-status
        `(("Thing" . ,(lambda (&rest _)
                        (if fixed
                            (gemini-companion-status-finding 'good "fixed")
                          (gemini-companion-status-finding
                           'bad "broken" "Fix it."
                           (cons "Fix" (lambda () (setq fixed t))))))))
      (goto-char (point-min))
      (search-forward "[Fix")
      (push-button (1- (point)))
      (should (string-search "Thing: fixed" (buffer-string))))))

(ert-deftest gemini-companion-status-test-says-what-is-never-shared ()
  (gemini-companion-test-with-folder '(("a" "") (".env" "SECRET=1"))
    (dolist (name '("a" ".env"))
      (with-current-buffer (find-file-noselect name)
        (gemini-companion-status-test--with-status nil
          (should (eq (equal name ".env")
                      (and (string-search
                            (concat (abbreviate-file-name folder)
                                    ".env is not shared")
                            (buffer-string))
                           t))))))))

(ert-deftest gemini-companion-status-test-works-without-epc ()
  (with-temp-buffer
    ;; Eask adds the directories of the packages to it.
    (setq-local process-environment
                (cons (concat "EMACSLOADPATH="
                              (string-join
                               (seq-remove
                                (lambda (directory)
                                  (string-search "/.eask/" directory))
                                (split-string (or (getenv "EMACSLOADPATH") "")
                                              path-separator))
                               path-separator))
                      process-environment))
    (should (equal 0 (call-process
                      (expand-file-name invocation-name invocation-directory)
                      nil '(t nil) nil "-Q" "--batch"
                      "-L" (file-name-directory
                            (locate-library "gemini-companion-status.el"))
                      "-l" "gemini-companion-status"
                      "--eval" "(progn (gemini-companion-status)
                                       (princ (buffer-string)))")))
    (should (string-search "The package epc is not installed"
                           (buffer-string)))
    (should (string-search "Gemini CLI: " (buffer-string)))))

(ert-deftest gemini-companion-status-test-never-asks-another-machine ()
  (let* (asked
         (file-name-handler-alist
          (cons (cons "\\`/far:"
                      (lambda (operation &rest args)
                        (pcase operation
                          ('file-remote-p "/far:")
                          ((or 'expand-file-name 'abbreviate-file-name
                               'file-name-as-directory 'unhandled-file-name-directory)
                           (car args))
                          (_ (push (cons operation args) asked) nil))))
                file-name-handler-alist)))
    (with-temp-buffer
      (setq default-directory "/far:/folder/")
      (gemini-companion-status-test--with-status
          gemini-companion-status-checks
        (should (equal "/far:/folder/" default-directory))
        (should-not asked)))))

(ert-deftest gemini-companion-status-test-leaves-nothing-behind ()
  (let ((timers (length timer-list)))
    (gemini-companion-status-test--with-status
        `(("Program" . ,(lambda (_directory ask)
                          (funcall ask "sleep" "60")
                          (gemini-companion-status-finding 'wait "asking"))))
      (should (process-list)))
    (gemini-companion-test-eventually
      (not (seq-some (lambda (process)
                       (string-prefix-p "gemini-companion question"
                                        (process-name process)))
                     (process-list))))
    (should (= timers (length timer-list)))))

;;;; Checks

(defmacro gemini-companion-status-test--with-folder (folder &rest body)
  "Run BODY with FOLDER bound to a scratch folder, in which all files are.
It is HOME and TMPDIR, too."
  (declare (indent 1))
  `(let* ((,folder (file-name-as-directory
                    (file-truename (make-temp-file "gc" t))))
          (process-environment (default-value 'process-environment)))
     (unwind-protect
         (cl-letf (((default-value 'process-environment)
                    (append (list (concat "HOME=" ,folder)
                                  (concat "TMPDIR=" ,folder)
                                  "GEMINI_CLI_HOME")
                            process-environment)))
           (let ((process-environment (default-value 'process-environment)))
             ,@body))
       (delete-directory ,folder t))))

(defun gemini-companion-status-test--write (file content)
  "Write CONTENT to FILE, in a folder of its own if need be."
  (make-directory (file-name-directory file) t)
  (write-region content nil file nil 'silent))

(defun gemini-companion-status-test--find (title &optional directory ask)
  "Return the findings of the check TITLE for DIRECTORY, with ASK for programs."
  (let ((gemini-companion-status-checks
         (list (assoc title gemini-companion-status-checks))))
    (cdar (gemini-companion-status-findings (or directory "/") (or ask #'ignore)))))

(defun gemini-companion-status-test--marks (title &optional directory ask)
  "Return the mark of each such finding of TITLE, DIRECTORY and ASK."
  (mapcar #'gemini-companion-status-finding-mark
          (gemini-companion-status-test--find title directory ask)))

(ert-deftest gemini-companion-status-test-names-options-that-fail ()
  (unwind-protect
      (let ((gemini-companion-excluded '("["))
            (gemini-companion-roots-function (lambda (_) (error "No"))))
        (should (equal '(good)
                       (gemini-companion-status-test--marks "Options")))
        (should (gemini-companion-privacy-folder-hidden-p temporary-file-directory))
        (should-not (gemini-companion-roots temporary-file-directory))
        (let ((found (gemini-companion-status-test--find "Options")))
          (should (equal '(bad bad)
                         (mapcar #'gemini-companion-status-finding-mark found)))
          (should (string-match-p "excluded" (gemini-companion-status-finding-remedy
                                              (car found))))))
    (gemini-companion-privacy-forget)
    (gemini-companion-roots-forget)))

(ert-deftest gemini-companion-status-test-a-check-that-fails-is-alone ()
  (let ((gemini-companion-status-checks
         `(("One" . ,(lambda (&rest _) (error "Broken")))
           ("Two" . ,(lambda (&rest _) (gemini-companion-status-finding 'good "fine"))))))
    (pcase (gemini-companion-status-findings "/" #'ignore)
      (`(("One" ,one) ("Two" ,two))
       (should (string-search "Broken" (gemini-companion-status-finding-text one)))
       (should (equal "fine" (gemini-companion-status-finding-text two))))
      (other (ert-fail other)))))

(ert-deftest gemini-companion-status-test-works-with-nothing-there ()
  (gemini-companion-status-test--with-folder folder
    (cl-letf (((default-value 'exec-path) nil))
      (let* ((exec-path nil)
             (found (gemini-companion-status-findings folder #'ignore)))
        (should (equal (mapcar #'car gemini-companion-status-checks)
                       (mapcar #'car found)))
        (should (string-search
                 "npm install"
                 (gemini-companion-status-finding-remedy
                  (cadr (assoc "Gemini CLI" found)))))))))

(ert-deftest gemini-companion-status-test-sees-a-server-before-an-update ()
  (gemini-companion-test-with-mode '()
    (should (equal '(good) (gemini-companion-status-test--marks "Server")))
    (let ((gemini-companion-server-version "0.0.1"))
      (should (equal '(bad) (gemini-companion-status-test--marks "Server"))))))

(ert-deftest gemini-companion-status-test-judges-the-version ()
  (pcase-dolist (`(,output . ,mark) '(("0.61.0\n" . good) ("0.31.0" . good)
                                      ("0.30.9\n" . bad) ("v1.2.3-x" . good)
                                      ("hello" . note)))
    (ert-info (output)
      (should (equal (list mark)
                     (let ((gemini-companion-gemini-command "sh"))
                       (gemini-companion-status-test--marks
                        "Gemini CLI" "/" (lambda (&rest _) (cons 0 output)))))))))

(ert-deftest gemini-companion-status-test-judges-the-packages ()
  (pcase-dolist (`(,output . ,mark) '(("Python 3.11.2\nmcp 2.3.0\n" . good)
                                      ("Python 3.9.2\nmcp 2.3.0\n" . bad)
                                      ("Python 3.11.2\nmcp MISSING\n" . bad)))
    (ert-info (output)
      (should (equal (list mark)
                     (let ((gemini-companion-server-command
                            '("p" "-m" "gemini_companion_epc")))
                       (gemini-companion-status-test--marks
                        "Python" "/" (lambda (&rest _) (cons 0 output)))))))))

(ert-deftest gemini-companion-status-test-sees-what-is-wrong-with-the-file ()
  (gemini-companion-test-with-mode '()
    (let* ((info (gemini-companion-server-info))
           (file (car (plist-get info :discovery)))
           (content (lambda (&rest more)
                      (json-encode
                       (append more
                               (list :port (plist-get info :port)
                                     :authToken (plist-get info :token)
                                     :workspacePath "/a:/b")))))
           (finding (lambda (content &optional mode)
                      (gemini-companion-status-test--write file content)
                      (set-file-modes file (or mode #o600))
                      (gemini-companion-status-finding-text
                       (car (gemini-companion-status-test--find
                             "Discovery file"))))))
      ;; It would repair the file.
      (signal-process (gemini-companion-server-pid) 'SIGSTOP)
      (unwind-protect
          (progn
            (dolist (content (list "{" "[]" (funcall content :port 3)
                                   (funcall content :authToken "u")
                                   (funcall content :workspacePath nil)))
              (ert-info (content)
                (should (string-search "not hold what the server wrote"
                                       (funcall finding content)))))
            (should (equal file (funcall finding (funcall content))))
            (should (equal '("/a" "/b")
                           (gemini-companion-status-roots file)))
            (should (string-search "read by other users"
                                   (funcall finding (funcall content) #o644)))
            (delete-file file)
            (should (string-search
                     "does not exist" (gemini-companion-status-finding-text
                             (car (gemini-companion-status-test--find
                                   "Discovery file"))))))
        (signal-process (gemini-companion-server-pid) 'SIGCONT)
        (gemini-companion-test-eventually
          (not (memq 'stop (mapcar #'process-status
                                   (gemini-companion-test-processes)))))))))

(ert-deftest gemini-companion-status-test-knows-the-folder-of-node ()
  (pcase-dolist (`(,environment . ,expected)
                 '((() . "/tmp") (("TMPDIR=/a/" "TMP=/b") . "/a")
                   (("TMPDIR=" "TMP=/b") . "/b") (("TEMP=/c") . "/c")))
    (cl-letf (((default-value 'process-environment) environment))
      (should (string-prefix-p
               (concat expected "; ")
               (gemini-companion-status-finding-text
                (car (gemini-companion-status-test--find
                      "Temporary directory"))))))))

(ert-deftest gemini-companion-status-test-tells-files-of-others ()
  (gemini-companion-status-test--with-folder folder
    (let ((dead (let ((process (start-process "dead" nil "true")))
                  (prog1 (process-id process)
                    (while (process-live-p process)
                      (accept-process-output process 0.1)))))
          (write (lambda (pid path)
                   (gemini-companion-status-test--write
                    (expand-file-name
                     (format "gemini/ide/gemini-ide-server-%d-1.json" pid)
                     folder)
                    (json-encode `(:port 1 :workspacePath ,path
                                   :ideInfo (:displayName "Other"))))))
          (marks (lambda ()
                   (gemini-companion-status-test--marks "Other editors"
                                                           folder))))
      (should (equal '(good) (funcall marks)))
      (funcall write (emacs-pid) "/nowhere")
      (should (equal '(good) (funcall marks)))
      (funcall write (emacs-pid) folder)
      (should (equal '(note) (funcall marks)))
      (funcall write (emacs-pid) nil)
      (should (equal '(bad) (funcall marks)))
      (funcall write (emacs-pid) "/nowhere")
      (funcall write dead folder)
      (should (equal '(bad) (funcall marks))))))

(ert-deftest gemini-companion-status-test-reads-all-settings-that-count ()
  (gemini-companion-status-test--with-folder folder
    (let* ((project (expand-file-name "project/" folder))
           (process-environment
            (cons (concat "GEMINI_CLI_SYSTEM_SETTINGS_PATH=" folder "system.json")
                  process-environment))
           (marks (lambda ()
                    (gemini-companion-status-test--marks "Its settings"
                                                            project))))
      (make-directory project)
      (should (equal '(bad) (funcall marks)))
      (gemini-companion-status-test--write
       (expand-file-name ".gemini/settings.json" folder)
       "{\"ide\": {\"enabled\": true}} // mine")
      (should (equal '(good) (funcall marks)))
      (gemini-companion-status-test--write
       (expand-file-name ".gemini/settings.json" project)
       "{\"ide\": {\"enabled\": false}}")
      (should (equal '(good bad) (funcall marks)))
      (gemini-companion-status-test--write
       (expand-file-name "system.json" folder)
       "{\"ide\": {\"enabled\": false}}")
      (should (equal '(good bad bad) (funcall marks)))
      (gemini-companion-status-test--write
       (expand-file-name ".gemini/settings.json" folder) "{a}")
      (should (equal '(bad bad bad) (funcall marks)))
      (gemini-companion-status-test--write
       (expand-file-name "system.json" folder)
       "{\"ide\": {\"enabled\": true}}")
      (should (equal '(bad) (funcall marks)))
      (gemini-companion-status-test--write
       (expand-file-name ".gemini/settings.json" folder) "{}")
      (should (equal '(good) (funcall marks)))
      (delete-file (expand-file-name "system.json" folder))
      (should (equal '(bad bad) (funcall marks)))
      (gemini-companion-status-test--write
       (expand-file-name ".gemini/settings.json" project)
       "{\"ide\": {\"enabled\": true}}")
      (should (equal '(good) (funcall marks))))))

(defmacro gemini-companion-status-test--with-settings (text &rest body)
  "Run BODY with `file' bound to the user's settings file of TEXT.
There is none if TEXT is nil.  Questions are answered with yes."
  (declare (indent 1))
  `(gemini-companion-status-test--with-folder folder
     (let ((file (expand-file-name ".gemini/settings.json" folder)))
       (when-let* ((text ,text)
                   (coding-system-for-write 'utf-8-unix))
         (gemini-companion-status-test--write file text))
       (cl-letf (((symbol-function 'yes-or-no-p) #'always))
         (unwind-protect
             (save-window-excursion ,@body)
           (when-let* ((buffer (find-buffer-visiting file)))
             (with-current-buffer buffer (set-buffer-modified-p nil))
             (kill-buffer buffer)))))))

(defun gemini-companion-status-test--settings ()
  "Return the finding about the user's settings."
  (car (gemini-companion-status-test--find "Its settings")))

(defun gemini-companion-status-test--set-enabled ()
  "Press the button for `ide.enabled'."
  (funcall (alist-get "Set it"
                      (gemini-companion-status-finding-actions
                       (gemini-companion-status-test--settings))
                      nil nil #'equal)))

(defun gemini-companion-status-test--bytes (file)
  "Return the bytes of FILE."
  (with-temp-buffer
    (set-buffer-multibyte nil)
    (insert-file-contents-literally file)
    (buffer-string)))

(ert-deftest gemini-companion-status-test-reads-settings-with-comments ()
  (pcase-dolist
      (`(,text . ,expected)
       '(("" . bad) ("{}" . bad) ("{\"ide\": {}}" . bad) ("{\"ide\": 1}" . bad)
         ("{\"ide\": {\"enabled\": true}}" . good)
         ("{\"ide\": {\"enabled\": false}}" . bad)
         ("// {\"ide\": 1}\n{/* \" */\"ide\": {\"enabled\": true}}" . good)
         ("{\"a\": \"// b\", \"ide\": {\"enabled\": true}}" . good)
         ("{\"a\": \"\\\"/*\", \"ide\": {\"enabled\": true}, \"b\": \"*/\"}"
          . good)))
    (ert-info (text :prefix "Text: ")
      (gemini-companion-status-test--with-settings text
        (should (eq expected (gemini-companion-status-finding-mark
                              (gemini-companion-status-test--settings))))))))

(ert-deftest gemini-companion-status-test-names-malformed-settings ()
  (dolist (text '("{" "[]" "null" "{} x" "ide" "{\"a\": 1 \"b\": 2}"
                  "{\"ide\" {}}" "\"{\""))
    (ert-info (text :prefix "Text: ")
      (gemini-companion-status-test--with-settings text
        (should (string-search "malformed"
                               (gemini-companion-status-finding-text
                                (gemini-companion-status-test--settings))))))))

(ert-deftest gemini-companion-status-test-sets-enabled-and-keeps-the-rest ()
  (pcase-dolist
      (`(,before ,after)
       '((nil "{\n  \"ide\": {\n    \"enabled\": true\n  }\n}\n")
         (" " "{\n  \"ide\": {\n    \"enabled\": true\n  }\n}\n")
         ("{\"b\": null, \"a\": [1, {}, []], \"c\": false, \"nil\": \"\", \"d\": 0.5}"
          "{
  \"b\": null,
  \"a\": [
    1,
    {},
    []
  ],
  \"c\": false,
  \"nil\": \"\",
  \"d\": 0.5,
  \"ide\": {
    \"enabled\": true
  }
}\n")
         ("{\"ide\": {\"enabled\": false, \"hasSeenNudge\": true}, \"z\": 1}"
          "{
  \"ide\": {
    \"enabled\": true,
    \"hasSeenNudge\": true
  },
  \"z\": 1\n}\n")))
    (ert-info (before :prefix "Text: ")
      (gemini-companion-status-test--with-settings before
        (gemini-companion-status-test--set-enabled)
        (should (equal after (gemini-companion-status-test--bytes file)))
        (should (eq 'good (gemini-companion-status-finding-mark
                           (gemini-companion-status-test--settings))))))))

(ert-deftest gemini-companion-status-test-keeps-line-ends-mode-and-link ()
  (gemini-companion-status-test--with-settings "{\r\n  \"ä\": 1\r\n}\r\n"
    (let ((target (expand-file-name "dotfiles.json" folder)))
      (set-file-modes file #o600)
      (rename-file file target)
      (make-symbolic-link target file)
      (gemini-companion-status-test--set-enabled)
      (should (file-symlink-p file))
      (should (= #o600 (file-modes target)))
      (should (equal (encode-coding-string "{\r\n  \"ä\": 1,\r\n  \"ide\": \
{\r\n    \"enabled\": true\r\n  }\r\n}\r\n" 'utf-8)
                     (gemini-companion-status-test--bytes target))))))

(ert-deftest gemini-companion-status-test-leaves-comments-to-the-user ()
  (pcase-dolist
      (`(,text ,at ,line)
       '(("// mine\n{\n  \"a\": 1\n}\n" "{" "\"ide\": {\"enabled\": true},")
         ("{\n  \"ide\": { // mine\n    \"x\": 1\n  }\n}\n" "\"ide\": {"
          "\"enabled\": true,")))
    (gemini-companion-status-test--with-settings text
      (gemini-companion-status-test--set-enabled)
      (should (file-equal-p file buffer-file-name))
      (should (looking-back (regexp-quote at) (line-beginning-position)))
      (should (equal line (current-kill 0)))
      (yank)
      (save-buffer)
      (should (eq 'good (gemini-companion-status-finding-mark
                         (gemini-companion-status-test--settings)))))))

(ert-deftest gemini-companion-status-test-leaves-unsaved-settings-alone ()
  (gemini-companion-status-test--with-settings "{}"
    (with-current-buffer (find-file-noselect file)
      (insert " ")
      (should-error (gemini-companion-status-test--set-enabled)
                    :type 'user-error)
      (set-buffer-modified-p nil)
      (gemini-companion-status-test--set-enabled)
      (should (string-search "enabled" (buffer-string)))
      (should-not (buffer-modified-p)))))

(ert-deftest gemini-companion-status-test-warns-of-personal-accounts ()
  (pcase-dolist (`(,type . ,mark) '(("oauth-personal" . note)
                                    ("gemini-api-key" . good)
                                    ("vertex-ai" . good)))
    (gemini-companion-status-test--with-settings
        (format "{\"security\": {\"auth\": {\"selectedType\": %S}}}" type)
      (should (equal (list mark)
                     (gemini-companion-status-test--marks "Its account")))))
  (gemini-companion-status-test--with-settings nil
    (should (equal '(note)
                   (gemini-companion-status-test--marks "Its account")))))

(ert-deftest gemini-companion-status-test-says-that-node-is-missing ()
  (gemini-companion-status-test--with-folder folder
    (let ((program (expand-file-name "gemini" folder)))
      (gemini-companion-status-test--write program "#!/usr/bin/env node\n")
      (set-file-modes program #o700)
      (cl-letf (((default-value 'exec-path) (list folder)))
        (let ((gemini-companion-gemini-command "gemini"))
          (should (string-search
                   "because node is not in the PATH"
                   (gemini-companion-status-finding-text
                    (car (gemini-companion-status-test--find
                          "Gemini CLI" "/"
                          (lambda (&rest _) '(127 . "env: node"))))))))))))

(provide 'gemini-companion-status-test)
;;; gemini-companion-status-test.el ends here
