;;; gemini-companion-coding-test.el --- Tests of files that are not UTF-8  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-auto)
(require 'gemini-companion-undo)
(require 'gemini-companion-client-qwen)
(require 'gemini-companion-coding)
(require 'gemini-companion-edit-test-helper)
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
                                       bytes text
                                       (gemini-companion-client-codings "qwen")
                                       preferred))))))))))))

(ert-deftest gemini-companion-coding-guess-prefers-that-of-the-buffer-on-a-tie ()
  :tags '(pure)
  (dolist (coding '(koi8-r-unix windows-1251-unix iso-8859-5-unix))
    ;; Nothing of the only line is left, or it is the same in all.
    (dolist (text '("new\n" "another\nline\n"))
      (should (eq coding (gemini-companion-coding-guess "\317\360\350\n" text
                                                        (gemini-companion-client-codings "qwen")
                                                        (list coding)))))))

(ert-deftest gemini-companion-coding-guess-of-one-changed-line-has-its-characters ()
  :tags '(pure)
  (dolist (coding '(koi8-r windows-1251 gb18030 euc-jp))
    (let* ((text (if (memq coding '(koi8-r windows-1251)) "Привет мир" "二行目の内容"))
           (bytes (encode-coding-string text coding)))
      (should (equal text
                     (decode-coding-string
                      bytes (gemini-companion-coding-guess
                             bytes (concat "// " text "!")
                             (gemini-companion-client-codings "qwen")
                             '(iso-latin-1-unix))))))))

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
                                      bytes (concat "new\n" text "new\n")
                                      (gemini-companion-client-codings "qwen") nil)))))))
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

(ert-deftest gemini-companion-coding-of-qwen-code-is-that-of-its-proposal ()
  (pcase-dolist (`(,one ,two ,three . ,codings) gemini-companion-coding-test-texts)
    (dolist (coding codings)
      (dolist (visited (list nil (seq-random-elt '(t chosen wrong))))
        (ert-info ((format "%s %s" coding visited))
          (let* ((lines (list one two "x" three "y" "z"))
                 (text (concat (string-join lines "\n") "\n"))
                 (after (string-replace "x\n" (concat three "\n") text))
                 (bytes (encode-coding-string text coding)))
            (gemini-companion-edit-test-with-bytes "qwen" bytes
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
                (should-not (gemini-companion-edit-texts-shown-in edit))
                (gemini-companion-edit-accept edit)
                (gemini-companion-test-write "a" (encode-coding-string after coding))
                (should (gemini-companion-edit-texts-in-file-p edit))
                (gemini-companion-undo-edit edit)
                (should (equal bytes (gemini-companion-text-bytes "a")))))))))))

;;; gemini-companion-coding-test.el ends here
