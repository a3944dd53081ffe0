;;; gemini-companion-undone-test.el --- Tests of what was undone  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-comment-test-helper)
(require 'gemini-companion-undone)

(defun gemini-companion-undone-test-ranges (session)
  "Return the (FIRST . LAST) lines of what was undone of SESSION."
  (mapcar (lambda (undone)
            (cons (gemini-companion-undone-first undone)
                  (gemini-companion-undone-last undone)))
          (gemini-companion-undone-of-session session)))

(ert-deftest gemini-companion-undone-is-known-until-it-is-there-again ()
  (gemini-companion-comment-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\nfour\nfive\n6\n7\n9\n" session)
    (gemini-companion-turn-page session)
    (gemini-companion-overview-next-sibling)
    (gemini-companion-overview-undo)
    (gemini-companion-overview-undo)
    ;; Removed lines have an end before their beginning.
    (should (equal '((4 . 5) (8 . 7)) (gemini-companion-undone-test-ranges session)))
    (should-not (gemini-companion-undone-of-session '(:id "another" :pid 2)))
    (with-current-buffer "a"
      (undo-boundary)
      (undo))
    (should (equal '((4 . 5)) (gemini-companion-undone-test-ranges session)))))

(ert-deftest gemini-companion-undone-is-reported-when-the-cli-writes-it-again ()
  (gemini-companion-comment-test-with `(("a" ,gemini-companion-test-lines))
    (let ((message-log-max nil))
      (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
      (gemini-companion-turn-page session)
      (gemini-companion-overview-undo)
      (ert-with-message-capture shown
        (gemini-companion-test-writes "a" "1\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
        (should-not (string-search "wrote again" shown))
        (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
        (should (string-search "wrote again what you have undone in a" shown))))))

(ert-deftest gemini-companion-undone-is-told-to-the-next-cli-if-its-own-has-exited ()
  (gemini-companion-comment-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-turn-page session)
    (gemini-companion-overview-undo)
    (let* ((next (plist-put (plist-put (copy-sequence session) :id "two") :pid 2))
           (qwen (plist-put (copy-sequence next) :client "qwen")))
      (should-not (gemini-companion-undone-of-session next))
      (gemini-companion-server-receive 'sessions-update (list next))
      (should (equal '((1 . 1)) (gemini-companion-undone-test-ranges next)))
      (should-not (gemini-companion-undone-of-session qwen)))))

(ert-deftest gemini-companion-undone-is-forgotten-once-told-and-as-the-mode-ends ()
  (gemini-companion-comment-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\nfour\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-turn-page session)
    (gemini-companion-overview-undo)
    (gemini-companion-overview-undo)
    (gemini-companion-undone-set-sent
     (list (car (gemini-companion-undone-of-session session))))
    (should (equal '((4 . 4)) (gemini-companion-undone-test-ranges session)))
    (gemini-companion-part-stop 'undone)
    (should-not (gemini-companion-undone-of-session session))))

(provide 'gemini-companion-undone-test)
;;; gemini-companion-undone-test.el ends here
