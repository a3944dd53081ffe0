;;; gemini-companion-compose-test.el --- Tests of writing prompts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-client)
(require 'gemini-companion-compose)
(require 'gemini-companion-notify)
(require 'gemini-companion-remote-test-helper)
(require 'gemini-companion-send)
(require 'gemini-companion-server-test-helper)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-compose-test-with (client &rest body)
  "Run BODY in a project with a session of CLIENT.
`session' is the CLI, in the terminal `terminal'; without CLIENT there
is none."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory '((".git" "") ("a b.txt" "") ("c" ""))
     (let* ((home (expand-file-name "home/"))
            (process-environment (append (list (concat "HOME=" home)
                                               "GEMINI_CLI_HOME" "QWEN_HOME")
                                         process-environment))
            (gemini-companion-install-directory (expand-file-name "ours/"))
            (gemini-companion-compose-history nil)
            (kill-buffer-query-functions nil)
            (project-find-functions
             (list (lambda (_) (cons 'transient directory))))
            (client ,client)
            (terminal (generate-new-buffer "*terminal*"))
            (session nil))
       (save-window-excursion
         (when client
           (setq session
                 (gemini-companion-session-make :id "1" :client client :directory directory
                                                :pid (process-id
                                                      (with-current-buffer terminal
                                                        (gemini-companion-test-start-cat))))))
         (unwind-protect
             (gemini-companion-test-with-parts '(compose state prompt notify) session
               (gemini-companion-test-without-sign
                 ,@body))
           (dolist (buffer (buffer-list))
             (when (or (eq buffer terminal)
                       (string-prefix-p "*prompt: " (buffer-name buffer)))
               (kill-buffer buffer))))))))

(ert-deftest gemini-companion-compose-submits-or-inserts-and-remembers ()
  (gemini-companion-compose-test-with "gemini"
    (pcase-dolist (`(,text ,insert) '(("Say this\nand that" nil) ("more" t)))
      (display-buffer terminal)
      (gemini-companion-compose)
      (should (< (window-height) (window-height (get-buffer-window terminal))))
      ;; Nothing is left of the last one as a draft.
      (should (equal "" (buffer-string)))
      (insert text "\n")
      (gemini-companion-compose-submit insert)
      (should-not (string-prefix-p "*prompt: " (buffer-name)))
      (should (eq insert (eq terminal (window-buffer))))
      (gemini-companion-test-eventually
        (string-search (car (last (split-string text "\n")))
                       (gemini-companion-test-text terminal))))
    ;; As in the next Emacs.
    (setq gemini-companion-compose-history nil)
    (gemini-companion-compose)
    (delete-other-windows)
    (gemini-companion-compose (progn (display-buffer terminal) session))
    (should (length= (get-buffer-window-list) 1))
    (insert "own")
    (pcase-dolist (`(,command . ,text)
                   '((previous . "more") (previous . "Say this\nand that")
                     (next . "more") (next . "own")))
      (funcall (intern (format "gemini-companion-compose-%s" command)))
      (should (equal text (buffer-string))))
    (gemini-companion-compose-next)
    (should (equal "" (buffer-string)))
    (should-error (gemini-companion-compose-next) :type 'user-error)))

;; Otherwise, only the end of the turn or of the mode would end the wait.
(ert-deftest gemini-companion-compose-withdraws-what-is-queued ()
  (gemini-companion-compose-test-with "gemini"
    (let ((process (get-buffer-process terminal))
          (kill-ring (list "before")))
      (gemini-companion-state-set-title process "✦  Working…")
      (should-error (gemini-companion-compose-withdraw) :type 'user-error)
      (dolist (text '("first" "second" "third"))
        (gemini-companion-compose)
        (insert text)
        (gemini-companion-compose-submit))
      (should-not (string-prefix-p "*prompt: " (buffer-name)))
      (gemini-companion-compose-withdraw)
      (should (equal "third" (car kill-ring)))
      (with-current-buffer terminal
        (should (string-match-p "\\` 2 prompts queued: .*compose\\'"
                                (funcall gemini-companion-terminal-header-function))))
      ;; Beside another window, there may be no room for the key.
      (save-window-excursion
        (select-window (split-window-right))
        (switch-to-buffer terminal)
        (should (string-prefix-p " 2 prompts queued: "
                                 (funcall gemini-companion-terminal-header-function))))
      (gemini-companion-compose)
      (should (string-search "working; 2 queued  C-c C-w withdraw"
                             (eval (cadr header-line-format) t)))
      (insert "newer")
      (execute-kbd-macro (kbd "C-c C-w"))
      (execute-kbd-macro (kbd "C-c C-w"))
      (should (equal "first\nsecond\nnewer" (buffer-string)))
      (should-not (string-search "queued" (eval (cadr header-line-format) t)))
      (should (equal "third" (car kill-ring)))
      (should-error (gemini-companion-compose-withdraw) :type 'user-error)
      (gemini-companion-state-set-title process "◇  Ready")
      (dotimes (_ 20) (gemini-companion-test-run-timers))
      (should (equal "up" (string-trim (gemini-companion-test-text terminal))))
      (set-buffer-modified-p nil))))

;; In a window that displayed something else before, the user stayed.
(ert-deftest gemini-companion-compose-goes-back-to-where-the-user-was ()
  (dolist (split '(t nil))
    (gemini-companion-compose-test-with "gemini"
      (delete-other-windows)
      (switch-to-buffer "*scratch*")
      (let ((here (selected-window))
            (other (and split (split-window))))
        (when split
          (set-window-buffer other (get-buffer-create "*Messages*")))
        (gemini-companion-compose session)
        (should-not (eq here (selected-window)))
        (insert "Say this\n")
        (gemini-companion-compose-submit)
        (should (eq here (selected-window)))
        (should (equal "*scratch*" (buffer-name (window-buffer))))
        (should (equal (and split "*Messages*")
                       (and split (buffer-name (window-buffer other)))))))))

(ert-deftest gemini-companion-compose-keeps-drafts ()
  (gemini-companion-compose-test-with "gemini"
    (let (text)
      (dolist (end (list #'gemini-companion-compose-close
                         #'kill-buffer
                         ;; As Emacs does from time to time, and in a crash.
                         (lambda ()
                           (do-auto-save t t)
                           (setq-local kill-buffer-hook nil)
                           (kill-buffer))))
        (gemini-companion-compose)
        (should (equal text (and text (buffer-string))))
        (insert "größe\n")
        (setq text (buffer-string))
        (funcall end)
        (should-not (string-prefix-p "*prompt: " (buffer-name))))
      (gemini-companion-test-set-sessions nil)
      (gemini-companion-compose)
      (should (equal text (buffer-string)))
      (should (equal #o700 (file-modes "ours/prompts")))
      (gemini-companion-compose nil "@c (line 1)")
      (should (equal (concat text "@c (line 1)\n") (buffer-string))))
    ;; The text of a file stays there.
    (find-file "c")
    (insert "secret")
    (dolist (command '(submit close previous next))
      (should-error (funcall (intern (format "gemini-companion-compose-%s" command)))
                    :type 'user-error))
    (should (equal "secret" (buffer-string)))
    (should-not (member "secret" gemini-companion-compose-history))
    (set-buffer-modified-p nil)))

(ert-deftest gemini-companion-compose-submits-no-answer-and-asks-before-a-shell ()
  (gemini-companion-compose-test-with "gemini"
    (let ((process (get-buffer-process terminal)) asked)
      (gemini-companion-compose)
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (prompt) (push prompt asked) nil)))
        (dolist (text '("!copy" "\ufeff!ls"))
          (erase-buffer)
          (insert text)
          (should-error (gemini-companion-compose-submit) :type 'user-error)
          (should (equal text (buffer-string))))
        (should (equal 2 (length asked)))
        (erase-buffer)
        (insert "/copy")
        (pcase-dolist (`(,title . ,shown)
                       '(("✦  Working…" . "working  C-c C-c submit")
                         ("✋  Action Required" . "is waiting for an answer")))
          (gemini-companion-state-set-title process title)
          (should (string-match-p shown (eval (cadr header-line-format) t))))
        (should-error (gemini-companion-compose-submit) :type 'user-error)
        (should (equal "/copy" (buffer-string)))
        ;; Another CLI may take its place.
        (pcase-dolist (`(,sessions . ,shown)
                       `((nil . "Not connected .*/command")
                         ((,(gemini-companion-session-make
                             :id "2" :client "qwen" :directory directory))
                          . "Qwen")
                         ((,session) . "Gemini")))
          (gemini-companion-test-set-sessions sessions)
          (should (string-match-p shown (eval (cadr header-line-format) t))))
        (gemini-companion-state-set-title process "◇  Ready")
        (gemini-companion-compose-submit t)
        (should (equal 2 (length asked)))
        ;; The CLI would find a b.txt.
        (gemini-companion-compose)
        (insert "Is @b in @c, \\@b, @d/[e]?")
        (gemini-companion-compose-submit t)
        (gemini-companion-test-eventually
          (string-search "Is \\@b in @c, \\@b, \\@d/[e]?"
                         (gemini-companion-test-text terminal)))
        (should (equal "Is @b in @c, \\@b, @d/[e]?"
                       (car gemini-companion-compose-history)))))))

(ert-deftest gemini-companion-compose-completes-files-and-commands ()
  (pcase-dolist (`(,client ,name ,text)
                 '(("gemini" ".gemini/commands/git/fix.toml"
                    "description = \"Don't\"\nprompt = \"x\"\n")
                   ("qwen" ".qwen/commands/git/fix.md"
                    "---\ndescription: Don't\n---\nx\n")))
    (gemini-companion-compose-test-with client
      (setenv "QWEN_HOME" "/no/qh")
      (gemini-companion-test-write name text)
      (write-region "" nil "d.txt" nil 'silent)
      (gemini-companion-compose)
      (insert "See @d")
      (should (equal '("d.txt")
                     (all-completions
                      "d" (nth 2 (funcall (car completion-at-point-functions))))))
      (erase-buffer)
      (insert "(见@a\\ b")
      (call-interactively (key-binding (kbd "C-M-i")))
      (should (equal "(见@a\\ b.txt" (string-trim-right (buffer-string))))
      (erase-buffer)
      (insert "/git:f")
      (let* ((table (nth 2 (funcall (car completion-at-point-functions))))
             (annotate (completion-metadata-get (completion-metadata "" table nil)
                                                'annotation-function)))
        (should (equal "  Don't"
                       (funcall annotate (car (all-completions "git" table))))))
      (completion-at-point)
      (should (equal "/git:fix" (string-trim-right (buffer-string))))
      (erase-buffer)
      (insert "not /cop")
      (should-not (funcall (car completion-at-point-functions))))))

(ert-deftest gemini-companion-compose-completes-by-tab-after-at-and-slash ()
  (gemini-companion-compose-test-with "gemini"
    (gemini-companion-test-write "src/billing.py" "")
    (gemini-companion-test-write "src/billing-rules.py" "")
    (gemini-companion-test-write ".gemini/commands/rewind.toml" "prompt = \"x\"\n")
    (gemini-companion-compose)
    (pcase-dolist (`(,typed . ,completed)
                   '(("See @src/billing." . "See @src/billing.py")
                     ("@src/billing" . "@src/billing")
                     ("@src/billing-" . "@src/billing-rules.py")
                     ("@a" . "@a\\ b.txt")
                     ("@a\\ " . "@a\\ b.txt")
                     ("/rew" . "/rewind")))
      (erase-buffer)
      (insert typed)
      (call-interactively (key-binding (kbd "TAB")))
      (should (equal completed (string-trim-right (buffer-string)))))
    ;; Elsewhere, the key is that of text.
    (completion-in-region-mode -1)
    (erase-buffer)
    (insert "plain")
    (should-not (eq 'completion-at-point (key-binding (kbd "TAB"))))))

(ert-deftest gemini-companion-compose-completes-what-names-begin-with ()
  (gemini-companion-compose-test-with "gemini"
    ;; One more name has the text in its middle.
    (dolist (name '("src/bill.py" "src/bills.py" "old-src/bill.py"))
      (gemini-companion-test-write name ""))
    (gemini-companion-compose)
    (insert "See @src/b")
    (completion-at-point)
    (should (equal "See @src/bill" (buffer-string)))
    (should (eq 'project-file
                (completion-metadata-get
                 (completion-metadata
                  "" (nth 2 (funcall (car completion-at-point-functions))) nil)
                 'category)))))

(ert-deftest gemini-companion-compose-shows-which-names-are-files ()
  (gemini-companion-compose-test-with "gemini"
    (gemini-companion-test-write "src/bill.py" "")
    (gemini-companion-compose)
    (font-lock-mode)
    (pcase-dolist
        (`(,text . ,marked)
         '(("See @src/bill.py and @c" "@src/bill.py" "@c")
           ("See @a\\ b.txt." "@a\\ b.txt")
           ("@src/bil.py @src/bill.py @x/y" "@src/bill.py")
           ;; These are quoted, or no names of files.
           ("@property of me@example.org, \\@a.py")))
      (erase-buffer)
      (insert text)
      (font-lock-ensure)
      (let ((found nil))
        (goto-char (point-min))
        (while (< (point) (point-max))
          (let ((end (next-single-property-change (point) 'face nil (point-max))))
            (when (memq 'gemini-companion-compose-file
                        (ensure-list (get-text-property (point) 'face)))
              (push (buffer-substring-no-properties (point) end) found))
            (goto-char end)))
        (should (equal marked (nreverse found)))))))

(ert-deftest gemini-companion-compose-completes-a-name-as-it-is-sent ()
  (pcase-dolist (`(,client . ,completed)
                 '(("gemini" . "See [id]/p.ts\nThe text of [id]/p.ts:
```ts\none\n```")
                   ("qwen" . "See @\\[id\\]/p.ts")
                   ("copilot" . "See @[id]/p.ts")))
    (gemini-companion-compose-test-with client
      (gemini-companion-test-write "[id]/p.ts" "one\n")
      (gemini-companion-compose)
      (insert "See @" (if (equal client "qwen") "\\[i" "[i"))
      (completion-at-point)
      (should (equal completed (string-trim-right (buffer-string)))))))

(ert-deftest gemini-companion-compose-attaches-what-is-at-point-elsewhere ()
  (dolist (client '("gemini" nil))
    (gemini-companion-compose-test-with client
      (with-current-buffer (find-file-noselect "a b.txt")
        (insert "one\ntwo")
        (let ((inhibit-message t))
          (save-buffer)))
      (gemini-companion-compose)
      (insert "Look:")
      (gemini-companion-compose-attach "a b.txt")
      (should (equal "Look:\n@a\\ b.txt (line 2)\n" (buffer-string)))
      (when client
        (switch-to-buffer "a b.txt")
        (let ((current-prefix-arg '(4)))
          (call-interactively #'gemini-companion-send))
        (should (equal "Look:\n@a\\ b.txt (line 2)\n@a\\ b.txt (line 2)\n"
                       (buffer-string)))))))

(defconst gemini-companion-compose-test-png "\211PNG\r\n\32\n"
  "The first bytes of an image.")

(defun gemini-companion-compose-test-yank (data)
  "Yank DATA as an image into the draft."
  (cl-letf (((symbol-function 'image-type-available-p) #'always)
            ((symbol-function 'gui-get-selection)
             (lambda (_ type)
               (if (eq type 'TARGETS) [TEXT image/png] data))))
    (call-interactively 'yank-media)))

(ert-deftest gemini-companion-compose-inserts-no-reference-to-what-is-no-image ()
  (gemini-companion-compose-test-with "gemini"
    (gemini-companion-compose)
    (let ((large (concat gemini-companion-compose-test-png
                         (make-string 20000000 0))))
      (pcase-dolist (`(,data . ,said)
                     `(("a text, not an image" . "is no image") ("" . "is no image")
                       (,(make-string 40 0) . "is no image")
                       (,large . "is too large")))
        (dolist (insert
                 `(,@(and (fboundp 'yank-media)
                          (list #'gemini-companion-compose-test-yank))
                   ,(lambda (data)
                      (let ((file (make-temp-file "x" nil ".png" data)))
                        (unwind-protect
                            (funcall (cdr (assoc "^file:" dnd-protocol-alist))
                                     (concat "file://" file) 'copy)
                          (delete-file file))))))
          (should (string-search said (cadr (should-error (funcall insert data)
                                                          :type 'user-error))))
          (should (equal "" (buffer-string))))))))

(ert-deftest gemini-companion-compose-inserts-references-to-images ()
  (skip-unless (fboundp 'yank-media))
  (gemini-companion-compose-test-with "gemini"
    (gemini-companion-test-write
     "home/.gemini/projects.json"
     (format "{\"projects\": {\"%s\": \"p-1\"}}" (directory-file-name directory)))
    (make-directory "home/.gemini/tmp/p-1" 'parents)
    (gemini-companion-compose)
    (insert "See")
    (funcall (cdr (assoc "^file:" dnd-protocol-alist))
             (concat "file://" (expand-file-name "c")) 'copy)
    (should (equal "See @c " (buffer-string)))
    ;; There is no copy of one that is not shared, even if only its link is not.
    (let ((outside (expand-file-name ".env.png" (make-temp-file "x" t))))
      (write-region "hush" nil (expand-file-name "../x.png" outside) nil 'silent)
      (make-symbolic-link "x.png" outside)
      (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
        (should-error (funcall (cdr (assoc "^file:" dnd-protocol-alist))
                               (concat "file://" outside) 'copy)
                      :type 'user-error))
      (delete-directory (file-name-directory outside) t))
    (gemini-companion-compose-test-yank gemini-companion-compose-test-png)
    (should (string-match " @\\(/.+[.]png\\) \\'" (buffer-string)))
    (let ((file (string-replace "\\" "" (match-string 1 (buffer-string)))))
      (should (equal #o600 (file-modes file)))
      (should (string-prefix-p (concat home ".gemini/tmp/p-1/images/") file))
      (should (equal gemini-companion-compose-test-png (gemini-companion-text-bytes file)))
      ;; It goes with the CLI.
      (gemini-companion-test-set-sessions nil)
      (should-not (file-exists-p file)))))

(ert-deftest gemini-companion-compose-knows-a-cli-without-a-place-for-images ()
  (gemini-companion-compose-test-with "copilot"
    (setenv "COPILOT_HOME" "/no/ch")
    (gemini-companion-compose)
    (let* ((outside (make-temp-file "x" nil ".png" gemini-companion-compose-test-png))
           (drop (lambda () (funcall (cdr (assoc "^file:" dnd-protocol-alist))
                                     (concat "file://" outside) 'copy))))
      (funcall drop)
      (should (string-prefix-p "@" (buffer-string)))
      (should (directory-files "ours/prompts" nil "\\`image-.*png"))
      (delete-file outside))))

(ert-deftest gemini-companion-compose-copies-no-image-for-a-host ()
  (gemini-companion-test-needs-add-on 'remote)
  (gemini-companion-compose-test-with "copilot"
    (gemini-companion-compose)
    (let ((outside (make-temp-file "x" nil ".png" gemini-companion-compose-test-png))
          (gemini-companion-remote-directories
           `(("/ssh:far:" ("/there" . ,directory)))))
      (gemini-companion-test-set-sessions
       (list (gemini-companion-session-make
              :id "far" :client "gemini" :remote "/ssh:far:")))
      (should (string-search
               "on ssh:far"
               (cadr (should-error
                      (funcall (cdr (assoc "^file:" dnd-protocol-alist))
                               (concat "file://" outside) 'copy)))))
      (delete-file outside))))

(ert-deftest gemini-companion-compose-starts-a-cli-with-the-prompt ()
  (gemini-companion-compose-test-with nil
    (let (started)
      (cl-letf (((symbol-function 'y-or-n-p) #'always)
                ((symbol-function 'gemini-companion-run)
                 (lambda () (setq started default-directory))))
        (gemini-companion-compose)
        (insert "Begin")
        (gemini-companion-compose-submit)
        ;; In the draft of another project, there is none to withdraw.
        (make-directory (expand-file-name "other" directory))
        (save-window-excursion
          (let* ((default-directory (expand-file-name "other/" directory))
                 (project-find-functions
                  (list (lambda (_) (cons 'transient default-directory)))))
            (gemini-companion-compose)
            (should-not (string-search "queued" (eval (cadr header-line-format) t)))
            (should-error (gemini-companion-compose-withdraw) :type 'user-error)))
        ;; It can be withdrawn before there is a CLI.
        (gemini-companion-compose)
        (should (string-search "Not connected; 1 queued  C-c C-w withdraw"
                               (eval (cadr header-line-format) t)))
        (gemini-companion-compose-withdraw)
        (should (equal "Begin" (buffer-string)))
        (gemini-companion-compose-submit))
      (should (equal directory started))
      ;; One that starts again when its directory is trusted.
      (gemini-companion-test-set-sessions
       (list (gemini-companion-session-make
              :id "0" :client "gemini" :directory directory)))
      (gemini-companion-test-run-timers)
      (should-not (equal "Begin" (car kill-ring)))
      (let ((process (with-current-buffer terminal
                       (gemini-companion-test-start-cat))))
        (gemini-companion-test-set-sessions
         (list (gemini-companion-session-make
                :id "1" :client "gemini" :directory directory
                :pid (process-id process))))
        (gemini-companion-state-set-title process "◇  Ready"))
      ;; `cat' repeats what is submitted.
      (gemini-companion-test-eventually
        (string-match-p "Begin[^z-a]*Begin"
                        (gemini-companion-test-text terminal))))))

(ert-deftest gemini-companion-compose-draft-outlives-the-mode ()
  ;; Load what the first start loads.
  (gemini-companion-test-with-mode '())
  (let ((before (gemini-companion-test-hooks))
        (things (gemini-companion-test-things)))
    (gemini-companion-test-with-mode '((".git" ""))
      (let ((gemini-companion-install-directory (expand-file-name "ours/")))
        (find-file ".")
        (gemini-companion-compose)
        (insert "A prompt")
        (should (eq 'gemini-companion-compose-submit (key-binding (kbd "C-c C-c"))))
        (gemini-companion-mode -1)
        (gemini-companion-test-eventually
          (not (or (gemini-companion-test-processes)
                   (gemini-companion-test-traces))))
        (should-not (string-search "(gemini-companion-"
                                   (format "%S" (buffer-local-variables))))
        ;; The draft is still there, and has its keys again.
        (should (equal "A prompt" (buffer-string)))
        (gemini-companion-compose)
        (should (equal "A prompt" (buffer-string)))
        (should (eq 'gemini-companion-compose-submit (key-binding (kbd "C-c C-c"))))
        (kill-buffer)
        (gemini-companion-compose)
        (should (equal "A prompt" (buffer-string)))
        (kill-buffer)))
    (gemini-companion-test-leaves-only things)
    (should (equal before (gemini-companion-test-hooks)))))

;;; gemini-companion-compose-test.el ends here
