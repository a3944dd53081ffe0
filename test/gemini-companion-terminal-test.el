;;; gemini-companion-terminal-test.el --- Tests of terminals  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Which terminal is taken, and what happens to the sequences in its output, with
;; a program in term.  test/e2e has the real CLIs in each terminal.

;;; Code:

(require 'derived)
(require 'gemini-companion-terminal)
(require 'gemini-companion-test-helper)
(require 'loadhist)
(require 'term)

(defconst gemini-companion-terminal-test-libraries
  '(("eat.el" "(define-derived-mode eat-mode fundamental-mode \"eat\")
(defun eat-exec (&rest _)) (provide 'eat)")
    ("vterm.el" "(define-derived-mode vterm-mode fundamental-mode \"vterm\"
  (process-put (start-process \"vterm\" (current-buffer) \"cat\")
               'adjust-window-size-function #'ignore))
(provide 'vterm)")
    ("vterm-module.so" ""))
  "Files with minimal versions of libraries.")

(ert-deftest gemini-companion-terminal-is-the-best-that-is-whole ()
  (gemini-companion-test-with-directory '()
    (let ((gemini-companion-terminal nil)
          (kill-buffer-query-functions nil)
          (load-path (list directory))
          (load-suffixes '(".el" ".so"))
          (load-file-rep-suffixes '("")))
      (unwind-protect
          (pcase-dolist (`(,file ,mode)
                         '((nil term-mode)
                           ("eat.el" eat-mode)
                           ;; Loading it now would ask whether to compile.
                           ("vterm.el" eat-mode)
                           ("vterm-module.so" vterm-mode)))
            (when file
              (write-region
               (cadr (assoc file gemini-companion-terminal-test-libraries))
               nil (expand-file-name file directory) nil 'silent))
            (with-temp-buffer
              (gemini-companion-terminal-start '("cat"))
              (should (eq mode major-mode))))
        (dolist (feature '(eat vterm))
          (when (featurep feature)
            (unload-feature feature t)))))))

(defmacro gemini-companion-terminal-test-with (&rest body)
  "Run BODY in the term buffer of a program that records what it is sent.
`process' is the program, and `answers' returns that."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory '(("answers" ""))
     (let ((gemini-companion-terminal 'term)
           (kill-buffer-query-functions nil)
           (inhibit-message t))
       (with-temp-buffer
         (setq default-directory directory)
         (gemini-companion-terminal-start
          '("sh" "-c" "stty raw -echo; echo up; exec cat >answers"))
         (let ((process (get-buffer-process (current-buffer)))
               (answers (lambda () (gemini-companion-test-file-text "answers"))))
           (ignore answers)
           (gemini-companion-test-eventually
             (string-search "up" (buffer-string)))
           ,@body)))))

(defconst gemini-companion-terminal-test-white "\e]11;rgb:ffff/ffff/ffff\e\\"
  "Report of a white background.")

(ert-deftest gemini-companion-terminal-answers-questions-for-colors ()
  (gemini-companion-terminal-test-with
    (let ((mode (frame-parameter nil 'background-mode))
          (expected ""))
      (set-frame-parameter nil 'background-mode 'light)
      (unwind-protect
          (pcase-dolist
              (`(,output . ,answer)
               `((("text \e]11;?\a more") . ,gemini-companion-terminal-test-white)
                 (("x\e" "]" "11;" "?\e" "\\\e[c")
                  . ,gemini-companion-terminal-test-white)
                 (("\e]10;?\a\e]11;?\a")
                  . ,(concat "\e]10;rgb:0000/0000/0000\e\\"
                             gemini-companion-terminal-test-white))
                 ;; A sequence that another one has ended.
                 (("\e]0;title\e[1m\e]11;?\a")
                  . ,gemini-companion-terminal-test-white)
                 ;; A color that the CLI sets is no question.
                 (("\e]11;#ffffff\a" "\e]0;title\a" "\e]110\a") . "")))
            (ert-info ((format "%S" output))
              (dolist (part output)
                (funcall (process-filter process) process part))
              (setq expected (concat expected answer))
              (gemini-companion-test-eventually
                (equal expected (funcall answers)))))
        (set-frame-parameter nil 'background-mode mode)))
    ;; The terminal would display these.
    (dolist (part '("one\e]0;title\atwo" "\e]8;;http://a\e\\link\e]8;;\e"
                    "\\three" "\e" "]2;title\afour\e" "[1mfive\e[0m"))
      (funcall (process-filter process) process part))
    ;; Eat would answer, too, and display the padding of a title.
    (let ((major-mode 'eat-mode))
      (funcall (process-filter process) process "six\e]11;?\a\e]0;a b  \a7"))
    (should (string-search "onetwolinkthreefourfivesix\e]0;a b7" (buffer-string)))))

(ert-deftest gemini-companion-terminal-adds-what-a-cli-copies-to-the-kill-ring ()
  (gemini-companion-terminal-test-with
    (let* ((kill-ring '("before"))
           (interprogram-cut-function nil)
           (long (make-string 50000 ?x))
           (encoded (base64-encode-string long t)))
      (pcase-dolist
          (`(,output . ,copied)
           `((("\e]52;c;Z3Jvw59lIEvDvGNoZQ==\a") . "große Küche")
             ((,(concat "\e]52;c;" (substring encoded 0 4000))
               ,(substring encoded 4000) "\e\\") . ,long)
             ;; One that does not end.
             (("\e]52;c;" ,@(make-list 10 (make-string 60000 ?A))
               "\e]52;c;Yg==\a") . "b")
             ;; Questions for the clipboard get no answer.
             (("\e]52;c;?\a" "\e]52;c;!\a") . "b")))
        (dolist (part output)
          (gemini-companion-test-in-turkish
            (funcall (process-filter process) process part)))
        (should (equal copied (car kill-ring))))
      (should (equal 4 (length kill-ring)))
      (should (equal "" (funcall answers))))))

(ert-deftest gemini-companion-terminal-is-watched-while-the-mode-is-on ()
  (gemini-companion-terminal-test-with
    (let ((session (list :id "1" :client "gemini" :pid (process-id process)))
          (filter (process-filter process)))
      (funcall filter process "\e]0;✋  Action Required\a")
      (gemini-companion-terminal-stop)
      (let ((bare (process-filter process)))
        (should-not (equal filter bare))
        (unwind-protect
            (progn
              (gemini-companion-terminal-ready 'started)
              (gemini-companion-session-update (list session))
              (should (equal filter (process-filter process)))
              ;; Its question may have been answered meanwhile.
              (should (eq 'unknown (gemini-companion-session-state session)))
              ;; Once is enough.
              (gemini-companion-session-update (list session))
              (gemini-companion-terminal-stop)
              (should (eq bare (process-filter process))))
          (gemini-companion-terminal-stop)
          (gemini-companion-session-stop))))))

;;;; Shells

(defmacro gemini-companion-terminal-test-in-shell (&rest body)
  "Run BODY in the term buffer of a shell, in which a CLI is connected.
`session' is the CLI, which displays what is typed.  `type' types a line,
and waits until its last word is displayed."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory '()
     (with-temp-buffer
       (let* ((kill-buffer-query-functions nil)
              (inhibit-message t)
              (kill-ring nil)
              (interprogram-cut-function nil)
              (process-environment (cons "PS1=$ " process-environment))
              (type (lambda (line)
                      (process-send-string (get-buffer-process (current-buffer))
                                           (concat line "\n"))
                      (let ((end (car (last (split-string line)))))
                        (gemini-companion-test-eventually
                          (string-match-p (format "^%s *$" end)
                                          (buffer-string))))))
              session)
         (setq default-directory directory)
         (term-mode)
         (term-exec (current-buffer) "shell" "sh" nil '("-mi"))
         (term-char-mode)
         (process-send-string (get-buffer-process (current-buffer))
                              "sh -c 'echo $$ >pid; exec cat'\n")
         (gemini-companion-test-eventually
           (setq session
                 (ignore-errors
                   (list :id "1" :client "qwen"
                         :pid (string-to-number
                               (gemini-companion-test-file-text "pid"))))))
         (unwind-protect
             (progn
               (gemini-companion-terminal-ready 'started)
               (gemini-companion-state-start)
               (gemini-companion-session-update (list session))
               ,@body)
           (gemini-companion-session-stop)
           (gemini-companion-state-stop)
           (gemini-companion-terminal-stop))))))

(defconst gemini-companion-terminal-test-sequences
  "\e]52;c;Zm9v\a\e]0;me@host: ~\a"
  "What copies a text and sets a title.")

(ert-deftest gemini-companion-terminal-takes-nothing-from-a-shell ()
  (gemini-companion-terminal-test-in-shell
    (let* ((process (get-buffer-process (current-buffer)))
           (print (format "printf '%%b' '%s'; echo; echo "
                          (seq-reduce
                           (lambda (text pair)
                             (string-replace (car pair) (cdr pair) text))
                           '(("\e" . "\\033") ("\a" . "\\007")
                             ("me@host: " . "\\342\\227\\220 Qwen - "))
                           gemini-companion-terminal-test-sequences))))
      (funcall type (concat gemini-companion-terminal-test-sequences "\ncopied"))
      (gemini-companion-test-eventually (equal '("foo") kill-ring))
      (should (eq 'unknown (gemini-companion-session-state session)))
      (funcall type "\e]0;Qwen - p\a\nnamed")
      (gemini-companion-test-eventually
        (eq 'ready (gemini-companion-session-state session)))
      ;; Suspended, it has not the terminal.
      (setq kill-ring nil)
      (signal-process (plist-get session :pid) 'SIGTSTP)
      (gemini-companion-test-eventually
        (string-search "Stopped" (buffer-string)))
      (funcall type (concat print "shell"))
      (should-not kill-ring)
      ;; It has exited, but Emacs does not know yet.
      (funcall type "kill -9 %1; wait; echo killed")
      (funcall type (concat print "again"))
      (should-not kill-ring)
      (should (eq 'ready (gemini-companion-session-state session)))
      (gemini-companion-session-update nil)
      (funcall type (concat print "last"))
      (should-not kill-ring)
      (should-not (advice-function-member-p #'gemini-companion-terminal--filter
                                            (process-filter process))))))

;;; gemini-companion-terminal-test.el ends here
