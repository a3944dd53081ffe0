;;; gemini-companion-list-test.el --- Tests of the list of edits  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-ediff)
(require 'gemini-companion-list)
(require 'gemini-companion-part)
(require 'gemini-companion-remote-test-helper)
(require 'gemini-companion-review-test-helper)

(defmacro gemini-companion-list-test-with (files &rest body)
  "Show the list while BODY is run in a directory with FILES.
No review is shown by itself, and no CLI is connected."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-edits ,files
     (setq gemini-companion-review-arrival 'notify)
     (gemini-companion-server-receive 'sessions-update nil)
     (mapc #'gemini-companion-part-start '(state changes))
     (unwind-protect
         (save-window-excursion
           (gemini-companion-list)
           ,@body)
       (mapc #'gemini-companion-part-stop '(changes state))
       (gemini-companion-part-stop 'list)
       (gemini-companion-remove-comments 'all))))

(defun gemini-companion-list-test-open (id session file text)
  "Open a diff ID of SESSION, a number, for FILE with TEXT; return it."
  (gemini-companion-test-open file text id
                              (gemini-companion-test-session
                               (format "s%d" session) session)))

(defun gemini-companion-list-test-line (&optional numbers)
  "Return the line at point, with its sign, and two blanks between columns.
With NUMBERS also with what else is displayed before it."
  (let ((prefix (or (get-text-property (point) 'line-prefix) "")))
    (replace-regexp-in-string
     "  +" "  "
     (string-trim-right
      (concat (if (or numbers (string-empty-p prefix))
                  prefix
                (substring prefix -1))
              (buffer-substring (line-beginning-position)
                                (line-end-position)))))))

(defun gemini-companion-list-test-lines ()
  "Return the visible lines of the list."
  (with-current-buffer "*gemini edits*"
    (save-excursion
      (goto-char (point-min))
      (let (lines)
        (while (not (eobp))
          (push (substring-no-properties (gemini-companion-list-test-line))
                lines)
          (gemini-companion-list-test-forward))
        (nreverse lines)))))

(defun gemini-companion-list-test-forward ()
  "Go to the next visible line."
  (while (progn (forward-line)
                (and (not (eobp)) (invisible-p (point))))))

(defun gemini-companion-list-test-shows (&rest lines)
  "Assert that the list comes to show LINES after the first one.
Lines of turns whose prompt and end are unknown do not count."
  (let* ((turn "\\`  [0-9][0-9]:[0-9][0-9]  ")
         (shown (lambda ()
                  (cdr (seq-remove (apply-partially #'string-match-p turn)
                                   (gemini-companion-list-test-lines))))))
    (gemini-companion-test-wait (lambda () (equal lines (funcall shown))) 60)
    (should (equal lines (funcall shown)))))

(defun gemini-companion-list-test-go-to (text)
  "Wait for a line with TEXT in the list, and go to it.
A newline in TEXT is one before the line."
  (gemini-companion-test-eventually
    (when-let* ((line (seq-position (gemini-companion-list-test-lines) text
                                    (lambda (line text)
                                      (string-search text (concat "\n" line))))))
      (goto-char (point-min))
      (dotimes (_ line)
        (gemini-companion-list-test-forward))
      t)))

(defun gemini-companion-list-test-here ()
  "Return the line at point without indentation."
  (save-excursion
    (beginning-of-line)
    (string-trim-left
     (substring-no-properties (gemini-companion-list-test-line)))))

(defun gemini-companion-list-test-key (key &optional line &rest answers)
  "Do what KEY does in the list, at LINE if that is non-nil.
If there are ANSWERS, the first one, a value or a function, answers each
question in the minibuffer."
  (when line
    (gemini-companion-list-test-go-to line))
  (if (null answers)
      (call-interactively (key-binding (kbd key)))
    (let ((answer (if (functionp (car answers))
                      (car answers)
                    (lambda (&rest _) (car answers)))))
      (cl-letf (((symbol-function 'y-or-n-p) answer)
                ((symbol-function 'read-string) answer))
        (gemini-companion-list-test-key key)))))

(ert-deftest gemini-companion-list-shows-the-edits-of-each-cli ()
  (gemini-companion-list-test-with '(("a" "one\ntwo\n") ("b" "B\n"))
    (should (equal '("No CLI is connected") (gemini-companion-list-test-lines)))
    (let ((project (file-name-nondirectory (directory-file-name directory)))
          (two (gemini-companion-test-session "s2" 2)))
      (gemini-companion-server-receive 'sessions-update
        (list (gemini-companion-test-session "s1" 1)))
      (gemini-companion-arrival-view
       (gemini-companion-list-test-open 1 1 "a" "one\n2\n3\n"))
      (gemini-companion-list-test-open 2 1 "b" "C\n")
      (gemini-companion-edit-reject
       (gemini-companion-list-test-open 3 2 "new" "N\n"))
      (gemini-companion-file-state-record two (concat directory "x") "" "1\n2\n")
      (gemini-companion-file-state-record '(:id "?qwen" :client "qwen")
                                          "/gemini-companion-test" nil "1\n")
      (gemini-companion-list-test-shows
       "  shown  +2 −1  a"
       "  waiting  +1 −1  b"
       (format "the CLI (%s, process 2)  disconnected" project)
       "  rejected  +1 −0  new"
       "  written without review  +2 −0  x"
       "Qwen Code (session ?qwen)  disconnected"
       "  deleted  +1 −0  outside your projects; /gemini-companion-test")
      (should (string-prefix-p (format "the CLI (%s)  waiting" project)
                               (car (gemini-companion-list-test-lines)))))))

(ert-deftest gemini-companion-list-counts-lines-as-diff-does ()
  (gemini-companion-list-test-with '(("a" "one\ntwo\nthree\n")
                                     ("dos" "one\r\ntwo\r\n")
                                     ("big" ""))
    (pcase-dolist (`(,file ,text ,lines)
                   `(("a" "one\n> 2\n< 2\nthree\n" "+2 −1")
                     ("a" "one\n-- 2\n++ 3\n@@ -1 +1 @@\nthree\n" "+3 −1")
                     ("dos" "one\ntwo\n" "+0 −0")
                     ("big" ,(apply #'concat (make-list 90000 "line\n"))
                      "+90000 −0")
                     ("new" "n\n" "+1 −0")))
      (let ((diff (gemini-companion-list-test-open 1 1 file text)))
        (gemini-companion-list-test-go-to (format "%s  %s" lines file))
        (gemini-companion-proposal-close diff 'lost)))
    (gemini-companion-list-test-open 1 1 "a" "one\n")
    (gemini-companion-list-test-go-to "+0 −2  a")
    (gemini-companion-test-write "a" "1\n")
    (gemini-companion-list-test-key "g")
    (gemini-companion-list-test-go-to "+1 −1  a")
    (let ((diff-command "no-such-diff"))
      (gemini-companion-list-test-open 2 1 "a" "b\n")
      (gemini-companion-list-test-go-to "?  a"))))

(ert-deftest gemini-companion-list-shows-colors-and-line-numbers ()
  (gemini-companion-list-test-with nil
    (gemini-companion-file-state-record
     (gemini-companion-test-session "s1" 1) (concat directory "a.el")
     "(setq a 1)\r\n(setq b 2)\r\n" "(setq a 1)\r\n(defun b ())\r\n")
    (gemini-companion-list-test-key "TAB" "+1 −1  a.el")
    (pcase-dolist (`(,line ,face)
                   '((" 1  1  (setq a 1)" font-lock-keyword-face)
                     (" 2  -(setq b 2)" gemini-companion-removed)
                     ("  2  +(defun b ())" gemini-companion-added)))
      (gemini-companion-list-test-go-to (substring line -4))
      (should (equal line (substring-no-properties
                           (gemini-companion-list-test-line 'all))))
      (dolist (face (list 'font-lock-keyword-face face))
        (should (memq face (ensure-list (get-text-property (1+ (point))
                                                           'face))))))))

(ert-deftest gemini-companion-list-unfolds-unchanged-lines ()
  (gemini-companion-list-test-with '(("a" "1\n2\n3\n4\n5\n6\n7\n8\n"))
    (gemini-companion-list-test-open 1 1 "a" "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    (gemini-companion-list-test-key "TAB" "+1 −0  a")
    (should-error (gemini-companion-list-test-key "x") :type 'user-error)
    (gemini-companion-list-test-key "TAB" "... 5 unchanged lines")
    (should (equal "1" (gemini-companion-list-test-here)))
    (gemini-companion-list-test-key "c" "\n 3" "why?")
    (gemini-companion-list-test-key "x" "+9" t)
    (should (string-search " x+9" (gemini-companion-list-test-line 'all)))
    (gemini-companion-list-test-key "TAB" "\n 4")
    (should (equal "... 5 unchanged lines" (gemini-companion-list-test-here)))
    ;; A comment on a folded line is at the top.
    (gemini-companion-list-test-shows
     "  waiting  +0 −0  a  1 excluded  1 comment" "  >> 3: why?"
     " ... 5 unchanged lines" " 6" " 7" " 8" "+9")
    ;; It does nothing while nothing changes.
    (gemini-companion-test-eventually
      (null (gemini-companion-test-timers "list\\|page")))))

(ert-deftest gemini-companion-list-is-an-outline ()
  (gemini-companion-list-test-with '(("a" "one\n") ("b" "two\n"))
    (gemini-companion-list-test-open 1 1 "a" "1\n")
    (gemini-companion-list-test-open 2 1 "b" "2\n")
    (gemini-companion-list-test-key "TAB" "+1 −1  a")
    (gemini-companion-list-test-shows "  waiting  +1 −1  a" "-one" "+1"
                                      "  waiting  +1 −1  b")
    (gemini-companion-list-test-key "TAB")
    (gemini-companion-list-test-shows "  waiting  +1 −1  a"
                                      "  waiting  +1 −1  b")
    (should (equal "waiting  +1 −1  a" (gemini-companion-list-test-here)))
    (outline-show-all)
    (gemini-companion-list-test-shows "  waiting  +1 −1  a" "-one" "+1"
                                      "  waiting  +1 −1  b" "-two" "+2")
    (outline-hide-sublevels 1)
    (gemini-companion-list-test-open 3 1 "c" "3\n")
    (gemini-companion-test-eventually
      (string-search "  c" (gemini-companion-test-text "*gemini edits*")))
    (gemini-companion-list-test-shows)
    (gemini-companion-list-test-key "TAB" "the CLI")
    ;; What was unfolded in it stays so.
    (gemini-companion-list-test-shows "  waiting  +1 −1  a" "-one" "+1"
                                      "  waiting  +1 −1  b" "-two" "+2"
                                      "  waiting  +1 −0  c")))

(ert-deftest gemini-companion-list-stays-at-its-line-in-each-window ()
  (gemini-companion-list-test-with
      `(("a" ,(mapconcat #'number-to-string (number-sequence 1 200) "\n"))
        ("b" "B\n"))
    (delete-other-windows)
    (let* ((other (split-window))
           (first (gemini-companion-list-test-open 1 1 "b" "x\n"))
           (seen (lambda (window)
                   (with-selected-window window
                     (mapcar (lambda (place)
                               (save-excursion
                                 (goto-char place)
                                 (gemini-companion-list-test-here)))
                             (list (window-start) (window-point)))))))
      (gemini-companion-list-test-open 2 1 "a" "new\n")
      (gemini-companion-list-test-key "TAB" "+1 −200  a")
      (pcase-dolist (`(,window ,start ,point)
                     (list (list other "-50" "-51")
                           (list (selected-window) "-20" "-25")))
        (gemini-companion-list-test-go-to (concat "\n" start))
        (set-window-start window (point))
        (gemini-companion-list-test-go-to (concat "\n" point))
        (set-window-point window (point)))
      (let ((before (mapcar seen (list (selected-window) other))))
        (should (equal '(("-20" "-25") ("-50" "-51")) before))
        (gemini-companion-edit-reject first)
        (gemini-companion-list-test-open 3 1 "c" "x\n")
        (gemini-companion-test-eventually
          (member "  waiting  +1 −0  c" (gemini-companion-list-test-lines)))
        (should (equal before (mapcar seen (list (selected-window) other))))
        (select-window other)
        (gemini-companion-list-test-key "x" nil t)
        (gemini-companion-list-test-key "c" nil "why?")
        (should (equal (cadr before) (funcall seen other)))))))

(ert-deftest gemini-companion-list-goes-on-with-what-is-open ()
  (gemini-companion-list-test-with nil
    (dolist (name '("a" "b" "c" "d"))
      (gemini-companion-list-test-open (aref name 0) 1 name "x\n"))
    (gemini-companion-list-test-key "a" "+1 −0  b")
    (should (string-suffix-p "  c" (gemini-companion-list-test-here)))
    (gemini-companion-list-test-key "r")
    (should (string-suffix-p "  d" (gemini-companion-list-test-here)))
    (gemini-companion-list-test-key "a")
    (should (equal '((?d . accepted) (?c . rejected) (?b . accepted)) outcomes))
    (should (string-suffix-p "  a" (gemini-companion-list-test-here)))
    (gemini-companion-list-test-go-to "+1 −0  d")
    (should (string-search "This review has ended already: accepted"
                           (gemini-companion-test-refusal
                             (gemini-companion-list-test-key "a"))))
    ;; That was a new file.
    (find-file-noselect "d")
    (gemini-companion-list-test-key "u" nil nil)
    (should (file-exists-p "d"))
    (gemini-companion-list-test-key "u" nil t)
    (should-not (file-exists-p "d"))
    (should-not (get-file-buffer "d"))
    (gemini-companion-list-test-go-to "  deleted ")
    (should-error (gemini-companion-list-test-key "u") :type 'user-error)))

(ert-deftest gemini-companion-list-answers-all-of-one-cli ()
  (gemini-companion-list-test-with '(("a" "one\n"))
    (let ((gemini-companion-edit-closed-functions
           (list (lambda (diff)
                   (when (eql 3 (gemini-companion-edit-id diff))
                     (gemini-companion-server-receive 'close-diff 4 'closed))))))
      (pcase-dolist (`(,id ,session ,file)
                     '((1 1 "a") (2 2 "b") (3 1 "c") (4 1 "d") (5 1 "e")))
        (gemini-companion-list-test-open id session file "new\n"))
      (gemini-companion-list-test-key "a" "the CLI" nil)
      (should-not outcomes)
      ;; Some end meanwhile.
      (gemini-companion-list-test-key
       "a" nil (lambda (_) (gemini-companion-server-receive 'close-diff 1 'closed) t))
      (should (equal '((5 . accepted) (3 . accepted)) outcomes))
      (should (equal '(2) (mapcar #'gemini-companion-edit-id
                                  (gemini-companion-edits-open)))))))

(ert-deftest gemini-companion-list-comments-become-the-reason ()
  (gemini-companion-list-test-with '(("a" "1\n2\n3\n"))
    (make-directory "sub")
    (gemini-companion-list-test-open 1 1 "sub/b" "x\n")
    (gemini-companion-list-test-open 2 1 "a" "zero\n1\nthree\n")
    (gemini-companion-list-test-go-to "+2 −2  a")
    (gemini-companion-list-test-key "TAB")
    (pcase-dolist (`(,line ,comment)
                   ;; A removed line stands for those in its place.
                   '(("+three" "digits") ("\n-3" "as a digit")
                     ("+zero" "no") ("+zero" "why?") ("\n 1" "x") ("\n 1" "")))
      (gemini-companion-list-test-key "c" line comment)
      (should (equal (string-trim line) (gemini-companion-list-test-here))))
    (gemini-companion-list-test-shows
     "  waiting  +1 −0  sub/b"
     "  waiting  +2 −2  a  2 comments"
     "+zero" "  >> why?" " 1" "-2" "-3" "+three" "  >> as a digit")
    (with-current-buffer (gemini-companion-edit-proposal-buffer
                          (cadr (gemini-companion-edits-open)))
      (goto-char (point-min))
      (insert "before\n")
      (narrow-to-region (point-min) (point-min)))
    (gemini-companion-list-test-shows
     "  waiting  +1 −0  sub/b"
     "  waiting  +3 −2  a  2 comments"
     "+before" "+zero" "  >> why?" " 1" "-2" "-3" "+three" "  >> as a digit")
    (gemini-companion-list-test-key "x" "+zero")
    (gemini-companion-test-needs-add-on 'prompts)
    (gemini-companion-list-test-key "R" nil "all wrong")
    (should (equal "all wrong\n\na:2\n> zero\nwhy?\n\na:4\n> three\nas a digit"
                   (current-kill 0)))
    (gemini-companion-list-test-shows
     "  waiting  +1 −0  sub/b"
     "  rejected  +3 −2  a"
     "+before" "+zero" "  >> (copied) why?" " 1" "-2" "-3" "+three" "  >> (copied) as a digit")
    (gemini-companion-list-test-key "TAB" "+1 −0  sub/b")
    (gemini-companion-list-test-key "c" "\n x" "y")
    (gemini-companion-list-test-key "r")
    (should (equal "sub/b:1\n> x\ny" (current-kill 0)))
    (should (equal '((1 . rejected) (2 . rejected)) outcomes))
    (gemini-companion-list-test-open 3 1 "c" "last\n")
    (gemini-companion-list-test-key "TAB" "+1 −0  c")
    (gemini-companion-list-test-key
     "c" "last"
     (lambda (&rest _) (gemini-companion-server-receive 'close-diff 3 'closed) "half a com"))
    (should (equal "half a com" (current-kill 0)))))

(ert-deftest gemini-companion-list-comments-on-the-lines-of-the-region ()
  (gemini-companion-list-test-with '(("a" "1\n2\n3\n4\n"))
    (gemini-companion-list-test-open 1 1 "a" "1\ntwo\nthree\n4\n")
    (gemini-companion-list-test-open 2 1 "b" "new\n")
    (gemini-companion-list-test-key "TAB" "+2 −2  a")
    (cl-flet ((comment (from to text)
                ;; The region ends before the first character of the line TO.
                (let ((transient-mark-mode t))
                  (gemini-companion-list-test-go-to from)
                  (forward-line 0)
                  (push-mark (point) t t)
                  (gemini-companion-list-test-go-to to)
                  (forward-line 0)
                  (gemini-companion-list-test-key "c" nil text)
                  (should-not (use-region-p)))))
      (comment "+two" "\n 4" "as digits")
      ;; The next line is of another edit, and the region is reversed.
      (let ((transient-mark-mode t))
        (gemini-companion-list-test-go-to "+1 −0  b")
        (forward-line 0)
        (push-mark (point) t t)
        (gemini-companion-list-test-go-to "+three")
        (forward-line 0)
        (gemini-companion-list-test-key "c" nil "to the end"))
      (comment "\n-2" "\n+two" "keep them")
      ;; Of removed lines and others, the others count.
      (comment "\n-3" "+three" "in words"))
    (gemini-companion-list-test-shows
     "  waiting  +2 −2  a  4 comments"
     " 1" "-2" "-3" "  >> 2-3: keep them" "+two" "  >> in words"
     "+three" "  >> 2-3: as digits" " 4" "  >> 3-4: to the end"
     "  waiting  +1 −0  b")
    ;; The lines follow an edit of the proposal, and so does the comment.
    (with-current-buffer (gemini-companion-edit-proposal-buffer
                          (car (gemini-companion-edits-open)))
      (goto-char (point-min))
      (insert "before\n"))
    (gemini-companion-list-test-shows
     "  waiting  +3 −2  a  4 comments"
     "+before" " 1" "-2" "-3" "  >> 2-3: keep them" "+two" "  >> in words"
     "+three" "  >> 3-4: as digits" " 4" "  >> 4-5: to the end"
     "  waiting  +1 −0  b")
    (gemini-companion-list-test-key "c" "+three" "as digits, please")
    (gemini-companion-test-needs-add-on 'prompts)
    (gemini-companion-list-test-key "R" nil "")
    (should (equal "a:2-3 (removed lines)\n> 2\n> 3\nkeep them\n
a:3\n> two\nin words\n\na:3-4\n> two\n> three\nas digits, please\n
a:4-5\n> three\n> 4\nto the end"
                   (current-kill 0)))))

(ert-deftest gemini-companion-list-visits-the-line-or-shows-the-review ()
  (gemini-companion-list-test-with '(("a" "1\n2\n3\n"))
    (let ((diff (gemini-companion-list-test-open 1 1 "a" "0\n1\n2\nthree\n")))
      ;; Emacs would ask about a file that has changed since.
      (find-file-noselect "a")
      (gemini-companion-list-test-key "RET" "+2 −1  a")
      (should (eq 'shown (gemini-companion-edit-status diff)))
      (gemini-companion-list-test-key "a")
      (gemini-companion-list-test-key "TAB")
      (gemini-companion-list-test-key "RET" "+three")
      (should (equal (expand-file-name "a") (buffer-file-name)))
      (should (= 4 (line-number-at-pos)))
      (gemini-companion-list)
      (gemini-companion-proposal-close
       (gemini-companion-list-test-open 2 1 "a" "0\n2\nthree\n4\n") 'closed)
      (gemini-companion-list-test-key "TAB" "+1 −1  a")
      (gemini-companion-list-test-key "RET" "\n three")
      (should (equal "three" (buffer-substring (line-beginning-position)
                                               (line-end-position)))))))

(ert-deftest gemini-companion-list-visits-the-line-of-an-edit-that-was-not-written ()
  (dolist (end (list #'gemini-companion-edit-reject
                     (lambda (edit) (gemini-companion-proposal-close edit 'closed))))
    (gemini-companion-list-test-with '(("a" "1\n2\n3\n"))
      (funcall end (gemini-companion-list-test-open 1 1 "a" "1\n2\nnew\nmore\n3\n"))
      (gemini-companion-list-test-key "TAB" "+2 −0  a")
      ;; There is no such line in the file, but the one that follows.
      (gemini-companion-list-test-key "RET" "+more")
      (should (equal (expand-file-name "a") (buffer-file-name)))
      (should (= 3 (line-number-at-pos))))))

(ert-deftest gemini-companion-list-shows-one-review-and-the-other-waits-again ()
  (gemini-companion-test-with-reviews '(("a" "1\n") ("b" "1\n"))
    (let ((gemini-companion-arrival-pause 0)
          (before (gemini-companion-test-window-names))
          (states (lambda ()
                    (mapcar #'gemini-companion-edit-status
                            (gemini-companion-edits-open))))
          (second nil))
      (gemini-companion-test-show "a" "2\n")
      (with-current-buffer "*gemini proposal: a*"
        (goto-char (point-min))
        (insert "mine "))
      (setq second (gemini-companion-test-open "b" "2\n" 2))
      (execute-kbd-macro (kbd "C-u M-x gemini-companion-review RET n RET"))
      (should (equal '(pending shown) (funcall states)))
      (gemini-companion-test-accept-inside second)
      (gemini-companion-test-eventually (equal '(shown) (funcall states)))
      (gemini-companion-test-accept-inside (car (gemini-companion-edits-open)))
      (should (equal '((1 accepted "mine 2\n") (2 accepted "2\n")) outcomes))
      ;; The list that was opened during the review stays.
      (gemini-companion-test-eventually
        (equal "*gemini edits*" (buffer-name (window-buffer))))
      (execute-kbd-macro (kbd "q"))
      (should (equal before (gemini-companion-test-window-names))))
    (gemini-companion-part-stop 'list)))

(ert-deftest gemini-companion-list-undoes-a-hunk ()
  (gemini-companion-list-test-with '(("a" "1\n2\n3\n4\n"))
    (gemini-companion-test-accept "a" "one\n2\n3\nfour\n")
    (gemini-companion-list-test-key "TAB" "+2 −2  a")
    (gemini-companion-list-test-key "u" "+one" t)
    (should (equal "1\n2\n3\nfour\n" (gemini-companion-test-file-text "a")))
    (should-error (gemini-companion-list-test-key "u" "+one" t) :type 'user-error)
    (gemini-companion-list-test-go-to "  accepted  +1 −1  a  1 of 2 changes undone")
    (with-current-buffer (get-file-buffer "a")
      (goto-char (point-min))
      (forward-line 2)
      (insert "mine\n"))
    (let (asked)
      (gemini-companion-list-test-key
       "u" "+four" (lambda (prompt) (push prompt asked) t))
      (should (equal '("Undo this change of a in its unsaved buffer? ") asked)))
    (with-current-buffer (get-file-buffer "a")
      (should (equal "1\n2\nmine\n3\n4\n" (buffer-string)))
      (should (equal "1\n2\n3\nfour\n" (gemini-companion-test-file-text "a"))))
    (gemini-companion-list-test-go-to "  undone, not saved ")))

(ert-deftest gemini-companion-list-keeps-an-edit-and-lets-it-be-changes-again ()
  (gemini-companion-list-test-with '(("a" "1\n2\n3\n") ("b" "1\n"))
    (let ((session (gemini-companion-test-session "s1" 1)))
      (pcase-dolist (`(,file ,before ,after) '(("a" "1\n2\n3\n" "one\n2\nthree\n")
                                               ("b" "1\n" "2\n")))
        (gemini-companion-test-write file after)
        (gemini-companion-file-state-record session (expand-file-name file)
                                            before after))
      (revert-buffer)
      (gemini-companion-list-test-go-to
       "written without review  +2 −2  a  2 changes left")
      (should (equal "Kept 2 changes" (gemini-companion-list-test-key "k")))
      (gemini-companion-list-test-go-to "  kept ")
      (should (equal "Not kept any more: 2 changes of a are left"
                     (gemini-companion-list-test-key "k")))
      (gemini-companion-list-test-go-to
       "written without review  +2 −2  a  2 changes left")
      (gemini-companion-list-test-go-to "  a, b  +")
      (should (equal "Kept 3 changes" (gemini-companion-list-test-key "k")))
      (should (equal "No changes to keep here"
                     (gemini-companion-test-refusal
                       (gemini-companion-list-test-key "k"))))
      ;; What is kept can be undone all the same.
      (gemini-companion-list-test-go-to "+2 −2  a")
      (gemini-companion-list-test-key "u" nil t)
      (should (equal "1\n2\n3\n" (gemini-companion-test-file-text "a")))
      (gemini-companion-list-test-go-to "  undone ")
      (should (equal "Undid 1 edit"
                     (progn
                       (gemini-companion-list-test-go-to "  a, b  +")
                       (gemini-companion-list-test-key "u" nil t)))))))

(ert-deftest gemini-companion-list-shows-what-was-accepted-and-not-written ()
  (gemini-companion-list-test-with '(("a" "1\n") ("b" "1\n"))
    ;; The CLI ignores it.
    (gemini-companion-test-diff-start #'gemini-companion-test-show-nowhere #'ignore)
    (gemini-companion-list-test-open 1 1 "a" "one\n")
    (gemini-companion-list-test-key "a" "+1 −1  a")
    (gemini-companion-test-in-the-end (gemini-companion-edits-kept))
    ;; Earlier, Emacs would expect the first file until it is answered.
    (gemini-companion-list-test-open 2 1 "b" "one\n")
    (gemini-companion-list-test-shows "  not written  +1 −1  a"
                                      "  waiting  +1 −1  b")
    (gemini-companion-list-test-go-to "+1 −1  a")
    (should (equal "a was not written"
                   (gemini-companion-test-refusal
                     (gemini-companion-list-test-key "u"))))
    ;; It writes late.
    (write-region "one\n" nil "a" nil 'silent)
    (gemini-companion-list-test-key "u" nil nil)))

(ert-deftest gemini-companion-list-quits-a-review-that-waits ()
  (gemini-companion-list-test-with '(("a" "1\n"))
    (let ((diff (gemini-companion-test-open "a" "2\n")))
      (gemini-companion-list)
      (should (equal (list diff) (gemini-companion-edits-at-point)))
      (cl-letf (((symbol-function 'read-multiple-choice) (lambda (&rest _) '(?r))))
        (gemini-companion-review-quit))
      (should (eq 'rejected (gemini-companion-edit-status diff))))))

(ert-deftest gemini-companion-list-folds-earlier-turns-and-reverts-one ()
  (gemini-companion-list-test-with '(("a" "1\n") ("b" "1\n0\n"))
    (let* ((session (gemini-companion-test-session "s1" 1))
           (asked nil)
           (depths nil)
           (gemini-companion-edit-functions
            (cons (lambda (_edit event)
                    (when (eq event 'reverted)
                      (push (length (backtrace-frames)) depths)))
                  gemini-companion-edit-functions)))
      (unwind-protect
          (cl-letf (((symbol-function 'y-or-n-p)
                     (lambda (prompt) (push prompt asked) t)))
            (gemini-companion-server-receive 'sessions-update (list session))
            (gemini-companion-state-report session 'prompt "Be\u202Egin")
            (gemini-companion-test-accept "first" "x\n" 1 session)
            (revert-buffer)
            (gemini-companion-list-test-go-to "  accepted  +1 −0  first")
            (gemini-companion-list-test-key "TAB")
            (goto-char (1- (point-max)))
            (gemini-companion-state-report session 'prompt "Count to three")
            (pcase-dolist (`(,file ,text) '(("a" "2\n") ("a" "3\n") ("b" "2\n0\n")
                                            ("b" "2\n0\n") ("new" "1\n")
                                            ("b" "no\n")))
              (funcall (if (equal text "no\n") #'gemini-companion-edit-reject
                         #'gemini-companion-edit-accept)
                       (gemini-companion-list-test-open 2 1 file text)))
            (gemini-companion-state-report session 'end nil)
            (let ((turn (gemini-companion-session-turn session)))
              (setf (gemini-companion-turn-ended turn)
                    (+ 75 (gemini-companion-turn-began turn))))
            (revert-buffer)
            ;; Point was in what is folded now.
            (should (string-suffix-p "  Be\\u202Egin" (gemini-companion-list-test-here)))
            (gemini-companion-list-test-go-to
             "3 files  +4 −3  1m 15s  Count to three")
            (should (string-match-p
                     "  ready since [0-9:]+"
                     (car (gemini-companion-list-test-lines))))
            (gemini-companion-list-test-go-to "  Be\\u202Egin")
            (should (equal (gemini-companion-list-test-here)
                           (string-trim-left
                            (car (last (gemini-companion-list-test-lines))))))
            (gemini-companion-list-test-key "TAB")
            (gemini-companion-list-test-go-to "  accepted  +1 −0  first")
            (gemini-companion-list-test-go-to "Count to three")
            (write-region "mine\n0\n" nil "b" nil 'silent)
            (should (equal "Undid 3 of 4 edits; \
b cannot be undone: line 1 has changed since"
                           (gemini-companion-list-test-key "u")))
            ;; There may be a hundred of them.
            (should (> 50 (- (seq-max depths) (seq-min depths))))
            (should (equal '("Undo 4 edits of this turn (1 deletes a new file)? ")
                           asked)))
        (gemini-companion-server-receive 'sessions-update nil))
      (should (equal '("1\n" "mine\n0\n" nil)
                     (mapcar (lambda (file)
                               (and (file-exists-p file)
                                    (gemini-companion-test-file-text file)))
                             '("a" "b" "new"))))
      (should-not (buffer-modified-p (get-file-buffer "a"))))))

(ert-deftest gemini-companion-list-reverts-a-turn-on-a-host-one-by-one ()
  (gemini-companion-test-needs-add-on 'remote)
  (gemini-companion-list-test-with '(("a" "1\n"))
    (let ((gemini-companion-remote-names-mirrors `(("/ssh:far:" . ,directory)))
          (gemini-companion-remote-names-hosts
           (list (list "/ssh:far:" :state "connected")))
          calls)
      (dolist (text '("2\n" "3\n" "4\n"))
        (gemini-companion-test-accept "a" text))
      (cl-letf (((symbol-function 'gemini-companion-server-ask)
                 (lambda (&rest call) (push call calls))))
        (revert-buffer)
        (goto-char (point-min))
        (gemini-companion-list-test-key "u" nil t)
        (pcase-dolist (`(,text ,problem ,count) '(("3\n" nil 1) ("2\n" nil 2)
                                                  (nil "it has changed there" 3)))
          (should (= count (length calls)))
          (pcase-let ((`(remote-write ,args ,done ,failed) (car calls))
                      (now (gemini-companion-test-file-text "a")))
            (should (equal args `( "/ssh:far:" "/a" ,(secure-hash 'sha256 now)
                                   ,(base64-encode-string (or text "1\n")))))
            (if problem
                (should (equal "Undid 2 of 3 edits; \
ssh:far:a cannot be undone (it has changed there)" (funcall failed problem)))
              (gemini-companion-test-write "a" text)
              (funcall done t)))))
      (should (equal '(accepted reverted reverted)
                     (mapcar #'gemini-companion-edit-status
                             (gemini-companion-edits))))
      (setcar (cddar gemini-companion-remote-names-hosts) "lost")
      (should (string-search "M-x gemini-companion-connect"
                             (gemini-companion-test-refusal
                               (gemini-companion-undo-check
                                (car (gemini-companion-edits)))))))))

(ert-deftest gemini-companion-list-is-drawn-in-parts-as-at-once ()
  (gemini-companion-list-test-with '(("a" "1\n2\n3\n4\n5\n6\n7\n8\n") ("b" "B\n"))
    (let ((drawn (lambda ()
                   (outline-show-all)
                   (revert-buffer)
                   (gemini-companion-list-test-lines))))
      (dotimes (step 60)
        (let ((edit (seq-random-elt (append (gemini-companion-edits-open) '(nil)))))
          (pcase (random 5)
            ((guard (null edit))
             (gemini-companion-list-test-open
              step (1+ (random 2)) (seq-random-elt '("a" "b" "c"))
              (format "%d\n2\n3\n%d\n" (random 3) (random 3))))
            (0 (gemini-companion-edit-reject edit))
            (1 (gemini-companion-proposal-close edit 'closed))
            (2 (gemini-companion-server-receive 'sessions-update
                 (list (gemini-companion-test-session "s1" (1+ (random 2))))))
            (3 (ignore-errors (gemini-companion-edit-accept edit)))
            (_ (when-let* ((hunk (car (gemini-companion-edit-hunks edit))))
                 (cl-letf (((symbol-function 'y-or-n-p) #'always))
                   (gemini-companion-edit-hunks-toggle edit hunk))))))
        (when (zerop (random 3))
          (goto-char (1+ (random (buffer-size))))
          (ignore-errors (gemini-companion-list-test-key "TAB")))
        (revert-buffer))
      (let ((parts (funcall drawn)))
        (kill-buffer)
        (gemini-companion-list)
        (should (equal (funcall drawn) parts))))))

(ert-deftest gemini-companion-list-fits-its-window ()
  (gemini-companion-list-test-with nil
    (dotimes (i 30)
      (gemini-companion-list-test-open
       i 1 (format "%s/\n%02d" (make-string 100 ?x) i) "x\n"))
    (gemini-companion-list-test-go-to "+1 −0  xx")
    (gemini-companion-test-eventually
      (= 30 (how-many "\\+1 −0" (point-min) (point-max))))
    (dolist (line (gemini-companion-list-test-lines))
      (should (<= (string-width line) (window-width))))
    (should (= 32 (length (gemini-companion-list-test-lines))))
    (should (= 30 (length (seq-uniq (cddr (gemini-companion-list-test-lines))))))
    (let ((header (eval (cadr header-line-format) t)))
      (should (<= (string-width header) (window-width)))
      (dolist (key '("a accept" "r reject" "c comment" "u undo" "? keys"))
        (should (string-search key header))))))

;;; gemini-companion-list-test.el ends here
