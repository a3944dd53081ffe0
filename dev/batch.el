;;; batch.el --- Set up an Emacs for the batch jobs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; To be loaded with -Q --batch in the repository, GC_ELPA naming the
;; directory of installed packages and GC_LISP, if set, that of the compiled
;; package.  The commands, for -f:
;;
;;   batch-install DIRECTORY    compile the package in DIRECTORY
;;   batch-compile FILE...    compile FILEs, warnings are errors
;;   batch-lint FILE...    package-lint, checkdoc, relint and unused public functions
;;   batch-test FILE... [NAME]...    run the tests in FILEs, or those NAMEs
;;   batch-differs FILE... [NAME]...    run those in FILEs that are listed in test/quick
;;                                      or test/differs, or those NAMEs
;;   batch-quick FILE...    run the tests in FILEs that are listed in test/quick
;;   batch-trace FILE...    run all tests in FILEs, and make that list
;;   batch-add-on-files ADD-ON...    print the names of the files of ADD-ONs

;;; Code:

(require 'ert)
(require 'package)
(require 'seq)
(require 'subr-x)

(declare-function checkdoc-current-buffer "checkdoc")
(declare-function gemini-companion-part-addon-parts "gemini-companion-part")
(declare-function gemini-companion-part-feature "gemini-companion-part")
(declare-function gemini-companion-part-start "gemini-companion-part")
(declare-function package-lint-buffer "ext:package-lint")
(declare-function relint-buffer "ext:relint")
(declare-function relint-diag-beg-pos "ext:relint")
(declare-function relint-diag-message "ext:relint")
(defvar checkdoc-common-verbs-wrong-voice)
(defvar checkdoc-create-error-function)
(defvar checkdoc-diagnostic-buffer)
(defvar package-lint-main-file)

(defvar batch-main-file (expand-file-name "gemini-companion.el")
  "The main file of the package.")

;; Emacs 29 gave them other names.  For each primitive that a test redefines, Emacs
;; would start a compiler, for half a second.
(dolist (name (if (< emacs-major-version 29)
                  '(native-comp-deferred-compilation comp-enable-subr-trampolines)
                '(native-comp-jit-compilation native-comp-enable-subr-trampolines)))
  (set name nil))
;; At the end of a keyboard macro, Emacs would ask again and again.
(advice-add 'read-string :before
            (lambda (prompt &rest _)
              (when (string-prefix-p "Please answer y or n." prompt)
                (error "No answer to: %s" prompt))))
;; Half of the time would be garbage collection, and with 64 MB still a tenth.
(setq gc-cons-threshold (* 256 1024 1024)
      load-prefer-newer t
      text-quoting-style 'grave
      package-user-dir (expand-file-name (getenv "GC_ELPA"))
      package-directory-list nil
      ;; Only the names matter: the lists were fetched at installation.
      package-archives '(("gnu" . "/") ("melpa" . "/")))
(package-initialize)
(push default-directory load-path)
(setq load-path (append (seq-filter #'file-directory-p
                                    (file-expand-wildcards
                                     (expand-file-name "test/lisp/*")))
                        (if (getenv "GC_LISP")
                            (list (getenv "GC_LISP"))
                          (file-expand-wildcards (expand-file-name "lisp/*")))
                        load-path))
(push (expand-file-name "test/lisp") load-path)
(push (expand-file-name "bench") load-path)

(defun batch--package-file-p (file)
  "Return non-nil if FILE is one of the package."
  (or (equal (expand-file-name file) batch-main-file)
      (string-prefix-p "lisp/" file)))

(defun batch--files ()
  "Return the file names on the command line, and remove them there."
  (prog1 command-line-args-left
    (setq command-line-args-left nil)))

;;;; Compile

(defun batch-install ()
  "Compile a directory as it is done on installation; exit with 1 if that fails.
All files are compiled by one Emacs, which has ever more loaded."
  (let ((directory (car (batch--files)))
        (byte-compile-error-on-warn t))
    (push directory load-path)
    (kill-emacs (if (seq-every-p #'byte-compile-file
                                 (directory-files directory t "\\.el\\'"))
                    0 1))))

(defun batch--compile (files)
  "Compile FILES to nowhere, print the warnings, and return t if there is none.
That is done in an Emacs of its own with nothing else loaded, as
the native compiler does it."
  (let* ((output (make-temp-file "compile" nil ".elc"))
         (code `(progn
                  (setq gc-cons-threshold ,gc-cons-threshold
                        load-path ',load-path
                        load-prefer-newer t
                        byte-compile-error-on-warn t
                        byte-compile-dest-file-function (lambda (_) ,output))
                  ;; .dir-locals.el keeps users from compiling the files for development.
                  (push 'no-byte-compile ignored-local-variables)
                  (kill-emacs (if (memq nil (mapcar #'byte-compile-file ',files))
                                  1 0)))))
    (with-temp-buffer
      ;; By its name, because it may be a script.
      (let ((status (call-process "emacs" nil t nil
                                  "-Q" "--batch" "--eval" (format "%S" code))))
        (delete-file output)
        ;; After `princ', a message begins with a newline.
        (unless (string-blank-p (buffer-string))
          (princ (buffer-string)))
        (eql status 0)))))

(defun batch-compile ()
  "Compile files to nowhere; exit with 1 if there is a warning.
Each file of the package is compiled alone, the others together."
  (let* ((files (batch--files))
         (groups (append (mapcar #'list (seq-filter #'batch--package-file-p files))
                         (delq nil (list (seq-remove #'batch--package-file-p files)))))
         (done 0)
         (status 0))
    (dolist (group groups)
      (unless (batch--compile group)
        (setq status 1))
      (message "compiled %d/%d" (setq done (+ done (length group)))
               (length files)))
    (kill-emacs status)))

;;;; Lint

(defun batch--package-lint ()
  "Return package-lint's findings in this buffer, (LINE TEXT) lists."
  (require 'package-lint)
  (let ((package-lint-main-file batch-main-file))
    (mapcar (pcase-lambda (`(,line ,_ ,_ ,text)) (list line text))
            (package-lint-buffer))))

(defun batch--checkdoc ()
  "Return checkdoc's findings in this buffer, (LINE TEXT) lists.
The name of a private function may say enough."
  (require 'checkdoc)
  (let* ((found nil)
         ;; Here these are nouns.
         (checkdoc-common-verbs-wrong-voice
          (seq-remove (lambda (verb)
                        (member (car verb) '("changes" "marks" "prompts" "turns")))
                      checkdoc-common-verbs-wrong-voice))
         (checkdoc-diagnostic-buffer " *checkdoc*")
         (checkdoc-create-error-function
          (lambda (text start _end &optional _unfixable)
            (unless (and (string-prefix-p "All variables and subroutines" text)
                         (save-excursion
                           (beginning-of-line)
                           (re-search-backward "^(" nil t)
                           (looking-at "(def[a-z]+ [^ ]*--")))
              (push (list (line-number-at-pos (or start (point-min))) text)
                    found))
            nil)))
    (checkdoc-current-buffer t)
    (nreverse found)))

(defun batch--relint ()
  "Return relint's findings in this buffer, (LINE TEXT) lists."
  (require 'relint)
  (mapcar (lambda (finding)
            (list (line-number-at-pos (relint-diag-beg-pos finding))
                  (relint-diag-message finding)))
          (relint-buffer (current-buffer))))

(defvar batch--uses nil
  "Hash table from the names in the repository to the files that have them.
It is nil until the first call of `batch--users'.")

(defun batch--users (name)
  "Return the files with NAME: Lisp, Python of dev and bench, and the manual."
  (unless batch--uses
    (setq batch--uses (make-hash-table :test #'equal))
    (dolist (file (append (file-expand-wildcards "*.el")
                          (file-expand-wildcards "doc/gemini-companion.org")
                          (seq-mapcat (lambda (directory)
                                        (directory-files-recursively
                                         directory "\\.\\(?:el\\|py\\)\\'"))
                                      '("lisp" "bench" "dev" "test"))))
      (with-temp-buffer
        (insert-file-contents file)
        (while (re-search-forward "gemini-companion-[[:alnum:]-]+" nil t)
          (let ((files (gethash (match-string 0) batch--uses)))
            (unless (equal file (car files))
              (puthash (match-string 0) (cons file files) batch--uses)))))))
  (gethash name batch--uses))

(defun batch--unused ()
  "Return public functions here that no other file has, (LINE TEXT) lists.
Commands are for the user."
  (let ((found nil))
    (goto-char (point-min))
    (while (re-search-forward
            "^(\\(?:cl-\\)?def\\(?:un\\|macro\\|subst\\|generic\\) \\([^ \n]+\\)" nil t)
      (let ((name (match-string 1))
            (line (line-number-at-pos)))
        (unless (or (string-search "--" name)
                    (cdr (batch--users name))
                    (re-search-forward "^ +(interactive\\_>"
                                       (save-excursion (end-of-defun) (point)) t))
          (push (list line (format "No other file uses %s; make it private" name))
                found))))
    (nreverse found)))

(defun batch--linters (file)
  "Return the linters that FILE must pass."
  (if (batch--package-file-p file)
      '(batch--package-lint batch--checkdoc batch--relint batch--unused)
    '(batch--checkdoc batch--relint)))

(defun batch--lint (file)
  "Print the findings of the linters in FILE; return t if none."
  (with-current-buffer (find-file-noselect file)
    (let ((findings (seq-mapcat #'funcall (batch--linters file))))
      (pcase-dolist (`(,line ,text) findings)
        (message "%s:%d: %s" file line text))
      (null findings))))

(defun batch-lint ()
  "Lint files; exit with 1 if there are findings."
  (kill-emacs (if (seq-every-p #'identity (mapcar #'batch--lint (batch--files)))
                  0 1)))

;;;; Test

(defun batch--visit-no-more (locate &rest args)
  "Call LOCATE with ARGS, and kill each new buffer."
  (let ((buffers (buffer-list)))
    (prog1 (apply locate args)
      (mapc #'kill-buffer (seq-difference (buffer-list) buffers #'eq)))))

(defvar gemini-companion-invariants-broken)
(declare-function gemini-companion-invariants-check "gemini-companion-invariants")

(defun batch--invariants (run test &rest args)
  "Call RUN with TEST and ARGS; the test fails if an invariant was broken in it."
  ;; The last test may have turned the mode off.
  (gemini-companion-part-start 'invariants)
  (prog1 (apply run test args)
    (when-let* ((broken (gemini-companion-invariants-check))
                ((ert-test-passed-p (ert-test-most-recent-result test))))
      (setf (ert-test-most-recent-result test)
            (make-ert-test-failed :condition (list 'ert-test-failed broken)
                                  :backtrace nil :infos nil)))))

(defun batch--check-invariants ()
  "Check in each test what must always be so, where the package has the file."
  (when (require 'gemini-companion-invariants nil t)
    (advice-add 'ert-run-test :around #'batch--invariants)))

(defun batch--compile-helpers ()
  "Compile the functions of the files that were loaded from test/lisp.
As source, what looks at each cons of the package took 8 s in place of one."
  (let ((directory (expand-file-name "test/lisp/")))
    (pcase-dolist (`(,file . ,definitions) load-history)
      (when (and file (string-prefix-p directory file))
        (dolist (name (mapcar #'cdr (seq-filter (lambda (definition)
                                                  (eq 'defun (car-safe definition)))
                                                definitions)))
          (let ((function (and (symbolp name) (symbol-function name))))
            (when (and (functionp function)
                       (not (symbolp function))
                       (not (subrp function))
                       (not (byte-code-function-p function)))
              (byte-compile name))))))))

(defun batch--test (selected)
  "Load files, run their part that is SELECTED, print the result and exit.
SELECTED is a function that returns an ERT selector.  Names after those of the
files limit that to these tests."
  ;; Emacs 30 visits the file of a failed test, which would make others fail.
  (when (fboundp 'ert-test-location)
    (advice-add 'ert-test-location :around #'batch--visit-no-more))
  (let ((names nil))
    (dolist (name (batch--files))
      (if (string-suffix-p ".el" name)
          (load (expand-file-name name) nil t)
        (push (intern name) names)))
    (batch--compile-helpers)
    (batch--check-invariants)
    (ert-run-tests-batch-and-exit (if names
                                      (cons 'member names)
                                    (funcall selected)))))

(defun batch-test ()
  "Run all of the files, or what is named after them."
  (batch--test #'always))

;;;; The quick tests

(defconst batch--quick-file (expand-file-name "test/quick")
  "File with the names of the quick tests, a line each.")

(defvar batch--functions nil
  "The functions of the package, a vector of symbols.")

(defvar batch--reached (make-hash-table)
  "Table whose keys are the numbers of the functions that a test has reached.")

(defun batch--set-functions ()
  "Set `batch--functions' to the functions in the sources of the package."
  (let ((found nil))
    (dolist (file (cons batch-main-file
                        (directory-files-recursively "lisp" "\\.el\\'")))
      (with-temp-buffer
        (insert-file-contents file)
        (while (re-search-forward "^(\\(?:cl-\\)?defun \\([^ \n]+\\)" nil t)
          (push (intern (match-string 1)) found))))
    (setq batch--functions (vconcat found))))

(defun batch--trace (number)
  "Record the next call of the function NUMBER; return nil if it is not loaded."
  (let ((function (aref batch--functions number))
        (name (intern (format "batch-%d" number))))
    (when (and (fboundp function)
               (not (autoloadp (symbol-function function))))
      ;; Tests search for the names of functions of the package in advice.
      (advice-add function :before
                  (lambda (&rest _)
                    (puthash number t batch--reached)
                    (advice-remove (aref batch--functions number) name))
                  `((name . ,name)))
      t)))

(defun batch--traced (all)
  "Run each test of ALL; return a list (NAME SECONDS NUMBERS) for what passed.
The NUMBERS are those of the functions that the test has reached."
  (let ((numbers (number-sequence 0 (1- (length batch--functions))))
        (runs nil))
    (dolist (test all)
      ;; What the last test has not called is traced, or not loaded yet.
      (mapc #'batch--trace (hash-table-keys batch--reached))
      (setq numbers (seq-remove #'batch--trace numbers))
      (clrhash batch--reached)
      (let* ((began (float-time))
             (passed (ert-test-passed-p (ert-run-test test)))
             (seconds (- (float-time) began)))
        (message "%s %s (%.2f s), %d functions" (if passed "traced" "skipped")
                 (ert-test-name test) seconds (hash-table-count batch--reached))
        (when passed
          (push (list (ert-test-name test) seconds
                      (hash-table-keys batch--reached))
                runs))))
    runs))

(defun batch--cover (results)
  "Return the names of some of RESULTS, the value of `batch--traced'.
Together, they reach each function that all of RESULTS reach.  Prefer those that
reach many in little time."
  (let ((left (make-hash-table))
        (chosen nil))
    (dolist (run results)
      (dolist (number (nth 2 run))
        (puthash number t left)))
    (while (< 0 (hash-table-count left))
      (let ((best nil)
            (most 0))
        (dolist (run results)
          (let ((worth (/ (float (seq-count (lambda (number) (gethash number left))
                                            (nth 2 run)))
                          (+ 0.02 (nth 1 run)))))
            (when (< most worth)
              (setq best run
                    most worth))))
        (push (car best) chosen)
        (dolist (number (nth 2 best))
          (remhash number left))))
    chosen))

(defun batch-trace ()
  "Run all that files test, and write the list of what is quick."
  (dolist (file (batch--files))
    (load (expand-file-name file) nil t))
  (batch--set-functions)
  (let* ((runs (batch--traced (ert-select-tests t t)))
         (chosen (batch--cover runs)))
    (with-temp-file batch--quick-file
      (dolist (name (sort (mapcar #'symbol-name chosen) #'string<))
        (insert name "\n")))
    (message "%d of %d tests, %d of %d seconds" (length chosen) (length runs)
             (apply #'+ (mapcar (lambda (name) (nth 1 (assq name runs))) chosen))
             (apply #'+ (mapcar #'cadr runs)))))

(defun batch--lines (file)
  "Return the first word of each line of FILE."
  (with-temp-buffer
    (insert-file-contents file)
    (mapcar (lambda (line) (car (split-string line)))
            (split-string (buffer-string) "\n" t))))

(defun batch--quick ()
  "Return an ERT selector of what the list of quick ones names in the loaded files."
  `(member ,@(seq-filter #'ert-test-boundp
                         (mapcar #'intern (batch--lines batch--quick-file)))))

(defun batch-quick ()
  "Run what files have of the list of what is quick."
  (batch--test #'batch--quick))

;;;; The tests of what differs between versions of Emacs

(defun batch--differs ()
  "Return an ERT selector of what is quick, or listed in test/differs.
That has names of tests, and of files with tests."
  (let* ((listed (batch--lines (expand-file-name "test/differs")))
         (selector `(or ,(batch--quick)
                        (satisfies
                         ,(lambda (test)
                            (let ((name (ert-test-name test)))
                              (or (member (symbol-name name) listed)
                                  (member (file-name-base (symbol-file name 'ert--test))
                                          listed))))))))
    (message "NOTE %d tests run on the first Emacs only"
             (length (ert-select-tests `(not ,selector) t)))
    selector))

(defun batch-differs ()
  "Run what files test of what differs between versions of Emacs."
  (batch--test #'batch--differs))

;;;; Add-ons

(defun batch-add-on-files ()
  "Print the names of the files of add-ons, and of those that need them.
Each name is a line, such as `prompt' or `send'."
  (require 'gemini-companion-part)
  (dolist (part (gemini-companion-part-addon-parts
                 (mapcar #'intern (batch--files))))
    (dolist (own (file-expand-wildcards
                  (format "lisp/*/%s.el" (gemini-companion-part-feature part))))
      (dolist (file (directory-files (file-name-directory own) nil "\\.el\\'"))
        (princ (format "%s\n" (string-remove-prefix "gemini-companion-"
                                                    (file-name-base file))))))))

(provide 'batch)
;;; batch.el ends here
