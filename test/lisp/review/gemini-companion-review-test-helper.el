;;; gemini-companion-review-test-helper.el --- Reviews in tests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-part)
(require 'gemini-companion-review)
(require 'gemini-companion-row nil t)
(require 'gemini-companion-test-helper)
(require 'gemini-companion-overview nil t)

(defvar gemini-companion-test-show-function nil
  "Function that shows an edit in place of a review, or nil.
Its arguments are those of `gemini-companion-view-show'.")

(cl-defmethod gemini-companion-view-show
  :around ((edit gemini-companion-edit) requested)
  "Show EDIT by `gemini-companion-test-show-function', if that is non-nil."
  (if gemini-companion-test-show-function
      (funcall gemini-companion-test-show-function edit requested)
    (cl-call-next-method)))

(defmacro gemini-companion-test-with-diffs (files start stop &rest body)
  "Evaluate START, BODY and in the end STOP in a directory with FILES.
START calls `gemini-companion-test-diff-start'.  What arrives is shown
at once."
  (declare (indent 3) (debug t))
  `(gemini-companion-test-with-directory ,files
     (let ((gemini-companion-review-arrival 'now)
           (gemini-companion-test-show-function nil)
           (gemini-companion-test-send #'ignore)
           ;; Texts of the user that were not written.
           (kill-ring nil))
       (unwind-protect
           (unwind-protect
               (progn ,start ,@body)
             ,stop)
         (gemini-companion-part-stop 'arrival)
         (gemini-companion-part-stop 'auto)
         (gemini-companion-part-stop 'session)
         (gemini-companion-proposal-decide-all 'rejected 'now)
         (mapc #'gemini-companion-proposal-finish (gemini-companion-edits-ending))
         (gemini-companion-part-stop 'proposal)
         (gemini-companion-part-stop 'edit)
         (gemini-companion-part-stop 'revert)
         (gemini-companion-part-stop 'watch)))))

(defun gemini-companion-test-diff-start (show outcome)
  "Show diffs, and call OUTCOME with decided ones.
SHOW is a function that shows them, or nil for reviews."
  (setq gemini-companion-test-send outcome)
  (gemini-companion-part-start 'watch)
  (gemini-companion-part-start 'revert)
  (gemini-companion-part-start 'edit)
  (gemini-companion-part-start 'proposal)
  (gemini-companion-part-start 'review)
  (setq gemini-companion-test-show-function show)
  (gemini-companion-part-start 'auto)
  (gemini-companion-part-start 'arrival))

(cl-defstruct (gemini-companion-test-view
               (:include gemini-companion-view)
               (:constructor gemini-companion-test-make-view)
               (:copier nil))
  "A view of an edit that is in no window.")

(defun gemini-companion-test-show-nowhere (edit &rest _)
  "Record that EDIT is shown, in no window."
  (gemini-companion-edit-set-view
   edit (gemini-companion-test-make-view :edit edit)))

(cl-defmethod gemini-companion-view-follow
  ((view gemini-companion-test-view) event)
  "Close VIEW if EVENT is `hide', and ignore other events."
  (when (eq 'hide event)
    (gemini-companion-edit-set-view (gemini-companion-view-edit view) nil)))

(defmacro gemini-companion-test-messages (&rest body)
  "Evaluate BODY, and return the messages meanwhile, the last one first."
  (declare (indent 0) (debug t))
  `(let (messages)
     (cl-letf (((symbol-function 'message)
                (lambda (format &rest arguments)
                  (push (and format (apply #'format-message format arguments))
                        messages))))
       ,@body)
     (delq nil messages)))

(defun gemini-companion-test-session (id &optional pid)
  "Return the session ID of a CLI, the process PID, in this directory."
  (gemini-companion-session-make
   :id id :directory (directory-file-name default-directory) :pid pid))

(defun gemini-companion-test-open (file text &optional id session)
  "Open the diff ID of SESSION, to change FILE to TEXT; return it."
  (gemini-companion-proposal-open (or id 1)
                                  (or session (gemini-companion-test-session "one"))
                                  (expand-file-name file) text)
  (car (last (gemini-companion-edits-open))))

(defun gemini-companion-test-accept (file text &optional id session)
  "Accept the diff to change FILE to TEXT, and return it.
For ID and SESSION see `gemini-companion-test-open'."
  (let ((diff (gemini-companion-test-open file text id session)))
    (gemini-companion-edit-accept diff)
    diff))

(defun gemini-companion-test-outcome (diff)
  "Return how DIFF ended: a list of its ID, its state and the accepted text."
  (list (gemini-companion-edit-id diff)
        (gemini-companion-edit-answer diff)
        (and (memq (gemini-companion-edit-answer diff) '(accepted automatic))
             (gemini-companion-edit-after diff))))

(defmacro gemini-companion-test-with-edits (files &rest body)
  "Record edits while BODY is run in a directory with FILES.
`session' is a CLI there.  What is accepted is written at once;
`outcomes' holds how diffs ended, the last one first."
  (declare (indent 1) (debug t))
  `(let ((inhibit-message t)
         outcomes session)
     (ignore outcomes)
     (gemini-companion-test-with-diffs ,files
         (progn
           (setq session (gemini-companion-test-session "one" 1))
           (gemini-companion-part-start 'state)
           (gemini-companion-test-set-sessions (list session))
           (gemini-companion-test-diff-start
            #'gemini-companion-test-show-nowhere
            (lambda (diff)
              (when (memq (gemini-companion-edit-answer diff)
                          '(accepted automatic))
                (gemini-companion-test-write (gemini-companion-edit-file diff)
                                             (gemini-companion-edit-after diff)))
              (push (cons (gemini-companion-edit-id diff)
                          (gemini-companion-edit-answer diff))
                    outcomes))))
         (progn
           (gemini-companion-part-stop 'session)
           (gemini-companion-part-stop 'state))
       ,@body)))

;; Of a size for two texts side by side; before the first redisplay, a size does not
;; last.
(sit-for 0.01)
(set-frame-size nil 160 45)

(defmacro gemini-companion-test-with-reviews (files &rest body)
  "Show proposals while BODY is run in a directory with FILES.
`outcomes' holds the outcomes, the last one first."
  (declare (indent 1) (debug t))
  `(let ((inhibit-message t)
         outcomes)
     (gemini-companion-test-with-diffs ,files
         (progn
           (delete-other-windows)
           (set-window-buffer nil "*scratch*")
           (gemini-companion-test-diff-start
            nil
            (lambda (diff)
              (push (gemini-companion-test-outcome diff) outcomes))))
         nil
       ,@body)))

(defun gemini-companion-test-arrive (file text &optional id session)
  "Propose TEXT for FILE and return the diff when it is shown.
For ID and SESSION see `gemini-companion-test-open'."
  ;; After an answer, the overview awaits more.
  (when (get-buffer "*gemini*")
    (quit-windows-on "*gemini*" 'kill))
  (let ((diff (gemini-companion-test-open file text id session)))
    (gemini-companion-test-eventually
      (eq 'shown (gemini-companion-edit-status diff)))
    diff))

(defun gemini-companion-test-call (command)
  "Call COMMAND, a function, in the buffer of the selected window."
  (with-current-buffer (window-buffer)
    (funcall command)))

(defun gemini-companion-test-window-names ()
  "Return the names of the buffers in the windows, in their order."
  (mapcar (lambda (window) (buffer-name (window-buffer window)))
          (window-list nil nil (frame-first-window))))

(defun gemini-companion-test-header-text ()
  "Return the header line of a review, of the current buffer or another one.
One buffer of each view displays it.  It is that of a wide window."
  (cl-letf (((symbol-function 'window-width) (lambda (&rest _) 1000)))
    (eval (seq-some (lambda (buffer)
                      (pcase (buffer-local-value 'header-line-format buffer)
                        (`(:eval ,form) form)))
                    (cons (current-buffer) (buffer-list)))
          t)))

(defun gemini-companion-test-header (&optional buffer)
  "Return the header line of BUFFER, a buffer, a name or nil, as a text."
  (with-current-buffer (or buffer (current-buffer))
    (substring-no-properties (gemini-companion-test-header-text))))

(defun gemini-companion-test-diff (&optional numbers)
  "Return the lines of the unified diff in the current buffer.
Each has its sign before it, x or * before that if its hunk is
excluded or it was edited, and with NUMBERS those of the line."
  (save-excursion
    (goto-char (point-min))
    (let (lines)
      (while (not (eobp))
        (let ((prefix (or (get-text-property (point) 'line-prefix) "  ")))
          (push (concat (if numbers
                            (substring-no-properties prefix)
                          (string-remove-prefix
                           " " (substring-no-properties prefix -2)))
                        (buffer-substring-no-properties
                         (point) (line-end-position)))
                lines))
        (forward-line))
      (nreverse lines))))

(defun gemini-companion-test-show (file text)
  "Propose TEXT for FILE, and return the diff when its review is selected."
  (let ((diff (gemini-companion-test-arrive file text)))
    (gemini-companion-arrival-view diff 'requested)
    diff))

(defun gemini-companion-test-accept-inside (diff)
  "Accept DIFF as its key in the review does: the next one may follow."
  (with-current-buffer (gemini-companion-review-main-buffer diff)
    (let ((real-this-command #'gemini-companion-edit-accept))
      (gemini-companion-edit-accept))))

(defun gemini-companion-test-layout ()
  "Return all that is seen of the windows of the frame."
  (mapcar (lambda (window)
            (list (window-buffer window) (window-edges window)
                  (window-point window) (window-start window)
                  (window-dedicated-p window)
                  (window-parameter window 'window-side)
                  (window-parameter (or (window-parent window) window)
                                    'window-atom)
                  (window-parameter window 'mode-line-format)
                  (window-parameter window 'quit-restore)
                  (eq window (selected-window))))
          (window-list nil nil (frame-first-window))))

(provide 'gemini-companion-review-test-helper)
;;; gemini-companion-review-test-helper.el ends here
