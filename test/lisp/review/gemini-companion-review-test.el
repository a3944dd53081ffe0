;;; gemini-companion-review-test.el --- Tests of reviews  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'ediff)
(require 'gemini-companion)
(require 'gemini-companion-commands)
(require 'gemini-companion-overview nil t)
(require 'gemini-companion-part)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-view)

(declare-function evil-mode "ext:evil-core")

(defun gemini-companion-review-test-drawn (edit)
  "Return EDIT, after marking its review as displayed, as a redisplay does."
  (setf (gemini-companion-view-drawn (gemini-companion-edit-view edit)) 0)
  edit)

(defun gemini-companion-review-test-toggle-all (diff)
  "Exclude each hunk of DIFF, or restore it; answer yes if that asks."
  (cl-letf (((symbol-function 'y-or-n-p) #'always))
    (dolist (hunk (gemini-companion-edit-hunks diff))
      (gemini-companion-edit-hunks-toggle diff hunk))))

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
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (dolist (reader (list (symbol-function 'read-multiple-choice)
                          #'gemini-companion-review-test-read-in-minibuffer))
      (cl-letf (((symbol-function 'read-multiple-choice) reader))
        (pcase-dolist (`(,keys . ,status)
                       '(("q k" . shown) ("q r" . rejected) ("q a" . accepted)))
          (ert-info ((format "%s, %s" keys reader))
            (let ((edit (gemini-companion-review-test-drawn
                         (gemini-companion-test-show "a" "2\n"))))
              (execute-kbd-macro (kbd keys))
              (should (eq status (gemini-companion-edit-status edit)))
              (when (eq status 'shown)
                ;; The review is still the selected one.
                (execute-kbd-macro (kbd "C-c C-k"))
                (should (eq 'rejected (gemini-companion-edit-status edit)))))))))
    ;; RET is no answer, and no answer counts for an edit that has ended.
    (cl-letf (((symbol-function 'read-multiple-choice)
               #'gemini-companion-review-test-read-in-minibuffer))
      (let ((edit (gemini-companion-review-test-drawn
                   (gemini-companion-test-show "a" "3\n"))))
        (execute-kbd-macro (kbd "q RET"))
        (should (eq 'shown (gemini-companion-edit-status edit)))
        (let ((minibuffer-setup-hook
               (list (lambda ()
                       (gemini-companion-proposal-decide-all 'dismissed)))))
          (execute-kbd-macro (kbd "q a")))
        (should (eq 'dismissed (gemini-companion-edit-status edit)))))))

(ert-deftest gemini-companion-review-asks-before-excluding-the-last-hunk ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n"))
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

;; An edit of the line between two hunks makes one of them.
(ert-deftest gemini-companion-review-hunk-that-an-edit-joins-is-not-excluded ()
  (dolist (typed '((lambda () (insert "x")) (lambda () (delete-region 5 7))
                   (lambda () (forward-line) (insert "new\n"))))
    (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n"))
      (let* ((edit (gemini-companion-review-test-drawn
                    (gemini-companion-test-show "a" "one\n2\nthree\n")))
             (proposal (gemini-companion-edit-proposal-buffer edit))
             (press (lambda (keys)
                      (with-selected-window (get-buffer-window proposal)
                        (gemini-companion-test-messages
                          (call-interactively (key-binding (kbd keys))))))))
        (gemini-companion-edit-hunks-toggle
         edit (cadr (gemini-companion-edit-hunks edit)))
        (should (string-search "1 excluded" (gemini-companion-test-header proposal)))
        (with-selected-window (get-buffer-window proposal)
          (goto-char (point-min))
          (forward-line)
          (funcall typed))
        (should-not (string-search "excluded" (gemini-companion-test-header proposal)))
        ;; A key that was typed before this was displayed answers nothing.
        (should (string-search "just appeared or changed"
                               (gemini-companion-test-refusal
                                 (funcall press "C-c C-c"))))
        (should (gemini-companion-edit-open-p edit))
        (gemini-companion-test-eventually
          (eq (gemini-companion-view-hunks (gemini-companion-edit-view edit))
              (gemini-companion-edit-hunks edit)))
        (with-current-buffer "*Ediff Control Panel*"
          (should (string-prefix-p
                   (format " 1/%d  " (length (gemini-companion-edit-hunks edit)))
                   (buffer-string))))
        (gemini-companion-review-test-drawn edit)
        (let ((shown (gemini-companion-test-text proposal)))
          (funcall press "C-c C-c")
          (should (equal `((1 accepted ,shown)) outcomes)))))))

;; The comparison finds other hunks after an edit that is far from the excluded one.
(ert-deftest gemini-companion-review-asks-if-it-would-send-what-was-not-shown ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n5\n"))
    (let* ((edit (gemini-companion-test-show "a" "1\n3\n4\n5\n2\n3\n4\n5\n"))
           (asked nil))
      (gemini-companion-review-test-toggle-all edit)
      (with-current-buffer (gemini-companion-edit-proposal-buffer edit)
        (goto-char (point-max))
        (forward-line -3)
        (delete-region (point) (point-max)))
      (should (equal "1\n2\n" (gemini-companion-edit-text edit)))
      (cl-letf (((symbol-function 'yes-or-no-p)
                 (lambda (question) (ignore (push question asked)))))
        (gemini-companion-test-call #'gemini-companion-edit-accept))
      (should (string-match-p "a has changed, and has \\+1 .1 now" (car asked)))
      (should (gemini-companion-edit-open-p edit))
      ;; Now it is shown.
      (gemini-companion-test-call #'gemini-companion-edit-accept)
      (should (equal '((1 accepted "1\n3\n4\n5\n2\n")) outcomes)))))

(ert-deftest gemini-companion-review-excludes-the-lines-of-the-region ()
  (pcase-dolist (`(,file ,name ,line ,count ,text ,said)
                 '(("a" "proposal" 1 1 "1\ntwo\n3\nfour\n" "C-x u restores them")
                   ("a" "proposal" 2 2 "one\n2\n3\nfour\n" "C-x u restores them")
                   ("a" "original" 4 1 "one\ntwo\n3\n4\n"
                    "C-c C-e and then C-x u restores them")
                   ("new" "proposal" 1 2 "3\nfour\n" "C-x u restores them")))
    (ert-info ((format "%s of %s, line %d" name file line))
      (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n"))
        (let ((edit (gemini-companion-test-show file "one\ntwo\n3\nfour\n"))
              (transient-mark-mode t))
          (with-selected-window (get-buffer-window (format "*gemini %s: %s*" name file))
            (goto-char (point-min))
            (forward-line (1- line))
            (push-mark nil t t)
            (forward-line count)
            (ert-with-message-capture messages
              (call-interactively #'gemini-companion-review-toggle-hunk)
              (should (string-suffix-p (format "Lines excluded; %s\n" said) messages)))
            (should-not (use-region-p)))
          (should (equal text (gemini-companion-edit-text edit)))
          (should (eq (gemini-companion-view-hunks (gemini-companion-edit-view edit))
                      (gemini-companion-edit-hunks edit)))
          (with-current-buffer (gemini-companion-edit-proposal-buffer edit)
            (let ((inhibit-read-only t)
                  (last-command nil))
              (undo)))
          (should (equal "one\ntwo\n3\nfour\n" (gemini-companion-edit-text edit))))))))

(ert-deftest gemini-companion-review-that-ends-says-so-and-keeps-its-view ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (let ((diff (gemini-companion-test-show "a" "2\n"))
          (buffer (window-buffer)))
      ;; It ends during that question.
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (_) (gemini-companion-proposal-close diff 'closed))))
        (dolist (command '(gemini-companion-review-toggle-hunk
                           gemini-companion-review-edit))
          (should (equal '(user-error "This review has ended already: dismissed")
                         (should-error (gemini-companion-test-call command))))))
      (should (eq buffer (window-buffer)))
      (should (< 0 (buffer-size buffer))))))

(ert-deftest gemini-companion-review-letters-mean-the-same-and-are-described ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (gemini-companion-review-test-drawn (gemini-companion-test-show "a" "2\n"))
    (with-current-buffer (window-buffer)
      (pcase-dolist (`(,key ,command . ,_) (gemini-companion-commands-in 'view))
        (should (eq command (key-binding key))))
      (save-window-excursion
        (call-interactively (key-binding (kbd "C-h m")))))
    (should (string-match-p "^C-c C-c[ \t]+gemini-companion-edit-accept"
                            (gemini-companion-test-text "*Help*")))))

(ert-deftest gemini-companion-review-and-list-have-their-keys-with-evil ()
  (skip-unless (require 'evil nil t))
  (evil-mode)
  (unwind-protect
      (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n4\n5\n"))
        (progn
          (gemini-companion-review-test-drawn
           (gemini-companion-test-show "a" "one\n2\n3\n4\nfive\n"))
          (pcase-dolist
              (`(,keys ,name ,place)
               '(("" "*Ediff Control Panel*" view)
                 ("n x" "*Ediff Control Panel*") ("x e" "*gemini proposal: a*")
                 ("C-c C-e" "*Ediff Control Panel*" view)
                 ("q k" "*Ediff Control Panel*")))
            (ert-info (keys)
              (execute-kbd-macro (kbd keys))
              (should (equal name (buffer-name (window-buffer))))
              (with-selected-window (selected-window)
                (pcase-dolist (`(,key ,command . ,_)
                               (and place (gemini-companion-commands-in place)))
                  (should (eq command (key-binding (kbd key))))))))
          (execute-kbd-macro (kbd "C-c C-c"))
          (should (equal '((1 accepted "one\n2\n3\n4\nfive\n")) outcomes))
          (pcase-dolist (`(,keys . ,status)
                         `(("C-c C-k" . rejected) ("q r" . rejected)
                           ;; A key of an add-on.
                           ,@(and (gemini-companion-part-load 'addon-prompts)
                                  '(("C-c C-r no RET" . rejected) ("q R no RET" . rejected)))
                           ;; In the proposal.
                           ("e : w RET" . accepted) ("e Z Z" . accepted)
                           ("e : w q RET" . accepted) ("e : x RET" . accepted)
                           ("e i x C-c C-c" . accepted) ("e v l C-c C-k" . rejected)
                           ("e : q RET r" . rejected) ("e Z Q r" . rejected)))
            (ert-info (keys)
              ;; The other one is a new file.
              (dolist (file (list (expand-file-name "a" directory)
                                  (expand-file-name "new" directory)))
                (let ((diff (gemini-companion-review-test-drawn
                             (gemini-companion-test-show file "2\n"))))
                  (execute-kbd-macro (kbd keys))
                  (should (eq status (gemini-companion-edit-status diff)))))))
          (gemini-companion-part-stop 'overview)))
    (evil-mode -1)))

(ert-deftest gemini-companion-review-replaced-by-another-keeps-its-exclusions ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n3\n"))
    (let ((diff (gemini-companion-test-show "a" "one\n2\nthree\n")))
      (gemini-companion-edit-hunks-toggle
       diff (car (gemini-companion-edit-hunks diff)))
      (should (member "New proposal for a replaces the one that you edited; \
your text is in the kill ring"
                      (gemini-companion-test-messages
                        (gemini-companion-test-open "a" "new\n" 2))))
      (should (equal "1\n2\nthree\n" (car kill-ring))))))

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
      (should-not (string-search "accept" (funcall header))))))

(defun gemini-companion-review-test-state ()
  "Return the options and hooks that a review must leave as they are."
  (cons (gemini-companion-test-hooks)
        (mapcar #'default-value
                (cons 'ediff-session-registry
                      (apropos-internal "\\`\\(?:ediff\\|diff\\)-"
                                        #'custom-variable-p)))))

(ert-deftest gemini-companion-review-leaves-nothing-behind ()
  (gemini-companion-test-with-reviews '(("a" "1\n2\n"))
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
      (gemini-companion-test-with-reviews '(("a" "old\n"))
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

(ert-deftest gemini-companion-review-keys-need-a-displayed-and-requested-review ()
  (gemini-companion-test-needs-add-on 'pages)
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (let* ((edit (gemini-companion-test-arrive "a" "2\n"))
           (view (gemini-companion-edit-view edit))
           (press (lambda (keys)
                    (with-current-buffer (window-buffer)
                      (gemini-companion-test-messages
                        (call-interactively (key-binding (kbd keys))))))))
      (should (equal "*Ediff Control Panel*" (buffer-name (window-buffer))))
      ;; It was not displayed yet.
      (should (string-search "just appeared" (gemini-companion-test-refusal
                                               (funcall press "C-c C-c"))))
      ;; In its first second, these keys may be for the CLI in its terminal.
      (setf (gemini-companion-view-drawn view) (float-time))
      (dolist (keys '("C-c C-c" "C-c C-k" "C-x C-s" "q"))
        (should (string-search "just appeared"
                               (gemini-companion-test-refusal (funcall press keys)))))
      ;; A click may have been for what was in the place of the header line.
      (let* ((window (get-buffer-window (gemini-companion-edit-proposal-buffer edit)))
             (header (with-current-buffer (window-buffer window)
                       (gemini-companion-test-header-text)))
             (click (lookup-key (get-text-property (string-search "accept" header)
                                                   'local-map header)
                                [header-line mouse-1])))
        (save-selected-window
          (should (string-search
                   "just appeared"
                   (gemini-companion-test-refusal
                     (funcall click `(mouse-1 (,window header-line (0 . 0) 0))))))))
      ;; So may a click in the review, which else enables its letters.
      (should (string-search
               "just appeared"
               (gemini-companion-test-refusal (funcall press "<mouse-1>"))))
      (should-not (gemini-companion-view-requested view))
      (should (gemini-companion-edit-open-p edit))
      (gemini-companion-review-test-drawn edit)
      ;; It has begun by itself: its letters were typed for the terminal.
      (dolist (key '("a" "r b" "x" "e" "c" "l" "W"))
        (should (string-search "Letter ignored" (car (funcall press key)))))
      ;; Prose has a letter that would answer the question of q.
      (cl-letf (((symbol-function 'read-multiple-choice)
                 (lambda (&rest _) (error "Asked"))))
        (pcase-dolist (`(,waited . ,message) '((ignore . "Keys ignored: nothing was decided; \
q asks again")
                                               (always . "Asked")))
          (cl-letf (((symbol-function 'sit-for) waited))
            (should (equal message
                           (cadr (should-error (funcall press "q"))))))))
      (should (gemini-companion-edit-open-p edit))
      (gemini-companion-review)
      (should (gemini-companion-view-requested view))
      (funcall press "C-c C-c")
      (should (equal '((1 accepted "2\n")) outcomes)))))

(ert-deftest gemini-companion-review-is-not-answered-by-a-command-before-it-was-seen ()
  (gemini-companion-test-with-reviews '(("a" "1\n"))
    (let* ((edit (gemini-companion-test-show "a" "2\n"))
           (view (gemini-companion-edit-view edit))
           (panel (gemini-companion-review-main-buffer edit))
           (click `(mouse-3 (,(get-buffer-window panel) 1 (0 . 0) 0)))
           (commands (append
                      (list #'gemini-companion-edit-accept
                            #'gemini-companion-edit-reject
                            #'gemini-companion-review-quit
                            (lookup-key gemini-companion-review-mode-map
                                        [remap evil-save-modified-and-close])
                            (with-current-buffer panel
                              (lookup-key (context-menu-map click)
                                          [gemini-companion-edit-accept])))
                      (and (fboundp 'gemini-companion-edit-reject-with-reason)
                           '(gemini-companion-edit-reject-with-reason)))))
      (setf (gemini-companion-view-requested view) nil)
      ;; It was not displayed, or has just appeared: a menu, `repeat' or ZZ of Evil may
      ;; have been for what was there before.
      (dolist (drawn (list nil (float-time)))
        (setf (gemini-companion-view-drawn view) drawn)
        (dolist (command commands)
          (should (string-search "just appeared"
                                 (gemini-companion-test-refusal
                                   (call-interactively command))))))
      (should (gemini-companion-edit-open-p edit))
      (setf (gemini-companion-view-drawn view) 0)
      (call-interactively #'gemini-companion-edit-accept)
      (should (equal '((1 accepted "2\n")) outcomes)))))

(ert-deftest gemini-companion-review-that-follows-gets-no-answer-of-an-open-menu ()
  (gemini-companion-test-with-reviews '(("a" "1\n") ("b" "1\n"))
    (let* ((edit (gemini-companion-test-show "a" "2\n"))
           (original (gemini-companion-edit-original-buffer edit))
           (window (get-buffer-window original))
           (item (with-current-buffer original
                   (lookup-key (context-menu-map `(mouse-3 (,window 1 (0 . 0) 0)))
                               [gemini-companion-edit-accept]))))
      ;; Its CLI withdraws it while the menu is open, and another one takes its place.
      (gemini-companion-edit-reject edit)
      (let ((other (gemini-companion-test-show "b" "3\n")))
        (gemini-companion-review-test-drawn other)
        (should (eq (window-buffer window) (gemini-companion-edit-original-buffer other)))
        (should-error (call-interactively item) :type 'user-error)
        (should (gemini-companion-edit-open-p other))))))

(ert-deftest gemini-companion-review-that-cannot-be-shown-leaves-nothing ()
  (pcase-dolist
      (`(,view ,problem ,file ,text ,symbol ,value)
       `((nil "gemini-companion-review-view" "a" "new\n")
         (ediff "contains no changes" "a" "old\n")
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
              (gemini-companion-review-arrival 'notify)
              (layout (gemini-companion-test-layout))
              (buffers (buffer-list)))
          (cl-progv (and symbol (list symbol)) (list value)
            (let ((diff (gemini-companion-test-open file text)))
              (should (string-search
                       problem
                       (cadr (should-error (gemini-companion-arrival-view diff 'requested)
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
  (gemini-companion-test-needs-add-on 'pages)
  (gemini-companion-test-with-reviews '()
    (gemini-companion-test-with-far-host
      (gemini-companion-proposal-open 1
                                      (gemini-companion-session-make :id "one") "/far:/x" "new\n")
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
                       (or "diff" "ediff" "review")
                       (* "-" (+ alnum)) eos)
                   (symbol-name command))
                  (not (string-search "-test-" (symbol-name command)))
                  (not (eq command 'gemini-companion-review-mode)))
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
