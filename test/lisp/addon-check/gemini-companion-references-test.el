;;; gemini-companion-references-test.el --- Tests of references left behind  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-overview-test-helper)
(require 'gemini-companion-references)

(defmacro gemini-companion-references-test-with (before after &rest body)
  "Run BODY on the change of a turn that made AFTER of BEFORE in shop.py.
The turn has also written new.py; bill.py and tax.py call price three times."
  (declare (indent 2) (debug t))
  `(gemini-companion-overview-test-with
       `(("shop.py" ,,before) ("new.py" "\n")
         ("bill.py" "import shop\nshop.price(1)\nx = shop.price(2)\n")
         ("tax.py" "from shop import price\nprices = [1]\n"))
     (gemini-companion-overview-test-git nil "init" "-q")
     (gemini-companion-test-writes "new.py" "import shop\nshop.price(1)\n" session)
     (gemini-companion-test-writes "shop.py" ,after session)
     (gemini-companion-turn-page)
     (gemini-companion-overview-test-keys "4")
     (let ((inhibit-message t)
           (project-list-file (expand-file-name ".projects")))
       (unwind-protect
           (progn ,@body)
         (when (get-buffer "*xref*")
           (kill-buffer "*xref*"))))))

(defun gemini-companion-references-test-shown ()
  "Return the lines of the buffer of xref."
  (with-current-buffer "*xref*"
    (split-string (buffer-substring-no-properties (point-min) (point-max)) "\n" t)))

(ert-deftest gemini-companion-references-are-those-in-files-that-the-turn-has-not-written ()
  (gemini-companion-references-test-with
      "def price(a):\n    return a\n\ndef other():\n    return price(1)\n"
      "def price(a, tax):\n    return a + tax\n\ndef other():\n    return price(1)\n"
    (gemini-companion-overview-test-go-to "def price(a, tax)")
    (should (string-prefix-p
             (concat "3 references to ‘price’ in 2 files that no edit of this turn touches")
             (subst-char-in-string
              ?' ?’ (subst-char-in-string
                     ?` ?‘ (gemini-companion-overview-test-keys "M-?")))))
    (let ((lines (gemini-companion-references-test-shown)))
      (should (seq-some (apply-partially #'string-search "x = shop.price(2)") lines))
      (should-not (seq-some (apply-partially #'string-search "new.py") lines))
      (should-not (seq-some (apply-partially #'string-search "prices") lines)))))

(ert-deftest gemini-companion-references-to-what-a-turn-has-renamed-are-found ()
  (gemini-companion-references-test-with
      "def price(a):\n    return a\n" "def cost(a):\n    return a\n"
    (gemini-companion-overview-test-go-to "def cost")
    (should (string-match-p
             "3 references to .price. in 2 files"
             (gemini-companion-overview-test-keys "M-? p r i c e RET")))
    (should (string-match-p
             "0 references to .cost. in 0 files"
             (progn (gemini-companion-list)
                    (gemini-companion-overview-test-go-to "def cost")
                    (gemini-companion-overview-test-keys "M-? c o s t RET"))))
    ;; In the file, by its command.
    (find-file "shop.py")
    (goto-char (point-min))
    (execute-kbd-macro (kbd "M-x g e m i n i - c o m p a n i o n - r e f e r e n c e s RET
p r i c e RET"))
    (should (gemini-companion-references-test-shown))))

(ert-deftest gemini-companion-references-say-why-there-are-none ()
  (gemini-companion-references-test-with
      "def price(a):\n    return a\n" "def price(a):\n    return a + 1\n"
    (gemini-companion-overview-test-go-to "return a \\+ 1")
    (should (equal '(user-error "No definition in the lines of this change")
                   (should-error (gemini-companion-overview-test-keys "M-?")
                                 :type 'user-error)))
    (gemini-companion-overview-test-go-to "shop.py")
    (should-error (gemini-companion-overview-test-keys "M-?") :type 'user-error))
  (gemini-companion-references-test-with
      "def price(a):\n    return a\n" "def price(b):\n    return b\n"
    (gemini-companion-overview-test-go-to "def price(b)")
    (with-current-buffer (find-file-noselect "shop.py")
      (setq-local xref-backend-functions nil))
    (should (string-match-p "No xref backend here"
                            (cadr (should-error (gemini-companion-overview-test-keys "M-?")
                                                :type 'user-error))))))

;;; gemini-companion-references-test.el ends here
