;;; gemini-companion-windows-beside-test.el --- Tests of windows beside terminals  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-windows-beside)

(ert-deftest gemini-companion-windows-beside-of-what-appears-are-never-the-selected-one ()
  (let ((page (get-buffer-create "*page*"))
        (file (get-buffer-create "*file*"))
        (appear (lambda (page file)
                  (let ((selected (selected-window)))
                    (prog1 (gemini-companion-windows-beside-appear page file)
                      (should (eq selected (selected-window))))))))
    (save-window-excursion
      (delete-other-windows)
      ;; That of the file comes first, however small another one is.
      (let* ((other (split-window nil -12))
             (side (display-buffer-in-side-window
                    (messages-buffer)
                    '((side . left)
                      (window-parameters (no-delete-other-windows . t))))))
        (set-window-buffer other file)
        (split-window other nil 'right)
        (should (eq other (funcall appear page file)))
        (quit-windows-on page)
        ;; None but these.
        (delete-other-windows)
        (set-window-dedicated-p (split-window) t)
        (let ((windows (window-list)))
          (should-not (funcall appear page file))
          (should (equal windows (window-list)))
          (should-not (get-buffer-window page)))
        (delete-window side)))
    (mapc #'kill-buffer (list page file))))

;;; gemini-companion-windows-beside-test.el ends here
