;;; gemini-companion-overview-draw-test.el --- Tests of how rows look  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-overview-test-helper)

(defun gemini-companion-overview-draw-test-line (width row &optional sign)
  "Return the line of ROW for WIDTH columns, as it is displayed, with SIGN."
  (with-temp-buffer
    (insert (gemini-companion-overview-draw-heading row (or sign "") width) "\n")
    (goto-char (point-min))
    (gemini-companion-overview-test-displayed (1+ width))))

(defun gemini-companion-overview-draw-test-contrast (one other)
  "Return the contrast of the colors ONE and OTHER, lists of three components."
  (let ((luminance
         (lambda (color)
           (cl-loop for value in color
                    for weight in '(0.2126 0.7152 0.0722)
                    for part = (/ (float value) 65535)
                    sum (* weight (if (<= part 0.03928)
                                      (/ part 12.92)
                                    (expt (/ (+ part 0.055) 1.055) 2.4)))))))
    (pcase-let ((`(,high ,low) (sort (mapcar luminance (list one other)) #'>)))
      (/ (+ high 0.05) (+ low 0.05)))))

(defun gemini-companion-overview-draw-test-foreground (face)
  "Return the name of the color of FACE on a light background, or nil."
  (let ((attributes
         (seq-some (pcase-lambda (`(,display . ,attributes))
                     (when (or (eq display t)
                               (and (listp display)
                                    (member (assq 'class display) '(nil (class color)))
                                    (member (assq 'background display)
                                            '(nil (background light)))))
                       (if (consp (car attributes)) (car attributes) attributes)))
                   (face-default-spec face))))
    (or (plist-get attributes :foreground)
        (seq-some #'gemini-companion-overview-draw-test-foreground
                  (ensure-list (plist-get attributes :inherit))))))

;; That of `warning' was 2.3.
(ert-deftest gemini-companion-overview-draw-texts-have-contrast ()
  (require 'font-lock)
  (pcase-dolist (`(,face . ,background)
                 '((gemini-companion-comment . (#xfdfd #xf6f6 #xe3e3))
                   (gemini-companion-file-remark . (#xffff #xffff #xffff))
                   (gemini-companion-user-edited . (#xffff #xffff #xffff))))
    (ert-info ((symbol-name face))
      (should (<= 4.5
                  (gemini-companion-overview-draw-test-contrast
                   background
                   (cdr (assoc (downcase (gemini-companion-overview-draw-test-foreground
                                          face))
                               color-name-rgb-alist))))))))

(ert-deftest gemini-companion-overview-draw-leaves-out-what-matters-least ()
  (let* ((turn (gemini-companion-turn-make :prompt "use decimals for money, everywhere"
                                           :began 0 :ended 2))
         (edits (mapcar (lambda (name)
                          (gemini-companion-edit-make
                           :id name :file name :true-name name :turn turn
                           :answer 'rejected :content (gemini-companion-content-make :bytes "x") :after "y"))
                        '("/a" "/b")))
         (row (gemini-companion-overview-row
               :kind 'turn :level 2 :turn turn :edits edits :session
               (gemini-companion-session-make :id "1"))))
    (cl-letf (((symbol-function 'format-time-string) (lambda (&rest _) "12:12  ")))
      (should (string-match-p "everywhere    2 files  2s +reviewed\\'"
                              (gemini-companion-overview-draw-test-line 100 row)))
      (should (string-match-p "everywhere  2 files +reviewed\\'"
                              (gemini-companion-overview-draw-test-line 80 row)))
      (should (string-match-p "12:12  use decimals.* +reviewed\\'"
                              (gemini-companion-overview-draw-test-line 40 row))))
    (dolist (width '(40 60 80 100 200))
      (should (<= (string-width (gemini-companion-overview-draw-test-line width row))
                  width)))))

(ert-deftest gemini-companion-overview-draw-keeps-the-name-of-a-file ()
  (gemini-companion-overview-test-with nil
    (let ((name (concat (make-string 16 ?x) "/" (make-string 8 ?y))))
      (make-directory (file-name-directory name))
      (let* ((edit (gemini-companion-test-open name "x\n" 1 session))
             (row (car (gemini-companion-overview-row-rows
                        (car (gemini-companion-overview-rows directory))))))
        (setf (gemini-companion-edit-review-reason edit) "unsaved changes")
        (dolist (width '(80 100))
          (should (string-search name (gemini-companion-overview-draw-test-line width row))))
        (should (string-search "not auto-accepted: unsaved changes"
                               (gemini-companion-overview-draw-test-line 200 row)))
        ;; Below 60 columns, it is cut in its middle.
        (let ((line (gemini-companion-overview-draw-test-line 45 row)))
          (should (<= (string-width line) 45))
          (should (string-match-p "x\\.\\.\\..*yyyy" line)))
        ;; The warnings of the header line, as the row takes an answer, too.
        (gemini-companion-edit-add-remark edit 'changed)
        (with-current-buffer (find-file-noselect name)
          (insert "mine"))
        (should (string-search "not auto-accepted: unsaved changes in Emacs • file changed \
since the proposal"
                               (replace-regexp-in-string
                                "[,;] \\|  +" " • "
                                (gemini-companion-overview-draw-test-line 300 row))))))))

(ert-deftest gemini-companion-overview-draw-has-names-in-one-column ()
  (cl-flet ((lines (count) (mapconcat (apply-partially #'format "%d\n")
                                      (number-sequence 1 count) "")))
    (gemini-companion-overview-test-with
        `(("a.x" "a\n") ("b.x" ,(lines 600)) ("c.x" ,(lines 6000)) ("d.x" ,(lines 6)))
      (gemini-companion-state-report session 'prompt "Do it")
      (pcase-dolist (`(,name ,count) '(("a.x" 1) ("b.x" 600) ("c.x" 6000) ("d.x" 12345)))
        (gemini-companion-test-writes
         name (replace-regexp-in-string "^\\(.\\)" "x\\1" (lines count)) session))
      (gemini-companion-list)
      (let ((rows (seq-filter (apply-partially #'string-match-p "auto .*[a-d]\\.x")
                              (gemini-companion-overview-test-rendered))))
        (should (equal '("+1 −1" "+600 −600" "+6000 −6000" "+12345 −6")
                       (mapcar (lambda (row)
                                 (string-match "[+][0-9]+ −[0-9]+" row)
                                 (match-string 0 row))
                               rows)))
        (should (equal '(26 26 26 26)
                       (mapcar (apply-partially #'string-match "[a-d]\\.x") rows)))))))

(ert-deftest gemini-companion-overview-draw-names-what-became-of-an-edit ()
  (pcase-dolist (`(,state . ,slots)
                 '(("auto" :answer automatic) ("accepted" :answer accepted)
                   ("edited" :answer accepted :proposed "a" :after "b")
                   ("written" :answer unreviewed)
                   ("written" :answer rejected :file-state written)
                   ("rejected" :answer rejected) ("closed" :answer dismissed)
                   ("accepted" :answer dismissed :file-state written)
                   ("auto" :answer automatic :file-state unwritten)))
    (let ((edit (apply #'gemini-companion-edit-make :file "/a" :true-name "/a" slots)))
      (should (equal state
                     (car (split-string
                           (gemini-companion-overview-draw-test-line
                            200 (gemini-companion-overview-row
                                 :kind 'file :level 3 :path "/a" :file "/a"
                                 :edit edit :edits (list edit)
                                 :session (gemini-companion-session-make :id "1"))))))))))

(ert-deftest gemini-companion-overview-draw-has-one-text-while-others-write ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n4\n5\n6\n7\n"))
    (gemini-companion-overview-test-turns session
      ("First" ("a" "1\n2\n3\n4\n5\n6\nCLI\n")))
    (dolist (write (list (lambda () (delete-file "a"))
                         (lambda () (gemini-companion-test-write "a" "1\n"))))
      (let ((row (car (gemini-companion-overview-row-files
                       (car (gemini-companion-overview-rows directory))))))
        (funcall write)
        (should (string-match-p "CLI" (gemini-companion-overview-draw-body row nil)))
        (should (string-match-p "1 left"
                                (gemini-companion-overview-draw-test-line 80 row)))
        (gemini-companion-test-write "a" "1\n2\n3\n4\n5\n6\nCLI\n")))))

;;; gemini-companion-overview-draw-test.el ends here
