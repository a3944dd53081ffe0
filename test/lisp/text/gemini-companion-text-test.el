;;; gemini-companion-text-test.el --- Tests of texts in files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-hunk)
(require 'gemini-companion-install)
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
  (gemini-companion-text-test-at-random 60
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
  (gemini-companion-text-test-at-random 30
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

(ert-deftest gemini-companion-text-conflict-has-all-three-texts ()
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
        (should (car merged))
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

(defun gemini-companion-text-test-emacs (form)
  "Start an Emacs for the evaluation of FORM, and return its process."
  (let ((emacs (start-process
                "rewrites" nil (expand-file-name invocation-name invocation-directory)
                "-Q" "--batch" "-l" (locate-library "gemini-companion-text")
                "--eval" (prin1-to-string
                          `(progn
                             (setq gemini-companion-text-backups
                                   ,gemini-companion-text-backups)
                             ,form)))))
    (set-process-query-on-exit-flag emacs nil)
    emacs))

(defun gemini-companion-text-test-ended (emacs)
  "Wait until EMACS, a process, has ended."
  (should (gemini-companion-test-wait (lambda () (not (process-live-p emacs))))))

;; TRAMP was asked for the process of the other Emacs, by a timer.
(ert-deftest gemini-companion-text-processes-are-those-of-this-host ()
  (let ((file-name-handler-alist '(("\\`/far:" . error)))
        (default-directory "/far:/"))
    (should (gemini-companion-text-process-attributes (emacs-pid)))))

(ert-deftest gemini-companion-text-rewritten-is-whole-when-emacs-is-killed ()
  (gemini-companion-test-with-directory '(("a" "") ("c" ""))
    (skip-unless (eql 0 (ignore-errors
                          (call-process "cp" nil nil nil "--attributes-only"
                                        "a" "c"))))
    (let* ((file (expand-file-name "a"))
           (began (expand-file-name "began"))
           (gemini-companion-text-backups (expand-file-name "backups/")))
      (dotimes (n 12)
        (gemini-companion-text-write file (make-string 3000000 ?a))
        (let ((emacs (gemini-companion-text-test-emacs
                      `(let ((a (make-string 3000000 ?a))
                             (b (make-string 3000000 ?b)))
                         (write-region "" nil ,began)
                         (while t
                           (gemini-companion-text-rewrite ,file a b)
                           (gemini-companion-text-rewrite ,file b a))))))
          (should (gemini-companion-test-wait (lambda () (file-exists-p began))))
          (sleep-for (* 0.011 n))
          (signal-process emacs 'SIGKILL)
          (gemini-companion-text-test-ended emacs)
          (delete-file began))
        ;; A failure would print the texts.
        (should (member (secure-hash 'sha1 (gemini-companion-text-bytes file))
                        (mapcar (lambda (letter)
                                  (secure-hash 'sha1 (make-string 3000000 letter)))
                                "ab"))))
      ;; Drafts that the others have left are deleted.
      (setq gemini-companion-text--swept nil)
      (gemini-companion-text-rewrite file (gemini-companion-text-bytes file) "end")
      (should-not (file-name-all-completions gemini-companion-text-draft
                                             default-directory))
      (should-not (gemini-companion-text-found-backups)))))

(ert-deftest gemini-companion-text-written-in-place-is-found-after-a-kill ()
  (gemini-companion-test-with-directory '(("a" "old\n"))
    (let ((file (expand-file-name "a"))
          (gemini-companion-text-backups (expand-file-name "backups/")))
      ;; It would lose its other name.
      (add-name-to-file file "b")
      (pcase-dolist (`(,written . ,is-whole)
                     '(("" . nil) ("ne" . nil) ("new\n" . t) (nil . t)))
        (gemini-companion-text-write file "old\n")
        (gemini-companion-text-test-ended
         (gemini-companion-text-test-emacs
          `(progn
             (advice-add 'gemini-companion-text-write :before
                         (lambda (file _)
                           (when (equal file ,file)
                             (when ,written
                               (write-region ,written nil file))
                             (signal-process (emacs-pid) 'SIGKILL))))
             (gemini-companion-text-rewrite ,file "old\n" "new\n"))))
        (should (equal (or written "old\n") (gemini-companion-text-read "b")))
        (let ((found (gemini-companion-text-found-backups)))
          (if is-whole
              (should-not found)
            (pcase-exhaustive found
              (`((,(pred (equal file)) ,copy))
               (should (equal "old\n" (gemini-companion-text-read copy)))
               ;; It is found until the user deletes it.
               (should (equal found (gemini-companion-text-found-backups)))
               (let ((gemini-companion-install-directory
                      (file-name-directory
                       (directory-file-name gemini-companion-text-backups))))
                 (should (string-search
                          copy (car (gemini-companion-test-messages
                                      (gemini-companion-part-start 'install))))))
               (delete-file copy)
               (should-not (gemini-companion-text-found-backups)))))))
      (should (equal '("." "..") (directory-files gemini-companion-text-backups))))))

(ert-deftest gemini-companion-text-rewritten-keeps-what-the-file-has ()
  (gemini-companion-test-with-directory '(("a" "old") ("dir/b" "old"))
    (let ((gemini-companion-text-backups (expand-file-name "backups/"))
          (facts (lambda (file)
                   (let ((attributes (file-attributes file)))
                     (list (file-attribute-modes attributes)
                           (file-attribute-user-id attributes)
                           (file-attribute-group-id attributes)
                           (file-attribute-link-number attributes)
                           (file-attribute-inode-number attributes))))))
      (make-symbolic-link "dir/b" "link")
      (pcase-dolist (`(,modes ,owner ,file)
                     '((#o600 nil "a") (#o644 nil "a") (#o755 nil "a")
                       (#o640 t "a") (#o664 nil "link")))
        (set-file-modes file modes)
        (when (and owner (eql 0 (user-uid)))
          (call-process "chown" nil nil nil "7:8" file))
        (let ((before (funcall facts (file-truename file))))
          (gemini-companion-text-rewrite file (gemini-companion-text-bytes file)
                                         (format "new %o" modes))
          (should (equal (butlast before)
                         (butlast (funcall facts (file-truename file)))))
          (should (equal (format "new %o" modes) (gemini-companion-text-read file)))))
      (should (equal "dir/b" (file-symlink-p "link")))
      (should (equal '("a" "dir" "link")
                     (seq-difference (directory-files "." nil "\\`[^.]")
                                     '("backups"))))
      (should (equal '("b") (directory-files "dir" nil "\\`[^.]\\|\\`\\.gemini"))))))

(ert-deftest gemini-companion-text-invisible-characters-are-escaped ()
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
    (should (< (gemini-companion-test-seconds
                 (gemini-companion-text-escaped-line long 60))
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
