;;; gemini-companion-run-test.el --- Tests of Gemini CLI in a terminal  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Which buffer, folder and environment Gemini CLI gets, with `cat' in its
;; place and the real server.  test/e2e has the real CLI in real terminals.

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-test-helper)
(require 'project)

(defvar gemini-companion-run-test-started nil
  "What was started: lists of command, folder and port, the last first.")

(defun gemini-companion-run-test-terminal (command)
  "Run COMMAND in the current buffer, and note that."
  (push (list command default-directory
              (getenv-internal "GEMINI_CLI_IDE_SERVER_PORT"
                               process-environment)
              (getenv-internal "GC_TEST_OF_OTHERS" process-environment))
        gemini-companion-run-test-started)
  (make-process :name "gemini" :buffer (current-buffer) :command command
                :connection-type 'pipe :noquery t))

(defmacro gemini-companion-run-test-with (&rest body)
  "Run BODY in a project whose Gemini CLI is `cat'."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-folder '(("a" "text") (".git" ""))
     (let* ((project-find-functions
             (list (lambda (_) (cons 'transient folder))))
            (temporary (make-temp-file "gemini-companion-tmp" t))
            (process-environment (cons (concat "TMPDIR=" temporary "/")
                                       process-environment))
            (gemini-companion-server-command
             (list (expand-file-name (or (getenv "GC_PYTHON")
                                         ".venv/bin/python")
                                     gemini-companion-server-directory)
                   "-m" "gemini_companion_epc"))
            (gemini-companion-gemini-command "cat")
            (gemini-companion-terminal #'gemini-companion-run-test-terminal)
            (gemini-companion-run-test-started nil)
            (name (file-name-nondirectory (directory-file-name folder))))
       (ignore name)
       (save-window-excursion
         (unwind-protect
             (progn ,@body)
           (gemini-companion-mode -1)
           (gemini-companion-test-eventually
             (not (seq-find (lambda (process)
                              (string-prefix-p "gemini-companion"
                                               (process-name process)))
                            (process-list))))
           (dolist (buffer (buffer-list))
             (when (string-prefix-p "*gemini: " (buffer-name buffer))
               (let ((kill-buffer-query-functions nil))
                 (kill-buffer buffer))))
           (delete-directory temporary t))))))

(defmacro gemini-companion-run-test-with-mode (&rest body)
  "Run BODY as above, with the mode on and ready."
  (declare (indent 0) (debug t))
  `(gemini-companion-run-test-with
     (gemini-companion-mode 1)
     (gemini-companion-test-eventually (gemini-companion-server-ready-p))
     ,@body))

(ert-deftest gemini-companion-run-turns-the-mode-on-and-waits-for-it ()
  (gemini-companion-run-test-with
    (gemini-companion-run)
    (should gemini-companion-mode)
    (should (equal (format "*gemini: %s*" name) (buffer-name)))
    (should (string-match-p "starts here when" (buffer-string)))
    (should-not gemini-companion-run-test-started)
    (let ((buffer (current-buffer)))
      (gemini-companion-run)
      (should (eq buffer (current-buffer))))
    (gemini-companion-test-eventually gemini-companion-run-test-started)
    (should (equal (list (list (list (executable-find "cat")) folder
                               (number-to-string
                                (plist-get (gemini-companion-server-info)
                                           :port))
                               nil))
                   gemini-companion-run-test-started))))

(ert-deftest gemini-companion-run-starts-in-the-root-of-the-project ()
  (gemini-companion-run-test-with-mode
    (make-directory "below")
    (let ((default-directory (expand-file-name "below/")))
      (dired default-directory)
      (gemini-companion-run)
      (kill-buffer (get-buffer "below")))
    (should (equal folder (nth 1 (car gemini-companion-run-test-started))))))

(ert-deftest gemini-companion-run-gives-the-environment-of-the-buffer ()
  (gemini-companion-run-test-with-mode
    (with-temp-buffer
      (setq-local process-environment (list "GC_TEST_OF_OTHERS=x"
                                            "PATH=/usr/bin:/bin"))
      (gemini-companion-run))
    (let ((started (car gemini-companion-run-test-started)))
      (should (equal "x" (nth 3 started)))
      (should (equal (number-to-string
                      (plist-get (gemini-companion-server-info) :port))
                     (nth 2 started))))))

(ert-deftest gemini-companion-run-again-goes-to-it ()
  (gemini-companion-run-test-with-mode
    (gemini-companion-run)
    (let ((buffer (current-buffer)))
      (switch-to-buffer "*scratch*")
      (with-temp-buffer
        (gemini-companion-run))
      (should (eq buffer (window-buffer)))
      (should (equal 1 (length gemini-companion-run-test-started))))))

(ert-deftest gemini-companion-run-starts-another-on-request ()
  (gemini-companion-run-test-with-mode
    (gemini-companion-run)
    (gemini-companion-run '(4))
    (should (equal (format "*gemini: %s (2)*" name) (buffer-name)))
    (gemini-companion-run '(4))
    (should (equal (format "*gemini: %s (3)*" name) (buffer-name)))
    (gemini-companion-run 2)
    (should (equal (format "*gemini: %s (2)*" name) (buffer-name)))
    (should (equal 3 (length gemini-companion-run-test-started)))))

(ert-deftest gemini-companion-run-says-that-it-has-ended-and-starts-again ()
  (gemini-companion-run-test-with-mode
    (gemini-companion-run)
    (let ((buffer (current-buffer)))
      (process-send-eof (get-buffer-process buffer))
      (gemini-companion-test-eventually
        (buffer-local-value 'header-line-format buffer))
      (should (string-match-p "Gemini CLI: finished; g again, q leave"
                              (string-join header-line-format)))
      (should (eq 'gemini-companion-run (key-binding "g")))
      (gemini-companion-run)
      (should-not (buffer-live-p buffer))
      (should (equal (format "*gemini: %s*" name) (buffer-name)))
      (should-not header-line-format)
      (should (equal 2 (length gemini-companion-run-test-started))))))

(ert-deftest gemini-companion-run-says-that-the-server-did-not-start ()
  (gemini-companion-run-test-with
    (let ((gemini-companion-server-command '("sh" "-c" "exit 1"))
          told)
      (cl-letf (((symbol-function 'display-warning)
                 (lambda (&rest _) (setq told t))))
        (gemini-companion-run)
        (let ((buffer (current-buffer)))
          (gemini-companion-test-eventually told)
          (should (string-match-p "The server did not start; g again"
                                  (with-current-buffer buffer
                                    (string-join header-line-format))))
          (should-not gemini-companion-run-test-started)))
      (setq gemini-companion-server-command
            (list (expand-file-name (or (getenv "GC_PYTHON")
                                        ".venv/bin/python")
                                    gemini-companion-server-directory)
                  "-m" "gemini_companion_epc"))
      (gemini-companion-run)
      (gemini-companion-test-eventually gemini-companion-run-test-started))))

(ert-deftest gemini-companion-run-hides-a-selected-side-window ()
  (gemini-companion-run-test-with-mode
    (let ((gemini-companion-run-side-window 'bottom))
      (gemini-companion-run)
      (should (eq 'bottom (window-parameter nil 'window-side)))
      (gemini-companion-run)
      (should-not (window-parameter nil 'window-side))
      (should (equal 1 (length (window-list))))
      (gemini-companion-run)
      (should (eq 'bottom (window-parameter nil 'window-side)))
      (should (equal 1 (length gemini-companion-run-test-started))))))

(defconst gemini-companion-run-test-terminals
  '(("eat.el" "(define-derived-mode eat-mode fundamental-mode \"eat\")
(defun eat-exec (&rest _)) (provide 'eat)")
    ("vterm.el" "(define-derived-mode vterm-mode fundamental-mode \"vterm\"
  (process-put (start-process \"vterm\" (current-buffer) \"cat\")
               'adjust-window-size-function #'ignore))
(provide 'vterm)")
    ("vterm-module.so" ""))
  "Files with libraries that do no more than what is asked of them.")

(ert-deftest gemini-companion-run-takes-the-best-terminal-that-is-whole ()
  (require 'loadhist)
  (require 'term)
  (gemini-companion-run-test-with-mode
    (let ((gemini-companion-terminal nil)
          (load-path (list folder))
          (load-suffixes '(".el" ".so"))
          (load-file-rep-suffixes '("")))
      (unwind-protect
          (pcase-dolist (`(,file ,mode)
                         '((nil term-mode)
                           ("eat.el" eat-mode)
                           ;; Loading it now would ask whether to compile.
                           ("vterm.el" eat-mode)
                           ("vterm-module.so" vterm-mode)))
            (when file
              (write-region (cadr (assoc file gemini-companion-run-test-terminals))
                            nil (expand-file-name file folder) nil 'silent))
            (gemini-companion-run '(4))
            (should (eq mode major-mode))
            (let ((kill-buffer-query-functions nil))
              (kill-buffer)))
        (dolist (feature '(eat vterm))
          (when (featurep feature)
            (unload-feature feature t)))))))

(ert-deftest gemini-companion-run-refuses-with-the-cure ()
  (gemini-companion-run-test-with
    (pcase-dolist
        (`(,cure . ,call)
         `(("npm install -g @google/gemini-cli"
            . ,(lambda ()
                 (let ((gemini-companion-gemini-command "no-such-gemini"))
                   (gemini-companion-run))))
           ("package-install RET eat"
            . ,(lambda ()
                 (let ((gemini-companion-terminal 'eat)
                       (load-path (seq-remove (lambda (folder)
                                                (string-search "eat" folder))
                                              load-path)))
                   (gemini-companion-run))))
           ("local buffer"
            . ,(lambda ()
                 (let ((default-directory "/ssh:elsewhere:/tmp/"))
                   (gemini-companion-run))))
           ("go to another buffer"
            . ,(lambda ()
                 (let ((project-find-functions nil)
                       (default-directory "/no/such/folder/"))
                   (gemini-companion-run))))))
      (should (string-match-p cure (cadr (should-error (funcall call)
                                                       :type 'user-error))))
      (should-not gemini-companion-mode)
      (should-not (get-buffer (format "*gemini: %s*" name))))))

(ert-deftest gemini-companion-run-starts-nothing-after-the-answer-no ()
  (gemini-companion-run-test-with
    (let ((gemini-companion-server-command nil)
          (gemini-companion-server-directory folder)
          (gemini-companion-install-directory (expand-file-name "none/"))
          (noninteractive nil)
          (after-init-time t))
      (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
        (gemini-companion-run))
      (should-not gemini-companion-mode)
      (should-not (get-buffer (format "*gemini: %s*" name))))))

;;; gemini-companion-run-test.el ends here
