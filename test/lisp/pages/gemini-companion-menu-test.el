;;; gemini-companion-menu-test.el --- Tests of keys, menu, mode line  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-commands)
(require 'gemini-companion-overview)
(require 'gemini-companion-menu)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-server-test-helper)

(ert-deftest gemini-companion-menu-has-every-command-in-each-form ()
  (pcase-dolist (`(,place ,map ,menu)
                 `((global ,gemini-companion-command-map gemini-companion-menu)
                   (overview ,gemini-companion-overview-mode-map
                             gemini-companion-overview-menu)))
    (pcase-dolist (`(,key ,command ,label . ,_)
                   (gemini-companion-commands-in place))
      (ert-info ((format "%s %s" place key))
        (should (commandp command))
        (with-temp-buffer
          (use-local-map map)
          (should (eq command (key-binding (kbd key)))))
        (when label
          (should (or (eq place 'overview)
                      (memq command
                            (flatten-tree (cdr (lookup-key gemini-companion-mode-map [menu-bar gemini]))))))
          ;; Transient 0.9 and later have no level before the properties.
          (should (memq command
                        (flatten-tree (transient-get-suffix menu key)))))))))

(ert-deftest gemini-companion-menu-is-made-by-the-transient-that-is-loaded ()
  (let (made)
    (cl-letf (((symbol-function 'transient-define-prefix)
               (cons 'macro (lambda (name &rest _) (ignore (push name made))))))
      (load "gemini-companion-menu" nil t))
    (should (= 2 (length made)))))

;; Below two windows of the least height.
(ert-deftest gemini-companion-menu-fits-into-a-small-frame ()
  ;; In this Emacs, no command would end it.
  (pcase-let ((`(,program . ,arguments)
               (gemini-companion-test-emacs
                '(require 'gemini-companion)
                '(require 'gemini-companion-overview)
                '(require 'gemini-companion-menu)
                '(dolist (menu '(gemini-companion-menu gemini-companion-overview-menu))
                   (transient-setup menu)
                   (with-current-buffer " *transient*"
                     (princ (buffer-string)))
                   (princ "\f")))))
    (with-temp-buffer
      (apply #'call-process program nil '(t nil) nil arguments)
      (let ((menus (split-string (buffer-string) "\f" t)))
        (should (equal 2 (length (delete-dups menus))))
        (dolist (menu menus)
          (let ((lines (split-string menu "\n")))
            ;; In Emacs 28, an empty one is the last.
            (should (< 5 (length (string-lines (string-trim-right menu))) 14))
            (dolist (line lines)
              (should (< (string-width line) 80)))))))))

;;;; States

(ert-deftest gemini-companion-menu-compares-nothing-and-shows-no-message ()
  "Emacs evaluates the items of a menu whenever it displays that."
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n"))
    (let ((calls nil))
      (gemini-companion-arrival-view
       (gemini-companion-test-open "a" "one\n2\nthree\n") 'requested)
      (dolist (list '(nil t))
        (when list
          (gemini-companion-list)
          (search-forward "three"))
        (let ((edit (gemini-companion-edit-current)))
          ;; The user edits the proposal.
          (with-current-buffer (gemini-companion-edit-proposal-buffer edit)
            (goto-char (point-max))
            (let ((inhibit-read-only t))
              (insert "four\n"))))
        (cl-letf (((symbol-function 'gemini-companion-edit-hunks)
                   (lambda (&rest _) (push 'hunks calls) nil))
                  ((symbol-function 'gemini-companion-page-refresh)
                   (lambda (&rest _) (push 'refresh calls))))
          (with-current-buffer (window-buffer)
            (ert-with-message-capture shown
              (gemini-companion-menu-test--items)
              (pcase-dolist (`(,_ ,_ ,_ ,_ . ,plist)
                             (seq-mapcat #'cdr gemini-companion-commands))
                (dolist (state '(:enable :on))
                  (when-let* ((symbol (plist-get plist state)))
                    (gemini-companion-commands-state symbol))))
              (should (equal "" shown)))
            (should-not calls)))))))

(defun gemini-companion-menu-test--items ()
  "Return the items of the menu that are displayed, an alist.
Its keys are labels, its values lists of `greyed' and `on'."
  (let (items)
    (map-keymap
     (lambda (_ item)
       (pcase item
         (`(menu-item ,label ,_ . ,plist)
          (cl-flet ((value (key default)
                      (eval (if (plist-member plist key)
                                (plist-get plist key)
                              default)
                            t)))
            (when (value :visible t)
              (push (cons (eval label t)
                          (append
                           (unless (value :enable t) '(greyed))
                           (when (eval (cdr (plist-get plist :button)) t)
                             '(on))))
                    items))))))
     (lookup-key gemini-companion-mode-map [menu-bar gemini]))
    (nreverse items)))

(defun gemini-companion-menu-test--that-are (state)
  "Return the labels of the items in STATE."
  (mapcar #'car (seq-filter (lambda (item) (memq state (cdr item)))
                            (gemini-companion-menu-test--items))))

(ert-deftest gemini-companion-menu-test-begins-with-what-a-review-allows ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n") ("b" ""))
    (let ((items (gemini-companion-menu-test--items)))
      (should-not (assoc "Accept" items))
      (should (assoc "Overview: what waits" items))
      (dolist (label '("Next review or question" "Undo this change"))
        (should (memq 'greyed (assoc label items)))))
    (let ((gemini-companion-review-arrival 'notify))
      (gemini-companion-test-open "b" "b\n" 2)
      (should-not (seq-difference '("Accept" "Next hunk")
                                  (gemini-companion-menu-test--that-are 'greyed)))
      (gemini-companion-arrival-view
       (gemini-companion-test-open "a" "one\n2\nthree\n") 'requested))
    (with-current-buffer (window-buffer)
      (let ((items (gemini-companion-menu-test--items)))
        (should (equal "a: 2 hunks (+2 \u22122)" (caar items)))
        (should (equal '("Go to the review" "Accept" "Reject")
                       (mapcar #'car (seq-subseq items 1 4))))
        (should-not (assoc "Go to the review" (seq-drop items 2)))
        (dolist (label '("Accept" "Next hunk" "Exclude this hunk"))
          (should-not (memq 'greyed (assoc label items)))))
      (gemini-companion-review-toggle-hunk)
      (should (equal '("Exclude this hunk")
                     (gemini-companion-menu-test--that-are 'on))))
    (with-temp-buffer
      (let ((greyed (gemini-companion-menu-test--that-are 'greyed)))
        (should-not (member "Accept" greyed))
        (dolist (label '("Next hunk" "Exclude this hunk" "Edit the proposal"))
          (should (member label greyed)))))))

(ert-deftest gemini-companion-menu-test-lighter-shows-state-and-count ()
  (let ((gemini-companion-review-arrival 'notify) (inhibit-message t))
    (gemini-companion-test-with-mode '(("a" "text"))
      (should (equal " Gemini" (cadr (gemini-companion-lighter))))
      (gemini-companion-test-set-sessions
       (list (gemini-companion-session-make :id "one" :client "gemini")
             (gemini-companion-session-make :id "two" :client "gemini")))
      (should (equal " Gemini:2" (cadr (gemini-companion-lighter))))
      ;; Batch Emacs formats no mode line.
      (pcase-let ((`(,_ (:eval ,form)) (assq 'gemini-companion-mode minor-mode-alist)))
        (should (eval form t)))
      (dotimes (id 3)
        (gemini-companion-proposal-open id
                                        (gemini-companion-session-make :id (format "%d" id))
                                        (expand-file-name "a") "new"))
      (should (equal " ?3 Gemini:2" (cadr (gemini-companion-lighter))))
      (should (string-match-p "\
3 to answer: M-x gemini-companion-review
Gemini CLI .*: connected\nGemini CLI .*: connected\n"
                              (funcall (plist-get (cddr (gemini-companion-lighter))
                                                  'help-echo))))
      (gemini-companion-mode -1)
      (gemini-companion-mode 1)
      (should (equal " Gemini..." (cadr (gemini-companion-lighter)))))))

;;; gemini-companion-menu-test.el ends here
