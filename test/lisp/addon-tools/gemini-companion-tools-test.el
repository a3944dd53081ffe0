;;; gemini-companion-tools-test.el --- Tests of the questions of a CLI  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-client-fourth-test-helper)
(require 'gemini-companion-edit-test-helper)
(require 'gemini-companion-part)
(require 'gemini-companion-status)
(require 'gemini-companion-test-helper)
(require 'gemini-companion-tools)

(defconst gemini-companion-tools-test-cli "#!/bin/sh
read answer
home=~/.${0##*/}
link=$home/extensions/gemini-companion
case $2 in
    link) [ ! -e $link ] || { echo 'already installed'; exit 1; }
          mkdir -p $link
          echo \"{\\\"source\\\": \\\"$3\\\"}\" >\"$link/.${0##*/}-extension-install.json\" ;;
    uninstall) rm -r $home/extensions ;;
esac
"
  "A program that links and unlinks an extension as the CLIs do.
End-to-end tests do so with the CLIs themselves.")

(defun gemini-companion-tools-test-call (&rest answers)
  "Link the CLIs, or unlink them, and wait for the end.
The questions are answered by ANSWERS: whether to link the CLIs by a symbol or
quit, whether to unlink them by t or nil."
  (cl-letf* ((answer (lambda (&rest _)
                       (let ((answer (pop answers)))
                         (if (eq answer 'quit) (signal 'quit nil) answer))))
             ((symbol-function 'y-or-n-p) answer)
             ((symbol-function 'gemini-companion-choice-read)
              (lambda (_ choices &rest _)
                (cdr (rassq (funcall answer) choices)))))
    (gemini-companion-tools)
    (should (string-search "still" (format "%s" (should-error (gemini-companion-tools)))))
    (gemini-companion-test-eventually
      (null (get-process "gemini-companion-link")))))

(defmacro gemini-companion-tools-test-with-home (&rest body)
  "Run BODY in a home with all CLIs."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory nil
     (let* ((process-environment
             (append (list (concat "HOME=" directory) "GEMINI_CLI_HOME" "QWEN_HOME")
                     process-environment))
            (gemini-companion-install-directory
             (expand-file-name "emacs/" directory))
            (gemini-companion-server-command
             (list (gemini-companion-test-python) "-m" "gemini_companion_epc")))
       (dolist (client '("gemini" "qwen" "copilot"))
         (make-directory (concat "." client))
         (write-region gemini-companion-tools-test-cli nil client nil 'silent)
         (set-file-modes client #o755))
       (let ((exec-path (cons directory exec-path)))
         ,@body))))

(defun gemini-companion-tools-test-files (directory)
  "Return the names of the files and directories below DIRECTORY."
  (mapcar (lambda (file) (file-relative-name file directory))
          (directory-files-recursively directory "" t)))

(defun gemini-companion-tools-test-allowed ()
  "Return for what the file of policies of Gemini CLI has rules."
  (with-temp-buffer
    (insert-file-contents ".gemini/policies/gemini-companion.toml")
    (let ((allowed nil))
      (while (re-search-forward "readOnlyHint\\|rename_symbol" nil t)
        (push (match-string 0) allowed))
      (should (= (length allowed) (how-many "^\\[\\[rule\\]\\]" (point-min))))
      (nreverse allowed))))

(defun gemini-companion-tools-test-sorted (alist)
  "Return ALIST sorted by its keys, which are strings."
  (sort (copy-sequence alist) (lambda (one other) (string< (car one) (car other)))))

(ert-deftest gemini-companion-tools-links-and-unlinks-each-cli ()
  (gemini-companion-tools-test-with-home
    (let ((before (gemini-companion-tools-test-files directory))
          (hooks (gemini-companion-test-hooks))
          (bridge (expand-file-name
                   "bridge.py" (gemini-companion-install-extension-directory))))
      (should-error (gemini-companion-tools-test-call 'no) :type 'user-error)
      (should (equal before (gemini-companion-tools-test-files directory)))
      (gemini-companion-tools-test-call 'all)
      ;; The mode is off.
      (should (equal hooks (gemini-companion-test-hooks)))
      (should (equal '("gemini" "qwen" "copilot")
                     (seq-filter #'gemini-companion-tools-linked-p
                                 (gemini-companion-cli-installed))))
      ;; Copilot CLI refuses what a hook before a tool fails at, so that its line
      ;; never fails.
      (let ((hooks (gemini-companion-client-settings-get
                    (expand-file-name ".copilot/hooks/gemini-companion.json")
                    '("hooks"))))
        (should (equal '(("agentStop" nil)
                         ("notification" nil)
                         ("postToolUse" "ask_user|exit_plan_mode"
                          "bash|powershell|.+-.+")
                         ("postToolUseFailure" "bash|powershell|.+-.+")
                         ("preToolUse" "ask_user|exit_plan_mode" "bash|powershell|.+-.+")
                         ("userPromptSubmitted" nil))
                       (gemini-companion-tools-test-sorted
                        (mapcar (pcase-lambda (`(,event . ,hooks))
                                 (cons event
                                       (seq-map (lambda (hook)
                                                  (should (string-suffix-p
                                                           "echo {}; }; else echo {}; fi"
                                                           (cdr (assoc "bash" hook))))
                                                  (cdr (assoc "matcher" hook)))
                                                hooks)))
                               hooks)))))
      ;; An event has all its hooks.
      (should (equal ["write_file|replace" "run_shell_command|^mcp_(?!emacs_)" "ask_user"]
                     (seq-into
                      (seq-map (lambda (hook) (cdr (assoc "matcher" hook)))
                               (gemini-companion-client-settings-get
                                (expand-file-name
                                 "hooks/hooks.json"
                                 (gemini-companion-install-extension-directory))
                                '("hooks" "BeforeTool")))
                      'vector)))
      (should (equal '("readOnlyHint" "rename_symbol")
                     (gemini-companion-tools-test-allowed)))
      ;; Python need not compile it again.
      (let* ((number (lambda ()
                       (file-attribute-inode-number (file-attributes bridge))))
             (before (funcall number)))
        (gemini-companion-part-ready 'tools 'started)
        (should (equal before (funcall number))))
      ;; After an update of the package.
      (write-region "old" nil bridge nil 'silent)
      (gemini-companion-part-ready 'tools 'started)
      (should (string-search "MCP" (gemini-companion-test-file-text bridge)))
      (gemini-companion-tools-test-call t)
      (delete-directory gemini-companion-install-directory)
      (should (equal before (gemini-companion-tools-test-files directory))))))

(defun gemini-companion-tools-test-findings (title directory)
  "Return the findings with TITLE of all parts, for a CLI in DIRECTORY."
  (seq-filter (lambda (finding) (equal title (car finding)))
              (seq-mapcat (lambda (part) (gemini-companion-part-findings part directory))
                          (gemini-companion-parts-loaded))))

(defun gemini-companion-tools-test-permission-hook ()
  "Return the hook of Qwen Code before a permission, as a text."
  (format "%s" (gemini-companion-client-settings-get
                (expand-file-name "qwen-extension.json"
                                  (gemini-companion-install-extension-directory))
                '("hooks" "PermissionRequest"))))

(defun gemini-companion-tools-test-answers-p ()
  "Return whether Emacs is to answer what Qwen Code asks permission for."
  (and (string-search "--permission" (gemini-companion-tools-test-permission-hook)) t))

;; Gemini CLI has the first, Qwen Code the second.
(ert-deftest gemini-companion-tools-asks-one-question-about-both-permissions ()
  (gemini-companion-tools-test-with-home
    (pcase-dolist (`(,word ,policy ,answers) '((yes nil nil) (tools t nil) (all t t)))
      (ert-info ((symbol-name word))
        (gemini-companion-tools-test-call word)
        (should (eq policy (file-exists-p ".gemini/policies/gemini-companion.toml")))
        (should (eq answers (gemini-companion-tools-test-answers-p)))
        (gemini-companion-tools-test-call t)))
    ;; With one of these CLIs, "all" is that.
    (pcase-dolist (`(,gone . ,words) '((nil no yes tools all) ("qwen" no yes all)
                                       ("gemini" no yes)))
      (when gone
        (delete-file gone))
      (cl-letf (((symbol-function 'gemini-companion-choice-read)
                 (lambda (prompt choices &rest _)
                   ;; What the user reads ends with the default.
                   (should (< (length (format-prompt prompt (caar choices))) (* 5 79)))
                   (should (equal words (mapcar #'cdr choices)))
                   ;; It is about the CLIs that can be linked.
                   (pcase-dolist (`(,client . ,title) '(("gemini" . "Gemini CLI")
                                                        ("qwen" . "Qwen Code")))
                     (should (eq (file-exists-p client)
                                 (and (string-search title prompt) t))))
                   'no)))
        (should-error (gemini-companion-tools) :type 'user-error)))))

;; One key was the answer, and the rest of a word was typed into the user's file.
(ert-deftest gemini-companion-tools-types-no-answer-into-a-file ()
  (gemini-companion-tools-test-with-home
    (with-temp-buffer
      (switch-to-buffer (current-buffer))
      (execute-kbd-macro (vconcat (kbd "M-x") "gemini-companion-tools\rall\r"))
      (should (equal "" (buffer-string))))
    (gemini-companion-test-eventually
      (null (get-process "gemini-companion-link")))
    (should (gemini-companion-tools-test-answers-p))
    (gemini-companion-tools-test-call t)))

;; It offered to delete all links.
(ert-deftest gemini-companion-tools-offers-to-link-a-cli-that-is-not-linked ()
  (gemini-companion-tools-test-with-home
    ;; One CLI cannot be linked at first, another is installed later.
    (rename-file "qwen" "later")
    (write-region "" nil ".copilot/hooks" nil 'silent)
    (gemini-companion-tools-test-call 'yes)
    (delete-file ".copilot/hooks")
    (rename-file "later" "qwen")
    (should (string-search "gemini-companion-tools links it"
                           (gemini-companion-tools-test-shown directory)))
    (let ((asked nil))
      (cl-letf (((symbol-function 'gemini-companion-choice-read)
                 (lambda (prompt choices &rest _)
                   (push prompt asked)
                   (cdar choices))))
        (should (string-search "Nothing was changed"
                               (gemini-companion-test-refusal
                                 (gemini-companion-tools))))
        (should (string-prefix-p "Qwen Code, Copilot CLI not linked" (car asked)))))
    (gemini-companion-tools-test-call 'link 'yes)
    (should (equal '("gemini" "qwen" "copilot")
                   (seq-filter #'gemini-companion-tools-linked-p
                               (gemini-companion-cli-installed))))
    (gemini-companion-tools-test-call t)
    (should-not (gemini-companion-install-extension-p))))

(ert-deftest gemini-companion-tools-links-the-others-where-one-cannot-be-linked ()
  (gemini-companion-tools-test-with-home
    ;; The directories of its hooks, and of the rules of Gemini CLI, are files.
    (write-region "" nil ".copilot/hooks" nil 'silent)
    (write-region "" nil ".gemini/policies" nil 'silent)
    (ert-with-message-capture shown
      (gemini-companion-tools-test-call 'all)
      (should (string-search "Linking failed; " shown))
      (should (string-match-p "Copilot CLI: .*/hooks" shown))
      (should (string-match-p "Gemini CLI: .*/policies" shown)))
    (should (equal '("gemini" "qwen")
                   (seq-filter #'gemini-companion-tools-linked-p
                               (gemini-companion-cli-installed))))
    (gemini-companion-tools-test-call 'unlink t)))

(ert-deftest gemini-companion-tools-links-a-cli-whose-command-has-options ()
  (gemini-companion-tools-test-with-home
    (dolist (command `(("gemini" "--model" "x")
                       ("env" "A=1" ,(expand-file-name "gemini") "-y")))
      (let ((gemini-companion-run-commands `(("gemini" . ,command))))
        (gemini-companion-tools-test-call 'yes)
        (should (gemini-companion-tools-linked-p "gemini"))
        (gemini-companion-tools-test-call t)
        (should-not (gemini-companion-tools-linked-p "gemini"))))))

(ert-deftest gemini-companion-tools-links-pi-with-its-extension ()
  (gemini-companion-tools-test-with-home
    (dolist (client '("gemini" "qwen" "copilot"))
      (rename-file client (concat client "-gone")))
    (write-region "" nil "pi" nil 'silent)
    (set-file-modes "pi" #o755)
    (let ((process-environment (cons (concat "PI_CODING_AGENT_DIR=" directory "agent")
                                     process-environment))
          (exec-path (list directory)))
      (should-not (gemini-companion-tools-linked-p "pi"))
      (let ((asked nil))
        (cl-letf (((symbol-function 'y-or-n-p) (lambda (prompt) (setq asked prompt)))
                  ((symbol-function 'gemini-companion-choice-read)
                   (lambda (&rest _) 'yes)))
          (gemini-companion-tools)
          (should (gemini-companion-tools-linked-p "pi"))
          (should (gemini-companion-extension-installed-p "pi"))
          (should (string-search "good Pi is linked"
                                 (gemini-companion-tools-test-shown directory)))
          (gemini-companion-tools)
          (should (string-search "the extension of Pi, which then has no reviews?" asked))
          (should-not (gemini-companion-tools-linked-p "pi"))
          (should-not (gemini-companion-extension-installed-p "pi")))))))

(ert-deftest gemini-companion-tools-unlinks-the-others-where-one-cannot-be-unlinked ()
  (gemini-companion-tools-test-with-home
    (let ((process-environment (cons (concat "PI_CODING_AGENT_DIR=" directory "agent")
                                     process-environment)))
      (write-region "" nil "pi" nil 'silent)
      (set-file-modes "pi" #o755)
      (gemini-companion-tools-test-call 'all)
      (should (equal '("gemini" "qwen" "copilot" "pi")
                     (seq-filter #'gemini-companion-tools-linked-p
                                 (gemini-companion-cli-installed))))
      ;; No file can be deleted in place of a directory.
      (dolist (file `(".copilot/hooks/gemini-companion.json"
                      ".gemini/policies/gemini-companion.toml"
                      ,@(directory-files-recursively "agent" "")))
        (delete-file file)
        (make-directory file)
        (write-region "" nil (expand-file-name "mine" file) nil 'silent))
      (ert-with-message-capture shown
        (gemini-companion-tools-test-call t)
        (should (string-match-p "not all links; .*Copilot CLI: .*json" shown))
        (should (string-match-p "Pi: .*agent" shown))
        (should (string-match-p "Gemini CLI: .*policies" shown)))
      (should-not (gemini-companion-install-extension-p))
      (should-not (file-exists-p ".gemini/extensions"))
      (should-not (file-exists-p ".qwen/extensions")))))

(ert-deftest gemini-companion-tools-links-no-cli-without-a-method-for-it ()
  (gemini-companion-client-test-with-fourth
    (should-not (gemini-companion-tools-linked-p "fourth"))))

(ert-deftest gemini-companion-tools-lets-emacs-answer-on-request ()
  (gemini-companion-tools-test-with-home
    (cl-flet ((hook () (gemini-companion-tools-test-permission-hook))
              (status ()
                (format "%s" (gemini-companion-tools-test-findings "Permissions" directory))))
      (gemini-companion-tools-test-call 'yes)
      (should (string-search "--notice" (hook)))
      (should (string-search "Permissions of Qwen Code are shown" (status)))
      (should (string-search "its hooks cannot answer" (status)))
      (gemini-companion-tools-test-call t)
      ;; A hook of the user may allow what Emacs has not answered.
      (write-region "{\"hooks\": {\"PermissionRequest\": [{}]}}" nil
                    ".qwen/settings.json" nil 'silent)
      (ert-with-message-capture messages
        (gemini-companion-tools-test-call 'all)
        (should (string-search "Linked" messages))
        (should (string-search "another hook for PermissionRequest" messages)))
      (should (string-search "another hook for PermissionRequest" (status)))
      (delete-file ".qwen/settings.json")
      (dolist (text '("--permission" "86400000" "^(?!(edit|write_file|notebook_edit)$)"))
        (should (string-search text (hook))))
      (should (string-search "Permissions of Qwen Code are answered in Emacs"
                             (status)))
      ;; An update of the package keeps that.
      (gemini-companion-part-ready 'tools 'started)
      (should (string-search "--permission" (hook)))
      (gemini-companion-tools-test-call t)
      (should-not (gemini-companion-tools-test-answers-p)))))

(ert-deftest gemini-companion-tools-starts-the-bridge-before-an-edit-only-for-rules ()
  (gemini-companion-tools-test-with-home
    (let ((gemini-companion-review-rules nil)
          (bridge (expand-file-name "bridge" directory))
          (failing (expand-file-name "failing" directory))
          (killed (expand-file-name "killed" directory))
          (input "{\"file_path\": \"/src/a.md\"}"))
      (pcase-dolist (`(,program . ,text)
                     `((,failing . "echo The reason >&2; exit 1")
                       (,killed . "kill -9 $$")))
        (write-region (concat "#!/bin/sh\n" text "\n") nil program nil 'silent)
        (set-file-modes program #o755))
      (cl-flet* ((line ()
                   (let ((text (gemini-companion-client-settings-get
                                (expand-file-name
                                 "hooks/hooks.json"
                                 (gemini-companion-install-extension-directory))
                                '("hooks" "BeforeTool"))))
                     (cdr (assoc "command"
                                 (aref (cdr (assoc "hooks" (aref text 0))) 0)))))
                 (line-with (program)
                   ;; PROGRAM is run in place of Python, with its arguments.
                   (replace-regexp-in-string
                    (regexp-quote (shell-quote-argument
                                   (car (gemini-companion-tools--command "gemini"))))
                    program (line) t t))
                 (answer (line)
                   (with-temp-buffer
                     (insert input)
                     (call-process-region
                      nil nil "/bin/sh" t '(t nil) nil "-c" line)
                     (string-trim (buffer-string))))
                 (runs ()
                   (answer (line-with bridge)))
                 (becomes (expected)
                   (gemini-companion-test-eventually (equal expected (runs)))))
        (with-temp-file bridge
          (insert "#!/bin/sh\n"
                  "case $* in *--review) echo BRIDGE ;;"
                  " *--plan) echo PLAN; exec cat ;; esac\n"))
        (set-file-modes bridge #o755)
        (gemini-companion-tools-test-call 'all)
        (gemini-companion-part-ready 'tools 'started)
        (becomes "{}")
        ;; Where the project sets PATH, nothing is missing.
        (let ((process-environment (cons "PATH=/nowhere" process-environment)))
          (should (equal "{}" (runs))))
        ;; The bridge for a plan gets the event as it is.
        (setq input (concat "{\"file_path\": \"/a/.gemini/tmp/b/plans/c.md\","
                            " \"content\": \"\\n%s 'x' \\\\ $(exit 3) ä"
                            (make-string 300000 ?x) "\"}"))
        (should (equal (concat "PLAN\n" input) (runs)))
        (setq input "{}")
        (set-default 'gemini-companion-review-rules '(("*.el" . always)))
        (becomes "BRIDGE")
        ;; The bridge fails, or is killed: a rule may be for the file.
        (dolist (program (list failing killed))
          (should (equal "{\"decision\":\"ask\"}" (answer (line-with program)))))
        (should (equal (list "The reason" "gemini --review: exit status 1"
                             "gemini --review: exit status 137")
                       ;; Some shells say themselves that it was killed.
                       (remove "Killed"
                               (split-string (gemini-companion-test-file-text
                                              (gemini-companion-tools--failures-file))
                                             "\n" t))))
        ;; Its Python, or the extension, is gone: the CLI is as if it were not linked.
        (should (equal "{}" (answer (line-with "/no/such/python"))))
        (should (equal "{}" (answer (replace-regexp-in-string
                                     (regexp-quote
                                      (gemini-companion-install-extension-directory))
                                     "/no/such/directory/" (line)))))
        (set-default 'gemini-companion-review-rules nil)
        (becomes "{}")
        (set-default 'gemini-companion-review-rules '(("*.el" . always)))
        (becomes "BRIDGE")
        ;; The mode is turned off.
        (gemini-companion-part-stop 'tools)
        (should (equal "{}" (runs)))
        (set-default 'gemini-companion-review-rules '(("*.el" . always)))
        (gemini-companion-test-run-timers)
        (should (equal "{}" (runs)))
        ;; Another Emacs has crashed, and this one begins.
        (set-default 'gemini-companion-review-rules nil)
        (let ((left (expand-file-name
                     (format "rules-%s-%d" (md5 (system-name))
                             (with-temp-buffer
                               (call-process "sh" nil t nil "-c" "echo $$")
                               (string-to-number (buffer-string))))
                     (gemini-companion-install-extension-directory)))
              (other (expand-file-name
                      (format "rules-%s-1" (md5 "another host"))
                      (gemini-companion-install-extension-directory))))
          (write-region "" nil left nil 'silent)
          (should (equal "BRIDGE" (runs)))
          (gemini-companion-part-ready 'tools 'started)
          (should (equal "{}" (runs)))
          (write-region "" nil other nil 'silent)
          (gemini-companion-part-ready 'tools 'started)
          (should (file-exists-p other)))
        (gemini-companion-part-stop 'tools)))))

(ert-deftest gemini-companion-tools-ask-rules-also-while-sharing-is-paused ()
  (gemini-companion-test-with-directory nil
    (let ((gemini-companion-context-paused t)
          (gemini-companion-review-rules
           `(("*.el" . always) ("*.c" . never)
             ("*.h" . always) (,(lambda (&rest _) (error "Boom")) . never))))
      (pcase-dolist (`(,file . ,review)
                     '(("a.el" . "always") ("a.c" . "-") ("a.h" . "always")
                       ("new/a.py" . "always")))
        (let ((answered nil))
          (funcall (gemini-companion-server-receive
                    'ask 'review (list :path (expand-file-name file)
                                       :client "gemini" :pids '(1)))
                   (lambda (answer) (setq answered answer)))
          (should (equal (list :review review) answered)))))))

(ert-deftest gemini-companion-tools-say-by-which-rule-a-cli-asks-in-its-terminal ()
  (gemini-companion-test-with-directory nil
    (let ((gemini-companion-review-rules '(("*.el" . always)))
          (session (gemini-companion-session-make :id "one" :pid 1 :client "qwen")))
      (unwind-protect
          (progn
            (gemini-companion-part-start 'state)
            (gemini-companion-test-set-sessions (list session))
            (cl-flet ((ask (kind &rest facts)
                        (funcall (gemini-companion-server-receive
                                  'ask kind (append facts '(:client "qwen" :pids (1))))
                                 #'ignore))
                      (labels ()
                        (mapcar #'gemini-companion-request-label
                                (gemini-companion-requests session))))
              (ask 'turn :event "prompt" :prompt "p")
              (ask 'review :path (expand-file-name "a.c"))
              (ask 'turn :event "question")
              (should (equal '("asks in its terminal") (labels)))
              (ask 'turn :event "edit")
              (ask 'review :path (expand-file-name "a.el"))
              (should-not (labels))
              (ask 'turn :event "question")
              (should (equal '("asks in its terminal, by your rule *.el") (labels)))
              ;; It asks for another reason.
              (ask 'turn :event "edit")
              (ask 'turn :event "question")
              (should (equal '("asks in its terminal") (labels)))))
        (gemini-companion-part-stop 'session)
        (gemini-companion-part-stop 'state)))))

(ert-deftest gemini-companion-tools-links-nothing-when-the-user-quits ()
  (gemini-companion-tools-test-with-home
    (let ((before (gemini-companion-tools-test-files directory)))
      ;; The user quits the second question.
      (should (eq 'quit
                  (condition-case nil
                      (gemini-companion-tools-test-call 'quit)
                    (quit 'quit))))
      (should (equal before (gemini-companion-tools-test-files directory))))
    ;; One CLI refuses, and the other one links it.
    (make-directory ".gemini/extensions/gemini-companion" t)
    (ert-with-message-capture messages
      (gemini-companion-tools-test-call 'yes)
      (should (string-search "Linking failed; Gemini CLI: already installed"
                             messages)))
    (should-not (file-exists-p ".gemini/policies/gemini-companion.toml"))
    (should-not (gemini-companion-tools-linked-p "gemini"))
    (should (gemini-companion-tools-linked-p "qwen"))))

(defun gemini-companion-tools-test-shown (directory)
  "Return the status of the links, as in DIRECTORY, as a text."
  (format "%s" (gemini-companion-tools-test-findings "Links" directory)))

(ert-deftest gemini-companion-tools-status-names-the-modes-in-which-rules-decide-nothing ()
  (gemini-companion-tools-test-with-home
    (let ((gemini-companion-review-rules nil))
      (dolist (home '(".gemini" ".qwen" ".copilot"))
        (make-directory home t))
      (cl-flet ((rules ()
                  (mapcar (lambda (finding)
                            (concat (symbol-name (nth 1 finding)) " " (nth 2 finding)))
                          (gemini-companion-tools-test-findings "Rules" directory)))
                (matches-p (regexps texts)
                  (should (length= texts (length regexps)))
                  (cl-every (lambda (regexp)
                              (seq-some (apply-partially #'string-match-p regexp)
                                        texts))
                            regexps)))
        (should-not (rules))
        (setq gemini-companion-review-rules '(("*.el" . always)))
        (should (matches-p '("note In auto_edit, yolo, Gemini CLI writes without"
                             "note In auto, auto-edit, yolo, Qwen Code writes"
                             "note In --yolo, --allow-tool, Copilot CLI writes")
                           (rules)))
        (gemini-companion-tools-test-call 'yes)
        (gemini-companion-test-write
         ".gemini/trustedFolders.json"
         (json-encode `((,(directory-file-name directory) . "TRUST_FOLDER"))))
        (should (matches-p '("note In --yolo, --allow-tool, Copilot CLI writes")
                           (rules)))
        ;; The hooks of an extension do not run there.
        (gemini-companion-test-write
         ".qwen/settings.json"
         "{\"security\": {\"folderTrust\": {\"enabled\": true}}}")
        (gemini-companion-test-write
         ".qwen/trustedFolders.json"
         (json-encode `((,(directory-file-name directory) . "DO_NOT_TRUST"))))
        (should (seq-some (lambda (text)
                            (string-search "Qwen Code writes without" text))
                          (rules)))))))

(ert-deftest gemini-companion-tools-status-shows-why-a-cli-does-not-ask ()
  (gemini-companion-tools-test-with-home
    (should (string-search "No CLI is linked"
                           (gemini-companion-tools-test-shown directory)))
    (gemini-companion-tools-test-call 'yes)
    (gemini-companion-test-write
     ".qwen/settings.json" "{\"security\": {\"folderTrust\": {\"enabled\": true}}}")
    (dolist (text '("is not trusted, so questions are not offered and edits are not \
reported" "To trust the directory, type /permissions trust in Gemini CLI there."
                    "To trust the directory, type /trust in Qwen Code there."))
      (should (string-search
               text (gemini-companion-tools-test-shown directory))))
    (dolist (home '(".gemini" ".qwen"))
      (write-region "{\"/\": \"TRUST_FOLDER\"}" nil
                    (expand-file-name "trustedFolders.json" home) nil 'silent))
    ;; Of a remote directory, no host is asked.
    (gemini-companion-test-with-far-host
      (dolist (place (list directory "/far:/x/"))
        (let ((shown (gemini-companion-tools-test-shown place)))
          (should (string-search "good Gemini CLI is linked" shown))
          (should-not (string-search "To trust" shown)))))
    (gemini-companion-tools-test-call t)))

(ert-deftest gemini-companion-tools-answers-nothing-once-sharing-is-paused ()
  (let (late answers)
    (cl-letf (((symbol-function 'gemini-companion-lookup)
               (lambda (_kind answer &rest _) (setq late answer))))
      (funcall (gemini-companion-server-receive
                'ask 'definition '(:path "/a" :symbol "b"))
               (lambda (answer) (push answer answers))))
    (let ((gemini-companion-context-paused t))
      (funcall late '(:locations (("/a" 1))))
      (funcall (gemini-companion-server-receive
                'ask 'rename '(:path "/a" :symbol "b" :new "c"))
               (lambda (answer) (push answer answers))))
    (should (equal '((:problem "Sharing is paused in Emacs")
                     (:problem "Sharing is paused in Emacs"))
                   answers))))

(ert-deftest gemini-companion-tools-answers-by-the-ignore-files-as-they-are-now ()
  (unless (require 'eglot nil t)
    (ert-skip "No Eglot"))
  (gemini-companion-test-with-directory '(("a.py" "A = 1\n"))
    (gemini-companion-roots-update directory)
    (unwind-protect
        (cl-flet ((problem ()
                    (let (answers)
                      (funcall (gemini-companion-server-receive
                                'ask 'definition
                                (list :path (expand-file-name "a.py") :symbol "A"))
                               (lambda (answer) (push answer answers)))
                      (plist-get (car answers) :problem))))
          (should (string-search "No language server" (problem)))
          (call-process "sh" nil nil nil "-c" "echo a.py >.geminiignore")
          (should (string-search "not shared" (problem))))
      (gemini-companion-roots-forget))))

;;;; Reports

;; As its buffer is reverted, the edit is found to be in the file again.
(ert-deftest gemini-companion-tools-count-a-reported-edit-that-is-written-again-once ()
  (gemini-companion-test-with-changes '(("a" "A\n"))
    (find-file "a")
    (dotimes (time 2)
      (gemini-companion-test-write "a" "B\n")
      (funcall (gemini-companion-server-receive 'ask 'edited
                 (list :path buffer-file-name :pids '(1)) "A\n" "B\n")
               #'ignore)
      (gemini-companion-test-in-the-end
       (not (gemini-companion-test-timers "watch")))
      (gemini-companion-revert-now buffer-file-name)
      (should (equal "B\n" (buffer-string)))
      (should (equal '(1) (gemini-companion-test-marked "a")))
      (should (eql 1 (gemini-companion-test-left)))
      (when (= 0 time)
        (gemini-companion-test-undo-edit (car (last (gemini-companion-edits))))
        (should-not (gemini-companion-test-marked "a"))))))

(ert-deftest gemini-companion-tools-record-an-edit-once-if-no-prompt-was-reported ()
  (gemini-companion-test-with-edits '(("a" "A\n") ("b" "B\n"))
    (gemini-companion-test-accept "a" "1\n" 1 session)
    ;; Answered in the terminal.
    (gemini-companion-test-open "b" "1\n" 2 session)
    (gemini-companion-server-receive 'close-diff 2 'closed)
    (pcase-dolist (`(,file ,before) '(("a" "A\n") ("b" "B\n")))
      (funcall (gemini-companion-server-receive
                'ask 'edited
                (list :path (expand-file-name file) :pids '(1)) before "1\n")
               #'ignore)
      (should (gemini-companion-session-turn session))
      ;; Emacs may see the file before its report.
      (gemini-companion-test-write "b" "1\n")
      (gemini-companion-test-eventually
        (equal '(accepted accepted) (gemini-companion-edits-test-states))))))

(ert-deftest gemini-companion-tools-commit-beside-a-cli-that-is-not-linked-is-unknown ()
  (let ((seen nil))
    (cl-letf (((symbol-function 'gemini-companion-commit-seen)
               (lambda (&rest arguments) (setq seen arguments)))
              ((symbol-function 'gemini-companion-tools-linked-p)
               (apply-partially #'equal "gemini")))
      (unwind-protect
          (pcase-dolist (`(,keeps . ,others)
                         '((t) (t (:id "2" :client "qwen" :directory "/other"))
                           (nil (:id "2" :client "qwen" :directory "/p/below"))
                           (nil (:id "2" :client "qwen" :directory "/p"))
                           (nil (:id "2" :client "qwen"))))
            (setq seen nil)
            (gemini-companion-server-receive
             'sessions-update (cons '(:id "1" :client "gemini" :directory "/p") others))
            (gemini-companion-tools--committed '(:root "/p" :base "1" :commit "2"))
            (should (equal (and keeps '("/p" "1" "2")) seen)))
        (gemini-companion-test-set-sessions nil)))))

;;; gemini-companion-tools-test.el ends here
