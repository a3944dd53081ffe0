;;; gemini-companion-send-test.el --- Tests of texts for prompts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What is typed where, and what happens to a reason.  That it reaches the model
;; is shown in e2e/test_prompt.py.

;;; Code:

(require 'gemini-companion-arrival)
(require 'gemini-companion-send)
(require 'gemini-companion-test-helper)
(require 'term)

(defmacro gemini-companion-send-test-with-reason (answer session &rest body)
  "Run BODY with a diff `diff' of SESSION; questions get ANSWER.
ANSWER is a function without arguments.  `outcomes' has the sent
outcomes."
  (declare (indent 2) (debug t))
  `(gemini-companion-test-with-directory '(("a" "old\n"))
     (let* ((gemini-companion-review-arrival 'notify)
            (inhibit-message t)
            (kill-ring '("before"))
            outcomes)
       (cl-letf (((symbol-function 'read-string)
                  (lambda (&rest _) (funcall ,answer))))
         (unwind-protect
             (let (diff)
               (gemini-companion-edit-start
                (lambda (diff)
                  (push (gemini-companion-edit-status diff) outcomes)))
               (gemini-companion-edit-open
                1 ,session (expand-file-name "a" directory) "new\n")
               (setq diff (car (gemini-companion-edits-open)))
               ,@body)
           (gemini-companion-send-stop)
           (gemini-companion-edit-settle-all 'dismissed))))))

(ert-deftest gemini-companion-send-reason-that-cannot-be-typed-is-kept ()
  (pcase-dolist
      (`(,answer ,sent ,kept)
       `((,(lambda () "/quit is what I want") (rejected)
          ;; It is no command of the CLI.
          "No: /quit is what I want")
         (,(lambda () " ") nil "before")
         (,(lambda () (signal 'quit nil)) nil "before")
         ;; The review ends while the user types.
         (,(lambda ()
             (gemini-companion-edit-reject (car (gemini-companion-edits-open)))
             "Too long")
          (rejected) "Too long")))
    (gemini-companion-send-test-with-reason answer '(:id "one")
      (ignore-error (quit user-error)
        (gemini-companion-edit-reject-with-reason diff))
      (should (equal sent outcomes))
      (should (eq (null sent) (and (gemini-companion-edits-open) t)))
      (should (equal kept (car kill-ring))))))

(defmacro gemini-companion-send-test-with-reason-terminal (program &rest body)
  "Run BODY with a diff `diff' of a CLI in the buffer `terminal'.
The reason for its rejection, by default, is Too long.  The CLI is
PROGRAM, a command of the shell."
  (declare (indent 1) (debug t))
  `(let ((terminal (generate-new-buffer "*term*")))
     (unwind-protect
         (progn
           (with-current-buffer terminal
             (let ((gemini-companion-terminal 'term))
               (gemini-companion-terminal-start
                (list "sh" "-c"
                      ;; A CLI displays nothing of what is around a paste.
                      (concat "stty -echoctl; echo up; exec " ,program))))
             (set-process-query-on-exit-flag (get-buffer-process terminal) nil)
             (gemini-companion-test-eventually
               (string-search "up" (buffer-string))))
           (gemini-companion-send-test-with-reason
               (lambda () "Too long")
               (list :id "one"
                     :pid (process-id (get-buffer-process terminal)))
             ,@body))
       (when (buffer-live-p terminal)
         (kill-buffer terminal)))))

(ert-deftest gemini-companion-send-inserts-where-the-terminal-takes-input ()
  (gemini-companion-send-test-with-reason-terminal "cat"
    (let ((session (gemini-companion-edit-session diff))
          (file (find-file-noselect "a")))
      (unwind-protect
          (progn
            (gemini-companion-state-start)
            (gemini-companion-session-update (list session))
            (should (string-search "waits for an answer; copied"
                                   (gemini-companion-send-insert "x" session)))
            (should (equal "x" (car kill-ring)))
            (gemini-companion-edit-reject diff)
            (delete-other-windows)
            (pcase-dolist
                (`(,mode ,text ,selected)
                 `((term-char-mode ": x y" ,terminal)
                   (term-line-mode "takes no input now; copied" ,file)))
              (with-current-buffer terminal
                (funcall mode))
              (switch-to-buffer file)
              (should (string-search
                       text (gemini-companion-send-insert "x\ny" session)))
              (should (eq selected (window-buffer)))))
        (gemini-companion-session-stop)
        (gemini-companion-state-stop)))))

;; Terminals keep what was shown before, and a CLI may draw its screen again.
(ert-deftest gemini-companion-send-submits-each-text-though-it-was-shown-before ()
  (gemini-companion-send-test-with-reason-terminal "cat >/dev/null"
    (gemini-companion-edit-reject diff)
    (let ((process (get-buffer-process terminal))
          (shown-p (lambda (regexp)
                     (string-match-p regexp
                                     (gemini-companion-test-text terminal)))))
      (process-send-string process "???\n")
      (gemini-companion-test-eventually (funcall shown-p "[?]"))
      (dolist (text '("???" "Please"))
        (gemini-companion-send-submit
         text (lambda () (gemini-companion-edit-session diff)) 30 "Lost"))
      (term-emulate-terminal process "\e[H\e[J")
      (gemini-companion-test-eventually
        (funcall shown-p "[?]\\{3\\}.*\n.*Please.*\n")))
    (should (equal "before" (car kill-ring)))))

(ert-deftest gemini-companion-send-reason-that-is-not-typed-is-kept ()
  (pcase-dolist
      (`(,program . ,end)
       `(("stty -echo; printf ready; cat" . kill-buffer)
         ("stty -echo; printf ready; cat"
          . ,(lambda (_) (gemini-companion-send-stop)))
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
    (gemini-companion-send-test-with-reason-terminal (format "sh -c '%s'" program)
      (gemini-companion-test-eventually
        (string-search "ready" (gemini-companion-test-text terminal)))
      (should-error (gemini-companion-edit-reject-with-reason
                     diff (make-string 200001 ?x))
                    :type 'user-error)
      (should (gemini-companion-edits-open))
      (gemini-companion-edit-reject-with-reason diff)
      (should (equal "before" (car kill-ring)))
      (funcall end terminal)
      (gemini-companion-test-eventually (equal "Too long" (car kill-ring))))))

;; All that is in the prompt would be submitted.
(ert-deftest gemini-companion-send-takes-its-mark-back-before-other-text ()
  (pcase-dolist
      (`(,screen . ,taken)
       '(("> beg%sun" . "177")
         ("> one%s\n\n  two\n────\n  project" . "177")
         ;; Without colors, there is no frame.
         (" > %s\n   two\n\n   workspace\n [INSERT]" . "177")
         ("│ > one%s │\n│   two │\n╰───╯" . "177")
         ;; In this mode, that character deletes nothing.
         ("> worl%sd\n────\n  -- NORMAL --" . "165")
         ;; Neither the frame is text of the prompt nor what is below it.
         ("> one%s  \u200b\n────\n  project\n  mode")
         (" > %s   \n▀▀▀▀\n   workspace\n [INSERT]")
         (" > %s\n   \n   workspace\n [INSERT]")
         (" > %s\n\n workspace\n    model")
         ("│ > %s │\n╰───╯\n  project")))
    (gemini-companion-send-test-with-reason-terminal
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
      (gemini-companion-edit-reject-with-reason diff)
      (gemini-companion-test-eventually
        (string-search (if taken (concat "taken " taken) "Too long")
                       (gemini-companion-test-text terminal)))
      (should (equal (if taken "Too long" "before") (car kill-ring))))))

;; The CLI would read property.py.
(ert-deftest gemini-companion-send-reason-names-a-file-by-its-whole-name ()
  (gemini-companion-send-test-with-reason (lambda () "As @a, no @property")
      '(:id "one" :client "gemini")
    (write-region "" nil "property.py" nil 'silent)
    (let ((project-find-functions
           (list (lambda (directory) (cons 'transient directory)))))
      (gemini-companion-edit-reject-with-reason diff))
    (should (equal "As @a, no \\@property" (car kill-ring)))))

;;; gemini-companion-send-test.el ends here
