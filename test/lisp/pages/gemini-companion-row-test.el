;;; gemini-companion-row-test.el --- Tests of a proposal as a row  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-overview)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-row)

(ert-deftest gemini-companion-row-is-displayed-unless-the-user-waits-in-the-terminal ()
  (dolist (terminal '(nil t))
    (gemini-companion-test-with-reviews '(("a" "old\n"))
      (setq gemini-companion-review-arrival 'when-idle)
      (let* ((process (make-process :name "cli" :command '("cat") :noquery t
                                    :buffer (get-buffer-create "cli")))
             (session (gemini-companion-test-session "one" (process-id process)))
             (buffer (window-buffer)))
        (unwind-protect
            (cl-letf (((symbol-function 'gemini-companion-idle-user-p) #'always))
              (gemini-companion-test-set-sessions (list session))
              (when terminal
                (switch-to-buffer "cli")
                (setq buffer (current-buffer)))
              ;; Another window may display the row.
              (set-window-buffer (split-window) "*scratch*")
              (let ((diff (gemini-companion-test-open "a" "new\n" 1 session)))
                (gemini-companion-test-eventually
                  (not (gemini-companion-request-waits-to-appear-p diff)))
                (if terminal
                    (should (equal "*Ediff Control Panel*"
                                   (buffer-name (window-buffer))))
                  (should (eq buffer (window-buffer)))
                  (should-not (gemini-companion-edit-view diff))
                  (with-current-buffer "*gemini*"
                    ;; It is unfolded.
                    (should (string-search "new" (buffer-string)))))
                (gemini-companion-edit-reject diff)
                (gemini-companion-test-eventually (not (gemini-companion-edits-ending)))
                (should (eq buffer (window-buffer)))))
          (gemini-companion-part-stop 'overview)
          (gemini-companion-test-set-sessions nil)
          (delete-process process)
          (kill-buffer "cli"))))))

;; Also if it is to begin by itself, or follows an answer.
(ert-deftest gemini-companion-row-is-displayed-of-what-ediff-cannot-show ()
  (let ((long (make-string 5000 ?x)))
    (pcase-dolist (`(,rows ,old ,new) `((19 "old\n" "new\n") (45 "old\n" ,long)
                                        (45 ,long "new\n")))
      (gemini-companion-test-with-reviews `(("a" ,old) ("b" "old\n"))
        (unwind-protect
            (let ((first (gemini-companion-test-show "b" "new\n"))
                  (edit (gemini-companion-test-open "a" new 2)))
              (set-frame-size nil 160 rows)
              (gemini-companion-test-accept-inside first)
              (gemini-companion-test-eventually
                (gemini-companion-edit-appeared edit))
              (should-not (gemini-companion-edit-view edit))
              (should-not (gemini-companion-edits-ending))
              (gemini-companion-request-show edit)
              (should (equal "*gemini*" (buffer-name (window-buffer))))
              (with-current-buffer (window-buffer)
                (should (eq edit (gemini-companion-edit-current)))
                (should (string-prefix-p "No review by Ediff: "
                                         (gemini-companion-test-refusal
                                           (gemini-companion-review-edit)))))
              (gemini-companion-edit-accept edit)
              (should (equal (list 2 'accepted new) (car outcomes))))
          (gemini-companion-part-stop 'overview)
          (set-frame-size nil 160 45))))))

(defvar ediff-keymap-setup-hook)
(ert-deftest gemini-companion-row-answers-what-ediff-fails-to-show ()
  (gemini-companion-test-with-reviews '(("a" "old\n"))
    (setq gemini-companion-review-arrival 'notify)
    (let ((ediff-keymap-setup-hook (list (lambda () (error "Boom"))))
          (windows (gemini-companion-test-window-names))
          (edit (gemini-companion-test-open "a" "new\n")))
      (unwind-protect
          (progn
            (should (string-search "Boom; answer in the overview or "
                                   (gemini-companion-test-refusal
                                     (gemini-companion-request-show edit))))
            (should (equal windows (gemini-companion-test-window-names)))
            (gemini-companion-list)
            (should (eq edit (gemini-companion-edit-current)))
            (gemini-companion-edit-accept)
            (should (equal '((1 accepted "new\n")) outcomes)))
        (gemini-companion-part-stop 'overview)))))

;; The option was set while the CLI was connected.
(ert-deftest gemini-companion-row-is-none-without-reviews ()
  (gemini-companion-test-with-reviews '(("a" "old\n"))
    (gemini-companion-list)
    (cl-letf ((gemini-companion-review-view nil)
              ((symbol-function 'gemini-companion-idle-user-p) #'always))
      (let ((edit (gemini-companion-test-open "a" "new\n")))
        (gemini-companion-test-eventually (gemini-companion-edit-problem edit))
        (should (string-search "No review of" (gemini-companion-edit-problem edit)))
        (should-not (gemini-companion-edit-appeared edit))))
    (gemini-companion-part-stop 'overview)))

;; The windows had an Ediff buffer to go back to.
(ert-deftest gemini-companion-row-quits-to-the-windows-before-its-review ()
  (gemini-companion-test-with-reviews '(("a" "old\n"))
    (setq gemini-companion-review-arrival 'notify)
    (find-file-noselect "a")
    (switch-to-buffer "a")
    (let ((edit (gemini-companion-test-open "a" "new\n"))
          (layout (gemini-companion-test-layout)))
      (dotimes (_ 2)
        (gemini-companion-arrival-view edit 'requested)
        (gemini-companion-test-call #'gemini-companion-list)
        (should (equal '("*gemini*" "a") (sort (gemini-companion-test-window-names)
                                               #'string<))))
      (gemini-companion-test-call #'quit-window)
      (should (equal layout (gemini-companion-test-layout)))
      (gemini-companion-edit-reject edit)
      (gemini-companion-part-stop 'overview))))

;;; gemini-companion-row-test.el ends here
