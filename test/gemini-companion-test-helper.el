;;; gemini-companion-test-helper.el --- What several tests need  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Waiting for a condition, and folders with files that are gone afterwards.

;;; Code:

(require 'cl-lib)
(require 'ert)

(defun gemini-companion-test-wait (predicate &optional seconds)
  "Wait until PREDICATE is non-nil, SECONDS (default 120) at most.
Return what it returned last."
  (let ((end (+ (float-time) (or seconds 120)))
        value)
    (while (and (not (setq value (funcall predicate)))
                (< (float-time) end))
      (accept-process-output nil 0.01))
    value))

(defmacro gemini-companion-test-eventually (&rest body)
  "Assert that BODY is non-nil within two minutes."
  (declare (indent 0) (debug t))
  `(should (gemini-companion-test-wait (lambda () ,@body))))

(defmacro gemini-companion-test-with-folder (files &rest body)
  "Run BODY in a new folder with FILES, a list of (NAME TEXT).
Kill the buffers that visit a file in it afterwards."
  (declare (indent 1) (debug t))
  `(let* ((folder (file-name-as-directory
                   (file-truename (make-temp-file "gemini-companion-" t))))
          (default-directory folder)
          (make-backup-files nil)
          (create-lockfiles nil))
     (unwind-protect
         (progn
           (pcase-dolist (`(,name ,text) ,files)
             (let ((coding-system-for-write 'utf-8-unix))
               (write-region text nil (expand-file-name name folder)
                             nil 'silent)))
           ,@body)
       (dolist (buffer (buffer-list))
         (when (string-prefix-p folder (or (buffer-file-name buffer) ""))
           (with-current-buffer buffer (set-buffer-modified-p nil))
           (kill-buffer buffer)))
       (delete-directory folder t))))

(provide 'gemini-companion-test-helper)
;;; gemini-companion-test-helper.el ends here
