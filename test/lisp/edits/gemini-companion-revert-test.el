;;; gemini-companion-revert-test.el --- Tests of buffers of written files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-part)
(require 'gemini-companion-remote-test-helper)
(require 'gemini-companion-revert)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-written)

(defmacro gemini-companion-revert-test-with (text &rest body)
  "Evaluate BODY in the buffer of a new `file' with TEXT, with reverting on."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory (list (list "a" ,text))
     (let ((file (expand-file-name "a"))
           (inhibit-message t))
       (gemini-companion-part-start 'watch)
       (gemini-companion-part-start 'revert)
       (with-current-buffer (find-file-noselect file)
         ,@body))))

(defun gemini-companion-revert-test-handler (operation &rest arguments)
  "Do OPERATION with ARGUMENTS, as a handler of files in another form may."
  (let ((inhibit-file-name-handlers '(gemini-companion-revert-test-handler))
        (inhibit-file-name-operation operation))
    (apply operation arguments)))

(ert-deftest gemini-companion-revert-follows-a-remote-file-twice-in-a-second ()
  (gemini-companion-test-needs-add-on 'remote)
  (gemini-companion-test-with-directory '(("a" ""))
    (let* ((copy (expand-file-name "a"))
           (copies (directory-file-name default-directory))
           (gemini-companion-remote-names-hosts '(("/ssh:far:" :state "lost")))
           (gemini-companion-remote-names-copies `(("/ssh:far:" . ,copies)))
           (inhibit-message t))
      (gemini-companion-part-start 'revert)
      (with-temp-buffer
        (setq buffer-file-truename "/ssh:far:/a")
        (pcase-dolist (`(,time ,name ,text)
                       '((1000.2 "a" "one\n") (1000.4 "a" "two\n")
                         ;; Tramp compares the time of the link itself.
                         (1005 "link" "three\n") (1006 "link" "two\n")))
          (setq buffer-file-name (concat "/ssh:far:/" name))
          (gemini-companion-test-rewrite copy text)
          (set-file-times copy time)
          (gemini-companion-revert-now copy)
          (should (equal text (buffer-string)))
          (when (eql 1000.4 time)
            (run-hooks 'first-change-hook))
          (should (equal 1000 (floor (float-time (visited-file-modtime))))))
        (setq buffer-file-name nil)))))

;; The clock of a file system ticks a few hundred times a second.
(ert-deftest gemini-companion-revert-follows-a-file-that-is-replaced-in-one-tick ()
  (gemini-companion-revert-test-with "one\n"
    (dolist (text '("two\n" "three\n" "four!\n"))
      (gemini-companion-test-write "b" text)
      (set-file-times "b" 1000)
      (rename-file "b" file t)
      (gemini-companion-revert-now file)
      (should (equal text (buffer-string)))
      (should-not (buffer-modified-p)))))

;; VC keeps the state of a file until Emacs itself saves it.
(ert-deftest gemini-companion-revert-updates-the-state-of-version-control ()
  (skip-unless (executable-find "git"))
  (gemini-companion-test-with-directory '(("a" "1\n"))
    (let ((file (expand-file-name "a"))
          (vc-handled-backends '(Git))
          (inhibit-message t))
      (pcase-dolist (`(,command . ,arguments)
                     '(("init" "-q") ("add" "a")
                       ("-c" "user.name=A" "-c" "user.email=a@example.com"
                        "commit" "-q" "-m" "First")))
        (should (eq 0 (apply #'call-process "git" nil nil nil command arguments))))
      (gemini-companion-part-start 'watch)
      (gemini-companion-part-start 'revert)
      (unwind-protect
          (with-current-buffer (find-file-noselect file)
            (should (string-prefix-p "Git-" (string-trim vc-mode)))
            (should (eq 'up-to-date (vc-state file)))
            (gemini-companion-test-write file "2\n")
            (gemini-companion-revert-now file)
            (should (equal "2\n" (buffer-string)))
            ;; A command is right at once, the mode line once it is displayed.
            (should (eq 'edited (vc-state file)))
            (should (string-prefix-p "Git-" (string-trim vc-mode)))
            (save-window-excursion
              (set-window-buffer nil (current-buffer))
              (run-hook-with-args 'window-buffer-change-functions (selected-frame))
              (gemini-companion-test-eventually
                (string-prefix-p "Git:" (string-trim vc-mode))))
            (should-not (gemini-companion-test-timers "revert")))
        (gemini-companion-part-stop 'revert)
        (gemini-companion-part-stop 'watch)))))

(ert-deftest gemini-companion-revert-hooks-have-the-variables-of-the-command ()
  ;; Emacs 31 has another name for the first one.
  (pcase-dolist (`(,text . ,name) '(("1\n" . revert-buffer-in-progress-p)
                                    ("2\n" . revert-buffer-in-progress)))
    (gemini-companion-revert-test-with text
      (let (known)
        ;; As diff-hl does.
        (add-hook 'after-revert-hook
                  (lambda ()
                    (setq known (list (symbol-value name)
                                      (bound-and-true-p
                                       revert-buffer-preserve-modes))))
                  nil t)
        (cl-progv (list name) '(nil)
          (gemini-companion-test-rewrite file "3\n")
          (gemini-companion-revert file))
        (should (equal '(t t) known))))))

(ert-deftest gemini-companion-revert-shows-change-hooks-a-normal-buffer ()
  (gemini-companion-revert-test-with "1\n2\n3\n"
    (let ((create-lockfiles t)
          names)
      (buffer-enable-undo)
      (dolist (hook '(before-change-functions after-change-functions))
        (add-hook hook (lambda (&rest _)
                         (push buffer-file-name names)
                         (error "Boom"))
                  nil t))
      (gemini-companion-test-rewrite file "1\nzwei\ndrei\n3\n")
      (gemini-companion-test-demoted
        (gemini-companion-revert file))
      (should (equal (list file) (seq-uniq names)))
      (should (equal "1\nzwei\ndrei\n3\n" (buffer-string)))
      (should (verify-visited-file-modtime))
      (should-not (buffer-modified-p))
      (should-not (file-locked-p file))
      (mapc #'kill-local-variable
            '(before-change-functions after-change-functions))
      ;; The file does not have the previous text any more.
      (primitive-undo 1 (cdr buffer-undo-list))
      (should (equal "1\n2\n3\n" (buffer-string)))
      (should (buffer-modified-p))
      (set-buffer-modified-p nil))))

(ert-deftest gemini-companion-revert-has-the-whole-text-whatever-hooks-do ()
  (let ((changes '(before-change-functions after-change-functions)))
    (dolist (hook (append changes '(before-revert-hook after-revert-hook)))
      (dolist (harm (list (lambda () (signal 'quit nil))
                          (lambda () (throw 'gemini-companion-test t))
                          (lambda () (set-buffer "other"))
                          (lambda () (set-buffer "other") (error "Boom"))
                          (lambda () (when (memq hook changes) (narrow-to-region 1 2)))
                          (lambda () (when (memq hook changes) (delete-region 1 3)))))
        (pcase-dolist (`(,merge ,local) '((nil t) (t t) (nil nil)))
          (ert-info ((format "%s %S %s %s" hook harm merge local))
            (gemini-companion-revert-test-with "1\n2\n3\n4\n5\n"
              (let* ((target (current-buffer))
                     (other (generate-new-buffer "other"))
                     (calls 0)
                     (ended nil)
                     (bad (lambda (&rest _)
                            (when (eq target (current-buffer))
                              (funcall harm))))
                     (good (lambda (&rest _)
                             (when (eq target (current-buffer))
                               (cl-incf calls)))))
                (when merge
                  (insert "mine "))
                (gemini-companion-test-rewrite file "1\n2\ndrei\n4\nfünf\n")
                (add-hook hook bad nil local)
                (add-hook hook good t local)
                (catch 'gemini-companion-test
                  (ignore-error quit
                    (gemini-companion-test-demoted
                      (if merge
                          (gemini-companion-merge)
                        (gemini-companion-revert file)))
                    (setq ended t)))
                (remove-hook hook bad local)
                (remove-hook hook good local)
                (should (equal file buffer-file-name))
                (should (equal (concat (and merge "mine ") "1\n2\ndrei\n4\nfünf\n")
                               (buffer-string)))
                (should (verify-visited-file-modtime))
                (should (eq merge (buffer-modified-p)))
                (when (memq hook changes)
                  (should ended)
                  (should (= 1 calls)))
                (should (zerop (buffer-size other)))
                (kill-buffer other)))))))))

(ert-deftest gemini-companion-revert-waits-for-the-end-of-a-command-that-asks ()
  (dolist (closed '(nil t))
    (gemini-companion-revert-test-with "one\n"
      (let (ends)
        (when closed
          (gemini-companion-test-rewrite file "two\n"))
        (command-execute
         (lambda ()
           (interactive)
           (gemini-companion-written-await
            file (lambda (event)
                   (push event ends)
                   'found))
           (unless closed
             (gemini-companion-test-rewrite file "two\n"))
           ;; For longer than a write is expected.
           (dotimes (_ 300)
             (gemini-companion-test-run-timers))
           (should (equal (if closed nil '(changed)) ends))
           ;; In a recursive edit.
           (run-hooks 'pre-command-hook)
           (should (equal "one\n" (buffer-string)))))
        (gemini-companion-test-eventually (equal "two\n" (buffer-string)))
        (gemini-companion-test-in-the-end (not (gemini-companion-test-timers)))
        (should (equal (list (if closed 'expired 'changed)) ends))))))

;; The user has agreed to edit a file that has changed.
(ert-deftest gemini-companion-revert-offers-to-merge-what-that-command-inserts ()
  (gemini-companion-revert-test-with "1\n2\n3\n"
    (ert-with-message-capture shown
      (command-execute
       (lambda ()
         (interactive)
         (gemini-companion-test-rewrite file "1\n2\ndrei\n")
         (gemini-companion-revert file)
         (cl-letf (((symbol-function 'userlock--ask-user-about-supersession-threat)
                    #'ignore))
           (insert "mine "))))
      (gemini-companion-test-eventually
        (string-search "gemini-companion-merge merges them" shown)))
    (gemini-companion-merge)
    (should (equal "mine 1\n2\ndrei\n" (buffer-string)))))

(ert-deftest gemini-companion-revert-merges-after-a-rename-and-another-mode ()
  (gemini-companion-revert-test-with "1\n2\n3\n"
    (insert "mine ")
    (rename-file file "new.el")
    (set-visited-file-name "new.el" t t)
    (should (derived-mode-p 'emacs-lisp-mode))
    (gemini-companion-test-rewrite buffer-file-name "1\n2\ndrei\n")
    (gemini-companion-merge)
    (should (equal "mine 1\n2\ndrei\n" (buffer-string)))))

(ert-deftest gemini-companion-revert-comes-before-the-next-command ()
  (gemini-companion-revert-test-with "one\n"
    (make-symbolic-link "." "link")
    (setq-local directory-abbrev-alist
                `((,(regexp-quote directory) . ,(expand-file-name "link/"))))
    (setq buffer-file-truename (abbreviate-file-name buffer-file-name))
    (gemini-companion-written-await file #'ignore)
    (gemini-companion-written-await (expand-file-name "b") #'ignore)
    (gemini-companion-test-rewrite file "two\n")
    (let ((found (symbol-function 'find-buffer-visiting))
          (searches 0))
      (cl-letf (((symbol-function 'find-buffer-visiting)
                 (lambda (name) (cl-incf searches) (funcall found name))))
        (run-hooks 'pre-command-hook))
      ;; Among many buffers, one for each file would delay each key.
      (should (= 2 searches)))
    (should (equal "two\n" (buffer-string)))
    (should (verify-visited-file-modtime))
    ;; Some CLIs write before they close the review.
    (gemini-companion-test-rewrite file "three\n")
    (gemini-companion-written-await file #'ignore)
    (gemini-companion-test-eventually (equal "three\n" (buffer-string)))))

(ert-deftest gemini-companion-revert-reads-nothing-but-files ()
  (dolist (make (list (lambda (file) (make-symbolic-link file file))
                      (lambda (file) (call-process "mkfifo" nil nil nil file))))
    (gemini-companion-revert-test-with "one\n"
      (delete-file file)
      (funcall make file)
      (gemini-companion-written-await file #'ignore)
      (gemini-companion-revert file)
      (should (equal "one\n" (buffer-string)))
      (should-error (gemini-companion-merge) :type 'user-error))))

(defun gemini-companion-revert-test-rewrite (before written &optional unsaved)
  "Visit a file of the bytes BEFORE, and have WRITTEN written to it.
Append a line afterwards; but if UNSAVED is non-nil, insert one before
at the beginning, which is `merge'd, or has been written, too.  Return
the text that there is then, and the bytes that are saved of that."
  (gemini-companion-revert-test-with before
    (when unsaved
      (goto-char (point-min))
      (insert "ü\n"))
    (gemini-companion-written-await file #'ignore)
    (gemini-companion-test-rewrite file written)
    (gemini-companion-revert file)
    (if (eq unsaved 'merge)
        (should (member "Merged; not saved yet"
                        (gemini-companion-test-messages
                         (gemini-companion-merge))))
      (should-not (buffer-modified-p)))
    (unless unsaved
      (goto-char (point-max))
      (insert "é\n"))
    (should (verify-visited-file-modtime))
    (let ((text (buffer-string)))
      (set-buffer-modified-p t)
      (save-buffer)
      (list text (gemini-companion-text-bytes file)))))

(ert-deftest gemini-companion-revert-takes-the-coding-of-the-new-text ()
  (pcase-dolist
      (`(,before ,written ,text ,bytes ,unsaved)
       '(("caf\351\n" "th\303\251\n" "thé\né\n" "th\303\251\n\303\251\n")
         ("caf\351\n" "caf\303\251\n" "café\né\n" "caf\303\251\n\303\251\n")
         ("\303\251" "e\303\251" "eéé\n" "e\303\251\303\251\n")
         ;; Nothing shows that it was in another coding.
         ("caf\351\n" "cafe\n" "cafe\né\n" "cafe\n\303\251\n")
         ("\377\376a\0\n\0" "a\nb\n" "a\nb\né\n" "a\nb\n\303\251\n")
         ("\377\376a\0\r\0\n\0" "\377\376b\0\r\0\n\0"
          "b\né\n" "\377\376b\0\r\0\n\0\351\0\r\0\n\0")
         ("\357\273\277\303\251\n" "\357\273\277a\n"
          "a\né\n" "\357\273\277a\n\303\251\n")
         ("\357\273\277\303\251\n" "a\n" "a\né\n" "a\n\303\251\n")
         ("a\r\nb\r\n" "a\r\nB\r\n" "a\nB\né\n" "a\r\nB\r\n\303\251\r\n")
         ("a\r\nb\n" "a\r\nB\r\n" "a\nB\né\n" "a\r\nB\r\n\303\251\r\n")
         ("a\r\nb\n" "a\r\nb\r\n" "a\nb\né\n" "a\r\nb\r\n\303\251\r\n")
         ("\351\n1\n2\n3\n" "\303\251\n1\n2\n\303\240\n"
          "ü\né\n1\n2\nà\n" "\303\274\n\303\251\n1\n2\n\303\240\n" merge)
         ("1\r\n2\r\n3\r\n" "1\r\n2\r\ndrei\r\n"
          "ü\n1\n2\ndrei\n" "\303\274\r\n1\r\n2\r\ndrei\r\n" merge)
         ("one\n" "\303\274\none\n" "ü\none\n" "\303\274\none\n" written)
         ("\351\n" "\303\274\n\303\251\n"
          "ü\né\n" "\303\274\n\303\251\n" written)))
    (ert-info ((format "%S" (list before written)))
      (should (equal (list text bytes)
                     (gemini-companion-revert-test-rewrite before written
                                                           unsaved))))))

(ert-deftest gemini-companion-revert-leaves-bytes-as-they-are ()
  (gemini-companion-test-with-directory '(("a" "e\n"))
    (let ((file (expand-file-name "a")))
      (with-current-buffer (find-file-noselect file nil t)
        (gemini-companion-test-rewrite file "\303\251\r\n")
        (gemini-companion-revert file)
        (should (equal "\303\251\r\n" (buffer-string)))
        (should-not enable-multibyte-characters)
        (should (eq 'no-conversion
                    (coding-system-base buffer-file-coding-system)))))))

(ert-deftest gemini-companion-revert-reads-a-file-as-emacs-does ()
  (pcase-dolist
      (`(,chosen ,before ,written)
       '((nil "\303\251\n" "caf\351\n") (nil "caf\351\n" "caf\303\251\n")
         (nil "caf\351\n" "cafe\n") (nil "1\r\n2\r\n" "1\n2\n")
         (nil "1\n2\n" "1\r\n2\n") (nil "1\n" "\357\273\277\303\251\r\n")
         (nil "\377\376a\0\n\0" "a\nb\n") (nil "1\0\r\n2\r\n" "1\0\r\ntwo\r\n")
         (nil "\303\251\n" "\303\251\0\n") (nil "\303\251 \351\n" "\303\251\r\n")
         (nil "a\n" ";; -*- coding: latin-1 -*-\n\351\n")
         (gbk "\xd6\xd0\n1\n" "\xd6\xd0\n2\n") (gbk "\xd6\xd0\n1\n" "2\r\n")
         (koi8-r "\xc1\n1\n" "\xc1\n2\n") (utf-16le "1\0\n\0" "2\0\r\0\n\0")
         (iso-2022-jp "\e$B$\"\e(B\n1\n" "\e$B$\"\e(B\n2\n")))
    (ert-info ((format "%S %S" chosen written))
      (gemini-companion-test-with-directory '()
        (let ((file (expand-file-name "a"))
              (inhibit-message t)
              (read (lambda () (list (buffer-string) buffer-file-coding-system))))
          (gemini-companion-test-write file before)
          (with-current-buffer (let ((coding-system-for-read chosen))
                                 (find-file-noselect file))
            (gemini-companion-test-rewrite file written)
            (gemini-companion-revert file)
            (should-not (buffer-modified-p))
            (let ((reverted (funcall read)))
              (set-buffer-modified-p t)
              (save-buffer)
              (should (equal written (gemini-companion-text-bytes file)))
              (revert-buffer t t)
              (should (equal (funcall read) reverted)))))))))

(ert-deftest gemini-companion-revert-merges-no-file-that-is-not-a-text ()
  (dolist (before '("L1 \303\251\n\0\nL3\n"
                    "\342\200\234q\342\200\235 \351\n\303\251\nL3\n"))
    (ert-info ((format "%S" before))
      (gemini-companion-revert-test-with before
        (goto-char (point-max))
        (insert "mine\n")
        (gemini-companion-test-rewrite file (concat "new\n" before))
        (gemini-companion-revert file)
        (should (buffer-modified-p))
        (should (string-search "the file is not a text"
                               (gemini-companion-test-refusal
                                 (gemini-companion-merge))))))))

(ert-deftest gemini-companion-revert-reports-a-buffer-that-reverts-in-its-own-way ()
  (gemini-companion-revert-test-with "1\n"
    (hexl-mode)
    (let ((said (lambda ()
                  (format "%s" (gemini-companion-test-messages
                                 (gemini-companion-revert file))))))
      (should-not (string-search "a was" (funcall said)))
      (gemini-companion-test-rewrite file "2\n")
      (should (string-search "a was written; its buffer (hexl-mode) still shows"
                             (funcall said)))
      (should-not (string-search "a was" (funcall said))))))

(ert-deftest gemini-companion-revert-finds-a-buffer-by-another-name ()
  (gemini-companion-revert-test-with "one\n"
    (make-symbolic-link "a" "link")
    (make-symbolic-link "." "here")
    ;; As on a volume that ignores case.
    (add-name-to-file "a" "A")
    (dolist (name '("A" "link" "here/a"))
      (gemini-companion-test-rewrite file name)
      (gemini-companion-revert (expand-file-name name))
      (should (equal name (buffer-string))))))

(ert-deftest gemini-companion-revert-stop-ends-every-watch ()
  (gemini-companion-revert-test-with "one\n"
    (let ((things (gemini-companion-test-things)))
      (gemini-companion-written-await file #'ignore)
      (gemini-companion-written-await (expand-file-name "b") #'ignore)
      ;; This cannot begin.
      (delete-file file)
      (make-directory file)
      (ignore-errors (gemini-companion-written-await file #'ignore))
      (gemini-companion-part-stop 'watch)
      (gemini-companion-test-leaves-only things))))

(ert-deftest gemini-companion-revert-highlights-what-changed ()
  (pcase-dolist (`(,new . ,expected)
                 '(("1\nzwei\n3\n4\n5\n" "zwei\n")
                   ("0\n1\n2\n3\n4\nfive\n" "0\n" "five\n")
                   ("1\n4\n5\n" "4\n")
                   ("1\n2\n3\n4\n5\n6" "6")))
    (gemini-companion-revert-test-with "1\n2\n3\n4\n5\n"
      (gemini-companion-test-rewrite file new)
      (gemini-companion-revert file)
      (should-not (text-property-not-all
                   (point-min) (point-max) 'gemini-companion-line nil))
      (let ((overlays (sort (overlays-in (point-min) (point-max))
                            (lambda (a b)
                              (< (overlay-start a) (overlay-start b))))))
        (should (equal expected
                       (mapcar (lambda (overlay)
                                 (buffer-substring-no-properties
                                  (overlay-start overlay)
                                  (overlay-end overlay)))
                               overlays))))
      (gemini-companion-part-stop 'revert)
      (gemini-companion-test-in-the-end
        (not (overlays-in (point-min) (point-max)))))))

(ert-deftest gemini-companion-revert-goes-to-the-change-unless-the-user-types ()
  (pcase-dolist (`(,answered ,typed ,expected)
                 '((t 0 "drei") (t 1 "1") (nil 0 "1")))
    (gemini-companion-revert-test-with "1\n2\n3\n"
      (let ((num-input-keys 7))
        (switch-to-buffer (current-buffer))
        (gemini-companion-written-await
         file #'ignore :keys (and answered num-input-keys))
        (setq num-input-keys (+ num-input-keys typed))
        (gemini-companion-test-rewrite file "1\n2\ndrei\nvier\n")
        (gemini-companion-test-eventually
          (string-search "drei" (buffer-string)))
        (goto-char (window-point))
        (should (looking-at-p (concat expected "$")))))))

(ert-deftest gemini-companion-revert-merges-unsaved-text-on-request ()
  (pcase-dolist
      (`(,old ,mine ,theirs ,merged)
       '(("1\n2\n3\n4\n5\n" "mine\n2\n3\n4\n5\n" "1\n2\n3\n4\ntheirs\n"
          "mine\n2\n3\n4\ntheirs\n")
         ("1\n" "mine\n" "theirs\n" "<<<<<<< unsaved\nmine\n||||||| before
1\n=======\ntheirs\n>>>>>>> CLI\n")
         ("1\n2\n3" "mine\n2\n3" "1\n2\n3\n4" "mine\n2\n3\n4")
         ("1" "mine" "theirs" "<<<<<<< unsaved\nmine\n||||||| before
1\n=======\ntheirs\n>>>>>>> CLI\n")))
    (gemini-companion-revert-test-with old
      (should-error (gemini-companion-merge) :type 'user-error)
      (erase-buffer)
      (insert mine)
      (gemini-companion-written-await file #'ignore)
      (gemini-companion-test-rewrite file theirs)
      (gemini-companion-test-in-the-end (not (gemini-companion-test-timers)))
      (should (equal mine (buffer-string)))
      (should (buffer-modified-p))
      (narrow-to-region (point-max) (point-max))
      (gemini-companion-merge)
      (should (verify-visited-file-modtime))
      (widen)
      (should (eq (string-prefix-p "<" merged) (bound-and-true-p smerge-mode)))
      (should-error (gemini-companion-merge) :type 'user-error)
      (should (equal merged (gemini-companion-test-text (current-buffer))))
      (should (buffer-modified-p)))))

(ert-deftest gemini-companion-revert-merges-nothing-that-cannot-be-compared ()
  (gemini-companion-revert-test-with "1\n2\n3\n"
    (insert "mine\n")
    (gemini-companion-written-await file #'ignore)
    (gemini-companion-test-rewrite file "1\n2\ntheirs\n")
    (gemini-companion-test-in-the-end (not (gemini-companion-test-timers)))
    (let ((temporary-file-directory "/no-such-directory/"))
      (should-error (gemini-companion-merge) :type 'gemini-companion-text-not-compared))
    (should (equal "mine\n1\n2\n3\n" (buffer-string)))
    (should-not (verify-visited-file-modtime))
    (gemini-companion-merge)
    (should (equal "mine\n1\n2\ntheirs\n" (buffer-string)))))

(ert-deftest gemini-companion-revert-merges-one-buffer-after-another ()
  (gemini-companion-test-with-directory '(("a" "1\n2\n3\n") ("b" "1\n2\n3\n")
                                          ("unsaved" "1\n") ("written" "1\n"))
    (gemini-companion-part-start 'revert)
    (let ((inhibit-message t))
      (dolist (name '("a" "unsaved" "b" "written"))
        (with-current-buffer (find-file-noselect name)
          (unless (equal name "written")
            (insert "mine "))
          (unless (equal name "unsaved")
            (gemini-companion-test-rewrite buffer-file-name "1\n2\ndrei\n"))))
      (with-temp-buffer
        (gemini-companion-merge)
        (should (member (buffer-name (window-buffer)) '("a" "b"))))
      (with-current-buffer "written"
        (gemini-companion-merge))
      (dolist (name '("a" "b"))
        (should (equal "mine 1\n2\ndrei\n" (gemini-companion-test-text name))))
      (should-error (gemini-companion-merge) :type 'user-error))))

(ert-deftest gemini-companion-revert-asks-nothing ()
  (pcase-dolist
      (`(,name ,mode ,follows)
       (list (list "a" #'hexl-mode nil)
             (list "a" (lambda ()
                         (setq-local revert-buffer-function
                                     (lambda (&rest _) (y-or-n-p "Revert? "))))
                   nil)
             (list "a" (lambda ()
                         (dolist (hook '(before-revert-hook after-revert-hook))
                           (add-hook hook (lambda () (y-or-n-p "Go on? ")) nil t)))
                   t)
             (list "a.gpg" #'ignore nil)
             (list "a.gz" #'ignore nil)))
    (ert-info ((format "%s %S" name mode))
      (gemini-companion-test-with-directory nil
        (let* ((file (expand-file-name name))
               (inhibit-message t)
               asked
               (ask (lambda (&rest _) (setq asked (not inhibit-interaction)))))
          (gemini-companion-test-rewrite file "1\n2\n")
          (with-current-buffer (let ((file-name-handler-alist nil))
                                 (find-file-noselect file))
            (gemini-companion-part-start 'revert)
            (funcall mode)
            (cl-letf (((symbol-function 'y-or-n-p) ask)
                      ((symbol-function 'yes-or-no-p) ask)
                      (text (buffer-string)))
              (gemini-companion-test-rewrite file "eins\n2\n")
              (gemini-companion-revert file)
              (should (eq follows (not (equal text (buffer-string)))))
              (set-visited-file-modtime)
              (goto-char (point-max))
              (insert "mine")
              (gemini-companion-test-rewrite file "eins\nzwei\n")
              (set-file-times file (time-add nil 9))
              (let ((messages (gemini-companion-test-messages
                                (gemini-companion-revert file))))
                (should (eq follows (and (string-search
                                          "merge" (format "%s" messages))
                                         t))))
              (should (eq follows (condition-case nil
                                      (and (gemini-companion-merge) t)
                                    (user-error nil))))
              (should-not asked))))))))

(defun gemini-companion-revert-test-offer (before how &rest texts)
  "Return the text that is merged after TEXTS were written.
The file had BEFORE.  The first line of its buffer is unsaved, and that
was changed before the mode was on if HOW is `late'.  If it is `expected',
each text is written after an answer, if it is `closed', before it, and
else without review.  Return nil if merging is not possible; assert that
it is offered if it is."
  (gemini-companion-revert-test-with before
    (when (eq how 'late)
      (gemini-companion-part-stop 'revert))
    (insert "mine ")
    (gemini-companion-part-start 'revert)
    (let* ((messages
            (ert-with-message-capture messages
              (dolist (text texts)
                (when (eq how 'expected)
                  (gemini-companion-written-await file #'ignore))
                (gemini-companion-test-rewrite file text)
                (when (eq how 'closed)
                  (gemini-companion-written-await file #'ignore))
                (gemini-companion-revert file))
              messages))
           (merged (condition-case nil
                       (progn
                         (setq buffer-read-only t)
                         (call-interactively #'gemini-companion-merge)
                         (gemini-companion-test-text (current-buffer)))
                     (user-error nil))))
      (should (string-search (if merged
                                 "gemini-companion-merge merges them"
                               "ediff-current-file compares them")
                             messages))
      (should (buffer-modified-p))
      merged)))

(ert-deftest gemini-companion-revert-offers-merging-where-it-is-possible ()
  (dolist (how '(expected closed without-review))
    (ert-info ((format "%S" how))
      (should (equal "mine 1\n2\ndrei\n4\nfünf\n"
                     (gemini-companion-revert-test-offer
                      "1\n2\n3\n4\n5\n" how "1\n2\ndrei\n4\n5\n"
                      "1\n2\ndrei\n4\nfünf\n")))))
  (let ((large (concat "1\n" (make-string (* 2 1024 1024) ?x) "\n")))
    (should-not (gemini-companion-revert-test-offer
                 large 'expected (concat large "more\n"))))
  ;; Nobody knows what the user has changed.
  (should-not (gemini-companion-revert-test-offer "1\n2\n" 'late "1\nzwei\n"))
  (let ((exec-path nil))
    (should-not (gemini-companion-revert-test-offer
                 "1\n2\n" 'without-review "1\nzwei\n"))))

(ert-deftest gemini-companion-revert-merges-with-what-was-saved-last ()
  (gemini-companion-revert-test-with "1\n2\n3\n4\n"
    (let ((merge (lambda (text)
                   (gemini-companion-test-rewrite file text)
                   (gemini-companion-revert file)
                   (gemini-companion-merge))))
      (insert "a")
      (save-buffer)
      (goto-char (point-min))
      (insert "b")
      (funcall merge "a1\n2\n3\nvier\n")
      (should (equal "ba1\n2\n3\nvier\n" (buffer-string)))
      ;; It is not saved yet.
      (funcall merge "a1\n2\nvier\n")
      (should (equal "ba1\n2\nvier\n" (buffer-string))))))

;;; gemini-companion-revert-test.el ends here
