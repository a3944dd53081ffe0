;;; gemini-companion-diagnosis-test.el --- Tests of the checks  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-diagnosis)
(require 'gemini-companion-server-test-helper)

(defmacro gemini-companion-diagnosis-test--with-folder (folder &rest body)
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

(defun gemini-companion-diagnosis-test--write (file content)
  "Write CONTENT to FILE, in a folder of its own if need be."
  (make-directory (file-name-directory file) t)
  (write-region content nil file nil 'silent))

(defun gemini-companion-diagnosis-test--find (title &optional directory ask)
  "Return the findings of the check TITLE for DIRECTORY, with ASK for programs."
  (let ((gemini-companion-diagnosis-checks
         (list (assoc title gemini-companion-diagnosis-checks))))
    (cdar (gemini-companion-diagnosis (or directory "/") (or ask #'ignore)))))

(defun gemini-companion-diagnosis-test--marks (title &optional directory ask)
  "Return the mark of each such finding of TITLE, DIRECTORY and ASK."
  (mapcar #'gemini-companion-finding-mark
          (gemini-companion-diagnosis-test--find title directory ask)))

(ert-deftest gemini-companion-diagnosis-names-options-that-fail ()
  (unwind-protect
      (let ((gemini-companion-excluded '("["))
            (gemini-companion-roots-function #'car))
        (should (equal '(good)
                       (gemini-companion-diagnosis-test--marks "Options")))
        (should (gemini-companion-privacy-folder-hidden-p temporary-file-directory))
        (should-not (gemini-companion-roots temporary-file-directory))
        (let ((found (gemini-companion-diagnosis-test--find "Options")))
          (should (equal '(bad bad)
                         (mapcar #'gemini-companion-finding-mark found)))
          (should (string-match-p "excluded" (gemini-companion-finding-cure
                                              (car found))))))
    (gemini-companion-privacy-forget)
    (gemini-companion-roots-forget)))

(ert-deftest gemini-companion-diagnosis-test-a-check-that-fails-is-alone ()
  (let ((gemini-companion-diagnosis-checks
         `(("One" . ,(lambda (&rest _) (error "Broken")))
           ("Two" . ,(lambda (&rest _) (gemini-companion-finding 'good "fine"))))))
    (pcase (gemini-companion-diagnosis "/" #'ignore)
      (`(("One" ,one) ("Two" ,two))
       (should (string-search "Broken" (gemini-companion-finding-text one)))
       (should (equal "fine" (gemini-companion-finding-text two))))
      (other (ert-fail other)))))

(ert-deftest gemini-companion-diagnosis-test-works-with-nothing-there ()
  (gemini-companion-diagnosis-test--with-folder folder
    (cl-letf (((default-value 'exec-path) nil))
      (let* ((exec-path nil)
             (found (gemini-companion-diagnosis folder #'ignore)))
        (should (equal (mapcar #'car gemini-companion-diagnosis-checks)
                       (mapcar #'car found)))
        (should (string-search
                 "npm install"
                 (gemini-companion-finding-cure
                  (cadr (assoc "Gemini CLI" found)))))))))

(ert-deftest gemini-companion-diagnosis-test-sees-a-server-before-an-update ()
  (gemini-companion-test-with-mode '()
    (should (equal '(good) (gemini-companion-diagnosis-test--marks "Server")))
    (let ((gemini-companion-server-version "0.0.1"))
      (should (equal '(bad) (gemini-companion-diagnosis-test--marks "Server"))))))

(ert-deftest gemini-companion-diagnosis-test-judges-the-version ()
  (pcase-dolist (`(,output . ,mark) '(("0.61.0\n" . good) ("0.31.0" . good)
                                      ("0.30.9\n" . bad) ("v1.2.3-x" . good)
                                      ("hello" . note)))
    (ert-info (output)
      (should (equal (list mark)
                     (let ((gemini-companion-gemini-command "sh"))
                       (gemini-companion-diagnosis-test--marks
                        "Gemini CLI" "/" (lambda (&rest _) (cons 0 output)))))))))

(ert-deftest gemini-companion-diagnosis-test-judges-the-packages ()
  (pcase-dolist (`(,output . ,mark) '(("Python 3.11.2\nmcp 2.3.0\n" . good)
                                      ("Python 3.9.2\nmcp 2.3.0\n" . bad)
                                      ("Python 3.11.2\nmcp MISSING\n" . bad)))
    (ert-info (output)
      (should (equal (list mark)
                     (let ((gemini-companion-server-command
                            '("p" "-m" "gemini_companion_epc")))
                       (gemini-companion-diagnosis-test--marks
                        "Python" "/" (lambda (&rest _) (cons 0 output)))))))))

(ert-deftest gemini-companion-diagnosis-test-sees-what-is-wrong-with-the-file ()
  (gemini-companion-test-with-mode '()
    (let* ((info (gemini-companion-server-info))
           (file (plist-get info :discovery))
           (content (lambda (&rest more)
                      (json-encode
                       (append more
                               (list :port (plist-get info :port)
                                     :authToken (plist-get info :token)
                                     :workspacePath "/a:/b")))))
           (finding (lambda (content &optional mode)
                      (gemini-companion-diagnosis-test--write file content)
                      (set-file-modes file (or mode #o600))
                      (gemini-companion-finding-text
                       (car (gemini-companion-diagnosis-test--find
                             "Discovery file"))))))
      ;; It would repair the file.
      (signal-process (gemini-companion-server-pid) 'SIGSTOP)
      (unwind-protect
          (progn
            (pcase-dolist
                (`(,content . ,word)
                 `(("{" . "valid JSON") ("[]" . "valid JSON")
                   (,(funcall content :port 3) . "another port")
                   (,(funcall content :authToken "u") . "another port")
                   (,(funcall content :workspacePath nil) . "folders")))
              (ert-info (content)
                (should (string-search word (funcall finding content)))))
            (should (equal file (funcall finding (funcall content))))
            (should (equal '("/a" "/b")
                           (gemini-companion-diagnosis-folders file)))
            (should (string-search "read by others"
                                   (funcall finding (funcall content) #o644)))
            (delete-file file)
            (should (string-search
                     "gone" (gemini-companion-finding-text
                             (car (gemini-companion-diagnosis-test--find
                                   "Discovery file"))))))
        (signal-process (gemini-companion-server-pid) 'SIGCONT)
        (gemini-companion-test-eventually
          (not (memq 'stop (mapcar #'process-status
                                   (gemini-companion-test-processes)))))))))

(ert-deftest gemini-companion-diagnosis-test-knows-the-folder-of-node ()
  (pcase-dolist (`(,environment . ,expected)
                 '((() . "/tmp") (("TMPDIR=/a/" "TMP=/b") . "/a")
                   (("TMPDIR=" "TMP=/b") . "/b") (("TEMP=/c") . "/c")))
    (cl-letf (((default-value 'process-environment) environment))
      (should (string-prefix-p
               (concat expected "; ")
               (gemini-companion-finding-text
                (car (gemini-companion-diagnosis-test--find
                      "Temporary folder"))))))))

(ert-deftest gemini-companion-diagnosis-test-tells-files-of-others ()
  (gemini-companion-diagnosis-test--with-folder folder
    (let ((dead (let ((process (start-process "dead" nil "true")))
                  (prog1 (process-id process)
                    (while (process-live-p process)
                      (accept-process-output process 0.1)))))
          (write (lambda (pid path)
                   (gemini-companion-diagnosis-test--write
                    (expand-file-name
                     (format "gemini/ide/gemini-ide-server-%d-1.json" pid)
                     folder)
                    (json-encode `(:port 1 :workspacePath ,path
                                   :ideInfo (:displayName "Other"))))))
          (marks (lambda ()
                   (gemini-companion-diagnosis-test--marks "Other editors"
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

(ert-deftest gemini-companion-diagnosis-test-reads-all-settings-that-count ()
  (gemini-companion-diagnosis-test--with-folder folder
    (let* ((project (expand-file-name "project/" folder))
           (process-environment
            (cons (concat "GEMINI_CLI_SYSTEM_SETTINGS_PATH=" folder "system.json")
                  process-environment))
           (marks (lambda ()
                    (gemini-companion-diagnosis-test--marks "Its settings"
                                                            project))))
      (make-directory project)
      (should (equal '(bad) (funcall marks)))
      (gemini-companion-diagnosis-test--write
       (expand-file-name ".gemini/settings.json" folder)
       "{\"ide\": {\"enabled\": true}} // mine")
      (should (equal '(good) (funcall marks)))
      (gemini-companion-diagnosis-test--write
       (expand-file-name ".gemini/settings.json" project)
       "{\"ide\": {\"enabled\": false}}")
      (should (equal '(good bad) (funcall marks)))
      (gemini-companion-diagnosis-test--write
       (expand-file-name "system.json" folder)
       "{\"ide\": {\"enabled\": false}}")
      (should (equal '(good bad bad) (funcall marks)))
      (gemini-companion-diagnosis-test--write
       (expand-file-name ".gemini/settings.json" folder) "{,}")
      (should (equal '(bad bad bad) (funcall marks)))
      (gemini-companion-diagnosis-test--write
       (expand-file-name "system.json" folder)
       "{\"ide\": {\"enabled\": true}}")
      (should (equal '(bad) (funcall marks)))
      (gemini-companion-diagnosis-test--write
       (expand-file-name ".gemini/settings.json" folder) "{}")
      (should (equal '(good) (funcall marks)))
      (delete-file (expand-file-name "system.json" folder))
      (should (equal '(bad bad) (funcall marks)))
      (gemini-companion-diagnosis-test--write
       (expand-file-name ".gemini/settings.json" project)
       "{\"ide\": {\"enabled\": true}}")
      (should (equal '(good) (funcall marks))))))

(ert-deftest gemini-companion-diagnosis-test-knows-gemini-by-its-command ()
  (pcase-dolist (`(,command . ,expected)
                 '(("node /usr/bin/gemini" . t) ("gemini --acp" . t)
                   ("/opt/node --max-old-space-size=1 /x/bin/gemini -p a" . t)
                   ("node /x/@google/gemini-cli/bundle/gemini.js" . t)
                   ("node /x/gemini-mcp/server.js" . nil)
                   ("emacs gemini" . nil) ("bash -c gemini" . nil)
                   ("vi gemini.js" . nil)))
    (ert-info (command)
      (cl-letf (((symbol-function 'list-system-processes) (lambda () '(7)))
                ((symbol-function 'process-attributes)
                 (lambda (_)
                   (list (cons 'euid (user-uid)) (cons 'args command)))))
        (should (eq expected
                    (and (string-match-p
                          "process 7"
                          (gemini-companion-finding-text
                           (car (gemini-companion-diagnosis-test--find
                                 "Running CLIs"))))
                         t)))))))

(provide 'gemini-companion-diagnosis-test)
;;; gemini-companion-diagnosis-test.el ends here
