;;; gemini-companion-notify-test.el --- Tests of notifications  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-overview)
(require 'gemini-companion-notify)
(require 'gemini-companion-part)
(require 'gemini-companion-reported)
(require 'gemini-companion-status)
(require 'gemini-companion-test-helper)
(require 'notifications nil t)

(defmacro gemini-companion-notify-test-settled (event &rest body)
  "Report EVENT of the CLI, and evaluate BODY when its state has lasted."
  (declare (indent 1) (debug t))
  `(progn
     (gemini-companion-state-report session ,event "Do it")
     (gemini-companion-test-eventually
       (null (gemini-companion-test-timers "notify")))
     ,@body))

(ert-deftest gemini-companion-notify-warning-stays-unless-its-cli-is-seen ()
  (gemini-companion-test-with-notices '(state edit proposal notify)
    (let ((said nil))
      (cl-letf (((symbol-function #'gemini-companion-idle-announce)
                 (lambda (text) (push text said)))
                ((symbol-function 'frame-focus-state) #'always))
        (gemini-companion-notify-warn session "takes 1 line")
        (should (equal '("takes 1 line") notices))
        (gemini-companion-notify-test-settled 'prompt
          (should (member "takes 1 line" notices)))
        (setq notices nil)
        (switch-to-buffer terminal)
        (gemini-companion-notify-warn session "takes 2 lines")
        (should-not notices)
        (should (equal '("takes 2 lines") said))))))

(ert-deftest gemini-companion-notify-shows-states-that-last ()
  (gemini-companion-test-with-notices '(state edit proposal notify)
    (should (equal "" (car (gemini-companion-part-lighter 'notify))))
    (gemini-companion-state-report session 'prompt "Do it")
    (should (equal "" (car (gemini-companion-part-lighter 'notify))))
    (gemini-companion-test-eventually
      (equal "working " (car (gemini-companion-part-lighter 'notify))))
    (should (string-match-p "Gemini CLI (shop): working since [0-9:]+"
                            (funcall (cdr (gemini-companion-part-lighter 'notify)))))
    (gemini-companion-notify-test-settled 'question
      (should (equal "?1 " (car (gemini-companion-part-lighter 'notify))))
      ;; The terminal shows its own question.
      (should (equal " " (with-current-buffer terminal
                           (funcall gemini-companion-terminal-header-function))))
      (gemini-companion-proposal-open 1 session (expand-file-name "a") "new\n")
      (should (equal "?1 " (car (gemini-companion-part-lighter 'notify))))
      (should (equal " 1 to answer: M-x gemini-companion-review"
                     (with-current-buffer terminal
                       (funcall gemini-companion-terminal-header-function))))
      ;; In no terminal of a CLI.
      (should (equal " " (funcall gemini-companion-terminal-header-function)))
      (gemini-companion-list)
      (should (string-search "waiting since" (buffer-string)))
      (kill-buffer)
      (gemini-companion-edit-accept (car (gemini-companion-edits-open)))
      (gemini-companion-state-report session 'edit nil)
      (should (equal " " (with-current-buffer terminal
                           (funcall gemini-companion-terminal-header-function)))))))

(ert-deftest gemini-companion-notify-header-counts-what-its-own-cli-asks ()
  (gemini-companion-test-with-notices '(state edit proposal notify)
    (gemini-companion-test-set-sessions
     (list session (gemini-companion-session-make
                    :id "other" :client "gemini" :directory "/src/bank/")))
    (with-current-buffer terminal
      (gemini-companion-proposal-open 1 (cadr (gemini-companion-sessions))
                                      (expand-file-name "a") "new\n")
      (gemini-companion-notify-test-settled 'question
        (should (equal "?2 " (car (gemini-companion-part-lighter 'notify))))
        (should (equal " " (funcall gemini-companion-terminal-header-function)))
        (gemini-companion-proposal-open 2 session (expand-file-name "b") "new\n")
        (should (string-search " 1 to answer: "
                               (funcall gemini-companion-terminal-header-function)))))))

(ert-deftest gemini-companion-notify-is-once-for-each-question ()
  (gemini-companion-test-with-notices '(state edit proposal notify)
    (dotimes (_ 2)
      (gemini-companion-notify-test-settled 'question
        (should (equal '("Gemini CLI (shop) asks in its terminal; \
M-x gemini-companion-review shows it") notices)))
      (gemini-companion-state-report session 'edit nil)
      (should-not notices))
    ;; Qwen Code asks all at once.
    (gemini-companion-notify-test-settled 'question
      (dolist (file '("a" "b"))
        (gemini-companion-proposal-open file session (expand-file-name file) "new\n")))
    (with-temp-buffer
      (switch-to-buffer (current-buffer))
      (cl-letf (((symbol-function 'frame-focus-state) #'always))
        (dolist (notice '("proposes an edit of .*/a" "proposes an edit of .*/b"
                          "asks in its terminal; .* shows it"))
          (gemini-companion-test-eventually
            (string-match-p (format "\\`Gemini CLI (shop) %s\\'" notice)
                            (or (car notices) "")))
          (should-not (cdr notices))
          (when-let* ((diff (car (gemini-companion-edits-open))))
            (gemini-companion-edit-accept diff)
            (setq gemini-companion-edit-here diff)))))
    (gemini-companion-test-set-sessions nil)
    (gemini-companion-test-eventually (null notices))))

(ert-deftest gemini-companion-notify-is-silent-where-the-user-looks ()
  (gemini-companion-test-with-notices '(state edit proposal notify)
    (switch-to-buffer terminal)
    (pcase-dolist (`(,focus . ,missed) '((t) (unknown) (nil . t)))
      (cl-letf (((symbol-function 'frame-focus-state) (lambda (&rest _) focus)))
        (gemini-companion-notify-test-settled 'edit)
        (gemini-companion-notify-test-settled 'question
          (should (eq missed (and notices t))))))
    (gemini-companion-proposal-open 1 session (expand-file-name "a") "new\n")
    (switch-to-buffer (gemini-companion-edit-proposal-buffer
                       (car (gemini-companion-edits-open))))
    (cl-letf (((symbol-function 'frame-focus-state) #'always))
      (gemini-companion-notify-test-settled 'edit)
      (should-not notices))))

(ert-deftest gemini-companion-notify-sums-up-a-long-turn ()
  (gemini-companion-test-with-notices '(state edit proposal notify)
    (let ((gemini-companion-notify-turn-seconds 1000))
      (gemini-companion-notify-test-settled 'prompt)
      (gemini-companion-notify-test-settled 'end (should-not notices))
      (pcase-dolist (`(,edits ,text)
                     '((() "Gemini CLI (shop) is done")
                       ((("a" "1\n2\n" "1\ntwo\n3\n") ("b" nil "b\n")
                         ("b" "b\n" "c\n"))
                        "Gemini CLI (shop) is done: 2 files, +3 ")))
        (gemini-companion-notify-test-settled 'prompt)
        (cl-decf (gemini-companion-turn-began
                  (gemini-companion-session-turn session))
                 1000)
        (pcase-dolist (`(,name ,before ,after) edits)
          (gemini-companion-reported-write session (expand-file-name name)
                                           before after))
        (gemini-companion-notify-test-settled 'end
          (gemini-companion-test-eventually
            (string-prefix-p text (or (car notices) ""))))))))

(ert-deftest gemini-companion-notify-names-the-changes-that-are-left ()
  (gemini-companion-test-with-notices '(state edit proposal notify)
    (gemini-companion-part-start 'changes)
    (unwind-protect
        (let ((gemini-companion-notify-turn-seconds 0))
          (gemini-companion-notify-test-settled 'prompt)
          (gemini-companion-test-write "a" "1\n2\nthree\n")
          (gemini-companion-reported-write session (expand-file-name "a")
                                           "one\n2\n3\n" "1\n2\nthree\n")
          (gemini-companion-notify-test-settled 'end
            (gemini-companion-test-eventually
              (string-match-p "shop) is done: 1 file, \\+2 −2, \
2 left; M-x gemini-companion-next-change"
                              (or (car notices) "")))))
      (gemini-companion-part-stop 'changes))))

(ert-deftest gemini-companion-notify-is-silent-while-a-reason-is-to-be-sent ()
  (gemini-companion-test-needs-add-on 'prompts)
  (gemini-companion-test-with-notices '(state edit proposal notify)
    (require 'gemini-companion-prompt)
    (gemini-companion-notify-test-settled 'prompt)
    (cl-decf (gemini-companion-turn-began
              (gemini-companion-session-turn session))
             1000)
    (gemini-companion-prompt-submit "why" (lambda () session) 1000 "Rejected")
    (unwind-protect
        (gemini-companion-notify-test-settled 'end
          (should-not notices))
      (gemini-companion-part-stop 'prompt))))

(ert-deftest gemini-companion-notify-in-the-echo-area-leaves-reviews-to-it ()
  (gemini-companion-test-with-notices '(state edit proposal notify)
    (let ((shown nil)
          ;; A service that hangs, and then none.
          (services (list (lambda () (while t (read-event nil nil 0.05))))))
      (cl-letf (((symbol-function 'notifications-notify)
                 (lambda (&rest _) (funcall (or (pop services) #'ignore))))
                ((symbol-function 'message)
                 (lambda (format &rest args)
                   (setq shown (and format (apply #'format format args)))))
                ((symbol-function 'current-message) (lambda () shown)))
        (dolist (gemini-companion-notify '(message desktop))
          (gemini-companion-notify-test-settled 'question
            (should (string-suffix-p "Gemini CLI (shop) asks in its terminal; \
M-x gemini-companion-review shows it"
                                     shown)))
          (gemini-companion-notify-test-settled 'edit
            (should-not (string-search "asks" (or shown "")))))
        (setq gemini-companion-notify 'message)
        (gemini-companion-proposal-open 1 session (expand-file-name "a") "new\n")
        (gemini-companion-notify-test-settled 'question
          (should-not (string-search "proposes" (or shown ""))))))))

(ert-deftest gemini-companion-notify-without-a-bus-shows-no-error ()
  (gemini-companion-test-with-notices '(state edit proposal notify)
    (let ((gemini-companion-notify 'desktop)
          (process-environment (cons "DBUS_SESSION_BUS_ADDRESS"
                                     process-environment)))
      (gemini-companion-test-demoted
        (with-current-buffer (messages-buffer)
          (let ((before (buffer-string)))
            (gemini-companion-notify-test-settled 'question)
            (should (equal (concat before
                                   "Gemini CLI (shop) asks in its terminal; \
M-x gemini-companion-review shows it\n")
                           (buffer-string)))))))))

(defconst gemini-companion-notify-test-dbus
  '(let ((calls nil)
         (service "org.freedesktop.Notifications")
         (path "/org/freedesktop/Notifications")
         (wait (lambda (condition)
                 (let ((end (+ (float-time) 120)))
                   (while (not (or (funcall condition)
                                   (< end (float-time))))
                     (read-event nil nil 0.02))))))
     (require 'dbus)
     (dbus-register-service :session service)
     (dbus-register-method
      :session service path service "Notify"
      (lambda (&rest args) (push (list 'notify (nth 3 args)) calls) '(:uint32 7)))
     (dbus-register-method
      :session service path service "CloseNotification"
      (lambda (id) (push (list 'close id) calls) :ignore))
     (let ((facts '(:id "1" :client "gemini" :directory "/src/shop/")))
       (setq gemini-companion-notify 'desktop
             gemini-companion-review-view 'ediff
             ;; A busy machine may take longer.
             gemini-companion-notify-service-seconds 60)
       (fset 'gemini-companion-arrival-view
             (lambda (&rest _) (push '(review) calls)))
       (gemini-companion-part-start 'state)
       (gemini-companion-part-start 'notify)
       (gemini-companion-part-start 'edit)
       (gemini-companion-part-start 'proposal)
       (gemini-companion-server-receive 'sessions-update (list facts))
       (gemini-companion-server-receive 'open-diff 1 facts "/src/shop/a" "new\n")
       (funcall wait (lambda () calls))
       (funcall wait (lambda ()
                       (dolist (id '(8 7))
                         (dbus-send-signal :session nil path service
                                           "ActionInvoked" :uint32 id "default"))
                       (assq 'review calls)))
       (gemini-companion-proposal-decide-all 'dismissed)
       (funcall wait (lambda () (assq 'close calls)))
       (princ (format "%S" (seq-uniq (reverse calls))))))
  "What an Emacs with a D-Bus daemon of its own does.
It is the service of notifications itself.")

(ert-deftest gemini-companion-notify-by-d-bus-is-clicked-and-withdrawn ()
  (skip-unless (and (featurep 'dbusbind) (executable-find "dbus-run-session")))
  (with-temp-buffer
    (should (eql 0 (apply #'call-process "dbus-run-session" nil '(t nil) nil "--"
                          (gemini-companion-test-emacs
                           '(require 'gemini-companion-arrival)
                           '(require 'gemini-companion-notify)
                           gemini-companion-notify-test-dbus))))
    (should (equal "((notify \"Gemini CLI (shop) proposes an edit of /src/shop/a\") (review) (close 7))"
                   (buffer-string)))))

;;; gemini-companion-notify-test.el ends here
