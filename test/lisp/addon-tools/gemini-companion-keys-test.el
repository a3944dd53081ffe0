;;; gemini-companion-keys-test.el --- Tests of keys that answer a CLI  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-cli)
(require 'gemini-companion-clients)
(require 'gemini-companion-keys)
(require 'gemini-companion-part)
(require 'gemini-companion-test-helper)

;;;; What is on the screen

(defun gemini-companion-keys-test-dialogs ()
  "Return the real dialogs, lists (NAME COMMANDS DIALOG)."
  (mapcar (pcase-lambda (`(,name ,commands ,screen))
            (list name commands
                  (gemini-companion-client-read-dialog "gemini" screen)))
          (gemini-companion-test-dialogs)))

(ert-deftest gemini-companion-keys-are-for-the-whole-text-on-the-screen ()
  (let ((narrow "its terminal is too narrow for the command")
        (obscure "the command has characters that the screen does not show as they are")
        (blanks "the command has blanks that the screen does not show")
        (part "its terminal shows only a part of the command"))
    (pcase-dolist (`(,name (,command . ,_) ,dialog)
                   (gemini-companion-keys-test-dialogs))
      (ert-info (name)
        (should
         (equal
          (pcase (car (split-string name "-"))
            ((or "simple" "twoblanks" "queue" "softnl" "dialog" "umlaut") nil)
            ("quotes" nil)
            ("multi" (if (equal name "multi-100x18")
                         "its terminal shows no dialog that Emacs knows"
                       nil))
            ("long" (if (equal name "long-150x45") nil narrow))
            ((or "run" "soft1" "soft2" "fullword" "exactWnl" "fits70") narrow)
            ("many" part)
            ((or "lines" "blanktail" "blanklead" "trailnl") blanks)
            ("backslash" "a line of the command ends in a backslash")
            (_ obscure))
          (gemini-companion-keys-mismatch dialog command)))))))

(ert-deftest gemini-companion-keys-are-for-no-other-command ()
  (pcase-dolist (`(,name ,commands ,dialog) (gemini-companion-keys-test-dialogs))
    (unless (gemini-companion-keys-mismatch dialog (car commands))
      (dolist (other (append (cdr commands)
                             (gemini-companion-keys-test-others (car commands))))
        (ert-info ((format "%s: %S" name other))
          (should (gemini-companion-keys-mismatch dialog other)))))))

(defun gemini-companion-keys-test-others (command)
  "Return texts that differ from COMMAND by little.
Each character is missing once, doubled once, and another one once; and at
each place a blank, a newline, a tab or a character of no width comes in."
  (let ((others nil))
    (dotimes (i (length command))
      (let ((before (substring command 0 i))
            (char (substring command i (1+ i)))
            (after (substring command (1+ i))))
        (dolist (new (list "" (concat char char) "~" (concat " " char)
                           (concat "\n" char) (concat "\t" char)
                           (concat "\u200b" char) (upcase char)))
          (push (concat before new after) others))))
    (remove command
            (append (list (concat command " ") (concat command "\n")
                          (concat command ";") "")
                    others))))

(ert-deftest gemini-companion-keys-know-what-a-screen-shows-as-it-is ()
  (should (seq-every-p #'gemini-companion-keys-plain-p "aZ09 ~!\"$'äßéЖλ€«“—"))
  (dolist (char '(?\t ?\n ?\r ?\e 0 127 #x9b #xa0 #xad #x200b #x200e #x202e #x2028
                      #xfeff #x301 #xffa0 ?日 ?😀 ?ש ?ع #xe000 ?│ ?╰))
    (ert-info ((format "%x" char))
      (should-not (gemini-companion-keys-plain-p char)))))

(ert-deftest gemini-companion-keys-tell-commands-apart-only-if-they-look-different ()
  (pcase-dolist (`(,a ,b ,alike)
                 '(("rm a" "rm a" nil) ("rm a" "rm b" nil)
                   ("rm -rf ./ build" "rm -rf ./build" t)
                   ("echo a rm b" "echo a\nrm b" t) ("rm a" "rm a " t)
                   ("rm ab" "rm a\u200bb" t) ("rm ab" "rm a\rb" t)
                   ("rm ab" "rm a\e[8mxx\e[0mb" t) ("rm a" "rm A" nil)))
    (ert-info ((format "%S %S" a b))
      (should (eq alike (and (gemini-companion-keys-alike-p a b) t)))
      (should (eq alike (and (gemini-companion-keys-alike-p b a) t))))))

;;;; What is sent

(defmacro gemini-companion-keys-test-with (&rest body)
  "Run BODY with `session', a Gemini CLI that asks in this buffer, a terminal.
`sent' is what was sent to it, and `taken' has what `press' reported, the
last first.  (draw NAME) draws the real dialog NAME, and (press COMMAND)
answers it, or returns why not."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory '()
     (with-temp-buffer
       (let* ((kill-buffer-query-functions nil)
              (inhibit-message t)
              (gemini-companion-keys-stable-seconds 0.05)
              (gemini-companion-keys-taken-seconds 0.3)
              (inhibit-read-only t)
              (process (gemini-companion-test-start-cat))
              (session (list :id "1" :client "gemini" :pid (process-id process)))
              (sent "")
              (taken nil))
         (cl-letf (((symbol-function 'process-send-string)
                    (lambda (_process string) (setq sent (concat sent string))))
                   ((symbol-function 'gemini-companion-session-has-terminal-p)
                    #'always)
                   ((symbol-function 'gemini-companion-terminal-takes-keys-p)
                    #'always))
           (cl-labels ((draw (name)
                         (erase-buffer)
                         (insert (nth 2 (assoc name (gemini-companion-test-dialogs)))))
                       (titled (title)
                         (gemini-companion-state-set-title process title))
                       (press (command &optional answer others)
                         (gemini-companion-keys-press
                          session command (or answer 'allow)
                          (lambda (is-taken) (push is-taken taken)) others)))
             (ignore #'draw #'titled #'press sent taken)
             (gemini-companion-test-with-parts '(cli state keys) session
               (titled "✋  Action Required (p)")
               (draw "simple-100x40")
               ,@body)))))))

(defconst gemini-companion-keys-test-command "echo hi1 > out1.txt; sleep 1"
  "The command of the real dialog simple-100x40.")

(ert-deftest gemini-companion-keys-send-one-key-once ()
  (pcase-dolist (`(,answer . ,key) '((allow . "1") (refuse . "\e")))
    (gemini-companion-keys-test-with
      (should-not (press gemini-companion-keys-test-command answer))
      (should (equal key sent))
      ;; What was sent counts as typed.
      (should (string-search "just now" (press gemini-companion-keys-test-command)))
      (should-not taken)
      (erase-buffer)
      (gemini-companion-test-eventually taken)
      (should (equal '(t) taken))
      (should (equal key sent)))))

(ert-deftest gemini-companion-keys-report-a-dialog-that-stays ()
  (gemini-companion-keys-test-with
    (should-not (press gemini-companion-keys-test-command))
    (gemini-companion-test-eventually taken)
    (should (equal '(nil) taken))
    (should (equal "1" sent))))

(ert-deftest gemini-companion-keys-send-nothing-unless-all-is-certain ()
  (let ((command gemini-companion-keys-test-command))
    (pcase-dolist
        (`(,why . ,change)
         `(("another command" . ,(lambda (draw _titled) (funcall draw "twoblanks-100x40")))
           ("no dialog" . ,(lambda (_draw _titled) (insert "\n > Type")))
           ("no dialog" . ,(lambda (_draw _titled) (erase-buffer)))
           ("does not show that it asks"
            . ,(lambda (_draw titled) (funcall titled "✦  Working… (p)")))
           ("does not show that it asks"
            . ,(lambda (_draw titled) (funcall titled "vim")))
           ("just now" . ,(lambda (&rest _)
                            (setq gemini-companion-terminal-sent (float-time))))
           ("not in this Emacs" . ,(lambda (&rest _)
                                     (delete-process (get-buffer-process
                                                      (current-buffer)))))
           ;; Something is drawn while the dialog is looked at.
           ("is changing" . ,(lambda (&rest _)
                               (let ((buffer (current-buffer)))
                                 (run-at-time 0.01 nil
                                              (lambda ()
                                                (with-current-buffer buffer
                                                  (goto-char (point-min))
                                                  (re-search-forward "1.txt; sleep 1 *│")
                                                  (replace-match
                                                   "1.txt; sleep 1  1 of 2 │")))))))
           ("just now" . ,(lambda (&rest _)
                            (let ((buffer (current-buffer)))
                              (run-at-time 0.01 nil
                                           (lambda ()
                                             (with-current-buffer buffer
                                               (setq gemini-companion-terminal-sent
                                                     (float-time))))))))))
      (ert-info (why)
        (gemini-companion-keys-test-with
          (funcall change #'draw #'titled)
          (should (string-search why (or (press command) "")))
          (should (equal "" sent)))))
    (gemini-companion-keys-test-with
      (should (string-search "look the same"
                             (press command 'allow (list "true" "echo hi1 > out1.txt;\nsleep 1"))))
      (cl-letf (((symbol-function 'gemini-companion-terminal-takes-keys-p) #'ignore))
        (should (string-search "copy mode" (press command))))
      (should (equal "" sent))
      (should-not (press command 'allow '("true"))))))

(ert-deftest gemini-companion-keys-notice-what-is-typed-in-a-terminal ()
  (gemini-companion-keys-test-with
    (dolist (row '((term-mode self-insert-command t)
                   (term-mode gemini-companion-review nil)
                   (fundamental-mode self-insert-command nil)))
      (pcase-let ((`(,major-mode ,this-command ,noticed) row))
        (setq gemini-companion-terminal-sent nil)
        (run-hooks 'pre-command-hook)
        (should (eq noticed (and gemini-companion-terminal-sent t)))))))

;;; gemini-companion-keys-test.el ends here
