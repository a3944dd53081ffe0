;;; bench-files.el --- Many files in prompts and in the trash  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The processor time for the names of files in a prompt, without that of Git, and for
;; files that an undo deletes.

;;; Code:

(require 'bench)
(require 'gemini-companion-compose)
(require 'gemini-companion-trash)
(require 'project)

(defun bench-files-cost (function directory)
  "Return the ms of processor time that FUNCTION takes in DIRECTORY."
  (let ((default-directory directory)
        began)
    (garbage-collect)
    (setq began (get-internal-run-time))
    (funcall function)
    (* 1000 (float-time (time-subtract (get-internal-run-time) began)))))

(defun bench-files-list ()
  "List the files of the project."
  (unless (project-files (project-current))
    (error "No files")))

(defun bench-files-quote ()
  "Look for 100 names after an @, one of which a file has."
  (let ((text (mapconcat (lambda (number) (format "some@word%d" number))
                         (number-sequence 1 99) ", ")))
    (unless (equal (concat text " \\@e77.py")
                   (gemini-companion-prompt-quote
                    (concat text " @e77.py")
                    (gemini-companion-session-make :client "gemini" :directory default-directory)))
      (error "Not quoted as expected"))))

(defun bench-files-read ()
  "List the files, and complete a name among them as `completing-read' does."
  (let* ((directory (file-truename default-directory))
         (names (mapcar (lambda (file) (string-remove-prefix directory file))
                        (project-files (project-current)))))
    (with-temp-buffer
      (insert "d7/file7777")
      (completion-in-region (point-min) (point-max) names)
      (unless (equal "d7/file7777.py" (buffer-string))
        (error "Not completed: %s" (buffer-string))))))

(defun bench-files-complete ()
  "Complete a name after an @ in a new buffer for a prompt."
  (with-temp-buffer
    (text-mode)
    (gemini-companion-compose-mode)
    (insert "See @d7/file7777")
    (completion-at-point)
    (unless (looking-back "@d7/file7777\\.py ?" (point-min))
      (error "Not completed: %s" (buffer-string)))))

(defun bench-files-trash ()
  "Delete all files as an undo does, with a yes to what the trash does not get."
  (let* ((files (directory-files default-directory t "\\`file"))
         (items (mapcar #'car (gemini-companion-trash-items files nil)))
         (left-out (gemini-companion-trash-left-out items)))
    (dolist (item items)
      (gemini-companion-trash-delete item t (alist-get item left-out nil nil #'equal)))))

(provide 'bench-files)
;;; bench-files.el ends here
