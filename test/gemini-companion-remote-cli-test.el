;;; gemini-companion-remote-cli-test.el --- Tests of CLIs on other hosts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-cli-test-helper)
(require 'gemini-companion-remote-cli)
(require 'gemini-companion-roots)
(require 'gemini-companion-server-test-helper)

(ert-deftest gemini-companion-remote-cli-connects-no-local-directory ()
  (let ((default-directory temporary-file-directory)
        (gemini-companion-remote-directories nil))
    (should (string-prefix-p
             "A local CLI connects by itself"
             (gemini-companion-test-refusal (gemini-companion-connect))))))

(ert-deftest gemini-companion-remote-cli-disconnects-only-what-is-connected ()
  (let ((gemini-companion-remote-names-hosts nil)
        (default-directory temporary-file-directory))
    (should (equal "No remote host is connected"
                   (gemini-companion-test-refusal
                     (call-interactively #'gemini-companion-disconnect))))))

(ert-deftest gemini-companion-remote-cli-starts-once-while-its-place-connects ()
  (gemini-companion-run-test-with
    (let ((gemini-companion-remote-directories '(("/ssh:far:")))
          (answers '("" "/ssh:far:"))
          ;; It does not answer.
          (gemini-companion-remote-commands '((("ssh") "sh" "-c" "exec cat"))))
      (dotimes (_ 2)
        (with-temp-buffer
          (setq default-directory "/ssh:far:/srv/p/")
          (gemini-companion-run)))
      (gemini-companion-test-eventually (gemini-companion-server-ready-p))
      (should-not gemini-companion-run-test-started)
      (with-current-buffer "*gemini: ssh:far:p*"
        (term--update-term-menu t)      ; Emacs 28 calls it in each buffer
        (gemini-companion-disconnect "/ssh:far:")
        (should (string-prefix-p "Cannot connect to ssh:far" (buffer-string)))
        (should (string-search "Not started; g restarts it" header-line-format))
        (let ((overriding-local-map '(keymap (?c . gemini-companion-run))))
          (should (equal '(("Project" note "ssh:far, the host of this directory, \
is not connected" "Type c in a buffer of that host."))
                         (gemini-companion-part-findings
                          'roots "/ssh:far:/"))))
        (gemini-companion-run))
      (gemini-companion-server-receive 'remote-update
        '( :name "/ssh:far:" :state "connected" :port 1 :pid 1
           :roots (("/srv/p" "/srv"))))
      (should (equal 1 (length gemini-companion-run-test-started)))
      (push '("/ssh:near:") gemini-companion-remote-names-hosts)
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (&rest _) (pop answers))))
        (should-error (call-interactively #'gemini-companion-disconnect)
                      :type 'user-error)
        (call-interactively #'gemini-companion-disconnect))
      (should (equal '(("/ssh:near:")) gemini-companion-remote-names-hosts))
      (with-current-buffer "*gemini: ssh:far:srv*" (gemini-companion-run))
      (should (assoc "/ssh:far:" gemini-companion-remote-names-hosts)))))

(ert-deftest gemini-companion-remote-cli-refuses-with-the-remedy ()
  (gemini-companion-run-test-with
    (let ((default-directory "/ssh:elsewhere:/tmp/"))
      (pcase-dolist
          (`(,remedy . ,bindings)
           '(("customize `gemini-companion-remote-commands'"
              (gemini-companion-remote-commands))
             ("Copilot CLI cannot connect from another host"
              (gemini-companion-run-client . "copilot"))))
        (cl-progv (mapcar #'car bindings) (mapcar #'cdr bindings)
          (should (string-match-p remedy (gemini-companion-test-refusal
                                           (gemini-companion-run)))))
        (should-not gemini-companion-mode)))))

;;; gemini-companion-remote-cli-test.el ends here
