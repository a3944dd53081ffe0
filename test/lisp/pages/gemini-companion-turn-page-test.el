;;; gemini-companion-turn-page-test.el --- Tests of the page of a turn  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-turn-page)

(defmacro gemini-companion-turn-page-test-with (files &rest body)
  "Run BODY in a directory with FILES, where changes can be shown on a page."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-changes ,files
     (let ((gemini-companion-review-arrival 'notify))
       (unwind-protect
           (progn ,@body)
         (gemini-companion-part-stop 'turn-page)))))

(defun gemini-companion-turn-page-test-lines ()
  "Return the lines of the page without its first two, with their signs."
  (with-current-buffer "*gemini changes*"
    (save-excursion
      (goto-char (point-min))
      (forward-line 2)
      (let ((lines nil))
        (while (not (eobp))
          (push (concat (let ((prefix (get-text-property (point) 'line-prefix)))
                          (and prefix (substring-no-properties prefix -1)))
                        (buffer-substring-no-properties
                         (line-beginning-position) (line-end-position)))
                lines)
          (forward-line))
        (nreverse lines)))))

(defun gemini-companion-turn-page-test-here ()
  "Return the line of point on the page, without its sign."
  (with-current-buffer "*gemini changes*"
    (buffer-substring-no-properties (line-beginning-position) (line-end-position))))

(defun gemini-companion-turn-page-test-keys (&rest keys)
  "Type each of KEYS on the page, and return the last message."
  (car (last (split-string
              (ert-with-message-capture messages
                (dolist (key keys)
                  (with-current-buffer (window-buffer)
                    (call-interactively (key-binding (kbd key)))))
                messages)
              "\n" t))))

(ert-deftest gemini-companion-turn-page-shows-all-files-one-after-the-other ()
  (gemini-companion-turn-page-test-with
      `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\nten\n" session)
    (gemini-companion-test-writes "b" "" session)
    (gemini-companion-test-writes "new" "x\n" session)
    (gemini-companion-turn-page session)
    (should (equal '("a  +3 −2  2 changes" "-1" "+one" " 2" " 3" " 4" " 5" " 6" " 7"
                     " 8" "-9" "+nine" "+ten" "b  +0 −1  1 change" "-B"
                     "new  +1 −0  1 change  new file" " x")
                   (gemini-companion-turn-page-test-lines)))
    (should (string-search "\n4 changes left\n" (buffer-string)))
    (should (equal "1" (gemini-companion-turn-page-test-here)))
    ;; Signs and colors are those of a review, and so are the line numbers.
    (should (string-match-p "\\` *1 " (get-text-property (point) 'line-prefix)))
    (should (memq 'gemini-companion-removed
                  (ensure-list (get-text-property (point) 'face))))))

(ert-deftest gemini-companion-turn-page-goes-over-changes-and-files ()
  (gemini-companion-turn-page-test-with
      `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-writes "b" "C\n" session)
    (gemini-companion-turn-page session)
    (pcase-dolist (`(,key ,line) '(("n" "9") ("n" "B") ("p" "9") ("p" "1")))
      (gemini-companion-turn-page-test-keys key)
      (should (equal line (gemini-companion-turn-page-test-here))))
    (should-error (gemini-companion-turn-page-previous) :type 'user-error)
    (gemini-companion-turn-page-next 2)
    (should (equal "B" (gemini-companion-turn-page-test-here)))
    (should-error (gemini-companion-turn-page-next) :type 'user-error)
    ;; A file that is folded is a stop itself.
    (gemini-companion-turn-page-test-keys "TAB" "p" "TAB")
    (should (equal '("a  +2 −2  2 changes ..." "b  +1 −1  1 change ...")
                   (gemini-companion-turn-page-test-lines)))
    (should (string-prefix-p "a  " (gemini-companion-turn-page-test-here)))))

(ert-deftest gemini-companion-turn-page-keeps-and-undoes-as-the-file-does ()
  (gemini-companion-turn-page-test-with
      `(("a" ,gemini-companion-test-lines) ("b" ,gemini-companion-test-lines)
        ("c" "C\n"))
    (gemini-companion-test-writes "a" "one\n2\n3\nmore\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-writes "b" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-writes "c" "D\n" session)
    (gemini-companion-turn-page session)
    (gemini-companion-turn-page-test-keys "n")
    (should (equal "Kept 1 change; 5 changes are left"
                   (gemini-companion-turn-page-test-keys "k")))
    (should (equal "9" (gemini-companion-turn-page-test-here)))
    (should (equal "Undid 1 change of a; 4 changes are left"
                   (gemini-companion-turn-page-test-keys "u")))
    (with-current-buffer "a"
      (should (equal "one\n2\n3\nmore\n4\n5\n6\n7\n8\n9\n" (buffer-string)))
      (should-not (buffer-modified-p)))
    (should (equal "1" (gemini-companion-turn-page-test-here)))
    (should (string-search "b  +2" (buffer-string)))
    (gemini-companion-turn-page-test-keys "p")
    (should (string-prefix-p "a  +1 −1  1 change"
                             (car (gemini-companion-turn-page-test-lines))))
    (gemini-companion-turn-page-test-keys "n")
    (should (equal "Undid 2 changes of b; 2 changes are left"
                   (gemini-companion-turn-page-test-keys "U")))
    (should (equal "C" (gemini-companion-turn-page-test-here)))
    (should (equal "Kept 1 change; 1 change is left"
                   (gemini-companion-turn-page-test-keys "K")))
    ;; Undo in the file brings what was undone back, to where it was.
    (with-current-buffer "b"
      (undo-boundary)
      (undo)
      (gemini-companion-undo-write-taken-back)
      (ert-run-idle-timers))
    (revert-buffer)
    (should (equal '("a  +1 −1  1 change" "b  +2 −2  2 changes")
                   (seq-filter (lambda (line) (string-match-p "^[abc]  " line))
                               (gemini-companion-turn-page-test-lines))))
    (let ((current-prefix-arg '(4)))
      (should (equal "Kept 3 changes; no changes are left"
                     (gemini-companion-turn-page-test-keys "K"))))
    (should-not (gemini-companion-turn-page-test-lines))
    (should-error (gemini-companion-turn-page-keep) :type 'user-error)
    (should-error (gemini-companion-turn-page-undo-file) :type 'user-error)))

(ert-deftest gemini-companion-turn-page-changes-nothing-that-was-not-seen ()
  (gemini-companion-turn-page-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (find-file "a")
    (gemini-companion-turn-page session)
    ;; The CLI writes again, and the page is not drawn again yet.
    (gemini-companion-test-writes "a" "uno\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (should (string-search "page was updated"
                           (gemini-companion-test-refusal
                             (gemini-companion-turn-page-keep))))
    (should (eql 1 (gemini-companion-test-left)))
    (should (member "+uno" (gemini-companion-turn-page-test-lines)))
    ;; Lines of the user above it move the change only.
    (with-current-buffer "a"
      (goto-char (point-min))
      (forward-line 5)
      (insert "mine\n"))
    (gemini-companion-turn-page-keep)
    (should-not (gemini-companion-test-left))))

(ert-deftest gemini-companion-turn-page-follows-what-happens-and-point-stays ()
  (gemini-companion-turn-page-test-with
      `(("a" ,gemini-companion-test-lines) ("b" "B\nb\n"))
    (gemini-companion-state-report session 'prompt "Fi\u200Brst")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-writes "b" "B\nc\n" session)
    (let ((turn (gemini-companion-session-turn session)))
      (gemini-companion-turn-page session turn)
      (should (string-match-p "  [0-9][0-9]:[0-9][0-9]  Fi\\\\u200Brst\n" (buffer-string)))
      (search-forward "c\n")
      (forward-line -1)
      (gemini-companion-state-report session 'end nil)
      (gemini-companion-state-report session 'prompt "Second")
      ;; The next turn writes above, and in another file.
      (gemini-companion-test-writes "a" "one\n2\n3\n4\nnew\n5\n6\n7\n8\nnine\n" session)
      (gemini-companion-test-writes "c" "x\n" session)
      (gemini-companion-page-refresh)
      (should (equal "c" (gemini-companion-turn-page-test-here)))
      ;; What is of the next turn only is not here, and all is on the CLI's page.
      (should-not (member "+new" (gemini-companion-turn-page-test-lines)))
      (gemini-companion-turn-page session)
      (should (member "+new" (gemini-companion-turn-page-test-lines)))
      (should (member "c  +1 −0  1 change  new file"
                      (gemini-companion-turn-page-test-lines))))))

(ert-deftest gemini-companion-turn-page-has-proposals-with-their-own-keys ()
  (gemini-companion-turn-page-test-with
      `(("a" ,gemini-companion-test-lines) ("b" ,gemini-companion-test-lines))
    (setq gemini-companion-review-arrival 'notify)
    (gemini-companion-state-report session 'prompt "First")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (let ((edit (gemini-companion-test-open
                 "b" "ONE\n2\n3\n4\n5\n6\n7\n8\nNINE\n" 5 session)))
      (gemini-companion-turn-page session (gemini-companion-session-turn session))
      (should (string-search "1 change left, 1 proposal awaits your answer"
                             (buffer-string)))
      (should-error (gemini-companion-edit-accept) :type 'user-error)
      (gemini-companion-turn-page-test-keys "n")
      (should (string-search "proposal"
                             (gemini-companion-test-refusal
                               (gemini-companion-turn-page-keep))))
      (gemini-companion-turn-page-test-keys "x")
      (should (equal 1 (length (gemini-companion-hunk-excluded
                                (gemini-companion-edit-proposal-buffer edit)))))
      (gemini-companion-turn-page-test-keys "a")
      (should (eq 'accepted (gemini-companion-edit-decision edit)))
      (should (equal "1\n2\n3\n4\n5\n6\n7\n8\nNINE\n"
                     (gemini-companion-edit-after edit)))
      ;; What was accepted is named, and folded.
      (revert-buffer)
      (should (member "b  +1 −1  nothing left to review ..."
                      (gemini-companion-turn-page-test-lines)))
      (should-error (gemini-companion-edit-accept) :type 'user-error))))

(ert-deftest gemini-companion-turn-page-shows-a-turn-that-was-reviewed-unfolded ()
  (gemini-companion-turn-page-test-with '(("a" "1\n2\n"))
    (gemini-companion-test-writes "a" "1\ntwo\n" session 'reviewed)
    (gemini-companion-turn-page
     session (gemini-companion-edit-turn (car (gemini-companion-edits))))
    (should (equal '("a  +1 −1  nothing left to review" " 1" "-2" "+two")
                   (gemini-companion-turn-page-test-lines)))))

(ert-deftest gemini-companion-turn-page-says-what-is-gone-or-was-not-kept ()
  (gemini-companion-turn-page-test-with
      `(("a" ,gemini-companion-test-lines) ("b" "B\n") ("c" "C\n"))
    (gemini-companion-state-report session 'prompt "First")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-test-writes "b" "BB\n" session)
    (gemini-companion-turn-page session (gemini-companion-session-turn session))
    (delete-file "a")
    (rename-file "b" "d")
    ;; The CLI reports what it wrote without the text before.
    (gemini-companion-file-state-record session (expand-file-name "c") "\ufffd\n" "CC\n")
    (should (string-search "page was updated"
                           (gemini-companion-test-refusal
                             (gemini-companion-turn-page-undo))))
    (let ((lines (gemini-companion-turn-page-test-lines)))
      (should (member "a  +1 −1  deleted or renamed since ..." lines))
      (should (member "b  +1 −1  deleted or renamed since ..." lines)))
    (goto-char (point-min))
    (search-forward "a  +1")
    (should (string-search "was deleted or renamed"
                           (gemini-companion-test-refusal
                             (gemini-companion-turn-page-visit))))))

(ert-deftest gemini-companion-turn-page-has-the-conversion-of-a-file ()
  (gemini-companion-turn-page-test-with '(("a" "1\r\n2\r\n3\r\n"))
    (let ((file (expand-file-name "a")))
      (gemini-companion-test-write file "1\n2\nthree\n")
      (gemini-companion-file-state-record session file "1\r\n2\r\n3\r\n" "1\n2\nthree\n")
      (gemini-companion-turn-page session)
      (should (string-prefix-p "Converted: " (gemini-companion-turn-page-test-here)))
      (gemini-companion-turn-page-keep)
      (should (equal "3" (gemini-companion-turn-page-test-here)))
      (gemini-companion-turn-page-keep)
      (should-not (gemini-companion-test-left)))))

(ert-deftest gemini-companion-turn-page-visits-the-line-at-point ()
  (gemini-companion-turn-page-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "1\n2\n3\n4\n5\n7\n8\nNINE\n" session)
    (gemini-companion-turn-page session)
    (gemini-companion-turn-page-test-keys "n" "RET")
    (should (equal "a" (buffer-name (window-buffer))))
    (should (equal "NINE" (with-current-buffer (window-buffer)
                            (buffer-substring (point) (line-end-position)))))))

(ert-deftest gemini-companion-turn-page-draws-more-of-a-long-diff-on-the-way ()
  (gemini-companion-turn-page-test-with
      `(("a" ,(mapconcat #'number-to-string (number-sequence 1 400) "\n"))
        ("b" "B\n"))
    (let ((gemini-companion-unified-draw-most-lines 20))
      (gemini-companion-test-writes
       "a" (mapconcat (lambda (n) (format "%d%s" n (if (zerop (% n 40)) "!" "")))
                      (number-sequence 1 400) "\n")
       session)
      (gemini-companion-test-writes "b" "C\n" session)
      (gemini-companion-turn-page session)
      (dotimes (n 9)
        (gemini-companion-turn-page-next)
        (should (equal (number-to-string (* 40 (+ 2 n)))
                       (gemini-companion-turn-page-test-here))))
      (gemini-companion-turn-page-next)
      (should (equal "B" (gemini-companion-turn-page-test-here))))))

;;; gemini-companion-turn-page-test.el ends here
