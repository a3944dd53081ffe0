;;; gemini-companion-clients-test.el --- Tests of the CLIs together  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A fourth CLI, which only the tests have, works by its adapter alone.

;;; Code:

(require 'gemini-companion-part)
(eval-and-compile
  (when (gemini-companion-part-load 'addon-terminal)
    (require 'gemini-companion-cli-test-helper)))
(require 'gemini-companion-client-fourth-test-helper)
(require 'gemini-companion-client-settings nil t)
(require 'gemini-companion-ignore)
(require 'gemini-companion-proposal)
(require 'gemini-companion-resume nil t)
(require 'gemini-companion-state nil t)
(require 'gemini-companion-status nil t)

(ert-deftest gemini-companion-clients-name-this-emacs-in-an-environment ()
  (gemini-companion-client-test-with-fourth
    (should (equal '("GEMINI_CLI_IDE_SERVER_PORT=4711" "GEMINI_CLI_IDE_PID=12"
                     "QWEN_CODE_IDE_SERVER_PORT=4711"
                     "GEMINI_COMPANION_PORT=4711" "FOURTH_PORT=4711")
                   (gemini-companion-clients-variables 4711 12)))))

(ert-deftest gemini-companion-clients-are-named-in-phrases ()
  (should (equal "/ide enable, or /ide in Copilot CLI"
                 (gemini-companion-clients-search)))
  (gemini-companion-client-test-with-fourth
    (should (equal "/ide enable, or /ide in Copilot CLI, or /connect in Fourth CLI"
                   (gemini-companion-clients-search))))
  (should (equal "Gemini CLI and Qwen Code"
                 (gemini-companion-clients-titles '("gemini" "qwen")))))

(ert-deftest gemini-companion-clients-without-a-method-have-nothing ()
  (gemini-companion-test-needs-add-on 'terminal)
  (dolist (client '(nil "other" other))
    (should (equal "the CLI" (gemini-companion-client-title client)))
    (should-not (gemini-companion-client-titles client))
    (should-not (gemini-companion-client-home client))
    (should-not (gemini-companion-client-has-run-p client))
    (should-not (gemini-companion-client-conversations-arguments client))
    (should-not (gemini-companion-client-settings-files client "/"))
    (should-not (string-match-p (gemini-companion-client-unreadable client) "a"))))

(ert-deftest gemini-companion-clients-without-a-search-command-have-a-remedy ()
  (gemini-companion-test-needs-add-on 'terminal)
  (let ((gemini-companion-clients '("bare" "gemini")))
    (should (equal "/ide enable" (gemini-companion-clients-search))))
  (with-temp-buffer
    (setq gemini-companion-terminal-cli
          (gemini-companion-terminal-cli-make
           :client "bare" :directory nil :number 1))
    (should (string-search "Not connected; start it again"
                           (gemini-companion-cli--hint-text)))))

(ert-deftest gemini-companion-clients-show-their-state-in-titles ()
  (gemini-companion-test-needs-add-on 'terminal)
  (gemini-companion-client-test-with-fourth
    (gemini-companion-test-with-directory '(("a" "old\n"))
      (with-temp-buffer
        (let* ((kill-buffer-query-functions nil)
               (process (gemini-companion-test-start-cat))
               (session (gemini-companion-session-make
                         :id "1" :client "fourth" :directory directory
                         :pid (process-id process))))
          (gemini-companion-test-with-parts '(cli state edit proposal) session
            (should (equal "Fourth CLI" (gemini-companion-session-title session)))
            (pcase-dolist (`(,title . ,state)
                           '(("other" . unknown) ("idle" . ready)
                             ("busy" . working) ("asks" . waiting)))
              (funcall (process-filter process) process
                       (format "\e]0;%s\a" title))
              (should (eq state (gemini-companion-session-state session))))
            (should (equal "run /connect in Fourth CLI now"
                           (gemini-companion-session-reconnect "now")))
            (gemini-companion-proposal-open 1 session (expand-file-name "a")
                                            "new\n")
            (should (string-search
                     "Fourth CLI discards its other edits"
                     (with-current-buffer "*Messages*"
                       (gemini-companion-edit-reject
                        (car (gemini-companion-edits-open)))
                       (buffer-substring (max (point-min) (- (point-max) 500))
                                         (point-max)))))))))))

(ert-deftest gemini-companion-clients-run-and-resume-only-what-can-be-resumed ()
  (gemini-companion-test-needs-add-on 'terminal)
  (gemini-companion-client-test-with-fourth
    (gemini-companion-run-test-with-mode
      (let ((gemini-companion-run-client "fourth")
            (gemini-companion-run-commands '(("fourth" . "cat"))))
        (unwind-protect
            (progn
              (gemini-companion-run)
              (gemini-companion-test-eventually gemini-companion-run-test-started)
              (should (equal (format "*fourth: %s*" name) (buffer-name)))
              (should (equal (format "%s" (plist-get (gemini-companion-server-info)
                                                     :port))
                             (getenv "FOURTH_PORT")))
              (should (string-search "Fourth CLI"
                                     (cadr (should-error (gemini-companion-resume)
                                                         :type 'user-error)))))
          (dolist (buffer (buffer-list))
            (when (string-prefix-p "*fourth: " (buffer-name buffer))
              (let ((kill-buffer-query-functions nil))
                (kill-buffer buffer)))))))))

(ert-deftest gemini-companion-clients-have-settings-and-ignore-files ()
  (gemini-companion-test-needs-add-on 'terminal)
  (gemini-companion-client-test-with-fourth
    (gemini-companion-test-with-directory '(("a" "") ("b" "")
                                            (".fourthignore" "b\n"))
      (with-environment-variables (("FOURTH_HOME" directory))
        (pcase-let ((`((,mark ,problem ,remedy . ,_))
                     (gemini-companion-client-settings-findings "fourth" "/")))
          (should (equal '(bad "The editor is off in Fourth CLI")
                         (list mark problem)))
          (should (string-search "/editor on" remedy)))
        (gemini-companion-test-write "settings.json" "{\"editor\": {\"on\": true}}")
        (should (eq 'good (caar (gemini-companion-client-settings-findings
                                 "fourth" "/"))))
        (should (gemini-companion-ignore-p (expand-file-name "b")))
        (should-not (gemini-companion-ignore-p (expand-file-name "a")))
        (should (equal "Type /connect there."
                       (nth 2 (gemini-companion-cli-finding "fourth" nil))))))))

(ert-deftest gemini-companion-clients-are-in-the-status ()
  (gemini-companion-test-needs-add-on 'pages)
  (gemini-companion-client-test-with-fourth
    (gemini-companion-test-with-directory nil
      (with-environment-variables (("FOURTH_HOME" directory))
        (let ((gemini-companion-run-commands '(("fourth" . "cat"))))
          (should (member "fourth" (gemini-companion-cli-clients)))
          (save-window-excursion
            (unwind-protect
                (progn
                  (gemini-companion-status)
                  (should (string-search "Fourth CLI of unknown version"
                                         (buffer-string))))
              (kill-buffer "*gemini-companion status*")))
          (should-not (gemini-companion-client-hooks "fourth")))))))

;;;; No other file names a CLI

(defun gemini-companion-clients-test-named (form)
  "Return the symbols and strings in FORM that name a CLI, but in docstrings."
  (cond
   ((or (stringp form) (symbolp form))
    (let ((case-fold-search t)
          (text (replace-regexp-in-string "gemini[-_]companion[a-z_-]*" ""
                                          (format "%s" form))))
      ;; The names of buffers and of the menu are those of the package.
      (and (string-match-p "gemini\\|qwen\\|copilot" text)
           (not (string-match-p "\\`\\(?:\\*gemini\\(?:\\*\\| .*\\)\\|Gemini\\)\\'" text))
           (list form))))
   ((vectorp form)
    (seq-mapcat #'gemini-companion-clients-test-named form))
   ((consp form)
    (let ((parts form)
          (named nil))
      (when (memq (car form) '( defcustom defconst defgroup defvar defvar-local
                                defface))
        (setq parts (append (seq-take form 3) (nthcdr 4 form))))
      (when (memq (car form) '( defun defmacro cl-defun cl-defgeneric cl-defmethod
                                cl-defstruct define-minor-mode define-derived-mode))
        (setq parts (seq-difference form (seq-take (seq-filter #'stringp form) 1))))
      (while (consp parts)
        (setq named (append named (gemini-companion-clients-test-named
                                   (pop parts)))))
      (append named (gemini-companion-clients-test-named parts))))))

(ert-deftest gemini-companion-clients-are-named-in-their-own-files-only ()
  (dolist (file (gemini-companion-test-sources))
    (unless (string-match-p
             (format "/gemini-companion-client\\(?:s\\|-%s\\)?\\.el\\'"
                     (regexp-opt gemini-companion-clients))
             file)
      (ert-info (file)
        (with-temp-buffer
          (insert-file-contents file)
          (condition-case nil
              (while t
                (should-not (gemini-companion-clients-test-named
                             (read (current-buffer)))))
            (end-of-file nil)))))))

(provide 'gemini-companion-clients-test)
;;; gemini-companion-clients-test.el ends here
