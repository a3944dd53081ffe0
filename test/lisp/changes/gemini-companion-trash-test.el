;;; gemini-companion-trash-test.el --- Tests of what an undo deletes  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-trash)

(defmacro gemini-companion-trash-test-with (files &rest body)
  "Run BODY in a directory with FILES, and with an empty trash."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory ,files
     (let ((process-environment
            (cons (concat "XDG_DATA_HOME=" (expand-file-name "data"))
                  process-environment)))
       (clrhash gemini-companion-trash--moved)
       ,@body)))

(defun gemini-companion-trash-test-texts ()
  "Return the texts of the files in the trash, in order."
  (sort (mapcar #'gemini-companion-text-read (gemini-companion-test-trash)) #'string<))

(ert-deftest gemini-companion-trash-has-what-was-deleted-one-copy-for-each-content ()
  (gemini-companion-trash-test-with '(("a" "1\n") ("d/a" "of d\n"))
    (gemini-companion-trash-delete (expand-file-name "a"))
    (should-not (file-exists-p "a"))
    (should (equal '("1\n") (gemini-companion-trash-test-texts)))
    ;; Undone, taken back, and undone again.
    (dolist (text '("1\n" "2\n" "2\n"))
      (gemini-companion-text-write "a" text)
      (gemini-companion-trash-delete (expand-file-name "a"))
      (should-not (file-exists-p "a")))
    (should (equal '("1\n" "2\n") (gemini-companion-trash-test-texts)))
    ;; Another file of that name.
    (gemini-companion-trash-delete (expand-file-name "d/a"))
    (should (equal '("1\n" "2\n" "of d\n") (gemini-companion-trash-test-texts)))
    ;; The user has emptied it.
    (delete-directory "data" t)
    (gemini-companion-text-write "a" "2\n")
    (gemini-companion-trash-delete (expand-file-name "a"))
    (should (equal '("2\n") (gemini-companion-trash-test-texts)))))

(ert-deftest gemini-companion-trash-that-cannot-be-written-leaves-the-file ()
  (gemini-companion-trash-test-with '(("a" "1\n") ("data" "a file"))
    (should (string-match-p "/a cannot be moved to the trash ("
                            (gemini-companion-test-refusal
                              (gemini-companion-trash-delete (expand-file-name "a")))))
    (should (equal "1\n" (gemini-companion-text-read "a")))))

(ert-deftest gemini-companion-trash-does-not-get-excluded-and-large-files ()
  (gemini-companion-trash-test-with '((".env" "SECRET\n") ("large" "123456789"))
    (let ((gemini-companion-trash-most-bytes 8)
          (files (mapcar #'expand-file-name '(".env" "large"))))
      (should (equal `((,(car files) . "is excluded") (,(cadr files) . "is larger than 8"))
                     (seq-mapcat (lambda (file)
                                   (gemini-companion-trash-left-out (list file)))
                                 files)))
      (should (equal `((,(cadr files) . "is beyond its limit"))
                     (gemini-companion-trash-left-out
                      (list (expand-file-name "none") (cadr files)))))
      ;; One that has become so since the user was asked stays.
      (dolist (file files)
        (should (string-match-p "/\\(?:\\.env\\|large\\) not deleted, as it is .* by hand\\'"
                                (gemini-companion-test-refusal
                                  (gemini-companion-trash-delete file)))))
      (should (seq-every-p #'file-exists-p files))
      (dolist (file files)
        (gemini-companion-trash-delete file 'agreed))
      (should-not (seq-some #'file-exists-p files))
      (should-not (gemini-companion-test-trash)))))

(ert-deftest gemini-companion-trash-gets-links-and-directories-as-they-are ()
  (gemini-companion-trash-test-with '(("dir/e/a" "1\n") ("b" "2\n"))
    (make-symbolic-link "b" "link")
    (gemini-companion-trash-delete (expand-file-name "link"))
    (gemini-companion-trash-delete (expand-file-name "dir"))
    (should (equal '("b" "data") (directory-files "." nil "\\`[^.]")))
    (should (equal '("dir" "link")
                   (mapcar #'file-name-nondirectory (gemini-companion-test-trash))))
    (should (equal "b" (file-symlink-p "data/Trash/files/link")))
    (should (equal "1\n" (gemini-companion-text-read "data/Trash/files/dir/e/a")))))

(provide 'gemini-companion-trash-test)
;;; gemini-companion-trash-test.el ends here
