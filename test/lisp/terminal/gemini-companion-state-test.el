;;; gemini-companion-state-test.el --- Tests of what CLIs do  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-cli)
(require 'gemini-companion-state)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-state-test-with (client &rest body)
  "Run BODY with `session' of CLIENT, in a terminal with `process'.
Without CLIENT, it is a Gemini CLI elsewhere.  `states' has the
reported states, the last first."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory '(("a" "old\n"))
     (with-temp-buffer
       (let* ((kill-buffer-query-functions nil)
              (inhibit-message t)
              (client ,client)
              (process (gemini-companion-test-start-cat))
              (session (gemini-companion-session-make
                        :id "1" :client (or client "gemini")
                        :pid (and client (process-id process))))
              (states nil)
              ;; A test is quicker than a CLI.
              (gemini-companion-state-updates-per-second 1000)
              (gemini-companion-state-functions
               (list (lambda (_session state) (push state states)))))
         (ignore states)
         (gemini-companion-test-with-parts '(cli state edit proposal) session
           ,@body)))))

(ert-deftest gemini-companion-state-is-shown-by-window-titles ()
  (pcase-dolist
      (`(,client . ,rows)
       '(("gemini" ("Gemini CLI  (p)" . unknown) ("◇  Ready (p)   " . ready)
          ("✦  Working… (p)" . working) ("✦  Reading the file (p)" . working)
          ("⏲  Working… (p)" . working) ("✋  Action Required (p)" . waiting)
          ("vim" . unknown))
         ("qwen" ("" . unknown) ("me@host: ~/p" . unknown)
          ("Qwen - p   " . ready) ("◐︎ Qwen - p" . working)
          ("✳︎ Qwen - p" . waiting) ("Name of session" . ready))))
    (gemini-companion-state-test-with client
      (should (eq 'unknown (gemini-companion-session-state session)))
      (pcase-dolist (`(,title . ,state) rows)
        (ert-info (title)
          (let ((output (encode-coding-string (format "\e]0;%s\a" title)
                                              'utf-8)))
            ;; Parts of a character, too.
            (dolist (part (list (substring output 0 5) (substring output 5)))
              (funcall (process-filter process) process part)))
          (should (eq state (gemini-companion-session-state session)))))
      (should (equal (if (equal client "gemini")
                         '(ready working waiting unknown)
                       '(ready working waiting ready))
                     (reverse states))))))

(defun gemini-companion-state-test-report (process &rest reports)
  "Let the program of PROCESS send REPORTS, each in two parts."
  (dolist (report reports)
    (let ((output (format "x\e]7501;%s\e\\y" report)))
      (funcall (process-filter process) process (substring output 0 9))
      (funcall (process-filter process) process (substring output 9)))))

(ert-deftest gemini-companion-state-is-reported-by-the-program ()
  "As Copilot CLI 1.0.106 does."
  (gemini-companion-state-test-with "copilot"
    (let* ((ended nil)
           (said nil)
           (gemini-companion-turn-end-functions
            (list (lambda (_session _files prompt) (push prompt ended))))
           (report (apply-partially #'gemini-companion-state-test-report process))
           (turn (lambda () (gemini-companion-session-turn session))))
      (pcase-dolist (`(,text . ,state)
                     '(("state=idle:app=copilot" . ready) ("state=asleep" . ready)
                       ("state=working" . working)
                       ("state=blocked:kind=question" . waiting)
                       ("state=working" . working) ("state=done" . ready)
                       ("state=working" . working) ("state=error" . ready)))
        (ert-info (text)
          (funcall report text)
          (should (eq state (gemini-companion-session-state session)))))
      (gemini-companion-test-eventually (cdr ended))
      ;; A review that is open stays.
      (funcall report "state=working")
      (gemini-companion-proposal-open 1 session (expand-file-name "a") "new\n")
      (should-not (gemini-companion-turn-ended (funcall turn)))
      (cl-letf (((symbol-function 'message)
                 (lambda (&rest args) (push (apply #'format args) said))))
        (funcall report "state=done" "state=done"))
      (should (= 1 (length said)))
      (should (string-search "has finished, but its" (car said)))
      (should (gemini-companion-turn-ended (funcall turn)))
      (should (eq 'waiting (gemini-companion-session-state session)))
      (should (eq 'pending (gemini-companion-edit-status
                            (car (gemini-companion-edits-open)))))
      (gemini-companion-test-eventually (nthcdr 2 ended))
      (gemini-companion-edit-reject (car (gemini-companion-edits-open)))
      (should (eq 'ready (gemini-companion-session-state session)))
      (should (= 3 (length ended)))
      ;; It was killed, and a shell prompts.
      (funcall report "state=working")
      (funcall (process-filter process) process "\e]133;A\a")
      (should (eq 'unknown (gemini-companion-session-state session))))))

;; It took two minutes.
(ert-deftest gemini-companion-state-changes-at-most-ten-times-a-second ()
  (pcase-dolist (`(,client . ,outputs)
                 '(("pi" "\e]7501;state=working\e\\" "\e]7501;state=done\e\\")
                   ("gemini" "\e]0;✦  Working… (p)\a" "\e]0;◇  Ready (p)\a")))
    (gemini-companion-state-test-with client
      (let ((gemini-companion-state-updates-per-second 10)
            (updates 0)
            (began (float-time)))
        (cl-letf* ((update (symbol-function 'gemini-companion-state--update))
                   ((symbol-function 'gemini-companion-state--update)
                    (lambda (&rest arguments)
                      (cl-incf updates)
                      (apply update arguments))))
          (dotimes (_ 40)
            (funcall (process-filter process) process
                     (encode-coding-string
                      (mapconcat (lambda (_) (string-join outputs))
                                 (number-sequence 1 50) "")
                      'utf-8)))
          (funcall (process-filter process) process
                   (encode-coding-string (car outputs) 'utf-8))
          (should (<= updates (* 10 (1+ (ceiling (- (float-time) began))))))
          ;; The last one counts.
          (gemini-companion-test-eventually
            (eq 'working (gemini-companion-session-state session))))))))

;; It said that the CLI was ready, which asked by its title.
(ert-deftest gemini-companion-state-is-not-that-of-a-command-which-reports ()
  (gemini-companion-state-test-with "gemini"
    (cl-flet ((becomes (state output)
                (funcall (process-filter process) process
                         (encode-coding-string output 'utf-8))
                (should (eq state (gemini-companion-session-state session)))))
      (becomes 'unknown "\e]7501;state=working\e\\")
      (becomes 'working "\e]0;✦  Working… (p)\a")
      (becomes 'working "\e]7501;state=done\e\\")
      (becomes 'waiting "\e]0;✋  Action Required (p)\a")
      ;; If it came to report its state, the newer one would count.
      (cl-letf (((symbol-function 'gemini-companion-client-reports-state-p) #'always))
        (becomes 'working "\e]7501;state=working\e\\")
        (becomes 'working "\e]0;✋  Action Required (p)\a")
        (becomes 'ready "\e]0;◇  Ready (p)\a")
        (becomes 'waiting "\e]7501;state=blocked\e\\")))))

(ert-deftest gemini-companion-state-survives-any-report ()
  (gemini-companion-state-test-with "copilot"
    (let ((parts ["state=" "working" "blocked" "id=" "msg=" "a/" ":" "=" "?" ";"
                  "\e" "\e\\" "\a" "\e]" "\e]7501;" "7501;" "clear" "\n" "\200" "é"
                  "\u202e" "aGVsbG8=" "%%%" "\e]133;A" "\e]0;t\a"])
          (count (string-to-number (or (getenv "GC_FUZZ") "2000"))))
      ;; term itself signals errors for some of this.
      (dotimes (_ count)
        (gemini-companion-terminal--filter
         (list process (mapconcat (lambda (_) (aref parts (random (length parts))))
                                  (make-list (random 12) nil) ""))))
      (dotimes (_ 20)
        (gemini-companion-terminal--filter
         (list process (concat "\e]7501;state=working:msg="
                               (make-string 50000 ?a)))))
      (should (< (length (process-get process 'gemini-companion-output-rest)) 200001))
      (should (<= (length (process-get process 'gemini-companion-program-status))
                  64)))
    (gemini-companion-state-test-report process "x" "state=clear" "state=working")
    (should (eq 'working (gemini-companion-session-state session)))))

(ert-deftest gemini-companion-state-elsewhere-is-known-from-reviews-and-hooks ()
  (gemini-companion-state-test-with nil
    (should (eq 'unknown (gemini-companion-session-state session)))
    (gemini-companion-proposal-open 1 session (expand-file-name "a") "new\n")
    (should (eq 'waiting (gemini-companion-session-state session)))
    (gemini-companion-edit-reject (car (gemini-companion-edits-open)))
    (should (eq 'unknown (gemini-companion-session-state session)))
    ;; It is linked, and does not report what is refused.
    (gemini-companion-state-report session 'prompt "Do that")
    (gemini-companion-proposal-open 2 session (expand-file-name "a") "new\n")
    (gemini-companion-state-report session 'question nil)
    (let ((turn (gemini-companion-session-turn session)))
      (gemini-companion-edit-reject (car (gemini-companion-edits-open)))
      (should (eq 'unknown (gemini-companion-session-state session)))
      (should (gemini-companion-turn-ended turn))
      (setq states nil)
      ;; It goes on if it has run another tool of that answer.
      (gemini-companion-proposal-open 3 session (expand-file-name "a") "new\n")
      (should (eq turn (gemini-companion-edit-turn
                        (car (gemini-companion-edits-open)))))
      (should-not (gemini-companion-turn-ended turn)))
    ;; Nor what is interrupted.
    (pcase-dolist (`(,event . ,state)
                   '((prompt . working) (question . waiting) (edit . working)
                     (end . ready)))
      (gemini-companion-state-report session event "Do it")
      (should (eq state (gemini-companion-session-state session))))
    (should-not (gemini-companion-edits-open))
    (gemini-companion-state-report session 'prompt "Refused there")
    (gemini-companion-state-report session 'question nil)
    (let ((turn (gemini-companion-session-turn session))
          (since (gemini-companion-session-state-since session)))
      (gemini-companion-state-report session 'prompt "Do it")
      (should (eql since (gemini-companion-turn-ended turn))))
    (should (equal '(waiting working working waiting working ready
                             working waiting working)
                   (reverse states)))
    (gemini-companion-test-set-sessions nil)
    (should (eq 'unknown (car states)))
    (should (eq 'unknown (gemini-companion-session-state session)))
    (should-not (gemini-companion-session-state-since session))))

(ert-deftest gemini-companion-state-turn-begins-with-its-prompt ()
  (gemini-companion-state-test-with "gemini"
    (let* ((title (lambda (text) (gemini-companion-state-set-title process text)))
           (turn (lambda () (gemini-companion-session-turn session)))
           (seen (lambda ()
                   (list (gemini-companion-turn-prompt (funcall turn))
                         (and (gemini-companion-turn-ended (funcall turn))
                              'ended))))
           ;; Its title comes after its first edit.
           (edited
            (lambda ()
              (gemini-companion-state-report session 'submitted "Edit it")
              (gemini-companion-proposal-open 1 session (expand-file-name "a") "new\n")
              (let ((edit (car (gemini-companion-edits-open))))
                (should (equal '("Edit it" nil) (funcall seen)))
                (funcall title "✦  Working…")
                (should (eq (funcall turn) (gemini-companion-edit-turn edit)))
                (gemini-companion-edit-reject edit)
                (funcall title "◇  Ready")))))
      (funcall title "◇  Ready")
      (should-not (funcall turn))
      (funcall edited)
      ;; Typed in its terminal.
      (funcall title "✦  Working…")
      (should (equal '(nil nil) (funcall seen)))
      (funcall title "✋  Action Required")
      (funcall title "✦  Working…")
      (let ((first (funcall turn)))
        (funcall title "◇  Ready")
        (should (eq first (funcall turn)))
        (should (<= (gemini-companion-turn-began first)
                    (gemini-companion-turn-ended first)))
        ;; By Emacs.
        (gemini-companion-state-report session 'submitted "\nSay it\nagain")
        (funcall title "✦  Working…")
        (should-not (eq first (funcall turn)))
        (should (equal '("Say it" nil) (funcall seen)))
        (funcall title "◇  Ready"))
      (funcall edited)
      ;; Of a linked CLI, reported before or after the title.
      (gemini-companion-state-report session 'prompt "One")
      (funcall title "✦  Working…")
      (should (equal '("One" nil) (funcall seen)))
      (gemini-companion-state-report session 'end nil)
      (funcall title "◇  Ready")
      (should (equal '("One" ended) (funcall seen)))
      (funcall title "✦  Working…")
      (gemini-companion-state-report session 'prompt "Two")
      (should (equal '("Two" nil) (funcall seen)))
      ;; A queued prompt.
      (gemini-companion-state-report session 'prompt "Three")
      (should (equal '("Three" nil) (funcall seen)))
      ;; It ends with the connection, unless that was only interrupted.
      (let ((last (funcall turn)))
        (gemini-companion-test-set-sessions nil)
        (should (equal '("Three" ended) (funcall seen)))
        (gemini-companion-test-set-sessions (list session))
        (should (equal '("Three" ended) (funcall seen)))
        (funcall title "✦  Working…")
        (should (eq last (funcall turn)))
        (should (equal '("Three" nil) (funcall seen)))
        (funcall title "◇  Ready")
        (gemini-companion-test-set-sessions nil)
        (gemini-companion-test-set-sessions (list session))
        (funcall title "✦  Working…")
        (should (equal '(nil nil) (funcall seen)))))))

(ert-deftest gemini-companion-state-end-of-a-turn-is-reported-with-its-files ()
  (gemini-companion-state-test-with nil
    (let* ((ended nil)
           (gemini-companion-turn-end-functions
            (list (lambda (&rest _) (error "A function of the user"))
                  (lambda (session files prompt)
                    (push (list (gemini-companion-session-id session) files prompt) ended))))
           (propose (lambda (id)
                      (gemini-companion-proposal-open
                       id session (expand-file-name "a") "new\n")
                      (car (gemini-companion-edits-open)))))
      (gemini-companion-state-report session 'prompt "Do that")
      (gemini-companion-edit-reject (funcall propose 1))
      (gemini-companion-edit-accept (funcall propose 2))
      (should-not ended)
      (gemini-companion-state-report session 'end nil)
      (gemini-companion-test-eventually ended)
      (should (equal (list (list "1" (list (file-truename "a")) "Do that")) ended))
      ;; A turn without edits.
      (gemini-companion-state-report session 'prompt "Say it")
      (gemini-companion-state-report session 'end nil)
      (gemini-companion-test-eventually (cdr ended))
      (should (equal '("1" nil "Say it") (car ended)))
      ;; A CLI that has only lost its connection may go on.
      (gemini-companion-state-report session 'prompt "Go on")
      (gemini-companion-test-set-sessions nil)
      (gemini-companion-test-set-sessions (list session))
      (gemini-companion-state-report session 'prompt "Last")
      (gemini-companion-state-report session 'end nil)
      (gemini-companion-test-eventually (cddr ended))
      (should (equal "Last" (nth 2 (car ended))))
      (should-not (nthcdr 3 ended)))))

(ert-deftest gemini-companion-state-ready-for-a-second-ends-what-was-asked ()
  (pcase-dolist
      (`(,client ,titles . ,ended)
       '(("gemini" ("✦  Working…" "✋  Action" "◇  Ready") . t)
         ("gemini" ("✦  Working…" "◇  Ready") . t)
         ;; It has not shown that it asks, or does not stay ready.
         ("gemini" ("◇  Ready"))
         ("gemini" ("✋  Action" "" "◇  Ready"))
         ("gemini" ("✋  Action" "◇  Ready" "✦  Working…"))
         ;; The title may be of the other one.
         ("gemini" ("✋  Action" other "◇  Ready"))
         ;; It closes the review itself.
         ("qwen" ("✳︎ Qwen - p" "Qwen - p"))))
    (gemini-companion-state-test-with client
      (let* (sent
             (gemini-companion-test-send (lambda (diff) (push diff sent))))
        (gemini-companion-proposal-open 1 session (expand-file-name "a") "new\n")
        (let ((diff (car (gemini-companion-edits-open))))
          (dolist (title titles)
            (if (stringp title)
                (gemini-companion-state-set-title process title)
              (gemini-companion-test-set-sessions
               (list session (gemini-companion-test-session-like
                              session :id "2" :identity 2)))))
          (should (eq 'pending (gemini-companion-edit-status diff)))
          (should (eq (if ended 'ready 'waiting)
                      (gemini-companion-session-state session)))
          (gemini-companion-test-run-timers)
          (should (eq (if ended 'dismissed 'pending)
                      (gemini-companion-edit-status diff)))
          ;; Which frees the CLI.
          (should (equal (and ended (list diff)) sent)))))))

(defmacro gemini-companion-state-test-with-events (&rest body)
  "Run BODY with `session', a CLI whose terminal is elsewhere.
`events' has what happened to questions, the last one first."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory '(("a" "old\n"))
     (let ((inhibit-message t)
           (session (gemini-companion-session-make
                     :id "1" :client "gemini" :directory "/src/shop/"))
           (events nil))
       (gemini-companion-test-with-parts '(state edit proposal) session
         (let ((gemini-companion-request-functions
                (cons (lambda (request event)
                        (when (gemini-companion-state-question-p request)
                          (push event events)))
                      gemini-companion-request-functions)))
           ,@body)))))

(ert-deftest gemini-companion-state-question-lasts-by-itself ()
  (gemini-companion-state-test-with-events
    (cl-flet ((certain () (gemini-companion-requests-certain session)))
      (gemini-companion-state-report session 'question nil)
      (gemini-companion-state-lasts session)
      (should (certain))
      ;; As after an answer: the title still shows that the CLI has waited.
      (gemini-companion-state-report session 'edit nil)
      (gemini-companion-state-report session 'question nil)
      (should-not (certain))
      (gemini-companion-state-lasts session)
      (should (certain)))))

(ert-deftest gemini-companion-state-that-ends-at-once-does-not-last ()
  (gemini-companion-state-test-with-events
    (let ((lasted 0))
      (add-hook 'gemini-companion-state-lasting-hook (lambda () (cl-incf lasted)))
      (unwind-protect
          (progn
            (gemini-companion-state-report session 'prompt "Do it")
            (gemini-companion-state-lasts session)
            (let ((since (gemini-companion-session-state-since session 'lasting)))
              (should since)
              ;; As for an edit that is auto-accepted.
              (dolist (event '(question edit))
                (gemini-companion-state-report session event nil)
                (should (eq 'working (gemini-companion-session-state session 'lasting)))
                (should (eql since (gemini-companion-session-state-since
                                    session 'lasting))))
              (should-not (eql since (gemini-companion-session-state-since session)))
              (gemini-companion-state-lasts session)
              (should (= 1 lasted))))
        (setq gemini-companion-state-lasting-hook nil)))))

(ert-deftest gemini-companion-state-question-is-open-while-the-cli-waits ()
  (gemini-companion-state-test-with-events
    (gemini-companion-state-report session 'prompt "Do it")
    (should-not (gemini-companion-requests))
    (dotimes (_ 2)
      (gemini-companion-state-report session 'question nil))
    (should (equal '(opened) events))
    (let ((question (car (gemini-companion-requests session))))
      (should (eq 'question (gemini-companion-request-kind question)))
      (should (equal "asks in its terminal" (gemini-companion-request-label question)))
      (should-not (gemini-companion-request-certain-p question))
      (gemini-companion-state-lasts session)
      (should (gemini-companion-request-certain-p question))
      (should (equal '(changed opened) events)))
    (gemini-companion-state-report session 'end nil)
    (should (equal '(closed changed opened) events))
    (should-not (gemini-companion-requests))))

(ert-deftest gemini-companion-state-question-ends-with-an-edit-and-with-its-cli ()
  (gemini-companion-state-test-with-events
    (gemini-companion-state-report session 'question nil)
    (gemini-companion-proposal-open 1 session (expand-file-name "a") "new\n")
    (should (equal '(edit) (mapcar #'gemini-companion-request-kind
                                   (gemini-companion-requests))))
    (gemini-companion-edit-accept (car (gemini-companion-edits-open)))
    (should (equal '(question) (mapcar #'gemini-companion-request-kind
                                       (gemini-companion-requests))))
    (gemini-companion-test-set-sessions nil)
    (should-not (gemini-companion-requests))
    (should (equal '(closed opened closed opened) events))))

(ert-deftest gemini-companion-state-question-of-a-terminal-elsewhere-says-so ()
  (gemini-companion-state-test-with-events
    (gemini-companion-state-report session 'question nil)
    (let ((question (car (gemini-companion-requests))))
      (should (gemini-companion-request-problem question))
      (should (string-search
               "not in this Emacs"
               (error-message-string
                (should-error (gemini-companion-request-show question)
                              :type 'user-error)))))))

(ert-deftest gemini-companion-state-question-takes-no-key-to-the-terminal ()
  (gemini-companion-state-test-with-events
    (gemini-companion-state-report session 'question nil)
    (let ((question (car (gemini-companion-requests)))
          (entered nil)
          (discarded nil))
      (with-temp-buffer
        (let ((terminal (current-buffer)))
          (use-local-map (make-sparse-keymap))
          (local-set-key (kbd "RET") (lambda () (interactive) (setq entered t)))
          (cl-letf (((symbol-function 'gemini-companion-session-terminal)
                     (lambda (_) terminal)))
            ;; Keys follow before it is displayed.
            (cl-letf (((symbol-function 'input-pending-p) #'always)
                      ((symbol-function 'discard-input) (lambda () (setq discarded t))))
              (gemini-companion-request-show question))
            (should discarded)
            (should (eq terminal (window-buffer)))
            ;; RET was typed twice.
            (execute-kbd-macro (kbd "RET"))
            (should-not entered)
            (execute-kbd-macro (kbd "RET"))
            (should entered)))))))

;;; gemini-companion-state-test.el ends here
