;;; gemini-companion-unified-test-helper.el --- Help for tests of unified diffs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-edit-texts)
(require 'gemini-companion-page)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-unified-draw)

(defun gemini-companion-unified-test-draw (file text)
  "Propose TEXT for FILE, and show its diff, with point at its first change."
  (setq gemini-companion-review-arrival 'notify)
  (let ((edit (gemini-companion-test-open file text)))
    (switch-to-buffer "*drawn*")
    (special-mode)
    ;; It is killed with the directory of the test.
    (setq-local list-buffers-directory default-directory)
    (gemini-companion-page-set-up
     (lambda ()
       (let ((unfolded gemini-companion-unified-draw-unfolded)
             (hunks (gemini-companion-edit-hunks edit))
             (gemini-companion-unified-draw--context (frame-height)))
         (gemini-companion-page-replace
          (with-temp-buffer
            (gemini-companion-unified-draw-insert
             edit (gemini-companion-edit-texts-original edit)
             (gemini-companion-edit-proposal-buffer edit) hunks unfolded)
            (buffer-string)))))
     nil)
    (gemini-companion-page-refresh)
    (goto-char (text-property-not-all (point-min) (point-max)
                                      'gemini-companion-change nil))))

(defun gemini-companion-unified-test-lines (first last &optional prefix)
  "Return the numbers from FIRST to LAST as texts, with PREFIX before each."
  (mapcar (lambda (number) (format "%s%d" (or prefix "") number))
          (number-sequence first last)))

(provide 'gemini-companion-unified-test-helper)
;;; gemini-companion-unified-test-helper.el ends here
