;;; gemini-companion-client-gemini-test.el --- Tests of the adapter of Gemini CLI  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-client-gemini)
(require 'gemini-companion-part)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-client-gemini-lists-conversations-newest-first ()
  :tags '(pure)
  (should (equal '(("2be1" "Just now" "Say \"x\" (now) [1]")
                   ("4c48" "2 days ago" "Fix the login"))
                 (gemini-companion-client-conversations
                  "gemini" "\nAvailable sessions for this project (2):
  1. Fix the login (2 days ago) [4c48]
  2. Say \"x\" (now) [1] (Just now) [2be1]\n")))
  (should (equal '("--resume" "4c48")
                 (gemini-companion-client-resume-arguments "gemini" "4c48"))))

(ert-deftest gemini-companion-client-gemini-shows-states-in-titles ()
  :tags '(pure)
  (pcase-dolist (`(,title . ,state)
                 '(("◇  Ready (dir)" . ready) ("✦  Fix it (dir)" . working)
                   ("⏲  Working… (dir)" . working)
                   ("✋  Action Required (dir)" . waiting) ("bash" . nil)))
    (should (eq state (assoc-default title (gemini-companion-client-titles "gemini")
                                     #'string-match-p)))))

(ert-deftest gemini-companion-client-gemini-names-the-directory-of-images ()
  :tags '(pure)
  (gemini-companion-test-with-directory nil
    (with-environment-variables (("GEMINI_CLI_HOME" directory))
      (should-not (gemini-companion-client-image-directory "gemini" directory))
      (gemini-companion-test-write
       ".gemini/projects.json"
       (format "{\"projects\": {\"%s\": \"shop\"}}"
               (directory-file-name (file-truename directory))))
      (should (equal (expand-file-name ".gemini/tmp/shop/images/")
                     (gemini-companion-client-image-directory "gemini" directory))))))

(provide 'gemini-companion-client-gemini-test)
;;;; Dialogs

(defun gemini-companion-client-gemini-test-screen (name)
  "Return the screen NAME of the real dialogs."
  (nth 2 (assoc name (gemini-companion-test-dialogs))))

(defun gemini-companion-client-gemini-test-read (screen)
  "Return the dialog of Gemini CLI at the end of SCREEN."
  (gemini-companion-client-read-dialog "gemini" screen))

(ert-deftest gemini-companion-client-gemini-dialog-is-read-from-the-screen ()
  (let ((dialog (gemini-companion-client-gemini-test-read
                 (concat " > prompt 5\n\n"
                         (gemini-companion-client-gemini-test-screen
                          "multi-80x24")
                         "\n\n   \n"))))
    (should (equal '("cat > a.txt <<'EOF'" "line one" "" "  indented line" "EOF"
                     "wc a.txt")
                   (gemini-companion-client-dialog-rows dialog)))
    (should (gemini-companion-client-dialog-whole dialog))
    (should (gemini-companion-client-dialog-breaks-known dialog))
    (should (equal "1" (gemini-companion-client-dialog-allow dialog)))
    (should (equal "\e" (gemini-companion-client-dialog-refuse dialog)))))

(ert-deftest gemini-companion-client-gemini-dialog-may-hide-and-break-rows ()
  (pcase-dolist (`(,name ,whole ,known)
                 '(("many-100x40" nil nil) ("soft1-100x40" t nil)
                   ("soft2-100x40" t nil) ("run-100x40" t nil)
                   ("exactWnl-100x40" t nil) ("softnl-100x40" t t)
                   ("lines-100x40" t t) ("queue-80x24" t t)))
    (ert-info (name)
      (let ((dialog (gemini-companion-client-gemini-test-read
                     (gemini-companion-client-gemini-test-screen name))))
        (should (eq whole (and (gemini-companion-client-dialog-whole dialog) t)))
        (should (eq known (and (gemini-companion-client-dialog-breaks-known dialog)
                               t)))))))

(ert-deftest gemini-companion-client-gemini-dialog-keys-are-found-by-label ()
  (pcase-dolist
      (`(,options ,allow ,refuse)
       '(("● 1. Allow once\n  2. No, suggest changes (esc)" "1" "\e")
         ("  1. Allow for this session\n● 2. Allow once\n  3. No, suggest changes (esc)"
          "2" "\e")
         ("● 1. Allow always\n  2. No" nil nil)))
    (let* ((screen (gemini-companion-client-gemini-test-screen
                    "simple-100x40"))
           (dialog (gemini-companion-client-gemini-test-read
                    (replace-regexp-in-string
                     "│ ● 1.*\n.*\n.*│\n"
                     (concat (mapconcat (lambda (option) (concat "│ " option " │"))
                                        (split-string options "\n") "\n")
                             "\n")
                     screen t t))))
      (should (equal allow (gemini-companion-client-dialog-allow dialog)))
      (should (equal refuse (gemini-companion-client-dialog-refuse dialog))))))

(ert-deftest gemini-companion-client-gemini-dialog-of-another-shape-is-none ()
  (let ((screen (gemini-companion-client-gemini-test-screen "simple-100x40")))
    (should (gemini-companion-client-gemini-test-read screen))
    (pcase-dolist
        (`(,from ,to)
         '(("\\'" "\n > Type your message")      ; not the last thing
           ("╰─+╯\\'" "")
           ("\\[Shell\\]\\?" "MCP tool \"a\" from server \"b\"?")
           ("Allow execution of " "Allow execution of: ")
           ("│ \\? Shell" "│ x Shell")
           ("│ ●" "│ -")
           ("  2\\. " "  4. ")
           ("│ │ echo" "│   echo")               ; no inner frame
           ("│ ╭─+╮ │\n" "")
           ("\\(Allow execution.*\\)\n" "\\1\n│ ╰───╯ │\n")))
      (ert-info (from)
        (let ((other (replace-regexp-in-string from to screen t)))
          (should-not (equal other screen))
          (should-not (gemini-companion-client-gemini-test-read other)))))
    (dolist (other '("" "\n" "╰─╯" "╭─╮\n╰─╯" "Allow execution of [Shell]?\n1. Allow once"))
      (should-not (gemini-companion-client-gemini-test-read other)))
    (dolist (client '("qwen" "copilot"))
      (should-not (gemini-companion-client-read-dialog client screen)))))

;;; gemini-companion-client-gemini-test.el ends here
