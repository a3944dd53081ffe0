;;; gemini-companion-diagnosis-test.el --- Tests of the checks  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-diagnosis)

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

(defun gemini-companion-diagnosis-test--mark (finding)
  "Return the mark of FINDING."
  (gemini-companion-finding-mark finding))

(defun gemini-companion-diagnosis-test--silent (&rest _)
  "Say nothing, as a program that has not answered yet."
  nil)

(ert-deftest gemini-companion-diagnosis-names-options-that-fail ()
  (unwind-protect
      (let ((gemini-companion-excluded '("["))
            (gemini-companion-roots-function #'car))
        (should (eq 'good (gemini-companion-finding-mark
                           (gemini-companion-diagnosis--options "/" #'ignore))))
        (should (gemini-companion-privacy-folder-hidden-p temporary-file-directory))
        (should-not (gemini-companion-roots temporary-file-directory))
        (let ((found (gemini-companion-diagnosis--options "/" #'ignore)))
          (should (equal '(bad bad)
                         (mapcar #'gemini-companion-finding-mark found)))
          (should (string-match-p "excluded" (gemini-companion-finding-cure
                                              (car found))))))
    (gemini-companion-privacy-forget)
    (gemini-companion-roots-forget)))

(ert-deftest gemini-companion-diagnosis-test-a-check-that-fails-is-alone ()
  (let ((gemini-companion-diagnosis--checks
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
             (found (gemini-companion-diagnosis
                     folder #'gemini-companion-diagnosis-test--silent)))
        (should (equal (mapcar #'car gemini-companion-diagnosis--checks)
                       (mapcar #'car found)))
        (should (string-search
                 "npm install"
                 (gemini-companion-finding-cure
                  (cadr (assoc "Gemini CLI" found)))))))))

(ert-deftest gemini-companion-diagnosis-test-sees-a-server-before-an-update ()
  (pcase-dolist (`(,version . ,mark) `((,gemini-companion-server-version . good)
                                       ("0.0.1" . bad)))
    (cl-letf (((symbol-function 'gemini-companion-server-info)
               (lambda () (list :version version))))
      (should (eq mark (gemini-companion-diagnosis-test--mark
                        (gemini-companion-diagnosis--server "/" #'ignore)))))))

(ert-deftest gemini-companion-diagnosis-test-judges-the-version ()
  (pcase-dolist (`(,output . ,mark) '(("0.61.0\n" . good) ("0.31.0" . good)
                                      ("0.30.9\n" . bad) ("v1.2.3-x" . good)
                                      ("hello" . note)))
    (ert-info (output)
      (should (eq mark (gemini-companion-diagnosis-test--mark
                        (gemini-companion-diagnosis--judge "g" output)))))))

(ert-deftest gemini-companion-diagnosis-test-judges-the-packages ()
  (pcase-dolist (`(,output . ,mark) '(("Python 3.11.2\nmcp 2.3.0\n" . good)
                                      ("Python 3.9.2\nmcp 2.3.0\n" . bad)
                                      ("Python 3.11.2\nmcp MISSING\n" . bad)))
    (ert-info (output)
      (should (eq mark (gemini-companion-diagnosis-test--mark
                        (gemini-companion-diagnosis--packages "p" output)))))))

(ert-deftest gemini-companion-diagnosis-test-sees-what-is-wrong-with-the-file ()
  (gemini-companion-diagnosis-test--with-folder folder
    (let* ((file (expand-file-name "gemini-ide-server-1-2.json" folder))
           (info (list :port 2 :token "t" :discovery file))
           (fault (lambda (content &optional mode)
                    (gemini-companion-diagnosis-test--write file content)
                    (set-file-modes file (or mode #o600))
                    (gemini-companion-diagnosis--file-fault file info))))
      (should (string-search
               "gone" (gemini-companion-diagnosis--file-fault file info)))
      (pcase-dolist
          (`(,content . ,word)
           '(("{" . "valid JSON") ("[]" . "valid JSON")
             ("{\"port\": 3, \"authToken\": \"t\"}" . "another port")
             ("{\"port\": 2, \"authToken\": \"u\"}" . "another port")
             ("{\"port\": 2, \"authToken\": \"t\", \"workspacePath\": null}"
              . "folders")))
        (ert-info (content)
          (should (string-search word (funcall fault content)))))
      (let ((content "{\"port\": 2, \"authToken\": \"t\", \
\"workspacePath\": \"/a:/b\"}"))
        (should-not (funcall fault content))
        (should (equal '("/a" "/b")
                       (gemini-companion-diagnosis-folders file)))
        (should (string-search "read by others"
                               (funcall fault content #o644)))))))

(ert-deftest gemini-companion-diagnosis-test-knows-the-folder-of-node ()
  (pcase-dolist (`(,environment . ,expected)
                 '((() . "/tmp") (("TMPDIR=/a/" "TMP=/b") . "/a")
                   (("TMPDIR=" "TMP=/b") . "/b") (("TEMP=/c") . "/c")))
    (should (equal expected
                   (gemini-companion-diagnosis--tmpdir
                    (lambda (name)
                      (let ((process-environment environment))
                        (getenv-internal name))))))))

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
                   (mapcar #'gemini-companion-diagnosis-test--mark
                           (ensure-list (gemini-companion-diagnosis--others
                                         folder nil))))))
      (should (equal '(good) (mapcar #'gemini-companion-diagnosis-test--mark
                                     (list (gemini-companion-diagnosis--others
                                            folder nil)))))
      (funcall write (emacs-pid) "/nowhere")
      (should (gemini-companion-finding-p
               (gemini-companion-diagnosis--others folder nil)))
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
                    (mapcar #'gemini-companion-diagnosis-test--mark
                            (gemini-companion-diagnosis--settings project nil)))))
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
      (should (eq expected
                  (and (string-match-p gemini-companion-diagnosis--command
                                       command)
                       (string-match-p gemini-companion-diagnosis--script
                                       command)
                       t))))))

(provide 'gemini-companion-diagnosis-test)
;;; gemini-companion-diagnosis-test.el ends here
