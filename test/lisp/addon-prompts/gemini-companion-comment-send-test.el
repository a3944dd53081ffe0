;;; gemini-companion-comment-send-test.el --- Tests of sending comments  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-comment-send)
(require 'gemini-companion-comment-test-helper)
(require 'tramp)
;; That add-on may be removed.
(require 'gemini-companion-remote-names nil t)

(defvar gemini-companion-remote-names-hosts)
(defvar gemini-companion-remote-names-copies)

(defmacro gemini-companion-comment-send-test-with (files &rest body)
  "Run BODY with comments in a directory with FILES; `sent' has each prompt.
They are as the CLI gets them, the last one first."
  (declare (indent 1) (debug t))
  `(let ((sent nil))
     (ignore sent)
     (cl-letf (((symbol-function 'gemini-companion-compose-deliver)
                (lambda (text _session _insert ended)
                  (push (substring-no-properties text) sent)
                  (funcall ended 'sent))))
       (gemini-companion-comment-test-with ,files ,@body))))

(ert-deftest gemini-companion-comment-send-is-one-prompt-with-all-lines ()
  (gemini-companion-comment-send-test-with
      `(("a" ,gemini-companion-test-lines) ("sub/b" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "sub/b" "1\n2\n3\n4\nfive\nsix\nseven\n8\n9\n" session)
    (gemini-companion-test-writes "a" "1\n2\nthree\n4\n5\n6\n7\n9\n" session)
    ;; Made in another order than that of the page.
    (find-file (expand-file-name "a" directory))
    (forward-line 2)
    (gemini-companion-comment-test-comment "Why 3?")
    (gemini-companion-turn-page session)
    (search-forward "five")
    (gemini-companion-comment-test-comment "Use digits" 3)
    (goto-char (point-min))
    (re-search-forward "^8$")
    (re-search-forward "^8$")
    (gemini-companion-comment-test-comment "Keep 8")
    (should (eq 'gemini-companion-send-comments (key-binding (kbd "s"))))
    (call-interactively (key-binding (kbd "s")))
    (should (equal (list (concat "Comments on your changes:\n\n"
                                 "sub/b:5-7\n> five\n> six\n> seven\nUse digits\n\n"
                                 "a:3\n> three\nWhy 3?\n\n"
                                 "a:8 (removed lines)\n> 8\nKeep 8"))
                   sent))
    ;; They stay, and are not sent again.
    (should (string-search ">> 5-7: (sent) Use digits"
                           (gemini-companion-comment-test-text)))
    (should-error (gemini-companion-send-comments session) :type 'user-error)
    (with-current-buffer "a"
      (should (member '(3 . ">> (sent) Why 3?") (gemini-companion-comment-test-shown))))))

(ert-deftest gemini-companion-comment-send-begins-with-the-opening ()
  (gemini-companion-comment-send-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-comment-opening-set session "Good, but:")
    (gemini-companion-send-comments session)
    (should (equal '("Good, but:") sent))
    (should-error (gemini-companion-send-comments session) :type 'user-error)
    (gemini-companion-comment-opening-set session "Once more:")
    (find-file (expand-file-name "a" directory))
    (gemini-companion-comment-test-comment "Why?")
    (gemini-companion-send-comments session)
    (should (equal "Once more:\n\nComments on your changes:\n\na:1\n> one\nWhy?"
                   (car sent)))))

(ert-deftest gemini-companion-comment-send-tells-what-was-undone ()
  (gemini-companion-comment-send-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\nfour\nfive\n6\n7\n9\n" session)
    (gemini-companion-turn-page session)
    (gemini-companion-overview-next-sibling)
    (gemini-companion-overview-undo)
    (gemini-companion-overview-undo)
    (should-error (gemini-companion-send-comments session) :type 'user-error)
    ;; What is back again is not told.
    (with-current-buffer "a"
      (undo-boundary)
      (undo))
    (gemini-companion-comment-opening-set session "Good.")
    (gemini-companion-send-comments session)
    (should (equal '("Good.\n\nComments on your changes:\n
I undid these changes of yours; read the files again:
a:4-5 (not saved)")
                   sent))
    (should-not (gemini-companion-undone-of-session session))))

(ert-deftest gemini-companion-comment-send-tells-what-was-undone-in-the-list ()
  (gemini-companion-comment-send-test-with
      `(("a" ,gemini-companion-test-lines) ("b" ,gemini-companion-test-lines))
    (let ((undo (lambda (name &optional unfold whole)
                  (gemini-companion-list)
                  (goto-char (point-min))
                  (re-search-forward (concat "−[0-9]  " name))
                  (when unfold
                    (gemini-companion-overview-toggle)
                    (search-forward unfold))
                  (gemini-companion-test-answering #'always
                    (gemini-companion-overview-undo whole)))))
      ;; Whether it was reviewed or not.
      (gemini-companion-test-writes "a" "one\n2\n3\nfour\nfive\n6\n7\n9\n" session)
      (gemini-companion-test-writes "b" "1\n2\n3\nfour\n5\n6\n7\n8\nnine\n" session
                                    'reviewed)
      (gemini-companion-test-writes "new" "x\n" session)
      (funcall undo "a")
      (funcall undo "b" "nine")
      (funcall undo "new")
      (should-not (file-exists-p "new"))
      (gemini-companion-comment-opening-set session "Good.")
      (gemini-companion-send-comments session)
      (should (equal (list (concat "Good.\n\nComments on your changes:\n\n"
                                   "I undid these changes of yours; read the files again:\n"
                                   "a:1\na:4-5\na:8: lines that you had removed\n"
                                   "b:9\nnew: your new file was deleted"))
                     sent))
      ;; What is there again is not told.
      (funcall undo "b" nil 'whole)
      (with-current-buffer "b"
        (undo-boundary)
        (undo))
      (should-error (gemini-companion-send-comments session) :type 'user-error))))

(ert-deftest gemini-companion-comment-send-tells-that-a-new-file-was-deleted ()
  (gemini-companion-comment-send-test-with nil
    (gemini-companion-test-writes "new" "x\n" session)
    (gemini-companion-turn-page session)
    (gemini-companion-test-answering #'always
      (gemini-companion-overview-undo))
    (gemini-companion-comment-opening-set session "Good.")
    (gemini-companion-send-comments session)
    (should (equal '("Good.\n\nComments on your changes:\n
I undid these changes of yours; read the files again:
new: your new file was deleted")
                   sent))))

(ert-deftest gemini-companion-comment-send-shows-the-answer-as-another-round ()
  (gemini-companion-comment-send-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-state-report session 'prompt "First")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-turn-page session (gemini-companion-session-turn session))
    (gemini-companion-overview-keep)
    (gemini-companion-comment-test-comment "In words")
    (gemini-companion-send-comments session)
    (gemini-companion-state-report session 'end nil)
    (gemini-companion-state-report session 'prompt "Second")
    (gemini-companion-test-writes "a" "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n" session)
    (gemini-companion-page-refresh)
    (let ((text (gemini-companion-comment-test-text)))
      (should (string-search "a  1 since your comments  1 comment  1 left" text))
      ;; What was kept is in its turn, and the comment is at its lines, once.
      (should (= 2 (length (split-string text "\n1\none\n"))))
      (should (string-search "\nfive\n" text))
      (should (string-search "nine\n  >> (sent) In words\n" text)))
    ;; After a third round, what is left of the second one is still there.
    (goto-char (point-min))
    (search-forward "five")
    (gemini-companion-comment-test-comment "In digits")
    (gemini-companion-send-comments session)
    (gemini-companion-state-report session 'end nil)
    (gemini-companion-state-report session 'prompt "Third")
    (gemini-companion-test-writes "a" "one\n2\nthree\n4\nfive\n6\n7\n8\nnine\n" session)
    (gemini-companion-page-refresh)
    (dolist (command '(ignore gemini-companion-remove-comments))
      (funcall command)
      (let ((text (gemini-companion-comment-test-text)))
        (should (string-match-p "a  1 since your comments.*  1 left\n" text))
        (should (string-search "\nthree\n" text))))))

(ert-deftest gemini-companion-comment-send-waits-after-a-proposal-is-accepted ()
  (gemini-companion-comment-send-test-with
      `(("a" ,gemini-companion-test-lines) ("b" ,gemini-companion-test-lines))
    (gemini-companion-state-report session 'prompt "First")
    (cl-letf (((symbol-function 'y-or-n-p)
               (lambda (question) (error "Asked: %s" question))))
      (pcase-dolist (`(,file . ,id) '(("a" . 1) ("b" . 2)))
        (let ((edit (gemini-companion-test-open
                     file "0\n1\n2\n3\nfour\n5\n6\n7\n8\n9\n" id session)))
          (gemini-companion-comment-test-on-proposal edit 5 "In digits")
          (gemini-companion-edit-hunks-toggle
           edit (car (gemini-companion-edit-hunks edit)))
          (cl-letf (((symbol-function 'y-or-n-p) #'always))
            (gemini-companion-edit-accept edit))
          (gemini-companion-test-write (expand-file-name file directory)
                                       "1\n2\n3\nfour\n5\n6\n7\n8\n9\n")))
      (should (string-prefix-p "2 comments: "
                               (gemini-companion-comment-send-waiting session)))
      ;; The end of the turn tells it.
      (ert-with-message-capture shown
        (gemini-companion-state-report session 'end nil)
        (should (string-search "2 comments: " shown)))
      (gemini-companion-send-comments session)
      ;; Without the excluded line, it is the fourth one.
      (should (equal '("Comments on your changes:\n\na:4\n> four\nIn digits\n\n\
b:4\n> four\nIn digits")
                     sent))
      (should-not (gemini-companion-comment-send-waiting session)))))

(ert-deftest gemini-companion-comment-send-is-offered-by-each-header-line ()
  (gemini-companion-comment-send-test-with
      `(("a" ,gemini-companion-test-lines) ("b" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (let* ((edit (gemini-companion-test-open "b" "two\n" 1 session))
           (header (lambda ()
                     (substring-no-properties
                      (eval (cadr header-line-format) t))))
           (headers (lambda ()
                      (list (progn (gemini-companion-turn-page session)
                                   (funcall header))
                            (progn (gemini-companion-list)
                                   (funcall header))
                            (with-current-buffer
                                (gemini-companion-edit-proposal-buffer edit)
                              (setq gemini-companion-edit-here edit)
                              (gemini-companion-header-set)
                              ;; A key that does not fit is omitted.
                              (cl-letf (((symbol-function 'window-width)
                                         (lambda (&rest _) 200)))
                                (funcall header)))))))
      (dolist (text (funcall headers))
        (should-not (string-match-p "comment:\\|send 1" text)))
      (with-current-buffer (find-file-noselect (expand-file-name "a" directory))
        (gemini-companion-comment-test-comment "In digits"))
      (cl-loop for text in (funcall headers)
               for key in '("s send 1" "s send 1"
                            "1 comment: M-x gemini-companion-send-comments")
               do (should (string-search key text)))
      (gemini-companion-send-comments session)
      (dolist (text (funcall headers))
        (should-not (string-match-p "comment:\\|send 1" text))))))

(ert-deftest gemini-companion-comment-send-goes-to-the-next-cli-in-its-directory ()
  (gemini-companion-comment-send-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-turn-page session)
    (search-forward "one")
    (gemini-companion-comment-test-comment "In digits")
    (gemini-companion-test-set-sessions nil)
    (should (string-search "has exited"
                           (gemini-companion-test-refusal
                             (gemini-companion-send-comments session))))
    (dolist (facts '((:client "qwen") (:directory "/elsewhere/")))
      (let ((next (apply #'gemini-companion-test-session-like session
                         :id "two" :pid 2 facts)))
        (gemini-companion-test-set-sessions (list next))
        (should-error (gemini-companion-send-comments next) :type 'user-error)))
    (should-not sent)
    (let ((next (gemini-companion-test-session-like session :id "two" :pid 2)))
      (gemini-companion-test-set-sessions (list next))
      (gemini-companion-send-comments session)
      (should (equal '("Comments on your changes:\n\na:1\n> one\nIn digits") sent)))))

(ert-deftest gemini-companion-comment-send-counts-what-was-submitted-only ()
  (gemini-companion-comment-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-turn-page session)
    (search-forward "one")
    (gemini-companion-comment-test-comment "In digits")
    (let ((ended nil)
          (comment (car (gemini-companion-comments))))
      (cl-letf (((symbol-function 'gemini-companion-compose-deliver)
                 (lambda (_text _session _insert function) (setq ended function))))
        (gemini-companion-send-comments session)
        (should (string-search "one\n  >> (being sent) In digits\n"
                               (gemini-companion-comment-test-text)))
        ;; Not twice, while the first one is on its way.
        (should-error (gemini-companion-send-comments session) :type 'user-error)
        (funcall ended nil)
        (should-not (gemini-companion-comment-sent comment))
        (gemini-companion-send-comments session)
        (funcall ended 'sent)
        (should (gemini-companion-comment-sent comment))
        (should-error (gemini-companion-send-comments session) :type 'user-error))
      (cl-letf (((symbol-function 'gemini-companion-compose-deliver)
                 (lambda (&rest _) (user-error "It waits for an answer"))))
        (gemini-companion-comment-test-comment "Again")
        (should-error (gemini-companion-send-comments session) :type 'user-error))
      (should (equal '("Again") (mapcar #'gemini-companion-comment-text
                                        (gemini-companion-comments-unsent)))))))

(ert-deftest gemini-companion-comment-send-copies-for-a-cli-in-no-terminal ()
  (gemini-companion-comment-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-turn-page session)
    (search-forward "one")
    (dolist (pasted '(nil t))
      (gemini-companion-comment-test-comment "In digits")
      (gemini-companion-send-comments session)
      (should (equal "Comments on your changes:\n\na:1\n> one\nIn digits"
                     (current-kill 0)))
      (gemini-companion-page-refresh)
      (should (string-search ">> (copied) In digits" (gemini-companion-comment-test-text)))
      (should (gemini-companion-comments-unsent))
      (if pasted
          (gemini-companion-send-comments session t)
        (gemini-companion-state-report session 'prompt "Comments on"))
      (should-not (gemini-companion-comments-unsent))
      (gemini-companion-remove-comments))))

;; In a draft or in the kill ring as well, they would be sent twice.
(ert-deftest gemini-companion-comment-send-gives-a-withdrawn-prompt-back-to-the-comments ()
  (gemini-companion-comment-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-turn-page session)
    (search-forward "one")
    (gemini-companion-comment-test-comment "In digits")
    (let ((kill-ring (list "before")))
      (cl-letf (((symbol-function 'gemini-companion-compose-deliver)
                 (lambda (text session _insert ended)
                   (gemini-companion-prompt-submit text (lambda () session) 30 "Lost"
                                                   ended))))
        (dotimes (_ 2)
          (gemini-companion-send-comments session)
          (should (equal 1 (gemini-companion-prompt-pending session)))
          (gemini-companion-compose-withdraw)
          (should-not (gemini-companion-prompt-pending session))
          (should (equal "before" (car kill-ring))))))))

(ert-deftest gemini-companion-comment-send-refers-to-a-file-as-a-whole ()
  (gemini-companion-comment-send-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (gemini-companion-turn-page session)
    (goto-char (point-min))
    (search-forward "+1 −1  a")
    (gemini-companion-comment-test-comment "Rename it")
    (should (string-match-p "\\+1 −1  a.*\n  >> Rename it\n"
                            (gemini-companion-comment-test-text)))
    (with-current-buffer (find-file-noselect "a")
      (should (equal '((1 . ">> Rename it")) (gemini-companion-comment-test-shown))))
    (gemini-companion-send-comments session)
    (should (equal '("Comments on your changes:\n\na\nRename it") sent))))

(ert-deftest gemini-companion-comment-send-quotes-nothing-that-is-not-shared ()
  (gemini-companion-comment-send-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\n9\n" session)
    (find-file (expand-file-name "a" directory))
    (gemini-companion-comment-test-comment "In digits")
    (cl-letf (((symbol-function 'gemini-companion-privacy-name-hidden-p)
               (lambda (file) (equal "a" (file-name-nondirectory file))))
              ((symbol-function 'y-or-n-p) #'always))
      (gemini-companion-send-comments session)
      (should (equal '("Comments on your changes:\n\na:1\nIn digits") sent)))))

(ert-deftest gemini-companion-comment-send-sends-lines-of-shared-files-alone ()
  (gemini-companion-comment-send-test-with
      `(("p/a" ,gemini-companion-test-lines) ("p/.env" ,gemini-companion-test-lines)
        ("out" ,gemini-companion-test-lines) ("p/b" ,gemini-companion-test-lines)
        (".geminiignore" ""))
    (let* ((root (expand-file-name "p"))
           (session (gemini-companion-test-session-like session :directory root))
           (questions nil))
      (gemini-companion-test-set-sessions (list session))
      (dolist (name '("a" ".env" "../out" "b"))
        (let ((secret (concat "SECRET of " (file-name-nondirectory name))))
          (gemini-companion-test-writes
           (expand-file-name name root)
           (concat secret "\n2\n3\n4\n5\n6\n7\n8\n9\n") session)
          (find-file (expand-file-name name root))
          (goto-char (point-min))
          (gemini-companion-comment-test-comment (concat "Why? " name))))
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (question) (push question questions) t)))
        (gemini-companion-send-comments session))
      (should (string-search "> SECRET of a\nWhy? a" (car sent)))
      (should (string-search "> SECRET of b\nWhy? b" (car sent)))
      (should (string-search ".env:1\nWhy? .env" (car sent)))
      (should (string-search "../out:1\nWhy? ../out" (car sent)))
      (should (= 2 (seq-count (apply-partially #'string-search "is not shared")
                              questions))))))

(ert-deftest gemini-companion-comment-send-works-for-a-file-that-is-gone ()
  (gemini-companion-comment-send-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "1\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-turn-page session)
    (search-forward "nine")
    (gemini-companion-comment-test-comment "In digits")
    (delete-file "a")
    (gemini-companion-page-refresh)
    (gemini-companion-send-comments session)
    (should (equal '("Comments on your changes:\n\na\n> nine\nIn digits") sent))))

(ert-deftest gemini-companion-comment-send-quotes-lines-that-were-deleted-since ()
  (gemini-companion-comment-send-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "1\n2\nthree\n4\n5\n6\n7\n8\n9\n" session)
    (find-file (expand-file-name "a" directory))
    (forward-line 2)
    (gemini-companion-comment-test-comment "In digits")
    (goto-char (point-min))
    (forward-line 2)
    (delete-region (point) (line-beginning-position 2))
    (gemini-companion-send-comments session)
    (should (equal '("Comments on your changes:\n\na\n> three\nIn digits") sent))))

(ert-deftest gemini-companion-comment-send-shows-lines-of-a-file-that-is-gone ()
  (gemini-companion-comment-send-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "1\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
    (gemini-companion-turn-page session)
    (search-forward "nine")
    (gemini-companion-comment-test-comment "In digits")
    (rename-file "a" "b")
    (gemini-companion-page-refresh)
    (let ((text (gemini-companion-comment-test-text)))
      (should (string-search "a  1 comment  deleted or renamed since" text))
      (should (string-search "nine\n  >> In digits\n" text)))))

(ert-deftest gemini-companion-comment-send-escapes-names-of-files-where-that-helps ()
  (gemini-companion-comment-send-test-with `(("a" ,gemini-companion-test-lines))
    (pcase-dolist (`(,client . ,at) '(("gemini" . "\\@") ("qwen" . "\\@") ("copilot" . "@")))
      (let ((session (gemini-companion-test-session-like session :client client)))
        (gemini-companion-test-set-sessions (list session))
        (find-file (expand-file-name "a" directory))
        (gemini-companion-comment-test-comment "See @a and @none")
        (gemini-companion-send-comments session)
        (should (equal (format "Comments on your changes:\n\na:1\n> 1\nSee %sa and @none"
                               at)
                       (car sent)))))))

(ert-deftest gemini-companion-comment-send-names-a-reviewed-file-once-in-the-overview ()
  (gemini-companion-comment-send-test-with `(("a" ,gemini-companion-test-lines)
                                             ("b" "B\n"))
    (gemini-companion-state-report session 'prompt "First")
    (gemini-companion-test-writes "a" "1\n2\nthree\n4\n5\n6\n7\n8\n9\n" session 'reviewed)
    (gemini-companion-test-writes "a" "1\n2\nthree\n4\n5\n6\n7\n8\nnine\n" session
                                  'reviewed)
    (gemini-companion-test-writes "b" "C\n" session)
    (find-file (expand-file-name "a" directory))
    (forward-line 2)
    (gemini-companion-comment-test-comment "In digits")
    ;; That is on the last edit of the file, which is unfolded.
    (gemini-companion-turn-page session (gemini-companion-session-turn session))
    (should (string-match-p "accepted +\\+2 −2  a  1 comment  kept\n"
                            (gemini-companion-comment-test-text)))
    (should (= 2 (length (split-string (gemini-companion-comment-test-text)
                                       ">> In digits"))))
    ;; What no CLI has changed is only counted.
    (gemini-companion-test-write (expand-file-name "other" directory) "1\n")
    (find-file (expand-file-name "other" directory))
    (gemini-companion-comment-test-comment "Other")
    (gemini-companion-turn-page session)
    (should (string-match-p "^1 comment on files without changes\n"
                            (gemini-companion-comment-test-text)))
    (should (= 1 (seq-count (apply-partially #'string-match-p "  b  1 left")
                            (split-string (gemini-companion-comment-test-text)
                                          "\n"))))))

(ert-deftest gemini-companion-comment-send-works-for-remote-files ()
  (gemini-companion-test-needs-add-on 'remote)
  (gemini-companion-comment-send-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-write (expand-file-name "b" directory)
                                 gemini-companion-test-lines)
    (let ((gemini-companion-remote-names-copies `(("/ssh:far:" . ,directory)))
          (gemini-companion-remote-names-hosts
           (list (list "/ssh:far:" :state "connected" :roots '(("/" "/")))))
          (session (gemini-companion-session-make
                    :id "far" :client "gemini" :remote "/ssh:far:")))
      (gemini-companion-test-set-sessions (list session))
      (cl-letf* ((handle (symbol-function 'tramp-file-name-handler))
                 ((symbol-function 'tramp-file-name-handler)
                  (lambda (operation &rest arguments)
                    (when (memq operation '(file-exists-p file-truename
                                            file-attributes insert-file-contents))
                      (error "Tramp was called: %S" operation))
                    ;; It works on names alone.
                    (apply handle operation arguments))))
        ;; Whether the CLI has changed the file or not.
        (dolist (name '("a" "b"))
          (with-temp-buffer
            (insert gemini-companion-test-lines)
            (setq buffer-file-name (concat "/ssh:far:/" name)
                  buffer-file-truename buffer-file-name)
            (unwind-protect
                (progn
                  (when (equal name "a")
                    (gemini-companion-test-writes
                     "a" "1\n2\nthree\n4\n5\n6\n7\n8\n9\n" session))
                  (goto-char (point-min))
                  (forward-line 2)
                  (gemini-companion-comment-test-comment "Why?")
                  ;; It is there again when the file is visited again.
                  (run-hooks 'kill-buffer-hook)
                  (should-not (gemini-companion-comment-test-shown))
                  (dolist (function find-file-hook)
                    (when (string-prefix-p "gemini-companion" (symbol-name function))
                      (funcall function)))
                  (should (equal '((3 . ">> Why?"))
                                 (gemini-companion-comment-test-shown))))
              (set-buffer-modified-p nil)
              (setq buffer-file-name nil))))
        (gemini-companion-send-comments session)
        (should (equal '("Comments on your changes:\n\n/a\n> 3\nWhy?\n\n/b:3\n> 3\nWhy?")
                       sent))))))

(ert-deftest gemini-companion-comment-send-leaves-what-is-too-long-unsent ()
  (gemini-companion-comment-test-with `(("a" ,gemini-companion-test-lines))
    (gemini-companion-test-writes "a" "1\n2\nthree\n4\n5\n6\n7\n8\n9\n" session)
    (find-file (expand-file-name "a" directory))
    (gemini-companion-comment-test-comment (make-string 1000000 ?x))
    (cl-letf (((symbol-function 'gemini-companion-terminal-process)
               (lambda (_) 'process)))
      (should (string-search "too long"
                             (gemini-companion-test-refusal
                               (gemini-companion-send-comments session)))))
    (should-not (gemini-companion-comment-sent (car (gemini-companion-comments))))))

;;;; By chance

;; Lines have identities that the texts do not show, so a test knows on which line a
;; comment was made, and whether the number that is sent is the one of that line.

(cl-defstruct (gemini-companion-comment-send-test-world (:conc-name world-))
  "A file NAME in DIRECTORY of SESSION whose LINES are conses of identities and a text.
COUNT lines were made.  MADE is an alist of the texts of comments and the
identities of their lines, and SENT has the texts that were sent.  A prompt is
refused where REFUSED is non-nil.  GONE is non-nil once a brace has gone: then none
comes, as nobody could tell a text with another one from the text before."
  name directory session lines (count 0) made sent refused gone)

(defvar gemini-companion-comment-send-test-random 0
  "The last random number; the function of this name returns the next one.")

(defun gemini-companion-comment-send-test-random (limit)
  "Return a random number below LIMIT, the same one after the same seed.
Emacs takes some of the numbers of `random' itself."
  (setq gemini-companion-comment-send-test-random
        (mod (+ (* 1103515245 gemini-companion-comment-send-test-random) 12345)
             2147483648))
  (mod (ash gemini-companion-comment-send-test-random -12) limit))

(defun gemini-companion-comment-send-test-line (world)
  "Return a new line for WORLD; some are alike, as braces are."
  (let ((id (cl-incf (world-count world))))
    (cons (list id)
          (if (and (not (world-gone world)) (= 0 (gemini-companion-comment-send-test-random 4))) "}" (format "line %d" id)))))

(defun gemini-companion-comment-send-test-changed (world)
  "Return the lines of WORLD after one or two random changes."
  (let ((lines (world-lines world))
        (came nil))
    (dotimes (_ (1+ (gemini-companion-comment-send-test-random 2)))
      (let ((at (gemini-companion-comment-send-test-random (length lines))))
        (if (and (< 4 (length lines))
                 (= 0 (gemini-companion-comment-send-test-random 2))
                 (not (and came (equal "}" (cdr (nth at lines))))))
            (setq lines (gemini-companion-comment-send-test-deleted world lines at))
          (let ((line (gemini-companion-comment-send-test-line world)))
            (setq came (or came (equal "}" (cdr line)))
                  lines (append (seq-take lines at) (list line)
                                (seq-drop lines at)))))))
    lines))

(defun gemini-companion-comment-send-test-deleted (world lines at)
  "Return LINES of WORLD without the one at the index AT."
  (when (equal "}" (cdr (nth at lines)))
    (setf (world-gone world) t))
  (append (seq-take lines at) (seq-drop lines (1+ at))))

(defun gemini-companion-comment-send-test-text (lines)
  "Return the text of LINES."
  (mapconcat (lambda (line) (concat (cdr line) "\n")) lines ""))

(defun gemini-companion-comment-send-test-file (world)
  "Return the name of the file of WORLD."
  (expand-file-name (world-name world) (world-directory world)))

(defun gemini-companion-comment-send-test-visited (world)
  "Return the buffer that visits the file of WORLD, or nil."
  (get-file-buffer (gemini-companion-comment-send-test-file world)))

(defun gemini-companion-comment-send-test-age (world)
  "Let the file of WORLD have been written long ago, so that a write is seen.
The time of a file may be that of a write a few milliseconds before."
  (set-file-times (gemini-companion-comment-send-test-file world)
                  (- (float-time) 1000))
  (when-let* ((buffer (gemini-companion-comment-send-test-visited world)))
    (with-current-buffer buffer
      (set-visited-file-modtime))))

(defun gemini-companion-comment-send-test-make (world lines)
  "Comment on a random one of LINES of WORLD, unless it has a comment.
The current buffer has these lines."
  (let* ((at (gemini-companion-comment-send-test-random (length lines)))
         (word (format "Comment %d." (length (world-made world))))
         (count (lambda () (length (gemini-companion-comments-unsent))))
         (before (funcall count)))
    (goto-char (point-min))
    (forward-line at)
    (cl-letf (((symbol-function 'read-string)
               ;; What is there is not edited.
               (lambda (_prompt previous &rest _) (or previous word))))
      (gemini-companion-comment))
    (when (< before (funcall count))
      (push (cons word (car (nth at lines))) (world-made world)))))

(defun gemini-companion-comment-send-test-judge (world prompt lines)
  "Record what PROMPT has of the comments of WORLD, where the file has LINES."
  (dolist (part (split-string prompt "\n\n"))
    (when (string-match "\\(Comment [0-9]+\\.\\)\\'" part)
      (let ((word (match-string 1 part)))
        (push word (world-sent world))
        (should (string-prefix-p (world-name world) part))
        (when (string-match "\\`[^:\n]+:\\([0-9]+\\)\n> \\(.*\\)\n" part)
          (let ((line (nth (1- (string-to-number (match-string 1 part))) lines)))
            ;; Of several equal lines, it is the nearest one.
            (should (equal (cdr line) (match-string 2 part)))))))))

(defun gemini-companion-comment-send-test-propose (world)
  "Let the CLI propose a change of the file of WORLD, comment on it, and answer."
  (let* ((old (world-lines world))
         (new (gemini-companion-comment-send-test-changed world))
         (file (gemini-companion-comment-send-test-file world))
         (_ (gemini-companion-comment-send-test-age world))
         (edit (gemini-companion-test-open
                file (gemini-companion-comment-send-test-text new)
                (cl-incf (world-count world)) (world-session world))))
    (with-current-buffer (gemini-companion-edit-proposal-buffer edit)
      (gemini-companion-comment-send-test-make world new)
      (when (= 0 (gemini-companion-comment-send-test-random 2))
        ;; The user inserts a line above or below it.
        (let ((at (gemini-companion-comment-send-test-random (length new)))
              (line (gemini-companion-comment-send-test-line world)))
          (goto-char (point-min))
          (forward-line at)
          (insert (cdr line) "\n")
          (run-hooks 'post-command-hook)
          (setq new (append (seq-take new at) (list line) (seq-drop new at)))))
      (when (= 0 (gemini-companion-comment-send-test-random 2))
        (gemini-companion-comment-send-test-make world new)))
    (pcase (gemini-companion-comment-send-test-random 4)
      (0 (gemini-companion-proposal-close edit 'interrupted))
      (1
       (cl-letf (((symbol-function 'gemini-companion-session-terminal) #'identity)
                 ((symbol-function 'gemini-companion-prompt-submit)
                  (lambda (text _find _seconds _problem ended)
                    (unless (world-refused world)
                      (gemini-companion-comment-send-test-judge world text new))
                    (when ended
                      (funcall ended (unless (world-refused world) 'sent))))))
         (gemini-companion-edit-reject-with-reason edit "No.")))
      (_
       (let ((hunks (gemini-companion-edit-hunks edit)))
         (when (and (cdr hunks) (= 0 (gemini-companion-comment-send-test-random 2)))
           (let ((hunk (nth (gemini-companion-comment-send-test-random (length hunks)) hunks)))
             (gemini-companion-edit-hunks-toggle edit hunk)
             (setq new (gemini-companion-comment-send-test-without
                        old new hunks hunk)))))
       (cl-letf (((symbol-function 'y-or-n-p) #'always))
         (gemini-companion-edit-accept edit))
       (should (equal (gemini-companion-comment-send-test-text new)
                      (gemini-companion-edit-after edit)))
       (setf (world-lines world) new)
       (gemini-companion-test-write file (gemini-companion-comment-send-test-text new))
       (gemini-companion-revert-now file)
       (gemini-companion-reported-write (world-session world) file nil
                                        (gemini-companion-comment-send-test-text
                                         new))))))

(defun gemini-companion-comment-send-test-without (old new hunks excluded)
  "Return the lines of NEW, made of OLD by HUNKS, without the hunk EXCLUDED.
A line that stays has the identities that it has in both."
  (let ((result nil)
        (i 0)
        (j 0))
    (cl-flet ((stay-until (end)
                (while (< j end)
                  (push (cons (append (car (nth i old)) (car (nth j new)))
                              (cdr (nth j new)))
                        result)
                  (cl-incf i)
                  (cl-incf j))))
      (dolist (hunk hunks)
        (stay-until (gemini-companion-hunk-new hunk))
        (dolist (line (if (equal hunk excluded)
                          (seq-subseq old i (gemini-companion-hunk-old-end hunk))
                        (seq-subseq new j (gemini-companion-hunk-new-end hunk))))
          (push line result))
        (setq i (gemini-companion-hunk-old-end hunk)
              j (gemini-companion-hunk-new-end hunk)))
      (stay-until (length new)))
    (nreverse result)))

(defun gemini-companion-comment-send-test-write (world lines)
  "Let others make LINES the text of the file of WORLD, and revert its buffer."
  (gemini-companion-test-write (gemini-companion-comment-send-test-file world)
                               (gemini-companion-comment-send-test-text lines))
  (when-let* ((buffer (gemini-companion-comment-send-test-visited world)))
    (with-current-buffer buffer
      (revert-buffer t t))))

(defun gemini-companion-comment-send-test-replace (world lines)
  "Let the user replace the text of the buffer of WORLD by LINES, and save."
  (erase-buffer)
  (insert (gemini-companion-comment-send-test-text lines))
  (run-hooks 'post-command-hook)
  (save-buffer)
  (setf (world-lines world) lines))

(defun gemini-companion-comment-send-test-step (world)
  "Do one random step in WORLD; the current buffer visits its file."
  (let ((file (gemini-companion-comment-send-test-file world))
        (lines (world-lines world)))
    (pcase (gemini-companion-comment-send-test-random 12)
      ((or 0 1 2) (gemini-companion-comment-send-test-make world lines))
      (3
       (setf (world-lines world) (gemini-companion-comment-send-test-changed world))
       (gemini-companion-comment-send-test-write world (world-lines world)))
      (4
       (gemini-companion-comment-send-test-replace
        world (gemini-companion-comment-send-test-changed world)))
      (5
       ;; The user types or deletes a line, and may undo that.
       (let* ((at (gemini-companion-comment-send-test-random (length lines)))
              (line (gemini-companion-comment-send-test-line world))
              (deletes (and (< 4 (length lines)) (= 0 (gemini-companion-comment-send-test-random 2)))))
         (undo-boundary)
         (goto-char (point-min))
         (forward-line at)
         (if deletes
             (delete-region (point) (line-beginning-position 2))
           (insert (cdr line) "\n"))
         (run-hooks 'post-command-hook)
         (if (= 0 (gemini-companion-comment-send-test-random 3))
             (progn (undo-boundary)
                    (let ((last-command #'ignore))
                      (undo))
                    (run-hooks 'post-command-hook))
           (setf (world-lines world)
                 (if deletes
                     (gemini-companion-comment-send-test-deleted world lines at)
                   (append (seq-take lines at) (list line) (seq-drop lines at)))))
         (save-buffer)))
      (6
       (setf (world-name world) (format "b%d" (cl-incf (world-count world))))
       (rename-file file (gemini-companion-comment-send-test-file world))
       (set-visited-file-name (gemini-companion-comment-send-test-file world) t t)
       (set-visited-file-modtime)
       (set-buffer-modified-p nil))
      (7
       ;; The CLI writes, and nobody visits the file where others write as well.
       (when (= 0 (gemini-companion-comment-send-test-random 2))
         (kill-buffer))
       (dotimes (_ (1+ (gemini-companion-comment-send-test-random 2)))
         (setf (world-lines world) (gemini-companion-comment-send-test-changed world))
         (gemini-companion-comment-send-test-age world)
         (gemini-companion-test-writes
          file
          (gemini-companion-comment-send-test-text (world-lines world))
          (world-session world)))
       (unless (gemini-companion-comment-send-test-visited world)
         (when (= 0 (gemini-companion-comment-send-test-random 2))
           (setf (world-lines world)
                 (gemini-companion-comment-send-test-changed world))
           (gemini-companion-comment-send-test-write world (world-lines world)))
         (find-file file)))
      ((or 8 9) (gemini-companion-comment-send-test-propose world))
      (10
       ;; A stash and its pop.
       (let ((at (gemini-companion-comment-send-test-random (length lines))))
         (gemini-companion-comment-send-test-write
          world (append (seq-take lines at) (seq-drop lines (+ at 3))))
         (gemini-companion-comment-send-test-write world lines)))
      (11 (gemini-companion-comment-send-test-send world)))))

(defun gemini-companion-comment-send-test-send (world)
  "Send the comments of WORLD, unless there is none."
  (cl-letf (((symbol-function 'gemini-companion-compose-deliver)
             (lambda (text _session _insert ended)
               (unless (world-refused world)
                 (gemini-companion-comment-send-test-judge
                  world (substring-no-properties text) (world-lines world)))
               (funcall ended (unless (world-refused world) 'sent)))))
    (when (gemini-companion-comments)
      (ignore-error user-error
        (gemini-companion-send-comments (world-session world))))))

(ert-deftest gemini-companion-comment-send-is-once-with-its-line-or-none ()
  (let ((count (string-to-number (or (getenv "GC_COMMENTS") "20")))
        (first (string-to-number (or (getenv "GC_COMMENTS_SEED") "0"))))
    (cl-loop
     for seed from first below (+ first count)
     do (ert-info ((format "GC_COMMENTS_SEED=%d" seed))
          (gemini-companion-comment-test-with '(("a" ""))
            (setq gemini-companion-comment-send-test-random
                  (string-to-number (substring (md5 (format "%d" seed)) 0 7) 16))
            (let ((world (make-gemini-companion-comment-send-test-world
                          :name "a" :directory directory :session session))
                  (save-silently t))
              (dotimes (_ 12)
                (push (gemini-companion-comment-send-test-line world)
                      (world-lines world)))
              (gemini-companion-comment-send-test-write world (world-lines world))
              (find-file (gemini-companion-comment-send-test-file world))
              (dotimes (_ 10)
                (setf (world-refused world)
                      (= 0 (gemini-companion-comment-send-test-random 3)))
                (with-current-buffer (gemini-companion-comment-send-test-visited world)
                  (buffer-enable-undo)
                  (gemini-companion-comment-send-test-step world)))
              (setf (world-refused world) nil)
              (gemini-companion-comment-send-test-send world)
              (should-not (gemini-companion-comments-unsent))
              (should (equal (sort (mapcar #'car (world-made world)) #'string<)
                             (sort (world-sent world) #'string<)))))))))

;;; gemini-companion-comment-send-test.el ends here
