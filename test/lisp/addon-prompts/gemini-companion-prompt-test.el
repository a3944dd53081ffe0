;;; gemini-companion-prompt-test.el --- Tests of typing into the prompt of a CLI  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-client-fourth-test-helper)
(require 'gemini-companion-edit)
(require 'gemini-companion-part)
(require 'gemini-companion-prompt)
(require 'gemini-companion-proposal)
(require 'gemini-companion-review-test-helper)

(defmacro gemini-companion-prompt-test-with-diff (session &rest body)
  "Run BODY with a diff `diff' of SESSION; `outcomes' has the sent ones."
  (declare (indent 1) (debug t))
  `(let ((inhibit-message t)
         (ended nil)
         outcomes)
     (ignore ended)
     (gemini-companion-test-with-diffs '(("a" "old\n"))
         (gemini-companion-test-diff-start
          #'ignore
          (lambda (diff) (push (gemini-companion-edit-status diff) outcomes)))
         (gemini-companion-part-stop 'prompt)
       (setq gemini-companion-review-arrival 'notify
             kill-ring (list "before"))
       (let ((diff (gemini-companion-test-open "a" "new\n" 1 ,session)))
         ,@body))))

(ert-deftest gemini-companion-prompt-reason-that-cannot-be-typed-is-kept ()
  (pcase-dolist
      (`(,answer ,sent ,kept)
       `((,(lambda (&rest _) "/quit is what I want") (rejected)
          ;; It is no command of the CLI.
          "No: /quit is what I want")
         ;; The CLI would read property.py.
         (,(lambda (&rest _) "As @a, no @property") (rejected)
          "As @a, no \\@property")
         (,(lambda (&rest _) " ") nil "before")
         (,(lambda (&rest _) (signal 'quit nil)) nil "before")))
    (gemini-companion-prompt-test-with-diff
     (gemini-companion-session-make :id "one" :client "gemini")
      (write-region "" nil "property.py" nil 'silent)
      (cl-letf (((symbol-function 'read-string) answer)
                (project-find-functions
                 (list (lambda (directory) (cons 'transient directory)))))
        (ignore-error (quit user-error)
          (gemini-companion-edit-reject-with-reason diff)))
      (ert-info ((format "%S" answer))
        (should (equal sent outcomes))
        (should (eq (null sent) (and (gemini-companion-edits-open) t)))
        (should (equal kept (car kill-ring)))))))

(ert-deftest gemini-companion-prompt-refers-to-a-file-as-its-cli-reads-it ()
  (gemini-companion-client-test-with-fourth
    (should (equal "@a b" (gemini-companion-prompt-reference "a b" "fourth")))
    (should (equal "@a\\ b" (gemini-companion-prompt-reference "a b" "gemini")))))

(defun gemini-companion-prompt-test-show (terminal screen)
  "Display SCREEN, a string, in place of what the buffer TERMINAL displays."
  (term-emulate-terminal (get-buffer-process terminal)
                         (encode-coding-string (concat "\e[H\e[J" screen) 'utf-8)))

(defmacro gemini-companion-prompt-test-with-terminal (program &rest body)
  "Run BODY with a diff `diff' of a CLI in the buffer `terminal'.
The CLI is PROGRAM, a command of the shell."
  (declare (indent 1) (debug t))
  `(let ((terminal (generate-new-buffer "*term*")))
     (unwind-protect
         (progn
           (with-current-buffer terminal
             (gemini-companion-test-start-in-term
              "sh" "-c"
              ;; A CLI displays nothing of what is around a paste.
              (concat "stty -echoctl; echo up; exec " ,program)))
           (gemini-companion-prompt-test-with-diff
            (gemini-companion-session-make
             :id "one" :pid (process-id (get-buffer-process terminal)))
             ,@body))
       (when (buffer-live-p terminal)
         (kill-buffer terminal)))))

(ert-deftest gemini-companion-prompt-inserts-where-the-terminal-takes-input ()
  (gemini-companion-prompt-test-with-terminal "cat"
    (let ((file (find-file-noselect "a")))
      (gemini-companion-edit-reject diff)
      (delete-other-windows)
      (pcase-dolist
          (`(,mode ,text ,selected)
           `((term-char-mode ": x y\\'" ,terminal)
             (term-line-mode "does not accept input now; text copied" ,file)))
        (with-current-buffer terminal (funcall mode))
        (switch-to-buffer file)
        (should (string-match-p text (gemini-companion-prompt-insert
                                      "x\ny " (gemini-companion-edit-session diff))))
        (should (eq selected (window-buffer)))))))

(ert-deftest gemini-companion-prompt-submits-in-a-slow-cli-that-shows-two-marks ()
  (gemini-companion-prompt-test-with-terminal "sh -c 'stty -echo; cat >/dev/null'"
    (gemini-companion-edit-reject diff)
    (gemini-companion-prompt-submit
     "Please" (lambda () (gemini-companion-edit-session diff)) 30 "Lost"
     (lambda (result) (push result ended)))
    ;; The one before the text, none, and both behind it.
    (dolist (screen '("> \u2000" "" "> Please \u2001\u2000"))
      (gemini-companion-prompt-test-show terminal screen)
      (dotimes (_ 20) (gemini-companion-test-run-timers)))
    (gemini-companion-part-stop 'prompt)
    (should (equal '(sent) ended))
    (should (equal "before" (car kill-ring)))))

(ert-deftest gemini-companion-prompt-answers-no-question-that-comes-after-its-text ()
  (gemini-companion-prompt-test-with-terminal "sh -c 'stty -echo; cat >/dev/null'"
    (gemini-companion-edit-reject diff)
    (gemini-companion-prompt-submit
     "Please" (lambda () (gemini-companion-edit-session diff)) 30 "Lost"
     (lambda (result) (push result ended)))
    ;; Emacs does not know that the CLI asks.  Enter would be a yes.
    (pcase-dolist (`(,screen . ,result)
                   '(("> \u2000") ("│ Allow execution?\r\n│ ● 1. Allow once")
                     ("> Please \u2001\u2000" sent)))
      (gemini-companion-prompt-test-show terminal screen)
      (dotimes (_ 20) (gemini-companion-test-run-timers))
      (should (equal result ended)))
    (should (equal "before" (car kill-ring)))))

(ert-deftest gemini-companion-prompt-submits-while-the-cli-draws-its-prompt-again ()
  (gemini-companion-prompt-test-with-terminal "sh -c 'stty -echo; cat >/dev/null'"
    (gemini-companion-edit-reject diff)
    (gemini-companion-prompt-submit
     "Please" (lambda () (gemini-companion-edit-session diff)) 30 "Lost"
     (lambda (result) (push result ended)))
    ;; Two checks of three find a prompt that is erased, and not drawn yet.
    (dolist (screen '("> \u2000" "> Please \u2001"))
      (dotimes (check 20)
        (gemini-companion-prompt-test-show terminal
                                           (if (zerop (% check 3)) screen ""))
        (gemini-companion-test-run-timers)))
    (gemini-companion-part-stop 'prompt)
    (should (equal '(sent) ended))
    (should (equal "before" (car kill-ring)))))

;; A prompt may be queued for minutes, in which the user can do anything.
(ert-deftest gemini-companion-prompt-that-is-queued-is-sent-or-kept ()
  (pcase-dolist
      (`(,name ,end ,screens ,result ,kept)
       `(("withdrawn"
          ,(lambda (session _)
             (should (equal "Please" (gemini-companion-prompt-withdraw session)))
             (should-not (gemini-companion-prompt-pending session))
             (should-error (gemini-companion-prompt-withdraw session)
                           :type 'user-error))
          ("> \u2000" "> Please \u2001") (withdrawn) nil)
         ("withdrawn before another one"
          ,(lambda (session _)
             (gemini-companion-prompt-submit "Then" (lambda () session) 30 "Lost")
             (should (equal 2 (gemini-companion-prompt-pending session)))
             (should (equal "Then" (gemini-companion-prompt-withdraw session))))
          ("> \u2000" "> Please \u2001") (sent) nil)
         ("after another one that the user has begun"
          ,#'ignore ("> It is \u2000" "> It is\r\n  Please \u2001") (nil) "Please")
         ("exit of the CLI"
          ,(lambda (_ process)
             (gemini-companion-test-set-sessions nil)
             (delete-process process))
          ("$ ") (nil) "Please")
         ("end of the mode"
          ,(lambda (&rest _) (gemini-companion-part-stop 'prompt))
          ("> \u2000") (nil) "Please")))
    (ert-info (name)
      (gemini-companion-prompt-test-with-terminal
          "sh -c 'stty -echo; cat >/dev/null'"
        (gemini-companion-edit-reject diff)
        (let ((session (gemini-companion-test-session-like
                        (gemini-companion-edit-session diff) :client "gemini"))
              (process (get-buffer-process terminal)))
          (gemini-companion-test-set-sessions (list session))
          (gemini-companion-state-set-title process "✦  Working… (p)")
          (gemini-companion-prompt-submit "Please" (lambda () session) 30 "Lost"
                                          (lambda (result) (push result ended)))
          (should (equal '("1 prompt was not sent")
                         (gemini-companion-part-unfinished 'prompt)))
          (funcall end session process)
          (when (process-live-p process)
            (gemini-companion-state-set-title process "◇  Ready (p)")
            (gemini-companion-prompt-test-show terminal "> ")
            (gemini-companion-test-run-timers)
            (dolist (screen screens)
              (gemini-companion-prompt-test-show terminal screen)
              (dotimes (_ 10) (gemini-companion-test-run-timers))))
          (dotimes (_ 10) (gemini-companion-test-run-timers))
          (gemini-companion-test-eventually
            ended)
          (should (equal result ended))
          (should (equal (or kept "before") (car kill-ring)))
          (should-not (gemini-companion-part-unfinished 'prompt)))))))

;; A CLI that works may ask at any time, and Enter would be a yes.
(ert-deftest gemini-companion-prompt-types-nothing-while-the-cli-works ()
  (gemini-companion-prompt-test-with-terminal "sh -c 'stty -echo; cat >/dev/null'"
    (gemini-companion-edit-reject diff)
    (let ((session (gemini-companion-test-session-like
                    (gemini-companion-edit-session diff) :client "gemini"))
          (process (get-buffer-process terminal))
          (ready "◇  Ready (p)")
          (working "✦  Working… (p)")
          (kept kill-ring))
      (cl-flet ((show (title screen checks)
                  (gemini-companion-state-set-title process title)
                  (gemini-companion-prompt-test-show terminal screen)
                  (dotimes (_ checks) (gemini-companion-test-run-timers))))
        ;; A turn may begin before the text is typed, or behind it, by the user's Enter.
        (dolist (late '(nil t))
          (setq ended nil)
          (show (if late ready working) "> " 0)
          (gemini-companion-prompt-submit "Please" (lambda () session) 30 "Lost"
                                          (lambda (result) (push result ended)))
          ;; It is longer than a prompt is tried.
          (unless late (show working "> " 400))
          (show ready "> " 1)
          (show ready "> \u2000" 10)
          (when late (show working "> Please \u2001" 400))
          (should-not ended)
          (show ready "> Please \u2001" 10)
          (should (equal '(sent) ended)))
        (should (equal kept kill-ring))))))

(ert-deftest gemini-companion-prompt-that-a-stopped-cli-does-not-take-is-kept ()
  (gemini-companion-prompt-test-with-terminal "sh -c 'stty -echo; cat >/dev/null'"
    (gemini-companion-edit-reject diff)
    (gemini-companion-prompt-submit
     "Please" (lambda () (gemini-companion-edit-session diff)) 30 "Lost"
     (lambda (result) (push result ended)))
    (let ((process (get-buffer-process terminal)))
      (pcase-dolist (`(,screen . ,checks)
                     '(("> \u2000" . 10) ("> Please \u2001" . 3)))
        (gemini-companion-prompt-test-show terminal screen)
        (dotimes (_ checks) (gemini-companion-test-run-timers)))
      (signal-process process 'SIGSTOP)
      (gemini-companion-test-eventually (eq 'stop (process-status process)))
      (dotimes (_ 20) (gemini-companion-test-run-timers))
      (should (equal '(nil) ended))
      (should (equal "Please" (car kill-ring)))
      (signal-process process 'SIGCONT))))

;; Terminals keep what was shown before, and a CLI may draw its screen again.
(ert-deftest gemini-companion-prompt-submits-each-text-though-it-was-shown-before ()
  (gemini-companion-prompt-test-with-terminal "cat >/dev/null"
    (gemini-companion-edit-reject diff)
    (let ((process (get-buffer-process terminal))
          (shown-p (lambda (regexp)
                     (string-match-p regexp
                                     (gemini-companion-test-text terminal)))))
      (process-send-string process "???\n")
      (gemini-companion-test-eventually (funcall shown-p "[?]"))
      (dolist (text '("???" "Please"))
        (gemini-companion-prompt-submit
         text (lambda () (gemini-companion-edit-session diff)) 30 "Lost"))
      ;; Another question of the CLI may wait for long.
      (cl-letf (((symbol-function 'gemini-companion-session-state)
                 (lambda (_) 'waiting)))
        (dotimes (_ 400) (gemini-companion-test-run-timers)))
      (term-emulate-terminal process "\e[H\e[J")
      (gemini-companion-test-without-sign
        (gemini-companion-test-eventually
          (funcall shown-p "[?]\\{3\\}.*\n.*Please.*\n"))))
    (should (equal "before" (car kill-ring)))))

(ert-deftest gemini-companion-prompt-reason-that-is-not-typed-is-kept ()
  (pcase-dolist
      (`(,program . ,end)
       `(("stty -echo; printf ready; cat" . kill-buffer)
         ("stty -echo; printf ready; cat"
          . ,(lambda (_) (gemini-companion-part-stop 'prompt)))
         ;; In shell mode, a slow CLI shows what was typed twice, and deletes it.
         ("stty raw -echo; printf ready; dd bs=1 count=30 >/dev/null 2>&1
           printf \"\r\n! \342\200\200\342\200\200\"
           dd bs=1 count=2 >/dev/null 2>&1; printf \"\r\nboth are gone\"; cat"
          . ,(lambda (terminal)
               (gemini-companion-test-eventually
                 (string-search "both are gone"
                                (gemini-companion-test-text terminal)))))
         ;; What a dialog shows is no prompt.  The time ends.
         ("stty raw -echo; printf ready
           while c=$(dd bs=99 count=1); do printf \"\\r\\n│ │ %s\" \"$c\"; done"
          . ,(lambda (_)
               (dotimes (_ 400)
                 (accept-process-output nil 0.001)
                 (gemini-companion-test-run-timers))))))
    (gemini-companion-prompt-test-with-terminal (format "sh -c '%s'" program)
      (gemini-companion-test-eventually
        (string-search "ready" (gemini-companion-test-text terminal)))
      (should-error (gemini-companion-edit-reject-with-reason
                     diff (make-string 200001 ?x))
                    :type 'user-error)
      (should (gemini-companion-edits-open))
      (gemini-companion-edit-reject-with-reason diff "Too long")
      (should (equal "before" (car kill-ring)))
      (funcall end terminal)
      (gemini-companion-test-eventually (equal "Too long" (car kill-ring))))))

(ert-deftest gemini-companion-prompt-is-read-from-a-file-and-never-in-shell-mode ()
  (gemini-companion-prompt-test-with-terminal "sh -c 'stty -echo; cat >/dev/null'"
    (gemini-companion-edit-reject diff)
    (switch-to-buffer terminal)
    (let* ((session (gemini-companion-test-session-like
                     (gemini-companion-edit-session diff) :client "qwen"))
           (process (get-buffer-process terminal))
           (unread-command-events nil)
           (hook pre-command-hook)
           (file (progn
                   (setq gemini-companion-terminal-cli
                         (gemini-companion-terminal-cli-make :client "qwen"))
                   (cadr (gemini-companion-input-file-arguments "qwen" nil))))
           (size (lambda () (file-attribute-size (file-attributes file)))))
      (cl-flet* ((show (sign)
                   (let ((line (concat (make-string 20 ?─) "\r\n")))
                     (term-emulate-terminal
                      process
                      (encode-coding-string (concat "\e[H\e[J" line sign " half\r\n" line
                                                    "  ? for shortcuts")
                                            'utf-8))))
                 (title (title) (gemini-companion-state-set-title process title))
                 (submit (text)
                   (gemini-companion-prompt-submit
                    text (lambda () session) 30 "Lost"
                    (lambda (result) (push result ended))))
                 (pass (checks) (dotimes (_ checks) (gemini-companion-test-run-timers)))
                 (take-turn ()
                   (title "◐ Qwen - p")
                   (title "Qwen - p")
                   (pass 2))
                 (press (key)
                   (let ((this-command 'self-insert-command))
                     (cl-letf (((symbol-function 'this-command-keys-vector)
                                (lambda () (vector key))))
                       (run-hooks 'pre-command-hook))
                     this-command)))
        (title "Qwen - p")
        (dolist (sign '("!" "$"))
          (show sign)
          (submit "Not run")
          (pass 20)
          (should (equal "Not run" (car kill-ring))))
        (should (equal '(nil nil) ended))
        (should (eq 0 (funcall size)))

        (show ">")
        (submit "one\n\e[201~/two")
        (pass 8)
        (should (eq 'self-insert-command (press ?x)))
        (pass 8)
        (should (eq 0 (funcall size)))
        (pass 3)
        (should (< 0 (funcall size)))
        (should (string-search "one\\n[201~" (gemini-companion-text-read file)))
        (should (eq 'ignore (press ?!)))
        (should-not unread-command-events)
        (title "◐ Qwen - p")
        (pass 2)
        (should (eq 'sent (car ended)))
        (should (equal '((t . ?!)) unread-command-events))
        (should (eq 'self-insert-command (press ?x)))
        (should (equal hook pre-command-hook))

        ;; While it works, the CLI queues what it reads.
        (let ((before (funcall size)))
          (submit "Queued")
          (pass 25)
          (should (equal '(sent sent) (seq-take ended 2)))
          (should (< before (funcall size))))
        (title "Qwen - p")
        ;; Its turn is shorter than the time between two checks.
        (submit "Short")
        (pass 12)
        (take-turn)
        (should (equal '(sent sent sent) (seq-take ended 3)))
        ;; Its question is open for long, and it draws its prompt late.
        (let ((before (funcall size)))
          (cl-letf (((symbol-function 'gemini-companion-session-state)
                     (lambda (&rest _) 'waiting)))
            (submit "After the question")
            (pass 150))
          (term-emulate-terminal process "\e[H\e[J")
          (pass 2)
          (show ">")
          (pass 12)
          (should (< before (funcall size)))
          (take-turn)
          (should (eq 'sent (car ended))))
        ;; It draws its prompt once a mark is typed, inside of the user's text.
        (let ((before (funcall size)))
          (term-emulate-terminal process "\e[H\e[J")
          (submit "Undrawn")
          (pass 120)
          (should (equal before (funcall size)))
          (term-emulate-terminal
           process (encode-coding-string "\e[H\e[J> ha\u2000lf" 'utf-8))
          (pass 8)
          (should (< before (funcall size)))
          (take-turn)
          (should (eq 'sent (car ended))))
        (show ">")
        ;; It hangs.
        (submit "Late")
        (pass 70)
        (should-not (car ended))
        (should (equal "Late" (car kill-ring)))
        (should-not (file-exists-p file))))))

;; A user types at once, behind the space or behind the text.
(ert-deftest gemini-companion-prompt-leaves-alone-what-is-typed-meanwhile ()
  (dolist (until '("" "printf \"\\r\\n> $mark\"
get 21 >/dev/null # deletes the space, and is the text
get 6 >/dev/null; mark=$(get 3); get 6 >/dev/null"))
    (gemini-companion-prompt-test-with-terminal
        (format "sh -c %s"
                (shell-quote-argument
                 (concat "stty raw -echo; printf ready
get() { dd bs=1 count=$1 2>/dev/null; }
get 6 >/dev/null; mark=$(get 3); get 6 >/dev/null # a paste
" until "
printf \"\\r\\n> $mark\"; kill -STOP $$; printf typed
printf '\\r\\ntaken %s\\r\\n' $(get 1 | od -An -to1); exec cat")))
      (gemini-companion-test-eventually
        (string-search "ready" (gemini-companion-test-text terminal)))
      (gemini-companion-edit-reject-with-reason diff "Too long")
      (let ((process (get-buffer-process terminal)))
        (gemini-companion-test-eventually (eq 'stop (process-status process)))
        (gemini-companion-test-eventually
          (string-match-p (if (equal "" until) "\n> " "\n> .*\n> ")
                          (gemini-companion-test-text terminal)))
        ;; Emacs checks that once, and no more until it is typed.
        (gemini-companion-test-run-timers)
        (signal-process process 'SIGCONT)
        (while (not (string-search "typed" (gemini-companion-test-text terminal)))
          (accept-process-output process 1 nil 0)))
      (gemini-companion-test-eventually (equal "Too long" (car kill-ring)))
      (should-not (string-search "taken"
                                 (gemini-companion-test-text terminal))))))

;; As the CLIs show them; the mark is at @.  Gemini CLI has one frame with colors, and
;; another one without.
(defconst gemini-companion-prompt-test--prompts
  '(("gemini" ordinary " Shift+Tab to accept edits   1 open file (F4 to view)

 > @

 workspace (/directory)   sandbox    /model
 /tmp/project             no sandbox gemini")
    ("gemini" ordinary " ⠸ Thinking... (esc to cancel, 1s)   ? for shortcuts
──────────────────────────────
 Shift+Tab to accept edits   1 open file (F4 to view)
▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
 * half

   > second @
▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
 workspace (/directory)   sandbox    /model")
    ("gemini" ordinary "╭──────────╮
│ > one    │
│   two@   │
╰──────────╯
 ~/project    no sandbox")
    ("gemini" shell "  shell mode enabled (esc to disable)   1 open file

 ! @

 workspace (/directory)   sandbox    /model")
    ("gemini" shell "  > earlier
──────────────────────────────
  shell mode enabled (esc to disable)   1 open file
▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
 ! ls
   > x @
▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
 workspace (/directory)   sandbox    /model")
    ("qwen" ordinary "──────────────────────────────
> @
──────────────────────────────
  ➜ project · git:(master) · model
  ⏸ Ask permissions (shift + tab to cycle)")
    ("qwen" ordinary "  ⠇ Dividing by zero... (1s · esc to cancel)
──────────────────────────────
> half

  > second @
──────────────────────────────
  Enter to steer · Ctrl+Q to queue · ⏸ Ask permissions")
    ("qwen" shell "  > earlier prompt

──────────────────────────────
! @
──────────────────────────────
  ➜ project · git:(master) · model
  shell mode enabled (esc to disable)")
    ("copilot" ordinary " /tmp/project [⎇ master%]
──────────────────────────────
❯ @
──────────────────────────────
 ○ Working esc esc edit prompt              claude-sonnet-4.6")
    ("copilot" ordinary " /tmp/project [⎇ master%]
╻▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
┃ @
╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
 ← open sidebar · Interactive · Manual Approval · / commands")
    ("copilot" ordinary "╻▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
┃ half
┃
┃ > second @
╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
 Autopilot (limited) · Allow All · @ files · # issues")
    ("copilot" later "╻▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
┃ @
╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
 ◎ Working esc esc edit prompt              claude-sonnet-4.6")
    ("copilot" shell "❯ earlier
 /tmp/project [⎇ master%]
──────────────────────────────
! @
──────────────────────────────
 ← open sidebar · Shell · Manual Approval · / commands · esc exit shell mode")
    ("copilot" shell " Interactive · Manual Approval
╻▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
┃ @
╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
 ← open sidebar · Shell · Manual Approval · / commands · esc exit shell mode")
    ("pi" ordinary "── ⠼ Working ──────────────────
@
──────────────────────────────
/tmp/project (master)")
    ("pi" shell "──────────────────────────────
!@
──────────────────────────────
/tmp/project (master)")
    ("gemini" command " > /ab@")
    ("copilot" command "╻▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
┃ /ab
┃ cd @
╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
 Interactive · Manual Approval · @ files"))
  "Lists (CLIENT KIND SCREEN) of prompts that the CLIs show.")

(defun gemini-companion-prompt-test--kind (client screen)
  "Return the kind of the prompt of CLIENT at the @ of SCREEN."
  (with-temp-buffer
    (insert screen)
    (search-backward-regexp "@$\\|@ +[ │]*$")
    (delete-char 1)
    (insert "\u2000")
    (backward-char)
    (gemini-companion-prompt-kind client)))

(ert-deftest gemini-companion-prompt-knows-an-ordinary-prompt-or-submits-nothing ()
  (pcase-dolist (`(,client ,kind ,screen) gemini-companion-prompt-test--prompts)
    (ert-info ((concat client ": " screen))
      (should (eq (and (memq kind '(ordinary later)) kind)
                  (gemini-companion-prompt-test--kind client screen)))
      ;; A release may change any word, of a footer as well, and each sign.
      (pcase-dolist (`(,regexp . ,new) '(("\\w+" . "Changed") ("^ ?[*>!❯┃]" . "$")))
        (let ((start 0))
          (while (string-match regexp screen start)
            (setq start (match-end 0))
            (let* ((changed (replace-match new t t screen))
                   (seen (gemini-companion-prompt-test--kind client changed)))
              (ert-info (changed)
                (should (memq seen (if (eq 'ordinary kind)
                                       '(ordinary nil)
                                     '(later nil))))))))))))

;; All that is in the prompt would be submitted.
(ert-deftest gemini-companion-prompt-takes-its-mark-back-before-other-text ()
  (pcase-dolist
      (`(,client ,screen . ,taken)
       '(("gemini" "> beg%sun" . "177")
         ("gemini" "> one%s\n\n  two\n────\n  project" . "177")
         ;; Without colors, there is no frame.
         ("gemini" " > %s\n   two\n\n   workspace\n [INSERT]" . "177")
         ("gemini" "│ > one%s │\n│   two │\n╰───╯" . "177")
         ;; In this mode, that character deletes nothing.
         ("qwen" "> worl%sd\n────\n  -- NORMAL --" . "165")
         ("copilot" "╻▄▄▄▄\n┃ one%s\n┃ two\n╹▀▀▀▀\n Interactive · Manual Approval" . "177")
         ("fourth" "# /ab%s" . "177")
         ("copilot" "╻▄▄▄▄\n┃ /ab%s\n╹▀▀▀▀\n Interactive · Manual Approval" . "177")
         ;; Neither the frame is text of the prompt nor what is below it.
         ("gemini" "> one%s  \u200b\n────\n  project\n  mode")
         ("gemini" " > %s   \n▀▀▀▀\n   workspace\n [INSERT]")
         ("gemini" " > %s\n   \n   workspace\n [INSERT]")
         ("gemini" " > %s\n\n workspace\n    model")
         ("copilot" "╻▄▄▄▄\n┃ %s\n╹▀▀▀▀\n Interactive · Manual Approval   model")
         ("gemini" "│ > %s │\n╰───╯\n  project")))
    (gemini-companion-prompt-test-with-terminal
        (mapconcat
         #'shell-quote-argument
         (list "sh" "-c" "stty raw -echo; printf ready
get() { dd bs=1 count=$1 2>/dev/null; }
get 6 >/dev/null; mark=$(get 3); get 6 >/dev/null # a paste
printf \"\\r\\n$1\\r\\n\" \"$mark\"
printf 'taken %s\\r\\n' $(get 1 | od -An -to1); exec cat"
               "sh" (string-replace "\n" "\\r\\n" screen))
         " ")
      (gemini-companion-test-eventually
        (string-search "ready" (gemini-companion-test-text terminal)))
      (setf (gemini-companion-edit-session diff)
            (gemini-companion-test-session-like
             (gemini-companion-edit-session diff) :client client))
      (gemini-companion-edit-reject-with-reason diff "Too long")
      (gemini-companion-test-eventually
        (string-search (if taken (concat "taken " taken) "Too long")
                       (gemini-companion-test-text terminal)))
      (should (equal (if taken "Too long" "before") (car kill-ring))))))

;;; gemini-companion-prompt-test.el ends here
