;;; gemini-companion-header-test.el --- Tests of the header line  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-header)
(require 'gemini-companion-review-test-helper)

(ert-deftest gemini-companion-header-keeps-what-guards-text-before-keys ()
  (let ((file "src/components/account-settings.py"))
    (gemini-companion-test-with-reviews nil
      (gemini-companion-test-write file "1\n")
      (let ((visiting (find-file-noselect file))
            (diff (gemini-companion-test-show file "2\n")))
        (with-current-buffer (gemini-companion-review-main diff)
          (pcase-dolist
              (`(,unsaved ,changed ,width ,keys)
               '((t nil 79 t) (nil "file changed since the proposal" 79 nil)
                 (t nil 50 nil) (t "file changed since the proposal" 79 nil)))
            (with-current-buffer visiting
              (set-buffer-modified-p unsaved))
            (setf (gemini-companion-edit-remarks diff)
                  (and changed '(changed)))
            (let ((text (cl-letf (((symbol-function 'old-selected-window)
                                   #'selected-window))
                          (gemini-companion-header-text width))))
              (ert-info (text)
                (should (<= (string-width text) width))
                (should (string-match-p "s\\.py" text))
                (should (eq unsaved
                            (and (string-search "unsaved changes here" text)
                                 t)))
                (should (or (not changed) (string-search changed text)))
                (should (eq keys (and (string-search "accept" text)
                                      (string-search "reject" text)
                                      t)))))))))))

(ert-deftest gemini-companion-header-names-the-keys-of-a-file-with-a-long-name ()
  (let ((file (concat (make-string 50 ?a) ".el")))
    (gemini-companion-test-with-reviews `((,file "1\n"))
      (gemini-companion-test-show file "2\n")
      (with-current-buffer (window-buffer)
        (pcase-dolist (`(,width ,regexp)
                       '((80 "\\` a+\\.\\.\\.a+\\.el  .* to answer\\'")
                         (60 "\\` a+\\.\\.\\.a+\\.el  .* to answer\\'")
                         (30 "\\` a+\\.\\.\\.a+\\.el\\'")))
          (let ((text (gemini-companion-header-text width)))
            (should (string-match-p regexp text))
            (should (<= (string-width text) width))))))))

(ert-deftest gemini-companion-header-offers-to-restore-removed-lines-at-point ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n"))
    (let* ((diff (gemini-companion-test-show "a" "1\n3\nfour\n"))
           (proposal (gemini-companion-edit-proposal-buffer diff)))
      (gemini-companion-test-call #'gemini-companion-review-toggle-hunk)
      (select-window (get-buffer-window proposal))
      (goto-char 3)
      (cl-letf (((symbol-function 'old-selected-window) #'selected-window))
        (should (string-search "restore" (gemini-companion-header-text 200)))))))

(ert-deftest gemini-companion-header-may-be-computed-at-any-time ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n"))
    (let* ((gemini-companion-review-view 'diff)
           (diff (gemini-companion-test-show "a" "one\n2\nthree\n"))
           (proposal (gemini-companion-edit-proposal-buffer diff)))
      (gemini-companion-test-call #'gemini-companion-review-toggle-hunk)
      ;; The selected window may have been deleted since the last redisplay.
      (let ((window (split-window)))
        (delete-window window)
        (cl-letf (((symbol-function 'old-selected-window) (lambda () window)))
          (should (with-current-buffer proposal
                    (gemini-companion-header-text)))))
      (should (equal "1\n2\nthree\n"
                     (gemini-companion-edit-text diff)))
      ;; It has the keys of the user.
      (let ((map (make-sparse-keymap)))
        (set-keymap-parent map gemini-companion-review-mode-map)
        (define-key map (kbd "C-c C-k") #'ignore)
        (define-key map (kbd "<f8>") #'gemini-companion-edit-reject)
        (with-current-buffer proposal
          (setq minor-mode-overriding-map-alist
                `((gemini-companion-review-mode . ,map))))
        (should (string-search "C-c C-c accept  <f8> reject"
                               (gemini-companion-test-header proposal))))
      ;; In another buffer, it has the key that answers from there.
      (with-temp-buffer
        (switch-to-buffer (current-buffer))
        (use-local-map (make-sparse-keymap))
        (local-set-key (kbd "<f9>") #'gemini-companion-review)
        (should (string-search "  <f9> to answer"
                               (gemini-companion-test-header proposal)))))))

;;; gemini-companion-header-test.el ends here
