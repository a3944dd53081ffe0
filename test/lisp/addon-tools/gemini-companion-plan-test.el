;;; gemini-companion-plan-test.el --- Tests of plans that CLIs ask about  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-permission-test-helper)
(require 'gemini-companion-plan)

(defmacro gemini-companion-plan-test-with (&rest body)
  "Evaluate BODY while one CLI is connected, and nothing was killed."
  (declare (indent 0) (debug t))
  `(gemini-companion-permission-test-with
     (let ((kill-ring nil)
           (kill-ring-yank-pointer nil))
       ,@body)))

(defun gemini-companion-plan-test-ask (text &optional id &rest slots)
  "Ask about the plan TEXT, and return it.  ID and SLOTS are as for permissions."
  (apply #'gemini-companion-permission-test-ask nil id
         '(kind . "plan") '(tool . "Plan") `(plan . ,text) slots))

(defun gemini-companion-plan-test-comment (line text)
  "Comment by its key on LINE of the plan in the current buffer with TEXT."
  (goto-char (gemini-companion-plan-beginning gemini-companion-permission-here))
  (forward-line (1- line))
  (cl-letf (((symbol-function 'read-string) (lambda (&rest _) text)))
    (gemini-companion-permission-test-type "c")))

(ert-deftest gemini-companion-plan-is-shown-whole ()
  (gemini-companion-plan-test-with
    (let ((plan (gemini-companion-plan-test-ask "# Search\n\n1. One.\n2. Two.\n" "one")))
      (should (equal "Plan  # Search  +3 lines"
                     (substring-no-properties
                      (gemini-companion-permission-summary plan))))
      (gemini-companion-permission-test-see plan)
      (should (derived-mode-p 'gemini-companion-plan-mode))
      (should (string-search "\n\n# Search\n\n1. One.\n2. Two.\n" (buffer-string)))
      (should (string-search "yolo" (buffer-string))))))

(ert-deftest gemini-companion-plan-comments-reach-the-model-word-for-word ()
  (gemini-companion-plan-test-with
    (gemini-companion-permission-test-see
     (gemini-companion-plan-test-ask "# Search\n\n1. Use \u200bgrep.\n2. Two.\n" "one"))
    (let ((plan gemini-companion-permission-here))
      (gemini-companion-plan-test-comment 4 "last, \"ä\"  \\n 日本")
      (gemini-companion-plan-test-comment 3 "wrong")
      (gemini-companion-plan-test-comment 3 "not `grep`")
      (gemini-companion-plan-test-comment 1 "gone")
      (gemini-companion-plan-test-comment 1 "")
      (should (= 2 (length (gemini-companion-plan-comments plan))))
      (should (= 2 (length (overlays-in (point-min) (point-max)))))
      (goto-char (point-min))
      (should-error (gemini-companion-permission-test-type "c") :type 'user-error)
      (should-not gemini-companion-permission-test-answers)
      (gemini-companion-permission-test-draw)
      (gemini-companion-permission-test-type "r")
      (let ((answer (car gemini-companion-permission-test-answers)))
        (should (equal "deny" (plist-get answer :behavior)))
        (should (equal "Comments of the user on the plan:

> 1. Use \\u200Bgrep.
not `grep`

> 2. Two.
last, \"ä\"  \\n 日本

Revise the plan and present it again."
                       (plist-get answer :message))))
      ;; Only the comment that was removed.
      (should (equal '("gone") kill-ring))
      (should-not (gemini-companion-permission-test-open)))))

(ert-deftest gemini-companion-plan-is-not-approved-here ()
  (gemini-companion-plan-test-with
    (let ((plan (gemini-companion-plan-test-ask "One.\n" "one")))
      ;; A key that was typed before the plan was displayed.
      (gemini-companion-request-show plan)
      (set-buffer (window-buffer))
      (gemini-companion-permission-test-refused
        (gemini-companion-permission-test-type "r"))
      (gemini-companion-permission-test-see plan)
      (dolist (answer '(allow refuse))
        (gemini-companion-permission-test-refused
          (gemini-companion-request-answer plan answer)))
      (dolist (key '("a" "R"))
        (should (memq (key-binding key) '(nil undefined))))
      (gemini-companion-plan-test-comment 1 "mine")
      ;; What was typed is not lost.
      (should (string-search
               "has ended; your text is in the kill ring"
               (ert-with-message-capture messages
                 (gemini-companion-permission-test-type "RET")
                 messages)))
      (should (equal '(nil) gemini-companion-permission-test-answers))
      (should (string-search "> One.\nmine" (car kill-ring))))))

(ert-deftest gemini-companion-plan-of-others-is-a-row-with-its-text ()
  (gemini-companion-plan-test-with
    (gemini-companion-plan-test-ask
     "One.\n" nil '(arguments . [["summary" "Do\nit"]]))
    (let ((question (car (gemini-companion-requests))))
      (should (equal "asks  Plan  One." (substring-no-properties
                                         (gemini-companion-request-label question))))
      (with-temp-buffer
        (gemini-companion-request-insert question)
        (should (string-search "  summary: Do\\n\n    it\n" (buffer-string)))
        (should (string-search "\n\nOne.\n" (buffer-string)))))))

(ert-deftest gemini-companion-plan-comments-outlive-its-end ()
  (gemini-companion-plan-test-with
    (let ((plan (gemini-companion-plan-test-ask "One.\nTwo.\n" "one")))
      (gemini-companion-permission-test-see plan)
      (gemini-companion-plan-test-comment 2 "mine")
      ;; Escape in the terminal.
      (gemini-companion-server-receive 'withdrawn "one" 'ended)
      (should (string-search "> Two.\nmine" (car kill-ring)))
      ;; The user types another one meanwhile.
      (should-error (gemini-companion-plan-test-comment 1 "late") :type 'user-error))))

(ert-deftest gemini-companion-plan-of-any-text-shows-what-it-is ()
  (gemini-companion-plan-test-with
    (gemini-companion-permission-test-see
     (gemini-companion-plan-test-ask
      "One.\nTool: Shell\nApprove: a\n\u202eevil\u200b cafe\u0301 नमस्ते\u2028\r\t" "one"))
    (should-not (string-match-p "[\u202e\u200b\u2028\r\t]" (buffer-string)))
    ;; Accents are letters of prose.
    (should (string-search "cafe\u0301 नमस्ते" (buffer-string)))
    ;; Each line of the CLI has a bar, and no line of Emacs has one.
    (let ((start (gemini-companion-plan-beginning gemini-companion-permission-here)))
      (should-not (text-property-not-all (point-min) start 'line-prefix nil))
      (should-not (text-property-any start (point-max) 'line-prefix nil))
      (goto-char start)
      (should (= 1 (how-many "^Tool: " (point-min) start))))
    (dolist (text (list (make-string 300000 ?x) (make-string 300000 ?\n)
                        (apply #'concat (make-list 30000 "- [a](b) *c*\n"))))
      (gemini-companion-server-receive 'withdrawn "one" 'ended)
      (gemini-companion-state-report gemini-companion-permission-test-session
                                     'progress nil)
      (setq gemini-companion-permission-test-answers nil)
      (let ((start (float-time)))
        (gemini-companion-plan-test-ask text "two")
        (with-temp-buffer
          (gemini-companion-request-insert (car (gemini-companion-requests)))
          (should (< (- (float-time) start) 60))
          (should (string-search "more characters are not shown" (buffer-string)))
          (should (< (buffer-size) 110000)))
        ;; It was given back to the terminal.
        (should (equal '(nil) gemini-companion-permission-test-answers))))))

;;; gemini-companion-plan-test.el ends here
