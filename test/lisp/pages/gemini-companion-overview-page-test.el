;;; gemini-companion-overview-page-test.el --- Tests of the text of the overview  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-overview-test-helper)

(ert-deftest gemini-companion-overview-page-folds-as-an-outline ()
  (gemini-companion-overview-test-with-turn
    (let ((count (lambda () (length (gemini-companion-overview-test-lines)))))
      (pcase-dolist (`(,key . ,lines) '(("1" . 1) ("2" . 2) ("3" . 4)))
        (gemini-companion-overview-test-keys key)
        (should (= lines (funcall count))))
      (gemini-companion-overview-test-keys "4")
      (should (< 15 (funcall count)))
      (gemini-companion-overview-test-keys "S-TAB")
      (should (= 1 (funcall count)))
      (gemini-companion-overview-test-keys "S-TAB S-TAB")
      (should (= 4 (funcall count)))
      (gemini-companion-overview-test-go-to "auto .* b  ")
      (gemini-companion-overview-test-keys "TAB")
      (should (= 6 (funcall count)))
      ;; Commands of the outline count.
      (outline-hide-subtree)
      (gemini-companion-page-refresh)
      (should (= 4 (funcall count)))
      (outline-show-all)
      (gemini-companion-page-refresh)
      (should (< 15 (funcall count)))
      ;; What is folded stays so.
      (gemini-companion-overview-test-go-to "the CLI")
      (gemini-companion-overview-test-keys "TAB g")
      (should (= 1 (funcall count))))))

;; Not with `gemini-companion-overview-test-with', where all was displayed.
(ert-deftest gemini-companion-overview-page-knows-what-was-displayed ()
  (gemini-companion-test-with-changes '(("a" "1\n"))
    (let ((gemini-companion-review-arrival 'notify)
          (gemini-companion-overview-page-seconds 1000))
      (unwind-protect
          (progn
            (gemini-companion-test-open "a" "2\n" 1 session)
            (gemini-companion-list)
            (cl-flet ((displayed () (gemini-companion-overview-page-displayed-p
                                     (gemini-companion-overview-page-row)))
                      (display () (run-hook-with-args 'pre-redisplay-functions
                                                      (selected-window))))
              (should-not (displayed))
              (display)
              ;; A key may have been meant for something else.
              (should-not (displayed))
              (setq gemini-companion-overview-page-seconds 0)
              (should (displayed))
              ;; The same version stays displayed.
              (gemini-companion-page-refresh)
              (should (displayed))
              (gemini-companion-test-open "a" "3\n" 2 session)
              (gemini-companion-page-refresh)
              (should-not (displayed))
              ;; A key was typed before that, and is read after it.
              (let ((unread-command-events (list ?a)))
                (display))
              (should-not (displayed))
              (display)
              (should (displayed))
              (should (gemini-companion-overview-page-unfolded-p
                       (gemini-companion-overview-page-row)))
              (outline-hide-subtree)
              (should-not (gemini-companion-overview-page-unfolded-p
                           (gemini-companion-overview-page-row)))))
        (gemini-companion-part-stop 'overview)))))

(ert-deftest gemini-companion-overview-page-follows-what-happens-and-point-stays ()
  (gemini-companion-overview-test-with
      `(("a" ,gemini-companion-test-lines) ("b" "B\nb\n"))
    (gemini-companion-state-report session 'prompt "First")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-writes "b" "B\nc\n" session)
    (gemini-companion-turn-page)
    (gemini-companion-overview-test-go-to "auto .* b  ")
    (gemini-companion-overview-test-keys "TAB")
    (gemini-companion-overview-test-go-to "\\+c")
    (gemini-companion-state-report session 'end nil)
    (gemini-companion-state-report session 'prompt "Second")
    ;; The next turn writes above, and in another file.
    (gemini-companion-test-writes "a" "one\n2\n3\n4\nnew\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-writes "c" "x\n" session)
    (gemini-companion-test-eventually
      (gemini-companion-overview-test-rows "Second"))
    (should (string-suffix-p "+c" (gemini-companion-overview-test-here)))))

(ert-deftest gemini-companion-overview-page-draws-more-of-a-long-diff-by-RET ()
  (gemini-companion-overview-test-with
      `(("a" ,(mapconcat #'number-to-string (number-sequence 1 400) "\n"))
        ("b" "B\n"))
    (let ((gemini-companion-unified-draw-most-lines 20))
      (gemini-companion-test-writes
       "a" (mapconcat (lambda (n) (format "%d%s" n (if (zerop (% n 40)) "!" "")))
                      (number-sequence 1 400) "\n")
       session)
      (gemini-companion-test-writes "b" "C\n" session)
      (gemini-companion-turn-page)
      (dotimes (n 9)
        (gemini-companion-overview-test-keys "n")
        (when (string-match-p " more changed lines; RET shows them"
                              (gemini-companion-overview-test-here))
          (gemini-companion-overview-test-keys "RET n"))
        (should (string-suffix-p (format "-%d" (* 40 (+ 2 n)))
                                 (gemini-companion-overview-test-here))))
      (gemini-companion-overview-test-keys "n")
      (should (string-suffix-p "b  1 left" (gemini-companion-overview-test-here))))))

(ert-deftest gemini-companion-overview-page-is-drawn-in-parts-as-at-once ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n4\n5\n6\n7\n8\n") ("b" "B\n"))
    (gemini-companion-list)
    (let ((drawn (lambda ()
                   (gemini-companion-overview-test-keys "4")
                   (revert-buffer)
                   (gemini-companion-overview-test-lines))))
      (dotimes (step 60)
        (let ((edit (seq-random-elt (append (gemini-companion-edits-open) '(nil)))))
          (pcase (random 5)
            ((guard (null edit))
             (gemini-companion-test-open
              (seq-random-elt '("a" "b" "c"))
              (format "%d\n2\n3\n%d\n" (random 3) (random 3))
              step (gemini-companion-test-session (format "s%d" (1+ (random 2))))))
            (0 (gemini-companion-edit-reject edit))
            (1 (gemini-companion-proposal-close edit 'closed))
            (2 (gemini-companion-test-set-sessions
                (list (gemini-companion-test-session "s1" (1+ (random 2))))))
            (3 (ignore-errors (gemini-companion-edit-accept edit)))
            (_ (when-let* ((hunk (car (gemini-companion-edit-hunks edit))))
                 (cl-letf (((symbol-function 'y-or-n-p) #'always))
                   ;; Of a new file, no hunk can be excluded.
                   (ignore-error user-error
                     (gemini-companion-edit-hunks-toggle edit hunk)))))))
        (when (zerop (random 3))
          (goto-char (1+ (random (buffer-size))))
          (ignore-errors (gemini-companion-overview-toggle)))
        (revert-buffer))
      ;; Windows beside each other are not all of one width.
      (cl-letf (((symbol-function 'gemini-companion-overview-draw-width)
                 (lambda () 150)))
        (let ((parts (funcall drawn)))
          (kill-buffer)
          (gemini-companion-list)
          (should (equal (funcall drawn) parts)))))))

(ert-deftest gemini-companion-overview-page-gathers-what-was-reviewed-once-point-is-away ()
  (gemini-companion-overview-test-with
      `(("a" "A\n") ("b" "B\n") ("c" "C\n"))
    (gemini-companion-state-report session 'prompt "Do it")
    (dolist (file '("a" "b" "c"))
      (gemini-companion-test-writes file "X\n" session))
    (gemini-companion-turn-page)
    (gemini-companion-overview-test-keys "k")
    (gemini-companion-overview-test-keys "u")
    (should (= 3 (length (gemini-companion-overview-test-rows "auto"))))
    (gemini-companion-overview-test-keys "g")
    (should (equal '("▸ auto  +1 −1  c  1 left" "▸ reviewed  2 files  1 kept, 1 undone")
                   (mapcar (lambda (line) (replace-regexp-in-string "▾ auto" "▸ auto" line))
                           (gemini-companion-overview-test-rows "auto\\|reviewed"))))))

(ert-deftest gemini-companion-overview-page-searches-no-buffers-for-a-row ()
  (gemini-companion-overview-test-with-turn
    (dolist (name '("a" "b"))
      (when-let* ((buffer (get-file-buffer name)))
        (kill-buffer buffer)))
    (let ((searches 0))
      (cl-letf (((symbol-function 'find-buffer-visiting)
                 (lambda (_file) (ignore (cl-incf searches)))))
        (revert-buffer))
      (should (= 0 searches)))))

(ert-deftest gemini-companion-overview-page-stays-unfolded-at-point-when-redrawn ()
  (gemini-companion-overview-test-with-turn
    ;; The second file was unfolded by going there, not by the user.
    (gemini-companion-overview-test-keys "M-n M-n")
    (let ((lines (gemini-companion-overview-test-lines)))
      (should (equal "-B" (gemini-companion-overview-test-here)))
      (gemini-companion-overview-test-keys "g")
      (should (equal "-B" (gemini-companion-overview-test-here)))
      (should (equal lines (gemini-companion-overview-test-lines))))
    ;; Also once it is reviewed.
    (gemini-companion-overview-test-keys "k")
    (gemini-companion-overview-test-go-to "k\\+C")
    (gemini-companion-overview-test-keys "g")
    (should (equal "k+C" (gemini-companion-overview-test-here)))))

(defun gemini-companion-overview-page-test-visible-p (regexp window)
  "Return non-nil if the first line that matches REGEXP is in WINDOW."
  (with-selected-window window
    (gemini-companion-overview-test-go-to regexp)
    (and (<= (window-start) (point))
         (<= (count-screen-lines (window-start) (point) t) (window-body-height)))))

;; It was above the window, whose text stayed where it was.
(ert-deftest gemini-companion-overview-page-shows-a-request-that-arrives ()
  (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines) ("b" "b\n"))
    (gemini-companion-state-report session 'prompt "Do it")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-turn-page)
    (let ((window (selected-window))
          (change (gemini-companion-overview-test-here)))
      (switch-to-buffer-other-window "*scratch*")
      (gemini-companion-test-open (expand-file-name "b" directory) "B\n" 1 session)
      (with-current-buffer "*gemini*"
        (gemini-companion-page-refresh))
      (with-selected-window window
        (should (equal change (gemini-companion-overview-test-here))))
      (should (gemini-companion-overview-page-test-visible-p "Waiting" window))
      (should (gemini-companion-overview-page-test-visible-p "proposal" window)))))

;; The heading was above the window.
(ert-deftest gemini-companion-overview-page-appears-with-the-heading-of-what-waits ()
  (gemini-companion-overview-test-with '(("a" ""))
    (let ((edit (gemini-companion-test-open
                 "a" (mapconcat #'number-to-string (number-sequence 1 60) "\n")
                 1 session)))
      (switch-to-buffer "*scratch*")
      (delete-other-windows)
      (split-window)
      (gemini-companion-overview-appear edit)
      (let ((window (get-buffer-window "*gemini*")))
        (should-not (eq window (selected-window)))
        (should (gemini-companion-overview-page-test-visible-p "Waiting" window))
        (should (gemini-companion-overview-page-test-visible-p "proposal" window))))))

;; In a window that is scrolled, and that has no room for point and the new row.
(ert-deftest gemini-companion-overview-page-counts-what-waits-above-the-window ()
  (gemini-companion-overview-test-with '(("a" "") ("b" ""))
    (dotimes (number 2)
      (gemini-companion-test-open
       (nth number '("a" "b"))
       (mapconcat #'number-to-string (number-sequence 1 60) "\n") number session))
    (gemini-companion-list)
    (let ((header (lambda ()
                    (substring-no-properties (gemini-companion-overview-test-header)))))
      (set-window-start nil (point-min))
      (should-not (string-search "to answer" (funcall header)))
      (forward-line 40)
      (set-window-start nil (line-beginning-position 0))
      (should (string-prefix-p " 2 to answer above: M-x gemini-companion-list  a"
                               (funcall header))))))

;; A window without room for both keeps the row of point if it is selected.
(ert-deftest gemini-companion-overview-page-shows-a-request-below-the-window ()
  (pcase-dolist (`(,selected ,shown) '((t nil) (nil t)))
    (gemini-companion-overview-test-with '(("a" "") ("b" "b\n"))
      (gemini-companion-test-open
       "a" (mapconcat #'number-to-string (number-sequence 1 60) "\n") 1 session)
      (gemini-companion-list)
      (let ((window (selected-window))
            (here (point)))
        (unless selected
          (switch-to-buffer-other-window "*scratch*"))
        (gemini-companion-test-open (expand-file-name "b" directory) "B\n" 2 session)
        (with-current-buffer "*gemini*"
          (gemini-companion-page-refresh))
        (should (eq selected (= here (window-point window))))
        (should (eq shown (and (gemini-companion-overview-page-test-visible-p
                                "proposal.*  b" window)
                               t)))))))

;;; gemini-companion-overview-page-test.el ends here
