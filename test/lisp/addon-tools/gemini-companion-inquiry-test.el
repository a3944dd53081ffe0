;;; gemini-companion-inquiry-test.el --- Tests of what a model asks  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-inquiry)
(require 'gemini-companion-permission-test-helper)

(defun gemini-companion-inquiry-test-ask (choices &optional id &rest slots)
  "Ask CHOICES, lists (QUESTION HEADER OPTIONS MULTIPLE); return the inquiry.
OPTIONS are lists (LABEL DESCRIPTION).  With ID, the hook of the CLI waits;
SLOTS are others of the server."
  (apply #'gemini-companion-permission-test-ask nil id
         '(kind . "inquiry") '(tool . "Question")
         `(choices . ,(vconcat
                       (mapcar (pcase-lambda (`(,question ,header ,options ,multiple))
                                 `((question . ,question)
                                   (header . ,(or header ""))
                                   (options . ,(vconcat (mapcar #'vconcat options)))
                                   (is_multiple . ,(if multiple t :json-false))))
                               choices)))
         slots))

(defconst gemini-companion-inquiry-test-colors
  '(("Which one?" "Pick" (("red" "like fire") ("blue" "like the sea")) nil))
  "A question with two options.")

(defun gemini-companion-inquiry-test-type (inquiry typed &optional yes)
  "Answer INQUIRY by its key: by TYPED, a list, and YES to the last question."
  (gemini-companion-permission-test-see inquiry)
  (cl-letf (((symbol-function 'completing-read)
             (lambda (_prompt options &rest more)
               ;; There is no default.
               (should-not (nth 5 more))
               (let ((answer (pop typed)))
                 (if (numberp answer) (nth answer options) answer))))
            ((symbol-function 'y-or-n-p) (lambda (_) yes)))
    (gemini-companion-permission-test-type "a")))

(defun gemini-companion-inquiry-test-sent ()
  "Return the message that was sent last, after a check that it is no yes."
  (let ((answer (car gemini-companion-permission-test-answers)))
    (should (equal "deny" (plist-get answer :behavior)))
    (plist-get answer :message)))

(ert-deftest gemini-companion-inquiry-has-its-text-and-options ()
  (gemini-companion-permission-test-with
    (let ((inquiry (gemini-companion-inquiry-test-ask
                    (append gemini-companion-inquiry-test-colors
                            '(("And why?" nil nil nil)))
                    "one")))
      (should (equal "Question  Which one?  (red, blue)  +1 more"
                     (substring-no-properties
                      (gemini-companion-permission-summary inquiry))))
      (gemini-companion-request-show inquiry)
      (with-current-buffer (window-buffer)
        (dolist (text '("Question: one answer\n" "  Pick: Which one?\n"
                        "  1. red: like fire\n" "  2. blue: like the sea\n"
                        "And why?" "Qwen Code (shop)" "/src/shop"))
          (should (string-search text (buffer-string))))))))

(ert-deftest gemini-companion-inquiry-is-answered-by-choice-or-other-words ()
  (pcase-dolist
      (`(,choices ,typed ,sent)
       `((,gemini-companion-inquiry-test-colors (1) "**Pick**: blue")
         (,gemini-companion-inquiry-test-colors ("2") "**Pick**: blue")
         (,gemini-companion-inquiry-test-colors ("red") "**Pick**: red")
         (,gemini-companion-inquiry-test-colors ("3") "**Pick**: 3")
         (,gemini-companion-inquiry-test-colors (" no, \"green\" ä ")
          "**Pick**: no, \"green\" ä")
         ((("All?" "" (("a" "") ("b" "") ("c" "")) t)) (2 0 "else" "")
          "**All?**: c, a, else")
         ((("One" "A" (("x" "")) nil) ("Two" "B" nil nil)) (0 "why not")
          "**A**: x\n**B**: why not")
         ;; A label that looks like another, or like the text of Emacs.
         ((("One" "A" (("x" "") ("x\u200b" "") ("1. x" "")) nil)) (1)
          "**A**: x\u200b")
         ((("One" "A" (("x" "") ("x" "") ("1. x" "")) nil)) ("3") "**A**: 1. x")))
    (ert-info ((format "%S" typed))
      (gemini-companion-permission-test-with
        (let ((inquiry (gemini-companion-inquiry-test-ask choices "one")))
          (gemini-companion-inquiry-test-type inquiry typed t)
          (should (equal (concat "User has provided the following answers:\n\n" sent)
                         (gemini-companion-inquiry-test-sent)))
          (should-not (gemini-companion-permission-test-open)))))))

(ert-deftest gemini-companion-inquiry-has-no-default-answer ()
  (gemini-companion-permission-test-with
    (let ((inquiry (gemini-companion-inquiry-test-ask
                    gemini-companion-inquiry-test-colors "one")))
      ;; The key was typed before it was displayed.
      (gemini-companion-request-show inquiry)
      (with-current-buffer (gemini-companion-request-buffer inquiry)
        (gemini-companion-permission-test-refused
          (gemini-companion-permission-test-type "a")))
      ;; Nothing was typed; no yes to the last question.
      (gemini-companion-permission-test-refused
        (gemini-companion-inquiry-test-type inquiry '("") t))
      (gemini-companion-permission-test-refused
        (gemini-companion-inquiry-test-type inquiry '(0) nil))
      (gemini-companion-permission-test-refused
        (gemini-companion-request-answer inquiry 'allow))
      (gemini-companion-permission-test-refused
        (gemini-companion-request-answer inquiry 'refuse))
      ;; No key of a permission works here.
      (with-current-buffer (gemini-companion-request-buffer inquiry)
        (should (eq 'undefined (or (key-binding "r") 'undefined)))
        (should (eq 'undefined (or (key-binding "R") 'undefined))))
      (should (gemini-companion-permission-answer inquiry)))))

(ert-deftest gemini-companion-inquiry-of-others-is-answered-in-the-terminal ()
  (gemini-companion-permission-test-with
    (gemini-companion-inquiry-test-ask gemini-companion-inquiry-test-colors)
    (let ((question (car (gemini-companion-requests))))
      (should (string-search "Which one?" (gemini-companion-request-label question)))
      (setq gemini-companion-permission-test-answers nil)
      (gemini-companion-permission-test-refused
        (gemini-companion-request-answer question '(refuse . "red"))))))

(ert-deftest gemini-companion-inquiry-of-any-text-shows-what-it-is ()
  (gemini-companion-permission-test-with
    (let* ((fake "red\nTool: Shell, asked at 12:00\nProject: evil\n\u202e\u200b")
           (inquiry (gemini-companion-inquiry-test-ask
                     `((,fake ,fake ((,fake ,fake)) nil)) "one")))
      (gemini-companion-request-show inquiry)
      (should-not (string-search "\n" (gemini-companion-request-label inquiry)))
      (with-current-buffer (window-buffer)
        (should-not (string-match-p "[\u202e\u200b]" (buffer-string)))
        (goto-char (point-min))
        (should (= 1 (how-many "^Tool: ")))
        (should (= 1 (how-many "^Project: ")))))
    ;; Too long to be answered here.
    (dolist (choices `(((,(make-string 300000 ?x) "A" (("a" "")) nil))
                       (("One" "A" ((,(make-string 300000 ?\n) "")) nil))
                       (("One" "A" ,(make-list 3000 '("a" "b")) nil))
                       ,(make-list 3000 '("One" "A" nil nil))))
      (gemini-companion-server-receive 'withdrawn "one" 'ended)
      (gemini-companion-state-report gemini-companion-permission-test-session
                                     'progress nil)
      (setq gemini-companion-permission-test-answers nil)
      (gemini-companion-inquiry-test-ask choices "one")
      (let ((inquiry (car (gemini-companion-requests))))
        (should (equal '(nil) gemini-companion-permission-test-answers))
        (with-temp-buffer
          (let ((start (float-time)))
            (gemini-companion-request-insert inquiry)
            (should (< (- (float-time) start) 60)))
          (should (< (buffer-size) 300000))
          (should (string-search "more characters are not shown"
                                 (buffer-string))))))))

;;; gemini-companion-inquiry-test.el ends here
