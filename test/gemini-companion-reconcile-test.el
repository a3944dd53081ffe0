;;; gemini-companion-reconcile-test.el --- Tests of buffers of written files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Real files, written by something that is not the buffer.

;;; Code:

(require 'gemini-companion-reconcile)
(require 'gemini-companion-test-helper)
(require 'seq)

(defun gemini-companion-reconcile-test-write (file text &optional append)
  "Write TEXT to FILE as another program would, at another time.
APPEND non-nil means after what it holds."
  (call-process-region text nil "sh" nil nil nil "-c"
                       (if append "cat >>\"$0\"" "cat >\"$0\"") file)
  (unless append
    (set-file-times file (time-add nil 5))))

(ert-deftest gemini-companion-reconcile-reverts-a-clean-buffer-in-place ()
  (gemini-companion-test-with-folder '(("a" "one\ntwo\nthree\n"))
    (let ((file (expand-file-name "a" folder)))
      (with-current-buffer (find-file-noselect file)
        (goto-char (point-min))
        (search-forward "thr")
        (let ((marker (copy-marker (point))))
          (gemini-companion-reconcile-expect file)
          (gemini-companion-reconcile-test-write file "zero\none\ntwo\nthree\n")
          (gemini-companion-test-eventually
            (equal "zero\none\ntwo\nthree\n" (buffer-string)))
          (should (looking-at-p "ee"))
          (should (equal (point) (marker-position marker)))
          (should-not (buffer-modified-p))
          (should (verify-visited-file-modtime (current-buffer)))
          (gemini-companion-test-eventually
            (gemini-companion-reconcile-idle-p))
          (should-not (assq 'pre-command-hook
                            (gemini-companion-test-hooks))))))))

(ert-deftest gemini-companion-reconcile-knows-a-buffer-that-is-equal ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (let ((file (expand-file-name "a" folder)))
      (with-current-buffer (find-file-noselect file)
        (goto-char (point-max))
        (insert "two\n")
        (gemini-companion-reconcile-expect file)
        (gemini-companion-reconcile-test-write file "one\ntwo\n")
        (gemini-companion-test-eventually (not (buffer-modified-p)))
        (should (verify-visited-file-modtime (current-buffer)))))))

(ert-deftest gemini-companion-reconcile-reads-nothing-but-files ()
  (gemini-companion-test-with-folder '(("a" "one\n") ("loop" ""))
    (dolist (name '("a" "loop"))
      (let ((file (expand-file-name name folder)))
        (with-current-buffer (find-file-noselect file)
          (delete-file file)
          (if (equal name "loop")
              (make-symbolic-link file file)
            (call-process "mkfifo" nil nil nil file))
          (let ((text (buffer-string)))
            (gemini-companion-reconcile-expect file)
            (gemini-companion-reconcile file)
            (should (equal text (buffer-string)))
            (should-error (gemini-companion-merge) :type 'user-error)
            (gemini-companion-reconcile-stop)))))))

(ert-deftest gemini-companion-reconcile-takes-the-coding-of-the-new-text ()
  (gemini-companion-test-with-folder '()
    (let ((file (expand-file-name "a" folder)))
      (let ((coding-system-for-write 'latin-1))
        (write-region "caf\u00e9\n" nil file nil 'silent))
      (with-current-buffer (find-file-noselect file)
        (gemini-companion-reconcile-expect file)
        (gemini-companion-reconcile-test-write file "th\u00e9\n")
        (gemini-companion-test-eventually
          (equal "th\u00e9\n" (buffer-string)))
        (should (eq 'utf-8 (coding-system-type buffer-file-coding-system)))))))

(ert-deftest gemini-companion-reconcile-leaves-a-buffer-read-only ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (let ((file (expand-file-name "a" folder)))
      (with-current-buffer (find-file-noselect file)
        (read-only-mode)
        (gemini-companion-reconcile-expect file)
        (gemini-companion-reconcile-test-write file "two\n")
        (gemini-companion-test-eventually (equal "two\n" (buffer-string)))
        (should buffer-read-only)))))

(ert-deftest gemini-companion-reconcile-leaves-unsaved-text-alone ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (let ((file (expand-file-name "a" folder)))
      (with-current-buffer (find-file-noselect file)
        (insert "mine\n")
        (gemini-companion-reconcile-expect file)
        (gemini-companion-reconcile-test-write file "theirs\n")
        (gemini-companion-test-eventually
          (gemini-companion-reconcile-idle-p))
        (should (equal "mine\none\n" (buffer-string)))
        (should (buffer-modified-p))))))

(ert-deftest gemini-companion-reconcile-comes-before-the-next-command ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (let ((file (expand-file-name "a" folder)))
      (with-current-buffer (find-file-noselect file)
        (gemini-companion-reconcile-expect file)
        (gemini-companion-reconcile-test-write file "two\n")
        (run-hooks 'pre-command-hook)
        (should (equal "two\n" (buffer-string)))
        (should (verify-visited-file-modtime (current-buffer)))))))

(ert-deftest gemini-companion-reconcile-waits-for-the-rest-of-a-large-file ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (let ((file (expand-file-name "a" folder))
          (half (make-string 100000 ?x)))
      (with-current-buffer (find-file-noselect file)
        (gemini-companion-reconcile-expect file)
        (gemini-companion-reconcile-test-write file half)
        (run-hooks 'pre-command-hook)
        (should (equal "one\n" (buffer-string)))
        (gemini-companion-reconcile-test-write file half t)
        (gemini-companion-test-eventually
          (equal (concat half half) (buffer-string)))))))

(ert-deftest gemini-companion-reconcile-finds-a-buffer-by-another-name ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (make-symbolic-link "a" "link")
    (make-symbolic-link "." "here")
    (dolist (name '("link" "here/a"))
      (with-current-buffer (find-file-noselect (expand-file-name "a"))
        (gemini-companion-reconcile-expect (expand-file-name name))
        (gemini-companion-reconcile-test-write (expand-file-name "a") name)
        (gemini-companion-test-eventually (equal name (buffer-string)))))))

(ert-deftest gemini-companion-reconcile-stops-what-could-not-begin ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (let ((file (expand-file-name "a")))
      (with-current-buffer (find-file-noselect file)
        (delete-file file)
        (make-directory file)
        (ignore-errors (gemini-companion-reconcile-expect file))
        (gemini-companion-reconcile-stop)
        (should (gemini-companion-reconcile-idle-p))))))

(ert-deftest gemini-companion-reconcile-stop-ends-the-watch ()
  (gemini-companion-test-with-folder '(("a" "one\n"))
    (let ((timers (length timer-list)))
      (gemini-companion-reconcile-expect (expand-file-name "a" folder))
      (gemini-companion-reconcile-expect (expand-file-name "b" folder))
      (gemini-companion-reconcile-stop)
      (should (gemini-companion-reconcile-idle-p))
      (should (equal timers (length timer-list))))))

(defun gemini-companion-reconcile-test-highlighted (old new)
  "Return the texts that are highlighted once NEW is written in place of OLD."
  (gemini-companion-test-with-folder `(("a" ,old))
    (let ((file (expand-file-name "a" folder))
          (gemini-companion-after-write 'pulse)
          (inhibit-message t))
      (with-current-buffer (find-file-noselect file)
        (unwind-protect
            (progn
              (gemini-companion-reconcile-expect file)
              (gemini-companion-reconcile-test-write file new)
              (gemini-companion-test-eventually (equal new (buffer-string)))
              (should-not (text-property-not-all
                           (point-min) (point-max) 'gemini-companion-line nil))
              (should-not (buffer-modified-p))
              (mapcar (lambda (overlay)
                        (buffer-substring-no-properties
                         (overlay-start overlay) (overlay-end overlay)))
                      (sort (overlays-in (point-min) (point-max))
                            (lambda (a b)
                              (< (overlay-start a) (overlay-start b))))))
          (gemini-companion-reconcile-stop)
          (should-not (overlays-in (point-min) (point-max)))
          (should-not (gemini-companion-test-timers)))))))

(ert-deftest gemini-companion-reconcile-highlights-what-changed ()
  (pcase-dolist (`(,new . ,expected)
                 '(("1\nzwei\n3\n4\n5\n" "zwei\n")
                   ("0\n1\n2\n3\n4\nfive\n" "0\n" "five\n")
                   ("1\n4\n5\n" "4\n")
                   ("1\n2\n3\n4\n5\n6" "6")))
    (should (equal expected
                   (seq-uniq (gemini-companion-reconcile-test-highlighted
                              "1\n2\n3\n4\n5\n" new))))))

(ert-deftest gemini-companion-reconcile-shows-the-buffer-and-selects-it-not ()
  (gemini-companion-test-with-folder '(("a" "1\n2\n3\n"))
    (let* ((file (expand-file-name "a" folder))
           (buffer (find-file-noselect file))
           (gemini-companion-after-write 'show))
      (delete-other-windows)
      (switch-to-buffer "*scratch*")
      (gemini-companion-reconcile-expect file)
      (gemini-companion-reconcile-test-write file "1\n2\ndrei\n")
      (gemini-companion-test-eventually (get-buffer-window buffer))
      (should (equal "*scratch*" (buffer-name (window-buffer))))
      (should (equal 5 (window-point (get-buffer-window buffer))))
      (gemini-companion-reconcile-stop)
      (delete-other-windows))))

(defun gemini-companion-reconcile-test-merge (old mine theirs)
  "Return the merge of MINE and THEIRS, which both were OLD.
The value is a list of the text, and whether it is to be saved."
  (gemini-companion-test-with-folder `(("a" ,old))
    (let ((file (expand-file-name "a" folder))
          (inhibit-message t))
      (with-current-buffer (find-file-noselect file)
        (should-error (gemini-companion-merge) :type 'user-error)
        (erase-buffer)
        (insert mine)
        (gemini-companion-reconcile-expect file)
        (gemini-companion-reconcile-test-write file theirs)
        (gemini-companion-test-eventually
          (gemini-companion-reconcile-idle-p))
        (should (equal mine (buffer-string)))
        (gemini-companion-merge)
        (should (verify-visited-file-modtime))
        (should-error (gemini-companion-merge) :type 'user-error)
        (list (buffer-substring-no-properties (point-min) (point-max))
              (buffer-modified-p))))))

(ert-deftest gemini-companion-reconcile-merges-unsaved-text-on-request ()
  (should (equal '("mine\n2\n3\n4\ntheirs\n" t)
                 (gemini-companion-reconcile-test-merge
                  "1\n2\n3\n4\n5\n" "mine\n2\n3\n4\n5\n"
                  "1\n2\n3\n4\ntheirs\n")))
  (should (equal '("<<<<<<< unsaved\nmine\n||||||| before\n1\n=======\ntheirs\n\
>>>>>>> Gemini CLI\n" t)
                 (gemini-companion-reconcile-test-merge
                  "1\n" "mine\n" "theirs\n"))))

;;; gemini-companion-reconcile-test.el ends here
