;;; gemini-companion-text-test-helper.el --- Help for tests of texts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-text)

;; The judge knows only the texts.  Before, between and after two blocks of lines
;; that stay, and that are so long that diff finds them, lines are edited.

(defun gemini-companion-text-test-block (name)
  "Return lines that stay, NAME in the midst."
  (let ((lines (mapconcat (lambda (n) (format "\303\251 é %s %d\n" name n))
                          (number-sequence 1 15) "")))
    (concat lines name "\n" lines)))

(defun gemini-companion-text-test-random-line ()
  "Return a line of pieces whose bytes may be those of others.
It may have a line end, as a piece, and has none at its end."
  (mapconcat (lambda (_)
               (seq-random-elt
                (list "a" "b " "é" "\u4e2d" "\U0001F600" "\0" "\r" "\\" "\"" "\\351"
                      "e\u0301" "\u2028" "\uFEFF" "\uFFFD"
                      ;; Beyond Unicode, and a surrogate.
                      (string #x110000) (string #x3fff7f) (string #xd83d)
                      ;; The bytes of é and of the character after the quote.
                      (string-to-multibyte "\351") (string-to-multibyte "\303\251")
                      (string-to-multibyte "\344\270\255")
                      (string-to-multibyte "\303"))))
             (make-list (random 5) nil) ""))

(defun gemini-companion-text-test-random-lines (most)
  "Return a text of MOST lines at most."
  (mapconcat (lambda (_)
               (concat (gemini-companion-text-test-random-line)
                       (seq-random-elt '("\n" "\n" "\r\n"))))
             (make-list (random (1+ most)) nil) ""))

(defun gemini-companion-text-test-random-edit (text)
  "Return TEXT with a few lines replaced, deleted or added, or none.
An added line may be one that is there, in other characters with its bytes."
  (mapconcat
   (lambda (line)
     (pcase (random 12)
       (0 "")
       (1 (concat (gemini-companion-text-test-random-line) "\n"))
       (2 (concat line (gemini-companion-text-test-random-line) "\n"))
       (3 (decode-coding-string (encode-coding-string line 'utf-8-emacs-unix)
                                'utf-8-emacs-unix))
       (_ line)))
   (split-string text "^" t) ""))

(defun gemini-companion-text-test-random-texts (count)
  "Return COUNT texts, of which each one but the first is edited from that.
The two blocks are in all."
  (let ((parts (list (gemini-companion-text-test-random-lines 6) (gemini-companion-text-test-block "FIRST")
                     (gemini-companion-text-test-random-lines 6)
                     (gemini-companion-text-test-block "SECOND")
                     (concat (gemini-companion-text-test-random-lines 6)
                             (gemini-companion-text-test-random-line)))))
    (cl-loop for n below count
             collect (mapconcat
                      (lambda (part)
                        (if (or (zerop n) (string-match-p "FIRST\\|SECOND" part))
                            part
                          (gemini-companion-text-test-random-edit part)))
                      parts ""))))

(defun gemini-companion-text-test-times (times)
  "Return TIMES multiplied by the variable GC_TIMES of `make soak'."
  (* times (string-to-number (or (getenv "GC_TIMES") "1"))))

(defmacro gemini-companion-text-test-at-random (times &rest body)
  "Evaluate BODY TIMES times or more, with a seed that a failure names."
  (declare (indent 1) (debug t))
  `(let ((seed (or (getenv "GC_SEED") (format "%s" (random)))))
     (ert-info ((format "GC_SEED=%s" seed))
       (random seed)
       (dotimes (_ (gemini-companion-text-test-times ,times))
         ,@body))))

(defmacro gemini-companion-text-test-where-diff-fails (&rest body)
  "Evaluate BODY for each way in which two texts cannot be compared.
`reason' is a regexp that matches the error message."
  (declare (indent 0) (debug t))
  `(pcase-dolist (`(,symbol ,value . ,reason)
                  '((temporary-file-directory "/no-such-directory/"
                                              . "diff failed (.*o such")
                    (diff-command "no-such-diff" . "Cannot find the program no-such")
                    ;; No process can be started: this file is no program.
                    (diff-command "/dev/null" . "Cannot find the program")
                    (diff-command "false" . "false failed")
                    (diff-command "true" . "true failed")
                    (diff-command "cat" . "cat failed")))
     (ert-info ((format "%s %s" symbol value))
       (cl-progv (list symbol) (list value)
         (ignore reason)
         ;; ERT of Emacs 28 would debug errors that hooks and timers report.
         (let ((debug-on-error nil))
           ,@body)))))

(provide 'gemini-companion-text-test-helper)
;;; gemini-companion-text-test-helper.el ends here
