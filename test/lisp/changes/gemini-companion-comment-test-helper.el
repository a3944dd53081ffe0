;;; gemini-companion-comment-test-helper.el --- Comments in tests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-overview)

(defmacro gemini-companion-comment-test-with (files &rest body)
  "Run BODY in a directory with FILES, whose lines can be commented.
The CLI is connected and has no terminal, so that a prompt for it goes to the
kill ring."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-changes ,files
     (setq gemini-companion-review-arrival 'notify)
     (mapc #'gemini-companion-part-start '(state comment addon-prompts))
     (gemini-companion-test-set-sessions (list session))
     (unwind-protect
         (progn ,@body)
       (gemini-companion-test-set-sessions nil)
       (gemini-companion-remove-comments 'all)
       (mapc #'gemini-companion-part-stop
             '(overview addon-prompts undone comment state)))))

(defun gemini-companion-comment-test-comment (text &optional lines)
  "Comment with TEXT on the line at point, or a region of that many LINES."
  (cl-letf (((symbol-function 'read-string) (lambda (&rest _) text))
            (transient-mark-mode t))
    (when lines
      (forward-line 0)
      (push-mark (point) t t)
      (forward-line lines))
    (gemini-companion-comment)))

(defun gemini-companion-comment-test-on-proposal (edit line text)
  "Comment with TEXT on LINE of the proposal of EDIT, which is open."
  (with-current-buffer (gemini-companion-edit-proposal-buffer edit)
    (goto-char (point-min))
    (forward-line (1- line))
    (gemini-companion-comment-test-comment text)))

(defun gemini-companion-comment-test-text ()
  "Return the text of the current buffer without properties."
  (buffer-substring-no-properties (point-min) (point-max)))

(defun gemini-companion-comment-test-shown ()
  "Return what is displayed of comments in the current buffer, by line."
  (let ((shown nil))
    (dolist (overlay (overlays-in (point-min) (point-max)))
      (when (overlay-get overlay 'gemini-companion-comment)
        (push (cons (line-number-at-pos (overlay-end overlay))
                    (string-trim (substring-no-properties
                                  (or (overlay-get overlay 'after-string)
                                      (overlay-get overlay 'before-string)))))
              shown)))
    (sort shown (lambda (a b) (< (car a) (car b))))))

(provide 'gemini-companion-comment-test-helper)
;;; gemini-companion-comment-test-helper.el ends here
