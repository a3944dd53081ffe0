;;; gemini-companion-view-test.el --- Tests of the protocol of views  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-view)

(cl-defstruct (gemini-companion-view-test-view
               (:include gemini-companion-view)
               (:constructor gemini-companion-view-test-make))
  "A view that shows only the proposal, and NUMBER, of the current hunk."
  (number 0))

(cl-defmethod gemini-companion-view-open
  ((view gemini-companion-view-test-view) _keep)
  "Show VIEW, whatever is to be kept."
  (let* ((edit (gemini-companion-view-edit view))
         (proposal (gemini-companion-edit-proposal-buffer edit)))
    (pop-to-buffer proposal)
    (setf (gemini-companion-view-buffers view) (list proposal)
          (gemini-companion-view-hunks view)
          (gemini-companion-edit-hunks edit))))

(cl-defmethod gemini-companion-view-hunk ((view gemini-companion-view-test-view))
  "Return the current hunk of VIEW."
  (nth (gemini-companion-view-test-view-number view)
       (gemini-companion-view-hunks view)))

(cl-defmethod gemini-companion-view-move
  ((view gemini-companion-view-test-view) count)
  "Move by COUNT hunks in VIEW."
  (cl-incf (gemini-companion-view-test-view-number view) count))

(cl-defmethod gemini-companion-view-mark
  ((_ gemini-companion-view-test-view) _redraw)
  "Do nothing.")

(cl-defmethod gemini-companion-view-close
  ((_ gemini-companion-view-test-view))
  "Do nothing.")

(ert-deftest gemini-companion-view-may-be-one-of-another-package ()
  (let ((gemini-companion-review-kinds
         (cons '(test gemini-companion-view-test-make)
               gemini-companion-review-kinds))
        (gemini-companion-review-view 'test))
    (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n5\n"))
      (let ((diff (gemini-companion-test-show "a" "one\n2\n3\n4\nfive\n")))
        (should (eq (gemini-companion-edit-proposal-buffer diff)
                    (window-buffer)))
        (gemini-companion-test-call #'gemini-companion-review-next-hunk)
        (gemini-companion-test-call #'gemini-companion-review-toggle-hunk)
        ;; The other views have what was excluded here.
        (gemini-companion-test-call #'gemini-companion-review-switch-view)
        (should (eq 'ediff (gemini-companion-view-kind
                            (gemini-companion-edit-view diff))))
        (gemini-companion-test-call #'gemini-companion-edit-accept)
        (should (equal '((1 accepted "one\n2\n3\n4\n5\n")) outcomes))))))

;;; gemini-companion-view-test.el ends here
