;;; gemini-companion-ediff-test.el --- Tests of the Ediff view  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-ediff)
(require 'gemini-companion-review-test-helper)

(defconst gemini-companion-ediff-test-panel "*Ediff Control Panel*"
  "Name of the control panel of the review.")

(ert-deftest gemini-companion-ediff-shows-the-file-as-it-is-on-disk ()
  (pcase-dolist
      (`(,bytes ,client ,text ,remark)
       '(("caf\351\n" "gemini" "caf\u00e9\n" t)
         ("\357\273\277\303\251\r\n2\r\n" "gemini" "\uFEFF\u00e9\n2\n" nil)
         ;; It writes a byte order mark that is not in the proposal.
         ("\357\273\277\303\251\r\n2\r\n" "qwen" "\u00e9\n2\n" nil)))
    (gemini-companion-test-with-reviews '(("a" ""))
      (gemini-companion-test-write "a" bytes)
      (with-current-buffer (find-file-noselect (expand-file-name "a"))
        (insert "unsaved"))
      (gemini-companion-test-open
       "a" "new\n" 1 (gemini-companion-test-session-like
                      (gemini-companion-test-session "one") :client client))
      (gemini-companion-test-eventually (gemini-companion-edit-shown))
      (with-current-buffer "*gemini original: a*"
        (should (equal text (buffer-string)))
        (should (eq remark
                    (and (string-search "not UTF-8" (gemini-companion-test-header))
                         t)))))))

(ert-deftest gemini-companion-ediff-shows-each-change-whatever-the-user-ignores ()
  (dolist (options '("-w" "-i" "-B"))
    (gemini-companion-test-with-reviews '(("a" "if x:\n  one\n\nB\nC\nD\n\u00f6\n"))
      (let ((ediff-ignore-case t)
            (ediff-ignore-similar-regions t)
            (diff-switches options)
            (ediff-diff-program "no-such-diff")
            (ediff-coding-system-for-write 'us-ascii)
            (before ediff-diff-options))
        (unwind-protect
            (progn
              ;; That also sets a local value in the current buffer.
              (switch-to-buffer "*gemini customize*")
              (customize-set-variable 'ediff-diff-options options)
              (gemini-companion-test-show "a" "if x:\n    one\nB\nc\nD\n\u00fc\n")
              (with-current-buffer gemini-companion-ediff-test-panel
                (dotimes (_ 2)
                  (should (string-prefix-p " 1/3  C-c C-c" (buffer-string)))
                  (call-interactively (key-binding "!")))))
          (kill-buffer "*gemini customize*")
          (let ((ediff-ignore-case nil))
            (customize-set-variable 'ediff-diff-options before)))))))

(ert-deftest gemini-companion-ediff-killing-any-buffer-rejects-or-closes ()
  (gemini-companion-test-with-reviews '(("a" "old\n"))
    (let ((buffers (gemini-companion-test-buffers))
          (windows (gemini-companion-test-window-names)))
      (pcase-dolist (`(,gemini-companion-review-view ,buffer . ,ended)
                     '((ediff "*Ediff Control Panel*")
                       (ediff "*gemini original: a*")
                       (ediff "*gemini proposal: a*")
                       (ediff "*gemini proposal: a*" . t)))
        (setq outcomes nil)
        (let ((edit (gemini-companion-test-show "a" "new\n")))
          (when ended
            (gemini-companion-proposal-close edit 'closed)))
        (kill-buffer buffer)
        (should (equal (unless ended '((1 rejected nil))) outcomes))
        (should-not (gemini-companion-test-buffers buffers))
        (should (equal windows (gemini-companion-test-window-names)))))))

(ert-deftest gemini-companion-ediff-shows-short-lines-whatever-diff-says ()
  (let ((warning "#!/bin/sh\necho Warnung >&2; diff \"$@\" | sed s/No/Kein/"))
    (gemini-companion-test-with-reviews `(("a" "old") ("diff" ,warning))
      (set-file-modes "diff" #o700)
      (let ((diff-command (expand-file-name "diff")))
        (gemini-companion-test-show "a" "new"))
      (should (equal "*Ediff Control Panel*" (buffer-name (window-buffer)))))))

(ert-deftest gemini-companion-ediff-shows-a-new-file-alone ()
  (pcase-dolist (`(,text ,rows) '(("new\n" 45) ("new\n" 12) ("" 45)))
    (gemini-companion-test-with-reviews nil
      (unwind-protect
          (let ((layout (progn (set-frame-size nil 160 rows)
                               (gemini-companion-test-layout)))
                (windows '("*gemini proposal: __init__.py*" "*Ediff Control Panel*"))
                (edit (gemini-companion-test-show "__init__.py" text)))
            (setf (gemini-companion-view-drawn (gemini-companion-edit-view edit)) 0)
            (should (equal windows (gemini-companion-test-window-names)))
            (gemini-companion-test-call #'gemini-companion-ediff-compare-again)
            (should (equal windows (gemini-companion-test-window-names)))
            ;; The empty text is not displayed by another layout.
            (dolist (key '("|" "?" "?" "|"))
              (execute-kbd-macro key)
              (should (equal windows (gemini-companion-test-window-names))))
            (unless (equal "" text)
              (should (string-search "C-c C-k rejects it"
                                     (gemini-companion-test-refusal
                                       (gemini-companion-test-call
                                        #'gemini-companion-review-toggle-hunk)))))
            (gemini-companion-test-call #'gemini-companion-review-edit)
            (with-current-buffer (window-buffer)
              (should (eq #'self-insert-command (key-binding "a")))
              (insert "mine\n"))
            (gemini-companion-test-call #'gemini-companion-edit-accept)
            (should (equal (list (list 1 'accepted (concat "mine\n" text))) outcomes))
            (gemini-companion-test-eventually (not (gemini-companion-edits-ending)))
            (should (equal layout (gemini-companion-test-layout))))
        (set-frame-size nil 160 45)))))

(ert-deftest gemini-companion-ediff-is-side-by-side-where-there-is-room ()
  (pcase-dolist (`(,columns ,rows . ,buffers)
                 '((160 45 "*gemini original: a*" "*gemini proposal: a*"
                        "*Ediff Control Panel*")
                   (100 30 "*gemini original: a*" "*gemini proposal: a*"
                        "*Ediff Control Panel*")))
    (gemini-companion-test-with-reviews '(("a" "old\n"))
      (unwind-protect
          (progn
            (set-frame-size nil columns rows)
            (gemini-companion-test-show "a" "new\n")
            (should (equal buffers (gemini-companion-test-window-names)))
            (should (eq (= 160 columns)
                        (= (window-top-line (frame-first-window))
                           (window-top-line
                            (get-buffer-window "*gemini proposal: a*"))))))
        (set-frame-size nil 160 45)))))

(ert-deftest gemini-companion-ediff-moves-without-a-message ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n5\n6\n7\n"))
    (gemini-companion-test-show "a" "one\n2\n3\n3a\n4\n5\n7\n")
    (with-current-buffer (messages-buffer)
      (let ((inhibit-read-only t))
        (erase-buffer)))
    (with-current-buffer gemini-companion-ediff-test-panel
      ;; Batch Emacs has no faces.
      (setq-local ediff-use-faces t
                  ediff-highlighting-style 'face
                  ediff-auto-refine 'on)
      (gemini-companion-review-next-hunk)
      (gemini-companion-review-next-hunk)
      (ediff-jump-to-difference 1)
      (gemini-companion-review-toggle-hunk)
      (gemini-companion-review-next-hunk)
      (gemini-companion-review-previous-hunk)
      (ediff-recenter)
      (should (gemini-companion-commands-value 'excluded)))
    (should (equal "Hunk excluded; x restores it\n"
                   (gemini-companion-test-text (messages-buffer))))))

(ert-deftest gemini-companion-ediff-moves-point-of-the-text-in-use ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n"))
    (gemini-companion-test-show "a" "one\n2\n3\n")
    (dolist (name '("*gemini proposal: a*" "*gemini original: a*"))
      (with-selected-window (get-buffer-window name)
        (pcase-dolist (`(,line ,count) '((4 1) (1 -1)))
          (gemini-companion-review-next-hunk count)
          (should (= line (line-number-at-pos)))
          (should (= line (1+ (gemini-companion-hunk-old
                               (gemini-companion-review-hunk-here))))))))
    (with-selected-window (get-buffer-window "*gemini proposal: a*")
      (gemini-companion-review-next-hunk)
      (gemini-companion-review-toggle-hunk)
      (should (string-search "1 excluded" (gemini-companion-test-header))))
    (should (string-prefix-p " 2/2 excluded  C-c C-c accept  "
                            (with-current-buffer gemini-companion-ediff-test-panel
                              (buffer-string))))))

(ert-deftest gemini-companion-ediff-excludes-what-it-shows-in-narrowed-texts ()
  (pcase-dolist
      (`(,buffer . ,compare)
       '(("*Ediff Control Panel*" . gemini-companion-ediff-compare-again)
         ;; It is no key of the panel.
         ("*Ediff Control Panel*" . ediff-update-diffs)
         ("*gemini proposal: a*" . newline)))
    (dolist (side '("*gemini proposal: a*" "*gemini original: a*"))
      (ert-info ((format "%s in %s" compare side))
        (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n5\n6\n7\n"))
          (let ((diff (gemini-companion-test-show
                       "a" "one\n2\n3\nfour\n5\n6\nseven\n"))
                text)
            (with-current-buffer side
              (goto-char (point-min))
              (search-forward "3\n")
              (narrow-to-region (point) (point-max)))
            (with-current-buffer buffer
              (goto-char (point-max))
              (call-interactively compare))
            (setq text (gemini-companion-edit-text diff))
            (with-selected-window (get-buffer-window "*gemini proposal: a*")
              (goto-char (point-min))
              (search-forward "four")
              (unless (and (eq compare #'ediff-update-diffs)
                           (not (gemini-companion-review-hunk-here)))
                (gemini-companion-review-toggle-hunk)
                (setq text (string-replace "four" "4" text))))
            (should (equal text (gemini-companion-edit-text diff)))))))))

(ert-deftest gemini-companion-ediff-compares-a-file-that-changes ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n5\n"))
    (let ((tab-bar-show nil)
          (diff (gemini-companion-test-show "a" "1\n2\n3\n4\nfive\n"))
          layout)
      (with-selected-window (get-buffer-window "*gemini proposal: a*")
        (goto-char (point-max))
        (gemini-companion-test-write "a" "1\n2\n3\n4\n5\n6\n")
        (gemini-companion-test-eventually
          (memq 'changed (gemini-companion-edit-remarks diff)))
        (should (eobp)))
      ;; Behind another tab, too.
      (tab-bar-new-tab)
      (switch-to-buffer "*scratch*")
      (split-window)
      (setq layout (gemini-companion-test-layout))
      (gemini-companion-test-write (expand-file-name "a" directory) "one\n2\n3\n4\n5\n")
      (gemini-companion-test-eventually
        (eql 2 (buffer-local-value 'ediff-number-of-differences
                                   (get-buffer gemini-companion-ediff-test-panel))))
      (should (equal layout (gemini-companion-test-layout)))
      (tab-bar-close-tab)
      (should (string-search "file changed" (gemini-companion-test-header
                                             (gemini-companion-review-main-buffer
                                              diff)))))))

(ert-deftest gemini-companion-ediff-runs-no-hook-of-the-user ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n"))
    ;; Those of the registry of all sessions do.
    (let* ((hooks (seq-remove (lambda (symbol)
                                (string-match-p "registry\\|meta\\|help\\|keymap"
                                                (symbol-name symbol)))
                              (apropos-internal "\\`ediff-.*-hook\\'"
                                                #'default-boundp)))
           (values (mapcar #'default-value hooks))
           (ran nil)
           (layout (gemini-companion-test-layout)))
      (should (memq 'ediff-startup-hook hooks))
      (unwind-protect
          (progn
            (dolist (hook hooks)
              (set-default hook (list (lambda () (push hook ran)))))
            (gemini-companion-test-show "a" "one\n2\nthree\n")
            (gemini-companion-test-call #'gemini-companion-review-next-hunk)
            (gemini-companion-edit-accept)
            (should-not ran)
            (should (equal '((1 accepted "one\n2\nthree\n")) outcomes))
            (should (equal layout (gemini-companion-test-layout))))
        (cl-mapc #'set-default hooks values)))))

(ert-deftest gemini-companion-ediff-session-of-the-user-continues ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n") ("x" "1\n2\n3\n")
                                        ("y" "one\n2\nthree\n"))
    (apply #'ediff-buffers (mapcar #'find-file-noselect '("x" "y")))
    (execute-kbd-macro "n")
    (let ((windows (gemini-companion-test-window-names)))
      (setf (gemini-companion-view-drawn
             (gemini-companion-edit-view
              (gemini-companion-test-show "a" "one\n2\nthree\n")))
            0)
      (execute-kbd-macro (kbd "n x C-c C-c q"))
      (should (equal '((1 accepted "one\n2\n3\n")) outcomes))
      (gemini-companion-test-eventually
        (equal windows (gemini-companion-test-window-names))))
    (execute-kbd-macro "na")
    (should (equal "one\n2\n3\n" (gemini-companion-test-text "y")))
    (execute-kbd-macro "qy")
    (should-not ediff-session-registry)))

(defun gemini-companion-ediff-test-keys (map)
  "Return the keys of MAP, a keymap of Ediff, and those of its prefixes."
  (let ((keys nil))
    (map-keymap (lambda (event binding)
                  (cond ((keymapp binding)
                         (map-keymap (lambda (second _) (push (vector event second) keys))
                                     binding))
                        (binding (push (vector event) keys))))
                map)
    (nreverse keys)))

;; "a" copies A to B in Ediff, "wb" saves B, "~" swaps the buffers.
(ert-deftest gemini-companion-ediff-no-key-of-ediff-changes-the-file ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n5\n"))
    (let* ((file (expand-file-name "a"))
           (old (gemini-companion-test-file-text file))
           (new "one\n2\nthree\n4\nfive\n")
           (visited (find-file-noselect file))
           (pressed 0))
      (dolist (requested '(nil t))
        (dolist (key (with-temp-buffer
                       (ediff-setup-keymap)
                       (gemini-companion-ediff-test-keys ediff-mode-map)))
          (ert-info ((format "%s, %s" (key-description key) requested))
            (let* ((edit (gemini-companion-test-arrive file new))
                   (proposal (gemini-companion-edit-proposal-buffer edit)))
              (when requested
                (gemini-companion-review))
              (setf (gemini-companion-view-drawn (gemini-companion-edit-view edit)) 0)
              (should (equal gemini-companion-ediff-test-panel
                             (buffer-name (window-buffer))))
              (cl-letf (((symbol-function 'read-multiple-choice)
                         (lambda (&rest _) '(?k)))
                        ((symbol-function 'y-or-n-p) #'ignore)
                        ((symbol-function 'read-string) (lambda (&rest _) "")))
                (ignore-error (user-error error)
                  (execute-kbd-macro key)))
              (setq pressed (1+ pressed)
                    prefix-arg nil)
              (should (gemini-companion-edit-open-p edit))
              (should (equal old (gemini-companion-test-file-text file)))
              (with-current-buffer visited
                (should (equal old (buffer-string)))
                (should-not (buffer-modified-p)))
              (should (equal new (gemini-companion-test-text proposal)))
              (should (equal (if (and requested (equal [?a] key))
                                 (string-replace "one" "1" new)
                               new)
                             (gemini-companion-edit-text edit)))
              (should (eq proposal (buffer-local-value
                                    'ediff-buffer-B
                                    (get-buffer gemini-companion-ediff-test-panel))))
              (gemini-companion-edit-reject edit)
              (delete-other-windows)
              (set-window-buffer nil "*scratch*")))))
      (should (< 100 pressed)))))

(ert-deftest gemini-companion-ediff-letters-do-what-ediff-does ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n5\n"))
    (let* ((edit (gemini-companion-test-show "a" "one\n2\nthree\n4\nfive\n"))
           (panel gemini-companion-ediff-test-panel)
           (press (lambda (keys)
                    (ert-with-message-capture messages
                      (condition-case problem
                          (execute-kbd-macro (kbd keys))
                        (user-error (message "%s" (error-message-string problem))))
                      (concat (substring (gemini-companion-test-text panel) 0 4)
                              " " (car (last (split-string messages "\n" t))))))))
      (setf (gemini-companion-view-drawn (gemini-companion-edit-view edit)) 0)
      (pcase-dolist
          (`(,keys ,numbers ,said ,text)
           '(("n" " 2/3" "" "one\n2\nthree\n4\nfive\n")
             ("a" " 2/3" "Hunk excluded; rb restores it" "one\n2\n3\n4\nfive\n")
             ("a" " 2/3" "Hunk is excluded already" "one\n2\n3\n4\nfive\n")
             ("r a" " 2/3" "The file is written when you accept: C-c C-c"
              "one\n2\n3\n4\nfive\n")
             ("r b" " 2/3" "Hunk restored" "one\n2\nthree\n4\nfive\n")
             ("r b" " 2/3" "Hunk is not excluded" "one\n2\nthree\n4\nfive\n")
             ("x" " 2/3" "Hunk excluded" "one\n2\n3\n4\nfive\n")
             ("p" " 1/3" "" "one\n2\n3\n4\nfive\n")
             ("w a" " 1/3" "The file is written when you accept: C-c C-c"
              "one\n2\n3\n4\nfive\n")
             ("b" " 1/3" "The file is written when you accept: C-c C-c"
              "one\n2\n3\n4\nfive\n")
             ("r x" " 1/3" "Not in a review" "one\n2\n3\n4\nfive\n")
             ("R" " 1/3" "Not in a review" "one\n2\n3\n4\nfive\n")
             ("~" " 1/3" "Not in a review" "one\n2\n3\n4\nfive\n")
             ("!" " 1/3" "" "one\n2\n3\n4\nfive\n")))
        (ert-info (keys)
          (should (string-prefix-p (concat numbers " " said) (funcall press keys)))
          (should (equal text (gemini-companion-edit-text edit)))))
      ;; What is typed shows all keys, and the line again.
      (funcall press "?")
      (should (string-search "rb restore" (gemini-companion-test-text panel)))
      (funcall press "n")
      (should (string-search "2/3 excluded" (gemini-companion-test-text panel)))
      (funcall press "?")
      (should-not (string-search "rb restore" (gemini-companion-test-text panel)))
      ;; The windows of the review may be arranged otherwise, and end with it.
      (funcall press "|")
      (let ((before (cl-count "*scratch*" (gemini-companion-test-window-names)
                              :test #'equal)))
        (should (= 0 before))
        (execute-kbd-macro (kbd "C-c C-c"))
        (should (equal '((1 accepted "one\n2\n3\n4\nfive\n")) outcomes))))))

(ert-deftest gemini-companion-ediff-keys-and-options-of-the-user-apply ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n5\n"))
    (let ((ediff-keymap-setup-hook
           (list (lambda ()
                   (define-key ediff-mode-map "J" #'ediff-next-difference)
                   (define-key ediff-mode-map "X" #'ediff-copy-A-to-B)
                   (define-key ediff-mode-map "x" #'ediff-suspend))))
          (split nil))
      (let* ((ediff-split-window-function
              (lambda () (setq split t) (split-window-vertically)))
             (edit (gemini-companion-test-show "a" "one\n2\nthree\n4\n5\n")))
        (should split)
        (setf (gemini-companion-view-drawn (gemini-companion-edit-view edit)) 0)
        (execute-kbd-macro (kbd "J X"))
        (should (equal "one\n2\n3\n4\n5\n" (gemini-companion-edit-text edit)))
        (execute-kbd-macro (kbd "x"))
        (should (equal "one\n2\nthree\n4\n5\n" (gemini-companion-edit-text edit)))
        (save-window-excursion
          (call-interactively (key-binding (kbd "C-h m"))))
        (should (string-match-p "^a[ \t]+gemini-companion-ediff-exclude"
                                (gemini-companion-test-text "*Help*")))))))

(ert-deftest gemini-companion-ediff-line-of-the-panel-fits ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n"))
    (gemini-companion-test-show "a" "one\n2\nthree\n")
    (with-current-buffer gemini-companion-ediff-test-panel
      (should (equal " 1/2  C-c C-c accept  C-c C-k reject  ? all  q ask  a exclude  e edit"
                     (substring-no-properties
                      (car (split-string (buffer-string) "\n")))))
      (should truncate-lines)
      (dolist (line (split-string (gemini-companion-ediff--long-help) "\n"))
        (should (< (string-width line) 80))))))

;;; gemini-companion-ediff-test.el ends here
