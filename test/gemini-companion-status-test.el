;;; gemini-companion-status-test.el --- Tests of the status buffer  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion)
(require 'gemini-companion-status)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-status-test--with-status (table &rest body)
  "Show the status with TABLE, what to look at, and run BODY there."
  (declare (indent 1))
  `(let ((gemini-companion-diagnosis-checks ,table))
     (unwind-protect
         (save-window-excursion
           (gemini-companion-status)
           ,@body)
       (kill-buffer "*gemini-companion status*"))))

(ert-deftest gemini-companion-status-test-says-that-all-is-off ()
  (gemini-companion-status-test--with-status
      gemini-companion-diagnosis-checks
    (goto-char (point-min))
    (should (looking-at "gemini-companion is off"))
    (dolist (check gemini-companion-diagnosis-checks)
      (unless (equal "Project" (car check))
        (goto-char (point-min))
        (should (search-forward (concat " " (car check) ": ") nil t))))))

(ert-deftest gemini-companion-status-test-asks-programs-without-waiting ()
  (gemini-companion-status-test--with-status
      `(("Program" . ,(lambda (_directory ask)
                        (pcase (funcall ask "sh" "-c" "cat; echo said; exit 3")
                          ('nil (gemini-companion-finding 'wait "asking"))
                          (answer (gemini-companion-finding
                                   'good (format "%S" answer))))))
        ("None" . ,(lambda (_directory ask)
                     (gemini-companion-finding
                      'note (format "%S" (funcall ask "/no/program"))))))
    (should (string-search "Program: asking" (buffer-string)))
    (gemini-companion-test-eventually
      (string-search "Program: (3 . \"said\n\")" (buffer-string)))
    (should (string-match-p "None: ([1-9].*/no/program\\|No such file"
                            (buffer-string)))
    (should-not (gemini-companion-test-timers))))

(ert-deftest gemini-companion-status-test-button-acts-and-looks-again ()
  (let ((mended nil))
    (gemini-companion-status-test--with-status
        `(("Thing" . ,(lambda (&rest _)
                        (if mended
                            (gemini-companion-finding 'good "mended")
                          (gemini-companion-finding
                           'bad "broken" "Mend it."
                           (cons "Mend" (lambda () (setq mended t))))))))
      (goto-char (point-min))
      (search-forward "[Mend")
      (push-button (1- (point)))
      (should (string-search "Thing: mended" (buffer-string))))))

(ert-deftest gemini-companion-status-test-says-what-is-never-told ()
  (gemini-companion-test-with-folder '(("a" "") (".env" "SECRET=1"))
    (dolist (name '("a" ".env"))
      (with-current-buffer (find-file-noselect name)
        (gemini-companion-status-test--with-status nil
          (should (eq (equal name ".env")
                      (and (string-search
                            (concat (abbreviate-file-name folder)
                                    ".env is not told")
                            (buffer-string))
                           t))))))))

(ert-deftest gemini-companion-status-test-works-without-epc ()
  (with-temp-buffer
    (should (equal 0 (call-process
                      (expand-file-name invocation-name invocation-directory)
                      nil '(t nil) nil "-Q" "--batch"
                      "-L" (file-name-directory
                            (locate-library "gemini-companion-status.el"))
                      "-l" "gemini-companion-status"
                      "--eval" "(progn (gemini-companion-status)
                                       (princ (buffer-string)))")))
    (should (string-search "The package epc is not installed"
                           (buffer-string)))
    (should (string-search "Gemini CLI: " (buffer-string)))))

(ert-deftest gemini-companion-status-test-never-asks-another-machine ()
  (let* (asked
         (file-name-handler-alist
          (cons (cons "\\`/far:"
                      (lambda (operation &rest args)
                        (pcase operation
                          ('file-remote-p "/far:")
                          ((or 'expand-file-name 'abbreviate-file-name
                               'file-name-as-directory 'unhandled-file-name-directory)
                           (car args))
                          (_ (push (cons operation args) asked) nil))))
                file-name-handler-alist)))
    (with-temp-buffer
      (setq default-directory "/far:/folder/")
      (gemini-companion-status-test--with-status
          gemini-companion-diagnosis-checks
        (should (equal "/far:/folder/" default-directory))
        (should-not asked)))))

(ert-deftest gemini-companion-status-test-leaves-nothing-behind ()
  (let ((timers (length timer-list)))
    (gemini-companion-status-test--with-status
        `(("Program" . ,(lambda (_directory ask)
                          (funcall ask "sleep" "60")
                          (gemini-companion-finding 'wait "asking"))))
      (should (process-list)))
    (gemini-companion-test-eventually
      (not (seq-some (lambda (process)
                       (string-prefix-p "gemini-companion question"
                                        (process-name process)))
                     (process-list))))
    (should (= timers (length timer-list)))))

(provide 'gemini-companion-status-test)
;;; gemini-companion-status-test.el ends here
