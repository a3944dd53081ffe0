;;; gemini-companion-ignore-test.el --- Tests of ignored files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-ignore)
(require 'gemini-companion-privacy)
(require 'gemini-companion-privacy-test-helper)
(require 'gemini-companion-test-helper)
(require 'gemini-companion-text-test-helper)

(ert-deftest gemini-companion-privacy-respects-the-ignore-files-of-each-cli ()
  (dolist (name '(".geminiignore" ".qwenignore" ".agentignore" ".aiignore"))
    (gemini-companion-test-with-directory `((,name "\uFEFF*.log\r\nbuild/\n"))
      (ert-info (name)
        (should (equal '("a.log" "build/x/y")
                       (gemini-companion-privacy-test-hidden
                        "a" "a.log" "build/x/y" "x/build")))
        ;; Only a line of the same file restores a file.
        (gemini-companion-test-write
         (if (equal name ".aiignore") ".qwenignore" ".aiignore") "!a.log\n")
        (should (gemini-companion-privacy-test-hidden "a.log"))
        ;; Only a regular file is read.
        (delete-file name)
        (make-symbolic-link "/dev/zero" (expand-file-name name))
        (should-not (gemini-companion-privacy-test-hidden "a.log"))))))

(ert-deftest gemini-companion-privacy-ignores-case-where-the-volume-does ()
  (gemini-companion-test-with-directory '((".geminiignore" "secret\n*.LOG\n"))
    (dolist (ignores-case '(nil t))
      (cl-letf (((symbol-function 'file-name-case-insensitive-p)
                 (lambda (_) ignores-case)))
        (should (equal (and ignores-case '("Secret" "a.log"))
                       (gemini-companion-privacy-test-hidden
                        "Secret" "a.log" "b")))))))

(ert-deftest gemini-companion-privacy-is-not-held-up-by-hostile-patterns ()
  ;; A matcher that backtracks takes for ever.
  (should (< (gemini-companion-test-seconds
               (pcase-dolist (`(,piece ,end)
                              '(("*a" "b") ("*?b" "*") ("*[!b]" "b*") ("**/a/" "b")
                                ("**/*a*a/" "**/b/**")))
                 (gemini-companion-test-with-directory
                     `((".geminiignore" ,(concat (string-join (make-list 18 piece)) end)))
                   (gemini-companion-privacy-test-ignored
                    (list (make-string 255 ?a)
                          (string-join (make-list 16 (make-string 249 ?a)) "/"))))))
             100)))

(defun gemini-companion-privacy-test-pattern (_)
  "Return a random pattern of a .gitignore.
Not one with // or a**, which git takes now for this, now for that, and
none with a slash or an escape in brackets, which nobody writes."
  (gemini-companion-privacy-test-plain
   (concat
    (seq-random-elt '("" "" "" "!" "/" "#" "\\!" "**/"))
    (mapconcat
     (lambda (_)
       (seq-random-elt
        '("a" "b" "ab" "d" "*" "?" "**" "***" "/" "/" "/**/" "[ab]" "[!a]"
          "[]a]" "[a-c]" "[^b-]" "[[:alpha:]]" "[[:nope:]]" "["
          "\\*" "\\ " "\\\\" " " "." "a*" "*b" "!" "e/")))
     (number-sequence 0 (random 4)) "")
    (seq-random-elt '("" "" "/" "/**" " " "\\" "\r")))))

(defun gemini-companion-privacy-test-plain (pattern)
  "Return PATTERN with fewer slashes and stars in a row, and none in brackets."
  (pcase-dolist (`(,from ,to) '(("//+" "/") ("\\([^/]\\)\\*\\*+" "\\1*")
                                ("\\[[^]]*[/\\][^]]*" "")))
    (setq pattern (replace-regexp-in-string from to pattern t)))
  pattern)

(defun gemini-companion-privacy-test-name ()
  "Return a random relative file name."
  (concat (seq-random-elt '("" "" "d/" "d/e/"))
          (mapconcat (lambda (_)
                       (seq-random-elt
                        '("a" "b" "ab" "ba" "a.b" "!a" "#a" "*" "a b" "aab" "]"
                          "-" "c" "\\")))
                     (number-sequence 0 (random 3)) "/")))

(defun gemini-companion-privacy-test-ignored (names)
  "Return those of NAMES that are hidden; none of them is visited."
  (gemini-companion-privacy-refresh)
  (seq-filter (lambda (name)
                (with-temp-buffer
                  (setq buffer-file-name (expand-file-name name))
                  (prog1 (gemini-companion-privacy-hidden-p (current-buffer))
                    (setq buffer-file-name nil))))
              names))

;; `make soak' does this a thousand times.
(ert-deftest gemini-companion-privacy-ignores-what-git-would ()
  (unless (executable-find "git")
    (ert-skip "No git"))
  (let ((gemini-companion-excluded nil))
    (gemini-companion-test-with-directory '()
      (call-process "git" nil nil nil "init" "-q")
      (make-directory "d/e" t)
      (gemini-companion-text-test-at-random 10
        (let ((texts (mapcar (lambda (place)
                               (let ((text
                                      (mapconcat
                                       #'gemini-companion-privacy-test-pattern
                                       (number-sequence 0 (random 4)) "\n")))
                                 (dolist (name '(".gitignore" ".geminiignore"))
                                   (gemini-companion-test-write
                                    (concat place name) text))
                                 text))
                             '("" "d/" "d/e/")))
              (names (cl-loop repeat 40
                              collect (gemini-companion-privacy-test-name))))
          (ert-info ((format "%S" texts))
            (should (equal (with-temp-buffer
                             (insert (string-join names "\0"))
                             (call-process-region
                              nil nil "git" t t nil
                              "check-ignore" "--no-index" "--stdin" "-z")
                             (split-string (buffer-string) "\0" t))
                           (gemini-companion-privacy-test-ignored names)))))))))

;;; gemini-companion-ignore-test.el ends here
