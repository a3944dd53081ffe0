;;; gemini-companion-diagnostics-test.el --- Tests for new errors  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; With Eglot and a real language server, and with one that does what real
;; servers do at times; with Flymake, and with Flycheck where it is installed.
;; test/errors has many more edits with more servers.

;;; Code:

(require 'flymake)
(require 'gemini-companion-diagnostics)
(require 'gemini-companion-revert)
(require 'gemini-companion-test-helper)

(defvar eglot-autoreconnect)
(defvar eglot-server-programs)
(defvar eglot-sync-connect)
(defvar flycheck-check-syntax-automatically)
(defvar flycheck-checkers)
(defvar flycheck-last-status-change)
(declare-function eglot-current-server "eglot")
(declare-function eglot-ensure "eglot")
(declare-function eglot-managed-p "eglot")
(declare-function eglot-shutdown-all "eglot")
(declare-function flycheck-buffer "ext:flycheck")
(declare-function flycheck-mode "ext:flycheck")
(declare-function jsonrpc--process "jsonrpc")
(declare-function jsonrpc-notify "jsonrpc")

;;;; What the tests do

(defun gemini-companion-diagnostics-test-write (file text)
  "Write TEXT to FILE, as another program does."
  (let ((coding-system-for-write 'utf-8-unix))
    (write-region text nil file nil 'silent)))

(defun gemini-companion-diagnostics-test-begin (file before after)
  "Change FILE from BEFORE to AFTER, and have it checked.
Return a function that returns all answers, a list."
  (let ((answers nil))
    (gemini-companion-diagnostics-test-write file after)
    (gemini-companion-revert file)
    (gemini-companion-diagnostics-after-edit
     (expand-file-name file) before after
     (lambda (text) (push text answers)))
    (lambda () answers)))

(defun gemini-companion-diagnostics-test-edit (file before after)
  "Change FILE from BEFORE to AFTER; return what is reported, without its head."
  (let* ((began (float-time))
         (answers (gemini-companion-diagnostics-test-begin file before after))
         (text (car (gemini-companion-test-eventually (funcall answers)))))
    (should (< (- (float-time) began) 30))
    (should (equal (list text) (funcall answers)))
    (and text (cdr (split-string text "\n")))))

(defun gemini-companion-diagnostics-test-visit (file)
  "Visit FILE with its language server."
  (set-buffer (find-file-noselect file))
  (eglot-ensure)
  (run-hooks 'post-command-hook)
  (gemini-companion-test-eventually (eglot-managed-p))
  ;; Without a display it waits for one.
  (flymake-start))

(defmacro gemini-companion-diagnostics-test-with (command files &rest body)
  "Run BODY in a project with FILES, a list of (NAME TEXT).
The language server COMMAND runs for files like the first one,
which is visited.  If COMMAND is nil there is none."
  (declare (indent 2) (debug t))
  `(gemini-companion-test-with-directory ,files
     (let ((command ,command)
           (gemini-companion-diagnostics-timeout 60)
           (gemini-companion-paused nil))
       (call-process "git" nil nil nil "init" "-q")
       (gemini-companion-roots directory)
       (gemini-companion-diagnostics-start)
       (unwind-protect
           (let ((eglot-server-programs
                  (list (cons '(text-mode python-mode) command)))
                 (eglot-autoreconnect nil)
                 (eglot-sync-connect t)
                 (inhibit-message t))
             (when command
               (gemini-companion-diagnostics-test-visit (car (car ,files))))
             ,@body)
         (gemini-companion-diagnostics-stop)
         (when command
           (let ((inhibit-message t))
             (eglot-shutdown-all))
           ;; Those with what was written to a server outlive it.
           (dolist (buffer (buffer-list))
             (when (string-match-p "EGLOT" (buffer-name buffer))
               (let ((kill-buffer-query-functions nil))
                 (kill-buffer buffer)))))
         (gemini-companion-roots-forget)))))

(defun gemini-companion-diagnostics-test-server (&rest flags)
  "Return the command of the test's language server with FLAGS."
  (unless (require 'eglot nil t)
    (ert-skip "No Eglot"))
  `("python3" ,(expand-file-name "test/language_server.py"
                                 gemini-companion-test-root)
    ,@(or flags '("versions"))))

;;;; What is new

(defun gemini-companion-diagnostics-test-new (errors old-errors lines old-lines)
  "Return the lines of the ERRORS that are new in LINES.
OLD-ERRORS are those of OLD-LINES; an error is (LINE TEXT)."
  (mapcar #'car (gemini-companion-diagnostics--new
                 errors (string-join lines "\n")
                 old-errors (string-join old-lines "\n"))))

(ert-deftest gemini-companion-diagnostics-only-a-syntax-error-hides-others ()
  (pcase-dolist
      (`(,gone ,expected)
       '(("Import \"os\" could not be resolved" (1 2))
         ("invalid syntax" nil)
         ("'(' was never closed" nil)
         ("',' expected." nil)
         ("Unindent not expected" nil)
         ("Too many errors emitted, stopping now" nil)))
    (should (equal expected
                   (gemini-companion-diagnostics-test-new
                    '((1 "undefined name 'os'") (2 "undefined name 'os'"))
                    `((1 ,gone))
                    '("os.x" "os.y") '("import os" "os.x" "os.y")))))
  ;; An indentation that has changed makes a new line.
  (should (equal '(2) (gemini-companion-diagnostics-test-new
                       '((2 "unexpected indent")) '((1 "invalid syntax"))
                       '("x" "    y") '("x x" "y")))))

(ert-deftest gemini-companion-diagnostics-compares-large-texts-quickly ()
  (let* ((line "    some_name = another_name(argument)\n")
         (text (apply #'concat (make-list (/ 500000 (length line)) line)))
         (errors (mapcar (lambda (line) (list (* 12 line) "undefined x"))
                         (number-sequence 1 1000)))
         (longest 0))
    (garbage-collect)
    (dolist (old (list errors (cons '(1 "invalid syntax") (cdr errors))))
      (let* ((gc-cons-threshold most-positive-fixnum)
             (times (mapcar
                     (lambda (_)
                       (car (benchmark-run 1
                              (gemini-companion-diagnostics--new
                               errors (concat "x\n" text) old text))))
                     '(1 2 3 4 5))))
        (setq longest (max longest (apply #'min times)))))
    ;; A limit for a busy machine; compiled, it takes less than 10 ms.
    (should (< longest 0.3))))

;;;; Files that are not visited

(ert-deftest gemini-companion-diagnostics-names-only-what-is-new ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server)
      '(("home.txt" "fine") ("a.txt" "error old"))
    (let (answer)
      (gemini-companion-diagnostics-test-write "a.txt" "1\n2\nerror old\nerror b")
      (gemini-companion-diagnostics-after-edit
       (expand-file-name "a.txt") "error old" "1\n2\nerror old\nerror b"
       (lambda (text) (setq answer text)))
      (gemini-companion-test-eventually answer)
      (should (equal answer
                     "Emacs sees 1 new error in a.txt \
(a later edit may already fix it):\n4: error: b is wrong [test]")))
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "error old" "error old\nwarning b"))
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "error old" "1\n2\n3\n  error old"))
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "a\nerror old" "a\n"))
    (should (equal '("2: error: c is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "a.txt" "x\r\ny\r\n" "\U0001D11E\r\nerror c\r\n")))
    (should (equal '("1: error: d is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "new.txt" nil "error d")))
    (should-not (find-buffer-visiting "a.txt"))))

(ert-deftest gemini-companion-diagnostics-takes-no-changed-or-uncovered-error-for-new ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server)
      '(("home.txt" "fine"))
    ;; The same error in an edited line.
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "error x\n" "edited error x\n"))
    ;; Its number is that of a line.
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "error from-7\n" "\nerror from-8\n"))
    ;; The first one has hidden it.
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "error syntax\nerror y\n" "fine\nerror y\n"))
    (should (equal '("1: error: z is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "a.txt" "error syntax\nerror y\n" "error z\nerror y\n")))
    (should (equal '("2: error: z is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "a.txt" "error x\n" "fine\nerror z\n")))))

(ert-deftest gemini-companion-diagnostics-cuts-long-reports ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server)
      '(("home.txt" "fine"))
    (let ((lines (gemini-companion-diagnostics-test-edit
                  "a.txt" ""
                  (mapconcat (lambda (number)
                               (format "error %s%d" (make-string 300 ?x) number))
                             (number-sequence 1 13) "\n"))))
      (should (= 11 (length lines)))
      (should (seq-every-p (lambda (line) (<= (length line) 200)) lines))
      (should (equal "... 3 more" (car (last lines)))))))

(ert-deftest gemini-companion-diagnostics-finds-the-file-by-a-symbolic-link ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server "versions")
      '(("home.txt" "fine"))
    (make-directory "real/ä %b" t)
    (make-symbolic-link "real" "link")
    (should (equal '("1: error: x is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "link/ä %b/a.txt" "" "error x")))
    (should (equal '("1: error: x is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "real/ä %b/a.txt" "" "error x")))))

(ert-deftest gemini-companion-diagnostics-asks-a-server-that-can-be-asked ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server "pull")
      '(("home.txt" "fine"))
    (should (equal '("2: error: x is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "a.txt" "error old" "error old\nerror x")))
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "error old\nerror x" "\nerror old"))))

(ert-deftest gemini-companion-diagnostics-reports-nothing-while-the-server-is-busy ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server "versions" "busy")
      '(("home.txt" "fine"))
    (let ((gemini-companion-diagnostics-timeout 1))
      (should-not (gemini-companion-diagnostics-test-edit "a.txt" "" "error x")))))

(ert-deftest gemini-companion-diagnostics-reports-nothing-without-a-report ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server "versions" "mute")
      '(("home.txt" "fine"))
    (let ((gemini-companion-diagnostics-timeout 1))
      (should-not (gemini-companion-diagnostics-test-edit "a.txt" "" "error x")))))

(ert-deftest gemini-companion-diagnostics-reports-nothing-of-a-dead-server ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server)
      '(("home.txt" "fine"))
    (let ((answers (gemini-companion-diagnostics-test-begin "a.txt" "" "error x")))
      (delete-process (jsonrpc--process (eglot-current-server)))
      (gemini-companion-test-eventually (funcall answers))
      (should (equal '(nil) (funcall answers))))
    (should-not (gemini-companion-diagnostics-test-edit "a.txt" "" "error x"))))

(ert-deftest gemini-companion-diagnostics-sends-no-text-that-is-not-read ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server)
      '(("home.txt" "fine"))
    (let ((text (concat (make-string 100000 ?\n) "error x"))
          (gemini-companion-diagnostics-timeout 2)
          (longest 0))
      (jsonrpc-notify (eglot-current-server) :test/sleep '(:seconds 5))
      (let ((answers (gemini-companion-diagnostics-test-begin "a.txt" "" text)))
        (while (not (funcall answers))
          (let ((began (float-time)))
            (accept-process-output nil 0.01)
            (setq longest (max longest (- (float-time) began)))))
        (should (equal '(nil) (funcall answers)))
        (should (< longest 3)))
      (gemini-companion-test-eventually
        (gemini-companion-diagnostics-test-edit "a.txt" "" text)))
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "" (concat (make-string 1000000 ?\n) "error x")))))

(ert-deftest gemini-companion-diagnostics-reports-nothing-of-files-not-shared ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server)
      '(("home.txt" "fine"))
    (let ((gemini-companion-excluded '("/secret\\.txt\\'")))
      (should-not (gemini-companion-diagnostics-test-edit
                   "secret.txt" "" "error x")))
    (let ((gemini-companion-paused t))
      (should-not (gemini-companion-diagnostics-test-edit "a.txt" "" "error x")))
    (let ((gemini-companion-excluded (list #'always)))
      (gemini-companion-roots directory)
      (should-not (gemini-companion-diagnostics-test-edit "a.txt" "" "error x")))
    (gemini-companion-roots directory)
    (let ((text "-*- gemini-companion-share: nil -*-\n"))
      (gemini-companion-diagnostics-test-write "own.txt" text)
      (save-current-buffer
        (gemini-companion-diagnostics-test-visit "own.txt"))
        (should-not (gemini-companion-diagnostics-test-edit
                   "own.txt" text (concat text "error x"))))
    (let (answers)
      (dolist (file (list (expand-file-name "gone.txt")
                          "/ssh:nowhere:/a.txt"
                          (expand-file-name "a.unknown")))
        (gemini-companion-diagnostics-after-edit
         file "" "error x" (lambda (text) (push text answers))))
      (gemini-companion-test-eventually (= 3 (length answers)))
      (should (equal '(nil nil nil) answers)))
    (should (gemini-companion-diagnostics-test-edit "a.txt" "" "error x"))))

(ert-deftest gemini-companion-diagnostics-reports-the-later-of-two-edits ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server)
      '(("home.txt" "fine"))
    (let ((first (gemini-companion-diagnostics-test-begin "a.txt" "" "error x"))
          (other (gemini-companion-diagnostics-test-begin "b.txt" "" "error z")))
      (should (equal '("2: error: y is wrong [test]")
                     (gemini-companion-diagnostics-test-edit
                      "a.txt" "error x" "error x\nerror y")))
      (should (equal '(nil) (funcall first)))
      (gemini-companion-test-eventually (funcall other))
      (should (string-search "1: error: z" (car (funcall other)))))))

(ert-deftest gemini-companion-diagnostics-leaves-a-file-that-is-visited-meanwhile ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server)
      '(("home.txt" "fine"))
    (let ((answers (gemini-companion-diagnostics-test-begin "a.txt" "" "error x")))
      (accept-process-output nil 0.1)
      (should-not (funcall answers))
      (gemini-companion-diagnostics-test-visit "a.txt")
      (should (equal '(nil) (funcall answers)))
      (gemini-companion-test-eventually (flymake-diagnostics)))))

(ert-deftest gemini-companion-diagnostics-says-nothing-without-a-version ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server "unversioned")
      '(("home.txt" "fine"))
    (let ((gemini-companion-diagnostics-timeout 1))
      (should-not (gemini-companion-diagnostics-test-edit "a.txt" "" "error x"))
      (should-not (gemini-companion-diagnostics-test-edit
                   "home.txt" "fine" "error x")))))

(ert-deftest gemini-companion-diagnostics-takes-an-error-without-severity-for-one ()
  (dolist (flag '("versions" "pull"))
    (gemini-companion-diagnostics-test-with
        (gemini-companion-diagnostics-test-server flag)
        '(("home.txt" "fine"))
      (should (equal '("1: error: x is unknown [test]")
                     (gemini-companion-diagnostics-test-edit
                      "a.txt" "" "uses x"))))))

(ert-deftest gemini-companion-diagnostics-knows-the-errors-of-a-proposal-s-file ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server "versions" "once")
      '(("home.txt" "fine") ("a.txt" "error old"))
    (let ((diff (gemini-companion-diff--make
                 :file-path (expand-file-name "a.txt"))))
      (should-not (run-hook-with-args-until-success
                   'gemini-companion-arrival-functions diff))
      (gemini-companion-test-eventually
        (null gemini-companion-diagnostics--checks))
      ;; The server reports nothing of the text before any more.
      (let ((gemini-companion-diagnostics-timeout 1))
        (should (equal '("2: error: x is wrong [test]")
                       (gemini-companion-diagnostics-test-edit
                        "a.txt" "error old" "error old\nerror x")))
        ;; Nor of the text after that edit, which is known.
        (should (equal '("1: error: y is wrong [test]")
                       (gemini-companion-diagnostics-test-edit
                        "a.txt" "error old\nerror x"
                        "error y\nerror old\nerror x")))
        ;; After an edit of another file it may have other errors.
        (gemini-companion-diagnostics-test-edit "b.txt" "" "fine")
        (should-not (gemini-companion-diagnostics-test-edit
                     "a.txt" "error y\nerror old\nerror x"
                     "error z\nerror y\nerror old\nerror x"))))))

(ert-deftest gemini-companion-diagnostics-says-nothing-of-a-text-that-is-gone ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server)
      '(("home.txt" "fine") ("b.txt" ""))
    (gemini-companion-diagnostics-test-visit "b.txt")
    (gemini-companion-test-eventually
      (gemini-companion-diagnostics--current))
    (dolist (file '("a.txt" "b.txt"))
      (let ((answers (gemini-companion-diagnostics-test-begin file "" "error x")))
        ;; As a formatter does.
        (gemini-companion-diagnostics-test-write file "fine")
        (gemini-companion-test-eventually (funcall answers))
        (should (equal '(nil) (funcall answers)))))))

;;;; Other files

(ert-deftest gemini-companion-diagnostics-names-the-callers-that-break ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server)
      '(("home.txt" "def one\n") ("a.txt" "uses other\nuses one\nuses one\n")
        ("b.txt" "def two\n") ("secret.txt" "uses one\n"))
    (let ((gemini-companion-excluded '("/secret\\.txt\\'"))
          (known (lambda ()
                   (gemini-companion-test-eventually
                     (seq-every-p
                      (lambda (name)
                        (with-current-buffer name
                          (gemini-companion-diagnostics--current)))
                      '("home.txt" "a.txt" "b.txt" "secret.txt"))))))
      (dolist (file '("a.txt" "b.txt" "secret.txt"))
        (gemini-companion-diagnostics-test-visit file))
      (funcall known)
      ;; It is open, and names the definition.
      (should (equal '("a.txt:2: error: one is unknown [test] (and 1 more there)")
                     (gemini-companion-diagnostics-test-edit
                      "home.txt" "def one\n" "def three\n")))
      (should (equal '("2: error: x is wrong [test]"
                       "b.txt:1: error: three is unknown [test]")
                     (progn
                       (funcall known)
                       (gemini-companion-diagnostics-test-edit
                        "b.txt" "def two\n" "uses three\n")
                       (funcall known)
                       (gemini-companion-diagnostics-test-edit
                        "home.txt" "def three\n" "def four\nerror x\n"))))
      (funcall known)
      ;; No news of the file itself, after a harmless edit.
      (should-not (gemini-companion-diagnostics-test-edit
                   "a.txt" "uses other\nuses one\nuses one\n"
                   "\nuses other\nuses one\nuses one\n")))))

(ert-deftest gemini-companion-diagnostics-changes-nothing-that-is-seen ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server)
      '(("home.txt" "fine"))
    (let* ((file (expand-file-name "a.txt"))
           (state (lambda ()
                    (list (buffer-list) (current-buffer) (point)
                          (mark t) (current-window-configuration)
                          (with-current-buffer (messages-buffer)
                            (buffer-string)))))
           answer before)
      (gemini-companion-diagnostics-test-write file "error x")
      (setq before (funcall state))
      (gemini-companion-diagnostics-after-edit file "" "error x"
                                          (lambda (text) (setq answer text)))
      (while (not answer)
        (accept-process-output nil 0.01))
      (should (seq-every-p #'identity
                           (seq-mapn (lambda (a b)
                                       (or (equal a b)
                                           (and (window-configuration-p a)
                                                ;; Obsolete since Emacs 29.
                                                (with-suppressed-warnings
                                                    ((obsolete compare-window-configurations))
                                                  (compare-window-configurations
                                                   a b)))))
                                     before (funcall state)))))))

;;;; Files that are visited

(ert-deftest gemini-companion-diagnostics-knows-the-errors-of-a-visited-file ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server)
      '(("home.txt" "fine"))
    (gemini-companion-diagnostics-test-write "a.txt" "error old\n")
    (gemini-companion-diagnostics-test-visit "a.txt")
    (gemini-companion-test-eventually (flymake-diagnostics))
    (should (equal '("3: error: x is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "a.txt" "error old\n" "\nerror old\nerror x\n")))
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "\nerror old\nerror x\n" "error old\n"))
    (should (equal '("2: error: y is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "a.txt" "error old\r\n" "error old\r\nerror y\r\n")))
    ;; Nothing is known of this text.
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "other\n" "error z\n"))
    ;; The user types.
    (let ((answers (gemini-companion-diagnostics-test-begin
                    "a.txt" "error z\n" "error z\nerror 9\n")))
      (insert "typed")
      (gemini-companion-test-eventually (funcall answers))
      (should (equal '(nil) (funcall answers))))
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "error z\nerror 9\n" "error z\nerror 9\nerror 10\n"))))

(ert-deftest gemini-companion-diagnostics-keeps-a-document-open-in-a-revert ()
  (gemini-companion-diagnostics-test-with
      (gemini-companion-diagnostics-test-server)
      '(("home.txt" "error old\n"))
    (gemini-companion-test-eventually
      (gemini-companion-diagnostics--current))
    (should (equal '("2: error: x is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "home.txt" "error old\n" "error old\nerror x\n")))
    (should (< 0 (gemini-companion-diagnostics--version)))
    ;; A revert by the user closes it; then there is no version.
    (let ((inhibit-message t))
      (revert-buffer t t t))
    (should (eql 0 (gemini-companion-diagnostics--version)))
    (gemini-companion-test-eventually
      (gemini-companion-diagnostics--current))
    (should (equal '("1: error: y is wrong [test]")
                   (gemini-companion-diagnostics-test-edit
                    "home.txt" "error old\nerror x\n"
                    "error y\nerror old\nerror x\n")))))

(defun gemini-companion-diagnostics-test-flymake (report &rest _)
  "Call REPORT with the errors of this buffer, later."
  (let ((buffer (current-buffer))
        (tick (buffer-chars-modified-tick)))
    (run-at-time
     0.1 nil
     (lambda ()
       (with-current-buffer buffer
         (when (= tick (buffer-chars-modified-tick))
           (save-excursion
             (goto-char (point-min))
             (let (found)
               (while (re-search-forward "\\(error\\|warning\\) \\(.+\\)" nil t)
                 (push (flymake-make-diagnostic
                        buffer (match-beginning 0) (match-end 0)
                        (intern (concat ":" (match-string 1)))
                        (match-string 2))
                       found))
               (funcall report found)))))))))

(ert-deftest gemini-companion-diagnostics-asks-other-backends-of-flymake ()
  (gemini-companion-diagnostics-test-with nil nil
    (gemini-companion-diagnostics-test-write "a.txt" "error old\n")
    (set-buffer (find-file-noselect "a.txt"))
    (add-hook 'flymake-diagnostic-functions
              #'gemini-companion-diagnostics-test-flymake nil t)
    (flymake-mode)
    (flymake-start)
    (gemini-companion-test-eventually (flymake-diagnostics))
    (should (equal '("3: error: x")
                   (gemini-companion-diagnostics-test-edit
                    "a.txt" "error old\n" "\nerror old\nerror x\n")))
    (should-not (gemini-companion-diagnostics-test-edit
                 "a.txt" "\nerror old\nerror x\n" "error old\nwarning y\n"))
    ;; One that does not report.
    (add-hook 'flymake-diagnostic-functions #'ignore nil t)
    (let ((gemini-companion-diagnostics-timeout 1))
      (should-not (gemini-companion-diagnostics-test-edit
                   "a.txt" "error old\nwarning y\n" "error z\n")))))

;;;; Flycheck

(ert-deftest gemini-companion-diagnostics-asks-flycheck ()
  (skip-unless (require 'flycheck nil t))
  (skip-unless (executable-find "bash"))
  (gemini-companion-diagnostics-test-with nil nil
    (gemini-companion-diagnostics-test-write "a.sh" "#!/bin/bash\necho\n")
    (set-buffer (find-file-noselect "a.sh"))
    (let ((flycheck-checkers '(sh-bash))
          (flycheck-check-syntax-automatically nil))
      (flycheck-mode)
      (flycheck-buffer)
      (gemini-companion-test-eventually
       (eq 'finished flycheck-last-status-change))
      (let ((broken "#!/bin/bash\necho\nif then\n")
            (fine "#!/bin/bash\necho\n"))
        (should (string-match-p
                 "\\`3: error: syntax error"
                 (car (gemini-companion-diagnostics-test-edit "a.sh" fine broken))))
        (should-not (gemini-companion-diagnostics-test-edit
                     "a.sh" broken
                     (string-replace "echo" "\necho" broken)))
        (should-not (gemini-companion-diagnostics-test-edit
                     "a.sh" (string-replace "echo" "\necho" broken) fine))))))

;;;; Real servers

(ert-deftest gemini-companion-diagnostics-knows-what-models-break ()
  (unless (require 'eglot nil t)
    (ert-skip "No Eglot"))
  (dolist (command '(("pylsp") ("ruff" "server")))
    (let ((program (expand-file-name (concat ".venv/bin/" (car command))
                                     gemini-companion-test-root))
          ;; The name is that of the file: an edit of a definition waits
          ;; for other files with its name.
          (fine (apply-partially
                 #'format "import os\n\nold\n\n\ndef %s():\n    return os.name
\n\nprint(%s())\n")))
      (skip-unless (file-executable-p program))
      (gemini-companion-diagnostics-test-with
          (cons program (cdr command))
          `(("home.py" "x = 1\n") ("a.py" ,(funcall fine "a" "a"))
            ("b.py" ,(funcall fine "b" "b")))
        (gemini-companion-diagnostics-test-visit "b.py")
        (gemini-companion-test-eventually
          (gemini-companion-diagnostics--current))
        (dolist (name '("a" "b"))
          (pcase-dolist
              (`(,old ,new ,expected)
               '(("import os\n" "" "6: error: .*ndefined name .os.")
                 ("def " "def renamed_" "10: error: .*ndefined name .[ab].")
                 ("())" "()" "1[01]: error: ")
                 ("    return" "return" "7: error: ")
                 ("old\n" "old + missing\n" "3: error: .*ndefined name .missing.")
                 ("old\n" "import sys\n\nold\n" nil)))
            (ert-info ((format "%s %s: %S" command name new))
              (let* ((file (concat name ".py"))
                     (fine (funcall fine name name))
                     (broken (string-replace old new fine))
                     (lines (gemini-companion-diagnostics-test-edit
                             file fine broken)))
                (if expected
                    (should (string-match-p (concat "\\`" expected) (car lines)))
                  (should-not lines))
                (should-not (gemini-companion-diagnostics-test-edit
                             file broken fine))))))))))

(provide 'gemini-companion-diagnostics-test)
;;; gemini-companion-diagnostics-test.el ends here
