;;; gemini-companion-remote-test.el --- Tests for gemini-companion-remote.el  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-cli-test-helper)
(require 'gemini-companion-comment-test-helper)
(require 'gemini-companion-decision)
(require 'gemini-companion-overview)
(require 'gemini-companion-part)
(require 'gemini-companion-remote-test-helper)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-roots)
(require 'gemini-companion-server-test-helper)
(require 'gemini-companion-undo)
(require 'tramp)

(ert-deftest gemini-companion-remote-runs-programs-by-the-method-of-tramp ()
  ;; Tramp does not know all of these methods.
  (pcase-dolist
      (`(,name ,kind . ,command)
       '(("/ssh:me@far#22:" :terminal
          "ssh" "-t" "-l" "me" "-p" "22" "far" "a it\\'s")
         ("/dockercp:web:" :pipe "docker" "exec" "-i" "web" "a" "it's")
         ("/toolbox:web:" :pipe "toolbox" "run" "-c" "web" "a" "it's")
         ("/distrobox:web:" :pipe "distrobox" "enter" "-T" "web" "--" "a" "it's")
         ("/podman:me@web:" :terminal
          "podman" "exec" "-it" "-u" "me" "web" "a" "it's")
         ("/kubernetes:pod:" :pipe "kubectl" "exec" "-i" "pod" "--" "a" "it's")
         ("/kubernetes:web.pod:" :pipe
          "kubectl" "exec" "-i" "-c" "web" "pod" "--" "a" "it's")
         ("/wsl:Debian:" :pipe "wsl.exe" "-d" "Debian" "-e" "a" "it's")
         ("/su:me@here:" :pipe "su" "-" "me" "-c" "a it\\'s")
         ("/sudo:me@here:" :pipe "sudo" "-n" "-H" "-u" "me" "a" "it's")
         ;; Each hop takes a line for its shell.
         ("/ssh:one|ssh:me@two|sudo:root@two:" :terminal
          "ssh" "-t" "one" "ssh -t -l me two sudo\\ -H\\ -u\\ root\\ \
a\\ it\\\\\\'s")))
    ;; Emacs 30 shows no hops in the name of a file.
    (dolist (name (list name (file-remote-p (concat name "/"))))
      (should (equal command (gemini-companion-remote--command
                              name kind '("a" "it's"))))))
  (should (string-search "gemini-companion-remote-commands"
                         (gemini-companion-test-refusal
                           (gemini-companion-remote--command "/ftp:far:" :pipe nil)))))

(ert-deftest gemini-companion-remote-findings-name-what-is-wrong-there ()
  (let* ((copies (make-temp-file "copies-" 'directory))
         (settings (concat copies "/home/me/.gemini/settings.json"))
         (gemini-companion-remote-names-hosts
          `(("/ssh:a:" :state "lost" :problem "exec: node: not found")
            ("/ssh:b:" :state "connecting")
            ("/ssh:c:" :state "connected" :node "18.1.0" :tmp "/there"
             :port 1 :problems ("EACCES") :container t :home "/home/me"
             :versions (("gemini" "0.1.0")))))
         (gemini-companion-remote-names-copies `(("/ssh:c:" . ,copies)))
         (texts (lambda ()
                  (mapconcat (lambda (finding)
                               (mapconcat (apply-partially #'format "%s")
                                          finding " "))
                             (gemini-companion-part-findings 'remote "/")
                             "\n"))))
    (dolist (wanted '("bad Node.js was not found on ssh:a" "wait ssh:b is"
                      "could not be written (EACCES)"
                      "bad Gemini CLI 0.1.0 on ssh:c cannot find Emacs"
                      "IDE integration is off in Gemini CLI on ssh:c"
                      "Type /ide enable in Gemini CLI there" "port 1 there, Node.js 18"
                      "temporary directory /there" "REMOTE_CONTAINERS=1"))
      (should (string-search wanted (funcall texts))))
    (gemini-companion-test-write settings "{\"ide\": {\"enabled\": true}}")
    (should-not (string-search "IDE integration is off" (funcall texts)))
    (delete-directory copies 'recursive)))

(ert-deftest gemini-companion-remote-knows-where-a-directory-and-a-review-are ()
  (gemini-companion-test-with-remote
    ;; In a directory that is the same there, a CLI there can connect.
    (let ((default-directory (expand-file-name "q/" directory)))
      (should (equal '("/ssh:far:" "/shared/q" "/shared/q")
                     (gemini-companion-names-remote-location default-directory)))
      (should (equal '("/ssh:far:" "/srv/p" nil)
                     (gemini-companion-names-remote-location "/ssh:far:/srv/p/"))))
    (gemini-companion-test-with-edits nil
      (let* ((session (gemini-companion-session-make
                       :id "far" :client "gemini" :remote "/ssh:far:"))
             (edit (gemini-companion-test-open "/copies/srv/p/x/a" "1\n" 1 session)))
        (with-current-buffer (gemini-companion-edit-texts-original edit)
          (should (equal "/ssh:far:/srv/p/x/" default-directory))
          (should (equal '("/ssh:far:" "/srv/p/x" "/srv/p")
                         (gemini-companion-names-remote-location default-directory))))))))

(ert-deftest gemini-companion-remote-prompts-have-the-place-and-the-names-there ()
  (gemini-companion-test-needs-add-on 'prompts)
  (gemini-companion-test-with-remote
    (gemini-companion-test-with-edits nil
      (let* ((pair (cadar gemini-companion-remote-directories))
             (session (gemini-companion-session-make
                       :id "far" :client "gemini" :remote "/ssh:far:"))
             (edit (gemini-companion-test-open "/copies/srv/p/x/a" "1\n" 1 session)))
        (with-current-buffer (gemini-companion-edit-texts-original edit)
          (cl-letf (((symbol-function 'tramp-maybe-open-connection) #'error))
            (dolist (gemini-companion-session-remote-directory '(nil "/ssh:far:/srv/p/x/"))
              (let ((default-directory (if gemini-companion-session-remote-directory "~/"
                                         default-directory)))
                (gemini-companion-compose)
                (should (equal "/ssh:far:/srv/p/" default-directory))
                (kill-buffer)))))
        (gemini-companion-proposal-close edit 'interrupted)
        ;; Another host may share the directory.
        (push `("/docker:two:" ("/app" . ,(cdr pair)))
              (cdr gemini-companion-remote-directories))
        (push '("/docker:two:" :state "connected" :roots (("/app" "/app")))
              gemini-companion-remote-names-hosts)
        ;; Lines of a file outside the roots of all hosts stay here.
        (pcase-dolist (`(,file ,host ,named ,line)
                       `(("/copies/srv/p/x/a" "/ssh:far:" "/srv/p/x/a" "> 1\n")
                         (,(expand-file-name "q" (cdr pair)) "/docker:two:" "/app/q"
                          "> 1\n")
                         ("/copies/srv/other/a" "/ssh:far:" "/srv/other/a" "")
                         ("/none/a" "/docker:two:" "/none/a" "")))
          (setq edit (gemini-companion-test-open
                      file "1\n" 3
                      (gemini-companion-session-make
                       :id "two" :client "gemini" :remote host)))
          (gemini-companion-comment-test-on-proposal edit 1 "Why?")
          (gemini-companion-edit-reject-with-reason edit "")
          (should (equal (format "No: %s:1\n%sWhy?" named line) (car kill-ring)))
          (gemini-companion-remove-comments 'all))))))

(ert-deftest gemini-companion-remote-shares-what-is-not-excluded-there ()
  (gemini-companion-test-with-remote
    (with-temp-buffer
      (cl-flet ((hidden (name)
                  (setq buffer-file-name name
                        buffer-file-truename name)
                  (gemini-companion-privacy-hidden-p (current-buffer))))
        (should-not (hidden "/ssh:far:/srv/p/a"))
        (should (hidden "/ssh:far:/srv/p/.env"))
        (should (hidden "/ssh:other:/srv/p/a"))
        ;; They need not be visited.
        (should-not (gemini-companion-privacy-name-hidden-p "/ssh:far:/srv/p/b"))
        (should (gemini-companion-privacy-name-hidden-p "/ssh:far:/srv/p/b.pem"))
        ;; What is on this host says nothing about that one.
        (dolist (name '(".geminiignore" ".dir-locals.el"))
          (write-region "((gemini-companion-share\na\n" nil
                        (expand-file-name name directory)))
        (let ((gemini-companion-excluded '("\\`/srv/p/private/" "\\`/copies/")))
          (should-not (hidden (format "/ssh:far:%s/a" directory)))
          (should (hidden "/ssh:far:/srv/p/private/a")))
        (let ((gemini-companion-remote-names-copies `(("/ssh:far:" . ,directory))))
          (should (hidden "/ssh:far:/a")))
        ;; Only the names of a remote link and its file are known here.
        (setq buffer-file-name "/ssh:far:/srv/p/tls.key"
              buffer-file-truename "/ssh:far:/srv/p/a")
        (should (gemini-companion-privacy-hidden-p (current-buffer)))
        (setq buffer-file-name "/ssh:far:/srv/p/link"
              buffer-file-truename "/ssh:other:/srv/p/a")
        (should (equal "/copies/srv/p/a"
                       (gemini-companion-names-file (current-buffer))))
        (should (gemini-companion-roots-name "/copies/srv/p/a"))
        ;; Another project there is not shared.
        (should-not (gemini-companion-roots-name "/copies/srv/other/a"))
        (set-buffer-modified-p nil)
        (setq buffer-file-name nil)))))

(ert-deftest gemini-companion-remote-answers-once-those-who-wait-for-it ()
  (let ((gemini-companion-remote-names-hosts nil)
        (gemini-companion-names-hosts-hook nil)
        (inhibit-message t)
        answers)
    (dolist (directory '("/srv/p" "/none" "/other"))
      (gemini-companion-cli-host-connect
       "/ssh:far:" directory
       (lambda (&rest answer) (push (cons directory answer) answers))))
    (pcase-dolist (`(,state . ,roots)
                   '(("connected" ("/srv/p" "/srv") ("/none" nil))
                     ("lost" ("/other" "/other"))))
      (gemini-companion-server-receive 'remote-update
        `(:name "/ssh:far:" :state ,state :problem "" :roots ,roots)))
    (should (= 2 (length answers)))
    (gemini-companion-part-stop 'remote)
    (should (string-search "\
(/other nil Cannot connect to ssh:far (disconnected); check the connection, \
then M-x gemini-companion-connect) (/srv/p /srv nil) (/none nil No CLI "
                            (format "%s" answers)))
    (should-not gemini-companion-names-hosts-hook)))

(defun gemini-companion-remote-test-without-node ()
  "Return the last line of the output of a host without Node.js."
  (let ((gemini-companion-remote-names-hosts nil)
        (gemini-companion-remote-names-copies '(("/docker:far:" . "/copies")))
        (gemini-companion-names-hosts-hook nil)
        command)
    (cl-letf (((symbol-function 'gemini-companion-server-ready-p) #'always)
              ((symbol-function 'gemini-companion-server-call)
               (lambda (_ facts) (setq command (plist-get facts :command)))))
      (gemini-companion-cli-host-connect "/docker:far:" "/" #'ignore))
    ;; A line break in quotes is an error in csh.
    (should-not (string-search "\n" (format "%s" command)))
    (with-temp-buffer
      (apply #'call-process "/bin/sh" nil t nil
             (mapcar (apply-partially #'string-replace "node" "no-such-node")
                     (cdr (member "sh" command))))
      (car (last (split-string (buffer-string) "\n" t))))))

(ert-deftest gemini-companion-remote-explains-what-is-wrong ()
  (pcase-dolist (`(,wanted . ,problems)
                 `(("Node.js was not found"
                    ,(gemini-companion-remote-test-without-node))
                   ("or is too old" "SyntaxError: Unexpected token '.'")
                   ("cannot be run or" "sh: 1: exec: node: Permission denied"
                    "bash: exec: /bin/node: cannot execute: Permission denied"
                    "env: \u2018node\u2019: Permission denied"
                    "zsh:1: permission denied: node"
                    "sh: node: Exec format error")
                   ("Cannot connect to ssh:far (permission denied while"
                    "permission denied while trying to connect to the daemon")
                   ("asks for a password" "no answer: Password: "
                    "me@node: Permission denied (publickey)"
                    "me@far: Permission denied (publickey)"
                    "Permission denied, please try again."
                    "doas: Authentication required")
                   ("Connection to ssh:far ended (copies"
                    "copies of its files cannot be made: /tmp/x belongs to \
another user")
                   ("Cannot connect to ssh:far (no answer)" "no answer")))
    (dolist (problem problems)
      (let ((gemini-companion-remote-names-hosts
             `(("/ssh:far:" :state "ended" :problem ,problem))))
        (should (string-search wanted (gemini-companion-remote--explain
                                       "/ssh:far:")))))))

(ert-deftest gemini-companion-remote-uses-no-copies-of-another-user ()
  (gemini-companion-test-with-directory '(("theirs/a" "theirs\n"))
    (let ((gemini-companion-remote-names-hosts nil)
          (gemini-companion-remote-names-copies nil)
          (gemini-companion-names-hosts-hook nil)
          (theirs (expand-file-name "theirs"))
          directories)
      (cl-flet ((copies ()
                  (gemini-companion-cli-host-connect "/ssh:far:" "/srv" #'ignore)
                  (cdr (assoc "/ssh:far:" gemini-companion-remote-names-copies))))
        (unwind-protect
            (progn
              (push (copies) directories)
              ;; It is kept, and the server makes it again after a cleanup.
              (should (equal (car directories) (copies)))
              (delete-directory (car directories) t)
              (should (equal (car directories) (copies)))
              ;; Another user was faster.
              (make-symbolic-link theirs (car directories))
              (push (copies) directories)
              (should-not (equal (car directories) (cadr directories)))
              (should (file-directory-p (car directories)))
              (when (zerop (user-uid))
                (call-process "chown" nil nil nil "65534" (car directories))
                (push (copies) directories)
                (should-not (equal (car directories) (cadr directories))))
              ;; The edits of the previous connections still name their copies.
              (dolist (copies directories)
                (should (equal '("/ssh:far:" . "/srv/a")
                               (gemini-companion-names-of-copy
                                (concat copies "/srv/a"))))))
          (gemini-companion-part-stop 'remote)))
      (should (file-exists-p "theirs/a"))
      (should-not (file-exists-p (car directories)))
      (dolist (copies (cdr directories))
        (should (file-attributes copies))
        (if (file-symlink-p copies)
            (delete-file copies)
          (delete-directory copies t))))))

(ert-deftest gemini-companion-remote-names-no-command-without-discovery-file ()
  (pcase-dolist (`(,problems ,wanted)
                 '((nil "Connected to ssh:far; run gemini or qwen or pi in /srv/p there")
                   (("EACCES: /tmp/gemini" "EROFS: /home")
                    "could not be written there (EACCES: /tmp/gemini; EROFS")))
    (let ((gemini-companion-remote-names-hosts
           `(("/ssh:far:" :state "connected" :problems ,problems)))
          (gemini-companion-remote-directories '(("/ssh:far:")))
          (gemini-companion-mode t)
          (default-directory "/ssh:far:/srv/p/"))
      (cl-letf (((symbol-function 'gemini-companion-remote--connect)
                 (lambda (_name directory then) (funcall then directory nil))))
        (ert-with-message-capture shown
          (gemini-companion-connect)
          (should (string-search wanted shown)))))))

(ert-deftest gemini-companion-remote-connects-no-local-directory ()
  (let ((default-directory temporary-file-directory)
        (gemini-companion-remote-directories nil))
    (should (string-prefix-p
             "A local CLI connects by itself"
             (gemini-companion-test-refusal (gemini-companion-connect))))))

(ert-deftest gemini-companion-remote-disconnects-only-what-is-connected ()
  (let ((gemini-companion-remote-names-hosts nil)
        (default-directory temporary-file-directory))
    (should (equal "No remote host is connected"
                   (gemini-companion-test-refusal
                     (call-interactively #'gemini-companion-disconnect))))))

(ert-deftest gemini-companion-remote-starts-once-while-its-place-connects ()
  (gemini-companion-run-test-with
    (let ((gemini-companion-remote-directories '(("/ssh:far:")))
          (answers '("" "/ssh:far:"))
          ;; It does not answer.
          (gemini-companion-remote-commands '((("ssh") "sh" "-c" "exec cat"))))
      (dotimes (_ 2)
        (with-temp-buffer
          (setq default-directory "/ssh:far:/srv/p/")
          (gemini-companion-run)))
      (gemini-companion-test-eventually (gemini-companion-server-ready-p))
      (should-not gemini-companion-run-test-started)
      (with-current-buffer "*gemini: ssh:far:p*"
        (term--update-term-menu t)      ; Emacs 28 calls it in each buffer
        (gemini-companion-disconnect "/ssh:far:")
        (should (string-prefix-p "Cannot connect to ssh:far" (buffer-string)))
        (should (string-search "Not started; g restarts it" header-line-format))
        (let ((overriding-local-map '(keymap (?c . gemini-companion-run))))
          (should (equal '(("Project" note "ssh:far, the host of this directory, \
is not connected" "Type c in a buffer of that host."))
                         (gemini-companion-part-findings
                          'roots "/ssh:far:/"))))
        (gemini-companion-run))
      (gemini-companion-server-receive 'remote-update
        '( :name "/ssh:far:" :state "connected" :port 1 :pid 1
           :roots (("/srv/p" "/srv"))))
      (should (equal 1 (length gemini-companion-run-test-started)))
      (push '("/ssh:near:") gemini-companion-remote-names-hosts)
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (&rest _) (pop answers))))
        (should-error (call-interactively #'gemini-companion-disconnect)
                      :type 'user-error)
        (call-interactively #'gemini-companion-disconnect))
      (should (equal '(("/ssh:near:")) gemini-companion-remote-names-hosts))
      (with-current-buffer "*gemini: ssh:far:srv*" (gemini-companion-run))
      (should (assoc "/ssh:far:" gemini-companion-remote-names-hosts)))))

(ert-deftest gemini-companion-remote-refuses-with-the-remedy ()
  (gemini-companion-run-test-with
    (let ((default-directory "/ssh:elsewhere:/tmp/"))
      (pcase-dolist
          (`(,remedy . ,bindings)
           '(("customize `gemini-companion-remote-commands'"
              (gemini-companion-remote-commands))
             ("Copilot CLI cannot connect from another host"
              (gemini-companion-run-client . "copilot"))))
        (cl-progv (mapcar #'car bindings) (mapcar #'cdr bindings)
          (should (string-match-p remedy (gemini-companion-test-refusal
                                           (gemini-companion-run)))))
        (should-not gemini-companion-mode)))))

;;;; A host that does not answer

(defmacro gemini-companion-remote-test-with-files (count &rest body)
  "Evaluate BODY with COUNT files of /ssh:far:, each with a change to undo.
The host writes a file, and answers, when `answer' is called.  `texts' returns
the texts of all files, and `calls' are those that await an answer."
  (declare (indent 1) (debug t))
  `(let ((names (mapcar (apply-partially #'format "f%02d")
                        (number-sequence 1 ,count))))
     (gemini-companion-test-with-changes
         (mapcar (lambda (name) (list name "1\n")) names)
       (dolist (name names)
         (gemini-companion-test-writes name "2\n" session))
       (let ((gemini-companion-remote-names-copies `(("/ssh:far:" . ,directory)))
             (gemini-companion-remote-names-hosts
              (list (list "/ssh:far:" :state "connected")))
             (gemini-companion-remote-write-seconds 0.05)
             (calls nil))
         (unwind-protect
             (cl-letf (((symbol-function 'gemini-companion-server-ask)
                        (lambda (_ args done failed)
                          (push (list args done failed) calls))))
               (cl-flet ((texts () (mapcar #'gemini-companion-test-file-text names))
                         (answer (&optional problem)
                           (pcase-let ((`((,_ ,there ,_ ,text) ,done ,failed)
                                        (pop calls)))
                             (if problem
                                 (funcall failed problem)
                               (gemini-companion-test-write (concat directory there)
                                                            (base64-decode-string text))
                               (funcall done t))))
                         (undo ()
                           (gemini-companion-test-answering #'always
                             (gemini-companion-undo-decide
                              'undo
                              (mapcar (lambda (record)
                                        (cons record
                                              (gemini-companion-changes-update record)))
                                      (gemini-companion-changes-files 'all))))))
                 ,@body))
           (setq gemini-companion-remote--writing nil)
           (gemini-companion-part-stop 'decision))))))

(defmacro gemini-companion-remote-test-said (regexp &rest body)
  "Evaluate BODY, and wait for a message that matches REGEXP; return it."
  (declare (indent 1) (debug t))
  `(ert-with-message-capture messages
     ,@body
     (gemini-companion-test-eventually (string-match-p ,regexp messages))
     (seq-find (apply-partially #'string-match-p ,regexp)
               (split-string messages "\n" t))))

;; "Undoing..." stayed, as each of the files waited for two minutes.
(ert-deftest gemini-companion-remote-undo-ends-where-its-host-does-not-answer ()
  (gemini-companion-remote-test-with-files 12
    (should (equal "Undoing..." (undo)))
    (dotimes (_ 3)
      (should (length= calls 1))
      (answer))
    (let ((said (gemini-companion-remote-test-said "^Undid ")))
      (should (string-prefix-p "Undid 3 changes in 3 files; " said))
      (should (string-search "no answer from ssh:far in 0.05 s" said))
      (should (= 9 (seq-count (lambda (name)
                                (string-search (concat "ssh:far:" name) said))
                              names))))
    (should (length= calls 1))
    (should (= 3 (seq-count (apply-partially #'equal "1\n") (texts))))
    ;; Nothing is sent, nor forgotten, until the host has answered.
    (gemini-companion-test-answering #'always
      (should (string-search "No answer from ssh:far yet"
                             (gemini-companion-remote-test-said "^Taken back: nothing"
                               (gemini-companion-decision-undo)))))
    (should (length= calls 1))
    (gemini-companion-remote-test-said "was written after all"
      (answer))
    (should (= 4 (seq-count (apply-partially #'equal "1\n") (texts))))
    ;; What was written late is taken back as well.
    ;; It said "(Taking back...)".
    (gemini-companion-remote-test-said "^Taking back\\.\\.\\.$"
      (gemini-companion-decision-undo))
    (gemini-companion-remote-test-said "^Taken back: undo"
      (dotimes (_ 4)
        (should (length= calls 1))
        (answer)))
    (should (equal (make-list 12 "2\n") (texts)))
    (gemini-companion-remote-test-said "^Redone: "
      (gemini-companion-decision-redo)
      (dotimes (_ 4)
        (answer)))
    (should (= 4 (seq-count (apply-partially #'equal "1\n") (texts))))))

;; It was said to be taken back, and could not be any more.
(ert-deftest gemini-companion-remote-files-that-stay-undone-can-be-taken-back-later ()
  (dolist (late '(nil "the connection was lost"))
    (gemini-companion-remote-test-with-files 3
      (undo)
      (dotimes (_ 3)
        (answer))
      (should (equal (make-list 3 "1\n") (texts)))
      (gemini-companion-remote-test-said "^Taken back: 1 of 3 files of undo"
        (gemini-companion-decision-undo)
        (answer))
      (should (= 1 (seq-count (apply-partially #'equal "2\n") (texts))))
      (answer late)
      (gemini-companion-remote-test-said "^Taken back: "
        (gemini-companion-test-answering #'always
          (gemini-companion-decision-undo))
        (while calls
          (answer)))
      (should (equal (make-list 3 "2\n") (texts))))))

;;; gemini-companion-remote-test.el ends here
