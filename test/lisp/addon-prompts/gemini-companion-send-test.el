;;; gemini-companion-send-test.el --- Tests of what is sent of a buffer  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'diff)
(require 'eieio)
(require 'gemini-companion-compose)
(require 'gemini-companion-overview)
(require 'gemini-companion-part)
(require 'gemini-companion-prompt)
(require 'gemini-companion-remote-test-helper)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-send)
(require 'gemini-companion-server-test-helper)
(require 'flycheck nil t)
(require 'org-agenda)
(require 'shell)

(defvar vterm-copy-mode)

(defmacro gemini-companion-send-test-with (&rest body)
  "Run BODY in a directory with p/a, which is visited, and a CLI in p."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory '()
     (let ((kill-ring nil)
           (inhibit-message t)
           (transient-mark-mode t)
           (default-directory (expand-file-name "p/")))
       (gemini-companion-test-write "a" "one\ntwo\nthree\n")
       (gemini-companion-test-set-sessions
        (list (gemini-companion-session-make
               :id "1" :client "gemini" :directory default-directory)))
       (unwind-protect
           (save-window-excursion
             (find-file "a")
             ,@body)
         (gemini-companion-test-set-sessions nil)
         (gemini-companion-privacy-refresh)))))

(defun gemini-companion-send-test-sent ()
  "Return what is sent from here."
  (gemini-companion-send)
  (string-trim-right (current-kill 0)))

(defun gemini-companion-send-test-sends (text)
  "Check that TEXT is sent from here."
  (should (equal text (gemini-companion-send-test-sent))))

(defmacro gemini-companion-send-test-in (buffer &rest body)
  "Run BODY in BUFFER, which is displayed, and kill it."
  (declare (indent 1) (debug t))
  `(let ((buffer ,buffer)
         (kill-buffer-query-functions nil))
     (unwind-protect
         (progn (switch-to-buffer buffer)
                ,@body)
       (kill-buffer buffer))))

(defun gemini-companion-send-test-occur (text buffer)
  "Return the buffer with the hits for TEXT in BUFFER, on the first one."
  (save-window-excursion
    (with-current-buffer buffer
      (occur text)))
  (with-current-buffer "*Occur*"
    (goto-char (point-min))
    (forward-line)
    (current-buffer)))

(defun gemini-companion-send-test-dired (file)
  "Return a buffer of Dired, on FILE."
  (with-current-buffer (dired-noselect default-directory)
    (dired-goto-file (expand-file-name file))
    (current-buffer)))

(defun gemini-companion-send-test-deleted (file)
  "Return a buffer with a diff in which FILE is deleted, on its header."
  (with-current-buffer (generate-new-buffer "*diff*")
    (insert "--- b\n+++ b\n@@ -1 +1 @@\n-b\n+c\ndiff --git a/b b/b\n")
    (save-excursion
      (insert "deleted\n--- " file "\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"))
    (diff-mode)
    (current-buffer)))

(defun gemini-companion-send-test-hits (text file)
  "Search for TEXT in FILE; return the buffer with the hits, on the first one."
  (with-current-buffer (save-window-excursion
                         (grep (format "grep -nH --null %s %s" text file)))
    (gemini-companion-test-eventually
      (goto-char (point-min))
      (search-forward "matches found" nil t))
    (goto-char (point-min))
    (re-search-forward (concat "^" (regexp-quote file)))
    (current-buffer)))

;;;; Files

(ert-deftest gemini-companion-send-names-the-region-the-defun-or-the-line ()
  (gemini-companion-send-test-with
    (pcase-dolist (`(,name . ,written)
                   '(("größe(1).txt" . "größe\\(1\\).txt")
                     ("a,b;c" . "a\\,b\\;c") ("-a" . "-a") ("+p@.ts" . "+p\\@.ts")
                     ("x@y" . "x\\@y") ("end." . "end\\.")
                     ;; Not typed as it is, it would name another file.
                     ("a\177" . nil) ("a\nb" . nil)))
      (write-region "" nil name nil 'silent)
      (gemini-companion-send-test-in (find-file-noselect name)
        (if written
            (should (equal (format "@%s (line 1)" written)
                           (gemini-companion-send-test-sent)))
          (should-error (gemini-companion-send) :type 'user-error))))
    (goto-char 5)
    (gemini-companion-send-test-sends "@a (line 2)")
    (goto-char 2)
    (push-mark 1 t t)
    (gemini-companion-send-test-sends "@a (line 1)")
    (goto-char 9)
    (gemini-companion-send-test-sends "@a (lines 1-2)")
    (deactivate-mark)
    (gemini-companion-test-write "b.el" "(defun f ()\n  1)\n\n(defun g ()\n  2)\n")
    (gemini-companion-send-test-in (find-file-noselect "b.el")
      (goto-char 15)
      (should (string-prefix-p "@b.el (lines 1-2"
                               (gemini-companion-send-test-sent))))))

(ert-deftest gemini-companion-send-includes-the-diagnostics-of-the-line ()
  (gemini-companion-send-test-with
    (add-hook 'flymake-diagnostic-functions
              (lambda (report &rest _)
                (funcall report (list (flymake-make-diagnostic
                                       (current-buffer) 5 11 :error
                                       "@Bad number"))))
              nil t)
    (flymake-mode)
    (flymake-start)
    (gemini-companion-test-eventually (flymake-diagnostics))
    (goto-char 7)
    (gemini-companion-send-test-sends "@a (line 2): @Bad number")
    ;; It goes on there.
    (forward-line)
    (gemini-companion-send-test-sends "@a (line 3): @Bad number")
    (save-window-excursion (flymake-show-buffer-diagnostics))
    (gemini-companion-send-test-in
        (seq-find (lambda (buffer)
                    (string-match-p "Flymake diagnostics" (buffer-name buffer)))
                  (buffer-list))
      (goto-char (point-min))
      (gemini-companion-send-test-sends "@a (line 2): @Bad number"))))

(ert-deftest gemini-companion-send-includes-the-errors-of-flycheck ()
  (skip-unless (featurep 'flycheck))
  (gemini-companion-send-test-with
    (flycheck-define-generic-checker 'gemini-companion-send-test
      "Find an error on the second line."
      :start (lambda (checker report)
               (funcall report 'finished
                        (list (flycheck-error-new-at 2 1 'error "Bad\nnews"
                                                     :checker checker))))
      :modes '(fundamental-mode))
    (setq flycheck-checker 'gemini-companion-send-test)
    (flycheck-mode)
    (flycheck-buffer)
    (goto-char 7)
    (gemini-companion-send-test-sends "@a (line 2): Bad news")
    ;; Eglot turns on Flymake, too.
    (flymake-mode)
    (gemini-companion-send-test-sends "@a (line 2): Bad news")
    ;; The text has changed since the check.
    (save-excursion
      (goto-char 1)
      (insert "\n"))
    (gemini-companion-send-test-sends "@a (line 3): Bad news")
    (flycheck-list-errors)
    (gemini-companion-send-test-in flycheck-error-list-buffer
      (goto-char (point-min))
      (push-mark (point-max) t t)
      (gemini-companion-send-test-sends "@a (line 2):\nBad\nnews"))))

(ert-deftest gemini-companion-send-asks-about-files-outside-or-excluded ()
  (gemini-companion-send-test-with
   (gemini-companion-test-set-sessions
    (list (gemini-companion-session-make
           :id "1" :directory "/nowhere")))
    (let (asked)
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (prompt) (push prompt asked) (cdr asked))))
        (let ((buffer-file-name (concat buffer-file-name "\u202e")))
          (should-error (gemini-companion-send) :type 'user-error)
          (should (string-search "\\u202E is outside the project" (car asked))))
        (should (equal (concat "@" buffer-file-name " (line 1)")
                       (gemini-companion-send-test-sent)))
        (write-region "KEY=1\nE=2\n" nil ".env" nil 'silent)
        (write-region "keys/\n" nil ".geminiignore" nil 'silent)
        (gemini-companion-privacy-refresh)
        (make-directory "keys")
        (make-symbolic-link "." ".ssh")
        (pcase-dolist
            (`(,name . ,buffer)
             `((".env (line 1)"
                . ,(lambda () (gemini-companion-send-test-hits "KEY" ".env")))
               ("a (line 1)"
                . ,(lambda () (gemini-companion-send-test-hits "one" ".ssh/a")))
               (".env (line 1)"
                . ,(lambda ()
                     (gemini-companion-send-test-occur
                      "KEY" (make-indirect-buffer (find-file-noselect ".env")
                                                  "indirect"))))
               ("keys"
                . ,(lambda () (gemini-companion-send-test-dired "keys")))
               (".env"
                . ,(lambda () (gemini-companion-send-test-deleted ".env")))
               ;; Another file has its last name.
               ("keys/a"
                . ,(lambda ()
                     (gemini-companion-send-test-deleted "a/keys/a")))))
          (setq asked '(nil))
          (gemini-companion-send-test-in (funcall buffer)
            ;; The text of an excluded file is never sent.
            (should (string-suffix-p (concat "/" name)
                                     (gemini-companion-send-test-sent)))
            (should (string-search "is not shared" (car asked)))))
        (gemini-companion-send-test-in (gemini-companion-send-test-hits "E" ".env")
          (push-mark (point-max) t t)
          (setq asked '(nil))
          (gemini-companion-send-test-sent)
          (should (= 2 (length asked))))))))

(ert-deftest gemini-companion-send-takes-the-cli-of-the-directory-or-asks ()
  (gemini-companion-send-test-with
    (let ((here
           (gemini-companion-session-make :id "2" :directory default-directory)))
      (gemini-companion-test-set-sessions
       (list (gemini-companion-session-make
              :id "1" :directory "/nowhere") here))
      (should (string-prefix-p "@a " (gemini-companion-send-test-sent)))
      (gemini-companion-test-set-sessions
       (list here
             (gemini-companion-session-make
              :id "3" :directory default-directory)))
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (_prompt _names &rest more) (nth 4 more))))
        (should (string-prefix-p "@a " (gemini-companion-send-test-sent))))
      (gemini-companion-test-set-sessions (list here)))
    ;; A file that was not saved is only named.
    (gemini-companion-send-test-in (find-file-noselect "!new")
      (gemini-companion-send-test-sends "About !new (line 1)"))
    (gemini-companion-send-test-in (generate-new-buffer "*blank*")
      (insert "  \n\t\n")
      (should-error (gemini-companion-send) :type 'user-error))
    (gemini-companion-test-set-sessions nil)
    (should-error (gemini-companion-send) :type 'user-error)))

;;;; Other buffers

(ert-deftest gemini-companion-send-sends-hits-with-their-messages ()
  (gemini-companion-send-test-with
    (write-region "one\ntwo\nthree\n" nil "ab" nil 'silent)
    (gemini-companion-send-test-in (gemini-companion-send-test-hits "t" "ab")
      (push-mark (point) t t)
      (forward-line 2)
      (gemini-companion-send-test-sends
       "@ab (line 2): ab:2:two\n@ab (line 3): ab:3:three"))
    (gemini-companion-send-test-in (generate-new-buffer "*perl*")
      (insert "make: Leaving directory 'x'\n"
              "No such thing at a line 2, near x\n")
      (compilation-mode)
      (forward-line -1)
      (should (string-prefix-p "@a (line 2)" (gemini-companion-send-test-sent)))
      (push-mark (point-min) t t)
      (goto-char (point-max))
      (gemini-companion-send-test-sends "make: Leaving directory 'x'
@a (line 2): No such thing at a line 2, near x"))
    (let ((hits (gemini-companion-send-test-occur "thr" "a")))
      (with-current-buffer "a"
        (narrow-to-region (point-min) (point-min)))
      (gemini-companion-send-test-in hits
        (gemini-companion-send-test-sends "@a (line 3): 3:three")
        ;; Whether its text may be sent is not known any more.
        (kill-buffer "a")
        (should-error (gemini-companion-send) :type 'user-error)))))

(ert-deftest gemini-companion-send-sends-files-and-hunks ()
  (gemini-companion-send-test-with
    (write-region "\0" nil "a.pdf" nil 'silent)
    (gemini-companion-send-test-in (find-file-noselect "a.pdf")
      (gemini-companion-send-test-sends "@a.pdf"))
    (gemini-companion-send-test-in (gemini-companion-send-test-dired "a")
      (gemini-companion-send-test-sends "@a"))
    (dolist (name '("sub/b.txt" "b.txt"))
      (gemini-companion-test-write name ""))
    (pcase-dolist (`(,name . ,sent) '(("a/sub/a" . "sub/a:")
                                      ("sub/b.txt" . "@sub/b.txt:")
                                      ("\"a/gr\\303\\266n\"" . "grön:")))
      (gemini-companion-send-test-in (gemini-companion-send-test-deleted name)
        (gemini-companion-send-test-sends
         (concat sent "\n```diff\n@@ -1 +0,0 @@\n-gone\n```"))))
    (gemini-companion-send-test-in (gemini-companion-send-test-deleted "a/c")
      (forward-line -1)
      (save-excursion
        (insert "diff --git a/bin b/bin\nBinary files differ\n"))
      (should-error (gemini-companion-send) :type 'user-error))
    (gemini-companion-send-test-in (dired-noselect "..")
      (dired-goto-file (expand-file-name "p"))
      (gemini-companion-send-test-sends "."))))

(ert-deftest gemini-companion-send-sends-the-last-command-and-its-output ()
  (gemini-companion-send-test-with
    (let ((explicit-shell-file-name "/bin/sh")
          (process-environment (cons "PS1=$ " process-environment)))
      (gemini-companion-send-test-in (save-window-excursion (shell))
        (goto-char (point-max))
        (insert "echo first; seq 300")
        (comint-send-input)
        (gemini-companion-test-eventually
          (string-match-p "^300\n" (buffer-string)))
        (let ((sent (gemini-companion-send-test-sent)))
          (should (string-search "\n300\n" sent))
          (should (string-match-p
                   "\\````\necho first; seq 300\n\\[10. lines omitted]\n10.\n" sent)))))
    ;; The prompt is known from the line of the cursor.
    (gemini-companion-send-test-in (generate-new-buffer "*vterm*")
      (setq major-mode 'vterm-mode)
      (pcase-dolist
          (`(,left ,right ,sent ,copies)
           (let ((text "p$ one\n1\np$ two\n2\nthree\np$ "))
             `(("11:59 p$ two\n2\nthree\n12:30 p$ " ""
                "11:59 p$ two\n2\nthree\n12:30 p$")
               ;; What the prompt has on its right comes after the cursor.
               (,text "   12:30" "p$ two\n2\nthree\np$    12:30")
               (,(concat text "ha $x lf") "   12:30"
                "p$ two\n2\nthree\np$ ha $x lf   12:30")
               (,text "" "p$ two\n2\nthree\np$" t)
               (,(concat text "run\n") "" ,(concat text "run")))))
        (erase-buffer)
        (insert left)
        (save-excursion
          (insert right))
        (setq-local vterm-copy-mode copies)
        (when copies
          (goto-char (point-min)))
        (gemini-companion-send-test-sends (format "```\n%s\n```" sent))))))

(ert-deftest gemini-companion-send-names-a-file-as-its-cli-reads-it ()
  "The forms were tried with each CLI."
  (pcase-dolist
      (`(,name ,gemini ,qwen ,copilot)
       '(("app/(auth)/[id]/page.tsx" nil
          "app/\\(auth\\)/\\[id\\]/page.tsx" "app/(auth)/[id]/page.tsx")
         ("[id]/a" nil "\\[id\\]/a" "[id]/a")
         ("a/[...slug]" nil "a/\\[...slug\\]" "a/[...slug]")
         ("a\"b" nil "a\\\"b" "a\"b")
         ("a\\b" nil nil "a\\b")
         ("a*b" nil "a\\*b" "a*b")
         ("@(a)" nil "@\\(a\\)" nil)
         ("{a,b}" nil "\\{a\\,b\\}" "{a,b}")
         ("{a}" "\\{a\\}" "\\{a\\}" "{a}")
         ("a[b" "a\\[b" "a\\[b" "a[b")
         ("a größe" "a\\ größe" "a\\ größe" nil)
         ("@m/a" "\\@m/a" "@m/a" nil)
         ("a." "a\\." nil nil)
         ("a," "a\\," "a\\," nil)
         ("~a" "\\~a" "\\~a" nil)
         ("-#$&;!'`|<>a" "-\\#\\$\\&\\;\\!\\'\\`\\|\\<\\>a"
          "-\\#\\$\\&\\;\\!\\'\\`\\|\\<\\>a" "-#$&;!'`|<>a")))
    (pcase-dolist (`(,client . ,reference)
                   `(("gemini" . ,gemini) ("qwen" . ,qwen) ("copilot" . ,copilot)))
      (ert-info ((format "%s in %s" name client))
        (should (equal (and reference (concat "@" reference))
                       (gemini-companion-prompt-reference name client)))))))

(ert-deftest gemini-companion-send-sends-the-text-of-a-file-that-is-not-read ()
  (gemini-companion-send-test-with
    (gemini-companion-test-write "app/[id]/a.ts" "one\ntwo at @a\n")
    (gemini-companion-send-test-in (find-file-noselect "app/[id]/a.ts")
      (goto-char 5)
      (gemini-companion-send-test-sends "app/[id]/a.ts (line 2)
The text of app/[id]/a.ts:
```ts
one
two at \\@a
```"))
    ;; Of what is long, is no text or may not be shared, the model has the name.
    (gemini-companion-test-write "[x].png" "\211PNG")
    (gemini-companion-test-write "[x].long" (make-string 40000 ?x))
    (gemini-companion-test-write ".env[x]" "KEY=hush")
    (let (asked)
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (prompt) (push prompt asked) t)))
        (dolist (name '("[x].png" "[x].long" ".env[x]"))
          (gemini-companion-send-test-in (dired-noselect ".")
            (dired-goto-file (expand-file-name name))
            (gemini-companion-send-test-sends
             (format "%s\nRead the file %s first." name name))))
        (should (length= asked 1))))
    ;; Together, too, they are not longer than a prompt may be.
    (dolist (name '("[1]" "[2]"))
      (gemini-companion-test-write name (make-string 20000 ?x)))
    (gemini-companion-send-test-in (dired-noselect ".")
      (revert-buffer)
      (dolist (name '("[1]" "[2]"))
        (dired-goto-file (expand-file-name name))
        (dired-mark nil))
      (let ((sent (gemini-companion-send-test-sent)))
        (should (string-search "The text of [1]:" sent))
        (should (string-search "Read the file [2] first." sent))))))

(ert-deftest gemini-companion-send-sends-the-text-of-a-remote-file ()
  (gemini-companion-test-needs-add-on 'remote)
  (gemini-companion-test-with-remote
    (let* ((session (gemini-companion-session-make
                     :id "1" :client "gemini" :remote "/ssh:far:"))
           (sent (lambda (name)
                   ;; Tramp would ask the host whether it is a directory.
                   (cl-letf (((symbol-function 'file-directory-p) #'ignore))
                     (gemini-companion-send-description
                      `((,(concat "/ssh:far:" name) nil)) session)))))
      (should (equal "About /shared/[id].ts\nRead the file /shared/[id].ts first."
                     (funcall sent "/shared/[id].ts")))
      (gemini-companion-test-write (expand-file-name "[id].ts" directory) "one\n")
      (should (equal "About /shared/[id].ts\nThe text of /shared/[id].ts:
```ts\none\n```"
                     (funcall sent "/shared/[id].ts")))
      (should (equal "@/shared/a\\ b" (funcall sent "/shared/a b"))))))

(ert-deftest gemini-companion-send-quotes-texts-without-a-file ()
  (gemini-companion-send-test-with
    (gemini-companion-send-test-in (generate-new-buffer "*notes*")
      (insert "First.\n\nMail a@b.c,\nthen ``` it.\n\nLast.\n")
      (goto-char 12)
      (gemini-companion-send-test-sends
       "From *notes*:\n````\nMail a@b.c,\nthen ``` it.\n````")
      (push-mark 9 t t)
      (goto-char 25)
      (gemini-companion-send-test-sends
       "From *notes*:\n```\nMail a@b.c,\nthen\n```")
      (rectangle-mark-mode)
      (gemini-companion-send-test-sends "From *notes*:\n```\nMail\nthen\n```"))
    (gemini-companion-send-test-in (generate-new-buffer "*code*")
      (insert "(a)\n")
      (emacs-lisp-mode)
      (gemini-companion-send-test-sends "From *code*:\n```emacs-lisp\n(a)\n```"))
    (let ((gemini-companion-send-alist
           `((text-mode . ,(lambda () '("mine")))
             . ,gemini-companion-send-alist)))
      (with-temp-buffer
        (text-mode)
        (gemini-companion-send-test-sends "mine")))))

;; Only Gemini CLI searches for a part of a name.
(ert-deftest gemini-companion-send-quotes-an-at-sign-only-before-a-file ()
  (gemini-companion-send-test-with
    (gemini-companion-test-write "src/Property.py" "")
    (pcase-dolist (`(,text ,gemini ,qwen)
                   '(("@@ -1 +1 @@ root@vm: me@example.com.")
                     ("@property" "\\@property" "@property")
                     ("(@x/prop), @src/rop" "(\\@x/prop), @src/rop"
                      "(@x/prop), @src/rop")
                     ("@a. b@src/Property.py" "\\@a. b\\@src/Property.py"
                      "\\@a. b\\@src/Property.py")
                     ("\\@a \\\\@a @ @.. a@,")
                     ;; It would read all files in src.
                     ("@src/[id]/a.ts, @./(b)" "\\@src/[id]/a.ts, \\@./(b)"
                      "\\@src/[id]/a.ts, \\@./(b)")))
      (pcase-dolist (`(,client . ,quoted) `(("gemini" . ,gemini)
                                            ("qwen" . ,qwen)))
        (gemini-companion-test-set-sessions
         (list (gemini-companion-session-make
                :id "1" :client client :directory default-directory)))
        (gemini-companion-send-test-in (generate-new-buffer "*notes*")
          (insert text)
          (let ((project-find-functions
                 (list (lambda (directory) (cons 'transient directory)))))
            (gemini-companion-send-test-sends
             (format "From *notes*:\n```\n%s\n```" (or quoted text)))))))))

;;;; Texts of files that are not shared

(defun gemini-companion-send-test-filled (mode text)
  "Return a new buffer in MODE with TEXT, on its last line."
  (with-current-buffer (generate-new-buffer "*filled*")
    (insert text)
    (funcall mode)
    (goto-char (point-max))
    (forward-line -1)
    (current-buffer)))

(defun gemini-companion-send-test-source ()
  "Return the buffer to edit the block of keys/n.org."
  (find-file "keys/n.org")
  (forward-line)
  (org-edit-src-code)
  (current-buffer))

(defun gemini-companion-send-test-compiled (command &optional comint)
  "Return the buffer of a compilation by COMMAND, with input if COMINT."
  (compile command comint)
  (set-buffer "*compilation*")
  (gemini-companion-test-eventually
    (string-match-p "finished" (buffer-string)))
  (current-buffer))

(defun gemini-companion-send-test-hush-p (buffer &optional all)
  "Return t if the word hush is sent from BUFFER; of ALL, if it is t.
The user agrees to each question."
  (gemini-companion-send-test-in buffer
    (when all
      (push-mark (point-min) t t)
      (goto-char (point-max)))
    (cl-letf (((symbol-function 'y-or-n-p) #'always))
      (and (string-search "hush" (condition-case nil
                                     (gemini-companion-send-test-sent)
                                   (user-error "")))
           t))))

(defmacro gemini-companion-send-test-with-secret (&rest body)
  "Run BODY as above, with the files .env and keys/n.org, which are not shared."
  (declare (indent 0) (debug t))
  `(gemini-companion-send-test-with
     (dolist (file '((".env" "KEY=hush\nE=2\n") ("b.txt" "KEY=hush\nE=2\n")
                     ("keys/n.org" "#+begin_src sh\necho hush\n#+end_src\n* hush\n")
                     (".geminiignore" "keys/\n")))
       (apply #'gemini-companion-test-write file))
     (gemini-companion-privacy-refresh)
     ,@body))

;; Magit is not among the packages of the tests: these are its names and slots.
(defclass gemini-companion-send-test-section ()
  ((start :initarg :start) (end :initarg :end)
   (parent :initarg :parent :initform nil) (source :initarg :source :initform nil)))

(define-derived-mode gemini-companion-send-test-magit-mode special-mode "Magit"
  "Mode for a buffer of Magit in tests."
  :interactive nil)
(put 'gemini-companion-send-test-magit-mode 'derived-mode-parent 'magit-mode)

(ert-deftest gemini-companion-send-sends-a-hunk-of-magit-unless-its-file-is-hidden ()
  (gemini-companion-send-test-with-secret
    (pcase-dolist (`(,file ,source ,sent) '(("b.txt" nil t) (".env" nil nil)
                                            ("~/keys/k" nil nil)
                                            ;; It was renamed.
                                            ("b.txt" ".env" nil)))
      (ert-info ((format "%s %s" file source))
        (let ((buffer (generate-new-buffer "magit: p")))
          (with-current-buffer buffer
            (insert "Unstaged changes (1)\nmodified   " file "\n")
            (let ((start (point)))
              (insert "@@ -1,2 +1,2 @@\n-KEY=hush\n+KEY=x\n E=2\n")
              (gemini-companion-send-test-magit-mode)
              (goto-char start)
              (cl-letf* ((section (gemini-companion-send-test-section
                                   :start start :end (point-max)
                                   :parent (gemini-companion-send-test-section
                                            :start 1 :end (point-max) :source source)))
                         ((symbol-function 'magit-current-section) (lambda () section))
                         ((symbol-function 'magit-file-at-point) (lambda () file)))
                (should (eq sent (gemini-companion-send-test-hush-p buffer)))))))))))

(ert-deftest gemini-companion-send-keeps-hunks-of-two-files-if-one-is-hidden ()
  (gemini-companion-send-test-with-secret
    (let ((hunk "@@ -1,2 +1,2 @@\n-KEY=hush\n+KEY=x\n E=2\n"))
      (dolist (header
               `("diff --git a/%s b/c\nrename from %s\nrename to c\n--- a/%s\n+++ b/c"
                 "diff --git a/c b/%s\ncopy from c\ncopy to %s\n--- a/c\n+++ b/%s"
                 "diff --git %s c\n--- %s\n+++ c"
                 "diff --git i/%s w/c\n--- i/%s\n+++ w/c"
                 "diff --git old/%s new/c\n--- old/%s\n+++ new/c"
                 "--- \"a/%s\"\n+++ \"b/gr\\303\\274n\""
                 "--- %s\t2024-01-01 10:00:00.0 +0100\n+++ a.txt\t2024-01-01"
                 "--- c\n+++ ./%s"
                 "Index: %s\n=====\n--- c\t(revision 1)\n+++ c\t(working copy)"
                 ,(concat "--- " default-directory "%s\n+++ /dev/null")))
        (pcase-dolist (`(,name . ,sent)
                       '((".env" . nil) ("keys/k" . nil) ("~/keys/k" . nil)
                                        ("b.txt" . t)))
          (ert-info ((concat name " " header))
            (should
             (eq sent
                 (gemini-companion-send-test-hush-p
                  (gemini-companion-send-test-filled
                   #'diff-mode
                   (concat (string-replace "%s" name header) "\n" hunk)))))))))
    (pcase-dolist (`(,switches ,find) '(("-u" find-file-noselect)
                                        ("-c" find-file-noselect)
                                        ("-u --label x --label y" identity)))
      (pcase-dolist (`(,old ,new ,sent) '((".env" "a" nil) ("a" ".env" nil)
                                          ("b.txt" "a" t)))
        (ert-info ((format "%s %s %s" switches old new))
          (let ((buffer (save-window-excursion
                          (diff-no-select (funcall find old) (funcall find new)
                                          switches 'noasync))))
            (with-current-buffer buffer
              (goto-char (point-min))
              (diff-hunk-next))
            (should (eq sent (gemini-companion-send-test-hush-p buffer)))))))))

(ert-deftest gemini-companion-send-keeps-source-lines-in-compilations ()
  (gemini-companion-send-test-with-secret
    (dolist (text
             '("  File \"%s\", line 1, in <module>\n    KEY=\"hush\"\n"
               "%s:1:5: error: bad\n    1 |   KEY=hush\n      |       ^~~~\n"
               ;; Emacs 28 does not know this format.
               "%s(1,5): error TS1005: KEY=hush\n"
               "error[E0308]: mismatched types\n  --> %s:1:5\n  |\n1 | KEY=hush\n  |\n"
               "def test():\n>   assert KEY == hush\n\n%s:1: AssertionError\n"
               ;; It looks like a place.
               "%s:1: error\nDB=http://hush@db:5432/x\nKEY=hush\n"))
      (pcase-dolist (`(,name . ,sent) '((".env" . nil) ("keys/k" . nil)
                                        ("b.txt" . t)))
        (ert-info ((concat name " " text))
          (let ((all (concat "a:1: good\nmake: fine\n\n"
                             (string-replace "%s" name text)
                             "\na:2: good\nend of it\n")))
            (should (eq sent (gemini-companion-send-test-hush-p
                              (gemini-companion-send-test-filled
                               #'compilation-mode all)
                              t)))
            (let ((buffer (gemini-companion-send-test-filled
                           #'compilation-mode all)))
              (with-current-buffer buffer
                (search-backward "hush"))
              (should (eq sent (gemini-companion-send-test-hush-p buffer))))
            ;; The rest is sent.
            (gemini-companion-send-test-in
                (gemini-companion-send-test-filled #'compilation-mode all)
              (gemini-companion-send-test-sends "end of it"))))))))

(ert-deftest gemini-companion-send-keeps-text-in-buffers-that-show-a-file ()
  (gemini-companion-send-test-with-secret
    (dolist (command '("init -q" "add -A" "-c user.name=a -c user.email=a@b commit -qm x"))
      (should (zerop (call-process-shell-command (concat "git " command)))))
    (should-not
     (seq-filter
      (lambda (maker)
        (ert-info ((format "%S" maker))
          (let ((buffer (save-window-excursion (funcall maker))))
            (should (string-search "hush" (with-current-buffer buffer
                                            (buffer-string))))
            (gemini-companion-send-test-hush-p buffer t))))
      (list
       #'gemini-companion-send-test-source
       (lambda ()
         (find-file ".env")
         (vc-annotate (expand-file-name ".env") "HEAD" nil nil nil 'git)
         (gemini-companion-test-eventually
           (string-search "hush" (buffer-string)))
         (set-buffer (seq-find (lambda (buffer)
                                 (eq 'vc-annotate-mode
                                     (buffer-local-value 'major-mode buffer)))
                               (buffer-list))))
       (lambda ()
         (find-file ".env")
         (vc-find-revision (expand-file-name ".env") "HEAD"))
       (lambda ()
         (gemini-companion-send-test-occur
          "hush" (gemini-companion-send-test-source)))
       (lambda ()
         (gemini-companion-send-test-occur
          "hush" (gemini-companion-send-test-filled
                  #'compilation-mode ".env:1: error\nKEY=hush\n")))
       (lambda ()
         (gemini-companion-send-test-occur
          "hush" (gemini-companion-send-test-occur
                  "hush" (find-file-noselect ".env"))))
       ;; With a prefix, as for commands that read input.
       (lambda ()
         (gemini-companion-test-write "out" ".env:1: error\n  KEY=hush\n")
         (gemini-companion-send-test-compiled "cat out" t))
       (lambda ()
         (gemini-companion-send-test-compiled "sh -c 'cat a; cat keys/n.org'"))
       (lambda ()
         (gemini-companion-send-test-compiled "git --no-pager show HEAD:.env"))
       (lambda ()
         (with-current-buffer (find-file-noselect ".env")
           (let ((clone (clone-indirect-buffer "clone" nil)))
             (funcall xref-show-xrefs-function
                      (lambda ()
                        (list (xref-make "hush"
                                         (xref-make-buffer-location clone 1))))
                      nil)))
         (get-buffer xref-buffer-name))
       (lambda ()
         (eww-open-file ".env")
         (set-buffer "*eww*"))
       (lambda ()
         (gemini-companion-proposal-close
          (gemini-companion-test-open ".env" "hush\n" 1
                                      (gemini-companion-session-make :id "2"))
          'interrupted)
         (gemini-companion-list)
         (set-buffer "*gemini*")
         ;; The turn has the name of the file as well.
         (goto-char (point-min))
         (re-search-forward "closed +[+]1 .*[.]env")
         (call-interactively (key-binding (kbd "TAB")))
         (current-buffer))
       ;; A patch in a directory of such files.
       (lambda ()
         (gemini-companion-test-write "keys/x.diff"
                                      "--- a\n+++ a\n@@ -1 +1 @@\n-hush\n+x\n")
         (find-file "keys/x.diff")
         (goto-char (point-max))
         (forward-line -1)
         (current-buffer))
       (lambda ()
         (let ((org-agenda-files (list (expand-file-name "keys/n.org"))))
           (org-search-view nil "hush"))
         (get-buffer org-agenda-buffer-name))
       (lambda ()
         (make-indirect-buffer "*Org Src n.org[ sh ]*" "copy")))))
    (rename-file ".env" ".env\u202e")
    (gemini-companion-send-test-in
        (gemini-companion-send-test-compiled "cat .env\u202e")
      (should (string-search ".env\\u202E, which is not shared"
                             (cadr (should-error (gemini-companion-send))))))
    (should (gemini-companion-send-test-hush-p
             ;; Tramp connects to a host for a relative name.
             (gemini-companion-send-test-compiled "cat b.txt || cat /ssh:x:y") t))))

(ert-deftest gemini-companion-send-loads-no-other-add-on ()
  (should-not
   (gemini-companion-test-fresh
    '(start)
    '(wait)
    '(gemini-companion-server-receive
      'sessions-update `((:id "one" :directory ,temporary-file-directory)))
    '(find-file (make-temp-file "load" nil nil "text\n"))
    '(gemini-companion-send)
    '(seq-filter #'featurep
                 (mapcar #'gemini-companion-part-feature
                         '(code errors lookup tools remote-names remote))))))

;;; gemini-companion-send-test.el ends here
