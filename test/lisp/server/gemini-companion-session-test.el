;;; gemini-companion-session-test.el --- Tests of the sessions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-part)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-session)

(ert-deftest gemini-companion-session-counts-once-and-is-named ()
  (unwind-protect
      (progn
        ;; A CLI that connects again has two sessions with one process.
        (gemini-companion-test-set-sessions
         (list (gemini-companion-session-make
                :id "a" :pid 7) (gemini-companion-session-make
                                 :id "b" :pid 7) (gemini-companion-session-make :id "c")
                                 (gemini-companion-session-make :id "d")))
        (should (equal '("a" "c" "d")
                       (mapcar #'gemini-companion-session-id
                               (gemini-companion-sessions))))
        ;; The process is named where another CLI has the same name.
        (gemini-companion-test-set-sessions
         (list (gemini-companion-session-make
                :id "1" :client "gemini" :pid 8 :directory "/x/web/")))
        (pcase-dolist
            (`(,name . ,facts)
             '(("Qwen Code (web)" :client "qwen" :pid 7 :directory "/home/web/")
               ("Gemini CLI (web, process 7)"
                :client "gemini" :pid 7 :directory "/home/web/" :id "linked-7")
               ;; It was connected to the last Emacs.
               ("Gemini CLI (web)" :client "gemini" :pid 7 :directory "/home/web/")
               ("Gemini CLI (ssh:far)" :client "gemini" :remote "/ssh:far:")
               ("the CLI (\\u202Eweb-...0123456789a\\u200B)"
                :directory "/x/\u202Eweb-0123456789abcdef0123456789a\u200B/")
               ("Gemini CLI (process 7)" :client "gemini" :pid 7)
               ("the CLI (session 01234567)")))
          (should (equal name (gemini-companion-session-name
                               (gemini-companion-session-from-facts
                                (append facts '(:id "0123456789")))))))
        ;; Both are connected.
        (gemini-companion-test-set-sessions
         (mapcar (lambda (pid)
                   (gemini-companion-session-make
                    :id (format "%d" pid) :client "gemini" :pid pid :directory "/web/"))
                 '(7 8)))
        (should (equal '("Gemini CLI (web, process 7)" "Gemini CLI (web, process 8)")
                       (mapcar #'gemini-companion-session-name
                               (gemini-companion-sessions)))))
    (gemini-companion-test-set-sessions nil))
  (should (equal "Qwen Code"
                 (gemini-companion-session-title
                  (gemini-companion-session-make :client "qwen"))))
  (should (equal "the CLI" (gemini-companion-session-title
                            (gemini-companion-session-make :id "abc")))))

(ert-deftest gemini-companion-session-finds-the-terminal-of-a-grandchild ()
  (with-temp-buffer
    (let ((process (start-process "terminal" (current-buffer) "sh" "-c"
                                  "sh -c 'sleep 1000 & echo $!; wait'; :")))
      (set-process-query-on-exit-flag process nil)
      (unwind-protect
          (progn
            (gemini-companion-test-eventually
              (string-match-p "[0-9]+\n" (buffer-string)))
            (let ((pid (string-to-number (buffer-string))))
              (dolist (ask (list (symbol-function 'process-attributes)
                                 ;; A header line asks at each redisplay.
                                 (lambda (_) (error "Asked again"))))
                (cl-letf (((symbol-function 'process-attributes) ask))
                  (should (eq (current-buffer)
                              (gemini-companion-session-terminal
                               (gemini-companion-session-make :pid pid))))))
              (should-not (gemini-companion-session-terminal
                           (gemini-companion-session-make :pid (emacs-pid))))
              ;; Of two on a host, it may be the terminal of either.
              (setq-local gemini-companion-session-remote-directory "/ssh:far:/srv/")
              (let ((all (list
                          (gemini-companion-session-make :id "1" :remote "/ssh:far:")
                          (gemini-companion-session-make
                           :id "2" :remote "/ssh:far:"))))
                (dolist (sessions (list all (last all) nil))
                  (gemini-companion-test-set-sessions sessions)
                  (should (eq (null (cdr sessions))
                              (bufferp (gemini-companion-session-terminal
                                        (cadr all)))))))
              (signal-process pid 'SIGTERM)))
        (delete-process process)))))

(ert-deftest gemini-companion-sessions-of-two-hosts-are-never-the-same ()
  (let ((here
         (gemini-companion-session-make :id "1" :pid 7 :identity 3 :directory "/ws")))
    (pcase-dolist
        (`(,same . ,other)
         '((t :id "1")
           (t :id "2" :pid 7 :identity 3)
           (nil :id "2" :pid 7 :identity 4)
           ;; What another host says of itself.
           (nil :id "1" :remote "/ssh:far:")
           (nil :id "2" :pid 7 :identity 3 :remote "/ssh:far:")
           (nil :id "1" :pid 7 :identity 3 :directory "/ws"
                :remote "/ssh:far:")))
      (setq other (gemini-companion-session-from-facts other))
      (should (eq same (and (gemini-companion-session-same-p here other) t)))
      (should (eq same (and (gemini-companion-session-same-p other here) t)))
      (gemini-companion-test-set-sessions (list other))
      (unwind-protect
          (should (eq (and same (equal "1" (gemini-companion-session-id other)))
                      (and (gemini-companion-session-connected-p here) t)))
        (gemini-companion-part-stop 'session)))
    (let ((far (gemini-companion-session-make
                :id "1" :pid 7 :identity 3 :remote "/ssh:far:")))
      (should (gemini-companion-session-same-p
               far (gemini-companion-test-session-like far)))
      (should-not (gemini-companion-session-same-p
                   far (gemini-companion-test-session-like far :remote "/ssh:b:")))
      ;; A process there says nothing.
      (should-not (gemini-companion-session-same-p
                   far (gemini-companion-test-session-like far :id "2"))))))

(ert-deftest gemini-companion-session-has-the-types-of-what-the-server-reports ()
  (let ((facts '(:id "1" :client "pi" :pid 7 :identity 3)))
    (should (equal facts (gemini-companion-session-facts
                          (gemini-companion-session-from-facts facts)))))
  (dolist (facts '((:client "pi") (:id 7) (:id "1" :pid "7") (:id "1" :directory t)))
    (should-error (gemini-companion-session-from-facts facts))))

(defmacro gemini-companion-session-test-in-terminals (&rest body)
  "Evaluate BODY in the terminal of Gemini CLI; another is that of Qwen Code.
There are also two terminals of CLIs that are not connected, OTHER of this host,
and FAR."
  (declare (indent 0) (debug t))
  `(let* ((buffers (mapcar #'generate-new-buffer '("qwen" "gemini" "other" "far")))
          (sessions nil)
          (terminals (cl-mapcar #'cons '("qwen" "gemini") buffers)))
     (unwind-protect
         (cl-letf (((symbol-function 'gemini-companion-session-terminal)
                    (lambda (session)
                      (cdr (assoc (gemini-companion-session-client session)
                                  terminals)))))
           (gemini-companion-test-set-sessions
            (mapcar (lambda (client)
                      (gemini-companion-session-make
                       :id client :client client :directory "/x/web/"))
                    '("qwen" "gemini")))
           (setq sessions (gemini-companion-sessions))
           (pcase-let ((`(,_ ,here ,other ,far) buffers))
             (dolist (buffer (list other far))
               (let ((process (start-process "cli" buffer "cat")))
                 (set-process-query-on-exit-flag process nil)
                 (process-put process 'gemini-companion-started 1.0)))
             (with-current-buffer far
               (setq gemini-companion-session-remote-directory "/ssh:far:/"))
             (with-current-buffer here
               ,@body)))
       (gemini-companion-test-set-sessions nil)
       (mapc #'kill-buffer buffers))))

;; "RET" accepted the edits of the other one.
(ert-deftest gemini-companion-session-of-the-terminal-is-taken-without-a-question ()
  (gemini-companion-session-test-in-terminals
    (cl-letf (((symbol-function 'gemini-companion-choice-read)
               (lambda (&rest _) (error "Asked"))))
      (should (eq (nth 1 sessions) (gemini-companion-session-read sessions)))
      ;; It has nothing of what the command is about; another one has.
      (should (eq (nth 1 sessions)
                  (gemini-companion-session-read (list (car sessions)))))
      (with-current-buffer other
        (should (string-search "in this terminal is not connected"
                               (gemini-companion-test-refusal
                                 (gemini-companion-session-read sessions)))))
      (with-temp-buffer
        (should-error (gemini-companion-session-read sessions))))
    ;; Which of the CLIs on a host this is may be unknown.
    (with-current-buffer far
      (cl-letf (((symbol-function 'gemini-companion-choice-read)
                 (lambda (&rest _) 'asked)))
        (should (eq 'asked (gemini-companion-session-read sessions)))))))

(ert-deftest gemini-companion-session-of-the-terminal-is-that-of-each-command ()
  (gemini-companion-test-needs-add-on 'prompts)
  (require 'gemini-companion-auto)
  (require 'gemini-companion-comment-send)
  (require 'gemini-companion-patch)
  (gemini-companion-session-test-in-terminals
    (let ((asked nil))
      (cl-letf (((symbol-function 'gemini-companion-choice-read)
                 (lambda (&rest _) (error "Asked")))
                ((symbol-function 'gemini-companion-edits) (lambda () '(edit)))
                ((symbol-function 'gemini-companion-edit-session)
                 (lambda (_) (car sessions)))
                ((symbol-function 'y-or-n-p)
                 (lambda (prompt) (push prompt asked) nil)))
        (should-error (call-interactively #'gemini-companion-auto-accept)
                      :type 'user-error)
        (should (string-search "Gemini CLI" (car asked)))
        (should (eq (nth 1 sessions) (gemini-companion-comment-send--session)))
        (should (string-search "Gemini CLI (web) has edited no file"
                               (gemini-companion-test-refusal
                                 (gemini-companion-patch--edits-of-turn))))))))

(ert-deftest gemini-companion-session-that-exits-meanwhile-has-no-terminal ()
  (with-temp-buffer
    (let* ((buffer (current-buffer))
           (process (start-process "shell" buffer "sleep" "600")))
      (set-process-query-on-exit-flag process nil)
      (unwind-protect
          ;; Its number was valid a moment ago, and has no attributes now.
          (cl-letf (((symbol-function 'gemini-companion-session-terminal)
                     (lambda (_) buffer))
                    ((symbol-function 'process-attributes) #'ignore))
            (should-not (gemini-companion-session-has-terminal-p
                         process (gemini-companion-session-make :id "1" :pid 1))))
        (delete-process process)))))

(ert-deftest gemini-companion-session-names-commands-that-a-cli-has ()
  (unwind-protect
      (pcase-dolist (`(,clients ,text)
                     '((("copilot") nil)
                       (() nil)
                       (("copilot" "gemini" "gemini")
                        "run /ide enable in Gemini CLI if it says so")
                       (("qwen" "gemini")
                        "run /ide enable in Qwen Code and Gemini CLI if it says so")))
        (gemini-companion-test-set-sessions (seq-map-indexed (lambda (client number)
                                                               (gemini-companion-session-make
                                                                :id (format "s%d" number) :client client))
                                                             clients))
        (should (equal text (gemini-companion-session-reconnect "if it says so"))))
    (gemini-companion-test-set-sessions nil)))

(provide 'gemini-companion-session-test)

;;; gemini-companion-session-test.el ends here
