;;; gemini-companion-location-test.el --- Tests of locations in terminals  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-location)
(require 'gemini-companion-terminal)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-location-test-with (&rest body)
  "Run BODY in a project with the terminal of a CLI, an empty buffer.
It is current, displayed, and has the keys of a terminal."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-directory
       '(("app/bill.py" "1\n22\n333\n4444\n") ("app/[id]/page.ts" "a\nb\n")
         ("Makefile" "all:\n") ("@scope/x.js" "1\n")
         ("~/x.py" "1\n"))
     (save-window-excursion
       (delete-other-windows)
       (with-temp-buffer
         (setq default-directory directory
               minor-mode-overriding-map-alist
               (list (cons t gemini-companion-terminal-map)))
         (set-window-buffer nil (current-buffer))
         ,@body))))

(defun gemini-companion-location-test-found ()
  "Return lists (NAME LINE COLUMN), or nil, for the places with a ^.
The marks are removed first."
  (let ((places nil))
    (goto-char (point-min))
    (while (search-forward "^" nil t)
      (delete-char -1)
      (push (point) places))
    (mapcar (lambda (place)
              (pcase (gemini-companion-location--at place)
                ((cl-struct gemini-companion-location file line column)
                 (list (file-relative-name file default-directory) line column))))
            (nreverse places))))

(ert-deftest gemini-companion-location-is-a-file-of-the-project-with-its-line ()
  (gemini-companion-location-test-with
    (pcase-dolist
        (`(,text . ,found)
         '(("Look at ap^p/bill.py:26, and ^not here" ("app/bill.py" 26 nil) nil)
           ("^app/bill.py:26:5: error" ("app/bill.py" 26 5))
           ("(^app/bill.py:3)" ("app/bill.py" 3 nil))
           ("> explain ^@app/bill.py." ("app/bill.py" nil nil))
           ("app/[id]^/page.ts:2" ("app/[id]/page.ts" 2 nil))
           ("│ ✔ Edit ^app/bill.py: 1 => 2 │" ("app/bill.py" nil nil))
           ("^@scope/x.js:1 ./ap^p/bill.py:1"
            ("@scope/x.js" 1 nil) ("app/bill.py" 1 nil))
           ("^~/x.py:1" ("~/x.py" 1 nil))
           ;; Words and other files are none, nor is a directory, or half of a name.
           ("^Makefile ^Makefile:1 ^app/ ^/etc/passwd:1 ^../x.py:2 ^http://a/b.py:1"
            nil ("Makefile" 1 nil) nil nil nil nil)
           ("│ look at app/bi^ │\n│ ll.py:2^6 and │" nil nil)))
      (ert-info (text)
        (erase-buffer)
        (insert text)
        (should (equal found (gemini-companion-location-test-found)))))))

(ert-deftest gemini-companion-location-is-no-file-outside-by-a-link ()
  (gemini-companion-location-test-with
    (make-symbolic-link "/etc/passwd" "app/link.txt")
    (insert "app/link.txt:1")
    (should-not (gemini-companion-location--at 3))))

(ert-deftest gemini-companion-location-is-visited-by-a-key ()
  (gemini-companion-location-test-with
    (let ((terminal (current-buffer))
          (key (lambda () (call-interactively (key-binding (kbd "C-c C-o"))))))
      (insert "Nothing here\n")
      (should-error (funcall key) :type 'user-error)
      (insert "See app/bill.py:3\n> ")
      ;; A frame of tests has no display.
      (cl-letf (((symbol-function 'window-end) (lambda (&rest _) (point-max))))
        (funcall key)
        (should (equal "bill.py" (buffer-name)))
        (should (eq (current-buffer) (window-buffer)))
        (should (= 3 (line-number-at-pos)))
        (should (get-buffer-window terminal))
        ;; The last one is suggested.
        (narrow-to-region 1 3)
        (pop-to-buffer terminal)
        (insert "\nand app/bill.py:4:3\n> ")
        (let (asked)
          (cl-letf (((symbol-function 'completing-read)
                     (lambda (prompt choices &rest _)
                       (setq asked (list prompt (all-completions "" choices)))
                       (caadr asked))))
            (funcall key))
          (should (equal '("Go to (default app/bill.py:4:3): "
                           ("app/bill.py:4:3" "app/bill.py:3"))
                         asked)))
        (should (equal '(4 2) (list (line-number-at-pos) (current-column))))
        ;; At point, nothing is asked.
        (pop-to-buffer terminal)
        (search-backward "py:3")
        (funcall key)
        (should (= 3 (line-number-at-pos))))
      (kill-buffer "bill.py"))))

(ert-deftest gemini-companion-location-is-visited-by-a-click ()
  (gemini-companion-location-test-with
    (let* ((terminal (current-buffer))
           (clicked nil)
           (click (lambda (position)
                    (let ((event `(mouse-1 (,(get-buffer-window terminal) ,position
                                            (0 . 0) 0))))
                      (with-current-buffer terminal
                        (call-interactively (key-binding [mouse-1]) nil
                                            (vector event)))))))
      (insert "See app/bill.py:3 there")
      (use-local-map (make-sparse-keymap))
      (local-set-key [mouse-1] (lambda (event) (interactive "e")
                                 (push (posn-point (event-start event)) clicked)))
      ;; The click of the terminal.
      (funcall click 2)
      (should (equal '(2) clicked))
      (should (eq terminal (window-buffer)))
      (funcall click 8)
      (should (equal '(2) clicked))
      (should (equal "bill.py" (buffer-name (window-buffer))))
      (should (= 3 (with-current-buffer "bill.py" (line-number-at-pos))))
      (kill-buffer "bill.py"))))

;;; gemini-companion-location-test.el ends here
