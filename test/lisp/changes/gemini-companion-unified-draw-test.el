;;; gemini-companion-unified-draw-test.el --- Tests of drawing a unified diff  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-unified-draw)
(require 'gemini-companion-unified-test-helper)

(ert-deftest gemini-companion-unified-draw-folds-what-is-a-screen-away ()
  (gemini-companion-test-with-reviews
      `(("a" ,(string-join (gemini-companion-unified-test-lines 1 500) "\n")))
    (let* ((lines (lambda (first last)
                    (gemini-companion-unified-test-lines first last " ")))
           (screen (frame-height))
           (last (+ 200 screen)))
      (gemini-companion-unified-test-draw
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
          (gemini-companion-unified-draw-toggle-fold)
          (should (equal (funcall lines 1 199)
                         (seq-take (gemini-companion-test-diff) 199)))
          (gemini-companion-unified-draw-toggle-fold)
          (should (equal-including-properties
                   (substring-no-properties folded)
                   (buffer-substring-no-properties (point-min) (point-max))))
          (should-not (buffer-modified-p)))))))

(ert-deftest gemini-companion-unified-draw-marks-the-words-of-a-line-that-is-like-it ()
  (gemini-companion-test-with-reviews
      '(("a.el" "(hello-world \"name\" 1)\nnothing like it\n\n    call you\n
is for all of one word\n"))
    ;; Font Lock mode does not turn on in a batch job.
    (let ((noninteractive nil))
      (gemini-companion-unified-test-draw
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
                                    '(gemini-companion-added-words gemini-companion-removed-words))
              (should (memq 'bold face))
              ;; A color of the mode may be hard to read there.
              (should-not (memq 'font-lock-string-face face))
              (push (buffer-substring-no-properties (point) end) words))
            (goto-char end)))
        (should (equal '("me!" "you" "title" "name") words))))))

(ert-deftest gemini-companion-unified-draw-shows-the-changes-in-a-long-line ()
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
    (gemini-companion-test-with-reviews
        `(("a" ,(concat (funcall json "1" "two") "\n" tail)))
      (gemini-companion-unified-test-draw
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
                                   (gemini-companion-test-diff))))))))

(ert-deftest gemini-companion-unified-draw-says-how-much-of-a-huge-line-it-omits ()
  (let ((rest (concat " " (make-string 2100000 ?b) " "))
        (end (make-string 2200000 ?c)))
    (gemini-companion-test-with-reviews `(("a" ,(concat "1" rest "2 " end)))
      (gemini-companion-unified-test-draw "a" (concat "10" rest "3 " end))
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

(ert-deftest gemini-companion-unified-draw-has-the-colors-of-any-mode ()
  (let ((auto-mode-alist '(("a" . gemini-companion-unified-test-mode))))
    (gemini-companion-test-with-reviews '(("a" "old\n"))
      ;; Font Lock mode does not turn on in a batch job.
      (let ((noninteractive nil))
        (gemini-companion-unified-test-draw "a" "new\n"))
      (with-current-buffer (window-buffer)
        (let ((faces (ensure-list (get-text-property (point-min) 'face))))
          (should (memq 'gemini-companion-removed faces))
          (should (memq 'bold-italic faces)))))))

;;; gemini-companion-unified-draw-test.el ends here
