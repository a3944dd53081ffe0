;;; gemini-companion-windows-test.el --- Tests of windows around a review  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-ediff)
(require 'gemini-companion-hunk)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-windows)

(ert-deftest gemini-companion-windows-keeps-each-point-of-a-buffer-in-two-windows ()
  (dolist (from-side '(nil t))
    (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n"))
      (find-file (expand-file-name "a" directory))
      (let ((side (display-buffer-in-side-window (get-buffer "*scratch*")
                                                 '((side . left)))))
        (split-window-right)
        (window-make-atom (window-parent))
        (goto-char 3)
        (when from-side
          (select-window side)
          (set-window-dedicated-p side t)))
      (let ((layout (gemini-companion-test-layout)))
        (gemini-companion-test-show "a" "one\n2\n3\n")
        (should-not (window-parameter (get-buffer-window "*gemini original: a*")
                                      'window-side))
        (gemini-companion-edit-reject)
        (should (equal layout (gemini-companion-test-layout)))
        (select-window (get-buffer-window "a"))
        (let ((ignore-window-parameters t))
          (delete-other-windows)
          (set-window-parameter nil 'window-atom nil))))))

(ert-deftest gemini-companion-windows-of-terminals-follow-the-output ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (with-temp-buffer
      (make-pipe-process :name "terminal" :buffer (current-buffer) :noquery t)
      (let ((window (split-window)))
        (insert "output\n")
        (set-window-buffer window (current-buffer))
        (set-window-point window (point-max))
        (let ((edit (save-current-buffer (gemini-companion-test-show "a" "2\n"))))
          (goto-char (point-max))
          ;; As in eat, the process mark stays where it was.
          (insert "more output\n")
          (gemini-companion-edit-reject edit))
        (should (eq (current-buffer) (window-buffer window)))
        (should (= (point-max) (window-point window)))))))

(ert-deftest gemini-companion-windows-that-the-user-has-changed-stay ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (split-window)
    (gemini-companion-test-show "a" "2\n")
    ;; The user works on: one window of the review is gone.
    (delete-window (get-buffer-window "*gemini original: a*"))
    (select-window (split-window (get-buffer-window "*gemini proposal: a*") nil 'right))
    (switch-to-buffer (get-buffer-create "*other*"))
    (gemini-companion-edit-reject (car (gemini-companion-edits-open)))
    (gemini-companion-test-eventually (not (gemini-companion-edits-ending)))
    (should (equal "*other*" (buffer-name (window-buffer))))
    (should-not (seq-some (lambda (name) (string-search "gemini" name))
                          (gemini-companion-test-window-names)))
    (kill-buffer "*other*")))

(ert-deftest gemini-companion-windows-leaves-another-tab-as-it-is ()
  (gemini-companion-test-with-reviews '(("a" "1\n") ("b" "2\n"))
    (find-file (expand-file-name "a" directory))
    (split-window-right)
    (let ((tab-bar-show nil)
          (diff (gemini-companion-test-show "a" "one\n")))
      (unwind-protect
          (progn
            (tab-bar-new-tab)
            (delete-other-windows)
            (find-file (expand-file-name "b" directory))
            ;; It is begun again, in this tab.
            (gemini-companion-arrival-view diff 'requested)
            (should-not (member "b" (gemini-companion-test-window-names)))
            (gemini-companion-edit-accept diff)
            (should (equal '("b") (gemini-companion-test-window-names))))
        (tab-bar-close-other-tabs)
        ;; Emacs 30 makes a buffer for each killed one in a tab.
        (kill-matching-buffers "\\` \\*Old buffer" t t)))))

(ert-deftest gemini-companion-windows-of-a-failed-review-come-back ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (setq gemini-companion-review-arrival 'notify)
    (split-window-right)
    (let ((buffers (gemini-companion-test-buffers))
          (layout (gemini-companion-test-layout))
          (diff (gemini-companion-test-open "a" "2\n")))
      (cl-letf ((debug-on-error nil) ; as ERT of Emacs 28 binds it
                ((symbol-function 'ediff-unselect-and-select-difference)
                 (lambda (&rest _) (error "Boom"))))
        (should-error (gemini-companion-arrival-view diff 'requested)
                      :type 'user-error))
      (should (equal layout (gemini-companion-test-layout)))
      (gemini-companion-edit-reject diff)
      (should-not (gemini-companion-test-buffers buffers)))))

(defconst gemini-companion-windows-test-layouts
  '(("a" "a")
    ("b" "b")
    ("cli" "cli")
    ("a" (right "a" "cli"))
    ("cli" (right "cli" "a"))
    ("cli" (below "a" "cli"))
    ("a" (below "a" "cli"))
    ("b" (right "b" "a"))
    ("a" (right "b" "a"))
    ("b" (below "a" "b"))
    ("b" (right "a" (below "b" "cli")))
    ("cli" (right "b" (below "a" "cli")))
    ("b" (right (below "a" "b") "cli"))
    ("cli" (right "a" (right "b" "cli")))
    ("a" (right "a" "a"))
    ("cli" (right (right "a" "a") "cli"))
    ("a" (right ("a") "b"))
    ("b" (right ("a") "b"))
    ("cli" (right "a" ("cli")))
    ("cli" (below ("a") ("cli")))
    ("b" (below (right "a" "b") (right "cli" "b"))))
  "Layouts of windows: the selected buffer, and all of them.")

(defun gemini-companion-windows-test-lay-out (layout)
  "Show LAYOUT in the selected window; a is shown from its line 20 on."
  (pcase layout
    (`(,side ,first ,second)
     (let ((other (split-window nil nil side)))
       (gemini-companion-windows-test-lay-out first)
       (with-selected-window other
         (gemini-companion-windows-test-lay-out second))))
    (_
     (switch-to-buffer (car (ensure-list layout)))
     (when (equal "a" (buffer-name))
       (goto-char (gemini-companion-hunk-position 22))
       (recenter 3))
     (set-window-dedicated-p nil (consp layout)))))

(ert-deftest gemini-companion-windows-are-the-same-after-a-review ()
  (let* ((lines (number-sequence 1 100))
         (old (mapconcat #'number-to-string lines "\n"))
         (new (mapconcat #'number-to-string
                         (seq-difference lines '(25 60)) "\n")))
    (gemini-companion-test-with-reviews `(("a" ,old) ("b" "mine\n"))
      (setq gemini-companion-review-arrival 'notify)
      (dolist (name '("a" "b"))
        (find-file-noselect (expand-file-name name directory)))
      (let* ((process (make-process :name "cli" :command '("cat") :noquery t
                                    :buffer (get-buffer-create "cli")))
             (session (gemini-companion-test-session "one" (process-id process))))
        (unwind-protect
            (pcase-dolist (`(,columns ,rows) '((80 24) (120 40) (160 45) (340 70)))
              (set-frame-size nil columns rows)
              (pcase-dolist (`(,selected ,layout)
                             gemini-companion-windows-test-layouts)
                (ert-info ((format "%s, %s in %s" columns selected layout))
                  (delete-other-windows)
                  (gemini-companion-windows-test-lay-out layout)
                  (select-window (get-buffer-window selected))
                  (let ((before (gemini-companion-test-layout))
                        (diff (gemini-companion-test-open "a" new 1 session)))
                    (gemini-companion-arrival-view diff 'requested)
                    (gemini-companion-test-call #'gemini-companion-review-next-hunk)
                    (gemini-companion-test-call #'gemini-companion-review-toggle-hunk)
                    (gemini-companion-test-call #'gemini-companion-edit-reject)
                    (should (equal before (gemini-companion-test-layout))))
                  ;; The file of each rejected edit is watched for a while; with
                  ;; hundreds of edits of one file, that would be most of the work.
                  (gemini-companion-part-stop 'watch))))
          (delete-other-windows)
          (set-window-dedicated-p nil nil)
          (set-frame-size nil 160 45)
          (delete-process process)
          (kill-buffer "cli"))))))

;;; gemini-companion-windows-test.el ends here
