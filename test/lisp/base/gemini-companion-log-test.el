;;; gemini-companion-log-test.el --- Tests of the event log  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-log)
(require 'gemini-companion-server-test-helper)

(ert-deftest gemini-companion-events-are-a-line-each-and-bounded ()
  (save-window-excursion
    (gemini-companion-log-record 'received 'open-diff '(7 (:id "x") "/a" "b"))
    (dotimes (n 1000)
      (gemini-companion-log-record 'sent 'warn
                                      (list n (make-string 10000 ?x))))
    (gemini-companion-log-record 'received 'open-diff '(8 (:id "x") "/a" "b"))
    (gemini-companion-events-buffer)
    (with-current-buffer "*gemini-companion events*"
      (should (< (count-lines (point-min) (point-max)) 1000))
      (should (< (buffer-size) 500000))
      (should-not (string-search " <- open-diff 7 " (buffer-string)))
      (dolist (line '("[0-9:.]+ -> warn 999 .*(10000 characters)\"$"
                      "[0-9:.]+ <- open-diff 8 (:id \"x\") \"/a\" \"(1 characters)\"$"))
        (should (string-match-p (concat "^" line) (buffer-string))))
      (kill-buffer))))

(ert-deftest gemini-companion-events-have-no-text-of-the-user ()
  (save-window-excursion
    (dolist (call '((received open-diff 7 (:id "x") "/a" "secret")
                    (received open-diff 8 (:id "x") "/a" (:file "/tmp/private"))
                    (sent adopt-diff 7 (:id "x") "/a" "secret")
                    (sent diff-accepted 7 "secret")
                    (sent diff-rejected 7 "secret")
                    (sent context-update ((:path "/a" :active t :selected-text "secret")))
                    (sent context-update nil)
                    (sent prompt "x" "secret")
                    (sent remote-write "host" "/a" "0a1b" "secret")))
      (gemini-companion-log-record (car call) (nth 1 call) (nthcdr 2 call)))
    (gemini-companion-events-buffer)
    (with-current-buffer "*gemini-companion events*"
      (should-not (string-search "secret" (buffer-string)))
      (dolist (event '(" <- open-diff 7 (:id \"x\") \"/a\" \"(6 characters)\"\n"
                       " <- open-diff 8 (:id \"x\") \"/a\" (:file \"/tmp/private\")\n"
                       " -> context-update \"(1 files)\"\n"
                       " -> context-update \"(0 files)\"\n"))
        (should (string-search event (buffer-string))))
      (kill-buffer))))

(ert-deftest gemini-companion-events-have-the-errors-of-what-is-guarded ()
  (save-window-excursion
    (ert-with-message-capture messages
      (gemini-companion-test-demoted
        (gemini-companion-log-guarded 'context (error "A secret"))
        (gemini-companion-log-guarded "Stopping" (error "Too late")))
      (should (string-search "Stopping: Too late" messages))
      (should-not (string-search "secret" messages)))
    (should (equal 1 (gemini-companion-log-guarded 'context 1)))
    (gemini-companion-events-buffer)
    (with-current-buffer "*gemini-companion events*"
      (dolist (event '("context" "Stopping"))
        (should (string-search (format " !! %s \"error\"" event)
                               (buffer-string))))
      (should-not (string-search "secret" (buffer-string)))
      (kill-buffer))))

(ert-deftest gemini-companion-events-leave-errors-to-the-debugger ()
  (let ((debug-on-error t)
        (entered nil))
    (let ((debugger (lambda (&rest _)
                      (setq entered t)
                      ;; Emacs enters the debugger again only after an event.
                      ;; ERT of Emacs 28 needs that for what it skips next.
                      (setq num-nonmacro-input-events
                            (1+ num-nonmacro-input-events)))))
      (gemini-companion-log-guarded 'context (error "A bug")))
    (should entered)))

;;; gemini-companion-log-test.el ends here
