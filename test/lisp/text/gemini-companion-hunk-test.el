;;; gemini-companion-hunk-test.el --- Tests of hunks  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-ediff)
(require 'gemini-companion-hunk)
(require 'gemini-companion-lines)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-text)
(require 'gemini-companion-text-test-helper)

;;;; Comparison

(ert-deftest gemini-companion-hunk-compares-many-lines-as-few ()
  (let ((old (vconcat (mapcar (apply-partially #'format "%d\n")
                              (number-sequence 1 1000)))))
    (pcase-dolist (`(,changed . ,regions)
                   '(((3 . "x\n")) ((3 . "x\n") (900 . "y\n") (999 . "z"))))
      (let ((new (copy-sequence old)))
        (aset new (car changed) (cdr changed))
        (pcase-dolist (`(,i . ,line) regions)
          (aset new i line))
        (should (equal (mapcar (pcase-lambda (`(,i . ,_)) (list i (1+ i) i (1+ i)))
                               (cons changed regions))
                       (mapcar (lambda (hunk)
                                 (list (gemini-companion-hunk-old hunk)
                                       (gemini-companion-hunk-old-end hunk)
                                       (gemini-companion-hunk-new hunk)
                                       (gemini-companion-hunk-new-end hunk)))
                               (gemini-companion-hunk-compare-lines old new))))))))

(ert-deftest gemini-companion-hunk-compares-as-diff-does ()
  (gemini-companion-text-test-at-random 60
    (pcase-let* ((texts (gemini-companion-text-test-random-texts 2))
                 (around (car (gemini-companion-text-test-random-texts 1)))
                 (texts (mapcar (lambda (text) (concat around text around)) texts)))
      (ert-info ((format "%S" texts))
        (should (equal (gemini-companion-text-diff texts)
                       (mapcar (lambda (hunk)
                                 (list (gemini-companion-hunk-old hunk)
                                       (gemini-companion-hunk-old-end hunk)
                                       (gemini-companion-hunk-new hunk)
                                       (gemini-companion-hunk-new-end hunk)))
                               (apply #'gemini-companion-hunk-compare texts))))
        (should (equal (vconcat (split-string (car texts) "^" t))
                       (gemini-companion-lines-without
                        (apply #'gemini-companion-hunk-compare texts)
                        (vconcat (split-string (cadr texts) "^" t)))))))))

;;;; The model

(defvar gemini-companion-hunk-test-marks nil
  "The excluded hunks of the model.")

(defvar gemini-companion-hunk-test-text nil
  "The proposal of the model, as edited.")

(defun gemini-companion-hunk-test-expected ()
  "Return the text that is to be sent."
  (let ((text gemini-companion-hunk-test-text))
    ;; From the end; at one place an empty one comes first.
    (pcase-dolist (`(,beg ,proposed ,original)
                   (sort (copy-sequence gemini-companion-hunk-test-marks)
                         (lambda (one other)
                           (if (= (car one) (car other))
                               (> (length (cadr one)) (length (cadr other)))
                             (> (car one) (car other))))))
      (setq text (concat (substring text 0 beg) original
                         (substring text (+ beg (length proposed))))))
    text))

(defun gemini-companion-hunk-test-change (beg count insert)
  "Replace COUNT characters of the model from BEG on by INSERT.
Drop those that do not consist of whole lines as before, or have other lines
beside them."
  (let ((text (concat (substring gemini-companion-hunk-test-text 0 beg)
                      insert
                      (substring gemini-companion-hunk-test-text
                                 (+ beg count))))
        marks)
    (pcase-dolist (`(,from ,proposed ,original ,beside)
                   gemini-companion-hunk-test-marks)
      (let* ((length (length proposed))
             (at (cond ((< (+ beg count) from)
                        (+ from (- (length insert) count)))
                       ((and (< beg from) (<= from (+ beg count)))
                        beg)
                       ((and (= beg from) (< 0 length))
                        (+ from (length insert)))
                       (t from)))
             (end (+ at length))
             (line-p (lambda (position)
                       (or (zerop position)
                           (eq ?\n (aref text (1- position)))))))
        (when (and (<= end (length text))
                   (string= proposed (substring text at end))
                   ;; Text that was deleted is another one.
                   (or (zerop length) (<= (+ beg count) from)
                       (<= (+ from length) beg))
                   (funcall line-p at)
                   (equal beside (gemini-companion-hunk-test-beside text at end))
                   (or (= end (length text))
                       (and (funcall line-p end)
                            (or (string-empty-p original)
                                (string-suffix-p "\n" original)))))
          (push (list at proposed original beside) marks))))
    (setq gemini-companion-hunk-test-text text
          gemini-companion-hunk-test-marks marks)))

(defun gemini-companion-hunk-test-lines (text from to)
  "Return where the lines of TEXT from FROM to TO begin, and these lines."
  (with-temp-buffer
    (insert text)
    (let ((beg (gemini-companion-hunk-position from)))
      (list (1- beg)
            (buffer-substring beg (gemini-companion-hunk-position to))))))

(defun gemini-companion-hunk-test-beside (text from to)
  "Return the line of TEXT that ends at FROM, and the one that begins at TO."
  (list (let ((end (max 0 (1- from))))
          (substring text (if-let* ((newline (string-match-p "\n[^\n]*\\'"
                                                             (substring text 0 end))))
                              (1+ newline)
                            0)
                     from))
        (substring text to (if-let* ((newline (string-search "\n" text to)))
                               (1+ newline)
                             (length text)))))

(defun gemini-companion-hunk-test-mark (hunk original)
  "Return a mark of HUNK in the model, where the file is ORIGINAL."
  (pcase-let ((`(,from ,proposed) (gemini-companion-hunk-test-lines
                                   gemini-companion-hunk-test-text
                                   (gemini-companion-hunk-new hunk)
                                   (gemini-companion-hunk-new-end hunk))))
    (list from proposed
          (cadr (gemini-companion-hunk-test-lines
                 original (gemini-companion-hunk-old hunk)
                 (gemini-companion-hunk-old-end hunk)))
          (gemini-companion-hunk-test-beside gemini-companion-hunk-test-text
                                             from (+ from (length proposed))))))

(defun gemini-companion-hunk-test-compared (hunks original)
  "Keep only those in the model that are among HUNKS of ORIGINAL."
  (let ((all (mapcar (lambda (hunk)
                       (gemini-companion-hunk-test-mark hunk original))
                     hunks)))
    (setq gemini-companion-hunk-test-marks
          (seq-filter (lambda (mark) (member mark all))
                      gemini-companion-hunk-test-marks))))

;;;; What is shown

(defun gemini-companion-hunk-test-compare (diff)
  "Compare DIFF again in its view, and in the model."
  (with-current-buffer (gemini-companion-review-main-buffer diff)
    (gemini-companion-ediff-compare-again))
  (gemini-companion-hunk-test-compared
   (gemini-companion-edit-hunks diff)
   (gemini-companion-test-file-text (gemini-companion-edit-file diff))))

(defun gemini-companion-hunk-test-check (diff)
  "Assert that what is shown and sent of DIFF equals the model.
The hunks were just compared."
  (let ((text (gemini-companion-hunk-test-expected))
        (buffer (gemini-companion-review-main-buffer diff)))
    (should (equal text (gemini-companion-edit-text diff)))
    (should (equal (length gemini-companion-hunk-test-marks)
                   (if-let* ((counts (gemini-companion-edit-hunks-counts diff)))
                       (gemini-companion-hunk-counts-excluded counts)
                     0)))
    (with-current-buffer buffer
      (let ((excluded 0))
          (dotimes (n ediff-number-of-differences)
            (ediff-jump-to-difference (1+ n))
            (when (string-search "excluded" (buffer-string))
              (should (gemini-companion-commands-value 'excluded))
              (setq excluded (1+ excluded))))
          (should (equal (length gemini-companion-hunk-test-marks)
                         excluded))))))

;;;; The walk

(defun gemini-companion-hunk-test-random (lines)
  "Return a text of LINES at most, few of which differ."
  (concat (mapconcat (lambda (_) (seq-random-elt '("a" "b" "" "d d" "ü\U0001F600\u2028" "-x"
                                                   "@@ -1 +1 @@" "\\ No" "--- a")))
                     (make-list (random (1+ lines)) nil) "\n")
          (seq-random-elt '("" "\n"))))

(defun gemini-companion-hunk-test-mutate (text)
  "Return TEXT after some random edits of lines."
  (dotimes (_ (1+ (random 4)))
    (let* ((beg (random (1+ (length text))))
           (end (min (length text) (+ beg (random 5)))))
      (setq text (concat (substring text 0 beg)
                         (gemini-companion-hunk-test-random 2)
                         (substring text end)))))
  text)

(defun gemini-companion-hunk-test-edit (diff edit)
  "Call EDIT in the proposal of DIFF, and change the model in the same way."
  (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
    (undo-boundary)
    (let ((change (lambda (beg end count)
                    (gemini-companion-hunk-test-change
                     (1- beg) count
                     (buffer-substring-no-properties beg end)))))
      (unwind-protect
          (progn (add-hook 'after-change-functions change nil t)
                 (funcall edit))
        (remove-hook 'after-change-functions change t)))))

(defun gemini-companion-hunk-test-go (diff)
  "Go somewhere in the view of DIFF."
  (let ((n (random 6)))
    (set-buffer (gemini-companion-review-main-buffer diff))
    (cond ((zerop n)
           (set-buffer (gemini-companion-edit-proposal-buffer diff))
           (goto-char (1+ (random (1+ (buffer-size))))))
          (t (ignore-errors (ediff-jump-to-difference n))))))

(defun gemini-companion-hunk-test-toggle (diff)
  "Toggle a hunk of DIFF by its key, here and in the model, and return it.
One hunk must change, the one at point."
  (save-current-buffer
    (gemini-companion-hunk-test-go diff)
    (let* ((done (condition-case nil
                     (progn (gemini-companion-review-toggle-hunk) t)
                   (user-error nil)))
           (hunks (with-temp-buffer
                    (insert-file-contents (gemini-companion-edit-file diff))
                    (gemini-companion-hunk-compare
                     (gemini-companion-text-of-buffer)
                     (gemini-companion-text-of-buffer
                      (gemini-companion-edit-proposal-buffer diff)))))
           (file (gemini-companion-test-file-text
                  (gemini-companion-edit-file diff)))
           (marks (mapcar (lambda (hunk)
                            (gemini-companion-hunk-test-mark hunk file))
                          (gemini-companion-hunk-excluded
                           (gemini-companion-edit-proposal-buffer diff))))
           (before (gemini-companion-hunk-test-compared hunks file)))
      (should (equal hunks (gemini-companion-edit-hunks diff)))
      (should (eql (if done 1 0)
                   (+ (length (seq-difference marks before))
                      (length (seq-difference before marks)))))
      (when done
        (should (or (gemini-companion-commands-value 'excluded)
                    (< (length marks) (length before)))))
      (setq gemini-companion-hunk-test-marks marks))))

(defun gemini-companion-hunk-test-step (diff file)
  "Do something at random in the review of DIFF, of FILE; return what was done."
  (let* ((length (length gemini-companion-hunk-test-text))
         (step (seq-random-elt '(toggle toggle toggle edit edit undo compare
                                        compare file))))
    (pcase step
      ('toggle (list step (gemini-companion-hunk-test-toggle diff)))
      ('edit
       (let* ((beg (random (1+ length)))
              (count (random (min 8 (1+ (- length beg)))))
              (text (gemini-companion-hunk-test-random 2)))
         (gemini-companion-hunk-test-edit
          diff (lambda ()
                 (delete-region (1+ beg) (+ 1 beg count))
                 (goto-char (1+ beg))
                 (insert text)))
         (list step beg count text)))
      ('undo
       (gemini-companion-hunk-test-edit
        diff (lambda ()
               (let ((last-command nil))
                 (ignore-error user-error (undo)))))
       step)
      ('file
       (let ((text (gemini-companion-hunk-test-mutate
                    (gemini-companion-test-file-text file))))
         (unless (string= text (gemini-companion-edit-proposed diff))
           (gemini-companion-test-rewrite file text)
           (gemini-companion-test-in-the-end
             (equal text (gemini-companion-test-text "*gemini original: a*")))
           (gemini-companion-hunk-test-compare diff)
           (list step text))))
      (_
       (gemini-companion-hunk-test-compare diff)
       step))))

(defun gemini-companion-hunk-test-walk (old new)
  "Go at random through a review of an edit from OLD to NEW."
  (gemini-companion-test-with-reviews `(("a" ,old))
    (let* ((diff (gemini-companion-test-show "a" new))
           (gemini-companion-hunk-test-text new)
           (gemini-companion-hunk-test-marks nil)
           steps)
      (cl-letf (((symbol-function 'y-or-n-p) #'always))
        (dotimes (_ 8)
          (push (gemini-companion-hunk-test-step diff "a") steps)
          (ert-info ((format "%S" (reverse steps)))
            ;; Nothing but the user has edited it.
            (should (equal gemini-companion-hunk-test-text
                           (with-current-buffer
                               (gemini-companion-edit-proposal-buffer diff)
                             (buffer-string))))
            (should (equal (gemini-companion-hunk-test-expected)
                           (gemini-companion-edit-text diff)))
            ;; An edit need not be followed by a comparison.
            (when (memq (or (car-safe (car steps)) (car steps))
                        '(compare file))
              (gemini-companion-hunk-test-check diff))))))))

(ert-deftest gemini-companion-hunk-excluded-ones-count-without-their-lines ()
  (let* ((hunks (list (gemini-companion-hunk-make 0 1 0 2 '("a\n"))
                      (gemini-companion-hunk-make 3 3 4 7 nil)
                      (gemini-companion-hunk-make 5 7 9 9 '("b\n" "c\n"))))
         (counts (gemini-companion-hunk-count hunks (list (nth 1 hunks)))))
    (should (= 3 (gemini-companion-hunk-counts-hunks counts)))
    (should (= 1 (gemini-companion-hunk-counts-excluded counts)))
    (should (= 2 (gemini-companion-hunk-counts-added counts)))
    (should (= 3 (gemini-companion-hunk-counts-removed counts)))))

(ert-deftest gemini-companion-hunk-what-is-shown-is-what-is-sent ()
  (dotimes (seed (gemini-companion-text-test-times 20))
    (random (format "marks %d" seed))
    (let* ((old (gemini-companion-hunk-test-random 15))
           (new (gemini-companion-hunk-test-mutate old)))
      (unless (string= old new)
        (ert-info ((format "seed %d, %S to %S: " seed old new))
          (gemini-companion-hunk-test-walk old new))))))

(ert-deftest gemini-companion-hunk-selection-is-of-the-selected-lines ()
  (pcase-dolist (`(,old ,new ,news ,olds ,text)
                 '(("1\n2\n3\n" "1\nb\nc\n" (1) () "1\n2\nc\n")
                   ("1\n2\n3\n" "1\nb\nc\n" (2) () "1\nb\n3\n")
                   ("1\n2\n3\n" "1\nb\nc\n" () (2) "1\nb\n3\n")
                   ;; More lines than were replaced.
                   ("1\n2\n" "1\nb\nc\nd\n" (1) () "1\n2\nc\nd\n")
                   ("1\n2\n" "1\nb\nc\nd\n" (2) () "1\nb\nd\n")
                   ("1\n2\n" "1\nb\nc\nd\n" () (1) "1\n2\nb\nc\nd\n")
                   ("1\n2\n3\n" "1\n" () (2) "1\n3\n")
                   ("" "a\nb\n" (0) () "b\n")
                   ("1\n2\n" "1\nb\n" (0) (0) nil)))
    (ert-info ((format "%S to %S, %S %S" old new news olds))
      (let* ((lines (gemini-companion-hunk-split new))
             (part (gemini-companion-hunk-selection
                    (car (gemini-companion-hunk-compare old new)) lines
                    (lambda (index) (memq index news))
                    (lambda (index) (memq index olds)))))
        (should (equal text (and part
                                 (gemini-companion-lines-join
                                  (gemini-companion-lines-without (list part) lines)))))))))

;;; gemini-companion-hunk-test.el ends here
