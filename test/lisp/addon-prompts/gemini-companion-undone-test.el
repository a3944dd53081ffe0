;;; gemini-companion-undone-test.el --- Tests of what was undone  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-addon-prompts)
(require 'gemini-companion-comment-send)
(require 'gemini-companion-comment-test-helper)
(require 'gemini-companion-overview-test-helper)
(require 'gemini-companion-undone)

(defun gemini-companion-undone-test-ranges (session)
  "Return the (FIRST . LAST) lines of what was undone of SESSION."
  (mapcar (lambda (undone)
            (cons (gemini-companion-undone-first undone)
                  (gemini-companion-undone-last undone)))
          (gemini-companion-undone-of-session session)))

(defun gemini-companion-undone-test-shown ()
  "Return what `gemini-companion-show-undone' displays, \"\" without anything."
  (condition-case nil
      (progn
        (gemini-companion-show-undone)
        (with-current-buffer "*gemini-companion undone*"
          (prog1 (string-trim-right (buffer-string))
            (kill-buffer))))
    (user-error "")))

(ert-deftest gemini-companion-undone-is-known-until-it-is-there-again ()
  (gemini-companion-comment-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\nfour\nfive\n6\n7\n9\n" session)
    (gemini-companion-turn-page session)
    (gemini-companion-overview-next-sibling)
    (gemini-companion-overview-undo)
    (gemini-companion-overview-undo)
    ;; Removed lines have an end before their beginning.
    (should (equal '((4 . 5) (8 . 7)) (gemini-companion-undone-test-ranges session)))
    (should-not (gemini-companion-undone-of-session
                 (gemini-companion-session-make :id "another" :pid 2)))
    (with-current-buffer "a"
      (undo-boundary)
      (undo))
    (should (equal '((4 . 5)) (gemini-companion-undone-test-ranges session)))))

(ert-deftest gemini-companion-undone-is-told-once-however-often-it-is-undone ()
  (gemini-companion-comment-test-with `(("a" ,gemini-companion-test-lines) ("b" ""))
    (gemini-companion-test-writes "a" "one\n2\n3\nfour\nfive\n6\n7\n9\n" session)
    (gemini-companion-test-writes "new" "x\n" session)
    (gemini-companion-test-answering #'always
      ;; One by one, in the overview.
      (dotimes (_ 3)
        (gemini-companion-turn-page session)
        (goto-char (point-min))
        (search-forward "\none")
        (gemini-companion-overview-undo)
        (should (equal '((1 . 1)) (gemini-companion-undone-test-ranges session)))
        (gemini-companion-decision-undo)
        (should-not (gemini-companion-undone-of-session session)))
      ;; Whole edits.
      (dolist (edit (gemini-companion-edits))
        (dotimes (_ 3)
          (gemini-companion-decision-with "undo"
                                          (gemini-companion-test-undo-edit edit))
          (gemini-companion-decision-undo)
          (should-not (cl-find (gemini-companion-edit-file edit)
                               (gemini-companion-undone-of-session session)
                               :test #'equal :key #'gemini-companion-undone-path)))
        (gemini-companion-decision-redo))
      (should (equal '((1 . 1) (4 . 5) (8 . 7) (nil))
                     (gemini-companion-undone-test-ranges session)))
      (should (= 4 (length (gemini-companion-part-saved 'undone)))))))

(ert-deftest gemini-companion-undone-is-told-to-the-next-cli-if-its-own-has-exited ()
  (gemini-companion-comment-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-turn-page session)
    (gemini-companion-overview-undo)
    (let* ((next (gemini-companion-test-session-like session :id "two" :pid 2))
           (qwen (gemini-companion-test-session-like next :client "qwen")))
      (should-not (gemini-companion-undone-of-session next))
      (gemini-companion-test-set-sessions (list next))
      (should (equal '((1 . 1)) (gemini-companion-undone-test-ranges next)))
      (should-not (gemini-companion-undone-of-session qwen)))))

(ert-deftest gemini-companion-undone-is-forgotten-once-told-and-as-the-mode-ends ()
  (gemini-companion-comment-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\nfour\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-turn-page session)
    (gemini-companion-overview-undo)
    (gemini-companion-overview-undo)
    (gemini-companion-undone-set-sent
     (list (car (gemini-companion-undone-of-session session))) session)
    (should (equal '((4 . 4)) (gemini-companion-undone-test-ranges session)))
    (gemini-companion-part-stop 'undone)
    (should-not (gemini-companion-undone-of-session session))))

;;;; Reports

(defmacro gemini-companion-undone-test-with (files &rest body)
  "Run BODY in a directory with FILES.
There, the function `ask' has the value of what a hook adds to a prompt, or with
an argument, records that the CLI has read that.  The function `undo' undoes
the next change."
  (declare (indent 1) (debug t))
  `(gemini-companion-comment-test-with ,files
     (let ((ask (lambda (&optional read)
                  (funcall gemini-companion-turn-addition-function session read)))
           (undo (lambda ()
                   (gemini-companion-turn-page session)
                   (gemini-companion-test-answering #'always
                     (gemini-companion-overview-undo))))
           ;; Otherwise the overview has no notes.
           (gemini-companion-mode t))
       (ignore ask undo)
       ,@body)))

(ert-deftest gemini-companion-undone-is-added-to-the-next-prompt-once ()
  (gemini-companion-undone-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "new\none\n2\n3\n4\nfive\n6\n7\n8\n9\n" session)
    (should-not (funcall ask))
    (funcall undo)
    (gemini-companion-list)
    (should (string-search "1 undone change to report" (buffer-string)))
    (let ((text (funcall ask)))
      (should (string-match-p "undone these changes of yours" text))
      (should (string-suffix-p "\n\na:1-2" text)))
    ;; It is on its way, also for comments.
    (should-not (funcall ask))
    (should-not (gemini-companion-undone-of-session session))
    (funcall ask 'read)
    (gemini-companion-list)
    (should (string-match-p "undone changes reported [0-9:]+$" (buffer-string)))
    ;; It is no warning.
    (let ((text (buffer-string)))
      (should (eq 'shadow (get-text-property (string-match "undone changes reported" text)
                                             'face text))))
    (should-not (funcall ask))
    (gemini-companion-list)
    (should-not (string-search "undone changes reported" (buffer-string)))))

(ert-deftest gemini-companion-undone-says-that-the-text-is-not-saved ()
  (gemini-companion-undone-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "new\none\n2\n3\n4\nfive\n6\n7\n8\n9\n" session)
    (with-current-buffer (find-file-noselect "a")
      (goto-char (point-max))
      (insert "mine\n"))
    (funcall undo)
    (should (string-suffix-p "\n\na:1-2 (not saved)" (funcall ask)))
    (with-current-buffer (find-file-noselect "a")
      (set-buffer-modified-p nil))))

(ert-deftest gemini-companion-undone-reports-the-files-of-a-command ()
  (gemini-companion-test-needs-add-on 'tools)
  (skip-unless (executable-find "git"))
  (gemini-companion-undone-test-with '(("a" "1\n") ("b" "2\n"))
    (gemini-companion-overview-test-unmarked
     session "black ." '("a" "b") "new\n")
    (gemini-companion-overview-test-with-store
      (gemini-companion-decision-with "undo of 2 files"
        (gemini-companion-test-undo-edit (car (gemini-companion-edits))))
      (gemini-companion-test-eventually said)
      (should (equal "1\n" (gemini-companion-test-file-text "a")))
      (should (gemini-companion-undone-of-session session))
      (gemini-companion-decision-undo)
      (gemini-companion-test-eventually (nth 1 said))
      (should-not (gemini-companion-undone-of-session session))
      (gemini-companion-text-write "a" "mine\n")
      (gemini-companion-decision-redo)
      (gemini-companion-test-eventually (nth 2 said))
      (should (string-suffix-p "\n\n1 of 2 files that `black .' had written"
                               (funcall ask)))
      (funcall ask t)
      (should-not (funcall ask)))))

(ert-deftest gemini-companion-undone-is-added-again-if-no-cli-has-read-it ()
  (gemini-companion-undone-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (funcall undo)
    (let* ((gemini-companion-undone-reading-seconds 0.01)
           (text (funcall ask)))
      (should text)
      (gemini-companion-test-eventually (equal text (funcall ask))))))

(ert-deftest gemini-companion-undone-is-taken-by-the-first-that-sends-it ()
  (gemini-companion-undone-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (funcall undo)
    (gemini-companion-comment-opening-set session "Good.")
    (let (during)
      (cl-letf (((symbol-function 'gemini-companion-compose-deliver)
                 (lambda (_text _session _file done)
                   (setq during (funcall ask))
                   (funcall done nil))))
        (gemini-companion-send-comments session))
      (should-not during)
      ;; The CLI has not taken the prompt.
      (should (funcall ask)))))

(ert-deftest gemini-companion-undone-adds-nothing-that-is-not-shared ()
  (gemini-companion-undone-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (funcall undo)
    (let ((gemini-companion-report-undone nil))
      (should-not (funcall ask)))
    (let ((gemini-companion-context-paused t))
      (should-not (funcall ask)))
    (let ((gemini-companion-excluded '("/a\\'")))
      (gemini-companion-privacy-refresh)
      (should-not (funcall ask)))
    (gemini-companion-privacy-refresh)))

(ert-deftest gemini-companion-undone-names-shared-files-alone ()
  (gemini-companion-undone-test-with
      (mapcar (lambda (name) (list name (concat "SECRET of " name "\n2\n")))
              '("p/a" "p/.env" "out" "q/b"))
    (let ((session (gemini-companion-test-session-like
                    session :directory (expand-file-name "p")))
          (names (lambda ()
                   (cdr (split-string (gemini-companion-undone-test-shown) "\n+")))))
      (gemini-companion-test-set-sessions (list session))
      (dolist (name '("p/a" "p/.env" "out" "q/b"))
        (let ((edit (gemini-companion-test-writes name "1\n2\n" session)))
          (gemini-companion-decision-with "undo"
            (gemini-companion-test-undo-edit edit))))
      (should-not (string-search "SECRET" (gemini-companion-undone-test-shown)))
      (should (equal '("a:1") (cdr (funcall names))))
      (let ((gemini-companion-share-outside-projects t))
        (should (equal '("a:1" "../out:1" "../q/b:1") (cdr (funcall names)))))
      ;; A project that is open.
      (let ((gemini-companion-roots-last (list (expand-file-name "q"))))
        (should (equal '("a:1" "../q/b:1") (cdr (funcall names))))))))

(ert-deftest gemini-companion-undone-is-added-for-a-known-process-that-is-not-connected ()
  (gemini-companion-undone-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (funcall undo)
    (gemini-companion-test-set-sessions nil)
    (cl-flet ((ask (pids &optional read)
                (funcall gemini-companion-turn-addition-function pids read)))
      (should-not (ask nil))
      (should-not (ask '(100 200)))
      (should (string-suffix-p "\na:1" (ask '(100 1 200))))
      (should-not (ask '(100 1 200)))
      (ask '(100 1 200) 'read)
      (should-not (gemini-companion-undone-of-session session)))))

(ert-deftest gemini-companion-undone-has-at-most-50-rows-also-in-the-next-emacs ()
  (gemini-companion-undone-test-with
      `(("a" ,(mapconcat (lambda (n) (format "%d\n" n)) (number-sequence 1 104) "")))
    (gemini-companion-test-writes
     "a" (mapconcat (lambda (n) (if (cl-evenp n) (format "%d\n" n) "new\n"))
                    (number-sequence 1 104) "")
     session)
    (gemini-companion-decision-with "undo"
      (gemini-companion-test-undo-edit (car (gemini-companion-edits))))
    (let ((text (gemini-companion-undone-test-shown)))
      (should (string-match-p "\n\na:1\na:3\n" text))
      (should (string-suffix-p "\na:99\nand 2 more" text))
      (let ((items (gemini-companion-part-saved 'undone)))
        (gemini-companion-part-stop 'undone)
        (gemini-companion-part-restore 'undone items))
      (should (equal text (gemini-companion-undone-test-shown))))))

(ert-deftest gemini-companion-undone-is-displayed-before-it-is-reported ()
  (gemini-companion-undone-test-with `(("a" ,gemini-companion-test-lines))
    (should (equal "" (gemini-companion-undone-test-shown)))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (funcall undo)
    (let ((shown (gemini-companion-undone-test-shown)))
      (should (string-suffix-p (gemini-companion-undone-addition session nil) shown)))))

(provide 'gemini-companion-undone-test)
;;; gemini-companion-undone-test.el ends here
