;;; gemini-companion-text-test.el --- Tests of texts in files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-hunk)
(require 'gemini-companion-lines)
(require 'gemini-companion-text)
(require 'gemini-companion-text-test-helper)

(ert-deftest gemini-companion-text-is-the-same-when-it-comes-back ()
  (gemini-companion-test-with-directory '()
    (dolist (text (list "" "a\r\nb\rc\n" "\uFEFFé\0\u2028"
                        (string ?a #x3FFFE9 ?b)
                        "Content-Type: text/enriched\n\n<bold>b</bold>"))
      (dolist (file '("plain" "packed.gz"))
        (with-temp-buffer
          (insert "hidden\n" text)
          (narrow-to-region 1 2)
          (setq buffer-file-format '(text/enriched))
          (let ((after-insert-file-functions (list (lambda (_) (erase-buffer) 0)))
                (write-region-annotate-functions
                 (list (lambda (&rest _) '((1 . "more"))))))
            (gemini-companion-text-write file (gemini-companion-text-of-buffer))
            (should (equal (concat "hidden\n" text)
                           (gemini-companion-text-read file)))))))))

(ert-deftest gemini-companion-text-of-a-missing-file-is-a-file-error ()
  (gemini-companion-test-with-directory '()
    (should-error (gemini-companion-text-bytes "a") :type 'file-error)
    (should-error (gemini-companion-text-bytes "a" 5) :type 'file-error)))

;;;; Comparing

(ert-deftest gemini-companion-text-that-cannot-be-compared-is-an-error ()
  :tags '(pure)
  (let ((old (mapconcat #'number-to-string (number-sequence 1 400) "\n"))
        (new (mapconcat #'number-to-string (number-sequence 2 401 3) "\n")))
    (gemini-companion-text-test-where-diff-fails
      (dolist (compare (list (lambda ()
                               (gemini-companion-text-diff (list old new)))
                             (lambda ()
                               (gemini-companion-hunk-compare-lines
                                (gemini-companion-lines-split old)
                                (gemini-companion-lines-split new)))
                             (lambda () (gemini-companion-hunk-compare old new))))
        (let ((problem (should-error (funcall compare)
                                     :type 'gemini-companion-text-not-compared)))
          (should (string-match-p reason (error-message-string problem)))))
      (when (equal (symbol-value symbol) "/no-such-directory/")
        (dolist (compare (list (lambda () (gemini-companion-text-unified old new))
                               (lambda ()
                                 (gemini-companion-text-merged old new "3"))))
          (should-error (funcall compare) :type 'user-error))))))

(ert-deftest gemini-companion-text-differs-where-its-characters-do ()
  :tags '(pure)
  (gemini-companion-text-test-at-random 200
    (let* ((texts (gemini-companion-text-test-random-texts 2))
           (hunks (gemini-companion-text-diff texts))
           (lines (mapcar (lambda (text) (split-string text "^" t)) texts))
           (new (car lines)))
      (ert-info ((format "%S" texts))
        (pcase-dolist (`(,old ,old-end ,from ,to) (reverse hunks))
          (setq new (append (seq-take new old)
                            (seq-subseq (cadr lines) from to)
                            (nthcdr old-end new))))
        (should (equal (cadr texts) (string-join new)))
        (should (eq (null hunks) (apply #'equal texts)))))))

(ert-deftest gemini-companion-text-is-merged-to-the-character ()
  :tags '(pure)
  (gemini-companion-text-test-at-random 100
    (pcase-let* ((`(,base ,mine ,theirs)
                  (mapcar (lambda (text) (split-string text "^SECOND\n"))
                          (gemini-companion-text-test-random-texts 3)))
                 (join (lambda (beginning end)
                         (concat (car beginning) "SECOND\n" (cadr end)))))
      (ert-info ((format "%S" (list base mine theirs)))
        (should (equal (cons nil (funcall join mine theirs))
                       (gemini-companion-text-merged
                        (funcall join mine base) (funcall join base base)
                        (funcall join base theirs))))))))

(ert-deftest gemini-companion-text-conflict-names-the-line ()
  :tags '(pure)
  (let ((raw (string-to-multibyte "\303\251")))
    (pcase-dolist (`(,mine ,base ,theirs)
                   `(("é\nb\nmine\n" "é\nb\nc\n" "é\nb\ntheirs\n")
                     (,(concat raw "\nb\nmine\n") ,(concat raw "\nb\nc\n")
                      ,(concat raw "\nb\ntheirs\n"))
                     ("\303\251\nb\nmine\n" "\303\251\nb\nc\n"
                      "\303\251\nb\ntheirs\n")
                     (,(concat "é" raw "\nb\n" raw "\n") ,(concat "é" raw "\nb\nc\n")
                      ,(concat "é" raw "\nb\né\n"))))
      (let ((merged (gemini-companion-text-merged mine base theirs "1" "2" "3")))
        (should (equal 3 (car merged)))
        (should (equal (string-to-multibyte
                        (concat (substring mine 0 (string-search "b\n" mine))
                               "b\n<<<<<<< 1\n"
                               (substring mine (+ 2 (string-search "b\n" mine)))
                               "||||||| 2\nc\n=======\n"
                               (substring theirs (+ 2 (string-search "b\n" theirs)))
                                ">>>>>>> 3\n"))
                       (cdr merged)))))))

;;;; Names

;; Where case counts, a link is what a volume that ignores case has.

(ert-deftest gemini-companion-text-knows-a-file-in-spite-of-case ()
  (gemini-companion-test-with-directory nil
    (make-directory "Other")
    (make-symbolic-link "Project" "project")
    (gemini-companion-test-write "Project/a" "")
    (gemini-companion-test-write "other/a" "")
    (pcase-dolist
        (`(,predicate . ,cases)
         '((gemini-companion-text-same-file-p
            ("Project/a" "Project/a" t) ("Project/a" "project/a" t)
            ("other/a" "Other/a" nil) ("other/a" "Project/a" nil)
            ("new" "new" t) ("new" "New" nil))
           (gemini-companion-text-in-directory-p
            ("Project/a" "Project" t) ("Project/a" "project" t)
            ("project/" "Project" t) ("Project/new" "project" t)
            ("other/a" "Other" nil) ("Projects/a" "Project" nil)
            ("Project/a" "other" nil))))
      (pcase-dolist (`(,file ,other ,expected) cases)
        (ert-info ((format "%s %s %s" predicate file other))
          (should (eq expected (and (funcall predicate (expand-file-name file)
                                             (expand-file-name other))
                                    t))))))))

(ert-deftest gemini-companion-text-reads-no-pipe-and-no-device ()
  (gemini-companion-test-with-directory '(("a" "text"))
    (call-process "mkfifo" nil nil nil "pipe")
    (make-symbolic-link "/dev/zero" "zero")
    (make-symbolic-link "loop" "loop")
    (make-symbolic-link "a" "link")
    (make-symbolic-link "new" "dangling")
    (dolist (file '("a" "link" "new" "dangling"))
      (should-not (gemini-companion-text-unreadable-reason
                   (expand-file-name file))))
    (should (equal "text" (gemini-companion-text-read "link")))
    (dolist (file '("pipe" "zero" "loop" "." "/dev/tty"
                    "/ssh:nowhere.invalid:/x"))
      (should (stringp (gemini-companion-text-unreadable-reason
                        (expand-file-name file)))))
    (dolist (file '("pipe" "zero" "loop" "." "/dev/tty" "new"))
      (should-error (gemini-companion-text-read file) :type 'file-error))
    ;; The superuser may open it; to read it does not end.
    (should (equal "" (condition-case nil
                          (gemini-companion-text-read "/proc/kmsg")
                        (file-error ""))))))

(ert-deftest gemini-companion-text-is-read-as-utf-8 ()
  (gemini-companion-test-with-directory '()
    (dolist (piece '("\r\n" "\0" "\177" "\200" "\277" "\300\200" "\301\277"
                     "\303\251" "\340\200\200" "\340\240\200" "\342\200"
                     "\355\237\277" "\355\240\200" "\360\217\277\277"
                     "\360\237\230\200" "\364\217\277\277"
                     "\364\220\200\200" "\370\210\200\200\200" "\376" "\377"))
      (dolist (bytes (list piece (concat "a" piece) (concat piece "a")
                           (concat "\303\251" piece "\303\251")
                           (concat piece piece "\n")))
        (ert-info ((format "%S" bytes))
          (gemini-companion-test-write "bytes" bytes)
          (let ((text (gemini-companion-text-read "bytes")))
            (should (equal (decode-coding-string bytes 'utf-8-unix) text))
            (gemini-companion-text-write "again" text)
            (should (equal (encode-coding-string text 'utf-8-emacs-unix)
                           (gemini-companion-text-bytes "again")))))))))

(ert-deftest gemini-companion-text-rewrites-only-what-it-knows ()
  (gemini-companion-test-with-directory '(("a" "\303\251\n") ("b" "other\n"))
    (gemini-companion-text-rewrite "a" "\303\251\n" "ü\n")
    (should (equal "\303\274\n" (gemini-companion-text-bytes "a")))
    ;; Replaced by another program.
    (rename-file "b" "a" t)
    (should-error (gemini-companion-text-rewrite "a" "\303\274\n" "new\n")
                  :type 'file-error)
    (should (equal "other\n" (gemini-companion-text-bytes "a")))))

(ert-deftest gemini-companion-text-invisible-characters-are-escaped ()
  :tags '(pure)
  (pcase-dolist (`(,text . ,shown)
                 `(("a b ~" . "a b ~")
                   ("größe 日本 “—”" . "größe 日本 “—”")
                   ("a\tb\nc\rd" . "a\\tb\\nc\\rd")
                   ("a\u202E\u200B\u00A0b" . "a\\u202E\\u200B\\u00A0b")
                   ;; Tags, private characters, and bytes that are none.
                   ("a\U000E0041\uE000" . "a\\U000E0041\\uE000")
                   (,(string ?a #x3FFFFF) . "a\\xFF")
                   ;; Fillers, and a blank of braille.
                   ("\u3164\uFFA0\u115F\u2800" . "\\u3164\\uFFA0\\u115F\\u2800")
                   ("\uFE0F\u034F" . "\\uFE0F\\u034F")))
    (dolist (composed '(nil t))
      (should (equal shown (gemini-companion-text-escaped text composed)))))
  ;; Marks, of which a text terminal without composition shows nothing.
  (dolist (text '("cafe\u0301" "e\u20DD" "\u0915\u093F" "\u1100\u1161"))
    (should (equal text (gemini-companion-text-escaped text 'composed)))
    (should-not (equal text (gemini-companion-text-escaped text))))
  (should (equal "a\n\\tb" (gemini-companion-text-escaped "a\n\tb" nil 'lines)))
  ;; An escape is distinguished from the same letters.
  (should (equal-including-properties
           (concat "\\u200B"
                   (propertize "\\u200B\\t" 'face 'gemini-companion-escape)
                   (propertize "x" 'face 'bold))
           (gemini-companion-text-escaped
            (concat "\\u200B" "\u200B\t" (propertize "x" 'face 'bold))))))

(ert-deftest gemini-companion-text-of-any-length-is-escaped-at-once-in-a-line ()
  (should (equal "ab" (gemini-companion-text-escaped-line "\n\nab\ncd" 10)))
  (should (equal "" (gemini-companion-text-escaped-line "\n" 10)))
  (should (equal "abcdefghij" (gemini-companion-text-escaped-line "abcdefghij" 10)))
  (should (string-match-p "\\`abcdefg\\(?:hi…\\|\\.\\.\\.\\)\\'"
                          (gemini-companion-text-escaped-line "abcdefghijk" 10)))
  (let ((long (make-string 3000000 #x200B)))
    (should (< (car (benchmark-run (gemini-companion-text-escaped-line long 60)))
               0.2))))

(ert-deftest gemini-companion-text-unified-has-bytes-that-are-no-characters ()
  (should (equal "" (gemini-companion-text-unified "a\"\\\n" "a\"\\\n")))
  (should (equal "@@ -1,2 +1,2 @@\n-\"\\\n+é\200\n b\n"
                 (let ((diff (gemini-companion-text-unified
                              "\"\\\nb\n" (concat "é" (string #x3fff80) "\nb\n"))))
                   (string-replace (string #x3fff80) "\200" diff)))))

(ert-deftest gemini-companion-text-kept-is-not-in-the-clipboard ()
  (let* ((kill-ring nil)
         (refuse (lambda (&rest _) (error "Clipboard")))
         (interprogram-cut-function refuse)
         (interprogram-paste-function refuse)
         (save-interprogram-paste-before-kill t)
         (kill-transform-function #'ignore)
         (inhibit-message t))
    (dotimes (_ 2)
      (should (equal "Ended; your text is in the kill ring"
                     (gemini-companion-text-keep "mine" "Ended"))))
    (should (equal "Ended" (gemini-companion-text-keep " \n" "Ended")))
    (should (equal '("mine") kill-ring))))

;;; gemini-companion-text-test.el ends here
