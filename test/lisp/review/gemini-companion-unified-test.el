;;; gemini-companion-unified-test.el --- Tests of the unified view  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'imenu)
(require 'gemini-companion-hunk)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-unified-draw)
(require 'gemini-companion-unified-test-helper)

(ert-deftest gemini-companion-unified-shows-lines-with-numbers-and-signs ()
  (gemini-companion-unified-test-with '(("it's 100% \u00fc" "1\n2\n"))
    (pcase-dolist (`(,file ,text ,header . ,lines)
                   '(("it's 100% \u00fc" "1\nzwei" "it's 100%% \u00fc"
                      " 1  1   1" " 2     -2" "    2  +zwei"
                      "       \\No newline at end of file")
                     ("/etc/new" "x\n" "outside your projects; new  a accept"
                      " 1   x")
                     ("new.py" "def f():\n    pass\n" "  \\+2 .0,.*, new file"
                      " 1   def f():" " 2       pass")))
      (gemini-companion-test-show file text)
      (with-current-buffer (window-buffer)
        (should (equal lines (gemini-companion-test-diff 'numbers)))
        (should buffer-read-only)
        (should (eq 'left-to-right bidi-paragraph-direction))
        (should (local-variable-p 'global-hl-line-mode))
        (should (string-match-p header (gemini-companion-test-header))))
      (gemini-companion-edit-reject))))

(ert-deftest gemini-companion-unified-folds-nothing-where-the-user-was ()
  (gemini-companion-unified-test-with
      `(("a" ,(string-join (gemini-companion-unified-test-lines 1 500) "\n")))
    (find-file (expand-file-name "a" directory))
    (goto-char (gemini-companion-hunk-line 400))
    (let* ((file (selected-window))
           (screen (window-height file)))
      (select-window (split-window-right))
      (switch-to-buffer (get-buffer-create "*other*"))
      (gemini-companion-arrival-view
       (gemini-companion-test-arrive
        "a" (string-replace "\n20\n" "\nnew\n"
                            (gemini-companion-test-file-text "a"))))
      (with-current-buffer (window-buffer file)
        (should (looking-at-p "20"))
        (pcase (seq-filter (apply-partially #'string-match-p "unchanged")
                           (gemini-companion-test-diff))
          (`(,between ,after)
           (should (< 200 (string-to-number (substring between 5))
                      (- 380 screen)))
           (should (< 0 (string-to-number (substring after 5)) 100)))
          (folds (ert-fail folds)))
        (should (member " 400" (gemini-companion-test-diff)))))))

(ert-deftest gemini-companion-unified-takes-the-place-of-its-file ()
  (gemini-companion-unified-test-with
      `(("a" ,(string-join (gemini-companion-unified-test-lines 1 200) "\n"))
        ("b" "1\n"))
    (find-file (expand-file-name "a" directory))
    (let* ((file (selected-window))
           (other (split-window-right))
           (arrive (lambda (line)
                     (gemini-companion-test-arrive
                      "a" (string-replace (format "\n%d\n" line) "\nnew\n"
                                          (gemini-companion-test-file-text "a")))))
           (row (lambda (line)
                  (with-selected-window file
                    (save-excursion
                      (goto-char (point-min))
                      (search-forward (format "\n%d" line))
                      (+ (nth 1 (window-body-edges))
                         (count-screen-lines (window-start)
                                             (line-beginning-position)))))))
           before diff row-before)
      (goto-char (gemini-companion-hunk-line 100))
      (recenter 7)
      (select-window other)
      (find-file (expand-file-name "b" directory))
      (setq before (gemini-companion-test-layout)
            row-before (funcall row 100))
      (cl-letf (((symbol-function 'pos-visible-in-window-p) ; always nil in batch
                 (lambda (&optional position)
                   (and (<= (window-start) (or position (point)))
                        (< (count-screen-lines (window-start)
                                               (or position (point)))
                           (window-body-height))))))
        ;; A hunk that is out of sight there is shown with the lines before it.
        (dolist (far '(20 180))
          (setq diff (funcall arrive far))
          (should (equal (+ 4 (nth 1 (window-body-edges file)))
                         (funcall row far)))
          (gemini-companion-edit-reject diff))
        (setq diff (funcall arrive 103)))
      (should (equal "*gemini diff: a*" (buffer-name (window-buffer file))))
      (should (equal row-before (funcall row 100)))
      (gemini-companion-arrival-view diff)
      (should (looking-at-p "103"))
      ;; The next one of the turn comes here, too.
      (gemini-companion-test-open "b" "2\n" 2)
      (gemini-companion-test-accept-inside diff)
      (should (equal "*gemini diff: b*" (buffer-name (window-buffer file))))
      (should (eq file (selected-window)))
      (gemini-companion-edit-reject)
      (should (equal before (gemini-companion-test-layout))))))

(ert-deftest gemini-companion-unified-has-its-keys-in-the-proposal ()
  (gemini-companion-unified-test-with '(("a" "1\n2\n3\n4\n5\n"))
    (let ((diff (gemini-companion-test-show "a" "one\n2\n4\n5\nsix\n")))
      (gemini-companion-test-call #'gemini-companion-review-edit)
      (with-current-buffer (window-buffer)
        (should (looking-at-p "one"))
        (gemini-companion-review-next-hunk)
        (should (looking-at-p "4"))
        (gemini-companion-review-toggle-hunk)
        (narrow-to-region (point) (line-end-position))
        (gemini-companion-review-next-hunk)
        (should (looking-at-p "six"))
        (should-error (gemini-companion-review-next-hunk) :type 'user-error)
        (gemini-companion-review-previous-hunk 2)
        (should (looking-at-p "one"))
        (should-error (gemini-companion-review-previous-hunk) :type 'user-error)
        (should (equal "one\n2\n3\n4\n5\nsix\n"
                       (gemini-companion-edit-text diff)))
        (should (string-search "C-c C-n next" (gemini-companion-test-header)))))
    (gemini-companion-edit-reject)
    (gemini-companion-test-show "a" "one\n2\n3\n4\n5\n")
    (gemini-companion-test-call #'gemini-companion-review-edit)
    (should-not (string-search " next" (gemini-companion-test-header
                                        (window-buffer))))))

(ert-deftest gemini-companion-unified-shows-all-of-the-first-hunk ()
  (let ((lines (gemini-companion-unified-test-lines 1 100))
        (below (window-body-height)))
    (gemini-companion-unified-test-with `(("a" ,(string-join lines "\n")))
      (setcar (nthcdr (1- below) lines) "new")
      (gemini-companion-test-show "a" (string-join lines "\n"))
      (with-current-buffer (window-buffer)
        (should (looking-at-p (format "%d\nnew" below)))
        (should (< (count-lines (window-start) (point)) (- below 5)))))))

(ert-deftest gemini-companion-unified-hides-no-hunk-if-all-fit ()
  (gemini-companion-unified-test-with '(("a" "1\n2\n3\n4\n5\n6\n"))
    (find-file (expand-file-name "a" directory))
    (forward-line 4)
    (cl-letf (((symbol-function 'pos-visible-in-window-p) #'always)) ; nil in batch
      (gemini-companion-arrival-view
       (gemini-companion-test-open "a" "one\n2\n3\n4\n5\nsix\n")))
    (should (= 1 (window-start)))))

(ert-deftest gemini-companion-unified-is-indexed-hunk-by-hunk ()
  (gemini-companion-unified-test-with
      `(("a" ,(string-join (gemini-companion-unified-test-lines 1 60) "\n")))
    (gemini-companion-test-show
     "a" (string-replace
          "\n40\n" "\n" (string-replace "\n20\n" "\n  new\n"
                                        (gemini-companion-test-file-text "a"))))
    (with-current-buffer (window-buffer)
      (let ((index (funcall imenu-create-index-function)))
        (should (equal '("20: 20" "40: 40") (mapcar #'car index)))
        (dolist (entry index)
          (goto-char (cdr entry))
          (should (get-text-property (point) 'gemini-companion-hunk)))))
    (gemini-companion-edit-reject)))

(ert-deftest gemini-companion-unified-shows-more-hunks-on-the-way ()
  (let* ((gemini-companion-unified-draw-most-lines 20)
         (text (lambda (odd)
                 (mapconcat (lambda (n) (if (= 1 (% n 2)) odd
                                          (number-to-string n)))
                            (number-sequence 1 100) "\n"))))
    (gemini-companion-unified-test-with `(("a" ,(funcall text "one")))
      (let ((diff (gemini-companion-test-show "a" (funcall text "odd")))
            (moves 1))
        (with-current-buffer (window-buffer)
          (should (equal " ... more lines"
                         (car (last (gemini-companion-test-diff)))))
          (while (ignore-errors (gemini-companion-review-next-hunk) t)
            (setq moves (1+ moves)))
          (should (= 50 moves))
          (gemini-companion-review-toggle-hunk))
        (should (string-suffix-p "odd\n98\none\n100"
                                 (gemini-companion-edit-text diff)))))))

(ert-deftest gemini-companion-unified-comes-back-to-the-line-that-was-edited ()
  (gemini-companion-unified-test-with '(("a.el" "1\n2\n3\n4\n5\n6\n7\n8\n9\n"))
    (gemini-companion-test-show "a.el" "one\n2\n3\n4\n5\n6\n7\n8\n9\n")
    (dolist (edit '("7" "2" "none"))
      (with-current-buffer (window-buffer)
        (goto-char (point-min))
        (gemini-companion-review-edit))
      (with-current-buffer (window-buffer)
        (should (equal "*gemini proposal: a.el*" (buffer-name)))
        (should (eq 'emacs-lisp-mode major-mode))
        (goto-char (window-point))
        (should (looking-at-p "one"))
        (goto-char (point-min))
        (if (equal edit "none")
            (goto-char (point-max))
          (search-forward (concat edit "\n"))
          (forward-line -1)
          (insert "mine\nmine ")
          (narrow-to-region (line-beginning-position) (point-max)))
        ;; Hunks of what was just typed are not known yet.
        (should (eq (equal edit "none")
                    (not (equal "a.el" (gemini-companion-edit-hunks-summary)))))
        (gemini-companion-review-edit))
      (with-current-buffer (window-buffer)
        (should (string-search "*gemini diff" (buffer-name)))
        (goto-char (window-point))
        (if (equal edit "none")
            (should (looking-at-p "9$"))
          (should (looking-at-p (concat "mine " edit "$"))))))))

(ert-deftest gemini-companion-unified-shows-edits-of-the-proposal ()
  (gemini-companion-unified-test-with '(("a" "1\n2\n3\n4\n5\n6\n7\n"))
    (let* ((diff (gemini-companion-test-show
                  "a" "one\n2\n3\n4\n5\n6\nseven\n"))
           (shows (lambda (edited &rest lines)
                    (should (equal lines (gemini-companion-test-diff)))
                    (should (eq edited
                                (and (string-search
                                      ", edited" (gemini-companion-test-header))
                                     t))))))
      (with-current-buffer (window-buffer)
        (gemini-companion-review-toggle-hunk)
        (let ((struck (seq-filter
                       (lambda (place)
                         (memq 'gemini-companion-excluded-text
                               (ensure-list (get-text-property place 'face))))
                       (number-sequence 1 (buffer-size)))))
          (should (equal "one" (concat (mapcar #'char-after struck)))))
        (revert-buffer)
        (funcall shows nil "x-1" "x+one" " 2" " 3" " 4" " 5" " 6" "-7" "+seven")
        (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
          (goto-char (point-min))
          (forward-line 3)
          (delete-region (point) (line-beginning-position 2))
          (goto-char (point-max))
          (insert "8\n"))
        (should (gemini-companion-test-timers))
        (should (gemini-companion-review-update-hunk))
        (funcall shows t "x-1" "x+one" " 2" " 3" "-4" " 5" " 6"
                 "-7" "+seven" "*+8"))
      (gemini-companion-edit-accept diff)
      (should (equal '((1 accepted "1\n2\n3\n5\n6\nseven\n8\n")) outcomes)))))

;;; gemini-companion-unified-test.el ends here
