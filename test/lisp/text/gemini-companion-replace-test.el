;;; gemini-companion-replace-test.el --- Tests of replacing text in place  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-replace)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-text)
(require 'gemini-companion-text-test-helper)

(defun gemini-companion-text-test-marks ()
  "Return an alist of the lines of this buffer and markers there.
These are at the beginning and the end of the line."
  (goto-char (point-min))
  (let (marks)
    (while (not (eobp))
      (push (list (buffer-substring (point) (line-end-position))
                  (copy-marker (point)) (copy-marker (line-end-position)))
            marks)
      (forward-line))
    marks))

(ert-deftest gemini-companion-text-is-replaced-where-it-differs ()
  (gemini-companion-text-test-at-random 40
    (with-temp-buffer
      (buffer-enable-undo)
      (let* ((lines (mapcar (lambda (number) (format "%d line" number))
                            (number-sequence 1 (random 30))))
             (before (concat (string-join lines "\n")
                             (and lines (seq-random-elt '("" "\n")))))
             (after (concat (gemini-companion-test-edited-at-random before)
                            (seq-random-elt '("" "last"))))
             (edited (split-string after "\n" t))
             (diff-command (if (zerop (random 4)) "no-such" diff-command))
             marks places)
        (insert before)
        (undo-boundary)
        (setq buffer-undo-list (seq-random-elt (list nil buffer-undo-list)))
        (setq marks (gemini-companion-text-test-marks))
        (narrow-to-region (point-min) (1+ (/ (point-max) 2)))
        (setq places (gemini-companion-replace-text after))
        (widen)
        (should (equal after (buffer-string)))
        (when (equal diff-command "diff")
          (pcase-dolist (`(,line ,beg ,end) marks)
            (when (and (member line edited)
                       ;; It may get another end.
                       (not (equal (last lines) (list line)))
                       (not (equal (last edited) (list line))))
              (should (equal line (buffer-substring beg end)))))
          (dolist (line (gemini-companion-text-lines after))
            (goto-char (point-min))
            (search-forward line)
            (should (or (member line lines)
                        (seq-some (pcase-lambda (`(,beg . ,end))
                                    (<= beg (match-beginning 0)
                                        (match-end 0) end))
                                  places)))))
        (unless (equal before after)
          ;; In undo-tree, a boundary at the end is an endless loop.
          (should (car (last buffer-undo-list)))
          (primitive-undo 1 (cdr buffer-undo-list))
          (should (equal before (buffer-string))))))))

(ert-deftest gemini-companion-text-is-replaced-at-many-places-at-once ()
  (with-temp-buffer
    (let ((calls 0))
      (dotimes (number 100000) (insert (format "%d words\n" number)))
      (add-hook 'after-change-functions (lambda (&rest _) (cl-incf calls)) nil t)
      (should (= 10000 (length (gemini-companion-replace-text
                                (string-replace "5 words\n" "5 words\nmore\n"
                                                (buffer-string))))))
      (should (= 1 calls)))))

(ert-deftest gemini-companion-text-is-replaced-to-the-character ()
  (gemini-companion-text-test-at-random 100
    (pcase-let ((`(,before ,after) (gemini-companion-text-test-random-texts 2))
                (bytes-p (zerop (random 4))))
      (with-temp-buffer
        (when bytes-p
          (set-buffer-multibyte nil)
          (setq before (gemini-companion-text-utf-8 before)))
        (buffer-enable-undo)
        (insert before)
        (let ((expected (if bytes-p (gemini-companion-text-utf-8 after) after))
              places)
          (dolist (name '("FIRST" "SECOND"))
            (goto-char (point-min))
            (re-search-forward (format "^%s$" name))
            (push (list name (copy-marker (match-beginning 0)) (point-marker)
                        (make-overlay (match-beginning 0) (point)))
                  places))
          (undo-boundary)
          (ert-info ((format "%S to %S" before after))
            (gemini-companion-replace-text after)
            (should (equal expected (buffer-string)))
            (pcase-dolist (`(,name ,beg ,end ,overlay) places)
              (should (equal name (buffer-substring beg end)))
              (should (equal name (buffer-substring (overlay-start overlay)
                                                    (overlay-end overlay)))))
            (unless (equal before expected)
              (primitive-undo 1 (cdr buffer-undo-list))
              (should (equal before (buffer-string))))))))))

;;; gemini-companion-replace-test.el ends here
