;;; gemini-companion-arrival-test.el --- Tests of the way to the screen  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-overview nil t)
(require 'gemini-companion-part)
(require 'gemini-companion-review-test-helper)

(cl-defstruct (gemini-companion-arrival-test-question
               (:include gemini-companion-request)
               (:constructor gemini-companion-arrival-test-question))
  "A question of a CLI.")

(ert-deftest gemini-companion-arrival-waits-for-the-end-of-a-search-or-region ()
  (gemini-companion-test-with-reviews '(("a" "old\n"))
    (let ((diff (gemini-companion-test-open "a" "new\n")))
      (let ((isearch-mode t))
        (gemini-companion-test-run-timers "arrival")
        (should-not (gemini-companion-edit-view diff)))
      (with-current-buffer (window-buffer)
        (insert "text")
        (let ((transient-mark-mode t))
          (push-mark (point-min) t t)
          (gemini-companion-test-run-timers "arrival")
          (should-not (gemini-companion-edit-view diff))
          (deactivate-mark)))
      (gemini-companion-test-run-timers "arrival")
      (should (gemini-companion-edit-view diff))
      (should-not (gemini-companion-view-requested (gemini-companion-edit-view diff))))))

;;;; After an answer

(defmacro gemini-companion-arrival-test-with-answer (&rest body)
  "Evaluate BODY after an edit of a was accepted in its review, as `first'.
The user had asked for the review; `layout' is what was seen before it.  The
user is idle, but an edit appears by itself only in a terminal of its CLI."
  (declare (indent 0) (debug t))
  `(gemini-companion-test-with-reviews '(("a" "old\n") ("b" "old\n"))
     (cl-letf (((symbol-function 'gemini-companion-idle-user-p) #'always))
       (setq gemini-companion-review-arrival 'when-idle)
       (set-window-buffer (split-window) (get-buffer-create "*other*"))
       (let ((layout (gemini-companion-test-layout))
             (first (gemini-companion-test-open "a" "new\n")))
         (ignore layout)
         (gemini-companion-arrival-view first 'requested)
         (gemini-companion-test-accept-inside first)
         ,@body)
       (kill-buffer "*other*")
       (delete-other-windows)
       (gemini-companion-part-stop 'overview))))

(defun gemini-companion-arrival-test-key (key)
  "Return the binding of KEY in the selected window."
  (with-current-buffer (window-buffer)
    (key-binding (kbd key))))

(defun gemini-companion-arrival-test-ignores-p (key)
  "Return non-nil if KEY only displays a message in the selected window."
  (let ((command (gemini-companion-arrival-test-key key)))
    (and (symbolp command)
         (string-prefix-p "gemini-companion-" (symbol-name command))
         (seq-some (lambda (text)
                     (string-match-p "\\`Key ignored: \\(?:a\\|b\\|new\\) has been answered\\'" text))
                   (gemini-companion-test-messages (gemini-companion-test-call command))))))

(ert-deftest gemini-companion-arrival-answered-review-takes-keys-until-the-next-one ()
  (gemini-companion-arrival-test-with-answer
    (should (equal '((1 accepted "new\n")) outcomes))
    (gemini-companion-test-run-timers "arrival")
    (should (equal "*Ediff Control Panel*" (buffer-name (window-buffer))))
    (should (get-buffer-window "*gemini proposal: a*"))
    (should (equal " Waiting for the next edit; q closes now"
                   (with-current-buffer (window-buffer) (buffer-string))))
    (dolist (key '("a" "n" "!" "SPC" "RET" "TAB" "DEL" "é" "C-d" "C-c C-c" "C-c C-k"
                   "C-c C-r" "C-x C-s"))
      (ert-info (key)
        (should (gemini-companion-arrival-test-ignores-p key))))
    (dolist (key '("C-x o" "M-x" "C-h k"))
      (should-not (gemini-companion-arrival-test-ignores-p key)))
    (let ((second (gemini-companion-test-open "b" "new\n" 2)))
      (gemini-companion-test-eventually (gemini-companion-edit-view second))
      (should-not (gemini-companion-edits-ending))
      (should (gemini-companion-view-requested (gemini-companion-edit-view second)))
      ;; No key answers before it is displayed.
      (should-not (gemini-companion-view-drawn (gemini-companion-edit-view second)))
      (gemini-companion-test-accept-inside second)
      (should-not (equal layout (gemini-companion-test-layout)))
      (gemini-companion-test-call (gemini-companion-arrival-test-key "q"))
      (should (equal layout (gemini-companion-test-layout)))
      (should-not (gemini-companion-edits-ending)))))

(ert-deftest gemini-companion-arrival-answered-new-file-takes-keys-as-well ()
  (gemini-companion-test-with-reviews nil
    (setq gemini-companion-review-arrival 'when-idle)
    (let ((layout (gemini-companion-test-layout))
          (first (gemini-companion-test-open "new" "new\n")))
      (gemini-companion-arrival-view first 'requested)
      (gemini-companion-test-accept-inside first)
      (should (string-search ", accepted +1 −0  Waiting for the next edit; q closes now"
                             (gemini-companion-test-header (window-buffer))))
      (should (gemini-companion-arrival-test-ignores-p "a"))
      (gemini-companion-test-call (gemini-companion-arrival-test-key "C-g"))
      (should (equal layout (gemini-companion-test-layout))))))

(ert-deftest gemini-companion-arrival-next-review-takes-the-windows-at-once ()
  (gemini-companion-test-with-reviews '(("a" "old\n") ("b" "old\n"))
    (setq gemini-companion-review-arrival 'when-idle)
    (cl-letf (((symbol-function 'gemini-companion-idle-user-p) #'ignore))
      (let ((first (gemini-companion-test-open "a" "new\n"))
            (second (gemini-companion-test-open "b" "new\n" 2)))
        ;; It has begun by itself, and so does the next one.
        (gemini-companion-arrival-view first nil)
        (gemini-companion-test-accept-inside first)
        (should (gemini-companion-edit-view second))
        (should-not (gemini-companion-edits-ending))
        (should-not (gemini-companion-view-requested
                     (gemini-companion-edit-view second)))))))

(ert-deftest gemini-companion-arrival-keys-after-an-answer-ask-for-no-review ()
  (gemini-companion-arrival-test-with-answer
    (cl-incf num-nonmacro-input-events)
    (cl-letf (((symbol-function 'gemini-companion-idle-user-p) #'ignore))
      (let ((second (gemini-companion-test-open "b" "new\n" 2)))
        (gemini-companion-test-run-timers "arrival")
        (should-not (gemini-companion-edit-view second))
        ;; The user is idle.
        (fset 'gemini-companion-idle-user-p #'always)
        (gemini-companion-test-run-timers "arrival")
        (should-not (gemini-companion-view-requested
                     (gemini-companion-edit-view second)))))))

(ert-deftest gemini-companion-arrival-answered-review-closes-as-before ()
  (pcase-dolist
      (`(,name . ,end)
       `(("five seconds"
          . ,(lambda (edit)
               (cl-decf (gemini-companion-edit-since edit) 6)))
         ("end of the turn"
          . ,(lambda (edit)
               (setf (gemini-companion-turn-ended (gemini-companion-edit-turn edit))
                     (float-time))))
         ("another window"
          . ,(lambda (_)
               (select-window (get-buffer-window "*gemini proposal: a*"))))
         ("question"
          . ,(lambda (edit)
               (setq gemini-companion-request-list-functions
                     (list (lambda ()
                             (list (gemini-companion-arrival-test-question
                                    :since (1+ (float-time))
                                    :session (gemini-companion-edit-session
                                              edit))))))))
         ("no reviews by themselves"
          . ,(lambda (_) (setq gemini-companion-review-arrival 'notify)))
         ("killed" . ,(lambda (_) (kill-buffer (window-buffer))))
         ("killed text" . ,(lambda (_) (kill-buffer "*gemini proposal: a*")))))
    (ert-info (name)
      (let ((gemini-companion-request-list-functions
             gemini-companion-request-list-functions))
        (cl-letf (((symbol-function 'gemini-companion-request-certain-p) #'always))
          (gemini-companion-arrival-test-with-answer
            (funcall end first)
            (gemini-companion-test-run-timers "arrival")
            (should-not (gemini-companion-edits-ending))
            (should (equal layout (gemini-companion-test-layout)))))))))

(ert-deftest gemini-companion-arrival-answered-review-waits-for-its-cli-only ()
  (gemini-companion-test-needs-add-on 'pages)
  (gemini-companion-arrival-test-with-answer
    (let ((other (gemini-companion-test-open
                  "b" "new\n" 2 (gemini-companion-test-session "two"))))
      (gemini-companion-test-run-timers "arrival")
      (should (gemini-companion-edit-view first))
      (should-not (gemini-companion-edit-view other))
      (should-not (gemini-companion-edit-appeared other))
      (cl-decf (gemini-companion-edit-since first) 6)
      (gemini-companion-test-run-timers "arrival")
      (should-not (gemini-companion-edit-view first))
      ;; It is a row.
      (should (gemini-companion-edit-appeared other)))))

(ert-deftest gemini-companion-arrival-begins-again-if-nothing-was-typed ()
  (gemini-companion-test-needs-add-on 'pages)
  (dolist (typed '(nil t))
    (gemini-companion-arrival-test-with-answer
      (cl-decf (gemini-companion-edit-since first) 6)
      (gemini-companion-test-run-timers "arrival")
      (should (equal layout (gemini-companion-test-layout)))
      (when typed
        (cl-incf num-nonmacro-input-events))
      (let ((second (gemini-companion-test-open "b" "new\n" 2)))
        (gemini-companion-test-eventually
          (or (gemini-companion-edit-view second)
              (gemini-companion-edit-appeared second)))
        (should (eq typed (null (gemini-companion-edit-view second))))
        (unless typed
          (should-not (gemini-companion-view-requested
                       (gemini-companion-edit-view second))))))))

(ert-deftest gemini-companion-arrival-restores-the-windows-if-reviews-are-rows ()
  (dolist (set (list (lambda () (setq gemini-companion-review-arrival 'notify))
                     (lambda () (setq gemini-companion-review-view 'diff))))
    (gemini-companion-test-with-reviews '(("a" "old\n") ("b" "old\n"))
      (let ((gemini-companion-review-view 'ediff)
            (gemini-companion-review-arrival 'notify)
            (layout (gemini-companion-test-layout))
            (first (gemini-companion-test-open "a" "new\n"))
            (second (gemini-companion-test-open "b" "new\n" 2)))
        (funcall set)
        (gemini-companion-arrival-view first 'requested)
        (gemini-companion-test-accept-inside first)
        (should-not (gemini-companion-edit-view second))
        (should (equal layout (gemini-companion-test-layout)))))))

;;;; Errors

(ert-deftest gemini-companion-arrival-shows-a-review-although-a-hook-fails ()
  (dolist (gemini-companion-review-view '(ediff))
    (pcase-dolist
        (`(,shown . ,hooks)
         '((t prog-mode-hook emacs-lisp-mode-hook special-mode-hook
              font-lock-mode-hook window-configuration-change-hook
              kill-buffer-query-functions
              gemini-companion-review-mode-hook gemini-companion-request-functions
              gemini-companion-edit-opened-functions
              gemini-companion-edit-closed-functions)
           ;; With these there may be no view.
           (nil after-change-major-mode-hook change-major-mode-after-body-hook
                first-change-hook before-change-functions
                after-change-functions kill-buffer-hook
                change-major-mode-hook)))
      (dolist (hook hooks)
        (ert-info ((format "%s, %s" gemini-companion-review-view hook))
          (gemini-companion-test-with-reviews '(("a.el" "old\n"))
            (let ((previous (default-value hook))
                  (buffers (gemini-companion-test-buffers))
                  diff state)
              (unwind-protect
                  (gemini-companion-test-demoted
                    (set-default hook (cons (lambda (&rest _) (error "Boom"))
                                            previous))
                    (setq diff (gemini-companion-test-open "a.el" "new\n"))
                    (gemini-companion-test-wait
                     (lambda () (or (gemini-companion-edit-problem diff)
                                    (eq 'shown (gemini-companion-edit-status diff)))))
                    (setq state (gemini-companion-edit-status diff))
                    (gemini-companion-edit-accept diff))
                (set-default hook previous))
              (when shown
                (should (eq 'shown state)))
              (should (equal '((1 accepted "new\n")) outcomes))
              (should-not (gemini-companion-test-buffers buffers)))))))))

;;; gemini-companion-arrival-test.el ends here
