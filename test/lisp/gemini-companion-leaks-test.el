;;; gemini-companion-leaks-test.el --- Tests of all ways out of Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Lines of a file leave Emacs in a message to the server, in the answer to one, in a
;; prompt, or in a file.  Each of these ways is tried with a shared file, an excluded one
;; and one outside the project; and each place in the sources that sends or writes must
;; be known here.  That an explicit command of the user asks first is tested with it.

;;; Code:

(require 'gemini-companion)
(require 'gemini-companion-comment-send)
(require 'gemini-companion-comment-test-helper)
(require 'gemini-companion-context)
(require 'gemini-companion-errors-test-helper)
(require 'gemini-companion-lookup)
(require 'gemini-companion-overview-test-helper)
(require 'gemini-companion-saved)
(require 'gemini-companion-shell)
(require 'gemini-companion-trash)
(require 'gemini-companion-undone)

(defconst gemini-companion-leaks-test-places
  '((server "messages of others"
            cli context prompt proposal remote server shell status tools unmarked)
    (text-write "compose: the prompt of the user; server: its messages" compose saved server text)
    (text-rewrite "files of the user, by his command" rename step written)
    (text-create "files of the user, by his command" step)
    (write-region "settings and stamps" client-settings input-file install text)
    (move-file-to-trash "asks privacy" trash)
    (process-send-string "prompts, and the programs of others"
                         commit prompt server terminal tools)
    (notifications-notify "what waits" notify))
  "Which files call what sends or writes texts, and what that is.")

(defun gemini-companion-leaks-test-callers (name)
  "Return the names of the files of the package that call NAME, without prefix.
NAME is a symbol without the prefix of the package, or of Emacs."
  (let ((regexp (pcase name
                  ('server "(gemini-companion-server-\\(?:post\\|call\\|ask\\)[ \n]")
                  ((or 'text-write 'text-rewrite 'text-create)
                   (format "(gemini-companion-%s[ \n]" name))
                  (_ (format "[(']%s[ \n]" name)))))
    (cl-loop for file in (gemini-companion-test-sources)
             when (with-temp-buffer
                    (insert-file-contents file)
                    (goto-char (point-min))
                    (re-search-forward regexp nil t))
             collect (intern (string-remove-prefix "gemini-companion-"
                                                   (file-name-base file))))))

(ert-deftest gemini-companion-leaks-all-places-that-send-or-write-are-known ()
  (pcase-dolist (`(,name ,_ . ,files) gemini-companion-leaks-test-places)
    (ert-info ((symbol-name name))
      (should (equal files (sort (gemini-companion-leaks-test-callers name)
                                 #'string<))))))

(defun gemini-companion-leaks-test-comments (session)
  "Return the prompt with all comments for SESSION."
  (let ((sent nil))
    (cl-letf (((symbol-function 'gemini-companion-compose-deliver)
               (lambda (text _session _insert ended)
                 (push text sent)
                 (funcall ended 'sent)))
              ((symbol-function 'y-or-n-p) #'always))
      (gemini-companion-send-comments session))
    (string-join sent)))

(defun gemini-companion-leaks-test-answers (file)
  "Return all answers of Emacs about FILE, a name."
  (mapcar (pcase-lambda (`(,question . ,arguments))
            (apply #'gemini-companion-test-answer-of question file arguments))
          `((references "SECRET" nil nil)
            (definition "SECRET" nil)
            (diagnostics)
            (edited "" ,(gemini-companion-test-file-text file)))))

(ert-deftest gemini-companion-leaks-no-way-out-has-lines-that-are-not-shared ()
  (gemini-companion-comment-test-with
      (mapcar (lambda (name) (list name (format "SECRET of %s\n2\n" name)))
              '("p/a" "p/key.pem" "out"))
    (let* ((gemini-companion-install-directory (expand-file-name "ours/"))
           (trash-directory (expand-file-name "trash/"))
           (root (expand-file-name "p"))
           (session (gemini-companion-test-session-like session :directory root))
           (names '("p/a" "p/key.pem" "out"))
           (gemini-companion-mode t)
           (ways nil))
      (cl-flet ((add (way value)
                  (push (cons way (format "%S" value)) ways)))
        (gemini-companion-test-set-sessions (list session))
        (gemini-companion-roots-update root)
        (gemini-companion-part-start 'saved)
        (unwind-protect
            (progn
              (dolist (name names)
                (find-file (expand-file-name name directory))
                (gemini-companion-test-writes
                 (expand-file-name name directory) (format "new %s\n2\n" name) session)
                (goto-char (point-min))
                (gemini-companion-comment-test-comment "Why?")
                (push-mark (point-max) t t)
                (gemini-companion-context--select (current-buffer))
                (add 'context (gemini-companion-context-snapshot))
                (add 'answers (gemini-companion-leaks-test-answers
                               (expand-file-name name directory))))
              (gemini-companion-test-in-the-end
                (null (seq-difference (gemini-companion-test-timers "saved") timer-idle-list)))
              (add 'disk
                   (mapcar #'gemini-companion-test-file-text
                           (directory-files-recursively
                            gemini-companion-install-directory "[^.]")))
              (add 'comments (gemini-companion-leaks-test-comments session))
              (dolist (edit (gemini-companion-edits))
                (gemini-companion-test-answering #'always
                  (gemini-companion-decision-with "undo"
                    (gemini-companion-test-undo-edit edit))))
              (add 'undone (gemini-companion-undone-addition session nil))
              (let (shared)
                (gemini-companion-shell-shared
                 (vconcat (mapcar (lambda (name) (expand-file-name name directory))
                                  names))
                 60 (lambda (answer) (setq shared (plist-get answer :shared))))
                (gemini-companion-test-wait (lambda () shared))
                ;; What is outside of the roots, the server knows.
                (add 'store (mapcar (lambda (index)
                                      (gemini-companion-test-file-text
                                       (expand-file-name (nth index names) directory)))
                                    (delq 2 shared))))
              (dolist (name names)
                (gemini-companion-trash-delete (expand-file-name name directory) 'agreed))
              (add 'trash (mapcar #'gemini-companion-test-file-text
                                  (directory-files-recursively trash-directory "[^.]"))))
          (gemini-companion-part-stop 'saved)))
      ;; Each way is one.
      (dolist (way '(context disk comments undone store trash))
        (ert-info ((symbol-name way))
          (should (string-match-p
                   "\\(?:SECRET of\\|new\\) p/a\\|/p/a\\|^a:1"
                   (mapconcat (lambda (pair) (if (eq way (car pair)) (cdr pair) ""))
                              ways "")))))
      (pcase-dolist (`(,way . ,text) ways)
        (ert-info ((format "%s: %s" way text))
          (should-not (string-match-p "\\(?:SECRET of\\|new\\) p/key" text))
          ;; The user's own trash has what he could share, wherever it was.
          (unless (eq way 'trash)
            (should-not (string-match-p "\\(?:SECRET of\\|new\\) out" text))))))))

(provide 'gemini-companion-leaks-test)
;;; gemini-companion-leaks-test.el ends here
