;;; gemini-companion-walk-test.el --- Tests of going from change to change  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-walk)

(defun gemini-companion-walk-test-line ()
  "Return the line of point in the selected window."
  (with-current-buffer (window-buffer)
    (line-number-at-pos nil 'absolute)))

(defun gemini-companion-walk-test-shown ()
  "Return what is displayed of the text before a change, or nil."
  (with-current-buffer (window-buffer)
    (seq-some (lambda (overlay)
                (and (eq 'gemini-companion-added (overlay-get overlay 'face))
                     (overlay-get overlay 'before-string)))
              (overlays-in (point-min) (point-max)))))

(ert-deftest gemini-companion-walk-goes-through-the-files-as-they-were-written ()
  (gemini-companion-test-with-changes
      `(("a" ,gemini-companion-test-lines) ("b" "B\n")
        ("c" ,gemini-companion-test-lines))
    (should-error (gemini-companion-next-change) :type 'user-error)
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-writes "b" "C\n" session)
    (gemini-companion-test-writes "c" "1\n2\n3\n4\nfive\n6\n7\n8\n9\n" session)
    (gemini-companion-test-writes "new" "x\ny\n" session)
    ;; A later write of the first file does not move it.
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nNINE\n" session)
    (should (eql 5 (gemini-companion-test-left)))
    (delete-file "b")
    (run-hook-with-args 'gemini-companion-state-functions session 'ready)
    (should (eql 4 (gemini-companion-test-left)))
    (pcase-dolist (`(,key ,said ,line)
                   '((gemini-companion-next-change "1 of 4, a +1 −1" 1)
                     ("n" "2 of 4, a +1 −1" 9) ("n" "3 of 4, c +1 −1" 5)
                     ("n" "4 of 4, new +2 −0" 1) ("p" "3 of 4, c +1 −1" 5)
                     ("p" "2 of 4, a +1 −1" 9) ("p" "1 of 4, a +1 −1" 1)
                     ("p" "4 of 4, new +2 −0" 1) ("n" "1 of 4, a +1 −1" 1)))
      (should (string-prefix-p (concat "Change " said)
                               (gemini-companion-test-walk key)))
      (should (equal line (gemini-companion-walk-test-line))))
    (gemini-companion-test-walk "n" "n")
    ;; Undoing and keeping all of a file lead to the next one.
    (should (string-prefix-p "Undid 1 change of c; Change 3 of 3, new"
                             (gemini-companion-test-walk "U")))
    (with-current-buffer "c"
      (undo)
      (ert-run-idle-timers))
    (gemini-companion-test-walk "n")
    (should (string-prefix-p "Kept 2 changes; Change 1 of 2, c"
                             (gemini-companion-test-walk "K")))
    (should-not (gemini-companion-test-marked "a"))
    (gemini-companion-test-write "b" "C\n")
    (run-hook-with-args 'gemini-companion-state-functions session 'ready)
    ;; The change of b is there again.
    (gemini-companion-test-walk "p")
    (should (equal "b" (buffer-name (window-buffer))))
    (gemini-companion-test-walk "p")
    (should (equal "new" (buffer-name (window-buffer))))
    ;; In its question, n is an answer.
    (should (equal "Not undone"
                   (gemini-companion-test-refusal
                     (execute-kbd-macro (kbd "u n RET C-]")))))
    (ert-with-message-capture shown
      (execute-kbd-macro (kbd "u y RET"))
      (should (string-search "Deleted new; Change 1 of" shown)))
    (should-not (file-exists-p "new"))))

;; It was to be deleted by hand: the last edit had another text, or the old name.
(ert-deftest gemini-companion-walk-deletes-a-new-file-as-its-first-edit-made-it ()
  (dolist (how '(undone renamed))
    (ert-info ((format "%s" how))
      (gemini-companion-test-with-changes nil
        (gemini-companion-test-writes "new" "1\n" session)
        (find-file "new")
        (pcase how
          ('undone
           (gemini-companion-test-undo-edit
            (gemini-companion-test-writes "new" "1\n2\n" session))
           (should (equal "1\n" (gemini-companion-test-file-text "new"))))
          ('renamed
           (rename-file "new" "other")
           (set-visited-file-name (expand-file-name "other") t t)
           (set-buffer-modified-p nil)))
        (gemini-companion-test-answering #'always
          (should (string-prefix-p
                   "Deleted " (gemini-companion-test-walk
                               'gemini-companion-next-change "u"))))
        (should-not (directory-files directory nil "new\\|other"))))))

(ert-deftest gemini-companion-walk-undoes-and-keeps-one-change-after-the-other ()
  (gemini-companion-test-in-changed "one\n2\n3\nmore\n4\nfive\n6\n7\n9\n"
    (should (string-prefix-p "Change 1 of 4, a +1 −1"
                             (gemini-companion-test-walk 'gemini-companion-next-change)))
    (should (string-prefix-p "Undid 1 change of a; Change 1 of 3, a +1 −0"
                             (gemini-companion-test-walk "u")))
    (should (equal 4 (gemini-companion-walk-test-line)))
    (should (string-prefix-p "Kept 1 change; Change 1 of 2, a +1 −1"
                             (gemini-companion-test-walk "k")))
    (should (equal "1\n2\n3\nmore\n4\nfive\n6\n7\n9\n" (buffer-string)))
    (should-not (buffer-modified-p))
    (should (equal "1\n2\n3\nmore\n4\nfive\n6\n7\n9\n"
                   (gemini-companion-test-file-text "a")))
    (should (string-prefix-p "Undid 1 change of a; Change 1 of 1, a +0 −1"
                             (gemini-companion-test-walk "u")))
    (should (equal "Undid 1 change of a; no changes are left"
                   (gemini-companion-test-walk "u")))
    (should (equal "1\n2\n3\nmore\n4\n5\n6\n7\n8\n9\n" (buffer-string)))
    (should-not (gemini-companion-test-left))
    ;; Undo brings one after the other back.
    (dolist (left '(1 2 3 4))
      (let ((last-command (if (= left 1) 'ignore 'undo)))
        (undo-boundary)
        (undo)
        (run-hooks 'post-command-hook))
      (ert-run-idle-timers)
      (should (eql left (gemini-companion-test-left))))
    (should (equal "one\n2\n3\nmore\n4\nfive\n6\n7\n9\n" (buffer-string)))
    (should-not (buffer-modified-p))))

;; What has not changed is not compared, nor drawn again.
(ert-deftest gemini-companion-walk-computes-and-draws-once-per-key ()
  (gemini-companion-test-with-changes
      `(("a" ,gemini-companion-test-lines) ("b" ,gemini-companion-test-lines))
    (find-file "a")
    (buffer-enable-undo)
    (cl-flet ((counts (key)
                (gemini-companion-test-counts
                 (lambda () (gemini-companion-test-walk key)))))
      (should (equal '(1 1 1)
                     (gemini-companion-test-counts
                      (lambda ()
                        (gemini-companion-test-writes
                         "a" "one\n2\nthree\n4\nfive\n6\nseven\n8\nnine\n" session)))))
      (gemini-companion-test-writes "b" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
      (gemini-companion-test-walk #'gemini-companion-next-change)
      (pcase-dolist (`(,key ,count)
                     '(("n" 0) ("p" 0) ("u" 1) ("k" 1)
                       (gemini-companion-restore-change 1)
                       (gemini-companion-restore-change 1)
                       ("n" 0)
                       ;; Once for each file.
                       ("U" 2)))
        (ert-info ((format "%s" key))
          (should (equal (make-list 3 count) (counts key))))))))

(ert-deftest gemini-companion-walk-keeps-and-undoes-a-turn-with-a-prefix ()
  (gemini-companion-test-with-changes
      `(("a" ,gemini-companion-test-lines) ("b" ,gemini-companion-test-lines))
    (find-file "a")
    (gemini-companion-state-report session 'prompt "First")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-test-writes "b" "1\n2\n3\nfour\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-state-report session 'end nil)
    (gemini-companion-state-report session 'prompt "Second")
    ;; The second turn writes two lines of the first one again, and one of its own.
    (gemini-companion-test-writes "b" "1\n2\n3\nfour\n5!\n6\n7\n8\nnine\n" session)
    (should (eql 3 (gemini-companion-test-left)))
    (gemini-companion-test-walk 'gemini-companion-next-change)
    (let ((current-prefix-arg '(4)))
      (should (string-prefix-p
               "Kept 1 change; 1 change also has lines of another turn; Change 1 of 2, b"
               (gemini-companion-test-walk "K"))))
    (gemini-companion-test-walk "n")
    (should (equal 9 (gemini-companion-walk-test-line)))
    (let ((current-prefix-arg '(4)))
      (should (string-prefix-p
               "Undid 1 change of b; 1 change also has lines of another turn"
               (gemini-companion-test-walk "U"))))
    (with-current-buffer "b"
      (should (equal "1\n2\n3\nfour\n5!\n6\n7\n8\n9\n" (buffer-string))))
    (let ((current-prefix-arg nil))
      (should (string-prefix-p "Undid 1 change of b; no changes"
                               (gemini-companion-test-walk "U"))))
    (with-current-buffer "b"
      (should (equal gemini-companion-test-lines (buffer-string))))))

(ert-deftest gemini-companion-walk-says-that-a-turn-has-no-change-of-its-own ()
  (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines))
    (find-file "a")
    (dolist (text '("one\n" "one\ntwo\n"))
      (gemini-companion-state-report session 'prompt text)
      (gemini-companion-test-writes
       "a" (concat text (substring gemini-companion-test-lines (length "1\n2\n"))) session))
    (gemini-companion-test-walk 'gemini-companion-next-change)
    (let ((current-prefix-arg '(4)))
      (dolist (key '("K" "U"))
        (should (equal "All changes of this turn also have lines of another turn; \
decide about each"
                       (gemini-companion-test-refusal
                         (gemini-companion-test-walk key))))))
    (should (eql 1 (gemini-companion-test-left)))))

(ert-deftest gemini-companion-walk-shows-what-was-before-until-it-goes-on ()
  (gemini-companion-test-in-changed "1\n2\nthree\n4\n5\n7\n8\n9\n"
    (gemini-companion-test-walk 'gemini-companion-next-change)
    (should (string-prefix-p "Before the change" (gemini-companion-test-walk "RET")))
    (should (equal "3\n" (substring-no-properties (gemini-companion-walk-test-shown))))
    (should (memq 'gemini-companion-removed
                  (ensure-list (get-text-property
                                1 'face (gemini-companion-walk-test-shown)))))
    ;; Scrolling leaves it, and so the walk.
    (let ((this-command #'recenter-top-bottom))
      (run-hooks 'pre-command-hook))
    (should (gemini-companion-walk-test-shown))
    (should (eq #'gemini-companion-next-change (key-binding "n")))
    (gemini-companion-test-walk "n" "RET")
    (should (equal "6\n" (substring-no-properties (gemini-companion-walk-test-shown))))
    (gemini-companion-test-walk "RET")
    (should-not (gemini-companion-walk-test-shown))
    (gemini-companion-test-walk "RET")
    (should (equal "(walk)" (car (gemini-companion-part-lighter 'walk))))
    ;; Another key ends the walk, and hides it.
    (let ((this-command #'self-insert-command))
      (run-hooks 'pre-command-hook))
    (should-not (gemini-companion-walk-test-shown))
    (should-not (gemini-companion-part-lighter 'walk))
    (should (eq #'self-insert-command (key-binding "n")))))

(ert-deftest gemini-companion-walk-shows-more-than-a-window-elsewhere ()
  (gemini-companion-test-with-changes
      `(("a" ,(mapconcat (apply-partially #'format "%d\n") (number-sequence 1 200) "")))
    (find-file "a")
    (gemini-companion-test-writes "a" "1\nnew\n200\n" session)
    (gemini-companion-test-walk 'gemini-companion-next-change "RET")
    (with-current-buffer "*gemini before*"
      (should (get-buffer-window))
      (should (string-prefix-p "2\n3\n" (buffer-string)))
      (should (string-suffix-p "\n199\n" (buffer-string)))
      (kill-buffer))))

(ert-deftest gemini-companion-walk-undoes-a-corrected-line-with-its-change ()
  (gemini-companion-test-in-changed "1\ntwo\nthree\n4\n5\n6\n7\n8\n9\n"
    (goto-char (point-min))
    (search-forward "two")
    (insert " of mine")
    (should (equal '(2 3) (gemini-companion-test-marked (current-buffer))))
    (let ((kill-ring nil))
      (gemini-companion-test-answering (lambda (_) (error "Asks"))
        (gemini-companion-test-walk 'gemini-companion-next-change "u"))
      (should (equal gemini-companion-test-lines (buffer-string)))
      (should (equal '("two of mine\n") kill-ring)))))

;; Emacs does not know whether the user has typed them.
(ert-deftest gemini-companion-walk-asks-about-lines-of-a-formatter-as-maybe-of-the-user ()
  (gemini-companion-test-in-changed "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n"
    (add-hook 'before-save-hook
              (lambda ()
                (goto-char (point-min))
                (search-forward "two")
                (replace-match "TWO of them"))
              nil t)
    (goto-char (point-max))
    (insert "mine\n")
    (save-buffer)
    (let ((asked nil))
      (gemini-companion-test-answering (lambda (prompt) (push prompt asked) t)
        (gemini-companion-undo-changes))
      (should (equal '("Takes 1 line, maybe yours, in a: undo 2 changes?") asked)))
    (should (equal (concat gemini-companion-test-lines "mine\n") (buffer-string)))
    (set-buffer-modified-p nil)))

;; A change has the same position then, and belongs to the same edit.
(ert-deftest gemini-companion-walk-undoes-no-line-that-arrives-meanwhile ()
  (let ((with "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n")
        (others "1\ntwo of others\n3\n4\n5\n6\n7\n8\n9\n"))
    (dolist (when '(question undo))
      (gemini-companion-test-with-changes
          (mapcar (lambda (name) (list name gemini-companion-test-lines)) '("a" "b" "c"))
        (dolist (file '("a" "b" "c"))
          (gemini-companion-test-writes file with session))
        (gemini-companion-test-open "c" "new\n" (random) session)
        (let* ((kill-ring nil)
               (late (if (eq when 'question) "a" "b"))
               (arrive (lambda (&rest _)
                         (when (equal with (gemini-companion-test-file-text late))
                           (gemini-companion-test-write late others))
                         t))
               (groups (mapcar (lambda (record)
                                 (cons record (gemini-companion-changes-update record)))
                               (gemini-companion-changes-files)))
               (gemini-companion-changes-undo-functions
                (and (eq when 'undo) (list arrive))))
          (gemini-companion-test-answering (if (eq when 'question) arrive #'always)
            (should (string-search
                     (format "Undid 1 change in 1 file; c has a proposal that awaits an \
answer; answer that first; %s has changed meanwhile" late)
                     (gemini-companion-undo-decide 'undo groups))))
          (should (equal others (gemini-companion-test-file-text late)))
          (should (equal gemini-companion-test-lines
                         (gemini-companion-test-file-text (if (equal late "a") "b" "a"))))
          (should-not kill-ring))))))

(ert-deftest gemini-companion-walk-deletes-no-line-that-arrives-during-its-question ()
  (gemini-companion-test-with-changes nil
    (gemini-companion-test-writes "new" "1\n2\n" session)
    (find-file "new")
    (let ((record (gemini-companion-changes-here)))
      (gemini-companion-test-answering (lambda (_)
                                         (gemini-companion-test-write "new" "1\n2\nmine\n")
                                         t)
        (should (string-search
                 "new has changed"
                 (gemini-companion-test-refusal
                  (gemini-companion-undo-decide
                   'undo (list (cons record (gemini-companion-changes-update record)))))))))
    (should (equal "1\n2\nmine\n" (gemini-companion-test-file-text "new")))))

(ert-deftest gemini-companion-walk-asks-before-it-undoes-lines-of-the-user-elsewhere ()
  (gemini-companion-test-in-changed "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n"
    (goto-char (point-min))
    (insert "more\n")
    (search-forward "nine")
    (insert " of mine")
    (let ((text (buffer-string))
          (kill-ring nil)
          (asked nil))
      (gemini-companion-test-answering (lambda (prompt) (push prompt asked) nil)
        (should (equal "Not undone" (gemini-companion-test-refusal
                                     (gemini-companion-undo-changes))))
        (should (equal text (buffer-string))))
      (gemini-companion-test-answering (lambda (prompt) (push prompt asked))
        (gemini-companion-undo-changes))
      (should (equal '("Takes 1 line, maybe yours, in a: undo 2 changes?"
                       "Takes 1 line, maybe yours, in a: undo 2 changes?")
                     asked))
      (should (equal (concat "more\n" gemini-companion-test-lines) (buffer-string)))
      (should (equal '("nine of mine\n") kill-ring)))
    (set-buffer-modified-p nil)))

(ert-deftest gemini-companion-walk-leaves-no-key-behind-after-an-error ()
  (gemini-companion-test-with-changes nil
    (dolist (command '( gemini-companion-next-change
                        gemini-companion-previous-change))
      (with-temp-buffer
        (local-set-key [return] #'newline)
        (should-error (call-interactively command) :type 'user-error)
        (pcase-dolist (`(,key . ,bound)
                       '(("n" . gemini-companion-next-change)
                         ("RET" . gemini-companion-show-change)
                         ("<return>" . gemini-companion-show-change)))
          (should (eq bound (key-binding (kbd key))))
          (let ((this-command bound))
            (run-hooks 'pre-command-hook))
          (should-error (call-interactively bound) :type 'user-error))
        ;; Any other key is one of the buffer.
        (let ((this-command #'self-insert-command))
          (run-hooks 'pre-command-hook))
        (should (eq #'self-insert-command (key-binding "n")))))))

(ert-deftest gemini-companion-walk-does-not-begin-in-a-buffer-without-changes ()
  (gemini-companion-test-with-changes nil
    (gemini-companion-test-writes "new" "x\n" session)
    (dolist (command '( gemini-companion-show-change
                        gemini-companion-undo-change
                        gemini-companion-undo-changes
                        gemini-companion-keep-change
                        gemini-companion-keep-changes))
      (with-temp-buffer
        (should-error (call-interactively command) :type 'user-error)
        (should-not (gemini-companion-walk-on-p))
        (should (eq #'self-insert-command (key-binding "u")))))))

;; With a change of the file of its window, it went to that, backwards.
(ert-deftest gemini-companion-walk-goes-forward-after-deleting-a-new-file ()
  (dolist (key '("u" "U"))
    (gemini-companion-test-with-changes `(("a" ,gemini-companion-test-lines)
                                          ("c" ,gemini-companion-test-lines))
      (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
      (gemini-companion-test-writes "b" "new\n" session)
      (gemini-companion-test-writes "c" "1\n2\n3\n4\nfive\n6\n7\n8\n9\n" session)
      (find-file "a")
      (goto-char (point-min))
      (gemini-companion-test-walk 'gemini-companion-next-change "n" "n")
      (should (equal "b" (buffer-name (window-buffer))))
      (with-current-buffer "a"
        (goto-char (point-min)))
      (gemini-companion-test-answering #'always
        (gemini-companion-test-walk key))
      (should-not (file-exists-p "b"))
      (should (equal "c" (buffer-name (window-buffer))))
      (should (equal 5 (gemini-companion-walk-test-line))))))

;; They were put on the third line of the window, above blank lines.
(ert-deftest gemini-companion-walk-scrolls-only-if-needed ()
  (let* ((height (window-body-height))
         (count (* 3 height))
         (changed (list 2 (- height 4) (- (* 2 height) 2) (1- count)))
         (text (lambda (changed)
                 (mapconcat (lambda (line)
                              (format (if (memq line changed) "new %d\n" "%d\n") line))
                            (number-sequence 1 count) "")))
         (rows (lambda ()
                 (with-selected-window (get-buffer-window "a")
                   (list (line-number-at-pos (window-start))
                         (count-screen-lines (window-start) (point-max)))))))
    (gemini-companion-test-with-changes `(("a" ,(funcall text nil)))
      (find-file "a")
      (gemini-companion-test-writes "a" (funcall text changed) session)
      (goto-char (point-min))
      (set-window-start nil (point-min))
      (gemini-companion-test-walk 'gemini-companion-next-change)
      (should (equal 1 (car (funcall rows))))
      ;; The next one is visible.
      (gemini-companion-test-walk "u")
      (should (equal (- height 4) (gemini-companion-walk-test-line)))
      (should (equal 1 (car (funcall rows))))
      ;; The next one is not: it is in the middle.
      (gemini-companion-test-walk "k")
      (should (<= 0.3
                  (/ (float (- (gemini-companion-walk-test-line) (car (funcall rows))))
                     height)
                  0.6))
      ;; The last one has as many lines above it as there is room for.
      (gemini-companion-test-walk "u")
      (should (equal (1- count) (gemini-companion-walk-test-line)))
      (should (<= (1- height) (cadr (funcall rows)) height)))))

(ert-deftest gemini-companion-walk-goes-to-changes-wherever-they-are ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
    (goto-char (point-max))
    (narrow-to-region 2 4)
    (let ((fold (make-overlay 14 (buffer-size))))
      (overlay-put fold 'invisible t)
      (overlay-put fold 'isearch-open-invisible #'delete-overlay)
      (goto-char (point-min))
      (should (string-prefix-p "Change 1 of 3"
                               (gemini-companion-test-walk
                                'gemini-companion-next-change)))
      (pcase-dolist (`(,said ,line) '(("2 of 3" 5) ("3 of 3" 9) ("1 of 3" 1)))
        (should (string-prefix-p (concat "Change " said)
                                 (gemini-companion-test-walk "n")))
        (should (equal line (line-number-at-pos nil 'absolute)))
        (should-not (invisible-p (point)))))))

(ert-deftest gemini-companion-walk-goes-to-the-difference-in-a-truncated-line ()
  (let ((long (make-string 300 ?x)))
    (gemini-companion-test-with-changes `(("a" ,(concat "1\n" long "old\n")))
      (find-file "a")
      (gemini-companion-test-writes "a" (concat "1\n" long "new\n") session)
      (dolist (truncate '(t nil))
        (setq truncate-lines truncate)
        (goto-char (point-min))
        (gemini-companion-test-walk 'gemini-companion-next-change)
        (should (equal (list 2 (if truncate 300 0))
                       (list (line-number-at-pos) (current-column))))
        (let ((this-command #'ignore))
          (run-hooks 'pre-command-hook))))))

(ert-deftest gemini-companion-walk-unfolds-the-text-of-org ()
  (gemini-companion-test-in-changed "* one\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
    (org-mode)
    (setq-local org-fold-core-style 'text-properties) ; the default of Org 9.6
    (goto-char 1)
    (org-cycle)
    (should (invisible-p 13))
    (gemini-companion-test-walk 'gemini-companion-next-change "n")
    (should (looking-at-p "five"))
    (should-not (invisible-p (point)))))

;; The changes counted as reviewed.
(ert-deftest gemini-companion-walk-goes-to-the-file-to-which-a-link-led ()
  (dolist (visited '(nil t))
    (gemini-companion-test-with-changes '(("b" "1\n2\n3\n") ("c" "1\n2\n3\n"))
      (make-symbolic-link "b" "link")
      (gemini-companion-test-writes "link" "one\n2\nthree\n" session)
      (when visited
        (find-file "link"))
      (make-symbolic-link "c" "link" 'ok-if-exists)
      (run-hook-with-args 'gemini-companion-state-functions session 'ready)
      (should (eql 2 (gemini-companion-test-left)))
      (should (string-prefix-p "Change 1 of 2, b +1 −1"
                               (gemini-companion-test-walk
                                'gemini-companion-previous-change "p")))
      (gemini-companion-test-walk "u")
      (should (equal "1\n2\nthree\n" (gemini-companion-test-file-text "b")))
      (should (equal "1\n2\n3\n" (gemini-companion-test-file-text "c")))
      (should (eql 1 (gemini-companion-test-left))))))

(ert-deftest gemini-companion-walk-leaves-out-files-that-are-others-now ()
  (gemini-companion-test-with-changes '(("a" "A\n"))
    (gemini-companion-test-writes "a" "new\n" session)
    (gemini-companion-next-change)
    ;; The buffer is of another file.
    (with-current-buffer "a"
      (write-file "z"))
    (should (string-prefix-p "Change 1 of 1, a" (gemini-companion-test-walk "n")))
    (with-current-buffer "a"
      (rename-file "a" "renamed")
      (set-visited-file-name "renamed" nil 'along-with-file)
      (should (equal '(1) (gemini-companion-test-marked "renamed")))
      (gemini-companion-keep-changes))
    (gemini-companion-test-writes "d" "new\n" session)
    (delete-file "d")
    (make-directory "d")
    (gemini-companion-test-writes "new" "new\n" session)
    (let ((said (gemini-companion-test-walk 'gemini-companion-next-change)))
      (should (string-prefix-p "Change 1 of 1, new" said))
      (should (string-search "d is not a regular file" said)))
    (should-not (get-file-buffer "d"))))

(ert-deftest gemini-companion-walk-undoes-behind-the-last-line ()
  (gemini-companion-test-with-changes '(("a" "1\n2\n3"))
    (find-file "a")
    (setq-local require-final-newline nil)
    (gemini-companion-test-writes "a" "1\n2\n" session)
    (gemini-companion-test-walk 'gemini-companion-next-change "RET")
    (should (equal "3\n\\ No newline at end of file\n"
                   (substring-no-properties (gemini-companion-walk-test-shown))))
    (gemini-companion-test-walk "u")
    (should (equal "1\n2\n3" (buffer-string)))))

(ert-deftest gemini-companion-walk-has-no-changes-of-a-file-that-is-not-a-text ()
  (gemini-companion-test-with-changes '(("a" "L1\n\0\nL3\n"))
    (gemini-companion-test-writes "a" "L1\n\0\nthree\n" session)
    (with-current-buffer (find-file-noselect "a")
      (should-error (gemini-companion-undo-change) :type 'user-error)
      (should (equal "L1\n\0\nthree\n" (buffer-string))))
    (let ((edit (car (gemini-companion-edits))))
      (gemini-companion-test-undo-edit edit)
      (should (equal "L1\n\0\nL3\n" (gemini-companion-text-bytes "a"))))))

(ert-deftest gemini-companion-walk-is-in-the-context-menu-of-a-change ()
  (gemini-companion-test-in-changed "1\n2\nthree\n4\n5\n6\n7\n8\n9\n"
    (should (equal '(3) (gemini-companion-test-marked "a")))
    (normal-mode)
    (pcase-dolist (`(,line . ,labels)
                   '((1)
                     (3 "Undo this change" "Keep this change" "Show what was before")))
      (let ((menu (make-sparse-keymap))
            (click `(mouse-3 (,(selected-window) ,(gemini-companion-hunk-position (1- line))
                              (0 . 0) 0))))
        (should (memq #'gemini-companion-walk-context-menu context-menu-functions))
        (gemini-companion-walk-context-menu menu click)
        (let (found)
          (map-keymap (lambda (_key item) (push (nth 1 item) found)) menu)
          (should (equal labels (seq-intersection
                                 (reverse found)
                                 '("Undo this change" "Keep this change"
                                   "Show what was before")))))
        (when labels
          (call-interactively (lookup-key menu [gemini-companion-undo-change])))))
    (should (equal gemini-companion-test-lines (buffer-string)))))

(ert-deftest gemini-companion-walk-undoes-no-other-change-than-the-clicked-one ()
  (gemini-companion-test-in-changed "1\n2\nthree\n4\nfive\n6\n7\n8\n9\n"
    (normal-mode)
    (let ((undo (lookup-key
                 (gemini-companion-walk-context-menu
                  (make-sparse-keymap)
                  `(mouse-3 (,(selected-window) ,(gemini-companion-hunk-position 4)
                             (0 . 0) 0)))
                 [gemini-companion-undo-change])))
      ;; While the menu is open, the first change moves to where the second one was.
      (save-excursion
        (goto-char (point-min))
        (insert "m\nn\n"))
      (let ((text (buffer-string)))
        (should-error (call-interactively undo) :type 'user-error)
        (should (equal text (buffer-string)))))))

(ert-deftest gemini-companion-walk-undoes-the-clicked-change-despite-a-region ()
  (gemini-companion-test-in-changed "1\n2\nthree\n4\nfive\n6\n7\n8\n9\n"
    (normal-mode)
    (let ((transient-mark-mode t))
      (push-mark (point-max) t t)
      (goto-char (gemini-companion-hunk-position 7))
      (call-interactively
       (lookup-key (gemini-companion-walk-context-menu
                    (make-sparse-keymap)
                    `(mouse-3 (,(selected-window) ,(gemini-companion-hunk-position 2)
                               (0 . 0) 0)))
                   [gemini-companion-undo-change])))
    (should (equal "1\n2\n3\n4\nfive\n6\n7\n8\n9\n" (buffer-string)))))

(ert-deftest gemini-companion-walk-shows-what-was-before-at-a-click ()
  (gemini-companion-test-in-changed "1\n2\nthree\n4\n5\n6\n7\n8\n9\n"
    (gemini-companion-test-marked "a")
    (let* ((place (gemini-companion-hunk-position 2))
           (click `(mouse-1 (,(selected-window) ,place (0 . 0) 0))))
      (dolist (area '(right-fringe right-margin))
        (funcall (lookup-key (get-char-property place 'keymap)
                             (vector area 'mouse-1))
                 click)
        (should (equal "3\n" (substring-no-properties
                              (gemini-companion-walk-test-shown))))
        ;; The next click hides it.
        (gemini-companion-walk-click click)))))

(ert-deftest gemini-companion-walk-messages-fit-into-a-line ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    (cl-letf (((symbol-function 'frame-width) (lambda (&rest _) 60)))
      (let ((message (gemini-companion-test-walk 'gemini-companion-next-change
                                                 "u")))
        (should (string-suffix-p " (n p u k RET)" message))
        (should (< (string-width message) 60))))
    ;; With words, where that is possible.
    (pcase-dolist (`(,width . ,keys)
                   '((65 . " RET old") (80 . " RET before  ? keys")))
      (cl-letf (((symbol-function 'frame-width) (lambda (&rest _) width)))
        (let ((message (gemini-companion-test-walk 'gemini-companion-next-change)))
          (should (string-suffix-p keys message))
          (should (< (string-width message) width)))))))

;; Emacs shows the number of a line beside its first row.
(ert-deftest gemini-companion-walk-line-numbers-are-beside-the-lines-now ()
  (gemini-companion-test-in-changed "1\n2\nthree 3\n4\n5\n6\n7\n8\n9\n"
    (dolist (numbers '(nil t))
      (setq display-line-numbers numbers)
      (goto-char (point-min))
      (gemini-companion-test-walk 'gemini-companion-next-change "RET")
      (let ((strings (seq-filter
                      #'cdr
                      (mapcar (lambda (overlay)
                                (cons (overlay-start overlay)
                                      (and (not (overlay-get overlay
                                                             'gemini-companion-mark))
                                           (overlay-get overlay 'before-string))))
                              (overlays-in (point-min) (point-max))))))
        (should (equal (if numbers '((4 . "\n3")) '((5 . "3\n")))
                       (mapcar (pcase-lambda (`(,place . ,string))
                                 (cons place (substring-no-properties string)))
                               strings))))
      (gemini-companion-test-walk "RET")
      (should-not (gemini-companion-walk-test-shown))
      (should (equal '(5)
                     (mapcar #'overlay-start
                             (seq-filter (lambda (overlay)
                                           (overlay-get overlay 'before-string))
                                         (overlays-in (point-min) (point-max)))))))))

(ert-deftest gemini-companion-walk-words-that-differ-are-marked-on-both-sides ()
  (gemini-companion-test-with-changes '(("a" "1\nthe one and only line\n3\n"))
    (find-file "a")
    (gemini-companion-test-writes "a" "1\nthe two and only line\n3\n" session)
    (gemini-companion-test-walk 'gemini-companion-next-change "RET")
    (should (equal '("two") (gemini-companion-walk-test-words)))
    (let* ((shown (gemini-companion-walk-test-shown))
           (start (string-search "one" shown)))
      (should (equal "the one and only line\n" (substring-no-properties shown)))
      (dolist (place (list start (+ start 2)))
        (should (memq 'gemini-companion-removed-words
                      (get-text-property place 'face shown))))
      (should-not (memq 'gemini-companion-removed-words
                        (get-text-property 0 'face shown))))
    (gemini-companion-test-walk "n")
    (should-not (gemini-companion-walk-test-words))
    (should-not (gemini-companion-walk-test-shown))))

(defun gemini-companion-walk-test-words ()
  "Return the words of this buffer that are marked, as they were not there."
  (mapcar (lambda (overlay)
            (buffer-substring-no-properties (overlay-start overlay)
                                            (overlay-end overlay)))
          (seq-filter (lambda (overlay)
                        (equal '(gemini-companion-added-words bold)
                               (overlay-get overlay 'face)))
                      (overlays-in (point-min) (point-max)))))

(ert-deftest gemini-companion-walk-shows-of-a-long-line-what-differs ()
  (let* ((half (make-string 15000 ?x))
         (old (concat "var a;\n" half " old " half "\nvar b;\n")))
    (gemini-companion-test-with-changes `(("a" ,old))
      (find-file "a")
      (gemini-companion-test-writes "a" (string-replace " old " " new " old) session)
      (gemini-companion-test-walk 'gemini-companion-next-change "RET")
      (should (equal '("new") (gemini-companion-walk-test-words)))
      (let ((shown (with-current-buffer "*gemini before*" (buffer-string))))
        (should (string-search " old " shown))
        (should (< (length shown) 400)))
      (gemini-companion-test-walk "n")
      (should-not (get-buffer "*gemini before*")))))

(ert-deftest gemini-companion-walk-shows-a-line-without-blanks-soon ()
  "To compare it letter by letter took 20 seconds."
  (let ((half (make-string 15000 ?x)))
    (gemini-companion-test-with-changes `(("a" ,(concat half half "\n2\n")))
      (find-file "a")
      (gemini-companion-test-writes "a" (concat half "CHANGED" half "\ntwo\n") session)
      (should (< (gemini-companion-test-seconds
                   (gemini-companion-test-walk 'gemini-companion-next-change "RET"))
                 5))
      (should (get-buffer "*gemini before*"))
      (gemini-companion-test-walk "RET"))))

(ert-deftest gemini-companion-walk-does-not-change-a-read-only-buffer ()
  (gemini-companion-test-in-changed "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"
    (read-only-mode)
    (gemini-companion-test-walk 'gemini-companion-next-change)
    (dolist (command '(gemini-companion-undo-change gemini-companion-undo-changes))
      (should (string-search "a is read-only"
                             (gemini-companion-test-refusal
                              (call-interactively command)))))
    (should (string-search "five" (buffer-string)))
    (read-only-mode -1)
    (gemini-companion-undo-change)
    (should-not (string-search "five" (buffer-string)))))

(ert-deftest gemini-companion-walk-undoes-nothing-in-a-file-that-is-locked ()
  (gemini-companion-test-in-changed "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"
    (let* ((create-lockfiles t)
           (told nil)
           (gemini-companion-changes-undo-functions
            (list (lambda (&rest _) (setq told t)))))
      (gemini-companion-test-walk 'gemini-companion-next-change)
      (make-symbolic-link "bob@elsewhere.4242:1700000000" ".#a")
      ;; In batch mode Emacs does not ask.
      (should-error (gemini-companion-undo-change))
      ;; The error after an answer.
      (should (equal "a is being edited by bob@elsewhere (pid 4242)"
                     (gemini-companion-text-problem
                      '(file-locked "a" "bob@elsewhere (pid 4242)"))))
      (should (string-search "five" (buffer-string)))
      (should-not told)
      (delete-file ".#a")
      (gemini-companion-undo-change)
      (should told)
      (should-not (file-locked-p buffer-file-truename))
      (undo)
      (run-hooks 'post-command-hook)
      (should-not (file-locked-p buffer-file-truename)))))

(ert-deftest gemini-companion-walk-names-a-file-that-it-cannot-change ()
  (gemini-companion-test-with-changes '(("a" "1\n") ("b" "2\n"))
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-test-writes "b" "two\n" session)
    (with-current-buffer (find-file-noselect "b")
      (read-only-mode))
    (gemini-companion-test-walk 'gemini-companion-next-change)
    (let ((asked nil))
      (gemini-companion-test-answering (lambda (prompt) (push prompt asked) nil)
        (should (equal "Not undone"
                       (gemini-companion-test-refusal
                        (with-current-buffer (window-buffer)
                          (gemini-companion-undo-changes t))))))
      (should (equal '("Leaves out b: undo 1 change?") asked)))
    (should (equal "one\n" (with-current-buffer "a" (buffer-string))))))

(ert-deftest gemini-companion-walk-restores-what-it-did-in-another-file ()
  (dolist (key '("u" "k" "U" "K"))
    (gemini-companion-test-with-changes '(("a" "1\n") ("b" "2\n"))
      (dolist (name '("a" "b"))
        (find-file name)
        (buffer-enable-undo)
        (gemini-companion-test-writes name "x\n" session))
      (find-file "a")
      (gemini-companion-test-walk 'gemini-companion-next-change key)
      (should (equal "b" (buffer-name (window-buffer))))
      (ert-with-message-capture shown
        (execute-kbd-macro (kbd "C-/"))
        (should (string-match-p (concat "\\`Taken back: \\(undo\\|keep\\) of 1 change; "
                                        "Change [12] of 2, a \\+1")
                                shown)))
      (should (equal "a" (buffer-name (window-buffer))))
      (should (eql 2 (gemini-companion-test-left)))
      (should (gemini-companion-part-lighter 'walk))
      (should (equal '("x\n" "x\n")
                     (mapcar (lambda (name)
                               (with-current-buffer name (buffer-string)))
                             '("a" "b"))))
      ;; Nothing else is undone.
      (should (string-prefix-p "Nothing undone or kept"
                               (gemini-companion-test-refusal
                                (execute-kbd-macro (kbd "C-/")))))
      ;; Without the walk, a command to undo does what it does.
      (let ((this-command #'ignore))
        (run-hooks 'pre-command-hook))
      (find-file "b")
      (should (eq #'undo (key-binding (kbd "C-/"))))
      (gemini-companion-test-walk 'undo)
      (should (equal "b" (buffer-name (window-buffer)))))))

(ert-deftest gemini-companion-walk-restores-one-after-the-other ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
    (let ((written (buffer-string)))
      (switch-to-buffer (current-buffer))
      (gemini-companion-test-walk 'gemini-companion-next-change)
      ;; What was restored, and then undone or kept again, is restored once more.
      (dolist (keys '("u u C-/ k C-/ C-/" "k u k C-/ C-/ C-_" "u C-/ u C-x u"))
        (execute-kbd-macro (kbd keys))
        (should (equal written (buffer-string)))
        (should (eql 3 (gemini-companion-test-left)))
        (should (= 1 (line-number-at-pos))))
      (ert-with-message-capture shown
        (execute-kbd-macro (kbd "U C-/"))
        (should (string-search "Taken back: undo of 3 changes; Change 1 of 3, a +1"
                               shown)))
      (should (equal written (buffer-string))))))

(ert-deftest gemini-companion-walk-goes-on-after-its-keys-and-scrolling-only ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
    (switch-to-buffer (current-buffer))
    (pcase-dolist (`(,keys . ,goes-on)
                   '(("?" . t) ("c comment RET" . t) ("C-l" . t) ("C-u C-u" . t)
                     ("C-x 1" . t) ("C-x 2" . t) ("C-x o" . nil)
                     ("C-e" . nil) ("C-n" . nil) ("C-f" . nil) ("<right>" . nil)
                     ("M-<" . nil) ("M-}" . nil) ("C-SPC" . nil)))
      (ert-info ((format "Keys: %s" keys))
        (goto-char (point-min))
        (gemini-companion-test-walk 'gemini-companion-next-change)
        (execute-kbd-macro (kbd keys))
        (should (eq goes-on (eq #'gemini-companion-next-change (key-binding "n"))))))
    ;; A letter is text.
    (goto-char (point-min))
    (gemini-companion-test-walk 'gemini-companion-next-change)
    (execute-kbd-macro (kbd "C-e k e y"))
    (should (string-prefix-p "onekey\n2" (buffer-string)))
    (should (eql 3 (gemini-companion-test-left)))))

(ert-deftest gemini-companion-walk-help-names-all-its-keys ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\n5\n6\n7\n8\n9\n"
    (gemini-companion-test-walk 'gemini-companion-next-change)
    (ert-with-message-capture shown
      (cl-letf (((symbol-function 'frame-width) (lambda (&rest _) 80)))
        (execute-kbd-macro "?")
        (should (equal shown (progn (setq shown "")
                                    (execute-kbd-macro "?")
                                    shown))))
      (dolist (key '("n" "p" "u" "k" "U" "K" "RET" "C-/" "c" "w" "?"))
        (should (string-match-p (concat "\\(?:^\\|   \\)" (regexp-quote key) " [A-Z]")
                                shown))
        (should (commandp (key-binding (kbd key)))))
      ;; A quarter of the frame has room for so many lines.
      (let ((lines (split-string shown "\n" t)))
        (should (< (length lines) 7))
        (should-not (seq-some (lambda (line) (< 80 (string-width line))) lines))))))

(ert-deftest gemini-companion-walk-keys-for-more-changes-than-are-left-are-no-text ()
  (dolist (key '("k" "u"))
    (gemini-companion-test-in-changed "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"
      (gemini-companion-test-walk 'gemini-companion-next-change)
      (should (string-suffix-p "no changes are left" (gemini-companion-test-walk key)))
      ;; Typed ahead, as if there were more.
      (let ((this-command (key-binding key)))
        (should (commandp this-command))
        (should-not (eq #'self-insert-command this-command))
        (run-hooks 'pre-command-hook)
        (should-error (call-interactively this-command) :type 'user-error))
      ;; What is typed later is a text.
      (dolist (timer (copy-sequence timer-list))
        (when (string-prefix-p "gemini-companion-walk-"
                               (format "%s" (timer--function timer)))
          (timer-event-handler timer)))
      (should-not (gemini-companion-part-lighter 'walk))
      (should (eq #'self-insert-command (key-binding key))))))

(ert-deftest gemini-companion-walk-restores-a-new-file-that-it-has-deleted ()
  (dolist (how '(walk overview))
    (gemini-companion-test-with-changes '(("b" "2\n"))
      (gemini-companion-test-writes "d/new" "x\n" session)
      (gemini-companion-test-writes "b" "x\n" session)
      (with-current-buffer (find-file-noselect "b")
        (goto-char (point-max))
        (insert "mine\n"))
      (gemini-companion-test-answering #'always
        (gemini-companion-test-walk 'gemini-companion-next-change "u"))
      (should-not (file-exists-p "d"))
      (if (eq how 'walk)
          (progn
            (ert-with-message-capture shown
              (execute-kbd-macro (kbd "C-/"))
              (should (string-search "Taken back: undo of 1 change; Change 1 of 2"
                                     shown)))
            (should (equal "new" (buffer-name (window-buffer)))))
        (gemini-companion-decision-undo))
      (should (equal "x\n" (gemini-companion-test-file-text
                            (expand-file-name "d/new" directory))))
      (should (eql 2 (gemini-companion-test-left)))
      (should (equal "x\nmine\n" (with-current-buffer "b" (buffer-string)))))))

(ert-deftest gemini-companion-walk-restores-files-that-no-buffer-visits ()
  (dolist (key '("U" "K"))
    (gemini-companion-test-with-changes '(("a" "1\n") ("b" "1\n") ("c" "1\n"))
      (dolist (name '("a" "b" "c" "new"))
        (gemini-companion-test-writes name "x\n" session))
      (find-file "b")
      (gemini-companion-test-answering #'always
        (execute-kbd-macro (kbd (format "M-x gemini-companion-next-change RET C-u %s" key))))
      (should-not (gemini-companion-test-left))
      (execute-kbd-macro (kbd "C-/"))
      (should (eql 4 (gemini-companion-test-left)))
      (dolist (name '("a" "b" "c" "new"))
        (should (equal "x\n" (gemini-companion-test-file-text name)))))))

(ert-deftest gemini-companion-walk-restores-unsaved-lines-of-the-user ()
  (gemini-companion-test-in-changed "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n"
    (search-forward "two")
    (insert " of mine")
    (let ((text (buffer-string)))
      (gemini-companion-test-answering #'always
        (gemini-companion-test-walk 'gemini-companion-next-change "u"))
      (should-not (equal text (buffer-string)))
      (execute-kbd-macro (kbd "C-/"))
      (should (equal text (buffer-string)))
      (should (eql 1 (gemini-companion-test-left))))
    (set-buffer-modified-p nil)))

;; The lines of others that another CLI had removed were deleted with the file.
(ert-deftest gemini-companion-walk-deletes-no-new-file-in-which-others-had-lines ()
  (gemini-companion-test-with-changes nil
    (gemini-companion-test-writes "a" "new\n" session)
    (gemini-companion-test-write "a" "new\nmine\n")
    (let* ((empties (gemini-companion-test-writes "a" "" session))
           (own (gemini-companion-test-writes "a" "newer\n" session))
           (record (gemini-companion-changes-with-edit own)))
      (gemini-companion-test-answering #'always
        (gemini-companion-undo-decide
         'undo
         (list (cons record (gemini-companion-changes-update record)))
         :by (apply-partially #'eq own))
        (should (equal "" (gemini-companion-test-file-text "a")))
        (gemini-companion-test-undo-edit empties))
      (should (string-search "mine\n" (gemini-companion-test-file-text "a"))))))

;;;; Parts of a change

(defun gemini-companion-walk-test-select (first last)
  "Select the lines from FIRST to LAST of the current buffer."
  (setq transient-mark-mode t)
  (goto-char (point-min))
  (forward-line (1- first))
  (push-mark nil t t)
  (goto-char (point-min))
  (forward-line last)
  (setq mark-active t))

(ert-deftest gemini-companion-walk-decides-on-the-lines-of-the-region ()
  (pcase-dolist
      (`(,after ,first ,last ,command ,text ,marked)
       '(;; As many lines are new as were replaced.
         ("1\nb\nc\nd\ne\n6\n7\n8\n9\n" 3 3 gemini-companion-undo-change
          "1\nb\n3\nd\ne\n6\n7\n8\n9\n" (2 4 5))
         ("1\nb\nc\nd\ne\n6\n7\n8\n9\n" 3 3 gemini-companion-keep-change
          "1\nb\nc\nd\ne\n6\n7\n8\n9\n" (2 4 5))
         ("1\nb\nc\nd\ne\n6\n7\n8\n9\n" 2 3 gemini-companion-undo-change
          "1\n2\n3\nd\ne\n6\n7\n8\n9\n" (4 5))
         ("1\nb\nc\nd\ne\n6\n7\n8\n9\n" 4 9 gemini-companion-keep-change
          "1\nb\nc\nd\ne\n6\n7\n8\n9\n" (2 3))
         ("1\nb\nc\nd\ne\n6\n7\n8\n9\n" 1 9 gemini-companion-undo-change
          "1\n2\n3\n4\n5\n6\n7\n8\n9\n" ())
         ;; Lines were only added.
         ("1\na\nb\nc\n2\n3\n4\n5\n6\n7\n8\n9\n" 3 3 gemini-companion-undo-change
          "1\na\nc\n2\n3\n4\n5\n6\n7\n8\n9\n" (2 3))
         ("1\na\nb\nc\n2\n3\n4\n5\n6\n7\n8\n9\n" 3 3 gemini-companion-keep-change
          "1\na\nb\nc\n2\n3\n4\n5\n6\n7\n8\n9\n" (2 4))
         ;; More lines are new than were replaced: the latter go with the first.
         ("1\na\nb\nc\n3\n4\n5\n6\n7\n8\n9\n" 3 4 gemini-companion-undo-change
          "1\na\n3\n4\n5\n6\n7\n8\n9\n" (2))
         ("1\na\nb\nc\n3\n4\n5\n6\n7\n8\n9\n" 2 2 gemini-companion-undo-change
          "1\n2\nb\nc\n3\n4\n5\n6\n7\n8\n9\n" (3 4))
         ;; Two changes.
         ("1\nb\nc\n4\n5\n6\ng\nh\n9\n" 3 7 gemini-companion-undo-change
          "1\nb\n3\n4\n5\n6\n7\nh\n9\n" (2 8))))
    (ert-info ((format "%S %d-%d %s" after first last command))
      (gemini-companion-test-in-changed after
        (let ((all (gemini-companion-test-marked "a")))
          (gemini-companion-walk-test-select first last)
          (gemini-companion-test-walk command)
          (should (equal text (buffer-string)))
          (should (equal text (gemini-companion-test-file-text "a")))
          (should (equal marked (gemini-companion-test-marked "a")))
          (should-not (region-active-p))
          ;; The decision can be taken back, and the rest be undone.
          (gemini-companion-test-walk 'gemini-companion-restore-change)
          (should (equal after (buffer-string)))
          (should (equal all (gemini-companion-test-marked "a")))
          (gemini-companion-test-walk 'gemini-companion-undo-changes)
          (should (equal gemini-companion-test-lines (buffer-string)))
          (should-not (gemini-companion-test-left)))))))

(ert-deftest gemini-companion-walk-has-no-change-in-a-region-without ()
  (gemini-companion-test-in-changed "1\nb\n3\n4\n5\n6\n7\n8\n9\n"
    (gemini-companion-walk-test-select 4 6)
    (should (string-match-p "No change in the region"
                            (gemini-companion-test-refusal
                              (gemini-companion-test-walk
                               'gemini-companion-undo-change))))))

(ert-deftest gemini-companion-walk-postponed-change-is-kept-only-by-itself ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
    (should (string-prefix-p "Later; Change 2 of 3, a +1 −1"
                             (gemini-companion-test-walk 'gemini-companion-next-change
                                                         "l")))
    (should (string-prefix-p "Change 1 of 3, a +1 −1, later"
                             (gemini-companion-test-walk "p")))
    (should (string-prefix-p "Kept 2 changes; Change 1 of 1, a +1 −1, later"
                             (gemini-companion-test-walk "K")))
    (should (string-match-p "to be decided later"
                            (gemini-companion-test-refusal
                              (gemini-companion-test-walk "K"))))
    (let ((current-prefix-arg '(4)))
      (should-error (gemini-companion-test-walk "K") :type 'user-error))
    (should (equal '(1) (gemini-companion-test-marked "a")))
    ;; Without the mark, it is kept with the others.
    (should (string-prefix-p "Not later any more; Change 1 of 1, a +1 −1 "
                             (gemini-companion-test-walk "l")))
    (should (string-prefix-p "Kept 1 change; no changes are left"
                             (gemini-companion-test-walk "K")))))

(ert-deftest gemini-companion-walk-postponed-change-is-not-kept-with-others-selected ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
    (gemini-companion-test-walk 'gemini-companion-next-change "l")
    (gemini-companion-walk-test-select 1 5)
    (gemini-companion-keep-change)
    (should (equal '(1 9) (gemini-companion-test-marked "a")))
    (gemini-companion-walk-test-select 1 2)
    (gemini-companion-keep-change)
    (should (equal '(9) (gemini-companion-test-marked "a")))))

(ert-deftest gemini-companion-walk-postponed-change-is-decided-by-its-own-keys ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
    (gemini-companion-test-walk 'gemini-companion-next-change "l" "l" "l")
    (should (string-prefix-p "Kept 1 change; Change 2 of 2"
                             (gemini-companion-test-walk "n" "k")))
    (should (string-prefix-p "Undid 1 change of a; Change 1 of 1"
                             (gemini-companion-test-walk "p" "u")))
    ;; What is taken back is later again, until that is taken back as well.
    (dolist (later '(2 3 2 1 0))
      (gemini-companion-test-walk "C-/")
      (should (= later
                 (seq-count #'gemini-companion-record-postponed-p
                            (gemini-companion-changes-file-known
                             (gemini-companion-changes-here))))))
    ;; All of a file are undone.
    (gemini-companion-test-walk "l")
    (should (string-prefix-p "Undid 3 changes" (gemini-companion-test-walk "U")))))

(ert-deftest gemini-companion-walk-postponed-change-stays-so-when-others-write-there ()
  (gemini-companion-test-in-changed "one\n2\n3\n4\nfive\n6\n7\n8\n9\n"
    (gemini-companion-test-walk 'gemini-companion-next-change "l")
    (cl-flet ((later ()
                (goto-char (point-min))
                (string-search ", later" (gemini-companion-test-walk
                                          'ignore 'gemini-companion-next-change))))
      ;; A formatter, the user, and the CLI.
      (goto-char (point-min))
      (insert "  ")
      (let ((before-save-hook (list (lambda () (end-of-line) (insert ";")))))
        (save-buffer))
      (should (later))
      (goto-char (point-min))
      (search-forward "one")
      (insert " word")
      (save-buffer)
      (should (later))
      (gemini-companion-test-writes "a" "ONE\nmore\n2\n3\n4\nfive\n6\n7\n8\n9\n" session)
      (should (later))
      ;; So does the rest of a change of which some lines were kept.
      (goto-char (point-min))
      (push-mark (line-beginning-position 2) t t)
      (let ((transient-mark-mode t))
        (gemini-companion-keep-change))
      (should (equal '(2) (seq-take (gemini-companion-test-marked "a") 1)))
      (should (later)))))

(ert-deftest gemini-companion-walk-postponed-change-that-was-split-is-taken-back ()
  (gemini-companion-test-in-changed "one\ntwo\nthree\n4\n5\n6\n7\n8\n9\n"
    (cl-flet ((later ()
                (seq-count #'gemini-companion-record-postponed-p
                           (gemini-companion-changes-file-known
                            (gemini-companion-changes-here)))))
      (gemini-companion-test-walk 'gemini-companion-next-change "l")
      (gemini-companion-walk-test-select 2 2)
      (gemini-companion-keep-change)
      (should (= 2 (later)))
      (gemini-companion-decision-take-back)
      (should (= 1 (later)))
      (gemini-companion-decision-take-back)
      (should (= 0 (later))))))

;;; gemini-companion-walk-test.el ends here
