;;; gemini-companion-unified-test.el --- Tests of the unified view  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-hunk)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-unified-draw)

(defmacro gemini-companion-unified-test-with (files &rest body)
  "Show proposals as unified diffs while BODY is run in a directory with FILES."
  (declare (indent 1) (debug t))
  `(let ((gemini-companion-review-view 'diff))
     (gemini-companion-test-with-reviews ,files ,@body)))

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

(defun gemini-companion-unified-test-lines (first last &optional prefix)
  "Return the numbers from FIRST to LAST as texts, with PREFIX before each."
  (mapcar (lambda (number) (format "%s%d" (or prefix "") number))
          (number-sequence first last)))

(ert-deftest gemini-companion-unified-folds-what-is-a-screen-away ()
  (gemini-companion-unified-test-with
      `(("a" ,(string-join (gemini-companion-unified-test-lines 1 500) "\n")))
    (let* ((lines (lambda (first last)
                    (gemini-companion-unified-test-lines first last " ")))
           (screen (frame-height))
           (last (+ 200 screen)))
      (gemini-companion-test-show
       "a" (replace-regexp-in-string "^200$" "hundred"
                                     (gemini-companion-test-file-text "a")))
      (with-current-buffer (window-buffer)
        (should (looking-at-p "200"))
        (should (equal `(,(format " ... %d unchanged lines" (- 199 screen))
                         ,@(funcall lines (- 200 screen) 199)
                         "-200" "+hundred"
                         ,@(funcall lines 201 last)
                         ,(format " ... %d unchanged lines" (- 300 screen)))
                       (gemini-companion-test-diff)))
        (let ((folded (buffer-string)))
          (goto-char (point-min))
          (gemini-companion-unified-toggle-fold)
          (should (equal (funcall lines 1 199)
                         (seq-take (gemini-companion-test-diff) 199)))
          (gemini-companion-unified-toggle-fold)
          (should (equal-including-properties
                   (substring-no-properties folded)
                   (buffer-substring-no-properties (point-min) (point-max))))
          (should-not (buffer-modified-p))))
      ;; To a line before a fold, and to the fold that a line is in.
      (pcase-dolist (`(,line . ,shown) `((,last . ,(format "%d$" last))
                                         (,(1+ last) . "[.]\\{3\\}")))
        (set-buffer (window-buffer))
        (gemini-companion-review-edit)
        (set-buffer (window-buffer))
        (goto-char (gemini-companion-hunk-line line))
        (gemini-companion-review-edit)
        (set-buffer (window-buffer))
        (should (looking-at-p shown))))))

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

(ert-deftest gemini-companion-unified-marks-the-words-of-a-line-that-is-like-it ()
  (gemini-companion-unified-test-with
      '(("a.el" "(hello-world \"name\" 1)\nnothing like it\n\n    call you\n
is for all of one word\n"))
    ;; Font Lock mode does not turn on in a batch job.
    (let ((noninteractive nil))
      (gemini-companion-test-show
       "a.el" (concat "(hello-world \"title\" 1)\nother words altogether, "
                      "really\n\n    ;; who\n    call me!\n
is for all of a whole new line of other text\n")))
    (with-current-buffer (window-buffer)
      (let (words)
        (goto-char (point-min))
        (while (not (eobp))
          (let ((end (next-single-property-change (point) 'face nil
                                                  (point-max)))
                (face (ensure-list (get-text-property (point) 'face))))
            (when (seq-intersection face
                                    '(diff-refine-added diff-refine-removed))
              (should (memq 'bold face))
              ;; A color of the mode may be hard to read there.
              (should-not (memq 'font-lock-string-face face))
              (push (buffer-substring-no-properties (point) end) words))
            (goto-char end)))
        (should (equal '("me!" "you" "title" "name") words))))))

(ert-deftest gemini-companion-unified-shows-the-changes-in-a-long-line ()
  (let* ((json (lambda (one two)
                 (concat (make-string 2000 ?a) " " one " " (make-string 600000 ?b)
                         " " two " " (make-string 2000 ?c))))
         (near (lambda (one two)
                 (concat "..." (make-string 59 ?a) " " one " "
                         (make-string 59 ?b) "..." (make-string 59 ?b) " "
                         two " " (make-string 59 ?c) "...")))
         (long (concat (make-string 60000 ?x) "\n"))
         (between (mapconcat (lambda (_) "same\n") (number-sequence 1 100) ""))
         (tail (concat between long)))
    (gemini-companion-unified-test-with
        `(("a" ,(concat (funcall json "1" "two") "\n" tail)))
      (gemini-companion-test-show
       "a" (concat (funcall json "10" "2") "\n" tail
                   (string-replace "x" "y" long)))
      (with-current-buffer (window-buffer)
        (should (equal (list (concat "-" (funcall near "1" "two"))
                             (concat "+" (funcall near "10" "2"))
                             (concat " " (make-string 60 ?x) "...")
                             (concat "+" (make-string 10000 ?y)
                                     "... 50000 more characters"))
                       (seq-remove (lambda (line)
                                     (string-match-p "same\\|fold\\|unchanged" line))
                                   (gemini-companion-test-diff))))
        (should (string-search "hunk 1 of 2" (gemini-companion-test-header)))
        ;; To each change, to the second hunk, and back.
        (dolist (place '(("n" . "10") ("n" . "2") ("n" . "yyy") ("p" . "2")))
          (call-interactively (key-binding (car place)))
          (should (looking-at-p (regexp-quote (cdr place)))))
        ;; To the same character of the proposal.
        (gemini-companion-review-edit)
        (with-current-buffer (window-buffer)
          (goto-char (window-point))
          (should (equal "*gemini proposal: a*" (buffer-name)))
          (should (looking-at-p "2 c"))
          (gemini-companion-review-edit))
        (gemini-companion-review-previous-hunk)
        (should (looking-at-p "[.]\\{3\\}aa"))
        (gemini-companion-review-next-hunk 3)
        (should (string-search "hunk 2 of 2" (gemini-companion-test-header)))))))

(ert-deftest gemini-companion-unified-says-how-much-of-a-huge-line-it-omits ()
  (let ((rest (concat " " (make-string 2100000 ?b) " "))
        (end (make-string 2200000 ?c)))
    (gemini-companion-unified-test-with `(("a" ,(concat "1" rest "2 " end)))
      (gemini-companion-test-show "a" (concat "10" rest "3 " end))
      (with-current-buffer (window-buffer)
        (goto-char (point-min))
        (dolist (shown '("1 b+[.]+ 4290005 more" "10 b+[.]+ 4290006 more"))
          (should (looking-at-p shown))
          (forward-line 2))))))

(define-derived-mode gemini-companion-unified-test-mode prog-mode "Test"
  "Color text as web-mode does, by a property that is an alias."
  (setq-local font-lock-defaults '(nil)
              font-lock-fontify-region-function
              (lambda (beg end &rest _)
                (put-text-property beg end 'font-lock-face 'bold-italic))))

(ert-deftest gemini-companion-unified-has-the-colors-of-any-mode ()
  (let ((auto-mode-alist '(("a" . gemini-companion-unified-test-mode))))
    (gemini-companion-unified-test-with '(("a" "old\n"))
      ;; Font Lock mode does not turn on in a batch job.
      (let ((noninteractive nil))
        (gemini-companion-test-show "a" "new\n"))
      (with-current-buffer (window-buffer)
        (let ((faces (ensure-list (get-text-property (point-min) 'face))))
          (should (memq 'diff-removed faces))
          (should (memq 'bold-italic faces)))))))

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
                    (not (equal "a.el" (gemini-companion-edit-summary)))))
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
        (should (gemini-companion-review-hunk-at-point))
        (funcall shows t "x-1" "x+one" " 2" " 3" "-4" " 5" " 6"
                 "-7" "+seven" "*+8"))
      (gemini-companion-edit-accept diff)
      (should (equal '((1 accepted "1\n2\n3\n5\n6\nseven\n8\n")) outcomes)))))

;;; gemini-companion-unified-test.el ends here
