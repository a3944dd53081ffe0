;;; gemini-companion-eglot-test.el --- Tests of requests to language servers  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-eglot)
(require 'gemini-companion-errors-test-helper)

(declare-function eglot-handle-request "ext:eglot")
(declare-function jsonrpc-request "jsonrpc")

;;;; Names

;; A name that Eglot does not have is taken for a function that returns nil, so
;; that no error in a visited file would be known.
(ert-deftest gemini-companion-eglot-of-this-emacs-has-every-name-that-is-called ()
  (skip-unless (require 'eglot nil t))
  (let ((names nil))
    (dolist (library '("eglot" "errors" "lookup"))
      (with-temp-buffer
        (insert-file-contents
         (locate-library (format "gemini-companion-%s.el" library)))
        (while (re-search-forward
                "(gemini-companion-eglot--call[ \n]+'\\(eglot-[^ \n)]+\\)" nil t)
          (push (match-string 1) names))))
    (should (< 6 (length names)))
    (dolist (name (append names '("eglot-handle-notification" "jsonrpc-notify")))
      (ert-info (name)
        (should (or (fboundp (intern name))
                    (fboundp (intern (string-replace "eglot-" "eglot--"
                                                     name)))))))))

;;;; Questions

;; Emacs would read the answer in the minibuffer, in a process filter.
(ert-deftest gemini-companion-eglot-declines-the-questions-of-one-server ()
  (skip-unless (require 'eglot nil t))
  (let* ((asked nil)
         (ask (lambda (server)
                (setq asked nil)
                (eglot-handle-request server 'window/showMessageRequest :type 1
                                      :message "x" :actions [(:title "Yes")])
                asked)))
    (cl-letf (((symbol-function 'completing-read)
               (lambda (&rest _) (setq asked t) "Yes")))
      (should (funcall ask 'one))
      (gemini-companion-eglot-decline 'one t)
      (unwind-protect
          (progn
            (should-not (funcall ask 'one))
            (should (funcall ask 'two)))
        (gemini-companion-eglot-decline 'one nil))
      (should (funcall ask 'one)))))

;;;; Answers

(ert-deftest gemini-companion-eglot-reads-locations-of-each-kind ()
  (let ((range (lambda (line)
                 `(:start (:line ,line :character 4) :end (:line 9 :character 0)))))
    (pcase-dolist
        (`(,result . ,expected)
         `((nil)
           ([])
           ((:uri "file:///p/a.c" :range ,(funcall range 0)) ("/p/a.c" 1))
           ([(:uri "file:///p/b%20c.c" :range ,(funcall range 2))
             (:uri "file:///p/%C3%A4.c" :range ,(funcall range 6))
             ;; A definition may be found twice.
             (:uri "file:///p/%C3%A4.c" :range ,(funcall range 6))]
            ("/p/b c.c" 3) ("/p/ä.c" 7))
           ;; The whole function, and its name in it.
           ([(:targetUri "file:///p/a.c" :targetRange ,(funcall range 3)
              :targetSelectionRange ,(funcall range 4))]
            ("/p/a.c" 5))
           ;; The class is in an archive.
           ([(:uri "jdt://contents/a.class" :range ,(funcall range 0))]
            (nil 1))))
      (ert-info ((format "%S" result))
        (should (equal expected (gemini-companion-eglot-locations result)))))
    (pcase-dolist (`(,result . ,message)
                   '(((error "No such symbol") . "failed: No such symbol")
                     ((error nil) . "failed: no answer in time")))
      (should (string-suffix-p
               message (gemini-companion-test-refusal
                         (gemini-companion-eglot-locations result)))))))

(defun gemini-companion-eglot-test-edit (line beg end new)
  "Return an edit of the protocol for BEG to END of LINE, with the text NEW."
  `(:range (:start (:line ,line :character ,beg) :end (:line ,line :character ,end))
    :newText ,new))

(ert-deftest gemini-companion-eglot-reads-edits-of-each-kind ()
  (let ((edit (gemini-companion-eglot-test-edit 0 0 1 "x")))
    (pcase-dolist
        (`(,result . ,expected)
         `((nil)
           ((:changes nil))
           ((:changes (:file:///p/a%20b.c [,edit ,edit] :file:///p/c.c []))
            ("/p/a b.c" ,edit ,edit))
           ((:documentChanges [(:textDocument (:uri "file:///p/a.c" :version nil)
                                :edits [,edit])])
            ("/p/a.c" ,edit))))
      (ert-info ((format "%S" result))
        (should (equal expected (gemini-companion-eglot-changes result)))))
    (pcase-dolist
        (`(,result . ,message)
         `(((error "No such symbol") . "failed: No such symbol; ask the user")
           ((:documentChanges [(:kind "rename" :oldUri "file:///a")])
            . "rename or delete files; ask the user")
           ((:changes (:jdt://a.class [,edit])) . "than a file; ask the user")))
      (should (string-suffix-p message
                               (gemini-companion-test-refusal
                                 (gemini-companion-eglot-changes result)))))))

;; A symbol of a minified file; counting from the beginning each time took minutes.
(ert-deftest gemini-companion-eglot-edits-a-long-line-in-thousands-of-places ()
  (let ((text (apply #'concat (make-list 3000 "x=one();")))
        (counted 0))
    (should (equal (string-replace "one" "three" text)
                   (gemini-companion-eglot-edited
                    text
                    (mapcar (lambda (place)
                              (gemini-companion-eglot-test-edit
                               0 (+ 2 (* 8 place)) (+ 5 (* 8 place)) "three"))
                            (number-sequence 0 2999))
                    (lambda (piece)
                      (setq counted (+ counted (length piece)))
                      (length piece)))))
    (should (< counted (* 5 (length text))))))

(ert-deftest gemini-companion-eglot-edits-a-text-by-each-count-of-columns ()
  (let ((text "\N{GRINNING FACE}\u00e4\u20ac one, one\r\none\n"))
    (pcase-dolist (`(,units ,first ,second)
                   `((length 4 9) (string-bytes 10 15)
                     (gemini-companion-text-units 5 10)))
      (ert-info ((format "%s" units))
        (should (equal (string-replace "one" "three" text)
                       (gemini-companion-eglot-edited
                        text
                        (list (gemini-companion-eglot-test-edit
                               0 first (+ 3 first) "three")
                              (gemini-companion-eglot-test-edit 1 0 3 "three")
                              (gemini-companion-eglot-test-edit
                               0 second (+ 3 second) "three"))
                        units)))))
    ;; Some servers replace the whole file.
    (should (equal "new" (gemini-companion-eglot-edited
                          text
                          '((:range (:start (:line 0 :character 0)
                                     :end (:line 9 :character 0))
                             :newText "new"))
                          #'length)))
    (should (equal "one two\n" (gemini-companion-eglot-edited
                                "one\n"
                                (list (gemini-companion-eglot-test-edit
                                       0 99 99 " two"))
                                #'length)))
    (dolist (ranges '(((0 2) (1 3)) ((0 0) (0 0)) ((2 1))))
      (should (string-search
               "overlap"
               (gemini-companion-test-refusal
                 (gemini-companion-eglot-edited
                  "one" (mapcar (pcase-lambda (`(,beg ,end))
                                  (gemini-companion-eglot-test-edit 0 beg end "x"))
                                ranges)
                  #'length)))))))

(ert-deftest gemini-companion-eglot-takes-only-errors-of-diagnostics ()
  (cl-flet ((diagnostic (line &rest rest)
              `(:range (:start (:line ,line :character 0)) :source "clang" ,@rest)))
    (should (equal '((1 "wrong" "clang") (5 "without a severity" "clang"))
                   (gemini-companion-eglot-errors
                    (vector
                     (diagnostic 0 :severity 1 :message "wrong")
                     (diagnostic 1 :severity 2 :message "a warning")
                     (diagnostic 2 :severity 1 :message "too many errors emitted"
                                 :code "fatal_too_many_errors")
                     (diagnostic 4 :message "without a severity")))))))

;;;; Servers

(ert-deftest gemini-companion-eglot-finds-the-server-of-a-language-below-its-root ()
  (gemini-companion-test-in-project (gemini-companion-test-server)
      '(("a.py" "") ("sub/b.py" "") ("c.txt" ""))
    (let ((neighbor (lambda (file)
                      (gemini-companion-eglot-neighbor (expand-file-name file)))))
      (should (gemini-companion-eglot-server (current-buffer)))
      (dolist (file '("sub/b.py" "new.py"))
        (should (eq (current-buffer) (funcall neighbor file))))
      (dolist (file '("c.txt" "../elsewhere.py" "a"))
        (should-not (funcall neighbor file)))
      ;; A header of C++ may be named as one of C.
      (let ((buffer-file-name (expand-file-name "a.cpp")))
        (dolist (file '("a.h" "a.hpp" "a.c" "a.cc"))
          (should (eq (current-buffer) (funcall neighbor file))))
        (should-not (funcall neighbor "sub/b.py"))))
    (with-temp-buffer
      (should-not (gemini-companion-eglot-server (current-buffer))))))

(ert-deftest gemini-companion-eglot-collects-answers-in-the-order-of-requests ()
  (gemini-companion-test-in-project (gemini-companion-test-server)
      '(("a.py" "word\nword\n"))
    (let* ((server (gemini-companion-eglot-server (current-buffer)))
           (references
            `(:textDocument/references
              :textDocument (:uri ,(gemini-companion-eglot-uri buffer-file-name))
              :position (:line 0 :character 0)
              :context (:includeDeclaration t)))
           (answers nil))
      (gemini-companion-test-demoted
        (gemini-companion-eglot-request
         server (list '(:test/fail) references)
         (lambda (results) (push results answers)))
        (gemini-companion-test-wait (lambda () answers)))
      (pcase-let ((`((,failed ,found)) answers))
        (should (equal '(error "It fails") failed))
        (should (equal `((,buffer-file-name 1) (,buffer-file-name 2))
                       (gemini-companion-eglot-locations found)))))))

(ert-deftest gemini-companion-eglot-opens-and-closes-a-file-without-a-buffer ()
  (gemini-companion-test-in-project (gemini-companion-test-server "versions")
      '(("a.py" "") ("b.py" "on disk"))
    (let* ((server (gemini-companion-eglot-server (current-buffer)))
           (file (expand-file-name "b.py"))
           (has-p (lambda (text)
                    (eq t (jsonrpc-request
                           server :test/reported
                           `( :uri ,(gemini-companion-eglot-uri file)
                              :text ,text)))))
           (first (gemini-companion-eglot-open file server "one"
                                               (current-buffer))))
      (gemini-companion-test-eventually (funcall has-p "one"))
      (gemini-companion-eglot-close file server)
      ;; A late report about the first text has another version.
      (should (< first (gemini-companion-eglot-open file server "two"
                                                    (current-buffer))))
      (gemini-companion-test-eventually (funcall has-p "two"))
      (gemini-companion-eglot-close file server)
      (should-not (find-buffer-visiting file)))))

(ert-deftest gemini-companion-eglot-sends-a-text-once-the-server-has-read-others ()
  (gemini-companion-test-in-project (gemini-companion-test-server)
      '(("a.py" ""))
    (let ((sent nil)
          (failed nil))
      (gemini-companion-eglot-when-read
       (gemini-companion-eglot-server (current-buffer))
       (lambda () (setq sent t))
       (lambda () (setq failed t)))
      (gemini-companion-test-eventually sent)
      (should-not failed))))

;;; gemini-companion-eglot-test.el ends here
