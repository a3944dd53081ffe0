;;; gemini-companion-session-test.el --- Tests of the sessions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-part)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-session)

(ert-deftest gemini-companion-session-counts-once-and-is-named ()
  :tags '(pure)
  (unwind-protect
      (progn
        ;; A CLI that connects again has two sessions with one process.
        (gemini-companion-server-receive 'sessions-update
          '((:id "a" :pid 7) (:id "b" :pid 7) (:id "c") (:id "d")))
        (should (equal '("a" "c" "d")
                       (mapcar (lambda (session) (plist-get session :id))
                               (gemini-companion-sessions))))
        ;; The process is named where another CLI has the same name.
        (gemini-companion-server-receive 'sessions-update
          '((:id "1" :client "gemini" :pid 8 :directory "/x/web/")))
        (pcase-dolist
            (`(,name . ,facts)
             '(("Qwen Code (web)" :client "qwen" :pid 7 :directory "/home/web/")
               ("Gemini CLI (web, process 7)"
                :client "gemini" :pid 7 :directory "/home/web/")
               ("Gemini CLI (ssh:far)" :client "gemini" :remote "/ssh:far:")
               ("the CLI (\\u202Eweb-...0123456789a\\u200B)"
                :directory "/x/\u202Eweb-0123456789abcdef0123456789a\u200B/")
               ("Gemini CLI (process 7)" :client "gemini" :pid 7)
               ("the CLI (session 01234567)")))
          (should (equal name (gemini-companion-session-name
                               (append '(:id "0123456789") facts))))))
    (gemini-companion-server-receive 'sessions-update nil))
  (should (equal "Qwen Code"
                 (gemini-companion-session-title '(:client "qwen"))))
  (should (equal "the CLI" (gemini-companion-session-title '(:id "abc")))))

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
                               (list :pid pid))))))
              (should-not (gemini-companion-session-terminal
                           (list :pid (emacs-pid))))
              ;; Of two on a host, it may be the terminal of either.
              (setq-local gemini-companion-session-remote-directory "/ssh:far:/srv/")
              (let ((all '((:id "1" :remote "/ssh:far:")
                           (:id "2" :remote "/ssh:far:"))))
                (dolist (sessions (list all (last all) nil))
                  (gemini-companion-server-receive 'sessions-update sessions)
                  (should (eq (null (cdr sessions))
                              (bufferp (gemini-companion-session-terminal
                                        (cadr all)))))))
              (signal-process pid 'SIGTERM)))
        (delete-process process)))))

(ert-deftest gemini-companion-sessions-of-two-hosts-are-never-the-same ()
  :tags '(pure)
  (let ((here '(:id "1" :pid 7 :identity 3 :directory "/ws")))
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
      (should (eq same (and (gemini-companion-session-same-p here other) t)))
      (should (eq same (and (gemini-companion-session-same-p other here) t)))
      (gemini-companion-server-receive 'sessions-update (list other))
      (unwind-protect
          (should (eq (and same (equal "1" (plist-get other :id)))
                      (and (gemini-companion-session-connected-p here) t)))
        (gemini-companion-part-stop 'session)))
    (let ((far '(:id "1" :pid 7 :identity 3 :remote "/ssh:far:")))
      (should (gemini-companion-session-same-p far (copy-sequence far)))
      (should-not (gemini-companion-session-same-p
                   far (plist-put (copy-sequence far) :remote "/ssh:b:")))
      ;; A process there says nothing.
      (should-not (gemini-companion-session-same-p
                   far (plist-put (copy-sequence far) :id "2"))))))

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
                         process '(:id "1" :pid 1))))
        (delete-process process)))))

(ert-deftest gemini-companion-session-names-commands-that-a-cli-has ()
  :tags '(pure)
  (unwind-protect
      (pcase-dolist (`(,clients ,text)
                     '((("copilot") nil)
                       (() nil)
                       (("copilot" "gemini" "gemini")
                        "run /ide enable in Gemini CLI if it says so")
                       (("qwen" "gemini")
                        "run /ide enable in Qwen Code and Gemini CLI if it says so")))
        (gemini-companion-server-receive
         'sessions-update
         (seq-map-indexed (lambda (client number)
                            (list :id (format "s%d" number) :client client))
                          clients))
        (should (equal text (gemini-companion-session-reconnect "if it says so"))))
    (gemini-companion-server-receive 'sessions-update nil)))

(provide 'gemini-companion-session-test)

;;; gemini-companion-session-test.el ends here
