;;; gemini-companion-errors-test.el --- Tests of the errors of edits  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-errors)
(require 'gemini-companion-errors-test-helper)
(require 'gemini-companion-lookup)
(require 'gemini-companion-revert)
(require 'gemini-companion-roots)

(declare-function eglot-current-server "eglot")
(declare-function eglot--signal-textDocument/didChange "eglot")
(declare-function jsonrpc--process "jsonrpc")
(declare-function jsonrpc-notify "jsonrpc")
(declare-function jsonrpc-request "jsonrpc")

;;;; Files that are not visited

(ert-deftest gemini-companion-errors-names-only-what-is-new ()
  (gemini-companion-errors-test-with '("versions") '(("a.txt" "error old"))
    (let* ((text "1\n2\nerror old\nerror b")
           (look (lambda ()
                   (list (window-state-get nil t) (current-buffer) (point) (mark t)
                         (buffer-modified-p) (buffer-narrowed-p)
                         (seq-filter #'buffer-file-name (buffer-list))
                         (gemini-companion-test-text (messages-buffer)))))
           (view (funcall look)))
      (gemini-companion-test-write "a.txt" text)
      (should (equal (gemini-companion-test-answer-of
                      'edited "a.txt" "error old" text)
                     `( :path ,(expand-file-name "a.txt") :count 1
                        :errors ((4 "b is wrong" "test")) :others nil)))
      (should (equal view (funcall look))))
    (make-directory "real/ä %b" t)
    (make-symbolic-link "real" "link")
    (pcase-dolist
        (`(,before ,after . ,expected)
         '(("error old" "error old\nwarning b")
           ("error old" "1\n2\n3\n  error old")
           ("a\nerror old" "a\n")
           ("x\r\ny\r\n" "\U0001D11E\r\nerror c\r\n" "2: error: c is wrong [test]")
           (nil "error d" "1: error: d is wrong [test]")
           ;; A line that was copied.
           ("error x\nfine\n" "error x\nfine\nerror x\n")
           ;; The same error in an edited line.
           ("error x\n" "edited error x\n")
           ;; Its number is that of a line.
           ("error from-7\n" "\nerror from-8\n")
           ;; The first one has hidden it.
           ("error syntax\nerror y\n" "fine\nerror y\n")
           ("error syntax\nerror y\n" "error z\nerror y\n"
            "1: error: z is wrong [test]")
           ("error x\n" "fine\nerror z\n" "2: error: z is wrong [test]")
           ;; One without a severity.
           ("" "uses x" "1: error: x is unknown [test]")))
      (ert-info ((format "%S" after))
        (should (equal expected (gemini-companion-errors-test-edit
                                 (if before "link/ä %b/b.txt" "real/ä %b/b.txt")
                                 before after)))))
    (should (= 10 (length (gemini-companion-errors-test-edit
                           "a.txt" "" (mapconcat (apply-partially #'format "error %d")
                                                 (number-sequence 1 13) "\n")))))
    (should-not (find-buffer-visiting "a.txt"))))

(ert-deftest gemini-companion-errors-asks-a-server-that-can-be-asked ()
  ;; What Pyright publishes does not matter.
  (pcase-dolist (`(,flag ,file) '(("pull" "a.txt") ("pyright" "a.txt")
                                  ("pyright" "home.txt")))
    (gemini-companion-errors-test-with (list flag) nil
      (ert-info (flag)
        (gemini-companion-errors-test-edits
         file '("fine" "error old" "1: error: old is wrong [test]")
         '("error old" "error old\nerror x" "2: error: x is wrong [test]")
         '("error old\nerror x" "\nerror old")
         '("\nerror old" "uses x" "1: error: x is unknown [test]"))
        ;; The next edit is written before the check of the first one begins.
        (let ((first (gemini-companion-errors-test-begin
                      file "uses x" "error a")))
          (gemini-companion-test-write file "error a\nerror b")
          (gemini-companion-revert file)
          (when (equal file "home.txt")
            (gemini-companion-test-eventually (funcall first))))
        (gemini-companion-errors-test-edits
         file '("error a" "error a\nerror b" "2: error: b is wrong [test]"))))))

(ert-deftest gemini-companion-errors-in-doubt-reports-nothing ()
  ;; The server is busy, reports nothing, or does not name the version of a text.
  (dolist (flags '(("versions" "busy") ("versions" "mute") nil))
    (pcase-dolist (`(,file ,before) '(("a.txt" nil) ("home.txt" "fine")))
      (gemini-companion-errors-test-with flags nil
        (let ((answers (gemini-companion-errors-test-begin
                        file before "error x")))
          ;; The server has the text, and has reported all that it does.
          (gemini-companion-test-eventually
            (eq t (jsonrpc-request
                   (eglot-current-server) :test/reported
                   `( :uri ,(concat "file://" (expand-file-name file))
                      :text "error x"))))
          (gemini-companion-test-run-timers)
          (should-not (funcall answers))
          (when (equal file "a.txt")
            ;; Eglot opens what the check has opened.
            (gemini-companion-test-visit file)
            (should (equal '(nil) (funcall answers)))))))))

(ert-deftest gemini-companion-errors-knows-what-other-includes-break ()
  (gemini-companion-errors-test-with '("versions" "includes")
      '(("b.txt" "#include \"a\"\nerror old\n"))
    (gemini-companion-errors-test-visit "b.txt")
    (dolist (file '("a.txt" "b.txt"))
      (gemini-companion-errors-test-edits
       file '("#include \"a\"\nerror old\n" "#include \"b\"\nerror old\nerror x\n"
              "3: error: x is wrong [test]")))))

(ert-deftest gemini-companion-errors-sends-no-text-that-is-not-read ()
  (gemini-companion-errors-test-with '("versions" "open")
      `(("b.txt" ,(concat (make-string 100000 ?\n) "word\n")))
    (let* ((text (concat (make-string 100000 ?\n) "error x"))
           (process (jsonrpc--process (eglot-current-server)))
           ;; Otherwise a text that is sent would block the test for good.
           (timer (run-at-time 120 nil #'signal-process process 'SIGUSR1))
           (found nil))
      (jsonrpc-notify (eglot-current-server) :test/pause '(:until "SIGUSR1"))
      (gemini-companion-errors-test-begin "a.txt" "" text)
      (gemini-companion-test-run-timers)
      (gemini-companion-lookup
       'references (lambda (answer) (setq found answer))
       (expand-file-name "b.txt") "word" nil nil)
      ;; Not even when the server has had time to answer.
      (dolist (timer (seq-filter (lambda (timer)
                                   (< 5 (float-time (time-subtract
                                                     (timer--time timer) nil))
                                      20))
                                 timer-list))
        (timer-event-handler timer))
      (should (string-search "does not answer" (plist-get found :problem)))
      (setq found nil)
      (gemini-companion-lookup
       'references (lambda (answer) (setq found answer))
       (expand-file-name "b.txt") "word" nil nil)
      (should (memq timer timer-list))
      (cancel-timer timer)
      (signal-process process 'SIGUSR1)
      (should (equal 1 (plist-get (gemini-companion-test-eventually found)
                                  :total)))
      (should (gemini-companion-errors-test-edit "a.txt" "" text)))
    ;; A large one is not even looked at.
    (should (equal '(nil) (funcall (gemini-companion-errors-test-begin
                                    "a.txt" ""
                                    (concat (make-string 1000000 ?\n)
                                            "error x")))))))

(ert-deftest gemini-companion-errors-reports-nothing-of-files-not-shared ()
  (gemini-companion-errors-test-with '("versions") nil
    (let ((gemini-companion-excluded '("/secret\\.txt\\'")))
      (should-not (gemini-companion-errors-test-edit
                   "secret.txt" "" "error x")))
    (let ((gemini-companion-context-paused t))
      (should-not (gemini-companion-errors-test-edit "a.txt" "" "error x")))
    ;; It is paused once the errors are known.
    (let ((new-errors (symbol-function 'gemini-companion-code-new-errors)))
      (cl-letf (((symbol-function 'gemini-companion-code-new-errors)
                 (lambda (&rest arguments)
                   (setq gemini-companion-context-paused t)
                   (apply new-errors arguments))))
        (should-not (gemini-companion-errors-test-edit "a.txt" "" "error x"))))
    (setq gemini-companion-context-paused nil)
    (let ((gemini-companion-excluded (list #'always)))
      (gemini-companion-roots-update directory)
      (should-not (gemini-companion-errors-test-edit "a.txt" "" "error x")))
    (gemini-companion-roots-update directory)
    (let ((text "-*- gemini-companion-share: nil -*-\n"))
      (gemini-companion-test-write "own.txt" text)
      (save-current-buffer
        (gemini-companion-test-visit "own.txt"))
      (should-not (gemini-companion-errors-test-edit
                   "own.txt" text (concat text "error x"))))
    ;; Nothing is awaited that no checker checks.
    (dolist (file '("visited.unknown" "a.unknown"))
      (gemini-companion-test-write file "error x"))
    (find-file-noselect "visited.unknown")
    (dolist (file '("gone.txt" "/ssh:nowhere:/a.txt" "visited.unknown" "a.unknown"))
      (should-not (gemini-companion-test-answer-of 'edited file "" "error x")))
    (should (gemini-companion-errors-test-edit "a.txt" "" "error x"))))

(ert-deftest gemini-companion-errors-ends-a-check-that-is-overtaken ()
  (gemini-companion-errors-test-with '("versions") '(("b.txt" ""))
    (let ((first (gemini-companion-errors-test-begin "a.txt" "" "error x"))
          (other (gemini-companion-errors-test-begin "c.txt" "" "error z")))
      (gemini-companion-errors-test-edits
       "a.txt" '("error x" "error x\nerror y" "2: error: y is wrong [test]"))
      (should (equal '(nil) (funcall first)))
      (should (equal '("1: error: z is wrong [test]")
                     (gemini-companion-errors-test-reported other))))
    (gemini-companion-errors-test-visit "b.txt")
    (pcase-dolist
        (`(,file . ,what)
         `(("a.txt" . ,(lambda () (gemini-companion-test-write "a.txt" "formatted")))
           ("b.txt" . ,(lambda () (gemini-companion-test-write "b.txt" "formatted")))
           ("e.txt" . ,(lambda () (delete-process (jsonrpc--process
                                                   (eglot-current-server)))))))
      (let ((answers (gemini-companion-errors-test-begin file "" "error x")))
        (should-not (funcall answers))
        (funcall what)
        (ert-info (file)
          (should-not (gemini-companion-errors-test-reported answers)))))
    (should-not (gemini-companion-errors-test-edit "e.txt" "" "error x"))))

(ert-deftest gemini-companion-errors-reports-nothing-that-a-start-brings ()
  ;; The server reports an error until it has loaded the project.
  (gemini-companion-errors-test-with '("versions" "loads") nil
    (gemini-companion-errors-test-edits
     "a.txt" '("fine\n" "fine\nmore\n")
     '("fine\nmore\n" "fine\nerror x\n" "2: error: x is wrong [test]"))))

(ert-deftest gemini-companion-errors-trusts-no-report-of-an-earlier-check ()
  (gemini-companion-errors-test-with '("versions") nil
    (gemini-companion-errors-test-type "def one\n")
    (gemini-companion-errors-test-known "home.txt")
    (gemini-companion-errors-test-edits "a.txt" '("uses one\n" "1\nuses one\n"))
    ;; As if another program had changed what a.txt includes.
    (jsonrpc-notify (eglot-current-server) :test/forget
                    `(:uri ,(concat "file://" (expand-file-name "home.txt"))))
    (gemini-companion-errors-test-edits "a.txt" '("1\nuses one\n" "2\nuses one\n"))
    (set-buffer-modified-p nil)))

(ert-deftest gemini-companion-errors-forgets-what-another-text-changes ()
  (gemini-companion-errors-test-with '("versions") nil
    (gemini-companion-errors-test-edits
     "a.txt" '("fine\n" "uses x\n" "1: error: x is unknown [test]")
     '("uses x\n" "fine\n"))
    (pcase-dolist (`(,typed . ,edit)
                   ;; The text after the edit is known with an error.
                   '(("def x\n" "fine\n" "uses x\n")
                     ;; The text before the edit is known without one.
                     ("fine\n" "uses x\n" "\nuses x\n")))
      (gemini-companion-errors-test-type typed)
      (gemini-companion-errors-test-known "home.txt")
      (gemini-companion-errors-test-edits "a.txt" edit))
    (set-buffer-modified-p nil)))

;;;; Other files

(ert-deftest gemini-companion-errors-names-callers-checked-when-one-saves ()
  (gemini-companion-errors-test-with '("versions" "saved")
      '(("a.txt" "uses one\n") ("one.txt" "/* def one */\nint one(int x)\n"))
    (gemini-companion-errors-test-visit "one.txt" "a.txt")
    (gemini-companion-errors-test-edits
     "one.txt" '("/* def one */\nint one(int x)\n" "/* def two */\nint two(int x)\n"
                 "a.txt 1:1: error: one is unknown [test]"))))

(ert-deftest gemini-companion-errors-names-the-callers-that-break ()
  (gemini-companion-errors-test-with '("versions")
      '(("one.txt" "def one\n") ("a.txt" "uses other\nuses one\nuses one\n")
        ("b.txt" "def two\n") ("secret.txt" "uses one\n"))
    (let* ((gemini-companion-excluded '("/secret\\.txt\\'"))
           (files '("one.txt" "a.txt" "b.txt" "secret.txt"))
           (edit (lambda (file &rest edit)
                   (apply #'gemini-companion-errors-test-known files)
                   (gemini-companion-errors-test-edits file edit))))
      (mapc #'gemini-companion-test-visit files)
      ;; It is open, and names the definition.
      (funcall edit "one.txt" "def one\n" "def three\n"
               "a.txt 2:2: error: one is unknown [test]")
      (funcall edit "b.txt" "def two\n" "uses three\n")
      (funcall edit "one.txt" "def three\n" "def four\nerror x\n"
               "2: error: x is wrong [test]"
               "b.txt 1:1: error: three is unknown [test]")
      ;; The server reports before the hook of the CLI does.
      (funcall edit "one.txt" "def four\nerror x\n" "def one\n")
      (apply #'gemini-companion-errors-test-known files)
      (gemini-companion-test-write "one.txt" "def five\n")
      (gemini-companion-revert "one.txt")
      (with-current-buffer "one.txt"
        (eglot--signal-textDocument/didChange))
      (with-current-buffer "a.txt"
        (gemini-companion-test-eventually
          (= 3 (length (flymake-diagnostics)))))
      (should (equal `((,(expand-file-name "a.txt")
                        2 (2 "one is unknown" "test")))
                     (plist-get (gemini-companion-test-answer-of
                                 'edited "one.txt" "def one\n" "def five\n")
                                :others)))
      ;; No news of the file itself, after a harmless edit.
      (funcall edit "a.txt" "uses other\nuses one\nuses one\n"
               "\nuses other\nuses one\nuses one\n"))))

;;;; Files that are visited

(ert-deftest gemini-companion-errors-knows-the-errors-of-a-visited-file ()
  (gemini-companion-errors-test-with '("versions") '(("a.txt" "error old\n"))
    (gemini-companion-errors-test-visit "a.txt")
    (make-symbolic-link "." "link")
    (setq-local directory-abbrev-alist
                `((,(regexp-quote directory) . ,(expand-file-name "link/"))))
    (setq buffer-file-truename (abbreviate-file-name buffer-file-name))
    (gemini-companion-errors-test-edits
     "a.txt" '("error old\n" "\nerror old\nerror x\n" "3: error: x is wrong [test]"))
    ;; A revert by the user closes it; then there is no version.
    (let ((inhibit-message t))
      (revert-buffer t t t))
    (gemini-companion-errors-test-known "a.txt")
    (gemini-companion-errors-test-edits
     "a.txt" '("\nerror old\nerror x\n" "error old\n"))
    (narrow-to-region 3 4)
    (gemini-companion-errors-test-edits
     "a.txt"
     '("error old\r\n" "error old\r\nerror y\r\n" "2: error: y is wrong [test]")
     ;; Of a text of which nothing is known, those in new lines are.
     '("error old\n" "error old\nerror z\n" "2: error: z is wrong [test]"))
    ;; The user types.
    (let ((answers (gemini-companion-errors-test-begin
                    "a.txt" "error z\n" "error z\nerror 9\n")))
      (insert "typed")
      (should-not (gemini-companion-errors-test-reported answers)))
    (should-not (gemini-companion-errors-test-edit
                 "a.txt" "error z\nerror 9\n" "error z\nerror 9\nerror 10\n"))))

(ert-deftest gemini-companion-errors-knows-both-of-two-quick-edits ()
  (gemini-companion-errors-test-with '("versions")
      '(("a.txt" "fine\n") ("b.txt" "fine\n"))
    (gemini-companion-errors-test-visit "a.txt" "b.txt")
    (let ((first (gemini-companion-errors-test-begin
                  "a.txt" "fine\n" "fine\nerror x\n")))
      (gemini-companion-errors-test-edits
       "b.txt" '("fine\n" "fine\nerror y\n" "2: error: y is wrong [test]"))
      (should (equal '("2: error: x is wrong [test]")
                     (gemini-companion-errors-test-reported first))))
    ;; The errors of the text between are never known.
    (gemini-companion-errors-test-begin
     "a.txt" "fine\nerror x\n" "fine\nerror y\n")
    (gemini-companion-errors-test-edits
     "a.txt" '("fine\nerror y\n" "fine\nerror y\nerror z\n"
               "3: error: z is wrong [test]"))))

(ert-deftest gemini-companion-errors-believes-no-report-of-the-text-before ()
  (gemini-companion-errors-test-with '("versions")
      '(("a.txt" "error x\n") ("b.txt" "fine\n"))
    (gemini-companion-errors-test-visit "b.txt" "a.txt")
    (insert "\n")
    (eglot--signal-textDocument/didChange)
    (gemini-companion-errors-test-known "a.txt")
    (erase-buffer)
    ;; The server reports about a.txt again, whose change it does not know.
    (dotimes (_ 2)
      (with-current-buffer "b.txt"
        (insert "fine\n")
        (eglot--signal-textDocument/didChange))
      (gemini-companion-errors-test-known "b.txt"))
    (should (gemini-companion-errors-test-problem-p "ask again" "a.txt"))
    (eglot--signal-textDocument/didChange)
    (should (equal '(:rows nil) (gemini-companion-errors-test-ask "a.txt")))
    (set-buffer-modified-p nil)
    (with-current-buffer "b.txt" (set-buffer-modified-p nil))))

(defmacro gemini-companion-errors-test-with-flymake (text &rest body)
  "Run BODY in a buffer that visits a.txt with TEXT, which Flymake has checked."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-in-project nil (list (list "a.txt" ,text))
     (set-buffer (find-file-noselect "a.txt"))
     (add-hook 'flymake-diagnostic-functions
               #'gemini-companion-errors-test-flymake nil t)
     (flymake-mode)
     (flymake-start)
     (gemini-companion-errors-test-known "a.txt")
     ,@body))

(ert-deftest gemini-companion-errors-asks-other-backends-of-flymake ()
  (gemini-companion-errors-test-with-flymake "error old\n"
    (gemini-companion-errors-test-edits
     "a.txt" '("error old\n" "\nerror old\nerror x\n" "3: error: x")
     '("\nerror old\nerror x\n" "error old\nwarning y\n"))
    ;; In a narrowed buffer, backends find wrong lines.
    (narrow-to-region 11 (point-max))
    (gemini-companion-errors-test-edits
     "a.txt" '("error old\nwarning y\n" "error old\nerror y\n"))))

(ert-deftest gemini-companion-errors-of-a-large-text-block-no-key ()
  (let* ((line "    some_name = another_name(argument)\n")
         (rest (apply #'concat (make-list (/ 500000 (length line)) line)))
         (old (concat "error syntax\n" rest))
         (new (concat (mapconcat (lambda (number) (format "error x%d\n" number))
                                 (number-sequence 1 20) "")
                      rest))
         (now (lambda () (float-time (get-internal-run-time))))
         (longest 0)
         (times nil)
         (measure (lambda (function timer)
                    (let ((began (funcall now)))
                      (prog1 (funcall function timer)
                        (when (gemini-companion-test-ours-p (timer--function timer))
                          (setq longest (max longest
                                             (- (funcall now) began)))))))))
    (gemini-companion-errors-test-with-flymake old
      (advice-add 'timer-event-handler :around measure)
      (unwind-protect
          (dotimes (_ 3)
            (garbage-collect)
            (let ((gc-cons-threshold most-positive-fixnum))
              (setq longest 0)
              (should (gemini-companion-errors-test-edit "a.txt" old new))
              (push longest times)
              (gemini-companion-errors-test-edit "a.txt" new old)))
        (advice-remove 'timer-event-handler measure)))
    ;; A limit for a busy machine; compiled, the longest piece takes 8 ms.
    (ert-info ((format "%S" times))
      (should (< (apply #'min times) 0.1)))))

;;; gemini-companion-errors-test.el ends here
