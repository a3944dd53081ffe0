;;; gemini-companion-server-test.el --- Tests of restart and recovery  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The server is replaced, on request and after a crash, under the requests of
;; clients.  What else belongs to the server is in gemini-companion-test.el.

;;; Code:

(require 'gemini-companion-arrival)
(require 'gemini-companion-server-test-helper)

(defun gemini-companion-server-test-cli (name)
  "Start test/python/busy_cli.py, called NAME, and return its process."
  (let ((info (gemini-companion-server-info)))
    (make-process
     :name name :noquery t :connection-type 'pipe :coding 'utf-8-unix
     :buffer (generate-new-buffer " *busy*")
     :command (list (gemini-companion-test-python)
                    (expand-file-name "test/python/busy_cli.py"
                                      gemini-companion-test-root)
                    (number-to-string (plist-get info :port))
                    (plist-get info :token) name))))

(defun gemini-companion-server-test-output (process)
  "Return what PROCESS has printed."
  (with-current-buffer (process-buffer process) (buffer-string)))

(defun gemini-companion-server-test-accept-all ()
  "Accept each open diff, with an exclamation mark before its text."
  (dolist (diff (gemini-companion-diffs))
    (let ((proposal (gemini-companion-diff-proposal-buffer diff)))
      (when (buffer-live-p proposal)
        (with-current-buffer proposal
          (goto-char (point-min))
          (unless (looking-at-p "!")
            (insert "!")))
        (gemini-companion-diff-accept diff)))))

(defun gemini-companion-server-test-pid ()
  "Return the process ID of the server that can be called, or nil."
  (plist-get (gemini-companion-server-info) :pid))

(ert-deftest gemini-companion-restarts-lose-and-repeat-no-review ()
  "Clients send requests at any moment of a restart."
  (gemini-companion-test-with-mode '(("a" "text"))
    (let* ((inhibit-message t)
           (gemini-companion-review-arrival 'notify)
           (port (plist-get (gemini-companion-server-info) :port))
           (accepting (run-at-time 0 0.02
                                   #'gemini-companion-server-test-accept-all))
           (clients (mapcar #'gemini-companion-server-test-cli '("one" "two"))))
      (unwind-protect
          (progn
            (dotimes (_ (string-to-number (or (getenv "GC_RESTARTS") "8")))
              (let ((pid (gemini-companion-server-test-pid)))
                (gemini-companion-restart)
                (gemini-companion-test-eventually
                  (not (memql (gemini-companion-server-test-pid)
                              (list nil pid)))))
              (should (equal port (plist-get (gemini-companion-server-info)
                                             :port)))
              (should (equal '("" "")
                             (mapcar #'gemini-companion-server-test-output
                                     clients))))
            (mapc #'process-send-eof clients)
            (dolist (client clients)
              (gemini-companion-test-eventually
                (not (equal "" (gemini-companion-server-test-output client))))
              (let ((output (gemini-companion-server-test-output client)))
                (should (string-match "\\`DONE [0-9]+ \\([0-9.]+\\)\n" output))
                ;; A second after the end of the stream, and a busy machine.
                (should (< (string-to-number (match-string 1 output)) 10)))))
        (cancel-timer accepting)
        (dolist (client clients)
          (delete-process client)
          (kill-buffer (process-buffer client)))))))

(ert-deftest gemini-companion-crash-loses-no-proposal-that-emacs-was-sent ()
  "Emacs may be too busy to read it before the server is gone."
  (gemini-companion-test-with-mode '(("a" "text"))
    (let* ((gemini-companion-review-arrival 'notify)
           (client (gemini-companion-test-connect))
           (pid (gemini-companion-server-test-pid))
           (json-encoding-pretty-print nil))
      (process-send-string
       client (concat (json-encode
                       (list "openDiff" (list :filePath (expand-file-name "a")
                                              :newContent "new")))
                      "\n"))
      ;; Nothing is read meanwhile.
      (call-process "sh" nil nil nil "-c" (format "sleep 0.5; kill -9 %d" pid))
      (gemini-companion-test-eventually
        (not (memql (gemini-companion-server-test-pid) (list nil pid))))
      (should (= 1 (length (gemini-companion-diffs))))
      (should (string-search " -> adopt-diff "
                             (with-current-buffer (gemini-companion-events-buffer)
                               (buffer-string))))
      (delete-process client)
      (kill-buffer (process-buffer client)))))

;;; gemini-companion-server-test.el ends here
