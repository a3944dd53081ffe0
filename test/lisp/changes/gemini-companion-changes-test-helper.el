;;; gemini-companion-changes-test-helper.el --- Changes by CLIs in tests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-changes)
(require 'gemini-companion-marks)
(require 'gemini-companion-proposal)
(require 'gemini-companion-reported)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-step)
(require 'gemini-companion-undo)
(require 'gemini-companion-walk)

(defmacro gemini-companion-test-with-changes (files &rest body)
  "Record and mark what is written while BODY is run in a directory with FILES."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-edits ,files
     (mapc #'gemini-companion-part-start '(changes marks))
     (unwind-protect
         (save-window-excursion ,@body)
       ;; The next key ends the walk.
       (let ((this-command #'ignore))
         (run-hooks 'pre-command-hook))
       (mapc #'gemini-companion-part-stop '(walk marks changes)))))

(defun gemini-companion-test-writes (file text session &optional reviewed)
  "Write TEXT to FILE as the CLI of SESSION does, without a review.
If REVIEWED is non-nil, the user accepts it.  Revert the buffer of FILE,
and return the edit."
  (let ((edit (gemini-companion-test-open file text (random) session)))
    (if reviewed
        (gemini-companion-edit-accept edit)
      (gemini-companion-proposal-offer edit nil))
    (gemini-companion-revert-now (expand-file-name file))
    (gemini-companion-reported-write session (expand-file-name file) nil text)
    edit))

(defun gemini-companion-test-accepts (file text session)
  "Write TEXT to FILE, which the user of SESSION accepts, and forget the outcome.
Return the edit."
  (let ((edit (gemini-companion-test-writes file text session 'reviewed)))
    (gemini-companion-server-receive 'outcome-written (gemini-companion-edit-id edit))
    edit))

(defun gemini-companion-test-forget-edits ()
  "Forget all edits and kill their buffers, as if Emacs began."
  (dolist (edit (gemini-companion-edits))
    (gemini-companion-edit-discard (gemini-companion-edit-proposal-buffer edit))
    (setf (gemini-companion-edit-proposal-buffer edit) nil)
    (gemini-companion-edit-discard (gemini-companion-edit-original-buffer edit)))
  (gemini-companion-part-stop 'edit))

(defun gemini-companion-test-undo-edit (edit)
  "Undo EDIT, and return a message."
  (gemini-companion-undo-edits (list edit)))

(defun gemini-companion-test-keep (record changes)
  "Keep CHANGES of RECORD, not as a decision; return the changes that are left."
  (gemini-companion-step-decide
   (gemini-companion-step-make
    :kind 'kept :on t :record record
    :hunks (seq-mapcat #'gemini-companion-record-change-hunks changes)))
  (gemini-companion-changes-file-known record))

(defun gemini-companion-test-marked (file)
  "Return the lines that have a mark in FILE, a buffer or the name of its file."
  (ert-run-idle-timers)
  (with-current-buffer (if (bufferp file) file (get-file-buffer file))
    (save-restriction
      (widen)
      (sort (mapcar (lambda (overlay)
                      (line-number-at-pos (overlay-start overlay)))
                    (seq-filter (lambda (overlay)
                                  (and (overlay-get overlay 'gemini-companion-mark)
                                       (overlay-get overlay 'before-string)))
                                (overlays-in (point-min) (point-max))))
            #'<))))

(defun gemini-companion-test-undo (record changes)
  "Undo CHANGES of RECORD in its file, without a check or a question."
  (gemini-companion-step-decide
   (gemini-companion-step-of-changes
    record changes
    (gemini-companion-changes-not-undone
     (seq-uniq (seq-mapcat #'gemini-companion-record-change-hunks changes) #'eq))
    t)))

(defun gemini-companion-test-left ()
  "Return the number of changes in the mode line, or nil."
  (pcase (gemini-companion-part-lighter 'changes)
    (`(,text . ,_) (string-to-number (substring text 1)))))

(defun gemini-companion-test-walk (&rest keys)
  "Do what KEYS, strings or commands, do in the selected window.
Return the last message."
  (car (last (split-string
              (ert-with-message-capture messages
                (dolist (key keys)
                  (with-current-buffer (window-buffer)
                    (let ((this-command
                           (if (symbolp key)
                               key
                             (lookup-key gemini-companion-walk-map (kbd key)))))
                      (run-hooks 'pre-command-hook)
                      (call-interactively this-command))))
                messages)
              "\n" t))))

(defun gemini-companion-test-counts (function)
  "Call FUNCTION, and return how often changes were computed, told and marked.
The value is a list of three numbers."
  (let* ((counts (list 0 0 0))
         (compute (lambda (&rest _) (cl-incf (nth 0 counts))))
         (tell (lambda (&rest _) (cl-incf (nth 1 counts)))))
    (advice-add 'gemini-companion-record-changes :before compute)
    (add-hook 'gemini-companion-changes-functions tell)
    (unwind-protect
        (setf (nth 2 counts)
              (gemini-companion-test-drawn
               (lambda ()
                 (funcall function)
                 (ert-run-idle-timers))))
      (remove-hook 'gemini-companion-changes-functions tell)
      (advice-remove 'gemini-companion-record-changes compute))
    counts))

(defun gemini-companion-test-drawn (function)
  "Call FUNCTION, and return how often the marks of a buffer were drawn."
  (let* ((drawn 0)
         (count (lambda (_ _ operation _)
                  (when (eq 'set operation)
                    (setq drawn (1+ drawn))))))
    (add-variable-watcher 'gemini-companion-marks-here count)
    (unwind-protect (funcall function)
      (remove-variable-watcher 'gemini-companion-marks-here count))
    drawn))

(defconst gemini-companion-test-lines "1\n2\n3\n4\n5\n6\n7\n8\n9\n")

(defmacro gemini-companion-test-in-changed (text &rest body)
  "Run BODY in the buffer of a, with lines 1 to 9 of which `edit' has made TEXT."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines))
     (find-file "a")
     (buffer-enable-undo)
     (let ((edit (gemini-companion-test-writes "a" ,text session)))
       (ignore edit)
       ,@body)))

(defun gemini-companion-test-format (odds text)
  "Insert TEXT after some lines of the current buffer, as a formatter does.
That is in half of the calls, and then after one line in ODDS, by chance."
  (when (= 0 (random 2))
    (save-excursion
      (goto-char (point-min))
      (while (not (eobp))
        (when (= 0 (random odds))
          (end-of-line)
          (insert text))
        (forward-line)))))

(provide 'gemini-companion-changes-test-helper)
;;; gemini-companion-changes-test-helper.el ends here
