;;; gemini-companion-coding-test.el --- Tests of files that are not UTF-8  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-auto)
(require 'gemini-companion-changes)
(require 'gemini-companion-coding)
(require 'gemini-companion-review-test-helper)

;;;; Guessing

(defconst gemini-companion-coding-test-texts
  '(("你好，世界！" "这是一个测试" "第二行内容" gb18030 gbk)
    ("你好，世界！" "這是一個測試" "第二行內容" big5)
    ("こんにちは世界" "テストです" "二行目の内容" euc-jp japanese-cp932)
    ("안녕하세요 세계" "시험입니다" "둘째 줄" euc-kr)
    ("Привет, мир!" "тестовый файл" "Вторая строка"
     windows-1251 koi8-r iso-8859-5)
    ("un café crème" "déjà élevé" "où ça" iso-latin-1 windows-1252)
    ("zażółć gęślą" "łódź" "błąd ćmy" iso-latin-2 windows-1250))
  "Lists of three texts and the coding systems that have them.")

(defun gemini-companion-coding-test-lines (text coding)
  "Return lines by chance, one of them with a word of TEXT, which CODING has."
  (append (seq-mapn (lambda (word number) (format "%d %s" number word))
                    (seq-take text 3) (number-sequence 1 3))
          (cl-loop repeat (random 8)
                   collect (seq-random-elt
                            `("x = 1" "" ,(format "# %s %d" (seq-elt text (random 3))
                                                  (random 100)))))
          (list (format "%s" coding))))

(ert-deftest gemini-companion-coding-guess-finds-what-the-cli-has-read ()
  :tags '(pure)
  (let ((seed (or (getenv "GC_SEED") (format "%s" (random)))))
    (random seed)
    (pcase-dolist (`(,one ,two ,three . ,codings) gemini-companion-coding-test-texts)
      (dolist (coding codings)
        (dotimes (_ 5)
          (let* ((lines (gemini-companion-coding-test-lines (list one two three)
                                                            coding))
                 (end (seq-random-elt '("\n" "\r\n")))
                 (bytes (encode-coding-string (string-join lines end) coding))
                 (changed (random (length lines)))
                 (text (string-join (append (seq-take lines changed)
                                            (list (concat (nth changed lines) " new"))
                                            (nthcdr (1+ changed) lines))
                                    "\n")))
            ;; Whatever Emacs prefers.
            (dolist (preferred (list nil '(iso-latin-1-unix) '(gb18030-unix)
                                     '(koi8-r-unix windows-1252-unix)))
              (ert-info ((format "GC_SEED=%s %s %s %S" seed coding preferred text))
                (should (equal (string-join lines end)
                               (decode-coding-string
                                bytes (gemini-companion-coding-guess
                                       bytes text preferred))))))))))))

(ert-deftest gemini-companion-coding-guess-prefers-that-of-the-buffer-on-a-tie ()
  :tags '(pure)
  (dolist (coding '(koi8-r-unix windows-1251-unix iso-8859-5-unix))
    ;; Nothing of the only line is left, or it is the same in all.
    (dolist (text '("new\n" "another\nline\n"))
      (should (eq coding (gemini-companion-coding-guess "\317\360\350\n" text
                                                        (list coding)))))))

(ert-deftest gemini-companion-coding-guess-of-one-changed-line-has-its-characters ()
  :tags '(pure)
  (dolist (coding '(koi8-r windows-1251 gb18030 euc-jp))
    (let* ((text (if (memq coding '(koi8-r windows-1251)) "Привет мир" "二行目の内容"))
           (bytes (encode-coding-string text coding)))
      (should (equal text
                     (decode-coding-string
                      bytes (gemini-companion-coding-guess
                             bytes (concat "// " text "!") '(iso-latin-1-unix))))))))

(ert-deftest gemini-companion-coding-guess-takes-bounded-time ()
  :tags '(pure)
  (let* ((line "Привет, мир! Это тестовый файл %d.\n")
         (text (mapconcat (apply-partially #'format line)
                          (number-sequence 1 100000) ""))
         (bytes (encode-coding-string text 'koi8-r-unix))
         (once (car (benchmark-run 1 (decode-coding-string bytes 'koi8-r-unix))))
         (seconds (car (benchmark-run 1
                         (should (eq 'cyrillic-koi8-unix
                                     (gemini-companion-coding-guess
                                      bytes (concat "new\n" text "new\n") nil)))))))
    ;; The time of one decoding on the same busy machine, many times over.
    (should (< seconds (+ 5 (* 40 once))))))

;;;; Characters that are lost

(ert-deftest gemini-companion-coding-lost-counts-what-is-not-written ()
  :tags '(pure)
  (pcase-dolist (`(,text ,coding ,count)
                 '(("abc é" nil 0) ("a\uFFFDb\uFFFD" nil 2) ("é→😀" iso-latin-1-unix 2)
                   ("é\uFFFD→" iso-latin-1-unix 2) ("你→\uFFFD" gb18030-unix 1)
                   ("" iso-latin-1-unix 0)))
    (should (= count (gemini-companion-coding-lost text coding)))))

(ert-deftest gemini-companion-coding-undecoded-lines-are-as-the-file-has-them ()
  (pcase-dolist (`(,bytes ,coding ,text)
                 '(("caf\351\nx\n" iso-latin-1-unix "café\nx\n")
                   ;; The CLI reads the second line.
                   ("\351\n\303\251\n" iso-latin-1-unix "é\né\n")
                   ("\304\343\272\303\n" gbk-unix "你好\n")
                   ("\303\251 \351\n" raw-text-unix "é \x3fffe9\n")
                   ("\377\376a\0" utf-16le-with-signature-unix
                    "\x3fffff\x3ffffe\ a\0")))
    (should (equal (string-to-multibyte text)
                   (gemini-companion-coding-decode-undecoded bytes coding)))))

;;;; Edits

(defmacro gemini-companion-coding-test-with (client bytes &rest body)
  "Run BODY with an edit of CLIENT open for a file a with BYTES.
The variable `propose' is a function that opens it with a text."
  (declare (indent 2) (debug t))
  `(gemini-companion-test-with-edits '(("a" ""))
     (gemini-companion-test-write "a" ,bytes)
     (let* ((id 0)
            (cli (append '(:client ,client) session))
            (propose (lambda (text)
                       (gemini-companion-test-open "a" text (cl-incf id) cli))))
       ,@body)))

(ert-deftest gemini-companion-coding-review-shows-each-character-that-is-lost ()
  (gemini-companion-coding-test-with "gemini" "caf\351\n2\nd\351j\340\n4\n"
    (let ((edit (funcall propose "caf\uFFFD\ntwo\nd\uFFFDj\uFFFD\n4\n"))
          asked)
      (should (equal (list (gemini-companion-hunk-make 1 3 1 3))
                     (gemini-companion-edit-hunks edit)))
      (should (equal "café\n2\ndéjà\n4\n"
                     (gemini-companion-test-text
                      (gemini-companion-edit-texts-original edit))))
      (should (= 3 (gemini-companion-edit-hunks-lost-count edit)))
      (should (equal "not UTF-8" (gemini-companion-auto--objection edit)))
      (cl-letf (((symbol-function 'yes-or-no-p)
                 (lambda (question) (ignore (push question asked)))))
        (gemini-companion-edit-accept edit))
      (should (gemini-companion-edit-open-p edit))
      (should (string-search "replaces 3 characters" (car asked)))
      (cl-letf (((symbol-function 'yes-or-no-p) #'always))
        (gemini-companion-edit-accept edit))
      (should (eq 'accepted (gemini-companion-edit-decision edit)))
      ;; Once for a file and turn.
      (gemini-companion-test-write "a" "caf\351\n2\nd\351j\340\n4\n")
      (gemini-companion-edit-accept
       (funcall propose "caf\uFFFD\n2\nd\uFFFDj\uFFFD\nfour\n"))
      (should (= 1 (length asked))))))

(ert-deftest gemini-companion-coding-review-does-not-ask-if-nothing-is-lost ()
  (pcase-dolist (`(,bytes ,proposal)
                 '(("caf\351\n2\n" "café\ntwo\n") ("caf\303\251\n2\n" "caf\uFFFD\ntwo\n")
                   ("\357\277\275\351\n2\n" "\uFFFDé\ntwo\n")))
    (gemini-companion-coding-test-with "gemini" bytes
      (cl-letf (((symbol-function 'yes-or-no-p) (lambda (_) (error "Asked"))))
        (gemini-companion-edit-accept (funcall propose proposal))))))

(ert-deftest gemini-companion-coding-lost-characters-of-excluded-hunks-stay ()
  (gemini-companion-coding-test-with "gemini" "\351\n2\n3\n4\n"
    (let ((edit (funcall propose "\uFFFD\n2\n3\nfour\n")))
      (gemini-companion-edit-hunks-toggle edit (car (gemini-companion-edit-hunks edit)))
      (should (= 0 (gemini-companion-edit-hunks-lost-count edit)))
      (gemini-companion-edit-accept edit)
      (should (equal "\303\251\n2\n3\nfour\n" (gemini-companion-text-bytes "a"))))))

;; It would be sent, and is nothing that a CLI can write.
(ert-deftest gemini-companion-coding-bytes-of-a-hunk-cannot-be-kept ()
  (gemini-companion-coding-test-with "gemini" "\303\251 \351\0\n2\n3\n4\n"
    (let ((edit (funcall propose "é \uFFFD\0\n2\n3\nfour\n")))
      (should (string-search
               "cannot write the bytes"
               (gemini-companion-test-refusal
                 (gemini-companion-edit-hunks-toggle
                  edit (car (gemini-companion-edit-hunks edit)))))))))

(ert-deftest gemini-companion-coding-of-qwen-code-is-that-of-its-proposal ()
  (pcase-dolist (`(,one ,two ,three . ,codings) gemini-companion-coding-test-texts)
    (dolist (coding codings)
      (dolist (visited (list nil (seq-random-elt '(t chosen wrong))))
        (ert-info ((format "%s %s" coding visited))
          (let* ((lines (list one two "x" three "y" "z"))
                 (text (concat (string-join lines "\n") "\n"))
                 (after (string-replace "x\n" (concat three "\n") text))
                 (bytes (encode-coding-string text coding)))
            (gemini-companion-coding-test-with "qwen" bytes
              (when visited
                (let ((coding-system-for-read
                       (pcase visited ('chosen coding) ('wrong 'iso-latin-1))))
                  (find-file "a")))
              (let ((edit (funcall propose after)))
                (should (equal (list (gemini-companion-hunk-make 3 1 3 1))
                               (gemini-companion-edit-hunks edit)))
                (should (equal text (gemini-companion-test-text
                                     (gemini-companion-edit-texts-original edit))))
                (should-not (gemini-companion-edit-remarks edit))
                (should-not (gemini-companion-edit-shown-in edit))
                (gemini-companion-edit-accept edit)
                (gemini-companion-test-write "a" (encode-coding-string after coding))
                (should (gemini-companion-edit-texts-in-file-p edit))
                (gemini-companion-changes-revert edit)
                (should (equal bytes (gemini-companion-text-bytes "a")))))))))))

;; It was refused, as "line 3 has changed since".
(ert-deftest gemini-companion-coding-of-a-buffer-may-differ-from-that-of-qwen-code ()
  (gemini-companion-coding-test-with "qwen" (encode-coding-string
                                             "你好\n2\n这是\n4\n" 'gbk)
    (let ((edit (funcall propose "你好\n二\n这是\n4\n")))
      (gemini-companion-edit-accept edit)
      (gemini-companion-test-write
       "a" (encode-coding-string "你好\n二\n这是\n4\n" 'gbk))
      (let ((coding-system-for-read 'iso-latin-1))
        (find-file "a"))
      (goto-char (point-max))
      (insert "mine\n")
      (gemini-companion-changes-revert edit)
      (save-buffer)
      (should (equal (encode-coding-string "你好\n2\n这是\n4\nmine\n" 'gbk)
                     (gemini-companion-text-bytes "a"))))))

;; Nothing of the text before is left, so that only the file tells.
(ert-deftest gemini-companion-coding-is-corrected-by-what-was-written ()
  (dolist (coding '(koi8-r windows-1251 big5))
    (let* ((old (if (eq coding 'big5) "這是測試\n" "тест\n"))
           (new (if (eq coding 'big5) "內容\n" "Вторая\n"))
           (bytes (encode-coding-string old coding)))
      (gemini-companion-coding-test-with "qwen" bytes
        (with-current-buffer (find-file-noselect "a")
          (let ((edit (funcall propose new)))
            (cl-letf (((symbol-function 'yes-or-no-p) #'always))
              (gemini-companion-edit-accept edit))
            (gemini-companion-test-write "a" (encode-coding-string new coding))
            (gemini-companion-test-in-the-end
             (eq 'written (gemini-companion-edit-file-state edit)))
            (gemini-companion-changes-revert edit)
            (should (equal bytes (gemini-companion-text-bytes "a")))))))))

;; Qwen Code writes a question mark.
(ert-deftest gemini-companion-coding-that-lacks-a-character-is-reported ()
  (gemini-companion-coding-test-with "qwen" "caf\351 cr\350me\n2\n"
    (let ((edit (funcall propose "café crème\n→ 2\n")))
      (gemini-companion-edit-hunks edit)
      (should (= 1 (gemini-companion-edit-hunks-lost-count edit)))
      (should (gemini-companion-auto--objection edit))
      (cl-letf (((symbol-function 'yes-or-no-p) #'always))
        (gemini-companion-edit-accept edit))
      (gemini-companion-test-write "a" "caf\351 cr\350me\n? 2\n")
      (should (gemini-companion-edit-texts-in-file-p edit)))))

;;; gemini-companion-coding-test.el ends here
