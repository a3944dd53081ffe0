;;; gemini-companion-changes-test.el --- Tests of marking and reverting  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-changes)
(require 'gemini-companion-part)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-tools)

(defun gemini-companion-changes-test-refuses (edit reason)
  "Assert that EDIT is not reverted for REASON."
  (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
    (should (string-search
             reason (gemini-companion-test-refusal
                      (gemini-companion-changes-revert edit))))))

(ert-deftest gemini-companion-changes-reverts-to-the-same-bytes ()
  (pcase-dolist
      (`(,name . ,before)
       `(("a" . "one\r\ntwo\nthree\r\n") ("a" . "no end") ("a" . "") ("a" . "\0\300\264")
         ("a" . "\357\273\277mark\n\r\nno end") ("a" . "\303\251\351\n")
         ("a" . "-*- coding: latin-1 -*-\r\ncaf\351\n") ("a" . "\377\376o\0\n\0")
         ;; These are not what their names say.
         ,@(mapcar (lambda (end) (cons (concat "a" end) "1\ncaf\351\r\n"))
                   '(".gz" ".Z" ".xz" ".bz2" ".zst" ".tgz" ".svgz" ".gpg"))))
    (ert-info ((format "%s %S" name before))
      (gemini-companion-test-with-edits nil
        (let ((file (expand-file-name name))
              (require-final-newline t))
          (gemini-companion-test-write file before)
          (set-file-modes file #o750)
          (let ((buffer (and (equal name "a") (find-file-noselect file)))
                (edit (let ((file-name-handler-alist nil))
                        (gemini-companion-test-accept file "new\ncaf\u00e9\n"))))
            (gemini-companion-changes-revert edit)
            (should (equal before (gemini-companion-text-bytes file)))
            (should (= #o750 (file-modes file)))
            (when buffer
              (should (verify-visited-file-modtime buffer))
              (should-not (buffer-modified-p buffer)))
            (should (eq 'reverted (gemini-companion-edit-status edit)))
            (gemini-companion-changes-test-refuses edit "was reverted already")))))))

(ert-deftest gemini-companion-changes-keeps-the-line-ends-of-a-reported-file ()
  (pcase-dolist (`(,written ,reported . ,expected)
                 '(("\357\273\277new\r\n" "é old\n"
                    . "\357\273\277\303\251 old\r\n")
                   ("new\r\n" "as it was\r\n" . "as it was\r\n")
                   ("new\n" "a lone\rreturn\n" . "a lone\rreturn\n")))
    (ert-info ((format "%S" reported))
      (gemini-companion-test-with-edits '(("a" ""))
        (let ((file (expand-file-name "a")))
          (gemini-companion-test-write file written)
          (gemini-companion-file-state-record session file reported "new\n")
          (gemini-companion-changes-revert (car (gemini-companion-edits)))
          (should (equal expected (gemini-companion-text-bytes file))))))))

(ert-deftest gemini-companion-changes-refuses-to-revert-what-would-lose-text ()
  (gemini-companion-test-with-edits '(("a" "old\n") ("b" "old\n") ("c" "old\n"))
    (let ((a (gemini-companion-test-accept "a" "new\n"))
          (born (gemini-companion-test-accept "born" "new\n" 2))
          (b (gemini-companion-test-open "b" "new\n" 3))
          (c (gemini-companion-test-open "c" "new\n" 4)))
      (gemini-companion-edit-reject b)
      (gemini-companion-test-write "born" "newer\n")
      (gemini-companion-changes-test-refuses born "changed since")
      (delete-file "born")
      (gemini-companion-changes-test-refuses born "was deleted or renamed")
      (make-directory "born")
      (gemini-companion-changes-test-refuses born "is not a regular file")
      (gemini-companion-changes-test-refuses b "was rejected")
      (gemini-companion-changes-test-refuses c "awaits an answer")
      (setq gemini-companion-test-send #'ignore)
      (gemini-companion-edit-accept c)
      (gemini-companion-changes-test-refuses c "is not written yet")
      (gemini-companion-test-write "a" "new\nnewer\n")
      (gemini-companion-changes-test-refuses a "line 1 has changed since")
      (gemini-companion-test-write "a" "new\n")
      (rename-file "a" "elsewhere")
      (make-symbolic-link "elsewhere" "a")
      (gemini-companion-changes-test-refuses a "symbolic links")
      (rename-file "elsewhere" "a" 'replace)
      (with-current-buffer (find-file-noselect (expand-file-name "a"))
        (insert "unsaved")
        (gemini-companion-changes-test-refuses a "line 1 has changed since")
        (should (equal "unsavednew\n" (buffer-string)))))))

(ert-deftest gemini-companion-changes-keeps-the-file-if-the-disk-is-full ()
  (let ((disk (make-temp-file "disk-" t)))
    (skip-unless (eql 0 (ignore-errors
                          (call-process "mount" nil nil nil "-t" "tmpfs"
                                        "-o" "size=256k" "tmpfs" disk))))
    (unwind-protect
        (gemini-companion-test-with-edits nil
          (let* ((file (expand-file-name "a" (file-truename disk)))
                 (before (apply #'concat (make-list 10000 "before é\n")))
                 (after (concat (make-string 3000 ?x) "\nnew\n")))
            (gemini-companion-test-write file before)
            (add-name-to-file file (concat file "-link"))
            (let ((edit (gemini-companion-test-accept file after)))
              (with-current-buffer (find-file-noselect file)
                (call-process "sh" nil nil nil "-c"
                              (format "cat /dev/zero > %s/filler" disk))
                (should (string-search
                         "No space left"
                         (gemini-companion-test-refusal
                           (gemini-companion-changes-revert edit))))
                (should (equal after (gemini-companion-test-file-text file)))
                (should (equal after (gemini-companion-test-file-text
                                      (concat file "-link"))))
                (should (equal after (buffer-string)))
                (should (verify-visited-file-modtime))
                (should-not (buffer-modified-p))
                (should (eq 'accepted (gemini-companion-edit-status edit)))
                (delete-file (expand-file-name "filler" disk))
                (gemini-companion-changes-revert edit)
                (should (equal before (gemini-companion-test-file-text
                                       (concat file "-link"))))
                (should (equal before (buffer-string)))
                (kill-buffer)))))
      (call-process "umount" nil nil nil disk)
      (delete-directory disk))))

;;;; Marks

(defmacro gemini-companion-changes-test-with (files &rest body)
  "Mark what is written while BODY is run in a directory with FILES."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-edits ,files
     (gemini-companion-part-start 'changes)
     (unwind-protect
         (save-window-excursion ,@body)
       ;; The next key ends the keys for changes.
       (let ((this-command #'ignore))
         (run-hooks 'pre-command-hook))
       (gemini-companion-part-stop 'changes))))

(defun gemini-companion-changes-test-accept (file text session)
  "Accept TEXT for FILE, of SESSION, revert its buffer, and return the edit."
  (prog1 (gemini-companion-test-accept file text 1 session)
    (gemini-companion-revert-now (expand-file-name file))
    (gemini-companion-file-state-record session (expand-file-name file) nil text)))

(defun gemini-companion-changes-test-marked (file)
  "Return the lines that have a mark in FILE, a buffer or the name of its file."
  (ert-run-idle-timers)
  (with-current-buffer (if (bufferp file) file (get-file-buffer file))
    (sort (mapcar (lambda (overlay)
                    (line-number-at-pos (overlay-start overlay)))
                  (seq-filter (lambda (overlay)
                                (overlay-get overlay 'before-string))
                              (overlays-in (point-min) (point-max))))
          #'<)))

(defun gemini-companion-changes-test-keys (&rest keys)
  "Do what KEYS do in the selected window; return the last message."
  (car (last (split-string
              (ert-with-message-capture messages
                (dolist (key keys)
                  (with-current-buffer (window-buffer)
                    (run-hooks 'pre-command-hook)
                    (call-interactively
                     (if (symbolp key)
                         key
                       (lookup-key gemini-companion-changes-map (kbd key))))))
                messages)
              "\n" t))))

(defconst gemini-companion-changes-test-lines "1\n2\n3\n4\n5\n6\n7\n8\n9\n")

(defmacro gemini-companion-changes-test-in (text &rest body)
  "Run BODY in the buffer of a, with lines 1 to 9 of which `edit' has made TEXT."
  (declare (indent 1) (debug t))
  `(gemini-companion-changes-test-with
       `(("a" ,gemini-companion-changes-test-lines))
     (find-file "a")
     (let ((edit (gemini-companion-changes-test-accept "a" ,text session)))
       (ignore edit)
       ,@body)))

(ert-deftest gemini-companion-changes-are-marked-until-they-are-edited ()
  (gemini-companion-changes-test-in
      "one\n2\n3\nmore\nand more\n4\n5\n7\n8\nnine"
    ;; The first line, two new ones, where one was deleted, and the last.
    (should (equal '(1 4 5 8 10) (gemini-companion-changes-test-marked "a")))
    (should (equal '(nil . 1) (window-margins)))
    (should (equal "~4" (car (gemini-companion-part-lighter 'changes))))
    (goto-char (point-min))
    (insert "0\n")
    (search-forward "more")
    (insert "!")
    (should (equal '(2 9 11) (gemini-companion-changes-test-marked "a")))
    (should (equal "~3" (car (gemini-companion-part-lighter 'changes))))
    (save-buffer)
    (make-symbolic-link "." "link")
    (let ((directory-abbrev-alist
           `((,(regexp-quote directory) . ,(expand-file-name "link/")))))
      (find-file (prog1 buffer-file-name (kill-buffer)))
      (should (equal '(2 9 11) (gemini-companion-changes-test-marked
                                (current-buffer)))))
    (normal-mode)
    (delete-region (point-min) (point-max))
    (should-not (cdr (window-margins)))
    (should (equal 0 right-margin-width))))

(ert-deftest gemini-companion-changes-that-are-formatted-keep-their-marks ()
  (gemini-companion-changes-test-in "one\n2\n3\n5\n6\n7\n8\nnine\n"
    (should (equal '(1 4 8) (gemini-companion-changes-test-marked "a")))
    (let ((text (buffer-string))
          (buffer (current-buffer)))
      (with-temp-buffer
        (insert (string-replace "nine" "9.0" text))
        (let ((source (current-buffer)))
          (with-current-buffer buffer
            (replace-buffer-contents source)))))
    (should (equal '(1 4) (gemini-companion-changes-test-marked "a")))
    ;; The user adds a line where one was deleted.
    (goto-char (point-min))
    (forward-line 3)
    (insert "four\n")
    (should (equal '(1) (gemini-companion-changes-test-marked "a")))
    (should (equal "~1" (car (gemini-companion-part-lighter 'changes))))
    ;; What is as the CLI wrote it again is marked when it is saved.
    (delete-region (line-beginning-position 0) (point))
    (search-forward "9.0")
    (replace-match "nine")
    (save-buffer)
    (should (equal '(1 4 8) (gemini-companion-changes-test-marked "a")))))

(ert-deftest gemini-companion-changes-lose-marks-where-their-lines-get-longer ()
  (pcase-dolist (`(,position ,text . ,marked)
                 '((1 "x" 5 9) (1 "x\n" 2 6 10) (13 "x" 1 9) (17 "x\n" 1 5 10)
                   (26 "x" 1 5) (26 "\n" 1 5 9) (10 nil 1 8)))
    (gemini-companion-changes-test-in "one\n2\n3\n4\nfive\n6\n7\n8\nnine"
      (goto-char position)
      (if text (insert text) (delete-char 1))
      (should (equal marked (gemini-companion-changes-test-marked "a"))))))

(ert-deftest gemini-companion-changes-lose-marks-where-lines-are-added ()
  (pcase-dolist (`(,line ,column ,text . ,marked)
                 '(;; A line before or behind the place, indented alike.
                   (2 3 "\n  new") (3 2 "new\n  ")
                   ;; Elsewhere, or a line beside it is changed only.
                   (1 3 "\n  new" 4) (3 3 "\n  new" 3) (4 2 "new\n  " 3)
                   (2 3 "!" 3) (3 2 "!" 3) (3 3 "!" 3)))
    (ert-info ((format "%s %s %S" line column text))
      (gemini-companion-changes-test-with '(("a" "  1\n  2\n  x\n  3\n  4\n"))
        (find-file "a")
        (gemini-companion-changes-test-accept "a" "  1\n  2\n  3\n  4\n" session)
        (forward-line (1- line))
        (forward-char column)
        (insert text)
        (should (equal marked (gemini-companion-changes-test-marked "a")))))))

(ert-deftest gemini-companion-changes-have-a-margin-without-a-fringe-and-leave-others ()
  (gemini-companion-changes-test-with
      `(("a" ,gemini-companion-changes-test-lines))
    (find-file "a")
    ;; The other one is as in a graphical frame.
    (let ((text-window (split-window)))
      (cl-letf (((symbol-function 'window-fringes)
                 (lambda (&optional window)
                   (if (eq window text-window) '(0 0) '(8 8)))))
        (set-window-margins text-window 20 20)
        (gemini-companion-changes-test-accept
         "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
        (should (equal '(20 . 20) (window-margins text-window)))
        ;; The mode sets variables again.
        (normal-mode)
        (set-window-buffer text-window "*scratch*")
        (set-window-buffer text-window (current-buffer))
        (run-hook-with-args 'window-buffer-change-functions (selected-frame))
        (should (equal '((nil) (nil . 1))
                       (mapcar #'window-margins (list nil text-window))))
        (set-window-margins text-window 20 20)
        (gemini-companion-keep-changes)
        (should (equal '(20 . 20) (window-margins text-window)))))))

(ert-deftest gemini-companion-changes-are-not-marked-in-a-clone ()
  (gemini-companion-changes-test-in "one\n2\n3\n4\n5\n6\n7\n8\n9\n"
    ;; Org does the second.
    (dolist (clone (list (clone-indirect-buffer "clone" nil)
                         (make-indirect-buffer (current-buffer) "cloned" t)))
      (set-window-buffer (split-window) clone)
      (run-hook-with-args 'window-buffer-change-functions (selected-frame))
      (with-current-buffer clone
        (should-error (gemini-companion-undo-change) :type 'user-error)
        (should-not (gemini-companion-changes-test-marked clone))
        (should-not (cdr (window-margins (get-buffer-window))))
        (kill-buffer)))
    (should (equal '(1) (gemini-companion-changes-test-marked "a")))))

(ert-deftest gemini-companion-changes-of-the-next-turn-replace-the-marks ()
  (gemini-companion-changes-test-with
      `(("a" ,gemini-companion-changes-test-lines) ("b" "B\n"))
    (find-file-noselect "b")
    (find-file "a")
    (gemini-companion-state-report session 'prompt "First")
    (gemini-companion-changes-test-accept
     "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-changes-test-accept "b" "C\n" session)
    (gemini-companion-changes-test-accept
     "a" "one\n2\n3\n4\nfive\n6\n7\n8\n9\n" session)
    (should (equal '(1 5) (gemini-companion-changes-test-marked "a")))
    (gemini-companion-state-report session 'end nil)
    (gemini-companion-state-report session 'prompt "Second")
    (gemini-companion-changes-test-accept
     "a" "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n" session)
    (should (equal '(9) (gemini-companion-changes-test-marked "a")))
    (should (equal '(1) (gemini-companion-changes-test-marked "b")))
    ;; The CLI deletes what it needed in its turn.
    (gemini-companion-changes-test-accept "new" "1\n" session)
    (delete-file "new")
    (should (equal "~2" (car (gemini-companion-part-lighter 'changes))))
    (gemini-companion-state-report session 'end nil)
    (should (equal "~1" (car (gemini-companion-part-lighter 'changes))))
    ;; Those of an earlier turn do not count.
    (with-current-buffer "b"
      (insert "mine "))
    (should (equal "~1" (car (gemini-companion-part-lighter 'changes))))
    (with-current-buffer "b"
      (delete-region (point-min) (point))
      (save-buffer))
    (let ((gemini-companion-after-write 'pulse))
      (gemini-companion-changes-test-accept
       "a" "one\n2\n3\n4\nfive\n6\n7\n8\n!\n" session))
    (should-not (gemini-companion-changes-test-marked "a"))
    (gemini-companion-part-stop 'changes)
    (should-not (gemini-companion-changes-test-marked "b"))
    (should-not (string-search "gemini-companion-changes"
                               (format "%S" (buffer-local-variables))))
    (should-not (gemini-companion-part-lighter 'changes))
    (should (equal '(nil) (window-margins)))))

;; "No changes of a CLI are left" was said with marks before one's eyes.
(ert-deftest gemini-companion-changes-of-an-earlier-turn-can-be-reached ()
  (pcase-dolist (`(,why . ,hide)
                 `(("edited" . ,(lambda ()
                                  (with-current-buffer "b" (insert "mine "))))
                   ("kept" . ,(lambda ()
                                (with-current-buffer "b"
                                  (gemini-companion-keep-changes))))
                   ("unsaved before" . ignore)
                   ("reverted" . ,(lambda ()
                                    (gemini-companion-changes-revert
                                     (car (last (gemini-companion-edits))))))))
    (ert-info (why)
      (gemini-companion-changes-test-with
          `(("a" ,gemini-companion-changes-test-lines) ("b" "B\n"))
        (find-file-noselect "b")
        (gemini-companion-state-report session 'prompt "First")
        (find-file "a")
        (gemini-companion-changes-test-accept
         "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
        (gemini-companion-state-report session 'end nil)
        (gemini-companion-state-report session 'prompt "Second")
        (when (equal why "unsaved before")
          (with-current-buffer "b" (insert "mine ")))
        (gemini-companion-changes-test-accept "b" "C\n" session)
        (funcall hide)
        (should (equal '(1 9) (gemini-companion-changes-test-marked "a")))
        (should (equal "~2" (car (gemini-companion-part-lighter 'changes))))
        (should (string-prefix-p "2 of 2, a"
                                 (gemini-companion-changes-test-keys
                                  'gemini-companion-next-change)))
        (should (string-prefix-p "1 of 2, a"
                                 (gemini-companion-changes-test-keys "n")))
        (should (string-prefix-p "Reverted a hunk of a; 1 left"
                                 (gemini-companion-changes-test-keys "u")))
        (gemini-companion-keep-changes 'all)
        (should-not (gemini-companion-part-lighter 'changes))))))

;; The commands and the mode line counted none, and the marks stayed.
(ert-deftest gemini-companion-changes-stay-marked-when-the-option-is-set ()
  (gemini-companion-changes-test-with '(("a" "1\n") ("b" "1\n"))
    (find-file "a")
    (gemini-companion-changes-test-accept "a" "2\n" session)
    (let ((gemini-companion-after-write nil))
      (find-file "b")
      (gemini-companion-changes-test-accept "b" "2\n" session)
      (should-not (gemini-companion-changes-test-marked "b"))
      (should (equal '(1) (gemini-companion-changes-test-marked "a")))
      (should (equal "~1" (car (gemini-companion-part-lighter 'changes))))
      (gemini-companion-next-change)
      (should (equal "a" (buffer-name))))))

(ert-deftest gemini-companion-changes-leaves-no-key-behind-after-an-error ()
  (gemini-companion-changes-test-with nil
    (dolist (command '( gemini-companion-next-change
                        gemini-companion-previous-change
                        gemini-companion-show-change
                        gemini-companion-undo-change
                        gemini-companion-keep-changes))
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

;; A linked CLI corrects at once what a checker says of its edit.
(ert-deftest gemini-companion-changes-stay-marked-around-a-later-edit ()
  (pcase-dolist
      (`(,later ,marked ,changes ,line)
       '(("1\nB\nC\nD!\nE\nF\n7\n8\n9\n" (2 3 4 4 5 6) "~2" 4)
         ;; Lines are added and deleted.
         ("1\nB\nC\nc\nE\nF\n7\n8\n9\n" (2 3 4 4 5 6) "~2" 4)
         ("1\nB\nC\nD\nd\nE\nF\n7\n8\n9\n" (2 3 4 5 5 6 7) "~2" 5)
         ("1\nB\nC\nF\n7\n8\n9\n" (2 3 4 4) "~2" 4)
         ;; All of it is replaced, or more than that.
         ("1\nx\ny\n7\n8\n9\n" (2 3) "~1" 2)
         ("x\ny\nC\nD\nE\nF\n7\n8\n9\n" (1 2) "~1" 1)))
    (ert-info (later)
      (gemini-companion-changes-test-in "1\nB\nC\nD\nE\nF\n7\n8\n9\n"
        (gemini-companion-changes-test-accept "a" later session)
        (should (equal marked (gemini-companion-changes-test-marked "a")))
        (should (equal changes (car (gemini-companion-part-lighter 'changes))))
        ;; Of two marks on a line, the later edit is undone.
        (goto-char (point-min))
        (forward-line (1- line))
        (gemini-companion-undo-change)
        (should (equal '(2 3 4 5 6) (gemini-companion-changes-test-marked "a")))
        (goto-char (point-min))
        (forward-line 2)
        (gemini-companion-undo-change)
        (should (equal gemini-companion-changes-test-lines (buffer-string)))))))

(ert-deftest gemini-companion-changes-are-walked-through-file-by-file ()
  (gemini-companion-changes-test-with
      `(("a" ,gemini-companion-changes-test-lines) ("b" "B\n")
        ("c" ,gemini-companion-changes-test-lines))
    (should-error (gemini-companion-next-change) :type 'user-error)
    (gemini-companion-changes-test-accept
     "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-changes-test-accept "b" "C\n" session)
    (gemini-companion-changes-test-accept
     "c" "1\n2\n3\n4\nfive\n6\n7\n8\n9\n" session)
    (gemini-companion-changes-test-accept "new" "x\ny\n" session)
    (should (equal "~5" (car (gemini-companion-part-lighter 'changes))))
    (delete-file "b")
    (run-hook-with-args 'window-buffer-change-functions (selected-frame))
    (should (equal "~4" (car (gemini-companion-part-lighter 'changes))))
    (pcase-dolist (`(,key ,said ,line)
                   '((gemini-companion-next-change "1 of 4, a" 1)
                     ("n" "2 of 4, a" 9) ("n" "3 of 4, c" 5) ("n" "4 of 4, new" 1)
                     ("p" "3 of 4, c" 5) ("p" "2 of 4, a" 9) ("p" "1 of 4, a" 1)
                     ("p" "4 of 4, new" 1) ("n" "1 of 4, a" 1)))
      (should (equal (concat said " (n p u k RET)")
                     (gemini-companion-changes-test-keys key)))
      (should (equal line (with-current-buffer (window-buffer)
                            (line-number-at-pos)))))
    (should (string-prefix-p "Kept 1 file, +2 −2; 2 left"
                             (gemini-companion-changes-test-keys "k")))
    (should-not (gemini-companion-changes-test-marked "a"))
    (should-error (gemini-companion-undo-change) :type 'user-error)
    (should (string-prefix-p "1 of 3, b"
                             (progn (gemini-companion-test-write "b" "C\n")
                                    (gemini-companion-changes-test-keys
                                     'gemini-companion-next-change))))
    (gemini-companion-changes-test-keys "p")
    ;; In its question, n is an answer.
    (should (equal "Not undone"
                   (gemini-companion-test-refusal
                     (execute-kbd-macro (kbd "u n RET C-]")))))
    (ert-with-message-capture shown
      (execute-kbd-macro (kbd "u y RET"))
      (should (string-search "Deleted new; 2 left" shown)))
    (ert-with-message-capture shown
      (execute-kbd-macro (kbd "C-u k"))
      (should (string-search "Kept 2 files, +2 −2; 0 left" shown)))
    (should-not (gemini-companion-part-lighter 'changes))
    ;; They are not text after an error, either.
    (dolist (keys '("C-u k" "n"))
      (should-error (execute-kbd-macro (kbd keys)) :type 'user-error))))

(ert-deftest gemini-companion-changes-are-gone-to-wherever-they-are ()
  (gemini-companion-changes-test-in "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
    (narrow-to-region 2 4)
    (let ((fold (make-overlay 14 (buffer-size))))
      (overlay-put fold 'invisible t)
      (overlay-put fold 'isearch-open-invisible #'delete-overlay)
      (pcase-dolist (`(,said ,line) '(("2 of 3" 5) ("3 of 3" 9) ("1 of 3" 1)))
        (should (string-prefix-p said (gemini-companion-changes-test-keys
                                       'gemini-companion-next-change)))
        (should (equal line (line-number-at-pos nil 'absolute)))
        (should-not (invisible-p (point)))))))

(ert-deftest gemini-companion-changes-in-folded-text-of-org-are-shown ()
  (gemini-companion-changes-test-in "* one\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
    (org-mode)
    (setq-local org-fold-core-style 'text-properties) ; the default of Org 9.6
    (goto-char 1)
    (org-cycle)
    (should (invisible-p 13))
    (gemini-companion-changes-test-keys 'gemini-companion-next-change)
    (should (looking-at-p "five"))
    (should-not (invisible-p (point)))))

(ert-deftest gemini-companion-changes-of-a-file-that-is-another-are-left-out ()
  (gemini-companion-changes-test-with '(("a" "A\n") ("b" "B\n") ("c" "C\n"))
    (make-symbolic-link "b" "link")
    (gemini-companion-changes-test-accept "a" "new\n" session)
    (gemini-companion-changes-test-accept "link" "new\n" session)
    (make-symbolic-link "c" "link" 'ok-if-exists)
    ;; As a preview does.
    (let (find-file-hook)
      (find-file-noselect "a"))
    (gemini-companion-next-change)
    (should (string-prefix-p "1 of 1, a" (gemini-companion-changes-test-keys "n")))
    ;; The buffer is of another file.
    (with-current-buffer "a"
      (write-file "z"))
    (should (string-prefix-p "1 of 1, a" (gemini-companion-changes-test-keys "n")))
    (with-current-buffer "a"
      (rename-file "a" "renamed")
      (set-visited-file-name "renamed" nil 'along-with-file)
      (should-not (gemini-companion-changes-test-marked "renamed")))
    (make-directory "a")
    (gemini-companion-changes-test-accept "new" "new\n" session)
    (should (string-prefix-p "1 of 1, new; a is not a regular file"
                             (gemini-companion-changes-test-keys
                              'gemini-companion-next-change)))
    (should-not (get-buffer "a"))))

(ert-deftest gemini-companion-changes-are-found-in-a-buffer-of-bytes ()
  (gemini-companion-changes-test-with '(("a" "L1 é\n\0 é\nL3\nL4 é\nL5\n"))
    (let ((edit (gemini-companion-test-accept
                 "a" "L1 é\n\0 é\nthree é\nL4 é\nL5\n"))
          (file (expand-file-name "a")))
      (gemini-companion-file-state-record session file nil
                                          "L1 é\n\0 é\nthree é\nL4 é\nL5\n")
      (with-current-buffer (find-file-noselect file)
        (should (eq 'raw-text (coding-system-type buffer-file-coding-system)))
        (gemini-companion-next-change)
        (should (equal 3 (line-number-at-pos)))
        (goto-char (point-max))
        (insert "mine é\n")
        (gemini-companion-changes-revert edit (car (gemini-companion-edit-hunks edit)))
        (save-buffer)
        (should (equal "L1 \303\251\n\0 \303\251\nL3\nL4 \303\251\nL5\nmine \303\251\n"
                       (gemini-companion-text-bytes file)))))))

(ert-deftest gemini-companion-changes-in-unsaved-text-are-not-saved ()
  (gemini-companion-changes-test-with
      `(("a" ,gemini-companion-changes-test-lines))
    (let* ((written "one\n2\n3\n4\n5\n6\n7\n8\nnine\n")
           (edit (gemini-companion-changes-test-accept "a" written session))
           (now (lambda () (gemini-companion-edit-status edit))))
      (pcase-dolist (`(,then ,status ,text)
                     '((save-buffer reverted "1\n2\n3\n4\n5!\n6\n7\n8\n9\n")
                       (undo accepted nil)
                       ((lambda ()
                          (undo)
                          (undo-boundary)
                          (undo-redo 1))
                        unsaved nil)
                       ((lambda ()
                          (undo)
                          (save-buffer))
                        accepted "one\n2\n3\n4\n5!\n6\n7\n8\nnine\n")))
        (gemini-companion-test-write "a" written)
        (gemini-companion-file-state-record session (expand-file-name "a") nil written)
        (with-current-buffer (find-file-noselect "a" t)
          (revert-buffer t t)
          (buffer-enable-undo)
          (goto-char (point-min))
          (search-forward "5")
          (insert "!")
          (gemini-companion-changes-revert edit)
          (should (equal "1\n2\n3\n4\n5!\n6\n7\n8\n9\n" (buffer-string)))
          (should (equal written (gemini-companion-test-file-text "a")))
          (should (eq 'unsaved (funcall now)))
          (should-error (gemini-companion-changes-revert edit) :type 'user-error)
          (funcall then)
          (should (eq status (funcall now)))
          (should (eq (eq status 'accepted)
                      (equal '(1 9) (gemini-companion-changes-test-marked "a")))))
        (should (equal (or text written)
                       (gemini-companion-test-file-text "a")))))))

(ert-deftest gemini-companion-changes-that-are-not-saved-are-forgotten ()
  (dolist (drop (list (lambda ()
                        (set-buffer-modified-p nil)
                        (kill-buffer))
                      (lambda () (revert-buffer t t))
                      (lambda () (write-file "other"))))
    (gemini-companion-changes-test-in "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
      (pcase-let ((`(,first ,second ,_) (gemini-companion-edit-hunks edit)))
        (gemini-companion-changes-revert edit first)
        (forward-line 2)
        (insert "mine\n")
        (gemini-companion-changes-revert edit second)
        (gemini-companion-changes-revert edit)
        (should (eq 'unsaved (gemini-companion-edit-status edit)))
        ;; Killing a clone drops nothing.
        (kill-buffer (clone-indirect-buffer "clone" nil))
        (should (eq 'unsaved (gemini-companion-edit-status edit)))
        (funcall drop)
        (should (eq 'accepted (gemini-companion-edit-status edit)))
        (should (equal (list first) (gemini-companion-edit-undone edit)))))))

(ert-deftest gemini-companion-changes-are-back-after-an-undo-of-the-user ()
  (gemini-companion-changes-test-in "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    ;; A later edit of the file has not written that again.
    (gemini-companion-changes-test-accept
     "a" "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n" session)
    (let ((text (buffer-string))
          (hunk (car (gemini-companion-edit-hunks edit))))
      (buffer-enable-undo)
      (dolist (part (list hunk nil))
        (gemini-companion-changes-revert edit part)
        (when part
          (should (equal (list hunk) (gemini-companion-edit-undone edit)))
          (should-error (gemini-companion-changes-revert edit part)
                        :type 'user-error)
          (should (equal '(5 9) (gemini-companion-changes-test-marked "a"))))
        (undo-boundary)
        (undo)
        (save-buffer)
        (should (equal text (gemini-companion-test-file-text "a")))
        (should (eq 'accepted (gemini-companion-edit-status edit)))
        (should-not (gemini-companion-edit-undone edit))
        (should (equal '(1 5 9) (gemini-companion-changes-test-marked "a"))))
      ;; A hunk that was undone before all of it was reverted is not back.
      (mapc (apply-partially #'gemini-companion-changes-revert edit)
            (list hunk nil))
      (undo-boundary)
      (undo)
      (save-buffer)
      (should (eq 'accepted (gemini-companion-edit-status edit)))
      (should (equal (list hunk) (gemini-companion-edit-undone edit)))
      (should (equal '(5 9) (gemini-companion-changes-test-marked "a")))
      ;; It is of the later edit if that has written it again.
      (gemini-companion-changes-revert edit)
      (gemini-companion-state-report session 'prompt "Again")
      (gemini-companion-changes-test-accept "a" text session)
      (goto-char (point-max))
      (insert "mine\n")
      (save-buffer)
      (should (eq 'reverted (gemini-companion-edit-status edit)))
      (should (equal '(1 9) (gemini-companion-changes-test-marked "a"))))))

;; Each merge takes 20 ms.
(ert-deftest gemini-companion-changes-that-have-gone-are-not-merged-at-each-save ()
  (gemini-companion-changes-test-in "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"
    (mapc (apply-partially #'gemini-companion-changes-revert edit)
          (gemini-companion-edit-hunks edit))
    (goto-char (point-max))
    (insert "mine\n")
    (cl-letf (((symbol-function 'gemini-companion-text-merged)
               (lambda (&rest _) (ert-fail "Merged"))))
      (save-buffer))
    (should (eq 'reverted (gemini-companion-edit-status edit)))))

(ert-deftest gemini-companion-changes-of-deleted-files-and-bytes-are-left ()
  (gemini-companion-changes-test-with '(("a" "\u0142\n2\n3\n"))
    (let ((edit (gemini-companion-changes-test-accept "a" "one\n2\n3\n" session)))
      (find-file-literally "a")
      (goto-char (point-max))
      (insert "mine\n")
      ;; It would become B, its last eight bits.
      (gemini-companion-changes-test-refuses edit "has unsaved changes; save")
      (set-buffer-modified-p nil)
      (kill-buffer)
      (gemini-companion-changes-revert edit)
      ;; Nothing in it is back.
      (delete-file (expand-file-name "a" directory))
      (find-file (expand-file-name "a" directory))
      (should (eq 'reverted (gemini-companion-edit-status edit))))))

(ert-deftest gemini-companion-changes-are-undone-behind-the-last-line ()
  (gemini-companion-changes-test-with '(("a" "1\n2\n3"))
    (find-file "a")
    (setq-local require-final-newline nil)
    (gemini-companion-changes-test-accept "a" "1\n2\n" session)
    (goto-char (point-max))
    (delete-char -1)
    (save-buffer)
    ;; It is not the last line.
    (save-excursion
      (forward-line 0)
      (insert "x")
      (should (equal '(2) (gemini-companion-changes-test-marked "a")))
      (delete-char -1)
      (save-buffer))
    (gemini-companion-changes-test-keys 'gemini-companion-next-change "RET")
    (should (seq-find (lambda (overlay)
                        (equal "3\n" (overlay-get overlay 'before-string)))
                      (overlays-in (point) (point-max))))
    (gemini-companion-changes-test-keys "u")
    (should (equal "1\n2\n3" (gemini-companion-test-file-text "a")))))

(ert-deftest gemini-companion-changes-that-conflict-can-be-resolved ()
  (gemini-companion-changes-test-with '(("a" "1\n2\n3\n"))
    (let ((edit (gemini-companion-changes-test-accept "a" "1\ntwo\n3\n" session)))
      ;; Its buffer does not follow another program.
      (find-file-noselect "a")
      (gemini-companion-test-write "a" "0\n1\nmine\n3\n")
      (cl-letf (((symbol-function 'y-or-n-p)
                 (apply-partially #'string-search
                                  "a cannot be reverted: line 3 has changed since")))
        (gemini-companion-changes-revert edit))
      (should (equal "0\n1\n<<<<<<< now\nmine\n||||||| written\ntwo\n=======\n2
>>>>>>> before\n3\n"
                     (buffer-string)))
      (should (bound-and-true-p smerge-mode))
      (should (equal "0\n1\nmine\n3\n" (gemini-companion-test-file-text "a"))))))

(ert-deftest gemini-companion-changes-keep-mark-line-ends-and-bytes ()
  (pcase-dolist
      (`(,before ,proposed ,now ,after ,client)
       '(("1\r\n2\r\n3\r\n4\r\n5\r\n" "one\n2\n3\n4\nfive\n"
          "one\r\n2\r\nmine\r\n4\r\nfive\r\n" "1\r\n2\r\nmine\r\n4\r\n5\r\n")
         ("1\n2\n3\n4\n5" "one\n2\n3\n4\nfive"
          "one\n2\nmine\n4\nfive\n" "1\n2\nmine\n4\n5\n")
         ;; The user has added empty lines.
         ("1\n2\n3\n" "one\n2\n3\n" "one\n2\n3\n\n\n" "1\n2\n3\n\n\n")
         ("1\r\n2\r\n3\r\n4\r\n5" "one\n2\n3\n4\nfive"
          "one\r\n2\r\nmine\r\n4\r\nfive\r\n" "1\r\n2\r\nmine\r\n4\r\n5\r\n")
         ("\357\273\2771\n\303\251\n3\n4\n5\n" "one\n\u00e9\n3\n4\nfive\n"
          "\357\273\277one\n\303\251\n\303\266\n4\nfive\n"
          "\357\273\2771\n\303\251\n\303\266\n4\n5\n")
         ;; The CLI has dropped the mark.
         ("\357\273\2771\n2\n3\n4\n5\n" "one\n2\n3\n4\nfive\n"
          "one\n2\nmine\n4\nfive\n" "\357\273\2771\n2\nmine\n4\n5\n")
         ;; It keeps the mark; the user did not.
         ("\357\273\2771\n2\n3\n4\n5\n" "one\n2\n3\n4\nfive\n"
          "one\n2\nmine\n4\nfive\n" "1\n2\nmine\n4\n5\n" "qwen")
         ("caf\351\n2\n3\n4\n5\n" "cafe\n2\n3\n4\nfive\n"
          "cafe\n2\nmine\n4\nfive\n" "caf\351\n2\nmine\n4\n5\n")
         ("caf\351\n2\n3\n4\n5\n" "caf\u00e9\n2\n3\n4\nfive\n"
          "caf\351\n2\nmine\n4\nfive\n" "caf\351\n2\nmine\n4\n5\n" "qwen")
         ("1\r\n2\n3\n4\n5\r\n" "one\r\n2\n3\n4\nfive\r\n"
          "one\r\n2\nmine\n4\nfive\r\n" "1\r\n2\nmine\n4\n5\r\n" "copilot")
         ;; What it could not decode is a hunk of its own.
         ("1\n2\n\351\n4\n5\n" "one\n2\n\uFFFD\n4\nfive\n"
          "one\n2\n\357\277\275\n4\nfive\n" "1\n2\n\351\n4\n5\n")))
    (ert-info ((format "%S" now))
      (gemini-companion-test-with-edits '(("a" ""))
        (gemini-companion-test-write "a" before)
        (let ((edit (cl-letf (((symbol-function 'yes-or-no-p) #'always))
                      (gemini-companion-test-accept
                       "a" proposed 1
                       `(:client ,(or client "gemini") ,@session)))))
          (gemini-companion-test-write "a" now)
          (dolist (hunk (gemini-companion-edit-hunks edit))
            (gemini-companion-changes-revert edit hunk))
          (should (equal after (gemini-companion-text-bytes "a")))
          (gemini-companion-test-write "a" now)
          (gemini-companion-file-state-set-reverted edit 'written)
          (gemini-companion-changes-revert edit)
          (should (equal after (gemini-companion-text-bytes "a"))))))))

(ert-deftest gemini-companion-changes-are-left-after-the-undo-of-one-in-latin-1 ()
  "The file then has lines in UTF-8 beside others, and Emacs reads all in Latin-1."
  (gemini-companion-test-with-edits '(("a" ""))
    (let ((old "caf\351\n2\n3\nplain\n5\n6\nth\351\n"))
      (gemini-companion-test-write "a" old)
      (find-file "a")
      (let* ((edit (cl-letf (((symbol-function 'yes-or-no-p) #'always))
                     (gemini-companion-test-accept
                      "a" "caf\uFFFD\n2\n3\nPLAIN\n5\n6\nth\uFFFD\n" 1
                      `(:client "gemini" ,@session))))
             (hunks (gemini-companion-edit-hunks edit)))
        (should (length= hunks 3))
        (gemini-companion-test-write
         "a" "caf\357\277\275\n2\n3\nPLAIN\n5\n6\nth\357\277\275\n")
        (gemini-companion-revert-now (expand-file-name "a"))
        (gemini-companion-file-state-set-reverted edit 'written)
        (while hunks
          (gemini-companion-changes--mark)
          (should (equal hunks
                         (mapcar (lambda (mark)
                                   (cdr (gemini-companion-changes--change mark)))
                                 gemini-companion-changes-marks)))
          (gemini-companion-changes-revert edit (pop hunks)))
        (should (equal old (gemini-companion-text-bytes "a")))))))

(defun gemini-companion-changes-test-undone
    (coding before proposed undone &optional client)
  "Write PROPOSED over the text BEFORE in CODING, as CLIENT does.
By default, that is Qwen Code.
Undo the first hunk in the file, and then with unsaved text in its buffer,
which is saved then.  Assert that each has the text UNDONE in CODING."
  (gemini-companion-test-with-edits '(("a" ""))
    (let ((write (lambda (text)
                   (gemini-companion-test-write
                    "a" (encode-coding-string text coding)))))
      (funcall write before)
      (find-file "a")
      (let* ((edit (gemini-companion-test-accept
                    "a" proposed 1 `(:client ,(or client "qwen") ,@session)))
             (hunk (car (gemini-companion-edit-hunks edit))))
        (dolist (unsaved '(nil t))
          (funcall write proposed)
          (gemini-companion-revert-now (expand-file-name "a"))
          (gemini-companion-file-state-set-reverted edit 'written)
          (goto-char (point-max))
          (when unsaved
            (insert "mine\n"))
          (gemini-companion-changes-revert edit hunk)
          (should (eq unsaved (buffer-modified-p)))
          (save-buffer)
          (should (equal (encode-coding-string
                          (concat undone (and unsaved "mine\n")) coding)
                         (gemini-companion-text-bytes "a"))))))))

;; The mark was lost, or there were two of them.
(ert-deftest gemini-companion-changes-in-line-1-leave-the-byte-order-mark ()
  (pcase-dolist
      (`(,before ,proposed ,undone)
       '(("1\n2\n3\n4\n" "new\n1\n2\n3\nfour\n" "1\n2\n3\nfour\n")
         ("1\n2\n3\n4\n" "2\n3\nfour\n" "1\n2\n3\nfour\n")
         ("1\n2\n3\n4\n" "one\n2\n3\nfour\n" "1\n2\n3\nfour\n")
         ("1\n2\n3\n4\n" "a\nb\n2\n3\nfour\n" "1\n2\n3\nfour\n")))
    (dolist (coding '(utf-8-with-signature-unix utf-8-with-signature-dos
                      utf-16le-with-signature-unix utf-16be-with-signature-dos
                      utf-8-unix utf-8-dos))
      (ert-info ((format "%s %S" coding proposed))
        (gemini-companion-changes-test-undone coding before proposed undone)))
    ;; Its proposal has no mark, and the file may have it all the same.
    (gemini-companion-changes-test-undone 'utf-8-with-signature-unix
                                          before proposed undone "gemini")))

;; As its buffer is reverted, the edit is found to be in the file again.
(ert-deftest gemini-companion-changes-counts-what-is-written-again-once ()
  (pcase-dolist (`(,linked . ,states)
                 ;; In its terminal, each is refused once before.
                 '((t written)
                   (nil unwritten reverted unwritten written)))
    (gemini-companion-changes-test-with '(("a" "A\n"))
      (find-file "a")
      (dotimes (time 2)
        (dotimes (id (if linked 0 2))
          (gemini-companion-test-open "a" "B\n" (+ 1 id time time) session)
          (gemini-companion-server-receive 'close-diff (+ 1 id time time) 'closed))
        (gemini-companion-test-write "a" "B\n")
        (when linked
          (funcall (gemini-companion-server-receive 'ask 'edited
                     (list :path buffer-file-name :pids '(1)) "A\n" "B\n")
                   #'ignore))
        (gemini-companion-test-in-the-end
         (not (gemini-companion-test-timers "watch")))
        (should (equal "B\n" (buffer-string)))
        (when (= 0 time)
          (gemini-companion-changes-revert (car (last (gemini-companion-edits))))))
      (should (equal states (mapcar #'gemini-companion-edit-file-state
                                    (gemini-companion-edits))))
      (should (equal '(1) (gemini-companion-changes-test-marked "a"))))))

;;;; Random turns

(defvar gemini-companion-changes-test-coding 'utf-8-unix
  "Coding system of the file, with its line ends.")

(defun gemini-companion-changes-test-write (file text)
  "Write TEXT to FILE as a CLI does, in the same coding system."
  (gemini-companion-test-write
   file (encode-coding-string text gemini-companion-changes-test-coding)))

(defun gemini-companion-changes-test-merge (mine base theirs)
  "Return the merge of MINE and THEIRS by diff3, from BASE, or nil.
The last newline is that of the side that has changed it."
  (pcase-dolist (`(,name ,text) `(("m" ,mine) ("b" ,base) ("t" ,theirs)))
    (gemini-companion-test-write
     (concat "diff3/" name)
     (if (string-match-p "[^\n]\\'" text) (concat text "\n") text)))
  (with-temp-buffer
    (when (eql 0 (call-process "diff3" nil t nil "-m" "-E"
                               "diff3/m" "diff3/b" "diff3/t"))
      (let ((open-p (apply-partially #'string-match-p "[^\n]\\'")))
        (if (if (eq (null (funcall open-p mine)) (null (funcall open-p base)))
                (funcall open-p theirs)
              (funcall open-p mine))
            (string-remove-suffix "\n" (buffer-string))
          (buffer-string))))))

(defun gemini-companion-changes-test-without (hunk before after)
  "Return the text AFTER with the lines of BEFORE in HUNK."
  (let ((before (split-string before "^" t))
        (after (split-string after "^" t)))
    (apply #'concat
           (append (seq-take after (1- (gemini-companion-hunk-new hunk)))
                   (seq-take (nthcdr (1- (gemini-companion-hunk-old hunk)) before)
                             (gemini-companion-hunk-old-count hunk))
                   (nthcdr (1- (gemini-companion-hunk-new-end hunk)) after)))))

(defun gemini-companion-changes-test-type ()
  "Edit some lines of the current buffer as a user does."
  (goto-char (point-min))
  (while (not (eobp))
    (let* ((end (min (point-max) (line-beginning-position 2)))
           (line (buffer-substring (point) end))
           (new (gemini-companion-test-edited-at-random line)))
      (if (equal line new)
          (goto-char end)
        (delete-region (point) end)
        (insert new)))))

(defun gemini-companion-changes-test-revert (edit)
  "Revert EDIT or a hunk of it: as the merge program does, or not at all."
  (let* ((buffer (get-file-buffer "a"))
         (state (lambda ()
                  (list (gemini-companion-test-file-text "a")
                        (gemini-companion-text-of-buffer buffer)
                        (buffer-modified-p buffer))))
         (was (funcall state))
         (base (gemini-companion-edit-after edit))
         (hunk (and (= 0 (random 2))
                    (seq-random-elt
                     (append (seq-difference (gemini-companion-edit-hunks edit)
                                             (gemini-companion-edit-undone edit))
                             ;; All have been undone.
                             '(nil)))))
         (before (progn
                   (gemini-companion-test-write
                    "before" (gemini-companion-edit-before edit))
                   (gemini-companion-test-file-text "before")))
         (merged (gemini-companion-changes-test-merge
                  (if (nth 2 was) (nth 1 was) (nth 0 was))
                  base
                  (if hunk
                      (gemini-companion-changes-test-without hunk before base)
                    before)))
         (problem (condition-case problem
                      (ignore (gemini-companion-changes-revert edit hunk #'ignore))
                    (user-error (error-message-string problem)))))
    (if problem
        (progn
          (should (equal was (funcall state)))
          (or (and (string-search "merges them first" problem) 'unmerged)
              (and (string-match-p "line [0-9]+ has changed" problem)
                   (null merged)
                   'refused)
              (ert-fail (list problem merged was))))
      (should (equal (funcall state)
                     (if (nth 2 was)
                         (list (nth 0 was) merged t)
                       (list merged merged nil))))
      'reverted)))

(defun gemini-companion-changes-test-check-marks ()
  "Assert that each mark is at lines as the CLI wrote them, some of them later."
  (ert-run-idle-timers)
  (save-restriction
    (widen)
    (dolist (mark (overlays-in (point-min) (point-max)))
      (pcase (overlay-get mark 'gemini-companion-change)
        (`(,edit . ,hunk)
         (let ((lines (seq-take (nthcdr (1- (gemini-companion-hunk-new hunk))
                                        (split-string
                                         (gemini-companion-edit-after edit) "\n"))
                                (gemini-companion-hunk-new-count hunk)))
               (later (cdr (memq edit (gemini-companion-edits))))
               kept)
           (goto-char (overlay-start mark))
           (while (< (point) (overlay-end mark))
             (unless (seq-some (lambda (overlay)
                                 (memq (car (overlay-get overlay
                                                         'gemini-companion-change))
                                       later))
                               (overlays-at (point)))
               (push (buffer-substring (point) (line-end-position)) kept))
             (forward-line))
           (should (or (equal (reverse kept) lines)
                       (and later (null (seq-difference kept lines)))))))))))

(defun gemini-companion-changes-test-step (session)
  "Do something by chance in the current buffer, of the file that SESSION edits.
Return what became of a revert."
  (let* ((file buffer-file-name)
         (edits (seq-remove #'gemini-companion-changes-unwritten
                            (gemini-companion-edits))))
    (if (= 0 (random 3))
        (narrow-to-region (1+ (random (point-max))) (1+ (random (point-max))))
      (widen))
    (pcase (random 10)
      ;; The CLI writes.
      ((or 0 1)
       (gemini-companion-changes-test-write
        file (gemini-companion-edit-after
              (gemini-companion-test-accept
               file (concat (gemini-companion-test-edited-at-random
                             (gemini-companion-test-file-text file))
                            (seq-random-elt '("x\n" "x" "\n" "é \n")))
               1 session))))
      ;; So does another program, or the user with and without saving.
      (2 (gemini-companion-changes-test-write
          file (gemini-companion-test-edited-at-random
                (gemini-companion-test-file-text file))))
      (3 (unless (gemini-companion-revert-obstacle (current-buffer))
           (gemini-companion-changes-test-type)
           (save-buffer)))
      (4 (gemini-companion-changes-test-type))
      (5 (ignore-errors
           (undo-boundary)
           (undo)))
      (6 (unless (or (buffer-modified-p)
                     (gemini-companion-revert-obstacle (current-buffer)))
           (revert-buffer t t)))
      ;; A turn, the newest one first.
      (7 (dolist (edit (reverse edits))
           (unless (gemini-companion-changes-unwritten edit)
             (setq edits (gemini-companion-changes-test-revert edit)))))
      (_ (when edits
           (setq edits (gemini-companion-changes-test-revert
                        (seq-random-elt edits))))))
    (gemini-companion-revert-now file)
    (should (equal (gemini-companion-text-bytes file)
                   (encode-coding-string (gemini-companion-test-file-text file)
                                         gemini-companion-changes-test-coding)))
    (gemini-companion-changes-test-check-marks)
    (and (symbolp edits) edits)))

(ert-deftest gemini-companion-changes-of-random-turns-are-the-merge-or-nothing ()
  :tags '(pure)
  (let ((seed (or (getenv "GC_SEED") (format "%s" (random))))
        results)
    (random seed)
    (ert-info ((format "GC_SEED=%s" seed))
      (dotimes (_ (string-to-number (or (getenv "GC_TURNS") "10")))
        (gemini-companion-changes-test-with '(("a" ""))
          (let ((gemini-companion-changes-test-coding
                 (seq-random-elt '(utf-8-unix utf-8-dos utf-8-with-signature-unix
                                              utf-8-with-signature-dos))))
            (gemini-companion-changes-test-write
             "a" (mapconcat (apply-partially #'format "%d\n")
                            (number-sequence 1 12) ""))
            (with-current-buffer (find-file-noselect "a")
              (buffer-enable-undo)
              (add-hook 'before-save-hook #'delete-trailing-whitespace nil t)
              (dotimes (_ 15)
                (push (gemini-companion-changes-test-step session) results)))))))
    ;; Otherwise the test shows nothing; in so few turns, none may be refused.
    (should (memq 'reverted results))))

;;; gemini-companion-changes-test.el ends here
