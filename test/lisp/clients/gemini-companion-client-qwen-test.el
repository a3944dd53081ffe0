;;; gemini-companion-client-qwen-test.el --- Tests of the adapter of Qwen Code  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-client-qwen)

(ert-deftest gemini-companion-client-qwen-lists-conversations-and-no-log ()
  :tags '(pure)
  (pcase-let ((`((,first ,_ ,title) (,second ,_ ,prompt))
               (gemini-companion-client-conversations
                "qwen" "a line of the log
{\"sessionId\":\"c4\",\"mtime\":1795366152296.9,\"prompt\":\"x\",\"customTitle\":\"Fix it\"}
{not JSON}
{\"sessionId\":\"c5\",\"mtime\":1795279752296.9,\"prompt\":\"Add a test\"}\n")))
    (should (equal '("c4" "Fix it" "c5" "Add a test")
                   (list first title second prompt)))))

(ert-deftest gemini-companion-client-qwen-shows-states-in-titles ()
  :tags '(pure)
  (pcase-dolist (`(,title . ,state)
                 '(("◐ Qwen - dir" . working) ("✳ Qwen - dir" . waiting)
                   ("Qwen - dir" . ready) ("Fix the login" . named)))
    (should (eq state (assoc-default title (gemini-companion-client-titles "qwen")
                                     #'string-match-p)))))

(ert-deftest gemini-companion-client-qwen-knows-coding-systems-of-this-emacs ()
  :tags '(pure)
  (dolist (coding (gemini-companion-client-codings "qwen"))
    (should (eq 0 (coding-system-eol-type coding)))))

(provide 'gemini-companion-client-qwen-test)
;;; gemini-companion-client-qwen-test.el ends here
