;;; gemini-companion-choice-test.el --- Tests of choices  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-choice)
(require 'gemini-companion-test-helper)

(defconst gemini-companion-choice-test-clis '(("Qwen Code" . 2) ("Gemini CLI" . 1))
  "Choices of which the first one is not that of the alphabet.")

(defun gemini-companion-choice-test-read (answer)
  "Return the value of a choice whose name is the value of ANSWER.
ANSWER is a function of the completion table and the default.  Keys in the
minibuffer would leave a window of completions to later tests."
  (cl-letf (((symbol-function 'completing-read)
             (lambda (_prompt table _predicate _match _input _history default)
               (funcall answer table default))))
    (gemini-companion-choice-read "Start" gemini-companion-choice-test-clis
                                  'gemini-companion-cli)))

(ert-deftest gemini-companion-choice-completes-a-name-in-any-case ()
  (should (equal 1 (gemini-companion-choice-test-read
                    (lambda (table _default) (try-completion "g" table))))))

(ert-deftest gemini-companion-choice-is-the-first-one-by-default ()
  (should (equal 2 (gemini-companion-choice-test-read
                    (lambda (_table default) default)))))

(ert-deftest gemini-companion-choice-has-a-category-an-order-and-annotations ()
  (cl-letf* ((metadata nil)
             ((symbol-function 'completing-read)
              (lambda (_prompt table &rest _)
                (setq metadata (completion-metadata "" table nil))
                "Gemini CLI")))
    (should (equal 1 (gemini-companion-choice-read
                      "Start" gemini-companion-choice-test-clis
                      'gemini-companion-cli
                      (lambda (number) (and (eq 1 number) "ready")))))
    (should (eq 'gemini-companion-cli
                (completion-metadata-get metadata 'category)))
    (should (equal '("b" "a")
                   (funcall (completion-metadata-get metadata 'display-sort-function)
                            '("b" "a"))))
    (let ((annotate (completion-metadata-get metadata 'annotation-function)))
      (should (equal "  ready" (funcall annotate "Gemini CLI")))
      (should-not (funcall annotate "Qwen Code")))))

;; `y-or-n-p' takes SPC for a yes, and a minibuffer RET for its default.
(ert-deftest gemini-companion-choice-key-is-none-that-was-typed-for-another-one ()
  (let ((keys '(?\s ?\r ?Y ?x ?n)))
    (cl-letf (((symbol-function 'read-char-from-minibuffer)
               (lambda (prompt chars)
                 (should (equal "Undo 2 changes? (y, n, ?) " prompt))
                 (should (equal '(?y ?n ??) chars))
                 (pop keys))))
      (should (eq ?n (gemini-companion-choice-key "Undo 2 changes?" '(?y ?n ??)))))
    (should-not keys)))

;; It was typed before the question, which the user has not seen.
(ert-deftest gemini-companion-choice-is-no-key-that-was-typed-ahead ()
  (let ((read (lambda (&rest _) (or (pop unread-command-events) ?n))))
    (cl-letf (((symbol-function 'read-char-from-minibuffer) read)
              ((symbol-function 'y-or-n-p) (lambda (&rest _) (eq ?y (funcall read))))
              ((symbol-function 'yes-or-no-p) (lambda (&rest _) (eq ?y (funcall read)))))
      (pcase-dolist (`(,ask . ,answer)
                     `((,(lambda () (gemini-companion-choice-key "Run it?" '(?y ?n))) . ?n)
                       (,(lambda () (gemini-companion-choice-y-or-n-p "Run it? ")))
                       (,(lambda () (gemini-companion-choice-yes-or-no-p "Run it? ")))))
        (setq unread-command-events (list ?y))
        (should (eq answer (funcall ask)))))))

;;; gemini-companion-choice-test.el ends here
