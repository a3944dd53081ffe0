;;; gemini-companion-review-test.el --- Tests of reviews in both views  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ediff)
(require 'gemini-companion-commands)
(require 'gemini-companion-overview)
(require 'gemini-companion-part)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-view)

(declare-function evil-mode "ext:evil-core")

(defun gemini-companion-review-test-toggle-all (diff)
  "Exclude each hunk of DIFF, or restore it; answer yes if that asks."
  (cl-letf (((symbol-function 'y-or-n-p) #'always))
    (dolist (hunk (gemini-companion-edit-hunks diff))
      (gemini-companion-edit-hunks-toggle diff hunk))))

(ert-deftest gemini-companion-review-switch-stays-at-the-hunk ()
  (gemini-companion-test-with-reviews
      '(("a" "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"))
    (gemini-companion-test-show
     "a" "one\n2\n3\n5\n6\n7\n8\neight\n9\n10\n11\ntwelve\n")
    (cl-flet ((here ()
                (with-current-buffer (window-buffer)
                  (goto-char (window-point))
                  (when-let* ((hunk (gemini-companion-review-update-hunk)))
                    (gemini-companion-hunk-old hunk)))))
      (dolist (line '(1 4 9))
        (ert-info ((format "%s" line))
          (dolist (command '(gemini-companion-review-switch-view
                             gemini-companion-review-toggle-hunk
                             gemini-companion-review-switch-view))
            (should (equal line (here)))
            (gemini-companion-test-call command))
          (should (equal line (here)))
          (gemini-companion-test-call #'gemini-companion-review-next-hunk)))
      (should (equal 12 (here)))
      ;; Without a hunk at point, it is the previous one.
      (gemini-companion-test-call #'gemini-companion-review-switch-view)
      (with-current-buffer (window-buffer)
        (goto-char (point-min))
        (search-forward "10")
        (should-not (gemini-companion-review-update-hunk)))
      (gemini-companion-test-call #'gemini-companion-review-switch-view)
      (should (equal 9 (here)))
      ;; In the proposal, it is that of the line there.
      (gemini-companion-test-call #'gemini-companion-review-edit)
      (with-current-buffer (window-buffer)
        (goto-char (point-min))
        (search-forward "6")
        (gemini-companion-review-switch-view))
      (should (equal 4 (here))))))

;; Where Emacs 31 is not at hand.
(defun gemini-companion-review-test-read-in-minibuffer (prompt choices &rest _)
  "Read one of CHOICES after PROMPT in the minibuffer, as Emacs 31 does.
Return nil after RET."
  (let ((map (make-sparse-keymap))
        (enable-recursive-minibuffers t)
        (key nil))
    (set-keymap-parent map minibuffer-local-map)
    (pcase-dolist (`(,choice . ,_) choices)
      (define-key map (vector choice) (lambda ()
                                        (interactive)
                                        (setq key last-command-event)
                                        (exit-minibuffer))))
    (read-from-minibuffer (concat prompt ": ") nil map)
    (assq key choices)))

(ert-deftest gemini-companion-review-asks-in-the-echo-area-or-in-the-minibuffer ()
  (gemini-companion-test-in-each-view '(("a" "1\n"))
    (dolist (reader (list (symbol-function 'read-multiple-choice)
                          #'gemini-companion-review-test-read-in-minibuffer))
      (cl-letf (((symbol-function 'read-multiple-choice) reader))
        (pcase-dolist (`(,keys . ,status)
                       '(("q k" . shown) ("q r" . rejected) ("q a" . accepted)))
          (ert-info ((format "%s, %s" keys reader))
            (let ((edit (gemini-companion-test-show "a" "2\n")))
              (execute-kbd-macro (kbd keys))
              (should (eq status (gemini-companion-edit-status edit)))
              (when (eq status 'shown)
                ;; The review is still the selected one.
                (execute-kbd-macro (kbd "r"))
                (should (eq 'rejected (gemini-companion-edit-status edit)))))))))
    ;; RET is no answer, and no answer counts for an edit that has ended.
    (cl-letf (((symbol-function 'read-multiple-choice)
               #'gemini-companion-review-test-read-in-minibuffer))
      (let ((edit (gemini-companion-test-show "a" "3\n")))
        (execute-kbd-macro (kbd "q RET"))
        (should (eq 'shown (gemini-companion-edit-status edit)))
        (let ((minibuffer-setup-hook
               (list (lambda ()
                       (gemini-companion-proposal-decide-all 'dismissed)))))
          (execute-kbd-macro (kbd "q a")))
        (should (eq 'dismissed (gemini-companion-edit-status edit)))))))

(ert-deftest gemini-companion-review-asks-before-excluding-the-last-hunk ()
  (gemini-companion-test-in-each-view '(("a" "1\n2\n3\n4\n"))
    (let ((diff (gemini-companion-test-show "a" "one\n2\n3\nfour\n")))
      ;; What is hidden by narrowing is excluded and sent, too.
      (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
        (narrow-to-region 5 7))
      (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
        (pcase-let ((`(,first ,last) (gemini-companion-edit-hunks diff)))
          (gemini-companion-edit-hunks-toggle diff first)
          (should-error (gemini-companion-edit-hunks-toggle diff last)
                        :type 'user-error)
          (gemini-companion-edit-hunks-toggle diff first)))
      (should (equal "one\n2\n3\nfour\n" (gemini-companion-edit-text diff)))
      (gemini-companion-review-test-toggle-all diff)
      (gemini-companion-test-call #'gemini-companion-edit-accept)
      (should (equal '((1 accepted "1\n2\n3\n4\n")) outcomes)))))

(ert-deftest gemini-companion-review-that-ends-says-so-and-keeps-its-view ()
  (gemini-companion-test-in-each-view '(("a" "1\n"))
    (let ((diff (gemini-companion-test-show "a" "2\n"))
          (buffer (window-buffer)))
      ;; It ends during that question.
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (_) (gemini-companion-proposal-close diff 'closed))))
        (dolist (command '(gemini-companion-review-toggle-hunk
                           gemini-companion-review-switch-view))
          (should (equal '(user-error "This review has ended already: dismissed")
                         (should-error (gemini-companion-test-call command))))))
      (should (eq buffer (window-buffer)))
      (should (< 0 (buffer-size buffer))))))

(ert-deftest gemini-companion-review-letters-mean-the-same-and-are-described ()
  (gemini-companion-test-in-each-view '(("a" "1\n"))
    (gemini-companion-test-show "a" "2\n")
    (with-current-buffer (window-buffer)
      (pcase-dolist (`(,key ,command . ,_) (gemini-companion-commands-in 'view))
        (should (eq command (key-binding key))))
      ;; Those of Ediff that copy, write, suspend or mail.
      (dolist (key '("b" "A" "B" "rb" "wa" "z" "m" "G" "E" "~" "i" "D"))
        (should (memq (key-binding (kbd key)) '(nil undefined))))
      (save-window-excursion
        (call-interactively (key-binding (kbd "C-h m")))))
    (dolist (key (cons "C-c C-c" (and (eq view 'diff) '("a"))))
      (should (string-match-p
               (format "^%s[ \t]+gemini-companion-edit-accept" key)
               (gemini-companion-test-text "*Help*"))))))

(ert-deftest gemini-companion-review-and-list-have-their-keys-with-evil ()
  (skip-unless (require 'evil nil t))
  (evil-mode)
  (unwind-protect
      (gemini-companion-test-in-each-view '(("a" "1\n2\n3\n4\n5\n"))
        (let* ((names '("*Ediff Control Panel*" "*gemini diff: a*"))
               (names (if (eq view 'diff) (reverse names) names)))
          (gemini-companion-test-show "a" "one\n2\n3\n4\nfive\n")
          (pcase-dolist
              (`(,keys ,name ,place)
               `(("" ,(car names) view) ("v" ,(cadr names) view) ("v" ,(car names))
                 ("n x" ,(car names)) ("x e" "*gemini proposal: a*")
                 ("C-c C-e" ,(car names) view) ("q k" ,(car names))
                 ("l" "*gemini*" overview) ("n n p n e" "*gemini proposal: a*" "five")
                 ("C-c C-e" ,(car names)) ("l" "*gemini*")
                 ("v" ,(cadr names)) ("l" "*gemini*") ("q" ,(cadr names))))
            (ert-info (keys)
              (execute-kbd-macro (kbd keys))
              (should (equal name (buffer-name (window-buffer))))
              (with-selected-window (selected-window)
                (if (stringp place)
                    (should (looking-at-p place))
                  (pcase-dolist (`(,key ,command . ,_)
                                 (and place (gemini-companion-commands-in place)))
                    (should (eq command (key-binding (kbd key)))))))))
          (execute-kbd-macro "a")
          (should (equal '((1 accepted "one\n2\n3\n4\nfive\n")) outcomes))
          (pcase-dolist (`(,keys . ,status)
                         `(("r" . rejected) ("q r" . rejected)
                           ;; A key of an add-on.
                           ,@(and (gemini-companion-part-load 'addon-prompts)
                                  '(("R no RET" . rejected)))
                           ;; In the proposal.
                           ("e : w RET" . accepted) ("e Z Z" . accepted)
                           ("e : w q RET" . accepted) ("e : x RET" . accepted)
                           ("e i x C-c C-c" . accepted) ("e v l C-c C-k" . rejected)
                           ("e : q RET r" . rejected) ("e Z Q r" . rejected)))
            (ert-info (keys)
              (let ((diff (gemini-companion-test-show "a" "2\n")))
                (execute-kbd-macro (kbd keys))
                (should (eq status (gemini-companion-edit-status diff))))))
          (gemini-companion-part-stop 'overview)))
    (evil-mode -1)))

(ert-deftest gemini-companion-review-replaced-by-another-keeps-its-exclusions ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n"))
    (let ((diff (gemini-companion-test-show "a" "one\n2\nthree\n")))
      (gemini-companion-edit-hunks-toggle
       diff (car (gemini-companion-edit-hunks diff)))
      (should (member "New proposal for a; \
M-x gemini-companion-last-proposal shows your edits of the previous one"
                      (gemini-companion-test-messages
                        (gemini-companion-test-open "a" "new\n" 2))))
      (should (equal "1\n2\nthree\n" (gemini-companion-test-last-proposal))))))

;; It stays while the user is busy.
(ert-deftest gemini-companion-review-that-was-closed-shows-no-keys ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (let* ((edit (gemini-companion-test-show "a" "2\n"))
           (header (lambda ()
                     (gemini-companion-test-header
                      (gemini-companion-edit-proposal-buffer edit)))))
      (should (string-search "accept" (funcall header)))
      (gemini-companion-proposal-close edit 'closed)
      (should (string-search "closed" (funcall header)))
      (should-not (string-search "accept" (funcall header)))
      (set-window-dedicated-p nil nil)
      (set-window-buffer nil "*scratch*")
      (should-not (string-search "answer" (funcall header))))))

(ert-deftest gemini-companion-review-that-follows-is-not-accepted-at-once ()
  (gemini-companion-test-with-reviews '(("a" "1\n") ("b" "1\n"))
    (let ((first (gemini-companion-test-show "a" "2\n"))
          (next (gemini-companion-test-open "b" "2\n" 2))
          (press (lambda (diff key)
                   (with-current-buffer (gemini-companion-review-main-buffer diff)
                     (call-interactively (key-binding (kbd key)))))))
      (let ((real-this-command 'gemini-companion-edit-accept))
        (funcall press first "C-c C-c"))
      (gemini-companion-test-eventually
        (eq 'shown (gemini-companion-edit-status next)))
      (cl-letf (((symbol-function 'float-time) (lambda (&rest _) 9.5))
                (gemini-companion-guard-new-until 10))
        (funcall press next "C-c C-c")
        (funcall press next "C-x C-s")
        (should (string-search " accept  "
                               (gemini-companion-test-header
                                (gemini-companion-review-main-buffer next)))))
      (should (eq 'shown (gemini-companion-edit-status next)))
      ;; The clock was set back.
      (let ((gemini-companion-guard-new-until most-positive-fixnum))
        (funcall press next "C-x C-s"))
      (should (eq 'accepted (gemini-companion-edit-status next))))))

(defun gemini-companion-review-test-state ()
  "Return the options and hooks that a review must leave as they are."
  (cons (gemini-companion-test-hooks)
        (mapcar #'default-value
                (cons 'ediff-session-registry
                      (apropos-internal "\\`\\(?:ediff\\|diff\\)-"
                                        #'custom-variable-p)))))

(ert-deftest gemini-companion-review-leaves-nothing-behind ()
  (gemini-companion-test-in-each-view '(("a" "1\n2\n"))
    (find-file (expand-file-name "a" directory))
    (let* ((ediff-window-setup-function #'ediff-setup-windows-multiframe)
           (temporary-file-directory directory)
           (state (progn
                    ;; Emacs makes buffers of its own at the first one.
                    (gemini-companion-test-show "a" "one\n2\n")
                    (gemini-companion-edit-reject)
                    (gemini-companion-test-run-timers)
                    ;; One that was killed has not always ended.
                    (gemini-companion-test-eventually
                      (not (get-process "gemini-companion-diff")))
                    (gemini-companion-review-test-state)))
           (things (gemini-companion-test-things)))
      (gemini-companion-review-test-toggle-all
       (gemini-companion-test-show "a" "one\n2\n"))
      (gemini-companion-test-call #'gemini-companion-review-switch-view)
      (gemini-companion-test-call #'gemini-companion-review-switch-view)
      (gemini-companion-edit-reject)
      (gemini-companion-test-in-the-end (not (gemini-companion-test-timers)))
      (gemini-companion-test-leaves-only things)
      (should (equal state (gemini-companion-review-test-state)))
      (should (equal '("a") (directory-files directory nil "\\`[^.]")))
      (with-current-buffer "a"
        (should-not (overlays-in (point-min) (point-max)))
        (should-not gemini-companion-review-mode)))))

(ert-deftest gemini-companion-review-shows-invisible-characters-and-its-own-numbers ()
  (global-display-line-numbers-mode 1)
  (unwind-protect
      (gemini-companion-test-in-each-view '(("a" "old\n"))
        (dolist (text (last (gemini-companion-view-buffers
                             (gemini-companion-edit-view
                              (gemini-companion-test-show "a" "\u202e1\n")))
                            2))
          (should (eq 'hex-code (aref (buffer-local-value 'glyphless-char-display text)
                                      #x202E))))
        ;; Here a global mode also turns on its mode.
        (run-hooks 'post-command-hook)
        ;; The control panel, or the diff.
        (should-not (buffer-local-value 'display-line-numbers (window-buffer)))
        (should (buffer-local-value 'display-line-numbers
                                    (find-file-noselect "a"))))
    (global-display-line-numbers-mode -1)))

(ert-deftest gemini-companion-review-proposal-visits-no-file ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (let ((diff (gemini-companion-test-show "a" "2\n"))
          (create-lockfiles t)
          asked)
      (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
        (insert "mine")
        (should-not buffer-file-name)
        (should-not buffer-auto-save-file-name))
      (cl-letf (((symbol-function 'map-y-or-n-p)
                 (lambda (prompter _act buffers &rest _)
                   (setq asked (seq-filter prompter buffers))
                   0)))
        (save-some-buffers))
      (should-not (memq (gemini-companion-edit-proposal-buffer diff) asked))
      (should (equal '("a") (directory-files directory nil "\\`[^.]\\|#"))))))

(ert-deftest gemini-companion-review-of-a-new-empty-file-can-be-answered ()
  (dolist (gemini-companion-review-view '(ediff diff))
    (gemini-companion-test-with-reviews nil
      (let ((diff (gemini-companion-test-show "__init__.py" "")))
        (should (string-match-p "new file is empty" (buffer-string)))
        (should-error (call-interactively (key-binding "x")) :type 'user-error)
        (should-error (call-interactively (key-binding "n")) :type 'user-error)
        ;; What the user types makes it one with text, and back.
        (pcase-dolist (`(,text . ,shown) '(("text\n" . "text")
                                           ("" . "new file is empty")))
          (with-current-buffer (gemini-companion-edit-proposal-buffer diff)
            (erase-buffer)
            (insert text))
          (gemini-companion-test-eventually
            (string-match-p shown (with-current-buffer
                                      (gemini-companion-review-main-buffer diff)
                                    (buffer-string)))))
        (call-interactively (key-binding "a"))
        (should (eq 'accepted (gemini-companion-edit-decision diff)))
        (should (equal "" (gemini-companion-edit-after diff)))))))

(ert-deftest gemini-companion-review-that-cannot-be-shown-leaves-nothing ()
  (pcase-dolist
      (`(,view ,problem ,file ,text ,symbol ,value)
       `((nil "gemini-companion-review-view" "a" "new\n")
         (ediff "contains no changes" "a" "old\n")
         (diff "No window" "a" "new\n" display-buffer-alist
               (("gemini diff" display-buffer-no-window
                 (allow-no-window . t))))
         (ediff "not a regular file" "pipe" "new\n")
         (ediff "not a regular file" "zero" "new\n")
         (ediff "not a regular file" "." "new\n")
         (ediff "a loop of symbolic links" "loop" "new\n")))
    (ert-info ((format "%s, %s, %s" view problem file))
      (gemini-companion-test-with-reviews '(("a" "old\n"))
        (call-process "mkfifo" nil nil nil "pipe")
        (make-symbolic-link "/dev/zero" "zero")
        (make-symbolic-link "loop" "loop")
        (let ((gemini-companion-review-view view)
              (layout (gemini-companion-test-layout))
              (buffers (buffer-list)))
          (cl-progv (and symbol (list symbol)) (list value)
            (let ((diff (gemini-companion-test-open file text)))
              (gemini-companion-test-eventually
                (gemini-companion-edit-problem diff))
              ;; From the list, it has no view whose method could be called.
              (should (string-search
                       problem
                       (cadr (should-error (gemini-companion-arrival-view diff)
                                           :type 'user-error))))
              (should (eq 'pending (gemini-companion-edit-status diff)))
              (should (equal layout (gemini-companion-test-layout)))
              (should (equal (list (gemini-companion-edit-proposal-buffer diff))
                             (seq-difference (buffer-list) buffers)))
              (should (equal text (gemini-companion-server-receive 'close-diff 1 'closed))))
            (gemini-companion-edit-accept
             (gemini-companion-test-open file text))
            (should (equal `((1 accepted ,text)) outcomes))))))))

(ert-deftest gemini-companion-review-connects-to-no-other-machine ()
  (gemini-companion-test-with-reviews '()
    (gemini-companion-test-with-far-host
      (gemini-companion-proposal-open 1 '(:id "one") "/far:/x" "new\n")
      (gemini-companion-test-eventually
        (gemini-companion-edit-problem (car (gemini-companion-edits-open))))
      (save-window-excursion
        (gemini-companion-list))
      (gemini-companion-part-stop 'overview)
      (should (equal "new\n" (gemini-companion-server-receive 'close-diff 1 'closed))))))

(ert-deftest gemini-companion-review-commands-report-that-no-review-is-here ()
  (gemini-companion-test-with-reviews nil
    (mapatoms
     (lambda (command)
       (when (and (commandp command)
                  (string-match-p
                   (rx bos "gemini-companion-"
                       (or "diff" "ediff" "review" "unified")
                       (* "-" (+ alnum)) eos)
                   (symbol-name command))
                  (not (string-search "-test-" (symbol-name command)))
                  (not (memq command '( gemini-companion-review-mode
                                        gemini-companion-review-menu
                                        gemini-companion-unified-mode))))
         (ert-info ((symbol-name command))
           (with-temp-buffer
             (should-error (command-execute command) :type 'user-error)))))))
  ;; One that is elsewhere is named.
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (gemini-companion-test-show "a" "2\n")
    (with-temp-buffer
      (should (string-prefix-p "No review in this buffer; "
                               (gemini-companion-test-refusal
                                 (gemini-companion-review-edit)))))))

;;; gemini-companion-review-test.el ends here
