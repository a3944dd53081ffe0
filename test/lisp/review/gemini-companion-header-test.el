;;; gemini-companion-header-test.el --- Tests of the header line of a review  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-header)
(require 'gemini-companion-view)
(require 'gemini-companion-review-test-helper)

(defun gemini-companion-header-test-connect (diff)
  "Report that the CLI of DIFF, and no other, is connected."
  (gemini-companion-test-set-sessions (list (gemini-companion-edit-session diff))))

(ert-deftest gemini-companion-header-has-warnings-name-and-keys-before-the-rest ()
  (gemini-companion-test-needs-add-on 'changes)
  (let ((file "src/components/account-settings.py"))
    (gemini-companion-test-with-reviews nil
      (gemini-companion-test-write file "1\n")
      (let ((visiting (find-file-noselect file))
            (diff (gemini-companion-test-show file "2\n")))
        (gemini-companion-header-test-connect diff)
        (with-current-buffer (gemini-companion-review-main-buffer diff)
          (pcase-dolist
              (`(,unsaved ,changed ,beginning)
               '((nil nil "")
                 (t nil "unsaved changes in Emacs; ")
                 (nil t "file changed since the proposal; ")
                 (t t "unsaved changes in Emacs; file changed since the proposal; ")))
            (with-current-buffer visiting
              (set-buffer-modified-p unsaved))
            (setf (gemini-companion-edit-remarks diff) (and changed '(changed)))
            (should (string-match-p
                     (concat "\\` " beginning "account-settings\\.py \\+1 .1  C-c C-c accept  \
C-c C-k reject  C-c C-n next  x exclude  e edit  c comment, \
src/components/account-settings.py, the CLI")
                     (gemini-companion-test-header)))))))))

(ert-deftest gemini-companion-header-has-keys-without-a-search-of-the-global-map ()
  (with-temp-buffer
    (use-local-map (make-sparse-keymap))
    (local-set-key (kbd "C-c C-c") #'gemini-companion-edit-accept)
    (let ((search (symbol-function 'where-is-internal)))
      (cl-letf (((symbol-function 'where-is-internal)
                 (lambda (command keymaps first)
                   (should-not (memq (current-global-map) keymaps))
                   (funcall search command keymaps first))))
        (should (equal "C-c C-c" (gemini-companion-header-shortest-key
                                  'gemini-companion-edit-accept)))
        (should-not (gemini-companion-header-shortest-key
                     'gemini-companion-edit-reject))))))

(ert-deftest gemini-companion-header-says-why-an-edit-was-not-auto-accepted ()
  (gemini-companion-test-with-reviews '((".env" "1\n"))
    (let ((edit (gemini-companion-test-show ".env" "2\n")))
      (setf (gemini-companion-edit-review-reason edit) "hidden, or may be run automatically")
      (should (string-search "hidden, or may be run automatically; .env"
                             (gemini-companion-test-header)))
      ;; It is a warning already.
      (setf (gemini-companion-edit-review-reason edit) "file changed since the proposal"
            (gemini-companion-edit-remarks edit) '(changed))
      (should-not (string-match-p "file changed.*file changed"
                                  (gemini-companion-test-header))))))

(ert-deftest gemini-companion-header-names-a-file-at-the-root-of-its-project-once ()
  (gemini-companion-test-with-reviews nil
    (pcase-dolist (`(,file . ,names)
                   `(("src.py" "src.py")
                     ("lib/src.py" "src.py" "lib/src.py")
                     (,(concat (make-string 50 ?a) ".py") "a+\\.\\.\\.a+\\.py"
                      ,(concat (make-string 50 ?a) ".py"))))
      (let ((edit (gemini-companion-test-show file "2\n")))
        (gemini-companion-header-test-connect edit)
        (should (string-match-p
                 (format "\\` %s, new file \\+1 .0  C-c C-c accept .*%s, the CLI" (car names)
                         (if (cdr names) (concat ", " (cadr names)) ""))
                 (gemini-companion-test-header)))
        (gemini-companion-edit-reject edit)))))

(ert-deftest gemini-companion-header-names-the-cli-of-a-review-if-there-are-several ()
  (gemini-companion-test-with-reviews '(("src.py" "1\n"))
    (let* ((session (gemini-companion-session-make
                     :id "one" :client "gemini" :directory default-directory))
           (name (gemini-companion-session-name session))
           (diff (gemini-companion-test-arrive "src.py" "2\n" 1 session)))
      (gemini-companion-arrival-view diff 'requested)
      (pcase-dolist (`(,others . ,expected)
                     `((() . " src.py +1 −1  C-c C-c accept  C-c C-k reject")
                       ((,(gemini-companion-session-make
                           :id "two" :client "qwen" :directory "/src/bank/"))
                        . ,(format " src.py by %s +1 −1  C-c C-c accept" name))))
        (gemini-companion-test-set-sessions (cons session others))
        (should (string-prefix-p expected (gemini-companion-test-header)))
        ;; Once.
        (should (= 2 (length (split-string (gemini-companion-test-header)
                                           (regexp-quote name)))))))))

(ert-deftest gemini-companion-header-warns-of-files-elsewhere ()
  (gemini-companion-test-with-reviews nil
    (make-symbolic-link "/gemini-companion/new/companion-test" "link")
    (pcase-dolist (`(,file ,regexp)
                   `(("/gemini-companion/new/companion-test"
                      ,(concat "\\` outside your projects; companion-test, new file .*  C-c C-c accept"
                               ".*, /gemini-companion/new/companion-test"))
                     ("link" "outside your projects; by a symbolic link; comp")))
      (let ((diff (gemini-companion-test-show file "2\n")))
        (gemini-companion-header-test-connect diff)
        (should (string-match-p regexp (gemini-companion-test-header)))
        (gemini-companion-edit-reject diff)))))

(ert-deftest gemini-companion-header-may-be-computed-at-any-time ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n"))
    (let* ((diff (gemini-companion-test-show "a" "one\n2\nthree\n"))
           (proposal (gemini-companion-edit-proposal-buffer diff)))
      (gemini-companion-test-call #'gemini-companion-review-toggle-hunk)
      (with-current-buffer proposal
        (gemini-companion-test-header-text))
      (should (equal "1\n2\nthree\n" (gemini-companion-edit-text diff)))
      ;; It has the keys of the user.
      (let ((map (make-sparse-keymap)))
        (set-keymap-parent map gemini-companion-review-mode-map)
        (define-key map (kbd "C-c C-k") #'ignore)
        (define-key map (kbd "<f8>") #'gemini-companion-edit-reject)
        (with-current-buffer proposal
          (setq minor-mode-overriding-map-alist
                `((gemini-companion-review-mode . ,map))))
        (should (string-search "C-c C-c accept  <f8> reject"
                               (gemini-companion-test-header proposal)))))))

(ert-deftest gemini-companion-header-says-how-many-characters-the-cli-replaces ()
  (gemini-companion-test-with-reviews nil
    (gemini-companion-test-write "a" "caf\351\n2\nd\351j\340\n")
    (let ((edit (gemini-companion-test-show "a" "caf\uFFFD\ntwo\nd\uFFFDj\uFFFD\n")))
      (should (string-search
               "not UTF-8: the CLI will replace 3 characters"
               (gemini-companion-test-header
                (gemini-companion-review-main-buffer edit)))))))

(ert-deftest gemini-companion-header-answers-are-in-the-context-menu ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (let* ((edit (gemini-companion-test-show "a" "one\n"))
           (buffer (gemini-companion-review-main-buffer edit))
           (click `(mouse-3 (,(get-buffer-window buffer) 1 (0 . 0) 0))))
      (setf (gemini-companion-view-drawn (gemini-companion-edit-view edit)) 0)
      (with-current-buffer buffer
        (call-interactively (lookup-key (context-menu-map click)
                                        [gemini-companion-edit-reject])))
      (should (eq 'rejected (gemini-companion-edit-answer edit))))))

(ert-deftest gemini-companion-header-words-are-buttons ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (let* ((edit (gemini-companion-test-show "a" "one\n"))
           (buffer (gemini-companion-review-main-buffer edit))
           (window (get-buffer-window buffer))
           (click `(mouse-1 (,window header-line (0 . 0) 0)))
           (header (with-current-buffer buffer
                     (gemini-companion-test-header-text)))
           (key (lookup-key (get-text-property (string-search "reject" header)
                                               'local-map header)
                            [header-line mouse-1])))
      ;; It was displayed.
      (setf (gemini-companion-view-drawn (gemini-companion-edit-view edit)) 0)
      (funcall key click)
      (should (eq 'rejected (gemini-companion-edit-answer edit))))))

;;; gemini-companion-header-test.el ends here
