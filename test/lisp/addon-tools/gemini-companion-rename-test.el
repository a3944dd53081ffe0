;;; gemini-companion-rename-test.el --- Tests of renames by a language server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-auto)
(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-decision)
(require 'gemini-companion-errors-test-helper)
(require 'gemini-companion-overview)
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
           (parts '(edit proposal rename)))
       (mapc #'gemini-companion-part-start parts)
       (unwind-protect
           (progn ,@body)
         (mapc #'gemini-companion-part-stop (reverse parts))
         (mapc #'gemini-companion-proposal-finish
               (gemini-companion-edits-ending))
         (dolist (buffer (buffer-list))
           (when (and (buffer-file-name buffer)
                      (string-prefix-p directory (buffer-file-name buffer)))
             (with-current-buffer buffer
               (set-buffer-modified-p nil))))))))

(defun gemini-companion-rename-test-ask (&optional new old)
  "Ask for the rename of OLD in a.py to NEW; return the rename, or the answer."
  (setq gemini-companion-rename-test-answers nil)
  (gemini-companion-test-demoted
    (gemini-companion-rename-ask
     (list :id "id" :path (expand-file-name "a.py") :symbol (or old "one")
           :line gemini-companion-rename-test-line :new (or new "uno")
           :client gemini-companion-rename-test-client :pids (list nil (emacs-pid)) :directory default-directory)
     (lambda (facts) (push facts gemini-companion-rename-test-answers)))
    (gemini-companion-test-wait
     (lambda ()
       (or (gemini-companion-rename--all-open)
           gemini-companion-rename-test-answers))))
  (or (car (gemini-companion-rename--all-open))
      (car gemini-companion-rename-test-answers)))

(defun gemini-companion-rename-test-problem (text &rest arguments)
  "Return non-nil if a rename, of ARGUMENTS, is refused because of TEXT."
  (let ((answer (apply #'gemini-companion-rename-test-ask arguments)))
    (should-not (gemini-companion-rename-p answer))
    (ert-info ((format "%S" answer))
      (should (string-search text (plist-get answer :problem))))))

(defun gemini-companion-rename-test-answer (answer &optional yes)
  "Give ANSWER to the open rename, and to what is asked then YES or no.
Return the question, or nil if none is asked."
  (let ((question nil))
    (gemini-companion-test-demoted
      (cl-letf* (((symbol-function 'y-or-n-p)
                  (lambda (prompt) (setq question prompt) yes))
                 ((symbol-function 'yes-or-no-p)
                  (lambda (prompt) (setq question (concat "!" prompt)) yes)))
        (gemini-companion-request-answer (car (gemini-companion-rename--all-open))
                                         answer))
      (unless (gemini-companion-rename--all-open)
        (gemini-companion-test-wait
         (lambda () gemini-companion-rename-test-answers))))
    question))

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
      (should-not (gemini-companion-edits-alone))
      (should (string-match-p "\\`proposes to rename one .+ uno, 3 places in 2 files\\'"
                              (gemini-companion-request-label rename)))
      (should (equal '("No other file has one")
                     (gemini-companion-rename--unsaid rename)))
      ;; No is an answer, but none about the rename.
      (should (string-prefix-p "Write rename"
                               (gemini-companion-rename-test-answer 'allow)))
      (should (gemini-companion-rename--all-open))
      (gemini-companion-rename-test-answer 'allow 'yes)
      (should-not (gemini-companion-requests))
      (should (equal "def uno():\n    pass\n"
                     (gemini-companion-rename-test-text "a.py")))
      (should (equal "from a import uno\n\n\n\nuno()\n"
                     (gemini-companion-rename-test-text "b.py")))
      (should (equal (list (list :files
                                 `((,(expand-file-name "a.py") (1) nil 0)
                                   (,(expand-file-name "b.py") (1 5) nil 0))
                                 :elsewhere nil :errors nil))
                     gemini-companion-rename-test-answers))
      (should (equal '(accepted accepted)
                     (mapcar #'gemini-companion-edit-status
                             (gemini-companion-rename-edits rename)))))))

(ert-deftest gemini-companion-rename-keeps-what-the-user-has-excluded ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (let* ((rename (gemini-companion-rename-test-ask))
           (edit (nth 1 (gemini-companion-rename-edits rename))))
      (gemini-companion-edit-hunks-toggle
       edit (cadr (gemini-companion-edit-hunks edit)))
      (let ((case-fold-search nil))
        (should (string-match-p
                 "\\`!Rename one .+ uno, 3 places in 2 files: 1 excluded; write anyway"
                 (gemini-companion-rename-test-answer 'allow 'yes))))
      (should (equal "from a import uno\n\n\n\none()\n"
                     (gemini-companion-rename-test-text "b.py")))
      (should (equal '((1) (5) 1)
                     (cdr (nth 1 (plist-get
                                  (car gemini-companion-rename-test-answers)
                                  :files))))))))

(defmacro gemini-companion-rename-test-in-overview (rename &rest body)
  "Run BODY in the overview, at the row of RENAME, whose hunks the user has seen."
  (declare (indent 1) (debug t))
  `(save-window-excursion
     (unwind-protect
         (cl-letf ((gemini-companion-overview-busy-seconds 0)
                   ((symbol-function 'gemini-companion-overview-page-displayed-p)
                    #'always)
                   ((symbol-function 'gemini-companion-overview-draw-width)
                    (lambda () 120)))
           (gemini-companion-request-show ,rename)
           ,@body)
       (gemini-companion-part-stop 'overview))))

(defun gemini-companion-rename-test-go (regexp)
  "Go to the beginning of the first line of the buffer that matches REGEXP."
  (goto-char (point-min))
  (re-search-forward regexp)
  (beginning-of-line))

(ert-deftest gemini-companion-rename-is-in-the-overview-with-its-hunks ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (let ((rename (gemini-companion-rename-test-ask)))
      (gemini-companion-rename-test-in-overview rename
        (should (looking-at-p ".*proposal +\\+3 .*rename one .*3 places in 2 files"))
        (should (string-match-p
                 (concat "rename one.*\n *No other file has one\n"
                         ".*a\\.py\\(.*\n\\)*.*uno()\\(.*\n\\)*.*b\\.py")
                 (buffer-string)))
        ;; Its edits are in no other row.
        (should (= 1 (how-many "proposal.* a\\.py" (point-min))))
        (goto-char (point-min))
        (should (looking-at-p "Waiting +1 to answer"))
        (gemini-companion-rename-test-go "b\\.py")
        (should (string-search "proposal" (gemini-companion-test-refusal
                                            (gemini-companion-overview-keep))))
        ;; On the row of one file, too, the answer is that to all.
        (gemini-companion-test-answering #'always
          (gemini-companion-overview-accept)))
      (should-not (gemini-companion-rename--all-open))
      (should (equal "def uno():\n    pass\n"
                     (gemini-companion-rename-test-text "a.py"))))))

(ert-deftest gemini-companion-rename-fits-a-narrow-window ()
  (gemini-companion-rename-test-with nil
      '(("a.py" "def get_configuration():\n    pass\n")
        ("b.py" "from a import get_configuration\n\n\n\nget_configuration()\n"))
    (let ((rename (gemini-companion-rename-test-ask "load_configuration"
                                                    "get_configuration")))
      (cl-letf (((symbol-function 'gemini-companion-text-sign)
                 (lambda (char _) (string char))))
        (pcase-dolist
            (`(,width . ,phrase)
             '((120 . "rename get_configuration → load_configuration, 3 places in 2 files")
               (80 . "get_configuration → load_configuration, 3 places in 2 files")
               (60 . "get_...ation → load...ation, 3 in 2 files")
               (40 . "...")))
          (ert-info ((format "%d" width))
            (gemini-companion-rename-test-in-overview rename
              (cl-letf (((symbol-function 'gemini-companion-overview-draw-width)
                         (lambda () width)))
                (gemini-companion-page-refresh)
                (gemini-companion-rename-test-go "proposal")
                (let ((line (buffer-substring-no-properties
                             (point) (line-end-position))))
                  (ert-info (line)
                    (should (string-search phrase line))
                    (should (string-match-p "[0-9]:[0-9][0-9]\\'" line))
                    (should (<= (string-width line) width))))))))))))

(ert-deftest gemini-companion-rename-is-accepted-as-it-was-drawn ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (let ((rename (gemini-companion-rename-test-ask)))
      (gemini-companion-rename-test-in-overview rename
        (cl-letf (((symbol-function 'y-or-n-p) (lambda (_) (error "Asked")))
                  ((symbol-function 'yes-or-no-p) (lambda (_) (error "Asked"))))
          (cl-letf (((symbol-function 'gemini-companion-overview-page-displayed-p)
                     #'ignore))
            (should (string-search "just appeared"
                                   (gemini-companion-test-refusal
                                     (gemini-companion-overview-accept)))))
          ;; One of the files is not seen.
          (gemini-companion-rename-test-go "b\\.py")
          (gemini-companion-overview-toggle)
          (gemini-companion-rename-test-go "rename one")
          (should (string-search "Proposal was folded"
                                 (gemini-companion-test-refusal
                                   (gemini-companion-overview-accept))))
          (should (string-search "import uno" (buffer-string))))
        (gemini-companion-rename-test-go "rename one")
        (gemini-companion-test-answering #'always
          (gemini-companion-overview-reject)))
      (should-not (gemini-companion-rename--all-open))
      (should (equal "def one():\n    pass\n"
                     (gemini-companion-rename-test-text "a.py"))))))

(ert-deftest gemini-companion-rename-that-changes-during-its-question-is-not-written ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (let* ((rename (gemini-companion-rename-test-ask))
           (answer (lambda (_)
                     (with-current-buffer
                         (gemini-companion-edit-proposal-buffer
                          (car (gemini-companion-rename-edits rename)))
                       (goto-char (point-max))
                       (insert "more\n")
                       t))))
      (cl-letf (((symbol-function 'y-or-n-p) answer)
                ((symbol-function 'yes-or-no-p) answer))
        (should (string-search "Rename has changed"
                               (gemini-companion-test-refusal
                                 (gemini-companion-request-answer rename 'allow)))))
      (should (memq rename (gemini-companion-rename--all-open)))
      (should (equal "def one():\n    pass\n"
                     (gemini-companion-rename-test-text "a.py"))))))

(ert-deftest gemini-companion-rename-is-not-among-the-proposals-of-its-cli ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (let ((rename (gemini-companion-rename-test-ask)))
      (gemini-companion-rename-test-in-overview rename
        (gemini-companion-rename-test-go "Waiting")
        (gemini-companion-test-answering #'always
          (should (string-search "No proposal"
                                 (gemini-companion-test-refusal
                                  (gemini-companion-overview-accept)))))
        (should (gemini-companion-rename--all-open))))))

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

;; Either edit is undone with the other, or none is.
(ert-deftest gemini-companion-rename-is-undone-as-one ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (let ((rename (gemini-companion-rename-test-ask))
          (asked nil))
      (gemini-companion-rename-test-answer 'allow 'yes)
      (gemini-companion-rename-test-in-overview rename
        (cl-flet ((undo ()
                    (gemini-companion-rename-test-go "accepted.*b\\.py")
                    (gemini-companion-overview-undo)))
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
            (should (equal "def uno():\n    pass\n"
                           (gemini-companion-rename-test-text "a.py")))
            (undo)
            (should (string-match-p "\\`Undo rename one .+ uno, 3 places in 2 files\\?\\'"
                                    (car asked)))
            (pcase-dolist (`(,file ,text) gemini-companion-rename-test-files)
              (should (equal text (gemini-companion-rename-test-text file))))
            (should (string-search "left to undo"
                                   (gemini-companion-test-refusal (undo))))
            (gemini-companion-decision-undo)
            (should (equal "from a import uno\n\n\n\nuno()\n"
                           (gemini-companion-rename-test-text "b.py")))
            (should (equal "def uno():\n    pass\n"
                           (gemini-companion-rename-test-text "a.py")))))))))

;; From Emacs 30 on, Eglot offers all three, and clangd takes the last one.
(ert-deftest gemini-companion-rename-counts-columns-as-the-server-does ()
  (dolist (flags '(() ("utf-8") ("utf-32")))
    (ert-info ((format "%s" flags))
      (gemini-companion-rename-test-with flags
          '(("a.py" "s = \"\N{GRINNING FACE}\u00e4\u20ac\"; one(); one\n")
            ("b.py" "\N{GRINNING FACE}\N{GRINNING FACE}; one\n"))
        (gemini-companion-rename-test-ask)
        (gemini-companion-rename-test-answer 'allow 'yes)
        (should (equal "s = \"\N{GRINNING FACE}\u00e4\u20ac\"; uno(); uno\n"
                       (gemini-companion-text-read (expand-file-name "a.py"))))
        (should (equal "\N{GRINNING FACE}\N{GRINNING FACE}; uno\n"
                       (gemini-companion-text-read (expand-file-name "b.py"))))))))

;; Its changes are kept, as they were accepted.
(ert-deftest gemini-companion-rename-is-undone-in-its-turn-as-one ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (gemini-companion-part-start 'changes)
    (unwind-protect
        (let ((rename (gemini-companion-rename-test-ask))
              (asked nil))
          (gemini-companion-rename-test-answer 'allow 'yes)
          (gemini-companion-rename-test-in-overview rename
                                                    (gemini-companion-test-answering (lambda (question) (push question asked) t)
                                                      (cl-flet ((undo (whole)
                                                                  (gemini-companion-rename-test-go "gemini")
                                                                  (gemini-companion-overview-undo whole)))
                                                        (should (string-prefix-p "No changes left here"
                                                                                 (gemini-companion-test-refusal (undo nil))))
                                                        ;; The other file may be undone before.
                                                        (dolist (name '("a.py" "b.py"))
                                                          (gemini-companion-rename-test-failing
                                                           (lambda (file _) (equal file name))
                                                           (should (string-prefix-p
                                                                    (format "Nothing undone: %s cannot be written" name)
                                                                    (gemini-companion-test-refusal (undo t)))))
                                                          (should (equal "def uno():\n    pass\n"
                                                                         (gemini-companion-rename-test-text "a.py")))
                                                          (should (equal "from a import uno\n\n\n\nuno()\n"
                                                                         (gemini-companion-rename-test-text "b.py"))))
                                                        (undo t)
                                                        (should (equal "Undo 2 edits as a whole?" (car asked)))
                                                        (pcase-dolist (`(,file ,text) gemini-companion-rename-test-files)
                                                          (should (equal text (gemini-companion-rename-test-text file))))
                                                        (gemini-companion-decision-undo)
                                                        (dolist (file '("a.py" "b.py"))
                                                          (should (string-search
                                                                   "uno" (gemini-companion-rename-test-text file))))))))
      (gemini-companion-part-stop 'changes))))

;; Neither before the rename, nor while it is reviewed.
(ert-deftest gemini-companion-rename-is-never-accepted-automatically ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (unwind-protect
        (dolist (when '(before after))
          (gemini-companion-part-start 'auto)
          (let ((gemini-companion-review-rules '(("**" . never)))
                (inhibit-message t))
            (cl-flet ((accept (rename)
                        (gemini-companion-auto-accept
                         (gemini-companion-rename-session rename))))
              (when (eq when 'before)
                (accept (gemini-companion-rename--make
                         :session (gemini-companion-permission-session-of
                                   (list :client "gemini" :directory directory
                                         :pids (list nil (emacs-pid)))))))
              (let ((rename (gemini-companion-rename-test-ask)))
                (when (eq when 'after)
                  (accept rename))
                (should (gemini-companion-auto-on-p
                         (gemini-companion-rename-session rename)))
                (gemini-companion-auto-offer 'all)
                (should (equal (list rename) (gemini-companion-rename--all-open)))
                (should (seq-every-p #'gemini-companion-edit-open-p
                                     (gemini-companion-rename-edits rename)))
                (should (equal "def one():\n    pass\n"
                               (gemini-companion-rename-test-text "a.py")))
                (gemini-companion-rename-test-answer 'refuse))))
          (gemini-companion-part-stop 'auto))
      (gemini-companion-part-stop 'auto))))

;; After the answer, and after the first file was written.
(ert-deftest gemini-companion-rename-of-a-file-that-changes-at-the-end-writes-none ()
  (dolist (moment '(answer write))
    (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
      (gemini-companion-rename-test-ask)
      (let ((write (symbol-function 'gemini-companion-text-rewrite))
            (change (lambda ()
                      (call-process "sh" nil nil nil "-c" "echo mine >b.py"))))
        (cl-letf (((symbol-function 'gemini-companion-text-rewrite)
                   (lambda (file old text)
                     (funcall write file old text)
                     (when (and (eq moment 'write)
                                (equal "a.py" (file-name-nondirectory file)))
                       (funcall change))))
                  ((symbol-function 'y-or-n-p)
                   (lambda (_)
                     (when (eq moment 'answer)
                       (funcall change))
                     t)))
          (gemini-companion-request-answer (car (gemini-companion-rename--all-open))
                                           'allow)))
      (should-not (gemini-companion-rename--all-open))
      (should (equal '((:refused "changed")) gemini-companion-rename-test-answers))
      (should (equal "def one():\n    pass\n"
                     (gemini-companion-rename-test-text "a.py")))
      (should (equal "mine\n" (gemini-companion-rename-test-text "b.py"))))))

(ert-deftest gemini-companion-rename-that-is-refused-writes-nothing ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (pcase-dolist (`(,end . ,facts)
                   `((,(lambda (_) (gemini-companion-rename-test-answer 'refuse))
                      "refused" :reason nil)
                     (,(lambda (_)
                         (gemini-companion-rename-test-answer '(refuse . "why")))
                      "refused" :reason "why")
                     (,(lambda (_) (gemini-companion-server-receive
                                    'rename-withdrawn "id" 'ended))
                      "ended")
                     (,(lambda (rename)
                         (gemini-companion-proposal-close
                          (car (gemini-companion-rename-edits rename))
                          'interrupted))
                      "ended")
                     (,(lambda (rename)
                         (kill-buffer (gemini-companion-edit-proposal-buffer
                                       (cadr (gemini-companion-rename-edits
                                              rename)))))
                      "refused")
                     (,(lambda (_)
                         (write-region "x\n" nil "b.py" nil 'silent)
                         (gemini-companion-rename-test-answer 'allow 'yes))
                      "changed")))
      (ert-info ((format "%S" facts))
        (funcall end (gemini-companion-rename-test-ask))
        (should (equal (cons :refused facts)
                       (car gemini-companion-rename-test-answers)))
        (should-not (gemini-companion-requests))
        (should-not (gemini-companion-edits-open))
        (should (equal "def one():\n    pass\n"
                       (gemini-companion-rename-test-text "a.py")))))))

(ert-deftest gemini-companion-rename-is-refused-with-comments-on-all-files ()
  (gemini-companion-test-needs-add-on 'prompts)
  (require 'gemini-companion-prompt)
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (let ((rename (gemini-companion-rename-test-ask))
          (asked nil))
      (unwind-protect
          (gemini-companion-rename-test-in-overview rename
            (cl-flet ((key (key line answer)
                        (gemini-companion-rename-test-go line)
                        (cl-letf (((symbol-function 'read-string)
                                   (lambda (prompt &rest _)
                                     (push prompt asked)
                                     answer)))
                          (call-interactively (key-binding (kbd key))))))
              (key "c" "uno()$" "ugly")
              (key "c" "import uno" "why?")
              (key "c" "def uno" "No")
              (key "R" "rename one" "It is public.")
              (should (string-prefix-p "Reject rename one" (car asked)))
              (should (equal (concat "It is public.\n\n"
                                     "a.py:1\n> def uno():\nNo\n\n"
                                     "b.py:1\n> from a import uno\nwhy?\n\n"
                                     "b.py:5\n> uno()\nugly")
                             (plist-get (car gemini-companion-rename-test-answers)
                                        :reason)))
              (should-not (gemini-companion-rename--all-open))))
        (gemini-companion-remove-comments 'all)))))

(ert-deftest gemini-companion-rename-writes-all-files-or-none ()
  (gemini-companion-rename-test-with nil gemini-companion-rename-test-files
    (gemini-companion-rename-test-ask)
    (gemini-companion-rename-test-failing
        (lambda (file text)
          (and (equal file "b.py") (string-search "uno" text)))
      (gemini-companion-rename-test-answer 'allow 'yes))
    (should (equal '((:left nil)) gemini-companion-rename-test-answers))
    (pcase-dolist (`(,file ,text) gemini-companion-rename-test-files)
      (should (equal text (gemini-companion-rename-test-text file))))
    (should-not (gemini-companion-edits-open))
    ;; That fails as well.
    (gemini-companion-rename-test-ask)
    (gemini-companion-rename-test-failing
        (lambda (file text)
          (or (equal file "b.py") (not (string-search "uno" text))))
      (gemini-companion-rename-test-answer 'allow 'yes))
    (should (equal `((:left (,(expand-file-name "a.py"))))
                   gemini-companion-rename-test-answers))))

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
            (let ((shown (ert-with-message-capture messages
                           (gemini-companion-rename-test-answer 'allow 'yes)
                           messages)))
              (should (string-search "Nothing was renamed" shown))
              (should (string-search "No space left" shown)))
            (should (equal '((:left nil)) gemini-companion-rename-test-answers))
            (should (equal "one\n" (gemini-companion-rename-test-text "a.py")))
            (should (equal long (gemini-companion-rename-test-text "b.py")))
            ;; With space, the same rename is written and undone, but not done again.
            (delete-file (expand-file-name "filler" disk))
            (let ((rename (gemini-companion-rename-test-ask "another_name")))
              (gemini-companion-rename-test-answer 'allow 'yes)
              (should (string-prefix-p "another_name"
                                       (gemini-companion-rename-test-text "b.py")))
              (gemini-companion-decision--with-all "undo"
                (dolist (edit (gemini-companion-rename-edits rename))
                  (gemini-companion-test-undo-edit edit)))
              (should (equal long (gemini-companion-rename-test-text "b.py")))
              (call-process "sh" nil nil nil "-c"
                            (format "cat /dev/zero > %sfiller" disk))
              (should (string-search "No space left"
                                     (gemini-companion-test-refusal
                                       (gemini-companion-decision-undo))))
              (should (equal "one\n" (gemini-companion-rename-test-text "a.py")))
              (should (equal long (gemini-companion-rename-test-text "b.py")))
              (gemini-companion-part-stop 'decision))))
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
                     (ert-with-message-capture messages
                       (gemini-companion-rename-test-answer 'allow 'yes)
                       messages)))
            (should (equal '((:left nil)) gemini-companion-rename-test-answers)))
        (lose nil))
      (pcase-dolist (`(,file ,text) gemini-companion-rename-test-files)
        (should (equal text (gemini-companion-rename-test-text file)))))))

(ert-deftest gemini-companion-rename-reports-new-errors-of-the-written-files ()
  (gemini-companion-rename-test-with '("versions")
      '(("a.py" "def one():\n") ("b.py" "one\nerror one\n\n\n\nuses one\n")
        ("c.py" "one\n\n\n\none\n"))
    (let* ((gemini-companion-errors-timeout 3600)
           (gemini-companion-rename--errors-seconds 3600)
           (rename (gemini-companion-rename-test-ask))
           (edit (nth 1 (gemini-companion-rename-edits rename))))
      (gemini-companion-test-eventually
        (= 3 (length (gemini-companion-rename-errors rename))))
      (gemini-companion-edit-hunks-toggle
       edit (cadr (gemini-companion-edit-hunks edit)))
      (gemini-companion-rename-test-answer 'allow 'yes)
      (should (equal `((:path ,(expand-file-name "b.py") :count 1
                              :errors ((6 "one is unknown" "test")) :others nil))
                     (plist-get (car gemini-companion-rename-test-answers)
                                :errors))))))

(ert-deftest gemini-companion-rename-keeps-line-ends-and-the-byte-order-mark ()
  (gemini-companion-rename-test-with nil '(("a.py" "one\n") ("b.py" "") ("d.py" ""))
    (let ((coding-system-for-write 'no-conversion))
      (write-region "\357\273\277one\r\n\303\244 one\r\n" nil "b.py" nil 'silent))
    (gemini-companion-rename-test-ask)
    (gemini-companion-rename-test-answer 'allow 'yes)
    (should (equal "\357\273\277uno\r\n\303\244 uno\r\n"
                   (gemini-companion-rename-test-text "b.py")))
    (let ((coding-system-for-write 'no-conversion))
      (write-region "\357\273\277x\r\nuno\r\n" nil "b.py" nil 'silent))
    ;; The text of Gemini CLI has the mark, the text of Qwen Code has not.
    (pcase-dolist (`(,gemini-companion-rename-test-client ,old ,new)
                   '(("gemini" "uno" "one") ("qwen" "one" "uno")))
      (let ((rename (gemini-companion-rename-test-ask new old)))
        (should (= 1 (length (gemini-companion-edit-hunks
                              (nth 1 (gemini-companion-rename-edits rename))))))
        (gemini-companion-rename-test-answer 'allow 'yes)
        (should (equal '((2) nil 0)
                       (cdr (nth 1 (plist-get
                                    (car gemini-companion-rename-test-answers)
                                    :files)))))
        (should (equal (format "\357\273\277x\r\n%s\r\n" new)
                       (gemini-companion-rename-test-text "b.py")))))
    (let ((coding-system-for-write 'no-conversion))
      (write-region "uno\runo\n" nil "d.py" nil 'silent))
    (gemini-companion-rename-test-problem "line ends" "one" "uno")
    (let ((coding-system-for-write 'no-conversion))
      (write-region "uno\r\n\303\244 uno\n" nil "d.py" nil 'silent))
    (gemini-companion-rename-test-ask "one" "uno")
    (gemini-companion-rename-test-answer 'allow 'yes)
    (should (equal "one\r\n\303\244 one\n"
                   (gemini-companion-rename-test-text "d.py")))))

(ert-deftest gemini-companion-rename-names-unshared-files-only-to-the-user ()
  (gemini-companion-rename-test-with nil
      '(("a.py" "one\n") ("secret.txt" "one\n") ("read.me" "one\n")
        (".geminiignore" "secret.txt\n"))
    (let ((rename (gemini-companion-rename-test-ask)))
      (should (equal '("one stays in read.me"
                       "one stays in secret.txt, not shared with CLIs")
                     (gemini-companion-rename--unsaid rename)))
      (should (string-search "1 file that is not shared has one; write"
                             (gemini-companion-rename-test-answer 'allow 'yes)))
      (should-not (string-search
                   "secret" (format "%S" gemini-companion-rename-test-answers))))
    (delete-file "read.me")
    (should (equal '("uno stays in secret.txt, not shared with CLIs")
                   (progn (write-region "uno\n" nil "secret.txt" nil 'silent)
                          (gemini-companion-rename--unsaid
                           (gemini-companion-rename-test-ask "one" "uno")))))))

(ert-deftest gemini-companion-rename-changes-a-file-with-a-link-once ()
  (dolist (flags '(() ("whole")))
    (gemini-companion-rename-test-with flags gemini-companion-rename-test-files
      (make-symbolic-link "b.py" "a_link.py")
      (should (= 2 (length (gemini-companion-rename-edits
                            (gemini-companion-rename-test-ask)))))
      (gemini-companion-rename-test-answer 'allow 'yes)
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
      (should (= 2 (length (gemini-companion-rename-edits rename))))
      (should (equal '("uno is already in b.py" "one stays in left.py, read.me")
                     (gemini-companion-rename--unsaid rename)))
      (should (equal '("changes more than the name" nil)
                     (mapcar #'gemini-companion-edit-review-reason
                             (gemini-companion-rename-edits rename))))
      (should (string-match-p
               "1 file changes more, uno exists already, 2 other files have one; write"
               (gemini-companion-rename-test-answer 'allow))))))

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
    (let ((rename (car (gemini-companion-rename--all-open))))
      (gemini-companion-test-demoted
        (gemini-companion-rename-ask
         (list :path (expand-file-name "a.py") :symbol "one" :new "due")
         (lambda (facts) (push facts gemini-companion-rename-test-answers))))
      (should (string-search "other edits"
                             (plist-get (car gemini-companion-rename-test-answers)
                                        :problem)))
      (should (equal (list rename) (gemini-companion-rename--all-open)))))
  (gemini-companion-rename-test-with nil
      (mapcar (lambda (n) (list (if (zerop n) "a.py" (format "m%d.py" n)) "one\n"))
              (number-sequence 0 100))
    (gemini-companion-rename-test-problem "101 files; 100 is the limit")
    (should-not (gemini-companion-edits-open)))
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
