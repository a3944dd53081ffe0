;;; gemini-companion-terminal-test.el --- Tests of terminals and their output  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'derived)
(require 'display-fill-column-indicator)
(require 'display-line-numbers)
(require 'gemini-companion-cli)
(require 'gemini-companion-cli-test-helper)
(require 'gemini-companion-part)
(require 'gemini-companion-terminal)
(require 'hl-line)
(require 'loadhist)

(ert-deftest gemini-companion-terminal-shows-nothing-beside-the-rows-of-a-cli ()
  (gemini-companion-run-test-with-mode
   (let ((trailing (default-value 'show-trailing-whitespace))
         (modes '(global-display-line-numbers-mode global-hl-line-mode
						   global-display-fill-column-indicator-mode))
         rows)
     (unwind-protect
         (progn
           (dolist (mode modes) (funcall mode 1))
           (setq-default show-trailing-whitespace t)
           (dolist (terminal
                    (list 'term
                          (lambda (_)
                            ;; As eat does it: the program starts after the mode.
                            (text-mode)
                            (setq rows (format "%s" (list display-line-numbers
                                                          hl-line-mode)))
                            (start-process "cat" (current-buffer) "cat"))))
             (let ((gemini-companion-terminal terminal)
                   (gemini-companion-run-commands '(("gemini" "cat"))))
               (gemini-companion-run '(4))
               (should (get-buffer-process (current-buffer)))
               (should-not (or display-line-numbers display-line-numbers-mode
                               hl-line-mode global-hl-line-mode
                               display-fill-column-indicator-mode
                               show-trailing-whitespace))))
           (should (equal "(nil nil)" rows))
           ;; Other buffers stay as they were.
           (with-temp-buffer
             (text-mode)
             (should (and display-line-numbers global-hl-line-mode
                          show-trailing-whitespace))))
       (dolist (mode modes) (funcall mode -1))
       (setq-default show-trailing-whitespace trailing)))))

(ert-deftest gemini-companion-terminal-is-the-best-that-is-whole ()
  (gemini-companion-run-test-with-mode
    (let ((gemini-companion-terminal nil)
          (load-path (list directory))
          (load-suffixes '(".el" ".so"))
          (load-file-rep-suffixes '("")))
      (unwind-protect
          (pcase-dolist
              (`(,mode ,file ,text)
               '((term-mode "none.el" "")
                 (eat-mode "eat.el"
                           "(define-derived-mode eat-mode fundamental-mode \"eat\")
(defun eat-exec (&rest _)) (provide 'eat)")
                 ;; Loading it now would ask whether to compile.
                 (eat-mode "vterm.el"
                           "(define-derived-mode vterm-mode fundamental-mode \"vterm\"
  (process-put (start-process \"vterm\" (current-buffer) \"cat\")
               'adjust-window-size-function #'ignore))
(provide 'vterm)")
                 (vterm-mode "vterm-module.so" "")))
            (gemini-companion-test-write (expand-file-name file directory) text)
            (gemini-companion-run '(4))
            (should (eq mode major-mode)))
        (dolist (feature '(eat vterm))
          (when (featurep feature) (unload-feature feature t)))))))

(defmacro gemini-companion-terminal-test-with (&rest body)
  "Run BODY in the term buffer of a program that records what it is sent.
`process' is the program, and `answers' returns that."
  (declare (indent 0) (debug t))
  `(gemini-companion-run-test-with-mode
     (let ((gemini-companion-terminal 'term)
           (kill-buffer-query-functions nil)
           (inhibit-message t)
           (gemini-companion-run-commands
            '(("gemini" "sh" "-c"
               "stty raw -echo; >answers; echo up; exec cat >answers"))))
       (gemini-companion-run)
       (with-current-buffer (window-buffer)
         (gemini-companion-test-eventually
           (string-search "up" (buffer-string)))
         (let ((process (get-buffer-process (current-buffer)))
               (answers (lambda () (gemini-companion-test-file-text "answers"))))
           (ignore answers process)
           ,@body)))))

(ert-deftest gemini-companion-run-sends-escape-while-the-terminal-takes-keys ()
  (gemini-companion-terminal-test-with
    (pcase-dolist (`(,key . ,command)
                   '(("ESC ESC" . gemini-companion-run-escape)
                     ("C-x C-c" . save-buffers-kill-terminal)
                     ("C-x C-x" . term-send-raw) ("C-c C-c" . term-send-raw)))
      (should (eq command (key-binding (kbd key)))))
    (gemini-companion-run-escape)
    (term-line-mode)
    (ignore-errors (gemini-companion-run-escape))
    (process-send-string nil "x")
    (gemini-companion-test-eventually (equal "\ex" (funcall answers)))))

(defconst gemini-companion-terminal-test-white "\e]11;rgb:ffff/ffff/ffff\e\\"
  "Report of a white background.")

(ert-deftest gemini-companion-terminal-answers-questions-for-colors ()
  (gemini-companion-terminal-test-with
    (cl-letf (((frame-parameter nil 'background-mode) 'light)
              (expected ""))
      (pcase-dolist
          (`(,output . ,answer)
           `((("text \e]11;?\a more") . ,gemini-companion-terminal-test-white)
             (("x\e" "]" "11;" "?\e" "\\\e[c")
              . ,gemini-companion-terminal-test-white)
             ;; Once a second.
             (("\e]7501;?\e\\" "\e]7501;?\e\\" "\e]7501;?x\e\\") . "\e]7501;?\e\\")
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
            (equal expected (funcall answers))))))
    ;; The terminal would display these.
    (dolist (part '("one\e]0;title\atwo" "\e]8;;http://a\e\\link\e]8;;\e"
                    "\\three" "\e" "]2;title\afour\e" "[1mfive\e[0m"))
      (funcall (process-filter process) process part))
    ;; Eat would answer, too, and display the padding of a title.
    (let ((major-mode 'eat-mode))
      (funcall (process-filter process) process "six\e]11;?\a\e]0;a b  \a7"))
    (should (string-search "onetwolinkthreefourfivesix\e]0;a b7" (buffer-string)))
    ;; The program may still write.
    (kill-buffer)
    (funcall (process-filter process) process "\e]0;title\a")))

(ert-deftest gemini-companion-terminal-sends-no-more-than-is-read ()
  (gemini-companion-terminal-test-with
    (let ((sent 0)
          (began (float-time)))
      (cl-letf (((symbol-function 'process-send-string)
                 (lambda (&rest _) (cl-incf sent))))
        (dotimes (_ 40)
          (gemini-companion-terminal--filter
           (list process (encode-coding-string
                          (mapconcat (lambda (_) "\e]11;?\a\e]0;✦  Working\a\e]0;◇  Ready\a")
                                     (number-sequence 1 50) "")
                          'utf-8)))))
      (should (<= 1 sent (* 20 (1+ (ceiling (- (float-time) began)))))))))

(ert-deftest gemini-companion-terminal-reports-the-background-to-a-cli-that-is-ready ()
  "Gemini CLI begins with the theme that it has saved, maybe in a dark Emacs."
  (gemini-companion-terminal-test-with
    (cl-letf (((frame-parameter nil 'background-mode) 'light)
              (ready "\e]0;\u25c7  Ready (x)\a"))
      ;; The first title comes before it reads what is sent.
      (dolist (title (list ready "\e]0;\u2726  Working (x)\a" ready))
        (should (equal "" (funcall answers)))
        (funcall (process-filter process) process
                 (encode-coding-string title 'utf-8)))
      (gemini-companion-test-eventually
        (equal gemini-companion-terminal-test-white (funcall answers)))
      ;; The user has loaded another theme.
      (setf (frame-parameter nil 'background-mode) 'dark)
      (funcall (process-filter process) process (encode-coding-string ready 'utf-8))
      (gemini-companion-test-eventually
        (equal (concat gemini-companion-terminal-test-white
                       "\e]11;rgb:0000/0000/0000\e\\")
               (funcall answers))))))

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
    (let ((session (gemini-companion-session-make
                    :id "1" :client "gemini" :pid (process-id process)))
          (filter (process-filter process)))
      (funcall filter process "\e]0;✋  Action Required\a")
      (gemini-companion-part-stop 'cli)
      (let ((bare (process-filter process)))
        (should-not (equal filter bare))
        (should-not header-line-format)
        (unwind-protect
            (progn
              (gemini-companion-part-start 'cli)
              (gemini-companion-test-set-sessions (list session))
              (should (equal filter (process-filter process)))
              (should (eq 'gemini-companion-run-escape
                          (key-binding (kbd "ESC ESC"))))
              ;; Its question may have been answered meanwhile.
              (should (eq 'unknown (gemini-companion-session-state session)))
              ;; Once is enough.
              (gemini-companion-test-set-sessions (list session))
              (gemini-companion-part-stop 'cli)
              (should (eq bare (process-filter process))))
          (gemini-companion-part-stop 'cli)
          (gemini-companion-test-set-sessions nil))))))

(ert-deftest gemini-companion-terminal-takes-nothing-from-a-shell ()
  ;; They copy a text, and set a title.
  (gemini-companion-test-with-directory
      '(("sequences" "\e]52;c;Zm9v\a\e]0;◐ Qwen - ~\a"))
    (with-temp-buffer
      (let* ((kill-buffer-query-functions nil)
             (inhibit-message t)
             (kill-ring nil)
             (interprogram-cut-function nil)
             (process-environment (cons "PS1=$ " process-environment))
             (print "cat sequences; echo; echo ")
             ;; Wait until the last word is displayed.
             (type (lambda (line)
                     (process-send-string (get-buffer-process (current-buffer))
                                          (concat line "\n"))
                     (let ((end (car (last (split-string line)))))
                       (gemini-companion-test-eventually
                         (string-match-p (format "^%s *$" end)
                                         (buffer-string))))))
             process session)
        (setq default-directory directory)
        (term-mode)
        (term-exec (current-buffer) "shell" "sh" nil '("-mi"))
        (term-char-mode)
        (setq process (get-buffer-process (current-buffer)))
        ;; A CLI that displays what is typed.
        (process-send-string process "sh -c 'echo $$ >pid; exec cat'\n")
        (gemini-companion-test-eventually
          (setq session
                (ignore-errors
                  (gemini-companion-session-make :id "1" :client "qwen"
                                                 :pid (string-to-number
                                                       (gemini-companion-test-file-text "pid"))))))
        (gemini-companion-test-with-parts '(cli state) session
          (funcall type "\e]52;c;Zm9v\a\e]0;me@host: ~\a\ncopied")
          (gemini-companion-test-eventually (equal '("foo") kill-ring))
          (should (eq 'unknown (gemini-companion-session-state session)))
          (funcall type "\e]0;Qwen - p\a\nnamed")
          (gemini-companion-test-eventually
            (eq 'ready (gemini-companion-session-state session)))
          (should (eq process (gemini-companion-terminal-process session)))
          ;; Suspended, it has not the terminal.
          (setq kill-ring nil)
          (signal-process (gemini-companion-session-pid session) 'SIGTSTP)
          (gemini-companion-test-eventually
            (string-search "Stopped" (buffer-string)))
          (should-not (gemini-companion-terminal-process session))
          (funcall type (concat print "shell"))
          (should-not kill-ring)
          ;; It has exited, but Emacs does not know yet.
          (funcall type "kill -9 %1; wait; echo killed")
          (funcall type (concat print "again"))
          (should-not kill-ring)
          (should (eq 'ready (gemini-companion-session-state session)))
          (gemini-companion-test-set-sessions nil)
          (funcall type (concat print "last"))
          (should-not kill-ring)
          (should-not (assq process (gemini-companion-test-traces))))))))

(ert-deftest gemini-companion-terminal-term-erases-whole-lines ()
  (with-temp-buffer
    (let* ((kill-buffer-query-functions nil)
           (process (gemini-companion-test-start-cat)))
      (gemini-companion-test-with-parts '(cli) nil
        (process-put process 'gemini-companion-started t)
        (gemini-companion-terminal-watch)
        (funcall (process-filter process) process
                 "\e[2J\e[Hsome text\e[5D\e[2Kx")
        (should-not (string-search "some" (buffer-string)))
        (should (string-search "    x" (buffer-string)))))))

;;; gemini-companion-terminal-test.el ends here
