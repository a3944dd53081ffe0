;;; gemini-companion-names-test.el --- Tests of names of files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-names)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-names-for-the-user-show-each-character ()
  (should (equal "a\\xFFb" (gemini-companion-names-shown (string-to-multibyte (concat "a" (unibyte-string 255) "b")))))
  (should (equal "a\\u202Eb" (gemini-companion-names-shown "a\u202Eb")))
  (should (equal "ab...yz" (gemini-companion-names-shown
                            "abcdefghijklmnopqrstuvwxyz" 7)))
  ;; Marks of letters stay, as the display combines them.
  (should (equal "cafe\u0301" (gemini-companion-names-shown "cafe\u0301")))
  ;; A CLI may propose a file of any name.
  (dolist (char '(#x200B #x301))
    (let ((long (concat "a" (make-string 1000000 char) "z")))
      (should (< (gemini-companion-test-seconds
                   (should (string-match-p "\\`a.*\\.\\.\\..*z\\'"
                                           (gemini-companion-names-shown long))))
                 0.5)))))

(ert-deftest gemini-companion-names-of-a-buffer-are-those-of-its-file ()
  (let ((file (file-truename (make-temp-file "names-"))))
    (unwind-protect
        (with-current-buffer (find-file-noselect file)
          (unwind-protect
              (progn
                (should (equal file (gemini-companion-names-file)))
                (should (gemini-companion-names-visited-here-p file))
                (should-not (gemini-companion-names-visited-here-p nil))
                (should (eq (current-buffer)
                            (gemini-companion-names-buffer file)))
                (should (equal file (gemini-companion-names-visited file)))
                (should-not (gemini-companion-names-of-copy file)))
            (kill-buffer)))
      (delete-file file))))

(ert-deftest gemini-companion-names-of-buffers-are-searched-once ()
  (let* ((directory (file-name-as-directory
                     (file-truename (make-temp-file "names-" t))))
         (default-directory directory)
         (names (mapcar #'expand-file-name
                        '("visited" "link" "dir/visited" "hard" "other" "none")))
         (find (symbol-function 'find-buffer-visiting))
         (searches 0))
    (write-region "" nil "visited")
    (write-region "" nil "other")
    (make-symbolic-link "visited" "link")
    (make-symbolic-link "." "dir")
    (add-name-to-file "visited" "hard")
    (with-current-buffer (find-file-noselect "visited")
      (unwind-protect
          (cl-letf (((symbol-function 'find-buffer-visiting)
                     (lambda (name) (cl-incf searches) (funcall find name))))
            (let ((found (mapcar #'gemini-companion-names-buffer names)))
              (should (equal (list (current-buffer) (current-buffer)
                                   (current-buffer) (current-buffer) nil nil)
                             found))
              (should (= 6 searches))
              (gemini-companion-names-search-once
                (should (equal found (mapcar #'gemini-companion-names-buffer names))))
              ;; Those of the four names of the visited file find it.
              (should (= 10 searches))))
        (kill-buffer)
        (delete-directory directory t)))))

(ert-deftest gemini-companion-names-of-other-programs-mean-only-themselves ()
  (should (equal "/p/a/b" (gemini-companion-names-below "/p" "a/b")))
  (dolist (name '("~" "~/.bashrc" "~root/x" "$HOME/x" "${HOME}" "a/~/x" ":x" "a:/x"
                  "ssh:h:/x" "a\nb" "a\r\nb" "#x#" "%s" "\\" "é"))
    (ert-info ((format "%S" name))
      (dolist (directory '("/p" "/p/" "/~" "/$HOME/"))
        (let ((file (concat (file-name-as-directory directory) name)))
          (should (equal file (gemini-companion-names-below directory name)))
          (should (equal file (gemini-companion-names-in directory name)))
          (should (equal file (gemini-companion-names-below
                               directory (encode-coding-string name 'utf-8))))))
      (should (equal (concat (expand-file-name "~/p/") name)
                     (gemini-companion-names-below "~/p" name)))))
  ;; Bytes that are no UTF-8.
  (should (equal (concat "/p/a" (string #x3fffff))
                 (gemini-companion-names-below "/p" "a\xff")))
  (let ((file-name-coding-system 'latin-1))
    (should (equal "/p/Ã©" (gemini-companion-names-below "/p" "é"))))
  (should (equal "/q/x" (gemini-companion-names-in "/p" "/q/x")))
  (should (equal "/q/x" (gemini-companion-names-in "/p" "../q/x"))))

;;; gemini-companion-names-test.el ends here
