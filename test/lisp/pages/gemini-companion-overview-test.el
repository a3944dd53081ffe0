;;; gemini-companion-overview-test.el --- Tests of the overview  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-comment-test-helper)
;; The copies of the core have no such file.
(require 'gemini-companion-prompt nil t)
(require 'gemini-companion-ediff)
(require 'gemini-companion-overview-test-helper)
(require 'gemini-companion-remote-test-helper)
(require 'gemini-companion-request)

(cl-defstruct (gemini-companion-overview-test-call
               (:include gemini-companion-request (kind 'call))
               (:constructor gemini-companion-overview-test-make-call))
  "A request of a test.")

(defvar gemini-companion-overview-test-calls nil
  "The open requests of the test.")

(defvar gemini-companion-overview-test-shown nil
  "The requests that were shown, the last one first.")

(cl-defmethod gemini-companion-request-label ((_ gemini-companion-overview-test-call))
  "Return that a command is asked for."
  (concat "asks  Shell  " "rm -rf build"))

(cl-defmethod gemini-companion-request-insert ((_ gemini-companion-overview-test-call))
  "Insert a command."
  (insert "rm -rf build && make\n"))

(cl-defmethod gemini-companion-request-show
  ((call gemini-companion-overview-test-call))
  "Record that CALL is shown."
  (push call gemini-companion-overview-test-shown))

(defmacro gemini-companion-overview-test-with-call (&rest body)
  "Run BODY while the CLI `session' asks for a command since a minute."
  (declare (indent 0) (debug t))
  `(let* ((gemini-companion-overview-test-shown nil)
          (gemini-companion-overview-test-calls
           (list (gemini-companion-overview-test-make-call
                  :session session :since (- (float-time) 60))))
          (gemini-companion-request-list-functions
           (append gemini-companion-request-list-functions
                   (list (lambda () gemini-companion-overview-test-calls)))))
     ,@body))

;;;; What is displayed

;; A file that nobody visits is marked once it is visited, before it is changed.
(ert-deftest gemini-companion-overview-goes-to-the-change-at-point ()
  (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines)
                                         ("b" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-writes "b" "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n" session)
    (pcase-dolist (`(,file ,line ,row) '(("b" 8 "-8") ("a" 9 "-9") ("a" 1 "-1")
                                         ("b" 2 "-2")
                                         ;; No change is there: it is the first one left.
                                         ("b" 5 "-1")))
      (ert-info ((format "%s:%d" file line))
        (find-file file)
        (goto-char (point-min))
        (forward-line (1- line))
        (gemini-companion-turn-page)
        (should (equal row (substring-no-properties
                            (gemini-companion-overview-test-here))))))))

(ert-deftest gemini-companion-overview-computes-and-draws-once-per-key ()
  (gemini-companion-overview-test-with-turn
    (find-file-noselect "a")
    (pcase-dolist (`(,key ,count ,drawn)
                   '(("n" 0 0) ("g" 0 1) ("u" 1 1) ("C-/" 1 1) ("k" 1 1) ("C-/" 1 1)
                     ;; All of a file, and of a turn with two.
                     ("U" 1 1) ("C-/" 1 1) ("C-u U" 2 1) ("C-/" 2 1)))
      (ert-info (key)
        (gemini-companion-overview-test-go-to "nine")
        (let* ((drawings 0)
               (draws (lambda (&rest _) (cl-incf drawings))))
          (advice-add 'gemini-companion-overview-page-write :before draws)
          (unwind-protect
              (should (equal (make-list 2 count)
                             (seq-take
                              (gemini-companion-test-counts
                               (lambda ()
                                 (gemini-companion-overview-test-keys key 'yes)))
                              2)))
            (advice-remove 'gemini-companion-overview-page-write draws))
          (should (= drawn drawings)))))))

(ert-deftest gemini-companion-overview-has-each-thing-once-and-counts-that-add-up ()
  (gemini-companion-overview-test-with
      `(("a" ,gemini-companion-test-lines) ("b" "B\n") ("c" "1\n2\n"))
    (gemini-companion-overview-test-turns session
      ("Fi\u200Brst" ("a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n") ("b" "C\n"))
      ("Second" ("a" "uno\n2\n3\n4\n5\n6\n7\n8\nnine\n") ("new" "x\n")))
    (gemini-companion-test-open "c" "1\ntwo\n" 7 session)
    (gemini-companion-state-lasts session)
    (gemini-companion-list)
    (gemini-companion-overview-test-keys "3")
    (let ((project (file-name-nondirectory (directory-file-name directory))))
      (should
       (equal
        `("Waiting  1 to answer"
          ,(format "▾ proposal  +1 −1  c  %s 00:00" project)
          ,(format "▾ the CLI (%s)  waiting since 00:00  1 to answer, 4 left" project)
          "▾ 00:00  Second  3 files  +2 −1  2 left"
          "▸ auto  +1 −1  a  1 left"
          "▸ auto  +1 −0  new  new file  1 left"
          "▾ 00:00  Fi\\u200Brst  2 files  +2 −2  2 left"
          "▸ auto  +1 −1  a  1 left"
          "▸ auto  +1 −1  b  1 left")
        (mapcar (lambda (line) (replace-regexp-in-string "  0s" "" line))
                (gemini-companion-overview-test-rows)))))
    (should (= 4 (gemini-companion-test-left)))))

(defun gemini-companion-overview-test-drawing (width project)
  "Return the overview as it is drawn in WIDTH columns, a list of lines.
The name PROJECT is shop, times are 12:12, and durations are left out, as is
since when a CLI waits: the name is longer."
  (cl-letf (((symbol-function 'window-max-chars-per-line)
             (lambda (&rest _) (1- width))))
    (gemini-companion-overview-test-keys "g")
    (mapcar
     (lambda (line)
       (should (<= (string-width line) (1- width)))
       (replace-regexp-in-string
        "  [0-9]+s +\\|since [^ ]+ +" "  "
        (replace-regexp-in-string
         "   +" "   "
         (replace-regexp-in-string
          "[0-9][0-9]:[0-9][0-9]" "12:12" (string-replace project "shop" line)))))
     (seq-remove #'string-empty-p (gemini-companion-overview-test-rendered width)))))

(ert-deftest gemini-companion-overview-is-drawn-for-its-width ()
  (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
    (let ((project (file-name-nondirectory (directory-file-name directory)))
          (session (gemini-companion-test-session-like session :client "gemini")))
      (gemini-companion-test-set-sessions (list session))
      (gemini-companion-overview-test-turns session
        ("use decimals for money, everywhere" ("a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n"))
        ("say it in euros"))
      (gemini-companion-test-open "b" "C\n" 7 session)
      (gemini-companion-state-lasts session)
      (gemini-companion-list)
      (let ((diff '("   1   -1" "   1  +one" "   2   2   2" "   3   3   3"
                    "   4   4   4" "   ... 5 unchanged lines")))
        (should
         (equal `("Waiting   1 to answer"
                  "▾ proposal   +1 −1  b   Gemini CLI (shop) 12:12"
                  "   1   -B" "   1  +C"
                  "▾ Gemini CLI (shop)  waiting   1 to answer, 1 left"
                  "   12:12  say it in euros   1 file   1 file proposed"
                  "  ▾ 12:12  use decimals for money, everywhere   1 file  +1 −1  1 left"
                  "   ▾ auto   +1 −1  a   1 left" ,@diff)
                (gemini-companion-overview-test-drawing 100 project)))
        (should
         (equal `("Waiting   1 to answer"
                  "▾ proposal   +1 −1  b   shop 12:12"
                  "   1   -B" "   1  +C"
                  "▾ Gemini CLI (shop)  waiting   1 to answer, 1 left"
                  "   12:12  say it in euros  1 file   1 file proposed"
                  "  ▾ 12:12  use decimals for money, everywhere  1 file  +1 −1   1 left"
                  "   ▾ auto   +1 −1  a   1 left" ,@diff)
                (gemini-companion-overview-test-drawing 80 project)))
        (should (equal '("Waiting   ?1" "▾ proposal   +1 −1  b   12:12")
                       (seq-filter (lambda (line) (string-match-p "\\`\\(?:W\\|▾ p\\)" line))
                                   (gemini-companion-overview-test-drawing
                                    58 project))))))))

(ert-deftest gemini-companion-overview-names-the-cli-where-two-are-in-one-directory ()
  (gemini-companion-overview-test-with '(("a" "A\n"))
    (let ((project (file-name-nondirectory (directory-file-name directory)))
          (gemini (gemini-companion-test-session-like session :client "gemini"))
          (pi (gemini-companion-test-session-like session :id "two" :pid 2 :client "pi")))
      (gemini-companion-test-set-sessions (list gemini pi))
      (gemini-companion-test-open "a" "B\n" 7 gemini)
      (gemini-companion-test-open "a" "C\n" 8 pi)
      (gemini-companion-list)
      (pcase-dolist (`(,width . ,ends) '((100 "Gemini CLI (shop) 12:12" "Pi (shop) 12:12")
                                         (80 "Gemini CLI 12:12" "Pi 12:12")
                                         (58 "Gemini CLI" "Pi")))
        (should (equal ends
                       (cl-loop for line in (gemini-companion-overview-test-drawing
                                             width project)
                                when (string-match "\\`. proposal .*  \\([GP].*\\)" line)
                                collect (match-string 1 line)))))
      ;; A row is drawn again when the other CLI has disconnected.
      (gemini-companion-test-set-sessions (list gemini))
      (should (seq-some (apply-partially #'string-match-p "proposal .*  shop 12:12\\'")
                        (gemini-companion-overview-test-drawing 80 project))))))

(ert-deftest gemini-companion-overview-draws-what-the-terminal-has-accepted ()
  "Also if nothing else happens after the write."
  (gemini-companion-overview-test-with '(("a" "A\n"))
    (find-file "a")
    (gemini-companion-test-open "a" "B\n" 7 session)
    (gemini-companion-list)
    (gemini-companion-server-receive 'close-diff 7 'closed)
    (gemini-companion-test-run-timers "page")
    (gemini-companion-test-write "a" "B\n")
    (gemini-companion-test-run-timers "watch")
    (gemini-companion-test-run-timers "watch")
    (gemini-companion-test-run-timers "page")
    (should (member "▸ accepted  +1 −1  a  kept" (gemini-companion-overview-test-rows)))))

(ert-deftest gemini-companion-overview-row-decides-about-what-was-drawn ()
  "While the user types keys, the overview is not drawn again."
  (dolist (where '("auto.* a" "1 file"))
    (dolist (key '("k" "u"))
      (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
        (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
        (gemini-companion-turn-page)
        (gemini-companion-overview-test-go-to where)
        (pcase where
          ("1 file" (gemini-companion-test-writes "b" "C\n" session))
          (_ (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)))
        ;; A key that was typed ahead is not about what is drawn now.
        (let ((unread-command-events (listify-key-sequence key)))
          (should (string-match-p "read them, then type the key again"
                                  (gemini-companion-test-refusal
                                    (call-interactively (key-binding (kbd key))))))
          (should-not unread-command-events))
        (should (eql 2 (gemini-companion-test-left)))
        ;; Now they are drawn.
        (cl-letf (((symbol-function 'gemini-companion-choice-key) (lambda (&rest _) ?y)))
          (gemini-companion-overview-test-keys key))
        (should-not (gemini-companion-test-left))))))

(ert-deftest gemini-companion-overview-marks-what-was-decided-before-the-sign ()
  (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\nmore\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-turn-page)
    (gemini-companion-overview-test-keys "k")
    (should (equal "+more" (string-trim-left (gemini-companion-overview-test-here))))
    (gemini-companion-overview-test-keys "u")
    (should (equal '("k-1" "k+one" "2" "3" "u+more" "4" "5" "6" "7" "8" "-9" "+nine")
                   (seq-drop (mapcar #'string-trim-left
                                     (gemini-companion-overview-test-lines))
                             3)))
    (should (member "▾ auto  +3 −2  a  1 of 3 left"
                    (gemini-companion-overview-test-rows)))
    ;; Only what is left has a color.
    (gemini-companion-overview-test-go-to "k\\+one")
    (should-not (memq 'gemini-companion-added
                      (ensure-list (get-text-property (point) 'face))))
    (gemini-companion-overview-test-go-to "\\+nine")
    (should (memq 'gemini-companion-added
                  (ensure-list (get-text-property (point) 'face))))))

(ert-deftest gemini-companion-overview-shows-no-line-of-the-user-as-removed ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n"))
    (gemini-companion-test-writes "a" "1\nx\ny\n2\n" session)
    (with-current-buffer (find-file-noselect "a")
      (goto-char (point-min))
      (forward-line 2)
      (insert "mine\n")
      (ert-run-idle-timers))
    (gemini-companion-turn-page)
    ;; The line of the user is not counted.
    (should (gemini-companion-overview-test-rows "auto  \\+2 −0  a  unsaved"))
    (should (gemini-companion-overview-test-rows "  1 file  \\+2 −0  "))
    (should (equal '("1" "+x" "* mine" "+y" "2")
                   (seq-drop (mapcar #'string-trim-left
                                     (gemini-companion-overview-test-lines))
                             3)))))

(ert-deftest gemini-companion-overview-has-no-cli-and-says-how-to-start-one ()
  (gemini-companion-overview-test-with nil
                                       (gemini-companion-test-set-sessions nil)
    (let ((gemini-companion-mode t))
      (gemini-companion-list)
      (should (string-search "No CLI is connected; M-x gemini-companion-run starts one"
                             (buffer-string))))
    (let ((gemini-companion-mode nil))
      (gemini-companion-overview-test-keys "g")
      (should (string-search "gemini-companion-mode is off" (buffer-string))))))

;;;; Keys

(ert-deftest gemini-companion-overview-keeps-and-undoes-what-is-at-point ()
  (gemini-companion-overview-test-with
      `(("a" ,gemini-companion-test-lines) ("b" ,gemini-companion-test-lines)
        ("c" "C\n"))
    (gemini-companion-test-writes "a" "one\n2\n3\nmore\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-writes "b" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-writes "c" "D\n" session)
    (gemini-companion-turn-page)
    (should (string-suffix-p "-1" (gemini-companion-overview-test-here)))
    (gemini-companion-overview-test-keys "n")
    (should (equal "Kept 1 change; 5 changes are left"
                   (gemini-companion-overview-test-keys "k")))
    (should (string-suffix-p "-9" (gemini-companion-overview-test-here)))
    (should (equal "Undid 1 change of a; 4 changes are left"
                   (gemini-companion-overview-test-keys "u")))
    (with-current-buffer "a"
      (should (equal "one\n2\n3\nmore\n4\n5\n6\n7\n8\n9\n" (buffer-string))))
    ;; The next one of this file is the one above.
    (should (string-suffix-p "-1" (gemini-companion-overview-test-here)))
    (gemini-companion-overview-test-keys "M-n")
    (should (equal "Undid 2 changes of b; 2 changes are left"
                   (gemini-companion-overview-test-keys "U")))
    (should (string-suffix-p "-C" (gemini-companion-overview-test-here)))
    (should (equal "Kept 1 change; 1 change is left"
                   (gemini-companion-overview-test-keys "K")))
    (should (string-suffix-p "-1" (gemini-companion-overview-test-here)))
    ;; Undo in the file brings what was undone back.
    (with-current-buffer "b"
      (undo-boundary)
      (undo)
      (ert-run-idle-timers))
    (gemini-companion-overview-test-keys "g")
    (should (= 3 (gemini-companion-test-left)))
    (should (equal "Kept 3 changes; nothing left, q quits"
                   (gemini-companion-overview-test-keys "C-u K" 'yes)))
    (should-not (gemini-companion-test-left))
    (should (string-search "No changes left here"
                           (gemini-companion-test-refusal
                             (gemini-companion-overview-keep-file))))))

(ert-deftest gemini-companion-overview-postponed-change-is-kept-only-by-itself ()
  (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines)
                                         ("b" "B\n"))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-writes "b" "C\n" session)
    (gemini-companion-turn-page)
    (should (equal "Later; 4 changes are left" (gemini-companion-overview-test-keys "l")))
    (should (string-suffix-p "-5" (gemini-companion-overview-test-here)))
    (let ((lines (gemini-companion-overview-test-lines)))
      (should (= 3 (seq-count (apply-partially #'string-match-p "left, 1 later\\'")
                              lines)))
      (should (= 2 (seq-count (apply-partially #'string-match-p "l[-+]\\(?:1\\|one\\)\\'")
                              lines))))
    (gemini-companion-overview-test-keys "p")
    (should (string-search "1 of 3, later" (gemini-companion-overview-test-header)))
    ;; Neither a selection, nor the file, nor the CLI keeps it.
    (let ((transient-mark-mode t))
      (push-mark (point) t t)
      (gemini-companion-overview-test-go-to "+five$")
      (should (equal "Kept 1 change; 3 changes are left"
                     (gemini-companion-overview-test-keys "k"))))
    (gemini-companion-overview-test-keys "C-/")
    (gemini-companion-overview-test-go-to "l-1$")
    (should (equal "Kept 2 changes; 2 changes are left"
                   (gemini-companion-overview-test-keys "K")))
    (goto-char (point-min))
    (should (equal "Kept 1 change; 1 change is left"
                   (gemini-companion-overview-test-keys "k" 'yes)))
    (gemini-companion-overview-test-go-to "l-1$")
    (should (string-match-p "to be decided later"
                            (gemini-companion-test-refusal
                              (gemini-companion-overview-keep-file))))
    ;; After these keeps, the mark is taken back.
    (gemini-companion-overview-test-keys "C-/ C-/ C-/")
    (should-not (seq-some (apply-partially #'string-match-p "later")
                          (gemini-companion-overview-test-lines)))
    (should (= 4 (gemini-companion-test-left)))
    (dolist (said '("Later" "Not later any more" "Later"))
      (gemini-companion-overview-test-go-to "-1$")
      (should (string-prefix-p (concat said ";")
                               (gemini-companion-overview-test-keys "l"))))
    (gemini-companion-overview-test-go-to "-1$")
    (should (equal "Kept 1 change; 3 changes are left"
                   (gemini-companion-overview-test-keys "k")))))

(ert-deftest gemini-companion-overview-decides-on-the-lines-of-the-region ()
  (pcase-dolist (`(,from ,to ,key ,said ,text ,marked)
                 '(("^\\+c" "^\\+c" "u" "Undid 1 line of a"
                    "1\nb\n3\nd\n5\n6\n7\n8\nnine\n" (2 4 9))
                   ("^\\+c" "^\\+d" "k" "Kept 2 lines"
                    "1\nb\nc\nd\n5\n6\n7\n8\nnine\n" (2 9))
                   ;; Of removed lines, and of two changes.
                   ("^-2" "^-2" "u" "Undid 1 line of a"
                    "1\n2\nc\nd\n5\n6\n7\n8\nnine\n" (3 4 9))
                   ("^\\+d" "^\\+nine" "u" "Undid 2 lines of a"
                    "1\nb\nc\n4\n5\n6\n7\n8\n9\n" (2 3))
                   ("^-2" "^\\+d" "k" "Kept 1 change"
                    "1\nb\nc\nd\n5\n6\n7\n8\nnine\n" (9))))
    (ert-info ((format "%s to %s, %s" from to key))
      (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines))
        (find-file-noselect "a")
        (gemini-companion-test-writes "a" "1\nb\nc\nd\n5\n6\n7\n8\nnine\n" session)
        (gemini-companion-turn-page)
        (let ((transient-mark-mode t))
          (gemini-companion-overview-test-go-to from)
          (push-mark nil t t)
          (gemini-companion-overview-test-go-to to)
          (end-of-line)
          (setq mark-active t)
          (should (string-prefix-p said (gemini-companion-overview-test-keys key))))
        (should (equal text (gemini-companion-text-of-buffer "a")))
        (should (equal text (gemini-companion-test-file-text "a")))
        (should (equal marked (gemini-companion-test-marked "a")))
        (gemini-companion-overview-test-keys "C-/")
        (should (equal '(2 3 4 9) (gemini-companion-test-marked "a")))))))

;; That counted as an empty new file, and its deletion was an error for the whole turn.
(ert-deftest gemini-companion-overview-undoes-a-turn-that-has-deleted-its-new-file ()
  (gemini-companion-overview-test-with '(("a" "one\n"))
    (gemini-companion-reported-bytes session (expand-file-name "a") "1\n" "one\n" "make")
    (gemini-companion-test-write "new/b" "2\n")
    (gemini-companion-reported-bytes session (expand-file-name "new/b") nil "2\n" "make")
    (delete-directory "new" t)
    (gemini-companion-reported-bytes session (expand-file-name "new/b") "2\n" nil "make"
                                     :modes #o644)
    (gemini-companion-turn-page)
    (gemini-companion-overview-test-go-to-turn)
    (gemini-companion-overview-test-keys "u" 'yes)
    (should (equal "1\n" (gemini-companion-test-file-text "a")))
    (should-not (file-exists-p "new"))))

;; It was there again, and the next undo deleted it.
(ert-deftest gemini-companion-overview-whole-undo-leaves-out-what-was-made-and-deleted ()
  (gemini-companion-overview-test-with '(("a" "one\n") ("b" "one\n"))
    (cl-flet ((writes (name before after)
                (if after
                    (write-region after nil name nil 'silent)
                  (delete-file name))
                (gemini-companion-reported-bytes session (expand-file-name name) before
                                                 after (format "make %s" after)
                                                 :modes (and (null after) #o644)))
              (undo ()
                (gemini-companion-page-refresh)
                (gemini-companion-overview-test-go-to-turn)
                ;; The next test would have it.
                (let ((current-prefix-arg nil))
                  (gemini-companion-overview-test-keys "C-u u" 'yes))))
      (writes "a" "1\n" "one\n")
      (writes "b" "1\n" "one\n")
      (writes "new" nil "2\n")
      (writes "new" "2\n" "3\n")
      (writes "new" "3\n" nil)
      (gemini-companion-turn-page)
      (should (equal "Undid 2 edits" (undo)))
      (should (equal "1\n" (gemini-companion-test-file-text "a")))
      (should-not (file-exists-p "new"))
      ;; A later command has made it again.
      (writes "b" "1\n" "one\n")
      (writes "new" nil "2\n")
      (writes "new" "2\n" nil)
      (writes "new" nil "4\n")
      (should (equal "Undid 2 edits" (undo)))
      (should-not (file-exists-p "new"))
      ;; The user has saved a line there.
      (writes "b" "1\n" "one\n")
      (writes "new" nil "2\n")
      (writes "new" "2\nmine\n" nil)
      (undo)
      (should (equal "2\nmine\n" (gemini-companion-test-file-text "new")))
      ;; What it had before one of several writes is unknown.
      (writes "b" "1\n" "one\n")
      (writes "c" nil "2\n")
      (let ((edit (writes "c" "2\n" "3\n")))
        (setf (gemini-companion-content-bytes (gemini-companion-edit-content edit))
              'unknown))
      (writes "c" "3\n" nil)
      (undo)
      (should (equal "1\n" (gemini-companion-test-file-text "b"))))))

;; It had no text then: to make it again was tried before its new text was deleted.
(ert-deftest gemini-companion-overview-undoes-a-rename-back-as-a-whole ()
  (gemini-companion-overview-test-with '(("a" "1\n"))
    (cl-flet ((moves (old new before after)
                (rename-file old new)
                (write-region after nil new nil 'silent)
                (let ((command (format "mv %s %s" old new)))
                  (gemini-companion-reported-bytes session (expand-file-name old) before
                                                   nil command :modes #o644)
                  (gemini-companion-reported-bytes session (expand-file-name new) nil
                                                   after command))))
      (moves "a" "b" "1\n" "2\n")
      (moves "b" "a" "2\n" "2\n"))
    (gemini-companion-turn-page)
    (gemini-companion-overview-test-go-to-turn)
    (gemini-companion-overview-test-keys "C-u u" 'yes)
    (should (equal "1\n" (gemini-companion-test-file-text "a")))
    (gemini-companion-overview-test-keys "C-/" 'yes)
    (should (equal "2\n" (gemini-companion-test-file-text "a")))
    (should-not (file-exists-p "b"))))

;; Both begin at one line of the file; the lines of one were drawn in the other.
(ert-deftest gemini-companion-overview-shows-what-is-undone-above-what-is-left ()
  (gemini-companion-overview-test-with '(("a" "1\n5\n"))
    (gemini-companion-test-writes "a" "1\n2\n3\n4\n5\n" session)
    (gemini-companion-turn-page)
    (let ((transient-mark-mode t))
      (gemini-companion-overview-test-go-to "^\\+2")
      (push-mark nil t t)
      (end-of-line)
      (setq mark-active t)
      (gemini-companion-overview-test-keys "u"))
    (should (equal '("1" "u+2" "+3" "+4" "5")
                   (seq-filter (apply-partially #'string-match-p "\\`u?\\+?[1-5]\\'")
                               (gemini-companion-overview-test-lines))))))

(ert-deftest gemini-companion-overview-undoes-new-files-that-are-empty ()
  (gemini-companion-overview-test-with '(("a" "1\n"))
    (gemini-companion-state-report session 'prompt "Do it")
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-test-writes "p/__init__.py" "" session)
    (gemini-companion-turn-page)
    (should (gemini-companion-overview-test-rows
             "auto  \\+0 −0  p/__init__.py  new file  empty"))
    ;; Alone, after asking.
    (gemini-companion-overview-test-go-to "__init__")
    (should (string-search "u undo  c comment"
                           (substring-no-properties
                            (gemini-companion-overview-test-header))))
    (gemini-companion-overview-test-keys "u" 'yes)
    (should-not (file-exists-p "p"))
    (should (gemini-companion-overview-test-rows "__init__.*undone"))
    (gemini-companion-overview-test-keys "C-/")
    (should (file-exists-p "p/__init__.py"))
    ;; With all others of the turn.
    (gemini-companion-overview-test-go-to "Do it")
    (gemini-companion-overview-test-keys "u" 'yes)
    (should-not (file-exists-p "p"))
    (should (equal "1\n" (gemini-companion-test-file-text "a")))
    (should (gemini-companion-overview-test-rows "Do it.*  undone"))
    (gemini-companion-overview-test-keys "C-/")
    (should (file-exists-p "p/__init__.py"))
    (should (gemini-companion-overview-test-rows "__init__.*empty"))
    ;; What was kept is left alone.
    (gemini-companion-overview-test-go-to "Do it")
    (gemini-companion-overview-test-keys "k" 'yes)
    (should (string-search "No changes left here"
                           (gemini-companion-test-refusal
                             (gemini-companion-overview-test-keys "u" 'yes))))
    (should (file-exists-p "p/__init__.py"))))

(ert-deftest gemini-companion-overview-calls-nothing-reviewed-that-a-newer-turn-counts ()
  (gemini-companion-overview-test-with '(("a" "1\n") ("b" "1\n"))
    (gemini-companion-state-report session 'prompt "First")
    (gemini-companion-test-writes "a" "one\n" session)
    (gemini-companion-state-report session 'end nil)
    (gemini-companion-state-report session 'prompt "Second")
    (gemini-companion-test-writes "a" "uno\n" session)
    (gemini-companion-list)
    (gemini-companion-overview-test-keys "3")
    (cl-flet ((first-turn ()
                (replace-regexp-in-string
                 "  [0-9]+s  " "  "
                 (car (gemini-companion-overview-test-rows "First")))))
      (should (equal "▾ 00:00  First  1 file  +1 −1" (first-turn)))
      (should (gemini-companion-overview-test-rows "auto  \\+1 −1  a\\'"))
      ;; Without the newer change, it counts its own.
      (gemini-companion-overview-test-go-to "Second")
      (gemini-companion-overview-test-keys "u")
      (should (equal "▾ 00:00  First  1 file  +1 −1  1 left" (first-turn))))))

(ert-deftest gemini-companion-overview-says-what-is-undone-without-marks ()
  (gemini-companion-overview-test-with '(("a" "1\n"))
    (let ((gemini-companion-after-write nil))
      (gemini-companion-test-writes "a" "one\n" session)
      (gemini-companion-list)
      (should (gemini-companion-overview-test-rows "auto  \\+1 −1  a\\'"))
      (gemini-companion-overview-test-go-to "auto")
      (gemini-companion-overview-test-keys "C-u u" 'yes)
      (should (equal "1\n" (gemini-companion-test-file-text "a")))
      (should (gemini-companion-overview-test-rows "auto  \\+1 −1  a  undone")))))

(defun gemini-companion-overview-test-headers ()
  "Return the header lines of the overview for point in each of its lines."
  (with-current-buffer "*gemini*"
    (save-excursion
      (goto-char (point-min))
      (let ((headers nil))
        (while (not (eobp))
          (push (gemini-companion-overview-test-header) headers)
          (forward-line))
        (nreverse headers)))))

;; Emacs may display the old text while the new one is drawn, as it awaits a process.
(ert-deftest gemini-companion-overview-header-is-about-the-text-that-is-displayed ()
  (gemini-companion-overview-test-with-turn
    (gemini-companion-overview-test-keys "u")
    (gemini-companion-overview-test-go-to "u\\+one")
    (let ((before (gemini-companion-overview-test-headers))
          (meanwhile nil))
      (advice-add 'gemini-companion-overview-draw-body :before
                  (lambda (&rest _)
                    (push (gemini-companion-overview-test-headers) meanwhile))
                  '((name . headers)))
      (unwind-protect
          (gemini-companion-overview-test-keys "C-/")
        (advice-remove 'gemini-companion-overview-draw-body 'headers))
      (should (member before meanwhile)))))

(ert-deftest gemini-companion-overview-has-a-header-line-when-a-request-has-ended ()
  (dolist (end (list (lambda (_edit)
                       (gemini-companion-server-receive 'close-diff 1 'closed))
                     #'gemini-companion-edit-reject #'gemini-companion-edit-accept))
    (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines))
      (let ((edit (gemini-companion-test-open "a" "one\n2\n3\n" 1 session)))
        (gemini-companion-list)
        ;; No timer has drawn the overview again.
        (funcall end edit)
        (should (gemini-companion-overview-test-headers))))))

;; The text of the buffer, in which the edit is missing, counted as undone by the user.
(ert-deftest gemini-companion-overview-says-that-unsaved-text-is-to-be-merged-first ()
  (skip-unless (executable-find "diff3"))
  (pcase-dolist (`(,reviewed ,state ,right) '((t "accepted" "kept") (nil "auto" "1 left")))
    (ert-info (state)
      (gemini-companion-overview-test-with '(("a" "1\n2\n3\n4\n5\n6\n"))
        (find-file "a")
        (goto-char (point-max))
        (insert "mine\n")
        (gemini-companion-test-writes "a" "1\ntwo\n3\n4\n5\n6\n" session reviewed)
        (gemini-companion-list)
        (gemini-companion-overview-test-keys "3")
        (should (gemini-companion-overview-test-rows
                 (format "%s  \\+1 −1  a  written since; merge its buffer  %s" state right)))
        (unless reviewed
          (should (= 1 (gemini-companion-test-left)))
          (should-not (gemini-companion-test-marked "a"))
          (gemini-companion-overview-test-go-to "auto")
          (should (string-search "merges them first"
                                 (gemini-companion-test-refusal
                                   (gemini-companion-overview-test-keys "u")))))
        (with-current-buffer "a"
          (should (string-match-p "merges them first\\|No change here"
                                 (gemini-companion-test-refusal
                                   (gemini-companion-undo-change))))
          (should (equal "1\n2\n3\n4\n5\n6\nmine\n" (buffer-string))))
        (with-current-buffer "a"
          (call-interactively (lookup-key gemini-companion-command-map "M")))
        (should (equal "1\ntwo\n3\n4\n5\n6\nmine\n"
                       (with-current-buffer "a" (buffer-string))))
        (unless reviewed
          (should (equal '(2) (gemini-companion-test-marked "a"))))
        (gemini-companion-list)
        (should (gemini-companion-overview-test-rows
                 (format "%s  \\+1 −1  a  \\(not saved\\|unsaved changes in Emacs\\)  %s"
                         state right)))))))

(ert-deftest gemini-companion-overview-names-what-another-cli-has-changed-there ()
  (gemini-companion-overview-test-with
      `(("a" ,(concat gemini-companion-test-lines (make-string 30 ?\n))))
    (let* ((qwen (gemini-companion-test-session-like session :id "q" :pid 2
                                                     :client "qwen"))
           (text (gemini-companion-text-bytes "a"))
           (new (string-replace "2\n" "two\n" text)))
      (gemini-companion-test-set-sessions (list session qwen))
      (cl-flet ((says-p (edit what)
                  (gemini-companion-list)
                  ;; The row, which may be cut, and the header line.
                  (and (gemini-companion-overview-test-rows
                        (format "proposal .* a  also %s" what))
                       (string-match-p
                        (format "\\`also %s by Qwen Code (.+)\\'" what)
                        (car (gemini-companion-header-warnings edit)))))
                (silent-p (edit)
                  (gemini-companion-list)
                  (not (or (gemini-companion-overview-test-rows "also ")
                           (cl-find "also" (gemini-companion-header-warnings edit)
                                    :test #'string-prefix-p)))))
        (let ((edit (gemini-companion-test-open "a" (concat text "end\n") 1 session)))
          (should (silent-p edit))
          (gemini-companion-test-open "a" (string-replace "4\n" "four\n" text) 2 qwen)
          (should (says-p edit "proposed"))
          (gemini-companion-edit-reject (gemini-companion-edit-of-id 2))
          (should (silent-p edit))
          (gemini-companion-test-writes "a" new qwen)
          (should (says-p edit "changed"))
          ;; What is kept does not count.
          (with-current-buffer (find-file-noselect "a")
            (switch-to-buffer (current-buffer))
            (gemini-companion-test-walk 'gemini-companion-keep-changes))
          (should (silent-p edit)))))))

(ert-deftest gemini-companion-overview-lets-a-kept-change-be-left-or-undone ()
  (gemini-companion-overview-test-with-turn
    (gemini-companion-overview-test-keys "k")
    (gemini-companion-overview-test-go-to "k\\+one")
    (should (equal "Change is unreviewed again" (gemini-companion-overview-test-keys "k")))
    (should (= 3 (gemini-companion-test-left)))
    (gemini-companion-overview-test-go-to "\\+one")
    (gemini-companion-overview-test-keys "k")
    (gemini-companion-overview-test-go-to "k\\+one")
    (should (equal "Undid 1 change of a; 2 changes are left"
                   (gemini-companion-overview-test-keys "u")))
    (gemini-companion-overview-test-go-to "u\\+one")
    (dolist (command '(gemini-companion-overview-keep gemini-companion-overview-undo))
      (should (string-search "undone" (gemini-companion-test-refusal
                                        (funcall command)))))
    (with-current-buffer "a"
      (should (string-prefix-p "1\n" (buffer-string))))))

(defun gemini-companion-overview-test-deletes (session name)
  "Delete the file NAME as a command of SESSION does."
  (let* ((file (expand-file-name name))
         (bytes (gemini-companion-text-bytes file))
         (modes (file-modes file)))
    (delete-file file)
    (gemini-companion-reported-bytes session file bytes nil "rm b c"
                                     :modes modes)))

(ert-deftest gemini-companion-overview-files-without-marks-are-one-row ()
  (gemini-companion-test-needs-add-on 'tools)
  (skip-unless (executable-find "git"))
  (gemini-companion-overview-test-with '(("a" "1\n") ("b" "2\n") ("c" "3\n"))
    (gemini-companion-overview-test-turns session
      ("First" ("c" "drei\n")))
    (gemini-companion-overview-test-unmarked
     session "black ." '("a" "b") "new\n")
    (gemini-companion-turn-page)
    ;; Their lines are not counted, the files are.
    (gemini-companion-overview-test-go-to "First .*3 files  \\+1 .1 ")
    (gemini-companion-overview-test-go-to "written +2 files  by `black .' +not marked")
    (with-current-buffer "*gemini*"
      (should (string-suffix-p
               "   ? keys  u undo  M-n next file"
               (substring-no-properties (gemini-companion-overview-test-header)))))
    (gemini-companion-overview-test-with-store
      (gemini-companion-overview-test-keys "u" 'yes)
      (gemini-companion-test-eventually (equal '("Undid 2 files") said))
      (should (equal "1\n" (gemini-companion-text-bytes "a")))
      (should (equal "2 files already undone"
                     (gemini-companion-test-refusal
                       (gemini-companion-overview-test-keys "u"))))
      ;; One that has changed since is left as it is, which is said.
      (gemini-companion-text-write "a" "mine\n")
      (setq said nil)
      (gemini-companion-overview-test-keys "C-/")
      (gemini-companion-test-eventually
        (equal '("Restored 1 file; a has changed since") said))
      (should (equal "mine\n" (gemini-companion-text-bytes "a")))
      (should (equal "new\n" (gemini-companion-text-bytes "b"))))))

;; A command such as `git checkout' took lines of the user, and one has deleted a file.
(defun gemini-companion-overview-test-take (session name old new &rest taken)
  "Let SESSION make NEW of OLD in the file NAME.
By that, TAKEN, lines of the user, are gone.  If the first one of TAKEN is nil,
no commit has the file."
  (let ((file (expand-file-name name))
        (table (make-hash-table :test 'equal)))
    (dolist (line (delq nil (copy-sequence taken)))
      (puthash line t table))
    (if new
        (gemini-companion-text-write file new)
      (delete-file file))
    (gemini-companion-reported-bytes
     session file old new "git stash -u" :modes #o644
     :taken (and taken (cons (and (car taken) t) table)))
    (gemini-companion-revert-now file)))

(ert-deftest gemini-companion-overview-gives-lines-of-the-user-back ()
  (gemini-companion-overview-test-with
      '(("a" "mine\n1\n2\n3\n4\n5\n6\n7\n8\nnine, mine\n") ("b" "b\n")
        ("c" "of nobody\nelse\n") ("d" "latin \351\n"))
    (gemini-companion-state-report session 'prompt "Do it")
    (gemini-companion-overview-test-take
     session "a" (gemini-companion-text-bytes "a")
     "1\n2\n3\nfour\n5\n6\n7\n8\nnine\n" "mine" "nine, mine")
    (gemini-companion-overview-test-take session "b" "b\n" "B\n")
    (gemini-companion-overview-test-take
     session "c" "of nobody\nelse\n" nil nil "of nobody" "else")
    (gemini-companion-overview-test-take
     session "d" "latin \351\n" "other \351\n" "latin é")
    (gemini-companion-turn-page)
    (gemini-companion-overview-test-go-to "takes 5 lines")
    ;; It is the first row of the turn.
    (should (equal "▾ 00:00  Do it" (with-current-buffer "*gemini*"
                                      (save-excursion
                                        (forward-line -1)
                                        (substring (gemini-companion-overview-test-line)
                                                   0 14)))))
    (should (equal (concat "takes 5 lines, maybe yours, that were never committed"
                           "  a, c, d  by `git stash -u'"
                           "  `git stash pop' gives them back as well")
                   (with-current-buffer "*gemini*"
                     (substring-no-properties
                      (gemini-companion-overview-draw-heading
                       (gemini-companion-overview-page-row) "" 160)
                      4))))
    (should (string-search "u give back" (with-current-buffer "*gemini*"
                                      (gemini-companion-overview-test-header))))
    (gemini-companion-overview-test-keys "u")
    (should (equal "mine\n1\n2\n3\nfour\n5\n6\n7\n8\nnine, mine\n"
                   (gemini-companion-text-bytes "a")))
    (should (equal "of nobody\nelse\n" (gemini-companion-text-bytes "c")))
    (should (equal "latin \351\n" (gemini-companion-text-bytes "d")))
    ;; Those alone.
    (should (equal "B\n" (gemini-companion-text-bytes "b")))
    (should-not (gemini-companion-overview-test-rows "takes"))
    (gemini-companion-overview-test-keys "C-/")
    (should (equal "1\n2\n3\nfour\n5\n6\n7\n8\nnine\n"
                   (gemini-companion-text-bytes "a")))
    (should-not (file-exists-p "c"))
    (should (equal "other \351\n" (gemini-companion-text-bytes "d")))
    (gemini-companion-overview-test-go-to "takes 5 lines")))

(ert-deftest gemini-companion-overview-stash-is-told-from-other-commands ()
  (dolist (command '("git stash" "git stash -u" "cd x && git stash; ls"
                     "git -C x stash push f" "git stash save a"))
    (should (gemini-companion-overview-draw-stash-p command)))
  (dolist (command '("git stash pop" "git stash list" "git stash drop" "ls; stash"
                     "git status; stash"))
    (should-not (gemini-companion-overview-draw-stash-p command))))

;; The row was "undone", and a second undo said so.
(ert-deftest gemini-companion-overview-undoes-the-rest-of-a-command-later ()
  (gemini-companion-test-needs-add-on 'tools)
  (skip-unless (executable-find "git"))
  (gemini-companion-overview-test-with '(("a" "1\n") ("b" "2\n"))
    (gemini-companion-overview-test-unmarked
     session "black ." '("a" "b") "new\n")
    (gemini-companion-overview-test-with-store
      (with-current-buffer (find-file-noselect "b")
        (insert "unsaved"))
      (gemini-companion-turn-page)
      (gemini-companion-overview-test-go-to "written +2 files .* not marked")
      (gemini-companion-overview-test-keys "u" 'yes)
      (gemini-companion-test-eventually
        (equal '("Undid 1 file; b has unsaved changes") said))
      (gemini-companion-overview-test-go-to "written +2 files .* 1 undone")
      (with-current-buffer "b"
        (revert-buffer t t))
      (setq said nil)
      (gemini-companion-overview-test-keys "u" 'yes)
      (gemini-companion-test-eventually (equal '("Undid 1 file") said))
      (gemini-companion-overview-test-go-to "2 files .* undone$")
      (should (equal '("1\n" "2\n") (mapcar #'gemini-companion-text-bytes '("a" "b"))))
      ;; Each of them is a decision.
      (setq said nil)
      (gemini-companion-overview-test-keys "C-/")
      (gemini-companion-test-eventually (equal '("Restored 1 file") said))
      (should (equal '("1\n" "new\n") (mapcar #'gemini-companion-text-bytes '("a" "b"))))
      (gemini-companion-overview-test-keys "C-/")
      (gemini-companion-test-eventually
        (equal '("Restored 1 file" "Restored 1 file") said))
      (should (equal '("new\n" "new\n") (mapcar #'gemini-companion-text-bytes '("a" "b"))))
      (gemini-companion-overview-test-keys "C-?")
      (gemini-companion-test-eventually (nth 2 said))
      (should (equal '("1\n" "new\n") (mapcar #'gemini-companion-text-bytes '("a" "b")))))))

(ert-deftest gemini-companion-overview-deletion-is-a-change ()
  (gemini-companion-overview-test-with '(("a" "1\n") ("d/b" "1\r\n2\r\n"))
    (set-file-modes "d/b" #o751)
    (gemini-companion-overview-test-turns session
      ("First" ("a" "one\n") ("d/b" "1\nzwei\n")))
    (cl-flet ((deleted-p ()
                (not (file-exists-p "d/b"))))
      (gemini-companion-overview-test-deletes session "d/b")
      (delete-directory "d")
      (should (= 2 (gemini-companion-test-left)))
      (gemini-companion-turn-page)
      (gemini-companion-overview-test-go-to " d/b  deleted .*1 left")
      (gemini-companion-overview-test-keys "k")
      (should (= 1 (gemini-companion-test-left)))
      (should (deleted-p))
      (gemini-companion-overview-test-keys "C-/")
      (should (= 2 (gemini-companion-test-left)))
      (gemini-companion-overview-test-go-to "-zwei\\|-2")
      (should (equal "Created d/b again; 1 change is left"
                     (gemini-companion-overview-test-keys "u")))
      ;; As it was before the first edit.
      (should (equal "1\r\n2\r\n" (gemini-companion-text-bytes "d/b")))
      (should (= #o751 (file-modes "d/b")))
      (should (= 1 (gemini-companion-test-left)))
      (gemini-companion-overview-test-keys "C-/")
      (should (deleted-p))
      (should-not (file-exists-p "d"))
      (should (= 2 (gemini-companion-test-left)))
      (gemini-companion-overview-test-keys "C-?")
      (should-not (deleted-p))
      (should (= 1 (gemini-companion-test-left))))))

(ert-deftest gemini-companion-overview-gathers-no-file-that-nobody-has-reviewed ()
  (gemini-companion-overview-test-with '(("a" "1\n") ("b" "\344\n") ("c" ""))
    (gemini-companion-overview-test-turns session
      ("First" ("a" "one\n")))
    ;; They have no marks: one is not in UTF-8, the other one is empty.
    (dolist (name '("b" "c"))
      (gemini-companion-overview-test-deletes session name))
    (gemini-companion-turn-page)
    (let ((text (gemini-companion-test-text "*gemini*")))
      (should-not (string-search "reviewed" text))
      (dolist (name '("b" "c"))
        (should (string-match-p (format " %s  deleted  by `rm b c'" name)
                                text))))))

(ert-deftest gemini-companion-overview-calls-no-turn-reviewed-without-marks ()
  (pcase-dolist (`(,old ,new) '(("\344\n" "\344\nnew\n") ("\344\n" nil)))
    (gemini-companion-overview-test-with `(("b" ,old))
      (gemini-companion-state-report session 'prompt "First")
      (if new
          (gemini-companion-overview-test-take session "b" old new)
        (gemini-companion-overview-test-deletes session "b"))
      (gemini-companion-turn-page)
      (gemini-companion-overview-test-go-to "First .* not marked$")
      (gemini-companion-overview-test-go-to "written .* b .* not marked$"))))

(ert-deftest gemini-companion-overview-undoes-what-the-turn-of-a-row-did ()
  ;; The row of the file, or of the turn; at a visited file or not.
  (pcase-dolist (`(,at ,visited) '(("auto .* a" t) ("Second" nil)))
    (ert-info ((format "%s %s" at visited))
      (gemini-companion-overview-test-with '(("a" "1\n2\n3\n4\n5\n6\n7\n"))
        (gemini-companion-overview-test-turns session
          ("First" ("a" "1\ntwo\n3\n4\n5\n6\n7\n"))
          ("Second" ("a" "1\nzwei\n3\n4\n5\n6\n7\n")))
        (gemini-companion-state-report session 'end nil)
        (when visited
          (find-file "a"))
        (gemini-companion-turn-page)
        (gemini-companion-overview-test-go-to at)
        (should (string-prefix-p
                 "Undid 1 change of a; changes of other turns there remain"
                 (gemini-companion-overview-test-keys "u")))
        (should (equal "1\ntwo\n3\n4\n5\n6\n7\n" (gemini-companion-text-read "a")))
        (should (eql 1 (gemini-companion-test-left)))
        ;; What stands beneath is one of its own turn; each is taken back by itself.
        (gemini-companion-overview-test-go-to "\\+two")
        (gemini-companion-overview-test-keys "u")
        (should (equal "1\n2\n3\n4\n5\n6\n7\n" (gemini-companion-text-read "a")))
        (gemini-companion-overview-test-keys "C-/")
        (should (equal "1\ntwo\n3\n4\n5\n6\n7\n" (gemini-companion-text-read "a")))
        (gemini-companion-overview-test-keys "C-/")
        (should (equal "1\nzwei\n3\n4\n5\n6\n7\n"
                       (gemini-companion-text-read "a")))))))

;; A diff has the lines before both turns; undoing brought back those of the first one.
(ert-deftest gemini-companion-overview-undo-of-a-change-gives-the-lines-it-shows ()
  ;; A left change, and a kept one; in a visited file or not.
  (pcase-dolist (`(,keeps ,visited) '((nil t) (t t) (nil nil)))
    (ert-info ((format "%s %s" keeps visited))
      (gemini-companion-overview-test-with '(("a" "1\n2\n3\n4\n5\n6\n7\n"))
        (gemini-companion-overview-test-turns session
          ("First" ("a" "1\ntwo\n3\n4\n5\n6\n7\n"))
          ("Second" ("a" "1\nzwei\n3\n4\n5\n6\n7\n")))
        (gemini-companion-state-report session 'end nil)
        (when visited
          (find-file "a"))
        (gemini-companion-turn-page)
        (when keeps
          (gemini-companion-overview-test-go-to "\\+zwei")
          (gemini-companion-overview-test-keys "k"))
        (gemini-companion-overview-test-go-to "\\+zwei")
        (should (member (if keeps "k-2" "-2") (gemini-companion-overview-test-lines)))
        (should (equal "Undid 1 change of a; nothing left, q quits"
                       (gemini-companion-overview-test-keys "u")))
        (should (equal "1\n2\n3\n4\n5\n6\n7\n" (gemini-companion-text-read "a")))
        (gemini-companion-overview-test-keys "C-/")
        (should (equal "1\nzwei\n3\n4\n5\n6\n7\n"
                       (gemini-companion-text-read "a")))))))

;; Both CLIs wrote in the same lines.
(ert-deftest gemini-companion-overview-undoes-what-one-of-two-clis-did ()
  (pcase-dolist (`(,cli ,undone ,left)
                 ;; Without the first CLI, the other one stands where it was.
                 '(("two" "1\nA\n3\n4\n5\nuser\n" 1)
                   ("one" "1\nB\n3\n4\nb5\nuser\n" 2)))
    (ert-info (cli)
      (gemini-companion-overview-test-with '(("a" "1\n2\n3\n4\n5\n"))
        (let ((two (gemini-companion-test-session-like
                    (gemini-companion-test-session "two" 2) :client "qwen"))
              (one (gemini-companion-test-session-like session :client "gemini"))
              (written "1\nB\n3\n4\nb5\nuser\n"))
          (gemini-companion-test-set-sessions (list one two))
          (gemini-companion-state-report one 'prompt "First")
          (gemini-companion-test-writes "a" "1\nA\n3\n4\n5\n" one)
          (gemini-companion-state-report two 'prompt "Second")
          (gemini-companion-test-writes "a" "1\nB\n3\n4\nb5\n" two)
          (find-file "a")
          (goto-char (point-max))
          (insert "user\n")
          (save-buffer)
          (gemini-companion-turn-page)
          (should (= 2 (gemini-companion-test-left)))
          (gemini-companion-overview-test-go-to
           (if (equal cli "one") "\\`.* Gemini CLI" "\\`.* Qwen Code"))
          (if (equal cli "one")
              ;; Both changes are counted in the newest turn.
              (should (string-search
                       "No changes left here"
                       (gemini-companion-test-refusal
                         (gemini-companion-overview-test-keys "u" 'yes))))
            (gemini-companion-overview-test-keys "u" 'yes))
          (should (equal undone (gemini-companion-text-read "a")))
          (should (eql left (gemini-companion-test-left)))
          (when (equal cli "two")
            (gemini-companion-overview-test-keys "C-/" 'yes)
            (should (equal written (gemini-companion-text-read "a")))
            (should (= 2 (gemini-companion-test-left)))
            ;; What is beneath is then undone by its own row.
            (gemini-companion-overview-test-go-to "\\`.* Qwen Code")
            (gemini-companion-overview-test-keys "u" 'yes)
            (gemini-companion-overview-test-go-to "\\`.* Gemini CLI")
            (gemini-companion-overview-test-keys "u" 'yes)
            (should (equal "1\n2\n3\n4\n5\nuser\n" (gemini-companion-text-read "a")))
            (should-not (gemini-companion-test-left))
            (gemini-companion-overview-test-keys "C-/ C-/" 'yes)
            (should (equal written (gemini-companion-text-read "a")))
            (should (= 2 (gemini-companion-test-left)))))))))

(ert-deftest gemini-companion-overview-asks-before-several-files ()
  (gemini-companion-overview-test-with-turn
    (gemini-companion-test-writes "new" "x\n" session)
    (gemini-companion-overview-test-keys "g")
    (gemini-companion-overview-test-go-to "Do it")
    (dolist (key '("k" "u"))
      (ignore-error user-error
        (gemini-companion-overview-test-keys key 'no))
      (should (= 4 (gemini-companion-test-left))))
    (let ((asked nil))
      (gemini-companion-test-answering (lambda (prompt) (push prompt asked) t)
        (execute-kbd-macro "u"))
      (should (equal '("Deletes new: undo 4 changes in 3 files?")
                     asked)))
    (should-not (gemini-companion-test-left))
    (should-not (file-exists-p "new"))))

;; One item of each kind: a file that is deleted, a line of the user, a file that is left
;; out.  A walk, the overview, edits as a whole, several turns, and what takes that back.
(ert-deftest gemini-companion-overview-and-walk-ask-one-question-for-each-command ()
  (dolist (keys '("u" "U" "C-u U" "C-u u" "B" "C-u B" "k" "C-u K" "walk C-u U" "walk C-u K"))
    (ert-info (keys)
      (gemini-companion-overview-test-with
          `(("a" ,gemini-companion-test-lines) ("b" "1\n2\n") ("c" "1\n"))
        (gemini-companion-state-report session 'prompt "Do it")
        (gemini-companion-test-writes "a" "one\ntwo\n3\n4\n5\n6\n7\n8\nnine\n" session)
        (gemini-companion-test-writes "b" "one\n2\n" session)
        (gemini-companion-test-writes "c" "one\n" session)
        (gemini-companion-test-writes "new" "x\n" session)
        (gemini-companion-test-write "a" "one\nmine\n3\n4\n5\n6\n7\n8\nnine\n")
        (gemini-companion-test-open "b" "two\n" 7 session)
        (let* ((asked 0)
               (answer (lambda (_) (cl-incf asked) t))
               (files '("a" "b" "c" "new"))
               (texts (lambda () (mapcar (lambda (file)
                                           (and (file-exists-p file)
                                                (gemini-companion-test-file-text file)))
                                         files)))
               (before (funcall texts))
               (ask (lambda (keys)
                      (setq asked 0)
                      (gemini-companion-test-answering answer
                        (pcase keys
                          ("walk C-u U" (gemini-companion-undo-changes t))
                          ("walk C-u K" (gemini-companion-keep-changes t))
                          ("C-/" (gemini-companion-decision-undo))
                          ("C-M-_" (gemini-companion-decision-redo))
                          (_ (with-current-buffer "*gemini*"
                               (execute-kbd-macro (kbd keys))))))
                      asked)))
          (if (not (string-prefix-p "walk" keys))
              (progn
                (gemini-companion-turn-page)
                (gemini-companion-overview-test-go-to
                 (if (equal keys "U") "auto .* a  " "Do it")))
            (find-file "c")
            (goto-char (point-min)))
          ;; A walk keeps without a question.
          (should (= (if (equal keys "walk C-u K") 0 1) (funcall ask keys)))
          (should (eq (null (string-search "k" (downcase (substring keys -1))))
                      (not (equal before (funcall texts)))))
          (should (<= (funcall ask "C-/") 1))
          (should (equal before (funcall texts)))
          (should (<= (funcall ask "C-M-_") 1)))
        (gemini-companion-walk-end)))))

(ert-deftest gemini-companion-overview-goes-back-to-before-a-turn ()
  (dolist (kept '(nil t))
    (gemini-companion-overview-test-with
        `(("a" ,gemini-companion-test-lines) ("b" "1\n"))
      (gemini-companion-overview-test-turns session
        ("First" ("b" "one\n"))
        ("Second" ("a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n") ("new" "x\n"))
        ("Third" ("a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n") ("b" "one\nmore\n")))
      (gemini-companion-test-write "a" "one\n2\n3\n4\nmine\n5\n6\n7\n8\nnine\n")
      (gemini-companion-turn-page)
      ;; The last line of a is kept.
      (gemini-companion-overview-test-go-to "\\+nine")
      (gemini-companion-overview-test-keys "k")
      (gemini-companion-overview-test-go-to "Second")
      (let ((texts (lambda () (mapcar (lambda (file)
                                        (and (file-exists-p file)
                                             (gemini-companion-test-file-text file)))
                                      '("a" "b" "new"))))
            (asked nil))
        (let ((before (funcall texts)))
          (gemini-companion-test-answering (lambda (question) (push question asked))
            (execute-kbd-macro (kbd (if kept "C-u B" "B"))))
          (should (equal (if kept
                             '("Deletes new: undo 4 edits of 2 turns?")
                           '("Deletes new, leaves out a: undo 3 changes in 3 files of 2 \
turns?"))
                         asked))
          (should (equal (list (if kept
                                   "1\n2\n3\n4\nmine\n5\n6\n7\n8\n9\n"
                                 "1\n2\n3\n4\nmine\n5\n6\n7\n8\nnine\n")
                               "one\n" nil)
                         (funcall texts)))
          (gemini-companion-overview-test-keys "C-/")
          (should (equal before (funcall texts))))))))

(ert-deftest gemini-companion-overview-changes-nothing-that-was-not-seen ()
  (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (find-file "a")
    (gemini-companion-turn-page)
    ;; The CLI writes again, and the overview is not drawn again yet.
    (gemini-companion-test-writes "a" "uno\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (let ((unread-command-events (list ?k)))
      (should (string-search "has changed since you saw it"
                             (gemini-companion-test-refusal
                               (gemini-companion-overview-keep))))
      (should-not unread-command-events))
    (should (eql 1 (gemini-companion-test-left)))
    ;; Lines of the user above it move the change only.
    (with-current-buffer "a"
      (goto-char (point-min))
      (forward-line 5)
      (insert "mine\n"))
    (gemini-companion-turn-page)
    (gemini-companion-overview-test-keys "k")
    (should-not (gemini-companion-test-left))))

(ert-deftest gemini-companion-overview-has-no-yes-for-a-question ()
  (gemini-companion-overview-test-with '(("a" "1\n"))
    (gemini-companion-overview-test-with-call
      (gemini-companion-list)
      (should (string-prefix-p "▾ asks  Shell  rm -rf build"
                               (gemini-companion-overview-test-here)))
      (should (member "rm -rf build && make"
                      (mapcar #'string-trim (gemini-companion-overview-test-lines))))
      (pcase-dolist (`(,command . ,error)
                     '((gemini-companion-overview-keep . "a allows it")
                       (gemini-companion-overview-undo . "r refuses it")
                       (gemini-companion-overview-exclude . "No proposal")))
        (should (string-search error (gemini-companion-test-refusal (funcall command)))))
      (dolist (key '("a" "r" "R" "RET" "C-o"))
        (setq gemini-companion-overview-test-shown nil)
        (gemini-companion-overview-test-keys key)
        (should (equal gemini-companion-overview-test-calls
                       gemini-companion-overview-test-shown)))
      ;; After an answer, point never goes to a question by itself.
      (let ((edit (gemini-companion-test-open "a" "2\n" 3 session)))
        (gemini-companion-overview-test-keys "g")
        (gemini-companion-overview-test-go-to "proposal")
        (gemini-companion-overview-test-keys "TAB")
        (gemini-companion-overview-test-keys "a")
        (should (eq 'accepted (gemini-companion-edit-answer edit)))
        (should-not (string-search "asks" (gemini-companion-overview-test-here)))
        (should (equal '("1 to answer")
                       (mapcar (lambda (line) (substring line -11))
                               (gemini-companion-overview-test-rows "\\`Waiting"))))))))

(ert-deftest gemini-companion-overview-accepts-the-version-that-was-drawn ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n") ("b" "B\n"))
    (gemini-companion-test-open "a" "one\n2\nthree\n" 1 session)
    (gemini-companion-test-open "b" "C\n" 2 session)
    (gemini-companion-list)
    ;; Folded, it is unfolded first.
    (gemini-companion-overview-test-go-to "proposal .* b  ")
    (should (string-search "Proposal was folded"
                           (gemini-companion-test-refusal
                             (gemini-companion-overview-accept))))
    (should-not outcomes)
    (gemini-companion-overview-test-keys "TAB")
    ;; The command that other menus call does the same; it leaves a turn to `a', which asks.
    (should (string-search "Proposal was folded"
                           (gemini-companion-test-refusal
                             (call-interactively #'gemini-companion-edit-accept))))
    (should-not outcomes)
    (gemini-companion-overview-test-keys "a")
    (should (equal '((2 . accepted)) outcomes))
    (gemini-companion-overview-test-go-to "the CLI")
    (should (gemini-companion-test-refusal
              (call-interactively #'gemini-companion-edit-accept)))
    (should-not (assq 1 outcomes))
    (gemini-companion-overview-test-go-to "proposal .* a  ")
    (should (string-match-p "proposal .* a  " (gemini-companion-overview-test-here)))
    ;; Just drawn, it is not accepted.
    (gemini-companion-overview-test-keys "g")
    (cl-letf (((symbol-function 'gemini-companion-overview-page-displayed-p) #'ignore))
      (dolist (command '(gemini-companion-overview-accept
                         gemini-companion-overview-reject
                         gemini-companion-overview-reject-with-reason))
        (should (string-search "has just appeared"
                               (gemini-companion-test-refusal
                                 (funcall command))))))
    ;; Another text than the one that was drawn is not accepted.
    (with-current-buffer (gemini-companion-edit-proposal-buffer
                          (car (gemini-companion-edits-open)))
      (goto-char (point-max))
      (let ((inhibit-read-only t))
        (insert "four\n")))
    (should (string-search "has changed"
                           (gemini-companion-test-refusal
                             (gemini-companion-overview-accept))))
    ;; So is one of which a hunk was excluded or restored elsewhere.
    (let ((edit (car (gemini-companion-edits-open))))
      (dotimes (_ 2)
        (with-temp-buffer
          (gemini-companion-edit-hunks-toggle
           edit (car (gemini-companion-edit-hunks edit))))
        (should (string-search "has changed"
                               (gemini-companion-test-refusal
                                 (gemini-companion-overview-accept))))))
    (gemini-companion-overview-test-go-to "\\+three")
    (should (equal "Hunk excluded; x restores it"
                   (gemini-companion-overview-test-keys "x")))
    (should (member "x+three" (mapcar #'string-trim
                                      (gemini-companion-overview-test-lines))))
    (gemini-companion-overview-test-keys "a")
    (should (equal '((1 . accepted) (2 . accepted)) outcomes))))

;; The same key interrupts a CLI in its terminal.
(ert-deftest gemini-companion-overview-chord-accepts-a-proposal-and-nothing-else ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n"))
    (gemini-companion-test-open "a" "one\n2\nthree\n" 1 session)
    (gemini-companion-list)
    (gemini-companion-test-answering (lambda (_) (error "Asked"))
      (gemini-companion-overview-test-go-to "\\`Waiting")
      (should (equal "No proposal here"
                     (gemini-companion-test-refusal
                      (gemini-companion-overview-accept-proposal))))
      (should-not outcomes)
      (gemini-companion-overview-test-go-to "\\+three")
      (gemini-companion-overview-test-keys "C-c C-c")
      (should (equal '((1 . accepted)) outcomes)))))

;; In Ediff, "a" is about one hunk.
(ert-deftest gemini-companion-overview-letter-in-a-hunk-of-several-asks ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n4\n5\n"))
    (gemini-companion-test-open "a" "one\n2\nthree\n4\nfive\n" 1 session)
    (gemini-companion-list)
    (gemini-companion-overview-test-go-to "\\+three")
    (gemini-companion-overview-test-keys "x")
    (let ((asked nil))
      (gemini-companion-test-answering (lambda (question) (ignore (push question asked)))
        (gemini-companion-overview-test-keys "a"))
      (should (equal '("Accept all 2 hunks?") asked)))
    (should-not outcomes)
    ;; On the row, it is about the file.
    (gemini-companion-test-answering (lambda (_) (error "Asked"))
      (gemini-companion-overview-test-go-to "proposal .* a  ")
      (gemini-companion-overview-test-keys "a"))
    (should (equal '((1 . accepted)) outcomes))))

(ert-deftest gemini-companion-overview-stays-at-a-proposal-that-is-replaced ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n") ("b" "B\n"))
    (gemini-companion-test-open "a" "one\n2\n3\n" 1 session)
    (gemini-companion-test-open "b" "C\n" 2 (gemini-companion-test-session "s2" 2))
    (gemini-companion-list)
    (gemini-companion-overview-test-go-to "proposal .* a  ")
    (cl-letf (((symbol-function 'gemini-companion-overview-page-displayed-p) #'ignore))
      (gemini-companion-test-open "a" "uno\n2\n3\n" 3 session)
      (dolist (problem '("Proposal has changed" "Proposal has just appeared"))
        (should (string-search problem
                               (gemini-companion-test-refusal
                                 (gemini-companion-overview-test-keys "a"))))
        (should (string-match-p "\\`▾ proposal .* a  "
                                (gemini-companion-overview-test-here)))))
    (should (seq-some (apply-partially #'string-suffix-p "+uno")
                      (gemini-companion-overview-test-lines)))
    (should-not (assq 3 outcomes))
    (gemini-companion-overview-test-keys "a")
    (should (equal '(3 . accepted) (car outcomes)))))

(ert-deftest gemini-companion-overview-has-a-context-menu-for-what-was-clicked ()
  (gemini-companion-overview-test-with '(("a" "1\n") ("b" "B\n"))
    (gemini-companion-test-open "a" "one\n" 1 session)
    (gemini-companion-test-open "b" "C\n" 2 (gemini-companion-test-session "s2" 2))
    (gemini-companion-list)
    (cl-letf (((symbol-function 'gemini-companion-overview-page-displayed-p) #'always))
      (let ((item (lambda ()
                    (lookup-key (context-menu-map
                                 `(mouse-3 (,(selected-window) ,(point) (0 . 0) 0)))
                                [gemini-companion-overview-accept])))
            opened)
        (gemini-companion-overview-test-go-to "\\+one")
        (setq opened (funcall item))
        ;; It is withdrawn while the menu is open, and another one takes its place.
        (gemini-companion-edit-reject (gemini-companion-edit-of-id 1))
        (gemini-companion-page-refresh)
        (gemini-companion-overview-test-go-to "proposal .* b  ")
        (gemini-companion-overview-page-unfold (gemini-companion-overview-page-row))
        (should (string-search "has changed since the menu"
                               (gemini-companion-test-refusal
                                 (call-interactively opened))))
        (should-not (assq 2 outcomes))
        ;; Drawing the same again changes nothing.
        (setq opened (funcall item))
        (gemini-companion-page-refresh)
        (call-interactively opened)
        (should (equal '(2 . accepted) (car outcomes)))))))

(ert-deftest gemini-companion-overview-refuses-keys-for-what-was-written ()
  (gemini-companion-overview-test-with-turn
    (dolist (place '("\\+one" "auto .* a  "))
      (gemini-companion-overview-test-go-to place)
      (pcase-dolist (`(,command . ,error)
                     '((gemini-companion-overview-accept . "k keeps it")
                       (gemini-companion-overview-reject . "u undoes it")
                       (gemini-companion-overview-exclude . "u undoes it")))
        (should (string-search error (gemini-companion-test-refusal
                                       (funcall command))))))
    (should (= 3 (gemini-companion-test-left)))))

(ert-deftest gemini-companion-overview-answers-all-of-one-cli-after-asking ()
  (gemini-companion-overview-test-with '(("a" "one\n"))
    (pcase-dolist (`(,id ,number ,file) '((1 1 "a") (2 2 "b") (3 1 "c") (4 1 "d")))
      (gemini-companion-test-open file "new\n" id
                                  (gemini-companion-test-session
                                   (format "s%d" number) number)))
    (gemini-companion-list)
    (gemini-companion-overview-test-go-to "\\`. the CLI ([^,]*)  ")
    (gemini-companion-overview-test-keys "a" 'no)
    (should-not outcomes)
    (gemini-companion-overview-test-keys "a" 'yes)
    (should (equal '((4 . accepted) (3 . accepted) (1 . accepted)) outcomes))
    (gemini-companion-overview-test-go-to "proposal")
    (gemini-companion-overview-test-keys "r")
    (should (equal '(2 . rejected) (car outcomes)))))

(ert-deftest gemini-companion-overview-says-once-why-an-edit-was-not-auto-accepted ()
  (gemini-companion-overview-test-with '((".env" "1\n"))
    (let ((edit (gemini-companion-test-open ".env" "2\n" 1 session)))
      (gemini-companion-auto-accept session)
      (should (gemini-companion-edit-open-p edit))
      (gemini-companion-list)
      (gemini-companion-overview-test-go-to "proposal")
      (let ((row (with-current-buffer "*gemini*"
                   (gemini-companion-overview-draw-heading
                    (gemini-companion-overview-page-row) "" 200))))
        (should (string-search
                 "  not auto-accepted: hidden, or may be run automatically" row))
        (should-not (string-match-p "accepted.*accepted" row))))))

(ert-deftest gemini-companion-overview-rejects-with-the-comments-as-the-reason ()
  (gemini-companion-test-needs-add-on 'prompts)
  (gemini-companion-comment-test-with '(("a" "1\n2\n3\n"))
    (gemini-companion-test-open "a" "1\ntwo\n3\n" 1 session)
    (gemini-companion-list)
    (gemini-companion-overview-test-go-to "\\+two")
    (gemini-companion-overview-test-keys "c" "Too long")
    (let ((reasons nil))
      (cl-letf (((symbol-function 'gemini-companion-session-terminal) #'always)
                ((symbol-function 'gemini-companion-prompt-submit)
                 (lambda (text _find _seconds _problem ended)
                   (push text reasons)
                   (funcall ended 'sent))))
        (run-hook-with-args 'pre-redisplay-functions (selected-window))
        (let ((gemini-companion-overview-page-seconds 0))
          (gemini-companion-overview-test-keys "r")))
      (should (equal '((1 . rejected)) outcomes))
      (should (string-match-p "a:2.*\\(\n.*\\)*Too long" (car reasons)))
      (should-not (cdr reasons)))
    ;; They were the reason, and are not sent again.
    (should-not (gemini-companion-comments-unsent))))

;; They were sent, and no window had shown them.
(ert-deftest gemini-companion-overview-counts-comments-on-files-without-changes ()
  (gemini-companion-comment-test-with '(("a" "1\n2\n3\n") ("b" "1\n2\n"))
    (pcase-let ((`(,a ,b) (mapcar #'expand-file-name '("a" "b"))))
      (dolist (file (list a b))
        (find-file file)
        (goto-char (point-min))
        (forward-line)
        (gemini-companion-comment-test-comment "Why?")
        (kill-buffer))
      (gemini-companion-list)
      (dolist (file (list a b a))
        (select-window (get-buffer-window "*gemini*"))
        (gemini-companion-overview-test-go-to "2 comments on files without changes")
        (gemini-companion-overview-test-keys "RET")
        (with-current-buffer (window-buffer)
          (should (equal (list file 2)
                         (list buffer-file-name (line-number-at-pos (window-point)))))
          (should (equal '((2 . ">> Why?")) (gemini-companion-comment-test-shown)))
          ;; A narrowing hid the comment.
          (narrow-to-region 1 2)))
      ;; A directory in the place of a file hid the other ones.
      (kill-buffer (get-file-buffer a))
      (delete-file a)
      (make-directory a)
      (dolist (shown (list b b))
        (select-window (get-buffer-window "*gemini*"))
        (gemini-companion-overview-test-go-to "2 comments on files without changes")
        (gemini-companion-overview-test-keys "RET")
        (should (equal shown (buffer-file-name (window-buffer)))))
      (delete-file b)
      (make-directory b)
      (select-window (get-buffer-window "*gemini*"))
      (should (string-search "is not a regular file"
                             (gemini-companion-test-refusal
                               (gemini-companion-overview-test-keys "RET")))))
    (gemini-companion-remove-comments 'all)
    (select-window (get-buffer-window "*gemini*"))
    (revert-buffer)
    (should-not (string-search "without changes" (buffer-string)))))

(ert-deftest gemini-companion-overview-rejects-several-for-one-reason ()
  (gemini-companion-overview-test-with '(("a" "one\n"))
    (pcase-dolist (`(,id ,number ,file) '((1 1 "a") (2 2 "b") (3 1 "c")))
      (gemini-companion-test-open file "new\n" id
                                  (gemini-companion-test-session
                                   (format "s%d" number) number)))
    (gemini-companion-list)
    (dolist (regexp '("\\`. the CLI ([^,]*)  .*2 to answer" "Waiting"))
      (gemini-companion-overview-test-go-to regexp)
      (should (string-search "No reason given"
                             (gemini-companion-test-refusal
                               (gemini-companion-overview-test-keys "R" " ")))))
    (should-not outcomes)
    (let ((reasons nil))
      (cl-letf (((symbol-function 'gemini-companion-session-terminal) #'always)
                ((symbol-function 'gemini-companion-prompt-submit)
                 (lambda (text find &rest _)
                   (push (list (gemini-companion-session-id (funcall find)) text)
                         reasons))))
        (gemini-companion-overview-test-keys "R" "Not now"))
      ;; Each CLI gets it once.
      (should (equal '(("s1" "Not now") ("s2" "Not now"))
                     (sort reasons (lambda (a b) (string< (car a) (car b)))))))
    (should (equal '((1 . rejected) (2 . rejected) (3 . rejected))
                   (sort (copy-sequence outcomes)
                         (lambda (a b) (< (car a) (car b))))))))

;; The reason of several had keys that were typed before it was asked for.
(ert-deftest gemini-companion-overview-reason-has-no-keys-that-were-typed-ahead ()
  (dolist (count '(1 2))
    (gemini-companion-overview-test-with '(("a" "one\n") ("b" "one\n"))
      (dotimes (n count)
        (gemini-companion-test-open (nth n '("a" "b")) "new\n" n session))
      (gemini-companion-list)
      (gemini-companion-overview-test-go-to "Waiting")
      (let ((waiting t))
        (cl-letf (((symbol-function 'discard-input) (lambda () (setq waiting nil)))
                  ((symbol-function 'read-string)
                   (lambda (prompt &rest _)
                     (user-error "%s%s" (if waiting "Typed ahead: " "") prompt))))
          (with-current-buffer "*gemini*"
            (should (string-prefix-p "Reject"
                                     (gemini-companion-test-refusal
                                       (gemini-companion-overview-reject-with-reason)))))))
      (should-not outcomes))))

(ert-deftest gemini-companion-overview-goes-over-rows-and-changes ()
  (gemini-companion-overview-test-with-turn
    (goto-char (point-min))
    (let ((seen nil))
      (dotimes (_ 5)
        (gemini-companion-overview-test-keys "n")
        (push (string-trim (gemini-companion-overview-test-here)) seen))
      (should (equal '("▾ 00:00  Do it  2 files  +3 −3  3 left"
                       "▾ auto  +2 −2  a  2 left" "1     -1" "9     -9"
                       "▸ auto  +1 −1  b  1 left")
                     (mapcar (lambda (line) (replace-regexp-in-string " -" " -" line))
                             (mapcar (lambda (line)
                                       (pcase line ("-1" "1     -1") ("-9" "9     -9")
                                              (_ line)))
                                     (nreverse seen))))))
    (should-error (gemini-companion-overview-next) :type 'user-error)
    (gemini-companion-overview-test-keys "p p M-n M-n")
    (should (string-suffix-p "-B" (gemini-companion-overview-test-here)))
    (gemini-companion-overview-test-keys "M-p ^")
    (should (string-search "a  2 left" (gemini-companion-overview-test-here)))
    (gemini-companion-overview-test-keys "M-n")
    (should (string-search "b  1 left" (gemini-companion-overview-test-here)))
    (gemini-companion-overview-test-keys "^ ^")
    (should (string-prefix-p "▾ the CLI" (gemini-companion-overview-test-here)))
    (should-error (gemini-companion-overview-up) :type 'user-error)))

(ert-deftest gemini-companion-overview-visits-the-line-at-point ()
  (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "1\n2\n3\n4\n5\n7\n8\nNINE\n" session)
    (gemini-companion-turn-page)
    (gemini-companion-overview-test-keys "M-n")
    (let ((here (gemini-companion-overview-test-here)))
      (gemini-companion-overview-test-keys "C-o")
      (should (equal "*gemini*" (buffer-name (window-buffer))))
      (should (equal here (gemini-companion-overview-test-here))))
    (gemini-companion-overview-test-keys "RET")
    (should (equal "a" (buffer-name (window-buffer))))
    (should (equal "NINE" (with-current-buffer (window-buffer)
                            (buffer-substring (point) (line-end-position)))))
    (delete-file "a")
    (gemini-companion-turn-page)
    (gemini-companion-overview-test-go-to "auto")
    (should (string-search "was deleted or renamed"
                           (gemini-companion-test-refusal
                             (gemini-companion-overview-visit))))))

;; The review took the place of the overview, and was selected.
(ert-deftest gemini-companion-overview-shows-the-file-of-a-proposal-beside ()
  (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-open "a" "1\n2\n3\n4\n5\n6\n7\n8\nNINE\n" 1 session)
    (gemini-companion-test-open "new" "x\n" 2 session)
    (gemini-companion-list)
    (gemini-companion-overview-test-go-to "\\+NINE")
    (gemini-companion-overview-test-keys "C-o")
    (should (equal "*gemini*" (buffer-name (window-buffer))))
    (should (string-search "NINE" (gemini-companion-overview-test-here)))
    (let ((window (get-buffer-window "a")))
      (should window)
      (with-selected-window window
        (should (equal "9" (buffer-substring (line-beginning-position)
                                             (line-end-position))))))
    (gemini-companion-overview-test-go-to "proposal.* new")
    (should (string-search "does not exist yet"
                           (gemini-companion-test-refusal
                             (gemini-companion-overview-test-keys "C-o"))))))

(ert-deftest gemini-companion-overview-visits-a-line-of-what-was-not-written ()
  (dolist (end (list #'gemini-companion-edit-reject
                     (lambda (edit) (gemini-companion-proposal-close edit 'closed))))
    (gemini-companion-overview-test-with '(("a" "1\n2\n3\n"))
      (funcall end (gemini-companion-test-open "a" "1\n2\nnew\nmore\n3\n" 1 session))
      (gemini-companion-list)
      (gemini-companion-overview-test-go-to "\\(?:rejected\\|closed\\)  \\+2")
      (gemini-companion-overview-test-keys "TAB")
      ;; There is no such line in the file, but the one that follows.
      (gemini-companion-overview-test-go-to "\\+more")
      (gemini-companion-overview-test-keys "RET")
      (should (equal (expand-file-name "a" directory) (buffer-file-name (window-buffer))))
      (with-current-buffer (window-buffer)
        (should (= 3 (line-number-at-pos)))))))

(ert-deftest gemini-companion-overview-undoes-whole-edits-after-they-were-kept ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n") ("b" "1\n"))
    (gemini-companion-state-report session 'prompt "Do it")
    (gemini-companion-test-writes "a" "one\n2\nthree\n" session)
    (gemini-companion-test-writes "b" "2\n" session)
    (gemini-companion-test-writes "new" "x\n" session)
    (gemini-companion-turn-page)
    (gemini-companion-overview-test-go-to "Do it")
    (gemini-companion-overview-test-keys "k" 'yes)
    (should-not (gemini-companion-test-left))
    (gemini-companion-overview-test-go-to "auto .* a  ")
    (should (string-search "undoes kept ones"
                           (gemini-companion-test-refusal
                             (gemini-companion-overview-undo))))
    (gemini-companion-overview-test-keys "C-u u" 'yes)
    (should (equal "1\n2\n3\n" (gemini-companion-test-file-text "a")))
    (gemini-companion-overview-test-go-to "Do it")
    (should (equal "Undid 2 edits" (gemini-companion-overview-test-keys "C-u u" 'yes)))
    (should (equal "1\n" (gemini-companion-test-file-text "b")))
    (should-not (file-exists-p "new"))))

(ert-deftest gemini-companion-overview-undoes-an-edit-with-a-corrected-line ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n"))
    (gemini-companion-test-writes "a" "1\ntwo\n3\n" session)
    (gemini-companion-test-write "a" "1\nmine\n3\n")
    (run-hook-with-args 'gemini-companion-watch-turned-functions nil)
    (gemini-companion-list)
    (gemini-companion-overview-test-go-to "auto")
    (let ((kill-ring nil))
      (should (equal "Undid a" (gemini-companion-overview-test-keys "C-u u" 'yes)))
      (should (equal '("mine\n") kill-ring)))
    (should (equal "1\n2\n3\n" (gemini-companion-test-file-text "a")))
    ;; The overview is drawn again.
    (should (gemini-companion-overview-test-rows "a  undone"))))

;; In a folded row, the line of the user is not displayed.
(ert-deftest gemini-companion-overview-asks-before-a-row-takes-a-line-of-the-user ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n"))
    (gemini-companion-test-writes "a" "1\ntwo\n3\n" session)
    (gemini-companion-test-write "a" "1\nmine\n3\n")
    (gemini-companion-list)
    (gemini-companion-overview-test-go-to "auto")
    (let ((kill-ring nil))
      (should (equal "Not undone"
                     (gemini-companion-test-refusal
                       (gemini-companion-overview-test-keys "u" 'no))))
      (should (equal "1\nmine\n3\n" (gemini-companion-test-file-text "a")))
      (gemini-companion-overview-test-keys "u" 'yes)
      (should (equal "1\n2\n3\n" (gemini-companion-test-file-text "a")))
      (should (equal '("mine\n") kill-ring)))))

(ert-deftest gemini-companion-overview-ignores-letters-that-were-typed-in-a-file ()
  (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines))
    (progn
      (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
      (gemini-companion-test-walk #'gemini-companion-next-change "d")
      (should (equal "*gemini*" (buffer-name (window-buffer))))
      ;; The keys are no longer those of the walk.
      (should-not (gemini-companion-walk-on-p))
      (should (eq #'gemini-companion-overview-keep
                  (with-current-buffer (window-buffer)
                    (key-binding (kbd "k")))))
      (dolist (command '(gemini-companion-overview-keep gemini-companion-overview-undo
                                                        gemini-companion-overview-reject))
        (should (string-search "Key ignored"
                               (gemini-companion-test-refusal
                                 (with-current-buffer (window-buffer)
                                   (funcall command)))))))))

(ert-deftest gemini-companion-overview-names-the-keys-of-what-is-at-point ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n") ("b" "B\n"))
    (gemini-companion-state-report session 'prompt "Do it")
    (gemini-companion-test-writes "a" "one\n2\n3\n" session)
    (gemini-companion-test-open "b" "C\n" 2 session)
    (gemini-companion-list)
    (cl-flet ((header ()
                (set-window-start nil (point-min))
                (cl-letf (((symbol-function 'window-width) (lambda (&rest _) 200)))
                  (substring-no-properties (gemini-companion-overview-test-header)))))
      (gemini-companion-overview-test-go-to "\\+C")
      (should (equal " b 1 of 1   ? keys  a accept  r reject  c comment  x exclude\
  e edit  RET review"
                     (header)))
      (gemini-companion-overview-test-go-to "Do it")
      (should (string-suffix-p "   ? keys  a accept  r reject  k keep  u undo\
  c comment  RET first  M-n next turn  TAB fold"
                               (header)))
      (gemini-companion-turn-page)
      (should (equal " a 1 of 1   ? keys  k keep  u undo  K keep file  U undo file\
  c comment  l later  RET visit  n next"
                     (header)))
      ;; There is nothing to accept any more.
      (gemini-companion-edit-reject (car (gemini-companion-edits-open)))
      (gemini-companion-list)
      (gemini-companion-overview-test-go-to "Do it")
      (should (string-suffix-p "   ? keys  k keep  u undo  c comment  RET first\
  M-n next turn  TAB fold"
                               (header)))
      (gemini-companion-turn-page)
      (gemini-companion-overview-test-keys "c" "Too long")
      (should (string-prefix-p " a 1 of 1   ? keys  s send 1  k keep" (header)))
      (gemini-companion-remove-comments 'all))))

;; At most eight: more are not seen beside the name of a file.
(ert-deftest gemini-companion-overview-names-a-few-keys ()
  (let ((kinds nil))
    (dolist (row (gemini-companion-commands-in 'overview))
      (pcase-dolist (`(,kind . ,_) (plist-get (nthcdr 4 row) :words))
        (cl-incf (alist-get kind kinds 0))))
    (should kinds)
    (should (seq-every-p (lambda (kind) (<= (cdr kind) 8)) kinds))))

(ert-deftest gemini-companion-overview-takes-back-what-was-decided-in-any-file ()
  (gemini-companion-overview-test-with-turn
    (gemini-companion-test-writes "new" "x\n" session)
    (gemini-companion-overview-test-keys "g")
    (gemini-companion-turn-page)
    (gemini-companion-overview-test-keys "k")
    (should (= 3 (gemini-companion-test-left)))
    (gemini-companion-overview-test-keys "C-u U" 'yes)
    (should-not (gemini-companion-test-left))
    (should-not (file-exists-p "new"))
    (should (equal "B\n" (gemini-companion-test-file-text "b")))
    ;; The last one comes back with all of its files, and then the one before.
    (gemini-companion-overview-test-keys "C-/")
    (should (equal "x\n" (gemini-companion-test-file-text "new")))
    (should (equal "C\n" (gemini-companion-test-file-text "b")))
    (should (= 3 (gemini-companion-test-left)))
    (should (gemini-companion-overview-test-rows "3 of 4 left"))
    (gemini-companion-overview-test-keys "C-/")
    (should (= 4 (gemini-companion-test-left)))
    (should (gemini-companion-overview-test-rows "4 left"))
    (call-interactively (key-binding [remap undo-redo]))
    (should (= 3 (gemini-companion-test-left)))))

;;;; What arrives

(ert-deftest gemini-companion-overview-does-not-move-within-a-second-of-a-key ()
  (gemini-companion-overview-test-with-turn
    (let ((gemini-companion-overview-busy-seconds 1000))
      (gemini-companion-overview-test-keys "n")
      (gemini-companion-test-writes "c" "x\n" session)
      (gemini-companion-test-run-timers "page")
      (should-not (gemini-companion-overview-test-rows " c  "))
      (setq gemini-companion-overview-busy-seconds 0)
      (gemini-companion-test-run-timers "page")
      (should (gemini-companion-overview-test-rows " c  ")))))

(ert-deftest gemini-companion-overview-shows-what-arrives-as-a-row ()
  (gemini-companion-test-with-reviews '(("a" "1\n") ("b" "1\n"))
    (gemini-companion-list)
    (let ((windows (gemini-companion-test-window-names))
          (gemini-companion-review-arrival 'when-idle)
          (edit (gemini-companion-test-open "a" "2\n")))
      (gemini-companion-test-eventually
        (gemini-companion-overview-test-rows "proposal"))
      (should (equal windows (gemini-companion-test-window-names)))
      (should (eq 'pending (gemini-companion-edit-status edit)))
      ;; It has appeared; if the review always begins, it does here as well.
      (setq gemini-companion-review-arrival 'now)
      (setq edit (gemini-companion-test-open "b" "2\n" 2))
      (gemini-companion-test-eventually
        (eq 'shown (gemini-companion-edit-status edit)))
      (should (= 1 (seq-count #'gemini-companion-edit-view
                              (gemini-companion-edits-open)))))
    (gemini-companion-part-stop 'overview)))

(ert-deftest gemini-companion-overview-goes-to-the-row-of-the-review ()
  (gemini-companion-test-with-reviews '(("a" "1\n") ("b" "1\n"))
    (setq gemini-companion-review-arrival 'notify)
    (gemini-companion-test-open "a" "2\n" 1)
    (gemini-companion-arrival-view (gemini-companion-test-open "b" "2\n" 2) 'requested)
    (gemini-companion-test-call #'gemini-companion-list)
    (should (equal "*gemini*" (buffer-name (window-buffer))))
    (should (string-match-p "proposal .* b  " (gemini-companion-overview-test-here)))
    ;; Its review begins again there.
    (should-not (gemini-companion-edit-shown))
    (gemini-companion-part-stop 'overview)))

(ert-deftest gemini-companion-overview-edits-a-proposal-in-its-review ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (setq gemini-companion-review-arrival 'notify)
    (gemini-companion-test-open "a" "2\n" 1)
    (gemini-companion-test-call #'gemini-companion-list)
    (gemini-companion-overview-test-go-to " a  ")
    (execute-kbd-macro "e")
    (should (equal "*gemini proposal: a*" (buffer-name (window-buffer))))
    (gemini-companion-part-stop 'overview)))

;;;; Others

(ert-deftest gemini-companion-overview-moves-point-in-one-window-of-a-file ()
  (let ((lines (mapconcat #'number-to-string (number-sequence 1 60) "\n")))
    (gemini-companion-overview-test-with `(("a" ,lines))
      (gemini-companion-overview-test-turns session
        ("Do it" ("a" (string-replace "\n10\n" "\nten\n" lines))))
      (delete-other-windows)
      (let* ((file (find-file-noselect "a"))
             (first (split-window))
             (second (split-window first)))
        (set-window-buffer first file)
        (set-window-buffer second file)
        (switch-to-buffer (progn (gemini-companion-turn-page)
                                 (gemini-companion-overview-buffer)))
        (dolist (visit (list (lambda () (funcall next-error-function 1 t))
                             #'gemini-companion-overview-display
                             #'gemini-companion-overview-visit))
          (set-window-buffer first file)
          (set-window-buffer second file)
          (set-window-point first 1)
          (set-window-point second 1)
          (select-window (get-buffer-window (gemini-companion-overview-buffer)))
          (save-current-buffer
            (funcall visit))
          (should (equal (with-current-buffer file
                           (list 1 (gemini-companion-hunk-position 9)))
                         (sort (mapcar #'window-point (list first second)) #'<))))))))

(ert-deftest gemini-companion-overview-has-an-index-and-next-error ()
  (gemini-companion-overview-test-with-turn
    ;; Of each CLI its turns, and of each turn its files.
    (pcase (funcall imenu-create-index-function)
      (`((,_ (,turn ("a" . ,a) ("b" . ,b))))
       (should (string-match-p "\\`[0-9:]+  Do it\\'" turn))
       (should (< (point-min) a b)))
      (index (ert-fail index)))
    (let ((next-error-last-buffer (current-buffer)))
      (funcall next-error-function 1 t)
      (should (equal "a" (buffer-name (window-buffer))))
      (with-current-buffer "*gemini*"
        (funcall next-error-function 2 nil))
      (should (equal "b" (buffer-name (window-buffer)))))))

;; As after `compile': the next one is not displayed in place of the list.
(ert-deftest gemini-companion-overview-stays-displayed-for-next-error ()
  (gemini-companion-overview-test-with-turn
    (let ((next-error-last-buffer nil)
          (inhibit-message t)
          (here (lambda ()
                  (with-current-buffer (window-buffer)
                    (list (buffer-name) (line-number-at-pos (window-point)))))))
      (gemini-companion-overview-test-keys "RET")
      (should (equal '("a" 1) (funcall here)))
      (pcase-dolist (`(,key . ,there) '(("M-g n" "a" 9) ("M-g n" "b" 1)
                                        ("M-g p" "a" 9)))
        (gemini-companion-overview-test-keys key)
        (should (equal there (funcall here)))
        (should (= 2 (length (window-list))))
        (should (get-buffer-window "*gemini*"))
        ;; Its window is at the change, too.
        (should (equal (if (equal there '("b" 1)) "-B" "-9")
                       (with-selected-window (get-buffer-window "*gemini*")
                         (substring-no-properties
                          (gemini-companion-overview-test-here))))))
      ;; Each change is shown beside it.
      (select-window (get-buffer-window "*gemini*"))
      (next-error-follow-minor-mode)
      (gemini-companion-overview-test-keys "p")
      (should (equal "*gemini*" (car (funcall here))))
      (should (= 1 (with-current-buffer "a"
                     (line-number-at-pos (window-point (get-buffer-window "a")))))))))

(ert-deftest gemini-companion-overview-has-the-conversion-of-a-file ()
  (gemini-companion-overview-test-with '(("a" "1\r\n2\r\n3\r\n"))
    (let ((file (expand-file-name "a")))
      (gemini-companion-test-write file "1\n2\nthree\n")
      (gemini-companion-reported-write session file "1\r\n2\r\n3\r\n" "1\n2\nthree\n")
      (gemini-companion-turn-page)
      (should (gemini-companion-overview-test-rows " a .*line ends CRLF → LF"))
      (gemini-companion-overview-test-go-to "-3")
      (gemini-companion-overview-test-keys "k")
      (should-not (gemini-companion-test-left))
      (should (gemini-companion-overview-test-rows " a .*line ends CRLF → LF")))))

(ert-deftest gemini-companion-overview-shows-one-review-and-the-other-waits-again ()
  (gemini-companion-test-with-reviews '(("a" "1\n") ("b" "1\n"))
    (let ((states (lambda ()
                    (mapcar #'gemini-companion-edit-status
                            (gemini-companion-edits-open))))
          (second nil))
      (gemini-companion-test-show "a" "2\n")
      (with-current-buffer "*gemini proposal: a*"
        (goto-char (point-min))
        (insert "mine "))
      (setq second (gemini-companion-test-open "b" "2\n" 2))
      (execute-kbd-macro (kbd "C-u M-x gemini-companion-review RET M-n RET"))
      (should (equal '(pending shown) (funcall states)))
      (gemini-companion-test-accept-inside second)
      (gemini-companion-test-eventually (equal '(shown) (funcall states)))
      (gemini-companion-test-accept-inside (car (gemini-companion-edits-open)))
      (should (equal '((1 accepted "mine 2\n") (2 accepted "2\n")) outcomes)))
    (gemini-companion-part-stop 'overview)))

(ert-deftest gemini-companion-overview-names-what-it-cannot-undo-before-the-rest ()
  (gemini-companion-overview-test-with '(("a" "1\n") ("b" "1\n") ("c" "1\n"))
    (dolist (file '("a" "b" "b" "c"))
      (gemini-companion-test-writes
       file (concat (gemini-companion-test-file-text file) "2\n") session))
    (gemini-companion-test-open "a" "new\n" 7 session)
    (gemini-companion-turn-page session)
    (gemini-companion-overview-test-go-to "3 files")
    (let ((asked nil))
      (gemini-companion-test-answering (lambda (prompt) (push prompt asked) t)
        (should (equal "Undid 3 edits; a has a proposal that awaits an answer; \
answer that first"
                       (gemini-companion-overview-test-keys "C-u u"))))
      (should (equal '("Leaves out a: undo 3 edits as a whole?") asked)))
    (should (equal '("1\n2\n" "1\n" "1\n")
                   (mapcar #'gemini-companion-test-file-text '("a" "b" "c"))))))

(ert-deftest gemini-companion-overview-undoes-a-turn-on-a-host-one-by-one ()
  (gemini-companion-test-needs-add-on 'remote)
  (gemini-companion-overview-test-with '(("a" "1\n"))
    (gemini-companion-part-stop 'changes)
    (let ((gemini-companion-remote-names-copies `(("/ssh:far:" . ,directory)))
          (gemini-companion-remote-names-hosts
           (list (list "/ssh:far:" :state "connected")))
          calls)
      (dolist (text '("2\n" "3\n" "4\n"))
        (gemini-companion-test-accept "a" text))
      (cl-letf (((symbol-function 'gemini-companion-server-ask)
                 (lambda (&rest call) (push call calls))))
        (gemini-companion-list)
        (gemini-companion-overview-test-go-to "1 file")
        (gemini-companion-overview-test-keys "C-u u" 'yes)
        ;; The first of them is still being written.
        (should (string-match-p "a is being written; wait for that"
                                (gemini-companion-test-refusal
                                  (gemini-companion-overview-test-keys "C-u u" 'yes))))
        (pcase-dolist (`(,text ,problem ,count) '(("3\n" nil 1) ("2\n" nil 2)
                                                  (nil "it has changed there" 3)))
          (should (= count (length calls)))
          (pcase-let ((`(remote-write ,args ,done ,failed) (car calls))
                      (now (gemini-companion-test-file-text "a")))
            (should (equal args `( "/ssh:far:" "/a" ,(secure-hash 'sha256 now)
                                   ,(base64-encode-string (or text "1\n")))))
            (if problem
                (should (equal "Undid 2 of 3 edits; \
ssh:far:a cannot be written (it has changed there)" (funcall failed problem)))
              (gemini-companion-test-write "a" text)
              (funcall done t))))))))

(defmacro gemini-companion-overview-test-stopping (hook &rest body)
  "Run BODY, and type \\`C-g' once as HOOK is run."
  (declare (indent 1) (debug t))
  `(let* ((stopped nil)
          (stop (lambda (&rest _)
                  (when (and inhibit-quit (not stopped))
                    (setq stopped t
                          quit-flag t)))))
     (unwind-protect
         (progn
           (add-hook ',hook stop)
           ,@body)
       (remove-hook ',hook stop))))

(ert-deftest gemini-companion-overview-stops-between-two-files ()
  (gemini-companion-overview-test-with '(("a" "A\n") ("b" "B\n") ("c" "C\n"))
    (gemini-companion-state-report session 'prompt "Do it")
    (dolist (file '("a" "b" "c"))
      (gemini-companion-test-writes file "X\n" session))
    (gemini-companion-turn-page)
    (cl-flet ((texts ()
                (mapcar #'gemini-companion-text-read '("a" "b" "c"))))
      (gemini-companion-overview-test-stopping gemini-companion-changes-undo-functions
        (should (string-prefix-p
                 "Undid 1 change in 1 file; stopped, 2 left"
                 (gemini-companion-overview-test-keys "C-u U" 'yes))))
      (should (equal '("X\n" "X\n" "C\n") (texts)))
      ;; No file is visited for that.
      (should-not (seq-some #'get-file-buffer '("a" "b" "c")))
      (should (equal "Taken back: undo of 1 change"
                     (gemini-companion-overview-test-keys "C-_")))
      (should (equal '("X\n" "X\n" "X\n") (texts)))
      (should (string-prefix-p "Undid 3 changes in 3 files"
                               (gemini-companion-overview-test-keys "C-u U" 'yes)))
      (should (equal '("A\n" "B\n" "C\n") (texts)))
      (gemini-companion-overview-test-stopping gemini-companion-changes-functions
        (should (string-prefix-p "Taken back: 1 of 3 files of undo of 3 changes; stopped"
                                 (gemini-companion-overview-test-keys "C-_"))))
      (should (= 1 (seq-count (apply-partially #'equal "X\n") (texts))))
      ;; The rest is taken back, and all is redone, one after another.
      (gemini-companion-overview-test-keys "C-_")
      (should (equal '("X\n" "X\n" "X\n") (texts)))
      (gemini-companion-decision-redo)
      (gemini-companion-decision-redo)
      (should (equal '("A\n" "B\n" "C\n") (texts)))
      (gemini-companion-decision-undo)
      (gemini-companion-decision-undo))
    (gemini-companion-page-refresh)
    (gemini-companion-overview-test-stopping gemini-companion-changes-functions
      (should (string-prefix-p "Kept 1 change; stopped, 2 left"
                               (gemini-companion-overview-test-keys "C-u K" 'yes))))
    (should (= 2 (gemini-companion-test-left)))))

(ert-deftest gemini-companion-overview-goes-to-what-was-taken-back ()
  (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
    (gemini-companion-state-report session 'prompt "Do it")
    (gemini-companion-test-writes
     "a" "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n" session)
    (gemini-companion-test-writes "b" "X\n" session)
    (gemini-companion-turn-page)
    (cl-flet ((line ()
                (with-current-buffer "*gemini*"
                  (buffer-substring-no-properties (line-beginning-position)
                                                  (line-end-position)))))
      (pcase-dolist (`(,new . ,old) '(("five" . "5") ("nine" . "9")))
        (gemini-companion-overview-test-go-to new)
        (gemini-companion-overview-test-keys "u")
        (should-not (equal old (line)))
        (gemini-companion-overview-test-keys "C-_")
        (should (equal old (line))))
      ;; It is unfolded for that.
      (gemini-companion-overview-test-go-to "five")
      (gemini-companion-overview-test-keys "u 1 C-_")
      (should (equal "5" (line))))))

;; The newline was the user's, and was removed when the undo was taken back.
(ert-deftest gemini-companion-overview-keeps-the-newline-that-the-user-has-added ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n4\n"))
    (gemini-companion-state-report session 'prompt "Do it")
    (gemini-companion-test-write "a" "1\n2\n3")
    (gemini-companion-reported-write session (expand-file-name "a")
                                     "1\n2\n3\n4\n" "1\n2\n3")
    (with-current-buffer (find-file-noselect "a")
      (goto-char (point-max))
      (insert "\n"))
    (gemini-companion-turn-page)
    (gemini-companion-overview-test-go-to "-4")
    (gemini-companion-overview-test-keys "u")
    (should (equal "1\n2\n3\n4\n" (gemini-companion-text-of-buffer "a")))
    (gemini-companion-overview-test-keys "C-_")
    (should (equal "1\n2\n3\n" (gemini-companion-text-of-buffer "a")))))

;; As by `git stash' in a shell, while no window shows the file.
(ert-deftest gemini-companion-overview-sees-what-others-wrote-when-the-user-goes-there ()
  (gemini-companion-overview-test-with '(("a" "1\n2\n3\n"))
    (gemini-companion-state-report session 'prompt "Do it")
    (gemini-companion-test-write "a" "1\nB\n3\n")
    (gemini-companion-reported-write session (expand-file-name "a")
                                     "1\n2\n3\n" "1\nB\n3\n")
    (find-file-noselect "a")
    (gemini-companion-turn-page)
    (cl-flet ((left ()
                (gemini-companion-overview-page-write 'fresh)
                (seq-find (lambda (line) (string-match-p "^\\+B" line))
                          (gemini-companion-overview-test-lines))))
      (should (left))
      (gemini-companion-test-write "a" "1\n2\n3\n")
      (with-current-buffer "*gemini*"
        (run-hook-with-args 'window-selection-change-functions (selected-window)))
      (gemini-companion-test-in-the-end (not (left))))))

(ert-deftest gemini-companion-overview-takes-back-an-exclusion-but-no-answer ()
  (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
    (gemini-companion-state-report session 'prompt "Do it")
    (let ((edit (gemini-companion-test-open
                 "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" 3 session)))
      (cl-flet ((excluded ()
                  (length (gemini-companion-hunk-excluded
                           (gemini-companion-edit-proposal-buffer edit)))))
        (gemini-companion-list)
        (gemini-companion-overview-test-go-to "+one")
        (gemini-companion-overview-test-keys "x")
        (should (= 1 (excluded)))
        (should (equal "Taken back: exclusion of 1 hunk"
                       (gemini-companion-overview-test-keys "C-_")))
        (should (= 0 (excluded)))
        (gemini-companion-decision-redo)
        (should (= 1 (excluded)))
        (gemini-companion-overview-test-keys "a")
        (should-not (gemini-companion-edit-open-p edit))
        (should (equal '(user-error
                         "The acceptance of a was sent and cannot be taken back")
                       (should-error (gemini-companion-decision-undo)
                                     :type 'user-error)))
        ;; The exclusion was sent with it.
        (should (string-match-p "The answer to a.* was sent"
                                (gemini-companion-overview-test-keys "C-_")))))))

(ert-deftest gemini-companion-overview-excludes-the-lines-of-the-region ()
  (gemini-companion-overview-test-with `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
    (let* ((proposed "1\nb\nc\n4\n5\n6\n7\n8\nnine\nten\n")
           (edit (gemini-companion-test-open "a" proposed 3 session))
           (transient-mark-mode t))
      (gemini-companion-test-open "b" "D\n" 4 session)
      (gemini-companion-list)
      (gemini-companion-overview-test-go-to "proposal .* b  ")
      (gemini-companion-overview-test-keys "TAB")
      (cl-flet ((x (from to)
                  (gemini-companion-overview-test-go-to from)
                  (push-mark nil t t)
                  (gemini-companion-overview-test-go-to to)
                  (end-of-line)
                  (setq mark-active t)
                  (gemini-companion-overview-test-keys "x"))
                (text () (gemini-companion-edit-text edit)))
        (should (string-search "No line of a proposal in the region"
                               (gemini-companion-test-refusal (x "5$" "6$"))))
        (should (string-search "Select lines of one proposal"
                               (gemini-companion-test-refusal (x "\\+ten" "-B"))))
        (should (string-search "Nothing else is proposed"
                               (gemini-companion-test-refusal (x "-2" "\\+ten"))))
        (should (equal proposed (text)))
        (pcase-dolist (`(,from ,to ,text)
                       '(("\\+c" "\\+c" "1\nb\n3\n4\n5\n6\n7\n8\nnine\nten\n")
                         ("-2" "-2" "1\n2\nc\n4\n5\n6\n7\n8\nnine\nten\n")
                         ("\\+c" "\\+nine" "1\nb\n3\n4\n5\n6\n7\n8\n9\nten\n")
                         ("\\+ten" "\\+ten" "1\nb\nc\n4\n5\n6\n7\n8\nnine\n")))
          (ert-info ((format "%s to %s" from to))
            (should (equal "Lines excluded; C-_ restores them" (x from to)))
            (should (equal text (text)))
            (should-not (cl-find (concat "\\`" from)
                                 (gemini-companion-overview-test-lines)
                                 :test #'string-match-p))
            (should (equal "Taken back: exclusion of lines"
                           (gemini-companion-overview-test-keys "C-_")))
            (should (equal proposed (text)))))
        (gemini-companion-decision-redo)
        (gemini-companion-overview-test-keys "g")
        (with-current-buffer (gemini-companion-edit-proposal-buffer edit)
          (goto-char (point-min))
          (insert "mine\n"))
        (should (string-search "The proposal has changed"
                               (gemini-companion-test-refusal (x "\\+c" "\\+c"))))
        (should (string-match-p "The proposal of a.* has changed since"
                                (gemini-companion-overview-test-keys "C-_")))
        (should (equal "mine\n1\nb\nc\n4\n5\n6\n7\n8\nnine\n" (text)))))))

(ert-deftest gemini-companion-overview-comment-on-a-turn-begins-the-prompt ()
  (gemini-companion-overview-test-with-turn
    (gemini-companion-overview-test-go-to "Do it")
    (gemini-companion-overview-test-keys "c" "Good, but:")
    (should (equal "Good, but:" (gemini-companion-comment-opening session)))
    (should (gemini-companion-overview-test-rows "the CLI .*>> Good, but:"))
    ;; An empty text removes it.
    (gemini-companion-overview-test-go-to "the CLI")
    (gemini-companion-overview-test-keys "c" "")
    (should-not (gemini-companion-comment-opening session))))

(defun gemini-companion-overview-test-cell (place key)
  "Type KEY on the line that matches PLACE; return the error, or the message.
Questions are answered by no."
  (gemini-companion-overview-test-go-to place)
  (condition-case problem
      (gemini-companion-overview-test-keys key 'no)
    (user-error (error-message-string problem))))

(ert-deftest gemini-companion-overview-has-the-keys-of-its-table ()
  (gemini-companion-overview-test-with
      `(("a" ,gemini-companion-test-lines) ("b" "B\n") ("c" "1\n2\n"))
    (gemini-companion-overview-test-with-call
      (gemini-companion-overview-test-turns session
        ("Do it" ("a" "one\n2\n3\nfour\n5\n6\n7\n8\nnine\n") ("b" "C\n"))
        ("Then this"))
      (gemini-companion-test-open "c" "1\ntwo\n" 7 session)
      (gemini-companion-turn-page)
      (gemini-companion-overview-test-keys "4")
      (gemini-companion-overview-test-go-to "\\+four")
      (gemini-companion-overview-test-keys "k")
      (gemini-companion-overview-test-go-to "\\+nine")
      (gemini-companion-overview-test-keys "u")
      (let ((places '((proposal . "proposal .* c  ") (hunk . "\\+two")
                      (asks . "asks") (cli . "the CLI (.*left")
                      (turn . "Do it") (file . "auto .* a  ") (change . "\\+one")
                      (kept . "k\\+four") (undone . "u\\+nine"))))
        (pcase-dolist
            (`(,keys ,wheres ,expected)
             '(("k" (proposal hunk) "a accepts it") ("k" (asks) "a allows it")
               ("k" (undone) "restores it")
               ("u" (proposal hunk) "x excludes a hunk, r rejects it")
               ("u" (asks) "r refuses it") ("u" (undone) "already undone")
               ("K" (proposal hunk asks cli turn) "No file of a turn here")
               ("U" (proposal hunk asks cli turn) "No file of a turn here")
               ("a" (file change kept undone) "k keeps it")
               ("a r R" (turn) "No proposal here awaits an answer")
               ("r" (file change kept undone) "u undoes it")
               ("R" (file change) "u undoes what was written")
               ("x" (proposal) "No hunk here") ("x" (asks) "No proposal here")
               ("x" (cli turn) "No proposal here")
               ("x" (file change kept undone) "u undoes it")
               ("RET C-o" (cli) "does not run in a terminal of this Emacs")
               ("C-o" (turn) "does not run in a terminal of this Emacs")
               ("e" (asks cli turn) "No file here")
               ("c" (asks) "No line of a file here")
               ("D" (proposal asks cli turn file change) "No sent comments to remove")))
          (dolist (key (split-string keys))
            (dolist (where wheres)
              (ert-info ((format "%s on %s" key where))
                (should (string-search
                         expected
                         (gemini-companion-overview-test-cell
                          (alist-get where places) key)))))))
        ;; A question has no yes here: its own buffer is shown.
        (dolist (key '("a" "r" "R" "RET"))
          (setq gemini-companion-overview-test-shown nil)
          (gemini-companion-overview-test-cell "asks" key)
          (should (= 1 (length gemini-companion-overview-test-shown))))
        ;; Nothing was decided by all that.
        (should (= 2 (gemini-companion-test-left)))
        (should-not (assq 7 outcomes))
        ;; ! is for the CLI of any row, and asks.
        (dolist (where '(asks cli turn file change))
          (gemini-companion-overview-test-cell (alist-get where places) "!")
          (should-not (gemini-companion-auto-on-p session)))
        ;; e visits a file.
        (dolist (where '(file change))
          (gemini-companion-turn-page)
          (gemini-companion-overview-test-cell (alist-get where places) "e")
          (should (equal "a" (buffer-name (window-buffer)))))))))

(ert-deftest gemini-companion-overview-has-a-context-menu ()
  (gemini-companion-overview-test-with-turn
    (cl-flet ((items (place)
                (gemini-companion-overview-test-go-to place)
                (cl-letf (((default-value 'context-menu-functions) nil))
                  (let ((labels nil))
                    (map-keymap (lambda (_ item)
                                  (when (eq 'menu-item (car-safe item))
                                    (push (cadr item) labels))
                                  (when (stringp (car-safe item))
                                    (push (car item) labels)))
                                (context-menu-map
                                 `(mouse-3 (,(selected-window) ,(point) (0 . 0) 0))))
                    (seq-filter (lambda (label)
                                  (member label '("Keep" "Undo" "Comment" "Accept")))
                                (sort labels #'string<))))))
      (dolist (place '("the CLI" "Do it" "auto .* a  " "\\+one"))
        (should (equal '("Comment" "Keep" "Undo") (items place))))
      (gemini-companion-overview-test-go-to "\\+one")
      (gemini-companion-overview-test-keys "u")
      (should (equal '("Comment") (items "u\\+one"))))))

;;; gemini-companion-overview-test.el ends here
