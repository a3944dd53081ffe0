;;; gemini-companion-view-test.el --- Tests of the protocol of views  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-view)

(cl-defstruct (gemini-companion-view-test-view
               (:include gemini-companion-view)
               (:constructor gemini-companion-view-test-make)
               (:copier nil))
  "A view that shows only the proposal, and NUMBER, of the current hunk."
  (number 0))

(cl-defmethod gemini-companion-view-hunk ((view gemini-companion-view-test-view))
  "Return the current hunk of VIEW."
  (nth (gemini-companion-view-test-view-number view)
       (gemini-companion-view-hunks view)))

(cl-defmethod gemini-companion-view-move
  ((view gemini-companion-view-test-view) count)
  "Move by COUNT hunks in VIEW."
  (cl-incf (gemini-companion-view-test-view-number view) count))

(cl-defmethod gemini-companion-view-mark
  ((_ gemini-companion-view-test-view))
  "Do nothing.")

(cl-defmethod gemini-companion-view-close
  ((_ gemini-companion-view-test-view))
  "Do nothing.")

(ert-deftest gemini-companion-view-may-be-one-of-another-package ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n5\n"))
    (setq gemini-companion-review-arrival 'notify)
    (let ((diff (gemini-companion-test-open "a" "one\n2\n3\n4\nfive\n")))
      (gemini-companion-edit-set-view
       diff (gemini-companion-view-test-make
             :edit diff
             :buffers (list (gemini-companion-edit-proposal-buffer diff))
             :hunks (gemini-companion-edit-hunks diff)))
      (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
        (gemini-companion-review-next-hunk)
        (gemini-companion-review-toggle-hunk)
        (gemini-companion-edit-accept))
      (should (equal '((1 accepted "one\n2\n3\n4\n5\n")) outcomes)))))

;;; gemini-companion-view-test.el ends here
