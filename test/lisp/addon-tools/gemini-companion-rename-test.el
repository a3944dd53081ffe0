;;; gemini-companion-rename-test.el --- Tests of renames by a language server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-auto)
(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-decision)
(require 'gemini-companion-errors-test-helper)
(require 'gemini-companion-overview)
(require 'gemini-companion-permission)
(require 'gemini-companion-rename)

(declare-function eglot-current-server "eglot")

;;;; Texts

(ert-deftest gemini-companion-rename-takes-only-names ()
  (dolist (new '("uno" "_x1" "$el" "empty?" "save!" "\u00e4ndern"))
    (gemini-companion-rename--check-names "one" new))
  (dolist (new '("" "1x" "a b" "a-b" "a\n" "a.b" "one"))
    (ert-info (new)
      (should (gemini-companion-test-refusal
                (gemini-companion-rename--check-names "one" new))))))

(ert-deftest gemini-companion-rename-knows-a-text-that-differs-only-by-a-name ()
  (pcase-dolist (`(,after . ,only)
                 '(("uno(uno)" . t) ("one(uno)" . t) ("uno (uno)") ("uno(two)")))
    (ert-info (after)
      (should (eq only (gemini-companion-rename--only-p "one(one)" after
                                                       "one" "uno"))))))

(ert-deftest gemini-companion-rename-counts-whole-words-and-lines ()
  (should (= 3 (gemini-companion-rename--count "one" "one, (one) one_ $one\nx.one")))
  (should (equal '(2 4) (gemini-companion-rename--lines "a\nb\nc\nd" "a\nx\nc\ny"))))

;;;; Reviews

(defvar gemini-companion-rename-test-answers nil
  "The answers of a test, the last one first.")

(defvar gemini-companion-rename-test-client "gemini"
  "The CLI whose model asks.")

(defvar gemini-companion-rename-test-line nil
  "The line that a model has named, or nil.")

(defmacro gemini-companion-rename-test-with (flags files &rest body)
  "Run BODY in a project with FILES, and a language server with FLAGS."
  (declare (indent 2) (debug t))
  `(gemini-companion-test-in-project (apply #'gemini-companion-test-server ,flags)
       ,files
     (let ((gemini-companion-words-seconds 3600)
           (gemini-companion-rename--pause 0)
           (gemini-companion-errors-timeout 0.5)
           (gemini-companion-rename-test-answers nil)
           (parts '(edit changes permission rename)))
       (mapc #'gemini-companion-part-start parts)
       (unwind-protect
           (progn ,@body)
         (mapc #'gemini-companion-part-stop (reverse parts))
         (gemini-companion-part-stop 'decision)
         (dolist (buffer (buffer-list))
           (when (and (buffer-file-name buffer)
                      (string-prefix-p directory (buffer-file-name buffer)))
             (with-current-buffer buffer
               (set-buffer-modified-p nil))))))))

(defun gemini-companion-rename-test-begin (&optional new old)
  "Ask for the rename of OLD in a.py to NEW."
  (setq gemini-companion-rename-test-answers nil)
  (gemini-companion-rename-ask
   (list :id "id" :path (expand-file-name "a.py") :symbol (or old "one")
         :line gemini-companion-rename-test-line :new (or new "uno")
         :client gemini-companion-rename-test-client :pids (list nil (emacs-pid))
         :directory default-directory)
   (lambda (facts) (push facts gemini-companion-rename-test-answers))))

(defun gemini-companion-rename-test-ask (&rest arguments)
  "Ask for the rename of ARGUMENTS; return the rename, or the answer."
  (gemini-companion-test-demoted
    (apply #'gemini-companion-rename-test-begin arguments)
    (gemini-companion-test-wait
     (lambda ()
       (or (gemini-companion-requests)
           gemini-companion-rename-test-answers))))
  (or (car (gemini-companion-requests))
      (car gemini-companion-rename-test-answers)))

(defun gemini-companion-rename-test-problem (text &rest arguments)
  "Return non-nil if a rename, of ARGUMENTS, is refused because of TEXT."
  (let ((answer (apply #'gemini-companion-rename-test-ask arguments)))
    (should-not (gemini-companion-rename-p answer))
    (ert-info ((format "%S" answer))
      (should (string-search text (plist-get answer :problem))))))

(defun gemini-companion-rename-test-answer (answer)
  "Give ANSWER to the open rename; return the message of a refusal, or nil."
  (condition-case problem
      (ignore (gemini-companion-request-answer (car (gemini-companion-requests))
                                               answer))
    (user-error (cadr problem))))

(defun gemini-companion-rename-test-unsaid ()
  "Return what is inserted of the open rename in the overview."
  (with-temp-buffer
    (gemini-companion-request-insert (car (gemini-companion-requests)))
    (buffer-substring-no-properties (point-min) (point-max))))

(defun gemini-companion-rename-test-text (file)
  "Return the bytes of FILE in the project."
  (gemini-companion-text-bytes (expand-file-name file)))

(defconst gemini-companion-rename-test-files
  '(("a.py" "def one():\n    pass\n") ("b.py" "from a import one\n\n\n\none()\n")
    ("c.py" "x = 1\n"))
  "Files in which two are renamed.")

(ert-deftest gemini-companion-rename-is-one-request-and-is-written-as-one ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (let ((rename (gemini-companion-rename-test-ask)))
      (should (equal (list rename) (gemini-companion-requests)))
      (should-not (gemini-companion-edits))
      (should (string-match-p "\\`asks  rename one .+ uno, 3 places in 2 files\\'"
                              (gemini-companion-request-label rename)))
      (should (equal "No other file has one\n" (gemini-companion-rename-test-unsaid)))
      (should-not (gemini-companion-rename-test-answer 'allow))
      (should-not (gemini-companion-requests))
      (should (equal "def uno():\n    pass\n"
                     (gemini-companion-rename-test-text "a.py")))
      (should (equal "from a import uno\n\n\n\nuno()\n"
                     (gemini-companion-rename-test-text "b.py")))
      (should (equal (list (list :files `((,(expand-file-name "a.py") (1) 0)
                                          (,(expand-file-name "b.py") (1 5) 0))
                                 :elsewhere nil))
                     gemini-companion-rename-test-answers))
      ;; Nothing is left to review.
      (should (equal '(accepted accepted)
                     (mapcar #'gemini-companion-edit-status (gemini-companion-edits))))
      (should-not (seq-some #'gemini-companion-changes-file-known
                            (gemini-companion-changes-files 'all))))))

(ert-deftest gemini-companion-rename-shows-all-that-it-writes ()
  (gemini-companion-rename-test-with nil
      `(("a.py" "def one():\n\treturn \"\u202e\"\n")
        ("b.py" ,(concat (apply #'concat (make-list 50 "x\n")) "one()\none")))
    (let ((rename (gemini-companion-rename-test-ask)))
      (save-window-excursion
        (gemini-companion-request-show rename)
        (should (derived-mode-p 'gemini-companion-rename-mode))
        (dolist (line '("rename one .* uno, 3 places in 2 files" "No other file has one"
                        "File: a\\.py" "-def one():" "\\+def uno():"
                        " \treturn \"\\\\u202E\"" "File: b\\.py" "-one()" "-one"
                        "\\+uno()" "\\+uno" "\\\\ No newline.*" "CLI: .*"))
          (ert-info (line)
            (should (save-excursion
                      (goto-char (point-min))
                      (re-search-forward (concat "^" line "$") nil t)))))
        ;; No key answers what was not on the screen, and no CLI asks in a terminal.
        (should (eq 'gemini-companion-permission-allow (key-binding (kbd "C-c C-c"))))
        (should (string-search "not displayed" (gemini-companion-test-refusal
                                                 (gemini-companion-permission-allow))))
        (should-not (eq 'gemini-companion-permission-answer-there
                        (key-binding (kbd "RET"))))
        (should (string-search "answer here" (gemini-companion-test-refusal
                                               (gemini-companion-permission-answer-there))))
        (should (memq rename (gemini-companion-requests)))
        (gemini-companion-rename-test-answer 'refuse)))))

(defmacro gemini-companion-rename-test-in-overview (&rest body)
  "Run BODY in the overview."
  (declare (indent 0) (debug t))
  `(save-window-excursion
     (unwind-protect
         (cl-letf ((gemini-companion-overview-busy-seconds 0)
                   ((symbol-function 'gemini-companion-overview-draw-width)
                    (lambda () 120)))
           (gemini-companion-list)
           ,@body)
       (gemini-companion-part-stop 'overview))))

(defun gemini-companion-rename-test-go (regexp)
  "Go to the beginning of the first line of the buffer that matches REGEXP."
  (goto-char (point-min))
  (re-search-forward regexp)
  (beginning-of-line))

(ert-deftest gemini-companion-rename-is-shown-from-the-overview ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (let ((rename (gemini-companion-rename-test-ask)))
      (gemini-companion-rename-test-in-overview
        (gemini-companion-rename-test-go "rename one .*3 places in 2 files")
        (should (string-search "No other file has one" (buffer-string)))
        (gemini-companion-overview-accept)
        (should (eq rename gemini-companion-permission-here)))
      (should (memq rename (gemini-companion-requests)))
      (should-not gemini-companion-rename-test-answers))))

(defmacro gemini-companion-rename-test-failing (fails &rest body)
  "Evaluate BODY, where writes fail if FAILS, given a file and a text, is true."
  (declare (indent 1) (debug t))
  `(let ((write (symbol-function 'gemini-companion-text-rewrite))
         (fails ,fails))
     (cl-letf (((symbol-function 'gemini-companion-text-rewrite)
                (lambda (file old text)
                  (if (funcall fails (file-name-nondirectory file) text)
                      (signal 'file-error '("No space left on device"))
                    (funcall write file old text)))))
       ,@body)))

;; Either file is undone with the other, or none is.
(ert-deftest gemini-companion-rename-is-undone-as-one ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (let ((asked nil))
      (gemini-companion-rename-test-ask)
      (gemini-companion-rename-test-answer 'allow)
      (gemini-companion-rename-test-in-overview
        (cl-flet ((undo ()
                    (gemini-companion-rename-test-go "accepted.*b\\.py")
                    (gemini-companion-overview-undo))
                  (renamed-p ()
                    (cl-loop for (file text) in gemini-companion-rename-test-files
                             always (equal (string-replace "one" "uno" text)
                                           (gemini-companion-rename-test-text file))))
                  (as-before-p ()
                    (cl-loop for (file text) in gemini-companion-rename-test-files
                             always (equal text
                                           (gemini-companion-rename-test-text file)))))
          ;; At once, by the keys of `undo' in the overview.
          (gemini-companion-decision-undo)
          (should (as-before-p))
          (gemini-companion-decision-redo)
          (should (renamed-p))
          (gemini-companion-rename-test-failing
              (lambda (file text) (and (equal file "b.py") (string-search "one" text)))
            (should (string-search "Not taken back: b.py cannot be written"
                                   (gemini-companion-test-refusal
                                     (gemini-companion-decision-undo)))))
          (should (renamed-p))
          ;; Later, on the row of a file.
          (gemini-companion-test-answering (lambda (question) (push question asked) t)
            (rename-file "a.py" "other.py")
            (should (string-search "deleted or renamed"
                                   (gemini-companion-test-refusal (undo))))
            (should-not asked)
            (should (string-search "uno" (gemini-companion-rename-test-text "b.py")))
            (rename-file "other.py" "a.py")
            (gemini-companion-rename-test-failing
                (lambda (file _) (equal file "b.py"))
              (should (string-search "Nothing undone: b.py cannot be written"
                                     (gemini-companion-test-refusal (undo)))))
            (should (renamed-p))
            (undo)
            (should (string-match-p "\\`Undo rename one .+ uno in 2 files\\?\\'"
                                    (car asked)))
            (should (as-before-p))
            (should (string-search "left to undo"
                                   (gemini-companion-test-refusal (undo))))
            (gemini-companion-decision-undo)
            (should (renamed-p))
            ;; The same once more, which the user has undone before.
            (gemini-companion-decision-undo)
            (gemini-companion-rename-test-ask)
            (gemini-companion-rename-test-answer 'allow)
            (should (equal '(accepted accepted)
                           (last (mapcar #'gemini-companion-changes-status
                                         (gemini-companion-edits))
                                 2)))
            (should (= 4 (length (gemini-companion-edits))))
            (gemini-companion-decision-undo)
            (should (as-before-p))))))))

;; As of many large files.
(ert-deftest gemini-companion-rename-is-undone-as-one-if-its-first-edits-are-forgotten ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (let ((gemini-companion-edit-most 1))
      (gemini-companion-rename-test-ask)
      (gemini-companion-rename-test-answer 'allow)
      (should (= 1 (length (gemini-companion-edits))))
      (gemini-companion-decision-undo)
      (pcase-dolist (`(,file ,text) gemini-companion-rename-test-files)
        (should (equal text (gemini-companion-rename-test-text file))))
      (gemini-companion-decision-redo)
      (pcase-dolist (`(,file ,text) gemini-companion-rename-test-files)
        (should (equal (string-replace "one" "uno" text)
                       (gemini-companion-rename-test-text file)))))))

;; Later edits push out the earlier ones, one by one.
(ert-deftest gemini-companion-rename-that-is-forgotten-in-part-is-not-undone-in-part ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (let ((gemini-companion-edit-most 2)
          (session (gemini-companion-rename-session
                    (gemini-companion-rename-test-ask))))
      (gemini-companion-rename-test-answer 'allow)
      (write-region "x = 2\n" nil "c.py" nil 'silent)
      (gemini-companion-reported-write session (expand-file-name "c.py")
                                       "x = 1\n" "x = 2\n")
      (gemini-companion-rename-test-in-overview
        (gemini-companion-rename-test-go "accepted.*b\\.py")
        (should (string-search "Other files of rename one"
                               (gemini-companion-test-refusal
                                 (gemini-companion-test-answering #'always
                                   (gemini-companion-overview-undo))))))
      (should (string-search "uno" (gemini-companion-rename-test-text "b.py"))))))

;; An edit of the user, in the same file and after the rename, stays.
(ert-deftest gemini-companion-rename-that-is-undone-leaves-what-the-user-wrote-since ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (gemini-companion-rename-test-ask)
    (gemini-companion-rename-test-answer 'allow)
    (with-current-buffer (find-file-noselect "b.py")
      (goto-char (point-max))
      (insert "mine\n")
      (let ((inhibit-message t))
        (save-buffer)))
    (gemini-companion-decision-undo)
    (should (equal "from a import one\n\n\n\none()\nmine\n"
                   (gemini-companion-rename-test-text "b.py")))
    (should (equal "def one():\n    pass\n"
                   (gemini-companion-rename-test-text "a.py")))))

;; From Emacs 30 on, Eglot offers all three, and clangd takes the last one.
(ert-deftest gemini-companion-rename-counts-columns-as-the-server-does ()
  (dolist (flags '(() ("utf-8") ("utf-32")))
    (ert-info ((format "%s" flags))
      (gemini-companion-rename-test-with flags
          '(("a.py" "s = \"\N{GRINNING FACE}\u00e4\u20ac\"; one(); one\n")
            ("b.py" "\N{GRINNING FACE}\N{GRINNING FACE}; one\n"))
        (gemini-companion-rename-test-ask)
        (gemini-companion-rename-test-answer 'allow)
        (should (equal "s = \"\N{GRINNING FACE}\u00e4\u20ac\"; uno(); uno\n"
                       (gemini-companion-text-read (expand-file-name "a.py"))))
        (should (equal "\N{GRINNING FACE}\N{GRINNING FACE}; uno\n"
                       (gemini-companion-text-read (expand-file-name "b.py"))))))))

;; Neither by a rule, nor by auto-accept.
(ert-deftest gemini-companion-rename-is-never-accepted-automatically ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (gemini-companion-part-start 'auto)
    (unwind-protect
        (let ((gemini-companion-review-rules '(("**" . never)))
              (rename (gemini-companion-rename-test-ask)))
          (gemini-companion-auto-accept (gemini-companion-rename-session rename))
          (gemini-companion-auto-offer 'all)
          (should (equal (list rename) (gemini-companion-requests)))
          (should (equal "def one():\n    pass\n"
                         (gemini-companion-rename-test-text "a.py"))))
      (gemini-companion-part-stop 'auto))))

;; Before the answer, and after the first file was written.
(ert-deftest gemini-companion-rename-of-a-file-that-changes-at-the-end-writes-none ()
  (dolist (moment '(answer write))
    (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
      (gemini-companion-rename-test-ask)
      (let ((write (symbol-function 'gemini-companion-text-rewrite))
            (change (lambda ()
                      (call-process "sh" nil nil nil "-c" "echo mine >b.py"))))
        (when (eq moment 'answer)
          (funcall change))
        (cl-letf (((symbol-function 'gemini-companion-text-rewrite)
                   (lambda (file old text)
                     (funcall write file old text)
                     (when (and (eq moment 'write)
                                (equal "a.py" (file-name-nondirectory file)))
                       (funcall change)))))
          (should (string-prefix-p "Nothing was renamed"
                                   (gemini-companion-rename-test-answer 'allow)))))
      (should-not (gemini-companion-requests))
      (should-not (gemini-companion-edits))
      (should (equal '((:refused "changed")) gemini-companion-rename-test-answers))
      (should (equal "def one():\n    pass\n"
                     (gemini-companion-rename-test-text "a.py")))
      (should (equal "mine\n" (gemini-companion-rename-test-text "b.py"))))))

;; The user may save them, or refuse.
(ert-deftest gemini-companion-rename-waits-for-unsaved-changes ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (gemini-companion-rename-test-ask)
    (with-current-buffer (find-file-noselect "b.py")
      (goto-char (point-max))
      (insert "mine\n"))
    (should (equal "Nothing was renamed: b.py has unsaved changes in Emacs"
                   (gemini-companion-rename-test-answer 'allow)))
    (should (gemini-companion-requests))
    (pcase-dolist (`(,file ,text) gemini-companion-rename-test-files)
      (should (equal text (gemini-companion-rename-test-text file))))
    (with-current-buffer "b.py"
      (should (string-suffix-p "mine\n" (buffer-string)))
      (revert-buffer t t))
    (should-not (gemini-companion-rename-test-answer 'allow))
    (should (string-search "uno" (gemini-companion-rename-test-text "b.py")))))

(ert-deftest gemini-companion-rename-that-is-refused-writes-nothing ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (pcase-dolist (`(,end . ,facts)
                   `((,(lambda (_) (gemini-companion-rename-test-answer 'refuse))
                      "refused" :reason nil)
                     (,(lambda (_)
                         (gemini-companion-rename-test-answer '(refuse . "why")))
                      "refused" :reason "why")
                     (,(lambda (_) (gemini-companion-server-receive 'withdrawn "id" 'ended))
                      "ended")
                     (,(lambda (_)
                         (gemini-companion-server-receive 'withdrawn "id" 'returned))
                      "ended")
                     (,#'gemini-companion-request-interrupted "ended")
                     (,(lambda (_) (run-hooks 'gemini-companion-context-pause-hook))
                      "ended")))
      (ert-info ((format "%S" facts))
        (funcall end (gemini-companion-rename-test-ask))
        (should (equal (cons :refused facts)
                       (car gemini-companion-rename-test-answers)))
        (should-not (gemini-companion-requests))
        (should (equal "def one():\n    pass\n"
                       (gemini-companion-rename-test-text "a.py")))))))

;; The language server may not have answered yet.
(ert-deftest gemini-companion-rename-ends-before-it-is-shown-if-no-one-waits ()
  (dolist (end (list (lambda () (run-hooks 'gemini-companion-server-crash-hook))
                     (lambda () (run-hooks 'gemini-companion-context-pause-hook))
                     (lambda () (gemini-companion-server-receive 'withdrawn "id" 'ended))
                     ;; The user has interrupted it, and typed the next prompt.
                     (lambda ()
                       (let ((session (gemini-companion-session-unconnected
                                       "gemini" (emacs-pid))))
                         (setf (gemini-companion-session-turn session)
                               (gemini-companion-turn-make))
                         (run-hook-with-args 'gemini-companion-state-functions
                                             session 'working)))))
    (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
      (gemini-companion-rename-test-begin)
      (should-not gemini-companion-rename-test-answers)
      (funcall end)
      (should (equal '((:refused "ended")) gemini-companion-rename-test-answers))
      (should (string-search "due" (gemini-companion-request-label
                                    (gemini-companion-rename-test-ask "due")))))))

;; A slow hook of Qwen Code reports the end of the turn before when the rename has begun.
(ert-deftest gemini-companion-rename-ends-with-the-turn-but-that-of-qwen ()
  (pcase-dolist (`(,client . ,answers) '(("gemini" (:refused "ended")) ("qwen")))
    (let ((gemini-companion-rename-test-client client))
      (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
        (gemini-companion-rename-test-begin)
        (let ((session (gemini-companion-session-unconnected client (emacs-pid))))
          (cl-letf (((symbol-function 'gemini-companion-session-state)
                     (lambda (_session) 'ready))
                    ((symbol-function 'run-at-time)
                     (lambda (_time _repeat function &rest arguments)
                       (apply function arguments))))
            (run-hook-with-args 'gemini-companion-state-functions session 'ready)))
        (should (equal answers gemini-companion-rename-test-answers))))))

(ert-deftest gemini-companion-rename-tells-nothing-of-what-was-excluded-since ()
  (gemini-companion-rename-test-with nil
      (append gemini-companion-rename-test-files '(("read.me" "one\n")))
    (gemini-companion-rename-test-ask)
    (write-region "b.py\n" nil ".geminiignore" nil 'silent)
    (gemini-companion-cache-refresh)
    (should (equal "Nothing was renamed: b.py is not shared with CLIs any more"
                   (gemini-companion-rename-test-answer 'allow)))
    (pcase-dolist (`(,file ,text) gemini-companion-rename-test-files)
      (should (equal text (gemini-companion-rename-test-text file))))
    (write-region "read.me\n" nil ".geminiignore" nil 'silent)
    (gemini-companion-cache-refresh)
    (should-not (gemini-companion-rename-test-answer 'allow))
    (should (string-search "uno" (gemini-companion-rename-test-text "b.py")))
    (should-not (string-search
                 "read.me" (format "%S" gemini-companion-rename-test-answers)))))

(ert-deftest gemini-companion-rename-writes-all-files-or-none ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (gemini-companion-rename-test-ask)
    (gemini-companion-rename-test-failing
        (lambda (file text)
          (and (equal file "b.py") (string-search "uno" text)))
      (gemini-companion-rename-test-answer 'allow))
    (should (equal '((:left nil)) gemini-companion-rename-test-answers))
    (pcase-dolist (`(,file ,text) gemini-companion-rename-test-files)
      (should (equal text (gemini-companion-rename-test-text file))))
    (should-not (gemini-companion-edits))
    ;; That fails as well.
    (gemini-companion-rename-test-ask)
    (gemini-companion-rename-test-failing
        (lambda (file text)
          (or (equal file "b.py") (not (string-search "uno" text))))
      (gemini-companion-rename-test-answer 'allow))
    (should (equal `((:left (,(expand-file-name "a.py"))))
                   gemini-companion-rename-test-answers))
    ;; What is left can be undone.
    (should (equal "def uno():\n    pass\n" (gemini-companion-rename-test-text "a.py")))
    (gemini-companion-decision-undo)
    (should (equal "def one():\n    pass\n" (gemini-companion-rename-test-text "a.py")))))

;; A file longer than a page needs another one for its new text.
(ert-deftest gemini-companion-rename-writes-nothing-if-the-disk-is-full ()
  (let ((disk (file-name-as-directory
               (file-truename (make-temp-file "gemini-companion-" t))))
        (long (concat "one # " (make-string 3500 ?x) "\n"
                      (apply #'concat (make-list 120 "one\n")))))
    (skip-unless (eql 0 (ignore-errors
                          (call-process "mount" nil nil nil "-t" "tmpfs"
                                        "-o" "size=1m" "tmpfs" disk))))
    (unwind-protect
        (cl-letf* ((make (symbol-function 'make-temp-file))
                   ((symbol-function 'make-temp-file)
                    (lambda (prefix &optional dir &rest more)
                      ;; The project is on that disk.
                      (apply make (if (equal prefix "gemini-companion")
                                      (concat disk prefix)
                                    prefix)
                             dir more))))
          (gemini-companion-rename-test-with nil
              `(("a.py" "one\n") ("b.py" ,long))
            (gemini-companion-rename-test-ask "another_name")
            (call-process "sh" nil nil nil "-c"
                          (format "cat /dev/zero > %sfiller" disk))
            (let ((shown (gemini-companion-rename-test-answer 'allow)))
              (should (string-search "Nothing was renamed" shown))
              (should (string-search "No space left" shown)))
            (should (equal '((:left nil)) gemini-companion-rename-test-answers))
            (should (equal "one\n" (gemini-companion-rename-test-text "a.py")))
            (should (equal long (gemini-companion-rename-test-text "b.py")))
            ;; With space, the same rename is written and undone, but not done again.
            (delete-file (expand-file-name "filler" disk))
            (gemini-companion-rename-test-ask "another_name")
            (gemini-companion-rename-test-answer 'allow)
            (should (string-prefix-p "another_name"
                                     (gemini-companion-rename-test-text "b.py")))
            (gemini-companion-decision-undo)
            (should (equal long (gemini-companion-rename-test-text "b.py")))
            (call-process "sh" nil nil nil "-c"
                          (format "cat /dev/zero > %sfiller" disk))
            (should (string-search "No space left"
                                   (gemini-companion-test-refusal
                                     (gemini-companion-decision-redo))))
            (should (equal "one\n" (gemini-companion-rename-test-text "a.py")))
            (should (equal long (gemini-companion-rename-test-text "b.py")))))
      (call-process "umount" nil nil nil "-l" disk)
      (delete-directory disk))))

;; A superuser may write any file but one with this attribute.
(ert-deftest gemini-companion-rename-writes-nothing-if-a-permission-is-lost ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (cl-flet ((lose (on)
                (if (zerop (user-uid))
                    (eql 0 (ignore-errors
                             (call-process "chattr" nil nil nil (if on "+i" "-i")
                                           (expand-file-name "b.py"))))
                  (set-file-modes "b.py" (if on #o400 #o600))
                  t)))
      (unless (lose t)
        (ert-skip "No file can be made read-only"))
      (lose nil)
      (unwind-protect
          (cl-letf* ((write (symbol-function 'gemini-companion-text-rewrite))
                     ((symbol-function 'gemini-companion-text-rewrite)
                      (lambda (file old text)
                        ;; All were checked before the first was written.
                        (when (equal "b.py" (file-name-nondirectory file))
                          (lose t))
                        (funcall write file old text))))
            (gemini-companion-rename-test-ask)
            (should (string-match-p
                     "Nothing was renamed: .*\\(?:denied\\|not permitted\\)"
                     (gemini-companion-rename-test-answer 'allow)))
            (should (equal '((:left nil)) gemini-companion-rename-test-answers)))
        (lose nil))
      (pcase-dolist (`(,file ,text) gemini-companion-rename-test-files)
        (should (equal text (gemini-companion-rename-test-text file)))))))

(ert-deftest gemini-companion-rename-keeps-line-ends-and-the-byte-order-mark ()
  (gemini-companion-rename-test-with nil '(("a.py" "one\n") ("b.py" "") ("d.py" ""))
    (let ((coding-system-for-write 'no-conversion))
      (write-region "\357\273\277one\r\n\303\244 one\r\n" nil "b.py" nil 'silent))
    (gemini-companion-rename-test-ask)
    (gemini-companion-rename-test-answer 'allow)
    (should (equal "\357\273\277uno\r\n\303\244 uno\r\n"
                   (gemini-companion-rename-test-text "b.py")))
    (let ((coding-system-for-write 'no-conversion))
      (write-region "\357\273\277x\r\nuno\r\n" nil "b.py" nil 'silent))
    ;; The text of Gemini CLI has the mark, the text of Qwen Code has not.
    (pcase-dolist (`(,gemini-companion-rename-test-client ,old ,new)
                   '(("gemini" "uno" "one") ("qwen" "one" "uno")))
      (gemini-companion-rename-test-ask new old)
      (gemini-companion-rename-test-answer 'allow)
      (should (equal '((2) 0)
                     (cdr (nth 1 (plist-get (car gemini-companion-rename-test-answers)
                                            :files)))))
      (should (equal (format "\357\273\277x\r\n%s\r\n" new)
                     (gemini-companion-rename-test-text "b.py"))))
    (let ((coding-system-for-write 'no-conversion))
      (write-region "uno\runo\n" nil "d.py" nil 'silent))
    (gemini-companion-rename-test-problem "line ends" "one" "uno")
    (let ((coding-system-for-write 'no-conversion))
      (write-region "uno\r\n\303\244 uno\n" nil "d.py" nil 'silent))
    (gemini-companion-rename-test-ask "one" "uno")
    (gemini-companion-rename-test-answer 'allow)
    (should (equal "one\r\n\303\244 one\n"
                   (gemini-companion-rename-test-text "d.py")))))

(ert-deftest gemini-companion-rename-names-unshared-files-only-to-the-user ()
  (gemini-companion-rename-test-with nil
      '(("a.py" "one\n") ("secret.txt" "one\n") ("read.me" "one\n")
        (".geminiignore" "secret.txt\n"))
    (gemini-companion-rename-test-ask)
    (should (equal (concat "one stays in read.me\n"
                           "one stays in secret.txt, not shared with CLIs\n")
                   (gemini-companion-rename-test-unsaid)))
    (gemini-companion-rename-test-answer 'allow)
    (should-not (string-search
                 "secret" (format "%S" gemini-companion-rename-test-answers)))
    (delete-file "read.me")
    (write-region "uno\n" nil "secret.txt" nil 'silent)
    (gemini-companion-rename-test-ask "one" "uno")
    (should (equal "uno stays in secret.txt, not shared with CLIs\n"
                   (gemini-companion-rename-test-unsaid)))))

(ert-deftest gemini-companion-rename-changes-a-file-with-a-link-once ()
  (dolist (flags '(() ("whole")))
    (gemini-companion-rename-test-with flags gemini-companion-rename-test-files
      (make-symbolic-link "b.py" "a_link.py")
      (should (= 2 (length (gemini-companion-rename-files
                            (gemini-companion-rename-test-ask)))))
      (gemini-companion-rename-test-answer 'allow)
      (should (equal "from a import uno\n\n\n\nuno()\n"
                     (gemini-companion-rename-test-text "b.py")))
      (should (file-symlink-p "a_link.py")))))

;; On a nearby line may be another symbol with that name.
(ert-deftest gemini-companion-rename-takes-the-line-of-the-model-exactly ()
  (gemini-companion-rename-test-with nil
      '(("a.py" "# one\n\ndef f(one):\n    return one\n"))
    (let ((gemini-companion-rename-test-line 2))
      (gemini-companion-rename-test-problem "not on line 2 of"))
    (let ((gemini-companion-rename-test-line 9))
      (gemini-companion-rename-test-problem "its lines: 1, 3, 4"))
    (let ((gemini-companion-rename-test-line 3))
      (should (gemini-companion-rename-p (gemini-companion-rename-test-ask)))))
  (gemini-companion-rename-test-with '("none")
      '(("a.py" "# one\n\ndef f(one):\n    return one\n")
        ("b.py" "two\n"))
    (gemini-companion-rename-test-problem
     "nothing at one on line 1; ask with another one of its lines: 3, 4")
    (let ((gemini-companion-rename-test-line 3))
      (gemini-companion-rename-test-problem "lines: 1, 4"))
    (gemini-companion-rename-test-problem "nothing at f on line 3; ask the user"
                                          nil "f")))

(ert-deftest gemini-companion-rename-names-what-a-server-does-not-say ()
  (gemini-companion-rename-test-with '("part" "whole")
      '(("a.py" "one # note\n") ("b.py" "one\nuno\n") ("left.py" "one\n")
        ("read.me" "`one`\n") (".env.py" "TOP = 1\n"))
    (let ((rename (gemini-companion-rename-test-ask)))
      (should (equal "uno is already in b.py\none stays in left.py, read.me\n"
                     (gemini-companion-rename-test-unsaid)))
      (should (equal '("a.py  changes more than the name" "b.py")
                     (with-temp-buffer
                       (gemini-companion-permission-insert rename)
                       (goto-char (point-min))
                       (cl-loop while (re-search-forward "^File: \\(.*\\)$" nil t)
                                collect (match-string-no-properties 1))))))))

(ert-deftest gemini-companion-rename-refuses-what-no-user-could-judge ()
  (gemini-companion-rename-test-with nil
      (append gemini-companion-rename-test-files '((".env.py" "x\n")))
    (gemini-companion-rename-test-problem "Cannot rename to" "1 x")
    (gemini-companion-rename-test-problem "is not in" "uno" "nothing")
    (with-current-buffer (find-file-noselect "b.py")
      (goto-char (point-max))
      (insert "# x\n"))
    (gemini-companion-rename-test-problem "unsaved changes")
    (with-current-buffer "b.py"
      (set-buffer-modified-p nil)
      (kill-buffer))
    (write-region "one\n" nil ".env.py" nil 'silent)
    (gemini-companion-rename-test-problem "does not share")
    (delete-file ".env.py")
    (set-file-modes "b.py" #o400)
    (unless (file-writable-p "b.py")
      (gemini-companion-rename-test-problem "read-only"))
    (set-file-modes "b.py" #o600)
    (gemini-companion-rename-test-ask)
    (let ((rename (car (gemini-companion-requests))))
      (gemini-companion-test-demoted
        (gemini-companion-rename-ask
         (list :path (expand-file-name "a.py") :symbol "one" :new "due")
         (lambda (facts) (push facts gemini-companion-rename-test-answers))))
      (should (string-search "other edits"
                             (plist-get (car gemini-companion-rename-test-answers)
                                        :problem)))
      (should (equal (list rename) (gemini-companion-requests)))))
  (gemini-companion-rename-test-with nil
      (mapcar (lambda (n) (list (if (zerop n) "a.py" (format "m%d.py" n)) "one\n"))
              (number-sequence 0 100))
    (gemini-companion-rename-test-problem "101 files; 100 is the limit"))
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (let ((gemini-companion-rename-longest 20))
      (gemini-companion-rename-test-problem "more than a user can read")))
  (gemini-companion-rename-test-with '("asks") gemini-companion-rename-test-files
    ;; Eglot would ask the user.
    (cl-letf (((symbol-function 'completing-read)
               (lambda (&rest _) (error "The server asks"))))
      (gemini-companion-rename-test-problem "renames nothing"))
    (should-not (advice-member-p 'gemini-companion-eglot--handle-request
                                 'eglot-handle-request)))
  (gemini-companion-rename-test-with '("kind") gemini-companion-rename-test-files
    (gemini-companion-rename-test-problem "delete files"))
  (gemini-companion-rename-test-with '("busy") gemini-companion-rename-test-files
    (gemini-companion-test-eventually
      (gemini-companion-errors-busy-p (eglot-current-server)))
    (let ((gemini-companion-rename--patience 0.2))
      (gemini-companion-rename-test-problem "still loading"))))

;;; gemini-companion-rename-test.el ends here

(ert-deftest gemini-companion-rename-refuses-a-file-that-its-buffer-has-not-read ()
  "The columns of the language server are those of the buffer."
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (with-current-buffer (find-file-noselect "a.py")
      (gemini-companion-test-write "a.py" "# A comment of another program\ndef one():\n    pass\n")
      (should-not (verify-visited-file-modtime))
      (gemini-companion-rename-test-problem "has changed on disk"))))
