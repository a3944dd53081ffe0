;;; gemini-companion-status-test.el --- Tests of the status buffer  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-client-settings)
(require 'gemini-companion-page)
(require 'gemini-companion-roots)
(require 'gemini-companion-server-test-helper)
(require 'gemini-companion-status)

(defmacro gemini-companion-status-test--with-status (table &rest body)
  "Run BODY in the status buffer, with the findings of TABLE.
TABLE is a value of `gemini-companion-status-checks', or `all' for what all
parts find."
  (declare (indent 1))
  `(let* ((table ,table)
          (parts (symbol-function 'gemini-companion-parts-loaded))
          (gemini-companion-status-checks
           (if (eq table 'all) gemini-companion-status-checks table)))
     (cl-letf (((symbol-function 'gemini-companion-parts-loaded)
                (if (eq table 'all) parts (lambda () '(status)))))
       (unwind-protect
           (save-window-excursion
             ;; An error in a check is displayed.
             (gemini-companion-test-demoted (gemini-companion-status))
             ,@body)
         (kill-buffer "*gemini-companion status*")))))

(ert-deftest gemini-companion-status-test-shows-what-is-never-shared ()
  (gemini-companion-test-with-directory '(("a" "") (".env" "SECRET=1"))
    (dolist (name '("a" ".env"))
      (with-current-buffer (find-file-noselect name)
        (gemini-companion-status-test--with-status
            (list (assoc "Sharing" gemini-companion-status-checks))
          (should (eq (equal name ".env")
                      (and (string-search "/.env is not shared" (buffer-string))
                           t))))))))

(ert-deftest gemini-companion-status-test-never-asks-another-machine ()
  (gemini-companion-test-with-far-host
    (pcase-dolist (`(,directory ,terminal)
                   '(("/far:/directory/" nil)
                     ;; The terminal of a CLI there is a local buffer.
                     ("~/" "/far:/directory/")))
      (with-temp-buffer
        (setq default-directory directory
              gemini-companion-session-remote-directory terminal)
        (gemini-companion-status-test--with-status 'all
          (should (equal "/far:/directory/" default-directory)))))))

;;;; Verdict

(defun gemini-companion-status-test--verdict ()
  "Return the first line of the status buffer."
  (car (split-string (gemini-companion-test-text "*gemini-companion status*")
                     "\n")))

(ert-deftest gemini-companion-status-test-begins-with-problems-each-remedy-once ()
  (let* ((fixed nil)
         (broken (lambda (&rest findings)
                   (lambda (&rest _) (if fixed '((note "Was off")) findings))))
         (shown (lambda (text) (string-search text (buffer-string)))))
    (gemini-companion-status-test--with-status
        `(("One" . ,(lambda (&rest _) '((good "Fine") (good "Well") (note "Odd"))))
          ("Two" . ,(funcall broken
                             `(bad "It is off\nSince when" "Turn it on."
                                   ("Enable" . ,(lambda () (setq fixed t))))
                             '(bad "It is old" "Update it.")))
          ("Three" . ,(funcall broken
                               '(bad "5 is not connected: It is old" "Update it.")
                               '(bad "6 is not connected" "Type that.")))
          ("Four" . ,(lambda (&rest _) (unless fixed (user-error "No program")))))
      (should (equal "Not connected: It is off [Enable]"
                     (gemini-companion-status-test--verdict)))
      (dolist (text '("It is off [Enable]\n    Since when\n    Turn it on."
                      "Two: It is old\n    Update it."
                      "Three: 5 is not connected: It is old\n"
                      "Update it."
                      "6 is not connected\n    Type that."))
        (ert-info (text)
          (should (= 1 (how-many (regexp-quote text) (point-min))))))
      (should-not (funcall shown "One: Fine"))
      (search-forward "[Sh")
      (gemini-companion-test-demoted (push-button))
      (should (apply #'< (mapcar shown '("6 is not" "Four: No program" "Odd"
                                         "2 checks passed" "One: Fine"))))
      (should (equal "[Hide]" (button-label (button-at (point)))))
      (gemini-companion-test-demoted (push-button))
      (should-not (funcall shown "One: Fine"))
      (goto-char (point-min))
      (forward-button 1)
      (gemini-companion-test-demoted (push-button))
      (should (equal "Not connected: No CLI runs in the open projects [Start]"
                     (gemini-companion-status-test--verdict))))))

(ert-deftest gemini-companion-status-test-button-does-nothing-else-than-it-says ()
  (let ((gemini-companion-context-paused nil))
    (cl-letf (((symbol-function 'gemini-companion-sessions)
               (lambda ()
                 (list (gemini-companion-session-make :id "one" :client "gemini")))))
      (gemini-companion-status-test--with-status nil
        (dolist (label '("[Pause]" "[Resume]"))
          (goto-char (point-min))
          (search-forward label)
          (backward-char 2)
          ;; By a key, in another window.
          (gemini-companion-pause)
          (let ((paused gemini-companion-context-paused))
            (should (equal "Status has changed; read it, then choose again"
                           (gemini-companion-test-refusal (push-button))))
            (should (eq paused gemini-companion-context-paused))))))))

(ert-deftest gemini-companion-status-test-says-whether-sharing-is-paused ()
  (let ((gemini-companion-context-paused nil))
    (gemini-companion-status-test--with-status nil
      (dolist (paused '(t nil))
        (gemini-companion-pause)
        (gemini-companion-test-eventually
          (eq paused (and (string-search "sharing is paused" (buffer-string)) t)))))))

(cl-defmethod gemini-companion-part-findings ((_part (eql 'status-test)) _)
  "Return a finding with a title that the status does not know, and others."
  '(("Else" bad "Last") ("Sharing" bad "Third") ("Server" wait "First")
    ("CLI" good "Second")))

(ert-deftest gemini-companion-status-test-verdict-depends-on-no-order-of-parts ()
  (let ((gemini-companion-status-checks
         (list (cons "Project" (lambda (_) '((bad "Fourth")))))))
    (dolist (parts '((status-test status) (status status-test)))
      (cl-letf (((symbol-function 'gemini-companion-parts-loaded)
                 (lambda () parts)))
        (should (equal '("First" "Second" "Third" "Fourth" "Last")
                       (mapcar #'caddr (gemini-companion-status--findings "/"))))
        (unwind-protect
            (save-window-excursion
              (gemini-companion-status)
              (should (equal "Not connected: First"
                             (gemini-companion-status-test--verdict))))
          (kill-buffer "*gemini-companion status*"))))))

(ert-deftest gemini-companion-status-test-names-a-part-that-fails ()
  (cl-letf (((symbol-function 'gemini-companion-part-findings)
             (lambda (part _directory)
               (if (eq part 'revert)
                   (error "It is broken")
                 '(("Server" good "Fine"))))))
    (should (equal '("Part revert" bad "It is broken")
                   (gemini-companion-test-demoted
                     (car (last (gemini-companion-status--findings "/"))))))))

(ert-deftest gemini-companion-status-test-follows-the-sessions-while-visible ()
  (let ((checked 0))
    (gemini-companion-status-test--with-status
        `(("One" . ,(lambda (&rest _) (cl-incf checked) '((note "Fine")))))
      (search-forward "Fine")
      (backward-char 2)
      (gemini-companion-test-set-sessions
       (list (gemini-companion-session-make :id "1" :client "gemini" :pid 1)
             (gemini-companion-session-make :id "2" :client "qwen" :pid 2)
             (gemini-companion-session-make :id "3" :client "qwen" :pid 3)))
      (gemini-companion-test-eventually
        (equal "Connected: Gemini CLI, Qwen Code [Overview]"
               (gemini-companion-status-test--verdict)))
      (should (looking-at "ne$"))
      (should (= 2 checked))
      (switch-to-buffer "*scratch*")
      (delete-other-windows)
      (gemini-companion-test-set-sessions nil)
      (gemini-companion-test-run-timers)
      (should (= 2 checked)))))

;;;; Checks

(defmacro gemini-companion-status-test--with-home (&rest body)
  "Run BODY in a new `directory' that is HOME and TMPDIR, too."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory nil
     (let ((process-environment
            (append (list (concat "HOME=" directory) (concat "TMPDIR=" directory)
                          "GEMINI_CLI_HOME" "QWEN_HOME")
                    process-environment)))
       ,@body)))

(defun gemini-companion-status-test--find (title &optional directory)
  "Return the findings with TITLE for a CLI in DIRECTORY, without their title."
  (let ((titled-p (lambda (row) (equal title (car row)))))
    (let ((gemini-companion-status-checks
           (seq-filter titled-p gemini-companion-status-checks)))
      (mapcar #'cdr
              (seq-filter titled-p (gemini-companion-status--findings
                                    (or directory "/")))))))

(defun gemini-companion-status-test--marks (title &optional directory)
  "Return the mark of each such finding of TITLE and DIRECTORY."
  (mapcar #'car (gemini-companion-status-test--find title directory)))

(ert-deftest gemini-companion-status-test-names-options-that-fail ()
  (unwind-protect
      (let ((gemini-companion-excluded '("[")))
        (should-not (gemini-companion-status-test--marks "Sharing"))
        (should (gemini-companion-privacy-name-hidden-p
                 (expand-file-name "a" temporary-file-directory)))
        (should (string-match-p
                 "\\`((bad .*excluded"
                 (format "%s" (gemini-companion-status-test--find "Sharing")))))
    (gemini-companion-privacy-refresh)))

(ert-deftest gemini-companion-status-test-works-with-nothing-there ()
  (gemini-companion-status-test--with-home
    (let ((exec-path nil)
          (gemini-companion-server-problem nil))
      (gemini-companion-status-test--with-status 'all
        (goto-char (point-min))
        (should (looking-at "Not connected: gemini-companion-mode is off"))
        (should (search-forward "npm install" nil t))
        (let ((gemini-companion-server-problem "No such module"))
          (revert-buffer)
          (should (equal "Not connected: No such module [Turn on]"
                         (gemini-companion-status-test--verdict))))
        ;; A client that is none of the CLIs.
        (gemini-companion-test-set-sessions
         (list (gemini-companion-session-make :id "1" :pid 1)))
        (revert-buffer)
        (gemini-companion-test-set-sessions nil)))))

(ert-deftest gemini-companion-status-test-names-a-missing-discovery-file ()
  (gemini-companion-status-test--with-home
    (cl-letf* ((exec-path nil)
               (file (expand-file-name "gemini.json"))
               ((symbol-function 'gemini-companion-server-info)
                (lambda () `(:discovery (("gemini" ,file))))))
      (make-directory ".gemini")
      (should (string-search (format "%s is missing" file)
                             (format "%s" (gemini-companion-status-test--find "CLI"))))
      (gemini-companion-test-write file "")
      (should (equal '(note) (gemini-companion-status-test--marks "CLI"))))))

(ert-deftest gemini-companion-status-test-judges-the-version ()
  (gemini-companion-test-with-directory '(("cli" "#!/bin/sh\n"))
    (set-file-modes "cli" #o700)
    (make-directory "bin")
    (make-symbolic-link "../cli" "bin/gemini")
    (make-symbolic-link "../cli" "bin/copilot")
    (pcase-dolist (`(,client ,version ,mark)
                   '(("gemini" "0.61.0" good) ("gemini" "0.31.0" good)
                     ("gemini" "0.30.9" bad) ("gemini" "v1.2.3-x" note)
                     ("gemini" "1.2.3-preview.1" good) ("gemini" "" note)
                     ;; The oldest one is unknown.
                     ("copilot" "0.0.1" good)))
      (ert-info (version)
        (gemini-companion-test-write
         "package.json" (format "{\"version\": \"%s\"}" version))
        (should (equal (list mark)
                       (let ((gemini-companion-run-commands
                              `((,client . ,(expand-file-name
                                             client (expand-file-name "bin"))))))
                         (gemini-companion-status-test--marks "CLI"))))))))

(ert-deftest gemini-companion-status-test-takes-the-version-of-a-connected-cli ()
  (gemini-companion-test-with-directory '(("gemini" "#!/bin/sh\n"))
    (set-file-modes "gemini" #o700)
    (let ((gemini-companion-run-commands
           `(("gemini" . ,(expand-file-name "gemini")))))
      (unwind-protect
          (progn
            (gemini-companion-test-set-sessions
             (list (gemini-companion-session-make
                    :id "1" :client "gemini" :pid 1 :version "0.61.0")))
            (should (equal (format "Gemini CLI 0.61.0 (connected), %s"
                                   (expand-file-name "gemini"))
                           (nth 1 (car (gemini-companion-status-test--find "CLI"))))))
        (gemini-companion-test-set-sessions nil)))))

(ert-deftest gemini-companion-status-test-names-why-a-cli-is-not-connected ()
  (gemini-companion-status-test--with-home
    (let ((gemini-companion-roots-last nil)
          (clis nil))
      (make-directory "p")
      (gemini-companion-roots-update (expand-file-name "p/"))
      (cl-letf (((symbol-function 'gemini-companion-server-info)
                 (lambda () (car clis)))
                ((symbol-function 'gemini-companion-server-ask)
                 (lambda (_method _args done) (run-at-time 0 nil done clis))))
        ;; It searches once the server is ready.
        (should-not (gemini-companion-status-test--find "Running CLIs"))
        (pcase-dolist
            (`(,place ,facts ,verdict ,reason)
             '(("p" (:elsewhere t) "No CLI runs" "it is connected to another editor")
               ("p" (:searches "/other/.qwen/ide") "No CLI runs"
                "it searches /other/.qwen/ide for editors")
               ("/" nil "Qwen Code (process 7, in /) is not"
                "/ is not in a workspace root, so no CLI can connect from")
               ("p" nil "Qwen Code (process 7, in "
                "IDE integration is off in Qwen Code")))
          (setq clis (list `( :pid 7 :client "qwen" ,@facts
                              :directory ,(expand-file-name place))))
          (gemini-companion-status-test--with-status
              (list (assoc "Running CLIs" gemini-companion-status-checks))
            (gemini-companion-test-eventually
              (string-prefix-p (concat "Not connected: " verdict) (buffer-string)))
            (should (string-search (concat "is not connected: " reason)
                                   (buffer-string)))))))))

(ert-deftest gemini-companion-status-test-sets-what-a-running-cli-needs ()
  (gemini-companion-status-test--with-home
    (make-directory ".qwen")
    (with-temp-buffer
      (let* ((terminal (current-buffer))
             (cli (list :client "qwen" :directory directory
                        :pid (process-id (gemini-companion-test-start-cat))))
             (push (lambda (label)
                     (goto-char (point-min))
                     (search-forward (concat label "]"))
                     (push-button (1- (point))))))
        (cl-letf (((symbol-function 'gemini-companion-server-ask)
                   (lambda (_method _args done) (funcall done (list cli)))))
          (unwind-protect
              (gemini-companion-status-test--with-status
                  (seq-filter (lambda (check)
                                (member (car check) '("Settings" "Running CLIs")))
                              gemini-companion-status-checks)
                (funcall push "[Terminal")
                (should (eq terminal (window-buffer)))
                (gemini-companion-status)
                (ert-with-message-capture shown
                  (funcall push "[Enable")
                  (should (string-search "Qwen Code needs /ide enable" shown)))
                (gemini-companion-test-set-sessions
                 (list (gemini-companion-session-from-facts `(:id "1" ,@cli))))
                (gemini-companion-page-refresh)
                (funcall push "[Set it")
                (should (equal "default" (gemini-companion-client-settings-get
                                          (expand-file-name ".qwen/settings.json")
                                          '("tools" "approvalMode")))))
            (gemini-companion-test-set-sessions nil)))))))

(ert-deftest gemini-companion-status-test-reads-all-settings-that-count ()
  (gemini-companion-status-test--with-home
    (let* ((user (concat directory ".gemini/settings.json"))
           (project (concat directory "project/"))
           (shared (concat project ".gemini/settings.json"))
           (system (concat directory "system.json"))
           (process-environment
            (cons (concat "GEMINI_CLI_SYSTEM_SETTINGS_PATH=" system)
                  process-environment))
           (yes "{\"ide\": {\"enabled\": true}} // mine")
           (no "{\"ide\": {\"enabled\": false}}"))
      (pcase (gemini-companion-status-test--find "Settings")
        (`((bad ,_ ,_ ("Enable" . ,set))) (funcall set)))
      (make-directory ".qwen")    ; that it does not ask does not matter yet
      (should (equal '(good note)
                     (gemini-companion-status-test--marks "Settings")))
      (pcase-dolist (`(,file ,content . ,expected)
                     `((,user "{}" bad "Set .* in .*/\\.gemini/settings\\.json")
                       (,user ,yes good "true")
                       (,shared ,no bad "Remove .*project/\\.gemini/settings")
                       (,system ,no bad "Remove .*system\\.json")
                       (,system ,yes good "true")
                       (,user "{a}" bad "malformed")
                       (,user ,no good "true")
                       (,system "{}" bad "Remove .*project/\\.gemini/settings")
                       (,shared ,yes good "true")))
        (gemini-companion-test-write file content)
        (ert-info ((format "%s: %s" file content))
          (let ((finding (car (gemini-companion-status-test--find
                               "Settings" project))))
            (should (eq (car expected) (car finding)))
            (should (string-match-p (cadr expected) (format "%s" finding))))))
      ;; A repository must not stop Emacs with a pipe.
      (delete-file shared)
      (call-process "mkfifo" nil nil nil shared)
      (should (equal '(bad bad) (gemini-companion-status-test--marks
                                 "Settings" project))))))

(ert-deftest gemini-companion-status-says-which-root-was-removed ()
  (gemini-companion-test-with-directory nil
    (let* ((project (expand-file-name "project" directory))
           (gemini-companion-roots-last (list project)))
      (make-directory project)
      (cl-flet ((shown () (format "%s" (gemini-companion-status--roots))))
        (should-not (string-search "removed" (shown)))
        (delete-directory project)
        (should (string-search "project  (removed)" (shown)))))))

;;; gemini-companion-status-test.el ends here
