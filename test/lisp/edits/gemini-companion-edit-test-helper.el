;;; gemini-companion-edit-test-helper.el --- Help for tests of edits  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes nil t)
(require 'gemini-companion-replace)
(require 'gemini-companion-reported nil t)
(require 'gemini-companion-review-test-helper)

(defmacro gemini-companion-edit-test-with (files &rest body)
  "Take proposals while BODY is run in a directory with FILES.
`outcomes' has the sent outcomes, the last one first; `views' the
diffs that have a view now."
  (declare (indent 1) (debug t))
  `(let (outcomes)
     (cl-symbol-macrolet ((views (reverse (seq-filter
                                           #'gemini-companion-edit-view
                                           (gemini-companion-edits)))))
       (gemini-companion-test-with-diffs ,files
           (gemini-companion-test-diff-start
            #'gemini-companion-test-show-nowhere
            (lambda (diff)
              (push (gemini-companion-test-outcome diff) outcomes)))
           nil
         ,@body))))

(defun gemini-companion-edit-test-edited (&optional edit)
  "Return the diff of a proposal in which the user has typed something.
If EDIT is non-nil, call it in the proposal instead."
  (let ((diff (gemini-companion-test-open "a" "new\n")))
    (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
      (funcall (or edit (lambda () (insert "mine ")))))
    diff))

(declare-function gemini-companion-changes-status "gemini-companion-changes")

(defun gemini-companion-edit-test-status (edit)
  "Return the state of EDIT; where changes are recorded, also what became of it."
  (if (fboundp 'gemini-companion-changes-status)
      (gemini-companion-changes-status edit)
    (gemini-companion-edit-status edit)))

(defun gemini-companion-edits-test-states ()
  "Return the states of all edits."
  (mapcar #'gemini-companion-edit-test-status (gemini-companion-edits)))

(defun gemini-companion-edit-test-ends (&rest edits)
  "Wait until nothing is expected of EDITS; return their states."
  (gemini-companion-test-in-the-end
    (seq-every-p (lambda (edit)
                   (not (gemini-companion-written-live-p
                         (gemini-companion-edit-awaited edit))))
                 edits))
  (mapcar #'gemini-companion-edit-test-status edits))

(defun gemini-companion-edit-test-save (file text)
  "Save TEXT in the buffer of FILE, as the user may."
  (with-current-buffer (or (get-file-buffer file) (find-file-noselect file))
    (gemini-companion-replace-text text)
    ;; The CLI may have written it since.
    (cl-letf (((symbol-function 'yes-or-no-p) #'always)
              ((symbol-function 'userlock--ask-user-about-supersession-threat)
               #'ignore))
      (save-buffer))))

(defmacro gemini-companion-edit-test-with-copilot (&rest body)
  "Evaluate BODY, in which Copilot CLI has proposed a change of a file.
The user has accepted `edit' with a change of it, and nothing is written."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-edits '(("a" "1\n2\n3\n"))
     (setq gemini-companion-test-send #'ignore
           session (gemini-companion-test-session-like session :client "copilot"))
     (let ((edit (gemini-companion-test-open "a" "1\nB\n3\n" 1 session))
           (run (lambda ()
                  (dotimes (_ 3)
                    (gemini-companion-test-run-timers)))))
       (ignore run)
       (with-current-buffer (gemini-companion-edit-proposal-buffer edit)
         (goto-char 3)
         (insert "mine "))
       (gemini-companion-edit-accept edit)
       ,@body)))

(defmacro gemini-companion-edit-test-with-bytes (client bytes &rest body)
  "Run BODY with an edit of CLIENT open for a file a with BYTES.
The variable `propose' is a function that opens it with a text."
  (declare (indent 2) (debug t))
  `(gemini-companion-test-with-edits '(("a" ""))
     (gemini-companion-test-write "a" ,bytes)
     (let* ((id 0)
            (cli (gemini-companion-test-session-like session :client ,client))
            (propose (lambda (text)
                       (gemini-companion-test-open "a" text (cl-incf id) cli))))
       ,@body)))

(defun gemini-companion-edits-test-reported ()
  "Return a list of (NAME STATE BEFORE AFTER) of all edits."
  (mapcar (lambda (edit)
            (list (file-name-nondirectory (gemini-companion-edit-file edit))
                  (gemini-companion-edit-status edit)
                  (gemini-companion-content-bytes (gemini-companion-edit-content edit))
                  (gemini-companion-edit-after edit)))
          (gemini-companion-edits)))

(provide 'gemini-companion-edit-test-helper)
;;; gemini-companion-edit-test-helper.el ends here
