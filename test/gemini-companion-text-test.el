;;; gemini-companion-text-test.el --- Tests of texts in files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-test-helper)
(require 'gemini-companion-text)

(ert-deftest gemini-companion-text-is-the-same-when-it-comes-back ()
  (gemini-companion-test-with-directory '()
    (dolist (text (list "" "a\r\nb\rc\n" "\uFEFFé\0\u2028"
                        (string ?a #x3FFFE9 ?b)
                        "Content-Type: text/enriched\n\n<bold>b</bold>"))
      (dolist (file '("plain" "packed.gz"))
        (with-temp-buffer
          (insert "hidden\n" text)
          (narrow-to-region 1 2)
          (setq buffer-file-format '(text/enriched))
          (let ((after-insert-file-functions (list (lambda (_) (erase-buffer) 0)))
                (write-region-annotate-functions
                 (list (lambda (&rest _) '((1 . "more"))))))
            (gemini-companion-text-write file)
            (with-temp-buffer
                                                  (gemini-companion-text-insert-file file)
              (should (equal (concat "hidden\n" text) (buffer-string)))
              (should (= (point) (point-min))))))))))

;;;; Replacing

(defun gemini-companion-text-test-edited (lines)
  "Return LINES, which are unique, changed at random."
  (mapcan (lambda (line)
            (pcase (random 8)
              (0 nil)
              (1 (list (concat (substring line 0 2) "é")))
              (2 (list (format "new %d" (random)) line))
              (_ (list line))))
          lines))

(defun gemini-companion-text-test-text (lines)
  "Return a text of LINES, with or without a newline at its end."
  (concat (string-join lines "\n")
          (and lines (zerop (random 2)) "\n")))

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
  (let ((seed (or (getenv "GC_SEED") (format "%s" (random)))))
    (random seed)
    (ert-info ((format "GC_SEED=%s" seed))
      (dotimes (_ 100)
        (with-temp-buffer
          (buffer-enable-undo)
          (let* ((lines (mapcar (lambda (number) (format "%d line" number))
                                (number-sequence 1 (random 30))))
                 (before (gemini-companion-text-test-text lines))
                 (edited (gemini-companion-text-test-edited lines))
                 (after (gemini-companion-text-test-text edited))
                 (diff-command (if (zerop (random 4)) "no-such" diff-command))
                 marks places)
            (insert before)
            (undo-boundary)
            (setq marks (gemini-companion-text-test-marks))
            (narrow-to-region (point-min) (1+ (/ (point-max) 2)))
            (setq places (gemini-companion-text-replace after))
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
              (primitive-undo 1 (cdr buffer-undo-list))
              (should (equal before (buffer-string))))))))))

(ert-deftest gemini-companion-text-is-replaced-at-many-places-at-once ()
  (with-temp-buffer
    (let* ((calls 0)
           (numbers (number-sequence 1 100000))
           (line (apply-partially #'format "line %d with words\n")))
      (insert (mapconcat line numbers ""))
      (add-hook 'after-change-functions (lambda (&rest _) (cl-incf calls)) nil t)
      (should
       (= 20000
          (length (gemini-companion-text-replace
                   (mapconcat (lambda (number)
                                (concat (when (zerop (% number 5))
                                          (format "%d is new\n" number))
                                        (funcall line number)))
                              numbers "")))))
      (should (= 1 calls)))))

(ert-deftest gemini-companion-text-is-replaced-whatever-change-hooks-do ()
  (dolist (hook '(before-change-functions after-change-functions))
    (dolist (harm (list (lambda (_) (signal 'quit nil))
                        (lambda (_) (error "Boom"))
                        (lambda (_) (throw 'gemini-companion-test nil))
                        #'set-buffer
                        (lambda (other) (set-buffer other) (error "Boom"))
                        (lambda (_) (narrow-to-region 1 2))
                        (lambda (_) (delete-region 1 3))))
      (dolist (local '(t nil))
        (ert-info ((format "%s %S %s" hook harm local))
          (let ((other (generate-new-buffer "other"))
                (new "1\nzwei\n3\n4\nmore\nfünf")
                (inhibit-message t)
                calls)
            (with-temp-buffer
              (insert "1\n2\n3\n4\n5")
              (buffer-enable-undo)
              (let* ((target (current-buffer))
                     (bad (lambda (&rest _)
                            (when (eq target (current-buffer))
                              (funcall harm other))))
                     (good (lambda (&rest _)
                             (when (eq target (current-buffer))
                               (push hook calls)))))
                (unwind-protect
                    (progn
                      (add-hook hook bad nil local)
                      (add-hook hook good t local)
                      (should (catch 'gemini-companion-test
                                (gemini-companion-text-replace new)
                                t)))
                  (remove-hook hook bad local)
                  (remove-hook hook good local))
                (should (eq target (current-buffer)))
                (should (equal new (buffer-string)))
                (should (equal (list hook) calls))
                (should (zerop (buffer-size other)))))
            (kill-buffer other)))))))

;;;; Names

;; Where case counts, a link is what a volume that ignores case has.

(ert-deftest gemini-companion-text-knows-a-file-in-spite-of-case ()
  (gemini-companion-test-with-directory nil
    (make-directory "Other")
    (make-symbolic-link "Project" "project")
    (gemini-companion-test-write "Project/a" "")
    (gemini-companion-test-write "other/a" "")
    (pcase-dolist (`(,a ,b ,same)
                   '(("Project/a" "Project/a" t) ("Project/a" "project/a" t)
                     ("other/a" "Other/a" nil) ("other/a" "Project/a" nil)
                     ("new" "new" t) ("new" "New" nil)))
      (ert-info (b)
        (should (eq same (and (gemini-companion-text-same-file-p
                               (expand-file-name a) (expand-file-name b))
                              t)))))
    (pcase-dolist (`(,file ,directory ,inside)
                   '(("Project/a" "Project" t) ("Project/a" "project" t)
                     ("project/" "Project" t) ("Project/new" "project" t)
                     ("other/a" "Other" nil) ("Projects/a" "Project" nil)
                     ("Project/a" "other" nil)))
      (ert-info (file)
        (should (eq inside (and (gemini-companion-text-in-directory-p
                                 (expand-file-name file)
                                 (expand-file-name directory))
                                t)))))))

(ert-deftest gemini-companion-text-reads-no-pipe-and-no-device ()
  (gemini-companion-test-with-directory '(("a" "text"))
    (call-process "mkfifo" nil nil nil "pipe")
    (make-symbolic-link "/dev/zero" "zero")
    (make-symbolic-link "loop" "loop")
    (make-symbolic-link "a" "link")
    (make-symbolic-link "new" "dangling")
    (dolist (file '("a" "link" "new" "dangling"))
      (should-not (gemini-companion-text-unreadable-reason
                   (expand-file-name file))))
    (should (equal "text" (gemini-companion-text-read "link")))
    (dolist (file '("pipe" "zero" "loop" "." "/dev/tty"
                    "/ssh:nowhere.invalid:/x"))
      (should (stringp (gemini-companion-text-unreadable-reason
                        (expand-file-name file)))))
    (dolist (file '("pipe" "zero" "loop" "." "/dev/tty" "new"))
      (should-error (gemini-companion-text-read file) :type 'file-error))
    ;; The superuser may open it; to read it does not end.
    (should (equal "" (condition-case nil
                          (gemini-companion-text-read "/proc/kmsg")
                        (file-error ""))))))

(ert-deftest gemini-companion-text-is-read-as-utf-8 ()
  (gemini-companion-test-with-directory '()
    (dolist (piece '("\r\n" "\0" "\177" "\200" "\277" "\300\200" "\301\277"
                     "\303\251" "\340\200\200" "\340\240\200" "\342\200"
                     "\355\237\277" "\355\240\200" "\360\217\277\277"
                     "\360\237\230\200" "\364\217\277\277"
                     "\364\220\200\200" "\370\210\200\200\200" "\376" "\377"))
      (dolist (bytes (list piece (concat "a" piece) (concat piece "a")
                           (concat "\303\251" piece "\303\251")
                           (concat piece piece "\n")))
        (ert-info ((format "%S" bytes))
          (let ((coding-system-for-write 'no-conversion))
            (write-region bytes nil "bytes" nil 'silent))
          (with-temp-buffer
                                                        (should (= (length bytes) (gemini-companion-text-insert-file "bytes")))
            (should (equal (decode-coding-string bytes 'utf-8-unix)
                           (buffer-string)))
            (gemini-companion-text-write "again")
            (should (equal (encode-coding-string (buffer-string)
                                                 'utf-8-emacs-unix)
                           (with-temp-buffer
                             (set-buffer-multibyte nil)
                             (insert-file-contents-literally "again")
                             (buffer-string))))))))))

(ert-deftest gemini-companion-page-keeps-point-and-mark-at-their-lines ()
  (with-temp-buffer
    (pcase-dolist (`(,text ,place)
                   `(("a\nsame\nb\nsame\nrest\nrest\n" "b\nsa|me\n")
                     ("new\na\nmore\nsame\nb\nsame\nrest\nrest\n" "b\nsa|me\n")
                     ("a\nsame\nb\nsafe\nmore\n" "b\nsa|fe\n")
                     (,(propertize "a\nsame\nb\n" 'face 'bold) "b\n|")
                     ("a\n" "a\n|")))
      (gemini-companion-page-replace text)
      (when (= 1 (point))
        (search-forward "b\nsa")
        (set-mark (point)))
      (should (equal-including-properties text (buffer-string)))
      (save-excursion
        (insert "|")
        (should (string-search place (buffer-string)))
        (delete-char -1)
        (should (= (point) (mark t)))))))

;;; gemini-companion-text-test.el ends here
