;;; gemini-companion-why-test.el --- Tests of why a line is there  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-saved)
(require 'gemini-companion-why)

(defmacro gemini-companion-why-test-with (files &rest body)
  "Evaluate BODY with FILES and the sessions `gemini' and `qwen'."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-changes ,files
     (cl-flet ((cli (id pid) (gemini-companion-test-session-like
                              session :id id :pid pid :client id :version "1.2.3")))
       (let ((gemini (cli "gemini" 2))
             (qwen (cli "qwen" 3)))
         (gemini-companion-test-set-sessions (list gemini qwen))
         ,@body))))

(defvar gemini-companion-why-test--number 0
  "The number of the last line.")

(defun gemini-companion-why-test-writes (session prompt file text &optional reviewed)
  "Write TEXT to FILE in a turn of SESSION with PROMPT, and return the edit.
REVIEWED is non-nil if the user accepts it."
  (gemini-companion-turn-begin session prompt t)
  (if reviewed
      (gemini-companion-test-accepts file text session)
    (gemini-companion-test-writes file text session)))

(defun gemini-companion-why-test-says (line &optional file)
  "Return what is said about LINE of FILE, or of this buffer."
  (with-current-buffer (if file (find-file-noselect file) (current-buffer))
    (save-excursion
      (goto-char (point-min))
      (forward-line (1- line))
      (string-trim (ert-with-message-capture said
                     (call-interactively #'gemini-companion-why)
                     said)))))

(defun gemini-companion-why-test-drop-edits (session)
  "Let the list of edits drop all but one by SESSION of another file."
  (let ((gemini-companion-edit-most 1))
    (dotimes (_ 2)
      (gemini-companion-test-accepts
       "other" (format "%d\n" (cl-incf gemini-companion-why-test--number)) session))))

(defconst gemini-companion-why-test-known
  "\\`%s, [0-9-]\\{10\\} [0-9:]\\{5\\}, %s, prompt: %s\\'"
  "Format of a regexp for what is said about a line of a CLI.")

(defun gemini-companion-why-test-known (title what prompt)
  "Return a regexp for a line of the CLI TITLE in the turn with PROMPT.
WHAT has become of it."
  (format gemini-companion-why-test-known title what prompt))

(defun gemini-companion-why-test-replace (from to)
  "Replace FROM by TO in this buffer, once."
  (goto-char (point-min))
  (search-forward from)
  (replace-match to t t))

(ert-deftest gemini-companion-why-says-cli-time-prompt-and-what-became-of-it ()
  (gemini-companion-why-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-why-test-writes gemini "Use words" "a"
                                      "one\n2\n3\n4\n5\n6\n7\n8\nnine\n")
    (should (string-match-p
             (gemini-companion-why-test-known "Gemini CLI" "not reviewed" "Use words")
             (gemini-companion-why-test-says 1 "a")))
    (switch-to-buffer "a")
    (goto-char (point-min))
    (gemini-companion-test-walk 'gemini-companion-keep-change)
    (should (string-match-p
             (gemini-companion-why-test-known "Gemini CLI" "kept" "Use words")
             (gemini-companion-why-test-says 1)))
    (gemini-companion-why-test-writes qwen "Use upper case" "a"
                                      "one\nTWO\n3\n4\n5\n6\n7\n8\nnine\n" t)
    (should (string-match-p
             (gemini-companion-why-test-known "Qwen Code" "accepted" "Use upper case")
             (gemini-companion-why-test-says 2)))
    (should (string-match-p "kept.*Use words" (gemini-companion-why-test-says 1)))
    (should (string-match-p "not reviewed.*Use words" (gemini-companion-why-test-says 9)))
    (should (string-match-p "\\`Unknown: .*older" (gemini-companion-why-test-says 3)))
    (gemini-companion-why-test-replace "4\n" "4\nfour and a half\n")
    (should (string-match-p "\\`Written by you or another program"
                            (gemini-companion-why-test-says 5)))
    (set-buffer-modified-p nil)))

(ert-deftest gemini-companion-why-says-what-it-does-not-know ()
  (gemini-companion-why-test-with '(("a" "1\n"))
    (should (string-match-p "\\`Unknown: no edit" (gemini-companion-why-test-says 1 "a")))
    (with-temp-buffer
      (should-error (gemini-companion-why) :type 'user-error))
    (with-current-buffer (find-file-noselect "a")
      (goto-char (point-max))
      (should (string-match-p "No line" (gemini-companion-test-refusal
                                          (gemini-companion-why)))))
    ;; A CLI that reports no prompts.
    (gemini-companion-turn-begin gemini "Sent by Emacs" nil)
    (gemini-companion-test-writes "a" "one\n" gemini)
    (should (string-match-p "\\`Gemini CLI, .*, not reviewed, prompt unknown\\'"
                            (gemini-companion-why-test-says 1 "a")))))

(ert-deftest gemini-companion-why-names-the-command-that-wrote-a-line ()
  (gemini-companion-why-test-with '(("a" "1\n"))
    (setf (gemini-companion-edit-command
           (gemini-companion-why-test-writes gemini "Use words" "a" "one\n"))
          "sed -i s/1/one/ a")
    (should (string-match-p "by `sed -i s/1/one/ a', not reviewed"
                            (gemini-companion-why-test-says 1 "a")))))

(ert-deftest gemini-companion-why-tells-words-of-the-user-from-those-of-the-cli ()
  (gemini-companion-why-test-with `(("a" ,gemini-companion-test-lines))
    ;; In the proposal.
    (gemini-companion-turn-begin gemini "Use words" t)
    (let ((edit (gemini-companion-test-open "a" "one\ntwo\n3\n4\n5\n6\n7\n8\n9\n" 7
                                            gemini)))
      (with-current-buffer (gemini-companion-edit-proposal-buffer edit)
        (let ((inhibit-read-only t))
          (gemini-companion-why-test-replace "two" "zwei")))
      (gemini-companion-edit-accept edit)
      (gemini-companion-revert-now (expand-file-name "a"))
      (gemini-companion-reported-write gemini (expand-file-name "a") nil
                                       "one\nzwei\n3\n4\n5\n6\n7\n8\n9\n"))
    (should (string-match-p "accepted, prompt" (gemini-companion-why-test-says 1 "a")))
    (should (string-match-p "accepted, with words of yours, prompt: Use words"
                            (gemini-companion-why-test-says 2 "a")))
    ;; In the file, before the line is reviewed, and after it.
    (gemini-companion-why-test-writes gemini "More" "a"
                                      "one\nzwei\n3\n4\n5\n6\nseven\n8\n9\n")
    (find-file "a")
    (gemini-companion-why-test-replace "seven" "sieben")
    (should (string-match-p "not reviewed, changed since by you or another program, .*More"
                            (gemini-companion-why-test-says 7)))
    (gemini-companion-why-test-replace "one" "eins")
    (should (string-match-p "\\`Written by you or another program"
                            (gemini-companion-why-test-says 1)))
    (set-buffer-modified-p nil)))

(ert-deftest gemini-companion-why-knows-a-line-after-a-formatter ()
  (gemini-companion-why-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-why-test-writes gemini "Use words" "a"
                                      "one\n2\n3\n4\n5\n6\n7\n8\nf(nine)\n" t)
    (find-file "a")
    (dolist (drop '(nil t))
      (when drop
        (gemini-companion-why-test-drop-edits qwen))
      (indent-rigidly (point-min) (point-max) 4)
      (dolist (line '(1 9))
        (should (string-match-p "accepted, prompt: Use words"
                                (gemini-companion-why-test-says line))))
      (gemini-companion-why-test-replace "f(nine)" "f( nine );")
      (should (string-match-p "accepted, formatted since, prompt: Use words"
                              (gemini-companion-why-test-says 9)))
      (set-buffer-modified-p nil)
      (revert-buffer t t t)
      (should (string-match-p "accepted, prompt: Use words"
                              (gemini-companion-why-test-says 9))))))

(ert-deftest gemini-companion-why-stays-when-edits-are-dropped ()
  (gemini-companion-why-test-with `(("a" ,gemini-companion-test-lines)
                                    ("b" ,gemini-companion-test-lines))
    (dolist (file '("a" "b"))
      (gemini-companion-why-test-writes gemini "Use words" file
                                        "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" t))
    ;; One of b is left.
    (gemini-companion-why-test-writes qwen "Use upper case" "b"
                                      "one\nTWO\n3\n4\n5\n6\n7\n8\nnine\n")
    (gemini-companion-why-test-drop-edits qwen)
    (gemini-companion-why-test-writes qwen "Add" "b"
                                      "one\nTWO\n3\n4\n5\n6\nSEVEN\n8\nnine\n")
    (should-not (cl-find "a" (gemini-companion-edits)
                         :key (lambda (edit)
                                (file-name-nondirectory (gemini-companion-edit-file edit)))
                         :test #'equal))
    (dolist (file '("a" "b"))
      (dolist (line '(1 9))
        (should (string-match-p
                 (gemini-companion-why-test-known "Gemini CLI" "accepted" "Use words")
                 (gemini-companion-why-test-says line file))))
      (should (string-match-p "\\`Unknown" (gemini-companion-why-test-says 3 file))))
    (should (string-match-p "not reviewed.*Use upper case"
                            (gemini-companion-why-test-says 2 "b")))
    ;; A CLI writes the file again: only that is a change, and it is undone alone.
    (gemini-companion-why-test-writes qwen "Again" "a"
                                      "one\n2\n3\n4\n5\n6\n7\neight\nnine\n")
    (find-file "a")
    (should (equal '(8) (gemini-companion-test-marked "a")))
    (should (string-match-p "Qwen Code.*Again" (gemini-companion-why-test-says 8)))
    (should (string-match-p "Use words" (gemini-companion-why-test-says 9)))
    (gemini-companion-test-walk 'gemini-companion-next-change "u")
    (should (equal "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" (gemini-companion-text-bytes "a")))
    (should (string-match-p "Use words" (gemini-companion-why-test-says 9)))
    (should (string-match-p "\\`Unknown" (gemini-companion-why-test-says 8)))))

(ert-deftest gemini-companion-why-remembers-files-up-to-a-number-of-lines ()
  (let ((gemini-companion-changes-most-past 8))
    (gemini-companion-why-test-with nil
      (pcase-dolist (`(,file . ,lines) '(("a" . 3) ("large" . 9) ("b" . 3) ("c" . 3)))
        (gemini-companion-why-test-writes
         gemini "Use words" file (apply #'concat (make-list lines "x\n")) t))
      (gemini-companion-why-test-drop-edits qwen)
      (should (equal '(nil nil t t)
                     (mapcar (lambda (file)
                               (and (string-match-p
                                     "Use words" (gemini-companion-why-test-says 1 file))
                                    t))
                             '("a" "large" "b" "c")))))))

(ert-deftest gemini-companion-why-survives-what-others-do-with-a-forgotten-edit ()
  (gemini-companion-why-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-why-test-writes gemini "Use words" "a"
                                      "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" t)
    (gemini-companion-why-test-drop-edits qwen)
    (find-file "a")
    (buffer-enable-undo)
    (cl-flet ((knows-p (line)
                (string-match-p "Use words" (gemini-companion-why-test-says line))))
      ;; A stash and its pop.
      (gemini-companion-test-write "a" gemini-companion-test-lines)
      (revert-buffer t t t)
      (should (string-match-p "\\`Written by you" (gemini-companion-why-test-says 1)))
      (gemini-companion-test-write "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n")
      (revert-buffer t t t)
      (should (and (knows-p 1) (knows-p 9)))
      ;; The undo of Emacs.
      (undo-boundary)
      (gemini-companion-why-test-replace "one\n" "")
      (undo-boundary)
      (should-not (knows-p 1))
      (let ((last-command nil)) (undo))
      (should (knows-p 1))
      ;; A line above, and a narrowed buffer.
      (goto-char (point-min))
      (insert "zero\n")
      (narrow-to-region (point) (point-max))
      (should (knows-p 1))
      (widen)
      (should-not (knows-p 1))
      (should (knows-p 10)))
    (set-buffer-modified-p nil)))

(ert-deftest gemini-companion-why-of-a-line-that-two-clis-wrote-names-the-last ()
  (gemini-companion-why-test-with '(("a" "1\n2\n3\n"))
    (gemini-companion-why-test-writes gemini "First" "a" "one\n2\n3\n")
    (gemini-companion-why-test-writes qwen "Second" "a" "ONE\n2\n3\n")
    (should (string-match-p "Qwen Code.*Second" (gemini-companion-why-test-says 1 "a")))
    (gemini-companion-why-test-writes gemini "Third" "a" "one\n2\n3\n" t)
    (should (string-match-p "Gemini CLI.*Third" (gemini-companion-why-test-says 1 "a")))
    (gemini-companion-why-test-drop-edits qwen)
    (should (string-match-p "Gemini CLI.*Third" (gemini-companion-why-test-says 1 "a")))))

(ert-deftest gemini-companion-why-knows-10000-lines-of-a-turn ()
  (let ((lines (mapconcat (apply-partially #'format "line %d\n")
                          (number-sequence 1 10000) "")))
    (gemini-companion-why-test-with '(("a" "1\n"))
      (gemini-companion-why-test-writes gemini "Many" "a" (concat "1\n" lines) t)
      (gemini-companion-why-test-drop-edits qwen)
      (dolist (line '(2 5000 10001))
        (should (string-match-p "Many" (gemini-companion-why-test-says line "a"))))
      (should (string-match-p "\\`Unknown" (gemini-companion-why-test-says 1 "a"))))))

;; Each look at a file that had 200,000 lines took a tenth of a second, for ever.
(ert-deftest gemini-companion-why-forgets-many-lines-that-are-missing-at-the-next-write ()
  (let ((lines (mapcar (apply-partially #'format "line %d\n") (number-sequence 1 3000))))
    (dolist (left '(5 500))
      (gemini-companion-why-test-with '(("a" "1\n"))
        (gemini-companion-why-test-writes gemini "Many" "a" (string-join lines) t)
        (gemini-companion-why-test-drop-edits qwen)
        (let ((now (string-join (seq-take lines left))))
          (gemini-companion-test-write "a" now)
          (gemini-companion-why-test-writes gemini "Next" "a" (concat now "new\n"))
          (should (eq (< left 10)
                      (length< (gemini-companion-changes-file-lines
                                (car (gemini-companion-changes-files)))
                               1000)))
          (should (string-match-p "Many" (gemini-companion-why-test-says left "a")))
          (should (string-match-p "Next" (gemini-companion-why-test-says (1+ left) "a"))))))))

;;;; The judge

;; Each text is unique, and says who has written it: c and the number of the turn for a
;; CLI, b for the first text, u for the user.

(defun gemini-companion-why-test-lines (whose count)
  "Return COUNT new lines of WHOSE, a list."
  (cl-loop repeat count
           collect (format "%s_%d\n" whose (cl-incf gemini-companion-why-test--number))))

(defun gemini-companion-why-test-changed (text whose)
  "Return TEXT after WHOSE has changed it at up to three places."
  (let ((lines (mapcar (lambda (line) (concat line "\n")) (split-string text "\n" t))))
    (dotimes (_ (1+ (random 3)))
      (let ((at (random (1+ (length lines))))
            (count (random 4)))
        (setq lines (append (seq-take lines at)
                            (gemini-companion-why-test-lines whose (random 4))
                            (seq-drop lines (+ at count))))))
    (string-join lines)))

(defun gemini-companion-why-test-user (file)
  "Let the user do something in FILE, at random, and save it."
  (with-current-buffer (find-file-noselect file)
    (switch-to-buffer (current-buffer))
    (buffer-enable-undo)
    (cl-flet ((at-random ()
                (goto-char (point-min))
                (forward-line (random (max 1 (line-number-at-pos (point-max)))))))
      (pcase (random 8)
        ((or 0 1)
         (let ((text (gemini-companion-why-test-changed (buffer-string) "u")))
           (replace-region-contents (point-min) (point-max) (lambda () text))))
        (2 (at-random)
           (indent-rigidly (point) (min (point-max) (+ 100 (point))) 2))
        (3 (at-random)
           (while (and (not (eobp)) (< 0 (random 4)))
             (end-of-line)
             (insert ";")
             (forward-line)))
        (4 (ignore-errors (gemini-companion-test-walk 'gemini-companion-keep-changes)))
        (5 (at-random)
           (ignore-errors (gemini-companion-test-walk 'gemini-companion-next-change "u")))
        (6 (ignore-errors
             (gemini-companion-test-walk 'gemini-companion-next-change "k" "C-/")))
        (7 (ignore-errors (let ((last-command nil)) (undo)))))
      (let ((require-final-newline t))
        (save-buffer)))))

(defun gemini-companion-why-test-turn (number session files)
  "Let SESSION write some of FILES in the turn NUMBER."
  (gemini-companion-turn-begin session (format "Turn %d" number) t)
  (dotimes (_ (1+ (random 5)))
    (let* ((file (nth (random (length files)) files))
           (before (gemini-companion-text-bytes file))
           (after (gemini-companion-why-test-changed before (format "c%d" number))))
      (if (= 0 (random 2))
          (gemini-companion-test-accepts file after session)
        (gemini-companion-test-write file after)
        (gemini-companion-revert-now (expand-file-name file))
        (gemini-companion-reported-write session (expand-file-name file) before after)))))

(defun gemini-companion-why-test-answer (text said)
  "Return whether SAID is right about the line TEXT: `right', `unknown' or a list."
  (let ((turn (and (string-match "prompt: Turn \\([0-9]+\\)\\'" said)
                   (match-string 1 said)))
        (true (and (string-match "\\` *c\\([0-9]+\\)_" text)
                   (match-string 1 text))))
    (cond ((equal turn true) (if true 'right 'right-others))
          ((null turn) 'unknown)
          ((and (null true) (string-search "changed since" said)) 'edited)
          (t (list text said)))))

(ert-deftest gemini-companion-why-is-right-about-200-lines-of-50-files ()
  "No line is another turn's, and no line of the user or of before is a CLI's."
  (random "why")
  (let* ((gemini-companion-why-test--number 0)
         ;; More than four of five edits are dropped.
         (gemini-companion-edit-most 40)
         (files (mapcar (apply-partially #'format "f%d") (number-sequence 1 50)))
         (answers nil))
    (gemini-companion-why-test-with
        (mapcar (lambda (file)
                  (list file (string-join (gemini-companion-why-test-lines "b" 20))))
                files)
      (cl-loop for number from 1 to 80
               do (gemini-companion-why-test-turn
                   number (if (= 0 (random 2)) gemini qwen) files)
               (dotimes (_ 2)
                 (gemini-companion-why-test-user (nth (random 50) files))))
      (dolist (file files)
        (with-current-buffer (find-file-noselect file)
          (dotimes (_ 4)
            (let ((line (1+ (random (count-lines (point-min) (point-max))))))
              (goto-char (point-min))
              (forward-line (1- line))
              (push (gemini-companion-why-test-answer
                     (buffer-substring (point) (line-end-position))
                     (gemini-companion-why-test-says line))
                    answers)))))
      (should (= 200 (length answers)))
      (should-not (seq-filter #'consp answers))
      ;; It is an answer, not always "unknown".
      (should (< 50 (seq-count (apply-partially #'eq 'right) answers)))
      (should (< (seq-count (apply-partially #'eq 'unknown) answers) 10)))))

(provide 'gemini-companion-why-test)
;;; gemini-companion-why-test.el ends here
